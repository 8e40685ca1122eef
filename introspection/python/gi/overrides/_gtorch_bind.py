# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Arguments of functions whose parameters are rows of a table."""

REQUIRED = object()
ABSENT = object()  # the property has the default


def bind(name, spec, args, options, n_named=0):
    """Returns the values of the arguments by name; @spec has their defaults, in order. The last @n_named ones are given
    by name only."""
    if len(args) > len(spec) - n_named:
        raise TypeError(f'{name}() takes {len(spec) - n_named} arguments by position; {len(args)} were given')
    values = dict(zip(spec, args))
    for key, value in options.items():
        if key not in spec:
            raise TypeError(f'{name}() has no argument {key!r}')
        if key in values:
            raise TypeError(f'{name}() was given {key} twice')
        values[key] = value
    for key, value in spec.items():
        if values.setdefault(key, value) is REQUIRED:
            raise TypeError(f'{name}() needs {key}')
    return values
