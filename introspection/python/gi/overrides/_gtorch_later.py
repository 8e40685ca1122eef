# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is made when a program first names it, so that the import takes little time.

The import itself makes the class of tensors, the dtypes, and a table of the operations, of which each becomes a
function when it is first used. All other names, and the submodules, are made together, by what begin() was given, when
the first of them is needed: by a program, by an import statement, by dir() and help(), or by PyGObject, which looks the
class of an object up here. So nothing of them is seen before they are there, and no list says what there will be."""

import importlib
import importlib.machinery
import sys
import threading

from gi.overrides import OverridesProxyModule
from gi.overrides import _gtorch_absent as absent

NAME = 'gi.repository.GTorch'
PARTS = 'gi.overrides._gtorch_'
FUNCTIONS = {}  # by name: the module that has the function, or what makes it of its name


class _Rest:
    lock = threading.RLock()  # the thread that has it finds what is there so far
    make = None  # None before there is a rest, and after it was made
    is_running = False
    listeners = []


def begin(make):
    """From now on names that are not there need @make."""
    _Rest.make = make


def complete():
    """Makes everything. Other threads wait until it is done."""
    if _Rest.make is None:
        return
    with _Rest.lock:
        if _Rest.make is None or _Rest.is_running:
            return
        _Rest.is_running = True
        try:
            _Rest.make()
            _Rest.make = None
        finally:
            _Rest.is_running = False
        for listener in _Rest.listeners:
            listener()


def when_complete(listener):
    """Calls @listener then, or now."""
    with _Rest.lock:
        _Rest.listeners.append(listener)
        if _Rest.make is None:
            listener()


def find(namespace, name):
    """The attribute of the namespace, which has it from now on."""
    if name in FUNCTIONS:
        made = FUNCTIONS[name]
        made = getattr(importlib.import_module(made), name) if isinstance(made, str) else made(name)
        setattr(namespace, name, made)
        return made
    if _Rest.make is not None and (name == '__version__' or not name.startswith('__')):
        complete()
        if name in vars(namespace):
            return vars(namespace)[name]
    try:
        return getattr(namespace._introspection_module, name)
    except AttributeError as error:
        raise AttributeError(f'{error}{absent.text("", name)}', name=name) from None


def names(namespace):
    """What dir() shows of the namespace."""
    complete()
    return OverridesProxyModule.__dir__(namespace)


class Finder:
    """Finds the submodules for import statements; it comes before the finder of files, which takes folders of stubs for
    modules. Those in @besides are files."""

    def __init__(self, prefix, besides=()):
        self._prefix, self._besides = f'{prefix}.', besides
        sys.meta_path.insert(0, self)

    def find_spec(self, name, _path=None, _target=None):
        if not name.startswith(self._prefix):
            if name.startswith(PARTS):  # of which some need others
                complete()
            return None
        inner = name[len(self._prefix) :]
        if inner.partition('.')[0] in self._besides:
            return None
        complete()
        module = sys.modules.get(f'{NAME}.{inner}')
        return None if module is None else importlib.machinery.ModuleSpec(name, _Loader(module))


class _Loader:
    def __init__(self, module):
        self._module = module

    def create_module(self, _spec):
        return self._module

    def exec_module(self, module):
        """It is there already, and no file of its own."""
        module.__spec__ = module.__loader__ = None


class Watcher:
    """Calls a function once a module of Python's, which programs may do without, has been imported."""

    def __init__(self, name, call):
        self._name, self._call = name, call
        if name in sys.modules:
            call()
        else:
            sys.meta_path.insert(0, self)

    def find_spec(self, name, path=None, target=None):
        if name != self._name:
            return None
        others = [finder for finder in sys.meta_path if finder is not self]
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in others)), None)
        if spec is not None:
            spec.loader = _Telling(spec.loader, self._call)
        return spec


class _Telling:
    """A loader of another's module, which calls a function after that."""

    def __init__(self, loader, call):
        self._loader, self._call = loader, call

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def exec_module(self, module):
        self._loader.exec_module(module)
        self._call()
