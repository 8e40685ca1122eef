// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// GTorch for JavaScript: defaults, options objects, numbers as operands, and help for a garbage collector
// that does not know how large a tensor is.
//
//     const x = GTorch.zeros([2, 3], {dtype: GTorch.float64});
//     const y = x.add(1).sum({dim: 1, keepdim: true});

/* exported _init */

const {GObject} = imports.gi;
const System = imports.system;
const {operations} = imports.overrides._gtorch_ops;
const async = imports.overrides._gtorch_async;
const calls = imports.overrides._gtorch_calls;
const convert = imports.overrides._gtorch_convert;
const {noteVfuncs, noting, restore, restoring} = imports.overrides._gtorch_errors;
const nn = imports.overrides._gtorch_nn;
const properties = imports.overrides._gtorch_properties;

let GTorch;

// Returns the values of one call in the order of the row: positional ones, then members of an options
// object.
function gather(name, args, given) {
    let options = null;
    let count = given.length;

    if (count > 0 && convert.isOptions(given[count - 1])) {
        options = given[--count];
        for (const key in options) {
            if (!args.some(([argName]) => argName === key))
                throw new TypeError(`${name}: there is no option ${key}`);
        }
    }
    if (count > args.length)
        throw new TypeError(`${name}: ${count} arguments were given, it takes ${args.length}`);

    return args.map((arg, i) => {
        const [argName, kind, fallback] = arg;
        let value = i < count ? given[i] : undefined;
        if (i >= count && options !== null)
            value = options[argName];
        if (value === undefined) {
            if (arg.length < 3 || i < count)
                throw new TypeError(`${name}: ${argName} is ${i < count ? 'undefined' : 'missing'}`);
            value = fallback;
        }
        return convert.argument(name, argName, kind, value);
    });
}

// Converts the arguments of reshape(2, 3) to those of reshape([2, 3]).
function collectSizes(given, first) {
    let end = first;
    while (end < given.length && isPlainNumber(given[end]))
        end++;
    return end === first ? given : [...given.slice(0, first), given.slice(first, end), ...given.slice(end)];
}

function nameOutputs(operation, value) {
    const result = value.slice(1);
    operation.outputs.forEach((output, i) => {
        result[output] = result[i];
    });
    return result;
}

function isPlainNumber(value) {
    return typeof value === 'number' || typeof value === 'bigint';
}

// x.add_scalar(2), as in C, checks its arguments: gjs would convert anything else to NaN.
function makeForm(name, operation, owner, form, tail) {
    const whole = `${name}${form}${tail}`;
    const raw = owner[whole];
    if (raw === undefined)
        return;
    const kind = form === '_int' ? 'int' : form === '_scalar' ? 'double' : null;
    const args = operation.args.map(arg => {
        if (arg[1] === 'number' && kind === 'int')
            return [arg[0], 'whole', ...arg.slice(2)];
        return arg[0] === operation.scalar && kind !== null ? [arg[0], kind, ...arg.slice(2)] : arg;
    });
    const tensors = [...args.keys()].filter(i => args[i][1] === 'Tensor' || args[i][1] === 'Tensor?');

    owner[whole] = function (...given) {
        const values = gather(whole, args, operation.method ? [this, ...given] : given);
        for (const i of tensors) {
            if (isPlainNumber(values[i]))
                values[i] = convert.tensor(values[i], values.find(v => v instanceof GTorch.Tensor));
        }
        countWrapper();
        return operation.method ? raw.apply(values.shift(), values) : raw.apply(GTorch, values);
    };
    owner[whole].raw = raw;
}

function makeForms(name, operation, owner) {
    for (const form of ['', ...operation.forms ?? []]) {
        if (form !== '')
            makeForm(name, operation, owner, form, '');
        if (operation.inplace)
            makeForm(name, operation, owner, form, '_inplace');
    }
}

function makeWrapper(name, operation, owner, raw, tail) {
    const {args, forms, method, variadic, outputs} = operation;
    const scalar = args.findIndex(([argName]) => argName === operation.scalar);
    const tensors = [...args.keys()].filter(i => args[i][1] === 'Tensor' || args[i][1] === 'Tensor?');
    const numbers = [...args.keys()].filter(i => args[i][1] === 'number');
    let rawScalar = null;
    let rawInt = null;

    // Looking up a method costs more than calling it, so only methods that are used are resolved.
    function resolve() {
        raw ??= owner[`${name}${tail}`].raw;
        rawScalar = owner[`${name}_scalar${tail}`]?.raw ?? null;
        rawInt = forms?.includes('_int') ? owner[`${name}_int${tail}`].raw : rawScalar;
    }

    return function (...given) {
        if (method)
            given.unshift(this);
        if (variadic)
            given = collectSizes(given, method ? 1 : 0);
        const values = gather(name, args, given);
        if (rawInt === null && forms || raw === null)
            resolve();
        let callee = raw;
        if (numbers.some(i => typeof values[i] === 'bigint')) {
            callee = rawInt;
            for (const i of numbers)
                values[i] = convert.whole(name, args[i][0], values[i]);
        }
        if (forms && isPlainNumber(values[scalar]))
            callee = convert.isInteger(values[scalar]) ? rawInt : rawScalar;
        if (callee === rawScalar && typeof values[scalar] === 'bigint')
            values[scalar] = Number(values[scalar]); // computed in doubles
        for (const i of tensors) {
            if (isPlainNumber(values[i]) && (callee === raw || i !== scalar))
                values[i] = convert.tensor(values[i], values.find(v => v instanceof GTorch.Tensor));
        }
        countWrapper();
        const result = method ? callee.apply(values.shift(), values) : callee.apply(GTorch, values);
        return outputs && tail === '' ? nameOutputs(operation, result) : result;
    };
}

function overrideOperations(prototype) {
    for (const [name, operation] of Object.entries(operations)) {
        for (const arg of operation.args.filter(one => one.length > 2))
            arg[2] = convert.fallback(arg[1], arg[2]);
        const owner = operation.method ? prototype : GTorch;
        operation.forms ??= null;
        owner[name] = makeWrapper(name, operation, owner, owner[name], '');
        if (operation.inplace) {
            const inPlace = makeWrapper(name, operation, owner, null, '_inplace');
            owner[`${name}_`] = inPlace;
        }
        makeForms(name, operation, owner);
        if (operation.method && GTorch[name] === undefined)
            GTorch[name] = (self, ...rest) => prototype[name].call(self, ...rest);
    }
}

// --- memory ---------------------------------------------------------------------------------------

const WRAPPERS_BETWEEN_COLLECTIONS = 2000;
let wrappersMade = 0;

function collect() {
    wrappersMade = 0;
    System.gc();
}

// Creating a wrapper takes time proportional to the number of live ones.
function countWrapper() {
    if (++wrappersMade >= WRAPPERS_BETWEEN_COLLECTIONS)
        collect();
}

function listTensors(value, found, depth) {
    if (value instanceof GTorch.Tensor)
        found.push(value);
    else if (depth > 0 && (Array.isArray(value) || convert.isOptions(value)))
        Object.values(value).forEach(item => listTensors(item, found, depth - 1));
    return found;
}

// Runs func; of the tensors that it creates, only those in its result survive.
function tidy(func) {
    convert.plainFunction('tidy', func);
    const scope = GTorch.Scope.new();
    try {
        const result = func();
        if (/Promise|Generator/.test(Object.prototype.toString.call(result))) {
            throw new TypeError('tidy: the function gave what computes later, and needs its tensors then; ' +
                'call tidy for each part that does not wait');
        }
        listTensors(result, [], 8).forEach(tensor => scope.keep(tensor));
        return result;
    } finally {
        scope.end();
    }
}

// A number beside a tensor: exact, and without influence on the dtype of the result.
function parameter(name, value, other) {
    if (value instanceof GTorch.Tensor)
        return value;
    const dtype = other.get_n_dims() > 0 ? GTorch.DType.FLOAT64 : other.get_dtype();
    return convert.make(convert.number('normal', name, value), {dtype, device: other.get_device()});
}

// Draws normally distributed numbers: normal(means, stds), one of which may be a number, or normal(0, 1,
// [2, 3], {dtype: GTorch.float64}).
function normal(mean, std, ...rest) {
    const sized = !(mean instanceof GTorch.Tensor) && !(std instanceof GTorch.Tensor);
    const size = sized ? rest.shift() : null;
    const {generator, ...where} = convert.options('normal', rest[0] ?? {},
        sized ? {generator: null, dtype: null, device: null} : {generator: null});
    if (rest.length > 1)
        throw new TypeError(`normal: ${rest.length} arguments are too many after the mean and the std`);
    if (!sized) {
        const one = mean instanceof GTorch.Tensor ? mean : std;
        return GTorch.normal_around(parameter('mean', mean, one), parameter('std', std ?? 1, one), generator);
    }
    if (std === undefined || size === undefined)
        throw new TypeError('normal: a mean, a std and a size are wanted, or tensors of means or stds');
    return GTorch.empty(size, where).normal_(mean, std, {generator});
}

// Runs func while the guard, which makeGuard creates, is active.
function within(name, func, makeGuard, ...values) {
    convert.plainFunction(name, func);
    const guard = makeGuard();
    try {
        return func(...values);
    } finally {
        guard.end();
    }
}

// Runs func in a region of mixed precision: autocast('cuda', {dtype: GTorch.bfloat16}, () =>
// model.forward(x)).
function withAutocast(deviceType, ...rest) {
    const func = rest.pop();
    const {dtype: wanted, enabled, cache_enabled: caches} = convert.options('autocast', rest[0] ?? {},
        {dtype: null, enabled: true, cache_enabled: GTorch.is_autocast_cache_enabled()});
    let type = typeof deviceType === 'string' ? deviceType.split(':')[0] : deviceType;
    if (type instanceof GTorch.Device)
        type = type.get_device_type();
    const kind = convert.enumeration('autocast', 'device_type', 'DeviceType', type);
    const computed = convert.dtype('autocast', wanted);
    return within('autocast', func, () => GTorch.AutocastGuard.new(kind, computed,
        convert.flag('autocast', 'enabled', enabled), convert.flag('autocast', 'cache_enabled', caches)));
}

// --- the namespace --------------------------------------------------------------------------------

function overrideTensor(prototype) {
    const property = (name, get, set) =>
        Object.defineProperty(prototype, name, {configurable: true, get, set});

    property('shape', function () {
        return this.get_shape();
    });
    property('ndim', function () {
        return this.get_n_dims();
    });
    property('T', function () {
        return this.permute([...Array(this.get_n_dims()).keys()].reverse());
    });
    property('grad', function () {
        return this.get_grad();
    }, function (value) {
        this.set_grad(value);
    });
    property('requires_grad', function () {
        return this.get_requires_grad();
    }, function (value) {
        this.set_requires_grad(value);
    });

    const setProperties = properties.set;
    const raw = {
        backward: prototype.backward,
        get_size: prototype.get_size,
        index: prototype.index,
        index_put_inplace: prototype.index_put_inplace,
        set: prototype.set,
        to: prototype.to,
    };
    Object.assign(prototype, {
        backward(options = {}, ...flags) {
            const [keep, more] = flags;
            const given = convert.isOptions(options)
                ? options : {gradient: options, retain_graph: keep, create_graph: more};
            const {gradient, retain_graph: retain, create_graph: create} = convert.options('backward', given,
                {gradient: null, retain_graph: null, create_graph: false});
            convert.flag('backward', 'create_graph', create);
            return restoring(() => raw.backward.call(this, gradient, retain ?? create, create));
        },
        get_size(dim) {
            return raw.get_size.call(this, convert.integer('get_size', 'dim', dim));
        },
        at(...items) {
            return raw.index.call(this, ...convert.encodeIndex(items));
        },
        put_at(items, value) {
            const code = convert.encodeIndex(Array.isArray(items) ? items : [items]);
            return raw.index_put_inplace.call(this, ...code, convert.element(this, value), false);
        },
        // GObject's own set ({property: value}) still works.
        set(...given) {
            if (given.length === 1 && convert.isOptions(given[0]))
                return setProperties.call(this, ...given);
            const [where, value] = given;
            if (given.length !== 2 || typeof where !== 'string') {
                throw new TypeError('set: positions as a text and a value are wanted, as in ' +
                    "set('0, 1:', 5); put_at() takes positions that are computed");
            }
            return raw.set.call(this, where, convert.element(this, value));
        },
        item() {
            return convert.item(this);
        },
        toArray() {
            return convert.toArray(this);
        },
        toTypedArray() {
            return convert.toTypedArray(this);
        },
        // to('cuda:0'), to(GTorch.float64), to(other), to('cpu', {non_blocking: true})
        to(target, options = {}, ...rest) {
            if (rest.length > 0 || !convert.isOptions(options))
                throw new TypeError('to: one target and an object with options are wanted');
            let dtype = GTorch.DType.NONE;
            let device = null;
            if (target instanceof GTorch.Tensor)
                [dtype, device] = [target.get_dtype(), target.get_device()];
            else if (target instanceof GTorch.Device || /^(cpu|cuda)(:|$)/.test(target))
                device = convert.device('to', target);
            else
                dtype = convert.dtype('to', target);
            return raw.to.call(this, {dtype, device, ...options});
        },
        requires_grad_(wanted = true) {
            this.set_requires_grad(wanted);
            return this;
        },
        toString() {
            return this.to_string();
        },
        *[Symbol.iterator]() {
            yield* this.unbind(0);
        },
    });
}

function overrideFunctions() {
    const rawGrad = GTorch.autograd_grad;
    const {no_grad: noGrad, enable_grad: enableGrad} = GTorch;
    const rawBackward = GTorch.autograd_backward;

    Object.assign(GTorch, {
        normal,
        tensor: convert.make,
        tidy,
        no_grad: func => within('no_grad', func, noGrad),
        enable_grad: func => within('enable_grad', func, enableGrad),
        autocast: withAutocast,
        autograd_grad(outputs, inputs, options = {}) {
            const {grad_outputs: weights, retain_graph: retain, create_graph: create, allow_unused: unused} =
                convert.options('autograd_grad', options,
                    {grad_outputs: [], retain_graph: null, create_graph: false, allow_unused: false});
            convert.flag('autograd_grad', 'create_graph', create);
            return restoring(() =>
                rawGrad([outputs].flat(), [inputs].flat(), weights, retain ?? create, create, unused));
        },
        autograd_backward(...given) {
            return restoring(() => rawBackward(...given));
        },
    });
    for (const value of Object.values(GTorch.DType)) {
        if (typeof value === 'number' && value !== GTorch.DType.NONE)
            GTorch[GTorch.DType.get_name(value)] = value;
    }
}

// The overrides return what their functions return, or throw what those throw. gjs up to at least 1.74
// frees a callback too often if it calls the same C function with another callback, so these do not use
// it.
function overrideRun() {
    GTorch.Device.prototype.run = function (func) {
        return within('run', func, () => GTorch.DeviceGuard.new(this), this);
    };
    GTorch.Device.prototype.run_as_default = function (func) {
        return within('run_as_default', func, () => GTorch.DefaultDeviceGuard.new(this), this);
    };
    GTorch.Stream.prototype.run = function (func) {
        return within('run', func, () => GTorch.StreamGuard.new(this), this);
    };
    GTorch.MemoryPool.prototype.run = function (func) {
        return within('run', func, () => GTorch.MemoryPoolGuard.new(this), this);
    };
    GTorch.autocast_run = (deviceType, dtype, enabled, caches, func) =>
        within('autocast_run', func, () => GTorch.AutocastGuard.new(deviceType, dtype, enabled, caches));

    const {capture} = GTorch.CUDAGraph.prototype;
    GTorch.CUDAGraph.prototype.capture = function (stream, pool, func) {
        let result;
        convert.plainFunction('capture', func);
        restoring(() => capture.call(this, stream, pool, (...values) => noting(() => {
            result = func(...values);
            return true;
        })));
        return result;
    };
}

function overrideMemorySource(MemorySource) {
    restore(MemorySource.prototype, 'allocate');
    MemorySource._classInit = function (klass) {
        noteVfuncs(klass.prototype, 'allocate');
        return GObject.Object._classInit(klass);
    };
}

function _init() {
    GTorch = this;
    convert.setup(GTorch);
    properties.setup(GTorch);
    calls.setup(GTorch);
    overrideOperations(GTorch.Tensor.prototype);
    overrideTensor(GTorch.Tensor.prototype);
    overrideFunctions();
    async.setup(GTorch);
    overrideRun();
    overrideMemorySource(GTorch.MemorySource);
    nn.setup(GTorch);
    GTorch.DeviceManager.get_default().connect('memory-pressure', collect);
}
