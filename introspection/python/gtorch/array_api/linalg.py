# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Linear algebra of the array API standard."""

import collections

from gi.repository import GTorch as torch

from gtorch.array_api._arrays import axes_of, matrix_transpose
from gtorch.array_api._dtypes import check
from gtorch.array_api._elementwise import together
from gtorch.array_api._statistics import sum as _sum

EighResult = collections.namedtuple('EighResult', 'eigenvalues eigenvectors')
QRResult = collections.namedtuple('QRResult', 'Q R')
SlogdetResult = collections.namedtuple('SlogdetResult', 'sign logabsdet')
SVDResult = collections.namedtuple('SVDResult', 'U S Vh')


def matmul(x1, x2, /):
    """The product of matrices, also of batches, and with vectors."""
    return torch.matmul(*together('matmul', check('matmul', x1), check('matmul', x2)))


def tensordot(x1, x2, /, *, axes=2):
    """The sum of products over axes: the last ones of @x1 and the first ones of @x2, or those of two lists."""
    return torch.tensordot(*together('tensordot', check('tensordot', x1), check('tensordot', x2)), dims=axes)


def vecdot(x1, x2, /, *, axis=-1):
    """The sum of products along an axis, of the conjugates of @x1."""
    x1, x2 = together('vecdot', check('vecdot', x1), check('vecdot', x2))
    if not -min(x1.ndim, x2.ndim) <= axis < max(x1.ndim, x2.ndim):
        raise IndexError(f'vecdot(): there is no axis {axis} in shapes {tuple(x1.shape)} and {tuple(x2.shape)}')
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f'vecdot(): axis {axis} of shapes {tuple(x1.shape)} and {tuple(x2.shape)} differs in size')
    x1 = torch.conj_physical(x1) if x1.dtype.is_complex else x1
    return torch.sum(x1 * x2, axis, dtype=x1.dtype)


def outer(x1, x2, /):
    """All products of the elements of two vectors."""
    return torch.outer(*together('outer', check('outer', x1), check('outer', x2)))


def cross(x1, x2, /, *, axis=-1):
    """The cross product of vectors of three elements along an axis."""
    x1, x2 = together('cross', check('cross', x1), check('cross', x2))
    if not -min(x1.ndim, x2.ndim) <= axis < min(x1.ndim, x2.ndim):
        raise IndexError(f'cross(): there is no axis {axis} in shapes {tuple(x1.shape)} and {tuple(x2.shape)}')
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        text = f'cross(): axis {axis} of shapes {tuple(x1.shape)} and {tuple(x2.shape)} has not 3 elements'
        raise ValueError(text)
    return torch.linalg.cross(*torch.broadcast_tensors(x1, x2), dim=axis)


def diagonal(x, /, *, offset=0):
    """The diagonals of matrices, or others beside them."""
    return torch.diagonal(check('diagonal', x), offset, -2, -1)


def trace(x, /, *, offset=0, dtype=None):
    """The sum of the diagonal of matrices."""
    return _sum(diagonal(check('trace', x), offset=offset), axis=-1, dtype=dtype)


def cholesky(x, /, *, upper=False):
    """The Cholesky factor of matrices that are Hermitian and positive definite."""
    return torch.linalg.cholesky(check('cholesky', x), upper=upper)


def det(x, /):
    """The determinant of matrices."""
    return torch.linalg.det(check('det', x))


def slogdet(x, /):
    """The sign of the determinant of matrices, and the logarithm of its absolute value."""
    return SlogdetResult(*torch.linalg.slogdet(check('slogdet', x)))


def eigh(x, /):
    """The eigenvalues and eigenvectors of Hermitian matrices."""
    return EighResult(*torch.linalg.eigh(check('eigh', x)))


def eigvalsh(x, /):
    """The eigenvalues of Hermitian matrices."""
    return torch.linalg.eigvalsh(check('eigvalsh', x))


def inv(x, /):
    """The inverse of matrices."""
    return torch.linalg.inv(check('inv', x))


def pinv(x, /, *, rtol=None):
    """The pseudo-inverse of matrices; singular values below @rtol times the largest are taken for 0."""
    return torch.linalg.pinv(check('pinv', x), rtol=rtol)


def matrix_power(x, n, /):
    """Matrices to the power of a whole number."""
    return torch.linalg.matrix_power(check('matrix_power', x), n)


def matrix_rank(x, /, *, rtol=None):
    """The rank of matrices: how many singular values are above @rtol times the largest."""
    if check('matrix_rank', x).ndim < 2:
        raise ValueError(f'matrix_rank() takes at least 2 dimensions, not shape {tuple(x.shape)}')
    return torch.linalg.matrix_rank(x, rtol=rtol)


def qr(x, /, *, mode='reduced'):
    """Matrices as the product of one with orthonormal columns and an upper triangular one."""
    if mode not in ('reduced', 'complete'):
        raise ValueError(f"qr(): mode must be 'reduced' or 'complete', not {mode!r}")
    return QRResult(*torch.linalg.qr(check('qr', x), mode=mode))


def svd(x, /, *, full_matrices=True):
    """The singular values of matrices and the vectors that belong to them."""
    return SVDResult(*torch.linalg.svd(check('svd', x), full_matrices=full_matrices))


def svdvals(x, /):
    """The singular values of matrices."""
    return torch.linalg.svdvals(check('svdvals', x))


def solve(x1, x2, /):
    """The solutions of linear systems. @x2 is one vector if it has one dimension, and matrices otherwise."""
    x1, x2 = together('solve', check('solve', x1), check('solve', x2))
    if x2.ndim == 1:
        return torch.linalg.solve(x1, x2.reshape([1] * (x1.ndim - 2) + [len(x2), 1])).squeeze(-1)
    if x2.ndim == x1.ndim - 1:  # the library would take these for vectors
        x2 = x2.unsqueeze(0)
        if x1.ndim == 3:
            x2 = x2.expand(x1.shape[0], *x2.shape[1:])
    return torch.linalg.solve(x1, x2)


def matrix_norm(x, /, *, keepdims=False, ord='fro'):
    """A norm of matrices: `'fro'`, `'nuc'`, or 1, 2, inf and their negatives."""
    return torch.linalg.matrix_norm(check('matrix_norm', x), ord, keepdim=keepdims)


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """A norm of the elements along axes, or of all."""
    axes = axes_of('vector_norm', check('vector_norm', x), axis)
    if not axes:
        return torch.where(x != 0, 1.0, 0.0).to(torch.abs(x).dtype) if ord == 0 else torch.abs(x)
    return torch.linalg.vector_norm(x, ord, dim=axes, keepdim=keepdims)


__all__ = [
    'cholesky', 'cross', 'det', 'diagonal', 'eigh', 'eigvalsh', 'inv', 'matmul', 'matrix_norm', 'matrix_power',
    'matrix_rank', 'matrix_transpose', 'outer', 'pinv', 'qr', 'slogdet', 'solve', 'svd', 'svdvals', 'tensordot',
    'trace', 'vecdot', 'vector_norm',
]  # fmt: skip


def __dir__():
    return __all__
