#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every function of the typelib that ends in _async completes when it is awaited, or raises at the call."""

import asyncio
import inspect
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.module import get_introspection_module  # noqa: E402
from gi.repository import Gio, GLib, GTorch  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402

RAW = get_introspection_module('GTorch')
LIMIT = 30


def leaf():
    return GTorch.ones(2).requires_grad_()


def trained():
    x = leaf()
    optimizer = GTorch.optim.SGD([x])
    x.sum().backward()
    return optimizer


def trainer():
    x, net = GTorch.ones(4, 2), GTorch.nn.Linear(2, 1)
    loader = [(x, GTorch.zeros(4, 1))]
    return GTorch.Trainer(net, loader, GTorch.nn.MSELoss(), GTorch.optim.SGD(net.parameters(), lr=0.1))


# An object of each class with such methods.
OBJECTS = {
    'Device': lambda: GTorch.Device('cpu'),
    'Event': GTorch.Event,
    'GradScaler': lambda: GTorch.GradScaler(),
    'Module': lambda: GTorch.nn.Linear(2, 1),
    'Stream': lambda: GTorch.Stream('cpu'),
    'Tensor': lambda: leaf().sum(),
    'Timer': GTorch.Timer,
    'Trainer': lambda: trainer(),
}
# The arguments before the cancellable.
ARGUMENTS = {
    'GradScaler.step_async': lambda: (trained(),),
    'Module.forward_async': lambda: (GTorch.ones(1, 2),),
    'Tensor.backward_async': lambda: (None, False, False),
    'Tensor.copy_inplace_async': lambda: (GTorch.tensor(1.0),),
    'Tensor.to_device_async': lambda: (GTorch.Device('cpu'),),
    'safetensors_load_async': lambda: (Gio.MemoryInputStream.new_from_bytes(saved()), None, 0),
    'safetensors_load_file_async': lambda: (file(saved()), False, None, 0),
    'safetensors_save_async': lambda: ({'x': leaf()}, None, Gio.MemoryOutputStream.new_resizable(), 0),
    'safetensors_save_file_async': lambda: ({'x': leaf()}, None, file(), 0),
    'safetensors_save_lists_async': lambda: (
        ['x'], [leaf()], None, Gio.MemoryOutputStream.new_resizable(), 0,
    ),
    'safetensors_save_file_lists_async': lambda: (['x'], [leaf()], None, file(), 0),
}
FINISH = {
    'safetensors_save_lists_async': 'safetensors_save_finish',
    'safetensors_save_file_lists_async': 'safetensors_save_file_finish',
}
# These fail here: there is no GPU to monitor, and nothing was scaled.
FAILS = ('Device.open_monitor_async', 'GradScaler.step_async')
FOLDER = tempfile.TemporaryDirectory()


def saved():
    stream = Gio.MemoryOutputStream.new_resizable()
    GTorch.safetensors_save({'x': leaf().detach()}, None, stream, None, None)
    stream.close()
    return stream.steal_as_bytes()


def file(content=None):
    found = Gio.File.new_for_path(f'{FOLDER.name}/file')
    if content is not None:
        found.replace_contents(content.get_data(), None, False, Gio.FileCreateFlags.NONE, None)
    return found


def functions():
    """Yields the name of each function, and its owner."""
    for name in dir(RAW):
        value = getattr(RAW, name, None)
        if name.endswith('_async'):
            yield name, None
        elif isinstance(value, type):
            for own in vars(value):
                if own.endswith('_async') and hasattr(inspect.unwrap(vars(value)[own]), 'get_arguments'):
                    yield f'{name}.{own}', name


def pair(name, owner):
    """Returns the two functions, bound to an object of the class if there is one."""
    begin = name.rpartition('.')[2]
    finish = FINISH.get(begin, begin.replace('_async', '_finish'))
    where = GTorch if owner is None else OBJECTS[owner]()
    if owner == 'Timer':
        where.start()
    return getattr(where, begin), getattr(where, finish)


def run(main):
    return asyncio.run(asyncio.wait_for(main, LIMIT))


def refuses(name, args, *pair_of):
    try:
        GTorch.awaitable(*pair_of, *args)
    except TypeError as error:
        assert 'awaitable()' in str(error), error
        return
    raise AssertionError(f'{name} took {len(args)} arguments')


@tap.case
def wrong_argument_counts_are_refused_at_the_call():
    async def main():
        n_checked = 0
        for name, owner in functions():
            right = ARGUMENTS.get(name, tuple)()
            for n in range(len(right) + 4):
                if n != len(right):
                    refuses(name, (*right, None, None, None, None)[:n], *pair(name, owner))
                    n_checked += 1
        assert n_checked >= 80, n_checked

    run(main())


@tap.case
def calls_with_the_right_number_complete():
    async def main():
        found = set()
        for name, owner in functions():
            args = ARGUMENTS.get(name, tuple)()
            try:
                await asyncio.wait_for(GTorch.awaitable(*pair(name, owner), *args), LIMIT)
            except GLib.Error as error:  # it has completed, too
                assert name in FAILS, f'{name}: {error.message}'
            found.add(name)
        assert found >= set(ARGUMENTS), set(ARGUMENTS) - found

    run(main())


@tap.case
def a_method_of_the_class_takes_the_object_too():
    async def main():
        event = GTorch.Event()
        begin, finish = GTorch.Event.synchronize_async, event.synchronize_finish
        await GTorch.awaitable(begin, finish, event)
        refuses('unbound', (), begin, finish)
        refuses('unbound', (event, None), begin, finish)

    run(main())


@tap.case
def functions_of_other_libraries_are_counted_too():
    async def main():
        there = file(GLib.Bytes.new(b'text'))
        assert (await GTorch.awaitable(there.load_contents_async, there.load_contents_finish))[1] == b'text'
        refuses('load_contents_async', (None,), there.load_contents_async, there.load_contents_finish)
        refuses('get_path', (), there.get_path, there.load_contents_finish)

    run(main())


@tap.case
def python_functions_are_inspected():
    async def main():
        def begin(number, cancellable, done):
            done(None, number)

        assert await GTorch.awaitable(begin, lambda number: number + 1, 1) == 2
        for args in ((), (1, None)):
            try:
                GTorch.awaitable(begin, lambda number: number, *args)
                raise AssertionError(f'{len(args)} arguments were taken')
            except TypeError:
                pass

    run(main())


@tap.case
def awaitable_methods_reject_surplus_arguments():
    async def main():
        event, stream, timer, x = GTorch.Event(), GTorch.Stream('cpu'), GTorch.Timer(), leaf().sum()
        for call in (
            lambda: event.wait_async(None, None),
            lambda: stream.wait(None, None),
            lambda: timer.wait(None, None),
            lambda: x.item_async(None, None),
            lambda: x.to_async('cpu', None, None),
            lambda: x.to_async(),
            lambda: x.copy_async(x, None, None),
        ):
            try:
                call()
                raise AssertionError('the arguments were taken')
            except TypeError:
                pass

    run(main())


if __name__ == '__main__':
    tap.main()
