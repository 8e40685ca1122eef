# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The language of rows, a subset of Python, compiled to C and to CUDA C++."""

import ast

from generator import visitor

BINARY = {ast.Add: '+', ast.Sub: '-', ast.Mult: '*', ast.Div: '/'}
LOGIC = {ast.And: '&&', ast.Or: '||'}
# The precedences of the operators of C.
CONDITION, OR, AND, EQUAL, LESS, SUM, PRODUCT, UNARY, ATOM = range(9)
FUNCTIONS = {'sqrt', 'fabs', 'exp', 'log', 'cos', 'sin', 'floor', 'fmin', 'fmax', 'passed'}
C_FUNCTIONS = {'passed': 'gtorch_schedule_passed'}  # those with another name in C


class ExpressionError(Exception):
    """Raised for code that cannot be compiled."""


def parse(text):
    """Parses the statements of a text."""
    try:
        return ast.parse(text).body
    except SyntaxError as error:
        raise ExpressionError(f'{error.msg} in “{(error.text or text).strip()}”') from error


def parse_value(text):
    """Parses a single expression."""
    body = parse(text)
    if len(body) != 1 or not isinstance(body[0], ast.Expr):
        raise ExpressionError(f'“{text}” is not one expression')
    return body[0].value


def names_in(node):
    """Returns the names that are read, in their order."""
    nodes = node if isinstance(node, list) else [node]
    found = []
    for one in nodes:
        for part in ast.walk(one):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and part.id not in found:
                found.append(part.id)
    return [name for name in found if name not in FUNCTIONS]


def assigned_in(nodes):
    """Returns the names that are written, in their order."""
    found = []
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store) and part.id not in found:
                found.append(part.id)
    return found


def powers_in(nodes):
    """Returns the bases of `base ** t`, in their order."""
    found = []
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Pow):
                base = ast.unparse(part.left)
                if is_count_power(part) and base not in found:
                    found.append(base)
    return found


def is_count_power(node):
    return isinstance(node.right, ast.Name) and node.right.id == 't' and isinstance(node.left, ast.Name)


def refuse(node):
    raise ExpressionError(f'cannot compile “{ast.unparse(node)}”')


class Compiler(visitor.Visitor):
    """Compiles expressions to C.

    names: maps the readable names to C text. real: the type of literals with a fraction. powers:
    texts for `base ** t`.
    """

    def __init__(self, names, real='gdouble', powers=None, constants=('TRUE', 'FALSE')):
        self.names, self.real, self.powers = names, real, powers or {}
        self.true, self.false = constants

    def compile(self, node, least=CONDITION):
        text, level = self.visit(node)
        return f'({text})' if level < least else text

    def refuse(self, node):
        refuse(node)

    def visit_Constant(self, node):
        if isinstance(node.value, bool):
            return (self.true if node.value else self.false), ATOM
        if isinstance(node.value, int):
            return str(node.value), ATOM
        if isinstance(node.value, float):
            return (f'({self.real}) {node.value!r}', UNARY) if self.real != 'gdouble' else (repr(node.value), ATOM)
        raise ExpressionError(f'cannot compile {node.value!r}')

    def visit_Name(self, node):
        if node.id not in self.names:
            raise ExpressionError(f'no such name: {node.id}')
        return self.names[node.id], ATOM

    def visit_UnaryOp(self, node):
        sign = {ast.USub: '-', ast.Not: '!', ast.UAdd: '+'}.get(type(node.op))
        if sign is None:
            refuse(node)
        return sign + self.compile(node.operand, UNARY), UNARY

    def visit_BinOp(self, node):
        if isinstance(node.op, ast.Pow):
            if is_count_power(node) and node.left.id in self.powers:
                return self.powers[node.left.id], ATOM
            return f'pow ({self.compile(node.left)}, {self.compile(node.right)})', ATOM
        if isinstance(node.op, ast.FloorDiv):
            return f'floor ((gdouble) {self.compile(node.left, UNARY)} / {self.compile(node.right, UNARY)})', ATOM
        if isinstance(node.op, ast.Mod):
            return f'gtorch_step_modulo ({self.compile(node.left)}, {self.compile(node.right)})', ATOM
        if type(node.op) not in BINARY:
            refuse(node)
        level = SUM if isinstance(node.op, (ast.Add, ast.Sub)) else PRODUCT
        left, right = self.compile(node.left, level), self.compile(node.right, level + 1)
        return f'{left} {BINARY[type(node.op)]} {right}', level

    def visit_Compare(self, node):
        if len(node.ops) != 1 or type(node.ops[0]) not in visitor.COMPARE:
            refuse(node)
        level = EQUAL if isinstance(node.ops[0], (ast.Eq, ast.NotEq)) else LESS
        left = self.compile(node.left, level + 1)
        return f'{left} {visitor.COMPARE[type(node.ops[0])]} {self.compile(node.comparators[0], level + 1)}', level

    def visit_BoolOp(self, node):
        level = AND if isinstance(node.op, ast.And) else OR
        parts = [self.compile(value, EQUAL) for value in node.values]
        return f' {LOGIC[type(node.op)]} '.join(parts), level

    def visit_IfExp(self, node):
        test, one, two = (self.compile(part, OR) for part in (node.test, node.body, node.orelse))
        return f'{test} ? {one} : {two}', CONDITION

    def visit_Call(self, node):
        if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS or node.keywords:
            refuse(node)
        name = C_FUNCTIONS.get(node.func.id, node.func.id)
        return f'{name} ({", ".join(self.compile(arg) for arg in node.args)})', ATOM


def compile_statements(nodes, compiler, declare, test, indent):
    """Compiles assignments and `if` over the names of states to lines of C. declare: the type of
    new names."""
    lines = []
    for node in nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name, value = node.targets[0].id, compiler.compile(node.value)
            new = name not in compiler.names
            compiler.names.setdefault(name, name)
            lines.append(f'{indent}{declare + " " if new else ""}{compiler.names[name]} = {value};')
        elif isinstance(node, ast.If) and isinstance(node.test, ast.Name) and not node.orelse and test:
            try:
                wanted = test(node.test.id)
            except KeyError:
                raise ExpressionError(f'{node.test.id} is no state that may be missing') from None
            inner = compile_statements(node.body, compiler, declare, test, indent + '    ')
            lines += [f'{indent}if ({wanted})', f'{indent}  {{', *inner, f'{indent}  }}']
        else:
            refuse(node)
    return lines
