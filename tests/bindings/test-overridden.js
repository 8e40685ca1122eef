// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Every virtual function of every class is overridden by a method of its name, and by vfunc_ and its name:
// both are called, what they throw comes out of the call as it is, a promise is refused, and hooks run.

import GObject from 'gi://GObject';
import Gio from 'gi://Gio';
import GLib from 'gi://GLib';
import GTorch from 'gi://GTorch?version=1';

import * as tap from './tap.js';
import * as typelib from './typelib.js';

const {nn, optim} = GTorch;
const {LRScheduler} = optim.lr_scheduler;
const cpu = GTorch.Device.cpu();
const x = GTorch.ones([2]);
let count = 0;

// A class with one member, under that name.
function derive(Parent, name, func) {
    const klass = class extends Parent {};
    Object.defineProperty(klass.prototype, name, {value: func, configurable: true, writable: true});
    return GObject.registerClass({GTypeName: `TestOverridden${count++}`}, klass);
}

function stepped(Class) {
    const weight = nn.Parameter(GTorch.ones([1]));
    const optimizer = new Class();
    const params = Gio.ListStore.new(GTorch.Tensor.$gtype);
    params.append(weight);
    optimizer.add_param_group(GTorch.ParamGroup.new(params, 0.5, 0));
    weight.sum().backward();
    optimizer.step();
    return weight.item();
}

function rates(Class) {
    const optimizer = optim.SGD([nn.Parameter(GTorch.ones([1]))], {lr: 1});
    const schedule = new Class({optimizer});
    schedule.step();
    return optimizer.lr;
}

// Objects that are derived from, and the data sets that they read.
const ROWS = GTorch.TensorDataset.new([GTorch.arange(3)]);
const Listed = GObject.registerClass(class TestOverriddenListed extends GTorch.SampleSource {
    next() {
        return this.values.shift();
    }
});
const Endless = GObject.registerClass(class TestOverriddenEndless extends GTorch.IterableDataset {
    * iterate() {
        for (;;)
            yield 0;
    }
});

function sourceOf(values) {
    return Object.assign(new Listed(), {values});
}

// Reads the batches of a loader whose fetcher is of the class.
function fetched(Class, dataset = ROWS) {
    const fetcher = new Class({dataset});
    return [fetcher, [...new GTorch.DataLoader({dataset, fetcher, batch_size: 2})]];
}

function trained(Class, validation = null) {
    const module = nn.Linear(1, 1);
    const rows = x.view([2, 1]);
    const loader = GTorch.DataLoader.new(GTorch.TensorDataset.new([rows, rows]), 2, false);
    const trainer = new Class({
        module, loader, optimizer: optim.SGD(module.parameters(), {lr: 0.5}), loss_module: nn.MSELoss(),
        validation_loader: validation === null ? null : loader,
    });
    trainer.run();
    return trainer;
}

const ofC = (name, member) => (object, ...given) => GTorch[name].prototype[member].apply(object, given);
const seven = module => module.weight.sum().mul(0).add(7);
const pair = (a, b = a) => a.add(b);
const leaf = () => GTorch.ones([2]).requires_grad_();
// The function that overrides, the call that leads to it, and what that gives.
const CASES = {
    'Module.forward': {
        func: y => y.mul(3),
        call: Class => new Class().call(x).toArray(), gives: [3, 3],
    },
    'Module.forward_many': {
        func: inputs => inputs[0].sub(inputs[1]),
        call: Class => GTorch.Module.prototype.forward_many.call(new Class(), [x, x.mul(5)]).toArray(),
        gives: [-4, -4],
    },
    'Module.extra_repr': {
        func: () => 'of its own', isLogged: true,
        call: Class => /of its own/.test(new Class().to_string()), gives: true,
    },
    'Module.get_extra_state': {
        func: () => GTorch.tensor(3), isLogged: true,
        call: Class => new Class().state_dict()._extra_state.item(), gives: 3,
    },
    'Module.set_extra_state': {
        func(state) {
            this.seen = state.item();
            return true;
        },
        call: Class => {
            const net = new Class();
            net.load_state_dict({_extra_state: GTorch.tensor(3)});
            return net.seen;
        },
        gives: 3,
    },
    'Module.right_inverse': {
        func: value => value.mul(3),
        call: Class => {
            const layer = nn.Linear(1, 2);
            layer.bias.requires_grad_(false).fill_(2);
            layer.register_parametrization('bias', new Class(), true);
            return layer.parametrizations.get('bias').original.toArray();
        },
        gives: [6, 6],
    },
    'Loss.compute': {
        func: (a, b) => a.mul(b).sum(), parent: GTorch.Loss,
        call: Class => new Class().forward(x, x.mul(2)).item(), gives: 4,
    },
    'Attention.attend': {
        func: y => [true, y.mul(3), null], parent: GTorch.Attention,
        call: Class => new Class().forward(x, x, x)[0].toArray(), gives: [3, 3],
    },
    'Encoder.encode': {
        func: y => y.mul(3), parent: GTorch.Encoder,
        call: Class => new Class().forward(x).toArray(), gives: [3, 3],
    },
    'Decoder.decode': {
        func: (y, z) => y.sub(z), parent: GTorch.Decoder,
        call: Class => new Class().forward(x, x.mul(5)).toArray(), gives: [-4, -4],
    },
    'Function.forward': {
        func: Symbol('set below'), parent: GTorch.Function,
        call: Class => new Class().call(x).toArray(), gives: [2, 2],
    },
    'Function.backward': {
        func: Symbol('set below'), parent: GTorch.Function,
        call: Class => {
            const Whole = derive(Class, 'forward', (_context, y) => y.mul(2));
            const input = leaf();
            new Whole().call(input).sum().backward();
            return input.grad.toArray();
        },
        gives: [7, 7],
    },
    'Optimizer.step_param': {
        func: (group, param, grad) => {
            param.sub_(grad, {alpha: group.get_learning_rate()});
            return true;
        },
        parent: GTorch.Optimizer, call: stepped, gives: 0.5,
    },
    'LRScheduler.compute': {
        func: (_group, base) => base / 4, parent: LRScheduler, call: rates, gives: 0.25,
    },
    'MemorySource.allocate': {
        func: () => 256, parent: GTorch.MemorySource,
        call: Class => {
            const source = new Class();
            return Number(GTorch.MemorySource.prototype.allocate.call(source, cpu, 10, 0));
        },
        gives: 256,
    },
    'MemorySource.release': {
        func() {
            this.note();
        },
        parent: GTorch.MemorySource, isLogged: true,
        call: Class => {
            let n = 0;
            const source = new Class();
            source.note = () => n++;
            GTorch.MemorySource.prototype.release.call(source, cpu, 256, 10, 0);
            return n;
        },
        gives: 1,
    },
    'Dataset.get_length': {
        func: () => 3, parent: GTorch.Dataset,
        call: Class => ofC('Dataset', 'get_length')(new Class()), gives: 3,
    },
    'Dataset.get_item': {
        func: i => [i, 'text'], parent: GTorch.Dataset, call: Class => new Class().at(1), gives: [1, 'text'],
    },
    'Dataset.get_batch': {
        func: indices => indices.map(i => 2 * i), parent: GTorch.Dataset,
        call: Class => ofC('Dataset', 'get_batch')(new Class(), [1, 2], null), gives: [2, 4],
    },
    'IterableDataset.iterate': {
        func: Symbol('set below'), parent: GTorch.IterableDataset, isGenerator: true,
        call: Class => [...new Class()], gives: [0, 1],
    },
    'IterableDataset.get_state': {
        func: () => new GLib.Variant('i', 5), parent: GTorch.IterableDataset,
        call: Class => ofC('IterableDataset', 'get_state')(new Class()).unpack(), gives: 5,
    },
    'IterableDataset.set_state': {
        func(state) {
            this.seen = state.unpack();
        },
        parent: GTorch.IterableDataset,
        call: Class => {
            const dataset = new Class();
            ofC('IterableDataset', 'set_state')(dataset, new GLib.Variant('i', 5));
            return dataset.seen;
        },
        gives: 5,
    },
    'SampleSource.close': {
        func() {
            this.seen = 'closed';
        },
        parent: GTorch.SampleSource, isLogged: true,
        call: Class => {
            const source = new Class();
            ofC('SampleSource', 'close')(source);
            return source.seen;
        },
        gives: 'closed',
    },
    'SampleSource.next': {
        func() {
            this.n = (this.n ?? 0) + 1;
            return this.n < 3 ? {n: this.n} : null;
        },
        parent: GTorch.SampleSource,
        call: Class => {
            const source = new Class();
            const found = [];
            for (let one; (one = ofC('SampleSource', 'next')(source, null)) !== null;)
                found.push(one.n);
            return found;
        },
        gives: [1, 2],
    },
    'Sampler.get_length': {
        func: () => 3, parent: GTorch.Sampler,
        call: Class => ofC('Sampler', 'get_length')(new Class()), gives: 3,
    },
    'Sampler.iterate': {
        func: Symbol('set below'), parent: GTorch.Sampler, isGenerator: true,
        call: Class => ofC('Sampler', 'iterate')(new Class(), 2).next(5).get_values(), gives: [2, 4],
    },
    'Sampler.set_state': {
        func(state) {
            this.seen = state.unpack();
        },
        parent: GTorch.Sampler,
        call: Class => {
            const sampler = new Class();
            ofC('Sampler', 'set_state')(sampler, new GLib.Variant('s', 'here'));
            return sampler.seen;
        },
        gives: 'here',
    },
    'IndexSource.next': {
        func: n => [5, 6, 7].slice(0, n), parent: GTorch.IndexSource,
        call: Class => ofC('IndexSource', 'next')(new Class(), 2).get_values(), gives: [5, 6],
    },
    'IndexSource.get_state': {
        func: () => new GLib.Variant('s', 'here'), parent: GTorch.IndexSource, isLogged: true,
        call: Class => ofC('IndexSource', 'get_state')(new Class()).unpack(), gives: 'here',
    },
    'Fetcher.begin': {
        func(worker, nWorkers) {
            this.seen = [worker, nWorkers];
        },
        parent: GTorch.Fetcher, call: Class => fetched(Class)[0].seen, gives: [0, 1],
    },
    'Fetcher.fetch': {
        func: (worker, indices) => ({worker, indices}), parent: GTorch.Fetcher,
        call: Class => fetched(Class)[1], gives: [{worker: 0, indices: [0, 1]}, {worker: 0, indices: [2]}],
    },
    'Fetcher.fetch_next': {
        func(_worker, n) {
            this.n = (this.n ?? 0) + n;
            return this.n < 5 ? this.n : null;
        },
        parent: GTorch.Fetcher, call: Class => fetched(Class, new Endless())[1], gives: [2, 4],
    },
    'Fetcher.end': {
        func(worker) {
            this.seen = worker;
        },
        parent: GTorch.Fetcher, isLogged: true, call: Class => fetched(Class)[0].seen, gives: 0,
    },
    'Metric.update': {
        func(output, target) {
            this.seen = [output.item(), target];
        },
        parent: GTorch.Metric,
        call: Class => {
            const metric = new Class();
            ofC('Metric', 'update')(metric, GTorch.tensor(5), null);
            return metric.seen;
        },
        gives: [5, null],
    },
    'Metric.compute': {
        func: () => GTorch.tensor(2.5), parent: GTorch.Metric,
        call: Class => new Class().compute_value(), gives: 2.5,
    },
    'Metric.reset': {
        func() {
            this.seen = true;
        },
        parent: GTorch.Metric,
        call: Class => {
            const metric = new Class();
            ofC('Metric', 'reset')(metric);
            return metric.seen;
        },
        gives: true,
    },
    'Log.write': {
        func(step, names, values) {
            this.seen = [Number(step), names, values];
        },
        parent: GTorch.Log,
        call: Class => {
            const log = new Class();
            ofC('Log', 'write')(log, 3, ['a', 'b'], [0.5, 1]);
            return log.seen;
        },
        gives: [3, ['a', 'b'], [0.5, 1]],
    },
    ...Object.fromEntries(['flush', 'close'].map(name => [`Log.${name}`, {
        func() {
            this.seen = name;
        },
        parent: GTorch.Log,
        call: Class => {
            const log = new Class();
            ofC('Log', name)(log);
            return log.seen;
        },
        gives: name,
    }])),
    'Trainer.training_step': {
        func: Symbol('set below'), parent: GTorch.Trainer, call: Class => trained(Class).loss, gives: 7,
    },
    'Trainer.validation_step': {
        func: Symbol('set below'), parent: GTorch.Trainer,
        call: Class => trained(Class, true).results.loss, gives: 7,
    },
};
function stepOf(self, rows) {
    tap.equal(rows.toArray(), [[1], [1]]);
    return seven(self.module);
}
const STEP = {
    plain([rows]) {
        return stepOf(this, rows);
    },
    direct(sample) {
        return stepOf(this, sample.get_child(0).get_tensor());
    },
};
const SPREAD = {
    'IterableDataset.iterate': {
        plain: (worker, nWorkers) => [worker, nWorkers],
        direct: (worker, nWorkers) => sourceOf([worker, nWorkers]),
    },
    'Sampler.iterate': {
        plain: epoch => [Number(epoch), 4],
        direct: epoch => GTorch.IndexSource.new(GTorch.Size.new([epoch, 4])),
    },
    'Trainer.training_step': STEP,
    'Trainer.validation_step': STEP,
    'Function.forward': {plain: (_context, y) => y.mul(2), direct: (_context, [y]) => [y.mul(2)]},
    'Function.backward': {
        plain: (_context, grad) => grad.mul(7), direct: (_context, [grad]) => [grad.mul(7)],
    },
};

tap.add('every_virtual_function_is_here', () => {
    tap.equal(typelib.vfuncs().filter(name => !(name in CASES)), []);
    tap.equal(Object.keys(CASES).filter(name => !typelib.vfuncs().includes(name)), []);
});

for (const [whole, row] of Object.entries(CASES)) {
    const {func, parent = GTorch.Module, call, gives, isLogged, isGenerator} = row;
    const [, name] = whole.split('.');
    for (const [how, member] of [['plain', name], ['direct', `vfunc_${name}`]]) {
        const title = `${whole.replace('.', '_')}_${how}`;
        tap.add(`${title}_is_called`, () => {
            tap.equal(call(derive(parent, member, SPREAD[whole]?.[how] ?? func)), gives);
        });
        if (isLogged)
            continue;
        tap.add(`${title}_throws`, () => {
            for (const thrown of [new RangeError('from within'), new Error(), 'text', {code: 1}, null]) {
                let caught = Symbol('nothing');
                try {
                    call(derive(parent, member, () => {
                        throw thrown;
                    }));
                } catch (error) {
                    caught = error;
                }
                tap.assert(caught === thrown, `${String(caught)} instead of ${thrown}`);
            }
        });
        tap.add(`${title}_gives_no_promise`, () => {
            const later = function* () {
                yield x;
            };
            const mayGenerate = isGenerator && how === 'plain';
            for (const given of [async () => x, () => Promise.resolve(x), ...mayGenerate ? [] : [later]]) {
                tap.throws(() => call(derive(parent, member, given)), error =>
                    error instanceof TypeError && error.message.includes('computes later'));
            }
        });
    }
}

tap.add('a_loss_may_override_what_takes_two_inputs_in_any_way', () => {
    const two = (input, target) => input.sub(target).abs().sum();
    for (const name of ['vfunc_forward', 'forward', 'vfunc_compute', 'compute']) {
        const loss = new (derive(GTorch.Loss, name, two))();
        tap.equal([name, loss.forward(x, x.mul(3)).item()], [name, 4]);
        tap.equal([name, loss.forward_many([x, x.mul(3)]).item()], [name, 4]);
    }
    const many = derive(GTorch.Module, 'vfunc_forward', pair);
    tap.equal(new many().forward_many([x, x]).toArray(), [2, 2]);
});

tap.add('hooks_run_however_a_module_is_defined_and_called', () => {
    const definitions = [
        ['forward', pair], ['vfunc_forward', pair],
        ['forward_many', inputs => inputs.reduce((a, b) => a.add(b))],
        ['vfunc_forward_many', inputs => inputs.reduce((a, b) => a.add(b))],
    ];
    for (const [name, func] of definitions) {
        const calls = [net => net.forward_many([x, x]), net => net.call(x, x)];
        if (name === 'forward')
            calls.push(net => net.forward(x, x));
        if (!name.endsWith('many'))
            calls.push(net => net.forward(x), net => net.call(x), net => nn.Sequential(net).forward(x));
        for (const Class of [derive(GTorch.Module, name, func),
            derive(derive(GTorch.Module, name, func), 'other', () => 1)]) {
            for (const call of calls) {
                const net = new Class();
                tap.equal([name, call(net).toArray()], [name, [2, 2]]);
                const seen = [];
                net.register_forward_pre_hook(() => void seen.push('before'));
                net.register_forward_hook((_net, _inputs, y) => {
                    seen.push('after');
                    return y.add(1);
                });
                tap.equal([name, call(net).toArray()], [name, [3, 3]]);
                tap.equal([name, seen], [name, ['before', 'after']]);
            }
        }
    }
    const Twice = GObject.registerClass({GTypeName: 'TestOverriddenTwice'},
        class extends derive(GTorch.Module, 'forward_many', ([a, b]) => a.add(b)) {
            forward_many(inputs) {
                return super.forward_many(inputs).mul(3);
            }
        });
    const twice = new Twice();
    let n = 0;
    twice.register_forward_hook(() => void n++);
    tap.equal([twice.forward_many([x, x]).toArray(), n], [[6, 6], 1]);
});

// What classes are made with, and the inputs of modules.
const MADE = {
    AdaptiveAvgPool2d: {output_size: 1}, BatchNorm1d: {num_features: 2}, BatchNorm2d: {num_features: 2},
    AvgPool2d: {kernel_size: 2}, MaxPool2d: {kernel_size: 2},
    AvgPool1d: {kernel_size: 2},
    AvgPool3d: {kernel_size: 1},
    MaxPool1d: {kernel_size: 2},
    MaxPool3d: {kernel_size: 1},
    AdaptiveAvgPool1d: {output_size: 1},
    AdaptiveAvgPool3d: {output_size: 1},
    AdaptiveMaxPool1d: {output_size: 1},
    AdaptiveMaxPool2d: {output_size: 1},
    AdaptiveMaxPool3d: {output_size: 1},
    MaxUnpool1d: {kernel_size: 2}, MaxUnpool2d: {kernel_size: 2}, MaxUnpool3d: {kernel_size: 1},
    Unfold: {kernel_size: 1}, Fold: {output_size: [1, 2], kernel_size: 1}, Upsample: {scale_factor: 2},
    UpsamplingNearest2d: {scale_factor: 2}, UpsamplingBilinear2d: {scale_factor: 2},
    LPPool1d: {norm_type: 2, kernel_size: 2},
    LPPool2d: {norm_type: 2, kernel_size: 2},
    LPPool3d: {norm_type: 2, kernel_size: 1},
    LazyLinear: {out_features: 2}, LazyConv1d: {out_channels: 2, kernel_size: 1},
    LazyConv2d: {out_channels: 2, kernel_size: 1}, LazyConv3d: {out_channels: 2, kernel_size: 1},
    LazyConvTranspose1d: {out_channels: 2, kernel_size: 1},
    LazyConvTranspose2d: {out_channels: 2, kernel_size: 1},
    LazyConvTranspose3d: {out_channels: 2, kernel_size: 1},
    Conv2d: {in_channels: 2, out_channels: 2, kernel_size: 1},
    Conv3d: {in_channels: 2, out_channels: 2, kernel_size: 1},
    ConvTranspose1d: {in_channels: 2, out_channels: 2, kernel_size: 1},
    ConvTranspose2d: {in_channels: 2, out_channels: 2, kernel_size: 1},
    ConvTranspose3d: {in_channels: 2, out_channels: 2, kernel_size: 1},
    Embedding: {num_embeddings: 3, embedding_dim: 2}, EmbeddingBag: {num_embeddings: 3, embedding_dim: 2},
    LayerNorm: {normalized_shape: [2]}, Linear: {in_features: 2, out_features: 2},
    MultiStepLR: {milestones: GTorch.Size.new([1, 2]), gamma: 0.5},
    StepLR: {step_size: 1, gamma: 0.5}, ExponentialLR: {gamma: 0.5}, CosineAnnealingLR: {t_max: 3},
    PolynomialLR: {}, LinearLR: {}, ConstantLR: {}, CosineAnnealingWarmRestarts: {t_0: 2},
    Conv1d: {in_channels: 2, out_channels: 2, kernel_size: 1}, BatchNorm3d: {num_features: 2},
    InstanceNorm1d: {num_features: 2}, InstanceNorm2d: {num_features: 2}, InstanceNorm3d: {num_features: 2},
    GroupNorm: {num_groups: 1, num_channels: 2}, RMSNorm: {normalized_shape: [2]},
    LocalResponseNorm: {size: 1}, CrossMapLRN2d: {size: 1},
    FractionalMaxPool2d: {kernel_size: 1, output_size: [2, 4]},
    FractionalMaxPool3d: {kernel_size: 1, output_size: [1, 2, 4]},
    SyncBatchNorm: {num_features: 2},
    PixelShuffle: {upscale_factor: 1}, PixelUnshuffle: {downscale_factor: 2}, ChannelShuffle: {groups: 2},
    Unflatten: {dim: 1, unflattened_size: [1, 2]},
    CenterCrop: {size: 2}, Normalize: {mean: [0.5, 0.25, 0], std: [1, 2, 4]}, Pad: {padding: 1},
    RandomCrop: {size: 2}, RandomResizedCrop: {size: 2}, Resize: {size: 2},
    Bilinear: {in1_features: 2, in2_features: 2, out_features: 3}, Threshold: {threshold: 0.25, value: 2},
};
for (const n of [1, 2, 3]) {
    const padding = n < 3 ? 1 : [1, 1, 1, 1, 0, 0];
    for (const kind of ['Circular', 'Reflection', 'Replication', 'Zero'])
        MADE[`${kind}Pad${n}d`] = {padding};
    MADE[`ConstantPad${n}d`] = {padding, value: 3};
}
const flat = GTorch.tensor([[0.5, -1], [2, 1]]);
const picture = GTorch.arange(0, 16).to(GTorch.float32).view(1, 2, 2, 4);
const image = GTorch.arange(0, 48).to(GTorch.float32).div(48).view(3, 4, 4);
const positions = GTorch.tensor([0, 1]);
const signs = GTorch.tensor([1, -1]);
const SEVERAL = {
    Bilinear: [flat, flat.abs()], CosineSimilarity: [flat, flat.abs()], PairwiseDistance: [flat, flat.abs()],
    CosineEmbeddingLoss: [flat, flat.abs(), signs], MarginRankingLoss: [flat, flat.abs(), flat.sign()],
    TripletMarginWithDistanceLoss: [flat, flat.abs(), flat.exp()],
    GaussianNLLLoss: [flat, flat.abs(), flat.exp()], TripletMarginLoss: [flat, flat.abs(), flat.exp()],
    MultiLabelMarginLoss: [flat, GTorch.tensor([[0, -1], [1, 0]])],
    MaxUnpool1d: [flat, GTorch.tensor([[0, 3], [2, 1]])], Unfold: [picture], Upsample: [picture],
    MaxUnpool2d: [picture, GTorch.arange(16).view(1, 2, 2, 4)],
    MaxUnpool3d: [picture, GTorch.arange(16).view(1, 2, 2, 4).remainder(8)],
    EmbeddingBag: [positions, GTorch.tensor([0, 1])],
    CTCLoss: [flat.log_softmax(-1), signs.clamp(0, 1).narrow(0, 0, 1), GTorch.tensor(2), GTorch.tensor(1)],
};
function inputsOf(name) {
    if (name in SEVERAL)
        return SEVERAL[name];
    if (name in GTorch.transforms)
        return [image];
    if (name === 'LazyInstanceNorm1d')
        return [picture.flatten(0, 1)];
    if (/2d$|Shuffle|Unshuffle|LocalResponse/.test(name))
        return [picture];
    if (/3d$/.test(name))
        return [picture.unsqueeze(0).transpose(1, 2)];
    if (name === 'BCELoss')
        return [flat.sigmoid(), flat.abs().clamp(0, 1)];
    if (name === 'MultiMarginLoss')
        return [flat, positions];
    if (name === 'Embedding')
        return [positions];
    if (/Loss$/.test(name))
        return [flat.sigmoid().log(), /CrossEntropy|NLL/.test(name) ? positions : flat.abs().clamp(0, 1)];
    return [flat];
}

// Derives a class that overrides a function only to call that of its parent.
function deriveIdle(Parent, name, member) {
    const klass = class extends Parent {};
    const {prototype} = klass;
    const func = function (...given) {
        this.n_idle = (this.n_idle ?? 0) + 1;
        return Object.getPrototypeOf(prototype)[member].apply(this, given);
    };
    Object.defineProperty(prototype, member, {value: func, configurable: true, writable: true});
    return [GObject.registerClass({GTypeName: `TestOverridden${count++}`}, klass), name];
}

// The forward pass does not call these.
const UNCALLED = ['get_extra_state', 'set_extra_state', 'right_inverse'];

// What an object of the class computes.
function resultOf(Class, name) {
    GTorch.manual_seed(1);
    if (Class.prototype instanceof GTorch.Optimizer) {
        const optimizer = new Class();
        const weight = nn.Parameter(GTorch.tensor([1, 2.5]));
        optimizer.add_param_group({params: [weight], lr: 0.5});
        weight.mul(weight).sum().backward();
        optimizer.step();
        return [weight.toArray(), optimizer.n_idle];
    }
    if (Class.prototype instanceof LRScheduler) {
        const optimizer = optim.SGD([nn.Parameter(GTorch.ones([1]))], {lr: 1});
        const schedule = new Class({optimizer, ...MADE[name]});
        const rates = [0, 1, 2].map(() => {
            schedule.step();
            return optimizer.lr;
        });
        return [rates, schedule.n_idle];
    }
    const module = new Class(MADE[name] ?? {});
    module.check?.();
    const inputs = inputsOf(name);
    const given = [module.forward(...inputs), module.forward_many(inputs)].map(y => y.toArray());
    return [[...given, module.to_string().replace(/^.*?\(/, '')], module.n_idle];
}

tap.add('an_override_that_only_calls_super_changes_nothing', () => {
    // The schedules from LambdaLR on, Muon and LBFGS need more than properties, a matrix or a closure.
    // A DistributedModule needs the other processes of a job.
    const abstract = ['AveragedModel', 'ConvTranspose', 'DataParallel', 'DistributedModule', 'Function',
        'GraphedModule', 'LRScheduler', 'Loss',
        'MemorySource', 'Module', 'ModuleDict', 'ModuleList', 'Optimizer', 'ParameterDict', 'ParameterList',
        'RNNBase', 'ParametrizationList', 'Orthogonal', 'SpectralNorm', 'WeightNorm',
        'Sequential', 'LambdaLR', 'MultiplicativeLR', 'CyclicLR', 'OneCycleLR', 'SWALR',
        'ReduceLROnPlateau', 'SequentialLR',
        'ChainedScheduler', 'LBFGS', 'Muon', 'Attention', 'Decoder', 'Encoder', 'MultiheadAttention',
        'AdaptiveLogSoftmaxWithLoss',
        'Transformer',
        'TransformerDecoder', 'TransformerDecoderLayer', 'TransformerEncoder', 'TransformerEncoderLayer'];
    // networks give several results: test-networks.js
    // What reads and counts data is called with super by the tests of data sets, samplers and metrics.
    const families = [GTorch.Module, GTorch.Optimizer, LRScheduler];
    const swept = typelib.classes().filter(name => !abstract.includes(name) &&
        families.some(Family => GTorch[name].prototype instanceof Family) &&
        !(GTorch[name].prototype instanceof GTorch.RNNBase));
    let [n, nCalled] = [0, 0];
    for (const whole of [...typelib.vfuncs(), 'LRScheduler.get_lr']) {
        const [owner, vfunc] = whole.split('.');
        for (const name of swept.filter(one => GTorch[one].prototype instanceof GTorch[owner])) {
            const [expected] = resultOf(GTorch[name], name);
            const members = vfunc === 'get_lr' ? [vfunc] : [vfunc, `vfunc_${vfunc}`];
            const isLoss = GTorch[name].prototype instanceof GTorch.Loss;
            for (const member of members) {
                if ((isLoss || name in SEVERAL) && member === 'vfunc_forward')
                    continue; // it gets one input in C, and is the compute of a loss here
                const [Idle] = deriveIdle(GTorch[name], name, member);
                for (const other of members) {
                    const [Twice] = deriveIdle(Idle, name, other);
                    const what = `${name}: ${other} above ${member}`;
                    for (const Class of [Idle, Twice]) {
                        const [got, nIdle] = resultOf(Class, name);
                        tap.equal([what, got], [what, expected]);
                        if (UNCALLED.includes(vfunc))
                            continue;
                        nCalled += nIdle > 0 ? 1 : 0;
                        n++;
                    }
                }
            }
        }
    }
    tap.assert(n > 300 && nCalled > n / 2, `${nCalled} of ${n} classes`);
});

tap.add('what_super_gives_is_what_an_override_gives', () => {
    for (const member of ['compute', 'vfunc_compute']) {
        const Half = class extends GTorch.StepLR {};
        Half.prototype[member] = function (group, base) {
            return GTorch.StepLR.prototype[member].call(this, group, base) / 2;
        };
        const Class = GObject.registerClass({GTypeName: `TestOverridden${count++}`}, Half);
        const optimizer = optim.SGD([nn.Parameter(GTorch.ones([1]))], {lr: 1});
        const schedule = new Class({optimizer, step_size: 1, gamma: 0.5});
        schedule.initial_step();
        tap.equal(optimizer.lr, 0.5);
        schedule.step();
        tap.equal(optimizer.lr, 0.125);
    }
    const optimizer = optim.SGD([nn.Parameter(GTorch.ones([1]))], {lr: 8});
    tap.equal(optim.lr_scheduler.StepLR(optimizer, 5).get_lr(), [8]);
});

// Derives a class whose functions of these names call those of the parent, twice one above the other.
function deriveSuper(Parent, ...names) {
    return [1, 2].reduce(Above => {
        const klass = class extends Above {};
        for (const name of names) {
            Object.defineProperty(klass.prototype, name, {
                value(...given) {
                    this.n_idle = (this.n_idle ?? 0) + 1;
                    return Above.prototype[name].apply(this, given);
                },
                configurable: true, writable: true,
            });
        }
        return GObject.registerClass({GTypeName: `TestOverridden${count++}`}, klass);
    }, Parent);
}

tap.add('data_and_metrics_are_counted_with_super', () => {
    const dataset = new (deriveSuper(GTorch.Subset, 'get_length', 'get_item'))({
        dataset: ROWS, indices: [2, 0],
    });
    tap.equal([dataset.get_length(), dataset.n_idle], [2, 2]);
    tap.equal([...new GTorch.DataLoader({dataset})].map(([row]) => row.toArray()), [[2], [0]]);
    tap.assert(dataset.n_idle > 4);
    const sampler = new (deriveSuper(GTorch.SequentialSampler, 'get_length', 'iterate'))({length: 3});
    tap.equal([...new GTorch.DataLoader({dataset: ROWS, sampler})].length, 3);
    tap.equal([sampler.get_length(), sampler.n_idle % 2], [3, 0]);
    const metric = new (deriveSuper(GTorch.Accuracy, 'update', 'compute', 'reset'))({top_k: 1});
    for (const [call, n] of [[() => metric.update(flat, positions), 2], [() => metric.compute_value(), 4],
        [() => metric.reset(), 6]]) {
        const given = call();
        tap.equal([metric.n_idle, typeof given === 'number' ? given : 0], [n, n === 4 ? 0.5 : 0]);
    }
    const Trainer = deriveSuper(GTorch.Trainer, 'training_step', 'validation_step');
    GTorch.manual_seed(1);
    const plain = trained(GTorch.Trainer, true);
    GTorch.manual_seed(1);
    const derived = trained(Trainer, true);
    tap.equal([derived.loss, derived.results.loss, derived.n_idle], [plain.loss, plain.results.loss, 4]);
});

tap.add('get_lr_gives_the_rates_of_all_groups', () => {
    const Halves = derive(LRScheduler, 'get_lr', function () {
        return this.base_lrs.map((base, i) => base / 2 ** (this.last_epoch + i));
    });
    const optimizer = optim.SGD([nn.Parameter(x)], {lr: 1});
    const more = Gio.ListStore.new(GTorch.Tensor.$gtype);
    more.append(nn.Parameter(x));
    optimizer.add_param_group(GTorch.ParamGroup.new(more, 8, 0));
    const schedule = new Halves({optimizer});
    schedule.initial_step();
    schedule.initial_step();
    tap.equal(schedule.get_last_lr(), [1, 4]);
    schedule.step();
    tap.equal(schedule.get_last_lr(), [0.5, 2]);
    const wrong = new (derive(LRScheduler, 'get_lr', () => [1]))({optimizer});
    tap.throws(() => wrong.step(), error => error instanceof TypeError && error.message.includes('2 groups'));
});

tap.add('what_is_not_overridden_is_named_as_in_the_program', () => {
    const Bare = GObject.registerClass(class Bare extends GTorch.Optimizer {});
    const Empty = GObject.registerClass(class Empty extends GTorch.Module {});
    for (const [call, says] of [[() => stepped(Bare), /\bBare\b.*step_param/],
        [() => new Empty().forward(x), /\bEmpty\b.*forward/],
        [() => new Empty().call(x, x), /\bEmpty\b.*forward/]]) {
        tap.throws(call, error => error instanceof GTorch.Error && error.matches(GTorch.Error, error.code) &&
            says.test(error.message));
    }
});

tap.add('a_step_that_gives_nothing_was_successful', () => {
    const Still = derive(GTorch.Optimizer, 'step_param', () => undefined);
    tap.equal(stepped(Still), 1);
});

tap.add('forward_calls_a_forward_many_that_a_program_defines', () => {
    for (const name of ['forward_many', 'vfunc_forward_many']) {
        const net = new (derive(GTorch.Module, name, inputs => inputs.reduce((a, b) => a.add(b))))();
        tap.equal(net.forward(x, x, x).toArray(), [3, 3]);
        tap.equal(net.forward(x).toArray(), [1, 1]);
        let n = 0;
        net.register_forward_hook(() => void n++);
        net.forward(x, x);
        tap.equal(n, 1);
    }
    tap.throws(() => nn.ReLU().forward(x, x), error => error instanceof TypeError);
});

tap.add('a_step_gives_true_false_or_nothing', () => {
    tap.throws(() => stepped(derive(GTorch.Optimizer, 'step_param', () => 'no')),
        error => error instanceof TypeError && error.message.includes('true or false'));
});

await tap.run();
