# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Templates, and files that are written only if they change."""

import pathlib
import string
import textwrap

TEMPLATES = pathlib.Path(__file__).resolve().parent / 'templates'
HEAD = '/* SPDX-License-Identifier: LGPL-2.1-or-later\n * SPDX-FileCopyrightText: The GTorch authors */\n\n'


class Template(string.Template):
    """$$ is not needed in C, and names are in @…@."""

    delimiter = '@'
    pattern = r'@(?:(?P<escaped>@)|(?P<named>[A-Z_]+)@|(?P<braced>\b\B)|(?P<invalid>\b\B))'


def fill(template, /, **values):
    """The template of a name with values put in; names are in capitals between @. Parts of files end with an empty
    line."""
    text = (TEMPLATES / template).read_text('utf-8').removeprefix(HEAD)
    text += '' if '@HEAD@' in text else '\n'
    return Template(text).substitute({key.upper(): value for key, value in values.items()})


def write(folder, name, text):
    path = pathlib.Path(folder) / name
    if not path.exists() or path.read_text('utf-8') != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, 'utf-8')


def comment(*paragraphs, indent=''):
    """A comment for the documentation."""
    lines = []
    for text in paragraphs:
        head = text.startswith('@') or text.endswith(':')
        wrapped = [text] if head and len(text) < 96 else textwrap.wrap(text, 96, subsequent_indent='  ' if head else '')
        lines += wrapped or ['']
    return '\n'.join([f'{indent}/**', *(f'{indent} * {line}'.rstrip() for line in lines), f'{indent} */'])


def c_string(text):
    return '"' + text.replace('\\', '\\\\').replace('"', '\\"') + '"'
