# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Fourier transforms of the array API standard."""

from gi.repository import GTorch as torch

from gtorch.array_api._dtypes import check


def _along_axis(name):
    function = getattr(torch.fft, name)

    def call(x, /, *, n=None, axis=-1, norm='backward'):
        return function(check(name, x), n=n, dim=axis, norm=norm)

    return _named(call, name, function)


def _along_axes(name):
    function = getattr(torch.fft, name)

    def call(x, /, *, s=None, axes=None, norm='backward'):
        return function(check(name, x), s=s, dim=axes, norm=norm)

    return _named(call, name, function)


def _shift(name):
    function = getattr(torch.fft, name)

    def call(x, /, *, axes=None):
        return function(check(name, x), dim=axes)

    return _named(call, name, function)


def _frequencies(name):
    function = getattr(torch.fft, name)

    def call(n, /, *, d=1.0, dtype=None, device=None):
        return function(n, d=d, dtype=dtype, device=device)

    return _named(call, name, function)


def _named(call, name, function):
    call.__name__ = call.__qualname__ = name
    call.__doc__ = (function.__doc__ or '').partition('\n\n')[0] or f'The function {name}() of the array API standard.'
    return call


__all__ = []
for _make, _names in (
    (_along_axis, ('fft', 'ifft', 'rfft', 'irfft', 'hfft', 'ihfft')),
    (_along_axes, ('fftn', 'ifftn', 'rfftn', 'irfftn')),
    (_shift, ('fftshift', 'ifftshift')),
    (_frequencies, ('fftfreq', 'rfftfreq')),
):
    for _name in _names:
        globals()[_name] = _make(_name)
        __all__.append(_name)


def __dir__():
    return __all__
