// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Asynchronous functions that return a promise when they are called without a callback. gjs appends its
// own callback to the given arguments, and only warns of one too many: then there is no callback, and the
// promise is never settled.

/* exported setup */

const {Gio} = imports.gi;
const convert = imports.overrides._gtorch_convert;

let GTorch;

// The arguments before the cancellable, which is the last one before the callback.
const AWAITED = {
    ArrowReader: {read_table: ['io_priority']},
    CSVReader: {read_table: ['max_rows', 'io_priority'], read_tensor: ['max_rows', 'io_priority']},
    DataLoader: {run: []},
    DataLoaderIter: {next: []},
    Device: {open_monitor: [], synchronize: []},
    Event: {synchronize: []},
    Exporter: {start: []},
    GradScaler: {step: ['optimizer']},
    Module: {forward: ['input']},
    Store: {add: ['key', 'amount'], get: ['key'], set: ['key', 'value'], wait: ['keys', 'timeout']},
    Stream: {synchronize: []},
    Tensor: {
        backward: ['gradient', 'retain_graph', 'create_graph'], copy_inplace: ['src'], get_bytes: [],
        item_double: [], item_int: [], to_device: ['device'], to_doubles: [], to_ints: [],
    },
    Timer: {stop: []},
    Trainer: {run: []},
    Work: {wait: []},
};
const DEFAULTS = {
    cancellable: null, gradient: null, retain_graph: false, create_graph: false,
    map: false, max_bytes: 0, max_rows: 0, io_priority: 0, compress: false, special_tokens: null, store: null,
    token: null,
};

// The same of functions.
const LOADED = {
    load: ['stream', 'max_bytes', 'io_priority'],
    load_file: ['file', 'map', 'max_bytes', 'io_priority'],
};
const STATIC = {
    CheckpointFile: LOADED,
    ProcessGroup: {create: ['backend', 'store', 'rank', 'world_size', 'timeout']},
    TcpStore: {
        create: ['host', 'port', 'world_size', 'is_server', 'timeout', 'wait_for_workers', 'token'],
    },
    Tokenizer: {
        load_file: ['file', 'io_priority'],
        train_bpe: ['texts', 'vocab_size', 'min_frequency', 'special_tokens', 'add_prefix_space'],
    },
};
const SAVED = {
    npy: {save: ['tensor', 'stream', 'io_priority'], save_file: ['tensor', 'file', 'io_priority']},
    npz: {
        save: ['table', 'compress', 'stream', 'io_priority'],
        save_file: ['table', 'compress', 'file', 'io_priority'],
    },
};

// Wraps func, whose arguments are followed by an optional callback. Those with a default may be left out, and
// be given by name.
function counted(name, func, names) {
    const args = names.map(key => ({name: key, required: !Object.hasOwn(DEFAULTS, key)}));
    const wrapper = function (...given) {
        const place = given.findIndex(value => typeof value === 'function');
        const callback = place < 0 ? [] : given.slice(place);
        const before = place < 0 ? given : given.slice(0, place);
        if (callback.length > 1)
            throw new TypeError(`${name}: nothing comes after the callback`);
        const values = {...DEFAULTS, ...convert.bind(name, args, before)};
        return func.call(this, ...names.map(key => values[key]), ...callback);
    };
    Object.defineProperty(wrapper, 'length', {value: names.length + 1, configurable: true});
    return wrapper;
}

function promisify(owner, name, names) {
    Gio._promisify(owner, name);
    owner[name] = counted(name, owner[name], [...names, 'cancellable']);
}

// Functions with a progress function, which would be mistaken for the callback: with one, the callback is
// mandatory. See _gtorch_state.js.
function promisifyWithProgress(owner, name) {
    const count = owner[name].length - 1;
    Gio._promisify(owner, name);
    const func = owner[name];
    owner[name] = function (...given) {
        const hasCallback = given.some(value => typeof value === 'function');
        if (hasCallback ? given.length > count + 1 : given.length !== count) {
            const n = given.length - (hasCallback ? 1 : 0);
            throw new TypeError(`${name}: ${count} arguments are wanted before the callback, not ${n}`);
        }
        return func.apply(this, given);
    };
    Object.defineProperty(owner[name], 'length', {value: count + 1, configurable: true});
}

function setup(namespace) {
    GTorch = namespace;
    for (const [owner, names] of Object.entries(AWAITED)) {
        for (const [name, args] of Object.entries(names))
            promisify(GTorch[owner].prototype, `${name}_async`, args);
    }
    for (const [owner, functions] of Object.entries(STATIC)) {
        for (const [name, args] of Object.entries(functions))
            promisify(GTorch[owner], `${name}_async`, args);
    }
    for (const [form, functions] of Object.entries(SAVED)) {
        for (const [name, args] of Object.entries({...LOADED, ...functions}))
            promisify(GTorch, `${form}_${name}_async`, args);
    }
    for (const name of ['load', 'load_file'])
        promisifyWithProgress(GTorch, `safetensors_${name}_async`);
    for (const name of ['save', 'save_file'])
        promisifyWithProgress(GTorch, `safetensors_${name}_lists_async`);
    promisify(GTorch, 'image_load_file_async',
        ['file', 'mode', 'apply_orientation', 'max_pixels', 'io_priority']);
    promisify(GTorch, 'safetensors_load_index_async', ['index', 'wanted', 'map', 'device', 'io_priority']);
    promisify(GTorch, 'safetensors_save_index_async',
        ['index', 'names', 'tensors', 'metadata', 'max_part_size', 'group', 'io_priority']);
}
