# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Attention and transformers: forward() with PyTorch's arguments, activations, and stacks of copied layers."""

import copy

from gi.overrides import override

from gi.overrides import _gtorch_hooks as hooks
from gi.overrides import _gtorch_layers as layers
from gi.overrides._gtorch_convert import GTorch, RawTensor, convert_bool, convert_device, convert_dtype, convert_whole
from gi.overrides._gtorch_errors import guards, passing, restores
from gi.overrides._gtorch_bind import REQUIRED

OVERRIDES = 'gi.overrides.GTorch'  # override() finds the namespace through it

# The arguments of forward(), in the order of the virtual function of C.
ATTEND = {
    'query': REQUIRED, 'key': REQUIRED, 'value': REQUIRED, 'key_padding_mask': None, 'need_weights': True,
    'attn_mask': None, 'average_attn_weights': True, 'is_causal': False,
}
ENCODE_LAYER = {'src': REQUIRED, 'src_mask': None, 'src_key_padding_mask': None, 'is_causal': False}
ENCODE = {'src': REQUIRED, 'mask': None, 'src_key_padding_mask': None, 'is_causal': None}
DECODE_LAYER = {
    'tgt': REQUIRED, 'memory': REQUIRED, 'tgt_mask': None, 'memory_mask': None, 'tgt_key_padding_mask': None,
    'memory_key_padding_mask': None, 'tgt_is_causal': False, 'memory_is_causal': False,
}
DECODE = {**DECODE_LAYER, 'tgt_is_causal': None}


def _flag(value):
    """None leaves it to the mask, which is used as it is."""
    return value is not None and convert_bool(value)


def _converted(name, value):
    if name.endswith('is_causal'):
        return _flag(value)
    return convert_bool(value) if name in ('need_weights', 'average_attn_weights') else value


def _forward(function, spec):
    """Returns forward() of a class without hooks; derived classes call it through super()."""
    compute = restores(function)

    def forward(self, *given, **options):
        found = layers.bind(f'{type(self).__name__}.forward', spec, given, options)
        made = compute(self, *(_converted(name, found[name]) for name in spec))
        return made if isinstance(made, RawTensor) else tuple(made[1:])

    return forward


def _call_attention(self, *inputs, **options):
    """Hooks see both results."""
    return hooks.run_forward(self, inputs, options) if self._gt_is_hooked() else self.forward(*inputs, **options)


def _transform(
    self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None, src_key_padding_mask=None,
    tgt_key_padding_mask=None, memory_key_padding_mask=None, src_is_causal=None, tgt_is_causal=None,
    memory_is_causal=False,
):
    """Encodes src, and decodes tgt."""
    memory = self.encoder(src, src_mask, src_key_padding_mask, _flag(src_is_causal))
    return self.decoder(
        tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
        _flag(tgt_is_causal), _flag(memory_is_causal),
    )


def _subsequent_mask(sz, device=None, dtype=None):
    """The causal mask: -inf above the diagonal."""
    raw = restores(GTorch.Transformer.__base__.generate_square_subsequent_mask)  # that of C
    return raw(convert_whole(sz), convert_device(device), convert_dtype(dtype))


def members(name):
    """Returns what a class has beside what all layers have."""
    if name == 'MultiheadAttention':
        return {'forward': _forward(GTorch.MultiheadAttention.do_attend, ATTEND), '__call__': _call_attention}
    if name == 'TransformerEncoderLayer':
        return {'forward': _forward(GTorch.TransformerEncoderLayer.do_encode, ENCODE_LAYER)}
    if name == 'TransformerDecoderLayer':
        return {'forward': _forward(GTorch.TransformerDecoderLayer.do_decode, DECODE_LAYER)}
    if name == 'Transformer':
        return {
            'forward': _transform,
            'generate_square_subsequent_mask': staticmethod(_subsequent_mask),
        }
    return {}


# --- classes of programs ---


def _attend(self, *values):
    output, weights = self.forward(*values)
    return True, output, weights


def vfuncs(cls):
    """Returns the names of the virtual functions that take masks."""
    bases = ((GTorch.Attention, 'attend'), (GTorch.Encoder, 'encode'), (GTorch.Decoder, 'decode'))
    return [name for base, name in bases if issubclass(cls, base)]


def override_forward(cls, one):
    """Lets C call the forward() that a program's class has; @one is for what gives one tensor."""
    for base, name in ((GTorch.Encoder, 'encode'), (GTorch.Decoder, 'decode')):
        if issubclass(cls, base):
            setattr(cls, f'do_{name}', one)
    if issubclass(cls, GTorch.Attention):

        @guards(cls.__name__)
        def do_attend(self, *values):
            return passing(type(self).__name__, _attend, self, *values)

        cls.do_attend = do_attend


# --- activations ---


def activation(name, value):
    """Returns the module for an activation, or None for the default."""
    if isinstance(value, GTorch.Module):
        return value
    if value is None or value == 'relu':
        return None
    if value == 'gelu':
        from gi.repository import GTorch as found

        return found.GELU()
    if callable(value):
        from gi.overrides._gtorch_applied import Applied

        return Applied(value)
    raise ValueError(f"{name}(): activation must be 'relu', 'gelu', a module or a function, not {value!r}")


# --- stacks ---


def _fill(self, kind, layer, num_layers, norm):
    n, name = convert_whole(num_layers), type(self).__name__
    if not isinstance(layer, kind):
        raise TypeError(f'{name}() takes a layer that is a GTorch.{kind.__name__}, not {type(layer).__name__}')
    if n < 1:
        raise ValueError(f'{name}(): num_layers must be at least 1, it is {n}')
    if norm is not None and not isinstance(norm, GTorch.Module):
        raise TypeError(f'{name}(): norm must be a module or None, not {type(norm).__name__}')
    layers.construct(self, {})
    for _ in range(n):
        self.layers.append(copy.deepcopy(layer))
    if norm is not None:
        self.norm = norm


def _or_no_norm(raw):
    """Returns __getattr__() of a stack, which may have no norm."""

    def get(self, name):
        try:
            return super(raw, self).__getattr__(name)
        except AttributeError:
            if name == 'norm':
                return None
            raise

    return get


def stacks():
    """Creates the classes of encoders and decoders."""

    class TransformerEncoder(GTorch.TransformerEncoder):
        """Copies of a layer, one after the other. There are no nested tensors: enable_nested_tensor and mask_check
        change nothing, and padded elements are computed as others are."""

        __module__ = OVERRIDES

        def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
            convert_bool(enable_nested_tensor), convert_bool(mask_check)
            _fill(self, GTorch.Encoder, encoder_layer, num_layers, norm)

        forward = _forward(GTorch.TransformerEncoder.do_encode, ENCODE)
        extra_repr = layers.extra_repr_of(GTorch.TransformerEncoder)
        __getattr__ = _or_no_norm(GTorch.TransformerEncoder)

    class TransformerDecoder(GTorch.TransformerDecoder):
        """Copies of a layer, one after the other."""

        __module__ = OVERRIDES

        def __init__(self, decoder_layer, num_layers, norm=None):
            _fill(self, GTorch.Decoder, decoder_layer, num_layers, norm)

        forward = _forward(GTorch.TransformerDecoder.do_decode, DECODE)
        extra_repr = layers.extra_repr_of(GTorch.TransformerDecoder)
        __getattr__ = _or_no_norm(GTorch.TransformerDecoder)

    return [override(cls) for cls in (TransformerEncoder, TransformerDecoder)]
