# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""What layers need of the rows of operations: their arguments, and whether they work in place."""

import pathlib
import sys
import tomllib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'gtorch' / 'ops'))

from opgen_checks import RANGE, parse_range  # noqa: E402, F401
from opgen_common import parse_args  # noqa: E402


class Operation:
    """One row."""

    def __init__(self, name, row):
        self.name = name
        self.args = parse_args(row['args'])
        self.inplace = row.get('inplace', False)
        self.checks = row.get('check', {})


def load(files):
    found = {}
    for file in files:
        rows = tomllib.loads(pathlib.Path(file).read_text(encoding='utf-8'))
        found.update((name, Operation(name, row)) for name, row in rows.items())
    return found
