# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Schedules of the learning rate: GTorch.optim.lr_scheduler."""

from collections.abc import Mapping

from gi.overrides import override

from gi.overrides import _gtorch_exchange as exchange
from gi.overrides import _gtorch_state as state
from gi.overrides._gtorch_convert import GTorch, convert_bool, convert_double
from gi.overrides._gtorch_errors import guard_vfuncs, own_vfunc
from gi.overrides._gtorch_properties import make_later, show_later
from gi.overrides._gtorch_layers import construct
from gi.overrides._gtorch_properties import OWN
from gi.overrides._gtorch_steps import SCHEDULES

OVERRIDES = 'gi.overrides.GTorch'  # override() finds the namespace through it
RawScheduler = GTorch.LRScheduler
LAST_EPOCH = {'name': 'last_epoch', 'required': False, 'default': -1, 'form': None, 'names': ['last_epoch']}


def bind(name, row, first, args, options):
    """Returns the values of a row's arguments by name; @first is the one before them."""
    specs = {first: {'required': True, 'default': None}, **{arg['name']: arg for arg in row['args']}}
    names, n = list(specs), row['positional'] + 1
    if len(args) > n:
        rest = f', {", ".join(names[n:])} by name' if n < len(names) else ''
        raise TypeError(f'{name}() takes {n} arguments by position{rest}; {len(args)} were given')
    values = dict(zip(names, args))
    for key, value in options.items():
        if key not in specs:
            raise TypeError(f'{name}() has no argument {key!r}')
        if key in values:
            raise TypeError(f'{name}() was given {key} twice')
        values[key] = value
    for key, spec in specs.items():
        if key not in values and spec['required']:
            raise TypeError(f'{name}() needs {key}')
        values.setdefault(key, spec['default'])
    return values


def _or_none(arg, value):
    """What the property has for None."""
    return arg['none'] if value is None and 'none' in arg else value


def _spread(name, arg, value):
    """Returns the properties of an argument, which may be several numbers."""
    if len(arg['names']) == 1:
        return {arg['names'][0]: _or_none(arg, value)}
    found = [_or_none(arg, one) for one in value] if isinstance(value, (tuple, list)) else []
    if len(found) != len(arg['names']):
        raise TypeError(f'{name}: {arg["name"]} must be {len(arg["names"])} numbers, not {value!r}')
    return dict(zip(arg['names'], found))


def to_properties(name, row, values):
    """Converts the values of the arguments to those of properties."""
    found = dict(values)
    for arg in row['args']:
        if arg['name'] in found and ('none' in arg or arg['names'] not in ([], [arg['name']])):
            found.update(_spread(name, arg, found.pop(arg['name'])))
    return found


def _attribute(arg):
    def get(self):
        found = tuple(getattr(self, name) for name in arg['names'])
        found = tuple(None if 'none' in arg and one == arg['none'] else one for one in found)
        return found if len(found) > 1 else found[0]

    def set_(self, value):
        former = {}
        try:
            for name, one in _spread(type(self).__name__, arg, value).items():
                former[name] = getattr(self, name)
                setattr(self, name, one)
        except Exception:
            for name, one in list(former.items())[:-1]:
                setattr(self, name, one)
            raise

    return property(get, set_)


def attributes(row):
    """Returns the arguments that are not named like their properties."""
    return {arg['name']: _attribute(arg) for arg in row['args'] if arg['names'] not in ([], [arg['name']])}


def _compute(self, group, base_lr):
    """Returns compute() for a class with PyTorch's get_lr(), which returns the learning rates of all
    groups."""
    groups = list(self.optimizer.get_param_groups())
    found = list(self.get_lr())
    if len(found) != len(groups):
        raise ValueError(f'get_lr() gave {len(found)} learning rates for {len(groups)} groups')
    return convert_double(found[groups.index(group)])


def _returns(function):
    """Wraps compute() for C, which needs to know whether it succeeded, too."""

    def compute(self, group, base_lr):
        return True, convert_double(function(self, group, base_lr))

    return compute


def _own(schedule):
    """The attributes of an object of a program's class, which belong to its state as in PyTorch."""
    if type(schedule).__module__ in OWN:
        return {}
    return {
        name: value for name, value in schedule.__dict__.items()
        if not (name.startswith('_') or callable(value) or isinstance(value, GTorch.Optimizer))
    }


class LRScheduler(RawScheduler):
    """The base class of schedules: get_lr() returns the learning rates of all groups, or compute (group,
    base_lr) that of one."""

    __module__ = OVERRIDES

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        function = own_vfunc(cls, 'compute') or (_compute if 'get_lr' in vars(cls) else None)
        if function is not None:
            cls.do_compute = _returns(function)
            guard_vfuncs(cls, ('compute',))

    def __init__(self, optimizer, last_epoch=-1):
        construct(self, {'optimizer': optimizer, 'last_epoch': last_epoch})
        RawScheduler.initial_step(self)

    def step(self, epoch=None):
        """Advances to the next epoch, or goes to the one that is given, which may have a fraction."""
        if epoch is None:
            RawScheduler.step(self)
        else:
            RawScheduler.step_to(self, convert_double(epoch))

    def get_lr(self):
        """The learning rates that the schedule computes for its epoch."""
        raw = next(cls for cls in type(self).__mro__ if 'do_compute' in vars(cls) or '__info__' in vars(cls))
        if raw is RawScheduler:
            raise NotImplementedError(f'{type(self).__name__}.get_lr(): the class computes no rates')
        groups = zip(self.optimizer.get_param_groups(), self.base_lrs)
        return [raw.do_compute(self, group, base)[-1] for group, base in groups]

    def get_last_lr(self):
        return list(RawScheduler.get_last_lr(self))

    base_lrs = property(lambda self: list(RawScheduler.get_base_lrs(self)))

    def state_dict(self, *, nested=True):
        """Returns PyTorch's form, with Python's values, or, if not @nested, names and tensors, for a safetensors
        file."""
        table = state.pairs(RawScheduler.state_lists(self))
        return {**exchange.nest_schedule(self, table), **_own(self)} if convert_bool(nested) else table

    def load_state_dict(self, state_dict):
        """Takes a state dict in either form."""
        own = {}
        if isinstance(state_dict, Mapping):
            own = {key: state_dict[key] for key in _own(self) if key in state_dict}
            state_dict = {key: value for key, value in state_dict.items() if key not in own}
        table = exchange.flatten_schedule(self, state_dict)
        RawScheduler.load_state_lists(self, *state.lists('load_state_dict', 'state', table))
        for key, value in own.items():
            setattr(self, key, value)


def _schedule(row, raw):
    """Creates the class of a row from that of C."""
    row = {**row, 'args': [*row['args'], LAST_EPOCH], 'positional': row['positional'] + 1}

    def init(self, optimizer, *args, **options):
        name = type(self).__name__
        values = bind(name, row, 'optimizer', (optimizer, *args), options)
        construct(self, to_properties(name, row, values))
        RawScheduler.initial_step(self)

    def compute(self, group, base_lr):
        """The learning rate of a group, for super().compute(group, base_lr)."""
        return raw.do_compute(self, group, base_lr)[-1]

    def get_lr(self):
        """The learning rates of all groups, for super().get_lr()."""
        return [compute(self, group, base) for group, base in zip(self.optimizer.get_param_groups(), self.base_lrs)]

    init.__text_signature__ = row['signature']
    members = {'__module__': OVERRIDES, '__init__': init, '__doc__': raw.__doc__, **attributes(row)}
    made = override(type(raw)(row['name'], (raw,), members))
    made.compute, made.get_lr = compute, get_lr  # a class that is made with these would have its own
    return made


def install(export, submodule):
    members = {'LRScheduler': export('LRScheduler', override(LRScheduler))}
    rows = {row['name']: row for row in SCHEDULES}
    make_later(rows, lambda name, raw: _schedule(rows[name], raw))
    members['_LRScheduler'] = members['LRScheduler']  # a former name
    from gi.overrides import _gtorch_schedules as schedules  # once the base class is overridden

    for cls in schedules.ALL:
        members[cls.__name__] = export(cls.__name__, override(cls))
    module = submodule('optim.lr_scheduler', 'Schedules of the learning rate.', members)
    show_later(module, rows, GTorch)
    return module


def install_swa(export, submodule):
    from gi.overrides import _gtorch_schedules as schedules

    from gi.overrides import _gtorch_averages as averages

    members = {'SWALR': export('SWALR', override(schedules.SWALR)), **averages.install(export)}
    return submodule('optim.swa_utils', 'Averages of weights.', members)
