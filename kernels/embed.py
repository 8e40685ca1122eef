#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Compiles a file of kernels to one image for all wanted GPUs and puts it into an object file.

    embed.py NVCC CC OPTIMIZATION ARCHS NAME SOURCE OBJECT DEPFILE FOLDER…

OPTIMIZATION is an option of nvcc. ARCHS is a list such as 80;90;120+ptx: `+ptx` adds the form that newer GPUs can
compile for themselves. The image gets the symbol gtorch_fatbin_NAME; FOLDERs are searched for headers.
"""

import pathlib
import re
import shutil
import subprocess
import sys

STANZA = '''\t.section .rodata.gtorch_fatbin_{name},"a",@progbits
\t.balign 64
\t.globl gtorch_fatbin_{name}
\t.hidden gtorch_fatbin_{name}
\t.type gtorch_fatbin_{name},@object
gtorch_fatbin_{name}:
\t.incbin "{image}"
\t.size gtorch_fatbin_{name},.-gtorch_fatbin_{name}
\t.section .note.GNU-stack,"",@progbits
'''


def gencode(archs):
    for arch in archs.split(';'):
        match = re.fullmatch(r'(\d+[af]?)(\+ptx)?', arch)
        if match is None:
            sys.exit(f'embed.py: “{arch}” is not a generation of GPUs (90, 90a, 120+ptx)')
        number, ptx = match.groups()
        yield f'-gencode=arch=compute_{number},code=sm_{number}'
        if ptx:
            yield f'-gencode=arch=compute_{number},code=compute_{number}'


def main(nvcc, cc, optimization, archs, name, source, target, depfile, *folders):
    image = pathlib.Path(target).with_suffix('.fatbin').absolute()
    cache = shutil.which('ccache')
    subprocess.run(
        [
            *([cache] if cache else []),
            nvcc,
            '-fatbin',
            '-std=c++17',
            optimization,
            '--compress-mode=size',
            '-Wno-deprecated-gpu-targets',
            '-diag-suppress=177,550',
            *gencode(archs),
            *(f'-I{folder}' for folder in folders),
            '-MD',
            '-MF',
            depfile,
            '-MT',
            target,
            '-o',
            str(image),
            source,
        ],
        check=True,
    )
    subprocess.run(
        [cc, '-c', '-x', 'assembler', '-o', target, '-'],
        input=STANZA.format(name=name, image=image),
        text=True,
        check=True,
    )


if __name__ == '__main__':
    if len(sys.argv) < 9:
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
