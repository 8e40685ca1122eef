# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""GTorch under the names of the Python array API standard, https://data-apis.org/array-api.

Libraries that are written for that standard get this module from a tensor: `x.__array_namespace__()`. Its functions
take and return tensors. Where the standard and PyTorch differ, they follow the standard: `axis` and `keepdims`,
promotion that does not look at dimensions, NaNs that are different values.

>>> import gtorch.array_api as xp
>>> xp.sum(xp.ones((2, 3)), axis=0)
tensor([2., 2., 2.])
"""

import math

from gtorch.array_api import _arrays, _creation, _dtypes, _elementwise, _statistics, fft, linalg
from gtorch.array_api._dtypes import (
    __array_namespace_info__, astype, can_cast, finfo, iinfo, isdtype, result_type,
)  # fmt: skip
from gtorch.array_api._arrays import *  # noqa: F403
from gtorch.array_api._creation import *  # noqa: F403
from gtorch.array_api._elementwise import *  # noqa: F403
from gtorch.array_api._statistics import *  # noqa: F403
from gtorch.array_api.linalg import matmul, tensordot, vecdot

__array_api_version__ = '2024.12'
VERSIONS = ('2021.12', '2022.12', '2023.12', '2024.12')

e, inf, nan, pi = math.e, math.inf, math.nan, math.pi
newaxis = None

for _name in _dtypes.NAMES:
    globals()[_name] = getattr(_dtypes.torch, _name)

__all__ = [
    '__array_api_version__', '__array_namespace_info__', 'astype', 'can_cast', 'finfo', 'iinfo', 'isdtype',
    'result_type', 'matmul', 'tensordot', 'vecdot', 'e', 'inf', 'nan', 'pi', 'newaxis', 'fft', 'linalg',
    *_arrays.__all__, *_creation.__all__, *_elementwise.__all__, *_statistics.__all__, *_dtypes.NAMES,
]  # fmt: skip


def namespace(api_version=None):
    """This module, for a version of the standard that it keeps to."""
    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(f'__array_namespace__(): there is no version {api_version!r}, only {", ".join(VERSIONS)}')
    import gtorch.array_api

    return gtorch.array_api


def __dir__():
    return sorted(__all__)
