# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Starts gtorch-run for the tests, with workers that are small Python programs."""

import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import tap

PROGRAM = os.path.abspath(sys.argv.pop(1))
LIMIT = 60
CLEAN = {name: value for name, value in os.environ.items()
         if not name.startswith(('PET_', 'OMP_', 'GTORCH_STORE', 'RANK', 'WORLD_SIZE', 'TORCHELASTIC_'))}


class Run:
    """A gtorch-run that is at work. What it writes goes to files, which never fill."""

    def __init__(self, *arguments, script=None, prefix=(), **environment):
        self.folder = tempfile.TemporaryDirectory()
        command = [*prefix, PROGRAM, *arguments]
        if script is not None:
            path = os.path.join(self.folder.name, 'worker.py')
            with open(path, 'w', encoding='utf-8') as file:
                file.write('import os, signal, subprocess, sys, time\nRANK = int(os.environ["RANK"])\n' + script)
            command.append(path)
        files = [open(os.path.join(self.folder.name, name), 'w+b') for name in ('out', 'err')]
        environment = {**CLEAN, 'LC_ALL': 'C.UTF-8', 'PYTHON_EXEC': sys.executable, **environment}
        self.process = subprocess.Popen(command, env=environment, stdout=files[0], stderr=files[1])
        for file in files:
            file.close()

    def _read(self, name):
        with open(os.path.join(self.folder.name, name), encoding='utf-8', errors='replace') as file:
            return file.read()

    @property
    def out(self):
        return self._read('out')

    @property
    def err(self):
        return self._read('err')

    def wait(self):
        """The exit status."""
        try:
            return self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            raise AssertionError(f'gtorch-run has not ended:\n{self.out}\n{self.err}') from None

    def wait_for(self, pattern, n=1):
        """Waits until its output has the pattern so often; returns what was found."""
        end = time.monotonic() + LIMIT
        while time.monotonic() < end and self.process.poll() is None:
            found = re.findall(pattern, self.out + self.err, re.M)
            if len(found) >= n:
                return found
            time.sleep(0.02)
        found = re.findall(pattern, self.out + self.err, re.M)
        assert len(found) >= n, f'{pattern!r} is not there {n} times:\n{self.out}\n{self.err}'
        return found

    def agent(self):
        """The number of the process that runs the workers."""
        path = f'/proc/{self.process.pid}/task/{self.process.pid}/children'
        return int(pathlib.Path(path).read_text(encoding='ascii').split()[0])

    def pmix(self):
        """The number of the process that serves PMIx to the workers."""
        agent = self.agent()
        for pid in pathlib.Path(f'/proc/{agent}/task/{agent}/children').read_text(encoding='ascii').split():
            if b'--pmix' in pathlib.Path(f'/proc/{pid}/cmdline').read_bytes().split(b'\0'):
                return int(pid)
        raise tap.Skip('there is no PMIx')


def run(*arguments, script=None, **environment):
    """Runs gtorch-run to its end; returns the status, stdout and stderr."""
    job = Run(*arguments, script=script, **environment)
    status = job.wait()
    return status, job.out, job.err


def has(pattern, text):
    found = re.search(pattern, text, re.M)
    assert found, f'no {pattern!r} in:\n{text}'
    return found


def is_alive(pid):
    """Whether the process runs: one that has ended, and whose parent has not been told, does not."""
    try:
        text = pathlib.Path(f'/proc/{pid}/stat').read_text(encoding='ascii', errors='replace')
        return text.rpartition(')')[2].split()[0] != 'Z'
    except (FileNotFoundError, ProcessLookupError):
        return False


def are_gone(pids):
    """Waits until none of the processes runs."""
    end = time.monotonic() + LIMIT
    while any(map(is_alive, pids)):
        assert time.monotonic() < end, f'still there: {[pid for pid in pids if is_alive(pid)]}'
        time.sleep(0.02)


def free_port():
    with socket.socket() as one:
        one.bind(('127.0.0.1', 0))
        return one.getsockname()[1]


def is_served(port):
    """Waits until something listens at the port."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        with socket.socket() as one:
            if one.connect_ex(('127.0.0.1', port)) == 0:
                return
        time.sleep(0.02)
    raise AssertionError(f'nothing listens at {port}')
