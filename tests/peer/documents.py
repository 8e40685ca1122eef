#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs the programs that texts about PyTorch show, with this library in its place.

A folder has the texts, one file each: pages that were saved as plain text. Each block of Python in them is run in a
process of its own, as it stands but for the line that imports the package; what it uses and does not define is supplied
(`document_run.py`). With the driver of the tests three GPUs are enough, small numbers help:

    GTORCH_CUDA_DRIVER=build/tests/fake-cuda/libgtorch-fakecuda.so GTORCH_FAKE_CUDA=devices=3,seed=1,borrow=1 \\
        meson devenv -C build -w . python3 tests/peer/documents.py FOLDER --small

`--peer` runs them with PyTorch. The result of a block is one of

    ok          it ended without an error
    caught      the text says that the code is wrong, and GTORCH_CHECK has found that
    unnoticed   the text says so, and nothing has been found
    failed      an error
    slow        it did not end in time
    CRASH       the process died
    skipped     it is no Python, or needs a part that there is not

Blocks that are right run with the checks as well, which must not find anything.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

import document_blocks

RUN = pathlib.Path(__file__).resolve().parent / 'document_run.py'
CHECKS = 'streams=fatal,graph'
FOUND = re.compile(r'two streams use one tensor|takes no part in the capture')
WARNED = re.compile(r'(WARNING|CRITICAL) \*\*')
KINDS = ('ok', 'caught', 'unnoticed', 'failed', 'slow', 'CRASH', 'skipped')


def run(block, options):
    """Returns the result of a block, and a text about it."""
    if block.kind != 'python':
        return 'skipped', f'{block.kind}, not Python'
    package = 'torch' if options.peer else 'gtorch'
    command = [sys.executable, str(RUN), package, *(['--small'] if options.small else [])]
    env = {**os.environ, 'GTORCH_CHECK': CHECKS}
    try:
        done = subprocess.run(command, input=block.code, env=env, capture_output=True, text=True, check=False,
                              timeout=options.seconds)
    except subprocess.TimeoutExpired:
        return 'slow', f'more than {options.seconds} s'
    if options.verbose:
        sys.stderr.write(done.stdout + done.stderr)
    last = [line for line in done.stdout.splitlines() if line.startswith('@@ ')]
    if not last or done.returncode != 0:
        return 'CRASH', f'status {done.returncode}: {" ".join(done.stderr.splitlines()[-1:])}'
    _mark, result, text = f'{last[-1]} '.split(' ', 2)
    if block.wrong and result != 'skipped' and not options.peer:
        said = f'{text} {done.stderr}'
        return ('caught', text.strip()) if FOUND.search(said) else ('unnoticed', text.strip())
    if result == 'ok' and WARNED.search(done.stderr):
        return 'failed', next(line for line in done.stderr.splitlines() if WARNED.search(line))
    return result, text.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder', type=pathlib.Path, help='where the texts are, each a file *.txt')
    parser.add_argument('--peer', action='store_true', help='run the blocks with PyTorch')
    parser.add_argument('--small', action='store_true', help='divide large numbers, for machines without a GPU')
    parser.add_argument('--only', help='a regular expression that the name of a block, FILE:LINE, contains')
    parser.add_argument('--seconds', type=int, default=120, help='how long a block may take')
    parser.add_argument('--jobs', type=int, default=1, help='how many blocks are run at a time')
    parser.add_argument('--verbose', action='store_true', help='show what the blocks print')
    options = parser.parse_args()
    blocks, names = [], collections.Counter()
    for path in sorted(options.folder.glob('*.txt')):
        for block in document_blocks.read(path):
            name = f'{path.stem[:12]}:{block.line}'
            block.name = f'{name}.{names[name] + 1}' if names[name] else name  # a part of a block
            names[name] += 1
            if not options.only or re.search(options.only, block.name):
                blocks.append(block)
    if not blocks:
        parser.error(f'there are no blocks in {options.folder}')
    counts = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for block, (result, text) in zip(blocks, pool.map(lambda block: run(block, options), blocks)):
            counts[result] += 1
            print(f'{block.name:18} {result:9} {text[:200]}'.rstrip(), flush=True)
    print(', '.join(f'{counts[kind]} {kind}' for kind in KINDS), 'of', len(blocks))
    return 1 if any(counts[kind] for kind in ('unnoticed', 'failed', 'slow', 'CRASH')) else 0


if __name__ == '__main__':
    sys.exit(main())
