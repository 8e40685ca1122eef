# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The GPU's form of a step. Each block evaluates `once`, since the count of steps and the
learning rate may be in memory that a captured graph changes; one warp computes each power of the
count."""

from generator.steps import fill
from generator.steps.expressions import Compiler, assigned_in, compile_statements, powers_in
from generator.steps.loops import keep_lines, number_texts, prepare_lines


def emit_element(step, names):
    last = 1 + len(step.like)
    names = {**names, 'param': 'param', 'grad': 'grad'}
    lines = ['    C param = gt_convert<C>::from (*x[0]);', f'    C grad = gt_convert<C>::from (*x[{last}]);']
    changed, stores = assigned_in(step.update), ['    *x[0] = gt_convert<T>::from (param);']
    places = {}
    for index, state in enumerate(step.like, 1):
        names[state.name], places[state.name] = state.name, index
        value = f'gt_convert<C>::from (*x[{index}])'
        lines.append(f'    C {state.name} = {f"at[{index}] != NULL ? {value} : (C) 0" if state.when else value};')
        if state.name in changed:
            if state.when:
                stores.append(f'    if (at[{index}] != NULL)')
            stores.append(f'{"  " if state.when else ""}    *x[{index}] = gt_convert<T>::from ({state.name});')
    compiler = Compiler(names, 'C', constants=('true', 'false'))
    lines += compile_statements(step.update, compiler, 'C', lambda name: f'at[{places[name]}] != NULL', '    ')
    return '\n'.join(lines + stores)


def emit_kernel(step):
    powers = powers_in(step.once)
    index_of = {number.name: index for index, number in enumerate(step.numbers)}
    lines, names = prepare_lines(step, 'double', 'bool', 'd')
    names.update({state.name: f'*kept[{i}]' for i, state in enumerate(step.kept)})
    texts = {base: f'powers[{index}]' for index, base in enumerate(powers)}
    compiler = Compiler(names, 'gdouble', texts, ('true', 'false'))
    lines += compile_statements(step.once, compiler, 'const double', None, '  ')
    lines += ['', *(f'  this->{name} = {name};' for name in step.once_names)]
    reals = [name for name in step.once_names if not step.is_bool(name)]
    truths = [name for name in step.once_names if step.is_bool(name)]
    members = [f'  C {", ".join(reals)};'] + ([f'  bool {", ".join(truths)};'] if truths else [])
    base = '0'
    for index in reversed(range(len(powers))):
        value = f'd[{index_of[powers[index]]}]'
        base = value if base == '0' else f'power == {index} ? {value} : {base}'
    return fill('kernels.cuh.in', 'kernel', title=step.name, name=step.c_name, n=str(2 + len(step.like)),
                     n_powers=str(len(powers)), members='\n'.join(members), base=base,
                     prepare='\n'.join(f'  {line}' if line else line for line in lines),
                     element=emit_element(step, {name: name for name in step.once_names}))


def emit_keep(step, index):
    first = 2 + len(step.like)
    names = {**number_texts(step, 'd'), 'lr': 'lr', 't': 't', 'first': '(t == 1)',
             **{state.name: f'(*(const double *) s.data[{first + i}])' for i, state in enumerate(step.kept)}}
    lines = [line.replace('{}', 'double') for line in keep_lines(step, names, '        ')]
    lines += [f'        *(double *) s.data[{first + i}] = {state.name};' for i, state in enumerate(step.kept)]
    return fill('kernels.cuh.in', 'keep', index=str(index), title=step.name, lines='\n'.join(lines))


def emit(steps):
    own = [step for step in steps if step.base is None]
    kept = ''.join(emit_keep(step, index) for index, step in enumerate(own) if step.kept)
    kernels = [f'  GT_STEP_KERNEL (dtype, {step.c_name}) {{ run_steps<T, gt_{step.c_name}<T, C>> (p); }}'
               for step in own]
    return fill('kernels.cuh.in', 'kernels', steps=''.join(map(emit_kernel, own)).rstrip('\n') + '\n', kept=kept,
                     kernels=' \\\n'.join(kernels))
