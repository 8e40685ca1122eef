#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The totals at the end of `./bootstrap test` are right, whatever a program prints."""

import json
import os
import subprocess
import sys
import tempfile

import tap

SUMMARY = os.path.join(tap.SOURCE_ROOT, "tests", "summary.py")


def run(*entries, args=()):
    """Runs summary.py on a log of @entries; returns its output and exit status."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as log:
        for entry in entries:
            log.write(json.dumps({"name": "gtorch:core / test", "returncode": 0, **entry}) + "\n")
        log.flush()
        done = subprocess.run(
            [sys.executable, SUMMARY, *args, log.name], capture_output=True, text=True, check=False
        )
    return done.stdout, done.returncode


def check(expected, status, *entries, args=()):
    output, got = run(*entries, args=args)
    assert (output.splitlines()[-1], got) == (expected, status), f"{output}\nstatus {got}"


@tap.case
def tap_cases_are_counted():
    text = "TAP version 13\n# random seed: x\n1..3\nok 1 /a\nok 2 /b # SKIP no GPU\nnot ok 3 /c\n"
    check("1 passed, 1 failed, 1 skipped", 1, {"result": "FAIL", "stdout": text, "returncode": 1})


@tap.case
def a_crash_after_passing_cases_is_a_failure():
    text = "1..1\nok 1 /a\n"
    check("1 passed, 1 failed, 0 skipped", 1, {"result": "FAIL", "stdout": text, "returncode": -11})


@tap.case
def planned_cases_that_never_ran_failed():
    text = "1..4\nok 1 /a\nBail out! /b: assertion\n"
    check("1 passed, 1 failed, 0 skipped", 1, {"result": "ERROR", "stdout": text, "returncode": 1})
    text = "1..4\nok 1 /a\nnot ok /b - ERROR: x\nBail out!\n"
    check("1 passed, 1 failed, 0 skipped", 1, {"result": "ERROR", "stdout": text, "returncode": -6})
    text = "1..4\nok 1 /a\n"
    check("1 passed, 3 failed, 0 skipped", 1, {"result": "ERROR", "stdout": text, "returncode": 0})


@tap.case
def a_subtest_is_counted_by_its_leaves():
    text = "1..2\n# Subtest: x\n    ok 1 a\n    ok 2 b\n    1..2\nok 1 x\nok 2 y\n"
    check("3 passed, 0 failed, 0 skipped", 0, {"result": "OK", "stdout": text})


@tap.case
def known_failures_are_skips_until_they_pass():
    text = "1..1\nnot ok 1 a # TODO later\n"
    check("0 passed, 0 failed, 1 skipped", 0, {"result": "OK", "stdout": text})
    text = "1..1\nok 1 a # TODO later\n"
    check("0 passed, 1 failed, 0 skipped", 1, {"result": "FAIL", "stdout": text})


@tap.case
def a_program_may_skip_itself():
    check("0 passed, 0 failed, 1 skipped", 0, {"result": "SKIP", "stdout": "1..0 # SKIP no gjs\n"})
    check("0 passed, 0 failed, 1 skipped", 0, {"result": "SKIP", "stdout": "", "returncode": 77})


@tap.case
def unittest_cases_are_counted():
    text = "FAIL: test_x (m.T)\nRan 7 tests in 0.1s\n\nFAILED (failures=1, skipped=2)\n"
    check("4 passed, 1 failed, 2 skipped", 1, {"result": "FAIL", "stdout": "", "stderr": text})
    text = "Ran 1 test in 0.1s\n\nOK\n"
    check("1 passed, 0 failed, 0 skipped", 0, {"result": "OK", "stdout": "", "stderr": text})


@tap.case
def a_plain_program_is_one_case():
    check("1 passed, 0 failed, 0 skipped", 0, {"result": "OK", "stdout": "hello\n"})
    check("0 passed, 1 failed, 0 skipped", 1, {"result": "TIMEOUT", "stdout": "", "returncode": -9})


@tap.case
def an_unfinished_stage_and_an_empty_log_fail():
    entry = {"result": "OK", "stdout": "ok 1\n1..1\n"}
    check("1 passed, 1 failed, 0 skipped", 1, entry, args=["--stage", "build", "--status", "1"])
    check("0 passed, 1 failed, 0 skipped", 1)


@tap.case
def failures_are_repeated_at_the_end():
    lines = "".join(f"line {i}\n" for i in range(100))
    bad = {"result": "FAIL", "stdout": f"1..1\n{lines}not ok 1 /c\n", "stderr": "why\n"}
    good = [{"result": "OK", "stdout": "1..1\nok 1 /a\n"}] * 200
    output, _ = run({**bad, "returncode": 9}, *good)
    end = output.splitlines()[-50:]
    assert "  FAILED /c" in end and "    line 99" in end and "    why" in end, output
    assert "    line 50" not in end and any("status 9" in line for line in end), output


tap.main()
