// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Exporters in JavaScript, on a bus of the test's own; tests/export has the rest.

import Gio from 'gi://Gio';
import GLib from 'gi://GLib';
import GTorch from 'gi://GTorch?version=1';

import * as tap from './tap.js';

const nn = GTorch.nn;

tap.add('a_program_is_read_while_its_main_loop_runs', async () => {
    if (GLib.find_program_in_path('dbus-daemon') === null)
        tap.skip('dbus-daemon is not installed');
    const daemon = Gio.Subprocess.new(['dbus-daemon', '--session', '--nofork', '--print-address'],
        Gio.SubprocessFlags.STDOUT_PIPE | Gio.SubprocessFlags.STDERR_SILENCE);
    const [address] = Gio.DataInputStream.new(daemon.get_stdout_pipe()).read_line_utf8(null);
    GLib.setenv('DBUS_SESSION_BUS_ADDRESS', address, true);
    const flags = Gio.DBusConnectionFlags;
    const bus = Gio.DBusConnection.new_for_address_sync(address,
        flags.AUTHENTICATION_CLIENT | flags.MESSAGE_BUS_CONNECTION, null, null);
    const exporter = new GTorch.Exporter({name: 'mine'});
    await exporter.start_async();
    const ask = (method, args, type) => bus.call_sync(exporter.dup_bus_name(), '/org/gtorch/Program1',
        'org.gtorch.Program1', method, args, new GLib.VariantType(type), Gio.DBusCallFlags.NONE, -1,
        null).recursiveUnpack();
    const model = nn.Linear(3, 2);
    exporter.add_module('model', model);
    exporter.add_scalar('loss', 0.5, 7);
    tap.equal(JSON.stringify(ask('ListModules', null, '(a(su))')), '[[["model",2]]]');
    tap.equal(JSON.stringify(ask('ListScalars', null, '(a(stxd))')), '[[["loss",1,7,0.5]]]');
    const what = new GLib.Variant('(ssu)', ['model', 'weight', 5]);
    const statistics = ask('GetParameterStatistics', what, '(a{sv})')[0];
    tap.equal(statistics['n-values'], 6);
    tap.throws(() => ask('GetProfile', null, '(s)'), error => /has given no profile/.test(error.message));
    const refused = await exporter.start_async().catch(error => error.message);
    tap.equal(refused, 'exporter_start: it is started already');
    exporter.stop();
    tap.equal(exporter.dup_bus_name(), null);
    bus.close_sync(null);
    daemon.force_exit();
});

tap.add('mistakes_throw', () => {
    const exporter = new GTorch.Exporter();
    tap.throws(() => new GTorch.Exporter({name: 'a\0b'}), error => /NUL/.test(error.message));
    tap.throws(() => exporter.add_module('a\0b', nn.Linear(2, 2)), error => /NUL/.test(error.message));
    tap.throws(() => exporter.add_scalar('a\0b', 1, 1), error => /NUL/.test(error.message));
    tap.throws(() => exporter.set_profile('[]\0'), error => /NUL/.test(error.message));
    tap.throws(() => exporter.add_scalar('loss', 1, 1.5), error => /step/.test(error.message));
    tap.throws(() => exporter.set_profile('[1]'), error => /must be an object/.test(error.message));
    exporter.set_profile('[{}]');
});

// The tests' program is called by its file, whatever options come before it.
tap.add('programs_are_called_by_their_script', () => {
    tap.equal(new GTorch.Exporter().name, 'test-exporter.js');
    const [file, stream] = Gio.File.new_tmp('XXXXXX.html');
    stream.close(null);
    GTorch.memory_report_save(file.get_path());
    const [, bytes] = file.load_contents(null);
    tap.assert(new TextDecoder().decode(bytes).includes('<p>test-exporter.js, process'));
    file.delete(null);
});

await tap.run();
