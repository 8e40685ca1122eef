// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Nothing that a program gives is ignored: an argument by position and by name, one that is undefined
// because of a wrong name, one too many, an option that there is not, a table that is none.

import GLib from 'gi://GLib';
import GTorch from 'gi://GTorch?version=1';

import * as tap from './tap.js';

const {nn, optim} = GTorch;
const classOf = name => nn[name] ?? GTorch.transforms[name];
const {operations} = imports.overrides._gtorch_ops;
const {LAYERS} = imports.overrides._gtorch_layer_table;
const {OPTIMIZERS, SCHEDULES} = imports.overrides._gtorch_steps;
const x = GTorch.ones([2, 3]);
const weight = () => nn.Parameter(GTorch.ones([1]));

function refuses(func, ...parts) {
    tap.throws(func, error =>
        error instanceof TypeError && parts.every(part => error.message.includes(part)));
}

// A value that an argument of an operation takes.
function right([, kind]) {
    return {
        'Tensor': x, 'Tensor?': x, 'Tensor[]': [x], 'int': 1, 'double': 1, 'number': 1, 'bool': true,
        'int[]': [1],
        'DType': GTorch.float64, 'Device?': 'cpu', 'Generator?': null,
    }[kind] ?? 0;
}

const MORE = ['arange', 'bernoulli', 'max', 'median', 'min', 'nanmedian', 'to', 'unique'];

tap.add('operations_ignore_nothing', () => {
    let n = 0;
    for (const [name, {args, method, inplace}] of Object.entries(operations)) {
        const forms = name === 'normal' ? [] : [GTorch[name]]; // which takes tensors, or numbers and a size
        if (MORE.includes(name))
            continue; // are below, or take other values at these places, too
        if (method)
            forms.push((_self, ...given) => x[name](...given));
        if (inplace)
            forms.push((self, ...given) => self[`${name}_`](...given));
        const all = args.map(right);
        for (const func of forms) {
            for (const [i, [argName]] of args.entries()) {
                if (method && i === 0)
                    continue;
                const before = all.slice(0, i);
                refuses(() => func(...before, all[i], {[argName]: all[i]}),
                    `${argName} is given by position and by name`);
                refuses(() => func(...before, {[argName]: undefined}), `${argName} is undefined`);
                refuses(() => func(...before, undefined), 'undefined');
                n += 3;
            }
            refuses(() => func(...all, 1), 'given, it takes');
            refuses(() => func(...all, {no_such: 1}), 'no option no_such');
            n += 2;
        }
    }
    tap.assert(n > 4000, `${n} calls`);
});

tap.add('counts_of_arguments_are_without_the_tensor_itself', () => {
    refuses(() => x.exp(1), 'exp: 1 argument was given, it takes 0');
    refuses(() => x.add(1, 2, 3), 'add: 3 arguments were given, it takes 2');
});

tap.add('layers_optimizers_and_schedules_ignore_nothing', () => {
    let n = 0;
    const sgd = optim.SGD([weight()]);
    const check = (name, call, args, nPositional = args.length) => {
        const some = args.map(() => 1);
        args.forEach(({name: key}, i) => {
            if (i < nPositional) {
                refuses(() => call(...some.slice(0, i + 1), {[key]: 1}),
                    `${key} is given by position and by name`);
            }
            refuses(() => call({[key]: undefined}), `${key} is undefined`);
            n += 2;
        });
        refuses(() => call(...some.slice(0, nPositional), 1), 'given, it takes');
        refuses(() => call({no_such: 1}), 'no option no_such');
    };
    for (const [name, {args, any}] of Object.entries(LAYERS)) {
        if (!any)
            check(name, classOf(name), args, args.filter(one => !one.named).length);
    }
    for (const {name, args, positional} of OPTIMIZERS)
        check(name, (...given) => optim[name]([weight()], ...given), args, positional);
    for (const {name, args, positional} of SCHEDULES) {
        const all = [...args.slice(0, positional), {name: 'last_epoch'}];
        check(name, (...given) => optim.lr_scheduler[name](sgd, ...given), all);
    }
    tap.assert(n > 200, `${n} calls`);
});

tap.add('forward_takes_as_many_inputs_as_the_layer', () => {
    const row = GTorch.ones([4, 2]);
    for (const name of ['ReLU', 'Identity', 'Tanh', 'Flatten']) {
        const layer = classOf(name)();
        for (const more of [[row], [5, 'x'], [undefined], [null]])
            refuses(() => layer.forward(row, ...more), `${name}.forward: ${1 + more.length} arguments were`);
        refuses(() => layer.forward(), 'forward: 0 arguments were given, it takes 1');
    }
    for (const name of ['MSELoss', 'L1Loss']) {
        refuses(() => classOf(name)().forward(row, row, 1),
            `${name}.forward: 3 arguments were given, it takes 2`);
        refuses(() => classOf(name)().forward(row), 'it takes 2');
    }
    refuses(() => GTorch.tensor([1], {}, 5), 'one object with options');
});

tap.add('methods_of_javascript_take_no_more_than_they_have', () => {
    const net = nn.Linear(2, 2);
    const sgd = optim.SGD([weight()]);
    const schedule = optim.lr_scheduler.StepLR(sgd, 1);
    const one = GTorch.ones([1]);
    const calls = {
        item: [one], toArray: [one], toTypedArray: [one], toString: [one, net],
        state_dict: [net, sgd, schedule, new GTorch.GradScaler()], children: [net], named_children: [net],
        modules: [net], eval: [net], train: [net], zero_grad: [net, sgd], parameters: [net],
        named_parameters: [net], requires_grad_: [one],
    };
    for (const [name, holders] of Object.entries(calls)) {
        for (const holder of holders)
            refuses(() => holder[name](true, true), `${name}: 2 arguments were given, it takes`);
    }
    refuses(() => one.get_size(0, 1), 'get_size: 2 arguments were given, it takes 1');
    refuses(() => one.put_at(), 'put_at: a value is missing');
    refuses(() => net.apply(() => 1, 2), 'apply: 2 arguments were given, it takes 1');
    refuses(() => sgd.load_state_dict(sgd.state_dict(), false), 'load_state_dict: 2 arguments were given');
    tap.equal([...GTorch.ones([2])].length, 2);
});

// What takes defaults in JavaScript.
tap.add('undefined_is_no_default', () => {
    const net = nn.Linear(2, 2);
    const sgd = optim.SGD([weight()]);
    for (const call of [
        () => net.train(undefined), () => net.zero_grad(undefined), () => sgd.zero_grad(undefined),
        () => net.load_state_dict(net.state_dict(), undefined), () => nn.Parameter(x, undefined),
        () => GTorch.tensor([1], {dtype: GTorch.flaot64}), () => x.to({dtype: GTorch.flaot64}),
        () => x.to(undefined), () => x.to('cpu', undefined), () => net.to(undefined),
        () => net.to({dtype: undefined}), () => x.at([0, undefined]), () => x.at({stop: undefined}),
        () => GTorch.autocast('cpu', {dtype: undefined}, () => 1),
        () => x.sum().backward({gradient: undefined}),
        () => GTorch.normal(0, 1, [2], {dtype: undefined}), () => x.requires_grad_(undefined),
        () => net.parameters(undefined), () => net.named_parameters(undefined), () => x.backward(undefined),
        () => GTorch.gradcheck(y => y, x, undefined), () => GTorch.tensor([1], undefined),
        () => GTorch.autocast('cpu', undefined, () => 1), () => GTorch.normal(x, undefined),
        () => new GTorch.CUDAGraph().capture(undefined, null, () => x),
        () => new GTorch.GradScaler().update(undefined),
        () => GTorch.autograd_grad(x, x, undefined), () => GTorch.normal(0, 1, [2], undefined),
    ])
        refuses(call, 'undefined');
});

tap.add('tensors_and_modules_move_by_the_same_words', () => {
    const {float32, float64} = GTorch;
    const cpu = GTorch.Device.cpu();
    const wide = GTorch.ones([1], {dtype: float64});
    for (const given of [[float64], ['float64'], ['cpu', float64], [cpu, float64], [null, float64], [wide],
        [{dtype: float64}], [{device: 'cpu', dtype: float64}], ['cpu', {dtype: float64}],
        [float64, {device: cpu}]]) {
        tap.equal(x.to(...given).dtype, float64);
        tap.equal(nn.Linear(1, 1).to(...given).weight.dtype, float64);
    }
    tap.equal(x.to('cpu', float64, false, true).dtype, float64);
    tap.assert(x.to(float32, false, false) === x && x.to(float32, {copy: true}) !== x);
    for (const given of [[], [null], [{}], [null, null], [x, {dtype: float64}], ['cpu', {device: 'cpu'}],
        [float64, 'cpu'], ['float128'], [{device: 'cpu', devise: 1}], [5.5], [Map], ['cpu', float64, 1]]) {
        refuses(() => x.to(...given), 'to: ');
        refuses(() => nn.Linear(1, 1).to(...given), 'to: ');
    }
    refuses(() => nn.Linear(1, 1).to('cpu', float64, true), 'to: 3 arguments were given, it takes 2');
    refuses(() => x.to('cpu', float64, 1), 'non_blocking must be true or false');
    refuses(() => x.to('cpu', float64, true, false, 1), 'to: 5 arguments were given, it takes 4');
});

tap.add('sizes_are_no_null', () => {
    let n = 0;
    for (const [name, {args, method}] of Object.entries(operations)) {
        const place = args.findIndex(arg => arg[1] === 'int[]' && arg.length < 3);
        if (place < 0)
            continue;
        const given = args.slice(0, place).map(right);
        refuses(() => GTorch[name](...given, null), 'must be an array of integers, not null');
        if (method)
            refuses(() => x[name](...given.slice(1), null), 'must be an array of integers, not null');
        n++;
    }
    tap.assert(n > 15, `${n} operations`);
    tap.equal(x.sum(null).item(), 6);
});

tap.add('ranges_have_known_names', () => {
    refuses(() => x.at({from: 0, to: 1}), 'no option from');
    refuses(() => x.at({nonsense: 7}), 'no option nonsense');
    refuses(() => x.put_at({from: 0}, 1), 'no option from');
    refuses(() => x.at([]), 'at: ');
    tap.equal(x.at({start: 1}).shape, [1, 3]);
    tap.equal(x.at({}, {step: 2}).shape, [2, 2]);
    tap.equal(x.at([0, 1], [null, 2]).shape, [1, 2]);
});

// --- tables ---

tap.add('tables_are_objects_or_maps', () => {
    const source = nn.Linear(2, 2);
    const good = source.state_dict();
    const sgd = optim.Adam(source.parameters());
    source.forward(GTorch.ones([1, 2])).sum().backward();
    sgd.step();
    const schedule = optim.lr_scheduler.StepLR(sgd, 1);
    const scaler = new GTorch.GradScaler();
    for (const holder of [nn.Linear(2, 2), sgd, schedule, scaler]) {
        const wrong = [5, 'text', null, undefined, true, [], [['a', x]], new Set(), x, source, () => good,
            new (class Table {})(), new Map([[5, x]]), new WeakMap()];
        for (const value of wrong)
            refuses(() => holder.load_state_dict(value), 'load_state_dict');
        const own = holder.state_dict();
        holder.load_state_dict(new Map(Object.entries(own)));
        holder.load_state_dict(Object.assign(Object.create(null), own));
    }
    const target = nn.Linear(2, 2);
    target.load_state_dict(new Map(Object.entries(good)), false);
    tap.equal(target.weight.toArray(), source.weight.toArray());
    const none = {missing_keys: [], unexpected_keys: []};
    tap.equal(target.load_state_dict(good), none);
    tap.equal(target.load_state_dict(good, false), none);
    tap.equal(target.load_state_dict({weight: good.weight, wieght: good.weight}, {strict: false}),
        {missing_keys: ['bias'], unexpected_keys: ['wieght']});
    refuses(() => target.load_state_dict(5, false), 'must be an object or a Map, not number 5');
    refuses(() => target.load_state_dict(good, {strict: 1}), 'load_state_dict: strict');
    refuses(() => target.load_state_dict(good, true, 1), 'load_state_dict: ');
    for (const value of [5, [], undefined, new Set()])
        refuses(() => GTorch.safetensors_save({x}, value, null, null, null), 'metadata');
});

// --- reading ---

tap.add('what_may_only_be_read_is_copied_into_arrays', () => {
    const content = new Uint8Array(new Float32Array([1, 2, 3]).buffer);
    const path = GLib.build_filenamev([GLib.get_tmp_dir(), `gtorch-given-${GLib.uuid_string_random()}`]);
    GLib.file_set_contents(path, content);
    try {
        const plain = GLib.Bytes.new(content);
        for (const bytes of [plain, GLib.MappedFile.new(path, false).get_bytes()]) {
            const tensor = GTorch.Tensor.new_from_bytes(bytes, GTorch.float32, [3]);
            tap.assert(tensor.is_read_only());
            const views = [tensor, tensor.view([3, 1]), tensor.detach(), tensor.at([1, 3])];
            for (const view of views) {
                const array = view.toTypedArray();
                const before = [...array];
                array.fill(7);
                tap.equal([...view.toTypedArray()], before);
            }
            tap.equal(tensor.toArray(), [1, 2, 3]);
            tap.equal([...new Float32Array(bytes.toArray().slice().buffer)], [1, 2, 3]);
        }
    } finally {
        GLib.unlink(path);
    }
    const own = GTorch.ones([2], {device: 'cpu'});
    own.toTypedArray()[0] = 5;
    tap.equal(own.toArray(), [5, 1]);
});

// --- numbers ---

tap.add('the_ends_of_64_bits_are_whole_numbers', () => {
    const {int64, float32} = GTorch;
    const least = -(2 ** 63);
    tap.equal(GTorch.tensor([least, 1]).dtype, int64);
    tap.equal([...GTorch.tensor([least, 1]).toTypedArray()].map(String), [`${-(2n ** 63n)}`, '1']);
    tap.equal(GTorch.tensor([least], {dtype: int64}).dtype, int64);
    tap.equal(GTorch.tensor([2 ** 63 - 1024]).dtype, int64);
    tap.equal(GTorch.tensor([2 ** 63]).dtype, float32);
    tap.equal(GTorch.tensor([1e20]).dtype, float32);
    tap.equal(GTorch.tensor([least], {dtype: float32}).toArray(), [least]);
    tap.equal(GTorch.tensor([-(2n ** 63n)], {dtype: float32}).toArray(), [least]);
    tap.throws(() => GTorch.tensor([least], {dtype: GTorch.int8}), error =>
        error.message.includes('-9223372036'));
});

tap.add('numbers_beyond_64_bits_are_operands', () => {
    const {float32, float64, int64, int8} = GTorch;
    const [x, whole] = [GTorch.ones([2]), GTorch.ones([2], {dtype: int64})];
    const mask = GTorch.tensor([true, false]);
    const least = -3.4028234663852886e38; // of float32
    for (const name of ['add', 'sub', 'rsub', 'mul', 'remainder', 'fmod', 'floor_divide', 'eq', 'ne', 'lt',
        'le', 'gt', 'ge', 'pow', 'clamp_min', 'clamp_max', 'div', 'copysign']) {
        for (const value of [2 ** 63, 1e19, 1e30, -1e30]) {
            const wide = GTorch.full([], value, {dtype: float32});
            const made = x[name](value);
            tap.equal(made.dtype, x[name](wide).dtype);
            tap.equal(`${name} ${value} ${made}`, `${name} ${value} ${x[name](wide)}`);
            if (`${name}_` in x)
                x.clone()[`${name}_`](value);
        }
    }
    for (const value of [-1e30, least, 2 ** 63]) {
        const expected = [Math.fround(value), 1];
        tap.equal(x.masked_fill(mask, value).toArray(), expected);
        tap.equal(x.clone().masked_fill_(mask, value).toArray(), expected);
        tap.equal(x.index_fill(0, GTorch.tensor([0]), value).toArray(), expected);
        tap.equal(x.scatter(0, GTorch.tensor([0]), value).toArray(), expected);
        tap.equal(GTorch.where(mask, value, x).toArray(), expected);
    }
    const double = x.to(float64);
    tap.equal(double.mul(Number.MAX_VALUE).toArray(), [Number.MAX_VALUE, Number.MAX_VALUE]);
    tap.equal(GTorch.where(mask, double, 1e30).toArray(), [1, 1e30]);
    tap.equal(GTorch.mul(1e30, x).toArray(), [Math.fround(1e30), Math.fround(1e30)]);
    tap.equal(whole.mul(1e30).dtype, float32);
    tap.equal(whole.lt(1e30).toArray(), [true, true]);
    tap.equal([...whole.add(-(2 ** 63)).toTypedArray()].map(String), Array(2).fill(`${-(2n ** 63n) + 1n}`));
    tap.equal([...whole.mul(-(2n ** 63n)).toTypedArray()].map(String), Array(2).fill(`${-(2n ** 63n)}`));
    tap.throws(() => x.mul(2n ** 63n), error => error instanceof RangeError &&
        error.message === 'mul: other does not fit into 64 bits: 9223372036854775808');
    tap.throws(() => whole.to(int8).masked_fill(mask, 1e30), error => error.message.includes('1e+30'));
});

tap.add('arrays_have_a_number_in_each_place', () => {
    const sparse = [1, 5, 2];
    delete sparse[1];
    refuses(() => GTorch.tensor(sparse), 'not of undefined');
    refuses(() => GTorch.tensor([[1, 2, 3], sparse]), 'not of undefined');
    refuses(() => GTorch.tensor(Array(2)), 'not of undefined');
});

tap.add('a_range_of_one_number_ends_there', () => {
    tap.equal(GTorch.arange(5).toArray(), [0, 1, 2, 3, 4]);
    tap.equal(GTorch.arange(3, {dtype: GTorch.int64}).dtype, GTorch.int64);
    tap.equal(GTorch.arange({end: 2}).toArray(), [0, 1]);
    tap.equal(GTorch.arange(1, 3).toArray(), [1, 2]);
    tap.equal(GTorch.arange(1, {end: 3}).toArray(), [1, 2]);
    tap.equal(GTorch.arange({start: 1, end: 3}).toArray(), [1, 2]);
    refuses(() => GTorch.arange(), 'start is missing');
    refuses(() => GTorch.arange(3, {start: 1}), 'start');
    refuses(() => GTorch.arange(undefined), 'undefined');
    refuses(() => GTorch.arange({edn: 2}), 'edn');
});

tap.add('clamp_needs_a_bound', () => {
    const make = () => GTorch.tensor([-1, 0.25, 2]);
    for (const name of ['clamp', 'clamp_', 'clamp_inplace']) {
        for (const given of [[], [{}], [null], [null, null], [{min: null}], [{min: null, max: null}]]) {
            tap.throws(() => make()[name](...given), error => error instanceof TypeError &&
                error.message.includes('a min, a max or both'));
        }
        for (const given of [[null, 0.5], [{min: null, max: 0.5}], [{max: 0.5}], [null, {max: 0.5}]])
            tap.equal(make()[name](...given).toArray(), [-1, 0.25, 0.5]);
        tap.equal(make()[name](0).toArray(), [0, 0.25, 2]);
        tap.equal(make()[name]({min: 0}).toArray(), [0, 0.25, 2]);
    }
    tap.equal(GTorch.tensor([1, 9]).clamp(null, 5n).toArray(), [1, 5]);
});

tap.add('operators_between_tensors_are_refused', () => {
    const x = GTorch.ones([1]);
    const calls = [() => x > 0.1, () => x < 1, () => x + x, () => x * 2, () => -x, () => +x];
    for (const call of calls)
        tap.throws(call, error => error instanceof TypeError && error.message.includes('item()'));
    tap.equal(`${x}`, x.to_string());
    tap.equal(String(x), x.to_string());
    tap.assert(x === x && x !== GTorch.ones([1]));
});

tap.add('wrong_values_are_named_in_messages', () => {
    const x = GTorch.ones([1]);
    const {nn, optim} = GTorch;
    for (const [call, says] of [
        [() => x.to('cpux'), "a device such as 'cuda:0'"],
        [() => nn.Linear(1, 1).forward([1, 2, 3]),
            'Linear.forward: an input must be a tensor, not an array of 3'],
        [() => nn.MSELoss().forward(x, 5), 'MSELoss.forward: an input must be a tensor, not number 5'],
        [() => GTorch.safetensors_save_file({}, null),
            'safetensors_save_file: file is missing: (tensors, metadata, file, cancellable, progress)'],
    ])
        tap.throws(call, error => error instanceof TypeError && error.message.includes(says));
    const optimizer = optim.SGD([nn.Parameter(x)], {lr: 1});
    for (const [one, text] of [[new GTorch.Event(), '<Event>'], [optimizer, '<SGD>'],
        [new GTorch.CUDAGraph(), '<CUDAGraph>'], [new GTorch.Generator(), '<Generator>'],
        [optim.lr_scheduler.StepLR(optimizer, 1), '<StepLR>'], [GTorch.Stream.new(null, 0), 'Stream>']])
        tap.assert(`${one}`.endsWith(text), `${one}`);
});

tap.add('seeds_below_zero_are_those_with_the_same_bits', () => {
    const drawn = seed => {
        GTorch.manual_seed(seed);
        return GTorch.randn([4]).toArray();
    };
    tap.equal(drawn(-1), drawn(2n ** 64n - 1n));
    tap.equal(drawn(-5n), drawn(2n ** 64n - 5n));
    const generator = GTorch.Generator.new_with_seed(-1);
    generator.set_seed(-2);
    for (const wrong of [-(2n ** 63n) - 1n, 2n ** 64n, 1.5])
        tap.throws(() => GTorch.manual_seed(wrong), error => /seed/.test(error.message));
});

await tap.run();
