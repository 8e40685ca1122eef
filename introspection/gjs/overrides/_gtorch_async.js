// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// What gives a promise when it is called without a callback. gjs puts its own behind the arguments that it is
// given, and only warns of one too many: the callback is then none, and the promise is never settled.

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

// func, which takes as many arguments as the callback has before it, and then the callback or none.
function counted(name, func, count) {
    return function (...given) {
        const hasCallback = given.some(value => typeof value === 'function');
        if (hasCallback ? given.length > count + 1 : given.length !== count) {
            const n = given.length - (hasCallback ? 1 : 0);
            throw new TypeError(`${name}: ${count} arguments are wanted before the callback, not ${n}`);
        }
        return func.apply(this, given);
    };
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
    // A function for progress would be taken for the callback: with one, the callback is needed too.
    for (const name of ['load', 'load_file'])
        promisify(GTorch, `safetensors_${name}_async`);
    for (const name of ['save', 'save_file'])
        promisify(GTorch, `safetensors_${name}_lists_async`);
}
