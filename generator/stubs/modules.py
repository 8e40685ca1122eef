# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The modules of the package, as they are found in it."""

import enum
import inspect
import keyword
import sys
import types

from generator.stubs import fill
from generator.stubs.classes import Classes
from generator.stubs.functions import Functions
from generator.stubs.types import ANY

ROOT = 'gtorch'


def public(names):
    return [name for name in sorted(names) if not name.startswith('_') and not keyword.iskeyword(name)]


class Package:
    """The package, and the texts of its stubs."""

    def __init__(self, package, known, outputs):
        self.package, self.types = package, known
        dir(package)  # makes all names and submodules
        self.modules = {name: module for name, module in sys.modules.items() if name.startswith(f'{ROOT}.')}
        self.homes = {}  # the module and the name of each class
        # a module without an output has no stub, which a test tells of
        shown = [name for name in self.modules if self.path(name).split('/')[0] in outputs]
        self.modules = {name: self.modules[name] for name in shown}
        self.functions = Functions(known)
        self.classes = Classes(self, self.functions)
        for name in [ROOT, *sorted(self.modules)]:
            for key, value in self.members(name):
                if isinstance(value, type):
                    self.homes.setdefault(value, (name, key))
        known.names = {key for home, key in self.homes.values() if home == ROOT}

    def members(self, name):
        module = self.package if name == ROOT else self.modules[name]
        names = dir(module)
        return [(key, getattr(module, key)) for key in public(names)]

    def path(self, name):
        """The file of a module: a folder's, if it has others inside."""
        parts = name.split('.')[1:]
        inside = any(other.startswith(f'{name}.') for other in self.modules)
        return '/'.join([*parts, '__init__.pyi']) if inside or not parts else '/'.join(parts) + '.pyi'

    def texts(self):
        return {self.path(name): self.text(name) for name in [ROOT, *self.modules]}

    def text(self, name):
        lines, imports = [], []
        written = f'{name.partition(".")[2]}.pyi.in'
        has_written = (fill.folder / written).exists()  # of classes with type variables, which inspect does not tell
        for key, value in self.members(name):
            if not has_written or isinstance(value, types.ModuleType):
                self.member(name, key, value, lines, imports)
        lines += [fill(written, 'body')] if has_written else self.hidden(name)
        body = '\n'.join(lines).replace('~', '' if name == ROOT else '_g.')
        homes = {home for home, _key in self.homes.values() if home not in (ROOT, name) and f'{home}.' in body}
        imports += [f'import {home}' for home in sorted(homes)]
        body = body if name == ROOT else body.replace(f'{name}.', '')
        module = self.package if name == ROOT else self.modules[name]
        doc = (inspect.getdoc(module) or '').split('\n')[0].replace('"""', '')
        return fill('stubs.pyi.in', 'file', doc=doc, imports=imports, body=body,
                    root=['import gtorch as _g'] if name != ROOT else [],
                    common=[fill('stubs.pyi.in', 'root')] if name == ROOT else [])

    def member(self, name, key, value, lines, imports):
        if isinstance(value, types.ModuleType):
            short = next((other for other, module in self.modules.items() if module is value), None)
            if short is not None:
                outer = short.rpartition('.')[0]
                imports.append(f'from {outer} import {short.rpartition(".")[2]} as {key}')
        elif isinstance(value, type):
            self.of_class(name, key, value, lines, imports)
        elif callable(value) and not isinstance(value, enum.Enum):
            lines += self.functions.function(key, value)
        else:
            lines.append(f'{key}: {self.type_of(value)}')

    def of_class(self, name, key, value, lines, imports):
        home, own = self.homes[value]
        if (home, own) == (name, key):
            lines += self.classes.text(key, value)
        elif home == name:
            lines.append(f'{key} = {own}')
        else:
            imports.append(f'from {home} import {own} as {key}')

    def type_of(self, value):
        """The type of a constant."""
        for kind in type(value).__mro__:
            if kind in self.homes:
                return self.name_of(kind)
            if kind.__module__ == 'builtins' and kind is not object:
                plain = kind in (int, float, str, bool)
                return f'_b.{kind.__name__}' if plain else ANY
        return ANY

    def name_of(self, kind):
        home, own = self.homes[kind]
        return f'~{own}' if home == ROOT else f'{home}.{own}'

    def hidden(self, name):
        """The results of operations that have several."""
        found = []
        for row in self.types.rows.values() if name == ROOT else ():
            if row.outputs:
                parts = [f'    {part}: Tensor' for part in row.outputs]
                found += ['', f'class _{row.name}_result(_t.NamedTuple):', *parts]
        return found
