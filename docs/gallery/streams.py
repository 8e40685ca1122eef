#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Draws when the program and two streams work, as events tell it.

Argument: the picture.
"""

import sys
import time

import gtorch as torch

import svg

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
    total = max(end for _row, _begin, end in bars)
    picture = svg.Picture(720, 210, 'The program puts work on two streams, which do it at the same time')
    plot = svg.Plot(picture, (90, 30, 600, 130), (0, total), (0, 3), ('milliseconds', ''))
    step = 10 ** len(str(int(total / 4))) / 10 or 1
    plot.marks([i * step for i in range(int(total / step) + 1)][:40:max(1, int(total / step / 6))], ())
    for row, name in enumerate(NAMES):
        picture.text(82, 60 + row * 40, name, anchor='end')
    for row, begin, end in bars:
        x0, x1 = plot.place(begin, 0)[0], plot.place(end, 0)[0]
        picture.rect(x0, 42 + row * 40, max(x1 - x0 - 1, 1.5), 28, (svg.RED, svg.BLUE, svg.GREEN)[row])
    picture.save(sys.argv[1])


if __name__ == '__main__':
    main()
