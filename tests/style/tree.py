# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The files of the source tree, from git if there is a repository, otherwise from the disk."""

import functools
import os
import re
import subprocess

from tap import SOURCE_ROOT

_SOURCE = re.compile(
    r"(\.(c|h|cu|cuh|inc|py|js|vala|toml|sh)(\.in)?|(^|/)meson\.build|(^|/)meson_options\.txt"
    r"|^bootstrap|^\.ci/run)$"
)
_BINARY = re.compile(r"\.(png|gz|xz|npy|npz|pt|safetensors|bin|mo|ico|pdf)$")


def full(path):
    return os.path.join(SOURCE_ROOT, path)


def _walk():
    for folder, names, files in os.walk(SOURCE_ROOT):
        # a folder that contains this file is a build folder
        names[:] = [
            name
            for name in names
            if name not in (".git", "__pycache__")
            and not os.path.exists(os.path.join(folder, name, "meson-private"))
        ]
        for name in files:
            yield os.path.relpath(os.path.join(folder, name), SOURCE_ROOT)


@functools.cache
def files():
    """Returns paths below the top, sorted: files that git tracks or would add."""
    try:
        listing = subprocess.run(
            ["git", "-C", SOURCE_ROOT, "ls-files", "-z", "--cached", "--others",
             "--exclude-standard", "--deduplicate"],
            capture_output=True, check=True,
        ).stdout.decode().split("\0")
    except (OSError, subprocess.CalledProcessError):
        listing = []
    if "bootstrap" not in listing:
        listing = _walk()
    return tuple(sorted(p for p in listing if p and os.path.isfile(full(p))))


@functools.cache
def read_bytes(path):
    with open(full(path), "rb") as file:
        return file.read()


def read(path):
    return read_bytes(path).decode("utf-8", "replace")


def lines(path):
    return read(path).splitlines()


def is_text(path):
    return not _BINARY.search(path) and b"\0" not in read_bytes(path)[:4096]


def is_source(path):
    return bool(_SOURCE.search(path)) and is_text(path)


def is_private_header(path):
    """Returns TRUE for headers that are not installed: by name, or because their folder has no
    public class."""
    return bool(
        re.search(r"-(private|loops|simd|kernels|internal)\.h$", path) or "/stub/" in path
        or re.search(r"^gtorch/(cpu|ops)/", path)
    )
