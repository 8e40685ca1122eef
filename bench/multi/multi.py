#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Measures groups of GPUs beside PyTorch, with the same NCCL.

    multi.py --peer 'python-with-torch' [--n 2] [--small] [--budget SECONDS] [--only PREFIX,…] [--tests FOLDER]

Run it in a shell of meson devenv. Each row runs in processes of its own, one for each GPU. First come the
tests of tests/bindings/test_gpu_groups.py, then how long a killed rank takes to be reported, collectives of 4 bytes to
1 GiB (time, bus bandwidth as nccl-tests counts it, and what the host takes to enqueue one; “C” is the
program bench-groups), and steps of GPT-2 small in bfloat16, 16 x 1024 tokens for each GPU: alone, and with
DistributedDataParallel. NCCL_NVLS_ENABLE stays as it is.
"""

import argparse
import datetime
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / 'models'))
from sides import load_example, open_package  # noqa: E402

SIZES = [4, 2**10, 2**16, 2**20, 2**24, 2**28, 2**30]
ROWS = [('gtorch', 'kill', 15), ('c', 'collectives', 15), ('gtorch', 'collectives', 20), ('torch', 'collectives', 25),
        ('gtorch', 'gpt2-alone', 20), ('gtorch', 'gpt2-ddp', 20), ('torch', 'gpt2-ddp', 30),
        ('torch', 'gpt2-alone', 30), ('gtorch', 'gpt2-alone-graph', 20), ('gtorch', 'gpt2-ddp-graph', 20)]


# --- one rank ---


def begin(args):
    torch = open_package(args.side)
    import importlib

    dist = importlib.import_module('gtorch.distributed' if args.side == 'gtorch' else 'torch.distributed')
    gpu = args.rank % torch.cuda.device_count()
    torch.cuda.set_device(gpu)
    torch.zeros(1, device='cuda')
    start = time.perf_counter()
    timeout = datetime.timedelta(seconds=2 if args.task == 'kill' else 60)
    dist.init_process_group('nccl', init_method=f'file://{args.store}', rank=args.rank, world_size=args.n,
                            timeout=timeout, device_id=torch.device('cuda', gpu))
    return torch, dist, time.perf_counter() - start


def timed(torch, function, n):
    """Returns the least seconds of a call of three rounds, and the least that the host takes to enqueue one."""
    for _ in range(3):
        function()
    torch.cuda.synchronize()
    rounds, hosts = [], []
    for _ in range(3):
        start = time.perf_counter()
        for _ in range(n):
            function()
        hosts.append((time.perf_counter() - start) / n)
        torch.cuda.synchronize()
        rounds.append((time.perf_counter() - start) / n)
    return min(rounds), min(hosts)


def run_collectives(torch, dist, args):
    n = args.n
    largest = 2**22 if args.small else 2**30
    whole = torch.zeros(largest // 4, device='cuda')
    part = torch.zeros(largest // 4 // n, device='cuda')
    rows = [{'name': 'init_process_group', 'us': args.seconds * 1e6}]
    for size in SIZES:
        if size > largest:
            continue
        count = size // 4
        x, y = whole[:count], part[:max(count // n, 1)]
        times = 50 if size <= 2**20 else 10 if size <= 2**28 else 4
        calls = {'all_reduce': (lambda: dist.all_reduce(x), 2 * (n - 1) / n)}
        if size in (2**20, 2**28):
            calls['all_gather_into_tensor'] = (lambda: dist.all_gather_into_tensor(x, y), (n - 1) / n)
            calls['reduce_scatter_tensor'] = (lambda: dist.reduce_scatter_tensor(y, x), (n - 1) / n)
            calls['broadcast'] = (lambda: dist.broadcast(x, 0), 1)
        for name, (function, factor) in calls.items():
            seconds, host = timed(torch, function, times)
            rows.append({'name': name, 'bytes': size, 'us': seconds * 1e6, 'host': host * 1e6,
                         'bus': size * factor / seconds / 1e9})
    return rows


def run_gpt2(torch, dist, args):
    example = load_example('gpt2')
    batch, name = (2, 'tiny') if args.small else (16, 'small')
    torch.manual_seed(1)
    device = torch.device('cuda', torch.cuda.current_device())
    graph = args.task.endswith('-graph')
    model = example.GPT2(*example.SIZES[name]).to(device)
    context = model.context
    tokens = torch.randint(0, example.SIZES[name][4], (2, batch, context), device=device)
    if '-ddp' in args.task:
        model = torch.nn.parallel.DistributedDataParallel(model)
    training = example.Training(model, batch, context, device, 6e-4, torch.bfloat16, graph)
    if args.side == 'torch':
        groups = [{k: g[k] for k in ('params', 'weight_decay')} for g in training.optimizer.param_groups]
        training.optimizer = torch.optim.AdamW(groups, lr=6e-4, betas=(0.9, 0.95), fused=True)
    for _ in range(8):
        loss = training.step(tokens)
    torch.cuda.synchronize()
    dist.barrier()
    seconds, host = timed(torch, lambda: training.step(tokens), 10)
    loss = training.step(tokens)
    return [{'name': args.task, 'us': seconds * 1e6, 'host': host * 1e6, 'loss': float(loss),
             'peak': torch.cuda.max_memory_allocated() / 2**30}]


def run_kill(torch, dist, args):
    x = torch.ones(2**20, device='cuda')
    dist.all_reduce(x)
    torch.cuda.synchronize()
    dist.barrier()
    if args.rank == args.n - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    start = time.perf_counter()
    work = dist.all_reduce(x, async_op=True)
    try:
        work.wait(datetime.timedelta(seconds=20))
        text = 'no error'
    except Exception as error:
        text = str(error)
    seconds = time.perf_counter() - start
    torch.cuda.synchronize()
    return [{'name': 'kill', 'us': seconds * 1e6, 'text': text, 'synchronized': time.perf_counter() - start}]


def run_rank(args):
    torch, dist, args.seconds = begin(args)
    task = {'collectives': run_collectives, 'kill': run_kill}.get(args.task, run_gpt2)
    rows = task(torch, dist, args)
    if args.rank == 0:
        print('ROWS ' + json.dumps(rows), flush=True)
    if args.task == 'kill':
        os._exit(0)
    dist.barrier()
    dist.destroy_process_group()


# --- all rows ---


def environment_of(side, nccl):
    hidden = ('PYTHONPATH', 'LD_LIBRARY_PATH') if side == 'torch' else ()
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    if nccl and side != 'torch':
        former = env.get('GTORCH_CUDA_LIBRARY_PATH')
        env['GTORCH_CUDA_LIBRARY_PATH'] = nccl + (f':{former}' if former else '')
    return env


def run_row(args, side, task, seconds, nccl):
    """Starts the ranks; returns the rows of rank 0, or why there are none."""
    with tempfile.TemporaryDirectory() as folder:
        store, ranks = f'{folder}/store', []
        for rank in range(args.n):
            if side == 'c':
                command = [args.program, str(rank), str(args.n), store, *(['small'] if args.small else [])]
            else:
                command = [*shlex.split(args.ours if side == 'gtorch' else args.peer), str(HERE / 'multi.py'), '--rank',
                           str(rank), '--n', str(args.n), '--store', store, '--side', side, '--task', task,
                           *(['--small'] if args.small else [])]
            output = open(f'{folder}/{rank}', 'w+')
            ranks.append((subprocess.Popen(command, env=environment_of(side, nccl), stdout=output,
                                           stderr=subprocess.STDOUT), output))
        end = time.monotonic() + seconds
        try:
            for process, _ in ranks:
                process.wait(max(0.1, end - time.monotonic()))
            late = ''
        except subprocess.TimeoutExpired:
            late = f'no result after {seconds:.0f} s: '
        for process, _ in ranks:
            process.kill()
            process.wait()
        texts = []
        for _, output in ranks:
            output.seek(0)
            texts.append(output.read())
    found = [line[5:] for line in texts[0].splitlines() if line.startswith('ROWS ')]
    if found:
        return json.loads(found[-1])
    return late + ' / '.join('; '.join(text.strip().splitlines()[-3:]) for text in texts)[-600:]


def show(side, task, rows, seconds):
    if isinstance(rows, str):
        print(f'| {side} {task} | {rows} | | | |  <!-- {seconds:.0f} s -->', flush=True)
        return
    for row in rows:
        size = f' {row["bytes"]} B' if 'bytes' in row else ''
        more = row.get('text') or (f'{row["bus"]:.1f} GB/s' if 'bus' in row else f'{row.get("peak", 0):.2f} GiB')
        print(f'| {side} {row["name"]}{size} | {row["us"]:.1f} us | {row.get("host", 0):.1f} us | {more} | '
              f'{row.get("loss", row.get("synchronized", ""))} |', flush=True)


def run_tests(args, seconds):
    command = [*shlex.split(args.ours), str(ROOT / 'tests' / 'bindings' / 'test_gpu_groups.py')]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        print(done.stdout[-4000:] + done.stderr[-1000:], flush=True)
    except subprocess.TimeoutExpired as error:
        print(f'no result of the tests after {seconds:.0f} s: {str(error.stdout)[-2000:]}', flush=True)


def find_nccl(args):
    code = 'import os, nvidia.nccl as n; print(os.path.join(list(n.__path__)[0], "lib"))'
    if not args.peer:
        return None
    done = subprocess.run([*shlex.split(args.peer), '-c', code], capture_output=True, text=True,
                          env=environment_of('torch', None), check=False)
    return done.stdout.strip() or None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--ours', default=sys.executable)
    parser.add_argument('--peer', default='')
    parser.add_argument('--program', default=str(ROOT / 'build' / 'bench' / 'bench-groups'))
    parser.add_argument('--n', type=int, default=2)
    parser.add_argument('--small', action='store_true')
    parser.add_argument('--budget', type=float, default=115)
    parser.add_argument('--only', default='')
    parser.add_argument('--rank', type=int)
    parser.add_argument('--store')
    parser.add_argument('--side')
    parser.add_argument('--task')
    args = parser.parse_args()
    if args.rank is not None:
        run_rank(args)
        return
    begin_time = time.monotonic()
    wanted = tuple(args.only.split(','))
    nccl = find_nccl(args)
    print(f'NCCL_NVLS_ENABLE={os.environ.get("NCCL_NVLS_ENABLE", "")}, NCCL of {nccl or "the system"}', flush=True)
    if 'tests'.startswith(wanted):
        run_tests(args, 30)
        print(f'<!-- {time.monotonic() - begin_time:.0f} s -->\n', flush=True)
    print('| row | time | host | | |\n|---|---|---|---|---|', flush=True)
    for side, task, seconds in ROWS:
        left = args.budget - (time.monotonic() - begin_time)
        if not f'{side}.{task}'.startswith(wanted) or (side == 'torch' and not args.peer) or left < 5:
            continue
        start = time.monotonic()
        rows = run_row(args, side, task, min(seconds, left), nccl)
        show(side, task, rows, time.monotonic() - start)
    print(f'<!-- {time.monotonic() - begin_time:.0f} s in all -->', flush=True)


if __name__ == '__main__':
    main()
