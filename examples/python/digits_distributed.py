#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Learns to read handwritten digits with several processes, each of which sees a part of every batch.

gtorch-run -n 4 --device cpu digits_distributed.py
mpirun -n 4 python3 digits_distributed.py
"""

import argparse
import copy
import gzip
import hashlib
import pathlib

import gtorch as torch
import gtorch.distributed as dist
from gtorch import nn
from gtorch.nn.parallel import DistributedDataParallel
from gtorch.utils.data import DataLoader, DistributedSampler, TensorDataset

DATA = pathlib.Path(__file__).resolve().parent.parent / 'data' / 'digits.csv.gz'
BATCH = 64  # of all processes


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
        nn.Linear(512, 10),
    )


def compare_gradients(model, images, labels):
    """The greatest difference between the gradients of all processes, each with a part of a batch, and those of
    one process with all of it, relative to the greatest gradient."""
    rank, size = dist.get_rank(), dist.get_world_size()
    part = len(labels) // size
    mine = slice(rank * part, (rank + 1) * part)
    alone = copy.deepcopy(model)
    shared = DistributedDataParallel(copy.deepcopy(model))
    loss_of = nn.CrossEntropyLoss()
    loss_of(shared(images[mine]), labels[mine]).backward()
    loss_of(alone(images[: part * size]), labels[: part * size]).backward()
    pairs = [(a.grad, b.grad) for a, b in zip(shared.module.parameters(), alone.parameters())]
    return max(((a - b).abs().max() / b.abs().max()).item() for a, b in pairs)


def train(model, loader, sampler, epochs):
    adam = torch.optim.Adam(model.parameters(), lr=2e-3)
    loss_of = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        total = torch.zeros(2)
        for images, labels in loader:
            loss = loss_of(model(images), labels)
            adam.zero_grad()
            loss.backward()
            adam.step()
            total += torch.tensor([loss.item() * len(labels), len(labels)])
        dist.all_reduce(total)
        if dist.get_rank() == 0:
            print(f'epoch {epoch + 1:2d} of {epochs}: loss {(total[0] / total[1]).item():.4f}', flush=True)


def checksum_of(model):
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().numpy().tobytes())
    return digest.hexdigest()[:16]


def main():
    parser = argparse.ArgumentParser(description='learn to read digits with several processes')
    parser.add_argument('--data', default=str(DATA), help='the digits, digits.csv.gz')
    parser.add_argument('--seed', type=int, default=1, help='where random numbers start')
    parser.add_argument('--epochs', type=int, default=10, help='how often all digits are seen')
    args = parser.parse_args()

    dist.init_process_group()
    size = dist.get_world_size()
    torch.manual_seed(args.seed)
    images, labels = load_digits(args.data)
    held = torch.arange(len(labels)) % 5 == 0
    model = make_model()
    difference = compare_gradients(model, images[:BATCH], labels[:BATCH])

    digits = TensorDataset(images[~held], labels[~held])
    sampler = DistributedSampler(digits, seed=args.seed)
    loader = DataLoader(digits, batch_size=BATCH // size, sampler=sampler)
    shared = DistributedDataParallel(model)
    train(shared, loader, sampler, args.epochs)

    with torch.no_grad():
        right = (model(images[held]).argmax(dim=1) == labels[held]).float().mean().item()
    checksums = [None] * size
    dist.all_gather_object(checksums, checksum_of(model))
    if dist.get_rank() == 0:
        print(f'digits: {size} processes, accuracy {100 * right:.2f} %, gradients differ by {difference:.1e}, '
              f'weights {", ".join(sorted(set(checksums)))}')
    dist.destroy_process_group()


if __name__ == '__main__':
    main()
