// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Optimizers and schedules: GTorch.optim, GTorch.optim.lr_scheduler. Their arguments come from rows.
//
//     const optimizer = GTorch.optim.SGD(net.parameters(), {lr: 0.1, momentum: 0.9});
//     const scheduler = GTorch.optim.lr_scheduler.StepLR(optimizer, {step_size: 30, gamma: 0.1});

/* exported setup */

const {Gio, GLib, GObject} = imports.gi;
const convert = imports.overrides._gtorch_convert;
const {noteVfuncs, noting, restore} = imports.overrides._gtorch_errors;
const properties = imports.overrides._gtorch_properties;
const state = imports.overrides._gtorch_state;
const {OPTIMIZERS, SCHEDULES} = imports.overrides._gtorch_steps;

const LAST_EPOCH = {name: 'last_epoch', required: false, default: -1, form: null, names: ['last_epoch']};

let GTorch;

// Returns the values of a row's arguments by name.
function bind(row, given) {
    const positional = [...given];
    const {name, args} = row;
    const hasOptions = positional.length > 0 && convert.isOptions(positional.at(-1));
    const options = hasOptions ? {...positional.pop()} : {};
    if (positional.length > row.positional)
        throw new TypeError(`${name}: ${positional.length} arguments were given, it takes ${row.positional}`);
    const values = {};
    args.forEach((arg, i) => {
        let value = positional[i];
        if (i >= positional.length) {
            value = options[arg.name];
            delete options[arg.name];
        }
        if (value === undefined && arg.required)
            throw new TypeError(`${name}: ${arg.name} is missing`);
        values[arg.name] = value === undefined ? arg.default : value;
    });
    for (const key in options)
        throw new TypeError(`${name}: there is no option ${key}`);
    return values;
}

// Arguments that select an implementation of the step: here there is only one, which gives the same
// results.
function checkForms({name, args}, values) {
    const chosen = [];
    for (const {name: key, form} of args) {
        if (form !== 'form' && form !== 'refused')
            continue;
        const value = values[key];
        delete values[key];
        if (value !== null && typeof value !== 'boolean')
            throw new TypeError(`${name}: ${key} is true, false or null, not ${convert.describe(value)}`);
        if (form === 'refused' && value) {
            throw new GLib.Error(GTorch.Error, GTorch.Error.NOT_SUPPORTED,
                `${name}: ${key}=true is not supported: the step is not recorded for gradients`);
        }
        if (value && form === 'form')
            chosen.push(key);
    }
    if (chosen.length > 1)
        throw new TypeError(`${name}: ${chosen.join(' and ')} cannot both be true`);
}

// Converts the values of the arguments to those of properties: an argument may be several numbers.
function toProperties({name, args}, values) {
    const found = {...values};
    for (const {name: key, names} of args) {
        if (!(key in found) || names.length === 0)
            continue;
        const given = names.length === 1 ? [found[key]] : found[key];
        if (!Array.isArray(given) || given.length !== names.length)
            throw new TypeError(`${name}: ${key} is ${names.length} numbers, not ${convert.describe(given)}`);
        delete found[key];
        names.forEach((own, i) => (found[own] = given[i]));
    }
    return found;
}

// Returns a number, or the value of a zero-dimensional tensor.
function setting(name, key, value) {
    return convert.number(name, key, value instanceof GTorch.Tensor ? value.item() : value);
}

function makeOptimizer(row) {
    return function (params, ...given) {
        const {name} = row;
        const values = bind(row, given);
        checkForms(row, values);
        const {lr, weight_decay: decay = 0, ...others} = values;
        const group = GTorch.ParamGroup.new(listModel(params), setting(name, 'lr', lr),
            setting(name, 'weight_decay', decay));
        const made = new GTorch[name](properties.construction(name, toProperties(row, others)));
        made.add_param_group(group);
        made.check();
        return made;
    };
}

function makeSchedule(row) {
    const full = {...row, args: [...row.args, LAST_EPOCH], positional: row.positional + 1};

    return function (optimizer, ...given) {
        const values = toProperties(full, bind(full, given));
        const made = new GTorch[row.name](properties.construction(row.name, {optimizer, ...values}));
        made.step();
        return made;
    };
}

function listModel(params) {
    if (params instanceof Gio.ListModel || params.get_n_items)
        return params;
    const store = Gio.ListStore.new(GTorch.Tensor.$gtype);
    params.forEach(param => store.append(param));
    return store;
}

function overrideState(prototype) {
    prototype.state_dict = function () {
        return state.object(...this.state_lists());
    };
    prototype.load_state_dict = function (table) {
        return this.load_state_lists(...state.lists('load_state_dict', table));
    };
}

function overrideOptimizer(Optimizer) {
    const {prototype} = Optimizer;
    restore(prototype, 'step');
    Optimizer._classInit = function (klass) {
        noteVfuncs(klass.prototype, 'step_param');
        return GObject.Object._classInit(klass);
    };

    const zeroGrad = prototype.zero_grad;

    prototype.zero_grad = function (setToNone = true) {
        zeroGrad.call(this, setToNone);
    };
    overrideState(prototype);
    Object.defineProperty(prototype, 'lr', {
        configurable: true,
        get() {
            return this.get_learning_rate();
        },
        set(value) {
            this.set_learning_rate(setting(this.constructor.name, 'lr', value));
        },
    });
}

// A subclass defines vfunc_compute(group, baseLr), which returns the learning rate of that group.
function overrideScheduler(LRScheduler) {
    const {prototype} = LRScheduler;
    restore(prototype, 'step');
    LRScheduler._classInit = function (klass) {
        const own = klass.prototype;
        if (Object.hasOwn(own, 'vfunc_compute')) {
            const compute = own.vfunc_compute;
            own.vfunc_compute = function (group, base) {
                return noting(() =>
                    [true, convert.number(klass.name, 'the learning rate', compute.call(this, group, base))]);
            };
        }
        return GObject.Object._classInit(klass);
    };
    overrideState(prototype);
}

function setup(namespace) {
    GTorch = namespace;
    overrideOptimizer(GTorch.Optimizer);
    overrideScheduler(GTorch.LRScheduler);

    const schedulers = {LRScheduler: GTorch.LRScheduler};
    for (const row of SCHEDULES)
        schedulers[row.name] = makeSchedule(row);
    const optim = {Optimizer: GTorch.Optimizer, lr_scheduler: schedulers};
    for (const row of OPTIMIZERS)
        optim[row.name] = makeOptimizer(row);
    return optim;
}
