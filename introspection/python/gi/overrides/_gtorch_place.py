# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tells C the lines at which a program is."""

import atexit
import os
import sys

from gi.overrides._gtorch_convert import GTorch

HERE = os.path.dirname(os.path.abspath(__file__))
MOST = 8

_own = {}  # by file: whether it is the library's


def _is_own(file):
    found = _own.get(file)
    if found is None:
        found = _own[file] = os.path.dirname(os.path.abspath(file)) == HERE
    return found


def _place(*_data):
    """The innermost functions that are not of the library's Python; of the first one the source, too."""
    frame = sys._getframe(1)
    found = []
    while frame is not None and len(found) < MOST:
        file, number = frame.f_code.co_filename, frame.f_lineno
        if found or not _is_own(file):
            place = f'{file}:{number}, in {frame.f_code.co_name}'
            if not found:
                import linecache  # takes a millisecond, which most programs need not spend

                source = linecache.getline(file, number).strip()
                place = f'{place}: {source}' if source else place
            found.append(place)
        frame = frame.f_back
    return '\n'.join(found) or None


def install():
    """Lets messages of C name lines of Python."""
    GTorch.set_place_func(True, _place)
    atexit.register(GTorch.set_place_func, True, None)
