#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The model of cost of bench/multi: it predicts what was measured, and its page has what it predicts."""

import io
import os
import pathlib
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'style'))
import tap

ROOT = pathlib.Path(tap.SOURCE_ROOT)
sys.path.insert(0, str(ROOT / 'bench' / 'multi'))
import cost

SIZES = [4, 2**10, 2**20, 2**26, 2**30]


@tap.case
def predictions_are_within_their_bounds():
    assert cost.print_check(io.StringIO())


@tap.case
def the_page_has_the_tables():
    page = (ROOT / 'docs' / 'cost-of-many-gpus.md').read_text('utf-8')
    for write in (cost.print_check, cost.print_scale):
        table = io.StringIO()
        write(table)
        assert table.getvalue() in page, 'run bench/multi/cost.py again:\n' + table.getvalue()


@tap.case
def more_bytes_and_more_gpus_take_more_time():
    for name, function in cost.COLLECTIVES.items():
        for n in (2, 4, *cost.COUNTS):
            times = [function(cost.H200, n, size) for size in SIZES]
            assert times == sorted(times) and len(set(times)) == len(times), (name, n, times)
        for size in SIZES:
            times = [function(cost.H200, n, size) for n in (1, 2, *cost.COUNTS)]
            assert times == sorted(times) and times[0] == 0, (name, size, times)


@tap.case
def nothing_is_faster_than_its_bandwidth():
    for n in (2, 8, 64):
        for function in cost.ALGORITHMS.values():
            for size in SIZES:
                floor = 2 * (n - 1) / n * size / cost.H200.reduce
                assert function(cost.H200, n, size) >= floor * 0.999, (n, size)
    for step in (cost.ddp_step, cost.sharded_step, cost.replicated_step):
        model = cost.gpt2_small(40e-3)
        assert step(cost.H200, model, 1) == model.step
        assert all(step(cost.H200, model, n) > model.step * 0.9 for n in cost.COUNTS)


@tap.case
def buckets_have_all_gradients():
    for make in (cost.gpt2_small, cost.resnet50):
        model = make(1.0)
        found = cost.buckets_of(model.gradients)
        assert sum(found) == model.total() and min(found[1:-1]) >= 25 * cost.MIB
    assert 480e6 < cost.gpt2_small(1.0).total() < 510e6 and 95e6 < cost.resnet50(1.0).total() < 107e6


@tap.case
def rows_of_the_measurements_have_predictions():
    assert cost.predict({'name': 'all_reduce', 'bytes': 2**20}, 2) < 20e-6
    assert cost.predict({'name': 'gpt2-ddp'}, 2, 40e-3) > 40e-3
    assert cost.predict({'name': 'resnet50-fsdp'}, 8, 40e-3) > 30e-3
    assert cost.predict({'name': 'gpt2-alone'}, 2, 40e-3) is None and cost.predict({'name': 'kill'}, 2) is None


if __name__ == '__main__':
    tap.main()
