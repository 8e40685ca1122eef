#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Averages of weights, compared with PyTorch."""

import copy
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import averages_cases  # noqa: E402
import tap  # noqa: E402
from tap import raises  # noqa: E402

nn, swa = GTorch.nn, GTorch.optim.swa_utils
REFERENCE = json.loads((HERE / 'averages.json').read_text('utf-8'))


def compare(index):
    name, use_buffers = averages_cases.CASES[index]
    found = averages_cases.run(GTorch, name, use_buffers)
    for state, wanted in zip(found, REFERENCE[2 * index : 2 * index + 2], strict=True):
        assert set(state) == set(wanted), set(state) ^ set(wanted)
        for key, values in state.items():
            for value, other in zip(values, wanted[key], strict=True):
                assert abs(value - other) <= 1e-5 * max(1, abs(other)), (key, value, other)


for case_index, (case_name, with_buffers) in enumerate(averages_cases.CASES):
    tap.add(f'{case_name}_{"with" if with_buffers else "without"}_buffers_is_pytorchs', compare, case_index)


@tap.case
def the_model_stays_its_own():
    net = nn.Linear(2, 2)
    model = swa.AveragedModel(net)
    assert model.module is not net and isinstance(model.module, nn.Linear)
    assert model.n_averaged.item() == 0 and model.n_averaged.dtype == GTorch.int64
    before = net.weight.tolist()
    assert model.module.weight.tolist() == before
    with GTorch.no_grad():
        net.weight.add_(1)
    assert model.module.weight.tolist() == before
    model.update_parameters(net)
    assert model.module.weight.tolist() == net.weight.tolist() and model.n_averaged.item() == 1
    x = GTorch.ones([1, 2])
    assert model(x).tolist() == net(x).tolist()
    assert set(model.state_dict()) == {'n_averaged', 'module.weight', 'module.bias'}


@tap.case
def a_state_is_loaded():
    net = averages_cases.new_net(GTorch)
    first, second = swa.AveragedModel(net), swa.AveragedModel(net)
    for number in range(3):
        averages_cases.fill(GTorch, net, number)
        first.update_parameters(net)
    second.load_state_dict(first.state_dict())
    averages_cases.fill(GTorch, net, 9)
    for model in (first, second):
        model.update_parameters(net)
    assert averages_cases.plain(first) == averages_cases.plain(second)
    assert second.n_averaged.item() == 4


@tap.case
def classes_of_a_program_are_averaged():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(2, 1)

        def forward(self, x, y):
            return self.inner(x) + y

    net = Own()
    model = swa.AveragedModel(net)
    for value in (1.0, 3.0):
        with GTorch.no_grad():
            net.inner.weight.fill_(value)
        model.update_parameters(net)
    assert model.module.inner.weight.tolist() == [[2.0, 2.0]]
    assert model(GTorch.zeros([1, 2]), GTorch.ones([1, 1])).shape == (1, 1)


@tap.case
def a_copy_has_the_function():
    net = nn.Linear(1, 1, bias=False)
    model = copy.deepcopy(swa.AveragedModel(net, avg_fn=lambda averaged, current, n: current * 0 + 7))
    model.update_parameters(net)
    model.update_parameters(net)
    assert model.module.weight.tolist() == [[7.0]]


@tap.case
def exponential_averages_are_a_setting():
    net = nn.Linear(1, 1, bias=False)
    model = swa.AveragedModel(net)
    model.set_property('ema-decay', 0.75)
    for value in (0.0, 4.0):
        with GTorch.no_grad():
            net.weight.fill_(value)
        model.update_parameters(net)
    assert model.module.weight.tolist() == [[1.0]]
    model.set_property('ema-decay', 1.5)
    raises(GLib.Error, lambda: model.update_parameters(net), 'ema_decay is 1.5')


@tap.case
def integers_are_averaged_and_cut():
    net = nn.Linear(1, 1)
    net.register_buffer('count', GTorch.tensor([0]))
    for options in ({}, {'multi_avg_fn': swa.get_swa_multi_avg_fn()}, {'avg_fn': swa.get_swa_avg_fn()}):
        model = swa.AveragedModel(net, use_buffers=True, **options)
        for value in (2, 5):
            net.count.fill_(value)
            model.update_parameters(net)
        assert model.module.count.tolist() == [3], options


@tap.case
def wrong_arguments_are_refused():
    net = nn.Linear(1, 1)
    raises(TypeError, lambda: swa.AveragedModel(3), 'must be a module')
    raises(TypeError, lambda: swa.AveragedModel(net, avg_fn=3), 'avg_fn', 'cannot be called')
    raises(ValueError, lambda: swa.AveragedModel(net, avg_fn=len, multi_avg_fn=len), 'both')
    raises(ValueError, lambda: swa.get_ema_avg_fn(1.5), 'decay is 1.5')
    raises(ValueError, lambda: swa.get_ema_multi_avg_fn(-1), 'decay is -1')
    model = swa.AveragedModel(net)
    raises(GLib.Error, lambda: model.update_parameters(nn.Linear(1, 1, bias=False)), '1 parameters', 'have 2')
    raises(GLib.Error, lambda: model.update_parameters(nn.Linear(1, 2)), '[2, 1]', '[1, 1]')
    other = nn.Linear(1, 1)
    other.register_buffer('count', GTorch.tensor([0]))
    raises(GLib.Error, lambda: model.update_parameters(other), '1 buffers', 'have 0')
    assert model.n_averaged.item() == 0
    model = swa.AveragedModel(net, avg_fn=lambda *_args: 3)
    model.update_parameters(net)
    raises(TypeError, lambda: model.update_parameters(net), 'gave int')


@tap.case
def update_bn_leaves_the_mode_and_the_momentum():
    net = averages_cases.new_net(GTorch)
    net.eval()
    swa.update_bn(iter([averages_cases.batch(GTorch, 1)]), net)
    assert not net.training and net[1].momentum == 0.1 and net[1].num_batches_tracked.item() == 1
    raises(TypeError, lambda: swa.update_bn([3], net), 'gave int')
    raises(TypeError, lambda: swa.update_bn(3, net))
    raises(TypeError, lambda: swa.update_bn([], 3), 'must be a module')

    def broken():
        yield averages_cases.batch(GTorch, 1)
        raise KeyError('no second batch')

    raises(KeyError, lambda: swa.update_bn(broken(), net), 'no second batch')
    assert not net.training and net[1].momentum == 0.1
    raises(GLib.Error, lambda: swa.update_bn([GTorch.ones([2, 5])], net), '[2, 5]')
    swa.update_bn(broken(), nn.Linear(1, 1))  # nothing to do


tap.main()
