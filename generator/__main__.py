#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Writes what follows from the rows of operations, layers, optimizers and schedules, and from CUDA kernels.

    generator ops|kernels|layers|steps|bindings|stubs …    see generator/NAME/__main__.py
    generator files                          the modules and templates, one a line
"""

import importlib
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
PARTS = ('ops', 'kernels', 'layers', 'steps', 'bindings', 'stubs')

sys.path[0] = str(FOLDER.parent)  # also if this file is run by its path
sys.dont_write_bytecode = True


def main(argv):
    if argv[1:] == ['files']:
        print('\n'.join(str(path) for path in sorted(FOLDER.rglob('*')) if path.suffix in ('.py', '.in')))
        return 0
    if len(argv) < 2 or argv[1] not in PARTS:
        print(__doc__, file=sys.stderr)
        return 2
    return importlib.import_module(f'generator.{argv[1]}.__main__').main(argv[1:])


if __name__ == '__main__':
    sys.exit(main(sys.argv))
