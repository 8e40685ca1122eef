# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Samples of C as Python's values, and the other way: tensors, numbers, texts, bytes, None, tuples and dicts."""

from collections.abc import Mapping, Sequence

from gi.repository import GLib, GObject, GTorch

from gi.overrides._gtorch_convert import RawTensor

Raw, Kind = GTorch.Sample, GTorch.SampleKind


class _Held(GObject.Object):
    """A value of another kind, in a sample."""

    __module__ = 'gtorch.train'  # PyGObject makes no types of classes of overrides

    def __init__(self, value):
        super().__init__()
        self.value = value


def to_sample(value):
    """The sample of a structure. Lists become tuples."""
    if isinstance(value, Raw):
        return value
    if isinstance(value, RawTensor):
        return Raw.new_tensor(value)
    if value is None:
        return Raw.new_none()
    if isinstance(value, bool):
        return Raw.new_bool(value)
    if isinstance(value, int):
        return Raw.new_int(value)
    if isinstance(value, float):
        return Raw.new_double(value)
    if isinstance(value, str):
        return Raw.new_string(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return Raw.new_bytes(GLib.Bytes.new(bytes(value)))
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return Raw.new_dict(list(value), [to_sample(one) for one in value.values()])
    if isinstance(value, Sequence):
        return Raw.new_tuple([to_sample(one) for one in value])
    if type(value).__module__ == 'numpy':
        return Raw.new_tensor(GTorch.as_tensor(value))
    held = GObject.Value(_Held, _Held(value))
    return Raw.new_value(held)


def from_sample(sample):
    """The structure of a sample: tensors, tuples, dicts and so on."""
    kind = sample.get_kind()
    if kind == Kind.TENSOR:
        return sample.get_tensor()
    if kind == Kind.TUPLE:
        return tuple(from_sample(sample.get_child(i)) for i in range(sample.get_n_children()))
    if kind == Kind.DICT:
        return {key: from_sample(sample.lookup(key)) for key in sample.get_keys()}
    if kind == Kind.BYTES:
        return sample.get_bytes().get_data()
    if kind == Kind.VALUE:
        value = sample.get_value()
        return value.value if isinstance(value, _Held) else value
    plain = {Kind.INT: 'get_int', Kind.DOUBLE: 'get_double', Kind.BOOL: 'get_bool', Kind.STRING: 'get_string'}
    return getattr(sample, plain[kind])() if kind in plain else None
