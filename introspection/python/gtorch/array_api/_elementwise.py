# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The functions of the array API standard that compute each element by itself."""

from gi.repository import GTorch as torch

from gtorch.array_api._dtypes import check, is_number, promoted

# The standard's names and those of the library, where these differ.
ONE = {
    'abs': 'abs', 'acos': 'acos', 'acosh': 'acosh', 'asin': 'asin', 'asinh': 'asinh', 'atan': 'atan', 'atanh': 'atanh',
    'bitwise_invert': 'bitwise_not', 'ceil': 'ceil', 'cos': 'cos', 'cosh': 'cosh', 'exp': 'exp', 'expm1': 'expm1',
    'floor': 'floor', 'isfinite': 'isfinite', 'isinf': 'isinf', 'isnan': 'isnan', 'log': 'log', 'log10': 'log10',
    'log1p': 'log1p', 'log2': 'log2', 'logical_not': 'logical_not', 'negative': 'neg', 'reciprocal': 'reciprocal',
    'signbit': 'signbit', 'sin': 'sin', 'sinh': 'sinh', 'sqrt': 'sqrt', 'square': 'square', 'tan': 'tan',
    'tanh': 'tanh', 'trunc': 'trunc',
}  # fmt: skip
TWO = {
    'add': 'add', 'atan2': 'atan2', 'bitwise_and': 'bitwise_and', 'bitwise_left_shift': 'bitwise_left_shift',
    'bitwise_or': 'bitwise_or', 'bitwise_right_shift': 'bitwise_right_shift', 'bitwise_xor': 'bitwise_xor',
    'copysign': 'copysign', 'divide': 'div', 'equal': 'eq', 'floor_divide': 'floor_divide', 'greater': 'gt',
    'greater_equal': 'ge', 'hypot': 'hypot', 'less': 'lt', 'less_equal': 'le', 'logaddexp': 'logaddexp',
    'logical_and': 'logical_and', 'logical_or': 'logical_or', 'logical_xor': 'logical_xor', 'maximum': 'maximum',
    'minimum': 'minimum', 'multiply': 'mul', 'nextafter': 'nextafter', 'not_equal': 'ne', 'pow': 'pow',
    'subtract': 'sub',
}  # fmt: skip


def together(name, *values):
    """Tensors and numbers as tensors of the dtype of the result, on one device."""
    dtype = promoted(name, values)
    device = next(value.device for value in values if isinstance(value, torch.Tensor))
    found = []
    for value in values:
        if is_number(value):
            value = torch.full((), value, dtype=dtype, device=device)
        found.append(value if value.dtype == dtype else value.to(dtype))
    return found


def _one(name, function):
    def call(x, /):
        return function(check(name, x))

    return _named(call, name, function)


def _two(name, function):
    def call(x1, x2, /):
        if not isinstance(x1, torch.Tensor) and not isinstance(x2, torch.Tensor):
            raise TypeError(f'{name}() takes at least one tensor, not {type(x1).__name__} and {type(x2).__name__}')
        return function(*together(name, x1, x2))

    return _named(call, name, function)


def _named(call, name, function):
    call.__name__ = call.__qualname__ = name
    call.__doc__ = (function.__doc__ or '').partition('\n\n')[0] or f'The function {name}() of the array API standard.'
    return call


for _table, _make in ((ONE, _one), (TWO, _two)):
    for _name, _function in _table.items():
        globals()[_name] = _make(_name, getattr(torch, _function))


def remainder(x1, x2, /):
    """What is left of dividing, with the sign of @x2, a zero as well."""
    if not isinstance(x1, torch.Tensor) and not isinstance(x2, torch.Tensor):
        raise TypeError(f'remainder() takes at least one tensor, not {type(x1).__name__} and {type(x2).__name__}')
    x1, x2 = together('remainder', x1, x2)
    found = torch.remainder(x1, x2)
    return torch.where(found == 0, torch.copysign(found, x2), found) if found.dtype.is_floating_point else found


def positive(x, /):
    """A copy of a tensor: +x."""
    return check('positive', x).clone()


def conj(x, /):
    """The complex conjugate of each element; a tensor of real numbers is returned as it is."""
    return torch.conj_physical(x) if check('conj', x).dtype.is_complex else x


def real(x, /):
    """The real part of each element; a tensor of real numbers is returned as it is."""
    return x.real if check('real', x).dtype.is_complex else x


def imag(x, /):
    """The imaginary part of each element; zeros for real numbers."""
    return x.imag if check('imag', x).dtype.is_complex else torch.zeros_like(x)


def sign(x, /):
    """-1, 0 or 1, NaN for NaN; of a complex number, that number divided by its absolute value."""
    if check('sign', x).dtype.is_complex:
        return torch.sgn(x)
    found = torch.sign(x)
    return torch.where(torch.isnan(x), x, found) if x.dtype.is_floating_point else found


def round(x, /):
    """The nearest whole number, of two the even one; of the parts of complex numbers."""
    if check('round', x).dtype.is_complex:
        return torch.complex(torch.round(x.real), torch.round(x.imag))
    return torch.round(x)


def clip(x, /, min=None, max=None):
    """Each element, but at least @min and at most @max: numbers, or tensors that are broadcast."""
    found = check('clip', x)
    for bound, choose in ((min, torch.maximum), (max, torch.minimum)):
        if bound is None:
            continue
        if is_number(bound):
            if not _is_limit(found, bound, is_lower=bound is min and choose is torch.maximum):
                found = choose(found, *together('clip', found, bound)[1:])
        else:
            found = choose(found, bound.to(x.dtype))
    return found.clone() if found is x else found


def _is_limit(x, bound, is_lower):
    """Is a whole number at or beyond the end of the dtype, so that it changes nothing?"""
    if isinstance(bound, bool) or not isinstance(bound, int) or x.dtype.is_floating_point:
        return False
    limits = torch.iinfo(x.dtype)
    return bound <= limits.min if is_lower else bound >= limits.max


__all__ = [*ONE, *TWO, 'remainder', 'positive', 'conj', 'real', 'imag', 'sign', 'round', 'clip']
