# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Classes of a program that say themselves what of them is saved and loaded: by PyTorch's _save_to_state_dict() and
_load_from_state_dict(). Where a module has such a one inside, its states go from module to module, as in PyTorch;
elsewhere C does it at once."""

import threading

from gi.repository import GLib

from gi.overrides import _gtorch_state as state
from gi.overrides._gtorch_convert import GTorch
from gi.overrides._gtorch_errors import restoring
from gi.overrides._gtorch_members import IncompatibleKeys, children_of

RawModule = GTorch.Module
NAMES = {'save': '_save_to_state_dict', 'load': '_load_from_state_dict'}
EXTRA = '_extra_state'


class _Saved(threading.local):
    table = None  # the whole state, while a state_dict() goes from module to module


_saved = _Saved()


def _walk(module, prefix=''):
    yield module, prefix
    for name, child in children_of(module):
        yield from _walk(child, f'{prefix}{name}.')


def is_own(module, kind):
    """Tells whether a class of the program's, of the module or of one inside it, has the function."""
    name = NAMES[kind]
    return any(getattr(type(one), name) is not getattr(OwnLoading, name) for one, _prefix in _walk(module))


def save(module, table, prefix, keep_vars):
    """Lets each module say what of it belongs to the state; @table: what C has found."""
    before, _saved.table = _saved.table, table
    destination = {}
    try:
        for one, path in _walk(module, prefix):
            one._save_to_state_dict(destination, path, keep_vars)
    finally:
        _saved.table = before
    return destination


def _fail(module, code, text):
    text = f'{type(module).__name__}: load_state_dict: {text}'
    raise GLib.Error.new_literal(GTorch.error_quark(), text, code)


def load(module, table, strict):
    """Lets each module take what is its own; returns the names that are missing or unexpected. On failure the module
    has what it had before."""
    table, former = dict(table), [tensor.clone() for tensor in RawModule.state_lists(module)[0]]
    names = RawModule.state_lists(module)[1]
    missing, unexpected, wrong = [], [], []
    try:
        for one, path in _walk(module):
            one._load_from_state_dict(table, path, {}, True, missing, unexpected, wrong)
        if wrong:
            _fail(module, GTorch.Error.SHAPE, '; '.join(wrong))
        if strict and (missing or unexpected):
            parts = [f'{what}: {", ".join(some)}' for what, some in (('missing', missing), ('unexpected', unexpected))
                     if some]
            _fail(module, GTorch.Error.NOT_FOUND, '; '.join(parts))
    except BaseException:
        restoring(RawModule.load_state_lists, module, names, former, False)
        raise
    return IncompatibleKeys(missing, unexpected)


def _own(module):
    """The state of the module itself, by names."""
    return {name: tensor for name, tensor in state.pairs(RawModule.state_lists(module)).items() if '.' not in name}


class OwnLoading:
    """The part of Module that classes of a program override."""

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        """Puts the parameters and buffers of this module, not of those inside it, into @destination."""
        table = _saved.table
        if table is None:
            own = dict(self.named_parameters(recurse=False, remove_duplicate=False)) if keep_vars else {}
            table = {f'{prefix}{name}': own.get(name, tensor) for name, tensor in _own(self).items()}
        for key, tensor in table.items():
            if key.startswith(prefix) and '.' not in key[len(prefix):]:
                destination[key] = tensor

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                              error_msgs):
        """Copies what belongs to this module, not to those inside it, from @state_dict; adds to the three lists."""
        own, inside = _own(self), {name for name, _child in children_of(self)}
        for name, tensor in own.items():
            key = f'{prefix}{name}'
            if key not in state_dict:
                missing_keys.extend([key] if strict else [])
            elif name == EXTRA:
                self.set_extra_state(state_dict[key])
            elif state_dict[key].shape != tensor.shape:
                shapes = f'{list(tensor.shape)} in the module and {list(state_dict[key].shape)} in the table'
                error_msgs.append(f'{key} has shape {shapes}')
            else:
                guard = GTorch.no_grad()
                try:
                    tensor.copy_(state_dict[key])
                finally:
                    guard.end()
        if strict:
            rests = [key[len(prefix):].split('.') for key in state_dict if key.startswith(prefix)]
            unexpected_keys.extend(
                f'{prefix}{".".join(rest)}' for rest in rests
                if (rest[0] not in inside if len(rest) > 1 else rest[0] not in own)
            )
