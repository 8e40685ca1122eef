// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// GTorch.nn.init: functions that fill a tensor with the first values of a parameter, and return it.
//
//     GTorch.nn.init.kaiming_normal_(layer.weight, {nonlinearity: 'relu'});

/* exported members */

const convert = imports.overrides._gtorch_convert;

let GTorch;

const CONVOLUTIONS = ['', '_transpose'].flatMap(kind => [1, 2, 3].map(n => `conv${kind}${n}d`));
const FAN_MODES = {fan_in: 'IN', fan_out: 'OUT'};

function nonlinearity(name, value) {
    return CONVOLUTIONS.includes(value) ? GTorch.Nonlinearity.LINEAR
        : convert.enumeration(name, 'nonlinearity', 'Nonlinearity', value);
}

function fanMode(name, value) {
    if (typeof value === 'string' && !Object.hasOwn(FAN_MODES, value))
        throw new TypeError(`${name}: mode must be 'fan_in' or 'fan_out', not '${value}'`);
    return convert.enumeration(name, 'mode', 'FanMode', FAN_MODES[value] ?? value);
}

function generatorOf(name, value) {
    if (value !== null && !(value instanceof GTorch.Generator))
        throw new TypeError(`${name}: generator must be a Generator or null, not ${convert.describe(value)}`);
    return value;
}

const CONVERTERS = {
    generator: generatorOf, mode: fanMode, nonlinearity,
    groups: (name, value) => convert.integer(name, 'groups', value),
};
const GENERATOR = {generator: null}, REQUIRED = undefined;
const KAIMING = {a: 0, mode: 'fan_in', nonlinearity: 'leaky_relu', ...GENERATOR};

// The arguments after the tensor, with PyTorch's defaults, in the order of the function in C.
const FUNCTIONS = {
    constant: {val: REQUIRED},
    dirac: {groups: 1},
    eye: {},
    kaiming_normal: KAIMING,
    kaiming_uniform: KAIMING,
    normal: {mean: 0, std: 1, ...GENERATOR},
    ones: {},
    orthogonal: {gain: 1, ...GENERATOR},
    sparse: {sparsity: REQUIRED, std: 0.01, ...GENERATOR},
    trunc_normal: {mean: 0, std: 1, a: -2, b: 2, ...GENERATOR},
    uniform: {a: 0, b: 1, ...GENERATOR},
    xavier_normal: {gain: 1, ...GENERATOR},
    xavier_uniform: {gain: 1, ...GENERATOR},
    zeros: {},
};

function filler(name, spec) {
    const own = `${name}_`;
    const keys = Object.keys(spec);
    const args = keys.map(key => ({name: key, required: spec[key] === REQUIRED}));
    const all = [{name: 'tensor', required: true}, ...args];
    const fill = (...given) => {
        const {tensor, ...values} = {...spec, ...convert.bind(own, all, given)};
        if (!(tensor instanceof GTorch.Tensor))
            throw new TypeError(`${own}: tensor must be a tensor, not ${convert.describe(tensor)}`);
        const converted = keys.map(key => Object.hasOwn(CONVERTERS, key) ? CONVERTERS[key](own, values[key])
            : convert.number(own, key, values[key]));
        GTorch[`init_${name}`](tensor, ...converted);
        return tensor;
    };
    return Object.defineProperty(fill, 'name', {value: own});
}

// The factor by which a nonlinearity changes the spread of values; param is the slope of leaky_relu.
function calculateGain(...given) {
    const args = [{name: 'nonlinearity', required: true}, {name: 'param'}];
    const {nonlinearity: kind, param = null} = convert.bind('calculate_gain', args, given);
    return GTorch.init_calculate_gain(nonlinearity('calculate_gain', kind),
        param === null ? 0.01 : convert.number('calculate_gain', 'param', param));
}

function members(namespace) {
    GTorch = namespace;
    const fillers = Object.entries(FUNCTIONS).map(([name, spec]) => [`${name}_`, filler(name, spec)]);
    return {...Object.fromEntries(fillers), calculate_gain: calculateGain};
}
