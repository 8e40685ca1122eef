/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A device: its graphs, its sensors and the processes that use it. */

namespace GTorchMonitor {
    public class DevicePage : Adw.Bin {
        public GTorch.Device device { get; construct; }

        private Adw.PreferencesGroup sensors = new Adw.PreferencesGroup () { title = _("Sensors") };
        private Adw.PreferencesGroup processes = new Adw.PreferencesGroup () { title = _("Processes") };
        private GenericArray<Gtk.Widget> process_rows = new GenericArray<Gtk.Widget> ();
        private Gtk.Label temperature;
        private Gtk.Label power;
        private Gtk.Label fan;
        private Gtk.Label clocks;
        private GTorch.DeviceMonitor? monitor;

        public DevicePage (GTorch.Device device) {
            Object (device: device);
        }

        construct {
            var box = new Gtk.Box (VERTICAL, 24);
            var panel = new GTorchGtk.DevicePanel (device);

            box.append (panel);
            temperature = add_sensor (_("Temperature"));
            power = add_sensor (_("Power"));
            fan = add_sensor (_("Fan"));
            clocks = add_sensor (_("Clocks"));
            if (device.get_device_type () != GTorch.DeviceType.CPU) {
                box.append (sensors);
                box.append (processes);
            }
            child = make_page (box);
            open.begin ();
        }

        private Gtk.Label add_sensor (string title) {
            var row = new Adw.ActionRow () { title = title };
            var label = new Gtk.Label ("–");

            label.add_css_class ("numeric");
            label.add_css_class ("dim-label");
            row.add_suffix (label);
            sensors.add (row);
            return label;
        }

        private async void open () {
            try {
                monitor = yield device.open_monitor_async (null);
                monitor.notify.connect (update);
                monitor.processes.items_changed.connect (update_processes);
                update ();
                update_processes ();
            } catch (Error error) {
                sensors.description = error.message;
            }
        }

        private void update () {
            temperature.label = monitor.temperature >= 0 ? _("%d °C").printf (monitor.temperature) : "–";
            fan.label = monitor.fan_speed >= 0 ? "%d %%".printf (monitor.fan_speed) : "–";
            if (monitor.power >= 0 && monitor.power_limit >= 0)
                power.label = _("%.0f of %.0f W").printf (monitor.power, monitor.power_limit);
            else
                power.label = monitor.power >= 0 ? _("%.0f W").printf (monitor.power) : "–";
            if (monitor.sm_clock >= 0)
                clocks.label = _("%d MHz, memory %d MHz").printf (monitor.sm_clock, monitor.memory_clock);
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
