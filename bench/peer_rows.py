#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Times PyTorch for the lines of bench-rows, with the same interface, or prints these lines.

    peer_rows.py THREADS --plan N DEVICE PREFIX,...    prints the lines for tensors of N elements
    peer_rows.py THREADS                               reads lines and prints “operation, seconds of one call”

A line of the plan has the sizes with which the largest tensor of the sample, or of its results, has N elements.
They are smaller where PyTorch on the CPU would need more than a second, or could not compute them. Rows that are
left out are printed with “none” and the reason.
"""

import contextlib
import math
import pathlib
import statistics
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'tests' / 'ops'))
from torch_reference import find_form, load_rows, results_of  # noqa: E402
from generator.ops.samples import fixed_dtypes, sample_tensors  # noqa: E402
from generator.signatures import CLASSES  # noqa: E402

LONG_ENOUGH = 0.1
PROBES = (1 << 12, 1 << 14)  # numbers of elements from which the growth is estimated
# Their sizes include those of kernels and groups; the rows conv.* and attn.* of the benchmarks measure them.
LEFT_OUT = ('conv', 'scaled_dot_product', 'multi_head')


def resized(shape, sizes):
    return [sizes.get(n, n) for n in shape]


def sizes_for(row, sample, count, only=None):
    """Returns old size -> new size, of all sizes or only of one, for about @count elements in the largest tensor."""
    shapes = [s for _, _, s in sample_tensors(row, sample) if s]
    growing = {n for shape in shapes for n in shape if n > 1} & ({only} if only else {*range(1 << 20)})
    largest = max(shapes, key=math.prod, default=[])
    power = sum(n in growing for n in largest)
    if power == 0 or math.prod(largest) == 0:
        return {}
    factor = (count / math.prod(largest)) ** (1 / power)
    return {n: rounded(n * factor) for n in growing}


def rounded(size):
    """Large sizes are multiples of 12, as groups and parts want."""
    return max(2, round(size)) if size < 48 else round(size / 12) * 12


def make_input(shape, dtype, sample, is_fixed, positive, limit, device):
    low, high = sample.get('low', -2.0), sample.get('high', 2.0)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, device=device).bool()
    if not dtype.is_floating_point and not dtype.is_complex:
        if is_fixed:
            low, high = 1 if positive else 0, limit - 1
        elif dtype == torch.uint8:
            low = max(low, 0)
        return torch.randint(int(low), int(high) + 1, shape, device=device).to(dtype)
    if dtype.is_complex:
        value = torch.view_as_complex(torch.empty([*shape, 2], device=device).uniform_(low, high)).to(dtype)
    else:
        value = torch.empty(shape, device=device, dtype=dtype).uniform_(low, high)
    if positive and value.dim() >= 2:
        value = value @ value.mH / shape[-1] + torch.eye(shape[-1], device=device, dtype=dtype)
    return value


def make(row, sample, dtype, sizes, device):
    """Returns the tensors by the names of their arguments, and the sample with its sizes."""
    fixed, positive = fixed_dtypes(sample), sample.get('positive', [])
    inputs = [(a, i, None if s is None else resized(s, sizes)) for a, i, s in sample_tensors(row, sample)]
    tensors = {}
    for k, (a, position, shape) in enumerate(inputs):
        limit = min([n for j, (_, _, s) in enumerate(inputs) if j != k and s for n in s if n > 1], default=2)
        kind = getattr(torch, fixed.get(a.name, dtype))
        value = None if shape is None else make_input(shape, kind, sample, a.name in fixed, a.name in positive, limit,
                                                      device)
        if position >= 0:
            tensors.setdefault(a.name, []).append(value)
        else:
            tensors[a.name] = value
    sample = dict(sample)
    for a in row.attrs:
        if a.name in ('size', 'shape') and isinstance(sample.get(a.name), list):
            sample[a.name] = resized(sample[a.name], sizes)
    return tensors, sample


def settle(device):
    if device != 'cpu':
        torch.cuda.synchronize()


def timed(form, device):
    times = []
    while len(times) < 3 or (sum(times) < LONG_ENOUGH and len(times) < 30):
        start = time.perf_counter()
        form()
        settle(device)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def probe(row, sample, count, only):
    """Returns the number of elements of the largest result and the seconds of a call."""
    tensors, fitted = make(row, sample, dtype_of(row), sizes_for(row, sample, count, only), 'cpu')
    form, value = find_form(row, fitted, tensors)
    largest = max((r.numel() for r in results_of(value)), default=1)
    start = time.perf_counter()
    form()
    return max(largest, count), time.perf_counter() - start


def grown(small, large):
    """Returns the exponent of the growth between the probes."""
    return max(math.log(max(large, 1e-9) / max(small, 1e-9)) / math.log(PROBES[1] / PROBES[0]), 1)


def plan(row, sample, count, most_seconds, only):
    """Returns the sizes, and the number of elements that the largest tensor will have."""
    (elements0, seconds0), (elements1, seconds1) = (probe(row, sample, n, only) for n in PROBES)
    size_growth, time_growth = grown(elements0, elements1), grown(seconds0, seconds1)
    by_size = PROBES[1] * (count / elements1) ** (1 / size_growth)
    by_time = PROBES[1] * max(most_seconds / max(seconds1, 1e-6), 1) ** (1 / time_growth)
    n = int(min(count, by_size, by_time))
    return sizes_for(row, sample, n, only), n


def plan_somehow(row, sample, count, most_seconds):
    """If not all sizes can grow, each is tried alone; the error is that of the first attempt."""
    try:
        return plan(row, sample, count, most_seconds, None)
    except Exception as error:  # pylint: disable=broad-exception-caught
        first = error
    for only in sorted({n for _, _, s in sample_tensors(row, sample) if s for n in s if n > 1}, reverse=True):
        with contextlib.suppress(Exception):
            return plan(row, sample, count, most_seconds, only)
    raise first


def dtype_of(row):
    return next(d for d in ('float32', 'int64', 'bool', 'complex64', *CLASSES[row.dtypes]) if d in CLASSES[row.dtypes])


def print_plan(count, device, prefixes):
    most_seconds = 1 if device == 'cpu' else 8
    for row in load_rows():
        if row.internal or not row.samples or row.name.startswith(LEFT_OUT) or not row.name.startswith(prefixes):
            continue
        try:
            sizes, n = plan_somehow(row, row.samples[0], count, most_seconds)
            text = ','.join(f'{a}:{b}' for a, b in sizes.items())
            print(row.name, 0, device, dtype_of(row), text, n, sep='\t', flush=True)
        except Exception as error:  # pylint: disable=broad-exception-caught
            reason = (str(error).splitlines() or [type(error).__name__])[0][:100]
            print(row.name, 'none', reason.replace('\t', ' '), sep='\t', flush=True)


def answer(rows, line):
    name, index, device, dtype, sizes = line.rstrip('\n').split('\t')
    row, sizes = rows[name], dict(map(int, pair.split(':')) for pair in sizes.split(',') if pair)
    tensors, sample = make(row, row.samples[int(index)], dtype, sizes, device)
    form, _ = find_form(row, sample, tensors)
    settle(device)
    return timed(form, device)


def main():
    torch.set_num_threads(int(sys.argv[1]))
    torch.set_grad_enabled(False)
    if len(sys.argv) > 2:
        print_plan(int(sys.argv[3]), sys.argv[4], tuple(sys.argv[5].split(',')))
        return
    rows = {row.name: row for row in load_rows()}
    for line in sys.stdin:
        try:
            print(line.split('\t')[0], f'{answer(rows, line):.4g}', sep='\t', flush=True)
        except Exception as error:  # pylint: disable=broad-exception-caught
            print(line.split('\t')[0], 'none', ' '.join(str(error).split())[:200], sep='\t', flush=True)


if __name__ == '__main__':
    main()
