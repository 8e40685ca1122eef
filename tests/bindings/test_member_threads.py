#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Threads use modules while others replace what they consist of. Calls of the library run without Python's lock.

An argument is how often each thread does so."""

import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GTorch  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402

nn, optim = GTorch.nn, GTorch.optim
N_ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 2000


def together(change, *uses):
    """Calls change N_ROUNDS times, and meanwhile the others in threads of their own."""
    faults, changing, start = [], threading.Event(), threading.Barrier(1 + len(uses))

    def run(function, goes_on):
        try:
            start.wait()
            while goes_on():
                function()
        except BaseException as fault:  # a thread would only print it
            faults.append(fault)
            raise

    changing.set()
    threads = [threading.Thread(target=run, args=(use, changing.is_set)) for use in uses]
    for thread in threads:
        thread.start()
    left = iter(range(N_ROUNDS))
    try:
        run(change, lambda: next(left, None) is not None)
    finally:
        changing.clear()
        for thread in threads:
            thread.join()
    assert not faults, faults


@tap.case
def a_parameter_is_replaced():
    module, x = nn.Linear(4, 8), GTorch.ones(2, 4)

    def change():
        module.weight = nn.Parameter(GTorch.ones(8, 4))

    together(change, lambda: module(x), lambda: module.weight.shape, lambda: list(module.parameters()))


@tap.case
def a_buffer_is_replaced():
    module, x = nn.BatchNorm1d(4).eval(), GTorch.ones(2, 4)

    def change():
        module.running_mean = GTorch.zeros(4)

    together(change, lambda: module(x), lambda: module.running_mean.shape, module.state_dict)


@tap.case
def the_weight_of_a_loss_is_replaced():
    loss, x, y = nn.CrossEntropyLoss(weight=GTorch.ones(3)), GTorch.ones(2, 3), GTorch.tensor([0, 1])

    def change():
        loss.weight = GTorch.ones(3)

    together(change, lambda: loss(x, y), lambda: loss.weight.shape)


@tap.case
def children_are_replaced():
    row, x = nn.Sequential(nn.Linear(4, 8), nn.ReLU()), GTorch.ones(2, 4)

    def change():
        row[1] = nn.Tanh()
        row.append(nn.ReLU())
        row.append(nn.Tanh())
        del row[1]
        row.pop(1)

    together(change, lambda: row(x), lambda: repr(row), lambda: list(row.modules()), row.state_dict)


@tap.case
def hooks_come_and_go():
    module, x = nn.Linear(4, 8), GTorch.ones(2, 4)
    together(lambda: module.register_forward_hook(lambda *args: None).remove(), lambda: module(x), lambda: module(x))


@tap.case
def groups_are_added():
    optimizer = optim.SGD([nn.Parameter(GTorch.ones(1))], lr=0.1)
    together(
        lambda: optimizer.add_param_group({'params': [nn.Parameter(GTorch.ones(1))]}),
        optimizer.step, optimizer.zero_grad, lambda: [group['lr'] for group in optimizer.param_groups],
    )


if __name__ == '__main__':
    tap.main()
