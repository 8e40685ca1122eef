#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Tests generator/steps: its output for small rows against golden files, and its messages for
mistakes.

After an intended change of the output: `test-step-rows.py --update`, and read the diff.
"""

import copy
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / 'tests' / 'style'))

import tap  # noqa: E402

from generator.steps import __main__ as generator  # noqa: E402
from generator.steps import rows  # noqa: E402

GOLDEN = HERE / 'golden'
STEPS, SCHEDULES = HERE / 'golden-steps.toml', HERE / 'golden-schedules.toml'
REAL = ROOT / 'gtorch' / 'optim'

# A change of the row Roll, as key (with dots) and value, or of FadeLR; then the message.
MISTAKES = [
    ('Roll.colour', 1, 'Roll.colour: no such key'),
    ('Roll.doc', None, 'Roll.doc: is missing'),
    ('Roll.update', 'param = params', 'Roll.update: no such name: params'),
    ('Roll.update', 'g = grad', 'Roll.update: does not change param'),
    ('Roll.update', 'param = (grad', 'Roll.update: '),
    ('Roll.update', 'param = [grad]', 'Roll.update: cannot compile'),
    ('Roll.update', 'for i in grad: param = i', 'Roll.update: '),
    ('Roll.once', 'sign = t\nrest = 1\nshare = 1', 'Roll.state: t is the count of steps'),
    ('Roll.once', 'sign = wings', 'Roll.once: no such name: wings'),
    ('Roll.new', ['speed'], 'Roll.new: there is no argument speed'),
    ('Roll.by_name', 'speed', 'Roll.by_name: there is no argument speed'),
    ('Roll.check', {'speed': 'keep > 0'}, 'Roll.check: there is no argument speed'),
    ('Roll.check', {'uphill': 'speed > 0'}, 'Roll.check: no such name: speed'),
    ('Roll.sample', [{'speed': 1}], 'Roll.sample: there is no argument speed'),
    ('Roll.state.roll', {'shape': 1}, 'Roll.state.roll.shape: no such key'),
    ('Roll.state.roll', {'count': 'always'}, 'Roll.state.roll: the count of steps'),
    ('Roll.state.roll', {'when': 'speed > 0'}, 'Roll.state.roll: no such name: speed'),
    ('Roll.args.lr', None, 'Roll.args: lr'),
    ('Roll.args.keep', 'never', 'Roll.args.keep: must be a table or one of form, refused, base'),
    ('Roll.args.keep', {'default': 1.0, 'doc': 'not a sentence'}, 'Roll.args.keep.doc: must be a sentence'),
    ('Roll.args.keep', {'default': [1.0, 2.0], 'doc': 'One.'}, 'Roll.args.keep: names, defaults and docs'),
    ('Roll.args.keep', {'default': 1.0, 'doc': 'One.', 'size': 1}, 'Roll.args.keep.size: no such key'),
    ('RollUp.extends', 'Stone', 'RollUp.extends: no such row above: Stone'),
    ('Roll.reference', 'p = speed', "Roll.reference: NameError: name 'speed'"),
    ('FadeLR.lr', 'base * speed', 'FadeLR.lr: no such name: speed'),
    ('FadeLR.lr', 'base base', 'FadeLR.lr: '),
    ('FadeLR.next', None, 'FadeLR.reference: is missing'),
    ('FadeLR.next', 'lr * speed', 'FadeLR.next: no such name: speed'),
    ('FadeLR.args.steps', {'type': 'ints', 'default': 1, 'doc': 'One.'}, 'FadeLR.args.steps.default: a list has no'),
    ('FadeLR.sample', [{}], 'FadeLR.sample: N has no value'),
    ('FadeLR.colour', 1, 'FadeLR.colour: no such key'),
]


def emit_all(steps, plans):
    return {name: emit(steps, plans) for files in generator.FILES.values() for name, emit in files.items()}


def load(step_table, schedule_table):
    steps = {}
    for name, data in step_table.items():
        steps[name] = rows.Step('rows.toml', name, data, steps)
    return list(steps.values()), [rows.Schedule('rows.toml', name, data) for name, data in schedule_table.items()]


def try_change(path, value):
    """Returns the generator's messages for the golden rows with a change."""
    steps, plans = rows.read(STEPS), rows.read(SCHEDULES)
    place = plans if path.startswith('FadeLR') else steps
    *parents, last = path.split('.')
    for key in parents:
        place = place[key]
    if value is None:
        del place[last]
    else:
        place[last] = value
    try:
        emit_all(*load(steps, plans))
    except rows.RowError as error:
        return str(error)
    return 'nothing'


def check_mistake(path, value, message):
    said = try_change(path, value)
    assert f'rows.toml:{message}' in said, f'{message!r} is not in {said!r}'


def check_file(name, found):
    kept = (GOLDEN / f'{name}.txt').read_text('utf-8')
    assert found == kept, f'{name} has changed'


def places(table, path=()):
    """Yields the paths to all values of a table."""
    for key, value in table.items():
        yield (*path, key)
        if isinstance(value, dict):
            yield from places(value, (*path, key))


WRONG = (None, 5, -0.5, True, '', 'x y', 'lr', [], ['lr'], {}, {'default': 1.0})


@tap.case
def no_value_of_a_row_makes_it_crash():
    """Each value of each real row is removed, or changed to another type: the generator works,
    or names the row."""
    n = 0
    for which, file in ((0, 'steps.toml'), (0, 'adam-steps.toml'), (1, 'schedules.toml')):
        table = rows.read(REAL / file)
        for path in list(places(table)):
            row = table[path[0]]
            needed = {name: table[name] for name in (row.get('extends'), path[0]) if name}
            for wrong in WRONG:
                tables = [{}, {}]
                tables[which] = place = copy.deepcopy(needed)
                for key in path[:-1]:
                    place = place[key]
                if wrong is None:
                    del place[path[-1]]
                else:
                    place[path[-1]] = wrong
                n += 1
                try:
                    load(*tables)
                except rows.RowError as error:
                    assert 'rows.toml' in str(error), error
                except Exception as error:
                    raise AssertionError(f'{".".join(path)} = {wrong!r}: {type(error).__name__}: {error}') from error
    print(f'# {n} changes')


def main():
    steps, plans = rows.load_steps(STEPS), rows.load_schedules(SCHEDULES)
    found = emit_all(steps, plans)
    if '--update' in sys.argv:
        GOLDEN.mkdir(exist_ok=True)
        for name, content in found.items():
            (GOLDEN / f'{name}.txt').write_text(content, 'utf-8')
    for name, content in found.items():
        tap.add(f'{name}_is_as_kept', check_file, name, content)
    for number, mistake in enumerate(MISTAKES):
        tap.add(f'mistake_{number}_is_named', check_mistake, *mistake)
    tap.main()


@tap.case
def unchanged_files_are_not_written():
    with tempfile.TemporaryDirectory() as folder:
        generator.generate('library', folder, STEPS, SCHEDULES)
        before = {path: path.stat().st_mtime_ns for path in pathlib.Path(folder).iterdir()}
        generator.generate('library', folder, STEPS, SCHEDULES)
        assert before == {path: path.stat().st_mtime_ns for path in pathlib.Path(folder).iterdir()}
        assert len(before) == len(generator.FILES['library'])


if __name__ == '__main__':
    main()
