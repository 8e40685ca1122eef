#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Exporters in Python, on a bus of the test's own; tests/export has the rest."""

import gc
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import weakref

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import Gio, GLib  # noqa: E402

import tap  # noqa: E402
from tap import raises  # noqa: E402

import gtorch as torch  # noqa: E402
from gtorch import nn  # noqa: E402

PATH, INTERFACE = '/org/gtorch/Program1', 'org.gtorch.Program1'


class Bus:
    """A bus, which this process sees as its session bus."""

    def __enter__(self):
        if not shutil.which('dbus-daemon'):
            raise tap.Skip('dbus-daemon is not installed')
        self.daemon = subprocess.Popen(['dbus-daemon', '--session', '--nofork', '--print-address'],
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        address = self.daemon.stdout.readline().strip()
        self.former = os.environ.get('DBUS_SESSION_BUS_ADDRESS')
        GLib.setenv('DBUS_SESSION_BUS_ADDRESS', address, True)
        os.environ['DBUS_SESSION_BUS_ADDRESS'] = address
        flags = Gio.DBusConnectionFlags
        self.connection = Gio.DBusConnection.new_for_address_sync(
            address, flags.AUTHENTICATION_CLIENT | flags.MESSAGE_BUS_CONNECTION, None, None)
        return self

    def __exit__(self, *_):
        self.connection.close_sync(None)
        self.daemon.terminate()
        self.daemon.wait()
        self.daemon.stdout.close()
        os.environ.pop('DBUS_SESSION_BUS_ADDRESS')
        GLib.unsetenv('DBUS_SESSION_BUS_ADDRESS')

    def names(self):
        answer = self.connection.call_sync('org.freedesktop.DBus', '/', 'org.freedesktop.DBus', 'ListNames', None, None,
                                           Gio.DBusCallFlags.NONE, -1, None)
        return [name for name in answer.unpack()[0] if name.startswith(INTERFACE + '.')]

    def ask(self, name, method, *arguments):
        variant = GLib.Variant(*arguments) if arguments else None
        return self.connection.call_sync(name, PATH, INTERFACE, method, variant, None, Gio.DBusCallFlags.NONE, -1,
                                         None).unpack()


@tap.case
def a_program_without_a_main_loop_is_read():
    with Bus() as bus:
        exporter = torch.Exporter.new('mine')
        assert exporter.props.name == 'mine' and not exporter.is_active() and exporter.dup_bus_name() is None
        exporter.start(None)
        name = exporter.dup_bus_name()
        assert bus.names() == [name] and exporter.is_active()
        model = nn.Linear(3, 2)
        exporter.add_module('model', model)
        exporter.add_scalar('loss', 0.5, 7)
        exporter.write(8, ['loss'], [0.25])
        model(torch.ones(4, 3)).sum().backward()
        assert bus.ask(name, 'ListScalars') == ([('loss', 2, 8, 0.25)],)
        assert bus.ask(name, 'ListParameters', '(suu)', ('model', 0, 10)) == (
            2, [('weight', [2, 3], 'float32', 'cpu', True), ('bias', [2], 'float32', 'cpu', True)])
        statistics = bus.ask(name, 'GetParameterStatistics', '(ssu)', ('model', 'bias', 4))[0]
        assert statistics['n-values'] == 2 and sum(statistics['counts']) == 2, statistics
        assert abs(statistics['norm'] - model.bias.norm().item()) < 1e-6
        assert statistics['gradient']['mean'] == 4, statistics
        raises(GLib.Error, 'there is no module “other”', bus.ask, name, 'ListParameters', '(suu)', ('other', 0, 10))
        exporter.stop()
        assert bus.names() == []


@tap.case
def modules_and_exporters_go():
    with Bus() as bus:
        exporter = torch.Exporter(name='mine')
        exporter.start(None)
        model = nn.Sequential(nn.Linear(3, 2))
        exporter.add_module('model', model)
        gone = weakref.ref(model)
        del model
        gc.collect()
        assert gone() is None
        assert bus.ask(bus.names()[0], 'ListModules') == ([],)
        del exporter
        gc.collect()
        assert bus.names() == []


@tap.case
def mistakes_raise():
    exporter = torch.Exporter.new(None)
    for wrong in (lambda: exporter.add_module('model', 3), lambda: exporter.add_scalar(3, 1.0, 1),
                  lambda: exporter.add_scalar('loss', 'much', 1)):
        raises((TypeError, ValueError), wrong)
    for wrong in (lambda: torch.Exporter.new('a\0b'), lambda: torch.Exporter(name='a\0b'),
                  lambda: exporter.add_module('a\0b', nn.Linear(2, 2)), lambda: exporter.add_scalar('a\0b', 1, 1),
                  lambda: exporter.remove_module('a\0b'), lambda: exporter.set_profile('[]\0'),
                  lambda: exporter.write(1, ['a\0b'], [1])):
        with raises(ValueError, 'NUL'):
            wrong()
    for wrong in (1.5, 2.0, '5', True, None):
        with raises(TypeError, 'step'):
            exporter.add_scalar('loss', 1, wrong)
    with raises(OverflowError, 'step'):
        exporter.add_scalar('loss', 1, 2**63)
    for wrong in ('[1]', '{}', '5'):
        with raises(GLib.Error, 'it must be '):
            exporter.set_profile(wrong)
    assert exporter.set_profile('[{}]') and exporter.set_profile(None)
    assert exporter.add_scalar(name='loss', value=1, step=1)
    exporter.close()
    with raises(GLib.Error, 'exporter_start: the GTorchExporter is closed'):
        exporter.start(None)
    assert torch.Exporter.get_default() is None


@tap.case
def the_environment_exports_a_script():
    program = 'import sys, time\nimport gtorch\nsys.stdin.read()\n'
    with Bus() as bus:
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder, 'exported.py')
            script.write_text(program, encoding='utf-8')
            child = subprocess.Popen([sys.executable, script], stdin=subprocess.PIPE,
                                     env={**os.environ, 'GTORCH_EXPORT': '1'})
            end = GLib.get_monotonic_time() + 30e6
            while not bus.names():
                assert GLib.get_monotonic_time() < end and child.poll() is None
            properties = bus.connection.call_sync(
                bus.names()[0], PATH, 'org.freedesktop.DBus.Properties', 'GetAll', GLib.Variant('(s)', (INTERFACE,)),
                None, Gio.DBusCallFlags.NONE, -1, None).unpack()[0]
            assert properties['Pid'] == child.pid and properties['Name'] == 'exported.py', properties
            child.communicate()
            assert child.returncode == 0 and bus.names() == []


if __name__ == '__main__':
    tap.main()
