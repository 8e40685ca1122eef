# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Widgets for GTK 4 that show tensors, plots and training: the namespace GTorchGtk."""

from gtorch import _beside

_find, _names = _beside.share(__name__, 'GTorchGtk', 'gtorch-gtk-1')


def __getattr__(name):
    return _find(name)


def __dir__():
    return _names()
