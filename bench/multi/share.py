#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Shares memory of GPUs between processes, and captures copies from and to the host, on real GPUs.

    share.py [--sends N] [--mib N] [--only NAME,…]

Run it in a shell of meson devenv, on one GPU or, for the cases of two, on two. All cases run with memory in pages, and
again with memory of cuMemAlloc() (GTORCH_ALLOC=segments). A line says what each case did, and how long it took:

    one-gpu       another process reads and writes a tensor, a view and a large tensor
    order         what was enqueued before the tensor was sent is done when the other process reads it
    two-gpus      a process on the second GPU reads and writes a tensor of the first one, and sends one of its own back
    visible       a process that sees the GPUs in another order, or only the other one
    sends         many tensors, of which nothing is left: file descriptors, memory of the allocator and of the GPU
    killed        the memory that a killed process had comes back
    module        a module in shared memory, which another process changes
    host-copies   a graph that copies from and to pinned memory, beside the same work without a graph
    two-captures  a capture of two GPUs, which is refused, and one on each side by side

Exits with 1 if a case fails. The driver of the tests will do, too, with few megabytes:

    GTORCH_CUDA_DRIVER=build/tests/fake-cuda/libgtorch-fakecuda.so GTORCH_FAKE_CUDA=devices=2,seed=0,borrow=1 \\
        GTORCH_CUDA_LIBRARY_PATH=build/tests/fake-cuda meson devenv -C build -w . python3 bench/multi/share.py --mib 16
"""

import argparse
import gc
import os
import subprocess
import sys
import time
import traceback

import gtorch as torch
import gtorch.multiprocessing as mp

PATIENCE = 60
BACKENDS = ('arenas', 'segments')


# --- the other process ---


def serve(commands, answers, gpu):
    """Does what the queue says, with the tensors that it was given last."""
    if gpu is not None:
        torch.cuda.set_device(gpu)
    x = None
    while True:
        try:
            what, value = commands.get()
            if what == 'end':
                return
            if what == 'open':
                x = value
                answers.put(str(x.device))
            elif what == 'sum':
                answers.put(x.double().sum().item())
            elif what == 'fill':
                x.fill_(value)
                torch.cuda.synchronize(x.device)
                answers.put('filled')
            elif what == 'here':  # a copy on the process's own GPU, which is sent back
                answers.put(x.to(f'cuda:{torch.cuda.current_device()}') + 1)
            elif what == 'drop':
                x = None
                value = None
                gc.collect()
                answers.put('dropped')
        except Exception as error:
            answers.put(f'{type(error).__name__}: {error}')
        value = None


class Other:
    """Another process."""

    def __init__(self, gpu=None, **environment):
        context = mp.get_context('spawn')
        self.commands, self.answers = context.SimpleQueue(), context.SimpleQueue()
        before = {name: os.environ.get(name) for name in environment}
        os.environ.update(environment)
        try:
            self.process = context.Process(target=serve, args=(self.commands, self.answers, gpu), daemon=True)
            self.process.start()
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})

    def ask(self, what, value=None):
        self.commands.put((what, value))
        return self.answers.get()

    def end(self):
        self.commands.put(('end', None))
        self.process.join(PATIENCE)
        same(self.process.exitcode, 0)


def same(found, expected):
    if found != expected:
        raise AssertionError(f'{found!r}, not {expected!r}')


def until(condition, what):
    """Waits until a condition holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f'{what}: still not after {PATIENCE} s')
        torch.cuda.synchronize()
        time.sleep(0.005)


def fds():
    """How many file descriptors there are, but for the memory of the driver of the tests."""
    n = 0
    for name in os.listdir('/proc/self/fd'):
        try:
            n += 'fake-' not in os.readlink(f'/proc/self/fd/{name}')
        except OSError:  # that of the list itself
            pass
    return n


def need(n):
    return None if torch.cuda.device_count() >= n else f'skipped: {torch.cuda.device_count()} GPUs of {n}'


# --- the cases: each returns what it has measured ---


def one_gpu(options):
    other = Other()
    x = torch.zeros(1000, device='cuda:0')
    large = torch.ones(options.mib * 2**18, device='cuda:0')
    same(other.ask('open', x), 'cuda:0')
    same(other.ask('fill', 3), 'filled')
    same(x.sum().item(), 3000.0)
    x.fill_(2)
    torch.cuda.synchronize()
    same(other.ask('sum'), 2000.0)
    other.ask('open', x.view(10, 100)[2:4, ::2])
    other.ask('fill', 5)
    same(x.sum().item(), 2000.0 + 100 * 3)
    start = time.perf_counter()
    other.ask('open', large)
    taken = time.perf_counter() - start
    same(other.ask('sum'), float(large.numel()))
    other.ask('fill', 2)
    same(large.double().sum().item(), 2.0 * large.numel())
    other.end()
    return f'{options.mib} MiB opened in {taken * 1e3:.1f} ms'


def order(options):
    other = Other()
    other.ask('open', torch.zeros(1, device='cuda:0'))  # its context
    n = 4096 if options.mib > 64 else 64
    a, x = torch.ones(n, n, device='cuda:0'), torch.zeros(n, device='cuda:0')
    for _ in range(5):
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            side.wait_stream(torch.cuda.default_stream())
            for _ in range(50):
                b = a @ a
            x.copy_(b[0])
            other.commands.put(('open', x))
            other.answers.get()
            same(other.ask('sum'), float(n * n))
        torch.cuda.synchronize()
        x.zero_()
        torch.cuda.synchronize()
    other.end()
    return 'behind 50 products, five times'


def two_gpus(options):
    other = Other(gpu=1)
    x = torch.arange(1000.0, device='cuda:0')
    large = torch.ones(options.mib * 2**18, device='cuda:0')
    same(other.ask('open', x), 'cuda:0')
    theirs = other.ask('here')
    same(str(theirs.device), 'cuda:1')
    same(theirs.double().sum().item(), 1000 * 999 / 2 + 1000)
    same((theirs.to('cuda:0') - x).sum().item(), 1000.0)
    del theirs
    other.ask('open', large)
    start = time.perf_counter()
    theirs = other.ask('here')
    torch.cuda.synchronize(1)
    taken = time.perf_counter() - start
    same(theirs.double().sum().item(), 2.0 * large.numel())
    del theirs
    other.ask('fill', 4)
    same(large.double().sum().item(), 4.0 * large.numel())
    other.end()
    return f'{options.mib} MiB to the other GPU and back as a handle in {taken * 1e3:.1f} ms'


def visible(_options):
    turned = Other(CUDA_VISIBLE_DEVICES='1,0')
    x = torch.ones(10, device='cuda:0')
    same(turned.ask('open', x), 'cuda:1')
    same(turned.ask('sum'), 10.0)
    turned.end()
    alone = Other(CUDA_VISIBLE_DEVICES='1')
    text = alone.ask('open', x)
    if 'does not see' not in text:
        raise AssertionError(text)
    alone.end()
    return f'cuda:0 is cuda:1 there; without it: {text}'


def sends(options):
    other = Other()
    times, before = [], None
    for i in range(options.sends + 10):
        x = torch.full((1000 + i % 7 * 100000,), 1.0, device='cuda:0')
        start = time.perf_counter()
        other.ask('open', x)
        times.append(time.perf_counter() - start)
        del x
        if i % 10 == 9:
            same(other.ask('drop'), 'dropped')
        if i == 9:
            time.sleep(1)
            torch.cuda.synchronize()
            before = fds(), torch.cuda.memory_allocated(), torch.cuda.mem_get_info()[0]
    until(lambda: torch.cuda.memory_allocated() <= before[1], 'memory of the allocator')
    until(lambda: fds() <= before[0] + 2, 'file descriptors')
    free = torch.cuda.mem_get_info()[0]
    other.end()
    times.sort()
    return (f'{options.sends} sends, {times[len(times) // 2] * 1e6:.0f} us each there and back; the GPU has '
            f'{(before[2] - free) / 2**20:.0f} MiB less')


def killed(_options):
    other = Other()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    x = torch.zeros(10**6, device='cuda:0')
    other.ask('open', x)
    del x
    if torch.cuda.memory_allocated() < before + 4 * 10**6:
        raise AssertionError('the memory was freed though another process has it')
    start = time.perf_counter()
    other.process.kill()
    other.process.join()
    until(lambda: torch.cuda.memory_allocated() <= before, 'memory of the killed process')
    return f'back after {(time.perf_counter() - start) * 1e3:.0f} ms'


def _learn(model):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(0.5)
    torch.cuda.synchronize()


def module(_options):
    model = torch.nn.Linear(100, 10).to('cuda:0').share_memory()
    process = mp.get_context('spawn').Process(target=_learn, args=(model,))
    process.start()
    process.join(PATIENCE)
    same(process.exitcode, 0)
    same(model.weight.sum().item() + model.bias.sum().item(), 0.5 * 1010)
    return 'two parameters'


def _times(function, n=50):
    for _ in range(3):
        function()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(n):
        function()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / n * 1e6


def host_copies(_options):
    source, back = torch.ones(10000).pin_memory(), torch.zeros(10000).pin_memory()
    x = torch.zeros(10000, device='cuda:0')

    def step():
        x.copy_(source, non_blocking=True)
        for _ in range(10):
            x.add_(1)
        back.copy_(x, non_blocking=True)

    step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for i in range(20):
        source.fill_(i)
        graph.replay()
        same(back.sum().item(), (i + 10) * 10000.0)
    for refused in (lambda: x.copy_(torch.ones(10000), non_blocking=True), lambda: x.copy_(source)):
        other = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(other):
                x.add_(1)
                refused()
        except Exception as error:
            if 'pinned' not in str(error):
                raise
        else:
            raise AssertionError('a copy was captured that must be refused')
    del source
    gc.collect()
    graph.replay()
    same(back.sum().item(), (19 + 10) * 10000.0)
    source = torch.ones(10000).pin_memory()
    return f'{_times(graph.replay):.1f} us with a graph, {_times(step):.1f} us without'


def two_captures(_options):
    xs = [torch.zeros(1000, device=f'cuda:{i}') for i in range(2)]
    graphs = [torch.cuda.CUDAGraph() for _ in xs]
    for i, (x, graph) in enumerate(zip(xs, graphs)):
        with torch.cuda.device(i), torch.cuda.graph(graph):
            x.add_(i + 1)
    for _ in range(3):
        for graph in graphs:
            graph.replay()
    torch.cuda.synchronize(0)
    torch.cuda.synchronize(1)
    same([x.sum().item() for x in xs], [3000.0, 6000.0])
    first, side = torch.cuda.CUDAGraph(), torch.cuda.Stream(1)
    try:
        with torch.cuda.device(0), torch.cuda.graph(first):
            xs[0].add_(1)
            side.wait_stream(torch.cuda.current_stream(0))
    except Exception as error:
        if 'another device' not in str(error):
            raise
        return 'one graph on each; a capture of both is refused'
    raise AssertionError('a capture of two devices was not refused')


CASES = {'one-gpu': (one_gpu, 1), 'order': (order, 1), 'two-gpus': (two_gpus, 2), 'visible': (visible, 2),
         'sends': (sends, 1), 'killed': (killed, 1), 'module': (module, 1), 'host-copies': (host_copies, 1),
         'two-captures': (two_captures, 2)}  # fmt: skip


def run_all(options):
    failed = 0
    for name, (case, n) in CASES.items():
        if options.only and name not in options.only.split(','):
            continue
        start = time.perf_counter()
        try:
            text = need(n) or case(options)
            print(f'{options.backend} {name}: ok, {time.perf_counter() - start:.1f} s: {text}', flush=True)
        except Exception:
            failed += 1
            print(f'{options.backend} {name}: FAILED\n{traceback.format_exc()}', flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('--sends', type=int, default=1000)
    parser.add_argument('--mib', type=int, default=1024)
    parser.add_argument('--only', default='')
    parser.add_argument('--backend', choices=BACKENDS)
    options = parser.parse_args()
    if options.backend is not None:
        sys.exit(run_all(options) > 0)
    status = 0
    for backend in BACKENDS:
        env = {**os.environ, **({'GTORCH_ALLOC': backend} if backend != 'arenas' else {})}
        status |= subprocess.run([sys.executable, *sys.argv, '--backend', backend], env=env, check=False).returncode
    sys.exit(status)


if __name__ == '__main__':
    main()
