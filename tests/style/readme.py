# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The parts of README.md that people type: programs, and the commands that install and run them."""

import re

import tree

FILES = {"c": "first.c", "python": "first.py", "js": "first.js", "vala": "first.vala"}
NEEDS = {"c": "cc", "python": None, "js": "gjs", "vala": "valac"}


def section(heading):
    text = tree.read("README.md").split(f"\n## {heading}\n")
    assert len(text) == 2, f"README.md has no section {heading}"
    return re.findall(r"```(\w+)\n(.*?)```", text[1].split("\n## ")[0], re.DOTALL)


def programs():
    """Programs by language."""
    return {language: body for language, body in section("A first program") if language in FILES}


def command_for(language, python):
    """Returns the line that builds or runs the program in that language."""
    body = "".join(body for kind, body in section("A first program") if kind == "sh")
    lines = [line for line in body.splitlines() if FILES[language] in line]
    assert len(lines) == 1, f"README.md has {lines} for {FILES[language]}"
    return re.sub(r"^python3 ", f"{python} ", lines[0])


def installing():
    """Returns the commands for /usr/local, the variables to set there, and both for a user's prefix."""
    blocks = [body for kind, body in section("Installing") if kind == "sh"]
    assert len(blocks) == 4, f"README.md has {len(blocks)} pieces in sh about installing"
    return blocks


def variables(block):
    return re.findall(r"^export (\w+)=", block, re.MULTILINE)
