# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The defaults of arguments of functions that are no operations, from introspection/defaults.toml."""

import json
import re

from generator import rows as shared

WORDS = {'null': None, 'true': True, 'false': False, 'GLib.Priority.DEFAULT': 0}


class Table:
    """What the file says of a namespace; used: the keys that were looked up."""

    def __init__(self, path, namespace='GTorch'):
        self.values, self.used = shared.read(path).get(namespace, {}), set()

    @staticmethod
    def names(function):
        """Returns the names that a function may have in the file: its own, then that of its form that blocks."""
        short = function.removeprefix('new_')
        plain = function.removesuffix('_async')
        return dict.fromkeys((short, plain, 'new' if plain == 'create' else plain))

    def of(self, owner, function, arg, may_be_null):
        """Returns the default of an argument in Vala, or None."""
        value = self.find(owner, function, arg)
        return ('null' if may_be_null else None) if value is None else value or None

    def find(self, owner, function, arg):
        """Returns what the file says of an argument, or None."""
        head = f'{owner}.' if owner else ''
        general = [f'*.{arg}'] if function != f'set_{arg}' else []
        for key in (*(f'{head}{name}.{arg}' for name in self.names(function)), *general):
            if key in self.values:
                self.used.add(key)
                return self.values[key]
        return None


def in_json(text):
    """Returns a default as the tables have it: members of a namespace are texts without quotes."""
    if text in WORDS:
        return WORDS[text]
    if re.match(r'GTorch\w*\.', text):
        return text.removeprefix('GTorch.')
    if text.startswith('"'):
        return text
    return json.loads(text)
