#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The first programs of README.md run verbatim, and all languages print the same.

Arguments: the build folder, the Python that has gi.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

import readme
import tap

BUILD, PYTHON = sys.argv[1:]
OUTPUTS = {}


def run(language):
    if not shutil.which(readme.NEEDS[language] or PYTHON):
        raise tap.Skip(f"{readme.NEEDS[language]} is not installed")
    command = readme.command_for(language, PYTHON)
    command = re.sub(r"^valac ", f"valac --vapidir={BUILD}/introspection ", command)
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, readme.FILES[language]), "w", encoding="utf-8") as file:
            file.write(readme.programs()[language])
        done = subprocess.run(
            ["meson", "devenv", "-C", BUILD, "sh", "-c", f"cd {folder} && {command}"],
            capture_output=True, text=True, check=False,
        )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    assert language == "vala" or not done.stderr, done.stderr
    assert done.stdout.strip(), "the program printed nothing"
    OUTPUTS[language] = done.stdout


def compare():
    if len(OUTPUTS) < 2:
        raise tap.Skip("fewer than two programs ran")
    assert len(set(OUTPUTS.values())) == 1, "\n".join(f"{k}:\n{v}" for k, v in OUTPUTS.items())


for program in readme.FILES:
    tap.add(f"the_program_in_{program}_runs", run, program)
tap.add("all_languages_print_the_same", compare)
tap.main()
