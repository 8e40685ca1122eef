# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Functions as modules; imported when the first one is needed, after the namespace."""

from gi.repository import GTorch


class Applied(GTorch.Module):
    """A module that calls a function, for activations and distances."""

    __module__ = 'gtorch'  # while it is made: PyGObject registers no types of classes in overrides

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


Applied.__module__ = __name__
