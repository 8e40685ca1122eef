# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tensors by name. PyGObject leaks the values of a table that is passed to C: here names and tensors are
passed in two lists."""

import re
from collections.abc import Mapping

from gi.overrides._gtorch_callbacks import with_progress
from gi.overrides._gtorch_convert import GTorch, RawTensor, convert_device
from gi.overrides._gtorch_mixin import mixin


def check_text(function, argument, text):
    """C would read up to the first null character, and confuse two names."""
    if '\0' in text:
        raise ValueError(f'{function}(): {text!r} in {argument} has a null character')


def lists(function, argument, table):
    """The names, and the tensors."""
    if not isinstance(table, Mapping):
        raise TypeError(f'{function}(): {argument} must be a dictionary of tensors, not {type(table).__name__}')
    names, tensors = list(table), list(table.values())
    for name, tensor in zip(names, tensors):
        if not isinstance(name, str):
            raise TypeError(f'{function}(): the names in {argument} must be texts, not {name!r}')
        check_text(function, argument, name)
        if not isinstance(tensor, RawTensor):
            kind = type(tensor).__name__
            raise TypeError(f'{function}(): {argument}[{name!r}] must be a tensor, not {kind}')
    return names, tensors


def texts(function, argument, table):
    """Returns alternating keys and values."""
    if table is None:
        return None
    found = [text for pair in table.items() for text in pair]
    for text in found:
        if not isinstance(text, str):
            raise TypeError(f'{function}(): {argument} must hold texts, not {text!r}')
        check_text(function, argument, text)
    return found


def pairs(found):
    """Converts the results of the C functions to a dictionary."""
    tensors, names = found
    return dict(zip(names, tensors))


def _public(error, surplus):
    """The error about arguments of a function with the lists of a table, as one of the function with the table."""
    text = str(error).replace('_lists', '').replace('GTorch.', '')
    return TypeError(re.sub(r'(?<=takes exactly )\d+|\d+(?= given)', lambda n: str(int(n[0]) - surplus), text))


def _save(name, raw):
    def save(tensors, metadata, *args):
        given = lists(name, 'tensors', tensors)
        try:
            return raw(*given, texts(name, 'metadata', metadata), *args)
        except TypeError as error:
            if '_lists' not in str(error):
                raise
            raise _public(error, 1) from None

    return save


def _load(raw):
    def load(*args):
        try:
            tensors, names, found = raw(*args)
        except TypeError as error:
            if '_lists' not in str(error):
                raise
            raise _public(error, 0) from None
        return dict(zip(names, tensors)), dict(zip(found[::2], found[1::2]))

    return load


# The position of the progress function among the arguments.
PROGRESS = {'load': 3, 'load_file': 4, 'save': 5, 'save_file': 5}


def _by_mixin(name, raw):
    """@raw, which the accelerator calls if there is a progress function."""
    if mixin is None:
        return raw
    position, own = PROGRESS[name], getattr(mixin, name.partition('_')[0])

    def call(*args):
        if len(args) <= position or args[position] is None:
            return raw(*args)
        given = args[: position + 1]
        if name == 'load':
            given = (given[0], False, *given[1:])
        if own is mixin.load:
            given = (*given[:2], convert_device(given[2]), *given[3:])
        return own(*given)

    return call


def install(export, _submodule, _ops):
    for name in ('load', 'load_bytes', 'load_file'):
        raw = getattr(GTorch, f'safetensors_{name}_lists')
        made = _load(with_progress(_by_mixin(name, raw), PROGRESS[name]) if name in PROGRESS else raw)
        made.__doc__ = getattr(GTorch, f'safetensors_{name}').__doc__
        export(f'safetensors_{name}', made)
    finish = _load(GTorch.safetensors_load_finish_lists)
    for name in ('load', 'load_file'):
        export(f'safetensors_{name}_finish', finish)
    for name in ('save', 'save_file'):
        for how in ('', '_async'):
            whole = f'safetensors_{name}{how}'
            raw = getattr(GTorch, f'safetensors_{name}_lists{how}')
            made = _save(whole, raw if how else with_progress(_by_mixin(name, raw), PROGRESS[name]))
            made.__doc__ = getattr(GTorch, whole).__doc__
            made.__wrapped__ = getattr(GTorch, whole)  # it takes the same arguments
            export(whole, made)
