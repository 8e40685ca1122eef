// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Groups of parameters, and their settings as numbers, booleans, texts and arrays:
//
//     const optimizer = GTorch.optim.Adam([{params, betas: [0.8, 0.99]}, {params: others}]);
//     const group = optimizer.get_param_groups().get_item(0);
//     group.set_setting('betas', [0.8, 0.9]);

/* exported groupsOf listModel makeGroup setting setup */

const {Gio, GLib, GObject} = imports.gi;
const convert = imports.overrides._gtorch_convert;

// Arguments that say how steps are made, not what they compute.
const FORMS = {foreach: null, fused: null, differentiable: false, capturable: false};

let GTorch;

// Returns a number, or the value of a zero-dimensional tensor.
function setting(name, key, value) {
    return convert.number(name, key, value instanceof GTorch.Tensor ? value.item() : value);
}

// --- values ---

function numberOf(name, key, type, value) {
    if (GObject.type_is_a(type, GObject.TYPE_ENUM)) {
        const kind = GObject.type_name(type).replace('GTorch', '');
        return value === null ? 0 : convert.enumeration(name, key, kind, value);
    }
    switch (GObject.type_name(type)) {
    case 'gboolean':
        return Number(convert.flag(name, key, value));
    case 'gint64':
        return value === null ? GTorch.NONE : Number(convert.bounded(name, key, 'int64', value));
    default:
        return value === null ? GTorch.NONE_DOUBLE : setting(name, key, value);
    }
}

// Converts a setting to the numbers of C.
function numbersOf(name, key, type, value) {
    return (Array.isArray(value) ? value : [value]).map(one => numberOf(name, key, type, one));
}

function shownNumber(type, value) {
    if (GObject.type_is_a(type, GObject.TYPE_ENUM)) {
        const members = GTorch[GObject.type_name(type).replace('GTorch', '')];
        const found = Object.keys(members).find(key => members[key] === value).toLowerCase();
        return found === 'none' ? null : found;
    }
    if (GObject.type_name(type) === 'gboolean')
        return value !== 0;
    return value === GTorch.NONE_DOUBLE || (GObject.type_name(type) === 'gint64' && value === GTorch.NONE)
        ? null : value;
}

// Converts the numbers of C to a setting.
function shown(type, values) {
    const found = values.map(one => shownNumber(type, one));
    return found.length === 1 ? found[0] : found;
}

// --- groups ---

function mustBeList(name, params) {
    const isOne = typeof params === 'string' ||
        params instanceof GTorch.Tensor || params instanceof GTorch.Module;
    const isList = params instanceof Gio.ListModel || typeof params?.[Symbol.iterator] === 'function';
    if (isOne || !isList) {
        const how = params instanceof GTorch.Module ? '; its parameters() are one' : '';
        throw new TypeError(`${name}: params must be an array of tensors or of groups, not ` +
            `${convert.describe(params)}${how}`);
    }
    return params instanceof Gio.ListModel ? params : [...params];
}

// Returns the parameters as a list model.
function listModel(name, params) {
    if (params instanceof Gio.ListModel)
        return params;
    const store = Gio.ListStore.new(GTorch.Tensor.$gtype);
    for (const param of params) {
        if (!(param instanceof GTorch.Tensor))
            throw new TypeError(`${name}: a parameter must be a tensor, not ${convert.describe(param)}`);
        store.append(param);
    }
    return store;
}

// Returns the parameters as groups: one, or one for each of PyTorch's objects with params.
function groupsOf(name, params) {
    const list = mustBeList(name, params);
    const isArray = Array.isArray(list);
    if ((isArray ? list.length : list.get_n_items()) === 0)
        throw new RangeError(`${name}: there are no parameters to optimize`);
    return isArray && list.every(convert.isOptions) ? list : [{params: list}];
}

function checkForm(name, optimizer, key, value) {
    if (value !== null && typeof value !== 'boolean')
        throw new TypeError(`${name}: ${key} is true, false or null, not ${convert.describe(value)}`);
    const refuse = why => {
        throw new GLib.Error(GTorch.Error, GTorch.Error.NOT_SUPPORTED, `${name}: ${why}`);
    };
    if (key === 'differentiable' && value)
        refuse('differentiable=true is not supported: the step is not recorded for gradients');
    if (key === 'capturable' && Boolean(value) !== optimizer.get_capturable())
        refuse('capturable must be the same for all groups: it is a property of the optimizer');
}

function isKnown(type) {
    return GObject.type_name(type) !== 'void';
}

function typeOf(name, optimizer, key) {
    const isOwn = optimizer.get_setting_names().length === 0; // of a class of the program's
    const type = optimizer.get_setting_type(key);
    if (isKnown(type))
        return type;
    if (isOwn || key === 'initial_lr')
        return GObject.TYPE_DOUBLE;
    throw new TypeError(`${name}: ${key} is no setting of a group`);
}

// Creates a group from PyTorch's object. What it lacks, it has from the optimizer.
function makeGroup(name, optimizer, given) {
    const {params, ...settings} = given;
    if (params === undefined)
        throw new TypeError(`${name}: a group: params is ${'params' in given ? 'undefined' : 'missing'}`);
    const list = listModel(name, mustBeList(name, params));
    const found = {};
    for (const [key, value] of Object.entries(settings)) {
        if (value === undefined)
            throw new TypeError(`${name}: ${key} is undefined`);
        if (Object.hasOwn(FORMS, key))
            checkForm(name, optimizer, key, value);
        else
            found[key] = numbersOf(name, key, typeOf(name, optimizer, key), value);
    }
    const names = optimizer.get_setting_names();
    const first = key => names.includes(key) ? optimizer.get_default(key)
        : key === 'lr' ? optimizer.get_learning_rate() : 0;
    const [rate, decay] = ['lr', 'weight_decay'].map(key =>
        found[key] === undefined ? first(key) : found[key][0]);
    const made = GTorch.ParamGroup.new(list, rate, decay);
    for (const [key, values] of Object.entries(found))
        rawSet.call(made, key, values);
    return made;
}

let rawSet;

function overrideGroup(prototype) {
    const {get_setting: get, get_setting_type: type} = prototype;
    rawSet = prototype.set_setting;
    const typeOfSetting = (group, name) => {
        const found = type.call(group, name);
        return isKnown(found) ? found : GObject.TYPE_DOUBLE;
    };
    convert.addMethods(prototype, {
        get_setting(name) {
            return shown(type.call(this, name), get.call(this, name));
        },
        set_setting(name, value) {
            return rawSet.call(this, name, numbersOf('ParamGroup', name, typeOfSetting(this, name), value));
        },
    });
    Object.defineProperty(prototype, 'lr', {
        configurable: true,
        get() {
            return this.get_learning_rate();
        },
        set(value) {
            this.learning_rate = setting('ParamGroup', 'lr', value);
        },
    });
}

// The states of the parameters that have any, by parameter.
function statesOf(optimizer) {
    const found = new Map();
    const groups = optimizer.get_param_groups();
    for (let i = 0; i < groups.get_n_items(); i++) {
        const params = groups.get_item(i).get_params();
        for (let k = 0; k < params.get_n_items(); k++) {
            const param = params.get_item(k);
            const names = optimizer.get_state_names(param);
            const own = names.map(name => [name, optimizer.get_state(param, name)]);
            if (names.length > 0)
                found.set(param, Object.freeze(Object.fromEntries(own)));
        }
    }
    return found;
}

function overrideOptimizer(prototype) {
    const {get_default: getDefault, set_setting: set, get_setting_type: type} = prototype;
    convert.addMethods(prototype, {
        get_default(name) {
            return shown(type.call(this, name), getDefault.call(this, name));
        },
        set_setting(name, value) {
            return set.call(this, name, numbersOf(convert.nameOf(this.constructor), name,
                typeOf('set_setting', this, name), value));
        },
    });
    Object.defineProperties(prototype, {
        // What a group has without settings of its own.
        defaults: {
            configurable: true,
            get() {
                const names = prototype.get_setting_names.call(this);
                const own = names.map(name => [name, prototype.get_default.call(this, name)]);
                const forms = {...FORMS, capturable: prototype.get_capturable.call(this)};
                return Object.freeze({...Object.fromEntries(own), ...forms});
            },
        },
        state: {
            configurable: true,
            get() {
                return statesOf(this);
            },
        },
    });
}

function setup(namespace) {
    GTorch = namespace;
    overrideGroup(GTorch.ParamGroup.prototype);
    overrideOptimizer(GTorch.Optimizer.prototype);
}
