#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Safe and unsafe programs with streams and backward passes, under GTORCH_CHECK=streams=fatal."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import tap  # noqa: E402


class Program:
    """A loss that is computed on its own stream; `main` is the current stream."""

    def __init__(self, device):
        self.device = GTorch.Device(device)
        self.s, self.work, self.main = (GTorch.Stream(self.device) for _ in range(3))

    def __enter__(self):
        self.main.__enter__()
        self.x = GTorch.full([64], 2.0, device=self.device).requires_grad_()
        self.work.wait_stream(self.main)
        with self.work:
            self.y = self.x * self.x
            self.loss = self.y.sum()
        return self

    def __exit__(self, *exception):
        self.main.__exit__(*exception)

    def ones(self):
        return GTorch.ones([64], device=self.device)


def grads_in_the_same_context(p):
    with p.s:
        p.loss.backward()
        return p.x.grad.sum().item()


def grads_in_another_context(p):
    with p.s:
        p.loss.backward()
    return p.x.grad.sum().item()


def grads_in_another_context_that_waits(p):
    with p.s:
        p.loss.backward()
    p.main.wait_stream(p.s)
    return p.x.grad.sum().item()


def initial_gradient_in_the_same_context(p):
    with p.s:
        p.y.backward(gradient=p.ones())
        return p.x.grad.sum().item()


def initial_gradient_of_another_context(p):
    initial = p.ones()
    with p.s:
        p.y.backward(gradient=initial)
        return p.x.grad.sum().item()


def initial_gradient_of_another_context_that_is_waited_for(p):
    initial = p.ones()
    p.s.wait_stream(p.main)
    with p.s:
        initial.record_stream(p.s)
        p.y.backward(gradient=initial)
        return p.x.grad.sum().item()


def results_in_another_context(p):
    with p.s:
        (grad,) = GTorch.autograd.grad(p.loss, p.x)
    return grad.sum().item()


def results_in_another_context_that_waits(p):
    with p.s:
        (grad,) = GTorch.autograd.grad(p.loss, p.x)
    p.main.wait_stream(p.s)
    return grad.sum().item()


def is_safe(program, device):
    with Program(device) as p:
        assert program(p) == 256


def is_unsafe(program, device):
    with Program(device) as p:
        try:
            program(p)
        except GLib.Error as error:
            assert 'streams: two streams use one tensor' in error.message, error.message
            assert 'called by ' in error.message and '; and by ' in error.message, error.message
            return
    raise AssertionError('no error')


for DEVICE in 'cpu', 'cuda':
    for PROGRAM in (
        grads_in_the_same_context,
        grads_in_another_context_that_waits,
        initial_gradient_in_the_same_context,
        initial_gradient_of_another_context_that_is_waited_for,
        results_in_another_context_that_waits,
    ):
        tap.add(f'safe_on_{DEVICE}_{PROGRAM.__name__}', is_safe, PROGRAM, DEVICE)
    for PROGRAM in (
        grads_in_another_context,
        initial_gradient_of_another_context,
        results_in_another_context,
    ):
        tap.add(f'unsafe_on_{DEVICE}_{PROGRAM.__name__}', is_unsafe, PROGRAM, DEVICE)


def sum_while_numbers_are_written(device, waits):
    device = GTorch.Device(device)
    stream, work = GTorch.Stream(device), GTorch.Stream(device)
    with stream:
        a = GTorch.empty([100, 100], device=device)
        # the fake driver has no random number kernels
        a.fill_(0) if device.type == 'cuda' else a.normal_()
    if waits:
        work.wait_stream(stream)
    with work:
        return a.sum().item()


def sum_is_in_order(device):
    assert abs(sum_while_numbers_are_written(device, True)) < 600


def sum_may_begin_too_early(device):
    try:
        sum_while_numbers_are_written(device, False)
    except GLib.Error as error:
        first = 'fill_ on stream' if device == 'cuda' else 'normal_ on stream'
        assert first in error.message and 'and sum on stream' in error.message, error.message
        assert '[100, 100]' in error.message, error.message
        return
    raise AssertionError('no error')


for DEVICE in 'cpu', 'cuda':
    tap.add(f'sum_is_in_order_on_{DEVICE}', sum_is_in_order, DEVICE)
    tap.add(f'sum_may_begin_too_early_on_{DEVICE}', sum_may_begin_too_early, DEVICE)


@tap.case
def hooks_run_on_the_stream_of_forward():
    with Program('cpu') as p:
        seen = []
        p.y.register_hook(lambda grad: seen.append(GTorch.Stream.get_current(p.device)))
        with p.s:
            p.loss.backward()
        assert seen == [p.work], seen


tap.main()
