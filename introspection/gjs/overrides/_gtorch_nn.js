// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Modules: GTorch.Module to derive from, GTorch.nn.
//
//     const Net = GObject.registerClass(class Net extends GTorch.Module {
//         constructor() {
//             super();
//             this.first = GTorch.nn.Linear(2, 8);
//         }
//
//         forward(x) {
//             return this.first.forward(x).relu();
//         }
//     });

/* exported setup */

const containers = imports.overrides._gtorch_containers;
const convert = imports.overrides._gtorch_convert;
const {above, asClass, define, derivable, isProgramsOwn, ownFunction} = imports.overrides._gtorch_derived;
const {noting, restore, restoring} = imports.overrides._gtorch_errors;
const {LAYERS} = imports.overrides._gtorch_layer_table;
const init = imports.overrides._gtorch_init;
const losses = imports.overrides._gtorch_losses;
const members = imports.overrides._gtorch_members;
const {adopt, adoptChild, items} = members;
const optim = imports.overrides._gtorch_optim;
const parametrize = imports.overrides._gtorch_parametrize;
const utils = imports.overrides._gtorch_nn_utils;
const properties = imports.overrides._gtorch_properties;
const state = imports.overrides._gtorch_state;
const transformer = imports.overrides._gtorch_transformer;

let GTorch, keepAlways;
let rawForwardMany;

// Returns the module for one, or for a function.
function moduleOf(name, key, value) {
    if (key === 'activation')
        return transformer.activation(name, value);
    return key === 'distance_function' && typeof value === 'function' ? transformer.applied(value) : value;
}

// The kinds of arguments of which null means that the property has its default.
const ABSENT = ['bool', 'size', 'factors', 'device', 'dtype'];

// Converts the arguments to properties.
function toProperties(name, args, values) {
    const found = {};
    for (const arg of args) {
        const {name: key, property, kind} = arg;
        const value = values[key];
        if (value === undefined)
            continue;
        if (value === null && arg.default === null && ABSENT.includes(kind))
            continue;
        if (kind === 'processes')
            continue;
        if (kind === 'refused') {
            if (value !== arg.default)
                throw new TypeError(`${name}: ${key} is not supported: ${arg.why}`);
        } else if (arg.nones) {
            const numbers = convert.list(value).map(one => one === null ? GTorch.NONE : one);
            const spec = GTorch[name].find_property(property.replace(/_/g, '-'));
            found[property] = properties.checked(`${name}: ${key}`, spec, numbers, arg);
        } else if (kind === 'device') {
            found[property] = convert.device(name, value);
        } else if (kind === 'module') {
            const module = moduleOf(name, key, value);
            const spec = GTorch[name].find_property(property.replace(/_/g, '-'));
            if (module !== null)
                found[property] = properties.checked(`${name}: ${key}`, spec, module, arg);
        } else if (kind === 'dtype') {
            found[property] = convert.dtype(name, value);
        } else if (arg.rule !== undefined && typeof value === 'string') {
            if (value !== 'same' && value !== 'valid')
                throw new TypeError(`${name}: ${key} must be integers, 'valid' or 'same', not ${value}`);
            found[`${property}_rule`] = GTorch.PaddingRule[value.toUpperCase()];
        } else {
            const spec = GTorch[name].find_property(property.replace(/_/g, '-'));
            found[property] = properties.checked(`${name}: ${key}`, spec, value, arg);
        }
    }
    return found;
}

function makeLayer(name, {args, any}) {
    const klass = GTorch[name];

    return asClass(name, klass, (Class, given) => {
        const nPositional = args.filter(arg => !arg.named).length;
        const values = any ? {} : convert.bind(name, args, given, nPositional);
        const made = Reflect.construct(klass, [toProperties(name, args, values)], Class);
        made.check();
        if (values.process_group)
            made.set_process_group(values.process_group);
        return made;
    });
}

// The arguments of from_pretrained() behind freeze, in PyTorch's order.
const PRETRAINED = {
    Embedding: ['padding_idx', 'max_norm', 'norm_type', 'scale_grad_by_freq', 'sparse'],
    EmbeddingBag: ['max_norm', 'norm_type', 'scale_grad_by_freq', 'mode', 'sparse', 'include_last_offset',
        'padding_idx'],
};

// Makes a layer whose weight is a matrix, with which it shares its memory.
function pretrained(name, Layer) {
    const args = [{name: 'embeddings', required: true}, {name: 'freeze'},
        ...PRETRAINED[name].map(one => ({name: one}))];
    return (...given) => {
        const {embeddings, freeze = true, ...rest} = convert.bind('from_pretrained', args, given);
        if (!(embeddings instanceof GTorch.Tensor) || embeddings.shape.length !== 2) {
            throw new TypeError('from_pretrained: embeddings must be a matrix, not ' +
                `${convert.describe(embeddings)}`);
        }
        const settings = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined));
        const generator = GTorch.get_default_device().get_default_generator();
        const before = generator.get_state();
        const made = Layer(...embeddings.shape, settings);
        generator.set_state(before);
        made.weight = GTorch.Parameter.new(embeddings, !convert.flag('from_pretrained', 'freeze', freeze));
        return made;
    };
}

// --- modules --------------------------------------------------------------------------------------

// Converts the value that a hook returns for C. (An array that is null arrives as an empty one.)
const HOOKS = {
    register_forward_hook: tensorOrNothing,
    register_forward_pre_hook: (name, value, [_module, inputs]) =>
        convert.list(value ?? inputs).map(one => tensorOrNothing(name, one)),
    register_full_backward_hook: (name, value, [_module, grads]) => gradients(name, value, grads),
    register_full_backward_pre_hook: (name, value, [_module, grads]) => gradients(name, value, grads),
    register_hook: tensorOrNothing,
    register_post_accumulate_grad_hook: () => true,
};

// Those of recorded operations.
const NODE_HOOKS = {
    register_hook: (name, value, [_node, grads]) => gradients(name, value, grads),
    register_prehook: (name, value, [_node, grads]) => gradients(name, value, grads),
};

// C takes the gradients of those that have one; null is one of zeros.
function gradients(name, value, grads) {
    const given = convert.list(value ?? grads).map(one => tensorOrNothing(name, one));
    if (given.length !== grads.length)
        return given;
    return given.map((one, i) => one === null && grads[i] !== null ? GTorch.zeros_like(grads[i]) : one)
        .filter((_one, i) => grads[i] !== null);
}

// The options of hooks of modules, in the order of C's arguments before the function.
const HOOK_OPTIONS = {
    register_forward_hook: {prepend: false, always_call: false},
    register_forward_pre_hook: {prepend: false},
    register_full_backward_hook: {prepend: false},
    register_full_backward_pre_hook: {prepend: false},
};

function tensorOrNothing(name, value) {
    value ??= null;
    if (value !== null && !(value instanceof GTorch.Tensor)) {
        const kind = value?.constructor?.name ?? typeof value;
        throw new TypeError(`${name}: the hook gave ${kind}, not a tensor or nothing`);
    }
    return value;
}

// gjs keeps callbacks with the object whose method they are passed to, where the garbage collector sees
// both, and frees them with that object. A module that C refers to outlives its object, and so do its
// hooks. The hooks of a tensor belong to its computation, which may outlive that object. Callbacks of
// functions in the namespace are kept until C frees them.
const FUNCTIONS = {
    register_hook: 'register_tensor_hook',
    register_post_accumulate_grad_hook: 'register_tensor_post_accumulate_grad_hook',
};

function overrideHooks(prototype, hooks = HOOKS) {
    for (const [name, result] of Object.entries(hooks)) {
        const method = prototype[name];
        if (method === undefined)
            continue;
        const instead = hooks === HOOKS ? GTorch[FUNCTIONS[name]] : undefined;
        const options = HOOK_OPTIONS[name];
        const full = prototype[`${name}_full`] ?? method;
        const wrapped = hook => (...values) => noting(() =>
            result(name, convert.finished(name, convert.plainFunction(name, hook)(...values)), values));
        if (options !== undefined) {
            prototype[name] = function (hook, ...given) {
                convert.plainFunction(name, hook);
                if (given.length > 1)
                    convert.surplus(name, given.length + 1, 2);
                const found = convert.lastOptions(name, given, options);
                const flags = Object.keys(options).map(key => convert.flag(name, key, found[key]));
                return full.call(this, ...flags, wrapped(hook));
            };
            if (full !== method) {
                prototype[`${name}_full`] = convert.counted(`${name}_full`, function (...given) {
                    const hook = convert.plainFunction(`${name}_full`, given.pop());
                    return full.call(this, ...given, wrapped(hook));
                }, Object.keys(options).length + 1);
            }
            continue;
        }
        const register = instead === undefined ? method : function (hook) {
            return instead(this, hook);
        };
        prototype[name] = convert.counted(name, function (hook) {
            convert.plainFunction(name, hook);
            return register.call(this, wrapped(hook));
        });
    }
}

// Hooks of all modules, which are functions of the class.
function overrideGlobalHooks(Module) {
    for (const kind of Object.keys(HOOK_OPTIONS)) {
        const name = kind.replace('register_', 'register_global_');
        const register = Module[name];
        const count = kind === 'register_forward_hook' ? 2 : 1;
        Module[name] = convert.counted(name, (...given) => {
            const hook = convert.plainFunction(name, given.pop());
            return register.call(Module, ...given, (...values) => noting(() =>
                HOOKS[kind](name, convert.finished(name, hook(...values)), values)));
        }, count);
    }
}

// The function that exchanges gradients: it gives a tensor.
function overrideCommHook(prototype) {
    const name = 'register_comm_hook', method = prototype[name];
    prototype[name] = convert.counted(name, function (hook) {
        const func = convert.plainFunction(name, hook);
        return method.call(this, bucket =>
            noting(() => mustBeTensor(`${name}: the hook`, convert.finished(name, func(bucket)))));
    });
}

function overrideModule(Module) {
    const prototype = Module.prototype;
    overrideHooks(prototype);
    overrideGlobalHooks(Module);
    const raw = {forward: prototype.forward, forward_many: prototype.forward_many};
    rawForwardMany = prototype.forward_many;

    const methods = ['eval', 'to', 'train', 'zero_grad'];
    for (const name of methods)
        raw[name] = prototype[name];

    convert.addMethods(prototype, {
        // Runs the hooks, too. super.forward(x) only runs the forward of the parent class.
        forward(...inputs) {
            const isSuper = this.forward !== prototype.forward;
            const name = `${convert.nameOf(this.constructor)}.forward`;
            if (inputs.length > 1 && !isSuper && takesMany(this))
                return this.forward_many(inputs.map(x => mustBeInput(name, x)));
            if (inputs.length !== 1)
                convert.surplus(name, inputs.length, 1);
            mustBeInput(name, inputs[0]);
            return restoring(() => isSuper
                ? above(this, 'forward').vfunc_forward.apply(this, inputs) : raw.forward.apply(this, inputs));
        },
        forward_many(inputs) {
            const isSuper = running.includes(this);
            return restoring(() => isSuper
                ? above(this, 'forward_many').vfunc_forward_many.call(this, inputs)
                : raw.forward_many.call(this, inputs));
        },
        // Does the same, with hooks, for modules whose forward() is written in JavaScript.
        call(...inputs) {
            adopt(this);
            if (inputs.length === 1)
                return restoring(() => raw.forward.call(this, inputs[0]));
            if (!prototype.has_hooks.call(this) && this.forward !== prototype.forward)
                return finished(this, 'forward', recorded(this, () => computeOf(this).apply(this, inputs)));
            return this.forward_many(inputs.map(x => mustBeTensor(`${this.constructor.name}: an input`, x)));
        },
        // Calls func with each descendant, and last with this module.
        apply(func) {
            convert.plainFunction('apply', func);
            this.children().forEach(child => child.apply(func));
            convert.finished('apply', func(this));
            return this;
        },
        parameters(...given) {
            const {recurse = true} = convert.bind('parameters', [{name: 'recurse'}], given);
            return items(prototype.get_parameters.call(this, recurse));
        },
        named_parameters(...given) {
            const {recurse = true} = convert.bind('named_parameters', [{name: 'recurse'}], given);
            const values = this.parameters(recurse);
            return prototype.get_parameter_names.call(this, recurse).map((name, i) => [name, values[i]]);
        },
        buffers(...given) {
            const {recurse = true} = convert.bind('buffers', [{name: 'recurse'}], given);
            return items(prototype.get_buffers.call(this, recurse));
        },
        named_buffers(...given) {
            const {recurse = true} = convert.bind('named_buffers', [{name: 'recurse'}], given);
            const values = this.buffers(recurse);
            return prototype.get_buffer_names.call(this, recurse).map((name, i) => [name, values[i]]);
        },
        children() {
            return items(prototype.get_children.call(this));
        },
        named_children() {
            const values = this.children();
            return prototype.get_child_names.call(this).map((name, i) => [name, values[i]]);
        },
        modules() {
            return items(prototype.get_modules.call(this));
        },
        named_modules() {
            const values = this.modules();
            return prototype.get_module_names.call(this).map((name, i) => [name, values[i]]);
        },
        // The module of a path such as 'layers.0', which is this one if it is empty.
        get_submodule(path) {
            return path === '' ? this : prototype.get_module.call(this, path);
        },
        add_module(name, module) {
            return this.register_module(name, module);
        },
        cpu() {
            return this.to('cpu');
        },
        // cuda(), cuda(1), cuda('cuda:1')
        cuda(...given) {
            const {device = 'cuda'} = convert.bind('cuda', [{name: 'device'}], given);
            return this.to(typeof device === 'number' ? `cuda:${device}` : device);
        },
        type(dtype) {
            return this.to({dtype});
        },
        float() {
            return this.to(GTorch.float32);
        },
        double() {
            return this.to(GTorch.float64);
        },
        half() {
            return this.to(GTorch.float16);
        },
        bfloat16() {
            return this.to(GTorch.bfloat16);
        },
        train(...given) {
            const {mode = true} = convert.bind('train', [{name: 'mode'}], given);
            raw.train.call(this, mode);
            return this;
        },
        eval() {
            raw.eval.call(this);
            return this;
        },
        zero_grad(...given) {
            const {set_to_none: toNone = true} = convert.bind('zero_grad', [{name: 'set_to_none'}], given);
            raw.zero_grad.call(this, toNone);
        },
        requires_grad_(...given) {
            const {requires_grad: wanted = true} =
                convert.bind('requires_grad_', [{name: 'requires_grad'}], given);
            prototype.set_requires_grad.call(this, wanted);
            return this;
        },
        load_state_dict(table, ...given) {
            const {strict = true} = convert.bind('load_state_dict', [{name: 'strict'}], given);
            convert.flag('load_state_dict', 'strict', strict);
            const lists = state.lists('load_state_dict', table);
            // a strict call has neither, if it does not fail
            const [own, found] = strict ? [[], []] : [Object.keys(this.state_dict()), lists[0]];
            restoring(() => prototype.load_state_lists.call(this, ...lists, strict));
            return {
                missing_keys: own.filter(name => !found.includes(name)),
                unexpected_keys: found.filter(name => !own.includes(name)),
            };
        },
        state_dict() {
            const before = extraErrors;
            extraErrors = [];
            try {
                const found = state.object(...prototype.state_lists.call(this));
                if (extraErrors.length > 0)
                    throw extraErrors[0];
                return found;
            } finally {
                extraErrors = before;
            }
        },
        // to('cuda:0'), to(GTorch.float64), to(tensor), to('cuda:0', GTorch.float16), to({device: 'cuda'})
        to(...given) {
            const {device, dtype} = convert.target('to', given);
            raw.to.call(this, device, dtype ?? GTorch.DType.NONE);
            return this;
        },
    });
    const isTensor = {result: mustBeTensor};
    const extraState = {
        get_extra_state: {
            call(self, func) {
                try {
                    return mustBeTensor(`${self.constructor.name}: get_extra_state()`, func.call(self));
                } catch (error) {
                    if (extraErrors === null)
                        throw error;
                    extraErrors.push(error); // C has no place for it
                    return null;
                }
            },
        },
        set_extra_state: {result: () => true},
    };
    const areTensors = {result: (what, value) => convert.list(value).map(one => mustBeTensor(what, one))};
    const calls = {forward: isTensor, forward_many: isTensor, compute: isTensor};
    derivable(Module, {...calls, right_inverse: areTensors, ...extraState}, prepareModule);
}

let extraErrors = null; // of get_extra_state() while state_dict() runs

const running = []; // the modules whose forward_many() in JavaScript runs

function tracked(compute) {
    return function (...given) {
        running.push(this);
        try {
            return compute.apply(this, given);
        } finally {
            running.pop();
        }
    };
}

// Lets C call a forward() that one object has of its own, such as an arrow function in the body of its class.
function callOwnForward(own, forward) {
    const plain = forward ?? function (x) {
        return takesMany(this) ? this.vfunc_forward_many([x])
            : GTorch.Module.prototype.vfunc_forward.call(this, x);
    };
    const call = function (...inputs) {
        return (Object.hasOwn(this, 'forward') ? this.forward : plain).apply(this, inputs);
    };
    define(own, 'vfunc_forward', call);
    define(own, members.CALLS_OWN_FORWARD, true);
    return call;
}

// Makes forward() take all inputs if no other function does, and run hooks where programs call it.
function prepareModule({prototype: own}) {
    const find = name => ownFunction(own, `vfunc_${name}`) ?? ownFunction(own, name);
    const isLoss = own instanceof GTorch.Loss;
    let forward = find('forward');
    if (forward !== null && !isLoss)
        forward = callOwnForward(own, forward);
    else if (Object.getPrototypeOf(own) === GTorch.Module.prototype && find('forward_many') === null)
        callOwnForward(own, null);
    const hasCompute = isLoss && find('compute') !== null;

    if (ownFunction(own, 'vfunc_forward_many') !== null)
        define(own, 'vfunc_forward_many', tracked(own.vfunc_forward_many));
    if (forward !== null && find('forward_many') === null && !hasCompute) {
        define(own, 'vfunc_forward_many', function (inputs) {
            return forward.apply(this, inputs);
        });
    }
    if (forward !== null)
        transformer.overrideForward(own, forward);
    if (Object.hasOwn(own, 'forward'))
        own.forward = withHooks('forward', own.forward, (self, inputs) => self.call(...inputs));
    if (Object.hasOwn(own, 'forward_many')) {
        own.forward_many = withHooks('forward_many', tracked(own.forward_many),
            (self, given) => restoring(() => rawForwardMany.apply(self, given)));
    }
}

// Returns what a method of a module gave, which must not be what computes later.
function finished(module, name, value) {
    return convert.finished(`${convert.nameOf(module.constructor)}: ${name}()`, value);
}

// How many profilers have been started that record calls of modules.
const recording = {n: 0};

// Calls func, as a call of the module in profiles if a profiler wants that: C knows of no forward() that
// JavaScript calls by itself.
function recorded(module, func) {
    const call = recording.n > 0 ? module.profile_call() : null;
    try {
        return func();
    } finally {
        call?.end();
    }
}

// Tells modules in JavaScript of profilers that record their calls. One that is lost counts on, which costs
// time only.
function watchProfilers(prototype) {
    const {start, stop} = prototype;
    const records = Symbol('whether it is counted');
    prototype.start = convert.counted('start', function () {
        const result = start.call(this);
        this[records] = Number(this.with_modules || this.with_stack);
        recording.n += this[records];
        return result;
    }, 0);
    prototype.stop = convert.counted('stop', function () {
        const result = stop.call(this);
        recording.n -= this[records] ?? 0;
        this[records] = 0;
        return result;
    }, 0);
}

// Returns the forward of a module, without hooks.
function computeOf(module) {
    return module.forward.compute ?? module.forward;
}

// forward() of a class runs hooks when others call it; C and super.forward() run it without.
function withHooks(name, compute, run) {
    const method = function (...given) {
        if (this[name] !== method)
            return compute.apply(this, given);
        const value = this.has_hooks() ? run(this, given) : recorded(this, () => compute.apply(this, given));
        return finished(this, name, value);
    };
    method.compute = compute;
    return method;
}

// Tells whether a class of the program's defines forward_many().
function takesMany(module) {
    let one = Object.getPrototypeOf(module);
    for (; isProgramsOwn(one.constructor); one = Object.getPrototypeOf(one)) {
        if (Object.hasOwn(one, 'forward_many') || Object.hasOwn(one, 'vfunc_forward_many'))
            return true;
    }
    return false;
}

// Takes null away from the end; a tensor of bool without elements stands for other ones that may be left out.
function withoutAbsent(needed, given) {
    const inputs = [...given];
    while (inputs.length > needed && (inputs.at(-1) ?? null) === null)
        inputs.pop();
    return inputs.map((one, i) => i < needed || (one ?? null) !== null
        ? one : GTorch.Tensor.new_from_bools([], [0], null));
}

// The function of C has a parameter for each tensor.
function filled(inputs, n) {
    return [...inputs, ...Array(n - inputs.length).fill(null)];
}

// Lets forward() of a class take so many tensors. Those whose positions are in `lists` may be arrays of
// integers; those behind the first `needed` ones may be left out.
function takeSeveral(prototype, n, lists = [], needed = n) {
    const {forward} = prototype;

    const instead = function (...given) {
        const name = `${convert.nameOf(this.constructor)}.forward`;
        if (given.length < needed || given.length > n)
            convert.surplus(name, given.length, n);
        const inputs = withoutAbsent(needed, given)
            .map((x, i) => lists.includes(i) ? convert.ofIntegers(name, x) : x);
        inputs.forEach(x => mustBeInput(name, x));
        const isSuper = this.forward !== instead || running.includes(this);
        return restoring(() => isSuper
            ? above(this, 'forward').vfunc_forward_many.call(this, inputs)
            : forward.apply(this, filled(inputs, n)));
    };
    prototype.forward = instead;
}

const isIndices = ({name, kind}) => name === 'return_indices' && kind === 'bool';

// Lets a layer give the maxima and their indices in an array.
function giveIndices(name) {
    const {prototype} = GTorch[name];
    const {forward} = prototype;
    prototype.forward = function (...given) {
        if (!this.return_indices)
            return forward.apply(this, given);
        if (given.length !== 1)
            convert.surplus(`${name}.forward`, given.length, 1);
        return restoring(() => this.forward_with_indices(mustBeInput(`${name}.forward`, given[0])));
    };
}

function mustBeInput(name, value) {
    if (!(value instanceof GTorch.Tensor))
        throw new TypeError(`${name}: an input must be a tensor, not ${convert.describe(value)}`);
    return value;
}

function mustBeTensor(what, value) {
    if (!(value instanceof GTorch.Tensor))
        throw new TypeError(`${what} gave ${convert.describe(value)}, not a tensor`);
    return value;
}

// --- recurrent networks ---------------------------------------------------------------------------

// The states as an array: an LSTM has two, the hidden state and the cell, in an array.
function statesOf(name, isPair, states) {
    const found = isPair && Array.isArray(states) ? states : [states];
    if (states === undefined || states === null)
        return [];
    if (found.length !== (isPair ? 2 : 1) || !found.every(one => one instanceof GTorch.Tensor)) {
        const wanted = isPair ? 'an array of the hidden state and the cell' : 'a tensor';
        throw new TypeError(`${name}: the states must be ${wanted}, not ${convert.describe(states)}`);
    }
    return found;
}

// forward(x, h) of a network gives [y, h], that of a cell h; the states of an LSTM are [h, c].
function overrideNetworks({prototype}) {
    const {run, compute, call} = prototype;
    const runPacked = GTorch.PackedSequence.prototype.run;

    convert.addMethods(prototype, {
        forward(...given) {
            const name = `${convert.nameOf(this.constructor)}.forward`;
            const isPair = this instanceof GTorch.LSTM || this instanceof GTorch.LSTMCell;
            const isCell = [GTorch.RNNCell, GTorch.LSTMCell, GTorch.GRUCell].some(one => this instanceof one);
            const isSuper = this.forward !== prototype.forward;
            if (given.length < 1 || given.length > 2)
                convert.surplus(name, given.length, 2);
            const states = statesOf(name, isPair, given[1]);
            if (given[0] instanceof GTorch.PackedSequence && !isCell && !isSuper) {
                const [output, last] = restoring(() => runPacked.call(given[0], this, states));
                return [output, isPair ? last : last[0]];
            }
            const args = [mustBeInput(name, given[0]), [], states];
            const results = restoring(() => (isSuper ? compute : run).apply(this, args));
            if (isCell)
                return isPair ? results : results[0];
            return [results[0], isPair ? results.slice(1) : results[1]];
        },
        call(...given) {
            return this.forward === prototype.forward ? this.forward(...given) : call.apply(this, given);
        },
    });
}

function lengthsOf(name, lengths) {
    if (lengths instanceof GTorch.Tensor)
        return lengths.toArray();
    if (!Array.isArray(lengths))
        throw new TypeError(`${name}: lengths must be an array or tensor, not ${convert.describe(lengths)}`);
    return lengths;
}

// nn.utils.rnn: the functions of the namespace, with defaults.
function sequenceFunctions() {
    const {pack_padded_sequence: packPadded, pad_packed_sequence: padPacked, pack_sequence: pack,
        unpack_sequence: unpack, pad_sequence: pad, unpad_sequence: unpad} = GTorch;
    const bind = (name, first, rest, given) =>
        convert.bind(name, [...first.map(one => ({name: one, required: true})),
            ...rest.map(one => ({name: one}))], given);

    return {
        pack_padded_sequence(...given) {
            const name = 'pack_padded_sequence';
            const {input, lengths, batch_first: batchFirst = false, enforce_sorted: isSorted = true} =
                bind(name, ['input', 'lengths'], ['batch_first', 'enforce_sorted'], given);
            return restoring(() => packPadded(input, lengthsOf(name, lengths), batchFirst, isSorted));
        },
        // Returns the sequences and their lengths.
        pad_packed_sequence(...given) {
            const rest = ['batch_first', 'padding_value', 'total_length'];
            const {sequence, batch_first: batchFirst = false, padding_value: value = 0, total_length: total} =
                bind('pad_packed_sequence', ['sequence'], rest, given);
            return restoring(() => padPacked(sequence, batchFirst, value, total ?? GTorch.NONE));
        },
        pack_sequence(...given) {
            const {sequences, enforce_sorted: isSorted = true} =
                bind('pack_sequence', ['sequences'], ['enforce_sorted'], given);
            return restoring(() => pack(sequences, isSorted));
        },
        unpack_sequence(...given) {
            const {sequence} = bind('unpack_sequence', ['sequence'], [], given);
            return restoring(() => unpack(sequence));
        },
        pad_sequence(...given) {
            const rest = ['batch_first', 'padding_value', 'padding_side'];
            const {sequences, batch_first: batchFirst = false, padding_value: value = 0,
                padding_side: side = 'right'} = bind('pad_sequence', ['sequences'], rest, given);
            if (side !== 'left' && side !== 'right')
                throw new TypeError(`pad_sequence: padding_side must be 'left' or 'right', not ${side}`);
            return restoring(() => pad(sequences, batchFirst, value, side === 'left'));
        },
        unpad_sequence(...given) {
            const name = 'unpad_sequence';
            const {padded_sequences: padded, lengths, batch_first: batchFirst = false} =
                bind(name, ['padded_sequences', 'lengths'], ['batch_first'], given);
            return restoring(() => unpad(padded, lengthsOf(name, lengths), batchFirst));
        },
    };
}

// --- functions ------------------------------------------------------------------------------------

// gjs passes no null in an array, so a gradient that is null becomes zeros like the input.
const INPUTS = Symbol('what the inputs were like');

function noteInputs(context, tensors) {
    if (tensors.some((_tensor, i) => context.get_needs_input_grad(i)))
        context[INPUTS] = tensors.map(x => [x.shape, {dtype: x.get_dtype(), device: x.get_device()}]);
}

function zerosFor(context, i) {
    return GTorch.zeros(...context[INPUTS][i]);
}

// What is given beside tensors: C sees the tensors, and the forward() that it calls next gets all.
let others = null;
const ARGUMENTS = Symbol('what was given, and undefined for each tensor');

function applyTo(self, apply, given) {
    const name = convert.nameOf(self.constructor);
    const tensors = given.filter(one => one instanceof GTorch.Tensor);
    const missing = given.indexOf(undefined);
    if (missing >= 0)
        throw new TypeError(`${name}: argument ${missing} is undefined`);
    if (tensors.length < given.length && !isForwardPlain(self))
        throw new TypeError(`${name}: vfunc_forward() gets tensors only: forward() takes the others, too`);
    others = tensors.length === given.length ? null
        : {self, list: given.map(one => one instanceof GTorch.Tensor ? undefined : one)};
    try {
        const outputs = restoring(() => apply.call(self, tensors));
        return outputs.length === 1 ? outputs[0] : outputs;
    } finally {
        others = null;
    }
}

// Tells whether forward() is defined by that name, and not as vfunc_forward().
function isForwardPlain(self) {
    let one = Object.getPrototypeOf(self);
    for (; isProgramsOwn(one.constructor); one = Object.getPrototypeOf(one)) {
        if (Object.hasOwn(one, 'forward'))
            return true;
        if (Object.hasOwn(one, 'vfunc_forward'))
            return false;
    }
    return false;
}

// Returns what forward() takes: what was given, in its order.
function allArguments(self, context, tensors) {
    if (others?.self !== self)
        return tensors;
    const {list} = others;
    others = null;
    context[ARGUMENTS] = list;
    const rest = [...tensors];
    return list.map(one => one === undefined ? rest.shift() : one);
}

// Returns the gradients of the tensors: with other arguments beside them, backward() gives one for each.
function gradientsOfTensors(what, context, given) {
    const list = context[ARGUMENTS];
    if (list === undefined)
        return given;
    if (given.length !== list.length)
        throw new TypeError(`${what} gave ${given.length} gradients for ${list.length} arguments`);
    const wrong = given.findIndex((grad, i) => list[i] !== undefined && grad !== null);
    if (wrong >= 0) {
        const found = convert.describe(given[wrong]);
        throw new TypeError(`${what} gave ${found} for argument ${wrong}, which is no tensor: its ` +
            ' gradient is null');
    }
    return given.filter((_grad, i) => list[i] === undefined);
}

function overrideFunction(Function) {
    const apply = Function.prototype.apply;

    Function.prototype.apply = function (inputs, ...rest) {
        if (rest.length > 0 || !Array.isArray(inputs)) {
            throw new TypeError(`${this.constructor.name}.apply: an array of tensors is wanted, not ` +
                `${[inputs, ...rest].map(convert.describe).join(', ')}; call() takes them one by one`);
        }
        return restoring(() => apply.call(this, inputs));
    };

    // Returns one output as it is, several in an array.
    Function.prototype.call = function (...inputs) {
        return applyTo(this, apply, inputs);
    };
    // Cube.apply(x) is new Cube().call(x). (The class is a function, whose own apply() means something else.)
    define(Function, 'apply', function (...inputs) {
        if (!isProgramsOwn(this))
            throw new TypeError('Function.apply: a class that is derived from Function is wanted');
        return applyTo(new this(), apply, inputs);
    });
    const all = (what, value) => convert.list(value).map(one => mustBeTensor(what, one));
    derivable(Function, {
        forward: {
            call: (self, func, [context, tensors]) =>
                func.call(self, context, ...allArguments(self, context, tensors)),
            result: (what, value, _self, [context, tensors]) => {
                noteInputs(context, tensors);
                keepAlways(context);
                return all(what, value);
            },
        },
        backward: {
            call: (self, func, [context, tensors]) => func.call(self, context, ...tensors),
            result: (what, value, _self, [context]) => {
                const given = gradientsOfTensors(what, context, convert.list(value));
                const n = context.get_n_inputs();
                const needed = Array.from({length: n}, (_, i) => i).filter(i =>
                    context.get_needs_input_grad(i));
                const grads = given.length === n ? needed.map(i => given[i]) : given;
                return grads.map((grad, i) =>
                    grad === null ? zerosFor(context, needed[i]) : mustBeTensor(what, grad));
            },
        },
    });

    for (const name of ['gradcheck', 'gradgradcheck']) {
        const raw = GTorch[name];
        const rawFunction = GTorch[`${name}_function`];

        // function: a GTorch.Function, or a function that takes tensors and returns one.
        GTorch[name] = function (func, inputs, ...given) {
            if (!(func instanceof Function))
                convert.plainFunction(name, func);
            const {eps, atol, rtol} =
                convert.lastOptions(name, given, {eps: 1e-6, atol: 1e-5, rtol: 1e-3});
            const list = convert.list(inputs);
            return restoring(() => func instanceof Function
                ? rawFunction(func, list, eps, atol, rtol)
                : raw(tensors => noting(() =>
                    mustBeTensor('the function', convert.finished(name, func(...tensors)))),
                list, eps, atol, rtol));
        };
    }
}

// A transposed convolution may be told the size of its output, which hooks get as a tensor.
function overrideTransposes(prototype) {
    const args = [{name: 'input', required: true}, {name: 'output_size'}];

    prototype.forward = function (...given) {
        const name = `${convert.nameOf(this.constructor)}.forward`;
        const {input, output_size: size = null} = convert.bind(name, args, given);
        const isSuper = this.forward !== prototype.forward;
        mustBeInput(name, input);
        if (size === null && !isSuper)
            return this.call(input);
        if (size === null)
            return restoring(() => above(this, 'forward').vfunc_forward.call(this, input));
        const inputs = [input, GTorch.tensor(convert.list(size), {dtype: GTorch.int64})];
        return restoring(() => isSuper
            ? above(this, 'forward').vfunc_forward_many.call(this, inputs)
            : rawForwardMany.call(this, inputs));
    };
}

function overrideScaler(prototype) {
    const {scale, update} = prototype;
    restore(prototype, 'step');

    prototype.scale = convert.counted('scale', function (outputs) {
        return Array.isArray(outputs) ? this.scale_list(outputs) : scale.call(this, outputs);
    });
    prototype.update = function (...given) {
        const {new_scale: wanted = null} = convert.bind('update', [{name: 'new_scale'}], given);
        update.call(this, typeof wanted === 'number'
            ? GTorch.tensor(wanted, {dtype: GTorch.float32}) : wanted);
    };
    convert.addMethods(prototype, {
        state_dict() {
            return state.object(...this.state_lists());
        },
        load_state_dict(table) {
            return this.load_state_lists(...state.lists('load_state_dict', table));
        },
    });
}

const PARAMETER = [{name: 'data', required: true}, {name: 'requires_grad'}];

function parameter(Class, given) {
    if (Class !== GTorch.Parameter) {
        throw new TypeError(`${Class.name}: Parameter cannot be derived from: a tensor that was made in C ` +
            'would not have the derived class');
    }
    const {data, requires_grad: grad = true} = convert.bind('Parameter', PARAMETER, given);
    if (!(data instanceof GTorch.Tensor))
        throw new TypeError(`Parameter: data must be a tensor, not ${convert.describe(data)}`);
    return GTorch.Parameter.new(data, grad);
}

// Takes modules in arrays or one by one.
function sequential(Class, given) {
    const modules = given.flatMap(convert.list);
    const wrong = modules.find(one => !(one instanceof GTorch.Module));
    if (wrong !== undefined || modules.includes(undefined))
        throw new TypeError(`Sequential: modules are wanted, not ${convert.describe(wrong)}`);
    modules.forEach(adoptChild);
    if (Class === GTorch.Sequential)
        return GTorch.Sequential.new_from_modules(modules);
    const made = Reflect.construct(GTorch.Sequential, [], Class);
    modules.forEach(module => made.append(module));
    return made;
}

function mustBeSaved(value) {
    if (!(value instanceof GTorch.Tensor))
        throw new TypeError(`save_for_backward: tensors are wanted, not ${convert.describe(value)}`);
    return value;
}

function overrideContext(prototype) {
    Object.defineProperty(prototype, 'saved_tensors', {
        configurable: true,
        get() {
            return this.get_saved_tensors();
        },
    });
    const save = prototype.save_for_backward;
    // Takes tensors in an array or one by one.
    prototype.save_for_backward = function (...given) {
        const tensors = given.length === 1 ? convert.list(given[0]) : given;
        return save.call(this, tensors.map(x => mustBeSaved(x)));
    };
}

function setup(namespace, keep) {
    GTorch = namespace;
    keepAlways = keep;
    state.setup(GTorch);
    members.setup(GTorch);
    overrideModule(GTorch.Module);
    overrideCommHook(GTorch.DistributedModule.prototype);
    overrideFunction(GTorch.Function);
    overrideContext(GTorch.FunctionContext.prototype);
    overrideHooks(GTorch.Tensor.prototype);
    overrideHooks(GTorch.GradNode.prototype, NODE_HOOKS);
    for (const [method, name] of Object.entries(FUNCTIONS))
        GTorch[name] = convert.counted(name, (tensor, hook) =>
            GTorch.Tensor.prototype[method].call(tensor, hook));
    takeSeveral(GTorch.Loss.prototype, 2);
    const several = Object.entries(LAYERS).filter(([, spec]) => spec.inputs);
    for (const [name, {inputs, lists = [], needed}] of several)
        takeSeveral(GTorch[name].prototype, inputs.length, lists.map(one => inputs.indexOf(one)), needed);
    overrideTransposes(GTorch.ConvTranspose.prototype);
    Object.keys(LAYERS).filter(name => LAYERS[name].args.some(isIndices)).forEach(giveIndices);
    overrideNetworks(GTorch.RNNBase);
    losses.setup(GTorch, module => running.includes(module));
    restore(GTorch.GraphedModule.prototype, 'run');
    const makeGraphed = GTorch.GraphedModule.new_for_func;
    GTorch.GraphedModule.new_for_func = convert.counted('new_for_func', (func, samples) => {
        convert.plainFunction('new_for_func', func);
        return makeGraphed.call(GTorch.GraphedModule, inputs =>
            noting(() => convert.finished('new_for_func', func(inputs))), samples);
    });
    restore(GTorch, 'make_graphed_callables');
    overrideScaler(GTorch.GradScaler.prototype);

    const nn = {
        Module: GTorch.Module,
        Parameter: asClass('Parameter', GTorch.Parameter, parameter),
        Sequential: asClass('Sequential', GTorch.Sequential, sequential),
        ...transformer.setup(GTorch, module => running.includes(module)),
        ...containers.setup(GTorch),
    };
    const transforms = {Compose: list => nn.Sequential(...list)};
    for (const [name, spec] of Object.entries(LAYERS))
        (spec.space === 'transforms' ? transforms : nn)[name] = makeLayer(name, spec);
    for (const name of Object.keys(PRETRAINED))
        nn[name].from_pretrained = pretrained(name, nn[name]);
    nn.init = init.members(GTorch);
    nn.utils = {
        ...utils.setup(GTorch), ...parametrize.setup(GTorch),
        rnn: {PackedSequence: GTorch.PackedSequence, ...sequenceFunctions()},
    };
    // The namespace looks up every name in the typelib first, which does not have these.
    Object.defineProperty(GTorch, 'nn', {value: nn});
    Object.defineProperty(GTorch, 'transforms', {value: transforms});
    Object.defineProperty(GTorch, 'optim', {value: optim.setup(GTorch)});
}
