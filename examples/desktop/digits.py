#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""A window in which a network learns to read digits, with its loss, its progress and what it reads."""

import argparse
import gzip
import pathlib
import sys

import gi

gi.require_version('Gtk', '4.0')

import gtorch as torch  # noqa: E402
from gi.repository import Gio, GLib, GTorch, Gtk  # noqa: E402
from gtorch import gtk, nn  # noqa: E402

DATA = pathlib.Path(__file__).resolve().parent.parent / 'data' / 'digits.csv.gz'
SAMPLES = 12


def load_digits():
    """Returns images as [1797, 1, 8, 8] from 0 to 1, labels as [1797]."""
    with gzip.open(DATA, 'rt', encoding='ascii') as file:
        rows = torch.tensor([[int(v) for v in line.split(',')] for line in file])
    return rows[:, :64].view(-1, 1, 8, 8) / 16, rows[:, 64].clone()


def make_trainer(images, labels, epochs):
    held = torch.arange(len(labels)) % 5 == 0
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(512, 10),
    )
    loader = GTorch.DataLoader.new(GTorch.TensorDataset.new([images[~held], labels[~held]]), 64, True)
    adam = torch.optim.Adam(model.parameters(), lr=2e-3)
    trainer = GTorch.Trainer.new(model, loader, nn.CrossEntropyLoss(), adam)
    trainer.n_epochs = epochs
    trainer.max_ahead = 2  # the plot hears of each step, and need not be waited for
    validation = GTorch.DataLoader.new(GTorch.TensorDataset.new([images[held], labels[held]]), 256, False)
    trainer.validation_loader = validation
    return trainer, images[held][:SAMPLES]


class Gaps:
    """The longest time in which the main loop did nothing else."""

    def __init__(self):
        self.longest, self.last = 0, GLib.get_monotonic_time()
        GLib.timeout_add(1, self.look, priority=GLib.PRIORITY_HIGH)

    def look(self):
        now = GLib.get_monotonic_time()
        self.longest, self.last = max(self.longest, now - self.last), now
        return GLib.SOURCE_CONTINUE


class Window(Gtk.ApplicationWindow):
    def __init__(self, app, args):
        super().__init__(application=app, title='Digits', default_width=860, default_height=620)
        self.args = args
        self.trainer, self.samples = make_trainer(*load_digits(), args.epochs)
        self.plot = gtk.Plot(vexpand=True, hexpand=True)
        self.plot.follow_trainer(self.trainer)
        self.progress = gtk.TrainerProgress(self.trainer, hexpand=True)
        self.button = Gtk.Button(label='_Train', use_underline=True, valign=Gtk.Align.CENTER)
        self.button.add_css_class('suggested-action')
        self.button.connect('clicked', lambda _button: self.start())
        self.labels = []

        parameters = gtk.ParameterList(self.trainer.module, interval=500)
        parameters.set_size_request(400, 240)
        top = Gtk.Box(spacing=12)
        right = Gtk.Box(orientation=Gtk.Orientation.VERTICAL, spacing=12)
        right.append(parameters)
        right.append(gtk.DevicePanel(torch.Device.get_default()))
        top.append(self.plot)
        top.append(right)
        bottom = Gtk.Box(spacing=12)
        bottom.append(self.progress)
        bottom.append(self.button)
        box = Gtk.Box(orientation=Gtk.Orientation.VERTICAL, spacing=12,
                      margin_top=12, margin_bottom=12, margin_start=12, margin_end=12)
        for child in top, self.make_samples(), bottom:
            box.append(child)
        self.set_child(box)

    def make_samples(self):
        """A row of digits, each above what the network reads."""
        row = Gtk.Box(spacing=8, homogeneous=True)
        for image in self.samples:
            paintable = gtk.TensorPaintable(tensor=1 - image)
            column = Gtk.Box(orientation=Gtk.Orientation.VERTICAL, spacing=4)
            picture = Gtk.Picture(paintable=paintable, alternative_text='a digit')
            picture.set_size_request(56, 56)
            column.append(picture)
            self.labels.append(Gtk.Label(label='?'))
            column.append(self.labels[-1])
            row.append(column)
        return row

    def start(self):
        self.button.set_sensitive(False)
        self.gaps = Gaps()
        self.progress.run_async(self.on_end)
        if self.args.cancel_after:
            GLib.timeout_add(int(1000 * self.args.cancel_after), self.progress.cancellable.cancel)

    def on_end(self, progress, result):
        gap = self.gaps.longest / 1000
        try:
            progress.run_finish(result)
            how = 'done'
        except GLib.Error as error:
            how = 'cancelled' if error.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CANCELLED) else error.message
        self.button.set_sensitive(True)
        model = self.trainer.module
        model.eval()
        with torch.no_grad():
            read = model(self.samples).argmax(dim=1).tolist()
        model.train()
        for label, digit in zip(self.labels, read):
            label.set_text(str(digit))
        print(f'desktop: {how}, {self.trainer.step} steps, longest gap of the main loop {gap:.1f} ms', flush=True)
        if self.args.close_after:
            GLib.timeout_add(int(1000 * self.args.close_after), self.close)


def main():
    parser = argparse.ArgumentParser(description='learn to read digits in a window')
    parser.add_argument('--epochs', type=int, default=20, help='how often all digits are seen')
    parser.add_argument('--start', action='store_true', help='train at once')
    parser.add_argument('--cancel-after', type=float, default=0, metavar='SECONDS', help='press Cancel by itself')
    parser.add_argument('--close-after', type=float, default=0, metavar='SECONDS', help='close after training')
    args = parser.parse_args()
    torch.manual_seed(1)
    app = Gtk.Application(application_id='org.example.Digits', flags=Gio.ApplicationFlags.NON_UNIQUE)

    def activate(app):
        window = Window(app, args)
        window.present()
        if args.start:
            GLib.timeout_add(500, window.start)

    app.connect('activate', activate)
    return app.run(None)


if __name__ == '__main__':
    sys.exit(main())
