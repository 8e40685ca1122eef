# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The operations as functions of the C accelerator: arguments that they do not support are left
to the Python functions."""

import json

from generator import c
from generator.bindings import fill
from generator.bindings.rows import BINARY, COMPARE, INT_MAX, UNARY
from generator.bindings.signatures import of_method


def given(arg, test):
    return f'({{0}} == Py_None || {test})' if arg.is_optional else test


def variable(arg):
    """Returns the declaration, the test with conversion, and the expression that is passed to C."""
    name, default = arg.c_name, arg.default
    if arg.kind in ('Tensor', 'Tensor?'):
        test = 'gt_tensor' if arg.kind == 'Tensor' else 'gt_optional'
        return f'GTorchTensor *{name} = NULL', f'{test} ({{}}, &{name})', name
    if arg.kind == 'int':
        value = 0 if default is None or arg.none else arg.number
        text = {INT_MAX: 'G_MAXINT64', -INT_MAX - 1: 'G_MININT64'}.get(value, str(value))
        text = f'GTORCH_{arg.none}' if arg.none else text
        return f'gint64 {name} = {text}', given(arg, f'gt_int ({{0}}, &{name})'), name
    if arg.kind == 'double':
        value = 0 if default is None or arg.none else arg.number
        text = f'GTORCH_{arg.none}' if arg.none else repr(value).replace('inf', 'INFINITY')
        return f'gdouble {name} = {text}', given(arg, f'gt_double ({{0}}, &{name})'), name
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
        values = arg.list
        text = f'{{ {len(values)}, {{ {", ".join(map(str, values)) or "0"} }} }}'
        test = 'gt_sizes' if arg.required else 'gt_some_ints' if arg.is_optional else 'gt_ints'
        test = 'gt_items' if arg.has_items else test
        return f'Ints {name} = {text}', f'{test} ({{}}, &{name})', f'{name}.data, {name}.n'
    if arg.kind == 'DType':
        return f'gint {name} = GTORCH_DTYPE_NONE', f'gt_dtype ({{}}, &{name})', name
    if arg.kind == 'enum':
        if default is None:
            return None
        return f'gint {name} = {c.constant(arg.enum, default)}', f'gt_enum ({{}}, &{name})', name
    return f'gpointer {name} = NULL', '(({}) == Py_None)', name


def supported(row):
    if not row.method or row.returns_more:
        return False
    return all(a.kind != 'Tensor[]' and (a.kind != 'enum' or not a.required) for a in row.args)


class Function:
    """A function of the accelerator, or its in-place form."""

    def __init__(self, row, in_place):
        self.row, self.in_place = row, in_place
        self.name = row.name + ('_' if in_place else '')
        self.run = 'GT_RUN_INPLACE' if in_place else 'GT_RUN'
        self.args = [(arg, *variable(arg)) for arg in row.args[1:]]
        self.has_forms = bool(row.scalar) and len(row.forms) > 1

    def locals(self):
        found = []
        if self.args:
            texts = ', '.join(f'"{arg.name}"' for arg, *_ in self.args)
            found.append(f'static const char *const known[] = {{ {texts} }};')
            found.append(f'PyObject *v[{len(self.args)}] = {{ NULL }};')
        found += [f'{declaration};' for _, declaration, _, _ in self.args]
        return found + (['gdouble number = 0;', 'gint64 whole = 0;', 'int form = GT_TENSOR;'] if self.has_forms else [])

    def tests(self):
        """The condition for arguments that this function does not support."""
        row, n = self.row, len(self.args)
        if not self.args:
            return 'n_args != 0 || names != NULL'
        n_required = sum(arg.required for arg, *_ in self.args)
        collect = 'gt_collect_sizes' if row.variadic else 'gt_collect'
        extra = f', &{row.variadic.c_name}' if row.variadic else ''
        found = [f'!{collect} (known, {n}, {n_required}, args, n_args, names, v{extra})']
        for i, (arg, _, test, _) in enumerate(self.args):
            if self.has_forms and arg.name == row.scalar:
                has_int = int('_int' in row.forms)
                found.append(f'!(form = gt_form (v[{i}], &{arg.c_name}, &number, &whole, {has_int}))')
            else:
                found.append(f'(v[{i}] != NULL && !{test.format(f"v[{i}]")})')
        return '\n      || '.join(found)

    def call(self, form, number=''):
        values = ['gt_get (self)']
        for arg, _, _, passed in self.args:
            if form and arg.kind == 'number':
                passed = f'{arg.c_name}.whole'
            values.append(number if form and arg.name == self.row.scalar else passed)
        tail = '_inplace' if self.in_place else ''
        return f'gtorch_tensor_{self.row.name}{form}{tail} ({", ".join(values)}, &error)'

    def forms(self):
        """The form that is called for numbers."""
        row = self.row
        if row.numbers:
            names = [a.c_name for a in row.numbers]
            exact = ' && '.join(f'gt_is_exact (&{name})' for name in names)
            return [fill(
                'ops.inc.in', 'integers', run=self.run, call=self.call('_int'),
                every=' && '.join(f'gt_is_whole (&{a.c_name}, {int(a.is_bound)})' for a in row.numbers),
                some=' || '.join(f'{name}.kind == GT_INTEGER' for name in names),
                exact=[fill('ops.inc.in', 'exact', exact=exact, name=self.name)] if len(names) > 1 else [],
            )]
        if len(row.forms) == 1:
            return []
        found = [fill('ops.inc.in', 'number', run=self.run, call=self.call('_scalar', 'number'))]
        if '_int' in row.forms:
            found.append(fill('ops.inc.in', 'whole', run=self.run, call=self.call('_int', 'whole')))
        return found

    def emit(self):
        return fill('ops.inc.in', 'function', name=self.name, locals=self.locals(), tests=self.tests(),
                    forms=self.forms(), run=self.run, call=self.call(''))

    def method(self, known):
        text = f"{self.name}({of_method(self.row, known)})\n--\n\n{self.row.doc.replace('@', '')}"
        doc = json.dumps(text, ensure_ascii=False)
        return f'GT_METHOD ("{self.name}", op_{self.name}, {doc}),'


def binary(row):
    special, function = BINARY[row.operator][0], f'op_{row.name}'
    reflected = None
    if row.operator in ('+', '*'):
        reflected = f'{function} (b, &a, 1, NULL)'
    elif row.scalar:
        reflected = f'gt_lift ({function}, a, b)'
    reflected = [fill('ops.inc.in', 'reflected', call=reflected)] if reflected else []
    text = fill('ops.inc.in', 'binary', special=special, function=function, reflected=reflected,
                otherwise=f'gt_reflect ("__{special}__", "__r{special}__", a, b)')
    if row.inplace:
        otherwise = f'gt_reflect ("__i{special}__", NULL, a, b)'
        if row.operator == '+':
            otherwise = 'gt_iadd_otherwise (a, b)'
        text += fill('ops.inc.in', 'binary', special=f'i{special}', function=f'{function}_', reflected=[],
                     otherwise=otherwise)
    return text


def operator(row):
    """Returns (functions, slots)."""
    function = f'op_{row.name}'
    if row.operator in UNARY:
        _, slot = UNARY[row.operator]
        return fill('ops.inc.in', 'unary', special=slot, function=function), [f'.nb_{slot} = nb_{slot},']
    if row.operator not in BINARY:
        return '', []
    special, slot = BINARY[row.operator]
    slots = [f'.nb_{slot} = nb_{special},']
    if row.operator == '**':
        return fill('ops.inc.in', 'power', function=function), slots
    return binary(row), slots + ([f'.nb_inplace_{slot} = nb_i{special},'] if row.inplace else [])


def emit(rows, known):
    """Returns the text of _gtorch_ops.inc."""
    text, methods, slots, cases = '', [], [], []
    for row in filter(supported, rows):
        functions = [Function(row, in_place) for in_place in ((False, True) if row.inplace else (False,))]
        more, own = operator(row)
        text += ''.join(function.emit() for function in functions) + more
        methods += [function.method(known) for function in functions]
        slots += own
        if row.operator in COMPARE:
            kind = COMPARE[row.operator].upper()
            cases.append(fill('ops.inc.in', 'compare', kind=kind, function=f'op_{row.name}'))
    return fill('ops.inc.in', 'file', functions=text.removesuffix('\n'), cases=cases, slots=slots, methods=methods)
