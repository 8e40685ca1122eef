# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Values that go from PyTorch to this library and back, and how they are compared."""

import contextlib
import numbers
import types

import torch
from gi.repository import GTorch

DTYPES = ('float64', 'float32', 'float16', 'bfloat16', 'complex128', 'complex64', 'int64', 'int32', 'int16', 'int8',
          'uint8', 'bool')  # fmt: skip
# Results may differ by these from the larger of two, and by these beside zero.
TOLERANCES = {
    torch.float64: (1e-7, 1e-7),
    torch.complex128: (1e-7, 1e-7),
    torch.float32: (2e-4, 2e-4),
    torch.complex64: (2e-4, 2e-4),
    torch.float16: (5e-3, 5e-3),
    torch.bfloat16: (3.2e-2, 3.2e-2),
}
FORMATS = {
    torch.contiguous_format: GTorch.contiguous_format,
    torch.preserve_format: GTorch.preserve_format,
}


class Unmapped(Exception):
    """Nothing stands for a value here."""


def convert_function(value):
    """Replaced by what finds the functions of this library."""
    raise Unmapped(f'nothing stands for {value!r}')


def to_ours(value, requires_grad=False):
    """Returns what stands for a value of PyTorch; tensors are copied."""
    if isinstance(value, torch.Tensor):
        return _tensor_to_ours(value, requires_grad and value.requires_grad)
    if isinstance(value, torch.Size):
        return tuple(value)
    if isinstance(value, torch.dtype):
        name = str(value).removeprefix('torch.')
        if name not in DTYPES:
            raise Unmapped(f'there is no dtype {name}')
        return getattr(GTorch, name)
    if isinstance(value, torch.device):
        return GTorch.Device(str(value))
    if isinstance(value, torch.layout):
        if value is not torch.strided:
            raise Unmapped(f'there is no layout {value}')
        return GTorch.strided
    if isinstance(value, torch.memory_format):
        if value not in FORMATS:
            raise Unmapped(f'there is no format {value}')
        return FORMATS[value]
    if isinstance(value, dict):
        return {key: to_ours(one, requires_grad) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        made = [to_ours(one, requires_grad) for one in value]
        return tuple(made) if isinstance(value, tuple) else made
    if isinstance(value, torch.Generator):
        raise Unmapped('generators draw other numbers')
    if isinstance(value, (types.FunctionType, torch.nn.Module)):
        return convert_function(value)
    return value


def _tensor_to_ours(value, requires_grad):
    if value.layout is not torch.strided or value.is_nested or value.is_quantized:
        raise Unmapped('tensors are dense')
    if str(value.dtype).removeprefix('torch.') not in DTYPES:
        raise Unmapped(f'there is no dtype {value.dtype}')
    copy = value.detach().resolve_conj().resolve_neg().clone()
    made = GTorch.from_dlpack(copy)
    return made.requires_grad_() if requires_grad else made


def to_theirs(value):
    """Returns PyTorch's tensor for one of this library."""
    return torch.from_dlpack(value.detach().resolve_conj()) if isinstance(value, GTorch.Tensor) else value


def flat(value):
    """The tensors and other values of a result, in order."""
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in flat(value[key])]
    if isinstance(value, (list, tuple)):
        return [leaf for one in value for leaf in flat(one)]
    return [value]


def tensors(value):
    return [leaf for leaf in flat(value) if isinstance(leaf, (torch.Tensor, GTorch.Tensor))]


def text(value):
    """A short text of an argument, as it would be written."""
    if isinstance(value, torch.Tensor):
        name = str(value.dtype).removeprefix('torch.')
        what = f'{name}{list(value.shape)}'
        if 0 < value.numel() <= 6 and not value.dtype.is_complex:
            with contextlib.suppress(Exception):
                what += f'={value.detach().tolist()}'
        return what if value.is_contiguous() else f'{what}/{list(value.stride())}'
    if isinstance(value, (list, tuple)):
        return f'[{", ".join(map(text, value))}]' if isinstance(value, list) else f'({", ".join(map(text, value))})'
    return repr(value)[:100]


def sample_text(sample):
    parts = [text(sample.input), *map(text, sample.args)]
    return ', '.join([*parts, *(f'{key}={text(value)}' for key, value in sample.kwargs.items())])[:500]


def differs(theirs, ours, values=True):
    """Returns a kind of difference and a text, or None. `values`: whether also values are compared."""
    a, b = flat(theirs), flat(ours)
    if len(a) != len(b):
        return 'shape', f'{len(b)} results, and {len(a)} in PyTorch'
    for i, (one, other) in enumerate(zip(a, b)):
        found = _leaf_differs(one, other, values)
        if found:
            return (found[0], f'result {i}: {found[1]}') if len(a) > 1 else found
    return None


def _leaf_differs(one, other, values):
    if not isinstance(one, torch.Tensor):
        return _plain_differs(one, other, values)
    if not isinstance(other, GTorch.Tensor):
        return 'shape', f'{type(other).__name__} {other!r:.60}, and in PyTorch a tensor'
    if tuple(other.shape) != tuple(one.shape):
        return 'shape', f'shape {list(other.shape)}, and {list(one.shape)} in PyTorch'
    name = str(one.dtype).removeprefix('torch.')
    if str(other.dtype).removeprefix('torch.') != name:
        return 'dtype', f'{other.dtype}, and {one.dtype} in PyTorch'
    found = tensors_differ(one.detach(), to_theirs(other)) if values and one.numel() else None
    return ('wrong', found) if found else None


def _plain_differs(one, other, values):
    if isinstance(one, numbers.Number) and isinstance(other, numbers.Number):
        same = isinstance(one, bool) == isinstance(other, bool) and (not values or abs(one - other) <= 1e-6 * abs(one))
    elif isinstance(one, torch.dtype):
        same = str(other) == str(one)
    else:
        same = one == other
    return None if same else ('wrong', f'{other!r:.80}, and {one!r:.80} in PyTorch')


def tensors_differ(one, other, factor=1):
    """Returns where two tensors of one shape differ as a text, or None."""
    one = one.resolve_conj().resolve_neg()
    rtol, atol = TOLERANCES.get(one.dtype, (0, 0))
    if one.dtype in (torch.float16, torch.bfloat16):
        one, other = one.float(), other.float()
    close = torch.isclose(one, other, rtol=rtol * factor, atol=atol * factor, equal_nan=True)
    if one.dtype.is_complex:  # each part of its own, of which one may be NaN
        parts = [torch.view_as_real(x.resolve_conj()) for x in (one, other)]
        close |= torch.isclose(*parts, rtol=rtol * factor, atol=atol * factor, equal_nan=True).all(-1)
    if close.all():
        return None
    at = (~close).nonzero()[0].tolist() if one.ndim else []
    a, b = (x[tuple(at)].item() for x in (one, other))
    return f'{(~close).sum().item()} of {one.numel()} elements differ: at {at} {b} and in PyTorch {a}'
