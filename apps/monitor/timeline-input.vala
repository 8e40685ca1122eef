/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Mouse, touch pad, touch screen and keys of a timeline. What scrolls without keys is up to the window that
 * the timeline scrolls in. */

namespace GTorchMonitor {
    public class TimelineInput : Object {
        const double STEP = 1.5;      /* of a key, or of a step of a wheel */
        const double THRESHOLD = 4;   /* pixels, from which on a click is none */

        private unowned TimelineChart chart;
        private Gtk.EventControllerScroll scroll = new Gtk.EventControllerScroll (VERTICAL);
        private Gtk.GestureDrag drag = new Gtk.GestureDrag ();
        private Gtk.GestureZoom pinch = new Gtk.GestureZoom ();
        private bool is_dragging;
        private double pointer_x;
        private double begin_across;
        private double begin_down;
        private double begin_scale;

        public TimelineInput (TimelineChart chart) {
            var motion = new Gtk.EventControllerMotion ();
            var click = new Gtk.GestureClick ();
            var keys = new Gtk.EventControllerKey ();

            this.chart = chart;
            motion.motion.connect ((x, y) => pointer_x = x);
            scroll.scroll.connect (zoom_by_wheel);
            click.pressed.connect (() => chart.grab_focus ());
            click.released.connect (click_at);
            keys.key_pressed.connect ((key, code, state) => press (key, state));
            drag.drag_begin.connect (begin_drag);
            drag.drag_update.connect (update_drag);
            drag.drag_end.connect (() => chart.set_cursor (null));
            pinch.begin.connect (() => begin_scale = chart.scale);
            pinch.scale_changed.connect (zoom_by_pinch);
            foreach (var controller in new Gtk.EventController[] { motion, scroll, click, keys, drag, pinch })
                chart.add_controller (controller);
        }

        private bool zoom_by_wheel (double dx, double dy) {
            if (!(Gdk.ModifierType.CONTROL_MASK in scroll.get_current_event_state ()))
                return false;
            chart.set_scale_at (chart.scale * Math.pow (STEP, dy), double.max (pointer_x, chart.names_width));
            return true;
        }

        private void zoom_by_pinch (double factor) {
            double x, y;

            if (pinch.get_bounding_box_center (out x, out y) && factor > 0)
                chart.set_scale_at (begin_scale / factor, double.max (x, chart.names_width));
        }

        private void click_at (int n, double x, double y) {
            Bar bar;

            if (n == 1)
                chart.select_at (x, y);
            else if (chart.bar_at (x, y, out bar) != null && n == 2)
                chart.zoom_to (bar.start, bar.end);
        }

        private void begin_drag () {
            is_dragging = false;
            begin_across = chart.hadjustment.value;
            begin_down = chart.vadjustment.value;
            /* The window that it scrolls in is dragged by fingers. */
            if (drag.get_current_event_device ()?.source == Gdk.InputSource.TOUCHSCREEN)
                drag.set_state (DENIED);
        }

        private void update_drag (double x, double y) {
            if (!is_dragging && x.abs () < THRESHOLD && y.abs () < THRESHOLD)
                return;
            is_dragging = true;
            drag.set_state (CLAIMED);
            chart.set_cursor_from_name ("grabbing");
            chart.hadjustment.value = begin_across - x;
            chart.vadjustment.value = begin_down - y;
        }

        private bool press (uint key, Gdk.ModifierType state) {
            var modifiers = state & (Gdk.ModifierType.CONTROL_MASK | Gdk.ModifierType.ALT_MASK);

            if (modifiers == Gdk.ModifierType.CONTROL_MASK && select (key))
                return true;
            if (modifiers != 0 && modifiers != Gdk.ModifierType.CONTROL_MASK)
                return false;
            switch (key) {
            case Gdk.Key.plus:
            case Gdk.Key.equal:
            case Gdk.Key.KP_Add:
                chart.zoom (STEP);
                return true;
            case Gdk.Key.minus:
            case Gdk.Key.KP_Subtract:
                chart.zoom (1 / STEP);
                return true;
            case Gdk.Key.@0:
            case Gdk.Key.KP_0:
                chart.zoom_to_all ();
                return true;
            case Gdk.Key.Return:
            case Gdk.Key.KP_Enter:
                return zoom_to_selected ();
            }
            return modifiers == 0 && move (key);
        }

        private bool zoom_to_selected () {
            if (chart.selected_row == null)
                return false;
            var track = (EventTrack) chart.selected_row.track;
            chart.zoom_to (track.starts[chart.selected_event], track.end_of (chart.selected_event));
            return true;
        }

        private bool move (uint key) {
            unowned var across = chart.hadjustment;
            unowned var down = chart.vadjustment;

            switch (key) {
            case Gdk.Key.Left:
                across.value -= across.step_increment;
                return true;
            case Gdk.Key.Right:
                across.value += across.step_increment;
                return true;
            case Gdk.Key.Up:
                down.value -= down.step_increment;
                return true;
            case Gdk.Key.Down:
                down.value += down.step_increment;
                return true;
            case Gdk.Key.Page_Up:
                down.value -= down.page_increment;
                return true;
            case Gdk.Key.Page_Down:
                down.value += down.page_increment;
                return true;
            case Gdk.Key.Home:
                across.value = 0;
                return true;
            case Gdk.Key.End:
                across.value = across.upper;
                return true;
            }
            return false;
        }

        /* The event before or behind, the one above, or the first one below. */
        private bool select (uint key) {
            int64 found = -1;

            if (key != Gdk.Key.Left && key != Gdk.Key.Right && key != Gdk.Key.Up && key != Gdk.Key.Down)
                return false;
            if (chart.selected_row == null) {
                chart.select_first ();
                return true;
            }
            var track = (EventTrack) chart.selected_row.track;
            if (key == Gdk.Key.Left || key == Gdk.Key.Right)
                found = track.neighbour (chart.selected_event, key == Gdk.Key.Left ? -1 : 1);
            else
                found = key == Gdk.Key.Up ? track.parent (chart.selected_event)
                                          : track.child (chart.selected_event);
            if (found >= 0)
                chart.select (chart.selected_row, (uint) found);
            return true;
        }
    }
}
