#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Learns to separate two spirals, and draws what the network says of each place after some and after all steps.

Argument: the picture.
"""

import sys

import gtorch as torch
from gtorch import nn, plot

STEPS, SIDE, POINTS = (20, 100, 400), 144, 100


def make_spirals(n):
    """Returns points as [2 n, 2], and the spiral of each as [2 n, 1]."""
    radius = torch.linspace(0.1, 1, n)
    angle = radius * 9.5
    one = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    return torch.cat([one, -one]), torch.cat([torch.zeros(n, 1), torch.ones(n, 1)])


def draw(axes, network, points, spirals, text):
    line = torch.linspace(-1.15, 1.15, SIDE)
    plane = torch.stack([line.repeat(SIDE), -line.repeat_interleave(SIDE)], dim=1)
    with torch.no_grad():
        answers = axes.add_image(network(plane).sigmoid().view(SIDE, SIDE))
    answers.colormap = 'cool-warm'
    answers.set_range(-0.5, 1.5)  # pale, so that the points are seen
    answers.set_extent(-1.15, 1.15, -1.15, 1.15)
    for spiral, color in (0, '#1a5fb4'), (1, '#c01c28'):
        x, y = points[spirals[:, 0] == spiral].unbind(1)
        dots = axes.add_line(x, y)
        dots.style, dots.color, dots.width = 'points', color, 1
    axes.title, axes.equal_units, axes.show_ticks = text, True, False


def main():
    torch.manual_seed(1)
    x, y = make_spirals(500)
    network = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    figure = plot.Figure(width=720, height=270)
    points, spirals = make_spirals(POINTS)
    for step in range(1, STEPS[-1] + 1):
        loss = nn.functional.binary_cross_entropy_with_logits(network(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step in STEPS:
            axes = figure.get_axes(0, STEPS.index(step))
            draw(axes, network, points, spirals, f'{step} steps, loss {loss.item():.2f}')
    figure.save(sys.argv[1])


if __name__ == '__main__':
    main()
