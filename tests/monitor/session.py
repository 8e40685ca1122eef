# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A display and a bus of a test's own, on which GTorch Monitor is started, operated and looked at."""

import contextlib
import ctypes
import ctypes.util
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib

import tap
from fake_program import FakePrograms
from gi.repository import Gio, GLib

PROGRAM, FOLDER = (pathlib.Path(one).resolve() for one in sys.argv[1:3])
LIMIT = 60  # seconds, for whatever has to happen
WIDTH, HEIGHT = 1120, 760
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

    @contextlib.contextmanager
    def _xtest(self):
        """Gives libX11, libXtst and the display."""
        names = [ctypes.util.find_library(name) for name in ('X11', 'Xtst')]
        if None in names:
            raise tap.Skip('libXtst is not installed')
        x11, xtst = map(ctypes.CDLL, names)
        x11.XOpenDisplay.restype = ctypes.c_void_p
        x11.XStringToKeysym.restype = ctypes.c_ulong
        display = ctypes.c_void_p(x11.XOpenDisplay(self.environment['DISPLAY'].encode()))
        yield x11, xtst, display
        x11.XSync(display, 0)
        x11.XCloseDisplay(display)

    def key(self, name, is_down):
        with self._xtest() as (x11, xtst, display):
            code = x11.XKeysymToKeycode(display, ctypes.c_ulong(x11.XStringToKeysym(name.encode())))
            xtst.XTestFakeKeyEvent(display, code, is_down, ctypes.c_ulong(0))

    def press(self, *keys):
        """Presses keys one after the other, and releases them again: a modifier holds until the end."""
        for key in keys:
            self.key(key, 1)
        for key in reversed(keys):
            self.key(key, 0)

    def move(self, x, y):
        with self._xtest() as (_x11, xtst, display):
            xtst.XTestFakeMotionEvent(display, -1, x, y, ctypes.c_ulong(0))

    def button(self, number, is_down):
        """Of the mouse: 1 is the left one, and 4 and 5 are steps of the wheel."""
        with self._xtest() as (_x11, xtst, display):
            xtst.XTestFakeButtonEvent(display, number, is_down, ctypes.c_ulong(0))

    def click(self, x, y, number=1):
        self.move(x, y)
        for is_down in (1, 0):
            self.button(number, is_down)

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

    def count(self, color):
        """Returns how many pixels have nearly this colour, and the rows of the picture."""
        rows = self.picture()
        found = 0
        for row in rows:
            for channel in zip(row[0::3], row[1::3], row[2::3]):
                found += all(abs(a - b) <= 24 for a, b in zip(channel, color))
        return found, rows

    def look(self, name, color, least, most=WIDTH * HEIGHT):
        """Waits until the picture has at least as many pixels of this colour, and no more than the other number, and
        saves it."""
        def is_right():
            found, rows = self.count(color)
            if least <= found <= most:
                save(name, rows)
            return least <= found <= most
        try:
            self.until(is_right, f'{name}: not {least} to {most} pixels of {color}')
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
