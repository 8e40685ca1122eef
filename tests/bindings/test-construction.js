// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Constructs every class with all arguments that a program may pass: the result is a working object
// or an exception, but never a crash. A child process makes the calls.

import Gio from 'gi://Gio';
import GLib from 'gi://GLib';
import GObject from 'gi://GObject';
import GTorch from 'gi://GTorch?version=1';
import System from 'system';

import * as tap from './tap.js';
import * as typelib from './typelib.js';

const CHILD = 'GTORCH_TEST_CONSTRUCTION';

function nonsense() {
    return [
        [], [{}], [null], [undefined], ['cpu'], ['x'], [1], [-1], [NaN], [true], [2n], [[]], [[1]], [{}, {}],
        [{no_such: 1}], [() => 1], [Symbol('x')], [GTorch.ones([1])], [GTorch.Device.cpu()], [new Map()],
    ];
}

// Uses an object as a program does: gjs checks its class in each method call.
function use(object) {
    if (!(object instanceof GObject.Object))
        return;
    for (const spec of object.constructor.list_properties())
        object[spec.name.replace(/-/g, '_')];
    object.freeze_notify();
    object.thaw_notify();
    object.disconnect(object.connect('notify', () => {}));
    object.toString();
}

function attempt(what, func) {
    print(`# ${what}`);
    try {
        use(func());
    } catch (error) {
        if (!(error instanceof Error) && !(error instanceof GLib.Error))
            throw error;
    }
}

function child() {
    for (const name of typelib.constructible()) {
        nonsense().forEach((given, i) => attempt(`new ${name}, ${i}`, () => new GTorch[name](...given)));
        if (GTorch[name].prototype instanceof GObject.Object) {
            attempt(`GObject.Object.new, ${name}`, () => GObject.Object.new(GTorch[name].$gtype, {}));
            attempt(`a class derived from ${name}`, () => {
                const Derived = GObject.registerClass(
                    {GTypeName: `Test${name}`}, class extends GTorch[name] {});
                return new Derived();
            });
        }
        System.gc();
    }
    GTorch.ones([2]).add(1).toArray();
    print('done');
}

if (GLib.getenv(CHILD)) {
    child();
    System.exit(0);
}

tap.add('new_of_any_class_never_crashes', () => {
    const launcher = new Gio.SubprocessLauncher({
        flags: Gio.SubprocessFlags.STDOUT_PIPE | Gio.SubprocessFlags.STDERR_PIPE,
    });
    launcher.setenv(CHILD, '1', true);
    const [path] = GLib.filename_from_uri(import.meta.url);
    const process = launcher.spawnv(['gjs', '-m', path]);
    const [, output, errors] = process.communicate_utf8(null, null);
    const lines = output.trim().split('\n');
    const isDone = process.get_if_exited() && lines.at(-1) === 'done';
    tap.assert(isDone, `after ${lines.at(-1)}: ${errors.slice(-500)}`);
    tap.assert(lines.length > 1300, `${lines.length} objects`);
});

tap.add('devices_are_made_of_names', () => {
    const cpu = GTorch.Device.cpu();
    tap.assert(new GTorch.Device('cpu') === cpu);
    tap.assert(new GTorch.Device() === cpu);
    tap.equal(GTorch.ones([1], {device: new GTorch.Device('cpu')}).item(), 1);
    tap.throws(() => new GTorch.Device('cup'), error => error.message.includes('“cup”'));
    for (const given of [[{}], [null], [undefined], [{type: 0}], ['cpu', 0]])
        tap.throws(() => new GTorch.Device(...given), error => error.message.includes('one name or number'));
});

function streamed() {
    const Streamed = GObject.registerClass(class Streamed extends GTorch.IterableDataset {});
    return new Streamed();
}

// A class whose function new() takes what is no property that can be written needs new to call that function.
const ROWS = GTorch.TensorDataset.new([GTorch.ones([2])]);
const FOLDER = Gio.File.new_for_path(GLib.Dir.make_tmp('gtorch-construction-XXXXXX'));
const PICTURE = FOLDER.get_child('class').get_child('empty.ppm');
PICTURE.get_parent().make_directory(null);
PICTURE.create(Gio.FileCreateFlags.NONE, null).close(null);
const BY_FUNCTION = {
    CSVReader: {stream: Gio.MemoryInputStream.new()},
    ChainDataset: {datasets: [new GTorch.ChainDataset({datasets: [streamed()]})]},
    ConcatDataset: {datasets: [ROWS]},
    DataParallel: {module: GTorch.nn.Identity(), dim: 1},
    FileStore: {path: FOLDER.get_child('store').get_path()},
    GraphedModule: {module: GTorch.nn.Identity(), samples: [GTorch.ones([1])]},
    ImageFolder: {root: FOLDER},
    IndexSource: {indices: [1, 2]},
    PackedSequence: {data: GTorch.ones([3, 2]), batch_sizes: GTorch.tensor([2, 1], {dtype: GTorch.int64})},
    ParamGroup: {params: GTorch.nn.Linear(1, 1).get_parameters(true), learning_rate: 0.5, weight_decay: 0.25},
    Parameter: {data: GTorch.ones([2]), requires_grad: false},
    SharedMemory: {n_bytes: 8},
    SpectralNorm: {weight: GTorch.ones([2, 3]), n_power_iterations: 2, dim: 0, eps: 1e-9},
    StackDataset: {datasets: [ROWS]},
    Stream: {device: 'cpu', priority: 0},
    TcpStore: {host: '127.0.0.1', port: 0, world_size: 1, is_server: true, timeout: 5},
    TensorDataset: {tensors: [GTorch.ones([2])]},
    TensorHandle: {tensor: GTorch.ones([2])},
    TransformerDecoder: {
        decoder_layer: GTorch.nn.TransformerDecoderLayer(4, 2, 3), num_layers: 1, norm: null,
    },
    TransformerEncoder: {
        encoder_layer: GTorch.nn.TransformerEncoderLayer(4, 2, 3), num_layers: 1, norm: null,
    },
    WeightedRandomSampler: {weights: [1, 2], num_samples: 1},
};
// Their parameters come in groups, which the functions of GTorch.optim make.
const OPTIMIZERS = ['ASGD', 'Adadelta', 'Adafactor', 'Adagrad', 'Adam', 'AdamW', 'Adamax', 'LBFGS', 'Muon',
    'NAdam', 'RAdam', 'RMSprop', 'Rprop', 'SGD'];
// Their rates and functions belong to groups, so the functions of GTorch.optim.lr_scheduler make them.
// The function AveragedModel copies a model.
// The property of a trainer's argument loss is loss_module.
const NAMED = ['Trainer'];
// These need memory that another library describes, or the other processes of a job.
const ELSEWHERE = {
    ArrowReader: {stream: 0}, DistributedModule: {module: GTorch.nn.Identity(), group: null},
    DeviceMesh: {world: null, shape: [1], dim_names: null},
    ModuleShards: {module: GTorch.nn.Identity(), group: null},
    ProcessGroup: {backend: 'no such'},
    ShardedOptimizer: {optimizer: GTorch.optim.SGD([GTorch.nn.Parameter(GTorch.ones([1]))]), group: null},
};
const OF_GROUPS = ['DeviceMesh', 'DistributedModule', 'ModuleShards', 'ShardedOptimizer'];
const SCHEDULES = ['AveragedModel', 'CyclicLR', 'LambdaLR', 'MultiplicativeLR', 'OneCycleLR', 'SWALR'];

tap.add('a_part_of_a_store_needs_the_store', () => {
    const store = new GTorch.HashStore();
    tap.equal(new GTorch.PrefixStore('p', store).store, store);
    tap.equal(new GTorch.PrefixStore({prefix: 'p', store, timeout: 3}).timeout, 3);
    tap.throws(() => new GTorch.PrefixStore('p', null), error => /store may not be null/.test(error.message));
    tap.throws(() => new GTorch.PrefixStore('p'), isRefused('store is missing'));
    tap.throws(() => new GTorch.PrefixStore(), isRefused('prefix is missing'));
});

tap.add('objects_are_made_of_what_the_functions_new_take', () => {
    const {WRITABLE} = GObject.ParamFlags;
    const found = typelib.callables().filter(({owner, name, args}) => {
        const specs = GTorch[owner]?.list_properties?.() ?? null;
        const isSet = arg => specs.some(spec =>
            spec.name.replace(/-/g, '_') === arg.name && spec.flags & WRITABLE);
        return name === 'new' && specs !== null && !args.every(isSet);
    }).map(({owner}) => owner).filter(owner => ![...OPTIMIZERS, ...SCHEDULES, ...NAMED].includes(owner));
    tap.equal(found.sort(), Object.keys({...BY_FUNCTION, ...ELSEWHERE}).sort());
    for (const [name, given] of Object.entries(ELSEWHERE)) {
        const [key] = Object.keys(given);
        tap.throws(() => new GTorch[name](given), error =>
            !isRefused('')(error) || OF_GROUPS.includes(name));
        tap.throws(() => new GTorch[name]({...given, no_such: 1}), isRefused('no property no_such'));
        tap.throws(() => new GTorch[name]({...given, [key]: undefined}), isRefused(`${key} is undefined`));
        tap.throws(() => new GTorch[name](), isRefused(`${key} is missing`));
    }
    for (const [name, given] of Object.entries(BY_FUNCTION)) {
        const made = new GTorch[name](given);
        tap.assert(made instanceof GTorch[name] && made.constructor.$gtype !== null);
        tap.throws(() => new GTorch[name]({...given, no_such: 1}), isRefused('no property no_such'));
        const [key] = Object.keys(given);
        tap.throws(() => new GTorch[name]({...given, [key]: undefined}), isRefused(`${key} is undefined`));
        if (!['FileStore', 'TcpStore'].includes(name)) // whose first argument is a text
            tap.throws(() => new GTorch[name]({...given, [key]: 'text'}), () => true);
        if (name !== 'Stream')
            tap.throws(() => new GTorch[name](), isRefused(`${key} is missing`));
    }
    tap.equal(new GTorch.ParamGroup(BY_FUNCTION.ParamGroup).weight_decay, 0.25);
    tap.assert(new GTorch.Parameter({data: GTorch.ones([1]), name: 'w'}).requires_grad);
    const stream = new GTorch.Stream({device: GTorch.Device.cpu(), auto_sync: true});
    tap.assert(stream.auto_sync && stream.priority === 0);
    tap.equal(stream.run(() => GTorch.ones([1]).item()), 1);
    tap.throws(() => new GTorch.Stream({device: 'cup'}), error => error.message.includes('cup'));
    tap.throws(() => new GTorch.Stream({priority: 'x'}), isRefused('priority'));
    GTorch.tensor([1]).release();
    for (const file of [PICTURE, PICTURE.get_parent(), FOLDER.get_child('store'), FOLDER]) {
        if (file.query_exists(null))
            file.delete(null);
    }
});

// --- properties ---

const WRONG = {
    gboolean: [null, undefined, '', 'yes', 1, {}, []],
    gdouble: [undefined, '', '1', {}, [], true],
    gint: [undefined, '', '1', 1.5, NaN, {}, true, 2 ** 31],
    guint: [undefined, '', '1', 1.5, NaN, {}, true, -1],
    gint64: [undefined, '', '1', 1.5, NaN, {}, true, 2 ** 63],
    guint64: [undefined, '', '1', 1.5, NaN, {}, true, -1],
    gchararray: [undefined, 1, {}, true],
    GTorchSize: [undefined, '', '1', 1.5, {}, true, [null], ['1'], [1.5]],
};

function wrongFor(type) {
    const name = GObject.type_name(type);
    if (GObject.type_is_a(type, GObject.TYPE_ENUM))
        return ['', 'no member', 1000, {}, ...name === 'GTorchDType' ? [] : [null, undefined]];
    if (GObject.type_is_a(type, GObject.TYPE_FLAGS))
        return WRONG.guint;
    if (name === 'GTorchDevice') // a name, or a number of one
        return [undefined, {}];
    if (GObject.type_is_a(type, GObject.TYPE_OBJECT))
        return name === 'GFile' ? [undefined, 1, {}] : [undefined, 1, 'text', {}];
    return WRONG[name] ?? [];
}

function isRefused(key) {
    return error =>
        (error instanceof TypeError || error instanceof RangeError) && error.message.includes(key);
}

tap.add('properties_of_all_classes_refuse_values_that_gjs_would_convert', () => {
    const {CONSTRUCT_ONLY, WRITABLE} = GObject.ParamFlags;
    const made = {...BY_FUNCTION, ...ELSEWHERE, PrefixStore: {prefix: 'p', store: new GTorch.HashStore()}};
    const untested = new Set();
    let [nSet, nMade] = [0, 0];

    for (const name of typelib.classes()) {
        for (const spec of GTorch[name].list_properties()) {
            const key = spec.name.replace(/-/g, '_');
            const values = wrongFor(spec.value_type);
            if (values.length === 0)
                untested.add(GObject.type_name(spec.value_type));
            let owner = GTorch[name].prototype;
            while (owner !== null && !Object.hasOwn(owner, key))
                owner = Object.getPrototypeOf(owner);
            const set = owner === null ? undefined : Object.getOwnPropertyDescriptor(owner, key).set;
            for (const value of values) {
                // a name, or a number of one
                const isName = ['DeviceMonitor', 'Generator', 'MemoryPool', 'Stream'].includes(name) &&
                    key === 'device';
                if (name !== 'Device' && !isName) {
                    tap.throws(() => new GTorch[name]({...made[name], [key]: value}), isRefused(key));
                    nMade++;
                }
                if (set !== undefined && name !== 'Tensor' && name !== 'Parameter') {
                    // before gjs checks which class the property belongs to
                    const isSettable = spec.flags & WRITABLE && !(spec.flags & CONSTRUCT_ONLY);
                    tap.throws(() => set.call(null, value), isSettable
                        ? isRefused(key) : error => /can only be read|is fixed/.test(error.message));
                    nSet++;
                }
            }
        }
    }
    print(`# ${nMade} in new, ${nSet} in assignments; not looked at: ${[...untested].join(', ')}`);
    tap.assert(nMade > 1000 && nSet > 1000);
});

tap.add('texts_in_camel_case_are_properties_too', () => {
    tap.equal(new GTorch.Linear({inFeatures: 2, 'out-features': 3, has_bias: false}).out_features, 3);
    tap.throws(() => new GTorch.Linear({inFeatures: '2'}), isRefused('inFeatures'));
    tap.equal(new GTorch.BatchNorm1d({num_features: 2, momentum: null}).momentum, null);
});

tap.add('properties_of_custom_classes_are_not_checked', () => {
    const Named = GObject.registerClass({
        Properties: {
            title: GObject.ParamSpec.string('title', '', '', GObject.ParamFlags.READWRITE, ''),
            count: GObject.ParamSpec.int('count', '', '', GObject.ParamFlags.READWRITE, 0, 9, 0),
        },
    }, class Named extends GTorch.Dropout {});
    const made = new Named({title: 'a', count: 3, p: 0.25});
    tap.equal([made.title, made.count, made.p], ['a', 3, 0.25]);
    made.set({title: 'b', p: 0.5});
    tap.equal([made.title, made.p], ['b', 0.5]);
    tap.throws(() => new Named({title: 'a', p: '1'}), isRefused('p'));
});

// Devices and streams are instances of classes that are not in the typelib.
tap.add('settings_of_devices_are_checked_however_they_were_reached', () => {
    const [device, stream] = [GTorch.ones([1]).get_device(), GTorch.Stream.new(null, 0)];
    const reached = [
        device, GTorch.get_default_device(), stream.get_device(), stream.device, GTorch.ones([1]).device,
        GTorch.nn.Linear(1, 1).device, GTorch.DeviceManager.get_default().get_item(0), GTorch.Device.cpu(),
    ].filter(one => one instanceof GTorch.Device);
    for (const one of reached) {
        tap.throws(() => {
            one.matmul_precision = 'no member';
        }, isRefused('matmul_precision'));
    }
    tap.assert(reached.length > 4);
});

tap.add('what_makes_an_object_stands_for_its_class', () => {
    const weight = GTorch.nn.Parameter(GTorch.ones([1]));
    const {nn, optim} = GTorch;
    const optimizer = optim.SGD([weight], {lr: 1});
    for (const [made, Class] of [[nn.Linear(1, 1), nn.Linear], [nn.Sequential(), nn.Sequential],
        [weight, nn.Parameter], [optimizer, optim.SGD], [nn.Linear(1, 1), nn.Module],
        [optim.lr_scheduler.StepLR(optimizer, 1), optim.lr_scheduler.StepLR]]) {
        tap.assert(made instanceof Class, Class.name);
        tap.assert(!(new GTorch.Event() instanceof Class), Class.name);
    }
    tap.assert(!(nn.ReLU() instanceof nn.Linear));
    const Twice = GObject.registerClass({GTypeName: 'TestTwice'}, class Twice extends nn.Linear {
        constructor(size) {
            super(size, size, {bias: false});
            this.size = size;
        }

        forward(x) {
            return super.forward(x).mul(2);
        }
    });
    const twice = new Twice(2);
    twice.weight = nn.Parameter(GTorch.eye(2));
    tap.equal([twice.size, twice.bias, twice.forward(GTorch.ones([1, 2])).toArray()], [2, null, [[2, 2]]]);
    tap.assert(twice instanceof Twice && twice instanceof nn.Linear && twice instanceof GTorch.Linear);
    const Row = GObject.registerClass({GTypeName: 'TestRow'}, class Row extends nn.Sequential {
        constructor() {
            super(nn.ReLU(), nn.Tanh());
        }
    });
    tap.equal(new Row().children().length, 2);
    const Own = GObject.registerClass({GTypeName: 'TestOwnSGD'}, class Own extends optim.SGD {});
    const own = new Own([weight], {lr: 0.5});
    weight.sum().backward();
    own.step();
    tap.equal([weight.item(), own instanceof Own], [0.5, true]);
    const Half = GObject.registerClass({GTypeName: 'TestHalf'}, class Half extends optim.lr_scheduler.StepLR {
        get_lr() {
            return super.get_lr().map(rate => rate / 2);
        }
    });
    tap.assert(new Half(own, 1) instanceof Half);
    tap.equal(own.lr, 0.25);
    tap.throws(() => {
        const Derived = GObject.registerClass({GTypeName: 'TestDerived'}, class extends nn.Parameter {});
        return new Derived(GTorch.ones([1]));
    }, error => error instanceof TypeError);
});

await tap.run();
