// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Tensors by name. gjs leaks the contents of a table that a function returns, and a part of each table
// that is passed to one: here names and tensors are passed in two arrays.

/* exported lists object setup */

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

function lists(func, table) {
    const names = check(func, Object.keys(table));
    const tensors = names.map(name => table[name]);
    const wrong = tensors.findIndex(tensor => !(tensor instanceof GTorch.Tensor));
    if (wrong >= 0)
        throw new TypeError(`${func}: ${names[wrong]} must be a tensor, not ${typeof tensors[wrong]}`);
    return [names, tensors];
}

// Returns alternating keys and values.
function texts(func, table) {
    const found = Object.entries(table ?? {}).flat();
    const wrong = found.find(text => typeof text !== 'string');
    if (wrong !== undefined)
        throw new TypeError(`${func}: metadata must hold texts, not ${typeof wrong}`);
    return check(func, found);
}

function loaded([tensors, names, texts]) {
    const keys = texts.filter((_text, i) => i % 2 === 0);
    return [object(tensors, names), object(texts.filter((_text, i) => i % 2 === 1), keys)];
}

function setup(namespace) {
    GTorch = namespace;
    for (const name of ['load', 'load_bytes', 'load_file']) {
        const lists = GTorch[`safetensors_${name}_lists`];
        const raw = name in PROGRESS ? withProgress(lists, PROGRESS[name]) : lists;
        GTorch[`safetensors_${name}`] = (...given) => loaded(raw(...given));
    }
    for (const name of ['save', 'save_file']) {
        for (const how of ['', '_async']) {
            const whole = `safetensors_${name}${how}`;
            const plain = GTorch[`safetensors_${name}_lists${how}`];
            const raw = how ? plain : withProgress(plain, PROGRESS[name]);
            GTorch[whole] = (tensors, metadata, ...given) =>
                raw.call(GTorch, ...lists(whole, tensors), texts(whole, metadata), ...given);
        }
    }
    const finish = GTorch.safetensors_load_finish_lists;
    for (const name of ['load', 'load_file'])
        GTorch[`safetensors_${name}_finish`] = result => loaded(finish(result));
}
