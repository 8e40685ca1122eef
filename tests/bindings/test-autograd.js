// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Differentiable functions written in JavaScript.

import Gio from 'gi://Gio';
import GObject from 'gi://GObject';
import GTorch from 'gi://GTorch?version=1';

import * as tap from './tap.js';

const Cube = GObject.registerClass(class Cube extends GTorch.Function {
    forward(context, x) {
        context.save_for_backward([x]);
        return x.mul(x).mul(x);
    }

    backward(context, grad) {
        const [x] = context.get_saved_tensors();
        return grad.mul(3).mul(x).mul(x);
    }
});

const Wrong = GObject.registerClass(class Wrong extends Cube {
    backward(context, grad) {
        const [x] = context.get_saved_tensors();
        return grad.mul(2).mul(x);
    }
});

const ScaledSum = GObject.registerClass(class ScaledSum extends GTorch.Function {
    forward(context, x, y) {
        context.save_for_backward([x, y]);
        return [x.mul(y), x.add(y)];
    }

    backward(context, product, total) {
        const [, y] = context.saved_tensors;
        return [product.mul(y).add(total), null];
    }
});

const Broken = GObject.registerClass(class Broken extends GTorch.Function {
    forward() {
        throw new RangeError('from within');
    }

    backward(_context, grad) {
        return grad;
    }
});

function leaf(...values) {
    return GTorch.tensor(values, {dtype: GTorch.float64}).requires_grad_();
}

tap.add('a_function_of_javascript_is_differentiated', () => {
    const x = leaf(1, -2);
    const y = new Cube().call(x);
    tap.equal(y.toArray(), [1, -8]);
    y.sum().backward();
    tap.equal(x.grad.toArray(), [3, 12]);
});

tap.add('functions_can_be_differentiated_twice', () => {
    const x = leaf(2);
    const [first] = GTorch.autograd_grad(new Cube().call(x).sum(), x, {create_graph: true});
    first.sum().backward();
    tap.equal(x.grad.toArray(), [12]);
});

tap.add('a_pass_can_be_awaited', async () => {
    const x = leaf(1, 2);
    tap.assert(await new Cube().call(x).sum().backward_async(null, false, false, null));
    tap.equal(x.grad.toArray(), [3, 12]);
    const error = await x.backward_async(null, false, false, null).catch(e => e);
    tap.assert(error.message.startsWith('backward: a gradient must be given'), error.message);
});

tap.add('several_inputs_and_outputs', () => {
    const [x, y] = [leaf(2), GTorch.tensor([5], {dtype: GTorch.float64})];
    const [product, total] = new ScaledSum().call(x, y);
    product.add(total.mul(10)).sum().backward();
    tap.equal(x.grad.toArray(), [15]);
});

tap.add('gradcheck_sees_right_and_wrong', () => {
    const x = leaf(1.5, -0.5, 2);
    tap.assert(GTorch.gradcheck(new Cube(), x));
    tap.assert(GTorch.gradgradcheck(new Cube(), x));
    tap.assert(GTorch.gradcheck((a, b) => a.mul(b).tanh(), [x, leaf(0.5, 1, 2)]));
    tap.throws(() => GTorch.gradcheck(new Wrong(), x), error => error.message.includes('gradcheck'));
});

tap.add('exceptions_propagate_unchanged', () => {
    tap.throws(() => new Broken().call(leaf(1)),
        error => error instanceof RangeError && error.message === 'from within');
});

tap.add('autocast_calls_a_function_in_a_region', () => {
    const x = GTorch.ones([2, 2]);
    const product = () => GTorch.DType.get_name(x.matmul(x).get_dtype());
    const type = x.get_device().get_device_type();
    const [usual, other] = type === GTorch.DeviceType.CPU ? ['bfloat16', 'float16'] : ['float16', 'bfloat16'];
    tap.equal(GTorch.autocast(type, product), usual);
    tap.equal(GTorch.autocast(type, {dtype: GTorch[other]}, product), other);
    tap.equal(GTorch.autocast(type, () => GTorch.autocast(type, {enabled: false}, product)), 'float32');
    tap.throws(() => GTorch.autocast('cpu', () => {
        throw new RangeError('from within');
    }), error => error.message === 'from within');
    tap.throws(() => GTorch.autocast('cpu', {dtype: GTorch.float64}, product),
        error => error.message.includes('not to float64'));
    tap.equal(product(), 'float32');
    tap.equal(GTorch.is_autocast_enabled(type), false);
});

const Late = GObject.registerClass(class Late extends GTorch.Function {
    forward(context, x) {
        this.context = context;
        context.save_for_backward([x]);
        return x.clone();
    }

    backward(context, grad) {
        for (const name of ['save_for_backward', 'mark_dirty', 'mark_non_differentiable'])
            tap.throws(() => context[name]([grad]), isLate);
        tap.equal(context.get_saved_tensors().length, 1);
        return grad;
    }
});

function isLate(error) {
    return error.matches(GTorch.Error, GTorch.Error.AUTOGRAD) && error.message.includes('forward');
}

tap.add('a_context_accepts_nothing_after_forward', () => {
    const late = new Late();
    const x = leaf(1, 2);
    late.call(x).sum().backward();
    tap.equal(x.grad.toArray(), [1, 1]);
    GTorch.no_grad(() => late.call(x));
    tap.throws(() => late.context.get_saved_tensors(), isLate);
    tap.throws(() => late.context.mark_dirty([x]), isLate);
});

tap.add('inference_mode_makes_inference_tensors', () => {
    const made = GTorch.inference_mode(() => {
        tap.assert(GTorch.is_inference_mode_enabled() && !GTorch.is_grad_enabled());
        tap.assert(!GTorch.inference_mode(() => GTorch.ones([2]), {mode: false}).is_inference());
        return GTorch.ones([2]);
    });
    tap.assert(!GTorch.is_inference_mode_enabled() && GTorch.is_grad_enabled());
    tap.assert(made.is_inference() && made.view(2, 1).is_inference() && !made.clone().is_inference());
    const refused = error => error.matches(GTorch.Error, GTorch.Error.AUTOGRAD) &&
        error.message.includes('was made in inference mode and cannot ');
    tap.throws(() => made.add_(1), refused);
    tap.throws(() => made.requires_grad_(), refused);
    tap.throws(() => made.mul(leaf(1, 2)), refused);
    tap.equal(GTorch.inference_mode(() => made.add_(1)).toArray(), [2, 2]);
    tap.throws(() => GTorch.inference_mode(() => 1, {mode: 1}),
        error => error.message.includes('true or false'));
});

tap.add('a_stream_takes_no_work_after_its_cancellable', () => {
    const stream = new GTorch.Stream({device: GTorch.Device.cpu()});
    stream.cancellable = new Gio.Cancellable();
    const x = GTorch.ones([2], {device: 'cpu'});
    tap.equal(stream.run(() => x.add(1)).toArray(), [2, 2]);
    stream.cancellable.cancel();
    const isCancelled = error => error.matches(Gio.IOErrorEnum, Gio.IOErrorEnum.CANCELLED) &&
        error.message.startsWith('add: the work of stream');
    tap.throws(() => stream.run(() => x.add(1)), isCancelled);
    stream.cancellable = null;
    tap.equal(stream.run(() => x.add(1)).toArray(), [2, 2]);
});

// A function whose backward gives what the test wants.
function giving(backward, name = 'backward') {
    const klass = class extends GTorch.Function {
        forward(_context, ...inputs) {
            return inputs.reduce((a, b) => a.mul(b));
        }
    };
    klass.prototype[name] = backward;
    return new (GObject.registerClass({GTypeName: `TestGiving${nGiving++}`}, klass))();
}
let nGiving = 0;

tap.add('a_gradient_that_is_null_is_zero', () => {
    const leaf = () => GTorch.ones([2], {dtype: GTorch.float64}).requires_grad_();
    for (const [func, expected] of [
        [giving((_context, grad) => [grad, null]), [[1, 1], [0, 0]]],
        [giving((_context, grad) => [null, grad]), [[0, 0], [1, 1]]],
        [giving(() => [null, null]), [[0, 0], [0, 0]]],
        [giving((_context, [grad]) => [null, grad], 'vfunc_backward'), [[0, 0], [1, 1]]],
    ]) {
        const [x, y] = [leaf(), leaf()];
        func.call(x, y).sum().backward();
        tap.equal([x.grad.toArray(), y.grad.toArray()], expected);
        tap.equal(x.grad.get_dtype(), GTorch.float64);
    }
    const x = leaf();
    giving(() => null).call(x, leaf().detach()).sum().backward();
    tap.equal(x.grad.toArray(), [0, 0]);
    tap.throws(() => giving(() => [5, null]).call(leaf(), leaf()).sum().backward(),
        error => error instanceof TypeError && error.message.includes('number 5'));
});

tap.add('a_context_keeps_tensors_and_what_the_program_assigns', () => {
    for (const save of [(context, a, b) => context.save_for_backward(a, b),
        (context, a, b) => context.save_for_backward([a, b])]) {
        const type = {GTypeName: `TestScaled${nGiving++}`};
        const Scaled = GObject.registerClass(type, class extends GTorch.Function {
            forward(context, a, b) {
                save(context, a, b);
                context.factor = 3;
                return a.mul(b).mul(3);
            }

            backward(context, grad) {
                const [a, b] = context.saved_tensors;
                return [grad.mul(b).mul(context.factor), grad.mul(a).mul(context.factor)];
            }
        });
        const [a, b] = [2, 5].map(value => GTorch.full([1], value, {dtype: GTorch.float32}).requires_grad_());
        new Scaled().call(a, b).sum().backward();
        tap.equal([a.grad.item(), b.grad.item()], [15, 6]);
    }
});

tap.add('anomalies_are_detected', () => {
    const compute = () => {
        const zero = GTorch.zeros([]).requires_grad_();
        return zero.sqrt().mul(zero);
    };
    const hasNaN = error => error.message.includes('backward of sqrt: its gradient of input 0') &&
        error.message.includes('has NaN; the operation was called by');
    compute().backward();
    tap.throws(() => GTorch.detect_anomaly(() => compute().backward()), hasNaN);
    tap.assert(!GTorch.is_anomaly_enabled());
    tap.equal(GTorch.detect_anomaly(() => GTorch.is_anomaly_check_nan_enabled(), {check_nan: false}), false);
    GTorch.set_detect_anomaly(true);
    tap.assert(GTorch.is_anomaly_enabled() && GTorch.is_anomaly_check_nan_enabled());
    GTorch.set_detect_anomaly(false);
    compute().backward();
    tap.throws(() => GTorch.detect_anomaly(3), error => error instanceof TypeError);
    tap.throws(() => GTorch.set_detect_anomaly('yes'), error => error instanceof TypeError);
});

await tap.run();
