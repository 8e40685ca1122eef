#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Tests the shared parts of the generator: templates, and the line numbers of mistakes in rows."""

import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / 'tests' / 'style'))

import tap  # noqa: E402

from generator.rows import line_of  # noqa: E402
from generator.text import Templates, write  # noqa: E402

TEMPLATES = '''no template
%% call
$name (${name}_$how);
%% body
{
  $lines
}

%% whole
$text
'''

ROWS = '''# Rows.
[one]
doc = "x" # line 3
grad.self = "neg(grad)"

[one.params]
self = "the tensor"

[one_more]
doc = "doc = 1"

[[two.sample]]
shapes = ["2"]
'''


def filled(template, /, **values):
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / 'templates').mkdir()
        (pathlib.Path(folder) / 'templates' / 'x.in').write_text(TEMPLATES, 'utf-8')
        return Templates(f'{folder}/__init__.py')('x.in', template, **values)


@tap.case
def values_go_into_lines():
    assert filled('call', name='f', how='now') == 'f (f_now);\n'


@tap.case
def lists_have_the_indentation_of_their_line():
    assert filled('body', lines=['a;', '', 'b;\n  c;\n']) == '{\n  a;\n\n  b;\n    c;\n}\n\n'


@tap.case
def empty_lists_leave_nothing():
    assert filled('body', lines=[]) == '{\n}\n\n'


@tap.case
def templates_in_lists_keep_empty_lines_at_their_ends():
    assert filled('body', lines=['a;\n\n', 'b;\n']) == '{\n  a;\n\n  b;\n}\n\n'


@tap.case
def values_are_no_templates():
    assert filled('whole', text='$name ${name}\n%% call') == '$name ${name}\n%% call\n'
    assert filled('body', lines=['$lines']) == '{\n  $lines\n}\n\n'


@tap.case
def unmatched_values_and_placeholders_are_mistakes():
    for values in ({'text': 'a', 'more': 'b'}, {}):
        try:
            filled('whole', **values)
        except (KeyError, TypeError):
            continue
        raise AssertionError(f'{values} were taken')


@tap.case
def files_end_with_one_line_end_and_are_written_when_they_change():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / 'new' / 'file'
        write(path, 'a\n\n')
        assert path.read_text('utf-8') == 'a\n'
        path.chmod(0o444)
        before = path.stat().st_mtime_ns
        write(path, 'a')
        assert path.stat().st_mtime_ns == before
        path.chmod(0o644)
        write(path, 'b')
        assert path.read_text('utf-8') == 'b\n'


@tap.case
def mistakes_have_the_line_of_the_key_or_of_the_row():
    lines = {
        ('one', 'doc'): 3,
        ('one', 'grad.self'): 4,
        ('one', 'grad.other'): 4,
        ('one', 'params'): 6,
        ('one', 'params.self'): 7,
        ('one', 'flags'): 2,
        ('one_more', 'doc'): 10,
        ('two', 'sample'): 12,
        ('two', 'doc'): 12,
        ('three', 'doc'): 0,
    }
    for (name, key), line in lines.items():
        assert line_of(ROWS, name, key) == line, (name, key, line_of(ROWS, name, key))


tap.main()
