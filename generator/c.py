# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Names, strings and declarations in C."""

import re

WIDTH = 98


def string(text):
    return '"' + text.replace('\\', '\\\\').replace('"', '\\"') + '"'


def boolean(value):
    return 'TRUE' if value else 'FALSE'


def dashed(name):
    """Converts the name of a member to that of a property."""
    return name.lstrip('_').replace('_', '-')


def snake(name):
    """Converts BCEWithLogitsLoss to bce_with_logits_loss."""
    return re.sub('([a-z0-9]|[A-Z]{2})([A-Z][a-z])', r'\1_\2', name).lower()


def constant(prefix, name):
    """Returns a member of an enumeration, whose name is that of a class or a lower-case prefix."""
    return f'GTORCH_{snake(prefix)}_{name}'.upper()


def declaration(returns, name, params, newline='\n'):
    """Returns the head of a function; params: pairs of types and names."""
    text = ', '.join(t + n for t, n in params) or 'void'
    if newline == ' ' and returns.rstrip().endswith('*'):
        newline = ''
    lead = f'{returns.rstrip()}{newline}{name} ('
    width = len(name) + 2
    if width + len(text) <= WIDTH:
        return f'{lead}{text})'
    line, lines = '', []
    for part in text.split(', '):
        if line and width + len(line) + len(part) + 3 > WIDTH:
            lines.append(line + ',')
            line = part
        else:
            line = f'{line}, {part}' if line else part
    lines.append(line)
    return lead + ('\n' + ' ' * width).join(lines) + ')'


def prototype(returns, name, params):
    return declaration(returns, name, params, ' ') + ';'
