#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Numbers passed to functions and to indexed assignment arrive exactly, or are refused."""

import itertools
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402

DTYPES = ('float32', 'float64', 'float16', 'bfloat16', 'int8', 'uint8', 'int16', 'int32', 'int64', 'bool',
          'complex64', 'complex128')  # fmt: skip
NUMBERS = (0, 1, -1, 127, 128, 255, 256, -129, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**70, 1.5, 65504.0, 65536.0, 1e300,
           math.nan, math.inf, -math.inf, True, False)  # fmt: skip
REFUSED = (GLib.Error, TypeError, OverflowError, RuntimeError)


def outcome(function):
    """Returns the result as text, or that it raises."""
    try:
        return repr(function())
    except REFUSED:
        return 'raises'


def written(dtype, key, number):
    made = GTorch.zeros(2, dtype=dtype)
    made[key] = number
    return made[0].item()


def filled(dtype, number):
    return GTorch.zeros((), dtype=dtype).fill_(number).item()


@tap.case
def indexed_assignment_takes_the_numbers_that_fill_takes():
    keys = (0, slice(0, 1), [0], GTorch.tensor([True, False]), ..., (None, 0), GTorch.tensor([0]))
    seen = set()
    for name, number in itertools.product(DTYPES, NUMBERS):
        dtype = getattr(GTorch, name)
        expected = outcome(lambda: filled(dtype, number))
        seen.add(expected == 'raises')
        for key in keys:
            found = outcome(lambda key=key: written(dtype, key, number))
            assert found == expected, (name, number, key, found, expected)
    assert seen == {True, False}


@tap.case
def complex_numbers_go_into_complex_tensors_only():
    for name in DTYPES:
        dtype = getattr(GTorch, name)
        if dtype.is_complex:
            assert written(dtype, 0, 3 + 4j) == 3 + 4j
            assert GTorch.full((1,), 3 + 4j, dtype=dtype)[0].item() == 3 + 4j
            assert GTorch.tensor([3 + 4j, 1], dtype=dtype)[0].item() == 3 + 4j
            continue
        assert outcome(lambda: written(dtype, 0, 3 + 4j)) == 'raises', name
        if name != 'bool':
            assert outcome(lambda: GTorch.tensor(3 + 4j, dtype=dtype)) == 'raises', name
            assert outcome(lambda: GTorch.tensor([[1], [3j]], dtype=dtype)) == 'raises', name
            assert outcome(lambda: GTorch.full((1,), 3 + 4j, dtype=dtype)) == 'raises', name
    assert outcome(lambda: written(GTorch.complex64, 0, 1e300j)) == 'raises'
    assert written(GTorch.complex128, 0, 1e300j) == 1e300j


WHOLE = (0, 3, -7, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63))


@tap.case
def an_integer_in_a_tensor_keeps_its_bits():
    for number in WHOLE:
        tensor, start = GTorch.tensor(number), GTorch.tensor([0])
        for call in (
            lambda n: GTorch.tensor([0]).fill_(n),
            start.fill,
            start.full_like,
            lambda n: GTorch.full((1,), n),
            lambda n: GTorch.full((1,), n, dtype=GTorch.int64),
            lambda n: start.masked_fill(GTorch.tensor([True]), n),
        ):
            assert call(tensor).item() == call(number).item() == number, number
    for tensor in (GTorch.tensor(2**53 + 1), GTorch.tensor([2**53 + 1])):
        end = tensor + 2
        assert GTorch.arange(tensor, end).tolist() == [2**53 + 1, 2**53 + 2]


@tap.case
def zero_dim_tensors_promote_like_numbers():
    for number in (3, 3.0, True, 3 + 4j):
        whole = GTorch.tensor(number)
        assert GTorch.full((2,), whole).dtype == GTorch.full((2,), number).dtype == whole.dtype, number
        assert GTorch.full((2,), whole).tolist() == [number, number]
    assert GTorch.arange(GTorch.tensor(5)).dtype == GTorch.int64
    assert GTorch.arange(GTorch.tensor(5.0)).dtype == GTorch.float32
    loss = GTorch.tensor(3.0, requires_grad=True)
    for call in (lambda: GTorch.full((2,), loss), lambda: GTorch.arange(loss), lambda: GTorch.ones(2).fill_(loss)):
        assert outcome(call) == 'raises'


@tap.case
def scalars_of_numpy_are_numbers():
    try:
        import numpy
    except ImportError:
        return
    for scalar, dtype in (
        (numpy.bool_(True), GTorch.bool),
        (numpy.int8(3), GTorch.int64),
        (numpy.uint64(7), GTorch.int64),
        (numpy.int64(2**53 + 1), GTorch.int64),
        (numpy.float16(1.5), GTorch.float32),
        (numpy.float64(1.5), GTorch.float32),
        (numpy.complex64(3j), GTorch.complex64),
        (numpy.array(3), GTorch.int64),
    ):
        made = GTorch.full((1,), scalar)
        assert made.dtype == dtype and made.item() == scalar.item(), scalar
        written = GTorch.zeros(1, dtype=dtype)
        written[0] = scalar
        assert written.item() == scalar.item(), scalar
    for call in (
        lambda: GTorch.ones(2).fill_(numpy.complex64(1j)),
        lambda: GTorch.ones(2).__setitem__(0, numpy.complex64(1j)),
        lambda: GTorch.tensor(numpy.complex64(1j), dtype=GTorch.float32),
        lambda: GTorch.zeros(2, dtype=GTorch.int8).__setitem__(0, numpy.int64(300)),
    ):
        assert outcome(call) == 'raises'


def takers():
    """Yields calls with one argument that must be an integer, and calls with one that must be
    True or False."""
    x, net = GTorch.ones(2), GTorch.nn.BatchNorm1d(2)
    optimizer = GTorch.optim.SGD(net.parameters(), lr=0.1)
    whole = {
        'device': GTorch.device,
        'ones device': lambda value: GTorch.ones(2, device=value),
        'set_device': GTorch.cuda.set_device,
        'cuda.device': lambda value: GTorch.cuda.device(value).__enter__(),
        'memory_allocated': GTorch.cuda.memory_allocated,
        'set_num_threads': GTorch.set_num_threads,
        'Stream priority': lambda value: GTorch.Stream('cpu', priority=value),
        'shape': GTorch.ones,
        'dim': lambda value: GTorch.ones(2, 2).sum(value),
    }

    def loss():
        return (GTorch.ones(2).requires_grad_() * 2).sum()

    flags = {
        'requires_grad': lambda value: setattr(GTorch.ones(2), 'requires_grad', value),
        'requires_grad_': x.clone().requires_grad_,
        'tensor': lambda value: GTorch.tensor([1.0], requires_grad=value),
        'Parameter': lambda value: GTorch.nn.Parameter(x, value),
        'train': net.train,
        'Module.requires_grad_': net.requires_grad_,
        'Module.zero_grad': net.zero_grad,
        'Optimizer.zero_grad': optimizer.zero_grad,
        'load_state_dict': lambda value: net.load_state_dict(net.state_dict(), value),
        'register_buffer': lambda value: net.register_buffer('other', x, value),
        'to non_blocking': lambda value: x.to(GTorch.float64, non_blocking=value),
        'to copy': lambda value: x.to(GTorch.float64, copy=value),
        'backward keep': lambda value: loss().backward(retain_graph=value),
        'backward create': lambda value: loss().backward(create_graph=value),
        'autograd.backward': lambda value: GTorch.autograd.backward([loss()], create_graph=value),
        'set_grad_enabled': lambda value: GTorch.set_grad_enabled(value).__enter__().__exit__(),
        'autocast': lambda value: GTorch.autocast('cpu', enabled=value),
        'autocast cache': lambda value: GTorch.autocast('cpu', cache_enabled=value),
        'Event timing': lambda value: GTorch.Event(value),
        'Event blocking': lambda value: GTorch.Event(blocking=value),
        'bias': lambda value: GTorch.nn.Linear(2, 2, bias=value),
        'training': lambda value: setattr(net, 'training', value),
        'keepdim': lambda value: x.sum(0, keepdim=value),
    }
    return whole, flags


@tap.case
def dtypes_and_booleans_are_not_integers():
    whole, _flags = takers()
    before = GTorch.get_num_threads(), GTorch.cuda.is_available() and GTorch.cuda.current_device()
    for name, call in whole.items():
        for value in (GTorch.float32, GTorch.int8, True, False):
            if name == 'shape' and isinstance(value, bool):
                continue
            try:
                call(value)
            except TypeError:
                continue
            except GLib.Error as error:
                raise AssertionError(f'{name} took {value!r}: {error}') from None
            raise AssertionError(f'{name} took {value!r}')
    assert before == (GTorch.get_num_threads(), GTorch.cuda.is_available() and GTorch.cuda.current_device())


@tap.case
def only_true_and_false_are_booleans():
    _whole, flags = takers()
    for name, call in flags.items():
        for value in (True, False, 1, 0):
            call(value)
        for value in ('no', '', 'False', 2, 0.5, [], GTorch.int8, GTorch.float32, GTorch.ones(1)):
            try:
                call(value)
            except TypeError:
                continue
            raise AssertionError(f'{name} took {value!r}')
    GTorch.set_grad_enabled(True)
    for call in (lambda: GTorch.ones(1).to(True), lambda: GTorch.ones(1).to(False, True)):
        assert outcome(call) == 'raises'
    assert GTorch.ones(1).to(GTorch.float64, True).dtype == GTorch.float64


@tap.case
def nothing_is_computed_with_dtypes():
    kind = GTorch.float32
    for call in (
        lambda: kind + 1,
        lambda: 1 + kind,
        lambda: kind * kind,
        lambda: 2**kind,
        lambda: kind / 2,
        lambda: 1 - kind,
        lambda: -kind,
        lambda: abs(kind),
        lambda: kind % 2,
        lambda: kind | 1,
        lambda: float(kind),
        lambda: GTorch.ones(2) + kind,
    ):
        assert outcome(call) == 'raises'
    assert kind == GTorch.float32 != GTorch.float64 and {kind: 1}[GTorch.float32] == 1 and kind in (kind,)


def rows():
    return GTorch.arange(1, 7, dtype='float64').reshape(2, 3)


@tap.case
def the_least_number_of_int32_is_a_bound_of_int64():
    x = GTorch.tensor([-(2**40), 5, 2**40])
    least, most = -(2**31), 2**31 - 1
    for bounds in ((least, most), (least, None), (GTorch.tensor(least).item(), most)):
        found = x.clamp(*bounds).tolist()
        assert found == [least, 5, 2**40 if bounds[1] is None else most], found
    assert x.clamp(max=least).tolist() == [-(2**40), least, least]
    assert x.clone().clamp_(least, most).dtype == GTorch.int64
    assert GTorch.clamp(x, min=least, max=most).tolist() == [least, 5, most]
    assert GTorch.randint(least, least + 1, (2,)).tolist() == [least, least]


@tap.case
def none_leaves_an_argument_out():
    x, image, table, index = rows(), GTorch.ones(1, 4, 4), GTorch.ones(3, 2), GTorch.tensor([0, 2])
    attend = GTorch.scaled_dot_product_attention
    for without, none, refused in (
        (lambda: GTorch.fft_fft(x), lambda: GTorch.fft_fft(x, n=None), lambda: GTorch.fft_fft(x, n=-1)),
        (lambda: GTorch.fft_irfft(x), lambda: GTorch.fft_irfft(x, None), lambda: GTorch.fft_irfft(x, -1)),
        (lambda: GTorch.eye(3), lambda: GTorch.eye(3, None), lambda: GTorch.eye(3, -1)),
        (lambda: x.as_strided([2], [1]), lambda: x.as_strided([2], [1], None), lambda: x.as_strided([2], [1], -1)),
        (lambda: image.avg_pool2d(2), lambda: image.avg_pool2d(2, divisor_override=None),
         lambda: image.avg_pool2d(2, divisor_override=0)),
        (lambda: GTorch.embedding(table, index), lambda: GTorch.embedding(table, index, None),
         lambda: GTorch.embedding(table, index, -4)),
        (lambda: attend(x, x, x), lambda: attend(x, x, x, scale=None), None),
        (lambda: x.var(), lambda: x.var(correction=None), None),
        (lambda: x.std(), lambda: x.std(correction=None), None),
    ):  # fmt: skip
        assert without().tolist() == none().tolist()
        assert refused is None or outcome(refused) == 'raises'
    assert attend(x, x, x, scale=0.0).tolist() != attend(x, x, x).tolist()


tap.main()
