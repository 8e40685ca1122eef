# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Functions that C keeps.

Python's garbage collector cannot look into C: a function there that refers to its owner would leak. So C
gets a function without references, and the real one is in the dictionary of the object, where the collector
sees it. PyGObject keeps that dictionary as long as the object lives.

The hooks of tensors belong to the graph, which is no object. The C accelerator registers them so that the
collector sees them; without it, a hook that refers to its tensor keeps it alive until the hook is
removed."""

from gi.overrides._gtorch_convert import GTorch, RawTensor
from gi.overrides._gtorch_errors import passes, passing
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
        self.made = {}  # the arguments of register_forward() except for the owner
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


def register_forward(name, owner, function, data):
    """Registers a hook of a module, which is called with the module, its inputs and, after forward, the
    output."""
    check(name, function)
    what, number = describe(name, function), None
    after = name == 'register_forward_hook'

    def call(module, inputs, *rest):
        return passing(what, kept(module).call, number, module, inputs, *rest)

    def run(module, inputs, *rest):
        # the length of the list may be passed with it
        outputs = [one for one in rest if isinstance(one, RawTensor)][:1] if after else []
        result = function(module, tuple(inputs), *outputs, *data)
        if not after:
            return inputs_from(name, function, result)
        if result is None or isinstance(result, RawTensor):
            return result
        refuse(name, function, result, 'a tensor or None')

    if mixin is not None:
        number = mixin.add_module_hook(owner, call, after)
    else:
        number = getattr(GTorch.Module, name)(owner, call)
    kept(owner).functions[number] = run
    kept(owner).made[number] = name, function, data
    return number


def run_forward(owner, inputs, options):
    """forward() between the hooks that Python has registered. They may replace tensors by tensors, and anything else
    by anything."""
    made = kept(owner).made
    registered = list(made.items())
    for number, (name, function, data) in registered:
        if name == 'register_forward_pre_hook' and number in made:
            result = function(owner, inputs, *data)
            if not options and all(isinstance(one, RawTensor) for one in inputs):
                result = inputs_from(name, function, result)
                result = None if result is None else tuple(result)
            if result is not None:
                inputs = result if isinstance(result, tuple) else (result,)
    output = owner.forward(*inputs, **options)
    for number, (name, function, data) in registered:
        if name == 'register_forward_hook' and number in made:
            result = function(owner, inputs, output, *data)
            if isinstance(output, RawTensor) and not (result is None or isinstance(result, RawTensor)):
                refuse(name, function, result, 'a tensor or None')
            output = output if result is None else result
    return output


def remove(raw, owner, number):
    removed = raw(owner, number)
    if removed:
        kept(owner).functions.pop(number, None)
        kept(owner).made.pop(number, None)
    return removed
