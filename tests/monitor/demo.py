# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A program that trains a small network and exports itself, for the test of GTorch Monitor: until it is ended."""

import time

import gtorch as torch
from gi.repository import GTorch
from gtorch import nn

EVENTS = [('matmul', 40 + i % 7) for i in range(60)] + [('relu', 3) for i in range(60)] + [('backward', 120)] * 20


def profile():
    events, now = [], 0
    for name, duration in EVENTS:
        events.append(f'{{"ph": "X", "name": "{name}", "cat": "cpu_op", "ts": {now}, "dur": {duration}}}')
        now += duration
    return '{"traceEvents": [' + ', '.join(events) + ']}'


GTorch.manual_seed(3)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
exporter = GTorch.Exporter.new('digits.py')
exporter.start(None)
exporter.add_module('model', model)
exporter.set_profile(profile())
inputs, weights = torch.randn(512, 64), torch.randn(64, 10)
labels = (inputs @ weights).argmax(1)
blocks = [torch.empty(2 ** (8 + i % 12), device='cuda') for i in range(40)]
del blocks[::3]
print('ready', flush=True)
for step in range(10**9):
    chosen = torch.randint(0, 512, (64,))
    loss = nn.functional.cross_entropy(model(inputs[chosen]), labels[chosen])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    exporter.add_scalar('train/loss', loss.item(), step)
    if step % 20 == 0:
        right = (model(inputs).argmax(1) == labels).float().mean()
        exporter.add_scalar('validation/accuracy', right.item(), step)
    time.sleep(0.02)
