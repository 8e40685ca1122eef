#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Key averages of the same model by both profilers, in one table.

    averages.py --ours 'PYTHON' --peer 'PYTHON-WITH-TORCH' [--device cuda] [--small] [--models resnet18,gpt2]

Run it in a shell of meson devenv. Each side trains some steps before it records STEPS of them, in a process of its own.
A row is an operation, under GTorch's name or PyTorch's without “aten::”: how often it was called, and its time itself
(without what it calls) on the host and on the device, for each step. Operations that one side alone has are rows of
that side; the last row has the sums. A second table has the kernels.
"""

import argparse
import json
import shlex
import subprocess
import sys

from sides import MODELS, load_example, open_package

WARMUP, STEPS, ROWS, WIDTH = 10, 5, 20, 100


def record(args):
    """Prints the rows of this side: name, calls, µs of the host, µs of the device."""
    torch = open_package(args.side)
    if args.side == 'gtorch':
        from gtorch.profiler import ProfilerActivity, profile
    else:
        from torch.profiler import ProfilerActivity, profile
    kind = MODELS[args.model]
    side = kind(torch, load_example(kind.file), args.small)
    torch.manual_seed(1)
    device = torch.device(args.device)
    step = side.start(side.make_model().to(device), device)
    batches = side.draw_batches(WARMUP + STEPS)
    batches = {name: part.to(args.device) for name, part in batches.items()}

    def run(first, last):
        for i in range(first, last):
            step({name: part[i] for name, part in batches.items()})
        if args.device != 'cpu':
            torch.cuda.synchronize()

    run(0, WARMUP)
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if args.device != 'cpu' else [])
    with profile(activities=activities) as profiler:
        run(WARMUP, WARMUP + STEPS)
    rows = {True: [], False: []}
    for row in profiler.key_averages():
        is_host = args.device == 'cpu' or str(row.device_type).endswith('CPU')
        if not is_host and getattr(row, 'is_user_annotation', False):
            continue  # PyTorch's ranges, which are in the time of kernels as well
        rows[is_host].append((row.key, row.count, row.self_cpu_time_total, row.self_device_time_total))
    print('ROWS ' + json.dumps([rows[True], rows[False]]), flush=True)


def ask(args, side, model):
    command = [*shlex.split(args.ours if side == 'gtorch' else args.peer), __file__, '--side', side, '--model', model,
               '--device', args.device, *(['--small'] if args.small else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        if line.startswith('ROWS '):
            return [{name.removeprefix('aten::'): numbers for name, *numbers in rows} for rows in json.loads(line[5:])]
    raise SystemExit(f'{side} {model}: {done.stdout[-1000:]}{done.stderr[-2000:]}')


def cells(numbers):
    if numbers is None:
        return ' | | '
    count, host, device = (number / STEPS for number in numbers)
    return f'{count:g} | {host:.0f} | {device:.0f}'


def total(rows):
    return [sum(numbers[i] for numbers in rows.values()) for i in range(3)]


def show(title, ours, peer):
    print(f'\n{title}, calls and µs of a step\n\n| name | GTorch | host | device | PyTorch | host | device |\n'
          '|---|---|---|---|---|---|---|')
    both = sorted({*ours, *peer}, key=lambda name: -max(side[name][2] or side[name][1]
                                                         for side in (ours, peer) if name in side))
    for name in both[:ROWS]:
        print(f'| {name[:WIDTH]} | {cells(ours.get(name))} | {cells(peer.get(name))} |')
    print(f'| all {len(ours)} and {len(peer)} rows | {cells(total(ours))} | {cells(total(peer))} |', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--ours', default=sys.executable)
    parser.add_argument('--peer', default='')
    parser.add_argument('--device', default='cuda')
    parser.add_argument('--small', action='store_true')
    parser.add_argument('--models', default='resnet18,gpt2')
    parser.add_argument('--side')
    parser.add_argument('--model')
    args = parser.parse_args()
    if args.side:
        record(args)
        return
    for model in args.models.split(','):
        ours, peer = ask(args, 'gtorch', model), ask(args, 'torch', model) if args.peer else [{}, {}]
        show(f'{model}: operations', ours[0], peer[0])
        show(f'{model}: kernels and copies', ours[1], peer[1])


if __name__ == '__main__':
    main()
