#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""ResNet-18 and ResNet-50, trained on handwritten digits.

The layers have the names and shapes of the residual networks that are known by these names, so that
published weights fit: 11.7 and 25.6 million parameters with 1000 classes and images of 224 x 224. The
digits are enlarged to the size of the images. --channels-last, --amp and --graph are what makes a GPU
fast: the order of the numbers that its tensor cores want, numbers of 16 bits, and one launch for all of a
step.
"""

import argparse
import gzip
import pathlib
import time

import gtorch as torch
from gtorch import nn
from gtorch.nn import functional as F

DATA = pathlib.Path(__file__).resolve().parent.parent / 'data' / 'digits.csv.gz'
BLOCKS = {18: (2, 2, 2, 2), 50: (3, 4, 6, 3)}  # of each of the four stages


class Block(nn.Module):
    """Two convolutions of 3 x 3, whose result is added to their input."""

    expansion = 1

    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        nn.init.zeros_(self.bn2.weight)  # so that a block begins as its shortcut alone
        self.downsample = make_shortcut(inputs, width, stride)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class Bottleneck(nn.Module):
    """A convolution of 3 x 3 between two of 1 x 1, the last of which has four times as many channels."""

    expansion = 4

    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        nn.init.zeros_(self.bn3.weight)
        self.downsample = make_shortcut(inputs, 4 * width, stride)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


def make_shortcut(inputs, outputs, stride):
    """Returns what brings the input to the shape of the result, or None if it has that."""
    if stride == 1 and inputs == outputs:
        return None
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs))


class ResNet(nn.Module):
    """Takes images [N, 3, height, width], returns the scores of the classes."""

    def __init__(self, depth=50, classes=1000, width=64):
        super().__init__()
        block = Block if depth == 18 else Bottleneck
        self.conv1 = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        inputs = width
        for stage, n_blocks in enumerate(BLOCKS[depth]):
            blocks = []
            for i in range(n_blocks):
                stride = 2 if stage > 0 and i == 0 else 1
                blocks.append(block(inputs, width << stage, stride))
                inputs = (width << stage) * block.expansion
            setattr(self, f'layer{stage + 1}', nn.Sequential(*blocks))
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.max_pool2d(x, 3, stride=2, padding=1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean(dim=(2, 3)))


def load_digits(path, size):
    """Returns images [1797, 3, size, size] around 0, and labels [1797], on the CPU."""
    with gzip.open(path, 'rt', encoding='ascii') as file:
        rows = torch.tensor([[int(v) for v in line.split(',')] for line in file], device='cpu')
    images = rows[:, :64].view(-1, 1, 8, 8) / 16 - 0.5
    images = F.interpolate(images, size=(size, size), mode='bilinear', align_corners=False)
    return images.expand(-1, 3, -1, -1), rows[:, 64].clone()


class Training:
    """A model, its optimizer and the tensors that its batches are copied to; step() trains on a batch.

    With graph=True the fourth step is captured, and all later ones replay it. The memory format is that of the
    images and the weights: layers give their results in that of their input.
    """

    def __init__(self, model, batch, size, device, lr=0.05, amp=None, graph=False,
                 memory_format=torch.contiguous_format):
        self.model = model.to(memory_format=memory_format)
        self.x = torch.zeros(batch, 3, size, size, device=device).to(memory_format=memory_format)
        self.t = torch.zeros(batch, dtype=torch.int64, device=device)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, weight_decay=1e-4)
        self.device = device
        self.amp = amp
        self.scaler = torch.GradScaler(device.type, enabled=amp == torch.float16)
        self.graph = torch.CUDAGraph() if graph else None
        self.n_steps = 0
        self.loss = None
        self.side = torch.Stream(device) if graph else None

    def compute(self):
        with torch.autocast(self.device.type, dtype=self.amp, enabled=self.amp is not None):
            loss = F.cross_entropy(self.model(self.x), self.t)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.detach()

    def step(self, images, labels):
        """Returns the loss as a tensor, which a later step of a graph overwrites."""
        self.x.copy_(images, non_blocking=True)
        self.t.copy_(labels, non_blocking=True)
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


def measure_accuracy(model, images, labels, device, batch):
    """Returns the share of images that are read right, in percent."""
    model.eval()
    right = 0
    with torch.no_grad():
        for x, t in zip(images.split(batch), labels.split(batch)):
            right += (model(x.to(device)).argmax(dim=1) == t.to(device)).sum().item()
    model.train()
    return 100 * right / len(labels)


def main():
    parser = argparse.ArgumentParser(description='train a residual network on handwritten digits')
    parser.add_argument('--device', help='where to compute, on a GPU if there is one')
    parser.add_argument('--steps', type=int, default=100, help='how many batches to train on')
    parser.add_argument('--seed', type=int, default=1, help='where random numbers start')
    parser.add_argument('--depth', type=int, choices=[18, 50], default=18, help='how many layers')
    parser.add_argument('--width', type=int, default=64, help='channels of the first stage')
    parser.add_argument('--batch', type=int, default=32, help='images in a batch')
    parser.add_argument('--size', type=int, default=64, help='height and width of an image')
    parser.add_argument('--channels-last', action='store_true', help='keep the channels innermost in memory')
    parser.add_argument('--amp', choices=['float16', 'bfloat16'], help='train in mixed precision')
    parser.add_argument('--graph', action='store_true', help='capture a step and replay it')
    parser.add_argument('--data', default=str(DATA), help='the digits, digits.csv.gz')
    args = parser.parse_args()
    if args.steps < 1:
        parser.error(f'--steps is {args.steps}, and must be at least 1')

    device = torch.device(args.device) if args.device else torch.Device.get_default()
    torch.set_default_device(device)
    print(f'resnet: ResNet-{args.depth} on {device}, {device.get_name()}', flush=True)
    torch.manual_seed(args.seed)
    images, labels = load_digits(args.data, args.size)
    held = torch.arange(len(labels), device='cpu') % 5 == 0
    images, held_images = images[~held], images[held]
    labels, held_labels = labels[~held], labels[held]
    model = ResNet(args.depth, 10, args.width).to(device)
    training = Training(model, args.batch, args.size, device, 0.05, args.amp and getattr(torch, args.amp), args.graph,
                        torch.channels_last if args.channels_last else torch.contiguous_format)
    start = time.perf_counter()
    for step in range(1, args.steps + 1):
        index = torch.randint(0, len(labels), (args.batch,), device='cpu')
        loss = training.step(images[index], labels[index])
        if step % 10 == 0 or step == args.steps:
            print(f'step {step} of {args.steps}: loss {loss.item():.4f}', flush=True)
    rate = args.steps * args.batch / (time.perf_counter() - start)
    accuracy = measure_accuracy(model, held_images, held_labels, device, args.batch)
    print(f'{rate:.1f} images/s')
    print(f'resnet: loss {loss.item():.6f}, accuracy {accuracy:.2f} %')


if __name__ == '__main__':
    main()
