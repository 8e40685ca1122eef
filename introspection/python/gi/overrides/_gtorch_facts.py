# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What PyTorch's tensors tell of themselves, and its former names of classes by dtype: type(), layout, storages,
torch.FloatTensor."""

from gi.overrides import _gtorch_arguments as arguments
from gi.overrides._gtorch_convert import DType, GTorch, RawTensor, convert_dtype, convert_sizes, cuda_device
from gi.overrides._gtorch_size import Size
from gi.overrides._gtorch_storage import TypedStorage, UntypedStorage

CLASSES = {
    DType.FLOAT32: 'FloatTensor', DType.FLOAT64: 'DoubleTensor', DType.FLOAT16: 'HalfTensor',
    DType.BFLOAT16: 'BFloat16Tensor', DType.INT8: 'CharTensor', DType.UINT8: 'ByteTensor', DType.INT16: 'ShortTensor',
    DType.INT32: 'IntTensor', DType.INT64: 'LongTensor', DType.BOOL: 'BoolTensor',
    DType.COMPLEX64: 'ComplexFloatTensor', DType.COMPLEX128: 'ComplexDoubleTensor',
}  # fmt: skip
# What no tensor of the library is.
NEVER = (
    'is_ipu', 'is_maia', 'is_meta', 'is_mkldnn', 'is_mps', 'is_mtia', 'is_nested', 'is_quantized', 'is_sparse',
    'is_sparse_csr', 'is_vulkan', 'is_xla', 'is_xpu',
)  # fmt: skip


def _creator(name):
    from gi.repository import GTorch as namespace

    return getattr(namespace, name)


# --- constructors of former releases ---


def _make(name, dtype, device, args):
    """Makes a tensor of numbers in a list, a tensor or an array, or of a shape, whose elements may have any value."""
    (first,) = args[:1] or (None,)
    if not args or all(isinstance(one, int) and not isinstance(one, bool) for one in args) or isinstance(first, Size):
        sizes = convert_sizes(list(args[0] if isinstance(first, Size) else args)) if args else [0]
        return _creator('empty')(sizes, dtype=dtype, device=device)
    if len(args) > 1 or isinstance(first, (str, bytes, float, complex, bool)):
        kinds = ', '.join(type(one).__name__ for one in args)
        raise TypeError(f'{name}() takes the sizes of dimensions, or one list, array or tensor, not {kinds}')
    if isinstance(first, RawTensor):
        if dtype is not None and (first.dtype != dtype or first.device.type != device):
            raise TypeError(f'{name}(): the tensor is a {type_of(first)}: use its to()')
        return first.detach()
    made = _creator('tensor')(first, device=device)
    return made.to(dtype or GTorch.get_default_dtype())


class _TensorType(type):
    """The class of torch.FloatTensor and its like: tensors of the dtype, on the device, are objects of it."""

    def __instancecheck__(cls, value):
        return isinstance(value, RawTensor) and type_of(value) == str(cls)

    def __call__(cls, *args):
        return _make(cls.__name__, cls.dtype, cls.where, args)

    def __repr__(cls):
        return f'torch.cuda.{cls.__name__}' if cls.where == 'cuda' else f'torch.{cls.__name__}'

    __str__ = __repr__


def _class(dtype, where):
    name = CLASSES[dtype]
    doc = f'Tensors of {DType.get_name(dtype)}.'
    members = {'dtype': dtype, 'where': where, 'is_cuda': where == 'cuda', '__doc__': doc}
    return _TensorType(name, (), {**members, '__module__': 'gi.repository.GTorch'})


def type_of(tensor):
    """The name of the class that PyTorch has for the dtype and the device."""
    where = '' if tensor.device.type == 'cpu' else f'{tensor.device.type}.'
    return f'torch.{where}{CLASSES[tensor.dtype]}'


NAMES = {}


def type_or_converted(self, dtype=None, non_blocking=False):
    """The name of PyTorch's class for the dtype and the device, such as 'torch.FloatTensor'; or the tensor with another
    dtype, which may be given by such a name or class."""
    if dtype is None:
        return type_of(self)
    found = NAMES.get(str(dtype)) if isinstance(dtype, (str, _TensorType)) else None
    if found is not None:
        return self.to(found.where, found.dtype, non_blocking=non_blocking)
    if isinstance(dtype, str) and dtype.startswith('torch.'):
        raise ValueError(f'type(): there is no class {dtype!r} of tensors')
    return self.to(dtype=convert_dtype(dtype), non_blocking=non_blocking)


def set_default_tensor_type(t):
    """Sets the default dtype and device to those of a class such as torch.FloatTensor, or of its name."""
    found = NAMES.get(str(t)) if isinstance(t, (str, _TensorType)) else None
    if found is None:
        raise TypeError(f'set_default_tensor_type(): t must be a class such as torch.FloatTensor, not {t!r}')
    GTorch.set_default_dtype(found.dtype)
    GTorch.set_default_device(cuda_device() if found.where == 'cuda' else GTorch.Device.cpu())


def typename(obj):
    """The name of the class of an object, with its module; of a tensor, that of type()."""
    if isinstance(obj, RawTensor):
        return type_of(obj)
    cls = obj if hasattr(obj, '__qualname__') else obj.__class__
    module = getattr(cls, '__module__', None)
    return cls.__qualname__ if module in (None, 'builtins', '__builtin__') else f'{module}.{cls.__qualname__}'


def new(cls, *args, **options):
    """Makes a tensor of the default dtype, as PyTorch's class does."""
    if options:
        raise TypeError(f'Tensor() has no argument {next(iter(options))!r}: use tensor(data, …)')
    return _make('Tensor', None, None, args)


def _refuse_subclass(cls, **options):
    if cls.__module__ not in ('__gi__', 'gi.overrides.GTorch', 'gi.repository.GTorch'):
        raise TypeError(
            f'{cls.__name__}: Tensor cannot be derived from: results of operations are made by the library, which '
            'knows its own class only; keep the tensor in an attribute'
        )
    super(RawTensor, cls).__init_subclass__(**options)


def _untyped_storage(self):
    """The bytes of the memory, which other tensors may share."""
    return UntypedStorage(self)


def _storage(self):
    """The elements of the memory, which other tensors may share."""
    return TypedStorage(self)


def is_same_size(self, other):
    """Tells whether the shapes are the same."""
    return self.shape == other.shape


def is_set_to(self, tensor):
    """Tells whether both are the same elements of the same memory, in one order."""
    same = self.dtype == tensor.dtype and self.shape == tensor.shape and self.stride() == tensor.stride()
    return same and self.data_ptr() == tensor.data_ptr() and self.untyped_storage() == tensor.untyped_storage()


def _changed(name, tensor, values):
    if tensor.device.type != 'cpu':
        raise TypeError(f'{name}(): the function is called with numbers, which {tensor.device} would have to send')
    made = _creator('tensor')(values, dtype=tensor.dtype) if values else _creator('empty')([0], dtype=tensor.dtype)
    return tensor.copy_(made.view(tensor.shape))


def apply_(self, callable):
    """Replaces each element by what the function gives for it, one after the other; for the CPU."""
    return _changed('apply_', self, [callable(one) for one in self.detach().flatten().tolist()])


def map_(self, tensor, callable):
    """Replaces each element by what the function gives for it and the element of a tensor of the same shape."""
    if self.shape != tensor.shape:
        raise RuntimeError(f'map_(): the tensor has shape {list(self.shape)}, the other one {list(tensor.shape)}')
    pairs = zip(self.detach().flatten().tolist(), tensor.detach().flatten().tolist())
    return _changed('map_', self, [callable(*pair) for pair in pairs])


def is_storage(obj):
    """Tells whether an object is the memory of a tensor."""
    return isinstance(obj, UntypedStorage)


def share_memory_(self):
    """Moves memory of the CPU to memory that other processes can have, too. Returns the tensor."""
    self.share_memory()
    return self


def is_shared(self):
    """Tells whether other processes can have the memory as it is: on the CPU after share_memory_()."""
    return RawTensor.is_shared(self)


def is_inference(self):
    """Tells whether the tensor was made in inference_mode(), or is a view of one that was."""
    return RawTensor.is_inference(self)


def _version(self):
    if self.is_inference():
        shape = list(self.shape)
        raise RuntimeError(f'_version: the tensor of shape {shape} was made in inference mode, and is not watched')
    return self.get_version()


def install_attributes(tensor):
    tensor.type = type_or_converted
    for function in (is_inference, is_same_size, is_set_to, apply_, map_):
        setattr(tensor, function.__name__, function)
    tensor.retains_grad = property(lambda self: self.get_retains_grad(), doc='Does backward() keep its gradient?')
    tensor.untyped_storage, tensor.storage = _untyped_storage, _storage
    tensor.layout = property(lambda self: arguments.strided, doc='How the elements lie in memory: torch.strided.')
    tensor._version = property(_version, doc='How often the memory was changed in place.')
    for name in NEVER:
        setattr(tensor, name, property(lambda self: False, doc='False: there are no such tensors.'))
    tensor.__new__ = staticmethod(new)
    tensor.__init_subclass__ = classmethod(_refuse_subclass)
    tensor.share_memory_, tensor.is_shared = share_memory_, is_shared


def install(export, cuda):
    for dtype, name in CLASSES.items():
        for where, put in (('cpu', export), ('cuda', lambda name, value: setattr(cuda, name, value))):
            made = _class(dtype, where)
            NAMES[str(made)] = made
            put(name, made)
    export('set_default_tensor_type', set_default_tensor_type)
    export('typename', typename)
    export('is_storage', is_storage)
    export('layout', arguments.Layout)
