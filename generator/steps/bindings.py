# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The arguments of optimizers and schedules, for Python and for JavaScript, and the samples of the tests."""

import json
import math

from generator import c, signatures
from generator.steps import fill, own


def argument(arg):
    """form: None, or how an argument that is no property is handled; names: the properties."""
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
    return [step_table(step) for step in steps] + own.OPTIMIZERS, [schedule_table(row) for row in schedules]


def signature(row, more):
    first, *last = more
    args = [(arg['name'], arg['required'], arg['default']) for arg in row['args']]
    return signatures.constructor([first, *args, *last], row['positional'] + len(more))


def python_row(row, *more):
    args = [f'{arg!r},' for arg in row['args']]
    return fill('table.py.in', 'row', name=repr(row['name']), positional=repr(row['positional']), args=args,
                signature=repr(signature(row, more)))


def emit_python(steps, schedules):
    steps, schedules = tables(steps, schedules)
    optimizers = [python_row(row, ('params', True, None)) for row in steps]
    schedulers = [python_row(row, ('optimizer', True, None), ('last_epoch', False, -1)) for row in schedules]
    return fill('table.py.in', 'table', optimizers=optimizers, schedules=schedulers)


def emit_javascript(steps, schedules):
    optimizers, schedulers = (json.dumps(table, indent=4) for table in tables(steps, schedules))
    return fill('table.js.in', 'table', optimizers=optimizers, schedules=schedulers)


def emit_samples(steps, schedules):
    """The data of the tests: settings, states with the condition of each, and the published
    algorithm in Python."""
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


def follow(step, sample, value, element):
    """The sources of the numbers in the published algorithm."""
    defaults = {number.name: number.default for number in step.numbers}
    values = {**vars(math), **defaults, 'lr': 0.05, **sample, 'p': value}
    for state in step.like + step.kept:
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
            values = ', '.join(f'{{ {c.string(name if name == "weight_decay" else c.dashed(name))},'
                               f' {float(value)!r} }}' for name, value in sample.items())
            found = ', '.join(repr(follow(step, sample, value, i)) for i, value in enumerate((1.0, -2.0, 3.0)))
            lines.append(f'{{ "{step.name}/{index}", gtorch_{step.c_name}_get_type,'
                         f' {{ {values or "{ NULL, 0 }"} }}, {len(sample)}, {decay}, {{ {found} }} }},')
    return fill('samples.h.in', 'samples', rows=lines)
