#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests how tests/gpu/sanitize.py interprets the reports of compute-sanitizer, with a fake tool."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import tap

SANITIZE = os.path.join(tap.SOURCE_ROOT, "tests", "gpu", "sanitize.py")

# Two tests; like programs with GLib's framework, it lists them with `-l' and selects with `-p'.
PROGRAM = """#!/bin/sh
case "$*" in
-l) echo /a; echo /b ;;
*) n=0; for word; do case $word in
   /b) $B ;; esac; case $word in
   /*) n=$((n + 1)); echo "ok $n $word" ;; esac; done; echo "1..$n" ;;
esac
"""

# Writes $REPORT to its log if /b is among the tests, $UNFILTERED if no kernels were selected.
TOOL = """#!/bin/sh
while :; do case $1 in
--log-file=*) log=${1#--log-file=}; shift ;;
--kernel-name=*) filtered=1; shift ;;
--*) shift ;;
*) break ;; esac; done
case "$*" in
*/b*) if [ -n "$UNFILTERED" ] && [ -z "$filtered" ]; then printf "$UNFILTERED" >$log; else printf "$REPORT" >$log; fi ;;
*) echo "========= COMPUTE-SANITIZER" >$log ;; esac
exec "$@"
"""

RACE = (
    "========= Error: Race reported between Write access at void %s<int>+0x10 in a.cu\\n"
    "=========     and Read access at void %s<int>+0x20 in a.cu [4 hazards]\\n"
)


def run(tool, *arguments, **environment):
    """Runs each of the two tests separately; returns the output and the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        build = pathlib.Path(folder).resolve()
        for name, text in (("compute-sanitizer", TOOL), ("test-two", PROGRAM)):
            (build / name).write_text(text)
            (build / name).chmod(0o755)
        tests = [{"name": "two", "cmd": [str(build / "test-two")], "suite": ["gtorch:cuda"], "env": {}}]
        (build / "meson-info").mkdir()
        (build / "meson-info" / "intro-tests.json").write_text(json.dumps(tests))
        path = f"{build}:{os.environ['PATH']}"
        done = subprocess.run(
            [sys.executable, SANITIZE, build, tool, "--tests", "1", *arguments],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | environment | {"PATH": path},
        )
    return done.stdout, done.returncode


def check(expected, status, *arguments, **environment):
    output, got = run(*arguments, **environment)
    assert got == status, f"{output}status {got}"
    for words in expected:
        assert words in output, f"{words} is not in\n{output}"


@tap.case
def clean_programs_are_counted():
    check(["2 tests done, 0 not done, 0 reports that do not count, nothing found"], 0, "racecheck")
    check(["1 tests done"], 0, "racecheck", "tw*:/a")
    check(["0 tests done"], 1, "racecheck", "three")


@tap.case
def races_in_kernels_of_ours_are_found():
    report = RACE % ("gt_add", "gt_add")
    check(["two, /b", "gt_add: 1 reports", "something found"], 1, "racecheck", REPORT=report)


@tap.case
def false_races_are_not_counted():
    report = RACE % ("gt_sum_rows_bulk_f32", "gt_sum_rows_bulk_f32")
    check(["1 reports that do not count, nothing found"], 0, "racecheck", REPORT=report)


@tap.case
def aborted_runs_repeat_with_all_kernels():
    report = "========= Internal Sanitizer Error: hardware exception\\n"
    check(["the tool broke off", "something found"], 1, "racecheck", REPORT=report)
    others = RACE % ("cudnn_kernel", "cudnn_kernel")
    words = ["two, /b", "all kernels looked at", "1 reports that do not count", "nothing found"]
    check(words, 0, "racecheck", REPORT=report, UNFILTERED=others)


@tap.case
def reports_of_unknown_form_are_found():
    report = "========= Error: Potential RAW hazard\\n========= RACECHECK SUMMARY: 3 hazards displayed\\n"
    check(["two, /b", "unknown: 3 reports", "Potential RAW", "something found"], 1, "racecheck", REPORT=report)
    report = "========= Error: No attachable process found\\n"
    check(["two, /b", "the tool broke off", "something found"], 1, "racecheck", REPORT=report)
    report = (RACE % ("cudnn", "cudnn")) + "========= RACECHECK SUMMARY: 1 hazard displayed\\n"
    check(["1 reports that do not count, nothing found"], 0, "racecheck", REPORT=report)


@tap.case
def wrong_accesses_are_found():
    report = (
        "========= Invalid __global__ read of size 4 bytes\\n"
        "=========     at gt_fill+0x10 in a.cu\\n========= ERROR SUMMARY: 1 error\\n"
    )
    check(["two, /b", "gt_fill: 1 reports"], 1, "memcheck", REPORT=report)
    report = "========= Program hit CUDA_ERROR_ASSERT\\n========= ERROR SUMMARY: 3 errors\\n"
    check(["two, /b", "unknown: 3 reports"], 1, "memcheck", REPORT=report)


@tap.case
def tests_that_fail_are_found():
    check(["two, /b", "exit status 7"], 1, "racecheck", B="exit 7")
    check(["two, /b", "not ok 1 /b"], 1, "racecheck", B="echo not ok 1 /b")


@tap.case
def parts_cover_all_tests():
    report = RACE % ("gt_add", "gt_add")
    check(["1 tests done", "nothing found"], 0, "racecheck", "--part", "1/2", REPORT=report)
    check(["1 tests done", "two, /b", "something found"], 1, "racecheck", "--part", "2/2", REPORT=report)
    check(["2 tests done", "something found"], 1, "racecheck", "--part", "1/1", REPORT=report)
    for wrong in ("0/2", "3/2", "1", "a/b"):
        check([], 2, "racecheck", "--part", wrong)


@tap.case
def tests_that_take_too_long_are_named():
    words = ["not done in time: two:/b", "1 tests done, 1 not done"]
    check(words, 1, "racecheck", "--limit", "4", B="sleep 60")


tap.main()
