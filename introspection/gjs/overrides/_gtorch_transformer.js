// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Attention and transformers: forward() with PyTorch's arguments, activations, and stacks of copied layers.

/* exported activation applied overrideForward setup */

const {GObject} = imports.gi;
const convert = imports.overrides._gtorch_convert;
const {above, asClass, define, ownFunction} = imports.overrides._gtorch_derived;
const {restoring} = imports.overrides._gtorch_errors;

let GTorch;
let Applied = null;

function args(text) {
    return text.split(' ').map(word => {
        const [name, value] = word.split('=');
        return value === undefined ? {name, required: true} : {name, default: JSON.parse(value)};
    });
}

// The arguments of forward(), in the order of the virtual function of C.
const ATTEND = args('query key value key_padding_mask=null need_weights=true attn_mask=null ' +
    'average_attn_weights=true is_causal=false');
const ENCODE_LAYER = args('src src_mask=null src_key_padding_mask=null is_causal=false');
const ENCODE = args('src mask=null src_key_padding_mask=null is_causal=null');
const DECODE_LAYER = args('tgt memory tgt_mask=null memory_mask=null tgt_key_padding_mask=null ' +
    'memory_key_padding_mask=null tgt_is_causal=false memory_is_causal=false');
const DECODE = args('tgt memory tgt_mask=null memory_mask=null tgt_key_padding_mask=null ' +
    'memory_key_padding_mask=null tgt_is_causal=null memory_is_causal=false');
const TRANSFORM = args('src tgt src_mask=null tgt_mask=null memory_mask=null src_key_padding_mask=null ' +
    'tgt_key_padding_mask=null memory_key_padding_mask=null src_is_causal=null tgt_is_causal=null ' +
    'memory_is_causal=false');

// Each class: the one that has the method in C, and the virtual function.
const CLASSES = {
    Attention: ['Attention', 'attend', ATTEND],
    MultiheadAttention: ['Attention', 'attend', ATTEND],
    Encoder: ['Encoder', 'encode', ENCODE_LAYER],
    TransformerEncoderLayer: ['Encoder', 'encode', ENCODE_LAYER],
    TransformerEncoder: ['Encoder', 'encode', ENCODE],
    Decoder: ['Decoder', 'decode', DECODE_LAYER],
    TransformerDecoderLayer: ['Decoder', 'decode', DECODE_LAYER],
    TransformerDecoder: ['Decoder', 'decode', DECODE],
};

function isFlag(name) {
    return name.endsWith('is_causal') || name === 'need_weights' || name === 'average_attn_weights';
}

// Where the default of is_causal is null, null uses the mask as it is.
function value(what, {name, required, default: byDefault}, given) {
    if (isFlag(name))
        return !(given === null && byDefault === null) && convert.flag(what, name, given);
    if (!(given instanceof GTorch.Tensor) && (required || given !== null))
        throw new TypeError(`${what}: ${name} must be a tensor, not ${convert.describe(given)}`);
    return given;
}

function bound(self, spec, given) {
    const what = `${convert.nameOf(self.constructor)}.forward`;
    const found = convert.bind(what, spec, given);
    return spec.map(arg => value(what, arg, Object.hasOwn(found, arg.name) ? found[arg.name] : arg.default));
}

function result(made) {
    return Array.isArray(made) ? made.slice(-2) : made;
}

function overrideClass(name, [base, vfunc, spec], raw, isRunning) {
    const {prototype} = GTorch[name];
    const forward = function (...given) {
        const values = bound(this, spec, given);
        const isSuper = this.forward !== forward || isRunning(this);
        const compute = isSuper ? above(this, 'forward')[`vfunc_${vfunc}`] : raw[base];
        return result(restoring(() => compute.apply(this, values)));
    };
    prototype.forward = forward;
}

function overrideTransformer(Transformer) {
    const {forward} = Transformer.prototype;
    Transformer.prototype.forward = function (...given) {
        const values = bound(this, TRANSFORM, given);
        if (this.forward === Transformer.prototype.forward)
            return restoring(() => forward.apply(this, values));
        // super.forward() of a program's class
        const [src, tgt, srcMask, tgtMask, memoryMask, srcPadding, ...rest] = values;
        const [tgtPadding, memoryPadding, srcCausal, ...causal] = rest;
        const memory = this.get_module('encoder').forward(src, srcMask, srcPadding, srcCausal);
        return this.get_module('decoder').forward(tgt, memory, tgtMask, memoryMask, tgtPadding,
            memoryPadding, ...causal);
    };
    const make = Transformer.generate_square_subsequent_mask;
    Transformer.generate_square_subsequent_mask = function (...given) {
        const name = 'generate_square_subsequent_mask';
        const spec = args('sz device=null dtype=null');
        const {sz, device = null, dtype = null} = convert.bind(name, spec, given);
        return restoring(() => make.call(Transformer, convert.bounded(name, 'sz', 'int64', sz),
            convert.device(name, device), convert.dtype(name, dtype)));
    };
}

// Lets C call the forward() that a program's class has.
function overrideForward(own, forward) {
    for (const name of ['Attention', 'Encoder', 'Decoder']) {
        const vfunc = CLASSES[name][1];
        if (!(own instanceof GTorch[name]) || ownFunction(own, vfunc) || ownFunction(own, `vfunc_${vfunc}`))
            continue;
        define(own, `vfunc_${vfunc}`, function (...values) {
            const made = forward.apply(this, values);
            return name === 'Attention' ? [true, ...made] : made;
        });
    }
}

// Returns the module for an activation, or null for the default.
function activation(name, given) {
    if (given instanceof GTorch.Module)
        return given;
    if (given === null || given === 'relu')
        return null;
    if (given === 'gelu')
        return new GTorch.nn.GELU();
    if (typeof given !== 'function') {
        throw new TypeError(`${name}: activation must be 'relu', 'gelu', a module or a function, not ` +
            convert.describe(given));
    }
    return applied(given);
}

// Returns a module that calls a function.
function applied(func) {
    Applied ??= GObject.registerClass(class Applied extends GTorch.Module {
        forward(...inputs) {
            return this.func(...inputs);
        }
    });
    return Object.assign(new Applied(), {func});
}

function stack(name, layer, more) {
    const spec = args(`${layer} num_layers norm=null${more}`);
    const klass = GTorch[name];

    return asClass(name, klass, (Class, given) => {
        const found = convert.bind(name, spec, given);
        const norm = found.norm ?? null;
        for (const key of ['enable_nested_tensor', 'mask_check'].filter(one => Object.hasOwn(found, one)))
            convert.flag(name, key, found[key]);
        if (!(found[layer] instanceof GTorch[CLASSES[name][0]]))
            throw new TypeError(`${name}: ${layer} must be a layer, not ${convert.describe(found[layer])}`);
        const n = convert.bounded(name, 'num_layers', 'int64', found.num_layers);
        const made = restoring(() => klass.new(found[layer], n, norm));
        if (Class === klass)
            return made;
        const derived = Reflect.construct(klass, [], Class);
        made.get_module('layers').children().forEach(one => derived.get_module('layers').append(one));
        if (norm !== null)
            derived.register_module('norm', norm);
        return derived;
    });
}

// Returns the classes of stacks. There are no nested tensors: what says how they are used changes nothing.
function setup(namespace, isRunning) {
    GTorch = namespace;
    const raw = {};
    for (const name of ['Attention', 'Encoder', 'Decoder'])
        raw[name] = GTorch[name].prototype.forward;
    for (const [name, row] of Object.entries(CLASSES))
        overrideClass(name, row, raw, isRunning);
    overrideTransformer(GTorch.Transformer);
    return {
        TransformerEncoder: stack('TransformerEncoder', 'encoder_layer',
            ' enable_nested_tensor=true mask_check=true'),
        TransformerDecoder: stack('TransformerDecoder', 'decoder_layer', ''),
    };
}
