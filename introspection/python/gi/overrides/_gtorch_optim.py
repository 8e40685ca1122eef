# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Optimizers: GTorch.optim."""

import functools
import types
from collections.abc import Mapping, MutableMapping

from gi.overrides import override
from gi.repository import GLib, GObject

from gi.overrides import _gtorch_exchange as exchange
from gi.overrides import _gtorch_groups as groups
from gi.overrides import _gtorch_scheduler as scheduler
from gi.overrides import _gtorch_state as state
from gi.overrides._gtorch_convert import GTorch, RawTensor, convert_bool, convert_double
from gi.overrides._gtorch_errors import guard_vfuncs, own_vfunc, passes, restoring
from gi.overrides._gtorch_layers import construct
from gi.overrides._gtorch_scheduler import bind, to_properties
from gi.overrides._gtorch_steps import OPTIMIZERS

OVERRIDES = 'gi.overrides.GTorch'  # override() finds the namespace through it
RawOptimizer = GTorch.Optimizer
RawGroup = groups.RawGroup
list_model = groups.list_model

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


class OwnStates(MutableMapping):
    """The states of a parameter by their names; a number becomes a tensor of float64."""

    def __init__(self, optimizer, param):
        self._optimizer, self._param = optimizer, param

    def __getitem__(self, name):
        if name not in self:
            raise KeyError(name)
        return self._optimizer.get_state(self._param, name)

    def __setitem__(self, name, value):
        if not isinstance(name, str):
            raise TypeError(f'the name of a state must be a text, not {name!r}')
        state.check_text('set_state', 'name', name)
        if not isinstance(value, RawTensor):
            value = RawTensor.new_from_doubles([convert_double(value)], [], GTorch.DType.FLOAT64, None)
        self._optimizer.set_state(self._param, name, value)

    def __delitem__(self, name):
        if name not in self:
            raise KeyError(name)
        self._optimizer.set_state(self._param, name, None)

    def __iter__(self):
        return iter(self._optimizer.get_state_names(self._param))

    def __len__(self):
        return len(self._optimizer.get_state_names(self._param))

    def __contains__(self, name):
        return name in self._optimizer.get_state_names(self._param)

    def __repr__(self):
        return repr(dict(self))


class States(Mapping):
    """The states of the parameters of an optimizer: a view, whose entries change those of the optimizer."""

    def __init__(self, optimizer):
        self._optimizer = optimizer

    def __getitem__(self, param):
        if not isinstance(param, RawTensor):
            raise KeyError(param)
        return OwnStates(self._optimizer, param)

    def __iter__(self):
        every = (param for group in self._optimizer.get_param_groups() for param in group.get_params())
        return (param for param in every if param in self)

    def __len__(self):
        return sum(1 for _param in self)

    def __contains__(self, param):
        return isinstance(param, RawTensor) and bool(self._optimizer.get_state_names(param))

    def __repr__(self):
        return f'<the states of {len(self)} parameters of {type(self._optimizer).__name__}>'


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
        given = [] if params is None else groups.split(own, params)
        construct(self, properties)
        self._defaults = {'lr': DEFAULT_LR, 'weight_decay': 0.0, **defaults}
        made = [groups.make_group(own, self, group, self._defaults) for group in given]
        for group in made:
            RawOptimizer.add_param_group(self, group)

    @property
    def defaults(self):
        """What a group has without settings of its own."""
        if not self.get_setting_names():
            return types.MappingProxyType(dict(self.__dict__.get('_defaults', {})))
        names = self.get_setting_names()
        found = {key: groups.shown(self.get_setting_type(key), self.get_default(key)) for key in names}
        return types.MappingProxyType({**found, **groups.FORMS, 'capturable': self.get_capturable()})

    @property
    def state(self):
        """The states of the parameters: state[param]['exp_avg']."""
        return States(self)

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

    def state_dict(self, *, nested=False):
        """Returns names and tensors, for a safetensors file, or PyTorch's form: nested dictionaries, in which settings
        are Python's values."""
        table = state.pairs(self.state_lists())
        return exchange.nest(self, table) if convert_bool(nested) else table

    def load_state_dict(self, table):
        """Takes a state dict in either form."""
        if exchange.is_nested(table):
            table = exchange.flatten(self, table)
        self.load_state_lists(*state.lists('load_state_dict', 'state', table))

    def zero_grad(self, set_to_none=True):
        RawOptimizer.zero_grad(self, convert_bool(set_to_none))

    def add_param_group(self, group):
        """Adds a group, or PyTorch's dictionary: {'params': …, 'lr': …}."""
        if isinstance(group, Mapping):
            given = groups.split('add_param_group()', [group])[0]
            group = groups.make_group('add_param_group()', self, given, self.__dict__.get('_defaults', {}))
        RawOptimizer.add_param_group(self, group)

    def _set_learning_rate(self, value):
        (rate,) = groups.numbers(type(self).__name__, 'lr', GObject.TYPE_DOUBLE, value)
        RawGroup.new(list_model([]), rate, 0.0)  # raises for what no group may have
        self.set_learning_rate(rate)

    lr = learning_rate = property(lambda self: self.get_learning_rate(), _set_learning_rate)


def _setting(arg):
    """The attribute for an argument of several numbers: that of the first group, set in all of them."""
    name = arg['name']

    def get(self):
        return groups.shown(self.get_setting_type(name), [self.get_property(one) for one in arg['names']])

    def set_(self, value):
        self.set_setting(name, groups.numbers(type(self).__name__, name, self.get_setting_type(name), value))

    return property(get, set_)


def _optimizer(row):
    """Creates the class of a row."""
    raw = getattr(GTorch, row['name'])

    def init(self, params, *args, **options):
        own = type(self).__name__
        values = bind(own, row, 'params', (params, *args), options)
        _check_forms(own, row, values)
        given = groups.split(own, values.pop('params'))
        rates = {key: values.pop(key) for key in ('lr', 'weight_decay') if key in values}
        construct(self, to_properties(own, row, values))
        for key, value in rates.items():
            self.set_setting(key, groups.numbers(own, key, GObject.TYPE_DOUBLE, value))
        for made in [groups.make_group(own, self, group, {}) for group in given]:
            RawOptimizer.add_param_group(self, made)
        self.check()

    members = {'__module__': OVERRIDES, '__init__': init, '__doc__': raw.__doc__}
    members.update({arg['name']: _setting(arg) for arg in row['args'] if len(arg['names']) > 1})
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
    export('ParamGroup', override(groups.ParamGroup))
    optim = {'Optimizer': export('Optimizer', override(Optimizer))}
    for row in OPTIMIZERS:
        optim[row['name']] = export(row['name'], _optimizer(row))
    optim['lr_scheduler'] = scheduler.install(export, submodule)
    optim['swa_utils'] = scheduler.install_swa(export, submodule)
    submodule('optim', 'Optimizers.', {**optim, '__getattr__': _missing})
