# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The operations in Python, in JavaScript and in the C accelerator of Python."""

from generator.text import Templates

fill = Templates(__file__)
