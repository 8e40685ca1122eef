#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""GTorch Monitor on a display and a bus of the test's own, beside a program that exports itself. Its pages are shown by
its actions, and looked at: what each must have on it has a colour. The pictures stay in the folder that is given."""

import gzip
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import tap  # noqa: E402
from gi.repository import GLib  # noqa: E402
from session import LIMIT, PROGRAM, save, with_session  # noqa: E402

DESKTOP, METAINFO = (pathlib.Path(one).resolve() for one in sys.argv[3:5])
del sys.argv[1:5]
DEMO = pathlib.Path(__file__).resolve().parent / 'demo.py'
CURVE, BLOCK = (0, 114, 178), (53, 132, 228)  # the colours of curves, and of blocks in use
STEP, MATMUL = (143, 224, 164), (220, 176, 232)  # and those of events of these names


@with_session
def devices_and_a_program_are_shown(session):
    demo = session.start([sys.executable, DEMO], stdout=subprocess.PIPE, text=True)
    assert demo.stdout.readline() == 'ready\n'
    monitor = session.start([PROGRAM])
    session.until(lambda: session.state('show') == 'cpu', 'there is no window')
    session.look('cpu', CURVE, 10)
    session.act('show', 'cuda:0')
    assert session.state('show') == 'cuda:0'
    time.sleep(8)  # so that there is something to see
    session.look('gpu', CURVE, 60)
    name = session.until(lambda: [n for n in session.names() if n.startswith('org.gtorch.Program1.')], 'no program')[0]
    session.until_shown(name)
    assert session.state('show-view') == 'scalars'
    session.look('numbers', CURVE, 100)
    for view, color, least in (('parameters', CURVE, 60), ('memory', BLOCK, 2000)):
        session.act('show-view', view)
        session.look(view, color, least)
    session.act('show-view', 'profile')
    time.sleep(2)
    assert session.state('show-view') == 'profile'
    session.look('profile', (46, 52, 54), 100)
    session.act('show-profile-as', 'timeline')
    session.until_stage('timeline')
    session.look('timeline-of-a-program', MATMUL, 2000)

    def ask(method, arguments=None):
        return session.call('/org/gtorch/Program1', 'org.gtorch.Program1', method, arguments, name).unpack()
    given = ask('GetProfile')
    session.do('record-profile')
    session.until(lambda: ask('GetProfileState')[0] == 'recording', 'no profile is recorded')
    time.sleep(1)
    session.look('recording', (46, 52, 54), 100)
    session.do('record-profile')  # ends it
    session.until(lambda: ask('GetProfileState')[:2] == ('none', 1), 'the recording has not ended')
    assert ask('GetProfile') != given and '"ProfilerStep' not in ask('GetProfile')[0]
    time.sleep(2)  # it is read
    session.look('recorded', (46, 52, 54), 100)
    assert session.state('stage') == 'timeline'
    session.act('show-view', 'abacus')
    session.act('show', 'abacus')
    assert session.state('show') == name and session.state('show-view') == 'profile'

    session.act('show-view', 'scalars')
    os.kill(demo.pid, signal.SIGSTOP)
    time.sleep(8)  # it does not answer
    session.look('silent', CURVE, 100)
    demo.kill()
    session.until(lambda: name not in session.names(), 'the program has not ended')
    time.sleep(1)
    session.look('ended', CURVE, 100)  # what has been read is still shown
    assert session.state('show') == name and monitor.poll() is None
    session.call('/org/gtorch/Monitor', 'org.gtk.Actions', 'Activate',
                 GLib.Variant('(sava{sv})', ('quit', [], {})))
    assert monitor.wait(LIMIT) == 0


@with_session
def profiles_are_opened_whatever_they_are(session):
    folder = pathlib.Path(session.folder.name)
    texts = {
        'good.json': '{"traceEvents": [{"ph": "X", "name": "<b>op</b>", "dur": 5}, {"ph": "X"}, 3, null, {"ph": 1}]}',
        'array.json': '[{"ph": "X", "name": "op", "dur": 5, "cat": 3}]',
        'empty.json': '',
        'none.json': '{"traceEvents": []}',
        'other.json': '{"traceEvents": 5}',
        'number.json': '5',
        'wrong.json': '{"traceEvents": [{"ph": "X", "name": ["a"], "dur": "long"}, {"ph": "X", "dur": -1}]}',
        'binary.json': '\0\1\2',
        'deep.json': '[' * 1000000,
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding='utf-8')
    packed = {'good.json.gz': gzip.compress(texts['good.json'].encode()), 'cut.json.gz': b'\x1f\x8b\x08'}
    for name, data in packed.items():
        (folder / name).write_bytes(data)
        texts[name] = data
    files = [folder / name for name in texts] + [folder / 'missing.json', folder]
    monitor = session.start([PROGRAM, *files])
    session.until(lambda: session.state('show') == f'profile:{len(files)}', 'the last one is not shown')
    for i in range(len(files)):
        session.act('show', f'profile:{i + 1}')
        assert session.state('show') == f'profile:{i + 1}'
    pages = []
    for name in ('good.json', 'good.json.gz', 'cut.json.gz'):  # below the title, and beside the list
        session.act('show', f'profile:{list(texts).index(name) + 1}')
        time.sleep(1.5)
        rows = session.picture()
        save(name, rows)
        pages.append([row[3 * 300:] for row in rows[80:]])
    assert pages[0] == pages[1] and pages[0] != pages[2]
    assert monitor.poll() is None


@with_session
def a_file_is_waited_for(session):
    """It comes slowly, as a large one does."""
    pipe = pathlib.Path(session.folder.name, 'slow.json')
    os.mkfifo(pipe)
    monitor = session.start([PROGRAM, pipe])
    with open(pipe, 'w', encoding='utf-8') as file:
        file.write('[{"ph": "X", "name": "op", "dur": 5}')
        file.flush()
        session.until(lambda: session.state('show') == 'profile:1', 'it is not shown')
        time.sleep(1)
        assert session.state('stage') == 'waiting'
        session.look('reading', (46, 52, 54), 100)
        session.act('show', 'cpu')  # nothing else waits for it
        assert session.state('show') == 'cpu'
        session.act('show', 'profile:1')
        file.write(']')
    session.until_stage('table')
    session.act('remove', 'profile:1')
    assert not session.is_listed('profile:1') and session.state('show') != 'profile:1'
    assert monitor.poll() is None


def steps():
    """Ten steps that take half of the time, with what is in them, on the host and on a GPU."""
    events = [{'ph': 'M', 'pid': 1, 'tid': 2, 'name': 'thread_name', 'args': {'name': 'main'}},
              {'ph': 'M', 'pid': 1, 'name': 'process_name', 'args': {'name': 'train.py'}}]
    for i in range(10):
        start = 1000 * i
        events.append({'ph': 'X', 'pid': 1, 'tid': 2, 'ts': start, 'dur': 500, 'name': 'step', 'cat': 'range'})
        events.append({'ph': 'C', 'pid': 1, 'ts': start, 'name': 'Memory of cuda:0', 'args': {'bytes': (i % 4) << 20}})
        for j in range(20):
            name = ('matmul', 'forward', 'loss')[j % 3]
            events.append({'ph': 'X', 'pid': 1, 'tid': 2, 'ts': start + 20 * j, 'dur': 15 + j % 5, 'name': name})
            events.append({'ph': 'X', 'pid': 0, 'tid': 7, 'ts': start + 40 * j, 'dur': 35, 'name': 'kernel'})
    return events


@with_session
def a_profile_is_shown_over_time(session):
    file = pathlib.Path(session.folder.name, 'steps.json')
    file.write_text(json.dumps(steps()), encoding='utf-8')
    monitor = session.start([PROGRAM, file])
    session.until_stage('table')
    assert session.state('show-profile-as') == 'names'
    session.click(410, 75)
    session.until_stage('timeline')
    assert session.state('show-profile-as') == 'timeline'
    all_of_it = (4500, 6000)  # half of 680 pixels in 16 rows
    session.look('timeline', STEP, *all_of_it)
    session.click(450, 204)
    session.click(450, 204)  # zooms to the first step
    session.look('timeline-of-a-step', STEP, 7000)
    session.press('0')
    session.look('timeline-with-a-selection', STEP, *all_of_it)
    session.key('Control_L', 1)
    for _ in range(12):
        session.click(450, 204, 4)  # the wheel
    session.key('Control_L', 0)
    session.look('timeline-zoomed', STEP, 9000)
    session.press('End')
    session.look('timeline-at-the-end', STEP, 0, 100)
    session.press('Home')
    session.look('timeline-at-the-beginning', STEP, 9000)
    before = session.picture()
    session.button(1, 1)
    for x in range(450, 350, -10):
        session.move(x, 204)
    session.button(1, 0)
    session.until(lambda: session.picture() != before, 'it is not dragged')
    session.press('minus')
    session.press('plus')
    session.press('Control_L', 'Right')  # the next step
    session.look('timeline-at-the-next', STEP, 5000)
    session.act('show-profile-as', 'names')
    session.until_stage('table')
    assert monitor.poll() is None


@with_session
def events_without_times_are_no_timeline(session):
    file = pathlib.Path(session.folder.name, 'timeless.json')
    file.write_text('[{"ph": "X", "name": "step", "dur": 5}]', encoding='utf-8')
    monitor = session.start([PROGRAM, file])
    session.until_stage('table')
    for mode in ('timeline', 'abacus'):
        session.act('show-profile-as', mode)
        assert session.state('stage') == 'table' and session.state('show-profile-as') == 'names'
    session.act('show', 'cpu')
    assert session.state('show-profile-as') == ''
    assert monitor.poll() is None


@with_session
def programs_are_waited_for(session):
    fake = session.fake('waiting', is_held=True)
    monitor = session.start([PROGRAM])
    session.until_shown(fake.names[0])
    stages = {'scalars': 'empty', 'parameters': 'empty', 'memory': 'content', 'profile': 'status'}
    for view in stages:
        session.act('show-view', view)
        assert session.state('show-view') == view and session.state('stage') == 'waiting', view
        time.sleep(0.5)
        assert session.state('stage') == 'waiting', view
        session.look(f'{view}-waits', (46, 52, 54), 100)
    fake.let_answer()
    for view, stage in stages.items():
        session.act('show-view', view)
        session.until_stage(stage)
    assert monitor.poll() is None


@with_session
def a_program_that_ends_unread_is_told_of(session):
    fake = session.fake('waiting', is_held=True)
    session.start([PROGRAM])
    session.until_shown(fake.names[0])
    session.act('show-view', 'memory')
    time.sleep(0.5)
    before = session.picture()
    fake.end(fake.names[0])
    session.until(lambda: [row[3 * 300:] for row in session.picture()[200:]] != [row[3 * 300:] for row in before[200:]],
                  'the page does not tell of the end')
    assert session.state('stage') == 'waiting'


@with_session
def ended_programs_are_removed(session):
    fakes = session.fake(*(f'n{i}' for i in range(10)))
    session.start([PROGRAM])
    for name in fakes.names:
        session.until_shown(name)
    assert not session.can('remove-ended')
    session.act('remove', fakes.names[0])
    session.act('remove', 'cpu')
    assert session.is_listed(fakes.names[0]) and session.is_listed('cpu')  # it runs
    for name in fakes.names[:-1]:
        fakes.end(name)
    session.until(lambda: session.can('remove-ended'), 'none has ended')
    session.act('show', fakes.names[0])
    session.until(lambda: (session.act('remove', fakes.names[0]), not session.is_listed(fakes.names[0]))[1],
                  'it is not removed')
    assert session.state('show') not in ('', fakes.names[0])
    assert session.is_listed(fakes.names[1])
    session.act('show', fakes.names[5])
    session.do('remove-ended')
    assert [name for name in fakes.names if session.is_listed(name)] == fakes.names[-1:]
    assert not session.can('remove-ended') and session.state('show') not in ('', *fakes.names[:-1])


@with_session
def programs_give_whatever_they_like(session):
    texts = ['[' * 1000000, '{"a":' * 1000000, '', '5', '{"traceEvents": 5}', '[{"ph": "X", "dur": 1, "name": ["a"]}]']
    fakes = [session.fake(f'n{i}', profile=text) for i, text in enumerate(texts)]
    monitor = session.start([PROGRAM])
    for i, fake in enumerate(fakes):
        session.until_shown(fake.names[0])
        session.act('show-view', 'profile')
        session.until_stage('table' if i == len(texts) - 1 else 'status')
        assert session.can('save-profile') == (i == len(texts) - 1)
    assert monitor.poll() is None


@with_session
def a_profile_is_saved(session):
    text = json.dumps({'traceEvents': [{'ph': 'X', 'name': 'ä', 'dur': 5, 'args': {'step': 3}}]}, indent=1)
    fake = session.fake('n', profile=text)
    monitor = session.start([PROGRAM], cwd=session.folder.name)
    session.until_shown(fake.names[0])
    assert not session.can('save-profile')
    session.act('show-view', 'profile')
    session.until(lambda: session.can('save-profile'), 'there is no profile')
    fake.end(fake.names[0])  # it needs the program no longer
    file = pathlib.Path(session.folder.name, 'a_fake.json')
    session.press('Control_L', 's')
    time.sleep(2)
    save('saving', session.picture())

    def is_saved():
        session.press('Return')
        return file.exists() and file.read_text(encoding='utf-8') == text
    session.until(is_saved, 'it is not saved')
    assert monitor.poll() is None


@tap.case
def it_has_a_version():
    result = subprocess.run([PROGRAM, '--version'], capture_output=True, text=True, check=True)
    assert result.stdout.startswith('gtorch-monitor '), result


def check_with(program, *arguments):
    if not shutil.which(program):
        raise tap.Skip(f'{program} is not installed')
    result = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@tap.case
def the_desktop_file_is_valid():
    check_with('desktop-file-validate', DESKTOP)


@tap.case
def the_metainfo_is_valid():
    check_with('appstreamcli', 'validate', '--no-net', METAINFO)


if __name__ == '__main__':
    tap.main()
