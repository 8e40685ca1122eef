#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Lists and dictionaries of modules and of parameters."""

import copy
import pathlib
import pickle
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402
from tap import raises  # noqa: E402

nn = GTorch.nn
COPIES = (copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one)))


def names(module):
    return [name for name, _child in module.named_children()]


def param(*shape):
    return nn.Parameter(GTorch.ones(list(shape)))


@tap.case
def lists_of_modules_are_lists():
    a, b, c, d = (nn.Linear(1, n) for n in (1, 2, 3, 4))
    row = nn.ModuleList([a, b])
    assert row.append(c) is row and len(row) == 3 and list(row) == [a, b, c] and b in row and d not in row
    assert row[0] is a and row[-1] is c
    row.insert(1, d)
    assert list(row) == [a, d, b, c] and list(row.get_child_names()) == ['0', '1', '2', '3']
    assert list(row.state_dict()) == [f'{i}.{kind}' for i in range(4) for kind in ('weight', 'bias')]
    assert row.pop() is c and row.pop(0) is a and list(row) == [d, b]
    row[0] = a
    row.extend(one for one in (c, d))
    row += [nn.ReLU()]
    assert list(row)[:4] == [a, b, c, d] and len(row) == 5 and isinstance(row, nn.ModuleList)
    part = row[1:4:2]
    assert type(part) is type(row) and list(part) == [b, d] and names(part) == ['0', '1']
    both = part + [a]
    assert isinstance(both, nn.ModuleList) and list(both) == [b, d, a] and list(part) == [b, d]
    del row[1:3]
    assert list(row)[:2] == [a, d] and names(row) == ['0', '1', '2']
    del row[-1]
    assert len(row) == 2 and len(list(row.parameters())) == 4
    assert len(nn.ModuleList()) == 0 and not list(nn.ModuleList([]))


@tap.case
def lists_refuse_what_does_not_fit():
    row = nn.ModuleList([nn.ReLU()])
    raises(IndexError, lambda: row[1], 'position 1 is not one of 1 modules')
    raises(IndexError, lambda: row.insert(2, nn.ReLU()))
    raises(IndexError, lambda: nn.ModuleList().pop())
    raises(TypeError, lambda: row['0'])
    raises(TypeError, lambda: row.append(3))
    raises(TypeError, lambda: row.extend(3))
    raises(TypeError, lambda: nn.ModuleList(nn.ReLU()))
    raises(TypeError, lambda: row.__setitem__(0, GTorch.ones(1)), 'takes modules, not Tensor')
    raises(GLib.Error, lambda: row(GTorch.ones(1)), 'ModuleList: forward for one input is not implemented')
    raises(GLib.Error, lambda: row.append(row))
    assert len(row) == 1


@tap.case
def equal_neighbours_are_printed_once():
    row = nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Linear(1, 2), nn.Sequential(nn.Tanh()), nn.Sequential(nn.Tanh())])
    text = (
        'ModuleList(\n  (0-1): 2 x ReLU()\n  (2): Linear(in_features=1, out_features=2, bias=True)\n'
        '  (3-4): 2 x Sequential(\n    (0): Tanh()\n  )\n)'
    )
    assert repr(row) == text, repr(row)
    assert row.to_string() == text, row.to_string()
    assert repr(nn.ModuleList()) == 'ModuleList()'


@tap.case
def dictionaries_of_modules_are_dictionaries():
    a, b, c = nn.Linear(1, 2), nn.ReLU(), nn.Tanh()
    table = nn.ModuleDict({'a': a, 'b': b})
    assert table['a'] is a and 'b' in table and 'c' not in table and len(table) == 2
    assert list(table) == list(table.keys()) == ['a', 'b'] and list(table.values()) == [a, b]
    assert list(table.items()) == [('a', a), ('b', b)] and table.a is a
    assert list(table.state_dict()) == ['a.weight', 'a.bias']
    table['c'] = c
    table.update([('a', c), ('0', b)])
    assert list(table.items()) == [('a', c), ('b', b), ('c', c), ('0', b)]
    table.update(nn.ModuleDict({'b': a}))
    assert table.pop('b') is a and list(table) == ['a', 'c', '0']
    del table['c']
    assert list(table) == ['a', '0'] and not hasattr(table, 'c')
    assert repr(table) == 'ModuleDict(\n  (a): Tanh()\n  (0): ReLU()\n)', repr(table)
    raises(KeyError, lambda: table['c'], 'c')
    raises(KeyError, lambda: table.pop('c'), 'c')
    raises(KeyError, lambda: table.__delitem__('c'), 'c')
    raises(KeyError, lambda: table.__setitem__('keys', a), 'keys')
    raises(TypeError, lambda: table.__setitem__(1, a), 'must be a text')
    raises(TypeError, lambda: table.__setitem__('d', 1), 'takes modules, not int')
    raises(TypeError, lambda: table.update(3))
    raises(GLib.Error, lambda: table.__setitem__('a.b', a), 'a.b')
    table.clear()
    assert len(table) == 0 and repr(table) == 'ModuleDict()'


@tap.case
def lists_of_parameters_are_lists():
    a, b = param(2), param(3, 1)
    row = nn.ParameterList([a, b])
    assert len(row) == 2 and row[0] is a and row[-1] is b and list(row) == [a, b]
    row.append(GTorch.zeros([2])).extend([a])
    assert isinstance(row[2], GTorch.Parameter) and row[2].requires_grad and row[3] is a
    assert list(row.state_dict())[:2] == ['0', '1'] and len(list(row.parameters())) == 3
    row[1] = GTorch.ones([5])
    assert row[1].shape == (5,) and [p.shape for p in row[1:3]] == [(5,), (2,)]
    assert isinstance(row[:2], nn.ParameterList)
    row += [b]
    assert len(row) == 5 and row[4] is b
    place = '' if a.device.type == 'cpu' else f' ({a.device})'
    sizes = enumerate(('2', '5', '2', '2', '3x1'))
    lines = [f'    ({i}): Parameter containing: [float32 of size {size}{place}]' for i, size in sizes]
    assert repr(row) == '\n'.join(['ParameterList(', *lines, ')']), repr(row)
    assert repr(nn.ParameterList()) == 'ParameterList()'
    raises(IndexError, lambda: row[5], 'is not one of 5 parameters')
    raises(TypeError, lambda: row.append(3), 'takes parameters and tensors, not int')
    raises(TypeError, lambda: row.extend([a, 3]))
    assert len(row) == 5


@tap.case
def dictionaries_of_parameters_are_dictionaries():
    a, b = param(2), param(3)
    table = nn.ParameterDict({'a': a, 'b': GTorch.zeros([3])})
    assert table['a'] is a and isinstance(table['b'], GTorch.Parameter) and list(table) == ['a', 'b']
    assert list(reversed(table)) == ['b', 'a'] and list(table.state_dict()) == ['a', 'b']
    assert table.get('c') is None and table.get('a') is a and table.setdefault('c', b) is b
    assert table.setdefault('c', a) is b and table.popitem() == ('c', b) and table.pop('c', 7) == 7
    other = table.copy()
    other['d'] = a
    assert list(other) == ['a', 'b', 'd'] and list(table) == ['a', 'b'] and other['a'] is a
    assert list(table | {'z': b}) == ['a', 'b', 'z'] and list({'z': b} | table) == ['z', 'a', 'b']
    table |= {'z': b}
    assert isinstance(table, nn.ParameterDict) and table['z'] is b and len(table) == 3
    assert list(table.fromkeys(['x', 'y'], a).items()) == [('x', a), ('y', a)]
    raises(KeyError, lambda: table['c'], 'c')
    raises(KeyError, lambda: table.pop('c'), 'c')
    raises(KeyError, lambda: nn.ParameterDict().popitem(), 'empty')
    raises(TypeError, lambda: table.__setitem__('c', 1), 'takes parameters and tensors, not int')
    table.clear()
    assert len(table) == 0 and not list(table.parameters())


@tap.case
def copies_have_the_same_members():
    for one in (
        nn.ModuleList([nn.Linear(1, 2), nn.ReLU()]), nn.ModuleDict({'a': nn.Linear(1, 2), '1': nn.ReLU()}),
        nn.ParameterList([param(2), param(3)]), nn.ParameterDict({'a': param(2)}),
    ):
        for way in COPIES:
            other = way(one)
            assert type(other) is type(one) and repr(other) == repr(one) and len(other) == len(one)
            assert list(other.state_dict()) == list(one.state_dict())


@tap.case
def modules_use_their_lists():
    class Net(GTorch.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(2, 2) for _i in range(2)])
            self.heads = nn.ModuleDict({'one': nn.Linear(2, 1)})
            self.scales = nn.ParameterList([GTorch.ones([1])])

        def forward(self, x):
            for layer in self.layers:
                x = layer(x) * self.scales[0]
            return self.heads['one'](x)

    net = Net()
    assert list(net.state_dict()) == [
        'layers.0.weight', 'layers.0.bias', 'layers.1.weight', 'layers.1.bias', 'heads.one.weight', 'heads.one.bias',
        'scales.0',
    ]
    net(GTorch.ones([3, 2])).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    net.double()
    assert net.scales[0].dtype == GTorch.float64
    same = param(1)
    net.first = net.second = same
    found = [name for name, p in net.named_parameters(remove_duplicate=False) if p is same]
    assert found == ['first', 'second']


@tap.case
def modules_are_found_and_replaced_by_their_paths():
    net = nn.Sequential(nn.ModuleDict({'a': nn.ModuleList([nn.ReLU(), nn.Tanh()])}))
    assert net.get_submodule('') is net and net.get_submodule('0.a.1') is net[0]['a'][1]
    one = nn.Sigmoid()
    net.set_submodule('0.a.1', one, strict=True)
    net.set_submodule('0.b', one)
    assert net[0]['a'][1] is one and net[0]['b'] is one and net[0].b is one
    raises(AttributeError, lambda: net.get_submodule('0.c'))
    raises(AttributeError, lambda: net.set_submodule('0.c', one, strict=True), "no module 'c'")
    raises(AttributeError, lambda: nn.Linear(1, 1).set_submodule('weight', one), "no module 'weight'")
    raises(ValueError, lambda: net.set_submodule('', one), 'no path')


if __name__ == '__main__':
    tap.main()
