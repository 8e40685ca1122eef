#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""A long short-term memory, which forecasts a series: two days of an hourly load from the week before.

The series is computed: the load of a network of electricity as a sum of a day's, a week's and a year's
course and of noise that decays. The model reads 168 hours one by one and says by how much the 48 that follow
differ from those of the week before. It is measured on the last part of the series, which it has not seen,
beside the forecast that everything is as it was in that week.
"""

import argparse
import math

import gtorch as torch
from gtorch import nn
from gtorch.nn import functional as F

HOURS, PAST, AHEAD = 6000, 168, 48


def make_series():
    """Returns the load of 6000 hours, around 0; the noise is that of a simple generator of random numbers."""
    values, state, noise = [], 1, 0.0
    for hour in range(HOURS):
        state = (state * 1103515245 + 12345) % 2147483648
        noise = 0.98 * noise + 0.05 * (state / 1073741824 - 1)
        day, weekday = 2 * math.pi * hour / 24, hour // 24 % 7
        value = 0.6 * math.sin(day - 2) + 0.25 * math.sin(2 * day - 1) + 0.3 * math.sin(2 * math.pi * hour / 8766)
        values.append(value * (1 if weekday < 5 else 0.6) - (0 if weekday < 5 else 0.3) + noise)
    return values


class Forecaster(nn.Module):
    """Takes the past [N, 168, 1], returns what follows, [N, 48]."""

    def __init__(self, hidden=64):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.last = nn.Linear(hidden, AHEAD)

    def forward(self, past):
        outputs, _ = self.lstm(past)
        return past[:, :AHEAD, 0] + self.last(outputs[:, -1])


def cut(series, starts):
    """Returns the past [N, 168, 1] and the future [N, 48] of pieces that start there."""
    places = starts[:, None] + torch.arange(PAST + AHEAD, device=starts.device)
    pieces = series[places]
    return pieces[:, :PAST, None], pieces[:, PAST:]


def draw(path, past, future, forecast):
    """Draws the last days of the past and of the future in grey, and the forecast in blue."""
    import cairo

    width, height, shown = 640, 240, 96
    surface = cairo.ImageSurface(cairo.FORMAT_RGB24, width, height)
    cr = cairo.Context(surface)
    cr.set_source_rgb(1, 1, 1)
    cr.paint()
    lines = [((0.6, 0.6, 0.6), 0, past[-shown:] + future), ((0.1, 0.3, 0.7), shown, forecast)]
    low, high = min(min(line) for _, _, line in lines), max(max(line) for _, _, line in lines)
    for colour, first, line in lines:
        cr.set_source_rgb(*colour)
        for i, value in enumerate(line):
            cr.line_to(10 + (first + i) * (width - 20) / (shown + AHEAD), height - 10 - (value - low) / (high - low) * (height - 20))
        cr.stroke()
    surface.write_to_png(path)


def main():
    parser = argparse.ArgumentParser(description='learn to forecast a series')
    parser.add_argument('--device', help='where to compute, on a GPU if there is one')
    parser.add_argument('--steps', type=int, default=600, help='how many batches to train on')
    parser.add_argument('--seed', type=int, default=1, help='where random numbers start')
    parser.add_argument('--batch', type=int, default=32, help='pieces of the series in a batch')
    parser.add_argument('--output', help='a picture to draw of a forecast')
    args = parser.parse_args()

    device = torch.device(args.device) if args.device else torch.Device.get_default()
    torch.set_default_device(device)
    print(f'lstm: on {device}, {device.get_name()}', flush=True)
    torch.manual_seed(args.seed)
    series = torch.tensor(make_series(), device=device)
    n_train = HOURS * 4 // 5
    model = Forecaster().to(device)
    adam = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(1, args.steps + 1):
        starts = torch.randint(0, n_train - PAST - AHEAD, (args.batch,), device='cpu').to(device)
        past, future = cut(series, starts)
        loss = F.mse_loss(model(past), future)
        adam.zero_grad()
        loss.backward()
        adam.step()
        if step % 50 == 0 or step == args.steps:
            print(f'step {step} of {args.steps}: loss {loss.item():.4f}', flush=True)

    starts = torch.arange(n_train, HOURS - PAST - AHEAD, 24, device=device)
    past, future = cut(series, starts)
    with torch.no_grad():
        forecast = model(past)
    error = F.mse_loss(forecast, future).sqrt().item()
    plain = F.mse_loss(past[:, :AHEAD, 0], future).sqrt().item()
    if args.output:
        draw(args.output, past[7, :, 0].tolist(), future[7].tolist(), forecast[7].tolist())
    print(f'lstm: loss {loss.item():.6f}, error {error:.6f}, that of the week before {plain:.6f}')


if __name__ == '__main__':
    main()
