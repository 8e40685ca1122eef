# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The recorded operations as PyTorch's objects: tensor.grad_fn, its name(), next_functions and hooks."""

import threading
import weakref

from gi.overrides._gtorch_convert import GTorch, RawTensor
from gi.overrides._gtorch_errors import passes
from gi.overrides._gtorch_hooks import check, describe, refuse
from gi.overrides._gtorch_later import complete
from gi.overrides._gtorch_mixin import mixin


class NodeHook:
    """A hook of a node, for its removal."""

    def __init__(self, *removers):
        self._removers = removers

    def remove(self):
        """Removes the hook; the second call has no effect."""
        removers, self._removers = self._removers, ()
        for call, *args in removers:
            call(*args)

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        self.remove()


def _given(name, function, result):
    """What a hook has returned, as a list of gradients; None if it keeps those that there are."""
    if result is None or isinstance(result, RawTensor):
        return None if result is None else [result]
    if isinstance(result, (tuple, list)) and all(one is None or isinstance(one, RawTensor) for one in result):
        return list(result)
    refuse(name, function, result, 'a tensor, several or None')


def _register(name, node, function):
    check(name, function)
    complete()  # from now on there are objects that the collector has to look for in C
    is_after = name == 'register_hook'

    def call(*grads):
        return _given(name, function, function(*grads))

    def call_from_c(_node, *args):
        # the lengths of the lists may be passed with them
        lists = [tuple(one) for one in args if isinstance(one, (list, tuple))]
        return call(*lists[: 1 + is_after])

    what = describe(name, function)
    if mixin is not None:
        number = mixin.add_node_hook(node, passes(what, call), is_after)
    else:
        number = getattr(node, name)(passes(what, call_from_c))
    return NodeHook((node.remove_hook, number))


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

    def register_prehook(self, hook):
        """Calls hook(grad_outputs) before the gradients of the inputs are computed; it may return others."""
        return _register('register_prehook', self._node, hook)

    def register_hook(self, hook):
        """Calls hook(grad_inputs, grad_outputs) when the gradients of the inputs are computed; it may return others."""
        return _register('register_hook', self._node, hook)

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

    def register_prehook(self, hook):
        """Calls hook(grad_outputs) with the gradient before it is added; it may return another one."""
        check('register_prehook', hook)

        def call(grad):
            result = _given('register_prehook', hook, hook((grad,)))
            if result is not None and len(result) != 1:
                raise RuntimeError(f'register_prehook: a hook gave {len(result)} gradients of 1 outputs')
            return None if result is None else result[0]

        return NodeHook((_remove, weakref.ref(self.variable), self.variable.register_hook(call)))

    def register_hook(self, hook):
        """Calls hook((), grad_outputs) with the gradient when it has been added."""
        check('register_hook', hook)
        arrived = {}  # by threads, in which passes may run at the same time

        def keep(grad):
            arrived[threading.get_ident()] = grad

        def call(_variable):
            result = hook((), (arrived.pop(threading.get_ident(), None),))
            if result is not None and result != ():
                refuse('register_hook', hook, result, 'None: there are no gradients of inputs')

        leaf = weakref.ref(self.variable)
        numbers = self.variable.register_hook(keep), self.variable.register_post_accumulate_grad_hook(call)
        return NodeHook(*((_remove, leaf, number) for number in numbers))

    def __eq__(self, other):
        return isinstance(other, AccumulateGrad) and self.variable is other.variable

    def __hash__(self):
        return hash(self.variable)

    def __repr__(self):
        return f'<AccumulateGrad object at {id(self):#x}>'


def _remove(leaf, number):
    variable = leaf()
    if variable is not None:
        variable.remove_hook(number)


def grad_fn(tensor):
    """The operation that computed the tensor, or None for a leaf."""
    node = tensor.dup_grad_node()
    return None if node is None else Node(node)
