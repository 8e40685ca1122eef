# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The classes of learning-rate schedules."""

from generator import c
from generator.steps import fill
from generator.steps.classes import bound, comment, emit_fields
from generator.steps.expressions import Compiler
from generator.text import phrase


def params(row):
    given = [number.declaration for number in row.numbers]
    return ', '.join(['GTorchOptimizer *optimizer', *given, 'GError **error'])


def number_row(row, number):
    return (f'  {{ {c.string(number.label)}, {c.string(number.property_name)}, GTORCH_FIELD_{number.kind},'
            f' G_STRUCT_OFFSET ({row.type_name}, {number.name}), {bound(number.least)}, {bound(number.most)},'
            f' {c.boolean(number.is_open)} }},')


def emit_new_doc(row):
    lines = [f'gtorch_{row.c_name}_new:', '@optimizer: the optimizer']
    lines += [f'@{number.name}: {phrase(number.doc)}' for number in row.numbers]
    lines += ['@error: return location for an error', '',
              'Creates a schedule, and sets the learning rates of the first epoch.', '',
              'Returns: (transfer full): the schedule, or %NULL with %GTORCH_ERROR_INVALID if a setting is out of '
              'bounds', '', 'Since: 0.1']
    return comment(*lines)


def emit_lists(row, lists):
    if not lists:
        return ''
    return fill('classes.c.in', 'lists', name=row.c_name, rows=[
        f'{{ {c.string(one.label)}, {c.string(one.property_name)}, GTORCH_FIELD_SIZE,'
        f' G_STRUCT_OFFSET ({row.type_name}, {one.name}) }},' for one in lists])


def emit_next(row, compiler):
    if row.next is None:
        return ''
    return fill('classes.c.in', 'next', name=row.c_name, value=row.compile('next', compiler.compile, row.next))


def emit_class(row):
    single, lists = [n for n in row.numbers if not n.is_list], [n for n in row.numbers if n.is_list]
    names = {number.label: f'numbers[{index}]' for index, number in enumerate(single)}
    names.update({number.label: f'lists[{index}]' for index, number in enumerate(lists)})
    compiler = Compiler({**names, 'base': 'base', 't': 't', 'lr': 'lr', 'pi': 'G_PI'})
    doc = [f'{row.type_name}:', '', row.doc, '',
           f'In epoch t the learning rate is `{row.data["lr"]}`, where base is the initial one.']
    if row.source:
        doc += ['', f'Source: {row.source}']
    fields = ['  GTorchLRScheduler parent_instance;', *(f'  {n.declaration};' for n in row.numbers)]
    return fill(
        'classes.c.in', 'schedule', title=row.name, doc=comment(*doc, '', 'Since: 0.1'), type=row.type_name,
        fields='\n'.join(fields), name=row.c_name, macro=row.macro,
        properties=emit_fields(row, row.numbers, row.type_name),
        numbers='\n'.join(number_row(row, number) for number in single), lists=emit_lists(row, lists),
        list_table=f'{row.c_name}_lists' if lists else 'NULL', n_lists=str(len(lists)), next=emit_next(row, compiler),
        next_name=f'{row.c_name}_next' if row.next else 'NULL',
        lr=row.compile('lr', compiler.compile, row.lr), who=c.string(row.name.lower()),
        new_doc=emit_new_doc(row), params=params(row),
        needed=''.join(f'  g_return_val_if_fail ({one.name} != NULL, NULL);\n' for one in lists),
        values=''.join(f'{c.string(n.property_name)}, {n.name}, ' for n in row.numbers))


def emit_classes(rows):
    return fill('classes.c.in', 'schedules', classes='\n'.join(map(emit_class, rows)).rstrip('\n'))


def emit_header(rows):
    classes = [fill('classes.h.in', 'class', macro=row.macro, name=row.c_name, type=row.type_name,
                         parent='GTorchLRScheduler', params=params(row)) for row in rows]
    includes = '#include <gtorch/base/gtorch-size.h>\n#include <gtorch/optim/gtorch-lr-scheduler.h>'
    return fill('classes.h.in', 'header', what='Schedules of the learning rate', file='schedules.toml',
                     includes=includes, classes=''.join(classes))
