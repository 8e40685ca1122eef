// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// The parameters, buffers and children of modules as attributes. The library holds them; the object has an
// accessor for each that is no property of its class, so that reading gives the member and assigning
// replaces it. gjs cannot observe that an attribute is deleted or defined by a class body, so every function
// that reads the members of a module synchronises them first.

/* exported CALLS_OWN_FORWARD adopt adoptChild assign assignMember items read setup */

const convert = imports.overrides._gtorch_convert;
const {restoring} = imports.overrides._gtorch_errors;

let GTorch;
const raw = {}; // the library's functions

// The names of the accessors of each module.
const shown = new WeakMap();

const LISTS = ['ModuleList', 'ParameterList', 'Sequential'];
const CLASSES = {PARAMETER: 'Parameter', BUFFER: 'Tensor', MODULE: 'Module'};

function forEachItem(model, func) {
    for (let i = 0; i < model.get_n_items(); i++)
        func(model.get_item(i), i);
}

function items(model) {
    const found = [];
    forEachItem(model, item => found.push(item));
    return found;
}

function kindOf(module, name) {
    const kind = raw.get_member_kind.call(module, name);
    return Object.keys(CLASSES).find(one => GTorch.MemberKind[one] === kind) ?? null;
}

// Returns the kind of the member that a value becomes.
function kindFor(value) {
    if (value instanceof GTorch.Parameter)
        return 'PARAMETER';
    return value instanceof GTorch.Module ? 'MODULE' : null;
}

// Returns a member, or undefined if there is none of this name.
function valueOf(module, name) {
    const kind = kindOf(module, name);
    if (kind === null)
        return undefined;
    if (kind === 'MODULE')
        return raw.get_module.call(module, name);
    const what = kind.toLowerCase();
    if (raw.get_member_names.call(module, GTorch.MemberKind[kind]).includes(name))
        return raw[`get_${what}`].call(module, name);
    return raw.is_computed.call(module, name) ? restoring(() => raw.get_tensor.call(module, name)) : null;
}

function refuseName(module, name) {
    const what = `${convert.nameOf(module.constructor)}.${name}`;
    throw new Error(`${what} is an attribute already, and no member can have its name`);
}

// Raises where a new member would be hidden by what has the name.
function mustBeFree(module, name) {
    if (name in Object.getPrototypeOf(module))
        refuseName(module, name);
}

// Removes a member. A parameter that a layer computes with remains registered, without a value.
function forget(module, name) {
    const kind = kindOf(module, name);
    if (kind === null)
        return;
    try {
        raw.unregister.call(module, name);
    } catch (error) {
        if (kind !== 'PARAMETER')
            throw error;
        raw.register_parameter.call(module, name, null);
    }
}

// Assigns to a parameter, buffer or module; returns false if neither the name nor the value is one.
function take(module, what, name, value) {
    const own = kindOf(module, name);
    const kind = kindFor(value) ?? own;
    if (kind === null)
        return false;
    if (own !== null && raw.is_computed.call(module, name)) {
        if (!(value instanceof GTorch.Tensor))
            throw new TypeError(`${what} is computed: a Tensor is wanted, not ${convert.describe(value)}`);
        restoring(() => raw.set_tensor.call(module, name, value));
        return true;
    }
    if (value !== null && !(value instanceof GTorch[CLASSES[kind]]))
        throw new TypeError(`${what} must be a ${CLASSES[kind]} or null, not ${convert.describe(value)}`);
    if (own !== null && own !== kind || kind === 'MODULE' && value === null)
        forget(module, name);
    if (kind === 'BUFFER')
        raw.set_buffer.call(module, name, value);
    else if (kind === 'PARAMETER' || value !== null)
        raw[`register_${kind.toLowerCase()}`].call(module, name, value);
    return true;
}

function define(module, name, value) {
    Object.defineProperty(module, name, {value, configurable: true, enumerable: true, writable: true});
}

function hide(module, name) {
    shown.get(module)?.delete(name);
    delete module[name];
}

// Lets the object have a member as an attribute. Those of a Sequential that have numbers are found by read().
function show(module, name) {
    if (name in Object.getPrototypeOf(module) || /^\d+$/.test(name))
        return;
    if (!shown.has(module))
        shown.set(module, new Set());
    shown.get(module).add(name);
    Object.defineProperty(module, name, {
        configurable: true,
        enumerable: true,
        get() {
            return valueOf(this, name);
        },
        set(value) {
            if (assign(this, name, value))
                return;
            hide(this, name);
            this[name] = value;
        },
    });
}

// Assigns to an attribute that the class lacks; returns false if it is no member.
function assign(module, name, value) {
    const isList = LISTS.some(list => module instanceof GTorch[list]);
    if (isList && /^-?\d+$/.test(name) && kindOf(module, name) === null) {
        const list = convert.nameOf(module.constructor);
        throw new RangeError(`${list}: there is nothing at ${name}; append() and insert() add`);
    }
    if (kindFor(value) !== null && kindOf(module, name) === null)
        mustBeFree(module, name);
    if (!take(module, `${convert.nameOf(module.constructor)}.${name}`, name, value))
        return false;
    if (value === null && kindOf(module, name) === null) {
        hide(module, name);
        define(module, name, null);
    } else {
        show(module, name);
    }
    return true;
}

// Assigns to a property of a layer that is a member, too; null leaves it out. Returns false if it is none.
function assignMember(what, module, property, value) {
    const name = property.replace(/-/g, '_');
    const kind = kindOf(module, name);
    if (kind === null)
        return false;
    return take(module, what, name, value);
}

// Forgets the members whose attributes were deleted.
function forgetDeleted(module) {
    for (const name of shown.get(module) ?? []) {
        if (!Object.hasOwn(module, name)) {
            forget(module, name);
            shown.get(module).delete(name);
        }
    }
}

// Returns the member with a name that neither the object nor its class has.
function read(module, name) {
    if (Object.hasOwn(module, 'constructor')) // the prototype of a class
        return undefined;
    try {
        forgetDeleted(module);
        return valueOf(module, name);
    } catch {
        return undefined; // before the object was initialised
    }
}

// Marks prototypes of classes whose objects may have a forward() of their own.
var CALLS_OWN_FORWARD = Symbol('C calls the forward() of the object');

// C calls the forward() of the class, unless that looks for one of the object.
function adoptChild(module) {
    if (Object.hasOwn(module, 'forward') && !module[CALLS_OWN_FORWARD]) {
        throw new TypeError(`${convert.nameOf(module.constructor)}: a module within another cannot have a ` +
            'forward() of its own, which would not be called: define forward() as a method of a class');
    }
    adopt(module);
}

// Makes the library's members those of the object, and of its descendants.
function adopt(module) {
    forgetDeleted(module);
    for (const [name, {value}] of Object.entries(Object.getOwnPropertyDescriptors(module))) {
        if (kindFor(value) !== null) {
            delete module[name];
            try {
                assign(module, name, value);
            } catch (error) {
                define(module, name, value);
                throw error;
            }
        }
    }
    forEachItem(raw.get_children.call(module), adoptChild);
}

const LOOKING = [
    'count_parameters', 'eval', 'get_buffer', 'get_buffer_names', 'get_buffers', 'get_child_names',
    'get_children', 'get_computed_names', 'get_member_kind', 'get_member_names', 'get_module',
    'get_module_names', 'get_modules', 'get_parameter', 'get_parameter_names', 'get_parameters',
    'get_tensor', 'is_computed', 'is_parametrized', 'is_pruned', 'load_state_lists', 'set_requires_grad',
    'set_tensor', 'state_lists', 'to', 'to_string', 'train', 'zero_grad',
];
const CHANGING = ['register_buffer', 'register_module', 'register_parameter', 'set_buffer', 'unregister'];
// What lets members be computed, or ends that.
const COMPUTING = [
    'apply_spectral_norm', 'apply_weight_norm', 'parametrize_orthogonal', 'parametrize_spectral_norm',
    'parametrize_weight_norm', 'prune_custom_from_mask', 'prune_identity', 'prune_l1_unstructured',
    'prune_ln_structured', 'prune_random_structured', 'prune_random_unstructured',
    'register_parametrization', 'remove_parametrizations', 'remove_pruning', 'remove_spectral_norm',
    'remove_weight_norm', 'restore_computed',
];
const KINDS = {
    register_buffer: 'BUFFER', register_module: 'MODULE', register_parameter: 'PARAMETER',
    set_buffer: 'BUFFER',
};

// Refuses what no member of the method's kind can be, and names the member.
function mustBeMember(method, name, value) {
    const type = CLASSES[KINDS[method]];
    if (value !== null && value !== undefined && !(value instanceof GTorch[type]))
        throw new TypeError(`${method}: ${name} must be a ${type} or null, not ${convert.describe(value)}`);
}

// Wraps a method that adds, replaces or removes the member of a name.
function changing(method, call) {
    return function (name, ...rest) {
        adopt(this);
        if (typeof name === 'string' && kindOf(this, name) === null && method !== 'unregister') {
            mustBeFree(this, name);
            if (Object.hasOwn(this, name) && this[name] !== null && this[name] !== undefined)
                refuseName(this, name);
        }
        if (typeof name === 'string' && Object.hasOwn(KINDS, method) && !convert.isOptions(rest[0]))
            mustBeMember(method, name, rest[0]);
        const result = call.call(this, name, ...rest);
        if (kindOf(this, name) !== null)
            show(this, name);
        else
            hide(this, name);
        return result;
    };
}

const BUFFER = [{name: 'name', required: true}, {name: 'tensor', required: true}, {name: 'persistent'}];

function setup(namespace) {
    GTorch = namespace;
    const {prototype} = GTorch.Module;
    for (const name of [...LOOKING, ...CHANGING])
        raw[name] = prototype[name];
    for (const name of LOOKING) {
        prototype[name] = function (...given) {
            adopt(this);
            return raw[name].apply(this, given);
        };
        prototype[name].raw = raw[name];
    }
    for (const name of CHANGING)
        prototype[name] = changing(name, raw[name]);
    for (const name of COMPUTING) {
        const call = prototype[name];
        prototype[name] = function (...given) {
            adopt(this);
            return restoring(() => call.apply(this, given));
        };
    }
    prototype.register_buffer = changing('register_buffer', function (...given) {
        const {name, tensor, persistent = true} = convert.bind('register_buffer', BUFFER, given);
        mustBeMember('register_buffer', name, tensor);
        return raw.register_buffer.call(this, name, tensor, persistent);
    });
    prototype.register_module = changing('register_module', function (...given) {
        const [name, module] = given;
        if (given.length !== 2 || module !== null)
            return raw.register_module.apply(this, given);
        if (kindOf(this, name) === 'MODULE')
            forget(this, name);
        return true;
    });
}
