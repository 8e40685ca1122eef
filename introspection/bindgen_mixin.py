# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The operations as functions of the C accelerator."""


def emit_mixin(rows):
    return []
