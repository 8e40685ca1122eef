#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Runs the programs of suite `cuda' under compute-sanitizer, a few of their tests at a time, many side by side.

    sanitize.py BUILD memcheck|racecheck [--jobs N] [--tests N] [--limit S] [--seconds S] [--part I/N]
                [PROGRAM[:TEST]...]

memcheck checks each memory access of each kernel. Each tensor is a separate allocation, so that
overruns are detected. Errors of driver calls are not reported: tests provoke some.

racecheck looks for threads of a block that access shared memory without synchronisation, in kernels
of this library. Where the tool aborts, as it does at kernels of cuBLASLt and cuDNN that it does not
instrument, the tests run once more with all kernels instrumented, and reports about foreign kernels
do not count. Reports about KNOWN are wrong: the tool does not know that a barrier orders the copies
of the copy engine.

PROGRAM is a name of `meson test --list', TEST a path of GLib's test framework; both may have
wildcards. `--part 2/5' runs the second of five parts, which together contain all tests: each has
some tests of each program. Prints the reports, at the end the tests that did not finish in time, in
the form that the command accepts, and totals. Exits with 1 if there are any of these.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import fnmatch
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

KNOWN = ('gt_sum_rows_bulk', )
TOOLS = {
    'memcheck': (['--report-api-errors=no'], {'GTORCH_NO_MEMORY_CACHING': '1'}),
    'racecheck': (['--kernel-name=kns=gt_'], {'GTORCH_ALLOC': 'segments'}),
}

# The kernel's name is part of the line about the access.
REPORT = re.compile(r'^=+ +(?:\w+: )?(?:Race reported between \w+ access )?at (?:void )?([\w:]+)', re.M)
# Messages of a tool that could not do its work; failed programs are detected anyway.
BROKEN = re.compile(r'^=+ (?:Internal Sanitizer )?Error: (?!Race reported|process didn.t terminate|Potential)', re.M)
SUMMARY = re.compile(r'SUMMARY: (\d+) (?:error|hazard)')

Part = collections.namedtuple('Part', 'program command environment paths')
# words: the lines to print for a part; log: the tool's output; others: reports that do not count
Result = collections.namedtuple('Result', 'words log late n_done others all_kernels',
                                defaults=([], [], [], 0, 0, False))


def run(command, environment, seconds):
    """Returns the output of a program and its exit status, None if it had to be killed."""
    with tempfile.TemporaryFile('w+', errors='replace') as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        output.seek(0)
        return output.read(), status


def read_part(text):
    match = re.fullmatch(r'(\d+)/(\d+)', text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise argparse.ArgumentTypeError(f'{text} is not I/N with I from 1 to N')
    return int(match[1]), int(match[2])


def list_parts(build, patterns, n_tests, environment):
    for test in json.loads((build / 'meson-info' / 'intro-tests.json').read_text()):
        suites = [suite.split(':')[-1] for suite in test['suite']]
        program = pathlib.Path(test['cmd'][0])
        wanted = [path or '*' for name, _, path in (pattern.partition(':') for pattern in patterns)
                  if fnmatch.fnmatch(test['name'], name)]
        if 'cuda' not in suites or not program.is_relative_to(build) or (patterns and not wanted):
            continue
        # The stand-ins for NVIDIA's libraries are in the folder of the fake driver.
        places = test['env'].get('LD_LIBRARY_PATH', '').split(':') + environment.get('LD_LIBRARY_PATH', '').split(':')
        places = ':'.join(place for place in places if place and pathlib.Path(place).name != 'fake-cuda')
        own = environment | test['env'] | {'LD_LIBRARY_PATH': places}
        output, _ = run([*test['cmd'], '-l'], own, 60)
        paths = [line for line in output.splitlines() if line.startswith('/')]
        paths = [path for path in paths if not wanted or any(fnmatch.fnmatch(path, pattern) for pattern in wanted)]
        n = -(-len(paths) // n_tests)
        for i in range(n):
            yield Part(test['name'], test['cmd'], own, paths[i::n])
        if n == 0 and (not wanted or '*' in wanted):
            yield Part(test['name'], test['cmd'], own, [])


def read_logs(folder):
    """Returns the number of reports for each kernel, whether the tool aborted, and its other messages."""
    kernels, broken, words = collections.Counter(), False, []
    for log in folder.iterdir():
        text = log.read_text(errors='replace')
        breaks = BROKEN.search(text) is not None
        broken |= breaks
        names = REPORT.findall(text)
        kernels.update(names)
        summary = SUMMARY.search(text)
        if summary and int(summary[1]) > 0 and (not names or 'hazard' in summary[0] and int(summary[1]) > len(names)):
            kernels['unknown'] += int(summary[1]) - len(names)
            breaks = True
        if breaks:
            words += [line[:200] for line in text.splitlines() if re.match('=+ +\\S', line)][:30]
    return kernels, broken, words


def check(part, tool, options, end):
    """Runs a part; returns the lines to print and the tests that did not run."""
    with tempfile.TemporaryDirectory() as folder:
        command = ['compute-sanitizer', '--tool=' + tool, '--target-processes=all', '--print-limit=10000',
                   f'--log-file={folder}/%p', *options, *part.command]
        for path in part.paths:
            command += ['-p', path]
        output, status = run(command, part.environment, max(1, end - time.monotonic()))
        kernels, broken, log = read_logs(pathlib.Path(folder))
    if broken and tool == 'racecheck' and options:
        return check(part, tool, [], end)
    done = re.findall(r'^ok \d+ (\S+)', output, re.M)
    failed = re.findall(r'^not ok .*', output, re.M)
    ours = {name: n for name, n in kernels.items()
            if tool != 'racecheck' or name == 'unknown' or name.startswith('gt_') and not name.startswith(KNOWN)}
    words = [f'{name}: {n} reports' for name, n in ours.items()] + failed
    if broken:
        words.append('the tool broke off')
    elif status not in (0, None) and not words:
        words.append(f'exit status {status}: {output[-300:]!r}')
    others = sum(kernels.values()) - sum(ours.values())
    said = {*done, *re.findall(r'^not ok \d+ (\S+)', output, re.M)}
    late = [path for path in part.paths or ['*'][:status is None] if path not in said]
    return Result(words, log, late, len(done), others, not options and tool == 'racecheck')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('build', type=pathlib.Path)
    parser.add_argument('tool', choices=TOOLS)
    parser.add_argument('--jobs', type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument('--tests', type=int, default=8, help='of a program at a time')
    parser.add_argument('--limit', type=float, default=1800, help='seconds for these')
    parser.add_argument('--seconds', type=float, default=24 * 3600, help='for all')
    parser.add_argument('--part', type=read_part, default=(1, 1), metavar='I/N', help='only the I-th of N parts')
    parser.add_argument('programs', nargs='*')
    options = parser.parse_intermixed_args()
    arguments, settings = TOOLS[options.tool]
    end = time.monotonic() + options.seconds
    found, late, sums = False, [], collections.Counter()

    def check_in_time(part):
        begun = time.monotonic()
        if begun > end - 10:
            return part, Result(late=part.paths or ['*']), 0
        result = check(part, options.tool, arguments, min(begun + options.limit, end))
        return part, result, time.monotonic() - begun

    environment = os.environ | settings | {'GTORCH_TEST_SERIAL': '1'}
    parts = list(list_parts(options.build.resolve(), options.programs, options.tests, environment))
    parts = parts[options.part[0] - 1 :: options.part[1]]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for future in concurrent.futures.as_completed([pool.submit(check_in_time, part) for part in parts]):
            part, result, seconds = future.result()
            late += [f'{part.program}:{path}' for path in result.late]
            found |= bool(result.words)
            sums.update({'tests': result.n_done, 'reports': result.others})
            if result.words or result.all_kernels or result.others:
                place = ' '.join(part.paths) or 'all tests'
                what = '; '.join(result.words) or 'clean'
                what += ', all kernels looked at' if result.all_kernels else ''
                what += f', {result.others} reports that do not count' if result.others else ''
                print(f'{part.program}, {place}, {seconds:.0f} s: {what}', *result.log, sep='\n', flush=True)
    if late:
        print('not done in time:', *late)
    print(f'{options.tool}: {sums["tests"]} tests done, {len(late)} not done,'
          f' {sums["reports"]} reports that do not count, {"something" if found else "nothing"} found')
    return 0 if sums['tests'] and not found and not late else 1


if __name__ == '__main__':
    sys.exit(main())
