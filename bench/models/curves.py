#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Trains the models of examples/models with GTorch and with PyTorch, from the same initial weights and batches.

    curves.py FOLDER --peer 'python-with-torch' [--device D] [--steps N] [--small] [--only MODEL,MODEL…]
    curves.py FOLDER --draw

Run it in a shell of meson devenv. A third run, PyTorch's with weights that differ by a hundred-thousandth, tells what
is noise. Prints for each model the largest difference of the first ten losses, which must be at most 1e-4,
and the means of the last tenth; fails if they differ by more than a tenth and by more than twice the
noise. Draws MODEL.png into the folder if pycairo is there; --draw only draws, from the files of losses.
"""

import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys

from sides import MODELS

HERE = pathlib.Path(__file__).parent
SIDES = {'torch-disturbed': (0.75, 0.75, 0.75), 'torch': (0.85, 0.45, 0.1), 'gtorch': (0.1, 0.3, 0.7)}
TITLES = {
    'torch-disturbed': 'PyTorch, weights changed by 1e-5',
    'torch': 'PyTorch',
    'gtorch': 'GTorch',
}


def read(folder, model):
    """Returns the losses of each side that has run."""
    files = {side: folder / f'{model}-{side}.json' for side in SIDES}
    return {side: json.loads(file.read_text()) for side, file in files.items() if file.exists()}


def smooth(losses, width):
    parts = (losses[max(0, i - width + 1):i + 1] for i in range(len(losses)))
    return [sum(part) / len(part) for part in parts]


def draw(path, model, losses):
    """Draws the losses, each a mean of a fiftieth of the steps, on a linear axis from zero."""
    import cairo

    width, height, left, bottom, top = 640, 390, 60, 40, 64
    surface = cairo.ImageSurface(cairo.FORMAT_RGB24, width, height)
    cr = cairo.Context(surface)
    cr.set_source_rgb(1, 1, 1)
    cr.paint()
    n = max(len(line) for line in losses.values())
    highest = max(max(line) for line in losses.values())

    def place(step, loss):
        x = left + (width - left - 20) * step / max(n - 1, 1)
        return x, height - bottom - (height - bottom - top) * loss / highest

    cr.set_font_size(12)
    for i in range(5):
        x, y = place(0, highest * i / 4)
        cr.set_source_rgb(0.9, 0.9, 0.9)
        cr.move_to(x, y)
        cr.line_to(width - 20, y)
        cr.stroke()
        cr.set_source_rgb(0.3, 0.3, 0.3)
        cr.move_to(8, y + 4)
        cr.show_text(f'{highest * i / 4:.3g}')
        x, y = place((n - 1) * i / 4, 0)
        cr.move_to(x - 8, y + 18)
        cr.show_text(str(round((n - 1) * i / 4)))
    cr.move_to(left, 20)
    cr.show_text(f'{model}: loss over steps')
    for i, (side, colour) in enumerate(SIDES.items()):
        if side not in losses:
            continue
        cr.set_source_rgb(*colour)
        cr.set_line_width(5 if side == 'torch' else 2)
        cr.new_path()  # away from the end of the last text
        for step, loss in enumerate(smooth(losses[side], max(1, n // 50))):
            cr.line_to(*place(step, loss))
        cr.stroke()
        cr.move_to(width - 270, 20 + 16 * i)  # above the lines
        cr.show_text(TITLES[side])
    surface.write_to_png(str(path))


def judge(model, losses):
    """Prints a row of the table; returns whether the losses agree."""
    ours, theirs = losses['gtorch'], losses['torch']
    first = max(abs(a - b) for a, b in zip(ours[:10], theirs[:10]))
    last = {side: sum(line[-max(1, len(line) // 10):]) / max(1, len(line) // 10) for side, line in losses.items()}
    noise = abs(last.get('torch-disturbed', last['torch']) - last['torch'])
    difference = abs(last['gtorch'] - last['torch'])
    is_good = first <= 1e-4 and difference <= max(2 * noise, 0.1 * last['torch'])
    print(f'| {model} | {first:.1e} | {last["gtorch"]:.4f} | {last["torch"]:.4f} | {noise:.4f} | '
          f'{"yes" if is_good else "NO"} |', flush=True)
    return is_good


def train(args, model, options):
    """Runs a model on both sides, and on the peer's once more; returns whether all have written losses."""
    for command, side, *more in ((args.ours, 'gtorch'), (args.peer, 'torch'), (args.peer, 'torch', '--disturb')):
        # the peer must not find GTorch's libraries
        hidden = ('PYTHONPATH', 'LD_LIBRARY_PATH') if side == 'torch' else ()
        environment = {name: value for name, value in os.environ.items() if name not in hidden}
        done = subprocess.run([*shlex.split(command), HERE / 'losses.py', side, model, args.folder, *options, *more],
                              check=False, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            reason = (done.stderr.strip().splitlines() or [f'exit status {done.returncode}'])[-1]
            print(f'| {model} | {side} failed: {reason[:150]} | | | | NO |', flush=True)
            return False
    return True


def main():
    parser = argparse.ArgumentParser(description='compare the losses of trainings with GTorch and with PyTorch')
    parser.add_argument('folder', type=pathlib.Path)
    parser.add_argument('--peer', help='the command of a Python that has PyTorch')
    parser.add_argument('--ours', default=sys.executable, help='the command of a Python that has GTorch')
    parser.add_argument('--device', default='cpu')
    parser.add_argument('--steps', type=int, default=200)
    parser.add_argument('--small', action='store_true', help='smaller models, for a test')
    parser.add_argument('--only', default=','.join(MODELS))
    parser.add_argument('--draw', action='store_true', help='train nothing, draw what is there')
    args = parser.parse_args()
    if not args.draw and not args.peer:
        parser.error('--peer must name a Python that has PyTorch')

    args.folder.mkdir(parents=True, exist_ok=True)
    options = [f'--device={args.device}', f'--steps={args.steps}', *(['--small'] if args.small else [])]
    print('| model | first ten losses differ by | last, GTorch | last, PyTorch | noise | agrees |')
    print('|---|---|---|---|---|---|', flush=True)
    is_good = True
    for model in args.only.split(','):
        if not args.draw and not train(args, model, options):
            is_good = False
            continue
        losses = read(args.folder, model)
        if 'gtorch' in losses and 'torch' in losses:
            is_good &= judge(model, losses)
        if losses:
            try:
                draw(args.folder / f'{model}.png', model, losses)
            except ImportError:
                print('no picture: pycairo is missing', file=sys.stderr)
    return 0 if is_good else 1


if __name__ == '__main__':
    sys.exit(main())
