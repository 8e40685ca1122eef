# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Differentiable functions written in Python, and a check of their gradients."""

import functools
import threading

from gi.overrides import override
from gi.repository import GObject

from gi.overrides._gtorch_convert import GTorch, RawTensor
from gi.overrides._gtorch_errors import guard_vfuncs, guards, passes, passing, restores, restoring
from gi.overrides._gtorch_mixin import mixin

OVERRIDES = 'gi.overrides.GTorch'  # override() finds the namespace through it
RawFunction = GTorch.Function


def tensor_list(value, what, with_none=False):
    tensors = list(value) if isinstance(value, (list, tuple)) else [value]
    for tensor in tensors:
        if not (isinstance(tensor, RawTensor) or (with_none and tensor is None)):
            raise TypeError(f'{what} gave {type(tensor).__name__}, not a tensor')
    return tensors


def guarded(self, what, call, with_none=False):
    name = f'{type(self).__name__}.{what}()'
    return passing(type(self).__name__, lambda: tensor_list(call(), name, with_none))


# --- arguments that are no tensors: C gets the tensors, and forward() all ---

TENSOR = object()  # stands for the tensors in the list of what was given


class _Given(threading.local):
    function, others = None, None  # of the call that is about to reach forward()


_given = _Given()


def _by_position(function, args, options):
    """The arguments of forward() after the context, in their order."""
    first = () if hasattr(function, 'setup_context') else (None,)
    from inspect import signature

    found = signature(function.forward).bind(*first, *args, **options)
    found.apply_defaults()
    if found.kwargs:
        names = ', '.join(found.kwargs)
        raise TypeError(f'{type(function).__name__}: forward() takes {names} by name only, which backward() cannot')
    return found.args[len(first) :]


def _apply_to(function, args, options):
    if options:
        args = _by_position(function, args, options)
    tensors = [arg for arg in args if isinstance(arg, RawTensor)]
    _given.function, _given.others = function, None
    if len(tensors) < len(args):
        _given.others = [TENSOR if isinstance(arg, RawTensor) else arg for arg in args]
    try:
        outputs = function.apply(tensors)
    finally:
        _given.function = _given.others = None
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _forward(self, context, inputs):
    args = list(inputs)
    if _given.function is self and _given.others is not None:
        context._others, rest = _given.others, iter(inputs)
        args = [next(rest) if arg is TENSOR else arg for arg in _given.others]
    _given.function = _given.others = None
    if not hasattr(self, 'setup_context'):
        return self.forward(context, *args)
    output = self.forward(*args)
    self.setup_context(context, tuple(args), output)
    return output


def _backward(self, context, grads):
    """The gradients of the tensors among the arguments."""
    found = self.backward(context, *grads)
    others = context.__dict__.get('_others')
    if others is None:
        return found
    found = list(found) if isinstance(found, (list, tuple)) else [found]
    what = f'{type(self).__name__}.backward()'
    while len(found) > len(others) and found[-1] is None:
        found.pop()
    if len(found) != len(others):
        raise TypeError(f'{what} gave {len(found)} gradients for {len(others)} arguments')
    for i, (arg, grad) in enumerate(zip(others, found)):
        if arg is not TENSOR and grad is not None:
            kind = type(grad).__name__
            raise TypeError(f'{what} gave {kind} for argument {i}, which is no tensor: its gradient is None')
    return [grad for arg, grad in zip(others, found) if arg is TENSOR]


# A virtual function gets the length of the list as well.
@guards('forward()')
def _do_forward(self, context, inputs, *_length):
    return guarded(self, 'forward', lambda: _forward(self, context, inputs))


@guards('backward()')
def _do_backward(self, context, grads, *_length):
    return guarded(self, 'backward', lambda: _backward(self, context, grads), True)


class _Apply:
    """apply(): of an object it takes a list of tensors, and of a class the arguments, as in PyTorch."""

    __doc__ = RawFunction.apply.__doc__
    raw = staticmethod(restores(RawFunction.apply))

    def __get__(self, owner, cls):
        if owner is not None:
            return functools.partial(self.raw, owner)

        def apply(*inputs, **options):
            if inputs and isinstance(inputs[0], cls):  # Function.apply(function, inputs)
                return self.raw(*inputs)
            return cls()(*inputs, **options)

        return apply


class Function(RawFunction):
    """class Double(GTorch.Function): def forward(self, context, x): …; def backward(self, context, grad): …

    Double()(x), or Double.apply(x), computes and records. backward() returns a gradient for each argument, None
    where there is none, as for arguments that are no tensors. With setup_context(ctx, inputs, output) forward() has no
    context."""

    __module__ = OVERRIDES

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        for name, own in (('forward', _do_forward), ('backward', _do_backward)):
            if name in vars(cls):
                setattr(cls, f'do_{name}' if mixin is None else f'_{name}_from_c', own)
            else:
                guard_vfuncs(cls, (name,))

    def __call__(self, *inputs, **options):
        return _apply_to(self, inputs, options)

    apply = _Apply()


class FunctionContext(GTorch.FunctionContext):
    __module__ = OVERRIDES
    # forward() may store attributes of any name for backward()
    __setattr__ = GObject.Object.__setattr__

    def save_for_backward(self, *tensors):
        """Saves tensors for backward(), which finds them in saved_tensors, with None where that was
        given."""
        GTorch.FunctionContext.save_for_backward(self, [t for t in tensors if t is not None])
        self._absent = [t is None for t in tensors]

    def mark_dirty(self, *tensors):
        """Declares inputs that forward() has changed in place; each must also be an output."""
        GTorch.FunctionContext.mark_dirty(self, list(tensors))

    def mark_non_differentiable(self, *tensors):
        """Declares outputs without gradients."""
        GTorch.FunctionContext.mark_non_differentiable(self, list(tensors))

    def _get_saved(self):
        saved = iter(self.get_saved_tensors())
        return tuple(None if absent else next(saved) for absent in self.__dict__.get('_absent', ()))

    saved_tensors = property(_get_saved)

    def _get_needs(self):
        needs = iter([self.get_needs_input_grad(i) for i in range(self.get_n_inputs())])
        others = self.__dict__.get('_others')
        return tuple(needs) if others is None else tuple(arg is TENSOR and next(needs) for arg in others)

    needs_input_grad = property(_get_needs)


class _Several(Exception):
    """The function gave more than one tensor."""

    def __init__(self, outputs):
        super().__init__()
        self.outputs = outputs


def _output(result, position):
    """The one that is checked."""
    if isinstance(result, (tuple, list)) and result and all(isinstance(one, RawTensor) for one in result):
        if position is None:
            raise _Several(result)
        return result[position]
    if not isinstance(result, RawTensor):
        raise TypeError(f'the function gave {type(result).__name__}, not a tensor or several')
    return result


def _of_tensors(function, inputs):
    """The function of the tensors among the inputs, and these."""

    def call(*tensors):
        rest = iter(tensors)
        return function(*(next(rest) if isinstance(one, RawTensor) else one for one in inputs))

    return call, [one for one in inputs if isinstance(one, RawTensor)]


def _check(raw, raw_function):
    def check(function, inputs, eps=1e-6, atol=1e-5, rtol=1e-3):
        """Compares the gradients with finite differences. Returns True, or raises an error that names the
        difference.

        Inputs of float64 that want gradients; @function takes them and gives a tensor, or several of which each that
        depends on the inputs is checked."""
        inputs = [inputs] if isinstance(inputs, RawTensor) else list(inputs)
        if not all(isinstance(one, RawTensor) for one in inputs):
            function, inputs = _of_tensors(function, inputs)
        if isinstance(function, RawFunction):
            return restoring(raw_function, function, inputs, eps, atol, rtol)

        def run(position):
            def call(tensors, *_):
                return _output(function(*tensors), position)

            given = passes(raw.__name__, call)
            if mixin is not None:
                return restoring(mixin.gradcheck, raw.__name__ == 'gradgradcheck', given, inputs, eps, atol, rtol)
            return restoring(raw, given, None, inputs, eps, atol, rtol)

        try:
            return run(None)
        except _Several as several:
            positions = [i for i, output in enumerate(several.outputs) if output.requires_grad]
        return all([run(position) for position in positions or [0]])

    check.__name__ = check.__qualname__ = raw.__name__
    return check



def install(export, autograd):
    autograd['Function'] = export('Function', override(Function))
    export('FunctionContext', override(FunctionContext))
    for name in ('gradcheck', 'gradgradcheck'):
        raw, raw_function = getattr(GTorch, name), getattr(GTorch, f'{name}_function')
        autograd[name] = export(name, _check(raw, raw_function))
