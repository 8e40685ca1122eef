#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Measures groups of GPUs beside PyTorch, with the same NCCL.

    multi.py --peer 'python-with-torch' [--n 2 | --counts 1,2,4,8] [--strong] [--small] [--budget SECONDS]
             [--only PREFIX,…] [--debug LEVEL]

Run it in a shell of meson devenv. Each row runs in processes of its own, one for each GPU. First come the tests of
tests/bindings/test_gpu_groups.py, then faults: how long it takes until every other rank names one that was killed, was
stopped, or calls something else. Then collectives of 4 bytes to 1 GiB (time, bus bandwidth as nccl-tests counts it, and
what the host takes to enqueue one; “C” is the program bench-groups), copies from one GPU to another, broadcasts of a
module's state, and steps: GPT-2 small in bfloat16, 16 x 1024 tokens for each GPU, and ResNet-50 in float16, 128 images,
alone, with DistributedDataParallel, and fully sharded. With --strong the batch is that of one GPU, and is divided. The
last column is what the model of cost (cost.py) says, with the step of one GPU of the same run. --counts measures
several numbers of GPUs, one after the other. NCCL_NVLS_ENABLE stays as it is.
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
sys.path.insert(0, str(HERE))
import cost  # noqa: E402
from sides import load_example, open_package  # noqa: E402

SIZES = [4, 2**10, 2**16, 2**20, 2**24, 2**28, 2**30]
FAULTS = ('kill', 'stop', 'shape')
# (side, task, the most seconds it may take). Faults come first, then what the goals name; PyTorch's rows beside ours.
ROWS = [('gtorch', 'kill', 15), ('gtorch', 'stop', 15), ('gtorch', 'shape', 15), ('c', 'collectives', 15),
        ('gtorch', 'collectives', 20), ('torch', 'collectives', 25), ('gtorch', 'copies', 15), ('torch', 'copies', 20),
        ('gtorch', 'state', 15), ('torch', 'state', 20),
        ('gtorch', 'gpt2-alone', 20), ('gtorch', 'gpt2-ddp', 20), ('torch', 'gpt2-alone', 30),
        ('torch', 'gpt2-ddp', 30),
        ('gtorch', 'gpt2-fsdp', 25), ('torch', 'gpt2-fsdp', 30),
        ('gtorch', 'resnet50-alone', 30), ('gtorch', 'resnet50-ddp', 30), ('torch', 'resnet50-alone', 40),
        ('torch', 'resnet50-ddp', 40), ('gtorch', 'resnet50-fsdp', 30), ('torch', 'resnet50-fsdp', 40),
        ('gtorch', 'gpt2-alone-graph', 20), ('gtorch', 'gpt2-ddp-graph', 20)]


# --- one rank ---


def begin(args):
    torch = open_package(args.side)
    import importlib

    dist = importlib.import_module('gtorch.distributed' if args.side == 'gtorch' else 'torch.distributed')
    gpu = args.rank % torch.cuda.device_count()
    torch.cuda.set_device(gpu)
    torch.zeros(1, device='cuda')
    start = time.perf_counter()
    timeout = datetime.timedelta(seconds=2 if args.task in FAULTS else 60)
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


def run_copies(torch, dist, args):
    """From one GPU to the next, by rank 0; the other ranks wait."""
    rows = []
    if args.rank == 0 and torch.cuda.device_count() > 1:
        for size in (2**20,) if args.small else (2**20, 2**28, 2**30):
            x = torch.zeros(size // 4, device='cuda:0')
            y = torch.zeros(size // 4, device='cuda:1')

            def once(x=x, y=y):
                y.copy_(x, non_blocking=True)

            seconds, host = timed(torch, once, 20)
            torch.cuda.synchronize(1)
            rows.append({'name': 'peer copy', 'bytes': size, 'us': seconds * 1e6, 'host': host * 1e6,
                         'bus': size / seconds / 1e9})
    dist.barrier()
    return rows


def run_state(torch, dist, args):
    """The state of GPT-2 small, as it is sent when training begins."""
    example = load_example('gpt2')
    model = example.GPT2(*example.SIZES['tiny' if args.small else 'small']).cuda()
    tensors = [one.detach() for one in model.state_dict().values()]
    size = sum(one.numel() * one.element_size() for one in tensors)

    def send():
        if args.side == 'torch':
            dist._broadcast_coalesced(dist.group.WORLD, tensors, 250 * 2**20, 0)  # as DistributedDataParallel does
        else:
            dist.broadcast_coalesced(tensors, 0)

    seconds, host = timed(torch, send, 5)
    return [{'name': "broadcast of a module's state", 'bytes': size, 'us': seconds * 1e6, 'host': host * 1e6,
             'bus': size / seconds / 1e9}]


def shard(args, model):
    """fully_shard() of each block, and of what is left."""
    import importlib

    package = 'gtorch' if args.side == 'gtorch' else 'torch'
    fully_shard = importlib.import_module(f'{package}.distributed.fsdp').fully_shard
    for one in list(model.modules()):
        if type(one).__name__ in ('Block', 'Bottleneck'):
            fully_shard(one)
    return fully_shard(model)


def share(batch, args):
    """The batch of a rank: with --strong all ranks have together what one has otherwise."""
    return max(1, batch // args.n) if args.strong and '-alone' not in args.task else batch


def distributed(torch, args, model):
    if '-ddp' in args.task:
        return torch.nn.parallel.DistributedDataParallel(model)
    return shard(args, model) if '-fsdp' in args.task else model


def measure_steps(torch, dist, args, training, step):
    for _ in range(8):
        loss = step()
    torch.cuda.synchronize()
    dist.barrier()
    seconds, host = timed(torch, step, 10)
    loss = step()
    return [{'name': args.task, 'us': seconds * 1e6, 'host': host * 1e6, 'loss': float(loss),
             'peak': torch.cuda.max_memory_allocated() / 2**30}]


def run_gpt2(torch, dist, args):
    example = load_example('gpt2')
    batch, name = (2, 'tiny') if args.small else (16, 'small')
    batch = share(batch, args)
    torch.manual_seed(1)
    device = torch.device('cuda', torch.cuda.current_device())
    graph = args.task.endswith('-graph')
    model = example.GPT2(*example.SIZES[name]).to(device)
    context = model.context
    tokens = torch.randint(0, example.SIZES[name][4], (2, batch, context), device=device)
    training = example.Training(distributed(torch, args, model), batch, context, device, 6e-4, torch.bfloat16, graph)
    if args.side == 'torch':
        groups = [{k: g[k] for k in ('params', 'weight_decay')} for g in training.optimizer.param_groups]
        training.optimizer = torch.optim.AdamW(groups, lr=6e-4, betas=(0.9, 0.95), fused=True)
    return measure_steps(torch, dist, args, training, lambda: training.step(tokens))


def run_resnet(torch, dist, args):
    example = load_example('resnet')
    batch, size, width, classes = (4, 32, 8, 10) if args.small else (128, 224, 64, 1000)
    batch = share(batch, args)
    torch.manual_seed(1)
    device = torch.device('cuda', torch.cuda.current_device())
    torch.backends.cudnn.benchmark = True
    ours = args.side == 'gtorch'
    model = example.ResNet(50, classes, width).to(device, memory_format=torch.channels_last)
    images = torch.randn(batch, 3, size, size, device=device).to(memory_format=torch.channels_last)
    labels = torch.randint(0, classes, (batch,), device=device)
    model = distributed(torch, args, model)
    training = example.Training(model, batch, size, device, 0.01, torch.float16, memory_format=torch.channels_last)
    if not ours:
        training.optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4, fused=True)
    return measure_steps(torch, dist, args, training, lambda: training.step(images, labels))


def run_fault(torch, dist, args):
    """One rank is killed, is stopped, or calls something else; the others tell when they know, and what."""
    x = torch.ones(2**10 if args.small else 2**20, device='cuda')
    dist.all_reduce(x)
    torch.cuda.synchronize()
    dist.barrier()
    lost = args.n - 1
    if args.rank == lost and args.task != 'shape':
        os.kill(os.getpid(), signal.SIGKILL if args.task == 'kill' else signal.SIGSTOP)
    start = time.perf_counter()
    try:
        work = dist.all_reduce(x[:100] if args.task == 'shape' and args.rank == lost else x, async_op=True)
        work.wait(datetime.timedelta(seconds=20))
        text = 'no error'
    except Exception as error:
        text = str(error)
    seconds = time.perf_counter() - start
    torch.cuda.synchronize()
    return [{'name': args.task, 'rank': args.rank, 'us': seconds * 1e6, 'text': text,
             'synchronized': time.perf_counter() - start}]


def run_rank(args):
    torch, dist, args.seconds = begin(args)
    task = {'collectives': run_collectives, 'copies': run_copies, 'state': run_state,
            **dict.fromkeys(FAULTS, run_fault)}.get(args.task)
    if task is None:
        task = run_resnet if args.task.startswith('resnet50') else run_gpt2
    rows = task(torch, dist, args)
    if args.rank == 0 or args.task in FAULTS:
        print('ROWS ' + json.dumps(rows), flush=True)
    if args.task in FAULTS:
        os._exit(0)
    dist.barrier()
    dist.destroy_process_group()


# --- all rows ---


def environment_of(side, nccl, level=None):
    hidden = ('PYTHONPATH', 'LD_LIBRARY_PATH') if side == 'torch' else ()
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    if level:
        env['GTORCH_DISTRIBUTED_DEBUG'] = level
    if nccl and side != 'torch':
        former = env.get('GTORCH_CUDA_LIBRARY_PATH')
        env['GTORCH_CUDA_LIBRARY_PATH'] = nccl + (f':{former}' if former else '')
    return env


def run_row(args, side, task, seconds, nccl):
    """Starts the ranks; returns the rows of rank 0, or why there are none."""
    with tempfile.TemporaryDirectory() as folder:
        store, ranks = f'{folder}/store', []
        for rank in range(args.n):
            level = args.debug
            if side == 'c':
                command = [args.program, str(rank), str(args.n), store, *(['small'] if args.small else [])]
            else:
                command = [*shlex.split(args.ours if side == 'gtorch' else args.peer), str(HERE / 'multi.py'), '--rank',
                           str(rank), '--n', str(args.n), '--store', store, '--side', side, '--task', task,
                           *(['--small'] if args.small else []), *(['--strong'] if args.strong else [])]
            level = 'detail' if task == 'shape' else args.debug
            output = open(f'{folder}/{rank}', 'w+')
            ranks.append((subprocess.Popen(command, env=environment_of(side, nccl, level), stdout=output,
                                           stderr=subprocess.STDOUT), output))
        end = time.monotonic() + seconds
        try:
            for process, _ in ranks[:-1] if task == 'stop' else ranks:  # the last one is stopped
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
    found = [[json.loads(line[5:]) for line in text.splitlines() if line.startswith('ROWS ')] for text in texts]
    if task in FAULTS and found[0]:
        return fault_row(args.n, [rows[-1][0] for rows in found if rows])
    if found[0]:
        return found[0][-1]
    return late + ' / '.join('; '.join(text.strip().splitlines()[-3:]) for text in texts)[-600:]


def fault_row(n, reports):
    """When the last of the other ranks knew, and how many of them name the rank, or what differs."""
    lost = n - 1
    others = [one for one in reports if one['text'] != 'no error' and one['rank'] != lost]
    named = [one for one in others if f'rank {lost}' in one['text'] or f'rank{lost}' in one['text']]
    last = max((one['us'] for one in others), default=0)
    return [{'name': reports[0]['name'], 'us': last, 'synchronized': max(one['synchronized'] for one in reports),
             'text': f'{len(named)} of {n - 1} name rank {lost}: {(named or others or reports)[0]["text"][:200]}'}]


def kind_of(task):
    """The model of a row, and how it runs: “gpt2-graph”."""
    return task.replace('-alone', '').replace('-ddp', '').replace('-fsdp', '')


def show(side, task, rows, seconds, n, alone):
    """Prints rows; @alone has the steps of one GPU, by side and model, which those of several are compared with."""
    if isinstance(rows, str):
        print(f'| {n} | {side} {task} | {rows} | | | | |  <!-- {seconds:.0f} s -->', flush=True)
        return
    for row in rows:
        size = f' {row["bytes"]} B' if 'bytes' in row else ''
        key = (side, kind_of(row['name']))
        if '-alone' in row['name'] and key not in alone:
            alone[key] = row['us'] / 1e6
        predicted = cost.predict(row, n, alone.get(key))
        efficiency = f', {alone[key] / row["us"] * 1e6:.1%}' if key in alone and '-alone' not in row['name'] else ''
        more = row.get('text') or (f'{row["bus"]:.1f} GB/s' if 'bus' in row
                                   else f'{row.get("peak", 0):.2f} GiB{efficiency}')
        print(f'| {n} | {side} {row["name"]}{size} | {row["us"]:.1f} us | {row.get("host", 0):.1f} us | {more} | '
              f'{row.get("loss", row.get("synchronized", ""))} | {cost.text(predicted) if predicted else ""} |',
              flush=True)


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
    parser.add_argument('--counts', default='')
    parser.add_argument('--strong', action='store_true')
    parser.add_argument('--debug', default='')
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
    print('| GPUs | row | time | host | | | predicted |\n|---|---|---|---|---|---|---|', flush=True)
    alone = {}
    for n in [int(one) for one in args.counts.split(',')] if args.counts else [args.n]:
        args.n = n
        for side, task, seconds in ROWS:
            left = args.budget - (time.monotonic() - begin_time)
            # one GPU has nothing to exchange
            is_left_out = n == 1 and '-alone' not in task or '-alone' in task and (side, kind_of(task)) in alone
            if (not f'{side}.{task}'.startswith(wanted) or (side == 'torch' and not args.peer) or left < 5
                    or is_left_out):
                continue
            start = time.monotonic()
            rows = run_row(args, side, task, min(seconds, left), nccl)
            show(side, task, rows, time.monotonic() - start, n, alone)
    print(f'<!-- {time.monotonic() - begin_time:.0f} s in all -->', flush=True)


if __name__ == '__main__':
    main()
