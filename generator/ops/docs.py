# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The documentation of operations."""

from generator.ops import autocast, checks
from generator.signatures import NONE
from generator.text import starred, wrap

DTYPES = {
    'float': 'floating-point dtypes',
    'int': 'integers',
    'real': 'integers and floating-point dtypes',
    'number': 'all dtypes but bool',
    'floatl': 'floating-point dtypes and int64',
    'floatc': 'floating-point and complex dtypes',
    'complex': 'complex dtypes',
    'wide': 'float32 and float64',
    'widec': 'float32, float64, complex64 and complex128',
    'realb': 'all dtypes but complex ones',
    'intb': 'integers and bool',
    'bool': 'bool',
    'all': 'all dtypes',
}
PROMOTIONS = {
    'common': 'Inputs of different dtypes are promoted to their common dtype, which is also the result\'s.',
    'float': 'Integers and bool are converted to the default floating-point dtype.',
    'bool': 'Inputs are promoted to their common dtype; the result is of dtype bool.',
    'sum': 'Integers and bool give int64.',
    'real': 'A complex input gives its real dtype.',
    'int': 'Bool gives int64.',
    'bounds': 'Bool is taken as int64. Integers stay integers if the bounds are whole numbers; other bounds give the '
    'default floating-point dtype.',
    'none': '',
}


def paragraph(text):
    return wrap(text, 97, break_on_hyphens=False)


def arguments(form):
    texts = form.row.data.get('params', {})
    for a in form.row.args:
        annotation, text = a.doc()
        text = texts.get(a.name, text)
        if a.name == form.scalar:
            annotation, text = '', 'a number'
        is_element = a.kind == 'number' or a.name == form.scalar
        if a.is_any_int or is_element and form.number == 'gint64' and not a.is_bound:
            text += '; %GTORCH_NONE is one, too'
        if a.default is not None and a.default not in ('None', '[]'):
            text += f'; {a.default} by default in the bindings'
            if a.has_items:
                text += ', as with %NULL'
            elif (a.is_bound or a.is_optional and a.kind in NONE) and 'GTORCH_NONE' not in text:
                text += f', as with %{NONE["int" if form.whole else "double" if a.is_bound else a.kind]}'
        yield from paragraph(f'@{a.name}: {annotation}{": " if annotation else ""}{text}')
        if a.c_length:
            yield f'@{a.c_length}: the length of @{a.name}'
    for o in form.outs:
        nullable = o in form.row.nullable
        text = f'the {o.replace("_", " ")}{", or %NULL" if nullable else ""}'
        yield from paragraph(f'@{o}: (out) (transfer full){" (nullable)" if nullable else ""}: {texts.get(o, text)}')
    yield '@error: return location for an error'


def description(form):
    text = form.row.data['doc']
    if form.in_place:
        text += ' The result is written to @self.'
    if form.scalar:
        text += f' Here @{form.scalar} is a number, which takes part in type promotion by its kind only.'
    if form.whole:
        text += ' Here numbers are integers of 64 bits, which a double may not represent exactly.'
        if any(a.is_bound for a in form.row.args):
            text += f' A bound of -2147483648 is one for {form.name.replace("_int", "")} (), since it is %GTORCH_NONE.'
    return text


def rules(row):
    text = f'Defined for {DTYPES[row.dtypes]}. {PROMOTIONS[row.promote]}'
    if row.family == 'pointwise' and len(row.tensors) > 1:
        text += ' Shapes are broadcast.'
    if row.family == 'view':
        text += ' The result shares the memory of @self.'
    if not (row.grad or row.grad_function or row.composite) and not row.internal:
        text += ' Not differentiable.'
    return text + autocast.text(row) + checks.text(row)


def result(form):
    if form.in_place:
        return f'(transfer none): @{form.row.args[0].name}, or %NULL with @error set'
    if form.row.returns_list:
        return '(transfer container) (element-type GTorchTensor): the tensors, or %NULL with\n  @error set'
    if form.outs:
        return '%TRUE, or %FALSE with @error set'
    return '(transfer full): the result, or %NULL with @error set'


def emit(form):
    """Returns the lines of the comment."""
    data = form.row.data
    lines = [f'{form.name}:', *arguments(form), '', *paragraph(description(form))]
    if 'formula' in data:
        lines += ['', f'Formula: `{data["formula"]}`']
    if 'source' in data:
        lines += ['', *paragraph(f'Source: {data["source"]}')]
    lines += ['', *paragraph(rules(form.row)), '', *f'Returns: {result(form)}'.split('\n'), '']
    return ['/**', *starred([*lines, f'Since: {data.get("since", "0.1")}']), ' */']
