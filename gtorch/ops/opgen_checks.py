# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The check key of a row: the range that a number must be in."""

import re

from opgen_common import RowError, declare_function, enum_constant

RANGE = re.compile(r'([\[(])(-?inf|-?\d+(?:\.\d+)?), (-?inf|-?\d+(?:\.\d+)?)([\])])')


def parse_range(text):
    """[0, 1], (0, inf] or [0, inf), as C's low and high bound and whether the low one is excluded."""
    match = RANGE.fullmatch(text)
    if match is None:
        raise RowError(f'no such range: {text}')
    opening, low, high, closing = match.groups()
    if closing == ')' and high != 'inf':
        raise RowError(f'{text}: only inf can be excluded above')
    if low == '-inf':
        raise RowError(f'{text}: a range begins with a number')
    bound = {'inf)': 'G_MAXDOUBLE', 'inf]': 'INFINITY'}.get(high + closing, high)
    return low, bound, 'TRUE' if opening == '(' else 'FALSE'


def parse(row):
    """Argument -> range."""
    table = row.data.get('check', {})
    kinds = {a.name: a.kind for a in row.args}
    for name, text in table.items():
        if kinds.get(name) != 'double':
            row.fail(f'check.{name}', 'is not an argument of kind double')
        try:
            parse_range(text)
        except RowError as error:
            row.fail(f'check.{name}', str(error))
    return table


def emit(row, fail):
    """The lines that refuse, before anything else is done."""
    lines = []
    for name, text in row.checks.items():
        low, high, is_open = parse_range(text)
        checked = f'{name}, {low}, {high}, {is_open}'
        lines += [
            f'  if (G_UNLIKELY (!gtorch_is_in_range ({checked})))',
            '    {',
            f'      gtorch_op_refuse_number ({enum_constant("OP", row.name)}, "{name}", {checked},',
            '                               error);',
            f'      return {fail};',
            '    }',
        ]
    return lines


def emit_wrapper(row):
    """Of a composite without autocast."""
    outs = row.outputs if len(row.outputs) > 1 else []
    passed = [name for a in row.args for _, name in a.c_declaration(False)] + outs + ['error']
    lines = [declare_function(row.op_returns(), f'gtorch_op_{row.name}', row.op_params()), '{']
    lines += emit(row, 'FALSE' if outs else 'NULL')
    return [*lines, f'  return {row.body_name()} ({", ".join(passed)});', '}', '']


def text(row):
    """For the documentation."""
    return ''.join(f' @{name} must be within {bounds}.' for name, bounds in row.checks.items())
