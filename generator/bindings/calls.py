# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes the checks of arguments that gjs and PyGObject would convert silently, for functions that are not
operations: a table for JavaScript, and for the libraries beside this one their overrides for both languages.

The operations have their own wrappers. Positions are those in JavaScript and Python, which have no lengths of
arrays, no data of callbacks, and no out arguments.
"""

import json
import pprint
import xml.etree.ElementTree as ET
from typing import NamedTuple

from generator.bindings import fill
from generator.bindings.defaults import Table, in_json
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
# gjs cannot refuse others in calls of functions that return an array of C.
OF_GIO = ('Gio.AsyncResult', 'Gio.Cancellable', 'Gio.InputStream', 'Gio.OutputStream')
# What programs may give as something simpler: names of devices and files, texts for bytes, numbers for sizes.
CONVERTED = {'Device': 'device', 'Factors': 'factors', 'GLib.Bytes': 'bytes', 'Gio.File': 'file', 'Size': 'size'}
# Classes whose functions Python checks by a table: they have no overrides.
CHECKED = ('CSVLog', 'EventWriter', 'Exporter', 'JSONLog', 'Log', 'ProfileList', 'ProfileRange', 'Profiler')
# gjs takes any object for a context, and crashes.
CONTEXT = 'cairo.Context'
# gjs takes what is missing in an array of these as NULL.
OBJECTS = ('GraphedModule', 'Module', 'Stream', 'Tensor')
# The classes of their objects are not in the typelib.
WITH_PRIVATE_CLASSES = ('Device', 'Stream')


def names_of_operations(rows):
    found = set()
    for row in rows:
        for form in {'', *row.forms}:
            found |= {f'{row.name}{form}', *([f'{row.name}{form}_inplace'] if row.inplace else [])}
    return found


class Types(NamedTuple):
    """The names of the types of each kind; those of other namespaces than GTorch begin with the name of theirs."""

    space: str
    enums: set
    flags: set
    classes: set

    def whole(self, element):
        """Returns the name of a type."""
        name = element.get('name') if element is not None else None
        if name is not None and f'{self.space}.{name}' in self.enums | self.flags | self.classes:
            return f'{self.space}.{name}'
        return name and name.removeprefix('GTorch.')


def types_of(girs):
    """Returns the types of a namespace and of those that it includes."""
    found = Types(namespace_of(girs[0]).get('name'), set(), set(), set())
    for gir in girs:
        namespace = namespace_of(gir)
        head = '' if namespace.get('name') == 'GTorch' else f'{namespace.get("name")}.'
        for names, tag in ((found.enums, 'enumeration'), (found.flags, 'bitfield'), (found.classes, 'class')):
            names |= {f'{head}{e.get("name")}' for e in namespace.findall(CORE + tag)}
    return found


def namespace_of(gir):
    return ET.parse(gir).getroot().find(CORE + 'namespace')


def kind_of(element, types, in_array):
    """Returns the check of an argument, or of an element of an array, or None."""
    name = types.whole(element)
    if name == 'Tensor' and types.space != 'GTorch':
        return 'tensor'  # or what becomes one
    if in_array:
        if name == 'Device':
            return CONVERTED[name]
        if name in OBJECTS:
            return f'object:{name}'
        if name == 'utf8':
            return 'text'
    elif name == 'utf8':
        return 'text'
    elif name in CONVERTED:
        return CONVERTED[name]
    elif name in (*OF_GIO, CONTEXT):
        return f'object:{name}'
    elif name in types.classes or name in INTERFACES:
        return f'object:{name}'
    if name in types.enums:
        return f'enum:{name}'
    return 'uint32' if name in types.flags else PLAIN.get(name)


def same_length(function):
    """Returns the names of arrays that have one length in C, which no language compares."""
    found = {}
    for parameter in function.findall(f'{CORE}parameters/{CORE}parameter'):
        array = parameter.find(CORE + 'array')
        if array is not None and array.get('length') is not None and parameter.get('direction', 'in') == 'in':
            found.setdefault(array.get('length'), []).append(parameter.get('name'))
    return next((names for names in found.values() if len(names) > 1), None)


def returns_array(function):
    """Whether C gives an array with a length."""
    given = function.findall(f'{CORE}parameters/{CORE}parameter')
    parts = [function.find(CORE + 'return-value'), *(one for one in given if one.get('direction', 'in') != 'in')]
    arrays = [part.find(CORE + 'array') for part in parts if part is not None]
    return any(array is not None and array.get('length') is not None for array in arrays)


def arguments(function, types):
    """Returns position, name and kind of the arguments to check, the positions of callbacks, all names, those that may
    be null, and position, name and kind (a list or not) of those that must not be null."""
    parameters = function.find(CORE + 'parameters')
    given = parameters.findall(CORE + 'parameter') if parameters is not None else []
    hidden = set()
    for part in (*given, function.find(CORE + 'return-value')):
        array = part.find(CORE + 'array')
        places = [part.get('closure'), part.get('destroy'), array.get('length') if array is not None else None]
        hidden |= {int(place) for place in places if place is not None}
    found, callbacks, names, nullable, required = [], [], [], [], []
    is_guarded = returns_array(function)
    position = 0
    for i, parameter in enumerate(given):
        if i in hidden or parameter.get('direction', 'in') == 'out':
            continue
        array = parameter.find(CORE + 'array')
        place = parameter if array is None else array
        kind = kind_of(place.find(CORE + 'type'), types, array is not None)
        is_pointer = array is not None or kind is not None and kind.startswith(('object:', 'text', 'file'))
        if is_guarded and is_pointer and parameter.get('nullable') != '1':
            required.append([position, parameter.get('name'), array is not None])
        if kind is not None:
            found.append([position, parameter.get('name'), kind if array is None else f'{kind}[]'])
        if parameter.get('scope') is not None:
            callbacks.append(position)
        names.append(parameter.get('name'))
        if parameter.get('nullable') == '1' or parameter.get('allow-none') == '1':
            nullable.append(parameter.get('name'))
        position += 1
    return found, callbacks, names, nullable, required


def has_tables(function):
    """Whether an argument may be a plain object of JavaScript, which options would be taken for."""
    kinds = [e.get('name') for e in function.findall(f'{CORE}parameters/{CORE}parameter/{CORE}type')]
    return any(kind in ('GLib.HashTable', 'GObject.Value') for kind in kinds)


def entry(owner, function, types, table):
    result = function.find(f'{CORE}return-value/{CORE}type')
    found = {}
    checked, callbacks, names, nullable, required = arguments(function, types)
    is_async = function.get('name').endswith('_async')
    if names and not is_async:
        found['names'] = names
    if is_async and 'callback' in names:
        names = names[:names.index('callback')]
        found['given'] = names
    if not has_tables(function):
        known = {name: table.of(owner, function.get('name'), name, name in nullable) for name in names}
        defaults = {name: in_json(value) for name, value in known.items() if value is not None}
        found |= {'defaults': defaults} if defaults else {}
    if checked:
        found['args'] = checked
    if callbacks:
        found['callbacks'] = callbacks
    if required:
        found['required'] = required
    if arrays := same_length(function):
        found['same_length'] = arrays
    if result is not None and result.get('name') in WITH_PRIVATE_CLASSES:
        found['returns'] = result.get('name')
    return found


def table(girs, rows, known):
    """Returns what the overrides need to know of a namespace; it includes those of the further GIRs."""
    namespace, types = namespace_of(girs[0]), types_of(girs)
    classes = {e.get('name'): e for e in namespace.findall(CORE + 'class')}
    operations = names_of_operations(rows)

    def entries(owner, *tags):
        found = {}
        for function in (e for tag in tags for e in owner.findall(CORE + tag)):
            name = function.get('name')
            is_operation = name in operations and owner.get('name') in ('GTorch', 'Tensor')
            if function.get('introspectable') == '0' or is_operation:
                continue
            space = None if owner is namespace else owner.get('name')
            found[name] = entry(space, function, types, known)
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


def emit(gir, defaults, ops, file):
    lines = [
        '// SPDX-FileCopyrightText: The GTorch authors',
        '// SPDX-License-Identifier: LGPL-2.1-or-later',
        '',
        '// Written by generator/bindings: position, name and kind of the arguments that are checked, defaults,',
        '// positions of functions that C calls, and the virtual functions of classes.',
        '/* exported classes functions owners vfuncs */',
        *(f'var {key} = {json.dumps(value)};' for key, value in table([gir], load(ops), Table(defaults)).items()),
    ]
    write(file, '\n'.join(lines))


def files_of(entries):
    """Returns position and name of the arguments that are files, by the names of functions."""
    found = {}
    for name, one in entries.items():
        files = [(position, argument) for position, argument, kind in one.get('args', ()) if kind == 'file']
        found |= {name: files} if files else {}
    return found


def emit_python(gir, defaults, ops, file):
    """Writes the tables for Python: of classes that it checks, without functions that take functions."""
    known = table([gir], load(ops), Table(defaults))
    files, checked = {'': files_of(known['functions'])}, {}
    for owner, parts in known['owners'].items():
        if owner in CHECKED:
            checked[owner] = {
                key: {name: one for name, one in entries.items() if 'given' in one or 'callbacks' not in one}
                for key, entries in parts.items()
            }
        elif found := files_of({**parts['methods'], **parts['statics']}):
            files[owner] = found
    lines = [
        '# SPDX-FileCopyrightText: The GTorch authors',
        '# SPDX-License-Identifier: LGPL-2.1-or-later',
        '"""Written by generator/bindings: what _gtorch_checked.py checks."""',
        '',
        f'FILES = {show_python(files)}',
        f'CHECKED = {show_python(checked)}',
    ]
    write(file, '\n'.join(lines))


def emit_overrides(template, show, defaults, file, *girs):
    """Writes the overrides of a library beside this one, of the first GIR, which includes the others."""
    space = namespace_of(girs[0]).get('name')
    found = table(girs, [], Table(defaults, space))
    write(file, fill('overrides.in', template, space=space, table=show(found)))


def show_python(found):
    return pprint.pformat(found, width=110)


def show_javascript(found):
    return json.dumps(found, indent=1)
