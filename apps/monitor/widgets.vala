/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Small parts that the pages are made of. */

namespace GTorchMonitor {
    public string size_text (uint64 n_bytes) {
        return format_size (n_bytes, FormatSizeFlags.IEC_UNITS);
    }

    /* A figure whose widget is no wider than it must be: cards share a line. */
    public GTorchPlot.Figure make_figure () {
        var figure = new GTorchPlot.Figure ();

        try {
            figure.set_size (300, 200);
        } catch (Error error) {
            warning ("%s", error.message);
        }
        return figure;
    }

    public void set_units (GTorchPlot.Figure figure, string? across, string? up) {
        try {
            var axes = figure.get_axes (0, 0);

            axes.x_label = across;
            axes.y_label = up;
        } catch (Error error) {
            warning ("%s", error.message);
        }
    }

    public Adw.ActionRow make_row (string title, string? subtitle = null, string? value = null) {
        /* Names come from programs: they are no markup. */
        var row = new Adw.ActionRow () { title = Markup.escape_text (title) };

        if (subtitle != null)
            row.subtitle = Markup.escape_text (subtitle);
        if (value != null) {
            var label = new Gtk.Label (value) { selectable = true };

            label.add_css_class ("numeric");
            row.add_suffix (label);
        }
        return row;
    }

    public Gtk.Label make_heading (string text) {
        var label = new Gtk.Label (text) { xalign = 0, ellipsize = Pango.EllipsizeMode.END };

        label.add_css_class ("heading");
        return label;
    }

    /* A page that scrolls, with its content in the middle. */
    public Gtk.ScrolledWindow make_page (Gtk.Widget child, int maximum_size = 900) {
        var clamp = new Adw.Clamp () {
            child = child,
            maximum_size = maximum_size,
            tightening_threshold = maximum_size * 2 / 3,
        };

        child.margin_top = child.margin_bottom = 24;
        child.margin_start = child.margin_end = 12;
        return new Gtk.ScrolledWindow () { child = clamp, hscrollbar_policy = NEVER, vexpand = true };
    }

    /* A card with a plot under its title. */
    public Gtk.Box make_card (Gtk.Widget title, Gtk.Widget content) {
        var card = new Gtk.Box (VERTICAL, 6);

        card.add_css_class ("card");
        title.margin_top = 12;
        title.margin_start = title.margin_end = 12;
        content.margin_bottom = content.margin_start = content.margin_end = 6;
        content.hexpand = content.vexpand = true;
        card.append (title);
        card.append (content);
        return card;
    }

    /* A column of a table, whose cells show a property of the items as text. */
    public Gtk.ColumnViewColumn make_column (string title, owned CellFunc text_of_item, bool is_number,
                                             owned CompareDataFunc<Object>? compare = null) {
        var factory = new Gtk.SignalListItemFactory ();
        Gtk.Sorter? sorter = null;

        factory.setup.connect ((item) => {
            var label = new Gtk.Label (null) {
                xalign = is_number ? 1 : 0,
                ellipsize = is_number ? Pango.EllipsizeMode.NONE : Pango.EllipsizeMode.MIDDLE,
            };

            if (is_number)
                label.add_css_class ("numeric");
            ((Gtk.ListItem) item).child = label;
        });
        factory.bind.connect ((item) => {
            var list_item = (Gtk.ListItem) item;
            var label = (Gtk.Label) list_item.child;

            label.label = text_of_item (list_item.item);
            label.tooltip_text = is_number ? null : label.label;
        });
        if (compare != null)
            sorter = new Gtk.CustomSorter ((a, b) => compare ((Object) a, (Object) b));
        return new Gtk.ColumnViewColumn (title, factory) {
            expand = !is_number,
            resizable = true,
            sorter = sorter,
        };
    }

    public delegate string CellFunc (Object item);

    /* The blocks of an allocator: a row for each segment, which is the longer the larger the segment is. */
    public class BlockMap : Gtk.Widget {
        const int ROW = 22;
        const int GAP = 4;
        const int MAX_ROWS = 500;

        private class Segment {
            public uint64 address;
            public uint64 size;
            public string kind;
            public Variant blocks; /* a(tty) */
        }

        private GenericArray<Segment> segments = new GenericArray<Segment> ();
        private double largest;

        construct {
            has_tooltip = true;
            query_tooltip.connect (explain);
        }

        /* Takes what GetMemoryBlocks has answered: a(ttsta(tty)). */
        public void show_segments (Variant list) {
            segments.remove_range (0, segments.length);
            foreach (var item in list) {
                var segment = new Segment ();

                segment.address = item.get_child_value (0).get_uint64 ();
                segment.size = item.get_child_value (1).get_uint64 ();
                segment.kind = item.get_child_value (2).get_string ();
                segment.blocks = item.get_child_value (4);
                segments.add (segment);
            }
            segments.sort ((a, b) => {
                if (a.size != b.size)
                    return a.size > b.size ? -1 : 1;
                return a.address < b.address ? -1 : 1;
            });
            if (segments.length > MAX_ROWS)
                segments.remove_range (MAX_ROWS, segments.length - MAX_ROWS);
            largest = segments.length > 0 ? (double) segments[0].size : 1;
            queue_resize ();
            queue_draw ();
        }

        public override void measure (Gtk.Orientation orientation, int for_size, out int minimum,
                                      out int natural, out int minimum_baseline, out int natural_baseline) {
            minimum = orientation == HORIZONTAL ? 200 : int.max (segments.length * (ROW + GAP) - GAP, ROW);
            natural = orientation == HORIZONTAL ? 600 : minimum;
            minimum_baseline = natural_baseline = -1;
        }

        /* Small segments beside large ones are still seen. */
        private double length_of (Segment segment) {
            return double.max (get_width () * Math.sqrt (segment.size / largest), 24);
        }

        public static Gdk.RGBA color_of_state (uint8 state) {
            var color = Gdk.RGBA ();

            color.parse (state == 2 ? "#3584e4" : state == 1 ? "#ff7800" : "rgba(128,128,128,0.25)");
            return color;
        }

        public override void snapshot (Gtk.Snapshot snapshot) {
            for (uint i = 0; i < segments.length; i++) {
                var segment = segments[i];
                double x = 0, scale = length_of (segment) / double.max (segment.size, 1);
                var bounds = Graphene.Rect ().init (0, i * (ROW + GAP), (float) length_of (segment), ROW);
                var shape = Gsk.RoundedRect ().init_from_rect (bounds, 4);

                snapshot.push_rounded_clip (shape);
                foreach (var block in segment.blocks) {
                    var width = block.get_child_value (0).get_uint64 () * scale;
                    var rectangle = Graphene.Rect ().init ((float) x, i * (ROW + GAP),
                                                           (float) double.max (width - 1, 0.5), ROW);

                    snapshot.append_color (color_of_state (block.get_child_value (2).get_byte ()), rectangle);
                    x += width;
                }
                snapshot.pop ();
            }
        }

        private bool explain (int x, int y, bool is_keyboard, Gtk.Tooltip tooltip) {
            var row = y / (ROW + GAP);
            double at = 0;

            if (is_keyboard || row >= segments.length)
                return false;
            var segment = segments[row];
            var scale = length_of (segment) / double.max (segment.size, 1);

            foreach (var block in segment.blocks) {
                var size = block.get_child_value (0).get_uint64 ();
                var state = block.get_child_value (2).get_byte ();

                at += size * scale;
                if (x >= at)
                    continue;
                var text = state == 2 ? _("In use") : state == 1 ? _("Waits for a stream") : _("Free");
                tooltip.set_text ("%s, %s\n%s".printf (
                    text, size_text (size),
                    _("in a segment of %s at 0x%s").printf (size_text (segment.size),
                                                          "%llx".printf (segment.address))));
                return true;
            }
            return false;
        }
    }
}
