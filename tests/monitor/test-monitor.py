#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""GTorch Monitor on a display and a bus of the test's own, beside a program that exports itself. Its pages are shown by
its actions, and looked at: what each must have on it has a colour. The pictures stay in the folder that is given."""

import ctypes
import ctypes.util
import gzip
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import tap  # noqa: E402
from fake_program import FakePrograms  # noqa: E402
from gi.repository import Gio, GLib  # noqa: E402

PROGRAM, FOLDER, DESKTOP, METAINFO = (pathlib.Path(one).resolve() for one in sys.argv[1:5])
del sys.argv[1:5]
DEMO = pathlib.Path(__file__).resolve().parent / 'demo.py'
LIMIT = 60  # seconds, for whatever has to happen
WIDTH, HEIGHT = 1120, 760
CURVE, BLOCK = (0, 114, 178), (53, 132, 228)  # the colours of curves, and of blocks in use
NEEDS = ['Xvfb', 'dbus-daemon']


class Session:
    """A display, a bus, the monitor and the program that it shows."""

    def __init__(self):
        missing = [name for name in NEEDS if not shutil.which(name)]
        if missing:
            raise tap.Skip(f'{", ".join(missing)} is not installed')
        self.folder = tempfile.TemporaryDirectory()
        self.processes = []
        self.fakes = []
        self.environment = {
            **os.environ, 'GTORCH_FAKE_CUDA': 'devices=1,nvml-busy=1', 'GDK_BACKEND': 'x11', 'GSK_RENDERER': 'cairo',
            'GTK_A11Y': 'none', 'GSETTINGS_BACKEND': 'memory', 'LC_ALL': 'C.UTF-8', 'XDG_DATA_HOME': self.folder.name,
            'ADW_DISABLE_PORTAL': '1', 'GDK_DISABLE': 'gl', 'HOME': self.folder.name,
        }
        self.environment.pop('GTORCH_EXPORT', None)
        self.environment['DBUS_SESSION_BUS_ADDRESS'] = self.first_line(
            ['dbus-daemon', '--session', '--nofork', '--print-address'])
        read, write = os.pipe()
        screen = f'{WIDTH}x{HEIGHT}x24'
        self.start(['Xvfb', '-displayfd', str(write), '-screen', '0', screen, '-fbdir', self.folder.name],
                   pass_fds=[write])
        os.close(write)
        with os.fdopen(read) as file:
            self.environment['DISPLAY'] = ':' + file.readline().strip()
        self.bus = Gio.DBusConnection.new_for_address_sync(
            self.environment['DBUS_SESSION_BUS_ADDRESS'],
            Gio.DBusConnectionFlags.AUTHENTICATION_CLIENT | Gio.DBusConnectionFlags.MESSAGE_BUS_CONNECTION, None, None)

    def start(self, command, **options):
        process = subprocess.Popen(command, env=self.environment, **options)
        self.processes.append(process)
        return process

    def first_line(self, command):
        return self.start(command, stdout=subprocess.PIPE, text=True).stdout.readline().strip()

    def end(self):
        for fake in self.fakes:
            fake.close()
        for process in reversed(self.processes):
            if process.poll() is None:
                process.terminate()
            process.wait()
            if process.stdout:
                process.stdout.close()
        self.folder.cleanup()

    def call(self, path, interface, method, arguments, name='org.gtorch.Monitor'):
        return self.bus.call_sync(name, path, interface, method, arguments, None, Gio.DBusCallFlags.NONE, -1, None)

    def names(self):
        answer = self.call('/', 'org.freedesktop.DBus', 'ListNames', None, 'org.freedesktop.DBus')
        return answer.unpack()[0]

    def act(self, action, text):
        self.call('/org/gtorch/Monitor/window/1', 'org.gtk.Actions', 'Activate',
                  GLib.Variant('(sava{sv})', (action, [GLib.Variant('s', text)], {})))

    def do(self, action):
        self.call('/org/gtorch/Monitor/window/1', 'org.gtk.Actions', 'Activate',
                  GLib.Variant('(sava{sv})', (action, [], {})))

    def can(self, action):
        return self.call('/org/gtorch/Monitor/window/1', 'org.gtk.Actions', 'Describe',
                         GLib.Variant('(s)', (action,))).unpack()[0][0]

    def until_stage(self, stage):
        self.until(lambda: self.state('stage') == stage, f'not {stage}')

    def until_shown(self, name):
        def shown():
            self.act('show', name)
            return self.state('show') == name
        self.until(shown, f'{name} is not in the list')

    def is_listed(self, name):
        former = self.state('show')
        self.act('show', name)
        found = self.state('show') == name
        self.act('show', former)
        return found

    def fake(self, *names, **options):
        programs = FakePrograms(self.environment['DBUS_SESSION_BUS_ADDRESS'], names, **options)
        self.fakes.append(programs)
        return programs

    def press(self, *keys):
        """Presses keys one after the other, and releases them again: a modifier holds until the end."""
        names = [ctypes.util.find_library(name) for name in ('X11', 'Xtst')]
        if None in names:
            raise tap.Skip('libXtst is not installed')
        x11, xtst = map(ctypes.CDLL, names)
        x11.XOpenDisplay.restype = ctypes.c_void_p
        x11.XStringToKeysym.restype = ctypes.c_ulong
        display = ctypes.c_void_p(x11.XOpenDisplay(self.environment['DISPLAY'].encode()))
        codes = [x11.XKeysymToKeycode(display, ctypes.c_ulong(x11.XStringToKeysym(key.encode()))) for key in keys]
        for is_down, some in ((1, codes), (0, reversed(codes))):
            for code in some:
                xtst.XTestFakeKeyEvent(display, code, is_down, ctypes.c_ulong(0))
        x11.XSync(display, 0)
        x11.XCloseDisplay(display)

    def state(self, action):
        answer = self.call('/org/gtorch/Monitor/window/1', 'org.gtk.Actions', 'Describe',
                           GLib.Variant('(s)', (action,)))
        return answer.unpack()[0][2][0]

    def until(self, condition, what):
        end = time.monotonic() + LIMIT
        while True:
            try:
                found = condition()
            except GLib.Error:
                found = None
            if found:
                return found
            assert time.monotonic() < end, what
            time.sleep(0.1)

    def picture(self):
        """The rows of the display, each with red, green and blue of its pixels one after the other."""
        data = pathlib.Path(self.folder.name, 'Xvfb_screen0').read_bytes()
        header = struct.unpack('>25I', data[:100])
        start, length = header[0] + 12 * header[19], header[12]
        rows = []
        for y in range(header[5]):
            row = data[start + y * length:start + y * length + 4 * header[4]]
            pixels = bytearray(3 * header[4])
            pixels[0::3], pixels[1::3], pixels[2::3] = row[2::4], row[1::4], row[0::4]
            rows.append(bytes(pixels))
        return rows

    def look(self, name, color, least):
        """Waits until the picture has at least as many pixels of nearly this colour, and saves it."""
        def count():
            rows = self.picture()
            found = 0
            for row in rows:
                for channel in zip(row[0::3], row[1::3], row[2::3]):
                    found += all(abs(a - b) <= 24 for a, b in zip(channel, color))
            if found >= least:
                save(name, rows)
            return found >= least
        try:
            self.until(count, f'{name}: not {least} pixels of {color}')
        except AssertionError:
            save(name, self.picture())
            raise


def save(name, rows):
    def chunk(kind, data):
        return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
    FOLDER.mkdir(exist_ok=True)
    header = struct.pack('>IIBBBBB', len(rows[0]) // 3, len(rows), 8, 2, 0, 0, 0)
    content = zlib.compress(b''.join(b'\0' + row for row in rows), 6)
    (FOLDER / f'{name}.png').write_bytes(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', header) + chunk(b'IDAT', content)
                                         + chunk(b'IEND', b''))


def with_session(function):
    def case():
        session = Session()
        try:
            function(session)
        finally:
            session.end()
    case.__name__ = function.__name__
    return tap.case(case)


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
