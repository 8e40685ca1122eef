#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tensors are exchanged with PyTorch on one GPU, in the order of both libraries' streams.

Needs a GPU, and a Python that has both `gi` and `torch`; otherwise all cases are skipped."""

import gc
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GTorch  # noqa: E402

import tap  # noqa: E402

try:
    import torch
except ImportError as error:
    print(f'1..0 # SKIP there is no PyTorch: {error}')
    sys.exit(0)
if not GTorch.cuda.is_available() or not torch.cuda.is_available():
    print('1..0 # SKIP no GPU')
    sys.exit(0)

N = 1 << 22
ROUNDS = 20
DTYPES = ('float32', 'float64', 'float16', 'bfloat16', 'int8', 'uint8', 'int16', 'int32', 'int64', 'bool')


def streams():
    """Yields pairs of a stream of PyTorch and one of this library, including the default ones."""
    for theirs in (torch.cuda.default_stream(), torch.cuda.Stream()):
        for ours in (GTorch.cuda.default_stream(), GTorch.Stream('cuda:0')):
            yield theirs, ours


@tap.case
def results_of_pytorch_are_visible_here():
    for theirs, ours in streams():
        for i in range(ROUNDS):
            with torch.cuda.stream(theirs), ours:
                x = torch.zeros(N, device='cuda:0')
                for _ in range(10):
                    x += i
                shown = GTorch.from_dlpack(x)
                assert shown.data_ptr() == x.data_ptr() and shown.device == GTorch.Device('cuda:0')
                assert (shown.sum() / N).item() == 10 * i


@tap.case
def results_of_gtorch_are_visible_to_pytorch():
    for theirs, ours in streams():
        for i in range(ROUNDS):
            with torch.cuda.stream(theirs), ours:
                x = GTorch.zeros(N, device='cuda:0')
                for _ in range(10):
                    x.add_(i)
                shown = torch.from_dlpack(x)
                assert shown.data_ptr() == x.data_ptr() and shown.device == torch.device('cuda:0')
                assert shown.sum().item() / N == 10 * i


@tap.case
def memory_is_not_used_again_too_early():
    """The producer drops the tensor at once; the other library still has work that reads it."""
    for theirs, ours in streams():
        for i in range(ROUNDS):
            with torch.cuda.stream(theirs), ours:
                shown = GTorch.from_dlpack(torch.full((N,), float(i), device='cuda:0'))
                for _ in range(5):
                    result = shown * 1
                del shown
                overwritten = torch.full((N,), -1.0, device='cuda:0')
                assert (result.sum() / N).item() == i
                shown = torch.from_dlpack(GTorch.full((N,), float(i), device='cuda:0'))
                for _ in range(5):
                    result = shown * 1
                del shown
                again = GTorch.full((N,), -1.0, device='cuda:0')
                assert result.sum().item() / N == i
                del overwritten, again


@tap.case
def dtypes_and_layouts_are_kept():
    for name in DTYPES:
        x = torch.arange(24, device='cuda:0').to(getattr(torch, name)).view(2, 3, 4)
        for view in (x, x.transpose(0, 2), x[1:, ::2], x[:, 1, 1:], x[..., :0], x.expand(2, 3, 4)[0, 0, 0]):
            shown = GTorch.from_dlpack(view)
            assert tuple(shown.shape) == tuple(view.shape), name
            assert shown.cpu().tolist() == view.cpu().tolist(), f'{name}: {shown}'
            back = torch.from_dlpack(shown)
            assert back.dtype == view.dtype and back.stride() == view.stride(), name
            assert torch.equal(back, view), name


@tap.case
def writes_are_visible_on_both_sides():
    x = torch.zeros(8, device='cuda:0')
    shown = GTorch.from_dlpack(x)
    shown.add_(3)
    GTorch.cuda.synchronize()
    assert x.tolist() == [3] * 8
    x.mul_(2)
    torch.cuda.synchronize()
    assert shown.cpu().tolist() == [6] * 8


@tap.case
def pinned_memory_is_exchanged_too():
    x = torch.arange(N, dtype=torch.float32).pin_memory()
    for _ in range(ROUNDS):
        shown = GTorch.from_dlpack(x)
        there = shown.to('cuda:0')
        x.neg_()  # the copy is done
        back = there.cpu()
        assert back[-1].item() == -x[-1].item()


@tap.case
def memory_is_freed():
    torch.cuda.synchronize()
    before, own = torch.cuda.memory_allocated(), GTorch.cuda.memory_allocated()
    for _ in range(ROUNDS):
        shown = GTorch.from_dlpack(torch.ones(N, device='cuda:0'))
        shown.sum().item()
        theirs = torch.from_dlpack(GTorch.ones(N, device='cuda:0'))
        theirs.sum().item()
    del shown, theirs
    gc.collect()
    GTorch.cuda.synchronize()
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() == before and GTorch.cuda.memory_allocated() == own


@tap.case
def streams_have_the_same_numbers():
    theirs = torch.cuda.Stream()
    ours = GTorch.Stream.new_from_address(GTorch.Device('cuda:0'), theirs.cuda_stream)
    assert ours.get_address() == theirs.cuda_stream
    with torch.cuda.stream(theirs), ours:
        x = torch.ones(N, device='cuda:0')
        assert GTorch.from_dlpack(x).sum().item() == N
    same = torch.cuda.ExternalStream(ours.get_address())
    same.synchronize()


if __name__ == '__main__':
    tap.main()
