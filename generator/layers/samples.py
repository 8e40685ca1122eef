# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The samples of the rows: constructor calls in Python's syntax, translated to C for the tests."""

import ast
import re

from generator import c
from generator.layers import fill
from generator.signatures import NONE

NONES = {'int': f'(gint64) {NONE["int"]}', 'double': NONE['double']}
NUMBERS = {'nan': 'NAN', 'inf': 'INFINITY'}


def parse(layer, text):
    """Returns (positional values, keyword values) of the arguments in @text. A tensor is
    {'tensor': length}."""
    try:
        call = ast.parse(f'f({text})', mode='eval').body
        return [value(node) for node in call.args], {word.arg: value(word.value) for word in call.keywords}
    except (SyntaxError, ValueError):
        layer.fail('sample', f'cannot read the arguments “{text}”')


def value(node):
    if isinstance(node, ast.Call) and node.func.id == 'tensor':
        return {'tensor': node.args[0].value}
    if isinstance(node, ast.Name) and node.id in NUMBERS:
        return {'number': node.id}
    found = ast.literal_eval(node)
    return list(found) if isinstance(found, tuple) else found


def bound(layer, text):
    """Returns the values by the names of the arguments."""
    positional, named = parse(layer, text)
    names = [prop.name for prop in layer.props]
    if len(positional) > len(names) or any(name not in names for name in named):
        layer.fail('sample', f'there are no such arguments: “{text}”')
    return {**dict(zip(names, positional)), **named}


def c_value(layer, prop, found, lines):
    """Returns expressions for the property and its value; appends declarations to @lines."""
    name = f'"{c.dashed(prop.field)}"'
    if isinstance(found, dict) and 'tensor' in found:
        lines.append(f'  g_autoptr (GTorchTensor) {prop.name} = layer_sample_weights ({found["tensor"]});\n')
        return f'{name}, {prop.name}'
    if isinstance(found, dict):
        return f'{name}, {NUMBERS[found["number"]]}'
    if prop.has_rule and isinstance(found, str):
        return f'"{c.dashed(prop.field)}-rule", {c.constant("PaddingRule", found)}'
    if prop.kind == 'size':
        numbers = [NONES['int'] if one is None else one for one in (found if isinstance(found, list) else [found])]
        lines.append(
            f'  const gint64 {prop.name}_numbers[] = {{ {", ".join(map(str, numbers)) or 0} }};\n'
            f'  g_autoptr (GTorchSize) {prop.name} = gtorch_size_new ({prop.name}_numbers, {len(numbers)});\n'
        )
        return f'{name}, {prop.name}'
    if prop.kind == 'factors':
        numbers = [float(one) for one in (found if isinstance(found, list) else [found])]
        lines.append(
            f'  const gdouble {prop.name}_numbers[] = {{ {", ".join(map(repr, numbers)) or 0} }};\n'
            f'  g_autoptr (GTorchFactors) {prop.name} = gtorch_factors_new ({prop.name}_numbers, {len(numbers)});\n'
        )
        return f'{name}, {prop.name}'
    if prop.kind in ('enum', 'reduction'):
        return f'{name}, {c.constant(prop.enum or "Reduction", found)}'
    if found is None:
        return f'{name}, {NONES.get(prop.kind, "NULL")}'
    if prop.kind == 'bool':
        return f'{name}, {c.boolean(found)}'
    return f'{name}, (gint64) {found}' if prop.kind == 'int' else f'{name}, {float(found)!r}'


def maker(layer, text, name):
    """Returns a function that constructs the layer with the arguments in @text."""
    lines, values = [], ''
    for key, found in bound(layer, text).items():
        values += c_value(layer, layer.prop(key), found, lines) + ', '
    snake = layer.snake.upper()
    return fill('layer-samples.c.in', 'sample', name=name, lines=''.join(lines), SNAKE=snake, values=values)


INPUT = re.compile(r'([\d,]*)(?: (positive|signs|logs|below (\d+)))?')


def given(layer, text):
    """Returns a tensor of a sample: its shape, the kind of its values and the end of their range."""
    match = INPUT.fullmatch(text)
    if match is None:
        layer.fail('sample', f'cannot read the input “{text}”')
    kind = (match[2] or 'waves').split()[0].replace('below', 'integers')
    return {'shape': [int(n) for n in match[1].split(',') if n], 'kind': kind, 'limit': int(match[3] or 0)}


def inputs(layer, sample):
    """Returns the tensors that forward gets."""
    if layer.inputs:
        if not layer.n_needed <= len(sample.get('shapes', ())) <= len(layer.inputs):
            least = f'{layer.n_needed} to ' if layer.n_needed < len(layer.inputs) else ''
            layer.fail('sample', f'shapes must have {least}{len(layer.inputs)} texts')
        return [given(layer, text) for text in sample['shapes']]
    integers = f' below {sample["integers"]}' if 'integers' in sample else ''
    if layer.base != 'Loss':
        return [given(layer, sample['shape'] + integers)]
    return [given(layer, sample['shape']), given(layer, sample['target'] + (integers or ' positive'))]


def c_input(found):
    shape = found['shape']
    kind = f'LAYER_INPUT_{found["kind"].upper()}'
    return f'{{ {{ {", ".join(map(str, shape)) or 0} }}, {len(shape)}, {kind}, {found["limit"]} }}'


def source(layers):
    """Returns the tables of the tests in C."""
    functions, rows, refusals = '', '', ''
    for layer in layers.values():
        for i, sample in enumerate(layer.samples):
            name, text = f'{layer.snake}_{i}', sample.get('new', '')
            functions += maker(layer, text, name)
            tensors = inputs(layer, sample)
            rows += (
                f'  {{ "{layer.name}", {c.string(text)}, {name}, {{ {", ".join(map(c_input, tensors))} }}, '
                f'{len(tensors)}, {c.boolean(layer.base == "Loss" and not layer.inputs)}, '
                f'{c.boolean(sample.get("training", True))}, {c.string(sample["text"])} }},\n'
            )
        for i, text in enumerate(layer.refuse):
            name = f'{layer.snake}_refused_{i}'
            functions += maker(layer, text, name)
            refusals += f'  {{ "{layer.name}", {c.string(text)}, {name} }},\n'
    return fill('layer-samples.c.in', 'samples', functions=functions, rows=rows, refusals=refusals)
