# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The operations as functions of the C accelerator: what they do not take is left to the Python ones."""

import json

INT_MAX = 2**63 - 1

NUMBER_SLOTS = {
    '+': 'add',
    '-': 'subtract',
    '*': 'multiply',
    '/': 'true_divide',
    '//': 'floor_divide',
    '%': 'remainder',
    '@': 'matrix_multiply',
    '&': 'and',
    '|': 'or',
    '^': 'xor',
    '<<': 'lshift',
    '>>': 'rshift',
}
SPECIAL = {
    '+': 'add',
    '-': 'sub',
    '*': 'mul',
    '/': 'truediv',
    '//': 'floordiv',
    '%': 'mod',
    '@': 'matmul',
    '&': 'and',
    '|': 'or',
    '^': 'xor',
    '<<': 'lshift',
    '>>': 'rshift',
}
COMPARE = {'==': 'EQ', '!=': 'NE', '<': 'LT', '<=': 'LE', '>': 'GT', '>=': 'GE'}
UNARY = {'neg': 'negative', '~': 'invert', 'abs': 'absolute'}


def variable(arg):
    """Declaration, test with conversion, and what is passed to C."""
    name, default = arg.c_name, arg.default
    if arg.kind in ('Tensor', 'Tensor?'):
        test = 'gt_tensor' if arg.kind == 'Tensor' else 'gt_optional'
        return f'GTorchTensor *{name} = NULL', f'{test} ({{}}, &{name})', name
    if arg.kind == 'int':
        value = 0 if default is None else arg.number
        text = {INT_MAX: 'G_MAXINT64', -INT_MAX - 1: 'G_MININT64'}.get(value, str(value))
        return f'gint64 {name} = {text}', f'gt_int ({{}}, &{name})', name
    if arg.kind == 'double':
        value = '0' if default is None else repr(arg.number).replace('inf', 'INFINITY')
        return f'gdouble {name} = {value}', f'gt_double ({{}}, &{name})', name
    if arg.kind == 'number':
        value = '{ 0 }'
        if default is not None:
            real = repr(float(arg.number)).replace('inf', 'INFINITY')
            whole = {'inf': 'G_MAXINT64', '-inf': 'G_MININT64'}.get(default) or str(arg.number)
            kind = 'GT_INFINITE' if default in ('inf', '-inf') else 'GT_INTEGER'
            value = f'{{ {real}, {whole}, {kind} }}'
        return f'Number {name} = {value}', f'gt_element ({{}}, &{name})', f'{name}.real'
    if arg.kind == 'bool':
        value = 'TRUE' if default == 'true' else 'FALSE'
        return f'gboolean {name} = {value}', f'gt_bool ({{}}, &{name})', name
    if arg.kind == 'int[]':
        values = [] if default is None else json.loads(default)
        text = f'{{ {len(values)}, {{ {", ".join(map(str, values)) or "0"} }} }}'
        return f'Ints {name} = {text}', f'gt_ints ({{}}, &{name})', f'{name}.data, {name}.n'
    if arg.kind == 'DType':
        return f'gint {name} = GTORCH_DTYPE_NONE', f'gt_dtype ({{}}, &{name})', name
    if arg.kind == 'enum':
        if default is None:
            return None
        words = ''.join('_' + c if c.isupper() else c.upper() for c in arg.enum)
        member = f'GTORCH{words}_{default.upper()}'
        return f'gint {name} = {member}', f'gt_enum ({{}}, &{name})', name
    return f'gpointer {name} = NULL', '(({}) == Py_None)', name


def supported(row):
    if not row.method or row.returns_more:
        return False
    return all(a.kind != 'Tensor[]' and (a.kind != 'enum' or not a.required) for a in row.args)


def emit_function(row, in_place):
    name = row.name + ('_' if in_place else '')
    tail = '_inplace' if in_place else ''
    args = row.args[1:]
    lines = ['static PyObject *']
    lines += [f'op_{name} (PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)', '{']
    if args:
        texts = ', '.join(f'"{a.name}"' for a in args)
        lines.append(f'  static const char *const known[] = {{ {texts} }};')
        lines.append(f'  PyObject *v[{len(args)}] = {{ NULL }};')
    described = [variable(a) for a in args]
    lines += [f'  {declaration};' for declaration, _, _ in described]
    if row.scalar and len(row.forms) > 1:
        lines += ['  gdouble number = 0;', '  gint64 whole = 0;', '  int form = GT_TENSOR;']
    tests = []
    if args:
        n_required = len([a for a in args if a.required])
        collect = 'gt_collect_sizes' if row.variadic else 'gt_collect'
        extra = f', &{row.variadic.c_name}' if row.variadic else ''
        tests.append(
            f'!{collect} (known, {len(args)}, {n_required}, args, n, names, v{extra})'
        )
    else:
        tests.append('n != 0 || names != NULL')
    for i, (arg, (_, test, _)) in enumerate(zip(args, described)):
        value = f'v[{i}]'
        if row.scalar and arg.name == row.scalar and len(row.forms) > 1:
            tests.append(
                f'!(form = gt_form ({value}, &{arg.c_name}, &number, &whole, '
                f'{int("_int" in row.forms)}))'
            )
        else:
            tests.append(f'({value} != NULL && !{test.format(value)})')
    lines += ['', '  if (' + '\n      || '.join(tests) + ')']
    lines += [f'    return gt_fallback ("{name}", self, args, n, names);']

    def call(form, number):
        values = ['gt_get (self)']
        for arg, (_, _, passed) in zip(args, described):
            if form and arg.kind == 'number':
                passed = f'{arg.c_name}.whole'
            values.append(number if form and arg.name == row.scalar else passed)
        return f'gtorch_tensor_{row.name}{form}{tail} ({", ".join(values)}, &error)'

    run = 'GT_RUN_INPLACE' if in_place else 'GT_RUN'
    if row.numbers:
        every = ' && '.join(f'{a.c_name}.kind != GT_REAL' for a in row.numbers)
        some = ' || '.join(f'{a.c_name}.kind == GT_INTEGER' for a in row.numbers)
        lines += [f'  if ({every} && ({some}))', f'    {run} ({call("_int", "")});']
        if len(row.numbers) > 1:
            exact = ' && '.join(f'gt_is_exact (&{a.c_name})' for a in row.numbers)
            lines += [f'  if (!({exact}))', f'    return gt_fallback ("{name}", self, args, n, names);']
    elif len(row.forms) > 1:
        lines += ['  if (form == GT_NUMBER)', f'    {run} ({call("_scalar", "number")});']
        if '_int' in row.forms:
            lines += ['  if (form == GT_WHOLE)', f'    {run} ({call("_int", "whole")});']
    lines.append(f'  {run} ({call("", "")});')
    lines += ['}', '']
    return lines


def emit_operator(row):
    special = SPECIAL[row.operator]
    lines = ['static PyObject *', f'nb_{special} (PyObject *a, PyObject *b)', '{']
    lines.append('  if (gt_is (a) && gt_is_operand (b))')
    lines.append(f'    return op_{row.name} (a, &b, 1, NULL);')
    if row.operator in ('+', '*'):
        lines += ['  if (gt_is (b) && gt_is_operand (a))', f'    return op_{row.name} (b, &a, 1, NULL);']
    elif row.scalar:
        lines.append('  if (gt_is (b) && gt_is_operand (a))')
        lines.append(f'    return gt_lift (op_{row.name}, a, b);')
    lines.append(f'  return gt_reflect ("__{special}__", "__r{special}__", a, b);')
    lines += ['}', '']
    if row.inplace:
        lines += ['static PyObject *', f'nb_i{special} (PyObject *a, PyObject *b)', '{']
        lines.append('  if (gt_is (a) && gt_is_operand (b))')
        lines.append(f'    return op_{row.name}_ (a, &b, 1, NULL);')
        otherwise = f'gt_reflect ("__i{special}__", NULL, a, b)'
        if row.operator == '+':
            otherwise = 'gt_iadd_otherwise (a, b)'
        lines.append(f'  return {otherwise};')
        lines += ['}', '']
    return lines


def emit_mixin(rows):
    """The text of _gtorch_ops.inc."""
    rows = [r for r in rows if supported(r)]
    lines = ['/* Written by bindgen.py. */', '']
    methods = ['static PyMethodDef gt_methods[] = {', '  GT_OWN_METHODS']
    slots = ['static PyNumberMethods gt_number = {', '  GT_OWN_NUMBER']
    compare = [
        'static PyObject *',
        'gt_compare (PyObject *a, PyObject *b, int op)',
        '{',
        '  if (!gt_is (a) || !gt_is_operand (b))',
        '    return gt_compare_otherwise (a, b, op);',
        '  switch (op)',
        '    {',
    ]
    for row in rows:
        for in_place in (False, True) if row.inplace else (False,):
            lines += emit_function(row, in_place)
            name = row.name + ('_' if in_place else '')
            doc = json.dumps(row.doc.replace('@', ''), ensure_ascii=False)
            methods.append(f'  GT_METHOD ("{name}", op_{name}, {doc}),')
        if row.operator in UNARY:
            lines += ['static PyObject *', f'nb_{UNARY[row.operator]} (PyObject *a)', '{']
            lines += [f'  return op_{row.name} (a, NULL, 0, NULL);', '}', '']
            slots.append(f'  .nb_{UNARY[row.operator]} = nb_{UNARY[row.operator]},')
        elif row.operator in COMPARE:
            compare.append(f'    case Py_{COMPARE[row.operator]}:')
            compare.append(f'      return op_{row.name} (a, &b, 1, NULL);')
        elif row.operator in NUMBER_SLOTS:
            lines += emit_operator(row)
            slot, special = NUMBER_SLOTS[row.operator], SPECIAL[row.operator]
            slots.append(f'  .nb_{slot} = nb_{special},')
            if row.inplace:
                slots.append(f'  .nb_inplace_{slot} = nb_i{special},')
        elif row.operator == '**':
            lines += ['static PyObject *', 'nb_pow (PyObject *a, PyObject *b, PyObject *c)', '{']
            lines.append('  if (c == Py_None && gt_is (a) && gt_is_operand (b))')
            lines.append(f'    return op_{row.name} (a, &b, 1, NULL);')
            lines += ['  return gt_reflect ("__pow__", "__rpow__", a, b);', '}', '']
            slots.append('  .nb_power = nb_pow,')
    compare += ['    default:', '      Py_RETURN_NOTIMPLEMENTED;', '    }', '}', '']
    return lines + compare + [*slots, '};', '', *methods, '  { NULL, NULL, 0, NULL },', '};']
