#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Methods of a program's classes that have the names of functions that PyTorch does not have: the library does not
call them in place of its own ones."""

import copy
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import tap  # noqa: E402

nn, optim = GTorch.nn, GTorch.optim
# What PyTorch has under these names, programs override: test_overridden.py.
PYTORCH = set('''
    T_destination add_module apply bfloat16 buffers call_super_init children compile cpu cuda double dump_patches eval
    extra_repr float forward get_buffer get_extra_state get_parameter get_submodule half ipu load_state_dict modules
    mtia named_buffers named_children named_modules named_parameters parameters register_backward_hook register_buffer
    register_forward_hook register_forward_pre_hook register_full_backward_hook register_full_backward_pre_hook
    register_load_state_dict_post_hook register_load_state_dict_pre_hook register_module register_parameter
    register_state_dict_post_hook register_state_dict_pre_hook requires_grad_ set_extra_state set_submodule
    share_memory state_dict to to_empty train training type xpu zero_grad append extend insert pop reset_parameters
    clear items keys values update copy fromkeys popitem setdefault get
    _apply _call_impl _get_name _load_from_state_dict _save_to_state_dict _named_members _buffers _modules _parameters
    OptimizerPostHook OptimizerPreHook add_param_group defaults param_groups state step profile_hook_step
    register_load_state_dict_post_hook register_load_state_dict_pre_hook register_state_dict_post_hook
    register_state_dict_pre_hook register_step_post_hook register_step_pre_hook
    get_last_lr get_lr print_lr optimizer base_lrs last_epoch
'''.split())  # fmt: skip
# Functions of the interface of C, which such a class overrides with or without do_; and what Python's objects need.
FUNCTIONS = {'forward_many', 'compute', 'step_param', 'weak_ref', 'ref', 'unref', 'props', 'g_type_instance'}


def names_of(cls):
    """The names of the class that PyTorch's does not have."""
    return [
        name for name in dir(cls)
        if not (name in PYTORCH or name in FUNCTIONS or name.startswith(('__', 'do_', '_gt_')))
        and not isinstance(getattr(cls, name), property) and callable(getattr(cls, name))
    ]


def called(function):
    """What it gives, or raises."""
    try:
        return str(function())
    except Exception as error:
        return f'{type(error).__name__}: {error}'


def use(net):
    """Uses a module in the ways of programs, and tells what came of it."""
    GTorch.manual_seed(1)
    x = GTorch.ones(2, 2)
    return [called(step) for step in (
        lambda: [list(tensor.shape) for tensor in net.parameters()],
        lambda: [name for name, _tensor in net.named_parameters()],
        lambda: [name for name, _tensor in net.named_buffers()],
        lambda: len(list(net.buffers())),
        lambda: [name for name, _module in net.named_modules()],
        lambda: [name for name, _module in net.named_children()],
        lambda: list(net.state_dict()),
        lambda: [list(view) for view in (net._parameters, net._buffers, net._modules)],
        lambda: net(x).shape,
        lambda: (net.eval().training, net[0].training, net.train().training, net[1].training),
        lambda: net.load_state_dict(net.state_dict()),
        lambda: net.load_state_dict(net.state_dict(), assign=True),
        lambda: list(copy.deepcopy(net).state_dict()),
        lambda: net.double()[0].weight.dtype,
        lambda: net.float()[0].weight.dtype,
        lambda: net(x).sum().backward(),
        lambda: net[0].weight.grad.shape,
        lambda: (net.zero_grad(), net[0].weight.grad),
        lambda: net.requires_grad_(False)[0].weight.requires_grad,
        lambda: net.register_forward_hook(lambda *_: None).remove(),
        lambda: nn.Sequential(net, nn.ReLU())(x).shape,
        lambda: (net.get_submodule('0'), net.get_parameter('0.weight').shape),
        lambda: net.register_buffer('total', GTorch.ones(1)),
        lambda: setattr(net, 'total', GTorch.zeros(1)),
        lambda: net.total,
        lambda: setattr(net, 'last', nn.Linear(3, 1)),
        lambda: delattr(net, 'last'),
        lambda: setattr(net, 'scale', nn.Parameter(GTorch.ones(1))),
        lambda: len(list(net.parameters())),
        lambda: GTorch.func.functional_call(net, {'0.weight': GTorch.zeros(3, 2)}, (x,)).sum(),
        lambda: nn.utils.parametrizations.weight_norm(net[0]),
        lambda: net,
    )]  # fmt: skip


def answer(*_args, **_options):
    return 'mine'


def compare(base, make, use):
    expected = use(make(base))
    assert not any(text.startswith(('AttributeError', 'TypeError', 'NameError')) for text in expected), expected
    wrong = {}
    for name in names_of(base):
        cls = type(base.__name__, (base,), {name: answer, '__module__': __name__})
        try:
            found = use(make(cls))
        except Exception as error:
            wrong[name] = f'{type(error).__name__}: {error}'
            continue
        if found != expected:
            wrong[name] = [pair for pair in zip(expected, found) if pair[0] != pair[1]][:2]
    assert not wrong, wrong
    assert len(names_of(base)) > 40  # so there is something to try


@tap.case
def modules_do_not_call_them():
    def make(cls):
        return cls(nn.Linear(2, 3), nn.BatchNorm1d(3))

    compare(nn.Sequential, make, use)


@tap.case
def modules_without_a_class_in_c_do_not_call_them():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.rows = nn.Linear(2, 3)
            self.norm = nn.BatchNorm1d(3)

        def forward(self, x):
            return self.norm(self.rows(x))

        def __getitem__(self, position):
            return (self.rows, self.norm)[position]

    compare(Net, lambda cls: cls(), lambda net: [text for text in use(net) if "'0" not in text])


def train(make):
    """Uses an optimizer and a schedule, and tells what came of it."""
    param = nn.Parameter(GTorch.ones(2))
    optimizer, schedule = make(param)
    param.grad = GTorch.ones(2)
    return [called(step) for step in (
        lambda: optimizer.step(),
        lambda: optimizer.step(lambda: param.sum()),
        lambda: schedule.step(),
        lambda: (schedule.get_last_lr(), schedule.base_lrs),
        lambda: param,
        lambda: optimizer.state_dict(),
        lambda: schedule.state_dict(),
        lambda: optimizer.load_state_dict(optimizer.state_dict()),
        lambda: schedule.load_state_dict(schedule.state_dict()),
        lambda: sorted(optimizer.state[param]),
        lambda: optimizer.add_param_group({'params': nn.Parameter(GTorch.ones(1)), 'lr': 0.5}),
        lambda: [group['lr'] for group in optimizer.param_groups],
        lambda: optimizer.param_groups[0].update(lr=0.25),
        lambda: (optimizer.lr, optimizer.defaults['lr']),
        lambda: copy.deepcopy(optimizer).state_dict(),
        lambda: optimizer.zero_grad(),
        lambda: param.grad,
    )]  # fmt: skip


@tap.case
def optimizers_and_schedules_do_not_call_them():
    def with_optimizer(cls):
        def make(param):
            made = cls([param], lr=0.1, momentum=0.9)
            return made, optim.lr_scheduler.StepLR(made, 1)

        return make

    def with_schedule(cls):
        def make(param):
            made = optim.SGD([param], lr=0.1)
            return made, cls(made, 1)

        return make

    compare(optim.SGD, with_optimizer, train)
    compare(optim.lr_scheduler.StepLR, with_schedule, train)


class Plain(optim.Optimizer):
    """As programs for PyTorch write them."""

    def __init__(self, params, lr=0.1, momentum=0.9):
        super().__init__(params, {'lr': lr, 'momentum': momentum})

    @GTorch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for param in group['params']:
                state = self.state[param]
                state['n'] = state.get('n', 0) + 1
                param.sub_(param.grad, alpha=group['lr'])


@tap.case
def optimizers_of_programs_do_not_call_them():
    def with_optimizer(cls):
        def make(param):
            made = cls([param])
            return made, optim.lr_scheduler.ExponentialLR(made, 0.5)

        return make

    compare(Plain, with_optimizer, train)


@tap.case
def the_programs_own_methods_remain():
    class Net(nn.Linear):
        def get_parameters(self, rate):
            return [{'params': self.parameters(), 'lr': rate}]

    net = Net(2, 1)
    assert len(list(net.parameters())) == 2
    assert optim.SGD(net.get_parameters(0.5), lr=0.1).param_groups[0]['lr'] == 0.5
    assert isinstance(net, GTorch.Module) and GLib is not None


tap.main()
