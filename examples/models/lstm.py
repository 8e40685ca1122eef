#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""A long short-term memory, which forecasts a series: two days of an hourly load.

The series is computed: the load of a network of electricity as a sum of a day's, a week's and a year's
course and of noise that decays. What repeats itself every week is subtracted: the model reads by how much
each of the last 72 hours differed from the same hour a week before, and says the same of the 48 hours that
follow. It is measured on the last part of the series, which it has not seen, beside the forecast that
everything is as it was a week ago.
"""

import argparse
import math

import gtorch as torch
from gtorch import nn
from gtorch.nn import functional as F

HOURS, WEEK, PAST, AHEAD = 6000, 168, 72, 48


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
    """Takes the past [N, 72, 1], returns what follows, [N, 48]."""

    def __init__(self, hidden=32):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.last = nn.Linear(hidden, AHEAD)

    def forward(self, past):
        outputs, _ = self.lstm(past)
        return self.last(outputs[:, -1])


def cut(changes, starts):
    """Returns the past [N, 72, 1] and the future [N, 48] of pieces that start there."""
    places = starts[:, None] + torch.arange(PAST + AHEAD, device=starts.device)
    pieces = changes[places]
    return pieces[:, :PAST, None], pieces[:, PAST:]


def draw(path, series, start, forecast):
    """Draws three days and the two that follow, and the forecast of these."""
    from gtorch import plot

    n = PAST + AHEAD
    known = series[start + WEEK:start + WEEK + n]
    guessed = [value + change for value, change in zip(series[start + PAST:start + n], forecast)]
    figure = plot.Figure()
    axes = figure.get_axes()
    axes.add_line(None, known, 'measured').color = '#8a9099'
    axes.add_line(range(PAST, n), guessed, 'forecast')
    axes.x_label = 'hour'
    figure.save(path)


def main():
    parser = argparse.ArgumentParser(description='learn to forecast a series')
    parser.add_argument('--device', help='where to compute, on a GPU if there is one')
    parser.add_argument('--steps', type=int, default=600, help='how many batches to train on')
    parser.add_argument('--seed', type=int, default=1, help='where random numbers start')
    parser.add_argument('--batch', type=int, default=32, help='pieces of the series in a batch')
    parser.add_argument('--output', help='a picture to draw of a forecast')
    args = parser.parse_args()
    if args.steps < 1:
        parser.error(f'--steps is {args.steps}, and must be at least 1')

    device = torch.device(args.device) if args.device else torch.Device.get_default()
    torch.set_default_device(device)
    print(f'lstm: on {device}, {device.get_name()}', flush=True)
    torch.manual_seed(args.seed)
    series = make_series()
    changes = torch.tensor([now - before for before, now in zip(series, series[WEEK:])], device=device)
    n_train = HOURS * 4 // 5
    model = Forecaster().to(device)
    adam = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(1, args.steps + 1):
        starts = torch.randint(0, n_train - PAST - AHEAD, (args.batch,), device='cpu').to(device)
        past, future = cut(changes, starts)
        loss = F.mse_loss(model(past), future)
        adam.zero_grad()
        loss.backward()
        adam.step()
        if step % 50 == 0 or step == args.steps:
            print(f'step {step} of {args.steps}: loss {loss.item():.4f}', flush=True)

    starts = torch.arange(n_train, HOURS - WEEK - PAST - AHEAD, 24, device=device)
    past, future = cut(changes, starts)
    with torch.no_grad():
        forecast = model(past)
    error = F.mse_loss(forecast, future).sqrt().item()
    plain = future.square().mean().sqrt().item()
    if args.output:
        draw(args.output, series, starts[7].item(), forecast[7].tolist())
    print(f'lstm: loss {loss.item():.6f}, error {error:.6f}, that of the week before {plain:.6f}')


if __name__ == '__main__':
    main()
