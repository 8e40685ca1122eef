# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Conversions of Python values to arguments of the introspected functions."""

import math
import numbers
import os
from operator import index

from gi.module import get_introspection_module
from gi.repository import Gio

from gi.overrides import _gtorch_properties  # noqa: F401, before any class is made

GTorch = get_introspection_module('GTorch')
RawTensor = GTorch.Tensor
DType = GTorch.DType

PYTHON_TYPES = {
    bool: DType.BOOL,
    int: DType.INT64,
    float: DType.FLOAT64,
    complex: DType.COMPLEX128,
}
WIDE = (DType.FLOAT64, DType.COMPLEX128)


def convert_dtype(value):
    """Converts None, a dtype, its name, a Python type, or numpy's dtype to a dtype."""
    if value is None:
        return DType.NONE
    if isinstance(value, DType):
        return value
    if isinstance(value, str):
        return DType.from_name(value)
    if isinstance(value, type) and value in PYTHON_TYPES:
        return PYTHON_TYPES[value]
    name = getattr(value, 'name', None) or getattr(value, '__name__', None)
    if isinstance(name, str) and not isinstance(value, int):
        return DType.from_name(name)
    raise TypeError(f'dtype must be a GTorch.DType or its name, not {type(value).__name__}')


def convert_device(value):
    """Converts None, a device, its name or the index of a GPU to a device."""
    if isinstance(value, str):
        return GTorch.Device.new_from_string(value)
    if value is None or isinstance(value, GTorch.Device):
        return value
    if isinstance(value, int) and not isinstance(value, (bool, DType)):
        if value < 0:
            raise ValueError(f'{value} is no number of a GPU: these begin with 0')
        return GTorch.Device.cuda(value)
    raise TypeError(
        f'device must be a GTorch.Device, its name or its number, not {type(value).__name__}'
    )


def names_device(value):
    """Tells whether it is a device, its name or index, and not a dtype."""
    if isinstance(value, str):
        return value.partition(':')[0] in ('cpu', 'cuda')
    return isinstance(value, GTorch.Device) or (
        isinstance(value, int) and not isinstance(value, (bool, DType))
    )


def _names_dtype(name):
    return name.upper() != 'NONE' and isinstance(getattr(DType, name.upper(), None), DType)


def destination(args, dtype, device, non_blocking, copy):
    """The arguments of to(): a device, a dtype, both, or a tensor that has both, then non_blocking and copy. Returns
    the device or None, the dtype, and those two."""
    flags = [arg for arg in args if isinstance(arg, bool)]
    if flags:
        non_blocking, copy = (flags + [copy])[:2]
        args = args[: -len(flags)]
        if not args and dtype is None and device is None:
            raise TypeError(f'to(): a dtype, a device or a tensor comes before {flags[0]}')
    non_blocking, copy = convert_bool(non_blocking), convert_bool(copy)
    for arg in args:
        if isinstance(arg, RawTensor):
            found = {'dtype': arg.dtype, 'device': arg.device}
        elif arg is None:
            found = {}
        elif isinstance(arg, str) and not names_device(arg) and not _names_dtype(arg):
            raise ValueError(f"to(): {arg[:40]!r} is neither a device, 'cpu', 'cuda' or 'cuda:N', nor a dtype")
        elif isinstance(arg, DType) and arg == DType.NONE:
            raise TypeError(f'to(): {arg} is no dtype')
        else:
            found = {'device' if names_device(arg) else 'dtype': arg}
        for what, before in (('dtype', dtype), ('device', device)):
            if what in found and before is not None:
                raise TypeError(f'to(): two {what}s, {before} and {found[what]}: there is one dtype and one device')
        dtype, device = found.get('dtype', dtype), found.get('device', device)
    return convert_device(device), convert_dtype(dtype), non_blocking, copy


def cuda_device(value=None):
    """The same, but no CPU; None is the current GPU, and an error where there is none. The device has a number."""
    return for_gpus(convert_device('cuda' if value is None else value).resolve())


def of_type(value, kind, where):
    """@value, which must be of a class; @where is the function and its argument."""
    if not isinstance(value, kind):
        raise TypeError(f'{where} must be a {kind.__name__}, not {type(value).__name__}')
    return value


def listed(values, where):
    """The items of @values in a list; @where is the function and its argument."""
    try:
        return list(values)
    except TypeError:
        raise TypeError(f'{where} must be a list, not {type(values).__name__}') from None


def convert_text(value, where):
    """@value, which must be a text that C sees all of."""
    if not isinstance(value, str):
        raise TypeError(f'{where} must be a text, not {type(value).__name__}')
    if '\0' in value:
        raise ValueError(f'{where} has a NUL at {value.index(chr(0))}, with which texts end in C')
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f'{where} is no Unicode: {error}') from None
    return value


def convert_file(value, where):
    """A Gio.File: itself, or that of a path."""
    if isinstance(value, Gio.File):
        return value
    if not isinstance(value, (str, os.PathLike)) or not isinstance(os.fspath(value), str):
        raise TypeError(f'{where} must be a path or a Gio.File, not {type(value).__name__}')
    path = os.fspath(value)
    try:
        os.fsencode(path)  # which has names that are not UTF-8, too
    except UnicodeEncodeError:
        convert_text(path, where)  # raises
    return Gio.File.new_for_path(path if '\0' not in path else convert_text(path, where))


def for_gpus(value):
    """The device, or the stream or pool of one; an error if it is the CPU's."""
    device = value if isinstance(value, GTorch.Device) else value.get_device()
    if device.get_device_type() != GTorch.DeviceType.CUDA:
        what = 'a GPU' if value is device else f'a {type(value).__name__} of a GPU'
        raise ValueError(f'{what} was expected, not {"" if value is device else "one of "}{device.to_string()}')
    return value


def _choices(enum):
    """The names of the members, as an error lists them."""
    members = sorted({member for member in vars(enum).values() if isinstance(member, enum)})
    names = [repr(member.value_nick) for member in members]
    return ' or '.join([', '.join(names[:-1]), names[-1]] if len(names) > 1 else names)


def convert_enum(enum, value, where):
    """Converts a member of @enum, or its name in any case, to the member. @where is the function with the argument, or
    the property."""
    if isinstance(value, str):
        member = getattr(enum, value.upper().replace('-', '_'), None)
        if not isinstance(member, enum):
            raise ValueError(f'{where} must be {_choices(enum)}, not {value!r}')
        return member
    if not isinstance(value, enum):
        space = enum.__module__.rpartition('.')[2]
        raise TypeError(f'{where} must be a {space}.{enum.__name__}, {_choices(enum)}, not {value!r}')
    return value


def shown(value):
    """A number as an error tells it: of very many digits the first."""
    size = abs(value).bit_length()
    return str(value) if size < 200 else f'a number of {size} bits'


def _about(name, text):
    """The text of an error; @name is the function with the argument, or None where the caller adds it."""
    return text if name is None else f'{name}: {text}'


def convert_whole(value, name=None):
    """Converts to an integer; a float is an error, never truncated. Python treats dtypes and bools as
    integers, too: here a dtype is no number, and a bool was probably meant for another argument."""
    if isinstance(value, DType):
        raise TypeError(_about(name, f'a whole number was expected, not the dtype {value}'))
    if isinstance(value, bool):
        raise TypeError(_about(name, f'a whole number was expected, not {value}'))
    try:
        value = index(value)
    except TypeError as error:
        if name is None:
            raise
        raise TypeError(_about(name, error)) from None
    if not -(2**63) <= value < 2**64:
        what = 'a whole number' if name is None else name
        raise OverflowError(f'{what} does not fit into 64 bits: {shown(value)}')
    return value


def plain_number(value, name=None):
    """Returns @value; for a tensor of one element or a numpy scalar, the Python number of the same kind
    with all of its bits. A dtype is no number, although Python treats it as an int."""
    if isinstance(value, DType):
        raise TypeError(_about(name, f'a number was expected, not the dtype {value}'))
    if isinstance(value, RawTensor):
        if value.requires_grad:
            text = 'a number was expected: a tensor that requires grad would lose its gradient'
            raise TypeError(_about(name, text))
        return value.item()
    return value.item() if hasattr(value, '__array_interface__') else value


def convert_double(value, name=None):
    """Converts to a real number; an integer that a double cannot represent is an error, never rounded."""
    if type(value) is float:
        return value
    value = plain_number(value, name)
    if isinstance(value, numbers.Integral):
        value = index(value)
        if abs(value) > 2**53 and not (abs(value) < 2**1023 and int(float(value)) == value):
            raise OverflowError(_about(name, f'{shown(value)} cannot be represented exactly as a float'))
        return value
    if is_complex_number(value) or not hasattr(value, '__float__') or isinstance(value, str):
        raise TypeError(_about(name, f'a number was expected, not {type(value).__name__}'))
    return float(value)


def convert_bool(value, name=None):
    """Accepts True or False; a dtype, a string or another number is an error. It names the function and the argument,
    which are found if @name is None."""
    if isinstance(value, bool) or type(value).__name__ in ('bool_', 'bool'):
        return bool(value)
    if type(value) is int and value in (0, 1):
        return bool(value)
    if name is None:
        from gi.overrides._gtorch_place import asked

        name = asked(value)
    raise TypeError(_about(name, f'True or False was expected, not {value!r}'))


def _is_one(value):
    """Tells whether it is a single integer. Arrays and tensors have an __index__ whatever they contain."""
    return hasattr(value, '__index__') and not getattr(value, 'ndim', 0)


def convert_ints(value, name=None):
    """Converts one, several or None to a list of integers."""
    if value is None:
        return ()
    if isinstance(value, (list, tuple)):
        return [convert_whole(v, name) for v in value]
    if _is_one(value):
        return (convert_whole(value, name),)
    if not hasattr(value, '__iter__'):
        raise TypeError(_about(name, f'whole numbers were expected, not {type(value).__name__}'))
    return [convert_whole(v, name) for v in value]


def of_integers(value):
    """Makes a tensor of integers; leaves another value as it is."""
    if not isinstance(value, (list, tuple)):
        return value
    numbers = list(convert_ints(value))
    return RawTensor.new_from_ints(numbers, [len(numbers)], GTorch.DType.INT64, None)


def convert_some_ints(value, name):
    """None, or whole numbers: C takes an empty list for one that is not given, which it is not."""
    found = convert_ints(value, name)
    if value is not None and not found:
        raise ValueError(f'{name} is an empty list: without it, or with None, all are meant')
    return found


def convert_items(value, name):
    """At least one whole number: C takes an empty list for the default, which it is not."""
    found = convert_sizes(value, name)
    if not found:
        raise ValueError(f'{name} must not be empty')
    return found


def convert_sizes(value, name=None):
    """Whole numbers from one or several: what there is no None for."""
    if value is None:
        raise TypeError(_about(name, 'whole numbers were expected, not None'))
    return convert_ints(value, name)


def convert_seed(value):
    """A seed of 64 bits; a negative one is that with the same bits, and of a fraction the whole part counts."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f'a seed must be finite, not {value}')
    if isinstance(value, (bool, float)):
        value = int(value)  # as in PyTorch, for a time or a flag
    if not isinstance(value, DType) and not -(2**63) <= index(value) < 2**64:
        raise OverflowError(f'a seed is from {-(2**63)} to {2**64 - 1}, not {shown(index(value))}')
    value = convert_whole(value)
    return value % 2**64


def convert_variadic(name, values, named, *rest):
    """Returns the sizes of f(2, 3), of f((2, 3)) or of those that are given by name, and further positional
    arguments after a list."""
    if named is not None:
        if values:
            raise TypeError(f'{name}() was given the sizes by position and by name')
        return convert_sizes(named, f'{name}()'), *rest
    if not values or _is_one(values[0]):
        return [convert_whole(v, f'{name}()') for v in values], *rest
    given = values[1:]
    if len(given) > len(rest):
        raise TypeError(f'{name}() takes the sizes as numbers or as one list')
    return convert_sizes(values[0], f'{name}()'), *given, *rest[len(given) :]


INFINITY = float('inf')


def is_number(value):
    """Tells whether it is a number for which the row has a scalar form."""
    if isinstance(value, DType):
        return False
    return isinstance(value, (int, float, complex)) or (
        isinstance(value, numbers.Number) or type(value).__name__ in ('bool_', 'bool')
    )


def is_complex_number(value):
    """Tells whether it has an imaginary part. Python treats real numbers as complex ones, too."""
    return isinstance(value, numbers.Complex) and not isinstance(value, numbers.Real)


def make_number(value, dtype, device=None):
    """Returns a zero-dimensional tensor."""
    if dtype == DType.INT64:
        return RawTensor.new_from_ints([value], [], dtype, device)
    if dtype == DType.BOOL:
        return RawTensor.new_from_bools([value], [], device)
    if dtype in (DType.COMPLEX64, DType.COMPLEX128):
        return RawTensor.new_from_doubles([value.real, value.imag], [], dtype, device)
    return RawTensor.new_from_doubles([value], [], dtype, device)


def number_tensor(value, like=None):
    """A number as a tensor that takes part in type promotion by its kind only."""
    device = like.device if like is not None else None
    wide = (like.get_dtype() if like is not None else GTorch.get_default_dtype()) in WIDE
    if isinstance(value, bool) or type(value).__name__ in ('bool_', 'bool'):
        return make_number(bool(value), DType.BOOL, device)
    if isinstance(value, numbers.Integral):
        return make_number(index(value), DType.INT64, device)
    if isinstance(value, numbers.Real):
        # in a narrower dtype, the number would be rounded before the computation
        return make_number(float(value), DType.FLOAT64 if wide else GTorch.get_default_dtype(), device)
    if isinstance(value, numbers.Complex):
        return make_number(complex(value), DType.COMPLEX128 if wide else DType.COMPLEX64, device)
    raise TypeError(f'a number was expected, not {type(value).__name__}')


def convert_integers(*values):
    """Returns the numbers as integers, if all are such; an infinite bound beside them is the end of the
    range."""
    found, any_whole = [], False
    for value in map(plain_number, values):
        if isinstance(value, numbers.Integral):
            value = index(value)
            if not -(2**63) <= value < 2**63:
                return None
            any_whole = True
        elif isinstance(value, float) and abs(value) == INFINITY:
            value = 2**63 - 1 if value > 0 else -(2**63)
        else:
            return None
        found.append(value)
    return found if any_whole else None


def convert_bounds(*values):
    """Returns the bounds as convert_integers() does; None if one is the integer that C takes for none."""
    whole = convert_integers(*values)
    return None if whole is not None and GTorch.NONE in whole else whole


def convert_number(value, like, name):
    """Returns (float, x), (int, x), or (None, tensor) for values without a form in C."""
    kind = type(value)
    if kind is float or kind is int:
        return kind, value
    if isinstance(value, bool) or not is_number(value):
        return None, convert_tensor(value, name, like)
    if isinstance(value, numbers.Integral):
        return int, index(value)
    if isinstance(value, numbers.Real):
        return float, float(value)
    return None, number_tensor(value, like)


def convert_tensor(value, name, like=None):
    """Converts a tensor or a number to a tensor."""
    if isinstance(value, RawTensor):
        return value
    if is_number(value):
        return number_tensor(value, like)
    raise TypeError(f'{name} must be a tensor or a number, not {type(value).__name__}')


def convert_array(value):
    """Converts an array of numpy or of another library to a tensor, or returns None."""
    if not hasattr(value, '__array_interface__'):
        return None
    from gi.overrides._gtorch_create import as_tensor

    return as_tensor(value)


def convert_optional(value, name):
    """Does the same, or returns None."""
    return None if value is None else convert_tensor(value, name)


def convert_tensors(values, name):
    """Converts an iterable to a list of tensors."""
    if isinstance(values, RawTensor):
        raise TypeError(f'{name} must be a list of tensors, not a tensor')
    values = listed(values, name)
    for i, value in enumerate(values):
        if not isinstance(value, RawTensor):
            function, colon, own = name.rpartition(': ')
            raise TypeError(f'{function}{colon}element {i} of {own} must be a tensor, not {type(value).__name__}')
    return values
