#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Prints the tables of test-layer-rows.c and test-losses.c: results of PyTorch's modules, in
float64, for the samples of the layers' rows. Names each sample whose text is not PyTorch's.

Element j of the input and of each parameter is sin (j + 1). The output is multiplied by cos (j) and
summed; the table contains the layer and its arguments, the shape of the output, that sum, and the
same sum of the input's gradient.
"""

import math
import pathlib
import tomllib

import torch
from torch import nn

ROWS = pathlib.Path(__file__).resolve().parents[2] / 'gtorch' / 'nn' / 'layers'
NAMES = {'nn': nn, 'tensor': lambda n: 2.0 ** torch.arange(-1, n - 1, dtype=torch.float64)}


def waves(tensor):
    n = torch.arange(tensor.numel(), dtype=torch.float64)
    return torch.sin(n + 1).reshape(tensor.shape)


def given(i, text):
    """Returns input i."""
    numbers, _, kind = text.partition(' ')
    shape = [int(n) for n in numbers.split(',') if n]
    n = torch.arange(math.prod(shape), dtype=torch.float64)
    if kind.startswith('below '):
        return (5 * n.long() + 2).remainder(int(kind.split()[1])).reshape(shape)
    values = torch.sin(n + 1 + 7 * i).reshape(shape)
    if kind == 'logs':
        return values.log_softmax(-1)
    return {'': values, 'positive': values.abs() + 0.125, 'signs': values.sign()}[kind]


def weigh(tensor):
    n = torch.arange(tensor.numel(), dtype=torch.float64)
    return (tensor.reshape(-1) * torch.cos(n)).sum()


def samples():
    for path in sorted(ROWS.glob('*.toml')):
        for name, row in tomllib.loads(path.read_text(encoding='utf-8')).items():
            for sample in row['sample']:
                yield name, sample


for name, sample in samples():
    arguments = sample.get('new', '')
    module = eval(f'nn.{name}({arguments})', NAMES)
    if str(module) != sample['text']:
        print(f'/* {name}({arguments}): PyTorch writes {module} */')
    if 'integers' in sample or 'target' in sample or 'Dropout' in name or not {'shape', 'shapes'} & set(sample):
        continue
    first, *others = sample.get('shapes', [sample.get('shape')])
    module = module.double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(waves(parameter))
    x = given(0, first).requires_grad_()
    module.train(sample.get('training', True))
    y = module(x.clone(), *(given(i, text) for i, text in enumerate(others, 1)))
    y = y[0] if isinstance(y, tuple) else y  # without the states of a network
    weigh(y).backward()
    dims = ', '.join(map(str, y.shape))
    print(f'  {{ "{name}", "{arguments}", "[{dims}]", {weigh(y).item()!r}, {weigh(x.grad).item()!r} }},')

norm = nn.BatchNorm2d(3).double()
norm(waves(torch.empty(2, 3, 2, 2)))
norm(waves(torch.empty(4, 3, 2, 2)))
print(norm.running_mean.tolist(), norm.running_var.tolist(), norm.num_batches_tracked.item())
print(weigh(norm.eval()(waves(torch.empty(2, 3, 2, 2)))).item())

x, y = waves(torch.empty(4, 3)), torch.cos(torch.arange(12.0, dtype=torch.float64)).reshape(4, 3).abs()
labels, weight = torch.tensor([2, 0, 1, 1]), torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
LOSSES = [
    ('mse', nn.MSELoss(), y),
    ('l1_sum', nn.L1Loss(reduction='sum'), y),
    ('nll', nn.NLLLoss(weight, ignore_index=0), labels),
    ('cross_entropy', nn.CrossEntropyLoss(), labels),
    ('cross_entropy_full', nn.CrossEntropyLoss(weight, label_smoothing=0.2, reduction='sum'), labels),
    ('bce_with_logits', nn.BCEWithLogitsLoss(pos_weight=weight), y),
]
for name, loss, target in LOSSES:
    z = x.clone().requires_grad_()
    value = loss(z, target)
    value.backward()
    print(f'  {{ "{name}", {value.item()!r}, {weigh(z.grad).item()!r} }},')
