#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Attention and transformers compute what PyTorch does, and programs may derive their parts."""

import copy
import json
import math
import pathlib
import pickle
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402
import transformer_cases as cases  # noqa: E402

nn = GTorch.nn


def close(found, wanted):
    if found is None or wanted is None:
        return found is wanted
    return math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-10)


@tap.case
def results_and_gradients_are_those_of_pytorch():
    expected = json.loads(cases.FILE.read_text('utf-8'))
    found = cases.results(GTorch)
    assert list(found) == list(expected)
    for name, values in expected.items():
        assert len(found[name]) == len(values), (name, len(found[name]), len(values))
        wrong = [i for i, pair in enumerate(zip(found[name], values)) if not close(*pair)]
        assert not wrong, (name, [(i, found[name][i], values[i]) for i in wrong])


@tap.case
def layers_are_deep_copies():
    layer = nn.TransformerEncoderLayer(8, 2, 6, activation=nn.functional.silu).eval()
    stack = nn.TransformerEncoder(layer, 2, nn.LayerNorm(8)).eval()
    x = cases.waves(GTorch, [3, 2, 8], 1).float()
    assert stack.num_layers == 2 and nn.TransformerEncoder(layer, 1).norm is None
    assert stack.layers[0](x).tolist() == layer(x).tolist() == stack.layers[1](x).tolist()
    assert stack.layers[0].linear1.weight is not layer.linear1.weight
    for one in (copy.deepcopy(stack), pickle.loads(pickle.dumps(stack))):
        assert one(x).tolist() == stack(x).tolist() and repr(one) == repr(stack)


@tap.case
def c_calls_what_programs_derive():
    class Layer(nn.TransformerEncoderLayer):
        calls = 0

        def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
            Layer.calls += 1
            return super().forward(src, src_mask, src_key_padding_mask, is_causal) * 2

    class Attention(GTorch.Attention):
        def forward(self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None,
                    average_attn_weights=True, is_causal=False):
            assert not need_weights
            return query * 0, None

    class Decoder(GTorch.Decoder):
        def forward(self, tgt, memory, *masks):
            assert len(masks) == 6
            return tgt + memory

    x = cases.waves(GTorch, [3, 2, 8], 1).float()
    layer = Layer(8, 2, 6)
    GTorch.Module.forward(nn.TransformerEncoder(layer, 3), x)
    assert Layer.calls == 3, Layer.calls
    layer.self_attn = Attention()
    assert layer(x).shape == (3, 2, 8)
    model = nn.Transformer(8, 2, 1, custom_decoder=Decoder())
    assert model(x, x).shape == (3, 2, 8) and isinstance(model.decoder, Decoder)


@tap.case
def hooks_see_both_results_of_attention():
    seen = []
    layer = nn.MultiheadAttention(8, 2)
    layer.register_forward_hook(lambda module, inputs, output: seen.append((len(inputs), type(output))))
    x = cases.waves(GTorch, [3, 2, 8], 1).float()
    output, weights = layer(x, x, x)
    assert output.shape == (3, 2, 8) and weights.shape == (2, 3, 3)
    assert layer(x, x, value=x, need_weights=False)[1] is None
    assert seen == [(3, tuple), (2, tuple)], seen


@tap.case
def bad_arguments_raise():
    layer = nn.MultiheadAttention(8, 2)
    x = cases.waves(GTorch, [3, 2, 8], 1).float()
    for error, what, call in (
        (TypeError, 'needs value', lambda: layer(x, x)),
        (TypeError, 'no argument', lambda: layer(x, x, x, mask=None)),
        (TypeError, 'True or False', lambda: layer(x, x, x, need_weights='no')),
        (GLib.Error, 'attn_mask', lambda: layer(x, x, x, is_causal=True)),
        (GLib.Error, 'key_padding_mask has shape [5, 5], not [2, 3]',
         lambda: layer(x, x, x, key_padding_mask=GTorch.zeros(5, 5))),
        (TypeError, 'Linear', lambda: nn.TransformerEncoder(nn.Linear(2, 2), 2)),
        (ValueError, 'num_layers', lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2), 0)),
        (ValueError, 'activation', lambda: nn.TransformerEncoderLayer(8, 2, activation='selu?')),
        (GLib.Error, 'num_encoder_layers', lambda: nn.Transformer(8, 2, 0)),
    ):
        try:
            call()
        except error as found:
            assert what in str(found), found
        else:
            raise AssertionError(what)


if __name__ == '__main__':
    tap.main()
