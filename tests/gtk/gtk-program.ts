// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// A program that tsc --strict accepts, and whose marked lines it refuses; gjs runs what tsc makes of it.

import GTorch from 'gi://GTorch?version=1';
import GTorchGtk from 'gi://GTorchGtk?version=1';
import GTorchPlot from 'gi://GTorchPlot?version=1';

declare function print(...values: unknown[]): void;
declare const imports: any;

imports.gi.versions.Gtk = '4.0';
imports.gi.Gtk.init();

const plot = new GTorchGtk.Plot({figure: new GTorchPlot.Figure({title: 'a'}), hexpand: true});
plot.append('loss', 0, 1);
const figure: GTorchPlot.Figure | null = plot.figure;
plot.vexpand = true; // of GTK
const panel = new GTorchGtk.DevicePanel('cpu', {interval: 500});
const device: GTorch.Device | null = panel.device;
const list = new GTorchGtk.ParameterList(GTorch.nn.Linear(2, 1));
const paintable = new GTorchGtk.TensorPaintable({tensor: [[1, 2], [3, 4]], colormap: 'magma'});
paintable.tensor = GTorch.rand([3, 4]);

async function train(trainer: GTorch.Trainer): Promise<boolean> {
    plot.follow_trainer(trainer);
    return await new GTorchGtk.TrainerProgress({trainer}).run_async();
}

function refused() {
    // @ts-expect-error a figure is wanted
    plot.figure = 'a';
    // @ts-expect-error a place is missing
    plot.append('loss', 0);
    // @ts-expect-error a trainer is wanted
    plot.follow_trainer(plot);
    // @ts-expect-error there is no such map
    paintable.colormap = 'rainbow';
}

if (figure?.n_rows !== 1 || device === null || list.rows?.get_n_items() !== 2)
    throw new Error('something else');
print(typeof train && typeof refused);
