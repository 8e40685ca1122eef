# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Operations with the arguments that PyTorch's have beside those of the rows. The C accelerator handles the usual
forms of methods, and calls these for the others."""

from gi.repository import GLib

from gi.overrides import _gtorch_ops as ops
from gi.overrides._gtorch_arguments import FACTORIES, overwrite
from gi.overrides._gtorch_convert import (
    DType,
    RawTensor,
    convert_bool,
    convert_ints,
    convert_sizes,
    convert_whole,
    is_number,
    of_integers,
)
from gi.overrides._gtorch_overloads import nuclear_norm

METHODS, FUNCTIONS = {}, {}
MANTISSAS = {DType.FLOAT32: 24, DType.FLOAT64: 53, DType.FLOAT16: 11, DType.BFLOAT16: 8}
BITS = {DType.INT8: 7, DType.UINT8: 8, DType.INT16: 15, DType.INT32: 31, DType.INT64: 63, DType.BOOL: 1}


def _form(table, name, of=None):
    """Registers a form of the operation @of, whose documentation it has."""

    def register(function):
        function.__name__ = function.__qualname__ = name
        function.__doc__ = function.__doc__ or (ops.METHODS.get(of or name) or ops.FUNCTIONS[of or name]).__doc__
        table[name] = function
        return function

    return register


def _is_whole(value):
    if isinstance(value, RawTensor):
        return not (value.is_floating_point() or value.is_complex())
    return is_number(value) and not isinstance(value, (float, complex))


# --- arithmetic ---


def _rounding(name, of):
    plain, floor = ops.METHODS[of], ops.METHODS['floor_divide']

    def divide(self, other, *, rounding_mode=None):
        if rounding_mode is None:
            return plain(self, other)
        if rounding_mode == 'floor':
            return floor(self, other)
        if rounding_mode != 'trunc':
            raise ValueError(f"{name}(): rounding_mode must be None, 'floor' or 'trunc', not {rounding_mode!r}")
        if _is_whole(self) and _is_whole(other):
            return floor(self - self.fmod(other), other)
        return plain(self, other).trunc()

    return divide


for _name in ('div', 'true_divide'):
    _form(METHODS, _name)(_rounding(_name, _name))
_divide_in_place = ops.METHODS['div_']


@_form(METHODS, 'div_', 'div')
def _div_(self, other, *, rounding_mode=None):
    if rounding_mode is None:
        return _divide_in_place(self, other)
    return overwrite('div_', self, METHODS['div'](self, other, rounding_mode=rounding_mode))


_round, _round_ = ops.METHODS['round'], ops.METHODS['round_']


@_form(METHODS, 'round')
def round_to(self, *, decimals=0):
    places = convert_whole(decimals)
    if places == 0:
        return _round(self)
    if not self.is_floating_point():
        raise TypeError(f'round(): decimals={places} is for floating-point numbers, not for {self.dtype}')
    factor = 10.0 ** abs(places)
    return _round(self * factor) / factor if places > 0 else _round(self / factor) * factor


@_form(METHODS, 'round_', 'round')
def round_to_(self, *, decimals=0):
    if convert_whole(decimals) == 0:
        return _round_(self)
    return overwrite('round_', self, round_to(self, decimals=decimals))


def _spread(name):
    """var, std and those with the mean: unbiased stands for a correction of 1 or 0."""
    plain = ops.METHODS[name]

    def call(self, *given, **options):
        if given and isinstance(given[0], bool):
            if 'unbiased' in options or len(given) > 1:
                raise TypeError(f'{name}(): {given[0]} alone is unbiased, and stands without a dim')
            options['unbiased'], given = given[0], ()
        if 'unbiased' in options:
            if len(given) > 1 or 'correction' in options:
                raise TypeError(f'{name}() takes unbiased or a correction, not both')
            options['correction'] = float(convert_bool(options.pop('unbiased')))
        return plain(self, *given, **options)

    return _form(METHODS, name)(call)


for _name in ('std', 'std_mean', 'var', 'var_mean'):
    _spread(_name)


@_form(METHODS, 'nanmean')
def nanmean(self, dim=(), keepdim=False, *, dtype=None):
    return ops.METHODS['nanmean'](self if dtype is None else self.to(dtype), dim, keepdim)


@_form(METHODS, 'norm')
def norm(self, p='fro', dim=None, keepdim=False, dtype=None):
    if p == 'nuc':
        return nuclear_norm('norm()', self, dim, keepdim, dtype)
    if isinstance(p, str) and p != 'fro':
        raise ValueError(f"norm(): {p!r} is no norm: it is 'fro', 'nuc' or a number")
    order = 2.0 if p is None or p == 'fro' else p
    return ops.METHODS['norm'](self if dtype is None else self.to(dtype), order, dim, keepdim)


@_form(METHODS, 'gelu')
def gelu(self, approximate='none', *, tanh_approximation=None):
    if tanh_approximation is not None:
        approximate = tanh_approximation
    if approximate not in ('none', 'tanh') and not isinstance(approximate, bool):
        raise ValueError(f"gelu(): approximate must be 'none' or 'tanh', not {approximate!r}")
    return ops.METHODS['gelu'](self, approximate is True or approximate == 'tanh')


# --- places of elements ---


@_form(METHODS, 'nonzero')
def nonzero(self, *, as_tuple=False):
    if not convert_bool(as_tuple):
        return ops.METHODS['nonzero'](self)
    return tuple(ops.METHODS['nonzero'](self if self.ndim else self.unsqueeze(0)).unbind(1))


@_form(FUNCTIONS, 'where')
def where(condition, input=None, other=None):
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    if input is None or other is None:
        raise TypeError('where() takes two tensors or numbers to choose from, or the condition alone')
    if isinstance(input, RawTensor):
        other = _represented('other', other, input)
    else:
        input = _represented('input', input, other)
    return ops.FUNCTIONS['where'](condition, input, other)


def _represented(name, number, tensor):
    """An integer that is chosen beside the elements of a tensor of integers becomes one of them, as in full()."""
    if type(number) is not int or not isinstance(tensor, RawTensor) or BITS.get(tensor.dtype, 1) < 2:
        return number
    try:
        return FACTORIES['full']([], number, dtype=tensor.dtype, device=tensor.device)
    except ValueError:
        raise ValueError(f'where: {name} is {number}, which is no {tensor.dtype.get_name()}') from None


@_form(METHODS, 'where')
def _where_of(self, condition, other):
    return where(condition, self, other)


def _scatter(name):
    tail = '_' if name.endswith('_') else ''
    plain, add, reduced = ops.METHODS[name], ops.METHODS[f'scatter_add{tail}'], ops.METHODS['scatter_reduce']

    def call(self, dim, index, src=None, *, value=None, reduce=None):
        if (src is None) == (value is None):
            raise TypeError(f'{name}() takes either src or value')
        src = value if src is None else src
        if reduce is None:
            return plain(self, dim, index, src)
        if reduce not in ('add', 'multiply'):
            raise ValueError(f"{name}(): reduce must be 'add' or 'multiply', not {reduce!r}")
        if not isinstance(src, RawTensor):
            src = FACTORIES['full'](index.shape, src, dtype=self.dtype, device=self.device)
        if reduce == 'add':
            return add(self, dim, index, src)
        made = reduced(self, dim, index, src, 'prod')
        return overwrite(name, self, made) if tail else made

    return _form(METHODS, name)(call)


for _name in ('scatter', 'scatter_'):
    _scatter(_name)


@_form(METHODS, 'take_along_dim')
def take_along_dim(self, indices, dim=None):
    if dim is None:
        return ops.METHODS['take_along_dim'](self.reshape(-1), indices.reshape(-1), 0)
    return ops.METHODS['take_along_dim'](self, indices, dim)


@_form(METHODS, 'repeat_interleave')
def repeat_interleave(self, repeats=None, dim=None, *, output_size=None):
    """Repeats elements along dim: each the same number of times, or as a tensor of integers says; of one tensor
    alone, which has the numbers, the positions of the elements."""
    if repeats is None:
        if dim is not None:
            raise TypeError('repeat_interleave() of the numbers alone takes no dim')
        self, repeats = FACTORIES['arange'](len(self), device=self.device), self
    name = 'repeat_interleave_tensor' if isinstance(repeats, RawTensor) else 'repeat_interleave'
    made = ops.METHODS[name](self, repeats, None if dim is None else [dim])
    if output_size is not None and made.size(dim or 0) != convert_whole(output_size):
        raise ValueError(f'repeat_interleave(): output_size is {output_size}, and the result has {made.size(dim or 0)}')
    return made


def _right(name, right, side):
    if side not in (None, 'left', 'right'):
        raise ValueError(f"{name}(): side must be 'left' or 'right', not {side!r}")
    right = convert_bool(right)
    if right and side == 'left':
        raise ValueError(f"{name}(): right=True and side='left' exclude each other")
    return right or side == 'right'


@_form(FUNCTIONS, 'searchsorted')
def searchsorted(sorted_sequence, input, right=False, *, out_int32=False, side=None, sorter=None):
    right = _right('searchsorted', right, side)
    return ops.FUNCTIONS['searchsorted'](sorted_sequence, input, right, out_int32, sorter)


@_form(METHODS, 'unique')
def unique(self, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The elements that differ, in order, or the slices along dim; with them where each element is among those, and
    how often there is each."""
    convert_bool(sorted)
    found = ops.METHODS['unique'](self) if dim is None else ops.METHODS['unique_dim'](self, dim)
    flags = (True, convert_bool(return_inverse), convert_bool(return_counts))
    wanted = tuple(one for one, flag in zip(found, flags) if flag)
    return wanted if len(wanted) > 1 else wanted[0]


# --- random numbers ---


def _bounds(name, given, options, least=1):
    """The bounds (to), or (from, to), of integers."""
    low, high = options.pop('low', None), options.pop('high', None)
    given = list(given)
    if high is None and given:
        high = given.pop() if len(given) < 2 and low is None else given.pop(1 if low is None else 0)
    if low is None and given:
        low = given.pop(0)
    if given or (high is None and (low is not None or least)):
        raise TypeError(f'{name}() takes an upper bound, or a lower one and an upper one')
    return 0 if low is None else low, high


@_form(METHODS, 'random_', 'random')
def random_(self, *given, generator=None, **options):
    """Fills it with integers from 0, or the first of two numbers, up to before the last one; without numbers, with
    all that the dtype represents exactly from 0."""
    unknown = [key for key in options if key not in ('low', 'high')]
    if unknown:
        raise TypeError(f'random_() got an unexpected keyword argument {unknown[0]!r}')
    low, high = _bounds('random_', given, options, 0)
    if high is None:
        high = 2 ** MANTISSAS[self.dtype] + 1 if self.dtype in MANTISSAS else min(2 ** BITS[self.dtype], 2**63 - 1)
    return ops.METHODS['random_'](self, low, high, generator)


@_form(METHODS, 'randint_like')
def randint_like(self, *given, dtype=None, generator=None, **options):
    unknown = [key for key in options if key not in ('low', 'high')]
    if unknown:
        raise TypeError(f'randint_like() got an unexpected keyword argument {unknown[0]!r}')
    low, high = _bounds('randint_like', given, options)
    return ops.METHODS['randint_like'](self, low, high, dtype, generator)


@_form(METHODS, 'bernoulli')
def bernoulli(self, p=None, *, generator=None):
    """Draws 1 with the probabilities in the tensor, or with one probability that is given beside it, and 0 else."""
    if p is None:
        return ops.METHODS['bernoulli'](self, generator)
    return ops.METHODS['bernoulli_p'](self, p, generator)


@_form(METHODS, 'bernoulli_', 'bernoulli')
def bernoulli_(self, p=0.5, *, generator=None):
    """Fills it with 1 with a probability, or with those in a tensor, and 0 else."""
    if isinstance(p, RawTensor):
        return self.copy_(ops.METHODS['bernoulli'](p.expand(self.shape), generator))
    return self.copy_(ops.METHODS['bernoulli_p'](self.detach(), p, generator))


# --- products and distances ---


@_form(FUNCTIONS, 'tensordot')
def tensordot(input, other, dims=2, dims_other=None, *, dims_self=None):
    """Sums products over pairs of dimensions: the last ones of the first tensor and the first ones of the other, whose
    number is given, or those in two lists."""
    a, b = input, other
    if dims_other is not None:
        first, second = dims if dims_self is None else dims_self, dims_other
    elif is_number(dims):
        n = convert_whole(dims)
        if not 0 <= n <= min(a.ndim, b.ndim):
            raise ValueError(f'tensordot(): {n} dimensions of tensors that have {a.ndim} and {b.ndim}')
        first, second = list(range(a.ndim - n, a.ndim)), list(range(n))
    else:
        pair = dims.tolist() if isinstance(dims, RawTensor) else dims
        if len(pair) != 2:
            raise ValueError(f'tensordot(): dims is a number or two lists of dimensions, not {dims!r}')
        first, second = pair
    return ops.FUNCTIONS['tensordot'](a, b, convert_sizes(first), convert_sizes(second))


tensordot.others = {'b': 'other'}


@_form(FUNCTIONS, 'chain_matmul')
def chain_matmul(*matrices):
    single = len(matrices) == 1 and isinstance(matrices[0], (list, tuple))
    return ops.FUNCTIONS['chain_matmul'](list(matrices[0] if single else matrices))


@_form(FUNCTIONS, 'lstm')
def lstm(input, hx, *given, **options):
    # PyTorch has the hidden state and the cell in one argument
    states = hx if isinstance(hx, (tuple, list)) else (hx,)
    return ops.FUNCTIONS['lstm'](input, *states, *given, **options)


_linear = ops.FUNCTIONS['linear']


@_form(FUNCTIONS, 'linear')
def linear(input, weight, bias=None):
    try:
        return _linear(input, weight, bias)
    except GLib.Error:
        if not isinstance(weight, RawTensor) or weight.ndim != 1:
            raise
    # a row of weights: products without a dimension of their own
    made = ops.METHODS['matmul'](input, weight)
    return made if bias is None else made + bias


# --- layers as functions ---

# The activations and dropouts that may work in place, and how many numbers PyTorch takes before that flag.
IN_PLACE = {
    'alpha_dropout': 2,
    'celu': 1,
    'dropout': 2,
    'dropout1d': 2,
    'dropout2d': 2,
    'dropout3d': 2,
    'elu': 1,
    'feature_alpha_dropout': 2,
    'hardsigmoid': 0,
    'hardswish': 0,
    'hardtanh': 2,
    'leaky_relu': 1,
    'mish': 0,
    'relu': 0,
    'relu6': 0,
    'rrelu': 3,
    'selu': 0,
    'silu': 0,
    'threshold': 2,
}


def _may_be_in_place(name, count):
    plain, within = ops.METHODS[name], ops.METHODS.get(f'{name}_')

    def call(self, *given, inplace=False, **options):
        if len(given) == count + 1 and isinstance(given[-1], bool):
            given, inplace = given[:-1], given[-1]
        if not convert_bool(inplace):
            return plain(self, *given, **options)
        if within is not None:
            return within(self, *given, **options)
        # The gradient needs what the tensor has been before.
        return self.copy_(plain(self.clone() if self.requires_grad else self, *given, **options))

    return _form(METHODS, name)(call)


for _name, _count in IN_PLACE.items():
    _may_be_in_place(_name, _count)


def _ordered(name, plain):
    def hardtanh(self, min_val=-1.0, max_val=1.0, *given, **options):
        if min_val > max_val:
            raise ValueError(f'{name}(): min_val is {min_val} and max_val {max_val}: it must not be greater')
        return plain(self, min_val, max_val, *given, **options)

    return _form(METHODS, name, 'hardtanh')(hardtanh)


_ordered('hardtanh', METHODS['hardtanh'])
_ordered('hardtanh_', ops.METHODS['hardtanh_'])


def _each(value, n):
    values = list(convert_ints(value))
    return values * n if len(values) == 1 else values


def _convolution(name, n):
    plain = ops.FUNCTIONS[name]

    def convolve(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        if not isinstance(padding, str):
            return plain(input, weight, bias, stride, padding, dilation, groups)
        if padding not in ('same', 'valid'):
            raise ValueError(f"{name}(): padding must be whole numbers, 'same' or 'valid', not {padding!r}")
        if padding == 'valid' or weight.ndim != n + 2:
            return plain(input, weight, bias, stride, 0, dilation, groups)
        if any(step != 1 for step in convert_ints(stride)):
            raise ValueError(f"{name}(): padding='same' needs a stride of 1, not {stride!r}")
        total = [gap * (size - 1) for gap, size in zip(_each(dilation, n), weight.shape[2:])]
        made = plain(input, weight, bias, 1, [size - size // 2 for size in total], dilation, groups)
        # For an even kernel, symmetric padding adds one zero too many at the beginning.
        for dim in (i - n for i in range(n) if total[i] % 2):
            made = made.narrow(dim, 1, made.size(dim) - 1)
        return made

    return _form(FUNCTIONS, name)(convolve)


for _n in (1, 2, 3):
    _convolution(f'conv{_n}d', _n)


def _max_pooling(name):
    def pool(self, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        """The greatest elements in windows, and with return_indices their places too."""
        called = f'{name}_with_indices' if convert_bool(return_indices) else name
        made = ops.METHODS[called](self, kernel_size, stride, padding, dilation, ceil_mode)
        return tuple(made) if return_indices else made

    return _form(METHODS, name)(pool)


def _own_sizes(self, output_size, n):
    """The size of an output, where None stands for a size of the input."""
    own = list(self.shape[-n:])
    if n > 1 and isinstance(output_size, (list, tuple)) and None in output_size and len(output_size) == n:
        return [kept if size is None else size for kept, size in zip(own, output_size)]
    return output_size


def _adaptive_mean_pooling(name, n):
    def pool(self, output_size):
        """The means of windows that make an output of that size, where None keeps a size of the input."""
        return ops.METHODS[name](self, _own_sizes(self, output_size, n))

    return _form(METHODS, name)(pool)


def _adaptive_max_pooling(name, n):
    def pool(self, output_size, return_indices=False):
        """The greatest elements in windows that make an output of that size, where None keeps a size of the input;
        with return_indices their places too."""
        called = f'{name}_with_indices' if convert_bool(return_indices) else name
        made = ops.METHODS[called](self, _own_sizes(self, output_size, n))
        return tuple(made) if return_indices else made

    return _form(METHODS, name)(pool)


def adaptive_max_pool1d(input, output_size):
    """The greatest elements in windows that make an output of that size, and their places."""
    return METHODS['adaptive_max_pool1d'](input, output_size, True)


def _fractional_max_pooling(name, n):
    def pool(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        """The greatest elements in windows at places that are drawn, and with return_indices their places too."""
        if isinstance(output_ratio, (list, tuple)):
            if output_size is not None or len(output_ratio) != n:
                raise ValueError(f'{name}(): either output_size or {n} numbers as output_ratio must be given')
            output_size = [int(size * ratio) for size, ratio in zip(input.shape[-n:], output_ratio)]
            output_ratio = None
        called = f'{name}_with_indices' if convert_bool(return_indices) else name
        options = {} if output_size is None else {'output_size': output_size}
        made = ops.FUNCTIONS[called](input, kernel_size, output_ratio=output_ratio, random_samples=_random_samples,
                                     **options)
        return tuple(made) if return_indices else made

    return _form(FUNCTIONS, name)(pool)


for _n in (2, 3):
    _fractional_max_pooling(f'fractional_max_pool{_n}d', _n)
for _n in (1, 2, 3):
    _max_pooling(f'max_pool{_n}d')
    _adaptive_mean_pooling(f'adaptive_avg_pool{_n}d', _n)
    _adaptive_max_pooling(f'adaptive_max_pool{_n}d', _n)


# --- resampling ---


def _factors(name, scale_factor, n):
    """The factors that the operation takes: one for all dimensions, or one for each of the last three."""
    if not isinstance(scale_factor, (list, tuple)):
        return {'scale_factor': scale_factor}
    factors = list(scale_factor)
    if len(factors) == 1:
        return {'scale_factor': factors[0]}
    if len(factors) != n:
        raise ValueError(f'{name}(): scale_factor must be one number or {n}, not {scale_factor!r}')
    return dict(zip(('scale_factor', 'scale_height', 'scale_width')[3 - n :], factors))


def _if_given(value):
    """True or False; False for None."""
    return value is not None and convert_bool(value)


def _interpolating(plain):
    def interpolate(input, size=None, scale_factor=None, mode='nearest', align_corners=None,
                    recompute_scale_factor=None, antialias=False):
        """Images of another size; scale_factor may have one number for each dimension."""
        if align_corners is not None and mode in ('nearest', 'nearest-exact', 'area'):
            raise ValueError(f'interpolate(): align_corners is not for the mode {mode!r}')
        return plain(input, size=size, mode=mode, align_corners=_if_given(align_corners),
                     recompute_scale_factor=_if_given(recompute_scale_factor), antialias=antialias,
                     **_factors('interpolate', scale_factor, input.ndim - 2))

    return _form(FUNCTIONS, 'interpolate')(interpolate)


_interpolate = _interpolating(ops.FUNCTIONS['interpolate'])


@_form(FUNCTIONS, 'upsample_nearest')
def upsample_nearest(input, size=None, scale_factor=None):
    """interpolate() by the nearest elements."""
    return _interpolate(input, size, scale_factor)


@_form(FUNCTIONS, 'upsample_bilinear')
def upsample_bilinear(input, size=None, scale_factor=None):
    """interpolate() in two dimensions with aligned corners."""
    return _interpolate(input, size, scale_factor, 'bilinear', True)


@_form(FUNCTIONS, 'grid_sample')
def grid_sample(input, grid, mode='bilinear', padding_mode='zeros', align_corners=None):
    """Samples of images at the positions of a grid."""
    return ops.FUNCTIONS['grid_sample'](input, grid, mode, padding_mode, _if_given(align_corners))


@_form(FUNCTIONS, 'affine_grid')
def affine_grid(theta, size, align_corners=None):
    """The positions of an affine map for grid_sample()."""
    return ops.FUNCTIONS['affine_grid'](theta, size, _if_given(align_corners))


# --- losses ---


@_form(FUNCTIONS, 'ctc_loss')
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction='mean', zero_infinity=False):
    """The negative log likelihood of sequences of labels; the lengths are tensors or lists of integers."""
    lengths = (of_integers(one) for one in (input_lengths, target_lengths))
    return ops.FUNCTIONS['ctc_loss'](log_probs, targets, *lengths, blank, reduction, zero_infinity)
