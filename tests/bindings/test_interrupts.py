#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Ctrl-C, which raises in the main thread wherever it is, arrives as KeyboardInterrupt."""

import pathlib
import random
import signal
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GTorch  # noqa: E402

import tap  # noqa: E402
from gi.overrides._gtorch_mixin import mixin  # noqa: E402

nn = GTorch.nn


class Doubled(GTorch.Function):
    def forward(self, context, x):
        return x * 2

    def backward(self, context, grad):
        return grad * 2


class Interrupted(nn.Module):
    def forward(self, x):
        return Doubled.apply(x)


@tap.case
def an_interrupt_arrives_as_it_is():
    """It may come before the first line of a function that C calls."""
    net = nn.Sequential(nn.Linear(4, 4), Interrupted(), nn.Linear(4, 1))
    for module in net.modules():
        module.register_forward_hook(lambda module, inputs, output: None)
        module.register_full_backward_hook(lambda module, grads, outputs: None)
    optimizer = GTorch.optim.SGD(net.parameters(), lr=0.01)
    schedule = GTorch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1.0)
    x, main = GTorch.ones(3, 4), threading.main_thread().ident

    def train(is_sent):
        while not is_sent.is_set():
            optimizer.zero_grad()
            net(x).sum().backward()
            optimizer.step()
            schedule.step()
        time.sleep(10)  # the interrupt ends this
        raise AssertionError('the interrupt is lost')

    def interrupt(delay, is_sent):
        time.sleep(delay)
        signal.pthread_kill(main, signal.SIGINT)
        is_sent.set()

    numbers, told = random.Random(5), []
    for _ in range(60 if mixin is not None else 0):  # without the accelerator PyGObject prints some of them
        is_sent = threading.Event()
        thread = threading.Thread(target=interrupt, args=(numbers.uniform(0.001, 0.008), is_sent))
        try:
            thread.start()
            train(is_sent)
        except BaseException as error:
            told.append(type(error))
        thread.join()
    assert set(told) <= {KeyboardInterrupt}, told


@tap.case
def an_interrupt_in_a_handler_of_a_trainer_ends_the_run():
    net = nn.Linear(2, 1)
    optimizer = GTorch.optim.SGD(net.parameters(), lr=0.01)
    trainer = GTorch.Trainer(net, [(GTorch.ones(2, 2), GTorch.ones(2, 1))], nn.MSELoss(), optimizer, n_epochs=10**9)
    trainer.connect('step-done', lambda *_values: None)
    main, numbers, told = threading.main_thread().ident, random.Random(5), []
    for _ in range(20 if mixin is not None else 0):
        late = threading.Timer(20, trainer.stop)
        late.start()
        try:
            threading.Timer(numbers.uniform(0.02, 0.05), signal.pthread_kill, (main, signal.SIGINT)).start()
            trainer.run()
            raise AssertionError('the interrupt is lost')
        except BaseException as error:
            told.append(type(error))
        late.cancel()
        late.join()
    assert set(told) <= {KeyboardInterrupt}, told


if __name__ == '__main__':
    tap.main()
