# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Gradients of element-wise rows that consist of several operations: fused into one loop.

The expression is still used by passes that are recorded themselves; others call an internal row,
whose C text combines those of the operations.
"""

import ast
import re

from generator import visitor
from generator.ops.expressions import BINARY, COMPARE, parse

# dtypes of a row -> those that have gradients
DTYPES = {
    'float': 'float',
    'real': 'float',
    'realb': 'float',
    'wide': 'wide',
    'number': 'floatc',
    'floatc': 'floatc',
    'all': 'floatc',
}
MAX_TENSORS = 3  # the limit of a loop
KINDS = {'float': ['float'], 'wide': ['float'], 'floatc': ['float', 'complex']}


class NotFusible(Exception):
    """Raised for expressions that are not element-wise."""


class Inliner(visitor.Visitor):
    """Converts an expression over operations to one over elements; kind: that of the elements' dtype."""

    def __init__(self, row, rows, kind, names):
        self.row, self.rows, self.kind = row, rows, kind
        self.names = names  # name -> ('tensor' or 'number', C text)
        self.used, self.n_operations = set(), 0

    def element(self, value):
        kind, text = value
        return text if kind == 'tensor' else f'((T) {text})'

    def refuse(self, node):
        raise NotFusible

    def visit_Constant(self, node):
        if isinstance(node.value, bool) or not isinstance(node.value, (int, float)):
            raise NotFusible
        return 'number', f'({node.value!r})' if node.value < 0 else repr(node.value)

    def visit_Name(self, node):
        if node.id not in self.names:
            raise NotFusible
        self.used.add(node.id)
        return self.names[node.id]

    def visit_UnaryOp(self, node):
        if not isinstance(node.op, ast.USub):
            raise NotFusible
        value = self.visit(node.operand)
        return value[0], f'(-{value[1]})' if value[0] == 'number' else self.apply('neg', [value])

    def operate(self, symbol, name, left, right):
        if left[0] == right[0] == 'number':
            if symbol in (None, '/'):
                raise NotFusible
            return 'number', f'({left[1]} {symbol} {right[1]})'
        return 'tensor', self.apply(name, [left, right])

    def visit_BinOp(self, node):
        if type(node.op) not in BINARY:
            raise NotFusible
        return self.operate(*BINARY[type(node.op)], self.visit(node.left), self.visit(node.right))

    def visit_Compare(self, node):
        if len(node.ops) != 1:
            raise NotFusible
        left, right, kind = self.visit(node.left), self.visit(node.comparators[0]), type(node.ops[0])
        return self.operate(visitor.COMPARE[kind], COMPARE[kind], left, right)

    def visit_Call(self, node):
        name = node.func.id
        if node.keywords:
            raise NotFusible
        if name in ('zeros_like', 'ones_like'):
            return 'number', '0' if name == 'zeros_like' else '1'
        return 'tensor', self.apply(name, [self.visit(a) for a in node.args])

    def apply(self, name, values):
        if name == 'conj' and self.kind == 'float':
            return self.element(values[0])
        self.n_operations += 1
        if name == 'where':
            test, one, two = (self.element(v) for v in values)
            return f'({test} ? {one} : {two})'
        if name == 'conj':
            return f'(conj ({self.element(values[0])}))'
        row = self.rows.get(name)
        if row is None or 'run' in row.data or row.family != 'pointwise':
            raise NotFusible
        parts = {}
        for i, arg in enumerate(row.args):
            if i >= len(values):
                default = arg.c_default()
                if arg.is_tensor or default is None or len(default) != 1:
                    raise NotFusible
                infinite = {'inf': 'INFINITY', '-inf': '(-INFINITY)'}
                parts[arg.name] = ('number', infinite.get(arg.default, default[0]))
            elif arg.is_tensor == (values[i][0] == 'tensor'):
                parts[arg.name] = values[i]
            elif arg.is_tensor:
                parts[arg.name] = ('tensor', self.element(values[i]))
            else:
                raise NotFusible
        loop = row.loops.get({'float': 'float32', 'complex': 'complex64'}[self.kind])
        if loop is None:
            raise NotFusible
        pattern = '|'.join(rf'\b{re.escape(n)}\b' for n in parts)
        return f'({re.sub(pattern, lambda m: parts[m[0]][1], loop["forward"])})'


def fuse_one(row, tensor, rows, make_row):
    """Returns (row, arguments of the call), or None where the gradient is one operation or not
    element-wise."""
    dtypes = DTYPES.get(row.dtypes)
    if dtypes is None:
        return None
    names = {t.name: ('tensor', t.name) for t in row.tensors}
    names |= {'grad': ('tensor', 'grad_output'), 'result': ('tensor', 'result')}
    names |= {a.name: ('number', a.name) for a in row.attrs if a.kind in ('int', 'double', 'number')}
    texts, used, n = {}, set(), 0
    for kind in KINDS[dtypes]:
        inliner = Inliner(row, rows, kind, names)
        key = f'grad.{tensor.name}'
        try:
            texts[kind] = inliner.element(inliner.visit(parse(row, key, row.grad[tensor.name])))
        except NotFusible:
            return None
        used |= inliner.used
        n = n or inliner.n_operations
    if n < 2 or 'grad' not in used:
        return None
    order = [t for t in [t.name for t in row.tensors] + ['result'] if t in used]
    if len(order) + 1 > MAX_TENSORS:
        return None
    attrs = [a for a in row.attrs if a.name in used]
    args = ['Tensor grad_output'] + [f'Tensor {t}' for t in order]
    data = {
        'args': ', '.join(args + [f'{a.kind} {a.name}' for a in attrs]),
        'family': 'pointwise',
        'dtypes': dtypes,
        'flags': ['internal'],
        'forward': texts,
        'doc': f'The gradient of {row.name} to @{tensor.name}.',
    }
    suffix = '' if len(row.grad) == 1 else f'_{tensor.name}'
    return make_row(row.file, f'{row.name}_backward{suffix}', data), ['grad'] + order + [
        a.name for a in attrs
    ]


def fuse(rows, make_row):
    """Returns the additional rows; records in row.fused which one computes a gradient."""
    by_name = {r.name: r for r in rows}
    added = []
    for row in rows:
        is_gradient = row.args and row.args[0].name == 'grad_output'
        if row.family != 'pointwise' or is_gradient:
            continue
        for tensor in row.tensors:
            found = fuse_one(row, tensor, by_name, make_row) if tensor.name in row.grad else None
            if found is not None:
                row.fused[tensor.name] = found
                added.append(found[0])
    return added
