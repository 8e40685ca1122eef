# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""GTorch.io: arrays of NumPy's files, columns of text, and columns of Arrow.

A file is a path, a Gio.File, a stream that is open for reading bytes, or bytes."""

import io
import os
from collections.abc import Mapping

from gi.overrides._gtorch_convert import GTorch, RawTensor, convert_bool, convert_dtype, convert_whole
from gi.repository import Gio, GLib


def _namespace():
    """The namespace with what the overrides add."""
    from gi.repository import GTorch as namespace

    return namespace


def _limit(max_bytes):
    return 0 if max_bytes is None else convert_whole(max_bytes)


def _open(name, file):
    """(a Gio.File, None) or (None, GLib.Bytes)."""
    if isinstance(file, (str, os.PathLike)):
        with open(file, 'rb'):  # Python's own exception if there is none
            return Gio.File.new_for_path(os.fspath(file)), None
    if isinstance(file, Gio.File):
        return file, None
    if isinstance(file, (bytes, bytearray, memoryview)):
        return None, GLib.Bytes.new(bytes(file))
    if hasattr(file, 'read') and not isinstance(file, io.TextIOBase):
        return None, GLib.Bytes.new(file.read())
    raise TypeError(f'{name}(): file must be a path, a Gio.File, a stream of bytes or bytes, not {type(file).__name__}')


def _writable(tensor):
    return tensor.clone() if tensor.is_read_only() else tensor


def _dict(table):
    return {table.get_name(i): table.get_tensor(i) for i in range(table.get_length())}


def _table(name, tensors):
    if isinstance(tensors, GTorch.Table):
        return tensors
    if not isinstance(tensors, Mapping):
        raise TypeError(f'{name}(): tensors must be a dictionary of tensors by name, not {type(tensors).__name__}')
    table = GTorch.Table.new()
    for key, value in tensors.items():
        if not isinstance(key, str) or not isinstance(value, RawTensor):
            raise TypeError(f'{name}(): {key!r} is a {type(value).__name__}: names are texts, and values tensors')
        table.add(key, value)
    return table


def _save(name, file, write, write_file):
    """Writes to a path, a Gio.File or a stream."""
    if isinstance(file, (str, os.PathLike)):
        return write_file(Gio.File.new_for_path(os.fspath(file)))
    if isinstance(file, Gio.File):
        return write_file(file)
    if not hasattr(file, 'write') or isinstance(file, io.TextIOBase):
        raise TypeError(f'{name}(): file must be a path, a Gio.File or a stream of bytes, not {type(file).__name__}')
    stream = Gio.MemoryOutputStream.new_resizable()
    write(stream)
    stream.close(None)
    file.write(stream.steal_as_bytes().get_data() or b'')
    return None


# --- NumPy's files ---


def load_npy(file, *, mmap=False, max_bytes=None):
    """Reads the array of an .npy file. With @mmap, a file is read where the tensor is used; writing to the tensor does
    not change the file."""
    mmap = convert_bool(mmap)
    found, content = _open('load_npy', file)
    if found is None:
        return _writable(GTorch.npy_load_bytes(content))
    return GTorch.npy_load_file(found, mmap, _limit(max_bytes), None)


def save_npy(tensor, file):
    """Writes a tensor to an .npy file."""
    if not isinstance(tensor, RawTensor):
        raise TypeError(f'save_npy(): tensor must be a tensor, not {type(tensor).__name__}')
    _save('save_npy', file, lambda stream: GTorch.npy_save(tensor, stream, None),
          lambda to: GTorch.npy_save_file(tensor, to, None))


def load_npz(file, *, mmap=False, max_bytes=None):
    """Reads the arrays of an .npz file: a dictionary of tensors by name."""
    mmap = convert_bool(mmap)
    found, content = _open('load_npz', file)
    if found is None:
        return {name: _writable(one) for name, one in _dict(GTorch.npz_load_bytes(content, _limit(max_bytes))).items()}
    return _dict(GTorch.npz_load_file(found, mmap, _limit(max_bytes), None))


def save_npz(tensors, file, *, compress=False):
    """Writes a dictionary of tensors to an .npz file."""
    table, compress = _table('save_npz', tensors), convert_bool(compress)
    _save('save_npz', file, lambda stream: GTorch.npz_save(table, compress, stream, None),
          lambda to: GTorch.npz_save_file(table, compress, to, None))


# --- text ---


def _reader(name, file, delimiter, quote, header, skip_rows, missing, dtype, columns, max_bytes):
    header = convert_bool(header)
    found, content = _open(name, file)
    if found is None:
        reader = GTorch.CSVReader.new(Gio.MemoryInputStream.new_from_bytes(content))
    else:
        reader = GTorch.CSVReader.new_for_file(found, None)
    # of two that are exchanged, the second is set first
    reader.set_quote('')
    reader.set_delimiter(delimiter)
    reader.set_quote('' if quote is None else quote)
    reader.set_has_header(header)
    reader.set_skip_rows(convert_whole(skip_rows))
    if missing is not None:
        reader.set_missing(float(missing))
    if isinstance(dtype, Mapping):
        for column, one in dtype.items():
            reader.set_column_dtype(str(column), convert_dtype(one))
    elif dtype is not None:
        reader.set_dtype(convert_dtype(dtype))
    if columns is not None:
        reader.set_columns([str(column) for column in columns])
    if max_bytes is not None:
        reader.set_max_bytes(convert_whole(max_bytes))
    return reader


def load_csv(file, *, delimiter=',', quote='"', header=True, skip_rows=0, missing=None, dtype=None, columns=None,
             as_tensor=False, max_bytes=None):
    """Reads numbers from text with delimiters: a dictionary of columns by name or, @as_tensor, one tensor of rows by
    columns.

    Without a @header the names are '0', '1' and so on. @missing is a number for fields that are empty, which are an
    error without one. @dtype is that of all columns, or a dictionary of dtypes by name; others are float64. @columns
    names those that are read."""
    as_tensor = convert_bool(as_tensor)
    reader = _reader('load_csv', file, delimiter, quote, header, skip_rows, missing, dtype, columns, max_bytes)
    return reader.read_tensor(0, None) if as_tensor else _dict(reader.read_table(0, None))


def iter_csv(file, rows, *, delimiter=',', quote='"', header=True, skip_rows=0, missing=None, dtype=None, columns=None,
             as_tensor=False, max_bytes=None):
    """Does the same as load_csv() in blocks of @rows rows, for files that are larger than the memory."""
    rows, as_tensor = convert_whole(rows), convert_bool(as_tensor)
    if rows < 1:
        raise ValueError(f'iter_csv(): rows is {rows}, and must be at least 1')
    reader = _reader('iter_csv', file, delimiter, quote, header, skip_rows, missing, dtype, columns, max_bytes)
    return _blocks(reader, rows, as_tensor)


def _blocks(reader, rows, as_tensor):
    while True:
        block = reader.read_tensor(rows, None) if as_tensor else reader.read_table(rows, None)
        if block is None:
            return
        yield block if as_tensor else _dict(block)


# --- Arrow ---

def to_arrow(tensors):
    """Gives a tensor or a dictionary of tensors to libraries of Arrow's: `pyarrow.table(io.to_arrow(tensors))`. The
    memory of contiguous tensors on the CPU is shared; those of several dimensions are lists of a fixed size."""
    from gi.overrides._gtorch_arrow import ArrowColumns

    return ArrowColumns(tensors if isinstance(tensors, RawTensor) else _table('to_arrow', tensors))


def from_arrow(data):
    """Makes tensors of what a library of Arrow's has: a dictionary of columns of a table or a batch, or the tensor of
    one column. The memory is shared and read-only; that of a table in several pieces is copied into one."""
    from gi.overrides._gtorch_arrow import read

    found = read(data)
    if isinstance(found, RawTensor):
        return found
    parts = [_dict(table) for table in found]
    if not parts:
        return {}
    found = parts[0] if len(parts) == 1 else {name: _namespace().cat([one[name] for one in parts]) for name in parts[0]}
    return found[''] if list(found) == [''] else found


def _pyarrow(name):
    try:
        import importlib

        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f'files of this kind are read by pyarrow, which is not there: {error}') from error


def load_parquet(file, *, columns=None):
    """Reads columns of a Parquet file, by pyarrow."""
    found, content = _open('load_parquet', file)
    given = io.BytesIO(content.get_data() or b'') if found is None else found.get_path()
    return from_arrow(_pyarrow('pyarrow.parquet').read_table(given, columns=columns))


def load_ipc(file, *, columns=None):
    """Reads columns of a file of Arrow's IPC form (Feather 2), by pyarrow."""
    found, content = _open('load_ipc', file)
    given = io.BytesIO(content.get_data() or b'') if found is None else found.get_path()
    return from_arrow(_pyarrow('pyarrow.feather').read_table(given, columns=columns))


# --- tables ---


class TableMethods:
    """What makes a Table a mapping."""

    def __getitem__(self, name):
        if not isinstance(name, str):
            raise TypeError(f'Table: a name is a text, not {type(name).__name__}')
        if not self.contains(name):
            raise KeyError(name)
        return self.lookup(name)

    def __contains__(self, name):
        return isinstance(name, str) and self.contains(name)

    def __len__(self):
        return self.get_length()

    def __iter__(self):
        return iter([self.get_name(i) for i in range(len(self))])

    def __bool__(self):
        return len(self) > 0

    def keys(self):
        return list(self)

    def values(self):
        return [self.get_tensor(i) for i in range(len(self))]

    def items(self):
        return list(zip(self.keys(), self.values()))


def install(submodule):
    for name, value in vars(TableMethods).items():
        if callable(value) and name != '__init__':
            setattr(GTorch.Table, name, value)
    found = (from_arrow, iter_csv, load_csv, load_ipc, load_npy, load_npz, load_parquet, save_npy, save_npz, to_arrow)
    submodule('io', 'Files of arrays and columns.', {one.__name__: one for one in found})
