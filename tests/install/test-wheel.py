#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A wheel works in a fresh virtual environment without any variables: the Python that has gi and mesonpy builds and
installs it, as README.md says."""

import pathlib
import subprocess
import sys
import tempfile
import zipfile

import tap

SOURCE, PYTHON = pathlib.Path(tap.SOURCE_ROOT), sys.argv[1]
PROGRAM = """
import gtorch as torch
from gi.repository import GTorch

layer = torch.nn.Linear(2, 1, bias=False)
with torch.no_grad():
    layer.weight.fill_(3.0)
assert layer(torch.tensor([[1.0, 2.0]])).tolist() == [[9.0]]
assert GTorch.Tensor is torch.Tensor and GTorch.zeros(2).sum().item() == 0.0
assert type(torch.add).__name__ == 'Function', 'the accelerator is missing'
print(torch.__file__)
"""
# Compiling takes long: kernels and tests are left out, and nothing is optimized. pip before 23.1 keeps one setting of a
# name, so the options are in a file.
OPTIONS = """[project options]
cuda-kernels = 'disabled'
cpu-isa = ['baseline']
[built-in options]
c_args = ['-O0']
"""


def run(*command, **options):
    found = subprocess.run(command, capture_output=True, encoding='utf-8', check=False, **options)
    assert found.returncode == 0, f'{" ".join(map(str, command))}:\n{found.stdout[-2000:]}\n{found.stderr[-2000:]}'
    return found.stdout


def has(*modules):
    names = ', '.join(modules)
    return subprocess.run([PYTHON, '-c', f'import {names}'], capture_output=True, check=False).returncode == 0


@tap.case
def a_wheel_works_in_a_fresh_environment():
    if not has('mesonpy', 'pip', 'venv', 'ensurepip'):
        raise tap.Skip('no mesonpy, pip or venv for the Python that has gi')
    with tempfile.TemporaryDirectory(prefix='gtorch-') as folder:
        options = pathlib.Path(folder) / 'options.ini'
        options.write_text(OPTIONS, 'utf-8')
        run(PYTHON, '-m', 'pip', 'wheel', SOURCE, '--no-deps', '--no-build-isolation', '-w', folder,
            f'--config-settings=build-dir={folder}/build', f'--config-settings=setup-args=--native-file={options}')
        (wheel,) = pathlib.Path(folder).glob('*.whl')
        tag = f'cp{sys.version_info.major}'
        assert f'-{tag}' in wheel.name and 'none-any' not in wheel.name, wheel.name
        names = zipfile.ZipFile(wheel).namelist()
        for name in ('gtorch/__init__.pyi', 'gtorch/py.typed', 'gtorch/nn/__init__.pyi', 'gtorch/lib/GTorch-1.typelib',
                     'gi/overrides/GTorch.py'):
            assert name in names, name
        run(PYTHON, '-m', 'venv', '--system-site-packages', f'{folder}/new')
        python = f'{folder}/new/bin/python'
        run(python, '-m', 'pip', 'install', '--no-deps', wheel)
        shown = run(python, '-c', PROGRAM, cwd='/', env={'PATH': '/usr/bin:/bin', 'HOME': folder})
        assert shown.startswith(folder), shown


if __name__ == '__main__':
    del sys.argv[1]
    tap.main()
