#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The manual is complete: gi-docgen prints no warnings, and its links work.

Arguments: gi-docgen, its configuration, the GIR, the folder of the finished manual.
"""

import collections
import html
import os
import re
import subprocess
import sys
import tempfile

import tap

GI_DOCGEN, CONFIG, GIR, MANUAL = sys.argv[1:]


@tap.case
def every_symbol_is_documented():
    done = subprocess.run(
        [GI_DOCGEN, "check", "--fatal-warnings", "--config", CONFIG,
         "--add-include-path", os.path.dirname(GIR), GIR],
        capture_output=True, text=True, check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@tap.case
def the_manual_is_made_without_warnings():
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [GI_DOCGEN, "generate", "--quiet", "--no-namespace-dir", "--config", CONFIG,
             "--content-dir", os.path.join(tap.SOURCE_ROOT, "docs"), "--output-dir", folder,
             "--add-include-path", os.path.dirname(GIR), GIR],
            capture_output=True, text=True, check=False,
        )
    text = done.stdout + done.stderr
    assert done.returncode == 0 and "WARNING" not in text, text


def pages():
    for name in sorted(os.listdir(MANUAL)):
        if name.endswith(".html"):
            with open(os.path.join(MANUAL, name), encoding="utf-8") as file:
                yield name, file.read()


@tap.case
def links_inside_the_manual_lead_somewhere():
    missing = collections.defaultdict(set)
    for name, text in pages():
        for target in re.findall(r'href="([^"#:]+)(?:#[^"]*)?"', text):
            if not os.path.exists(os.path.join(MANUAL, html.unescape(target))):
                missing[target].add(name)
    assert not missing, "\n".join(f"{key}: linked from {sorted(missing[key])}" for key in missing)


@tap.case
def every_page_has_a_title():
    """gi-docgen takes it from the page's first line, `Title: …`."""
    found = [name for name, text in pages() if re.search("Unknown document|None</title>", text)]
    assert not found, "\n".join(found)


@tap.case
def references_to_symbols_are_resolved():
    """gi-docgen leaves unknown references in the page as they were typed."""
    link = re.compile(r"\[(?:alias|callback|class|const|ctor|enum|error|flags|func|iface|method|"
                      r"property|signal|struct|type|vfunc)@[^\]]*\]")
    found = [f"{name}: {match}" for name, text in pages() for match in link.findall(text)]
    assert not found, "\n".join(found)


tap.main()
