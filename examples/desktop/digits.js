#!/usr/bin/env -S gjs -m
// SPDX-License-Identifier: LGPL-2.1-or-later
// SPDX-FileCopyrightText: The GTorch authors

// A window in which a network learns to read digits, with its loss, its progress and what it reads.

import Gio from 'gi://Gio';
import GLib from 'gi://GLib';
import GTorch from 'gi://GTorch?version=1';
import GTorchGtk from 'gi://GTorchGtk?version=1';
import GTorchPlot from 'gi://GTorchPlot?version=1';
import Gtk from 'gi://Gtk?version=4.0';
import System from 'system';

const N = 1797;
const SAMPLES = 12;
const {nn, optim} = GTorch;

const options = {start: false, epochs: '20', 'cancel-after': '0', 'close-after': '0'};
for (const argument of System.programArgs) {
    const [, name, value] = /^--([\w-]+)(?:=(.*))?$/.exec(argument) ?? [];
    if (!(name in options) || (value === undefined) !== (options[name] === false)) {
        printerr(`digits: no such option: ${argument}`);
        System.exit(1);
    }
    options[name] = value ?? true;
}
const here = Gio.File.new_for_uri(import.meta.url).get_parent();

// Returns images as [1797, 1, 8, 8] from 0 to 1, labels as [1797].
function loadDigits() {
    const gunzip = Gio.ZlibDecompressor.new(Gio.ZlibCompressorFormat.GZIP);
    const packed = here.resolve_relative_path('../data/digits.csv.gz').read(null);
    const lines = Gio.DataInputStream.new(Gio.ConverterInputStream.new(packed, gunzip));
    const pixels = [];
    const digits = [];
    for (let i = 0; i < N; i++) {
        const values = lines.read_line_utf8(null)[0].split(',').map(Number);
        for (const value of values.slice(0, 64))
            pixels.push(value / 16);
        digits.push(values[64]);
    }
    return [GTorch.tensor(pixels, {dtype: GTorch.float32}).view([N, 1, 8, 8]), GTorch.tensor(digits)];
}

function makeTrainer(images, labels) {
    const model = nn.Sequential(
        nn.Conv2d(1, 16, 3, {padding: 1}),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, {padding: 1}),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(512, 10));
    const dataset = GTorch.TensorDataset.new([images, labels]);
    return new GTorch.Trainer({
        module: model,
        loader: new GTorch.DataLoader({dataset, batch_size: 64, shuffle: true}),
        loss_module: nn.CrossEntropyLoss(),
        optimizer: optim.Adam(model.parameters(), {lr: 2e-3}),
        n_epochs: Number(options.epochs),
        max_ahead: 2, // the plot hears of each step, and need not be waited for
        threaded: true, // no part of it calls functions of JavaScript
    });
}

// The longest time in which the main loop did nothing else.
class Gaps {
    constructor() {
        this.longest = 0;
        this.last = GLib.get_monotonic_time();
        this.source = GLib.timeout_add(GLib.PRIORITY_HIGH, 1, () => {
            const now = GLib.get_monotonic_time();
            this.longest = Math.max(this.longest, now - this.last);
            this.last = now;
            return GLib.SOURCE_CONTINUE;
        });
    }

    end() {
        GLib.source_remove(this.source);
        return this.longest / 1000;
    }
}

// A row of digits, each above what the network reads.
function makeSamples(images) {
    const row = new Gtk.Box({spacing: 8, homogeneous: true});
    const labels = images.map(image => {
        const paintable = new GTorchGtk.TensorPaintable({colormap: GTorchPlot.Colormap.INK});
        paintable.set_tensor(image);
        const column = new Gtk.Box({orientation: Gtk.Orientation.VERTICAL, spacing: 4});
        const picture = new Gtk.Picture({paintable, alternative_text: 'a digit'});
        const label = new Gtk.Label({label: '?'});
        picture.set_size_request(56, 56);
        column.append(picture);
        column.append(label);
        row.append(column);
        return label;
    });
    return [row, labels];
}

function makeWindow(app) {
    const [images, digits] = loadDigits();
    const trainer = makeTrainer(images, digits);
    const samples = images.narrow(0, 0, SAMPLES);
    const [row, labels] = makeSamples(Array.from({length: SAMPLES}, (_, i) => samples.select(0, i)));
    const plot = new GTorchGtk.Plot({vexpand: true, hexpand: true});
    const progress = new GTorchGtk.TrainerProgress({trainer, hexpand: true});
    const button = new Gtk.Button({label: '_Train', use_underline: true, valign: Gtk.Align.CENTER});
    plot.follow_trainer(trainer);

    const parameters = new GTorchGtk.ParameterList({module: trainer.module, interval: 500});
    parameters.set_size_request(400, 240);
    const right = new Gtk.Box({orientation: Gtk.Orientation.VERTICAL, spacing: 12});
    right.append(parameters);
    right.append(new GTorchGtk.DevicePanel({device: GTorch.get_default_device()}));
    const top = new Gtk.Box({spacing: 12});
    top.append(plot);
    top.append(right);
    const bottom = new Gtk.Box({spacing: 12});
    bottom.append(progress);
    bottom.append(button);
    const box = new Gtk.Box({
        orientation: Gtk.Orientation.VERTICAL, spacing: 12,
        margin_top: 12, margin_bottom: 12, margin_start: 12, margin_end: 12,
    });
    for (const child of [top, row, bottom])
        box.append(child);
    const window = new Gtk.ApplicationWindow({
        application: app, title: 'Digits', default_width: 860, default_height: 620, child: box,
    });

    const start = () => {
        button.sensitive = false;
        const gaps = new Gaps();
        progress.run_async((_progress, result) => {
            const gap = gaps.end();
            let how = 'done';
            try {
                progress.run_finish(result);
            } catch (error) {
                const isCancelled = error.matches?.(Gio.IOErrorEnum, Gio.IOErrorEnum.CANCELLED);
                how = isCancelled ? 'cancelled' : error.message;
            }
            button.sensitive = true;
            trainer.module.eval();
            const read = GTorch.no_grad(() => trainer.module.forward(samples).argmax({dim: 1}).toArray());
            trainer.module.train(true);
            labels.forEach((label, i) => (label.label = `${read[i]}`));
            print(`desktop: ${how}, ${trainer.step} steps, longest gap of the main loop ` +
                `${gap.toFixed(1)} ms`);
            if (Number(options['close-after']) > 0) {
                GLib.timeout_add(GLib.PRIORITY_DEFAULT, 1000 * Number(options['close-after']), () => {
                    window.close();
                    return GLib.SOURCE_REMOVE;
                });
            }
        });
        if (Number(options['cancel-after']) > 0) {
            GLib.timeout_add(GLib.PRIORITY_DEFAULT, 1000 * Number(options['cancel-after']), () => {
                progress.cancellable.cancel();
                return GLib.SOURCE_REMOVE;
            });
        }
    };
    button.connect('clicked', start);
    if (options.start) {
        GLib.timeout_add(GLib.PRIORITY_DEFAULT, 500, () => {
            start();
            return GLib.SOURCE_REMOVE;
        });
    }
    return window;
}

GTorch.manual_seed(1);
const app = new Gtk.Application({
    application_id: 'org.example.Digits', flags: Gio.ApplicationFlags.NON_UNIQUE,
});
app.connect('activate', () => makeWindow(app).present());
System.exit(app.run([System.programInvocationName]));
