# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The CUDA kernels that are written by hand."""

from generator.text import Templates

fill = Templates(__file__)
