# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checkpoints: GTorch.utils.checkpoint.

Checkpoints that are not reentrant are hooks for saved tensors and a function that computes all again: the function
may take and give anything. Of reentrant ones C sees the tensors among the arguments and the results."""

import contextlib
import functools
import warnings

from gi.overrides._gtorch_convert import GTorch, RawTensor, convert_bool
from gi.overrides._gtorch_errors import Failure, guard, guards, passing, restores
from gi.overrides._gtorch_hooks import describe
from gi.overrides._gtorch_mixin import mixin

apply_function = restores(GTorch.Function.apply)
surroundings = []  # functions that give None, or what makes the context of the second call, such as whole parameters
TENSOR = object()  # stands for the tensors among the arguments


def noop_context_fn():
    """Gives two contexts that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def _without_tensors(values):
    return [TENSOR if isinstance(one, RawTensor) else one for one in values]


def _with_tensors(values, tensors):
    rest = iter(tensors)
    return [next(rest) if one is TENSOR else one for one in values]


_always_early = None  # by set_checkpoint_early_stop()


class set_checkpoint_early_stop:  # noqa: N801, the name is PyTorch's
    """A block whose checkpoints end early, or do not, whatever they say."""

    def __init__(self, enable):
        self._enable = convert_bool(enable)

    def __enter__(self):
        global _always_early
        self._before, _always_early = _always_early, self._enable

    def __exit__(self, *_exception):
        global _always_early
        _always_early = self._before


@contextlib.contextmanager
def _inside(made):
    with contextlib.ExitStack() as stack:
        for one in made:
            stack.enter_context(one())
        yield


def _surround():
    """What makes the context in which a function is called now, for its second call."""
    made = [found for found in (one() for one in surroundings) if found is not None]
    return lambda: _inside(made)


def _again(function, args, options, context):
    """What C calls in the backward pass."""
    around = _surround()
    what, others = describe('checkpoint', function), _without_tensors(args)

    def compute(tensors):
        try:
            with around(), context:
                function(*_with_tensors(others, tensors), **options)
        except Failure as error:
            if '(early_stop)' not in error.message:
                raise
            # It goes no further, but is kept until the pass ends: without the frames, whose variables hold tensors.
            raise error.with_traceback(None) from None

    return guard(what, lambda tensors, *_: passing(what, compute, tensors) or True)


def _recorded(function, args, options, contexts, settings):
    tensors = [one for one in args if isinstance(one, RawTensor)]
    first, second = contexts
    again = _again(function, args, options, second)
    if mixin is not None:
        guard = mixin.checkpoint_begin(again, tensors, *settings)
    else:
        guard = GTorch.checkpoint_begin(again, (), tensors, *settings)
    try:
        with first:
            return function(*args, **options)
    finally:
        guard.end()


def _raw_function(call, preserve_rng_state):
    return GTorch.checkpoint_function_new(call, (), preserve_rng_state)


def _reentrant(function, args, preserve_rng_state):
    what, others, result = describe('checkpoint', function), _without_tensors(args), []
    around = _surround()

    def compute(tensors):
        with around() if result else contextlib.nullcontext():
            found = function(*_with_tensors(others, tensors))
        several = list(found) if isinstance(found, (tuple, list)) else [found]
        if not result:  # the first time
            result[:] = [type(found) if isinstance(found, (tuple, list)) else None, _without_tensors(several)]
        return [one for one in several if isinstance(one, RawTensor)]

    @guards(what)
    def call(tensors, *_):
        return passing(what, compute, tensors)

    make = _raw_function if mixin is None else mixin.checkpoint_function
    outputs = apply_function(make(call, preserve_rng_state), [one for one in args if isinstance(one, RawTensor)])
    kind, shape = result
    outputs = _with_tensors(shape, outputs)
    return outputs[0] if kind is None else outputs if kind is list else tuple(outputs)


def _kind(use_reentrant):
    if use_reentrant is not None:
        return convert_bool(use_reentrant)
    warnings.warn(
        'checkpoint(): use_reentrant was not given: it is True, as in PyTorch; use_reentrant=False has fewer limits',
        stacklevel=3,
    )
    return True


def checkpoint(
    function=None,
    *args,
    use_reentrant=None,
    preserve_rng_state=True,
    context_fn=noop_context_fn,
    determinism_check='default',
    debug=False,
    early_stop=True,
    **kwargs,
):
    """Calls @function with the arguments, and again in the backward pass, instead of keeping what its operations
    save. Without a function it is a decorator.

    use_reentrant=False records the function and takes anything; use_reentrant=True computes without recording and
    starts a backward pass of its own, so that neither autograd.grad() nor create_graph work."""
    settings = {
        'use_reentrant': use_reentrant,
        'preserve_rng_state': preserve_rng_state,
        'context_fn': context_fn,
        'determinism_check': determinism_check,
        'debug': debug,
        'early_stop': early_stop,
    }
    if function is None and not args and not kwargs:
        return lambda wrapped: functools.wraps(wrapped)(
            lambda *given, **named: _call(wrapped, given, named, **settings)
        )
    return _call(function, args, kwargs, **settings)


def _call(
    function, args, kwargs, use_reentrant, preserve_rng_state, context_fn, determinism_check, debug, early_stop
):
    if not callable(function):
        raise TypeError(f'checkpoint(): the function {function!r} cannot be called')
    if determinism_check not in ('default', 'none'):
        raise ValueError(f"checkpoint(): determinism_check is 'default' or 'none', not {determinism_check!r}")
    if debug:
        raise NotImplementedError('checkpoint(): debug=True, which lists operations, is not supported')
    random = convert_bool(preserve_rng_state)
    if _kind(use_reentrant):
        if context_fn is not noop_context_fn:
            raise ValueError('checkpoint(): context_fn needs use_reentrant=False')
        if kwargs:
            raise ValueError(f'checkpoint(): {", ".join(kwargs)} by name needs use_reentrant=False')
        return _reentrant(function, args, random)
    early = early_stop if _always_early is None else _always_early
    settings = random, determinism_check == 'default', convert_bool(early)
    return _recorded(function, args, kwargs, context_fn(), settings)


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    """Calls modules or functions one after the other, with a checkpoint for each of @segments parts but the last."""
    random = kwargs.pop('preserve_rng_state', True)
    if kwargs:
        raise ValueError(f'checkpoint_sequential(): there is no argument {", ".join(kwargs)}')
    functions = list(functions.children()) if isinstance(functions, GTorch.Sequential) else list(functions)
    if isinstance(segments, bool) or not isinstance(segments, int):
        raise TypeError(f'checkpoint_sequential(): segments must be a whole number, not {type(segments).__name__}')
    if not 1 <= segments <= len(functions):
        n = len(functions)
        raise ValueError(f'checkpoint_sequential(): segments is {segments}, and there are {n} functions to divide')
    reentrant = _kind(use_reentrant)

    def run(part):
        def forward(value):
            for function in part:
                value = function(value)
            return value

        return forward

    each = len(functions) // segments
    last = each * (segments - 1)
    for start in range(0, last, each):
        part = run(functions[start : start + each])
        input = checkpoint(part, input, use_reentrant=reentrant, preserve_rng_state=random)
    return run(functions[last:])(input)


def functions():
    return {'checkpoint': checkpoint, 'checkpoint_sequential': checkpoint_sequential}


def members():
    found = noop_context_fn, set_checkpoint_early_stop
    return {**functions(), **{one.__name__: one for one in found}}
