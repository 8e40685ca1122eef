# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Skips all tests without a GPU, and what tests of programs for GPUs share. Must be imported first: it finds the
package gtorch, and tap."""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gtorch as torch  # noqa: E402

import tap  # noqa: E402
from tap import raises  # noqa: E402, F401: for those that import this module

IS_FAKE = 'GTORCH_CUDA_DRIVER' in os.environ

if not torch.cuda.is_available():
    print('1..0 # SKIP no GPU')
    sys.exit()


def need(n):
    """Skips the case where there are fewer GPUs."""
    if torch.cuda.device_count() < n:
        raise tap.Skip(f'{torch.cuda.device_count()} GPUs of {n}')


def equal(tensor, values):
    """Holds a tensor to a list of numbers."""
    found = tensor.tolist()
    assert found == values, f'{found}, not {values}'


def near(a, b, tolerance=1e-5):
    """Holds tensors, or a tensor and a list, to each other."""
    b = b if isinstance(b, torch.Tensor) else torch.tensor(b, dtype=a.dtype)
    off = (a.detach().cpu().double() - b.detach().cpu().double()).abs().max().item()
    assert off <= tolerance, f'off by {off}: {a} and {b}'


def elsewhere(program, **environment):
    """The result of a program in a process of its own: (status, output and errors)."""
    done = subprocess.run(
        [sys.executable, '-c', f'import gtorch as torch\n{program}'], env={**os.environ, **environment},
        capture_output=True, text=True, check=False, timeout=100,
    )
    return done.returncode, done.stdout + done.stderr
