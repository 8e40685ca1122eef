# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The models of examples/models, for GTorch and for PyTorch from the same files.

A file says `import gtorch as torch`; for PyTorch that name stands for PyTorch's package while the file is
loaded, so that both sides have one definition, one initialisation and one training step.
"""

import importlib.util
import pathlib
import sys

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent.parent / 'examples' / 'models'


def open_package(name):
    """Returns GTorch's or PyTorch's package; examples that are loaded later use that."""
    if name == 'gtorch':
        import gtorch as torch

        return torch
    import torch
    import torch.nn.functional

    # what GTorch has for all devices, PyTorch has for GPUs
    torch.graph, torch.CUDAGraph, torch.Stream = torch.cuda.graph, torch.cuda.CUDAGraph, make_stream(torch)
    torch.current_stream = torch.cuda.current_stream
    # convolutions in float32, as products are: GTorch's default for both
    torch.backends.cudnn.allow_tf32 = False
    for suffix in ('', '.nn', '.nn.functional'):
        sys.modules['gtorch' + suffix] = sys.modules['torch' + suffix]
    return torch


def make_stream(torch):
    """Returns a class of PyTorch's streams that are current within `with`, in all of its versions."""

    class Stream(torch.cuda.Stream):
        def __enter__(self):
            self.context = torch.cuda.stream(self)
            self.context.__enter__()
            return self

        def __exit__(self, *error):
            return self.context.__exit__(*error)

    return Stream


def load_example(name):
    spec = importlib.util.spec_from_file_location(f'example_{name}', EXAMPLES / f'{name}.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class ResNet:
    """ResNet-18 on digits of 64 x 64.

    Its learning rate rises, as it does in trainings of such networks: behind a batch norm, a rounded sum
    that gets another sign at a ReLU changes gradients by a few percent, which a large rate would make a
    difference of losses at once.
    """

    file = 'resnet'
    batch, size, lr, rise = 32, 64, 0.02, 50

    def __init__(self, torch, example, small):
        self.torch, self.example = torch, example
        self.width = 8 if small else 64

    def make_model(self):
        return self.example.ResNet(18, 10, self.width)

    def draw_batches(self, steps):
        images, labels = self.example.load_digits(self.example.DATA, self.size)
        index = self.torch.randint(0, len(labels), (steps * self.batch,), device='cpu')
        return {
            'images': images[index].view(steps, self.batch, 3, self.size, self.size),
            'labels': labels[index].view(steps, self.batch),
        }

    def start(self, model, device):
        training = self.example.Training(model, self.batch, self.size, device, self.lr)

        def step(batch):
            training.optimizer.param_groups[0]['lr'] = self.lr * min(1, (training.n_steps + 1) / self.rise)
            return training.step(batch['images'], batch['labels'])

        return step


class GPT2:
    """GPT-2 on the texts of licences, in the size “mini”."""

    file = 'gpt2'
    batch = 8

    def __init__(self, torch, example, small):
        self.torch, self.example = torch, example
        self.sizes = example.SIZES['tiny' if small else 'mini']

    def make_model(self):
        return self.example.GPT2(*self.sizes)

    def draw_batches(self, steps):
        text = self.example.load_text(self.example.TEXTS)
        pieces = [self.example.draw_batch(text, self.batch, self.sizes[3]) for _ in range(steps)]
        return {'tokens': self.torch.stack(pieces)}

    def start(self, model, device):
        training = self.example.Training(model, self.batch, self.sizes[3], device)
        return lambda batch: training.step(batch['tokens'])


class WithAdam:
    """A model whose loss is computed by loss_of(), and its training by Adam."""

    lr = 1e-3

    def __init__(self, torch, example, small):
        self.torch, self.example = torch, example
        self.batch = 8 if small else 32

    def start(self, model, device):
        adam = self.torch.optim.Adam(model.parameters(), lr=self.lr)

        def step(batch):
            loss = self.loss_of(model, {name: part.to(device) for name, part in batch.items()})
            adam.zero_grad()
            loss.backward()
            adam.step()
            return loss.detach()

        return step


class LSTM(WithAdam):
    """The forecaster."""

    file = 'lstm'
    lr = 3e-3

    def make_model(self):
        return self.example.Forecaster()

    def draw_batches(self, steps):
        example, torch = self.example, self.torch
        series = example.make_series()
        changes = torch.tensor([now - before for before, now in zip(series, series[example.WEEK:])], device='cpu')
        starts = torch.randint(0, len(changes) - example.PAST - example.AHEAD, (steps * self.batch,), device='cpu')
        past, future = example.cut(changes, starts)
        return {
            'past': past.view(steps, self.batch, example.PAST, 1),
            'future': future.reshape(steps, self.batch, example.AHEAD),
        }

    def loss_of(self, model, batch):
        return self.torch.nn.functional.mse_loss(model(batch['past']), batch['future'])


class VAE(WithAdam):
    """The variational autoencoder; its random numbers are a part of the batches."""

    file = 'vae'

    def make_model(self):
        return self.example.VAE()

    def draw_batches(self, steps):
        images = self.example.load_digits(self.example.DATA)
        index = self.torch.randint(0, len(images), (steps * self.batch,), device='cpu')
        return {
            'images': images[index].view(steps, self.batch, 64),
            'noise': self.torch.randn(steps, self.batch, self.example.CODE, device='cpu'),
        }

    def loss_of(self, model, batch):
        return model(batch['images'], batch['noise'])


MODELS = {'resnet18': ResNet, 'gpt2': GPT2, 'lstm': LSTM, 'vae': VAE}
