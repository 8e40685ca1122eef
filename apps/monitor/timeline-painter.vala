/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Draws a timeline in the colours of the theme. Only what is seen is looked at, and texts are kept. */

namespace GTorchMonitor {
    /* A text of no more characters than this. */
    public string cut_text (string text, int most) {
        return text.length <= most || text.char_count () <= most
             ? text : text.substring (0, text.index_of_nth_char (most)) + "…";
    }

    public class TimelinePainter {
        const double LEAST_LABEL = 34;  /* pixels */
        const double TICKS = 110;       /* pixels from one to the next at least */
        const int MAX_LABELS = 4000;
        const string[] LIGHT = { "#99c1f1", "#8fe0a4", "#f8e27a", "#ffbe6f", "#f4a59f", "#dcb0e8", "#cdb59a",
                                 "#8fd6d3" };
        const string[] DARK = { "#1f62b5", "#1f7f50", "#80650a", "#a5500f", "#a8323c", "#70429c", "#6b5138",
                                "#1b7075" };

        private class Label {
            public Pango.Layout layout;
            public int width;
        }

        private unowned TimelineChart chart;
        private GenericArray<Label?> labels = new GenericArray<Label?> (); /* by the numbers of names */
        private uint n_labels;
        private Gtk.Snapshot snapshot; /* while it is drawn */
        private Gdk.RGBA[] palette = {};
        private bool is_dark;
        private Gdk.RGBA text_color;
        private Gdk.RGBA dim_color;
        private Gdk.RGBA line_color;
        private Gdk.RGBA shade_color;
        private Gdk.RGBA accent_color;
        private Gdk.RGBA label_color;

        public TimelinePainter (TimelineChart chart) {
            this.chart = chart;
        }

        /* Texts are made anew, by another font for example. */
        public void forget () {
            labels = new GenericArray<Label?> ();
            n_labels = 0;
        }

        private static Gdk.RGBA with_alpha (Gdk.RGBA color, float alpha) {
            var result = color;

            result.alpha *= alpha;
            return result;
        }

        private void take_colors () {
            var context = chart.get_style_context ();

            text_color = context.get_color ();
            dim_color = with_alpha (text_color, 0.6f);
            line_color = with_alpha (text_color, 0.12f);
            shade_color = with_alpha (text_color, 0.05f);
            if (!context.lookup_color ("accent_color", out accent_color))
                accent_color = text_color;
            if (palette.length > 0 && is_dark == Adw.StyleManager.get_default ().dark)
                return;
            is_dark = Adw.StyleManager.get_default ().dark;
            label_color.parse (is_dark ? "#ffffff" : "#241f31");
            palette = {};
            for (var i = 0; i < LIGHT.length; i++) {
                var color = Gdk.RGBA ();
                color.parse (is_dark ? DARK[i] : LIGHT[i]);
                palette += color;
            }
        }

        private static Graphene.Rect rectangle (double x, double y, double width, double height) {
            return Graphene.Rect ().init ((float) x, (float) y, (float) width, (float) height);
        }

        private void fill (Gdk.RGBA color, double x, double y, double width, double height) {
            snapshot.append_color (color, rectangle (x, y, width, height));
        }

        private void write (Pango.Layout layout, Gdk.RGBA color, double x, double y) {
            snapshot.save ();
            snapshot.translate (Graphene.Point () { x = (float) x, y = (float) y });
            snapshot.append_layout (layout, color);
            snapshot.restore ();
        }

        public void paint (Gtk.Snapshot snapshot) {
            double width = chart.get_width (), height = chart.get_height ();

            if (chart.timeline == null)
                return;
            this.snapshot = snapshot;
            take_colors ();
            snapshot.push_clip (rectangle (chart.names_width, 0, chart.plot_width (), height));
            draw_axis (height);
            snapshot.pop ();
            snapshot.push_clip (rectangle (0, chart.axis_height, width, height - chart.axis_height));
            foreach (unowned var row in chart.rows) {
                var y = chart.axis_height + row.y - chart.vadjustment.value;
                if (y + row.height >= chart.axis_height && y <= height)
                    draw_row (row, y, width, height);
            }
            snapshot.pop ();
            fill (line_color, chart.names_width - 1, chart.axis_height, 1, height);
            fill (line_color, 0, chart.axis_height - 1, width, 1);
            if (Gtk.StateFlags.FOCUS_VISIBLE in chart.get_state_flags ())
                outline (0, 0, width, height, 2, with_alpha (accent_color, 0.5f));
            this.snapshot = null;
        }

        private void outline (double x, double y, double width, double height, float thickness,
                              Gdk.RGBA color) {
            var shape = Gsk.RoundedRect ().init_from_rect (rectangle (x, y, width, height), 0);

            snapshot.append_border (shape, { thickness, thickness, thickness, thickness },
                                    { color, color, color, color });
        }

        private void draw_axis (double height) {
            var step = tick_step (TICKS * chart.scale);
            var first = (int64) (chart.first_time () / step);
            int64 from, to;

            chart.get_range (out from, out to);
            for (var i = first; i <= first + 100; i++) {
                var x = chart.x_of (i * step);

                if (x > chart.get_width ())
                    break;
                fill (line_color, x, chart.axis_height - 6, 1, height);
                write (chart.create_pango_layout (tick_text (i * step, step, to)), dim_color, x + 4, 4);
            }
        }

        /* --- rows --- */

        private void draw_row (TimelineRow row, double y, double width, double height) {
            var names_width = chart.names_width;

            if (row.track == null) {
                fill (shade_color, 0, y, width, row.height);
                write_name (row.title (), text_color, true, y + 3, width);
                return;
            }
            snapshot.push_clip (rectangle (names_width, y, width - names_width, row.height));
            if (row.track is EventTrack)
                draw_events (row, (EventTrack) row.track, y, height);
            else
                draw_curve ((CounterTrack) row.track, y + TimelineChart.PADDING,
                            row.height - 2 * TimelineChart.PADDING);
            snapshot.pop ();
            var top = y + TimelineChart.PADDING;
            write_name (row.title (), text_color, false, top + 1, names_width);
            if (row.track is CounterTrack) {
                var counter = (CounterTrack) row.track;
                var text = _("at most %s").printf (value_text (counter, counter.highest));
                write_name (text, dim_color, false, top + chart.lane_height, names_width);
            }
            fill (line_color, 0, y + row.height - 1, width, 1);
        }

        private void write_name (string text, Gdk.RGBA color, bool is_bold, double y, double width) {
            var layout = chart.create_pango_layout (cut_text (text, 200));

            layout.set_single_paragraph_mode (true);
            layout.set_ellipsize (MIDDLE);
            layout.set_width ((int) (width - 20) * Pango.SCALE);
            if (is_bold) {
                var attributes = new Pango.AttrList ();
                attributes.insert (Pango.attr_weight_new (BOLD));
                layout.set_attributes (attributes);
            }
            write (layout, color, 12, y);
        }

        private void draw_events (TimelineRow row, EventTrack track, double y, double height) {
            int64 from, to;

            chart.get_range (out from, out to);
            for (uint lane = 0; lane < track.n_lanes; lane++) {
                var top = y + TimelineChart.PADDING + lane * chart.lane_height;

                if (top + chart.lane_height < chart.axis_height || top > height)
                    continue;
                track.each_bar (lane, from, to, TimelineChart.SHORTEST * chart.scale, (bar) => {
                    draw_bar (row, track, bar, top);
                });
            }
        }

        private void draw_bar (TimelineRow row, EventTrack track, Bar bar, double y) {
            var height = chart.lane_height - 2;

            if (bar.n_events > 1)
                draw_mixed (track, bar, y, height);
            else
                draw_event (track, bar, y, height);
            if (row == chart.selected_row && chart.selected_event >= bar.event
                && chart.selected_event - bar.event < bar.n_events)
                draw_selection (track, chart.selected_event, y, height);
        }

        private void draw_selection (EventTrack track, uint event, double y, double height) {
            var bar = Bar () { start = track.starts[event], end = track.end_of (event) };
            double left, right;

            chart.get_extent (bar, out left, out right);
            outline (left - 1, y - 1, right - left + 1, height + 2, 2, accent_color);
        }

        private void draw_event (EventTrack track, Bar bar, double y, double height) {
            double left, right;

            chart.get_extent (bar, out left, out right);
            var width = right - left > 3 ? right - left - 1 : right - left; /* apart from the next one */
            unowned var profile_row = chart.timeline.rows[track.names[bar.event]];
            fill (palette[profile_row.color % palette.length], left, y, width, height);
            var begin = double.max (left, chart.names_width) + 4;
            if (left + width - begin >= LEAST_LABEL)
                draw_label (track.names[bar.event], begin, y, (int) (left + width - begin - 3));
        }

        /* The darker, the more of the time events take. */
        private void draw_mixed (EventTrack track, Bar bar, double y, double height) {
            track.each_shade (bar, TimelineChart.SHORTEST * chart.scale, (start, end, shade) => {
                var part = Bar () { start = start, end = end };
                double left, right;

                chart.get_extent (part, out left, out right);
                fill (with_alpha (text_color, 0.1f + 0.5f * shade / EventTrack.SHADES), left, y, right - left,
                      height);
            });
        }

        private void draw_label (uint name, double x, double y, int width) {
            if (n_labels > MAX_LABELS)
                forget ();
            if (labels.length <= name)
                labels.length = (int) name + 1;
            var label = labels[name];
            if (label == null) {
                label = new Label () {
                    layout = chart.create_pango_layout (cut_text (chart.timeline.rows[name].name, 200)),
                    width = -1,
                };
                label.layout.set_single_paragraph_mode (true);
                label.layout.set_ellipsize (END);
                labels[name] = label;
                n_labels++;
            }
            if (label.width != width)
                label.layout.set_width (width * Pango.SCALE);
            label.width = width;
            write (label.layout, label_color, x, y);
        }

        /* --- counters --- */

        private static string value_text (CounterTrack track, double value) {
            return track.key == "bytes" && value >= 0 && value < 1e18 ? size_text ((uint64) value)
                                                                      : "%g".printf (value);
        }

        public string value_at (CounterTrack track, int64 time) {
            var value = track.value_at (time);

            return value.is_nan () ? _("No value yet") : value_text (track, value);
        }

        private void draw_curve (CounterTrack track, double y, double height) {
            var left = chart.names_width;
            var scale = height / double.max (track.highest - track.lowest, double.MIN);
            var bottom = y + height + track.lowest * scale; /* where 0 is */
            var cairo = snapshot.append_cairo (rectangle (left, y, chart.plot_width (), height));
            uint n = track.starts.length;
            var next = track.seek (0, n, (int64) chart.first_time ());
            var last_y = next > 0 ? bottom - track.values[next - 1] * scale : bottom;

            cairo.move_to (left - 2, bottom); /* not seen, as the other end */
            cairo.line_to (left - 2, last_y);
            for (double x = left; x <= chart.get_width (); x++) {
                var behind = track.seek (next, n, (int64) chart.time_at (x + 1));

                if (behind > 0) {
                    var value = behind > next ? track.largest (next, behind) : track.values[behind - 1];
                    var here = bottom - value * scale;
                    if (here != last_y) {
                        cairo.line_to (x, last_y);
                        cairo.line_to (x, here);
                    }
                    last_y = here;
                }
                next = behind;
            }
            cairo.line_to (chart.get_width () + 2, last_y);
            cairo.line_to (chart.get_width () + 2, bottom);
            Gdk.cairo_set_source_rgba (cairo, with_alpha (accent_color, 0.3f));
            cairo.fill_preserve ();
            Gdk.cairo_set_source_rgba (cairo, accent_color);
            cairo.set_line_width (1);
            cairo.stroke ();
        }
    }
}
