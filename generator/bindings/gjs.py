# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The operations as a table for JavaScript."""

import json

from generator.bindings import fill
from generator.bindings.rows import spaces


SHORT = ('a', 'x', 'x1', 'x2')  # numpy's names, which are Python's


def argument(arg):
    found = description(arg)
    if arg.has_items:
        return [*found, 'items']
    return [*found, True] if arg.is_optional else found  # null stands for the default, too


def description(arg):
    entry = [arg.c_name, arg.kind if arg.kind != 'enum' else f'enum:{arg.enum}']
    if arg.required:
        return entry
    if arg.none:
        return [*entry, arg.none]
    if arg.kind in ('int', 'double', 'number'):
        value = arg.number
        if value in (float('inf'), -float('inf')):
            return [*entry, 'inf' if value > 0 else '-inf']
        return [*entry, str(value) if abs(value) > 2**53 else value]
    if arg.kind == 'bool':
        return [*entry, arg.default == 'true']
    if arg.kind == 'int[]':
        return [*entry, arg.list]
    if arg.kind == 'enum':
        return [*entry, arg.default]
    return [*entry, None]


def others(row):
    """Maps further names of options to those of the row: PyTorch's, which Python has."""
    own = {arg.name: arg.c_name for arg in row.args}
    found = {other: own[name] for other, name in row.others.items() if other not in SHORT}
    found |= {name: c_name for name, c_name in own.items() if name != c_name}
    return {other: name for other, name in found.items() if other != name}


def entry(row):
    found = {'args': [argument(a) for a in row.args]}
    if row.method:
        found['method'] = True
    if row.inplace:
        found['inplace'] = True
    if row.scalar:
        found['scalar'] = row.c_scalar
    if row.scalar or row.numbers:
        found['forms'] = [form for form in row.forms if form]
    if row.outputs:
        found['outputs'] = row.outputs
    if row.variadic:
        found['variadic'] = True
    if row.creates:
        found['creates'] = True
    if row.number_first:
        found['numberFirst'] = True
    if others(row):
        found['others'] = others(row)
    return found


def emit(rows):
    return fill('ops.js.in', 'file', operations=[f'{row.name}: {json.dumps(entry(row))},' for row in rows],
                spaces=json.dumps(spaces(rows)))
