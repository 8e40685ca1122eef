/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The memory of a program's tensors and its streams: numbers, and the blocks of each GPU. */

namespace GTorchMonitor {
    public class MemoryView : View {
        const uint MAX_BLOCKS = 100000;

        private Program program;
        private Gtk.Box box = new Gtk.Box (VERTICAL, 24);
        private Adw.PreferencesGroup streams = new Adw.PreferencesGroup () { title = _("Streams") };
        private GenericArray<Gtk.Widget> stream_rows = new GenericArray<Gtk.Widget> ();
        private HashTable<string, DeviceMemory> devices =
            new HashTable<string, DeviceMemory> (str_hash, str_equal);

        /* What is shown of one device. */
        private class DeviceMemory {
            public Adw.PreferencesGroup group = new Adw.PreferencesGroup ();
            public Gtk.Label allocated;
            public Gtk.Label peak;
            public Gtk.Label reserved;
            public BlockMap map = new BlockMap ();
            public Gtk.Box card = new Gtk.Box (VERTICAL, 12) { visible = false };

            public DeviceMemory (string id, string name) {
                var legend = new Gtk.Box (HORIZONTAL, 18);

                group.title = Markup.escape_text (id);
                group.description = Markup.escape_text (name);
                allocated = add_number (_("Tensors"));
                peak = add_number (_("Most at One Time"));
                reserved = add_number (_("Reserved"));
                add_key (legend, 2, _("In use"));
                add_key (legend, 1, _("Waits for a stream"));
                add_key (legend, 0, _("Free"));
                map.margin_start = map.margin_end = 12;
                map.margin_bottom = 12;
                legend.margin_top = legend.margin_start = 12;
                card.add_css_class ("card");
                card.margin_top = 12;
                card.append (legend);
                card.append (map);
                group.add (card);
            }

            private Gtk.Label add_number (string title) {
                var row = new Adw.ActionRow () { title = title };
                var label = new Gtk.Label (null);

                label.add_css_class ("numeric");
                row.add_suffix (label);
                group.add (row);
                return label;
            }

            private void add_key (Gtk.Box legend, uint8 state, string text) {
                var key = new Gtk.Box (HORIZONTAL, 6);
                var swatch = new Gtk.DrawingArea () {
                    content_width = 14,
                    content_height = 14,
                    valign = CENTER,
                };
                var label = new Gtk.Label (text);

                swatch.set_draw_func ((area, cr, width, height) => {
                    Gdk.cairo_set_source_rgba (cr, BlockMap.color_of_state (state));
                    cr.paint ();
                });
                label.add_css_class ("caption");
                key.append (swatch);
                key.append (label);
                legend.append (key);
            }
        }

        public MemoryView (Program program) {
            this.program = program;
            box.append (streams);
            stack.add_named (make_waiting (program), "waiting");
            stack.add_named (make_page (box), "content");
        }

        public async void update () throws Error {
            var answer = yield program.ask ("ListDevices", null, "(aa{sv})");

            foreach (var item in answer.get_child_value (0)) {
                var id = text_of (item, "device");
                var device = devices[id];

                if (device == null) {
                    device = new DeviceMemory (id, text_of (item, "name"));
                    devices[id] = device;
                    box.prepend (device.group); /* GPUs come after the CPU: they are above it here */
                }
                device.allocated.label = size_text (size_of (item, "allocated"));
                device.peak.label = size_text (size_of (item, "peak-allocated"));
                device.reserved.label = _("%s of %s").printf (size_text (size_of (item, "reserved")),
                                                             size_text (size_of (item, "total-memory")));
                yield update_map (id, device);
            }
            show_streams (yield program.ask ("ListStreams", null, "(aa{sv})"));
            stack.visible_child_name = "content";
        }

        private async void update_map (string id, DeviceMemory device) throws Error {
            try {
                var answer = yield program.ask ("GetMemoryBlocks", new Variant ("(su)", id, MAX_BLOCKS),
                                                "(ba(ttsta(tty)))");

                device.map.show_segments (answer.get_child_value (1));
                device.card.visible = true;
            } catch (DBusError.NOT_SUPPORTED error) {
                device.card.visible = false; /* the CPU's allocator keeps no list */
            }
        }

        private static string waiting_text (uint64 n) {
            return ngettext ("%s piece of work waits", "%s pieces of work wait", (ulong) n)
                .printf (n.to_string ());
        }

        private void show_streams (Variant answer) {
            foreach (var row in stream_rows)
                streams.remove (row);
            stream_rows.remove_range (0, stream_rows.length);
            foreach (var item in answer.get_child_value (0)) {
                var submitted = size_of (item, "submitted");
                var completed = size_of (item, "completed");
                var state = _("Open");

                if (flag_of (item, "is-capturing"))
                    state = _("Captures a graph");
                else if (submitted > completed)
                    state = waiting_text (submitted - completed);
                var row = make_row (
                    flag_of (item, "is-default") ? _("Default Stream")
                                                 : _("Stream %s").printf (size_of (item, "id").to_string ()),
                    text_of (item, "device"), state);

                stream_rows.add (row);
                streams.add (row);
            }
            streams.description = stream_rows.length == 0 ? _("The program has no streams.") : null;
        }
    }
}
