# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Finds the C accelerator."""

import os

mixin = None

if not os.environ.get('GTORCH_NO_MIXIN'):
    try:
        from gi.overrides import _gtorch as mixin
    except ImportError:
        pass
