# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The arguments of the constructors as data, for Python and JavaScript, and the data of their tests."""

import ast
import json
import pprint
import re

from generator import signatures
from generator.layers import fill, samples

# Only the tests read these.
OF_TESTS = ('samples', 'refuse')
# Only Python reads these.
OF_PYTHON = ('doc', 'signature')


def argument(prop):
    found = {'name': prop.name, 'property': prop.field, 'kind': prop.kind, 'required': prop.is_required}
    if prop.python_default is not None:
        found['default'] = ast.literal_eval(prop.python_default)
    if prop.is_optional:
        found['optional'] = True
    if prop.enum or prop.kind == 'reduction':
        found['enum'] = prop.enum or 'Reduction'
    if prop.has_rule:
        found['rule'] = 'PaddingRule'
    if prop.length:
        found['length'] = prop.length
    if prop.is_given:
        found['given'] = True
    if prop.has_nones:
        found['nones'] = True
    if prop.kind == 'refused':
        found['why'] = prop.doc
    return found


def arguments(layer):
    found = [argument(prop) for prop in layer.props if prop.name not in layer.named]
    if layer.moves:
        for name in ('device', 'dtype'):
            found.append({'name': name, 'property': name, 'kind': name, 'required': False, 'default': None})
    return found + [{**argument(prop), 'named': True} for prop in layer.props if prop.name in layer.named]


def signature(layer):
    if layer.any:
        return '($self, *args, **kwargs)'
    args = arguments(layer)
    texts = [(arg['name'], arg['required'], arg.get('default')) for arg in args]
    return signatures.constructor(texts, len(args) - len(layer.named))


def sample(layer, row):
    positional, named = samples.parse(layer, row.get('new', ''))
    inputs = samples.inputs(layer, row) if 'shape' in row or 'shapes' in row else []
    return {**row, 'new': row.get('new', ''), 'positional': positional, 'named': named, 'inputs': inputs}


def table(layers):
    return {
        layer.name: {
            'doc': layer.doc,
            'any': layer.any,
            'signature': signature(layer),
            **({'space': layer.space} if layer.space else {}),
            **({'inputs': list(layer.inputs)} if layer.inputs else {}),
            **({'lists': layer.lists} if layer.lists else {}),
            **({'needed': layer.n_needed} if layer.n_needed < len(layer.inputs) else {}),
            'args': arguments(layer),
            'samples': [sample(layer, row) for row in layer.samples],
            'refuse': [sample(layer, {'new': text}) for text in layer.refuse],
        }
        for layer in layers.values()
    }


def without(rows, *left_out):
    return {name: {k: v for k, v in row.items() if k not in left_out} for name, row in rows.items()}


def plain(doc):
    """The documentation for help(): without examples in C and links of the manual."""
    doc = re.sub(r'\n*```c\n.*?```', '', doc, flags=re.DOTALL)
    return re.sub(r'\[\w+@([\w.]+)\]', r'\1', doc).replace('@', '').replace('%', '').strip()


def python(rows):
    rows = {name: {**row, 'doc': plain(row['doc'])} for name, row in rows.items()}
    return fill('table.py.in', table=pprint.pformat(without(rows, *OF_TESTS), width=110, sort_dicts=False))


def gjs(rows):
    return fill('table.js.in', table=json.dumps(without(rows, *OF_TESTS, *OF_PYTHON), indent=4))


def shown(arg):
    """Returns an argument as the manual shows it."""
    return arg['name'] if arg['required'] else f'{arg["name"]}={arg["default"]!r}'


def manual(rows):
    """Returns the table of all layers."""
    lines = ['| layer | |', '|---|---|']
    for name, row in rows.items():
        args = ', '.join(shown(arg) for arg in row['args'] if arg['kind'] != 'refused')
        sentence = ' '.join(row['doc'].split('\n\n')[0].split())
        lines.append(f'| `{name}({args})` | {sentence} |')
    return '\n'.join(lines) + '\n'


EMITTERS = {'python': python, 'gjs': gjs, 'manual': manual}
