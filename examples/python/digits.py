#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Learns to read handwritten digits, saves and reloads the network, and draws the misread digits."""

import argparse
import gzip
import hashlib
import pathlib
import sys

import gtorch as torch
from gtorch import nn

DATA = pathlib.Path(__file__).resolve().parent.parent / 'data' / 'digits.csv.gz'
BATCH = 64


def load_digits(path):
    """Returns images as [1797, 1, 8, 8] from 0 to 1, labels as [1797]."""
    with gzip.open(path, 'rt', encoding='ascii') as file:
        rows = torch.tensor([[int(v) for v in line.split(',')] for line in file])
    return rows[:, :64].view(-1, 1, 8, 8) / 16, rows[:, 64].clone()


def make_model():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.25),
        nn.Linear(512, 10),
    )


def read_digits(model, images):
    """Returns the digits that the model reads, without recording gradients."""
    with torch.no_grad():
        return model(images).argmax(dim=1).tolist()


def train(model, images, labels, epochs):
    adam = torch.optim.Adam(model.parameters(), lr=2e-3)
    loss_of = nn.CrossEntropyLoss()
    losses = []
    in_place = sys.stdout.isatty()
    begin, end = ('\r', '') if in_place else ('', '\n')
    for epoch in range(epochs):
        total = 0.0
        for index in torch.randperm(len(labels)).split(BATCH):
            loss = loss_of(model(images[index]), labels[index])
            adam.zero_grad()
            loss.backward()
            adam.step()
            total += loss.item() * len(index)
        losses.append(total / len(labels))
        print(f'{begin}epoch {epoch + 1:2d} of {epochs}: loss {losses[-1]:.4f}', end=end, flush=True)
    if in_place:
        print()
    return losses


def draw(path, losses, images, labels, read):
    """Draws the digits that were misread, with their labels and what was read, and beside that picture one of the
    losses."""
    try:
        from gtorch import plot
    except ImportError as error:
        print(f'digits: draws no pictures: {error}')
        return
    misread = [i for i, label in enumerate(labels) if read[i] != label][:16]
    if misread:
        titles = [f'{labels[i]} read as {read[i]}' for i in misread]
        plot.images(1 - images[misread], 4, titles).save(path)
    figure = plot.lines([losses], ['training'])
    axes = figure.get_axes()
    axes.x_label, axes.y_label, axes.y_scale = 'epoch', 'loss', 'log'
    path = pathlib.Path(path)
    figure.save(path.with_stem(f'{path.stem}-losses'))


def main():
    parser = argparse.ArgumentParser(description='learn to read digits')
    parser.add_argument('--data', default=str(DATA), help='the digits, digits.csv.gz')
    parser.add_argument('--seed', type=int, default=1, help='where random numbers start')
    parser.add_argument('--epochs', type=int, default=20, help='how often all digits are seen')
    parser.add_argument('--output', default='digits.png', help='the picture to draw: .png, .svg or .pdf')
    parser.add_argument('--device', help='where to compute, on a GPU if there is one')
    args = parser.parse_args()

    device = torch.device(args.device) if args.device else torch.Device.get_default()
    torch.set_default_device(device)
    reason = torch.DeviceManager.get_default().dup_reason()
    print(f'digits: on {device}, {device.get_name()}' + (f'; no GPU: {reason}' if reason else ''), flush=True)
    torch.manual_seed(args.seed)
    images, labels = load_digits(args.data)
    model = make_model()
    held = torch.arange(len(labels)) % 5 == 0
    losses = train(model, images[~held], labels[~held], args.epochs)
    test_images, right = images[held], labels[held].tolist()
    model.eval()
    read = read_digits(model, test_images)

    # The parameters go through a file into a new model, which must read the same digits.
    file = pathlib.Path('digits.safetensors')
    torch.save(model.state_dict(), file)
    again = make_model()
    again.load_state_dict(torch.load(file))
    again.eval()
    if read_digits(again, test_images) != read:
        raise SystemExit('digits: the reloaded model reads otherwise')
    draw(args.output, losses, test_images, right, read)
    checksum = hashlib.sha256(file.read_bytes()).hexdigest()
    accuracy = 100 * sum(a == b for a, b in zip(read, right)) / len(right)
    print(f'digits: accuracy {accuracy:.2f} %, loss {losses[-1]:.6f}, weights {checksum[:16]}')


if __name__ == '__main__':
    main()
