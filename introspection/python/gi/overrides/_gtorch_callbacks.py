# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Functions that C calls before it returns: their exceptions propagate.

An exception of a function that C calls later, from a main loop (a signal handler, the progress of an
asynchronous operation), has no caller to propagate to: PyGObject prints it."""

import weakref

from gi.repository import Gio, GLib

from gi.overrides._gtorch_convert import GTorch, RawTensor, convert_bool, convert_enum
from gi.overrides._gtorch_errors import passes, restores, restoring
from gi.overrides._gtorch_hooks import check, describe, kept, refuse
from gi.overrides._gtorch_mixin import mixin

# The position of the function among the arguments. The accelerator calls all of these.
RUNNERS = {
    ('Device', 'run'): 1,
    ('Device', 'run_as_default'): 1,
    ('MemoryPool', 'run'): 1,
    ('Stream', 'run'): 1,
    ('CUDAGraph', 'capture'): 3,
    (None, 'autocast_run'): 4,
    (None, 'record_function'): 1,
}
# The number of arguments before the cancellable and the callback of what the accelerator begins.
BEGINNERS = {
    ('Device', 'synchronize_async'): 0,
    ('Event', 'synchronize_async'): 0,
    ('GradScaler', 'step_async'): 1,
    ('Module', 'forward_async'): 1,
    ('Stream', 'synchronize_async'): 0,
    ('Tensor', 'backward_async'): 3,
    ('Tensor', 'copy_inplace_async'): 1,
    ('Tensor', 'get_bytes_async'): 0,
    ('Tensor', 'item_double_async'): 0,
    ('Tensor', 'item_int_async'): 0,
    ('Tensor', 'to_device_async'): 1,
    ('Tensor', 'to_doubles_async'): 0,
    ('Tensor', 'to_ints_async'): 0,
    ('Timer', 'stop_async'): 0,
}
# Functions that call virtual functions, which a class in Python may define.
CALLERS = {
    'DataLoader': ('check', 'get_length', 'get_state', 'set_state'),
    'DataLoaderIter': ('next',),
    'Dataset': ('get_batch', 'get_item', 'get_length'),
    'GradScaler': ('step',),
    'IndexSource': ('next',),
    'IterableDataset': ('get_state', 'iterate', 'set_state'),
    'LRScheduler': ('initial_step', 'step'),
    'Loss': ('forward',),
    'MemorySource': ('allocate',),
    'Module': ('checkpoint', 'forward', 'forward_many'),
    'Optimizer': ('step',),
    'SampleSource': ('next',),
    'Sampler': ('get_length', 'iterate', 'set_state'),
}


def _by_mixin(owner, name):
    """The accelerator's form of a runner."""
    if name == 'autocast_run':
        return lambda kind, dtype, enabled, cached, call: mixin.autocast_run(
            convert_enum(GTorch.DeviceType, kind, 'autocast_run(): device_type'),
            dtype,
            convert_bool(enabled),
            convert_bool(cached),
            call,
        )
    if name in ('capture', 'record_function'):
        return getattr(mixin, name)
    return lambda self, call: mixin.run(f'{owner}.{name}', self, call)


def runner(name, raw, position, is_method):
    """@raw, which gives what its function gives, or raises what that raises."""

    def run(*args):
        if name == 'capture' and len(args) == 2 and callable(args[1]):
            args = args[0], None, None, args[1]  # the function alone
        if len(args) <= position:
            raise TypeError(f'{name}() needs {position + 1 - is_method} arguments; {len(args) - is_method} were given')
        given, function, data = args[:position], args[position], args[position + 1 :]
        if not callable(function):
            raise TypeError(f'{name}(): {function!r} cannot be called')
        results = []

        def call(*values):
            results.append(function(*values, *data))
            return True

        restoring(raw, *given, passes(describe(name, function), call))
        return results[-1]

    run.__name__ = run.__qualname__ = name
    return run


def beginner(owner, name, raw, n):
    """@raw, which the accelerator calls if a function is to be called at the end."""

    def begin(self, *args):
        if len(args) < n + 2 or not callable(args[n + 1]):
            return raw(self, *args)
        function, data = args[n + 1], args[n + 2 :]

        def complete(source, result):
            function(source, result, *data)

        mixin.begin(f'{owner}.{name}', self, args[:n], args[n], complete if data else function)

    begin.__name__ = begin.__qualname__ = name
    begin.__doc__ = raw.__doc__
    begin.__wrapped__ = raw  # it takes the same arguments
    return begin


def with_progress(raw, position):
    """Wraps @raw, which ends when its progress function raises. The cancellable comes before that
    function."""

    def call(*args):
        args, data = list(args[: position + 1]), args[position + 1 :]
        if len(args) <= position or args[position] is None:
            return raw(*args)
        outer, progress = args[position - 1], args[position]
        inner, raised = Gio.Cancellable(), []

        def report(done, total, *_data):
            if raised:
                return
            try:
                progress(done, total, *data)
            except BaseException as error:
                raised.append(error)
                inner.cancel()

        handler = 0
        if outer is not None:
            handler = outer.connect(lambda *_: inner.cancel(), None)
        args[position - 1 :] = inner, report
        try:
            result = raw(*args)
        except GLib.Error:
            if not raised:
                raise
        finally:
            if handler:
                outer.disconnect(handler)
        try:
            if raised:
                raise raised[0]
        finally:
            raised.clear()  # its traceback has this frame
        return result

    return call


def install_methods(owner):
    """Those of one class."""
    cls = getattr(GTorch, owner)
    for (of, name), n in BEGINNERS.items() if mixin is not None else ():
        if of == owner:
            setattr(cls, name, beginner(owner, name, getattr(cls, name), n))


def _register_comm_hook(raw):
    """@raw, whose function is where the collector sees it, and raises out of the backward pass."""

    def register_comm_hook(self, hook, *data):
        check('register_comm_hook', hook)
        owner = weakref.ref(self)

        def call(bucket, *_data):
            module = owner()
            if module is None:
                raise RuntimeError('register_comm_hook: the module is gone')
            result = kept(module).functions[0](bucket, *data)
            if not isinstance(result, RawTensor):
                refuse('register_comm_hook', hook, result, 'a tensor')
            return result

        raw(self, passes(describe('register_comm_hook', hook), call))
        kept(self).functions[0] = hook  # the ids of other hooks begin with 1
        return True

    register_comm_hook.__doc__ = raw.__doc__
    return register_comm_hook


def install(export):
    GTorch.DistributedModule.register_comm_hook = _register_comm_hook(GTorch.DistributedModule.register_comm_hook)
    for (owner, name), position in RUNNERS.items():
        cls = GTorch if owner is None else getattr(GTorch, owner)
        raw = getattr(cls, name)
        made = runner(name, raw if mixin is None else _by_mixin(owner, name), position, owner is not None)
        made.__doc__ = raw.__doc__
        if owner is None:
            export(name, made)
        else:
            setattr(cls, name, made)
    for owner in {owner for owner, _name in BEGINNERS} - {'Tensor'}:
        install_methods(owner)
    for owner, names in CALLERS.items():
        cls = getattr(GTorch, owner)
        for name in names:
            if name in vars(cls):
                setattr(cls, name, restores(vars(cls)[name]))
