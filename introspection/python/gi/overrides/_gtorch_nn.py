# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""GTorch.nn and GTorch.optim."""


def install(export, submodule, ops):
    pass
