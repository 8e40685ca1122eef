# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""What layers need of the rows of operations: their arguments, and whether they work in place."""

import pathlib
import tomllib

from generator.signatures import parse_args


class Operation:
    """One row."""

    def __init__(self, name, row):
        self.name = name
        self.args = parse_args(row['args'])
        self.inplace = row.get('inplace', False)


def load(files):
    found = {}
    for file in files:
        rows = tomllib.loads(pathlib.Path(file).read_text(encoding='utf-8'))
        found.update((name, Operation(name, row)) for name, row in rows.items())
    return found
