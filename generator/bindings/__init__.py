# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The operations in Python, JavaScript and the C accelerator of Python."""
