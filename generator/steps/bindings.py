# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The arguments of optimizers and schedules, for Python and for JavaScript, and the samples of the tests."""

import json
import math

from generator.steps import text

NOTE = ('SPDX-FileCopyrightText: The GTorch authors', 'SPDX-License-Identifier: LGPL-2.1-or-later')


def argument(arg):
    """form: None, or what becomes of an argument that is no property; names: the properties."""
    required = arg.form is None and arg.default is None
    return {'name': arg.name, 'required': required, 'default': arg.default, 'form': arg.form,
            'names': [number.name for number in arg.numbers]}


def step_table(step):
    args = [argument(arg) for arg in step.args if arg.name not in step.without]
    positional = [arg.name for arg in step.args[:step.n_positional]]
    if 'capturable' not in [arg['name'] for arg in args]:
        args.append({'name': 'capturable', 'required': False, 'default': False, 'form': 'base', 'names': []})
    return {'name': step.name, 'positional': len([a for a in args if a['name'] in positional]), 'args': args}


def schedule_table(row):
    return {'name': row.name, 'positional': len(row.args), 'args': [argument(arg) for arg in row.args]}


def tables(steps, schedules):
    return [step_table(step) for step in steps], [schedule_table(row) for row in schedules]


def emit_python(steps, schedules):
    optimizers, schedulers = tables(steps, schedules)
    lines = [f'# {line}' for line in NOTE]
    lines += ['"""Made from rows: the arguments of optimizers and of schedules."""', '']
    for name, table in (('OPTIMIZERS', optimizers), ('SCHEDULES', schedulers)):
        lines.append(f'{name} = [')
        for row in table:
            lines += ['    {', f'        \'name\': {row["name"]!r},', f'        \'positional\': {row["positional"]},',
                      '        \'args\': [', *(f'            {arg!r},' for arg in row['args']), '        ],', '    },']
        lines += [']', '']
    return '\n'.join(lines)


def emit_javascript(steps, schedules):
    optimizers, schedulers = tables(steps, schedules)
    lines = [f'// {line}' for line in NOTE]
    lines += ['', '// Made from rows: the arguments of optimizers and of schedules.', '',
              '/* exported OPTIMIZERS SCHEDULES */', '']
    for name, table in (('OPTIMIZERS', optimizers), ('SCHEDULES', schedulers)):
        lines += [f'var {name} = {json.dumps(table, indent=4)};', '']
    return '\n'.join(lines)


def emit_samples(steps, schedules):
    """What the tests need: settings, states with the condition of each, and the published algorithm in Python."""
    found = {'optimizers': [], 'schedules': []}
    for step in steps:
        found['optimizers'].append({
            'name': step.name, 'c_name': step.c_name,
            'numbers': {number.name: number.default for number in step.numbers},
            'states': [{'name': s.name, 'when': s.when, 'begin': s.begin, 'count': s.count} for s in step.states],
            'reference': step.reference, 'samples': step.samples,
        })
    for row in schedules:
        found['schedules'].append({
            'name': row.name, 'numbers': {number.label: number.default for number in row.numbers},
            'reference': row.reference, 'samples': row.samples,
        })
    return json.dumps(found, indent=1) + '\n'


SAMPLES_HEAD = '''/* Settings of optimizers that tests try, made from steps.toml, with the parameters after a few
 * steps of the published algorithm: with the learning rate 0.05, from 1, -2 and 3, with the gradients that
 * gtorch_step_sample_grad () gives. */

#pragma once

#include <gtorch/gtorch.h>

#define GTORCH_STEP_SAMPLE_STEPS 8

static inline gdouble
gtorch_step_sample_grad (guint step, guint element)
{
  return ((step * 3 + element) * 7 % 11 - 5.25) / 8;
}

typedef struct
{
  const gchar *name; /* such as Adam/1 */
  GType (*get_type) (void);
  struct
  {
    const gchar *name; /* of a property, or weight_decay, which is of the group */
    gdouble value;
  } settings[12];
  guint n_settings;
  gdouble weight_decay; /* the default of the class */
  gdouble expected[3];
} GTorchStepSample;

static const GTorchStepSample gtorch_step_samples[] = {
'''


def follow(step, sample, value, element):
    """Where the published algorithm takes a number."""
    defaults = {number.name: number.default for number in step.numbers}
    values = {**vars(math), **defaults, 'lr': 0.05, **sample, 'p': value}
    for state in step.like:
        values[state.name] = eval(state.begin or '0.0', dict(values))
    code = compile(step.reference.strip('\n'), f'{step.name}.reference', 'exec')
    for t in range(8):
        values['t'] = t + 1
        values['g'] = ((t * 3 + element) * 7 % 11 - 5.25) / 8
        try:
            exec(code, values)
        except Exception as error:
            step.fail('reference', f'{type(error).__name__}: {error}')
    return values['p']


def emit_c_samples(steps):
    lines = []
    for step in steps:
        decay = next((number.c_default for number in step.numbers if number.name == 'weight_decay'), '0')
        for index, sample in enumerate(step.samples):
            values = ', '.join(f'{{ {text.c_string(name if name == "weight_decay" else name.replace("_", "-"))},'
                               f' {float(value)!r} }}' for name, value in sample.items())
            found = ', '.join(repr(follow(step, sample, value, i)) for i, value in enumerate((1.0, -2.0, 3.0)))
            lines.append(f'  {{ "{step.name}/{index}", gtorch_{step.c_name}_get_type,'
                         f' {{ {values or "{ NULL, 0 }"} }}, {len(sample)}, {decay}, {{ {found} }} }},')
    return text.HEAD + SAMPLES_HEAD + '\n'.join(lines) + '\n};\n'
