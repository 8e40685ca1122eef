// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Files of NumPy, text with delimiters and PyTorch's checkpoints; the stores of several processes.

import Gio from 'gi://Gio';
import GLib from 'gi://GLib';
import GTorch from 'gi://GTorch?version=1';

import * as tap from './tap.js';

const HERE = GLib.path_get_dirname(GLib.Uri.parse(import.meta.url, GLib.UriFlags.NONE).get_path());
const LABELS = [[1, 0, 3], [0, 1, 2]];

function data(name) {
    return Gio.File.new_for_path(GLib.build_filenamev([HERE, '..', 'io', 'data', name]));
}

function text(content) {
    return Gio.MemoryInputStream.new_from_bytes(new GLib.Bytes(new TextEncoder().encode(content)));
}

tap.add('arrays_are_read_and_written', () => {
    const array = GTorch.npy_load_file(data('f8-big.npy'), false, 0, null);
    tap.equal(array.toArray(), LABELS);
    const stream = Gio.MemoryOutputStream.new_resizable();
    GTorch.npy_save(array, stream, null);
    stream.close(null);
    tap.equal(GTorch.npy_load_bytes(stream.steal_as_bytes()).toArray(), LABELS);
    tap.throws(() => GTorch.npy_load_file(data('objects.npy'), false, 0, null),
        error => error.matches(GTorch.Error, GTorch.Error.NOT_SUPPORTED));
});

tap.add('archives_are_tables', () => {
    const table = GTorch.npz_load_file(data('compressed.npz'), false, 0, null);
    tap.equal(table.get_length(), 4);
    tap.equal(table.get_name(1), 'y');
    tap.equal(table.lookup('x').toArray(), LABELS);
    tap.throws(() => table.lookup('w'), error => error.matches(GTorch.Error, GTorch.Error.NOT_FOUND));
});

tap.add('text_is_read_in_blocks', () => {
    const reader = GTorch.CSVReader.new(text('a;b\n1;2\n3;4\n5;6\n'));
    reader.set_delimiter(';');
    reader.set_dtype(GTorch.DType.INT64);
    tap.equal(reader.read_tensor(2, null).toArray(), [[1, 2], [3, 4]]);
    tap.equal(reader.read_table(2, null).lookup('b').toArray(), [6]);
    tap.equal(reader.read_table(2, null), null);
    const wrong = GTorch.CSVReader.new(text('a\nx\n'));
    tap.throws(() => wrong.read_table(0, null), error => error.message.includes('line 2, column 1'));
});

tap.add('settings_are_fixed_when_reading_has_begun', () => {
    const reader = GTorch.CSVReader.new(text('a;b\n1;2\n3;4\n'));
    tap.throws(() => {
        reader.delimiter = 'ab';
    }, error => error.message.includes('must be one character'));
    reader.delimiter = ';';
    reader.dtype = 'int64';
    reader.maxBytes = 2 ** 20;
    tap.equal([reader.delimiter, reader.dtype, reader.max_bytes], [';', GTorch.int64, 2 ** 20]);
    tap.equal(reader.read_tensor(1).toArray(), [[1, 2]]);
    for (const [name, value] of [['delimiter', ','], ['quote', "'"], ['has_header', false],
        ['hasHeader', false],
        ['skip_rows', 2], ['missing', 0], ['dtype', GTorch.float32], ['max_bytes', 5], ['max-bytes', 5]]) {
        tap.throws(() => {
            reader[name] = value;
        }, error => error.matches(GTorch.Error, GTorch.Error.INVALID) &&
            error.message.includes('cannot be changed any more: reading has begun'));
    }
    tap.equal(reader.read_tensor(1).toArray(), [[3, 4]]);
    const monitor = GTorch.DeviceMonitor.new(GTorch.Device.cpu());
    tap.throws(() => {
        monitor.interval = 0;
    }, error => error.message.includes('interval must be from 100 to 3600000, not 0'));
});

tap.add('checkpoints_are_trees', () => {
    const checkpoint = GTorch.CheckpointFile.load_file(data('state.pt'), false, 0, null);
    const tensors = checkpoint.get_tensors();
    tap.equal(tensors.get_name(0), '0.weight');
    const weight = tensors.lookup('0.weight').add(0.1).toArray();
    tap.equal(weight.map(row => row.map(Math.round)), [[0, 1], [2, 3], [4, 5]]);
    const root = GTorch.CheckpointFile.load_file(data('nested.pt'), true, 0, null).get_root();
    tap.equal(root.lookup('epoch').get_int(), 7);
    tap.equal(root.lookup('name').get_text(), 'näme');
    tap.equal(root.lookup('flags').get_kind(), GTorch.CheckpointKind.TUPLE);
    tap.equal(root.lookup('optimizer').lookup('param_groups').get_child(0).lookup('lr').get_double(), 0.1);
});

tap.add('checkpoints_are_written', () => {
    const {DICT, LIST} = GTorch.CheckpointKind;
    const writer = GTorch.CheckpointWriter.new();
    const epochs = writer.add_container(LIST, [writer.add_int(3), writer.add_double(0.5)]);
    const root = writer.add_container(DICT, [
        writer.add_string('x'), writer.add_tensor(GTorch.ones([2])), writer.add_string('epochs'), epochs,
    ]);
    const stream = Gio.MemoryOutputStream.new_resizable();
    tap.assert(writer.save(root, stream, null));
    stream.close(null);
    const bytes = stream.steal_as_bytes();
    const read = GTorch.CheckpointFile.load_bytes(bytes, 0).get_root();
    tap.equal(read.lookup('x').get_tensor().toArray(), [1, 1]);
    tap.equal(read.lookup('epochs').get_child(1).get_double(), 0.5);
    tap.throws(() => writer.add_container(DICT, [epochs, root]), error => error.message.includes('no key'));
});

tap.add('promises_are_kept', async () => {
    const array = await GTorch.npy_load_file_async(data('f4.npy'));
    tap.equal(array.toArray(), LABELS);
    const table = await GTorch.npz_load_file_async(data('stored.npz'));
    tap.equal(table.get_length(), 3);
    const stream = Gio.MemoryOutputStream.new_resizable();
    tap.assert(await GTorch.npz_save_async(table, true, stream));
    const checkpoint = await GTorch.CheckpointFile.load_file_async(data('single.pt'));
    tap.equal(checkpoint.get_root().get_tensor().toArray(), [0, 1, 2]);
    const reader = GTorch.CSVReader.new(text('a\n1\n'));
    tap.equal((await reader.read_table_async()).lookup('a').toArray(), [1]);
    tap.equal(await reader.read_table_async(), null);
    const cancellable = new Gio.Cancellable();
    cancellable.cancel();
    let failed = false;
    try {
        await GTorch.npy_load_file_async(data('f4.npy'), false, 0, 0, cancellable);
    } catch (error) {
        failed = error.matches(Gio.IOErrorEnum, Gio.IOErrorEnum.CANCELLED);
    }
    tap.assert(failed);
});

tap.add('stores_give_promises', async () => {
    const bytes = content => new GLib.Bytes(new TextEncoder().encode(content));
    const server = await GTorch.TcpStore.create_async('127.0.0.1', 0, 1, {
        is_server: true, timeout: 10, wait_for_workers: false,
    });
    for (const store of [GTorch.HashStore.new(), server]) {
        const found = store.get_async('key');
        tap.assert(await store.set_async('key', bytes('value')));
        tap.equal(new TextDecoder().decode((await found).toArray()), 'value');
        tap.assert(await store.wait_async(['key'], 5));
        const sum = await store.add_async('n', 3);
        tap.equal(sum, 3);
        let message = '';
        try {
            await store.wait_async(['key', 'none'], 0);
        } catch (error) {
            ({message} = error);
        }
        tap.assert(message.includes('of 2 keys “none” is not there'), message);
    }
    tap.throws(() => GTorch.ProcessGroup.create_async({rank: 0}), error => error instanceof TypeError &&
        error.message.includes('backend is missing'));
});

await tap.run();
