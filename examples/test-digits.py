#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Runs the digits programs: each must learn, and all must end with the same line.

test-digits.py NAME COMMAND [then NAME COMMAND]…

GTORCH_TEST_DEVICE names another device than the CPU.
"""

import os
import re
import subprocess
import sys
import tempfile


DRAWS = 'GTORCH_DRAWS' in os.environ  # there is gtorch-plot
DEVICE = os.environ.get('GTORCH_TEST_DEVICE') or 'cpu'


def run(command, folder):
    """Includes the lines before it."""
    # in bytes: in text mode a carriage return would become a new line
    result = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=300)
    errors = result.stderr.decode()
    print(''.join(f'# {line}\n' for line in errors.splitlines()), end='')
    if DEVICE != 'cpu' and re.search(f'device: no .*{DEVICE}', errors):
        print(f'1..0 # SKIP no device {DEVICE}')
        sys.exit()
    lines = result.stdout.decode().split('\n')[:-1]
    return (lines[-1] if result.returncode == 0 and lines else f'exit status {result.returncode}'), lines


def is_png(path):
    return os.path.exists(path) and open(path, 'rb').read(4) == b'\x89PNG'


def main():
    programs, current = [], []
    for argument in sys.argv[1:] + ['then']:
        if argument == 'then':
            programs.append((current[0], current[1:]))
            current = []
        else:
            # programs run in their own folder
            current.append(os.path.abspath(argument) if '/' in argument else argument)
    count, failed, first = 0, 0, None
    for name, command in programs:
        with tempfile.TemporaryDirectory() as folder:
            line, lines = run(command + ['--seed=3', f'--device={DEVICE}'], folder)
            match = re.fullmatch(r'digits: accuracy ([\d.]+) %, loss [\d.]+, weights [0-9a-f]{16}', line)
            first = first or line
            pictures = [os.path.join(folder, name) for name in ('digits.png', 'digits-losses.png')]
            checks = {
                'reaches_98_percent': match is not None and float(match[1]) >= 98,
                'draws_pictures': all(is_png(path) for path in pictures) if DRAWS else 'draws no pictures' in lines[-2],
                'ends_as_the_first_one_does': line == first,
                'refuses_a_stray_argument': run(command + ['stray'], folder)[0].startswith('exit status'),
                'prints_a_line_for_each_epoch': sum(
                    bool(re.fullmatch(r'epoch +\d+ of 20: loss \d\.\d{4}', text)) for text in lines
                ) == 20,
            }
            for what, passed in checks.items():
                count += 1
                failed += not passed
                print(f'{"ok" if passed else "not ok"} {count} - {name}_{what}')
            print(f'# {name}: {line}')
    print(f'1..{count}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
