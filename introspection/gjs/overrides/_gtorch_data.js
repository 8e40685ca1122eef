// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Data sets and loaders. Samples are arrays, objects, numbers, texts and tensors here; loaders are read by
// for (const batch of loader) and for await (const batch of loader). JavaScript has one thread: data sets
// that programs derive, and functions of theirs, are for loaders without workers.

/* exported setup */

const {GLib, GObject} = imports.gi;
const convert = imports.overrides._gtorch_convert;
const {SUCCESS, callableBySuper, derivable, isProgramsOwn} = imports.overrides._gtorch_derived;
const {noting, restore, restoring} = imports.overrides._gtorch_errors;

let GTorch;
let ValueSource = null; // classes that are defined when they are needed
let ListSource = null;
const ITERATOR = Symbol('iterator');

// --- samples ---

function sampleOf(value, what = 'a sample') {
    const {Sample} = GTorch;
    if (value instanceof Sample)
        return value;
    if (value === null)
        return Sample.new_none();
    if (value instanceof GTorch.Tensor)
        return Sample.new_tensor(value);
    if (Array.isArray(value))
        return Sample.new_tuple(Array.from(value, (one, i) => sampleOf(one, `${what}[${i}]`)));
    if (ArrayBuffer.isView(value))
        return Sample.new_tensor(convert.make(value, {device: GTorch.Device.cpu()}));
    if (value instanceof GLib.Bytes)
        return Sample.new_bytes(value);
    switch (typeof value) {
    case 'boolean':
        return Sample.new_bool(value);
    case 'bigint':
        return Sample.new_int(convert.bounded('Sample', what, 'int64', value));
    case 'number':
        return Number.isSafeInteger(value) ? Sample.new_int(value) : Sample.new_double(value);
    case 'string':
        if (value.includes('\0'))
            throw new TypeError(`${what} ${convert.nulIn(value)}`);
        return Sample.new_string(value);
    }
    if (convert.isOptions(value)) {
        const keys = Object.keys(value);
        return Sample.new_dict(keys, keys.map(key => sampleOf(value[key], `${what}.${key}`)));
    }
    throw new TypeError(`${what} is ${convert.describe(value)}, which no sample can be: a tensor, a ` +
        'number, a text, a boolean, bytes, null, or an array or a plain object of these');
}

function valueOf(sample) {
    const {Sample, SampleKind} = GTorch;
    if (!(sample instanceof Sample))
        return sample;
    const count = sample.get_n_children();
    const children = () => Array.from({length: count}, (_, i) => valueOf(sample.get_child(i)));
    switch (sample.get_kind()) {
    case SampleKind.TENSOR:
        return sample.get_tensor();
    case SampleKind.TUPLE:
        return children();
    case SampleKind.DICT: {
        const values = children();
        return Object.fromEntries(sample.get_keys().map((key, i) => [key, values[i]]));
    }
    case SampleKind.INT:
        return sample.get_int();
    case SampleKind.DOUBLE:
        return sample.get_double();
    case SampleKind.BOOL:
        return sample.get_bool();
    case SampleKind.STRING:
        return sample.get_string();
    case SampleKind.BYTES:
        return sample.get_bytes();
    case SampleKind.VALUE:
        return sample.get_value();
    default:
        return null;
    }
}

// Returns what C calls instead of func: its exceptions come out of the call into C, and its result is there.
function called(name, func, convertResult = value => value) {
    convert.plainFunction(name, func);
    return (...given) => noting(() => convertResult(convert.finished(name, func(...given))));
}

function samplesOf(name, samples) {
    if (!Array.isArray(samples))
        throw new TypeError(`${name}: an array of samples is wanted, not ${convert.describe(samples)}`);
    return Array.from(samples, (one, i) => sampleOf(one, `samples[${i}]`));
}

function overrideSample() {
    const {Sample} = GTorch;
    const {collate} = Sample;
    const mapTensors = Sample.prototype.map_tensors;
    convert.addMethods(Sample, {
        // The sample of an array, an object, a number and so on.
        of(value) {
            return sampleOf(value, 'the value');
        },
        collate(samples) {
            return collate.call(Sample, samplesOf('collate', samples));
        },
    });
    // alloc makes the tensors that the parts are written to.
    for (const [owner, name] of [[Sample, 'collate_with'], [GTorch, 'sample_collate_with']]) {
        const raw = owner[name];
        owner[name] = convert.counted(name, (samples, alloc) => {
            const all = samplesOf(name, samples);
            const make = alloc === null ? null : called(name, alloc);
            return restoring(() => raw.call(owner, all, make));
        });
    }
    convert.addMethods(Sample.prototype, {
        map_tensors(func) {
            const change = called('map_tensors', func);
            return restoring(() => mapTensors.call(this, change));
        },
        // What of() makes the sample of.
        unpack() {
            return valueOf(this);
        },
    });
}

// --- data sets ---

function iteratorOf(what, value) {
    if (typeof value?.then === 'function')
        convert.finished(what, value);
    if (typeof value?.[Symbol.iterator] !== 'function' || typeof value === 'string')
        throw new TypeError(`${what} gave ${convert.describe(value)}, which is not iterable`);
    return value[Symbol.iterator]();
}

// A source of what an iterator gives.
function sourceOfValues(iterator) {
    ValueSource ??= GObject.registerClass({GTypeName: 'GTorchJsValueSource'},
        class extends GTorch.SampleSource {
            vfunc_next(_cancellable) {
                const {done, value} = this[ITERATOR].next();
                return done ? null : sampleOf(value);
            }

            // runs what a generator has in a finally
            vfunc_close() {
                this[ITERATOR].return?.();
            }
        });
    const source = new ValueSource();
    source[ITERATOR] = iterator;
    return source;
}

// A source of indices, some at a time; of batches, if the iterator gives arrays.
function sourceOfIndices(iterator) {
    ListSource ??= GObject.registerClass({GTypeName: 'GTorchJsListSource'},
        class extends GTorch.IndexSource {
            vfunc_next(n) {
                const found = [];
                while (found.length < n) {
                    const {done, value} = this[ITERATOR].next();
                    if (done)
                        break;
                    if (Array.isArray(value))
                        return GTorch.Size.new(convert.integers('Sampler', 'a batch', value));
                    found.push(convert.bounded('Sampler', 'an index', 'int64', value));
                }
                return found.length > 0 ? GTorch.Size.new(found) : null;
            }
        });
    const source = new ListSource();
    source[ITERATOR] = iterator;
    return source;
}

// The source that iterate() of a program's class gave, or what it gave as one.
function sourceFor(Source, make, self, value) {
    if (value instanceof Source)
        return value;
    return make(iteratorOf(`${convert.nameOf(self.constructor)}: iterate()`, value));
}

const lengthOf = (what, value) => convert.bounded(what, 'the length', 'int64', value);

function overrideDatasets() {
    const {Dataset, IterableDataset, SampleSource, Sampler} = GTorch;
    const sample = {result: (what, value) => sampleOf(value, `the result of ${what}`)};
    const nextSample = {
        result: (what, value) => (value ?? null) === null ? null : sample.result(what, value),
    };
    const length = {result: lengthOf};
    const init = Dataset.prototype._init;

    // Only in the thread of the program.
    Dataset.prototype._init = function (...given) {
        const made = init.apply(this, given);
        if (isProgramsOwn(this.constructor))
            this.set_thread_safe(false);
        return made;
    };
    derivable(Dataset, {
        get_item: sample,
        get_batch: sample,
        get_length: length,
        // a generator is called here, which else would count as a result that is not there yet
        iterate: {
            call: (self, func, given) =>
                sourceFor(SampleSource, sourceOfValues, self, func.apply(self, given)),
        },
        set_state: SUCCESS,
    });
    derivable(SampleSource, {next: nextSample});
    derivable(GTorch.Fetcher, {begin: SUCCESS, fetch: sample, fetch_next: nextSample});
    derivable(Sampler, {
        get_length: length,
        iterate: {
            call: (self, func, given) =>
                sourceFor(GTorch.IndexSource, sourceOfIndices, self, func.apply(self, given)),
        },
        set_state: SUCCESS,
    });
    derivable(GTorch.IndexSource, {
        next: {
            result: (what, value) => Array.isArray(value)
                ? GTorch.Size.new(convert.integers(what, 'the result', value)) : value ?? null,
        },
    });
    for (const name of ['get_item', 'get_batch', 'get_length'])
        restore(Dataset.prototype, name);
    restore(IterableDataset.prototype, 'iterate', 'get_state', 'set_state');
    restore(SampleSource.prototype, 'next');
    for (const name of ['iterate', 'get_length', 'set_state'])
        restore(Sampler.prototype, name);
    restore(GTorch.IndexSource.prototype, 'next');

    // The functions of C, which call those of a program's class.
    const [getItem, iterate] = [Dataset.prototype.get_item, IterableDataset.prototype.iterate];
    const {next} = SampleSource.prototype;

    callableBySuper(Dataset.prototype, ['get_length']);
    callableBySuper(Dataset.prototype, ['get_item', 'get_batch'], given => given, valueOf);
    callableBySuper(IterableDataset.prototype, ['iterate', 'get_state', 'set_state']);
    callableBySuper(SampleSource.prototype, ['close']);
    callableBySuper(SampleSource.prototype, ['next'], given => given, valueOf);
    callableBySuper(Sampler.prototype, ['iterate', 'get_length', 'set_state']);
    callableBySuper(GTorch.IndexSource.prototype, ['next', 'get_state']);

    // dataset.at(i), and for (const sample of dataset)
    convert.addMethods(Dataset.prototype, {
        at(index) {
            return valueOf(getItem.call(this, convert.bounded('Dataset.at', 'index', 'int64', index), null));
        },
    });
    Object.defineProperty(Dataset.prototype, 'length', {
        configurable: true,
        get() {
            return this.get_length();
        },
    });
    Dataset.prototype[Symbol.iterator] = function* () {
        if (this instanceof IterableDataset) {
            const source = iterate.call(this, 0, 1);
            try {
                for (let one = next.call(source, null); one !== null; one = next.call(source, null))
                    yield valueOf(one);
            } finally {
                source.close();
            }
            return;
        }
        const n = this.get_length();
        for (let i = 0; i < n; i++)
            yield this.at(i);
    };
}

// --- loaders ---

// What for and for await read; break ends the epoch.
function readerOf(iter, next, settle) {
    const result = batch => batch === null
        ? {done: true, value: undefined} : {done: false, value: valueOf(batch)};
    return {
        next: () => next(iter, result),
        return(value) {
            iter.close();
            return settle({done: true, value});
        },
        [Symbol.iterator]() {
            return this;
        },
        [Symbol.asyncIterator]() {
            return this;
        },
    };
}

// func gets an array of samples, and returns the batch.
function collating(func) {
    const make = called('set_collate', func, value => sampleOf(value, 'the batch'));
    return samples => make(samples.map(valueOf));
}

function overrideFetcher() {
    const {prototype} = GTorch.Fetcher;
    const setCollate = prototype.set_collate;
    convert.addMethods(prototype, {
        set_collate(func) {
            setCollate.call(this, func === null ? null : collating(func));
        },
    });
}

// Lets a function that gives a sample give its value.
function unpacking(owner, name) {
    const raw = owner[name];
    const func = function (...given) {
        return valueOf(raw.apply(this, given));
    };
    Object.defineProperty(func, 'length', {value: raw.length, configurable: true});
    owner[name] = func;
}

// As PyTorch's: lengths whose sum is 1 are fractions.
function overrideSplit() {
    const {random_split: split, random_split_fractions: splitByFractions} = GTorch;
    GTorch.random_split = convert.counted('random_split', (dataset, lengths, ...given) => {
        const isFractions = Array.isArray(lengths) && lengths.every(one => typeof one === 'number') &&
            Math.abs(lengths.reduce((sum, one) => sum + one, 0) - 1) < 1e-9;
        return isFractions ? splitByFractions(dataset, lengths, ...given) : split(dataset, lengths, ...given);
    }, 3);
}

function overrideLoader() {
    const {DataLoader, DataLoaderIter} = GTorch;
    const {prototype} = DataLoader;
    const setCollate = prototype.set_collate;
    const setWorkerInit = prototype.set_worker_init;

    for (const name of ['iterate', 'get_length', 'check', 'get_state', 'set_state'])
        restore(prototype, name);
    restore(DataLoaderIter.prototype, 'next');
    restore(DataLoaderIter.prototype, 'next_value');
    const {next, next_async: nextAsync} = DataLoaderIter.prototype;
    const read = iter => readerOf(iter, (one, result) => result(next.call(one, null)), value => value);
    const readAsync = iter => readerOf(iter, async (one, result) => result(await nextAsync.call(one, null)),
        value => Promise.resolve(value));
    prototype[Symbol.iterator] = function () {
        return read(this.iterate());
    };
    prototype[Symbol.asyncIterator] = function () {
        return readAsync(this.iterate());
    };
    DataLoaderIter.prototype[Symbol.iterator] = function () {
        return read(this);
    };
    DataLoaderIter.prototype[Symbol.asyncIterator] = function () {
        return readAsync(this);
    };
    // A batch is what Sample.unpack() gives, as in loops.
    for (const name of ['next', 'next_value', 'next_finish'])
        unpacking(DataLoaderIter.prototype, name);
    DataLoaderIter.prototype.next_async = function (...given) {
        const found = nextAsync.apply(this, given);
        return found instanceof Promise ? found.then(valueOf) : found;
    };
    Object.defineProperty(DataLoaderIter.prototype.next_async, 'length', {value: nextAsync.length});
    for (const name of ['connect', 'connect_after']) {
        const raw = prototype[name];
        prototype[name] = function (signal, handler, ...more) {
            const isBatch = signal === 'batch' && typeof handler === 'function';
            const func = isBatch ? (loader, batch) => handler.call(loader, loader, valueOf(batch)) : handler;
            return raw.call(this, signal, func, ...more);
        };
    }
    convert.addMethods(prototype, {
        set_collate(func) {
            if (func === null)
                return setCollate.call(this, null);
            convert.plainFunction('set_collate', func);
            if (this.num_workers > 0) {
                throw new Error('set_collate: a function of JavaScript cannot be called in the threads of ' +
                    `${this.num_workers} workers: num_workers must be 0`);
            }
            return setCollate.call(this, collating(func));
        },
        set_worker_init(func) {
            if (func !== null)
                throw new Error('set_worker_init: workers are threads, where JavaScript cannot be called');
            return setWorkerInit.call(this, null);
        },
    });
}

function setup(namespace) {
    GTorch = namespace;
    overrideSample();
    overrideDatasets();
    overrideFetcher();
    overrideLoader();
    overrideSplit();
}
