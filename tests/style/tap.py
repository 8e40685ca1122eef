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


def _check(error, texts):
    for text in texts:
        assert text in str(error), f"{text!r} is not in {error}"


class _Raises:
    """A block that must raise; it has the exception afterwards."""

    def __init__(self, kind, texts):
        self._kind, self._texts, self.error = kind, texts, None

    def __enter__(self):
        return self

    def __exit__(self, _kind, error, _traceback):
        assert error is not None, f"{self._kind} was not raised"
        if not isinstance(error, self._kind):
            return False
        _check(error, self._texts)
        self.error = error
        return True


def raises(kind, *given, **options):
    """Holds that an exception of @kind is raised whose message has some texts, and returns it. Three forms:

    raises(kind, function, *texts) calls a function; raises(kind, text, function, *args, **options) calls it with
    arguments; with raises(kind, *texts): is for several lines."""
    called = next((i for i, one in enumerate(given) if callable(one)), None)
    if called is None:
        return _Raises(kind, given)
    texts, function, args = given[:called], given[called], given[called + 1 :]
    if not texts:
        texts, args = args, ()
    try:
        function(*args, **options)
    except kind as error:
        _check(error, texts)
        return error
    raise AssertionError(f"{kind} was not raised")


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
