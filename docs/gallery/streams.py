#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Draws when the program and two streams work, as events tell it.

Argument: the picture.
"""

import sys
import time

import gtorch as torch
from gtorch import plot

N, WORKS = 400, 4
NAMES = ('program', 'stream 1', 'stream 2')


def run():
    """Returns bars: the row, the beginning and the end in milliseconds."""
    a = torch.full((N, N), 1 / N)
    streams = [torch.Stream('cpu') for _ in range(2)]
    origins = []
    for stream in streams:                      # an event of each stream tells the time of its others
        origins.append(torch.Event(enable_timing=True))
        origins[-1].record(stream)
        stream.synchronize()
    start = time.monotonic()
    bars, events = [], []
    for i in range(WORKS):
        for row, stream in enumerate(streams):
            begin, end = (torch.Event(enable_timing=True) for _ in range(2))
            called = time.monotonic()
            begin.record(stream)
            with stream:
                b = a @ a @ a @ a
            if row == 1 and i == WORKS - 1:
                last = b
            end.record(stream)
            bars.append((0, 1e3 * (called - start), 1e3 * (time.monotonic() - start)))
            events.append((row, begin, end))
    last.sum().item()                           # waits
    bars.append((0, 1e3 * (time.monotonic() - start), 1e3 * (time.monotonic() - start)))
    for stream in streams:
        stream.synchronize()
    return bars + [(row + 1, origins[row].elapsed_time(begin), origins[row].elapsed_time(end))
                   for row, begin, end in events]


def main():
    run()                                       # the first run starts threads
    bars = run()
    figure = plot.Figure(width=720, height=240)
    axes = figure.get_axes()
    for row, (name, color) in enumerate(zip(NAMES, ('#c01c28', '#3584e4', '#26a269'))):
        line = plot.Line(name, color=color)
        for start, end in sorted((start, end) for found, start, end in bars if found == row):
            for time_of, height in (start, 0), (start, 0.7), (end, 0.7), (end, 0):
                line.append(time_of, row + height)
        axes.add(line)
    axes.set_y_limits(-0.2, 4.4)
    axes.x_label, axes.y_label = 'milliseconds', 'stream (0: program)'
    figure.save(sys.argv[1])


if __name__ == '__main__':
    main()
