#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Prints the table of test-optim.c: the parameters of PyTorch's optimizers after five steps.

The function is sum (w * p * p) / 2 with w = 1, 2, 3, from p = 1, -2, 3 in float64.
"""

import torch

CASES = [
    ('sgd', torch.optim.SGD, {'lr': 0.1}),
    ('sgd_momentum', torch.optim.SGD, {'lr': 0.1, 'momentum': 0.9}),
    ('sgd_nesterov', torch.optim.SGD, {'lr': 0.05, 'momentum': 0.8, 'nesterov': True, 'weight_decay': 0.1}),
    ('sgd_dampening', torch.optim.SGD, {'lr': 0.05, 'momentum': 0.8, 'dampening': 0.3, 'maximize': True}),
    ('adam', torch.optim.Adam, {'lr': 0.1}),
    ('adam_amsgrad', torch.optim.Adam, {'lr': 0.1, 'amsgrad': True, 'weight_decay': 0.2}),
    ('adamw', torch.optim.AdamW, {'lr': 0.1, 'weight_decay': 0.3}),
]

for name, optimizer, options in CASES:
    p = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64, requires_grad=True)
    w = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    o = optimizer([p], **options)
    for _ in range(5):
        o.zero_grad()
        (w * p * p / 2).sum().backward()
        o.step()
    print(f'{{ "{name}", {{ {", ".join(repr(v) for v in p.tolist())} }} }},')
