# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The recorded operations as PyTorch's objects: tensor.grad_fn, its name() and next_functions."""

from gi.overrides._gtorch_convert import GTorch


class Node:
    """A recorded operation, which computed a tensor."""

    __slots__ = ('_node',)

    def __init__(self, node):
        self._node = node

    def name(self):
        """The name in PyTorch's form: MulBackward0 for mul, and that of a Function of the program's with Backward."""
        name = self._node.get_name()
        module, _plus, own = name.rpartition('+')  # of a type that Python has registered
        if module or name[:1].isupper():
            return f'{own}Backward'
        return ''.join(part[:1].upper() + part[1:] for part in name.split('_')) + 'Backward0'

    @property
    def next_functions(self):
        """For each input the operation that computed it, with the number of the result there, or the leaf's
        AccumulateGrad; None where no gradient flows."""
        found = []
        for i in range(self._node.get_n_inputs()):
            node, leaf = self._node.dup_input(i), self._node.dup_leaf(i)
            if node is not None:
                found.append((Node(node), self._node.get_output_of_input(i)))
            else:
                found.append((None if leaf is None else AccumulateGrad(leaf), 0))
        return tuple(found)

    def __eq__(self, other):
        return isinstance(other, Node) and self._node.equal(other._node)

    def __hash__(self):
        return hash(self._node.get_name())

    def __repr__(self):
        return f'<{self.name()} object at {id(self):#x}>'


class AccumulateGrad:
    """Where the gradient of a leaf is added up."""

    __slots__ = ('variable',)
    next_functions = ()

    def __init__(self, variable):
        self.variable = variable

    def name(self):
        return 'torch::autograd::AccumulateGrad'

    def __eq__(self, other):
        return isinstance(other, AccumulateGrad) and self.variable is other.variable

    def __hash__(self):
        return hash(self.variable)

    def __repr__(self):
        return f'<AccumulateGrad object at {id(self):#x}>'


def grad_fn(tensor):
    """The operation that computed the tensor, or None for a leaf."""
    node = tensor.dup_grad_node()
    return None if node is None else Node(node)
