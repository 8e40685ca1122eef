# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tensors from lists, numbers, buffers and arrays."""

import numbers

from gi.repository import GLib

from gi.overrides._gtorch_convert import (
    DType,
    GTorch,
    RawTensor,
    convert_bool,
    convert_device,
    convert_double,
    convert_dtype,
    convert_integers,
    convert_sizes,
    is_complex_number,
    make_number,
    plain_number,
    convert_whole,
)
from gi.overrides._gtorch_mixin import mixin
from gi.overrides._gtorch_ops import FUNCTIONS

BUFFER_FORMATS = {
    'f': DType.FLOAT32,
    'd': DType.FLOAT64,
    'e': DType.FLOAT16,
    'b': DType.INT8,
    'B': DType.UINT8,
    'h': DType.INT16,
    'i': DType.INT32,
    '?': DType.BOOL,
    'Zf': DType.COMPLEX64,
    'Zd': DType.COMPLEX128,
}
for _name in 'lq':
    BUFFER_FORMATS[_name] = DType.INT64 if memoryview(b'').cast('l').itemsize == 8 else DType.INT32
BUFFER_FORMATS['q'] = DType.INT64


MAX_DIMS = 16  # GTORCH_MAX_DIMS


def _flatten(data, shape, depth, values, dtypes):
    if depth == len(shape):
        if isinstance(data, (list, tuple)):
            raise ValueError(f'a number was expected at depth {depth}, not a sequence')
        if hasattr(data, 'item'):
            dtypes.add(data.dtype)
            data = data.item()
        else:
            dtypes.add(type(data))
        values.append(data)
        return
    if not isinstance(data, (list, tuple, range)) or len(data) != shape[depth]:
        what = f'{len(data)} items' if hasattr(data, '__len__') else type(data).__name__
        raise ValueError(f'expected {shape[depth]} items at depth {depth}, got {what}')
    for item in data:
        _flatten(item, shape, depth + 1, values, dtypes)


def _common(kinds, default):
    """The dtype of numbers with dtypes of their own, those of numpy and of tensors, and of Python's."""
    own = {float: default, complex: DType.COMPLEX128 if default == DType.FLOAT64 else DType.COMPLEX64}
    found = DType.NONE
    for kind in kinds:
        one = own.get(kind) or convert_dtype(kind)
        found = one if found == DType.NONE else GTorch.dtype_promote(found, one)
    return found


def _from_list(data, dtype, device, default=None):
    """A tensor of nested lists; @default is the dtype of floats that have none, or None for the default dtype."""
    default = GTorch.get_default_dtype() if default is None else default
    shape, inner = [], data
    while isinstance(inner, (list, tuple, range)):
        shape.append(len(inner))
        if len(shape) > MAX_DIMS:
            raise ValueError(f'a tensor has at most {MAX_DIMS} dimensions: lists are nested deeper')
        if not inner:
            break
        inner = inner[0]
    if (isinstance(inner, RawTensor) or hasattr(inner, '__array_interface__')) and inner.ndim and shape:
        parts = (
            _from_list(d, dtype, device, default) if isinstance(d, (list, tuple)) else tensor(d, dtype or None, device)
            for d in data
        )
        return GTorch.stack(list(parts), 0)
    values, dtypes = [], set()
    _flatten(data, shape, 0, values, dtypes)
    kinds = {type(v) for v in values}
    for kind in kinds:
        if kind is DType or not issubclass(kind, (bool, int, float, complex)):
            raise TypeError(f'a tensor is made of numbers, not of {kind.__name__}')
    if dtype == DType.NONE and not dtypes <= kinds:
        dtype = _common(dtypes, default)
    if any(issubclass(k, complex) for k in kinds):
        if dtype not in (DType.NONE, DType.BOOL, DType.COMPLEX64, DType.COMPLEX128):
            raise TypeError(f'a tensor of {dtype} is made of real numbers, not of complex ones')
        wide = dtype == DType.COMPLEX128 or default == DType.FLOAT64
        target = DType.COMPLEX128 if wide else DType.COMPLEX64
        parts = [part for v in map(complex, values) for part in (v.real, v.imag)]
        made = RawTensor.new_from_doubles(parts, shape, target, device)
    elif kinds == {bool}:
        made = RawTensor.new_from_bools(values, shape, device)
    elif any(issubclass(k, float) for k in kinds) or not kinds:
        plain = dtype if dtype not in (DType.NONE, DType.COMPLEX64, DType.COMPLEX128) else default
        target = DType.FLOAT64 if dtype == DType.COMPLEX128 else plain
        made = RawTensor.new_from_doubles([float(v) for v in values], shape, target, device)
    else:
        whole = dtype in (DType.NONE, DType.BOOL, DType.COMPLEX64, DType.COMPLEX128)
        target = DType.INT64 if whole else dtype
        made = RawTensor.new_from_ints([int(v) for v in values], shape, target, device)
    return made.to_dtype(dtype) if dtype not in (DType.NONE, made.get_dtype()) else made


def _from_buffer(data, dtype, device):
    try:
        view = memoryview(data)
    except TypeError:
        kind = type(data).__name__
        raise TypeError(f'a tensor is made of numbers, lists of them or an array, not of {kind}') from None
    name = view.format.lstrip('@=<')
    if name not in BUFFER_FORMATS:
        raise TypeError(f'no dtype has the elements of a buffer of format {view.format!r}')
    made = RawTensor.new_from_bytes(
        GLib.Bytes.new(view.tobytes()), BUFFER_FORMATS[name], list(view.shape)
    ).clone()
    return made.to(device=device, dtype=dtype if dtype != DType.NONE else None)


def tensor(data, dtype=None, device=None, requires_grad=False):
    """Copies numbers, nested lists of them, or an array into a new tensor.

    GTorch.tensor([[1, 2], [3, 4]], dtype=GTorch.float32)
    """
    dtype, device = convert_dtype(dtype), convert_device(device)
    if isinstance(data, RawTensor):
        made = data.detach().clone().to(device=device, dtype=None if not dtype else dtype)
    elif isinstance(data, (list, tuple, range)) or type(data) in (int, float, bool, complex):
        made = _from_list(data, dtype, device)
    elif isinstance(data, numbers.Number) or type(data).__name__ == 'bool_':
        made = _from_list(data, dtype, device)
    else:
        made = _from_buffer(data, dtype, device)
    return made.requires_grad_() if convert_bool(requires_grad) else made


def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
    """Copies numbers, nested lists of them, or an array into a new tensor with the dtype and device of this one."""
    dtype = self.dtype if dtype is None else dtype
    return tensor(data, dtype, self.device if device is None else device, requires_grad)


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False):
    """A tensor of a tensor, an array, a buffer, or nested lists of numbers, whose memory it shares if possible; never
    if @copy, and raises where it cannot if @copy is False."""
    if copy:
        return tensor(obj, dtype, device, requires_grad)
    made = as_tensor(obj, dtype, device)
    if copy is False and not _shares(made, obj):
        raise ValueError('asarray(): the memory cannot be shared, as copy=False demands')
    if not convert_bool(requires_grad):
        return made
    if isinstance(obj, RawTensor):
        made = made.detach()
    return made.requires_grad_()


def _shares(made, obj):
    if isinstance(obj, RawTensor):
        return made.data_ptr() == obj.data_ptr()
    interface = getattr(obj, '__array_interface__', None) or getattr(obj, '__cuda_array_interface__', None)
    return interface is not None and interface['data'][0] == made.data_ptr()


def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False):
    """A vector of @count elements, all if -1, from @offset bytes on in an object with the buffer protocol, whose memory
    it shares, by numpy. The tensor of a read-only buffer is read-only."""
    import numpy

    dtype, count, offset = convert_dtype(dtype), convert_whole(count), convert_whole(offset)
    view = memoryview(buffer)
    if not view.c_contiguous:
        raise ValueError('frombuffer(): the buffer must be contiguous')
    n_bytes, size = view.nbytes, dtype.itemsize
    if not 0 <= offset < n_bytes:
        raise ValueError(f'frombuffer(): offset is {offset}, and the buffer has {n_bytes} bytes')
    rest = n_bytes - offset
    if count < 0 and rest % size != 0:
        raise ValueError(f'frombuffer(): {rest} bytes are no whole number of elements of {size}')
    count = rest // size if count < 0 else count
    if count == 0 or count * size > rest:
        raise ValueError(f'frombuffer(): count is {count}, and {rest} bytes have room for {rest // size}')
    if dtype == DType.BFLOAT16:
        raise NotImplementedError('frombuffer(): numpy, by which the memory is shared, has no bfloat16')
    made = from_numpy(numpy.frombuffer(view, DType.get_name(dtype), count, offset))
    return made.requires_grad_() if convert_bool(requires_grad) else made


def as_tensor(data, dtype=None, device=None):
    """Does the same as tensor(), but shares the memory of a tensor or an array if possible."""
    if isinstance(data, RawTensor):
        return data.to(device=device, dtype=dtype)
    if hasattr(data, '__dlpack__'):
        try:
            return from_dlpack(data).to(device=device, dtype=dtype)
        except (BufferError, TypeError):
            pass
    return tensor(data, dtype, device)


def as_shown(data):
    """A tensor of a list or an array for what shows its numbers: floats of Python keep all their digits, whatever the
    default dtype is, since nothing is computed with them."""
    if isinstance(data, (list, tuple, range)):
        return _from_list(list(data), DType.NONE, None, DType.FLOAT64)
    return as_tensor(data)


def from_dlpack(source):
    """Aliases the memory of another library's array, without a copy; for an array on a GPU, on the same
    GPU, and ordered with the current stream of this thread there."""
    from gi.overrides._gtorch_dlpack import ask, import_capsule

    return import_capsule(ask(source) if hasattr(source, '__dlpack__') else source)


def from_numpy(array):
    """Aliases the memory of a numpy array, without a copy. The tensor of a read-only array is read-only."""
    if not hasattr(array, '__array_interface__') or not hasattr(array, 'flags') or not hasattr(array, '__dlpack__'):
        kind = type(array).__name__
        raise TypeError(f'from_numpy takes an array of numpy, not {kind}: use GTorch.tensor(), which copies')
    if not array.flags.writeable:
        return _read_only(array)
    if array.dtype.kind != 'b':
        return from_dlpack(array)
    from gi.overrides._gtorch_dlpack import ask_for_bools, import_capsule

    return import_capsule(ask_for_bools(array))


def _read_only(array):
    """Shares the memory of a read-only array."""
    way_out = 'use GTorch.tensor(array), which copies'
    if mixin is None or not array.flags.c_contiguous:
        why = 'needs the C accelerator' if mixin is None else 'must be contiguous'
        raise BufferError(f'from_numpy: a read-only array {why} to be shared: {way_out}')
    name = memoryview(array).format.lstrip('@=<')
    if name not in BUFFER_FORMATS or not array.dtype.isnative:
        raise TypeError(f'from_numpy: no dtype has the elements of an array of {array.dtype}')
    return RawTensor.new_from_bytes(mixin.share(array), BUFFER_FORMATS[name], list(array.shape))


def _parameter(value, other):
    """Returns a parameter of a distribution, a number beside a tensor: exact, and without influence on
    the dtype of the result."""
    if isinstance(value, RawTensor):
        return value
    kind = DType.FLOAT64 if other.ndim else other.dtype
    return make_number(convert_double(value), kind, other.device)


def normal(mean, std=None, size=None, *, generator=None, dtype=None, device=None):
    """Draws normally distributed numbers: with the means and standard deviations in two tensors, or in a
    tensor and a number, whose shapes are broadcast; or from one distribution, normal(mean, std, size)."""
    one = mean if isinstance(mean, RawTensor) else std
    if isinstance(one, RawTensor):
        if (size, dtype, device) != (None, None, None):
            raise TypeError('normal(): size, dtype and device belong to a mean and a std that are numbers')
        other = mean if one is std else 1.0 if std is None else std
        other = _parameter(other, one)
        return GTorch.normal_around(*((other, one) if one is std else (one, other)), generator)
    if std is None or size is None:
        raise TypeError('normal() takes a mean, a std and a size, or tensors of means or stds')
    made = GTorch.empty(convert_sizes(size), convert_dtype(dtype), convert_device(device))
    return made.normal_(mean, std, generator)


_randint = FUNCTIONS['randint']


def randint(*args, **options):
    """Makes integers from low (0 if one number is given) up to before high: randint(low, high, size) or randint(high,
    size)."""
    n_numbers = sum(name in options for name in ('low', 'high'))
    for arg in args[:2]:
        if hasattr(arg, '__iter__') and not getattr(arg, 'ndim', 1) == 0:
            break
        n_numbers += 1
    if n_numbers == 1 and 'low' not in options:
        args = (0, *args)
    return _randint(*args, **options)


def arange(start=None, end=None, step=1, dtype=None, device=None):
    """Returns the numbers from start (0 if one number is given) to end (exclusive), with a distance of
    step."""
    if end is None:
        start, end = None, start
    if end is None:
        raise TypeError('arange() takes an end')
    start = 0 if start is None else start
    start, end, step = map(plain_number, (start, end, step))
    dtype = convert_dtype(dtype)
    if dtype == DType.NONE and all(isinstance(v, numbers.Integral) for v in (start, end, step)):
        dtype = DType.INT64
    whole = convert_integers(start, end, step)
    if whole is not None:
        return GTorch.arange_int(*whole, dtype, convert_device(device))
    return GTorch.arange(*map(convert_double, (start, end, step)), dtype, convert_device(device))


def full(size, fill_value, dtype=None, device=None):
    """Returns a tensor in which every element is fill_value."""
    dtype, value = convert_dtype(dtype), plain_number(fill_value)
    if dtype == DType.NONE and isinstance(value, bool):
        dtype = DType.BOOL
    elif dtype == DType.NONE and isinstance(value, numbers.Integral):
        dtype = DType.INT64
    size = convert_sizes(size)
    if is_complex_number(value):
        return tensor(complex(value), dtype or DType.COMPLEX64, device).expand(size).clone()
    whole = convert_integers(value)
    if whole is not None:
        return GTorch.full_int(size, *whole, dtype, convert_device(device))
    return GTorch.full(size, convert_double(value), dtype, convert_device(device))
