#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Times PyTorch on the CPU for the names of bench-cpu: “name, median seconds of one call”."""

import statistics
import sys
import time

import torch

torch.set_grad_enabled(False)


def data(n):
    side = 4096 if n >= 4096 else 4
    d = {'x': torch.full((n,), 0.37), 'y': torch.full((n,), 1.62), 'row': torch.full((side,), 0.37),
         'column': torch.full((n // side, 1), 0.37), 'matrix': torch.full((n // side, side), 0.37)}
    d['square'] = torch.randn(1024, 1024)
    d['batch'] = torch.randn(32, 256, 256)
    d['mask'] = d['x'] > d['y']
    return type('Data', (), d)


CASES = {
    'add': lambda d: d.x + d.y,
    'add_': lambda d: d.x.add_(d.y),
    'mul': lambda d: d.x * d.y,
    'relu': lambda d: torch.relu(d.x),
    'exp': lambda d: torch.exp(d.x),
    'log': lambda d: torch.log(d.y),
    'sin': lambda d: torch.sin(d.x),
    'tanh': lambda d: torch.tanh(d.x),
    'sigmoid': lambda d: torch.sigmoid(d.x),
    'gelu': lambda d: torch.nn.functional.gelu(d.x),
    'add_row': lambda d: d.matrix + d.row,
    'add_column': lambda d: d.matrix + d.column,
    'gt': lambda d: d.x > d.y,
    'where': lambda d: torch.where(d.mask, d.x, d.y),
    'cast_bf16': lambda d: d.x.to(torch.bfloat16),
    'clone': lambda d: d.x.clone(),
    'transpose_copy': lambda d: d.matrix.t().contiguous(),
    'sum_all': lambda d: d.x.sum(),
    'sum_dim0': lambda d: d.matrix.sum(0),
    'sum_dim1': lambda d: d.matrix.sum(1),
    'amax_dim1': lambda d: d.matrix.amax(1),
    'softmax_4096': lambda d: torch.softmax(d.matrix, 1),
    'randn': lambda d: torch.randn(16 << 20),
    'matmul_1024': lambda d: d.square @ d.square,
    'bmm_32x256': lambda d: torch.bmm(d.batch, d.batch),
}


def measure(run, d):
    times = []
    for i in range(17):
        start = time.perf_counter()
        run(d)
        if i >= 2:
            times.append(time.perf_counter() - start)
    return statistics.median(times)


def main():
    torch.set_num_threads(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
    d = data(16 << 20)
    for name, run in CASES.items():
        print(f'{name}\t{measure(run, d):.4g}', flush=True)


if __name__ == '__main__':
    main()
