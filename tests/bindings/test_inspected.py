#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What inspect, help() and dir() tell of functions, classes and methods, beside the arguments of PyTorch's
(docs/data/pytorch-signatures.json, by signature_reference.py). What there is of them by module is printed, and may not
fall below the figures of signature-coverage.json.

After a change: `meson devenv -C build -w . python3 tests/bindings/test_inspected.py --update`.
"""

import ast
import inspect
import json
import pathlib
import pydoc
import re
import sys
import types

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
FLOORS = pathlib.Path(__file__).resolve().parent / 'signature-coverage.json'
sys.path.insert(0, str(TOP / 'tests' / 'style'))

import gtorch as torch  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402

KNOWN = json.loads((TOP / 'docs/data/pytorch-signatures.json').read_text('utf-8'))
NAMES = {'inf': float('inf'), 'torch': torch}
# Defaults by which the same is meant: a number for all dimensions, and what PyTorch has in C.
SAME_DEFAULTS = ({"'mean'", '1'}, {'False', 'None'}, {'()', 'None'}, {'[]', 'None'}, {'()', '[]'})
SAME = {'input', 'self', 'x'}  # the names of the first argument


def find(module, name):
    found = torch
    for part in [*module.split('.')[1:], *name.split('.')]:
        found = getattr(found, part, None)
    return found


def parsed(text):
    """The arguments of a text by their names, with the texts of their defaults."""
    text = re.sub(r'\bfrom\b', 'from_', text)
    node = ast.parse(f'def f({text}): pass').body[0].args
    places = [*node.posonlyargs, *node.args]
    found = dict(zip([a.arg for a in places], [None] * (len(places) - len(node.defaults)) + node.defaults))
    found.update(zip([a.arg for a in node.kwonlyargs], node.kw_defaults))
    return {name: None if value is None else ast.unparse(value) for name, value in found.items()}


def wanted(overloads):
    """The arguments of all overloads."""
    found = {}
    for text in overloads:
        for name, default in parsed(text).items():
            found.setdefault(name, set()).add(default)
    return found


def value_of(text):
    try:
        return eval(text, dict(NAMES))
    except Exception:
        return text


def is_equal(default, texts):
    if default is inspect.Parameter.empty:
        return None in texts
    for text in texts - {None}:
        value = value_of(text)
        plain = list(value) if isinstance(value, tuple) else value
        own = list(default) if isinstance(default, tuple) else default
        if type(own) in (int, float, bool) and type(plain) in (int, float, bool):
            if own == plain:
                return True
        elif type(own) is type(plain) and own == plain:
            return True
        if text in ('torch.strided', 'torch.contiguous_format') and default is None:  # there is no other
            return True
        if {repr(default), text} in SAME_DEFAULTS:
            return True
        if isinstance(plain, list) and not isinstance(own, list) and set(plain) == {own}:
            return True
        if isinstance(plain, list) and isinstance(own, list) and len(own) == 1 and set(plain) == set(own):
            return True
    return False


def compare(function, overloads):
    """Returns how many arguments are wanted, are there, have a default in PyTorch, and have the same here."""
    parameters = inspect.signature(function).parameters
    names = {SAME & {name} and 'input' or name: parameter for name, parameter in parameters.items()}
    counts = [0, 0, 0, 0]
    for name, defaults in wanted(overloads).items():
        counts[0] += 1
        parameter = names.get('input' if name in SAME else name)
        if parameter is None:
            continue
        counts[1] += 1
        if defaults != {None}:
            counts[2] += 1
            counts[3] += is_equal(parameter.default, defaults)
    return counts


def coverage(module):
    """Returns the names that are wanted and here, and what compare() counts, of all of them together."""
    names, found, counts = 0, 0, [0, 0, 0, 0]
    for name, overloads in KNOWN[module].items():
        names += 1
        function = find(module, name)
        if function is None:
            continue
        found += 1
        if callable(function) and overloads:
            try:
                counts = [a + b for a, b in zip(counts, compare(function, overloads))]
            except (TypeError, ValueError):
                counts[0] += sum(map(len, map(parsed, overloads[:1])))
    return {'names': [found, names], 'arguments': [counts[1], counts[0]], 'defaults': [counts[3], counts[2]]}


MODULES = [name for name in KNOWN if name != 'source']


@tap.case
def no_module_has_less_of_pytorch_than_before():
    floors, lower = json.loads(FLOORS.read_text('utf-8')), {}
    for module in MODULES:
        found = coverage(module)
        shown = ', '.join(f'{kind} {have} of {of}' for kind, (have, of) in found.items())
        print(f'# {module}: {shown}')
        for kind, (have, _of) in found.items():
            if have < floors[module][kind][0]:
                lower[module] = kind, have, floors[module][kind][0]
    assert not lower, lower


def public(module):
    for name in dir(module):
        if not name.startswith('_') and not isinstance(getattr(module, name), types.ModuleType):
            yield name, getattr(module, name)


def spaces():
    for name in ('', 'nn', 'nn.functional', 'nn.init', 'nn.utils', 'optim', 'optim.lr_scheduler', 'linalg', 'fft',
                 'special', 'cuda', 'autograd', 'amp'):
        yield f'torch.{name}'.rstrip('.'), find('torch', name) if name else torch


@tap.case
def every_function_has_a_signature_and_a_text():
    wrong, n = [], 0
    for space, module in spaces():
        for name, function in public(module):
            if not inspect.isroutine(function) or name.endswith(('_async', '_finish')):
                continue
            n += 1
            try:
                inspect.signature(function)
            except (TypeError, ValueError) as error:
                wrong.append((space, name, str(error)))
            if not getattr(function, '__name__', '') or not getattr(function, '__qualname__', ''):
                wrong.append((space, name, 'has no name'))
    wrong = [entry for entry in wrong if not entry[1].startswith('safetensors_')]
    assert n > 900 and not wrong, wrong


@tap.case
def operations_have_documentation():
    for module in ('torch', 'torch.linalg', 'torch.fft', 'torch.special'):
        for name in KNOWN[module]:
            function = find(module, name)
            if function is not None and inspect.isroutine(function) and len(KNOWN[module][name]) > 1:
                assert function.__doc__, (module, name)


@tap.case
def methods_in_c_have_signatures():
    n = 0
    for name in KNOWN['torch.Tensor']:
        method = getattr(torch.Tensor, name, None)
        if inspect.isroutine(method) and name not in ('detach_', 'copy_'):
            first = next(iter(inspect.signature(method).parameters), None)
            assert first is not None, name
            n += 1
    assert n > 400, n
    assert str(inspect.signature(torch.ones(2).add)) in ('(other, *, alpha=1.0)', '(other, alpha=1.0)')
    assert torch.Tensor.add.__qualname__ in ('Tensor.add', 'add')


@tap.case
def layers_and_optimizers_have_those_of_pytorch():
    adam = inspect.signature(torch.optim.Adam)
    assert str(inspect.signature(torch.nn.Linear)).startswith('(in_features, out_features, bias=True')
    assert list(adam.parameters)[:4] == ['params', 'lr', 'betas', 'eps'], adam
    assert adam.parameters['maximize'].kind is inspect.Parameter.KEYWORD_ONLY
    assert list(inspect.signature(torch.nn.Linear(2, 3).forward).parameters) == ['input']

    class Net(torch.nn.Linear):
        def __init__(self, width):
            super().__init__(width, width)

    assert str(inspect.signature(Net)) == '(width)'
    assert str(inspect.signature(torch.cuda.Event)).startswith('(enable_timing=False')


@tap.case
def arguments_by_name_only_are_marked():
    parameters = inspect.signature(torch.add).parameters
    assert list(parameters) == ['input', 'other', 'alpha', 'out'], parameters
    assert parameters['alpha'].kind is inspect.Parameter.KEYWORD_ONLY
    assert parameters['other'].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert str(inspect.signature(torch.zeros)).startswith('(*size, dtype=None, device=None')


@tap.case
def help_shows_the_arguments():
    for function, text in ((torch.softmax, 'softmax(input, dim'), (torch.Tensor.sum, 'sum(self, /, dim=')):
        shown = pydoc.plain(pydoc.render_doc(function))
        assert text in shown or text.replace(', /', '') in shown, shown
    shown = pydoc.plain(pydoc.render_doc(torch.nn.Linear))
    assert 'class Linear' in shown and 'Linear(in_features, out_features, bias=True' in shown, shown[:400]


@tap.case
def names_can_be_completed():
    for owner, names in (
        (torch, ('zeros', 'add', 'Tensor', 'nn', 'float32', 'no_grad', '__version__')),
        (torch.nn, ('Linear', 'functional', 'Module', 'init')),
        (torch.ones(2), ('add', 'shape', 'backward', 'dtype', 'requires_grad_')),
        (torch.nn.Linear(2, 3), ('weight', 'forward', 'in_features')),
    ):
        assert not set(names) - set(dir(owner)), set(names) - set(dir(owner))
    assert 'LinearClass' not in dir(torch)


if __name__ == '__main__':
    if '--update' in sys.argv:
        rows = ',\n'.join(f' {json.dumps(name)}: {json.dumps(coverage(name))}' for name in MODULES)
        FLOORS.write_text(f'{{\n{rows}\n}}\n', 'utf-8')
    else:
        tap.main()
