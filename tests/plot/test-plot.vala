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

void test_digits () {
    try {
        double[] times = { 1796043809.5, 1796043810, 1796043811 };
        var tensor = new GTorch.Tensor.from_doubles (times, { 3 }, GTorch.DType.FLOAT64);
        var axes = new GTorchPlot.Figure ().get_axes ();
        unowned GTorchPlot.Line line = axes.add_line (tensor, tensor);
        double x, y, low, high;
        assert_true (line.get_point (0, out x, out y));
        assert_cmpfloat (x, CompareOperator.EQ, times[0]);
        assert_cmpfloat (y, CompareOperator.EQ, times[0]);
        axes.add_image (tensor.unsqueeze (0)).get_range (out low, out high);
        assert_cmpfloat (low, CompareOperator.EQ, times[0]);
        assert_cmpfloat (high, CompareOperator.EQ, times[2]);
    } catch (GLib.Error error) {
        assert_not_reached ();
    }
}

void test_limits () {
    try {
        var axes = new GTorchPlot.Figure ().get_axes ();
        axes.y_scale = GTorchPlot.Scale.LOG;
        assert_true (axes.y_scale == GTorchPlot.Scale.LOG);
        axes.set_x_limits (-1, 5);
        axes.set_x_scale (GTorchPlot.Scale.LOG);
        assert_not_reached ();
    } catch (GLib.Error error) {
        assert_true (error.message.has_prefix ("plot_axes_set_x_scale: from -1 to 5: "));
    }
}

int main (string[] args) {
    Test.init (ref args);
    Test.add_func ("/GTorchPlot/vala/arguments_have_defaults", test_defaults);
    Test.add_func ("/GTorchPlot/vala/files_are_named", test_files);
    Test.add_func ("/GTorchPlot/vala/doubles_keep_their_digits", test_digits);
    Test.add_func ("/GTorchPlot/vala/limits_are_refused", test_limits);
    return Test.run ();
}
