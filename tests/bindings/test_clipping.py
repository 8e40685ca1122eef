#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""GTorch.nn.utils: gradients of all parameters together, and parameters as a vector."""

import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import tap  # noqa: E402
from tap import raises  # noqa: E402

utils = GTorch.nn.utils
GRADS = [[3.0, -4.0], [[0.0, 12.0], [0.0, 0.0]]]


def params(dtypes=(GTorch.float64, GTorch.float64)):
    """Two parameters with gradients, and one without."""
    found = []
    for grad, dtype in zip(GRADS, dtypes):
        found.append(GTorch.nn.Parameter(GTorch.zeros_like(GTorch.tensor(grad, dtype=dtype))))
        found[-1].grad = GTorch.tensor(grad, dtype=dtype)
    return [*found, GTorch.nn.Parameter(GTorch.ones([3], dtype=dtypes[0]))]


def flat(some):
    return [value for param in some if param.grad is not None for value in param.grad.reshape(-1).tolist()]


@tap.case
def gradients_are_scaled_to_a_norm():
    for degree in (1.0, 2.0, 3.0, math.inf):
        for limit in (0.5, 5.0, 100.0):
            some = params()
            before = flat(some)
            norm = max(map(abs, before))
            if degree != math.inf:
                norm = sum(abs(x) ** degree for x in before) ** (1 / degree)
            found = utils.clip_grad_norm_(iter(some), limit, norm_type=degree)
            assert abs(found.item() - norm) < 1e-12 * norm
            factor = min(1, limit / (norm + 1e-6))
            for value, former in zip(flat(some), before):
                assert abs(value - former * factor) < 1e-12
            assert some[2].grad is None


@tap.case
def a_norm_may_be_computed_before():
    some = params()
    norm = utils.get_total_norm([param.grad for param in some[:2]], foreach=True)
    assert norm.item() == 13
    utils.clip_grads_with_norm_(some, 6.5, norm)
    assert abs(flat(some)[0] - 1.5) < 1e-6
    assert utils.get_total_norm([]).item() == 0
    assert utils.clip_grad_norm_([], 1.0).item() == 0


@tap.case
def dtypes_may_differ():
    some = params((GTorch.float32, GTorch.bfloat16))
    assert utils.clip_grad_norm_(some, 1.3).item() == 13
    assert [param.grad.dtype for param in some[:2]] == [GTorch.float32, GTorch.bfloat16]
    assert abs(flat(some)[0] - 0.3) < 1e-2


@tap.case
def a_norm_that_is_not_finite_may_be_an_error():
    some = params()
    some[0].grad = GTorch.tensor([math.inf, 1.0], dtype=GTorch.float64)
    raises(GLib.Error, lambda: utils.clip_grad_norm_(some, 1.0, error_if_nonfinite=True), 'must be finite')
    for limit in (-1.0, math.nan):
        raises(GLib.Error, lambda: utils.clip_grad_norm_(some, limit), 'max_norm is')
        raises(GLib.Error, lambda: utils.clip_grad_value_(some, limit), 'clip_value is')
    assert flat(some)[:3] == [math.inf, 1.0, 0.0]
    assert utils.clip_grad_norm_(some, 1.0).item() == math.inf


@tap.case
def elements_are_limited():
    some = params()
    utils.clip_grad_value_(some, 3.5)
    assert flat(some) == [3.0, -3.5, 0.0, 3.5, 0.0, 0.0]
    utils.clip_grad_value_(some[0], 1)
    assert flat(some)[:2] == [1.0, -1.0]


@tap.case
def parameters_go_to_a_vector_and_back():
    some = params()
    vector = utils.parameters_to_vector(some)
    assert vector.tolist() == [0.0] * 6 + [1.0] * 3 and vector.requires_grad
    utils.vector_to_parameters(GTorch.arange(9, dtype=GTorch.float64), some)
    assert [param.tolist() for param in some] == [[0, 1], [[2, 3], [4, 5]], [6, 7, 8]]
    for wrong in (GTorch.zeros([8]), GTorch.zeros([3, 3])):
        raises(GLib.Error, lambda: utils.vector_to_parameters(wrong, some), 'have 9 elements')
    raises(GLib.Error, lambda: utils.parameters_to_vector([]), 'no parameters')


@tap.case
def wrong_arguments_are_refused():
    raises(TypeError, lambda: utils.clip_grad_norm_([1], 1.0), 'must be tensors, not int')
    raises(TypeError, lambda: utils.clip_grad_norm_(params(), 'much'))
    raises(TypeError, lambda: utils.clip_grad_value_(params(), 1.0, foreach=2), 'foreach')


tap.main()
