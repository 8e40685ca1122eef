# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tries operators in processes of their own, so that one that dies tells which sample it was."""

import collections
import json
import os
import re
import signal
import sys
import tempfile
import time

sys.path.append('/usr/lib/python3/dist-packages')  # has gi, for a Python with packages of its own

import gi  # noqa: E402

gi.require_version('GTorch', '1')
import op_cases  # noqa: E402
import torch  # noqa: E402
from op_names import why_not  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

CRASHES = 12  # of one operator, after which it is left


class Journal:
    """What a process writes about its cases: the one that it has begun, and what came out."""

    def __init__(self, op):
        self.op, self.file = op, tempfile.NamedTemporaryFile('w+', suffix='.jsonl')
        self.counts = collections.Counter()

    def write(self, **entries):
        self.file.write(json.dumps(entries) + '\n')
        self.file.flush()

    def line(self, form, dtype, sample, result, message):
        return {'op': self.op.name, 'variant': self.op.variant_test_name, 'form': form, 'dtype': dtype,
                'sample': sample, 'result': result, 'message': message}  # fmt: skip

    def results(self):
        """Returns the lines, the number of cases that were begun, and the case that was not ended."""
        self.file.seek(0)
        lines, counts, begun, last = [], collections.Counter(), 0, None
        for one in map(json.loads, self.file.read().splitlines()):
            if 'begun' in one:
                begun, last = one['begun'] + 1, one
            elif one['result'] == 'ok':
                counts[one['form'], one['dtype']] += 1
                last = None
            else:
                lines.append(one)
                last = None
        for (form, dtype), count in counts.items():
            lines.append({**self.line(form, dtype, '', 'ok', ''), 'count': count})
        return lines, begun, last


def work(op, start, journal, options):
    """In a process of its own: tries the cases of an operator from a number on."""
    for i, (form, dtype, sample, compare) in enumerate(op_cases.cases(op, options)):
        if i < start:
            continue
        journal.write(begun=i, form=form, dtype=dtype, sample=sample)
        try:
            found = compare() or ('ok', '')
        except Exception as error:
            found = 'skipped', f'the comparison itself raises {type(error).__name__}: {error}'[:300]
        if found[0] == 'ok':
            journal.write(form=form, dtype=dtype, result='ok')
        else:
            journal.write(**journal.line(form, dtype, sample, found[0], str(found[1])[:400]))


class Worker:
    """The process that tries one operator, and its successors after crashes."""

    def __init__(self, op, options):
        self.op, self.options = op, options
        self.lines, self.n_crashes = [], 0
        self.start(0)

    def start(self, first):
        self.journal = Journal(self.op)
        self.ends = time.monotonic() + self.options.seconds
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                if not self.options.verbose:
                    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                work(self.op, first, self.journal, self.options)
                status = 0
            finally:
                os._exit(status)

    def poll(self):
        """Returns whether all is done."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        is_late = pid == 0 and time.monotonic() > self.ends
        if pid == 0 and not is_late:
            return False
        if is_late:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        lines, begun, last = self.journal.results()
        self.lines += lines
        if is_late or status != 0:
            code = os.waitstatus_to_exitcode(status)
            kind, why = ('slow', 'no end in time') if is_late else ('CRASH', f'exit status {code}')
            place = (last['form'], last['dtype'], last['sample']) if last else ('', '', '')
            self.lines.append(self.journal.line(*place, kind, why))
            self.n_crashes += 1
            if last and not is_late and self.n_crashes < CRASHES:
                self.start(begun)
                return False
        return True


def run_all(options):
    torch.set_num_threads(1)
    waiting, running = [], []
    with open(options.results, 'w', encoding='utf-8') as file:
        for op in op_db:
            if options.only and not re.search(options.only, op.name):
                continue
            if why_not(op.name):
                line = Journal(op).line('', '', '', 'skipped', why_not(op.name))
                file.write(json.dumps(line) + '\n')
            else:
                waiting.append(op)
        waiting.reverse()
        while waiting or running:
            while waiting and len(running) < options.jobs:
                running.append(Worker(waiting.pop(), options))
            for worker in [worker for worker in running if worker.poll()]:
                running.remove(worker)
                file.writelines(json.dumps(line) + '\n' for line in worker.lines)
                file.flush()
            time.sleep(0.01)
