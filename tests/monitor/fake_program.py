# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs that export themselves, or say so, for the test of GTorch Monitor: they answer when the test lets them, and
with what it wants. They answer in a thread of their own."""

import os
import threading

from gi.repository import Gio, GLib

NAME, PATH = 'org.gtorch.Program1', '/org/gtorch/Program1'
XML = """<node><interface name="org.gtorch.Program1">
  <property name="Name" type="s" access="read"/>
  <property name="Pid" type="u" access="read"/>
  <property name="Version" type="s" access="read"/>
  <method name="ListDevices"><arg type="aa{sv}" direction="out"/></method>
  <method name="ListStreams"><arg type="aa{sv}" direction="out"/></method>
  <method name="ListModules"><arg type="a(su)" direction="out"/></method>
  <method name="ListScalars"><arg type="a(stxd)" direction="out"/></method>
  <method name="GetProfile"><arg type="s" direction="out"/></method>
  <method name="GetProfileState">
    <arg type="s" direction="out"/><arg type="u" direction="out"/><arg type="d" direction="out"/>
    <arg type="s" direction="out"/>
  </method>
</interface></node>"""
ANSWERS = {
    'ListDevices': ('(aa{sv})', ([],)),
    'ListStreams': ('(aa{sv})', ([],)),
    'ListModules': ('(a(su))', ([],)),
    'ListScalars': ('(a(stxd))', ([],)),
    'GetProfileState': ('(suds)', ('none', 0, 0.0, '')),
}


class FakePrograms:
    """Several programs by the names of @names, on one connection."""

    def __init__(self, address, names, profile=None, is_held=False):
        self._bus = Gio.DBusConnection.new_for_address_sync(
            address, Gio.DBusConnectionFlags.AUTHENTICATION_CLIENT | Gio.DBusConnectionFlags.MESSAGE_BUS_CONNECTION,
            None, None)
        self._properties = {'Name': GLib.Variant('s', 'a/fake'), 'Pid': GLib.Variant('u', os.getpid()),
                            'Version': GLib.Variant('s', '0')}
        self._profile, self._is_held, self._waiting = profile, is_held, []
        self._context = GLib.MainContext.new()
        self._loop = GLib.MainLoop.new(self._context, False)
        self._context.push_thread_default()
        self._bus.register_object(PATH, Gio.DBusNodeInfo.new_for_xml(XML).interfaces[0], self._called, self._property,
                                  None)
        self._context.pop_thread_default()
        self._thread = threading.Thread(target=self._loop.run)
        self._thread.start()
        self.names = [f'{NAME}.{name}' for name in names]
        for name in self.names:
            self._ask('RequestName', '(su)', name, 4)

    def _ask(self, method, kind, *arguments):
        bus = 'org.freedesktop.DBus'
        self._bus.call_sync(bus, '/', bus, method, GLib.Variant(kind, arguments), None, Gio.DBusCallFlags.NONE, -1,
                            None)

    def _property(self, _bus, _sender, _path, _interface, name):
        return self._properties[name]

    def _called(self, _bus, _sender, _path, _interface, method, _arguments, invocation):
        if self._is_held:
            self._waiting.append((method, invocation))
        else:
            self._answer(method, invocation)

    def _answer(self, method, invocation):
        if method != 'GetProfile':
            invocation.return_value(GLib.Variant(*ANSWERS[method]))
        elif self._profile is None:
            invocation.return_dbus_error('org.freedesktop.DBus.Error.NotSupported', 'there is none')
        else:
            invocation.return_value(GLib.Variant('(s)', (self._profile,)))

    def let_answer(self):
        def answer():
            self._is_held = False
            while self._waiting:
                self._answer(*self._waiting.pop())
        self._context.invoke_full(GLib.PRIORITY_DEFAULT, answer)

    def end(self, name):
        self._ask('ReleaseName', '(s)', name)

    def close(self):
        self._bus.close_sync(None)
        self._loop.quit()
        self._thread.join()
