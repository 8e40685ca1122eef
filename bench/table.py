#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Prints one table from the times of bench/run: the better round of each side, and their ratio."""

import sys


def read(path):
    times = {}
    with open(path, encoding='utf-8') as file:
        for line in file:
            name, seconds = line.rstrip('\n').split('\t')
            times[name] = min(float(seconds), times.get(name, float('inf')))
    return times


def form(seconds):
    if seconds < 1e-5:
        return f'{seconds * 1e9:.0f} ns'
    if seconds < 1e-2:
        return f'{seconds * 1e6:.0f} us'
    return f'{seconds * 1e3:.1f} ms'


def main():
    ours, peer = read(sys.argv[1]), read(sys.argv[2])
    print('| operation | GTorch | PyTorch | PyTorch / GTorch |')
    print('|---|---|---|---|')
    for name, seconds in ours.items():
        other = peer.get(name)
        ratio = f'{other / seconds:.2f}' if other else ''
        print(f'| {name} | {form(seconds)} | {form(other) if other else "not measured"} | {ratio} |')


if __name__ == '__main__':
    main()
