# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Operations whose forms PyTorch tells apart by the kinds of their arguments."""

from gi.overrides import _gtorch_ops as ops
from gi.overrides._gtorch_convert import DType, GTorch, RawTensor, convert_bool, convert_ints, is_number
from gi.overrides._gtorch_dtypes import finfo
from gi.overrides._gtorch_index import encode
from gi.overrides._gtorch_results import result_class

LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'


def _listed(tensors):
    """The tensors that were given one by one, or in one list."""
    return list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors)


def _named(name, function, doc=None):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc or (ops.METHODS.get(name) or ops.FUNCTIONS[name]).__doc__
    return function


def _at_least(name):
    one, several = ops.METHODS[name], ops.FUNCTIONS[f'{name}_list']

    def call(*tensors):
        if len(tensors) == 1 and isinstance(tensors[0], RawTensor):
            return one(tensors[0])
        return several(_listed(tensors))

    return _named(name, call)


def _variadic(name):
    function = ops.FUNCTIONS[name]

    def call(*given, tensors=None):
        if (tensors is None) == (not given):
            raise TypeError(f'{name}() takes tensors, or a list of them')
        return function(_listed(given) if given else tensors)

    return _named(name, call)


def _split(name):
    sections, positions = ops.METHODS[name], ops.METHODS[f'{name}_indices']

    def call(self, indices_or_sections, *given):
        where = indices_or_sections
        if isinstance(where, RawTensor):
            where = where.tolist()
        return (positions if isinstance(where, (list, tuple)) else sections)(self, where, *given)

    return call


def _split_along(name):
    """hsplit, vsplit and dsplit."""
    split = _split(name)

    def call(self, indices_or_sections=None, *, sections=None, indices=None):
        given = [x for x in (indices_or_sections, sections, indices) if x is not None]
        if len(given) != 1:
            raise TypeError(f'{name}() takes a number of sections or a list of positions')
        return split(self, given[0])

    return _named(name, call)


def tensor_split(self, indices_or_sections=None, dim=0, *, sections=None, indices=None):
    """Splits a dimension into a number of parts, or before the positions in a list or a tensor."""
    given = [x for x in (indices_or_sections, sections, indices) if x is not None]
    if len(given) != 1:
        raise TypeError('tensor_split() takes a number of sections or a list of positions')
    return _split('tensor_split')(self, given[0], dim)


def meshgrid(*given, tensors=None, ij=True, indexing=None):
    """Expands tensors of one dimension to the grid that they span, in the order 'ij' or 'xy'."""
    if indexing not in (None, 'ij', 'xy'):
        raise ValueError(f"meshgrid() takes indexing 'ij' or 'xy', not {indexing!r}")
    if given and isinstance(given[-1], bool):
        given, ij = given[:-1], given[-1]
    return ops.FUNCTIONS['meshgrid'](_listed(given) if given else tensors, ij if indexing is None else indexing == 'ij')


def einsum(*args):
    """Sums products: einsum('ij,jk->ik', a, b), or with labels from 0 to 51 einsum(a, [0, 1], b, [1, 2], [0, 2])."""
    if args and isinstance(args[0], str):
        equation, operands = args[0], list(_listed(args[1:]))
    else:
        equation, operands = _equation(args), list(args[: len(args) // 2 * 2 : 2])
    for one in operands:
        if not isinstance(one, RawTensor):
            raise TypeError(f'einsum() takes an equation and tensors, not {type(one).__name__}')
    return GTorch.einsum(equation, operands)


def _equation(args):
    """Returns the equation of operands and lists of labels in turn, and perhaps the list of the result."""
    if len(args) < 2:
        raise TypeError('einsum() takes an equation and tensors, or tensors and lists of labels')
    terms = [','.join(map(_letters, args[1::2]))]
    if len(args) % 2 == 1:
        terms.append(_letters(args[-1]))
    return '->'.join(terms)


def _letters(labels):
    if isinstance(labels, RawTensor) or not isinstance(labels, (list, tuple)):
        raise TypeError(f'einsum() takes lists of labels after the tensors, not {type(labels).__name__}')
    for label in labels:
        if label is not Ellipsis and not (isinstance(label, int) and 0 <= label < len(LETTERS)):
            raise ValueError(f'einsum() takes labels from 0 to 51 and an ellipsis, not {label!r}')
    return ''.join('...' if label is Ellipsis else LETTERS[label] for label in labels)


def _number_like(value, tensor):
    """A number as a tensor on the device of another, and of its dtype unless that is one of integers."""
    if not is_number(value):
        return value
    is_exact = isinstance(tensor, RawTensor) and not (tensor.is_floating_point() or tensor.is_complex())
    return tensor.new_full([], value, dtype=GTorch.get_default_dtype() if is_exact else None)


def _quantile(name):
    plain = ops.METHODS[name]

    def call(self, q, dim=None, keepdim=False, *, interpolation='linear'):
        if is_number(q) and not 0 <= q <= 1:
            raise ValueError(f'{name}: q is {q}, it must be between 0 and 1')
        return plain(self, _number_like(q, self), dim, keepdim, interpolation)

    return _named(name, call)


def gradient(self, *, spacing=1, dim=None, edge_order=1):
    """Estimates the derivatives along each of the dimensions; the spacing is a number, or for each of them a
    number or a row of coordinates."""
    dims = dim if dim is None else [dim] if is_number(dim) else list(dim)
    spacing = 1 if spacing is None else spacing
    spacings = list(spacing) if isinstance(spacing, (list, tuple)) else [spacing]
    count = self.get_n_dims() if dims is None else len(dims)
    if isinstance(spacing, (list, tuple)) and len(spacings) != count:
        raise ValueError(f'gradient() takes a spacing for each of {count} dimensions, not {len(spacings)}')
    return ops.METHODS['gradient'](self, [_number_like(s, self) for s in spacings], dims, edge_order)


def unique_consecutive(self, return_inverse=False, return_counts=False, dim=None):
    """The first of all equal elements that follow each other; with them where each element is among those,
    and how many there are of each."""
    values, inverse, counts = ops.METHODS['unique_consecutive'](self, dim)
    found = [values]
    if convert_bool(return_inverse):
        found.append(inverse)
    if convert_bool(return_counts):
        found.append(counts)
    return tuple(found) if len(found) > 1 else values


def histogram(self, bins=100, *, range=None, weight=None, density=False):
    """Counts the elements in intervals of equal width, or between the edges in a tensor."""
    if isinstance(bins, RawTensor):
        if range is not None:
            raise TypeError('histogram() takes no range beside the edges of the bins')
        return ops.METHODS['histogram_bins'](self, bins, weight, density)
    low, high = (None, None) if range is None else range
    return ops.METHODS['histogram'](self, bins, low, high, weight, density)


def histogramdd(self, bins, *, range=None, weight=None, density=False):
    """Counts points in the cells of a grid: the counts, and the edges of each coordinate."""
    if isinstance(bins, (list, tuple)) and bins and all(isinstance(edges, RawTensor) for edges in bins):
        if range is not None:
            raise TypeError('histogramdd() takes no range beside the edges of the bins')
        found = ops.METHODS['histogramdd_bins'](self, list(bins), weight, density)
    else:
        if range is not None and not isinstance(range, RawTensor):
            range = RawTensor.new_from_doubles([float(x) for x in range], [len(range)], DType.FLOAT64, None)
        found = ops.METHODS['histogramdd'](self, bins, range, weight, density)
    return result_class('histogramdd')(found[0], tuple(found[1:]))


def _masked_spread(name):
    """The variance and the deviation under a mask: unbiased stands for a correction of 1 or 0."""
    plain = ops.FUNCTIONS[name]

    def call(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
        if unbiased is not None and correction is not None:
            raise TypeError(f'{name}() takes unbiased or a correction, not both')
        if unbiased is not None:
            correction = float(convert_bool(unbiased))
        return plain(input, dim, 1.0 if correction is None else correction, keepdim, dtype, mask)

    return _named(name, call)


def nuclear_norm(name, A, dim, keepdim, dtype=None):
    """The sum of the singular values of matrices."""
    dims = [-2, -1] if dim is None and A.ndim == 2 else list(convert_ints(dim))
    if len(dims) != 2:
        where = f'shape {tuple(A.shape)}' if dim is None else f'dim {dim}'
        raise ValueError(f"{name}: the norm 'nuc' is one of matrices, and {where} is not two dimensions")
    A = A if dtype is None else A.to(dtype)
    found = ops.FUNCTIONS['linalg_svdvals'](ops.METHODS['movedim'](A, dims, [-2, -1])).sum(-1)
    if convert_bool(keepdim):
        for place in sorted(d % A.ndim for d in dims):
            found = found.unsqueeze(place)
    return found


def _matrix_norm(name, dims):
    """Norms that may have a name: that of Frobenius is the one without an order."""
    plain = ops.FUNCTIONS[name]

    def call(A, ord=dims and 'fro', dim=dims, keepdim=False, *, dtype=None):
        if ord == 'nuc':
            return nuclear_norm(name, A, dim, keepdim, dtype)
        if isinstance(ord, str) and ord != 'fro':
            raise ValueError(f"{name}: {ord!r} is no norm: it is 'fro', 'nuc' or a number")
        n_dims = len(convert_ints(dim)) if dim is not None else A.ndim if isinstance(A, RawTensor) else 2
        if ord == 'fro' and n_dims != 2:
            where = f'shape {tuple(A.shape)}' if dim is None else f'dim {dim}'
            raise ValueError(f"{name}: the norm 'fro' is one of matrices, and {where} is not two dimensions")
        return plain(A, None if ord == 'fro' else ord, dim, keepdim, dtype)

    return _named(name, call)


def _transform(name):
    """A transform along several dimensions. C takes an empty list for all of them; a transform of length 1
    along a new dimension changes nothing but the dtype."""
    plain = ops.FUNCTIONS[name]

    def is_empty(value):
        return isinstance(value, (list, tuple)) and len(value) == 0

    def call(input, s=None, dim=None, norm='backward'):
        given = [value for value in (s, dim) if value is not None]
        if given and all(map(is_empty, given)):
            return plain(input.unsqueeze(-1), None, -1, norm).squeeze(-1)
        return plain(input, s, dim, norm)

    return _named(name, call)


def _is_complex(tensor):
    return isinstance(tensor, RawTensor) and tensor.is_complex()


def _limits(values, A, atol, rtol):
    """What the singular values of each matrix of a batch must exceed to count, as a new last dimension."""
    if rtol is None:
        rtol = 0 if atol is not None else finfo(A.dtype).eps * max(A.shape[-2:])
    tolerances = [_number_like(0 if tolerance is None else tolerance, values) for tolerance in (atol, rtol)]
    if not all((tolerance >= 0).all().item() for tolerance in tolerances):
        raise ValueError('tolerances must not be negative')
    absolute, relative = (tolerance.to(values.device) for tolerance in tolerances)
    greatest = values.amax(-1) if values.shape[-1] else values.sum(-1)
    return (greatest * relative).maximum(absolute).unsqueeze(-1)


def _of_one(*tolerances):
    return not any(isinstance(tolerance, RawTensor) and tolerance.numel() != 1 for tolerance in tolerances)


def matrix_rank(A, tol=None, hermitian=False, *, atol=None, rtol=None):
    """Counts the singular values of matrices that exceed a tolerance, a number or one for each matrix."""
    atol = tol if atol is None else atol
    if _of_one(atol, rtol):
        return ops.FUNCTIONS['linalg_matrix_rank'](A, atol, rtol, hermitian)
    values = ops.FUNCTIONS['linalg_eigvalsh'](A).abs() if hermitian else ops.FUNCTIONS['linalg_svdvals'](A)
    return (values > _limits(values, A, atol, rtol)).sum(-1)


def pinv(A, rcond=None, hermitian=False, *, atol=None, rtol=None):
    """The pseudoinverses of matrices; the tolerances are numbers or have one for each matrix."""
    rtol = rcond if rtol is None else rtol
    if _of_one(atol, rtol):
        return ops.FUNCTIONS['linalg_pinv'](A, atol, rtol, hermitian)
    if hermitian:
        values, left = ops.FUNCTIONS['linalg_eigh'](A)
        right = left.mH
    else:
        left, values, right = ops.FUNCTIONS['linalg_svd'](A, False)
    counts = values.abs() > _limits(values.detach().abs(), A, atol, rtol)
    inverse = values.masked_fill(counts.logical_not(), float('inf')).reciprocal()
    return (right.mH * inverse.unsqueeze(-2)) @ left.mH


def stft(
    self,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    pad_mode='reflect',
    normalized=False,
    onesided=None,
    return_complex=None,
    align_to_window=None,
):
    """The Fourier transforms of the parts of a signal; half of the frequencies if nothing is complex."""
    if onesided is None:
        onesided = not (_is_complex(self) or _is_complex(window))
    return_complex, align_to_window = return_complex is None or return_complex, align_to_window or False
    given = hop_length, win_length, window, center, pad_mode, normalized, onesided, return_complex, align_to_window
    return ops.METHODS['stft'](self, n_fft, *given)


def istft(
    self,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    normalized=False,
    onesided=None,
    length=None,
    return_complex=False,
):
    """The signal of which stft gives the transforms; whether there are half of the frequencies is seen."""
    if onesided is None:
        onesided = self.ndim > 1 and self.shape[-2] != n_fft
    given = hop_length, win_length, window, center, normalized, onesided, length, return_complex
    return ops.METHODS['istft'](self, n_fft, *given)


def general_cosine(M, *, a, sym=True, dtype=None, device=None):
    """The sum of cosines of multiples of an angle; the coefficients are a tensor or a list of numbers."""
    if not isinstance(a, RawTensor):
        a = RawTensor.new_from_doubles([float(value) for value in a], [len(a)], DType.FLOAT64, None)
    return ops.FUNCTIONS['signal_windows_general_cosine'](M, a, sym, dtype, device)


def index_put_(self, indices, values, accumulate=False):
    """Writes, or adds, the values at the places that a tuple of index tensors names."""
    self.index_put_inplace(*encode(tuple(indices), self.device), values, convert_bool(accumulate))
    return self


def index_put(self, indices, values, accumulate=False):
    """A copy with the values at the places that a tuple of index tensors names, or added there."""
    return index_put_(self.clone(), indices, values, accumulate)


METHODS = {
    **{name: _at_least(name) for name in ('atleast_1d', 'atleast_2d', 'atleast_3d')},
    **{name: _split_along(name) for name in ('hsplit', 'vsplit', 'dsplit')},
    **{name: _quantile(name) for name in ('quantile', 'nanquantile')},
    'gradient': gradient,
    'histogram': histogram,
    'histogramdd': histogramdd,
    'index_put': index_put,
    'index_put_': index_put_,
    'istft': istft,
    'stft': stft,
    'tensor_split': tensor_split,
    'unique_consecutive': unique_consecutive,
}

FUNCTIONS = {
    **{name: _variadic(name) for name in ('broadcast_tensors', 'block_diag', 'cartesian_prod')},
    **{name: _transform(name) for name in ('fft_fftn', 'fft_ifftn')},
    'einsum': einsum,
    'index_put': index_put,
    'linalg_matrix_norm': _matrix_norm('linalg_matrix_norm', (-2, -1)),
    'linalg_norm': _matrix_norm('linalg_norm', None),
    'linalg_matrix_rank': _named('linalg_matrix_rank', matrix_rank, matrix_rank.__doc__),
    'linalg_pinv': _named('linalg_pinv', pinv, pinv.__doc__),
    'masked_std': _masked_spread('masked_std'),
    'masked_var': _masked_spread('masked_var'),
    'meshgrid': meshgrid,
    'signal_windows_general_cosine': general_cosine,
}
