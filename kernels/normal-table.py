#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Writes the table with which processors and GPUs compute normal numbers: sqrt (-2 log (u))
piecewise.

    normal-table.py OUTPUT

A word as a signed number, rounded to float32, represents u as a multiple of 2^-32 if it is positive
and 1 - u if it is negative, both with the same relative accuracy. Its sign, the lower five bits of
its exponent and the upper four of its fraction select a row; the cubic in that row is evaluated at
the number itself. The cubics interpolate at Chebyshev points. 0, whose exponent is the smallest,
selects the row of 2, whose value is as good a distance as any. All computations are in decimal
arithmetic, so that every build has the same table.
"""

import decimal
import pathlib
import struct
import sys
from decimal import Decimal


def nodes():
    near, far = (2 - Decimal(2).sqrt()).sqrt() / 2, (2 + Decimal(2).sqrt()).sqrt() / 2
    return [(1 + c) / 32 for c in (far, near, -near, -far)]


def distance(u):
    return (-2 * u.ln()).sqrt()


def cubic(xs, ys):
    """Returns the coefficients of the polynomial through four points, the constant first."""
    result = [Decimal(0)] * 4
    for x, y in zip(xs, ys):
        product, scale = [Decimal(1)], y
        for other in xs:
            if other != x:
                scale /= x - other
                product = [a - other * b for a, b in zip([Decimal(0)] + product, product + [Decimal(0)])]
        result = [r + scale * p for r, p in zip(result, product)]
    return result


def line(sign, exponent, part):
    scale = Decimal(2) ** ((exponent - 127) % 32)
    xs = [1 + Decimal(part) / 16 + x for x in nodes()]
    ys = [distance(1 - x * scale / 2**32 if sign else x * scale / 2**32) for x in xs]
    return [c / (-scale if sign else scale) ** k for k, c in enumerate(cubic(xs, ys))]


def main(output):
    decimal.getcontext().prec = 50
    lines = ['/* Made by kernels/normal-table.py. */']
    for sign in range(2):
        for exponent in range(32):
            for part in range(16):
                values = [struct.unpack('f', struct.pack('f', c))[0] for c in line(sign, exponent, part)]
                lines.append('{ ' + ', '.join(f'{v.hex()}f' for v in values) + ' },')
    pathlib.Path(output).write_text('\n'.join(lines) + '\n')


if __name__ == '__main__':
    main(*sys.argv[1:])
