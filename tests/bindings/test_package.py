#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The package gtorch: PyTorch's names, submodules, and kinds of exceptions."""

import copy
import pathlib
import pickle
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gtorch as torch  # noqa: E402
import gtorch.nn as nn  # noqa: E402
from gi.repository import GLib, GTorch  # noqa: E402
from gtorch.nn import functional as F  # noqa: E402
from gtorch.optim.lr_scheduler import StepLR  # noqa: E402
from gtorch.utils.checkpoint import checkpoint  # noqa: E402

import tap  # noqa: E402
from tap import raises  # noqa: E402

CODE = GTorch.Error


@tap.case
def the_package_is_the_namespace():
    assert torch.Tensor is GTorch.Tensor and torch.nn is nn and nn.Linear is GTorch.nn.Linear
    assert torch.optim.lr_scheduler.StepLR is StepLR and torch.utils.checkpoint.checkpoint is checkpoint
    assert F.relu is torch.nn.functional.relu
    assert {'Tensor', 'nn', 'cuda', 'float32', 'save', '__version__'} <= set(dir(torch))
    assert torch.__version__ == torch.version.__version__ == GTorch.get_build_info('version')
    with raises(AttributeError, "module 'gtorch' has no attribute 'tensr'"):
        torch.tensr  # noqa: B018
    with raises(ImportError, 'gtorch'):
        from gtorch import tensr  # noqa: F401


@tap.case
def a_network_is_trained():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    schedule = StepLR(optimizer, 10)
    x = torch.randn(16, 4)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), x.sum(1, keepdim=True))
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2, losses


KINDS = {
    IndexError: (CODE.INDEX, lambda: torch.ones(3)[5]),
    ValueError: (CODE.INVALID, lambda: nn.Dropout(p=2)),
    torch.OutOfMemoryError: (CODE.OUT_OF_MEMORY, lambda: torch.ones(10**15)),
    RuntimeError: (CODE.SHAPE, lambda: torch.ones(3) @ torch.ones(4)),
    torch.AcceleratorError: (CODE.CUDA, lambda: fail(CODE.CUDA)),
    NotImplementedError: (CODE.NOT_SUPPORTED, lambda: fail(CODE.NOT_SUPPORTED)),
}


def fail(code):
    raise GLib.Error('it failed', GLib.quark_to_string(GTorch.error_quark()), int(code))


def error_of(kind):
    code, call = KINDS[kind]
    try:
        call()
    except kind as error:
        return code, error
    raise AssertionError(f'no {kind.__name__} was raised')


def of_kind(kind):
    def check():
        code, error = error_of(kind)
        assert isinstance(error, GLib.Error) and isinstance(error, RuntimeError), type(error).__mro__
        assert error.matches(GTorch.error_quark(), code), error.code
        assert str(error) == error.message and 'quark' not in str(error)
        for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), error.copy()):
            assert type(again) is type(error) and again.code == error.code and again.message == error.message
            assert again.domain == error.domain

    check.__name__ = f'{kind.__name__}_is_raised_as_by_pytorch'
    return check


for _kind in KINDS:
    tap.case(of_kind(_kind))


@tap.case
def errors_of_other_libraries_stay():
    from gi.repository import Gio

    try:
        Gio.File.new_for_path('/proc/nowhere/at/all').load_contents(None)
    except FileNotFoundError as error:  # files have Python's kinds
        assert isinstance(error, GLib.Error) and error.domain == 'g-io-error-quark'
    try:
        GLib.KeyFile().load_from_data('x', 1, GLib.KeyFileFlags.NONE)
    except GLib.Error as error:
        assert type(error) is GLib.Error and error.domain == 'g-key-file-error-quark'
    else:
        raise AssertionError('no error')
    assert type(GLib.Error('x')) is GLib.Error and str(GLib.Error('x', 'y', 1)) == 'y: x (1)'


@tap.case
def dtypes_tell_their_limits():
    half, single = torch.finfo(torch.float16), torch.finfo()
    assert (half.bits, half.max, half.min, half.eps, half.tiny) == (16, 65504.0, -65504.0, 2**-10, 2**-14)
    assert single.dtype == 'float32' and single.max == 3.4028234663852886e38 and single.smallest_normal == 2**-126
    assert torch.finfo(torch.complex128) == torch.finfo(torch.float64) and torch.finfo(torch.float64).eps == 2**-52
    assert torch.finfo(torch.bfloat16).max == 3.3895313892515355e38
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
        info = torch.iinfo(dtype)
        full = torch.tensor([info.min, info.max], dtype=dtype).tolist()
        assert full == [info.min, info.max] and info.bits == 8 * dtype.itemsize
    with raises(TypeError, 'use iinfo'):
        torch.finfo(torch.int32)
    with raises(TypeError, 'no dtype of integers'):
        torch.iinfo(torch.bool)
    assert isinstance(torch.float32, torch.dtype) and torch.float is torch.float32 and torch.short is torch.int16


@tap.case
def dtypes_are_promoted_as_results_are():
    half, one = torch.ones(2, dtype=torch.float16), torch.tensor(1.0, dtype=torch.float64)
    values = (half, one, torch.ones(2, dtype=torch.int32), torch.tensor(3), torch.ones(1, dtype=torch.complex64),
              torch.ones(2, dtype=torch.bool), 1, 2.5, 1j, True)
    for x in values:
        for y in values:
            if isinstance(x, torch.Tensor) or isinstance(y, torch.Tensor):
                assert torch.result_type(x, y) == (x * y).dtype, (x, y, torch.result_type(x, y), (x * y).dtype)
    assert torch.can_cast(torch.int64, torch.float16) and not torch.can_cast(torch.float16, torch.int64)
    assert not torch.can_cast(torch.uint8, torch.bool) and torch.can_cast(torch.float64, torch.complex64)
    assert torch.promote_types(torch.int32, torch.float16) is torch.float16
    assert torch.is_tensor(half) and not torch.is_tensor(1) and torch.numel(half) == 2
    assert torch.is_floating_point(half) and not torch.is_complex(half)
    assert torch.is_nonzero(one) and not torch.is_nonzero(torch.zeros(1))
    with raises(RuntimeError, 'one element'):
        torch.is_nonzero(half)
    with raises(TypeError, 'must be a tensor'):
        torch.numel([1])


@tap.case
def random_numbers_continue_where_they_were():
    torch.manual_seed(3)
    assert torch.initial_seed() == 3 == torch.default_generator.initial_seed()
    state = torch.get_rng_state()
    assert state.dtype is torch.uint8 and state.dim() == 1
    first = torch.rand(4)
    torch.set_rng_state(state)
    assert torch.rand(4).equal(first)
    torch.set_rng_state(state)
    with torch.random.fork_rng():
        torch.rand(100)
    assert torch.rand(4).equal(first)
    assert torch.seed() != torch.seed()
    generator = torch.Generator().manual_seed(7)
    kept = generator.get_state()
    first = torch.rand(4, generator=generator)
    generator.set_state(kept)
    assert torch.rand(4, generator=generator).equal(first) and generator.initial_seed() == 7
    with raises(TypeError, 'vector of uint8'):
        torch.set_rng_state(torch.ones(3))
    with raises(TypeError, 'not list'):
        torch.set_rng_state([1])
    with raises(ValueError, 'device_type'):
        with torch.random.fork_rng(device_type='tpu'):
            pass


@tap.case
def settings_have_their_names():
    kept = torch.get_print_options()
    torch.set_printoptions(precision=2, sci_mode=False)
    assert str(torch.tensor([1.23456])) == 'tensor([1.23])'
    torch.set_printoptions(profile='full')
    assert '...' not in str(torch.zeros(2000))
    torch.set_print_options(*kept)
    with raises(ValueError, 'profile'):
        torch.set_printoptions(profile='tiny')
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    assert torch.are_deterministic_algorithms_enabled() and torch.get_deterministic_debug_mode() == 2
    torch.use_deterministic_algorithms(before)
    with raises(NotImplementedError, 'warn_only'):
        torch.use_deterministic_algorithms(True, warn_only=True)
    with raises(NotImplementedError, 'no compiler'):
        torch.compile(nn.ReLU())
    weight = nn.Parameter(torch.ones(2))
    with torch.inference_mode():
        assert not (weight * 2).requires_grad
    with torch.inference_mode(False):
        assert (weight * 2).requires_grad

    @torch.inference_mode()
    def twice(x):
        return x * 2

    assert not twice(weight).requires_grad


@tap.case
def functions_in_place_change_their_argument():
    values = [-2.0, -0.5, 0.5, 2.0]
    for name, args in (('celu', ()), ('elu', ()), ('hardtanh', ()), ('leaky_relu', (0.1,)), ('relu', ()), ('selu', ()),
                       ('threshold', (0.1, 20.0))):
        x = torch.tensor(values)
        expected = getattr(F, name)(x, *args)
        assert getattr(F, f'{name}_')(x, *args) is x and x.equal(expected), name


@tap.case
def tensors_are_made_of_buffers():
    import numpy

    base = torch.ones(2, dtype=torch.float64)
    made = base.new_tensor([[1, 2]])
    assert made.dtype is torch.float64 and made.tolist() == [[1, 2]]
    assert base.new_tensor(3, dtype=torch.int8).item() == 3
    data = bytearray(numpy.arange(6, dtype='float32').tobytes())
    view = torch.frombuffer(data, dtype=torch.float32, count=3, offset=4)
    assert view.tolist() == [1, 2, 3]
    view[0] = 7
    assert numpy.frombuffer(data, 'float32')[1] == 7
    with raises(NotImplementedError, 'bfloat16'):
        torch.frombuffer(data, dtype=torch.bfloat16)
    for options, text in (({'count': 7}, 'room for 6'), ({'offset': 24}, 'offset is 24'), ({'offset': 1}, '23 bytes'),
                          ({'count': 0}, 'count is 0')):
        with raises(ValueError, text):
            torch.frombuffer(data, dtype=torch.float32, **options)
    array = numpy.ones(3)
    assert torch.asarray(array).data_ptr() == array.__array_interface__['data'][0]
    assert torch.asarray(array, copy=True).data_ptr() != array.__array_interface__['data'][0]
    assert torch.asarray(base).data_ptr() == base.data_ptr() and torch.asarray([1, 2]).tolist() == [1, 2]
    with raises(ValueError, 'cannot be shared'):
        torch.asarray([1, 2], copy=False)


@tap.case
def closeness_is_asserted():
    close = torch.testing.assert_close
    x = torch.tensor([1.0, 2.0, float('nan')])
    close({'a': [x, 3]}, {'a': (x.clone(), 3)}, equal_nan=True)
    close(x[:2], x[:2] + 1e-6)
    close(1.0, 1.0 + 1e-8)
    for one, other, text in (
        (x, x, '1 of 3 elements differ'), ([1], [1, 2], 'lengths'),
        (x[:2], x[:2] + torch.tensor([0.0, 0.5]), 'at (1,), where they are 2.0 and 2.5'),
        (x[:2], x[:1], 'the shapes are (2,) and (1,)'), (x[:2], x[:2].double(), "attribute 'dtype'"),
        ({'a': 1}, {'b': 1}, 'the keys'), ([1, [2]], [1, [3]], '[1][0]: the values are 2 and 3'),
    ):
        with raises(AssertionError, text):
            close(one, other)
    with raises(AssertionError, 'mine'):
        close(x[0], x[1], msg='mine')
    with raises(ValueError, 'both or neither'):
        close(x, x, rtol=1.0)
    with raises(TypeError, 'tensors, numbers'):
        close('a', 'a')
    with torch.cuda.amp.autocast(enabled=False):
        pass
    assert torch.amp.is_autocast_available('cpu') and not torch.amp.is_autocast_available('tpu')


@tap.case
def accelerators_are_the_gpus():
    assert torch.accelerator.is_available() == torch.cuda.is_available()
    assert torch.accelerator.device_count() == torch.cuda.device_count()
    found = torch.accelerator.current_accelerator()
    assert (found is None) == (not torch.cuda.is_available())
    if found is not None:
        assert found.type == 'cuda' and torch.accelerator.current_device_index() == torch.cuda.current_device()
    with raises(TypeError, 'must be a number'):
        torch.accelerator.device_index('cuda')
    assert torch.cuda.is_bf16_supported() in (True, False) and not torch.cuda.is_current_stream_capturing()


@tap.case
def classes_are_found_where_pytorch_defines_them():
    from gtorch.autograd.function import Function
    from gtorch.nn.modules import Linear, Module
    from gtorch.nn.parameter import Parameter
    from gtorch.optim.lr_scheduler import _LRScheduler
    from gtorch.optim.optimizer import Optimizer

    assert Linear is torch.nn.Linear and Module is torch.nn.Module and Parameter is torch.nn.Parameter
    assert Function is torch.autograd.Function and Optimizer is torch.optim.Optimizer
    assert _LRScheduler is torch.optim.lr_scheduler.LRScheduler


tap.main()
