# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""GTorch.testing: assert_close() of tensors, numbers and containers of them, and make_tensor()."""

import math
import numbers
from collections.abc import Mapping, Sequence

from gi.overrides._gtorch_arguments import check_format, formatted
from gi.overrides._gtorch_convert import DType, RawTensor, convert_bool, convert_dtype

# PyTorch's: relative and absolute
TOLERANCES = {
    DType.FLOAT16: (1e-3, 1e-5), DType.BFLOAT16: (1.6e-2, 1e-5), DType.FLOAT32: (1.3e-6, 1e-5),
    DType.FLOAT64: (1e-7, 1e-7), DType.COMPLEX64: (1.3e-6, 1e-5), DType.COMPLEX128: (1e-7, 1e-7),
}


def _fail(where, text, msg):
    text = f'{where}: {text}' if where else text
    if callable(msg):
        text = msg(text)
    elif msg is not None:
        text = msg
    raise AssertionError(text)


def _compare(actual, expected, rtol, atol, equal_nan, where, checks, msg):
    for what, is_checked in checks.items():
        one, other = (getattr(x, what)() if what == 'stride' else getattr(x, what) for x in (actual, expected))
        if is_checked and one != other:
            _fail(where, f'the values of attribute {what!r} are {one} and {other}', msg)
    if actual.shape != expected.shape:
        _fail(where, f'the shapes are {tuple(actual.shape)} and {tuple(expected.shape)}', msg)
    found = [TOLERANCES.get(x.dtype, (0.0, 0.0)) for x in (actual, expected)]
    if rtol is None:
        rtol, atol = (max(pair) for pair in zip(*found))
    wide = DType.promote(actual.dtype, expected.dtype)
    exact = not wide.is_floating_point and not wide.is_complex
    target = DType.INT64 if exact else DType.COMPLEX128 if wide.is_complex else DType.FLOAT64
    a, b = (x.detach().cpu().to_dtype(target) for x in (actual, expected))
    close = a.isclose(b, rtol, atol, equal_nan)
    n_wrong = close.numel() - int(close.to_dtype(DType.INT64).sum().item())
    if n_wrong == 0:
        return
    if a.numel() == 1:
        text = f'the values are {a.item()} and {b.item()}'
    else:
        # where NaN is, there is no difference to tell
        distance = (a - b).abs().to_dtype(DType.FLOAT64).nan_to_num()
        index, place = int(distance.argmax().item()), []
        greatest = float(distance.max().item())
        for size in reversed(a.shape):
            place.insert(0, index % size)
            index //= size
        text = (f'{n_wrong} of {close.numel()} elements differ; the greatest absolute difference is {greatest:g} at '
                f'{tuple(place)}, where they are {a[tuple(place)].item()} and {b[tuple(place)].item()}')
    _fail(where, f'{text}; allowed are {atol:g} absolute and {rtol:g} relative', msg)


def assert_close(
    actual,
    expected,
    *,
    allow_subclasses=True,
    rtol=None,
    atol=None,
    equal_nan=False,
    check_device=True,
    check_dtype=True,
    check_layout=True,
    check_stride=False,
    msg=None,
):
    """Raises AssertionError unless |actual - expected| <= atol + rtol |expected| everywhere, and dtypes, devices and
    shapes are the same. Tensors, numbers, and sequences and mappings of them are compared; the tolerances follow from
    the dtypes if both are None."""
    if (rtol is None) != (atol is None):
        raise ValueError('assert_close(): rtol and atol must be given both or neither')
    checks = {'device': check_device, 'dtype': check_dtype, 'stride': check_stride}

    def visit(one, other, where):
        if not allow_subclasses and type(one) is not type(other):
            kinds = f'{type(one).__name__} and {type(other).__name__}'
            raise TypeError(f'assert_close(): {where or "the values"} are {kinds}')
        if isinstance(one, RawTensor) and isinstance(other, RawTensor):
            return _compare(one, other, rtol, atol, equal_nan, where, checks, msg)
        if isinstance(one, numbers.Number) and isinstance(other, numbers.Number):
            if check_dtype and type(one) is not type(other):
                _fail(where, f'the numbers are of types {type(one).__name__} and {type(other).__name__}', msg)
            pair = _tensor(one), _tensor(other)
            return _compare(*pair, rtol, atol, equal_nan, where, {**checks, 'dtype': False}, msg)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            if set(one) != set(other):
                _fail(where, f'the keys are {sorted(map(str, one))} and {sorted(map(str, other))}', msg)
            for key in one:
                visit(one[key], other[key], f'{where}[{key!r}]')
            return None
        if all(isinstance(x, Sequence) and not isinstance(x, (str, bytes)) for x in (one, other)):
            if len(one) != len(other):
                _fail(where, f'the lengths are {len(one)} and {len(other)}', msg)
            for i, pair in enumerate(zip(one, other)):
                visit(*pair, f'{where}[{i}]')
            return None
        if one is None or other is None:
            if one is not other:
                _fail(where, f'None is compared with {other if one is None else one!r}', msg)
            return None
        kinds = f'{type(one).__name__} and {type(other).__name__}'
        raise TypeError(
            f'assert_close(): {where or "the values"} are {kinds}: tensors, numbers and containers of them are compared'
        )

    visit(actual, expected, '')


def _tensor(value):
    from gi.overrides._gtorch_create import tensor

    dtype = None if isinstance(value, (bool, int)) else DType.FLOAT64
    dtype = DType.COMPLEX128 if isinstance(value, complex) else dtype
    return tensor(value, dtype=dtype)


def _limits(dtype, low, high):
    """The range of numbers, as PyTorch has it, and whether they are whole."""
    whole = not (dtype.is_floating_point or dtype.is_complex)
    default = (0, 2) if dtype == DType.BOOL else (0, 10) if dtype == DType.UINT8 else (-9, 10) if whole else (-9, 9)
    low, high = (own if given is None else given for given, own in zip((low, high), default))
    if not low < high:
        raise ValueError(f'make_tensor(): low is {low} and high {high}: it must be greater')
    return low, high, whole


def make_tensor(
    *shape,
    dtype,
    device,
    low=None,
    high=None,
    requires_grad=False,
    noncontiguous=False,
    exclude_zero=False,
    memory_format=None,
):
    """Returns a tensor of random numbers from @low on and below @high, by default within -9 and 9, of any dtype."""
    from gi.repository import GTorch

    dtype = convert_dtype(dtype)
    shape = list(shape[0]) if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else list(shape)
    check_format('make_tensor', memory_format)
    if memory_format is not None and noncontiguous:
        raise ValueError('make_tensor(): noncontiguous and memory_format are given')
    low, high, whole = _limits(dtype, low, high)
    spaced = [*shape[:-1], 2 * shape[-1]] if convert_bool(noncontiguous) and shape else shape
    if whole:
        made = GTorch.randint(math.ceil(low), math.ceil(high), spaced, dtype=GTorch.int64, device=device).to(dtype)
    elif dtype.is_complex:
        part = GTorch.float64 if dtype == DType.COMPLEX128 else GTorch.float32
        parts = GTorch.rand([*spaced, 2], dtype=part, device=device) * (high - low) + low
        made = GTorch.view_as_complex(parts).to(dtype)
    else:
        made = (GTorch.rand(spaced, dtype=GTorch.float64, device=device) * (high - low) + low).to(dtype)
    made = made[..., ::2] if spaced is not shape else made
    if convert_bool(exclude_zero):
        made[made == 0] = 1 if whole else GTorch.finfo(dtype).tiny
    return formatted(made, memory_format).requires_grad_(convert_bool(requires_grad))


def install(submodule):
    submodule('testing', 'Tensors and comparisons for tests.',
              {'assert_close': assert_close, 'make_tensor': make_tensor})
