#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Times PyTorch on the CPU for the names of bench-cpu, with the same interface: reads names and prints
“name, seconds of one call”.

The rows host.* are timed through PyTorch's C++ interface, by peer-host.cpp.
"""

import statistics
import sys
import time

import torch
from peer_training import Program
from torch.nn import functional as F

torch.set_grad_enabled(False)


class Data:
    def __init__(self, n, side):
        rows = n // side
        self.x, self.y, self.row = torch.randn(n), torch.randn(n), torch.randn(side)
        self.column, self.matrix = torch.randn(rows, 1), torch.randn(rows, side)
        self.mask = self.x > self.y
        self.index = torch.arange(rows - 1, -1, -1)
        weight = torch.randn(n, requires_grad=True)
        weight.grad = self.y
        self.adam = torch.optim.Adam([weight], 1e-9, fused=True)
        self.momentum = torch.optim.SGD([weight], 1e-9, momentum=0.9, fused=True)


CASES = {
    'copy_': lambda d: d.y.copy_(d.x),
    'add': lambda d: d.x + d.y,
    'add_': lambda d: d.y.add_(d.x, alpha=1e-30),
    'mul': lambda d: d.x * d.y,
    'relu': lambda d: torch.relu(d.x),
    'exp': lambda d: torch.exp(d.x),
    'log': lambda d: torch.log(d.x),
    'sin': lambda d: torch.sin(d.x),
    'tanh': lambda d: torch.tanh(d.x),
    'sigmoid': lambda d: torch.sigmoid(d.x),
    'gelu': lambda d: F.gelu(d.x),
    'gt': lambda d: d.x > d.y,
    'where': lambda d: torch.where(d.mask, d.x, d.y),
    'masked_fill': lambda d: torch.masked_fill(d.x, d.mask, 0.0),
    'cast_bf16': lambda d: d.x.to(torch.bfloat16),
    'clone': lambda d: d.x.clone(),
    'add_row': lambda d: d.matrix + d.row,
    'add_column': lambda d: d.matrix + d.column,
    'transpose_copy': lambda d: d.matrix.t().contiguous(),
    'sum_all': lambda d: d.x.sum(),
    'sum_dim0': lambda d: d.matrix.sum(0),
    'sum_dim1': lambda d: d.matrix.sum(1),
    'amax_dim1': lambda d: d.matrix.amax(1),
    'max_dim1': lambda d: d.matrix.max(1),
    'argmax_dim1': lambda d: d.matrix.argmax(1),
    'softmax': lambda d: torch.softmax(d.matrix, 1),
    'log_softmax': lambda d: torch.log_softmax(d.matrix, 1),
    'layer_norm': lambda d: F.layer_norm(d.matrix, d.row.shape, d.row, d.row),
    'cumsum_dim1': lambda d: d.matrix.cumsum(1),
    'index_select': lambda d: d.matrix.index_select(0, d.index),
    'cast_f16': lambda d: d.x.to(torch.float16),
    'step_adam': lambda d: d.adam.step(),
    'step_momentum': lambda d: d.momentum.step(),
}


def others():
    squares = {n: torch.randn(n, n) for n in (256, 1024, 2048)}
    double, batch = torch.randn(1024, 1024, dtype=torch.float64), torch.randn(32, 256, 256)
    million = torch.randn(1000000)
    image, kernel = torch.randn(16, 32, 56, 56), torch.randn(64, 32, 3, 3)
    return {
        'randn': lambda: torch.randn(16 << 20),
        'sort_1m': lambda: torch.sort(million),
        'topk_100_of_1m': lambda: torch.topk(million, 100),
        'matmul_256': lambda: squares[256] @ squares[256],
        'matmul_1024': lambda: squares[1024] @ squares[1024],
        'matmul_2048': lambda: squares[2048] @ squares[2048],
        'matmul_1024_double': lambda: double @ double,
        'bmm_32x256': lambda: torch.bmm(batch, batch),
        'conv2d_16x32x56x56': lambda: F.conv2d(image, kernel, padding=1),
    }


def seconds_of(run, n_calls):
    start = time.perf_counter()
    for _ in range(n_calls):
        run()
    return (time.perf_counter() - start) / n_calls


def measure(run):
    run()
    first = max(seconds_of(run, 3), 1e-8)
    n_calls = int(min(max(0.01 / first, 1), 100000))
    n = int(min(max(0.25 / (first * n_calls), 9), 64))
    return statistics.median(seconds_of(run, n_calls) for _ in range(n))


def main():
    torch.set_num_threads(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
    cache, large, rest = Data(1 << 16, 256), Data(16 << 20, 4096), others()
    for line in sys.stdin:
        name = line.strip()
        kind, _, plain = name.rpartition('.')
        data = cache if kind == 'cache' else large
        if name in rest:
            print(f'{name}\t{measure(rest[name]):.4g}', flush=True)
        elif kind.startswith(('train.', 'infer.')):
            print(f'{name}\t{measure(Program(name, torch.device("cpu")).run):.4g}', flush=True)
        elif kind in ('', 'cache') and plain in CASES:
            print(f'{name}\t{measure(lambda d=data, run=CASES[plain]: run(d)):.4g}', flush=True)
        else:
            print(f'{name}\tnone', flush=True)


if __name__ == '__main__':
    main()
