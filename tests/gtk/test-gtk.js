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

function makeTrainer(settings) {
    const module = GTorch.nn.Linear(2, 1);
    const data = GTorch.TensorDataset.new([GTorch.ones([8, 2]), GTorch.ones([8, 1])]);
    return new GTorch.Trainer({
        module, loader: GTorch.DataLoader.new(data, 2, false), loss_module: GTorch.nn.MSELoss(),
        optimizer: GTorch.optim.SGD(module.parameters(), {lr: 0.01}), ...settings,
    });
}

add('a_run_that_would_call_functions_in_a_thread_is_refused', async () => {
    const trainer = makeTrainer({n_epochs: 2, threaded: true});
    const progress = new GTorchGtk.TrainerProgress({trainer});
    trainer.set_training_step((self, [x]) => self.module.forward(x).sum());
    throws(() => progress.run_async(),
        error => error.message.startsWith('run_async: threaded is true, and a function,'));
    assert(!trainer.is_running());
    trainer.threaded = false;
    await progress.run_async();
    equal(trainer.step, 8);
    throws(() => new GTorchGtk.TrainerProgress().run_async(null, null), error => error instanceof TypeError);
});

add('the_exception_of_a_handler_ends_a_run_of_the_widget', async () => {
    for (const threaded of [false, true]) {
        const trainer = makeTrainer({n_epochs: 1000, threaded});
        const progress = new GTorchGtk.TrainerProgress({trainer});
        const given = new RangeError('that is enough');
        trainer.connect('step-done', (_self, step) => {
            if (step === 3)
                throw given;
        });
        let found = null;
        try {
            await progress.run_async();
        } catch (error) {
            found = error;
        }
        assert(found === given, `${found}`);
        equal(trainer.step, 3);
    }
});

await run();
