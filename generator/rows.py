# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Rows in TOML: reading them, and reporting mistakes in one."""

import itertools
import pathlib
import re
import sys
import tomllib


class RowError(Exception):
    """A mistake in a row; place: its file, its name and the key."""

    def __init__(self, message, place=None):
        super().__init__(message)
        self.place = place


def read(path):
    """Returns the rows of a file by name."""
    path = pathlib.Path(path)
    try:
        return tomllib.loads(path.read_text('utf-8'))
    except tomllib.TOMLDecodeError as error:
        raise RowError(f'{path.name}: {error}') from None


class Row:
    """The base class of all rows."""

    KEYS = ()  # the allowed keys; if empty, they are checked elsewhere
    NEEDED = ()

    def __init__(self, file, name, data):
        self.file, self.name, self.data = file, name, data
        for key in data if self.KEYS else ():
            if key not in self.KEYS:
                self.fail(key, 'no such key')
        for key in self.NEEDED:
            if key not in data:
                self.fail(key, 'is missing')

    def fail(self, key, message):
        raise RowError(f'{self.file}:{self.name}.{key}: {message}', (self.file, self.name, key))


def line_of(text, name, key):
    """Returns the number of the line that matches most of a key of a row, or of the row's first
    line; 0 if there is no such row."""
    begin, longest, parts = 0, 0, key.split('.')
    for number, line in enumerate(text.split('\n'), 1):
        if header := re.match(r'\s*\[+\s*([^\]]+?)\s*\]', line):
            if begin and not header[1].startswith(f'{name}.'):
                break
            begin = begin or (number if header[1].split('.')[0] == name else 0)
            found = prefix = header[1].split('.')[1:]
        elif begin and (entry := re.match(r'\s*([\w.-]+)\s*=', line)):
            found = prefix + entry[1].split('.')
        else:
            continue
        same = len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], zip(found, parts))))
        if begin and same > longest:
            longest, begin = same, number
    return begin


def explain(error, files):
    """Adds the line number to the message of an error, if one of these files contains the row."""
    for path in map(pathlib.Path, files):
        if error.place is not None and path.name == error.place[0]:
            if line := line_of(path.read_text('utf-8'), *error.place[1:]):
                return f'{error} (line {line})'
    return str(error)


def run(part, usage, commands, argv):
    """Runs the command that the arguments name: (minimum and maximum number of arguments, a function)."""
    least, most, command = commands.get(argv[1] if len(argv) > 1 else '', (0, -1, None))
    args = argv[2:]
    if not least <= len(args) <= most:
        print(usage, file=sys.stderr)
        return 2
    try:
        command(*args)
    except RowError as error:
        print(f'{part}: {explain(error, [arg for arg in args if arg.endswith(".toml")])}', file=sys.stderr)
        return 1
    return 0
