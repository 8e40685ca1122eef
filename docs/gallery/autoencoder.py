#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Draws digits, what an autoencoder makes of them, and digits that it invents.

Arguments: examples/models/vae.py, the digits, the picture.
"""

import importlib.util
import sys

import gtorch as torch

import svg

STEPS, BATCH, SHOWN, PIXEL, GAP = 2000, 128, 14, 5, 8


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
    step = 8 * PIXEL + GAP
    picture = svg.Picture(70 + SHOWN * step, 20 + len(rows) * step, 'Digits, and what an autoencoder makes of them')
    for i, (row, title) in enumerate(zip(rows, ('written', 'again', 'invented', '', ''))):
        picture.text(8, 14 + i * step + step / 2, title, svg.GREY, size=11)
        for j, image in enumerate(row.tolist()):
            for k, value in enumerate(image):
                grey = round(255 * (1 - value))
                if grey < 250:
                    left, top = 64 + j * step, 14 + i * step
                    picture.rect(left + k % 8 * PIXEL, top + k // 8 * PIXEL, PIXEL, PIXEL, '#' + f'{grey:02x}' * 3)
    picture.save(sys.argv[3])


if __name__ == '__main__':
    main()
