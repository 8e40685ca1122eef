# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Functions that C keeps.

Python's garbage collector cannot look into C: a function there that refers to its owner would leak. So C
gets a function without references, and the real one is in the dictionary of the object, where the collector
sees it. PyGObject keeps that dictionary as long as the object lives.

The hooks of tensors belong to the graph, which is no object. The C accelerator registers them so that the
collector sees them; without it, a hook that refers to its tensor keeps it alive until the hook is
removed."""

import warnings

from gi.overrides._gtorch_convert import GTorch, RawTensor, convert_bool
from gi.overrides._gtorch_errors import guards, passes, passing, restoring
from gi.overrides._gtorch_later import complete
from gi.overrides._gtorch_mixin import mixin
from gi.overrides._gtorch_properties import refuse_attribute


class HookHandle(int):
    """The id of a hook, for remove_hook(), which can remove the hook itself: also at the end of a `with`
    block."""

    @classmethod
    def of(cls, owner, number):
        made = cls(number)
        made._owner = owner
        return made

    def __setattr__(self, name, value):
        if name != '_owner':
            refuse_attribute(self, name, value)
        super().__setattr__(name, value)

    def remove(self):
        """Removes the hook; the second call has no effect."""
        owner, self._owner = self._owner, None
        if owner is not None:
            if isinstance(owner, GTorch.Module):
                remove(GTorch.Module.remove_hook, owner, int(self))
            else:
                owner.remove_hook(int(self))

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        self.remove()

    def __reduce_ex__(self, _protocol):
        return int, (int(self),)  # the hooks of a copy have other ids


class Kept:
    """The functions that an object keeps, by their ids."""

    ATTRIBUTE = '_kept_functions'

    def __init__(self, owner):
        self.functions = {}
        self.made = {}  # the arguments of register_module() except for the owner and prepend, in their order
        owner.__dict__[Kept.ATTRIBUTE] = self

    def call(self, number, *args):
        function = self.functions.get(number)
        return None if function is None else function(*args)  # removed while the hooks run


def kept(owner):
    return owner.__dict__.get(Kept.ATTRIBUTE) or Kept(owner)


def check(name, function):
    if not callable(function):
        raise TypeError(f'{name}(): the hook {function!r} cannot be called')


def describe(name, function):
    return f'{name}: {getattr(function, "__qualname__", None) or type(function).__name__}'


def refuse(name, function, result, wanted):
    raise TypeError(f'{describe(name, function)} gave {type(result).__name__}, not {wanted}')


# --- tensors ---


def gradient_hook(function):
    def call(grad, *_data):
        result = function(grad)
        if result is None or isinstance(result, RawTensor):
            return result
        refuse('register_hook', function, result, 'a tensor or None')

    return call


def accumulated_hook(function, data):
    def call(tensor, *_data):
        function(tensor, *data)
        return True

    return call


def register(name, owner, function, data=()):
    """Registers a hook of a tensor."""
    check(name, function)
    complete()  # from now on there are objects that the collector has to look for in C
    accumulated = name != 'register_hook'
    hook = accumulated_hook(function, data) if accumulated else gradient_hook(function)
    hook = passes(describe(name, function), hook)
    if mixin is not None:
        return mixin.add_hook(owner, hook, accumulated)
    return getattr(RawTensor, name)(owner, hook)


# --- modules ---


def inputs_from(name, function, result):
    """Returns the inputs that a hook has returned, as a list; None if it returned None."""
    if result is None or isinstance(result, RawTensor):
        return None if result is None else [result]
    if isinstance(result, (tuple, list)) and all(isinstance(one, RawTensor) for one in result):
        return list(result)
    refuse(name, function, result, 'a tensor, several or None')


def new_inputs(name, function, result):
    """Returns the arguments that a hook with_kwargs has returned."""
    if result is None:
        return None
    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], tuple) and isinstance(result[1], dict):
        return result
    refuse(name, function, result, 'None or a tuple of the arguments and those by name')


def register_module(name, owner, function, data=(), prepend=False, with_kwargs=False, always_call=False):
    """Registers a hook of a module, which is called with the module, its inputs and, after forward, the
    output; or with the gradients of a backward pass."""
    check(name, function)
    made = name, function, data, with_kwargs, always_call
    add = _add_forward if name in FORWARD else _add_backward
    number = add(*made, owner, prepend)
    kept(owner).made = {number: made, **kept(owner).made} if prepend else {**kept(owner).made, number: made}
    return number


FORWARD = 'register_forward_pre_hook', 'register_forward_hook'
FORWARD_OF_ALL = {'register_module_forward_pre_hook': FORWARD[0], 'register_module_forward_hook': FORWARD[1]}
AFTER_FORWARD = 'register_forward_hook', 'register_module_forward_hook'
AFTER_BACKWARD = 'register_full_backward_hook', 'register_module_full_backward_hook'


def _forward_runner(name, function, data, with_kwargs):
    """What C calls: hook(module, inputs), or, with the output behind them."""
    what, after = describe(name, function), name in AFTER_FORWARD

    def run(module, inputs, *rest):
        # the length of the list may be passed with it
        outputs = ([one for one in rest if isinstance(one, RawTensor)] or [None])[:1] if after else []
        options = ({},) if with_kwargs else ()
        result = function(module, tuple(inputs), *options, *outputs, *data)
        if not after and with_kwargs and result is not None:
            result, named = new_inputs(name, function, result)
            if named:
                raise TypeError(f'{what}: {type(module).__name__} takes no arguments by name')
        if not after:
            return inputs_from(name, function, result)
        if result is None or isinstance(result, RawTensor):
            return result
        refuse(name, function, result, 'a tensor or None')

    return run


def _add_forward(name, function, data, with_kwargs, always_call, owner, prepend):
    what, number = describe(name, function), None
    after = name == 'register_forward_hook'

    @guards(what)
    def call(module, inputs, *rest):
        return passing(what, kept(module).call, number, module, inputs, *rest)

    if mixin is not None:
        number = mixin.add_module_hook(owner, call, after, prepend, always_call)
    elif after:
        number = GTorch.Module.register_forward_hook_full(owner, prepend, always_call, call)
    else:
        number = GTorch.Module.register_forward_pre_hook_full(owner, prepend, call)
    kept(owner).functions[number] = _forward_runner(name, function, data, with_kwargs)
    return number


def _backward_runner(name, function, data):
    after = name in AFTER_BACKWARD

    def run(module, *grads):
        # the lengths of the lists may be passed with them
        lists = [tuple(one) for one in grads if isinstance(one, (list, tuple))][: 2 if after else 1]
        result = function(module, *lists, *data)
        if result is None or isinstance(result, RawTensor):
            return None if result is None else [result]
        if isinstance(result, (tuple, list)) and all(one is None or isinstance(one, RawTensor) for one in result):
            return list(result)
        refuse(name, function, result, 'a tensor, several or None')

    return run


def _add_backward(name, function, data, _with_kwargs, _always_call, owner, prepend):
    what, number = describe(name, function), None
    after = name == 'register_full_backward_hook'

    @guards(what)
    def call(module, *grads):
        return passing(what, kept(module).call, number, module, *grads)

    if mixin is not None:
        number = mixin.add_backward_hook(owner, call, after, prepend)
    else:
        number = getattr(GTorch.Module, name)(owner, prepend, call)
    kept(owner).functions[number] = _backward_runner(name, function, data)
    return number


# --- all modules ---


_global = {}  # as Kept.made, of all modules


class GlobalHook:
    """A hook of all modules, for its removal."""

    def __init__(self, number):
        self.id = number

    def remove(self):
        """Removes the hook; the second call has no effect."""
        if _global.pop(self.id, None) is not None:
            GTorch.Module.remove_global_hook(self.id)

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        self.remove()


def _add_global(name, raw, hook, *flags, with_kwargs=False, always_call=False):
    check(name, hook)
    is_forward = name in FORWARD_OF_ALL
    run = _forward_runner(name, hook, (), with_kwargs) if is_forward else _backward_runner(name, hook, ())
    number = getattr(GTorch.Module, raw)(*flags, passes(describe(name, hook), run))
    _global[number] = FORWARD_OF_ALL.get(name, name), hook, (), with_kwargs, always_call
    return GlobalHook(number)


def register_module_forward_pre_hook(hook):
    """Calls hook(module, inputs) before the forward() of each module."""
    return _add_global('register_module_forward_pre_hook', 'register_global_forward_pre_hook', hook)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """Calls hook(module, inputs, output) after the forward() of each module; with_kwargs, hook(module, inputs, options,
    output). With always_call it is called after an error, too."""
    always = convert_bool(always_call)
    return _add_global('register_module_forward_hook', 'register_global_forward_hook', hook, always,
                       with_kwargs=convert_bool(with_kwargs), always_call=always)


def register_module_full_backward_pre_hook(hook):
    """Calls hook(module, grad_outputs) before the backward pass of each module; it may return others."""
    return _add_global('register_module_full_backward_pre_hook', 'register_global_full_backward_pre_hook', hook)


def register_module_full_backward_hook(hook):
    """Calls hook(module, grad_inputs, grad_outputs) after the backward pass of each module."""
    return _add_global('register_module_full_backward_hook', 'register_global_full_backward_hook', hook)


OF_ALL = {one.__name__: one for one in (
    register_module_forward_pre_hook, register_module_forward_hook, register_module_full_backward_pre_hook,
    register_module_full_backward_hook,
)}


def _registered(owner):
    """The hooks of a call, those of all modules first."""
    return [*_global.items(), *kept(owner).made.items()]


def _is_there(owner, number):
    return number in _global or number in kept(owner).made


def _through(function, values, what):
    """Puts the tensors among @values through a function of C's."""
    tensors = [one for one in values if isinstance(one, RawTensor)]
    if what is not None and not tensors:
        raise TypeError(f'{what}: hooks of the backward pass need tensors among the outputs')
    if not tensors or not GTorch.is_grad_enabled():
        return values
    results = iter(restoring(GTorch.Function.apply, function, tensors))
    if not any(one.requires_grad for one in tensors):
        return values  # it only counts them
    return [next(results) if isinstance(one, RawTensor) else one for one in values]


def _before(owner, registered, inputs, options):
    for number, (name, function, data, with_kwargs, _flag) in registered:
        if name != 'register_forward_pre_hook' or not _is_there(owner, number):
            continue
        if with_kwargs:
            result = new_inputs(name, function, function(owner, inputs, options, *data))
            inputs, options = (inputs, options) if result is None else result
            continue
        result = function(owner, inputs, *data)
        if not options and all(isinstance(one, RawTensor) for one in inputs):
            result = inputs_from(name, function, result)
            result = None if result is None else tuple(result)
        if result is not None:
            inputs = result if isinstance(result, tuple) else (result,)
    return inputs, options


def _always(owner, rest, inputs, options, output):
    """After an error, hooks that are always called are called as well."""
    for name, function, data, with_kwargs, always_call in rest:
        if name == 'register_forward_hook' and always_call:
            try:
                function(owner, inputs, *((options,) if with_kwargs else ()), output, *data)
            except Exception as error:
                warnings.warn(f'{describe(name, function)} failed after another error: {error}', stacklevel=2)


def run_forward(owner, inputs, options):
    """forward() between the hooks that Python has registered. They may replace tensors by tensors, and anything else
    by anything."""
    registered, output, n_called = _registered(owner), None, 0
    try:
        inputs, options = _before(owner, registered, inputs, options)
        of_inputs, of_outputs = GTorch.Module.new_backward_hooks(owner)
        if of_inputs is not None:
            inputs = tuple(_through(of_inputs, inputs, None))
        output = owner.forward(*inputs, **options)
        for number, (name, function, data, with_kwargs, _flag) in registered:
            n_called += 1
            if name == 'register_forward_hook' and _is_there(owner, number):
                result = function(owner, inputs, *((options,) if with_kwargs else ()), output, *data)
                if isinstance(output, RawTensor) and not (result is None or isinstance(result, RawTensor)):
                    refuse(name, function, result, 'a tensor or None')
                output = output if result is None else result
    except Exception:
        _always(owner, [one for _number, one in registered[n_called:]], inputs, options, output)
        raise
    if of_outputs is None:
        return output
    is_several = isinstance(output, (tuple, list))
    results = _through(of_outputs, list(output) if is_several else [output], type(owner).__name__)
    return type(output)(results) if is_several else results[0]


class Recording:
    """How many profilers have been started that record calls of modules."""

    n = 0


def recorded(owner, compute, *arguments):
    """compute(…), as a call of the module in profiles: C knows of no forward() that Python calls by itself."""
    call = owner.profile_call()
    try:
        return compute(*arguments)
    finally:
        if call is not None:
            call.end()


def run(owner, is_hooked, inputs, options):
    """A forward() of Python."""
    return run_forward(owner, inputs, options) if is_hooked else owner.forward(*inputs, **options)


def remove(raw, owner, number):
    removed = raw(owner, number)
    if removed:
        kept(owner).functions.pop(number, None)
        kept(owner).made.pop(number, None)
    return removed
