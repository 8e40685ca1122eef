# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The conditions on the properties of a layer, as calls in C: they are checked when a layer is made, and those of
properties that can be set later by gtorch_module_check () and by each use, too."""

import re

from generator import c
from generator.rows import RowError
from generator.signatures import RANGE, parse_range


def _rule(layer, prop, rule):
    """Returns (whether the condition concerns several properties, the call that checks it)."""
    word, _, rest = rule.partition(' ')
    place = f'self->{prop.field}'
    lead = f'(module, "{prop.name}", {place}'
    between = re.fullmatch(r'(-?\d+) to (-?\d+)', rule)
    if between:
        return False, f'gtorch_layer_check_between {lead}, {between[1]}, {between[2]}, error)'
    if word == '>=':
        return False, f'gtorch_layer_check_least {lead}, {rest}, error)'
    if word == '>':
        return True, f'gtorch_layer_check_greater {lead}, "{rest}", self->{rest}, error)'
    if word == '%':
        return True, f'gtorch_layer_check_multiple {lead}, "{rest}", self->{rest}, error)'
    if rule == '!= 0':
        return False, f'gtorch_layer_check_nonzero {lead}, error)'
    if word == 'index':
        return True, f'gtorch_layer_check_index (module, "{prop.name}", &{place}, self->{rest}, error)'
    if RANGE.fullmatch(rule):
        check = f'gtorch_layer_check_range {lead}, {", ".join(parse_range(rule))}, error)'
        return False, f'(gtorch_is_none_double ({place}) || {check})' if prop.is_optional else check
    raise RowError(f'{layer.file}:{layer.name}.check.{prop.name}: no such rule: {rule}')


def lines(layer):
    """Returns (the conditions, those of properties that can be set later), in the order of the arguments: sizes and
    limits first, then those of several arguments."""
    first, second, later = [], [], []
    for prop in layer.props:
        rules = layer.check.get(prop.name, [])
        if prop.kind == 'size':
            least = next((rule[3:] for rule in rules if rule.startswith('>= ')), 'G_MININT64')
            call = 'gtorch_layer_check_some_sizes' if prop.has_nones else 'gtorch_layer_check_size'
            line = f'{call} (module, "{prop.name}", self->{prop.field}, {prop.length}, {least}, error)'
            first.append(f'(self->{prop.field} == NULL || {line})' if prop.may_be_absent else line)
            continue
        if prop.kind == 'factors':
            bounds = ', '.join(parse_range(rules[0]))
            call = f'gtorch_layer_check_factors (module, "{prop.name}", {{0}}, {prop.length}, {bounds}, error)'
            place = f'self->{prop.field}'
            first.append(f'({place} == NULL || {call.format(place)})')
            later.append(first[-1])
            continue
        for rule in rules:
            is_second, line = _rule(layer, prop, rule)
            (second if is_second else first).append(line)
            if not prop.is_fixed:
                later.append(line)
    found = first + second
    return found, [line for line in found if line in later]


def choices(layer):
    """Returns lines that set the defaults of choices, which stay where GObject refuses a value."""
    return ''.join(
        f'  self->{prop.field} = {c.constant(prop.enum, prop.default)};\n'
        for prop in layer.props
        if prop.kind == 'enum'
    )
