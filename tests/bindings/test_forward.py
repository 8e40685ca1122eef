#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Forward-mode derivatives."""

import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import tap  # noqa: E402
from tap import raises  # noqa: E402

forward_ad = GTorch.autograd.forward_ad
functional = GTorch.autograd.functional


def numbers(*values):
    return GTorch.tensor(list(values), dtype=GTorch.float64)


def close(tensor, expected):
    found = tensor.tolist()
    assert len(found) == len(expected), found
    assert all(math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-12) for a, b in zip(found, expected)), found


def tangent_of(tensor):
    return forward_ad.unpack_dual(tensor).tangent


@tap.case
def a_dual_tensor_has_its_parts():
    x, v = numbers(1, 2), numbers(3, 4)
    with forward_ad.dual_level() as level:
        assert level == 0
        dual = forward_ad.make_dual(x, v)
        primal, tangent = forward_ad.unpack_dual(dual)
        assert primal.tolist() == [1, 2] and tangent.tolist() == [3, 4]
        assert tangent_of(primal) is None and tangent_of(x) is None and tangent_of(primal[0]) is None
        assert tangent_of(dual.detach()) is None and tangent_of(dual > 1) is None
        kept = forward_ad.unpack_dual(dual * 2)
    assert kept.tangent.tolist() == [6, 8]
    assert forward_ad.unpack_dual(dual).tangent is None


@tap.case
def operations_follow_tangents():
    x, v, w = numbers(1, 2), numbers(3, 4), numbers(0.5, -1)
    with forward_ad.dual_level():
        a, b = forward_ad.make_dual(x, v), forward_ad.make_dual(x + 1, w)
        close(tangent_of(a * b), [3 * 2 + 0.5, 4 * 3 - 2])
        close(tangent_of(a.exp()), [3 * math.exp(1), 4 * math.exp(2)])
        close(tangent_of(a @ b).reshape(1), [6 + 0.5 + 12 - 2])
        close(tangent_of(a + GTorch.zeros(2, 2, dtype=GTorch.float64))[1], [3, 4])
        close(tangent_of(GTorch.cat([a, x, b])), [3, 4, 0, 0, 0.5, -1])
        close(tangent_of(a.softmax(0)).sum().reshape(1), [0])
        close(tangent_of(a.max().reshape(1)), [4])
        with GTorch.no_grad():
            close(tangent_of(a * a), [6, 16])


@tap.case
def operations_in_place_change_the_tangent():
    x, v = numbers(1, 2, 3), numbers(1, 10, 100)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x.clone(), v.clone())
        dual.mul_(dual)
        close(tangent_of(dual), [2, 40, 600])
        first = dual[:2]
        first.mul_(2)
        close(tangent_of(dual), [4, 80, 600])
        dual.zero_()
        close(tangent_of(dual), [0, 0, 0])
        close(tangent_of(first), [0, 0])
        plain = GTorch.zeros(2, 2, dtype=GTorch.float64)
        row = plain[0]
        plain[1].copy_(forward_ad.make_dual(x[:2], v[:2]))
        close(tangent_of(plain).reshape(-1), [0, 0, 1, 10])
        assert tangent_of(row).tolist() == [0, 0]
        y = forward_ad.make_dual(x, v)
        z = y + 1
        z.mul_(3)
        close(tangent_of(z), [3, 30, 300])
        close(tangent_of(y), [1, 10, 100])


@tap.case
def tangents_can_be_differentiated():
    x, v = numbers(1, 2).requires_grad_(), numbers(3, 4).requires_grad_()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, v)
        tangent = tangent_of((dual * dual * dual).sum())
        assert tangent.requires_grad
        by_x, by_v = GTorch.autograd.grad(tangent, [x, v])
    close(by_x, [6 * 1 * 3, 6 * 2 * 4])
    close(by_v, [3, 12])


@tap.case
def gradients_have_tangents():
    x, v = numbers(1, 2).requires_grad_(), numbers(3, 4)
    for create_graph in (False, True):
        for function in (lambda a: (a**3).sum(), lambda a: (a * a.exp() * a.flip([0])).sum()):
            with forward_ad.dual_level():
                dual = forward_ad.make_dual(x, v)
                (grad,) = GTorch.autograd.grad(function(dual), dual, create_graph=create_graph)
                product = tangent_of(grad)
            _output, expected = functional.hvp(function, x.detach(), v)
            close(product.detach(), expected.tolist())


@tap.case
def matrices_agree_with_those_of_backward_passes():
    x, y = numbers(1, 2), numbers(0.5, -1, 3)

    def several(a, b):
        return a.exp().sum() * b, a * a

    def single(a, b):
        return (a * a).sum() * b.prod()

    for create_graph in (False, True):
        given = [t.detach().requires_grad_(create_graph) for t in (x, y)]
        for name, key, function in (
            ('jacobian', 'strategy', several),
            ('hessian', 'outer_jacobian_strategy', single),
        ):
            call = getattr(functional, name)
            back = call(function, tuple(given), create_graph=create_graph)
            ahead = call(function, tuple(given), create_graph=create_graph, **{key: 'forward-mode'})
            for one, other in zip(back, ahead):
                for a, b in zip(one, other):
                    assert a.shape == b.shape and GTorch.allclose(a, b), (name, a, b)
                    assert b.requires_grad in (False, create_graph)
    raises(
        GLib.Error, lambda: functional.jacobian(lambda a: x, x, strict=True, strategy='forward-mode'), 'strict'
    )
    assert functional.jacobian(lambda a: x, x, strategy='forward-mode').tolist() == [[0, 0], [0, 0]]
    assert list(functional.jacobian(lambda a: a * 2, GTorch.zeros(0), strategy='forward-mode').shape) == [0, 0]


@tap.case
def networks_have_tangents():
    GTorch.manual_seed(3)
    net = GTorch.nn.Sequential(
        GTorch.nn.Conv2d(1, 2, 3),
        GTorch.nn.BatchNorm2d(2),
        GTorch.nn.ReLU(),
        GTorch.nn.Flatten(),
        GTorch.nn.Linear(18, 2),
    ).double()
    x, v = GTorch.randn(3, 1, 5, 5, dtype=GTorch.float64), GTorch.randn(3, 1, 5, 5, dtype=GTorch.float64)
    with forward_ad.dual_level():
        tangent = tangent_of(net(forward_ad.make_dual(x, v))).detach()
    step = 1e-6
    difference = ((net(x + v * step) - net(x - v * step)) / (2 * step)).detach()
    assert GTorch.allclose(tangent, difference, rtol=1e-5, atol=1e-7), (tangent, difference)


@tap.case
def nonsense_is_refused():
    x = numbers(1, 2)
    raises(GLib.Error, lambda: forward_ad.make_dual(x, x), 'no level of dual tensors is open')
    raises(GLib.Error, forward_ad.exit_dual_level, 'no level of dual tensors is open')
    raises(TypeError, lambda: forward_ad.make_dual(x, 5), 'tangent must be a tensor, not int')
    raises(TypeError, lambda: forward_ad.unpack_dual(5), 'tensor must be a tensor, not int')
    with forward_ad.dual_level():
        raises(GLib.Error, forward_ad.enter_dual_level, 'no nested ones')
        raises(GLib.Error, lambda: functional.jacobian(lambda a: a, x, strategy='forward-mode'), 'no nested ones')
        raises(GLib.Error, lambda: forward_ad.make_dual(x, x.reshape(2, 1)), 'has shape [2], the tangent [2, 1]')
        raises(GLib.Error, lambda: forward_ad.make_dual(x, x.float()), 'float64', 'float32')
        raises(GLib.Error, lambda: forward_ad.make_dual(x.long(), x.long()), 'int64')
        raises(ValueError, lambda: forward_ad.make_dual(x, x, level=1), 'no level 1')
        dual = forward_ad.make_dual(x, x)
        raises(GLib.Error, lambda: forward_ad.make_dual(dual, x), 'primal', 'has a tangent already')
        raises(GLib.Error, lambda: forward_ad.make_dual(x, dual), 'tangent', 'has a tangent already')
        raises(GLib.Error, lambda: GTorch.heaviside(dual, x), 'heaviside: the tangent cannot be computed')
    with forward_ad.dual_level():
        pass


class Double(GTorch.Function):
    def forward(self, _context, x):
        return x * 2

    def backward(self, _context, grad):
        return grad * 2


@tap.case
def functions_of_programs_are_refused():
    x = numbers(1, 2)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, x)
        raises(GLib.Error, lambda: Double()(dual), 'no forward-mode derivative')
        assert Double()(x).tolist() == [2, 4]


@tap.case
def a_decorated_function_is_in_a_level():
    @forward_ad.dual_level()
    def product(x, v):
        return tangent_of(forward_ad.make_dual(x, v) ** 2)

    close(product(numbers(1, 2), numbers(3, 4)), [6, 16])
    close(product(numbers(1, 2), numbers(3, 4)), [6, 16])


tap.main()
