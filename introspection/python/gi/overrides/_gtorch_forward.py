# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Forward-mode derivatives: GTorch.autograd.forward_ad."""

import collections

from gi.overrides import _gtorch_exceptions as exceptions
from gi.overrides._gtorch_context import Decorator
from gi.overrides._gtorch_convert import DType, GTorch, RawTensor

UnpackedDualTensor = collections.namedtuple('UnpackedDualTensor', 'primal tangent')
RAW = {name: getattr(GTorch, f'forward_ad_{name}') for name in ('make_dual', 'unpack_dual')}


def _check(name, level):
    """There is one level, number 0."""
    if level is not None and level != 0:
        raise ValueError(f'{name}(): there is no level {level!r}, only 0')


def _tensor(name, key, value):
    if not isinstance(value, RawTensor):
        raise TypeError(f'{name}(): {key} must be a tensor, not {type(value).__name__}')
    return value


def enter_dual_level():
    """Opens a level, within which tensors may have tangents, and returns its number."""
    return GTorch.forward_ad_enter_dual_level()


def exit_dual_level(*, level=None):
    """Closes the level: all tensors lose their tangents."""
    _check('exit_dual_level', level)
    GTorch.forward_ad_exit_dual_level()


def make_dual(tensor, tangent, *, level=None):
    """Returns a view of a tensor with a tangent."""
    _check('make_dual', level)
    for key, value in (('tensor', tensor), ('tangent', tangent)):
        if isinstance(value, RawTensor) and not (value.is_floating_point() or value.is_complex()):
            kind = DType.get_name(value.dtype)
            text = f'make_dual: {key} is of {kind}: only floating-point and complex numbers have tangents'
            raise exceptions.made(ValueError, text, GTorch.Error.DTYPE)
    return RAW['make_dual'](_tensor('make_dual', 'tensor', tensor), _tensor('make_dual', 'tangent', tangent))


def unpack_dual(tensor, *, level=None):
    """Returns the primal and the tangent of a dual tensor; the latter is None for zeros."""
    _check('unpack_dual', level)
    return UnpackedDualTensor(*RAW['unpack_dual'](_tensor('unpack_dual', 'tensor', tensor)))


class dual_level(Decorator):  # noqa: N801, the name is PyTorch's
    """A block in which tensors may have tangents; there are none around it."""

    def __enter__(self):
        return enter_dual_level()

    def __exit__(self, *_exception):
        exit_dual_level()


def members():
    functions = (dual_level, enter_dual_level, exit_dual_level, make_dual, unpack_dual)
    return {one.__name__: one for one in (*functions, UnpackedDualTensor)}
