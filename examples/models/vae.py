#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""A variational autoencoder, which learns to draw handwritten digits.

The encoder says for each image where its code may lie: a mean and a variance for each of eight numbers.
The decoder draws an image from a code. The loss is what the images cost under the decoder's probabilities,
and how far the codes are from a normal distribution: for this reason codes drawn from that give digits,
too. The picture has digits above what the decoder makes of their codes, and digits that nobody wrote.
"""

import argparse
import gzip
import pathlib

import gtorch as torch
from gtorch import nn
from gtorch.nn import functional as F

DATA = pathlib.Path(__file__).resolve().parent.parent / 'data' / 'digits.csv.gz'
CODE = 8


class VAE(nn.Module):
    def __init__(self, hidden=256):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, 2 * CODE))
        self.decoder = nn.Sequential(nn.Linear(CODE, hidden), nn.ReLU(), nn.Linear(hidden, 64))

    def encode(self, images):
        """Returns the means and the logarithms of the variances of codes."""
        mean, log_var = self.encoder(images * 2 - 1).chunk(2, dim=1)
        return mean, log_var

    def forward(self, images, noise):
        """Returns the loss of images [N, 64] from 0 to 1; noise is [N, CODE], drawn from a normal distribution."""
        mean, log_var = self.encode(images)
        scores = self.decoder(mean + noise * (log_var / 2).exp())
        cost = F.binary_cross_entropy_with_logits(scores, images, reduction='sum')
        distance = (mean.square() + log_var.exp() - log_var - 1).sum() / 2
        return (cost + distance) / len(images)


def load_digits(path):
    """Returns images [1797, 64] from 0 to 1, on the CPU."""
    with gzip.open(path, 'rt', encoding='ascii') as file:
        return torch.tensor([[int(v) for v in line.split(',')[:64]] for line in file], device='cpu') / 16


def draw(path, rows):
    """Draws rows of images, each [N, 64] from 0 to 1."""
    from gtorch import plot

    ink = 1 - torch.cat(rows).view(-1, 8, 8)
    plot.images(ink, n_columns=len(rows[0])).save(path)


def main():
    parser = argparse.ArgumentParser(description='learn to draw handwritten digits')
    parser.add_argument('--device', help='where to compute, on a GPU if there is one')
    parser.add_argument('--steps', type=int, default=3000, help='how many batches to train on')
    parser.add_argument('--seed', type=int, default=1, help='where random numbers start')
    parser.add_argument('--batch', type=int, default=128, help='images in a batch')
    parser.add_argument('--data', default=str(DATA), help='the digits, digits.csv.gz')
    parser.add_argument('--output', default='vae.png', help='the picture to draw')
    args = parser.parse_args()
    if args.steps < 1:
        parser.error(f'--steps is {args.steps}, and must be at least 1')

    device = torch.device(args.device) if args.device else torch.Device.get_default()
    torch.set_default_device(device)
    print(f'vae: on {device}, {device.get_name()}', flush=True)
    torch.manual_seed(args.seed)
    images = load_digits(args.data).to(device)
    model = VAE().to(device)
    adam = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(1, args.steps + 1):
        index = torch.randint(0, len(images), (args.batch,), device='cpu').to(device)
        noise = torch.randn(args.batch, CODE, device='cpu').to(device)
        loss = model(images[index], noise)
        adam.zero_grad()
        loss.backward()
        adam.step()
        if step % 200 == 0 or step == args.steps:
            print(f'step {step} of {args.steps}: loss {loss.item():.4f}', flush=True)

    with torch.no_grad():
        shown = images[:16]
        again = model.decoder(model.encode(shown)[0]).sigmoid()
        error = (again - shown).abs().mean().item()
        dreams = [model.decoder(torch.randn(16, CODE, device='cpu').to(device)).sigmoid() for _ in range(4)]
    draw(args.output, [shown, again, *dreams])
    print(f'vae: loss {loss.item():.6f}, error {error:.6f}')


if __name__ == '__main__':
    main()
