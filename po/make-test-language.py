#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes en@test, the language in which every translated message stands in double brackets.

It shows at a glance which texts a program forgot to mark, needs no translator, and is made anew
from the sources at each build, so that it is always complete.
"""

import argparse
import os
import re
import subprocess


def run(*command, text):
    return subprocess.run(command, input=text, capture_output=True, check=True).stdout


def make_template(source_root):
    """The messages of all files in POTFILES.in, as xgettext writes them."""
    with open(os.path.join(source_root, "po", "POTFILES.in"), encoding="utf-8") as potfiles:
        files = [line for line in potfiles.read().splitlines() if line and line[0] != "#"]
    if not files:
        return b""
    return run(
        "xgettext", "--directory", source_root, "--files-from=-", "--output=-", "--language=C",
        "--from-code=UTF-8", "--keyword=_", "--keyword=N_", "--keyword=C_:1c,2",
        "--keyword=NC_:1c,2", "--flag=g_set_error:4:c-format", "--flag=g_strdup_printf:1:c-format",
        text="\n".join(files).encode(),
    )


def mark(template):
    """Translates each message of @template into itself between brackets."""
    # msgen copies the messages; msgfilter hands each of them, header aside, to sed.
    english = run("msgen", "--lang=en@test", "-", text=template)
    english = re.sub(rb"charset=CHARSET", b"charset=UTF-8", english)
    return run("msgfilter", "--keep-header", "sed", "-z", "-e", r"s/^/[[/", "-e", r"s/$/]]/",
               text=english)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source_root")
    parser.add_argument("output", help="the .mo file")
    args = parser.parse_args()

    template = make_template(args.source_root)
    catalogue = mark(template) if template else b'msgid ""\nmsgstr "Language: en@test\\n"\n'
    run("msgfmt", "--check-format", f"--output-file={args.output}", "-", text=catalogue)


if __name__ == "__main__":
    main()
