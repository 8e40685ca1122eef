# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""save() and load(): files of PyTorch's zip format, and safetensors.

A file of torch.save() is a zip archive of a pickle, in which tensors refer to storages, and of one member for each
storage (https://docs.pytorch.org/docs/stable/notes/serialization.html). A pickle can name any function of Python's to
be called; load() knows the few that tensors and dictionaries need and refuses every other, so that no code of a file
runs. Of objects save() takes the same: tensors, parameters, numbers, texts, and dictionaries, lists, tuples and sets of
them.
"""

import codecs
import collections
import io
import os
import pickle
import struct
import zipfile

from gi.overrides._gtorch_convert import DType, GTorch, RawTensor, convert_bool, convert_device
from gi.overrides._gtorch_size import Size
from gi.overrides._gtorch_storage import UntypedStorage, moved
from gi.repository import Gio, GLib

STORAGES = {
    'BFloat16Storage': DType.BFLOAT16, 'BoolStorage': DType.BOOL, 'ByteStorage': DType.UINT8,
    'CharStorage': DType.INT8, 'ComplexDoubleStorage': DType.COMPLEX128, 'ComplexFloatStorage': DType.COMPLEX64,
    'DoubleStorage': DType.FLOAT64, 'FloatStorage': DType.FLOAT32, 'HalfStorage': DType.FLOAT16,
    'IntStorage': DType.INT32, 'LongStorage': DType.INT64, 'ShortStorage': DType.INT16,
}
NAMES = {dtype: name for name, dtype in STORAGES.items()}
PLAIN = (bool, int, float, complex, str, bytes, type(None))
# What the pickles of containers, complex numbers and bytes call.
REDUCED = (collections.OrderedDict, collections.Counter, set, frozenset, complex, codecs.encode)
CONTAINERS = (dict, list, tuple, set, frozenset, collections.OrderedDict, collections.Counter)
LEGACY = b'\x80\x02\x8a\nl\xfc\x9cF\xf9'  # the number that files had before they were zip archives
ZIP = b'PK\x03\x04'
VERSION = b'3\n'  # of the archive's format
PROTOCOL = 2  # of the pickle, which PyTorch reads, too


def _namespace():
    """The namespace with what the overrides add."""
    from gi.repository import GTorch as namespace

    return namespace


class _Global:
    """A name that the pickle has of a module of PyTorch's, which need not be there."""

    def __init__(self, module, name):
        self.module, self.name = module, name

    def __call__(self):
        raise TypeError(f'{self.module}.{self.name} is only written')


REBUILD = _Global('torch._utils', '_rebuild_tensor_v2')
PARAMETER = _Global('torch._utils', '_rebuild_parameter')
DEVICE = _Global('torch', 'device')
SIZE = _Global('torch', 'Size')
TYPES = {dtype: _Global('torch', name) for dtype, name in NAMES.items()}
DTYPES = {dtype: _Global('torch', DType.get_name(dtype)) for dtype in NAMES}


# --- writing ---


class _Storage:
    """The memory that some tensors share."""

    def __init__(self, key, tensor):
        self.key, self.tensor, self.numel = key, tensor, 0

    def bytes(self):
        flat = self.tensor.detach().as_strided([self.numel], [1], 0)
        return flat.cpu().get_bytes().get_data() or b''


def _span(tensor):
    """The number of elements of the storage up to the last of the tensor."""
    if tensor.numel() == 0:
        return 0
    reach = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride()))
    return tensor.storage_offset() + reach + 1


class _Pickler(pickle._Pickler):
    def __init__(self, file, storages):
        super().__init__(file, PROTOCOL)
        self.storages = storages

    def persistent_id(self, obj):
        if not isinstance(obj, _Storage):
            return None
        device = obj.tensor.device
        where = 'cpu' if device.type == 'cpu' else str(device)
        return 'storage', TYPES[obj.tensor.dtype], obj.key, where, obj.numel

    def _save_tensor(self, tensor):
        offset = tensor.storage_offset()
        start = tensor.data_ptr() - offset * tensor.dtype.itemsize if tensor.numel() > 0 else id(tensor)
        place = tensor.device.to_string(), start, int(tensor.dtype)
        storage = self.storages.get(place)
        if storage is None:
            storage = self.storages[place] = _Storage(str(len(self.storages)), tensor)
        storage.numel = max(storage.numel, _span(tensor))
        is_parameter = isinstance(tensor, GTorch.Parameter)
        needs = tensor.requires_grad and not is_parameter
        if needs and not tensor.is_leaf:
            raise RuntimeError('save(): a tensor has a history of gradients, which no file keeps: detach() it')
        offset = offset if tensor.numel() > 0 else 0
        args = storage, offset, tuple(tensor.shape), tuple(tensor.stride()), needs, collections.OrderedDict()
        if is_parameter:
            self.save_reduce(PARAMETER, (_Rebuilt(args), tensor.requires_grad, collections.OrderedDict()), obj=tensor)
        else:
            self.save_reduce(REBUILD, args, obj=tensor)

    def save(self, obj, save_persistent_id=True):
        if isinstance(obj, RawTensor):
            known = self.memo.get(id(obj))
            if known is not None:
                return self.write(self.get(known[0]))
            return self._save_tensor(obj)
        if isinstance(obj, DType):
            return self.save(DTYPES[obj])
        if isinstance(obj, GTorch.Device):
            return self.save_reduce(DEVICE, (obj.to_string(),))
        if isinstance(obj, _Rebuilt):
            return self.save_reduce(REBUILD, obj.args)
        if isinstance(obj, _Global):
            return self.write(f'c{obj.module}\n{obj.name}\n'.encode())
        if isinstance(obj, Size):
            return self.save_reduce(SIZE, (tuple(obj),))
        kind = type(obj)
        if kind in PLAIN or kind in CONTAINERS or kind is _Storage:
            return super().save(obj, save_persistent_id)
        if any(obj is one for one in REDUCED):
            return super().save(obj, save_persistent_id)
        raise TypeError(
            f'save(): an object of type {kind.__name__} cannot be saved, only tensors, numbers, texts and containers '
            'of them; of a module or an optimizer save its state_dict()'
        )


class _Rebuilt:
    """The tensor of a parameter."""

    def __init__(self, args):
        self.args = args


def _write(archive, name, data):
    # PyTorch maps storages into memory, which must be at addresses divisible by 64: the field of the header that
    # is free for any use fills the gap.
    info = zipfile.ZipInfo(name)
    start = archive.fp.tell() + 30 + len(name.encode()) + 4
    info.extra = struct.pack('<2sH', b'FB', -start % 64) + b'Z' * (-start % 64)
    archive.writestr(info, data)


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
    storages, stem = {}, 'archive'
    _Pickler(io.BytesIO(), storages).dump(obj)  # tells how large the storages are
    content = io.BytesIO()
    _Pickler(content, storages).dump(obj)
    if isinstance(f, (str, os.PathLike)):
        stem = os.path.splitext(os.path.basename(path))[0] or stem
        whole = _archive(stem, content.getvalue(), storages)
        # what was there stays until all of it is written
        file = Gio.File.new_for_path(path)
        file.replace_contents(whole.getvalue(), None, False, Gio.FileCreateFlags.NONE, None)
    else:
        f.write(_archive(stem, content.getvalue(), storages).getbuffer())


def _archive(stem, content, storages):
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, 'w', zipfile.ZIP_STORED) as archive:
        _write(archive, f'{stem}/data.pkl', content)
        _write(archive, f'{stem}/byteorder', b'little')
        for storage in storages.values():
            _write(archive, f'{stem}/data/{storage.key}', storage.bytes())
        _write(archive, f'{stem}/version', VERSION)
    return whole


def _save_safetensors(obj, path):
    if not isinstance(obj, dict) or not all(isinstance(k, str) and isinstance(v, RawTensor) for k, v in obj.items()):
        raise TypeError('save(): a file of safetensors holds a dictionary of tensors by name, and nothing else')
    _namespace().safetensors_save_file(dict(obj), None, Gio.File.new_for_path(path), None, None)


# --- reading ---


class Unloadable(pickle.UnpicklingError, RuntimeError):
    """A file that cannot be loaded: PyTorch raises the one or the other."""


Kind = GTorch.CheckpointKind


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


DTYPE_OF = {int(dtype): dtype for dtype in NAMES}


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
