#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tensors that several processes have: torch.multiprocessing, as PyTorch's users write it. On the CPU, and on
the first two GPUs, where there are any."""

import gc
import multiprocessing
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gtorch as torch  # noqa: E402
import gtorch.multiprocessing as mp  # noqa: E402
from gi.repository import GLib, GTorch  # noqa: E402

import tap  # noqa: E402
from tap import raises  # noqa: E402

nn = torch.nn
DEVICES = ['cpu'] + [f'cuda:{i}' for i in range(torch.cuda.device_count())][:2]
PATIENCE = 60


def _fill(tensor, value):
    tensor.fill_(value)
    if tensor.is_cuda:
        torch.cuda.synchronize(tensor.device)


def _fill_all(queue, done, value):
    """In another process: fills the tensors of the queue."""
    while True:
        tensor = queue.get()
        if tensor is None:
            break
        _fill(tensor, value)
        del tensor
        gc.collect()
        done.put('filled')


def _child(function, *args):
    process = mp.get_context('spawn').Process(target=function, args=args, daemon=True)
    process.start()
    return process


def _join(process):
    process.join(PATIENCE)
    assert process.exitcode == 0, process.exitcode


@tap.case
def tensors_in_queues_are_the_same_memory():
    context = mp.get_context('spawn')
    for make in (context.Queue, context.SimpleQueue):
        queue, done = make(), make()
        process = _child(_fill_all, queue, done, 7)
        for device in DEVICES:
            x = torch.zeros(2, 3, device=device)
            part = torch.zeros(5, 4, device=device)
            queue.put(x)
            assert done.get() == 'filled' and x.is_shared()
            assert x.tolist() == [[7.0] * 3] * 2, x
            queue.put(part[1:3, ::2])
            assert done.get() == 'filled'
            assert part.sum().item() == 4 * 7 and part[1, 2].item() == 7
        queue.put(None)
        _join(process)


def _send(queue, go_on):
    """In another process: sends tensors, and then what they have become. Names nothing of gtorch.multiprocessing."""
    tensors = [torch.zeros(2), nn.Parameter(torch.zeros(2))]
    for tensor in tensors:
        queue.put(tensor)
    assert go_on.wait(PATIENCE)
    queue.put([tensor.tolist() for tensor in tensors])


@tap.case
def tensors_that_started_processes_send_are_the_same_memory():
    for method in ('spawn', 'forkserver', 'fork'):
        context = multiprocessing.get_context(method)
        queue, go_on = context.Queue(), context.Event()
        process = context.Process(target=_send, args=(queue, go_on), daemon=True)
        process.start()
        x, weight = queue.get(timeout=PATIENCE), queue.get(timeout=PATIENCE)
        assert x.is_shared() and weight.is_shared() and isinstance(weight, nn.Parameter), method
        x.fill_(3)
        weight.data.fill_(4)
        go_on.set()
        assert queue.get(timeout=PATIENCE) == [[3.0, 3.0], [4.0, 4.0]], method
        _join(process)


@tap.case
def tensors_are_arguments_of_processes():
    for device in DEVICES:
        x = torch.zeros(4, device=device)
        _join(_child(_fill, x, 3))
        assert x.tolist() == [3.0] * 4


def _train(model, bias):
    assert isinstance(model.weight, nn.Parameter) and model.weight.requires_grad and bias.requires_grad
    with torch.no_grad():
        model.weight.fill_(2)
        model.bias.copy_(bias)
    if model.weight.is_cuda:
        torch.cuda.synchronize(model.weight.device)


@tap.case
def modules_are_trained_by_other_processes():
    for device in DEVICES:
        model = nn.Linear(3, 2).to(device)
        assert model.share_memory() is model and model.weight.is_shared()
        bias = torch.ones(2, device=device, requires_grad=True)
        mp.spawn(_train_at, (model, bias), nprocs=2)
        assert model.weight.tolist() == [[2.0] * 3] * 2 and model.bias.tolist() == [1.0, 1.0]


def _train_at(_index, model, bias):
    _train(model, bias)


@tap.case
def a_forked_child_has_memory_that_was_shared():
    x, own = torch.zeros(3), torch.zeros(3)
    assert x.share_memory_() is x and x.is_shared() and not own.is_shared()
    child = os.fork()
    if child == 0:
        x.fill_(1)
        own.fill_(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert x.tolist() == [1.0] * 3 and own.tolist() == [0.0] * 3


@tap.case
def memory_that_cannot_move_is_copied():
    queue = mp.get_context('spawn').SimpleQueue()
    x = torch.from_dlpack(torch.ones(3))
    raises(GLib.Error, 'clone', x.share_memory_)
    queue.put(x)
    y = queue.get()
    y.fill_(5)
    assert x.tolist() == [1.0] * 3


@tap.case
def memory_that_others_see_does_not_move():
    for show in (lambda x: x.numpy(), memoryview, torch.from_dlpack, lambda x: x.view(2, 2).T.numpy()):
        try:
            x = torch.zeros(4)
            shown = show(x)
        except ImportError:
            continue  # without NumPy
        queue = mp.SimpleQueue()
        raises(ValueError, 'would not see it move', x.share_memory_)
        raises(ValueError, 'would not see it move', queue.put, x)
        assert not x.is_shared()
        del shown
        gc.collect()
        x.share_memory_()
        later = show(x)
        queue.put(x)
        queue.get().fill_(3)
        assert x.tolist() == [3.0] * 4 and torch.asarray(later).sum().item() == 12


@tap.case
def a_queue_in_one_process_gives_the_same_memory():
    queue = mp.SimpleQueue()
    for device in DEVICES:
        x = torch.zeros(3, device=device)
        queue.put(x)
        y = queue.get()
        y.fill_(2)
        assert y.data_ptr() == x.data_ptr() and x.tolist() == [2.0] * 3
    parameter = nn.Parameter(torch.zeros(2), requires_grad=False)
    queue.put(parameter)
    assert isinstance(queue.get(), nn.Parameter)
    raises(RuntimeError, 'detach', queue.put, torch.ones(2, requires_grad=True) * 2)


def _fds():
    return len(os.listdir('/proc/self/fd'))


@tap.case
def many_sends_leave_nothing_open():
    context = mp.get_context('spawn')
    queue, done = context.SimpleQueue(), context.SimpleQueue()
    process = _child(_fill_all, queue, done, 1)
    for device in DEVICES:
        before = None
        for i in range(100):
            queue.put(torch.zeros(10, device=device))
            assert done.get() == 'filled'
            if i == 10:
                before = _fds()
        until = time.monotonic() + PATIENCE
        while _fds() > before + 4 and time.monotonic() < until:
            time.sleep(0.01)
        assert _fds() <= before + 4, (before, _fds())
    queue.put(None)
    _join(process)


@tap.case
def handles_are_bytes_and_file_descriptors():
    x = torch.zeros(4).share_memory_()
    handle = GTorch.TensorHandle.new(x)
    data, fds = handle.get_bytes(), handle.get_fds()
    same = GTorch.TensorHandle.new_from_bytes(data, fds).open()
    same.fill_(6)
    assert x.tolist() == [6.0] * 4
    raises(GLib.Error, 'not a handle', GTorch.TensorHandle.new_from_bytes, GLib.Bytes.new(b'abc'), [])
    raises(GLib.Error, 'file descriptors', GTorch.TensorHandle.new_from_bytes, data, [])


if __name__ == '__main__':
    tap.main()
