#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes array-api.json: what array-api-strict gives for array_api_cases.py, and its signatures."""

import json
import pathlib
import re

import array_api_strict as xp
import numpy

import array_api_cases

FILE = pathlib.Path(__file__).resolve().parent / 'array-api.json'
OWN = re.compile('array_api_strict_flags|broadcast_shapes|isin')  # its own, and of later versions of the standard

POINTWISE = {*array_api_cases.ONE, *array_api_cases.TWO}


def plain(value):
    """A result as JSON: a tensor as dtype, shape and elements, complex ones as pairs."""
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    if not hasattr(value, '__array_namespace__'):
        return str(value).rpartition('.')[2] if isinstance(value, type(xp.float32)) else number(value)
    array = numpy.asarray(value)
    return [str(array.dtype), list(array.shape), [number(one) for one in array.ravel().tolist()]]


def number(value):
    if isinstance(value, complex):
        return [number(value.real), number(value.imag)]
    return float(f'{value:.12g}') if isinstance(value, float) else value


def main():
    xp.set_array_api_strict_flags(api_version='2024.12')
    rows = []
    for name, call in array_api_cases.programs(xp):
        try:
            found = plain(call())
        except (TypeError, ValueError):  # the standard has it for other dtypes only
            if name.partition(' ')[0] not in POINTWISE:
                raise
            continue
        rows.append(json.dumps([name, found]))
    for name, call in array_api_cases.refused(xp):
        try:
            call()
        except Exception:  # the standard names few kinds
            continue
        raise AssertionError(f'{name} is no error')
    signatures = {name: value for name, value in array_api_cases.signatures(xp).items() if not OWN.search(name)}
    for value in signatures.values():
        for parameter in value:
            if 'Undef' in str(parameter[2]) or 'UNDEF' in str(parameter[2]):
                parameter[2] = 'None'
    lines = ',\n'.join(f'{json.dumps(name)}: {json.dumps(value)}' for name, value in sorted(signatures.items()))
    values = ',\n'.join(rows)
    FILE.write_text(f'{{"signatures": {{\n{lines}\n}}, "values": [\n{values}\n]}}\n', 'utf-8')


if __name__ == '__main__':
    main()
