# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Finds this library's function for an operator of PyTorch, and rebuilds functions of PyTorch's tests so that they call
this library."""

import functools
import pathlib
import tomllib
import types

import op_values
import torch
from gi.repository import GTorch
from op_values import Unmapped, to_ours

# Where a function is looked for that is not in GTorch itself.
SPACES = ('special', 'linalg', 'fft', 'nn.functional')
# What PyTorch's names of operators contain that stand for what this library does not have, and why it lacks others.
OUT_OF_SCOPE = ('jiterator', 'sparse', '_refs', 'nested', 'quantize', 'torch.ops.aten')
_REASONS = pathlib.Path(__file__).resolve().parent.parent.parent / 'docs/data/coverage-reasons.toml'


class Missing(Exception):
    """There is no function of the name."""


@functools.cache
def _reasons():
    found = tomllib.loads(_REASONS.read_text('utf-8'))
    return {name: why for why, group in found.items() for name in group['names']}


def why_not(name):
    """Returns why an operator is not tried, or None."""
    return 'out of scope' if any(word in name for word in OUT_OF_SCOPE) else _reasons().get(name)


class Space:
    """Stands for the module torch, or one within it, in functions that were written for that."""

    def __init__(self, path=()):
        self._path = path

    def __getattr__(self, name):
        theirs = functools.reduce(getattr, (*self._path, name), torch)
        if isinstance(theirs, types.ModuleType):
            return Space((*self._path, name))
        if isinstance(theirs, torch.dtype):
            return to_ours(theirs)
        return find('.'.join((*self._path, name)))


def _get(dotted):
    found = GTorch
    for part in dotted.split('.'):
        found = getattr(found, part, None)
    return found


def find(dotted):
    """Returns this library's function for torch.`dotted`."""
    last = dotted.rpartition('.')[2]
    names = [dotted, *([f'{space}.{last}' for space in SPACES] if dotted == last else [])]
    for name in names:
        found = _get(name)
        if found is not None:
            return found
    own = dotted.startswith(SPACES) or '.' not in dotted or dotted.startswith('Tensor.')
    method = getattr(GTorch.Tensor, last, None) if own else None
    if method is None or isinstance(method, property):
        raise Missing(f'there is no {dotted}')
    return method


def method(name):
    """Returns a function that calls the method, or reads the attribute, of that name."""
    if not hasattr(GTorch.Tensor, name):
        raise Missing(f'tensors have no {name}')

    def call(self, *args, **options):
        found = getattr(self, name)
        return found(*args, **options) if callable(found) else found

    return call


def seeded(function, *args, **options):
    """What PyTorch's tests call random functions by, without the state of its generator."""
    GTorch.manual_seed(42)
    return function(*args, **options)


def _is_of_tests(function):
    return isinstance(function, types.FunctionType) and function.__module__.startswith('torch.testing')


def _names(code):
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


_rebuilt = {}


def rebuild(value):
    """Returns a function of PyTorch's tests that calls this library instead, and this library's for another."""
    if isinstance(value, functools.partial):
        return functools.partial(rebuild(value.func), *to_ours(value.args), **to_ours(value.keywords))
    if getattr(value, '__name__', '') == 'wrapper_set_seed':
        return seeded
    if not _is_of_tests(value):
        return theirs_to_ours(value)
    if value in _rebuilt:
        return _rebuilt[value]
    names = {'__builtins__': value.__globals__['__builtins__'], 'torch': Space(), 'F': Space(('nn', 'functional'))}
    cells = tuple(types.CellType(_inside(cell.cell_contents)) for cell in value.__closure__ or ())
    made = types.FunctionType(value.__code__, names, value.__name__, value.__defaults__, cells)
    made.__kwdefaults__ = value.__kwdefaults__
    _rebuilt[value] = made
    for name in set(_names(value.__code__)) & set(value.__globals__) - set(names):
        names[name] = _inside(value.__globals__[name])
    return made


def _inside(value):
    """What a rebuilt function has in place of a value of the original."""
    if callable(value) and not isinstance(value, type):
        try:
            return rebuild(value)
        except Missing:
            return value
    try:
        return to_ours(value)
    except Unmapped:
        return value


def theirs_to_ours(value):
    """Returns this library's function for one of PyTorch's."""
    name, owner = getattr(value, '__name__', None), getattr(value, '__objclass__', None)
    if name is None:
        raise Missing(f'nothing stands for {value!r}')
    if owner is not None or isinstance(value, types.MethodDescriptorType):
        return method(name)
    modules = {'torch._C._nn': 'nn.functional', 'torch._C._fft': 'fft', 'torch._C._linalg': 'linalg'}
    module = modules.get(value.__module__, value.__module__ or '').removeprefix('torch').removeprefix('.')
    known = module if module in ('nn.functional', 'fft', 'linalg', 'special', 'nn.init') else ''
    prefix = f'{known.rpartition(".")[2]}_'
    short = name.removeprefix(prefix) if known else name
    return find(f'{known}.{short}' if known else name)


def function_of(op):
    """Returns this library's function for an operator."""
    if _is_of_tests(op.op) or isinstance(op.op, functools.partial):
        return rebuild(op.op)
    if op.name.startswith('__') or op.name.startswith('torch.'):
        return method(op.name) if op.name.startswith('__') else find(op.name.removeprefix('torch.'))
    return find(op.name)


def form_of(variant, name):
    """Returns this library's form of a method or of an in-place operation."""
    if _is_of_tests(variant) or isinstance(variant, functools.partial):
        return rebuild(variant)
    return method(getattr(variant, '__name__', name))


def forms(op):
    """Yields the names of the forms of an operator with PyTorch's function and a function that finds this library's."""
    yield 'function', op.op, lambda: function_of(op)
    if op.method_variant:
        yield 'method', op.method_variant, lambda: form_of(op.method_variant, op.name)
    if op.inplace_variant:
        yield 'inplace', op.inplace_variant, lambda: form_of(op.inplace_variant, f'{op.name}_')
    for alias in op.aliases:
        if alias.op:
            yield f'function {alias.name}', alias.op, lambda alias=alias: find(alias.name.removeprefix('torch.'))
        if alias.method_variant:
            yield f'method {alias.name}', alias.method_variant, lambda alias=alias: method(alias.name)
        if alias.inplace_variant:
            yield f'inplace {alias.name}', alias.inplace_variant, lambda alias=alias: method(f'{alias.name}_')


def _function_to_ours(value):
    """What stands for a function, or a layer without tensors, that an operator is given."""
    if isinstance(value, torch.nn.Module):
        kind = _get(f'nn.{type(value).__name__}')
        if kind is None or list(value.parameters()):
            raise Unmapped(f'nothing stands for {value!r}')
        return kind()
    return rebuild(value)


op_values.convert_function = _function_to_ours
