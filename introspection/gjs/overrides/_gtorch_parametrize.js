// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Tensors of modules that are computed from others: GTorch.nn.utils.parametrize, parametrizations,
// weight_norm, spectral_norm, prune and fusion.
//
//     GTorch.nn.utils.parametrizations.weight_norm(layer);
//     GTorch.nn.utils.prune.l1_unstructured(layer, 'weight', 0.3);

/* exported setup */

const convert = imports.overrides._gtorch_convert;
const {restoring} = imports.overrides._gtorch_errors;

let GTorch;

const required = name => ({name, required: true});
const MODULE = required('module'), NAME = required('name'), TENSOR = required('tensor_name');
const WEIGHT = {name: 'name', default: 'weight'}, SCORES = {name: 'importance_scores', default: null};
const AMOUNT = required('amount');
const SPECTRAL = [WEIGHT, {name: 'n_power_iterations', default: 1}, {name: 'eps', default: 1e-12},
    {name: 'dim', default: null}];

// Makes a function of PyTorch's arguments, the first of which is a module. It returns what call gives, or the
// module.
function define(name, args, call) {
    const all = [MODULE, ...args];
    const defaults = all.filter(arg => !arg.required).map(arg => [arg.name, arg.default]);
    return (...given) => {
        const values = {...Object.fromEntries(defaults), ...convert.bind(name, all, given)};
        const {module} = values;
        if (!(module instanceof GTorch.Module))
            throw new TypeError(`${name}: module must be a Module, not ${convert.describe(module)}`);
        return restoring(() => call(values, module, name)) ?? module;
    };
}

const dimOf = ({dim}) => dim === null ? GTorch.NONE : dim;

// The amount is a share of the elements or, with is_count, their number: 1 may be both.
const IS_COUNT = {name: 'is_count', default: false};

function amountOf(name, {amount, is_count: isCount = false}) {
    return [convert.number(name, 'amount', amount), convert.flag(name, 'is_count', isCount)];
}

function orderOf(n) {
    return n === 'fro' ? 2 : convert.number('ln_structured', 'n', n);
}

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

const AT_RANDOM = {RandomUnstructured: true, L1Unstructured: false};

// Prunes elements of several parameters, [[module, name], …], by comparing all of them: by 'L1Unstructured'
// or 'RandomUnstructured'. Scores are an array of tensors, or of null for the parameter itself.
function globalUnstructured(...given) {
    const args = [required('parameters'), required('pruning_method'), AMOUNT, SCORES, IS_COUNT];
    const values = convert.bind('global_unstructured', args, given);
    const {parameters, pruning_method: method, importance_scores: scores = null} = values;
    if (!Object.hasOwn(AT_RANDOM, method)) {
        throw new TypeError("global_unstructured: pruning_method must be 'L1Unstructured' or " +
            `'RandomUnstructured', not ${convert.describe(method)}`);
    }
    const pairs = [...parameters];
    const found = scores?.map((one, i) => one ?? pairs[i][0].get_tensor(pairs[i][1])) ?? null;
    restoring(() => GTorch.prune_global_unstructured(pairs.map(([module]) => module),
        pairs.map(([, name]) => name), AT_RANDOM[method], ...amountOf('global_unstructured', values), found));
}

function prune() {
    return {
        identity: define('identity', [NAME], ({name}, module) => {
            module.prune_identity(name);
        }),
        random_unstructured: define('random_unstructured', [NAME, AMOUNT, IS_COUNT],
            (values, module, what) => {
                module.prune_random_unstructured(values.name, ...amountOf(what, values));
            }),
        l1_unstructured: define('l1_unstructured', [NAME, AMOUNT, SCORES, IS_COUNT],
            (values, module, what) => {
                const {name, importance_scores: scores} = values;
                module.prune_l1_unstructured(name, ...amountOf(what, values), scores);
            }),
        random_structured: define('random_structured', [NAME, AMOUNT, required('dim'), IS_COUNT],
            (values, module, what) => {
                module.prune_random_structured(values.name, ...amountOf(what, values), values.dim);
            }),
        ln_structured: define('ln_structured',
            [NAME, AMOUNT, required('n'), required('dim'), SCORES, IS_COUNT], (values, module, what) => {
                const {name, n, dim, importance_scores: scores} = values;
                module.prune_ln_structured(name, ...amountOf(what, values), orderOf(n), dim, scores);
            }),
        custom_from_mask: define('custom_from_mask', [NAME, required('mask')], ({name, mask}, module) => {
            module.prune_custom_from_mask(name, mask);
        }),
        remove: define('remove', [NAME], ({name}, module) => {
            module.remove_pruning(name);
        }),
        is_pruned: define('is_pruned', [], (_values, module) => module.is_pruned()),
        global_unstructured: globalUnstructured,
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
    const fused = fusion();
    return {
        ...norms(), ...fused, fusion: fused, parametrize: parametrize(), parametrizations: parametrizations(),
        prune: prune(),
    };
}
