# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Optimizers: GTorch.optim."""

from gi.overrides import override
from gi.repository import Gio

from gi.overrides import _gtorch_state as state
from gi.overrides._gtorch_convert import GTorch, RawTensor, convert_double
from gi.overrides._gtorch_errors import guard_vfuncs
from gi.overrides._gtorch_layers import REQUIRED, bind, construct

OVERRIDES = 'gi.overrides.GTorch'  # override() finds the namespace by it
RawOptimizer = GTorch.Optimizer
RawGroup = GTorch.ParamGroup

OPTIMIZERS = {
    'SGD': {
        'params': REQUIRED,
        'lr': 1e-3,
        'momentum': 0.0,
        'dampening': 0.0,
        'weight_decay': 0.0,
        'nesterov': False,
        'maximize': False,
        'capturable': False,
    },
    'Adam': {
        'params': REQUIRED,
        'lr': 1e-3,
        'betas': (0.9, 0.999),
        'eps': 1e-8,
        'weight_decay': 0.0,
        'amsgrad': False,
        'maximize': False,
        'capturable': False,
    },
}
OPTIMIZERS['AdamW'] = {**OPTIMIZERS['Adam'], 'weight_decay': 1e-2}

GROUP = {'lr': 'learning_rate', 'learning_rate': 'learning_rate', 'weight_decay': 'weight_decay'}


def list_model(params):
    """A list model of what is one, or of parameters."""
    if isinstance(params, Gio.ListModel):
        return params
    if isinstance(params, RawTensor):
        raise TypeError('params must be several parameters, not one tensor: put it into a list')
    store = Gio.ListStore.new(RawTensor.__gtype__)
    for param in params:
        if not isinstance(param, RawTensor):
            raise TypeError(f'params must be parameters, not {type(param).__name__}')
        store.append(param)
    return store


def _betas(value):
    beta1, beta2 = value
    return {'beta1': beta1, 'beta2': beta2}


def _group(name, given, defaults):
    """A group from PyTorch's dictionary."""
    settings = {**defaults, **given}
    params = settings.pop('params')
    for key in settings:
        if key not in GROUP:
            raise TypeError(f'{name}: {key!r} is a setting of the whole optimizer, not of a group')
    settings = {GROUP[key]: convert_double(value) for key, value in settings.items()}
    return RawGroup.new(list_model(params), settings['learning_rate'], settings['weight_decay'])


def _groups(params):
    """The parameters as groups: one, or one for each of PyTorch's dictionaries."""
    if isinstance(params, (Gio.ListModel, RawTensor)):
        return [{'params': params}]
    params = list(params)
    if params and all(isinstance(group, dict) for group in params):
        for group in params:
            if 'params' not in group:
                raise TypeError("a group of parameters needs 'params'")
        return params
    return [{'params': params}]


class ParamGroup(RawGroup):
    """Parameters with settings of their own; group['lr'] and group.lr are the same."""

    __module__ = OVERRIDES

    lr = property(
        lambda self: self.learning_rate, lambda self, value: setattr(self, 'learning_rate', value)
    )

    def keys(self):
        return ['params', 'lr', 'weight_decay']

    def __contains__(self, key):
        return key in self.keys()

    def __iter__(self):
        return iter(self.keys())

    def __getitem__(self, key):
        if key == 'params':
            return list(self.get_params())
        if key not in GROUP:
            raise KeyError(key)
        return getattr(self, GROUP[key])

    def __setitem__(self, key, value):
        if key not in GROUP:
            raise KeyError(f'{key!r} is no setting of a group of parameters')
        setattr(self, GROUP[key], value)


class Optimizer(RawOptimizer):
    """What optimizers are derived from."""

    __module__ = OVERRIDES

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        guard_vfuncs(cls, ('step_param',))

    def state_dict(self):
        return state.pairs(self.state_lists())

    def load_state_dict(self, table):
        self.load_state_lists(*state.lists('load_state_dict', 'state', table))

    def zero_grad(self, set_to_none=True):
        RawOptimizer.zero_grad(self, set_to_none)

    def add_param_group(self, group):
        """A group, or PyTorch's dictionary: {'params': …, 'lr': …}."""
        if isinstance(group, dict):
            defaults = {'learning_rate': self.get_learning_rate(), 'weight_decay': 0.0}
            group = _group('add_param_group()', group, defaults)
        RawOptimizer.add_param_group(self, group)

    lr = property(
        lambda self: self.get_learning_rate(),
        lambda self, value: self.set_learning_rate(convert_double(value)),
    )


def _optimizer(name, spec):
    raw = getattr(GTorch, name)

    def init(self, params, *args, **options):
        own = type(self).__name__
        values = bind(own, spec, (params, *args), options)
        defaults = {key: values.pop(key) for key in ('lr', 'weight_decay')}
        groups = [_group(own, given, defaults) for given in _groups(values.pop('params'))]
        if 'betas' in values:
            values.update(_betas(values.pop('betas')))
        construct(self, values)
        for group in groups:
            RawOptimizer.add_param_group(self, group)
        self.check()

    members = {'__module__': OVERRIDES, '__init__': init, '__doc__': raw.__doc__}
    if 'betas' in spec:
        members['betas'] = property(
            lambda self: (self.beta1, self.beta2),
            lambda self, value: [setattr(self, *item) for item in _betas(value).items()] and None,
        )
    return override(type(raw)(name, (raw,), members))


def install(export, submodule):
    """The base class comes first: PyGObject looks bases up only once."""
    export('ParamGroup', override(ParamGroup))
    optim = {'Optimizer': export('Optimizer', override(Optimizer))}
    for name, spec in OPTIMIZERS.items():
        optim[name] = export(name, _optimizer(name, spec))
    submodule('optim', 'Optimizers.', optim)
