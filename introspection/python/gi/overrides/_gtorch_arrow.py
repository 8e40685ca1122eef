# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Capsules of the Arrow C data and stream interfaces."""

import ctypes

from gi.overrides._gtorch_convert import GTorch, RawTensor
from gi.overrides._gtorch_dlpack import Given, capsule_is_valid, capsule_new, capsule_pointer

SCHEMA, ARRAY, STREAM = b'arrow_schema', b'arrow_array', b'arrow_array_stream'
SIZES = {SCHEMA: 72, ARRAY: 80, STREAM: 40}  # of the structures, with pointers of 64 bits
_structures = {}  # by address; what capsules point to lives as long as they


def _release(name, address):
    GTorch.arrow_release(*(address if name == one else 0 for one in (SCHEMA, ARRAY, STREAM)))


class _Structures(Given):
    """Capsules that were passed to others, which release what they have taken."""

    def drop(self, capsule):
        for name in SIZES:
            if capsule_is_valid(capsule, name):
                address = capsule_pointer(capsule, name)
                _release(name, address)  # unless it was consumed
                _structures.pop(address, None)


_given = _Structures()


def _structure(name):
    memory = ctypes.create_string_buffer(SIZES[name])
    address = ctypes.addressof(memory)
    _structures[address] = memory
    return address


def _capsules(export, *names):
    addresses = [_structure(name) for name in names]
    try:
        export(*addresses)
    except BaseException:
        for address in addresses:
            _structures.pop(address, None)
        raise
    return tuple(_given.add(capsule_new(address, name, None)) for address, name in zip(addresses, names))


class ArrowColumns:
    """Tensors as columns of Arrow: for whatever calls __arrow_c_array__() or __arrow_c_stream__(), as pyarrow, pandas,
    polars and DuckDB do."""

    def __init__(self, columns):
        self._columns = columns  # a tensor, or a table

    def _export(self, *to):
        is_tensor = isinstance(self._columns, RawTensor)
        (GTorch.arrow_export_tensor if is_tensor else GTorch.arrow_export_table)(self._columns, *to)

    def __arrow_c_array__(self, requested_schema=None):
        return _capsules(self._export, SCHEMA, ARRAY)

    def __arrow_c_schema__(self):
        schema, _array = self.__arrow_c_array__()
        return schema

    def __arrow_c_stream__(self, requested_schema=None):
        if isinstance(self._columns, RawTensor):
            raise TypeError('to_arrow(): one tensor is an array, and no table: give a dictionary of tensors')
        return _capsules(lambda to: GTorch.arrow_export_stream(self._columns, to), STREAM)[0]


def _batches(capsule):
    reader = GTorch.ArrowReader.new(capsule_pointer(capsule, STREAM))
    while (table := reader.read_table(None)) is not None:
        yield table


def read(data):
    """A tensor, or tables."""
    if hasattr(data, '__arrow_c_array__'):
        schema, array = data.__arrow_c_array__()
        places = capsule_pointer(schema, SCHEMA), capsule_pointer(array, ARRAY)
        if ctypes.string_at(ctypes.c_void_p.from_address(places[0]).value) == b'+s':
            return [GTorch.arrow_import_table(*places)]
        return GTorch.arrow_import_tensor(*places)
    if not hasattr(data, '__arrow_c_stream__'):
        raise TypeError(f'from_arrow(): {type(data).__name__} has neither __arrow_c_array__ nor __arrow_c_stream__')
    return _batches(data.__arrow_c_stream__())
