#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Widgets from Python, on the display that run-on-screen.py makes."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "style"))

import gi  # noqa: E402

gi.require_version("Gtk", "4.0")

import gtorch as torch  # noqa: E402
import tap  # noqa: E402
from gi.repository import GLib, GTorch, GTorchGtk, GTorchPlot, Gtk  # noqa: E402
from gtorch import gtk, nn, plot  # noqa: E402

Gtk.init()


def wait_until(condition):
    end = GLib.get_monotonic_time() + 20_000_000
    while not condition() and GLib.get_monotonic_time() < end:
        GLib.MainContext.default().iteration(False)
    assert condition(), "nothing happened for 20 seconds"


@tap.case
def the_modules_are_the_namespaces():
    assert gtk.Plot is GTorchGtk.Plot and plot.Figure is GTorchPlot.Figure
    assert {"Plot", "ParameterList"} <= set(dir(gtk)) and "PlotClass" not in dir(gtk)
    with tap.raises(AttributeError, "module 'gtorch.gtk' has no attribute 'Plott'"):
        gtk.Plott  # noqa: B018


@tap.case
def widgets_are_made_with_properties_of_both_libraries():
    widget = gtk.Plot(plot.Figure(title="a"), hexpand=True, margin_top=6)
    assert widget.figure.title == "a" and widget.get_hexpand() and widget.get_margin_top() == 6
    widget.append("loss", 0, 1)
    widget.append(label="loss", x=1, y=0.5)
    assert widget.figure.get_axes().items[0].n_points == 2
    panel = gtk.DevicePanel("cpu", interval=500)
    assert panel.device == torch.device("cpu") and panel.interval == 500
    with tap.raises(ValueError, "gtk_device_panel_set_interval: 5 is not from 100 to 3600000 milliseconds"):
        panel.interval = 5
    with tap.raises(AttributeError, "hexpant"):
        widget.hexpant = True


@tap.case
def a_class_of_the_program_is_derived():
    class Mine(gtk.Plot):
        def __init__(self):
            super().__init__(vexpand=True)
            self.count = 3

    mine = Mine()
    assert mine.count == 3 and mine.get_vexpand() and mine.figure is None


@tap.case
def a_list_becomes_a_texture():
    paintable = gtk.TensorPaintable(tensor=[[0, 1, 2], [3, 4, 5]], colormap="magma")
    wait_until(lambda: not paintable.loading)
    assert (paintable.texture.get_width(), paintable.colormap) == (3, plot.Colormap.MAGMA)
    with tap.raises(TypeError, "set_tensor(): tensor must be a Tensor"):
        paintable.tensor = "a"


@tap.case
def parameters_have_rows():
    rows = gtk.ParameterList(nn.Linear(3, 2)).rows
    assert [row.shape for row in rows] == ["2 × 3", "2"]


def small_trainer(**settings):
    model = nn.Linear(2, 1)
    data = GTorch.TensorDataset.new([torch.ones(8, 2), torch.ones(8, 1)])
    sgd = torch.optim.SGD(model.parameters(), lr=0.01)
    return torch.train.Trainer(model, GTorch.DataLoader.new(data, 2, False), nn.MSELoss(), sgd, **settings)


@tap.case
def the_exception_of_a_handler_ends_a_run_of_the_widget():
    for threaded in True, False:
        trainer, errors = small_trainer(n_epochs=1000, threaded=threaded), []
        progress = gtk.TrainerProgress(trainer)

        def handle(_trainer, step, _loss):
            if step == 3:
                raise LookupError("that is enough")

        def ended(widget, result):
            try:
                widget.run_finish(result)
                errors.append(None)
            except GLib.Error as error:
                errors.append(error)

        trainer.connect("step-done", handle)
        printed, sys.excepthook = [], lambda kind, *_rest: printed.append(kind)
        try:
            progress.run_async(ended)
            wait_until(lambda: errors)
        finally:
            sys.excepthook = sys.__excepthook__
        assert errors[0].message == "a handler of the trainer: LookupError: that is enough", errors
        assert trainer.step == 3 and not progress.running and printed == [LookupError], (trainer.step, printed)


tap.main()
