# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""GTorch.func: modules as functions of their parameters, and derivatives of functions, also of each other.

A derivative calls the function with tensors that require gradients in place of its arguments; jvp() and jacfwd() with
dual tensors. The arguments and the results may be tensors, or tuples, lists and dictionaries of them."""

import functools
import sys
import threading
from collections.abc import Mapping
from contextlib import contextmanager

from gi.overrides._gtorch_convert import GTorch, RawTensor, convert_bool, convert_whole
from gi.overrides._gtorch_members import children_of, set_buffer
from gi.overrides._gtorch_parametrize import Computed

RawModule = GTorch.Module


def _namespace():
    from gi.repository import GTorch as namespace

    return namespace


# --- modules ---


@functools.cache
def _given_class():
    class Given(_namespace().Module):
        """Stands for a parameter during a call."""

        def __init__(self, tensor):
            super().__init__()
            self.__dict__['_given'] = tensor

        def forward(self, _original):
            return self.__dict__['_given']

    return Given


def _swap(owner, name, tensor):
    """Puts a tensor in the place of a member, and returns what undoes it."""
    kind = owner._gt_own_kind(name)
    if kind == 'buffer':
        former = GTorch.Module.get_buffer(owner, name)
        set_buffer(owner, name, tensor)
        return lambda: set_buffer(owner, name, former)
    former = GTorch.Module.get_parameter(owner, name)
    if isinstance(tensor, GTorch.Parameter):
        owner.register_parameter(name, tensor)
        return lambda: owner.register_parameter(name, former)
    Computed.register_parametrization(owner, name, _given_class()(tensor), True)

    def undo():
        Computed.remove_parametrizations(owner, name, False)
        owner.register_parameter(name, former)

    return undo


def _places(module, prefix=''):
    """Each tensor of the module by its path, with its owner and the name there."""
    for name, member in [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]:
        yield f'{prefix}{name}', (module, name, member)
    for name, child in children_of(module):
        yield from _places(child, f'{prefix}{name}.')


def _merged(given):
    if isinstance(given, Mapping):
        return dict(given)
    if not isinstance(given, (tuple, list)) or not all(isinstance(one, Mapping) for one in given):
        raise TypeError('functional_call(): the parameters must be a dictionary, or a tuple of some')
    found = {}
    for one in given:
        for name in one:
            if name in found:
                raise ValueError(f'functional_call(): {name!r} is in two of the dictionaries')
        found.update(one)
    return found


@contextmanager
def _replaced(module, given, tie_weights, strict):
    places = dict(_places(module))
    for name, tensor in given.items():
        if name not in places:
            raise KeyError(f'functional_call(): {type(module).__name__} has no parameter or buffer {name!r}')
        if not isinstance(tensor, RawTensor):
            raise TypeError(f'functional_call(): {name} must be a tensor, not {type(tensor).__name__}')
    if strict and len(given) < len(places):
        names = ', '.join(name for name in places if name not in given)
        raise RuntimeError(f'functional_call(): strict: {type(module).__name__} needs {names}')
    wanted = dict(given)
    if tie_weights:
        of_members = {places[name][2]: tensor for name, tensor in given.items()}
        wanted.update({name: of_members[place[2]] for name, place in places.items()
                       if name not in given and place[2] in of_members})
    undo, seen = [], set()
    try:
        for name, tensor in wanted.items():
            owner, own, _member = places[name]
            if (owner, own) not in seen:  # a module may be there several times
                seen.add((owner, own))
                undo.append(_swap(owner, own, tensor))
        yield
    finally:
        for one in reversed(undo):
            one()


def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """Calls a module with other tensors in the place of some parameters and buffers, for this call alone.

    They may be results of operations, and dual tensors. Parameters that are one tensor in the module are one in the
    call, unless @tie_weights is False; @strict wants all of them."""
    if not isinstance(module, RawModule):
        raise TypeError(f'functional_call(): module must be a Module, not {type(module).__name__}')
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    given = _merged(parameter_and_buffer_dicts)
    with _replaced(module, given, convert_bool(tie_weights), convert_bool(strict)):
        return module(*args, **(kwargs or {}))


def _stacked_leaf(name, tensors):
    if len({tensor.requires_grad for tensor in tensors}) > 1:
        raise RuntimeError(f'stack_module_state(): {name} requires gradients in some of the models only')
    shapes = {tuple(tensor.shape) for tensor in tensors}
    if len(shapes) > 1:
        raise RuntimeError(f'stack_module_state(): {name} has the shapes {", ".join(map(str, sorted(shapes)))}')
    with _namespace().no_grad():
        made = _namespace().stack([tensor.detach() for tensor in tensors])
    return made.requires_grad_() if tensors[0].requires_grad else made


def stack_module_state(models):
    """The parameters and the buffers of several models of one class, each stacked along a new first dimension: two
    dictionaries. The stacked parameters are leaves."""
    models = list(models)
    if not models or not all(isinstance(model, RawModule) for model in models):
        raise RuntimeError('stack_module_state(): one model or more are wanted')
    if len({type(model) for model in models}) > 1 or len({model.training for model in models}) > 1:
        raise RuntimeError('stack_module_state(): the models must be of one class, and all in training or none')
    found = []
    for members in ('named_parameters', 'named_buffers'):
        tables = [dict(getattr(model, members)()) for model in models]
        if any(list(table) != list(tables[0]) for table in tables):
            raise RuntimeError('stack_module_state(): the models have different members')
        found.append({name: _stacked_leaf(name, [table[name] for table in tables]) for name in tables[0]})
    return tuple(found)


# --- trees of tensors ---


def _map(function, value, name):
    if isinstance(value, RawTensor):
        return function(value)
    if isinstance(value, Mapping):
        return {key: _map(function, one, name) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        found = [_map(function, one, name) for one in value]
        return type(value)(*found) if hasattr(value, '_fields') else type(value)(found)
    raise TypeError(f'{name}(): tensors and containers of them are differentiated, not {type(value).__name__}')


def _leaves(value, name):
    found = []
    _map(found.append, value, name)
    return found


def _like(value, tensors, name):
    """The tree @value with @tensors in the place of its own."""
    rest = iter(tensors)
    return _map(lambda _one: next(rest), value, name)


# --- derivatives ---


class _Depth(threading.local):
    calls = 0  # derivatives that are being taken in this thread


_depth = _Depth()


@contextmanager
def _deeper():
    _depth.calls += 1
    try:
        with _namespace().enable_grad():
            yield _depth.calls > 1
    finally:
        _depth.calls -= 1


def _variable(tensor):
    """A tensor to differentiate by: it belongs to an outer derivative, too, if its tensor does."""
    if tensor.requires_grad:
        return tensor.view_as(tensor)
    return tensor.detach().requires_grad_()


def _chosen(name, argnums, args):
    """The positions of the arguments."""
    several = isinstance(argnums, (tuple, list))
    places = [convert_whole(one) for one in (argnums if several else [argnums])]
    for place in places:
        if not -len(args) <= place < len(args):
            raise IndexError(f'{name}(): argnums is {argnums!r}, there are {len(args)} arguments')
    return [place % len(args) for place in places], several


def _with_values(args, places, values):
    """The arguments with others in these places."""
    changed = list(args)
    for place, value in zip(places, values):
        changed[place] = value
    return changed


def _variables(name, given, is_inner):
    """Variables in place of the tensors, and whether results keep the graph, for a derivative around this one."""
    keeps = is_inner or any(one.requires_grad for one in _leaves(given, name))
    return _map(_variable, given, name), keeps


def _split(name, output, has_aux):
    if not has_aux:
        return output, None
    if not isinstance(output, tuple) or len(output) != 2:
        raise TypeError(f'{name}(): with has_aux the function gives its output and what else it has, in a tuple')
    return output


def _apart(value):
    """What is no longer differentiated."""
    return value.detach() if isinstance(value, RawTensor) else value


def _apart_tree(value, keeps):
    try:
        return value if keeps else _map(_apart, value, '')
    except TypeError:  # what else a function gives may be anything
        return value


def _gradients(outputs, inputs, vectors, keeps, retain=False):
    """The gradients of @outputs, zero where there is none."""
    pairs = [(one, v) for one, v in zip(outputs, vectors) if one.requires_grad]
    if not pairs:
        return [one.new_zeros(one.shape) for one in inputs]
    found = _namespace().autograd.grad(
        [one for one, _v in pairs], inputs, [v for _one, v in pairs], retain_graph=keeps or retain, create_graph=keeps,
        allow_unused=True,
    )
    return [like.new_zeros(like.shape) if one is None else one for one, like in zip(found, inputs)]


def _check_function(name, func):
    if not callable(func):
        raise TypeError(f'{name}(): the function {func!r} cannot be called')


def grad_and_value(func, argnums=0, has_aux=False):
    """A function that gives the gradients of @func, whose output has one element, by an argument, and the output."""
    _check_function('grad_and_value', func)

    @functools.wraps(func)
    def call(*args, **options):
        places, several = _chosen('grad', argnums, args)
        given = [args[place] for place in places]
        with _deeper() as is_inner:
            variables, keeps = _variables('grad', given, is_inner)
            changed = _with_values(args, places, variables)
            output, aux = _split('grad', func(*changed, **options), has_aux)
            if not isinstance(output, RawTensor) or output.numel() != 1:
                kind = f'shape {list(output.shape)}' if isinstance(output, RawTensor) else type(output).__name__
                raise RuntimeError(f'grad(): the function must give a tensor of one element, not {kind}')
            tensors = _leaves(variables, 'grad')
            found = _gradients([output], tensors, [output.new_ones(output.shape)], keeps)
        grads = _like(given, found, 'grad')
        grads = tuple(grads) if several else grads[0]
        output = _apart_tree(output, keeps)
        return (grads, (output, _apart_tree(aux, keeps))) if has_aux else (grads, output)

    return call


def grad(func, argnums=0, has_aux=False):
    """A function that gives the gradients of @func, whose output has one element, by an argument, or by several."""
    _check_function('grad', func)
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def call(*args, **options):
        grads, value = both(*args, **options)
        return (grads, value[1]) if has_aux else grads

    return call


def vjp(func, *primals, has_aux=False):
    """The output of @func, and a function that gives the product of a vector and its Jacobian: a tuple, or without one
    if there is one argument."""
    _check_function('vjp', func)
    given = list(primals)
    with _deeper() as is_inner:
        variables, keeps = _variables('vjp', given, is_inner)
        output, aux = _split('vjp', func(*variables), has_aux)
    tensors, outputs = _leaves(variables, 'vjp'), _leaves(output, 'vjp')

    def product(*cotangents):
        vectors = _leaves(cotangents[0] if len(cotangents) == 1 else cotangents, 'vjp')
        if [tuple(one.shape) for one in vectors] != [tuple(one.shape) for one in outputs]:
            raise RuntimeError('vjp(): the vector must have the form and the shapes of the output')
        with _namespace().enable_grad():
            found = _gradients(outputs, tensors, vectors, keeps or _depth.calls > 0, retain=True)
        return tuple(_like(given, found, 'vjp'))

    shown = _apart_tree(output, keeps)
    return (shown, product, _apart_tree(aux, keeps)) if has_aux else (shown, product)


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """The output of @func, and the product of its Jacobian and a vector, computed forwards."""
    _check_function('jvp', func)
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple):
        raise TypeError('jvp(): primals and tangents must be tuples, of one for each argument')
    points, vectors = _leaves(primals, 'jvp'), _leaves(tangents, 'jvp')
    if len(points) != len(vectors):
        raise RuntimeError(f'jvp(): there are {len(points)} primals and {len(vectors)} tangents')
    forward = _namespace().autograd.forward_ad
    with forward.dual_level():
        duals = [forward.make_dual(*pair) for pair in zip(points, vectors)]
        output, aux = _split('jvp', func(*_like(primals, duals, 'jvp')), has_aux)
        pairs = [forward.unpack_dual(one) for one in _leaves(output, 'jvp')]
        if convert_bool(strict) and any(pair.tangent is None for pair in pairs):
            raise RuntimeError('jvp(): strict: an output does not depend on the arguments')
        values = [pair.primal for pair in pairs]
        found = [value.new_zeros(value.shape) if pair.tangent is None else pair.tangent
                 for value, pair in zip(values, pairs)]
        results = _like(output, values, 'jvp'), _like(output, found, 'jvp')
    return (*results, aux) if has_aux else results


def linearize(func, *primals):
    """The output of @func, and a function that gives the product of its Jacobian at the primals and a vector, for
    which @func is called again."""
    _check_function('linearize', func)
    points = tuple(_map(lambda one: one.detach(), primals, 'linearize'))

    def product(*tangents):
        return jvp(func, points, tangents)[1]

    with _namespace().no_grad():
        output = func(*points)
    return output, product


def _bases(tensor):
    """The vectors of a basis, each of the tensor's shape."""
    flat = tensor.new_zeros([tensor.numel()])
    for i in range(tensor.numel()):
        vector = flat.clone()
        vector[i] = 1
        yield vector.reshape(tensor.shape)


def _stacked(rows, *shape):
    return _namespace().stack(rows).reshape([size for part in shape for size in part])


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False):
    """A function that gives the Jacobian of @func by an argument, or several, computed backwards: in the form of the
    output, in which each tensor is one in the form of the argument, of both shapes."""
    _check_function('jacrev', func)

    @functools.wraps(func)
    def call(*args, **options):
        places, several = _chosen('jacrev', argnums, args)
        given = [args[place] for place in places]
        with _deeper() as is_inner:
            variables, keeps = _variables('jacrev', given, is_inner)
            changed = _with_values(args, places, variables)
            output, aux = _split('jacrev', func(*changed, **options), has_aux)
            inputs = _leaves(variables, 'jacrev')

            def of_output(one):
                rows = [_gradients([one], inputs, [v], keeps, retain=True) for v in _bases(one)]
                parts = [_stacked(list(row), one.shape, like.shape) if row else like.new_zeros([0, *like.shape])
                         for row, like in zip(list(zip(*rows)) or [()] * len(inputs), inputs)]
                tree = _like(given, parts, 'jacrev')
                return tuple(tree) if several else tree[0]

            found = _map(of_output, output, 'jacrev')
        return (found, _apart_tree(aux, keeps)) if has_aux else found

    return call


def jacfwd(func, argnums=0, has_aux=False, *, randomness='error'):
    """The same, computed forwards: with one call for each element of the argument."""
    _check_function('jacfwd', func)

    @functools.wraps(func)
    def call(*args, **options):
        places, several = _chosen('jacfwd', argnums, args)
        given = [args[place] for place in places]
        points, aux = _leaves(given, 'jacfwd'), None

        def of_given(*tensors):
            return func(*_with_values(args, places, _like(given, tensors, 'jacfwd')), **options)

        output, columns = None, []
        for i, point in enumerate(points):
            rows = []
            for vector in _bases(point):
                tangents = [vector if k == i else one.new_zeros(one.shape) for k, one in enumerate(points)]
                output, found, *rest = jvp(of_given, tuple(points), tuple(tangents), has_aux=has_aux)
                aux = rest[0] if rest else None
                rows.append(_leaves(found, 'jacfwd'))
            columns.append(rows)
        if output is None:
            raise RuntimeError('jacfwd(): the arguments have no elements')
        tensors = _leaves(output, 'jacfwd')

        def of_output(k):
            parts = []
            for point, rows in zip(points, columns):
                if rows:
                    parts.append(_namespace().stack([row[k] for row in rows], -1).reshape(
                        [*tensors[k].shape, *point.shape]))
                else:
                    parts.append(point.new_zeros([*tensors[k].shape, *point.shape]))
            tree = _like(given, parts, 'jacfwd')
            return tuple(tree) if several else tree[0]

        counter = iter(range(len(tensors)))
        found = _map(lambda _one: of_output(next(counter)), output, 'jacfwd')
        return (found, aux) if has_aux else found

    return call


def hessian(func, argnums=0):
    """A function that gives the second derivatives of @func by an argument, the Jacobian of its Jacobian."""
    return jacrev(jacrev(func, argnums), argnums)


def vmap(func, in_dims=0, out_dims=0, randomness='error', *, chunk_size=None):
    """Is not there: a function cannot be called with one dimension of its arguments hidden."""
    raise NotImplementedError(
        'vmap(): no dimension of tensors can be hidden from a function: let it work on whole batches, or stack its '
        'results in a loop; jacrev() and jacfwd() do so'
    )


MEMBERS = (
    functional_call, stack_module_state, grad, grad_and_value, vjp, jvp, linearize, jacrev, jacfwd, hessian, vmap,
)


def install(export, submodule):
    submodule('func', 'Functions of tensors.', {one.__name__: one for one in MEMBERS})
    export('vmap', vmap)
    stateless = submodule('nn.utils.stateless', 'Modules as functions.', {'functional_call': functional_call})
    sys.modules['gi.repository.GTorch.nn.utils'].stateless = stateless
