// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// What programs may give in place of objects, or leave out: paths for files, names for devices, texts for
// bytes, arrays for sizes; and samples are values wherever a loader or a data set gives them.

import GLib from 'gi://GLib';
import GObject from 'gi://GObject';
import Gio from 'gi://Gio';
import GTorch from 'gi://GTorch?version=1';
import * as tap from './tap.js';

const {add, assert, equal, throws} = tap;
const folder = GLib.dir_make_tmp('gtorch-simpler-XXXXXX');
const path = name => GLib.build_filenamev([folder, name]);
const text = bytes => new TextDecoder().decode(bytes.toArray());
const says = (kind, words) => error => error instanceof kind && error.message.includes(words);
const tensors = () => new GTorch.TensorDataset([GTorch.arange(6), GTorch.arange(6).mul(2)]);
const {nn} = GTorch;

add('files are paths', async () => {
    const x = GTorch.arange(3);
    GTorch.npy_save_file(x, path('a.npy'));
    equal(GTorch.npy_load_file(path('a.npy')).tolist(), [0, 1, 2]);
    equal((await GTorch.npy_load_file_async(path('a.npy'))).tolist(), [0, 1, 2]);
    await GTorch.npy_save_file_async(x, path('b.npy'));
    equal(GTorch.npy_load_file(Gio.File.new_for_path(path('b.npy'))).tolist(), [0, 1, 2]);
    const tokenizer = GTorch.Tokenizer.train_bpe(['low lower'], 260);
    tokenizer.save(path('t.json'));
    equal((await GTorch.Tokenizer.load_file_async(path('t.json'))).vocab_size, tokenizer.vocab_size);
    const loader = new GTorch.DataLoader(tensors(), 3);
    const log = new GTorch.CSVLog(path('log.csv'));
    assert(log.write(1, ['loss'], [0.5]) && log.flush());
    assert(GLib.file_test(path('log.csv'), GLib.FileTest.EXISTS));
    const optimizer = new GTorch.optim.SGD(new nn.Linear(1, 1).parameters(), {lr: 0.1});
    const trainer = new GTorch.Trainer({
        module: new nn.Linear(1, 1), loader, optimizer, checkpoint_folder: path('checkpoints'),
    });
    equal(trainer.checkpoint_folder.get_path(), path('checkpoints'));
    trainer.checkpoint_folder = path('others');
    equal(trainer.checkpoint_folder.get_path(), path('others'));
    throws(() => GTorch.npy_load_file(5),
        says(TypeError, 'npy_load_file: file must be a Gio.File or a path, not number 5'));
    throws(() => GTorch.npy_load_file('a\0b'), says(TypeError, 'must be a Gio.File or a path'));
    throws(() => GTorch.npy_load_file(path('none')),
        error => error.matches(Gio.IOErrorEnum, Gio.IOErrorEnum.NOT_FOUND));
    throws(() => new GTorch.CSVLog(5), says(TypeError, 'CSVLog: file must be a GFile or null, not number 5'));
});

add('devices are names', () => {
    const loader = new GTorch.DataLoader({dataset: tensors(), device: 'cpu'});
    assert(loader.device === GTorch.Device.cpu());
    throws(() => new GTorch.DataLoader({dataset: tensors(), device: true}),
        says(TypeError, 'DataLoader: device'));
});

add('bytes are texts', async () => {
    const store = GTorch.HashStore.new();
    store.set('a', 'größe');
    equal(text(store.get('a')), 'größe');
    store.set('b', new Uint8Array([104, 105]));
    equal(text(await store.get_async('b')), 'hi');
    await store.set_async('c', 'later');
    equal(text(store.compare_set('c', 'later', 'now')), 'now');
    throws(() => store.set('a', 5),
        says(TypeError, 'set: value must be a GLib.Bytes, a Uint8Array or a text'));
    throws(() => store.check('a'), says(TypeError, 'check: keys must be an array, not string a'));
});

add('sizes are arrays', () => {
    const Backwards = GObject.registerClass({GTypeName: 'SimplerBackwards'},
        class extends GTorch.Sampler {
            get_length() {
                return 3;
            }

            iterate() {
                return GTorch.IndexSource.new([2, 1, 0]);
            }
        });
    const loader = new GTorch.DataLoader({dataset: tensors(), sampler: new Backwards()});
    equal([...loader].map(([x]) => x.item()), [2, 1, 0]);
    throws(() => GTorch.IndexSource.new('a'), says(TypeError, 'IndexSource.new: indices'));
});

add('arguments with a default may be left out', async () => {
    const store = GTorch.HashStore.new();
    equal([store.add('n', 2), await store.add_async('n', 1), store.check(['n', 'm'])], [2, 3, false]);
    equal([store.count_keys(), store.delete_key('n'), store.delete_key('n')], [1, true, false]);
    store.set_timeout(0.01);
    throws(() => store.wait(['none']), error => error.matches(Gio.IOErrorEnum, Gio.IOErrorEnum.TIMED_OUT));
    throws(() => store.wait(['none'], {timeout: 0}),
        error => error.matches(Gio.IOErrorEnum, Gio.IOErrorEnum.TIMED_OUT));
    const server = new GTorch.TcpStore('127.0.0.1', 0, {is_server: true, wait_for_workers: false});
    const client = await GTorch.TcpStore.create_async('127.0.0.1', server.port, {wait_for_workers: false});
    client.set('k', 'v');
    equal(text(server.get('k')), 'v');
    equal((await GTorch.Tokenizer.train_bpe_async(['a b'], 258)).encode('a').length, 1);
    const optimizer = new GTorch.optim.SGD(new nn.Linear(1, 1).parameters(), {lr: 0.1});
    const loader = GTorch.DataLoader.new(tensors());
    const trainer = GTorch.Trainer.new(new nn.Linear(1, 1), loader, null, optimizer);
    assert(trainer.add_scheduler(new GTorch.optim.lr_scheduler.StepLR(optimizer, 1)));
    throws(() => store.set('a'), says(TypeError, 'set: value is missing'));
    throws(() => store.get('a', {cancelable: null}), says(TypeError, 'get: there is no option cancelable'));
    throws(() => store.get('a', null, 3), says(TypeError, 'arguments were given'));
});

add('constructors take arguments by position', () => {
    equal(new GTorch.DataLoader(tensors(), 4, {num_workers: 2, drop_last: true}).length, 1);
    equal(new GTorch.RandomSampler(7, true).replacement, true);
    equal(new GTorch.Accuracy(3).top_k, 3);
    const optimizer = new GTorch.optim.SGD(new nn.Linear(1, 1).parameters(), {lr: 0.1});
    const [module, loss] = [new nn.Linear(1, 1), new nn.MSELoss()];
    const loader = new GTorch.DataLoader(tensors());
    const trainer = new GTorch.Trainer(module, loader, loss, optimizer, {n_epochs: 2});
    assert(trainer.loss_module === loss && trainer.n_epochs === 2 && !trainer.threaded);
    throws(() => new GTorch.DataLoader(tensors(), 4, {batch_size: 2}),
        says(TypeError, 'DataLoader: batch_size is given by position and by name'));
    throws(() => new GTorch.DataLoader(tensors(), 4, false, 3), says(TypeError, 'it takes 3'));
    throws(() => new GTorch.DataLoader(tensors(), {batchsize: 2}), says(TypeError, 'no property batchsize'));
    throws(() => new GTorch.DataLoader([1, 2]),
        says(TypeError, 'DataLoader: dataset must be a GTorchDataset'));
});

add('samples are values', async () => {
    const values = ([x, y]) => [x.tolist(), y.tolist()];
    const loader = new GTorch.DataLoader(tensors(), 3);
    const iter = loader.iterate();
    equal(values(iter.next()), [[0, 1, 2], [0, 2, 4]]);
    equal(values(await iter.next_async()), [[3, 4, 5], [6, 8, 10]]);
    equal(iter.next(), null);
    const rest = loader.iterate();
    rest.next();
    equal([...rest].map(values), [[[3, 4, 5], [6, 8, 10]]]);
    const later = [];
    for await (const batch of loader.iterate())
        later.push(values(batch));
    equal(later.length, 2);
    equal(values(tensors().get_item(2)), [2, 4]);
    equal(values(tensors().get_batch([1, 2])), [[1, 2], [2, 4]]);
    const heard = [];
    const id = loader.connect('batch', (self, batch) => heard.push(self === loader, values(batch)[1][0]));
    await loader.run_async();
    equal(heard, [true, 0, true, 6]);
    loader.disconnect(id);
    const module = new nn.Linear(2, 1);
    const optimizer = new GTorch.optim.SGD(module.parameters(), {lr: 0.1});
    const trainer = new GTorch.Trainer(module, loader, new nn.MSELoss(), optimizer);
    equal(trainer.training_step([GTorch.ones([3, 2]), GTorch.ones([3, 1])]).numel, 1);
    throws(() => trainer.training_step(undefined), says(TypeError, 'undefined'));
});

add('a null batch is a batch', () => {
    const loader = new GTorch.DataLoader(tensors(), 3);
    loader.set_collate(() => null);
    equal([...loader], [null, null]);
});

add('fractions split a data set', () => {
    equal(GTorch.random_split(tensors(), [0.5, 0.5]).map(part => part.length), [3, 3]);
    const generator = GTorch.Generator.new_with_seed(1);
    equal(GTorch.random_split(tensors(), [4, 2], generator).map(one => one.length), [4, 2]);
    throws(() => GTorch.random_split(tensors(), [0.5, 0.1]), says(TypeError, 'must be an integer'));
});

add('properties do not call a check that takes arguments', () => {
    const store = GTorch.HashStore.new();
    store.timeout = 5;
    equal(store.timeout, 5);
});

add('a number out of the range of a property is refused', () => {
    const allocator = GTorch.Device.cpu().get_allocator();
    const store = GTorch.HashStore.new();
    for (const [object, name, value] of [
        [allocator, 'memory_fraction', -1], [allocator, 'memory_fraction', NaN],
        [allocator, 'gc_threshold', -1], [store, 'timeout', -1],
    ]) {
        const former = object[name];
        throws(() => (object[name] = value), says(RangeError, `${name} must be `));
        equal(object[name], former);
        object[name] = former;
    }
});

add('classes without a name have that of their type', () => {
    const Nameless = GObject.registerClass({GTypeName: 'SimplerNameless'}, class extends GTorch.Dataset {
        get_length() {
            return 'many';
        }
    });
    throws(() => [...new GTorch.DataLoader({dataset: new Nameless()})],
        says(TypeError, 'SimplerNameless: get_length()'));
});

await tap.run();
