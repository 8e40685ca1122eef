# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The table of formulas, and the classes of optimizers with their properties, constructors and
documentation."""

import math

from generator import c
from generator.steps import fill
from generator.steps.expressions import Compiler, parse_value
from generator.steps.rows import GROUP_ARGS
from generator.text import phrase, starred, wrap

C_NAMES = {'lr': 'learning_rate'}  # the names of arguments in C


def number_names(row):
    """Returns the expression that reads a number from the array of all."""
    return {n.name: f'(numbers[{i}] != 0)' if n.is_bool else f'numbers[{i}]' for i, n in enumerate(row.numbers)}


def compile_text(compiler, value):
    return compiler.compile(parse_value(value))


def fixed_states(step):
    """Returns the bit mask of the states that always exist, whatever the settings."""
    return sum(1 << i for i, state in enumerate(step.states) if state.when is None and state.count != 'needed')


def emit_step(step):
    compiler = Compiler(number_names(step))

    def compiled(state, value):
        return step.compile(f'state.{state.name}', compile_text, compiler, value)

    return fill(
        'steps.c.in', 'step', title=step.name, name=step.c_name, fixed=str(fixed_states(step)),
        states=[f'{{ {c.string(state.name)}, {c.boolean(state.count)}, {c.boolean(state.is_number)} }},'
                for state in step.states],
        wanted=[fill('steps.c.in', 'wanted', test=compiled(state, state.when), bit=str(1 << i))
                for i, state in enumerate(step.states) if state.when is not None],
        begin=[fill('steps.c.in', 'begin', index=str(i), value=compiled(state, state.begin))
               for i, state in enumerate(step.states) if state.begin is not None],
    )


def emit_table(steps):
    own = [step for step in steps if step.base is None]
    rows = []
    for step in own:
        lazy = c.boolean(any(state.count == 'needed' for state in step.states))
        name = step.c_name
        counts = f'{len(step.states)}, {len(step.numbers)}, {fixed_states(step)}'
        rows += [f'{{ {c.string(name)}, {name}_states, {counts}, {lazy},',
                 f'  {name}_get_states, {name}_get_begin }},']
    return fill('steps.c.in', 'table', steps=''.join(map(emit_step, own)).rstrip('\n') + '\n', table=rows)


# --- classes ---


def bound(value):
    return ('-' if value < 0 else '') + 'INFINITY' if math.isinf(value) else repr(value)


def number_row(step, number):
    """The entry of a number in the table of the settings."""
    arg = next(arg.name for arg in step.args if number in arg.numbers)
    place = GROUP_ARGS.get(number.name, f'G_STRUCT_OFFSET ({step.root.type_name}, {number.name})')
    return (f'  {{ {c.string(number.name)}, {c.string(arg)}, GTORCH_FIELD_{number.kind}, {place}, {number.c_default}, '
            f'{bound(number.least)}, {bound(number.most)}, {bound(number.below)}, {c.boolean(number.is_open)} }},')


def comment(*paragraphs):
    """Returns a documentation comment."""
    lines = []
    for text in paragraphs:
        head = text.startswith('@') or text.endswith(':')
        wrapped = [text] if head and len(text) < 96 else wrap(text, 96, subsequent_indent='  ' if head else '')
        lines += wrapped or ['']
    return ['/**', *starred(lines), ' */']


def emit_fields(row, numbers, owner, kind='GTORCH_FIELD_SETTING'):
    """Returns the properties: their documentation and the table that defines them."""
    if not numbers:
        return ''
    docs, fields = [], []
    for number in numbers:
        docs += [*comment(f'{row.type_name}:{number.property_name}:', '', number.doc, '', 'Since: 0.1'), '']
        fields.append(f'{{ {c.string(number.property_name)}, GTORCH_FIELD_{number.kind},'
                      f' GTORCH_FIELD ({owner}, {number.name}), {number.c_default}, NULL, {kind} }},')
    return fill('classes.c.in', 'fields', docs=docs, name=row.c_name, fields=fields)


def emit_rules(step):
    """Returns (the rules, the name of their table, their number)."""
    functions, table = [], []
    compiler = Compiler(number_names(step))
    for name, node in step.checks.items():
        index = [number.name for number in step.numbers].index(name)
        stem = f'{step.c_name}_{name}'
        functions.append(fill('classes.c.in', 'rule', name=stem, value=step.compile('check', compiler.compile, node)))
        table.append(f'{{ {c.string(name)}, {c.string(step.data["check"][name])}, {index}, {stem}_holds }},')
    if not table:
        return '', 'NULL', '0'
    text = fill('classes.c.in', 'rules', functions=functions, name=step.c_name, rules=table)
    return text, f'{step.c_name}_rules', str(len(table))


def new_arguments(step):
    by_name = {number.name: number for number in step.numbers}
    return [by_name[name] for name in step.new]


def new_params(step):
    given = [f'{number.c_type} {C_NAMES.get(number.name, number.name)}' for number in new_arguments(step)]
    return ', '.join(['GListModel *params', *given, 'GError **error'])


def emit_new_doc(step):
    lines = [f'gtorch_{step.c_name}_new:',
             '@params: a list of tensors, such as the result of [method@Module.get_parameters]']
    for number in new_arguments(step):
        lines.append(f'@{C_NAMES.get(number.name, number.name)}: {phrase(number.doc)}')
    lines += ['@error: return location for an error', '',
              'Creates an optimizer with one group of parameters. The other settings are properties.', '',
              'Returns: (transfer full): the optimizer, or %NULL with %GTORCH_ERROR_INVALID if a setting does not '
              'allow a step', '', 'Since: 0.1']
    return comment(*lines)


def emit_class(step, index):
    parent = step.base.type_name if step.base else 'GTorchOptimizer'
    fields = [f'  {parent} parent_instance;']
    if step.base is None:
        fields += [f'  {number.c_type} {number.name};' for number in step.members]
    rules, rule_table, n_rules = emit_rules(step)
    decay = next((number for number in step.numbers if number.name == 'weight_decay'), None)
    values = ''.join(f'{c.string(number.property_name)}, {number.name}, '
                     for number in new_arguments(step) if number.name not in GROUP_ARGS)
    doc = [f'{step.type_name}:', '', step.doc]
    if step.source:
        doc += ['', f'Source: {step.source}']
    return fill(
        'classes.c.in', 'class', title=step.name, doc=comment(*doc, '', 'Since: 0.1'), type=step.type_name,
        fields='\n'.join(fields), name=step.c_name, macro=step.macro,
        parent_macro=f'GTORCH_TYPE_{step.base.macro if step.base else "OPTIMIZER"}',
        properties=emit_fields(step, step.own, step.root.type_name, 'GTORCH_SETTING_FIELD'),
        numbers='\n'.join(number_row(step, number) for number in step.numbers), rules=rules, rule_table=rule_table,
        n_rules=n_rules, who=c.string(step.name.lower()), step=str(index),
        becomes_capturable=c.boolean('capturable' not in [arg.name for arg in step.args]),
        install=f'  GTORCH_FIELDS (klass, {step.c_name}_fields);\n' if step.own else '',
        new_doc=emit_new_doc(step), params=new_params(step), values=values,
        learning_rate='learning_rate' if 'lr' in step.new else step.numbers[0].c_default,
        group_decay='weight_decay' if 'weight_decay' in step.new else (decay.c_default if decay else '0'))


def emit_classes(steps):
    own = [step for step in steps if step.base is None]
    classes = [emit_class(step, own.index(step.root)) for step in steps]
    return fill('classes.c.in', 'optimizers', classes='\n'.join(classes).rstrip('\n'))


def emit_header(steps):
    classes = [fill('classes.h.in', 'class', macro=step.macro, name=step.c_name, type=step.type_name,
                         parent=step.base.type_name if step.base else 'GTorchOptimizer', params=new_params(step))
               for step in steps]
    return fill('classes.h.in', 'header', what='Optimizers', file='steps.toml',
                     includes='#include <gtorch/optim/gtorch-optimizer.h>', classes=''.join(classes))
