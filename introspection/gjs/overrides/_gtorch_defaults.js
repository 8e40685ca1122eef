// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Arguments of functions that are no operations that may be left out, or be given by name:
//
//     const image = GTorch.image_load_file(file, {mode: GTorch.ImageMode.GRAY});
//     const ids = tokenizer.encode('a text');
//
// The table comes from introspection/defaults.toml. Other overrides of a function call this one.

/* exported setup valuesOf */

const convert = imports.overrides._gtorch_convert;

// The value of a default: a text is written with quotes, and what a namespace has by its name.
function valueOf(value) {
    if (typeof value !== 'string')
        return value;
    return value.startsWith('"') ? JSON.parse(value) : convert.lookUp(value);
}

function valuesOf(defaults) {
    return Object.fromEntries(Object.entries(defaults).map(([key, value]) => [key, valueOf(value)]));
}

function counted(name, func, names, defaults) {
    const args = names.map(key => ({name: key, required: !Object.hasOwn(defaults, key)}));
    const values = valuesOf(defaults);
    const wrapper = function (...given) {
        if (given.length === names.length && !convert.isOptions(given.at(-1)))
            return func.apply(this, given);
        const found = {...values, ...convert.bind(name, args, given)};
        return func.apply(this, names.map(key => found[key]));
    };
    Object.defineProperty(wrapper, 'length', {value: names.length, configurable: true});
    return wrapper;
}

function replace(owner, table, prefix = '') {
    for (const [name, {names, defaults}] of Object.entries(table)) {
        const own = name in owner ? Object.getOwnPropertyDescriptor(owner, name) : undefined;
        if (defaults === undefined || names === undefined || typeof own?.value !== 'function')
            continue; // promises have their own, see _gtorch_async.js
        const whole = /^new/.test(name) ? prefix + name : name;
        owner[name] = counted(whole, own.value, names, defaults);
    }
}

function setup(namespace, {functions, owners}) {
    replace(namespace, functions);
    for (const [name, {methods, statics}] of Object.entries(owners)) {
        replace(namespace[name], statics, `${name}.`);
        replace(namespace[name].prototype ?? {}, methods);
    }
}
