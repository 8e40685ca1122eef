/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Shows a timeline: a row for each track, with names beside it and a time axis above. It scrolls in both
 * directions, by adjustments in pixels. */

namespace GTorchMonitor {
    /* A track, or the heading of a process, which has none. */
    public class TimelineRow {
        public Track? track;
        public TraceProcess process;
        public int y; /* below the axis, before it is scrolled */
        public int height;

        public string title () {
            return track != null ? track.title () : process.title ();
        }
    }

    public class TimelineChart : Gtk.Widget, Gtk.Scrollable {
        public const int PADDING = 4;          /* above and below the lanes of a track */
        public const double SHORTEST = 2;      /* pixels; what is shorter is united */
        const double SMALLEST_SCALE = 0.02;    /* nanoseconds for a pixel */
        const double MOST_PIXELS = 1e13;       /* so that those of positions have decimals left */

        private Timeline? shown;
        private Gtk.Adjustment? across;
        private Gtk.Adjustment? down;
        private TimelinePainter painter;
        private TimelineInput input;
        private bool is_fitted = true;         /* all of the timeline is seen, however wide the widget is */

        public GenericArray<TimelineRow> rows = new GenericArray<TimelineRow> ();
        public double scale { get; private set; default = 1; } /* nanoseconds for a pixel */
        public int axis_height { get; private set; default = 28; }
        public int lane_height { get; private set; default = 20; }
        public int names_width { get; private set; default = 150; }

        /* What is selected; the row is null if nothing is. */
        public TimelineRow? selected_row { get; private set; }
        public uint selected_event { get; private set; }

        /* Of what was clicked at last, or null. */
        public string? details { get; private set; }

        public Timeline? timeline {
            get { return shown; }
            set {
                shown = value;
                details = null;
                selected_row = null;
                is_fitted = true;
                painter.forget ();
                make_rows ();
                queue_resize ();
                queue_draw ();
            }
        }

        class construct {
            set_css_name ("timeline");
            set_accessible_role (Gtk.AccessibleRole.IMG);
        }

        construct {
            painter = new TimelinePainter (this);
            focusable = true;
            has_tooltip = true;
            overflow = HIDDEN;
            update_property (Gtk.AccessibleProperty.LABEL, _("Timeline of the events"), -1);
            query_tooltip.connect (explain);
            Adw.StyleManager.get_default ().notify["dark"].connect (queue_draw);
            input = new TimelineInput (this);
        }

        /* --- the size --- */

        public Gtk.Adjustment hadjustment {
            get { return across; }
            construct set { across = take (across, value); }
        }

        public Gtk.Adjustment vadjustment {
            get { return down; }
            construct set { down = take (down, value); }
        }

        public Gtk.ScrollablePolicy hscroll_policy { get; set; }
        public Gtk.ScrollablePolicy vscroll_policy { get; set; }

        public bool get_border (out Gtk.Border border) {
            border = Gtk.Border () { left = (int16) names_width, top = (int16) axis_height };
            return true;
        }

        private Gtk.Adjustment take (Gtk.Adjustment? former, Gtk.Adjustment? given) {
            var taken = given ?? new Gtk.Adjustment (0, 0, 0, 0, 0, 0);

            if (former != null)
                former.value_changed.disconnect (queue_draw);
            taken.value_changed.connect (queue_draw);
            queue_allocate ();
            return taken;
        }

        public override void measure (Gtk.Orientation orientation, int for_size, out int minimum,
                                      out int natural, out int minimum_baseline, out int natural_baseline) {
            minimum = orientation == HORIZONTAL ? 200 : 120;
            natural = orientation == HORIZONTAL ? 600 : 300;
            minimum_baseline = natural_baseline = -1;
        }

        private void make_rows () {
            TraceProcess? process = null;

            rows.remove_range (0, rows.length);
            if (shown == null)
                return;
            foreach (unowned var track in shown.tracks) {
                if (track.process != process)
                    rows.add (new TimelineRow () { process = track.process });
                process = track.process;
                rows.add (new TimelineRow () { process = process, track = track });
            }
        }

        private void place_rows (int width) {
            var y = 0;
            int text_height;

            create_pango_layout ("X").get_pixel_size (null, out text_height);
            lane_height = int.max (text_height + 2, 18);
            axis_height = text_height + 10;
            names_width = int.min (int.max (width / 5, 110), 220);
            foreach (unowned var row in rows) {
                row.y = y;
                if (row.track is EventTrack)
                    row.height = (int) ((EventTrack) row.track).n_lanes * lane_height + 2 * PADDING;
                else
                    row.height = row.track == null ? lane_height + 6 : 2 * lane_height + 2 * PADDING;
                y += row.height;
            }
            var page = double.max (get_height () - axis_height, 1);
            down.configure (down.value, 0, double.max (y, page), lane_height, page * 0.9, page);
        }

        public override void size_allocate (int width, int height, int baseline) {
            var start = first_time ();

            place_rows (width);
            if (is_fitted)
                scale = largest_scale ();
            show_from (start);
        }

        public override void css_changed (Gtk.CssStyleChange change) {
            base.css_changed (change);
            painter.forget ();
            queue_resize ();
        }

        /* --- times --- */

        public double plot_width () {
            return int.max (get_width () - names_width, 1);
        }

        private int64 duration () {
            return shown != null ? int64.max (shown.duration, 1) : 1;
        }

        private double largest_scale () {
            return duration () / plot_width ();
        }

        public double first_time () {
            return across.value * scale;
        }

        public double time_at (double x) {
            return (across.value + x - names_width) * scale;
        }

        public double x_of (int64 time) {
            return time / scale - across.value + names_width;
        }

        /* What is seen: from the first time on, and before the second. */
        public void get_range (out int64 from, out int64 to) {
            from = (int64) first_time ();
            to = (int64) double.min (time_at (get_width ()) + 1, int64.MAX / 2 * 1.99);
        }

        private void show_from (double time) {
            var page = plot_width ();

            across.configure (time / scale, 0, double.max (duration () / scale, page), page / 10,
                              page * 0.9, page);
            queue_draw ();
        }

        /* What is at x stays there. */
        public void set_scale_at (double wanted, double x) {
            var time = time_at (x);
            var smallest = double.max (SMALLEST_SCALE, duration () / MOST_PIXELS);

            scale = double.min (double.max (wanted, smallest), largest_scale ());
            is_fitted = scale == largest_scale ();
            show_from (time - (x - names_width) * scale);
        }

        public void zoom (double factor) {
            var x = names_width + plot_width () / 2;
            int64 from, to;

            get_range (out from, out to);
            if (selected_row != null) {
                var track = (EventTrack) selected_row.track;
                if (track.starts[selected_event] < to && track.end_of (selected_event) > from)
                    x = (x_of (int64.max (track.starts[selected_event], from))
                         + x_of (int64.min (track.end_of (selected_event), to))) / 2;
            }
            set_scale_at (scale / factor, x);
        }

        public void zoom_to_all () {
            set_scale_at (largest_scale (), names_width);
        }

        public void zoom_to (int64 start, int64 end) {
            set_scale_at ((end - start) * 1.2 / plot_width (), names_width);
            show_from ((start + end) / 2.0 - plot_width () * scale / 2);
        }

        /* --- what is where --- */

        public TimelineRow? row_at (double y) {
            var at = y - axis_height + down.value;

            if (y < axis_height)
                return null;
            foreach (unowned var row in rows)
                if (at >= row.y && at < row.y + row.height)
                    return row;
            return null;
        }

        /* Where it is drawn, one pixel wide at least. */
        public void get_extent (Bar bar, out double left, out double right) {
            left = double.max (x_of (bar.start), names_width - 8);
            right = double.min (double.max (x_of (bar.end), left + 1), get_width () + 8);
        }

        public TimelineRow? bar_at (double x, double y, out Bar bar) {
            var row = row_at (y);
            Bar? found = null;
            int64 from, to;

            bar = Bar ();
            if (row == null || !(row.track is EventTrack) || x < names_width)
                return null;
            var track = (EventTrack) row.track;
            var lane = (int) Math.floor ((y - axis_height + down.value - row.y - PADDING) / lane_height);
            if (lane < 0 || lane >= track.n_lanes)
                return null;
            get_range (out from, out to);
            track.each_bar (lane, from, to, SHORTEST * scale, (candidate) => {
                double left, right;
                get_extent (candidate, out left, out right);
                if (x >= left - 1 && x < right + 1)
                    found = candidate;
            });
            if (found == null)
                return null;
            bar = found;
            return row;
        }

        /* --- what is selected --- */

        public void select_at (double x, double y) {
            Bar bar;
            var row = bar_at (x, y, out bar);

            selected_row = row != null && bar.n_events == 1 ? row : null;
            selected_event = bar.event;
            show_details (row != null ? describe (row, bar, " · ") : null);
        }

        private void show_details (string? text) {
            details = text;
            update_property (Gtk.AccessibleProperty.DESCRIPTION, text ?? "", -1);
            queue_draw ();
        }

        public void select (TimelineRow row, uint event) {
            var track = (EventTrack) row.track;
            var bar = Bar () {
                event = event,
                n_events = 1,
                start = track.starts[event],
                end = track.end_of (event),
            };

            selected_row = row;
            selected_event = event;
            show_details (describe (row, bar, " · "));
            reveal (row, track.lane_of (event), bar);
        }

        private void reveal (TimelineRow row, uint lane, Bar bar) {
            var top = row.y + PADDING + (int) lane * lane_height;
            int64 from, to;

            down.clamp_page (top, top + lane_height);
            get_range (out from, out to);
            if (bar.end <= from || bar.start >= to)
                show_from ((bar.start + bar.end) / 2.0 - plot_width () * scale / 2);
        }

        /* The first event that is seen. */
        public void select_first () {
            int64 from, to;

            get_range (out from, out to);
            foreach (unowned var row in rows) {
                if (!(row.track is EventTrack) || row.y + row.height <= down.value)
                    continue;
                int64 first = -1;
                ((EventTrack) row.track).each_bar (0, from, to, 0, (bar) => {
                    if (first < 0)
                        first = bar.event;
                });
                if (first >= 0) {
                    select (row, (uint) first);
                    return;
                }
            }
        }

        private string describe (TimelineRow row, Bar bar, string separator) {
            var track = (EventTrack) row.track;
            var profile_row = shown.rows[track.names[bar.event]];
            string[] parts = {};

            if (bar.n_events == 1) {
                parts += cut_text (profile_row.name, 300);
                if (profile_row.category != "")
                    parts += cut_text (profile_row.category, 100);
            } else {
                parts += _("%u events that are too short to be told apart").printf (bar.n_events);
            }
            parts += _("Start: %s").printf (exact_text (bar.start));
            parts += _("Duration: %s").printf (exact_text (bar.end - bar.start));
            parts += cut_text (track.title (), 100);
            return string.joinv (separator, parts);
        }

        private bool explain (int x, int y, bool is_keyboard, Gtk.Tooltip tooltip) {
            var row = row_at (y);
            Bar bar;

            if (is_keyboard && details != null)
                tooltip.set_text (details);
            else if (row == null || is_keyboard)
                return false;
            else if (x < names_width)
                tooltip.set_text (cut_text (row.title (), 300));
            else if (row.track is CounterTrack)
                tooltip.set_text (painter.value_at ((CounterTrack) row.track, (int64) time_at (x)));
            else if (bar_at (x, y, out bar) != null)
                tooltip.set_text (describe (row, bar, "\n"));
            else
                return false;
            return true;
        }

        public override void snapshot (Gtk.Snapshot snapshot) {
            painter.paint (snapshot);
        }
    }
}
