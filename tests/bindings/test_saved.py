#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Hooks for saved tensors, checkpoints, and derivatives of functions."""

import itertools
import pathlib
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import tap  # noqa: E402
from tap import raises  # noqa: E402

graph = GTorch.autograd.graph
checkpoint = GTorch.utils.checkpoint.checkpoint
checkpoint_sequential = GTorch.utils.checkpoint.checkpoint_sequential


def leaf():
    return GTorch.arange(1, 7, dtype=GTorch.float64).reshape(2, 3).mul(0.1).requires_grad_()


def gradient(function, x):
    x.grad = None
    function(x).sum().backward()
    return x.grad.clone()


def wave(x):
    return (x * x).exp().sin()


@tap.case
def hooks_keep_anything():
    seen, x = [], leaf()

    def pack(tensor):
        assert not tensor.requires_grad
        seen.append(tuple(tensor.shape))
        return {'rows': tensor.tolist()}

    def unpack(packed):
        return GTorch.tensor(packed['rows'], dtype=GTorch.float64, device=x.device)

    def run(value):
        with graph.saved_tensors_hooks(pack, unpack):
            return wave(value)

    expected = gradient(wave, x)
    assert GTorch.equal(gradient(run, x), expected)
    assert seen == [(2, 3)] * 4, seen
    seen.clear()
    decorated = graph.saved_tensors_hooks(pack, unpack)(wave)
    assert GTorch.equal(gradient(decorated, x), expected) and len(seen) == 4


@tap.case
def exceptions_arrive():
    x = leaf()

    def forward():
        with graph.saved_tensors_hooks(lambda _: 1 / 0, lambda packed: packed):
            x.exp()

    def within():
        with graph.saved_tensors_hooks(lambda _: 1 / 0, lambda packed: packed):
            raises(GLib.Error, x.exp, 'ZeroDivisionError')

    def backward(unpack):
        with graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
            y = x.exp()
        return y.sum().backward

    raises(ZeroDivisionError, forward)
    within()
    raises(KeyError, backward(lambda _: {}['nothing']), 'nothing')
    raises(TypeError, backward(lambda _: 5), 'unpack_hook gave int, not a tensor')
    raises(GLib.Error, backward(lambda packed: packed[0]), 'a hook gave back float64 of shape [3]')
    raises(TypeError, lambda: graph.saved_tensors_hooks(5, wave), 'pack_hook 5 cannot be called')


@tap.case
def hooks_can_be_refused():
    def use():
        with graph.saved_tensors_hooks(lambda tensor: tensor, lambda packed: packed):
            pass

    with graph.disable_saved_tensors_hooks('not here'):
        raises(GLib.Error, use, 'saved_tensors_hooks: not here')
    use()
    raises(TypeError, lambda: graph.disable_saved_tensors_hooks(5))


@tap.case
def memory_of_the_cpu_is_enough():
    x = leaf()

    def run(value):
        with graph.save_on_cpu(pin_memory=False):
            return wave(value)

    assert GTorch.equal(gradient(run, x), gradient(wave, x))
    raises(ValueError, lambda: graph.save_on_cpu(device_type='xpu'))


@tap.case
def checkpoints_give_the_same_gradients():
    x, layer = leaf(), GTorch.nn.Linear(3, 3, dtype=GTorch.float64)
    calls = []

    def block(value, factor, *, shift=0.0):
        calls.append(factor)
        return GTorch.dropout(layer(value).tanh(), 0.5, True) * factor + shift

    def results(function):
        GTorch.manual_seed(5)
        layer.zero_grad()
        return gradient(function, x), layer.weight.grad.clone()

    expected = results(lambda value: block(value, 3))
    kinds = {
        'plain': lambda value: checkpoint(block, value, 3, shift=1.0, use_reentrant=False),
        'whole': lambda value: checkpoint(block, value, 3, use_reentrant=False, early_stop=False),
        'unchecked': lambda value: checkpoint(block, value, 3, use_reentrant=False, determinism_check='none'),
        'reentrant': lambda value: checkpoint(block, value, 3, use_reentrant=True),
        'decorated': lambda value: checkpoint(use_reentrant=False)(block)(value, 3),
    }
    for name, function in kinds.items():
        calls.clear()
        found = results(function)
        assert all(GTorch.equal(a, b) for a, b in zip(found, expected)), name
        assert calls == [3, 3], name


@tap.case
def anything_is_taken_and_given():
    x = leaf()

    def block(value, names, empty=None):
        return {'value': value.exp(), 'names': names, 'empty': empty}

    found = checkpoint(block, x, ['a'], use_reentrant=False)
    assert found['names'] == ['a'] and found['empty'] is None
    found['value'].sum().backward()
    assert GTorch.equal(x.grad, x.exp())
    value, name = checkpoint(lambda a, b: (a.exp(), b), x, 'b', use_reentrant=True)
    assert name == 'b' and value.requires_grad


@tap.case
def contexts_are_entered():
    entered = []

    class Context:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            entered.append(self.name)

        def __exit__(self, *_exception):
            entered.append('end')

    def contexts():
        return Context('first'), Context('second')

    checkpoint(wave, leaf(), use_reentrant=False, context_fn=contexts).sum().backward()
    assert entered == ['first', 'end', 'second', 'end'], entered
    raises(ValueError, lambda: checkpoint(wave, leaf(), use_reentrant=True, context_fn=contexts), 'context_fn')


@tap.case
def gradients_within_a_checkpoint():
    def slope(x):
        y = x.exp()
        (grad,) = GTorch.autograd.grad(y.sum(), x, create_graph=True)
        return grad * y

    x = leaf()
    for early in (True, False):
        with GTorch.utils.checkpoint.set_checkpoint_early_stop(early):
            found = gradient(lambda value: checkpoint(slope, value, use_reentrant=False), x)
        assert GTorch.allclose(found, gradient(slope, x))


@tap.case
def nested_checkpoints():
    x = leaf()
    for inner in (True, False):
        for outer in (True, False):

            def block(value, inner=inner):
                return checkpoint(wave, value.cos(), use_reentrant=inner).tanh()

            found = gradient(lambda value, outer=outer: checkpoint(block, value, use_reentrant=outer), x)
            assert GTorch.equal(found, gradient(lambda value: wave(value.cos()).tanh(), x))


@tap.case
def errors_of_checkpoints():
    x, calls = leaf(), []

    def other(value):
        calls.append(1)
        return (value.exp() if len(calls) == 1 else value.sin()).tanh()

    def shorter(value):
        calls.append(1)
        return value.exp().tanh() if len(calls) == 1 else value.exp()

    def second(value):
        calls.append(1)
        if len(calls) > 1:
            raise KeyError('the second time')
        return value.exp()

    def run(function, **options):
        calls.clear()
        return checkpoint(function, x, **{'use_reentrant': False, **options}).sum().backward

    raises(GLib.Error, run(other), 'of exp, then float64 [2, 3]', 'of sin')
    raises(GLib.Error, run(shorter), 'a different number of tensors was saved: 2 the first time, 1 when')
    raises(KeyError, run(second), 'the second time')
    raises(KeyError, run(second, use_reentrant=True), 'the second time')
    raises(NotImplementedError, lambda: run(wave, debug=True), 'debug=True')
    raises(ValueError, lambda: run(wave, determinism_check='all'), 'determinism_check')
    raises(TypeError, lambda: checkpoint(5, x, use_reentrant=False), 'cannot be called')
    raises(ValueError, lambda: checkpoint(wave, x, use_reentrant=True, scale=1), 'scale by name')
    y = checkpoint(wave, x, use_reentrant=True).sum()
    raises(GLib.Error, lambda: GTorch.autograd.grad(y, x, retain_graph=True), 'use_reentrant')
    raises(GLib.Error, lambda: y.backward(create_graph=True), 'create_graph')
    raises(GLib.Error, lambda: checkpoint(wave, x.detach(), use_reentrant=True), 'requires grad')


@tap.case
def memory_of_parts_is_freed_within_the_pass():
    """What was computed again for one part of a chain is gone when the next is computed again."""
    device, used = GTorch.Device.cpu(), []
    layers = [layer for _ in range(12) for layer in (GTorch.nn.Linear(64, 64), GTorch.nn.Tanh())]
    for layer in layers[::2]:
        layer.weight.register_post_accumulate_grad_hook(lambda _param: used.append(device.get_memory_allocated()))
    before = device.get_memory_allocated()
    x = GTorch.rand(1024, 64, requires_grad=True)
    checkpoint_sequential(layers, 4, x, use_reentrant=False).sum().backward()
    size = x.numel() * x.element_size()
    # the input, those of the parts, and what one part saves, with room for gradients
    assert max(used) - before < 9 * size, [round((one - before) / size, 1) for one in used]


@tap.case
def the_kind_is_warned_of():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter('always')
        checkpoint(wave, leaf())
    assert len(seen) == 1 and 'use_reentrant' in str(seen[0].message)


@tap.case
def chains_are_divided():
    x = leaf()
    layers = [GTorch.nn.Linear(3, 3, dtype=GTorch.float64), GTorch.nn.Tanh()]
    layers.append(GTorch.nn.Linear(3, 3, dtype=GTorch.float64))
    net = GTorch.nn.Sequential(*layers)
    expected = gradient(net, x)
    for given, segments, reentrant in itertools.product((net, layers), (1, 2, 3), (True, False)):

        def run(value, given=given, segments=segments, reentrant=reentrant):
            return checkpoint_sequential(given, segments, value, use_reentrant=reentrant)

        assert GTorch.equal(gradient(run, x), expected)
    assert GTorch.equal(gradient(lambda v: net.checkpoint([v], False, True, True, True), x), expected)
    raises(ValueError, lambda: checkpoint_sequential(net, 0, x, use_reentrant=False), 'segments is 0')
    raises(ValueError, lambda: checkpoint_sequential(net, 4, x, use_reentrant=False), '3 functions')
    raises(ValueError, lambda: checkpoint_sequential(net, 1, x, use_reentrant=False, speed=1), 'speed')


functional = GTorch.autograd.functional


def shapes(found):
    return [shapes(one) for one in found] if isinstance(found, tuple) else list(found.shape)


@tap.case
def derivatives_have_the_shapes_of_pytorch():
    x, y = leaf().detach(), GTorch.tensor([1.0, -2.0], dtype=GTorch.float64)

    def several(a, b):
        return a.exp() * 2, a.sum() * b

    assert shapes(functional.jacobian(several, (x, y))) == [[[2, 3, 2, 3], [2, 3, 2]], [[2, 2, 3], [2, 2]]]
    assert shapes(functional.jacobian(lambda a: a.exp(), x)) == [2, 3, 2, 3]
    assert shapes(functional.jacobian(lambda a: (a.exp(),), x)) == [[2, 3, 2, 3]]
    assert shapes(functional.jacobian(lambda a: a.exp(), (x,))) == [[2, 3, 2, 3]]
    assert shapes(functional.hessian(lambda a, b: a.sum() * b.prod(), (x, y))) == [
        [[2, 3, 2, 3], [2, 3, 2]],
        [[2, 2, 3], [2, 2]],
    ]
    assert shapes(functional.hessian(lambda b: b.prod(), y)) == [2, 2]
    assert shapes(functional.vjp(several, (x, y), (x, y))) == [[[2, 3], [2]], [[2, 3], [2]]]
    assert shapes(functional.jvp(several, (x, y), (x, y))) == [[[2, 3], [2]], [[2, 3], [2]]]
    assert shapes(functional.vhp(lambda b: b.prod(), y, y)) == [[], [2]]
    assert shapes(functional.hvp(lambda a, b: a.sum() * b.prod(), (x, y), (x, y))) == [[], [[2, 3], [2]]]


@tap.case
def derivatives_have_their_values():
    x, v = GTorch.tensor([1.0, 2.0], dtype=GTorch.float64), GTorch.tensor([3.0, 4.0], dtype=GTorch.float64)
    assert functional.jacobian(lambda a: a**3, x).tolist() == [[3, 0], [0, 12]]
    assert functional.hessian(lambda a: (a**3).sum(), x).tolist() == [[6, 0], [0, 12]]
    for name in ('vjp', 'jvp'):
        output, product = getattr(functional, name)(lambda a: a**3, x, v)
        assert output.tolist() == [1, 8] and product.tolist() == [9, 48]
    for name in ('vhp', 'hvp'):
        output, product = getattr(functional, name)(lambda a: (a**3).sum(), x, v)
        assert output.item() == 9 and product.tolist() == [18, 48]
    x.requires_grad_()
    functional.jacobian(lambda a: a**3, x, create_graph=True, strict=True).sum().backward()
    assert x.grad.tolist() == [6, 12]


@tap.case
def derivatives_refuse_what_they_cannot_compute():
    x = leaf().detach()
    raises(GLib.Error, lambda: functional.jacobian(lambda a: x * 2, x, strict=True), 'strict')
    assert functional.jacobian(lambda a: x * 2, x).sum().item() == 0
    raises(GLib.Error, lambda: functional.vjp(lambda a: a, x), 'v may be missing')
    raises(GLib.Error, lambda: functional.vjp(lambda a: a, x, x.sum()), 'has shape []')
    raises(GLib.Error, lambda: functional.hessian(lambda a: a, x), 'a single one of one element')
    raises(TypeError, lambda: functional.hessian(lambda a: (a.sum(),), x), 'must give one tensor, not tuple')
    raises(TypeError, lambda: functional.jacobian(lambda a: 5, x), 'what the function gives')
    raises(TypeError, lambda: functional.jacobian(5, x), 'cannot be called')
    raises(TypeError, lambda: functional.jacobian(lambda a: a, 5), 'inputs must be')
    raises(ZeroDivisionError, lambda: functional.jacobian(lambda a: 1 / 0, x))
    raises(NotImplementedError, lambda: functional.jacobian(lambda a: a, x, vectorize=True), 'vectorize=True')
    raises(ValueError, lambda: functional.jacobian(lambda a: a, x, strategy='sideways'), 'strategy', 'sideways')
    raises(
        ValueError,
        lambda: functional.hessian(lambda a: a, x, outer_jacobian_strategy='sideways'),
        'outer_jacobian_strategy',
    )


tap.main()
