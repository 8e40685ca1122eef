# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes the device that GTORCH_TEST_DEVICE names the default one, or skips all tests if it is
missing. Must be imported first."""

import os
import sys

from gi.repository import GLib, GTorch

NAME = os.environ.get('GTORCH_TEST_DEVICE', '')
if NAME:
    try:
        GTorch.set_default_device(GTorch.Device.new_from_string(NAME))
        GTorch.full((5,), 2.0)
    except GLib.Error as error:
        print(f'1..0 # SKIP {error.message}')
        sys.exit()
