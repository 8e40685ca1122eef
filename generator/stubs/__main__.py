# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Writes the stubs of the package gtorch, with the Python and the library that it is for.

    stubs write OPS.json LAYERS.json FOLDER MODULES    for the outputs of modules, separated by commas: fft.pyi, nn …

The names and the arguments are those that inspect finds in the package. The types of operations are those of their
rows, of functions of the typelib those that it has; types.py has the others.
"""

import json
import os
import pathlib
import sys

from generator import rows as shared
from generator.bindings.rows import load
from generator.text import write


def emit(ops, layers, folder, outputs):
    top = pathlib.Path(folder)
    sys.path.insert(0, str(top.parent))
    import gtorch

    from generator.stubs.modules import Package
    from generator.stubs.types import Types

    wanted = set(outputs.split(','))
    package = Package(gtorch, Types(load(ops), json.loads(pathlib.Path(layers).read_text('utf-8'))), wanted)
    for path, text in package.texts().items():
        write(top / path, text)
    for name in wanted:  # folders, too, are as new as what they have
        os.utime(top / name)


COMMANDS = {'write': (4, 4, emit)}


def main(argv):
    return shared.run('stubs', __doc__, COMMANDS, argv)
