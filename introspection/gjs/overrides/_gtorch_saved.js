// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// What is saved for backward passes: hooks for it, and checkpoints, which compute it again; and derivatives
// of functions.
//
//     const y = GTorch.saved_tensors_hooks(t => t.to(GTorch.float16), t => t.to(GTorch.float32),
//         () => net.forward(x));
//     const z = GTorch.checkpoint((a, b) => block(a, b), a, b, {use_reentrant: false});

/* exported setup */

const {GObject} = imports.gi;
const convert = imports.overrides._gtorch_convert;
const {noting, restoring} = imports.overrides._gtorch_errors;

let GTorch, within;

// Anything that a function has packed; tensors are packed as they are.
const Packed = GObject.registerClass({GTypeName: 'GTorchGjsPacked'}, class extends GObject.Object {});

function overrideHooks(raw) {
    const hooks = (pack, unpack) => raw.saved_tensors_hooks(
        tensor => noting(() => {
            const value = convert.finished('saved_tensors_hooks', pack(tensor));
            return value instanceof GTorch.Tensor ? value : Object.assign(new Packed(), {value});
        }),
        packed => noting(() => {
            const tensor = convert.finished('saved_tensors_hooks',
                unpack(packed instanceof Packed ? packed.value : packed));
            if (!(tensor instanceof GTorch.Tensor)) {
                throw new TypeError(
                    `saved_tensors_hooks: unpack_hook gave ${convert.describe(tensor)}, not a tensor`);
            }
            return tensor;
        }));

    convert.addMethods(GTorch, {
        // Runs func; what operations save in it is what pack makes of it, and unpack makes the tensor again.
        saved_tensors_hooks(pack, unpack, func) {
            convert.plainFunction('saved_tensors_hooks', pack);
            convert.plainFunction('saved_tensors_hooks', unpack);
            return restoring(() => within('saved_tensors_hooks', func, () => hooks(pack, unpack)));
        },
        // Runs func; what operations save in it is kept in the memory of the CPU.
        save_on_cpu(func, ...given) {
            const {pin_memory: pin = false} = convert.bind('save_on_cpu', [{name: 'pin_memory'}], given);
            return within('save_on_cpu', func,
                () => raw.save_on_cpu(convert.flag('save_on_cpu', 'pin_memory', pin)));
        },
        // Runs func, in which hooks for saved tensors are refused.
        disable_saved_tensors_hooks(message, func) {
            if (typeof message !== 'string') {
                throw new TypeError('disable_saved_tensors_hooks: a text and a function are wanted, not ' +
                    convert.describe(message));
            }
            return within('disable_saved_tensors_hooks', func,
                () => raw.disable_saved_tensors_hooks(message));
        },
    });
}

// --- checkpoints ----------------------------------------------------------------------------------

const TENSOR = Symbol('tensor'); // stands for the tensors in a list

function withoutTensors(values) {
    return values.map(one => one instanceof GTorch.Tensor ? TENSOR : one);
}

function withTensors(values, tensors) {
    let i = 0;
    return values.map(one => one === TENSOR ? tensors[i++] : one);
}

const tensorsOf = values => values.filter(one => one instanceof GTorch.Tensor);

function recorded(raw, func, args, settings) {
    const {preserve_rng_state: random, determinism_check: check, early_stop: early} = settings;
    const others = withoutTensors(args);
    const again = tensors => noting(() => {
        convert.finished('checkpoint', func(...withTensors(others, tensors)));
        return true;
    });
    const guard = raw.checkpoint_begin(again, tensorsOf(args), random, check === 'default', early);
    try {
        return convert.finished('checkpoint', func(...args));
    } finally {
        guard.end();
    }
}

// C sees the tensors among the arguments and the results.
function reentrant(raw, func, args, random) {
    const others = withoutTensors(args);
    let shape = null;
    const call = tensors => noting(() => {
        const found = convert.finished('checkpoint', func(...withTensors(others, tensors)));
        const several = convert.list(found);
        shape ??= {isArray: Array.isArray(found), values: withoutTensors(several)};
        return tensorsOf(several);
    });
    const given = raw.checkpoint_function_new(call, random).apply(tensorsOf(args));
    const outputs = withTensors(shape.values, given);
    return shape.isArray ? outputs : outputs[0];
}

const SETTINGS = {
    use_reentrant: null, preserve_rng_state: true, determinism_check: 'default', early_stop: true,
};

function settingsOf(name, given, defaults) {
    const found = convert.options(name, given, defaults);
    for (const key of ['use_reentrant', 'preserve_rng_state', 'early_stop']) {
        if (key === 'use_reentrant' && found[key] === null)
            throw new TypeError(`${name}: use_reentrant is missing: true or false, which has fewer limits`);
        if (key in found)
            convert.flag(name, key, found[key]);
    }
    if ('determinism_check' in found && !['default', 'none'].includes(found.determinism_check)) {
        throw new TypeError(`${name}: determinism_check is 'default' or 'none', not ` +
            convert.describe(found.determinism_check));
    }
    return found;
}

function overrideCheckpoints(raw) {
    const run = (func, args, settings) => settings.use_reentrant
        ? reentrant(raw, func, args, settings.preserve_rng_state) : recorded(raw, func, args, settings);

    // Calls func with the arguments, and again in the backward pass; an object with settings comes last.
    function checkpoint(func, ...args) {
        convert.plainFunction('checkpoint', func);
        const given = args.length > 0 && convert.isOptions(args.at(-1)) ? args.pop() : {};
        return run(func, args, settingsOf('checkpoint', given, SETTINGS));
    }

    // Calls modules or functions one after the other, with a checkpoint for each part but the last.
    function checkpointSequential(functions, segments, input, ...given) {
        const name = 'checkpoint_sequential';
        if (given.length > 1)
            convert.surplus(name, 3 + given.length, 4);
        const {use_reentrant: isReentrant, preserve_rng_state: random} = settingsOf(name, given[0] ?? {},
            {use_reentrant: null, preserve_rng_state: true});
        const all = functions instanceof GTorch.Sequential
            ? [...functions.children()] : [...functions];
        const count = convert.integer(name, 'segments', segments);
        if (count < 1 || count > all.length) {
            throw new TypeError(
                `${name}: ${count} segments of ${all.length} functions: 1 at least, and one each`);
        }
        const step = (value, one) => one instanceof GTorch.Module ? one.forward(value) : one(value);
        const part = (start, end) => value => all.slice(start, end).reduce(step, value);
        const each = Math.floor(all.length / count);
        const last = each * (count - 1);
        let value = input;
        for (let start = 0; start < last; start += each) {
            value = run(part(start, start + each), [value],
                {...SETTINGS, use_reentrant: isReentrant, preserve_rng_state: random});
        }
        return part(last, all.length)(value);
    }

    // As in C.
    const begin = (func, ...rest) => raw.checkpoint_begin(inputs => noting(() => {
        convert.finished('checkpoint_begin', func(inputs));
        return true;
    }), ...rest);
    const make = (func, random) => raw.checkpoint_function_new(inputs =>
        noting(() => convert.list(convert.finished('checkpoint_function_new', func(inputs)))), random);
    Object.assign(GTorch, {
        checkpoint,
        checkpoint_sequential: checkpointSequential,
        checkpoint_begin: convert.counted('checkpoint_begin', (func, inputs, random, check, early) =>
            begin(convert.plainFunction('checkpoint_begin', func), inputs, random, check, early)),
        checkpoint_function_new: convert.counted('checkpoint_function_new', (func, random) =>
            make(convert.plainFunction('checkpoint_function_new', func), random)),
    });
    const members = Object.freeze({checkpoint, checkpoint_sequential: checkpointSequential});
    Object.defineProperty(GTorch, 'utils', {value: Object.freeze({checkpoint: members})});
}

// --- derivatives of functions ---------------------------------------------------------------------

// A matrix is an array of rows, one for each output; of products there are the outputs and an array of them.
function overrideFunctionals() {
    const define = (short, hasVector) => {
        const name = `autograd_${short}`;
        const raw = GTorch[name];
        const args = [...hasVector ? ['v'] : [], 'create_graph', 'strict'].map(key => ({name: key}));
        GTorch[name] = function (func, inputs, ...given) {
            convert.plainFunction(name, func);
            const {v = null, create_graph: create = false, strict = false} =
                convert.bind(name, args, given);
            const call = tensors => noting(() => {
                const found = convert.list(convert.finished(name, func(...tensors)));
                const wrong = found.find(one => !(one instanceof GTorch.Tensor));
                if (wrong === undefined && !found.includes(undefined))
                    return found;
                throw new TypeError(`${name}: the function gave ${convert.describe(wrong)}, not a tensor`);
            });
            const list = convert.list(inputs);
            convert.flag(name, 'create_graph', create);
            convert.flag(name, 'strict', strict);
            if (hasVector)
                return restoring(() => raw(call, list, v === null ? [] : convert.list(v), create, strict));
            const found = restoring(() => raw(call, list, create, strict));
            const n = list.length;
            return Array.from({length: found.length / n}, (_, i) => found.slice(i * n, (i + 1) * n));
        };
    };
    ['jacobian', 'hessian', 'jacobian_forward', 'hessian_forward'].forEach(name => define(name, false));
    ['vjp', 'jvp', 'vhp', 'hvp'].forEach(name => define(name, true));
}

// --- tangents -------------------------------------------------------------------------------------

// forward_ad.dual_level(() => {
//     const dual = forward_ad.make_dual(x, direction);
//     const [primal, tangent] = forward_ad.unpack_dual(dual.exp());
// });
function overrideForward() {
    const begin = () => {
        GTorch.forward_ad_enter_dual_level();
        return {end: () => GTorch.forward_ad_exit_dual_level()};
    };
    const members = {
        dual_level: convert.counted('dual_level', func => within('dual_level', func, begin)),
    };
    for (const name of ['enter_dual_level', 'exit_dual_level', 'make_dual', 'unpack_dual'])
        members[name] = GTorch[`forward_ad_${name}`];
    Object.defineProperty(GTorch, 'forward_ad', {value: Object.freeze(members)});
}

function setup(namespace, run) {
    GTorch = namespace;
    within = run;
    const names = ['saved_tensors_hooks', 'save_on_cpu', 'disable_saved_tensors_hooks', 'checkpoint_begin',
        'checkpoint_function_new'];
    const raw = Object.fromEntries(names.map(name => [name, GTorch[name]]));
    overrideHooks(raw);
    overrideCheckpoints(raw);
    overrideFunctionals();
    overrideForward();
}
