# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""torch.distributed.elastic.multiprocessing.errors: what a process tells gtorch-run of its end."""

import faulthandler
import functools
import json
import os
import time
import traceback
import warnings

from gi.repository import Gio

VARIABLE = 'TORCHELASTIC_ERROR_FILE'


class ErrorHandler:
    """Writes exceptions to the file that the variable TORCHELASTIC_ERROR_FILE names, from which gtorch-run and torchrun
    report them. Without the variable it writes nothing.

    A class of the program's own may override initialize(), record_exception() and record_success()."""

    _fn_name = None

    def _get_error_file_path(self):
        return os.environ.get(VARIABLE)

    def set_entrypoint_fn_name(self, fn_name):
        """Tells which function record() calls."""
        self._fn_name = fn_name

    def initialize(self):
        """Lets Python write where all threads are if the process ends by a signal. Called before the function."""
        try:
            faulthandler.enable(all_threads=True)
        except (OSError, RuntimeError, ValueError) as error:  # stderr is no file
            warnings.warn(f'record: no places are written for signals: {error}', stacklevel=2)

    def record_exception(self, e):
        """Writes the exception."""
        path = self._get_error_file_path()
        if not path:
            return
        extra = {'py_callstack': ''.join(traceback.format_exception(type(e), e, e.__traceback__)),
                 'timestamp': str(int(time.time()))}
        whole = json.dumps({'message': {'message': f'{type(e).__name__}: {e}', 'extraInfo': extra}}).encode()
        file = Gio.File.new_for_path(path)
        file.replace_contents(whole, None, False, Gio.FileCreateFlags.NONE, None)

    def record_success(self):
        """Called when the function has returned. Does nothing."""


def get_error_handler():
    """The handler that record() uses."""
    return ErrorHandler()


def record(fn, error_handler=None):
    """A decorator of the main function of a program: gtorch-run reports with what exception it has ended, and where.

    It comes before what the process has written to stderr. An exit with status 0 within the function returns None."""
    handler = get_error_handler() if error_handler is None else error_handler

    @functools.wraps(fn, [name for name in functools.WRAPPER_ASSIGNMENTS if hasattr(fn, name)])
    def wrapper(*args, **kwargs):
        handler.set_entrypoint_fn_name(getattr(fn, '__qualname__', None))
        handler.initialize()
        try:
            result = fn(*args, **kwargs)
        except SystemExit as error:
            if error.code not in (0, None):
                raise
            return None
        except Exception as error:
            handler.record_exception(error)
            raise
        handler.record_success()
        return result

    return wrapper


def submodules():
    """What is below torch.distributed, by name."""
    members = {one.__name__: one for one in (ErrorHandler, get_error_handler, record)}
    return {'elastic': {}, 'elastic.multiprocessing': {}, 'elastic.multiprocessing.errors': members}
