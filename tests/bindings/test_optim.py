#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Optimizers and schedules of all rows, compared with the published algorithms, which the rows
contain in Python beside their own formulas, and with PyTorch's arguments.

GTORCH_OPTIM_ROUNDS draws more settings for each row, each with its own seed."""

import json
import math
import os
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import tap  # noqa: E402
from tap import raises  # noqa: E402

optim = GTorch.optim
lr_scheduler = optim.lr_scheduler
ROUNDS = int(os.environ.get('GTORCH_OPTIM_ROUNDS', '3'))
EPSILON = sys.float_info.epsilon
N_STEPS = 12

with open(os.environ['GTORCH_STEPS_JSON'], encoding='utf-8') as rows_file:
    ROWS = json.load(rows_file)


def param(*values):
    return GTorch.nn.Parameter(GTorch.tensor(list(values), dtype=GTorch.float64))


class Reference:
    """Runs the algorithm of a row for one number, with Python's floats."""

    def __init__(self, row, numbers, value):
        self.code = compile(row['reference'].strip('\n'), row['name'], 'exec')
        self.values = {**vars(math), **numbers, 'p': value, 't': 0}
        for state in row['states']:
            if state['count'] is None:
                self.values[state['name']] = eval(state['begin'] or '0.0', dict(self.values))

    def step(self, grad):
        self.values['t'] += 1
        self.values['g'] = grad
        exec(self.code, self.values)
        return self.values['p']


def make(row, numbers, params):
    """Creates the optimizer with the settings as PyTorch's arguments, pairs as such."""
    options = dict(numbers)
    kind = getattr(optim, row['name'])
    pairs = (
        ('beta1', 'beta2', 'betas'),
        ('etaminus', 'etaplus', 'etas'),
        ('step_size_min', 'step_size_max', 'step_sizes'),
    )
    for first, second, both in pairs:
        if first in options:
            options[both] = (options.pop(first), options.pop(second))
    if row['name'] == 'AdamW':
        options.pop('decoupled_weight_decay')
    return kind(params, **options)


def compare(row, numbers, seed):
    """Compares steps of three numbers with the algorithm, and the state under PyTorch's names."""
    draw = random.Random(seed)
    start = [draw.uniform(-2, 2) for _ in range(3)]
    weight = param(*start)
    optimizer = make(row, numbers, [weight])
    references = [Reference(row, numbers, value) for value in start]
    for _ in range(N_STEPS):
        grads = [draw.uniform(-1, 1) for _ in range(3)]
        weight.grad = GTorch.tensor(grads, dtype=GTorch.float64)
        optimizer.step()
        wanted = [one.step(grad) for one, grad in zip(references, grads)]
        # Each step adds a few rounding errors of this size; roots of differences lose half of the
        # digits.
        scale = max(1, *(abs(value) for value in wanted))
        digits = 1e-9 if numbers.get('centered') else 64 * EPSILON * N_STEPS
        for found, value in zip(weight.tolist(), wanted):
            assert abs(found - value) <= digits * scale, (row['name'], numbers, found, value)
    names = {key.split('.')[2] for key in optimizer.state_dict(nested=False) if key.startswith('state.')}
    known = {**numbers, 't': N_STEPS}
    assert names == {
        state['name'] for state in row['states']
        if state['count'] != 'needed' and (state['when'] is None or eval(state['when'], {}, known))
    }, names


def random_numbers(row, draw):
    """Draws settings within the bounds of all rows."""
    found = dict(row['numbers'])
    for name, value in found.items():
        if isinstance(value, bool):
            if name != 'nesterov' and not (row['name'] == 'AdamW' and name == 'decoupled_weight_decay'):
                found[name] = draw.random() < 0.5
        elif name == 'etaplus':
            found[name] = draw.choice([value, draw.uniform(1.01, 1.9)])
        elif name not in ('eps', 'dampening'):
            found[name] = draw.choice([value, draw.uniform(0.01, 0.9)])
    return found


def check_row(row):
    for index, sample in enumerate(row['samples']):
        compare(row, {**row['numbers'], 'lr': 0.05, **sample}, index)
    for seed in range(ROUNDS):
        compare(row, random_numbers(row, random.Random(1000 + seed)), seed)


def goes_on_from_state(row):
    """Another optimizer that loads the state dict continues bit by bit."""
    for sample in row['samples']:
        numbers = {**row['numbers'], 'lr': 0.05, **sample}
        first = param(1, -2, 3)
        one = make(row, numbers, [first])
        for step in range(3):
            first.grad = GTorch.tensor([0.5, step, -1.0], dtype=GTorch.float64)
            one.step()
        second = param(*first.tolist())
        other = make(row, {**numbers, 'lr': 0.7}, [second])
        other.load_state_dict(one.state_dict())
        for step in range(3):
            for weight, optimizer in ((first, one), (second, other)):
                weight.grad = GTorch.tensor([step, 0.25, 1.0], dtype=GTorch.float64)
                optimizer.step()
        assert first.tolist() == second.tolist(), (row['name'], sample)


def infinite_elements_stay(row):
    """Without weight decay, gradients of 0 leave infinite parameters as they are, such as those of a mask."""
    for sample in row['samples']:
        for dtype in (GTorch.float32, GTorch.float64, GTorch.bfloat16):
            weight = GTorch.nn.Parameter(GTorch.tensor([0.0, -math.inf, math.inf] * 7, dtype=dtype))
            weight.grad = GTorch.zeros(21, dtype=dtype)
            settings = {**row['numbers'], 'lr': 0.05, **sample}
            settings |= {'weight_decay': 0.0} if 'weight_decay' in settings else {}
            optimizer = make(row, settings, [weight])
            for _ in range(3):
                optimizer.step()
            assert weight.tolist() == [0, -math.inf, math.inf] * 7, (row['name'], sample, dtype, weight)


for optimizer_row in ROWS['optimizers']:
    tap.add(f'{optimizer_row["name"]}_steps_as_published', check_row, optimizer_row)
    tap.add(f'{optimizer_row["name"]}_goes_on_from_state', goes_on_from_state, optimizer_row)
    tap.add(f'{optimizer_row["name"]}_keeps_infinite_elements', infinite_elements_stay, optimizer_row)


# --- arguments ---


@tap.case
def arguments_are_pytorchs_by_position():
    sgd = optim.SGD([param(1)], 0.1, 0.9, 0.0, 0.01, True)
    assert (sgd.lr, sgd.momentum, sgd.dampening, sgd.nesterov) == (0.1, 0.9, 0, True)
    assert sgd.param_groups[0]['weight_decay'] == 0.01
    adam = optim.Adam([param(1)], 0.1, (0.5, 0.75), 1e-4, 0.02, True)
    assert (adam.betas, adam.eps, adam.amsgrad) == ((0.5, 0.75), 1e-4, True)
    rms = optim.RMSprop([param(1)], 0.1, 0.9, 1e-4, 0.1, 0.5, True, True, None, True)
    assert (rms.alpha, rms.momentum, rms.centered, rms.capturable, rms.maximize) == (0.9, 0.5, True, True, True)
    raises(TypeError, lambda: optim.SGD([param(1)], 0.1, 0, 0, 0, False, True), 'maximize', 'by name')
    raises(TypeError, lambda: optim.AdamW([param(1)], decoupled_weight_decay=True), 'decoupled_weight_decay')
    assert isinstance(optim.AdamW([param(1)]), optim.Adam)
    assert optim.AdamW([param(1)]).decoupled_weight_decay
    assert optim.AdamW([param(1)]).param_groups[0]['weight_decay'] == 1e-2


@tap.case
def every_argument_takes_effect_or_is_refused():
    for row in ROWS['optimizers']:
        kind = getattr(optim, row['name'])
        for value in (None, True, False):
            kind([param(1)], foreach=value)
        raises(TypeError, lambda: kind([param(1)], foreach=1.5), 'foreach')
        raises(GLib.Error, lambda: kind([param(1)], differentiable=True), 'differentiable')
        kind([param(1)], differentiable=False)
        assert kind([param(1)], capturable=True).capturable
        raises(TypeError, lambda: kind([param(1)], momentun=1), 'momentun')
        raises(GLib.Error, lambda: kind([param(1)], lr=-1), 'lr is -1')
    for kind in (optim.SGD, optim.Adam, optim.AdamW, optim.Adagrad):
        kind([param(1)], fused=True)
        raises(ValueError, lambda: kind([param(1)], fused=True, foreach=True), 'foreach', 'fused')
    raises(TypeError, lambda: optim.Adam([param(1)], betas=0.9), 'betas')
    raises(TypeError, lambda: optim.Adam([param(1)], betas=(0.9, 0.9, 0.9)), 'betas')
    raises(GLib.Error, lambda: optim.SGD([param(1)], nesterov=True), 'nesterov', 'momentum > 0')
    raises(GLib.Error, lambda: optim.Adamax([param(1)], betas=(0.9, 1.0)), 'beta2 is 1')


@tap.case
def a_learning_rate_may_be_a_tensor():
    sgd = optim.SGD([param(1)], lr=GTorch.tensor(0.25, dtype=GTorch.float64))
    assert sgd.lr == 0.25
    sgd.lr = GTorch.tensor(0.5)
    assert sgd.lr == 0.5
    raises(TypeError, lambda: optim.SGD([param(1)], lr='fast'), 'lr')


# --- schedules ---


def expected(row, numbers, base, n):
    """Returns the learning rates of epochs 0 to n - 1 as PyTorch computes them, each from the
    previous one."""
    code = compile(row['reference'].replace('\\\n', ' ').strip(), row['name'], 'eval')
    lr, found = base, []
    for t in range(n):
        lr = eval(code, {**vars(math), **numbers, 'passed': passed, 'base': base, 'lr': lr, 't': t})
        found.append(lr)
    return found


def passed(milestones, t):
    return len([one for one in milestones if one <= t])


def close(found, wanted, base):
    """The recurrence rounds several times in each epoch; the closed form rounds once."""
    for one, other in zip(found, wanted):
        assert abs(one - other) <= 16 * len(wanted) * EPSILON * base, (found, wanted)


def check_schedule(row):
    kind = getattr(lr_scheduler, row['name'])
    for sample in row['samples']:
        numbers = {**row['numbers'], **sample}
        optimizer = optim.SGD([{'params': [param(1)]}, {'params': [param(2)], 'lr': 0.3}], lr=0.8)
        schedule = kind(optimizer, **sample)
        found = [[group['lr'] for group in optimizer.param_groups]]
        for epoch in range(1, 24):
            schedule.step()
            assert schedule.last_epoch == epoch
            found.append([group['lr'] for group in optimizer.param_groups])
            assert schedule.get_last_lr() == found[-1]
        for index, base in enumerate((0.8, 0.3)):
            close([lrs[index] for lrs in found], expected(row, numbers, base, 24), base)
        assert schedule.base_lrs == [0.8, 0.3]
        goes_on(kind, sample, found)


def goes_on(kind, sample, found):
    """Continues from the state after any epoch, bit by bit; and from last_epoch and the groups'
    initial_lr."""
    for epoch in (0, 5, 11):
        first = optim.SGD([{'params': [param(1)]}, {'params': [param(2)], 'lr': 0.3}], lr=0.8)
        schedule = kind(first, **sample)
        for _ in range(epoch):
            schedule.step()
        second = optim.SGD([{'params': [param(1)]}, {'params': [param(2)]}], lr=0.1)
        other = kind(second, **sample)
        second.load_state_dict(first.state_dict())
        other.load_state_dict(schedule.state_dict(nested=False))
        assert other.last_epoch == epoch and other.base_lrs == [0.8, 0.3]
        assert other.get_last_lr() == found[epoch]
        groups = [{'params': [param(1)], 'initial_lr': 0.8}, {'params': [param(1)], 'initial_lr': 0.3}]
        third = kind(optim.SGD(groups, lr=0.1), **sample, last_epoch=epoch)
        for later in range(epoch + 1, 20):
            other.step()
            assert [group['lr'] for group in second.param_groups] == found[later]
            assert third.get_last_lr() == found[later]
            third.step()


for schedule_row in ROWS['schedules']:
    tap.add(f'{schedule_row["name"]}_is_pytorchs', check_schedule, schedule_row)


@tap.case
def a_schedule_may_be_written_in_python():
    class Halves(lr_scheduler.LRScheduler):
        def get_lr(self):
            return [base / 2**self.last_epoch for base in self.base_lrs]

    class Thirds(lr_scheduler.LRScheduler):
        def do_compute(self, group, base_lr):
            return base_lr / 3**self.last_epoch

    for kind, factor in ((Halves, 2), (Thirds, 3)):
        optimizer = optim.SGD([param(1)], lr=0.5)
        schedule = kind(optimizer)
        assert optimizer.lr == 0.5
        schedule.step()
        schedule.step()
        assert optimizer.lr == 0.5 / factor**2
        assert schedule.last_epoch == 2


@tap.case
def exceptions_of_a_schedule_propagate_and_change_nothing():
    class Fails(lr_scheduler.LRScheduler):
        def get_lr(self):
            if self.last_epoch > 1:
                raise LookupError('no such epoch')
            return [0.25, 0.5]

    optimizer = optim.SGD([{'params': [param(1)]}, {'params': [param(2)]}], lr=1)
    schedule = Fails(optimizer)
    schedule.step()
    raises(LookupError, schedule.step, 'no such epoch')
    assert schedule.last_epoch == 1
    assert [group['lr'] for group in optimizer.param_groups] == [0.25, 0.5]

    class TooFew(lr_scheduler.LRScheduler):
        def get_lr(self):
            return [0.5]

    raises(ValueError, lambda: TooFew(optimizer), '1 learning rates for 2 groups')


@tap.case
def wrong_schedules_are_refused():
    optimizer = optim.SGD([param(1)], lr=1)
    raises(GLib.Error, lambda: lr_scheduler.StepLR(optimizer, 0), 'step_size is 0')
    raises(TypeError, lambda: lr_scheduler.StepLR(optimizer), 'step_size')
    raises(TypeError, lambda: lr_scheduler.StepLR(optimizer, 1.5), 'step_size')
    raises(TypeError, lambda: lr_scheduler.StepLR(optimizer, 1, gama=1), 'gama')
    raises(GLib.Error, lambda: lr_scheduler.ConstantLR(optimizer, factor=2), 'factor is 2')
    raises(GLib.Error, lambda: lr_scheduler.ExponentialLR(optim.SGD([param(1)]), 0.5, last_epoch=3), 'last_epoch is 3')
    schedule = lr_scheduler.StepLR(optimizer, 2)
    before = schedule.state_dict(nested=False)
    for name, value in (('last_epoch', 0.5), ('last_epoch', -2), ('base_lrs', [1, 2]), ('step_size', 0), ('x', 1)):
        table = {**before, name: GTorch.tensor(value, dtype=GTorch.float64)}
        raises(GLib.Error, lambda: schedule.load_state_dict(table), name)
        after = schedule.state_dict(nested=False)
        assert all(after[key].tolist() == before[key].tolist() for key in before)


@tap.case
def a_schedule_notifies():
    optimizer = optim.SGD([param(1)], lr=1)
    schedule = lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    heard = []
    schedule.connect('stepped', lambda _schedule, epoch: heard.append(epoch))
    schedule.connect('notify::last-epoch', lambda *_: heard.append('notify'))
    optimizer.connect('notify::learning-rate', lambda *_: heard.append('rate'))
    schedule.step()
    assert heard == ['rate', 'notify', 1], heard
    assert schedule.optimizer is optimizer
    optimizer.add_param_group({'params': [param(2)], 'lr': 4})
    schedule.step()
    assert schedule.get_last_lr() == [0.25, 2] and schedule.base_lrs == [1, 4]


@tap.case
def a_derived_schedule_can_ask_its_parent():
    class Twice(GTorch.optim.lr_scheduler.StepLR):
        def get_lr(self):
            return [2 * rate for rate in super().get_lr()]

    class Thrice(GTorch.optim.lr_scheduler.StepLR):
        def compute(self, group, base_lr):
            return 3 * super().compute(group, base_lr)

    # as in PyTorch, whose schedule goes on from what the class has made of its rate
    for cls, wanted in ((Twice, [2, 4, 4, 8]), (Thrice, [3, 9, 13.5, 40.5])):
        optimizer = GTorch.optim.SGD([GTorch.nn.Parameter(GTorch.ones(1))], lr=1.0)
        schedule = cls(optimizer, 2, gamma=0.5)
        found = []
        for _ in range(4):
            found.append(optimizer.lr)
            optimizer.step()
            schedule.step()
        assert found == wanted, found


if __name__ == '__main__':
    tap.main()
