# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Test cases as functions, reported in TAP, for checks that must run before anything is built."""

import os
import sys
import traceback

SOURCE_ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))

_cases = []


class Skip(Exception):
    """Raised by a case that cannot run here; the text says why."""


def case(function):
    """Registers @function as a test case; its name states the fact that it checks."""
    add(function.__name__, function)
    return function


def add(name, function, *args):
    """Registers a case that calls @function with @args."""
    _cases.append((name, function, args))


def raises(kind, function, *texts):
    """Calls @function, which must raise an exception of @kind with all the texts in its message, and returns it."""
    try:
        function()
    except kind as error:
        for text in texts:
            assert text in str(error), f"{text!r} is not in {error}"
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


def _diagnose(text):
    for line in text.splitlines():
        print(f"# {line}")


def main():
    """Runs all cases, prints TAP, and exits with 1 if one failed."""
    print(f"1..{len(_cases)}", flush=True)
    n_failed = 0
    for number, (name, function, args) in enumerate(_cases, 1):
        try:
            function(*args)
            print(f"ok {number} - {name}")
        except Skip as why:
            print(f"ok {number} - {name} # SKIP {why}")
        except AssertionError as error:
            n_failed += 1
            print(f"not ok {number} - {name}")
            _diagnose(str(error) or traceback.format_exc())
        except Exception:
            n_failed += 1
            print(f"not ok {number} - {name}")
            _diagnose(traceback.format_exc())
        sys.stdout.flush()
    sys.exit(1 if n_failed else 0)
