// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Operations with the arguments that PyTorch's have beside those of the rows: by rules for all of them, such
// as results that are written into given tensors and properties of new tensors, and forms of single ones.

/* exported functionOf renamed setup */

const convert = imports.overrides._gtorch_convert;

let GTorch;

const CREATION = ['layout', 'memory_format', 'pin_memory', 'requires_grad'];
// The activations and dropouts that may work in place.
const IN_PLACE = ['alpha_dropout', 'celu', 'dropout', 'dropout1d', 'dropout2d', 'dropout3d', 'elu',
    'feature_alpha_dropout', 'hardsigmoid', 'hardswish', 'hardtanh', 'leaky_relu', 'mish', 'relu', 'relu6',
    'rrelu', 'selu', 'silu', 'threshold'];
const MANTISSAS = {float32: 24, float64: 53, float16: 11, bfloat16: 8};
const BITS = {int8: 7, uint8: 8, int16: 15, int32: 31, int64: 53, bool: 1};

// Returns the options under the names of the row.
function renamed(name, options, others) {
    const found = {};
    for (const key in options) {
        const own = others[key] ?? key;
        if (Object.hasOwn(found, own))
            throw new TypeError(`${name}: ${own} is given twice, by two names`);
        found[own] = options[key];
    }
    return found;
}

function lastOptions(given) {
    return given.length > 0 && convert.isOptions(given.at(-1)) ? given.at(-1) : null;
}

// Returns the arguments without the options of these names, and those options.
function split(given, names) {
    const taken = {};
    const rest = {...given.at(-1)};
    for (const name of names) {
        if (name in rest) {
            taken[name] = rest[name];
            delete rest[name];
        }
    }
    const left = given.slice(0, -1);
    return [Object.keys(rest).length > 0 ? [...left, rest] : left, taken];
}

// Returns the arguments with further options.
function withOptions(given, more) {
    const options = lastOptions(given);
    return [...options === null ? given : given.slice(0, -1), {...options ?? {}, ...more}];
}

function has(given, names) {
    const options = lastOptions(given);
    return options !== null && names.some(name => name in options);
}

function describe(shape) {
    return `[${shape.join(', ')}]`;
}

function rank(dtype) {
    const {DType} = GTorch;
    if (dtype === DType.BOOL)
        return 0;
    return DType.is_complex(dtype) ? 3 : DType.is_floating_point(dtype) ? 2 : 1;
}

// Copies a result into a tensor that must be able to represent it.
function overwrite(name, target, made) {
    if (!(target instanceof GTorch.Tensor) || !(made instanceof GTorch.Tensor)) {
        const wrong = convert.describe(target instanceof GTorch.Tensor ? made : target);
        throw new TypeError(`${name}: out must be a tensor for each tensor of the result, not ${wrong}`);
    }
    const [wanted, found] = [target.get_shape(), made.get_shape()].map(describe);
    if (wanted !== found) {
        throw new RangeError(`${name}: out has the shape ${wanted} and the result ${found}: ` +
            'a tensor is not resized');
    }
    if (rank(made.get_dtype()) > rank(target.get_dtype())) {
        const [from, to] = [made, target].map(one => GTorch.DType.get_name(one.get_dtype()));
        throw new TypeError(`${name}: a result of ${from} cannot be written into a tensor of ${to}`);
    }
    return target.copy_(made);
}

function writeOut(name, out, made) {
    const targets = Array.isArray(out) ? out : [out];
    const results = Array.isArray(made) ? [...made] : [made];
    if (targets.length !== results.length)
        throw new TypeError(`${name}: out has ${targets.length} tensors, and the result ${results.length}`);
    results.forEach((result, i) => {
        if (result instanceof GTorch.Tensor && result.get_requires_grad()) {
            throw new Error(`${name}: a result that is written into out has no gradient: give tensors ` +
                'that do not require one, or call it in no_grad()');
        }
        overwrite(name, targets[i], result);
    });
    return out;
}

// zeros_like(x) and x.new_zeros() on another device: the function that they are named by.
function elsewhere(name, like, given, device) {
    const base = name.replace(/^new_|_like$/g, '');
    const options = {dtype: like.get_dtype(), ...lastOptions(given) ?? {}, device};
    const values = lastOptions(given) === null ? given : given.slice(0, -1);
    if (!name.startsWith('new_'))
        values.splice(base === 'randint' ? values.length : 0, 0, like.get_shape());
    return GTorch[base](...values, options);
}

function create(name, object, func, given) {
    const [left, taken] = split(given, [...CREATION, ...object === null ? [] : ['device']]);
    const {device = null, layout = null, memory_format: format = null, pin_memory: pinned = false,
        requires_grad: grad = false} = taken;
    convert.flag(name, 'requires_grad', grad);
    if (pinned !== null && convert.flag(name, 'pin_memory', pinned))
        throw new Error(`${name}: pin_memory is not supported: tensors are pinned by loaders of data`);
    if (layout !== null && layout !== 'strided')
        throw new Error(`${name}: layout ${layout} is not supported: all tensors are strided`);
    if (![null, 'contiguous_format', 'preserve_format'].includes(format))
        throw new Error(`${name}: memory_format ${format} is not supported`);
    const where = convert.device(name, device);
    let made = where === null || where.resolve().equal(object.get_device())
        ? func.apply(object ?? GTorch, left) : elsewhere(name, object, left, where);
    if (format === 'contiguous_format')
        made = made.contiguous();
    return grad ? made.requires_grad_() : made;
}

// Adds the options that the rules give to an operation.
function lenient(name, owner, {method, creates}) {
    const plain = owner[name];
    const mayBeInPlace = IN_PLACE.includes(name);
    const own = [...creates ? CREATION : [], ...creates && method ? ['device'] : [],
        ...mayBeInPlace ? ['inplace'] : []];
    const named = ['out', ...own];
    const func = function (...given) {
        if (!has(given, named))
            return plain.apply(this, given);
        const [left, {out = null, inplace = false}] = split(given, ['out', 'inplace']);
        if (!mayBeInPlace && has(given, ['inplace']))
            throw new TypeError(`${name}: there is no option inplace`);
        if (convert.flag(name, 'inplace', inplace)) {
            const within = owner[`${name}_`];
            return within !== undefined ? within.apply(this, left)
                : this.copy_(plain.apply(this.get_requires_grad() ? this.clone() : this, left));
        }
        const made = creates && has(left, own) ? create(name, method ? this : null, plain, left)
            : plain.apply(this, left);
        return out === null ? made : writeOut(name, out, made);
    };
    owner[name] = Object.assign(func, {raw: plain.raw});
}

// Returns a method as a function, whose tensor may be given by name, and be a number where a tensor follows.
function functionOf(name, {args, numberFirst}, prototype) {
    return (...given) => {
        let [self, ...rest] = given;
        if (given.length === 1 && convert.isOptions(self)) {
            const key = ['input', 'self', args[0][0]].find(one => one in self);
            if (key === undefined)
                throw new TypeError(`${name}: input is missing`);
            const [left, taken] = split(given, [key]);
            [self, rest] = [taken[key], left];
        }
        if (!(self instanceof GTorch.Tensor)) {
            const others = [...rest, ...Object.values(lastOptions(rest) ?? {})];
            const like = others.find(one => one instanceof GTorch.Tensor);
            if (!numberFirst || like === undefined || !['number', 'bigint'].includes(typeof self))
                throw new TypeError(`${name}: input must be a tensor, not ${convert.describe(self)}`);
            self = convert.tensor(self, like);
        }
        return prototype[name].apply(self, rest);
    };
}

// --- forms of single operations ---------------------------------------------------------------------

// Replaces a function for the arguments that when() is true of.
function form(owner, name, when, func) {
    const plain = owner[name];
    const both = function (...given) {
        return when.call(this, given) ? func.call(this, given, plain) : plain.apply(this, given);
    };
    owner[name] = Object.assign(both, {raw: plain?.raw});
}

const optioned = (...names) => given => has(given, names);

function choose(name, argName, value, known) {
    if (!known.includes(value)) {
        const all = known.map(String).join(', ');
        throw new TypeError(`${name}: ${argName} must be one of ${all}, not ${convert.describe(value)}`);
    }
    return value;
}

function isWhole(value) {
    return value instanceof GTorch.Tensor ? rank(value.get_dtype()) < 2 : convert.isInteger(value);
}

function arithmetic(prototype) {
    for (const tail of ['', '_']) {
        form(prototype, `div${tail}`, optioned('rounding_mode'), function (given, plain) {
            const name = `div${tail}`;
            const [left, {rounding_mode: mode}] = split(given, ['rounding_mode']);
            if (choose(name, 'rounding_mode', mode, [null, 'floor', 'trunc']) === null)
                return plain.apply(this, left);
            const {other} = convert.bind(name, [{name: 'other', required: true}], left);
            let made;
            if (mode === 'floor')
                made = this.floor_divide(other);
            else if (isWhole(this) && isWhole(other))
                made = this.sub(this.fmod(other)).floor_divide(other);
            else
                made = this.div(other).trunc();
            return tail === '' ? made : overwrite(name, this, made);
        });
        form(prototype, `round${tail}`, optioned('decimals'), function (given, plain) {
            const [left, {decimals}] = split(given, ['decimals']);
            const places = convert.integer('round', 'decimals', decimals);
            if (places === 0)
                return plain.apply(this, left);
            if (!GTorch.DType.is_floating_point(this.get_dtype())) {
                const kind = GTorch.DType.get_name(this.get_dtype());
                throw new TypeError(`round: decimals ${places} are for floating-point numbers, not ${kind}`);
            }
            const factor = 10 ** Math.abs(places);
            const made = places > 0 ? this.mul(factor).round().div(factor)
                : this.div(factor).round().mul(factor);
            return tail === '' ? made : overwrite('round_', this, made);
        });
    }
    for (const name of ['std', 'std_mean', 'var', 'var_mean']) {
        const isFlag = given => typeof given[0] === 'boolean';
        form(prototype, name, given => isFlag(given) || has(given, ['unbiased']), function (given, plain) {
            const named = has(given, ['unbiased']);
            if (isFlag(given) && (named || given.length > 1 && !convert.isOptions(given[1])))
                throw new TypeError(`${name}: ${given[0]} alone is unbiased, and stands without a dim`);
            const [left, {unbiased}] = named ? split(given, ['unbiased'])
                : [given.slice(1), {unbiased: given[0]}];
            if (has(left, ['correction']) || left.filter(one => !convert.isOptions(one)).length > 1)
                throw new TypeError(`${name}: unbiased or a correction is wanted, not both`);
            const correction = convert.flag(name, 'unbiased', unbiased) ? 1 : 0;
            const values = lastOptions(left) === null ? left : left.slice(0, -1);
            return plain.call(this, ...values, {...lastOptions(left) ?? {}, correction});
        });
    }
    form(prototype, 'gelu', given => ['none', 'tanh'].includes(given[0]) || has(given, ['approximate']),
        function (given, plain) {
            const {approximate} = convert.bind('gelu', [{name: 'approximate'}], given);
            return plain.call(this, choose('gelu', 'approximate', approximate, ['none', 'tanh']) === 'tanh');
        });
    form(prototype, 'norm', given => typeof given[0] === 'string' || has(given, ['dtype']) ||
        typeof lastOptions(given)?.p === 'string', function (given, plain) {
        const names = ['p', 'dim', 'keepdim', 'dtype'].map(name => ({name}));
        const {p = 2, dtype = null, ...more} = convert.bind('norm', names, given);
        if (p === 'nuc')
            throw new Error("norm: the norm 'nuc' is linalg.svdvals(x).sum()");
        if (typeof p === 'string')
            choose('norm', 'p', p, ['fro']);
        return plain.call(dtype === null ? this : this.to(dtype), {...more, p: p === 'fro' ? 2 : p});
    });
}

// median(1), max(1), min({dim: 1}): along a dimension, with the indices.
function alongDims(prototype) {
    for (const name of ['max', 'median', 'min', 'nanmedian']) {
        form(prototype, name, given => given.length > 0, function (given) {
            if (given[0] instanceof GTorch.Tensor && name.startsWith('m') && name !== 'median')
                return this[`${name}imum`](...given);
            return this[`${name}_dim`](...given);
        });
    }
}

function places(prototype) {
    form(prototype, 'nonzero', optioned('as_tuple'), function (given, plain) {
        const [left, {as_tuple: apart}] = split(given, ['as_tuple']);
        const self = this.get_n_dims() > 0 ? this : this.unsqueeze(0);
        return convert.flag('nonzero', 'as_tuple', apart) ? plain.apply(self, left).unbind(1)
            : plain.apply(this, left);
    });
    form(GTorch, 'where', given => given.length === 1 && given[0] instanceof GTorch.Tensor,
        ([condition]) => condition.nonzero({as_tuple: true}));
    prototype.where = convert.counted('where', function (condition, other) {
        return GTorch.where(condition, this, other);
    });
    for (const tail of ['', '_']) {
        const name = `scatter${tail}`;
        form(prototype, name, optioned('value', 'reduce'), function (given, plain) {
            const names = ['dim', 'index', 'src', 'value', 'reduce'].map(one => ({name: one}));
            const {dim, index, reduce = null, ...one} = convert.bind(name, names, given);
            if (Object.keys(one).length !== 1)
                throw new TypeError(`${name}: either src or value is wanted`);
            let [src] = Object.values(one);
            if (choose(name, 'reduce', reduce, [null, 'add', 'multiply']) === null)
                return plain.call(this, dim, index, src);
            const like = {dtype: this.get_dtype(), device: this.get_device()};
            if (!(src instanceof GTorch.Tensor))
                src = GTorch.full(index.get_shape(), src, like);
            if (reduce === 'add')
                return this[`scatter_add${tail}`](dim, index, src);
            const made = this.scatter_reduce(dim, index, src, 'prod');
            return tail === '' ? made : overwrite(name, this, made);
        });
    }
    form(prototype, 'gather', optioned('sparse_grad'), function (given, plain) {
        const [left, {sparse_grad: sparse}] = split(given, ['sparse_grad']);
        if (convert.flag('gather', 'sparse_grad', sparse))
            throw new Error('gather: sparse_grad is not supported: gradients are dense');
        return plain.apply(this, left);
    });
    form(prototype, 'take_along_dim', given => given.length === 1 && given[0] instanceof GTorch.Tensor,
        function ([indices], plain) {
            return plain.call(this.reshape([-1]), indices.reshape([-1]), 0);
        });
    form(prototype, 'repeat_interleave', given => given.length === 0 || given[0] instanceof GTorch.Tensor ||
        has(given, ['output_size']) || lastOptions(given)?.repeats instanceof GTorch.Tensor,
    function (given, plain) {
        const names = ['repeats', 'dim', 'output_size'].map(name => ({name}));
        const values = convert.bind('repeat_interleave', names, given);
        const {repeats = null, dim = null, output_size: size = null} = values;
        let made;
        if (repeats === null)
            made = GTorch.arange(this.get_size(0), {dtype: GTorch.int64, device: this.get_device()})
                .repeat_interleave_tensor(this);
        else if (repeats instanceof GTorch.Tensor)
            made = this.repeat_interleave_tensor(repeats, ...dim === null ? [] : [dim]);
        else
            made = plain.call(this, repeats, ...dim === null ? [] : [dim]);
        const [along = 0] = convert.list(dim ?? []);
        if (size !== null && made.get_size(along) !== size) {
            throw new RangeError(`repeat_interleave: output_size is ${size}, and the result has ` +
                `${made.get_size(along)}`);
        }
        return made;
    });
    form(GTorch, 'searchsorted', optioned('side'), (given, plain) => {
        const [left, {side}] = split(given, ['side']);
        choose('searchsorted', 'side', side, [null, 'left', 'right']);
        if (side === 'left' && lastOptions(left)?.right === true)
            throw new TypeError("searchsorted: right and side 'left' exclude each other");
        return plain(...left, ...side === 'right' && lastOptions(left) === null ? [{right: true}] : []);
    });
    const isList = given => Array.isArray(given[0]) && given[0].length > 0;
    form(prototype, 'split', isList, function ([sizes, ...rest]) {
        return this.split_with_sizes(sizes, ...rest);
    });
    form(prototype, 'histogram', given => given[0] instanceof GTorch.Tensor || has(given, ['range']),
        function (given, plain) {
            if (given[0] instanceof GTorch.Tensor)
                return this.histogram_bins(...given);
            const [left, {range}] = split(given, ['range']);
            if (range === null)
                return plain.apply(this, left);
            if (!Array.isArray(range) || range.length !== 2)
                throw new TypeError(`histogram: range must be two numbers, not ${convert.describe(range)}`);
            const values = lastOptions(left) === null ? left : left.slice(0, -1);
            return plain.call(this, ...values, {...lastOptions(left) ?? {}, low: range[0], high: range[1]});
        });
    form(prototype, 'histogramdd', () => true, function (given, plain) {
        const isOfEdges = Array.isArray(given[0]) && given[0].length > 0 &&
            given[0].every(one => one instanceof GTorch.Tensor);
        let values = given;
        if (!isOfEdges && Array.isArray(lastOptions(given)?.range)) {
            const [left, {range}] = split(given, ['range']);
            values = withOptions(left, {range: GTorch.tensor(range, {dtype: GTorch.float64})});
        }
        const found = isOfEdges ? this.histogramdd_bins(...values) : plain.apply(this, values);
        const [counts, ...edges] = found;
        return [counts, edges];
    });
    for (const name of ['masked_std', 'masked_var']) {
        form(GTorch, name, optioned('unbiased'), (given, plain) => {
            const [left, {unbiased}] = split(given, ['unbiased']);
            if (has(left, ['correction']))
                throw new TypeError(`${name} takes unbiased or a correction, not both`);
            const correction = unbiased === null ? 1 : Number(convert.flag(name, 'unbiased', unbiased));
            return plain(...withOptions(left, {correction}));
        });
    }
    // The elements that differ, or the slices along dim; with them what is asked for, as in Python.
    form(prototype, 'unique', () => true, function (given, plain) {
        const names = ['sorted', 'return_inverse', 'return_counts', 'dim'].map(name => ({name}));
        const {dim = null, ...flags} = convert.bind('unique', names, given);
        for (const key in flags)
            convert.flag('unique', key, flags[key]);
        const [values, inverse, counts] = dim === null ? plain.call(this) : this.unique_dim(dim);
        const {return_inverse: hasInverse = false, return_counts: hasCounts = false} = flags;
        const found = [values, ...hasInverse ? [inverse] : [], ...hasCounts ? [counts] : []];
        return found.length > 1 ? found : values;
    });
}

function positional(given) {
    return given.filter(one => !convert.isOptions(one)).length;
}

function random(prototype) {
    const isNamed = given => has(given, ['low', 'high']);
    form(GTorch, 'randint', given => positional(given) === 2 && Array.isArray(given[1]) && !isNamed(given),
        (given, plain) => plain(0, ...given));
    form(prototype, 'randint_like', given => positional(given) === 1 && !isNamed(given),
        function (given, plain) {
            return plain.call(this, 0, ...given);
        });
    const isBounded = given => has(given, ['low', 'from']) ||
        positional(given) > 0 && has(given, ['high', 'to']);
    form(prototype, 'random_', given => positional(given) < 2 && !isBounded(given),
        function (given, plain) {
            if (positional(given) === 1 || has(given, ['high', 'to']))
                return plain.call(this, ...positional(given) === 1 ? [0, ...given]
                    : [{low: 0, ...given.at(-1)}]);
            const kind = GTorch.DType.get_name(this.get_dtype());
            const end = kind in MANTISSAS ? 2 ** MANTISSAS[kind] + 1 : 2 ** BITS[kind];
            return plain.call(this, 0, end, ...given);
        });
    const hasNumber = given => typeof given[0] === 'number' || has(given, ['p']);
    form(prototype, 'bernoulli', hasNumber, function (given) {
        return this.bernoulli_p(...given);
    });
}

// As in PyTorch, true and false make a tensor of bools.
function filled() {
    form(GTorch, 'full', given => typeof given[1] === 'boolean', ([size, value, ...rest], plain) => {
        const more = lastOptions(rest) ?? {};
        const others = more === rest.at(-1) ? rest.slice(0, -1) : rest;
        const dtype = others.length > 0 ? {} : {dtype: more.dtype ?? GTorch.bool};
        return plain(size, Number(value), ...others, {...more, ...dtype});
    });
}

function products() {
    // not (a, b, dims_self, dims_other), the form of the row
    const isOfNumber = given => has(given, ['dims']) || positional(given) === 3 && given[2] !== null ||
        positional(given) === 2 && lastOptions(given) === null;
    const isOfRow = given => has(given, ['dims_self', 'dims_other']);
    form(GTorch, 'tensordot', given => !isOfRow(given) && isOfNumber(given), (given, plain) => {
        const names = ['input', 'other', 'dims'].map(name => ({name}));
        const {input, other, dims = 2} = convert.bind('tensordot', names, given);
        if (Array.isArray(dims) && dims.length === 2)
            return plain(input, other, convert.list(dims[0]), convert.list(dims[1]));
        const n = convert.integer('tensordot', 'dims', dims);
        const [a, b] = Object.entries({input, other}).map(([name, one]) => {
            if (!(one instanceof GTorch.Tensor))
                throw new TypeError(`tensordot: ${name} must be a tensor, not ${convert.describe(one)}`);
            return one.get_n_dims();
        });
        if (n < 0 || n > Math.min(a, b))
            throw new RangeError(`tensordot: ${n} dimensions of tensors that have ${a} and ${b}`);
        const count = [...Array(n).keys()];
        return plain(input, other, count.map(i => a - n + i), count);
    });
    for (const name of ['block_diag', 'broadcast_tensors', 'cartesian_prod', 'chain_matmul'])
        form(GTorch, name, given => given[0] instanceof GTorch.Tensor, (given, plain) => plain(given));
    form(GTorch, 'meshgrid', given => given[0] instanceof GTorch.Tensor || has(given, ['indexing']),
        (given, plain) => {
            const isNamed = has(given, ['indexing']);
            const [left, {indexing = 'ij'}] = isNamed ? split(given, ['indexing']) : [given, {}];
            choose('meshgrid', 'indexing', indexing, ['ij', 'xy']);
            const tensors = left[0] instanceof GTorch.Tensor ? left : left[0];
            return plain(tensors, {ij: indexing === 'ij'});
        });
    const {einsum} = GTorch;
    // Takes the operands in an array or one by one.
    GTorch.einsum = function (equation, ...given) {
        const operands = given.length === 1 ? convert.list(given[0]) : given;
        const wrong = operands.find(one => !(one instanceof GTorch.Tensor));
        if (typeof equation !== 'string')
            throw new TypeError(`einsum: the equation must be a string, not ${convert.describe(equation)}`);
        if (wrong !== undefined || operands.includes(undefined))
            throw new TypeError(`einsum: operands must be tensors, not ${convert.describe(wrong)}`);
        return einsum(equation, operands);
    };
}

const STFT = ['n_fft', 'hop_length', 'win_length', 'window', 'center', 'pad_mode', 'normalized', 'onesided',
    'return_complex', 'align_to_window'];
const ISTFT = ['n_fft', 'hop_length', 'win_length', 'window', 'center', 'normalized', 'onesided', 'length',
    'return_complex'];

// Whether there are half of the frequencies follows from the tensors, if it is not given.
function signals(prototype) {
    const lacks = names => given => {
        return positional(given) <= names.indexOf('onesided') && !has(given, ['onesided']);
    };
    const fill = (operation, names, find) => {
        form(prototype, operation, lacks(names), function (given, plain) {
            const values = convert.bind(operation, names.map(name => ({name})), given);
            return plain.call(this, {...values, onesided: find(this, values)});
        });
    };
    fill('stft', STFT, (self, {window = null}) => rank(self.get_dtype()) < 3 &&
        !(window instanceof GTorch.Tensor && rank(window.get_dtype()) === 3));
    fill('istft', ISTFT, (self, {n_fft: length}) => self.get_n_dims() > 1 &&
        self.get_shape().at(-2) !== length);
}

function layers(prototype) {
    for (const [name, n] of [['conv1d', 1], ['conv2d', 2], ['conv3d', 3]]) {
        const names = ['input', 'weight', 'bias', 'stride', 'padding', 'dilation', 'groups'];
        const args = names.map(one => ({name: one}));
        const isText = one => typeof one === 'string';
        form(GTorch, name, given => isText(given[4]) || isText(lastOptions(given)?.padding),
            (given, plain) => {
                const {padding, ...values} = convert.bind(name, args, given);
                const {weight, stride = 1, dilation = 1} = values;
                choose(name, 'padding', padding, ['same', 'valid']);
                if (padding === 'valid' || weight?.get_n_dims?.() !== n + 2)
                    return plain(values);
                if (convert.list(stride).some(step => step !== 1))
                    throw new TypeError(`${name}: padding 'same' needs a stride of 1, not ${stride}`);
                const gaps = convert.list(dilation);
                const total = weight.get_shape().slice(2).map((size, i) => (gaps[i] ?? gaps[0]) * (size - 1));
                let made = plain({...values, padding: total.map(size => size - Math.floor(size / 2))});
                // For an even kernel, symmetric padding adds one zero too many at the beginning.
                total.forEach((size, i) => {
                    if (size % 2 === 1)
                        made = made.narrow(i - n, 1, made.get_size(i - n) - 1);
                });
                return made;
            });
    }
    for (const n of [1, 2, 3]) {
        const wanted = optioned('return_indices');
        const withIndices = name => form(prototype, name, wanted, function (given, plain) {
            const [left, {return_indices: both}] = split(given, ['return_indices']);
            const isBoth = convert.flag(name, 'return_indices', both);
            return isBoth ? this[`${name}_with_indices`](...left) : plain.apply(this, left);
        });
        const isKept = ([size]) => n > 1 && Array.isArray(size) && size.length === n && size.includes(null);
        const keepsSizes = name => form(prototype, name, isKept, function ([size, ...rest], plain) {
            const own = this.get_shape().slice(-n);
            return plain.call(this, size.map((one, i) => one ?? own[i]), ...rest);
        });
        withIndices(`max_pool${n}d`);
        withIndices(`adaptive_max_pool${n}d`);
        keepsSizes(`adaptive_max_pool${n}d`);
        keepsSizes(`adaptive_avg_pool${n}d`);
    }
}

// The factors that interpolate takes: one for all dimensions, or one for each of the last three.
function factors(name, factor, n) {
    if (factor.length === 1)
        return {scale_factor: factor[0]};
    if (factor.length !== n)
        throw new TypeError(`${name}: scale_factor must be one number or ${n}, not ${factor.length}`);
    const keys = ['scale_factor', 'scale_height', 'scale_width'].slice(3 - n);
    return Object.fromEntries(keys.map((key, i) => [key, factor[i]]));
}

function resampling() {
    const names = ['input', 'size', 'scale_factor'];
    const more = ['mode', 'align_corners', 'recompute_scale_factor', 'antialias'];
    const own = {
        interpolate: [[...names, ...more], {}],
        upsample_nearest: [names, {}],
        upsample_bilinear: [names, {mode: 'bilinear', align_corners: true}],
    };
    const {interpolate} = GTorch;
    const factorOf = given => lastOptions(given)?.scale_factor ?? given[2];
    const isList = given => Array.isArray(factorOf(given)) && factorOf(given).length > 0;
    for (const [name, [args, mode]] of Object.entries(own)) {
        form(GTorch, name, isList, given => {
            const values = convert.bind(name, args.map(one => ({name: one})), given);
            const {scale_factor: factor, ...left} = values;
            const n = (left.input?.get_n_dims?.() ?? 2) - 2;
            return interpolate({...left, ...mode, ...factors(name, factor, n)});
        });
    }
}

// The lengths of sequences, tensors or arrays of integers.
function losses() {
    const names = ['input_lengths', 'target_lengths'];
    const isList = given => given.slice(2, 4).some(Array.isArray) ||
        names.some(name => Array.isArray(lastOptions(given)?.[name]));
    form(GTorch, 'ctc_loss', isList, (given, plain) => {
        const args = ['log_probs', 'targets', ...names, 'blank', 'reduction', 'zero_infinity'];
        const values = convert.bind('ctc_loss', args.map(one => ({name: one})), given);
        for (const name of names)
            values[name] = convert.ofIntegers('ctc_loss', values[name]);
        return plain(values);
    });
}

// The sum of the singular values of matrices.
function nuclear(name, A, dim, keepdim, dtype) {
    const n = A.get_n_dims();
    const dims = dim ?? (n === 2 ? [-2, -1] : []);
    if (dims.length !== 2) {
        const where = dim === null ? `shape ${describe(A.get_shape())}` : `dim ${describe(dim)}`;
        throw new TypeError(`${name}: the norm 'nuc' is one of matrices, and ${where} is not two dimensions`);
    }
    const given = dtype === null ? A : A.to(dtype);
    let made = GTorch.linalg_svdvals(given.movedim(dims, [-2, -1])).sum(-1);
    if (keepdim) {
        for (const place of dims.map(one => (one + n) % n).sort((a, b) => a - b))
            made = made.unsqueeze(place);
    }
    return made;
}

// Norms that may have a name: that of Frobenius is the one without an order.
function norms() {
    for (const [name, fallback] of [['linalg_norm', null], ['linalg_matrix_norm', [-2, -1]]]) {
        const isText = given => typeof (given[1] ?? null) === 'string' ||
            typeof lastOptions(given)?.ord === 'string';
        form(GTorch, name, isText, (given, plain) => {
            const names = ['A', 'ord', 'dim', 'keepdim', 'dtype'];
            const values = convert.bind(name, names.map(one => ({name: one})), given);
            const {A, ord, dim = fallback, keepdim = false, dtype = null} = values;
            if (!(A instanceof GTorch.Tensor))
                throw new TypeError(`${name}: A must be a tensor, not ${convert.describe(A)}`);
            if (!['fro', 'nuc'].includes(ord)) {
                throw new TypeError(`${name}: ord must be a number, 'fro' or 'nuc', not ` +
                    convert.describe(ord));
            }
            const dims = dim === null ? null : convert.list(dim);
            if (ord === 'nuc')
                return nuclear(name, A, dims, convert.flag(name, 'keepdim', keepdim), dtype);
            if ((dims?.length ?? A.get_n_dims()) !== 2) {
                const where = dims === null ? `shape ${describe(A.get_shape())}` : `dim ${describe(dims)}`;
                throw new TypeError(`${name}: the norm 'fro' is one of matrices, and ${where} is not two ` +
                    'dimensions');
            }
            const {ord: _name, ...left} = values;
            return plain(left);
        });
    }
}

// The spacing is a number, or for each of the dimensions a number or a tensor of coordinates; 1 without one.
function gradients(prototype) {
    const args = ['spacing', 'dim', 'edge_order'].map(name => ({name}));
    const isPlain = given => Array.isArray(given[0]) && given[0].every(one => one instanceof GTorch.Tensor);
    form(prototype, 'gradient', given => !isPlain(given), function (given, plain) {
        const {spacing = 1, ...left} = convert.bind('gradient', args, given);
        const several = spacing instanceof GTorch.Tensor ? [spacing] : convert.list(spacing ?? 1);
        const n = left.dim === undefined || left.dim === null ? this.get_n_dims()
            : convert.list(left.dim).length;
        if (Array.isArray(spacing) && several.length !== n)
            throw new RangeError(`gradient: ${n} dimensions take a spacing each, not ${several.length}`);
        const isExact = rank(this.get_dtype()) < 2;
        const dtype = isExact ? GTorch.get_default_dtype() : this.get_dtype();
        const found = several.map(one => one instanceof GTorch.Tensor ? one : GTorch.full([],
            convert.number('gradient', 'spacing', one), {dtype, device: this.get_device()}));
        return plain.call(this, {spacing: found, ...left});
    });
}

function setup(namespace, operations) {
    GTorch = namespace;
    const {prototype} = GTorch.Tensor;
    arithmetic(prototype);
    alongDims(prototype);
    places(prototype);
    random(prototype);
    filled();
    products();
    signals(prototype);
    layers(prototype);
    resampling();
    losses();
    norms();
    gradients(prototype);
    for (const name of ['tril_indices', 'triu_indices']) {
        form(GTorch, name, optioned('dtype'), (given, plain) => {
            const [left, {dtype}] = split(given, ['dtype']);
            return dtype === null ? plain(...left) : plain(...left).to(dtype);
        });
    }
    for (const name of ['normal', 'tensor'])
        lenient(name, GTorch, {method: false, creates: true});
    for (const [name, operation] of Object.entries(operations))
        lenient(name, operation.method ? prototype : GTorch, operation);
}
