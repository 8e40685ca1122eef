# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The functions of the array API standard that make fewer elements of many."""

from gi.repository import GTorch as torch

from gtorch.array_api._arrays import axes_of
from gtorch.array_api._dtypes import check


def _reduced(name, x, axis, keepdims, function, unchanged):
    """Calls @function with a tensor whose last axis has what is to be reduced."""
    axes = axes_of(name, check(name, x), axis)
    if not axes:
        return unchanged(x)
    rest = [one for one in range(x.ndim) if one not in axes]
    shape = [x.shape[one] for one in rest]
    size = 1
    for one in axes:
        size *= x.shape[one]
    made = x if len(axes) == 1 and axes[0] == x.ndim - 1 else x.permute(*rest, *axes).reshape([*shape, size])
    found = function(made)
    return found.reshape([1 if one in axes else x.shape[one] for one in range(x.ndim)]) if keepdims else found


def _wide(dtype):
    """The dtype of sums and products: integers are added up in int64."""
    return torch.int64 if dtype == torch.bool or torch.promote_types(dtype, torch.int64) == torch.int64 else dtype


def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    """The sum along axes, or of all; of integers it is of int64."""
    dtype = _wide(check('sum', x).dtype) if dtype is None else dtype
    axes = axes_of('sum', x, axis)
    return torch.sum(x, axes, keepdim=keepdims, dtype=dtype) if axes else x.to(dtype, copy=True)


def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    """The product along axes, or of all; of integers it is of int64."""
    dtype = _wide(check('prod', x).dtype) if dtype is None else dtype
    return _reduced('prod', x, axis, keepdims, lambda x: torch.prod(x, -1, dtype=dtype),
                    lambda x: x.to(dtype, copy=True))


def max(x, /, *, axis=None, keepdims=False):
    """The largest element along axes, or of all; NaN if there is one."""
    axes = axes_of('max', check('max', x), axis)
    return torch.amax(x, axes, keepdim=keepdims) if axes else x.clone()


def min(x, /, *, axis=None, keepdims=False):
    """The smallest element along axes, or of all; NaN if there is one."""
    axes = axes_of('min', check('min', x), axis)
    return torch.amin(x, axes, keepdim=keepdims) if axes else x.clone()


def mean(x, /, *, axis=None, keepdims=False):
    """The mean along axes, or of all."""
    axes = axes_of('mean', check('mean', x), axis)
    return torch.mean(x, axes, keepdim=keepdims) if axes else x.clone()


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    """The variance along axes, or of all: the sum of squares is divided by the number of elements less @correction."""
    axes = axes_of('var', check('var', x), axis)
    count = 1
    for one in axes:
        count *= x.shape[one]
    divisor = count - correction if count > correction else 0.0
    if not axes:
        return (x - x) / divisor  # a zero, but of NaN and infinities NaN
    if float(correction).is_integer() and correction < count:
        return torch.var(x, axes, correction=int(correction), keepdim=keepdims)
    squares = torch.square(x - torch.mean(x, axes, keepdim=True))
    return torch.sum(squares, axes, keepdim=keepdims) / divisor


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    """The standard deviation along axes, or of all: the square root of var()."""
    return torch.sqrt(var(check('std', x), axis=axis, correction=correction, keepdims=keepdims))


def all(x, /, *, axis=None, keepdims=False):
    """Tells whether all elements along axes, or of all, are not 0."""
    return _reduced('all', x, axis, keepdims, lambda x: torch.all(x != 0, -1), lambda x: x != 0)


def any(x, /, *, axis=None, keepdims=False):
    """Tells whether an element along axes, or of all, is not 0."""
    return _reduced('any', x, axis, keepdims, lambda x: torch.any(x != 0, -1), lambda x: x != 0)


def count_nonzero(x, /, *, axis=None, keepdims=False):
    """How many elements along axes, or of all, are not 0."""
    return sum(check('count_nonzero', x) != 0, axis=axis, keepdims=keepdims)


def _place(name, function, x, axis, keepdims):
    if axis is None:
        found = function(check(name, x).flatten(), 0)
        return found.reshape((1,) * x.ndim) if keepdims else found
    return function(check(name, x), axis, keepdim=keepdims)


def argmax(x, /, *, axis=None, keepdims=False):
    """The index of the first of the largest elements along an axis, or among all."""
    return _place('argmax', torch.argmax, x, axis, keepdims)


def argmin(x, /, *, axis=None, keepdims=False):
    """The index of the first of the smallest elements along an axis, or among all."""
    return _place('argmin', torch.argmin, x, axis, keepdims)


def _cumulative(name, function, x, axis, dtype, first):
    if axis is None:
        if check(name, x).ndim > 1:
            raise ValueError(f'{name}(): axis is needed for shape {tuple(x.shape)}')
        axis = 0
    if not check(name, x).ndim:
        raise ValueError(f'{name}() takes at least 1 dimension')
    (axis,) = axes_of(name, x, axis)
    found = function(x, axis, dtype=_wide(x.dtype) if dtype is None else dtype)
    if first is None:
        return found
    shape = [1 if one == axis else x.shape[one] for one in range(x.ndim)]
    return torch.cat([torch.full(shape, first, dtype=found.dtype, device=x.device), found], axis)


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """The sums of the elements up to each along an axis; with a 0 before them if @include_initial."""
    return _cumulative('cumulative_sum', torch.cumsum, x, axis, dtype, 0 if include_initial else None)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """The products of the elements up to each along an axis; with a 1 before them if @include_initial."""
    return _cumulative('cumulative_prod', torch.cumprod, x, axis, dtype, 1 if include_initial else None)


__all__ = [
    'sum', 'prod', 'max', 'min', 'mean', 'var', 'std', 'all', 'any', 'count_nonzero', 'argmax', 'argmin',
    'cumulative_sum', 'cumulative_prod',
]  # fmt: skip
