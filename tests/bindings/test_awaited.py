#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every function of the typelib that ends in _async completes when it is awaited, or raises at the call."""

import asyncio
import functools
import inspect
import io
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
from tap import raises  # noqa: E402

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
    optimizer = GTorch.optim.SGD(net.parameters(), lr=0.1)
    return GTorch.Trainer(net, loader, GTorch.nn.MSELoss(), optimizer, checkpoint_folder=f'{FOLDER.name}/checkpoints')


def trained_file():
    found = file()
    trainer().save_checkpoint(found)
    return found


HAS_MPI = GTorch.ProcessGroup.is_available('mpi')


def arrow_reader():
    from gi.overrides import _gtorch_arrow as arrow

    address = arrow._structure(arrow.STREAM)
    GTorch.arrow_export_stream(table(), address)
    return GTorch.ArrowReader.new(address)


def table():
    made = GTorch.Table.new()
    made.add('x', GTorch.ones(3, device='cpu'))
    return made


def csv_reader():
    return GTorch.CSVReader.new(stream(b'x,y\n1,2\n'))


def loader():
    return GTorch.DataLoader.new(GTorch.TensorDataset.new([GTorch.ones(4, 2)]), 2, False)


def store():
    made = GTorch.HashStore.new()
    made.set('key', GLib.Bytes.new(b'value'), None)
    return made


@functools.cache
def group():
    """This process alone."""
    return GTorch.ProcessGroup.new('mpi', None, 0, 1, LIMIT, None)


def has_pictures():
    try:
        GTorch.image_encode(GTorch.zeros((3, 1, 1), dtype=GTorch.uint8, device='cpu'), 'png', 100)
    except GLib.Error:
        return False
    return True


def picture():
    one = GTorch.zeros((3, 1, 1), dtype=GTorch.uint8, device='cpu')
    return GTorch.image_encode(one, 'png', 100) if has_pictures() else GLib.Bytes.new(b'')


def writer():
    made = GTorch.CheckpointWriter.new()
    made.add_int(1)
    return made


def work():
    return group().all_reduce(GTorch.ones(2, device='cpu'), GTorch.ReduceOp.SUM)


# An object of each class with such methods, or the class of functions without an object.
OBJECTS = {
    'ArrowReader': arrow_reader,
    'CSVReader': csv_reader,
    'CheckpointFile': lambda: GTorch.CheckpointFile,
    'CheckpointWriter': writer,
    'DataLoader': loader,
    'DataLoaderIter': lambda: loader().iterate(),
    'Device': lambda: GTorch.Device('cpu'),
    'Event': GTorch.Event,
    'Exporter': lambda: GTorch.Exporter.new(None),
    'GradScaler': lambda: GTorch.GradScaler(),
    'Module': lambda: GTorch.nn.Linear(2, 1),
    'ImageFolder': lambda: GTorch.ImageFolder,
    'ProcessGroup': lambda: group() if HAS_MPI else GTorch.ProcessGroup,
    'Store': store,
    'Stream': lambda: GTorch.Stream('cpu'),
    'TcpStore': lambda: GTorch.TcpStore,
    'Tensor': lambda: leaf().sum(),
    'Timer': GTorch.Timer,
    'Tokenizer': lambda: tokenizer(),
    'Trainer': lambda: trainer(),
    'Work': work,
}
# The arguments before the cancellable.
ARGUMENTS = {
    'ArrowReader.read_table_async': lambda: (0,),
    'CSVReader.read_table_async': lambda: (0, 0),
    'CSVReader.read_tensor_async': lambda: (0, 0),
    'CheckpointFile.load_async': lambda: (stream(checkpoint()), 0, 0),
    'CheckpointFile.load_file_async': lambda: (file(checkpoint()), False, 0, 0),
    'CheckpointWriter.save_file_async': lambda: (0, file(), 0),
    'GradScaler.step_async': lambda: (trained(),),
    'Module.forward_async': lambda: (GTorch.ones(1, 2),),
    'ImageFolder.create_async': lambda: (pictures(), None, GTorch.ImageMode.RGB, 0),
    'ProcessGroup.all_gather_variant_async': lambda: (GLib.Variant('s', 'x'),),
    'ProcessGroup.bind_device_async': lambda: (GTorch.Device('cpu'),),
    'ProcessGroup.broadcast_variant_async': lambda: (GLib.Variant('s', 'x'), 0),
    'ProcessGroup.create_async': lambda: ('mpi', None, 0, 1, LIMIT),
    'ProcessGroup.gather_variant_async': lambda: (GLib.Variant('s', 'x'), 0),
    'ProcessGroup.monitored_barrier_async': lambda: (LIMIT,),
    'ProcessGroup.new_part_async': lambda: ([0], LIMIT),
    'ProcessGroup.recv_variant_async': lambda: (0, 0),
    'ProcessGroup.scatter_variant_async': lambda: (GLib.Variant('av', [GLib.Variant('s', 'x')]), 0),
    'ProcessGroup.send_variant_async': lambda: (GLib.Variant('s', 'x'), 0, 0),
    'ProcessGroup.shrink_async': lambda: ([0],),
    'Store.add_async': lambda: ('number', 2),
    'Store.append_async': lambda: ('appended', GLib.Bytes.new(b'more')),
    'Store.check_async': lambda: (['key'],),
    'Store.compare_set_async': lambda: ('key', GLib.Bytes.new(b'value'), GLib.Bytes.new(b'other')),
    'Store.delete_key_async': lambda: ('key',),
    'Store.get_async': lambda: ('key',),
    'Store.set_async': lambda: ('key', GLib.Bytes.new(b'other')),
    'Store.wait_async': lambda: (['key'], LIMIT),
    'TcpStore.create_async': lambda: ('localhost', 0, 1, True, LIMIT, False, None),
    'Tensor.backward_async': lambda: (None, False, False),
    'Tensor.copy_inplace_async': lambda: (GTorch.tensor(1.0),),
    'Tensor.to_device_async': lambda: (GTorch.Device('cpu'),),
    'Tokenizer.save_async': lambda: (file(), 0),
    'Tokenizer.load_file_async': lambda: (file(tokenizer().to_bytes()), 0),
    'Tokenizer.train_bpe_async': lambda: (['abc abc'], 257, 1, None, False),
    'Trainer.load_checkpoint_async': lambda: (trained_file(), 0),
    'Trainer.resume_async': lambda: (0,),
    'Trainer.save_checkpoint_async': lambda: (file(), 0),
    'image_load_file_async': lambda: (file(picture()), GTorch.ImageMode.RGB, False, 0, 0),
    'image_save_file_async': lambda: (GTorch.zeros(1, 2, 2, dtype=GTorch.uint8), file(), 'png', 75, 0),
    'npy_load_async': lambda: (stream(array()), 0, 0),
    'npy_load_file_async': lambda: (file(array()), False, 0, 0),
    'npy_save_async': lambda: (leaf().detach(), Gio.MemoryOutputStream.new_resizable(), 0),
    'npy_save_file_async': lambda: (leaf().detach(), file(), 0),
    'npz_load_async': lambda: (stream(arrays()), 0, 0),
    'npz_load_file_async': lambda: (file(arrays()), False, 0, 0),
    'npz_save_async': lambda: (table(), True, Gio.MemoryOutputStream.new_resizable(), 0),
    'npz_save_file_async': lambda: (table(), True, file(), 0),
    'safetensors_load_async': lambda: (Gio.MemoryInputStream.new_from_bytes(saved()), None, 0),
    'safetensors_load_file_async': lambda: (file(saved()), False, None, 0),
    'safetensors_load_index_async': lambda: (index(), None, False, None, 0),
    'safetensors_save_async': lambda: ({'x': leaf()}, None, Gio.MemoryOutputStream.new_resizable(), 0),
    'safetensors_save_file_async': lambda: ({'x': leaf()}, None, file(), 0),
    'safetensors_save_index_async': lambda: (index(), ['x'], [leaf().detach()], None, 100, None, 0),
    'safetensors_save_lists_async': lambda: (
        ['x'], [leaf()], None, Gio.MemoryOutputStream.new_resizable(), 0,
    ),
    'safetensors_save_file_lists_async': lambda: (['x'], [leaf()], None, file(), 0),
}
FINISH = {
    'safetensors_save_lists_async': 'safetensors_save_finish',
    'safetensors_save_file_lists_async': 'safetensors_save_file_finish',
}
# These fail here: there is no bus, nothing was scaled, a rank sends nothing to itself, MPI has no groups without a
# rank, and the group no store; and where there is no MPI and no GdkPixbuf.
GLib.setenv('DBUS_SESSION_BUS_ADDRESS', 'unix:path=/nonexistent', True)
FAILS = (
    'Exporter.start_async', 'GradScaler.step_async', 'ProcessGroup.monitored_barrier_async',
    'ProcessGroup.recv_variant_async', 'ProcessGroup.send_variant_async', 'ProcessGroup.shrink_async',
    *(() if HAS_MPI else ('ProcessGroup.create_async',)),
    *(() if has_pictures() else ('image_load_file_async',)),
)
FOLDER = tempfile.TemporaryDirectory()


def stream(content):
    content = content if isinstance(content, GLib.Bytes) else GLib.Bytes.new(content)
    return Gio.MemoryInputStream.new_from_bytes(content)


def written(write):
    """What write () puts into a stream."""
    to = Gio.MemoryOutputStream.new_resizable()
    write(to)
    to.close()
    return to.steal_as_bytes()


def array():
    return written(lambda to: GTorch.npy_save(GTorch.ones(3, device='cpu'), to, None))


def arrays():
    return written(lambda to: GTorch.npz_save(table(), False, to, None))


def checkpoint():
    """A state dictionary as torch.save() writes it."""
    to = io.BytesIO()
    GTorch.save({'x': GTorch.ones(3, device='cpu')}, to)
    return to.getvalue()


def tokenizer():
    return GTorch.Tokenizer.train_bpe(['abc'], 256)


def pictures():
    """A folder of images of one class, which are listed only."""
    folder = pathlib.Path(FOLDER.name) / 'pictures'
    (folder / 'cat').mkdir(parents=True, exist_ok=True)
    (folder / 'cat' / '1.png').touch()
    return Gio.File.new_for_path(str(folder))


def saved():
    stream = Gio.MemoryOutputStream.new_resizable()
    GTorch.safetensors_save({'x': leaf().detach()}, None, stream, None, None)
    stream.close()
    return stream.steal_as_bytes()


def file(content=None):
    found = Gio.File.new_for_path(f'{FOLDER.name}/file')
    if content is not None:
        data = content.get_data() if isinstance(content, GLib.Bytes) else content
        found.replace_contents(data, None, False, Gio.FileCreateFlags.NONE, None)
    return found


def index():
    """An index of files that have one tensor."""
    found = Gio.File.new_for_path(f'{FOLDER.name}/x.index.json')
    if not found.query_exists(None):
        GTorch.safetensors_save_index(found, ['x'], [leaf().detach()], None, 100, None, None)
    return found


def functions():
    """Yields the name of each function, and its owner; what works of groups do only where groups are."""
    for name in dir(RAW):
        value = getattr(RAW, name, None)
        if name.endswith('_async'):
            yield name, None
        elif isinstance(value, type):
            if name in ('ProcessGroup', 'Work') and not HAS_MPI:
                continue
            # A class of the overrides is derived from that of the typelib.
            members = {own: one for cls in value.__mro__ if cls.__name__ == name for own, one in vars(cls).items()}
            for own in members:
                if own.endswith('_async') and hasattr(inspect.unwrap(members[own]), 'get_arguments'):
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


def refuses(args, *pair_of):
    raises(TypeError, 'awaitable()', GTorch.awaitable, *pair_of, *args)


@tap.case
def wrong_argument_counts_are_refused_at_the_call():
    async def main():
        n_checked = 0
        for name, owner in functions():
            right = ARGUMENTS.get(name, tuple)()
            for n in range(len(right) + 4):
                if n != len(right):
                    refuses((*right, None, None, None, None)[:n], *pair(name, owner))
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
        refuses((), begin, finish)
        refuses((event, None), begin, finish)

    run(main())


@tap.case
def functions_of_other_libraries_are_counted_too():
    async def main():
        there = file(GLib.Bytes.new(b'text'))
        assert (await GTorch.awaitable(there.load_contents_async, there.load_contents_finish))[1] == b'text'
        refuses((None,), there.load_contents_async, there.load_contents_finish)
        refuses((), there.get_path, there.load_contents_finish)

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


@tap.case
def a_cancelled_future_cancels_the_operation():
    async def main():
        x, net = GTorch.ones(4, 2), GTorch.nn.Linear(2, 1)
        optimizer = GTorch.optim.SGD(net.parameters(), lr=0.1)
        made = GTorch.Trainer(net, [(x, GTorch.zeros(4, 1))], GTorch.nn.MSELoss(), optimizer, n_epochs=10**9)
        try:
            await asyncio.wait_for(GTorch.awaitable(made.run_async, made.run_finish), 0.1)
            raise AssertionError('the run has ended')
        except asyncio.TimeoutError:
            pass
        for _ in range(LIMIT * 100):
            if not made.is_running():
                break
            await asyncio.sleep(0.01)
        assert not made.is_running()
        made.n_epochs = made.epoch + 1
        await GTorch.awaitable(made.run_async, made.run_finish)

    run(main())


if __name__ == '__main__':
    tap.main()
