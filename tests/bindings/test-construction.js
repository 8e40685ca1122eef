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
    for (const given of [[{}], [null], [{type: 0}], ['cpu', 0]])
        tap.throws(() => new GTorch.Device(...given), error => error.message.includes('one name or number'));
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
    if (GObject.type_is_a(type, GObject.TYPE_OBJECT))
        return [undefined, 1, 'text', {}];
    return WRONG[name] ?? [];
}

function isRefused(key) {
    return error =>
        (error instanceof TypeError || error instanceof RangeError) && error.message.includes(key);
}

tap.add('properties_of_all_classes_refuse_values_that_gjs_would_convert', () => {
    const {CONSTRUCT_ONLY, WRITABLE} = GObject.ParamFlags;
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
                if (name !== 'Device') {
                    tap.throws(() => new GTorch[name]({[key]: value}), isRefused(key));
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

await tap.run();
