# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Expressions in rows, a subset of Python."""

import ast

COMPARE = {ast.Eq: '==', ast.NotEq: '!=', ast.Lt: '<', ast.LtE: '<=', ast.Gt: '>', ast.GtE: '>='}


class Visitor:
    """Compiles the nodes of an expression with methods named after their types."""

    def visit(self, node):
        method = getattr(self, f'visit_{type(node).__name__}', None)
        return self.refuse(node) if method is None else method(node)

    def refuse(self, node):
        """Raises an exception."""
        raise NotImplementedError
