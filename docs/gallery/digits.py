#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Learns to read digits, and draws the learning curve and what was read.

Arguments: the data, the picture of the curve, the picture of the digits.
"""

import gzip
import math
import sys

import gtorch as torch
from gtorch import nn, plot

EPOCHS, BATCH, COLUMNS = 15, 64, 12


def load(path):
    with gzip.open(path, 'rt', encoding='ascii') as file:
        rows = torch.tensor([[int(number) for number in line.split(',')] for line in file])
    images, labels = rows[:, :64].view(-1, 1, 8, 8) / 16, rows[:, 64]
    held = torch.arange(len(rows)) % 5 == 0
    return images[~held], labels[~held], images[held], labels[held]


def read(network, images):
    network.eval()
    with torch.no_grad():
        found = network(images).argmax(dim=1)
    network.train()
    return found


def train(network, images, labels, test_images, test_labels):
    """Returns the loss and the share of digits that are read right, for each epoch."""
    optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
    losses, shares = [], []
    for _ in range(EPOCHS):
        total = 0
        for batch in torch.randperm(len(images)).split(BATCH):
            loss = nn.functional.cross_entropy(network(images[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
        losses.append(total / len(images))
        shares.append(100 * (read(network, test_images) == test_labels).sum().item() / len(test_labels))
    return losses, shares


def draw_curve(path, losses, shares):
    figure = plot.Figure(width=720, height=280)
    epochs = range(1, EPOCHS + 1)
    curves = ((losses, 'loss', None), (shares, 'digits read right, %', '#26a269'))
    for column, (values, name, color) in enumerate(curves):
        axes = figure.get_axes(0, column)
        axes.add_line(epochs, values).color = color
        axes.x_label, axes.y_label = 'epoch', name
    figure.get_axes(0, 0).set_y_limits(0, math.nan)
    figure.get_axes(0, 1).set_y_limits(0, 100)
    figure.save(path)


def draw_digits(path, images, labels, found):
    """Draws two rows of digits, then all that were misread."""
    misread = [i for i, (a, b) in enumerate(zip(labels, found)) if a != b]
    chosen = [*range(2 * COLUMNS), *misread[:COLUMNS]]
    titles = [f'{b}' if a == b else f'{b}, not {a}' for a, b in ((labels[i], found[i]) for i in chosen)]
    figure = plot.images(1 - images[chosen], COLUMNS, titles)
    figure.set_size(760, 270)
    figure.save(path)


def main():
    data, curve, digits = sys.argv[1:]
    torch.manual_seed(1)
    images, labels, test_images, test_labels = load(data)
    network = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(256, 10),
    )
    losses, shares = train(network, images, labels, test_images, test_labels)
    draw_curve(curve, losses, shares)
    draw_digits(digits, test_images, test_labels.tolist(), read(network, test_images).tolist())


if __name__ == '__main__':
    main()
