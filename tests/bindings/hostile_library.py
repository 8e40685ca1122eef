#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every function, method, constructor and property of a library beside GTorch, by the typelib, is given what it cannot
take, one argument at a time: nothing crashes, and what is refused raises an exception that names the function.

Argument: the namespace."""

import inspect
import math
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

SPACE = sys.argv[1]
gi.require_version('GTorch', '1')
gi.require_version(SPACE, '1')
gi.require_version('GTorchPlot', '1')
if SPACE == 'GTorchGtk':
    gi.require_version('Gtk', '4.0')
    from gi.repository import Gtk

    Gtk.init()
import importlib  # noqa: E402

from gi.repository import Gio, GLib, GObject, GTorch, GTorchPlot  # noqa: E402

import tap  # noqa: E402

LIBRARY = importlib.import_module(f'gi.repository.{SPACE}')
nn = GTorch.nn


def trainer():
    net = nn.Linear(2, 1)
    return GTorch.Trainer(net, [(GTorch.ones(4, 2), GTorch.zeros(4, 1))], nn.MSELoss(),
                          GTorch.optim.SGD(net.parameters(), lr=0.1))


FIGURES = []  # whose axes are alive


def axes():
    FIGURES.append(GTorchPlot.Figure())
    return FIGURES[-1].get_axes()


def row():
    return list(LIBRARY.ParameterList(nn.Linear(2, 1)).rows)[0]


# What makes an object of a class. The others need no arguments.
MAKERS = {'Axes': axes, 'Item': GTorchPlot.Line, 'ParameterRow': row}
# Valid arguments by name.
ARGUMENTS = {
    'cancellable': None,
    'color': '#1a5fb4',
    'colormap': 'magma',
    'device': 'cpu',
    'figure': GTorchPlot.Figure(),
    'file': '/proc/nowhere/picture.svg',
    'format': 'svg',
    'item': GTorchPlot.Line(),
    'matrix': GTorch.eye(3),
    'module': nn.Linear(2, 1),
    'pixels': GTorch.rand(3, 4),
    'position': 0.5,
    'ratios': [1, 2],
    'scale': 'log',
    'scheme': 'dark',
    'style': 'points',
    'tensor': GTorch.rand(3, 4),
    'tensors': [GTorch.rand(3)],
    'trainer': trainer(),
    'images': GTorch.rand(3, 4, 5),
    'counts': GTorch.eye(3),
    'weights': GTorch.rand(3, 4),
    'result': Gio.Task.new(None, None, None, None),
    'callback': None,
    'interval': 1000,
    'title': 'a',
    'label': 'a',
    **dict.fromkeys(('row', 'column', 'index', 'bin', 'n_bins', 'n_columns', 'max_points'), 0),
    **dict.fromkeys(('x', 'y', 'low', 'left', 'bottom', 'minimum'), 1.0),
    **dict.fromkeys(('width', 'height', 'resolution', 'high', 'right', 'top', 'maximum'), 50.0),
    **dict.fromkeys(
        ('equal_units', 'fit_range', 'show_grid', 'show_legend', 'show_ticks', 'show_scale', 'show_values'), True
    ),
    'visible': True,
    **dict.fromkeys(('labels', 'titles', 'class_names', 'row_names', 'column_names', 'query_names', 'key_names')),
    'names': None,
}
# Those of functions in which the name has another kind.
OWN = {
    **dict.fromkeys((('add_line', 'x'), ('set_values', 'x'), ('set_values_async', 'x'), ('add_line', 'y'),
                     ('set_values', 'y'), ('set_values_async', 'y'), ('add_histogram', 'values'),
                     ('histogram', 'values'), ('set_values', 'values'), ('set_values_async', 'values')),
                    GTorch.rand(5)),
    ('set_points', 'x'): [1, 2],
    ('set_points', 'y'): [3, 4],
    ('set_counts', 'counts'): [1, 2, 3],
}


class Liar:
    """Is true, a number, a text and a list that it is not."""

    __len__ = lambda self: -1  # noqa: E731
    __index__ = __float__ = __iter__ = __bool__ = __fspath__ = lambda self: 1 / 0  # noqa: E731


HOSTILE = [
    None, True, -1, 2**31, 2**63, 2**70, -(2**70), 1.5, math.nan, math.inf, -math.inf, 1e308, '', 'no such', 'a\0b',
    '\ud800', b'bytes', [], [None], [1, 'a'], ['a', None], [[[]]], (1, 2), {}, {'a': 1}, range(3), object, len, Liar(),
    GTorch.float32, GTorch.zeros(0), GTorch.zeros(2, 3, 5, 7), GTorch.tensor([1 + 1j]), GTorch.tensor([math.nan] * 3),
    GTorchPlot.Format.PDF, GTorchPlot.Line(), Gio.File.new_for_path('/'), GObject.Object(), nn.ReLU(), lambda *_: 1 / 0,
]


def given(name, parameters):
    """Valid arguments of a function."""
    found = {}
    for parameter in parameters:
        if parameter.name == 'self' or parameter.kind is parameter.VAR_POSITIONAL:
            continue
        found[parameter.name] = OWN.get((name, parameter.name), ARGUMENTS.get(parameter.name, LIAR))
        if found[parameter.name] is LIAR:
            assert parameter.name in ('cr',), f'{name}: nobody knows a {parameter.name}'
            return None
    return found


LIAR = object()


def make(cls):
    return MAKERS.get(cls.__name__, cls)()


def functions():
    """Every function with its name and its class, or None."""
    module = LIBRARY._introspection_module
    for name in dir(module):
        if name.startswith('_') or name.endswith(('Class', 'Private')):
            continue
        found = getattr(LIBRARY, name)
        if isinstance(found, type):
            for key, value in list(vars(found).items()):
                function = value.__func__ if isinstance(value, staticmethod) else value
                if hasattr(function, '__wrapped__') and not key.startswith('do_'):
                    yield found, key, function, isinstance(value, staticmethod)
        elif hasattr(found, '__wrapped__'):
            yield None, name, found, True


def says(error, name, *others):
    """Whether the exception names the function."""
    text = str(error)
    if isinstance(error, GLib.Error) and re.match(r'(plot|gtk)_[a-z_]+: ', text):
        return True
    words = (name, name.removesuffix('_async'), *others)
    return any(word in text for word in words)


def drain():
    while GLib.MainContext.default().iteration(False):
        continue


def call(cls, name, function, is_static, values):
    first = () if is_static else (make(cls),)
    return function(*first, **values)


@tap.case
def all_functions_are_called():
    n = 0
    for cls, name, function, is_static in functions():
        values = given(name, inspect.signature(function).parameters.values())
        if values is None:
            continue
        try:
            call(cls, name, function, is_static, values)
        except GLib.Error:  # of a file that cannot be, and of results of others
            assert name.endswith(('_finish', 'save')), name
        n += 1
        drain()
    print(f'# {n} functions')
    assert n > 30


@tap.case
def what_cannot_be_taken_raises():
    n = failed = 0
    for cls, name, function, is_static in functions():
        values = given(name, inspect.signature(function).parameters.values()) or {}
        for key in values:
            for value in HOSTILE:
                if key == 'callback' and callable(value):
                    continue  # is called later
                try:
                    call(cls, name, function, is_static, {**values, key: value})
                except ZeroDivisionError:
                    assert isinstance(value, Liar), (name, key, value)
                except (TypeError, ValueError, OverflowError, GLib.Error) as error:
                    failed += 1
                    is_file = isinstance(error, OSError) and name in ('save', 'save_async')
                    text = f'{name}({key}={value!r}): {type(error).__name__}: {error}'
                    assert is_file or says(error, name, 'device'), text
                n += 1
        drain()
        values = dict.fromkeys(values, object())
        if values:
            with tap.raises(TypeError, name):
                call(cls, name, function, is_static, values)
    print(f'# {n} calls, {failed} failed')
    assert failed > n / 2


@tap.case
def unknown_arguments_raise():
    for cls, name, function, is_static in functions():
        with tap.raises(TypeError, f'{name}() has no argument'):
            call(cls, name, function, is_static, {'no_such': 1})
        first = () if is_static else (make(cls),)
        if not name.endswith('_async'):
            with tap.raises(TypeError, name):
                function(*first, *range(20))


@tap.case
def properties_take_what_they_can():
    n = 0
    for name in dir(LIBRARY._introspection_module):
        cls = getattr(LIBRARY, name) if not name.startswith('_') else None
        if not isinstance(cls, type) or not issubclass(cls, GObject.Object) or cls.__gtype__.is_abstract():
            continue
        thing = make(cls)
        for spec in GObject.list_properties(cls):
            if not spec.owner_type.name.startswith('GTorch'):
                continue
            key = spec.name.replace('-', '_')
            getattr(thing, key)
            for value in HOSTILE:
                n += 1
                try:
                    setattr(thing, key, value)
                except ZeroDivisionError:
                    assert isinstance(value, Liar)
                except (TypeError, ValueError, OverflowError, AttributeError, GLib.Error) as error:
                    assert says(error, key, 'device', 'setter'), f'{name}.{key} = {value!r}: {error}'
                try:
                    cls(**{key: value})
                except ZeroDivisionError:
                    assert isinstance(value, Liar)
                except (TypeError, ValueError, OverflowError, AttributeError, GLib.Error) as error:
                    assert says(error, key, 'device', 'setter'), f'{name}({key}={value!r}): {error}'
            drain()
        with tap.raises(AttributeError, 'no_such'):
            thing.no_such = 1
        with tap.raises(TypeError, 'no_such'):
            cls(no_such=1)
        with tap.raises(TypeError, 'by position'):
            cls(1, 2, 3, 4)
    print(f'# {n} values')


tap.main()
