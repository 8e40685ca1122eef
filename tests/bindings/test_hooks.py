#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Hooks of modules around the backward pass, the options of hooks, and extra states."""

import copy
import pathlib
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import tap  # noqa: E402
from tap import raises  # noqa: E402

nn = GTorch.nn


class Scaled(nn.Module):
    """Takes what C does not."""

    def forward(self, x, by=2):
        return x * x * by


class Pair(nn.Module):
    def forward(self, x):
        return x * 2, 'name', x * 3


def leaf():
    return GTorch.tensor([[1.0, 2.0]], dtype=GTorch.float64).requires_grad_()


def modules():
    layer = nn.Linear(2, 2, dtype=GTorch.float64)
    return layer, Scaled(), nn.Sequential(nn.Tanh(), Scaled()), nn.Sequential(layer, nn.Tanh())


def gradient(module, x):
    x.grad = None
    module(x).sum().backward()
    return x.grad.clone()


@tap.case
def hooks_see_and_replace_gradients():
    for module in modules():
        x, seen = leaf(), []
        plain = gradient(module, x)
        with module.register_full_backward_pre_hook(lambda _module, grads: seen.append(('before', grads))):
            with module.register_full_backward_hook(lambda _module, *grads: seen.append(('after', *grads))):
                assert GTorch.equal(gradient(module, x), plain)
        (first, (grad,)), (second, (of_input,), (of_output,)) = seen
        assert (first, second) == ('before', 'after')
        assert GTorch.equal(grad, GTorch.ones_like(grad)) and GTorch.equal(of_output, grad)
        assert GTorch.equal(of_input, plain)
        module.register_full_backward_pre_hook(lambda _module, grads: (grads[0] * 2,))
        module.register_full_backward_hook(lambda _module, grads, _outputs: grads[0] * 5)
        assert GTorch.allclose(gradient(module, x), plain * 10)


@tap.case
def inputs_without_gradients_have_none():
    first = nn.Linear(2, 2, dtype=GTorch.float64)
    for module in (first, nn.Sequential(first, Scaled())):
        seen = []
        module.register_full_backward_hook(lambda _module, *grads, seen=seen: seen.append(grads))
        module(leaf().detach()).sum().backward()
        ((inputs, outputs),) = seen
        assert inputs == (None,) and len(outputs) == 1
        with GTorch.no_grad():
            module(leaf())
        assert len(seen) == 1


@tap.case
def several_outputs_have_gradients():
    module, x, seen = Pair(), leaf(), []
    module.register_full_backward_hook(lambda _module, *grads: seen.append(grads))
    first, name, second = module(x)
    assert name == 'name'
    (first.sum() + second.sum() * 4).backward()
    ((inputs, outputs),) = seen
    assert [grad.tolist() for grad in outputs] == [[[1, 1]], [[4, 4]]] and inputs[0].tolist() == [[14, 14]]


@tap.case
def wrong_hooks_are_errors():
    def run(hook, name='register_full_backward_hook'):
        module = nn.Tanh()
        getattr(module, name)(hook)
        return module(leaf()).sum().backward

    raises(ZeroDivisionError, run(lambda *_grads: 1 / 0))
    raises(ZeroDivisionError, run(lambda *_grads: 1 / 0, 'register_full_backward_pre_hook'))
    raises(TypeError, run(lambda *_grads: 5), 'not a tensor, several or None')
    raises(GLib.Error, run(lambda *_grads: ()), 'gave 0 gradients of 1 inputs')
    raises(GLib.Error, run(lambda _module, grads, _outputs: grads[0].sum()), 'shape and device must stay')
    raises(TypeError, lambda: nn.Tanh().register_full_backward_hook(5), 'cannot be called')


@tap.case
def hooks_get_arguments_by_name():
    x, seen = leaf(), []

    def before(_module, args, options):
        seen.append(options)
        return args, {'by': 10}

    module = Scaled()
    module.register_forward_pre_hook(before, with_kwargs=True)
    module.register_forward_hook(lambda _m, args, options, output: seen.append((options, output)), with_kwargs=True)
    assert module(x, by=3).tolist() == [[10, 40]]
    assert seen[0] == {'by': 3} and seen[1][0] == {'by': 10} and seen[1][1].tolist() == [[10, 40]]
    layer = nn.Tanh()
    layer.register_forward_pre_hook(lambda _m, args, options: (args, {'by': 1}), with_kwargs=True)
    raises(TypeError, lambda: layer(x), 'takes no arguments by name')
    module = Scaled()
    module.register_forward_pre_hook(lambda _m, args, options: args, with_kwargs=True)
    raises(TypeError, lambda: module(x), 'those by name')


@tap.case
def hooks_have_places():
    for module in modules():
        order = []
        module.register_forward_hook(lambda *_args, order=order: order.append('b'))
        module.register_forward_hook(lambda *_args, order=order: order.append('a'), prepend=True)
        module.register_forward_pre_hook(lambda *_args, order=order: order.append(2))
        module.register_forward_pre_hook(lambda *_args, order=order: order.append(1), prepend=True)
        module.register_full_backward_hook(lambda *_args, order=order: order.append('d'))
        module.register_full_backward_hook(lambda *_args, order=order: order.append('c'), prepend=True)
        gradient(module, leaf())
        assert order == [1, 2, 'a', 'b', 'c', 'd'], order
    module = nn.Tanh()
    module.register_forward_hook(second)
    module.register_forward_hook(first, prepend=True)
    other = copy.deepcopy(module)
    assert other(leaf()).tolist() == module(leaf()).tolist()


def first(_module, _inputs, output):
    return output + 1


def second(_module, _inputs, output):
    return output * 2


@tap.case
def some_hooks_are_always_called():
    for module, wrong in ((nn.Linear(2, 2), GTorch.ones(1, 3)), (Scaled(), 'text')):
        seen = []
        module.register_forward_hook(lambda *_args: seen.append('never'))
        module.register_forward_hook(lambda _m, _inputs, output: seen.append(output), always_call=True)
        raises((GLib.Error, TypeError), lambda: module(wrong))
        assert seen == [None], seen
    module = Scaled()
    module.register_forward_hook(lambda *_args: 1 / 0, always_call=True)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter('always')
        raises(TypeError, lambda: module('text'))
    assert len(warned) == 1 and 'division by zero' in str(warned[0].message)



class Counted(nn.Module):
    def __init__(self, n=0):
        super().__init__()
        self.layer, self.n = nn.Linear(2, 1), n

    def get_extra_state(self):
        return GTorch.tensor(self.n)

    def set_extra_state(self, state):
        self.n = int(state.item())
        if self.n < 0:
            raise KeyError('below zero')


class Wrong(Counted):
    def get_extra_state(self):
        return {'n': self.n}


@tap.case
def extra_states_are_in_the_state():
    net, other = nn.Sequential(Counted(3), nn.Tanh(), Counted(5)), nn.Sequential(Counted(), nn.Tanh(), Counted())
    state = net.state_dict()
    names = [f'{i}.{name}' for i in (0, 2) for name in ('_extra_state', 'layer.weight', 'layer.bias')]
    assert list(state) == names, list(state)
    assert other.load_state_dict(state) == ([], [])
    assert (other[0].n, other[2].n) == (3, 5)
    assert net[0].get_extra_state().item() == 3
    del state['2._extra_state']
    raises(GLib.Error, lambda: other.load_state_dict(state), 'missing: 2._extra_state')
    assert other.load_state_dict(state, strict=False).missing_keys == ['2._extra_state']
    layer = nn.Linear(2, 1)
    raises(GLib.Error, lambda: layer.load_state_dict({**layer.state_dict(), '_extra_state': GTorch.ones(1)}), '_extra')
    raises(GLib.Error, lambda: layer.set_extra_state(GTorch.ones(1)), 'no extra state')
    assert layer.get_extra_state() is None


@tap.case
def exceptions_of_extra_states_arrive():
    raises(TypeError, lambda: Wrong().state_dict(), 'a state has tensors only')
    net = Counted()
    raises(KeyError, lambda: net.load_state_dict({**net.state_dict(), '_extra_state': GTorch.tensor(-1)}), 'below')
    raises(TypeError, lambda: net.load_state_dict({**net.state_dict(), '_extra_state': 5}), 'must be a tensor')


@tap.case
def hooks_change_states():
    net, told = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 1))), []

    def rename(_module, table, prefix, _metadata):
        table[f'{prefix}new'] = table.pop(f'{prefix}0.bias')

    def back(_module, table, prefix, _metadata, strict, missing, unexpected, wrong):
        told.append((strict, missing, unexpected, wrong))
        table[f'{prefix}0.bias'] = table.pop(f'{prefix}new')

    before = net.register_state_dict_pre_hook(lambda module, prefix, keep_vars: told.append((prefix, keep_vars)))
    after = net[1].register_state_dict_post_hook(rename)
    state = net.state_dict()
    assert list(state) == ['0.weight', '0.bias', '1.0.weight', '1.new'] and told == [('', False)], (list(state), told)
    assert list(net.state_dict(prefix='a.')) == ['a.0.weight', 'a.0.bias', 'a.1.0.weight', 'a.1.new']
    raises(GLib.Error, lambda: net.load_state_dict(state), '1.0.bias')
    loading = net[1].register_load_state_dict_pre_hook(back)
    told.clear()
    assert list(net.load_state_dict(state).missing_keys) == [] and told == [(True, [], [], [])], told
    assert '1.new' in state  # hooks change a copy
    with net.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.append('x')) as ending:
        raises(GLib.Error, lambda: net.load_state_dict(state), 'missing: x')
        assert net.load_state_dict(state, strict=False).missing_keys == ['x']
    raises(NotImplementedError, lambda: net.load_state_dict(state, assign=True), 'hooks')
    assert list(copy.deepcopy(net).state_dict()) == list(state)
    for hook in (before, after, loading, ending):
        hook.remove()
        hook.remove()
    assert list(net.state_dict()) == ['0.weight', '0.bias', '1.0.weight', '1.0.bias']
    net.register_state_dict_post_hook(lambda *_args: {})
    raises(RuntimeError, net.state_dict, 'register_state_dict_post_hook', 'gave dict')
    raises(TypeError, lambda: net.register_state_dict_post_hook(3), 'cannot be called')


@tap.case
def hooks_of_all_modules_are_called():
    module, told = nn.modules.module, []
    net, scaled, x = nn.Sequential(nn.Linear(2, 2), nn.ReLU()), Scaled(), GTorch.ones(1, 2)
    net[0].register_forward_hook(lambda one, *_: told.append('own'))
    names = lambda what: lambda one, *_: told.append((what, type(one).__name__))  # noqa: E731
    with module.register_module_forward_pre_hook(names('before')) as before, \
            module.register_module_forward_hook(names('after')) as after:
        net(x)
        assert told == [('before', 'Sequential'), ('before', 'Linear'), ('after', 'Linear'), 'own', ('before', 'ReLU'),
                        ('after', 'ReLU'), ('after', 'Sequential')], told
        told.clear()
        nn.Sequential(scaled)(x)  # a class of the program's, that C calls
        assert [what for what, _name in told] == ['before', 'before', 'after', 'after'], told
        told.clear()
        scaled(x, by=3)
        assert told == [('before', 'Scaled'), ('after', 'Scaled')], told
        raises(RuntimeError, lambda: nn.LSTM(2, 1)(GTorch.ones(3)))
    before.remove()
    after.remove()
    told.clear()
    net(x)
    assert told == ['own'], told
    with module.register_module_forward_hook(lambda one, inputs, output: output + 1):
        assert nn.ReLU()(GTorch.zeros(1)).item() == 1 and scaled(GTorch.ones(1)).item() == 3
    with module.register_module_forward_hook(lambda one, inputs, options, output: told.append(options),
                                             with_kwargs=True):
        scaled(x, by=3)
        nn.ReLU()(x)
    assert told[1:] == [{'by': 3}, {}], told
    with module.register_module_forward_hook(names('always'), always_call=True):
        told.clear()
        raises(Exception, lambda: nn.Linear(3, 1)(x))
        assert told == [('always', 'Linear')], told
    with module.register_module_forward_hook(lambda *_: [].pop()):
        raises(IndexError, lambda: nn.ReLU()(x))
        raises(IndexError, lambda: scaled(x))
    raises(TypeError, lambda: module.register_module_forward_hook(3), 'cannot be called')


@tap.case
def hooks_of_all_backward_passes_are_called():
    module, told = nn.modules.module, []
    before = lambda one, grads: told.append(('before', len(grads)))  # noqa: E731
    after = lambda one, inner, outer: told.append(('after', outer[0].tolist()))  # noqa: E731
    with module.register_module_full_backward_pre_hook(before), module.register_module_full_backward_hook(after):
        x = leaf()
        nn.ReLU()(x).sum().backward()
        assert told == [('before', 1), ('after', [[1, 1]])], told
        told.clear()
        Scaled()(x).sum().backward()
        assert [what for what, _value in told] == ['before', 'after'], told
    told.clear()
    nn.ReLU()(leaf()).sum().backward()
    assert told == []
    with module.register_module_full_backward_hook(lambda one, inner, outer: (inner[0] * 10,)):
        x = leaf()
        nn.ReLU()(x).sum().backward()
        assert x.grad.tolist() == [[10, 10]], x.grad


tap.main()
