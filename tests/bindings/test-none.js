// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// What is not given has a value of its own: NaN and an empty array are given, null and undefined are not. No
// function takes anything else for a tensor that is not given.

import GLib from 'gi://GLib';
import GObject from 'gi://GObject';
import GTorch from 'gi://GTorch?version=1';

import * as tap from './tap.js';

const {nn} = GTorch;
const {operations} = imports.overrides._gtorch_ops;
const {LAYERS} = imports.overrides._gtorch_layer_table;
const ramp = (...shape) =>
    GTorch.arange(1, shape.reduce((a, b) => a * b, 1) + 1, {dtype: GTorch.float64}).view(shape);
const special = () => GTorch.tensor([NaN, Infinity, -Infinity, 1], {dtype: GTorch.float64});
const nans = tensor => tensor.toArray().map(value => Number.isNaN(value));

function refuses(func, ...parts) {
    tap.throws(func, error =>
        (error instanceof TypeError || error instanceof GLib.Error) &&
        parts.every(part => error.message.includes(part)));
}

tap.add('the_constant_is_a_finite_number', () => {
    tap.assert(GTorch.NONE_DOUBLE === 6.180339887498948e+301, GTorch.NONE_DOUBLE);
});

tap.add('a_nan_that_is_given_takes_effect', () => {
    tap.equal(nans(GTorch.pad(ramp(2), [1, 1], {value: NaN})), [true, false, false, true]);
    tap.equal(nans(special().nan_to_num(NaN)), [true, false, false, false]);
    tap.equal(nans(special().nan_to_num({posinf: NaN})), [false, true, false, false]);
    tap.equal(nans(special().nan_to_num({neginf: NaN})), [false, false, true, false]);
    tap.equal(nans(special().nan_to_num_({nan: NaN})), [true, false, false, false]);
    tap.assert(Number.isNaN(GTorch.trapezoid(ramp(3), {dx: NaN}).item()));
    tap.assert(nans(GTorch.cumulative_trapezoid(ramp(3), {dx: NaN})).every(Boolean));
    tap.assert(Number.isNaN(GTorch.linalg_norm(ramp(3), NaN, [0]).item()));
    tap.assert(Number.isNaN(ramp(3).norm(NaN).item()));
    const attended = GTorch.scaled_dot_product_attention(ramp(2, 3), ramp(2, 3), ramp(2, 3), {scale: NaN});
    tap.assert(attended.isnan().all().item());
    refuses(() => GTorch.linalg_matrix_norm(ramp(2, 3), NaN), 'nan');
    refuses(() => GTorch.rms_norm(ramp(2, 3), [3], {eps: NaN}), 'rms_norm: eps is nan');
    refuses(() => ramp(3).logit(NaN), 'logit: eps is nan');
    refuses(() => ramp(3).histogram({low: NaN, high: 1}), 'nan');
    refuses(() => ramp(3).histogram({low: 0, high: NaN}), 'nan');
});

tap.add('null_leaves_a_number_out', () => {
    tap.equal(GTorch.pad(ramp(1), [1, 0], {value: null}).toArray(), [0, 1]);
    tap.equal(special().nan_to_num(null, 2, 3).toArray(), [0, 2, 3, 1]);
    tap.equal(GTorch.trapezoid(ramp(3), {dx: null}).item(), 4);
    tap.equal(GTorch.linalg_norm(GTorch.tensor([3, 4], {dtype: GTorch.float64}), null).item(), 5);
    tap.equal(GTorch.tensor([0.5]).logit(null).item(), 0);
});

tap.add('properties_of_layers_take_null_and_refuse_nan', () => {
    let n = 0;
    for (const [name, {args}] of Object.entries(LAYERS)) {
        const needed = Array(Math.max(args.filter(arg => arg.required).length, 1)).fill(3);
        for (const {name: key} of args.filter(arg => arg.kind === 'double' && arg.optional)) {
            const layer = (nn[name] ?? GTorch.transforms[name])(...needed, {[key]: null});
            tap.assert(layer[key] === null);
            layer[key] = 0.5;
            tap.assert(layer[key] === 0.5);
            layer[key] = null;
            tap.assert(layer[key] === null);
            const text = layer.to_string(); // some show a number only
            tap.assert(text.includes(`${key}=None`) || !text.includes(`${key}=`), text);
            refuses(() => (nn[name] ?? GTorch.transforms[name])(...needed, {[key]: NaN}), `${key} is nan`);
            refuses(() => (layer[key] = NaN), `${key} is nan`);
            tap.assert(layer[key] === null);
            n++;
        }
    }
    tap.assert(n >= 4, n);
});

tap.add('an_empty_array_is_given', () => {
    const x = ramp(2, 3);
    for (const transform of [GTorch.fft_fftn, GTorch.fft_ifftn, GTorch.fft.fftn, GTorch.fft.ifftn]) {
        for (const options of [{dim: []}, {s: []}, {s: [], dim: []}, {dim: [], norm: 'ortho'}]) {
            const same = transform(x, options);
            tap.equal(same.dtype, GTorch.complex128);
            tap.equal(same.real().toArray(), x.toArray());
        }
        tap.equal(transform(x, null, []).toArray(), transform(x, {dim: []}).toArray());
        tap.equal(transform(x, {dim: null}).toArray(), transform(x).toArray());
    }
    refuses(() => GTorch.fft_fftn(x, [2], []), 'fft_fftn: dim is an empty array');
    refuses(() => GTorch.fft_rfftn(x, {dim: []}), 'dim is an empty array');
    refuses(() => GTorch.fft_fft2(x, {dim: []}), 'dim must not be an empty array');
    for (const name of ['all', 'any', 'prod', 'argmax', 'argmin', 'squeeze'])
        refuses(() => x[name]({dim: []}), `${name}: dim is an empty array`);
    tap.equal(x.sum({dim: []}).item(), 21);
});

tap.add('questions_are_answered_by_true_or_false', () => {
    const x = ramp(2);
    for (const [other, same] of [[x.clone(), true], [x.add(1), false]]) {
        tap.assert(x.equal(other) === same);
        tap.assert(GTorch.equal(x, other) === same);
        tap.assert(x.allclose(other) === same);
        tap.assert(GTorch.allclose(x, other, {atol: 0.1}) === same);
    }
    tap.assert(x.equal(ramp(3)) === false);
    refuses(() => x.equal(), 'equal: other is missing');
});

tap.add('integers_make_int64', () => {
    const {int64, float32, float64, int8} = GTorch;
    for (const [tensor, dtype] of [
        [GTorch.arange(4), int64], [GTorch.arange(1, 4), int64], [GTorch.arange(0, 4, 2), int64],
        [GTorch.arange(4.5), float32], [GTorch.arange(0, 4, 0.5), float32], [GTorch.arange(0.5, 4), float32],
        [GTorch.arange({end: 3}), int64], [GTorch.arange(3, {dtype: float64}), float64],
        [GTorch.arange(3, {dtype: int8}), int8], [GTorch.arange(3, {dtype: null}), int64],
        [GTorch.full([2], 3), int64], [GTorch.full([2], 3.5), float32], [GTorch.full([2], NaN), float32],
        [GTorch.full([2], Infinity), float32],
        [GTorch.full([2], 1e30), float32],
        [GTorch.full([2], 3, {dtype: float64}), float64], [GTorch.full([2], 3n), int64],
        [GTorch.scalar_tensor(3), float32], [GTorch.scalar_tensor(3n), float32],
        [GTorch.scalar_tensor(3, {dtype: int64}), int64], [GTorch.scalar_tensor(2.5), float32],
        [GTorch.tensor([1, 2]), int64], [GTorch.tensor([1, 1e300]), float32],
        [GTorch.full_like(ramp(2), 3), float64], [ramp(2).new_full([2], 3), float64],
    ])
        tap.equal(GTorch.DType.get_name(tensor.dtype), GTorch.DType.get_name(dtype));
    tap.equal(GTorch.arange(4).toArray(), [0, 1, 2, 3]);
    tap.equal(GTorch.arange(5, 0, -2).toArray(), [5, 3, 1]);
    tap.equal([...GTorch.full([1], 2 ** 53 + 2).toTypedArray()].map(String), ['9007199254740994']);
    tap.equal([...GTorch.full([1], -(2 ** 63)).toTypedArray()].map(String), ['-9223372036854775808']);
});

tap.add('undefined_is_no_argument_of_a_constructor', () => {
    const Empty = GObject.registerClass(class NoneEmpty extends GTorch.Module {
        constructor(options) {
            super(options);
        }
    });
    const all = [new GTorch.Module(undefined), new GTorch.Module(), new Empty(), new Empty(undefined)];
    for (const module of all)
        tap.equal(module.parameters().length, 0);
    tap.equal(new GTorch.Dropout(undefined).p, 0.5);
    for (const value of [null, 3, 'text', []])
        refuses(() => new GTorch.Module(value), 'an object with properties is wanted');
    refuses(() => new GTorch.Module(undefined, undefined), 'an object with properties is wanted');
});

tap.add('a_forward_that_computes_later_is_refused_however_it_is_called', () => {
    const x = ramp(2);
    const Later = GObject.registerClass(class NoneLater extends GTorch.Module {
        async forward(...inputs) {
            return inputs[0];
        }
    });
    const Derived = GObject.registerClass(class NoneDerived extends Later {
        forward(...inputs) {
            return super.forward(...inputs);
        }
    });
    for (const Class of [Later, Derived]) {
        for (const call of [net => net.forward(x), net => net.forward(x, x), net => net.call(x),
            net => net.call(x, x), net => nn.Sequential(net).forward(x)]) {
            const net = new Class();
            refuses(() => call(net), 'forward()', 'computes later');
            net.register_forward_hook(() => undefined);
            refuses(() => call(net), 'computes later');
        }
    }
});

// What stands for a tensor and is none.
const NOTHING = [null, undefined, 'text', [], () => 1, Symbol.iterator];

tap.add('functions_take_nothing_else_for_a_tensor', () => {
    let n = 0;
    for (const [name, {args, method}] of Object.entries(operations)) {
        const func = GTorch[name];
        const [, kind] = args[0] ?? [];
        if (typeof func !== 'function' || kind !== 'Tensor' && !method)
            continue;
        const calls = [() => func(), ...NOTHING.map(value => () => func(value)),
            ...NOTHING.map(value => () => func(value, ramp(2))), () => func({}), () => func({nothing: 1})];
        for (const call of calls) {
            tap.throws(call, error => error instanceof TypeError && error.message.startsWith(`${name}: `));
            n++;
        }
        if (!method || name === 'normal') // GTorch.normal() takes numbers, too
            continue;
        for (const value of [null, undefined]) { // and not the global object
            tap.throws(() => func(value), error =>
                error.message.includes(` ${value}`) && !/object/i.test(error.message));
        }
    }
    tap.assert(n > 5000, n);
});

tap.add('methods_without_an_object_take_nothing_for_it', () => {
    const {sin, add, sum} = GTorch.Tensor.prototype;
    for (const func of [sin, add, sum]) {
        for (const object of [null, undefined, globalThis, {}, 3])
            tap.throws(() => func.call(object, ramp(2)), error => error instanceof TypeError);
    }
    refuses(() => sin(), 'sin');
});

tap.add('first_arguments_have_names', () => {
    const x = ramp(2);
    tap.equal(GTorch.sin({self: x}).toArray(), x.sin().toArray());
    tap.equal(GTorch.sum({self: x, dim: 0}).item(), 3);
    tap.equal(GTorch.add({self: x, other: x}).toArray(), [2, 4]);
    refuses(() => GTorch.sin({other: x}), 'sin: input is missing');
});

await tap.run();
