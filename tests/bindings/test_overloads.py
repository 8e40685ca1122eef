#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Operations whose forms are told apart by the kinds of their arguments, and those that return lists."""

import itertools
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402
from tap import raises  # noqa: E402

X = GTorch.tensor([[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]])
ROW = GTorch.tensor([1, 2, 3, 4, 5])


def lists(tensors):
    return [t.tolist() for t in tensors]


@tap.case
def tensors_are_given_one_by_one_or_in_a_list():
    a, b = GTorch.tensor([1, 2]), GTorch.tensor([3])
    assert GTorch.block_diag(a, b).tolist() == GTorch.block_diag([a, b]).tolist() == [[1, 2, 0], [0, 0, 3]]
    assert lists(GTorch.broadcast_tensors(a, b)) == [[1, 2], [3, 3]]
    assert lists(GTorch.atleast_2d(a, b)) == lists(GTorch.atleast_2d([a, b])) == [[[1, 2]], [[3]]]
    assert GTorch.atleast_2d(a).tolist() == a.atleast_2d().tolist() == [[1, 2]]
    assert lists(GTorch.meshgrid(a, b, indexing='xy')) == [[[1, 2]], [[3, 3]]]
    assert lists(GTorch.meshgrid([a, b])) == [[[1], [2]], [[3], [3]]]


@tap.case
def splits_take_sections_or_positions():
    assert lists(ROW.tensor_split(3)) == [[1, 2], [3, 4], [5]]
    assert lists(ROW.tensor_split([1, 3])) == lists(ROW.tensor_split(GTorch.tensor([1, 3]))) == [[1], [2, 3], [4, 5]]
    assert lists(X.hsplit([1])) == [[[1], [8]], [[2, 4], [16, 32]]]
    assert lists(GTorch.vsplit(X, 2)) == [[[1, 2, 4]], [[8, 16, 32]]]


@tap.case
def quantiles_take_numbers():
    assert GTorch.quantile(X, 0.5).item() == 6.0
    assert X.quantile(0.25, dim=1, interpolation='lower').tolist() == [1.0, 8.0]


@tap.case
def gradients_take_numbers_and_coordinates():
    assert lists(GTorch.gradient(X[0], spacing=2.0)) == [[0.5, 0.75, 1.0]]
    by_place = GTorch.gradient(X, spacing=[GTorch.tensor([0.0, 1.0, 3.0])], dim=1)
    assert lists(by_place) == [[[1.0, 1.0, 1.0], [8.0, 8.0, 8.0]]]


@tap.case
def results_are_given_as_asked_for():
    x = GTorch.tensor([1, 1, 2, 1])
    assert GTorch.unique_consecutive(x).tolist() == [1, 2, 1]
    assert lists(x.unique_consecutive(return_inverse=True, return_counts=True)) == [
        [1, 2, 1], [0, 0, 1, 2], [2, 1, 1]]  # fmt: skip
    assert lists(GTorch.aminmax(X, 1)) == [[1, 8], [4, 32]]
    assert lists(GTorch.mode(GTorch.tensor([3, 1, 3, 1, 2]))) == [1, 3]
    assert lists(GTorch.std_mean(X[0, :2], False)) == [0.5, 1.5]
    assert GTorch.nanmedian(GTorch.tensor([float('nan'), 3.0, 1.0])).item() == 1.0


@tap.case
def histograms_of_points_take_numbers_or_edges():
    points = GTorch.tensor([[0.0, 0.0], [1.0, 3.0], [2.0, 1.0], [2.0, 3.0]])
    hist, edges = GTorch.histogramdd(points, [2, 3])
    assert hist.tolist() == [[1, 0, 0], [0, 1, 2]], hist.tolist()
    assert lists(edges) == [[0, 1, 2], [0, 1, 2, 3]]
    hist, edges = points.histogramdd(2, range=[0.0, 4.0, 0.0, 4.0])
    assert hist.tolist() == [[1, 1], [1, 1]] and lists(edges) == [[0, 2, 4], [0, 2, 4]]
    hist, _ = points.histogramdd([GTorch.tensor([0.0, 1.0]), GTorch.tensor([2.0, 3.0])])
    assert hist.tolist() == [[1]], hist.tolist()
    words = 'a row of two real numbers for each of 2 coordinates'
    raises(GLib.Error, lambda: points.histogramdd([2, 2], range=[0.0, 1.0]), words)
    raises(GLib.Error, lambda: points.histogramdd([2, 2, 2]), 'bins of 3 coordinates for points of 2')


@tap.case
def stft_finds_out_how_many_frequencies_there_are():
    x = GTorch.arange(32.0)
    window = GTorch.hann_window(8)
    assert x.stft(8, 2, window=window).shape == (5, 17)
    assert GTorch.stft(x.to(GTorch.complex64), 8, 2, window=window).shape == (8, 17)
    assert GTorch.stft(x, 8, 2, return_complex=False, onesided=False).shape == (8, 17, 2)
    for onesided in (True, False):
        there = GTorch.stft(x, 8, 2, window=window, onesided=onesided, return_complex=True)
        assert (GTorch.istft(there, 8, 2, window=window) - x).abs().max().item() < 1e-4
    raises(GLib.Error, lambda: x.to(GTorch.complex64).stft(8, onesided=True), 'onesided must not be true')


@tap.case
def first_numbers_are_not_rounded():
    x = GTorch.tensor([1.0, 2.0], dtype=GTorch.float64)
    assert (0.3 / x).tolist() == [0.3, 0.15] and (0.3 - x).tolist() == [0.3 - 1, 0.3 - 2]
    assert GTorch.special.legendre_polynomial_p(0.3, x[:1]).tolist() == [0.3]
    assert GTorch.special.zeta(2.5, x).dtype == (0.3 / x).dtype == GTorch.float64
    assert x.__rdiv__(0.3).tolist() == [0.3, 0.15]
    assert (0.3 / x.float()).dtype == GTorch.float32 and (0.3 / x.half()).dtype == GTorch.float16


@tap.case
def windows_and_masks_have_modules():
    assert GTorch.signal.windows.general_cosine(3, a=[0.5, 0.5], sym=True).tolist() == [0, 1, 0]
    assert GTorch.signal.windows.hann is GTorch.signal_windows_hann
    x, mask = GTorch.tensor([[1.0, 2.0, 9.0]]), GTorch.tensor([True, False, True])
    assert GTorch.masked.sum(x, 1, mask=mask).tolist() == [10]
    assert GTorch.masked.var(x, (0, 1), False, mask=mask).item() == 16
    assert GTorch.masked.std(x, 1, correction=0, mask=mask).item() == 4
    assert not hasattr(GTorch.masked, 'fill')


@tap.case
def histograms_take_a_number_or_edges():
    x = GTorch.tensor([0.0, 1.0, 1.0, 2.0])
    assert lists(GTorch.histogram(x, 2)) == [[1, 3], [0, 1, 2]]
    assert lists(x.histogram(2, range=(0.0, 4.0), density=True)) == [[0.375, 0.125], [0, 2, 4]]
    assert lists(GTorch.histogram(x, GTorch.tensor([0.0, 0.5, 1.0]))) == [[1, 2], [0, 0.5, 1]]


@tap.case
def norms_have_names():
    square = GTorch.tensor([[3.0, 0.0], [0.0, 4.0]])
    assert GTorch.linalg_norm(square, 'fro').item() == GTorch.linalg_matrix_norm(square).item() == 5.0
    assert GTorch.linalg_norm(GTorch.ones(2, 2, 3), 'fro', (0, 1)).tolist() == [2.0, 2.0, 2.0]
    assert GTorch.linalg_norm(square, 'nuc').item() == GTorch.linalg_matrix_norm(square, 'nuc').item() == 7.0
    assert GTorch.linalg_norm(square.unsqueeze(1), 'nuc', (0, 2), keepdim=True).tolist() == [[[7.0]]]
    for refused, error in (
        (lambda: GTorch.linalg_norm(square, 'nuc', 0), ValueError),
        (lambda: GTorch.linalg_matrix_norm(square, 'nucleus'), ValueError),
        (lambda: GTorch.linalg_norm(square[0], 'fro'), ValueError),
        (lambda: GTorch.linalg_norm(square, 'fro', 0), ValueError),
        (lambda: GTorch.linalg_norm(square, 'fro', (0,)), ValueError),
    ):
        try:
            refused()
        except error:
            continue
        raise AssertionError('such a norm is given')


@tap.case
def places_are_written_or_added_to():
    x = GTorch.zeros(3)
    index = (GTorch.tensor([0, 0, 2]),)
    assert x.index_put(index, GTorch.ones(3), accumulate=True).tolist() == [2, 0, 1]
    assert x.index_put_(index, GTorch.tensor(5.0)).tolist() == [5, 0, 5] == x.tolist()


@tap.case
def combinations_are_those_of_itertools():
    for n, r in itertools.product(range(7), range(1, 9)):
        x = GTorch.arange(n) * 10
        for repeats, wanted in (
            (False, itertools.combinations),
            (True, itertools.combinations_with_replacement),
        ):
            got = GTorch.combinations(x, r, repeats)
            rows = [list(row) for row in wanted(range(0, 10 * n, 10), r)]
            assert got.tolist() == rows and got.shape == (len(rows), r), (n, r, repeats)
    assert GTorch.combinations(GTorch.ones(1000), 999).shape == (1000, 999)
    assert GTorch.combinations(GTorch.ones(1), 10**6, True).shape == (1, 10**6)


@tap.case
def arguments_have_the_names_of_pytorch():
    for name in ('zeros', 'ones'):
        make, beside = getattr(GTorch, name), getattr(X, f'new_{name}')
        assert make(size=(2, 3)).tolist() == beside(size=[2, 3]).tolist() == make(2, 3).tolist()
        assert make(size=(2,), dtype=GTorch.int64).dtype == GTorch.int64
        raises(TypeError, '', make, 2, size=(2,))
    for name in ('empty', 'rand', 'randn'):
        assert getattr(GTorch, name)(size=(2, 3)).shape == (2, 3)
    assert X.new_empty(size=(4,)).shape == GTorch.randint(high=2, size=(4,)).shape == (4,)
    assert GTorch.full(size=(2,), fill_value=7).tolist() == X.new_full(size=(2,), fill_value=7).tolist() == [7, 7]
    assert GTorch.full_like(ROW, fill_value=7).tolist() == [7] * 5
    assert GTorch.scalar_tensor(s=3.0).item() == 3.0
    assert GTorch.scalar_tensor(3).dtype == GTorch.scalar_tensor(2.5).dtype == GTorch.float32
    assert GTorch.arange(end=3).tolist() == GTorch.arange(start=0, end=3, step=1).tolist() == [0, 1, 2]
    assert GTorch.arange(1, end=7, step=2).tolist() == GTorch.arange(1, 7, 2).tolist() == [1, 3, 5]
    raises(TypeError, '', GTorch.arange)
    for name, key, sizes in (
        ('permute', 'dims', (1, 0)),
        ('flip', 'dims', (0, 1)),
        ('view', 'size', (3, 2)),
        ('reshape', 'shape', (3, 2)),
        ('expand', 'size', (2, 2, 3)),
        ('broadcast_to', 'size', (2, 2, 3)),
        ('repeat', 'repeats', (2, 1)),
        ('tile', 'dims', (2, 1)),
    ):
        method = getattr(X, name)
        assert method(**{key: sizes}).tolist() == method(sizes).tolist() == method(list(sizes)).tolist(), name
        raises(TypeError, '', method, *sizes, **{key: sizes})
        raises(TypeError, '', method, **{'no_such_name': sizes})


if __name__ == '__main__':
    tap.main()
