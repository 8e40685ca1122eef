/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A device: curves of what it has done lately, its sensors, and the processes that use it. */

namespace GTorchMonitor {
    /* A curve of the last minutes, with the latest value beside its title. */
    public class HistoryCard : Adw.Bin {
        const uint LENGTH = 120; /* values */

        private GTorchPlot.Line line = new GTorchPlot.Line ("");
        private GTorchPlot.Figure figure = make_figure ();
        private Gtk.Label value = new Gtk.Label ("–");
        private double seconds;

        /* The highest value is that of the axis; 0 if there is none. */
        public HistoryCard (string title, double highest, string unit) {
            var box = new Gtk.Box (HORIZONTAL, 6);
            var heading = make_heading (title);
            var plot = new GTorchGtk.Plot (figure);

            value.add_css_class ("numeric");
            value.add_css_class ("dim-label");
            heading.hexpand = true;
            box.append (heading);
            box.append (value);
            plot.height_request = 165;
            plot.width_request = 240;
            line.max_points = LENGTH;
            try {
                var axes = figure.get_axes (0, 0);

                axes.add (line);
                axes.show_legend = false;
            } catch (Error error) {
                warning ("%s", error.message);
            }
            set_units (figure, _("seconds"), unit);
            child = make_card (box, plot);
            if (highest > 0)
                set_highest (highest);
        }

        public void set_highest (double highest) {
            try {
                figure.get_axes (0, 0).set_y_limits (0, highest);
            } catch (Error error) {
                warning ("%s", error.message);
            }
        }

        /* Adds a value; a negative one is not known. */
        public void add (double number, string text, double passed) {
            seconds += passed;
            value.label = number >= 0 ? text : "–";
            if (number >= 0)
                line.append (seconds, number);
            try {
                figure.get_axes (0, 0).set_x_limits (double.max (seconds - LENGTH * passed, 0),
                                                     double.max (seconds, LENGTH * passed));
            } catch (Error error) {
                warning ("%s", error.message);
            }
        }
    }

    public class DevicePage : Adw.Bin {
        const uint INTERVAL = 1000; /* ms */

        public GTorch.Device device { get; construct; }

        private Gtk.Box box = new Gtk.Box (VERTICAL, 24);
        private Gtk.Label failure = new Gtk.Label (null) { wrap = true, visible = false };
        private HistoryCard load = new HistoryCard (_("Load"), 100, "%");
        private HistoryCard memory;
        private HistoryCard temperature = new HistoryCard (_("Temperature"), 100, "°C");
        private HistoryCard power = new HistoryCard (_("Power"), 0, "W");
        private Adw.PreferencesGroup sensors = new Adw.PreferencesGroup () { title = _("Details") };
        private Adw.PreferencesGroup processes = new Adw.PreferencesGroup () { title = _("Processes") };
        private GenericArray<Gtk.Widget> process_rows = new GenericArray<Gtk.Widget> ();
        private Gtk.Label fan;
        private Gtk.Label clocks;
        private GTorch.DeviceMonitor? monitor;
        private uint timer;

        public DevicePage (GTorch.Device device) {
            Object (device: device);
        }

        construct {
            var is_cpu = device.get_device_type () == GTorch.DeviceType.CPU;
            var curves = new Gtk.FlowBox () {
                selection_mode = NONE,
                homogeneous = true,
                column_spacing = 12,
                row_spacing = 12,
                max_children_per_line = 2,
            };

            memory = new HistoryCard (_("Memory"), gib (device.get_total_memory ()), "GiB");
            failure.add_css_class ("error");
            box.append (failure);
            curves.append (load);
            curves.append (memory);
            if (!is_cpu) {
                curves.append (temperature);
                curves.append (power);
            }
            /* The cards have no states of their own. */
            for (int i = 0; curves.get_child_at_index (i) != null; i++)
                curves.get_child_at_index (i).focusable = false;
            box.append (curves);
            fan = add_detail (_("Fan"), !is_cpu);
            clocks = add_detail (_("Clocks"), true);
            if (!is_cpu) {
                add_detail (_("PCI Address"), true).label = device.get_pci_id () ?? "–";
                add_detail (_("Compute Capability"), true).label =
                    "%d.%d".printf (device.get_compute_major (), device.get_compute_minor ());
            }
            add_detail (is_cpu ? _("Processors") : _("Multiprocessors"), true).label =
                device.get_n_multiprocessors ().to_string ();
            box.append (sensors);
            if (!is_cpu)
                box.append (processes);
            child = make_page (box, 1000);
            open.begin ();
        }

        private static double gib (uint64 n_bytes) {
            return n_bytes / 1024.0 / 1024.0 / 1024.0;
        }

        private Gtk.Label add_detail (string title, bool is_shown) {
            var row = new Adw.ActionRow () { title = title, visible = is_shown };
            var label = new Gtk.Label ("–") { selectable = true };

            label.add_css_class ("numeric");
            label.add_css_class ("dim-label");
            row.add_suffix (label);
            sensors.add (row);
            return label;
        }

        /* The monitor works as long as there is a window, so that the curves have no gaps. */
        private async void open () {
            try {
                monitor = yield device.open_monitor_async (null);
                monitor.set_interval (INTERVAL);
            } catch (Error error) {
                fail (error);
                return;
            }
            if (monitor.power_limit > 0)
                power.set_highest (monitor.power_limit);
            monitor.processes.items_changed.connect (update_processes);
            monitor.notify["error"].connect (() => {
                if (monitor.error != null)
                    fail (monitor.error);
            });
            update ();
            update_processes ();
            timer = Timeout.add (INTERVAL, () => {
                update ();
                return Source.CONTINUE;
            });
        }

        public override void dispose () {
            if (timer != 0)
                Source.remove (timer);
            timer = 0;
            base.dispose ();
        }

        private void fail (Error error) {
            failure.label = error.message;
            failure.visible = true;
        }

        private void update () {
            const double SECONDS = INTERVAL / 1000.0;
            var watts = monitor.power_limit >= 0
                ? _("%.0f of %.0f W").printf (monitor.power, monitor.power_limit)
                : _("%.0f W").printf (monitor.power);

            load.add (monitor.utilization, "%d %%".printf (monitor.utilization), SECONDS);
            memory.add (gib (monitor.memory_used),
                        _("%s of %s").printf (size_text (monitor.memory_used),
                                              size_text (device.get_total_memory ())), SECONDS);
            temperature.add (monitor.temperature, _("%d °C").printf (monitor.temperature), SECONDS);
            power.add (monitor.power, watts, SECONDS);
            fan.label = monitor.fan_speed >= 0 ? "%d %%".printf (monitor.fan_speed) : "–";
            if (monitor.sm_clock >= 0 && monitor.memory_clock >= 0)
                clocks.label = _("%d MHz, memory %d MHz").printf (monitor.sm_clock, monitor.memory_clock);
            else
                clocks.label = monitor.sm_clock >= 0 ? _("%d MHz").printf (monitor.sm_clock) : "–";
        }

        private void update_processes () {
            foreach (var row in process_rows)
                processes.remove (row);
            process_rows.remove_range (0, process_rows.length);
            for (uint i = 0; i < monitor.processes.get_n_items (); i++) {
                var process = (GTorch.DeviceProcess) monitor.processes.get_item (i);
                var row = make_row (process.get_name () ?? _("Unknown"), _("Process %u").printf (process.pid),
                                    process.memory_used > 0 ? size_text (process.memory_used) : "–");

                process_rows.add (row);
                processes.add (row);
            }
            processes.description = process_rows.length == 0 ? _("No process uses this device.") : null;
        }
    }
}
