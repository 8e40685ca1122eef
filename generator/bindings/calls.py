# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes the checks of arguments that gjs would convert silently, for functions that are not
operations.

The operations have their own wrappers. Positions are those in JavaScript, which has no lengths of
arrays, no data of callbacks, and no out arguments.
"""

import json
import xml.etree.ElementTree as ET
from typing import NamedTuple

from generator.bindings.rows import load
from generator.text import write

CORE = '{http://www.gtk.org/introspection/core/1.0}'
PLAIN = {
    'gboolean': 'bool',
    'gdouble': 'double',
    'gfloat': 'double',
    'gint': 'int32',
    'gint32': 'int32',
    'guint': 'uint32',
    'guint32': 'uint32',
    'guint8': 'uint8',
    'gint64': 'int64',
    'gssize': 'int64',
    'glong': 'int64',
    'gsize': 'uint64',
    'gulong': 'uint64',
    'guint64': 'uint64',
}
OWNERS = ('class', 'record', 'enumeration', 'bitfield')
# An argument of the interface takes any object that implements it.
INTERFACES = ('Gio.ListModel',)
# Those are checked in calls of functions that return an array of C, where gjs cannot refuse them.
OF_GIO = ('Gio.AsyncResult', 'Gio.Cancellable', 'Gio.File', 'Gio.InputStream', 'Gio.OutputStream')
# gjs takes what is missing in an array of these as NULL.
OBJECTS = ('GraphedModule', 'Module', 'Tensor')
# The classes of their objects are not in the typelib.
WITH_PRIVATE_CLASSES = ('Device', 'Stream')


def names_of_operations(rows):
    found = set()
    for row in rows:
        for form in {'', *row.forms}:
            found |= {f'{row.name}{form}', *([f'{row.name}{form}_inplace'] if row.inplace else [])}
    return found


class Types(NamedTuple):
    """The names of the types of each kind."""

    enums: set
    flags: set
    classes: set


def kind_of(element, types, in_array):
    """Returns the check of an argument, or of an element of an array, or None."""
    name = element.get('name') if element is not None else None
    if in_array:
        if name in OBJECTS:
            return f'object:{name}'
        if name == 'utf8':
            return 'text'
    elif name == 'utf8':
        return 'text'
    elif name == 'Device':
        return 'device'
    elif name in types.classes or name in INTERFACES:
        return f'object:{name}'
    if name in types.enums:
        return f'enum:{name}'
    return 'uint32' if name in types.flags else PLAIN.get(name)


def returns_array(function):
    """Whether C gives an array with a length."""
    given = function.findall(f'{CORE}parameters/{CORE}parameter')
    parts = [function.find(CORE + 'return-value'), *(one for one in given if one.get('direction', 'in') != 'in')]
    arrays = [part.find(CORE + 'array') for part in parts if part is not None]
    return any(array is not None and array.get('length') is not None for array in arrays)


def arguments(function, types):
    """Returns position, name and kind of the arguments to check, the positions of callbacks, all names, and position,
    name and kind (a list or not) of those that must not be null."""
    parameters = function.find(CORE + 'parameters')
    given = parameters.findall(CORE + 'parameter') if parameters is not None else []
    hidden = set()
    for part in (*given, function.find(CORE + 'return-value')):
        array = part.find(CORE + 'array')
        places = [part.get('closure'), part.get('destroy'), array.get('length') if array is not None else None]
        hidden |= {int(place) for place in places if place is not None}
    found, callbacks, names, required = [], [], [], []
    is_guarded = returns_array(function)
    position = 0
    for i, parameter in enumerate(given):
        if i in hidden or parameter.get('direction', 'in') == 'out':
            continue
        array = parameter.find(CORE + 'array')
        place = parameter if array is None else array
        kind = kind_of(place.find(CORE + 'type'), types, array is not None)
        of_gio = place.find(CORE + 'type')
        if is_guarded and kind is None and of_gio is not None and of_gio.get('name') in OF_GIO:
            kind = f'object:{of_gio.get("name")}'
        is_pointer = array is not None or kind is not None and kind.startswith(('object:', 'text'))
        if is_guarded and is_pointer and parameter.get('nullable') != '1':
            required.append([position, parameter.get('name'), array is not None])
        if kind is not None:
            found.append([position, parameter.get('name'), kind if array is None else f'{kind}[]'])
        if parameter.get('scope') is not None:
            callbacks.append(position)
        names.append(parameter.get('name'))
        position += 1
    return found, callbacks, names, required


def entry(function, types):
    result = function.find(f'{CORE}return-value/{CORE}type')
    found = {}
    checked, callbacks, names, required = arguments(function, types)
    if names and not function.get('name').endswith('_async'):
        found['names'] = names
    if checked:
        found['args'] = checked
    if callbacks:
        found['callbacks'] = callbacks
    if required:
        found['required'] = required
    if result is not None and result.get('name') in WITH_PRIVATE_CLASSES:
        found['returns'] = result.get('name')
    return found


def table(gir, rows):
    namespace = ET.parse(gir).getroot().find(CORE + 'namespace')
    classes = {e.get('name'): e for e in namespace.findall(CORE + 'class')}
    types = Types(*({e.get('name') for e in namespace.findall(CORE + tag)} for tag in ('enumeration', 'bitfield')),
                  set(classes))
    operations = names_of_operations(rows)

    def entries(owner, *tags):
        found = {}
        for function in (e for tag in tags for e in owner.findall(CORE + tag)):
            name = function.get('name')
            is_operation = name in operations and owner.get('name') in ('GTorch', 'Tensor')
            if function.get('introspectable') == '0' or is_operation:
                continue
            found[name] = entry(function, types)
        return found

    owners = {}
    for owner in (e for tag in OWNERS for e in namespace.findall(CORE + tag)):
        methods, statics = entries(owner, 'method'), entries(owner, 'function', 'constructor')
        if methods or statics:
            owners[owner.get('name')] = {'methods': methods, 'statics': statics}
    vfuncs = {name: [v.get('name') for v in e.findall(CORE + 'virtual-method')] for name, e in classes.items()}
    return {
        'functions': entries(namespace, 'function'),
        'owners': owners,
        'classes': sorted(classes),
        'vfuncs': {name: found for name, found in vfuncs.items() if found},
    }


def emit(gir, ops, file):
    lines = [
        '// SPDX-FileCopyrightText: The GTorch authors',
        '// SPDX-License-Identifier: LGPL-2.1-or-later',
        '',
        '// Written by generator/bindings: position, name and kind of the arguments that are checked, positions of',
        '// functions that C calls, and the virtual functions of classes.',
        '/* exported classes functions owners vfuncs */',
        *(f'var {key} = {json.dumps(value)};' for key, value in table(gir, load(ops)).items()),
    ]
    write(file, '\n'.join(lines))
