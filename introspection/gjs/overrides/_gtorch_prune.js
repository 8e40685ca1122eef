// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Masks for parameters: GTorch.nn.utils.prune. The methods of the library are functions in C; programs derive
// others from BasePruningMethod.
//
//     const {prune} = GTorch.nn.utils;
//     prune.l1_unstructured(layer, 'weight', 0.3);
//     class Alternate extends prune.BasePruningMethod {
//         static PRUNING_TYPE = 'unstructured';
//         compute_mask(t, mask) {…}
//     }
//     Alternate.apply(layer, 'bias');

/* exported setup */

const convert = imports.overrides._gtorch_convert;
const {restoring} = imports.overrides._gtorch_errors;
const {define, required} = imports.overrides._gtorch_modules;

let GTorch;

const KINDS = ['unstructured', 'structured', 'global'];
const NAME = required('name'), AMOUNT = required('amount');
const SCORES = {name: 'importance_scores', default: null};

// The amount is a share of the elements or, with is_count, their number: 1 may be both.
const IS_COUNT = {name: 'is_count', default: false};

function amountOf(name, {amount, is_count: isCount = false}) {
    return [convert.number(name, 'amount', amount), convert.flag(name, 'is_count', isCount)];
}

function orderOf(n) {
    return n === 'fro' ? 2 : convert.number('ln_structured', 'n', n);
}

// --- methods --------------------------------------------------------------------------------------

const applied = new WeakMap(); // of modules: the method of each parameter by name

function isMasked(module, name) {
    return module.is_computed(name) &&
        [...module.named_buffers({recurse: false})].some(([key]) => key === `${name}_mask`);
}

function container(name, ...methods) {
    const made = new PruningContainer();
    made._tensor_name = name;
    methods.forEach(method => made.add_pruning_method(method));
    return made;
}

// The method that a parameter has with another one: a container if there has been one.
function joined(module, name, method) {
    method._tensor_name = name;
    if (!isMasked(module, name))
        return method;
    const former = applied.get(module)?.[name];
    const methods = former instanceof PruningContainer ? [...former] : former === undefined ? [] : [former];
    return container(name, ...methods, method);
}

function remember(module, name, method) {
    if (!applied.has(module))
        applied.set(module, {});
    applied.get(module)[name] = method;
    return method;
}

function checkShape(what, tensor, like) {
    if (!(tensor instanceof GTorch.Tensor))
        throw new TypeError(`prune: ${what} must be a tensor, not ${convert.describe(tensor)}`);
    const [found, wanted] = [tensor, like].map(one => `[${one.shape.join(', ')}]`);
    if (found !== wanted)
        throw new RangeError(`prune: ${what} must have the shape ${wanted}, it has ${found}`);
}

function checkModule(name, module) {
    if (!(module instanceof GTorch.Module))
        throw new TypeError(`${name}: module must be a Module, not ${convert.describe(module)}`);
}

// Takes importance_scores out of the arguments, the last of which may be an object of options.
function split(given) {
    const last = given.at(-1);
    if (!convert.isOptions(last) || !Object.hasOwn(last, 'importance_scores'))
        return [given, null];
    const {importance_scores: scores, ...rest} = last;
    return [[...given.slice(0, -1), ...Object.keys(rest).length > 0 ? [rest] : []], scores];
}

const onesLike = tensor => GTorch.ones_like(tensor.detach());
const kindOf = method => method.PRUNING_TYPE ?? method.constructor.PRUNING_TYPE;

// A way to prune: a class of the program's computes a mask, and has PRUNING_TYPE, which is 'unstructured',
// 'structured' (with a property dim) or 'global'.
class BasePruningMethod {
    _tensor_name = null;

    // A mask for t, of zeros for what goes and of ones; defaultMask is the one that there is.
    compute_mask(_t, _defaultMask) {
        throw new Error(`${this.constructor.name}: compute_mask is not implemented`);
    }

    apply_mask(module) {
        const name = this.nameFor('apply_mask');
        const [mask, orig] = ['mask', 'orig'].map(part => module.get_tensor(`${name}_${part}`));
        return mask.to(orig.dtype).mul(orig);
    }

    // Prunes a parameter; returns the method, or a container of all that have been applied.
    static apply(module, name, ...given) {
        checkModule(`${this.name}.apply`, module);
        const [args, importance] = split(given);
        const method = joined(module, name, new this(...args));
        const tensor = module.get_tensor(name);
        const scores = importance ?? tensor;
        checkShape('importance_scores', scores, tensor);
        const mask = method.compute_mask(scores,
            isMasked(module, name) ? module.get_tensor(`${name}_mask`).detach().clone() : onesLike(tensor));
        checkShape(`the mask of ${this.name}`, mask, tensor);
        module.prune_identity(name);
        module[`${name}_mask`] = mask.detach().to(tensor.dtype);
        return remember(module, name, method);
    }

    // A tensor, with zeros where it would be pruned.
    prune(t, ...given) {
        const {default_mask: mask, importance_scores: scores} =
            convert.bind('prune', [{name: 'default_mask'}, {name: 'importance_scores'}], given);
        checkShape('importance_scores', scores ?? t, t);
        return t.mul(this.compute_mask(scores ?? t, mask ?? GTorch.ones_like(t)));
    }

    // Makes the parameter, with zeros where it is pruned, one of the module again.
    remove(module) {
        remove(module, this.nameFor('remove'));
    }

    nameFor(what) {
        if (this._tensor_name === null)
            throw new Error(`${this.constructor.name}: ${what}: it has not been applied to a parameter`);
        return this._tensor_name;
    }
}

// Several methods for one parameter, the last of which prunes what the others have left.
class PruningContainer extends BasePruningMethod {
    constructor(...methods) {
        super();
        this._pruning_methods = [];
        if (methods.length === 1)
            this._tensor_name = methods[0]._tensor_name;
        methods.forEach(method => this.add_pruning_method(method));
    }

    add_pruning_method(method) {
        if (!(method instanceof BasePruningMethod))
            throw new TypeError(`${convert.describe(method)} is no BasePruningMethod`);
        if (method._tensor_name !== this._tensor_name) {
            throw new RangeError('PruningContainer: its methods are those of the parameter ' +
                `${this._tensor_name}, and this one is that of ${method._tensor_name}`);
        }
        this._pruning_methods.push(method);
    }

    get length() {
        return this._pruning_methods.length;
    }

    at(index) {
        return this._pruning_methods.at(index);
    }

    [Symbol.iterator]() {
        return this._pruning_methods[Symbol.iterator]();
    }

    // The mask that the last method makes of one that there is.
    compute_mask(t, defaultMask) {
        if (this.length === 0)
            throw new Error('PruningContainer: compute_mask: it has no methods');
        const method = this.at(-1), mask = defaultMask.to(t.dtype).clone(), kind = kindOf(method);
        if (kind === 'global')
            return method.compute_mask(t, mask).to(t.dtype);
        if (kind === 'unstructured') {
            const left = mask.eq(1);
            const part = method.compute_mask(t.masked_select(left), mask.masked_select(left));
            return mask.masked_scatter(left, part.to(t.dtype));
        }
        if (kind === 'structured')
            return ofSlices(method, t, mask);
        throw new RangeError(`${method.constructor.name}: PRUNING_TYPE must be one of ${KINDS.join(', ')}, ` +
            `not ${kind}`);
    }
}

// The mask of a method that prunes among the slices that are left.
function ofSlices(method, t, mask) {
    const {name} = method.constructor, n = t.shape.length;
    if (!Number.isInteger(method.dim))
        throw new TypeError(`${name}: a method of PRUNING_TYPE 'structured' needs the property dim`);
    const dim = method.dim < 0 ? method.dim + n : method.dim;
    if (dim < 0 || dim >= n)
        throw new RangeError(`${name}: dim ${method.dim} is out of range for shape [${t.shape.join(', ')}]`);
    const others = t.shape.map((_size, i) => i).filter(i => i !== dim);
    const kept = (others.length > 0 ? mask.sum(others) : mask).ne(0).nonzero().flatten();
    const part = method.compute_mask(t.index_select(dim, kept), mask.index_select(dim, kept));
    return mask.index_copy(dim, kept, part.to(t.dtype));
}

// --- the methods of the library -------------------------------------------------------------------

class CustomFromMask extends BasePruningMethod {
    static PRUNING_TYPE = 'global';

    constructor(mask) {
        super();
        this.mask = mask;
    }

    compute_mask(_t, defaultMask) {
        checkShape('mask', this.mask, defaultMask);
        return defaultMask.mul(this.mask.to(defaultMask.dtype));
    }

    run(module, name) {
        module.prune_custom_from_mask(name, this.mask);
    }
}

// A class of the library's: run prunes a parameter of a module with the values of the arguments.
function method(name, kind, args, run) {
    const defaults = args.filter(arg => !arg.required).map(arg => [arg.name, arg.default]);
    const own = args.filter(arg => arg !== SCORES);
    const made = class extends BasePruningMethod {
        static PRUNING_TYPE = kind;

        constructor(...given) {
            super();
            Object.assign(this, Object.fromEntries(defaults), convert.bind(name, own, given));
            if ('amount' in this)
                amountOf(name, this);
        }

        // The mask that the function of C gives a parameter like t.
        compute_mask(t, defaultMask) {
            const holder = new GTorch.Module();
            holder.register_parameter('t', GTorch.Parameter.new(t.detach().clone(), false));
            this.run(holder, 't');
            return defaultMask.mul(holder.get_tensor('t_mask').to(defaultMask.dtype));
        }

        run(module, parameter, scores = null) {
            run(module, parameter, this, scores);
        }
    };
    Object.defineProperty(made, 'name', {value: name});
    return made;
}

// As BasePruningMethod.apply, by the function of C.
function applyOwn(module, name, ...given) {
    checkModule(`${this.name}.apply`, module);
    const [args, scores] = split(given);
    const one = new this(...args);
    const all = joined(module, name, one);
    restoring(() => one.run(module, name, scores));
    return remember(module, name, all);
}

const LAST = {name: 'dim', default: -1};

function methods() {
    const own = {
        Identity: method('Identity', 'unstructured', [], (module, name) => module.prune_identity(name)),
        RandomUnstructured: method('RandomUnstructured', 'unstructured', [AMOUNT, IS_COUNT],
            (module, name, values) => {
                module.prune_random_unstructured(name, ...amountOf('random_unstructured', values));
            }),
        L1Unstructured: method('L1Unstructured', 'unstructured', [AMOUNT, SCORES, IS_COUNT],
            (module, name, values, scores) => {
                module.prune_l1_unstructured(name, ...amountOf('l1_unstructured', values), scores);
            }),
        RandomStructured: method('RandomStructured', 'structured', [AMOUNT, LAST, IS_COUNT],
            (module, name, values) => {
                module.prune_random_structured(name, ...amountOf('random_structured', values), values.dim);
            }),
        LnStructured: method('LnStructured', 'structured', [AMOUNT, required('n'), LAST, SCORES, IS_COUNT],
            (module, name, values, scores) => {
                const amount = amountOf('ln_structured', values);
                module.prune_ln_structured(name, ...amount, orderOf(values.n), values.dim, scores);
            }),
        CustomFromMask,
    };
    Object.values(own).forEach(one => Object.defineProperty(one, 'apply', {value: applyOwn}));
    return own;
}

// --- functions ------------------------------------------------------------------------------------

const remove = define('remove', [NAME], ({name}, module) => {
    module.remove_pruning(name);
    delete applied.get(module)?.[name];
});

// Prunes by a method of the program's, for which all parameters are one vector.
function byMethod(pairs, one, given) {
    const tensors = pairs.map(([module, name]) => module.get_tensor(name));
    const scores = given ?? tensors;
    tensors.forEach((tensor, i) => checkShape('importance_scores', scores[i], tensor));
    const masks = pairs.map(([module, name], i) =>
        isMasked(module, name) ? module.get_tensor(`${name}_mask`) : onesLike(tensors[i]));
    const [all, before] = [scores, masks].map(some => GTorch.cat(some.map(x => x.detach().reshape([-1]))));
    one._tensor_name = 'temp';
    const mask = container('temp', one).compute_mask(all, before);
    checkShape(`the mask of ${one.constructor.name}`, mask, all);
    let at = 0;
    pairs.forEach(([module, name], i) => {
        const n = tensors[i].get_numel();
        module.prune_custom_from_mask(name, mask.narrow(0, at, n).reshape(tensors[i].shape));
        at += n;
    });
}

// Prunes elements of several parameters, [[module, name], …], by comparing all of them: by a class of methods
// that prune single elements, or the name of one of the library's. Scores are an array of tensors, or of null
// for the parameter itself.
function globalUnstructured(own) {
    const args = [required('parameters'), required('pruning_method'), {name: 'amount'}, SCORES, IS_COUNT];
    return (...given) => {
        const values = convert.bind('global_unstructured', args, given);
        const {parameters, importance_scores: scores = null, is_count: isCount = false} = values;
        const named = values.pruning_method;
        const Method = typeof named === 'string' && Object.hasOwn(own, named) ? own[named] : named;
        if (!(Method?.prototype instanceof BasePruningMethod) || Method.PRUNING_TYPE !== 'unstructured') {
            throw new TypeError('global_unstructured: pruning_method must be a class of BasePruningMethod ' +
                "whose PRUNING_TYPE is 'unstructured', such as prune.L1Unstructured, or 'L1Unstructured' " +
                `or 'RandomUnstructured', not ${convert.describe(named)}`);
        }
        const pairs = [...parameters];
        pairs.forEach(([module]) => checkModule('global_unstructured', module));
        const found = scores?.map((one, i) => one ?? pairs[i][0].get_tensor(pairs[i][1])) ?? null;
        if (Method !== own.L1Unstructured && Method !== own.RandomUnstructured) {
            byMethod(pairs, new Method(...values.amount === undefined ? [] : [values.amount]), found);
            return;
        }
        restoring(() => GTorch.prune_global_unstructured(pairs.map(([module]) => module),
            pairs.map(([, name]) => name), Method === own.RandomUnstructured,
            ...amountOf('global_unstructured', {amount: values.amount, is_count: isCount}), found));
    };
}

function setup(namespace) {
    GTorch = namespace;
    const own = methods();
    const counted = ({is_count: isCount}) => ({is_count: isCount});
    return {
        BasePruningMethod, PruningContainer, ...own,
        identity: define('identity', [NAME], ({name}, module) => {
            own.Identity.apply(module, name);
        }),
        random_unstructured: define('random_unstructured', [NAME, AMOUNT, IS_COUNT], (values, module) => {
            own.RandomUnstructured.apply(module, values.name, values.amount, counted(values));
        }),
        l1_unstructured: define('l1_unstructured', [NAME, AMOUNT, SCORES, IS_COUNT], (values, module) => {
            const {name, amount, importance_scores: scores} = values;
            own.L1Unstructured.apply(module, name, amount, {...counted(values), importance_scores: scores});
        }),
        random_structured: define('random_structured', [NAME, AMOUNT, required('dim'), IS_COUNT],
            (values, module) => {
                own.RandomStructured.apply(module, values.name, values.amount, values.dim, counted(values));
            }),
        ln_structured: define('ln_structured',
            [NAME, AMOUNT, required('n'), required('dim'), SCORES, IS_COUNT], (values, module) => {
                const {name, amount, n, dim, importance_scores: scores} = values;
                own.LnStructured.apply(module, name, amount, n, dim,
                    {...counted(values), importance_scores: scores});
            }),
        custom_from_mask: define('custom_from_mask', [NAME, required('mask')], ({name, mask}, module) => {
            own.CustomFromMask.apply(module, name, mask);
        }),
        remove,
        is_pruned: define('is_pruned', [], (_values, module) => module.is_pruned()),
        global_unstructured: globalUnstructured(own),
    };
}
