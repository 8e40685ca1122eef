// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Optimizers and schedules: GTorch.optim, GTorch.optim.lr_scheduler. Their arguments come from rows.
//
//     const optimizer = GTorch.optim.SGD(net.parameters(), {lr: 0.1, momentum: 0.9});
//     const scheduler = GTorch.optim.lr_scheduler.StepLR(optimizer, {step_size: 30, gamma: 0.1});

/* exported setup */

const {GLib} = imports.gi;
const averages = imports.overrides._gtorch_averages;
const convert = imports.overrides._gtorch_convert;
const {SUCCESS, above, asClass, define, derivable} = imports.overrides._gtorch_derived;
const {noting, restore, restoring} = imports.overrides._gtorch_errors;
const groups = imports.overrides._gtorch_groups;
const properties = imports.overrides._gtorch_properties;
const schedules = imports.overrides._gtorch_schedules;
const state = imports.overrides._gtorch_state;
const {OPTIMIZERS, SCHEDULES} = imports.overrides._gtorch_steps;

const LAST_EPOCH = {name: 'last_epoch', required: false, default: -1, form: null, names: ['last_epoch']};

let GTorch;

// Returns the values of a row's arguments by name.
function bind({name, args, positional}, given) {
    const defaults = args.filter(arg => !arg.required).map(arg => [arg.name, arg.default]);
    return {...Object.fromEntries(defaults), ...convert.bind(name, args, given, positional)};
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
    for (const {name: key, names, none} of args) {
        if (!(key in found) || names.length === 0)
            continue;
        const given = names.length === 1 ? [found[key]] : found[key];
        if (!Array.isArray(given) || given.length !== names.length)
            throw new TypeError(`${name}: ${key} is ${names.length} numbers, not ${convert.describe(given)}`);
        delete found[key];
        names.forEach((own, i) => (found[own] = given[i] ?? none ?? given[i]));
    }
    return found;
}

function makeOptimizer(row) {
    const {name} = row;

    return asClass(name, GTorch[name], (Class, [params, ...rest]) => {
        const values = bind(row, rest);
        checkForms(row, values);
        const {lr, weight_decay: decay, ...others} = values;
        const given = groups.groupsOf(name, params);
        const made = Reflect.construct(GTorch[name],
            [properties.construction(name, toProperties(row, others))], Class);
        made.set_setting('lr', lr);
        if (decay !== undefined)
            made.set_setting('weight_decay', decay);
        for (const group of given.map(one => groups.makeGroup(name, made, one)))
            made.add_param_group(group);
        made.check();
        return made;
    });
}

function makeSchedule(row) {
    const full = {...row, args: [...row.args, LAST_EPOCH], positional: row.positional + 1};

    return asClass(row.name, GTorch[row.name], (Class, [optimizer, ...given]) => {
        const values = toProperties(full, bind(full, given));
        const made = Reflect.construct(GTorch[row.name],
            [properties.construction(row.name, {optimizer, ...values})], Class);
        made.initial_step();
        return made;
    });
}

function overrideState(prototype) {
    convert.addMethods(prototype, {
        state_dict() {
            return state.object(...prototype.state_lists.call(this));
        },
        load_state_dict(table) {
            return prototype.load_state_lists.call(this, ...state.lists('load_state_dict', table));
        },
    });
}

function overrideOptimizer(Optimizer) {
    const {prototype} = Optimizer;
    restore(prototype, 'step');
    const {step, step_closure: stepClosure} = prototype;
    // Makes a step that calls the closure several times. Returns the first loss.
    const stepByClosure = (optimizer, closure) => {
        const losses = [];
        convert.plainFunction('step', closure);
        restoring(() => stepClosure.call(optimizer, () => noting(() => {
            const loss = convert.finished('step', closure());
            losses.push(...losses.length === 0 ? [loss] : []);
            return loss instanceof GTorch.Tensor ? loss
                : GTorch.tensor(convert.number('step', 'the loss', loss), {dtype: GTorch.float64});
        })));
        return losses[0];
    };
    // Returns the loss that the closure gives, if there is one.
    convert.addMethods(prototype, {
        step_closure(closure) {
            return this.step(convert.plainFunction('step_closure', closure));
        },
        step(...given) {
            const {closure = null} = convert.bind('step', [{name: 'closure'}], given);
            if (closure !== null)
                convert.plainFunction('step', closure);
            if (closure !== null && this instanceof GTorch.LBFGS)
                return stepByClosure(this, closure);
            const loss = closure === null ? null : GTorch.enable_grad(closure);
            const result = step.call(this);
            return closure === null ? result : loss;
        },
    });
    derivable(Optimizer, {
        step_param: SUCCESS,
    });

    const zeroGrad = prototype.zero_grad;

    prototype.zero_grad = function (...given) {
        const {set_to_none: toNone = true} = convert.bind('zero_grad', [{name: 'set_to_none'}], given);
        zeroGrad.call(this, toNone);
    };
    overrideState(prototype);
    Object.defineProperty(prototype, 'param_groups', {
        configurable: true,
        get() {
            const list = prototype.get_param_groups.call(this);
            return Array.from({length: list.get_n_items()}, (_, i) => list.get_item(i));
        },
    });
    const add = prototype.add_param_group;
    // A group, or PyTorch's object: {params: …, lr: …}.
    prototype.add_param_group = convert.counted('add_param_group', function (group) {
        const isOptions = convert.isOptions(group);
        add.call(this, isOptions ? groups.makeGroup('add_param_group', this, group) : group);
    });
    for (const name of ['lr', 'learning_rate', 'learning-rate', 'learningRate']) {
        Object.defineProperty(prototype, name, {
            configurable: true,
            get() {
                return this.get_learning_rate();
            },
            set(value) {
                const rate = groups.setting('Optimizer', name, value);
                // throws for what no group may have
                GTorch.ParamGroup.new(groups.listModel('lr', []), rate, 0);
                this.set_learning_rate(rate);
            },
        });
    }
}

// compute() of a class that defines PyTorch's get_lr(), which returns the learning rates of all groups.
function computeByList(group) {
    const groups = this.optimizer.get_param_groups();
    const count = groups.get_n_items();
    const rates = this.get_lr();
    if (!Array.isArray(rates) || rates.length !== count)
        throw new TypeError(`get_lr() gave ${convert.describe(rates)} for ${count} groups`);
    return rates.find((_rate, i) => groups.get_item(i) === group);
}

// A subclass defines compute(group, baseLr), which returns the learning rate of that group, or get_lr().
function overrideScheduler(LRScheduler) {
    const {prototype} = LRScheduler;
    restore(prototype, 'step');
    restore(prototype, 'initial_step');
    derivable(LRScheduler, {
        compute: {
            result: (what, value) => convert.number(what, 'the learning rate', value),
            pack: value => [true, value],
            unpack: value => Array.isArray(value) ? value.at(-1) : value,
        },
    }, ({prototype: own}) => {
        const isOwn = name => Object.hasOwn(own, name);
        if (isOwn('get_lr') && !isOwn('compute') && !isOwn('vfunc_compute'))
            define(own, 'vfunc_compute', computeByList);
    });
    overrideState(prototype);
    convert.addMethods(prototype, {
        // Returns the rates of all groups, for subclasses that change them.
        get_lr() {
            const groups = this.optimizer.get_param_groups();
            const found = above(this, 'get_lr');
            return this.get_base_lrs().map((base, i) =>
                found.vfunc_compute.call(this, groups.get_item(i), base));
        },
    });
    Object.defineProperty(prototype, 'base_lrs', {
        configurable: true,
        get() {
            return this.get_base_lrs();
        },
    });
}

function setup(namespace) {
    GTorch = namespace;
    overrideOptimizer(GTorch.Optimizer);
    overrideScheduler(GTorch.LRScheduler);
    groups.setup(GTorch);

    const schedulers = {LRScheduler: GTorch.LRScheduler};
    for (const row of SCHEDULES)
        schedulers[row.name] = makeSchedule(row);
    const {SWALR, ...others} = schedules.setup(GTorch);
    Object.assign(schedulers, others);
    const swa = {SWALR, ...averages.setup(GTorch)};
    const optim = {Optimizer: GTorch.Optimizer, lr_scheduler: schedulers, swa_utils: swa};
    for (const row of OPTIMIZERS)
        optim[row.name] = makeOptimizer(row);
    // What is missing says why.
    return Object.defineProperty(optim, 'SparseAdam', {
        get() {
            throw new GLib.Error(GTorch.Error, GTorch.Error.NOT_SUPPORTED,
                'SparseAdam: there are no sparse tensors, so no gradients for it: use Adam');
        },
    });
}
