# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Expressions in rows, which are a part of Python's language."""

import ast

COMPARE = {ast.Eq: '==', ast.NotEq: '!=', ast.Lt: '<', ast.LtE: '<=', ast.Gt: '>', ast.GtE: '>='}


class Visitor:
    """Compiles the parts of an expression by methods of the names of their kinds."""

    def visit(self, node):
        method = getattr(self, f'visit_{type(node).__name__}', None)
        return self.refuse(node) if method is None else method(node)

    def refuse(self, node):
        """Raises an exception."""
        raise NotImplementedError
