#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Draws how much memory tensors use during training steps, with and without checkpoints.

Argument: the picture.
"""

import sys

import gtorch as torch
from gtorch import nn
from gtorch.utils.checkpoint import checkpoint_sequential

import svg

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
    picture = svg.Picture(720, 280, 'Memory during two training steps, with and without checkpoints')
    top = 5 * (max(plain) // 5 + 1)
    plot = svg.Plot(picture, (60, 40, 630, 190), (0, 1), (0, top), ('time, two training steps', 'memory of tensors'))
    plot.marks((), range(0, int(top) + 1, 5), ' MiB')
    for used, colour in (plain, svg.BLUE), (spared, svg.GREEN):
        plot.line([(i / (len(used) - 1), n) for i, n in enumerate(used)], colour)
    picture.text(300, 30, 'all results are kept', svg.BLUE)
    picture.text(480, 30, 'with four checkpoints', svg.GREEN)
    picture.save(sys.argv[1])


if __name__ == '__main__':
    main()
