#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Learns to separate two spirals, and draws what the network says of each place after some and after all steps.

Argument: the picture.
"""

import itertools
import sys

import gtorch as torch
from gtorch import nn

import svg

STEPS, SIDE, CELL, POINTS = (20, 100, 400), 72, 3, 100


def make_spirals(n):
    """Returns points as [2 n, 2], and the spiral of each as [2 n, 1]."""
    radius = torch.linspace(0.1, 1, n)
    angle = radius * 9.5
    one = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    return torch.cat([one, -one]), torch.cat([torch.zeros(n, 1), torch.ones(n, 1)])


def shade(share):
    """A colour from blue, for 0, over white to orange, for 1."""
    ends = (0x62, 0xa0, 0xea) if share < 0.5 else (0xff, 0xbe, 0x6f)
    weight = round(12 * abs(2 * share - 1)) / 12     # few colours, so that neighbours share one
    return '#' + ''.join(f'{round(255 + weight * (end - 255)):02x}' for end in ends)


def draw(picture, left, network, points, spirals, text):
    line = torch.linspace(-1.15, 1.15, SIDE)
    plane = torch.stack([line.repeat(SIDE), line.repeat_interleave(SIDE)], dim=1)
    with torch.no_grad():
        shares = network(plane).sigmoid().view(SIDE, SIDE).tolist()
    for i, row in enumerate(shares):
        start = 0
        for colour, cells in itertools.groupby(row, shade):
            n = len(list(cells))
            # a little larger than its place, so that no gaps are seen
            picture.rect(left + start * CELL, 20 + i * CELL, n * CELL + 0.3, CELL + 0.3, colour)
            start += n
    for (x, y), (spiral,) in zip(points, spirals):
        place = [left + (x + 1.15) / 2.3 * SIDE * CELL, 20 + (y + 1.15) / 2.3 * SIDE * CELL]
        picture.dot(*place, 2, '#1a5fb4' if spiral == 0 else '#c64600')
    picture.text(left + SIDE * CELL / 2, 256, text, anchor='middle')


def main():
    torch.manual_seed(1)
    x, y = make_spirals(500)
    network = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    picture = svg.Picture(720, 270, 'A network learns to tell two spirals apart')
    points, spirals = make_spirals(POINTS)
    for step in range(1, STEPS[-1] + 1):
        loss = nn.functional.binary_cross_entropy_with_logits(network(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step in STEPS:
            left = 18 + STEPS.index(step) * 234
            draw(picture, left, network, points.tolist(), spirals.tolist(), f'{step} steps, loss {loss.item():.2f}')
    picture.save(sys.argv[1])


if __name__ == '__main__':
    main()
