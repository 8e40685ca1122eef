# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Templates, wrapped text, and files that are written only if they change."""

import functools
import pathlib
import re
import textwrap

# A line that consists of one value, or a value inside a line.
PLACE = re.compile(r'^([ \t]*)\$(\w+)\n|\$(?:(\w+)|\{(\w+)\})', re.MULTILINE)


class Templates:
    """The templates of a package, which fill in values for `$name` and `${name}`.

    A file has one template, or several, each after a line “%% name”. A template ends before the
    next such line, and includes its empty lines. A value is inserted as it is; if `$name` is on a
    line of its own, it may be a list of texts: these get the indentation of that line, and an empty
    list leaves nothing.
    """

    def __init__(self, package_file):
        self.folder = pathlib.Path(package_file).resolve().parent / 'templates'

    @functools.cache
    def sections(self, file):
        parts = re.split(r'^%% (\w+)\n', (self.folder / file).read_text('utf-8'), flags=re.MULTILINE)
        return {'': parts[0], **dict(zip(parts[1::2], parts[2::2]))}

    def __call__(self, file, template='', /, **values):
        wanted = set()

        def put(match):
            indent, line, *others = match.groups()
            name = line or others[0] or others[1]
            wanted.add(name)
            value = values[name]
            if line is None:
                return value
            return f'{indent}{value}\n' if isinstance(value, str) else ''.join(indented(value, indent))

        text = PLACE.sub(put, self.sections(file)[template])
        if unused := set(values) - wanted:
            raise TypeError(f'{file}: {template} has no place for {", ".join(sorted(unused))}')
        return text


def indented(texts, indent):
    for text in texts:
        for line in text.removesuffix('\n').split('\n'):
            yield f'{indent}{line}\n' if line else '\n'


def write(path, text):
    """Writes the file, with one line end, if its text has changed, so that dependent files are
    not rebuilt needlessly."""
    path, text = pathlib.Path(path), text.rstrip('\n') + '\n'
    if not path.exists() or path.read_text('utf-8') != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, 'utf-8')


def wrap(text, width, **options):
    """Wraps a paragraph; words are not broken."""
    return textwrap.wrap(' '.join(text.split()), width, break_long_words=False, **options)


def starred(lines, indent=''):
    """Returns lines inside a comment."""
    return [f'{indent} * {line}'.rstrip() for line in lines]


def sentence(text):
    """Returns a text as a sentence."""
    text = text[0].upper() + text[1:]
    return text if text.endswith('.') else f'{text}.'


def phrase(text):
    """Returns a sentence as a phrase that can follow a colon."""
    return text[0].lower() + text[1:].rstrip('.')
