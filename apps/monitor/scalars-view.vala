/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The numbers of a program, such as its losses, each as a curve. */

namespace GTorchMonitor {
    public class ScalarsView : View {
        const uint PART = 20000; /* values in an answer */

        private class Curve {
            public string name;
            public GTorchGtk.Plot plot;
            public Gtk.Label value;
            public uint generation;
            public uint64 n_read;
        }

        private Program program;
        private GenericArray<Curve> curves = new GenericArray<Curve> ();
        private Gtk.FlowBox box = new Gtk.FlowBox () {
            selection_mode = NONE,
            homogeneous = true,
            column_spacing = 12,
            row_spacing = 12,
            min_children_per_line = 1,
            max_children_per_line = 3,
            valign = START,
        };

        public ScalarsView (Program program) {
            this.program = program;
            stack.add_named (make_waiting (program), "waiting");
            stack.add_named (new Adw.StatusPage () {
                icon_name = "org.gtorch.Monitor-curve-symbolic",
                title = _("No Numbers Yet"),
                description = _("The program has added no numbers, such as the loss of its steps."),
            }, "empty");
            stack.add_named (make_page (box, 1200), "curves");
        }

        public async void update () throws Error {
            var answer = yield program.ask ("ListScalars", null, "(a(stxd))");

            foreach (var item in answer.get_child_value (0)) {
                var name = item.get_child_value (0).get_string ();

                yield read (find (name), item.get_child_value (3).get_double ());
            }
            stack.visible_child_name = curves.length > 0 ? "curves" : "empty";
        }

        private static GTorchPlot.Figure make_steps () {
            var figure = make_figure ();

            set_units (figure, _("step"), null);
            return figure;
        }

        private Curve find (string name) {
            foreach (var curve in curves)
                if (curve.name == name)
                    return curve;
            var title = new Gtk.Box (HORIZONTAL, 6);
            var curve = new Curve ();
            var heading = make_heading (name);

            curve.name = name;
            curve.value = new Gtk.Label (null);
            curve.value.add_css_class ("numeric");
            curve.value.add_css_class ("dim-label");
            curve.plot = new GTorchGtk.Plot (make_steps ());
            curve.plot.height_request = 200;
            curve.plot.width_request = 300;
            heading.hexpand = true;
            title.append (heading);
            title.append (curve.value);
            curves.add (curve);
            box.append (make_card (title, curve.plot));
            return curve;
        }

        private async void read (Curve curve, double last) throws Error {
            uint64 total = uint64.MAX;

            curve.value.label = "%.6g".printf (last);
            while (curve.n_read < total) {
                var answer = yield program.ask ("GetScalarValues",
                                                new Variant ("(stu)", curve.name, curve.n_read, PART),
                                                "(uta(xxd))");
                var generation = answer.get_child_value (0).get_uint32 ();
                var values = answer.get_child_value (2);

                total = answer.get_child_value (1).get_uint64 ();
                if (generation != curve.generation) {
                    /* Some were dropped: from the beginning. */
                    curve.generation = generation;
                    curve.n_read = 0;
                    curve.plot.figure = make_steps ();
                    continue;
                }
                if (values.n_children () == 0)
                    return;
                foreach (var value in values)
                    curve.plot.append (curve.name, value.get_child_value (0).get_int64 (),
                                       value.get_child_value (2).get_double ());
                curve.n_read += values.n_children ();
                hide_legend (curve);
            }
        }

        /* The card has the name already. */
        private void hide_legend (Curve curve) throws Error {
            curve.plot.figure.get_axes (0, 0).show_legend = false;
        }
    }
}
