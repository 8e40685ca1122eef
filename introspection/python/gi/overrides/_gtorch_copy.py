# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Copies and pickles, for the same types as in PyTorch.

Objects that belong to a device's queues (streams, events, graphs, memory) and to one pass (contexts)
cannot be copied: PyGObject and pickle raise TypeError for them. An object is created without its
__init__(), from its properties; then its state is restored. Creating a layer draws its weights, which is
undone here: a copy consumes no random numbers."""

import copy

from gi.repository import GObject

from gi.overrides import _gtorch_hooks as hooks
from gi.overrides import _gtorch_state as tables
from gi.overrides._gtorch_convert import GTorch
from gi.overrides._gtorch_groups import own_of
from gi.overrides._gtorch_parametrize import Computed
from gi.overrides._gtorch_properties import FLAGS, OWN

# In the dictionary of an object, but not part of its state.
PASSING = (hooks.Kept.ATTRIBUTE, '_guards', '_stages_of', '_hooks_of_steps', '_in_step')
KINDS = ('parameter', 'buffer', 'module')


def unpickle():
    from gi.overrides import _gtorch_unpickle  # it needs all of this

    return _gtorch_unpickle


# --- common parts ---


def plain(value):
    """Returns a property's value in a form that can be pickled."""
    if isinstance(value, (GTorch.Size, GTorch.Factors)):
        return tuple(value.get_values())
    return value.value_nick if isinstance(value, GObject.GEnum) and not isinstance(value, GTorch.DType) else value


def properties(owner):
    """Returns the properties that define the object."""
    found = {}
    for spec in GObject.list_properties(type(owner)):
        if spec.flags & FLAGS.READABLE and spec.flags & (FLAGS.WRITABLE | FLAGS.CONSTRUCT_ONLY):
            found[spec.name] = plain(GObject.Object.get_property(owner, spec.name))
    if isinstance(owner, GTorch.Optimizer):
        found.pop('learning-rate')  # the groups contain it
    return found


def named(cls):
    """Returns a class in the form for pickles: the library's by name, since a pickle may be read before
    the library is imported."""
    return cls.__name__ if cls.__module__ in OWN else cls


def attributes(owner, without=()):
    return {k: v for k, v in owner.__dict__.items() if k not in PASSING and k not in without}


def reduce(self, _protocol=4):
    return unpickle().make, (named(type(self)), properties(self)), self._gt_get_copied()


def deep_copy(self, memo):
    function, args, state = self.__reduce_ex__(4)
    made = function(*copy.deepcopy(args, memo))
    memo[id(self)] = made
    made.__setstate__(copy.deepcopy(state, memo))
    return made


def shallow_copy(self):
    function, args, state = self.__reduce_ex__(4)
    made = function(*args)
    made.__setstate__(state)
    return made


def copyable(cls, get, set_, reducer=reduce):
    """Enables copies and pickles of the objects of a class; @get returns the state beside the properties."""
    cls._gt_get_copied, cls.__setstate__ = get, set_
    cls.__reduce_ex__, cls.__copy__, cls.__deepcopy__ = reducer, shallow_copy, deep_copy


def get_attributes(self):
    return {'attributes': attributes(self)}


def set_attributes(self, state):
    self.__dict__.update(state['attributes'])


# --- modules ---


def members(module, kind):
    """Returns the names of a kind in the module itself: those of members, and of those that are None."""
    names = list(GTorch.Module.get_member_names(module, getattr(GTorch.MemberKind, kind.upper())))
    others = [name for name in module.__dict__ if name not in names]
    return names + [name for name in others if name not in PASSING and module._gt_own_kind(name) == kind]


def get_module(self):
    raw = GTorch.Module
    lasting, computed = set(raw.get_state_names(self)), list(raw.get_computed_names(self))
    found = {kind: {name: getattr(self, name, None) for name in members(self, kind) if name not in computed}
             for kind in KINDS}
    every = {name for kind in KINDS for name in found[kind]}
    kept = self.__dict__.get(hooks.Kept.ATTRIBUTE)
    return {
        'members': found,
        'passing': [n for n, b in found['buffer'].items() if b is not None and n not in lasting],
        'shown': [name for name in every if name in self.__dict__],
        'attributes': attributes(self, every),
        'hooks': list(kept.made.values()) if kept else [],
        'training': raw.get_training(self),
        'computed': [(self._gt_own_kind(name), name, raw.describe_computed(self, name)) for name in computed],
    }


def set_module(self, state):
    raw = GTorch.Module
    found = state['members']
    for kind in KINDS:
        for name in members(self, kind):
            if name not in found[kind] and kind != 'module':
                getattr(raw, f'register_{kind}')(self, name, None, *([True] if kind == 'buffer' else []))
    for name, parameter in found['parameter'].items():
        raw.register_parameter(self, name, parameter)
    for name, buffer in found['buffer'].items():
        raw.register_buffer(self, name, buffer, name not in state['passing'])
    for name, module in found['module'].items():
        if module is not None:
            raw.register_module(self, name, module)
    every = {name: value for kind in KINDS for name, value in found[kind].items()}
    self.__dict__.update(state['attributes'], **{name: every[name] for name in state['shown']})
    for made in state['hooks']:
        name, function, data, with_kwargs, always_call = made
        hooks.register_module(name, self, function, data, False, with_kwargs, always_call)
    for kind, name, description in state.get('computed', ()):
        if self._gt_own_kind(name) is None:
            getattr(raw, f'register_{kind}')(self, name, None, *([True] if kind == 'buffer' else []))
        Computed.restore_computed(self, name, description)
    raw.set_training(self, state['training'])


# --- optimizers and scalers ---


def get_optimizer(self):
    raw, groups = GTorch.Optimizer, []
    for group in raw.get_param_groups(self):
        groups.append(reduce_group(group)[1])
    defaults = {name: list(raw.get_default(self, name)) for name in raw.get_setting_names(self)}
    own = {'groups': groups, 'state': tables.pairs(raw.state_lists(self)), 'attributes': attributes(self)}
    return {**own, 'defaults': defaults}


def set_optimizer(self, state):
    raw = GTorch.Optimizer
    for name, values in state['defaults'].items():
        raw.set_setting(self, name, values)
    for group in state['groups']:
        raw.add_param_group(self, unpickle().group(*group))
    raw.load_state_lists(self, *tables.lists('__setstate__', 'state', state['state']))
    set_attributes(self, state)


def reduce_group(self, _protocol=4):
    others = [name for name in self.get_setting_names() if name not in ('lr', 'weight_decay')]
    settings = {name: list(self.get_setting(name)) for name in others}
    return unpickle().group, (list(self.get_params()), self.learning_rate, self.weight_decay, settings, own_of(self))


def deep_copy_group(self, memo):
    made = memo[id(self)] = unpickle().group(*copy.deepcopy(reduce_group(self)[1], memo))
    return made


def get_scaler(self):
    return {'state': tables.pairs(GTorch.GradScaler.state_lists(self)), 'attributes': attributes(self)}


def set_scaler(self, state):
    GTorch.GradScaler.load_state_lists(self, *tables.lists('__setstate__', 'state', state['state']))
    set_attributes(self, state)


# --- the others ---


def reduce_generator(self, _protocol=4):
    device = self.get_device()
    state = self.get_state().get_bytes().get_data()
    return unpickle().generator, (state, None if device is None else device.to_string())


def copy_generator(self, _memo=None):
    return unpickle().generator(*reduce_generator(self)[1])


def refuse(self, *_):
    name = type(self).__name__
    raise TypeError(f"cannot copy or pickle '{name}' object: it belongs to a device; create another {name}")


def get_schedule(self):
    return {'state': tables.pairs(GTorch.LRScheduler.state_lists(self)), 'attributes': attributes(self)}


def set_schedule(self, state):
    GTorch.LRScheduler.load_state_lists(self, *tables.lists('__setstate__', 'state', state['state']))
    set_attributes(self, state)


def install(namespace):
    for name, get, set_ in (
        ('Module', get_module, set_module),
        ('Optimizer', get_optimizer, set_optimizer),
        ('GradScaler', get_scaler, set_scaler),
        ('Function', get_attributes, set_attributes),
        ('LRScheduler', get_schedule, set_schedule),
    ):
        copyable(namespace[name], get, set_)
    group = namespace['ParamGroup']
    group.__reduce_ex__, group.__deepcopy__ = reduce_group, deep_copy_group
    group.__copy__ = lambda self: unpickle().group(*reduce_group(self)[1])
    for name in ('CUDAGraph', 'Event', 'GraphedModule', 'MemoryPool', 'Stream', 'Timer'):
        cls = getattr(GTorch, name)
        cls.__reduce_ex__ = cls.__copy__ = cls.__deepcopy__ = refuse
    GTorch.Generator.__reduce_ex__ = reduce_generator
    GTorch.Generator.__copy__ = GTorch.Generator.__deepcopy__ = copy_generator
