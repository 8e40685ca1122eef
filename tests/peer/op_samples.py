#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs PyTorch's own samples of its operators through this library, and compares.

PyTorch's package has samples of about 700 operators with which it tests itself (`op_db`). Each is computed by both
libraries in one process: as a function, as a method, in place, and under the further names of the operator. Values,
dtypes and shapes are compared, and gradients in double precision. A Python that has PyTorch is needed, of the version
of the one that has `gi`:

    meson devenv -C build PYTHON tests/peer/op_samples.py run --jobs 2 results.jsonl
    python3 tests/peer/op_samples.py summary results.jsonl

`run` writes a line of JSON for each case that differs, and one for each operator, form and dtype that counts those that
agree. `result` is one of

    ok          what PyTorch gives, or an error where it raises one, too
    missing     there is no such function
    raises      an error, and PyTorch has a result
    wrong       other values
    shape       another shape, or another number of results
    dtype       another dtype
    gradwrong   other gradients
    gradraises  no gradient, or an error
    CRASH       the process died
    slow        it did not end in time
    accepted    a result, and PyTorch raises an error
    skipped     the operator, or what it is given, is out of this library's scope
"""

import argparse
import collections
import json
import os
import pathlib
import re
import sys

KINDS = ('CRASH', 'slow', 'wrong', 'gradwrong', 'dtype', 'shape', 'gradraises', 'raises', 'missing', 'accepted',
         'skipped', 'ok')  # fmt: skip


def run(options):
    import op_workers

    op_workers.run_all(options)


def plain(message):
    """A message without its numbers, names and shapes, which tells classes of them apart."""
    text = re.sub(r'[\[(][-\d, ]*[\])]', '[…]', message)
    return re.sub(r'-?\d+(\.\d+)?(e[-+]?\d+)?', 'N', text)[:150]


def read(path):
    for line in pathlib.Path(path).read_text('utf-8').splitlines():
        yield json.loads(line)


def show_totals(lines):
    cases, ops = collections.Counter(), collections.defaultdict(set)
    for one in lines:
        cases[one['result']] += one.get('count', 1)
        ops[one['result']].add((one['op'], one['variant']))
    good = ops['ok'] - set().union(*(ops[kind] for kind in KINDS if kind not in ('ok', 'accepted', 'skipped')))
    for kind in KINDS:
        print(f'{kind:11} {cases[kind]:8} cases of {len(ops[kind]):4} operators')
    print(f'{len(good)} operators of {len(set().union(*ops.values()))} have nothing that differs')


def summary(options):
    """Prints what differs by operator and kind, and with an example of each."""
    lines = [one for one in read(options.results) if not options.only or re.search(options.only, one['op'])]
    groups = {}
    for one in lines:
        if one['result'] == 'ok' or (one['result'] == 'skipped' and not options.skipped):
            continue
        name = f'{one["op"]}.{one["variant"]}' if one['variant'] else one['op']
        key = (KINDS.index(one['result']), name, plain(one['message']))
        group = groups.setdefault(key, {'n': 0, 'forms': set(), 'dtypes': set(), 'example': one})
        group['n'] += 1
        group['forms'].add(one['form'])
        group['dtypes'].add(one['dtype'])
    for (kind, name, _message), group in sorted(groups.items(), key=lambda pair: pair[0]):
        example = group['example']
        where = f'{",".join(sorted(group["forms"]))} {",".join(sorted(group["dtypes"]))}'
        print(f'{KINDS[kind]} {name} x{group["n"]} [{where}]\n    {example["message"]}\n    {example["sample"]}')
    show_totals(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest='command', required=True)
    one = commands.add_parser('run', help='compute the samples, and write what came out')
    one.add_argument('results', help='the file that the lines are written to')
    one.add_argument('--only', help='a regular expression that the names of the operators contain')
    one.add_argument('--dtypes', type=lambda text: text.split(','), help='names of dtypes, with commas between them')
    one.add_argument('--max', type=int, default=40, help='how many samples of an operator in a dtype there are at most')
    one.add_argument('--jobs', type=int, default=os.cpu_count(), help='how many operators are tried at a time')
    one.add_argument('--seconds', type=int, default=300, help='how long an operator may take')
    one.add_argument('--reference', action='store_true', help="also PyTorch's larger samples of element-wise operators")
    one.add_argument('--verbose', action='store_true', help='show what the processes write to standard error')
    one.add_argument('--strided', action='store_true', help='also the samples with tensors that are not contiguous')
    one.set_defaults(function=run)
    two = commands.add_parser('summary', help='sort what differs by operator and kind')
    two.add_argument('results')
    two.add_argument('--only', help='a regular expression that the names of the operators contain')
    two.add_argument('--skipped', action='store_true', help='also what was skipped')
    two.set_defaults(function=summary)
    options = parser.parse_args()
    options.function(options)


if __name__ == '__main__':
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
    main()
