# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is saved for backward passes: GTorch.autograd.graph."""

from gi.repository import GLib, GObject

from gi.overrides._gtorch_context import Decorator, enter, leave
from gi.overrides._gtorch_convert import GTorch, RawTensor, convert_bool
from gi.overrides._gtorch_errors import guards, passing
from gi.overrides._gtorch_mixin import mixin


class Packed(GObject.Object):
    """Anything that a function has packed; tensors are packed as they are."""

    __gtype_name__ = 'GTorchPythonPacked'

    @classmethod
    def of(cls, value):
        made = cls()
        made.value = value
        return made


def begin(pack, unpack, raised):
    """Begins the use of hooks. @raised gets the exceptions of @pack, with the texts of their errors."""

    @guards('saved_tensors_hooks: pack_hook')
    def call_pack(tensor, *_data):
        def call():
            value = pack(tensor)
            return value if isinstance(value, RawTensor) else Packed.of(value)

        try:
            return passing('saved_tensors_hooks: pack_hook', call)
        except GLib.Error as error:
            raised.append((error.__cause__ or error, error.message))
            raise

    @guards('saved_tensors_hooks: unpack_hook')
    def call_unpack(packed, *_data):
        def call():
            tensor = unpack(packed.value if isinstance(packed, Packed) else packed)
            if not isinstance(tensor, RawTensor):
                kind = type(tensor).__name__
                raise TypeError(f'saved_tensors_hooks: unpack_hook gave {kind}, not a tensor')
            return tensor

        return passing('saved_tensors_hooks: unpack_hook', call)

    if mixin is not None:
        return mixin.saved_hooks(call_pack, call_unpack)
    return GTorch.saved_tensors_hooks(call_pack, (), call_unpack, ())


class saved_tensors_hooks(Decorator):  # noqa: N801, the name is PyTorch's
    """A block in which what operations save for their backward pass is what @pack_hook makes of it, and @unpack_hook
    makes the tensor again.

    An operation whose @pack_hook raises fails with a GLib.Error of its text; out of the block comes the exception."""

    def __init__(self, pack_hook, unpack_hook):
        for name, hook in (('pack_hook', pack_hook), ('unpack_hook', unpack_hook)):
            if not callable(hook):
                raise TypeError(f'saved_tensors_hooks(): {name} {hook!r} cannot be called')
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook
        self._raised = []

    def __enter__(self):
        enter(self, begin(self.pack_hook, self.unpack_hook, self._raised))

    def __exit__(self, _kind, error, _traceback):
        leave(self)
        raised = list(self._raised)
        self._raised.clear()
        for exception, message in reversed(raised):
            if isinstance(error, GLib.Error) and exception is not error and message in error.message:
                try:
                    raise exception
                finally:
                    exception.__context__ = None  # the error that it has become
                    del exception, raised, error
        return False


class save_on_cpu(Decorator):  # noqa: N801, the name is PyTorch's
    """A block in which what operations save for their backward pass is kept in the memory of the CPU."""

    def __init__(self, pin_memory=False, device_type='cuda'):
        self._pin_memory = convert_bool(pin_memory)
        if device_type != 'cuda':
            raise ValueError(f'save_on_cpu(): the devices are those of cuda, not of {device_type!r}')

    def __enter__(self):
        enter(self, GTorch.save_on_cpu(self._pin_memory))

    def __exit__(self, *_exception):
        return leave(self)


class disable_saved_tensors_hooks(Decorator):  # noqa: N801, the name is PyTorch's
    """A block in which hooks for saved tensors are refused, with @error_message."""

    def __init__(self, error_message):
        if not isinstance(error_message, str):
            kind = type(error_message).__name__
            raise TypeError(f'disable_saved_tensors_hooks(): error_message must be a text, not {kind}')
        self._message = error_message

    def __enter__(self):
        enter(self, GTorch.disable_saved_tensors_hooks(self._message))

    def __exit__(self, *_exception):
        return leave(self)


def members():
    return {cls.__name__: cls for cls in (saved_tensors_hooks, save_on_cpu, disable_saved_tensors_hooks)}
