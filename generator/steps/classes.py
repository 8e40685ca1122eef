# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The formulas' table, and the classes of optimizers with their properties, constructors and documentation."""

import math

from . import text
from .expressions import Compiler
from .rows import GROUP_ARGS

C_NAMES = {'lr': 'learning_rate'}  # of arguments in C


def number_names(row):
    """How a number is read from the array of all."""
    return {n.name: f'(numbers[{i}] != 0)' if n.is_bool else f'numbers[{i}]' for i, n in enumerate(row.numbers)}


def fixed_states(step):
    """Bits of the states that there are whatever the settings."""
    return sum(1 << i for i, state in enumerate(step.states) if state.when is None and state.count != 'needed')


def emit_step(step):
    compiler = Compiler(number_names(step))
    states = [f'  {{ {text.c_string(state.name)}, {"TRUE" if state.count else "FALSE"} }},' for state in step.states]
    wanted = [f'  guint states = {fixed_states(step)};', '']
    begin = []
    for index, state in enumerate(step.states):
        if state.when is not None:
            test = step.compile(f'state.{state.name}', compile_text, compiler, state.when)
            wanted += [f'  if ({test})', f'    states |= {1 << index};']
        if state.begin is not None:
            value = step.compile(f'state.{state.name}', compile_text, compiler, state.begin)
            begin += [f'  if (state == {index})', f'    return {value};']
    wanted += ['  return states;']
    return text.fill('step.c.in', title=step.name, name=step.c_name, states='\n'.join(states),
                     wanted='\n'.join(wanted), begin='\n'.join([*begin, '  return 0;']))


def compile_text(compiler, value):
    from .expressions import parse_value

    return compiler.compile(parse_value(value))


def emit_table(steps):
    own = [step for step in steps if step.base is None]
    rows = []
    for step in own:
        lazy = 'TRUE' if any(state.count == 'needed' for state in step.states) else 'FALSE'
        name = step.c_name
        counts = f'{len(step.states)}, {len(step.numbers)}, {fixed_states(step)}'
        rows += [f'  {{ {text.c_string(name)}, {name}_states, {counts}, {lazy},',
                 f'    {name}_get_states, {name}_get_begin }},']
    return text.fill('table.c.in', head=text.HEAD, steps=''.join(map(emit_step, own)).rstrip('\n') + '\n',
                     table='\n'.join(rows))


# --- classes ---


def bound(value):
    return ('-' if value < 0 else '') + 'INFINITY' if math.isinf(value) else repr(value)


def number_row(step, number):
    place = '-1' if number.name in GROUP_ARGS else f'G_STRUCT_OFFSET ({step.root.type_name}, {number.name})'
    return (f'  {{ {text.c_string(number.name)}, GTORCH_FIELD_{number.kind}, {place}, '
            f'{bound(number.least)}, {bound(number.most)}, {bound(number.below)} }},')


def emit_fields(row, numbers, owner):
    """The properties: their documentation and the table that makes them."""
    if not numbers:
        return ''
    lines = []
    for number in numbers:
        lines.append(text.comment(f'{row.type_name}:{number.property_name}:', '', number.doc, '', 'Since: 0.1'))
        lines.append('')
    lines.append(f'static const GTorchField {row.c_name}_fields[] = {{')
    for number in numbers:
        lines.append(f'  {{ {text.c_string(number.property_name)}, GTORCH_FIELD_{number.kind},'
                     f' GTORCH_FIELD ({owner}, {number.name}),'
                     f' {number.c_default}, NULL, TRUE }},')
    return '\n'.join([*lines, '};', '', ''])


def emit_rules(step):
    functions, table = [], []
    compiler = Compiler(number_names(step))
    for name, node in step.checks.items():
        index = [number.name for number in step.numbers].index(name)
        function = f'{step.c_name}_{name}_holds'
        functions += ['static gboolean', f'{function} (const gdouble *numbers)', '{',
                      f'  return {step.compile("check", compiler.compile, node)};', '}', '']
        table.append(f'  {{ {text.c_string(name)}, {text.c_string(step.data["check"][name])}, {index}, {function} }},')
    if not table:
        return '', 'NULL', '0'
    head = [f'static const GTorchStepRule {step.c_name}_rules[] = {{']
    return '\n'.join(functions + head + table + ['};', '', '']), f'{step.c_name}_rules', str(len(table))


def new_arguments(step):
    by_name = {number.name: number for number in step.numbers}
    return [by_name[name] for name in step.new]


def new_params(step):
    given = [f'{number.c_type} {C_NAMES.get(number.name, number.name)}' for number in new_arguments(step)]
    return ', '.join(['GListModel *params', *given, 'GError **error'])


def emit_new_doc(step):
    lines = [f'gtorch_{step.c_name}_new:', '@params: a list of tensors, such as [method@Module.get_parameters] gives']
    for number in new_arguments(step):
        first = number.doc[0].lower() + number.doc[1:].rstrip('.')
        lines.append(f'@{C_NAMES.get(number.name, number.name)}: {first}')
    lines += ['@error: return location for an error', '',
              'Makes an optimizer with one group of parameters. The other settings are properties.', '',
              'Returns: (transfer full): the optimizer, or %NULL with %GTORCH_ERROR_INVALID if a setting is not such '
              'that a step can be made', '', 'Since: 0.1']
    return text.comment(*lines)


def emit_class(step, index):
    parent = step.base.type_name if step.base else 'GTorchOptimizer'
    fields = [f'  {parent} parent_instance;']
    if step.base is None:
        fields += [f'  {number.c_type} {number.name};' for number in step.members]
    rules, rule_table, n_rules = emit_rules(step)
    decay = next((number for number in step.numbers if number.name == 'weight_decay'), None)
    values = ''.join(f'{text.c_string(number.property_name)}, {number.name}, '
                     for number in new_arguments(step) if number.name not in GROUP_ARGS)
    doc = [f'{step.type_name}:', '', step.doc]
    if step.source:
        doc += ['', f'Source: {step.source}']
    return text.fill(
        'class.c.in', title=step.name, doc=text.comment(*doc, '', 'Since: 0.1'), type=step.type_name,
        fields='\n'.join(fields), name=step.c_name, macro=step.macro,
        parent_macro=f'GTORCH_TYPE_{step.base.macro if step.base else "OPTIMIZER"}',
        properties=emit_fields(step, step.own, step.root.type_name),
        numbers='\n'.join(number_row(step, number) for number in step.numbers), rules=rules, rule_table=rule_table,
        n_rules=n_rules, who=text.c_string(step.name.lower()), step=str(index),
        weight_decay=decay.c_default if decay else '0',
        install=f'  GTORCH_FIELDS (klass, {step.c_name}_fields);\n' if step.own else '',
        new_doc=emit_new_doc(step), params=new_params(step), values=values,
        learning_rate='learning_rate' if 'lr' in step.new else step.numbers[0].c_default,
        group_decay='weight_decay' if 'weight_decay' in step.new else (decay.c_default if decay else '0'))


def emit_classes(steps):
    own = [step for step in steps if step.base is None]
    classes = [emit_class(step, own.index(step.root)) for step in steps]
    return text.fill('classes.c.in', head=text.HEAD, classes='\n'.join(classes).rstrip('\n'))


def emit_header(steps):
    classes = [text.fill('class.h.in', macro=step.macro, name=step.c_name, type=step.type_name,
                         parent=step.base.type_name if step.base else 'GTorchOptimizer', params=new_params(step))
               for step in steps]
    return text.fill('header.h.in', head=text.HEAD, what='Optimizers', file='steps.toml',
                     includes='#include <gtorch/optim/gtorch-optimizer.h>', classes=''.join(classes))
