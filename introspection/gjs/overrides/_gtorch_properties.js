// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Properties that take what they can hold, and nothing else. gjs makes NaN of a text for a number, 0 of a
// text for an enumeration, true of any object for a flag, and only warns where a property cannot be set.

/* exported checked construction setup */

const {GObject} = imports.gi;
const convert = imports.overrides._gtorch_convert;
const {LAYERS} = imports.overrides._gtorch_layer_table;
const {OPTIMIZERS, SCHEDULES} = imports.overrides._gtorch_steps;

let GTorch;

// What a property of the type takes, from what a program gives. An argument that is optional may be null, for
// which the property has a number.
function checked(what, spec, value, arg = {}) {
    const type = spec.value_type;
    const name = GObject.type_name(type);

    if (arg.optional && arg.kind !== 'tensor') {
        if (value === null)
            return arg.kind === 'int' ? GTorch.NONE : NaN;
        if (Number.isNaN(value))
            throw new TypeError(`${what} must be a number or null, not NaN`);
    }
    if (name === 'GTorchSize')
        return value instanceof GTorch.Size ? value : GTorch.Size.new(sizes(what, value));
    if (name === 'GTorchDType')
        return convert.dtype(what, value);
    if (GObject.type_is_a(type, GObject.TYPE_ENUM))
        return convert.enumeration(what, 'the value', name.replace('GTorch', ''), value);
    if (name === 'gboolean') {
        if (typeof value !== 'boolean')
            throw new TypeError(`${what} must be true or false, not ${convert.describe(value)}`);
    } else if (name === 'gdouble') {
        return convert.number(what, 'the value', value);
    } else if (['gint', 'guint', 'gint64', 'guint64'].includes(name)) {
        return convert.integer(what, 'the value', value);
    } else if (GObject.type_is_a(type, GObject.TYPE_OBJECT) && value !== null) {
        if (!(value instanceof GObject.Object) || !GObject.type_is_a(value.constructor.$gtype, type))
            throw new TypeError(`${what} must be a ${name} or null, not ${convert.describe(value)}`);
    }
    return value;
}

// The properties of an object of the class, checked.
function construction(name, values) {
    const specs = new Map(GTorch[name].list_properties().map(spec => [spec.name.replace(/-/g, '_'), spec]));
    const entries = Object.entries(values).map(([key, value]) =>
        [key, checked(`${name}: ${key}`, specs.get(key), value)]);
    return Object.fromEntries(entries);
}

function sizes(what, value) {
    if (value === null || value === undefined)
        throw new TypeError(`${what} must be an integer or an array of integers, not ${value}`);
    return convert.integers(what, 'the value', value);
}

// What a program sees of a value. A size of all dimensions that was given as one number stays one.
function shown(value, arg) {
    if (value instanceof GTorch.Size) {
        const values = value.get_values();
        return values.length === 1 && arg?.length > 1 ? values[0] : values;
    }
    if (arg?.optional && (value === GTorch.NONE || Number.isNaN(value)))
        return null;
    return value;
}

function replace(prototype, className, spec, key) {
    const raw = Object.getOwnPropertyDescriptor(prototype, key);
    if (!raw?.get || !raw.configurable)
        return;
    const what = `${className}.${key}`;
    const arg = LAYERS[className]?.args.find(one => one.property === spec.name.replace(/-/g, '_'));
    const {CONSTRUCT_ONLY, WRITABLE} = GObject.ParamFlags;

    Object.defineProperty(prototype, key, {
        configurable: true,
        enumerable: raw.enumerable,
        get() {
            return shown(raw.get.call(this), arg);
        },
        set(value) {
            if (spec.flags & CONSTRUCT_ONLY)
                throw new TypeError(`${what} is fixed when the object is made`);
            if (!(spec.flags & WRITABLE))
                throw new TypeError(`${what} can only be read`);
            raw.set.call(this, checked(what, spec, value, arg));
        },
    });
}

function protectPrototype(prototype, className, specs) {
    for (const spec of specs) {
        const key = spec.name.replace(/-/g, '_');
        const camel = spec.name.replace(/-(.)/g, (_all, letter) => letter.toUpperCase());
        for (const name of new Set([key, spec.name, camel]))
            replace(prototype, className, spec, name);
    }
}

// Checks what is assigned to the properties that a class adds to its base.
function protect(name) {
    const specs = GTorch[name].list_properties();
    const own = specs.filter(spec => GObject.type_name(spec.owner_type) === `GTorch${name}`);

    protectPrototype(GTorch[name].prototype, name, own);
}

const seen = new Set();

// Devices and streams are of classes that are not in the typelib, which gjs gives properties of their own.
function protectPrivate(object, name) {
    const prototype = Object.getPrototypeOf(object);

    if (prototype !== GTorch[name].prototype && !seen.has(prototype)) {
        seen.add(prototype);
        protectPrototype(prototype, name, GTorch[name].list_properties());
    }
    return object;
}

function watch(name, functions) {
    for (const key of functions) {
        const raw = GTorch[name][key];
        GTorch[name][key] = (...given) => protectPrivate(raw.apply(GTorch[name], given), name);
    }
}

const CLASSES = [
    'Allocator', 'CUDAGraph', 'Device', 'DeviceMonitor', 'Event', 'FFTPlanCache', 'Function', 'Generator',
    'GradScaler', 'GraphedModule', 'HostAllocator', 'Loss', 'MemoryPool', 'Module', 'Optimizer', 'ParamGroup',
    'Stream', 'Timer', 'LRScheduler', ...OPTIMIZERS.map(row => row.name), ...SCHEDULES.map(row => row.name),
    ...Object.keys(LAYERS),
];

function setup(namespace) {
    GTorch = namespace;
    CLASSES.forEach(protect);
    watch('Device', ['cpu', 'cuda', 'get_current', 'new_from_string']);
    watch('Stream', ['get_current', 'new']);
}
