# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Functions that C calls before it returns: their exceptions propagate.

An exception of a function that C calls later, from a main loop (a signal handler, the progress of an
asynchronous operation), has no caller to propagate to: PyGObject prints it."""

from gi.repository import Gio, GLib

from gi.overrides._gtorch_convert import GTorch
from gi.overrides._gtorch_errors import passes, restores, restoring
from gi.overrides._gtorch_hooks import describe

# The position of the function among the arguments.
RUNNERS = {
    ('Device', 'run'): 1,
    ('Device', 'run_as_default'): 1,
    ('MemoryPool', 'run'): 1,
    ('Stream', 'run'): 1,
    ('CUDAGraph', 'capture'): 3,
    (None, 'autocast_run'): 4,
}
# Functions that call virtual functions, which a class in Python may define.
CALLERS = {
    'GradScaler': ('step',),
    'LRScheduler': ('step',),
    'Loss': ('forward',),
    'MemorySource': ('allocate',),
    'Module': ('forward', 'forward_many'),
    'Optimizer': ('step',),
}


def runner(name, raw, position, is_method):
    """@raw, which gives what its function gives, or raises what that raises."""

    def run(*args):
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
    run.__doc__ = raw.__doc__
    return run


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


def install(export, _submodule, _ops):
    for (owner, name), position in RUNNERS.items():
        if owner is None:
            export(name, runner(name, getattr(GTorch, name), position, False))
        else:
            cls = getattr(GTorch, owner)
            setattr(cls, name, runner(name, getattr(cls, name), position, True))
    for owner, names in CALLERS.items():
        cls = getattr(GTorch, owner)
        for name in names:
            if name in vars(cls):
                setattr(cls, name, restores(vars(cls)[name]))
