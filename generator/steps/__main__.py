# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Makes the files of optimizers and schedules in a folder; those that do not change are not written.

    steps library|python|gjs FOLDER STEPS.toml SCHEDULES.toml
"""

import sys

from generator.steps import bindings, classes, kernels, loops, rows, schedules, text

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


def generate(kind, folder, step_path, schedule_path):
    steps, plans = rows.load_steps(step_path), rows.load_schedules(schedule_path)
    for name, emit in FILES[kind].items():
        text.write(folder, name, emit(steps, plans))


def main(argv):
    if len(argv) != 5 or argv[1] not in FILES:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        generate(*argv[1:])
    except rows.RowError as error:
        print(f'generator.steps: {error}', file=sys.stderr)
        return 1
    return 0
