# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Writes what the overrides need to know about the operations, from gtorch-ops.json.

    bindings python OPS.json OUTPUT.py    wrappers with defaults, scalar forms and operators
    bindings signatures OPS.json KNOWN.json OUTPUT.py    the arguments of operations, for inspect
    bindings gjs OPS.json OUTPUT.js       a table for introspection/gjs/overrides/GTorch.js
    bindings calls GIR DEFAULTS.toml OPS.json OUTPUT.js    a table for introspection/gjs/overrides/_gtorch_calls.js
    bindings python-calls GIR DEFAULTS.toml OPS.json OUTPUT.py    the same for _gtorch_checked.py of Python
    bindings gjs-overrides DEFAULTS.toml OUTPUT.js GIR...    the overrides of a library beside this one, whose GIR
                                          is the first, before those of what it includes
    bindings python-overrides DEFAULTS.toml OUTPUT.py GIR...    the same for Python
    bindings definitions DEFAULTS.toml OUTPUT.d.ts GIR...    the same for TypeScript
    bindings library-vapi VAPIGEN DEFAULTS.toml OUTPUT.vapi PACKAGES GIR...    the same for Vala; PACKAGES,with,commas
    bindings mixin OPS.json KNOWN.json OUTPUT.inc    the same wrappers in C for introspection/python/_gtorch.c
    bindings typescript GIR DEFAULTS.toml OPS.json LAYERS.json STEPS.json OUTPUT.d.ts
    bindings vapi VAPIGEN GIR METADATA TABLE.toml DEFAULTS.toml OPS.json LAYERS.json STEPS.json OUTPUT.vapi

KNOWN.json is docs/data/pytorch-signatures.json.

Introspection exposes every function with all its arguments. The rows have the rest: which arguments
have a default, where a number may replace a tensor, which names are operators.
"""

import functools

from generator import rows as shared
from generator.bindings import calls, gjs, mixin, python, signatures, typescript, vapi
from generator.bindings.rows import load
from generator.text import write


def convert(emit, table, file):
    write(file, emit(load(table)))


def convert_known(emit, table, known, file):
    write(file, emit(load(table), signatures.Known(known)))


COMMANDS = {
    **{
        name: (2, 2, functools.partial(convert, module.emit))
        for name, module in (('python', python), ('gjs', gjs))
    },
    **{
        name: (3, 3, functools.partial(convert_known, module.emit))
        for name, module in (('mixin', mixin), ('signatures', signatures))
    },
    'calls': (4, 4, calls.emit),
    'python-calls': (4, 4, calls.emit_python),
    'gjs-overrides': (3, 9, functools.partial(calls.emit_overrides, 'javascript', calls.show_javascript)),
    'python-overrides': (3, 9, functools.partial(calls.emit_overrides, 'python', calls.show_python)),
    'definitions': (3, 9, typescript.emit_library),
    'library-vapi': (5, 9, vapi.emit_library),
    'typescript': (6, 6, typescript.emit),
    'vapi': (9, 9, vapi.emit),
}


def main(argv):
    return shared.run('bindings', __doc__, COMMANDS, argv)
