# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The messages of the sources, as xgettext writes them."""

import os
import subprocess


def run(*command, text):
    return subprocess.run(command, input=text, capture_output=True, check=True).stdout


def lines(source_root, name):
    with open(os.path.join(source_root, "po", name), encoding="utf-8") as file:
        return [line for line in file.read().splitlines() if line and line[0] != "#"]


def make_template(source_root):
    """The messages of all files in POTFILES.in."""
    files = lines(source_root, "POTFILES.in")
    if not files:
        return b""
    return run("xgettext", "--directory", source_root, "--files-from=-", "--output=-",
               *lines(source_root, "xgettext-options"), text="\n".join(files).encode())
