#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Counts the test cases in Meson's testlog.json files.

Meson counts programs. This reads what each program printed, TAP or unittest's report, and adds up
the cases. The last line printed is `N passed, N failed, N skipped`, and the exit status is 0 only
if nothing failed. A program that dies, leaves out cases of its plan or reports success by exit
status alone counts as one case more. What failed stands just above that line, with the end of what
the program printed, however long the list of programs is.
"""

import argparse
import json
import re
import sys
from dataclasses import dataclass, field

RESULT = re.compile(r"^(?P<indent> *)(?P<not>not )?ok\b *(?P<number>\d+)? *(?:- )?(?P<rest>.*)$")
DIRECTIVE = re.compile(r"(?<!\\)# *(?P<what>skip|todo)\b\S* *(?P<why>.*)$", re.IGNORECASE)
PLAN = re.compile(r"^1\.\.(?P<last>\d+)(?: *# *skip\b *(?P<why>.*))?", re.IGNORECASE)
UNITTEST_RAN = re.compile(r"^Ran (\d+) tests? in ", re.MULTILINE)
UNITTEST_END = re.compile(r"^(?:OK|FAILED)(?: \((.*)\))?$", re.MULTILINE)
UNITTEST_BAD = re.compile(r"^(?:FAIL|ERROR): (.+)$", re.MULTILINE)

# Applies to each output stream of a program that failed.
TAIL_LINES = 40


@dataclass
class Counts:
    """The results of one program, or of all."""

    passed: int = 0
    failures: list = field(default_factory=list)
    skips: list = field(default_factory=list)

    @property
    def total(self):
        return self.passed + len(self.failures) + len(self.skips)

    def add(self, other):
        self.passed += other.passed
        self.failures += other.failures
        self.skips += other.skips

    def __str__(self):
        return f"{self.passed} passed, {len(self.failures)} failed, {len(self.skips)} skipped"


def parse_tap(text):
    """Counts the cases of a TAP stream, or returns None if @text is not one.

    Cases are the leaves: a result line that closes an indented subtest sums up lines that have
    been counted already.
    """
    counts = Counts()
    plan = None
    n_top = 0
    inner = {}  # indent -> failures seen at that indent since its parent's last result
    for line in text.splitlines():
        match = PLAN.match(line)
        if match and plan is None:
            plan = int(match["last"])
            if plan == 0 and match["why"] is not None:
                counts.skips.append(match["why"] or "the whole program")
            continue
        if line.startswith("Bail out!"):
            # GLib prints this after the failed case, which explains the cases that never ran
            if not counts.failures:
                counts.failures.append(line)
            plan = n_top
            continue
        match = RESULT.match(line)
        if not match or (match["indent"] and len(match["indent"]) % 4):
            continue
        indent = len(match["indent"])
        n_top += indent == 0
        deeper = [key for key in inner if key > indent]
        n_inner_failures = sum(inner.pop(key) for key in deeper)
        failed = bool(match["not"])
        inner[indent] = inner.get(indent, 0) + failed
        if deeper and (n_inner_failures or not failed):
            continue
        directive = DIRECTIVE.search(match["rest"])
        name = match["rest"][: directive.start()].strip() if directive else match["rest"].strip()
        if directive and directive["what"].lower() == "skip" and not failed:
            counts.skips.append(f"{name}: {directive['why'] or 'no reason given'}")
        elif directive and directive["what"].lower() == "todo":
            if failed:
                counts.skips.append(f"{name}: known to fail: {directive['why']}")
            else:
                counts.failures.append(f"{name}: passes, though marked as known to fail")
        elif failed:
            counts.failures.append(name or f"case {match['number']}")
        else:
            counts.passed += 1
    if plan is None and n_top == 0:
        return None
    if plan is not None and plan > n_top:
        counts.failures += [f"{plan - n_top} of {plan} planned cases never ran"] * (plan - n_top)
    return counts


def parse_unittest(text):
    """Counts the cases of Python's unittest report, or returns None if there is none."""
    ran = UNITTEST_RAN.search(text)
    end = ran and UNITTEST_END.search(text, ran.end())
    if not end:
        return None
    numbers = {"failures": 0, "errors": 0, "skipped": 0, "unexpected successes": 0}
    for part in (end[1] or "").split(", "):
        key, _, number = part.partition("=")
        if key in numbers:
            numbers[key] = int(number)
    names = UNITTEST_BAD.findall(text)
    n_failed = numbers["failures"] + numbers["errors"] + numbers["unexpected successes"]
    names += ["a case that succeeded unexpectedly"] * (n_failed - len(names))
    counts = Counts(failures=names[:n_failed], skips=["skipped by unittest"] * numbers["skipped"])
    counts.passed = max(int(ran[1]) - n_failed - numbers["skipped"], 0)
    return counts


def count_program(entry):
    """Counts one line of testlog.json."""
    result = entry.get("result", "ERROR")
    stdout, stderr = entry.get("stdout") or "", entry.get("stderr") or ""
    if result == "SKIP" and not RESULT.search(stdout) and not PLAN.search(stdout):
        return Counts(skips=["exit status 77"])
    counts = parse_tap(stdout) or parse_unittest(stderr) or parse_unittest(stdout) or Counts()
    if result in ("OK", "EXPECTEDFAIL", "SKIP"):
        if counts.total == 0:
            counts.passed = 1
    elif not counts.failures:
        reason = {"TIMEOUT": "ran out of time", "INTERRUPT": "was interrupted"}.get(
            result, f"ended with status {entry.get('returncode')} after {counts.total} cases"
        )
        counts.failures.append(reason)
    return counts


def read_log(path):
    with open(path, encoding="utf-8") as log:
        for line in log:
            entry = json.loads(line)
            name = entry.get("name", "?")
            yield name.split(" / ")[-1], entry


def tail(text):
    lines = (text or "").rstrip().splitlines()
    cut = [f"[{len(lines) - TAIL_LINES} lines before]"] if len(lines) > TAIL_LINES else []
    return cut + lines[-TAIL_LINES:]


def print_failures(failures):
    """Yields each (log, name, entry, counts), followed by the last output of failed programs."""
    for path, name, entry, counts in failures:
        print(f"\n{name} of {path} ended with status {entry.get('returncode')}:")
        for failure in counts.failures:
            print(f"  FAILED {failure}")
        for stream in ("stdout", "stderr"):
            for line in tail(entry.get(stream)):
                print(f"    {line}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--status", type=int, default=0, help="exit status of the caller so far")
    parser.add_argument("--stage", default="", help="what the caller was doing, if it is not done")
    parser.add_argument("logs", nargs="*")
    args = parser.parse_args()

    all_counts = Counts()
    failures = []
    for path in args.logs:
        try:
            entries = list(read_log(path))
        except (OSError, ValueError) as error:
            all_counts.failures.append(f"{path}: {error}")
            continue
        log_counts = Counts()
        print(f"\n{path}:")
        for name, entry in sorted(entries, key=lambda pair: pair[0]):
            counts = count_program(entry)
            print(f"  {name}: {counts}")
            for failure in counts.failures:
                print(f"    FAILED {failure}")
            if counts.failures:
                failures.append((path, name, entry, counts))
            for why in counts.skips:
                print(f"    skipped {why}")
            log_counts.add(counts)
        if not entries:
            log_counts.failures.append(f"{path}: no tests ran")
            print("  FAILED no tests ran")
        all_counts.add(log_counts)
    print_failures(failures)
    if args.stage:
        all_counts.failures.append(args.stage)
        print(f"\nFAILED {args.stage} (status {args.status})")

    print(f"\n{all_counts}")
    return 1 if all_counts.failures else 0


if __name__ == "__main__":
    sys.exit(main())
