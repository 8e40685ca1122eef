#!/usr/bin/env -S gjs -m
// SPDX-License-Identifier: LGPL-2.1-or-later
// SPDX-FileCopyrightText: The GTorch authors

// Learns to separate two spirals while the main loop stays responsive.
//
// Training steps are enqueued on a stream, at most two ahead of the device, and nothing in this thread
// waits for them: an event reports the end of each, and losses are promises. A timeout stands in for the
// user interface: it draws a progress bar and measures for how long the main loop was blocked. Ctrl-C
// ends the training after the pending steps.

import Gio from 'gi://Gio';
import GLib from 'gi://GLib';
import GTorch from 'gi://GTorch?version=1';
import System from 'system';

const WIDTH = 128;
const AHEAD = 2;
const LOSS_EVERY = 10;
const TICK_MS = 10;
const SIGINT = 2;
const INTERRUPTED = 130;
const {nn, optim} = GTorch;
// Only a terminal can redraw the bar; otherwise each longer bar gets a line.
const inPlace = GLib.log_writer_supports_color(1);
// GLib 2.80 has it in a separate namespace, where later releases call it signal_add.
const addSignal = await import('gi://GLibUnix?version=2.0').then(
    ({default: unix}) => unix.signal_add ?? unix.signal_add_full, () => GLib.unix_signal_add);

// Returns points as [2 n, 2], and the spiral of each as [2 n, 1].
function makeSpirals(n) {
    const radius = GTorch.linspace(0.1, 1, n);
    const angle = radius.mul(9.5);
    const one = GTorch.stack([radius.mul(angle.cos()), radius.mul(angle.sin())], 1);
    return [GTorch.cat([one, one.neg()]), GTorch.cat([GTorch.zeros([n, 1]), GTorch.ones([n, 1])])];
}

class Run {
    constructor(options, stream) {
        this.nSteps = options.steps;
        this.stream = stream;
        this.cancellable = new Gio.Cancellable();
        [this.x, this.y] = makeSpirals(options.points);
        this.model = nn.Sequential(nn.Linear(2, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh(),
            nn.Linear(WIDTH, 1));
        this.adam = optim.Adam(this.model.parameters(), {lr: 0.01});
        this.error = null; // the first error
        this.nSent = this.nDone = this.nDrawn = this.nAwaited = this.nTicks = 0;
        this.loss = this.longest = 0;
        this.barLength = -1;
    }

    // --- work on the device ---

    // Enqueues a step; returns before anything is computed.
    sendStep() {
        GTorch.tidy(() => {
            const loss = this.model.forward(this.x).binary_cross_entropy_with_logits(this.y);
            this.adam.zero_grad();
            loss.backward();
            this.adam.step();

            const done = new GTorch.Event();
            done.connect('completed', () => this.onStepDone());
            done.record(this.stream);
            this.nAwaited++;
            this.nSent++;
            if (this.nSent % LOSS_EVERY === 0 || this.nSent === this.nSteps)
                this.readLoss(loss);
        });
    }

    async readLoss(loss) {
        this.nAwaited++;
        try {
            this.loss = await loss.item_double_async(this.cancellable);
        } catch (error) {
            this.fail(error);
        }
        this.oneLessAwaited();
    }

    // --- in the main loop ---

    fail(error) {
        if (!error.matches?.(Gio.IOErrorEnum, Gio.IOErrorEnum.CANCELLED))
            this.error ??= error;
        this.cancellable.cancel();
    }

    oneLessAwaited() {
        if (--this.nAwaited === 0)
            this.end();
    }

    onStepDone() {
        this.nDone++;
        try {
            this.stream.check();
            if (this.nSent < this.nSteps && !this.cancellable.is_cancelled())
                this.sendStep();
        } catch (error) {
            this.fail(error);
        }
        this.oneLessAwaited();
    }

    measureGap() {
        const now = GLib.get_monotonic_time();
        this.longest = Math.max(this.longest, now - this.lastTick);
        this.lastTick = now;
    }

    draw() {
        const length = Math.floor(20 * this.nDone / this.nSteps);
        if (!inPlace && length === this.barLength)
            return;
        const bar = '#'.repeat(length).padEnd(20, '.');
        const percent = String(Math.floor(100 * this.nDone / this.nSteps)).padStart(3);
        const up = inPlace ? '\x1b[A' : ''; // overwrites the line above
        print(`${up}[${bar}] ${percent} %, loss ${this.loss.toFixed(4)}`);
        this.nDrawn = this.nDone;
        this.barLength = length;
    }

    onTick() {
        this.nTicks++;
        this.measureGap();
        if (this.nDrawn < this.nDone)
            this.draw();
        return GLib.SOURCE_CONTINUE;
    }

    async train() {
        // The first step loads kernels and libraries, which takes a while: it is made before the user
        // interface starts.
        while (this.nSent < Math.min(this.nSteps, AHEAD))
            this.sendStep();

        addSignal(GLib.PRIORITY_DEFAULT, SIGINT, () => {
            this.cancellable.cancel();
            return GLib.SOURCE_REMOVE; // another Ctrl-C ends the program at once
        });
        GLib.timeout_add(GLib.PRIORITY_DEFAULT, TICK_MS, () => this.onTick());
        if (inPlace)
            print('');
        const start = this.lastTick = GLib.get_monotonic_time();
        await new Promise(resolve => (this.end = resolve)); // the main loop continues
        this.measureGap();
        this.draw();
        print(`meanwhile: ${this.nTicks} ticks in ${((this.lastTick - start) / 1e6).toFixed(2)} s, ` +
            `${(this.longest / 1e3).toFixed(1)} ms from one to the next at most`);
        if (this.error)
            throw this.error;
    }
}

function parse(args) {
    const options = {seed: 1, steps: 300, points: 5000};
    for (const argument of args) {
        const match = /^--(\w+)=(\d+)$/.exec(argument);
        if (!match || !(match[1] in options))
            throw new Error(`no such option: ${argument}`);
        options[match[1]] = Number(match[2]);
    }
    if (options.steps < 1 || options.points < 1)
        throw new Error('--steps and --points begin at 1');
    return options;
}

async function main() {
    const options = parse(GTorch.parse_options(System.programArgs));
    const device = GTorch.get_default_device();
    const reason = GTorch.DeviceManager.get_default().dup_reason();
    print(`meanwhile: on ${device.to_string()}, ${device.get_name()}${reason ? `; no GPU: ${reason}` : ''}`);
    const stream = new GTorch.Stream({device});
    stream.set_current();
    GTorch.manual_seed(options.seed);
    const run = new Run(options, stream);
    await run.train();
    if (run.cancellable.is_cancelled()) {
        print(`meanwhile: stopped after ${run.nDone} of ${run.nSteps} steps`);
        return INTERRUPTED;
    }
    print(`meanwhile: ${run.nSteps} steps, loss ${run.loss.toFixed(9)}`);
    return 0;
}

let status = 1;
try {
    status = await main();
} catch (error) {
    printerr(`meanwhile: ${error.message}`);
}
System.exit(status);
