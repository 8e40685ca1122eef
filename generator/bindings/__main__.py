# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Writes what the overrides need to know about the operations, from gtorch-ops.json.

    bindings python OPS.json OUTPUT.py    wrappers with defaults, scalar forms and operators
    bindings gjs OPS.json OUTPUT.js       a table for introspection/gjs/overrides/GTorch.js
    bindings calls GIR OPS.json OUTPUT.js    a table for introspection/gjs/overrides/_gtorch_calls.js
    bindings mixin OPS.json OUTPUT.inc    the same wrappers in C for introspection/python/_gtorch.c

Introspection exposes every function with all its arguments. The rows have the rest: which arguments
have a default, where a number may replace a tensor, which names are operators.
"""

import functools

from generator import rows as shared
from generator.bindings import calls, gjs, mixin, python
from generator.bindings.rows import load
from generator.text import write


def convert(emit, table, file):
    write(file, emit(load(table)))


COMMANDS = {
    name: (2, 2, functools.partial(convert, module.emit))
    for name, module in (('python', python), ('gjs', gjs), ('mixin', mixin))
} | {'calls': (3, 3, calls.emit)}


def main(argv):
    return shared.run('bindings', __doc__, COMMANDS, argv)
