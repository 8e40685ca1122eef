#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What docs/bindings.md documents for Python: operators, protocols, conversions and waiting."""

import asyncio
import copy
import gc
import operator
import os
import pathlib
import pickle
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
import numpy  # noqa: E402
from gi.repository import Gio, GLib, GTorch  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402
from tap import raises  # noqa: E402

FLOATS = [[1.0, -2.0], [3.0, 4.0]]
WHOLE = [1, 2, 5]

ARITHMETIC = (operator.add, operator.sub, operator.mul, operator.truediv)
WHOLE_ONLY = (operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift)
DIVISION = (operator.floordiv, operator.mod)
COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
IN_PLACE = (operator.iadd, operator.isub, operator.imul, operator.itruediv)


def agrees(function, data, number, dtype):
    """Tensor and number, number and tensor, two tensors: the results are numpy's."""
    array, x = numpy.array(data, dtype), GTorch.tensor(data, dtype=dtype)
    other = GTorch.tensor(data[::-1], dtype=dtype)
    for got, expected in (
        (function(x, number), function(array, number)),
        (function(number, x), function(numpy.array(number, dtype), array)),
        (function(x, other), function(array, array[::-1])),
    ):
        assert isinstance(got, GTorch.Tensor), got
        close = numpy.allclose(got.cpu().numpy(), expected, rtol=1e-6)
        assert close and got.shape == expected.shape, f'{function.__name__}: {got}, not {expected}'


@tap.case
def devices_and_the_build_describe_themselves():
    cpu = GTorch.Device.cpu()
    assert cpu.get_capability() == (0, 0)
    assert cpu.props.pci_id is None and cpu.get_uuid() is None
    assert cpu.props.n_multiprocessors == cpu.get_n_multiprocessors() >= 1
    assert isinstance(GTorch.Device.get_default(), GTorch.Device)
    keys = GTorch.get_build_keys()
    assert 'version' in keys and all(GTorch.get_build_info(key) is not None for key in keys)
    assert GTorch.get_arch_list() == GTorch.get_build_info('cuda-archs').split()
    raises(GLib.Error, 'abacus', GTorch.get_cuda_library_version, 'abacus')


@tap.case
def the_cpu_has_a_monitor_and_itself_as_a_peer():
    cpu = GTorch.Device.cpu()
    assert GTorch.DeviceMonitor.new(cpu).memory_used > 0
    assert cpu.can_access_peer(cpu) and cpu.enable_peer(cpu)


@tap.case
def operators_work_from_both_sides():
    for function in (*ARITHMETIC, *DIVISION):
        agrees(function, FLOATS, 2.5, 'float32')
    for function in (*ARITHMETIC[:3], *DIVISION, *WHOLE_ONLY, operator.pow):
        agrees(function, WHOLE, 2, 'int64')
    assert (GTorch.tensor([1.5, 2.0]) ** 2).tolist() == [2.25, 4.0]
    assert (2 ** GTorch.tensor([1.0, 3.0])).tolist() == [2.0, 8.0]


@tap.case
def operators_of_one_operand():
    x = GTorch.tensor(FLOATS)
    assert (-x).tolist() == [[-1, 2], [-3, -4]]
    assert (+x).tolist() == FLOATS
    assert abs(x).tolist() == [[1, 2], [3, 4]]
    assert (~GTorch.tensor([True, False])).tolist() == [False, True]
    assert (~GTorch.tensor([0, 5])).tolist() == [-1, -6]
    assert (x @ x).tolist() == [[-5, -10], [15, 10]]


@tap.case
def comparisons_compare_elements():
    for function in COMPARISONS:
        agrees(function, WHOLE, 2, 'int64')
        assert function(GTorch.tensor(WHOLE), 2).dtype == GTorch.bool
    x = GTorch.tensor(WHOLE)
    assert (x == None) is False and (x != 'a') is True  # noqa: E711
    assert 5 in x and 7 not in x


@tap.case
def operators_with_an_equals_sign_write_in_place():
    for function in IN_PLACE:
        x, expected = GTorch.tensor(FLOATS), numpy.array(FLOATS, 'float32')
        where, view = x.data_ptr(), x[0]
        got = function(x, 2)
        assert got is x and x.data_ptr() == where
        assert numpy.array_equal(x.cpu().numpy(), function(expected, 2)), function.__name__
        assert view.tolist() == x[0].tolist()
    x = GTorch.tensor(FLOATS, requires_grad=True)
    raises(GLib.Error, 'leaf', operator.iadd, x, 1)


@tap.case
def arrays_stand_on_either_side():
    array = numpy.array([1.0, 2.0], 'float32')
    x = GTorch.tensor(FLOATS, device='cpu')
    for function in (*ARITHMETIC, *DIVISION, *COMPARISONS, operator.matmul):
        for args in ((array, x), (x, array)):
            got = function(*args)
            assert isinstance(got, GTorch.Tensor), f'{function.__name__}: {type(got)}'
            plain = [numpy.array(FLOATS, 'float32') if a is x else a for a in args]
            assert numpy.allclose(got.numpy(), function(*plain)), function.__name__
    x *= array
    assert x.tolist() == [[1, -4], [3, 8]]


@tap.case
def other_operands_are_type_errors():
    x = GTorch.tensor(FLOATS)
    for bad in ('a', None, [1, 2], {}, object()):
        for function in (*ARITHMETIC, *IN_PLACE, operator.lt, operator.matmul):
            raises(TypeError, '', function, x, bad)
    raises(TypeError, '', operator.add, 'a', x)
    raises(TypeError, 'nope', lambda: x.add(x, nope=1))
    raises(ValueError, 'nope', lambda: x.mse_loss(x, 'nope'))


@tap.case
def arguments_have_names_and_defaults():
    x = GTorch.tensor(FLOATS)
    assert x.sum().item() == 6
    assert x.sum(1, keepdim=True).tolist() == [[-1], [7]]
    assert x.sum(dim=(0, 1)).tolist() == 6
    assert x.add(x, alpha=2).tolist() == [[3, -6], [9, 12]]
    assert x.reshape(4).shape == x.reshape([4]).shape == x.view(-1).shape == (4,)
    assert GTorch.zeros(2, 3).shape == GTorch.zeros((2, 3)).shape == (2, 3)
    for dtype in ('int32', GTorch.int32, GTorch.DType.INT32, numpy.int32, numpy.dtype('int32')):
        assert GTorch.zeros(2, dtype=dtype).dtype == GTorch.int32
    assert GTorch.arange(3).dtype == GTorch.int64 and GTorch.arange(1, 2, 0.5).tolist() == [1, 1.5]
    assert x.mse_loss(x + 1, reduction='sum').item() == 4
    values, indices = x.max(dim=1)
    assert values.tolist() == [1, 4] and indices.tolist() == [0, 1]


@tap.case
def one_element_is_a_number():
    z = GTorch.tensor(2.5)
    assert z.item() == float(z) == complex(z) == 2.5 and int(z) == 2
    assert f'{z:.2f}' == '2.50' and f'{z}' == '2.5' and f'{(z * 2).requires_grad_()}' == '5.0'
    assert f'{GTorch.tensor(True)}' == 'True' and f'{GTorch.ones(1, device="cpu")}' == 'tensor([1.])'
    assert f'{GTorch.nn.Parameter(z)}' == repr(GTorch.nn.Parameter(z))
    assert [10, 20, 30][GTorch.tensor(1)] == 20
    raises(TypeError, 'float32', operator.index, z)
    raises(TypeError, '[3]', operator.index, GTorch.tensor(WHOLE))
    assert bool(z) and not GTorch.tensor([0]) and not GTorch.tensor(False)
    big = 2**63 - 1
    assert GTorch.tensor(big).item() == big and GTorch.tensor([-big]).tolist() == [-big]


@tap.case
def several_elements_are_no_number():
    for x in (GTorch.tensor(FLOATS), GTorch.tensor([])):
        for function in (bool, float, int, operator.not_):
            raises(GLib.Error, str(list(x.shape)), function, x)


@tap.case
def tensors_have_a_length_and_rows():
    x = GTorch.tensor(FLOATS)
    assert len(x) == 2 and [row.tolist() for row in x] == FLOATS
    a, b = x
    b.fill_(0)
    assert x.tolist() == [FLOATS[0], [0, 0]] and a.tolist() == FLOATS[0]
    z = GTorch.tensor(1.0)
    raises(TypeError, 'length', len, z)
    raises(TypeError, 'iterated', list, z)


@tap.case
def a_tensor_is_a_key_by_identity():
    x, y = GTorch.tensor([1.0]), GTorch.tensor([1.0])
    assert hash(x) == hash(x) and len({x, x, y}) == 2 and {x: 1}.get(y) is None


@tap.case
def tensors_print_themselves():
    assert repr(GTorch.tensor([[1, 2], [3, 4]], device='cpu')) == 'tensor([[1, 2],\n        [3, 4]])'
    x = GTorch.tensor(2.5, device='cpu')
    assert str(x) == 'tensor(2.5000)' and f'{x}' == '2.5'
    assert repr(GTorch.tensor(2)).startswith('tensor(2')
    assert 'float64' in repr(GTorch.tensor([1.0], dtype='float64'))
    assert 'requires_grad' in repr(GTorch.tensor([1.0], requires_grad=True))


@tap.case
def copies_and_pickles_are_independent():
    for dtype in ('float32', 'float64', 'bfloat16', 'float16', 'int8', 'int64', 'bool', 'complex64'):
        x = GTorch.tensor([[1, 0], [1, 1]]).to(dtype)
        for made in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
            assert made.dtype == x.dtype and made.tolist() == x.tolist()
            assert made.data_ptr() != x.data_ptr()
    w = GTorch.tensor(FLOATS, requires_grad=True)
    for made in (copy.deepcopy(w), pickle.loads(pickle.dumps(w))):
        assert made.requires_grad and made.is_leaf
    one, two = copy.deepcopy([w, w])
    assert one is two
    assert copy.copy(w).data_ptr() == w.data_ptr()
    part = GTorch.tensor(FLOATS).T[1:]
    assert pickle.loads(pickle.dumps(part)).tolist() == part.tolist() == [[-2, 4]]
    assert pickle.loads(pickle.dumps(GTorch.zeros(2, 0))).shape == (2, 0)


@tap.case
def numpy_sees_the_same_memory():
    x = GTorch.arange(6, device='cpu').reshape(2, 3)
    array = x.T.numpy()
    assert array.shape == (3, 2) and array.tolist() == x.T.tolist()
    array[0, 1] = 30
    assert x[1, 0].item() == 30
    source = numpy.arange(4.0)
    shown = GTorch.from_numpy(source)
    source[1] = 7
    assert shown[1].item() == 7
    copied = GTorch.tensor(source[::2])
    x = GTorch.zeros(2)
    if x.device != GTorch.Device.cpu():
        raises(TypeError, 'numpy cannot see memory of cuda:0: use t.cpu()', x.numpy)
    source[0] = 9
    assert copied.tolist() == [0, 2]
    for empty in (GTorch.tensor([]), GTorch.zeros(2, 0), GTorch.zeros(0, 3)):
        assert numpy.asarray(empty.cpu()).shape == empty.shape
    assert numpy.asarray(GTorch.tensor(2.5).cpu()).item() == 2.5


@tap.case
def an_array_keeps_the_memory_of_its_tensor():
    array = numpy.asarray(GTorch.full([1000], 3.0).cpu())
    gc.collect()
    others = [GTorch.full([1000], 4.0).cpu() for _ in range(20)]
    assert (array == 3).all() and len(others) == 20


@tap.case
def one_name_for_numbers_and_tensors():
    x = GTorch.tensor([[3.0, 1.0, 2.0], [6.0, 5.0, 4.0]])
    assert x.median().item() == 3
    values, indices = x.median(1)
    assert values.tolist() == [2, 5] and indices.tolist() == [2, 1]
    assert x.median(dim=0, keepdim=True)[0].shape == (1, 3)
    assert x.repeat_interleave(2, 1).shape == (2, 6)
    assert x.repeat_interleave(GTorch.tensor([0, 2]), dim=0).tolist() == [[6, 5, 4]] * 2
    assert x.repeat_interleave(GTorch.tensor(2)).shape == (12,)


@tap.case
def bounds_count_by_their_kind():
    x = GTorch.tensor([-2, 0, 5])
    for low, high, dtype, values in [
        (-1, 1, GTorch.int64, [-1, 0, 1]),
        (-1, 2.0, GTorch.float32, [-1, 0, 2]),
        (0.5, None, GTorch.float32, [0.5, 0.5, 5]),
        (None, 3, GTorch.int64, [-2, 0, 3]),
        (GTorch.tensor([1, -1, 7]), None, GTorch.int64, [1, 0, 7]),
        (GTorch.tensor([1, -1, 7]), 6, GTorch.int64, [1, 0, 6]),
    ]:
        y = x.clamp(low, high)
        assert y.dtype == dtype and y.tolist() == values, (low, high, y)
    assert x.to(GTorch.float64).clamp(max=1).dtype == GTorch.float64


WIDE = (2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2**62 + 1, 7, 0)


@tap.case
def integers_arrive_exactly():
    zero, mask = GTorch.zeros([2], dtype=GTorch.int64), GTorch.ones([2], dtype=GTorch.bool)
    for v in WIDE:
        for what, made in {
            'full': GTorch.full([2], v),
            'full_like': zero.full_like(v),
            'new_full': zero.new_full([2], v),
            'fill_': zero.clone().fill_(v),
            'clamp from below': GTorch.full([2], -(2**63)).clamp(min=v),
            'clamp from above': GTorch.full([2], 2**63 - 1).clamp(max=v),
            'clamp': zero.clamp(v, v),
            'add': zero + v,
            'mul': (zero + 1) * v,
            'masked_fill': zero.masked_fill(mask, v),
            'tensor': GTorch.tensor([v, v]),
        }.items():
            # the ends of the range do not count as bounds
            if what.startswith('clamp') and v in (2**63 - 1, -(2**63)):
                continue
            assert made.dtype == GTorch.int64 and made.tolist() == [v, v], (what, v, made)
            assert made[0].item() == v
        assert (GTorch.full([2], v) == v).all() and not (GTorch.full([2], v) != v).any()
    for start in (2**53 + 1, -(2**60) - 1, 5):
        assert GTorch.arange(start, start + 5, 2).tolist() == [start, start + 2, start + 4]
    assert GTorch.arange(3).tolist() == [0, 1, 2] and GTorch.arange(3).dtype == GTorch.int64
    assert GTorch.arange(0, 1, 0.25).tolist() == [0, 0.25, 0.5, 0.75]
    assert GTorch.full([2], 3, dtype=GTorch.float32).tolist() == [3, 3]
    assert GTorch.ones([2]).clamp(min=2).tolist() == [2, 2]
    raises(OverflowError, '9007199254740993', lambda: zero.add(zero, alpha=2**53 + 1))


@tap.case
def numbers_that_a_dtype_lacks_are_refused():
    x = GTorch.ones([2], dtype=GTorch.int8)
    for function in (
        lambda: GTorch.full([1], 300, dtype=GTorch.int8),
        lambda: x.clone().fill_(-129),
        lambda: x.masked_fill(x > 0, 128),
        lambda: x.clamp(max=300),
        lambda: x < 300,
        lambda: GTorch.full([1], 2**63, dtype=GTorch.int64),
        lambda: GTorch.full([1], 1e5, dtype=GTorch.float16),
    ):
        raises(GLib.Error, 'which is no ', function)
    assert GTorch.full([1], 2**70, dtype=GTorch.float32).item() == 2.0**70
    assert GTorch.full([1], -1, dtype=GTorch.uint8).item() == 255


@tap.case
def undefined_integer_results_are_refused():
    x = GTorch.tensor([4, 5])
    if x.device.type == 'cpu':
        for function in (lambda: x // 0, lambda: x % 0, lambda: x.fmod(0), lambda: x // GTorch.tensor([1, 0])):
            raises(GLib.Error, 'divided by zero', function)
    raises(GLib.Error, 'the exponent must not be negative', lambda: x**-1)
    assert (x ** GTorch.tensor([-1, 0])).tolist() == [0, 1]


@tap.case
def a_bool_is_no_dimension():
    x = GTorch.tensor([[1.0, 2.0], [3.0, 5.0]])
    assert x.var(False).item() == x.var(correction=0).item() != x.var(True).item() == x.var().item()
    assert x.std(False).item() == x.std(correction=0).item()
    for function in (lambda: x.sum(True), lambda: x.sum([False]), lambda: x.unsqueeze(True)):
        raises(TypeError, 'whole number', function)


@tap.case
def no_dimensions_are_not_all():
    x = GTorch.ones([1, 3, 1])
    assert x.squeeze(()).shape == x.squeeze([]).shape == (1, 3, 1)
    assert x.squeeze().shape == (3,) and x.squeeze(0).shape == (3, 1) and x.squeeze((0, -1)).shape == (3,)


@tap.case
def a_tensor_for_a_number_keeps_its_gradient():
    x, y = GTorch.tensor([1.0, 2.0]), GTorch.tensor([3.0, 6.0])
    weight = GTorch.tensor([0.5, 0.25], requires_grad=True)
    x.lerp(y, weight).sum().backward()
    assert weight.grad.tolist() == [2, 4] and x.lerp(y, 0.5).tolist() == [2, 4]
    factor = GTorch.tensor(2.0, requires_grad=True)
    raises(TypeError, 'requires grad', lambda: x.add(y, alpha=factor))
    assert x.add(y, alpha=factor.detach()).tolist() == [7, 14]


@tap.case
def to_takes_dtypes_devices_and_tensors():
    x = GTorch.ones([2], device='cpu')
    assert x.to('cpu') is x and x.to(GTorch.Device('cpu')) is x and x.to(device='cpu') is x
    assert x.to('float64').dtype == x.to('cpu', GTorch.float64).dtype == GTorch.float64
    assert x.to(GTorch.tensor([1], device='cpu')).dtype == GTorch.int64
    assert x.to('cpu', copy=True) is not x and GTorch.to(x, GTorch.int32).dtype == GTorch.int32


@tap.case
def numpy_cannot_have_everything():
    x = GTorch.tensor(FLOATS, requires_grad=True)
    raises(RuntimeError, 'detach', x.numpy)
    raises(TypeError, 'bfloat16', GTorch.tensor([1.0], dtype='bfloat16').numpy)
    raises(TypeError, 'format', GTorch.tensor, numpy.array([1.0], '>f4'))


@tap.case
def the_buffer_protocol():
    if os.environ.get('GTORCH_NO_MIXIN') == '1':
        raise tap.Skip('only C can offer it')
    x = GTorch.tensor([[1, 2, 3], [4, 5, 6]], dtype='int16', device='cpu')
    view = memoryview(x)
    assert view.shape == (2, 3) and view.tolist() == x.tolist() and view.itemsize == 2
    assert memoryview(x.T).tobytes() == numpy.array([[1, 4], [2, 5], [3, 6]], 'int16').tobytes()
    assert memoryview(GTorch.tensor([], device='cpu')).nbytes == 0


@tap.case
def indices_are_those_of_numpy():
    array = numpy.arange(24).reshape(2, 3, 4)
    x = GTorch.from_numpy(array)
    keys = [
        1, -1, (0, -2), (..., 0), (slice(None), None, 1), slice(None, None, 2), (0, slice(1, None), 3),
        (slice(-1, None), ..., slice(0, -1, 2)), slice(5, 9), numpy.int64(1), [1, 0], (0, [2, 0]),
        (slice(None), [0, 2], [1, 3]), array > 11, (array > 11)[:, :, 0], numpy.array([1, -2]), None, True,
    ]  # fmt: skip
    for key in keys:
        got, expected = x[key], array[key]
        assert got.shape == expected.shape and got.tolist() == expected.tolist(), f'{key}: {got}'
    mask, where = x > 11, GTorch.tensor([1, -2], device='cpu')
    assert x[mask].tolist() == array[array > 11].tolist()
    assert x[where].tolist() == array[[1, -2]].tolist()
    x[mask] = -1
    assert array.max() == 11
    x[0, :, 1] = [7, 8, 9]
    assert array[0, :, 1].tolist() == [7, 8, 9]


@tap.case
def indices_that_do_not_fit():
    x = GTorch.tensor(FLOATS)
    raises(GLib.Error, 'index: index 5', lambda: x[5])
    raises(GLib.Error, 'index', lambda: x[0, 0, 0])
    raises(GLib.Error, 'step -1', lambda: x[::-1])
    raises(TypeError, 'str', lambda: x['a'])
    raises(TypeError, 'float', lambda: x[1.5])


@tap.case
def values_that_make_no_tensor():
    raises(ValueError, 'depth 1', GTorch.tensor, [[1], [2, 3]])
    raises(TypeError, 'str', GTorch.tensor, ['a'])
    raises(OverflowError, str(2**70), GTorch.tensor, [2**70])


@tap.case
def gradients_read_as_in_pytorch():
    x = GTorch.tensor([1.5, -2.0], requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.tolist() == [3, -4] and x.is_leaf and (x * 2).grad_fn
    with GTorch.no_grad():
        x -= 0.5 * x.grad
        assert not (x * 2).requires_grad
    assert x.tolist() == [0, 0] and (x * 2).requires_grad
    x.grad = None
    assert x.grad is None


@tap.case
def pinned_memory_has_a_limit():
    allocator = GTorch.HostAllocator.get_default()
    allocator.props.limit = 1
    x = GTorch.tensor([1.5, -2.0], device='cpu')
    assert not x.is_pinned() and not x.props.pinned
    try:
        x.pin_memory()
        raise AssertionError('it was pinned')
    except GLib.Error as error:
        assert error.matches(GTorch.error_quark(), GTorch.Error.OUT_OF_MEMORY), error.message
        assert '“limit” of the host allocator is 1,' in error.message, error.message
    finally:
        allocator.set_limit(0)
    assert allocator.get_allocated() == 0 and allocator.props.reserved == 0


def same(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and bool((a == b).all())


def normal_of(seed, *args, **options):
    GTorch.manual_seed(seed)
    return GTorch.normal(*args, **options)


@tap.case
def normal_takes_all_forms():
    means = GTorch.tensor([[0.0], [100.0]])
    stds = GTorch.tensor([1.0, 0.0, 5.0])
    for dtype in (GTorch.float32, GTorch.float64, GTorch.bfloat16):
        m, s = means.to(dtype), stds.to(dtype)
        for args, mean, std in (
            ((m, s), m, s),
            ((m,), m, 1.0),
            ((m, 0.25), m, 0.25),
            ((m, 2), m, 2),
            ((0.5, s), 0.5, s),
            ((3, s), 3, s),
        ):
            got = normal_of(5, *args)
            GTorch.manual_seed(5)
            expected = GTorch.randn(got.shape, dtype=dtype) * std + mean
            assert got.dtype == dtype and got.shape == expected.shape, got
            assert same(got, expected), f'{args}: {got}, not {expected}'
            assert not got.requires_grad
        exact = normal_of(5, 0.1, GTorch.zeros(2, dtype=dtype))
        assert same(exact, GTorch.full((2,), 0.1, dtype=dtype)), exact
    one = normal_of(7, 3.0, 2.0, (4, 5), dtype='float64')
    assert same(one, normal_of(7, mean=3, std=2, size=[4, 5], dtype=GTorch.float64))
    GTorch.manual_seed(7)
    assert same(one, GTorch.empty((4, 5), dtype='float64').normal_(3, 2))
    drawn = [normal_of(i, means, std=stds, generator=seeded(9)) for i in range(2)]
    assert same(*drawn), drawn
    many = normal_of(1, GTorch.full((100000,), 4.0), GTorch.full((), 3.0))
    # the mean of n numbers lies within 6 std / sqrt (n) with probability 1 - 2e-9, the std within
    # about the same
    assert abs(float(many.mean()) - 4) < 6 * 3 / 100000**0.5, many.mean()
    assert abs(float(many.std()) - 3) < 6 * 3 / (2 * 100000) ** 0.5, many.std()
    assert GTorch.normal(GTorch.zeros(0, 3), GTorch.ones(3)).shape == (0, 3)


def seeded(seed):
    generator = GTorch.Generator.new()
    generator.set_seed(seed)
    return generator


@tap.case
def normal_refuses_invalid_distributions():
    ones = GTorch.ones(2)
    for args, says in (
        ((ones, GTorch.ones(3)), 'shapes [2] and [3] cannot be broadcast'),
        ((ones, -1.0), 'none may be negative or NaN'),
        ((ones, GTorch.tensor([1.0, float('nan')])), 'none may be negative or NaN'),
        ((ones.to('int64'), ones), 'means of int64'),
        ((1.0, -1.0, (2,)), 'it must be at least 0'),
    ):
        raises(GLib.Error, says, GTorch.normal, *args)
    raises(TypeError, 'size', GTorch.normal, 1.0)
    raises(TypeError, 'size', GTorch.normal, 1.0, 2.0)
    raises(TypeError, 'size', GTorch.normal, ones, 1.0, (2,))
    raises(TypeError, 'number', GTorch.normal, ones, 'x')
    raises(TypeError, 'number', GTorch.normal, 'x', ones)


class Index:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


@tap.case
def sizes_accept_any_integer():
    x = GTorch.arange(6).view(2, 3)
    calls = {
        'zeros': lambda k: GTorch.zeros((k(2), k(3))),
        'zeros, one by one': lambda k: GTorch.zeros(k(2), k(3)),
        'full': lambda k: GTorch.full((k(2),), 1.0),
        'randint': lambda k: GTorch.randint(k(7), k(8), (k(2),)),
        'view': lambda k: x.view([k(3), -1]),
        'view, one by one': lambda k: x.view(k(3), k(2)),
        'permute': lambda k: x.permute(k(1), k(0)),
        'sum': lambda k: x.sum(k(1)),
        'sum of two': lambda k: x.sum([k(0), k(1)]),
        'expand': lambda k: x.expand(k(2), k(2), k(3)),
        'as_strided': lambda k: x.as_strided((k(2), k(2)), (k(1), k(2)), k(1)),
        'split': lambda k: x.split([k(1), k(2)], k(1))[1],
        'an item': lambda k: x[k(1), k(0) : k(2)],
        'repeat': lambda k: x.repeat(k(1), k(2)),
        'roll': lambda k: x.roll(k(1), k(0)),
        'narrow': lambda k: x.narrow(k(1), k(1), k(2)),
        'flatten': lambda k: x.flatten(k(0), k(1)),
        'eye': lambda k: GTorch.eye(k(2)),
        'unflatten': lambda k: x.unflatten(k(1), (k(3), k(1))),
    }
    kinds = (numpy.int64, numpy.int32, numpy.uint8, Index, lambda n: GTorch.tensor(n), lambda n: numpy.array(n))
    for name, call in calls.items():
        expected = call(int)
        for kind in kinds:
            got = call(kind)
            assert same(got, expected), f'{name}: {got}, not {expected}'
    for several in (numpy.array([3, 2]), GTorch.tensor([3, 2]), range(3, 1, -1)):
        assert x.view(several).shape == (3, 2) and GTorch.zeros(several).shape == (3, 2)
    for wrong in (2.0, numpy.float32(2), True, '2', GTorch.float32, numpy.array([2.0])):
        for call in (GTorch.zeros, x.reshape, lambda size: GTorch.zeros([size])):
            try:
                call(wrong)
                raise AssertionError(f'{wrong!r} was taken for a size')
            except TypeError:
                pass


@tap.case
def operations_can_be_awaited():
    async def main():
        stream = GTorch.Stream('cpu')
        await stream.wait()
        await GTorch.awaitable(stream.synchronize_async, stream.synchronize_finish)
        await asyncio.gather(*(GTorch.Stream('cpu').wait() for _ in range(3)))
        stopped = Gio.Cancellable()
        stopped.cancel()
        try:
            await stream.wait(stopped)
        except GLib.Error as error:
            return error.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CANCELLED)
        return False

    assert asyncio.run(asyncio.wait_for(main(), 30))


@tap.case
def factorizations_have_named_results_and_gradients():
    linalg = GTorch.linalg
    x = GTorch.tensor([[4.0, 2.0], [2.0, 3.0]])
    factors = linalg.cholesky_ex(x)
    assert factors.L.shape == x.shape and factors.info.item() == 0
    sign, size = linalg.slogdet(x)
    assert sign.item() == 1 and abs(size.exp().item() - 8) < 1e-5
    x.requires_grad = True
    linalg.inv(x).sum().backward()
    # the sum of the inverse of [[a, b], [c, d]] is (a - b - c + d) / (a d - b c) = 3 / 8
    expected = [[1 / 8 - 3 * 3 / 64, -1 / 8 + 3 * 2 / 64], [-1 / 8 + 3 * 2 / 64, 1 / 8 - 3 * 4 / 64]]
    assert all(abs(a - b) < 1e-6 for r, s in zip(x.grad.tolist(), expected) for a, b in zip(r, s))


if __name__ == '__main__':
    tap.main()
