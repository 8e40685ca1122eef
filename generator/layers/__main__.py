# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Writes what follows from the rows of layers.

layers list FOLDER                            the files with rows
layers generate FOLDER OPS... -- ROWS...      the classes in C, and the table that the others read
layers python|gjs|manual TABLE FILE           the arguments of the constructors, for the bindings and the manual
"""

import json
import pathlib
import sys

from generator.layers import bindings, classes, samples
from generator.layers.rows import RowError, load
from generator.layers.text import fill


def write(path, text):
    """Writes the file if its text changed, so that what is made from it is not made again."""
    path = pathlib.Path(path)
    if not path.exists() or path.read_text(encoding='utf-8') != text:
        path.write_text(text, encoding='utf-8')


def generate(folder, op_files, files):
    layers = load(files, op_files)
    folder = pathlib.Path(folder)
    declarations = ''.join(classes.header(layer) for layer in layers.values())
    write(folder / 'gtorch-layers.h', fill('layers.h.in', 'header', declarations=declarations))
    for file in files:
        name = pathlib.Path(file).name
        own = [classes.source(layer) for layer in layers.values() if layer.file == name]
        text = fill('layer.c.in', 'source', file=name, classes='\n'.join(own))
        write(folder / f'gtorch-layers-{name.removesuffix(".toml")}.c', text.rstrip('\n') + '\n')
    write(folder / 'gtorch-layer-samples.c', samples.source(layers))
    write(folder / 'gtorch-layers.json', json.dumps(bindings.table(layers), indent=1) + '\n')


def main(argv):
    try:
        if len(argv) == 3 and argv[1] == 'list':
            print('\n'.join(path.name for path in sorted(pathlib.Path(argv[2]).glob('*.toml'))))
        elif len(argv) > 4 and argv[1] == 'generate' and '--' in argv:
            middle = argv.index('--')
            generate(argv[2], argv[3:middle], argv[middle + 1 :])
        elif len(argv) == 4 and argv[1] in bindings.EMITTERS:
            table = json.loads(pathlib.Path(argv[2]).read_text(encoding='utf-8'))
            write(argv[3], bindings.EMITTERS[argv[1]](table))
        else:
            print(__doc__, file=sys.stderr)
            return 2
    except RowError as error:
        print(f'layers: {error}', file=sys.stderr)
        return 1
    return 0
