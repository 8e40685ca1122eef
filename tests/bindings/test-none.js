// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// What is not given has a value of its own: NaN and an empty array are given, null is not.

import GLib from 'gi://GLib';
import GTorch from 'gi://GTorch?version=1';

import * as tap from './tap.js';

const {nn} = GTorch;
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
        for (const {name: key} of args.filter(arg => arg.kind === 'double' && arg.optional)) {
            const layer = nn[name](3, {[key]: null});
            tap.assert(layer[key] === null);
            layer[key] = 0.5;
            tap.assert(layer[key] === 0.5);
            layer[key] = null;
            tap.assert(layer[key] === null);
            tap.assert(layer.to_string().includes(`${key}=None`), layer.to_string());
            refuses(() => nn[name](3, {[key]: NaN}), `${key} is nan`);
            layer[key] = NaN;
            tap.assert(Number.isNaN(layer[key]));
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
    refuses(() => GTorch.fft_fft2(x, {dim: []}), 'dim names no dimension');
    for (const name of ['all', 'any', 'prod', 'argmax', 'argmin', 'squeeze'])
        refuses(() => x[name]({dim: []}), `${name}: dim is an empty array`);
    tap.equal(x.sum({dim: []}).item(), 21);
});

await tap.run();
