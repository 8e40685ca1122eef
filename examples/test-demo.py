#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests on which device the programs of `./bootstrap demo` compute, and what they print about it.

    test-demo.py NAME COMMAND [then NAME COMMAND]…
"""

import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'tests' / 'style'))

import tap  # noqa: E402

MISSING = {'GTORCH_CUDA_DRIVER': '/nowhere/libcuda.so.1'}


def first_line(command, *arguments, **environment):
    """Returns what a program prints before it computes anything; does not wait for the rest."""
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(
        [*command, *arguments],
        cwd=folder,
        env={**os.environ, 'LC_ALL': 'C.UTF-8', **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        line = process.stdout.readline()
        process.kill()
    return line


def says(command, text, *arguments, **environment):
    line = first_line(command, *arguments, **environment)
    assert line.startswith('digits: on ') and text in line, f'{text!r} is not in {line!r}'


def a_gpu_is_chosen(command):
    says(command, 'on cuda:0, Fake 0', GTORCH_FAKE_CUDA='devices=2')
    assert '; no GPU' not in first_line(command, '--device=cpu', GTORCH_FAKE_CUDA='devices=2')
    says(command, 'on cuda:1, Fake 1', '--device=cuda:1', GTORCH_FAKE_CUDA='devices=2')


def without_one_the_reason_is_said(command):
    says(command, "; no GPU: NVIDIA's CUDA driver was not found (/nowhere/libcuda.so.1", **MISSING)
    says(command, 'CUDA_ERROR_NO_DEVICE', GTORCH_FAKE_CUDA='devices=0')
    says(command, '; no GPU: the compute mode of cuda:0 prohibits', GTORCH_FAKE_CUDA='devices=1,mode=2')


if __name__ == '__main__':
    programs, current = [], []
    for argument in [*sys.argv[1:], 'then']:
        if argument == 'then':
            programs.append((current[0], current[1:]))
            current = []
        else:  # programs run in their own folder
            current.append(os.path.abspath(argument) if '/' in argument else argument)
    del sys.argv[1:]
    for name, command in programs:
        for case in (a_gpu_is_chosen, without_one_the_reason_is_said):
            tap.add(f'{name}_{case.__name__}', case, command)
    tap.main()
