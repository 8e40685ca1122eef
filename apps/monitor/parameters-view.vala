/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The parameters of a program's modules, with histograms of the one that is selected. */

namespace GTorchMonitor {
    public class Parameter : Object {
        public string module { get; construct; }
        public string name { get; construct; }
        public string shape { get; construct; }
        public string dtype { get; construct; }
        public string device { get; construct; }

        public Parameter (string module, Variant item) {
            var shape = new StringBuilder ("[");

            foreach (var size in item.get_child_value (1))
                shape.append_printf ("%s%s", shape.len > 1 ? ", " : "", size.get_int64 ().to_string ());
            shape.append_c (']');
            Object (module: module, name: item.get_child_value (0).get_string (), shape: shape.str,
                    dtype: item.get_child_value (2).get_string (),
                    device: item.get_child_value (3).get_string ());
        }

        public string full_name () {
            return module + "/" + name;
        }
    }

    /* Values or gradients of a parameter: a histogram, and what they are like. */
    public class StatisticsCard : Gtk.Box {
        private GTorchGtk.Plot plot = new GTorchGtk.Plot (null);
        private Gtk.Label facts = new Gtk.Label (null) { wrap = true, xalign = 0 };
        private string title;

        public StatisticsCard (string title) {
            Object (orientation: Gtk.Orientation.VERTICAL, spacing: 6);
            this.title = title;
            add_css_class ("card");
            plot.height_request = 180;
            plot.vexpand = plot.hexpand = true;
            plot.margin_start = plot.margin_end = 6;
            facts.add_css_class ("caption");
            facts.add_css_class ("numeric");
            facts.margin_start = facts.margin_end = facts.margin_bottom = 12;
            var heading = make_heading (title);
            heading.margin_top = heading.margin_start = 12;
            append (heading);
            append (plot);
            append (facts);
        }

        public void show_statistics (Variant statistics) throws Error {
            var counts = statistics.lookup_value ("counts", new VariantType ("at"));
            var figure = make_figure ();

            plot.visible = counts != null;
            if (counts != null) {
                var histogram = new GTorchPlot.Histogram (title);
                var bins = new double[counts.n_children ()];
                var low = number_of (statistics, "minimum");
                var high = number_of (statistics, "maximum");

                for (size_t i = 0; i < bins.length; i++)
                    bins[i] = counts.get_child_value (i).get_uint64 ();
                if (!(low < high)) { /* one value: a bar around it */
                    low -= 0.5;
                    high += 0.5;
                }
                histogram.set_counts (low, high, bins);
                figure.get_axes (0, 0).add (histogram);
                figure.get_axes (0, 0).show_legend = false;
            }
            plot.figure = figure;
            facts.label = _("norm %.4g · mean %.4g ± %.4g · from %.4g to %.4g").printf (
                number_of (statistics, "norm"), number_of (statistics, "mean"),
                number_of (statistics, "standard-deviation"), number_of (statistics, "minimum"),
                number_of (statistics, "maximum"));
            var non_finite = size_of (statistics, "non-finite");
            if (non_finite > 0)
                facts.label = "%s\n%s".printf (_("%s of %s values are not finite").printf (
                    non_finite.to_string (), size_of (statistics, "n-values").to_string ()), facts.label);
        }
    }

    public class ParametersView : View {
        const uint PART = 5000; /* parameters in an answer */
        const uint MAX_SHOWN = 100000;
        const uint BINS = 50;

        private Program program;
        private GLib.ListStore parameters = new GLib.ListStore (typeof (Parameter));
        private Gtk.SingleSelection selection;
        private StatisticsCard values = new StatisticsCard (_("Values"));
        private StatisticsCard gradients = new StatisticsCard (_("Gradient"));
        private Gtk.Label message = new Gtk.Label (null) { wrap = true };
        private string modules = ""; /* what the list was made of */

        public ParametersView (Program program) {
            this.program = program;
            stack.add_named (make_waiting (program), "waiting");
            stack.add_named (new Adw.StatusPage () {
                icon_name = "org.gtorch.Monitor-parameters-symbolic",
                title = _("No Modules"),
                description = _("The program has added no module whose parameters could be shown."),
            }, "empty");
            stack.add_named (make_content (), "content");
        }

        private Gtk.Widget make_content () {
            var search = new Gtk.SearchEntry () { placeholder_text = _("Search for parameters") };
            var name = new Gtk.CClosureExpression (typeof (string), null, {}, (Callback) Parameter.full_name,
                                                   null, null);
            var filter = new Gtk.StringFilter (name) { match_mode = SUBSTRING };
            var filtered = new Gtk.FilterListModel (parameters, filter);
            selection = new Gtk.SingleSelection (filtered);
            var table = new Gtk.ColumnView (selection);
            var cards = new Gtk.Box (VERTICAL, 12);
            var left = new Gtk.Box (VERTICAL, 0);

            table.append_column (make_column (_("Parameter"), (item) => ((Parameter) item).full_name (),
                                              false));
            table.append_column (make_column (_("Shape"), (item) => ((Parameter) item).shape, true));
            table.append_column (make_column (_("Type"), (item) => ((Parameter) item).dtype, true));
            search.search_changed.connect (() => filter.search = search.text);
            search.margin_top = search.margin_bottom = search.margin_start = search.margin_end = 6;
            selection.notify["selected-item"].connect (() => update_statistics.begin ());
            left.append (search);
            left.append (new Gtk.ScrolledWindow () { child = table, vexpand = true });
            message.add_css_class ("dim-label");
            message.visible = false;
            cards.append (message);
            cards.append (values);
            cards.append (gradients);
            cards.margin_top = cards.margin_bottom = cards.margin_start = cards.margin_end = 12;
            return new Gtk.Paned (HORIZONTAL) {
                start_child = left,
                end_child = new Gtk.ScrolledWindow () { child = cards, hscrollbar_policy = NEVER },
                position = 460,
                shrink_start_child = false,
                shrink_end_child = false,
                vexpand = true,
            };
        }

        public async void update () throws Error {
            var answer = yield program.ask ("ListModules", null, "(a(su))");
            var list = answer.get_child_value (0);
            var text = list.print (false);

            if (text != modules) {
                modules = text;
                parameters.remove_all ();
                foreach (var module in list)
                    yield read (module.get_child_value (0).get_string ());
            }
            stack.visible_child_name = parameters.get_n_items () > 0 ? "content" : "empty";
            yield update_statistics ();
        }

        private async void read (string module) throws Error {
            uint first = 0, total = uint.MAX;

            while (first < total && parameters.get_n_items () < MAX_SHOWN) {
                var answer = yield program.ask ("ListParameters", new Variant ("(suu)", module, first, PART),
                                                "(ua(saxssb))");
                var list = answer.get_child_value (1);

                total = answer.get_child_value (0).get_uint32 ();
                if (list.n_children () == 0)
                    return;
                foreach (var item in list)
                    parameters.append (new Parameter (module, item));
                first += (uint) list.n_children ();
            }
        }

        private async void update_statistics () {
            var parameter = selection.selected_item as Parameter;

            if (parameter == null)
                return;
            try {
                var answer = yield program.ask ("GetParameterStatistics",
                                                new Variant ("(ssu)", parameter.module, parameter.name, BINS),
                                                "(a{sv})");
                var statistics = answer.get_child_value (0);
                var gradient = statistics.lookup_value ("gradient", VariantType.VARDICT);

                if (parameter != selection.selected_item)
                    return; /* another one was selected meanwhile */
                values.show_statistics (statistics);
                gradients.visible = gradient != null;
                if (gradient != null)
                    gradients.show_statistics (gradient);
                message.visible = false;
            } catch (Error error) {
                DBusError.strip_remote_error (error);
                message.label = error.message;
                message.visible = true;
            }
        }
    }
}
