// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Every function, method, constructor and property of a library beside GTorch, by the typelib, is given what
// it cannot take, one argument at a time: nothing crashes, and what is refused throws and names the function.
//
// Argument: the namespace.

import Gio from 'gi://Gio';
import GLib from 'gi://GLib';
import GObject from 'gi://GObject';
import GTorch from 'gi://GTorch?version=1';
import GTorchPlot from 'gi://GTorchPlot?version=1';
import {programArgs} from 'system';

import * as tap from './tap.js';
import * as typelib from './typelib.js';

const [SPACE] = programArgs;
let library = GTorchPlot;
if (SPACE === 'GTorchGtk') {
    const {default: Gtk} = await import('gi://Gtk?version=4.0');
    Gtk.init();
    ({default: library} = await import('gi://GTorchGtk?version=1'));
}

const {nn} = GTorch;
const figures = []; // whose axes are alive

function axes() {
    figures.push(new GTorchPlot.Figure());
    return figures.at(-1).get_axes();
}

// What makes an object of a class. The others need no arguments.
const MAKERS = {
    Axes: axes,
    Item: () => new GTorchPlot.Line(),
    ParameterRow: () => new library.ParameterList(nn.Linear(2, 1)).rows.get_item(0),
};

const FIVE = GTorch.rand([5]);
const MATRIX = GTorch.rand([3, 3]);

// Valid arguments by name, or by the function and its name.
const ARGUMENTS = {
    cancellable: null, colormap: 'magma', color: '#1a5fb4', device: 'cpu', figure: new GTorchPlot.Figure(),
    file: '/proc/nowhere/picture.svg', format: 'svg', item: new GTorchPlot.Line(), matrix: MATRIX,
    module: nn.Linear(2, 1), pixels: MATRIX, scale: 'log', scheme: 'dark', style: 'points', tensor: MATRIX,
    tensors: [FIVE], trainer: null, images: GTorch.rand([3, 4, 5]), counts: MATRIX, weights: MATRIX,
    values: FIVE,
    result: Gio.Task.new(null, null, null), interval: 1000, title: 'a', label: 'a',
    'set_points.x': [1, 2], 'set_points.y': [3, 4], 'set_counts.counts': [1, 2, 3],
    'append.x': 1, 'append.y': 1, x: FIVE, y: FIVE, position: 0.5, ratios: [1, 2],
};
for (const name of ['row', 'column', 'index', 'bin', 'n_bins', 'n_columns', 'max_points'])
    ARGUMENTS[name] = 0;
for (const name of ['low', 'left', 'bottom', 'minimum'])
    ARGUMENTS[name] = 1;
for (const name of ['width', 'height', 'resolution', 'high', 'right', 'top', 'maximum'])
    ARGUMENTS[name] = 50;
for (const name of ['equal_units', 'fit_range', 'show_grid', 'show_legend', 'show_ticks', 'show_scale',
    'show_values', 'visible'])
    ARGUMENTS[name] = true;
for (const name of ['labels', 'titles', 'class_names', 'row_names', 'column_names', 'query_names',
    'key_names', 'names'])
    ARGUMENTS[name] = null;

const HOSTILE = [
    undefined, null, true, -1, 2 ** 31, 2 ** 63, 10n ** 30n, 1.5, NaN, Infinity, -Infinity, '', 'no such',
    'a\0b', '\ud800', [], [null], [1, 'a'], ['a', null], [[[]]], Array(3), {}, {a: 1}, new Map(),
    Symbol('a'), Object, /x/, new Date(), Promise.resolve(1), new Uint8Array(3), new Float64Array([NaN, 1]),
    GTorch.float32, GTorch.zeros([0]), GTorch.zeros([2, 3, 5, 7]), GTorch.tensor([NaN, NaN]),
    GTorch.zeros([2], {dtype: GTorch.complex64}), new GTorchPlot.Line(), new GObject.Object(),
    Gio.File.new_for_path('/'), nn.ReLU(), Object.create(null),
];

function make(name) {
    return MAKERS[name] ? MAKERS[name]() : new library[name]();
}

function valid(name, args) {
    return args.map(arg => ARGUMENTS[`${name}.${arg.name}`] ?? ARGUMENTS[arg.name]);
}

// The functions of the namespace, without those that take a context of cairo.
function functions() {
    return typelib.callables(SPACE)
        .filter(({name, args}) => name !== 'init' && args.every(arg => arg.name !== 'cr'))
        .map(one => ({...one, args: one.args.filter(arg => arg.tag !== 'callback')}));
}

function call({owner, name, isMethod}, values) {
    const place = owner === null ? library : isMethod ? make(owner) : library[owner];
    const result = place[name](...values);
    if (result instanceof Promise)
        result.catch(() => {});
    return result;
}

// What a function throws, or its promise, or null.
async function thrown(func) {
    try {
        await func();
        return null;
    } catch (error) {
        return error;
    }
}

function drain() {
    while (GLib.MainContext.default().iteration(false))
        continue;
}

function says(error, name) {
    const text = String(error.message);
    return error instanceof GLib.Error && /^((plot|gtk)_\w+|device|tensor): /.test(text) ||
        text.includes(name) || /Error opening/.test(text) || /^tensor: /.test(text);
}

tap.add('all_functions_are_called', () => {
    let n = 0;
    for (const one of functions()) {
        try {
            call(one, valid(one.name, one.args));
        } catch (error) {
            const isMine = /finish$|^save$|^follow_trainer$/.test(one.name); // it has no such thing
            tap.assert(isMine, `${one.name}: ${error.message}`);
        }
        n++;
        drain();
    }
    tap.assert(n > 30, `${n} functions`);
});

tap.add('what_cannot_be_taken_throws', async () => {
    let [n, nFailed] = [0, 0];
    for (const one of functions()) {
        one.args.forEach((arg, i) => {
            for (const value of HOSTILE) {
                const values = valid(one.name, one.args);
                values[i] = value;
                try {
                    call(one, values);
                } catch (error) {
                    nFailed++;
                    tap.assert(says(error, one.name),
                        `${one.owner}.${one.name}, ${arg.name}: ${error.message}`);
                }
                n++;
            }
        });
        drain();
        for (const value of [Symbol('a'), new GObject.Object()]) {
            if (one.args.length === 0)
                continue;
            const error = await thrown(() => call(one, one.args.map(() => value)));
            const isNamed = error instanceof Error && error.message.includes(one.name);
            tap.assert(isNamed, `${one.name}: ${error?.message}`);
        }
    }
    tap.assert(nFailed > n / 2, `${nFailed} of ${n} calls failed`);
});

tap.add('unknown_and_surplus_arguments_throw', () => {
    for (const one of functions()) {
        tap.throws(() => call(one, Array(30).fill(1)), error =>
            error instanceof TypeError && error.message.includes(one.name));
        if (one.args.length > 0) {
            tap.throws(() => call(one, [{no_such: 1}]), error =>
                error instanceof TypeError && error.message.includes(one.name));
        }
    }
});

tap.add('properties_take_what_they_can', () => {
    let n = 0;
    const classes = new Set(functions().map(one => one.owner).filter(name =>
        library[name]?.prototype instanceof GObject.Object && name !== 'Item'));
    for (const name of classes) {
        const thing = make(name);
        for (const spec of library[name].list_properties()) {
            if (!GObject.type_name(spec.owner_type).startsWith('GTorch'))
                continue;
            const key = spec.name.replace(/-/g, '_');
            void thing[key];
            for (const value of HOSTILE) {
                for (const set of [() => (thing[key] = value), () => new library[name]({[key]: value})]) {
                    try {
                        set();
                    } catch (error) {
                        tap.assert(says(error, key), `${name}.${key}: ${error.message}`);
                    }
                    n++;
                }
            }
            drain();
        }
        tap.throws(() => (thing.no_such = 1), error =>
            error instanceof TypeError && /no_such/.test(error.message));
        tap.throws(() => new library[name]({no_such: 1}), error => /no_such/.test(error.message));
        tap.throws(() => new library[name](1, 2, 3, 4), error => error instanceof TypeError);
    }
    tap.assert(n > 200, `${n} values`);
});

await tap.run();
