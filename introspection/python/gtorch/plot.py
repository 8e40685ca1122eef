# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Plots of tensors: the namespace GTorchPlot.

    from gtorch import plot

    plot.lines([losses], ['training']).save('losses.svg')
"""

from gtorch import _beside

_find, _names = _beside.share(__name__, 'GTorchPlot', 'gtorch-plot-1')


def __getattr__(name):
    return _find(name)


def __dir__():
    return _names()
