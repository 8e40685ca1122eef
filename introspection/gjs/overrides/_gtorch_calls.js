// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Functions that are not operations accept valid arguments only. gjs converts any object to true, null to
// 0, a string to NaN, and invalid enum values to the first member. The table comes from the GIR. All
// other overrides of a function call the checked one.

/* exported bytes install setup */

const {Gio, GLib, GObject} = imports.gi;
const convert = imports.overrides._gtorch_convert;
const {protectPrivate} = imports.overrides._gtorch_properties;
const {functions, owners} = imports.overrides._gtorch_calls_table;

let GTorch;

// A tensor, or numbers of which one is made.
function tensor(name, argName, value) {
    if (value === null || value instanceof GTorch.Tensor)
        return value;
    if (!Array.isArray(value) && !ArrayBuffer.isView(value)) {
        throw new TypeError(`${name}: ${argName} must be a Tensor or an array of numbers, not ` +
            convert.describe(value));
    }
    return convert.makeShown(value); // only the libraries beside this one have such arguments
}

// A text is its bytes in UTF-8.
function bytes(name, argName, value) {
    if (value === null || value instanceof GLib.Bytes || value instanceof Uint8Array)
        return value;
    if (typeof value === 'string')
        return new TextEncoder().encode(value);
    throw new TypeError(`${name}: ${argName} must be a GLib.Bytes, a Uint8Array or a text, not ` +
        convert.describe(value));
}

// A text is the path of a file.
function file(name, argName, value) {
    if (value === null || value instanceof Gio.File)
        return value;
    if (typeof value === 'string' && !value.includes('\0'))
        return Gio.File.new_for_path(value);
    throw new TypeError(`${name}: ${argName} must be a Gio.File or a path, not ${convert.describe(value)}`);
}

// gjs itself knows whether an argument may be null.
function one(name, argName, kind, value) {
    switch (kind) {
    case 'bool':
        return convert.flag(name, argName, value);
    case 'device':
        if (value === undefined)
            throw new TypeError(`${name}: ${argName} is undefined`);
        return convert.device(name, value, argName);
    case 'double':
        return convert.number(name, argName, value);
    case 'bytes':
        return bytes(name, argName, value);
    case 'file':
        return file(name, argName, value);
    case 'tensor':
        return tensor(name, argName, value);
    case 'size':
        return value === null || value instanceof GTorch.Size
            ? value : GTorch.Size.new(convert.integers(name, argName, value));
    case 'factors':
        return value === null || value instanceof GTorch.Factors ? value
            : GTorch.Factors.new(convert.list(value).map(item => convert.number(name, argName, item)));
    case 'text':
        if (typeof value !== 'string' && value !== null) // gjs knows which may be null
            throw new TypeError(`${name}: ${argName} must be a text, not ${convert.describe(value)}`);
        // C would get what is before it
        if (value !== null && value.includes('\0'))
            throw new TypeError(`${name}: ${argName} ${convert.nulIn(value)}`);
        return value;
    default:
        if (kind.startsWith('object:')) {
            const type = kind.slice('object:'.length);
            if (value !== null && !(value instanceof convert.lookUp(type)))
                throw new TypeError(`${name}: ${argName} must be a ${type}, not ${convert.describe(value)}`);
            return value;
        }
        return kind.startsWith('enum:')
            ? convert.enumeration(name, argName, kind.slice('enum:'.length), value)
            : convert.bounded(name, argName, kind, value);
    }
}

// Lists of integers accept the same values as sizes. gjs itself refuses values that are no arrays, and
// knows which may be null.
function many(name, argName, kind, value) {
    const isText = typeof value === 'string' && !['text', 'device'].includes(kind);
    if (value === null || isText || ArrayBuffer.isView(value))
        return value;
    if (value instanceof GObject.Object || typeof value === 'string')
        throw new TypeError(`${name}: ${argName} must be an array, not ${convert.describe(value)}`);
    if (kind === 'int64')
        return convert.integers(name, argName, value);
    if (!Array.isArray(value))
        return value;
    // from() visits holes, too
    return Array.from(value, (item, i) => {
        const place = `element ${i} of ${argName}`;
        const type = kind === 'tensor' ? 'Tensor' : kind === 'device' ? 'Device'
            : kind.startsWith('object:') ? kind.slice('object:'.length) : null;
        if (item === null && type !== null)
            throw new TypeError(`${name}: ${place} must be a ${type}, not null`);
        return one(name, place, kind, item);
    });
}

// gjs up to at least 1.74 stores one callback for each argument of a C function. If a callback calls the
// same C function with another callback, gjs frees the inner one twice and the outer one never.
function once(name, raw, callbacks) {
    let isRunning = false;
    const func = function (...given) {
        if (!callbacks.some(position => typeof given[position] === 'function'))
            return raw.apply(this, given);
        if (isRunning) {
            throw new Error(`${name}: a function that ${name} calls cannot give ${name} another function, ` +
                'which gjs would free twice; call it after the first call has returned');
        }
        isRunning = true;
        try {
            return raw.apply(this, given);
        } finally {
            isRunning = false;
        }
    };
    Object.defineProperty(func, 'length', {value: raw.length, configurable: true});
    return func;
}

// What gjs itself would refuse in the call of a function that returns an array of C: up to at least 1.74, it
// ends the program then, as it frees an array that was not made.
function mustBeThere(name, required, given) {
    for (const [position, argName, isList] of required) {
        const value = given[position] ?? null;
        if (value === null)
            throw new TypeError(`${name}: ${argName} must not be null`);
        if (isList && !Array.isArray(value) && !ArrayBuffer.isView(value))
            throw new TypeError(`${name}: ${argName} must be an array, not ${convert.describe(value)}`);
    }
}

// Arrays that have one length in C, which takes that of one of them.
function mustHaveOneLength(name, names, arrays, given) {
    const lengths = arrays.map(key => given[names.indexOf(key)]?.length);
    if (lengths.some(one => one !== lengths[0])) {
        const found = arrays.map((key, i) => `${lengths[i] ?? 0} of ${key}`).join(' and ');
        throw new TypeError(`${name}: ${arrays.join(' and ')} must have as many elements, not ${found}`);
    }
}

function checked(name, raw, entry) {
    const {args = [], callbacks = [], names = [], required = [], returns = null} = entry;
    if (callbacks.length > 0)
        raw = once(name, raw, callbacks);
    const list = args.map(([position, argName, kind]) => kind.endsWith('[]')
        ? {position, argName, kind: kind.slice(0, -'[]'.length), check: many}
        : {position, argName, kind, check: one});
    const most = raw.length;
    const func = function (...given) {
        if (given.length > most)
            convert.surplus(name, given.length, most);
        if (given.length < names.length)
            throw new TypeError(`${name}: ${names[given.length]} is missing: (${names.join(', ')})`);
        if (required.length > 0)
            mustBeThere(name, required, given);
        // without an iterator, which costs more than the call
        for (let i = 0; i < list.length; i++) {
            const {position, argName, kind, check} = list[i];
            if (position < given.length)
                given[position] = check(name, argName, kind, given[position]);
        }
        if (entry.same_length !== undefined)
            mustHaveOneLength(name, names, entry.same_length, given);
        const result = raw.apply(this, given);
        return returns === null ? result : protectPrivate(result, returns);
    };
    Object.defineProperty(func, 'length', {value: raw.length, configurable: true});
    return func;
}

// Names the function in what gjs itself throws.
function named(name, func) {
    const wrapper = function (...given) {
        try {
            return func.apply(this, given);
        } catch (error) {
            if (!(error instanceof Error) || error.message.includes(name))
                throw error;
            const Kind = error.constructor === Error ? TypeError : error.constructor; // gjs has no kinds
            throw new Kind(`${name}: ${error.message}`);
        }
    };
    Object.defineProperty(wrapper, 'length', {value: func.length, configurable: true});
    return wrapper;
}

function replace(owner, table, prefix, isLibrary) {
    for (const [name, entry] of Object.entries(table)) {
        const own = name in owner ? Object.getOwnPropertyDescriptor(owner, name) : undefined;
        const whole = /^new/.test(name) ? prefix + name : name;
        if (typeof own?.value !== 'function') // but a property of the same name
            continue;
        const func = checked(whole, own.value, entry);
        owner[name] = isLibrary ? named(name, func) : func;
    }
}

// Checks the functions of a namespace by its table.
function install(namespace, table) {
    const isLibrary = namespace !== GTorch; // one beside it
    replace(namespace, table.functions, '', isLibrary);
    for (const [name, {methods, statics}] of Object.entries(table.owners)) {
        replace(namespace[name], statics, `${name}.`, isLibrary);
        replace(namespace[name].prototype ?? {}, methods, '', isLibrary);
    }
}

function setup(namespace) {
    GTorch = namespace;
    install(GTorch, {functions, owners});
}
