#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""record(), by which a process tells gtorch-run with what exception it has ended."""

import functools
import json
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gtorch as torch  # noqa: E402, F401
from gtorch.distributed.elastic.multiprocessing.errors import ErrorHandler, get_error_handler, record  # noqa: E402

import tap  # noqa: E402


class Folder:
    """Names a file of errors for a while."""

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self._folder.name) / 'error.json'
        os.environ['TORCHELASTIC_ERROR_FILE'] = str(self.path)
        return self

    def __exit__(self, *_exception):
        del os.environ['TORCHELASTIC_ERROR_FILE']
        self._folder.cleanup()


@record
def divide(a, b=1):
    """Divides."""
    return a / b


@tap.case
def exceptions_are_written():
    with Folder() as folder:
        tap.raises(ZeroDivisionError, lambda: divide(1, b=0), 'division by zero')
        found = json.loads(folder.path.read_text('utf-8'))['message']
    assert found['message'] == 'ZeroDivisionError: division by zero', found
    extra = found['extraInfo']
    assert 'in divide' in extra['py_callstack'] and extra['py_callstack'].startswith('Traceback'), extra
    assert int(extra['timestamp']) > 1.6e9


@tap.case
def results_are_those_of_the_function():
    with Folder() as folder:
        assert divide(6, 3) == 2 and divide.__name__ == 'divide' and divide.__doc__ == 'Divides.'
        assert record(functools.partial(divide, 4))(b=2) == 2
        assert record(sys.exit)(0) is None and record(sys.exit)() is None
        tap.raises(SystemExit, lambda: record(sys.exit)(3), '3')
        assert not folder.path.exists()
    tap.raises(ZeroDivisionError, lambda: divide(1, 0), 'division by zero')  # without a file


@tap.case
def a_handler_may_be_that_of_the_program():
    told = []

    class Handler(ErrorHandler):
        """Keeps what it is told."""

        def initialize(self):
            told.append(self._fn_name)

        def record_exception(self, e):
            told.append(str(e))

        def record_success(self):
            told.append('done')

    handler = Handler()
    record(divide, handler)(1)
    tap.raises(ZeroDivisionError, lambda: record(divide, handler)(1, 0), 'division by zero')
    assert told == ['divide', 'done', 'divide', 'division by zero'], told
    assert type(get_error_handler()) is ErrorHandler


if __name__ == '__main__':
    tap.main()
