# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The table of the tensors that a layer makes when it is constructed."""

import re

from generator import c
from generator.layers.fields import with_self


def shape_of(layer, text, name):
    """Returns (lines that declare the shape, the shape, its length)."""
    if not text:
        return '', 'NULL', '0'
    match = re.fullmatch(r'\*(\w+)', text)
    if match:
        size = f'self->{match[1]}'
        return '', f'gtorch_layer_numbers ({size})', f'gtorch_size_get_length ({size})'
    parts = []
    for part in text.split(', '):
        if part.startswith('*'):
            prop = layer.prop(part[1:])
            parts += [f'gtorch_layer_numbers (self->{prop.name})[{i}]' for i in range(prop.length)]
        else:
            parts.append(with_self(layer, part))
    lines = f'      const gint64 {name}_shape[] = {{ {", ".join(parts)} }};\n'
    return lines, f'{name}_shape', f'G_N_ELEMENTS ({name}_shape)'


def table(layer):
    """Returns the declarations of the shapes and of the table, which is called tensors."""
    declared, made = '', ''
    for tensor in layer.tensors:
        line, shape, length = shape_of(layer, tensor.shape, tensor.name)
        declared += line
        wanted = with_self(layer, tensor.condition) if tensor.condition else 'TRUE'
        init, value = tensor.init.upper(), ''
        if tensor.value:
            init = 'UNIFORM' if tensor.is_uniform else 'VALUE'
            value = f', (gdouble) self->{tensor.value}' if tensor.is_uniform else f', self->{tensor.value}'
        made += (
            f'        {{ "{tensor.name}", GTORCH_LAYER_{init}, '
            f'{c.boolean(tensor.is_buffer)}, {wanted}, {shape}, {length}{value} }},\n'
        )
    return f'{declared}      const GTorchLayerTensor tensors[] = {{\n{made}      }};\n\n'
