#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Writes the table of which processors and GPUs make normal numbers: sqrt (-2 log (u)) in pieces.

    normal-table.py OUTPUT

A word as a signed number, rounded to float32, tells u as a multiple of 2^-32 where it is positive and 1 - u
where it is negative, both of the same relative accuracy. Its sign, the lower five bits of its exponent and the
upper four of its fraction choose a line; the cubic in it takes the number itself. The cubics go through the points
of Chebyshev. 0, whose exponent is that of the least numbers, takes the line of 2, which makes a distance of it that
is as good as any. All is computed in decimal numbers, so that every build has the same table.
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
    """Coefficients of the polynomial through four points, the constant first."""
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
