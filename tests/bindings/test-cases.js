// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// The cases that all languages share (cases.json), in JavaScript.

import Gio from 'gi://Gio';
import GLib from 'gi://GLib';
import GTorch from 'gi://GTorch?version=1';

import * as tap from './tap.js';

const folder = Gio.File.new_for_uri(import.meta.url).get_parent();
const [, text] = folder.get_child('cases.json').load_contents(null);
const cases = JSON.parse(new TextDecoder().decode(text));

function same(got, expected) {
    if (Array.isArray(expected)) {
        return Array.isArray(got) && got.length === expected.length &&
            expected.every((e, i) => same(got[i], e));
    }
    if (typeof expected === 'boolean')
        return got === expected;
    return Math.abs(got - expected) <= 1e-6 * Math.abs(expected) + 1e-7;
}

function positional(name) {
    return name.endsWith('_inplace') || ['get', 'set', 'set_requires_grad', 'release'].includes(name);
}

function lookUp(value, names) {
    if (Array.isArray(value))
        return value.map(v => lookUp(v, names));
    return typeof value === 'string' && value.startsWith('$') ? names[value.slice(1)] : value;
}

function readSafetensors(base64) {
    const stream = Gio.MemoryInputStream.new_from_bytes(GLib.Bytes.new(GLib.base64_decode(base64)));
    GTorch.safetensors_load(stream, null, null, null);
}

function runCase(data) {
    const names = {};
    for (const [name, values] of Object.entries(data.let)) {
        // JavaScript cannot tell 2.0 from 2: a list that contains a fraction has floating point
        // elements
        names[name] = GTorch.tensor(values);
    }
    (data.grad ?? []).forEach(name => {
        names[name].requires_grad = true;
    });
    let value = null;
    for (const [result, func, target, given] of data.steps) {
        const args = {};
        for (const [key, v] of Object.entries(given))
            args[key] = lookUp(v, names);
        if (func === 'safetensors') {
            readSafetensors(args.base64);
            continue;
        }
        const list = positional(func) || Object.keys(args).length === 0 ? Object.values(args) : [args];
        value = (target === null ? GTorch : names[target])[func](...list);
        names[result] = value;
    }
    return data.result ? names[data.result] : value;
}

function check(data) {
    if (!data.error) {
        const got = runCase(data);
        if (data.value !== undefined) {
            tap.equal(got, data.value);
            return;
        }
        tap.equal(got.dtype, GTorch.DType[data.dtype]);
        tap.assert(same(got.toArray(), data.expect), `${got} instead of ${JSON.stringify(data.expect)}`);
        return;
    }
    tap.throws(() => {
        const got = runCase(data);
        // reports errors that a GPU detects asynchronously
        GTorch.get_default_device().synchronize(null);
        return got;
    }, error => error instanceof GLib.Error &&
        data.error.split('|').some(code => error.matches(GTorch.Error, GTorch.Error[code])) &&
        data.says.every(part => part.split('|').some(p => error.message.includes(p))));
}

cases.forEach(data => tap.add(data.name, () => check(data)));
await tap.run();
