# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The functions of the array API standard that arrange, search, sort and compare elements."""

import collections

from gi.repository import GTorch as torch

from gtorch.array_api._dtypes import check
from gtorch.array_api._elementwise import together

UniqueAllResult = collections.namedtuple('UniqueAllResult', 'values indices inverse_indices counts')
UniqueCountsResult = collections.namedtuple('UniqueCountsResult', 'values counts')
UniqueInverseResult = collections.namedtuple('UniqueInverseResult', 'values inverse_indices')


def axes_of(name, x, axis):
    """The axes of a tensor, counted from 0: one, those of a tuple, or all for None."""
    if axis is None:
        return tuple(range(x.ndim))
    found = []
    for one in axis if isinstance(axis, (tuple, list)) else (axis,):
        if not -x.ndim <= one < x.ndim:
            raise IndexError(f'{name}(): there is no axis {one} in {x.ndim} dimensions')
        one %= x.ndim
        if one in found:
            raise ValueError(f'{name}(): axis {one} is given twice in {axis}')
        found.append(one)
    return tuple(found)


def _all_of(name, arrays):
    arrays = list(arrays)
    if not arrays:
        raise ValueError(f'{name}() takes at least one tensor')
    return together(name, *(check(name, x) for x in arrays))


# --- shapes ---


def broadcast_to(x, /, shape):
    """A view of a tensor with a larger shape."""
    return torch.broadcast_to(check('broadcast_to', x), tuple(shape))


def broadcast_arrays(*arrays):
    """Views of tensors with the shape to which they are broadcast."""
    return tuple(torch.broadcast_tensors(*arrays)) if arrays else ()


def broadcast_shapes(*shapes):
    """The shape to which tensors of some shapes are broadcast."""
    return tuple(torch.broadcast_shapes(*shapes))


def concat(arrays, /, *, axis=0):
    """Tensors one after the other along an axis; along one of all elements for None."""
    arrays = _all_of('concat', arrays)
    return torch.cat([x.flatten() for x in arrays]) if axis is None else torch.cat(arrays, axis)


def stack(arrays, /, *, axis=0):
    """Tensors of one shape along a new axis."""
    return torch.stack(_all_of('stack', arrays), axis)


def unstack(x, /, *, axis=0):
    """The tensors along an axis."""
    return tuple(torch.unbind(check('unstack', x), axis))


def expand_dims(x, /, axis=0):
    """A view with new axes of size 1, at a place or at those of a tuple."""
    places = axis if isinstance(axis, tuple) else (axis,)
    n_dims = check('expand_dims', x).ndim + len(places)
    for place in places:
        if not -n_dims <= place < n_dims:
            raise IndexError(f'expand_dims(): there is no axis {place} in {n_dims} dimensions')
    if len({place % n_dims for place in places}) < len(places):
        raise ValueError(f'expand_dims(): an axis is given twice in {axis}')
    for place in sorted(place % n_dims for place in places):
        x = torch.unsqueeze(x, place)
    return x


def squeeze(x, /, axis):
    """A view without axes, whose size must be 1."""
    axes = axes_of('squeeze', check('squeeze', x), axis)
    for one in axes:
        if x.shape[one] != 1:
            raise ValueError(f'squeeze(): axis {one} of shape {tuple(x.shape)} has not the size 1')
    return torch.squeeze(x, axes) if axes else x


def flip(x, /, *, axis=None):
    """The elements in the reverse order along axes, or along all."""
    return torch.flip(check('flip', x), axes_of('flip', x, axis))


def moveaxis(x, source, destination, /):
    """A view with axes at other places."""
    return torch.movedim(check('moveaxis', x), source, destination)


def permute_dims(x, /, axes):
    """A view with the axes in another order."""
    return torch.permute(check('permute_dims', x), tuple(axes))


def reshape(x, /, shape, *, copy=None):
    """The elements in another shape: a view if it can be, a copy with @copy; if @copy is False, raises ValueError where
    there is no view."""
    check('reshape', x)
    if copy:
        x = x.clone()
    if copy is False:
        try:
            return x.view(tuple(shape))
        except RuntimeError as error:
            raise ValueError(str(error)) from error
    return torch.reshape(x, tuple(shape))


def repeat(x, repeats, /, *, axis=None):
    """Each element along an axis, or each of all, some number of times."""
    if axis is None:
        x, axis = check('repeat', x).flatten(), 0
    return torch.repeat_interleave(x, repeats, axis)


def tile(x, repetitions, /):
    """Copies of a tensor beside each other along each axis."""
    return torch.tile(check('tile', x), tuple(repetitions))


def roll(x, /, shift, *, axis=None):
    """The elements moved along axes, those at the end to the beginning; through all elements for None."""
    if axis is None:
        return torch.roll(check('roll', x), shift)
    if isinstance(axis, tuple) and isinstance(shift, int):
        shift = (shift,) * len(axis)
    return torch.roll(x, shift, axis)


def matrix_transpose(x, /):
    """A view with the last two axes swapped."""
    if check('matrix_transpose', x).ndim < 2:
        raise ValueError(f'matrix_transpose() takes at least 2 dimensions, not shape {tuple(x.shape)}')
    return x.transpose(-2, -1)


# --- elements by indices ---


def take(x, indices, /, *, axis=None):
    """The parts of a tensor at the indices of a vector along an axis. A vector needs no @axis."""
    if axis is None and check('take', x).ndim != 1:
        raise ValueError(f'take(): axis is needed for shape {tuple(x.shape)}')
    (place,) = axes_of('take', x, 0 if axis is None else axis)
    return torch.index_select(x, place, torch.where(indices < 0, indices + x.shape[place], indices))


def take_along_axis(x, indices, /, *, axis=-1):
    """The element along an axis that an index tells, for each index; other axes are broadcast."""
    (place,) = axes_of('take_along_axis', check('take_along_axis', x), axis)
    indices = torch.where(indices < 0, indices + x.shape[place], indices)
    return torch.take_along_dim(x, indices.to(torch.int64), place)


# --- search ---


def nonzero(x, /):
    """The indices of elements that are not 0, one vector for each axis."""
    if not check('nonzero', x).ndim:
        raise ValueError('nonzero() takes at least 1 dimension')
    return tuple(torch.nonzero(x, as_tuple=True))


def where(condition, x1, x2, /):
    """Elements of @x1 where @condition is true, of @x2 elsewhere; each may be a number, but not both."""
    return torch.where(check('where', condition), *together('where', x1, x2))


def searchsorted(x1, x2, /, *, side='left', sorter=None):
    """The places in the sorted vector @x1 before which elements of @x2 keep it sorted: with `'left'` the first, with
    `'right'` the last such place. @sorter has the indices that sort @x1."""
    if side not in ('left', 'right'):
        raise ValueError(f"searchsorted(): side must be 'left' or 'right', not {side!r}")
    if check('searchsorted', x1).ndim != 1:
        raise ValueError(f'searchsorted(): x1 must be a vector, not of shape {tuple(x1.shape)}')
    x1, x2 = together('searchsorted', x1, x2)
    return torch.searchsorted(x1 if sorter is None else take(x1, sorter), x2, right=side == 'right')


def isin(x1, x2, /, *, invert=False):
    """Tells of each element of @x1 whether it is among those of @x2; whether not with @invert."""
    x1, x2 = together('isin', x1, x2)
    found = torch.isin(x1, x2)
    return torch.logical_not(found) if invert else found


# --- order ---


def sort(x, /, *, axis=-1, descending=False, stable=True):
    """The elements along an axis in order."""
    return torch.sort(check('sort', x), dim=axis, descending=descending, stable=stable)[0]


def argsort(x, /, *, axis=-1, descending=False, stable=True):
    """The indices along an axis that sort the elements."""
    return torch.argsort(check('argsort', x), dim=axis, descending=descending, stable=stable)


def _sorting(x):
    """The indices that sort a vector, where equal elements keep their order."""
    if not x.dtype.is_complex:
        return torch.argsort(x.to(torch.uint8) if x.dtype == torch.bool else x, stable=True)
    order = torch.argsort(x.imag, stable=True)
    return order[torch.argsort(x.real[order], stable=True)]


def unique_all(x, /):
    """The different elements, the index of the first of each, the number of the value that each element has, and how
    many there are of each. NaNs differ from each other."""
    flat = check('unique_all', x).flatten()
    order = _sorting(flat)
    values = flat[order]
    is_first = torch.ones(values.shape, dtype=torch.bool, device=x.device)
    is_first[1:] = values[1:] != values[:-1]
    (places,) = torch.nonzero(is_first, as_tuple=True)
    inverse = torch.empty(order.shape, dtype=torch.int64, device=x.device)
    inverse[order] = torch.cumsum(is_first, 0, dtype=torch.int64) - 1
    ends = torch.cat([places[1:], torch.full((min(1, len(places)),), len(flat), device=x.device)])
    return UniqueAllResult(values[places], order[places], inverse.reshape(tuple(x.shape)), ends - places)


def unique_counts(x, /):
    """The different elements, and how many there are of each."""
    found = unique_all(check('unique_counts', x))
    return UniqueCountsResult(found.values, found.counts)


def unique_inverse(x, /):
    """The different elements, and the number of the value that each element has."""
    found = unique_all(check('unique_inverse', x))
    return UniqueInverseResult(found.values, found.inverse_indices)


def unique_values(x, /):
    """The different elements."""
    return unique_all(check('unique_values', x)).values


# --- differences ---


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    """The differences of neighbours along an axis, @n times, after tensors were put before and behind."""
    return torch.diff(check('diff', x), n=n, dim=axis, prepend=prepend, append=append)


__all__ = [
    'broadcast_to', 'broadcast_arrays', 'broadcast_shapes', 'concat', 'stack', 'unstack', 'expand_dims', 'squeeze',
    'flip', 'moveaxis', 'permute_dims', 'reshape', 'repeat', 'tile', 'roll', 'matrix_transpose', 'take',
    'take_along_axis', 'nonzero', 'where', 'searchsorted', 'isin', 'sort', 'argsort', 'unique_all', 'unique_counts',
    'unique_inverse', 'unique_values', 'diff',
]  # fmt: skip
