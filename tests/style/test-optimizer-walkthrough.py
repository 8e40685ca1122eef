#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The example row of docs/writing-an-optimizer.md works verbatim, like that of HACKING.md on operations."""

import re
import tempfile

import tap
import tree
import walkthrough

PATH, ROW, NAME = walkthrough.find_row(tree.read("docs/writing-an-optimizer.md"), "gtorch/optim")


@tap.case
def the_name_is_still_free():
    walkthrough.check_name_is_free("gtorch/optim", NAME)


@tap.case
def the_row_builds():
    copy.setup("-Dintrospection=false")
    programs = [f"tests/optim/test-{name}" for name in ("optim", "fused", "capturable")]
    copy.run("ninja", "-C", "build", *programs)


@tap.case
def the_optimizer_of_the_row_is_public():
    header = copy.read("build/gtorch/optim/gtorch-optimizers.h")
    assert re.search(rf"\bgtorch_{NAME.lower()}_new \(", header), header


@tap.case
def the_tests_of_the_row_pass():
    for name, folder in (("optim", "GTorch/optim"), ("fused", "GTorchFused"), ("capturable", "GTorchOptimizer")):
        output = copy.run(f"build/tests/optim/test-{name}", "--tap", "-p", f"/{folder}/{NAME}/0")
        n_passed = len(re.findall(r"^ok (?!.*# SKIP)", output, re.MULTILINE))
        assert n_passed >= 1, output


with tempfile.TemporaryDirectory(prefix="gtorch-walkthrough-") as copy_folder:
    copy = walkthrough.Copy(copy_folder, PATH, ROW)
    tap.main()
