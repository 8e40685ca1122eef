# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Optimizers: GTorch.optim."""

import functools
import types
from collections.abc import Mapping

from gi.overrides import override
from gi.repository import GLib, GObject

from gi.overrides import _gtorch_exchange as exchange
from gi.overrides import _gtorch_groups as groups
from gi.overrides import _gtorch_own_states as own_states
from gi.overrides import _gtorch_scheduler as scheduler
from gi.overrides import _gtorch_state as state
from gi.overrides import _gtorch_step_hooks as step_hooks
from gi.overrides._gtorch_convert import GTorch, RawTensor, convert_bool, convert_double
from gi.overrides._gtorch_errors import guard_vfuncs, own_vfunc, passes, restoring
from gi.overrides._gtorch_hooks import is_profiling
from gi.overrides._gtorch_layers import construct
from gi.overrides._gtorch_properties import make_later, show_later
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


def _step_by_closure(self, closure, needs_loss=True):
    """Makes a step, which calls @closure, several times in some optimizers: it computes the loss and its gradients.
    Returns the first loss."""
    _check_closure(closure)
    losses = []

    def call(*_data):
        loss = closure()
        if not losses:
            losses.append(loss)
        if isinstance(loss, RawTensor):
            return loss
        value = convert_double(loss) if needs_loss else 0.0
        return RawTensor.new_from_doubles([value], [], GTorch.DType.FLOAT64, None)

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
        given = [] if params is None else groups.split(own, params)
        construct(self, properties)
        self._gt_defaults = {'lr': DEFAULT_LR, 'weight_decay': 0.0, **defaults}
        groups.add(own, self, given, self._gt_defaults)

    @property
    def defaults(self):
        """What a group has without settings of its own."""
        raw = RawOptimizer
        names = raw.get_setting_names(self)
        if not names:
            return types.MappingProxyType(dict(self.__dict__.get('_gt_defaults', {})))
        found = {key: groups.shown(raw.get_setting_type(self, key), raw.get_default(self, key)) for key in names}
        return types.MappingProxyType({**found, **groups.FORMS, 'capturable': RawOptimizer.get_capturable(self)})

    @property
    def state(self):
        """The states of the parameters: state[param]['exp_avg']."""
        return own_states.States(self)

    @step_hooks.stepping
    def step(self, closure=None):
        """Updates the parameters. A @closure computes the loss, which is returned, and its gradients."""
        if closure is None:
            RawOptimizer.step(self)
            return None
        _check_closure(closure)
        if is_profiling():
            return _step_by_closure(self, closure, needs_loss=False)  # C's range is around both
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
        if callable(vars(cls).get('step')):
            cls.step = step_hooks.stepping(vars(cls)['step'], is_own=True)
        function = own_vfunc(cls, 'step_param')
        if function is not None:
            cls.do_step_param = _succeeds(function)
            guard_vfuncs(cls, ('step_param',))

    def state_dict(self, *, nested=True):
        """Returns PyTorch's form: nested dictionaries, in which settings are Python's values; or, if not @nested, names
        and tensors, for a safetensors file."""
        step_hooks.run(self, 'state_dict_pre')
        table = state.pairs(RawOptimizer.state_lists(self))
        table = exchange.nest(self, table) if convert_bool(nested) else exchange.with_numbers(self, table)
        return step_hooks.run(self, 'state_dict_post', table)

    def load_state_dict(self, state_dict):
        """Takes a state dict in either form."""
        table, finish = step_hooks.run(self, 'load_state_dict_pre', state_dict), None
        if exchange.is_nested(table):
            table, finish = exchange.flatten(self, table)
        RawOptimizer.load_state_lists(self, *state.lists('load_state_dict', 'state', table))
        exchange.finish(self, finish)
        step_hooks.run(self, 'load_state_dict_post')

    def __repr__(self):
        return step_hooks.text(self)

    def zero_grad(self, set_to_none=True):
        RawOptimizer.zero_grad(self, convert_bool(set_to_none))

    def add_param_group(self, group):
        """Adds a group, or PyTorch's dictionary: {'params': …, 'lr': …}."""
        if isinstance(group, Mapping):
            given = groups.split('add_param_group()', [group])
            groups.add('add_param_group()', self, given, self.__dict__.get('_gt_defaults', {}))
            return
        groups.put(self, group)

    def _set_learning_rate(self, value):
        (rate,) = groups.numbers(type(self).__name__, 'lr', GObject.TYPE_DOUBLE, value)
        RawGroup.new(list_model([]), rate, 0.0)  # raises for what no group may have
        RawOptimizer.set_learning_rate(self, rate)

    lr = learning_rate = property(lambda self: RawOptimizer.get_learning_rate(self), _set_learning_rate)


for _name, _function in step_hooks.REGISTER.items():
    setattr(Optimizer, _name, _function)


def _setting(arg):
    """The attribute for an argument of several numbers: that of the first group, set in all of them."""
    name = arg['name']

    def get(self):
        values = [GObject.Object.get_property(self, one) for one in arg['names']]
        return groups.shown(RawOptimizer.get_setting_type(self, name), values)

    def set_(self, value):
        kind = RawOptimizer.get_setting_type(self, name)
        RawOptimizer.set_setting(self, name, groups.numbers(type(self).__name__, name, kind, value))

    return property(get, set_)


def _optimizer(row, raw):
    """Creates the class of a row from that of C."""

    def init(self, params, *args, **options):
        own = type(self).__name__
        values = bind(own, row, 'params', (params, *args), options)
        _check_forms(own, row, values)
        given = groups.split(own, values.pop('params'))
        rates = {key: values.pop(key) for key in ('lr', 'weight_decay') if key in values}
        construct(self, to_properties(own, row, values))
        for key, value in rates.items():
            RawOptimizer.set_setting(self, key, groups.numbers(own, key, GObject.TYPE_DOUBLE, value))
        groups.add(own, self, given, {})
        RawOptimizer.check(self)

    init.__text_signature__ = row['signature']
    members = {'__module__': OVERRIDES, '__init__': init, '__doc__': raw.__doc__}
    members.update({arg['name']: _setting(arg) for arg in row['args'] if len(arg['names']) > 1})
    if row['name'] == 'LBFGS':
        members['step'] = step_hooks.stepping(_step_by_closure)
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
    rows = {row['name']: row for row in OPTIMIZERS}
    make_later(rows, lambda name, raw: _optimizer(rows[name], raw))
    optim['optimizer'] = submodule('optim.optimizer', 'The base class.', {'Optimizer': optim['Optimizer']})
    optim['lr_scheduler'] = scheduler.install(export, submodule)
    optim['swa_utils'] = scheduler.install_swa(export, submodule)
    show_later(submodule('optim', 'Optimizers.', optim), rows, GTorch, _missing)
