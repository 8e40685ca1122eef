#!/usr/bin/env -S gjs -m
// SPDX-License-Identifier: LGPL-2.1-or-later
// SPDX-FileCopyrightText: The GTorch authors

// Learns to read handwritten digits, saves and reloads the network, and draws the misread digits.

import Gio from 'gi://Gio';
import GLib from 'gi://GLib';
import GTorch from 'gi://GTorch?version=1';
import System from 'system';

const N = 1797;
const BATCH = 64;
const {nn, optim} = GTorch;

const options = {data: null, seed: '1', epochs: '20', output: 'digits.png', device: null};
for (const argument of System.programArgs) {
    const match = /^--(\w+)=(.*)$/.exec(argument);
    if (!match || !(match[1] in options)) {
        printerr(`digits: no such option: ${argument}`);
        System.exit(1);
    }
    options[match[1]] = match[2];
}
const here = Gio.File.new_for_uri(import.meta.url).get_parent();
const data = options.data ?? here.resolve_relative_path('../data/digits.csv.gz').get_path();

// Returns images as [1797, 1, 8, 8] from 0 to 1, labels as [1797].
function loadDigits(path) {
    const gunzip = Gio.ZlibDecompressor.new(Gio.ZlibCompressorFormat.GZIP);
    const packed = Gio.File.new_for_path(path).read(null);
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

function makeModel() {
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, {padding: 1}),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, {padding: 1}),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.25),
        nn.Linear(512, 10));
}

// Returns the digits that the model reads, without recording gradients.
function readDigits(model, images) {
    return GTorch.no_grad(() => model.forward(images).argmax({dim: 1}).toArray());
}

function train(model, images, labels, epochs) {
    const adam = optim.Adam(model.parameters(), {lr: 2e-3});
    const lossOf = nn.CrossEntropyLoss();
    const [n] = labels.shape;
    const losses = [];
    for (let epoch = 0; epoch < epochs; epoch++) {
        let total = 0;
        for (const index of GTorch.randperm(n).split(BATCH)) {
            total += index.shape[0] * GTorch.tidy(() => {
                const loss = lossOf.forward(model.forward(images.at(index)), labels.at(index));
                adam.zero_grad();
                loss.backward();
                adam.step();
                return loss.item();
            });
        }
        losses.push(total / n);
        print(`epoch ${epoch + 1} of ${epochs}: loss ${losses.at(-1).toFixed(4)}`);
    }
    return losses;
}

// Draws the digits that were misread, with their labels and what was read, and beside that picture one of the
// losses.
async function draw(path, losses, images, labels, read) {
    let plot;
    try {
        ({default: plot} = await import('gi://GTorchPlot?version=1'));
    } catch (error) {
        print(`digits: draws no pictures: ${error.message}`);
        return;
    }
    const misread = [...labels.keys()].filter(i => read[i] !== labels[i]).slice(0, 16);
    if (misread.length > 0) {
        const titles = misread.map(i => `${labels[i]} read as ${read[i]}`);
        plot.images(images.at(GTorch.tensor(misread)).neg().add(1), {n_columns: 4, titles}).save(path);
    }
    const figure = plot.lines([losses], {labels: ['training']});
    Object.assign(figure.get_axes(), {x_label: 'epoch', y_label: 'loss', y_scale: 'log'});
    figure.save(path.replace(/(\.\w+)?$/, '-losses$1'));
}

const device = options.device ? new GTorch.Device(options.device) : GTorch.Device.get_default();
const reason = GTorch.DeviceManager.get_default().dup_reason();
print(`digits: on ${device.to_string()}, ${device.get_name()}${reason ? `; no GPU: ${reason}` : ''}`);
GTorch.set_default_device(device);
GTorch.manual_seed(Number(options.seed));
const [images, labels] = loadDigits(data);
const model = makeModel();
const held = GTorch.arange(N).remainder(5).eq(0);
const rest = held.logical_not();
const losses = train(model, images.at(rest), labels.at(rest), Number(options.epochs));
const testImages = images.at(held);
const right = labels.at(held).toArray();
model.eval();
const read = readDigits(model, testImages);

// The parameters go through a file into a new model, which must read the same digits.
const file = Gio.File.new_for_path('digits.safetensors');
GTorch.safetensors_save_file(model.state_dict(), null, file, null, null);
const [loaded] = GTorch.safetensors_load_file(file, false, null, null, null);
const again = makeModel();
again.load_state_dict(loaded);
again.eval();
if (readDigits(again, testImages).some((digit, i) => digit !== read[i]))
    throw new Error('the reloaded model reads otherwise');
await draw(options.output, losses, testImages, right, read);
const checksum = GLib.compute_checksum_for_data(GLib.ChecksumType.SHA256, file.load_contents(null)[1]);
const accuracy = 100 * right.filter((digit, i) => digit === read[i]).length / right.length;
print(`digits: accuracy ${accuracy.toFixed(2)} %, loss ${losses.at(-1).toFixed(6)}, ` +
    `weights ${checksum.slice(0, 16)}`);
