# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Templates and wrapped texts."""

import functools
import pathlib
import re
import string
import textwrap

TEMPLATES = pathlib.Path(__file__).resolve().parent / 'templates'


@functools.cache
def sections(file):
    """The templates in a file by their names, which stand in lines like “%% name”; a file may be one template."""
    parts = re.split(r'^%% (\w+)\n', (TEMPLATES / file).read_text(encoding='utf-8'), flags=re.MULTILINE)
    return {'': parts[0], **dict(zip(parts[1::2], parts[2::2]))}


def fill(file, name='', /, **values):
    """The template of the name with the values."""
    return string.Template(sections(file)[name]).substitute(values)


def comment(text, indent=''):
    """The lines of a documentation comment; blocks of code stay as they are."""
    lines, is_code = [], False
    for paragraph in text.split('\n\n'):
        if lines:
            lines.append('')
        if '```' in paragraph:
            is_code = paragraph.count('```') % 2 == 1
            lines += paragraph.split('\n')
        elif is_code:
            lines += paragraph.split('\n')
        else:
            lines += textwrap.wrap(' '.join(paragraph.split()), 100, break_long_words=False)
    return '\n'.join(f'{indent} * {line}'.rstrip() for line in lines)


def sentence(text):
    """The text of a property as a sentence of its own."""
    text = text[0].upper() + text[1:]
    return text if text.endswith('.') else f'{text}.'


def declaration(params):
    return ', '.join(params) if params else 'void'
