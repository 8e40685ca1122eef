// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Modules and optimizers: GTorch.Module to derive from, GTorch.nn, GTorch.optim.
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

const {Gio, GLib, GObject} = imports.gi;
const convert = imports.overrides._gtorch_convert;
const state = imports.overrides._gtorch_state;

let GTorch;

// Arguments of the layers: [name, default], or [name] for what must be given.
const LAYERS = {
    Linear: [['in_features'], ['out_features'], ['bias', true]],
    Conv2d: [
        ['in_channels'], ['out_channels'], ['kernel_size'], ['stride', 1], ['padding', 0], ['bias', true],
    ],
    MaxPool2d: [['kernel_size'], ['stride', -1], ['padding', 0]],
    AvgPool2d: [['kernel_size'], ['stride', -1], ['padding', 0]],
    AdaptiveAvgPool2d: [['output_size']],
    BatchNorm1d: [['num_features']],
    BatchNorm2d: [['num_features']],
    LayerNorm: [['normalized_shape'], ['eps', 1e-5], ['elementwise_affine', true], ['bias', true]],
    Embedding: [['num_embeddings'], ['embedding_dim'], ['padding_idx', -1]],
    Dropout: [['p', 0.5]],
    Flatten: [['start_dim', 1], ['end_dim', -1]],
    GELU: [['tanh_approximation', false]],
    LeakyReLU: [['negative_slope', 0.01]],
    Softmax: [['dim', -1]],
    LogSoftmax: [['dim', -1]],
    Identity: [],
    ReLU: [],
    SiLU: [],
    Sigmoid: [],
    Tanh: [],
    CrossEntropyLoss: [['weight', null], ['reduction', 'mean']],
    NLLLoss: [['weight', null], ['reduction', 'mean']],
    MSELoss: [['reduction', 'mean']],
    L1Loss: [['reduction', 'mean']],
    BCEWithLogitsLoss: [['weight', null], ['pos_weight', null], ['reduction', 'mean']],
};

// Arguments of the constructor, then properties.
const OPTIMIZERS = {
    SGD: [[['lr', 1e-3], ['momentum', 0]], ['weight_decay', 'nesterov', 'dampening', 'capturable']],
    Adam: [[['lr', 1e-3]], ['betas', 'eps', 'weight_decay', 'amsgrad', 'capturable']],
    AdamW: [[['lr', 1e-3], ['weight_decay', 1e-2]], ['betas', 'eps', 'amsgrad', 'capturable']],
};

// What a forward() threw, on the way through C; the last one is the innermost.
const pending = [];

// The arguments in order, and the options that are left over.
function bind(name, spec, given) {
    const positional = [...given];
    const hasOptions = positional.length > 0 && convert.isOptions(positional.at(-1));
    const options = hasOptions ? {...positional.pop()} : {};
    if (positional.length > spec.length)
        throw new TypeError(`${name}: ${positional.length} arguments were given, it takes ${spec.length}`);
    const values = spec.map(([key, ...fallback], i) => {
        let value = positional[i];
        if (i >= positional.length) {
            value = options[key];
            delete options[key];
        }
        if (value === undefined && fallback.length === 0)
            throw new TypeError(`${name}: ${key} is missing`);
        return value === undefined ? fallback[0] : value;
    });
    return [values, options];
}

function refuse(name, options) {
    for (const key in options)
        throw new TypeError(`${name}: there is no option ${key}`);
}

function reduction(name, value) {
    const found = typeof value === 'string' ? GTorch.Reduction[value.toUpperCase()] : value;
    if (found === undefined)
        throw new TypeError(`${name}: there is no reduction “${value}”`);
    return found;
}

function makeLayer(name, spec) {
    const raw = GTorch[name];

    return function (...given) {
        const [values, options] = bind(name, spec, given);
        refuse(name, options);
        spec.forEach(([key], i) => {
            if (key === 'reduction')
                values[i] = reduction(name, values[i]);
            else if (key === 'normalized_shape')
                values[i] = [values[i]].flat();
        });
        return raw.new(...values);
    };
}

function makeOptimizer(name, spec, properties) {
    const raw = GTorch[name];

    return function (params, ...given) {
        const [values, options] = bind(name, spec, given);
        const made = raw.new(listModel(params), ...values);
        for (const [key, value] of Object.entries(options)) {
            if (!properties.includes(key))
                refuse(name, {[key]: value});
            if (key === 'betas')
                [made.beta1, made.beta2] = value;
            else if (key === 'weight_decay')
                forEachItem(made.get_param_groups(), group => group.set_weight_decay(value));
            else
                made[key] = value;
        }
        made.check();
        return made;
    };
}

function forEachItem(model, func) {
    for (let i = 0; i < model.get_n_items(); i++)
        func(model.get_item(i), i);
}

function items(model) {
    const found = [];
    forEachItem(model, item => found.push(item));
    return found;
}

function listModel(params) {
    if (params instanceof Gio.ListModel || params.get_n_items)
        return params;
    const store = Gio.ListStore.new(GTorch.Tensor.$gtype);
    params.forEach(param => store.append(param));
    return store;
}

// --- modules --------------------------------------------------------------------------------------

// Members that were assigned to a module belong to it. They cannot be seen while they are assigned, so
// everything that looks into a module looks for them first.
function adopt(module) {
    const children = module.get_child_names.raw.call(module);
    const parameters = module.get_parameter_names.raw.call(module, false);

    for (const [name, value] of Object.entries(module)) {
        if (value instanceof GTorch.Parameter && !parameters.includes(name))
            module.register_parameter.raw.call(module, name, value);
        else if (value instanceof GTorch.Module && !children.includes(name))
            module.register_module.raw.call(module, name, value);
    }
    forEachItem(module.get_children.raw.call(module), adopt);
}

// Calls into C, and throws what a forward() in JavaScript has thrown there as it was.
function restoring(func) {
    const depth = pending.length;
    try {
        return func();
    } catch (error) {
        if (pending.length > depth) {
            const original = pending.at(-1);
            pending.length = depth;
            throw original;
        }
        throw error;
    }
}

const LOOKING = [
    'apply', 'eval', 'get_buffer', 'get_buffer_names', 'get_buffers', 'get_child_names', 'get_children',
    'get_module', 'get_modules', 'get_parameter', 'get_parameter_names', 'get_parameters',
    'load_state_lists', 'register_buffer', 'register_module', 'register_parameter', 'set_requires_grad',
    'state_lists', 'to', 'to_string', 'train', 'zero_grad',
];

// A hook that returns nothing replaces nothing. (gjs itself keeps the function with its module, where the
// collector sees both.)
function overrideHooks(prototype) {
    for (const name of ['register_forward_hook', 'register_forward_pre_hook']) {
        const register = prototype[name];
        prototype[name] = function (hook) {
            if (typeof hook !== 'function')
                throw new TypeError(`${name}: the hook must be a function, not ${typeof hook}`);
            return register.call(this, (...values) => hook(...values) ?? null);
        };
    }
}

function overrideModule(Module) {
    const prototype = Module.prototype;
    overrideHooks(prototype);
    const raw = {forward: prototype.forward};

    for (const name of LOOKING) {
        const method = prototype[name];
        if (method === undefined)
            continue;
        raw[name] = method;
        prototype[name] = function (...given) {
            adopt(this);
            return method.apply(this, given);
        };
        prototype[name].raw = method;
    }

    Object.assign(prototype, {
        forward(x) {
            return restoring(() => raw.forward.call(this, x));
        },
        // The same, with hooks, for modules whose forward() is written in JavaScript.
        call(x) {
            adopt(this);
            return restoring(() => raw.forward.call(this, x));
        },
        parameters(recurse = true) {
            return items(this.get_parameters(recurse));
        },
        named_parameters(recurse = true) {
            const values = this.parameters(recurse);
            return this.get_parameter_names(recurse).map((name, i) => [name, values[i]]);
        },
        children() {
            return items(this.get_children());
        },
        named_children() {
            const values = this.children();
            return this.get_child_names().map((name, i) => [name, values[i]]);
        },
        modules() {
            return items(this.get_modules());
        },
        train(mode = true) {
            adopt(this);
            raw.train.call(this, mode);
            return this;
        },
        eval() {
            adopt(this);
            raw.eval.call(this);
            return this;
        },
        zero_grad(setToNone = true) {
            adopt(this);
            raw.zero_grad.call(this, setToNone);
        },
        load_state_dict(table, strict = true) {
            return this.load_state_lists(...state.lists('load_state_dict', table), strict);
        },
        state_dict() {
            return state.object(...this.state_lists());
        },
        to({device = null, dtype = GTorch.DType.NONE} = {}) {
            const where = typeof device === 'string' ? GTorch.Device.new_from_string(device) : device;
            adopt(this);
            raw.to.call(this, where, convert.dtype('to', dtype));
            return this;
        },
        toString() {
            return this.to_string();
        },
    });
    Object.defineProperty(prototype, 'training', {
        configurable: true,
        get() {
            return this.get_training();
        },
    });

    Module._classInit = function (klass) {
        if (isNew(klass.prototype, 'forward')) {
            klass.prototype.vfunc_forward = function (x) {
                return noting(() => mustBeTensor(`${klass.name}: forward()`, this.forward(x)));
            };
        }
        return GObject.Object._classInit(klass);
    };
}

function isNew(prototype, name) {
    return Object.hasOwn(prototype, name) && !Object.hasOwn(prototype, `vfunc_${name}`);
}

function mustBeTensor(what, value) {
    if (!(value instanceof GTorch.Tensor))
        throw new TypeError(`${what} gave ${typeof value}, not a tensor`);
    return value;
}

// Called from C, which forgets what kind of error it was.
function noting(func) {
    try {
        return func();
    } catch (error) {
        if (!(error instanceof GLib.Error))
            pending.push(error);
        throw error;
    }
}

// --- functions ------------------------------------------------------------------------------------

function overrideFunction(Function) {
    const apply = Function.prototype.apply;

    // One output as it is, several in an array.
    Function.prototype.call = function (...inputs) {
        const outputs = restoring(() => apply.call(this, inputs));
        return outputs.length === 1 ? outputs[0] : outputs;
    };
    Function._classInit = function (klass) {
        const tensors = (name, value) =>
            [value].flat().map(one => mustBeTensor(`${klass.name}: ${name}()`, one));

        if (isNew(klass.prototype, 'forward')) {
            klass.prototype.vfunc_forward = function (context, inputs) {
                return noting(() => tensors('forward', this.forward(context, ...inputs)));
            };
        }
        if (isNew(klass.prototype, 'backward')) {
            klass.prototype.vfunc_backward = function (context, grads) {
                return noting(() => {
                    const given = [this.backward(context, ...grads)].flat();
                    const needed = given.length === context.get_n_inputs()
                        ? given.filter((_grad, i) => context.get_needs_input_grad(i)) : given;
                    return tensors('backward', needed);
                });
            };
        }
        return GObject.Object._classInit(klass);
    };

    for (const name of ['gradcheck', 'gradgradcheck']) {
        const raw = GTorch[name];
        const rawFunction = GTorch[`${name}_function`];

        // function: a GTorch.Function, or what takes tensors and gives one.
        GTorch[name] = function (func, inputs, {eps = 1e-6, atol = 1e-5, rtol = 1e-3} = {}) {
            const list = [inputs].flat();
            return restoring(() => func instanceof Function
                ? rawFunction(func, list, eps, atol, rtol)
                : raw(tensors => noting(() => func(...tensors)), list, eps, atol, rtol));
        };
    }
}

function overrideOptimizer(prototype) {
    const zeroGrad = prototype.zero_grad;

    prototype.zero_grad = function (setToNone = true) {
        zeroGrad.call(this, setToNone);
    };
    prototype.state_dict = function () {
        return state.object(...this.state_lists());
    };
    prototype.load_state_dict = function (table) {
        return this.load_state_lists(...state.lists('load_state_dict', table));
    };
    Object.defineProperty(prototype, 'lr', {
        configurable: true,
        get() {
            return this.get_learning_rate();
        },
        set(value) {
            this.set_learning_rate(value);
        },
    });
}

function overrideScaler(prototype) {
    const {scale, update} = prototype;

    prototype.scale = function (outputs) {
        return Array.isArray(outputs) ? this.scale_list(outputs) : scale.call(this, outputs);
    };
    prototype.update = function (wanted = null) {
        update.call(this, typeof wanted === 'number'
            ? GTorch.tensor(wanted, {dtype: GTorch.float32}) : wanted);
    };
    prototype.state_dict = function () {
        return state.object(...this.state_lists());
    };
    prototype.load_state_dict = function (table) {
        return this.load_state_lists(...state.lists('load_state_dict', table));
    };
}

function setup(namespace) {
    GTorch = namespace;
    state.setup(GTorch);
    overrideModule(GTorch.Module);
    overrideFunction(GTorch.Function);
    overrideOptimizer(GTorch.Optimizer.prototype);
    overrideScaler(GTorch.GradScaler.prototype);

    const nn = {
        Module: GTorch.Module,
        Parameter: (data, requiresGrad = true) => GTorch.Parameter.new(data, requiresGrad),
        Sequential: (...modules) => {
            const list = modules.flat();
            list.forEach(adopt);
            return GTorch.Sequential.new_from_modules(list);
        },
    };
    for (const [name, spec] of Object.entries(LAYERS))
        nn[name] = makeLayer(name, spec);
    const optim = {Optimizer: GTorch.Optimizer};
    for (const [name, [spec, properties]] of Object.entries(OPTIMIZERS))
        optim[name] = makeOptimizer(name, spec, properties);
    // The namespace looks for every name in the typelib first, where these are not.
    Object.defineProperty(GTorch, 'nn', {value: nn});
    Object.defineProperty(GTorch, 'optim', {value: optim});
}
