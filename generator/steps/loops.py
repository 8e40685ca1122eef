# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The CPU's loops: `once`, then the update of each element.

They are compiled for contiguous elements of the dtypes that are computed in, with and without the optional
states, since a branch in a loop would prevent vectorisation.
"""

import itertools

from generator.steps import fill
from generator.steps.expressions import Compiler, assigned_in, compile_statements, names_in, parse_value

DTYPES = {'f32': 'float', 'f64': 'double'}


def prepare_lines(step, real='gdouble', truth='gboolean', numbers='numbers'):
    """Declares the arguments that are read, then evaluates `once`. Returns the compiler with its
    names, too."""
    read = {name for name in names_in(step.once)} | set(step.once_names)
    lines = []
    names = {'t': 't', 'first': 'first', **{state.name: f'kept[{i}]' for i, state in enumerate(step.kept)}}
    for index, number in enumerate(step.numbers):
        names[number.name] = number.name
        if number.name not in read or (number.name == 'lr' and numbers == 'd'):
            continue
        test = ' != 0' if number.is_bool else ''
        lines.append(f'  const {truth if number.is_bool else real} {number.name} = {numbers}[{index}]{test};')
    return lines, names


def emit_prepare(step):
    lines, names = prepare_lines(step)
    compiler = Compiler(names)
    lines += compile_statements(step.once, compiler, 'const gdouble', None, '  ')
    lines.append('')
    lines += [f'  once[{index}] = {name};' for index, name in enumerate(step.once_names)]
    return fill('loops.c.in', 'prepare', title=step.name, name=step.root.c_name, lines='\n'.join(lines))


def keep_lines(step, names, indent):
    """Computes the numbers that a row keeps for a parameter, all from the former ones."""
    compiler = Compiler(names)
    lines = [f'{indent}const {{}} {state.name} = {compiler.compile(parse_value(state.number))};' for state in step.kept]
    return lines + ['']


def number_texts(step, array):
    return {n.name: f'({array}[{i}] != 0)' if n.is_bool else f'{array}[{i}]' for i, n in enumerate(step.numbers)}


def emit_keep(step):
    if not step.kept:
        return ''
    names = {**number_texts(step, 'numbers'), 't': 't', 'first': 'first',
             **{state.name: f'kept[{i}]' for i, state in enumerate(step.kept)}}
    lines = [line.replace('{}', 'gdouble') for line in keep_lines(step, names, '  ')]
    lines += [f'  kept[{i}] = {state.name};' for i, state in enumerate(step.kept)]
    return fill('loops.c.in', 'keep', name=step.c_name, lines='\n'.join(lines))


def masks(step):
    """Returns the bit masks of the sets of tensor states that a step may have."""
    fixed = sum(1 << index for index, state in enumerate(step.like) if state.when is None)
    bits = [1 << index for index, state in enumerate(step.like) if state.when is not None]
    for chosen in itertools.product((0, 1), repeat=len(bits)):
        yield fixed + sum(bit for bit, take in zip(bits, chosen) if take)


def emit_loop(step, suffix):
    real = DTYPES[suffix]
    bits = {state.name: 1 << index for index, state in enumerate(step.like)}
    constants, names = [], {'param': 'param', 'grad': 'grad'}
    for index, name in enumerate(step.once_names):
        kind = ('gboolean', ' != 0') if step.is_bool(name) else (real, '')
        constants.append(f'  const {kind[0]} {name} = once[{index}]{kind[1]};')
        names[name] = name

    def at(place):
        return f'(({real} *) at[{place}])[i]'

    loads = [f'      {real} param = {at(0)};', f'      {real} grad = {at(1)};']
    changed = assigned_in(step.update)
    stores = [f'      {at(0)} = param;']
    for index, state in enumerate(step.like):
        value, keep = at(2 + index), f'{at(2 + index)} = {state.name};'
        names[state.name] = state.name
        has = f'(states & {bits[state.name]}) != 0'
        loads.append(f'      {real} {state.name} = {f"{has} ? {value} : 0" if state.when else value};')
        if state.name in changed:
            stores += [f'      if ({has})', f'        {keep}'] if state.when else [f'      {keep}']
    inner = [name for name in changed if name not in names]
    if inner:
        loads.append(f'      {real} {", ".join(inner)};')
        names.update({name: name for name in inner})
    loads.append('')
    update = compile_statements(step.update, Compiler(names, real), real,
                                lambda name: f'(states & {bits[name]}) != 0', '      ')
    cases = []
    for mask in masks(step):
        cases += [f'    case {mask}:',
                  f'      {step.c_name}_loop_{suffix} (data, n, run->once, {mask});',
                  '      break;']
    return fill('loops.c.in', 'loop', name=step.c_name, suffix=suffix, n=str(2 + len(step.like)),
                     constants='\n'.join(constants), loads='\n'.join(loads), update='\n'.join(update),
                     stores='\n'.join(stores), cases='\n'.join(cases))


def emit(steps):
    out, table = [], []
    for step in steps:
        if step.base is not None:
            continue
        out += [emit_prepare(step), emit_keep(step)]
        out += [emit_loop(step, suffix) for suffix in DTYPES]
        out.append(fill('loops.c.in', 'dispatch', name=step.c_name, n=str(2 + len(step.like))))
        keep = f'{step.c_name}_keep' if step.kept else 'NULL'
        table.append(f'  {{ {step.c_name}_prepare, {keep}, {step.c_name}_run }},')
    return fill('loops.c.in', 'loops', steps=''.join(out).rstrip('\n') + '\n', table='\n'.join(table))
