#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Plots in Python, of tensors on the device of GTORCH_TEST_DEVICE."""

import inspect
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "style"))

import gi  # noqa: E402

gi.require_version("GTorchPlot", "1")

import gtorch as torch  # noqa: E402
import tap  # noqa: E402
from gi.repository import Gio, GLib, GTorchPlot  # noqa: E402
from gtorch import plot  # noqa: E402

DEVICE = torch.device(os.environ.get("GTORCH_TEST_DEVICE") or "cpu")


def on_device(tensor):
    return tensor.to(DEVICE)


def wait(begin, finish):
    """Calls an asynchronous function, and returns how often the main loop went round."""
    loop, end, turns = GLib.MainLoop(), [], [0]

    def done(item, result):
        try:
            end.append(finish(item, result))
        except GLib.Error as error:
            end.append(error)
        loop.quit()

    def turn():
        turns[0] += 1
        return GLib.SOURCE_CONTINUE

    source = GLib.idle_add(turn)
    begin(done)
    limit = GLib.timeout_add_seconds(20, loop.quit)
    loop.run()
    GLib.source_remove(source)
    assert end, "the function did not end"
    GLib.source_remove(limit)
    return end[0]


@tap.case
def lines_of_the_device_are_read():
    line = GTorchPlot.Line.new("a")
    x, y = on_device(torch.arange(4, dtype=torch.int64)), on_device(torch.tensor([1.0, 2.0, 4.0, 8.0]))
    assert line.set_values(x, y) and line.get_point(3) == (True, 3, 8)
    assert wait(lambda done: line.set_values_async(None, y[::2], None, done), GTorchPlot.Line.set_values_finish) is True
    assert line.get_n_points() == 2 and line.get_point(1) == (True, 1, 4)


@tap.case
def histograms_and_images_of_the_device_are_read():
    bars, image = GTorchPlot.Histogram.new(None), GTorchPlot.Image.new()
    values = on_device(torch.arange(12, dtype=torch.float32))
    finish = GTorchPlot.Histogram.set_values_finish
    assert wait(lambda done: bars.set_values_async(values, 3, None, done), finish) is True
    assert [bars.get_count(i) for i in range(3)] == [4, 4, 4]
    pixels = values.view(3, 4)
    assert wait(lambda done: image.set_pixels_async(pixels, None, done), GTorchPlot.Image.set_pixels_finish) is True
    assert (image.get_width(), image.get_height(), image.get_range()) == (4, 3, (0, 11))


@tap.case
def bad_tensors_raise():
    bad = on_device(torch.zeros(2, 3, 5))
    for call in lambda: GTorchPlot.image(bad), lambda: GTorchPlot.lines([bad], None):
        try:
            call()
        except GLib.Error as error:
            assert "[2, 3, 5]" in error.message, error.message
        else:
            raise AssertionError("nothing was raised")
    error = wait(lambda done: GTorchPlot.Image.new().set_pixels_async(bad, None, done),
                 GTorchPlot.Image.set_pixels_finish)
    assert isinstance(error, GLib.Error) and error.message.startswith("plot_image_set_pixels: "), error


@tap.case
def figures_become_bytes():
    figure = GTorchPlot.lines([on_device(torch.rand(20))], ["a"])
    begins = {GTorchPlot.Format.PNG: b"\x89PNG", GTorchPlot.Format.SVG: b"<?xml", GTorchPlot.Format.PDF: b"%PDF"}
    for kind, begin in begins.items():
        assert figure.to_bytes(kind).get_data().startswith(begin)


@tap.case
def properties_are_set_by_name():
    figure = GTorchPlot.Figure(title="a", scheme=GTorchPlot.Scheme.DARK)
    axes = figure.get_axes(0, 0)
    axes.props.x_label = "step"
    line = axes.add_line(None, on_device(torch.rand(5)), "a")
    line.props.style = GTorchPlot.Style.BOTH
    assert figure.props.n_rows == 1 and axes.props.items[0] is line and line.props.n_points == 5


@tap.case
def files_are_named_by_their_paths():
    with tempfile.TemporaryDirectory() as folder:
        paths = [f"{folder}/a.svg", pathlib.Path(folder) / "b.svg", Gio.File.new_for_path(f"{folder}/c.svg")]
        figure = plot.lines([on_device(torch.rand(5))])
        for path in paths:
            assert figure.save(path)
        assert wait(lambda done: figure.save_async(f"{folder}/d.svg", callback=done), plot.Figure.save_finish) is True
        assert all(os.path.getsize(f"{folder}/{name}.svg") > 1000 for name in "abcd")


@tap.case
def arguments_have_defaults_and_names():
    assert plot.histogram(on_device(torch.rand(100)), n_bins=7).get_axes().items[0].n_bins == 7
    axes = plot.Figure().get_axes(column=1)
    assert axes.add_line(y=[1, 2, 4]).n_points == 3
    assert axes.add_line((0, 2), range(2), "b").get_point(1) == (True, 2, 1)
    assert str(inspect.signature(plot.lines)) == "(tensors, labels=None)"
    assert str(inspect.signature(plot.Axes.add_line)) == "(self, x, y, label=None)"
    assert plot.lines.__doc__ is not None and plot.Figure().to_bytes().get_size() > 100


@tap.case
def objects_are_made_with_properties():
    line = plot.Line("loss", color="#ff0000", style="both", width=3)
    assert (line.label, line.color, line.style, line.width) == ("loss", "#ff0000", plot.Style.BOTH, 3)
    figure = plot.Figure(title="a", scheme="dark", width=300)
    assert (figure.title, figure.scheme, figure.width) == ("a", plot.Scheme.DARK, 300)
    figure.title = "b"
    assert figure.get_title() == "b" and repr(figure).startswith("<GTorchPlot.Figure object at ")
    for wrong, text in ({"heigth": 3}, "no argument 'heigth'"), ({"scheme": "blue"}, "'light' or 'dark'"), \
            ({"width": 0}, "Figure.width must be from 1 to 14400, not 0"), ({"n_rows": 1}, "n_rows can only be read"):
        with tap.raises((TypeError, ValueError), text):
            plot.Figure(**wrong)
    with tap.raises(ValueError, "“red” is no colour"):
        plot.Line(color="red")
    with tap.raises(Exception, "plot_line_set_points: x has 2 numbers and y 1: both must have as many"):
        line.set_points([1, 2], [3])


TIMES = [1796043809.0, 1796043810.5, 1796043811.0]  # seconds: float32 has steps of 128 there


@tap.case
def lists_keep_all_digits():
    axes = plot.Figure().get_axes()
    line = axes.add_line(TIMES, [1, 1e300, -1e-300])
    assert [line.get_point(i)[1:] for i in range(3)] == [*zip(TIMES, [1, 1e300, -1e-300])]
    line = plot.lines([tuple(TIMES)]).get_axes().items[0]
    assert [line.get_point(i)[2] for i in range(3)] == TIMES
    line.set_values(None, [torch.tensor(1.5), TIMES[1], 7])  # of which one has a dtype of its own
    assert [line.get_point(i)[2] for i in range(3)] == [1.5, TIMES[1], 7]
    assert wait(lambda done: line.set_values_async(TIMES, TIMES, None, done), plot.Line.set_values_finish) is True
    assert line.get_point(1) == (True, TIMES[1], TIMES[1])
    assert axes.add_histogram(TIMES, 4).get_bounds() == (TIMES[0], TIMES[2])
    assert [axes.add_histogram(TIMES, 4).get_count(i) for i in range(4)] == [1, 0, 0, 2]
    assert axes.add_image([TIMES, TIMES]).get_range() == axes.add_matrix([TIMES]).get_range() == (TIMES[0], TIMES[2])
    assert plot.image([[torch.tensor(TIMES, dtype=torch.float64), TIMES]][0]).get_axes().items[0].get_range() == \
        (TIMES[0], TIMES[2])
    assert plot.image([[True, False]]).get_axes().items[0].get_range() == (0, 1)
    assert axes.add_line(None, [2**53 - 1, 0]).get_point(0) == (True, 0, 2**53 - 1)
    line.append(TIMES[1], TIMES[2])
    assert line.get_point(3) == (True, TIMES[1], TIMES[2])
    line.set_points(TIMES, TIMES)
    assert line.get_point(1) == (True, TIMES[1], TIMES[1])
    axes.set_x_limits(TIMES[0], TIMES[1])
    assert axes.get_x_limits() == (TIMES[0], TIMES[1])
    with tap.raises(Exception, "y is of complex"):
        axes.add_line(None, [1j])


@tap.case
def the_default_dtype_stays_that_of_tensors():
    assert torch.tensor(TIMES).dtype == torch.float32 and torch.tensor([[0.5]]).dtype == torch.float32


@tap.case
def logarithmic_axes_refuse_what_has_no_place():
    axes = plot.Figure().get_axes()
    axes.set_y_limits(-1, 5)
    with tap.raises(ValueError, "plot_axes_set_y_scale: from -1 to 5: the ends of a logarithmic axis must be positive"):
        axes.y_scale = "log"
    assert axes.y_scale == plot.Scale.LINEAR
    axes.x_scale = "log"
    with tap.raises(ValueError, "plot_axes_set_x_limits: from 0 to 5: the ends of a logarithmic axis must be positive"):
        axes.set_x_limits(0, 5)


@tap.case
def what_is_missing_is_named():
    program = "try:\n    from gtorch import plot\nexcept ImportError as error:\n    print(error.name, error)"
    paths = [path for path in os.environ.get("GI_TYPELIB_PATH", "").split(":") if "libraries" not in path]
    found = {**os.environ, "GI_TYPELIB_PATH": ":".join(paths)}
    done = subprocess.run([sys.executable, "-c", program], env=found, capture_output=True, text=True, check=True)
    if not done.stdout:
        raise tap.Skip("the library is installed")
    assert "gtorch.plot needs GTorchPlot-1.typelib of the library gtorch-plot-1" in done.stdout, done.stdout


tap.main()
