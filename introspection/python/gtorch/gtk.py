# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Widgets for GTK 4 that show tensors, plots and training: the namespace GTorchGtk."""

from gtorch import _beside

__getattr__, __dir__ = _beside.share(__name__, 'GTorchGtk', 'gtorch-gtk-1')
