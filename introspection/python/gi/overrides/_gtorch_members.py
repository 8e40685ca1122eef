# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The members of modules, in PyTorch's forms: iterators over parameters, buffers and modules, their names, and their
text."""

from collections import namedtuple
from collections.abc import MutableMapping

from gi.repository import GLib

from gi.overrides._gtorch_convert import DType, GTorch, convert_bool, cuda_device
from gi.overrides._gtorch_exceptions import lacking
from gi.overrides._gtorch_properties import OWN

RawModule = GTorch.Module


class IncompatibleKeys(namedtuple('_IncompatibleKeys', ('missing_keys', 'unexpected_keys'))):
    """The names that a state lacks, and those that the module lacks."""

    __slots__ = ()

    def __repr__(self):
        return f'_{super().__repr__()}' if any(self) else '<All keys matched successfully>'

    __str__ = __repr__


class MemberView(MutableMapping):
    """The own parameters, buffers or modules of a module by name: a view, whose changes are those of the module."""

    def __init__(self, module, kind):
        self._module, self._kind = module, kind

    def _names(self):
        module = self._module
        names = RawModule.get_member_names(module, getattr(GTorch.MemberKind, self._kind.upper()))
        absent = [name for name, value in module.__dict__.items() if value is None and name not in names]
        return [*names, *(name for name in absent if module._gt_own_kind(name) == self._kind)]

    def __getitem__(self, name):
        if name not in self._names():
            raise KeyError(name)
        return getattr(self._module, name)

    def __setitem__(self, name, value):
        getattr(self._module, f'register_{self._kind}')(name, value)

    def __delitem__(self, name):
        if name not in self._names():
            raise KeyError(name)
        unregister(self._module, name)

    def __iter__(self):
        return iter(self._names())

    def __len__(self):
        return len(self._names())

    def __repr__(self):
        return repr(dict(self))


def _prefix(name, prefix):
    if not isinstance(prefix, str):
        raise TypeError(f'{name}(): prefix must be a text, not {prefix!r}')
    return prefix


def _join(prefix, name):
    return f'{prefix}.{name}' if prefix else name


def unregister(module, name):
    """Removes a member."""
    RawModule.unregister(module, name)
    module.__dict__.pop(name, None)


def set_buffer(module, name, buffer):
    """Replaces a buffer."""
    RawModule.set_buffer(module, name, buffer)
    module._gt_show(name, buffer)


def children_of(module):
    """The names and direct children: other threads may change them meanwhile."""
    pairs = zip(RawModule.get_child_names(module), list(RawModule.get_children(module)))
    return [(name, child) for name, child in pairs if child is not None]


def _walk(module, seen, prefix, once):
    if module in seen:
        return
    if once:
        seen.add(module)
    yield prefix, module
    for name, child in children_of(module):
        yield from child.named_modules(seen, _join(prefix, name), once)


opened = {}  # weak references, by ids, to what has `parts`: modules, names and parameters in whose places others are


def _stood_for():
    """The parameters in whose places other tensors are at present."""
    states = [one() for one in list(opened.values())]
    return {(module, name): param for one in states if one is not None for module, name, param in one.parts}


def _named(module, kind, prefix, recurse, once):
    """Yields parameters or buffers with their names."""
    seen = set()
    parts = _stood_for() if opened and kind == 'parameter' else {}
    modules = module.named_modules(None, prefix, once) if recurse else [(prefix, module)]
    for path, one in modules:
        for name in RawModule.get_member_names(one, getattr(GTorch.MemberKind, kind.upper())):
            member = parts[one, name] if (one, name) in parts else getattr(RawModule, f'get_{kind}')(one, name)
            if member is None or member in seen:
                continue
            if once:
                seen.add(member)
            yield _join(path, name), member


class Members:
    """The part of Module that goes through its members. A member that is there several times comes once, unless
    remove_duplicate is False."""

    _parameters = property(lambda self: MemberView(self, 'parameter'))
    _buffers = property(lambda self: MemberView(self, 'buffer'))
    _modules = property(lambda self: MemberView(self, 'module'))

    def parameters(self, recurse=True):
        """An iterator over the parameters, those of children too."""
        return iter(list(RawModule.get_parameters(self, convert_bool(recurse))))

    def named_parameters(self, prefix='', recurse=True, remove_duplicate=True):
        """An iterator over names and parameters."""
        prefix = _prefix('named_parameters', prefix)
        return iter(list(_named(self, 'parameter', prefix, convert_bool(recurse), convert_bool(remove_duplicate))))

    def buffers(self, recurse=True):
        """An iterator over the buffers, those of children too."""
        return iter(list(RawModule.get_buffers(self, convert_bool(recurse))))

    def named_buffers(self, prefix='', recurse=True, remove_duplicate=True):
        """An iterator over names and buffers."""
        prefix = _prefix('named_buffers', prefix)
        return iter(list(_named(self, 'buffer', prefix, convert_bool(recurse), convert_bool(remove_duplicate))))

    def children(self):
        """An iterator over the direct children."""
        return iter([child for _name, child in self.named_children()])

    def named_children(self):
        """An iterator over the names and the direct children."""
        seen = {}
        for name, child in children_of(self):
            seen.setdefault(child, name)
        return iter([(name, child) for child, name in seen.items()])

    def modules(self):
        """An iterator over this module and all inside it."""
        return iter([module for _name, module in self.named_modules()])

    def named_modules(self, memo=None, prefix='', remove_duplicate=True):
        """An iterator over names and modules, first this one; those in the set @memo are left out."""
        if memo is not None and not isinstance(memo, set):
            raise TypeError(f'named_modules(): memo must be a set or None, not {memo!r}')
        prefix, once = _prefix('named_modules', prefix), convert_bool(remove_duplicate)
        return iter(list(_walk(self, set() if memo is None else memo, prefix, once)))

    def get_submodule(self, target):
        """The module of a path such as 'layers.0', which is this one if it is empty."""
        if target == '':
            return self
        try:
            return RawModule.get_module(self, target)
        except GLib.Error as error:
            raise AttributeError(error.message) from None

    def get_parameter(self, target):
        """The parameter of a path such as '0.weight'."""
        with lacking(AttributeError):
            return RawModule.get_parameter(self, target)

    def get_buffer(self, target):
        """The buffer of a path such as '0.running_mean'."""
        with lacking(AttributeError):
            return RawModule.get_buffer(self, target)

    def _get_name(self):
        return type(self).__name__

    def set_submodule(self, target, module, strict=False):
        """Replaces the module of a path, or adds one, which @strict forbids."""
        path, _dot, name = target.rpartition('.')
        if not name:
            raise ValueError(f'set_submodule(): {target!r} is no path of a module')
        parent = self.get_submodule(path)
        kind = RawModule.get_member_kind(parent, name)
        if kind != GTorch.MemberKind.MODULE and (convert_bool(strict) or kind != GTorch.MemberKind.NONE):
            raise AttributeError(f'{type(parent).__name__} has no module {name!r}')
        parent.register_module(name, module)

    # --- places and dtypes ---

    def cpu(self):
        """Moves it to the CPU."""
        return self.to('cpu')

    def cuda(self, device=None):
        """Moves it to the current GPU, or to another one."""
        return self.to(cuda_device(device))

    def type(self, dst_type):
        """Converts parameters and buffers to a dtype."""
        return self.to(dtype=dst_type)

    def float(self):
        """Converts parameters and buffers to float32."""
        return self.to(DType.FLOAT32)

    def double(self):
        """Converts parameters and buffers to float64."""
        return self.to(DType.FLOAT64)

    def half(self):
        """Converts parameters and buffers to float16."""
        return self.to(DType.FLOAT16)

    def bfloat16(self):
        """Converts parameters and buffers to bfloat16."""
        return self.to(DType.BFLOAT16)

    def share_memory(self):
        """Moves parameters and buffers on the CPU to memory that other processes can have, too. Returns the module."""
        for tensor in [*self.parameters(), *self.buffers()]:
            tensor.share_memory_()
        return self

    # --- the text ---

    def __repr__(self):
        extra = (self.extra_repr() or '').replace('\0', '\\x00')
        lines = extra.split('\n') if extra else []
        children = [f'({name}): {child!r}' for name, child in children_of(self)]
        name = type(self).__name__
        if name.startswith('Lazy') and type(self).__module__ in OWN:  # C tells by which name it goes at present
            name = RawModule.to_string(self).partition('(')[0]
        if len(lines) < 2 and not children:
            return f'{name}({extra})'
        inside = '\n'.join([*lines, *children]).replace('\n', '\n  ')
        return f'{name}(\n  {inside}\n)'


def _check_assigned(module, table, names, strict):
    own, where = dict(zip(*reversed(RawModule.state_lists(module)))), f'{type(module).__name__}: load_state_dict'
    if strict and any(names):
        parts = [f'{what}: {", ".join(some)}' for what, some in zip(('missing', 'unexpected'), names) if some]
        raise GLib.Error.new_literal(GTorch.error_quark(), f'{where}: {"; ".join(parts)}', GTorch.Error.NOT_FOUND)
    for name, tensor in table.items():
        if name in own and own[name].shape != tensor.shape:
            shapes = f'shape {list(own[name].shape)} in the module and {list(tensor.shape)} in the table'
            text = f'{where}: {name} has {shapes}'
            raise GLib.Error.new_literal(GTorch.error_quark(), text, GTorch.Error.SHAPE)
    return [name for name in table if name in own]


def assign(module, table, names, strict):
    """Makes the tensors of a state the parameters and buffers of a module, if all of them fit."""
    for path in _check_assigned(module, table, names, strict):
        owner, _dot, name = path.rpartition('.')
        owner, tensor = module.get_submodule(owner), table[path]
        kind = owner._gt_own_kind(name)
        if kind == 'parameter':
            if not isinstance(tensor, GTorch.Parameter):
                tensor = GTorch.Parameter.new(tensor.detach(), RawModule.get_parameter(owner, name).requires_grad)
            owner.register_parameter(name, tensor)
        elif kind == 'buffer':
            set_buffer(owner, name, tensor)
        else:
            owner.set_extra_state(tensor)


def incompatible(module, table):
    """Compares a state with the names of a module's."""
    own = RawModule.state_lists(module)[1]
    known = set(own)
    return IncompatibleKeys([name for name in own if name not in table], [name for name in table if name not in known])
