#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Optimizers as programs for PyTorch use them: nested state dicts, groups and states of their own, hooks, texts. The
values are PyTorch's."""

import copy
import io
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import tap  # noqa: E402
from tap import raises  # noqa: E402

nn, optim = GTorch.nn, GTorch.optim


def pair():
    return nn.Parameter(GTorch.tensor([[1.0, 2.0]])), nn.Parameter(GTorch.tensor([3.0]))


def advance(optimizer, params, n=1):
    for _ in range(n):
        optimizer.zero_grad()
        sum((param * param).sum() for param in params).backward()
        optimizer.step()


class Counting(optim.Optimizer):
    """Keeps a number, a list, a text and tensors for each parameter."""

    def __init__(self, params, lr=0.25, rounds=3, is_fast=True, pair=(1, 0.5), tag='plain'):
        super().__init__(params, {'lr': lr, 'rounds': rounds, 'is_fast': is_fast, 'pair': pair, 'tag': tag})

    @GTorch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for param in group['params']:
                state = self.state[param]
                if len(state) == 0:
                    state['step'], state['share'], state['note'], state['seen'] = 0, 0.5, None, []
                    state['mean'], state['at'] = GTorch.zeros_like(param), GTorch.tensor(3)
                state['step'] += 1
                state['seen'].append(state['step'])
                state['mean'].add_(param.grad)
                param.sub_(state['mean'] * group['lr'])


@tap.case
def state_dicts_are_nested():
    weight, bias = params = pair()
    adam = optim.Adam([weight, bias], lr=0.5)
    assert adam.state_dict()['state'] == {}
    advance(adam, params)
    table = adam.state_dict()
    assert list(table) == ['state', 'param_groups'] and list(table['state']) == [0, 1]
    assert set(table['state'][0]) == {'step', 'exp_avg', 'exp_avg_sq'} and table['state'][0]['step'].item() == 1
    (group,) = table['param_groups']
    assert group['params'] == [0, 1] and group['betas'] == (0.9, 0.999) and group['foreach'] is None
    assert group['amsgrad'] is False and group['lr'] == 0.5
    schedule = optim.lr_scheduler.StepLR(adam, 3)
    assert schedule.state_dict()['_last_lr'] == [0.5] and schedule.state_dict()['last_epoch'] == 0
    flat = adam.state_dict(nested=False)
    assert flat['state.0.step'].item() == 1 and flat['group.0.betas'].tolist() == [0.9, 0.999]
    others = pair()
    for form in (table, flat):
        other = optim.Adam(others, lr=0.125)
        other.load_state_dict(form)
        assert other.lr == 0.5 and other.state[others[0]]['exp_avg'].equal(adam.state[weight]['exp_avg'])


@tap.case
def states_of_other_parameters_are_refused():
    params = pair()
    adam = optim.Adam(params)
    advance(adam, params)
    table = adam.state_dict()
    fewer = optim.Adam(params[:1])
    raises(ValueError, lambda: fewer.load_state_dict(table), 'group.0 has 2 parameters', 'optimizer 1')
    raises(ValueError, lambda: adam.load_state_dict(fewer.state_dict()), 'group.0 has 1 parameters')
    swapped = optim.Adam(params[::-1])
    raises(GLib.Error, lambda: swapped.load_state_dict(table), 'state.0.exp_avg')
    raises(GLib.Error, lambda: adam.load_state_dict({'state': None, 'param_groups': []}), 'NoneType')
    raises(GLib.Error, lambda: adam.load_state_dict({**table, 'state': {0: 3}}), 'int', 'dictionary')
    assert len(swapped.state) == 0


@tap.case
def states_of_a_program_keep_their_types():
    params = pair()
    own = Counting(params)
    advance(own, params, 2)
    state = own.state[params[0]]
    assert state['step'] == 2 and type(state['step']) is int and state['share'] == 0.5 and state['note'] is None
    assert state['seen'] == [1, 2] and state['at'].dtype == GTorch.int64 and len(state) == 6
    table = own.state_dict()
    assert table['state'][0]['step'] == 2 and table['state'][1]['seen'] == [1, 2]
    stream = io.BytesIO()
    GTorch.save(table, stream)
    stream.seek(0)
    others = pair()
    other = Counting(others, rounds=9, tag='other')
    other.load_state_dict(GTorch.load(stream))
    found = other.state[others[0]]
    assert dict(found).keys() == dict(state).keys() and type(found['step']) is int
    assert found['mean'].equal(state['mean']) and found['seen'] == [1, 2] and found['note'] is None
    assert found['at'].dtype == GTorch.int64 and found['at'].item() == 3
    assert other.param_groups[0]['tag'] == 'plain' and other.param_groups[0]['rounds'] == 3
    made = copy.deepcopy(own)
    first = made.param_groups[0]['params'][0]
    assert made.state[first]['step'] == 2 and made.param_groups[0]['pair'] == (1, 0.5)
    del state['step']
    assert 'step' not in state
    raises(KeyError, lambda: state['step'], 'step')
    own.state[params[0]] = {'step': 7}
    assert dict(own.state[params[0]]) == {'step': 7}
    raises(TypeError, lambda: other.state_dict(nested=False), 'state.0.', 'flat form')


@tap.case
def settings_of_a_program_keep_their_types():
    group = Counting(pair()).param_groups[0]
    assert group['rounds'] == 3 and type(group['rounds']) is int and group['is_fast'] is True
    assert group['pair'] == (1, 0.5) and group['tag'] == 'plain'
    group['rounds'], group['tag'] = 4, ['x']
    assert type(group['rounds']) is int and group['rounds'] == 4 and group['tag'] == ['x']
    group.set_setting('rounds', [2.5])  # as a schedule does
    assert group['rounds'] == 2.5


@tap.case
def groups_keep_keys_of_a_program():
    weight, bias = pair()
    sgd = optim.SGD([{'params': [weight], 'name': 'head', 'scale': 2}, {'params': [bias]}], lr=0.5)
    first, second = sgd.param_groups
    assert first['name'] == 'head' and type(first['scale']) is int and 'name' in first and 'name' not in second
    second['name'] = 'tail'
    assert [group['name'] for group in sgd.param_groups] == ['head', 'tail'] and first.get('none') is None
    table = sgd.state_dict()
    assert table['param_groups'][0]['name'] == 'head' and table['param_groups'][0]['scale'] == 2
    table['param_groups'][0].update(name='other', more=(1, None))
    sgd.load_state_dict(table)
    assert first['name'] == 'other' and first['more'] == (1, None)
    assert copy.deepcopy(sgd).param_groups[1]['name'] == 'tail'
    raises(TypeError, lambda: optim.SGD([{'params': [weight], 'betas': (0.5, 0.5)}]), "'betas' is no setting")
    raises(KeyError, lambda: first.__setitem__('betas', (0.5, 0.5)), 'betas')
    raises(KeyError, lambda: first['missing'], 'missing')


@tap.case
def parameters_may_have_names():
    net = nn.Linear(2, 3)
    sgd = optim.SGD(net.named_parameters(), lr=0.5)
    assert sgd.param_groups[0]['param_names'] == ['weight', 'bias']
    assert sgd.state_dict()['param_groups'][0]['param_names'] == ['weight', 'bias']
    sgd.load_state_dict(sgd.state_dict())
    named = optim.Adam([{'params': net.named_parameters(), 'lr': 0.25}])
    assert named.param_groups[0]['param_names'] == ['weight', 'bias'] and named.param_groups[0]['params'][1] is net.bias
    raises(ValueError, lambda: optim.SGD([('a', net.weight), net.bias]), '1 of 2 parameters have no names')
    raises(TypeError, lambda: optim.SGD([(1, net.weight)]), 'pairs of a name and a parameter')


@tap.case
def wrong_parameters_are_errors_of_pytorchs_kinds():
    weight, bias = pair()
    error = raises(ValueError, lambda: optim.SGD([weight * 2]), 'not a leaf')
    assert isinstance(error, GLib.Error) and error.matches(GTorch.error_quark(), GTorch.Error.AUTOGRAD)
    raises(ValueError, lambda: optim.SGD([{'params': [weight]}, {'params': [bias, weight]}]), 'in a group already')
    raises(TypeError, lambda: optim.SGD({weight, bias}), 'no order')
    raises(TypeError, lambda: optim.SGD([{'params': {weight}}]), 'no order')
    raises(TypeError, lambda: optim.SGD([weight], lr=None), 'lr must be a number, not None')
    raises(TypeError, lambda: optim.Adam([weight], betas=(0.5, None)), 'beta2: a number was expected')
    raises(TypeError, lambda: optim.Adam([weight], eps=None), 'number')
    assert optim.Adafactor([weight], eps=(None, 0.5)).param_groups[0]['eps'] == (None, 0.5)


@tap.case
def the_text_has_the_settings():
    weight, bias = pair()
    sgd = optim.SGD([{'params': [weight], 'name': 'x'}, {'params': [bias], 'lr': 0.5}], lr=0.25, momentum=0.5)
    lines = str(sgd).splitlines()
    assert lines[0] == 'SGD (' and lines[1] == 'Parameter Group 0' and lines[-1] == ')'
    for line in ('    lr: 0.25', '    name: x', '    momentum: 0.5', '    nesterov: False', '    foreach: None'):
        assert line in lines, line
    second = lines[lines.index('Parameter Group 1') :]
    assert '    lr: 0.5' in second and '    name: x' not in second
    assert second[1:-1] == sorted(second[1:-1]) and repr(sgd) == str(sgd)


@tap.case
def hooks_run_around_steps():
    params, calls = pair(), []
    sgd = optim.SGD(params, lr=0.25)
    sgd.register_step_pre_hook(lambda *given: calls.append(('before', *given)))
    handle = sgd.register_step_post_hook(lambda *given: calls.append(('after', *given)))
    advance(sgd, params)
    assert calls == [('before', sgd, (sgd,), {}), ('after', sgd, (sgd,), {})], calls
    handle.remove()
    handle.remove()
    advance(sgd, params)
    assert [call[0] for call in calls] == ['before', 'after', 'before']
    with sgd.register_step_pre_hook(lambda optimizer, args, options: 3):
        raises(TypeError, sgd.step, 'tuple of the arguments')

    def with_closure(optimizer, args, options):
        return (optimizer, lambda: 7.0), {}

    with sgd.register_step_pre_hook(with_closure):
        assert sgd.step() == 7.0
    raises(TypeError, lambda: sgd.register_step_pre_hook(3), 'cannot be called')


@tap.case
def hooks_run_around_steps_of_a_program_and_of_a_scaler():
    params, calls = pair(), []
    own = Counting(params)
    own.register_step_post_hook(lambda *_: calls.append(1))
    advance(own, params)

    class Deeper(optim.SGD):
        def step(self, closure=None):
            return super().step(closure)

    deeper = Deeper(params, lr=0.25)
    deeper.register_step_post_hook(lambda *_: calls.append(2))
    advance(deeper, params)
    scaler, sgd = GTorch.GradScaler(init_scale=4.0), optim.SGD(params, lr=0.25)
    sgd.register_step_post_hook(lambda *_: calls.append(3))
    sgd.zero_grad()
    scaler.scale((params[0] * params[0]).sum()).backward()
    scaler.step(sgd)
    scaler.update()
    assert calls == [1, 2, 3], calls
    assert not copy.deepcopy(sgd).__dict__.get('_hooks_of_steps')


class Warming(optim.lr_scheduler.LRScheduler):
    def __init__(self, optimizer, steps):
        self.steps, self.note = steps, 'warm'
        super().__init__(optimizer)

    def get_lr(self):
        return [base * min(1, (self.last_epoch + 1) / self.steps) for base in self.base_lrs]


@tap.case
def attributes_of_a_schedule_belong_to_its_state():
    first, second = (Warming(optim.SGD(pair(), lr=0.5), steps) for steps in (4, 8))
    first.step()
    first.note = 'changed'
    state = first.state_dict()
    assert state['steps'] == 4 and state['note'] == 'changed' and state['last_epoch'] == 1
    second.load_state_dict(state)
    assert (second.steps, second.note, second.last_epoch) == (4, 'changed', 1)
    first.step()
    second.step()
    assert second.get_last_lr() == first.get_last_lr() == [0.375]
    raises(GLib.Error, lambda: second.load_state_dict({**state, 'other': 1}), 'other')


@tap.case
def hooks_run_around_state_dicts():
    params, calls = pair(), []
    sgd = optim.SGD(params, lr=0.25)
    sgd.register_state_dict_pre_hook(lambda optimizer: calls.append('before'))
    sgd.register_state_dict_post_hook(lambda optimizer, table: {**table, 'more': 1})
    table = sgd.state_dict()
    assert calls == ['before'] and table['more'] == 1
    sgd.register_load_state_dict_pre_hook(lambda optimizer, given: {k: v for k, v in given.items() if k != 'more'})
    sgd.register_load_state_dict_post_hook(lambda optimizer: calls.append('loaded'))
    sgd.register_load_state_dict_post_hook(lambda optimizer: calls.append('first'), prepend=True)
    sgd.load_state_dict(table)
    assert calls == ['before', 'first', 'loaded']


tap.main()
