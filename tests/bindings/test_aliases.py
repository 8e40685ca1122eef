#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Further names of operations, and forms in place that change the shape of a tensor."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import tap  # noqa: E402
from tap import raises  # noqa: E402


@tap.case
def aliases_are_the_operations():
    x, y = GTorch.tensor([-0.5, 0.25, 0.75]), GTorch.tensor([0.5, 0.25, 1.0])
    for alias, name in {
        'absolute': 'abs', 'arccos': 'acos', 'arcsin': 'asin', 'arctan': 'atan', 'arcsinh': 'asinh', 'arctanh': 'atanh',
        'negative': 'neg', 'fix': 'trunc',
    }.items():
        wanted = getattr(x, name)().tolist()
        assert getattr(x, alias)().tolist() == getattr(GTorch, alias)(x).tolist() == wanted
        assert getattr(x.clone(), f'{alias}_')().tolist() == wanted
    for alias, name in {
        'multiply': 'mul', 'subtract': 'sub', 'divide': 'div', 'arctan2': 'atan2', 'greater': 'gt', 'less': 'lt',
        'greater_equal': 'ge', 'less_equal': 'le', 'not_equal': 'ne',
    }.items():
        wanted = getattr(x, name)(y).tolist()
        assert getattr(x, alias)(y).tolist() == getattr(GTorch, alias)(x, y).tolist() == wanted
    assert x.clip(0, 0.5).tolist() == GTorch.clip(x, min=0, max=0.5).tolist() == [0, 0.25, 0.5]
    assert GTorch.arccosh(GTorch.tensor(1.0)).item() == 0
    assert x.multiply(2).tolist() == [-1, 0.5, 1.5] and x.nelement() == 3 and x.ndimension() == 1
    z = x.clone()
    assert z.clip_(max=0) is z and z.tolist() == [-0.5, 0, 0]
    assert GTorch.divide(y, 2, rounding_mode='floor').tolist() == [0, 0, 0]


@tap.case
def shapes_change_in_place():
    x = GTorch.arange(6).reshape(2, 3)
    view = x[0]
    assert x.t_() is x and x.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert x.unsqueeze_(0).shape == (1, 3, 2) and x.transpose_(0, -1).shape == (2, 3, 1)
    assert x.squeeze_().shape == (2, 3) and x.unsqueeze_(-1).squeeze_(2).shape == (2, 3)
    assert x.swapaxes_(0, 1).swapdims_(0, 1).tolist() == [[0, 1, 2], [3, 4, 5]]
    x[0, 0] = 9
    assert view.tolist() == [9, 1, 2]
    assert GTorch.ones(3).t_().shape == (3,)
    raises(RuntimeError, lambda: GTorch.ones(1, 2, 3).t_(), '3 dimensions')
    raises(GLib.Error, lambda: x.unsqueeze_(5), 'out of the range')
    assert x.shape == (2, 3)
    for change in ('t_', 'squeeze_', lambda one: one.unsqueeze_(0), lambda one: one.resize_(4)):
        given = GTorch.ones(2, 2).requires_grad_()
        call = getattr(GTorch.Tensor, change) if isinstance(change, str) else change
        raises(GLib.Error, lambda: call(given), 'requires grad')


@tap.case
def what_was_saved_keeps_its_shape():
    weight, x = GTorch.ones(2, 3).requires_grad_(), GTorch.arange(6.0).reshape(2, 3)
    y = (weight * x).sum()
    x.t_()
    y.backward()
    assert weight.grad.tolist() == [[0, 1, 2], [3, 4, 5]]


@tap.case
def tensors_are_resized():
    x = GTorch.arange(6)
    assert x.resize_(2, 2) is x and x.tolist() == [[0, 1], [2, 3]]
    assert x.resize_([5]).tolist()[:4] == [0, 1, 2, 3] and x.shape == (5,)
    assert x.resize_as_(GTorch.ones(2, 1)).tolist() == [[0], [1]]
    assert x.resize_(0).numel() == 0
    raises(GLib.Error, lambda: GTorch.ones(2, 3).t().resize_(3), 'not contiguous')
    raises(GLib.Error, lambda: GTorch.ones(2).resize_(-1), 'the shape [-1] is invalid')
    raises(TypeError, lambda: x.resize_as_(3), 'must be a tensor')


@tap.case
def further_forms_in_place():
    x = GTorch.ones(2, 2)
    assert x.cumsum_(0) is x and x.tolist() == [[1, 1], [2, 2]]
    assert x.addmm_(GTorch.eye(2), GTorch.eye(2), beta=0.5).tolist() == [[1.5, 0.5], [1, 2]]
    assert GTorch.zeros(2, 3).fill_diagonal_(7).tolist() == [[7, 0, 0], [0, 7, 0]]
    assert GTorch.ones(2, dtype=GTorch.int32).cumsum_(0).tolist() == [1, 2]
    raises(RuntimeError, lambda: GTorch.ones(2, dtype=GTorch.int32).float_power_(2), 'dtype')
    weight = GTorch.ones(3).requires_grad_()
    (weight * 1).cumsum_(0).sum().backward()
    assert weight.grad.tolist() == [3, 2, 1]
    assert (weight * 1).detach_().requires_grad is False


@tap.case
def shapes_are_broadcast():
    assert GTorch.broadcast_shapes((2, 1), (3,), 3, (1, 1, 1)) == (1, 2, 3)
    assert GTorch.broadcast_shapes() == () and GTorch.broadcast_shapes((0, 1), (1, 4)) == (0, 4)
    raises(RuntimeError, lambda: GTorch.broadcast_shapes((2, 3), (4,)), '[2, 3], [4] cannot be broadcast')
    raises(RuntimeError, lambda: GTorch.broadcast_shapes((-1,)), 'negative')


tap.main()
