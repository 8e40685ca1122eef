#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""State dicts of optimizers and schedules are exchanged with PyTorch: those of exchange.json, which PyTorch has made,
are loaded, and further steps compared with PyTorch's."""

import json
import math
import pathlib
import sys
from collections import Counter

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import on_device  # noqa: E402, F401
import exchange_cases as cases  # noqa: E402
import tap  # noqa: E402
from tap import raises  # noqa: E402

REFERENCE = json.loads((pathlib.Path(__file__).parent / 'exchange.json').read_text('utf-8'))


def given(value):
    """The value that exchange_reference.py has written."""
    if isinstance(value, list):
        return [given(one) for one in value]
    if not isinstance(value, dict):
        return value
    ((kind, data),) = [pair for pair in value.items() if pair[0] != 'dtype']
    if kind == 'tensor':
        return GTorch.tensor(data, dtype=getattr(GTorch, value['dtype']))
    if kind == 'counter':
        return Counter(dict(map(tuple, data)))
    return tuple(map(given, data)) if kind == 'tuple' else {key: given(one) for key, one in data}


def flat(values):
    return [one for value in values for one in flat(value)] if isinstance(values, (list, tuple)) else [values]


def close(found, wanted, digits):
    found, wanted = flat(found), flat(wanted)
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted):
        assert math.isclose(a, b, rel_tol=digits, abs_tol=digits), f'{found} instead of {wanted}'


def alike(found, wanted, where):
    """Compares the forms of two state dicts, and the values that are no tensors."""
    if isinstance(wanted, GTorch.Tensor):
        assert isinstance(found, GTorch.Tensor) and found.shape == wanted.shape, where
        assert where.endswith('.step') is False or found.item() == wanted.item(), where
    elif isinstance(wanted, dict) and not isinstance(wanted, Counter):
        lost = set(wanted) - set(found) - {'al'}
        assert not lost, f'{where}: {lost} are missing in {found}'
        for key in set(wanted) - {'al'}:
            alike(found[key], wanted[key], f'{where}.{key}')
    elif isinstance(wanted, list):
        assert isinstance(found, list) and len(found) == len(wanted), where
        for i, pair in enumerate(zip(found, wanted)):
            alike(*pair, f'{where}.{i}')
    elif isinstance(wanted, (bool, type(None), str, Counter)):
        assert found is wanted or found == wanted, f'{where} is {found!r} instead of {wanted!r}'
    elif isinstance(wanted, tuple):
        assert isinstance(found, tuple), where
        assert all(a is b if b is None else math.isclose(a, b) for a, b in zip(found, wanted)), where
    elif isinstance(found, GTorch.Tensor):
        close([found.item()], [wanted], 1e-6)
    else:
        assert math.isclose(found, wanted, rel_tol=1e-6), f'{where} is {found!r} instead of {wanted!r}'


def a_run_of_an_optimizer_goes_on(index):
    name, settings, other = cases.OPTIMIZERS[index]
    wanted = REFERENCE['optimizers'][index]
    assert wanted['name'] == name
    # PyTorch's settings come from the state alone
    plain = {'max_iter': 9} if name == 'LBFGS' else {}
    optimizer, params = cases.make_optimizer(GTorch, name, plain, None if other is None else {})
    with GTorch.no_grad():
        for param, values in zip(params, wanted['begun']):
            param.copy_(GTorch.tensor(values, dtype=GTorch.float64))
    state = given(wanted['state'])
    optimizer.load_state_dict(state)
    nested = optimizer.state_dict(nested=True)
    if name == 'Muon':  # the same choice
        for group in nested['param_groups']:
            assert group.pop('adjust_lr_fn') == 'original'
            group['adjust_lr_fn'] = None
    alike(nested, state, name)
    cases.advance(GTorch, optimizer, params, 3, 6)
    digits = 3e-3 if name == 'Muon' else 2e-6  # PyTorch has some numbers in float32
    close([param.detach().tolist() for param in params], wanted['after'], digits)
    # and back: what is written in the nested form is loaded as the state itself
    again, others = cases.make_optimizer(GTorch, name, plain, None if other is None else {})
    again.load_state_dict(optimizer.state_dict(nested=True))
    before, after = optimizer.state_dict(nested=False), again.state_dict(nested=False)
    assert {key: t.tolist() for key, t in before.items() if 'max_eval' not in key} == {
        key: t.tolist() for key, t in after.items() if 'max_eval' not in key
    }


for i, case in enumerate(cases.OPTIMIZERS):
    tap.add(f'a_run_of_{case[0]}_{i}_goes_on', a_run_of_an_optimizer_goes_on, i)


def a_schedule_goes_on(index):
    wanted = REFERENCE['schedules'][index]
    make = cases.schedules(GTorch.optim)[wanted['name']]
    optimizer, _params = cases.make_optimizer(GTorch, 'SGD', {}, {})
    schedule = make(optimizer)
    for_optimizer, for_schedule = map(given, wanted['state'])
    schedule.load_state_dict(for_schedule)
    optimizer.load_state_dict(for_optimizer)
    nested = schedule.state_dict(nested=True)
    for key in ('_step_count', 'default_min_lr', 'mode_worse', 'use_beta1', '_scale_fn_custom'):
        for_schedule.pop(key, None)
    for part in for_schedule.get('_schedulers', ()):
        part.pop('_step_count')
    alike(nested, for_schedule, wanted['name'])
    saved = optimizer.state_dict(nested=True)
    close(cases.follow(schedule, optimizer, 4), wanted['after'], 1e-12)
    # and back
    again = make(optimizer)
    again.load_state_dict(nested)
    optimizer.load_state_dict(saved)
    close(cases.follow(again, optimizer, 4), wanted['after'], 1e-12)


for i, case in enumerate(REFERENCE['schedules']):
    tap.add(f'{case["name"].replace(" ", "_")}_goes_on', a_schedule_goes_on, i)


@tap.case
def values_may_be_pythons():
    optimizer, params = cases.make_optimizer(GTorch, 'Adam', {}, {})
    cases.advance(GTorch, optimizer, params, 0, 2)
    schedule = GTorch.optim.lr_scheduler.StepLR(optimizer, 3)
    nested = optimizer.state_dict(nested=True)
    values = [((i * 5) % 7) / 8 for i in range(6)]
    shaped = [values[:2], values[2:4], values[4:]]
    nested['state'][0] = {'step': 5, 'exp_avg': shaped, 'exp_avg_sq': (shaped[0], shaped[1], shaped[2])}
    nested['param_groups'][0].update(betas=[0.5, 0.25], lr=GTorch.tensor(0.5), amsgrad=False, foreach=True)
    nested['param_groups'][0]['params'], nested['param_groups'][1]['params'] = [7], [4]
    nested['state'] = {7: nested['state'][0], 4: nested['state'][1]}
    optimizer.load_state_dict(nested)
    state = optimizer.state[params[0]]
    assert state['step'].item() == 5 and state['exp_avg'].tolist() == shaped == state['exp_avg_sq'].tolist()
    assert optimizer.param_groups[0]['betas'] == (0.5, 0.25) and optimizer.param_groups[0]['lr'] == 0.5
    flat_state = {'step_size': 4, 'gamma': 0.5, 'last_epoch': 2, 'base_lrs': [0.5, 0.25], 'last_lr': (0.5, 0.25)}
    schedule.load_state_dict(flat_state)
    assert (schedule.step_size, schedule.gamma, schedule.last_epoch) == (4, 0.5, 2)
    assert schedule.base_lrs == [0.5, 0.25]


@tap.case
def what_is_no_state_changes_nothing():
    optimizer, params = cases.make_optimizer(GTorch, 'Adam', {}, {})
    cases.advance(GTorch, optimizer, params, 0, 2)
    before = {key: tensor.tolist() for key, tensor in optimizer.state_dict(nested=False).items()}

    def spoilt(change):
        nested = optimizer.state_dict(nested=True)
        change(nested)
        return lambda: optimizer.load_state_dict(nested)

    def put(key, value):
        return spoilt(lambda nested: nested['param_groups'][1].update({key: value}))

    def put_state(key, value):
        return spoilt(lambda nested: nested['state'][0].update({key: value}))

    for function, kind, *says in (
        (spoilt(lambda nested: nested['param_groups'].pop()), ValueError, '1 groups', 'has 2'),
        (put('params', [1, 2]), ValueError, 'group.1 has 2 parameters', 'optimizer 1'),
        (spoilt(lambda nested: nested['param_groups'][0].pop('params')), GLib.Error, 'group.0', 'params'),
        (spoilt(lambda nested: nested['state'].update({9: {}})), GLib.Error, 'parameter 9', 'no group'),
        (put('betas', (0.5,)), GLib.Error, 'group.1.betas'),
        (put('betas', (0.5, 1)), GLib.Error, 'group.1.betas', 'beta2 is 1'),
        (put('betas', 'x'), GLib.Error, 'group.1: betas'),
        (put('momentum', 0.5), GLib.Error, 'unexpected: group.1.momentum'),
        (put('amsgrad', 'yes'), GLib.Error, 'group.1: amsgrad'),
        (put('differentiable', True), GLib.Error, 'group.1: differentiable'),
        (spoilt(lambda nested: nested['param_groups'][0].pop('eps')), GLib.Error, 'missing: group.0.eps'),
        (put_state('step', -1), GLib.Error, 'state.0.step'),
        (put_state('step', 'x'), GLib.Error, 'state.0.step'),
        (put_state('step', None), GLib.Error, 'missing: state.0.step'),
        (put_state('exp_avg', [1.0]), GLib.Error, 'state.0.exp_avg'),
        (put_state('exp_avgg', [1.0]), GLib.Error, 'unexpected: state.0.exp_avgg'),
    ):
        raises(kind, function, *says)
        after = {key: tensor.tolist() for key, tensor in optimizer.state_dict(nested=False).items()}
        assert after == before, says
    older = optimizer.state_dict(nested=True)
    for group in older['param_groups']:
        del group['decoupled_weight_decay'], group['maximize']  # which earlier releases of PyTorch lack
    optimizer.load_state_dict(older)
    schedule = GTorch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1.0)
    state = schedule.state_dict(nested=True)
    raises(GLib.Error, lambda: schedule.load_state_dict({**state, 'lr_lambdas': [{'x': 1}, None]}), 'lr_lambdas')
    raises(GLib.Error, lambda: schedule.load_state_dict({**state, 'gamma': 1}), 'unexpected: gamma')
    raises(GLib.Error, lambda: schedule.load_state_dict({**state, 'base_lrs': 'x'}), 'base_lrs')
    raises(TypeError, lambda: schedule.load_state_dict([1]), 'must be a dictionary')
    raises(TypeError, lambda: optimizer.load_state_dict({1: 2}), 'must be texts')


tap.main()
