# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The functions of the array API standard that create tensors."""

from gi.repository import GTorch as torch

from gtorch.array_api._dtypes import check, promoted


def _shape(shape):
    return (shape,) if isinstance(shape, int) else tuple(shape)


def asarray(obj, /, *, dtype=None, device=None, copy=None):
    """A tensor of a tensor, a number, nested lists of numbers, or an array of another library, whose memory it shares
    if it can; never if @copy, and raises ValueError where it cannot if @copy is False."""
    if device is None and isinstance(obj, torch.Tensor):
        device = obj.device
    return torch.asarray(obj, dtype=dtype, device=device, copy=copy)


def from_dlpack(x, /, *, device=None, copy=None):
    """A tensor of an array of another library, by DLPack. The memory is shared, except for another @device, and with
    @copy; if @copy is False, raises ValueError where it cannot be."""
    made = torch.from_dlpack(x)
    if device is not None and made.device != torch.device(device):
        if copy is False:
            raise ValueError(f'from_dlpack(): copy=False, and the array is on {made.device}, not on {device}')
        return made.to(device)
    return made.clone() if copy else made


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    """Numbers from @start (0, if it is the only one) up to @stop, without it, in steps."""
    if stop is None:
        start, stop = 0, start
    if step != 0 and (stop - start) / step <= 0:
        whole = all(isinstance(value, int) for value in (start, stop, step))
        return torch.empty((0,), dtype=dtype or (torch.int64 if whole else None), device=device)
    return torch.arange(start, stop, step, dtype=dtype, device=device)


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True):
    """@num numbers from @start to @stop at equal distances, without the last one unless @endpoint."""
    if isinstance(start, complex) or isinstance(stop, complex):
        start, stop = complex(start), complex(stop)
        dtype = dtype or promoted('linspace', (torch.get_default_dtype(), start))
        part = torch.float64 if dtype == torch.complex128 else torch.float32
        parts = [linspace(a, b, num, dtype=part, device=device, endpoint=endpoint)
                 for a, b in ((start.real, stop.real), (start.imag, stop.imag))]
        return torch.complex(*parts)
    if endpoint or num == 0:
        return torch.linspace(start, stop, num, dtype=dtype, device=device)
    return torch.linspace(start, stop, num + 1, dtype=dtype, device=device)[:-1]


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    """A matrix of zeros with ones on the diagonal, or on the @k-th above it."""
    made = torch.zeros((n_rows, n_rows if n_cols is None else n_cols), dtype=dtype, device=device)
    if -made.shape[0] < k < made.shape[1]:
        made.diagonal(k).fill_(1)
    return made


def empty(shape, *, dtype=None, device=None):
    """A tensor whose elements may have any value."""
    return torch.empty(_shape(shape), dtype=dtype, device=device)


def zeros(shape, *, dtype=None, device=None):
    """A tensor of zeros."""
    return torch.zeros(_shape(shape), dtype=dtype, device=device)


def ones(shape, *, dtype=None, device=None):
    """A tensor of ones."""
    return torch.ones(_shape(shape), dtype=dtype, device=device)


def full(shape, fill_value, *, dtype=None, device=None):
    """A tensor of a number, by default of a dtype for it."""
    return torch.full(_shape(shape), fill_value, dtype=dtype, device=device)


def empty_like(x, /, *, dtype=None, device=None):
    """A tensor of the shape, and by default of the dtype and on the device, of another one."""
    return torch.empty_like(check('empty_like', x), dtype=dtype, device=device)


def zeros_like(x, /, *, dtype=None, device=None):
    """Zeros of the shape, and by default of the dtype and on the device, of a tensor."""
    return torch.zeros_like(check('zeros_like', x), dtype=dtype, device=device)


def ones_like(x, /, *, dtype=None, device=None):
    """Ones of the shape, and by default of the dtype and on the device, of a tensor."""
    return torch.ones_like(check('ones_like', x), dtype=dtype, device=device)


def full_like(x, /, fill_value, *, dtype=None, device=None):
    """A number in the shape, and by default of the dtype and on the device, of a tensor."""
    return torch.full_like(check('full_like', x), fill_value, dtype=dtype, device=device)


def tril(x, /, *, k=0):
    """The part of matrices on and below the @k-th diagonal, zeros elsewhere."""
    return torch.tril(check('tril', x), k)


def triu(x, /, *, k=0):
    """The part of matrices on and above the @k-th diagonal, zeros elsewhere."""
    return torch.triu(check('triu', x), k)


def meshgrid(*arrays, indexing='xy'):
    """The coordinates of a grid of vectors, one tensor for each; of the first two, rows and columns are swapped by
    `'xy'`."""
    if indexing not in ('xy', 'ij'):
        raise ValueError(f"meshgrid(): indexing must be 'xy' or 'ij', not {indexing!r}")
    return tuple(torch.meshgrid(*arrays, indexing=indexing)) if arrays else ()


__all__ = [
    'asarray', 'from_dlpack', 'arange', 'linspace', 'eye', 'empty', 'zeros', 'ones', 'full', 'empty_like', 'zeros_like',
    'ones_like', 'full_like', 'tril', 'triu', 'meshgrid',
]  # fmt: skip
