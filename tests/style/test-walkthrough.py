#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""HACKING.md's section "Adding an operation" works as it stands there, and so does docs/writing-an-optimizer.md.

The tree is copied, the rows are added to the files that the texts name, as little as possible is built, and the
tests that came with the rows are run.
"""

import os
import re
import shutil
import subprocess
import tempfile

import tap
import tree


def section(text):
    """The file named by the text, the row, and its name."""
    match = re.search(r"`(gtorch/(?:ops|optim)/\w+\.toml)`:\s*```toml\n(.*?)```", text, re.DOTALL)
    assert match, "there is no row in a ```toml block after the name of its file"
    names = re.findall(r"^\[(\w+)\]$", match[2], re.MULTILINE)
    assert len(names) == 1, f"one row was expected, there are {names}"
    return match[1], match[2], names[0]


PATH, ROW, NAME = section(tree.read("HACKING.md").split("## Adding an operation")[1].split("\n## ")[0])
OPTIMIZER_PATH, OPTIMIZER_ROW, OPTIMIZER = section(tree.read("docs/writing-an-optimizer.md"))


class Copy:
    """A copy of the tree with the row in it."""

    def __init__(self, folder):
        # The compiler gives its cache keys without this folder: a second run finds everything.
        self.folder = folder
        self.env = {**os.environ, "CCACHE_BASEDIR": folder, "CCACHE_NOHASHDIR": "1"}
        for path in tree.files():
            target = os.path.join(folder, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(tree.full(path), target)
        for path, row in ((PATH, ROW), (OPTIMIZER_PATH, OPTIMIZER_ROW)):
            with open(os.path.join(folder, path), "a", encoding="utf-8") as rows:
                rows.write("\n" + row)

    def run(self, *command):
        done = subprocess.run(
            command, cwd=self.folder, env=self.env, check=False, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-8000:]}"
        return done.stdout

    def read(self, path):
        with open(os.path.join(self.folder, path), encoding="utf-8") as file:
            return file.read()


@tap.case
def the_name_is_still_free():
    """A toy that became an operation of its own would test nothing."""
    for path in tree.files():
        if path.startswith("gtorch/ops/") and path.endswith(".toml"):
            assert f"\n[{NAME}]" not in tree.read(path), f"{path} has a row {NAME}"
    assert f"\n[{OPTIMIZER}]" not in tree.read(OPTIMIZER_PATH), f"there is a row {OPTIMIZER}"


@tap.case
def the_rows_build():
    copy.run(
        "meson", "setup", "build", "-Dbuildtype=plain", "-Dwerror=true", "-Dcpu-isa=baseline",
        "-Dintrospection=false", "-Ddocs=false", "-Dexamples=false", "-Dbench=false", "-Dcuda-kernels=disabled",
    )
    programs = [f"tests/optim/test-{name}" for name in ("optim", "fused", "capturable")]
    copy.run("ninja", "-C", "build", "tests/ops/test-ops", *programs)


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


@tap.case
def the_optimizer_of_the_row_is_public():
    header = copy.read("build/gtorch/optim/gtorch-optimizers.h")
    assert re.search(rf"\bgtorch_{OPTIMIZER.lower()}_new \(", header), header


@tap.case
def the_tests_of_the_optimizer_pass():
    for name, folder in (("optim", "GTorch/optim"), ("fused", "GTorchFused"), ("capturable", "GTorchOptimizer")):
        output = copy.run(f"build/tests/optim/test-{name}", "--tap", "-p", f"/{folder}/{OPTIMIZER}/0")
        n_passed = len(re.findall(r"^ok (?!.*# SKIP)", output, re.MULTILINE))
        assert n_passed >= 1, output


with tempfile.TemporaryDirectory(prefix="gtorch-walkthrough-") as copy_folder:
    copy = Copy(copy_folder)
    tap.main()
