#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Learns to separate two spirals while the main loop stays responsive.

Training steps are enqueued on a stream, at most two ahead of the device, and nothing in this thread waits
for them: an event reports the end of each, and losses are read asynchronously. A timeout stands in for the
user interface: it draws a progress bar and measures for how long the main loop was blocked. Ctrl-C ends the
training after the pending steps.
"""

import argparse
import signal
import sys
import time

import gtorch as torch
from gi.repository import Gio, GLib
from gtorch import nn

WIDTH, AHEAD, LOSS_EVERY, TICK_MS, INTERRUPTED = 128, 2, 10, 10, 130


def make_spirals(n):
    """Returns points as [2 n, 2], and the spiral of each as [2 n, 1]."""
    radius = torch.linspace(0.1, 1, n)
    angle = radius * 9.5
    one = torch.stack([radius * angle.cos(), radius * angle.sin()], 1)
    return torch.cat([one, -one]), torch.cat([torch.zeros(n, 1), torch.ones(n, 1)])


class Run:
    def __init__(self, args, stream):
        self.n_steps, self.stream = args.steps, stream
        self.loop, self.cancellable = GLib.MainLoop(), Gio.Cancellable()
        self.x, self.y = make_spirals(args.points)
        self.model = nn.Sequential(
            nn.Linear(2, WIDTH),
            nn.Tanh(),
            nn.Linear(WIDTH, WIDTH),
            nn.Tanh(),
            nn.Linear(WIDTH, 1),
        )
        self.adam = torch.optim.Adam(self.model.parameters(), 0.01)
        self.error = None  # the first error
        self.in_place = sys.stdout.isatty()  # otherwise each longer bar gets a line
        self.bar_length = -1
        self.n_sent = self.n_done = self.n_drawn = self.n_awaited = self.n_ticks = 0
        self.loss = self.longest = 0.0

    # --- work on the device ---

    def send_step(self):
        """Enqueues a step; returns before anything is computed."""
        loss = self.model(self.x).binary_cross_entropy_with_logits(self.y)
        self.adam.zero_grad()
        loss.backward()
        self.adam.step()

        done = torch.Event()
        done.connect('completed', self.on_step_done)
        done.record(self.stream)
        self.n_awaited += 1
        self.n_sent += 1
        if self.n_sent % LOSS_EVERY == 0 or self.n_sent == self.n_steps:
            loss.item_double_async(self.cancellable, self.on_loss_known)
            self.n_awaited += 1

    # --- in the main loop ---

    def fail(self, error):
        if self.error is None and not error.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CANCELLED):
            self.error = error
        self.cancellable.cancel()

    def one_less_awaited(self):
        self.n_awaited -= 1
        if self.n_awaited == 0:
            self.loop.quit()

    def on_step_done(self, _event):
        self.n_done += 1
        try:
            self.stream.check()
            if self.n_sent < self.n_steps and not self.cancellable.is_cancelled():
                self.send_step()
        except GLib.Error as error:
            self.fail(error)
        self.one_less_awaited()

    def on_loss_known(self, loss, result):
        try:
            self.loss = loss.item_double_finish(result)
        except GLib.Error as error:
            self.fail(error)
        self.one_less_awaited()

    def on_interrupt(self, *_args):
        self.cancellable.cancel()
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # another Ctrl-C ends the program at once

    def measure_gap(self):
        now = time.monotonic()
        self.longest = max(self.longest, now - self.last_tick)
        self.last_tick = now

    def draw(self):
        length = 20 * self.n_done // self.n_steps
        if not self.in_place and length == self.bar_length:
            return
        bar = ('#' * length).ljust(20, '.')
        percent = 100 * self.n_done // self.n_steps
        begin, end = ('\r', '') if self.in_place else ('', '\n')
        print(f'{begin}[{bar}] {percent:3d} %, loss {self.loss:.4f}', end=end, flush=True)
        self.n_drawn = self.n_done
        self.bar_length = length

    def on_tick(self):
        self.n_ticks += 1
        self.measure_gap()
        if self.n_drawn < self.n_done:
            self.draw()
        return GLib.SOURCE_CONTINUE

    def train(self):
        # The first step loads kernels and libraries, which takes a while: it is made before the user
        # interface starts.
        while self.n_sent < min(self.n_steps, AHEAD):
            self.send_step()

        signal.signal(signal.SIGINT, self.on_interrupt)
        GLib.timeout_add(TICK_MS, self.on_tick)
        start = self.last_tick = time.monotonic()
        self.loop.run()
        self.measure_gap()
        self.draw()
        if self.in_place:
            print()
        print(f'meanwhile: {self.n_ticks} ticks in {self.last_tick - start:.2f} s, '
              f'{1000 * self.longest:.1f} ms from one to the next at most')
        if self.error is not None:
            raise self.error


def main():
    parser = argparse.ArgumentParser(description='learn while a main loop goes on')
    parser.add_argument('--seed', type=int, default=1, help='where random numbers start')
    parser.add_argument('--steps', type=int, default=300, help='how often all points are seen')
    parser.add_argument('--points', type=int, default=5000, help='how many points each spiral has')
    try:
        args = parser.parse_args(torch.parse_options(sys.argv[1:]))
        if args.steps < 1 or args.points < 1:
            parser.error('--steps and --points begin at 1')
        device = torch.get_default_device()
        reason = torch.DeviceManager.get_default().dup_reason()
        print(f'meanwhile: on {device}, {device.get_name()}' + (f'; no GPU: {reason}' if reason else ''), flush=True)
        stream = torch.Stream(device)
        stream.set_current()
        torch.manual_seed(args.seed)
        run = Run(args, stream)
        run.train()
    except GLib.Error as error:
        print(f'meanwhile: {error.message}', file=sys.stderr)
        return 1
    if run.cancellable.is_cancelled():
        print(f'meanwhile: stopped after {run.n_done} of {run.n_steps} steps')
        return INTERRUPTED
    print(f'meanwhile: {run.n_steps} steps, loss {run.loss:.9f}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
