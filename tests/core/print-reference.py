#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Writes data/print.txt: tensors and their texts in PyTorch. Run it with a Python that has torch.

A case is a line “dtype shape values”, options if they are not the defaults, the text, and a line
“.”. Values are numbers or “start+step”, a range. The dtypes in PyTorch's text lose their “torch.”;
so no case is near a line break that this would move.
"""

import pathlib
import random

import torch

HERE = pathlib.Path(__file__).parent


def values_of(spec, count):
    if isinstance(spec, tuple):
        return [spec[0] + i * spec[1] for i in range(count)]
    return list(spec)


def numbers(generator, count, scale=1.0):
    return [generator.gauss(0, 1) * scale for _ in range(count)]


def cases():
    inf, nan = float('inf'), float('nan')
    rng = random.Random(7)
    usual = {}
    for value in (0.0, 1.0, -1.5, 1e-5, 123456789.0, inf, nan, -inf, 1e20, 3e-320, -0.0, 0.1):
        values = [value]
        for dtype in ('float32', 'float64'):
            yield dtype, [], values, usual
            yield dtype, [1], values, usual
    vectors = [[1, 2, 3], [1.5, 2.25, -3.125], [1e-3, 1], [1e-3, 1.001], [1e-4, 0.5], [9.9e-5, 1.0],
               [1, 2, 1e8], [1, 2, 1.1e8],
               [nan, 1.0, inf], [nan, 1.5, -inf], [nan, inf], [0.0, 0.0], [0.0, 1e-9], [1000.0, 1.0], [1001.0, 1.0],
               [0.99999, 0.00001], [1e10, 1e10], [2.0, 1e-30], [99999.5, 100.25], [0.00005, 0.00006],
               [-0.0, 1.5], [5e-5, nan]]
    for values in vectors:
        for dtype in ('float32', 'float64', 'bfloat16', 'float16'):
            yield dtype, [len(values)], values, usual
    for dtype in ('int8', 'int16', 'int32', 'int64', 'uint8'):
        yield dtype, [], [7], usual
        yield dtype, [4], [0, 1, 100, 12], usual
        yield dtype, [2, 3], (0, 7), usual
        yield dtype, [0], [], usual
        yield dtype, [2, 0, 3], [], usual
    yield 'int64', [3], [-9007199254740993, 5, 1 << 60], usual
    yield 'int64', [2, 2], [-1, 10, -100, 1000], usual
    yield 'bool', [3], [1, 0, 1], usual
    yield 'bool', [2, 2], [1, 1, 1, 1], usual
    yield 'bool', [], [0], usual
    yield 'bool', [0], [], usual
    for dtype in ('float32', 'float64'):
        for shape in ([0], [0, 3], [2, 0, 2], [1, 0]):
            yield dtype, shape, [], usual
    for shape in ([2, 3], [1, 1], [4, 1], [1, 4], [2, 2, 2], [1, 1, 1, 1], [2, 1, 3, 2], [3, 20], [30], [2, 15],
                  [2, 3, 12], [2, 2, 1, 2, 2]):
        count = torch.Size(shape).numel()
        yield 'float32', shape, numbers(rng, count), usual
        yield 'float64', shape, numbers(rng, count, 100), usual
        yield 'float32', shape, numbers(rng, count, 1e-6), usual
        yield 'float32', shape, (0, 1), usual
        yield 'int64', shape, (-3, 1), usual
        yield 'int32', shape, (100, 1), usual
    for shape in ([1001], [2000], [1000], [50, 50], [5, 1000], [1000, 5], [12, 12, 12], [2, 40, 40],
                  [3, 6, 3, 30], [40, 1, 40]):
        yield 'float32', shape, (0, 0.25), usual
        if len(shape) > 3:
            continue
        yield 'float64', shape, (-5.5, 1000.25), usual
        yield 'int64', shape, (-5, 3), usual
        yield 'bool', shape, (0, 0), usual
        yield 'complex64', shape, (-0.5, 0.25), usual
    for dtype in ('complex64', 'complex128'):
        yield dtype, [], [1, 2], usual
        yield dtype, [], [1.5, -2], usual
        yield dtype, [2], [1, -2, 0.5, 0], usual
        yield dtype, [2, 2], [1, 2, 3, 4, -5, -6, 0.25, 1000], usual
        yield dtype, [2], [nan, inf, -inf, 1], usual
        yield dtype, [12], numbers(rng, 24), usual
        yield dtype, [0, 2], [], usual
        yield dtype, [2], [1, -0.0, 2, 0.0], usual
    yield 'complex64', [2], [1e-6, -2, 0.5, 1e7], usual
    yield 'float64', [3], numbers(rng, 3), dict(precision=8)
    yield 'float32', [30], numbers(rng, 30), dict(precision=2, linewidth=40)
    yield 'float32', [3, 4], numbers(rng, 12), dict(sci_mode=True)
    yield 'float32', [3], [1.0, 2.0, 3.0], dict(sci_mode=True)
    yield 'float32', [2], [1e-7, 1e9], dict(sci_mode=False)
    yield 'float32', [20], (0, 1), dict(threshold=10, edgeitems=2)
    yield 'float32', [5, 5], (0, 1), dict(threshold=10, edgeitems=1)
    yield 'float32', [5, 5], (0, 1), dict(threshold=10, edgeitems=0)
    yield 'float32', [20], (0, 1), dict(threshold=10, edgeitems=0)
    yield 'float32', [3], (0.5, 1), dict(precision=0)
    yield 'float32', [2, 8], (0.5, 1), dict(linewidth=10)
    yield 'int8', [2, 40], (0, 1), dict(linewidth=120)


def main():
    out = []
    for dtype, shape, spec, options in cases():
        kind = getattr(torch, dtype)
        count = torch.Size(shape).numel() * (2 if kind.is_complex else 1)
        values = values_of(spec, count)
        if kind.is_complex:
            tensor = torch.view_as_complex(torch.tensor(values, dtype=torch.float64).reshape(*shape, 2)).to(kind)
        else:
            tensor = torch.tensor(values, dtype=kind).reshape(shape)
        torch.set_printoptions(profile='default')
        torch.set_printoptions(sci_mode=None)
        if options:
            torch.set_printoptions(**options)
        text = str(tensor).replace('torch.', '')
        words = f'{spec[0]!r}+{spec[1]!r}' if isinstance(spec, tuple) else ','.join(repr(v) for v in values)
        out.append(f'{dtype} {"x".join(map(str, shape)) or "-"} {words or "-"}')
        if options:
            full = dict(precision=4, threshold=1000, edgeitems=3, linewidth=80, sci_mode=None) | options
            out.append('options ' + ' '.join(str(full[k]) for k in ('precision', 'threshold', 'edgeitems', 'linewidth'))
                       + f' {["auto", "never", "always"][0 if full["sci_mode"] is None else 1 + full["sci_mode"]]}')
        out += [text, '.']
    (HERE / 'data').mkdir(exist_ok=True)
    (HERE / 'data' / 'print.txt').write_text('\n'.join(out) + '\n', encoding='utf-8')
    print(f'{out.count(".")} cases, PyTorch {torch.__version__}')


if __name__ == '__main__':
    main()
