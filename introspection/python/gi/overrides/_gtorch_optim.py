# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Optimizers: GTorch.optim."""

import functools

from gi.overrides import override
from gi.repository import Gio, GLib

from gi.overrides import _gtorch_scheduler as scheduler
from gi.overrides import _gtorch_state as state
from gi.overrides._gtorch_convert import GTorch, RawTensor, convert_bool, convert_double
from gi.overrides._gtorch_errors import guard_vfuncs, own_vfunc, passes, restoring
from gi.overrides._gtorch_layers import construct
from gi.overrides._gtorch_scheduler import attributes, bind, to_properties
from gi.overrides._gtorch_steps import OPTIMIZERS

OVERRIDES = 'gi.overrides.GTorch'  # override() finds the namespace through it
RawOptimizer = GTorch.Optimizer
RawGroup = GTorch.ParamGroup

GROUP = {
    'lr': 'learning_rate',
    'learning_rate': 'learning_rate',
    'weight_decay': 'weight_decay',
    'initial_lr': 'initial_learning_rate',
}


def _check_forms(name, row, values):
    """Arguments that select an implementation of the step: here there is only one, which gives the same
    results."""
    chosen = []
    for arg in row['args']:
        key, form = arg['name'], arg['form']
        if form not in ('form', 'refused'):
            continue
        value = values.pop(key)
        if value is not None and not isinstance(value, bool):
            raise TypeError(f'{name}: {key} must be True, False or None, not {value!r}')
        if form == 'refused' and value:
            text = f'{name}: {key}=True is not supported: the step is not recorded for gradients'
            raise GLib.Error.new_literal(GTorch.error_quark(), text, GTorch.Error.NOT_SUPPORTED)
        if value and form == 'form':
            chosen.append(key)
    if len(chosen) > 1:
        raise ValueError(f'{name}: {" and ".join(chosen)} cannot both be True')


DEFAULT_LR = 0.001  # that of an optimizer without groups


class Recording:
    """A block in which gradients are recorded."""

    def __enter__(self):
        self.guard = GTorch.enable_grad()

    def __exit__(self, *_exception):
        self.guard.end()


def list_model(params):
    """Returns a list model itself, or one of the parameters."""
    if isinstance(params, Gio.ListModel):
        return params
    store = Gio.ListStore.new(RawTensor.__gtype__)
    for param in params:
        if not isinstance(param, RawTensor):
            raise TypeError(f'params must be parameters, not {type(param).__name__}')
        store.append(param)
    return store


WHOLE = {arg['name'] for row in OPTIMIZERS for arg in row['args']}


def _group(name, given, defaults):
    """Creates a group from PyTorch's dictionary."""
    settings = {**defaults, **given}
    params = settings.pop('params')
    if isinstance(params, RawTensor):
        params = [params]
    for key in settings:
        if key not in GROUP:
            what = 'a setting of the whole optimizer, not of a group' if key in WHOLE else 'no setting of a group'
            raise TypeError(f'{name}: {key!r} is {what}')
    settings = {GROUP[key]: _setting(name, key, value) for key, value in settings.items()}
    made = RawGroup.new(list_model(params), settings['learning_rate'], settings['weight_decay'])
    if 'initial_learning_rate' in settings:
        made.set_initial_learning_rate(settings['initial_learning_rate'])
    return made


def _setting(name, key, value):
    try:
        return convert_double(value)
    except TypeError as error:
        raise TypeError(f'{name}: {key}: {error}') from None


def _groups(name, params):
    """Returns the parameters as groups: one, or one for each of PyTorch's dictionaries."""
    if isinstance(params, RawTensor):
        raise TypeError(f'{name}: params must be several parameters, not one tensor: put it into a list')
    if isinstance(params, Gio.ListModel):
        return [{'params': params}]
    params = list(params)
    if not params:
        raise ValueError(f'{name}: there are no parameters to optimize')
    if all(isinstance(group, dict) for group in params):
        for group in params:
            if 'params' not in group:
                raise TypeError("a group of parameters needs 'params'")
        return params
    return [{'params': params}]


class ParamGroup(RawGroup):
    """Parameters with their own settings; group['lr'] and group.lr are the same."""

    __module__ = OVERRIDES

    lr = property(
        lambda self: self.learning_rate, lambda self, value: setattr(self, 'learning_rate', value)
    )

    def keys(self):
        begun = ['initial_lr'] if self.initial_learning_rate >= 0 else []
        return ['params', 'lr', 'weight_decay', *begun]

    def __contains__(self, key):
        return key in self.keys()

    def __iter__(self):
        return iter(self.keys())

    def __getitem__(self, key):
        if key == 'params':
            return tuple(self.get_params())  # add_param_group() adds further ones
        if key not in GROUP or (key == 'initial_lr' and key not in self.keys()):
            raise KeyError(key)
        return getattr(self, GROUP[key])

    def __setitem__(self, key, value):
        if key not in GROUP:
            raise KeyError(f'{key!r} is no setting of a group of parameters')
        setattr(self, GROUP[key], value)


def _check_closure(closure):
    if not callable(closure):
        raise TypeError(f'step(): the closure {closure!r} cannot be called')


def _step_by_closure(self, closure):
    """Makes a step, which calls @closure several times: it computes the loss and its gradients. Returns the first
    loss."""
    _check_closure(closure)
    losses = []

    def call(*_data):
        loss = closure()
        if not losses:
            losses.append(loss)
        if isinstance(loss, RawTensor):
            return loss
        return RawTensor.new_from_doubles([convert_double(loss)], [], GTorch.DType.FLOAT64, None)

    restoring(RawOptimizer.step_closure, self, passes('the closure of step()', call))
    return losses[0]


def _succeeds(function):
    """Wraps step_param() for C, which needs to know whether it succeeded: returning None counts as
    success."""

    def step_param(self, *args):
        return function(self, *args) is not False

    return functools.wraps(function)(step_param)


class Optimizer(RawOptimizer):
    """The base class of optimizers."""

    __module__ = OVERRIDES

    def __init__(self, params=None, defaults=None, **properties):
        """For derived classes: the parameters, or groups of them, and the settings of groups that have none of their
        own, as in PyTorch: super().__init__(params, {'lr': lr})."""
        own = type(self).__name__
        if defaults is not None and params is None:
            raise TypeError(f'{own}: the defaults {defaults!r} need parameters')
        defaults = {} if defaults is None else dict(defaults)
        groups = [] if params is None else _groups(own, params)
        settings = {'lr': DEFAULT_LR, 'weight_decay': 0.0, **defaults}
        made = [_group(own, group, settings) for group in groups]
        construct(self, properties)
        for group in made:
            RawOptimizer.add_param_group(self, group)

    def step(self, closure=None):
        """Updates the parameters. A @closure computes the loss, which is returned, and its gradients."""
        if closure is None:
            RawOptimizer.step(self)
            return None
        _check_closure(closure)
        with Recording():
            loss = closure()
        RawOptimizer.step(self)
        return loss

    def step_closure(self, closure):
        """The same as step(closure)."""
        _check_closure(closure)
        return self.step(closure)

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        function = own_vfunc(cls, 'step_param')
        if function is not None:
            cls.do_step_param = _succeeds(function)
            guard_vfuncs(cls, ('step_param',))

    def state_dict(self):
        return state.pairs(self.state_lists())

    def load_state_dict(self, table):
        self.load_state_lists(*state.lists('load_state_dict', 'state', table))

    def zero_grad(self, set_to_none=True):
        RawOptimizer.zero_grad(self, convert_bool(set_to_none))

    def add_param_group(self, group):
        """Adds a group, or PyTorch's dictionary: {'params': …, 'lr': …}."""
        if isinstance(group, dict):
            defaults = {'learning_rate': self.get_learning_rate(), 'weight_decay': 0.0}
            group = _group('add_param_group()', group, defaults)
        RawOptimizer.add_param_group(self, group)

    def _set_learning_rate(self, value):
        value = _setting(type(self).__name__, 'lr', value)
        RawGroup.new(list_model([]), value, 0.0)  # raises for what no group may have
        self.set_learning_rate(value)

    lr = learning_rate = property(lambda self: self.get_learning_rate(), _set_learning_rate)


def _optimizer(row):
    """Creates the class of a row."""
    raw = getattr(GTorch, row['name'])

    def init(self, params, *args, **options):
        own = type(self).__name__
        values = bind(own, row, 'params', (params, *args), options)
        _check_forms(own, row, values)
        defaults = {key: values.pop(key) for key in ('lr', 'weight_decay') if key in values}
        groups = [_group(own, given, {'weight_decay': 0.0, **defaults}) for given in _groups(own, values.pop('params'))]
        construct(self, to_properties(own, row, values))
        for group in groups:
            RawOptimizer.add_param_group(self, group)
        self.check()

    members = {'__module__': OVERRIDES, '__init__': init, '__doc__': raw.__doc__}
    members.update(attributes(row))
    if row['name'] == 'LBFGS':
        members['step'] = _step_by_closure
    return override(type(raw)(row['name'], (raw,), members))


def _missing(name):
    """Tells why a class of PyTorch's is not here."""
    if name == 'SparseAdam':
        raise AttributeError(f'{name}: there are no sparse tensors, so no gradients for it: use Adam', name=name)
    raise AttributeError(f'GTorch.optim has no {name}', name=name)


def install(export, submodule):
    """The base class comes first: PyGObject looks up bases only once."""
    export('ParamGroup', override(ParamGroup))
    optim = {'Optimizer': export('Optimizer', override(Optimizer))}
    for row in OPTIMIZERS:
        optim[row['name']] = export(row['name'], _optimizer(row))
    optim['lr_scheduler'] = scheduler.install(export, submodule)
    optim['swa_utils'] = scheduler.install_swa(export, submodule)
    submodule('optim', 'Optimizers.', {**optim, '__getattr__': _missing})
