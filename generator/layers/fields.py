# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The members of a layer's instance that are properties, and expressions over them."""

import re

from generator import c
from generator.signatures import NONE
from generator.text import sentence

C_TYPES = {
    'int': 'gint64 ',
    'double': 'gdouble ',
    'bool': 'gboolean ',
    'enum': 'gint ',
    'size': 'GTorchSize *',
    'factors': 'GTorchFactors *',
    'device': 'GTorchDevice *',
    'dtype': 'gint ',
}
KINDS = {'int': 'INT64', 'double': 'DOUBLE', 'bool': 'BOOL', 'enum': 'ENUM', 'size': 'SIZE', 'factors': 'BOXED'}
RULE = 'PaddingRule'


class Field:
    """Returns a member of the instance that is a property."""

    def __init__(self, name, kind, **rest):
        self.name, self.kind = name, kind
        self.value, self.doc = rest.get('value', '0'), rest['doc']
        self.enum, self.text = rest.get('enum'), rest.get('text', 'HIDDEN')
        self.is_mutable, self.is_optional = rest.get('is_mutable', False), rest.get('is_optional', False)
        self.length = rest.get('length', 0)

    def row(self, layer):
        if self.kind in ('device', 'dtype'):
            return f'  GTORCH_LAYER_{self.kind.upper()} (GTorch{layer.name}),\n'
        type_ = f'gtorch_{c.snake(self.enum)}_get_type' if self.enum else 'NULL'
        type_ = 'gtorch_factors_get_type' if self.kind == 'factors' else type_
        flags = 'SETTING' if self.is_mutable else 'FIXED'
        return (
            f'  {{ "{c.dashed(self.name)}", GTORCH_FIELD_{KINDS[self.kind]}, '
            f'GTORCH_FIELD (GTorch{layer.name}, {self.name}), {self.value}, {type_}, GTORCH_FIELD_{flags}, '
            f'GTORCH_FIELD_{self.text}, {c.boolean(self.is_optional)}, {self.length} }},\n'
        )


def default_value(prop):
    """Returns the default as a C expression that fits into a double."""
    is_none = prop.is_unsaid or prop.may_be_absent
    if prop.default is None or is_none or (prop.kind == 'size' and not re.fullmatch(r'-?\d+', prop.default)):
        return '0'
    if prop.kind == 'enum':
        return c.constant(prop.enum, prop.default)
    if prop.default == 'None':
        return NONE[prop.kind]
    return {'true': '1', 'false': '0'}.get(prop.default, prop.default)


def fields_of(layer):
    found = []
    for prop in layer.props:
        if not prop.is_field:
            continue
        doc = sentence(prop.doc)
        if prop.is_optional:
            doc += f' %{NONE[prop.kind]}: none.'
        if prop.may_be_absent:
            doc += ' %NULL: none.'
        if prop.length > 1:
            doc += f' A single number applies to {"both dimensions" if prop.length == 2 else "all"}.'
        found.append(
            Field(
                prop.field, prop.kind, value=default_value(prop), doc=doc, enum=prop.enum,
                text=layer.texts.get(prop.name, 'HIDDEN'), is_mutable=not prop.is_fixed,
                is_optional=prop.is_optional, length=0 if prop.length == 1 and not prop.is_given else prop.length,
            )
        )
        if prop.has_rule:
            text = f'The rule for {prop.doc}. Other rules than numbers set [property@{layer.name}:{prop.name}] to 0.'
            found.append(Field(f'{prop.field}_rule', 'enum', value=c.constant(RULE, 'numbers'), doc=text, enum=RULE,
                               text=layer.texts.get(prop.name, 'HIDDEN')))
    if layer.moves:
        places = 'The device of the parameters; at construction, the one on which they are created.'
        found.append(Field('device', 'device', doc=places))
        dtypes = 'The dtype of the parameters, also at construction.'
        found.append(Field('dtype', 'dtype', doc=dtypes))
    return found


def with_self(layer, text):
    """Replaces the arguments' names in an expression by members of the instance."""
    names = [field.name for field in fields_of(layer)]
    pattern = r'(?<![\w"])(' + '|'.join(map(re.escape, sorted(names, key=len, reverse=True))) + r')\b(?!")'
    if not names:
        return text
    return ''.join(
        part if part.startswith('"') else re.sub(pattern, r'self->\1', part)
        for part in re.split(r'("[^"]*")', text)
    )


def called(layer, text, *before):
    """Returns a call of a function that a row names, with the common first and last arguments."""
    name, arguments = re.fullmatch(r'(\w+) \((.*)\)', text).groups()
    return f'{name} ({", ".join([*before, *filter(None, [with_self(layer, arguments)])])})'
