#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Tests generator/kernels: the tables that it makes of small sources, and what it says of mistakes.

The build folder is the argument: it must know every source of kernels and of forms of operations.
"""

import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / 'tests' / 'style'))

import tap  # noqa: E402

HEADER = '#pragma once\ntypedef struct { long n; } GtHop;\n'
HOP = '#define EACH(dtype) \\\n  GT_KERNEL (gt_hop_##dtype##_long, GtHop, 256) { hop (p); }\n' \
      'GT_KERNEL (gt_hop_bf16, GtHop, 1024, 2) { }\nGT_KERNEL (gt_hop_over_i64,\n           GtLeap, 256)\n{\n}\n'

MISTAKES = [
    ({'hop.cu': 'GT_KERNEL (hop_f32, GtHop, 256)\n'}, 'hop.cu:1: a kernel is named gt_NAME_DTYPE'),
    ({'hop.cu': '\nGT_KERNEL (gt_hop, GtHop, 256)\n'}, 'hop.cu:2: a kernel is named gt_NAME_DTYPE'),
    ({'hop.cu': 'GT_KERNEL (gt_hop_f32, GtHop, 256)\nGT_KERNEL (gt_hop_f64, GtLeap, 256)\n'},
     'hop.cu:2: gt_hop takes GtLeap here and GtHop above'),
    ({'hop.cu': 'GT_KERNEL (gt_hop_f32, GtHop, 256)\n', 'leap.cu': 'GT_KERNEL (gt_hop_f64, GtHop, 256)\n'},
     'leap.cu:1: gt_hop is in another file, too'),
]


def generate(files):
    """(the exit status, what was said, the header, the source) for these files."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for file, text in files.items():
            (folder / file).write_text(text, 'utf-8')
        done = subprocess.run(
            [sys.executable, ROOT / 'generator', 'kernels', 'generate', folder, *(folder / file for file in files)],
            capture_output=True, text=True, check=False)
        made = [folder / f'gtorch-cuda-kernels.{end}' for end in 'hc']
        return done.returncode, done.stderr, *(path.read_text('utf-8') if path.exists() else '' for path in made)


@tap.case
def kernels_of_one_name_are_a_set():
    status, said, header, source = generate({'hop-on.cu': HOP, 'gtorch-hop-params.h': HEADER})
    assert status == 0, said
    for wanted in ('#include "kernels/gtorch-hop-params.h"', 'extern GTorchCudaFamily gtorch_cuda_family_hop_on;',
                   'GTORCH_CUDA_KERNELS (GtHop);', 'GTORCH_CUDA_KERNELS (GtLeap);',
                   'extern const GtHopKernels gtorch_kernels_hop;',
                   'extern const GtLeapKernels gtorch_kernels_hop_over;'):
        assert header.count(wanted) == 1, f'{wanted}\n{header}'
    for wanted in ('GTORCH_CUDA_IMAGE (hop_on)', '{ .name = "hop_on", .image = gtorch_fatbin_hop_on };',
                   'gtorch_kernels_hop = { { "hop", &gtorch_cuda_family_hop_on } };'):
        assert source.count(wanted) == 1, f'{wanted}\n{source}'


def check_mistake(files, wanted):
    status, said, *_ = generate(files)
    assert status == 1 and wanted in said, f'{wanted}: {status} {said}'


@tap.case
def the_build_knows_every_source():
    """A source that was added later than the build folder was set up is not compiled."""
    folder = sys.argv[1]
    known = (pathlib.Path(folder) / 'build.ninja').read_text('utf-8')
    sources = [*(ROOT / 'gtorch' / 'cuda' / 'ops').glob('*.c'), *(ROOT / 'kernels').glob('*.cu')]
    missing = [str(path.relative_to(ROOT)) for path in sources if f'{path.parent.name}/{path.name}' not in known]
    assert sources and not missing, f'meson setup --reconfigure {folder}: it lacks {" ".join(sorted(missing))}'


for number, (sources_given, message) in enumerate(MISTAKES, 1):
    tap.add(f'mistake_{number}_is_named', check_mistake, sources_given, message)
tap.main()
