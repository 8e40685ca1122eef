#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is not given has a value of its own: NaN and an empty list are given."""

import functools
import math
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.overrides import _gtorch_layer_table as layer_table  # noqa: E402
from gi.repository import GLib, GTorch  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402
from tap import raises  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAN = math.nan
nn, F = GTorch.nn, GTorch.nn.functional


def ramp(*shape):
    return GTorch.arange(1, math.prod(shape) + 1, dtype=GTorch.float64).view(*shape)


def is_all_nan(x):
    return x.isnan().all().item()


@tap.case
def the_constant_is_the_one_of_the_header():
    header = (ROOT / 'gtorch' / 'base' / 'gtorch-none.h').read_text()
    text = re.search(r'#define GTORCH_NONE_DOUBLE (\S+)', header)[1]
    assert float(text).hex() == GTorch.NONE_DOUBLE.hex(), (text, GTorch.NONE_DOUBLE)
    assert math.isfinite(GTorch.NONE_DOUBLE) and abs(GTorch.NONE_DOUBLE) > 1e300


@tap.case
def a_nan_that_is_given_takes_effect():
    x = GTorch.tensor([NAN, math.inf, -math.inf, 1.0], dtype=GTorch.float64)
    assert [v != v for v in F.pad(ramp(2), (1, 1), value=NAN).tolist()] == [True, False, False, True]
    assert [v != v for v in x.nan_to_num(nan=NAN).tolist()] == [True, False, False, False]
    assert [v != v for v in x.nan_to_num(posinf=NAN).tolist()] == [False, True, False, False]
    assert [v != v for v in x.nan_to_num(neginf=NAN).tolist()] == [False, False, True, False]
    assert [v != v for v in x.clone().nan_to_num_(nan=NAN).tolist()] == [True, False, False, False]
    assert is_all_nan(GTorch.trapezoid(ramp(3), dx=NAN))
    assert is_all_nan(GTorch.cumulative_trapezoid(ramp(3), dx=NAN))
    assert is_all_nan(GTorch.linalg_norm(ramp(3), NAN, dim=0))
    assert is_all_nan(GTorch.linalg_vector_norm(ramp(3), NAN))
    assert is_all_nan(ramp(3).norm(NAN))
    assert is_all_nan(F.scaled_dot_product_attention(ramp(2, 3), ramp(2, 3), ramp(2, 3), scale=NAN))


@tap.case
def a_nan_that_makes_no_sense_is_refused():
    raises(GLib.Error, lambda: GTorch.linalg_matrix_norm(ramp(2, 3), NAN), 'linalg_matrix_norm', 'nan')
    raises(GLib.Error, lambda: F.rms_norm(ramp(2, 3), (3,), eps=NAN), 'rms_norm: eps is nan')
    raises(GLib.Error, lambda: ramp(3).logit(NAN), 'logit: eps is nan')
    raises(GLib.Error, lambda: ramp(3).logit_(NAN), 'logit: eps is nan')
    raises(GLib.Error, lambda: ramp(3).histogram(2, range=(NAN, 1.0)), 'from nan to 1')
    raises(GLib.Error, lambda: ramp(3).histogram(2, range=(NAN, NAN)), 'from nan to nan')
    raises(GLib.Error, lambda: F.pad(ramp(1, 3), (1, 1), 'reflect', NAN), 'pad: a value of nan')


@tap.case
def none_leaves_a_number_out():
    x = GTorch.tensor([NAN, math.inf, -math.inf, 1.0], dtype=GTorch.float64)
    assert F.pad(ramp(1), (1, 0), value=None).tolist() == [0, 1]
    assert x.nan_to_num(None, 2.0, None).tolist() == [0, 2, -sys.float_info.max, 1]
    assert GTorch.trapezoid(ramp(3), dx=None).item() == 4
    assert GTorch.linalg_norm(GTorch.tensor([3.0, 4.0]), None).item() == 5
    assert GTorch.tensor([0.5]).logit(None).item() == 0
    assert is_all_nan(GTorch.tensor([1.5, -0.5]).logit())
    assert F.rms_norm(GTorch.tensor([1.0, 1.0]), (2,), eps=None).tolist() == [1, 1]


@tap.case
def the_gradient_of_logit_knows_whether_there_is_an_eps():
    for eps, expected in ((None, [NAN, 4, NAN]), (0.25, [0, 4, 0]), (0.0, [0, 4, 0])):
        x = GTorch.tensor([-0.5, 0.5, 1.5], requires_grad=True)
        x.logit(eps).sum().backward()
        assert str(x.grad.tolist()) == str([float(v) for v in expected]), (eps, x.grad)


@tap.case
def properties_of_layers_take_none_and_refuse_nan():
    n = 0
    for name, row in layer_table.LAYERS.items():
        for arg in row['args']:
            if arg['kind'] != 'double' or not arg.get('optional'):
                continue
            needed = [3] * max(sum(one['required'] for one in row['args']), 1)
            made, key = functools.partial(getattr(nn, name), *needed), arg['name']
            layer = made(**{key: None})
            assert getattr(layer, key) is None
            assert layer.get_property(key.replace('_', '-')) == GTorch.NONE_DOUBLE
            assert f'{key}=None' in repr(layer) or f'{key}=' not in repr(layer)
            raises(GLib.Error, functools.partial(made, **{key: NAN}), f'{key} is nan')
            setattr(layer, key, 0.5)
            assert getattr(layer, key) == 0.5
            setattr(layer, key, None)
            assert getattr(layer, key) is None
            raises(GLib.Error, functools.partial(setattr, layer, key, NAN), f'{key} is nan')
            assert getattr(layer, key) is None
            n += 1
    assert n >= 4, n


@tap.case
def an_empty_list_is_given():
    x = ramp(2, 3)
    for transform in (GTorch.fft_fftn, GTorch.fft_ifftn, GTorch.fft.fftn, GTorch.fft.ifftn):
        for options in ({'dim': ()}, {'dim': []}, {'s': []}, {'s': (), 'dim': ()}, {'dim': (), 'norm': 'ortho'}):
            same = transform(x, **options)
            assert same.dtype == GTorch.complex128 and same.real.tolist() == x.tolist()
            assert same.imag.tolist() == [[0, 0, 0], [0, 0, 0]]
        assert transform(GTorch.ones(()), dim=()).shape == ()
        assert transform(x, dim=None).tolist() == transform(x).tolist() == transform(x, dim=(0, 1)).tolist()
    for options in ({'s': [2], 'dim': []}, {'s': [], 'dim': [0]}):
        raises(ValueError, lambda options=options: GTorch.fft_fftn(x, **options), 'is an empty list')
    for name in ('rfftn', 'irfftn', 'fftshift', 'ifftshift'):
        raises(ValueError, lambda name=name: getattr(GTorch.fft, name)(x, dim=[]), 'dim is an empty list')
    for name in ('fft2', 'ifft2', 'rfft2', 'irfft2'):
        raises(ValueError, lambda name=name: getattr(GTorch.fft, name)(x, dim=[]), 'dim must not be empty')
        raises(ValueError, lambda name=name: getattr(GTorch.fft, name)(x, s=[]), 's is an empty list')
    for name in ('all', 'any', 'prod', 'argmax', 'argmin', 'gradient', 'squeeze_copy'):
        raises(ValueError, lambda name=name: getattr(x, name)(dim=[]), 'dim is an empty list')
    raises(TypeError, lambda: x.repeat_interleave(2, dim=()), 'integer')
    assert x.repeat_interleave(2).shape == x.repeat_interleave(2, None).shape == (12,)
    raises(ValueError, lambda: GTorch.linalg_norm(x, 2, dim=()), 'dim is an empty list')
    assert x.squeeze(()).shape == (2, 3)


@tap.case
def an_empty_list_is_all_where_it_is_in_pytorch():
    x = ramp(2, 3)
    names = ('sum', 'nansum', 'mean', 'nanmean', 'amax', 'amin', 'var', 'std', 'logsumexp', 'norm', 'count_nonzero')
    for name in names:
        found, all_ = getattr(x, name)(dim=[]), getattr(x, name)()
        assert found.shape == () and found.tolist() == all_.tolist(), name
    assert GTorch.linalg_vector_norm(x, dim=[]).tolist() == x.norm().tolist()


tap.main()
