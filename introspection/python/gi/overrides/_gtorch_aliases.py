# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Further names that PyTorch has for operations, and operations in place that C has not: what they compute is copied
to the tensor."""

import sys

from gi.overrides._gtorch_later import FUNCTIONS, NAME
from gi.overrides._gtorch_convert import RawTensor, convert_ints, convert_whole
from gi.overrides._gtorch_size import Size

NAMES = {
    'absolute': 'abs', 'arccos': 'acos', 'arccosh': 'acosh', 'arcsin': 'asin', 'arcsinh': 'asinh', 'arctan': 'atan',
    'arctan2': 'atan2', 'arctanh': 'atanh', 'clip': 'clamp', 'divide': 'div', 'fix': 'trunc', 'greater': 'gt',
    'greater_equal': 'ge', 'less': 'lt', 'less_equal': 'le', 'multiply': 'mul', 'negative': 'neg', 'not_equal': 'ne',
    'orgqr': 'linalg_householder_product', 'subtract': 'sub',
}
METHODS = {'ndimension': 'dim', 'nelement': 'numel', 'true_divide_': 'div_'}
COPIED = (
    'addbmm', 'addmm', 'addmv', 'addr', 'baddbmm', 'cumprod', 'cumsum', 'float_power', 'masked_scatter', 'polygamma',
    'renorm',
)  # fmt: skip
# Autocast would compute these in another dtype than that of the tensor itself, which stays as it is.
PRODUCTS = ('addbmm', 'addmm', 'addmv', 'addr', 'baddbmm')
# Integers are not made wider by them, as the tensor itself cannot be.
KEEPING = ('cumprod', 'cumsum')


def _computed(tensor, name, args, options):
    from gi.overrides._gtorch_amp import autocast, is_autocast_available, is_autocast_enabled

    kind = tensor.device.type
    if name not in PRODUCTS or not is_autocast_available(kind) or not is_autocast_enabled(kind):
        return getattr(tensor, name)(*args, **options)

    def near(value):
        is_other = isinstance(value, RawTensor) and value.is_floating_point() and value.dtype != tensor.dtype
        return value.to(tensor.dtype) if is_other else value

    with autocast(kind, enabled=False):
        return getattr(tensor, name)(*map(near, args), **{key: near(value) for key, value in options.items()})


def _in_place(name, method):
    def call(self, *args, **options):
        if name in KEEPING and options.get('dtype') is None:
            options['dtype'] = self.dtype
        made = _computed(self, name, args, options)
        if made.dtype != self.dtype or made.shape != self.shape:
            text = f'the result has dtype {made.dtype} and shape {tuple(made.shape)}, the tensor'
            raise RuntimeError(f'{name}_(): {text} {self.dtype} and {tuple(self.shape)}')
        return self.copy_(made)

    call.__name__ = call.__qualname__ = f'{name}_'
    call.__wrapped__ = method
    call.__doc__ = f'Does what {name}() does, to the tensor itself.'
    return call


def unsqueeze_(self, dim):
    """Inserts a dimension of size 1 into the tensor itself."""
    return self.unsqueeze_inplace(convert_whole(dim))


def squeeze_(self, dim=None):
    """Removes dimensions of size 1 from the tensor itself: those in dim, where () is none, or all."""
    if isinstance(dim, (list, tuple)) and not dim:
        return self
    return self.squeeze_inplace([] if dim is None else convert_ints(dim))


def transpose_(self, dim0, dim1):
    """Swaps two dimensions of the tensor itself."""
    return self.transpose_inplace(convert_whole(dim0), convert_whole(dim1))


def t_(self):
    """Transposes the matrix itself."""
    if self.dim() > 2:
        raise RuntimeError(f't_(): the tensor has {self.dim()} dimensions, and may have 2')
    return self if self.dim() < 2 else self.transpose_inplace(0, 1)


def resize_(self, *sizes):
    """Gives the tensor itself another shape; elements that there were not may have any value."""
    if len(sizes) == 1 and not isinstance(sizes[0], int):
        (sizes,) = sizes
    return self.resize_inplace(convert_ints(sizes))


def resize_as_(self, the_template):
    """Gives the tensor itself the shape of another one."""
    if not isinstance(the_template, RawTensor):
        raise TypeError(f'resize_as_(): the_template must be a tensor, not {type(the_template).__name__}')
    return self.resize_inplace(list(the_template.shape))


def fill_diagonal_(self, fill_value, wrap=False):
    """Fills the diagonal of a matrix with a number."""
    if self.dim() != 2 or wrap:
        raise RuntimeError('fill_diagonal_(): only matrices are supported, and no wrap')
    self.diagonal().fill_(fill_value)
    return self


def broadcast_shapes(*shapes):
    """The shape to which tensors of some shapes are broadcast."""
    given = [[convert_whole(shape)] if isinstance(shape, int) else list(convert_ints(shape)) for shape in shapes]
    found = [1] * max(map(len, given), default=0)
    for shape in given:
        for i in range(-len(shape), 0):
            if shape[i] < 0:
                raise RuntimeError(f'broadcast_shapes(): a size is negative: {shape[i]}')
            if shape[i] != 1 and found[i] not in (1, shape[i]):
                raise RuntimeError(f'broadcast_shapes(): shapes {", ".join(map(str, given))} cannot be broadcast')
            found[i] = found[i] if shape[i] == 1 else shape[i]
    return Size(found)


def _of(alias):
    """The operation that has the name as well."""
    return getattr(sys.modules[NAME], NAMES[alias])


def install(export, tensor, namespace):
    for alias, name in NAMES.items():
        for ending in ('', '_'):
            if hasattr(tensor, f'{name}{ending}'):
                setattr(tensor, f'{alias}{ending}', getattr(tensor, f'{name}{ending}'))
        FUNCTIONS[alias] = _of
    tensor.orgqr = namespace.orgqr
    for alias, name in METHODS.items():
        setattr(tensor, alias, getattr(tensor, name))
    for name in COPIED:
        setattr(tensor, f'{name}_', _in_place(name, getattr(tensor, name)))
    for function in (unsqueeze_, squeeze_, transpose_, t_, resize_, resize_as_, fill_diagonal_):
        setattr(tensor, function.__name__, function)
    tensor.swapaxes_ = tensor.swapdims_ = transpose_
    export('broadcast_shapes', broadcast_shapes)
