#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Learns to read handwritten digits, saves and reloads the network, and draws the misread digits."""

import argparse
import gzip
import hashlib
import pathlib
import sys

import cairo
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
    """Draws the loss curve on the left, misread digits on the right: the image, its label and the digit
    that was read."""
    surface = cairo.ImageSurface(cairo.FORMAT_RGB24, 640, 320)
    cr = cairo.Context(surface)
    pixels = images.flatten().tolist()
    cr.set_source_rgb(1, 1, 1)
    cr.paint()
    cr.set_source_rgb(0.1, 0.3, 0.7)
    for i, loss in enumerate(losses):
        cr.line_to(20 + 280 * i / max(len(losses) - 1, 1), 300 - 280 * loss / losses[0])
    cr.stroke()
    misread = [i for i, label in enumerate(labels) if read[i] != label]
    for place, i in enumerate(misread[:16]):
        left, top = 330 + place % 4 * 76, 10 + place // 4 * 76
        for j in range(64):
            grey = 1 - pixels[i * 64 + j]
            cr.set_source_rgb(grey, grey, grey)
            cr.rectangle(left + j % 8 * 7, top + j // 8 * 7, 7, 7)
            cr.fill()
        cr.set_source_rgb(0.7, 0.1, 0.1)
        cr.move_to(left, top + 68)
        cr.show_text(f'{labels[i]} read as {read[i]}')
    surface.write_to_png(path)


def main():
    parser = argparse.ArgumentParser(description='learn to read digits')
    parser.add_argument('--data', default=str(DATA), help='the digits, digits.csv.gz')
    parser.add_argument('--seed', type=int, default=1, help='where random numbers start')
    parser.add_argument('--epochs', type=int, default=20, help='how often all digits are seen')
    parser.add_argument('--output', default='digits.png', help='the picture to draw')
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
