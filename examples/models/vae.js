#!/usr/bin/env -S gjs -m
// SPDX-License-Identifier: LGPL-2.1-or-later
// SPDX-FileCopyrightText: The GTorch authors

// A variational autoencoder, which learns to draw handwritten digits.
//
// The encoder says for each image where its code may lie: a mean and a variance for each of eight numbers.
// The decoder draws an image from a code. The loss is what the images cost under the decoder's
// probabilities, and how far the codes are from a normal distribution: for this reason codes drawn from
// that give digits, too. The picture has digits above what the decoder makes of their codes, and digits
// that nobody wrote.

import Gio from 'gi://Gio';
import GTorch from 'gi://GTorch?version=1';
import GTorchPlot from 'gi://GTorchPlot?version=1';
import System from 'system';

const CODE = 8;
const HIDDEN = 256;
const {nn, optim} = GTorch;
const HELP = {
    device: 'where to compute, on a GPU if there is one',
    steps: 'how many batches to train on, 3000 by default',
    seed: 'where random numbers start, 1 by default',
    batch: 'images in a batch, 128 by default',
    data: 'the digits, digits.csv.gz',
    output: 'the picture to draw, vae.png by default',
};

const options = {device: null, steps: '3000', seed: '1', batch: '128', data: null, output: 'vae.png'};
for (const argument of System.programArgs) {
    const match = /^--(\w+)=(.*)$/.exec(argument);
    if (argument === '--help') {
        print('Learns to draw handwritten digits. Options:');
        for (const name of Object.keys(HELP))
            print(`  --${name}=…   ${HELP[name]}`);
        System.exit(0);
    }
    if (!match || !(match[1] in options)) {
        printerr(`vae: no such option: ${argument}`);
        System.exit(1);
    }
    options[match[1]] = match[2];
}
if (!(Number(options.steps) >= 1)) {
    printerr(`vae: --steps is ${options.steps}, and must be at least 1`);
    System.exit(1);
}
const here = Gio.File.new_for_uri(import.meta.url).get_parent();
const data = options.data ?? here.resolve_relative_path('../data/digits.csv.gz').get_path();

// Returns images [1797, 64] from 0 to 1, on the CPU.
function loadDigits(path) {
    const gunzip = Gio.ZlibDecompressor.new(Gio.ZlibCompressorFormat.GZIP);
    const packed = Gio.File.new_for_path(path).read(null);
    const lines = Gio.DataInputStream.new(Gio.ConverterInputStream.new(packed, gunzip));
    const rows = [];
    for (let [line] = lines.read_line_utf8(null); line !== null; [line] = lines.read_line_utf8(null))
        rows.push(line.split(',').slice(0, 64).map(v => Number(v) / 16));
    return GTorch.tensor(rows, {dtype: GTorch.float32, device: 'cpu'});
}

const device = options.device ? new GTorch.Device(options.device) : GTorch.Device.get_default();
print(`vae: on ${device.to_string()}, ${device.get_name()}`);
GTorch.set_default_device(device);
GTorch.manual_seed(Number(options.seed));
const encoder = nn.Sequential(nn.Linear(64, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 2 * CODE));
const decoder = nn.Sequential(nn.Linear(CODE, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 64));

// Returns the means and the logarithms of the variances of codes.
function encode(images) {
    return encoder.forward(images.mul(2).sub(1)).chunk(2, {dim: 1});
}

// Returns the loss of images [N, 64] from 0 to 1; noise is [N, CODE], drawn from a normal distribution.
function lossOf(images, noise) {
    const [mean, logVar] = encode(images);
    const scores = decoder.forward(mean.add(noise.mul(logVar.div(2).exp())));
    const cost = scores.binary_cross_entropy_with_logits(images, {reduction: GTorch.Reduction.SUM});
    const distance = mean.square().add(logVar.exp()).sub(logVar).sub(1).sum().div(2);
    return cost.add(distance).div(images.shape[0]);
}

// Draws rows of images, each [N, 64] from 0 to 1.
function draw(path, rows) {
    const ink = GTorch.cat(rows).view([-1, 8, 8]).mul(-1).add(1);
    GTorchPlot.images(ink, {n_columns: rows[0].shape[0]}).save(path);
}

const images = loadDigits(data).to(device);
const adam = optim.Adam([...encoder.parameters(), ...decoder.parameters()], {lr: 1e-3});
const steps = Number(options.steps);
const batch = Number(options.batch);
let last = 0;
for (let step = 1; step <= steps; step++) {
    GTorch.tidy(() => {
        const index = GTorch.randint(0, images.shape[0], [batch], {device: 'cpu'}).to(device);
        const noise = GTorch.randn([batch, CODE], {device: 'cpu'}).to(device);
        const loss = lossOf(images.at(index), noise);
        adam.zero_grad();
        loss.backward();
        adam.step();
        if (step % 200 === 0 || step === steps) {
            last = loss.item();
            print(`step ${step} of ${steps}: loss ${last.toFixed(4)}`);
        }
    });
}

const [rows, error] = GTorch.no_grad(() => {
    const shown = images.narrow(0, 0, 16);
    const again = decoder.forward(encode(shown)[0]).sigmoid();
    const dreams = [];
    for (let i = 0; i < 4; i++)
        dreams.push(decoder.forward(GTorch.randn([16, CODE], {device: 'cpu'}).to(device)).sigmoid());
    return [[shown, again, ...dreams], again.sub(shown).abs().mean().item()];
});
draw(options.output, rows);
print(`vae: loss ${last.toFixed(6)}, error ${error.toFixed(6)}`);
