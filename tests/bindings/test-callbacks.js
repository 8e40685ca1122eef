// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// An exception that a callback throws propagates as the same object out of the call that ran it.
// The kinds of callbacks are read from the GIR: each must be called here, or be listed as one whose
// exceptions no call can propagate.

import Gio from 'gi://Gio';
import GLib from 'gi://GLib';
import GObject from 'gi://GObject';
import GTorch from 'gi://GTorch?version=1';

import * as tap from './tap.js';

const {nn} = GTorch;

class Boom extends Error {}

const ways = [];

// Registers a test: func is given a throwing callback, and makes a call that runs it.
function way(kind, name, func) {
    ways.push([kind, name, func]);
}

function leaf() {
    return GTorch.tensor([1, 1, 1], {dtype: GTorch.float64, requires_grad: true});
}

// --- hooks of tensors ---

way('TensorHook', 'backward_to_a_leaf', func => {
    const x = leaf();
    x.register_hook(func);
    x.mul(2).sum().backward();
});
way('TensorHook', 'backward_through_a_result', func => {
    const y = leaf().mul(2);
    y.register_hook(func);
    y.sum().backward();
});
way('TensorHook', 'gradients', func => {
    const x = leaf();
    x.register_hook(func);
    GTorch.autograd_grad([x.mul(2).sum()], [x]);
});
way('TensorHook', 'backward_of_several', func => {
    const x = leaf();
    x.register_hook(func);
    GTorch.autograd_backward([x.sum(), x.mul(2).sum()], [], false, false);
});
way('TensorHook', 'backward_in_a_hook', func => {
    const [x, y] = [leaf(), leaf()];
    const loss = x.mul(2).sum();
    x.register_hook(func);
    y.register_hook(() => {
        loss.backward();
    });
    y.sum().backward();
});

// --- hooks of recorded operations ---

for (const [kind, name] of [['GradNodeHook', 'register_hook'], ['GradNodePreHook', 'register_prehook']]) {
    way(kind, 'backward', func => {
        const y = leaf().mul(2);
        y.dup_grad_node()[name](func);
        y.sum().backward();
    });
}
way('AccumulatedHook', 'backward_then_accumulated', func => {
    const x = leaf();
    x.register_post_accumulate_grad_hook(func);
    x.mul(2).sum().backward();
});

// --- modules ---

const Add = GObject.registerClass(class Add extends GTorch.Module {
    forward(...inputs) {
        this.func?.();
        return inputs.reduce((sum, x) => sum.add(x), GTorch.zeros([2]));
    }
});

function add(func = null) {
    const net = new Add();
    net.func = func;
    return net;
}

for (const [kind, register] of [
    ['ForwardHook', 'register_forward_hook'], ['ForwardPreHook', 'register_forward_pre_hook']]) {
    way(kind, 'of_one_input', func => {
        const net = nn.Linear(2, 2);
        net[register](func);
        net.forward(GTorch.ones([1, 2]));
    });
    way(kind, 'in_a_container', func => {
        const net = nn.Linear(2, 2);
        net[register](func);
        nn.Sequential(nn.Identity(), net).forward(GTorch.ones([1, 2]));
    });
    way(kind, 'in_javascript', func => {
        const net = add();
        net[register](func);
        net.call(GTorch.ones([2]));
    });
    way(kind, 'of_two_inputs', func => {
        const net = add();
        net[register](func);
        net.call(GTorch.ones([2]), GTorch.ones([2]));
    });
    way(kind, 'of_a_loss', func => {
        const net = nn.MSELoss();
        net[register](func);
        net.forward(GTorch.ones([2]), GTorch.zeros([2]));
    });
}
for (const kind of ['LambdaLR', 'MultiplicativeLR']) {
    way('LRFunc', kind, func => {
        const optimizer = GTorch.optim.SGD([nn.Parameter(GTorch.ones([1]))], {lr: 1});
        GTorch.optim.lr_scheduler[kind](optimizer, epoch => epoch > 0 ? func() ?? 1 : 1).step();
    });
}
way('ProfileFunc', 'record_function', func => GTorch.record_function('a range', func));
for (const first of [0, 1]) {
    way('ProfilerScheduleFunc', `step_${first}`, func => {
        const profiler = new GTorch.Profiler();
        profiler.set_schedule_func(step => {
            if (step >= first)
                func();
            return GTorch.ProfilerAction.NONE;
        });
        profiler.start();
        profiler.step();
        profiler.stop();
    });
}
way('ModuleFunc', 'apply', func => {
    nn.Sequential(nn.Linear(1, 1), nn.Tanh()).apply(() => func());
});
way('Module.forward', 'call', func => add(func).call(GTorch.ones([2])));
way('Module.forward', 'in_a_container', func =>
    nn.Sequential(nn.Identity(), add(func)).forward(GTorch.ones([2])));
way('Module.forward_many', 'with_hooks', func => {
    const net = add(func);
    net.register_forward_hook(() => undefined);
    net.call(GTorch.ones([2]), GTorch.ones([2]));
});

// The layers that take masks, inside of one that C calls.
const throwing = (Class, name) => GObject.registerClass({GTypeName: `Throwing${name}`}, class extends Class {
    forward(x) {
        this.func();
        return name === 'Attention' ? [x, null] : x;
    }
});
const {nn: {Transformer, TransformerEncoderLayer}} = GTorch;
const OUTER = {
    attend: made => x => {
        const layer = TransformerEncoderLayer(4, 2, 3);
        layer.self_attn = made;
        layer.forward(x);
    },
    encode: made => x => Transformer(4, 2, 1, 1, 3, {custom_encoder: made}).forward(x, x),
    decode: made => x => Transformer(4, 2, 1, 1, 3, {custom_decoder: made}).forward(x, x),
};
for (const [name, vfunc] of [['Attention', 'attend'], ['Encoder', 'encode'], ['Decoder', 'decode']]) {
    const Throwing = throwing(GTorch[name], name);
    const outer = OUTER[vfunc];
    way(`${name}.${vfunc}`, 'of_a_class', func => {
        const made = new Throwing();
        const x = GTorch.ones([3, 2, 4]);
        made.func = func;
        outer(made)(x);
    });
}

const Distance = GObject.registerClass(class Distance extends GTorch.Loss {
    vfunc_compute(value, target) {
        this.func();
        return value.sub(target).abs().sum();
    }
});

way('Loss.compute', 'forward', func => {
    const loss = new Distance();
    loss.func = func;
    loss.forward(GTorch.ones([2]), GTorch.zeros([2]));
});

const Step = GObject.registerClass(class Step extends GTorch.Optimizer {
    vfunc_step_param() {
        this.func();
        return true;
    }
});

way('Optimizer.step_param', 'step', func => {
    const x = leaf();
    const optimizer = new Step();
    const params = Gio.ListStore.new(GTorch.Tensor.$gtype);
    optimizer.func = func;
    params.append(x);
    optimizer.add_param_group(GTorch.ParamGroup.new(params, 0.1, 0));
    x.sum().backward();
    optimizer.step();
});

const Schedule = GObject.registerClass(class Schedule extends GTorch.optim.lr_scheduler.LRScheduler {
    vfunc_compute(_group, base) {
        this.func?.();
        return base;
    }
});

for (const member of ['initial_step', 'step']) {
    way('LRScheduler.compute', member, func => {
        const schedule = new Schedule({optimizer: GTorch.optim.SGD([leaf()], {lr: 0.1})});
        schedule.func = func;
        schedule[member]();
    });
}

// --- functions of autograd ---

const Both = GObject.registerClass(class Both extends GTorch.Function {
    forward(_context, x) {
        this.inForward?.();
        return x.mul(2);
    }

    backward(_context, grad) {
        this.inBackward?.();
        return grad.mul(2);
    }
});

function both(members) {
    return Object.assign(new Both(), members);
}

way('Function.forward', 'call', func => both({inForward: func}).call(leaf()));
way('Function.backward', 'backward', func => both({inBackward: func}).call(leaf()).sum().backward());
way('Function.backward', 'gradients', func => {
    const x = leaf();
    GTorch.autograd_grad([both({inBackward: func}).call(x).sum()], [x]);
});
const updated = options => {
    const net = nn.Linear(1, 1);
    const model = GTorch.optim.swa_utils.AveragedModel(net, options);
    model.update_parameters(net);
    model.update_parameters(net);
};
way('AverageFunc', 'update_parameters', func =>
    updated({avg_fn: (_averaged, current) => func() ?? current}));
way('MultiAverageFunc', 'update_parameters', func => updated({multi_avg_fn: () => func()}));
way('BatchFunc', 'update_bn', func =>
    GTorch.optim.swa_utils.update_bn([1].map.call([1], () => func() ?? GTorch.ones([2, 1])),
        nn.BatchNorm1d(1)));
way('TrainerStepFunc', 'run', func => {
    const module = new nn.Linear(2, 1);
    const loader = GTorch.DataLoader.new(GTorch.TensorDataset.new([GTorch.ones([1, 2])]), 1, false);
    const optimizer = new GTorch.optim.SGD(module.parameters());
    const trainer = new GTorch.Trainer({module, loader, optimizer});
    trainer.set_training_step((self, [x]) => func() ?? self.module.forward(x).sum());
    trainer.run();
});
function checkpointed(func, load) {
    const module = new nn.Linear(2, 1);
    const loader = GTorch.DataLoader.new(GTorch.TensorDataset.new([GTorch.ones([1, 2])]), 1, false);
    const optimizer = new GTorch.optim.SGD(module.parameters());
    const trainer = new GTorch.Trainer({module, loader, optimizer});
    const file = Gio.File.new_for_path(`${GLib.get_tmp_dir()}/gtorch-${GLib.uuid_string_random()}`);
    trainer.set_save_function(() => (load ? null : func()) ?? new GLib.Bytes([1]));
    trainer.set_load_function(() => func());
    try {
        trainer.save_checkpoint(file);
        if (load)
            trainer.load_checkpoint(file);
    } finally {
        if (file.query_exists(null))
            file.delete(null);
    }
}

way('TrainerSaveFunc', 'save_checkpoint', func => checkpointed(func, false));
way('TrainerLoadFunc', 'load_checkpoint', func => checkpointed(func, true));
way('OptimizerClosure', 'step', func => GTorch.optim.LBFGS([leaf()]).step(() => func() ?? 1));
way('GradcheckFunc', 'gradcheck', func => GTorch.gradcheck(x => func() ?? x.mul(2), leaf()));
way('GradcheckFunc', 'gradgradcheck', func => GTorch.gradgradcheck(x => func() ?? x.mul(x), leaf()));

way('DistanceFunc', 'triplet_margin_with_distance_loss', func =>
    GTorch.triplet_margin_with_distance_loss(leaf(), leaf(), leaf(),
        {distance_function: (x, y) => func() ?? x.sub(y)}));

for (const name of ['hessian', 'hvp', 'jacobian', 'jvp', 'vhp', 'vjp']) {
    way('FunctionalFunc', name, func =>
        GTorch[`autograd_${name}`](x => func() ?? x.mul(x), GTorch.ones([1])));
}
const bothTimes = isReentrant => func => {
    let n = 0;
    const again = x => ++n > 1 && func() || x.exp();
    GTorch.checkpoint(again, leaf(), {use_reentrant: isReentrant}).sum().backward();
};
way('CommHook', 'backward', func => { // a single process is a group
    const group = GTorch.ProcessGroup.new('mpi', null, -1, -1, 60, null);
    const net = GTorch.DistributedModule.new(nn.Linear(2, 1, {device: 'cpu'}), group, 25, false, false);
    net.register_comm_hook(bucket => func() ?? bucket.get_buffer());
    net.forward(GTorch.ones([1, 2], {device: 'cpu'})).sum().backward();
});
for (const [kind, name] of [['BackwardHook', 'hook'], ['BackwardPreHook', 'pre_hook']]) {
    way(kind, 'backward', func => {
        const net = nn.Identity();
        net[`register_full_backward_${name}`](() => func());
        net.forward(leaf()).sum().backward();
    });
}
const Counted = GObject.registerClass(class Counted extends GTorch.Module {
    get_extra_state() {
        return GTorch.tensor(3);
    }

    set_extra_state() {
        this.func();
    }
});
way('Module.set_extra_state', 'load_state_dict', func => {
    const net = new Counted();
    net.func = func;
    net.load_state_dict(net.state_dict());
});
const Inverted = GObject.registerClass(class Inverted extends GTorch.Module {
    forward(x) {
        return x;
    }

    right_inverse(value) {
        return this.func() ?? value;
    }
});
way('Module.right_inverse', 'register_parametrization', func => {
    const inverted = new Inverted();
    inverted.func = func;
    nn.Linear(1, 2).register_parametrization('bias', inverted, true);
});
way('CheckpointFunc', 'checkpoint', func =>
    GTorch.checkpoint(x => func() ?? x.exp(), leaf(), {use_reentrant: true}));
way('CheckpointFunc', 'backward', bothTimes(true));
way('RecomputeFunc', 'backward', bothTimes(false));
way('PackFunc', 'exp', func =>
    GTorch.saved_tensors_hooks(one => func() ?? one, one => one, () => leaf().exp()));
way('UnpackFunc', 'backward', func =>
    GTorch.saved_tensors_hooks(one => one, one => func() ?? one, () => leaf().exp().sum()).backward());

// --- callbacks of synchronous calls ---

const cpu = GTorch.Device.cpu();

way('StreamFunc', 'run', func => GTorch.Stream.new(cpu, 0).run(() => func()));
way('StreamFunc', 'capture', func => {
    new GTorch.CUDAGraph().capture(GTorch.Stream.new(cpu, 0), null, () => {
        func();
        GTorch.ones([2]).add(1);
    });
});
way('DeviceFunc', 'run', func => cpu.run(() => func()));
way('MemoryPoolFunc', 'run', func => GTorch.MemoryPool.new(cpu).run(() => func()));
way('AutocastFunc', 'run', func => {
    GTorch.autocast_run(GTorch.DeviceType.CPU, GTorch.bfloat16, true, true, () => func());
});
way('GraphedFunc', 'make', func => {
    const graphed = GTorch.GraphedModule.new_for_func(inputs => {
        func();
        return [inputs[0].mul(2)];
    }, [GTorch.ones([2])]);
    GTorch.make_graphed_callables([graphed], null);
});

const Source = GObject.registerClass(class Source extends GTorch.MemorySource {
    vfunc_allocate() {
        this.func();
        return 256;
    }
});

way('MemorySource.allocate', 'allocate', func => {
    const source = new Source();
    source.func = func;
    source.allocate(cpu, 10, 0);
});

// --- data and training ---

// A class whose method of the name calls this.func, and gives what is given here.
let nMade = 0;
function calling(Parent, name, gives, func) {
    const klass = class extends Parent {};
    Object.defineProperty(klass.prototype, name, {
        value(...given) {
            return func() ?? gives.apply(this, given);
        },
        configurable: true, writable: true,
    });
    return GObject.registerClass({GTypeName: `TestCalling${nMade++}`}, klass);
}

const rows = () => GTorch.TensorDataset.new([GTorch.ones([2, 1])]);
const ofC = (owner, name, object, ...given) => GTorch[owner].prototype[name].apply(object, given);
const READ = {
    'Dataset.get_item': [() => 1, object => object.at(0)],
    'Dataset.get_batch': [() => [1], object => ofC('Dataset', 'get_batch', object, [0], null)],
    'Dataset.get_length': [() => 1, object => ofC('Dataset', 'get_length', object)],
    'IterableDataset.iterate': [() => [1], object => [...object]],
    'IterableDataset.get_state': [() => new GLib.Variant('i', 1),
        object => ofC('IterableDataset', 'get_state', object)],
    'IterableDataset.set_state': [() => true,
        object => ofC('IterableDataset', 'set_state', object, new GLib.Variant('i', 1))],
    'SampleSource.next': [() => null, object => ofC('SampleSource', 'next', object, null)],
    'Sampler.get_length': [() => 1, object => ofC('Sampler', 'get_length', object)],
    'Sampler.iterate': [() => [1], object => ofC('Sampler', 'iterate', object, 0)],
    'Sampler.set_state': [() => true,
        object => ofC('Sampler', 'set_state', object, new GLib.Variant('s', ''))],
    'IndexSource.next': [() => null, object => ofC('IndexSource', 'next', object, 1)],
    'Metric.update': [() => true, object => ofC('Metric', 'update', object, leaf(), null)],
    'Metric.compute': [leaf, object => ofC('Metric', 'compute', object)],
    'Metric.reset': [() => true, object => ofC('Metric', 'reset', object)],
    'Log.write': [() => true, object => ofC('Log', 'write', object, 1, [], [])],
    'Log.flush': [() => true, object => ofC('Log', 'flush', object)],
    'Log.close': [() => true, object => ofC('Log', 'close', object)],
};
for (const [kind, [gives, read]] of Object.entries(READ)) {
    const [owner, name] = kind.split('.');
    way(kind, name, func => read(new (calling(GTorch[owner], name, gives, func))()));
}
const Once = GObject.registerClass(class Once extends GTorch.IterableDataset {
    iterate() {
        return [1];
    }
});
for (const [name, gives, dataset] of [['begin', () => true, rows()], ['fetch', () => 1, rows()],
    ['fetch_next', () => null, new Once()]]) {
    way(`Fetcher.${name}`, 'in_a_loader', func => {
        const fetcher = new (calling(GTorch.Fetcher, name, gives, func))({dataset});
        return [...new GTorch.DataLoader({dataset, fetcher})];
    });
}
for (const name of ['training_step', 'validation_step']) {
    way(`Trainer.${name}`, 'run', func => {
        const module = nn.Linear(1, 1);
        const loader = GTorch.DataLoader.new(rows(), 1, false);
        const step = function ([x]) {
            return this.module.forward(x).sum();
        };
        const trainer = new (calling(GTorch.Trainer, name, step, func))({
            module, loader, validation_loader: name === 'training_step' ? null : loader,
            optimizer: GTorch.optim.SGD(module.parameters(), {lr: 0.1}),
        });
        if (name === 'validation_step')
            trainer.set_training_step((self, [x]) => self.module.forward(x).sum());
        trainer.run();
    });
}
way('CollateFunc', 'in_a_loader', func => {
    const loader = GTorch.DataLoader.new(rows(), 2, false);
    loader.set_collate(samples => func() ?? samples);
    return [...loader];
});
way('CollateFunc', 'of_a_fetcher', func => {
    const fetcher = new GTorch.Fetcher({dataset: rows()});
    fetcher.set_collate(samples => func() ?? samples[0]);
    return [...new GTorch.DataLoader({dataset: rows(), fetcher})];
});
way('SampleMapFunc', 'map_tensors', func => GTorch.Sample.of([leaf()]).map_tensors(x => func() ?? x));
way('SampleAllocFunc', 'collate_with', func => GTorch.Sample.collate_with([[1], [2]],
    (dtype, shape) => func() ?? GTorch.empty(shape, {dtype})));

const file = Gio.File.new_for_path(`${GLib.get_tmp_dir()}/gtorch-callbacks-js-${GLib.random_int()}`);
const table = () => ({a: GTorch.ones([5])});

function saved() {
    const out = Gio.MemoryOutputStream.new_resizable();
    GTorch.safetensors_save(table(), null, out, null, null);
    out.close(null);
    return out.steal_as_bytes();
}

way('FileProgressCallback', 'save', func =>
    GTorch.safetensors_save(table(), null, Gio.MemoryOutputStream.new_resizable(), null, func));
way('FileProgressCallback', 'save_with_cancellable', func => {
    const cancellable = new Gio.Cancellable();
    GTorch.safetensors_save(table(), null, Gio.MemoryOutputStream.new_resizable(), cancellable, func);
    tap.assert(!cancellable.is_cancelled());
});
way('FileProgressCallback', 'save_file', func =>
    GTorch.safetensors_save_file(table(), null, file, null, func));
way('FileProgressCallback', 'load', func =>
    GTorch.safetensors_load(Gio.MemoryInputStream.new_from_bytes(saved()), null, null, func));
way('FileProgressCallback', 'load_file', func => {
    GTorch.safetensors_save_file(table(), null, file, null, null);
    try {
        GTorch.safetensors_load_file(file, false, null, null, func);
    } finally {
        file.delete(null);
    }
});

// Callbacks that a main loop runs or that cannot fail: gjs logs the exception.
const LOGGED = ['MemorySource.release', 'Module.extra_repr', 'Module.get_extra_state',
    'IndexSource.get_state', 'SampleSource.close', 'Fetcher.end',
    'WorkerInitFunc', // workers are threads: none of JavaScript's functions is taken
    'PlaceFunc', // the binding has its own
    'ProfilerStackFunc']; // operations are called in any thread: none of JavaScript's functions is taken

// --- the cases ---

for (const [kind, name, call] of ways) {
    tap.add(`${kind}: ${name}`, () => {
        const errors = [new Boom('boom'), new TypeError('of a type'), new GTorch.Error(
            {code: GTorch.Error.SHAPE, message: 'an error of the library'}),
        'a text', 5, {code: 1}, [1], Object.create(null), null, undefined, Symbol('s'), new Error()];
        for (const error of errors) {
            const nothing = {};
            let caught = nothing;
            try {
                call(() => {
                    throw error;
                });
            } catch (thrown) {
                caught = thrown;
            }
            tap.assert(caught !== nothing, 'what was thrown vanished');
            const longer = error instanceof GLib.Error && caught.message.endsWith(`: ${error.message}`)
                && caught.matches(GTorch.Error, GTorch.Error.SHAPE);
            tap.assert(caught === error || longer, `${caught?.message} instead of ${error?.message}`);
            call(() => undefined);
        }
        tap.assert(GTorch.is_grad_enabled());
        tap.assert(GTorch.Stream.get_current(cpu) === cpu.get_default_stream());
    });
}

const isTypeError = part => error => error instanceof TypeError && error.message.includes(part);

tap.add('a_hook_that_gives_something_else_is_a_type_error', () => {
    for (const [kind, , call] of ways) {
        const name = {
            TensorHook: 'register_hook',
            ForwardHook: 'register_forward_hook',
            ForwardPreHook: 'register_forward_pre_hook',
        }[kind];
        if (name)
            tap.throws(() => call(() => 'text'), isTypeError(`${name}: the hook gave String`));
    }
    tap.throws(() => GTorch.gradcheck(() => 3, leaf()), isTypeError('not a tensor'));
});

tap.add('hooks_that_give_nothing_change_nothing', () => {
    for (const nothing of [undefined, null]) {
        const x = leaf();
        x.register_hook(() => nothing);
        x.mul(2).sum().backward();
        tap.equal(x.grad.toArray(), [2, 2, 2]);
    }
    const x = leaf();
    x.register_hook(grad => grad.mul(5));
    x.mul(2).sum().backward();
    tap.equal(x.grad.toArray(), [10, 10, 10]);
});

tap.add('hooks_see_and_replace_all_inputs', () => {
    const seen = [];
    const net = add();
    net.register_forward_pre_hook((_module, inputs) => inputs.map(x => x.mul(2)));
    net.register_forward_hook((_module, inputs, y) => {
        seen.push([inputs.length, y.toArray()]);
    });
    const one = GTorch.ones([2]);
    tap.equal(net.call(one, one, one).toArray(), [6, 6]);
    tap.equal(net.call(one).toArray(), [2, 2]);
    tap.equal(seen, [[3, [6, 6]], [1, [2, 2]]]);
    tap.throws(() => net.call(one, 3), isTypeError('not a tensor'));
});

tap.add('runners_return_the_results_of_their_functions', () => {
    tap.equal(GTorch.Stream.new(cpu, 0).run(() => 4), 4);
    tap.assert(cpu.run(device => device) === cpu);
    tap.throws(() => cpu.run(3), isTypeError('a function is wanted'));
    tap.equal(cpu.run(() => cpu.run(() => 5)), 5);
    const net = nn.Sequential(nn.Linear(1, 1), nn.Tanh());
    let n = 0;
    net.apply(() => net.apply(() => n++));
    tap.equal(n, 9);
});

function findGir() {
    const folders = [...(GLib.getenv('GI_TYPELIB_PATH') ?? '').split(':'),
        ...GLib.get_system_data_dirs().map(folder => `${folder}/gir-1.0`)];
    return folders.filter(folder => folder).map(folder => `${folder}/GTorch-1.gir`)
        .find(path => GLib.file_test(path, GLib.FileTest.EXISTS)) ?? null;
}

tap.add('every_kind_of_callback_is_known', () => {
    const path = findGir();
    if (path === null)
        tap.skip('there is no GIR');
    const text = new TextDecoder().decode(GLib.file_get_contents(path)[1]);
    const found = new Set();
    for (const [whole, name] of text.matchAll(/^ {4}<callback name="(\w+)"[^>]*>/gm)) {
        if (!whole.includes('introspectable="0"'))
            found.add(name);
    }
    for (const [, name, body] of text.matchAll(/<class name="(\w+)"(.*?)<\/class>/gs)) {
        for (const [, vfunc] of body.matchAll(/<virtual-method name="(\w+)"/g))
            found.add(`${name}.${vfunc}`);
    }
    tap.assert(found.size > 10);
    const known = new Set([...ways.map(([kind]) => kind), ...LOGGED]);
    known.delete('FileProgressCallback'); // GIO's
    tap.equal([...found].filter(name => !known.has(name)), []);
    tap.equal([...known].filter(name => !found.has(name)), []);
});

// An asynchronous function without a callback returns a promise; a wrong number of arguments would
// leave it pending for ever.
tap.add('functions_with_promises_count_their_arguments', () => {
    const path = findGir();
    if (path === null)
        tap.skip('there is no GIR');
    const text = new TextDecoder().decode(GLib.file_get_contents(path)[1]);
    const wanted = error => error instanceof TypeError &&
        /before the callback|arguments were given, it takes|is missing/.test(error.message);
    let n = 0;
    const check = (owner, name, body) => {
        // Only the cancellable and the arguments before it are of interest.
        const hidden = ['callback', 'user_data', 'n_tensors'];
        const names = [...body.matchAll(/<parameter name="(\w+)"/g)].map(([, one]) => one)
            .filter(one => !hidden.includes(one) && !one.startsWith('progress_'));
        for (const length of [1, 2, 3, 4, 5, 6].map(one => names.length + one)) {
            tap.throws(() => owner[name].apply(owner, Array(length).fill(null)), wanted);
            n++;
        }
        const needed = names.filter(one => [
            'backend', 'device', 'file', 'host', 'input', 'key', 'keys', 'optimizer', 'src', 'texts',
        ].includes(one));
        if (needed.length > 0)
            tap.throws(() => owner[name](), wanted);
        for (const more of [1, 2]) {
            const given = Array(names.length + more).fill(null);
            tap.throws(() => owner[name].call(owner, ...given, () => {}), wanted);
        }
    };
    for (const [, className, body] of text.matchAll(/<class name="(\w+)"(.*?)<\/class>/gs)) {
        for (const [, name, inner] of body.matchAll(/<method name="(\w+_async)"(.*?)<\/method>/gs))
            check(GTorch[className].prototype, name, inner);
        for (const [, name, inner] of body.matchAll(/<function name="(\w+_async)"(.*?)<\/function>/gs))
            check(GTorch[className], name, inner);
    }
    const functions = /^ {4}<function name="(\w+_async)"(.*?)<\/function>/gms;
    for (const [whole, name, inner] of text.matchAll(functions)) {
        // The overrides wrap functions that take tables, with lists in place of the tables.
        if (!whole.includes('introspectable="0"') && !/safetensors_save(_file)?_async/.test(name))
            check(GTorch, name, inner);
    }
    tap.assert(n >= 6 * 15, `${n} calls`);
    const tensors = {x: GTorch.zeros([1])};
    for (const name of ['safetensors_save_async', 'safetensors_save_file_async']) {
        for (const given of [[], Array(5).fill(null)])
            tap.throws(() => GTorch[name](tensors, null, ...given), wanted);
    }
});

tap.add('functions_that_exchange_gradients_give_tensors', () => {
    const group = GTorch.ProcessGroup.new('mpi', null, -1, -1, 60, null);
    for (const [value, text] of [[5, 'number 5'], [undefined, 'undefined'], [null, 'null']]) {
        const net = GTorch.DistributedModule.new(nn.Linear(1, 1, {device: 'cpu'}), group, 25, false, false);
        net.register_comm_hook(() => value);
        const sum = net.forward(GTorch.ones([1, 1], {device: 'cpu'})).sum();
        tap.throws(() => sum.backward(), error =>
            error.message.includes(`register_comm_hook: the hook gave ${text}, not a tensor`) &&
            !error.message.includes('or nothing'));
    }
});

tap.run();
