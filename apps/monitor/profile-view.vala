/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A profile: what took how long, by the names of a trace's events. */

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
            status.title = title;
            status.description = Markup.escape_text (description);
            stack.visible_child_name = "status";
        }

        public async void load (InputStream stream, bool keeps_text) {
            try {
                var trace = yield read_trace (stream, keeps_text, cancellable);

                sorted.model = trace.rows;
                packed = trace.packed;
                stack.visible_child_name = "table";
            } catch (IOError.CANCELLED error) {
                return;
            } catch (Error error) {
                sorted.model = null;
                packed = null;
                show_message (_("The Profile Cannot Be Shown"), error.message);
            }
        }
    }
}
