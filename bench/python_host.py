#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures what calls from Python cost the host, with a package that has PyTorch's names:

    meson devenv -C build -w . python3 bench/python_host.py gtorch
    python3 bench/python_host.py torch

Each line has the best mean of 15 rounds in microseconds; of the import, the least time of the processor in 15
processes, less that of Python alone. The rows need a GPU but for those that say cpu, and the import."""

import importlib
import resource
import subprocess
import sys
import time

ROUNDS, CALLS = 15, 2000
# What a new process computes until then, in the first rows.
PROGRAMS = {'import': 'import {0}', 'import, first sum cpu': 'import {0}; {0}.ones(3) + 1',
            'import, first layer cpu': 'import {0}; {0}.nn.Linear(2, 2)({0}.ones(2))'}


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


def started(program):
    """The processor's time of a new Python that runs it, in seconds."""
    found = []
    for _ in range(ROUNDS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, '-c', program], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


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
    alone = started('pass')
    for row, program in PROGRAMS.items():
        print(f'{name:7} {row:28} {(started(program.format(name)) - alone) * 1e6:8.0f} us', flush=True)
    torch = importlib.import_module(name)
    for row, function in rows(torch):
        print(f'{name:7} {row:28} {best(function, torch.cuda.synchronize):8.2f} us', flush=True)


if __name__ == '__main__':
    main()
