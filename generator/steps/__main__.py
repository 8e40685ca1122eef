# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Writes the files that are generated from the rows of optimizers and schedules.

    steps library|python|gjs FOLDER STEPS.toml… SCHEDULES.toml
"""

import functools
import pathlib

from generator import rows as shared
from generator.steps import bindings, classes, kernels, loops, rows, schedules
from generator.text import write

FILES = {
    'library': {
        'gtorch-optimizers.h': lambda steps, plans: classes.emit_header(steps),
        'gtorch-lr-schedules.h': lambda steps, plans: schedules.emit_header(plans),
        'gtorch-optimizers.c': lambda steps, plans: classes.emit_classes(steps),
        'gtorch-lr-schedules.c': lambda steps, plans: schedules.emit_classes(plans),
        'gtorch-step-table.c': lambda steps, plans: classes.emit_table(steps),
        'gtorch-step-loops.c': lambda steps, plans: loops.emit(steps),
        'gtorch-step-formulas.cuh': lambda steps, plans: kernels.emit(steps),
        'gtorch-step-samples.h': lambda steps, plans: bindings.emit_c_samples(steps),
        'gtorch-steps.json': bindings.emit_samples,
    },
    'python': {'_gtorch_steps.py': bindings.emit_python},
    'gjs': {'_gtorch_steps.js': bindings.emit_javascript},
}


def generate(kind, folder, *paths):
    *step_paths, schedule_path = paths
    steps, plans = rows.load_steps(*step_paths), rows.load_schedules(schedule_path)
    for name, emit in FILES[kind].items():
        write(pathlib.Path(folder) / name, emit(steps, plans))


COMMANDS = {kind: (3, 9, functools.partial(generate, kind)) for kind in FILES}


def main(argv):
    return shared.run('steps', __doc__, COMMANDS, argv)
