// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Asynchronous functions that return a promise when they are called without a callback. gjs appends its
// own callback to the given arguments, and only warns of one too many: then there is no callback, and the
// promise is never settled.

/* exported setup */

const {Gio} = imports.gi;

let GTorch;

const AWAITED = {
    Device: ['open_monitor', 'synchronize'],
    Event: ['synchronize'],
    GradScaler: ['step'],
    Module: ['forward'],
    Stream: ['synchronize'],
    Tensor: ['backward', 'copy_inplace', 'item_double', 'item_int', 'to_device'],
    Timer: ['stop'],
};

// Wraps func, which takes `count` arguments before the optional callback.
function counted(name, func, count) {
    const wrapper = function (...given) {
        const hasCallback = given.some(value => typeof value === 'function');
        if (hasCallback ? given.length > count + 1 : given.length !== count) {
            const n = given.length - (hasCallback ? 1 : 0);
            throw new TypeError(`${name}: ${count} arguments are wanted before the callback, not ${n}`);
        }
        return func.apply(this, given);
    };
    Object.defineProperty(wrapper, 'length', {value: count + 1, configurable: true});
    return wrapper;
}

function promisify(owner, name) {
    const count = owner[name].length - 1;
    Gio._promisify(owner, name);
    owner[name] = counted(name, owner[name], count);
}

function setup(namespace) {
    GTorch = namespace;
    for (const [owner, names] of Object.entries(AWAITED)) {
        for (const name of names)
            promisify(GTorch[owner].prototype, `${name}_async`);
    }
    // A progress function would be mistaken for the callback: with one, the callback is mandatory.
    for (const name of ['load', 'load_file'])
        promisify(GTorch, `safetensors_${name}_async`);
    for (const name of ['save', 'save_file'])
        promisify(GTorch, `safetensors_${name}_lists_async`);
}
