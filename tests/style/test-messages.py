#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Advice in messages names what there is: variables that are asked for, settings that are read, functions and
properties that exist. Functions are named by no prefix of C, which other languages do not have."""

import re

import tap
import tree

STRING = r'"(?:[^"\\\n]|\\.)*"'
MESSAGE = re.compile(rf'_ \(((?:\s*(?:{STRING}|G_[A-Z0-9_]+))+)\s*\)')
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
def variables_of_the_environment_are_asked_for():
    asked = set(re.findall(r'gtorch_(?:getenv|env_is_ignored) \("(\w+)"\)', ALL))
    asked |= set(re.findall(r'"((?:GTORCH|PYTORCH)_[A-Z0-9_]+)"', ALL))
    check(names(r'\b(?:GTORCH|PYTORCH)_[A-Z0-9_]+'), lambda name: name in asked, 4)


@tap.case
def settings_of_the_allocator_are_read():
    config = TEXT['gtorch/memory/gtorch-allocator-config.c']

    def exists(setting):
        key, _, value = setting.partition(':')
        return f'"{key}"' in config and (not value or f'"{value}"' in config)

    check(names(r'\bbackend:[a-z]+|\bmax_split_size_mb\b|\bexpandable_segments\b'), exists, 2)


@tap.case
def properties_exist():
    known = set(re.findall(r'g_param_spec_\w+ \(\s*"([a-z0-9-]+)"', ALL))
    known |= set(re.findall(r'\{\s*"([a-z0-9-]+)",\s*GTORCH_FIELD_', ALL))
    check(names(r'“([a-z]+(?:-[a-z]+)*)”') + names(r'\(([a-z]+(?:-[a-z]+)+)\)'), lambda name: name in known, 3)


@tap.case
def functions_and_classes_exist_in_each_language():
    check(names(r"\bgtorch_[a-z0-9_]+"), lambda name: False, 0)
    check(names(r'\b(?:MemoryPool|GTorch[A-Z]\w+)\b'),
          lambda name: f'GTorch{name.removeprefix("GTorch")}' in HEADERS, 1)


if __name__ == '__main__':
    tap.main()
