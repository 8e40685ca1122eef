# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Writes the tables by which the host finds the kernels in kernels/*.cu.

    kernels list FOLDER ENDING       the names of the files with this ending, one a line
    kernels generate FOLDER FILES... gtorch-cuda-kernels.h and .c for these sources and headers

A kernel is declared by `GT_KERNEL (gt_NAME_DTYPE_FORM, PARAMETERS, BOUNDS...)`, where any part behind NAME may be
pasted by a macro. All kernels of one NAME are in one file and take the same struct.
"""

import pathlib
import re
import sys

from generator import rows
from generator.kernels import fill
from generator.signatures import LOOP_TYPES
from generator.text import write

DECLARATION = re.compile(r'\bGT_KERNEL \(\s*([^,()]*?)\s*,\s*(\w+)\s*,')
SUFFIXES = sorted({'f16', 'bf16', 'i8', 'u8', 'i16', *(suffix for suffix, *_ in LOOP_TYPES.values())})
NAME = re.compile(r'gt_(\w+?)_(?:##.*|(?:' + '|'.join(SUFFIXES) + r')(?:_\w+)?)')


class Kernels:
    """The kernels of one name: for several dtypes, or in several forms."""

    def __init__(self, name, parameters, path):
        self.name, self.parameters, self.family = name, parameters, family_name(path)

    def declaration(self):
        return fill('kernels.in', 'declaration', name=self.name, parameters=self.parameters)

    def definition(self):
        return fill('kernels.in', 'definition', name=self.name, parameters=self.parameters, family=self.family)


def family_name(path):
    return path.stem.replace('-', '_')


def declared(path):
    """(the text before the macro's parts, the struct, the line) of each declaration."""
    text = path.read_text('utf-8')
    for match in DECLARATION.finditer(text):
        line = text.count('\n', 0, match.start()) + 1
        name = NAME.fullmatch(match[1])
        if name is None:
            raise rows.RowError(f'{path.name}:{line}: a kernel is named gt_NAME_DTYPE or gt_NAME_##…, not {match[1]}')
        yield name[1], match[2], line


def load(paths):
    """The kernels of all files by their names."""
    found = {}
    for path in paths:
        for name, parameters, line in declared(path):
            one = found.setdefault(name, Kernels(name, parameters, path))
            if one.family != family_name(path):
                raise rows.RowError(f'{path.name}:{line}: gt_{name} is in another file, too')
            if one.parameters != parameters:
                raise rows.RowError(
                    f'{path.name}:{line}: gt_{name} takes {parameters} here and {one.parameters} above')
    return [found[name] for name in sorted(found)]


def list_files(folder, ending):
    print('\n'.join(path.name for path in sorted(pathlib.Path(folder).glob(f'*{ending}'))))


def generate(folder, *files):
    paths = sorted(map(pathlib.Path, files), key=lambda path: path.name)
    sources = [path for path in paths if path.suffix == '.cu']
    headers = [path for path in paths if path.suffix == '.h']
    families = sorted(map(family_name, sources))
    kernels = load(sources)
    write(pathlib.Path(folder) / 'gtorch-cuda-kernels.h', fill(
        'kernels.in', 'header', includes=[f'#include "kernels/{path.name}"' for path in headers],
        families=[f'extern GTorchCudaFamily gtorch_cuda_family_{name};' for name in families],
        types=[fill('kernels.in', 'type', parameters=name) for name in sorted({one.parameters for one in kernels})],
        kernels=[one.declaration() for one in kernels],
    ))
    write(pathlib.Path(folder) / 'gtorch-cuda-kernels.c', fill(
        'kernels.in', 'source', families=[fill('kernels.in', 'family', name=name) for name in families],
        kernels=[one.definition() for one in kernels],
    ))


COMMANDS = {
    'list': (2, 2, list_files),
    'generate': (2, sys.maxsize, generate),
}


def main(argv):
    return rows.run('kernels', __doc__, COMMANDS, argv)
