/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A timeline that scrolls, above a line with what is selected. */

namespace GTorchMonitor {
    public class TimelineView : Gtk.Box {
        private TimelineChart chart = new TimelineChart ();
        private Gtk.Label details = new Gtk.Label (null) {
            xalign = 0,
            ellipsize = Pango.EllipsizeMode.END,
            selectable = true,
        };

        public Timeline? timeline {
            get { return chart.timeline; }
            set { chart.timeline = value; }
        }

        construct {
            orientation = VERTICAL;
            details.margin_top = details.margin_bottom = 6;
            details.margin_start = details.margin_end = 12;
            append (new Gtk.ScrolledWindow () { child = chart, vexpand = true });
            append (new Gtk.Separator (HORIZONTAL));
            append (details);
            chart.notify["details"].connect (show_details);
            show_details ();
        }

        private void show_details () {
            details.label = chart.details ?? _("Select an event to see its details.");
            details.tooltip_text = chart.details;
            details.sensitive = chart.details != null;
        }

        /* Buttons that zoom in, out, and to all of it. */
        public Gtk.Widget make_buttons () {
            var box = new Gtk.Box (HORIZONTAL, 0);

            box.add_css_class ("linked");
            add_button (box, "zoom-out-symbolic", _("Zoom Out"), () => chart.zoom (0.5));
            add_button (box, "zoom-fit-best-symbolic", _("Show All"), () => chart.zoom_to_all ());
            add_button (box, "zoom-in-symbolic", _("Zoom In"), () => chart.zoom (2));
            return box;
        }

        private delegate void Pressed ();

        private void add_button (Gtk.Box box, string icon, string tooltip, owned Pressed pressed) {
            var button = new Gtk.Button.from_icon_name (icon) { tooltip_text = tooltip };

            button.clicked.connect (() => pressed ());
            box.append (button);
        }
    }
}
