# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The types of the values of each key of a row."""


def is_number(value):
    return isinstance(value, (int, float))


def is_real(value):
    return is_number(value) and not isinstance(value, bool)


def is_text(value):
    return isinstance(value, str) and bool(value.strip())


def is_list_of(check):
    return lambda value: isinstance(value, list) and all(map(check, value))


def is_table_of(check):
    return lambda value: isinstance(value, dict) and all(
        key.isidentifier() and check(one) for key, one in value.items())


def is_number_or_list(value):
    return is_number(value) or is_list_of(is_real)(value)


def is_any(value):
    return True


TEXT = ('a text', is_text)
NUMBER = ('a number', is_real)
BOUND = ('a number, or a list of numbers', lambda v: is_real(v) or v != [] and is_list_of(is_real)(v))
TEXTS = ('a list of texts', is_list_of(is_text))
ARG = {
    'default': ('a number, true or false, or a list of numbers',
                lambda v: is_number(v) or v != [] and is_list_of(is_real)(v)),
    'names': ('a list of names', lambda v: v != [] and is_list_of(lambda one: is_text(one) and one.isidentifier())(v)),
    'least': BOUND,
    'above': BOUND,
    'most': BOUND,
    'below': BOUND,
    'doc': ('a text, or a list of texts', lambda v: is_text(v) or v != [] and is_list_of(is_text)(v)),
    'type': ('“int” or “ints”', lambda v: v in ('int', 'ints')),
}
STATE = {'when': TEXT, 'begin': TEXT, 'count': TEXT, 'number': TEXT}
COMMON = {
    'doc': TEXT,
    'source': TEXT,
    'reference': TEXT,
    'sample': ('a list of tables of numbers', is_list_of(is_table_of(is_number_or_list))),
    'args': ('a table', is_table_of(is_any)),
}
STEP = {
    **COMMON,
    'extends': TEXT,
    'new': TEXTS,
    'by_name': TEXT,
    'without': TEXTS,
    'state': ('a table of tables', is_table_of(lambda value: isinstance(value, dict))),
    'check': ('a table of texts', is_table_of(is_text)),
    'once': TEXT,
    'update': TEXT,
}
SCHEDULE = {**COMMON, 'lr': TEXT, 'next': TEXT}


def check(data, schema, fail, path=''):
    """Calls fail (key, message) for the first invalid value."""
    if not isinstance(data, dict):
        fail(path.rstrip('.') or 'row', 'must be a table')
    for key, value in data.items():
        if key not in schema:
            fail(path + key, 'no such key')
        wanted, is_right = schema[key]
        if not is_right(value):
            fail(path + key, f'must be {wanted}')
