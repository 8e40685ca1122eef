# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Writes the files that are generated from the rows of layers.

    layers list FOLDER                            the files with rows, one a line
    layers generate FOLDER OPS... -- ROWS...      the classes in C, and the table that the others read
    layers python|gjs|manual TABLE FILE           the arguments of the constructors, for the bindings and the manual
"""

import functools
import json
import pathlib
import sys

from generator import rows as shared
from generator.layers import bindings, classes, fill, samples
from generator.layers.rows import load
from generator.text import write


def list_sources(folder):
    print('\n'.join(path.name for path in sorted(pathlib.Path(folder).glob('*.toml'))))


def generate(folder, *files):
    middle, folder = files.index('--'), pathlib.Path(folder)
    everything = load(files[middle + 1 :], files[:middle])
    layers = {name: layer for name, layer in everything.items() if not layer.by_hand}
    write(folder / 'gtorch-layers.h', classes.emit_header(layers.values()))
    for file in map(pathlib.Path, files[middle + 1 :]):
        own = [classes.source(layer) for layer in layers.values() if layer.file == file.name]
        text = fill('layer.c.in', 'source', file=file.name, classes='\n'.join(own))
        write(folder / f'gtorch-layers-{file.stem}.c', text)
    write(folder / 'gtorch-layer-samples.c', samples.source(layers))
    write(folder / 'gtorch-layers.json', json.dumps(bindings.table(everything), indent=1))


def convert(emit, table, file):
    write(file, emit(json.loads(pathlib.Path(table).read_text('utf-8'))))


COMMANDS = {
    'list': (1, 1, list_sources),
    'generate': (3, sys.maxsize, generate),
    **{name: (2, 2, functools.partial(convert, emit)) for name, emit in bindings.EMITTERS.items()},
}


def main(argv):
    return shared.run('layers', __doc__, COMMANDS, argv)
