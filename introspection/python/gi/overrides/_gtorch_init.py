# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""GTorch.nn.init: functions that fill a tensor with the first values of a parameter, and return it."""

import warnings

from gi.overrides._gtorch_convert import GTorch, RawTensor, convert_double, convert_whole
from gi.overrides._gtorch_bind import REQUIRED, bind

CONVOLUTIONS = tuple(f'conv{kind}{n}d' for n in (1, 2, 3) for kind in ('', '_transpose'))
FAN_MODES = {'fan_in': GTorch.FanMode.IN, 'fan_out': GTorch.FanMode.OUT}


def _nonlinearity(name, value):
    if isinstance(value, GTorch.Nonlinearity):
        return value
    if value in CONVOLUTIONS:
        return GTorch.Nonlinearity.LINEAR
    found = getattr(GTorch.Nonlinearity, value.upper(), None) if isinstance(value, str) else None
    if not isinstance(found, GTorch.Nonlinearity):
        raise ValueError(f'{name}(): there is no nonlinearity {value!r}')
    return found


def _mode(name, value):
    if isinstance(value, GTorch.FanMode):
        return value
    if value not in FAN_MODES:
        raise ValueError(f"{name}(): mode must be 'fan_in' or 'fan_out', not {value!r}")
    return FAN_MODES[value]


def _number(name, value):
    try:
        return convert_double(value)
    except TypeError as error:
        raise TypeError(f'{name}(): {error}') from None


def _generator(name, value):
    if value is not None and not isinstance(value, GTorch.Generator):
        raise TypeError(f'{name}(): generator must be a Generator or None, not {type(value).__name__}')
    return value


def _whole(name, value):
    try:
        return convert_whole(value)
    except TypeError as error:
        raise TypeError(f'{name}(): {error}') from None


CONVERTERS = {'generator': _generator, 'groups': _whole, 'mode': _mode, 'nonlinearity': _nonlinearity}
KAIMING = {'a': 0.0, 'mode': 'fan_in', 'nonlinearity': 'leaky_relu', 'generator': None}
# The arguments after the tensor, with PyTorch's defaults, in the order of the function in C.
FUNCTIONS = {
    'constant': {'val': REQUIRED},
    'dirac': {'groups': 1},
    'eye': {},
    'kaiming_normal': KAIMING,
    'kaiming_uniform': KAIMING,
    'normal': {'mean': 0.0, 'std': 1.0, 'generator': None},
    'ones': {},
    'orthogonal': {'gain': 1.0, 'generator': None},
    'sparse': {'sparsity': REQUIRED, 'std': 0.01, 'generator': None},
    'trunc_normal': {'mean': 0.0, 'std': 1.0, 'a': -2.0, 'b': 2.0, 'generator': None},
    'uniform': {'a': 0.0, 'b': 1.0, 'generator': None},
    'xavier_normal': {'gain': 1.0, 'generator': None},
    'xavier_uniform': {'gain': 1.0, 'generator': None},
    'zeros': {},
}


def _function(name, spec):
    raw, own = getattr(GTorch, f'init_{name}'), f'{name}_'

    def fill(*args, **options):
        values = bind(own, {'tensor': REQUIRED, **spec}, args, options)
        tensor = values.pop('tensor')
        if not isinstance(tensor, RawTensor):
            raise TypeError(f'{own}(): tensor must be a tensor, not {type(tensor).__name__}')
        raw(tensor, *(CONVERTERS.get(key, _number)(own, values[key]) for key in spec))
        return tensor

    fill.__name__ = fill.__qualname__ = own
    fill.__doc__ = raw.__doc__
    given = [key if value is REQUIRED else f'{key}={value!r}' for key, value in spec.items()]
    fill.__text_signature__ = f'({", ".join(("tensor", *given))})'
    return fill


def calculate_gain(nonlinearity, param=None):
    """The factor by which a nonlinearity changes the spread of values; @param is the slope of leaky_relu."""
    kind = _nonlinearity('calculate_gain', nonlinearity)
    return GTorch.init_calculate_gain(kind, 0.01 if param is None else _number('calculate_gain', param))


# The former names, without _ at the end.
FORMER = (
    'constant', 'dirac', 'eye', 'kaiming_normal', 'kaiming_uniform', 'normal', 'orthogonal', 'sparse', 'uniform',
    'xavier_normal', 'xavier_uniform',
)


def former(name, function, space):
    """A function under its former name, which warns."""

    def call(*args, **options):
        warnings.warn(f'{space}.{name} is now {space}.{function.__name__}', FutureWarning, stacklevel=2)
        return function(*args, **options)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f'The former name of {function.__name__}.'
    call.__wrapped__ = function
    return call


def functions():
    """The members of GTorch.nn.init."""
    found = {f'{name}_': _function(name, spec) for name, spec in FUNCTIONS.items()}
    old = {name: former(name, found[f'{name}_'], 'nn.init') for name in FORMER}
    return {**found, **old, 'calculate_gain': calculate_gain}
