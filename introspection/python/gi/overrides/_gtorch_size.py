# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The shape of a tensor, which is that of the C accelerator if there is one."""

import math
from operator import index

from gi.overrides._gtorch_mixin import mixin


class _Size(tuple):
    """The shape of a tensor: a tuple whose parts and sums are shapes, too, and that counts the elements."""

    __slots__ = ()
    __module__ = 'torch'
    __qualname__ = 'Size'

    def __new__(cls, *sizes):
        return super().__new__(cls, map(index, tuple(*sizes)))

    def numel(self):
        """The number of elements of a tensor of this shape."""
        return math.prod(self)

    def __repr__(self):
        return f'torch.Size({list(self)})'

    def __getitem__(self, key):
        found = super().__getitem__(key)
        return _Size(found) if isinstance(key, slice) else found

    def __add__(self, other):
        if not isinstance(other, tuple):
            raise TypeError(f'a shape is joined to a tuple, not to {type(other).__name__}')
        return _Size(super().__add__(other))

    def __radd__(self, other):
        return _Size(other.__add__(tuple(self)))

    def __mul__(self, n):
        return _Size(super().__mul__(n))

    __rmul__ = __mul__

    def __reduce__(self):
        from gi.overrides import _gtorch_unpickle as unpickle

        return unpickle.size, (tuple(self),)


_Size.__name__ = 'Size'
Size = _Size if mixin is None else mixin.Size
