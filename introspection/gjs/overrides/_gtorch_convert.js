// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Conversions of JavaScript values to arguments of the introspected functions. gjs accepts 1.5 for an
// integer, a string for an enum (as 0) and undefined for anything: here these are errors.

/* exported addMethods argument bind bounded counted describe device dtype element encodeIndex
   enumeration fallback finished flag integer integers isInteger isOptions isWhole item jsonOf
   lastOptions lines list lookUp make makeShown nameOf nulIn number options plainFunction setup surplus
   target tensor
   toArray toTypedArray whole wide */

const {GObject} = imports.gi;

// The largest Number that gjs accepts for a gint64: enough for "to the end".
const MAX_NUMBER = 2 ** 63 - 1024;

const MAX_DIMS = 16; // GTORCH_MAX_DIMS

let GTorch = null;
let typedArrays = null;
let isFloating = null; // a function of a dtype, which does not check it
let isComplex = null;
let dtypes = null;

function setup(namespace) {
    const {DType} = GTorch = namespace;
    isFloating = DType.is_floating_point;
    isComplex = DType.is_complex;
    dtypes = new Set(Object.values(DType).filter(one => typeof one === 'number' && one !== DType.NONE));
    typedArrays = [
        [Float32Array, DType.FLOAT32],
        [Float64Array, DType.FLOAT64],
        [Int8Array, DType.INT8],
        [Uint8Array, DType.UINT8],
        [Uint8ClampedArray, DType.UINT8],
        [Int16Array, DType.INT16],
        [Int32Array, DType.INT32],
        [BigInt64Array, DType.INT64],
    ];
}

// Returns what has the name: those of other namespaces than GTorch begin with theirs.
function lookUp(path) {
    const keys = path.split('.');
    const isElsewhere = keys.length > 1 && GTorch[keys[0]] === undefined;
    const root = keys[0] === 'cairo' ? imports : isElsewhere ? imports.gi : GTorch;
    return keys.reduce((owner, key) => owner[key], root);
}

function isOptions(value) {
    return value !== null && typeof value === 'object' && Object.getPrototypeOf(value) === Object.prototype;
}

// Returns the name of a class as programs write it, without the prefix that gjs adds.
function nameOf(klass) {
    return klass.name.replace(/^(GTorch[A-Za-z]*_|unknown_GTorch)/, '') || GObject.type_name(klass.$gtype);
}

function describe(value) {
    if (value === null || value === undefined)
        return String(value);
    if (Array.isArray(value))
        return `an array of ${value.length}`;
    if (typeof value === 'object')
        return typeof value.constructor === 'function' ? nameOf(value.constructor) : 'an object';
    if (typeof value === 'function')
        return value.name ? `function ${value.name}` : 'a function';
    return `${typeof value} ${String(value)}`;
}

// Returns the members of an options object, with defaults. An unknown member is an error, and so is an
// undefined one, which mostly comes from a misspelt name.
function options(name, given, defaults) {
    if (!isOptions(given))
        throw new TypeError(`${name}: an object with options is wanted, not ${describe(given)}`);
    for (const key in given) {
        if (!Object.hasOwn(defaults, key))
            throw new TypeError(`${name}: there is no option ${key}`);
        if (given[key] === undefined)
            throw new TypeError(`${name}: ${key} is undefined`);
    }
    return {...defaults, ...given};
}

// Returns the same for an options object that may follow other arguments.
function lastOptions(name, given, defaults) {
    if (given.length > 1)
        throw new TypeError(`${name}: one object with options is wanted, not ${given.map(describe)}`);
    return options(name, given.length === 0 ? {} : given[0], defaults);
}

function surplus(name, count, most) {
    const were = count === 1 ? 'argument was' : 'arguments were';
    throw new TypeError(`${name}: ${count} ${were} given, it takes ${most}`);
}

// Returns what may be given alone or in an array. A hole is an undefined item.
function list(value) {
    return Array.isArray(value) ? Array.from(value) : [value];
}

// Wraps a function that takes a fixed number of arguments.
function counted(name, func, most = func.length) {
    const wrapper = function (...given) {
        if (given.length > most)
            surplus(name, given.length, most);
        return func.apply(this, given);
    };
    Object.defineProperty(wrapper, 'length', {value: most, configurable: true});
    return wrapper;
}

// Adds methods to a prototype. Those with a fixed number of parameters refuse more arguments; those with rest
// parameters count their own.
function addMethods(prototype, methods) {
    for (const [name, func] of Object.entries(methods)) {
        const counts = /^[^)]*\.\.\./.test(Function.prototype.toString.call(func));
        prototype[name] = counts ? func : counted(name, func);
    }
}

// What is wrong with a text that has a NUL.
function nulIn(text) {
    return `has a NUL at ${text.indexOf('\0')}, with which texts end in C`;
}

// Returns the given arguments by name: positional ones, then the members of an options object. Only the
// first nPositional may be given by position.
function bind(name, args, given, nPositional = args.length) {
    const positional = [...given];
    const more = positional.length > 0 && isOptions(positional.at(-1)) ? positional.pop() : {};
    const found = {};
    if (positional.length > nPositional)
        surplus(name, positional.length, nPositional);
    positional.forEach((value, i) => (found[args[i].name] = value));
    for (const key in more) {
        if (!args.some(arg => arg.name === key))
            throw new TypeError(`${name}: there is no option ${key}`);
        if (Object.hasOwn(found, key))
            throw new TypeError(`${name}: ${key} is given by position and by name`);
        found[key] = more[key];
    }
    const lost = Object.keys(found).find(key => found[key] === undefined);
    if (lost !== undefined)
        throw new TypeError(`${name}: ${lost} is undefined`);
    const missing = args.find(arg => arg.required && !Object.hasOwn(found, arg.name));
    if (missing !== undefined)
        throw new TypeError(`${name}: ${missing.name} is missing`);
    return found;
}

function flag(name, argName, value) {
    if (typeof value !== 'boolean')
        throw new TypeError(`${name}: ${argName} must be true or false, not ${describe(value)}`);
    return value;
}

function isInteger(value) {
    return typeof value === 'bigint' || Number.isInteger(value);
}

function integer(name, argName, value) {
    if (!isInteger(value))
        throw new TypeError(`${name}: ${argName} must be an integer, not ${describe(value)}`);
    if (Math.abs(Number(value)) > MAX_NUMBER)
        throw new RangeError(`${name}: ${argName} does not fit into 64 bits: ${value}`);
    return typeof value === 'bigint' ? Number(value) : value;
}

const BITS = {int32: 32, uint8: 8, uint32: 32, int64: 64, uint64: 64};

// Converts to an integer of one of C's types. A BigInt is kept where gjs accepts it, for 64 bits.
function bounded(name, argName, kind, value) {
    if (!isInteger(value))
        throw new TypeError(`${name}: ${argName} must be an integer, not ${describe(value)}`);
    if (value >= 0 && value < 128)
        return Number(value);
    const wide = BigInt(value);
    const [bits, isUnsigned] = [BITS[kind], kind.startsWith('u')];
    if ((isUnsigned ? BigInt.asUintN(bits, wide) : BigInt.asIntN(bits, wide)) !== wide) {
        const range = isUnsigned ? `${bits} bits without a sign` : `${bits} bits`;
        throw new RangeError(`${name}: ${argName} does not fit into ${range}: ${value}`);
    }
    return bits === 64 ? value : Number(wide);
}

function number(name, argName, value) {
    if (typeof value === 'bigint' && BigInt(Number(value)) === value)
        return Number(value);
    if (typeof value === 'bigint')
        throw new RangeError(`${name}: ${argName} is ${value}, which no number has exactly`);
    if (typeof value !== 'number')
        throw new TypeError(`${name}: ${argName} must be a number, not ${describe(value)}`);
    return value;
}

// Converts to a number of the tensor's dtype: a BigInt is kept, and selects the form for integers.
function wholeOrNumber(name, argName, value) {
    if (typeof value !== 'bigint')
        return number(name, argName, value);
    if (BigInt.asIntN(64, value) !== value)
        throw new RangeError(`${name}: ${argName} does not fit into 64 bits: ${value}`);
    return value;
}

// Converts to a number of that form: an absent bound is the end of the range.
function whole(name, argName, value) {
    if (value === Infinity || value === -Infinity)
        return value > 0 ? 2n ** 63n - 1n : -(2n ** 63n);
    if (!isInteger(value))
        throw new TypeError(`${name}: ${argName} must be an integer beside a BigInt, not ${describe(value)}`);
    return wholeOrNumber(name, argName, BigInt(value));
}

function integers(name, argName, value) {
    if (value === null)
        return [];
    if (isInteger(value))
        value = [value];
    if (value instanceof BigInt64Array || value instanceof Int32Array)
        return value;
    if (!Array.isArray(value))
        throw new TypeError(`${name}: ${argName} must be an array of integers, not ${describe(value)}`);
    const found = Array.from(value, v => // and holes
        typeof v === 'bigint' ? wholeOrNumber(name, argName, v) : integer(name, argName, v));
    // gjs converts a BigInt in an array to a Number, but not one in a typed array.
    return found.some(v => typeof v === 'bigint') ? BigInt64Array.from(found, BigInt) : found;
}

const numbersOf = new Map(); // for each enumeration

// The names of the members, as an error lists them.
function choices(members) {
    const names = Object.keys(members).filter(key => typeof members[key] === 'number')
        .map(key => `'${key.toLowerCase().replace(/_/g, '-')}'`);
    return names.length > 1 ? `${names.slice(0, -1).join(', ')} or ${names.at(-1)}` : names[0];
}

function enumeration(name, argName, type, value) {
    const members = lookUp(type);
    if (!numbersOf.has(type))
        numbersOf.set(type, new Set(Object.values(members).filter(one => typeof one === 'number')));
    const key = typeof value === 'string' ? value.toUpperCase().replace(/-/g, '_') : null;
    if (key !== null && typeof members[key] === 'number')
        return members[key];
    if (!numbersOf.get(type).has(value)) {
        throw new TypeError(
            `${name}: ${argName} must be a ${type.includes('.') ? '' : 'GTorch.'}${type}, ` +
            `${choices(members)}, not ${describe(value)}`);
    }
    return value;
}

// Returns DType.NONE where none is given. That itself is no dtype: C passes it for one that is left out.
function dtype(name, value) {
    if (value === null || value === undefined)
        return GTorch.DType.NONE;
    const found = isDType(value) ? value : enumeration(name, 'dtype', 'DType', value);
    if (found === GTorch.DType.NONE)
        throw new TypeError(`${name}: ${describe(value)} is no dtype, and null stands for none`);
    return found;
}

function isDType(value) {
    return dtypes.has(value);
}

function device(name, value, argName = 'device') {
    if (value === null || value === undefined)
        return null;
    if (typeof value === 'string')
        return GTorch.Device.new_from_string(value);
    if (Number.isInteger(value))
        return GTorch.Device.cuda(value);
    if (!(value instanceof GTorch.Device)) {
        throw new TypeError(`${name}: ${argName} must be a Device, a name such as 'cuda:0' or the number ` +
            `of a GPU, not ${describe(value)}`);
    }
    return value;
}

function isPlace(value) {
    return value instanceof GTorch.Device || value === null ||
        typeof value === 'string' && /^(cpu|cuda)(:|$)/.test(value);
}

// Converts the target of a conversion: to(device, dtype), to(dtype), to(tensor) or to({device, dtype}),
// each followed by flags.
function target(name, given, flags = []) {
    const [first] = given;
    if (typeof first === 'number' && !isDType(first)) { // a dtype is a number to JavaScript
        throw new TypeError(`${name}: number ${first} is no dtype: a GPU is written as 'cuda:0', and a ` +
            "dtype as GTorch.float32 or 'float32'");
    }
    if (typeof first === 'string' && !isPlace(first) &&
        typeof GTorch.DType[first.toUpperCase()] !== 'number') {
        throw new TypeError(`${name}: a device such as 'cuda:0', a dtype or a tensor is wanted, not ` +
            describe(first));
    }
    const places = {device: null, dtype: null};
    const isLike = first instanceof GTorch.Tensor;
    const hasDevice = isLike || isPlace(first) || isOptions(first);
    const keys = [...hasDevice ? ['device'] : [], 'dtype', ...flags];
    const args = keys.map(key => ({name: key}));
    if (!hasDevice)
        args.push({name: 'device'}); // by name only
    const list = isLike ? [first.get_device(), first.get_dtype(), ...given.slice(1)] : given;
    const values = bind(name, args, list, keys.length);
    const {device: where, dtype: kind, ...others} = {...places, ...values};
    if (where === null && kind === null) {
        const what = given.map(describe).join(', ') || 'nothing';
        throw new TypeError(`${name}: a device, a dtype or a tensor is wanted, not ${what}`);
    }
    for (const key in others)
        flag(name, key, others[key]);
    return {device: device(name, where), dtype: kind === null ? null : dtype(name, kind), ...others};
}

// Returns a number as a zero-dimensional tensor, which takes part in type promotion by its kind only.
function tensor(value, like = null) {
    if (value instanceof GTorch.Tensor)
        return value;
    const {FLOAT64, COMPLEX128} = GTorch.DType;
    const isWide = like !== null && [FLOAT64, COMPLEX128].includes(like.get_dtype());
    const options = {device: like?.get_device() ?? null};
    // in a narrower dtype, the number would be rounded before the computation
    if (isWide && !isWhole(value))
        options.dtype = FLOAT64;
    return make(value, options);
}

// Returns a value that is written into a tensor: a number that its dtype cannot represent is an error, as
// in fill_().
function element(target, value) {
    if (typeof value !== 'number' && typeof value !== 'bigint')
        return tensor(value, target);
    return GTorch.empty([], {dtype: target.get_dtype(), device: target.get_device()}).fill_(value);
}

// Parses the default of a row: JSON has no infinity, and integers beyond 2^53 are inexact.
function fallback(kind, text) {
    if (typeof text !== 'string' || !['int', 'double', 'number'].includes(kind))
        return text;
    if (text.startsWith('NONE'))
        return GTorch[text];
    const value = Number(text.replace('inf', 'Infinity'));
    return kind === 'int' ? Math.max(-MAX_NUMBER, Math.min(MAX_NUMBER, value)) : value;
}

// Checks a function that runs inside a guard: a generator or async function would continue after its end.
function plainFunction(name, func) {
    if (typeof func !== 'function')
        throw new TypeError(`${name}: a function is wanted, not ${describe(func)}`);
    const kind = Object.prototype.toString.call(func).slice('[object '.length, -1);
    if (kind !== 'Function') {
        throw new TypeError(`${name}: the function must be a plain one, not ${kind}, which goes on after ` +
            `${name} has returned; call ${name} for each part that does not wait`);
    }
    return func;
}

// Returns the result of a function, which must not continue later either.
function finished(name, value) {
    const kind = Object.prototype.toString.call(value);
    if (/Promise|Generator/.test(kind) || typeof value?.then === 'function') {
        throw new TypeError(`${name}: the function gave what computes later, after ${name} has returned; ` +
            `call ${name} for each part that does not wait`);
    }
    return value;
}

function tensorArray(name, argName, value) {
    if (!Array.isArray(value))
        throw new TypeError(`${name}: ${argName} must be an array of tensors, not ${describe(value)}`);
    const wrong = Array.from(value).findIndex(v => !(v instanceof GTorch.Tensor)); // and holes
    if (wrong >= 0) {
        throw new TypeError(`${name}: element ${wrong} of ${argName} must be a tensor, not ` +
            describe(value[wrong]));
    }
    return value;
}

// Converts one argument of a call. A number for a tensor is kept: the wrapper knows whether there is a
// form for it.
function argument(name, argName, kind, value) {
    switch (kind) {
    case 'Tensor':
        if (value instanceof GTorch.Tensor || typeof value === 'number')
            return value;
        if (typeof value === 'bigint')
            return wholeOrNumber(name, argName, value);
        if (typeof value === 'boolean')
            return tensor(value);
        throw new TypeError(`${name}: ${argName} must be a tensor or a number, not ${describe(value)}`);
    case 'Tensor?':
        return value === null ? null : argument(name, argName, 'Tensor', value);
    case 'Tensor[]':
        return tensorArray(name, argName, value);
    case 'int':
        if (typeof value === 'bigint')
            return wholeOrNumber(name, argName, value);
        return integer(name, argName, value);
    case 'double':
        return number(name, argName, value);
    case 'number':
        return wholeOrNumber(name, argName, value);
    case 'whole':
        return whole(name, argName, value);
    case 'bool':
        return flag(name, argName, value);
    case 'int[]':
        return integers(name, argName, value);
    case 'DType':
        return dtype(name, value);
    case 'DType or NONE':
        return enumeration(name, argName, 'DType', value ?? GTorch.DType.NONE);
    case 'Device?':
        return device(name, value);
    case 'Generator?':
        if (value !== null && !(value instanceof GTorch.Generator))
            throw new TypeError(`${name}: generator must be a GTorch.Generator, not ${describe(value)}`);
        return value;
    default:
        return enumeration(name, argName, kind.slice('enum:'.length), value);
    }
}

// --- indexing -------------------------------------------------------------------------------------

const Kind = {INT: 0, SLICE: 1, ELLIPSIS: 2, NEW_AXIS: 3, TENSOR: 4, BOOL: 5}; // GTorchIndexKind

function isRange(item) {
    return item === ':' || isOptions(item) || Array.isArray(item) && [1, 2, 3].includes(item.length);
}

function rangeOf(item) {
    if (!Array.isArray(item))
        return item === ':' ? {} : item;
    return Object.fromEntries(item.map((value, i) => [['start', 'stop', 'step'][i], value]));
}

// t.at(0, [1, 3], '...', null, mask): an integer; a range as [start, stop, step] or {start, stop, step};
// '...' and ':' as in Python; null for a new dimension; a tensor of indices or booleans.
function encodeIndex(given) {
    const items = [];
    const tensors = [];

    for (const item of given) {
        if (isInteger(item)) {
            items.push(Kind.INT, integer('at', 'an index', item), 0, 0);
        } else if (item === null) {
            items.push(Kind.NEW_AXIS, 0, 0, 0);
        } else if (item === '...') {
            items.push(Kind.ELLIPSIS, 0, 0, 0);
        } else if (typeof item === 'boolean') {
            items.push(Kind.BOOL, item ? 1 : 0, 0, 0);
        } else if (item instanceof GTorch.Tensor) {
            items.push(Kind.TENSOR, tensors.length, 0, 0);
            tensors.push(item);
        } else if (isRange(item)) {
            const {start, stop, step} = options('at', rangeOf(item), {start: null, stop: null, step: null});
            const range = [start ?? 0, stop ?? MAX_NUMBER, step ?? 1];
            items.push(Kind.SLICE, ...range.map(v => integer('at', 'a range', v)));
        } else {
            throw new TypeError(
                "at: an index is an integer, [start, stop, step], '...', null or a tensor, " +
                `not ${describe(item)}`);
        }
    }
    return [items, tensors];
}

// --- values ---------------------------------------------------------------------------------------

function shapeOf(data) {
    const shape = [];
    for (; Array.isArray(data); data = data[0]) {
        shape.push(data.length);
        if (shape.length > MAX_DIMS)
            throw new RangeError(`tensor: arrays are nested deeper than ${MAX_DIMS} dimensions`);
    }
    return shape;
}

function flatten(data, shape, depth, values) {
    if (depth === shape.length) {
        if (typeof data !== 'number' && typeof data !== 'boolean' && typeof data !== 'bigint')
            throw new TypeError(`tensor: a tensor is made of numbers, not of ${describe(data)}`);
        values.push(data);
    } else {
        if (!Array.isArray(data) || data.length !== shape[depth])
            throw new TypeError(`tensor: depth ${depth} takes ${shape[depth]} items, not ${describe(data)}`);
        for (let i = 0; i < data.length; i++) // including holes
            flatten(data[i], shape, depth + 1, values);
    }
    return values;
}

function fromTypedArray(data, shape) {
    const entry = typedArrays.find(([type]) => data instanceof type);
    if (!entry) {
        const kinds = typedArrays.map(([type]) => type.name).join(', ');
        throw new TypeError(`tensor: no dtype has the elements of a ${describe(data)}: there are those of ` +
            `${kinds}; Array.from() makes an array of numbers, whose dtype may be chosen`);
    }
    const made = GTorch.empty(shape ?? [data.length], {dtype: entry[1], device: GTorch.Device.cpu()});
    if (made.get_numel() !== data.length) {
        const n = made.get_numel();
        throw new RangeError(`tensor: shape [${made.get_shape().join(', ')}] has ${n} elements, ` +
            `and the array ${data.length}`);
    }
    toTypedArray(made).set(data); // the only copy
    return made;
}

// Beyond 64 bits a Number counts as a double, and a BigInt is an error.
function isWhole(value) {
    return typeof value !== 'number' || Number.isInteger(value) && value >= -(2 ** 63) && value < 2 ** 63;
}

// gjs accepts no Number below the negative of the largest one that it accepts.
function isWide(value) {
    const isExact = typeof value === 'number' || BigInt(Number(value)) === value;
    return !isExact || value < -MAX_NUMBER;
}

// Converts a whole number to one that gjs passes to C as 64 bits.
function wide(name, argName, value) {
    const isExact = typeof value === 'number' && value >= -MAX_NUMBER;
    return isExact ? value : wholeOrNumber(name, argName, BigInt(value));
}

// Makes a tensor of int64 of an array of integers; leaves another value as it is.
function ofIntegers(name, value) {
    if (!Array.isArray(value))
        return value;
    const found = integers(name, 'a length', value);
    return GTorch.Tensor.new_from_ints(Array.from(found, Number), [found.length], GTorch.DType.INT64, null);
}

const MANY = 64;
const LARGEST_FLOAT = 2 ** 128 - 2 ** 103; // what is less is rounded to a finite float32

// Writes the numbers of nested arrays to an array of float64. Returns the position after them, or -1 if there
// is something else, such as a BigInt or arrays of different lengths.
function copyNumbers(data, shape, depth, target, start) {
    const isLast = depth === shape.length - 1;
    let position = start;

    if (!Array.isArray(data) || data.length !== shape[depth])
        return -1;
    for (let i = 0; i < data.length && position >= 0; i++) {
        if (!isLast)
            position = copyNumbers(data[i], shape, depth + 1, target, position);
        else if (typeof data[i] === 'number')
            target[position++] = data[i];
        else
            return -1;
    }
    return position;
}

// Many numbers, by way of a typed array: gjs takes microseconds for each element of an array that it passes
// to C. Returns null for what needs the checks of C.
function fromMany(data, shape, wanted, where, fractions) {
    const {DType} = GTorch;
    const values = new Float64Array(shape.reduce((product, size) => product * size, 1));
    if (copyNumbers(data, shape, 0, values, 0) !== values.length)
        return null;
    const isExact = values.every(Number.isSafeInteger);
    if (!isExact && values.every(Number.isInteger))
        return null;
    const kind = wanted !== DType.NONE ? wanted : isExact ? DType.INT64 : fractions;
    const isFloat = v => !(Math.abs(v) >= LARGEST_FLOAT) || Math.abs(v) === Infinity;
    const isHeld = kind === DType.FLOAT64 || kind === DType.INT64 && isExact ||
        kind === DType.FLOAT32 && values.every(isFloat);
    return isHeld ? fromTypedArray(values, shape).to(kind).to(where ?? GTorch.get_default_device()) : null;
}

// JavaScript has one kind of number: [1, 2] becomes int64 as in Python, [1, 2.5] the dtype of fractions.
function fromNumbers(data, wanted, where, fractions = GTorch.get_default_dtype()) {
    const {DType, Tensor} = GTorch;
    const shape = shapeOf(data);
    let made = shape.length > 0 && shape.reduce((product, size) => product * size, 1) >= MANY
        ? fromMany(data, shape, wanted, where, fractions) : null;
    if (made !== null)
        return made;
    const values = flatten(data, shape, 0, []);

    if (values.length > 0 && values.every(v => typeof v === 'boolean')) {
        made = Tensor.new_from_bools(values, shape, where);
    } else if (values.length > 0 && values.every(isWhole) && !(isFloating(wanted) && values.some(isWide))) {
        values.filter(v => typeof v === 'bigint').forEach(v => wholeOrNumber('tensor', 'an element', v));
        const plain = wanted === DType.NONE || wanted === DType.BOOL || isComplex(wanted);
        const wide = values.some(isWide);
        if (wide && (plain || wanted === DType.INT64)) { // gjs would round them
            made = fromTypedArray(BigInt64Array.from(values, BigInt), shape);
            return where === null ? made : made.to(where);
        }
        made = Tensor.new_from_ints(values.map(Number), shape, plain ? DType.INT64 : wanted, where);
    } else {
        const kind = wanted === DType.NONE ? fractions : isComplex(wanted) ? DType.FLOAT64 : wanted;
        made = Tensor.new_from_doubles(values.map(Number), shape, kind, where);
    }
    return made;
}

function make(data, ...given) {
    const {dtype: wanted, device: where, requires_grad: grad, shape} =
        lastOptions('tensor', given, {dtype: null, device: null, requires_grad: false, shape: null});
    const kind = dtype('tensor', wanted);
    const place = device('tensor', where);
    let made;

    if (data instanceof GTorch.Tensor)
        made = data.detach().clone();
    else if (ArrayBuffer.isView(data))
        made = fromTypedArray(data, shape).to(place ?? GTorch.get_default_device());
    else
        made = fromNumbers(data, kind, place);
    if (place !== null && made.get_device() !== place)
        made = made.to(place);
    if (kind !== GTorch.DType.NONE)
        made = made.to(kind);
    return grad ? made.requires_grad_() : made;
}

// Makes a tensor of an array for what shows its numbers: they keep all their digits, whatever the default
// dtype is, since nothing is computed with them.
function makeShown(data) {
    return ArrayBuffer.isView(data) ? make(data)
        : fromNumbers(data, GTorch.DType.NONE, null, GTorch.DType.FLOAT64);
}

function item(self) {
    const {DType} = GTorch;
    const kind = self.get_dtype();

    if (isFloating(kind))
        return self.item_double();
    if (isComplex(kind))
        return self.item_complex().slice(1);
    return kind === DType.BOOL ? self.item_bool()[1] : self.item_int();
}

function nest(values, shape) {
    if (shape.length === 0)
        return values[0];
    if (shape.includes(0))
        return Array.from({length: shape[0]}, () => nest([], shape.slice(1)));
    for (const size of shape.slice(1).reverse()) {
        const rows = [];
        for (let i = 0; i < values.length; i += size)
            rows.push(values.slice(i, i + size));
        values = rows;
    }
    return values;
}

function toArray(self) {
    const {DType} = GTorch;
    const kind = self.get_dtype();
    let values;

    if (isFloating(kind)) {
        values = Array.from(self.to_doubles());
    } else if (isComplex(kind)) {
        const parts = self.to_doubles();
        values = Array.from({length: parts.length / 2}, (_, i) => [parts[2 * i], parts[2 * i + 1]]);
    } else {
        values = Array.from(self.to_ints(), kind === DType.BOOL ? Boolean : Number);
    }
    return nest(values, self.get_shape());
}

// The lines of a text, or the text, if it has one line.
function lines(text) {
    return text.includes('\n') ? text.split('\n') : text;
}

// JSON has no numbers that are infinite or NaN, and would write null.
function jsonOf(value) {
    if (Array.isArray(value))
        return value.map(jsonOf);
    return typeof value === 'number' && !Number.isFinite(value) ? String(value) : value;
}

// Returns the library's memory itself: writes to the array change the tensor. A read-only tensor is copied,
// since an array cannot be protected.
function toTypedArray(self) {
    const entry = self.get_dtype() === GTorch.DType.BOOL ? [Uint8Array] // of 0 and 1
        : typedArrays.find(([, kind]) => kind === self.get_dtype());
    if (!entry)
        throw new TypeError(`toTypedArray: there is no array of ${GTorch.DType.get_name(self.get_dtype())}`);
    const shown = self.is_read_only() ? self.detach().clone() : self;
    const bytes = shown.get_bytes().toArray();
    return new entry[0](bytes.buffer, bytes.byteOffset, self.get_numel());
}
