# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Compiles expressions over operations (gradients, composites) to C over GTorchImpl."""

import ast

from generator.signatures import declare_function as declare

BINARY = {
    ast.Add: ('+', 'add'),
    ast.Sub: ('-', 'sub'),
    ast.Mult: ('*', 'mul'),
    ast.Div: ('/', 'div'),
    ast.Pow: (None, 'pow'),
    ast.FloorDiv: (None, 'floor_divide'),
}
COMPARE = {
    ast.Eq: ('==', 'eq'),
    ast.NotEq: ('!=', 'ne'),
    ast.Lt: ('<', 'lt'),
    ast.LtE: ('<=', 'le'),
    ast.Gt: ('>', 'gt'),
    ast.GtE: ('>=', 'ge'),
}
C_MATH = {'exp', 'log', 'log2', 'sqrt', 'pow', 'fabs'}


class Value:
    """kind: 'tensor' (code is a GTorchImpl *), 'number' (of C), 'ints' (code, length) or 'raw'."""

    def __init__(self, kind, code, length=None, is_int=False):
        self.kind, self.code, self.length, self.is_int = kind, code, length, is_int


class Compiler:
    def __init__(self, row, key, rows, names, metas, on_fail):
        self.row, self.key, self.rows = row, key, rows
        self.names, self.metas, self.on_fail = names, metas, on_fail
        self.declared, self.lines, self.used = [], [], set()

    def fail(self, message):
        self.row.fail(self.key, message)

    def temporary(self):
        name = f't{len(self.declared)}'
        self.declared.append(name)
        return name

    def assign(self, code):
        name = self.temporary()
        self.lines += [f'{name} = {code};', f'if ({name} == NULL)', f'  {self.on_fail}']
        return Value('tensor', name)

    def tensor(self, value):
        if value.kind == 'tensor':
            return value.code
        if value.kind == 'number':
            name = self.temporary()
            self.lines.append(
                f'{name} = gtorch_impl_new_{"int" if value.is_int else "number"} ({value.code});'
            )
            return name
        return self.fail(f'a tensor is wanted where {value.code} stands')

    def call(self, name, args):
        """args: one Value (or None for the default) for each argument of the row."""
        row = self.rows.get(name)
        if row is None:
            self.fail(f'no such operation: {name}')
        code = []
        for arg, value in zip(row.args, args):
            if value is None:
                default = arg.c_default()
                if default is None:
                    self.fail(f'{name}: {arg.name} is missing')
                code += default
            elif arg.kind in ('Tensor', 'Tensor?'):
                code.append('NULL' if value.code == 'NULL' else self.tensor(value))
            elif arg.kind == 'int[]':
                if value.kind != 'ints':
                    self.fail(f'{name}: {arg.name} must be a list of integers')
                code += [value.code, value.length]
            elif arg.kind == 'Tensor[]':
                self.fail(f'{name}: lists of tensors are not for expressions')
            else:
                code.append(value.code)
        if len(row.outputs) == 1:
            return self.assign(f'gtorch_op_{name} ({", ".join(code + ["error"])})')
        outs = [self.temporary() for _ in row.outputs]
        self.lines += [
            f'if (!gtorch_op_{name} ({", ".join(code + ["&" + o for o in outs] + ["error"])}))',
            f'  {self.on_fail}',
        ]
        return [Value('tensor', o) for o in outs]

    def expression(self, node):
        method = getattr(self, 'visit_' + type(node).__name__, None)
        if method is None:
            self.fail(f'cannot compile {ast.unparse(node)}')
        return method(node)

    def visit_Constant(self, node):
        if node.value is None:
            return Value('raw', 'NULL')
        if isinstance(node.value, bool):
            return Value('number', 'TRUE' if node.value else 'FALSE', is_int=True)
        if isinstance(node.value, (int, float)):
            return Value('number', repr(node.value), is_int=isinstance(node.value, int))
        return self.fail(f'cannot compile {node.value!r}')

    def visit_Name(self, node):
        if node.id in self.names:
            self.used.add(node.id)
            return self.names[node.id]
        if node.id.isupper():
            return Value('number', node.id, is_int=True)
        return self.fail(f'no such name: {node.id}')

    def visit_List(self, node):
        values = [self.expression(e) for e in node.elts]
        if not values:
            return Value('ints', 'NULL', '0')
        return Value(
            'ints', f'(const gint64[]) {{ {", ".join(v.code for v in values)} }}', str(len(values))
        )

    def visit_UnaryOp(self, node):
        value = self.expression(node.operand)
        if value.kind == 'number':
            sign = {ast.USub: '-', ast.Not: '!', ast.UAdd: '+'}[type(node.op)]
            return Value('number', f'({sign}{value.code})', is_int=value.is_int)
        if isinstance(node.op, ast.USub):
            return self.call('neg', [value])
        return self.fail(f'cannot compile {ast.unparse(node)}')

    def operate(self, name, symbol, left, right):
        if left.kind == 'number' and right.kind == 'number':
            is_int = left.is_int and right.is_int
            if symbol is None:
                return Value(
                    'number', f'{"pow" if name == "pow" else name} ({left.code}, {right.code})'
                )
            cast = '(gdouble) ' if symbol == '/' else ''
            return Value(
                'number',
                f'({cast}{left.code} {symbol} {right.code})',
                is_int=is_int and symbol != '/',
            )
        args = [left, right] + [None] * (len(self.rows[name].args) - 2)
        return self.call(name, args)

    def visit_BinOp(self, node):
        if type(node.op) not in BINARY:
            self.fail(f'cannot compile {ast.unparse(node)}')
        symbol, name = BINARY[type(node.op)]
        return self.operate(name, symbol, self.expression(node.left), self.expression(node.right))

    def visit_Compare(self, node):
        if len(node.ops) != 1 or type(node.ops[0]) not in COMPARE:
            self.fail(f'cannot compile {ast.unparse(node)}')
        symbol, name = COMPARE[type(node.ops[0])]
        return self.operate(
            name, symbol, self.expression(node.left), self.expression(node.comparators[0])
        )

    def visit_IfExp(self, node):
        test = self.expression(node.test)
        one, two = self.expression(node.body), self.expression(node.orelse)
        if test.kind != 'number' or one.kind != 'number' or two.kind != 'number':
            self.fail('“if” chooses between numbers only')
        return Value(
            'number', f'({test.code} ? {one.code} : {two.code})', is_int=one.is_int and two.is_int
        )

    def visit_Subscript(self, node):
        if (
            isinstance(node.value, ast.Call)
            or isinstance(node.value, ast.Name)
            and node.value.id not in ('grads',)
        ):
            value = self.expression(node.value)
            index = self.expression(node.slice) if not isinstance(value, list) else None
            if isinstance(value, list):
                return value[ast.literal_eval(node.slice)]
            if value.kind == 'ints':
                return Value('number', f'{value.code}[{index.code}]', is_int=True)
        if isinstance(node.value, ast.Name) and node.value.id == 'grads':
            name = f'grads[{ast.literal_eval(node.slice)}]'
            self.used.add(name)
            return self.names[name]
        return self.fail(f'cannot compile {ast.unparse(node)}')

    def visit_Call(self, node):
        if not isinstance(node.func, ast.Name):
            self.fail(f'cannot compile {ast.unparse(node)}')
        name = node.func.id
        if name in ('shape', 'dtype', 'ndim', 'numel', 'size'):
            target = node.args[0].id if node.args and isinstance(node.args[0], ast.Name) else None
            meta = self.metas.get(target)
            if meta is None:
                self.fail(f'{name}() is asked of an argument')
            self.used.add(f'meta:{target}')
            if name == 'shape':
                return Value('ints', f'{meta}shape', f'{meta}n_dims')
            if name == 'size':
                index = self.expression(node.args[1])
                return Value('number', f'{meta}shape[{index.code}]', is_int=True)
            field = {'dtype': 'dtype', 'ndim': 'n_dims', 'numel': 'numel'}[name]
            return Value('number', f'{meta}{field}', is_int=True)
        args = [self.expression(a) for a in node.args]
        if name in C_MATH and all(a.kind == 'number' for a in args):
            return Value('number', f'{name} ({", ".join(a.code for a in args)})')
        row = self.rows.get(name)
        if row is None:
            self.fail(f'no such operation: {name}')
        if len(args) > len(row.args):
            self.fail(f'{name}: too many arguments')
        args += [None] * (len(row.args) - len(args))
        for keyword in node.keywords:
            index = next((i for i, a in enumerate(row.args) if a.name == keyword.arg), None)
            if index is None:
                self.fail(f'{name}: no argument {keyword.arg}')
            args[index] = self.expression(keyword.value)
        return self.call(name, args)


def parse(row, key, text):
    try:
        return ast.parse(text.strip(), mode='eval').body
    except SyntaxError as error:
        return row.fail(key, f'{error.msg}: {text}')


def emit_gradient(row, rows):
    """gtorch_grad_<name> (); also notes in row.saved what the expressions need the values of."""
    names, metas = {}, {}
    for i, t in enumerate(row.tensors):
        names[t.name] = Value('tensor', f'context->inputs[{i}]')
        metas[t.name] = f'context->input_metas[{i}].'
    outputs = ['result'] if row.outputs == [''] else row.outputs
    for i, name in enumerate(outputs):
        names[name] = Value('tensor', f'context->outputs[{i}]')
        metas[name] = f'context->output_metas[{i}].'
        names[f'grads[{i}]'] = Value('tensor', f'grad{i}')
    names['grad'] = Value('tensor', 'grad0')
    for i, a in enumerate(row.attrs):
        attr = f'context->attrs[{i}]'
        if a.kind == 'int[]':
            names[a.name] = Value('ints', f'{attr}.list.data', f'{attr}.list.n')
        elif a.member == 'p':
            names[a.name] = Value('raw', f'{attr}.p')
        else:
            names[a.name] = Value('number', f'{attr}.{a.member}', is_int=a.kind not in ('double', 'number'))

    body, used = [], set()
    for i, t in enumerate(row.tensors):
        if t.name not in row.grad:
            continue
        compiler = Compiler(row, f'grad.{t.name}', rows, names, metas, 'return FALSE;')
        value = compiler.expression(parse(row, f'grad.{t.name}', row.grad[t.name]))
        own = set(compiler.used)
        branch = 'if'
        if t.name in row.fused:
            fused, args = row.fused[t.name]
            own |= {a for a in args if a in names}
            call = ', '.join([names[a].code for a in args] + ['error'])
            body += [
                '',
                f'  if (context->needs[{i}] && !gtorch_is_grad_enabled ())',
                '    {',
                f'      context->result[{i}] = gtorch_op_{fused.name} ({call});',
                f'      if (context->result[{i}] == NULL)',
                '        return FALSE;',
                '    }',
            ]
            branch = 'else if'
        else:
            body.append('')
        body += [f'  {branch} (context->needs[{i}])', '    {']
        body += [f'      g_autoptr (GTorchImpl) {n} = NULL;' for n in compiler.declared]
        body += [''] if compiler.declared else []
        body += ['      ' + line for line in compiler.lines]
        if value.kind == 'tensor' and value.code in compiler.declared:
            body.append(f'      context->result[{i}] = g_steal_pointer (&{value.code});')
        elif value.kind == 'tensor':
            body.append(f'      context->result[{i}] = gtorch_impl_ref ({value.code});')
        elif value.code != 'NULL':
            row.fail(f'grad.{t.name}', 'is not a tensor')
        body.append('    }')
        used |= own
        row.saved_by[t.name] = {
            n
            for n in own
            if n in names and names[n].code.startswith('context->') and names[n].kind == 'tensor'
        }
        row.saved |= row.saved_by[t.name]
    for i, t in enumerate(row.tensors):
        if t.name not in row.grad:
            body += [
                '',
                f'  if (context->needs[{i}])',
                f'    return gtorch_grad_undefined_for (context, "{t.name}", error);',
            ]
    lines = [
        'gboolean',
        f'gtorch_grad_{row.name} (GTorchGradContext *context, GError **error)',
        '{',
    ]
    wanted = sorted(
        {0 if u == 'grad' else int(u[6:-1]) for u in used if u == 'grad' or u.startswith('grads[')}
    )
    if len(outputs) == 1:
        lines += [f'  GTorchImpl *grad{i} = context->grads[{i}];' for i in wanted]
    else:
        for i in wanted:
            lines.append(
                f'  g_autoptr (GTorchImpl) grad{i} = gtorch_grad_or_zeros (context, {i}, error);'
            )
        for i in wanted:
            lines += ['', f'  if (grad{i} == NULL)', '    return FALSE;']
    return lines + body + ['', '  return TRUE;', '}', '']


def saved_masks(row, names):
    """C text of the bits of the inputs, and of the outputs, that are among the names."""
    inputs = [i for i, t in enumerate(row.tensors) if t.name in names]
    if row.list is not None and row.list.name in names:
        inputs.append(31)
    outputs = ['result'] if row.outputs == [''] else row.outputs
    outputs = [i for i, n in enumerate(outputs) if n in names]
    return tuple(' | '.join(f'1u << {i}' for i in bits) or '0' for bits in (inputs, outputs))


def emit_saves(rows):
    """What the gradient of each input alone needs, where expressions tell."""
    lines, table = [], []
    for row in rows:
        if not row.saved or not row.saved_by:
            continue
        masks = [saved_masks(row, row.saved_by.get(t.name, set())) for t in row.tensors]
        text = ', '.join(f'{{ {a}, {b} }}' for a, b in masks)
        lines.append(f'static const GTorchGradSaves saves_{row.name}[] = {{ {text} }};')
        table.append(f'  [GTORCH_OP_{row.name.upper()}] = saves_{row.name},')
    lines += ['', 'const GTorchGradSaves *const gtorch_op_grad_saves[G_N_ELEMENTS (gtorch_ops)] = {']
    return lines + table + ['};', '']


def emit_composite(row, rows):
    names, metas = {}, {}
    for a in row.args:
        if a.is_tensor:
            names[a.name] = Value('tensor', a.name)
            metas[a.name] = f'{a.name}->'
        elif a.kind == 'int[]':
            names[a.name] = Value('ints', a.name, a.c_length)
        elif a.member == 'p':
            names[a.name] = Value('raw', a.name)
        else:
            names[a.name] = Value('number', a.name, is_int=a.kind not in ('double', 'number'))
    compiler = Compiler(row, 'composite', rows, names, metas, 'return NULL;')
    value = compiler.expression(parse(row, 'composite', row.data['composite']))
    lines = [declare(row.op_returns(), row.body_name(), row.op_params()), '{']
    lines += [f'  g_autoptr (GTorchImpl) {n} = NULL;' for n in compiler.declared] + ['']
    lines += ['  ' + line for line in compiler.lines]
    if value.code in compiler.declared:
        lines.append(f'  return g_steal_pointer (&{value.code});')
    else:
        lines.append(f'  return gtorch_impl_ref ({value.code});')
    lines += ['}', '']
    if row.inplace:
        row.fail('inplace', 'a composite has no in-place form of its own')
    return lines
