// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// The schedules that are no formulas, with PyTorch's arguments.

/* exported setup */

const {Gio, GLib} = imports.gi;
const convert = imports.overrides._gtorch_convert;
const {asClass} = imports.overrides._gtorch_derived;
const {noting, restoring} = imports.overrides._gtorch_errors;
const properties = imports.overrides._gtorch_properties;

let GTorch;

const optional = (name, value) => ({name, required: false, default: value});
const required = name => ({name, required: true});
const LAST_EPOCH = optional('last_epoch', -1);
const FUNCTIONS = [required('lr_lambda'), LAST_EPOCH];
const ARGS = {
    LambdaLR: FUNCTIONS,
    MultiplicativeLR: FUNCTIONS,
    CyclicLR: [
        required('base_lr'), required('max_lr'), optional('step_size_up', 2000),
        optional('step_size_down', null), optional('mode', 'triangular'), optional('gamma', 1),
        optional('scale_fn', null), optional('scale_mode', 'cycle'), optional('cycle_momentum', true),
        optional('base_momentum', 0.8), optional('max_momentum', 0.9), LAST_EPOCH,
    ],
    OneCycleLR: [
        required('max_lr'), optional('total_steps', null), optional('epochs', null),
        optional('steps_per_epoch', null), optional('pct_start', 0.3),
        optional('anneal_strategy', 'cos'), optional('cycle_momentum', true),
        optional('base_momentum', 0.85), optional('max_momentum', 0.95), optional('div_factor', 25),
        optional('final_div_factor', 1e4), optional('three_phase', false), LAST_EPOCH,
    ],
    ReduceLROnPlateau: [
        optional('mode', 'min'), optional('factor', 0.1), optional('patience', 10),
        optional('threshold', 1e-4), optional('threshold_mode', 'rel'), optional('cooldown', 0),
        optional('min_lr', 0), optional('eps', 1e-8),
    ],
    SequentialLR: [
        required('schedulers'), required('milestones'), LAST_EPOCH,
    ],
    ChainedScheduler: [
        optional('optimizer', null),
    ],
    SWALR: [
        required('swa_lr'), optional('anneal_epochs', 10), optional('anneal_strategy', 'cos'),
        LAST_EPOCH,
    ],
};

// One number for each group, or one for all.
function numbers(name, key, value) {
    return (Array.isArray(value) ? value : [value]).map(one => convert.number(name, key, one));
}

// A number that PyTorch has for each group, and the library once for the optimizer.
function one(name, key, value) {
    const values = numbers(name, key, value);
    if (new Set(values).size !== 1) {
        const rule = 'the momentum belongs to the whole optimizer, so it must be the same for all groups';
        throw new GLib.Error(GTorch.Error, GTorch.Error.NOT_SUPPORTED,
            `${name}: ${key} is ${convert.describe(value)}: ${rule}`);
    }
    return values[0];
}

function mustBeOptimizer(name, optimizer) {
    if (!(optimizer instanceof GTorch.Optimizer))
        throw new TypeError(`${name}: optimizer must be an optimizer, not ${convert.describe(optimizer)}`);
    return optimizer.get_param_groups().get_n_items();
}

// Returns the function for C, which calls that of the group.
function caller(name, key, functions, optimizer) {
    const count = mustBeOptimizer(name, optimizer);
    const all = Array.isArray(functions) ? functions : new Array(count).fill(functions);
    if (all.length !== count)
        throw new RangeError(`${name}: ${key} has ${all.length} functions for ${count} groups`);
    all.forEach(func => convert.plainFunction(`${name}: ${key}`, func));
    return (_scheduler, n, group) => noting(() =>
        [true, convert.number(name, key, convert.finished(`${name}: ${key}`, all[group](n)))]);
}

function listModel(name, schedulers) {
    const store = Gio.ListStore.new(GTorch.LRScheduler.$gtype);
    if (!Array.isArray(schedulers)) {
        throw new TypeError(`${name}: schedulers must be an array of schedules, not ` +
            `${convert.describe(schedulers)}`);
    }
    for (const scheduler of schedulers) {
        if (!(scheduler instanceof GTorch.LRScheduler))
            throw new TypeError(`${name}: a schedule is wanted, not ${convert.describe(scheduler)}`);
        store.append(scheduler);
    }
    return store;
}

// How each is made of PyTorch's values: the values of properties, and what is set afterwards.
const MAKERS = {
    LambdaLR: functionOf,
    MultiplicativeLR: functionOf,
    CyclicLR(name, {base_lr: base, max_lr: max, scale_fn: scaleFn, mode, ...values}) {
        const rates = [numbers(name, 'base_lr', base), numbers(name, 'max_lr', max)];
        return [{
            ...values,
            ...scaleFn === null ? {mode} : {}, // which is of no effect otherwise
            ...momentaOf(name, values),
            step_size_down: values.step_size_down ?? values.step_size_up,
        }, made => {
            made.set_rates(...rates);
            if (scaleFn !== null)
                made.set_scale_fn(scaleFn);
        }];
    },
    OneCycleLR(name, {max_lr: max, total_steps: total, epochs, steps_per_epoch: perEpoch, ...values}) {
        const rates = numbers(name, 'max_lr', max);
        if (total === null && (epochs === null || perEpoch === null))
            throw new TypeError(`${name}: total_steps is missing, or epochs and steps_per_epoch are`);
        const given = total === null ? {epochs, steps_per_epoch: perEpoch} : {};
        for (const [key, value] of Object.entries(given)) {
            if (!Number.isInteger(value) || value < 1)
                throw new RangeError(`${name}: ${key} is ${convert.describe(value)}, not at least 1`);
        }
        return [{...values, ...momentaOf(name, values), total_steps: total ?? epochs * perEpoch},
            made => made.set_max_lrs(rates)];
    },
    ReduceLROnPlateau(name, {min_lr: min, ...values}) {
        const rates = numbers(name, 'min_lr', min);
        return [values, made => made.set_min_lrs(rates)];
    },
    SequentialLR: (name, {schedulers, ...values}) => [{...values, schedulers: listModel(name, schedulers)}],
    ChainedScheduler: (name, {optimizer, schedulers}) => {
        const model = listModel(name, schedulers);
        if (optimizer === null && schedulers.length === 0)
            throw new RangeError(`${name}: there are no schedules`);
        return [{optimizer: optimizer ?? schedulers[0].optimizer, schedulers: model}];
    },
    SWALR(name, {swa_lr: rate, ...values}) {
        const rates = numbers(name, 'swa_lr', rate);
        return [values, made => made.set_swa_lrs(rates)];
    },
};

function functionOf(name, {lr_lambda: functions, ...values}) {
    mustBeOptimizer(name, values.optimizer);
    return [values, made => made.set_lr_lambda(functions)];
}

function momentaOf(name, {base_momentum: base, max_momentum: max}) {
    return {base_momentum: one(name, 'base_momentum', base), max_momentum: one(name, 'max_momentum', max)};
}

function makeSchedule(name) {
    const args = ARGS[name];
    const defaults = args.filter(arg => !arg.required).map(arg => [arg.name, arg.default]);
    const first = name === 'ChainedScheduler' ? 'schedulers' : 'optimizer';

    return asClass(name, GTorch[name], (Class, [owner, ...given]) => {
        const values = {...Object.fromEntries(defaults), [first]: owner, ...convert.bind(name, args, given)};
        if (first === 'optimizer')
            mustBeOptimizer(name, owner);
        const [found, finish = () => {}] = MAKERS[name](name, values);
        const made = Reflect.construct(GTorch[name], [properties.construction(name, found)], Class);
        finish(made);
        if (name === 'ReduceLROnPlateau')
            made.check();
        else
            made.initial_step();
        return made;
    });
}

// Lets what takes a function for C take a program's function, or one for each group.
function overrideSetter(owner, setter, key) {
    const {prototype} = GTorch[owner];
    const raw = prototype[setter];
    prototype[setter] = function (...given) {
        const values = convert.bind(setter, [optional(key, null)], given.map(one => one ?? null));
        const {[key]: functions = null} = values;
        const func = caller(owner, key, functions, this.optimizer);
        return restoring(() => raw.call(this, func));
    };
}

function overrideNew(owner, key) {
    const make = GTorch[owner].new;
    GTorch[owner].new = function (...given) {
        const spec = [required('optimizer'), optional(key, null)];
        const {optimizer, [key]: functions = null} = convert.bind(owner, spec, given.map(one => one ?? null));
        const func = caller(owner, key, functions, optimizer);
        return restoring(() => make.call(this, optimizer, func));
    };
}

// Returns the schedules by name.
function setup(namespace) {
    GTorch = namespace;
    const {prototype} = GTorch.ReduceLROnPlateau;
    const stepMetric = prototype.step_metric;
    convert.addMethods(prototype, {
        // Ends an epoch with a metric: a number, or a tensor of one.
        step(...given) {
            const {metrics} = convert.bind('step', [required('metrics')], given);
            const value = metrics instanceof GTorch.Tensor ? metrics.item() : metrics;
            return stepMetric.call(this, convert.number('step', 'metrics', value));
        },
    });
    for (const name of ['LambdaLR', 'MultiplicativeLR']) {
        overrideSetter(name, 'set_lr_lambda', 'lr_lambda');
        overrideNew(name, 'lr_lambda');
    }
    overrideSetter('CyclicLR', 'set_scale_fn', 'scale_fn');
    return Object.fromEntries(Object.keys(ARGS).map(name => [name, makeSchedule(name)]));
}
