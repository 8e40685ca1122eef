#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Python objects other than tensors that modules, optimizers and functions take and return."""

import operator
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GTorch  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402
from tap import raises  # noqa: E402

nn, optim = GTorch.nn, GTorch.optim


@tap.case
def a_recursion_without_an_end_is_a_recursion_error():
    class Endless(nn.Module):
        def forward(self, x):
            return self(x)

    class Through(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.n = n

        def forward(self, x):
            return descend(self, x, self.n)

    def descend(module, x, n):
        return descend(module, x, n - 1) if n > 0 else module(x)

    x = GTorch.ones(1)
    raises(RecursionError, lambda: Endless()(x))
    for n in range(12):  # the stack ends in each of the calls of a round
        raises(RecursionError, lambda n=n: Through(n)(x))
    assert nn.ReLU()(x).item() == 1


@tap.case
def modules_accept_objects_other_than_tensors():
    class Sum(nn.Module):
        def forward(self, values, scale=1):
            return sum(values) * scale

    net, calls = Sum(), []
    assert net([1, 2]) == 3 and net([1, 2], 2) == 6 and net([1, 2], scale=3) == 9
    before = net.register_forward_pre_hook(lambda _module, inputs: calls.append(inputs))
    after = net.register_forward_hook(lambda _module, inputs, output: calls.append(output))
    assert net([1, 2]) == 3 and net([1, 2], scale=3) == 9
    assert calls == [([1, 2],), 3, ([1, 2],), 9]
    before.remove()
    changes = net.register_forward_pre_hook(lambda _module, inputs: ([*inputs[0], 10], *inputs[1:]))
    replaces = net.register_forward_hook(lambda _module, _inputs, output: -output)
    assert net([1, 2], 2) == -26
    for handle in (after, changes, replaces):
        handle.remove()
    assert not net.has_hooks() and net([1]) == 1 and len(calls) == 5
    x = GTorch.ones(2)
    net.register_forward_hook(lambda _module, _inputs, output: output + 1)
    assert net(x).item() == 3 and net(x, scale=2).item() == 5


@tap.case
def modules_are_taken_out_of_a_sequence_by_name():
    for take in (lambda net: delattr(net, '1'), lambda net: setattr(net, '1', None), lambda net: net.unregister('1')):
        net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 3))
        take(net)
        assert len(net) == 2 and net(GTorch.ones(1, 2)).shape == (1, 3)
        raises((AttributeError, IndexError), lambda net=net: delattr(net, '7'))


@tap.case
def the_parameters_of_a_group_are_changed_by_the_optimizer_only():
    p, q = nn.Parameter(GTorch.ones(1)), nn.Parameter(GTorch.ones(1))
    optimizer = optim.SGD([p], lr=0.5)
    params = optimizer.param_groups[0]['params']
    raises(AttributeError, lambda: params.append(q))
    raises(TypeError, lambda: operator.setitem(params, 0, q))
    raises(KeyError, lambda: optimizer.param_groups[0].__setitem__('params', [q]))
    optimizer.add_param_group({'params': [q], 'lr': 0.5})
    assert [one['params'][0] for one in optimizer.param_groups] == [p, q]
    used = iter([p])
    list(used)
    for nothing in ([], (), used, nn.ReLU().parameters()):
        for cls in (optim.SGD, optim.Adam):
            raises(ValueError, lambda cls=cls, nothing=nothing: cls(nothing, lr=0.1), cls.__name__, 'no parameters')


@tap.case
def saved_tensors_keep_their_positions():
    for given in ((None, 0, None), (0, None), (None, None), (), (0, 1)):
        seen = []

        class Saves(GTorch.Function):
            def forward(self, context, x, places=given):
                context.save_for_backward(*[None if place is None else x + place for place in places])
                return x * 2

            def backward(self, context, grad, found=seen):
                found += context.saved_tensors
                return grad * 2

        x = GTorch.tensor([3.0], requires_grad=True)
        Saves()(x).sum().backward()
        assert [None if one is None else one.item() for one in seen] == [n if n is None else 3 + n for n in given]


@tap.case
def invalid_membership_tests_raise():
    x = GTorch.tensor([1.0, 2.0])
    assert 2 in x and 3 not in x and GTorch.tensor(2.0) in x
    for value in (None, 'x', [1]):
        raises(TypeError, lambda value=value: value in x, 'numbers')
    assert GTorch.Device('cpu').run_as_default(lambda _device: 7) == 7


tap.main()
