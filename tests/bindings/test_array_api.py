#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The Python array API standard: names, signatures and values, compared with the standard's strict implementation."""

import inspect
import json
import math
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
import gtorch as torch  # noqa: E402
import gtorch.array_api as xp  # noqa: E402

import array_api_cases  # noqa: E402
import tap  # noqa: E402
from array_api_cases import INF  # noqa: E402
from tap import raises  # noqa: E402

REFERENCE = json.loads((HERE / 'array-api.json').read_text('utf-8'))
TOLERANCE = {'float32': 2e-6, 'complex64': 2e-5, 'float64': 1e-10, 'complex128': 1e-10}
# The dtypes of results without dtype=, where the standard leaves the default to the library, and unsigned integers
# that are added up: there is no uint64.
DEFAULTS = {'float64': 'float32', 'complex128': 'complex64', 'uint64': 'int64'}
# What has another dtype than that of its operands.
CREATING = ('arange', 'full', 'zeros', 'ones', 'asarray', 'linspace', 'eye', 'unique_values(xp.asarray')
KINDS = (ValueError, TypeError, IndexError, RuntimeError)


def plain(value):
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    if isinstance(value, torch.Tensor):
        flat = value.flatten().tolist()
        return [str(value.dtype).removeprefix('torch.'), list(value.shape), [number(one) for one in flat]]
    return str(value).removeprefix('torch.') if isinstance(value, torch.DType) else number(value)


def number(value):
    return [value.real, value.imag] if isinstance(value, complex) else value


def alike(found, wanted, tolerance, signed):
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(alike(a, b, tolerance, signed) for a, b in zip(found, wanted))
    if not isinstance(wanted, float) or not isinstance(found, (int, float)):
        return found == wanted and type(found) is type(wanted)
    if math.isnan(wanted) or math.isinf(wanted):
        return repr(float(found)) == repr(wanted)
    if signed and wanted == 0 and found == 0:
        return math.copysign(1, found) == math.copysign(1, wanted)
    return abs(found - wanted) <= tolerance * max(1, abs(wanted))


def same(name, found, wanted):
    is_tensor = isinstance(wanted, list) and len(wanted) == 3 and isinstance(wanted[0], str)
    if not is_tensor:
        return alike(found, wanted, 1e-6, False)
    dtypes = {wanted[0]}
    if wanted[0] == 'uint64' or any(word in name for word in CREATING):
        dtypes.add(DEFAULTS.get(wanted[0], wanted[0]))
    if not isinstance(found, list) or found[0] not in dtypes or found[1] != wanted[1]:
        return False
    # Of zeros that are parts of complex numbers, and in sums, the standard leaves the sign open.
    signed = 'float' in found[0] and name.partition(' ')[0] in (*array_api_cases.ONE, *array_api_cases.TWO)
    return alike(found[2], wanted[2], TOLERANCE.get(found[0], 0), signed)


PROGRAMS = dict(array_api_cases.programs(xp))
GROUPS = {}
for row in REFERENCE['values']:
    first = row[0].partition(' ')[0]
    GROUPS.setdefault('functions' if first.startswith('xp.') else first, []).append(row)


def compare(rows):
    wrong = []
    for name, wanted in rows:
        try:
            found = plain(PROGRAMS[name]())
        except Exception as error:
            wrong.append(f'{name}: {error!r}')
            continue
        if not same(name, found, wanted):
            wrong.append(f'{name}: {found} instead of {wanted}')
    assert not wrong, '\n'.join(wrong)


for group, group_rows in GROUPS.items():
    tap.add(f'values_of_{group}', compare, group_rows)


@tap.case
def names_and_signatures_are_the_standards():
    found = array_api_cases.signatures(xp)
    wrong = []
    for name, parameters in REFERENCE['signatures'].items():
        if name not in found:
            wrong.append(f'{name} is missing')
            continue
        mine = found[name]
        if name == 'expand_dims':  # further versions have a default
            mine = [mine[0], [*mine[1][:2], None]]
        if name.startswith('fft.') and name.endswith('freq'):
            parameters = [[*one[:2], one[2]] for one in parameters]
        if mine != parameters:
            wrong.append(f'{name}: {mine} instead of {parameters}')
    assert not wrong, '\n'.join(wrong)


@tap.case
def complex_functions_keep_the_signs_of_zeros():
    for name, z, wanted in (
        ('expm1', complex(1, -0.0), '(1.718281828459045-0j)'),
        ('expm1', complex(-180, 1), '(-1+5.64979126518311e-79j)'),
        ('expm1', complex(-5000, 2), '(-1+0j)'),
        ('expm1', complex(INF, 0), '(inf+0j)'),
        ('expm1', complex(-INF, 1), '(-1+0j)'),
        ('expm1', complex(800, 0), '(inf+0j)'),
        ('log1p', complex(0.0, -0.0), '-0j'),
        ('log1p', complex(-3, -0.0), '(0.6931471805599453-3.141592653589793j)'),
        ('log2', complex(0.0, -0.0), '(-inf-0j)'),
        ('log2', complex(-4, 0.0), '(2+4.532360141827194j)'),
        ('log10', complex(0.0, 0.0), '(-inf+0j)'),
        ('log10', complex(0, INF), '(inf+0.6821881769209206j)'),
        ('exp2', complex(INF, 0.0), '(inf+0j)'),
    ):
        for dtype, tolerance in ((torch.complex128, 1e-14), (torch.complex64, 1e-6)):
            for shape in ((), (1,), (9,)):
                x = torch.full(shape, z, dtype=dtype)
                found = getattr(torch, name)(x).flatten()[-1].item()
                for mine, its in ((found.real, complex(wanted).real), (found.imag, complex(wanted).imag)):
                    text = f'{name}({z}) of {dtype} is {found}, not {wanted}'
                    assert math.copysign(1, mine) == math.copysign(1, its), text
                    assert mine == its or abs(mine - its) <= tolerance * abs(its) + 1e-45, text


@tap.case
def dtypes_are_printed_by_what_prints_ints():
    class Printer:
        def text(self, text):
            self.found = text

    printer = Printer()
    torch.float32._repr_pretty_(printer, False)
    assert printer.found == 'torch.float32'


@tap.case
def the_capsule_has_the_standards_arguments():
    x = torch.ones(3)
    parameters = inspect.signature(x.__dlpack__).parameters
    assert {name: one.default for name, one in parameters.items()} == {
        'stream': None, 'max_version': None, 'dl_device': None, 'copy': None,
    }  # fmt: skip
    assert x.__dlpack__(stream=None, max_version=(1, 0), dl_device=(1, 0), copy=False) is not None
    raises(TypeError, lambda: x.__dlpack__(streams=None), 'streams')


@tap.case
def errors_are_raised():
    for name, call in array_api_cases.refused(xp):
        try:
            found = call()
        except KINDS:
            continue
        raise AssertionError(f'{name} gives {found}')


@tap.case
def a_tensor_has_the_namespace():
    x = torch.ones(2)
    assert x.__array_namespace__() is xp
    assert x.__array_namespace__(api_version='2023.12') is xp and x.__array_namespace__(api_version=None) is xp
    raises(ValueError, lambda: x.__array_namespace__(api_version='1999.1'), '1999.1')
    assert xp.__array_api_version__ == '2024.12'
    for name in xp.__all__:
        assert hasattr(xp, name), name
    assert set(dir(xp)) == set(xp.__all__)
    for function in ('sin', 'add', 'sum'):
        assert getattr(xp, function).__name__ == function and getattr(xp, function).__doc__


@tap.case
def the_namespace_tells_of_itself():
    info = xp.__array_namespace_info__()
    assert info.capabilities()['boolean indexing'] is True and info.capabilities()['data-dependent shapes'] is True
    most = info.capabilities()['max dimensions']
    assert torch.ones((1,) * most).ndim == most
    raises(Exception, lambda: torch.ones((1,) * (most + 1)))
    assert info.default_device() in info.devices()
    assert info.default_dtypes() == {'real floating': xp.float32, 'complex floating': xp.complex64,
                                     'integral': xp.int64, 'indexing': xp.int64}
    assert info.dtypes(kind='real floating') == {'float32': xp.float32, 'float64': xp.float64}
    assert set(info.dtypes()) == {'bool', 'int8', 'int16', 'int32', 'int64', 'uint8', 'float32', 'float64',
                                  'complex64', 'complex128'}
    assert list(info.dtypes(kind=('bool', 'unsigned integer'))) == ['bool', 'uint8']
    raises(ValueError, lambda: info.dtypes(kind='no'), "'no'")
    raises(TypeError, lambda: info.dtypes(kind=3), 'int')


@tap.case
def bad_arguments_are_named():
    raises(TypeError, lambda: xp.sin([1.0]), 'sin() takes a tensor, not list')
    raises(TypeError, lambda: xp.add(1, 2), 'add() takes at least one tensor')
    raises(TypeError, lambda: xp.add(xp.asarray([1, 2]), 1.5), 'add()', '1.5', 'int64')
    raises(TypeError, lambda: xp.add(xp.asarray([1, 2]), True), 'True')
    raises(TypeError, lambda: xp.add(xp.asarray([1, 2]), 'a'), 'str')
    raises(IndexError, lambda: xp.sum(xp.ones(3), axis=4), 'sum()', 'axis 4')
    raises(ValueError, lambda: xp.concat([]), 'at least one')
    raises(TypeError, lambda: xp.result_type('float32'), 'str')
    raises(TypeError, lambda: xp.sum([1.0]), 'list')


@tap.case
def arrays_of_others_are_shared():
    x = xp.asarray([1.0, 2.0])
    y = xp.from_dlpack(x)
    y[0] = 5.0
    assert x.tolist() == [5.0, 2.0]
    y = xp.from_dlpack(x, copy=True)
    y[0] = 7.0
    assert x.tolist() == [5.0, 2.0]
    assert xp.from_dlpack(x, device='cpu', copy=False).data_ptr() == x.data_ptr()
    assert x.to_device('cpu', stream=None) is x and x.to_device(torch.device('cpu')) is x
    assert x.__dlpack__(dl_device=(1, 0), copy=None, max_version=(1, 0)) is not None
    raises(BufferError, lambda: x.__dlpack__(dl_device=(2, 0)), '(2, 0)')
    assert xp.asarray(x, copy=False) is x or xp.asarray(x, copy=False).data_ptr() == x.data_ptr()
    assert xp.asarray(x, copy=True).data_ptr() != x.data_ptr()
    raises(ValueError, lambda: xp.asarray([1.0], copy=False), 'copy=False')


@tap.case
def gradients_pass():
    x = torch.tensor([1.0, 2.0, 4.0], requires_grad=True)
    xp.sum(xp.sqrt(x) * xp.asarray(2.0), axis=0).backward()
    assert [round(one, 6) for one in x.grad.tolist()] == [1.0, round(1 / math.sqrt(2), 6), 0.5]


@tap.case
def the_compatibility_package_finds_it():
    try:
        import array_api_compat
    except ImportError:
        raise tap.Skip('array_api_compat is not installed') from None
    x = torch.tensor([[1.0, 2.0]])
    assert array_api_compat.array_namespace(x) is xp
    assert array_api_compat.is_array_api_obj(x) and array_api_compat.device(x) == torch.device('cpu')
    assert array_api_compat.to_device(x, 'cpu') is x and array_api_compat.size(x) == 2


tap.main()
