#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Meson's messages where NVIDIA's compiler is missing."""

import os
import shutil
import subprocess
import tempfile

import tap

SMALL = ["-Dintrospection=false", "-Dcpu-isa=baseline", "-Dexamples=false", "-Dbench=false",
         "-Ddocs=false", "-Dtests=false"]


def setup(folder, *options):
    if not shutil.which("meson"):
        raise tap.Skip("meson is not installed")
    return subprocess.run(
        ["meson", "setup", folder, tap.SOURCE_ROOT, *SMALL, *options],
        capture_output=True, text=True, check=False,
    )


def kernels_line(text):
    lines = [line for line in text.splitlines() if "CUDA kernels for" in line]
    assert len(lines) == 1, text
    return lines[0].split(":", 1)[1].strip()


@tap.case
def without_nvcc_the_library_has_no_kernels_and_says_so():
    with tempfile.TemporaryDirectory() as folder:
        done = setup(folder, "-Dnvcc=/nonexistent/nvcc")
        assert done.returncode == 0, done.stdout + done.stderr
        line = kernels_line(done.stdout)
        assert line.startswith("none: there is no /nonexistent/nvcc"), line
        with open(os.path.join(folder, "build.ninja"), encoding="utf-8") as file:
            text = file.read()
        assert "gtorch-fatbin-" not in text
        assert "gtorch-cuda-device.c" in text  # GPUs are still detected


@tap.case
def requested_kernels_without_nvcc_are_an_error():
    with tempfile.TemporaryDirectory() as folder:
        done = setup(folder, "-Dnvcc=/nonexistent/nvcc", "-Dcuda-kernels=enabled")
    assert done.returncode != 0 and "/nonexistent/nvcc" in done.stdout + done.stderr, done.stdout


@tap.case
def disabled_kernels_need_no_nvcc():
    with tempfile.TemporaryDirectory() as folder:
        done = setup(folder, "-Dcuda-kernels=disabled")
    assert done.returncode == 0, done.stdout + done.stderr
    assert kernels_line(done.stdout) == "none (-Dcuda-kernels=disabled)", done.stdout


tap.main()
