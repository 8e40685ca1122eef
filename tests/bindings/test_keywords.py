#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Operations with PyTorch's names of arguments, with those that the rules add, and in PyTorch's forms."""

import copy
import pathlib
import pickle
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402
from tap import raises  # noqa: E402

F = GTorch.nn.functional
X = GTorch.tensor([[1.5, -2.0, 3.0], [4.0, 5.0, -6.0]])
WHOLE = GTorch.tensor([-7, 7, 8])
INDEX = GTorch.tensor([[0, 1, 2]])
SORTED = GTorch.tensor([1.0, 2.0, 3.5])


def same(got, expected):
    assert got.tolist() == expected.tolist(), f'{got} instead of {expected}'


def near(got, expected):
    assert got.dtype == expected.dtype and GTorch.allclose(got, expected), f'{got} instead of {expected}'


# --- rules for all operations ---


@tap.case
def functions_take_their_tensor_by_name():
    same(GTorch.softmax(input=X, dim=0), X.softmax(0))
    same(GTorch.add(input=X, other=2), X + 2)
    same(GTorch.add(other=X, input=X), X + X)
    same(F.relu(input=X), X.relu())
    same(F.mse_loss(input=X, target=X), GTorch.tensor(0.0))
    same(GTorch.where(X > 0, input=X, other=0.0), X.relu())
    same(GTorch.special.expit(input=X), X.sigmoid())
    same(GTorch.clamp(input=X, min=0), X.relu())
    same(GTorch.real(input=X), X)
    raises(TypeError, 'softmax() is missing its first argument, input', GTorch.softmax, dim=0)


@tap.case
def functions_refuse_what_is_no_tensor():
    for wrong in (None, 'x', [1.0]):
        raises(TypeError, '', GTorch.relu, wrong)
    raises(TypeError, '', GTorch.relu, 1.0)
    raises(TypeError, '', GTorch.relu)


@tap.case
def functions_have_names_and_can_be_copied():
    assert GTorch.relu.__name__ == GTorch.relu.__qualname__ == 'relu' and GTorch.relu.__doc__
    assert pickle.loads(pickle.dumps(GTorch.relu)) is GTorch.relu is copy.deepcopy(GTorch.relu)

    class Net:
        act = GTorch.relu

    if hasattr(type(GTorch.relu), '__get__'):
        return  # functions of Python, without the accelerator
    same(Net().act(X), X.relu())


@tap.case
def axis_and_keepdims_are_further_names():
    same(X.sum(axis=1, keepdims=True), X.sum(1, True))
    same(GTorch.sum(X, axis=0), X.sum(0))
    same(X.max(axis=1).values, X.max(1).values)
    same(X.argmax(axis=1, keepdims=True), X.argmax(1, True))
    same(X.cumsum(axis=1), X.cumsum(1))
    same(GTorch.cat([X, X], axis=1), GTorch.cat([X, X], 1))
    same(X.std(axis=1, unbiased=False), X.std(1, correction=0))
    raises(TypeError, 'sum() was given dim twice, as axis too', X.sum, dim=0, axis=0)
    raises(TypeError, "'axis'", X.exp, axis=0)


@tap.case
def results_are_written_into_out():
    out = GTorch.zeros(2, 3)
    assert GTorch.add(X, 1, out=out) is out
    same(out, X + 1)
    wide = GTorch.zeros(2, 3, dtype=GTorch.float64)
    same(GTorch.exp(X, out=wide), X.exp().double())
    values, indices = GTorch.zeros(2, 3), GTorch.zeros(2, 3, dtype=GTorch.int64)
    found = GTorch.sort(X, out=(values, indices))
    assert found.values is values and found.indices is indices
    same(values, X.sort().values)
    near(GTorch.matmul(X, X.T, out=GTorch.zeros(2, 2)), X @ X.T)
    raises(ValueError, 'add(): out has the shape [3] and the result [2, 3]', GTorch.add, X, 1, out=GTorch.zeros(3))
    raises(TypeError, 'cannot be written', GTorch.add, X, 1, out=GTorch.zeros(2, 3, dtype=GTorch.int64))
    raises(TypeError, 'out has 1 tensors, and the result 2', GTorch.sort, X, out=values)
    raises(TypeError, 'out must be a tensor', GTorch.add, X, 1, out=3)


@tap.case
def a_result_with_a_gradient_is_not_written_into_out():
    x = X.clone().requires_grad_()
    raises(RuntimeError, 'has no gradient', GTorch.exp, x, out=GTorch.zeros(2, 3))
    with GTorch.no_grad():
        same(GTorch.exp(x, out=GTorch.zeros(2, 3)), X.exp())


@tap.case
def new_tensors_may_require_gradients():
    for made in (
        GTorch.zeros(2, requires_grad=True),
        GTorch.ones((2,), requires_grad=True, layout=GTorch.strided, pin_memory=False),
        GTorch.full((2,), 3.0, requires_grad=True),
        GTorch.randn(2, requires_grad=True),
        GTorch.arange(3, dtype=GTorch.float32, requires_grad=True),
        GTorch.linspace(0, 1, steps=3, requires_grad=True),
        GTorch.zeros_like(X, requires_grad=True, memory_format=GTorch.preserve_format),
        GTorch.rand_like(X, requires_grad=True),
        X.new_zeros(2, requires_grad=True),
        X.new_full((2,), 1.0, requires_grad=True),
        GTorch.tensor([1.0], requires_grad=True, pin_memory=False),
        GTorch.eye(2, requires_grad=True),
    ):
        assert made.requires_grad and made.is_leaf
    assert not GTorch.zeros(2, requires_grad=False).requires_grad
    raises(NotImplementedError, 'zeros(): pin_memory=True is not supported', GTorch.zeros, 2, pin_memory=True)
    raises(NotImplementedError, 'layout=', GTorch.zeros, 2, layout='sparse')
    raises(TypeError, 'zeros_like(): memory_format must be', GTorch.zeros_like, X, memory_format='channels_last')
    raises(TypeError, '', GTorch.exp, X, requires_grad=True)


@tap.case
def new_tensors_have_devices_and_dtypes():
    assert GTorch.zeros_like(X, device='cpu').device == GTorch.Device.cpu()
    assert X.new_ones(2, device='cpu', dtype=GTorch.int32).tolist() == [1, 1]
    assert GTorch.full_like(X, 2, device='cpu', dtype=GTorch.int64).tolist() == [[2] * 3] * 2
    assert GTorch.randint_like(X, 5, device='cpu').shape == (2, 3)
    assert GTorch.tril_indices(2, 2, dtype=GTorch.int32, device='cpu').dtype == GTorch.int32


@tap.case
def copies_have_formats():
    turned = X.T
    assert turned.clone(memory_format=GTorch.contiguous_format).is_contiguous()
    same(turned.contiguous(memory_format=GTorch.contiguous_format), turned)
    same(X.to(GTorch.float64, memory_format=GTorch.preserve_format), X.double())
    assert X.is_contiguous(memory_format=GTorch.contiguous_format)
    raises(TypeError, 'clone(): memory_format must be', X.clone, memory_format='channels_last')


@tap.case
def arguments_with_one_value_are_taken():
    same(F.mse_loss(X, X, size_average=None, reduce=None), GTorch.tensor(0.0))
    raises(NotImplementedError, 'mse_loss(): size_average=True is not supported: use reduction', F.mse_loss, X, X,
           size_average=True)
    same(F.softmax(X, dim=1, _stacklevel=5), X.softmax(1))
    same(X.gather(1, INDEX, sparse_grad=False), X[:1])
    raises(NotImplementedError, 'sparse_grad=True', X.gather, 1, INDEX, sparse_grad=True)
    same(GTorch.fft.fft(X, norm=None), GTorch.fft.fft(X))


# --- forms of single operations ---


@tap.case
def spreads_take_unbiased():
    for name in ('std', 'var'):
        spread = getattr(X, name)
        same(spread(False), spread(correction=0))
        same(spread(unbiased=True), spread())
        same(spread(correction=None), spread())
        same(spread(1, False), spread(1, correction=0))
        same(spread(1, False, True), spread(1, correction=0, keepdim=True))
        same(spread(1, unbiased=False, keepdim=True), spread(1, correction=0, keepdim=True))
        raises(TypeError, 'unbiased or a correction', spread, 1, 0, unbiased=True)
        raises(TypeError, 'unbiased or a correction', spread, unbiased=True, correction=1)
        raises(TypeError, 'alone is unbiased', spread, True, 1)
    same(GTorch.var_mean(X, 1, unbiased=False)[0], X.var(1, correction=0))
    same(GTorch.std_mean(X, False)[0], X.std(correction=0))


@tap.case
def divisions_round():
    assert WHOLE.div(2, rounding_mode='trunc').tolist() == [-3, 3, 4]
    assert WHOLE.div(-2, rounding_mode='trunc').tolist() == [3, -3, -4]
    assert GTorch.div(WHOLE, 2, rounding_mode='floor').tolist() == [-4, 3, 4]
    assert GTorch.div(input=WHOLE, other=2, rounding_mode='trunc').dtype == GTorch.int64
    assert WHOLE.div(2.0, rounding_mode='trunc').dtype == GTorch.float32
    same(X.div(2, rounding_mode=None), X / 2)
    assert X.div(2, rounding_mode='trunc').tolist() == [[0, -1, 1], [2, 2, -3]]
    assert X.clone().div_(2, rounding_mode='floor').tolist() == [[0, -1, 1], [2, 2, -3]]
    raises(TypeError, 'cannot be written', WHOLE.clone().div_, 2.5, rounding_mode='trunc')
    raises(ValueError, "must be None, 'floor' or 'trunc', not 'up'", X.div, 2, rounding_mode='up')
    x = X.clone().requires_grad_()
    x.div(2, rounding_mode='trunc').sum().backward()
    assert x.grad.tolist() == [[0] * 3] * 2


@tap.case
def numbers_are_rounded_to_decimals():
    x = GTorch.tensor([1.26, -1.24, 155.0], dtype=GTorch.float64)
    near(x.round(decimals=1), GTorch.tensor([1.3, -1.2, 155.0], dtype=GTorch.float64))
    near(GTorch.round(x, decimals=-2), GTorch.tensor([0.0, 0.0, 200.0], dtype=GTorch.float64))
    near(x.clone().round_(decimals=1), x.round(decimals=1))
    same(x.round(decimals=0), x.round())
    raises(TypeError, 'decimals=1 is for floating-point numbers', WHOLE.round, decimals=1)


@tap.case
def places_come_as_tuples():
    rows, columns = X.nonzero(as_tuple=True)
    assert rows.tolist() == [0, 0, 0, 1, 1, 1] and columns.tolist() == [0, 1, 2, 0, 1, 2]
    rows, columns = GTorch.where(X > 3)
    assert rows.tolist() == [1, 1] and columns.tolist() == [0, 1]
    assert [one.tolist() for one in GTorch.tensor(3).nonzero(as_tuple=True)] == [[0]]
    same(X.where(X > 0, 0.0), X.relu())
    raises(TypeError, 'where() takes two tensors or numbers', GTorch.where, X > 3, X)


@tap.case
def numbers_come_first():
    near(GTorch.xlogy(2, X.abs()), 2 * X.abs().log())
    near(GTorch.pow(2, X), X.exp2())
    near(GTorch.fmod(7, X.abs()), GTorch.full((2, 3), 7.0).fmod(X.abs()))
    near(GTorch.float_power(2, X), X.double().exp2())
    assert GTorch.bucketize(2.5, SORTED).item() == 2
    x = X.abs().requires_grad_()
    GTorch.xlogy(2, x).sum().backward()
    near(x.grad, 2 / x.detach())


@tap.case
def tensordot_takes_a_number_or_lists():
    a, b = GTorch.rand(2, 3, 4), GTorch.rand(3, 4, 5)
    expected = a.reshape(2, 12) @ b.reshape(12, 5)
    near(GTorch.tensordot(a, b), expected)
    near(GTorch.tensordot(a, b, dims=2), expected)
    near(GTorch.tensordot(a, b, dims=([1, 2], [0, 1])), expected)
    near(GTorch.tensordot(a=a, b=b, dims=GTorch.tensor([[1, 2], [0, 1]])), expected)
    near(GTorch.tensordot(a, b, [1, 2], [0, 1]), expected)
    near(GTorch.tensordot(a, b[:1], dims=([1], [0])), GTorch.tensordot(a.sum(1, True), b[:1], dims=([1], [0])))
    assert GTorch.tensordot(a, b, 0).shape == (2, 3, 4, 3, 4, 5)
    raises(ValueError, '4 dimensions of tensors that have 3 and 3', GTorch.tensordot, a, b, 4)


@tap.case
def elements_are_repeated_and_taken():
    assert GTorch.repeat_interleave(GTorch.tensor([1, 0, 2])).tolist() == [0, 2, 2]
    assert X.repeat_interleave(2, dim=0, output_size=4).shape == (4, 3)
    same(X.repeat_interleave(GTorch.tensor([1, 2]), dim=0), X[[0, 1, 1]])
    raises(ValueError, 'output_size is 3, and the result has 4', X.repeat_interleave, 2, dim=0, output_size=3)
    assert X.take_along_dim(GTorch.tensor([0, 5])).tolist() == [1.5, -6.0]
    same(GTorch.take_along_dim(X, INDEX, dim=1), X)


@tap.case
def sequences_are_searched_from_a_side():
    values = GTorch.tensor([2.0, 3.5, 9.0])
    assert GTorch.searchsorted(SORTED, values, side='right').tolist() == [2, 3, 3]
    assert GTorch.searchsorted(SORTED, values, side='left').tolist() == [1, 2, 3]
    assert GTorch.searchsorted(SORTED, 2.0).item() == 1
    narrow = GTorch.searchsorted(SORTED, values, out_int32=True, right=True)
    assert narrow.dtype == GTorch.int32 and narrow.tolist() == [2, 3, 3]
    mixed = GTorch.tensor([3.5, 1.0, 2.0])
    assert GTorch.searchsorted(mixed, values, sorter=mixed.argsort()).tolist() == [1, 2, 3]
    assert GTorch.bucketize(values, SORTED, out_int32=True, right=True).tolist() == [2, 3, 3]
    raises(ValueError, "right=True and side='left'", GTorch.searchsorted, SORTED, values, right=True, side='left')
    raises(ValueError, "side must be 'left' or 'right'", GTorch.searchsorted, SORTED, values, side='up')
    raises(Exception, 'sorter of shape [2]', GTorch.searchsorted, SORTED, values, sorter=GTorch.tensor([0, 1]))


@tap.case
def scatter_takes_numbers_and_reductions():
    assert X.scatter(1, INDEX, value=1.0).tolist()[0] == [1, 1, 1]
    assert X.scatter(1, INDEX, X, reduce='add').tolist()[0] == [3, -4, 6]
    assert X.scatter(1, INDEX, 2.0, reduce='multiply').tolist()[0] == [3, -4, 6]
    x = X.clone()
    assert x.scatter_(1, INDEX, value=2.0, reduce='add') is x and x.tolist()[0] == [3.5, 0, 5]
    raises(TypeError, 'either src or value', X.scatter, 1, INDEX)
    raises(ValueError, "must be 'add' or 'multiply'", X.scatter, 1, INDEX, X, reduce='mean')


@tap.case
def integers_are_drawn_between_bounds():
    for made, low, high in (
        (GTorch.randint(5, (50,)), 0, 5),
        (GTorch.randint(2, 5, (50,)), 2, 5),
        (GTorch.randint(high=5, size=(50,)), 0, 5),
        (GTorch.randint_like(GTorch.zeros(50), 5), 0, 5),
        (GTorch.randint_like(GTorch.zeros(50), 2, high=5), 2, 5),
        (GTorch.zeros(50).random_(5), 0, 5),
        (GTorch.zeros(50).random_(2, 5), 2, 5),
        (GTorch.zeros(50).random_(**{'from': 2, 'to': 5}), 2, 5),
        (GTorch.zeros(50, dtype=GTorch.int8).random_(), 0, 128),
        (GTorch.zeros(50).uniform_(**{'from': 2, 'to': 5}), 2, 5),
    ):
        values = made.tolist()
        assert len(set(values)) > 1 and all(low <= value < high for value in values), values
    raises(TypeError, 'randint_like() takes an upper bound', GTorch.randint_like, X)
    raises(TypeError, "unexpected keyword argument 'top'", X.clone().random_, top=3)


@tap.case
def probabilities_are_given_beside_the_tensor():
    same(GTorch.bernoulli(X, p=1.0), GTorch.ones(2, 3))
    same(X.clone().bernoulli_(0.0), GTorch.zeros(2, 3))
    same(X.clone().bernoulli_(GTorch.tensor([0.0, 1.0, 0.0])), GTorch.tensor([[0.0, 1.0, 0.0]] * 2))


@tap.case
def unique_slices_are_sorted():
    x = GTorch.tensor([[2, 1], [1, 5], [2, 0], [1, 5]])
    values, inverse, counts = GTorch.unique(x, return_inverse=True, return_counts=True, dim=0)
    assert values.tolist() == [[1, 5], [2, 0], [2, 1]]
    assert inverse.tolist() == [2, 0, 1, 0] and counts.tolist() == [2, 1, 1]
    same(x.unique(dim=1), x.flip(1))
    same(values[inverse], x)
    assert GTorch.zeros(0, 2).unique(dim=0).shape == (0, 2)
    raises(Exception, 'have no elements', GTorch.zeros(2, 0).unique, dim=0)


@tap.case
def activations_work_in_place():
    for name, *numbers in (('relu',), ('silu',), ('mish',), ('leaky_relu', 0.1), ('elu', 2.0), ('hardtanh', -1.0, 1.0),
                           ('rrelu', 0.1, 0.1), ('dropout', 0.0), ('threshold', 0.5, 7.0)):
        function, x = getattr(F, name), X.clone()
        expected = function(X, *numbers)
        assert function(x, *numbers, inplace=True) is x
        near(x, expected)
    x = X.clone()
    assert F.relu(x, True) is x and F.dropout(x, 0.5, False, True) is x
    near(x, X.relu())
    weight = X.clone().requires_grad_()
    F.rrelu(weight * 2, 0.25, 0.25, inplace=True).sum().backward()
    assert weight.grad.tolist() == [[2.0, 0.5, 2.0], [2.0, 2.0, 0.5]]
    raises(TypeError, '', F.gelu, X, inplace=True)


@tap.case
def gelu_has_approximations():
    same(F.gelu(X, approximate='tanh'), X.gelu(True))
    same(F.gelu(X, 'none'), X.gelu())
    raises(ValueError, "approximate must be 'none' or 'tanh', not 'sinh'", F.gelu, X, approximate='sinh')


@tap.case
def divergence_is_divided_by_the_batch():
    a, b = X.log_softmax(1), X.T.reshape(2, 3).softmax(1)
    near(F.kl_div(a, b, reduction='batchmean'), F.kl_div(a, b, reduction='sum') / 2)
    near(GTorch.nn.KLDivLoss(reduction='batchmean')(a, b), F.kl_div(a, b, reduction='sum') / 2)
    raises(Exception, 'mse_loss: the reduction batchmean is for kl_div only', F.mse_loss, a, b, reduction='batchmean')
    raises(Exception, 'is no reduction', F.nll_loss, a, GTorch.tensor([0, 1]), reduction='batchmean')


@tap.case
def convolutions_keep_the_size():
    for shape in ((4, 3, 3), (4, 3, 2), (4, 3, 4)):
        x, weight = GTorch.rand(2, 3, 9), GTorch.rand(*shape)
        layer = GTorch.nn.Conv1d(3, 4, shape[2], padding='same', dilation=2)
        layer.weight = GTorch.nn.Parameter(weight)
        near(F.conv1d(x, weight, layer.bias, padding='same', dilation=2), layer(x))
        near(F.conv1d(x, weight, padding='valid'), F.conv1d(x, weight))
    x, weight = GTorch.rand(3, 6, 7), GTorch.rand(2, 3, 2, 3)
    assert F.conv2d(x, weight, padding='same').shape == (2, 6, 7)
    raises(ValueError, "padding='same' needs a stride of 1, not 2", F.conv2d, x, weight, stride=2, padding='same')
    raises(ValueError, "'same' or 'valid', not 'full'", F.conv2d, x, weight, padding='full')
    x, weight = GTorch.rand(1, 2, 3, 4, 5), GTorch.rand(1, 2, 2, 3, 2)
    assert F.conv3d(x, weight, padding='same', dilation=(1, 2, 3)).shape == (1, 1, 3, 4, 5)
    raises(ValueError, "conv3d(): padding='same' needs a stride of 1", F.conv3d, x, weight, stride=2, padding='same')
    x = GTorch.rand(1, 1, 4, requires_grad=True)
    F.conv1d(x, GTorch.ones(1, 1, 2), padding='same').sum().backward()
    assert x.grad.flatten().tolist() == [1, 2, 2, 2]


@tap.case
def transposes_make_the_size_asked_for():
    x = GTorch.rand(1, 2, 4, 5)
    layer = GTorch.nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1)
    assert layer(x).shape == (1, 3, 7, 9) and layer(x, output_size=(8, 9)).shape == (1, 3, 8, 9)
    near(layer(x, [1, 3, 8, 10]), F.conv_transpose2d(x, layer.weight, layer.bias, 2, 1, output_padding=1))
    near(layer.forward(x, output_size=[7, 9]), layer(x))
    raises(Exception, 'output_size is 11 in dimension 1, it must be from 9 to 10', layer, x, output_size=(7, 11))
    raises(Exception, 'must have 2 or 4 numbers', layer, x, output_size=[7])
    raises(Exception, 'must be zeros', GTorch.nn.ConvTranspose1d, 1, 1, 2, padding_mode='reflect')
    seen = []
    layer.register_forward_pre_hook(lambda _layer, inputs: seen.append(len(inputs)))
    layer(x, (8, 9))
    GTorch.ConvTranspose2d.forward_size(layer, x, [8, 9])
    assert seen == [2, 2]


@tap.case
def windows_become_columns():
    x = GTorch.arange(9, dtype=GTorch.float32).reshape(1, 3, 3)
    columns = F.unfold(x, 2)
    assert columns.tolist() == [[0, 1, 3, 4], [1, 2, 4, 5], [3, 4, 6, 7], [4, 5, 7, 8]]
    assert F.fold(columns, (3, 3), kernel_size=2).tolist() == [[[0, 2, 2], [6, 16, 10], [6, 14, 8]]]
    assert x.unfold(1, 2, 1).shape == (1, 2, 3, 2)


@tap.case
def einsum_takes_equations_and_lists():
    a, b = GTorch.rand(2, 3), GTorch.rand(3, 4)
    for made in (
        GTorch.einsum('ij,jk->ik', a, b),
        GTorch.einsum('ij,jk', [a, b]),
        GTorch.einsum(a, [0, 1], b, [1, 51], [0, 51]),
        GTorch.einsum(a, [..., 1], b, [1, 2], [..., 2]),
        GTorch.einsum(a, [0, 1], b, [1, 2]),
    ):
        near(made, a @ b)
    assert GTorch.einsum('', GTorch.tensor(2.0)).item() == 2
    a.requires_grad_().sum()
    GTorch.einsum('ij->', a).backward()
    assert a.grad.tolist() == [[1, 1, 1], [1, 1, 1]]
    raises(ValueError, 'from 0 to 51', GTorch.einsum, a, [52])
    raises(TypeError, 'lists of labels', GTorch.einsum, a, b)
    raises(TypeError, 'an equation and tensors', GTorch.einsum, 'ij', 3)
    raises(TypeError, 'an equation and tensors', GTorch.einsum)
    raises(Exception, 'has labels for 2 operands, there are 1', GTorch.einsum, 'ij,jk', a)


@tap.case
def pooling_gives_places_and_keeps_sizes():
    x = GTorch.arange(16, dtype=GTorch.float32).reshape(1, 4, 4)
    values, places = F.max_pool2d(x, 2, return_indices=True)
    assert values.tolist() == [[[5, 7], [13, 15]]] and places.tolist() == [[[5, 7], [13, 15]]]
    same(F.max_pool2d(x, 2, return_indices=False), values)
    near(F.adaptive_avg_pool2d(x, (None, 1)), x.mean(2, keepdim=True))
    values, places = F.adaptive_max_pool2d(x, (None, 1), return_indices=True)
    assert values.tolist() == [[[3], [7], [11], [15]]] and places.tolist() == values.long().tolist()
    values, places = F.max_pool1d(x[0], 2, return_indices=True)
    same(F.max_unpool1d(values, places, 2)[:, 1::2], values)
    near(F.lp_pool2d(x, 1, 2), F.avg_pool2d(x, 2) * 4)


@tap.case
def images_are_resampled_in_the_forms_of_pytorch():
    x = GTorch.arange(4, dtype=GTorch.float32).reshape(1, 1, 2, 2)
    wide = F.interpolate(x, scale_factor=(1, 2))
    assert wide.tolist() == [[[[0, 0, 1, 1], [2, 2, 3, 3]]]]
    same(F.interpolate(x, size=(2, 4), mode='nearest-exact'), wide)
    same(F.upsample_nearest(x, scale_factor=[1, 2]), wide)
    near(F.upsample_bilinear(x, 3), F.interpolate(x, (3, 3), mode='bilinear', align_corners=True))
    assert F.interpolate(x, scale_factor=1.6, recompute_scale_factor=True, mode='bicubic').shape == (1, 1, 3, 3)
    raises(ValueError, 'align_corners', F.interpolate, x, 3, align_corners=False)
    raises(ValueError, 'one number or 2', F.interpolate, x, scale_factor=(1, 2, 3))
    up = GTorch.nn.Upsample(scale_factor=(1, 2))
    same(up(x), wide)
    assert up.scale_factor == (1, 2) and repr(up) == "Upsample(scale_factor=(1.0, 2.0), mode='nearest')"
    up.scale_factor = 2
    same(up(x), F.interpolate(x, scale_factor=2))
    assert up.scale_factor == 2 and GTorch.nn.Upsample(3).scale_factor is None
    raises(GLib.Error, 'scale_factor', setattr, up, 'scale_factor', (2, -1))
    raises(TypeError, 'scale_factor', setattr, up, 'scale_factor', 'much')
    raises(GLib.Error, 'scale_factor has 3 numbers', GTorch.nn.Upsample(scale_factor=(1, 2, 3)), x)
    raises(GLib.Error, '1 or 2 numbers', GTorch.nn.UpsamplingNearest2d, scale_factor=(1, 2, 3))
    raises(GLib.Error, 'only one of both', GTorch.nn.Upsample(3, scale_factor=2), x)
    grid = F.affine_grid(GTorch.tensor([[[1.0, 0, 0], [0, 1, 0]]]), (1, 1, 2, 2))
    near(F.grid_sample(x, grid, 'nearest', padding_mode='border', align_corners=None), x)
    near(F.grid_sample(x, grid), x)


@tap.case
def norms_have_names():
    near(X.norm('fro'), X.norm())
    near(GTorch.norm(X, p='fro', dim=1), X.norm(2, 1))
    assert GTorch.norm(X, 1, dtype=GTorch.float64).dtype == GTorch.float64
    near(X.norm('nuc'), GTorch.linalg.svdvals(X).sum())
    raises(ValueError, "'l2' is no norm", X.norm, 'l2')


@tap.case
def products_of_matrices():
    a = GTorch.tensor([[2.0, 1.0], [1.0, 3.0]])
    near(a.matrix_power(-2), GTorch.linalg.inv(a @ a))
    assert GTorch.gradcheck(lambda m: m.matrix_power(-2), [a.double().requires_grad_()])
    near(GTorch.chain_matmul(a, a, a), a @ a @ a)
    near(GTorch.chain_matmul([a, a]), a @ a)
    same(GTorch.bincount(GTorch.tensor([1, 2, 2]), minlength=4), GTorch.tensor([0, 1, 2, 0]))
    near(GTorch.cdist(a, a, compute_mode='use_mm_for_euclid_dist'), GTorch.cdist(a, a))
    raises(ValueError, 'compute_mode', GTorch.cdist, a, a, compute_mode='fast')


if __name__ == '__main__':
    tap.main()
