# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Expressions over operations (gradients, composites), compiled to C over GTorchImpl."""

import ast

from generator import visitor

BINARY = {
    ast.Add: ('+', 'add'),
    ast.Sub: ('-', 'sub'),
    ast.Mult: ('*', 'mul'),
    ast.Div: ('/', 'div'),
    ast.Pow: (None, 'pow'),
    ast.FloorDiv: (None, 'floor_divide'),
}
COMPARE = {ast.Eq: 'eq', ast.NotEq: 'ne', ast.Lt: 'lt', ast.LtE: 'le', ast.Gt: 'gt', ast.GtE: 'ge'}
FIELDS = {'dtype': 'dtype', 'ndim': 'n_dims', 'numel': 'numel'}
C_MATH = {'exp', 'log', 'log2', 'sqrt', 'pow', 'fabs'}


class Value:
    """kind: 'tensor' (code is a GTorchImpl *), 'number' (of C), 'ints' (code, length) or 'raw'."""

    def __init__(self, kind, code, length=None, is_int=False):
        self.kind, self.code, self.length, self.is_int = kind, code, length, is_int


class Compiler(visitor.Visitor):
    """Compiles expressions to statements; names: the values of names, metas: the prefix of a
    tensor's metadata."""

    def __init__(self, row, key, rows, names, metas, on_fail):
        self.row, self.key, self.rows = row, key, rows
        self.names, self.metas, self.on_fail = names, metas, on_fail
        self.declared, self.lines, self.used = [], [], set()

    def fail(self, message):
        self.row.fail(self.key, message)

    def refuse(self, node):
        self.fail(f'cannot compile {ast.unparse(node)}')

    def declarations(self):
        return [f'g_autoptr (GTorchImpl) {name} = NULL;' for name in self.declared]

    def result(self, value):
        """Returns an expression whose reference belongs to the caller."""
        return f'g_steal_pointer (&{value.code})' if value.code in self.declared else f'gtorch_impl_ref ({value.code})'

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
            self.lines.append(f'{name} = gtorch_impl_new_{"int" if value.is_int else "number"} ({value.code});')
            return name
        return self.fail(f'a tensor is wanted where {value.code} stands')

    def operation(self, name):
        if name not in self.rows:
            self.fail(f'no such operation: {name}')
        return self.rows[name]

    def passed(self, name, arg, value):
        """Returns an argument of a call in C; None stands for the default."""
        if value is None:
            default = arg.c_default()
            return self.fail(f'{name}: {arg.name} is missing') if default is None else default
        if arg.kind in ('Tensor', 'Tensor?'):
            return ['NULL' if value.code == 'NULL' else self.tensor(value)]
        if arg.kind == 'int[]':
            if value.kind != 'ints':
                self.fail(f'{name}: {arg.name} must be a list of integers')
            return [value.code, value.length]
        if arg.kind == 'Tensor[]':
            self.fail(f'{name}: lists of tensors are not for expressions')
        return [value.code]

    def call(self, name, args):
        """args: one Value (or None for the default) for each argument of the row."""
        row = self.operation(name)
        code = [text for arg, value in zip(row.args, args) for text in self.passed(name, arg, value)]
        if len(row.outputs) == 1:
            return self.assign(f'gtorch_op_{name} ({", ".join([*code, "error"])})')
        outs = [self.temporary() for _ in row.outputs]
        passed = ', '.join([*code, *(f'&{o}' for o in outs), 'error'])
        self.lines += [f'if (!gtorch_op_{name} ({passed}))', f'  {self.on_fail}']
        return [Value('tensor', o) for o in outs]

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
            return Value('number', node.id, is_int=node.id not in ('INFINITY', 'NAN'))
        return self.fail(f'no such name: {node.id}')

    def visit_List(self, node):
        values = [self.visit(e).code for e in node.elts]
        if not values:
            return Value('ints', 'NULL', '0')
        return Value('ints', f'(const gint64[]) {{ {", ".join(values)} }}', str(len(values)))

    def visit_UnaryOp(self, node):
        value = self.visit(node.operand)
        if value.kind == 'number':
            sign = {ast.USub: '-', ast.Not: '!', ast.UAdd: '+'}[type(node.op)]
            return Value('number', f'({sign}{value.code})', is_int=value.is_int)
        return self.call('neg', [value]) if isinstance(node.op, ast.USub) else self.refuse(node)

    def operate(self, name, symbol, left, right):
        if left.kind == 'number' and right.kind == 'number':
            if symbol is None:
                return Value('number', f'{name} ({left.code}, {right.code})')
            is_int = left.is_int and right.is_int and symbol != '/'
            cast = '(gdouble) ' if symbol == '/' else ''
            return Value('number', f'({cast}{left.code} {symbol} {right.code})', is_int=is_int)
        return self.call(name, [left, right] + [None] * (len(self.rows[name].args) - 2))

    def visit_BinOp(self, node):
        if type(node.op) not in BINARY:
            self.refuse(node)
        symbol, name = BINARY[type(node.op)]
        return self.operate(name, symbol, self.visit(node.left), self.visit(node.right))

    def visit_Compare(self, node):
        kind = type(node.ops[0])
        if len(node.ops) != 1 or kind not in COMPARE:
            self.refuse(node)
        left, right = self.visit(node.left), self.visit(node.comparators[0])
        return self.operate(COMPARE[kind], visitor.COMPARE[kind], left, right)

    def visit_IfExp(self, node):
        test, one, two = (self.visit(part) for part in (node.test, node.body, node.orelse))
        if any(value.kind != 'number' for value in (test, one, two)):
            self.fail('“if” chooses between numbers only')
        return Value('number', f'({test.code} ? {one.code} : {two.code})', is_int=one.is_int and two.is_int)

    def visit_Subscript(self, node):
        if isinstance(node.value, ast.Name) and node.value.id == 'grads':
            name = f'grads[{ast.literal_eval(node.slice)}]'
            self.used.add(name)
            return self.names[name]
        if isinstance(node.value, (ast.Call, ast.Name)):
            value = self.visit(node.value)
            if isinstance(value, list):
                return value[ast.literal_eval(node.slice)]
            index = self.visit(node.slice)
            if value.kind == 'ints':
                return Value('number', f'{value.code}[{index.code}]', is_int=True)
        return self.refuse(node)

    def property_of(self, name, args):
        """Returns metadata of a tensor."""
        target = args[0].id if args and isinstance(args[0], ast.Name) else None
        meta = self.metas.get(target)
        if meta is None:
            self.fail(f'{name}() is asked of an argument')
        self.used.add(f'meta:{target}')
        if name == 'shape':
            return Value('ints', f'{meta}shape', f'{meta}n_dims')
        if name == 'size':
            return Value('number', f'{meta}shape[{self.visit(args[1]).code}]', is_int=True)
        return Value('number', f'{meta}{FIELDS[name]}', is_int=True)

    def visit_Call(self, node):
        if not isinstance(node.func, ast.Name):
            self.refuse(node)
        name = node.func.id
        if name in ('shape', 'size', *FIELDS):
            return self.property_of(name, node.args)
        args = [self.visit(a) for a in node.args]
        if name in C_MATH and all(a.kind == 'number' for a in args):
            return Value('number', f'{name} ({", ".join(a.code for a in args)})')
        row = self.operation(name)
        if len(args) > len(row.args):
            self.fail(f'{name}: too many arguments')
        args += [None] * (len(row.args) - len(args))
        for keyword in node.keywords:
            index = next((i for i, a in enumerate(row.args) if a.name == keyword.arg), None)
            if index is None:
                self.fail(f'{name}: no argument {keyword.arg}')
            args[index] = self.visit(keyword.value)
        return self.call(name, args)


def parse(row, key, text):
    try:
        return ast.parse(text.strip(), mode='eval').body
    except SyntaxError as error:
        return row.fail(key, f'{error.msg}: {text}')


def value_of(arg, code, ints):
    """Returns an attribute as a Value; ints: the code of a list and of its length."""
    if arg.kind == 'int[]':
        return Value('ints', *ints)
    if arg.member == 'p':
        return Value('raw', code)
    return Value('number', code, is_int=arg.kind not in ('double', 'number'))
