# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Times the first sample of every operation row with GTorch and PyTorch, and prints the rows by their ratio."""

import subprocess
import sys

COUNTS = {'cpu': 4 << 20, 'cuda': 64 << 20}


def print_sweep(options, ours, peer, peer_command, form, ratio, best):
    """ours, peer: two programs that answer the lines of the plan."""
    if options.plan:
        prefixes = tuple(options.only.split(','))
        lines = [line for line in options.plan.read_text().splitlines() if line.startswith(prefixes)]
    else:
        command = [*peer_command, '--plan', str(COUNTS[options.device]), options.device, options.only]
        lines = subprocess.check_output(command, text=True, stderr=subprocess.DEVNULL).splitlines()
    lines = [line.split('\t') for line in lines]
    rows, failed = [], [(name, text) for name, nothing, text in (line for line in lines if line[1] == 'none')]
    for *line, count in (line for line in lines if line[1] != 'none'):
        text = '\t'.join(line)
        times = [(ours.ask(text), peer.ask(text)) for _ in range(options.rounds)]
        mine, theirs = (best(t[i] for t in times) for i in range(2))
        print(line[0], form(mine), form(theirs), ratio(theirs, mine), sep='\t', file=sys.stderr, flush=True)
        if mine and theirs:
            rows.append((theirs / mine, line[0], line[3], count, mine, theirs))
        else:
            failed.append((line[0], (peer if mine else ours).reason or 'no time'))
    print('| operation | dtype | elements | GTorch | PyTorch | PyTorch / GTorch |')
    print('|---|---|---|---|---|---|')
    for _, name, dtype, count, mine, theirs in sorted(rows):
        print(f'| {name} | {dtype} | {count} | {form(mine)} | {form(theirs)} | {ratio(theirs, mine)} |')
    print(f'\n{len(rows)} operations; not measured:')
    for name, text in failed:
        print(f'- {name}: {text}')
