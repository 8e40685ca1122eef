#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Optimizers that are no rows, compared with PyTorch."""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import optimizer_cases  # noqa: E402
import tap  # noqa: E402
from tap import raises  # noqa: E402

optim = GTorch.optim
REFERENCE = json.loads((HERE / 'optimizers.json').read_text('utf-8'))


def compare(index):
    """Muon rounds to bfloat16 in its iteration, and adds a step of up to 0.05 in each of 12 steps."""
    name, options = optimizer_cases.CASES[index]
    digits = 2e-2 if name == 'Muon' else 2e-5
    for row, wanted in zip(optimizer_cases.run(GTorch, name, options), REFERENCE[index]):
        for value, other in zip(row, wanted):
            assert abs(value - other) <= digits * max(1, abs(other)), (value, other)


def goes_on(index):
    """Another optimizer that loads the state dict continues bit by bit."""
    name, options = optimizer_cases.CASES[index]
    first, params = optimizer_cases.make(GTorch, name, options)
    for number in range(3):
        optimizer_cases.step(GTorch, first, params, number)
    second, others = optimizer_cases.make(GTorch, name, {**options, 'lr': 0.7})
    with GTorch.no_grad():
        for param, other in zip(params, others):
            other.copy_(param)
    second.load_state_dict(first.state_dict())
    for number in range(3, 6):
        optimizer_cases.step(GTorch, first, params, number)
        optimizer_cases.step(GTorch, second, others, number)
    assert [param.tolist() for param in params] == [other.tolist() for other in others]


for case_index, (case_name, _options) in enumerate(optimizer_cases.CASES):
    tap.add(f'{case_name}_{case_index}_is_pytorchs', compare, case_index)
    tap.add(f'{case_name}_{case_index}_goes_on_from_state', goes_on, case_index)


def param(*shape):
    return GTorch.nn.Parameter(GTorch.ones(shape))


@tap.case
def states_have_pytorchs_names():
    optimizer, params = optimizer_cases.make(GTorch, 'Adafactor', {})
    optimizer_cases.step(GTorch, optimizer, params, 0)
    state = optimizer.state_dict(nested=False)
    shapes = {key: tuple(value.shape) for key, value in state.items() if key.startswith('state.')}
    assert shapes == {
        'state.0.step': (), 'state.0.row_var': (3, 1), 'state.0.col_var': (1, 5),
        'state.1.step': (), 'state.1.variance': (7,),
        'state.2.step': (), 'state.2.row_var': (2, 3, 1), 'state.2.col_var': (2, 1, 4),
        'state.3.step': (), 'state.3.variance': (),
    }, shapes
    optimizer, params = optimizer_cases.make(GTorch, 'Muon', {})
    optimizer_cases.step(GTorch, optimizer, params, 0)
    names = optimizer.state_dict(nested=False)
    assert {key.split('.')[2] for key in names if key.startswith('state.')} == {'momentum_buffer'}


@tap.case
def arguments_are_pytorchs():
    factor = optim.Adafactor([param(2)], 0.1, -0.5, (None, 1e-2), 1.5, 0.25, foreach=False, maximize=True)
    assert (factor.lr, factor.beta2_decay, factor.eps) == (0.1, -0.5, (None, 1e-2))
    assert (factor.d, factor.maximize) == (1.5, True)
    assert factor.param_groups[0]['weight_decay'] == 0.25
    factor.eps = (1e-4, 1e-3)
    assert factor.eps == (1e-4, 1e-3)
    muon = optim.Muon([param(2, 3)], 0.1, 0.25, 0.5, False, (1, 2, 3), 1e-3, 4, 'match_rms_adamw')
    assert (muon.momentum, muon.nesterov, muon.ns_coefficients, muon.ns_steps) == (0.5, False, (1, 2, 3), 4)
    assert muon.param_groups[0]['weight_decay'] == 0.25
    assert optim.Muon([param(2, 3)]).param_groups[0]['weight_decay'] == 0.1


@tap.case
def wrong_settings_are_refused():
    raises(GLib.Error, lambda: optim.Adafactor([param(2)], beta2_decay=0.5), 'beta2_decay is 0.5')
    raises(GLib.Error, lambda: optim.Adafactor([param(2)], d=0.5), 'd is 0.5')
    raises(GLib.Error, lambda: optim.Adafactor([param(2)], eps=(-1, 1e-3)), 'eps1 is -1')
    raises(TypeError, lambda: optim.Adafactor([param(2)], eps=1e-3), 'eps must be 2 numbers')
    raises(TypeError, lambda: optim.Adafactor([param(2)], differentiable=True), 'differentiable')
    raises(GLib.Error, lambda: optim.Muon([param(2)]), '[2]', 'must be matrices')
    raises(GLib.Error, lambda: optim.Muon([param(2, 2)], ns_steps=100), 'ns_steps is 100')
    raises(GLib.Error, lambda: optim.Muon([param(2, 2)], momentum=-1), 'momentum is -1')
    raises(ValueError, lambda: optim.Muon([param(2, 2)], adjust_lr_fn='half'), 'half')
    whole = GTorch.nn.Parameter(GTorch.ones([2, 2], dtype=GTorch.complex64))
    raises(GLib.Error, lambda: optim.Muon([whole]), 'complex64')
    muon = optim.Muon([param(2, 2)])
    muon.set_capturable(True)
    raises(GLib.Error, muon.step, 'cannot be captured')
    muon.set_capturable(False)
    raises(GLib.Error, lambda: muon.add_param_group({'params': [param(3)]}) or muon.step(), 'must be matrices')


@tap.case
def lbfgs_has_pytorchs_arguments_and_state():
    lbfgs = optim.LBFGS([param(2)], 0.5, 7, 9, 1e-6, 1e-8, 5, 'strong_wolfe', maximize=True)
    assert (lbfgs.lr, lbfgs.max_iter, lbfgs.max_eval, lbfgs.history_size) == (0.5, 7, 9, 5)
    assert (lbfgs.tolerance_grad, lbfgs.tolerance_change, lbfgs.maximize) == (1e-6, 1e-8, True)
    assert (optim.LBFGS([param(2)]).max_eval, optim.LBFGS([param(2)]).lr) == (GTorch.NONE, 1)
    optimizer, params = optimizer_cases.make(GTorch, 'LBFGS', {'max_iter': 4, 'history_size': 2})
    optimizer_cases.step(GTorch, optimizer, params, 0)
    names = {key[len('state.0.'):] for key in optimizer.state_dict(nested=False) if key.startswith('state.0.')}
    pairs = {f'{name}.{i}' for name in ('old_dirs', 'old_stps', 'ro') for i in range(2)}
    assert names == {'func_evals', 'n_iter', 'd', 't', 'H_diag', 'prev_flat_grad', 'prev_loss', *pairs}, names


@tap.case
def lbfgs_gives_the_first_loss():
    weight = param(2)
    optimizer = optim.LBFGS([weight], lr=0.25)
    calls = []

    def closure():
        optimizer.zero_grad()
        loss = (weight ** 2).sum()
        loss.backward()
        calls.append(loss.item())
        return loss.item()  # a number will do

    with GTorch.no_grad():
        assert optimizer.step(closure) == 2.0 and len(calls) > 2 and calls[-1] < 1e-3
    n = len(calls)
    assert optimizer.step_closure(closure) == calls[n]
    sgd = optim.SGD([weight], lr=0.1)
    assert sgd.step_closure(closure) == calls[-1]


@tap.case
def lbfgs_optimizes_both_parts_of_complex_numbers():
    weight = GTorch.nn.Parameter(GTorch.ones([2], dtype=GTorch.complex64))
    optimizer = optim.LBFGS([weight], line_search_fn='strong_wolfe')
    goal = GTorch.tensor([3 - 4j, 1j], dtype=GTorch.complex64)

    def closure():
        optimizer.zero_grad()
        loss = ((weight - goal).abs() ** 2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert max(abs(one - other) for one, other in zip(weight.tolist(), goal.tolist())) < 1e-5


@tap.case
def lbfgs_refuses_what_it_cannot_do():
    raises(GLib.Error, lambda: optim.LBFGS([param(2)], max_iter=0), 'max_iter is 0')
    raises(GLib.Error, lambda: optim.LBFGS([param(2)], max_eval=0), 'max_eval is 0')
    raises(GLib.Error, lambda: optim.LBFGS([param(2)], history_size=0), 'history_size is 0')
    raises(GLib.Error, lambda: optim.LBFGS([param(2)], tolerance_grad=-1), 'tolerance_grad is -1')
    raises(ValueError, lambda: optim.LBFGS([param(2)], line_search_fn='armijo'), 'armijo')
    groups = [{'params': [param(2)]}, {'params': [param(2)]}]
    raises(GLib.Error, lambda: optim.LBFGS(groups), '2 groups', 'must be one')
    decaying = [{'params': [param(2)], 'weight_decay': 0.5}]
    raises(TypeError, lambda: optim.LBFGS(decaying), "'weight_decay' is no setting")
    lbfgs = optim.LBFGS([param(2)])
    raises(TypeError, lambda: lbfgs.step(), 'closure')
    raises(TypeError, lambda: lbfgs.step(3), 'cannot be called')
    raises(GLib.Error, lambda: lbfgs.step(lambda: GTorch.ones([2])), 'float32 of shape [2]', 'one real number')
    raises(ZeroDivisionError, lambda: lbfgs.step(lambda: 1 / 0), 'division')
    raises(TypeError, lambda: lbfgs.step(lambda: None))
    raises(AttributeError, lambda: optim.SparseAdam, 'no sparse tensors')
    raises(AttributeError, lambda: optim.Adamm, 'no Adamm')


@tap.case
def lbfgs_leaves_the_parameters_when_the_closure_fails():
    weight = param(2)
    optimizer, n = optim.LBFGS([weight], line_search_fn='strong_wolfe'), 0

    def closure():
        nonlocal n
        n += 1
        if n == 2:
            assert weight.tolist() != [1, 1]
            raise KeyError('the second')
        optimizer.zero_grad()
        loss = (weight ** 4).sum()
        loss.backward()
        return loss

    raises(KeyError, lambda: optimizer.step(closure), 'the second')
    assert weight.tolist() == [1, 1]


tap.main()
