# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""save() and load(): files of PyTorch's zip format, and safetensors.

A file of torch.save() is a zip archive of a pickle, in which tensors refer to storages, and of one member for each
storage (https://docs.pytorch.org/docs/stable/notes/serialization.html). A pickle can name any function of Python's to
be called; load() knows the few that tensors and dictionaries need and refuses every other, so that no code of a file
runs. Of objects save() takes the same: tensors, parameters, numbers, texts, and dictionaries, lists, tuples and sets of
them.
"""

import collections
import io
import os
import pickle

from gi.overrides._gtorch_convert import DType, GTorch, RawTensor, convert_bool, convert_device
from gi.overrides._gtorch_size import Size
from gi.overrides._gtorch_storage import UntypedStorage, moved
from gi.repository import Gio, GLib

DTYPES = (
    DType.BFLOAT16, DType.BOOL, DType.UINT8, DType.INT8, DType.COMPLEX128, DType.COMPLEX64, DType.FLOAT64,
    DType.FLOAT32, DType.FLOAT16, DType.INT32, DType.INT64, DType.INT16,
)
LEGACY = b'\x80\x02\x8a\nl\xfc\x9cF\xf9'  # the number that files had before they were zip archives
ZIP = b'PK\x03\x04'
PROTOCOL = 2  # of the pickle, which PyTorch reads, too
Kind = GTorch.CheckpointKind


def _namespace():
    """The namespace with what the overrides add."""
    from gi.repository import GTorch as namespace

    return namespace


# --- writing ---


class _Adder:
    """Gives a writer in C Python's values. One that is met again, or is within itself, is the same in the file."""

    LISTS = {list: Kind.LIST, set: Kind.SET, frozenset: Kind.FROZENSET, tuple: Kind.TUPLE, Size: Kind.SIZE}
    DICTS = {
        dict: Kind.DICT, collections.OrderedDict: Kind.ORDERED_DICT, collections.Counter: Kind.COUNTER,
    }

    def __init__(self):
        self.writer = GTorch.CheckpointWriter.new()
        self._known, self._alive, self._texts = {}, [], {}

    def _remember(self, obj, number):
        self._known[id(obj)] = number
        self._alive.append(obj)  # no other object gets its address meanwhile
        return number

    def add(self, obj):
        """Returns the number of the value."""
        known = self._known.get(id(obj))
        if known is not None:
            return known
        if isinstance(obj, RawTensor):
            return self._remember(obj, self.writer.add_tensor(obj))
        if isinstance(obj, DType):
            return self.writer.add_dtype(obj)
        if isinstance(obj, GTorch.Device):
            return self.writer.add_device(obj)
        kind = type(obj)
        if kind in self.LISTS:
            return self._add_list(obj, self.LISTS[kind])
        if kind in self.DICTS:
            return self._add_dict(obj, self.DICTS[kind])
        return self._add_plain(obj, kind)

    def _add_list(self, obj, kind):
        if kind == Kind.LIST:
            number = self._remember(obj, self.writer.add_container(kind, []))
            self.writer.append(number, [self.add(item) for item in obj])
            return number
        items = [self.add(item) for item in obj]
        known = self._known.get(id(obj))  # a list in it has it
        return known if known is not None else self._remember(obj, self.writer.add_container(kind, items))

    def _add_dict(self, obj, kind):
        number = self._remember(obj, self.writer.add_container(kind, []))
        self.writer.append(number, [self.add(value) for pair in obj.items() for value in pair])
        if kind == Kind.ORDERED_DICT and obj.__dict__:
            self.writer.set_attributes(number, self.add(dict(obj.__dict__)))
        return number

    def _add_plain(self, obj, kind):
        if obj is None:
            return self.writer.add_none()
        if kind is bool:
            return self.writer.add_bool(obj)
        if kind is int:
            if -(1 << 63) <= obj < 1 << 63:
                return self.writer.add_int(obj)
            data = obj.to_bytes(obj.bit_length() // 8 + 1, 'little', signed=True)
            return self.writer.add_bytes(Kind.LONG, GLib.Bytes.new(data))
        if kind is float:
            return self.writer.add_double(obj)
        if kind is complex:
            return self.writer.add_complex(obj.real, obj.imag)
        if kind is bytes:
            return self._remember(obj, self.writer.add_bytes(Kind.BYTES, GLib.Bytes.new(obj)))
        if kind is str:
            if obj not in self._texts:
                self._texts[obj] = self.writer.add_bytes(Kind.STRING, GLib.Bytes.new(obj.encode()))
            return self._texts[obj]
        raise TypeError(
            f'save(): an object of type {kind.__name__} cannot be saved, only tensors, numbers, texts and containers '
            'of them; of a module or an optimizer save its state_dict()'
        )


def save(obj, f, pickle_module=None, pickle_protocol=PROTOCOL, _use_new_zipfile_serialization=True):
    """Saves tensors, and dictionaries, lists and tuples of them, to a file or a binary stream, as torch.save() does.

    A name that ends in .safetensors makes a file of that format, of a dictionary of tensors. Tensors that share memory
    share it in the file. Modules are not saved, but their state_dict()."""
    if pickle_module is not None or pickle_protocol != PROTOCOL or not _use_new_zipfile_serialization:
        raise NotImplementedError('save(): there is one form of files, a pickle with protocol 2 in a zip archive')
    if isinstance(f, (str, os.PathLike)):
        path = os.fspath(f)
        if path.endswith('.safetensors'):
            return _save_safetensors(obj, path)
    elif not hasattr(f, 'write') or isinstance(f, io.TextIOBase):
        raise TypeError(f'save(): f must be a path or a binary stream, not {type(f).__name__}')
    adder = _Adder()
    root = adder.add(obj)
    if isinstance(f, (str, os.PathLike)):
        adder.writer.save_file(root, Gio.File.new_for_path(path), None)
        return
    stream = Gio.MemoryOutputStream.new_resizable()
    adder.writer.save(root, stream, None)
    stream.close(None)
    f.write(stream.steal_as_bytes().get_data())


def _save_safetensors(obj, path):
    if not isinstance(obj, dict) or not all(isinstance(k, str) and isinstance(v, RawTensor) for k, v in obj.items()):
        raise TypeError('save(): a file of safetensors holds a dictionary of tensors by name, and nothing else')
    _namespace().safetensors_save_file(dict(obj), None, Gio.File.new_for_path(path), None, None)


# --- reading ---


class Unloadable(pickle.UnpicklingError, RuntimeError):
    """A file that cannot be loaded: PyTorch raises the one or the other."""


def _target(map_location, where):
    """The device of a storage that was on the device @where."""
    if isinstance(map_location, dict):
        place = map_location.get(where, where)
    else:
        place = where if map_location is None else map_location
    try:
        return convert_device(place)
    except GLib.Error as error:
        raise RuntimeError(
            f"load(): a tensor was on {where}, and belongs on {place}: {error.message}; map_location='cpu' loads it "
            'to the CPU'
        ) from error


class _Builder:
    """Makes Python's values of those of a checkpoint, which C has read."""

    def __init__(self, checkpoint, map_location):
        self._checkpoint, self._map_location = checkpoint, map_location
        self._storages, self._values = {}, []
        numbers = (Kind.INT, lambda node: node.get_int()), (Kind.DOUBLE, lambda node: node.get_double())
        self._plain = {
            Kind.NONE: lambda node: None,
            Kind.BOOL: lambda node: bool(node.get_int()),
            **dict(numbers),
            Kind.LONG: lambda node: int.from_bytes(self._bytes(node), 'little', signed=True),
            Kind.COMPLEX: lambda node: complex(node.get_double(), node.get_imaginary()),
            Kind.STRING: lambda node: self._bytes(node).decode(),
            Kind.BYTES: self._bytes,
            Kind.DTYPE: lambda node: DTYPE_OF[int(node.get_dtype())],
            Kind.DEVICE: lambda node: convert_device(node.get_text()),
            Kind.TENSOR: self._tensor, Kind.PARAMETER: self._tensor,
            Kind.TUPLE: lambda node: tuple(self._items(node)),
            Kind.SIZE: lambda node: Size(self._items(node)),
            Kind.FROZENSET: lambda node: frozenset(self._items(node)),
            Kind.LIST: lambda node: [], Kind.SET: lambda node: set(),
            Kind.DICT: lambda node: {}, Kind.ORDERED_DICT: lambda node: collections.OrderedDict(),
            Kind.COUNTER: lambda node: collections.Counter(),
        }

    @staticmethod
    def _bytes(node):
        return node.get_bytes().get_data() or b''

    def _items(self, node):
        return [self._values[node.get_child(i).get_index()] for i in range(node.get_length())]

    def _storage(self, index):
        """The memory on the device where it belongs, and whether that is the one of the checkpoint."""
        if index not in self._storages:
            made, where = self._checkpoint.get_storage(index), self._checkpoint.get_location(index)
            place, chosen = self._map_location, None
            if callable(place):
                given = made.clone()
                chosen = moved(given, place(UntypedStorage(given), where), 'load(): map_location()')
                place = None
            if chosen is None:
                device = _target(place, where)
                # a tensor of bytes is read-only, since it shares them
                chosen = made.to(device) if device.type != 'cpu' else made.clone() if made.is_read_only() else made
            self._storages[index] = chosen, chosen is made
        return self._storages[index]

    def _tensor(self, node):
        tensor = node.get_tensor()
        storage, is_same = self._storage(node.get_storage_index())
        if is_same:
            return tensor
        if tensor.numel() == 0:
            made = _namespace().empty(tuple(tensor.shape), dtype=tensor.dtype, device=storage.device)
        else:
            made = storage.as_strided(list(tensor.shape), list(tensor.stride()), tensor.storage_offset())
        if node.get_kind() == Kind.PARAMETER:
            return _namespace().nn.Parameter(made, requires_grad=tensor.requires_grad)
        return made.requires_grad_() if tensor.requires_grad else made

    def _fill(self, node, value):
        kind = node.get_kind()
        if kind == Kind.LIST:
            value.extend(self._items(node))
        elif kind == Kind.SET:
            value.update(self._items(node))
        elif kind in (Kind.DICT, Kind.ORDERED_DICT, Kind.COUNTER):
            keys = (self._values[node.get_key(i).get_index()] for i in range(node.get_length()))
            for key, item in zip(keys, self._items(node)):
                value[key] = item

    def build(self):
        nodes = [self._checkpoint.get_node(i) for i in range(self._checkpoint.get_n_nodes())]
        for node in nodes:  # what a tuple has comes before it
            self._values.append(self._plain[node.get_kind()](node))
        for node, value in zip(nodes, self._values):
            self._fill(node, value)
        for node, value in zip(nodes, self._values):
            attributes = node.get_attributes()
            if attributes is not None:
                value.__dict__.update((str(k), v) for k, v in self._values[attributes.get_index()].items())
        return self._values[self._checkpoint.get_root().get_index()]


DTYPE_OF = {int(dtype): dtype for dtype in DTYPES}


def _load_archive(file, path, map_location, mmap):
    if path is not None:
        checkpoint = GTorch.CheckpointFile.load_file(Gio.File.new_for_path(path), mmap, GLib.MAXINT64, None)
    else:
        checkpoint = GTorch.CheckpointFile.load_bytes(GLib.Bytes.new(file.read()), GLib.MAXINT64)
    return _Builder(checkpoint, map_location).build()


def load(f, map_location=None, pickle_module=None, *, weights_only=True, mmap=None, **pickle_load_args):
    """Loads what save() or torch.save() has written to a file or a binary stream, or a file of safetensors.

    Only tensors, numbers, texts and containers of them are loaded: no code of the file is run, whatever is in it and
    whatever @weights_only is. @map_location is a device for all tensors, a dictionary from names of devices to others,
    or a function that gets each storage, on the CPU, with the name of its device, and gives it on another, or None;
    otherwise tensors come to the device where they were. With @mmap, a file is mapped: tensors on the CPU are read from
    it when they are used."""
    if pickle_load_args.pop('encoding', 'utf-8') not in ('utf-8', 'ascii'):
        raise NotImplementedError('load(): the texts of a file are in UTF-8')
    if pickle_module is not None or pickle_load_args:
        raise NotImplementedError('load(): files are read by one unpickler, which runs no code of theirs')
    if weights_only is not None:
        convert_bool(weights_only)
    mmap = mmap is not None and convert_bool(mmap)
    places = list(map_location.values()) if isinstance(map_location, dict) else [map_location]
    for place in places if not callable(map_location) else ():
        if place is not None and not isinstance(place, (str, int, GTorch.Device)) or isinstance(place, (bool, DType)):
            raise TypeError(
                'load(): map_location must be a device, its name or number, a dictionary of them, or a function, not '
                f'{place!r}'
            )
    if isinstance(f, (str, os.PathLike)):
        with open(f, 'rb') as file:
            return _load(file, os.fspath(f), map_location, mmap, os.fspath(f))
    if not hasattr(f, 'read') or not hasattr(f, 'seek') or isinstance(f, io.TextIOBase):
        raise TypeError(f'load(): f must be a path or a binary stream that can seek, not {type(f).__name__}')
    return _load(f, None, map_location, mmap, 'the stream')


def _load(file, path, map_location, mmap, what):
    start = file.read(9)
    file.seek(-len(start), os.SEEK_CUR)
    if start.startswith(ZIP):
        try:
            return _load_archive(file, path, map_location, mmap)
        except GLib.Error as error:
            if not error.matches(GTorch.error_quark(), GTorch.Error.FORMAT) and not error.matches(
                GTorch.error_quark(), GTorch.Error.NOT_SUPPORTED
            ):
                raise
            text = error.message.removeprefix('checkpoint_load: ')
            raise Unloadable(f'load(): {what} cannot be loaded: {text}') from error
        except (RuntimeError, MemoryError):
            raise
        except Exception as error:
            text = str(error) or type(error).__name__
            raise Unloadable(f'load(): {what} cannot be loaded: {text}') from error
    if start[8:9] == b'{':
        found = _namespace().safetensors_load_bytes(GLib.Bytes.new(file.read()))[0]
        found = {name: tensor.clone() for name, tensor in found.items()}
        device = None if map_location is None else _target(map_location, 'cpu')
        return found if device is None else {name: tensor.to(device) for name, tensor in found.items()}
    if start.startswith(LEGACY):
        raise NotImplementedError(
            f'load(): {what} is of the form before zip archives: PyTorch reads it, and torch.save() writes the new form'
        )
    raise RuntimeError(f'load(): {what} is neither a zip archive of PyTorch nor a file of safetensors')
