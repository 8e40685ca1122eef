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
import gi

gi.require_version('GTorch', '1')
from gi.repository import Gio, GTorch  # noqa: E402

DATA = pathlib.Path(__file__).resolve().parent.parent / 'data' / 'digits.csv.gz'
N, BATCH = 1797, 64


def load_digits(path):
    """Returns images as [1797, 1, 8, 8] from 0 to 1, labels as [1797]."""
    with gzip.open(path, 'rt', encoding='ascii') as file:
        rows = [[int(v) for v in line.split(',')] for line in file]
    pixels = [v / 16 for row in rows for v in row[:64]]
    images = GTorch.Tensor.new_from_floats(pixels, [N, 1, 8, 8], GTorch.DType.FLOAT32, None)
    return images, GTorch.Tensor.new_from_ints([row[64] for row in rows], [N], GTorch.DType.INT64, None)


def make_model():
    return GTorch.Sequential.new_from_modules([
        GTorch.Conv2d(1, 16, 3, padding=1),
        GTorch.ReLU(),
        GTorch.Conv2d(16, 32, 3, padding=1),
        GTorch.ReLU(),
        GTorch.MaxPool2d(2),
        GTorch.Flatten(),
        GTorch.Dropout(0.25),
        GTorch.Linear(512, 10),
    ])


def read_digits(model, images):
    """Returns the digits that the model reads, without recording gradients."""
    with GTorch.no_grad():
        return list(model.forward(images).argmax([1], False).to_ints())


def train(model, images, labels, epochs):
    adam = GTorch.Adam.new(model.get_parameters(True), 2e-3)
    n, losses = labels.get_numel(), []
    in_place = sys.stdout.isatty()
    begin, end = ('\r', '') if in_place else ('', '\n')
    for epoch in range(epochs):
        order = GTorch.randperm(n, GTorch.DType.INT64, None, None)
        total = 0.0
        for start in range(0, n, BATCH):
            index = order.slice(0, start, min(start + BATCH, n), 1)
            scores = model.forward(images.index_select(0, index))
            loss = scores.cross_entropy(labels.index_select(0, index), None, GTorch.Reduction.MEAN, -100, 0.0)
            adam.zero_grad(True)
            loss.backward(None, False, False)
            adam.step()
            total += loss.item_double() * min(BATCH, n - start)
        losses.append(total / n)
        print(f'{begin}epoch {epoch + 1:2d} of {epochs}: loss {losses[-1]:.4f}', end=end, flush=True)
    if in_place:
        print()
    return losses


def draw(path, losses, images, labels, read):
    """Draws the loss curve on the left, misread digits on the right: the image, its label and the digit
    that was read."""
    surface = cairo.ImageSurface(cairo.FORMAT_RGB24, 640, 320)
    cr = cairo.Context(surface)
    pixels = list(images.to_doubles())
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

    named = args.device and GTorch.Device.new_from_string(args.device)
    device = named or GTorch.Device.get_default()
    GTorch.set_default_device(device)
    reason = GTorch.DeviceManager.get_default().dup_reason()
    print(f'digits: on {device}, {device.get_name()}' + (f'; no GPU: {reason}' if reason else ''), flush=True)
    GTorch.manual_seed(args.seed)
    images, labels = load_digits(args.data)
    model = make_model()
    held = [i for i in range(N) if i % 5 == 0]
    rest = [i for i in range(N) if i % 5 != 0]
    held_index = GTorch.Tensor.new_from_ints(held, [len(held)], GTorch.DType.INT64, None)
    rest_index = GTorch.Tensor.new_from_ints(rest, [len(rest)], GTorch.DType.INT64, None)
    losses = train(model, images.index_select(0, rest_index), labels.index_select(0, rest_index), args.epochs)
    test_images = images.index_select(0, held_index)
    right = list(labels.index_select(0, held_index).to_ints())
    model.eval()
    read = read_digits(model, test_images)

    # The parameters go through a file into a new model, which must read the same digits.
    file = Gio.File.new_for_path('digits.safetensors')
    GTorch.safetensors_save_file(model.state_dict(), None, file, None, None)
    loaded = GTorch.safetensors_load_file(file, False, None, None, None)
    again = make_model()
    again.load_state_dict(loaded[0] if isinstance(loaded, tuple) else loaded, True)
    again.eval()
    if read_digits(again, test_images) != read:
        raise SystemExit('digits: the reloaded model reads otherwise')
    draw(args.output, losses, test_images, right, read)
    checksum = hashlib.sha256(pathlib.Path('digits.safetensors').read_bytes()).hexdigest()
    accuracy = 100 * sum(a == b for a, b in zip(read, right)) / len(right)
    print(f'digits: accuracy {accuracy:.2f} %, loss {losses[-1]:.6f}, weights {checksum[:16]}')


if __name__ == '__main__':
    main()
