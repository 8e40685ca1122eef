// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Asynchronous functions that return a promise when they are called without a callback. gjs appends its
// own callback to the given arguments, and only warns of one too many: then there is no callback, and the
// promise is never settled.

/* exported install setup */

const {Gio} = imports.gi;
const convert = imports.overrides._gtorch_convert;
const {valuesOf} = imports.overrides._gtorch_defaults;

// Wraps func, whose arguments are followed by an optional callback. Those with a default may be left out, and
// be given by name.
function counted(name, func, names, defaults) {
    const args = names.map(key => ({name: key, required: !Object.hasOwn(defaults, key)}));
    const known = valuesOf(defaults);
    const wrapper = function (...given) {
        const place = given.findIndex(value => typeof value === 'function');
        const callback = place < 0 ? [] : given.slice(place);
        const before = place < 0 ? given : given.slice(0, place);
        if (callback.length > 1)
            throw new TypeError(`${name}: nothing comes after the callback`);
        const values = {...known, ...convert.bind(name, args, before)};
        return func.call(this, ...names.map(key => values[key]), ...callback);
    };
    Object.defineProperty(wrapper, 'length', {value: names.length + 1, configurable: true});
    return wrapper;
}

// The table has the arguments before the callback. With a progress function, see below.
function promisifyAll(owner, table) {
    for (const [name, {given, defaults = {}}] of Object.entries(table)) {
        if (given === undefined || given.includes('progress') || !(name in owner))
            continue;
        Gio._promisify(owner, name);
        owner[name] = counted(name, owner[name], given, defaults);
    }
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

function install(namespace, {functions, owners}) {
    promisifyAll(namespace, functions);
    for (const [name, {methods, statics}] of Object.entries(owners)) {
        promisifyAll(namespace[name], statics);
        promisifyAll(namespace[name].prototype ?? {}, methods);
    }
}

function setup(GTorch, tables) {
    install(GTorch, tables);
    for (const name of ['load', 'load_file'])
        promisifyWithProgress(GTorch, `safetensors_${name}_async`);
    for (const name of ['save', 'save_file'])
        promisifyWithProgress(GTorch, `safetensors_${name}_lists_async`);
}
