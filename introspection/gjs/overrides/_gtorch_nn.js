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

const convert = imports.overrides._gtorch_convert;
const {define, derivable, ownFunction} = imports.overrides._gtorch_derived;
const {noting, restore, restoring} = imports.overrides._gtorch_errors;
const {LAYERS} = imports.overrides._gtorch_layer_table;
const optim = imports.overrides._gtorch_optim;
const properties = imports.overrides._gtorch_properties;
const state = imports.overrides._gtorch_state;

let GTorch;

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

    return function (...given) {
        const values = any ? {} : convert.bind(name, args, given);
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
            return register.call(this, (...values) => noting(() =>
                result(name, convert.finished(name, hook(...values)), values)));
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

    convert.addMethods(prototype, {
        // Runs the hooks, too. super.forward(x) only runs the forward of the parent class.
        forward(...inputs) {
            if (inputs.length !== 1)
                convert.surplus(`${convert.nameOf(this.constructor)}.forward`, inputs.length, 1);
            const above = this.forward === prototype.forward ? null : parentOf(this);
            return restoring(() => above === null
                ? raw.forward.apply(this, inputs) : above.vfunc_forward.apply(this, inputs));
        },
        forward_many(...given) {
            return restoring(() => raw.forward_many.apply(this, given));
        },
        // Does the same, with hooks, for modules whose forward() is written in JavaScript.
        call(...inputs) {
            adopt(this);
            if (inputs.length === 1)
                return restoring(() => raw.forward.call(this, inputs[0]));
            if (!this.has_hooks() && this.forward !== prototype.forward)
                return computeOf(this).apply(this, inputs);
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
            return items(this.get_parameters(recurse));
        },
        named_parameters(...given) {
            const {recurse = true} = convert.bind('named_parameters', [{name: 'recurse'}], given);
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
        train(...given) {
            const {mode = true} = convert.bind('train', [{name: 'mode'}], given);
            adopt(this);
            raw.train.call(this, mode);
            return this;
        },
        eval() {
            adopt(this);
            raw.eval.call(this);
            return this;
        },
        zero_grad(...given) {
            const {set_to_none: toNone = true} = convert.bind('zero_grad', [{name: 'set_to_none'}], given);
            adopt(this);
            raw.zero_grad.call(this, toNone);
        },
        load_state_dict(table, ...given) {
            const {strict = true} = convert.bind('load_state_dict', [{name: 'strict'}], given);
            convert.flag('load_state_dict', 'strict', strict);
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
    });
    const isTensor = {result: mustBeTensor};
    derivable(Module, {forward: isTensor, forward_many: isTensor, compute: isTensor}, prepareModule);
}

// Makes forward() take all inputs if no other function does, and run hooks where programs call it.
function prepareModule({prototype: own}) {
    const find = name => ownFunction(own, `vfunc_${name}`) ?? ownFunction(own, name);
    const forward = find('forward');
    const hasCompute = own instanceof GTorch.Loss && find('compute') !== null;

    if (forward !== null && find('forward_many') === null && !hasCompute) {
        define(own, 'vfunc_forward_many', function (inputs) {
            return forward.apply(this, inputs);
        });
    }
    if (Object.hasOwn(own, 'forward'))
        own.forward = withHooks('forward', own.forward, (self, inputs) => self.call(...inputs));
    if (Object.hasOwn(own, 'forward_many')) {
        const {forward_many: run} = GTorch.Module.prototype;
        own.forward_many = withHooks('forward_many', own.forward_many,
            (self, given) => run.apply(self, given));
    }
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
function withHooks(name, compute, run) {
    const method = function (...given) {
        const isOutermost = this[name] === method;
        return isOutermost && this.has_hooks() ? run(this, given) : compute.apply(this, given);
    };
    method.compute = compute;
    return method;
}

function mustBeTensor(what, value) {
    if (!(value instanceof GTorch.Tensor))
        throw new TypeError(`${what} gave ${convert.describe(value)}, not a tensor`);
    return value;
}

// --- functions ------------------------------------------------------------------------------------

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
        const outputs = restoring(() => apply.call(this, inputs));
        return outputs.length === 1 ? outputs[0] : outputs;
    };
    const call = (self, func, [context, tensors]) => func.call(self, context, ...tensors);
    const all = (what, value) => [value].flat().map(one => mustBeTensor(what, one));
    derivable(Function, {
        forward: {call, result: all},
        backward: {
            call,
            result: (what, value, _self, [context]) => {
                const given = [value].flat();
                return all(what, given.length === context.get_n_inputs()
                    ? given.filter((_grad, i) => context.get_needs_input_grad(i)) : given);
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
            const list = [inputs].flat();
            return restoring(() => func instanceof Function
                ? rawFunction(func, list, eps, atol, rtol)
                : raw(tensors => noting(() =>
                    mustBeTensor('the function', convert.finished(name, func(...tensors)))),
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

function parameter(...given) {
    const {data, requires_grad: grad = true} = convert.bind('Parameter', PARAMETER, given);
    if (!(data instanceof GTorch.Tensor))
        throw new TypeError(`Parameter: data must be a tensor, not ${convert.describe(data)}`);
    return GTorch.Parameter.new(data, grad);
}

// Takes modules in arrays or one by one.
function sequential(...given) {
    const modules = given.flat();
    const wrong = modules.find(one => !(one instanceof GTorch.Module));
    if (wrong !== undefined || modules.includes(undefined))
        throw new TypeError(`Sequential: modules are wanted, not ${convert.describe(wrong)}`);
    modules.forEach(adopt);
    return GTorch.Sequential.new_from_modules(modules);
}

function overrideContext(prototype) {
    Object.defineProperty(prototype, 'saved_tensors', {
        configurable: true,
        get() {
            return this.get_saved_tensors();
        },
    });
}

function setup(namespace) {
    GTorch = namespace;
    state.setup(GTorch);
    overrideModule(GTorch.Module);
    overrideFunction(GTorch.Function);
    overrideContext(GTorch.FunctionContext.prototype);
    overrideHooks(GTorch.Tensor.prototype);
    for (const [method, name] of Object.entries(FUNCTIONS))
        GTorch[name] = (tensor, hook) => GTorch.Tensor.prototype[method].call(tensor, hook);
    const {forward} = GTorch.Loss.prototype;
    GTorch.Loss.prototype.forward = function (...inputs) {
        if (inputs.length !== 2)
            convert.surplus(`${convert.nameOf(this.constructor)}.forward`, inputs.length, 2);
        return restoring(() => forward.apply(this, inputs));
    };
    restore(GTorch.GraphedModule.prototype, 'run');
    const makeGraphed = GTorch.GraphedModule.new_for_func;
    GTorch.GraphedModule.new_for_func = (func, samples) => {
        convert.plainFunction('new_for_func', func);
        return makeGraphed.call(GTorch.GraphedModule, inputs =>
            noting(() => convert.finished('new_for_func', func(inputs))), samples);
    };
    restore(GTorch, 'make_graphed_callables');
    overrideScaler(GTorch.GradScaler.prototype);

    const nn = {
        Module: GTorch.Module,
        Parameter: parameter,
        Sequential: sequential,
    };
    for (const [name, spec] of Object.entries(LAYERS))
        nn[name] = makeLayer(name, spec);
    // The namespace looks up every name in the typelib first, which does not have these.
    Object.defineProperty(GTorch, 'nn', {value: nn});
    Object.defineProperty(GTorch, 'optim', {value: optim.setup(GTorch)});
}
