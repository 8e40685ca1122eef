# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Shared code for tests of HACKING.md's walk-throughs: the row of a section, and a copy of the
tree with it."""

import os
import re
import shutil
import subprocess

import tree


def section(heading, folder):
    """Returns the file in @folder named by the section of HACKING.md, the row, and its name."""
    return find_row(tree.read("HACKING.md").split(f"## {heading}\n")[1].split("\n## ")[0], folder)


def find_row(text, folder):
    match = re.search(rf"`({folder}/\w+\.toml)`:\s*(?:<!--[^>]*-->\s*)?```toml\n(.*?)```", text, re.DOTALL)
    assert match, "there is no row in a ```toml block after the name of its file"
    names = re.findall(r"^\[(\w+)\]$", match[2], re.MULTILINE)
    assert len(names) == 1, f"one row was expected, there are {names}"
    return match[1], match[2], names[0]


def check_name_is_free(folder, name):
    """If the toy already existed as a row, the test would prove nothing."""
    for path in tree.files():
        if path.startswith(f"{folder}/") and path.endswith(".toml"):
            assert f"\n[{name}]" not in tree.read(path), f"{path} has a row {name}"


class Copy:
    """A copy of the tree with the row appended to the file."""

    def __init__(self, folder, path, row):
        # The compiler cache gets keys without this folder: a second run finds everything.
        self.folder = folder
        self.env = {**os.environ, "CCACHE_BASEDIR": folder, "CCACHE_NOHASHDIR": "1"}
        for source in tree.files():
            target = os.path.join(folder, source)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(tree.full(source), target)
        with open(os.path.join(folder, path), "a", encoding="utf-8") as rows:
            rows.write("\n" + row)

    def setup(self, *options):
        """Configures with as little as possible, and @options."""
        self.run(
            "meson", "setup", "build", "-Dbuildtype=plain", "-Dwerror=true", "-Dcpu-isa=baseline", "-Ddocs=false",
            "-Dexamples=false", "-Dbench=false", "-Dcuda-kernels=disabled", *options,
        )

    def run(self, *command, **more):
        done = subprocess.run(
            command, cwd=self.folder, env={**self.env, **more}, check=False, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-8000:]}"
        return done.stdout

    def read(self, path):
        with open(os.path.join(self.folder, path), encoding="utf-8") as file:
            return file.read()
