// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Functions of all parameters together: GTorch.nn.utils.
//
//     const norm = GTorch.nn.utils.clip_grad_norm_(net.parameters(), 1);

/* exported setup */

const convert = imports.overrides._gtorch_convert;

let GTorch;

const PARAMETERS = {name: 'parameters', required: true};
const FOREACH = {name: 'foreach', default: null};
const NORM = [{name: 'norm_type', default: 2}, {name: 'error_if_nonfinite', default: false}, FOREACH];

// Returns an array of tensors; PyTorch takes a single one, too.
function tensors(name, key, given) {
    const found = given instanceof GTorch.Tensor ? [given] : given;
    if (typeof found?.[Symbol.iterator] !== 'function')
        throw new TypeError(`${name}: ${key} must be tensors, not ${convert.describe(given)}`);
    return [...found].map(one => {
        if (!(one instanceof GTorch.Tensor))
            throw new TypeError(`${name}: ${key} must be tensors, not ${convert.describe(one)}`);
        return one;
    });
}

// Makes a function of PyTorch's arguments; call gets their values.
function define(name, args, call) {
    const defaults = args.filter(arg => !arg.required).map(arg => [arg.name, arg.default]);
    return (...given) => {
        const values = {...Object.fromEntries(defaults), ...convert.bind(name, args, given)};
        const {foreach = null} = values;
        if (foreach !== null && typeof foreach !== 'boolean')
            throw new TypeError(`${name}: foreach is true, false or null, not ${convert.describe(foreach)}`);
        const number = key => convert.number(name, key, values[key]);
        const list = key => tensors(name, key, values[key]);
        return call(values, number, list, key => convert.flag(name, key, values[key]));
    };
}

const FORMATS = {
    contiguous_format: 'CONTIGUOUS', channels_last: 'CHANNELS_LAST', channels_last_3d: 'CHANNELS_LAST_3D',
};

// Changes the order in memory of the weights of all convolutions of images, or of volumes.
function converter(n) {
    const name = `convert_conv${n}d_weight_memory_format`;
    const args = [{name: 'module', required: true}, {name: 'memory_format', required: true}];
    return (...given) => {
        const {module, memory_format: format} = convert.bind(name, args, given);
        if (!(module instanceof GTorch.Module))
            throw new TypeError(`${name}: module must be a Module, not ${convert.describe(module)}`);
        if (typeof format === 'string' && !Object.hasOwn(FORMATS, format)) {
            throw new TypeError(`${name}: memory_format must be one of ${Object.keys(FORMATS).join(', ')}, ` +
                `not ${format}`);
        }
        module[name](convert.enumeration(name, 'memory_format', 'MemoryFormat', FORMATS[format] ?? format));
        return module;
    };
}

function setup(namespace) {
    GTorch = namespace;
    const required = name => ({name, required: true});
    return {
        get_total_norm: define('get_total_norm', [required('tensors'), ...NORM],
            (_values, number, list, flag) => GTorch.get_total_norm(list('tensors'), number('norm_type'),
                flag('error_if_nonfinite'))),
        clip_grads_with_norm_: define('clip_grads_with_norm_',
            [PARAMETERS, required('max_norm'), required('total_norm'), FOREACH], (values, number, list) => {
                GTorch.clip_grads_with_norm(list('parameters'), number('max_norm'), values.total_norm);
            }),
        clip_grad_norm_: define('clip_grad_norm_', [PARAMETERS, required('max_norm'), ...NORM],
            (_values, number, list, flag) => GTorch.clip_grad_norm(list('parameters'), number('max_norm'),
                number('norm_type'), flag('error_if_nonfinite'))),
        clip_grad_value_: define('clip_grad_value_', [PARAMETERS, required('clip_value'), FOREACH],
            (_values, number, list) => {
                GTorch.clip_grad_value(list('parameters'), number('clip_value'));
            }),
        convert_conv2d_weight_memory_format: converter(2),
        convert_conv3d_weight_memory_format: converter(3),
        parameters_to_vector: define('parameters_to_vector', [PARAMETERS], (_values, _number, list) =>
            GTorch.parameters_to_vector(list('parameters'))),
        vector_to_parameters: define('vector_to_parameters', [required('vec'), PARAMETERS],
            ({vec}, _number, list) => {
                GTorch.vector_to_parameters(vec, list('parameters'));
            }),
    };
}
