#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Draws digits, what an autoencoder makes of them, and digits that it invents.

Arguments: examples/models/vae.py, the digits, the picture.
"""

import importlib.util
import sys

import gtorch as torch
from gtorch import plot

STEPS, BATCH, SHOWN = 2000, 128, 14


def main():
    spec = importlib.util.spec_from_file_location('vae', sys.argv[1])
    vae = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(vae)
    torch.manual_seed(1)
    images = vae.load_digits(sys.argv[2])
    model = vae.VAE()
    adam = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(STEPS):
        loss = model(images[torch.randint(0, len(images), (BATCH,))], torch.randn(BATCH, vae.CODE))
        adam.zero_grad()
        loss.backward()
        adam.step()
    with torch.no_grad():
        shown = images[:SHOWN]
        rows = [shown, model.decoder(model.encode(shown)[0]).sigmoid()]
        rows += [model.decoder(torch.randn(SHOWN, vae.CODE)).sigmoid() for _ in range(3)]
    figure = plot.images(1 - torch.cat(rows).view(-1, 8, 8), SHOWN)
    figure.set_size(720, 265)
    for row, text in enumerate(('written', 'again', 'invented')):
        figure.get_axes(row, 0).y_label = text
    figure.save(sys.argv[3])


if __name__ == '__main__':
    main()
