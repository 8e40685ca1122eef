#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Draws how much memory tensors use during training steps, with and without checkpoints.

Argument: the picture.
"""

import sys

import gtorch as torch
from gtorch import nn, plot
from gtorch.utils.checkpoint import checkpoint_sequential

LAYERS, WIDTH, BATCH, STEPS, MIB = 12, 128, 2048, 2, 1 << 20


def measure(how):
    """Returns the memory in MiB at the ends of layers, forward and backward, where `how` calls the network."""
    device = torch.Device.cpu()
    used = []

    def note(*_args):
        used.append((device.get_memory_allocated() - before) / MIB)

    before = device.get_memory_allocated()
    layers = [layer for _ in range(LAYERS) for layer in (nn.Linear(WIDTH, WIDTH), nn.Tanh())]
    network = nn.Sequential(*layers)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    for layer in layers[::2]:
        layer.register_forward_hook(note)
        layer.weight.register_post_accumulate_grad_hook(note)
    x = torch.rand(BATCH, WIDTH, requires_grad=True)
    for _ in range(STEPS):
        note()
        loss = how(network, x).square().mean()
        note()
        loss.backward()
        note()
        optimizer.step()
        optimizer.zero_grad()
        x.grad = None
    note()
    return used


def main():
    torch.manual_seed(1)
    plain = measure(lambda network, x: network(x))
    spared = measure(lambda network, x: checkpoint_sequential(network, 4, x, use_reentrant=False))
    figure = plot.Figure(width=720, height=280)
    axes = figure.get_axes()
    for used, text in (plain, 'all results are kept'), (spared, 'with four checkpoints'):
        axes.add_line(torch.linspace(0, STEPS, len(used)), used, text)
    axes.x_label, axes.y_label = 'steps', 'memory of tensors, MiB'
    axes.set_y_limits(0, 1.25 * max(plain))
    figure.save(sys.argv[1])


if __name__ == '__main__':
    main()
