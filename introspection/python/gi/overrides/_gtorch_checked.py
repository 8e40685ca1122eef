# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Functions of C that check and convert their arguments by tables, which generator/bindings writes of the GIR. All that
take a file take a path as well. Of the classes that have no other overrides all arguments are checked: PyGObject cuts
texts at a NUL, and numbers at their point.

What overrides of Python make of a function calls the one that is checked."""

import functools

from gi.module import FunctionInfo

from gi.overrides._gtorch_checked_table import CHECKED, FILES


def _taking_files(name, raw, places):
    """@raw, whose arguments at these places, (position, name), are files or paths."""
    from gi.overrides._gtorch_convert import convert_file

    def call(*args, **options):
        args = [*args]
        for place, key in places:
            if place < len(args):
                args[place] = convert_file(args[place], f'{name}(): {key}')
            elif key in options:
                options[key] = convert_file(options[key], f'{name}(): {key}')
        return raw(*args, **options)

    functools.update_wrapper(call, raw, ('__name__', '__doc__'), ())
    call.__qualname__ = name
    return call


def function(name, made):
    """A function of the namespace, as programs see it."""
    places = FILES[''].get(name) if isinstance(made, FunctionInfo) else None
    return made if places is None else _taking_files(name, made, places)


def prepare(cls):
    """Puts functions that check their arguments into a class of C."""
    name, own = cls.__name__, vars(cls)
    for key, places in FILES.get(name, {}).items():
        if isinstance(own.get(key), FunctionInfo):
            raw, is_method = own[key], own[key].is_method()
            made = _taking_files(key, raw if is_method else getattr(cls, key),
                                 [(place + is_method, argument) for place, argument in places])
            setattr(cls, key, made if is_method else staticmethod(made))
    if name in CHECKED:
        from gi.overrides._gtorch_library import replace

        replace(cls, CHECKED[name])
