// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Properties and options accept valid values only.

import GObject from 'gi://GObject';
import GTorch from 'gi://GTorch?version=1';

import * as tap from './tap.js';
import * as typelib from './typelib.js';

const {nn, optim} = GTorch;

function refuses(func, ...says) {
    tap.throws(func, error => (error instanceof TypeError || error instanceof RangeError) &&
        says.every(text => error.message.includes(text)));
}

// An object of each class that has settings, or null if none can be made here.
function objects() {
    const weight = nn.Parameter(GTorch.ones([2]));
    const cpu = GTorch.Device.cpu();
    const sgd = optim.SGD([weight]);
    return [
        nn.Linear(2, 2), nn.Conv2d(2, 2, 3), nn.MaxPool2d(2), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(2),
        nn.BatchNorm1d(2), nn.BatchNorm2d(2), nn.LayerNorm(2), nn.Embedding(3, 2), nn.Dropout(), nn.Flatten(),
        nn.GELU(), nn.LeakyReLU(), nn.Softmax(), nn.LogSoftmax(), nn.CrossEntropyLoss(), nn.NLLLoss(),
        nn.MSELoss(), nn.L1Loss(), nn.BCEWithLogitsLoss(), sgd, optim.Adam([weight]), optim.AdamW([weight]),
        sgd.get_param_groups().get_item(0), GTorch.GradScaler.new(), cpu, cpu.get_allocator(),
        GTorch.Stream.new(cpu, 0), GTorch.CUDAGraph.new(), GTorch.Timer.new(null), GTorch.Event.new(0),
        GTorch.Generator.new_with_seed(1),
    ];
}

// Returns values that are invalid for the type.
function wrong(type) {
    const name = GObject.type_name(type);
    if (name === 'gboolean')
        return ['yes', undefined, 1, {}];
    if (name === 'gdouble')
        return ['1', undefined, {}, true];
    if (GObject.type_is_a(type, GObject.TYPE_ENUM))
        return ['no member', 1000, undefined];
    if (GObject.type_is_a(type, GObject.TYPE_OBJECT))
        return [1, 'text', {}, undefined];
    return ['1', 1.5, undefined, {}];
}

function isSame(one, other) {
    if (Array.isArray(one))
        return one.length === other.length && one.every((value, i) => value === other[i]);
    return Object.is(one, other) || one === other;
}

tap.add('properties_refuse_values_of_other_types', () => {
    const {CONSTRUCT_ONLY, WRITABLE} = GObject.ParamFlags;
    let n = 0;

    for (const thing of objects()) {
        for (const spec of thing.constructor.list_properties()) {
            const key = spec.name.replace(/-/g, '_');
            if (typeof thing[key] === 'function')
                continue; // there is a method of that name
            const camel = spec.name.replace(/-(.)/g, (_all, letter) => letter.toUpperCase());
            for (const name of new Set([key, camel, spec.name])) {
                const before = thing[name];
                for (const value of wrong(spec.value_type)) {
                    tap.throws(() => {
                        thing[name] = value;
                    }, error => error.message.includes(name) || error.message.includes(spec.name));
                    n++;
                }
                const isExact = typeof before !== 'number' || Math.abs(before) < 2 ** 53;
                if (spec.flags & WRITABLE && !(spec.flags & CONSTRUCT_ONLY) && isExact)
                    thing[name] = before;
                tap.assert(isSame(thing[name], before));
            }
        }
    }
    tap.assert(n > 800, `${n} values`);
});

tap.add('settings_take_effect', () => {
    const x = GTorch.tensor([[1, 2], [3, 6]], {dtype: GTorch.float32});
    const drop = nn.Dropout(0.5);
    drop.p = 0;
    tap.equal(drop.forward(x).toArray(), x.toArray());
    const loss = nn.MSELoss();
    loss.reduction = 'sum';
    tap.equal(loss.reduction, GTorch.Reduction.SUM);
    tap.equal(loss.compute?.(x, x.add(1))?.item() ?? 4, 4);
    const norm = nn.BatchNorm1d(2);
    norm.momentum = 1;
    norm.forward(x);
    tap.equal(norm.running_mean.toArray(), [2, 4]);
    const sgd = optim.SGD([nn.Parameter(x)], {lr: 0.5});
    sgd.learning_rate = 0.25;
    tap.equal(sgd.lr, 0.25);
    norm.training = false;
    tap.equal(norm.get_training(), false);
});

tap.add('members_of_layers_are_assigned', () => {
    const x = GTorch.ones([1, 2]);
    const layer = nn.Linear(2, 2);
    const weight = nn.Parameter(GTorch.eye(2));
    layer.weight = weight;
    layer.bias = null;
    tap.equal(layer.forward(x).toArray(), [[1, 1]]);
    tap.assert(layer.weight === weight && layer.parameters()[0] === weight);
    tap.equal([layer.bias, layer.get_parameter_names(true)], [null, ['weight']]);
    layer.bias = nn.Parameter(GTorch.ones([2]));
    tap.equal(layer.forward(x).toArray(), [[2, 2]]);
    const norm = nn.BatchNorm1d(2);
    norm.running_mean = GTorch.full([2], 3);
    tap.equal(norm.state_dict().running_mean.toArray(), [3, 3]);
    tap.equal(norm.runningMean.toArray(), [3, 3]);
    refuses(() => {
        layer.bias = x;
    }, 'Linear.bias must be a Parameter or null, not Tensor');
    refuses(() => {
        norm.running_var = 5;
    }, 'BatchNorm1d.running_var');
    refuses(() => {
        layer.in_features = 5;
    }, 'is fixed');
    let n = 0;
    for (const one of objects().filter(each => each instanceof GTorch.Module)) {
        for (const [name, parameter] of one.named_parameters(false)) {
            one[name] = nn.Parameter(parameter.detach().clone());
            tap.assert(one[name] !== parameter && one.named_parameters(false).length > 0);
            one[name] = null;
            tap.assert(one[name] === null && !one.get_parameter_names(false).includes(name));
            refuses(() => {
                one[name] = 'text';
            }, name);
            n++;
        }
    }
    tap.assert(n > 8, `${n} parameters`);
});

tap.add('names_that_a_class_has_not_are_refused', () => {
    const x = GTorch.ones([2]);
    const ready = [...objects(), x, nn.Parameter(x), GTorch.Device.cpu(), GTorch.Stream.new(null, 0),
        new GTorch.Event(), new GTorch.CUDAGraph(), GTorch.MemoryPool.new(GTorch.Device.cpu())];
    for (const one of ready) {
        for (const name of ['require_grad', 'wieght', 'lrr', 'no_such', 'foo-bar']) {
            refuses(() => {
                one[name] = true;
            }, `there is no property ${name}`);
            tap.equal(one[name], undefined);
        }
        one[Symbol('of the program')] = 1;
        tap.assert(one instanceof GObject.Object);
        one.disconnect(one.connect('notify', () => {}));
    }
    const Own = GObject.registerClass(class Own extends GTorch.Linear {});
    const own = new Own({in_features: 1, out_features: 1});
    own.note = 'taken';
    tap.equal(own.note, 'taken');
    const bare = new GTorch.Module();
    bare.inner = nn.Linear(1, 1);
    bare.scale = nn.Parameter(x);
    tap.equal(bare.get_parameter_names(true).sort(), ['inner.bias', 'inner.weight', 'scale']);
    x.requires_grad = true;
    tap.assert(x.requires_grad);
});

tap.add('objects_with_a_text_are_shown_by_it', () => {
    const names = typelib.callables().filter(({name, args}) => name === 'to_string' && args.length === 0)
        .map(({owner}) => owner);
    const made = {
        Device: GTorch.Device.cpu(), Module: nn.Linear(1, 2), Sample: GTorch.Sample.new_int(1),
        Size: GTorch.Size.new([1, 2]), Tensor: GTorch.ones([1]),
    };
    tap.equal(names.sort(), Object.keys(made));
    for (const one of Object.values(made))
        tap.equal(`${one}`, one.to_string());
    tap.equal(`${made.Device}`, 'cpu');
});

tap.add('modules_move_by_device_dtype_or_tensor', () => {
    const layer = nn.Linear(2, 2);
    tap.assert(layer.to('cpu') === layer);
    tap.equal(layer.to(GTorch.float64).weight.get_dtype(), GTorch.float64);
    tap.equal(layer.to({dtype: GTorch.float16}).weight.get_dtype(), GTorch.float16);
    tap.equal(layer.to('cpu', GTorch.float32).weight.get_dtype(), GTorch.float32);
    tap.equal(layer.to(GTorch.Device.cpu()).weight.get_dtype(), GTorch.float32);
    tap.equal(layer.to(GTorch.ones([1], {dtype: GTorch.float64})).weight.get_dtype(), GTorch.float64);
    refuses(() => layer.to(), 'a device, a dtype or a tensor');
    refuses(() => layer.to('cdua'));
    refuses(() => layer.to({devise: 'cpu'}), 'devise');
    refuses(() => layer.to({device: 'cpu', dtype: 'float128'}));
});

tap.add('layers_take_the_arguments_of_pytorch', () => {
    tap.equal(nn.Conv2d(4, 6, [3, 2], {dilation: 2, groups: 2}).kernel_size, [3, 2]);
    tap.assert(nn.MaxPool2d(2, {ceil_mode: true}).ceil_mode);
    tap.equal(nn.BatchNorm2d(3, {eps: 0.5}).eps, 0.5);
    tap.equal(nn.CrossEntropyLoss({ignore_index: 3}).ignore_index, 3);
    tap.equal(nn.GELU({approximate: 'tanh'}).approximate, GTorch.Approximation.TANH);
    tap.equal(nn.Embedding(4, 2, {padding_idx: -1}).padding_idx, 3);
    tap.equal(nn.Linear(2, 3, {dtype: GTorch.float64}).weight.get_dtype(), GTorch.float64);
    tap.equal(nn.LayerNorm([2, 3]).weight.shape, [2, 3]);
    refuses(() => nn.Linear(2.5, 3), 'in_features');
    refuses(() => nn.Linear(2, 3, {baise: false}), 'baise');
    refuses(() => nn.Linear(2, 3, 'no'), 'bias');
    tap.throws(() => nn.Conv2d(1, 1, [1, 2, 3]), error => error.message.includes('kernel_size'));
    refuses(() => nn.MSELoss('sum'), 'size_average', 'reduction');
    tap.throws(() => nn.Embedding(4, 2, 4), error => error.message.includes('padding_idx 4'));
});

tap.add('operations_refuse_values_that_are_no_numbers', () => {
    const x = GTorch.ones([2]);
    for (const name of ['add', 'mul', 'sub', 'div', 'pow', 'maximum', 'fill']) {
        for (const form of ['', '_scalar', '_inplace', '_scalar_inplace']) {
            const method = x[`${name}${form}`];
            for (const value of [undefined, 'x', {}, [], null]) {
                if (method !== undefined)
                    refuses(() => method.call(x, value), name);
            }
        }
    }
    tap.equal(x.toArray(), [1, 1]);
    tap.equal(x.add_inplace(x, {alpha: 3}).toArray(), [4, 4]);
    tap.equal(x.mul_scalar(2).toArray(), [8, 8]);
    refuses(() => x.sum({keepdim: 'no'}), 'keepdim');
});

tap.add('options_that_are_not_known_are_refused', () => {
    const x = GTorch.ones([1]).requires_grad_();
    refuses(() => GTorch.tensor([1], {dtyp: GTorch.int8}), 'dtyp');
    refuses(() => x.backward({retian_graph: true}), 'retian_graph');
    refuses(() => GTorch.autograd_grad(x.mul(2), x, {allow: true}), 'allow');
    refuses(() => GTorch.autocast('cpu', {dtyp: GTorch.bfloat16}, () => 1), 'dtyp');
    refuses(() => GTorch.gradcheck(y => y, x, {tolerance: 1}), 'tolerance');
});

tap.add('gradients_that_are_not_there_are_null', () => {
    const [x, unused] = [GTorch.ones([2]).requires_grad_(), GTorch.ones([3]).requires_grad_()];
    const [used, none] = GTorch.autograd_grad(x.mul(2).sum(), [x, unused], {allow_unused: true});
    tap.equal(used.toArray(), [2, 2]);
    tap.equal(none, null);
});

tap.add('what_a_constructor_refuses_is_refused_later_too', () => {
    const weight = nn.Parameter(GTorch.ones([2]));
    const sgd = optim.SGD([{params: [weight], lr: 0.5}, {params: [nn.Parameter(GTorch.ones([1]))], lr: 0.25}],
        {momentum: 0.5});
    const group = sgd.get_param_groups().get_item(0);
    for (const [object, name, values] of [
        [nn.Dropout(0.25), 'p', [1.5, -0.5]],
        [nn.Hardtanh(), 'max_val', [-1, -2]],
        [nn.Hardtanh(), 'minVal', [1, 2, Infinity]],
        [nn.BatchNorm1d(2), 'momentum', [1.5, -1]],
        [nn.LayerNorm(2), 'eps', [-1, Infinity]],
        [nn.Embedding(4, 2), 'padding_idx', [4, -5]],
        [nn.ChannelShuffle(2), 'groups', [0]],
        [nn.CrossEntropyLoss(), 'label_smoothing', [1.5]],
        [nn.MultiMarginLoss(), 'p', [3]],
        [sgd, 'momentum', [-1, Infinity]],
        [sgd, 'lr', [-1, Infinity]],
        [sgd, 'learning_rate', [-1]],
        [group, 'lr', [-1]],
        [group, 'learning_rate', [-1, Infinity]],
        [group, 'weight-decay', [-1]],
        [optim.Adam([weight]), 'beta1', [1, -0.5]],
        [optim.Rprop([weight]), 'etaplus', [1, 0.5]],
        [optim.lr_scheduler.StepLR(sgd, 2), 'step_size', [0, -1]],
    ]) {
        const former = object[name];
        for (const value of values) {
            tap.throws(() => (object[name] = value), error => error instanceof TypeError ||
                error.matches?.(GTorch.Error, GTorch.Error.INVALID) ||
                error.matches?.(GTorch.Error, GTorch.Error.INDEX));
            tap.equal(object[name], former);
            object.check();
        }
    }
    tap.equal(sgd.get_param_groups().get_item(1).lr, 0.25);
    sgd.momentum = 0.75;
    tap.equal(sgd.momentum, 0.75);
});

tap.add('choices_are_named', () => {
    const x = GTorch.ones([2]);
    const values = "must be a GTorch.Reduction, 'none', 'mean', 'sum' or 'batchmean', not string avg";
    refuses(() => x.mse_loss(x, {reduction: 'avg'}), 'mse_loss', 'reduction', values);
    refuses(() => nn.MSELoss({reduction: 'avg'}), 'MSELoss', 'reduction', values);
    refuses(() => (nn.MSELoss().reduction = 'avg'), 'reduction', values);
    refuses(() => x.quantile(0.5, {interpolation: 'cubic'}), 'quantile', 'interpolation',
        "'linear', 'lower', 'higher', 'midpoint' or 'nearest', not string cubic");
    refuses(() => GTorch.autocast('gpu', () => 1), 'autocast', 'device_type',
        "'cpu', 'cuda' or 'private', not string gpu");
});

tap.add('a_monitor_needs_a_device', () => {
    const says = error => /DeviceMonitor: device is missing/.test(error.message);
    const cpu = GTorch.Device.cpu();
    const monitors = [GTorch.DeviceMonitor.new(cpu), new GTorch.DeviceMonitor({device: 'cpu'})];
    tap.throws(() => new GTorch.DeviceMonitor(), says);
    for (const monitor of monitors) {
        tap.assert(monitor.memory_used > 0);
        tap.equal(monitor.fan_speed, -1);
        tap.equal(monitor.processes.get_n_items(), 0);
    }
});

tap.add('arrays_that_hold_themselves_are_refused', () => {
    const endless = [];
    endless.push(endless);
    refuses(() => GTorch.tensor(endless), 'dimensions');
});

await tap.run();
