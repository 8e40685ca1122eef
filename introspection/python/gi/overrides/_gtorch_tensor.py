# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The parts of a tensor that Python adds to the operations: values, attributes, protocols."""

from gi.repository import GLib, GObject

from gi.overrides import _gtorch_hooks as hooks
from gi.overrides import _gtorch_ops as ops
from gi.overrides import _gtorch_overloads as overloads
from gi.overrides._gtorch_convert import (
    GTorch,
    DType,
    RawTensor,
    convert_bool,
    convert_device,
    convert_dtype,
    convert_whole as index,
    cuda_device,
    destination,
    is_complex_number,
    is_number,
)
from gi.overrides._gtorch_errors import restoring
from gi.overrides._gtorch_exceptions import settled
from gi.overrides._gtorch_index import encode
from gi.overrides._gtorch_bind import bind
from gi.overrides._gtorch_mixin import mixin
from gi.overrides._gtorch_nodes import grad_fn
from gi.overrides._gtorch_properties import set_attribute
from gi.overrides._gtorch_size import Size

FLOATS = (DType.FLOAT32, DType.FLOAT64, DType.FLOAT16, DType.BFLOAT16)
COMPLEX = (DType.COMPLEX64, DType.COMPLEX128)

# numpy's names in its __array_interface__
TYPE_STRINGS = {
    DType.FLOAT32: 'f4',
    DType.FLOAT64: 'f8',
    DType.FLOAT16: 'f2',
    DType.INT8: 'i1',
    DType.UINT8: 'u1',
    DType.INT16: 'i2',
    DType.INT32: 'i4',
    DType.INT64: 'i8',
    DType.BOOL: 'b1',
    DType.COMPLEX64: 'c8',
    DType.COMPLEX128: 'c16',
}


class Shown:
    """A tensor's memory for numpy, which keeps this object as long as an array aliases the memory."""

    def __init__(self, tensor):
        interface = tensor._interface()
        whole = tensor.is_contiguous() or not tensor.numel()
        first = tensor if whole else tensor.as_strided((1,), (1,))
        self.keep = first.get_bytes()
        if tensor.numel() and not tensor.get_data_ptr():
            raise RuntimeError(f'the tensor of shape {list(tensor.shape)} was released')
        self.__array_interface__ = interface


def nest(values, shape):
    """Converts a flat list to nested lists."""
    if not shape:
        return values[0]
    for size in reversed(shape[1:]):
        if size == 0:
            return _empty(shape)
        values = [values[i : i + size] for i in range(0, len(values), size)]
    return values


def _empty(shape):
    return [_empty(shape[1:]) for _ in range(shape[0])] if len(shape) > 1 else [None] * shape[0]


def _awaitable(name):
    """A method that returns an asyncio future; its work is on the caller's current streams."""

    def method(self, *args, cancellable=None):
        from gi.overrides._gtorch_context import awaitable, on_streams

        begin = on_streams(getattr(self, f'{name}_async'), self, *args)
        finish = getattr(self, f'{name}_finish')
        return awaitable(begin, finish, *args, cancellable=cancellable, at_once=True)

    return method


_item_double, _item_int = _awaitable('item_double'), _awaitable('item_int')
_to_device, _copy = _awaitable('to_device'), _awaitable('copy_inplace')


def whole_memory(tensor):
    """All elements of the memory of a tensor. Nothing tells how many there are but that a larger view fails."""

    def fits(n):
        try:
            tensor.as_strided([n], [1], 0)
        except GLib.Error:
            return False
        return True

    if tensor.get_storage_offset() == 0 and tensor.is_contiguous() and not fits(tensor.numel() + 1):
        return tensor
    low, high = 1, 2
    while fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return tensor.as_strided([low], [1], 0)


def copied(tensor, memo):
    """A copy for copy.deepcopy(): tensors that share memory do so in the copy, too."""
    tensor = tensor.detach()
    if GTorch.is_lazy(tensor):  # there are no elements
        return tensor
    if tensor.is_read_only() or tensor.numel() == 0:
        return tensor.clone()
    start = tensor.get_data_ptr() - tensor.get_storage_offset() * tensor.dtype.itemsize
    key = 'the memory of a tensor', tensor.device.to_string(), start, tensor.dtype
    if key not in memo:
        whole = whole_memory(tensor)
        memo[key] = whole.clone(), tensor  # which keeps its memory from being used again
        if whole is tensor:
            return memo[key][0]
    offset = tensor.get_storage_offset()
    return memo[key][0].as_strided(list(tensor.shape), list(tensor.stride()), offset).detach()


class TensorMethods:
    """The part of Tensor that is the same with and without the C accelerator."""

    __array_priority__ = 1000
    __setattr__ = set_attribute

    def __init__(self, *_args, **_options):
        """The object has been made by __new__()."""

    def _get_grad(self):
        return self.get_grad()

    def _set_grad(self, grad):
        self.set_grad(grad)

    def _set_requires_grad(self, requires_grad):
        self.set_requires_grad(convert_bool(requires_grad))

    def _drop_grad(self):
        self.set_grad(None)

    grad = property(_get_grad, _set_grad, _drop_grad, doc='The gradient that backward() added up, or None.')
    requires_grad = property(lambda self: self.get_requires_grad(), _set_requires_grad)
    is_leaf = property(lambda self: RawTensor.is_leaf(self))
    grad_fn = property(grad_fn)
    device = property(RawTensor.get_device)
    data = property(lambda self: self.detach(), lambda self, data: self.set_data(data))
    T = property(lambda self: self.permute(*range(self.ndim - 1, -1, -1)))
    mT = property(lambda self: self.transpose(-2, -1))
    H = property(lambda self: self.conj().transpose(0, 1))
    mH = property(lambda self: self.conj().transpose(-2, -1))
    is_cuda = property(lambda self: self.device.type == 'cuda')
    is_cpu = property(lambda self: self.device.type == 'cpu')
    itemsize = property(lambda self: DType.get_size(self.dtype))
    nbytes = property(lambda self: self.numel() * self.itemsize)

    def item_async(self, cancellable=None):
        """Reads the only element in asyncio, as a Python number."""
        whole = self.get_dtype() not in FLOATS + COMPLEX
        return (_item_int if whole else _item_double)(self, cancellable=cancellable)

    def to_async(self, device, cancellable=None):
        """Copies the tensor to a device in asyncio."""
        return _to_device(self, convert_device(device), cancellable=cancellable)

    def copy_async(self, src, cancellable=None):
        """Copies the elements of @src into this tensor in asyncio."""
        return _copy(self, src, cancellable=cancellable)

    @settled
    def size(self, dim=None):
        """Returns the shape, or the size of one dimension."""
        return self.shape if dim is None else self.get_size(index(dim))

    def stride(self, dim=None):
        """Returns the strides of all dimensions, or of one."""
        strides = tuple(self.get_strides())
        return strides if dim is None else strides[index(dim)]

    def get_device(self):
        """The number of the GPU that has the elements, or -1 for the CPU."""
        device = RawTensor.get_device(self)
        return -1 if device.type == 'cpu' else device.get_index()

    def element_size(self):
        return self.itemsize

    def data_ptr(self):
        return self.get_data_ptr()

    def is_contiguous(self):
        return RawTensor.is_contiguous(self)

    def storage_offset(self):
        return self.get_storage_offset()

    def requires_grad_(self, requires_grad=True):
        """Sets whether gradients are computed; returns the tensor."""
        self.set_requires_grad(convert_bool(requires_grad))
        return self

    def is_floating_point(self):
        return self.dtype in FLOATS

    def is_complex(self):
        return self.dtype in COMPLEX

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        """Adds the gradients of this tensor to the leaves that it was computed from; with @inputs, to these tensors
        alone."""
        if inputs is not None:
            from gi.overrides._gtorch_context import backward

            backward(self, gradient, retain_graph, create_graph, inputs)
            return
        keep = create_graph if retain_graph is None else retain_graph
        restoring(RawTensor.backward, self, gradient, convert_bool(keep), convert_bool(create_graph))

    def detach_(self):
        """Takes the tensor itself out of what is recorded for gradients."""
        return self.detach_inplace()

    def retain_grad(self):
        """Lets backward() keep the gradient of a tensor that is no leaf."""
        RawTensor.retain_grad(self)

    def is_pinned(self, device=None):
        """Are the elements in pinned memory? That is pinned for all GPUs."""
        if device is not None:
            cuda_device(device)
        return RawTensor.is_pinned(self)

    def pin_memory(self, device=None):
        """A copy in pinned memory, for all GPUs, or the tensor itself if it is there."""
        if device is not None:
            cuda_device(device)
        return RawTensor.pin_memory(self)

    def record_stream(self, s):
        """Tells the allocator that work of a stream uses the memory."""
        RawTensor.record_stream(self, s)

    def register_hook(self, hook):
        """Calls @hook with the gradient during backward(); what it returns, if not None, replaces it."""
        return hooks.HookHandle.of(self, hooks.register('register_hook', self, hook))

    def register_post_accumulate_grad_hook(self, hook, *data):
        """Calls @hook with the tensor when backward() has added to its gradient; returns an id for
        remove_hook()."""
        number = hooks.register('register_post_accumulate_grad_hook', self, hook, data)
        return hooks.HookHandle.of(self, number)

    # --- values ---

    def tolist(self):
        """Returns the elements as numbers in nested lists."""
        dtype, shape = self.dtype, self.shape
        if dtype in FLOATS:
            values = self.to_doubles()
        elif dtype in COMPLEX:
            parts = list(self.to_doubles())
            values = [complex(*p) for p in zip(parts[::2], parts[1::2])]
        else:
            values = self.to_ints()
            if dtype == DType.BOOL:
                values = [bool(v) for v in values]
        return nest(list(values), shape)

    def __float__(self):
        value = self.item()
        if isinstance(value, complex):
            raise TypeError('a complex number is not a float')
        return float(value)

    def __int__(self):
        return int(self.item())

    def __complex__(self):
        return complex(self.item())

    def __index__(self):
        if self.numel() != 1 or self.is_floating_point() or self.is_complex():
            raise TypeError(
                'only a tensor of one integer can be an index, '
                f'not one of shape {list(self.shape)} and dtype {self.dtype}'
            )
        return int(self.item())

    def __bool__(self):
        if self.numel() != 1:
            text = f'bool: a tensor of shape {list(self.shape)} has {self.numel()} elements'
            text += ', and is neither true nor false: use any() or all()'
            raise GLib.Error.new_literal(GTorch.error_quark(), text, GTorch.Error.SHAPE)
        return bool(self.item())

    def __pos__(self):
        return self

    def __rdiv__(self, other):
        """Divides the other number or tensor by this one: Python's former name of the operator."""
        return other / self

    def __iter__(self):
        if not self.ndim:
            raise TypeError('a tensor without dimensions cannot be iterated over')
        return iter(self.unbind(0))

    def __contains__(self, value):
        if not isinstance(value, RawTensor) and not is_number(value):
            raise TypeError(f'a tensor contains numbers, not {type(value).__name__}')
        return bool((self == value).any())

    def __hash__(self):
        return id(self)

    def __repr__(self):
        return self.to_string()

    def __format__(self, spec):
        is_number = not self.ndim and (spec or not isinstance(self, GTorch.Parameter))
        return format(self.item() if is_number else repr(self), spec)

    def __reversed__(self):
        return self.flip([0]) if self.ndim else self

    # --- methods of PyTorch that combine several functions ---

    def to(self, *args, dtype=None, device=None, non_blocking=False, copy=False):
        """Returns the tensor with another dtype, on another device, or with both of another tensor."""
        device, dtype, non_blocking, copy = destination(args, dtype, device, non_blocking, copy)
        device = device and device.resolve()
        if non_blocking:
            return RawTensor.to(self, dtype, device, True, copy)
        result = self
        if device is not None and device != self.device:
            result = result.to_device(device)
        if dtype not in (DType.NONE, self.dtype):
            result = result.to_dtype(dtype)
        return result.clone() if copy and result is self else result

    def cpu(self, non_blocking=False):
        return self.to('cpu', non_blocking=non_blocking)

    def cuda(self, device=None, non_blocking=False):
        return self.to(device=cuda_device(device), non_blocking=non_blocking)

    def type_as(self, other):
        return self.to(other.dtype)

    def split(self, split_size, dim=0):
        """Splits a dimension into parts of one size, or of the sizes in a list."""
        if isinstance(split_size, (list, tuple)):
            return ops.METHODS['split_with_sizes'](self, split_size, dim=dim)
        return ops.METHODS['split'](self, split_size, dim)

    def numpy(self, *, force=False):
        """Returns an array that aliases the memory, which must be the CPU's, of a tensor without a gradient; with
        @force that of the detached tensor, or of a copy on the CPU."""
        import numpy

        return numpy.asarray(self.detach().cpu() if convert_bool(force) else self)

    def __array__(self, dtype=None, copy=None):
        """Used by numpy. The array keeps the memory even after release()."""
        import numpy

        array = numpy.asarray(Shown(self))
        if dtype is not None:
            array = array.astype(dtype, copy=False)
        return array.copy() if copy else array

    def _interface(self):
        if self.is_released():
            raise RuntimeError(f'the tensor of shape {list(self.shape)} was released')
        if self.requires_grad:
            raise RuntimeError('the tensor requires a gradient: use t.detach().numpy()')
        if self.dtype not in TYPE_STRINGS:
            raise TypeError(f'numpy has no dtype {self.dtype}')
        if self.device != GTorch.Device.cpu():
            raise TypeError(f'numpy cannot see memory of {self.device}: use t.cpu().numpy()')
        self.device.synchronize(None)
        size = self.itemsize
        return {
            'shape': self.shape,
            'typestr': ('|' if size == 1 else '<') + TYPE_STRINGS[self.dtype],
            # numpy accepts no null pointer, which tensors without elements have
            'data': (self.get_data_ptr() or size, self.is_read_only()),
            'strides': tuple(s * size for s in self.get_strides()),
            'version': 3,
        }

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        from gi.overrides._gtorch_dlpack import export

        return export(self, stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self):
        from gi.overrides._gtorch_dlpack import device

        return device(self)

    def __array_namespace__(self, *, api_version=None):
        """The module of the functions of the Python array API standard."""
        from gtorch.array_api import namespace

        return namespace(api_version)

    def __copy__(self):
        return self.detach().requires_grad_(self.requires_grad)

    def __deepcopy__(self, memo):
        if not self.is_leaf:
            raise RuntimeError(
                f'a tensor that {self.get_grad_fn_name()} has computed cannot be copied deeply, with all that led to '
                'it: use t.detach() or t.clone()'
            )
        result = copied(self, memo).requires_grad_(self.requires_grad)
        memo[id(self)] = result
        if self.grad is not None:
            result.grad = self.grad.detach().clone()
        return result

    def __reduce_ex__(self, _protocol):
        from gi.overrides import _gtorch_unpickle as unpickle

        plain = self.detach()
        order = () if plain.is_contiguous() else tuple(sorted(range(plain.ndim), key=lambda dim: -plain.stride(dim)))
        if order and not plain.permute(order).is_contiguous():
            order = ()
        # a transposed tensor is one in the copy, too
        plain = (plain.permute(order) if order else plain).cpu().contiguous()
        data = bytes(plain.get_bytes().get_data() or b'')
        device = self.device.to_string()
        made = data, DType.get_name(self.dtype), plain.shape, self.requires_grad, device
        return unpickle.tensor, made + (order,) if order else made


class PythonMethods:
    """The methods that the C accelerator replaces by faster ones."""

    shape = property(lambda self: Size(self.get_shape()))
    dtype = property(lambda self: self.get_dtype())
    ndim = property(lambda self: self.get_n_dims())

    def dim(self):
        return self.get_n_dims()

    def numel(self):
        return self.get_numel()

    def item(self):
        """Returns the only element as a Python number."""
        dtype = self.get_dtype()
        if dtype in FLOATS:
            return self.item_double()
        if dtype == DType.BOOL:
            return self.item_bool()[1]
        if dtype in COMPLEX:
            return complex(*self.item_complex()[1:])
        return self.item_int()

    def __len__(self):
        if not self.get_n_dims():
            raise TypeError('a tensor without dimensions has no length')
        return self.get_size(0)

    @settled
    def __getitem__(self, key):
        return self.index(*encode(key, self.device))

    @settled
    def __setitem__(self, key, value):
        if not isinstance(value, RawTensor):
            value = value_for(self, value)
        self.index_put_inplace(*encode(key, self.device), value, False)



def value_for(target, value):
    """Converts a value that is written into @target to a tensor; a number that its dtype cannot represent
    is an error, as in fill_()."""
    dtype, device = target.dtype, target.device
    if not is_number(value):
        from gi.overrides._gtorch_create import tensor

        return tensor(value, dtype=dtype, device=device)
    if is_complex_number(value) and dtype in COMPLEX:
        part = DType.FLOAT64 if dtype == DType.COMPLEX128 else DType.FLOAT32
        return GTorch.complex(*(_filled(x, part, device) for x in (value.real, value.imag)))
    return _filled(value, dtype, device)


def _filled(value, dtype, device):
    return ops.METHODS['fill_'](GTorch.empty([], dtype, device), value)


def _with_dim(name, pair):
    """max and min: of all elements, along a dimension with the indices, or of two tensors."""
    plain, two = ops.METHODS[name], ops.METHODS.get(name + 'imum')
    along = ops.METHODS.get(f'{name}_dim')

    def method(self, *given, **options):
        if two is not None and given and isinstance(given[0], RawTensor):
            options['other'], given = given[0], given[1:]
        if 'other' in options and two is not None:
            if given or len(options) > 1:
                raise TypeError(f'{name}() takes another tensor alone, without dim and keepdim')
            return two(self, options['other'])
        values = bind(name, {'dim': None, 'keepdim': False}, given, options)
        if values['dim'] is None:
            if 'keepdim' in options or len(given) > 1:
                raise TypeError(f'{name}() needs dim for keepdim')
            return plain(self)
        return along(self, values['dim'], values['keepdim'])

    method.__name__ = method.__qualname__ = name
    method.__doc__ = pair
    method.__text_signature__ = '($self, dim=None, keepdim=False)'
    return method


_clamp_between = ops.METHODS['clamp'] if mixin is None else mixin.TensorMixin.clamp


def clamp(self, min=None, max=None):
    """Limits every element to the range from min to max: numbers, tensors or None."""
    if min is None and max is None:
        raise ValueError('clamp() needs a min, a max or both')
    if isinstance(min, RawTensor):
        self, min = self.maximum(min), None
    if isinstance(max, RawTensor):
        self, max = self.minimum(max), None
    if self.dtype not in FLOATS and (isinstance(min, float) or isinstance(max, float)):
        self = self.to(GTorch.get_default_dtype())  # like floats without a fraction
    low, high = (float('-inf') if min is None else min), (float('inf') if max is None else max)
    return _clamp_between(self, low, high)


_clamp_inplace = ops.METHODS['clamp_'] if mixin is None else mixin.TensorMixin.clamp_


def clamp_(self, min=None, max=None):
    """Limits every element to the range from min to max, in place."""
    if isinstance(min, RawTensor) or isinstance(max, RawTensor):
        return self.copy_(clamp(self, min, max))
    if min is None and max is None:
        raise ValueError('clamp_() needs a min, a max or both')
    bounds = {name: bound for name, bound in (('min', min), ('max', max)) if bound is not None}
    return _clamp_inplace(self, **bounds)


def _plain(name):
    return getattr(None if mixin is None else mixin.TensorMixin, name, None) or ops.METHODS[name]


_clamp_min, _clamp_max, _clamp_min_inplace, _clamp_max_inplace = map(
    _plain, ('clamp_min', 'clamp_max', 'clamp_min_', 'clamp_max_'))


# Equal elements share the gradient with a bound that is a tensor, as in maximum() and minimum().
def clamp_min(self, min):
    """Limits every element to at least min, a number or a tensor."""
    return self.maximum(min) if isinstance(min, RawTensor) else _clamp_min(self, min)


def clamp_max(self, max):
    """Limits every element to at most max, a number or a tensor."""
    return self.minimum(max) if isinstance(max, RawTensor) else _clamp_max(self, max)


def clamp_min_(self, min):
    """Limits every element to at least min, in place."""
    return self.copy_(self.maximum(min)) if isinstance(min, RawTensor) else _clamp_min_inplace(self, min)


def clamp_max_(self, max):
    """Limits every element to at most max, in place."""
    return self.copy_(self.minimum(max)) if isinstance(max, RawTensor) else _clamp_max_inplace(self, max)


_squeeze_those = ops.METHODS['squeeze'] if mixin is None else mixin.TensorMixin.squeeze


def squeeze(self, dim=None):
    """Removes dimensions of size 1: those in dim, where () is none, or all."""
    if isinstance(dim, (list, tuple)) and not dim:
        return self.expand(self.shape)
    return _squeeze_those(self, dim)


def lerp(self, end, weight):
    """Interpolates linearly from self to end; the weight is a number or a tensor."""
    if isinstance(weight, RawTensor) or is_complex_number(weight):
        return self + weight * (end - self)
    return _lerp_number(self, end, weight)


_lerp_number = ops.METHODS['lerp'] if mixin is None else mixin.TensorMixin.lerp
_lerp_inplace = ops.METHODS['lerp_'] if mixin is None else mixin.TensorMixin.lerp_


def lerp_(self, end, weight):
    """Interpolates linearly from self to end, in place; the weight is a number or a tensor."""
    if isinstance(weight, RawTensor) or is_complex_number(weight):
        return self.copy_(lerp(self, end, weight))
    return _lerp_inplace(self, end, weight)


def _truth(name):
    method = ops.METHODS[name]

    def call(*args, **options):
        other = args[1] if len(args) > 1 else options.get('other')
        if is_number(other):
            raise TypeError(f'{name}(): other must be a tensor, not {type(other).__name__}')
        return bool(method(*args, **options).item())

    call.__doc__ = method.__doc__
    call.__wrapped__ = method  # which has the arguments, for inspect
    return call


def conversions():
    """t.float(), t.long() and so on."""
    names = {
        'float': DType.FLOAT32,
        'double': DType.FLOAT64,
        'half': DType.FLOAT16,
        'bfloat16': DType.BFLOAT16,
        'char': DType.INT8,
        'byte': DType.UINT8,
        'short': DType.INT16,
        'int': DType.INT32,
        'long': DType.INT64,
        'bool': DType.BOOL,
        'cfloat': DType.COMPLEX64,
        'cdouble': DType.COMPLEX128,
    }
    return {name: _conversion(name, dtype) for name, dtype in names.items()}


def _conversion(name, dtype):
    def convert(self):
        return self.to(dtype)

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f'Converts the elements to {DType.get_name(dtype)}; returns the tensor itself if they are.'
    return convert


def view(self, *shape, **options):
    """Returns the elements in another shape, which shares the memory; or with a dtype, the memory as elements of it."""
    if not options and len(shape) == 1 and isinstance(shape[0], DType):
        return self.view_dtype(shape[0])
    if not shape and list(options) == ['dtype']:
        return self.view_dtype(convert_dtype(options['dtype']))
    return ops.METHODS['view'](self, *shape, **options)


def to_device(self, device, non_blocking=False, *, stream=None):
    """Returns the tensor on another device, copied in the order of @stream if one is given."""
    if stream is None:
        return ops.METHODS['to_device'](self, device, non_blocking)
    with stream:
        return ops.METHODS['to_device'](self, device, non_blocking)


def extra_methods():
    """Methods by name that are added after the operations, and may replace them."""
    methods = {
        **conversions(),
        **overloads.METHODS,
        'clamp': clamp,
        'clamp_': clamp_,
        'clamp_max': clamp_max,
        'clamp_max_': clamp_max_,
        'clamp_min': clamp_min,
        'clamp_min_': clamp_min_,
        'allclose': _truth('allclose'),
        'equal': _truth('equal'),
        'polygamma': lambda self, n: ops.FUNCTIONS['polygamma'](n, self),
        'lerp': lerp,
        'lerp_': lerp_,
        'squeeze': squeeze,
        'max': _with_dim('max', 'The greatest element, of all or along a dimension.'),
        'median': _with_dim('median', 'The middle element, of all or along a dimension.'),
        'nanmedian': _with_dim('nanmedian', 'The middle element but for NaN, of all or along a dimension.'),
        'min': _with_dim('min', 'The least element, of all or along a dimension.'),
        'reshape_as': lambda self, other: self.reshape(other.shape),
        'to_device': to_device,
        'view': view,
        'view_as': lambda self, other: self.view(other.shape),
        'expand_as': lambda self, other: self.expand(other.shape),
        'requires_grad_': TensorMethods.requires_grad_,
        'real': property(ops.METHODS['real'], doc='The real parts; they share the memory.'),
        'imag': property(ops.METHODS['imag'], doc='The imaginary parts; they share the memory.'),
    }
    for name, method in methods.items():
        if '<' in getattr(method, '__qualname__', ''):
            method.__name__ = method.__qualname__ = name
    return methods
