#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The manual is complete: gi-docgen prints no warnings, and its links work.

Arguments: gi-docgen, its configuration, the GIR, the folder of the finished manual, that of the pictures.
"""

import collections
import html
import os
import re
import subprocess
import sys
import tempfile

import tap

GI_DOCGEN, CONFIG, GIR, MANUAL, PICTURES = sys.argv[1:]


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
             "--content-dir", os.path.join(tap.SOURCE_ROOT, "docs"), "--content-dir", PICTURES,
             "--output-dir", folder,
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
def links_to_sections_lead_to_one():
    """Those of the pages of prose; gi-docgen makes the others itself."""
    names = {name: set(re.findall(r'\bid="([^"]+)"', text)) for name, text in pages()}
    missing = []
    for name, text in pages():
        if "." in name[:-len(".html")]:
            continue
        for target, section in re.findall(r'href="([^"#:]*)#([^"]+)"', text):
            if section not in names.get(target or name, {section}):
                missing.append(f"{name}: {target}#{section}")
    assert not missing, "\n".join(missing)


@tap.case
def pictures_are_there():
    missing = {target for _name, text in pages() for target in re.findall(r'<img[^>]* src="([^":]+)"', text)
               if not os.path.exists(os.path.join(MANUAL, target))}
    assert not missing, "\n".join(sorted(missing))


@tap.case
def unfinished_work_is_no_page():
    found = [name for name, text in pages() if name == "plan.html" or re.search(r'href="[^"]*plan\.(?:md|html)', text)]
    assert not found, "\n".join(found)


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
