// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Data sets, samplers and loaders.

import Gio from 'gi://Gio';
import GLib from 'gi://GLib';
import GObject from 'gi://GObject';
import GTorch from 'gi://GTorch?version=1';
import {add, assert, equal, run, throws} from './tap.js';

const Squares = GObject.registerClass(class Squares extends GTorch.Dataset {
    get_length() {
        return 5;
    }

    get_item(i) {
        if (i === this.bad)
            throw new RangeError(`no sample ${i}`);
        const x = GTorch.tensor([i, 2 * i]);
        return {x, square: i * i, half: i / 2 + 0.25, name: `n${i}`, pair: [i, true]};
    }
});

const Countdown = GObject.registerClass(class Countdown extends GTorch.IterableDataset {
    * iterate(worker, nWorkers) {
        equal([worker, nWorkers], [0, 1]);
        for (let i = 4; i >= 0; i--)
            yield [i, `t${i}`];
    }
});

const Odd = GObject.registerClass(class Odd extends GTorch.Sampler {
    get_length() {
        return 2;
    }

    iterate(_epoch) {
        return [3, 1];
    }
});

const Groups = GObject.registerClass(class Groups extends GTorch.Sampler {
    get_length() {
        return 2;
    }

    * iterate(_epoch) {
        yield [4, 0];
        yield [2];
    }
});

function tensors() {
    const x = GTorch.arange(12).view([6, 2]);
    return GTorch.TensorDataset.new([x, GTorch.arange(6)]);
}

const ints = tensor => tensor.tolist();

add('samples are arrays and objects', () => {
    const value = {a: [1, 2.5, 'x', true, null], b: {c: -3}};
    equal(GTorch.Sample.of(value).unpack(), value);
    equal(GTorch.Sample.of([1, 2.5]).to_string(), '(1, 2.5)');
    const x = GTorch.tensor([1, 2]);
    assert(GTorch.Sample.of(x).unpack() === x);
    equal(GTorch.Sample.of(new Float32Array([1, 2])).unpack().tolist(), [1, 2]);
    equal(GTorch.Sample.of(2n ** 40n).unpack(), 2 ** 40);
    throws(() => GTorch.Sample.of([1, {a: undefined}]),
        error => error instanceof TypeError && error.message.includes('the value[1].a is undefined'));
    throws(() => GTorch.Sample.of(() => 1), error => error instanceof TypeError);
});

add('collate makes tensors of parts', () => {
    const batch = GTorch.Sample.collate([[1, {x: 2.5}, 'a'], [3, {x: 4}, 'b']]).unpack();
    equal(ints(batch[0]), [1, 3]);
    equal(batch[0].dtype, GTorch.int64);
    equal(ints(batch[1].x), [2.5, 4]);
    equal(batch[1].x.dtype, GTorch.float64);
    equal(batch[2], ['a', 'b']);
    throws(() => GTorch.Sample.collate([[1, 2], [1]]),
        error => error.matches(GTorch.Error, GTorch.Error.INVALID) &&
            error.message === 'collate: sample 0 is a tuple of 2, and sample 1 a tuple of 1: ' +
                'the lengths must be equal');
});

add('for reads a loader of tensors', () => {
    const found = [];
    for (const [x, y] of new GTorch.DataLoader({dataset: tensors(), batch_size: 4, num_workers: 2}))
        found.push([x.shape, ints(y)]);
    equal(found, [[[4, 2], [0, 1, 2, 3]], [[2, 2], [4, 5]]]);
});

add('a shuffled loader follows its generator', () => {
    const generator = GTorch.Generator.new_with_seed(3);
    const loader = new GTorch.DataLoader({dataset: tensors(), batch_size: 6, shuffle: true, generator});
    const read = () => [...loader].map(batch => ints(batch[1]));
    const first = read();
    assert(JSON.stringify(first) !== JSON.stringify(read()));
    equal([...first[0]].sort(), [0, 1, 2, 3, 4, 5]);
    generator.set_seed(3);
    equal(read(), first);
});

add('for await reads a loader', async () => {
    for (const num_workers of [0, 2]) {
        const found = [];
        for await (const batch of new GTorch.DataLoader({dataset: tensors(), batch_size: 4, num_workers}))
            found.push(ints(batch[1]));
        equal(found, [[0, 1, 2, 3], [4, 5]]);
    }
});

add('break ends the epoch', async () => {
    const loader = new GTorch.DataLoader({dataset: tensors(), num_workers: 2, persistent_workers: true});
    for (const _batch of loader)
        break;
    equal(loader.position, 1);
    for await (const _batch of loader)
        break;
    equal([loader.position, loader.epoch], [1, 1]);
    equal([...loader].length, 6);
});

add('a class of the program is a data set', async () => {
    const dataset = new Squares();
    equal([dataset.length, dataset.thread_safe], [5, false]);
    equal(dataset.at(3).square, 9);
    equal(dataset.at(-1).name, 'n4');
    const loader = new GTorch.DataLoader({dataset, batch_size: 3});
    for (let round = 0; round < 2; round++) {
        const batches = [];
        if (round === 0)
            batches.push(...loader);
        else
            for await (const batch of loader)
                batches.push(batch);
        equal(batches.length, 2);
        const {x, square, half, name, pair} = batches[1];
        equal(x.tolist(), [[3, 6], [4, 8]]);
        equal(ints(square), [9, 16]);
        equal(ints(half), [1.75, 2.25]);
        equal(name, ['n3', 'n4']);
        equal(pair.map(ints), [[3, 4], [true, true]]);
    }
    equal([...dataset].map(one => one.square), [0, 1, 4, 9, 16]);
});

add('its exceptions come out of the loop', async () => {
    const dataset = new Squares();
    dataset.bad = 2;
    const loader = new GTorch.DataLoader({dataset});
    let n = 0;
    throws(() => {
        for (const _batch of loader)
            n++;
    }, error => error instanceof RangeError && error.message === 'no sample 2');
    equal(n, 2);
    let message = null;
    try {
        for await (const _batch of loader)
            n++;
    } catch (error) {
        message = error.message;
    }
    assert(message.includes('no sample 2'), message);
});

add('threads cannot use it', () => {
    throws(() => [...new GTorch.DataLoader({dataset: new Squares(), num_workers: 2})],
        error => error.matches(GTorch.Error, GTorch.Error.NOT_SUPPORTED) &&
            error.message.endsWith('Squares cannot be used by several threads'));
    throws(() => new GTorch.DataLoader({dataset: tensors(), num_workers: 1}).set_collate(x => x),
        error => error.message.includes('num_workers must be 0'));
});

add('generators are iterable data sets', () => {
    const dataset = new Countdown();
    equal([...dataset], [[4, 't4'], [3, 't3'], [2, 't2'], [1, 't1'], [0, 't0']]);
    const batches = [...new GTorch.DataLoader({dataset, batch_size: 2})];
    equal(batches.map(([x]) => ints(x)), [[4, 3], [2, 1], [0]]);
    equal(batches[0][1], ['t4', 't3']);
});

add('classes of the program are samplers', () => {
    const dataset = new Squares();
    equal([...new GTorch.DataLoader({dataset, sampler: new Odd()})].map(one => ints(one.square)), [[9], [1]]);
    equal([...new GTorch.DataLoader({dataset, batch_sampler: new Groups()})].map(one => ints(one.square)),
        [[16, 0], [4]]);
});

add('collate can be a function', () => {
    const loader = new GTorch.DataLoader({dataset: new Squares(), batch_size: 2});
    loader.set_collate(samples => samples.map(one => one.name).join('+'));
    equal([...loader], ['n0+n1', 'n2+n3', 'n4']);
});

add('run_async emits batches', async () => {
    const loader = new GTorch.DataLoader({dataset: tensors(), batch_size: 4, num_workers: 1});
    const found = [];
    loader.connect('batch', (_loader, batch) => found.push(ints(batch[1])));
    await loader.run_async(null);
    equal(found, [[0, 1, 2, 3], [4, 5]]);
    equal(loader.progress, 1);
    const cancellable = new Gio.Cancellable();
    cancellable.cancel();
    let cancelled = false;
    try {
        await loader.run_async(cancellable);
    } catch (error) {
        cancelled = error.matches(Gio.IOErrorEnum, Gio.IOErrorEnum.CANCELLED);
    }
    assert(cancelled);
});

add('states go on in the middle', () => {
    const make = () => new GTorch.DataLoader({dataset: tensors(), shuffle: true});
    const loader = make();
    const iter = loader.iterate();
    iter.next(null);
    iter.next(null);
    const state = loader.get_state();
    const rest = [];
    for (let one = iter.next(null); one !== null; one = iter.next(null))
        rest.push(ints(one[1]));
    const other = make();
    other.set_state(state);
    equal([...other].map(batch => ints(batch[1])), rest);
    throws(() => other.set_state(new GLib.Variant('s', 'x')),
        error => error.matches(GTorch.Error, GTorch.Error.FORMAT));
});

add('data sets are joined and split', () => {
    const [a, b] = [tensors(), tensors()];
    equal(GTorch.ConcatDataset.new([a, b]).length, 12);
    equal(ints(GTorch.ConcatDataset.new([a, b]).at(7)[0]), [2, 3]);
    equal(GTorch.StackDataset.new([a, b]).at(2)[1][1].item(), 2);
    equal(Object.keys(GTorch.StackDataset.new_with_keys(['p', 'q'], [a, b]).at(0)), ['p', 'q']);
    equal(GTorch.Subset.new(a, [5, 0]).at(0)[1].item(), 5);
    const parts = GTorch.random_split(a, [4, 2], GTorch.Generator.new_with_seed(1));
    equal(parts.map(part => part.length), [4, 2]);
    equal(GTorch.random_split_fractions(a, [0.5, 0.5], null).map(part => part.length), [3, 3]);
});

add('generators_are_closed_when_their_loop_is_left', async () => {
    const ended = [];
    const Watched = GObject.registerClass(class Watched extends GTorch.IterableDataset {
        * iterate() {
            try {
                for (let i = 0; i < 5; i++)
                    yield i;
            } finally {
                ended.push(this.name);
            }
        }
    });
    const named = name => Object.assign(new Watched(), {name});
    for (const sample of named('set')) {
        if (sample === 2)
            break;
    }
    equal(ended, ['set']);
    const loader = new GTorch.DataLoader({dataset: named('loader'), batch_size: 2});
    for (const _batch of loader)
        break;
    equal(ended, ['set', 'loader']);
    for await (const _batch of loader)
        break;
    equal(ended, ['set', 'loader', 'loader']);
    throws(() => {
        for (const _batch of loader)
            throw new RangeError('enough');
    }, error => error.message === 'enough');
    equal(ended.length, 4);
    const iter = loader.iterate();
    iter.next(null);
    iter.close();
    equal(ended.length, 5);
    for (const _batch of loader)
        ;
    equal(ended.length, 6);
});

add('iterable_sets_may_have_states', () => {
    const Kept = GObject.registerClass(class Kept extends GTorch.IterableDataset {
        * iterate() {
            for (this.at = this.from ?? 0, this.from = 0; this.at < 6;)
                yield this.at++;
        }

        get_state() {
            return new GLib.Variant('i', this.at);
        }

        set_state(state) {
            if (state.unpack() === 5)
                throw new RangeError('not from 5');
            this.from = state.unpack();
        }
    });
    const loader = new GTorch.DataLoader({dataset: new Kept(), batch_size: 0});
    const other = new GTorch.DataLoader({dataset: new Kept(), batch_size: 0});
    const iter = loader.iterate();
    const next = () => iter.next(null);
    equal([next(), next()], [0, 1]);
    other.set_state(loader.get_state());
    equal([...other], [2, 3, 4, 5]);
    const last = loader.iterate();
    for (let i = 0; i < 5; i++)
        last.next(null);
    throws(() => other.set_state(loader.get_state()), error => error.message === 'not from 5');
});

add('settings_of_loaders_are_fixed', () => {
    const loader = GTorch.DataLoader.new(GTorch.TensorDataset.new([GTorch.arange(8)]));
    equal([loader.batch_size, loader.shuffle, loader.length], [1, false, 8]);
    for (const name of ['batch_size', 'num_workers', 'shuffle', 'timeout', 'generator']) {
        throws(() => {
            loader[name] = loader[name];
        }, error => error.message.includes(name));
    }
    equal(GTorch.DataLoader.new(GTorch.TensorDataset.new([GTorch.arange(8)]), {batch_size: 4}).length, 2);
});

add('arguments_have_defaults', () => {
    const table = GTorch.Table.new();
    const file = Gio.File.new_for_path(GLib.build_filenamev([GLib.dir_make_tmp('gtorch-XXXXXX'), 'x']));
    table.add('x', GTorch.arange(3));
    GTorch.npz_save_file(table, false, file);
    equal(GTorch.npz_load_file(file).lookup('x').tolist(), [0, 1, 2]);
    equal(GTorch.npz_load_file(file, {map: true}).lookup('x').tolist(), [0, 1, 2]);
    GTorch.npy_save_file(GTorch.arange(2), file);
    equal(GTorch.npy_load_file(file).tolist(), [0, 1]);
    throws(() => GTorch.npy_load_file(file, {maps: true}), error => error.message.includes('maps'));
    throws(() => GTorch.npy_load_file(), error => error.message.includes('file is missing'));
    throws(() => GTorch.npy_load_file(file, false, 0, null, 5), error => error instanceof TypeError);
    const tokenizer = GTorch.Tokenizer.train_bpe(['a b a b', 'b a'], 300, {min_frequency: 1});
    equal(tokenizer.decode(tokenizer.encode('a b')), 'a b');
    tokenizer.enable_truncation(2);
    tokenizer.enable_padding({length: 4});
    tokenizer.save(file);
    equal(GTorch.Tokenizer.load_file(file).get_vocab_size(), tokenizer.get_vocab_size());
    const parts = GTorch.random_split(GTorch.TensorDataset.new([GTorch.arange(5)]), [2, 3]);
    equal(parts.map(one => one.length), [2, 3]);
    equal(GTorch.RandomSampler.new(3).get_length(), 3);
    equal(GTorch.TensorDataset.new([GTorch.arange(5)]).get_item(2)[0].item(), 2);
    file.delete(null);
    file.get_parent().delete(null);
});

add('nulls_are_refused_where_gjs_would_end_the_program', () => {
    const tokenizer = GTorch.Tokenizer.train_bpe(['a b a b'], 300);
    const wrong = [null, {}, new Gio.Cancellable(), 5, undefined];
    for (const result of wrong) {
        for (const name of ['to_doubles_finish', 'to_ints_finish'])
            throws(() => GTorch.arange(2)[name](result), error => error instanceof TypeError);
    }
    for (const text of [null, undefined, 5])
        throws(() => tokenizer.encode(text), error => error instanceof TypeError);
});

add('texts_with_a_nul_are_refused', () => {
    const tokenizer = GTorch.Tokenizer.train_bpe(['a b a b'], 300);
    const refused = func => throws(func,
        error => error instanceof TypeError && error.message.includes('NUL at 1'));
    refused(() => tokenizer.encode('a\0b'));
    refused(() => tokenizer.encode('a', 'a\0b'));
    refused(() => tokenizer.encode_batch(['a', 'a\0b']));
    refused(() => tokenizer.token_to_id('a\0b'));
    refused(() => GTorch.Tokenizer.train_bpe(['a\0b'], 300));
    refused(() => GTorch.Sample.of(['a\0b']));
    refused(() => GTorch.Sample.new_string('a\0b'));
    refused(() => GTorch.Table.new().add('a\0b', GTorch.arange(1)));
});

add('a_handle_gives_another_process_the_same_memory', () => {
    const x = GTorch.zeros([4]);
    assert(!x.is_shared());
    x.share_memory();
    const handle = GTorch.TensorHandle.new(x);
    const received = GTorch.TensorHandle.new_from_bytes(handle.get_bytes(), handle.get_fds());
    received.open().fill_(3);
    assert(x.is_shared());
    equal(x.toArray(), [3, 3, 3, 3]);
    throws(() => GTorch.TensorHandle.new_from_bytes(new GLib.Bytes([1, 2, 3]), []), error =>
        error.matches(GTorch.Error, GTorch.Error.FORMAT));
});

await run();
