# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs of the Python array API standard, run in the same way with its strict implementation and with GTorch:
array_api_reference.py writes what the former gives, and test_array_api.py compares."""

import inspect
import itertools
import math

INF, NAN = math.inf, math.nan
PARTS = [0.0, -0.0, 1.0, -2.0, INF, -INF, NAN]
FLOATS = [0.0, -0.0, 0.5, 1.0, -1.0, 2.5, -2.5, 3.0, 20.0, 1e30, INF, -INF, NAN]
VALUES = {
    'bool': [False, True, True],
    'int8': [-3, 0, 1, 2, 7],
    'int32': [-3, 0, 1, 2, 7],
    'int64': [-3, 0, 1, 2, 7],
    'uint8': [0, 1, 2, 3, 250],
    'float32': FLOATS,
    'float64': FLOATS,
    'complex64': [0.5 + 1j, -1 + 2j, 0.25 - 0.5j, 2 + 0j],
    'complex128': [0.5 + 1j, -1 + 2j, 0.25 - 0.5j, 2 + 0j],
}
ONE = (
    'abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf isnan '
    'log log10 log1p log2 logical_not negative positive real reciprocal round sign signbit sin sinh sqrt square '
    'tan tanh trunc'
).split()
TWO = (
    'add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal '
    'floor_divide greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum '
    'minimum multiply nextafter not_equal pow remainder subtract'
).split()
PAIRS = [('int8', 'int32'), ('uint8', 'int8'), ('int64', 'int32'), ('float32', 'float64'), ('float64', 'complex64')]
# The functions of whole numbers that are only for some of them.
POSITIVE = {'pow', 'bitwise_left_shift', 'bitwise_right_shift'}
NOT_ZERO = {'floor_divide', 'remainder'}

# Of x, a tensor of shape (2, 3); v, a vector with equal elements; m, matrices (2, 3, 3), positive definite; z, complex;
# i, indices; b, bools; parts, complex numbers of special values.
OTHERS = '''
xp.sum(x); xp.sum(x, axis=0); xp.sum(x, axis=(0, 1), keepdims=True); xp.sum(x, axis=()); xp.sum(i)
xp.sum(special); xp.sum(x, axis=-1, dtype=xp.float32); xp.sum(z, axis=0)
xp.sum(xp.asarray(i, dtype=xp.int8), axis=0); xp.prod(x); xp.prod(x, axis=0, keepdims=True)
xp.prod(x, axis=(0, 1)); xp.prod(i); xp.prod(x, axis=()); xp.prod(z); xp.max(x)
xp.max(x, axis=(0, 1), keepdims=True); xp.max(x, axis=1); xp.max(i); xp.max(x, axis=()); xp.min(x)
xp.min(x, axis=(1,)); xp.min(i, keepdims=True); xp.max(special); xp.min(special); xp.mean(x)
xp.mean(x, axis=(0, 1), keepdims=True); xp.mean(x, axis=1); xp.mean(x, axis=()); xp.var(x)
xp.var(x, axis=0, correction=1); xp.var(x, axis=(0, 1), keepdims=True); xp.var(x, axis=1, correction=0.5)
xp.std(x); xp.std(x, axis=0, correction=1); xp.std(x, keepdims=True); xp.std(x, axis=-1, correction=1.5)
xp.all(b); xp.all(b, axis=0); xp.all(x, axis=(0, 1), keepdims=True); xp.any(b); xp.any(i); xp.any(x, axis=1)
xp.any(x, axis=()); xp.all(xp.zeros((0, 3), dtype=xp.float32), axis=0)
xp.any(xp.zeros((0, 3), dtype=xp.bool), axis=0); xp.all(special); xp.any(z, axis=0); xp.count_nonzero(x)
xp.count_nonzero(b, axis=0); xp.count_nonzero(x, axis=(0, 1), keepdims=True); xp.argmax(x); xp.argmax(x, axis=0)
xp.argmax(x, keepdims=True); xp.argmax(v); xp.argmin(v); xp.argmin(x, axis=1, keepdims=True)
xp.cumulative_sum(v); xp.cumulative_sum(x, axis=1); xp.cumulative_sum(x, axis=0, include_initial=True)
xp.cumulative_sum(i, axis=-1, include_initial=True); xp.cumulative_prod(v)
xp.cumulative_prod(x, axis=-1, include_initial=True); xp.cumulative_sum(x, axis=1, dtype=xp.float32); xp.diff(v)
xp.diff(x, axis=0); xp.diff(x, n=2); xp.diff(v, prepend=v[:1], append=v[1:2]); xp.sort(v)
xp.sort(v, descending=True); xp.sort(x, axis=0); xp.argsort(v); xp.argsort(v, descending=True)
xp.argsort(x, axis=0); xp.sort(i, descending=True); xp.unique_values(i); xp.unique_counts(i)[1]
xp.unique_inverse(i)[1]; xp.unique_all(i)[1]; xp.unique_all(i)[3]; xp.unique_all(v)[0]; xp.unique_all(v)[1]
xp.unique_all(v)[2]; xp.unique_all(v)[3]; xp.unique_values(b); xp.unique_inverse(x)[1]
xp.unique_values(xp.asarray([1.0, xp.nan, 1.0, xp.nan]))
xp.unique_counts(xp.asarray([1.0, xp.nan, 1.0, xp.nan]))[1]; xp.unique_all(xp.zeros((0,), dtype=xp.float32))[3]
xp.unique_values(z); xp.nonzero(x)[0]; xp.nonzero(x)[1]; xp.nonzero(i)[0]; xp.where(x > 0, x, -x)
xp.where(b, xp.asarray([1j, 2j]), xp.asarray(1.5)); xp.where(x > 1, x, 0.0)
xp.where(x > 1, 0.0, xp.asarray(1.0, dtype=xp.float32)); xp.where(i > 0, i, xp.asarray(1, dtype=xp.int8))
xp.searchsorted(xp.sort(v), v); xp.searchsorted(xp.sort(v), x, side='right')
xp.searchsorted(v, v, sorter=xp.argsort(v)); xp.take(v, i); xp.take(x, xp.asarray([1, 0, 1]), axis=0)
xp.take(x, xp.asarray([-1, 0]), axis=1); xp.take_along_axis(x, xp.argsort(x, axis=1), axis=1)
xp.take_along_axis(x, xp.asarray([[0, 1, -1]]), axis=0); xp.concat((x, x)); xp.concat([x, v], axis=None)
xp.concat((i, xp.asarray([1], dtype=xp.int8))); xp.concat((x, x), axis=-1); xp.stack((x, -x))
xp.stack((x, -x), axis=-1); xp.unstack(x)[1]; xp.unstack(x, axis=-1)[2]; xp.expand_dims(x, axis=0)
xp.expand_dims(x, axis=-1); xp.expand_dims(x, axis=1); xp.squeeze(x[:1, :], axis=0)
xp.squeeze(xp.reshape(x, (1, 6, 1)), axis=(0, -1)); xp.flip(x); xp.flip(x, axis=1); xp.flip(x, axis=(0, -1))
xp.moveaxis(m, 0, -1); xp.moveaxis(m, (0, 1), (1, 0)); xp.permute_dims(m, (2, 0, 1)); xp.reshape(x, (3, -1))
xp.reshape(x, (6,), copy=True); xp.reshape(x, (6,), copy=False); xp.repeat(x, 2); xp.repeat(x, 2, axis=0)
xp.repeat(x, xp.asarray([1, 2]), axis=0); xp.tile(x, (2,)); xp.tile(x, (2, 1, 2)); xp.roll(x, 1)
xp.roll(x, -1, axis=1); xp.roll(x, (1, 2), axis=(0, 1)); xp.roll(x, 1, axis=(0, 1)); xp.matrix_transpose(m)
xp.broadcast_to(x, (2, 2, 3)); xp.broadcast_arrays(x, v[:3])[1]; xp.meshgrid(v, v[:2])[0]
xp.meshgrid(v, v[:2])[1]; xp.meshgrid(v, v[:2], indexing='ij')[0]; xp.meshgrid(v)[0]; xp.tril(m)
xp.tril(m, k=-1); xp.triu(m, k=1); xp.eye(3, dtype=xp.float32); xp.eye(2, 4, k=1, dtype=xp.int32)
xp.eye(3, k=-2, dtype=xp.bool); xp.eye(3, k=7, dtype=xp.float64); xp.arange(5); xp.arange(1, 8, 3)
xp.arange(5, 1, -2); xp.arange(0, 1, 0.25, dtype=xp.float32); xp.arange(3, 1); xp.arange(4, dtype=xp.float64)
xp.arange(0); xp.arange(2.0, dtype=xp.float64); xp.linspace(0, 1, 5, dtype=xp.float32)
xp.linspace(0, 1, 4, dtype=xp.float64, endpoint=False); xp.linspace(1, 0, 0, dtype=xp.float32)
xp.linspace(0, 1 + 2j, 3, dtype=xp.complex64); xp.linspace(5, 5, 1, dtype=xp.float64)
xp.full(3, 2, dtype=xp.int8); xp.full((2, 2), True); xp.full((2,), 3); xp.zeros(3, dtype=xp.int32)
xp.ones((2, 1), dtype=xp.complex64); xp.zeros_like(x); xp.ones_like(i, dtype=xp.float32); xp.full_like(x, 2)
xp.empty((2, 0), dtype=xp.float32); xp.empty_like(xp.zeros((0, 1)), dtype=xp.int8); xp.asarray(True)
xp.asarray([1, 2]); xp.asarray([[True], [False]]); xp.asarray(x, dtype=xp.float32)
xp.asarray(3, dtype=xp.uint8); xp.astype(x, xp.int32); xp.astype(i, xp.bool); xp.astype(b, xp.float32)
xp.astype(x, xp.complex64); xp.astype(x, x.dtype, copy=False); xp.clip(x, 0, 1); xp.clip(x, min=1.0)
xp.clip(x, max=1.5); xp.clip(i, 1, None); xp.clip(x, x - 1, xp.asarray(5.0, dtype=x.dtype)); xp.clip(x)
xp.clip(xp.asarray([1, 5], dtype=xp.uint8), 0, 300); xp.clip(special, -1.0, 1.0); xp.matmul(m, m)
xp.matmul(x, m[0, ...]); xp.matmul(v[:3], m); xp.matmul(m, v[:3]); xp.matmul(i, i)
xp.matmul(x, xp.asarray(m[0, ...], dtype=xp.float32)); xp.tensordot(x, x, axes=2)
xp.tensordot(m, x, axes=((2,), (1,))); xp.tensordot(x, m, axes=((1,), (2,)))
xp.tensordot(x, x, axes=((0, 1), (0, 1))); xp.tensordot(v, v, axes=0); xp.vecdot(x, v[:3]); xp.vecdot(z, z)
xp.vecdot(m, x[:, None, :], axis=-1); xp.vecdot(x, x, axis=-2); xp.linalg.cholesky(m)
xp.linalg.cholesky(m, upper=True); xp.linalg.cross(x, v[:3]); xp.linalg.cross(m, m[:1, ...], axis=-2)
xp.linalg.det(m); xp.linalg.diagonal(m); xp.linalg.diagonal(m, offset=1); xp.linalg.eigvalsh(m)
xp.linalg.eigh(m).eigenvalues; xp.linalg.inv(m); xp.linalg.matmul(m, m); xp.linalg.matrix_norm(m)
xp.linalg.matrix_norm(m, ord='nuc'); xp.linalg.matrix_norm(m, ord=1, keepdims=True)
xp.linalg.matrix_norm(m, ord=-xp.inf); xp.linalg.matrix_norm(m, ord=2); xp.linalg.matrix_power(m, 3)
xp.linalg.matrix_power(m, -1); xp.linalg.matrix_power(m, 0); xp.linalg.matrix_rank(m)
xp.linalg.matrix_rank(x, rtol=0.5); xp.linalg.matrix_transpose(m); xp.linalg.outer(v, i); xp.linalg.pinv(x)
xp.linalg.pinv(m, rtol=1e-3); xp.linalg.slogdet(m).sign; xp.linalg.slogdet(m).logabsdet
xp.linalg.solve(m, v[:3]); xp.linalg.solve(m, m); xp.linalg.solve(m, x.mT); xp.linalg.solve(m[0, ...], v[:3])
xp.linalg.solve(m[0, ...], x.mT); xp.linalg.svd(m).S; xp.linalg.svd(x, full_matrices=False).U.shape
xp.linalg.svd(x).Vh.shape; xp.linalg.svdvals(x); xp.linalg.qr(x.mT).R.shape
xp.linalg.qr(x.mT, mode='complete').Q.shape; xp.linalg.tensordot(x, x); xp.linalg.trace(m)
xp.linalg.trace(m, offset=1); xp.linalg.trace(xp.asarray(m, dtype=xp.int8))
xp.linalg.trace(m, dtype=xp.float32); xp.linalg.vecdot(x, x); xp.linalg.vector_norm(x)
xp.linalg.vector_norm(x, axis=0); xp.linalg.vector_norm(m, axis=(0, 2), keepdims=True)
xp.linalg.vector_norm(x, ord=1); xp.linalg.vector_norm(x, ord=xp.inf, axis=1); xp.linalg.vector_norm(x, ord=0)
xp.linalg.vector_norm(z); xp.linalg.vector_norm(x, ord=3.5, keepdims=True); xp.fft.fft(z); xp.fft.fft(z, n=6)
xp.fft.ifft(z, norm='ortho'); xp.fft.fftn(m + 0j); xp.fft.fftn(m + 0j, s=(2, 2), axes=(0, 1))
xp.fft.ifftn(m + 0j, axes=(1, 2), norm='forward'); xp.fft.rfft(x); xp.fft.rfft(x, axis=0); xp.fft.irfft(z)
xp.fft.irfft(z, n=5); xp.fft.rfftn(m, axes=(0, 1)); xp.fft.irfftn(xp.fft.rfftn(m)); xp.fft.hfft(z)
xp.fft.ihfft(v); xp.fft.fftshift(x); xp.fft.fftshift(x, axes=1); xp.fft.ifftshift(v)
xp.fft.ifftshift(m, axes=(0, 2)); xp.fft.fftfreq(5, dtype=xp.float64)
xp.fft.fftfreq(4, d=0.5, dtype=xp.float32); xp.fft.rfftfreq(5, dtype=xp.float64); x + v[:3]; 2 * x; x ** 2
1 / x; x // 2; x % 2; -x; +x; abs(x); x @ m[0, ...]; i & 3; i | 8; i ^ 1; ~i; i << 1; i >> 1; 1 - x; x == x
x != 1; x < v[:3]; x >= 0; i // 2; i % 2; z * 2j; ~b; b & True; x[0, ...]; x[:, 1]; x[..., None, ::2]; x[x > 0]
v[i > 0]; x[1, -1]; x.T; m.mT; x[xp.asarray([0, 1]), xp.asarray([1, 2])]; float(x[0, 0]); int(i[1])
bool(b[0, 0]); complex(z[0]); x.ndim; x.shape; range(5)[i[2]]; xp.result_type(x, xp.float32)
xp.result_type(xp.int8, xp.uint8); xp.result_type(i, 3); xp.result_type(xp.float32, 1j)
xp.result_type(xp.float32, 2.0, xp.float32); xp.can_cast(xp.int8, xp.int16); xp.can_cast(xp.int16, xp.int8)
xp.can_cast(x, xp.float32); xp.can_cast(xp.uint8, xp.int8); xp.can_cast(xp.float32, xp.complex64)
xp.isdtype(xp.int8, 'integral'); xp.isdtype(xp.float32, ('integral', 'complex floating'))
xp.isdtype(xp.bool, 'numeric'); xp.isdtype(xp.uint8, 'unsigned integer'); xp.isdtype(xp.float32, xp.float32)
xp.isdtype(xp.complex64, 'complex floating'); xp.isdtype(xp.bool, 'bool'); xp.isdtype(xp.int8, 'signed integer')
xp.finfo(xp.float32).bits; xp.finfo(x).eps; xp.finfo(xp.complex64).max; xp.finfo(xp.float64).smallest_normal
xp.finfo(xp.complex128).dtype; xp.iinfo(xp.int8).max; xp.iinfo(i).min; xp.iinfo(xp.uint8).bits
xp.iinfo(xp.int16).dtype; xp.log(parts); xp.log10(parts); xp.log1p(parts); xp.log2(parts)
xp.var(xp.asarray(xp.nan)); xp.std(xp.asarray(-xp.inf)); xp.var(special, axis=()); xp.std(x, axis=(), correction=1)
xp.var(xp.asarray(2.0), correction=2); xp.mean(xp.asarray(xp.nan)); xp.max(xp.asarray(xp.nan))
xp.expm1(xp.asarray([-180 + 1j, -5000 - 2j, 1e-9 + 1e-9j, 20 + 1j], dtype=xp.complex128)); xp.pi; xp.e; xp.newaxis
xp.inf; xp.linalg.solve(m[:1, :1, :1], v[:1]); xp.linalg.solve(m[:1, :1, :1], x[:1, :2])
'''
# Errors of the standard.
REFUSED = '''
xp.squeeze(x, axis=0); xp.expand_dims(x, axis=5); xp.sum(x, axis=2); xp.sum(x, axis=(0, 0))
xp.matrix_transpose(v); xp.linalg.matrix_rank(v); xp.nonzero(xp.asarray(1)); xp.matmul(x, x)
xp.cumulative_sum(x); xp.reshape(x, (7,)); xp.concat((x, v)); xp.broadcast_to(x, (4, 3))
xp.meshgrid(v, i, indexing='no'); xp.isdtype(xp.int8, 'no'); xp.isdtype(xp.int8, 3); xp.result_type()
xp.result_type(1); xp.take(x, i); xp.linalg.qr(x, mode='no'); xp.searchsorted(v, v, side='no')
xp.astype(z, xp.float32); xp.linalg.cross(v, v); xp.permute_dims(x, (0, 0)); xp.vecdot(x, v)
xp.reshape(x.mT, (6,), copy=False); xp.sum(x, 0); xp.sort(x, 0); xp.argmax(x, 0); xp.arange(start=0, stop=3)
xp.sin(x=x); xp.add(x1=x, x2=x); xp.linalg.det(v); xp.unstack(x, axis=3); xp.flip(x, axis=4); bool(x); int(v)
float(x)
'''


def names_of(xp):
    """Inputs by the names that the programs use."""
    float64 = xp.float64
    m = [[[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]], [[2.0, 0.5, 0.0], [0.5, 5.0, 1.0], [0.0, 1.0, 1.5]]]
    return {
        'xp': xp,
        'x': xp.asarray([[1.5, -2.0, 0.25], [3.0, 0.5, -1.25]], dtype=float64),
        'v': xp.asarray([2.0, 1.0, 2.0, -1.0, 1.0, 0.5], dtype=float64),
        'm': xp.asarray(m, dtype=float64),
        'z': xp.asarray([0.5 + 1j, -1 + 2j, 0.25 - 0.5j, 2 + 0j], dtype=xp.complex128),
        'i': xp.asarray([3, 1, 2, 1, 3, 0], dtype=xp.int64),
        'b': xp.asarray([[True, False], [True, True]]),
        'special': xp.asarray(FLOATS, dtype=float64),
        'parts': xp.asarray([complex(a, b) for a in PARTS for b in PARTS], dtype=xp.complex128),
    }


def _split(text):
    return [one.strip() for line in text.strip().splitlines() for one in line.split(';')]


def _values(name, dtype):
    values = VALUES[dtype]
    if name in POSITIVE and 'int' in dtype:
        return [value for value in values if 0 <= value < 7]
    return values


def _pointwise(xp):
    for name, dtype in itertools.product(ONE, VALUES):
        yield f'{name} {dtype}', lambda name=name, dtype=dtype: getattr(xp, name)(
            xp.asarray(VALUES[dtype], dtype=getattr(xp, dtype)))
    for name in TWO:
        for first, second in [*((dtype, dtype) for dtype in VALUES if dtype not in ('int64', 'float32')), *PAIRS]:
            def call(name=name, first=first, second=second, with_dims=(True, True)):
                a, b = _values(name, first), _values(name, second)
                if name == 'pow' and 'complex' in second and 'float' in first:
                    a = [value for value in a if value != 0 and math.isfinite(value)]
                if name in NOT_ZERO and 'int' in second:
                    b = [value for value in b if value != 0]
                x1 = xp.reshape(xp.asarray(a, dtype=getattr(xp, first)), (-1, 1))
                x2 = xp.asarray(b, dtype=getattr(xp, second))
                x1, x2 = x1 if with_dims[0] else x1[2, 0], x2 if with_dims[1] else x2[1]
                return getattr(xp, name)(x1, x2)

            yield f'{name} {first} {second}', call
            if first != second:
                yield f'{name} {first}() {second}', lambda call=call: call(with_dims=(False, True))
                yield f'{name} {first} {second}()', lambda call=call: call(with_dims=(True, False))
        for dtype, number in (('float32', 2.5), ('int8', 2), ('bool', True), ('complex64', 1j), ('float32', 1)):
            x = xp.asarray(_values(name, dtype), dtype=getattr(xp, dtype))
            yield f'{name} {dtype} {number}', lambda name=name, x=x, number=number: getattr(xp, name)(x, number)
            yield f'{name} {number} {dtype}', lambda name=name, x=x, number=number: getattr(xp, name)(number, x[-2:])


def programs(xp):
    """Pairs of a name and a function without arguments."""
    yield from _pointwise(xp)
    names = names_of(xp)
    for text in _split(OTHERS):
        yield text, lambda text=text: eval(text, dict(names))


def refused(xp):
    """Programs that are errors."""
    names = names_of(xp)
    for text in _split(REFUSED):
        yield text, lambda text=text: eval(text, dict(names))


def signatures(xp):
    """The parameters of all functions of the standard: name, kind and default, as text."""
    found = {}
    for prefix, space in (('', xp), ('linalg.', xp.linalg), ('fft.', xp.fft)):
        for name in space.__all__:
            value = getattr(space, name)
            if not callable(value) or isinstance(value, type) and not name.endswith('info__'):
                continue
            if isinstance(value, type):
                found[prefix + name] = []
                continue
            found[prefix + name] = [
                [one.name, one.kind.name, None if one.default is one.empty else repr(one.default)]
                for one in inspect.signature(value).parameters.values()
            ]
    return found
