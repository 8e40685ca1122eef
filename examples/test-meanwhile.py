#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Runs the programs that learn while a main loop runs: they must learn, all must end with the same line, and
the main loop must never be blocked.

    test-meanwhile.py NAME COMMAND [then NAME COMMAND]…

GTORCH_TEST_DEVICE names another device than the CPU.
"""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'tests' / 'style'))

import tap  # noqa: E402

DEVICE = os.environ.get('GTORCH_TEST_DEVICE') or 'cpu'
ENVIRONMENT = {**os.environ, 'G_DEBUG': 'fatal-criticals', 'LC_ALL': 'C.UTF-8'}
ON_HOST = DEVICE == 'cpu' or 'GTORCH_CUDA_DRIVER' in os.environ
# Steps of many ticks on the host; of at least 10 ms on a GPU, which is more efficient if it is full.
STEPS, POINTS = (12, 60000) if ON_HOST else (100, 1000000)
TICK_MS = 10
LATE_MS = 5  # the normal delay of a timeout
N_TRIES = 3
LINES = []


def start(command, *arguments):
    return subprocess.Popen(
        [*command, f'--device={DEVICE}', *arguments],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding='utf-8',
    )


def run(command, *arguments, status=0):
    """Returns the lines that the program prints."""
    process = start(command, *arguments)
    output, errors = process.communicate()
    assert process.returncode == status, f'exit status {process.returncode}\n{output[-200:]}{errors}'
    assert status != 0 or errors == '', errors
    return (output if status == 0 else errors).splitlines()


def run_on_terminal(command, *arguments):
    """Returns the output of the program, as bytes."""
    ours, its = os.openpty()
    with subprocess.Popen([*command, f'--device={DEVICE}', *arguments], env=ENVIRONMENT, stdout=its) as process:
        os.close(its)
        output = b''
        with contextlib.suppress(OSError):  # for a terminal whose other end is closed
            while more := os.read(ours, 4096):
                output += more
    os.close(ours)
    assert process.returncode == 0, output
    return output.replace(b'\r\n', b'\n')


def learns_as_the_first_one_does(command):
    line = run(command, '--seed=3', '--points=500', '--steps=150')[-1]
    match = re.fullmatch(r'meanwhile: 150 steps, loss (\d\.\d{9})', line)
    assert match and float(match[1]) < 0.1, line
    LINES.append(line)
    assert line == LINES[0], f'{line}\n{LINES[0]}'


def does_not_block_its_main_loop(command):
    """A program that waits for a step is blocked that long: only one tick per step remains. A busy
    machine may have few ticks, but not each time."""
    for _ in range(N_TRIES):
        line = run(command, f'--points={POINTS}', f'--steps={STEPS}')[-2]
        match = re.fullmatch(r'meanwhile: (\d+) ticks in ([\d.]+) s, ([\d.]+) ms from .* at most', line)
        assert match, line
        step_ms = 1000 * float(match[2]) / STEPS
        if int(match[1]) > 2 * STEPS if ON_HOST else float(match[3]) < TICK_MS + max(step_ms / 2, LATE_MS):
            return
        print(f'# {line}')
    raise AssertionError(line)


def leaves_when_it_is_interrupted(command):
    process = start(command, '--steps=1000000', '--points=500')
    with process:
        while '%' not in (line := process.stdout.read(20)):
            assert line, process.stderr.read()
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate()
    assert errors == '', errors
    assert process.returncode == 130, f'exit status {process.returncode}'
    line = output.splitlines()[-1]
    assert re.fullmatch(r'meanwhile: stopped after \d+ of 1000000 steps', line), line


def says_what_is_wrong(command):
    lines = run(command, '--device=cud', status=1)
    assert len(lines) == 1 and re.match('meanwhile: .*cud', lines[0]), lines
    status = 2 if 'meanwhile.py' in command[-1] else 1
    lines = run(command, 'stray', status=status)
    assert 'stray' in lines[-1], lines


def draws_in_place_on_a_terminal_only(command):
    arguments = ('--seed=3', '--points=500', '--steps=40')
    bar = re.compile(rb'\[(#*)\.*\] +\d+ %, loss \d\.\d{4}')
    done = subprocess.run(
        [*command, f'--device={DEVICE}', *arguments], env=ENVIRONMENT, stdout=subprocess.PIPE, check=True
    ).stdout
    assert b'\r' not in done and b'\x1b' not in done, done
    lengths = [len(match[1]) for line in done.splitlines() if (match := bar.fullmatch(line))]
    assert lengths and lengths == sorted(set(lengths)) and lengths[-1] == 20, done
    done = run_on_terminal(command, *arguments)
    pieces = [piece for piece in re.split(rb'\r|\n\x1b\[A|\n', done) if bar.fullmatch(piece)]
    assert pieces and done.count(b'\r') + done.count(b'\x1b[A') == len(pieces), done


def is_there_no_device(command):
    done = subprocess.run(
        [*command, f'--device={DEVICE}', '--points=1', '--steps=1'],
        env=ENVIRONMENT, capture_output=True, text=True, check=False,
    )
    return re.search(f'device: no .*{DEVICE}', done.stderr)


if __name__ == '__main__':
    programs, current = [], []
    for argument in [*sys.argv[1:], 'then']:
        if argument == 'then':
            programs.append((current[0], current[1:]))
            current = []
        else:
            current.append(argument)
    del sys.argv[1:]
    if DEVICE != 'cpu' and is_there_no_device(programs[0][1]):
        print(f'1..0 # SKIP no device {DEVICE}')
        sys.exit()
    for name, command in programs:
        for case in (
            learns_as_the_first_one_does,
            does_not_block_its_main_loop,
            leaves_when_it_is_interrupted,
            says_what_is_wrong,
            draws_in_place_on_a_terminal_only,
        ):
            tap.add(f'{name}_{case.__name__}', case, command)
    tap.main()
