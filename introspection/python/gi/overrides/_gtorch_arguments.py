# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What operations take beside the arguments of their rows, by rules for all of them: further names of arguments, the
tensor of a function by name, results that are written into given tensors, and properties of new tensors."""

import re
import sys

from gi.overrides import _gtorch_ops as ops
from gi.overrides._gtorch_convert import (
    DType,
    GTorch,
    RawTensor,
    convert_bool,
    convert_device,
    convert_dtype,
    is_number,
    number_tensor,
)
from gi.overrides._gtorch_exceptions import NumberTooLargeError
from gi.overrides._gtorch_mixin import mixin

MODULE = 'gi.repository.GTorch'


class Layout:
    """How the elements of a tensor lie in memory: its layout, of which there is one, or the format of a copy."""

    def __init__(self, name):
        self._name = name

    def __repr__(self):
        return f'torch.{self._name}'

    def __reduce__(self):
        return self._name


strided = Layout('strided')
contiguous_format = Layout('contiguous_format')
preserve_format = Layout('preserve_format')
channels_last = Layout('channels_last')
channels_last_3d = Layout('channels_last_3d')
for _layout in (strided, contiguous_format, preserve_format, channels_last, channels_last_3d):
    _layout.__module__ = MODULE


def _rank(dtype):
    """Tensors can be converted to a kind of dtype of the same rank or a higher one, as PyTorch has it."""
    if dtype == DType.BOOL:
        return 0
    return 3 if dtype.is_complex else 2 if dtype.is_floating_point else 1


def overwrite(name, target, made):
    """Copies a result into a tensor that must be able to represent it."""
    if not isinstance(target, RawTensor) or not isinstance(made, RawTensor):
        kind = type(target if isinstance(made, RawTensor) else made).__name__
        raise TypeError(f'{name}(): out must be a tensor for each tensor of the result, not {kind}')
    if target.shape != made.shape:
        raise ValueError(
            f'{name}(): out has the shape {list(target.shape)} and the result {list(made.shape)}: '
            'a tensor is not resized'
        )
    if _rank(made.dtype) > _rank(target.dtype):
        raise TypeError(f'{name}(): a result of {made.dtype} cannot be written into a tensor of {target.dtype}')
    return target.copy_(made)


def _write_out(name, out, made):
    several = isinstance(made, tuple)
    targets, results = (tuple(out) if isinstance(out, (list, tuple)) else (out,)), made if several else (made,)
    if len(targets) != len(results):
        raise TypeError(f'{name}(): out has {len(targets)} tensors, and the result {len(results)}')
    for target, result in zip(targets, results):
        if isinstance(result, RawTensor) and result.requires_grad:
            raise RuntimeError(
                f'{name}(): a result that is written into out has no gradient: give tensors that do not require '
                'one, or call it under no_grad()'
            )
        if isinstance(target, RawTensor) and target.device != result.device:
            raise ValueError(f'{name}(): out is on {target.device}, and the result on {result.device}')
        overwrite(name, target, result)
    return type(made)(*targets) if hasattr(made, '_fields') else targets if several else out


def _like(name, like, given, options):
    """x.new_zeros() and zeros_like(x) on another device: the function that they are named by."""
    base = name.removeprefix('new_').removesuffix('_like')
    sized = name.startswith('new_')
    options['dtype'] = convert_dtype(options.get('dtype')) or like.dtype
    if sized:
        return FACTORIES[base](*given, **options)
    if base == 'randint':
        return FACTORIES[base](*given, size=like.shape, **options)
    return FACTORIES[base](like.shape, *given, **options)


BASES = ('arange', 'empty', 'empty_strided', 'full', 'ones', 'rand', 'randint', 'randn', 'zeros')


class _Factories(dict):
    """The functions of these names, each made when it is first used."""

    def __missing__(self, name):
        self[name] = made = getattr(sys.modules[MODULE], name)
        return made


FACTORIES = _Factories()


class Creation:
    """What a program says about a new tensor."""

    def __init__(self, name, options):
        self.name = name
        self.requires_grad = convert_bool(options.get('requires_grad', False))
        self.format = options.pop('memory_format', None)
        if convert_bool(options.get('pin_memory') or False):
            way_out = 't.pin_memory() gives a copy in pinned memory'
            raise NotImplementedError(f'{name}(): pin_memory=True is not supported: {way_out}')
        for flag in ('requires_grad', 'pin_memory'):  # messages look for them
            options.pop(flag, None)
        layout = options.pop('layout', None)
        if layout not in (None, strided):
            raise NotImplementedError(f'{name}(): layout={layout!r} is not supported: all tensors are strided')
        check_format(name, self.format)

    def finish(self, made):
        made = formatted(made, self.format)
        return made.requires_grad_() if self.requires_grad else made


OF_CREATION = ('layout', 'memory_format', 'pin_memory', 'requires_grad')


def check_format(name, value):
    if value not in (None, contiguous_format, preserve_format, channels_last, channels_last_3d):
        raise TypeError(f'{name}(): memory_format must be torch.contiguous_format, preserve_format, channels_last or '
                        f'channels_last_3d, not {value!r}')


def format_of(value):
    """The member of MemoryFormat; None for what says nothing, and keeps what there is."""
    if value in (None, preserve_format):
        return None
    members = GTorch.MemoryFormat
    return {channels_last: members.CHANNELS_LAST, channels_last_3d: members.CHANNELS_LAST_3D}.get(
        value, members.CONTIGUOUS)


def formatted(made, value):
    """The tensor in that order in memory."""
    wanted = format_of(value)
    return made if wanted is None else made.to_memory_format(wanted)


def _run_formatted(name, function, args, options):
    value = options.pop('memory_format', None)
    check_format(name, value)
    wanted = format_of(value)
    if wanted is None or not args:
        return function(*args, **options)
    if name == 'is_contiguous':
        return args[0].has_memory_format(wanted)
    if name == 'contiguous':
        return args[0].to_memory_format(wanted)
    return formatted(function(*args, **options), value)


def _rename(name, others, options):
    for other in others.keys() & options.keys():
        own = others[other]
        if own in options:
            raise TypeError(f'{name}() was given {own} twice, as {other} too')
        options[own] = options.pop(other)


def _create(name, function, args, options):
    creation = Creation(name, options)
    device = convert_device(options.pop('device')) if 'device' in options and name in RELATIVE else None
    if device is not None and device.resolve() != args[0].device:
        return creation.finish(_like(name, args[0], args[1:], {**options, 'device': device}))
    if name in WITHOUT_DTYPE and 'dtype' in options:
        dtype = convert_dtype(options.pop('dtype'))
        made = function(*args, **options)
        return creation.finish(made if dtype == DType.NONE else made.to_dtype(dtype))
    return creation.finish(function(*args, **options))


# Arguments of PyTorch's that have one value here.
LEGACY = {'reduce': (None, 'use reduction'), 'size_average': (None, 'use reduction')}
WEIGHT = {'weight': (None, 'multiply the losses of reduction=\'none\'')}
OUT_DTYPE = {'out_dtype': (None, 'the result has the dtype of the operands')}
REFUSED = {
    **{name: LEGACY for name in ops.LOSSES},
    **{name: {**LEGACY, **WEIGHT} for name in ('huber_loss', 'l1_loss', 'mse_loss')},
    **{name: OUT_DTYPE for name in ('addmm', 'baddbmm', 'bmm', 'mm')},
    'gather': {'sparse_grad': (False, 'gradients are dense')},
}
RELATIVE = {name for name in ops.CREATORS if name.endswith('_like') or name.startswith('new_')}
WITHOUT_DTYPE = ('tril_indices', 'triu_indices')
STACKED = ('log_softmax', 'softmax', 'softmin')
CONVERSIONS = (
    'bfloat16', 'bool', 'byte', 'cdouble', 'cfloat', 'char', 'double', 'float', 'half', 'int', 'long', 'short',
)  # fmt: skip
FORMATTED = ('clone', 'contiguous', 'cpu', 'cuda', 'is_contiguous', 'to', *CONVERSIONS)


def _run(_name, function, args, options):
    return function(*args, **options)


def lenient(name, function):
    """The function of an operation, with the arguments that the rules add."""
    of = name.removesuffix('_')
    others = {**ops.OTHERS.get(f'{of}_dim', {}), **ops.OTHERS.get(of, {}), **getattr(function, 'others', {})}
    refused = REFUSED.get(of, {})
    creates, may_have_out = name in (*ops.CREATORS, 'normal', 'tensor'), not name.endswith('_')

    def call(*args, **options):
        if not options:
            try:
                return function(*args)
            except OverflowError as error:
                raise _named_overflow(name, error) from None
        out = options.pop('out', None) if may_have_out else None
        if others:
            _rename(name, others, options)
        for key in refused.keys() & options.keys():
            refuse(name, key, options.pop(key), *refused[key])
        if creates:
            made = _create(name, function, args, options)
        else:
            if name in STACKED:
                options.pop('_stacklevel', None)
            run = _run_formatted if name in FORMATTED else _run
            made = run(name, function, args, options)
        return made if out is None else _write_out(name, out, made)

    call = _sized(name, call) if name in SIZED else call
    call.__name__ = call.__qualname__ = name
    call.__module__ = MODULE
    call.__doc__ = function.__doc__
    call.__wrapped__ = _with_arguments(name, function)
    call.form = function
    return call


CO_VARKEYWORDS = 8


def _with_arguments(name, function):
    """The function whose arguments inspect shows: that of the row for one that passes on what it is given."""
    code = getattr(function, '__code__', None)
    if code is None or not code.co_flags & CO_VARKEYWORDS:
        return function
    if vars(function).keys() & {'__wrapped__', '__text_signature__'}:
        return function
    return ops.METHODS.get(name) or ops.FUNCTIONS.get(name) or function


SIZED = ('empty', 'ones', 'rand', 'randn', 'zeros')


def _sized(name, function):
    """A function that takes no size for none at all, as in PyTorch. An empty size, (), is that of one element."""

    def call(*args, **options):
        if not args and not {'size', 'shape'} & options.keys():
            raise TypeError(f'{name}() is missing its size: () is that of a single number')
        return function(*args, **options)

    return call


def _named_overflow(name, error):
    """The error of a number that is too large, which names the function, and the number by its first digits."""
    text = re.sub(r'\d{60,}', lambda found: f'{found[0][:20]}… ({len(found[0])} digits)', str(error))
    return NumberTooLargeError(text if '(): ' in text else f'{name}(): {text}')


def _first(name, options):
    """Takes the first argument, a tensor, out of those by name."""
    others = ops.OTHERS.get(name, {})
    for other in ('self', *(key for key, own in others.items() if own == 'self')):
        if other in options:
            return options.pop(other)
    raise TypeError(f'{name}() is missing its first argument, input')


def function_of(name, method):
    """A method as a function: its tensor may be given by name, and be a number where a tensor follows."""
    takes_lists = name.startswith('atleast_')

    def call(*args, **options):
        if not args:
            args = (_first(name, options),)
        first = args[0]
        if not isinstance(first, RawTensor) and not (takes_lists and isinstance(first, (list, tuple))):
            rest = (*args[1:], *options.values())
            like = next((one for one in rest if isinstance(one, RawTensor)), None)
            if name not in ops.NUMBER_FIRST or like is None or not is_number(first):
                raise TypeError(f'{name}(): input must be a tensor, not {type(first).__name__}')
            args = (number_tensor(first, like), *args[1:])
        return method(*args, **options)

    call.__name__ = call.__qualname__ = name
    call.__module__ = MODULE
    call.__doc__ = method.__doc__
    return described(call, method)


def described(call, method=None):
    """@call as a function of the namespace, of which inspect gets to know the arguments; for a tensor as the first of
    them, @method is called."""
    if mixin is not None:
        return mixin.Function(method or call, call, call.__name__)
    return _Function(method or call, call)


class _Function:
    """Does in Python what the class of the accelerator does."""

    def __init__(self, method, otherwise):
        self._method, self._otherwise = method, otherwise
        self.__name__, self.__doc__ = otherwise.__name__, otherwise.__doc__
        self.__qualname__ = getattr(otherwise, '__qualname__', self.__name__)
        self.__module__ = MODULE

    def __call__(self, /, *args, **options):
        function = self._method if args and isinstance(args[0], RawTensor) else self._otherwise
        return function(*args, **options)

    def __get__(self, owner, cls=None):
        return self

    def __repr__(self):
        return f'<function GTorch.{self.__name__}>'

    def __reduce__(self):
        return self.__name__

    @property
    def __signature__(self):
        from gi.overrides._gtorch_described import signature_of

        return signature_of(self.__name__, self._method, self._otherwise)

    @property
    def __text_signature__(self):
        return str(self.__signature__)


def refuse(name, argument, value, default, why):
    """Raises for an argument whose only value is its default."""
    if value is not default and value != default:
        raise NotImplementedError(f'{name}(): {argument}={value!r} is not supported: {why}')
