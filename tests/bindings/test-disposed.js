// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// No JavaScript program can crash the process: the methods and properties of each class are called on
// fresh, released and disposed objects with all kinds of arguments, including wrong ones; so are the
// functions of the namespace and static methods. A child process makes the calls and logs each before it
// makes it; a call that kills it, or that makes GLib or GTorch log a critical message, is a failure.
//
//     gjs -m test-disposed.js SEED ROUNDS      makes ROUNDS calls with random arguments for each method

import GLib from 'gi://GLib';
import GObject from 'gi://GObject';
import GTorch from 'gi://GTorch?version=1';
import Gio from 'gi://Gio';
import System from 'system';
import * as tap from './tap.js';

Gio._promisify(Gio.Subprocess.prototype, 'communicate_utf8_async');

const {nn, optim} = GTorch;
const STATES = ['whole', 'released', 'disposed'];
const SECONDS = 240; // the time limit of a child; there is one child unless it ends too early

// --- objects ---

const ones = (...shape) => GTorch.ones(shape);
const parameter = () => nn.Parameter(ones(2, 2));

function hookedGrad() {
    const x = ones(2).requires_grad_inplace(true);
    x.mul(x).sum().backward();
    return x;
}

const isClass = value => typeof value === 'function' && value.prototype !== undefined && 'name' in value &&
    GObject.Object.isPrototypeOf(value);

// Functions by name, tested like the methods of an object.
function functions() {
    const found = {};
    for (const name of Object.getOwnPropertyNames(GTorch)) {
        const value = GTorch[name];
        if (isClass(value)) {
            for (const method of Object.getOwnPropertyNames(value)) {
                if (typeof value[method] === 'function' && !LEFT_OUT.has(method) && method !== 'prototype')
                    found[`${name}.${method}`] = (...given) => value[method](...given);
            }
            found[`new ${name}`] = (...given) => new value(...given);
        } else if (typeof value === 'function' && !LEFT_OUT.has(name)) {
            found[name] = (...given) => value(...given);
        }
    }
    for (const namespace of [nn, optim]) {
        for (const name of Object.keys(namespace)) {
            if (typeof namespace[name] === 'function' && !isClass(namespace[name]))
                found[`nn.${name}`] = (...given) => namespace[name](...given);
        }
    }
    return found;
}

const MAKERS = {
    'functions': functions,
    'Tensor': () => ones(2, 3),
    'Tensor of integers': () => GTorch.tensor([1, 2, 0], {dtype: GTorch.int64}),
    'Tensor of one element': () => GTorch.tensor(1.5),
    'Tensor with a gradient': hookedGrad,
    'Tensor in a graph': () => ones(2).requires_grad_inplace(true).mul(2),
    'view': () => ones(4, 4).transpose(0, 1),
    'Parameter': parameter,
    'Linear': () => nn.Linear(2, 2),
    'Conv2d': () => nn.Conv2d(1, 1, 2),
    'BatchNorm1d': () => nn.BatchNorm1d(2),
    'Embedding': () => nn.Embedding(3, 2),
    'Sequential': () => nn.Sequential(nn.Linear(2, 2), nn.ReLU()),
    'NLLLoss': () => GTorch.nn.NLLLoss(ones(2)),
    'MSELoss': () => nn.MSELoss(),
    'SGD': () => optim.SGD([parameter()], {lr: 0.1}),
    'Adam': () => optim.Adam([parameter()]),
    'GradScaler': () => new GTorch.GradScaler(),
    'Generator': () => GTorch.Generator.new_with_seed(3),
    'Stream': () => GTorch.Stream.new(null, 0),
    'Event': () => GTorch.Event.new(GTorch.EventFlags.TIMING),
    'CUDAGraph': () => GTorch.CUDAGraph.new(),
    'GraphedModule': () => GTorch.GraphedModule.new(nn.Linear(2, 2), [ones(1, 2)]),
    'Timer': () => GTorch.Timer.new(null),
    'MemoryPool': () => GTorch.MemoryPool.new(null),
    'FFTPlanCache': () => GTorch.Device.cpu().get_fft_plan_cache(),
};
// Objects that live as long as the process are not disposed.
const SHARED = new Set(['functions', 'FFTPlanCache']);
// gjs refuses any use of a disposed object, whatever its earlier state.
const statesOf = name => {
    if (SHARED.has(name))
        return ['whole'];
    return name.startsWith('Tensor ') || name === 'view' ? STATES.slice(0, 2) : STATES;
};
// Calls that wait for something that never happens, exit the process, take an address, or change
// the state of all threads.
const LEFT_OUT = new Set([
    'run_dispose', 'unref', 'ref', 'import_dlpack', 'export_dlpack', 'dlpack_delete', 'new_from_dlpack',
    'from_dlpack', 'to_dlpack', 'new_external', 'set_num_threads', '$gtype', 'constructor',
]);

function listed(model) {
    const items = [];
    for (let i = 0; i < model.get_n_items(); i++)
        items.push(model.get_item(i));
    return items;
}

function tensorsOf(thing) {
    if (thing instanceof GTorch.Tensor)
        return [thing];
    if (thing instanceof GTorch.Module)
        return [...listed(thing.get_parameters(true)), ...listed(thing.get_buffers(true)), thing.weight];
    if (thing instanceof GTorch.Optimizer)
        return listed(thing.get_param_groups()).flatMap(group => listed(group.get_params()));
    return [];
}

function make(name, state) {
    const thing = MAKERS[name]();
    if (state === 'released')
        tensorsOf(thing).forEach(tensor => tensor instanceof GTorch.Tensor && tensor.release());
    else if (state === 'disposed' && !SHARED.has(name))
        thing.run_dispose();
    return thing;
}

// --- arguments ---

function gone() {
    const tensor = ones(2, 2);
    tensor.release();
    return tensor;
}

function disposed() {
    const tensor = ones(2, 2);
    tensor.run_dispose();
    return tensor;
}

const PLAUSIBLE = [
    () => 0, () => 1, () => -1, () => 0.5, () => true, () => 'a', () => 'weight', () => [0], () => [2, 2],
    () => ones(2, 2), () => GTorch.tensor([0, 1], {dtype: GTorch.int64}), () => [ones(2, 2), ones(2, 2)],
    () => GTorch.float32,
    () => GTorch.Device.cpu(), () => null, () => nn.ReLU(), () => ({dim: 0}),
];
const NONSENSE = [
    gone, disposed, () => 2 ** 62, () => -(2 ** 63), () => 2 ** 80, () => NaN, () => Infinity, () => [],
    () => [null], () => [gone(), null], () => [gone(), disposed()], () => [ones(2), 'a'],
    () => [2 ** 40, 2 ** 40], () => [-5],
    () => ({}), () => ({weight: null}), () => ({weight: gone()}), () => '', () => '\ud800', () => 'a\0b',
    () => new Uint8Array([0, 255]), () => () => undefined, () => () => {
        throw new Error('no');
    }, () => new GLib.Bytes([1, 2, 3, 4]), () => Gio.Cancellable.new(),
    () => new Gio.MemoryInputStream(), () => GTorch.Tensor, () => 10 ** 6, () => 10n ** 20n,
    () => Symbol('s'), () => undefined, () => new GObject.Object(),
];
const PROTOCOLS = [
    String, thing => `${thing}`, thing => JSON.stringify(thing), thing => [...thing], thing => thing + 1,
    thing => thing[0], thing => thing.length, thing => Object.keys(thing), thing => thing === thing, Number,
    thing => thing.toArray(), thing => thing.item(), thing => thing.at('0'), thing => thing.set('0', 1),
    thing => thing.backward(), thing => thing.forward(ones(1, 2)), thing => thing.call(gone()),
    thing => thing.state_dict(), thing => thing.load_state_dict(thing.state_dict()), thing => thing.step(),
    thing => thing.zero_grad(), thing => thing.grad, thing => thing.add(thing), thing => thing.matmul(gone()),
];

// A source of the same random numbers each time.
class Source {
    constructor(text) {
        this.state = [...text].reduce((sum, c) => (Math.imul(sum, 31) + c.codePointAt(0)) >>> 0, 7);
    }

    below(n) {
        this.state = (Math.imul(this.state, 1664525) + 1013904223) >>> 0;
        return Math.floor(this.state / 2 ** 32 * n);
    }

    choose(list) {
        return list[this.below(list.length)];
    }
}

function args(source) {
    const n = source.choose([0, 0, 1, 1, 2, 2, 3, 4]);
    return Array.from({length: n}, () => source.choose(source.below(10) < 4 ? NONSENSE : PLAUSIBLE)());
}

// --- the child ---

function methodsOf(thing) {
    const names = new Set();
    const last = new Set([null, GObject.Object.prototype, Object.prototype]);
    for (let o = thing; !last.has(o); o = Object.getPrototypeOf(o)) {
        for (const name of Object.getOwnPropertyNames(o)) {
            const descriptor = Object.getOwnPropertyDescriptor(o, name);
            if (typeof descriptor.value === 'function' && !LEFT_OUT.has(name) &&
                !/_(async|finish|finish_lists)$/.test(name))
                names.add(name);
        }
    }
    return [...names].sort();
}

function attempt(call) {
    try {
        const result = call();
        if (result instanceof Promise)
            result.catch(() => {});
    } catch {
        // that is the expected result
    }
}

function exercise(name, state, seed, rounds) {
    const source = new Source(`${seed} ${name} ${state}`);
    let thing = make(name, state);
    PROTOCOLS.forEach((protocol, i) => {
        print(`${name}, ${state}: protocol ${i}`);
        attempt(() => protocol(thing));
        thing = make(name, state);
    });
    for (const pspec of thing instanceof GObject.Object ? thing.constructor.list_properties?.() ?? [] : []) {
        print(`${name}, ${state}: property ${pspec.name}`);
        const property = pspec.name.replaceAll('-', '_');
        attempt(() => thing[property]);
        for (let i = 0; i < 3; i++) {
            attempt(() => {
                thing[property] = source.choose(source.below(2) ? NONSENSE : PLAUSIBLE)();
            });
        }
    }
    for (const method of methodsOf(thing)) {
        for (let round = 0; round < rounds; round++) {
            if (!SHARED.has(name))
                thing = make(name, state);
            const given = args(source);
            const kinds = given.map(value => Object.prototype.toString.call(value));
            print(`${name}, ${state}: ${method} ${kinds}`);
            attempt(() => thing[method](...given));
        }
    }
}

// Runs the tests from the nth maker on; announces each, so that the parent knows where to continue.
function child(first, seed, rounds) {
    const names = Object.keys(MAKERS);
    for (let i = first; i < names.length; i++) {
        print(`begin ${i}`);
        for (const state of statesOf(names[i]))
            exercise(names[i], state, seed, rounds);
        print(`end ${i}`);
    }
    System.exit(0);
}

// --- the parent ---

const failures = new Map(); // maps the index of the maker to the failure
const done = new Set();

// gjs itself logs a critical message for the use of a disposed object, and continues.
const isCritical = line => line.includes('CRITICAL') && !line.includes('Gjs-CRITICAL');

async function runFrom(first, seed, rounds) {
    const launcher = new Gio.SubprocessLauncher({
        flags: Gio.SubprocessFlags.STDOUT_PIPE | Gio.SubprocessFlags.STDERR_PIPE,
    });
    launcher.setenv('G_DEBUG', '', true);
    launcher.setenv('OMP_NUM_THREADS', '1', true);
    const [file] = GLib.filename_from_uri(import.meta.url);
    const process = launcher.spawnv(['gjs', '-m', file, '--child', `${first}`, `${seed}`, `${rounds}`]);
    let isLate = false;
    const timer = GLib.timeout_add_seconds(GLib.PRIORITY_DEFAULT, SECONDS, () => {
        isLate = true;
        process.force_exit();
        return GLib.SOURCE_CONTINUE;
    });
    const [output, errors] = await process.communicate_utf8_async(null, null);
    GLib.source_remove(timer);
    const lines = output.trimEnd().split('\n');
    let current = first;
    for (const line of lines) {
        const [, word, index] = /^(begin|end) (\d+)$/.exec(line) ?? [];
        if (word === 'begin')
            current = Number(index);
        else if (word === 'end')
            done.add(Number(index));
    }
    const critical = errors.split('\n').find(isCritical);
    if (isLate || !process.get_if_exited() || process.get_exit_status() !== 0)
        failures.set(current, `${isLate ? 'hangs' : 'ends'} in ${lines.at(-1)}: ${errors.slice(-300)}`);
    else if (critical !== undefined)
        failures.set(first, critical);
    return done.has(current) ? Object.keys(MAKERS).length : current + 1;
}

async function survive(index, seed, rounds) {
    for (let next = index; !done.has(index) && !failures.has(index);)
        next = await runFrom(next, seed, rounds);
    tap.assert(!failures.has(index), failures.get(index));
}

const given = ARGV.filter(word => word !== '--child');
if (ARGV.includes('--child'))
    child(...given.map(Number));
const [seed, rounds] = [Number(given[0] ?? 1), Number(given[1] ?? 1)];
Object.keys(MAKERS).forEach((name, i) =>
    tap.add(`${name.replaceAll(' ', '_').toLowerCase()}_survives`, () => survive(i, seed, rounds)));
await tap.run();
