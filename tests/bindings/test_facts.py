#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What tensors tell of themselves as PyTorch's do: shapes, types, storages, versions, names of results."""

import copy
import pathlib
import pickle
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gtorch as torch  # noqa: E402

import tap  # noqa: E402
from tap import raises  # noqa: E402

nn = torch.nn


@tap.case
def shapes_are_tuples_that_count_elements():
    shape = torch.ones(2, 3, 4).shape
    assert shape == (2, 3, 4) and isinstance(shape, tuple) and type(shape) is torch.Size
    assert shape.numel() == 24 and shape[1:].numel() == 12 and shape[0] == 2 and shape[-1] == 4
    assert repr(shape) == str(shape) == 'torch.Size([2, 3, 4])' and hash(shape) == hash((2, 3, 4))
    for made in (shape + (5,), (5,) + shape, shape * 2, 2 * shape, shape[::2], torch.ones(2).size()):
        assert type(made) is torch.Size, made
    assert (5,) + shape == (5, 2, 3, 4) and shape[:0].numel() == 1 and torch.zeros(0, 3).shape.numel() == 0
    for made in (pickle.loads(pickle.dumps(shape)), copy.deepcopy(shape), torch.Size([2, 3, 4]), torch.Size(shape)):
        assert made == shape and type(made) is torch.Size
    assert torch.zeros(shape).view(shape).reshape(shape[:1] + (12,)).shape == (2, 12)
    assert torch.Size() == () and [*shape] == [2, 3, 4]
    raises(TypeError, lambda: torch.Size(['a']), 'integer')
    raises(TypeError, lambda: torch.Size([1.5]), 'integer')
    raises(TypeError, lambda: shape + [1], 'list')


@tap.case
def tensors_have_pytorchs_types():
    x = torch.ones(2)
    for dtype, name in ((torch.float32, 'FloatTensor'), (torch.int64, 'LongTensor'), (torch.bool, 'BoolTensor'),
                        (torch.complex64, 'ComplexFloatTensor'), (torch.bfloat16, 'BFloat16Tensor')):
        made = x.to(dtype)
        assert made.type() == f'torch.{name}' == torch.typename(made) == str(getattr(torch, name))
        assert isinstance(made, getattr(torch, name)) and x.type(f'torch.{name}').dtype == dtype
        assert x.type(getattr(torch, name)).dtype == dtype and x.type(dtype).dtype == dtype
    assert not isinstance(x, torch.DoubleTensor) and not isinstance(x, torch.cuda.FloatTensor)
    assert nn.Parameter(x).type() == 'torch.FloatTensor'
    raises(ValueError, lambda: x.type('torch.FooTensor'), 'FooTensor')
    raises(TypeError, lambda: x.type(3), 'dtype')
    assert torch.typename(3) == 'int' and torch.typename(int) == 'int' and torch.typename(None) == 'NoneType'
    assert [str(dtype) for dtype in (torch.float32, torch.bool)] == ['torch.float32', 'torch.bool']
    assert repr(torch.int64).split('.')[-1] == 'int64'


@tap.case
def former_constructors_make_tensors():
    for made, dtype, values in (
        (torch.FloatTensor([1, 2]), torch.float32, [1, 2]),
        (torch.LongTensor([1.5, 2]), torch.int64, [1, 2]),
        (torch.BoolTensor([0, 2]), torch.bool, [False, True]),
        (torch.Tensor([[1, 2]]), torch.float32, [[1, 2]]),
        (torch.DoubleTensor(torch.ones(1).double()), torch.float64, [1]),
        (torch.FloatTensor(), torch.float32, []),
        (torch.Tensor(), torch.float32, []),
    ):
        assert made.dtype == dtype and made.tolist() == values and isinstance(made, torch.Tensor), (made, values)
    assert torch.IntTensor(2, 3).shape == torch.Tensor(2, 3).shape == torch.Tensor(torch.Size([2, 3])).shape == (2, 3)
    for wrong in (lambda: torch.FloatTensor(2.5), lambda: torch.Tensor('x'), lambda: torch.FloatTensor([1], [2]),
                  lambda: torch.FloatTensor(torch.ones(1).double()), lambda: torch.Tensor(data=[1])):
        raises(TypeError, wrong, 'Tensor(')
    with torch.no_grad():
        torch.set_default_dtype(torch.float64)
        try:
            assert torch.Tensor([1]).dtype == torch.float64
        finally:
            torch.set_default_dtype(torch.float32)


@tap.case
def tensors_say_what_they_are_not():
    x = torch.ones(2)
    for name in ('is_sparse', 'is_quantized', 'is_meta', 'is_nested', 'is_mkldnn', 'is_xla', 'is_mps', 'is_sparse_csr'):
        assert getattr(x, name) is False, name
    assert x.layout is torch.strided and repr(x.layout) == 'torch.strided' and isinstance(x.layout, torch.layout)
    assert x.is_inference() is False and not torch.is_inference_mode_enabled()


@tap.case
def changes_in_place_are_counted():
    x = torch.ones(2)
    before, view = x._version, x[:1]
    x.add_(1)
    assert x._version == before + 1 == view._version
    view.mul_(2)
    assert x._version == before + 2


@tap.case
def memory_is_shown_with_another_dtype():
    x = torch.ones(2, 4)
    bits = x.view(torch.int32)
    assert bits.tolist() == [[0x3F800000] * 4] * 2 and bits.data_ptr() == x.data_ptr()
    assert x.view(dtype=torch.int16).shape == (2, 8) and x.view(torch.float64).shape == (2, 2)
    assert torch.ones([]).view(torch.int32).item() == 0x3F800000
    assert torch.ones(2, 3, dtype=torch.complex64).view(torch.float32).tolist() == [[1, 0] * 3] * 2
    bits.fill_(0x40000000)
    assert x.tolist() == [[2] * 4] * 2 and x._version == 1
    assert not torch.ones(2, requires_grad=True).view(torch.int32).requires_grad
    for wrong, dtype in ((torch.ones(3), torch.float64), (x.t(), torch.int16), (torch.ones([]), torch.int16),
                         (torch.ones(4)[1:3], torch.float64)):
        raises(RuntimeError, lambda: wrong.view(dtype), 'view_dtype: shape')
    raises(ValueError, lambda: x.view(torch.bool), 'neither true nor false')
    assert x.view(4, 2).shape == x.view([4, -1]).shape == (4, 2)


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


@tap.case
def operations_lead_to_the_leaves():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    z = (y + 1).sum()
    assert x.grad_fn is None and y.grad_fn.name() == 'MulBackward0' and z.grad_fn.name() == 'SumBackward0'
    ((added, which),) = z.grad_fn.next_functions
    assert added.name() == 'AddBackward0' and which == 0
    assert added.next_functions[0][0] == y.grad_fn and added.next_functions[0][0] != z.grad_fn
    assert len({added.next_functions[0][0], y.grad_fn, z.grad_fn}) == 2
    leaf = y.grad_fn.next_functions[0][0]
    assert leaf.variable is x and leaf.name() == 'torch::autograd::AccumulateGrad' and leaf.next_functions == ()
    values, _indices = (x * 1).sort()
    assert repr(values.grad_fn).startswith('<SortBackward0 object at ')
    assert (x * torch.ones(2)).grad_fn.next_functions[1] == (None, 0)
    assert Twice.apply(x).grad_fn.name() == 'TwiceBackward'


@tap.case
def anomalies_name_a_line_of_the_program():
    x = torch.zeros(2, requires_grad=True)
    with torch.autograd.detect_anomaly():
        root = torch.sqrt(x)  # here
        product = (root * 0).sum()
        error = raises(RuntimeError, product.backward, 'sqrt', 'NaN', 'test_facts.py:', 'in anomalies_name_a_line')
    assert str(error).endswith('root = torch.sqrt(x)  # here'), error


@tap.case
def functions_of_numbers_change_tensors():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.t().apply_(lambda one: one * 2).tolist() == [[2, 6], [4, 8]] and x.tolist() == [[2, 4], [6, 8]]
    assert x.map_(torch.ones(2, 2), lambda a, b: a - b).tolist() == [[1, 3], [5, 7]]
    assert torch.tensor([1, 2]).apply_(lambda one: one + 1).dtype == torch.int64
    assert torch.zeros(0, 2).apply_(abs).shape == (0, 2)
    raises(RuntimeError, lambda: x.map_(torch.ones(2), max), 'shape [2, 2]')
    raises(ZeroDivisionError, lambda: x.apply_(lambda one: 1 / 0))
    assert x.tolist() == [[1, 3], [5, 7]]
    assert x.is_same_size(torch.ones(2, 2)) and not x.is_same_size(torch.ones(4))
    assert x.is_set_to(x[:]) and not x.is_set_to(x.t()) and not x.is_set_to(x.clone()) and not x.is_set_to(x[:1])
    y = x.clone().requires_grad_() * 2
    assert not y.retains_grad
    y.retain_grad()
    assert y.retains_grad and torch.is_storage(x.storage()) and not torch.is_storage(x)


@tap.case
def storages_are_shared():
    x = torch.arange(6.0)
    part = x[2:]
    whole, own = x.untyped_storage(), part.untyped_storage()
    assert whole.data_ptr() == own.data_ptr() == x.data_ptr() and whole == own and hash(whole) == hash(own)
    assert whole.nbytes() == len(own) == own.size() == 24 and own.element_size() == 1
    assert x.clone().untyped_storage() != whole and own.device == torch.device('cpu')
    typed = part.storage()
    assert typed.size() == len(typed) == 6 and typed.tolist() == list(typed) == [0, 1, 2, 3, 4, 5] and typed[1] == 1
    assert typed.dtype == torch.float32 and typed.data_ptr() == x.data_ptr() and typed.untyped() == whole
    assert bytes(torch.tensor([1, 256], dtype=torch.int16).untyped_storage().tolist()) == b'\x01\x00\x00\x01'
    assert torch.zeros(0).untyped_storage().nbytes() == 0
    raises(TypeError, lambda: torch.UntypedStorage(3), 'untyped_storage()')


@tap.case
def parameters_say_that_they_are_some():
    param = nn.Parameter(torch.ones(2))
    assert repr(param) == str(param) == 'Parameter containing:\ntensor([1., 1.], requires_grad=True)'


@tap.case
def tensor_cannot_be_derived_from():
    def derive():
        class Mine(torch.Tensor):
            pass

        return Mine

    raises(TypeError, derive, 'Mine: Tensor cannot be derived from')


@tap.case
def generators_draw_seeds():
    generator = torch.Generator()
    seed = generator.seed()
    assert isinstance(seed, int) and generator.initial_seed() == seed and generator.seed() != seed
    assert generator.manual_seed(3) is generator and generator.initial_seed() == 3


@tap.case
def results_have_pytorchs_names():
    a = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    found = torch.linalg.eigh(a)
    assert found.eigenvalues.tolist() == [1, 2] and found.L is found.eigenvalues and found.V is found.eigenvectors
    assert type(found) is torch.return_types.linalg_eigh and len(found) == 2
    assert set(torch.linalg.eig(a).eigenvalues.tolist()) == {1 + 0j, 2 + 0j}
    for name, made, fields in (
        ('linalg_qr', torch.linalg.qr(a), ('Q', 'R')),
        ('linalg_svd', torch.linalg.svd(a), ('U', 'S', 'Vh')),
        ('linalg_slogdet', torch.linalg.slogdet(a), ('sign', 'logabsdet')),
        ('linalg_lu_factor', torch.linalg.lu_factor(a), ('LU', 'pivots')),
        ('linalg_lu', torch.linalg.lu(a), ('P', 'L', 'U')),
        ('linalg_cholesky_ex', torch.linalg.cholesky_ex(a), ('L', 'info')),
        ('max', a.max(0), ('values', 'indices')),
        ('median', a.median(0), ('values', 'indices')),
        ('sort', a.sort(), ('values', 'indices')),
        ('histogram', torch.histogram(a, 2), ('hist', 'bin_edges')),
        ('histogramdd', torch.histogramdd(a, [2, 2]), ('hist', 'bin_edges')),
        ('frexp', torch.frexp(a), ('mantissa', 'exponent')),
        ('aminmax', torch.aminmax(a), ('min', 'max')),
    ):
        assert made._fields == fields and type(made) is getattr(torch.return_types, name), name
        assert type(pickle.loads(pickle.dumps(made))) is type(made)


@tap.case
def random_tensors_for_tests_are_made():
    make = torch.testing.make_tensor
    for dtype in (torch.float32, torch.float16, torch.float64, torch.complex64, torch.int8, torch.uint8, torch.bool):
        made = make(4, 5, dtype=dtype, device='cpu')
        assert made.shape == (4, 5) and made.dtype == dtype
    numbers = make((100,), dtype=torch.int64, device='cpu', low=3, high=6).tolist()
    assert set(numbers) == {3, 4, 5}
    numbers = make((100,), dtype=torch.float64, device='cpu', low=-1, high=0.5)
    assert numbers.min() >= -1 and numbers.max() < 0.5
    assert not (make((200,), dtype=torch.int64, device='cpu', low=-1, high=2, exclude_zero=True) == 0).any()
    apart = make(3, 4, dtype=torch.float32, device='cpu', noncontiguous=True, requires_grad=True)
    assert not apart.is_contiguous() and apart.requires_grad and apart.is_leaf and apart.shape == (3, 4)
    raises(ValueError, lambda: make(2, dtype=torch.float32, device='cpu', low=3, high=2), 'low is 3')


@tap.case
def gradients_are_checked_beside_other_arguments():
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a, b, c: a * b if c else a, (x, 3.0, True))
    raises(ValueError, lambda: torch.autograd.gradcheck(lambda a, b: a * b, (x.detach(), 2)), 'requires grad')


class Product(torch.autograd.Function):
    seen = []

    @staticmethod
    @torch.amp.custom_fwd(device_type='cpu')
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x @ y

    @staticmethod
    @torch.amp.custom_bwd(device_type='cpu')
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        found = grad @ y.t(), x.t() @ grad
        Product.seen.append(found[0].dtype)
        return found


class Exact(torch.autograd.Function):
    seen = []

    @staticmethod
    @torch.amp.custom_fwd(device_type='cpu', cast_inputs=torch.float32)
    def forward(ctx, x):
        Exact.seen.append((x.dtype, torch.is_autocast_enabled('cpu')))
        return x * 2

    @staticmethod
    @torch.amp.custom_bwd(device_type='cpu')
    def backward(ctx, grad):
        Exact.seen.append(torch.is_autocast_enabled('cpu'))
        return grad * 2


@tap.case
def functions_have_the_precision_of_their_caller():
    x = torch.ones(2, 2, requires_grad=True)
    with torch.autocast('cpu', dtype=torch.bfloat16):
        y = Product.apply(x, x)
    assert y.dtype == torch.bfloat16
    y.sum().backward()
    Product.apply(x, x).sum().backward()
    assert Product.seen == [torch.bfloat16, torch.float32], Product.seen
    with torch.autocast('cpu', dtype=torch.bfloat16):
        y = Exact.apply(x.detach().bfloat16().requires_grad_())
    y.sum().backward()
    assert Exact.seen == [(torch.float32, False), False] and y.dtype == torch.float32, Exact.seen
    Exact.apply(x.detach().bfloat16())
    assert Exact.seen[-1] == (torch.bfloat16, False)
    raises(TypeError, lambda: torch.amp.custom_fwd(lambda x: x, device_type='cpu')(1), 'forward() and backward()')


tap.main()
