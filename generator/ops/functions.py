# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The internal functions, one for each form of an operation, and the header of all operations."""

from generator import c
from generator.ops import checks, composites, devices, fill
from generator.ops.composites import copy_of_list, inputs_of


def attrs_of(row, number):
    """Returns (declaration, the attributes as an expression)."""
    if not row.attrs:
        return [], 'NULL'
    values = ', '.join(a.c_attr(number == 'gint64') for a in row.attrs)
    return [f'const GTorchAttr attrs[] = {{ {values} }};'], 'attrs'


def emit_function(row, form, number):
    """Returns the function, and its in-place form."""
    inputs, *passed = inputs_of(row)
    attrs, values = attrs_of(row, number)
    arguments = ', '.join([row.op_class, *passed, values])
    name = f'gtorch_op_{row.name}{form}'
    if len(row.outputs) == 1:
        result = fill('functions.c.in', 'one', arguments=f'{arguments}, outputs, error')
    else:
        outputs = [fill('functions.c.in', 'output', name=o, i=str(i)) for i, o in enumerate(row.outputs)]
        result = fill('functions.c.in', 'several', arguments=f'{arguments}, outputs, error', outputs=outputs)
    text = fill(
        'functions.c.in', 'function', declaration=c.declaration(row.op_returns(), name, row.op_params(number)),
        locals=inputs + attrs, n=str(len(row.outputs)), copy=copy_of_list(row), result=[result],
        checks=checks.emit(row, 'NULL' if len(row.outputs) == 1 else 'FALSE'),
    )
    if row.inplace:
        head = c.declaration('gboolean', f'{name}_inplace', row.in_place_params(number))
        text += fill('functions.c.in', 'in_place', declaration=head, locals=inputs + attrs, copy=copy_of_list(row),
                     arguments=f'{arguments}, error', checks=checks.emit(row, 'FALSE'))
    return text


def emit(rows):
    by_name = {row.name: row for row in rows}
    functions = []
    for row in rows:
        if not row.composite:
            functions += [emit_function(row, form, number) for form, number in row.op_forms()]
        elif 'composite' in row.data:
            functions.append(composites.emit(row, by_name))
        if row.is_wrapped():
            functions.append(composites.emit_wrapper(row))
    return fill('functions.c.in', 'file', functions=''.join(functions))


def prototypes(row):
    found = []
    for form, number in row.op_forms():
        name = f'gtorch_op_{row.name}{form}'
        found.append(c.prototype(row.op_returns(), name, row.op_params(number)))
        if row.inplace:
            found.append(c.prototype('gboolean', f'{name}_inplace', row.in_place_params(number)))
    if row.grad or row.grad_function:
        found.append(f'gboolean gtorch_grad_{row.name} (GTorchGradContext *context, GError **error);')
    if row.is_wrapped():
        found.append(c.prototype(row.op_returns(), row.body_name(), row.op_params()))
    return found


def shape_functions(rows):
    """The shape functions that are written by hand."""
    names = {row.shape_function() for row in rows
             if not row.composite and (row.family in ('view', 'structured') or 'shape' in row.data)}
    return [f'gboolean {name} (GTorchOpCall *call, GError **error);' for name in sorted(names)]


def emit_header(rows):
    written = sorted({row.data['writes'] for row in rows if 'writes' in row.data})
    return fill(
        'ops.h.in', 'file', constants=[f'{row.constant},' for row in rows],
        functions=[line for row in rows for line in prototypes(row)],
        written=[f'gboolean gtorch_writes_{name} (const GTorchOpCall *call, guint i);' for name in written],
        shapes=shape_functions(rows), runs=devices.declarations(rows),
    )
