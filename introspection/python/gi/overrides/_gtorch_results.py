# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The classes of several results that an operation gives, under PyTorch's names: GTorch.return_types."""

from collections import namedtuple

from gi.overrides import _gtorch_ops as ops

ENDING = '_result'


class _Eigen:
    """The library has shorter names for them, which stay."""

    __slots__ = ()
    L = property(lambda self: self.eigenvalues, doc='The eigenvalues.')
    V = property(lambda self: self.eigenvectors, doc='The eigenvectors, one in each column.')


for _name in ('linalg_eig', 'linalg_eigh'):
    _fields = namedtuple(_name, ['eigenvalues', 'eigenvectors'])
    setattr(ops, f'{_name}{ENDING}', type(_name, (_Eigen, _fields), {'__slots__': ()}))
histogramdd = namedtuple('histogramdd', ['hist', 'bin_edges'])


def classes():
    """The classes by the names of PyTorch's: max_dim here is max there."""
    found = {name[: -len(ENDING)]: one for name, one in vars(ops).items() if name.endswith(ENDING)}
    found = {name.removesuffix('_dim'): one for name, one in found.items()}
    found['histogramdd'] = histogramdd
    for one in found.values():
        one.__module__ = 'gi.repository.GTorch.return_types'
    for name, one in found.items():
        one.__name__ = one.__qualname__ = name
    return found


def install(submodule):
    submodule('return_types', 'The classes of several results.', classes())
