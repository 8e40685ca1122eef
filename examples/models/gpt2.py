#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""GPT-2, trained on the texts of licences, and a sample of what it writes then.

The model is that of GPT-2: 124 million parameters in its size “small”. The names in its state dict are
those of the published weights, whose matrices are transposed, since their layers multiply from the other
side. Its tokens are bytes here, so that it needs no vocabulary; the other 49,808 rows of its embedding are
kept in the size “small”, as they are what its last product costs.
"""

import argparse
import math
import pathlib
import sys
import time

import gtorch as torch
from gtorch import nn
from gtorch.nn import functional as F

TEXTS = '/usr/share/common-licenses'
SIZES = {  # layers, heads, channels, context, tokens
    'tiny': (2, 2, 32, 32, 256),
    'mini': (4, 4, 128, 128, 256),
    'small': (12, 12, 768, 1024, 50304),  # 50,257 in the original: a multiple of 128 is faster
}


class Attention(nn.Module):
    """Each place looks at those before it."""

    def __init__(self, heads, channels):
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(channels, 3 * channels)
        self.c_proj = nn.Linear(channels, channels)

    def forward(self, x):
        batch, length, channels = x.shape
        shape = batch, length, self.heads, channels // self.heads
        q, k, v = (part.view(shape).transpose(1, 2) for part in self.c_attn(x).split(channels, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(batch, length, channels))


class Perceptron(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.c_fc = nn.Linear(channels, 4 * channels)
        self.c_proj = nn.Linear(4 * channels, channels)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate='tanh'))


class Block(nn.Module):
    def __init__(self, heads, channels):
        super().__init__()
        self.ln_1 = nn.LayerNorm(channels)
        self.attn = Attention(heads, channels)
        self.ln_2 = nn.LayerNorm(channels)
        self.mlp = Perceptron(channels)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT2(nn.Module):
    """Takes tokens [N, length], returns the scores [N, length, tokens] of the token that follows each."""

    def __init__(self, layers, heads, channels, context, tokens):
        super().__init__()
        self.context = context
        self.wte = nn.Embedding(tokens, channels)
        self.wpe = nn.Embedding(context, channels)
        self.h = nn.ModuleList([Block(heads, channels) for _ in range(layers)])
        self.ln_f = nn.LayerNorm(channels)
        self.reset(layers)

    def reset(self, layers):
        """Draws the weights as GPT-2 does: those that end a branch are smaller in deeper models."""
        for name, parameter in self.named_parameters():
            if name.endswith('bias'):
                nn.init.zeros_(parameter)
            elif parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02 / (math.sqrt(2 * layers) if 'c_proj' in name else 1))

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.wte(tokens) + self.wpe(places)
        for block in self.h:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight)


def load_text(folder):
    """Returns the bytes of all files of a folder, or of one file, as tokens on the CPU."""
    path = pathlib.Path(folder)
    files = sorted(file for file in path.iterdir() if not file.is_symlink()) if path.is_dir() else [path]
    return torch.tensor(list(b'\n'.join(file.read_bytes() for file in files)), device='cpu')


def draw_batch(text, batch, length):
    """Returns pieces of the text, and the same pieces one token further, as [2, batch, length]."""
    starts = torch.randint(0, len(text) - length, (batch, 1), device='cpu')
    places = starts + torch.arange(length, device='cpu')
    return torch.stack([text[places], text[places + 1]])


def make_optimizer(model, lr, capturable):
    """Weights decay in matrices only."""
    groups = [
        {'params': [p for p in model.parameters() if p.dim() >= 2], 'weight_decay': 0.1},
        {'params': [p for p in model.parameters() if p.dim() < 2], 'weight_decay': 0.0},
    ]
    return torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.95), capturable=capturable)


class Training:
    """A model, its optimizer and the tensor that its batches are copied to; step() trains on a batch.

    With graph=True the fourth step is captured, and all later ones replay it.
    """

    def __init__(self, model, batch, length, device, lr=1e-3, amp=None, graph=False):
        self.model = model
        self.tokens = torch.zeros(2, batch, length, dtype=torch.int64, device=device)
        self.optimizer = make_optimizer(model, lr, graph)
        self.device = device
        self.amp = amp
        self.graph = torch.CUDAGraph() if graph else None
        self.side = torch.Stream(device) if graph else None
        self.n_steps = 0
        self.loss = None

    def compute(self):
        with torch.autocast(self.device.type, dtype=self.amp, enabled=self.amp is not None):
            scores = self.model(self.tokens[0])
            loss = F.cross_entropy(scores.flatten(0, 1), self.tokens[1].flatten())
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def step(self, tokens):
        """Returns the loss as a tensor, which a later step of a graph overwrites."""
        self.tokens.copy_(tokens, non_blocking=True)
        self.n_steps += 1
        if self.graph is not None and self.n_steps > 4:
            self.graph.replay()
            return self.loss
        self.optimizer.zero_grad(set_to_none=True)
        if self.graph is None:
            return self.compute()
        current = torch.current_stream(self.device)
        if self.n_steps < 4:
            self.side.wait_stream(current)
            with self.side:
                self.loss = self.compute()
            current.wait_stream(self.side)
        else:
            with torch.graph(self.graph, stream=self.side):
                self.loss = self.compute()
            self.graph.replay()
        return self.loss


def write(model, start, length, device, temperature=0.8, top_k=40):
    """Returns the bytes of a start and of as many tokens that follow as length says."""
    tokens = torch.tensor([list(start)], device=device)
    model.eval()
    with torch.no_grad():
        for _ in range(length):
            scores = model(tokens[:, -model.context:])[:, -1, :256].float() / temperature
            best, places = scores.topk(min(top_k, 256))
            chosen = torch.multinomial(best.softmax(dim=-1), 1)
            tokens = torch.cat([tokens, places.gather(1, chosen)], dim=1)
    model.train()
    return bytes(tokens[0].tolist())


def main():
    parser = argparse.ArgumentParser(description='train GPT-2 on the texts of licences, and let it write')
    parser.add_argument('--device', help='where to compute, on a GPU if there is one')
    parser.add_argument('--steps', type=int, default=300, help='how many batches to train on')
    parser.add_argument('--seed', type=int, default=1, help='where random numbers start')
    parser.add_argument('--size', choices=list(SIZES), default='mini', help='how large the model is')
    parser.add_argument('--batch', type=int, default=16, help='pieces of text in a batch')
    parser.add_argument('--lr', type=float, default=1e-3, help='the learning rate')
    parser.add_argument('--amp', choices=['bfloat16'], help='train in mixed precision')
    parser.add_argument('--graph', action='store_true', help='capture a step and replay it')
    parser.add_argument('--text', default=TEXTS, help='a file, or a folder of files, to learn from')
    parser.add_argument('--start', default='You may', help='how the sample begins')
    parser.add_argument('--length', type=int, default=200, help='how many bytes the sample has beyond that')
    args = parser.parse_args()
    if args.steps < 1:
        parser.error(f'--steps is {args.steps}, and must be at least 1')

    device = torch.device(args.device) if args.device else torch.Device.get_default()
    torch.set_default_device(device)
    print(f'gpt2: {args.size} on {device}, {device.get_name()}', flush=True)
    torch.manual_seed(args.seed)
    text = load_text(args.text)
    model = GPT2(*SIZES[args.size]).to(device)
    print(f'{sum(p.numel() for p in model.parameters()):,} parameters, {len(text):,} bytes of text')
    length = model.context
    training = Training(model, args.batch, length, device, args.lr, args.amp and torch.bfloat16, args.graph)
    start = time.perf_counter()
    for step in range(1, args.steps + 1):
        loss = training.step(draw_batch(text, args.batch, length))
        if step % 20 == 0 or step == args.steps:
            print(f'step {step} of {args.steps}: loss {loss.item():.4f}', flush=True)
    rate = args.steps * args.batch * length / (time.perf_counter() - start)
    sample = write(model, args.start.encode(), args.length, device)
    print(f'{rate:.0f} tokens/s')
    sys.stdout.write(sample.decode(errors='replace') + '\n')
    print(f'gpt2: loss {loss.item():.6f}')


if __name__ == '__main__':
    main()
