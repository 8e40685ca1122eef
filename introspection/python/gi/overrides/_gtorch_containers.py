# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Modules that are lists and dictionaries: of modules, and of parameters."""

from gi.overrides import _gtorch_layers as layers
from gi.overrides._gtorch_convert import GTorch, RawTensor, convert_whole
from gi.overrides._gtorch_members import children_of, unregister

OVERRIDES = 'gi.overrides.GTorch'  # override() finds the namespace through it
RawModule = GTorch.Module
MISSING = object()


def _index(owner, position, n, what, end=0):
    given = convert_whole(position)
    if not -n <= given < n + end:
        raise IndexError(f'{type(owner).__name__}: position {given} is not one of {n} {what}')
    return given + n if given < 0 else given


def _pairs(values):
    """Returns the names and values of a dictionary, or of pairs."""
    return list(values.items() if hasattr(values, 'items') else dict(values).items())


def _key(owner, key):
    if not isinstance(key, str):
        raise TypeError(f'{type(owner).__name__}: a name must be a text, not {key!r}')
    return key


class Row:
    """The part of a list of modules whose names are their positions."""

    def _gt_position(self, position, end=0):
        return _index(self, position, len(self), 'modules', end)

    def _gt_show(self, name, value):
        """Names change with positions: the module of a name is asked for each time."""
        self.__dict__.pop(name, None)
        if not isinstance(value, RawModule) and not name.isdecimal():
            super()._gt_show(name, value)

    def _gt_may_be_member(self, name, value=None):
        return True

    def __len__(self):
        return len(RawModule.get_children(self))

    def __getitem__(self, position):
        if isinstance(position, slice):
            return self._gt_part(children_of(self)[position])
        return RawModule.get_children(self)[self._gt_position(position)]

    def __setitem__(self, position, module):
        if not isinstance(module, RawModule):
            raise TypeError(f'{type(self).__name__} takes modules, not {type(module).__name__}')
        self.register_module(RawModule.get_child_names(self)[self._gt_position(position)], module)

    def __delitem__(self, position):
        found = range(len(self))[position] if isinstance(position, slice) else [self._gt_position(position)]
        for one in sorted(found, reverse=True):
            self._gt_raw.remove(self, one)

    def __iter__(self):
        return iter(list(RawModule.get_children(self)))

    def append(self, module):
        """Appends a module."""
        self._gt_raw.append(self, module)
        return self

    def extend(self, modules):
        """Appends modules."""
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, position, module):
        """Inserts a module before the one at a position."""
        self._gt_raw.insert(self, self._gt_position(position, 1), module)
        return self

    def pop(self, position=-1):
        """Removes a module, and returns it."""
        found = self[position]
        del self[position]
        return found


def _joined(texts):
    """Returns pairs of names and texts, in which equal neighbours are one."""
    found = []
    for name, text in texts:
        if found and found[-1][2] == text:
            found[-1][1] = name
            found[-1][3] += 1
        else:
            found.append([name, name, text, 1])
    return [(f'{a}-{b}', f'{n} x {text}') if n > 1 else (a, text) for a, b, text, n in found]


def _module_list():
    class ModuleList(Row, GTorch.ModuleList):
        """A list of modules: GTorch.nn.ModuleList([a, b])."""

        __module__ = OVERRIDES
        _gt_raw = GTorch.ModuleList

        def __init__(self, modules=None):
            layers.construct(self, {})
            if modules is not None:
                self.extend(modules)

        def _gt_part(self, pairs):
            return type(self)([module for _name, module in pairs])

        def __iadd__(self, modules):
            return self.extend(modules)

        def __add__(self, modules):
            return ModuleList([*self, *modules])

        def __repr__(self):
            texts = _joined([(name, repr(child)) for name, child in children_of(self)])
            inside = '\n'.join(f'({name}): {text}' for name, text in texts).replace('\n', '\n  ')
            return f'{type(self).__name__}(\n  {inside}\n)' if texts else f'{type(self).__name__}()'

    return ModuleList


class Named:
    """The part of a dictionary of modules or parameters."""

    def __init__(self, values=None):
        layers.construct(self, {})
        if values is not None:
            self.update(values)

    def _gt_table(self):
        get, names = getattr(RawModule, f'get_{self._gt_kind}'), RawModule.get_member_names(self, self._gt_member_kind)
        return {name: get(self, name) for name in names}

    def __getitem__(self, key):
        if self._gt_own_kind(_key(self, key)) != self._gt_kind:
            raise KeyError(key)
        return getattr(RawModule, f'get_{self._gt_kind}')(self, key)

    def __setitem__(self, key, value):
        getattr(self, f'register_{self._gt_kind}')(_key(self, key), self._gt_converted(value))

    def __delitem__(self, key):
        if key not in self:
            raise KeyError(key)
        unregister(self, key)

    def __len__(self):
        return len(RawModule.get_member_names(self, self._gt_member_kind))

    def __iter__(self):
        return iter(list(RawModule.get_member_names(self, self._gt_member_kind)))

    def __contains__(self, key):
        return key in RawModule.get_member_names(self, self._gt_member_kind)

    def clear(self):
        """Removes all."""
        for key in self:
            del self[key]

    def pop(self, key):
        """Removes the value of a name, and returns it."""
        value = self[key]
        del self[key]
        return value

    def keys(self):
        """The names, in the order in which they were added."""
        return self._gt_table().keys()

    def values(self):
        """The values, in the order of the names."""
        return self._gt_table().values()

    def items(self):
        """Names and values."""
        return self._gt_table().items()

    def update(self, values):
        """Adds the values of a dictionary, or of pairs of names and values; replaces those of the same names."""
        for key, value in _pairs(values):
            self[key] = value


def _module_dict():
    class ModuleDict(Named, GTorch.ModuleDict):
        """Modules by name: GTorch.nn.ModuleDict({'a': a})."""

        __module__ = OVERRIDES
        _gt_kind, _gt_member_kind = 'module', GTorch.MemberKind.MODULE

        def _gt_converted(self, value):
            if not isinstance(value, RawModule):
                raise TypeError(f'{type(self).__name__} takes modules, not {type(value).__name__}')
            return value

    return ModuleDict


def _parameter(self, value):
    """Returns a value as a parameter."""
    if isinstance(value, GTorch.Parameter):
        return value
    if not isinstance(value, RawTensor):
        raise TypeError(f'{type(self).__name__} takes parameters and tensors, not {type(value).__name__}')
    return GTorch.Parameter.new(value, True)


def _parameter_dict():
    class ParameterDict(Named, GTorch.ParameterDict):
        """Parameters by name: GTorch.nn.ParameterDict({'a': parameter}). A tensor becomes a parameter."""

        __module__ = OVERRIDES
        _gt_kind, _gt_member_kind = 'parameter', GTorch.MemberKind.PARAMETER
        _gt_converted = _parameter
        extra_repr = layers.extra_repr_of(GTorch.ParameterDict)

        def __reversed__(self):
            return reversed(list(self))

        def pop(self, key, default=MISSING):
            """Removes the parameter of a name, and returns it, or @default if there is none."""
            return super().pop(key) if default is MISSING or key in self else default

        def popitem(self):
            """Removes the last parameter, and returns its name and itself."""
            if len(self) == 0:
                raise KeyError(f'{type(self).__name__} is empty')
            key = list(self)[-1]
            return key, self.pop(key)

        def get(self, key, default=None):
            """The parameter of a name, or @default."""
            return self[key] if key in self else default

        def setdefault(self, key, default=None):
            """The parameter of a name, which is added if there is none."""
            if key not in self:
                self[key] = default
            return self[key]

        def fromkeys(self, keys, default=None):
            """A new dictionary, in which the names have the same value."""
            return ParameterDict({key: default for key in keys})

        def copy(self):
            """A new dictionary of the same parameters."""
            return ParameterDict(self)

        def __or__(self, other):
            made = self.copy()
            made.update(other)
            return made

        def __ror__(self, other):
            made = ParameterDict(other)
            made.update(self)
            return made

        def __ior__(self, other):
            self.update(other)
            return self

    return ParameterDict


def _parameter_list():
    class ParameterList(GTorch.ParameterList):
        """A list of parameters: GTorch.nn.ParameterList([a, b]). A tensor becomes a parameter."""

        __module__ = OVERRIDES

        def __init__(self, values=None):
            layers.construct(self, {})
            if values is not None:
                self.extend(values)

        extra_repr = layers.extra_repr_of(GTorch.ParameterList)

        def _gt_names(self):
            return RawModule.get_member_names(self, GTorch.MemberKind.PARAMETER)

        def __len__(self):
            return len(self._gt_names())

        def __iter__(self):
            return iter([RawModule.get_parameter(self, name) for name in self._gt_names()])

        def __getitem__(self, position):
            if isinstance(position, slice):
                return type(self)(list(self)[position])
            name = self._gt_names()[_index(self, position, len(self), 'parameters')]
            return RawModule.get_parameter(self, name)

        def __setitem__(self, position, value):
            name = self._gt_names()[_index(self, position, len(self), 'parameters')]
            self.register_parameter(name, _parameter(self, value))

        def __iadd__(self, values):
            return self.extend(values)

        def append(self, value):
            """Appends a parameter."""
            GTorch.ParameterList.append(self, _parameter(self, value))
            return self

        def extend(self, values):
            """Appends parameters."""
            for value in [_parameter(self, value) for value in values]:
                self.append(value)
            return self

    return ParameterList


def classes():
    """Returns the classes; GTorch.Module must be that of Python already."""
    return [_module_list(), _module_dict(), _parameter_list(), _parameter_dict()]
