# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Groups of parameters, which are PyTorch's dictionaries: their settings as Python's numbers, booleans, texts and
tuples."""

from collections.abc import Mapping

from gi.repository import Gio, GLib, GObject

from gi.overrides._gtorch_convert import GTorch, RawTensor, convert_bool, convert_double, convert_enum, convert_whole
from gi.overrides._gtorch_properties import python_class

OVERRIDES = 'gi.overrides.GTorch'
RawGroup = GTorch.ParamGroup
ALIASES = {'learning_rate': 'lr', 'initial_learning_rate': 'initial_lr'}
MEMBERS = {'lr': 'learning_rate', 'weight_decay': 'weight_decay', 'initial_lr': 'initial_learning_rate'}
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


def _number(kind, value, where):
    """Converts one number of a setting to a double."""
    if kind.is_a(GObject.TYPE_ENUM):
        members = python_class(kind)
        return 0.0 if value is None else float(int(convert_enum(members, value, where)))
    if value is None:
        return float(GTorch.NONE) if kind == GObject.TYPE_INT64 else GTorch.NONE_DOUBLE
    for own, function in ((GObject.TYPE_BOOLEAN, convert_bool), (GObject.TYPE_INT64, convert_whole)):
        if kind == own:
            return float(function(value))
    return float(convert_double(value))


def numbers(name, key, kind, value):
    """Converts a setting to doubles."""
    values = value if isinstance(value, (list, tuple)) else [value]
    try:
        return [_number(kind, one, f'{name}: {key}') for one in values]
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


def _is_missing(error):
    return error.matches(GTorch.error_quark(), GTorch.Error.NOT_FOUND)


# --- groups ---


class ParamGroup(RawGroup):
    """Parameters with their own settings; group['lr'] and group.lr are the same."""

    __module__ = OVERRIDES

    lr = property(
        lambda self: self.learning_rate, lambda self, value: setattr(self, 'learning_rate', value)
    )

    def keys(self):
        return ['params', *self.get_setting_names()]

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
        name = ALIASES.get(key, key)
        if name not in self.keys():
            raise KeyError(key)
        return shown(self.get_setting_type(name), self.get_setting(name))

    def __setitem__(self, key, value):
        name = ALIASES.get(key, key)
        if not isinstance(name, str) or name == 'params':
            raise KeyError(f'{key!r} is no setting of a group of parameters')
        if name in MEMBERS:
            setattr(self, MEMBERS[name], value)
            return
        kind = self.get_setting_type(name)
        kind = GObject.TYPE_DOUBLE if kind == GObject.TYPE_NONE else kind
        try:
            self.set_setting(name, numbers('ParamGroup', name, kind, value))
        except GLib.Error as error:
            if _is_missing(error):
                raise KeyError(f'{key!r} is no setting of a group of parameters') from None
            raise


def _check_form(name, optimizer, key, value):
    if value is not None and not isinstance(value, bool):
        raise TypeError(f'{name}: {key} must be True, False or None, not {value!r}')
    if key == 'differentiable' and value:
        text = f'{name}: {key}=True is not supported: the step is not recorded for gradients'
        raise GLib.Error.new_literal(GTorch.error_quark(), text, GTorch.Error.NOT_SUPPORTED)
    if key == 'capturable' and bool(value) != optimizer.get_capturable():
        text = f'{name}: {key} must be the same for all groups: it is a property of the optimizer'
        raise GLib.Error.new_literal(GTorch.error_quark(), text, GTorch.Error.NOT_SUPPORTED)


def _kind(name, optimizer, key, known):
    """The type of a setting; those of a program's class are the ones that it has defaults for."""
    kind = optimizer.get_setting_type(key)
    if kind != GObject.TYPE_NONE:
        return kind
    if key == 'initial_lr' or (not optimizer.get_setting_names() and (key in known or key in MEMBERS)):
        return GObject.TYPE_DOUBLE
    raise TypeError(f'{name}: {key!r} is no setting of a group')


def make_group(name, optimizer, given, defaults):
    """Creates a group from PyTorch's dictionary; @defaults: what a group of a program's class has without own ones."""
    settings = {ALIASES.get(key, key): value for key, value in {**defaults, **given}.items()}
    params = settings.pop('params')
    if isinstance(params, RawTensor):
        params = [params]
    for key in [key for key in settings if key in FORMS and key not in defaults]:
        _check_form(name, optimizer, key, settings.pop(key))
    kinds = {key: _kind(name, optimizer, key, defaults) for key in settings}
    found = {key: numbers(name, key, kinds[key], value) for key, value in settings.items()}
    rates = [found.pop(key, None) or default_of(optimizer, key) for key in ('lr', 'weight_decay')]
    for key, value in zip(('lr', 'weight_decay'), rates):
        if len(value) != 1:
            raise TypeError(f'{name}: {key} must be one number, not {settings[key]!r}')
    made = RawGroup.new(list_model(params), rates[0][0], rates[1][0])
    for key, value in found.items():
        made.set_setting(key, value)
    return made


def default_of(optimizer, key):
    """The numbers that a group has without a setting of its own."""
    if key in optimizer.get_setting_names():
        return list(optimizer.get_default(key))
    return [optimizer.get_learning_rate()] if key == 'lr' else [0.0]


def split(name, params):
    """Returns the parameters as groups: one, or one for each of PyTorch's dictionaries."""
    if isinstance(params, RawTensor):
        raise TypeError(f'{name}: params must be several parameters, not one tensor: put it into a list')
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
