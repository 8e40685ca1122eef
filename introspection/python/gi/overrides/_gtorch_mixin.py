# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Finds the C accelerator of this Python."""

import importlib
import importlib.machinery
import os
import sys


def _load():
    """Returns the module, or None if there is none for any Python. A broken module, or one for another
    Python only, is an error: without it calls take several times as long."""
    if os.environ.get('GTORCH_NO_MIXIN'):
        return None
    try:
        return importlib.import_module('gi.overrides._gtorch')
    except ModuleNotFoundError:
        import glob

        others = glob.glob(os.path.join(glob.escape(os.path.dirname(__file__)), '_gtorch.*.so'))
        if not others:
            return None
        names = ', '.join(sorted(map(os.path.basename, others)))
        raise ImportError(
            f'GTorch is installed for another Python ({names}), and this one, {sys.executable}, wants '
            f'_gtorch{importlib.machinery.EXTENSION_SUFFIXES[0]}: build GTorch with -Dpython={sys.executable}, '
            'or set GTORCH_NO_MIXIN=1 to do without the C accelerator'
        ) from None


mixin = _load()
