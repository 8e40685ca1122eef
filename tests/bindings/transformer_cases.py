#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Attention and transformers with all kinds of arguments, for GTorch and for PyTorch.

    python3 tests/bindings/transformer_cases.py       with a Python that has torch: rewrites transformer.json

A case gives sums of the results, and of the gradients, with weights that are cosines."""

import json
import math
import pathlib

FILE = pathlib.Path(__file__).resolve().parent / 'transformer.json'
E, H, N, S, L = 8, 2, 2, 4, 3


def waves(T, shape, start):
    n = math.prod(shape)
    return T.tensor([math.sin(0.7 * i + start) for i in range(n)], dtype=T.float64).reshape(shape)


def total(T, tensor):
    if tensor is None:
        return None
    shape = list(tensor.shape)
    return (tensor * waves(T, shape, math.pi / 2)).sum()


def run(T, module, inputs, options):
    for i, parameter in enumerate(module.parameters()):
        parameter.data = waves(T, list(parameter.shape), i) * 0.5
    for one in inputs:
        one.requires_grad = True
    made = module(*inputs, **options)
    output, weights = made if isinstance(made, tuple) else (made, None)
    loss = total(T, output * output)
    if weights is not None:
        loss = loss + total(T, weights)
    loss.backward()
    found = [total(T, output), total(T, weights), *(total(T, one.grad) for one in inputs)]
    found += [total(T, parameter.grad) for parameter in module.parameters()]
    return [value if value is None else value.item() for value in found]


def attention_cases(T, made):
    nn = T.nn
    padded = T.tensor([[False, False, False, True], [False, True, False, False]])
    first = waves(T, [N, L, E], 1), waves(T, [N, S, E], 2), waves(T, [N, S, E], 3)
    second = waves(T, [L, N, E], 1), waves(T, [S, N, E], 2), waves(T, [S, N, E], 3)
    yield 'plain', nn.MultiheadAttention(E, H, **made), second, {}
    yield 'padded', nn.MultiheadAttention(E, H, batch_first=True, **made), first, {
        'key_padding_mask': padded, 'need_weights': False}
    yield 'more keys', nn.MultiheadAttention(E, H, batch_first=True, add_bias_kv=True, add_zero_attn=True, **made), (
        first), {'key_padding_mask': padded, 'average_attn_weights': False}
    yield 'masked', nn.MultiheadAttention(E, H, bias=False, **made), second, {
        'attn_mask': waves(T, [N * H, L, S], 4), 'need_weights': False}
    yield 'single', nn.MultiheadAttention(E, H, kdim=3, vdim=5, **made), (
        waves(T, [L, E], 1), waves(T, [S, 3], 2), waves(T, [S, 5], 3)), {}


def layer_cases(T, made):
    nn = T.nn
    padded = T.tensor([[False, False, False, True], [False, True, False, False]])
    later = T.tensor([[j > i for j in range(S)] for i in range(S)])
    causal = nn.Transformer.generate_square_subsequent_mask(L, dtype=T.float64)
    for norm_first in (False, True):
        for batch_first in (False, True):
            def sequence(n, start, first=batch_first):
                return waves(T, [N, n, E] if first else [n, N, E], start)

            own = {'norm_first': norm_first, 'batch_first': batch_first, 'dim_feedforward': 6, 'dropout': 0.0, **made}
            name = f'norm_first={norm_first} batch_first={batch_first}'
            yield f'encoder {name}', nn.TransformerEncoderLayer(E, H, activation='gelu', **own), [sequence(S, 1)], {
                'src_mask': later, 'src_key_padding_mask': padded}
            yield f'decoder {name}', nn.TransformerDecoderLayer(
                E, H, activation=nn.functional.silu, layer_norm_eps=1e-3, **own), [sequence(L, 1), sequence(S, 2)], {
                    'tgt_mask': causal, 'tgt_is_causal': True, 'memory_key_padding_mask': padded}


def stack_cases(T, made):
    nn = T.nn
    padded = T.tensor([[False, False, False, True], [False, True, False, False]])
    causal = nn.Transformer.generate_square_subsequent_mask(L, dtype=T.float64)
    src, tgt = waves(T, [S, N, E], 1), waves(T, [L, N, E], 2)
    own = {'dim_feedforward': 6, 'dropout': 0.0, **made}
    layer = nn.TransformerEncoderLayer(E, H, **own)
    yield 'encoder', nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(E, **made)), [src], {
        'src_key_padding_mask': padded}
    yield 'decoder', nn.TransformerDecoder(nn.TransformerDecoderLayer(E, H, **own), 2), [tgt, src * 1], {
        'tgt_mask': causal}
    yield 'transformer', nn.Transformer(E, H, 2, 1, **own), [src * 1, tgt * 1], {
        'tgt_mask': causal, 'tgt_is_causal': True, 'src_key_padding_mask': padded, 'memory_key_padding_mask': padded}
    yield 'own encoder', nn.Transformer(
        E, H, 2, 1, custom_encoder=nn.TransformerEncoder(layer, 1), bias=False, norm_first=True, **own), [
            src * 1, tgt * 1], {}


def results(T):
    made = {'dtype': T.float64}
    cases = [*attention_cases(T, made), *layer_cases(T, made), *stack_cases(T, made)]
    return {name: run(T, module, [one.detach() for one in inputs], options)
            for name, module, inputs, options in cases}


if __name__ == '__main__':
    import torch

    lines = [f' {json.dumps(name)}: {json.dumps(found)}' for name, found in results(torch).items()]
    FILE.write_text('{\n' + ',\n'.join(lines) + '\n}\n', 'utf-8')
