#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""No Python program can crash the process: the methods and properties of each class are called on
fresh, released and disposed objects with all kinds of arguments, including wrong ones. A child
process makes the calls and logs each before it makes it; a call that kills it, or that GLib logs as
critical, is a failure.

`test_disposed.py SEED ROUNDS` makes ROUNDS calls with random arguments for each method."""

import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import Gio, GLib, GObject, GTorch  # noqa: E402

import tap  # noqa: E402

STATES = ('whole', 'released', 'disposed')
SECONDS = 60  # the time limit for a few thousand calls

# --- objects ---

nn = GTorch.nn


def ones(*shape):
    return GTorch.ones(list(shape))


def hooked_grad():
    x = ones(2).requires_grad_()
    (x * x).sum().backward()
    return x


def functions():
    names = [name for name in dir(GTorch) if not name.startswith('_')]
    found = {name: getattr(GTorch, name) for name in names}
    plain = {k: v for k, v in found.items() if callable(v) and not isinstance(v, type)}
    return types.SimpleNamespace(**plain)


MAKERS = {
    'functions': functions,
    'Tensor': lambda: ones(2, 3),
    'Tensor of integers': lambda: GTorch.tensor([1, 2, 0]),
    'Tensor of one element': lambda: GTorch.tensor(1.5),
    'Tensor of truth values': lambda: GTorch.tensor([True, False]),
    'Tensor with a gradient': hooked_grad,
    'Tensor in a graph': lambda: ones(2).requires_grad_() * 2,
    'view': lambda: ones(4, 4).transpose(0, 1),
    'Parameter': lambda: nn.Parameter(ones(2, 2)),
    'Linear': lambda: nn.Linear(2, 2),
    'Conv2d': lambda: nn.Conv2d(1, 1, 2),
    'BatchNorm1d': lambda: nn.BatchNorm1d(2),
    'LayerNorm': lambda: nn.LayerNorm(2),
    'Embedding': lambda: nn.Embedding(3, 2),
    'Dropout': lambda: nn.Dropout(0.5),
    'Sequential': lambda: nn.Sequential(nn.Linear(2, 2), nn.ReLU()),
    'CrossEntropyLoss': lambda: nn.CrossEntropyLoss(ones(2)),
    'NLLLoss': lambda: nn.NLLLoss(ones(2)),
    'BCEWithLogitsLoss': lambda: nn.BCEWithLogitsLoss(ones(2), pos_weight=ones(2)),
    'MSELoss': lambda: nn.MSELoss(),
    'SGD': lambda: GTorch.optim.SGD([nn.Parameter(ones(2))], momentum=0.9),
    'Adam': lambda: GTorch.optim.Adam([nn.Parameter(ones(2))]),
    'GradScaler': lambda: GTorch.GradScaler(),
    'Generator': lambda: GTorch.Generator.new_with_seed(3),
    'Stream': lambda: GTorch.Stream.new(None, 0),
    'Event': lambda: GTorch.Event.new(GTorch.EventFlags.TIMING),
    'GraphedModule': lambda: GTorch.GraphedModule(nn.Linear(2, 2), [ones(1, 2)]),
    'Timer': lambda: GTorch.Timer.new(None) if hasattr(GTorch, 'Timer') else None,
    'MemoryPool': lambda: GTorch.MemoryPool.new(None),
    'FFTPlanCache': lambda: GTorch.Device.cpu().get_fft_plan_cache(),
}
# Objects that live as long as the process are not disposed.
SHARED = ('FFTPlanCache',)
# Calls that wait for something that never happens, exit the process, or open files that are not the
# test's.
LEFT_OUT = {
    'run_dispose', 'unref', 'ref', 'ref_sink', 'force_floating', 'freeze_notify', 'steal_data', 'weak_ref',
    'watch_closure',
    'run', 'emit', 'disconnect', 'handler_block', 'handler_unblock', 'get_handle', 'stop_emission',
    'emit_stop_by_name',
    'handler_disconnect', 'handler_is_connected', 'stop_emission_by_name', 'handler_block_by_func', 'chain',
    'import_dlpack', 'dlpack_delete',  # these take an address
    'handler_unblock_by_func', 'disconnect_by_func', 'thaw_notify', 'bind_property', 'bind_property_full',
}  # fmt: skip


def tensors_of(thing):
    if isinstance(thing, GTorch.Tensor):
        return [thing]
    if isinstance(thing, GTorch.Module):
        return [t for _name, t in zip(*reversed(thing.state_lists()))] + [
            getattr(thing.props, name) for name in ('weight', 'pos_weight') if hasattr(thing.props, name)
        ]
    if isinstance(thing, GTorch.Optimizer):
        return list(thing.state_lists()[0]) + [p for g in thing.get_param_groups() for p in g.get_params()]
    return []


def make(name, state):
    thing = MAKERS[name]()
    if state == 'released':
        for tensor in tensors_of(thing):
            if isinstance(tensor, GTorch.Tensor):
                tensor.release()
    elif state == 'disposed' and name not in SHARED and isinstance(thing, GObject.Object):
        thing.run_dispose()
    return thing


# --- arguments ---


def gone():
    tensor = ones(2, 2)
    tensor.release()
    return tensor


def disposed():
    tensor = ones(2, 2)
    tensor.run_dispose()
    return tensor


PLAUSIBLE = (
    lambda: 0,
    lambda: 1,
    lambda: -1,
    lambda: 0.5,
    lambda: True,
    lambda: 'a',
    lambda: 'weight',
    lambda: [0],
    lambda: [2, 2],
    lambda: ones(2, 2),
    lambda: GTorch.tensor([0, 1]),
    lambda: [ones(2, 2), ones(2, 2)],
    lambda: GTorch.float32,
    lambda: GTorch.Device.cpu(),
    lambda: None,
    lambda: nn.ReLU(),
)
NONSENSE = (
    gone,
    disposed,
    lambda: 2**62,
    lambda: -(2**63),
    lambda: 2**80,
    lambda: float('nan'),
    lambda: float('inf'),
    lambda: [],
    lambda: [None],
    lambda: [gone(), None],
    lambda: [ones(2), 'a'],
    lambda: [2**40, 2**40],
    lambda: [-5],
    lambda: {},
    lambda: {'weight': None},
    lambda: {'weight': gone()},
    lambda: {1: 2},
    lambda: '',
    lambda: '\ud800',
    lambda: b'\0\xff',
    lambda: object(),
    lambda: (lambda *_args: None),
    lambda: (lambda *_args: 1 / 0),
    lambda: GLib.Bytes.new(b'1234'),
    lambda: Gio.Cancellable.new(),
    lambda: Gio.MemoryInputStream.new(),
    lambda: GTorch.Tensor,
    lambda: 10**6,
)
PROTOCOLS = (
    repr, str, len, list, bool, int, float, complex, hash, iter, format, abs, bytes,
    lambda t: t[0], lambda t: t[0, 0], lambda t: t[None], lambda t: t[..., 1:], lambda t: t[t],
    lambda t: t + t, lambda t: t @ t,
    lambda t: t == t, lambda t: -t, lambda t: t.__setitem__(0, 1), lambda t: t.__dlpack__(),
    lambda t: t.__dlpack_device__(),
    lambda t: t.__array_interface__, lambda t: __import__('numpy').asarray(t), lambda t: t.tolist(),
    lambda t: t.item(),
    lambda t: t.data_ptr(), lambda t: t.numpy(), lambda t: __import__('copy').deepcopy(t),
    lambda t: t.to(GTorch.float64),
    lambda t: __import__('pickle').dumps(t), lambda t: t.backward(), lambda t: t(ones(1, 2)),
    lambda t: t.state_dict(),
    lambda t: t.step(), lambda t: t.zero_grad(), lambda t: GTorch.from_dlpack(t), lambda t: t(ones(1, 2),
    GTorch.tensor([0])),
    lambda t: t(gone()), lambda t: t(gone(), gone()), lambda t: t.data, lambda t: t.grad, lambda t: t.T,
)  # fmt: skip


def arguments(source, n, nonsense):
    return [source.choice(NONSENSE if source.random() < nonsense else PLAUSIBLE)() for _ in range(n)]


def methods(thing):
    for name in sorted(dir(thing)):
        if name.startswith('_') or name in LEFT_OUT or hasattr(GObject.Object, name):
            continue
        yield name


# --- the child ---


NOTES = int(sys.argv[-1]) if '--child' in sys.argv else None


def note(text):
    os.write(NOTES, (text + '\n').encode('utf-8', 'replace'))


def attempt(call):
    try:
        call()
    except (Exception, RecursionError):
        pass


def child(name, state, seed, rounds):
    source = random.Random(f'{seed} {name} {state}')
    thing = make(name, state)
    for i, protocol in enumerate(PROTOCOLS):
        if not hasattr(thing, '__next__'):
            note(f'{name}, {state}: protocol {i}')
            attempt(lambda: protocol(thing))
            thing = make(name, state)
    for pspec in thing.list_properties() if isinstance(thing, GObject.Object) else ():
        note(f'{name}, {state}: property {pspec.name}')
        attempt(lambda: thing.get_property(pspec.name))
        for value in arguments(source, 3, 0.5):
            # PyGObject passes objects of any class to GObject, which then logs a critical message.
            if not isinstance(value, GObject.Object) or GObject.type_is_a(value.__gtype__, pspec.value_type):
                attempt(lambda: thing.set_property(pspec.name, value))
    for method in list(methods(thing)):
        for _ in range(rounds):
            thing = make(name, state)
            given = arguments(source, source.choice((0, 0, 1, 1, 2, 2, 3, 4)), 0.4)
            note(f'{name}, {state}: {method} {given!r:.300}')
            attempt(lambda: getattr(thing, method)(*given))


def run_child(name, seed, rounds):
    read, write = os.pipe()
    command = [sys.executable, __file__, '--child', name, str(seed), str(rounds), str(write)]
    env = {**os.environ, 'G_DEBUG': 'fatal-criticals', 'GTORCH_NUM_THREADS': '1'}
    process = subprocess.Popen(
        command, env=env, pass_fds=(write,), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    os.close(write)
    lines = []
    reader = threading.Thread(target=lambda: lines.extend(os.fdopen(read,
    errors='replace').read().splitlines()))
    reader.start()
    try:
        _out, errors = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        _out, errors = process.communicate()
        reader.join()
        return f'hangs in {lines[-1] if lines else "the beginning"}'
    reader.join()
    if process.returncode == 0 and lines and lines[-1] == 'done':
        return None
    why = signal.Signals(-process.returncode).name if process.returncode < 0 else f'status {process.returncode}'
    errors = errors.decode(errors='replace').splitlines()
    said = [line for line in errors if 'CRITICAL' in line or 'rror' in line][-2:]
    return f'{why} in {lines[-1] if lines else "the beginning"} {said}'


def survive(name, seed, rounds):
    failed = run_child(name, seed, rounds)
    assert failed is None, failed


if __name__ == '__main__':
    if '--child' in sys.argv:
        at = sys.argv.index('--child')
        for _state in STATES:
            child(sys.argv[at + 1], _state, int(sys.argv[at + 2]), int(sys.argv[at + 3]))
        note('done')
        os._exit(0)
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    for _name in MAKERS:
        tap.add(f'{_name.replace(" ", "_").lower()}_survives', survive, _name, seed, rounds)
    tap.main()
