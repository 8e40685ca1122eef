// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Losses whose classes are written by hand: one with two results, and one with a function of the program's.

/* exported setup */

const convert = imports.overrides._gtorch_convert;
const {above} = imports.overrides._gtorch_derived;
const {noting, restore, restoring} = imports.overrides._gtorch_errors;

// forward(input, target) gives the log-probabilities of the targets, and the loss.
function overrideAdaptive(GTorch, isRunning) {
    const {prototype} = GTorch.AdaptiveLogSoftmaxWithLoss;
    const {forward: raw} = prototype;
    const args = [{name: 'input', required: true}, {name: 'target', required: true}];
    const forward = function (...given) {
        const name = `${convert.nameOf(this.constructor)}.forward`;
        const found = convert.bind(name, args, given);
        const inputs = args.map(arg => found[arg.name]);
        const wrong = inputs.find(one => !(one instanceof GTorch.Tensor));
        if (wrong !== undefined)
            throw new TypeError(`${name}: an input must be a tensor, not ${convert.describe(wrong)}`);
        if (this.forward === forward && !isRunning(this))
            return restoring(() => raw.apply(this, inputs)).slice(-2);
        const output = restoring(() => above(this, 'forward').vfunc_forward_many.call(this, inputs));
        return [output, output.mean().neg()];
    };
    prototype.forward = forward;
    // The first class of each cluster, and the number of classes, as in PyTorch.
    const {get, set, ...rest} = Object.getOwnPropertyDescriptor(prototype, 'cutoffs');
    Object.defineProperty(prototype, 'cutoffs', {
        ...rest, set, get() {
            return [...get.call(this), this.n_classes];
        },
    });
    restore(prototype, 'log_prob', 'predict');
}

// By a function of the program's or that of PairwiseDistance.
function overrideDistance(GTorch) {
    const name = 'triplet_margin_with_distance_loss';
    const raw = GTorch[name];
    const required = ['anchor', 'positive', 'negative'];
    const args = [...required.map(one => ({name: one, required: true})), {name: 'distance_function'},
        {name: 'margin'}, {name: 'swap'}, {name: 'reduction'}];
    GTorch[name] = function (...given) {
        const found = convert.bind(name, args, given);
        const {margin = 1, swap = false, reduction = 'mean'} = found;
        const func = Object.hasOwn(found, 'distance_function') ? found.distance_function : null;
        const inputs = required.map(key => {
            if (!(found[key] instanceof GTorch.Tensor))
                throw new TypeError(`${name}: ${key} must be a tensor, not ${convert.describe(found[key])}`);
            return found[key];
        });
        const isModule = func instanceof GTorch.Module;
        if (func !== null && !isModule)
            convert.plainFunction(name, func);
        const compute = isModule ? (x1, x2) => func.forward(x1, x2) : func;
        const call = (x1, x2) => noting(() => {
            const distance = convert.finished(name, compute(x1, x2));
            if (!(distance instanceof GTorch.Tensor))
                throw new TypeError(`${name}: the function gave ${convert.describe(distance)}, not a tensor`);
            return distance;
        });
        return restoring(() => raw(...inputs, func === null ? null : call,
            convert.number(name, 'margin', margin), convert.flag(name, 'swap', swap),
            convert.enumeration(name, 'reduction', 'Reduction', reduction)));
    };
}

function setup(GTorch, isRunning) {
    overrideAdaptive(GTorch, isRunning);
    overrideDistance(GTorch);
}
