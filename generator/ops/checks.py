# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The check key of a row: the valid range of a number."""

from generator.ops import fill
from generator.rows import RowError
from generator.signatures import parse_range


def parse(row):
    """Maps the argument to its range."""
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


def emit(row, failure):
    """Returns the lines that check the arguments first."""
    optional = {a.name for a in row.args if a.is_optional}
    return [
        fill('functions.c.in', 'check', name=name, op=row.constant, failure=failure,
             given=f'!gtorch_is_none_double ({name}) && ' if name in optional else '',
             checked=', '.join([name, *parse_range(text)]))
        for name, text in row.checks.items()
    ]


def text(row):
    """Returns the text for the documentation."""
    optional = {a.name for a in row.args if a.is_optional}
    return ''.join(
        f' @{name} must be within {bounds}{" if it is given" if name in optional else ""}.'
        for name, bounds in row.checks.items()
    )
