#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Forms of operations that PyTorch's own samples have: complex numbers as factors, fills and ends, integers in place,
formats of conversions, empty lists of dimensions, and tensors without elements."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402
from tap import raises  # noqa: E402

A = GTorch.tensor([[1 + 2j, 2], [0, 3j]], dtype=GTorch.complex128)
B = GTorch.tensor([[1, 1j], [2, 1]], dtype=GTorch.complex128)
BETA, ALPHA = 1 + 2j, 2 - 3j


def near(found, expected):
    assert found.dtype == expected.dtype, (found.dtype, expected.dtype)
    assert found.shape == expected.shape, (found.shape, expected.shape)
    assert (found - expected).abs().max().item() < 1e-6, (found, expected)


@tap.case
def factors_of_products_may_be_complex():
    row = A[0]
    near(GTorch.addmm(A, A, B, beta=BETA, alpha=ALPHA), BETA * A + ALPHA * (A @ B))
    near(A.addmm(A, B, alpha=ALPHA), A + ALPHA * (A @ B))
    near(A.addmm(mat1=A, mat2=B, alpha=ALPHA), A + ALPHA * (A @ B))
    near(row.addmv(A, row, alpha=ALPHA), row + ALPHA * (A @ row))
    near(A.addr(row, row, beta=BETA), BETA * A + GTorch.outer(row, row))
    pair, other = GTorch.stack([A, B]), GTorch.stack([B, A])
    near(GTorch.baddbmm(A, pair, other, beta=BETA), BETA * A + pair @ other)
    near(GTorch.addbmm(A, pair, other, alpha=ALPHA), A + ALPHA * (pair @ other).sum(0))
    copy = A.clone()
    assert copy.addmm_(A, B, beta=BETA) is copy
    near(copy, BETA * A + A @ B)
    raises(TypeError, 'two tensors', A.addmm, A, alpha=ALPHA)
    raises(TypeError, 'nothing', A.addmm, A, B, alpha=ALPHA, nothing=1)


@tap.case
def a_complex_factor_has_a_gradient():
    leaf = A.clone().requires_grad_()
    assert GTorch.gradcheck(lambda m: GTorch.addmm(m, m, B, beta=BETA, alpha=ALPHA).abs().sum(), [leaf])


@tap.case
def a_complex_beta_of_zero_drops_the_tensor():
    lost = GTorch.full((2, 2), float('nan'), dtype=GTorch.complex128)
    near(lost.addmm(A, B, beta=0, alpha=ALPHA), ALPHA * (A @ B))


@tap.case
def weights_of_lerp_may_be_complex():
    near(A.lerp(B, ALPHA), A + ALPHA * (B - A))
    copy = A.clone()
    assert copy.lerp_(B, ALPHA) is copy
    near(copy, A + ALPHA * (B - A))


@tap.case
def fills_may_be_complex():
    assert GTorch.full_like(A, 1 - 2j).tolist() == [[1 - 2j] * 2] * 2
    assert A.new_full((2,), 3j).tolist() == [3j, 3j] and A.new_full((1,), 3j).dtype == A.dtype
    raises(TypeError, 'complex', GTorch.full_like, A.real, 1j)
    padded = GTorch.constant_pad_nd(A, (1, 0), 1 - 1j)
    assert padded.tolist() == [[1 - 1j, 1 + 2j, 2], [1 - 1j, 0, 3j]]
    raises(TypeError, 'complex', GTorch.constant_pad_nd, A.real, (1, 0), 1j)


@tap.case
def ends_of_lines_may_be_complex():
    line = GTorch.linspace(0, 2 + 4j, 3)
    assert line.tolist() == [0, 1 + 2j, 2 + 4j] and line.dtype == GTorch.complex64
    assert GTorch.linspace(0, 1, 2, dtype=GTorch.complex128).tolist() == [0, 1]
    powers = 10 ** GTorch.linspace(0, 2j, 3, dtype=GTorch.complex128)
    near(GTorch.logspace(0, 2j, 3, 10, dtype=GTorch.complex128), powers)
    raises(TypeError, 'float32', GTorch.linspace, 0, 1j, 3, dtype=GTorch.float32)
    raises(TypeError, 'float32', GTorch.logspace, 0, 1j, 3, dtype=GTorch.float32)


@tap.case
def fractions_of_ends_are_dropped_for_integers():
    assert GTorch.arange(-0.9, 2.1, 2.0, dtype=GTorch.int64).tolist() == [0, 2]
    assert GTorch.linspace(4.3, 1, 4, dtype=GTorch.int64).tolist() == [4, 3, 2, 1]
    assert GTorch.logspace(0, 1.2, 2, dtype=GTorch.int32).tolist() == [1, 10]


@tap.case
def complex_numbers_are_drawn():
    n = 4000
    for made in (
        GTorch.randn(n, dtype=GTorch.complex128),
        GTorch.randn_like(GTorch.zeros(n, dtype=GTorch.complex128)),
        GTorch.zeros(n, dtype=GTorch.complex128).normal_(),
    ):
        assert made.dtype == GTorch.complex128 and made.shape == (n,)
        assert abs((made.abs() ** 2).mean().item() - 1) < 0.2 and abs(made.real.var().item() - 0.5) < 0.1
    shifted = GTorch.zeros(n, dtype=GTorch.complex64).normal_(3, 2)
    assert abs(shifted.mean().item() - 3) < 0.3 and abs(shifted.imag.var().item() - 2) < 0.5
    for made in (GTorch.rand(n, dtype=GTorch.complex64), GTorch.rand_like(GTorch.zeros(n, dtype=GTorch.complex64))):
        assert made.real.min().item() >= 0 and made.imag.max().item() < 1 and made.imag.max().item() > 0.9
    wide = GTorch.zeros(n, dtype=GTorch.complex64).uniform_(-2, 2)
    assert wide.real.min().item() < -1.5 and wide.imag.max().item() > 1.5
    drawn = []
    for _ in range(2):
        GTorch.manual_seed(3)
        drawn.append(GTorch.randn(3, dtype=GTorch.complex64))
    near(*drawn)


@tap.case
def complex_numbers_are_dropped_whole():
    made = GTorch.dropout(GTorch.full((1000,), 1 + 1j), 0.5)
    assert set(made.tolist()) == {0, 2 + 2j}


@tap.case
def integers_are_summed_in_place():
    x = GTorch.tensor([1, 2, 3], dtype=GTorch.int32)
    assert x.cumsum_(0) is x and x.tolist() == [1, 3, 6] and x.dtype == GTorch.int32
    assert x.cumprod_(0).tolist() == [1, 3, 18]
    raises(RuntimeError, 'int64', x.cumsum_, 0, dtype=GTorch.int64)


@tap.case
def powers_in_place_need_double_precision():
    x = GTorch.tensor([2.0], dtype=GTorch.float64)
    assert x.float_power_(3) is x and x.item() == 8
    raises(RuntimeError, 'float64', GTorch.ones(1).float_power_, 2)


@tap.case
def conversions_take_a_format():
    x = GTorch.ones(2)
    for name in ('double', 'half', 'bfloat16', 'long', 'int', 'bool', 'cdouble', 'cfloat'):
        assert getattr(x, name)(memory_format=GTorch.preserve_format).tolist() == [1, 1]
    raises(TypeError, 'double(): memory_format must be', x.double, memory_format='channels_last')


@tap.case
def no_dimension_is_squeezed_in_place():
    x = GTorch.ones(1, 1)
    assert x.squeeze_(()) is x and x.shape == (1, 1) and x.squeeze_().shape == ()


@tap.case
def spacings_are_numbers_for_integers():
    squares = GTorch.tensor([0, 1, 4, 9])
    near(GTorch.gradient(squares, spacing=0.5)[0], GTorch.tensor([2.0, 4.0, 8.0, 10.0]))
    near(GTorch.gradient(squares, spacing=None)[0], GTorch.tensor([1.0, 2.0, 4.0, 5.0]))


@tap.case
def factors_of_matrices_have_pytorchs_former_name():
    matrix = GTorch.tensor([[0.0, 2.0], [1.0, 1.0]])
    packed, rows = GTorch.lu(matrix)
    assert packed.tolist() == [[1, 1], [0, 2]] and rows.tolist() == [2, 2]
    assert matrix.lu(get_infos=True)[2].item() == 0
    assert GTorch.lu(GTorch.zeros(2, 2), get_infos=True)[2].item() == 1
    raises(GLib.Error, 'lu_factor', GTorch.lu, GTorch.zeros(2, 2))


@tap.case
def complex_numbers_have_a_variance():
    x = GTorch.tensor([1 + 1j, 3 - 1j, 2 + 3j], dtype=GTorch.complex128)
    near(x.var(), x.real.var() + x.imag.var())
    near(x.std(correction=0), (x.real.var(correction=0) + x.imag.var(correction=0)).sqrt())
    spread, mean = GTorch.var_mean(x)
    near(spread, x.var())
    near(mean, x.mean())
    assert GTorch.gradcheck(lambda t: GTorch.std(t), [x.clone().requires_grad_()])


@tap.case
def inverse_functions_take_complex_numbers():
    x = GTorch.tensor([-2.5 + 0.5j, -0.5 - 1j, 0.25j, 1.5 - 0.25j, 3 + 2j], dtype=GTorch.complex128)
    for function, inverse in (('asin', 'sin'), ('acos', 'cos'), ('atan', 'tan'), ('asinh', 'sinh'), ('acosh', 'cosh'),
                              ('atanh', 'tanh'), ('exp2', 'log2'), ('expm1', 'log1p')):  # fmt: skip
        if function in ('exp2', 'expm1'):  # of which the logarithms have one of many values
            function, inverse = inverse, function
        near(getattr(getattr(x, function)(), inverse)(), x)
    near(10 ** x.log10(), x)
    tiny = GTorch.tensor([1e-10 + 1e-10j], dtype=GTorch.complex128)
    if tiny.device.type == 'cpu':  # the complex atanh() of GPUs is not exact for tiny numbers
        assert ((tiny.log1p() - tiny).abs() < 1e-19).all() and ((tiny.expm1() - tiny).abs() < 1e-19).all()
    near(x.sigmoid(), 1 / (1 + (-x).exp()))
    near(GTorch.nn.functional.silu(x), x * x.sigmoid())
    near(GTorch.nn.functional.tanhshrink(x), x - x.tanh())
    lost = GTorch.tensor([complex(float('nan'), float('inf'))], dtype=GTorch.complex128)
    assert lost.nan_to_num(1, 2).tolist() == [1 + 2j] and lost.nan_to_num_(3, 4).tolist() == [3 + 4j]


@tap.case
def sums_of_exponentials_take_complex_numbers():
    x = GTorch.tensor([[1000 + 1j, 999 - 2j], [1j, -1.0]], dtype=GTorch.complex128)
    near(x[1].logsumexp(0), x[1].exp().sum().log())
    found = x.logsumexp(1, keepdim=True)
    near(found[0], (x[0] - 1000).exp().sum(0, True).log() + 1000)
    near(GTorch.logaddexp(x[:, 0], x[:, 1]), found[:, 0])
    assert GTorch.gradcheck(lambda t: t.logsumexp(0), [x[1].clone().requires_grad_()])
    assert GTorch.zeros(2, 0, dtype=GTorch.complex64).logsumexp(1).real.tolist() == [-float('inf')] * 2


@tap.case
def reflectors_have_gradients():
    GTorch.manual_seed(1)
    a, x = (GTorch.randn(3, 2, dtype=GTorch.complex128).requires_grad_() for _ in range(2))
    tau = GTorch.tensor([0.5 - 0.5j, 1.25], dtype=GTorch.complex128).requires_grad_()
    assert GTorch.gradcheck(GTorch.linalg.householder_product, [a, tau])
    assert GTorch.gradcheck(lambda a, tau, x: GTorch.ormqr(a, tau, x, True, True), [a, tau, x])
    assert GTorch.gradcheck(lambda a, tau, x: GTorch.ormqr(a, tau, x.mT, False), [a, tau, x])
    assert GTorch.gradgradcheck(GTorch.linalg.householder_product, [a, tau])
    many, way = (GTorch.randn(24, 20, dtype=GTorch.float64) * 0.1 for _ in range(2))
    taus = GTorch.rand(20, dtype=GTorch.float64)
    along = GTorch.zeros(1, dtype=GTorch.float64).requires_grad_()
    assert GTorch.gradcheck(lambda t: GTorch.linalg.householder_product(many + t * way, taus)[::5], [along])


@tap.case
def integers_become_wide():
    x = GTorch.tensor([[1, 2], [3, 4]], dtype=GTorch.int32)
    assert GTorch.einsum('ij->', x).dtype == GTorch.int64 and GTorch.einsum('ij,jk->ik', x, x).dtype == GTorch.int32
    assert GTorch.einsum('ij,k->k', x, x[0]).tolist() == [10, 20]
    assert GTorch.unravel_index(x, (8,))[0].dtype == GTorch.int64
    assert x[0, 0].sum_to_size(()).dtype == GTorch.int64 and x.sum_to_size(2, 2).dtype == GTorch.int32
    assert GTorch.unravel_index(x.byte(), (4, 1000))[1].tolist() == [[1, 2], [3, 4]]


@tap.case
def indices_count_from_the_end():
    x = GTorch.tensor([[1, 2, 3], [4, 5, 6]])
    assert x.take_along_dim(GTorch.tensor([[-1], [0]]), 1).tolist() == [[3], [4]]
    raises(GLib.Error, 'out of range', lambda: x.take_along_dim(GTorch.tensor([[-4]]), 1).tolist())


@tap.case
def numbers_of_16_bits_do_not_overflow_in_between():
    x = GTorch.tensor([30.0, 40.0], dtype=GTorch.float16)
    near(GTorch.linalg.vector_norm(x, 4), GTorch.linalg.vector_norm(x.double(), 4).half())
    near(GTorch.dist(x, -x, 3), GTorch.dist(x.double(), -x.double(), 3).half())
    matrix = GTorch.tensor([[0.5, 0.25], [0.0, 1.0]])
    near(GTorch.matrix_exp(matrix.bfloat16()), GTorch.matrix_exp(matrix).bfloat16())


@tap.case
def there_may_be_no_elements():
    none = GTorch.zeros(2, 0, 3)
    for order in (1, 2, float('inf'), 'fro', 'nuc'):
        assert GTorch.linalg.matrix_norm(none, order).tolist() == [0, 0], order
    raises(GLib.Error, 'no elements', GTorch.linalg.matrix_norm, GTorch.zeros(2, 3, 0), -1)
    assert GTorch.histogram(GTorch.zeros(0), 2)[1].tolist() == [0, 0.5, 1]
    assert GTorch.linalg.lstsq(none, GTorch.zeros(2, 0, 1), driver='gelsd')[3].shape == (2, 0)


@tap.case
def integers_are_drawn_and_refused():
    n = GTorch.zeros(500, dtype=GTorch.int64).geometric_(0.5)
    assert n.min().item() == 1 and abs(n.double().mean().item() - 2) < 0.5
    raises(GLib.Error, 'mvlgamma: a result of dtype float32', GTorch.tensor([5]).mvlgamma_, 1)
    raises(GLib.Error, 'is no int64', GTorch.nn.functional.hardtanh, GTorch.tensor([5]), -0.5, 0.5)
    assert GTorch.nn.functional.hardtanh(GTorch.tensor([-5, 0, 5])).tolist() == [-1, 0, 1]
    near(GTorch.nn.functional.softsign(GTorch.tensor([-1, 3])), GTorch.tensor([-0.5, 0.75]))
    losses = GTorch.nn.functional.margin_ranking_loss, GTorch.nn.functional.poisson_nll_loss
    for loss, given in zip(losses, ([5, 1, -1], [2, 3])):
        numbers = [GTorch.tensor([one]) for one in given]
        near(loss(*numbers), loss(*(one.float() for one in numbers)))


@tap.case
def weights_may_be_a_row():
    x, row = GTorch.tensor([[1.0, 2.0], [3.0, 4.0]]), GTorch.tensor([0.5, 2.0])
    near(GTorch.nn.functional.linear(x, row), GTorch.tensor([4.5, 9.5]))
    near(GTorch.nn.functional.linear(x, row, GTorch.tensor(1.0)), GTorch.tensor([5.5, 10.5]))
    raises(GLib.Error, 'weight must have 2 dimensions', GTorch.nn.functional.linear, x, x.unsqueeze(0))


@tap.case
def dropout_outside_of_training_takes_anything():
    for name in ('dropout2d', 'alpha_dropout', 'feature_alpha_dropout'):
        whole = GTorch.ones(1, 2, 2, 2, dtype=GTorch.int64)
        assert getattr(GTorch.nn.functional, name)(whole, 0.5, False).equal(whole), name
    lost = GTorch.nn.functional.alpha_dropout(GTorch.full((100,), 1 + 1j), 0.5, True)
    assert len(set(lost.tolist())) == 2


tap.main()
