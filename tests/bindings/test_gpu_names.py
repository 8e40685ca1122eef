#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What PyTorch has for GPUs is here, with the arguments and defaults of PyTorch (gpu-signatures.json)."""

import importlib
import inspect
import json
import pathlib

from gpus import tap

KNOWN = json.loads((pathlib.Path(__file__).parent / 'gpu-signatures.json').read_text('utf-8'))
# Classes whose arguments the library binds by name and position itself.
BOUND = {'GradScaler'}
SAME = {'torch.float16': 'float16'}


def parameters(function):
    """The names of arguments with their defaults, but for `self`."""
    found = inspect.signature(function).parameters.values()
    return [one for one in found if one.name not in ('self', 'cls')]


def differs(wanted, function):
    """What is missing of the arguments that a text lists; more of them, behind, do no harm."""
    have = {one.name: (i, one) for i, one in enumerate(parameters(function))}
    positions = [one.name for one in parameters(function)]
    by_position = wanted.endswith('/')
    place = 0
    for text in filter(None, wanted.removesuffix('/').rstrip(', ').split(', ')):
        if text.startswith('*'):
            place = None
            continue
        name, _is, default = text.partition('=')
        if by_position:
            if place >= len(positions):
                return f'{name} is missing'
            place += 1
            continue
        if name not in have:
            return f'{name} is missing'
        at, one = have[name]
        if place is not None and at != place:
            return f'{name} is number {at}, not {place}'
        shown = '' if one.default is one.empty else repr(one.default)
        if SAME.get(shown, shown) != default:
            return f'{name} is {shown!r}, not {default!r}'
        place = None if place is None else place + 1
    return None


def look(module, name, wanted):
    """The difference of one function, class or method."""
    value = module
    for part in name.split('.'):
        value = getattr(value, part, None)
        if value is None:
            return 'is missing'
    if wanted is None or name in BOUND:
        return None
    if inspect.isclass(value) and '__signature__' not in vars(value) and '__signature__' not in vars(type(value)):
        value = value.__init__ if '__init__' in vars(value) else value.__new__ if '__new__' in vars(value) else value
    return differs(wanted, value)


def hold(module_name):
    """Compares a module with PyTorch's."""
    module = importlib.import_module(f'g{module_name}')
    found = {name: look(module, name, wanted) for name, wanted in KNOWN[module_name].items()}
    wrong = [f'{name}: {what}' for name, what in found.items() if what]
    assert not wrong, '\n'.join(wrong)


for _name in KNOWN:
    tap.add(f'{_name.replace(".", "_")}_has_the_names_of_pytorch', hold, _name)


if __name__ == '__main__':
    tap.main()
