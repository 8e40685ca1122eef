#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Runs the desktop programs on a screen in memory: they train, show it, and cancel.

test-desktop.py FOLDER NAME COMMAND [then NAME COMMAND]…

Pictures are written into the folder. How long the main loop stood still is printed, not judged.
"""

import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'tests' / 'gtk'))

import screen  # noqa: E402

LINE = re.compile(r'desktop: (\w+), (\d+) steps, longest gap of the main loop ([\d.]+) ms')


def run(display, command, picture=None):
    """Runs a program, takes a picture when it has trained, and returns its line."""
    process = subprocess.Popen(command, env=display.environment, stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline().strip()
        time.sleep(1)
        if picture:
            display.save(picture)
        colors = display.n_colors()
        process.wait(60)
    finally:
        process.kill()
        process.wait()
    return LINE.fullmatch(line), line, colors, process.returncode


def main():
    folder, *rest = sys.argv[1:]
    programs, current = [], []
    for argument in [*rest, 'then']:
        if argument == 'then':
            if current:
                programs.append((current[0], current[1:]))
            current = []
        else:
            current.append(argument)
    count = failed = 0
    with screen.screen() as display:
        if display is None:
            print('1..0 # SKIP no Xvfb')
            return 0
        for name, command in programs:
            picture = os.path.join(folder, f'desktop-{name}.png')
            match, line, colors, status = run(display, [*command, '--start', '--epochs=4', '--close-after=3'], picture)
            print(f'# {name}: {line}')
            stopped, text, _colors, end = run(
                display, [*command, '--start', '--epochs=100000', '--cancel-after=1.5', '--close-after=1.5']
            )
            print(f'# {name}: {text}')
            checks = {
                'trains_to_the_end': match is not None and match[1] == 'done' and int(match[2]) > 80 and status == 0,
                'shows_a_window': colors > 100,
                'cancels': stopped is not None and stopped[1] == 'cancelled' and end == 0,
            }
            for what, passed in checks.items():
                count += 1
                failed += not passed
                print(f'{"ok" if passed else "not ok"} {count} - {name}_{what}')
    print(f'1..{count}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
