# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The stubs of the package gtorch for type checkers."""

from generator.text import Templates

fill = Templates(__file__)
