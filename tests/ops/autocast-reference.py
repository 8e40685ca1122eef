#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Writes data/autocast.txt: the dtypes of PyTorch's results for the samples of the operation rows
under autocast.

    python3 tests/ops/autocast-reference.py      with a Python that has torch; rewrite the file when rows change

A line is <op> <sample> <device>, then <inputs>=<results> for the valid calls. Inputs are one letter
for each floating-point input in turn, the last one standing for the rest: l for the dtype of
autocast, which is float16 as well as bfloat16, f for float32, d for float64. Results are such
letters, or names of other dtypes, or "refused" if the call fails only under autocast. Tensors have
no elements here, so no GPU is needed.
"""

import sys

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from reference import HERE, OPS, evaluate, results_of

sys.path.insert(0, str(OPS.parent.parent))
from generator.ops.rows import load  # noqa: E402
from generator.signatures import CLASSES  # noqa: E402
from generator.ops.samples import fixed_dtypes, sample_tensors  # noqa: E402

PATTERNS = ['l', 'f', 'd', 'lf', 'fl']
DTYPES = {'float16': torch.float16, 'bfloat16': torch.bfloat16}


def inputs(row, sample, device, pattern, low):
    kinds = {'l': low, 'f': torch.float32, 'd': torch.float64}
    fixed, tensors, n = fixed_dtypes(sample), {}, 0
    for a, position, shape in sample_tensors(row, sample):
        value = None
        if shape is not None:
            dtype = getattr(torch, fixed[a.name]) if a.name in fixed else None
            if dtype is None:
                dtype = kinds[pattern[min(n, len(pattern) - 1)]]
                n += 1
            value = torch.empty(shape, dtype=dtype, device=device)
        if position >= 0:
            tensors.setdefault(a.name, []).append(value)
        else:
            tensors[a.name] = value
    return tensors, n


def attempt(row, sample, device, pattern, low):
    with FakeTensorMode():
        tensors, n = inputs(row, sample, device, pattern, low)
        if n == 0 or n < len(pattern):
            return None
        torch.set_autocast_enabled(device, True)
        torch.set_autocast_dtype(device, low)
        try:
            results = results_of(evaluate(row, sample, tensors))
        finally:
            torch.set_autocast_enabled(device, False)
            torch.clear_autocast_cache()
        return [str(r.dtype).removeprefix('torch.') for r in results]


def result_of(row, sample, device, name, pattern):
    low = DTYPES[name]
    # complex32 is not supported
    half_transform = row.name.startswith('fft_') and device == 'cuda' and 'l' in pattern
    letters = {name: 'l', 'float32': 'f', 'float64': 'd'}
    try:
        dtypes = attempt(row, sample, device, pattern, low)
    except Exception as error:  # pylint: disable=broad-exception-caught
        return 'refused' if 'unsafe to autocast' in str(error) else None
    if dtypes is None or 'complex32' in dtypes or half_transform:
        return None
    return ','.join(letters.get(d, d) for d in dtypes)


def line(row, index, sample, device):
    cells = []
    for pattern in PATTERNS:
        found = {result_of(row, sample, device, name, pattern) for name in DTYPES} - {None}
        assert len(found) < 2, (row.name, device, pattern, found)
        cells += [f'{pattern}={result}' for result in found]
    return f'{row.name} {index} {device} {" ".join(cells)}' if cells else None


def main():
    lines, missing = [], []
    for row in load(sorted(str(p) for p in OPS.glob('*.toml'))):
        if row.internal or 'float32' not in CLASSES[row.dtypes]:
            continue
        found = [
            line(row, index, sample, device)
            for index, sample in enumerate(row.samples)
            for device in ('cpu', 'cuda')
        ]
        found = [entry for entry in found if entry is not None]
        lines += found
        if not found:
            missing.append(row.name)
    (HERE / 'data' / 'autocast.txt').write_text('\n'.join(lines) + '\n', encoding='utf-8')
    print(f'{len(lines)} lines; without any: {" ".join(missing)}')


if __name__ == '__main__':
    main()
