#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Traces the examples that train models: digits, ResNet-18 and GPT-2. For each it compares the kernels in the trace
with the launches in it, prints where the time went, and writes the trace, which Perfetto's trace processor reads if its
Python package is installed (pip install perfetto).

    meson devenv -C build -w . python3 bench/profile-models.py FOLDER [cuda|cpu]

The numbers are right if there is one kernel for each launch outside of graphs, and if all kernels have an operation.
"""

import collections
import contextlib
import gzip
import importlib
import io
import json
import pathlib
import runpy
import sys
import time

import gtorch as torch
from gtorch.profiler import ProfilerActivity, profile

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parent / 'examples'
LAUNCHES = ('cuLaunchKernel', 'cudaLaunchKernel', 'cuLaunchCooperativeKernel', 'cudaLaunchCooperativeKernel')
MODELS = {
    'digits': ('python/digits.py', ('--epochs', '1', '--output', '/dev/null')),
    'resnet18': ('models/resnet.py', ('--steps', '10')),
    'gpt2': ('models/gpt2.py', ('--steps', '5', '--size', 'mini', '--length', '5')),
    'gpt2-graph': ('models/gpt2.py', ('--steps', '5', '--size', 'mini', '--length', '5', '--graph')),
}


def run(script, arguments, device):
    """Runs an example as if it was called so; its output is dropped."""
    former = sys.argv
    given = (*arguments, '--device', device)
    sys.argv = [script, *given]
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path(str(EXAMPLES / script), run_name='__main__')
    except SystemExit as end:
        if end.code:
            raise
    finally:
        sys.argv = former


def counts(path):
    """What the trace has of each kind."""
    with gzip.open(path, 'rt') as file:
        events = json.load(file)['traceEvents']
    kinds = collections.Counter(event.get('cat') for event in events if event['ph'] == 'X')
    kernels = [event for event in events if event.get('cat') == 'kernel']
    launches = [event for event in events if event.get('cat') == 'cuda_driver' and event['name'].startswith(LAUNCHES)]
    launched = {event['args']['correlation'] for event in launches}
    plain = [event for event in kernels if 'graph id' not in event['args']]
    return {
        'operations': kinds['cpu_op'],
        'calls of the driver': kinds['cuda_driver'],
        'launches': len(launches),
        'kernels': len(kernels),
        'of them outside of graphs': len(plain),
        'kernels without a launch': sum(event['args']['correlation'] not in launched for event in plain),
        'kernels without an operation': sum(event['args']['External id'] == 0 for event in kernels),
        'copies': kinds['gpu_memcpy'],
        'fills': kinds['gpu_memset'],
    }


def perfetto(path):
    """The number of slices that the trace processor finds, or why it does not."""
    try:
        processor = importlib.import_module('perfetto.trace_processor').TraceProcessor(trace=str(path))
        (row,) = processor.query('select count(*) as n from slice')
        return f'{row.n} slices'
    except Exception as error:  # noqa: B902, of any kind
        return f'not read: {error}'


def main():
    folder, device = pathlib.Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else 'cuda'
    folder.mkdir(parents=True, exist_ok=True)
    if device == 'cuda':
        torch.set_default_device('cuda')
    wrong = False
    for name, (script, arguments) in MODELS.items():
        begun = time.time()
        try:
            with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True) as prof:
                run(script, arguments, device)
        except ModuleNotFoundError as error:
            print(f'== {name}: left out: {error}')
            continue
        took = time.time() - begun
        path = folder / f'{name}.json.gz'
        prof.export_chrome_trace(path)
        found = counts(path)
        print(f'== {name}: {took:.1f} s, {path.stat().st_size >> 10} KiB, perfetto: {perfetto(path)}')
        if prof.gpu_message:
            print(f'   {prof.gpu_message}')
        for what, number in found.items():
            print(f'   {number:8} {what}')
        column = 'self_cuda_time_total' if found['kernels'] else 'self_cpu_time_total'
        print(prof.key_averages().table(sort_by=column, row_limit=8))
        wrong |= found['launches'] != found['of them outside of graphs'] or found['kernels without an operation'] > 0
    return 1 if wrong else 0


sys.exit(main())
