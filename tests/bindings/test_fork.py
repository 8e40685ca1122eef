#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Processes end as they should: children of fork () compute, os.fork () and multiprocessing's, and threads may be in
the middle of a call when the program ends. What hangs is killed."""

import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import tap  # noqa: E402

LIMIT = 60
SIDE = 400


def compute(seed=0):
    """Runs operations that use several threads."""
    x = GTorch.full([SIDE, SIDE], 1.0 + seed).requires_grad_()
    y = (x @ GTorch.ones([SIDE, SIDE])).sum()
    y.backward()
    assert x.grad[0, 0].item() == SIDE
    return y.item()


def in_child(function):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(LIMIT)
            function()
            status = 0
        except BaseException as error:
            print(f'# {type(error).__name__}: {error}', flush=True)
        finally:
            os._exit(status)
    _pid, status = os.waitpid(child, 0)
    assert not os.WIFSIGNALED(status), f'signal {os.WTERMSIG(status)}: it hung or crashed'
    assert os.WEXITSTATUS(status) == 0


@tap.case
def a_child_computes():
    compute()
    in_child(compute)
    compute()


@tap.case
def a_pool_of_processes_computes():
    expected = [compute(i) for i in range(4)]
    with multiprocessing.get_context('fork').Pool(2) as pool:
        assert pool.map_async(compute, range(4)).get(LIMIT) == expected


@tap.case
def inherited_streams_are_refused():
    stream = GTorch.Stream.new(None, 0)

    def use():
        try:
            with GTorch.stream(stream) if hasattr(GTorch, 'stream') else stream:
                GTorch.ones([2]) + 1
        except GLib.Error as error:
            assert error.matches(GTorch.error_quark(), GTorch.Error.FORKED), error
        else:
            raise AssertionError('no error')
        fresh = GTorch.Stream.new(None, 0)
        with GTorch.stream(fresh) if hasattr(GTorch, 'stream') else fresh:
            assert (GTorch.ones([2]) + 1).tolist() == [2, 2]

    in_child(use)


@tap.case
def a_child_draws_the_same_numbers():
    read, write = os.pipe()
    in_child(lambda: os.write(write, repr(GTorch.randn([3]).tolist()).encode()))
    assert os.read(read, 1000).decode() == repr(GTorch.randn([3]).tolist())


# Python ends such threads where they next need its lock: within a function that the library has called.
ENDS_WITHIN = """
import threading, time, gi
gi.require_version('GTorch', '1')
from gi.repository import GTorch

class Twice(GTorch.Function):
    def forward(self, context, x):
        with GTorch.no_grad():
            return x * 2

    def backward(self, context, grad):
        return grad * 2

def hooks():
    p = GTorch.ones(3).requires_grad_()
    p.register_hook(lambda grad: grad * 2)
    (p * 2).sum().backward()

def functions():
    p = GTorch.ones(3).requires_grad_()
    Twice()(p).sum().backward()

def streams():
    GTorch.Stream('cpu').run(lambda _stream: GTorch.ones(3) + 1)

def for_ever(step):
    while True:
        step()

for step in {steps}:
    threading.Thread(target=for_ever, args=(step,), daemon=True).start()
time.sleep(0.15)
"""
N_ENDS = int(os.environ.get('GTORCH_FUZZ_RUNS', '8'))


def programs_end_within(steps):
    for _ in range(N_ENDS):
        done = subprocess.run(
            [sys.executable, '-c', ENDS_WITHIN.replace('{steps}', steps)], capture_output=True, timeout=LIMIT
        )
        assert done.returncode == 0, f'{steps}: {done.returncode}: {done.stderr.decode()[-2000:]}'


tap.add('a_program_ends_while_threads_are_in_hooks', programs_end_within, '3 * (hooks,)')
tap.add('a_program_ends_while_threads_are_in_functions', programs_end_within, '3 * (functions,)')
tap.add('a_program_ends_while_threads_are_in_streams', programs_end_within, '(streams, hooks, functions)')


if __name__ == '__main__':
    tap.main()
