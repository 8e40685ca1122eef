#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The program gtorch-top: its table and JSON, and its display in a terminal, with a fake driver and a fake NVML."""

import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import tap  # noqa: E402

PROGRAM = os.path.abspath(sys.argv.pop(1))
EXPORTED = os.path.abspath(sys.argv.pop(1))  # exports itself if it is called with --child trainer
BUSY = {'GTORCH_FAKE_CUDA': 'devices=2,nvml-busy=1'}
LIMIT = 30  # seconds, for whatever has to happen


def environment(**changes):
    base = {**os.environ, 'LC_ALL': 'C.UTF-8', 'TERM': 'xterm', 'DBUS_SESSION_BUS_ADDRESS': 'unix:path=/nowhere'}
    base.pop('NO_COLOR', None)
    return {**base, **changes}


def run(*arguments, name=None, **changes):
    command = [name or PROGRAM, *arguments]
    result = subprocess.run(command, executable=PROGRAM, env=environment(**changes), capture_output=True, check=False,
                            stdin=subprocess.DEVNULL)
    out, err = (text.decode(errors='replace') for text in (result.stdout, result.stderr))
    return result.returncode, out.replace('\xa0', ' '), err


def has(pattern, text):
    assert re.search(pattern, text, re.M), f'no {pattern!r} in:\n{text}'


# --- once ---


@tap.case
def a_pipe_gets_a_table_without_escape_codes():
    for arguments in ([], ['--once'], ['-1', '-i', '5']):
        code, out, err = run(*arguments, **BUSY)
        assert code == 0 and err == '' and '\033' not in out and '\r' not in out, (out, err)
        has(r'^cuda:0  Fake 0  \d+ °C  \d+ / 450 W  fan 4\d %$', out)
        has(r'^cuda:1  Fake 1  ', out)
        has(r'^  load   [█░]{20}  *\d+ %  19\d\d MHz$', out)
        has(r'^  memory [█░]{20}  *\d+ %  \d+\.\d MiB / 1\.0 GiB  2619 MHz  busy 3\d %$', out)
        has(r'^ +\d+    1\.0 GiB  cuda:0 cuda:1     gtorch-top$', out)
        has(r'^cpu +', out)
        assert not re.search(r' $', out, re.M), out


@tap.case
def json_has_the_same_facts():
    code, out, err = run('--json', **BUSY)
    report = json.loads(out)
    assert code == 0 and err == '' and report['reason'] is None and report['programs'] == [], report
    cpu, first, second = sorted(report['devices'], key=lambda device: device['device'])
    assert [d['device'] for d in (cpu, first, second)] == ['cpu', 'cuda:0', 'cuda:1']
    assert first['total-memory'] == 2**30 and first['power-limit'] == 450 and first['memory-clock'] == 2619, first
    assert 0 <= first['utilization'] <= 100 and first['error'] is None, first
    assert [p['name'] for p in first['processes']] == ['gtorch-top'] and first['processes'][0]['memory-used'] == 2**29
    assert cpu['temperature'] is None and cpu['power'] is None and cpu['processes'] == [], cpu
    assert 0 < cpu['memory-used'] < cpu['total-memory'] and 0 <= cpu['utilization'] <= 100, cpu


@tap.case
def devices_can_be_chosen():
    for arguments, expected in (
        (['-d', 'cpu'], ['cpu']),
        (['--device=cuda:1'], ['cuda:1']),
        (['-d', 'cuda:1', '-d', 'cpu', '-d', 'cuda:1'], ['cuda:1', 'cpu']),
    ):
        report = json.loads(run('--json', *arguments, **BUSY)[1])
        assert [device['device'] for device in report['devices']] == expected, report


@tap.case
def without_a_gpu_the_cpu_is_shown_and_the_reason():
    for changes, reason in (
        ({'GTORCH_CUDA_DRIVER': '/nowhere/libcuda.so.1'}, 'was not found'),
        ({'GTORCH_FAKE_CUDA': 'devices=0'}, 'CUDA_ERROR_NO_DEVICE'),
    ):
        code, out, err = run(**changes)
        assert code == 0 and err == '', err
        has('^cpu ', out)
        has(reason, out)
        assert reason in json.loads(run('--json', **changes)[1])['reason']


@tap.case
def a_gpu_that_cannot_be_monitored_says_why():
    code, out, _ = run('-d', 'cuda:0', GTORCH_CUDA_LIBRARY_PATH='/nowhere', LD_LIBRARY_PATH='', CUDA_HOME='/nowhere')
    assert code == 0
    if 'load' in out:
        raise tap.Skip('this machine has NVML')
    has(r'^cuda:0  Fake 0$', out)
    has(r'^  .*libnvidia-ml\.so\.1, for monitoring of GPUs, was not found', out)


@tap.case
def names_of_processes_control_nothing():
    name = 'evil\033[2J\033]0;x\007\n\u202eé\u4e16 "\\'
    code, out, _ = run('-d', 'cuda:0', name=name, **BUSY)
    assert code == 0 and '\033' not in out and '\007' not in out, out
    has(r'evil\?\[2J\?]0;x\?\?', out)
    report = json.loads(run('--json', '-d', 'cuda:0', name=name, **BUSY)[1])
    names = [process['name'] for process in report['devices'][0]['processes']]
    assert len(names) == 1 and names[0].startswith('evil\033[2J'), names
    code, out, _ = run('-d', 'cuda:0', name='é' * 300, LC_ALL='C', **BUSY)
    assert code == 0 and out.isascii(), out
    has('#', out)


@tap.case
def nonsense_is_refused():
    for arguments, text in (
        (['abacus'], 'unexpected argument “abacus”'),
        (['--once', ''], 'unexpected argument “”'),
        (['--abacus'], '--abacus'),
        (['-d', 'abacus'], 'abacus'),
        (['-d', ''], ''),
        (['-d', 'cuda:7'], 'cuda:7'),
        (['-i', '0'], 'the interval is 0 seconds, it must be from 0.1 to 3600'),
        (['-i', '-1'], 'the interval is -1 seconds'),
        (['-i', 'nan'], 'the interval is nan seconds'),
        (['-i', '1e9'], 'the interval is 1e+09 seconds'),
        (['-i', 'x'], 'x'),
        (['-i'], ''),
    ):
        code, out, err = run(*arguments, **BUSY)
        assert code == 2 and out == '' and err.startswith('gtorch-top: ') and text in err, (arguments, code, out, err)
    assert re.fullmatch(r'gtorch-top \d+\.\d+\.\d+\n', run('--version')[1])
    assert '--interval' in run('--help')[1]


@tap.case
def output_that_cannot_be_written_is_a_failure():
    for arguments in (['--once'], ['--json'], ['--version']):
        with open('/dev/full', 'w', encoding='utf-8') as full:
            result = subprocess.run([PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, check=False,
                                    env=environment())
        assert result.returncode == 2, result


# --- programs that export themselves ---


@contextlib.contextmanager
def exported_program():
    """A program on a bus; gives the environment in which it is found, and its process."""
    if not shutil.which('dbus-daemon'):
        raise tap.Skip('dbus-daemon is not installed')
    daemon = subprocess.Popen(['dbus-daemon', '--session', '--nofork', '--print-address'], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    changes = {**BUSY, 'DBUS_SESSION_BUS_ADDRESS': daemon.stdout.readline().strip()}
    program = subprocess.Popen([EXPORTED, '--child', 'trainer'], stdout=subprocess.PIPE,
                               env=environment(**changes, GTORCH_EXPORT='1'))
    try:
        assert program.stdout.read(1) == b'\0'
        end = time.monotonic() + LIMIT
        while not json.loads(run('--json', '-d', 'cpu', **changes)[1])['programs']:
            assert time.monotonic() < end
        yield changes, program
    finally:
        for process in (program, daemon):
            process.kill()
            process.wait()
            process.stdout.close()


@tap.case
def exported_programs_show_their_memory_streams_and_losses():
    with exported_program() as (changes, process):
        program = json.loads(run('--json', **changes)[1])['programs'][0]
        assert (program['pid'], program['name'], program['n-modules']) == (process.pid, 'test-exporter', 1), program
        assert program['devices'][0]['device'] == 'cpu' and program['devices'][0]['peak-allocated'] > 0, program
        scalars = {scalar['name']: scalar for scalar in program['scalars']}
        assert scalars['train/loss']['count'] >= 1 and 0 < scalars['train/loss']['value'] < 10, program
        out = run(**changes)[1]
        has(rf'^ +{process.pid} +- +- +test-exporter  exported$', out)
        has(rf'^test-exporter \({process.pid}\): GTorch \d+\.\d+\.\d+, 1 module$', out)
        has(r'^  cpu +tensors .+, at most .+; reserved ', out)
        has(r'^  train/loss +\d\.\d+  step \d+$', out)
        with terminal(**changes) as top:
            top.wait_for('exported')
            top.press('jj')  # to the last one
            top.wait_for('train/loss')
            process.kill()
            top.until(lambda: not any('exported' in line for line in top.frames()[-1]), 'it is still shown')
            top.press('q')
            assert top.end() == 0 and top.is_restored()


@tap.case
def a_program_that_does_not_answer_is_not_waited_for():
    with exported_program() as (changes, process):
        process.send_signal(signal.SIGSTOP)
        begin = time.monotonic()
        code, out, _ = run(**changes)
        assert code == 0 and time.monotonic() - begin < 10, out
        process.send_signal(signal.SIGCONT)


# --- in a terminal ---


class Terminal:
    """gtorch-top in a pseudo-terminal, with what is drawn as lines."""

    def __init__(self, *arguments, size=(24, 80), **changes):
        self.master, self.slave = pty.openpty()
        self.resize(size)
        self.modes = termios.tcgetattr(self.slave)
        self.output = b''
        self.process = subprocess.Popen([PROGRAM, *arguments], stdin=self.slave, stdout=self.slave,
                                        stderr=self.slave, env=environment(**{**BUSY, **changes}),
                                        start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def resize(self, size):
        self.size = size
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack('HHHH', *size, 0, 0))

    def read(self, wait=0.05):
        while select.select([self.master], [], [], wait)[0]:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                return
            if not data:
                return
            self.output += data

    def until(self, condition, what):
        end = time.monotonic() + LIMIT
        while not condition():
            assert time.monotonic() < end, f'{what}; {self.output[-3000:]!r}'
            self.read()

    def frames(self):
        """The pictures so far, each a list of lines without styles."""
        text = self.output.decode(errors='replace').replace('\xa0', ' ').replace('\r\r\n', '\r\n')
        pictures = re.findall(r'\033\[H(.*?)\033\[J', text, re.S)
        return [[re.sub(r'\033\[[0-9;]*[mK]', '', line) for line in picture.split('\r\n')] for picture in pictures]

    def wait_for(self, pattern):
        """Waits until a new picture has a line with the pattern."""
        seen = len(self.frames())
        self.until(lambda: any(re.search(pattern, line) for frame in self.frames()[seen:] for line in frame), pattern)

    def press(self, keys):
        os.write(self.master, keys.encode())

    def end(self, signal_number=None):
        if signal_number is not None:
            os.kill(self.process.pid, signal_number)
        self.until(lambda: self.process.poll() is not None, 'the program does not end')
        self.read()
        return self.process.returncode

    def is_restored(self):
        return (termios.tcgetattr(self.slave) == self.modes and self.output.count(b'\033[?1049h') ==
                self.output.count(b'\033[?1049l') and self.output.endswith(b'\033[?1049l'))


@contextlib.contextmanager
def terminal(*arguments, **options):
    top = Terminal('-i', '0.1', *arguments, **options)
    try:
        yield top
    finally:
        if top.process.poll() is None:
            top.process.kill()
        top.process.wait()
        os.close(top.master)
        with contextlib.suppress(OSError):
            os.close(top.slave)


@tap.case
def the_display_is_renewed_and_q_gives_the_terminal_back():
    with terminal() as top:
        top.wait_for('^cuda:1  Fake 1')
        top.wait_for('gtorch-top')
        modes = termios.tcgetattr(top.slave)
        assert not modes[3] & (termios.ICANON | termios.ECHO) and modes[3] & termios.ISIG
        top.until(lambda: len({tuple(frame) for frame in top.frames()}) >= 3, 'the picture does not change')
        top.press('q')
        assert top.end() == 0 and top.is_restored(), top.output[-200:]


@tap.case
def pictures_fit_into_any_terminal():
    for size in ((24, 80), (50, 200), (5, 20), (1, 1), (2, 7), (100, 10)):
        with terminal(size=size) as top:
            top.until(lambda: len(top.frames()) >= 3, 'no pictures')
            for frame in top.frames():
                assert len(frame) <= size[0], (size, frame)
                assert all(len(line) <= size[1] for line in frame), (size, frame)
            top.press('q')
            assert top.end() == 0 and top.is_restored()


@tap.case
def a_new_size_is_drawn_at_once():
    with terminal('-i', '60') as top:
        top.until(lambda: len(top.frames()) >= 1, 'no picture')
        count = len(top.frames())
        top.resize((10, 33))
        top.until(lambda: len(top.frames()) > count, 'nothing was drawn')
        assert len(top.frames()[-1]) <= 10 and max(map(len, top.frames()[-1])) == 33, top.frames()[-1]


@tap.case
def s_changes_the_order_and_other_keys_do_no_harm():
    with terminal() as top:
        for order in ('memory', 'process ID', 'name', 'memory'):
            top.wait_for(rf'sort \({order}\)')
            top.press('s')
        top.press('\033[A\033[B\033OA\033[5~\033[6~jkxyz\033\033[99;99;99~\033[\0\x80\xff\r\t' + '\033[1' + '1' * 500)
        top.wait_for('^> +[0-9]+ ')
        top.press('\x0c')
        top.wait_for('^cuda:0')
        top.press('q')
        assert top.end() == 0 and top.is_restored()


@tap.case
def signals_give_the_terminal_back():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGSEGV, signal.SIGABRT):
        with terminal() as top:
            top.wait_for('^cuda:0')
            assert top.end(number) == -number and top.is_restored(), (number, top.output[-300:])
    with terminal() as top:
        top.wait_for('^cuda:0')
        top.press('\x03')
        assert top.end() == -signal.SIGINT and top.is_restored()


@tap.case
def a_stopped_program_has_given_the_terminal_back():
    for stop in (lambda top: top.press('\x1a'), lambda top: os.kill(top.process.pid, signal.SIGTSTP)):
        with terminal() as top:
            top.wait_for('^cuda:0')
            stop(top)
            top.until(lambda: os.waitid(os.P_PID, top.process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None,
                      'it does not stop')
            top.read()
            assert top.is_restored(), top.output[-300:]
            os.kill(top.process.pid, signal.SIGCONT)
            top.wait_for('^cuda:1')
            assert top.output.count(b'\033[?1049h') == 2
            top.press('q')
            assert top.end() == 0 and top.is_restored()


@tap.case
def a_terminal_that_hangs_up_ends_it():
    with terminal() as top:
        top.wait_for('^cuda:0')
        os.close(top.slave)
        os.close(top.master)
        top.process.wait(LIMIT)
        assert top.process.returncode in (2, -signal.SIGHUP), top.process.returncode
        top.master = os.open('/dev/null', os.O_RDWR)


@tap.case
def colours_can_be_turned_off():
    with terminal(NO_COLOR='1') as top:
        top.wait_for('^cuda:0')
        assert not re.search(rb'\033\[[0-9;]*m', top.output), top.output
    with terminal(NO_COLOR='') as top:
        top.wait_for('^cuda:0')
        assert b'\033[1m' in top.output


@tap.case
def a_terminal_without_cursor_movement_gets_a_table():
    for term in ('dumb', ''):
        with terminal(TERM=term) as top:
            assert top.end() == 0 and b'\033' not in top.output and b'cuda:0' in top.output, top.output


@tap.case
def input_that_is_no_terminal_does_no_harm():
    master, slave = pty.openpty()
    process = subprocess.Popen([PROGRAM, '-i', '0.1'], stdin=subprocess.DEVNULL, stdout=slave, stderr=slave,
                               env=environment(**BUSY))
    output = b''
    while output.count(b'\033[J') < 3:
        assert select.select([master], [], [], LIMIT)[0]
        output += os.read(master, 65536)
    process.terminate()
    assert process.wait(LIMIT) == -signal.SIGTERM
    os.close(master)
    os.close(slave)


if __name__ == '__main__':
    tap.main()
