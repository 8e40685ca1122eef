// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Arguments that are too many, and arrays with holes, are errors of every function.

import GObject from 'gi://GObject';
import GTorch from 'gi://GTorch?version=1';

import * as tap from './tap.js';
import * as typelib from './typelib.js';

const {nn, optim} = GTorch;

function refuses(func, ...says) {
    tap.throws(func, error => error instanceof TypeError && says.every(text => error.message.includes(text)));
}

// These take any number of inputs, sizes or positions.
const OPEN = ['Function.call', 'Module.call'];

tap.add('every_function_of_the_library_refuses_surplus_arguments', () => {
    const many = Array.from({length: 30}, () => Symbol('surplus'));
    const passed = [];
    let n = 0;
    for (const {owner, name, isMethod} of typelib.callables()) {
        const whole = owner === null ? name : `${owner}.${name}`;
        const space = owner === null ? GTorch : GTorch[owner];
        const place = isMethod ? space.prototype : space;
        const own = place === undefined ? undefined : Object.getOwnPropertyDescriptor(place, name);
        if (typeof own?.value !== 'function' || OPEN.includes(whole))
            continue;
        n++;
        try {
            const object = place instanceof GTorch.Module || place === GTorch.Module.prototype
                ? new GTorch.Module() : Object.create(place ?? null);
            own.value.apply(isMethod ? object : space, many);
            passed.push(whole);
        } catch (error) {
            if (!(error instanceof TypeError) || !/\b(given|wanted|must|takes)\b/.test(error.message))
                passed.push(`${whole}: ${error.message}`);
        }
    }
    tap.equal(passed, []);
    tap.assert(n > 900, `${n} functions`);
});

tap.add('every_function_of_the_overrides_refuses_one_more', () => {
    const x = GTorch.ones([2]);
    const layer = nn.Linear(1, 1);
    const [weight] = layer.parameters();
    const optimizer = optim.SGD([weight], {lr: 0.5});
    const schedule = optim.lr_scheduler.StepLR(optimizer, 1);
    const stream = GTorch.Stream.new(GTorch.Device.cpu(), 0);
    const event = GTorch.Event.new(0);
    const scaler = GTorch.GradScaler.new();
    const nothing = () => {};
    for (const call of [
        () => schedule.step(5), () => optimizer.step(nothing, 1), () => stream.synchronize(null, 1),
        () => event.record(stream, 1), () => x.release(1), () => x.detach(1),
        () => stream.wait_stream(stream, 1), () => x.get_bytes(1), () => GTorch.is_grad_enabled(1),
        () => scaler.step(optimizer, 1), () => new GTorch.CUDAGraph().replay(1),
        () => optimizer.add_param_group({params: [weight]}, 1), () => weight.register_hook(nothing, 1),
        () => layer.register_forward_hook(nothing, {}, 1), () => GTorch.no_grad(nothing, 2),
        () => GTorch.enable_grad(nothing, 2), () => GTorch.tidy(nothing, 2), () => stream.run(nothing, 2),
        () => scaler.scale(x, 1), () => optimizer.zero_grad(true, 1), () => layer.parameters(true, 1),
        () => x.item(1), () => x.toArray(1), () => layer.children(1), () => layer.apply(nothing, 1),
        () => GTorch.Device.cpu().run(nothing, 1),
        () => layer.register_buffer('b', x, true, 1), () => layer.get_member_kind('weight', 1),
    ])
        refuses(call, 'given');
    tap.equal(x.toArray(), [1, 1]);
});

tap.add('a_closure_of_a_step_gives_its_loss', () => {
    const weight = nn.Parameter(GTorch.ones([1]));
    const optimizer = optim.SGD([weight], {lr: 0.5});
    let n = 0;
    const closure = () => {
        n++;
        optimizer.zero_grad();
        const loss = weight.mul(2).sum();
        loss.backward();
        return loss;
    };
    tap.equal(GTorch.no_grad(() => optimizer.step(closure)).item(), 2);
    tap.equal([n, weight.item()], [1, 0]);
    tap.equal(optimizer.step({closure}).item(), 0);
    refuses(() => optimizer.step(5), 'a function is wanted');
    refuses(() => optimizer.step(async () => {}), 'plain');
    tap.throws(() => optimizer.step(() => {
        throw new RangeError('of the closure');
    }), error => error instanceof RangeError);
});

tap.add('arrays_with_holes_are_refused', () => {
    const x = GTorch.ones([2, 2]);
    const one = nn.Parameter(x);
    // eslint-disable-next-line no-sparse-arrays
    const [hole, first, last] = [[, ], [, 1], [1, , 2]];
    const tensors = [x, , x]; // eslint-disable-line no-sparse-arrays
    for (const call of [
        () => GTorch.zeros(last), () => x.sum(first), () => x.permute(first), () => x.view(hole),
        () => GTorch.cat(tensors), () => GTorch.stack(tensors), () => x.sum({dim: first}),
        () => GTorch.tensor(last), () => GTorch.Size.new(last), () => nn.LayerNorm(last),
        () => nn.Sequential([nn.ReLU(), , nn.ReLU()]), // eslint-disable-line no-sparse-arrays
        () => optim.SGD([one, , one], {lr: 1}), // eslint-disable-line no-sparse-arrays
        () => GTorch.autograd_grad([x.sum(), , ], [one]), // eslint-disable-line no-sparse-arrays
        () => GTorch.autograd_backward(tensors, null, false, false), () => x.at(first),
        () => nn.ReLU().forward_many(tensors), () => x.to_string.call(x, hole),
    ])
        refuses(call);
    const table = imports.overrides._gtorch_calls_table;
    let n = 0;
    const holes = (name, raw, {args = []}) => {
        for (const [position, , kind] of args.filter(([, , each]) => each.endsWith('[]'))) {
            const given = Array.from({length: position + 1}, () => null);
            given[position] = tensors.slice(1, 2);
            tap.throws(() => raw.apply(GTorch, given), error => error instanceof TypeError ||
                /PROTOTYPE|isn't wrapping|Expected/.test(error.message));
            n += kind === '' ? 0 : 1;
        }
    };
    for (const [name, entry] of Object.entries(table.functions)) {
        if (typeof GTorch[name] === 'function' && !name.endsWith('_async')) // their promises have the error
            holes(name, GTorch[name], entry);
    }
    tap.assert(n > 5, `${n} functions with arrays`);
});

tap.add('arrays_of_other_objects_are_refused', () => {
    const Saving = GObject.registerClass(class Saving extends GTorch.Function {
        forward(context, x) {
            context.save_for_backward([5]);
            return x;
        }
    });
    refuses(() => new Saving().call(GTorch.ones([1])), 'save_for_backward', 'number 5');
    refuses(() => nn.ReLU().forward_many([[1, 2]]), 'forward_many', 'an array of 2');
});

await tap.run();
