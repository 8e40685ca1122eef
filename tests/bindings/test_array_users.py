#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""scikit-learn and SciPy compute with tensors, through the array API standard, what they compute with NumPy."""

import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / 'style'))
os.environ['SCIPY_ARRAY_API'] = '1'  # read when SciPy is imported

import gi  # noqa: E402

gi.require_version('GTorch', '1')
import gtorch as torch  # noqa: E402

import tap  # noqa: E402


def numbers():
    """Rows of five features, and the class of each row."""
    import numpy

    values = numpy.sin(12.9898 * numpy.arange(300.0)).reshape((60, 5))
    return values, (values[:, 0] + values[:, 1] > 0).astype('int64')


def sklearn():
    try:
        import sklearn
    except ImportError:
        raise tap.Skip('scikit-learn is not installed') from None
    if tuple(map(int, sklearn.__version__.split('.')[:2])) < (1, 4):
        raise tap.Skip(f'scikit-learn {sklearn.__version__} has no array API')
    sklearn.set_config(array_api_dispatch=True)
    return sklearn


def scipy():
    try:
        import scipy
    except ImportError:
        raise tap.Skip('SciPy is not installed') from None
    if tuple(map(int, scipy.__version__.split('.')[:2])) < (1, 15):
        raise tap.Skip(f'SciPy {scipy.__version__} has little of the array API')
    return scipy


def near(found, wanted, names='values'):
    assert isinstance(found, torch.Tensor), f'{names}: {type(found)}'
    wanted = torch.asarray(wanted)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape, (found.dtype, found.shape, wanted.shape)
    assert torch.allclose(found, wanted, rtol=1e-9, atol=1e-12), f'{names}: {found} instead of {wanted}'


@tap.case
def scikit_learn_prepares_tensors():
    sklearn()
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    values, _ = numbers()
    for kind in (StandardScaler, MinMaxScaler):
        near(kind().fit_transform(torch.asarray(values)), kind().fit_transform(values), kind.__name__)


@tap.case
def scikit_learn_learns_from_tensors():
    sklearn()
    from sklearn.decomposition import PCA
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model import Ridge

    values, classes = numbers()
    x, y = torch.asarray(values), torch.asarray(classes)
    found = PCA(2, svd_solver='full').fit_transform(x)
    near(abs(found), abs(PCA(2, svd_solver='full').fit_transform(values)), 'PCA')
    near(Ridge(solver='svd').fit(x, y.double()).coef_, Ridge(solver='svd').fit(values, classes * 1.0).coef_, 'Ridge')
    wanted = LinearDiscriminantAnalysis().fit(values, classes).predict(values)
    near(LinearDiscriminantAnalysis().fit(x, y).predict(x), wanted)


@tap.case
def scikit_learn_measures_tensors():
    sklearn()
    from sklearn.metrics import accuracy_score, mean_squared_error, r2_score

    _, classes = numbers()
    other = classes[::-1].copy()
    y, z = torch.asarray(classes), torch.asarray(other)
    assert abs(accuracy_score(y, z) - accuracy_score(classes, other)) < 1e-6
    for measure in (mean_squared_error, r2_score):
        assert abs(measure(y.double(), z.double()) - measure(classes * 1.0, other * 1.0)) < 1e-12


@tap.case
def scipy_computes_with_tensors():
    scipy()
    from scipy import fft, special, stats

    values, _ = numbers()
    x = torch.asarray(values)
    near(special.logsumexp(x, axis=0), special.logsumexp(values, axis=0), 'logsumexp')
    near(special.softmax(x, axis=1), special.softmax(values, axis=1), 'softmax')
    near(stats.zscore(x, axis=0), stats.zscore(values, axis=0), 'zscore')
    near(stats.skew(x, axis=0), stats.skew(values, axis=0), 'skew')
    wanted = stats.ttest_ind(values[:30], values[30:], axis=0).pvalue
    near(stats.ttest_ind(x[:30], x[30:], axis=0).pvalue, wanted, 'ttest_ind')
    near(fft.fft(x), fft.fft(values), 'fft')


tap.main()
