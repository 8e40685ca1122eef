#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The stubs of the package gtorch name what there is, with the arguments that inspect tells, and all of it; mypy
accepts them, and a program that uses them (typed_sample.py), and finds its mistakes."""

import ast
import importlib
import inspect
import pathlib
import shutil
import subprocess
import sys
import tempfile
import types

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / 'tests' / 'style'))

import gtorch as torch  # noqa: E402

import tap  # noqa: E402

FOLDER = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else pathlib.Path(torch.__file__).parent)
SAMPLE = pathlib.Path(__file__).resolve().parent / 'typed_sample.py'


def modules():
    """Each module, and what its stub defines by the names."""
    for path in sorted(FOLDER.rglob('*.pyi')):
        parts = [part for part in path.relative_to(FOLDER).with_suffix('').parts if part != '__init__']
        name = '.'.join(['gtorch', *parts])
        yield name, importlib.import_module(name), ast.parse(path.read_text('utf-8'))


def defined(tree):
    found = {}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = node
        elif isinstance(node, ast.AnnAssign):
            found[node.target.id] = node
        elif isinstance(node, ast.Assign):
            found[node.targets[0].id] = node
        elif isinstance(node, (ast.ImportFrom, ast.Import)):
            found.update({alias.asname: node for alias in node.names if alias.asname is not None})
    return {name: node for name, node in found.items() if not name.startswith('_')}


def arguments(node):
    """The names of the arguments of a stub, with their kinds, and those that have defaults."""
    given, found = node.args, []
    places = [*given.posonlyargs, *given.args]
    n_required = len(places) - len(given.defaults)
    for i, one in enumerate(places):
        kind = 'POSITIONAL_ONLY' if i < len(given.posonlyargs) else 'POSITIONAL_OR_KEYWORD'
        found.append((one.arg, kind, i >= n_required))
    if given.vararg:
        found.append((given.vararg.arg, 'VAR_POSITIONAL', False))
    for one, value in zip(given.kwonlyargs, given.kw_defaults):
        found.append((one.arg, 'KEYWORD_ONLY', value is not None))
    if given.kwarg:
        found.append((given.kwarg.arg, 'VAR_KEYWORD', False))
    return found


def real(function):
    none = inspect.Parameter.empty
    return [(p.name, p.kind.name, p.default is not none) for p in inspect.signature(function).parameters.values()]


def differences(name, node, value):
    try:
        found = real(value)
    except (TypeError, ValueError):
        return []
    own = arguments(node)
    return [] if own == found else [(name, own, found)]


@tap.case
def functions_and_classes_have_the_arguments_of_the_stubs():
    wrong, n = [], 0
    for module, space, tree in modules():
        for name, node in defined(tree).items():
            if not hasattr(space, name):
                wrong.append((module, name, 'is not there'))
            elif isinstance(node, ast.FunctionDef):
                n += 1
                wrong += differences(f'{module}.{name}', node, getattr(space, name))
            elif isinstance(node, ast.ClassDef):
                wrong += members(f'{module}.{name}', node, getattr(space, name))
    assert n > 1000 and not wrong, wrong[:10]


def members(path, node, cls):
    found = []
    for part in node.body:
        if not isinstance(part, ast.FunctionDef):
            continue
        if part.name == '__init__':
            (part.args.posonlyargs or part.args.args).pop(0)  # self
            found += differences(path, part, cls)
        elif not part.name.startswith('__') and not hasattr(cls, part.name):
            found.append((path, part.name, 'is not there'))
        elif not part.name.startswith('_') and inspect.isfunction(inspect.getattr_static(cls, part.name, None)):
            found += differences(f'{path}.{part.name}', part, inspect.getattr_static(cls, part.name))
    return found


@tap.case
def every_module_has_a_stub():
    found = {name for name, _module, _tree in modules()}
    missing = {name for name in sys.modules if name.split('.')[0] == 'gtorch'} - found
    assert not missing, f'introspection/python/gtorch/meson.build has no output for {sorted(missing)}'


@tap.case
def stubs_have_every_public_name():
    missing, n = [], 0
    for module, space, tree in modules():
        found = defined(tree)
        for name in dir(space):
            value = getattr(space, name)
            if name.startswith('_') or name in ('None', 'True', 'False'):
                continue
            n += 1
            if name not in found and not (isinstance(value, types.ModuleType) and name not in sys.modules):
                missing.append((module, name))
    assert n > 1500 and not missing, missing[:20]


def mypy(*args):
    program = shutil.which('mypy')
    if program is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / 'gtorch'
        for path in [*FOLDER.rglob('*.pyi'), FOLDER / 'py.typed']:
            target = copy / path.relative_to(FOLDER)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        texts = {'sample.py': SAMPLE.read_text('utf-8'), 'wrong.py': WRONG}
        for name, text in texts.items():
            (pathlib.Path(folder) / name).write_text(text, 'utf-8')
        return subprocess.run([program, '--strict', '--no-incremental', *args], cwd=folder, capture_output=True,
                              encoding='utf-8', check=False)


WRONG = """import gtorch as torch
from gtorch import nn

nn.Linear('three', 2)
torch.ones(2).topk(values=1)
torch.ones(2, dtype=3.0)
torch.no_such_function()
x: int = torch.zeros(2)
"""


@tap.case
def mypy_accepts_the_stubs():
    found = mypy('-p', 'gtorch')
    if found is None:
        raise tap.Skip('no mypy')
    assert found.returncode == 0, found.stdout


@tap.case
def mypy_accepts_a_program():
    found = mypy('sample.py')
    if found is None:
        raise tap.Skip('no mypy')
    assert found.returncode == 0, found.stdout


@tap.case
def mypy_finds_mistakes():
    found = mypy('wrong.py')
    if found is None:
        raise tap.Skip('no mypy')
    lines = {line.split(':')[1] for line in found.stdout.splitlines() if ': error:' in line}
    assert lines == {'4', '5', '6', '7', '8'}, found.stdout


@tap.case
def the_program_runs():
    found = subprocess.run([sys.executable, SAMPLE], capture_output=True, encoding='utf-8', check=True)
    assert found.stdout.endswith('(2, 2) [1, 5]\n'), found.stdout


if __name__ == '__main__':
    tap.main()
