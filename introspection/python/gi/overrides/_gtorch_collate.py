# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Batches of samples by their structure, as PyTorch makes them: GTorch.utils.data.default_collate and its like."""

import collections.abc as kinds
import copy
import re
import sys

from gi.repository import GTorch

from gi.overrides import _gtorch_worker_info as info
from gi.overrides._gtorch_convert import RawTensor

TEXTS = re.compile('[SaUO]')  # kinds of NumPy's arrays that are no numbers
default_collate_err_msg_format = (
    'default_collate: a batch is of tensors, NumPy arrays, numbers, texts, bytes, dicts, lists or tuples of these, not '
    'of {}'
)


def rebuilt(value, change):
    """A structure like @value, a Mapping, a tuple or a Sequence: change (key or position, element) gives the elements.
    Tuples become lists, unless they have names."""
    if isinstance(value, kinds.Mapping):
        try:
            if isinstance(value, kinds.MutableMapping):  # it may have more than its elements
                made = copy.copy(value)
                made.update({key: change(key, value[key]) for key in value})
                return made
            return type(value)({key: change(key, value[key]) for key in value})
        except TypeError:
            return {key: change(key, value[key]) for key in value}
    found = [change(i, one) for i, one in enumerate(value)]
    if isinstance(value, tuple):
        return type(value)(*found) if hasattr(value, '_fields') else found
    try:
        if isinstance(value, kinds.MutableSequence):
            made = copy.copy(value)
            for i, one in enumerate(found):
                made[i] = one
            return made
        return type(value)(found)
    except TypeError:
        return found


def is_structure(value):
    return isinstance(value, (kinds.Mapping, kinds.Sequence)) and not isinstance(value, (str, bytes))


def default_convert(data):
    """Makes tensors of the NumPy arrays and numbers in a structure, and leaves the rest as it is."""
    kind = type(data)
    if isinstance(data, RawTensor):
        return data
    if kind.__module__ == 'numpy' and kind.__name__ not in ('str_', 'string_', 'bytes_'):
        is_text = kind.__name__ == 'ndarray' and TEXTS.search(data.dtype.str)
        return data if is_text else GTorch.as_tensor(data)
    if is_structure(data):
        return rebuilt(data, lambda _key, one: default_convert(one))
    return data


def _found(kind, elem, collate_fn_map):
    """The function for an element, of the map."""
    if kind in collate_fn_map:
        return collate_fn_map[kind]
    return next((function for one, function in collate_fn_map.items() if isinstance(elem, one)), None)


def collate(batch, *, collate_fn_map=None):
    """Makes one structure of a list of samples that have the same. @collate_fn_map has the functions for kinds of
    elements, each called with a list of such and, by name, the map."""
    elem = batch[0]
    if collate_fn_map is not None:
        function = _found(type(elem), elem, collate_fn_map)
        if function is not None:
            return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(elem, kinds.Mapping):
        return rebuilt(elem, lambda key, _one: collate([one[key] for one in batch], collate_fn_map=collate_fn_map))
    if not isinstance(elem, kinds.Sequence):
        raise TypeError(default_collate_err_msg_format.format(type(elem).__name__))
    lengths = {len(one) for one in batch}
    if len(lengths) > 1 and not hasattr(elem, '_fields'):
        raise RuntimeError(f'default_collate: the samples have {sorted(lengths)} elements, not the same number')
    columns = list(zip(*batch))
    return rebuilt(elem, lambda i, _one: collate(columns[i], collate_fn_map=collate_fn_map))


def collate_tensor_fn(batch, *, collate_fn_map=None):
    """Stacks tensors; in a worker process into memory that the program's process shares."""
    out = info.shared_like(batch[0], len(batch)) if info.shared_like is not None else None
    if out is not None:
        try:
            return GTorch.stack(batch, 0, out=out)
        except RuntimeError:  # of several dtypes, or with gradients
            pass
    return GTorch.stack(batch, 0)


def collate_numpy_array_fn(batch, *, collate_fn_map=None):
    """Stacks NumPy arrays as a tensor."""
    if TEXTS.search(batch[0].dtype.str):
        raise TypeError(default_collate_err_msg_format.format(f'NumPy arrays of {batch[0].dtype}'))
    return collate([GTorch.as_tensor(one) for one in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch, *, collate_fn_map=None):
    """A vector of NumPy numbers, in their dtype."""
    import numpy

    return GTorch.as_tensor(numpy.stack(batch))


def collate_float_fn(batch, *, collate_fn_map=None):
    """A vector of floats, float64."""
    return GTorch.tensor(batch, dtype=GTorch.float64)


def collate_int_fn(batch, *, collate_fn_map=None):
    """A vector of integers, int64, or of bools."""
    return GTorch.tensor(batch)


def collate_str_fn(batch, *, collate_fn_map=None):
    """Texts and bytes as they are."""
    return batch


class _Kinds(dict):
    """The functions by kinds of elements. Those for NumPy come once it is imported, and before those for Python's
    numbers, as some of its numbers are floats, too."""

    def complete(self):
        numpy = sys.modules.get('numpy')
        if numpy is None or numpy.ndarray in self:
            return
        others = {kind: self.pop(kind) for kind in [*self][1:]}
        self[numpy.ndarray] = collate_numpy_array_fn
        self[(numpy.bool_, numpy.number, numpy.object_)] = collate_numpy_scalar_fn
        self.update(others)


default_collate_fn_map = _Kinds({
    GTorch.Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
})
default_collate_fn_map.complete()


def default_collate(batch):
    """Makes a batch of a list of samples that have the same structure: tensors and NumPy arrays are stacked, numbers
    become vectors (float64, int64, bool), texts and bytes stay; dicts, lists and named tuples keep their kind, and
    other tuples become lists."""
    default_collate_fn_map.complete()
    return collate(batch, collate_fn_map=default_collate_fn_map)


def pinned(data):
    """The structure with its tensors in pinned memory. A class of a program's has a method pin_memory()."""
    if hasattr(data, 'pin_memory'):  # tensors, too
        return data.pin_memory()
    if not is_structure(data):
        return data
    if type(data) is tuple:
        return tuple(pinned(one) for one in data)
    return rebuilt(data, lambda _key, one: pinned(one))


def moved(data, device):
    """The structure with its tensors on the device, for batches of data sets in C."""
    if isinstance(data, RawTensor) or (hasattr(data, 'to') and not is_structure(data)):
        return data.to(device, non_blocking=True)
    return rebuilt(data, lambda _key, one: moved(one, device)) if is_structure(data) else data


for _one in (default_collate, default_convert):
    _one.__module__ = 'gtorch.utils.data'
