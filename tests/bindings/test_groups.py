#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Groups of parameters have all settings of their optimizer for themselves, and a run that is resumed from state
dicts goes on as the one that was not interrupted, bit by bit."""

import copy
import json
import operator
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
from gi.overrides._gtorch_groups import list_model  # noqa: E402
from gi.overrides._gtorch_steps import OPTIMIZERS  # noqa: E402

optim, nn = GTorch.optim, GTorch.nn
lr_scheduler = optim.lr_scheduler
ROWS = json.loads(pathlib.Path(sys.argv[1]).read_text('utf-8'))['optimizers']


def params(seed, n=2, shape=(3, 2)):
    GTorch.manual_seed(seed)
    with GTorch.no_grad():
        found = [GTorch.randn(*shape, dtype=GTorch.float64) for _ in range(n)]
    return [nn.Parameter(one) for one in found]


def give_grads(step, tensors):
    for k, param in enumerate(tensors):
        values = [((step * 3 + i + k) * 7 % 11 - 5.25) / 8 for i in range(param.numel())]
        param.grad = GTorch.tensor(values, dtype=GTorch.float64).view(*param.shape)


def advance(optimizer, tensors, begin, end, schedule=None):
    for step in range(begin, end):
        give_grads(step, tensors)
        if isinstance(optimizer, GTorch.LBFGS):
            optimizer.step(lambda: (tensors[0] * tensors[0]).sum() * 0.5 + (tensors[-1] * 3 - 1).square().sum())
        else:
            optimizer.step()
        if schedule is not None:
            schedule.step()


def values(tensors):
    return [param.detach().tolist() for param in tensors]


def as_args(step, sample):
    """The settings of a sample, as arguments: numbers of one argument are a tuple."""
    row = next(row for row in OPTIMIZERS if row['name'] == step['name'])
    found = {}
    for arg in row['args']:
        if any(name in sample for name in arg['names']):
            defaults = arg['default'] if isinstance(arg['default'], list) else [arg['default']]
            given = [sample.get(name, default) for name, default in zip(arg['names'], defaults)]
            found[arg['name']] = given[0] if len(given) == 1 else tuple(given)
    return found


def every_group_has_the_settings_of_its_sample(step):
    """Two groups with different settings do what two optimizers do."""
    make = getattr(optim, step['name'])
    samples = [as_args(step, sample) for sample in step['samples']]
    for settings in samples:
        first, second = params(1), params(2)
        both = make([{'params': first}, {'params': second, **settings}], lr=0.05)
        for key, value in settings.items():
            assert both.param_groups[1][key] == value, (key, both.param_groups[1][key])
        advance(both, first + second, 0, 4)
        lone = [params(1), params(2)]
        for k, more in enumerate(({}, settings)):
            alone = make(lone[k], lr=0.05, **more)
            for at in range(4):
                give_grads(at, lone[0] + lone[1])
                alone.step()
        assert values(first + second) == values(lone[0] + lone[1]), settings
    assert any(samples), 'no sample has a setting'


for row in ROWS:
    tap.add(f'{row["name"]}_has_settings_for_each_group', every_group_has_the_settings_of_its_sample, row)


@tap.case
def optimizers_that_are_no_rows_have_them_too():
    for make, settings, read in (
        (optim.Adafactor, {'eps': (1e-4, 0.01), 'd': 1.5, 'maximize': True}, ((1e-4, 0.01), 1.5, True)),
        (optim.Muon, {'momentum': 0.5, 'nesterov': False, 'ns_steps': 3, 'adjust_lr_fn': 'match_rms_adamw'},
         (0.5, False, 3, 'match_rms_adamw')),
    ):
        first, second = params(1), params(2)
        both = make([{'params': first}, {'params': second, **settings}], lr=0.05)
        assert tuple(both.param_groups[1][key] for key in settings) == read
        advance(both, first + second, 0, 3)
        alone = params(2)
        other = make(alone, lr=0.05, **settings)
        for at in range(3):
            give_grads(at, params(1) + alone)
            other.step()
        assert values(second) == values(alone), make.__name__
        assert values(first) != values(second)
    lbfgs = optim.LBFGS([{'params': params(1), 'history_size': 7, 'line_search_fn': 'strong_wolfe', 'max_eval': 9}])
    group = lbfgs.param_groups[0]
    assert (group['history_size'], group['line_search_fn'], group['max_eval']) == (7, 'strong_wolfe', 9)
    group['max_eval'] = None
    assert group['max_eval'] is None and lbfgs.max_eval == GTorch.NONE
    assert optim.Adafactor(params(1)).param_groups[0]['eps'] == (None, 1e-3)
    lbfgs.add_param_group({'params': params(2)})
    raises(GLib.Error, lambda: lbfgs.step(lambda: 0.0), 'it must be one')


@tap.case
def a_setting_of_the_optimizer_is_that_of_all_groups():
    first, second, third = params(1), params(2), params(3)
    adam = optim.Adam([{'params': first, 'betas': (0.5, 0.75)}, {'params': second}], betas=(0.8, 0.9))
    assert [group['betas'] for group in adam.param_groups] == [(0.5, 0.75), (0.8, 0.9)]
    assert adam.betas == (0.5, 0.75) and adam.defaults['betas'] == (0.8, 0.9)
    adam.betas = (0.25, 0.5)
    assert [group['betas'] for group in adam.param_groups] == [(0.25, 0.5)] * 2
    adam.beta2 = 0.625
    adam.param_groups[1]['betas'] = [0.125, 0.0]
    adam.add_param_group({'params': third, 'amsgrad': True})
    assert [group['betas'] for group in adam.param_groups] == [(0.25, 0.625), (0.125, 0.0), (0.25, 0.625)]
    assert [group['amsgrad'] for group in adam.param_groups] == [False, False, True]
    told = []
    adam.connect('notify::beta1', lambda *_: told.append(adam.beta1))
    adam.param_groups[1]['betas'] = (0.5, 0.5)
    adam.param_groups[0]['betas'] = (0.75, 0.625)
    assert told == [0.75]
    # what is refused changes no group
    for wrong in ((1.5, 0.5), (0.5,), 0.5, (0.5, 0.5, 0.5), (float('nan'), 0.5)):
        raises(GLib.Error, lambda: setattr(adam, 'betas', wrong), 'adam: beta')
    raises(TypeError, lambda: setattr(adam, 'betas', ('x', 0.5)), 'betas')
    raises(GLib.Error, lambda: setattr(adam, 'beta1', 1), 'beta1 is 1')
    assert [group['betas'] for group in adam.param_groups] == [(0.75, 0.625), (0.5, 0.5), (0.25, 0.625)]


@tap.case
def groups_take_what_pytorchs_do_and_refuse_the_rest():
    sgd = optim.SGD([{'params': params(1), 'momentum': 0.5, 'foreach': True, 'fused': None}], lr=0.1)
    group = sgd.param_groups[0]
    names = ['params', 'lr', 'momentum', 'dampening', 'weight_decay', 'nesterov', 'maximize']
    assert group.keys() == names and list(group) == names and len(group) == len(names)
    assert dict(group.items())['momentum'] == 0.5 and group.get('beta') is None and group.get('lr') == 0.1
    assert 'nesterov' in group and 'betas' not in group and group.setdefault('momentum', 1) == 0.5
    group['nesterov'] = True
    assert sgd.nesterov is True and group['nesterov'] is True
    for key, value, kind, says in (
        ('momentum', 0, GLib.Error, 'nesterov needs momentum > 0'),
        ('momentum', -1, GLib.Error, 'momentum is -1'),
        ('momentum', float('inf'), GLib.Error, 'momentum is inf'),
        ('momentum', None, TypeError, 'must be a number, not None'),
        ('momentum', (0.5, 0.5), GLib.Error, 'momentum is 1 number, not 2'),
        ('momentum', 'x', TypeError, 'momentum'),
        ('nesterov', 'yes', TypeError, 'nesterov'),
        ('nesterov', 0.5, TypeError, 'nesterov'),
        ('betas', (0.5, 0.5), KeyError, 'betas'),
        ('params', [], KeyError, 'params'),
        (3, 1, KeyError, '3'),
    ):
        raises(kind, lambda: group.__setitem__(key, value), says)
    assert group['momentum'] == 0.5 and group['nesterov'] is True
    p = params(2)
    for given, kind, says in (
        ({'betas': (0.5, 0.5)}, TypeError, "'betas' is no setting"),
        ({'nesterov': True, 'momentum': 0}, GLib.Error, 'nesterov needs'),
        ({'momentum': -1}, GLib.Error, 'momentum is -1'),
        ({'lr': (1, 2)}, TypeError, 'lr must be one number'),
        ({'lr': -1}, GLib.Error, 'learning rate is -1'),
        ({'differentiable': True}, GLib.Error, 'differentiable'),
        ({'capturable': True}, GLib.Error, 'capturable'),
        ({'foreach': 'x'}, TypeError, 'foreach'),
    ):
        raises(kind, lambda: sgd.add_param_group({'params': p, **given}), says)
    assert len(sgd.param_groups) == 1
    sgd.add_param_group({'params': p})
    assert sgd.param_groups[1]['nesterov'] is False and sgd.param_groups[1]['momentum'] == 0.0


@tap.case
def a_group_that_is_made_alone_is_checked_where_it_is_added():
    def alone(seed, **settings):
        made = GTorch.ParamGroup.new(list_model(params(seed)), 0.1, 0.0)
        for key, value in settings.items():
            made[key] = value
        return made

    adam = optim.Adam(params(1))
    adam.add_param_group(alone(2, betas=(0.5, 0.25), amsgrad=1))
    group = adam.param_groups[1]
    assert group['betas'] == (0.5, 0.25) and group['amsgrad'] is True and group['eps'] == 1e-8
    raises(GLib.Error, lambda: adam.add_param_group(alone(3, momentum=0.5)), 'no setting “momentum”')
    raises(GLib.Error, lambda: adam.add_param_group(alone(3, betas=0.5)), 'betas is 2 numbers, not 1')
    raises(GLib.Error, lambda: adam.add_param_group(alone(3, amsgrad=0.5)), 'amsgrad is 0.5')
    raises(GLib.Error, lambda: adam.add_param_group(alone(3, eps=-1)), 'eps is -1')
    assert len(adam.param_groups) == 2
    raises(GLib.Error, lambda: optim.SGD(params(5), lr=1).add_param_group(alone(4, eps=1)), 'no setting “eps”')
    other = optim.SGD(params(5), lr=1)
    raises(GLib.Error, lambda: other.add_param_group(group), 'settings of another optimizer, adam')


@tap.case
def classes_of_a_program_have_settings_of_their_own():
    class Push(optim.Optimizer):
        def __init__(self, params, lr=0.1, force=1.0, pair=(1, 2)):
            super().__init__(params, {'lr': lr, 'force': force, 'pair': pair})

        def do_step_param(self, group, param, grad):
            state = self.state[param]
            if len(state) == 0:
                state['step'] = 0
            state['step'] += 1
            param.sub_(grad * (group['lr'] * group['force'] * group['pair'][1]))

    first, second = params(1), params(2)
    push = Push([{'params': first, 'force': 0.5}, {'params': second}], lr=0.25)
    assert push.defaults == {'lr': 0.25, 'weight_decay': 0.0, 'force': 1.0, 'pair': (1, 2)}
    assert [group['force'] for group in push.param_groups] == [0.5, 1.0]
    before = values(first + second)
    advance(push, first + second, 0, 1)
    grads = [param.grad.tolist() for param in first + second]
    for was, now, grad, factor in zip(before, values(first + second), grads, (0.25, 0.25, 0.5, 0.5)):
        assert all(abs(a - b * factor - c) < 1e-12 for r, g, n in zip(was, grad, now) for a, b, c in zip(r, g, n))
    assert push.state[first[0]]['step'] == 1 and len(push.state) == 4
    push.add_param_group({'params': params(3)})
    assert push.param_groups[2]['force'] == 1.0
    saved = push.state_dict(nested=False)
    assert saved['group.0.force'].item() == 0.5 and saved['group.0.pair'].tolist() == [1, 2]
    push.param_groups[0]['force'] = 3
    push.load_state_dict(saved)
    assert push.param_groups[0]['force'] == 0.5
    cyclic = Momentum(params(4))
    lr_scheduler.OneCycleLR(cyclic, 0.1, total_steps=10)
    assert cyclic.param_groups[0]['momentum'] == 0.95


class Momentum(optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {'lr': 0.1, 'momentum': 0.5})

    def do_step_param(self, group, param, grad):
        param.sub_(grad * group['momentum'])


@tap.case
def states_and_defaults_are_readable():
    first, second = params(1, 1), params(2, 1)
    adam = optim.AdamW([{'params': first}, {'params': second, 'lr': 0.5}], lr=0.25)
    assert adam.defaults['lr'] == 0.25 and adam.defaults['weight_decay'] == 0.01
    assert adam.defaults['foreach'] is None and adam.defaults['capturable'] is False
    raises(TypeError, lambda: operator.setitem(adam.defaults, 'lr', 1), 'item assignment')
    assert len(adam.state) == 0 and first[0] not in adam.state and dict(adam.state[first[0]]) == {}
    advance(adam, first + second, 0, 2)
    assert set(adam.state) == {first[0], second[0]}
    state = adam.state[first[0]]
    assert sorted(state) == ['exp_avg', 'exp_avg_sq', 'step'] and state['step'].item() == 2
    assert state['exp_avg'].data_ptr() == adam.get_state(first[0], 'exp_avg').data_ptr()
    raises(KeyError, lambda: state['missing'], 'missing')
    raises(KeyError, lambda: state.__delitem__('missing'), 'missing')
    raises(TypeError, lambda: state.__setitem__('step', 'x'), 'number')
    raises(KeyError, lambda: adam.state['x'], 'x')
    del state['step'], state['exp_avg'], state['exp_avg_sq']
    assert first[0] not in adam.state


@tap.case
def copies_have_the_settings():
    adam = optim.Adam([{'params': params(1), 'betas': (0.5, 0.75)}, {'params': params(2)}], betas=(0.8, 0.9), lr=0.5)
    for made in (copy.deepcopy(adam), pickle.loads(pickle.dumps(adam))):
        assert [group['betas'] for group in made.param_groups] == [(0.5, 0.75), (0.8, 0.9)]
        assert made.defaults == adam.defaults
    group = copy.deepcopy(adam.param_groups[0])
    assert group['betas'] == (0.5, 0.75) and group['lr'] == 0.5


# --- resuming ---


def schedules():
    """Every schedule, by how it is made for an optimizer."""
    found = {
        'StepLR': lambda o: lr_scheduler.StepLR(o, 2, gamma=0.5),
        'MultiStepLR': lambda o: lr_scheduler.MultiStepLR(o, [2, 4, 7], gamma=0.5),
        'ConstantLR': lambda o: lr_scheduler.ConstantLR(o, 0.25, total_iters=6),
        'LinearLR': lambda o: lr_scheduler.LinearLR(o, 0.25, total_iters=7),
        'ExponentialLR': lambda o: lr_scheduler.ExponentialLR(o, 0.75),
        'PolynomialLR': lambda o: lr_scheduler.PolynomialLR(o, 8, power=2.0),
        'CosineAnnealingLR': lambda o: lr_scheduler.CosineAnnealingLR(o, 7),
        'CosineAnnealingWarmRestarts': lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 3, T_mult=2),
        'LambdaLR': lambda o: lr_scheduler.LambdaLR(o, lambda epoch: 0.9**epoch),
        'MultiplicativeLR': lambda o: lr_scheduler.MultiplicativeLR(o, lambda epoch: 0.9),
        'SequentialLR': lambda o: lr_scheduler.SequentialLR(
            o, [lr_scheduler.ConstantLR(o, 0.5, 3), lr_scheduler.ExponentialLR(o, 0.75)], milestones=[4]
        ),
        'ChainedScheduler': lambda o: lr_scheduler.ChainedScheduler(
            [lr_scheduler.ConstantLR(o, 0.5, 3), lr_scheduler.ExponentialLR(o, 0.75)]
        ),
        'SWALR': lambda o: optim.swa_utils.SWALR(o, 0.01, anneal_epochs=7),
        'CyclicLR': lambda o: lr_scheduler.CyclicLR(o, 0.01, 0.1, step_size_up=3),
        'OneCycleLR': lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=12, three_phase=True),
    }
    return found


def optimizers():
    found = {}
    for step in ROWS:
        settings = [as_args(step, sample) for sample in step['samples']]
        found[step['name']] = lambda ps, step=step, settings=settings: getattr(optim, step['name'])(
            [{'params': ps[:1], **settings[0]}, {'params': ps[1:], **settings[-1]}], lr=0.05
        )
    found['Adafactor'] = lambda ps: optim.Adafactor([{'params': ps[:1], 'd': 2.0}, {'params': ps[1:]}], lr=0.05)
    found['Muon'] = lambda ps: optim.Muon([{'params': ps[:1], 'momentum': 0.5}, {'params': ps[1:]}], lr=0.05)
    found['LBFGS'] = lambda ps: optim.LBFGS(ps, lr=0.05, max_iter=3, history_size=2)
    return found


def flat(owner):
    return {name: tensor.clone() for name, tensor in owner.state_dict(nested=False).items()}


def resumed(make, schedule):
    """Whether five steps, state dicts and five further ones are ten steps."""
    whole = params(7)
    optimizer = make(whole)
    advance(optimizer, whole, 0, 10, None if schedule is None else schedule(optimizer))

    begun = params(7)
    optimizer = make(begun)
    made = None if schedule is None else schedule(optimizer)
    advance(optimizer, begun, 0, 5, made)
    saved = flat(optimizer)
    saved_schedule = None if made is None else flat(made)

    with GTorch.no_grad():
        gone_on = [nn.Parameter(param.detach().clone()) for param in begun]
    optimizer = make(gone_on)
    made = None if schedule is None else schedule(optimizer)
    optimizer.load_state_dict(saved)
    if made is not None:
        made.load_state_dict(saved_schedule)
    advance(optimizer, gone_on, 5, 10, made)
    assert values(gone_on) == values(whole)
    found = {name: tensor.tolist() for name, tensor in flat(optimizer).items()}
    return found


for name, maker in optimizers().items():
    tap.add(f'a_resumed_run_of_{name}_is_the_whole_one', resumed, maker, None)


@tap.case
def resumed_runs_with_schedules_are_the_whole_ones():
    every = optimizers()
    for name, schedule in schedules().items():
        for kind in ('SGD', 'Adam'):
            try:
                resumed(every[kind], schedule)
            except AssertionError as error:
                raise AssertionError(f'{kind} with {name}: {error}') from None


@tap.case
def settings_that_a_program_changes_are_resumed():
    def make(settings, tensors):
        return optim.Adam([{'params': tensors, **settings}], lr=0.05)

    first = params(1)
    adam = make({}, first)
    advance(adam, first, 0, 2)
    adam.param_groups[0]['betas'], adam.param_groups[0]['eps'] = (0.5, 0.25), 0.5
    adam.param_groups[0]['maximize'] = True
    saved = flat(adam)
    second = [nn.Parameter(param.detach().clone()) for param in first]
    other = make({}, second)
    other.load_state_dict(saved)
    assert dict(other.param_groups[0].items())['betas'] == (0.5, 0.25)
    assert other.defaults['betas'] == (0.9, 0.999)
    advance(adam, first, 2, 5)
    advance(other, second, 2, 5)
    assert values(first) == values(second)
    older = {name: tensor for name, tensor in saved.items() if not name.endswith(('betas', 'eps'))}
    raises(GLib.Error, lambda: other.load_state_dict(older), 'missing: group.0.betas, group.0.eps')
    spoilt = {**saved, 'group.0.betas': GTorch.tensor([1.5, 0.5], dtype=GTorch.float64)}
    raises(GLib.Error, lambda: other.load_state_dict(spoilt), 'group.0.betas', 'beta1 is 1.5')
    spoilt = {**saved, 'group.0.betas': GTorch.tensor([0.5], dtype=GTorch.float64)}
    raises(GLib.Error, lambda: other.load_state_dict(spoilt), 'does not have as many numbers')
    spoilt = {**saved, 'group.0.maximize': GTorch.tensor(0.5, dtype=GTorch.float64)}
    raises(GLib.Error, lambda: other.load_state_dict(spoilt), 'group.0.maximize')
    sgd = optim.SGD(params(3), lr=1, momentum=0.5, nesterov=True)
    wrong = {**flat(sgd), 'group.0.momentum': GTorch.tensor(0, dtype=GTorch.float64)}
    raises(GLib.Error, lambda: sgd.load_state_dict(wrong), 'group.0', 'nesterov needs momentum > 0')
    assert sgd.param_groups[0]['momentum'] == 0.5


@tap.case
def cycles_change_each_group():
    for kind, key in ((optim.SGD, 'momentum'), (optim.Adam, 'betas'), (optim.RMSprop, 'momentum')):
        optimizer = kind([{'params': params(1)}, {'params': params(2)}], lr=0.1)
        optimizer.param_groups[1][key] = 0.25 if key == 'momentum' else (0.25, 0.125)
        lr_scheduler.CyclicLR(optimizer, 0.01, 0.1, step_size_up=2)
        found = [group[key] for group in optimizer.param_groups]
        assert found == ([0.9, 0.9] if key == 'momentum' else [(0.9, 0.999), (0.9, 0.125)]), found


tap.main()
