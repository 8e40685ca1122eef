#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Advice in messages names existing things: environment variables that are read, settings that
are parsed, functions and properties that exist. Functions are named without the C prefix, which
other languages do not have."""

import re

import tap
import tree

STRING = r'"(?:[^"\\\n]|\\.)*"'
MESSAGE = re.compile(rf'_ \(((?:\s*(?:{STRING}|PRI\w+))+)\s*\)')
START = re.compile(rf'(?<!\w)N?C?_ \((?:\s*(?:{STRING}|PRI\w+))+\s*([A-Z]\w+)?')
C_FILES = [p for p in tree.files() if p.startswith('gtorch/') and p.endswith('.c')]
TEXT = {p: tree.read(p) for p in C_FILES}
ALL = '\n'.join(TEXT.values())
HEADERS = '\n'.join(tree.read(p) for p in tree.files() if p.startswith('gtorch/') and p.endswith('.h'))


def messages():
    for path, text in TEXT.items():
        for match in MESSAGE.finditer(text):
            yield path, ''.join(s[1:-1] for s in re.findall(STRING, match.group(1)))


def names(pattern):
    found = [(path, name) for path, text in messages() for name in re.findall(pattern, text)]
    return found


def check(found, exists, at_least):
    wrong = [f'{path}: {name}' for path, name in found if not exists(name)]
    assert not wrong, '\n'.join(wrong)
    assert len(found) >= at_least, f'only {len(found)} were found'


@tap.case
def numbers_are_printed_by_macros_that_gettext_knows():
    wrong = [f'{path}: {match.group(1)}' for path, text in TEXT.items() for match in START.finditer(text)
             if match.group(1)]
    assert not wrong, 'PRId64, PRIu64 or %zu are wanted:\n' + '\n'.join(wrong)
    assert sum('PRI' in match.group() for text in TEXT.values() for match in START.finditer(text)) > 200


@tap.case
def variables_of_the_environment_are_asked_for():
    asked = set(re.findall(r'gtorch_(?:getenv|env_is_ignored) \("(\w+)"\)', ALL))
    asked |= set(re.findall(r'"((?:GTORCH|PYTORCH)_[A-Z0-9_]+)"', ALL))
    check(names(r'\b(?:GTORCH|PYTORCH)_[A-Z0-9_]+'), lambda name: name in asked, 4)


def variables():
    """The library's own variables, as (name, kind, words, limit)."""
    table = re.findall(r'\{ "(GTORCH_\w+)",\s*GTORCH_ENV_(\w+),\s*(?:"([^"]*)"|NULL),\s*(\w+) \}', ALL)
    assert len(table) >= 12, f'only {len(table)} were found'
    return table


@tap.case
def variables_are_read_as_what_they_are():
    kinds = {name: kind for name, kind, _, _ in variables()}
    read = re.findall(r'gtorch_env_(flag|choice|words|number) \(\s*"(GTORCH_\w+)"', ALL)
    read += [('text', name) for name in re.findall(r'gtorch_getenv \("(GTORCH_\w+)"\)', ALL)]
    read += [('text', name) for name in re.findall(r'"(GTORCH_ALLOC_CONF)", "PYTORCH', ALL)]
    for kind, name in read:
        assert kinds.get(name, '').lower() == kind, f'{name} is read as a {kind}'
    assert {name for _, name in read} == set(kinds), 'variables that nobody reads'


@tap.case
def variables_are_in_the_manual_with_their_values():
    page = tree.read('docs/environment.md')
    rows = dict(re.findall(r'^\| `(GTORCH_\w+)` \| (.*?) \|', page, flags=re.M))
    table = variables()
    assert list(rows) == [name for name, _, _, _ in table], 'the table of the manual has other rows'
    for name, kind, words, _ in table:
        values = rows[name]
        if kind in ('CHOICE', 'WORDS'):
            assert re.findall(r'`([^`]+)`', values) == words.split(','), f'{name}: {values}'
        assert (kind == 'FLAG') == values.startswith('switch'), f'{name}: {values}'
    prose = '\n'.join(tree.read(p) for p in tree.files() if p.startswith('docs/') and p.endswith('.md'))
    prose += tree.read('README.md') + tree.read('NEWS')
    said = set(re.findall(r'`?\b(GTORCH_\w+)(?:=|` in the environment)', prose))
    tests = '\n'.join(tree.read(p) for p in tree.files() if p.startswith('tests/') and p.endswith('.c'))
    said -= set(re.findall(r'g_getenv \("(\w+)"\)', tests))  # variables that configure tests
    assert said <= set(rows), said - set(rows)


@tap.case
def settings_of_the_allocator_are_read():
    config = TEXT['gtorch/memory/gtorch-allocator-config.c']

    def exists(setting):
        key, _, value = setting.partition(':')
        return f'"{key}"' in config and (not value or f'"{value}"' in config)

    check(names(r'\bbackend:[a-z]+|\bmax_split_size_mb\b|\bexpandable_segments\b'), exists, 2)


@tap.case
def properties_exist():
    known = set(re.findall(r'\{\s*"([a-z0-9-]+)",\s*GTORCH_(?:FIELD|PROPERTY)_', ALL))
    check(names(r'“([a-z]+(?:-[a-z]+)*)”') + names(r'\(([a-z]+(?:-[a-z]+)+)\)'), lambda name: name in known, 3)


@tap.case
def functions_and_classes_exist_in_each_language():
    check(names(r"\bgtorch_[a-z0-9_]+"), lambda name: False, 0)
    check(names(r'\b(?:MemoryPool|GTorch[A-Z]\w+)\b'),
          lambda name: f'GTorch{name.removeprefix("GTorch")}' in HEADERS, 1)


if __name__ == '__main__':
    tap.main()
