# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The gradients that are expressions, and the values that they need to be saved."""

from generator.ops import fill
from generator.ops.expressions import Compiler, Value, parse, value_of


def outputs_of(row):
    return ['result'] if row.outputs == [''] else row.outputs


def context_of(row):
    """Returns the values of the names in an expression, and the location of tensors' metadata."""
    names, metas = {'grad': Value('tensor', 'grad0')}, {}
    for i, t in enumerate(row.tensors):
        names[t.name], metas[t.name] = Value('tensor', f'context->inputs[{i}]'), f'context->input_metas[{i}].'
    for i, name in enumerate(outputs_of(row)):
        names[name], metas[name] = Value('tensor', f'context->outputs[{i}]'), f'context->output_metas[{i}].'
        names[f'grads[{i}]'] = Value('tensor', f'grad{i}')
    for i, a in enumerate(row.attrs):
        attr = f'context->attrs[{i}]'
        names[a.name] = value_of(a, f'{attr}.{a.member}', (f'{attr}.list.data', f'{attr}.list.n'))
    return names, metas


def emit_input(row, i, tensor, rows):
    """Returns (the code for one input, the names that it uses)."""
    names, metas = context_of(row)
    key = f'grad.{tensor.name}'
    compiler = Compiler(row, key, rows, names, metas, 'return FALSE;')
    value = compiler.visit(parse(row, key, row.grad[tensor.name]))
    used = set(compiler.used)
    head = fill('gradients.c.in', 'plain', i=str(i))
    if tensor.name in row.fused:
        fused, args = row.fused[tensor.name]
        used |= {a for a in args if a in names}
        passed = ', '.join([names[a].code for a in args] + ['error'])
        head = fill('gradients.c.in', 'fused', i=str(i), call=f'gtorch_op_{fused.name} ({passed})')
    result = []
    if value.kind == 'tensor':
        result = [f'context->result[{i}] = {compiler.result(value)};']
    elif value.code != 'NULL':
        row.fail(key, 'is not a tensor')
    declared = compiler.declarations()
    lines = [*declared, *([''] if declared else []), *compiler.lines]
    row.saved_by[tensor.name] = {
        name for name in used
        if name in names and names[name].code.startswith('context->') and names[name].kind == 'tensor'
    }
    row.saved |= row.saved_by[tensor.name]
    return fill('gradients.c.in', 'input', head=[head], lines=lines, result=result), used


def emit_gradient(row, rows):
    """Returns gtorch_grad_<name> (); also records in row.saved which values the expressions need."""
    found = {t.name: emit_input(row, i, t, rows) for i, t in enumerate(row.tensors) if t.name in row.grad}
    used = set().union(*(names for _, names in found.values()))
    inputs = [text for text, _ in found.values()]
    inputs += [
        fill('gradients.c.in', 'undefined', i=str(i), name=t.name)
        for i, t in enumerate(row.tensors)
        if t.name not in row.grad
    ]
    wanted = {0 if name == 'grad' else int(name[6:-1]) for name in used if name == 'grad' or name[:6] == 'grads['}
    if len(row.outputs) == 1:
        grads = [f'GTorchImpl *grad{i} = context->grads[{i}];' for i in sorted(wanted)]
    else:
        grads = [fill('gradients.c.in', kind, i=str(i)) for kind in ('grad', 'has_grad') for i in sorted(wanted)]
    return fill('gradients.c.in', 'gradient', name=row.name, grads=grads, inputs=inputs)


def emit(rows):
    by_name = {row.name: row for row in rows}
    gradients = ''.join(emit_gradient(row, by_name) for row in rows if row.grad)
    return fill('gradients.c.in', 'file', gradients=gradients)


def saved_masks(row, names):
    """Returns a C bit mask of the inputs, and of the outputs, that are among the names."""
    inputs = [i for i, t in enumerate(row.tensors) if t.name in names]
    if row.list is not None and row.list.name in names:
        inputs.append(31)
    outputs = [i for i, name in enumerate(outputs_of(row)) if name in names]
    return tuple(' | '.join(f'1u << {i}' for i in bits) or '0' for bits in (inputs, outputs))


def emit_saves(rows):
    """Returns the lists of values that the gradient of each single input needs, if expressions
    tell, and their table."""
    lists, table = [], []
    for row in rows:
        if not row.saved or not row.saved_by:
            continue
        masks = [saved_masks(row, row.saved_by.get(t.name, set())) for t in row.tensors]
        text = ', '.join(f'{{ {a}, {b} }}' for a, b in masks)
        lists.append(f'static const GTorchGradSaves saves_{row.name}[] = {{ {text} }};')
        table.append(f'  [{row.constant}] = saves_{row.name},')
    return lists, table
