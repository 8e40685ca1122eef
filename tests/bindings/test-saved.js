// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Hooks for saved tensors, checkpoints, and derivatives of functions.

import GTorch from 'gi://GTorch?version=1';

import * as tap from './tap.js';

const nn = GTorch.nn;
const wave = x => x.mul(x).exp().sin();

function leaf() {
    return GTorch.tensor([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]], {dtype: GTorch.float64}).requires_grad_();
}

function gradient(func, x) {
    x.grad = null;
    func(x).sum().backward();
    return x.grad.clone();
}

function fails(func, ...texts) {
    tap.throws(func, error => texts.every(text => error.message.includes(text)));
}

tap.add('hooks_keep_anything', () => {
    const x = leaf();
    const seen = [];
    const pack = tensor => {
        seen.push(tensor.shape);
        return {values: tensor.toArray()};
    };
    const unpack = packed => GTorch.tensor(packed.values, {dtype: GTorch.float64, device: x.get_device()});
    const found = gradient(value => GTorch.saved_tensors_hooks(pack, unpack, () => wave(value)), x);
    tap.assert(found.equal(gradient(wave, x)));
    tap.equal(seen.map(String), ['2,3', '2,3', '2,3', '2,3']);
});

tap.add('exceptions_arrive', () => {
    const x = leaf();
    const full = () => {
        throw new RangeError('full');
    };
    const same = value => value;
    tap.throws(() => GTorch.saved_tensors_hooks(full, same, () => x.exp()),
        error => error instanceof RangeError && error.message === 'full');
    const backward = unpack => {
        const y = GTorch.saved_tensors_hooks(same, unpack, () => x.exp().sum());
        return () => y.backward();
    };
    tap.throws(backward(full), error => error instanceof RangeError);
    fails(backward(() => 5), 'unpack_hook gave number 5, not a tensor');
    fails(backward(packed => packed.sum()), 'a hook gave back float64 of shape []');
    tap.throws(() => GTorch.saved_tensors_hooks(5, same, () => x), error => error instanceof TypeError);
    const refused = () => GTorch.save_on_cpu(() => x);
    fails(() => GTorch.disable_saved_tensors_hooks('not here', refused), 'not here');
    tap.throws(() => GTorch.disable_saved_tensors_hooks(5, () => x), error => error instanceof TypeError);
});

tap.add('memory_of_the_cpu_is_enough', () => {
    const x = leaf();
    const run = value => GTorch.save_on_cpu(() => wave(value), {pin_memory: false});
    tap.assert(gradient(run, x).equal(gradient(wave, x)));
});

tap.add('checkpoints_give_the_same_gradients', () => {
    const x = leaf();
    const calls = [];
    const block = (value, factor) => {
        calls.push(factor);
        return value.tanh().dropout(0.5, true).mul(factor);
    };
    const results = func => {
        GTorch.manual_seed(5);
        return gradient(func, x);
    };
    const expected = results(value => block(value, 3));
    for (const settings of [{use_reentrant: false}, {use_reentrant: true},
        {use_reentrant: false, early_stop: false, determinism_check: 'none'}]) {
        calls.length = 0;
        const found = results(value => GTorch.checkpoint(block, value, 3, settings));
        tap.assert(found.equal(expected), JSON.stringify(settings));
        tap.equal(calls, [3, 3]);
    }
});

tap.add('anything_is_taken_and_given', () => {
    const x = leaf();
    for (const isReentrant of [false, true]) {
        const [value, name] = GTorch.checkpoint((a, b) => [a.exp(), b], x, 'b', {use_reentrant: isReentrant});
        tap.equal(name, 'b');
        x.grad = null;
        value.sum().backward();
        tap.assert(x.grad.equal(x.exp()));
    }
});

tap.add('checkpoints_are_within_one_another', () => {
    const x = leaf();
    for (const inner of [true, false]) {
        for (const outer of [true, false]) {
            const block = value => GTorch.checkpoint(wave, value.cos(), {use_reentrant: inner}).tanh();
            const found = gradient(value => GTorch.checkpoint(block, value, {use_reentrant: outer}), x);
            tap.assert(found.equal(gradient(value => wave(value.cos()).tanh(), x)));
        }
    }
});

tap.add('what_differs_is_named', () => {
    const x = leaf();
    const run = func => {
        let n = 0;
        return () => GTorch.checkpoint(value => func(value, ++n), x, {use_reentrant: false}).sum().backward();
    };
    fails(run((value, n) => (n === 1 ? value.exp() : value.sin()).tanh()), 'of exp, then', 'of sin');
    tap.throws(run((value, n) => {
        if (n > 1)
            throw new RangeError('the second time');
        return value.exp();
    }), error => error instanceof RangeError);
    fails(() => GTorch.checkpoint(wave, x), 'use_reentrant is missing');
    fails(() => GTorch.checkpoint(wave, x, {use_reentrant: 1}), 'use_reentrant');
    fails(() => GTorch.checkpoint(wave, x, {use_reentrant: true, debug: true}), 'debug');
    fails(() => GTorch.checkpoint(wave, x, {use_reentrant: true, determinism_check: 'all'}),
        'determinism_check');
    tap.throws(() => GTorch.checkpoint(5, x, {use_reentrant: true}), error => error instanceof TypeError);
    const y = GTorch.checkpoint(wave, x, {use_reentrant: true}).sum();
    fails(() => GTorch.autograd_grad(y, x, {retain_graph: true}), 'use_reentrant');
});

tap.add('chains_are_divided', () => {
    const x = leaf();
    const layers = [new nn.Linear(3, 3, {dtype: GTorch.float64}), new nn.Tanh(), value => value.mul(2)];
    const all = value => layers[2](layers[1].forward(layers[0].forward(value)));
    const expected = gradient(all, x);
    const {checkpoint_sequential: divide} = GTorch.utils.checkpoint;
    for (const isReentrant of [false, true]) {
        for (const segments of [1, 2, 3]) {
            const run = value => divide(layers, segments, value, {use_reentrant: isReentrant});
            tap.assert(gradient(run, x).equal(expected));
        }
    }
    const net = new nn.Sequential(layers[0], layers[1]);
    tap.assert(gradient(value => divide(net, 2, value, {use_reentrant: false}), x).equal(gradient(value =>
        net.forward(value), x)));
    fails(() => divide(layers, 4, x, {use_reentrant: false}), '4 segments of 3 functions');
    fails(() => divide(layers, 1, x), 'use_reentrant is missing');
});

tap.add('derivatives_have_their_values', () => {
    const x = GTorch.tensor([1, 2], {dtype: GTorch.float64});
    const v = GTorch.tensor([3, 4], {dtype: GTorch.float64});
    const cube = a => a.pow(3);
    const total = a => cube(a).sum();
    tap.equal(GTorch.autograd_jacobian(cube, x)[0][0].toArray(), [[3, 0], [0, 12]]);
    tap.equal(GTorch.autograd_hessian(total, x)[0][0].toArray(), [[6, 0], [0, 12]]);
    for (const name of ['vjp', 'jvp']) {
        const [outputs, products] = GTorch[`autograd_${name}`](cube, x, {v});
        tap.equal([outputs[0].toArray(), products[0].toArray()], [[1, 8], [9, 48]]);
    }
    for (const name of ['vhp', 'hvp']) {
        const [outputs, products] = GTorch[`autograd_${name}`](total, x, {v});
        tap.equal([outputs[0].item(), products[0].toArray()], [9, [18, 48]]);
    }
    const blocks = GTorch.autograd_jacobian((a, b) => [a.mul(b), b], [x, v]);
    tap.equal(blocks.map(row => row.map(one => one.shape)), [[[2, 2], [2, 2]], [[2, 2], [2, 2]]]);
    fails(() => GTorch.autograd_vjp(cube, x), 'v may be missing');
    fails(() => GTorch.autograd_jacobian(() => x, x, {strict: true}), 'strict');
});

tap.add('tangents_have_their_values', () => {
    const {dual_level: level, make_dual: makeDual, unpack_dual: unpackDual} = GTorch.forward_ad;
    const x = GTorch.tensor([1, 2], {dtype: GTorch.float64});
    const v = GTorch.tensor([3, 4], {dtype: GTorch.float64});
    const product = level(() => {
        const dual = makeDual(x, v);
        const [primal, tangent] = unpackDual(dual.pow(3));
        tap.equal(primal.toArray(), [1, 8]);
        tap.equal(unpackDual(x)[1], null);
        fails(() => level(() => null), 'no nested ones');
        return tangent;
    });
    tap.equal(product.toArray(), [9, 48]);
    fails(() => makeDual(x, v), 'no level of dual tensors is open');
    fails(() => level(() => {
        throw new Error('ours');
    }), 'ours');
    tap.assert(!GTorch.forward_ad_has_dual_level());
    const cube = a => a.pow(3);
    tap.equal(GTorch.autograd_jacobian_forward(cube, x)[0][0].toArray(), [[3, 0], [0, 12]]);
    tap.equal(GTorch.autograd_hessian_forward(a => cube(a).sum(), x)[0][0].toArray(), [[6, 0], [0, 12]]);
});

await tap.run();
