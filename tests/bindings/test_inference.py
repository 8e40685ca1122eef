#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Inference mode: what it makes, and what may be done with that outside. What the cases say is PyTorch's."""

import copy
import pathlib
import pickle
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GTorch as torch  # noqa: E402

import tap  # noqa: E402
from tap import raises  # noqa: E402

CHANGED = 'was made in inference mode and cannot be changed in place outside of it: clone it before'
SAVED = 'was made in inference mode and cannot be saved for a backward pass: clone it before'
REQUIRES = 'was made in inference mode and cannot require grad outside of it: clone it before'


def made():
    """An inference tensor."""
    with torch.inference_mode():
        return torch.ones(3)


@tap.case
def the_mode_ends_with_its_block():
    assert not torch.is_inference_mode_enabled()
    with torch.inference_mode():
        assert torch.is_inference_mode_enabled() and not torch.is_grad_enabled()
        with torch.inference_mode(False):
            assert not torch.is_inference_mode_enabled() and torch.is_grad_enabled()
            assert not torch.ones(1).is_inference()
        assert torch.is_inference_mode_enabled() and torch.ones(1).is_inference()
        with torch.no_grad():
            assert torch.is_inference_mode_enabled()
        with torch.enable_grad():
            assert torch.is_inference_mode_enabled()
            assert not (torch.ones(1, requires_grad=True) * 2).requires_grad
    assert not torch.is_inference_mode_enabled() and torch.is_grad_enabled()
    assert torch.inference_mode()(torch.is_inference_mode_enabled)()
    assert torch.inference_mode(torch.is_inference_mode_enabled)()
    assert torch.autograd.inference_mode is torch.inference_mode
    raises(TypeError, lambda: torch.inference_mode(1.5), 'True or False')


@tap.case
def the_mode_is_that_of_the_thread():
    found = []
    with torch.inference_mode():
        thread = threading.Thread(target=lambda: found.append(torch.ones(1).is_inference()))
        thread.start()
        thread.join()
    assert found == [False]


@tap.case
def tensors_of_the_block_and_their_views_are_inference_tensors():
    normal = torch.zeros(2, 3)
    with torch.inference_mode():
        x = torch.ones(2, 3)
        views = x.view(6), x[0], x.t(), x.detach(), x.unsqueeze(0), x.expand(4, 2, 3), x.narrow(1, 0, 1), x.data
        for one in (x, x + 1, normal * 2, torch.tensor([1, 2]), torch.arange(3), torch.complex(x, x).real, *views):
            assert one.is_inference()
        for one in (normal, normal.view(6), normal[0], normal.t(), normal.detach()):
            assert not one.is_inference()
        parts = torch.complex(x, x)
    for one in (x.view(6), x[0], x.t(), x.detach(), x.view(6).view(2, 3), x.contiguous(), x.to('cpu'), parts.real,
                torch.view_as_real(parts), parts.imag, x.view(torch.int32), parts.resolve_conj(), *x.unbind()):
        assert one.is_inference()
    for one in (x + 1, x.clone(), x.long(), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), torch.complex(x, x).real):
        assert not one.is_inference()


@tap.case
def they_are_not_changed_in_place_outside():
    x, normal = made(), torch.ones(3)

    def assign():
        x[0] = 5

    with torch.inference_mode():
        y = torch.ones(3)
        y.add_(1).mul_(2)
        y[0] = 7
        assert y.tolist() == [7, 4, 4]
    for change in (lambda: x.add_(1), lambda: x.view(3).add_(1), lambda: x[0].fill_(2), assign, x.zero_,
                   lambda: torch.add(normal, normal, out=x), lambda: x.copy_(normal), lambda: x.normal_(),
                   lambda: torch.nn.init.ones_(x), lambda: x.unsqueeze_(0), lambda: x.resize_(5)):  # fmt: skip
        raises(RuntimeError, change, CHANGED)
        with torch.no_grad():
            raises(RuntimeError, change, CHANGED)
    assert x.tolist() == [1, 1, 1] and x.shape == (3,)
    assert str(raises(RuntimeError, lambda: x.add_(1))).startswith('add: the tensor of shape [3] was made')
    with torch.inference_mode():
        x.add_(1)
    assert x.tolist() == [2, 2, 2]
    assert normal.copy_(x).tolist() == [2, 2, 2]


@tap.case
def buffers_that_a_layer_changes_are_looked_at():
    with torch.inference_mode():
        norm = torch.nn.BatchNorm1d(3, affine=False)
        norm(torch.ones(2, 3))
    raises(RuntimeError, lambda: norm(torch.ones(2, 3)), CHANGED)
    norm = torch.nn.BatchNorm1d(3)
    with torch.inference_mode():
        norm(torch.ones(2, 3))
    norm(torch.ones(2, 3))
    assert norm.num_batches_tracked.item() == 2


@tap.case
def they_are_not_saved_for_backward_passes():
    x, weight = made(), torch.ones(3, requires_grad=True)
    raises(RuntimeError, lambda: x * weight, 'mul: ', SAVED)
    raises(RuntimeError, lambda: torch.nn.functional.linear(x, torch.ones(2, 3, requires_grad=True)), SAVED)
    total = (x + weight).sum()  # whose gradient needs no values
    total.backward()
    assert weight.grad.tolist() == [1, 1, 1] and not weight.grad.is_inference()
    (x.clone() * weight).sum().backward()
    with torch.no_grad():
        assert (x * weight).tolist() == [1, 1, 1]

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(b)
            return a * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2, None

    raises(RuntimeError, lambda: Twice.apply(weight, x), SAVED)
    assert Twice.apply(weight, x.clone()).requires_grad


@tap.case
def they_require_no_grad_outside():
    x = made()
    for ask in (x.requires_grad_, lambda: setattr(x, 'requires_grad', True), lambda: torch.nn.Parameter(x)):
        raises(RuntimeError, ask, REQUIRES)
    assert x.requires_grad_(False) is x and torch.nn.Parameter(x, requires_grad=False).is_inference()
    with torch.inference_mode():
        assert x.requires_grad_().requires_grad and torch.nn.Linear(2, 3).weight.is_inference()


@tap.case
def ordinary_tensors_are_changed_in_the_block_as_elsewhere():
    x, weight = torch.ones(3), torch.ones(3, requires_grad=True)
    product = x * weight
    with torch.inference_mode():
        x.add_(1)
        view = x.view(3)
        weight.mul_(2)
    assert x._version == 1 and weight.tolist() == [2, 2, 2] and weight.is_leaf and not x.is_inference()
    raises(RuntimeError, lambda: product.sum().backward(), 'changed in place')
    with torch.no_grad():
        view.add_(1)
    assert x.tolist() == [3, 3, 3]
    raises(RuntimeError, lambda: made()._version, 'made in inference mode')


@tap.case
def data_brings_its_kind():
    x = torch.zeros(3)
    x.data = made()
    assert x.is_inference()
    x.data = torch.zeros(3)
    assert not x.is_inference() and x.add_(1).tolist() == [1, 1, 1]


@tap.case
def streams_of_the_cpu_write_to_them():
    stream = torch.Stream(torch.device('cpu'))
    with torch.inference_mode(), stream:
        x = torch.ones(4)
        x.add_(1)
        x[1:].mul_(3)
        y = torch.cat([x, x]).cumsum(0)
    stream.synchronize()
    assert y.is_inference() and y.tolist() == [2, 8, 14, 20, 22, 28, 34, 40]


tap.main()
