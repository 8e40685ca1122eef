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

const {GObject} = imports.gi;
const convert = imports.overrides._gtorch_convert;
const {noteVfuncs, noting, restore, restoring} = imports.overrides._gtorch_errors;
const {LAYERS} = imports.overrides._gtorch_layer_table;
const optim = imports.overrides._gtorch_optim;
const properties = imports.overrides._gtorch_properties;
const state = imports.overrides._gtorch_state;

let GTorch;

// Returns the arguments in order, and the remaining options.
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

// Converts the arguments to properties.
function toProperties(name, args, values) {
    const found = {};
    for (const arg of args) {
        const {name: key, property, kind} = arg;
        const value = values[key];
        if (value === undefined)
            continue;
        if (value === null && arg.default === null && ['size', 'device', 'dtype'].includes(kind))
            continue;
        if (kind === 'refused') {
            if (value !== arg.default)
                throw new TypeError(`${name}: ${key} is not supported: ${arg.why}`);
        } else if (kind === 'device') {
            found[property] = convert.device(name, value);
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
    const spec = args.map(arg => arg.required ? [arg.name] : [arg.name, undefined]);

    return function (...given) {
        let values = {};
        if (!any) {
            const [list, rest] = bind(name, spec, given);
            refuse(name, rest);
            values = Object.fromEntries(spec.map(([key], i) => [key, list[i]]));
        }
        const made = new klass(toProperties(name, args, values));
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

// --- modules --------------------------------------------------------------------------------------

// The members that each module holds in properties: names to values.
const adopted = new WeakMap();

function isMember(value) {
    return value instanceof GTorch.Parameter || value instanceof GTorch.Module;
}

// Removes a member. A parameter that a layer computes with remains registered, without a value.
function forget(module, name) {
    const kind = module.get_member_kind(name);
    if (kind === GTorch.MemberKind.NONE)
        return;
    try {
        module.unregister.raw.call(module, name);
    } catch (error) {
        if (kind !== GTorch.MemberKind.PARAMETER)
            throw error;
        module.register_parameter.raw.call(module, name, null);
    }
}

// Members that were assigned to a property belong to the module until the property is deleted or holds
// something else. gjs cannot observe that, so every function that reads the members of a module
// synchronises them first.
function adopt(module) {
    const known = adopted.get(module) ?? new Map();

    for (const [name, value] of Object.entries(module)) {
        if (!isMember(value) || known.get(name) === value)
            continue;
        const kind = value instanceof GTorch.Parameter ? 'parameter' : 'module';
        const former = module.get_member_kind(name);
        if (former !== GTorch.MemberKind.NONE && former !== GTorch.MemberKind[kind.toUpperCase()])
            forget(module, name);
        module[`register_${kind}`].raw.call(module, name, value);
        known.set(name, value);
    }
    for (const name of [...known.keys()]) {
        if (!Object.hasOwn(module, name) || !isMember(module[name])) {
            forget(module, name);
            known.delete(name);
        }
    }
    if (known.size > 0)
        adopted.set(module, known);
    forEachItem(module.get_children.raw.call(module), adopt);
}

// After a method has registered or removed a member, updates the property of its name, if there is one.
function follow(module, name, value) {
    if (!Object.hasOwn(module, name))
        return;
    if (value === undefined)
        delete module[name];
    else
        module[name] = value;
    const known = adopted.get(module);
    if (isMember(value))
        known?.set(name, value);
    else
        known?.delete(name);
}

const LOOKING = [
    'eval', 'get_buffer', 'get_buffer_names', 'get_buffers', 'get_child_names', 'get_children',
    'get_module', 'get_modules', 'get_parameter', 'get_parameter_names', 'get_parameters',
    'load_state_lists', 'register_buffer', 'register_module', 'register_parameter', 'set_requires_grad',
    'set_buffer', 'state_lists', 'to', 'to_string', 'train', 'unregister', 'zero_grad',
];
// The value of the property after each of these methods.
const CHANGING = {
    register_buffer: (_name, buffer) => buffer,
    register_module: (_name, module) => module,
    register_parameter: (_name, parameter) => parameter,
    set_buffer: (_name, buffer) => buffer,
    unregister: () => undefined,
};

// Converts the value that a hook returns for C. (An array that is null arrives as an empty one.)
const HOOKS = {
    register_forward_hook: tensorOrNothing,
    register_forward_pre_hook: (name, value, [_module, inputs]) =>
        [value ?? inputs].flat().map(one => tensorOrNothing(name, one)),
    register_hook: tensorOrNothing,
    register_post_accumulate_grad_hook: () => true,
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

function overrideHooks(prototype) {
    for (const [name, result] of Object.entries(HOOKS)) {
        const method = prototype[name];
        if (method === undefined)
            continue;
        const instead = GTorch[FUNCTIONS[name]];
        const register = instead === undefined ? method : function (hook) {
            return instead(this, hook);
        };
        prototype[name] = function (hook) {
            convert.plainFunction(name, hook);
            return register.call(this, (...values) => noting(() => result(name, hook(...values), values)));
        };
    }
}

function overrideModule(Module) {
    const prototype = Module.prototype;
    overrideHooks(prototype);
    const raw = {forward: prototype.forward, forward_many: prototype.forward_many};

    for (const name of LOOKING) {
        const method = prototype[name];
        if (method === undefined)
            continue;
        raw[name] = method;
        prototype[name] = function (...given) {
            adopt(this);
            const result = method.apply(this, given);
            if (Object.hasOwn(CHANGING, name))
                follow(this, given[0], CHANGING[name](...given));
            return result;
        };
        prototype[name].raw = method;
    }

    Object.assign(prototype, {
        // Runs the hooks, too. super.forward(x) only runs the forward of the parent class.
        forward(x) {
            const above = this.forward === prototype.forward ? null : parentOf(this);
            return restoring(() => above === null
                ? raw.forward.call(this, x) : above.vfunc_forward.call(this, x));
        },
        forward_many(inputs) {
            return restoring(() => raw.forward_many.call(this, inputs));
        },
        // Does the same, with hooks, for modules whose forward() is written in JavaScript.
        call(...inputs) {
            adopt(this);
            if (inputs.length === 1)
                return restoring(() => raw.forward.call(this, inputs[0]));
            if (!this.has_hooks())
                return computeOf(this).apply(this, inputs);
            return this.forward_many(inputs.map(x => mustBeTensor(`${this.constructor.name}: an input`, x)));
        },
        // Calls func with each descendant, and last with this module.
        apply(func) {
            convert.plainFunction('apply', func);
            this.children().forEach(child => child.apply(func));
            func(this);
            return this;
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
        // to('cuda:0'), to(GTorch.float64), to(tensor), to('cuda:0', GTorch.float16), to({device: 'cuda'})
        to(...given) {
            const {device, dtype} = convert.target('to', given);
            adopt(this);
            raw.to.call(this, device, dtype);
            return this;
        },
        toString() {
            return this.to_string();
        },
    });
    Module._classInit = function (klass) {
        if (isNew(klass.prototype, 'forward')) {
            const compute = (self, inputs) =>
                mustBeTensor(`${klass.name}: forward()`, computeOf(self).apply(self, inputs));
            klass.prototype.forward = withHooks(klass.prototype.forward);
            klass.prototype.vfunc_forward = function (x) {
                return noting(() => compute(this, [x]));
            };
            if (!Object.hasOwn(klass.prototype, 'vfunc_forward_many')) {
                klass.prototype.vfunc_forward_many = function (inputs) {
                    return noting(() => compute(this, inputs));
                };
            }
        }
        noteVfuncs(klass.prototype, 'compute');
        return GObject.Object._classInit(klass);
    };
}

// Returns the first parent class without a forward() in JavaScript.
function parentOf(module) {
    let prototype = Object.getPrototypeOf(module);
    let found = prototype;
    for (; prototype !== GTorch.Module.prototype; prototype = Object.getPrototypeOf(prototype)) {
        if (Object.hasOwn(prototype, 'forward'))
            found = Object.getPrototypeOf(prototype);
    }
    return found;
}

// Returns the forward of a module, without hooks.
function computeOf(module) {
    return module.forward.compute ?? module.forward;
}

// forward() of a class runs hooks when others call it; C and super.forward() run it without.
function withHooks(compute) {
    const forward = function (...inputs) {
        const isOutermost = this.forward === forward;
        return isOutermost && this.has_hooks() ? this.call(...inputs) : compute.apply(this, inputs);
    };
    forward.compute = compute;
    return forward;
}

function isNew(prototype, name) {
    return Object.hasOwn(prototype, name) && !Object.hasOwn(prototype, `vfunc_${name}`);
}

function mustBeTensor(what, value) {
    if (!(value instanceof GTorch.Tensor))
        throw new TypeError(`${what} gave ${typeof value}, not a tensor`);
    return value;
}

// --- functions ------------------------------------------------------------------------------------

function overrideFunction(Function) {
    const apply = Function.prototype.apply;

    // Returns one output as it is, several in an array.
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

        // function: a GTorch.Function, or a function that takes tensors and returns one.
        GTorch[name] = function (func, inputs, options = {}) {
            if (!(func instanceof Function))
                convert.plainFunction(name, func);
            const {eps, atol, rtol} =
                convert.options(name, options, {eps: 1e-6, atol: 1e-5, rtol: 1e-3});
            const list = [inputs].flat();
            return restoring(() => func instanceof Function
                ? rawFunction(func, list, eps, atol, rtol)
                : raw(tensors => noting(() => mustBeTensor('the function', func(...tensors))),
                    list, eps, atol, rtol));
        };
    }
}

function overrideScaler(prototype) {
    const {scale, update} = prototype;
    restore(prototype, 'step');

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
    overrideHooks(GTorch.Tensor.prototype);
    for (const [method, name] of Object.entries(FUNCTIONS))
        GTorch[name] = (tensor, hook) => GTorch.Tensor.prototype[method].call(tensor, hook);
    restore(GTorch.Loss.prototype, 'forward');
    restore(GTorch.GraphedModule.prototype, 'run');
    const makeGraphed = GTorch.GraphedModule.new_for_func;
    GTorch.GraphedModule.new_for_func = (func, samples) => {
        convert.plainFunction('new_for_func', func);
        return makeGraphed.call(GTorch.GraphedModule, inputs => noting(() => func(inputs)), samples);
    };
    restore(GTorch, 'make_graphed_callables');
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
    // The namespace looks up every name in the typelib first, which does not have these.
    Object.defineProperty(GTorch, 'nn', {value: nn});
    Object.defineProperty(GTorch, 'optim', {value: optim.setup(GTorch)});
}
