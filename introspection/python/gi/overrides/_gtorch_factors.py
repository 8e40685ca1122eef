# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Operations whose numbers may be complex, which C takes as real ones only: these are composed of others."""

from gi.overrides import _gtorch_ops as ops
from gi.overrides._gtorch_arguments import FACTORIES
from gi.overrides._gtorch_convert import (
    DType,
    GTorch,
    RawTensor,
    convert_dtype,
    convert_sizes,
    convert_variadic,
    is_complex_number,
)

METHODS, FUNCTIONS = {}, {}
REAL = {DType.COMPLEX64: DType.FLOAT32, DType.COMPLEX128: DType.FLOAT64}


def _form(table, name):
    """Registers a form of an operation, whose documentation it has."""

    def register(function):
        function.__name__ = function.__qualname__ = name
        function.__doc__ = (ops.METHODS.get(name) or ops.FUNCTIONS[name]).__doc__
        table[name] = function
        return function

    return register


def _scaled(name, first, second, product):
    """beta times a tensor and alpha times a product."""
    plain = ops.METHODS[name]

    def call(self, *given, **options):
        beta, alpha = options.get('beta', 1), options.get('alpha', 1)
        if not (is_complex_number(beta) or is_complex_number(alpha)):
            return plain(self, *given, **options)
        names = [part for part in (first, second) if part in options]
        parts = [*given, *(options[part] for part in names)]
        unknown = [key for key in options if key not in (*names, 'beta', 'alpha')]
        if unknown or len(parts) != 2:
            raise TypeError(f'{name}() takes two tensors, beta and alpha, not {len(parts)} tensors and {unknown}')
        made = alpha * product(*parts)
        return made.expand(_broadcast(self, made)) if beta == 0 else beta * self + made

    return _form(METHODS, name)(call)


def _broadcast(a, b):
    return GTorch.broadcast_tensors([a, b])[1].shape


def _summed(a, b):
    return ops.METHODS['bmm'](a, b).sum(0)


_scaled('addmm', 'mat1', 'mat2', ops.METHODS['mm'])
_scaled('addmv', 'mat', 'vec', ops.METHODS['mv'])
_scaled('addr', 'vec1', 'vec2', ops.METHODS['outer'])
_scaled('addbmm', 'batch1', 'batch2', _summed)
_scaled('baddbmm', 'batch1', 'batch2', ops.METHODS['bmm'])


def _is_complex(value):
    return is_complex_number(value) or (isinstance(value, RawTensor) and value.is_complex())


def _number(value):
    return complex(value.item() if isinstance(value, RawTensor) else value)


def _dtype_of(dtype):
    """The dtype of complex numbers that are made, and that of their parts."""
    dtype = convert_dtype(dtype)
    if dtype == DType.NONE:
        dtype = DType.COMPLEX128 if GTorch.get_default_dtype() == DType.FLOAT64 else DType.COMPLEX64
    return dtype


def _complex_line(start, end, steps, dtype, device):
    start, end = _number(start), _number(end)
    parts = ((start.real, end.real), (start.imag, end.imag))
    return GTorch.complex(*(ops.FUNCTIONS['linspace'](*part, steps, REAL[dtype], device) for part in parts))


@_form(FUNCTIONS, 'linspace')
def linspace(start, end, steps, dtype=None, device=None):
    if not (_is_complex(start) or _is_complex(end) or convert_dtype(dtype) in REAL):
        return ops.FUNCTIONS['linspace'](start, end, steps, dtype, device)
    dtype = _dtype_of(dtype)
    if dtype not in REAL:
        raise TypeError(f'linspace(): complex ends are not for {dtype}')
    return _complex_line(start, end, steps, dtype, device)


@_form(FUNCTIONS, 'logspace')
def logspace(start, end, steps, base=10.0, dtype=None, device=None):
    if not (any(map(_is_complex, (start, end, base))) or convert_dtype(dtype) in REAL):
        return ops.FUNCTIONS['logspace'](start, end, steps, base, dtype, device)
    dtype = _dtype_of(dtype)
    if dtype not in REAL:
        raise TypeError(f'logspace(): complex numbers are not for {dtype}')
    exponents = _complex_line(start, end, steps, dtype, device)
    return ops.METHODS['pow'](FACTORIES['full']((), _number(base), dtype=dtype, device=exponents.device), exponents)


@_form(METHODS, 'full_like')
def full_like(self, fill_value, dtype=None):
    if not _is_complex(fill_value):
        return ops.METHODS['full_like'](self, fill_value, dtype)
    return FACTORIES['full'](self.shape, fill_value, dtype=convert_dtype(dtype) or self.dtype, device=self.device)


@_form(METHODS, 'new_full')
def new_full(self, size, fill_value, dtype=None):
    if not _is_complex(fill_value):
        return ops.METHODS['new_full'](self, size, fill_value, dtype)
    dtype = convert_dtype(dtype) or self.dtype
    return FACTORIES['full'](convert_sizes(size), fill_value, dtype=dtype, device=self.device)


@_form(METHODS, 'constant_pad_nd')
def constant_pad_nd(self, pad, value=0):
    plain = ops.METHODS['constant_pad_nd']
    if not (_is_complex(self) and is_complex_number(value)):
        return plain(self, pad, value)
    parts = ops.METHODS['view_as_real'](self).unbind(-1)
    return GTorch.complex(*(plain(part, pad, number) for part, number in zip(parts, (value.real, value.imag))))


# --- random numbers ---


def _complex_normal(name, size, dtype, device, generator):
    """Numbers whose parts are normally distributed, with half of the variance each; or uniformly."""
    made = ops.FUNCTIONS[name]([*size, 2], REAL[dtype], device, generator)
    return ops.METHODS['view_as_complex'](made * 0.5**0.5 if name == 'randn' else made)


def _random(name):
    plain, plain_like = ops.FUNCTIONS[name], ops.METHODS[f'{name}_like']

    def call(*given, size=None, dtype=None, device=None, generator=None):
        if convert_dtype(dtype) not in REAL:
            return plain(*given, size=size, dtype=dtype, device=device, generator=generator)
        shape, *_rest = convert_variadic(name, given, size)
        return _complex_normal(name, shape, convert_dtype(dtype), device, generator)

    def call_like(self, dtype=None, generator=None):
        kind = convert_dtype(dtype) or self.dtype
        if kind not in REAL:
            return plain_like(self, dtype, generator)
        return _complex_normal(name, self.shape, kind, self.device, generator)

    _form(FUNCTIONS, name)(call)
    _form(METHODS, f'{name}_like')(call_like)


_random('rand')
_random('randn')


def _drawn(name):
    """normal_() and uniform_(), of which complex tensors draw both parts."""
    plain = ops.METHODS[name]

    def call(self, *given, **options):
        if not self.is_complex():
            return plain(self, *given, **options)
        parts = ops.METHODS['view_as_real'](self.detach())
        if name == 'normal_':
            _normal_parts(parts, *given, **options)
        else:
            plain(parts, *given, **options)
        return self.copy_(ops.METHODS['view_as_complex'](parts))

    return _form(METHODS, name)(call)


for _name in ('normal_', 'uniform_'):
    _drawn(_name)


def _normal_parts(parts, mean=0.0, std=1.0, generator=None):
    ops.METHODS['normal_'](parts, 0.0, std * 0.5**0.5, generator)
    for part, number in zip(parts.unbind(-1), (complex(mean).real, complex(mean).imag)):
        part.add_(number)


# --- factors of matrices ---


def lu(A, pivot=True, get_infos=False):
    """The factors P, L and U of matrices in one matrix, and the rows that were exchanged; with get_infos also
    whether U is singular."""
    found = ops.FUNCTIONS['linalg_lu_factor_ex'](A, pivot, not get_infos)
    return tuple(found) if get_infos else tuple(found)[:2]


FUNCTIONS['lu'] = METHODS['lu'] = lu
