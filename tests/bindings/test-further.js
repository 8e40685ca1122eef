// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// What programs meet first: whole numbers that make int64, arrays of other kinds, spacings, norms with names,
// and hooks of recorded operations.

import GTorch from 'gi://GTorch?version=1';

import * as tap from './tap.js';

const {nn, optim} = GTorch;
const float = (...values) => GTorch.tensor(values, {dtype: 'float64'});
const leaf = (...values) => float(...values).requires_grad_();

function says(func, ...parts) {
    tap.throws(func, error => parts.every(part => error.message.includes(part)));
}

tap.add('errors_about_int64_name_the_option', () => {
    const whole = GTorch.tensor([1.0, 2.0]);
    const hint = "{dtype: 'float32'}";
    for (const func of [
        () => GTorch.tensor([1.0, 2.0], {requires_grad: true}),
        () => whole.requires_grad_(),
        () => {
            whole.requires_grad = true;
        },
        () => whole.mean(),
        () => whole.softmax(-1),
        () => nn.functional.mse_loss(whole, whole),
        () => nn.Linear(2, 1).forward(whole),
        () => nn.Sequential(nn.Linear(2, 1)).forward(whole),
    ]) {
        says(func, 'int64', hint);
        tap.throws(func, error => error.matches(GTorch.error_quark(), GTorch.Error.DTYPE));
    }
    tap.throws(() => GTorch.ones([2]).matmul(GTorch.ones([2], {dtype: 'float64'})),
        error => !error.message.includes(hint));
    tap.throws(() => whole.add(GTorch.ones([3])), error => !error.message.includes(hint));
});

tap.add('arrays_of_other_kinds_are_refused_with_those_there_are', () => {
    says(() => GTorch.tensor(new Uint16Array([1, 2])), 'Uint16Array', 'Int16Array', 'Array.from()');
    says(() => GTorch.tensor(new BigUint64Array(1)), 'BigUint64Array', 'BigInt64Array');
    says(() => GTorch.tensor(new DataView(new ArrayBuffer(2))), 'DataView');
    tap.equal(GTorch.tensor(Array.from(new Uint16Array([1, 65535]))).toArray(), [1, 65535]);
});

tap.add('positions_that_are_computed_are_for_at', () => {
    says(() => GTorch.ones([2]).get(1), 'get', 'number 1', 'at(');
    says(() => GTorch.ones([2]).get(), 'get', 'text');
    tap.equal(GTorch.ones([2]).get('0').item(), 1);
    says(() => optim.SGD(nn.Linear(2, 1).get_parameters(), {lr: 0.1}).step(5), 'step', 'function', '5');
});

tap.add('gradients_have_a_spacing_of_one', () => {
    const x = float(1, 4, 9, 16);
    tap.equal(x.gradient().toArray?.() ?? x.gradient()[0].toArray(), [3, 4, 6, 7]);
    tap.equal(GTorch.gradient(x)[0].toArray(), [3, 4, 6, 7]);
    tap.equal(x.gradient(2)[0].toArray(), [1.5, 2, 3, 3.5]);
    tap.equal(x.gradient({spacing: 2, edge_order: 2})[0].toArray(), [1, 2, 3, 4]);
    tap.equal(x.gradient(float(0, 2, 4, 6))[0].toArray(), [1.5, 2, 3, 3.5]);
    tap.equal(x.gradient([float(0, 2, 4, 6)])[0].toArray(), [1.5, 2, 3, 3.5]);
    const both = x.reshape([2, 2]).gradient([1, 2]);
    tap.equal(both.map(one => one.toArray()), [[[8, 12], [8, 12]], [[1.5, 1.5], [3.5, 3.5]]]);
    tap.equal(x.reshape([2, 2]).gradient({dim: 1})[0].toArray(), [[3, 3], [7, 7]]);
    says(() => x.gradient([1, 2]), 'gradient', '1 dimensions', '2');
    says(() => x.gradient('x'), 'gradient', 'spacing');
});

tap.add('norms_have_names', () => {
    const a = float(3, 0, 0, 4).reshape([2, 2]);
    const {linalg} = GTorch;
    tap.equal(linalg.norm(a, 'fro').item(), 5);
    tap.equal(linalg.norm(a, 'nuc').item(), 7);
    tap.equal(linalg.norm(a, {ord: 'nuc', keepdim: true}).get_shape(), [1, 1]);
    tap.equal(linalg.matrix_norm(a, 'fro').item(), 5);
    tap.equal(linalg.matrix_norm(a.unsqueeze(0), 'nuc').toArray(), [7]);
    tap.equal(linalg.norm(a.unsqueeze(0), 'nuc', [0, 2]).get_shape(), [2]);
    tap.equal(linalg.norm(a, 'nuc', {dtype: 'float32'}).get_dtype(), GTorch.float32);
    tap.equal(linalg.norm(float(3, 4)).item(), 5);
    says(() => linalg.norm(float(3, 4), 'nuc'), 'linalg_norm', "'nuc'", 'two dimensions');
    says(() => linalg.norm(float(3, 4), 'fro'), 'linalg_norm', "'fro'", 'two dimensions');
    says(() => linalg.norm(a, 'max'), 'linalg_norm', "'fro' or 'nuc'");
});

tap.add('hooks_of_nodes_see_and_replace_gradients', () => {
    const [x, w] = [leaf(1, 2), leaf(3, 4)];
    const y = x.mul(w);
    const node = y.dup_grad_node();
    const seen = [];
    const first = node.register_prehook((_node, grads) => {
        seen.push(grads.map(one => one.toArray()));
        return grads.map(one => one.mul(2));
    });
    node.register_hook((_node, inner, outer) => {
        seen.push(inner.map(one => one.toArray()), outer.map(one => one.toArray()));
    });
    y.sum().backward();
    tap.equal(seen, [[[1, 1]], [[6, 8], [2, 4]], [[2, 2]]]);
    tap.equal(x.grad.toArray(), [6, 8]);
    tap.assert(node.remove_hook(first));
    tap.assert(!node.remove_hook(first));
});

tap.add('hooks_of_nodes_end_a_pass', () => {
    const mine = new Error('mine');
    const run = hook => {
        const [x, w] = [leaf(1), leaf(2)];
        const y = x.mul(w);
        y.dup_grad_node().register_hook(hook);
        y.sum().backward();
    };
    tap.throws(() => run(() => {
        throw mine;
    }), error => error === mine);
    says(() => run(() => 5), 'register_hook', 'not a tensor');
    says(() => run(() => [GTorch.ones([7]), GTorch.ones([7])]), 'a hook gave gradient 0', '[7]');
});

tap.add('norms_may_have_no_bias', () => {
    const norm = nn.BatchNorm1d(3, {bias: false});
    tap.equal(norm.bias, null);
    tap.assert(norm.to_string().includes('bias=False'));
    tap.equal(nn.GroupNorm(1, 4, {bias: false}).bias, null);
    tap.equal(norm.forward(GTorch.randn([4, 3])).get_shape(), [4, 3]);
    says(() => nn.GroupNorm(1, 4, 1e-5, true, null, null, false), 'GroupNorm');
});

tap.add('schedules_go_to_an_epoch', () => {
    const optimizer = optim.SGD([leaf(1)], {lr: 1.0});
    const schedule = optim.lr_scheduler.StepLR(optimizer, 2, 0.5);
    schedule.step_to(5);
    tap.equal([optimizer.learning_rate, Number(schedule.last_epoch)], [0.25, 5]);
    says(() => schedule.step_to(-1), 'from 0 to 2^53');
});

tap.add('counts_are_drawn', () => {
    const counts = GTorch.full([2000], 4.0, {dtype: 'float64'}).poisson();
    tap.assert(Math.abs(counts.mean().item() - 4) < 0.5);
    const successes = GTorch.binomial(GTorch.full([2000], 10, {dtype: 'float32'}),
        GTorch.full([2000], 0.5));
    tap.assert(Math.abs(successes.mean().item() - 5) < 0.5 && successes.max().item() <= 10);
});

await tap.run();
