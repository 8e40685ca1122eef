# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What PyTorch tells of dtypes and of tensors by functions: finfo(), iinfo(), promotion, is_tensor(), numel()."""

from gi.overrides._gtorch_convert import DType, GTorch, RawTensor, convert_dtype

NAMES = {
    'float': DType.FLOAT32, 'int': DType.INT32, 'short': DType.INT16, 'cfloat': DType.COMPLEX64,
    'cdouble': DType.COMPLEX128,
}
# bits, eps, max, smallest_normal and resolution of the formats of IEEE 754 and of bfloat16
FLOATS = {
    DType.FLOAT16: (16, 2.0**-10, 65504.0, 2.0**-14, 1e-3),
    DType.BFLOAT16: (16, 2.0**-7, (2 - 2.0**-7) * 2.0**127, 2.0**-126, 1e-2),
    DType.FLOAT32: (32, 2.0**-23, (2 - 2.0**-23) * 2.0**127, 2.0**-126, 1e-6),
    DType.FLOAT64: (64, 2.0**-52, (2 - 2.0**-52) * 2.0**1023, 2.0**-1022, 1e-15),
}
PARTS = {DType.COMPLEX64: DType.FLOAT32, DType.COMPLEX128: DType.FLOAT64}
INTEGERS = (DType.UINT8, DType.INT8, DType.INT16, DType.INT32, DType.INT64)


def _dtype(name, value):
    if value is None:
        raise TypeError(f'{name}() takes a dtype, not None')
    return convert_dtype(value)


class finfo:  # noqa: N801: PyTorch's name
    """The limits of a floating-point dtype; of a complex one, those of its parts.

    >>> GTorch.finfo(GTorch.float16).max
    65504.0
    """

    def __init__(self, *type):
        if len(type) > 1:
            raise TypeError(f'finfo() takes one dtype, not {len(type)}')
        dtype = _dtype('finfo', type[0]) if type else GTorch.get_default_dtype()
        dtype = PARTS.get(dtype, dtype)
        if dtype not in FLOATS:
            raise TypeError(f'finfo(): {DType.get_name(dtype)} is no floating-point dtype: use iinfo()')
        self.bits, self.eps, self.max, self.smallest_normal, self.resolution = FLOATS[dtype]
        self.min, self.tiny, self.dtype = -self.max, self.smallest_normal, DType.get_name(dtype)

    def __eq__(self, other):
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self):
        return hash(self.dtype)

    def __repr__(self):
        names = 'resolution', 'min', 'max', 'eps', 'smallest_normal', 'tiny', 'dtype'
        return f'finfo({", ".join(f"{name}={getattr(self, name)}" for name in names)})'


class iinfo:  # noqa: N801
    """The limits of a dtype of integers."""

    def __init__(self, type):
        dtype = _dtype('iinfo', type)
        if dtype not in INTEGERS:
            raise TypeError(f'iinfo(): {DType.get_name(dtype)} is no dtype of integers')
        self.bits, self.dtype = 8 * dtype.itemsize, DType.get_name(dtype)
        is_signed = dtype.is_signed
        self.min = -(2 ** (self.bits - 1)) if is_signed else 0
        self.max = 2 ** (self.bits - is_signed) - 1

    def __eq__(self, other):
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self):
        return hash(self.dtype)

    def __repr__(self):
        return f'iinfo(min={self.min}, max={self.max}, dtype={self.dtype})'


def _category(dtype):
    """0 for bool, 1 for integers, 2 for floating-point and 3 for complex numbers."""
    if dtype.is_complex:
        return 3
    return 2 if dtype.is_floating_point else int(dtype != DType.BOOL)


def can_cast(from_, to):
    """Tells whether PyTorch's rules of promotion let a result of dtype @from_ be stored with dtype @to."""
    return _category(_dtype('can_cast', from_)) <= _category(_dtype('can_cast', to))


def promote_types(type1, type2):
    """The smallest dtype with the size and the kind of both."""
    return DType.promote(_dtype('promote_types', type1), _dtype('promote_types', type2))


def _of_number(value, name):
    if isinstance(value, bool):
        return DType.BOOL
    if isinstance(value, int):
        return DType.INT64
    default = GTorch.get_default_dtype()
    if isinstance(value, float):
        return default
    if isinstance(value, complex):
        return DType.COMPLEX128 if default == DType.FLOAT64 else DType.COMPLEX64
    raise TypeError(f'result_type(): {name} must be a tensor or a number, not {type(value).__name__}')


def result_type(tensor1, tensor2):
    """The dtype that an operation of two tensors or numbers has: of one kind, tensors with dimensions count more than
    those without, and these more than numbers."""
    found = [None, None, None]
    for name, value in (('tensor1', tensor1), ('tensor2', tensor2)):
        is_tensor = isinstance(value, RawTensor)
        place = (0 if value.dim() > 0 else 1) if is_tensor else 2
        dtype = value.dtype if is_tensor else _of_number(value, name)
        found[place] = dtype if found[place] is None else DType.promote(found[place], dtype)
    result = None
    for dtype in found:
        if dtype is None:
            continue
        if result is None:
            result = dtype
        elif _category(dtype) > _category(result):
            # a complex number beside real ones takes their precision
            keeps = _category(dtype) == 3 and _category(result) == 2
            wide = DType.COMPLEX128 if result == DType.FLOAT64 else DType.COMPLEX64
            result = wide if keeps else dtype
    return result


def is_tensor(obj):
    """Tells whether an object is a tensor."""
    return isinstance(obj, RawTensor)


def _of_tensor(name, call, doc):
    def function(input):
        if not isinstance(input, RawTensor):
            raise TypeError(f'{name}(): input must be a tensor, not {type(input).__name__}')
        return call(input)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _is_nonzero(tensor):
    if tensor.numel() != 1:
        raise RuntimeError(f'is_nonzero(): the tensor must have one element, its shape is {tuple(tensor.shape)}')
    return bool(tensor.item())


FUNCTIONS = {
    'is_complex': (lambda x: x.dtype.is_complex, 'Tells whether a tensor has a complex dtype.'),
    'is_floating_point': (lambda x: x.dtype.is_floating_point, 'Tells whether a tensor has a floating-point dtype.'),
    'is_nonzero': (_is_nonzero, 'Tells whether a tensor of one element is not 0.'),
    'numel': (lambda x: x.numel(), 'The number of elements of a tensor.'),
}


def install(export, tensor):
    for name, value in NAMES.items():
        export(name, value)
    export('dtype', DType)
    for function in (finfo, iinfo, can_cast, promote_types, result_type, is_tensor):
        export(function.__name__, function)
    for name, (call, doc) in FUNCTIONS.items():
        function = export(name, _of_tensor(name, call, doc))
        if not hasattr(tensor, name):
            setattr(tensor, name, function)
