// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Plots in Vala: arguments with defaults are left out.

void test_defaults () {
    try {
        var values = GTorch.arange (0, 6, 1, GTorch.DType.FLOAT64);
        var figure = new GTorchPlot.Figure ();
        var axes = figure.get_axes ();
        unowned GTorchPlot.Line line = axes.add_line (null, values);
        unowned GTorchPlot.Histogram bars = figure.get_axes (0, 1).add_histogram (values, 3);
        assert_cmpuint (line.n_points, CompareOperator.EQ, 6);
        assert_null (line.label);
        assert_cmpuint (bars.n_bins, CompareOperator.EQ, 3);
        assert_cmpfloat (bars.get_count (2), CompareOperator.EQ, 2);
        assert_cmpuint ((uint) figure.to_bytes ().get_size (), CompareOperator.GT, 100);
        assert_cmpuint (GTorchPlot.images (GTorch.zeros ({ 4, 2, 2 })).n_columns, CompareOperator.EQ, 2);
        figure.set_width_ratios ({ 2, 1 });
        assert_cmpuint (figure.get_width_ratios ().length, CompareOperator.EQ, 2);
    } catch (GLib.Error error) {
        assert_not_reached ();
    }
}

void test_files () {
    try {
        var figure = GTorchPlot.lines ({ GTorch.zeros ({ 3 }) });
        figure.save (File.new_for_path ("/nowhere/a.bmp"));
        assert_not_reached ();
    } catch (GLib.Error error) {
        assert_true (error.message.has_prefix ("plot_figure_save: "));
    }
}

int main (string[] args) {
    Test.init (ref args);
    Test.add_func ("/GTorchPlot/vala/arguments_have_defaults", test_defaults);
    Test.add_func ("/GTorchPlot/vala/files_are_named", test_files);
    return Test.run ();
}
