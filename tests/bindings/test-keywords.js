// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Operations with PyTorch's names of arguments, with those that the rules add, and in PyTorch's forms.

import GTorch from 'gi://GTorch?version=1';

import * as tap from './tap.js';

const {nn} = GTorch;
const X = GTorch.tensor([[1.5, -2, 3], [4, 5, -6]]);
const WHOLE = GTorch.tensor([-7, 7, 8]);
const INDEX = GTorch.tensor([[0, 1, 2]]);
const SORTED = GTorch.tensor([1, 2, 3.5]);

function same(got, expected) {
    tap.equal(got.toArray(), expected instanceof GTorch.Tensor ? expected.toArray() : expected);
}

function near(got, expected) {
    tap.assert(got.allclose(expected), `${got} instead of ${expected}`);
}

function refuses(func, says) {
    tap.throws(func, error => error.message.includes(says));
}

function arrays(tensors) {
    return tensors.map(one => one.toArray());
}

tap.add('functions_take_their_tensor_by_name', () => {
    same(GTorch.softmax({input: X, dim: 0}), X.softmax(0));
    same(GTorch.add({input: X, other: 2}), X.add(2));
    same(GTorch.special.expit({input: X}), X.sigmoid());
    refuses(() => GTorch.softmax({dim: 0}), 'softmax: input is missing');
    for (const wrong of [null, undefined, 3, 'x', []])
        refuses(() => GTorch.sin(wrong), 'sin: input must be a tensor');
});

tap.add('axis_keepdims_and_size_are_further_names', () => {
    same(X.sum({axis: 1, keepdims: true}), X.sum(1, true));
    same(GTorch.sum(X, {axis: 0}), X.sum(0));
    same(X.max({axis: 1})[0], X.max(1)[0]);
    same(GTorch.full({size: [2], fill_value: 3}), [3, 3]);
    refuses(() => X.sum({dim: 0, axis: 0}), 'sum: dim is given twice, by two names');
    refuses(() => X.exp({axis: 0}), 'there is no option axis');
});

tap.add('results_are_written_into_out', () => {
    const out = GTorch.zeros([2, 3]);
    tap.assert(GTorch.add(X, 1, {out}) === out);
    same(out, X.add(1));
    const [values, indices] = [GTorch.zeros([2, 3]), GTorch.zeros([2, 3], {dtype: GTorch.int64})];
    X.sort({out: [values, indices]});
    same(values, X.sort().values);
    refuses(() => GTorch.add(X, 1, {out: GTorch.zeros([3])}), 'out has the shape [3] and the result [2, 3]');
    const narrow = WHOLE.expand([2, 3]).clone();
    refuses(() => GTorch.add(X, 1, {out: narrow}), 'cannot be written into a tensor of int64');
    refuses(() => X.sort({out: values}), 'out has 1 tensors, and the result 2');
    refuses(() => X.exp({out: 3}), 'out must be a tensor');
    const x = X.clone().requires_grad_();
    refuses(() => x.exp({out}), 'has no gradient');
    GTorch.no_grad(() => {
        x.exp({out});
    });
    same(out, X.exp());
});

tap.add('new_tensors_may_require_gradients', () => {
    for (const made of [
        GTorch.zeros([2], {requires_grad: true}),
        GTorch.full([2], 0.5, {requires_grad: true, pin_memory: false, layout: 'strided'}),
        GTorch.arange(3, {requires_grad: true, dtype: GTorch.float32}),
        GTorch.zeros_like(X, {requires_grad: true}),
        GTorch.tensor([1.5], {requires_grad: true, pin_memory: false}),
        GTorch.normal(0, 1, [2], {requires_grad: true}),
        X.new_ones([2], {requires_grad: true, device: 'cpu'}),
    ])
        tap.assert(made.requires_grad);
    tap.assert(!GTorch.zeros([2], {requires_grad: false}).requires_grad);
    same(GTorch.full_like(X, 2, {device: 'cpu', dtype: GTorch.int64}), [[2, 2, 2], [2, 2, 2]]);
    tap.equal(GTorch.tril_indices(2, 2, {dtype: GTorch.int32}).get_dtype(), GTorch.int32);
    refuses(() => GTorch.zeros([2], {pin_memory: true}), 'zeros: pin_memory is not supported');
    refuses(() => GTorch.zeros([2], {layout: 'sparse'}), 'zeros: layout sparse is not supported');
    refuses(() => GTorch.zeros_like(X, {memory_format: 'channels_last'}), 'is not supported');
    refuses(() => X.exp({requires_grad: true}), 'there is no option requires_grad');
});

tap.add('spreads_take_unbiased', () => {
    for (const name of ['std', 'var']) {
        same(X[name](false), X[name]({correction: 0}));
        same(X[name](1, {unbiased: false, keepdim: true}), X[name](1, 0, true));
        refuses(() => X[name](1, 0, {unbiased: true}), 'unbiased or a correction');
        refuses(() => X[name](true, 1), 'alone is unbiased');
    }
    same(X.var_mean(1, {unbiased: false})[0], X.var(1, 0));
});

tap.add('divisions_round', () => {
    same(WHOLE.div(2, {rounding_mode: 'trunc'}), [-3, 3, 4]);
    same(GTorch.div(WHOLE, -2, {rounding_mode: 'trunc'}), [3, -3, -4]);
    same(WHOLE.div(2, {rounding_mode: 'floor'}), [-4, 3, 4]);
    same(X.div(2, {rounding_mode: null}), X.div(2));
    same(X.clone().div_(2, {rounding_mode: 'trunc'}), [[0, -1, 1], [2, 2, -3]]);
    refuses(() => WHOLE.clone().div_(2.5, {rounding_mode: 'trunc'}), 'cannot be written');
    refuses(() => X.div(2, {rounding_mode: 'up'}), 'rounding_mode must be one of null, floor, trunc');
    const x = GTorch.tensor([1.26, -1.24, 155], {dtype: GTorch.float64});
    near(x.round({decimals: 1}), GTorch.tensor([1.3, -1.2, 155], {dtype: GTorch.float64}));
    same(x.round({decimals: -2}).abs(), [0, 0, 200]);
    refuses(() => WHOLE.round({decimals: 1}), 'decimals 1 are for floating-point numbers, not int64');
});

tap.add('places_come_as_arrays', () => {
    tap.equal(arrays(GTorch.where(X.gt(3))), [[1, 1], [0, 1]]);
    tap.equal(arrays(X.gt(3).nonzero({as_tuple: true})), [[1, 1], [0, 1]]);
    same(X.where(X.gt(0), 0), X.relu());
    same(X.take_along_dim(GTorch.tensor([0, 5])), [1.5, -6]);
    refuses(() => X.gather(1, INDEX, {sparse_grad: true}), 'sparse_grad is not supported');
});

tap.add('numbers_come_first', () => {
    near(GTorch.xlogy(2, X.abs()), X.abs().log().mul(2));
    near(GTorch.pow(2, X), X.exp2());
    tap.equal(GTorch.bucketize(2.5, SORTED).item(), 2);
});

tap.add('products_take_numbers_and_lists_of_dimensions', () => {
    const [a, b] = [GTorch.rand([2, 3, 4]), GTorch.rand([3, 4, 5])];
    const expected = a.reshape([2, 12]).matmul(b.reshape([12, 5]));
    near(GTorch.tensordot(a, b), expected);
    near(GTorch.tensordot(a, b, 2), expected);
    near(GTorch.tensordot(a, b, {dims: [[1, 2], [0, 1]]}), expected);
    near(GTorch.tensordot(a, b, [1, 2], [0, 1]), expected);
    refuses(() => GTorch.tensordot(a, b, 4), '4 dimensions of tensors that have 3 and 3');
    const m = GTorch.tensor([[2, 1], [1, 3]], {dtype: GTorch.float64});
    near(m.matrix_power(-2), GTorch.linalg.inv(m.matmul(m)));
    near(GTorch.chain_matmul(m, m, m), m.matrix_power(3));
    near(GTorch.cdist(m, m, {compute_mode: 'use_mm_for_euclid_dist'}), GTorch.cdist(m, m));
});

tap.add('elements_are_repeated', () => {
    same(GTorch.repeat_interleave(GTorch.tensor([1, 0, 2])), [0, 2, 2]);
    same(X.repeat_interleave(GTorch.tensor([1, 2]), 0), X.index_select(0, GTorch.tensor([0, 1, 1])));
    tap.equal(X.repeat_interleave(2, 0, {output_size: 4}).get_shape(), [4, 3]);
    refuses(() => X.repeat_interleave(2, {dim: 0, output_size: 3}), 'output_size is 3, and the result has 4');
});

tap.add('sequences_are_searched_from_a_side', () => {
    const values = GTorch.tensor([2, 3.5, 9]);
    same(GTorch.searchsorted(SORTED, values, {side: 'right'}), [2, 3, 3]);
    same(GTorch.searchsorted(SORTED, values, {side: 'left'}), [1, 2, 3]);
    tap.equal(GTorch.searchsorted(SORTED, values, {out_int32: true}).get_dtype(), GTorch.int32);
    const mixed = GTorch.tensor([3.5, 1, 2]);
    same(GTorch.searchsorted(mixed, values, {sorter: mixed.argsort()}), [1, 2, 3]);
    refuses(() => GTorch.searchsorted(SORTED, values, {side: 'left', right: true}), 'exclude each other');
    refuses(() => GTorch.searchsorted(SORTED, values, {side: 'up'}), 'side must be one of');
});

tap.add('scatter_takes_numbers_and_reductions', () => {
    same(X.scatter(1, INDEX, {value: 1}).at(0), [1, 1, 1]);
    same(X.scatter(1, INDEX, X, {reduce: 'add'}).at(0), [3, -4, 6]);
    same(X.scatter(1, INDEX, 2, {reduce: 'multiply'}).at(0), [3, -4, 6]);
    const x = X.clone();
    tap.assert(x.scatter_(1, INDEX, {value: 2, reduce: 'add'}) === x);
    same(x.at(0), [3.5, 0, 5]);
    refuses(() => X.scatter(1, INDEX, X, {value: 1}), 'either src or value');
});

tap.add('integers_are_drawn_between_bounds', () => {
    for (const [made, low, high] of [
        [GTorch.randint(5, [50]), 0, 5],
        [GTorch.randint(2, 5, [50]), 2, 5],
        [GTorch.zeros([50]).randint_like(5), 0, 5],
        [GTorch.zeros([50]).randint_like(2, 5), 2, 5],
        [GTorch.zeros([50]).random_(5), 0, 5],
        [GTorch.zeros([50]).random_({to: 5}), 0, 5],
        [GTorch.zeros([50]).random_({from: 2, to: 5}), 2, 5],
        [GTorch.zeros([50], {dtype: GTorch.int8}).random_(), 0, 128],
        [GTorch.zeros([50]).uniform_({from: 2, to: 5}), 2, 5],
    ]) {
        const values = made.toArray();
        tap.assert(new Set(values).size > 1 && values.every(v => low <= v && v < high), String(values));
    }
    same(X.bernoulli(1), GTorch.ones([2, 3]));
});

tap.add('parts_lie_along_a_dimension', () => {
    tap.equal(arrays(X.split([1, 2], 1)), [[[1.5], [4]], [[-2, 3], [5, -6]]]);
    same(X.median(1).values, [1.5, 4]);
    same(X.max({dim: 1}).indices, [2, 1]);
    same(X.max(GTorch.zeros([2, 3])), X.relu());
    same(X.histogram(4, {range: [0, 4]})[1], [0, 1, 2, 3, 4]);
    same(X.histogram(GTorch.tensor([0, 2.5, 6]))[0], [1, 3]);
    const rows = GTorch.tensor([[2, 1], [1, 5], [2, 0], [1, 5]]);
    const [values, inverse, counts] = rows.unique({dim: 0, return_inverse: true, return_counts: true});
    tap.equal(rows.unique({dim: 0}).toArray(), values.toArray());
    const local = rows.to('cpu');
    tap.equal(local.unique().toArray(), [0, 1, 2, 5]);
    tap.equal(GTorch.unique(local, {return_counts: true})[1].toArray(), [1, 3, 2, 2]);
    tap.throws(() => rows.unique({return_count: true}), error => error.message.includes('return_count'));
    tap.equal(arrays([values, inverse, counts]), [[[1, 5], [2, 0], [2, 1]], [2, 0, 1, 0], [2, 1, 1]]);
    tap.equal(arrays(GTorch.meshgrid(WHOLE, INDEX.at(0), {indexing: 'xy'}))[0][0], [-7, 7, 8]);
});

tap.add('signals_have_modules_and_find_their_frequencies', () => {
    const x = GTorch.arange(32, {dtype: GTorch.float64});
    const window = GTorch.hann_window(8, {dtype: GTorch.float64});
    tap.equal(x.stft(8, 2, {window}).get_shape(), [5, 17]);
    tap.equal(x.to(GTorch.complex64).stft(8, 2).get_shape(), [8, 17]);
    const there = x.stft(8, 2, {window, onesided: false});
    tap.equal(there.get_shape(), [8, 17]);
    near(there.istft(8, 2, {window}), x);
    near(x.stft(8, 2, {window}).istft(8, {hop_length: 2, window}), x);
    tap.assert(GTorch.signal.windows.hann === GTorch.signal_windows_hann);
    same(GTorch.masked.sum(GTorch.tensor([1, 2, 4]), {mask: GTorch.tensor([1, 0, 1])}), 5);
    const mask = GTorch.tensor([1, 1, 0]);
    const masked = GTorch.masked.var(GTorch.tensor([1, 2, 9.5]), {unbiased: false, mask});
    same(masked, 0.25);
    const [counts, edges] = GTorch.tensor([[0, 0], [1, 3], [2, 1.0]]).to(GTorch.float64)
        .histogramdd([1, 2], {range: [0, 2, 0, 4]});
    tap.equal(arrays([counts, ...edges]), [[[2, 1]], [0, 2], [0, 2, 4]]);
});

tap.add('first_numbers_are_not_rounded', () => {
    const x = GTorch.tensor([1, 2], {dtype: GTorch.float64});
    same(GTorch.div(0.3, x), [0.3, 0.15]);
    same(GTorch.sub(0.3, x), [0.3 - 1, 0.3 - 2]);
    same(GTorch.special.laguerre_polynomial_l(0.3, x).narrow(0, 0, 1), [0.7]);
    tap.equal(GTorch.div(0.3, x.to(GTorch.float32)).get_dtype(), GTorch.float32);
});

tap.add('activations_work_in_place', () => {
    for (const name of ['relu', 'silu', 'leaky_relu', 'elu', 'hardtanh']) {
        const x = X.clone();
        tap.assert(x[name]({inplace: true}) === x);
        near(x, X[name]());
    }
    const x = X.clone();
    tap.assert(GTorch.dropout(x, 0, {inplace: true}) === x);
    refuses(() => X.exp({inplace: true}), 'there is no option inplace');
    same(X.gelu('tanh'), X.gelu(true));
    refuses(() => X.gelu({approximate: 'sinh'}), 'approximate must be one of none, tanh');
});

tap.add('losses_layers_and_norms_take_names', () => {
    const [a, b] = [X.log_softmax(1), X.T.reshape([2, 3]).softmax(1)];
    near(a.kl_div(b, {reduction: 'batchmean'}), a.kl_div(b, {reduction: 'sum'}).div(2));
    near(nn.KLDivLoss({reduction: 'batchmean'}).forward(a, b), a.kl_div(b, {reduction: 'sum'}).div(2));
    refuses(() => a.mse_loss(b, {reduction: 'batchmean'}), 'batchmean is for kl_div only');
    near(X.norm('fro'), X.norm());
    refuses(() => X.norm('nuc'), 'svdvals');
    const [x, weight] = [GTorch.rand([3, 6, 7]), GTorch.rand([2, 3, 2, 3])];
    tap.equal(GTorch.conv2d(x, weight, {padding: 'same'}).get_shape(), [2, 6, 7]);
    near(GTorch.conv2d(x, weight, {padding: 'valid'}), GTorch.conv2d(x, weight));
    same(GTorch.conv1d(X.unsqueeze(0), GTorch.ones([1, 2, 2]), {padding: 'same'}), [[[8.5, 0, -3]]]);
    const made = X.mm(X.T);
    near(GTorch.einsum('ij,kj->ik', X, X), made);
    near(GTorch.einsum('ij,kj', [X, X]), made);
    refuses(() => GTorch.einsum('ij', 3), 'operands must be tensors');
    refuses(() => GTorch.einsum('ij,jk', X), 'has labels for 2 operands');
    const volume = GTorch.ones([1, 3, 4, 5]);
    const filters = GTorch.ones([2, 1, 2, 3, 2]);
    tap.equal(GTorch.conv3d(volume, filters, {padding: 'same'}).get_shape(), [2, 3, 4, 5]);
    tap.equal(GTorch.im2col(volume, 2).get_shape(), [1, 12, 12]);
    refuses(() => GTorch.conv2d(x, weight, {padding: 'same', stride: 2}), 'needs a stride of 1');
    const [values, places] = X.unsqueeze(0).max_pool2d(2, {return_indices: true});
    tap.equal(arrays([values, places]), [[[[5]]], [[[4]]]]);
    near(X.unsqueeze(0).adaptive_avg_pool2d([null, 1]), X.mean(1).reshape([1, 2, 1]));
    const [most, where] = X.unsqueeze(0).adaptive_max_pool2d([null, 1], {return_indices: true});
    tap.equal([most.get_shape(), where.get_shape()], [[1, 2, 1], [1, 2, 1]]);
    const scores = GTorch.ones([4, 2, 3]).log_softmax(-1);
    const labels = GTorch.tensor([[1, 2], [2, 1]]);
    const lengths = [[4, 3], [2, 1]].map(one => GTorch.tensor(one));
    near(GTorch.ctc_loss(scores, labels, [4, 3], [2, 1]), GTorch.ctc_loss(scores, labels, ...lengths));
    near(new GTorch.CTCLoss().forward(scores, labels, [4, 3], lengths[1]),
        GTorch.ctc_loss(scores, labels, {input_lengths: [4, 3], target_lengths: [2, 1]}));
    const bags = nn.EmbeddingBag(4, 2, {mode: 'sum'});
    const table = bags.weight;
    const rows = GTorch.tensor([[0, 2], [1, 1]]);
    const ones = GTorch.ones([2, 2]);
    near(bags.forward(rows), GTorch.embedding_bag(table, rows));
    near(bags.forward(rows, null, ones), GTorch.embedding_bag(table, rows, {per_sample_weights: ones}));
    near(bags.forward(rows.flatten(), GTorch.tensor([0, 2])), bags.forward(rows, null));
    refuses(() => bags.forward(), 'EmbeddingBag');
    const image = GTorch.arange(4).reshape([1, 1, 2, 2]).to(GTorch.float32);
    const twice = GTorch.interpolate(image, {scale_factor: [1, 2]});
    same(twice, [[[[0, 0, 1, 1], [2, 2, 3, 3]]]]);
    near(GTorch.upsample_nearest(image, [2, 4]), twice);
    near(GTorch.upsample_bilinear(image, 3),
        GTorch.interpolate(image, 3, {mode: 'bilinear', align_corners: true}));
    refuses(() => GTorch.interpolate(image, 3, {align_corners: true}), 'align_corners');
    refuses(() => GTorch.interpolate(image, {scale_factor: [1, 2, 3]}), 'one number or 2');
    const up = GTorch.nn.Upsample({scale_factor: [1, 2]});
    same(up.forward(image), [[[[0, 0, 1, 1], [2, 2, 3, 3]]]]);
    same(GTorch.tensor(up.scale_factor), [1, 2]);
    up.scale_factor = 2;
    near(up.forward(image), GTorch.interpolate(image, {scale_factor: 2}));
    tap.equal([up.scale_factor, GTorch.nn.Upsample(3).scale_factor], [2, null]);
    refuses(() => (up.scale_factor = [2, -1]), 'scale_factor');
    refuses(() => (up.scale_factor = 'much'), 'scale_factor');
    refuses(() => GTorch.nn.Upsample({scale_factor: [1, 2, 3]}).forward(image), 'scale_factor has 3 numbers');
    const grid = GTorch.affine_grid(GTorch.tensor([[[1, 0, 0], [0, 1, 0]]]).to(GTorch.float32), [1, 1, 2, 2]);
    near(GTorch.grid_sample(image, grid, {padding_mode: 'border'}), image);
});

tap.run();
