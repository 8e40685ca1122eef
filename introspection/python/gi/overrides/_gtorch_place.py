# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tells C the lines at which a program is, and messages what a program called."""

import atexit
import os
import sys

from gi.overrides._gtorch_convert import GTorch

HERE = os.path.dirname(os.path.abspath(__file__))
MOST = 8
CO_VARARGS, CO_VARKEYWORDS = 4, 8  # flags of code

_own = {}  # by file: whether it is the library's


def _is_own(file):
    found = _own.get(file)
    if found is None:
        found = _own[file] = os.path.dirname(os.path.abspath(file)) == HERE
    return found


def _place(*_data):
    """The innermost functions that are not of the library's Python; of the first one the source, too."""
    frame = sys._getframe(1)
    found = []
    while frame is not None and len(found) < MOST:
        file, number = frame.f_code.co_filename, frame.f_lineno
        if found or not _is_own(file):
            place = f'{file}:{number}, in {frame.f_code.co_name}'
            if not found:
                import linecache  # takes a millisecond, which most programs need not spend

                source = linecache.getline(file, number).strip()
                place = f'{place}: {source}' if source else place
            found.append(place)
        frame = frame.f_back
    return '\n'.join(found) or None


def _called(frame):
    """The name of a function that a program calls, with brackets, or of a property; None for one of the library's."""
    code, variables = frame.f_code, frame.f_locals
    first = variables.get(code.co_varnames[0]) if code.co_argcount else None
    if code.co_name in ('__init__', '__new__'):
        kind = first if isinstance(first, type) else type(first)
        return f'{kind.__name__}()'
    if code.co_name == 'call' or code.co_name.startswith(('_', '<')):  # one of many that are made for names
        name = variables.get('name')
        return f'{name}()' if isinstance(name, str) and name.isidentifier() else None
    is_property = isinstance(getattr(type(first), code.co_name, None), property)
    return code.co_name if is_property else f'{code.co_name}()'


def _names(frame, value):
    """The arguments of a function that are @value."""
    code, variables = frame.f_code, frame.f_locals
    count = code.co_argcount + code.co_kwonlyargcount
    names = [name for name in code.co_varnames[:count] if variables.get(name) is value]
    if code.co_flags & CO_VARKEYWORDS:
        given = variables.get(code.co_varnames[count + bool(code.co_flags & CO_VARARGS)])
        names += [name for name, one in given.items() if one is value] if isinstance(given, dict) else []
    return [name for name in names if name not in ('self', 'value', '_value')]


def asked(value):
    """What a program called with an argument that is @value, as `name(): argument`; None if that is not known. Looks
    from the outermost of the library's functions, for messages of those that do not know their caller."""
    frame, called, names = sys._getframe(1), None, []
    while frame is not None and _is_own(frame.f_code.co_filename):
        called = _called(frame) or called
        names = _names(frame, value) or names
        frame = frame.f_back
    return f'{called}: {names[0]}' if called and called.endswith(')') and len(names) == 1 else called


def install():
    """Lets messages of C name lines of Python."""
    GTorch.set_place_func(True, _place)
    atexit.register(GTorch.set_place_func, True, None)
