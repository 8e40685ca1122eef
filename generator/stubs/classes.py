# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Classes as stubs: their methods, properties and constants."""

import functools
import inspect
import keyword

from gi.repository import GObject

from generator.stubs.functions import is_info
from generator.stubs.types import ANY, ATTRIBUTES, TENSOR, of_gtype

OPERATORS = (
    'add', 'sub', 'mul', 'truediv', 'floordiv', 'mod', 'pow', 'matmul', 'and', 'or', 'xor', 'lshift', 'rshift',
)  # fmt: skip
UNARY = ('neg', 'pos', 'abs', 'invert')
COMPARISONS = ('lt', 'le', 'gt', 'ge', 'eq', 'ne')
SHOWN = ('__init__', '__new__', '__call__', '__enter__', '__exit__', '__len__', '__iter__', '__getitem__',
         '__setitem__', '__delitem__', '__contains__', '__bool__', '__int__', '__float__', '__complex__', '__index__',
         '__hash__', '__format__', '__await__')
PYTHON = ('builtins', 'enum', 'abc', 'contextlib', 'collections', 'typing')
GOBJECT = ('gi.repository.GObject', 'gi.overrides.GObject', 'gi.types')


class Classes:
    def __init__(self, package, functions):
        self.package, self.functions = package, functions

    def chain(self, cls):
        """The classes whose members the stub of @cls has: those before its first base that has a stub."""
        found = []
        for base in cls.__mro__:
            if base is not cls and (base in self.package.homes or self.is_foreign(base)):
                continue
            if any(issubclass(other, base) for other in self.bases(cls)):
                continue
            found.append(base)
        return found

    @staticmethod
    def is_foreign(base):
        home = base.__module__
        return base is object or home.startswith(('gi._', 'gobject')) or home.split('.')[0] in PYTHON or home in GOBJECT

    @functools.cache
    def bases(self, cls):
        found = []
        for base in cls.__mro__[1:]:
            if base in self.package.homes and not any(issubclass(one, base) for one in found):
                found.append(base)
        return tuple(found)

    def head(self, cls):
        names = [self.package.name_of(base) for base in self.bases(cls)]
        if not names:
            is_error = issubclass(cls, BaseException)
            names = ['_b.Exception'] if is_error else ['~_Object'] if issubclass(cls, GObject.Object) else []
            names = ['_b.int'] if issubclass(cls, int) else names
        return f'({", ".join(names)})' if names else ''

    def members(self, cls):
        found = {}
        for base in reversed(self.chain(cls)):
            found.update(vars(base))
        return found

    def text(self, key, cls):
        """The lines of a class."""
        lines, members = [], self.members(cls)
        is_module = any(base.__name__ == 'Module' for base in cls.__mro__)
        for name in sorted(members):
            is_hidden = name.startswith('_') and name not in SHOWN
            if is_hidden or keyword.iskeyword(name) or (key, name) == ('Module', 'forward'):
                continue
            lines += self.member(cls, name, members[name], is_module)
        lines += self.properties(cls, members)
        lines += self.special(key, cls, members)
        return ['', f'class {key}{self.head(cls)}:', *(lines or ['    ...']), '']

    def member(self, cls, name, value, is_module):
        if name in ('__init__', '__new__'):
            others = '__new__' in self.members(cls)
            return [] if issubclass(cls, BaseException) or (name == '__init__' and others) else self.initializer(cls)
        if isinstance(value, (staticmethod, classmethod)):
            return self.static(name, value)
        if name == '__hash__' and value is None:
            return []
        if type(value).__name__ == 'VFuncInfo':  # for derived classes
            return [f'    def {name}(self, *args: {ANY}) -> {ANY}: ...']
        if is_info(value):
            is_static = not value.is_method()
            lines = self.functions.function(name, value, '    ', not is_static, is_module)
            return ['    @_b.staticmethod', *lines] if is_static else lines
        if inspect.isroutine(value):
            return self.functions.function(name, value, '    ', True, is_module)
        if isinstance(value, property) or inspect.isdatadescriptor(value):
            return [f'    {name}: {ATTRIBUTES.get(name, ANY)}']
        if isinstance(value, cls):
            return [f'    {name}: {self.package.name_of(cls)}']
        if isinstance(value, type) or name.startswith('__'):
            return []
        return [f'    {name}: {ANY}']

    def static(self, name, value):
        function = value.__func__
        lines = self.functions.function(name, function, '    ', isinstance(value, classmethod))
        lines[0] = lines[0].replace('(self', '(cls', 1)
        return [f'    @_b.{type(value).__name__}', *lines]

    def initializer(self, cls):
        signature = self.functions.signature(cls)
        if signature is None:
            return [f'    def __init__(self, *args: {ANY}, **kwargs: {ANY}) -> None: ...']
        parts = self.functions.parameters(f'class {cls.__name__}', None, signature, False)
        return [f'    def __init__({", ".join(["self", *parts])}) -> None: ...']

    def properties(self, cls, members):
        """The properties of GObject that are none of Python's."""
        if not issubclass(cls, GObject.Object):
            return []
        inherited = {spec.name for base in self.bases(cls) for spec in GObject.list_properties(base)}
        own = [spec for spec in GObject.list_properties(cls) if spec.name not in inherited]
        names = {spec.name.replace('-', '_'): spec for spec in own}
        return [f'    {name}: {of_gtype(spec)}' for name, spec in sorted(names.items())
                if name not in members and not keyword.iskeyword(name) and not hasattr(object, name)]

    def special(self, key, cls, members):
        if key == 'Tensor':
            return self.operators()
        if key == 'Module':
            return [f'    forward: _t.Callable[..., {ANY}]',
                    f'    def __getattr__(self, name: _b.str) -> {ANY}: ...',
                    f'    def __setattr__(self, name: _b.str, value: {ANY}) -> None: ...']
        if key == 'DType':
            return []
        forward = members.get('forward')
        if forward is None or not issubclass(cls, tuple(c for c in self.package.homes if c.__name__ == 'Module')):
            return []
        signature = self.functions.signature(forward)
        names = [] if signature is None else [*signature.parameters.values()][1:]
        if len(names) == 1 and names[0].kind is names[0].POSITIONAL_OR_KEYWORD and '__call__' not in members:
            return [f'    def __call__(self, {names[0].name}: {TENSOR}) -> {TENSOR}: ...']
        return []

    @staticmethod
    def operators():
        other, lines = f'{TENSOR} | _b.float | _b.complex', []
        for name in OPERATORS:
            for side in ('', 'r', 'i'):
                lines.append(f'    def __{side}{name}__(self, other: {other}) -> {TENSOR}: ...')
        lines += [f'    def __{name}__(self) -> {TENSOR}: ...' for name in UNARY if name != 'pos']
        for name in COMPARISONS:
            kind = ANY if name in ('eq', 'ne') else other
            lines.append(f'    def __{name}__(self, other: {kind}) -> {TENSOR}: ...')
        return lines
