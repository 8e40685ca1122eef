#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The example of HACKING.md's section "Adding a layer" works verbatim, like the one on operations.

Argument: the Python that has gi; without it the layer is created in C only.
"""

import os
import re
import sys
import tempfile

import tap
import walkthrough

PYTHON = sys.argv[1] if len(sys.argv) > 1 else ""
PATH, ROW, NAME = walkthrough.section("Adding a layer", "gtorch/nn/layers")
NEW = re.search(r'new = "(.*?)"', ROW)[1]
TEXT = re.search(r'text = "(.*?)"', ROW)[1]


@tap.case
def the_name_is_still_free():
    walkthrough.check_name_is_free("gtorch/nn/layers", NAME)


@tap.case
def the_row_builds():
    copy.setup(f"-Dintrospection={'true' if PYTHON else 'false'}", "-Dvapi=false", "-Dpython-mixin=disabled",
               f"-Dpython={PYTHON}")
    copy.run("ninja", "-C", "build", "tests/nn/test-layer-rows")


@tap.case
def the_tests_of_the_row_pass():
    output = copy.run("build/tests/nn/test-layer-rows", "--tap")
    n_cases = len(re.findall(rf"^# {re.escape(f'{NAME}({NEW})')}", output, re.MULTILINE))
    assert n_cases >= 3, f"{NAME} was in {n_cases} cases"
    assert "not ok" not in output, output


@tap.case
def python_has_the_layer():
    if not PYTHON:
        raise tap.Skip("no Python with gi")
    targets = copy.run("ninja", "-C", "build", "-t", "targets", "all")
    wanted = re.findall(
        r"^(\S*(?:libgtorch-1\.so\.[\d.]+|GTorch-1\.typelib|overrides/_?\w+\.py)): ", targets, re.MULTILINE
    )
    copy.run("ninja", "-C", "build", *wanted)
    build = os.path.join(copy.folder, "build")
    output = copy.run(
        PYTHON, "-c",
        "import gi; gi.require_version('GTorch', '1'); from gi.repository import GTorch; "
        f"layer = GTorch.nn.{NAME}({NEW}); print(layer, layer(GTorch.tensor([-3.0, 0.25, 3.0])).tolist())",
        LD_LIBRARY_PATH=f"{build}/gtorch", GI_TYPELIB_PATH=f"{build}/introspection",
        PYTHONPATH=f"{build}/introspection/python",
    )
    assert output.strip() == f"{TEXT} [-0.5, 0.25, 0.5]", output


with tempfile.TemporaryDirectory(prefix="gtorch-walkthrough-") as copy_folder:
    copy = walkthrough.Copy(copy_folder, PATH, ROW)
    tap.main()
