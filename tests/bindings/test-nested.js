// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Functions that are given functions, called by such functions: each level works, or is refused before gjs,
// which has room for one function in each argument of a function of C, frees one of them twice.

import Gio from 'gi://Gio';
import GTorch from 'gi://GTorch?version=1';

import * as tap from './tap.js';
import * as typelib from './typelib.js';

const home = GTorch.get_default_device();
const DEPTH = 4;
const ROUNDS = 20;

const leaf = () => GTorch.tensor([1, 2], {dtype: GTorch.float64, requires_grad: true});
const stream = () => GTorch.Stream.new(home, 0);
const output = () => Gio.MemoryOutputStream.new_resizable();
const tensors = () => ({a: GTorch.ones([5])});

function saved() {
    const out = output();
    GTorch.safetensors_save(tensors(), null, out, null, null);
    out.close(null);
    return out.steal_as_bytes();
}

function capture(func) {
    const graph = new GTorch.CUDAGraph();
    graph.capture(stream(), null, () => {
        GTorch.ones([2]).add(1);
        func();
    });
    graph.replay();
}

// What calls func(inner) within itself.
const NESTED = {
    'CUDAGraph.capture': capture,
    'Device.run': func => home.run(func),
    'Device.run_as_default': func => home.run_as_default(func),
    'MemoryPool.run': func => GTorch.MemoryPool.new(home).run(func),
    'Module.apply': func => GTorch.nn.Identity().apply(func),
    'Stream.run': func => stream().run(func),
    'autocast_run': func => GTorch.autocast_run(GTorch.DeviceType.CPU, GTorch.bfloat16, true, true, func),
    'record_function': func => GTorch.record_function('a range', func),
};
const load = (name, given) => func =>
    GTorch[name](Gio.MemoryInputStream.new_from_bytes(saved()), null, ...given, func);
const loadFile = name => func => {
    const [file, content] = Gio.File.new_tmp('gtorch-XXXXXX');
    content.get_output_stream().write_bytes(saved(), null);
    content.close(null);
    try {
        return GTorch[name](file, false, null, null, func);
    } finally {
        file.delete(null);
    }
};
const saveLists = func =>
    GTorch.safetensors_save_lists(['a'], [GTorch.ones([5])], null, output(), null, func);
const saveFile = (name, ...given) => func => {
    const [file, content] = Gio.File.new_tmp('gtorch-XXXXXX');
    content.close(null);
    try {
        return GTorch[name](...given, file, null, func);
    } finally {
        file.delete(null);
    }
};
// The closure of an optimizer that has no line search is called in JavaScript.
const loss = weight => weight.mul(weight).sum();
function lbfgs(func) {
    const weight = GTorch.nn.Parameter(GTorch.ones([2]));
    const optimizer = GTorch.optim.LBFGS([weight]);
    return optimizer.step_closure(() => {
        optimizer.zero_grad();
        const found = func() ?? loss(weight);
        found.backward();
        return found;
    });
}
function* batches(func) {
    for (let i = 0; i < 2; i++)
        yield func() ?? GTorch.ones([3, 2]);
}
const parts = () => [GTorch.Sample.of(1), GTorch.Sample.of(2)];
const REFUSED = {
    'Optimizer.step_closure': lbfgs,
    'Sample.collate_with': func => GTorch.Sample.collate_with(parts(),
        (dtype, shape) => func() ?? GTorch.empty(shape, {dtype, device: 'cpu'})),
    'Sample.map_tensors': func => GTorch.Sample.of(leaf()).map_tensors(x => func() ?? x),
    'sample_collate_with': func => GTorch.sample_collate_with(parts(),
        (dtype, shape) => func() ?? GTorch.empty(shape, {dtype, device: 'cpu'})),
    'update_bn': func => GTorch.update_bn(batches(func), GTorch.nn.BatchNorm1d(2)),
    ...Object.fromEntries(['hessian', 'hvp', 'jacobian', 'jvp', 'vhp', 'vjp'].map(name =>
        [`autograd_${name}`, func => GTorch[`autograd_${name}`](x => func() ?? x.mul(2), GTorch.ones([1]))])),
    ...Object.fromEntries(['hessian', 'jacobian'].map(name => [`autograd_${name}_forward`,
        func => GTorch[`autograd_${name}_forward`](x => func() ?? x.mul(x).sum(), GTorch.ones([1]))])),
    'triplet_margin_with_distance_loss': func =>
        GTorch.triplet_margin_with_distance_loss(leaf(), leaf(), leaf(),
            {distance_function: (x, y) => func() ?? x.sub(y).abs()}),
    'gradcheck': func => GTorch.gradcheck(x => func() ?? x.mul(2), leaf()),
    'gradgradcheck': func => GTorch.gradgradcheck(x => func() ?? x.mul(x), leaf()),
    'safetensors_load': load('safetensors_load', [null]),
    'safetensors_load_lists': load('safetensors_load_lists', [null]),
    'safetensors_load_file': loadFile('safetensors_load_file'),
    'safetensors_load_file_lists': loadFile('safetensors_load_file_lists'),
    'safetensors_save': func => GTorch.safetensors_save(tensors(), null, output(), null, func),
    'safetensors_save_lists': saveLists,
    'safetensors_save_file': saveFile('safetensors_save_file', tensors(), null),
    'safetensors_save_file_lists': saveFile('safetensors_save_file_lists', ['a'], [GTorch.ones([5])], null),
};

tap.add('every_function_that_calls_one_during_the_call_is_known', () => {
    const found = typelib.callables().filter(({args}) => args.some(arg => arg.scope === typelib.CALL))
        .map(({owner, name}) => owner === null ? name : `${owner}.${name}`);
    const known = [...Object.keys(NESTED), ...Object.keys(REFUSED)];
    tap.equal(found.filter(name => !known.includes(name)), []);
    tap.assert(found.length >= 13);
});

for (const [name, call] of Object.entries(NESTED)) {
    tap.add(`${name.replace(/\W/g, '_')}_within_itself`, () => {
        for (let round = 0; round < ROUNDS; round++) {
            let n = 0;
            const go = () => {
                if (++n < DEPTH)
                    call(go);
            };
            call(go);
            tap.equal(n, DEPTH);
        }
    });
}

for (const [name, call] of Object.entries(REFUSED)) {
    tap.add(`${name}_within_itself_is_refused`, () => {
        const isRefused = error => error.message.includes('cannot give') &&
            error.message.includes(name.split('.').at(-1));
        for (let round = 0; round < ROUNDS; round++) {
            let n = 0;
            tap.throws(() => call(() => {
                n++;
                call(() => undefined);
            }), isRefused);
            tap.equal(n, 1);
            call(() => {
                n++;
                tap.throws(() => call(() => undefined), isRefused);
            });
            tap.assert(n > 1);
            call(() => undefined);
        }
    });
}

tap.add('one_within_another_works', () => {
    const calls = Object.values({...NESTED, ...REFUSED});
    let n = 0;
    for (const outer of calls) {
        for (const inner of calls.filter(one => one !== outer)) {
            let isCalled = false;
            try {
                outer(() => {
                    if (!isCalled) {
                        isCalled = true;
                        inner(() => undefined);
                    }
                });
            } catch (error) {
                // load() and load_lists() are one function of C, a capture computes nothing to save or
                // check, and dual tensors have one level
                const {message} = error;
                const known = /cannot (give|be read on the host|be captured)|no nested ones/;
                tap.assert(known.test(message), message);
            }
            n += isCalled ? 1 : 0;
        }
    }
    tap.equal(n, calls.length * (calls.length - 1));
});

tap.add('a_capture_that_throws_leaves_the_graph_empty', () => {
    const graph = new GTorch.CUDAGraph();
    const on = stream();
    const thrown = {code: 1};
    for (const warmups of [0, 2]) {
        graph.warmup_iterations = warmups;
        let n = 0;
        tap.throws(() => graph.capture(on, null, () => {
            GTorch.ones([2]).add(1);
            if (n++ === warmups)
                throw thrown;
        }), error => error === thrown);
        tap.equal([n, graph.state], [warmups + 1, GTorch.GraphState.EMPTY]);
        tap.assert(GTorch.Stream.get_current(home) === home.get_default_stream());
    }
    tap.equal(graph.capture(on, null, of => of === on && GTorch.ones([1]) && 7), 7);
    graph.reset();
    tap.assert(graph.capture(null, null, () => GTorch.ones([1])) instanceof GTorch.Tensor);
});

await tap.run();
