# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The functions create () of layers in Vala, which take all arguments of PyTorch's constructors. They have bodies in
the VAPI, which valac copies into the programs that call them: the constructors of C take what is required alone."""

import json
import pathlib

from generator import c

TYPES = {
    'bool': 'bool',
    'device': 'GTorch.Device?',
    'double': 'double',
    'dtype': 'GTorch.DType',
    'factors': 'double[]?',
    'int': 'int64',
    'module': 'GTorch.Module?',
    'tensor': 'GTorch.Tensor?',
}


def literal(arg):
    """Returns the default of an argument in Vala."""
    value, kind = arg.get('default'), arg['kind']
    if kind == 'dtype':
        return 'GTorch.DType.NONE'
    if value is None:
        return {'int': 'GTorch.NONE', 'double': 'GTorch.NONE_DOUBLE'}.get(kind, 'null')
    if kind == 'size':
        return f'{{ {value} }}'
    if kind in ('enum', 'reduction'):
        return f'GTorch.{arg["enum"]}.{value.upper().replace("-", "_")}'
    return {True: 'true', False: 'false'}[value] if isinstance(value, bool) else repr(value)


def is_taken(arg):
    """Arguments that have no property, or whose default is not that of the property, are not taken."""
    return not (arg['kind'] in ('refused', 'processes') or arg['kind'] == 'bool' and arg.get('default', 0) is None
                or arg['kind'] == 'module' and arg['default'] is not None)


def parameter(arg):
    kind = arg['kind']
    if kind == 'size':
        text = 'int64[]' if arg['required'] or arg['default'] is not None else 'int64[]?'
    elif kind in ('enum', 'reduction'):
        text = f'GTorch.{arg["enum"]}'
    else:
        text = TYPES[kind]
    return f'{text} {arg["name"]}' + ('' if arg['required'] else f' = {literal(arg)}')


def value(arg):
    name, kind = arg['name'], arg['kind']
    made = {'size': 'GTorch.Size', 'factors': 'GTorch.Factors'}.get(kind)
    if made is None:
        return name
    is_null = not arg['required'] and arg['default'] is None
    return f'{name} != null ? new {made} ({name}) : ({made}?) null' if is_null else f'new {made} ({name})'


def create(name, args):
    taken = [arg for arg in args if is_taken(arg)]
    if all(arg['required'] for arg in taken):
        return []
    given = ', '.join(f'"{c.dashed(arg["property"])}", {value(arg)}' for arg in taken)
    return [
        f'[CCode (cname = "_gtorch_vala_{name.lower()}_create")]',
        f'public static GTorch.{name} create ({", ".join(map(parameter, taken))}) throws GLib.Error {{',
        f'\tvar made = (GTorch.{name}) GLib.Object.new (typeof (GTorch.{name}), {given}, null);',
        '\tmade.check ();',
        '\treturn made;',
        '}',
    ]


def members(path):
    """Returns the lines for the class of each layer."""
    layers = json.loads(pathlib.Path(path).read_text('utf-8'))
    found = {name: create(name, layer['args']) for name, layer in layers.items()}
    return {name: lines for name, lines in found.items() if lines}
