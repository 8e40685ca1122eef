#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A row of modules has the names that the program gave, whatever is done to it by position.

The steps are random; an argument is how many there are of them."""

import collections
import copy
import pathlib
import pickle
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GTorch  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402
from tap import raises  # noqa: E402

nn = GTorch.nn
N_STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 600


class Row(nn.Sequential):
    pass


def new():
    return nn.Linear(1, 1)


class Model:
    """A list of names and modules, which the same steps lead to."""

    def __init__(self):
        self.items = []

    def names(self):
        return [name for name, _module in self.items]

    def free(self, number):
        while str(number) in self.names():
            number += 1
        return str(number)

    def rename(self, i, former, position):
        name, module = self.items[i]
        if name == str(former) and str(position) not in self.names():
            self.items[i] = (str(position), module)

    def insert(self, position, module):
        for i in range(len(self.items) - 1, position - 1, -1):
            self.rename(i, i, i + 1)
        self.items.insert(position, (self.free(position), module))

    def remove(self, position):
        del self.items[position]
        for i in range(position, len(self.items)):
            self.rename(i, i + 1, i)

    def set(self, name, module):
        if name in self.names():
            self.items[self.names().index(name)] = (name, module)
        else:
            self.items.append((name, module))


NAMES = ('head', 'body', '_tail', '0', '1', '5')


def check(row, items, same=True):
    names = [name for name, _module in items]
    assert [name for name, _module in row.named_children()] == names, (list(row.get_child_names()), names)
    found = list(row)
    assert len(found) == len(row) == len(items)
    for i, (name, module) in enumerate(items):
        assert type(found[i]) is type(module) and found[i] is getattr(row, name) is row[i]
        assert not same or found[i] is module
    assert sorted(row.state_dict()) == sorted(f'{name}.{part}' for name in names for part in ('weight', 'bias'))
    for name in NAMES:
        if name not in names:
            assert getattr(row, name, None) is None, name


def step(rng, row, model):
    n, module, name = len(model.items), new(), rng.choice(NAMES)
    way = rng.choice(('append', 'insert', 'set', 'assign', 'replace', 'delete', 'none', 'take', 'pop'))
    if n > 6:
        way = 'pop'
    if way == 'append':
        row.append(module)
        model.insert(n, module)
    elif way == 'insert':
        position = rng.randint(0, n)
        row.insert(position, module)
        model.insert(position, module)
    elif way in ('set', 'assign'):
        row.add_module(name, module) if way == 'set' else setattr(row, name, module)
        model.set(name, module)
    elif n == 0:
        return way
    elif way == 'replace':
        position = rng.randrange(n)
        row[position] = module
        model.items[position] = (model.items[position][0], module)
    else:
        position = rng.randrange(n)
        name = model.items[position][0]
        if way == 'delete':
            del row[position]
        elif way == 'pop':
            row.pop(position)
        elif way == 'take':
            delattr(row, name)
        else:
            setattr(row, name, None)
        model.remove(position)
    return f'{way} {name}'


def names_last(cls, seed):
    rng, row, model, log = random.Random(seed), cls(), Model(), []
    for i in range(N_STEPS):
        log.append(step(rng, row, model))
        try:
            check(row, model.items)
            if i % 10 == 0:
                check(copy.deepcopy(row), model.items, same=False)
                check(pickle.loads(pickle.dumps(row)), model.items, same=False)
                check(copy.copy(row), model.items)
        except Exception:
            raise AssertionError(f'seed {seed}, after {log[-12:]}') from None


for _cls in (nn.Sequential, Row):
    for _seed in range(2):
        tap.add(f'names_last_in_{_cls.__name__}_{_seed}', names_last, _cls, _seed)


@tap.case
def a_dictionary_names_the_modules():
    first, second = new(), new()
    row = nn.Sequential(collections.OrderedDict(conv=first, relu=second))
    assert [name for name, _module in row.named_children()] == ['conv', 'relu'] and row.conv is first
    assert row[1] is second and len(row) == 2


@tap.case
def a_slice_has_the_names_of_the_program():
    row = nn.Sequential(nn.ReLU(), nn.Tanh())
    row.head = new()
    assert [name for name, _module in row[1:].named_children()] == ['0', 'head']


@tap.case
def a_row_is_repeated():
    row = nn.Sequential(new(), nn.ReLU())
    for made in (row * 3, 3 * row):
        assert len(made) == 6 and made[4] is row[0] and made[5] is row[1] and len(row) == 2
    same = row
    same *= 2
    assert same is row and len(row) == 4 and row[2] is row[0]
    for n in (0, -1):
        tap.raises(ValueError, lambda: row * n, 'once or more')
    for other in (1.5, True, 'x'):
        tap.raises(TypeError, lambda: row * other)


@tap.case
def networks_with_states_are_refused():
    class Output(nn.LSTM):
        def forward(self, x):
            return super().forward(x)[0]

    row = nn.Sequential(nn.Identity())
    for network in (nn.LSTM(2, 2), nn.GRU(2, 2), nn.LSTMCell(2, 2)):
        text = f'{type(network).__name__} gives its output and its states'
        for change in (
            lambda: nn.Sequential(network), lambda: nn.Sequential({'a': network}), lambda: row.append(network),
            lambda: row.insert(0, network), lambda: row.add_module('a', network),
            lambda: setattr(row, 'a', network), lambda: row.__setitem__(0, network), lambda: row.extend([network]),
        ):  # fmt: skip
            raises(TypeError, change, text)
    assert len(row) == 1
    assert tuple(nn.Sequential(Output(2, 3), nn.RNNCell(3, 4))(GTorch.ones(5, 2)).shape) == (5, 4)


if __name__ == '__main__':
    tap.main()
