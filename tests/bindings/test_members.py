#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The members of a module are the values of its attributes, however they were changed; removed
hooks do not run any more."""

import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402
from tap import raises  # noqa: E402

nn = GTorch.nn
N_STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 400


class Net(GTorch.Module):
    def forward(self, x):
        return x


def contents(module):
    """Returns the names of the members by their kinds, and of the state."""
    return {
        'parameter': [name for name, _ in module.named_parameters()],
        'module': [name for name, _ in module.named_children()],
        'buffer': list(module.get_buffer_names(True)),
        'state': sorted(module.state_dict()),
    }


# The kinds of values of a name; 'none' is what replaced a parameter, a buffer or a module.
MAKE = {
    'parameter': lambda: nn.Parameter(GTorch.ones(2)),
    'module': lambda: nn.Linear(1, 1, bias=False),
    'buffer': lambda: GTorch.zeros(2),
    'plain': lambda: 5,
}


class Model:
    """A model of the expected effect of the same steps."""

    def __init__(self):
        self.kinds, self.values = {}, {}

    def assign(self, name, what, value):
        kind = self.kinds.get(name)
        if what in ('parameter', 'module'):
            self.kinds[name], self.values[name] = what, value
        elif what == 'none':
            if kind in (None, 'module'):  # PyTorch still accepts only a module for that name
                self.kinds[name] = 'plain'
            self.values[name] = None
        elif kind in ('parameter', 'module') or (kind == 'buffer' and what != 'buffer'):
            return TypeError
        else:
            self.kinds.setdefault(name, 'plain')
            self.values[name] = value
        return None

    def register(self, name, what, value):
        kind = self.kinds.get(name, what)
        if kind != what:
            return GLib.Error
        self.kinds[name] = 'plain' if what == 'module' and value is None else what
        self.values[name] = value
        return None

    def delete(self, name):
        if name not in self.kinds:
            return AttributeError
        del self.kinds[name], self.values[name]
        return None

    def names(self, kind):
        return {n for n, k in self.kinds.items() if k == kind and self.values[n] is not None}

    def check(self, net, where):
        found = contents(net)
        own = {name for name in found['parameter'] if '.' not in name}
        assert own == self.names('parameter'), f'{where}: parameters {own}'
        inner = {name for name in found['parameter'] if '.' in name}
        assert inner == {f'{name}.weight' for name in self.names('module')}, f'{where}: {inner}'
        assert set(found['module']) == self.names('module'), f'{where}: modules {found["module"]}'
        assert set(found['buffer']) == self.names('buffer'), f'{where}: buffers {found["buffer"]}'
        assert found['state'] == sorted(own | inner | set(found['buffer'])), f'{where}: {found["state"]}'
        for name, value in self.values.items():
            assert getattr(net, name) is value, f'{where}: {name} is {getattr(net, name)!r}, not {value!r}'
        for name in NAMES:
            assert hasattr(net, name) == (name in self.kinds), f'{where}: {name}'
        for name, parameter in net.named_parameters():
            assert name in inner or parameter is self.values[name], f'{where}: {name}'


NAMES = ('a', 'b', 'c', '_d')


def one_step(net, model, rng):
    name, what = rng.choice(NAMES), rng.choice((*MAKE, 'none'))
    way = rng.choice(('assign', 'assign', 'register', 'delete', 'unregister', 'set_buffer'))
    value = None if what == 'none' else MAKE[what]()
    if way == 'register':
        if what not in ('parameter', 'module', 'buffer') or model.kinds.get(name) == 'plain':
            return None
        return f'register_{what}({name})', model.register(name, what, value), (
            lambda: getattr(net, f'register_{what}')(name, value)
        )
    if way == 'delete':
        return f'del {name}', model.delete(name), lambda: delattr(net, name)
    if way == 'unregister':
        if model.kinds.get(name) in (None, 'plain') or model.values[name] is None:
            return None
        return f'unregister({name})', model.delete(name), lambda: net.unregister(name)
    if way == 'set_buffer':
        if model.kinds.get(name) != 'buffer':
            return None
        tensor = GTorch.ones(3)
        return f'set_buffer({name})', model.assign(name, 'buffer', tensor), lambda: net.set_buffer(name, tensor)
    return f'{name} = {what}', model.assign(name, what, value), lambda: setattr(net, name, value)


@tap.case
def members_are_what_the_attributes_hold():
    for seed in range(max(1, N_STEPS // 40)):
        rng = random.Random(seed)
        net, model, history = Net(), Model(), []
        for _ in range(40):
            step = one_step(net, model, rng)
            if step is None:
                continue
            what, error, function = step
            history.append(what)
            where = f'seed {seed}: ' + '; '.join(history)
            if error is None:
                function()
            else:
                try:
                    function()
                except error:
                    pass
                else:
                    raise AssertionError(f'{where}: it was taken')
            model.check(net, where)


@tap.case
def attributes_show_converted_members():
    net = Net()
    net.w = nn.Parameter(GTorch.ones(2))
    net.register_buffer('b', GTorch.ones(2))
    net.norm = nn.BatchNorm1d(2)
    net.to(GTorch.float64)
    assert net.w.dtype == net.b.dtype == net.norm.running_mean.dtype == GTorch.float64
    assert net.b is net.get_buffer('b') and net.w is list(net.parameters())[0]
    net.load_state_dict({name: value + 3 for name, value in net.state_dict().items()})
    assert net.w.tolist() == [4, 4] and net.b.tolist() == [4, 4]
    assert net.norm.running_mean.tolist() == [3, 3]


@tap.case
def sequences_change_as_lists_do():
    rng = random.Random(1)
    for _ in range(max(1, N_STEPS // 100)):
        expected = [nn.ReLU(), nn.Linear(1, 1)]
        net = nn.Sequential(*expected)
        for _ in range(25):
            module, position = nn.Linear(1, 1), rng.randrange(-3, 4)
            way = rng.choice(('append', 'insert', 'set', 'del', 'pop', 'extend', 'slice'))
            calls = {
                'append': lambda on: on.append(module),
                'insert': lambda on: on.insert(position, module),
                'set': lambda on: on.__setitem__(position, module),
                'del': lambda on: on.__delitem__(position),
                'pop': lambda on: on.pop(position),
                'extend': lambda on: on.extend([module]),
                'slice': lambda on: on.__delitem__(slice(position, None, 2)),
            }
            if way == 'insert' and not -len(expected) <= position <= len(expected):
                raises(IndexError, 'is not one of', calls[way], net)  # a list would accept it
                continue
            try:
                given = calls[way](expected)
            except IndexError:
                raises(IndexError, 'is not one of', calls[way], net)
            else:
                got = calls[way](net)
                assert way != 'pop' or got is given
            assert list(net) == expected == list(net.children()), way
            assert len(net) == len(expected)
            assert [name for name, _ in net.named_children()] == [str(i) for i in range(len(expected))]
            n_parameters = sum(len(list(one.parameters())) for one in expected)
            assert len(list(net.parameters())) == len(net.state_dict()) == n_parameters
    net = nn.Sequential(nn.ReLU(), nn.Linear(1, 1), nn.Tanh())
    part = net[1:]
    assert isinstance(part, nn.Sequential) and list(part) == list(net)[1:]
    raises(TypeError, 'takes modules', net.__setitem__, 0, 5)
    assert len(net) == 3


@tap.case
def layers_keep_their_own_members():
    layer = nn.Linear(2, 2)
    layer.weight = nn.Parameter(GTorch.zeros(2, 2))
    assert layer(GTorch.ones(1, 2)).tolist() == [layer.bias.tolist()]
    layer.bias = None
    assert list(layer.state_dict()) == ['weight'] and layer(GTorch.ones(1, 2)).tolist() == [[0, 0]]
    raises(GLib.Error, 'part of the layer', delattr, layer, 'weight')
    assert layer.weight is list(layer.parameters())[0]


@tap.case
def removed_members_are_freed():
    import gc
    import weakref

    net = Net()
    gone = []
    for change in (
        lambda: delattr(net, 'a'),
        lambda: setattr(net, 'a', None),
        lambda: setattr(net, 'a', nn.ReLU()),
        lambda: net.unregister('a'),
        lambda: net.register_module('a', None),
    ):
        net.a = nn.Linear(1, 1)
        gone.append(weakref.ref(net.a, lambda *_: None))
        change()
        gc.collect()
        assert gone[-1]() is None, len(gone)
    net.register_buffer('c', GTorch.ones(1))
    former = weakref.ref(net.c)
    net.set_buffer('c', GTorch.zeros(1))
    gc.collect()
    assert former() is None


@tap.case
def removed_hooks_do_not_run():
    layer, x = nn.Linear(1, 1), GTorch.ones(1, 1).requires_grad_()
    calls = []
    makers = (
        lambda: layer.register_forward_hook(lambda *_: calls.append(0)),
        lambda: layer.register_forward_pre_hook(lambda *_: calls.append(0)),
        lambda: layer.weight.register_hook(lambda *_: calls.append(0)),
        lambda: layer.weight.register_post_accumulate_grad_hook(lambda *_: calls.append(0)),
    )
    owners = (layer, layer, layer.weight, layer.weight)
    for make, owner in zip(makers, owners):
        def count():
            calls.clear()
            layer(x).sum().backward()
            return len(calls)

        handle = make()
        assert count() == 1
        handle.remove()
        assert count() == 0
        handle.remove()
        with make():
            assert count() == 1
        assert count() == 0
        number = make()
        owner.remove_hook(number)
        assert count() == 0
        number.remove()
    assert not layer.has_hooks()


@tap.case
def optimizers_update_the_given_parameters():
    net = Net()
    net.w = former = nn.Parameter(GTorch.ones(1))
    optimizer = GTorch.optim.SGD(net.parameters(), lr=1.0)
    net.w = nn.Parameter(GTorch.ones(1))
    former.grad = GTorch.ones(1)
    net.w.grad = GTorch.ones(1)
    optimizer.step()
    assert former.item() == 0 and net.w.item() == 1  # as in PyTorch, until the new one is added
    optimizer.add_param_group({'params': [net.w]})
    optimizer.step()
    assert former.item() == -1 and net.w.item() == 0
    optimizer.zero_grad()
    assert former.grad is None and net.w.grad is None


if __name__ == '__main__':
    tap.main()
