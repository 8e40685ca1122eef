#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures what calls from Python cost the host, with a package that has PyTorch's names:

    meson devenv -C build -w . python3 bench/python_host.py gtorch
    python3 bench/python_host.py torch

Each line has the best mean of 15 rounds in microseconds. The rows need a GPU but for those that say cpu."""

import importlib
import sys
import time

ROUNDS, CALLS = 15, 2000


def rows(torch):
    a, b = torch.ones(4, 4, device='cuda'), torch.ones(4, 4, device='cuda')
    stream, event = torch.cuda.Stream(), torch.cuda.Event()
    net, x = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(20)]), torch.ones(1, 4)

    def begin():
        with torch.cuda.stream(stream):
            pass

    def infer():
        with torch.no_grad():
            net(x)

    yield 'a + b', lambda: a + b
    yield 'view', lambda: a.view(16)
    yield 'event.record', event.record
    yield 'empty', lambda: torch.empty(4, 4, device='cuda')
    yield 'zeros', lambda: torch.zeros(4, 4, device='cuda')
    yield 'empty cpu', lambda: torch.empty(4, 4)
    yield 'zeros cpu', lambda: torch.zeros(4, 4)
    yield 'tensor cpu', lambda: torch.tensor([1.0, 2.0, 3.0])
    yield 'with cuda.stream()', begin
    yield 'cuda.current_stream()', torch.cuda.current_stream
    yield 'Sequential of 20 layers cpu', infer


def best(function, synchronize):
    found = []
    for _ in range(ROUNDS):
        synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            function()
        found.append((time.perf_counter() - start) / CALLS)
    return min(found) * 1e6


def main():
    name = sys.argv[1] if len(sys.argv) > 1 else 'gtorch'
    torch = importlib.import_module(name)
    for row, function in rows(torch):
        print(f'{name:7} {row:28} {best(function, torch.cuda.synchronize):8.2f} us', flush=True)


if __name__ == '__main__':
    main()
