# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Dtypes of the array API standard: kinds, promotion, limits, and what a program may ask of the namespace."""

from gi.repository import GTorch as torch

KINDS = {
    'bool': ('bool',),
    'signed integer': ('int8', 'int16', 'int32', 'int64'),
    'unsigned integer': ('uint8',),
    'real floating': ('float32', 'float64'),
    'complex floating': ('complex64', 'complex128'),
}
KINDS['integral'] = KINDS['signed integer'] + KINDS['unsigned integer']
KINDS['numeric'] = KINDS['integral'] + KINDS['real floating'] + KINDS['complex floating']
NAMES = KINDS['bool'] + KINDS['numeric']
MAX_DIMS = 16  # of the library's tensors

_OF_KIND = {kind: tuple(getattr(torch, name) for name in names) for kind, names in KINDS.items()}


def is_number(value):
    """Is @value a number of Python? A dtype is an int, too."""
    return isinstance(value, (bool, int, float, complex)) and not isinstance(value, torch.DType)


def check(name, x):
    """Returns @x if it is a tensor."""
    if not isinstance(x, torch.Tensor):
        raise TypeError(f'{name}() takes a tensor, not {type(x).__name__}')
    return x


def dtype_of(name, value):
    """The dtype of a tensor, or a dtype."""
    if isinstance(value, torch.Tensor):
        return value.dtype
    if isinstance(value, torch.DType):
        return value
    raise TypeError(f'{name}() takes tensors and dtypes, not {type(value).__name__}')


def with_number(name, dtype, value):
    """The dtype of a result of tensors of @dtype and a number of Python."""
    if isinstance(value, bool):
        fits = dtype == torch.bool
    elif isinstance(value, int):
        fits = dtype != torch.bool
    elif isinstance(value, float):
        fits = dtype.is_floating_point or dtype.is_complex
    else:
        if dtype.is_floating_point:
            return torch.complex128 if dtype == torch.float64 else torch.complex64
        fits = dtype.is_complex
    if not fits:
        text = f'{name}(): the number {value!r} of type {type(value).__name__} has no promotion with {dtype}'
        raise TypeError(f'{text}: give it as a tensor')
    return dtype


def promoted(name, values):
    """The dtype of a result of tensors, dtypes and numbers, where dimensions do not matter."""
    dtype, numbers = None, []
    for value in values:
        if is_number(value):
            numbers.append(value)
        else:
            found = dtype_of(name, value)
            dtype = found if dtype is None else torch.promote_types(dtype, found)
    if dtype is None:
        raise ValueError(f'{name}() takes at least one tensor or dtype')
    for value in numbers:
        dtype = with_number(name, dtype, value)
    return dtype


def result_type(*arrays_and_dtypes):
    """The dtype of a result of tensors, dtypes and numbers of Python. Tensors without dimensions count like others."""
    return promoted('result_type', arrays_and_dtypes)


def can_cast(from_, to, /):
    """Tells whether a tensor or a dtype can become of dtype @to by promotion, without loss."""
    found = dtype_of('can_cast', from_)
    return torch.promote_types(found, dtype_of('can_cast', to)) == to


def isdtype(dtype, kind):
    """Tells whether a dtype is @kind: another dtype, the name of a kind such as `'real floating'`, or one of a tuple of
    these."""
    if not isinstance(dtype, torch.DType):
        raise TypeError(f'isdtype() takes a dtype, not {type(dtype).__name__}')
    if isinstance(kind, tuple):
        if any(isinstance(one, tuple) for one in kind):
            raise TypeError('isdtype(): the tuple of kinds has tuples')
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str):
        if kind not in _OF_KIND:
            raise ValueError(f'isdtype(): {kind!r} is no kind: there are {", ".join(map(repr, _OF_KIND))}')
        return dtype in _OF_KIND[kind]
    return dtype == dtype_of('isdtype', kind)


def _float(value):
    return torch.float64 if value == torch.complex128 else torch.float32 if value == torch.complex64 else value


class finfo_object:  # noqa: N801: the standard has no name for it
    """The limits of a floating-point dtype."""

    def __init__(self, dtype):
        found = torch.finfo(dtype)
        self.bits, self.eps, self.max, self.min = found.bits, found.eps, found.max, found.min
        self.smallest_normal, self.dtype = found.smallest_normal, _float(dtype)

    def __repr__(self):
        return f'finfo(bits={self.bits}, eps={self.eps}, max={self.max}, min={self.min}, dtype={self.dtype})'


class iinfo_object:  # noqa: N801
    """The limits of a dtype of integers."""

    def __init__(self, dtype):
        found = torch.iinfo(dtype)
        self.bits, self.max, self.min, self.dtype = found.bits, found.max, found.min, dtype

    def __repr__(self):
        return f'iinfo(bits={self.bits}, max={self.max}, min={self.min}, dtype={self.dtype})'


def finfo(type, /):
    """The limits of a floating-point dtype, or of that of a tensor: `bits`, `eps`, `max`, `min`, `smallest_normal` and
    `dtype`."""
    return finfo_object(dtype_of('finfo', type))


def iinfo(type, /):
    """The limits of a dtype of integers, or of that of a tensor: `bits`, `max`, `min` and `dtype`."""
    return iinfo_object(dtype_of('iinfo', type))


def astype(x, dtype, /, *, copy=True, device=None):
    """A copy of a tensor with another dtype; the tensor itself, if nothing changes and not @copy."""
    if check('astype', x).dtype.is_complex and not dtype_of('astype', dtype).is_complex:
        raise TypeError(f'astype(): {x.dtype} cannot become {dtype}: take real() or imag()')
    return x.to(device, dtype=dtype, copy=copy) if device is not None else x.to(dtype=dtype, copy=copy)


class __array_namespace_info__:  # noqa: N801: the standard's name
    """What a program may ask of this namespace."""

    def capabilities(self):
        """What of the optional behaviour of the standard there is."""
        return {'boolean indexing': True, 'data-dependent shapes': True, 'max dimensions': MAX_DIMS}

    def default_device(self):
        """The device of tensors that are created without one."""
        return torch.get_default_device()

    def devices(self):
        """All devices."""
        return [torch.device('cpu'), *(torch.device('cuda', i) for i in range(torch.cuda.device_count()))]

    def default_dtypes(self, *, device=None):
        """The dtypes of tensors that are created without one; they are the same on all devices."""
        real = torch.get_default_dtype()
        return {
            'real floating': real,
            'complex floating': torch.complex128 if real == torch.float64 else torch.complex64,
            'integral': torch.int64,
            'indexing': torch.int64,
        }

    def dtypes(self, *, device=None, kind=None):
        """The standard's dtypes that there are, or those of a kind or a tuple of kinds, by their names."""
        if kind is not None and not isinstance(kind, (str, tuple)):
            raise TypeError(f'dtypes(): kind is the name of a kind or a tuple of names, not {type(kind).__name__}')
        kind = tuple(KINDS) if kind is None else kind
        return {name: getattr(torch, name) for name in NAMES if isdtype(getattr(torch, name), kind)}
