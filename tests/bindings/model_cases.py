#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Models as programs for PyTorch define them, for GTorch and for PyTorch.

    python3 tests/bindings/model_cases.py       with a Python that has torch and safetensors: rewrites models/

NAME.safetensors is the state dict of a model, as PyTorch saves it; NAME-step.safetensors has the output, the loss and
the state dict after one step of training. steps.json has two sums of each tensor after steps of other optimizers."""

import json
import math
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent / 'models'


def waves(T, shape, start=0.0):
    n = math.prod(shape)
    return T.tensor([math.sin(0.7 * i + start) for i in range(n)], dtype=T.float64).reshape(shape)


def numbers(T, shape, below):
    return T.tensor([(7 * i + i * i // 3) % below for i in range(math.prod(shape))]).reshape(shape)


def residual(T):
    nn, functional = T.nn, T.nn.functional

    class Block(nn.Module):
        def __init__(self, in_channels, channels, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(in_channels, channels, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(channels)
            self.relu = nn.ReLU(inplace=True)
            self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(channels)
            self.downsample = None
            if stride != 1 or in_channels != channels:
                self.downsample = nn.Sequential(nn.Conv2d(in_channels, channels, 1, stride, bias=False),
                                                nn.BatchNorm2d(channels))

        def forward(self, x):
            identity = x if self.downsample is None else self.downsample(x)
            out = self.relu(self.bn1(self.conv1(x)))
            return self.relu(self.bn2(self.conv2(out)) + identity)

    class ResNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(3, 4, 3, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(4)
            self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
            self.layer1 = nn.Sequential(Block(4, 4, 1), Block(4, 4, 1))
            self.layer2 = nn.Sequential(Block(4, 8, 2), Block(8, 8, 1))
            self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
            self.fc = nn.Linear(8, 5)

        def forward(self, x):
            x = self.maxpool(functional.relu(self.bn1(self.conv1(x))))
            x = self.avgpool(self.layer2(self.layer1(x)))
            return self.fc(T.flatten(x, 1))

    return (ResNet(), [waves(T, [4, 3, 12, 12])], numbers(T, [4], 5), nn.CrossEntropyLoss(label_smoothing=0.1),
            lambda p: T.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-4, nesterov=True))


def characters(T):
    nn = T.nn

    class Characters(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(11, 6, padding_idx=0)
            self.lstm = nn.LSTM(6, 7, num_layers=2, batch_first=True, bidirectional=True)
            self.head = nn.Linear(14, 11)

        def forward(self, x, lengths):
            packed = nn.utils.rnn.pack_padded_sequence(self.embed(x), lengths, batch_first=True, enforce_sorted=False)
            out, (h, _c) = self.lstm(packed)
            out, _lengths = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
            return self.head(out + h[-1].sum()).flatten(0, 1)

    return (Characters(), [numbers(T, [3, 6], 11), T.tensor([4, 6, 1])], numbers(T, [18], 11),
            nn.CrossEntropyLoss(ignore_index=0), lambda p: T.optim.Adam(p, lr=0.02, amsgrad=True))


def sentences(T):
    nn = T.nn

    class Sentences(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(13, 8)
            self.positions = nn.Parameter(T.zeros(1, 5, 8))
            layer = nn.TransformerEncoderLayer(8, 2, dim_feedforward=12, dropout=0.0, activation='gelu',
                                               batch_first=True, norm_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(8), enable_nested_tensor=False)
            self.head = nn.Linear(8, 3)

        def forward(self, x, padding):
            x = self.encoder(self.embed(x) + self.positions, src_key_padding_mask=padding)
            return self.head(x.mean(dim=1))

    padding = T.tensor([[False] * 5, [False] * 3 + [True] * 2])
    return (Sentences(), [numbers(T, [2, 5], 13), padding], numbers(T, [2], 3), nn.CrossEntropyLoss(),
            lambda p: T.optim.AdamW(p, lr=0.01, betas=(0.8, 0.99)))


def segments(T):
    nn = T.nn

    def twice(before, after):
        return nn.Sequential(nn.Conv2d(before, after, 3, padding=1), nn.GroupNorm(2, after), nn.SiLU(),
                             nn.Conv2d(after, after, 3, padding=1, padding_mode='reflect'), nn.LeakyReLU(0.2))

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList([twice(1, 4), twice(4, 6)])
            self.bottom = twice(6, 8)
            self.up = nn.ModuleDict({
                'first': nn.ConvTranspose2d(8, 6, 2, stride=2),
                'second': nn.Sequential(nn.Upsample(scale_factor=2, mode='bilinear', align_corners=False),
                                        nn.Conv2d(6, 4, 1)),
            })
            self.merge = nn.ModuleList([twice(12, 6), twice(8, 4)])
            self.out = nn.Conv2d(4, 1, 1)

        def forward(self, x):
            kept = []
            for part in self.down:
                x = part(x)
                kept.append(x)
                x = T.nn.functional.max_pool2d(x, 2)
            x = self.bottom(x)
            for name, merge in zip(('first', 'second'), self.merge):
                x = merge(T.cat([self.up[name](x), kept.pop()], dim=1))
            return self.out(x)

    return (UNet(), [waves(T, [2, 1, 8, 8])], (waves(T, [2, 1, 8, 8], 1.0) > 0).double(), nn.BCEWithLogitsLoss(),
            lambda p: T.optim.RMSprop(p, lr=0.005, momentum=0.5, centered=True))


def table(T):
    nn = T.nn

    class Table(nn.Module):
        def __init__(self):
            super().__init__()
            self.embeddings = nn.ModuleDict({'city': nn.Embedding(4, 3), 'day': nn.Embedding(7, 2)})
            self.register_buffer('scale', T.tensor([0.5, 2.0, 1.5]))
            self.mixed = nn.ParameterList([nn.Parameter(T.ones(8)), nn.Parameter(T.zeros(8))])
            self.norm = nn.BatchNorm1d(8, momentum=0.3)
            self.net = nn.Sequential(nn.Linear(8, 9), nn.PReLU(3 * 3), nn.LayerNorm(9), nn.Linear(9, 4), nn.Tanh())
            self.gru = nn.GRUCell(4, 2)

        def forward(self, city, day, numbers):
            x = [self.embeddings['city'](city), self.embeddings['day'](day), numbers * self.scale]
            x = self.norm(T.cat(x, dim=-1)) * self.mixed[0] + self.mixed[1]
            return self.gru(self.net(x)).squeeze()

    return (Table(), [numbers(T, [6], 4), numbers(T, [6], 7), waves(T, [6, 3])], waves(T, [6, 2], 2.0),
            nn.HuberLoss(delta=0.5), lambda p: T.optim.NAdam(p, lr=0.03, weight_decay=0.01))


def digits(T):
    nn = T.nn
    net = nn.Sequential(nn.Flatten(), nn.Linear(20, 16), nn.ReLU(), nn.Dropout(0.0), nn.Linear(16, 10), nn.GELU(),
                        nn.Linear(10, 4), nn.LogSoftmax(dim=1))
    return (net, [waves(T, [6, 4, 5])], numbers(T, [6], 4), nn.NLLLoss(), lambda p: T.optim.SGD(p, lr=0.2))


def photos(T):
    nn = T.nn

    class Photos(nn.Module):
        def __init__(self):
            super().__init__()
            self.features = nn.Sequential(
                nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
                nn.Conv2d(4, 6, 3, stride=2, groups=2, bias=False), nn.BatchNorm2d(6, momentum=None), nn.ReLU(),
                nn.AvgPool2d(2))
            self.classifier = nn.Linear(6, 3)

        def forward(self, x):
            return self.classifier(self.features(x).flatten(1))

    return (Photos(), [waves(T, [4, 3, 11, 10])], numbers(T, [4], 3), nn.CrossEntropyLoss(),
            lambda p: T.optim.Adam(p, lr=0.01, weight_decay=0.1))


MODELS = {'residual': residual, 'characters': characters, 'sentences': sentences, 'segments': segments, 'table': table,
          'digits': digits, 'photos': photos}

# The steps that all models make beside their own.
STEPS = {'SGD': lambda T, p: T.optim.SGD(p, lr=0.1), 'Adam': lambda T, p: T.optim.Adam(p, lr=0.01)}


def train(model, inputs, target, loss_of, make_optimizer):
    """Makes one step, and returns the output and the loss before it."""
    optimizer = make_optimizer(model.parameters())
    optimizer.zero_grad()
    output = model(*inputs)
    loss = loss_of(output, target)
    loss.backward()
    optimizer.step()
    return output.detach(), loss.detach()


def sums(T, state):
    """Two sums of each tensor."""
    found = {}
    for key, value in state.items():
        flat = value.detach().double().reshape(-1)
        weights = T.arange(flat.numel(), dtype=T.float64).cos()
        found[key] = [(flat * weights).sum().item(), flat.abs().sum().item()]
    return found


def main():
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(20)
    steps = {}
    for name, make in MODELS.items():
        model, *rest = make(torch)
        model.double().train()
        save_file(model.state_dict(), FOLDER / f'{name}.safetensors')
        before = {key: value.clone() for key, value in model.state_dict().items()}
        steps[name] = {}
        for step, make_optimizer in STEPS.items():
            train(model, *rest[:-1], lambda p, make_it=make_optimizer: make_it(torch, p))
            steps[name][step] = sums(torch, model.state_dict())
            model.load_state_dict(before)
        output, loss = train(model, *rest)
        after = {f'after.{key}': value for key, value in model.state_dict().items()}
        save_file({'output': output.contiguous(), 'loss': loss, **after}, FOLDER / f'{name}-step.safetensors')
    rows = [f'"{name}": {json.dumps(row)}' for name, row in steps.items()]
    (FOLDER / 'steps.json').write_text('{\n' + ',\n'.join(rows) + '\n}\n', 'utf-8')


if __name__ == '__main__':
    main()
