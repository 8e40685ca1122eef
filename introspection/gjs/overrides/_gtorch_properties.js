// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Properties accept valid values only. gjs converts a string to NaN for a number and to 0 for an
// enumeration, any object to true for a flag, and only warns where a property is read-only.

/* exported checked construction install protectPrivate set setup */

const {Gio, GLib, GObject} = imports.gi;
const convert = imports.overrides._gtorch_convert;
const {classes, owners} = imports.overrides._gtorch_calls_table;
const {isProgramsOwn} = imports.overrides._gtorch_derived;
const {LAYERS} = imports.overrides._gtorch_layer_table;
const members = imports.overrides._gtorch_members;

let GTorch;

// The namespaces of the library and of those beside it: what their types begin with, classes and functions.
const spaces = [];

// Returns the name of a type of one of these, as convert.lookUp() takes it.
function ownName(typeName) {
    const {prefix} = [...spaces].reverse().find(space => typeName.startsWith(space.prefix));
    const name = typeName.slice(prefix.length);
    return prefix === 'GTorch' ? name : `${prefix}.${name}`;
}

function isOwnClass(typeName) {
    return spaces.some(({prefix, classes: own}) =>
        typeName.startsWith(prefix) && own.includes(typeName.slice(prefix.length)));
}

const WHOLE = {
    guchar: 'uint8', gint: 'int32', guint: 'uint32', gint64: 'int64', guint64: 'uint64',
};

// How to have a number as GObject has it, and the least and the greatest one that are told apart from all.
const {MIN_SAFE_INTEGER, MAX_SAFE_INTEGER, MAX_VALUE} = Number;
const NUMBERS = {
    gdouble: [GObject.TYPE_DOUBLE, 'double', -MAX_VALUE, MAX_VALUE],
    gint: [GObject.TYPE_INT, 'int', -(2 ** 31), 2 ** 31 - 1],
    guint: [GObject.TYPE_UINT, 'uint', 0, 2 ** 32 - 1],
    gint64: [GObject.TYPE_INT64, 'int64', MIN_SAFE_INTEGER, MAX_SAFE_INTEGER],
    guint64: [GObject.TYPE_UINT64, 'uint64', 0, MAX_SAFE_INTEGER],
};

// Refuses a number that is out of the property's range, of which GObject would only warn. gjs does not show
// the ends of the range, and GObject puts the nearest one in the place of a number.
function checkRange(what, spec, name, value) {
    if (!Object.hasOwn(NUMBERS, name) || spec.flags & GObject.ParamFlags.LAX_VALIDATION)
        return;
    const [type, suffix, least, greatest] = NUMBERS[name];
    const place = new GObject.Value();
    const nearest = number => {
        place[`set_${suffix}`](number);
        GObject.param_value_validate(spec, place);
        return place[`get_${suffix}`]();
    };

    place.init(type);
    if (nearest(value) === value)
        return;
    const [low, high] = [nearest(least), nearest(greatest)];
    let rule = `from ${low} to ${high}`;
    if (low === least || high === greatest)
        rule = low === least ? `at most ${high}` : `at least ${low}`;
    throw new RangeError(`${what} must be ${rule}, not ${value}`);
}

// Converts a value that a program assigns to a property of the type. An optional argument may be null,
// for which the property has a number.
function checked(what, spec, value, arg = {}) {
    const type = spec.value_type;
    const name = GObject.type_name(type);

    if (arg.optional && arg.kind !== 'tensor' && value === null)
        return arg.kind === 'int' ? GTorch.NONE : GTorch.NONE_DOUBLE;
    if (name === 'GTorchSize')
        return value instanceof GTorch.Size ? value : GTorch.Size.new(sizes(what, value));
    if (name === 'GTorchFactors') {
        if (value === null || value instanceof GTorch.Factors)
            return value;
        return GTorch.Factors.new(convert.list(value).map(one => convert.number(what, 'the value', one)));
    }
    if (name === 'GTorchDType')
        return convert.enumeration(what, 'the value', 'DType', value ?? GTorch.DType.NONE);
    if (GObject.type_is_a(type, GObject.TYPE_ENUM))
        return convert.enumeration(what, 'the value', ownName(name), value);
    if (GObject.type_is_a(type, GObject.TYPE_FLAGS))
        return convert.bounded(what, 'the value', 'uint32', value);
    if (name === 'gchararray' && value !== null && typeof value !== 'string')
        throw new TypeError(`${what} must be a text or null, not ${convert.describe(value)}`);
    if (name === 'gchararray' && value !== null && value.includes('\0'))
        throw new TypeError(`${what} ${convert.nulIn(value)}`);
    if (name === 'gboolean') {
        if (typeof value !== 'boolean')
            throw new TypeError(`${what} must be true or false, not ${convert.describe(value)}`);
    } else if (name === 'gdouble' || Object.hasOwn(WHOLE, name)) {
        const number = name === 'gdouble' ? convert.number(what, 'the value', value)
            : convert.bounded(what, 'the value', WHOLE[name], value);

        checkRange(what, spec, name, number);
        return number;
    } else if (name === 'GTorchDevice' && value !== null && value !== undefined) {
        return convert.device(what, value);
    } else if (name === 'GFile' && typeof value === 'string' && !value.includes('\0')) {
        return Gio.File.new_for_path(value);
    } else if (GObject.type_is_a(type, GObject.TYPE_OBJECT) && value !== null) {
        if (!(value instanceof GObject.Object) || !GObject.type_is_a(value.constructor.$gtype, type))
            throw new TypeError(`${what} must be a ${name} or null, not ${convert.describe(value)}`);
    }
    return value;
}

// Returns the checked properties of a new object of the class.
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

// Returns a value as programs see it. A size that was given as one number for all dimensions stays one
// number.
function shown(value, arg) {
    if (value instanceof GTorch.Size || value instanceof GTorch.Factors) {
        const values = value.get_values().map(one => arg?.nones && one === GTorch.NONE ? null : one);
        return values.length === 1 && (arg?.length > 1 || arg?.given) ? values[0] : values;
    }
    if (arg?.optional && (value === GTorch.NONE || value === GTorch.NONE_DOUBLE))
        return null;
    return value;
}

// Sets a property. GObject takes any value of the type: what a constructor would refuse, by the check of the
// class, is not kept, and throws.
function assign(what, object, raw, value, check) {
    const former = raw.get.call(object);
    if (check === undefined) {
        raw.set.call(object, value);
        const found = raw.get.call(object);
        // GObject warns of a number that is out of the property's range, and keeps the former one
        const isOther = typeof value === 'number' && found !== value && Object.is(found, former);
        if (Number.isFinite(found) && isOther)
            throw new RangeError(`${what} cannot be ${value}`);
        return;
    }
    object.freeze_notify();
    try {
        raw.set.call(object, value);
        check.call(object);
    } catch (error) {
        raw.set.call(object, former);
        throw error;
    } finally {
        object.thaw_notify();
    }
}

// Classes whose setters of C tell why they refuse a value, of which GObject would only warn, and whether
// a number that they refuse is out of range: readers refuse any value once reading has begun.
const REFUSING = new Map([['Allocator', true], ['CSVReader', false], ['DeviceMonitor', true],
    ['ProcessGroup', true], ['Store', true]]);

// Sets a property by such a setter.
function ask(what, object, setter, value, hasRange) {
    try {
        setter.call(object, value);
    } catch (error) {
        if (!hasRange || typeof value !== 'number' || !(error instanceof GLib.Error))
            throw error;
        throw new RangeError(`${what} cannot be ${value}: ${error.message}`);
    }
}

// In the libraries beside this one, setters of C check values, and tell why they refuse one.
function replace(prototype, className, spec, key, isLibrary) {
    const raw = Object.getOwnPropertyDescriptor(prototype, key);
    if (!raw?.get || !raw.configurable)
        return;
    const what = `${className}.${key}`;
    const arg = LAYERS[className]?.args.find(one => one.property === spec.name.replace(/-/g, '_'));
    const {CONSTRUCT_ONLY, WRITABLE} = GObject.ParamFlags;
    const check = prototype.check?.length === 0 ? prototype.check : undefined; // another one takes arguments

    Object.defineProperty(prototype, key, {
        configurable: true,
        enumerable: raw.enumerable,
        get() {
            const value = shown(raw.get.call(this), arg);
            const kind = PRIVATE.find(one => value instanceof GTorch[one]);
            return kind === undefined ? value : protectPrivate(value, kind);
        },
        set(value) {
            if (spec.flags & CONSTRUCT_ONLY)
                throw new TypeError(`${what} is fixed when the object is made`);
            // The settings of an optimizer are set in all groups, or in none.
            if (this instanceof GTorch.Optimizer && className !== 'Optimizer') {
                this.set_setting(spec.name.replace(/-/g, '_'), checked(what, spec, value, arg));
                return;
            }
            const setter = isLibrary ? this[`set_${spec.name.replace(/-/g, '_')}`] : undefined;
            const refusing = REFUSING.has(className)
                ? this[`set_${spec.name.replace(/-/g, '_')}`] : undefined;
            if (spec.flags & WRITABLE && setter?.length === 1)
                setter.call(this, value);
            else if (spec.flags & WRITABLE && refusing?.length === 1)
                ask(what, this, refusing, checked(what, spec, value, arg), REFUSING.get(className));
            else if (spec.flags & WRITABLE)
                assign(what, this, raw, checked(what, spec, value, arg), check);
            else if (!(this instanceof GTorch.Module && members.assignMember(what, this, spec.name, value)))
                throw new TypeError(`${what} can only be read`);
        },
    });
}

function protectPrototype(prototype, className, specs, isLibrary = false) {
    for (const spec of specs) {
        const key = spec.name.replace(/-/g, '_');
        const camel = spec.name.replace(/-(.)/g, (_all, letter) => letter.toUpperCase());
        for (const name of new Set([key, spec.name, camel]))
            replace(prototype, className, spec, name, isLibrary);
    }
}

// Checks assignments to the properties that a class adds to its parent's.
function protect({namespace, prefix}, name) {
    const specs = namespace[name].list_properties();
    const own = specs.filter(spec => GObject.type_name(spec.owner_type) === `${prefix}${name}`);

    protectPrototype(namespace[name].prototype, name, own, namespace !== GTorch);
}

const PRIVATE = ['Device', 'Stream'];
const seen = new Set();

// The classes of devices and streams are not in the typelib; gjs creates their properties itself.
function protectPrivate(object, name) {
    if (object === null)
        return null;
    const prototype = Object.getPrototypeOf(object);

    if (prototype !== GTorch[name].prototype && !seen.has(prototype)) {
        seen.add(prototype);
        protectPrototype(prototype, name, GTorch[name].list_properties());
    }
    return object;
}

// Returns the property of a class that a program names in one of the forms that gjs accepts, or null.
function find(klass, key) {
    const name = key.replace(/_/g, '-').replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`);
    return klass.find_property(name);
}

function mustBeProperties(name, given) {
    if (given.length !== 1 || !convert.isOptions(given[0])) {
        const found = given.length > 0 ? given.map(convert.describe).join(', ') : 'nothing';
        throw new TypeError(`${name}: an object with properties is wanted, not ${found}`);
    }
    return given[0];
}

function gpus(given) {
    if (given !== null && !Array.isArray(given))
        throw new TypeError(`DataParallel: devices must be an array of GPUs, not ${convert.describe(given)}`);
    return given?.map(one => convert.device('DataParallel', one, 'devices')) ?? null;
}

// Classes whose C constructor takes arguments that are no writable properties. The operator new calls that
// constructor: new GTorch.Stream({device: 'cpu'}). GObject alone would create an incomplete object.
const MADE = {
    Event: {
        args: [{name: 'flags'}, {name: 'enable_timing'}, {name: 'blocking'}, {name: 'interprocess'}],
        make: ({flags = 0, enable_timing: timing = false, blocking = false, interprocess = false}) => {
            const {TIMING, BLOCKING, INTERPROCESS} = GTorch.EventFlags;
            const chosen = [
                [timing, 'enable_timing', TIMING], [blocking, 'blocking', BLOCKING],
                [interprocess, 'interprocess', INTERPROCESS],
            ].filter(([value, name]) => convert.flag('Event', name, value));
            return GTorch.Event.new(chosen.reduce((all, [, , flag]) => all | flag, flags));
        },
    },
    Generator: {
        args: [{name: 'device'}, {name: 'seed'}],
        make: ({device = null, seed = null}) => {
            const made = device === null ? GTorch.Generator.new()
                : GTorch.Generator.new_for_device(convert.device('Generator', device));
            if (seed !== null)
                made.set_seed(seed);
            return made;
        },
    },
    ArrowReader: {
        args: [{name: 'stream', required: true}],
        make: ({stream}) => GTorch.ArrowReader.new(stream),
    },
    CSVReader: {
        args: [{name: 'stream', required: true}],
        make: ({stream}) => GTorch.CSVReader.new(stream),
    },
    ChainDataset: {
        args: [{name: 'datasets', required: true}],
        make: ({datasets}) => GTorch.ChainDataset.new(datasets),
    },
    DataParallel: {
        args: [{name: 'module', required: true}, {name: 'devices'}, {name: 'output_device'}, {name: 'dim'}],
        make: ({module, devices = null, output_device: output = null, dim = 0}) =>
            GTorch.DataParallel.new(module, gpus(devices),
                convert.device('DataParallel', output, 'output_device'), dim),
    },
    // Waits for the other processes of the job.
    DistributedModule: {
        args: [
            {name: 'module', required: true}, {name: 'group', required: true}, {name: 'bucket_cap_mb'},
            {name: 'broadcast_buffers'}, {name: 'find_unused_parameters'}, {name: 'init_sync'},
            {name: 'static_graph'},
        ],
        make: ({module, group, bucket_cap_mb: cap = 25, broadcast_buffers: sends = true,
            find_unused_parameters: finds = false, init_sync: syncs = true, static_graph: stays = false}) =>
            GTorch.DistributedModule.new_full(module, group, cap, sends, finds, syncs, stays),
    },
    DeviceMesh: {
        args: [{name: 'world', required: true}, {name: 'shape', required: true}, {name: 'dim_names'}],
        make: ({world, shape, dim_names: names = null}) => GTorch.DeviceMesh.new(world, shape, names),
    },
    ModuleShards: {
        args: [
            {name: 'module', required: true}, {name: 'group', required: true},
            {name: 'reshard_after_forward'}, {name: 'param_dtype'}, {name: 'reduce_dtype'},
            {name: 'output_dtype'},
        ],
        make: ({module, group, reshard_after_forward: drops = true, param_dtype: param = GTorch.DType.NONE,
            reduce_dtype: reduce = GTorch.DType.NONE, output_dtype: output = GTorch.DType.NONE}) =>
            GTorch.ModuleShards.new(module, group, drops, param, reduce, output),
    },
    ShardedOptimizer: {
        args: [{name: 'optimizer', required: true}, {name: 'group', required: true}],
        make: ({optimizer, group}) => GTorch.ShardedOptimizer.new(optimizer, group),
    },
    FileStore: {
        args: [{name: 'path', required: true}],
        make: ({path}) => GTorch.FileStore.new(path),
    },
    ImageFolder: {
        args: [{name: 'root', required: true}, {name: 'transform'}, {name: 'mode'}, {name: 'cancellable'}],
        make: ({root, transform = null, mode = GTorch.ImageMode.RGB, cancellable = null}) =>
            GTorch.ImageFolder.new(root, transform, mode, cancellable),
    },
    PrefixStore: {
        args: [{name: 'prefix', required: true}, {name: 'store', required: true}],
        make: ({prefix, store}) => GTorch.PrefixStore.new(prefix, store),
    },
    ProcessGroup: {
        args: [
            {name: 'backend', required: true}, {name: 'store'}, {name: 'rank'}, {name: 'world_size'},
            {name: 'timeout'}, {name: 'cancellable'},
        ],
        make: ({backend, store = null, rank = -1, world_size: size = -1, timeout = 1800,
            cancellable = null}) =>
            GTorch.ProcessGroup.new(backend, store, rank, size, timeout, cancellable),
    },
    TcpStore: {
        args: [
            {name: 'host', required: true}, {name: 'port', required: true}, {name: 'world_size'},
            {name: 'is_server'}, {name: 'timeout'}, {name: 'wait_for_workers'}, {name: 'token'},
            {name: 'cancellable'},
        ],
        make: ({host, port, world_size: size = 0, is_server: serves = false, timeout = 300,
            wait_for_workers: waits = true, token = null, cancellable = null}) =>
            GTorch.TcpStore.new(host, port, size, serves, timeout, waits, token, cancellable),
    },
    ConcatDataset: {
        args: [{name: 'datasets', required: true}],
        make: ({datasets}) => GTorch.ConcatDataset.new(datasets),
    },
    IndexSource: {
        args: [{name: 'indices', required: true}],
        make: ({indices}) => GTorch.IndexSource.new(indices instanceof GTorch.Size
            ? indices : GTorch.Size.new(convert.integers('IndexSource', 'indices', indices))),
    },
    SharedMemory: {
        args: [{name: 'n_bytes', required: true}],
        make: ({n_bytes: n}) => GTorch.SharedMemory.new(n),
    },
    StackDataset: {
        args: [{name: 'datasets', required: true}, {name: 'keys'}],
        make: ({datasets, keys = null}) => keys === null
            ? GTorch.StackDataset.new(datasets) : GTorch.StackDataset.new_with_keys(keys, datasets),
    },
    TensorDataset: {
        args: [{name: 'tensors', required: true}],
        make: ({tensors}) => GTorch.TensorDataset.new(tensors),
    },
    TensorHandle: {
        args: [{name: 'tensor', required: true}],
        make: ({tensor}) => GTorch.TensorHandle.new(tensor),
    },
    WeightedRandomSampler: {
        args: [
            {name: 'weights', required: true}, {name: 'num_samples', required: true}, {name: 'replacement'},
            {name: 'generator'},
        ],
        make: ({weights, num_samples: n, replacement = true, generator = null}) =>
            GTorch.WeightedRandomSampler.new(weights, n, replacement, generator),
    },
    // The object of C is of no use before init(), which fails where the device cannot be watched.
    DeviceMonitor: {
        args: [{name: 'device', required: true}],
        make: ({device}) => GTorch.DeviceMonitor.new(convert.device('DeviceMonitor', device)),
    },
    GraphedModule: {
        args: [{name: 'module', required: true}, {name: 'samples', required: true}],
        make: ({module, samples}) => GTorch.GraphedModule.new(module, samples),
    },
    PackedSequence: {
        args: [
            {name: 'data', required: true}, {name: 'batch_sizes', required: true}, {name: 'sorted_indices'},
            {name: 'unsorted_indices'},
        ],
        make: ({data, batch_sizes: sizes, sorted_indices: sorted = null, unsorted_indices: back = null}) =>
            GTorch.PackedSequence.new(data, sizes, sorted, back),
    },
    TransformerDecoder: {
        args: [{name: 'decoder_layer', required: true}, {name: 'num_layers', required: true}, {name: 'norm'}],
        make: given => GTorch.nn.TransformerDecoder(given),
    },
    TransformerEncoder: {
        args: [{name: 'encoder_layer', required: true}, {name: 'num_layers', required: true}, {name: 'norm'}],
        make: given => GTorch.nn.TransformerEncoder(given),
    },
    ParamGroup: {
        args: [
            {name: 'params', required: true}, {name: 'learning_rate', required: true}, {name: 'weight_decay'},
        ],
        make: ({params, learning_rate: rate, weight_decay: decay = 0}) =>
            GTorch.ParamGroup.new(params, rate, decay),
    },
    Parameter: {
        args: [{name: 'data', required: true}, {name: 'requires_grad'}],
        make: ({data, requires_grad: grad = true}) => GTorch.Parameter.new(data, grad),
    },
    SpectralNorm: {
        args: [{name: 'weight', required: true}, {name: 'n_power_iterations'}, {name: 'dim'}, {name: 'eps'}],
        make: ({weight, n_power_iterations: n = 1, dim = 0, eps = 1e-12}) =>
            GTorch.SpectralNorm.new(weight, n, dim, eps),
    },
    Stream: {
        args: [{name: 'device'}, {name: 'priority'}],
        make: ({device = null, priority = 0}) =>
            GTorch.Stream.new(convert.device('Stream', device), priority),
    },
};

function makeByFunction(name, values) {
    const {args, make} = MADE[name];
    const isArgument = ([key]) => args.some(arg => arg.name === key);
    const entries = Object.entries(values);
    const more = entries.filter(entry => !isArgument(entry));
    for (const [key, value] of more) {
        const spec = find(GTorch[name], key);
        mustBeWritable(name, key, spec);
        checked(`${name}: ${key}`, spec, value);
    }
    const bound = convert.bind(name, args, [Object.fromEntries(entries.filter(isArgument))], 0);
    for (const key of Object.keys(bound)) {
        const spec = /(^|_)device$/.test(key) ? null : find(GTorch[name], key);
        if (spec !== null)
            bound[key] = checked(`${name}: ${key}`, spec, bound[key]);
    }
    const made = make(bound);
    set.call(made, Object.fromEntries(more)); // some classes have another function of this name
    return made;
}

function mustBeWritable(name, key, spec) {
    if (spec === null)
        throw new TypeError(`${name}: there is no property ${key}`);
    if (!(spec.flags & GObject.ParamFlags.WRITABLE))
        throw new TypeError(`${name}: ${key} can only be read`);
}

// As in PyTorch, a layer is made with the reset_parameters() of a class of the program's. One that cannot be
// used keeps its error.
function resetByProgram(object) {
    if (!(object instanceof GTorch.Module) || !isProgramsOwn(object.constructor))
        return;
    let owner = object;
    while (!Object.hasOwn(owner, 'reset_parameters'))
        owner = Object.getPrototypeOf(owner);
    const isWaiting = !object.can_reset_parameters() || object.has_uninitialized_params();
    if (!isProgramsOwn(owner.constructor) || isWaiting)
        return;
    try {
        object.check();
    } catch {
        return;
    }
    object.reset_parameters();
}

// Classes whose first argument may be a device without a name: new GTorch.Stream('cuda:0', {priority: -1}).
const PLACED = ['DeviceMonitor', 'Generator', 'MemoryPool', 'Stream'];

function withDevice(name, given) {
    const [first, more = {}] = given;
    const isName = value => typeof value === 'string' || Number.isInteger(value);
    const isPlace = isName(first) || first instanceof GTorch.Device;
    if (name === 'MemoryPool' && given.length === 1 && convert.isOptions(first) && isName(first.device))
        return [{...first, device: convert.device(name, first.device)}];
    if (!PLACED.includes(name) || !isPlace || given.length > 2 || !convert.isOptions(more))
        return given;
    if ('device' in more)
        throw new TypeError(`${name}: device is given by position and by name`);
    return [{...more, device: convert.device(name, first)}];
}

// Arguments of constructors of C that have another name than the property.
const RENAMED = {Trainer: {loss: 'loss_module'}};

// new GTorch.DataLoader(dataset, 16, {num_workers: 2}): the arguments of new() in C by position, then
// properties.
function byPosition({namespace, owners: functions}, name, given) {
    const names = functions[name]?.statics.new?.names?.map(key => RENAMED[name]?.[key] ?? key);
    const {prototype} = namespace[name] ?? {};
    const isMade = !Object.hasOwn(MADE, name) && (prototype instanceof GTorch.Module ||
        prototype instanceof GTorch.Optimizer ||
        prototype instanceof GTorch.LRScheduler); // nn.Linear(1, 2) and so on
    const isAddress = name === 'ArrowReader'; // what a number would be
    if (given.length === 0 || convert.isOptions(given[0]) || names === undefined || isMade ||
        isAddress)
        return given;
    const args = names.map(key => ({name: key}));
    const more = convert.isOptions(given.at(-1)) ? given.at(-1) : {};
    const others = Object.keys(more).filter(key => !names.includes(key)).map(key => ({name: key}));
    return [convert.bind(name, [...args, ...others], given, names.length)];
}

// What new takes: new GTorch.Dropout({p: 0.1}). Properties of a class of the program's own are its affair.
function protectConstruction(space, prototype) {
    const init = prototype._init;
    const {CONSTRUCT, CONSTRUCT_ONLY} = GObject.ParamFlags;

    prototype._init = function (...given) {
        const klass = this.constructor;
        const name = convert.nameOf(klass);
        const isGiven = given.length > 1 || given[0] !== undefined; // as GObject has it
        const values = isGiven
            ? mustBeProperties(name, byPosition(space, name, withDevice(name, given))) : {};
        if (Object.hasOwn(MADE, name) && klass === GTorch[name])
            return makeByFunction(name, values);
        const later = []; // assignments, which may throw
        const entries = Object.entries(values).map(([key, value]) => {
            const spec = find(klass, key);
            if (spec === null)
                throw new TypeError(`${name}: there is no property ${key}`);
            const owner = GObject.type_name(spec.owner_type).replace(/^GTorch/, '');
            if (!isOwnClass(`GTorch${owner}`))
                return [key, value];
            mustBeWritable(name, key, spec);
            if (space.namespace !== GTorch && !(spec.flags & (CONSTRUCT | CONSTRUCT_ONLY))) {
                later.push([spec.name.replace(/-/g, '_'), value]);
                return null;
            }
            const arg = LAYERS[owner]?.args.find(one => one.property === spec.name.replace(/-/g, '_'));
            const isNone = value === null && arg?.optional;
            return [key, checked(`${name}: ${key}`, spec, value, isNone ? arg : {})];
        });
        const made = init.call(this, Object.fromEntries(entries.filter(entry => entry !== null)));
        later.forEach(([key, value]) => (this[key] = value));
        resetByProgram(this);
        return made;
    };
    if (prototype.set === GObject.Object.prototype.set)
        prototype.set = set;
}

// GObject's own set() turns unknown properties into attributes.
function set(...given) {
    const name = convert.nameOf(this.constructor);
    const values = mustBeProperties(`${name}.set`, given);
    for (const key of Object.keys(values)) {
        if (find(this.constructor, key) === null && (!(key in this) || typeof this[key] === 'function'))
            throw new TypeError(`${name}.set: there is no property ${key}`);
    }
    Object.assign(this, values);
}

// Refuses attributes that a class of the library does not have, such as misspelt names. Objects of classes
// that programs derive take any attribute, and modules take members.
function protectNames({prototype}, name) {
    const above = Object.getPrototypeOf(prototype);
    const isPlain = above === GObject.Object.prototype;
    const isPrototype = object => Object.hasOwn(object, 'constructor');
    const trap = {
        set(_target, key, value, object) {
            const isModule = object instanceof GTorch.Module && !isPrototype(object);
            if (isModule && typeof key === 'string' && members.assign(object, key, value))
                return true;
            const isFree = typeof key === 'symbol' || isPrototype(object) || !isPlain && key in above ||
                isProgramsOwn(object.constructor);
            if (object instanceof GTorch.Tensor && typeof key === 'string' && /^-?\d+$/.test(key))
                throw new TypeError(`Tensor: x[${key}] = value is x.put_at(${key}, value)`);
            if (!isFree)
                throw new TypeError(`${convert.nameOf(object.constructor)}: there is no property ${key}`);
            return Reflect.set(above, key, value, object);
        },
    };
    if (name === 'Tensor') {
        trap.get = (_target, key, object) => {
            if (typeof key === 'string' && /^-?\d+$/.test(key))
                throw new TypeError(`Tensor: x[${key}] is x.at(${key}); x.put_at(${key}, 1) writes`);
            return Reflect.get(above, key, object);
        };
    }
    if (name === 'Module') {
        trap.get = (_target, key, object) => typeof key === 'symbol' || key in above
            ? Reflect.get(above, key, object) : members.read(object, key);
    }
    // A name that the class lacks is looked up here, and then in the class of GObject.
    Object.setPrototypeOf(prototype, new Proxy(Object.create(above), trap));
}

// A bare device would be the CPU, which has another class. new GTorch.Device('cuda:0') returns that
// device.
function overrideDevice(prototype) {
    prototype._init = function (...given) {
        const [where, ...rest] = given.length === 0 ? ['cpu'] : given;
        if (rest.length > 0 || convert.isOptions(where) || where === null || where === undefined) {
            const found = given.map(convert.describe).join(', ');
            throw new TypeError(`Device: one name or number is wanted, not ${found}`);
        }
        return convert.device('Device', where);
    };
}

// Objects of classes derived from these would be the CPU's allocator, or a device without functions.
const FINAL = {Allocator: 'each device has one', Device: 'they are those of the machine'};

function forbidDerived(name) {
    GTorch[name]._classInit = function (klass) {
        throw new TypeError(`${klass.name}: ${name} cannot be derived from: ${FINAL[name]}`);
    };
}

// Protects the classes of a namespace, of which some are not derived from others of it. Any attribute may be
// set on objects of the classes in free.
function install(space, free = []) {
    const {namespace, classes: all} = space;
    const prototypes = all.map(name => namespace[name].prototype);
    const roots = all.filter(name => !prototypes.includes(Object.getPrototypeOf(namespace[name].prototype)));
    spaces.push(space);
    all.forEach(name => protect(space, name));
    roots.forEach(name => protectConstruction(space, namespace[name].prototype));
    roots.filter(name => !free.includes(name)).forEach(name => protectNames(namespace[name], name));
}

function setup(namespace) {
    GTorch = namespace;
    // A context takes what a program's function keeps for its backward().
    install({namespace, prefix: 'GTorch', classes, owners}, ['FunctionContext']);
    Object.keys(FINAL).forEach(forbidDerived);
    overrideDevice(GTorch.Device.prototype);
}
