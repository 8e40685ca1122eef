/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The profile of a running program, with buttons that record and save one. */

namespace GTorchMonitor {
    public class RecordedProfile : Adw.Bin, Staged {
        const double SECONDS = 5;

        private Program program;
        public ProfileView view { get; private set; }
        private Gtk.Button button = new Gtk.Button ();
        private Gtk.Label label = new Gtk.Label ("") { xalign = 0, hexpand = true, wrap = true };
        private bool is_recording;
        private bool is_read; /* a profile, or that there is none */
        private uint number;  /* of recordings, when it was read */

        public string stage { get { return view.stage; } }
        /* The text that the program has given, compressed by gzip. */
        public Bytes? packed { get { return view.packed; } }

        public RecordedProfile (Program program) {
            var bar = new Gtk.Box (HORIZONTAL, 12);
            var box = new Gtk.Box (VERTICAL, 0);

            var save = new Gtk.Button.from_icon_name ("document-save-symbolic") {
                tooltip_text = _("Save Profile"),
                action_name = "win.save-profile",
            };

            this.program = program;
            view = new ProfileView (make_waiting (program)) { vexpand = true };
            view.notify["stage"].connect (() => notify_property ("stage"));
            bar.margin_top = bar.margin_bottom = 6;
            bar.margin_start = bar.margin_end = 12;
            bar.height_request = 36; /* what it has by base lines or not: GTK computes two heights */
            bar.append (button);
            bar.append (label);
            bar.append (save);
            box.append (bar);
            box.append (view);
            child = box;
            button.clicked.connect (press);
            show_state ("none", 0, "");
            program.notify["is-gone"].connect (show_end);
        }

        /* A program that has ended records nothing, and what it has recorded stays. */
        private void show_end () {
            show_state ("none", 0, is_recording ? _("The program has ended, and the recording with it.")
                                                : _("The program has ended."));
            button.sensitive = false;
        }

        /* Begins to record, or ends it. */
        public void press () {
            if (button.sensitive)
                change.begin ();
        }

        private async void change () {
            button.sensitive = false;
            try {
                if (is_recording)
                    yield program.ask ("StopProfile", null, "(t)");
                else
                    yield program.ask ("StartProfile", new Variant ("(d)", SECONDS), "()");
                yield update ();
            } catch (Error error) {
                DBusError.strip_remote_error (error);
                if (!program.is_gone)
                    label.label = error.message;
            }
            button.sensitive = !program.is_gone;
        }

        private void show_state (string state, double seconds, string note) {
            is_recording = state == "recording";
            button.label = is_recording ? _("_Stop Recording") : _("_Record %g Seconds").printf (SECONDS);
            button.use_underline = true;
            if (is_recording)
                label.label = _("Recording, %.0f s").printf (seconds);
            else if (state == "writing")
                label.label = _("Writing the profile");
            else
                label.label = note;
        }

        /* Asks for the state, and for a profile that is new. */
        public async void update () throws Error {
            string state, note;
            uint n;
            double seconds;
            Variant answer;

            try {
                answer = yield program.ask ("GetProfileState", null, "(suds)");
            } catch (DBusError.UNKNOWN_METHOD error) { /* a program with an older library records none */
                button.visible = false;
                answer = new Variant ("(suds)", "none", 0u, 0.0, "");
            }
            answer.get ("(suds)", out state, out n, out seconds, out note);
            if (is_recording || state != "none" || note != "" || n != number)
                show_state (state, seconds, note);
            if (is_read && n == number || state == "writing")
                return;
            yield read ();
            is_read = true;
            number = n;
        }

        private async void read () throws Error {
            try {
                var answer = yield program.ask ("GetProfile", null, "(s)");
                var text = answer.get_child_value (0).get_data_as_bytes (); /* with a zero byte */
                var stream = new MemoryInputStream.from_bytes (text.slice (0, (int) text.get_size () - 1));

                yield view.load (stream, true);
            } catch (DBusError.NOT_SUPPORTED error) {
                view.show_message (_("No Profile"),
                                   _("The program has given no profile, and none was recorded."));
            }
        }
    }
}
