# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Exceptions that pass through C.

A Python function that C calls can only fail with a GError. passing() converts any exception to one and
stores the exception itself; restoring() wraps the calls into C that may run such functions, and raises
the stored exception: the same object, with its traceback. If the exception is an error of the library and
C has added its own location, that error is raised, with the original as its cause. If no call in this
thread waits, as in the callback of a main loop, the GError arrives with the text of the exception."""

import atexit
import functools
import os
import sys
import threading
import time
import weakref

from gi.repository import GLib

from gi.overrides._gtorch_convert import GTorch
from gi.overrides._gtorch_mixin import mixin
from gi.overrides._gtorch_properties import OWN


class _State:
    """The exceptions of a thread, with the messages of their errors; the last is the innermost."""

    def __init__(self):
        self.pending, self.depth = [], 0
        self.is_in_c = False  # where a function of Python's may be called
        self.interrupt = None  # told of KeyboardInterrupt and the like, whose errors C may ignore


class _Thread(threading.local):
    def __init__(self):
        self.state = _State()
        _states.add(self.state)


_states = weakref.WeakSet()
_thread = _Thread()
Failure, DOMAIN, FAILED = GLib.Error, GLib.quark_to_string(GTorch.error_quark()), int(GTorch.Error.FAILED)
MANY = 16  # nested calls into C; more of them may be an infinite recursion
# Python calls that remain possible when C is called, enough for passing() to report an error
SPARE = 40
LOST = 'Converting the GError failed'  # says PyGObject


# --- the end of the program ---

ENOUGH = 10.0  # seconds for the calls of other threads to come to a function of Python's
MOMENT = 0.25  # seconds for what they compute between these calls
STEP, N_QUIET = 0.001, 20  # a thread waits if that many looks at it, with a step between them, see the same
_last = None  # the state of the thread that ends the program, once it does


def _stop(state):
    """A daemon thread that comes back from C after Python's end would find nothing there: it stays here."""
    state.is_in_c = False
    while True:
        time.sleep(3600)


def _forget_others():
    """A child of fork() has none of the other threads."""
    _states.clear()
    _states.add(_thread.state)


os.register_at_fork(after_in_child=_forget_others)


def _is_any_in_c():
    try:
        return any(one.is_in_c for one in _states if one is not _last)
    except RuntimeError:  # a thread has come meanwhile
        return True


def _places():
    """Where the other threads are."""
    me = threading.get_ident()
    return {thread: (id(frame), frame.f_lasti) for thread, frame in sys._current_frames().items() if thread != me}


@atexit.register
def _end():
    """Lets the calls of daemon threads into C come to a function of Python's, and stops them there: without the
    interpreter PyGObject leaves the result of such a function as it finds it. What they compute in between comes to
    the next call or to a wait, too: where PyGObject frees an object while the interpreter ends, it does not take the
    interpreter's lock again, and the thread would go on without it."""
    global _last
    _last = _thread.state
    until = time.monotonic() + ENOUGH
    while _is_any_in_c() and time.monotonic() < until:
        time.sleep(STEP)
    if len(_states) < 2:
        return
    places, n_quiet, until = _places(), 0, time.monotonic() + MOMENT
    while n_quiet < N_QUIET and time.monotonic() < until:
        time.sleep(STEP)
        former, places = places, _places()
        n_quiet = n_quiet + 1 if places == former else 0


# --- exceptions ---


def _text(what, error):
    """What the error of GLib's says: UTF-8 without nulls."""
    try:
        text = str(error.message if isinstance(error, Failure) else error)
    except Exception:
        text = 'an exception without a text'
    if not isinstance(error, Failure):
        text = f'{what}: {type(error).__name__}: {text}'
    return text.encode('utf-8', 'backslashreplace').decode().replace('\0', '\\0')


def _descend(n):
    if n > 0:
        _descend(n - 1)


def passing(what, call, *args):
    """call (…), for C: an exception becomes an error of GLib's. @what is named in its message."""
    state = _thread.state
    was_in_c, state.is_in_c = state.is_in_c, False
    if _last is not None and state is not _last:
        _stop(state)
    try:
        return call(*args)
    except BaseException as error:
        is_ours = isinstance(error, Failure)
        message = _text(what, error)
        if state.depth > 0:
            state.pending.append((error, message))
        if state.interrupt is not None and not isinstance(error, Exception):
            state.interrupt(error)
        if is_ours and message == error.message:
            raise
        # created without any Python function: at the end of the stack none can be called
        told = Failure.__new__(Failure)
        told.domain, told.code = (error.domain, error.code) if is_ours else (DOMAIN, FAILED)
        told.message = message
        raise told from error
    finally:
        # Told first and asked afterwards: the program may begin to end in between.
        state.is_in_c = was_in_c
        if _last is not None and state is not _last:
            _stop(state)


def _raise(error):
    raise error


def guard(what, function):
    """@function, which calls passing() or raises nothing but errors of GLib's, for C. What Python raises before its
    first line, as for Ctrl-C, becomes such an error as well."""
    rescue = functools.partial(passing, what, _raise)
    return function if mixin is None else mixin.Guard(function, rescue, Failure)


def guards(what):
    """Decorates such methods."""
    return lambda function: functools.update_wrapper(guard(what, function), function)


def failure_of(what, error):
    """The error of GLib's that an exception becomes. @what is named in its message."""
    if isinstance(error, Failure):
        return error
    return Failure.new_literal(GTorch.error_quark(), _text(what, error), FAILED)


def passes(what, function):
    """Wraps the function for C."""
    return guard(what, functools.partial(passing, what, function))


def restoring(call, *args, **options):
    """Calls into C, and raises what Python code has raised there as it was."""
    state = _thread.state
    if state.depth > MANY:
        _descend(SPARE)
    depth, found, longer = len(state.pending), None, None
    was_in_c = state.is_in_c
    state.depth += 1
    state.is_in_c = True
    if _last is not None and state is not _last:
        _stop(state)
    try:
        return call(*args, **options)
    except Failure as error:
        # The message may have been added to on its way.
        for exception, message in reversed(state.pending[depth:]):
            if message in error.message:
                found = exception
                break
        if found is None:
            raise
        if isinstance(found, Failure) and error.message != message:
            longer = error  # the library tells more
    except RuntimeError as error:
        # A signal's handler, as that of Ctrl-C, has raised while PyGObject made the exception of the error: it has
        # printed what was raised, and kept it there.
        if type(error) is not RuntimeError or str(error) != LOST or not isinstance(sys.last_value, BaseException):
            raise
        found = sys.last_value
    finally:
        state.is_in_c = was_in_c
        state.depth -= 1
        del state.pending[depth:]
    try:
        if longer is not None:
            longer.__context__ = None
            raise longer from found
        raise found
    finally:
        del found, longer  # their tracebacks have this frame


def interruptible(take, call, *args):
    """The same as restoring(), with take(exception) for what is no Exception, such as KeyboardInterrupt, at once: C may
    ignore the error that it becomes, as that of a length which need not be known."""
    state = _thread.state
    before, state.interrupt = state.interrupt, take
    try:
        return restoring(call, *args)
    finally:
        state.interrupt = before


def restores(function):
    """Wraps the C function in restoring ()."""

    def call(*args, **options):
        return restoring(function, *args, **options)

    call.__name__ = call.__qualname__ = getattr(function, '__name__', 'call')
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

        functools.update_wrapper(guarded, function)
        setattr(cls, f'do_{name}', guards(f'{cls.__name__}.{name}()')(guarded))
