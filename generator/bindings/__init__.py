# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The operations for Python, JavaScript and the C accelerator of Python."""

from generator.text import Templates

fill = Templates(__file__)
