#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Measures training steps of the models of examples/models beside PyTorch: time, and memory at the peak.

    steps.py --peer 'python-with-torch' [--device cuda] [--small] [--only PREFIX,…] [--profile FOLDER] [--budget S]

Run it in a shell of meson devenv. Each row runs in a process of its own, one after the other, so that no
row has memory or caches of another. A time is the least of the medians of three rounds of steps, each of
which ends with a wait for the device. Memory is the peak of tensors (max_memory_allocated() on GPUs, and
what the process takes on the CPU). On a GPU, --profile adds a table of the kernels of one step, by Nsight
Compute's ncu. A row or a profile is given up after --limit seconds, and what would begin after --budget
seconds is left out: torch.compile() and the profiles of PyTorch come last.

Rows: resnet50 is ResNet-50 in mixed precision (float16 with a scaler), 128 images of 224 x 224, channels
last, SGD with momentum; gpt2 is GPT-2 small in bfloat16, 16 x 1024 tokens, AdamW. eager calls every
operation, graph replays one graph of a step, compiled is torch.compile().
"""

import argparse
import collections
import csv
import ctypes
import io
import json
import os
import pathlib
import shlex
import shutil
import statistics
import subprocess
import sys
import time

from sides import load_example, open_package

ROWS = {  # model: ways to run it, for each side
    'resnet50': {'gtorch': ['eager', 'graph', 'eager-first', 'graph-first'], 'torch': ['eager', 'graph', 'compiled']},
    'gpt2': {'gtorch': ['eager', 'graph'], 'torch': ['eager', 'graph', 'compiled']},
}
LARGE = {'resnet50': (128, 224, 64, 1000), 'gpt2': (16, 'small')}
SMALL = {'resnet50': (4, 32, 8, 10), 'gpt2': (2, 'tiny')}


# --- one row, in a process of its own ---


def start_resnet(torch, side, way, device, sizes):
    """Returns a function that trains on a batch, which is on the device."""
    example = load_example('resnet')
    batch, size, width, classes = sizes
    # “first” has the channels first, as PyTorch's default
    last = not way.endswith('-first')
    model = example.ResNet(50, classes, width).to(device)
    images = torch.randn(batch, 3, size, size, device=device)
    labels = torch.randint(0, classes, (batch,), device=device)
    memory_format = torch.channels_last if last else torch.contiguous_format
    images = images.to(memory_format=memory_format)
    graph = way.startswith('graph')
    training = example.Training(model, batch, size, device, 0.01, torch.float16, graph, memory_format)
    torch.backends.cudnn.benchmark = True
    if side == 'torch':
        if device.type == 'cuda':
            options = {'lr': 0.01, 'momentum': 0.9, 'weight_decay': 1e-4}
            training.optimizer = torch.optim.SGD(model.parameters(), **options, fused=True)
        if way == 'compiled':
            training.model = torch.compile(model)
    return lambda: training.step(images, labels)


def start_gpt2(torch, side, way, device, sizes):
    example = load_example('gpt2')
    batch, name = sizes
    model = example.GPT2(*example.SIZES[name]).to(device)
    tokens = torch.randint(0, example.SIZES[name][4], (2, batch, model.context), device=device)
    training = example.Training(model, batch, model.context, device, 6e-4, torch.bfloat16, way == 'graph')
    if side == 'torch' and device.type == 'cuda':
        groups = [{k: g[k] for k in ('params', 'weight_decay')} for g in training.optimizer.param_groups]
        options = {'lr': 6e-4, 'betas': (0.9, 0.95), 'capturable': way == 'graph'}
        training.optimizer = torch.optim.AdamW(groups, **options, fused=True)
    if side == 'torch' and way == 'compiled':
        training.model = torch.compile(model)
    return lambda: training.step(tokens)


def measure(args):
    """Prints the seconds of a step and the bytes at the peak as JSON."""
    torch = open_package(args.side)
    device = torch.device(args.device)
    is_gpu = device.type == 'cuda'
    torch.manual_seed(1)
    start = {'resnet50': start_resnet, 'gpt2': start_gpt2}[args.model]
    step = start(torch, args.side, args.way, device, (SMALL if args.small else LARGE)[args.model])

    def wait():
        if is_gpu:
            torch.cuda.synchronize()

    n_warm, n_steps = (6, 3) if args.small else (8, 20)
    for _ in range(n_warm):
        loss = step()
    wait()
    if args.profiled:
        driver = ctypes.CDLL('libcuda.so.1')
        driver.cuProfilerStart()
        step()
        wait()
        driver.cuProfilerStop()
        return
    rounds = []
    for _ in range(3):
        begin = time.perf_counter()
        for _ in range(n_steps):
            loss = step()
        wait()
        rounds.append((time.perf_counter() - begin) / n_steps)
    calls = []  # how long the host takes for a step that it does not wait for
    for _ in range(3):
        begin = time.perf_counter()
        loss = step()
        calls.append(time.perf_counter() - begin)
        wait()
    if is_gpu:
        peak = torch.cuda.max_memory_allocated()
    else:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({'seconds': min(rounds), 'host': statistics.median(calls), 'peak': peak, 'loss': loss.item()}))


# --- all rows ---


class Budget:
    """How long all rows together, and one of them, may take."""

    def __init__(self, seconds, limit):
        self.end, self.limit = time.monotonic() + seconds, limit

    def left(self):
        return min(self.limit, self.end - time.monotonic())


def environment_of(side):
    hidden = ('PYTHONPATH', 'LD_LIBRARY_PATH') if side == 'torch' else ()
    return {name: value for name, value in os.environ.items() if name not in hidden}


def command_of(args, side, model, way):
    command = [*shlex.split(args.ours if side == 'gtorch' else args.peer), str(pathlib.Path(__file__).resolve())]
    options = [f'--device={args.device}', *(['--small'] if args.small else [])]
    return [*command, *options, '--row', side, model, way]


def run_row(args, side, model, way, seconds):
    """Returns what a row has printed, or why there is nothing."""
    if seconds < 1:
        return 'left out: no time'
    try:
        done = subprocess.run(command_of(args, side, model, way), env=environment_of(side), timeout=seconds,
                              capture_output=True, text=True, check=False)
    except subprocess.TimeoutExpired:
        return f'no result after {seconds:.0f} s'
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    return (done.stderr.strip().splitlines() or [f'exit status {done.returncode}'])[-1][:150]


def short(name):
    """Returns the name of a kernel without its arguments, and at most 70 letters of it."""
    name = name.removeprefix('void ')
    return name.split('(')[0][:70]


def find_ncu():
    places = ['/usr/local/cuda/bin/ncu', *map(str, pathlib.Path('/opt/nvidia/nsight-compute').glob('*/ncu'))]
    return shutil.which('ncu') or next((place for place in places if os.access(place, os.X_OK)), None)


def profile(args, side, model, seconds):
    """Writes and prints the kernels of one eager step, with their times and counts."""
    ncu = find_ncu()
    if ncu is None or seconds < 1:
        print(f'\nno profile of {model} with {side}: there is no {"ncu" if ncu is None else "time"}')
        return
    command = [ncu, '--profile-from-start', 'off', '--clock-control', 'none', '--cache-control', 'none', '--csv',
               '--metrics', 'gpu__time_duration.sum', '--target-processes', 'all',
               *command_of(args, side, model, 'eager'), '--profiled']
    try:
        done = subprocess.run(command, env=environment_of(side), timeout=seconds, capture_output=True, text=True,
                              check=False)
    except subprocess.TimeoutExpired:
        print(f'\nno profile of {model} with {side} after {seconds:.0f} s')
        return
    (args.profile / f'{model}-{side}.csv').write_text(done.stdout)
    rows = done.stdout[done.stdout.find('"ID"'):] if '"ID"' in done.stdout else ''
    total = collections.Counter()
    count = collections.Counter()
    scale = {'ns': 1e-6, 'us': 1e-3, 'ms': 1, 's': 1e3}
    for row in csv.DictReader(io.StringIO(rows)):
        if row.get('Metric Name') == 'gpu__time_duration.sum':
            unit = row['Metric Unit'].removesuffix('econd')  # nsecond or ns
            total[short(row['Kernel Name'])] += float(row['Metric Value'].replace(',', '')) * scale[unit]
            count[short(row['Kernel Name'])] += 1
    if not total:
        print(f'\nno profile of {model} with {side}: {(done.stdout + done.stderr).strip()[-300:]}')
        return
    print(f'\n{model} with {side}: {sum(total.values()):.2f} ms in {sum(count.values())} kernels\n')
    print('| kernel | ms | count |\n|---|---|---|')
    for name, milliseconds in total.most_common(25):
        print(f'| {name} | {milliseconds:.3f} | {count[name]} |')
    sys.stdout.flush()


def run_rows(args, budget, ways):
    """Prints the rows of these ways to run a model; returns how many failed."""
    n_failed = 0
    for model, sides in ROWS.items():
        for side, way in ((side, way) for side in sides for way in sides[side] if way in ways):
            name = f'{model}.{side}.{way}'
            if not name.startswith(args.wanted) or (side == 'torch' and not args.peer):
                continue
            if side == 'torch' and way == 'graph' and args.device == 'cpu':
                continue  # PyTorch's graphs are for GPUs
            got = run_row(args, side, model, way, budget.left())
            if isinstance(got, str):
                n_failed += 1
                print(f'| {name} | {got} | | | |', flush=True)
            else:
                print(f'| {name} | {got["seconds"] * 1e3:.2f} ms | {got["host"] * 1e3:.2f} ms | '
                      f'{got["peak"] / 2**30:.2f} GiB | {got["loss"]:.4f} |', flush=True)
    return n_failed


def main():
    parser = argparse.ArgumentParser(description='measure training steps beside PyTorch')
    parser.add_argument('--peer', help='the command of a Python that has PyTorch; without it only GTorch runs')
    parser.add_argument('--ours', default=sys.executable, help='the command of a Python that has GTorch')
    parser.add_argument('--device', default='cuda')
    parser.add_argument('--small', action='store_true', help='small models, for a test')
    parser.add_argument('--only', default='', help='names of rows, or their beginnings: gpt2,resnet50.torch')
    parser.add_argument('--profile', type=pathlib.Path, metavar='FOLDER', help='add tables of kernels')
    parser.add_argument('--limit', type=int, default=120, help='seconds that a row may take')
    parser.add_argument('--budget', type=float, default=3600, help='seconds that all rows may take')
    parser.add_argument('--row', nargs=3, metavar=('SIDE', 'MODEL', 'WAY'), help=argparse.SUPPRESS)
    parser.add_argument('--profiled', action='store_true', help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.row:
        args.side, args.model, args.way = args.row
        measure(args)
        return 0
    args.wanted = tuple(args.only.split(','))
    budget = Budget(args.budget, args.limit)
    head = '| row | step | host | peak | loss |\n|---|---|---|---|---|'
    print(head, flush=True)
    n_failed = run_rows(args, budget, ['eager', 'graph', 'eager-first', 'graph-first'])
    sides = ['gtorch', *(['torch'] if args.peer else [])]
    profiles = [(side, model) for side in sides for model in ROWS if f'{model}.{side}.eager'.startswith(args.wanted)]
    if args.profile:
        args.profile.mkdir(parents=True, exist_ok=True)
        for side, model in profiles:
            if side == 'gtorch':
                profile(args, side, model, budget.left())
    if args.peer and not args.small:
        print(f'\n{head}', flush=True)
        n_failed += run_rows(args, budget, ['compiled'])
    if args.profile:
        for side, model in profiles:
            if side == 'torch':
                profile(args, side, model, budget.left())
    return 1 if n_failed else 0


if __name__ == '__main__':
    sys.exit(main())
