# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The states of the parameters of an optimizer as dictionaries. C has the tensors; what else the class of a program
stores, such as a number of steps, is kept here as it is."""

from collections.abc import Mapping, MutableMapping

from gi.overrides import _gtorch_state as tables
from gi.overrides._gtorch_convert import GTorch, RawTensor, convert_double

ATTRIBUTE = '_gt_values'  # of the optimizer: what is no tensor, by parameter and name


def values_of(optimizer, param):
    return optimizer.__dict__.get(ATTRIBUTE, {}).get(param, {})


def is_programs(optimizer):
    """Tells whether a program has defined how steps are made, and so what states there are."""
    return not GTorch.Optimizer.get_setting_names(optimizer)


class OwnStates(MutableMapping):
    """The states of a parameter by their names. Those of the library's optimizers are tensors; a number becomes one of
    float64 there."""

    def __init__(self, optimizer, param):
        self._optimizer, self._param = optimizer, param

    def _values(self):
        return values_of(self._optimizer, self._param)

    def __getitem__(self, name):
        values = self._values()
        if name in values:
            return values[name]
        if name not in GTorch.Optimizer.get_state_names(self._optimizer, self._param):
            raise KeyError(name)
        return GTorch.Optimizer.get_state(self._optimizer, self._param, name)

    def __setitem__(self, name, value):
        if not isinstance(name, str):
            raise TypeError(f'the name of a state must be a text, not {name!r}')
        tables.check_text('set_state', 'name', name)
        optimizer, param = self._optimizer, self._param
        if not isinstance(value, RawTensor):
            if is_programs(optimizer):
                GTorch.Optimizer.set_state(optimizer, param, name, None)
                optimizer.__dict__.setdefault(ATTRIBUTE, {}).setdefault(param, {})[name] = value
                return
            value = RawTensor.new_from_doubles([convert_double(value)], [], GTorch.DType.FLOAT64, None)
        self._forget(name)
        GTorch.Optimizer.set_state(optimizer, param, name, value)

    def _forget(self, name):
        values = self._values()
        values.pop(name, None)
        if not values:
            self._optimizer.__dict__.get(ATTRIBUTE, {}).pop(self._param, None)

    def __delitem__(self, name):
        if name not in self:
            raise KeyError(name)
        self._forget(name)
        GTorch.Optimizer.set_state(self._optimizer, self._param, name, None)

    def __iter__(self):
        return iter([*GTorch.Optimizer.get_state_names(self._optimizer, self._param), *self._values()])

    def __len__(self):
        return len(GTorch.Optimizer.get_state_names(self._optimizer, self._param)) + len(self._values())

    def __contains__(self, name):
        return name in self._values() or name in GTorch.Optimizer.get_state_names(self._optimizer, self._param)

    def __repr__(self):
        return repr(dict(self))


class States(MutableMapping):
    """The states of the parameters of an optimizer: a view, whose entries change those of the optimizer."""

    def __init__(self, optimizer):
        self._optimizer = optimizer

    def __getitem__(self, param):
        if not isinstance(param, RawTensor):
            raise KeyError(param)
        return OwnStates(self._optimizer, param)

    def __setitem__(self, param, states):
        if not isinstance(param, RawTensor) or not isinstance(states, Mapping):
            raise TypeError('the states of an optimizer are dictionaries, by parameters')
        entries, given = OwnStates(self._optimizer, param), dict(states)
        entries.clear()
        entries.update(given)

    def __delitem__(self, param):
        if param not in self:
            raise KeyError(param)
        OwnStates(self._optimizer, param).clear()

    def __iter__(self):
        every = [param for group in GTorch.Optimizer.get_param_groups(self._optimizer) for param in group.get_params()]
        return (param for param in every if param in self)

    def __len__(self):
        return sum(1 for _param in self)

    def __contains__(self, param):
        return isinstance(param, RawTensor) and len(OwnStates(self._optimizer, param)) > 0

    def __repr__(self):
        return f'<the states of {len(self)} parameters of {type(self._optimizer).__name__}>'
