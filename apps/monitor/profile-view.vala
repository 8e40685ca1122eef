/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A profile: what took how long, from a trace in Chrome's format, which the profiler writes. */

namespace GTorchMonitor {
    /* All events of one name and category. Times are in microseconds. */
    public class ProfileRow : Object {
        public string name { get; construct; }
        public string category { get; construct; }
        public uint64 calls { get; set; }
        public double total { get; set; }
        public double longest { get; set; }

        public ProfileRow (string name, string category) {
            Object (name: name, category: category);
        }

        public double mean () {
            return total / calls;
        }
    }

    public errordomain ProfileError {
        INVALID
    }

    /* Sums up the complete events of a trace, {"traceEvents": [{"ph": "X", "name": …, "dur": …}, …]}, or only
     * the array. Other events are passed over, and so is what is no event. */
    public GLib.ListStore summarize_profile (Json.Node? root) throws ProfileError {
        var rows = new GLib.ListStore (typeof (ProfileRow));
        var by_name = new HashTable<string, ProfileRow> (str_hash, str_equal);
        Json.Array? events = null;
        Json.Node? list = root;

        if (root != null && root.get_node_type () == Json.NodeType.OBJECT)
            list = root.get_object ().get_member ("traceEvents");
        if (list != null && list.get_node_type () == Json.NodeType.ARRAY)
            events = list.get_array ();
        if (events == null)
            throw new ProfileError.INVALID (_("This is no trace: it has no list “traceEvents”."));
        for (uint i = 0; i < events.get_length (); i++) {
            var node = events.get_element (i);

            if (node.get_node_type () != Json.NodeType.OBJECT)
                continue;
            var event = node.get_object ();
            if (text_member (event, "ph") != "X" || !event.has_member ("dur")
                || event.get_member ("dur").get_node_type () != Json.NodeType.VALUE)
                continue;
            var duration = event.get_member ("dur").get_double ();
            var name = text_member (event, "name"), category = text_member (event, "cat");
            var key = category + "\n" + name;
            var row = by_name[key];

            if (!(duration >= 0) || duration.is_infinity () != 0)
                continue;
            if (row == null) {
                row = new ProfileRow (name, category);
                by_name[key] = row;
                rows.append (row);
            }
            row.calls++;
            row.total += duration;
            row.longest = double.max (row.longest, duration);
        }
        if (rows.get_n_items () == 0)
            throw new ProfileError.INVALID (_("The trace has no events with a duration."));
        return rows;
    }

    private string text_member (Json.Object object, string key) {
        if (!object.has_member (key))
            return "";
        var node = object.get_member (key);
        return node.get_value_type () == typeof (string) ? node.get_string () : "";
    }

    public string time_text (double us) {
        return us < 1000 ? _("%.1f µs").printf (us)
             : us < 1000000 ? _("%.2f ms").printf (us / 1000)
             : us < 1e12 ? _("%.2f s").printf (us / 1000000) : _("%.3g s").printf (us / 1000000);
    }

    public class ProfileView : Adw.Bin {
        private Gtk.Stack stack = new Gtk.Stack ();
        private Adw.StatusPage status = new Adw.StatusPage () {
            icon_name = "org.gtorch.Monitor-profile-symbolic",
        };
        private Gtk.SortListModel sorted = new Gtk.SortListModel (null, null);

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
            child = stack;
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

        /* As the profiler writes it, plain or compressed by gzip. */
        private async InputStream unpack (InputStream stream) throws Error {
            var buffered = new BufferedInputStream (stream);

            yield buffered.fill_async (512, Priority.DEFAULT, null);
            unowned uint8[] begin = buffered.peek_buffer ();
            if (begin.length < 2 || begin[0] != 0x1f || begin[1] != 0x8b)
                return buffered;
            return new ConverterInputStream (buffered, new ZlibDecompressor (ZlibCompressorFormat.GZIP));
        }

        public async void load (InputStream stream) {
            var parser = new Json.Parser ();

            try {
                yield parser.load_from_stream_async (yield unpack (stream), null);
                sorted.model = summarize_profile (parser.get_root ());
                stack.visible_child_name = "table";
            } catch (Error error) {
                show_message (_("The Profile Cannot Be Shown"), error.message);
            }
        }
    }
}
