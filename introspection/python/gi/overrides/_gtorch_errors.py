# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Exceptions that pass through C.

A Python function that C calls can only fail with a GError. passing() converts any exception to one and
stores the exception itself; restoring() wraps the calls into C that may run such functions, and raises
the stored exception: the same object, with its traceback. If the exception is an error of the library and
C has added its own location, that error is raised, with the original as its cause. If no call in this
thread waits, as in the callback of a main loop, the GError arrives with the text of the exception."""

import functools
import threading

from gi.repository import GLib

from gi.overrides._gtorch_convert import GTorch
from gi.overrides._gtorch_properties import OWN


class _Thread(threading.local):
    """The exceptions, with the messages of their errors; the last one is the innermost."""

    def __init__(self):
        self.pending, self.depth = [], 0


_thread = _Thread()
Failure, DOMAIN, FAILED = GLib.Error, GLib.quark_to_string(GTorch.error_quark()), int(GTorch.Error.FAILED)
MANY = 16  # nested calls into C; more of them may be an infinite recursion
# Python calls that remain possible when C is called, enough for passing() to report an error
SPARE = 40


def _descend(n):
    if n > 0:
        _descend(n - 1)


def passing(what, call, *args):
    """Runs call (…) for C: an exception becomes a GError. @what is named in its message."""
    try:
        return call(*args)
    except BaseException as error:
        is_ours = isinstance(error, GLib.Error)
        message = error.message if is_ours else f'{what}: {type(error).__name__}: {error}'
        if _thread.depth > 0:
            _thread.pending.append((error, message))
        if is_ours:
            raise
        # created without any Python function: at the end of the stack none can be called
        told = Failure.__new__(Failure)
        told.domain, told.code, told.message = DOMAIN, FAILED, message
        raise told from error


def passes(what, function):
    """Wraps the function for C."""
    return functools.partial(passing, what, function)


def restoring(call, *args, **options):
    """Calls into C, and raises what Python code has raised there, unchanged."""
    if _thread.depth > MANY:
        _descend(SPARE)
    depth, found, longer = len(_thread.pending), None, None
    _thread.depth += 1
    try:
        return call(*args, **options)
    except GLib.Error as error:
        # the library may have added to the message
        for exception, message in reversed(_thread.pending[depth:]):
            if message in error.message:
                found = exception
                break
        if found is None:
            raise
        if isinstance(found, GLib.Error) and error.message != message:
            longer = error  # the library's error says more
    finally:
        _thread.depth -= 1
        del _thread.pending[depth:]
    try:
        if longer is not None:
            longer.__context__ = None
            raise longer from found
        raise found
    finally:
        del found, longer  # their tracebacks have this frame


def restores(function):
    """Wraps the C function in restoring ()."""

    def call(*args, **options):
        return restoring(function, *args, **options)

    call.__name__ = getattr(function, '__name__', 'call')
    call.__doc__ = function.__doc__
    return call


def own_vfunc(cls, name):
    """Returns the virtual function that @cls itself defines, with or without do_ before its name; or
    None."""
    own = vars(cls)
    if f'do_{name}' in own or not callable(own.get(name)) or cls.__module__ in OWN:
        return own.get(f'do_{name}')

    def call(self, *args):
        return getattr(self, name)(*args)

    return functools.wraps(own[name])(call)


def guard_vfuncs(cls, names):
    """Lets exceptions propagate from the virtual functions that @cls itself defines."""
    for name in names:
        function = own_vfunc(cls, name)
        if function is None:
            continue

        def guarded(self, *args, _function=function, _name=name):
            return passing(f'{type(self).__name__}.{_name}()', _function, self, *args)

        setattr(cls, f'do_{name}', functools.wraps(function)(guarded))
