/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A profile: what took how long, by the names of a trace's events, or over time. */

namespace GTorchMonitor {
    public string time_text (double us) {
        return us < 1000 ? _("%.1f µs").printf (us)
             : us < 1000000 ? _("%.2f ms").printf (us / 1000)
             : us < 1e12 ? _("%.2f s").printf (us / 1000000) : _("%.3g s").printf (us / 1000000);
    }

    public class ProfileView : View {
        private Adw.StatusPage status = new Adw.StatusPage () {
            icon_name = "org.gtorch.Monitor-profile-symbolic",
        };
        private Gtk.SortListModel sorted = new Gtk.SortListModel (null, null);
        private TimelineView timeline = new TimelineView ();
        private Gtk.ToggleButton names_button = new Gtk.ToggleButton.with_label (_("Names"));
        private Gtk.ToggleButton timeline_button = new Gtk.ToggleButton.with_label (_("Timeline"));
        private Gtk.Label note = new Gtk.Label (null) { hexpand = true, ellipsize = Pango.EllipsizeMode.END };
        private Gtk.Box bar = new Gtk.Box (HORIZONTAL, 12) { visible = false };

        private Cancellable cancellable = new Cancellable ();

        /* The text of what was loaded, compressed by gzip, if it was to be kept. */
        public Bytes? packed { get; private set; }

        /* @waiting is shown until something is loaded. */
        public ProfileView (Gtk.Widget waiting) {
            stack.add_named (waiting, "waiting");
            stack.visible_child_name = "waiting";
        }

        construct {
            var table = new Gtk.ColumnView (new Gtk.NoSelection (sorted));

            add_column (table, _("Name"), false, (row) => row.name, (a, b) => strcmp (a.name, b.name));
            add_column (table, _("Kind"), true, (row) => row.category,
                        (a, b) => strcmp (a.category, b.category));
            add_column (table, _("Calls"), true, (row) => row.calls.to_string (),
                        (a, b) => compare (a.calls, b.calls));
            var total = add_column (table, _("Total"), true, (row) => time_text (row.total),
                                    (a, b) => compare (a.total, b.total));
            add_column (table, _("Mean"), true, (row) => time_text (row.mean ()),
                        (a, b) => compare (a.mean (), b.mean ()));
            add_column (table, _("Longest"), true, (row) => time_text (row.longest),
                        (a, b) => compare (a.longest, b.longest));
            table.sort_by_column (total, DESCENDING);
            sorted.sorter = table.sorter;
            stack.add_named (status, "status");
            stack.add_named (new Gtk.ScrolledWindow () { child = table, vexpand = true }, "table");
            stack.add_named (timeline, "timeline");
            add_bar ();
        }

        private void add_bar () {
            var box = new Gtk.Box (VERTICAL, 0);
            var switcher = new Gtk.Box (HORIZONTAL, 0);
            var buttons = timeline.make_buttons ();

            switcher.add_css_class ("linked");
            switcher.append (names_button);
            switcher.append (timeline_button);
            timeline_button.group = names_button;
            names_button.active = true;
            timeline_button.toggled.connect (show_profile);
            note.add_css_class ("dim-label");
            timeline_button.bind_property ("active", note, "visible", SYNC_CREATE);
            timeline_button.bind_property ("active", buttons, "visible", SYNC_CREATE);
            bar.margin_top = bar.margin_bottom = 6;
            bar.margin_start = bar.margin_end = 12;
            bar.append (switcher);
            bar.append (note);
            bar.append (buttons);
            child = null;
            box.append (bar);
            box.append (stack);
            child = box;
        }

        /* How a profile is shown: "names" or "timeline". */
        public string mode {
            get { return timeline_button.active ? "timeline" : "names"; }
            set {
                if (value == "timeline" && timeline_button.sensitive)
                    timeline_button.active = true;
                else if (value == "names")
                    names_button.active = true;
            }
        }

        private void show_profile () {
            if (sorted.model != null)
                stack.visible_child_name = timeline_button.active ? "timeline" : "table";
            notify_property ("mode");
        }

        private static string limits_text () {
            var text = _("A timeline has at most %u events, %u threads and counters, and %u events in one "
                         + "another.");
            var reasons = text.printf (TimelineBuilder.MAX_EVENTS, TimelineBuilder.MAX_TRACKS,
                                       EventTrack.MAX_LANES);

            return reasons + "\n" + _("Events that do not say when they began are not shown.");
        }

        private void show_trace (Trace trace) {
            var n = trace.timeline.n_shown, n_all = n + trace.timeline.n_omitted;

            sorted.model = trace.rows;
            timeline.timeline = trace.timeline;
            packed = trace.packed;
            bar.visible = true;
            timeline_button.sensitive = n > 0;
            timeline_button.tooltip_text = n > 0 ? null : _("The events do not say when they began.");
            if (n == 0)
                names_button.active = true;
            note.label = n < n_all ? _("%s of %s events").printf (n.to_string (), n_all.to_string ()) : "";
            note.tooltip_text = n < n_all ? limits_text () : null;
            show_profile ();
        }

        /* Ends the loading, whose result nobody sees any more. */
        public void cancel () {
            cancellable.cancel ();
        }

        private delegate string RowText (ProfileRow row);
        private delegate int RowOrder (ProfileRow a, ProfileRow b);

        private Gtk.ColumnViewColumn add_column (Gtk.ColumnView table, string title, bool is_number,
                                                 owned RowText text, owned RowOrder order) {
            var column = make_column (title, (item) => text ((ProfileRow) item), is_number,
                                      (a, b) => order ((ProfileRow) a, (ProfileRow) b));

            table.append_column (column);
            return column;
        }

        private static int compare (double a, double b) {
            return a < b ? -1 : a > b ? 1 : 0;
        }

        public void show_message (string title, string description) {
            bar.visible = false;
            status.title = title;
            status.description = Markup.escape_text (description);
            stack.visible_child_name = "status";
        }

        public async void load (InputStream stream, bool keeps_text) {
            try {
                var trace = yield read_trace (stream, keeps_text, cancellable);

                show_trace (trace);
            } catch (IOError.CANCELLED error) {
                return;
            } catch (Error error) {
                sorted.model = null;
                timeline.timeline = null;
                packed = null;
                show_message (_("The Profile Cannot Be Shown"), error.message);
            }
        }
    }
}
