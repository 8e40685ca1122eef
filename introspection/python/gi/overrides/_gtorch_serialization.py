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
OTHER_DTYPES = ('uint16', 'uint32', 'uint64', 'complex32', 'float8_', 'float4_', 'qint', 'quint', 'int1', 'bits')
LEGACY = b'\x80\x02\x8a\nl\xfc\x9cF\xf9'  # the number that files had before they were zip archives
ZIP = b'PK\x03\x04'
VERSION = b'3\n'  # of the archive's format
LATEST = 10  # the last version that PyTorch reads
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


class _Type:
    """The class of a storage: the dtype."""

    def __init__(self, dtype):
        self.dtype = dtype


def _numbers(name, values):
    if not isinstance(values, tuple) or not all(type(value) is int and value >= 0 for value in values):
        raise pickle.UnpicklingError(f'a tensor has the {name} {values!r}')
    return list(values)


def _flag(value):
    if not isinstance(value, bool):
        raise pickle.UnpicklingError(f'requires_grad of a tensor is {value!r}, not True or False')
    return value


def _rebuild_tensor(storage, offset, size, stride, requires_grad, _hooks, _metadata=None):
    if not isinstance(storage, RawTensor):
        raise pickle.UnpicklingError('a tensor has no storage')
    (offset,) = _numbers('offset', (offset,))
    size, stride = _numbers('shape', size), _numbers('strides', stride)
    if len(size) != len(stride):
        raise pickle.UnpicklingError(f'a tensor has the shape {size} and the strides {stride}')
    reach = 0 if 0 in size else 1 + offset + sum((n - 1) * step for n, step in zip(size, stride))
    if reach > storage.numel():
        raise pickle.UnpicklingError(f'a tensor of shape {size} needs {reach} elements of {storage.numel()}')
    if 0 in size:
        tensor = _namespace().empty(size, dtype=storage.dtype, device=storage.device)
    else:
        tensor = storage.as_strided(size, stride, offset)
    return tensor.requires_grad_() if _flag(requires_grad) else tensor


def _rebuild_parameter(data, requires_grad, _hooks):
    return _namespace().nn.Parameter(data, requires_grad=_flag(requires_grad))


def _rebuild_unknown(*_args):
    raise pickle.UnpicklingError('it has a tensor of a dtype that is missing here')


def _size(values=()):
    return Size(_numbers('shape', tuple(values)))


def _encode(text, encoding):
    if encoding != 'latin1':
        raise pickle.UnpicklingError(f'bytes are encoded as {encoding!r}')
    return text.encode('latin1')


KNOWN = {
    ('torch._utils', '_rebuild_tensor_v2'): _rebuild_tensor,
    ('torch._utils', '_rebuild_parameter'): _rebuild_parameter,
    ('torch', 'Size'): _size,
    ('torch', 'device'): lambda *where: convert_device(':'.join(map(str, where))),
    ('torch._utils', '_rebuild_tensor_v3'): _rebuild_unknown,
    ('torch.storage', 'UntypedStorage'): _Type(DType.UINT8),
    ('collections', 'OrderedDict'): collections.OrderedDict,
    ('collections', 'Counter'): collections.Counter,
    ('_codecs', 'encode'): _encode,
    **{('torch', DType.get_name(dtype)): dtype for dtype in NAMES},
    **{('torch', name): _Type(dtype) for name, dtype in STORAGES.items()},
    **{(module, kind.__name__): kind for module in ('builtins', '__builtin__') for kind in (set, frozenset, complex)},
}


class _Unpickler(pickle._Unpickler):
    """Knows what is in KNOWN, and sets no attributes but those of dictionaries in order."""

    dispatch = dict(pickle._Unpickler.dispatch)

    def __init__(self, file, storage):
        super().__init__(file, encoding='utf-8')
        self._storage = storage

    def find_class(self, module, name):
        try:
            return KNOWN[module, name]
        except KeyError:
            pass
        if module == 'torch' and name.startswith(OTHER_DTYPES):
            raise pickle.UnpicklingError(f'it has tensors of {name}, a dtype that is missing here')
        raise pickle.UnpicklingError(
            f'it calls {module}.{name}: only tensors and containers of them are loaded, since any other function '
            'may run code of the file, with weights_only=False as well'
        )

    def persistent_load(self, pid):
        if not isinstance(pid, tuple) or len(pid) != 5 or pid[0] != 'storage' or not isinstance(pid[1], _Type):
            raise pickle.UnpicklingError(f'a storage is described as {pid!r}')
        _word, kind, key, where, numel = pid
        return self._storage(kind.dtype, str(key), str(where), *_numbers('length', (numel,)))

    def load_build(self):
        state, obj = self.stack.pop(), self.stack[-1]
        if type(obj) is not collections.OrderedDict or not isinstance(state, dict):
            raise pickle.UnpicklingError(f'it sets attributes of a {type(obj).__name__}')
        obj.__dict__.update({str(name): value for name, value in state.items()})

    def load_reduce(self):
        args, func = self.stack.pop(), self.stack[-1]
        if not isinstance(args, tuple) or not any(func is one for one in KNOWN.values()) or not callable(func):
            raise pickle.UnpicklingError(f'it calls {func!r}')
        self.stack[-1] = func(*args)

    def load_newobj(self):
        args, cls = self.stack.pop(), self.stack.pop()
        if not isinstance(args, tuple) or not any(cls is one for one in REDUCED[:-1]):
            raise pickle.UnpicklingError(f'it makes a {cls!r}')
        self.append(cls.__new__(cls, *args))

    def _refuse(self):
        raise pickle.UnpicklingError('it has an instruction that pickles of tensors do not need')

    dispatch[pickle.BUILD[0]] = load_build
    dispatch[pickle.REDUCE[0]] = load_reduce
    dispatch[pickle.NEWOBJ[0]] = load_newobj
    for _code in (pickle.NEWOBJ_EX, pickle.INST, pickle.OBJ, pickle.EXT1, pickle.EXT2, pickle.EXT4):
        dispatch[_code[0]] = _refuse


def _check_values(found):
    """Refuses functions and classes where values should be, which no object of save() has."""
    waiting, seen = [found], set()
    while waiting:
        value = waiting.pop()
        if isinstance(value, _Type) or any(value is one for one in FUNCTIONS):
            raise pickle.UnpicklingError('it has a function or a class in place of a value')
        if isinstance(value, CONTAINERS) and id(value) not in seen:
            seen.add(id(value))
            waiting.extend(value)
            if isinstance(value, dict):
                waiting.extend(value.values())
    return found


FUNCTIONS = [one for one in KNOWN.values() if not isinstance(one, (DType, _Type))]


def _check_version(archive, name):
    text = archive.read(name).strip()
    if not text.isdigit() or not 1 <= int(text) <= LATEST:
        raise pickle.UnpicklingError(f'its version is {text.decode(errors="replace")}, not 1 to {LATEST}')


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


def _load_archive(file, map_location):
    archive = zipfile.ZipFile(file)
    names = archive.namelist()
    stem = next((name[: -len('data.pkl')] for name in names if name.endswith('/data.pkl') or name == 'data.pkl'), None)
    if stem is None:
        raise pickle.UnpicklingError('it has no member data.pkl')
    if f'{stem}constants.pkl' in names:
        raise pickle.UnpicklingError('it is a program of TorchScript')
    if f'{stem}version' in names:
        _check_version(archive, f'{stem}version')
    order = archive.read(f'{stem}byteorder').decode() if f'{stem}byteorder' in names else 'little'
    if order != 'little':
        raise pickle.UnpicklingError(f'its numbers are in the order {order!r} of bytes')
    found = {}

    def storage(dtype, key, where, numel):
        if key in found:
            if found[key].dtype != dtype:
                raise pickle.UnpicklingError(f'storage {key} has two dtypes')
            return found[key]
        member = f'{stem}data/{key}'
        if member not in names:
            raise pickle.UnpicklingError(f'storage {key} is missing')
        size = archive.getinfo(member).file_size
        if size != numel * dtype.itemsize:
            name = DType.get_name(dtype)
            raise pickle.UnpicklingError(f'storage {key} has {size} bytes for {numel} elements of {name}')
        made = RawTensor.new_from_bytes(GLib.Bytes.new(archive.read(member)), dtype, [numel])
        if callable(map_location):
            chosen = moved(made, map_location(UntypedStorage(made.clone()), where), 'load(): map_location()')
            if chosen is not None:
                found[key] = chosen
                return chosen
        device = _target(None if callable(map_location) else map_location, where)
        # a tensor of bytes is read-only, since it shares them
        found[key] = made.clone() if device.type == 'cpu' else made.to(device)
        return found[key]

    return _check_values(_Unpickler(io.BytesIO(archive.read(f'{stem}data.pkl')), storage).load())


def load(f, map_location=None, pickle_module=None, *, weights_only=True, mmap=None, **pickle_load_args):
    """Loads what save() or torch.save() has written to a file or a binary stream, or a file of safetensors.

    Only tensors, numbers, texts and containers of them are loaded: no code of the file is run, whatever is in it and
    whatever @weights_only is. @map_location is a device for all tensors, a dictionary from names of devices to others,
    or a function that gets each storage, on the CPU, with the name of its device, and gives it on another, or None;
    otherwise tensors come to the device where they were."""
    if pickle_load_args.pop('encoding', 'utf-8') not in ('utf-8', 'ascii'):
        raise NotImplementedError('load(): the texts of a file are in UTF-8')
    if pickle_module is not None or pickle_load_args:
        raise NotImplementedError('load(): files are read by one unpickler, which runs no code of theirs')
    if weights_only is not None:
        convert_bool(weights_only)
    places = list(map_location.values()) if isinstance(map_location, dict) else [map_location]
    for place in places if not callable(map_location) else ():
        if place is not None and not isinstance(place, (str, int, GTorch.Device)) or isinstance(place, (bool, DType)):
            raise TypeError(
                'load(): map_location must be a device, its name or number, a dictionary of them, or a function, not '
                f'{place!r}'
            )
    if isinstance(f, (str, os.PathLike)):
        with open(f, 'rb') as file:
            return _load(file, map_location, os.fspath(f))
    if not hasattr(f, 'read') or not hasattr(f, 'seek') or isinstance(f, io.TextIOBase):
        raise TypeError(f'load(): f must be a path or a binary stream that can seek, not {type(f).__name__}')
    return _load(f, map_location, 'the stream')


def _load(file, map_location, what):
    start = file.read(9)
    file.seek(-len(start), os.SEEK_CUR)
    if start.startswith(ZIP):
        try:
            return _load_archive(file, map_location)
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
            if isinstance(error, GLib.Error):
                raise
            text = str(error).removeprefix('load(): ')
            raise RuntimeError(f'load(): {what} cannot be read: {text}') from error
        except Exception as error:
            # A damaged pickle fails in many ways, of which none is the program's.
            text = str(error) or type(error).__name__
            raise pickle.UnpicklingError(f'load(): {what} cannot be loaded: {text}') from error
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
