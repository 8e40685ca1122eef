// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Tensors of modules that are computed from others: GTorch.nn.utils.parametrize, parametrizations,
// weight_norm, spectral_norm and fusion, and with them prune.
//
//     GTorch.nn.utils.parametrizations.weight_norm(layer);

/* exported setup */

const convert = imports.overrides._gtorch_convert;
const modules = imports.overrides._gtorch_modules;
const prune = imports.overrides._gtorch_prune;

const {define, required} = modules;

let GTorch;

const TENSOR = required('tensor_name'), WEIGHT = {name: 'name', default: 'weight'};
const SPECTRAL = [WEIGHT, {name: 'n_power_iterations', default: 1}, {name: 'eps', default: 1e-12},
    {name: 'dim', default: null}];

const dimOf = ({dim}) => dim === null ? GTorch.NONE : dim;

function parametrize() {
    return {
        register_parametrization: define('register_parametrization',
            [TENSOR, required('parametrization'), {name: 'unsafe', default: false}],
            ({tensor_name: name, parametrization, unsafe}, module) => {
                module.register_parametrization(name, parametrization, unsafe);
            }),
        remove_parametrizations: define('remove_parametrizations',
            [TENSOR, {name: 'leave_parametrized', default: true}],
            ({tensor_name: name, leave_parametrized: leave}, module) => {
                module.remove_parametrizations(name, leave);
            }),
        is_parametrized: define('is_parametrized', [{name: 'tensor_name', default: null}],
            ({tensor_name: name}, module) => module.is_parametrized(name)),
        type_before_parametrizations: define('type_before_parametrizations', [],
            (_values, module) => module.constructor),
        // Within func(), each parametrized tensor is computed once.
        cached(func) {
            convert.plainFunction('cached', func);
            GTorch.parametrize_begin_cache();
            try {
                return convert.finished('cached', func());
            } finally {
                GTorch.parametrize_end_cache();
            }
        },
        ParametrizationList: GTorch.ParametrizationList,
    };
}

function parametrizations() {
    return {
        weight_norm: define('weight_norm', [WEIGHT, {name: 'dim', default: 0}], (values, module) => {
            module.parametrize_weight_norm(values.name, dimOf(values));
        }),
        spectral_norm: define('spectral_norm', SPECTRAL, (values, module) => {
            const {name, n_power_iterations: n, eps} = values;
            module.parametrize_spectral_norm(name, n, eps, dimOf(values));
        }),
        orthogonal: define('orthogonal', [WEIGHT, {name: 'orthogonal_map', default: null},
            {name: 'use_trivialization', default: true}],
        ({name, orthogonal_map: map, use_trivialization: trivialization}, module) => {
            module.parametrize_orthogonal(name, map ?? 'automatic', trivialization);
        }),
    };
}

function norms() {
    return {
        weight_norm: define('weight_norm', [WEIGHT, {name: 'dim', default: 0}], (values, module) => {
            module.apply_weight_norm(values.name, dimOf(values));
        }),
        remove_weight_norm: define('remove_weight_norm', [WEIGHT], ({name}, module) => {
            module.remove_weight_norm(name);
        }),
        spectral_norm: define('spectral_norm', SPECTRAL, (values, module) => {
            const {name, n_power_iterations: n, eps} = values;
            module.apply_spectral_norm(name, n, eps, dimOf(values));
        }),
        remove_spectral_norm: define('remove_spectral_norm', [WEIGHT], ({name}, module) => {
            module.remove_spectral_norm(name);
        }),
    };
}

// C gives whether it worked, and the two parameters.
const two = found => found.slice(-2);

function fusion() {
    const bn = ['bn_rm', 'bn_rv', 'bn_eps', 'bn_w', 'bn_b'].map(required);
    const transposes = {name: 'transpose', default: false};
    return {
        fuse_conv_bn_eval: (...given) => {
            const {conv, bn: norm, transpose = false} =
                convert.bind('fuse_conv_bn_eval', [required('conv'), required('bn'), transposes], given);
            return GTorch.fuse_conv_bn_eval(conv, norm, transpose);
        },
        fuse_linear_bn_eval: (...given) => {
            const {linear, bn: norm} =
                convert.bind('fuse_linear_bn_eval', [required('linear'), required('bn')], given);
            return GTorch.fuse_linear_bn_eval(linear, norm);
        },
        fuse_conv_bn_weights: (...given) => {
            const values = convert.bind('fuse_conv_bn_weights',
                [required('conv_w'), required('conv_b'), ...bn, transposes], given);
            return two(GTorch.fuse_conv_bn_weights(values.conv_w, values.conv_b, values.bn_rm, values.bn_rv,
                values.bn_eps, values.bn_w, values.bn_b, values.transpose ?? false));
        },
        fuse_linear_bn_weights: (...given) => {
            const values = convert.bind('fuse_linear_bn_weights',
                [required('linear_w'), required('linear_b'), ...bn], given);
            return two(GTorch.fuse_linear_bn_weights(values.linear_w, values.linear_b, values.bn_rm,
                values.bn_rv, values.bn_eps, values.bn_w, values.bn_b));
        },
    };
}

function setup(namespace) {
    GTorch = namespace;
    modules.setup(GTorch);
    const fused = fusion();
    return {
        ...norms(), ...fused, fusion: fused, parametrize: parametrize(), parametrizations: parametrizations(),
        prune: prune.setup(GTorch),
    };
}
