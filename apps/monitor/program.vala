/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The programs that export themselves on the session bus. Whatever they answer, they are other programs: an
 * answer of another type than was asked for is an error, and a program that does not answer is waited for no
 * longer than TIMEOUT. */

namespace GTorchMonitor {
    const string BUS = "org.freedesktop.DBus";
    const string INTERFACE = "org.gtorch.Program1";
    const string OBJECT = "/org/gtorch/Program1";
    const int TIMEOUT = 5000; /* ms */

    /* A program, by the name that it has on the bus as long as it runs. */
    public class Program : Object {
        public string bus_name { get; construct; }
        public string name { get; private set; default = ""; }
        public uint pid { get; private set; }
        public string version { get; private set; default = ""; }
        public bool is_gone { get; internal set; }
        public bool is_silent { get; private set; } /* it has not answered the last question in time */

        private DBusConnection bus;

        public Program (DBusConnection bus, string bus_name) {
            Object (bus_name: bus_name);
            this.bus = bus;
        }

        /* Calls a method; the type is that of the whole answer, a tuple. */
        public async Variant ask (string method, Variant? arguments, string type) throws Error {
            try {
                var answer = yield bus.call (bus_name, OBJECT, INTERFACE, method, arguments,
                                             new VariantType (type), DBusCallFlags.NO_AUTO_START, TIMEOUT);

                is_silent = false;
                return answer;
            } catch (Error error) {
                is_silent = error is IOError.TIMED_OUT || error is DBusError.NO_REPLY
                            || error is DBusError.TIMEOUT;
                throw error;
            }
        }

        public string state_text () {
            return is_gone ? _("Process %u, ended").printf (pid)
                 : is_silent ? _("Process %u, does not answer").printf (pid) : _("Process %u").printf (pid);
        }

        internal async void read_properties () throws Error {
            var answer = yield bus.call (bus_name, OBJECT, "org.freedesktop.DBus.Properties", "GetAll",
                                         new Variant ("(s)", INTERFACE), new VariantType ("(a{sv})"),
                                         DBusCallFlags.NO_AUTO_START, TIMEOUT);
            var properties = answer.get_child_value (0);

            name = text_of (properties, "Name");
            version = text_of (properties, "Version");
            pid = properties.lookup_value ("Pid", VariantType.UINT32)?.get_uint32 () ?? 0;
        }
    }

    /* What dictionaries have under a key; nothing, if that is of another type. */
    public string text_of (Variant dictionary, string key) {
        return dictionary.lookup_value (key, VariantType.STRING)?.get_string () ?? "";
    }

    public uint64 size_of (Variant dictionary, string key) {
        return dictionary.lookup_value (key, VariantType.UINT64)?.get_uint64 () ?? 0;
    }

    public double number_of (Variant dictionary, string key) {
        return dictionary.lookup_value (key, VariantType.DOUBLE)?.get_double () ?? double.NAN;
    }

    public bool flag_of (Variant dictionary, string key) {
        return dictionary.lookup_value (key, VariantType.BOOLEAN)?.get_boolean () ?? false;
    }

    /* The list of programs, which follows the bus. */
    public class ProgramList : Object {
        public GLib.ListStore programs { get; default = new GLib.ListStore (typeof (Program)); }

        private DBusConnection bus;
        private uint subscription;

        public ProgramList (DBusConnection bus) {
            this.bus = bus;
            subscription = bus.signal_subscribe (BUS, BUS, "NameOwnerChanged", "/org/freedesktop/DBus",
                                                 INTERFACE, DBusSignalFlags.MATCH_ARG0_NAMESPACE,
                                                 owner_changed);
            read_names.begin ();
        }

        ~ProgramList () {
            bus.signal_unsubscribe (subscription);
        }

        public Program? find (string bus_name) {
            for (uint i = 0; i < programs.get_n_items (); i++) {
                var program = (Program) programs.get_item (i);

                if (program.bus_name == bus_name)
                    return program;
            }
            return null;
        }

        private void owner_changed (DBusConnection bus, string? sender, string path, string iface,
                                    string signal_name, Variant arguments) {
            string name, former, owner;

            if (!arguments.is_of_type (new VariantType ("(sss)")))
                return;
            arguments.get ("(sss)", out name, out former, out owner);
            remove (name);
            if (owner != "")
                add.begin (name);
        }

        private void remove (string bus_name) {
            for (uint i = 0; i < programs.get_n_items (); i++) {
                var program = (Program) programs.get_item (i);

                if (program.bus_name != bus_name)
                    continue;
                program.is_gone = true;
                programs.remove (i);
                return;
            }
        }

        private async void add (string bus_name) {
            var program = new Program (bus, bus_name);

            try {
                yield program.read_properties ();
            } catch (Error error) {
                return; /* it has ended meanwhile, or is something else */
            }
            if (program.pid != Posix.getpid () && find (bus_name) == null)
                programs.append (program);
        }

        private async void read_names () {
            try {
                var answer = yield bus.call (BUS, "/org/freedesktop/DBus", BUS, "ListNames", null,
                                             new VariantType ("(as)"), DBusCallFlags.NONE, TIMEOUT);

                foreach (var name in answer.get_child_value (0).get_strv ())
                    if (name.has_prefix (INTERFACE + "."))
                        add.begin (name);
            } catch (Error error) {
                warning ("%s", error.message);
            }
        }
    }
}
