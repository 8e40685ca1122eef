# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What test_leaks.py calls of files, loaders, trainers, stores, tokenizers and groups of processes."""

import functools
import io
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

from gi.overrides import _gtorch_arrow as arrow  # noqa: E402
from gi.repository import Gio, GLib, GTorch  # noqa: E402

import tap  # noqa: E402

nn = GTorch.nn
BYTES = 4096 * 4
FILE = Gio.File.new_for_path(os.path.join(os.environ.get('TMPDIR', '/tmp'), f'gtorch-leaks-{os.getpid()}'))
SAMPLE = GTorch.Sample


def tensor():
    return GTorch.ones([BYTES // 4])


def wait(begin, finish):
    """Calls begin (…, callback, data) and returns finish () of the result."""
    loop, results = GLib.MainLoop(), []

    def done(_source, result, *_data):
        results.append(result)
        loop.quit()

    begin(done)
    loop.run()
    return finish(results[0])


def stream():
    return Gio.MemoryOutputStream.new_resizable()


class Rows(GTorch.Dataset):
    def get_length(self):
        return 3

    def get_item(self, index, cancellable):
        return SAMPLE.new_tensor(tensor())


def written(write):
    """What write () puts into a stream, as another stream."""
    out = stream()
    write(out)
    out.close(None)
    return Gio.MemoryInputStream.new_from_bytes(out.steal_as_bytes())


def columns():
    made = GTorch.Table.new()
    made.add('a', tensor())
    return made


def arrow_reader():
    address = arrow._structure(arrow.STREAM)
    GTorch.arrow_export_stream(columns(), address)
    return GTorch.ArrowReader.new(address)


def csv_reader():
    text = b'x\n' + b'1\n' * (BYTES // 4)
    return GTorch.CSVReader.new(Gio.MemoryInputStream.new_from_bytes(GLib.Bytes.new(text)))


def checkpoint():
    out = io.BytesIO()
    GTorch.save({'a': tensor()}, out)
    return GLib.Bytes.new(out.getvalue())


def checkpoint_writer():
    made = GTorch.CheckpointWriter.new()
    made.add_tensor(tensor())
    return made


def in_file(content):
    FILE.replace_contents(content.get_data(), None, False, Gio.FileCreateFlags.NONE, None)
    return FILE


def completes(owner, name, *args):
    """Calls NAME_async () of what owner () gives, and lets NAME_finish () give the result."""

    def call():
        made = owner()
        given = [value() if callable(value) else value for value in args]
        wait(lambda done: getattr(made, f'{name}_async')(*given, None, done), getattr(made, f'{name}_finish'))

    return call


def ends(*call):
    """The same of what fails: a single process has nobody to exchange messages with."""
    complete = completes(*call)

    def end():
        try:
            complete()
        except GLib.Error:
            pass

    return end


def trainer(**options):
    net = nn.Linear(64, 1)
    batches = [(GTorch.ones(64, 64), GTorch.ones(64, 1))]
    return GTorch.Trainer(net, batches, nn.MSELoss(), GTorch.optim.SGD(net.parameters(), lr=0.1), **options)


def store():
    made = GTorch.HashStore.new()
    made.set('key', GLib.Bytes.new(b'value'), None)
    return made


def of_class(name):
    return lambda: getattr(GTorch, name)


def library():
    return GTorch


# What is begun, and done in a thread of the library.
BEGUN = {
    'arrow_reader_read_table': completes(arrow_reader, 'read_table', 0),
    'csv_reader_read_table': completes(csv_reader, 'read_table', 0, 0),
    'csv_reader_read_tensor': completes(csv_reader, 'read_tensor', 0, 0),
    'checkpoint_file_load': completes(
        of_class('CheckpointFile'), 'load', lambda: Gio.MemoryInputStream.new_from_bytes(checkpoint()), 0, 0),
    'checkpoint_file_load_file': completes(
        of_class('CheckpointFile'), 'load_file', lambda: in_file(checkpoint()), False, 0, 0),
    'checkpoint_writer_save_file': completes(checkpoint_writer, 'save_file', 0, FILE, 0),
    'data_loader_iter_next': completes(
        lambda: GTorch.DataLoader(dataset=Rows(), batch_size=2).iterate(), 'next'),
    'data_loader_run': completes(lambda: GTorch.DataLoader(dataset=Rows(), batch_size=2), 'run'),
    'npy_load': completes(
        library, 'npy_load', lambda: written(lambda out: GTorch.npy_save(tensor(), out, None)), 0, 0),
    'npy_load_file': lambda: (
        GTorch.npy_save_file(tensor(), FILE, None), completes(library, 'npy_load_file', FILE, False, 0, 0)()),
    'npy_save': completes(library, 'npy_save', tensor, stream, 0),
    'npy_save_file': completes(library, 'npy_save_file', tensor, FILE, 0),
    'npz_load': completes(
        library, 'npz_load', lambda: written(lambda out: GTorch.npz_save(columns(), False, out, None)), 0, 0),
    'npz_load_file': lambda: (
        GTorch.npz_save_file(columns(), True, FILE, None), completes(library, 'npz_load_file', FILE, False, 0, 0)()),
    'npz_save': completes(library, 'npz_save', columns, True, stream, 0),
    'npz_save_file': completes(library, 'npz_save_file', columns, True, FILE, 0),
    'trainer_run': completes(trainer, 'run'),
}


def has_pictures():
    try:
        GTorch.image_encode(GTorch.zeros((3, 1, 1), dtype=GTorch.uint8), 'png', 100)
    except GLib.Error:
        return False
    return True


def picture():
    if not has_pictures():
        raise tap.Skip('there is no GdkPixbuf')
    return in_file(GTorch.image_encode(GTorch.zeros((3, 1, 1), dtype=GTorch.uint8), 'png', 100))


@functools.cache
def group():
    if not GTorch.ProcessGroup.is_available('mpi'):
        raise tap.Skip('there is no MPI')
    return GTorch.ProcessGroup.new('mpi', None, 0, 1, 30.0, None)


def work():
    return group().all_reduce(GTorch.ones(2), GTorch.ReduceOp.SUM)


def trained():
    trainer().save_checkpoint(FILE)
    return FILE


LOADER, STORE = GTorch.DataLoader(dataset=Rows(), batch_size=2), store()
TRAINER = trainer()
RAW_TRAINER = GTorch.Trainer.__base__
PICTURE = GTorch.zeros(1, 2, 2, dtype=GTorch.uint8)
TOKENS = GTorch.Tokenizer.train_bpe(['abc'], 256)
# What PyGObject calls, by the name in C: each leaves no more than LITTLE bytes, among them the array of the types of a
# function's arguments, which libgirepository 1.74 leaves.
LITTLE = 512
LEAVE_LITTLE = {
    **{f'{name}_async': call for name, call in BEGUN.items()},
    'data_loader_set_collate': lambda: LOADER.set_collate(print),
    'data_loader_set_worker_init': lambda: LOADER.set_worker_init(print),
    'fetcher_set_collate': lambda: GTorch.Fetcher.new(Rows(), True).set_collate(print),
    'image_load_file_async': completes(library, 'image_load_file', picture, GTorch.ImageMode.RGB, False, 0, 0),
    'image_save_file_async': completes(library, 'image_save_file', PICTURE, FILE, 'png', 75, 0),
    'sample_collate_with': lambda: SAMPLE.collate_with(
        [SAMPLE.new_tensor(GTorch.ones(2))], lambda _dtype, _shape: GTorch.empty(1, 2)),
    'sample_map_tensors': lambda: SAMPLE.new_tensor(GTorch.ones(2)).map_tensors(lambda x: x),
    'store_add_async': completes(lambda: STORE, 'add', 'number', 1),
    'store_get_async': completes(lambda: STORE, 'get', 'key'),
    'store_set_async': completes(lambda: STORE, 'set', 'other', GLib.Bytes.new(b'x')),
    'store_wait_async': completes(lambda: STORE, 'wait', ['key'], 30.0),
    'tcp_store_create_async': completes(
        of_class('TcpStore'), 'create', 'localhost', 0, 1, True, 30.0, False, None),
    'tokenizer_load_file_async': completes(
        of_class('Tokenizer'), 'load_file', lambda: in_file(TOKENS.to_bytes()), 0),
    'tokenizer_train_bpe_async': completes(of_class('Tokenizer'), 'train_bpe', ['abc'], 256, 1, None, False),
    'trainer_set_training_step': lambda: TRAINER.set_training_step(print),
    'trainer_set_validation_step': lambda: TRAINER.set_validation_step(print),
    'trainer_set_save_function': lambda: RAW_TRAINER.set_save_function(TRAINER, print),
    'trainer_set_load_function': lambda: RAW_TRAINER.set_load_function(TRAINER, print),
    'trainer_save_checkpoint_async': completes(trainer, 'save_checkpoint', FILE, 0),
    'trainer_load_checkpoint_async': completes(trainer, 'load_checkpoint', trained, 0),
    'trainer_resume_async': completes(lambda: trainer(checkpoint_folder=f'{FILE.get_path()}.d'), 'resume', 0),
    'tokenizer_save_async': completes(lambda: TOKENS, 'save', FILE, 0),
    'image_folder_create_async': ends(of_class('ImageFolder'), 'create', FILE, None, GTorch.ImageMode.RGB, 0),
    'store_append_async': completes(lambda: STORE, 'append', 'other', GLib.Bytes.new(b'')),
    'store_check_async': completes(lambda: STORE, 'check', ['key']),
    'store_compare_set_async': completes(lambda: STORE, 'compare_set', 'key', GLib.Bytes.new(b'value'),
                                         GLib.Bytes.new(b'value')),
    'store_count_keys_async': completes(lambda: STORE, 'count_keys'),
    'store_delete_key_async': completes(lambda: STORE, 'delete_key', 'gone'),
    'process_group_all_gather_variant_async': completes(group, 'all_gather_variant', GLib.Variant('s', 'x')),
    'process_group_bind_device_async': completes(group, 'bind_device', GTorch.Device('cpu')),
    'process_group_broadcast_variant_async': completes(group, 'broadcast_variant', GLib.Variant('s', 'x'), 0),
    'process_group_gather_variant_async': completes(group, 'gather_variant', GLib.Variant('s', 'x'), 0),
    'process_group_scatter_variant_async': completes(
        group, 'scatter_variant', GLib.Variant('av', [GLib.Variant('s', 'x')]), 0),
    'process_group_monitored_barrier_async': ends(group, 'monitored_barrier', 30.0),
    'process_group_recv_variant_async': ends(group, 'recv_variant', 0, 0),
    'process_group_send_variant_async': ends(group, 'send_variant', GLib.Variant('s', 'x'), 0, 0),
    'process_group_shrink_async': ends(group, 'shrink', [0]),
    'work_wait_async': completes(work, 'wait'),
}
