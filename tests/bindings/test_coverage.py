#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The page docs/coverage.md says what GTorch has of PyTorch's names, by the rows and by this binding.

After a change: `meson devenv -C build -w . python3 tests/bindings/test_coverage.py --update`.
"""

import collections
import json
import pathlib
import sys
import tomllib

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = TOP / 'docs' / 'coverage.md'
sys.path[:0] = [str(TOP), str(TOP / 'tests' / 'style')]

import gi  # noqa: E402

gi.require_version('GTorch', '1')

from gi.repository import GTorch  # noqa: E402

import tap  # noqa: E402

from generator.ops import rows as op_rows  # noqa: E402

DTYPES = {
    'all': 'all',
    'float': 'floating point',
    'floatl': 'floating point, int64',
    'floatc': 'floating point, complex',
    'number': 'all but bool',
    'real': 'floating point, integers',
    'realb': 'all but complex',
    'int': 'integers',
    'intb': 'integers, bool',
    'complex': 'complex',
    'wide': 'float32, float64',
    'widec': 'float32, float64, complex',
    'bool': 'bool',
}
KNOWN = json.loads((TOP / 'docs/data/pytorch-names.json').read_text('utf-8'))
with open(TOP / 'docs/data/coverage-reasons.toml', 'rb') as _file:
    REASONS = {name: reason for reason, found in tomllib.load(_file).items() for name in found['names']}
HEAD = """Title: What there is of PyTorch
Slug: coverage

# What there is of PyTorch

<!-- Made by tests/bindings/test_coverage.py; do not edit. -->

This page is made from the tables that the library is made from, and from the Python binding as it is installed. It
lists PyTorch's names of operations, layers, optimizers and schedules with what stands for them here. JavaScript, Vala
and C have the same operations under the names that their languages use; see the page on bindings.
"""


def find(name):
    """Returns the object that Python has under a name of PyTorch's, or None."""
    parts = name.split('.')
    if len(parts) > 1:
        found = GTorch
        for part in parts:
            found = getattr(found, part, None)
        return found
    spaces = [GTorch, GTorch.Tensor, getattr(GTorch.nn, 'functional', None)]
    spaces += [getattr(GTorch, space, None) for space in ('linalg', 'fft', 'special')]
    return next((getattr(s, name) for s in spaces if s is not None and hasattr(s, name)), None)


def gradient(row):
    if not any(a.is_tensor for a in row.args):
        return '–'
    if row.grad or row.grad_function:
        return 'formula'
    if row.grad_none:
        return 'none'
    return 'parts' if row.composite or row.grad_name == 'NULL' else 'refused'


def table(head, lines):
    rule = '|'.join('---' for _ in head)
    return '\n'.join([f'| {" | ".join(head)} |', f'|{rule}|', *(f'| {" | ".join(line)} |' for line in lines), ''])


def operations(rows):
    lines = [
        (
            f'`{row.name}`',
            DTYPES[row.dtypes] if not row.composite or row.dtypes != 'all' else 'those of its parts',
            gradient(row),
            str(len(row.samples)) if row.samples else 'by programs',
        )
        for row in rows
        if not row.internal
    ]
    text = """
## Operations

Every operation runs on the CPU and on NVIDIA GPUs. A gradient is a *formula* of the operation, or it follows from the
*parts* that the operation is made of; where there is *none*, the results have no derivative, as in PyTorch. Double
gradients follow as the formulas are made of operations. The last column counts the samples by which the tests run an
operation on each device, dtype and layout.

"""
    return text + table(('operation', 'dtypes', 'gradient', 'samples'), lines)


def names():
    missing = [name for name in KNOWN['op'] if find(name) is None]
    groups = collections.defaultdict(list)
    for name in missing:
        groups[REASONS.get(name, 'not written yet')].append(name)
    text = f"""
## Names of operations

Of the {len(KNOWN['op'])} names of functions and methods that programs use in PyTorch, {len(KNOWN['op']) - len(missing)}
are here, many of them with all arguments that they have there. These are not:

"""
    lines = [(', '.join(f'`{n}`' for n in sorted(found)), reason) for reason, found in sorted(groups.items())]
    return text + table(('names', 'why'), lines)


def classes(title, wanted, space, intro):
    have = [name for name in wanted if hasattr(space, name)]
    missing = [name for name in wanted if name not in have]
    left_out = [name for name in missing if name in REASONS]
    missing = [name for name in missing if name not in REASONS]
    text = f'\n## {title}\n\n{intro} {len(have)} of {len(wanted)} are here: '
    text += ', '.join(f'`{name}`' for name in have) + '.\n'
    if missing:
        text += '\nNot written yet: ' + ', '.join(f'`{name}`' for name in missing) + '.\n'
    text += ''.join(f'\n`{name}` is left out: {REASONS[name]}.\n' for name in left_out)
    return text


def page():
    rows = op_rows.load(sorted(map(str, (TOP / 'gtorch/ops').glob('*.toml'))))
    return ''.join(
        (
            HEAD,
            names(),
            classes('Layers', KNOWN['module'], GTorch.nn, 'Layers of `torch.nn`:'),
            classes('Optimizers', KNOWN['optim'], GTorch.optim, 'Optimizers of `torch.optim`:'),
            classes(
                'Schedules of learning rates',
                KNOWN['schedule'],
                GTorch.optim.lr_scheduler,
                'Schedules of `torch.optim.lr_scheduler`:',
            ),
            operations(rows),
        )
    )


@tap.case
def the_page_is_current():
    assert PAGE.read_text('utf-8') == page(), 'test_coverage.py --update writes it anew'


@tap.case
def reasons_are_given_for_names_that_are_missing():
    assert REASONS
    for name in REASONS:
        assert any(name in known for known in KNOWN.values()), f'{name} is no name of PyTorch'
        assert find(name) is None and not hasattr(GTorch.optim, name), f'{name} is here'


if __name__ == '__main__':
    if '--update' in sys.argv:
        PAGE.write_text(page(), 'utf-8')
    else:
        tap.main()
