# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Composites that are expressions over other operations, and composites under mixed precision."""

from generator import c
from generator.ops import autocast, checks, fill
from generator.ops.expressions import Compiler, Value, parse, value_of


def inputs_of(row):
    """Returns (declaration, the inputs as an expression, their number)."""
    fixed = [t.name for t in row.tensors]
    if not fixed:
        return ([], 'NULL', '0') if row.list is None else ([], row.list.name, row.list.c_length)
    if row.list is None:
        return [f'GTorchImpl *inputs[] = {{ {", ".join(fixed)} }};'], 'inputs', str(len(fixed))
    total = f'{row.list.c_length} + {len(fixed)}'
    return [f'g_autofree GTorchImpl **inputs = g_new (GTorchImpl *, {total});'], 'inputs', total


def copy_of_list(row):
    """Fills the variable of inputs_of() for a list that follows fixed tensors."""
    if row.list is None or not row.tensors:
        return []
    fixed = [f'inputs[{i}] = {t.name};' for i, t in enumerate(row.tensors)]
    return [fill('functions.c.in', 'copy', fixed=fixed, length=row.list.c_length, n=str(len(fixed)),
                 list=row.list.name)]


def emit(row, rows):
    names, metas = {}, {}
    for a in row.args:
        if a.is_tensor:
            names[a.name], metas[a.name] = Value('tensor', a.name), f'{a.name}->'
        else:
            names[a.name] = value_of(a, a.name, (a.name, a.c_length))
    compiler = Compiler(row, 'composite', rows, names, metas, 'return NULL;')
    value = compiler.visit(parse(row, 'composite', row.data['composite']))
    if row.inplace:
        row.fail('inplace', 'a composite has no in-place form of its own')
    head = c.declaration(row.op_returns(), row.body_name(), row.op_params())
    return fill('functions.c.in', 'composite', declaration=head, locals=compiler.declarations(), lines=compiler.lines,
                result=compiler.result(value))


def cast_argument(row, a, fixed):
    """Returns an argument of the body after the cast."""
    if a.kind == 'Tensor[]':
        return [f'call.inputs + {len(fixed)}' if fixed else 'call.inputs', a.c_length]
    if a.is_tensor:
        return [f'call.inputs[{fixed.index(a.name)}]']
    return [name for _, name in a.c_declaration(False)]


def emit_wrapper(row):
    """Checks a composite's numbers, casts its tensors and runs the body with autocast off, as
    one operation would."""
    outs = row.outputs if len(row.outputs) > 1 else []
    failure = 'FALSE' if outs else 'NULL'
    returns = row.op_returns()
    declaration = c.declaration(returns, f'gtorch_op_{row.name}', row.op_params())
    plain = ', '.join([name for a in row.args for _, name in a.c_declaration(False)] + [*outs, 'error'])
    checked = checks.emit(row, failure)
    if not autocast.is_wrapped(row):
        return fill('functions.c.in', 'checked', declaration=declaration, checks=checked, body=row.body_name(),
                    plain=plain)
    fixed = [t.name for t in row.tensors]
    cast = [text for a in row.args for text in cast_argument(row, a, fixed)]
    inputs, *given = inputs_of(row)
    return fill(
        'functions.c.in', 'autocast', declaration=declaration, checks=checked, inputs=inputs,
        type=returns if returns.endswith('*') else f'{returns} ', body=row.body_name(), op=row.op_class,
        list=given[0], n=given[1], copy=copy_of_list(row), failure=failure, plain=plain,
        cast=', '.join([*cast, *outs, 'error']),
    )
