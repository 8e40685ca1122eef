// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Errors say which argument, element or member is wrong, and what is wanted instead; what is written in the
// place of an object, such as the name of a device, is converted everywhere.

import GObject from 'gi://GObject';
import GTorch from 'gi://GTorch?version=1';

import * as tap from './tap.js';
import * as typelib from './typelib.js';

const {nn} = GTorch;
const x = GTorch.ones([2]);

function refuses(func, ...parts) {
    tap.throws(func, error =>
        error instanceof TypeError && parts.every(part => error.message.includes(part)));
}

const Plain = GObject.registerClass(class Plain extends GTorch.Module {});
const Arrow = GObject.registerClass(class Arrow extends GTorch.Module {
    forward = one => one.mul(2);
});
const Tripled = GObject.registerClass(class Tripled extends GTorch.Module {
    forward(one) {
        return one.mul(3);
    }
});
const ArrowLinear = GObject.registerClass(class ArrowLinear extends nn.Linear {
    forward = one => one.mul(2);
});
const Power = GObject.registerClass(class Power extends GTorch.Function {
    forward(context, one, exponent, ...more) {
        context.exponent = exponent;
        context.nMore = more.length;
        context.save_for_backward(one);
        return one.pow(exponent);
    }

    backward(context, grad) {
        const [one] = context.saved_tensors;
        const {exponent} = context;
        const rest = Array.from({length: context.nMore}, () => null);
        return [grad.mul(one.pow(exponent - 1)).mul(exponent), Power.wrong ?? null, ...rest];
    }
});

tap.add('numbers_that_are_no_dtypes_are_refused', () => {
    for (const target of [x, nn.Linear(2, 2)]) {
        for (const number of [0, 99, -1, 1.5])
            refuses(() => target.to(number), `to: number ${number} is no dtype`, "'cuda:0'", 'float32');
        refuses(() => target.to('none'), 'string none is no dtype');
        refuses(() => target.to({dtype: 'none'}), 'string none is no dtype');
        refuses(() => target.to({dtype: 0}), 'number 0 is no dtype');
    }
    for (const dtype of [0, 'none', GTorch.DType.NONE]) {
        refuses(() => GTorch.zeros([2], {dtype}), 'zeros: ', 'is no dtype');
        refuses(() => GTorch.tensor([2], {dtype}), 'tensor: ', 'is no dtype');
        refuses(() => x.sum({dtype}), 'sum: ', 'is no dtype');
        refuses(() => nn.Linear(2, 2, {dtype}), 'Linear: ', 'is no dtype');
    }
    tap.equal(GTorch.zeros([2], {dtype: null}).dtype, GTorch.float32);
    tap.equal([x.to(GTorch.float64).dtype, x.to('float64').dtype], [GTorch.float64, GTorch.float64]);
});

tap.add('every_device_may_be_given_by_its_name', () => {
    let n = 0;
    for (const {owner, name, isMethod, args} of typelib.callables()) {
        const holder = owner === null ? GTorch : isMethod ? GTorch[owner].prototype : GTorch[owner];
        const i = args.findIndex(arg => arg.type === 'Device');
        const func = holder?.[name];
        // operations take the device in their options, too, and promises are rejected
        const isAsync = name.endsWith('_async');
        if (typeof func !== 'function' || i < 0 || isAsync || imports.overrides._gtorch_ops.operations[name])
            continue;
        const object = isMethod && owner === 'Tensor' ? x : holder;
        const given = args.slice(0, i).map(arg => arg.isArray ? [] : arg.type === 'Tensor' ? x : 1);
        try {
            func.call(object, ...given, 'cpu:no');
            throw new Error('nothing was thrown');
        } catch (error) {
            const whole = `${owner}.${name}: ${error.message}`;
            if (error.message.includes('cpu:no'))
                n++;
            else
                tap.assert(!error.message.includes('GTorchDevice') && error instanceof TypeError, whole);
        }
    }
    tap.assert(n > 15, `${n} functions`);
    GTorch.set_default_device('cpu');
    GTorch.set_default_device(tap.device ?? 'cpu');
    tap.equal(GTorch.Stream.new('cpu', 0).get_device().to_string(), 'cpu');
    refuses(() => GTorch.Stream.new(true, 0), 'Stream.new: device must be a Device, a name', 'boolean true');
    refuses(() => GTorch.Stream.new(undefined, 0), 'Stream.new: device is undefined');
    refuses(() => GTorch.zeros([2], {device: true}), 'zeros: device must be a Device, a name');
});

tap.add('elements_arguments_and_members_are_named', () => {
    refuses(() => GTorch.cat([x, null]), 'cat: element 1 of tensors must be a tensor, not null');
    refuses(() => GTorch.stack([x, x, 5]), 'stack: element 2 of tensors must be a tensor, not number 5');
    refuses(() => new Power().apply([x, null]), 'element 1 of inputs must be a Tensor, not null');
    refuses(() => x.equal(5), 'equal: other must be a tensor, not number 5');
    refuses(() => x.allclose({other: 5}), 'allclose: other must be a tensor, not number 5');
    refuses(() => GTorch.equal(x, 5), 'other must be a tensor');
    refuses(() => (x.grad = 5), 'Tensor.grad must be a Tensor or null, not number 5');
    const module = new Plain();
    refuses(() => module.register_buffer('q', 5),
        'register_buffer: q must be a Tensor or null, not number 5');
    refuses(() => module.register_parameter('q', x),
        'register_parameter: q must be a Parameter or null, not Tensor');
    refuses(() => module.register_module('q', x), 'register_module: q must be a Module or null, not Tensor');
    refuses(() => GTorch.ParamGroup.new([x], 0.1, 0),
        'ParamGroup.new: params must be a Gio.ListModel, not an array');
    refuses(() => GTorch.Parameter.new(5, true), 'Parameter.new: data must be a Tensor, not number 5');
    tap.equal([module.get_buffer_names(true), module.get_parameter_names(true)], [[], []]);
});

tap.add('a_capture_takes_a_function_alone', () => {
    refuses(() => new GTorch.CUDAGraph().capture(5), 'capture: a function is wanted, not number 5');
    refuses(() => new GTorch.CUDAGraph().capture(null, null), 'capture: a function is wanted, not undefined');
});

tap.add('a_forward_of_one_object_is_called_from_c_too', () => {
    tap.equal(nn.Sequential(new Arrow()).forward(x).toArray(), [2, 2]);
    for (const module of [new Plain(), new Tripled()]) {
        module.forward = one => one.mul(5);
        tap.equal(nn.Sequential(module).forward(x).toArray(), [5, 5]);
    }
    tap.equal(nn.Sequential(new Tripled()).forward(x).toArray(), [3, 3]);
    const linear = nn.Linear(2, 2);
    linear.forward = one => one;
    for (const module of [linear, new ArrowLinear(2, 2)])
        refuses(() => nn.Sequential(module), 'cannot have a forward() of its own', 'method of a class');
    tap.throws(() => nn.Sequential(new Plain()).forward(x), error =>
        error.message.includes('Plain: forward for one input is not implemented'));
});

tap.add('functions_are_applied_to_tensors_and_other_arguments', () => {
    const square = one => Power.apply(one, 2);
    const one = GTorch.tensor([2, 3], {dtype: GTorch.float64, requires_grad: true});
    tap.equal(square(one).toArray(), [4, 9]);
    square(one).sum().backward();
    tap.equal(one.grad.toArray(), [4, 6]);
    tap.assert(GTorch.gradcheck(square, one));
    tap.equal(new Power().call(one, 2, 'text', null).toArray(), [4, 9]);
    Power.apply(one, 2, 'text', null).sum().backward();
    tap.equal(one.grad.toArray(), [8, 12]);

    Power.wrong = x;
    refuses(() => square(one).sum().backward(),
        'Power: backward() gave Tensor for argument 1, which is no tensor');
    delete Power.wrong;
    refuses(() => Power.apply(one, undefined), 'Power: argument 1 is undefined');
    refuses(() => GTorch.Function.apply(x), 'a class that is derived from Function is wanted');

    const Listed = GObject.registerClass(class Listed extends GTorch.Function {
        vfunc_forward(_context, [first]) {
            return [first.mul(2)];
        }
    });
    tap.equal(Listed.apply(x).toArray(), [2, 2]);
    refuses(() => Listed.apply(x, 5), 'vfunc_forward() gets tensors only');
});

tap.run();
