#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The example of HACKING.md's section "Adding an operation" works verbatim.

The tree is copied, the row of that section is added to the file that it names, as little as
possible is built, and the tests of the row are run.
"""

import re
import tempfile

import tap
import walkthrough

PATH, ROW, NAME = walkthrough.section("Adding an operation", "gtorch/ops")


@tap.case
def the_name_is_still_free():
    walkthrough.check_name_is_free("gtorch/ops", NAME)


@tap.case
def the_row_builds():
    copy.setup("-Dintrospection=false")
    copy.run("ninja", "-C", "build", "tests/ops/test-ops")


@tap.case
def the_function_and_its_inplace_form_are_public():
    header = copy.read("build/gtorch/gtorch-tensor-ops.h")
    for function in (f"gtorch_tensor_{NAME}", f"gtorch_tensor_{NAME}_inplace"):
        assert re.search(rf"\b{function} \(", header), f"no {function} ()"


@tap.case
def the_tests_of_the_row_pass():
    output = copy.run("build/tests/ops/test-ops", "--tap", "-p", f"/GTorch/ops/{NAME}")
    for line in output.splitlines():
        print(f"# {line}")
    n_passed = len(re.findall(r"^ok (?!.*# SKIP)", output, re.MULTILINE))
    assert n_passed >= 3, f"only {n_passed} cases ran"


with tempfile.TemporaryDirectory(prefix="gtorch-walkthrough-") as copy_folder:
    copy = walkthrough.Copy(copy_folder, PATH, ROW)
    tap.main()
