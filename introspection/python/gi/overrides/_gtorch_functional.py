# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Derivatives of functions: GTorch.autograd.functional. A tensor alone stands for itself, and several are a tuple."""

from gi.overrides._gtorch_convert import GTorch, RawTensor, convert_bool
from gi.overrides._gtorch_errors import guards, passing, restoring
from gi.overrides._gtorch_hooks import describe
from gi.overrides._gtorch_mixin import mixin

MATRICES = ('jacobian', 'hessian', 'jacobian_forward', 'hessian_forward')
RAW = {name: getattr(GTorch, f'autograd_{name}') for name in (*MATRICES, 'vjp', 'jvp', 'vhp', 'hvp')}
STRATEGIES = {'reverse-mode': '', 'forward-mode': '_forward'}


def _list(name, key, value):
    several = list(value) if isinstance(value, (tuple, list)) else [value]
    for one in several:
        if not isinstance(one, RawTensor):
            raise TypeError(f'{name}(): {key} must be a tensor or several, not {type(one).__name__}')
    return several


def _call(name, func, inputs, v, create_graph, strict, mode=''):
    """Returns what C gives, and whether @func gave a tensor alone."""
    if not callable(func):
        raise TypeError(f'{name}(): the function {func!r} cannot be called')
    is_alone, what = [], describe(name, func)

    def compute(tensors):
        outputs = func(*tensors)
        is_alone[:] = [isinstance(outputs, RawTensor)]
        if not is_alone[0] and name in ('hessian', 'vhp', 'hvp'):
            raise TypeError(f'{name}(): the function must give one tensor, not {type(outputs).__name__}')
        return _list(name, 'what the function gives', outputs)

    @guards(what)
    def call(tensors, *_):
        return passing(what, compute, tensors)

    given = _list(name, 'inputs', inputs)
    vector = [] if v is None else _list(name, 'v', v)
    flags = convert_bool(create_graph), convert_bool(strict)
    if mixin is not None:
        found = restoring(mixin.functional, name + mode, call, given, vector, *flags)
    elif name in MATRICES:
        found = restoring(RAW[name + mode], call, (), given, *flags)
    else:
        found = restoring(RAW[name], call, (), given, vector, *flags)
    return found, is_alone[0]


def _shaped(tensors, is_alone):
    return tensors[0] if is_alone else tuple(tensors)


def _rows(tensors, n, rows_alone, columns_alone):
    """Tuples of @n tensors each, without those that are of a tensor alone."""
    rows = [_shaped(tensors[i : i + n], columns_alone) for i in range(0, len(tensors), n)]
    return _shaped(rows, rows_alone)


def _only(name, key, value, wanted):
    if value != wanted:
        raise NotImplementedError(f'{name}(): {key}={value!r} is not supported, only {wanted!r}')


def _mode(name, key, strategy):
    if strategy not in STRATEGIES:
        raise ValueError(f'{name}(): {key} must be one of {", ".join(map(repr, STRATEGIES))}, not {strategy!r}')
    return STRATEGIES[strategy]


def _number(inputs):
    return len(inputs) if isinstance(inputs, (tuple, list)) else 1


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy='reverse-mode'):
    """The derivatives of all elements of the outputs by all elements of the inputs."""
    _only('jacobian', 'vectorize', convert_bool(vectorize), False)
    mode = _mode('jacobian', 'strategy', strategy)
    found, is_alone = _call('jacobian', func, inputs, None, create_graph, strict, mode)
    return _rows(found, _number(inputs), is_alone, isinstance(inputs, RawTensor))


def hessian(
    func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy='reverse-mode'
):
    """The second derivatives of a function with one output of one element."""
    _only('hessian', 'vectorize', convert_bool(vectorize), False)
    mode = _mode('hessian', 'outer_jacobian_strategy', outer_jacobian_strategy)
    found, _is_alone = _call('hessian', func, inputs, None, create_graph, strict, mode)
    is_alone = isinstance(inputs, RawTensor)
    return _rows(found, _number(inputs), is_alone, is_alone)


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """The outputs, and the product of a vector and the Jacobian."""
    (outputs, products), is_alone = _call('vjp', func, inputs, v, create_graph, strict)
    return _shaped(outputs, is_alone), _shaped(products, isinstance(inputs, RawTensor))


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """The outputs, and the product of the Jacobian and a vector."""
    (outputs, products), is_alone = _call('jvp', func, inputs, v, create_graph, strict)
    return _shaped(outputs, is_alone), _shaped(products, is_alone)


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """The output, and the product of a vector and the Hessian."""
    (outputs, products), is_alone = _call('vhp', func, inputs, v, create_graph, strict)
    return _shaped(outputs, is_alone), _shaped(products, isinstance(inputs, RawTensor))


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """The output, and the product of the Hessian and a vector."""
    (outputs, products), is_alone = _call('hvp', func, inputs, v, create_graph, strict)
    return _shaped(outputs, is_alone), _shaped(products, isinstance(inputs, RawTensor))


def members():
    return {function.__name__: function for function in (hessian, hvp, jacobian, jvp, vhp, vjp)}
