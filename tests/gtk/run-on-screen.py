#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs a program on a screen in memory. Arguments: the program and its arguments."""

import subprocess
import sys

import screen


def main():
    with screen.screen() as found:
        if found is None:
            print("1..0 # SKIP no Xvfb")
            return 0
        return subprocess.run(sys.argv[1:], env=found.environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
