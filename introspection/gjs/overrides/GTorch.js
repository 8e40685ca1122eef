// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// GTorch for JavaScript: defaults, options objects, numbers as operands, and help for a garbage collector
// that does not know how large a tensor is.
//
//     const x = GTorch.zeros([2, 3], {dtype: GTorch.float64});
//     const y = x.add(1).sum({dim: 1, keepdim: true});

/* exported _init */

const {Gio, GObject} = imports.gi;
const System = imports.system;
const {operations, spaces} = imports.overrides._gtorch_ops;
const aliases = imports.overrides._gtorch_aliases;
const async = imports.overrides._gtorch_async;
const calls = imports.overrides._gtorch_calls;
const {classes, functions, owners} = imports.overrides._gtorch_calls_table;
const convert = imports.overrides._gtorch_convert;
const data = imports.overrides._gtorch_data;
const defaults = imports.overrides._gtorch_defaults;
const derived = imports.overrides._gtorch_derived;
const {hinted, hints, noting, restore, restoring} = imports.overrides._gtorch_errors;
const forms = imports.overrides._gtorch_forms;
const library = imports.overrides._gtorch_library;
const nn = imports.overrides._gtorch_nn;
const {place} = imports.overrides._gtorch_place;
const properties = imports.overrides._gtorch_properties;
const saved = imports.overrides._gtorch_saved;
const modules = imports.overrides._gtorch_spaces;
const stores = imports.overrides._gtorch_stores;
const tensor = imports.overrides._gtorch_tensor;
const train = imports.overrides._gtorch_train;

let GTorch;

// Returns the values of one call in the order of the row: positional ones, then members of an options
// object.
function gather(name, args, given, others = {}) {
    let options = null;
    let count = given.length;

    if (count > 0 && convert.isOptions(given[count - 1])) {
        options = forms.renamed(name, given[--count], others);
        for (const key in options) {
            const place = args.findIndex(([argName]) => argName === key);
            if (place < 0)
                throw new TypeError(`${name}: there is no option ${key}`);
            if (place < count)
                throw new TypeError(`${name}: ${key} is given by position and by name`);
            if (options[key] === undefined)
                throw new TypeError(`${name}: ${key} is undefined`);
        }
    }
    if (count > args.length) {
        const nOwn = args[0]?.[0] === 'self' ? 1 : 0;
        convert.surplus(name, count - nOwn, args.length - nOwn);
    }

    return args.map((arg, i) => {
        const [argName, kind, fallback] = arg;
        let value = i < count ? given[i] : undefined;
        if (i >= count && options !== null)
            value = options[argName];
        const isLeftOut = value === null && arg[3] === true; // it is optional
        if (value === undefined || isLeftOut) {
            if (arg.length < 3 || i < count && !isLeftOut)
                throw new TypeError(`${name}: ${argName} is ${i < count ? 'undefined' : 'missing'}`);
            value = fallback;
        } else if (value === null && kind === 'int[]' && (arg.length < 3 || arg[3] === 'items')) {
            throw new TypeError(`${name}: ${argName} must be an array of integers, not null`);
        }
        const found = convert.argument(name, argName, kind, value);
        // C takes an empty list for one that is not given, which it is not.
        if (arg[3] === true && kind === 'int[]' && value !== fallback && found.length === 0) {
            throw new TypeError(`${name}: ${argName} is an empty array: without it, or with null, all ` +
                'are meant');
        }
        // C takes an empty list for the default, which it is not.
        if (arg[3] === 'items' && found.length === 0)
            throw new TypeError(`${name}: ${argName} must not be an empty array`);
        return found;
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

// The tensor beside which a number is converted: one of 64 bits, of which it would lose digits, or the first.
function likeOf(values) {
    const {FLOAT64, COMPLEX128} = GTorch.DType;
    const found = values.filter(v => v instanceof GTorch.Tensor);
    return found.find(v => [FLOAT64, COMPLEX128].includes(v.get_dtype())) ?? found[0];
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
        if (arg[1] === 'DType') // as C has it
            return [arg[0], 'DType or NONE', ...arg.slice(2)];
        return arg[0] === operation.scalar && kind !== null ? [arg[0], kind, ...arg.slice(2)] : arg;
    });
    const tensors = [...args.keys()].filter(i => args[i][1] === 'Tensor' || args[i][1] === 'Tensor?');

    owner[whole] = function (...given) {
        const values = gather(whole, args, operation.method ? [this, ...given] : given);
        for (const i of tensors) {
            if (isPlainNumber(values[i]))
                values[i] = convert.tensor(values[i], likeOf(values));
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
    const {args, forms: kinds, method, variadic, outputs, others} = operation;
    const scalar = args.findIndex(([argName]) => argName === operation.scalar);
    const tensors = [...args.keys()].filter(i => args[i][1] === 'Tensor' || args[i][1] === 'Tensor?');
    const numbers = [...args.keys()].filter(i => args[i][1] === 'number');
    const dtype = tensors.length === 0 && numbers.length > 0 ? args.findIndex(arg => arg[1] === 'DType') : -1;
    let rawScalar = null;
    let rawInt = null;

    // Looking up a method costs more than calling it, so only methods that are used are resolved.
    function resolve() {
        raw ??= owner[`${name}${tail}`].raw;
        rawScalar = owner[`${name}_scalar${tail}`]?.raw ?? null;
        rawInt = kinds?.includes('_int') ? owner[`${name}_int${tail}`].raw : rawScalar;
    }

    return function (...given) {
        if (method)
            given.unshift(this);
        if (variadic)
            given = collectSizes(given, method ? 1 : 0);
        const values = gather(name, args, given, others);
        if (rawInt === null && kinds || raw === null)
            resolve();
        let callee = raw;
        // Integers alone make an int64, as in tensor().
        const areWhole = dtype >= 0 && values[dtype] === GTorch.DType.NONE &&
            numbers.every(i => convert.isWhole(values[i]));
        if (areWhole || numbers.some(i => typeof values[i] === 'bigint')) {
            // The form for integers takes a bound of this value for none.
            const isNone = numbers.some(i => values[i] === -2147483648n && Math.abs(args[i][2]) === Infinity);
            callee = isNone ? raw : rawInt;
            for (const i of numbers)
                values[i] = convert[isNone ? 'number' : 'whole'](name, args[i][0], values[i]);
        }
        if (kinds && isPlainNumber(values[scalar])) {
            callee = convert.isWhole(values[scalar]) ? rawInt : rawScalar;
            if (callee !== rawScalar)
                values[scalar] = convert.wide(name, args[scalar][0], values[scalar]);
        }
        if (callee === rawScalar && typeof values[scalar] === 'bigint')
            values[scalar] = Number(values[scalar]); // computed in doubles
        for (const i of tensors) {
            if (isPlainNumber(values[i]) && (callee === raw || i !== scalar))
                values[i] = convert.tensor(values[i], likeOf(values));
        }
        countWrapper();
        let result;
        try {
            result = method ? callee.apply(values.shift(), values) : callee.apply(GTorch, values);
        } catch (error) {
            throw hinted(error);
        }
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
            GTorch[name] = forms.functionOf(name, operation, prototype);
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

// Yields the parts of a value that a program can look into.
function* partsOf(value) {
    if (value instanceof Map)
        yield* value.keys();
    if (value instanceof Map || value instanceof Set)
        yield* value.values();
    if (value instanceof Gio.ListModel) {
        for (let i = 0; i < value.get_n_items(); i++)
            yield value.get_item(i);
    }
    const parts = Object.getOwnPropertyDescriptors(value);
    for (const key of Reflect.ownKeys(parts)) {
        if (parts[key].enumerable)
            yield parts[key].value;
    }
}

function listTensors(value) {
    const found = [];
    const seen = new Set();
    const rest = [value];
    while (rest.length > 0) {
        const one = rest.pop();
        if (one === null || typeof one !== 'object' || seen.has(one) || ArrayBuffer.isView(one))
            continue;
        seen.add(one);
        if (one instanceof GTorch.Tensor) {
            found.push(one);
        } else {
            for (const part of Array.isArray(one) ? one : partsOf(one)) {
                if (typeof part === 'object') // an array may hold millions of numbers
                    rest.push(part);
            }
        }
    }
    return found;
}

const scopes = []; // the open ones, the innermost last

// Runs func; of the tensors that it creates, only those in its result survive.
function tidy(func) {
    convert.plainFunction('tidy', func);
    const scope = GTorch.Scope.new();
    scopes.push(scope);
    try {
        const result = convert.finished('tidy', func());
        listTensors(result).forEach(tensor => scope.keep(tensor));
        return result;
    } finally {
        scopes.pop();
        scope.end();
    }
}

// Keeps the tensors of a value in all scopes: what the context of a function refers to, for its backward().
function keepAlways(value) {
    if (scopes.length === 0)
        return;
    const tensors = listTensors(value);
    for (const scope of [...scopes].reverse())
        tensors.forEach(tensor => scope.keep(tensor));
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
    const {generator, ...where} = convert.lastOptions('normal', rest,
        sized ? {generator: null, dtype: null, device: null} : {generator: null});
    if (!sized) {
        const one = mean instanceof GTorch.Tensor ? mean : std;
        const spread = arguments.length > 1 ? std : 1;
        return GTorch.normal_around(parameter('mean', mean, one), parameter('std', spread, one), generator);
    }
    if (std === undefined || size === undefined)
        throw new TypeError('normal: a mean, a std and a size are wanted, or tensors of means or stds');
    return GTorch.empty(size, where).normal_(mean, std, {generator});
}

// Wraps clamp(), one of whose bounds may be null or left out.
function bounded(name, clamp) {
    const ends = [-Infinity, Infinity];
    const func = function (...given) {
        let values = given;
        if (convert.isOptions(given.at(-1))) {
            const more = Object.entries(given.at(-1)).filter(([, value]) => value !== null);
            values = [...given.slice(0, -1), Object.fromEntries(more)];
            if (more.length === 0)
                values.pop();
        }
        if (values.every(value => value === null))
            throw new TypeError(`${name}: a min, a max or both are wanted`);
        return clamp.apply(this, values.map((value, i) => value === null && i < 2 ? ends[i] : value));
    };
    return Object.assign(func, {raw: clamp.raw});
}

// Wraps arange(): arange(5) is arange(0, 5).
function fromZero(arange) {
    return (...given) => {
        const options = convert.isOptions(given.at(-1)) ? given.at(-1) : {};
        const count = given.length - (options === given.at(-1) ? 1 : 0);
        const isEnd = count === 1 ? !('end' in options)
            : count === 0 && 'end' in options && !('start' in options);
        return isEnd ? arange(0, ...given) : arange(...given);
    };
}

// Wraps a transform along several dimensions. C takes an empty list for all of them; a transform of length 1
// along a new dimension changes nothing but the dtype.
function alongNone(name) {
    const transform = GTorch[name];
    const args = operations[name].args.map(([argName]) => ({name: argName}));
    const isEmpty = value => Array.isArray(value) && value.length === 0;
    return function (...given) {
        const {input, s = null, dim = null, norm = 'backward'} = convert.bind(name, args, given);
        const lists = [s, dim].filter(value => value !== null);
        if (input instanceof GTorch.Tensor && lists.length > 0 && lists.every(isEmpty))
            return transform(input.unsqueeze(-1), {dim: -1, norm}).squeeze(-1);
        return transform(...given);
    };
}

// Runs func while the guard, which makeGuard creates, is active.
function within(name, func, makeGuard, ...values) {
    convert.plainFunction(name, func);
    const guard = makeGuard();
    try {
        return convert.finished(name, func(...values));
    } finally {
        guard.end();
    }
}

// Runs func in a region of mixed precision: autocast('cuda', {dtype: GTorch.bfloat16}, () =>
// model.forward(x)).
function withAutocast(deviceType, ...rest) {
    const func = rest.pop();
    const {dtype: wanted, enabled, cache_enabled: caches} = convert.lastOptions('autocast', rest,
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

// Refuses a number, of which the other operations make a tensor.
function mustBeOther(name, given) {
    const other = convert.isOptions(given[0]) ? given[0].other : given[0];
    if (other !== undefined && !(other instanceof GTorch.Tensor))
        throw new TypeError(`${name}: other must be a tensor, not ${convert.describe(other)}`);
}

function overrideTensor(prototype) {
    const property = (name, get, set) =>
        Object.defineProperty(prototype, name, {configurable: true, get, set});

    property('shape', function () {
        return this.get_shape();
    });
    property('ndim', function () {
        return this.get_n_dims();
    });
    // As len() in Python.
    property('length', function () {
        if (this.get_n_dims() === 0)
            throw new TypeError('length: a tensor without dimensions has none');
        return this.get_size(0);
    });
    property('T', function () {
        return this.permute([...Array(this.get_n_dims()).keys()].reverse());
    });
    property('grad', function () {
        return this.get_grad();
    }, function (value) {
        if (value !== null && !(value instanceof GTorch.Tensor))
            throw new TypeError(`Tensor.grad must be a Tensor or null, not ${convert.describe(value)}`);
        this.set_grad(value);
    });
    property('requires_grad', function () {
        return this.get_requires_grad();
    }, function (value) {
        this.set_requires_grad(value);
    });

    const setProperties = properties.set;
    prototype.set_requires_grad = hints(prototype.set_requires_grad);
    const raw = {
        allclose: prototype.allclose,
        backward: prototype.backward,
        equal: prototype.equal,
        get: prototype.get,
        get_size: prototype.get_size,
        index: prototype.index,
        index_put_inplace: prototype.index_put_inplace,
        set: prototype.set,
        to: prototype.to,
    };
    convert.addMethods(prototype, {
        backward(...given) {
            const names = ['gradient', 'retain_graph', 'create_graph'].map(name => ({name}));
            const {gradient = null, retain_graph: retain = null, create_graph: create = false} =
                convert.bind('backward', names, given);
            convert.flag('backward', 'create_graph', create);
            return restoring(() => raw.backward.call(this, gradient, retain ?? create, create));
        },
        get_size(dim) {
            return raw.get_size.call(this, convert.integer('get_size', 'dim', dim));
        },
        at(...items) {
            return raw.index.call(this, ...convert.encodeIndex(items));
        },
        get(...given) {
            if (typeof given[0] !== 'string' || given.length !== 1) {
                throw new TypeError("get: positions as a text are wanted, as in get('0, 1:'), not " +
                    `${convert.describe(given[0])}; at() takes positions that are computed, as in at(0, i)`);
            }
            return raw.get.call(this, ...given);
        },
        // put_at(0, [1, 3], 5): the items as for at(), and the value
        put_at(...given) {
            if (given.length < 1)
                throw new TypeError('put_at: a value is missing, which comes after the items of at()');
            const code = convert.encodeIndex(given.slice(0, -1));
            return raw.index_put_inplace.call(this, ...code, convert.element(this, given.at(-1)), false);
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
        // Conditions, as in PyTorch: any tensor would be true.
        allclose(...given) {
            mustBeOther('allclose', given);
            return raw.allclose.apply(this, given).item_bool()[1];
        },
        equal(...given) {
            mustBeOther('equal', given);
            return raw.equal.apply(this, given).item_bool()[1];
        },
        toArray() {
            return convert.toArray(this);
        },
        toTypedArray() {
            return convert.toTypedArray(this);
        },
        // to('cuda:0'), to(GTorch.float64), to(other), to('cpu', GTorch.float64), to('cpu', {copy: true})
        to(...given) {
            return raw.to.call(this, convert.target('to', given, ['non_blocking', 'copy']));
        },
        requires_grad_(...given) {
            const {requires_grad: wanted = true} =
                convert.bind('requires_grad_', [{name: 'requires_grad'}], given);
            this.set_requires_grad(wanted);
            return this;
        },
    });
    prototype[Symbol.iterator] = function* () {
        yield* this.unbind(0);
    };
    // loss < 0.1 would compare texts.
    prototype[Symbol.toPrimitive] = function (hint) {
        if (hint === 'string')
            return this.to_string();
        throw new TypeError('a tensor is not a number: use item() for the value of one element, as in ' +
            'loss.item() > 0.1, methods such as x.add(y) and x.gt(y) for all, and `loss: ${x}` for its text');
    };
    // JSON has the values; console.log(), which makes JSON of objects, shows the text.
    prototype.toJSON = function (_key) {
        const isShown = new Error().stack.includes('/modules/esm/console.js');
        return isShown ? convert.lines(this.to_string()) : convert.jsonOf(this.toArray());
    };
    for (const name of ['clamp', 'clamp_', 'clamp_inplace'])
        prototype[name] = bounded(name, prototype[name]);
}

// Messages of C name lines of JavaScript, of its one thread.
function overridePlaces() {
    GTorch.set_place_func(false, place);
    GTorch.set_place_func = (...given) => {
        const args = [{name: 'any_thread', required: true}, {name: 'func', required: true}];
        const {any_thread: anyThread} = convert.bind('set_place_func', args, given);
        convert.flag('set_place_func', 'any_thread', anyThread);
        throw new TypeError('set_place_func: no function can be given, because JavaScript has one of ' +
            'its own');
    };
}

// The search for operations with wrong gradients: until further notice, or while a function runs.
function overrideAnomalies() {
    const raw = GTorch.set_detect_anomaly;

    Object.assign(GTorch, {
        set_detect_anomaly(...given) {
            const args = [{name: 'mode', required: true}, {name: 'check_nan'}];
            const {mode, check_nan: checkNaN = true} = convert.bind('set_detect_anomaly', args, given);
            raw(convert.flag('set_detect_anomaly', 'mode', mode),
                convert.flag('set_detect_anomaly', 'check_nan', checkNaN));
        },
        detect_anomaly(func, ...given) {
            convert.plainFunction('detect_anomaly', func);
            const {check_nan: checkNaN = true} = convert.bind('detect_anomaly', [{name: 'check_nan'}], given);
            const before = [GTorch.is_anomaly_enabled(), GTorch.is_anomaly_check_nan_enabled()];
            GTorch.set_detect_anomaly(true, checkNaN);
            try {
                return convert.finished('detect_anomaly', func());
            } finally {
                raw(...before);
            }
        },
    });
}

// Operations as ranges of NVIDIA's tools, while a function runs.
function overrideRanges() {
    const raw = GTorch.set_emit_nvtx;

    Object.assign(GTorch, {
        set_emit_nvtx(...given) {
            const args = [{name: 'enabled', required: true}, {name: 'record_shapes'}];
            const {enabled, record_shapes: shapes = false} = convert.bind('set_emit_nvtx', args, given);
            raw(convert.flag('set_emit_nvtx', 'enabled', enabled),
                convert.flag('set_emit_nvtx', 'record_shapes', shapes));
        },
        emit_nvtx(func, ...given) {
            convert.plainFunction('emit_nvtx', func);
            const args = [{name: 'record_shapes'}];
            const {record_shapes: shapes = false} = convert.bind('emit_nvtx', args, given);
            GTorch.set_emit_nvtx(true, shapes);
            try {
                return convert.finished('emit_nvtx', func());
            } finally {
                raw(false, false);
            }
        },
    });
}

// Ranges of profiles: while a function runs.
function overrideProfiler() {
    GTorch.record_function = convert.counted('record_function', (name, func) => {
        if (typeof name !== 'string')
            throw new TypeError(`record_function: name must be a string, not ${name}`);
        return within('record_function', func, () => GTorch.ProfileRange.new(name));
    }, 2);
    const {prototype} = GTorch.Profiler;
    const setSchedule = prototype.set_schedule_func;
    prototype.set_schedule_func = convert.counted('set_schedule_func', function (func) {
        if (func !== null)
            convert.plainFunction('set_schedule_func', func);
        setSchedule.call(this, func === null ? null
            : step => noting(() => convert.finished('set_schedule_func', func(step))));
    }, 1);
    restore(prototype, 'start', 'step');
    nn.watchProfilers(prototype);
    GTorch.Profiler.set_stack_func = () => {
        throw new TypeError('set_stack_func: no function can be given, because operations may be called in ' +
            'other threads, in which none of JavaScript can run');
    };
}

function overrideFunctions() {
    overrideAnomalies();
    overrideRanges();
    overridePlaces();
    overrideProfiler();
    const rawGrad = GTorch.autograd_grad;
    const {no_grad: noGrad, enable_grad: enableGrad, inference_mode: inferenceMode} = GTorch;
    const rawBackward = GTorch.autograd_backward;

    Object.assign(GTorch, {
        normal,
        arange: fromZero(GTorch.arange),
        fft_fftn: alongNone('fft_fftn'),
        fft_ifftn: alongNone('fft_ifftn'),
        tensor: convert.make,
        tidy: convert.counted('tidy', tidy),
        no_grad: convert.counted('no_grad', func => within('no_grad', func, noGrad)),
        enable_grad: convert.counted('enable_grad', func => within('enable_grad', func, enableGrad)),
        inference_mode(func, ...given) {
            const {mode = true} = convert.bind('inference_mode', [{name: 'mode'}], given);
            const enabled = convert.flag('inference_mode', 'mode', mode);
            return within('inference_mode', func, () => inferenceMode(enabled));
        },
        autocast: withAutocast,
        autograd_grad(outputs, inputs, ...given) {
            const {grad_outputs: weights, retain_graph: retain, create_graph: create, allow_unused: unused} =
                convert.lastOptions('autograd_grad', given,
                    {grad_outputs: [], retain_graph: null, create_graph: false, allow_unused: false});
            convert.flag('autograd_grad', 'create_graph', create);
            convert.flag('autograd_grad', 'allow_unused', unused);
            return restoring(() =>
                rawGrad(convert.list(outputs), convert.list(inputs), weights, retain ?? create, create,
                    unused));
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

// Calls the function of a capture without capturing, on the stream of the capture.
function warmUp(stream, count, func) {
    const current = GTorch.Stream.get_current(stream.get_device());
    if (stream !== current)
        stream.wait_stream(current);
    try {
        for (let i = 0; i < count; i++)
            stream.run(func);
    } finally {
        if (stream !== current)
            current.wait_stream(stream);
    }
}

// Abandons a capture, so that the graph stays empty: its end fails if another stream is current.
function giveUp(capture, stream) {
    const elsewhere = GTorch.StreamGuard.new(stream.get_device().get_default_stream());
    try {
        capture.end();
    } catch {
        // The error says that the capture was abandoned.
    } finally {
        elsewhere.end();
    }
}

function captureFunc(graph, given, pool, func) {
    convert.plainFunction('capture', func);
    if (given !== null && !(given instanceof GTorch.Stream))
        throw new TypeError(`capture: stream must be a Stream or null, not ${convert.describe(given)}`);
    const stream = given ?? GTorch.Stream.new(null, 0);
    const count = graph.get_warmup_iterations();
    if (count > 0)
        warmUp(stream, count, func);
    const capture = GTorch.GraphCapture.new(graph, stream, pool, GTorch.CaptureMode.THREAD_LOCAL);
    let result;
    try {
        result = convert.finished('capture', func(stream));
    } catch (error) {
        giveUp(capture, stream);
        throw error;
    }
    capture.end();
    return result;
}

// The overrides return what their functions return, or throw what those throw. A callback of a C function
// cannot call the same function (see once() in _gtorch_calls.js), so these pass no callback to C.
function overrideRun() {
    convert.addMethods(GTorch.Device.prototype, {
        run(func) {
            return within('run', func, () => GTorch.DeviceGuard.new(this), this);
        },
        run_as_default(func) {
            return within('run_as_default', func, () => GTorch.DefaultDeviceGuard.new(this), this);
        },
    });
    convert.addMethods(GTorch.Stream.prototype, {
        run(func) {
            return within('run', func, () => GTorch.StreamGuard.new(this), this);
        },
    });
    convert.addMethods(GTorch.MemoryPool.prototype, {
        run(func) {
            return within('run', func, () => GTorch.MemoryPoolGuard.new(this), this);
        },
    });
    convert.addMethods(GTorch.CUDAGraph.prototype, {
        // capture(func), or capture(stream, pool, func)
        capture(...given) {
            if (given.length > 3)
                convert.surplus('capture', given.length, 3);
            return captureFunc(this, ...given.length === 1 ? [null, null, ...given] : given);
        },
    });
    convert.addMethods(GTorch, {
        autocast_run(deviceType, dtype, enabled, caches, func) {
            convert.flag('autocast_run', 'cache_enabled', caches);
            return within('autocast_run', func,
                () => GTorch.AutocastGuard.new(deviceType, dtype, enabled, caches));
        },
    });
}

function overrideLists() {
    GTorch.DeviceManager.prototype[Symbol.iterator] = function* () {
        for (let i = 0; i < this.get_n_items(); i++)
            yield this.get_item(i);
    };
}

// Takes seeds below zero as the unsigned number with the same bits.
function overrideSeeds() {
    for (const [owner, name] of [[GTorch, 'manual_seed'], [GTorch.Generator, 'new_with_seed'],
        [GTorch.Generator.prototype, 'set_seed']]) {
        const raw = owner[name];
        owner[name] = convert.counted(name, function (seed) {
            const isNegative = convert.isInteger(seed) && seed < 0 && seed >= -(2 ** 63);
            return raw.call(this, isNegative ? BigInt.asUintN(64, BigInt(seed)) : seed);
        }, 1);
    }
}

// Refuses x.add = 5, which would hide the method of one tensor.
function protectMethods(prototype) {
    const names = new Set([...Object.keys(owners.Tensor.methods), ...Object.getOwnPropertyNames(prototype)]);
    for (const name of names) {
        const own = name in prototype ? Object.getOwnPropertyDescriptor(prototype, name) : undefined;
        if (typeof own?.value === 'function' && name !== 'constructor')
            Object.defineProperty(prototype, name, {writable: false});
    }
}

function _init() {
    GTorch = this;
    convert.setup(GTorch);
    properties.setup(GTorch);
    calls.setup(GTorch);
    defaults.setup(GTorch, {functions, owners});
    derived.setup(GTorch);
    overrideOperations(GTorch.Tensor.prototype);
    overrideTensor(GTorch.Tensor.prototype);
    overrideFunctions();
    forms.setup(GTorch, operations);
    aliases.setup(GTorch);
    tensor.setup(GTorch);
    async.setup(GTorch, {functions, owners});
    overrideRun();
    restore(GTorch.MemorySource.prototype, 'allocate');
    nn.setup(GTorch, keepAlways);
    saved.setup(GTorch, within);
    data.setup(GTorch);
    stores.setup(GTorch);
    train.setup(GTorch);
    library.overrideText(GTorch, [...classes, ...Object.keys(owners)], [GTorch.Module, GTorch.Tensor]);
    overrideSeeds();
    overrideLists();
    modules.setup(GTorch);
    protectMethods(GTorch.Tensor.prototype);
    for (const [space, members] of Object.entries(spaces)) {
        const found = Object.entries(members).map(([name, operation]) => [name, GTorch[operation]]);
        const [outer, inner] = space.split('.');
        const own = Object.freeze(Object.fromEntries(found));
        const value = inner === undefined ? own : Object.freeze({[inner]: own});
        Object.defineProperty(GTorch, outer, {value});
    }
    GTorch.DeviceManager.get_default().connect('memory-pressure', collect);
}
