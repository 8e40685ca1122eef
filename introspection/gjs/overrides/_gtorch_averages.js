// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Averages of the weights of a model: GTorch.optim.swa_utils.
//
//     const average = AveragedModel(net, {multi_avg_fn: get_ema_multi_avg_fn(0.99)});

/* exported setup */

const convert = imports.overrides._gtorch_convert;
const {asClass} = imports.overrides._gtorch_derived;
const {noting, restore, restoring} = imports.overrides._gtorch_errors;

let GTorch;

const optional = (name, value) => ({name, required: false, default: value});
const ARGS = [
    optional('device', null), optional('avg_fn', null), optional('multi_avg_fn', null),
    optional('use_buffers', false),
];
const COUNT = tensor => tensor.item() + 1;

function mustBeModule(name, model) {
    if (!(model instanceof GTorch.Module))
        throw new TypeError(`${name}: model must be a module, not ${convert.describe(model)}`);
}

// Returns the function for C.
function forC(key, func, finish) {
    convert.plainFunction(`AveragedModel: ${key}`, func);
    return (_model, averaged, current, count) =>
        noting(() => finish(convert.finished(key, func(averaged, current, count))));
}

function mustBeTensor(key, value) {
    if (!(value instanceof GTorch.Tensor))
        throw new TypeError(`${key} gave ${convert.describe(value)}, not a tensor`);
    return value;
}

// The copy is made by C, which refuses a class that a program defines: set a copy of it by new_from_copy().
function averagedModel(_Class, [model, ...given]) {
    const name = 'AveragedModel';
    mustBeModule(name, model);
    const bound = convert.bind(name, ARGS, given);
    const {device = null, use_buffers: buffers = false} = bound;
    const {avg_fn: one = null, multi_avg_fn: many = null} = bound;
    if (one !== null && many !== null)
        throw new TypeError(`${name}: avg_fn and multi_avg_fn cannot both be given`);
    const place = device === null ? null : convert.device(name, device);
    const made = GTorch.AveragedModel.new(model, place, convert.flag(name, 'use_buffers', buffers));
    if (one !== null)
        made.set_avg_fn(one);
    if (many !== null)
        made.set_multi_avg_fn(many);
    return made;
}

// Lets the setters take functions of a program.
function overrideSetters(prototype) {
    const {set_avg_fn: setOne, set_multi_avg_fn: setMany} = prototype;
    convert.addMethods(prototype, {
        set_avg_fn(func) {
            setOne.call(this, func === null ? null
                : forC('avg_fn', func, value => mustBeTensor('avg_fn', value)));
        },
        set_multi_avg_fn(func) {
            setMany.call(this, func === null ? null : forC('multi_avg_fn', func, () => true));
        },
    });
    restore(prototype, 'update_parameters');
}

function decayOf(name, given) {
    const {decay = 0.999} = convert.bind(name, [optional('decay', 0.999)], given);
    const value = convert.number(name, 'decay', decay);
    if (!(value >= 0 && value <= 1))
        throw new RangeError(`${name}: decay is ${value}, it must be from 0 to 1`);
    return value;
}

// Makes a function that mixes tensors in place out of one that does for two.
const together = mix => (averages, current, count) =>
    GTorch.no_grad(() => averages.forEach((average, i) => average.copy_(mix(average, current[i], count))));
const exponential = decay => (average, current) => average.mul(decay).add(current.mul(1 - decay));
const equal = () => (average, current, count) => average.add(current.sub(average).div(COUNT(count)));

// Computes the statistics of batch normalizations anew; the loader gives tensors, or arrays that begin
// with one.
function updateBN(raw) {
    return function (...given) {
        const args = [{name: 'loader', required: true}, {name: 'model', required: true}, {name: 'device'}];
        const {loader, model, device = null} = convert.bind('update_bn', args, given);
        mustBeModule('update_bn', model);
        if (typeof loader?.[Symbol.iterator] !== 'function') {
            const what = convert.describe(loader);
            throw new TypeError(`update_bn: the loader must be iterable, it is ${what}`);
        }
        const batches = loader[Symbol.iterator]();
        convert.plainFunction('update_bn', batches.next);
        restoring(() => raw(model, device === null ? null : convert.device('update_bn', device), () =>
            noting(() => {
                const {done, value} = convert.finished('update_bn', batches.next());
                return done ? null : mustBeTensor('the loader', Array.isArray(value) ? value[0] : value);
            })));
    };
}

function setup(namespace) {
    GTorch = namespace;
    overrideSetters(GTorch.AveragedModel.prototype);
    GTorch.update_bn = updateBN(GTorch.update_bn);
    return {
        AveragedModel: asClass('AveragedModel', GTorch.AveragedModel, averagedModel),
        update_bn: GTorch.update_bn,
        get_ema_avg_fn: (...given) => exponential(decayOf('get_ema_avg_fn', given)),
        get_ema_multi_avg_fn: (...given) => together(exponential(decayOf('get_ema_multi_avg_fn', given))),
        get_swa_avg_fn: () => equal(),
        get_swa_multi_avg_fn: () => together(equal()),
    };
}
