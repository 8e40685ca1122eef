# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The C code by which a layer gets its tensors for a size that an input or a state tells, and its lazy class."""

import re

from generator import c
from generator.layers import fill
from generator.layers.tensors import table
from generator.rows import RowError


def is_concerned(layer, line):
    """Returns whether a condition is one on the size that a lazy layer does not know yet."""
    return f'(module, "{layer.props[0].name}"' in line


def guarded(layer, line):
    """Returns a condition for constructed (), which leaves out those on a size that is not known."""
    if not layer.data.get('lazy') or not is_concerned(layer, line):
        return line
    return f'(gtorch_lazy_is_waiting (module) || {line})'


def sources(layer, size):
    """Returns which dimensions of the tensors tell the size, as rows of C."""
    found = []
    for tensor in layer.tensors:
        for dim, part in enumerate(tensor.shape.split(', ')):
            match = re.fullmatch(rf'{size}(?: / (\w+))?', part)
            if match:
                factor = f'G_STRUCT_OFFSET (GTorch{layer.name}, {match[1]})' if match[1] else '0'
                found.append(f'    {{ "{tensor.name}", {dim}, {factor} }},\n')
    if not found:
        raise RowError(f'{layer.file}:{layer.name}.lazy.{size}: no shape of a tensor tells it')
    return ''.join(found[:3])


def maker(layer, lines):
    """Returns the functions that check the size and make the tensors, and the table that names them."""
    (size, place), = layer.data['lazy'].items()
    checks = '\n         && '.join(line for line in lines if is_concerned(layer, line)) or 'TRUE'
    return fill(
        'layer.c.in', 'lazy', snake=layer.snake, Name=layer.name, SNAKE=layer.snake.upper(), checks=checks, size=size,
        property=c.dashed(size), dim=str(place[0]), least=str(place[1]), most=str(place[2]),
        sources=sources(layer, size), table=table(layer),
    )


def source(layer, comment, constructor):
    """Returns the C code of a lazy class."""
    ordinary = layer.ordinary
    rows = ''.join(field.row(ordinary) for field in layer.overridden)
    lines = '\n' if rows else ''
    for field in layer.overridden:
        lines += fill('layer.c.in', 'property', Name=layer.name, property=c.dashed(field.name),
                      doc=comment(field.doc, '  '))
    if rows:
        lines += f'  GTORCH_FIELDS (klass, gtorch_{layer.snake}_fields);\n'
    return fill(
        'layer.c.in', 'lazy_class', table=fill('layer.c.in', 'table', snake=layer.snake, rows=rows) if rows else '',
        fields=lines, Name=layer.name, snake=layer.snake, Base=ordinary.name,
        BASE=ordinary.snake.upper(), base=ordinary.snake, doc=comment(layer.doc), constructor=constructor(layer),
    )
