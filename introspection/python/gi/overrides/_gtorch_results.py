# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The classes of several results that an operation gives, under PyTorch's names: GTorch.return_types. Each is made
when it is first used."""

import functools
from collections import namedtuple

from gi.overrides._gtorch_properties import show_later

MODULE = 'gi.repository.GTorch.return_types'
OTHERS = {'histogramdd': ('hist', 'bin_edges')}  # of functions in Python


class _Eigen:
    """The library has shorter names for them, which stay."""

    __slots__ = ()
    L = property(lambda self: self.eigenvalues, doc='The eigenvalues.')
    V = property(lambda self: self.eigenvectors, doc='The eigenvectors, one in each column.')


def _rows():
    from gi.overrides._gtorch_ops import RESULTS  # which imports this module

    return {**RESULTS, **OTHERS}


@functools.cache
def result_class(name):
    """The class of the results of an operation, which has the name of PyTorch's: max_dim here is max there."""
    shown = name.removesuffix('_dim')
    if name in ('linalg_eig', 'linalg_eigh'):
        fields = namedtuple(shown, ['eigenvalues', 'eigenvectors'])
        return type(shown, (_Eigen, fields), {'__slots__': (), '__module__': MODULE})
    return namedtuple(shown, _rows()[name], module=MODULE)


class _Classes:
    """All of them, by the names of PyTorch's."""

    def __init__(self):
        self._names = {name.removesuffix('_dim'): name for name in _rows()}

    def __iter__(self):
        return iter(self._names)

    def __getattr__(self, name):
        return result_class(self._names[name])


def install(submodule):
    classes = _Classes()
    show_later(submodule('return_types', 'The classes of several results.', {}), [*classes], classes)
