# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Plots of tensors: the namespace GTorchPlot.

    from gtorch import plot

    plot.lines([losses], ['training']).save('losses.svg')
"""

from gtorch import _beside

__getattr__, __dir__ = _beside.share(__name__, 'GTorchPlot', 'gtorch-plot-1')
