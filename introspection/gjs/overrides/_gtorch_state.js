// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Tensors by name. gjs leaks the contents of a table that a function returns, and a part of each table
// that is passed to one: here names and tensors are passed in two arrays.

/* exported lists object setup */

const {Gio} = imports.gi;
const convert = imports.overrides._gtorch_convert;
const {withProgress} = imports.overrides._gtorch_errors;

// The position of the progress function among the arguments.
const PROGRESS = {load: 3, load_file: 4, save: 5, save_file: 5};

let GTorch = null;

// The tensors come first, as the functions return them. A file may name a tensor __proto__.
function object(tensors, names) {
    const table = {};
    names.forEach((name, i) => {
        Object.defineProperty(table, name,
            {value: tensors[i], configurable: true, enumerable: true, writable: true});
    });
    return table;
}

// C would read up to the first null character, and confuse two names.
function check(func, found) {
    const cut = found.find(text => text.includes('\0'));
    if (cut !== undefined)
        throw new TypeError(`${func}: ${JSON.stringify(cut)} has a null character`);
    return found;
}

// Returns names and values of a Map or of a plain object: anything else would seem to be empty.
function entries(func, what, table) {
    if (table instanceof Map)
        return [...table];
    const prototype = table !== null && typeof table === 'object' ? Object.getPrototypeOf(table) : undefined;
    if (prototype !== null && prototype !== Object.prototype)
        throw new TypeError(`${func}: ${what} must be an object or a Map, not ${convert.describe(table)}`);
    return Object.entries(table);
}

function lists(func, table) {
    const pairs = entries(func, 'the tensors', table);
    const names = pairs.map(([name]) => name);
    const tensors = pairs.map(([, tensor]) => tensor);
    const other = names.find(name => typeof name !== 'string');
    if (other !== undefined)
        throw new TypeError(`${func}: a name must be a text, not ${convert.describe(other)}`);
    check(func, names);
    const wrong = tensors.findIndex(tensor => !(tensor instanceof GTorch.Tensor));
    if (wrong >= 0) {
        const found = convert.describe(tensors[wrong]);
        throw new TypeError(`${func}: ${names[wrong]} must be a tensor, not ${found}`);
    }
    return [names, tensors];
}

// Returns alternating keys and values.
function texts(func, table) {
    const found = table === null ? [] : entries(func, 'metadata', table).flat();
    const wrong = found.findIndex(text => typeof text !== 'string');
    if (wrong >= 0)
        throw new TypeError(`${func}: metadata must hold texts, not ${convert.describe(found[wrong])}`);
    return check(func, found);
}

function loaded([tensors, names, texts]) {
    const keys = texts.filter((_text, i) => i % 2 === 0);
    return [object(tensors, names), object(texts.filter((_text, i) => i % 2 === 1), keys)];
}

// The arguments of the functions for files. Those with a default may be left out, and be given by name.
const ARGUMENTS = {
    load: ['stream', 'device', 'cancellable', 'progress'],
    load_bytes: ['bytes'],
    load_file: ['file', 'map', 'device', 'cancellable', 'progress'],
    save: ['tensors', 'metadata', 'stream', 'cancellable', 'progress'],
    save_file: ['tensors', 'metadata', 'file', 'cancellable', 'progress'],
};
const DEFAULTS = {map: false, device: null, io_priority: 0, cancellable: null, progress: null};

// Returns the values of the arguments in their order, and the callback of an asynchronous function, if there
// is one.
function bound(name, names, given) {
    const values = [...given];
    const isLate = names.includes('io_priority') && typeof values.at(-1) === 'function';
    const callback = isLate && (values.length > names.length || values.length < names.length)
        ? [values.pop()] : [];
    const args = names.map(key => ({name: key, required: !Object.hasOwn(DEFAULTS, key)}));
    const least = args.filter(arg => arg.required).length;
    // a table of tensors or texts is no object with options
    const more = values.length > least && convert.isOptions(values.at(-1)) ? [values.pop()] : [];
    if (values.length < least)
        throw new TypeError(`${name}: ${names[values.length]} is missing: (${names.join(', ')})`);
    const found = {...DEFAULTS, ...convert.bind(name, args, [...values, ...more.length > 0 ? more : [{}]])};
    if (typeof found.file === 'string')
        found.file = Gio.File.new_for_path(found.file);
    if (names.includes('io_priority'))
        convert.bounded(name, 'io_priority', 'int32', found.io_priority);
    if (names.includes('map'))
        convert.flag(name, 'map', found.map);
    if (names.includes('io_priority') && typeof found.progress === 'function' && callback.length === 0)
        throw new TypeError(`${name}: with a progress function, a callback is wanted after it`);
    return [...names.map(key => found[key]), ...callback];
}

function defined(name, names, func) {
    const wrapper = function (...given) {
        return func(...bound(name, names, given));
    };
    Object.defineProperty(wrapper, 'length', {value: names.length, configurable: true});
    return wrapper;
}

function withPriority(names) {
    return [...names.slice(0, -2), 'io_priority', ...names.slice(-2)];
}

function setup(namespace) {
    GTorch = namespace;
    for (const [name, position] of Object.entries(PROGRESS)) {
        const whole = `safetensors_${name}_lists`;
        const raw = GTorch[whole];
        GTorch[whole] = convert.counted(whole, withProgress(raw, position), raw.length);
    }
    for (const name of ['load', 'load_bytes', 'load_file']) {
        const raw = GTorch[`safetensors_${name}_lists`];
        const whole = `safetensors_${name}`;
        GTorch[whole] = defined(whole, ARGUMENTS[name], (...given) => loaded(raw.apply(GTorch, given)));
    }
    for (const name of ['save', 'save_file']) {
        for (const how of ['', '_async']) {
            const whole = `safetensors_${name}${how}`;
            const raw = GTorch[`safetensors_${name}_lists${how}`];
            const names = how === '' ? ARGUMENTS[name] : withPriority(ARGUMENTS[name]);
            // C gets the names and the tensors in two arrays.
            const func = (tensors, metadata, ...given) =>
                raw.call(GTorch, ...lists(whole, tensors), texts(whole, metadata), ...given);
            GTorch[whole] = defined(whole, names, func);
        }
    }
    for (const name of ['load', 'load_file']) {
        const whole = `safetensors_${name}_async`;
        const raw = GTorch[whole];
        GTorch[whole] = defined(whole, withPriority(ARGUMENTS[name]), (...given) => raw.apply(GTorch, given));
    }
    const finish = GTorch.safetensors_load_finish_lists;
    for (const name of ['load', 'load_file'])
        GTorch[`safetensors_${name}_finish`] = convert.counted(`safetensors_${name}_finish`,
            result => loaded(finish(result)));
}
