// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Widgets from JavaScript, on the display that run-on-screen.py makes.

import Gdk from 'gi://Gdk?version=4.0';
import GLib from 'gi://GLib';
import GTorch from 'gi://GTorch?version=1';
import GTorchGtk from 'gi://GTorchGtk?version=1';
import GTorchPlot from 'gi://GTorchPlot?version=1';
import Gtk from 'gi://Gtk?version=4.0';

import {add, assert, equal, run, throws} from '../bindings/tap.js';

Gtk.init();

function waitUntil(condition) {
    const end = GLib.get_monotonic_time() + 20e6;
    const context = GLib.MainContext.default();
    while (!condition() && GLib.get_monotonic_time() < end)
        context.iteration(false);
    assert(condition(), 'nothing happened for 20 seconds');
}

add('a_tensor_becomes_a_texture', () => {
    const paintable = new GTorchGtk.TensorPaintable({colormap: GTorchPlot.Colormap.VIRIDIS});
    paintable.set_tensor(GTorch.rand([6, 9]));
    assert(paintable instanceof Gdk.Paintable);
    equal([paintable.get_intrinsic_width(), paintable.get_intrinsic_height()], [9, 6]);
    waitUntil(() => !paintable.is_loading());
    equal(paintable.texture.width, 9);
    throws(() => paintable.set_tensor(GTorch.zeros([2, 3, 5])), error => error.message.includes('[2, 3, 5]'));
});

add('a_plot_gets_points', () => {
    const plot = new GTorchGtk.Plot();
    plot.append('loss', 0, 1);
    plot.append('loss', 1, 0.5);
    const line = plot.figure.get_axes(0, 0).items.get_item(0);
    equal(line.get_n_points(), 2);
});

add('parameters_have_rows', () => {
    const list = new GTorchGtk.ParameterList({module: new GTorch.Linear({in_features: 3, out_features: 2})});
    equal(list.rows.get_n_items(), 2);
    equal(list.rows.get_item(0).shape, '2 × 3');
    waitUntil(() => !Number.isNaN(list.rows.get_item(1).norm));
});

await run();
