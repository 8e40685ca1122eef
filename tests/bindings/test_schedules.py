#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Schedules that are no formulas, and several of one optimizer, compared with PyTorch."""

import gc
import json
import pathlib
import sys
import weakref

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import schedule_cases  # noqa: E402
import tap  # noqa: E402
from tap import raises  # noqa: E402

optim = GTorch.optim
lr_scheduler, swa_utils = optim.lr_scheduler, optim.swa_utils
REFERENCE = json.loads((HERE / 'schedules.json').read_text('utf-8'))


def params():
    return [GTorch.nn.Parameter(GTorch.ones([2])) for _ in range(2)]


def sgd(**options):
    return schedule_cases.sgd(optim, params(), **options)


def compare(name, function):
    found = schedule_cases.run(function, optim, lr_scheduler, swa_utils, params())
    for epoch, (one, other) in enumerate(zip(found, REFERENCE[name])):
        for value, wanted in zip(one, other):
            assert abs(value - wanted) <= 1e-12 * max(1, abs(wanted)), (epoch, one, other)


for case_name, case_function in schedule_cases.CASES.items():
    tap.add(f'{case_name}_is_pytorchs', compare, case_name, case_function)


def goes_on(name, function):
    """Another schedule goes on from the state in the middle, bit by bit."""
    first, schedule, *rest = function(optim, lr_scheduler, swa_utils, params())
    second, other, *_ = function(optim, lr_scheduler, swa_utils, params())
    for _ in range(7):
        schedule.step()
    second.load_state_dict(first.state_dict())
    other.load_state_dict(schedule.state_dict())
    assert set(other.state_dict()) == set(schedule.state_dict())
    assert (other.last_epoch, other.get_last_lr()) == (schedule.last_epoch, schedule.get_last_lr())
    for _ in range(7):
        schedule.step()
        other.step()
        assert schedule.get_last_lr() == other.get_last_lr(), name
        assert schedule_cases.momentum_of(first) == schedule_cases.momentum_of(second)


for case_name, case_function in schedule_cases.CASES.items():
    if case_name not in ('plateau', 'plateau_of_a_maximum', 'two_side_by_side', 'a_rate_that_is_changed_in_between'):
        tap.add(f'{case_name}_goes_on_from_its_state', goes_on, case_name, case_function)


@tap.case
def a_plateau_goes_on_from_its_state():
    schedules = [lr_scheduler.ReduceLROnPlateau(sgd(), patience=1, factor=0.5, cooldown=2) for _ in range(2)]
    first, second = schedules
    for metric in (1.0, 2.0):
        first.step(GTorch.tensor(metric))
    assert (first.best, first.num_bad_epochs, first.last_epoch, first.in_cooldown) == (1.0, 1, 2, False)
    second.load_state_dict(first.state_dict())
    for schedule in schedules:
        schedule.step(3.0)
        assert schedule.get_last_lr() == [0.4, 0.15]
        assert schedule.in_cooldown and schedule.cooldown_counter == 2
        schedule.step(float('nan'))
        assert (schedule.best, schedule.num_bad_epochs, schedule.cooldown_counter) == (1.0, 0, 1)


@tap.case
def exceptions_of_functions_arrive_and_change_nothing():
    failure = KeyError('no such epoch')

    def fails(n):
        if n == 2:
            raise failure
        return 0.5

    makers = {
        'LambdaLR': lambda optimizer: lr_scheduler.LambdaLR(optimizer, fails),
        'MultiplicativeLR': lambda optimizer: lr_scheduler.MultiplicativeLR(optimizer, [lambda n: 1, fails]),
        'CyclicLR': lambda optimizer: lr_scheduler.CyclicLR(
            optimizer, 0.1, 1, 4, scale_fn=fails, scale_mode='iterations'
        ),
    }
    for name, make in makers.items():
        optimizer = sgd()
        schedule = make(optimizer)
        schedule.step()
        before = schedule.get_last_lr(), optimizer.momentum
        for chained in (schedule, lr_scheduler.ChainedScheduler([schedule])):
            try:
                chained.step()
            except KeyError as error:
                assert error is failure
            else:
                raise AssertionError(name)
            assert schedule.last_epoch == 1
            assert (schedule.get_last_lr(), optimizer.momentum) == before
            assert [group['lr'] for group in optimizer.param_groups] == before[0]
    raises(TypeError, lambda: lr_scheduler.LambdaLR(sgd(), lambda n: 'fast'))
    raises(GLib.Error, lambda: lr_scheduler.LambdaLR(sgd(), lambda n: float('inf')), 'must be finite')


@tap.case
def a_schedule_and_its_function_may_refer_to_each_other():
    class Factor:
        def __call__(self, epoch):
            return 1

    factor = Factor()
    factor.schedule = lr_scheduler.LambdaLR(sgd(), factor)
    gone = weakref.ref(factor)
    del factor
    gc.collect()
    assert gone() is None


@tap.case
def wrong_settings_are_refused():
    optimizer = sgd()
    other = sgd()
    step = lr_scheduler.StepLR(optimizer, 3)
    raises(ValueError, lambda: lr_scheduler.LambdaLR(optimizer, [lambda n: 1]), '1 functions for 2 groups')
    raises(TypeError, lambda: lr_scheduler.LambdaLR(optimizer, 0.5), 'cannot be called')
    raises(TypeError, lambda: lr_scheduler.LambdaLR(None, lambda n: 1), 'optimizer')
    raises(GLib.Error, lambda: lr_scheduler.CyclicLR(optimizer, 0.1, 1, 0), 'step_size_up is 0')
    raises(GLib.Error, lambda: lr_scheduler.CyclicLR(optimizer, [0.1] * 3, 1), 'base_lr has 3 numbers', '2')
    raises(ValueError, lambda: lr_scheduler.CyclicLR(optimizer, 0.1, 1, mode='square'), 'square')
    raises(GLib.Error, lambda: lr_scheduler.CyclicLR(optimizer, 0.1, 1, max_momentum=[0.9, 0.8]), 'same for all groups')
    plain = optim.Adagrad(params())
    raises(GLib.Error, lambda: lr_scheduler.CyclicLR(plain, 0.1, 1), 'neither momentum nor beta1')
    lr_scheduler.CyclicLR(plain, 0.1, 1, cycle_momentum=False)
    raises(ValueError, lambda: lr_scheduler.OneCycleLR(optimizer, 1.0), 'total_steps')
    raises(ValueError, lambda: lr_scheduler.OneCycleLR(optimizer, 1.0, epochs=0, steps_per_epoch=3), 'epochs is 0')
    raises(GLib.Error, lambda: lr_scheduler.OneCycleLR(optimizer, 1.0, 0), 'total_steps is 0')
    raises(GLib.Error, lambda: lr_scheduler.OneCycleLR(optimizer, 1.0, 9, pct_start=1.5), 'pct_start is 1.5')
    short = lr_scheduler.OneCycleLR(optimizer, 1.0, 3)
    for _ in range(3):
        short.step()
    raises(GLib.Error, short.step, 'step 4', 'only 3')
    assert short.last_epoch == 3
    raises(GLib.Error, lambda: lr_scheduler.ReduceLROnPlateau(optimizer, factor=1.0), 'factor is 1')
    raises(GLib.Error, lambda: lr_scheduler.ReduceLROnPlateau(optimizer, min_lr=[0, 0, 0]), 'min_lrs has 3 numbers')
    plateau = lr_scheduler.ReduceLROnPlateau(optimizer)
    raises(TypeError, plateau.step)
    for kind in (
        lambda parts: lr_scheduler.ChainedScheduler(parts),
        lambda parts: lr_scheduler.SequentialLR(optimizer, parts, [2] * (len(parts) - 1)),
    ):
        raises((ValueError, GLib.Error), lambda: kind([]), 'no schedules')
        raises(TypeError, lambda: kind([step, 3]), 'int')
        raises(GLib.Error, lambda: kind([step, plateau]), 'ReduceLROnPlateau', 'metric')
        raises(GLib.Error, lambda: kind([step, lr_scheduler.StepLR(other, 3)]), 'another optimizer')
    raises(GLib.Error, lambda: lr_scheduler.SequentialLR(optimizer, [step, step], []), 'one schedule more')
    raises(GLib.Error, lambda: lr_scheduler.SequentialLR(optimizer, [step] * 3, [4, 3]), 'must ascend')
    chained = lr_scheduler.ChainedScheduler([step])
    raises(GLib.Error, lambda: lr_scheduler.SequentialLR(optimizer, [step, chained], [3]), 'only the first one')
    raises(GLib.Error, lambda: swa_utils.SWALR(optimizer, 0.1, anneal_epochs=-1), 'anneal_epochs is -1')
    raises(ValueError, lambda: swa_utils.SWALR(optimizer, 0.1, anneal_strategy='cubic'), 'cubic')


@tap.case
def a_wrong_state_of_a_part_changes_nothing():
    optimizer = sgd()
    parts = [lr_scheduler.StepLR(optimizer, 3), lr_scheduler.MultiStepLR(optimizer, [4, 5])]
    schedule = lr_scheduler.ChainedScheduler(parts)
    before = schedule.state_dict(nested=False)
    assert before['schedulers.1.milestones'].tolist() == [4, 5]
    for name, value, text in (
        ('schedulers.1.milestones', [0.5], 'whole numbers'),
        ('schedulers.0.step_size', 0, 'step_size'),
        ('schedulers.2.step_size', 1, 'schedulers.2.step_size'),
        ('schedulers.1.gamma', [1, 2], 'gamma'),
    ):
        table = {**before, 'last_epoch': GTorch.tensor(9.0), name: GTorch.tensor(value, dtype=GTorch.float64)}
        raises(GLib.Error, lambda: schedule.load_state_dict(table), text)
        after = schedule.state_dict(nested=False)
        assert all(after[key].tolist() == before[key].tolist() for key in before)


tap.main()
