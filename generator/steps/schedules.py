# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The classes of schedules of the learning rate."""

from generator.steps import text
from generator.steps.classes import bound, emit_fields
from generator.steps.expressions import Compiler


def params(row):
    given = [f'{number.c_type} {number.name}' for number in row.numbers]
    return ', '.join(['GTorchOptimizer *optimizer', *given, 'GError **error'])


def number_row(row, number):
    return (f'  {{ {text.c_string(number.label)}, {text.c_string(number.property_name)}, GTORCH_FIELD_{number.kind},'
            f' G_STRUCT_OFFSET ({row.type_name}, {number.name}), {bound(number.least)}, {bound(number.most)} }},')


def emit_new_doc(row):
    lines = [f'gtorch_{row.c_name}_new:', '@optimizer: whose learning rate it is']
    lines += [f'@{number.name}: {number.doc[0].lower()}{number.doc[1:].rstrip(".")}' for number in row.numbers]
    lines += ['@error: return location for an error', '',
              'Makes a schedule, and sets the learning rates of the first epoch.', '',
              'Returns: (transfer full): the schedule, or %NULL with %GTORCH_ERROR_INVALID if a setting is not within '
              'its bounds', '', 'Since: 0.1']
    return text.comment(*lines)


def emit_class(row):
    names = {number.label: f'numbers[{index}]' for index, number in enumerate(row.numbers)}
    compiler = Compiler({**names, 'base': 'base', 't': 't', 'pi': 'G_PI'})
    doc = [f'{row.type_name}:', '', row.doc, '',
           f'With the learning rate base at first, in epoch t it is: `{row.data["lr"]}`.']
    if row.source:
        doc += ['', f'Source: {row.source}']
    fields = ['  GTorchLRScheduler parent_instance;', *(f'  {n.c_type} {n.name};' for n in row.numbers)]
    return text.fill(
        'schedule.c.in', title=row.name, doc=text.comment(*doc, '', 'Since: 0.1'), type=row.type_name,
        fields='\n'.join(fields), name=row.c_name, macro=row.macro,
        properties=emit_fields(row, row.numbers, row.type_name),
        numbers='\n'.join(number_row(row, number) for number in row.numbers),
        lr=row.compile('lr', compiler.compile, row.lr), who=text.c_string(row.name.lower()),
        new_doc=emit_new_doc(row), params=params(row),
        values=''.join(f'{text.c_string(n.property_name)}, {n.name}, ' for n in row.numbers))


def emit_classes(rows):
    return text.fill('schedules.c.in', head=text.HEAD,
                     classes='\n'.join(map(emit_class, rows)).rstrip('\n'))


def emit_header(rows):
    classes = [text.fill('class.h.in', macro=row.macro, name=row.c_name, type=row.type_name,
                         parent='GTorchLRScheduler', params=params(row)) for row in rows]
    return text.fill('header.h.in', head=text.HEAD, what='Schedules of the learning rate', file='schedules.toml',
                     includes='#include <gtorch/optim/gtorch-lr-scheduler.h>', classes=''.join(classes))
