# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The networks that peer-cpu and peer-cuda train, and their training steps: those of bench-training.c."""

import contextlib

import torch
from torch import nn


def seed_mlp(device):
    """The network of PyTorch's notes on graphs: two wide layers with dropout."""
    model = nn.Sequential(nn.Linear(4096, 2048), nn.Dropout(0.2), nn.Linear(2048, 1024), nn.Dropout(0.1))
    return model, torch.randn(640, 4096, device=device), torch.randn(640, 1024, device=device)


def small_mlp50(device):
    """A network whose bottleneck is the host: fifty layers of 64 on batches of 64."""
    layers = [layer for _ in range(50) for layer in (nn.Linear(64, 64), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(64, 10))
    return model, torch.randn(64, 64, device=device), torch.randint(0, 10, (64,), device=device)


def digits(device):
    """The network of examples/c/digits.c."""
    model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
                          nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.25), nn.Linear(512, 10))
    return model, torch.rand(64, 1, 8, 8, device=device), torch.randint(0, 10, (64,), device=device)


class Recurrent(nn.LSTM):
    """A network whose result is the output alone."""

    def forward(self, x):
        return super().forward(x)[0]


def lstm(device, size=512, layers=2, steps=128, batch=64):
    """A long short-term memory."""
    shape = steps, batch, size
    return Recurrent(size, size, layers), torch.randn(shape, device=device), torch.rand(shape, device=device)


def small_lstm(device):
    """A smaller one, for processors."""
    return lstm(device, 128, 1, 64, 32)


NETWORKS = {'seed_mlp': seed_mlp, 'small_mlp50': small_mlp50, 'digits': digits, 'lstm': lstm, 'small_lstm': small_lstm}
SQUARES = 'seed_mlp', 'lstm', 'small_lstm'  # trained by squares and SGD
DTYPES = {'amp': torch.float16, 'bf16': torch.bfloat16}


class Program:
    """The program of a row. Its name is train or infer, the network and words for variants, and the form.

    Adam has its defaults; with the word “fused” it is one kernel, which PyTorch documents as its fastest
    form.
    """

    def __init__(self, name, device, capturable=False):
        kind, middle, _ = name.split('.')
        network = next(network for network in NETWORKS if middle.startswith(network))
        words = middle.removeprefix(network).split('_')
        model, self.x, self.t = NETWORKS[network](device)
        self.model = model.to(device)
        self.is_training = kind == 'train'
        self.model.train(self.is_training)
        torch.backends.cuda.matmul.allow_tf32 = network == 'seed_mlp'
        # which counts for recurrent networks, too
        torch.backends.cudnn.allow_tf32 = network == 'lstm' and 'ieee' not in words
        if network in SQUARES:
            self.loss, self.optimizer = nn.MSELoss(), torch.optim.SGD(model.parameters(), lr=0.1)
        else:
            options = {'lr': 2e-3 if network == 'digits' else 1e-3, 'capturable': capturable}
            if 'fused' in words:
                options['fused'] = True
            self.loss, self.optimizer = nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters(), **options)
        self.dtype = next((DTYPES[word] for word in words if word in DTYPES), None)
        self.device = device
        self.scaler = torch.amp.GradScaler(device.type) if 'amp' in words else None
        # a scaler's step reads on the host whether gradients are finite, unless the optimizer's kernel
        # does
        self.is_captured_whole = self.scaler is None or 'fused' in words

    def cast(self):
        if self.dtype is None:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, dtype=self.dtype)

    def go_forward_and_back(self):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.enable_grad():
            with self.cast():
                loss = self.loss(self.model(self.x), self.t)
            (loss if self.scaler is None else self.scaler.scale(loss)).backward()

    def finish_step(self):
        if self.scaler is None:
            self.optimizer.step()
        else:
            self.scaler.step(self.optimizer)
            self.scaler.update()

    def run(self):
        if self.is_training:
            self.go_forward_and_back()
            self.finish_step()
        else:
            with torch.inference_mode():
                self.model(self.x)
