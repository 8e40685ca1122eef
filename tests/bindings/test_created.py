#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tensors that the accelerator creates are those that the functions in Python make, which are called for an argument
that it does not know; modules and blocks of streams that it runs do what they did."""

import sys
import threading
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'style'))

import gtorch as torch  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402

IN_PYTHON = {'pin_memory': False}  # which the accelerator leaves to Python
SIZES = (((), {}), ((2, 3), {}), (((2, 3),), {}), (([4],), {}), ((0,), {}), (((),), {}), ((300, 300), {}),
         ((2, 3), {'dtype': torch.float64}), ((2,), {'dtype': torch.int64}), ((2,), {'dtype': torch.bool}),
         ((2,), {'dtype': torch.complex64}), ((2,), {'device': 'cpu'}), ((2,), {'device': torch.device('cpu')}),
         ((2,), {'device': None, 'dtype': None}), ((2,), {'requires_grad': True}), ((2,), {'requires_grad': False}),
         ((-1,), {}), ((2.0,), {}), ((True,), {}), ((None,), {}), (('2',), {}), ((2,), {'dtype': 3}),
         ((2,), {'device': 'nowhere'}), ((2,), {'wrong': 1}), (([2, [3]],), {}), ((2**62, 2**62), {}))
DATA = (1, 1.5, True, [1, 2], [1.0, 2.0], [1, 2.5], [True, False], [[1, 2], [3, 4]], [[1.0], [2]], (1, (2)),
        [[1], [2, 3]], [], [[]], [1, 'a'], [1, None], [2**62, 1], [2**53 + 1, 1.0], [2**70],
        [float('nan'), float('inf')], [1 + 2j],
        [1, True], [[[0.5] * 3] * 2] * 2, list(range(1024)), list(range(1025)), range(4), 'text', None, [1.0, [2.0]],
        [torch.tensor(1.0), 2.0])
OPTIONS = ({}, {'dtype': torch.float64}, {'dtype': torch.int32}, {'dtype': torch.bool}, {'dtype': torch.complex64},
           {'device': 'cpu'}, {'requires_grad': True})


def outcome(function, *args, **options):
    """What a call gives, or raises."""
    try:
        made = function(*args, **options)
    except Exception as error:
        return type(error), str(error)
    return made.dtype, tuple(made.shape), made.requires_grad, str(made.device), repr(made.tolist())


def differences(function, cases):
    found = []
    for args, options in cases:
        here, there = outcome(function, *args, **options), outcome(function, *args, **options, **IN_PYTHON)
        if here != there:
            found.append((function.__name__, args, options, here, there))
    return found


@tap.case
def tensors_of_a_size_are_the_same():
    wrong = [one for name in ('zeros', 'ones') for one in differences(getattr(torch, name), SIZES)]
    assert not wrong, wrong[:3]


@tap.case
def random_numbers_are_the_same():
    for name in ('rand', 'randn'):
        for args, options in SIZES:
            torch.manual_seed(3)
            here = outcome(getattr(torch, name), *args, **options)
            torch.manual_seed(3)
            there = outcome(getattr(torch, name), *args, **options, **IN_PYTHON)
            assert here == there, (name, args, options, here, there)


@tap.case
def empty_tensors_have_their_shape_and_dtype():
    for args, options in SIZES:
        here, there = outcome(torch.empty, *args, **options), outcome(torch.empty, *args, **options, **IN_PYTHON)
        assert here[:4] == there[:4], (args, options, here, there)


@tap.case
def tensors_of_numbers_are_the_same():
    for data in DATA:
        for options in OPTIONS:
            # as_tensor() does not go through the accelerator
            plain = {key: value for key, value in options.items() if key != 'requires_grad'}
            here, there = outcome(torch.tensor, data, **plain), outcome(torch.as_tensor, data, **plain)
            if isinstance(here[0], type) or isinstance(there[0], type):
                kinds = [one[0] for one in (here, there) if isinstance(one[0], type)]
                assert len(kinds) == 2, (data, options, here, there)
                assert issubclass(*kinds) or issubclass(*kinds[::-1]), (data, options, here, there)
            else:
                assert here == there, (data, options, here, there)


@tap.case
def filled_tensors_and_ranges_are_the_same():
    full = [((size, value), options) for size in ((2, 3), [2], 3, (), (300, 300), None, -1)
            for value in (1, 1.5, True, 2**53 + 1, float('inf'), 1j, 'a', None) for options in OPTIONS]
    arange = [(args, options) for args in ((5,), (2, 8), (2, 9, 3), (5, 0), (5, 0, -2), (0, 1, 0), (1.5,), (0, 1, 0.25),
                                           (70000,), (-1,), (), (2**62, 2**62 + 4), (True,), ('a',))
              for options in ({}, {'dtype': torch.float32}, {'dtype': torch.int32}, {'device': 'cpu'})]
    wrong = differences(torch.full, full) + differences(torch.arange, arange)
    assert not wrong, wrong[:3]


@tap.case
def the_default_dtype_and_device_are_kept():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.zeros(2).dtype == torch.tensor([1.0]).dtype == torch.full((1,), 1.0).dtype == torch.float64
        assert torch.tensor([1]).dtype == torch.int64
    finally:
        torch.set_default_dtype(before)


@tap.case
def blocks_of_streams_nest_and_end():
    first, second = torch.Stream('cpu'), torch.Stream('cpu')
    current = lambda: torch.Stream.get_current(torch.device('cpu'))  # noqa: E731
    outside = current()
    with first as entered:
        assert entered is first and current() == first
        with second, first:
            assert current() == first
        assert current() == first
        try:
            with second:
                raise KeyError
        except KeyError:
            assert current() == first
    assert current() == outside
    try:
        first.__exit__(None, None, None)
    except RuntimeError as error:
        assert 'the block has ended, or was never begun' in str(error)
    else:
        raise AssertionError('a block ended twice')


@tap.case
def a_stream_has_blocks_in_several_threads():
    stream, wrong = torch.Stream('cpu'), []
    barrier = threading.Barrier(4)

    def work():
        cpu = torch.device('cpu')
        for _ in range(50):
            before = torch.Stream.get_current(cpu)
            barrier.wait()
            with stream:
                barrier.wait()
                if torch.Stream.get_current(cpu) != stream:
                    wrong.append('inside')
            if torch.Stream.get_current(cpu) != before:
                wrong.append('outside')

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:4]


@tap.case
def modules_without_python_are_called_and_refuse():
    layer = torch.nn.Linear(3, 2)
    assert layer(torch.ones(4, 3)).shape == (4, 2)
    for wrong in (torch.ones(4, 5), 'text', None, 3):
        try:
            layer(wrong)
        except Exception as error:
            assert str(error), error
        else:
            raise AssertionError(wrong)

    class Failing(torch.nn.Module):
        def forward(self, x):
            raise KeyError('inside')

    try:
        torch.nn.Sequential(torch.nn.ReLU(), Failing())(torch.ones(2))
    except KeyError as error:
        assert error.args == ('inside',)
    else:
        raise AssertionError('nothing was raised')


if __name__ == '__main__':
    tap.main()
