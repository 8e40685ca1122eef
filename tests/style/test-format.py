#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""C files have clang-format's layout, one case for each folder; --fix rewrites them."""

import collections
import os
import re
import shutil
import subprocess
import sys

import tap
import tree

# Releases of clang-format differ in details; the tree uses that of Debian 12.
VERSION = 14

PROGRAM = os.environ.get("CLANG_FORMAT") or shutil.which("clang-format")


def version():
    text = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout
    return int(re.search(r"version (\d+)", text)[1])


def c_files():
    return [path for path in tree.files() if re.search(r"\.(c|h|cu|cuh)$", path)]


def check(folder, paths):
    if not PROGRAM:
        raise tap.Skip("clang-format is not installed")
    if version() != VERSION:
        raise tap.Skip(f"this is clang-format {version()}, the tree is laid out by {VERSION}")
    done = subprocess.run(
        [PROGRAM, "--style=file", "--dry-run", "-Werror", *paths],
        capture_output=True, text=True, check=False, cwd=tree.SOURCE_ROOT,
    )
    places = re.findall(r"^\S+:\d+:\d+: error:.*$", done.stderr, re.MULTILINE)
    assert done.returncode == 0, (
        "run './bootstrap format'; it would change:\n" + "\n".join(places or [done.stderr])
    )


if sys.argv[1:] == ["--fix"]:
    if not PROGRAM or version() != VERSION:
        sys.exit(f"test-format.py: clang-format {VERSION} is needed; CLANG_FORMAT can name it")
    sys.exit(
        subprocess.run(
            [PROGRAM, "--style=file", "-i", *c_files()], check=False, cwd=tree.SOURCE_ROOT
        ).returncode
    )

FOLDERS = collections.defaultdict(list)
for c_file in c_files():
    FOLDERS[os.path.dirname(c_file)].append(c_file)
for c_folder, c_paths in sorted(FOLDERS.items()):
    tap.add(f"layout_of_{c_folder}", check, c_folder, c_paths)
tap.main()
