#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes pytorch.pt with PyTorch: a file of torch.save() with what load() has to know, which
tests/bindings/test_saved_files.py reads. Run it in this folder by a Python that has PyTorch; the file here was made by
PyTorch 2.15.0."""

import collections

import torch

base = torch.arange(12, dtype=torch.float32).reshape(3, 4)
linear = torch.nn.Linear(2, 3)
with torch.no_grad():
    linear.weight.copy_(torch.arange(6.0).reshape(3, 2))
    linear.bias.fill_(0.5)
torch.save(
    {
        'state': linear.state_dict(),
        'weight': linear.weight,
        'base': base,
        'columns': base[1:, ::2],
        'turned': base.t(),
        'kinds': {str(dtype).removeprefix('torch.'): torch.tensor([1, 0, 3]).to(dtype) for dtype in (
            torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
            torch.float32, torch.float64, torch.complex64, torch.complex128,
        )},
        'leaf': torch.ones(2, requires_grad=True),
        'empty': torch.empty(0, 3),
        'number': torch.tensor(5),
        'size': torch.Size([2, 3]),
        'dtype': torch.float16,
        'device': torch.device('cpu'),
        'plain': [1, 2.5, None, True, 'text', b'\0bytes', 2**70, (1, (2,)), {3}, 1 + 2j],
        'order': collections.OrderedDict(b=1, a=2),
    },
    'pytorch.pt',
)
