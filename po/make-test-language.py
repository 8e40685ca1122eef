#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes en@test, the language in which every translated message stands in double brackets.

It shows at a glance which texts a program forgot to mark, needs no translator, and is made anew
from the sources at each build, so that it is always complete.
"""

import argparse
import re

from template import make_template, run


def mark(template):
    """Translates each message of @template into itself between brackets."""
    # msgen copies the messages; msgfilter hands each of them, header aside, to sed. The last line's end stays last.
    english = run("msgen", "--lang=en@test", "-", text=template)
    english = re.sub(rb"charset=CHARSET", b"charset=UTF-8", english)
    return run("msgfilter", "--keep-header", "sed", "-z", "-e", r"s/^/[[/", "-e", r"s/\n*$/]]&/",
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
