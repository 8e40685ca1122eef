#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Prints the tables of test-layers.c and test-losses.c: what PyTorch's modules give, in float64.

Element j of the input and of each parameter is sin (j + 1). The output is multiplied by cos (j) and summed; the table
holds how PyTorch writes the module, the shape, that sum, and the same sum of the input's gradient.
"""

import torch
from torch import nn


def waves(tensor):
    n = torch.arange(tensor.numel(), dtype=torch.float64)
    return torch.sin(n + 1).reshape(tensor.shape)


def weigh(tensor):
    n = torch.arange(tensor.numel(), dtype=torch.float64)
    return (tensor.reshape(-1) * torch.cos(n)).sum()


LAYERS = [
    ('identity', nn.Identity(), (2, 3)),
    ('relu', nn.ReLU(), (2, 3)),
    ('sigmoid', nn.Sigmoid(), (2, 3)),
    ('tanh', nn.Tanh(), (2, 3)),
    ('silu', nn.SiLU(), (2, 3)),
    ('gelu', nn.GELU(), (2, 3)),
    ('gelu_tanh', nn.GELU(approximate='tanh'), (2, 3)),
    ('leaky_relu', nn.LeakyReLU(0.2), (2, 3)),
    ('softmax', nn.Softmax(1), (2, 3)),
    ('log_softmax', nn.LogSoftmax(0), (2, 3)),
    ('flatten', nn.Flatten(), (2, 3, 4)),
    ('linear', nn.Linear(3, 4), (2, 3)),
    ('linear_without_bias', nn.Linear(3, 4, bias=False), (2, 5, 3)),
    ('conv2d', nn.Conv2d(2, 3, 3, padding=1), (2, 2, 5, 4)),
    ('conv2d_full', nn.Conv2d(4, 6, (3, 2), (2, 1), (1, 0), (1, 2), 2, False), (1, 4, 6, 7)),
    ('max_pool2d', nn.MaxPool2d(2), (1, 2, 4, 6)),
    ('max_pool2d_full', nn.MaxPool2d((3, 2), (2, 1), (1, 0), ceil_mode=True), (1, 2, 5, 7)),
    ('avg_pool2d', nn.AvgPool2d(2), (1, 2, 4, 6)),
    ('adaptive_avg_pool2d', nn.AdaptiveAvgPool2d((2, 3)), (1, 2, 5, 7)),
    ('batch_norm1d', nn.BatchNorm1d(3), (4, 3)),
    ('batch_norm2d', nn.BatchNorm2d(3), (2, 3, 2, 2)),
    ('layer_norm', nn.LayerNorm([3, 4]), (2, 3, 4)),
]
for name, module, shape in LAYERS:
    module = module.double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(waves(parameter))
    x = waves(torch.empty(shape)).requires_grad_()
    y = module(x)
    weigh(y).backward()
    dims = ', '.join(map(str, y.shape))
    print(f'  {{ "{name}", "{module}", "[{dims}]", {weigh(y).item()!r}, {weigh(x.grad).item()!r} }},')

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
