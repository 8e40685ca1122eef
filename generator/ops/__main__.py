# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Writes the files that are generated from the rows of operations.

    ops list FOLDER                   the row files and hand-written sources, one a line
    ops kernels ROWS...               the images of CUDA kernels, one a line
    ops generate FOLDER ROWS...       everything; a file is written only when its text changed

docs/writing-an-op.md documents the rows. A mistake in one is reported as `file:row.key: message`.
"""

import json
import pathlib
import sys

from generator import rows as shared
from generator.ops import cuda, devices, functions, gradients, loops, public, samples, table
from generator.ops.rows import load
from generator.text import write


def outputs(rows, files):
    """Returns the text of each file."""
    found = {
        # must be first: it determines which values are saved
        'gtorch-op-grads.c': gradients.emit(rows),
        'gtorch-ops-private.h': functions.emit_header(rows),
        'gtorch-op-table.c': table.emit(rows),
        'gtorch-backends.c': devices.emit(rows),
        'gtorch-ops.c': functions.emit(rows),
        'gtorch-tensor-ops.h': public.emit_header(rows),
        'gtorch-tensor-ops.c': public.emit(rows),
        'gtorch-loop-table.c': loops.emit_table(rows),
        'gtorch-op-samples.c': samples.emit(rows),
        'gtorch-cuda-kernel-table.c': cuda.emit_table(rows),
    }
    for stem in (pathlib.Path(file).stem for file in files):
        found[f'gtorch-loops-{stem}.c'] = loops.emit([row for row in rows if row.file == f'{stem}.toml'])
    for name in cuda.kernel_files(rows):
        found[f'gtorch-kernels-{name}.cu'] = cuda.emit_kernels(rows, name)
    data = [samples.as_data(row, [variant[0] for variant in public.variants(row)]) for row in rows]
    return {**found, 'gtorch-ops.json': json.dumps(data, indent=1)}


def generate(folder, *files):
    for name, text in outputs(load(files), files).items():
        write(pathlib.Path(folder) / name, text)


def list_sources(folder):
    folder = pathlib.Path(folder)
    print('\n'.join(path.name for path in sorted(folder.glob('*.toml')) + sorted(folder.glob('*.c'))))


def list_kernels(*files):
    print('\n'.join(cuda.kernel_files(load(files))))


COMMANDS = {
    'list': (1, 1, list_sources),
    'kernels': (1, sys.maxsize, list_kernels),
    'generate': (2, sys.maxsize, generate),
}


def main(argv):
    return shared.run('ops', __doc__, COMMANDS, argv)
