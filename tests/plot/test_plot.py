#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Plots in Python, of tensors on the device of GTORCH_TEST_DEVICE."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "style"))

import gi  # noqa: E402

gi.require_version("GTorchPlot", "1")

import gtorch as torch  # noqa: E402
import tap  # noqa: E402
from gi.repository import GLib, GTorchPlot  # noqa: E402

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


tap.main()
