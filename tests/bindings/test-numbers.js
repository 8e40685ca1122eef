// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// A BigInt is a 64-bit integer: it is exact as an element and in comparisons with elements.

import GTorch from 'gi://GTorch?version=1';

import * as tap from './tap.js';

const WIDE = [2n ** 53n + 1n, -(2n ** 53n) - 1n, 2n ** 62n + 1n, 7n, 0n];

function refuses(func, says) {
    tap.throws(func, error => error.message.includes(says));
}

function whole(values) {
    return GTorch.tensor(values, {dtype: 'int64'});
}

tap.add('the_least_number_of_int32_is_a_bound_of_int64', () => {
    const least = -(2n ** 31n);
    const x = whole([-(2n ** 40n), 5n]);
    tap.equal(x.clamp({min: least}).toArray(), [-(2 ** 31), 5]);
    tap.equal(x.clamp(least, 4n).toArray(), [-(2 ** 31), 4]);
    tap.equal(x.clamp({max: least}).toArray(), [-(2 ** 40), -(2 ** 31)]);
    tap.equal(x.clone().clamp_(-(2 ** 31), 4).toArray(), [-(2 ** 31), 4]);
    tap.equal(x.clamp({min: least}).dtype, GTorch.int64);
});

tap.add('integers_arrive_exactly', () => {
    const zero = whole([0, 0]);
    const mask = GTorch.tensor([true, true]);
    const index = whole([0, 1]);
    for (const v of WIDE) {
        const made = {
            'full': GTorch.full([2], v),
            'full_int': GTorch.full_int([2], v, GTorch.DType.NONE, null),
            'full_like': zero.full_like(v),
            'new_full': zero.new_full([2], v),
            'fill_': zero.clone().fill_(v),
            'clamp from below': GTorch.full([2], -(2n ** 63n)).clamp({min: v}),
            'clamp from above': GTorch.full([2], 2n ** 63n - 1n).clamp({max: v}),
            'add': zero.add(v),
            'sub_': zero.clone().sub_(-v),
            'mul': zero.add(1).mul(v),
            'masked_fill': zero.masked_fill(mask, v),
            'index_fill': zero.index_fill(0, index, v),
            'where': GTorch.where(mask, v, zero),
            'tensor': GTorch.tensor([v, v]),
            'a number': zero.add(GTorch.tensor(v)),
        };
        for (const [what, result] of Object.entries(made)) {
            const found = result.to('int64').toTypedArray();
            tap.equal([what, ...found].map(String), [what, v, v].map(String));
        }
        tap.equal(GTorch.full([2], v).eq(v).toArray(), [true, true]);
        tap.equal(GTorch.full([2], v).eq(v - 1n).toArray(), [false, false]);
    }
    const counted = [...GTorch.arange(WIDE[0], WIDE[0] + 5n, 2).toTypedArray()];
    tap.equal(counted.map(String), [0n, 2n, 4n].map(v => String(WIDE[0] + v)));
});

tap.add('numbers_arrive_unchanged', () => {
    tap.equal(GTorch.arange(0, 1, 0.25).toArray(), [0, 0.25, 0.5, 0.75]);
    tap.equal(GTorch.full([1], 3).toArray(), [3]);
    tap.equal(GTorch.tensor([0.5, 3]).clamp({min: 1}).toArray(), [1, 3]);
    tap.equal(GTorch.tensor([1e300], {dtype: 'float64'}).toArray(), [1e300]);
    tap.equal(GTorch.ones([1], {dtype: 'float64'}).div(4n).item(), 0.25);
});

tap.add('numbers_that_do_not_fit_are_refused', () => {
    refuses(() => GTorch.full([1], 2n ** 64n), '64 bits');
    refuses(() => GTorch.tensor([2n ** 64n]), '64 bits');
    refuses(() => GTorch.full_int([1], 1.5, GTorch.DType.NONE, null), 'integer');
    refuses(() => GTorch.full([1], 4n).clamp(0.5, 3n), 'beside a BigInt');
    refuses(() => GTorch.full([1], 300, {dtype: 'int8'}), 'which is no int8');
    refuses(() => GTorch.full([1], 300n, {dtype: 'int8'}), 'which is no int8');
    refuses(() => GTorch.tensor([2n ** 60n], {dtype: 'int8'}), 'int8');
    refuses(() => GTorch.ones([1]).add(1, {alpha: WIDE[0]}), 'no number has exactly');
});

tap.add('sizes_and_positions_may_be_big_ints', () => {
    const x = GTorch.arange(0, 6).view([2, 3]);
    const same = {
        zeros: [GTorch.zeros([2n, 3n]), GTorch.zeros([2, 3])],
        full: [GTorch.full([2n], 1), GTorch.full([2], 1)],
        view: [x.view([3n, -1n]), x.view([3, -1])],
        'view, one by one': [x.view(3n, -1n), x.view(3, -1)],
        'view, of both kinds': [x.view(3, -1n), x.view(3n, -1)],
        'permute, one by one': [x.permute(1n, 0n), x.permute(1, 0)],
        expand: [x.expand(2n, 2n, 3n), x.expand([2, 2, 3])],
        sum: [x.sum([0n]), x.sum([0])],
        'sum, by name': [x.sum({dim: 1n}), x.sum({dim: 1})],
        as_strided: [x.as_strided([2n, 2n], [1n, 2n], 1n), x.as_strided([2, 2], [1, 2], 1)],
        split: [x.split_with_sizes([1n, 2n], 1n)[1], x.split_with_sizes([1, 2], 1)[1]],
        at: [x.at(1n, [0n, 2n]), x.at(1, [0, 2])],
        new_from_doubles: [GTorch.Tensor.new_from_doubles([1, 2], [2n, 1n], GTorch.float32, null),
            GTorch.tensor([[1], [2]])],
    };
    for (const [what, [got, expected]] of Object.entries(same))
        tap.equal([what, got.get_shape(), got.toArray()], [what, expected.get_shape(), expected.toArray()]);
    tap.equal(x.get_size(1n), 3);
    tap.equal(String(new GTorch.nn.Conv2d(1n, 2n, 3n)), String(new GTorch.nn.Conv2d(1, 2, 3)));
    tap.equal(String(new GTorch.nn.LayerNorm([2n, 3n])), String(new GTorch.nn.LayerNorm([2, 3])));
});

tap.add('sizes_that_are_too_large_are_not_rounded', () => {
    const x = GTorch.zeros([2, 3]);
    refuses(() => GTorch.zeros([WIDE[0], 0, 2n ** 12n]), String(WIDE[0]));
    refuses(() => x.view(WIDE[0], 1n), String(WIDE[0]));
    refuses(() => GTorch.zeros([2n ** 64n]), '64 bits');
    refuses(() => x.view(2n ** 64n + 2n, 3n), '64 bits');
    refuses(() => x.at(2n ** 64n), '64 bits');
    refuses(() => x.at(2 ** 64), '64 bits');
    refuses(() => x.get_size(2n ** 64n), '64 bits');
});

tap.add('normal_takes_all_forms', () => {
    const means = GTorch.tensor([[0], [100]], {dtype: GTorch.float32});
    const stds = GTorch.tensor([1, 0, 5], {dtype: GTorch.float32});
    const of = (...given) => {
        GTorch.manual_seed(5);
        return GTorch.normal(...given);
    };
    for (const [given, mean, std] of [
        [[means, stds], means, stds],
        [[means], means, 1],
        [[means, 0.25], means, 0.25],
        [[3, stds], 3, stds],
    ]) {
        const got = of(...given);
        GTorch.manual_seed(5);
        const expected = GTorch.randn(got.get_shape(), {dtype: GTorch.float32}).mul(std).add(mean);
        tap.equal(got.toArray(), expected.toArray());
        tap.equal(got.get_dtype(), GTorch.float32);
    }
    const one = of(3, 2, [4n, 5], {dtype: GTorch.float64});
    GTorch.manual_seed(5);
    tap.equal(one.toArray(), GTorch.empty([4, 5], {dtype: GTorch.float64}).normal_(3, 2).toArray());
    refuses(() => GTorch.normal(means, -1), 'negative');
    refuses(() => GTorch.normal(0, -1, [2]), 'at least 0');
    refuses(() => GTorch.normal(0, 1), 'a size');
    refuses(() => GTorch.normal(0), 'a size');
    refuses(() => GTorch.normal(means, stds, [2]), 'an object with options');
    refuses(() => GTorch.normal(means, stds, {dtype: GTorch.float64}), 'no option dtype');
    refuses(() => GTorch.normal('x', stds), 'must be a number');
});

tap.add('indexed_assignment_takes_the_numbers_that_fill_takes', () => {
    const outcome = func => {
        try {
            return func().to_string();
        } catch (error) {
            return 'an error';
        }
    };
    const values = [0, 300, -129, 1.5, 65536, 1e300, NaN, Infinity, 2n ** 53n + 1n, 2n ** 63n - 1n];
    const seen = new Set();
    for (const dtype of ['float32', 'float16', 'int8', 'uint8', 'int32', 'int64', 'bool', 'complex64']) {
        for (const value of values) {
            const expected = outcome(() => GTorch.zeros([], {dtype}).fill_(value));
            seen.add(expected === 'an error');
            for (const put of [
                x => x.put_at(0, value),
                x => x.put_at(GTorch.tensor([true, false]), value),
                x => x.set('0', value),
            ]) {
                tap.equal(outcome(() => {
                    const x = GTorch.zeros([2], {dtype});
                    put(x);
                    return x.at(0);
                }), expected);
            }
        }
    }
    tap.equal(seen.size, 2);
});

tap.add('null_leaves_an_argument_out', () => {
    const x = GTorch.tensor([[1, 2, 3], [4, 5, 6]], {dtype: 'float64'});
    const image = GTorch.ones([1, 4, 4]);
    const table = GTorch.ones([3, 2]);
    const index = whole([0, 2]);
    for (const [without, none, refused] of [
        [() => GTorch.fft_fft(x), () => GTorch.fft_fft(x, {n: null}), () => GTorch.fft_fft(x, {n: -1})],
        [() => GTorch.eye(3), () => GTorch.eye(3, null), () => GTorch.eye(3, -1)],
        [() => x.as_strided([2], [1]), () => x.as_strided([2], [1], null), () => x.as_strided([2], [1], -1)],
        [() => image.avg_pool2d([2]), () => image.avg_pool2d([2], {divisor_override: null}),
            () => image.avg_pool2d([2], {divisor_override: 0})],
        [() => GTorch.embedding(table, index), () => GTorch.embedding(table, index, null),
            () => GTorch.embedding(table, index, -4)],
        [() => GTorch.scaled_dot_product_attention(x, x, x),
            () => GTorch.scaled_dot_product_attention(x, x, x, {scale: null}), null],
        [() => x['var'](), () => x['var']({correction: null}), null],
    ]) {
        tap.equal(none().to_string(), without().to_string());
        if (refused !== null)
            tap.throws(refused, () => true);
    }
    tap.assert(GTorch.scaled_dot_product_attention(x, x, x, {scale: 0}).to_string() !==
        GTorch.scaled_dot_product_attention(x, x, x).to_string());
});

tap.add('modules_of_operations_have_pytorchs_names', () => {
    const x = GTorch.tensor([1, 2, 0.5, 4]);
    tap.equal(GTorch.fft.rfft(x, {n: 3}).to_string(), GTorch.fft_rfft(x, {n: 3}).to_string());
    tap.equal(GTorch.special.expit(x).to_string(), x.sigmoid().to_string());
    tap.equal(GTorch.special.entr(x).to_string(), GTorch.special_entr(x).to_string());
    tap.throws(() => GTorch.fft.rfft(x, {m: 3}), () => true);
    tap.equal(Object.keys(GTorch.special).every(name => typeof GTorch.special[name] === 'function'), true);
});

await tap.run();
