#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The first programs of README.md run as they stand there, and all languages print the same.

Arguments: the build folder, the Python that has gi.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

import tap
import tree

BUILD, PYTHON = sys.argv[1:]
OUTPUTS = {}


def section():
    """Programs by language and the commands that run them."""
    text = tree.read("README.md").split("## A first program")[1].split("\n## ")[0]
    blocks = re.findall(r"```(\w+)\n(.*?)```", text, re.DOTALL)
    programs = {language: body for language, body in blocks if language != "sh"}
    commands = "".join(body for language, body in blocks if language == "sh").splitlines()
    return programs, commands


PROGRAMS, COMMANDS = section()
FILES = {"c": "first.c", "python": "first.py", "js": "first.js", "vala": "first.vala"}
NEEDS = {"c": "cc", "python": PYTHON, "js": "gjs", "vala": "valac"}


def run(language):
    name = FILES[language]
    commands = [command for command in COMMANDS if name in command]
    assert len(commands) == 1, f"README.md has {commands} for {name}"
    if not shutil.which(NEEDS[language]):
        raise tap.Skip(f"{NEEDS[language]} is not installed")
    command = re.sub(r"^python3 ", f"{PYTHON} ", commands[0])
    command = re.sub(r"^valac ", f"valac --vapidir={BUILD}/introspection ", command)
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(PROGRAMS[language])
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


for program in FILES:
    assert program in PROGRAMS, f"README.md has no program in {program}"
    tap.add(f"the_program_in_{program}_runs", run, program)
tap.add("all_languages_print_the_same", compare)
tap.main()
