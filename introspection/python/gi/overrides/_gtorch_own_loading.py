# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Classes of a program that say themselves what of them is saved and loaded: by PyTorch's _save_to_state_dict() and
_load_from_state_dict(), and hooks of state_dict() and load_state_dict(). Where a module has such a one inside, its
states go from module to module, as in PyTorch; elsewhere C does it at once."""

import collections
import itertools
import threading

from gi.repository import GLib

from gi.overrides import _gtorch_state as state
from gi.overrides._gtorch_convert import GTorch
from gi.overrides._gtorch_errors import restoring
from gi.overrides._gtorch_hooks import check
from gi.overrides._gtorch_members import IncompatibleKeys, children_of
from gi.overrides._gtorch_properties import OWN

RawModule = GTorch.Module
NAMES = {'save': '_save_to_state_dict', 'load': '_load_from_state_dict'}
EXTRA = '_extra_state'
# Whose second version has this counter.
NORMS = {f'{kind}Norm{n}d' for kind in ('Batch', 'Instance', 'LazyBatch', 'LazyInstance') for n in (1, 2, 3)}
NORMS.add('SyncBatchNorm')
COUNTER = 'num_batches_tracked'
HOOKS = '_gt_state_hooks'  # of a module: kind and function by number
_numbers = itertools.count(1)


class _Saved(threading.local):
    table = None  # the whole state, while a state_dict() goes from module to module


_saved = _Saved()


def _walk(module, prefix=''):
    yield module, prefix
    for name, child in children_of(module):
        yield from _walk(child, f'{prefix}{name}.')


def has_own(module, name):
    """Tells whether a class of the program's defines what the module does under the name."""
    for cls in type(module).__mro__:
        if name in vars(cls):
            return cls.__module__ not in OWN
    return False


def is_inside(module, name):
    """Tells it of the module and of those inside it."""
    return any(has_own(one, name) for one, _prefix in _walk(module))


def is_own(module, kind):
    """Tells whether a class of the program's, of the module or of one inside it, has the function, or one has hooks."""
    name = NAMES[kind]
    if kind == 'save' and any(has_own(child, 'state_dict') for child, prefix in _walk(module) if prefix):
        return True
    return any(getattr(type(one), name) is not getattr(OwnLoading, name) or _hooks(one, f'pre-{kind}', f'post-{kind}')
               for one, _prefix in _walk(module))


# --- versions ---


def _is_norm(module):
    return any(cls.__name__ in NORMS and cls.__module__ in OWN for cls in type(module).__mro__)


def version_of(module):
    """The version of what a class saves: PyTorch's for the library's classes, else the attribute _version."""
    found = getattr(type(module), '_version', None)
    return found if found is not None else 2 if _is_norm(module) else 1


def _metadata_of(module):
    return {'version': version_of(module)}


def described(module, table, prefix):
    """The table as state_dict() gives it: its _metadata has the versions of the modules by their paths."""
    found = collections.OrderedDict(table)
    found._metadata = {name.removesuffix('.'): _metadata_of(one) for one, name in _walk(module, prefix)}
    return found


def _given_metadata(table, prefix):
    return (getattr(table, '_metadata', None) or {}).get(prefix[:-1], {})


def completed(module, table):
    """The table with the counters of norms, which their first version did not have."""
    added = {}
    for one, prefix in _walk(module):
        key = f'{prefix}{COUNTER}'
        if key not in table and _is_norm(one) and (_given_metadata(table, prefix).get('version') or 1) < 2:
            counter = _own(one).get(COUNTER)
            if counter is not None:
                added[key] = counter
    return {**table, **added} if added else table


# --- hooks ---


def _hooks(module, *kinds):
    """The hooks of these kinds, in the order in which they were registered."""
    table = module.__dict__.get(HOOKS)
    return [hook for kind, hook in list(table.values()) if kind in kinds] if table else []


class StateHook:
    """A hook of state_dict() or load_state_dict(), for its removal."""

    def __init__(self, module, kind, hook):
        self.module, self.id = module, next(_numbers)
        module.__dict__.setdefault(HOOKS, {})[self.id] = kind, hook

    def remove(self):
        """Removes the hook; the second call has no effect."""
        module, self.module = self.module, None
        if module is not None:
            module.__dict__[HOOKS].pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        self.remove()


def _register(name, module, kind, hook):
    check(name, hook)
    return StateHook(module, kind, hook)


def _refuse_result(name, hook, result):
    if result is not None:
        raise RuntimeError(f'{name}: {getattr(hook, "__qualname__", hook)!s} gave {type(result).__name__}; it changes '
                           'what it gets, and gives None')


# --- saving and loading ---


def _save(module, destination, prefix, keep_vars):
    own = _metadata_of(module)
    if hasattr(destination, '_metadata'):  # a plain dictionary has none
        destination._metadata[prefix[:-1]] = own
    for hook in _hooks(module, 'pre-save'):
        hook(module, prefix, keep_vars)
    module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in children_of(module):
        inner = f'{prefix}{name}.'
        if has_own(child, 'state_dict'):
            child.state_dict(destination=destination, prefix=inner, keep_vars=keep_vars)
        else:
            _save(child, destination, inner, keep_vars)
    for hook in _hooks(module, 'post-save'):
        result = hook(module, destination, prefix, own)
        _refuse_result('register_state_dict_post_hook', hook, result)


def save(module, table, prefix, keep_vars, destination=None):
    """Lets each module say what of it belongs to the state; @table: what C has found. Adds it to @destination."""
    before, _saved.table = _saved.table, table
    if destination is None:
        destination = collections.OrderedDict()
        destination._metadata = {}
    try:
        _save(module, destination, prefix, keep_vars)
    finally:
        _saved.table = before
    return destination


def _fail(module, code, text):
    text = f'{type(module).__name__}: load_state_dict: {text}'
    raise GLib.Error.new_literal(GTorch.error_quark(), text, code)


def _load(module, table, prefix, strict, missing, unexpected, wrong):
    given = _given_metadata(table, prefix)
    for hook in _hooks(module, 'pre-load'):
        hook(module, table, prefix, given, strict, missing, unexpected, wrong)
    module._load_from_state_dict(table, prefix, given, True, missing, unexpected, wrong)
    for name, child in children_of(module):
        _load(child, table, f'{prefix}{name}.', strict, missing, unexpected, wrong)
    for hook in _hooks(module, 'post-load'):
        result = hook(module, IncompatibleKeys(missing, unexpected))
        _refuse_result('register_load_state_dict_post_hook', hook, result)


def load(module, table, strict):
    """Lets each module take what is its own; returns the names that are missing or unexpected. On failure the module
    has what it had before."""
    metadata = getattr(table, '_metadata', None)
    table = collections.OrderedDict(completed(module, table))
    table._metadata = metadata
    former = [tensor.clone() for tensor in RawModule.state_lists(module)[0]]
    names = RawModule.state_lists(module)[1]
    missing, unexpected, wrong = [], [], []
    try:
        _load(module, table, '', strict, missing, unexpected, wrong)
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
    """The part of Module that classes of a program override, and hooks change."""

    def register_state_dict_pre_hook(self, hook):
        """Calls hook(module, prefix, keep_vars) before state_dict() comes to the module."""
        return _register('register_state_dict_pre_hook', self, 'pre-save', hook)

    def register_state_dict_post_hook(self, hook):
        """Calls hook(module, state_dict, prefix, local_metadata) after state_dict() has put the module, and those
        inside it, into the dictionary, which the hook may change."""
        return _register('register_state_dict_post_hook', self, 'post-save', hook)

    def register_load_state_dict_pre_hook(self, hook):
        """Calls hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        before load_state_dict() comes to the module; it may change a copy of the dictionary."""
        return _register('register_load_state_dict_pre_hook', self, 'pre-load', hook)

    def register_load_state_dict_post_hook(self, hook):
        """Calls hook(module, incompatible_keys) after the module, and those inside it, were loaded; it may change the
        lists missing_keys and unexpected_keys."""
        return _register('register_load_state_dict_post_hook', self, 'post-load', hook)

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
