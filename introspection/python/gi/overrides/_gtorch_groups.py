# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Groups of parameters, which are PyTorch's dictionaries: their settings as Python's numbers, booleans, texts and
tuples."""

from collections.abc import Mapping

from gi.repository import Gio, GLib, GObject

from gi.overrides import _gtorch_exceptions as exceptions
from gi.overrides import _gtorch_state as state
from gi.overrides._gtorch_convert import GTorch, RawTensor, convert_bool, convert_double, convert_enum, convert_whole
from gi.overrides._gtorch_properties import python_class
from gi.overrides._gtorch_steps import OPTIMIZERS

OVERRIDES = 'gi.overrides.GTorch'
RawGroup, RawOptimizer = GTorch.ParamGroup, GTorch.Optimizer
ATTRIBUTE = '_own'  # of a group: what a program has put into it
ALIASES = {'learning_rate': 'lr', 'initial_learning_rate': 'initial_lr'}
MEMBERS = {'lr': 'learning_rate', 'weight_decay': 'weight_decay', 'initial_lr': 'initial_learning_rate'}
# The settings of any of the library's optimizers: a group has those of its own one only.
SETTINGS = {arg['name'] for row in OPTIMIZERS for arg in row['args']} | {'initial_lr'}
# Arguments that say how steps are made, not what they compute.
FORMS = {'foreach': None, 'fused': None, 'differentiable': False, 'capturable': False}


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


# --- values ---


def _number(kind, value, where, may_be_none):
    """Converts one number of a setting to a double; of those that are no whole numbers only Adafactor's eps may be
    None."""
    if kind.is_a(GObject.TYPE_ENUM):
        members = python_class(kind)
        return 0.0 if value is None else float(int(convert_enum(members, value, where)))
    if value is None and kind == GObject.TYPE_INT64:
        return float(GTorch.NONE)
    if value is None and may_be_none:
        return GTorch.NONE_DOUBLE
    if value is None:
        raise TypeError(f'{where} must be a number, not None')
    for own, function in ((GObject.TYPE_BOOLEAN, convert_bool), (GObject.TYPE_INT64, convert_whole)):
        if kind == own:
            return float(function(value, where))
    return float(convert_double(value))


def numbers(name, key, kind, value):
    """Converts a setting to doubles."""
    values = value if isinstance(value, (list, tuple)) else [value]
    try:
        return [_number(kind, one, f'{name}: {key}', key == 'eps' and len(values) > 1) for one in values]
    except TypeError as error:
        text = str(error)
        raise TypeError(text if text.startswith(name) else f'{name}: {key}: {text}') from None


def _shown_number(kind, value):
    if kind.is_a(GObject.TYPE_ENUM):
        nick = python_class(kind)(int(value)).value_nick.replace('-', '_')
        return None if nick == 'none' else nick
    if kind == GObject.TYPE_BOOLEAN:
        return value != 0
    if kind == GObject.TYPE_INT64:
        return None if value == GTorch.NONE else int(value)
    return None if value == GTorch.NONE_DOUBLE else value


def shown(kind, values):
    """Converts the doubles of a setting to Python's values."""
    found = tuple(_shown_number(kind, one) for one in values)
    return found[0] if len(found) == 1 else found


# --- groups ---


class ParamGroup(RawGroup):
    """Parameters with their own settings; group['lr'] and group.lr are the same."""

    __module__ = OVERRIDES

    lr = property(
        lambda self: self.learning_rate, lambda self, value: setattr(self, 'learning_rate', value)
    )

    def keys(self):
        names = self.get_setting_names()
        return ['params', *names, *(key for key in own_of(self) if key not in names)]

    def values(self):
        return [self[key] for key in self.keys()]

    def items(self):
        return [(key, self[key]) for key in self.keys()]

    def get(self, key, default=None):
        return self[key] if key in self else default

    def setdefault(self, key, default=None):
        if key not in self:
            self[key] = default
        return self[key]

    def __contains__(self, key):
        return key in self.keys()

    def __iter__(self):
        return iter(self.keys())

    def __len__(self):
        return len(self.keys())

    def __bool__(self):
        return True

    def __getitem__(self, key):
        if key == 'params':
            return tuple(self.get_params())  # add_param_group() adds further ones
        name, own = ALIASES.get(key, key), own_of(self)
        if name not in self.get_setting_names():
            if name not in own:
                raise KeyError(key)
            return own[name]
        found = self.get_setting(name)
        if name in own and plain_numbers(own[name]) == list(found):
            return own[name]
        return shown(self.get_setting_type(name), found)

    def __setitem__(self, key, value):
        name = ALIASES.get(key, key)
        if not isinstance(name, str) or name == 'params':
            raise KeyError(f'{key!r} is no setting of a group of parameters')
        if name in MEMBERS:
            setattr(self, MEMBERS[name], value)
            return
        kind = self.get_setting_type(name)
        if name in SETTINGS and name not in own_of(self):
            kind = GObject.TYPE_DOUBLE if kind == GObject.TYPE_NONE else kind
            self._set_known(key, name, numbers('ParamGroup', name, kind, value))
            return
        state.check_text('ParamGroup', 'a key', name)
        if name in self.get_setting_names():
            self.set_setting(name, plain_numbers(value) or [])
        keep(self, name, value)

    def _set_known(self, key, name, values):
        try:
            self.set_setting(name, values)
        except GLib.Error as error:
            if error.matches(GTorch.error_quark(), GTorch.Error.NOT_FOUND):
                raise KeyError(f'{key!r} is no setting of this group of parameters') from None
            raise

    def update(self, *given, **named):
        for key, value in dict(*given, **named).items():
            self[key] = value


def own_of(group):
    """What a program has put into a group beside the settings of the class."""
    return group.__dict__.get(ATTRIBUTE, {})


def keep(group, name, value):
    group.__dict__.setdefault(ATTRIBUTE, {})[name] = value


def plain_numbers(value):
    """The numbers of a value that C can have as well, or None."""
    values = value if isinstance(value, (list, tuple)) else [value]
    if not values or not all(isinstance(one, (bool, int, float)) for one in values):
        return None
    try:
        return [float(one) for one in values]
    except OverflowError:
        return None


def _check_form(name, optimizer, key, value):
    if value is not None and not isinstance(value, bool):
        raise TypeError(f'{name}: {key} must be True, False or None, not {value!r}')
    if key == 'differentiable' and value:
        text = f'{name}: {key}=True is not supported: the step is not recorded for gradients'
        raise GLib.Error.new_literal(GTorch.error_quark(), text, GTorch.Error.NOT_SUPPORTED)
    if key == 'capturable' and bool(value) != RawOptimizer.get_capturable(optimizer):
        text = f'{name}: {key} must be the same for all groups: it is a property of the optimizer'
        raise GLib.Error.new_literal(GTorch.error_quark(), text, GTorch.Error.NOT_SUPPORTED)


def _named(name, params):
    """Returns the parameters, and their names if they are given in pairs with them."""
    if isinstance(params, RawTensor):
        return [params], None
    if isinstance(params, (set, frozenset)):
        raise TypeError(f'{name}: params are a set, which has no order: they must be in a list')
    if isinstance(params, Gio.ListModel):
        return params, None
    params = list(params)
    pairs = [one for one in params if isinstance(one, tuple)]
    if not pairs:
        return params, None
    if len(pairs) < len(params):
        n_without = len(params) - len(pairs)
        raise ValueError(f'{name}: {n_without} of {len(params)} parameters have no names: all or none do')
    for one in pairs:
        if len(one) != 2 or not isinstance(one[0], str):
            raise TypeError(f'{name}: params must be parameters, or pairs of a name and a parameter, not {one!r}')
    return [param for _name, param in pairs], [key for key, _param in pairs]


def make_group(name, optimizer, given, defaults):
    """Creates a group from PyTorch's dictionary; @defaults: what a group of a program's class has without own ones.
    What is no setting of any optimizer is kept for the program."""
    settings = {ALIASES.get(key, key): value for key, value in {**defaults, **given}.items()}
    params, names = _named(name, settings.pop('params'))
    if names is not None:
        settings['param_names'] = names
    for key in [key for key in settings if key in FORMS and key not in defaults]:
        _check_form(name, optimizer, key, settings.pop(key))
    found, own, is_programs = {}, {}, not RawOptimizer.get_setting_names(optimizer)
    for key, value in settings.items():
        if not isinstance(key, str):
            raise TypeError(f'{name}: the keys of a group must be texts, not {key!r}')
        kind = RawOptimizer.get_setting_type(optimizer, key)
        if kind != GObject.TYPE_NONE or key == 'initial_lr' or (is_programs and key in MEMBERS):
            kind = GObject.TYPE_DOUBLE if kind == GObject.TYPE_NONE else kind
            found[key] = numbers(name, key, kind, value)
            continue
        if not is_programs and key in SETTINGS:
            raise TypeError(f'{name}: {key!r} is no setting of a group of this optimizer')
        state.check_text(name, 'a group', key)
        own[key] = value
        if is_programs and plain_numbers(value) is not None:
            found[key] = plain_numbers(value)
    rates = [found.pop(key, None) or default_of(optimizer, key) for key in ('lr', 'weight_decay')]
    for key, value in zip(('lr', 'weight_decay'), rates):
        if len(value) != 1:
            raise TypeError(f'{name}: {key} must be one number, not {settings[key]!r}')
    made = RawGroup.new(list_model(params), rates[0][0], rates[1][0])
    for key, value in found.items():
        made.set_setting(key, value)
    for key, value in own.items():
        keep(made, key, value)
    return made


def put(optimizer, group):
    """Adds a group. As in PyTorch, one that is refused for its parameters is a ValueError."""
    try:
        RawOptimizer.add_param_group(optimizer, group)
    except GLib.Error as error:
        if error.matches(GTorch.error_quark(), GTorch.Error.AUTOGRAD):
            raise exceptions.of_kind(ValueError, error) from None
        raise


def add(name, optimizer, given, defaults):
    """Adds PyTorch's dictionaries, once all groups are made."""
    for group in [make_group(name, optimizer, one, defaults) for one in given]:
        put(optimizer, group)


def default_of(optimizer, key):
    """The numbers that a group has without a setting of its own."""
    if key in RawOptimizer.get_setting_names(optimizer):
        return list(RawOptimizer.get_default(optimizer, key))
    return [RawOptimizer.get_learning_rate(optimizer)] if key == 'lr' else [0.0]


def split(name, params):
    """Returns the parameters as groups: one, or one for each of PyTorch's dictionaries."""
    if isinstance(params, RawTensor):
        raise TypeError(f'{name}: params must be several parameters, not one tensor: put it into a list')
    if isinstance(params, (set, frozenset)):
        _named(name, params)
    if isinstance(params, Gio.ListModel):
        return [{'params': params}]
    params = list(params)
    if not params:
        raise ValueError(f'{name}: there are no parameters to optimize')
    if all(isinstance(group, Mapping) for group in params):
        for group in params:
            if 'params' not in group:
                raise TypeError("a group of parameters needs 'params'")
        return params
    return [{'params': params}]
