# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Functions of PyTorch's namespace that are made of other operations, among them older names."""

import builtins
import math
import mmap
import os

from gi.overrides._gtorch_convert import DType, GTorch, RawTensor, convert_bool, convert_dtype, convert_whole, is_number


def _namespace():
    from gi.repository import GTorch as found

    return found


def _tensor(name, key, value):
    if not isinstance(value, RawTensor):
        raise TypeError(f'{name}(): {key} must be a tensor, not {type(value).__name__}')
    return value


# --- facts ---


def get_device(input):
    """The number of the GPU of a tensor, -1 for the CPU."""
    return _tensor('get_device', 'input', input).get_device()


def is_conj(input):
    """False: conj() computes its result at once."""
    _tensor('is_conj', 'input', input)
    return False


def is_neg(input):
    """False: no tensor is a negative view of another."""
    _tensor('is_neg', 'input', input)
    return False


def is_inference(input):
    """Tells whether the tensor was made in inference_mode(), or is a view of one that was."""
    return _tensor('is_inference', 'input', input).is_inference()


def is_same_size(input, other):
    """Tells whether the shapes are the same."""
    return _tensor('is_same_size', 'input', input).shape == _tensor('is_same_size', 'other', other).shape


def is_signed(input):
    """Tells whether the dtype has negative numbers."""
    return _tensor('is_signed', 'input', input).dtype.is_signed


# --- copies, and parts ---


def detach(input):
    """The same elements without a history."""
    return _tensor('detach', 'input', input).detach()


def detach_copy(input):
    """A copy of the elements without a history."""
    return _tensor('detach_copy', 'input', input).detach().clone()


def fill(input, value):
    """A tensor like another one, all of whose elements are one number, or that of a tensor without dimensions."""
    return _tensor('fill', 'input', input).clone().fill_(value)


def t(input):
    """The transposed matrix; a tensor of less than two dimensions as it is."""
    return _tensor('t', 'input', input).t()


def view_as_complex_copy(input):
    """A copy of pairs of real numbers as complex ones."""
    return _namespace().view_as_complex(_tensor('view_as_complex_copy', 'input', input)).clone()


def view_as_real_copy(input):
    """A copy of complex numbers as pairs of real ones."""
    return _namespace().view_as_real(_tensor('view_as_real_copy', 'input', input)).clone()


def from_file(filename, shared=False, size=0, *, dtype=None, device=None, pin_memory=False):
    """A tensor of the first elements in a file, whose memory is the file's. If it is shared, writing to it changes the
    file, which is made, or made longer, where it is too short."""
    if device is not None and _namespace().device(device).type != 'cpu':
        raise ValueError(f'from_file(): device is {device}: a file is the memory of the CPU')
    if convert_bool(pin_memory):
        raise NotImplementedError('from_file(): pin_memory is not supported: the memory is that of the file')
    dtype = GTorch.get_default_dtype() if dtype is None else convert_dtype(dtype)
    shared, count = convert_bool(shared), convert_whole(size)
    if count < 0:
        raise ValueError(f'from_file(): size is {count}, and may not be negative')
    if count == 0:
        return _namespace().empty(0, dtype=dtype)
    n_bytes = count * DType.get_size(dtype)
    flags = os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY
    fd = os.open(filename, flags | getattr(os, 'O_CLOEXEC', 0), 0o666)
    try:
        there = os.fstat(fd).st_size
        if there < n_bytes and not shared:
            text = f'{filename!r} has {there} bytes, and {count} elements need {n_bytes}'
            raise RuntimeError(f'from_file(): {text}')
        if there < n_bytes:
            os.ftruncate(fd, n_bytes)
        memory = mmap.mmap(fd, n_bytes, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)
    finally:
        os.close(fd)
    return _namespace().frombuffer(memory, dtype=dtype)


def range(start=0, end=None, step=1, *, dtype=None, device=None, requires_grad=False):  # noqa: A001: its name there
    """The numbers from start to end, which is one of them, by steps. Python's and arange() leave the end out."""
    if end is None:
        raise TypeError('range() needs an end')
    if step == 0 or (end - start) * step < 0:
        raise RuntimeError(f'range(): steps of {step} do not lead from {start} to {end}')
    torch = _namespace()
    dtype = torch.get_default_dtype() if dtype is None else convert_dtype(dtype)
    count = math.floor((end - start) / step) + 1
    numbers = torch.arange(count, dtype=DType.FLOAT64, device=device) * step + start
    return numbers.to(dtype).requires_grad_(convert_bool(requires_grad))


# --- control flow ---


def _is_true(name, pred):
    if isinstance(pred, RawTensor) and pred.numel() != 1:
        raise RuntimeError(f'{name}(): pred has shape {list(pred.shape)}, and must have one element')
    return bool(pred)


def cond(pred, true_fn, false_fn, operands=()):
    """Calls one of two functions with the operands. The host reads the predicate: in the capture of a graph,
    CUDAGraph's branches do without."""
    for key, function in (('true_fn', true_fn), ('false_fn', false_fn)):
        if not callable(function):
            raise TypeError(f'cond(): {key}: {function!r} cannot be called')
    return (true_fn if _is_true('cond', pred) else false_fn)(*operands)


def while_loop(cond_fn, body_fn, carried_inputs):
    """Calls body_fn with what it gave before, at first with the inputs, as long as cond_fn gives true of that."""
    for key, function in (('cond_fn', cond_fn), ('body_fn', body_fn)):
        if not callable(function):
            raise TypeError(f'while_loop(): {key}: {function!r} cannot be called')
    carried = tuple(carried_inputs)
    while _is_true('while_loop', cond_fn(*carried)):
        given = body_fn(*carried)
        given = (given,) if isinstance(given, RawTensor) else tuple(given)
        if len(given) != len(carried):
            raise RuntimeError(f'while_loop(): body_fn gave {len(given)} values for {len(carried)}')
        carried = given
    return carried


# --- layers ---


def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """A convolution of one to three dimensions, or with transposed its transpose."""
    n = _tensor('convolution', 'weight', weight).ndim - 2
    if not 1 <= n <= 3:
        raise RuntimeError(f'convolution(): weight has shape {list(weight.shape)}, and must have 3 to 5 dimensions')
    torch = _namespace()
    if convert_bool(transposed):
        transpose = getattr(torch, f'conv_transpose{n}d')
        return transpose(input, weight, bias, stride, padding, output_padding, groups, dilation)
    if any(output_padding if isinstance(output_padding, (list, tuple)) else [output_padding]):
        raise RuntimeError('convolution(): output_padding is for transposed convolutions')
    return getattr(torch, f'conv{n}d')(input, weight, bias, stride, padding, dilation, groups)


def conv_tbc(input, weight, bias, pad=0):
    """A convolution of sequences [time, batch, channels] with a weight [width, channels, channels of the output]."""
    for key, value in (('input', input), ('weight', weight)):
        if _tensor('conv_tbc', key, value).ndim != 3:
            raise RuntimeError(f'conv_tbc(): {key} has shape {list(value.shape)}, and must have 3 dimensions')
    made = _namespace().conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return made.permute(2, 0, 1)


def affine_grid_generator(theta, size, align_corners):
    """The grid of an affine map: see nn.functional.affine_grid()."""
    return _namespace().nn.functional.affine_grid(theta, size, align_corners)


INTERPOLATIONS = ('bilinear', 'nearest', 'bicubic')
PADDINGS = ('zeros', 'border', 'reflection')


def grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners):
    """Samples an image at the points of a grid, with numbers for the modes: see nn.functional.grid_sample()."""
    modes = []
    for key, value, names in (('interpolation_mode', interpolation_mode, INTERPOLATIONS),
                              ('padding_mode', padding_mode, PADDINGS)):
        if not 0 <= convert_whole(value) < len(names):
            raise ValueError(f'grid_sampler(): {key} is {value}, and must be from 0 to {len(names) - 1}')
        modes.append(names[value])
    return _namespace().nn.functional.grid_sample(input, grid, *modes, align_corners)


def feature_dropout(input, p, train):
    """Sets whole channels, which are dimension 1, to 0 with probability p, and multiplies the others by 1 / (1 - p)."""
    if _tensor('feature_dropout', 'input', input).ndim < 2:
        text = f'input has shape {list(input.shape)}, and must have 2 dimensions or more'
        raise RuntimeError(f'feature_dropout(): {text}')
    mask = input.new_ones([*input.shape[:2], *[1] * (input.ndim - 2)])
    return input * _namespace().dropout(mask, p, train)


# --- norms and factors ---


def frobenius_norm(input, dim=(), keepdim=False):
    """The root of the sum of squares along dimensions, or of all elements."""
    dims = [dim] if is_number(dim) else list(dim)
    return _namespace().linalg.vector_norm(input, 2, dims or None, keepdim)


def nuclear_norm(input, dim=(-2, -1), keepdim=False):
    """The sum of the singular values of matrices."""
    return _namespace().linalg.matrix_norm(input, 'nuc', tuple(dim), keepdim)


def norm_except_dim(v, pow=2, dim=0):
    """The norms of the slices along a dimension, which keeps its place; -1 is the norm of all elements."""
    torch = _namespace()
    if dim == -1:
        return torch.linalg.vector_norm(v, pow)
    others = [d for d in builtins.range(_tensor('norm_except_dim', 'v', v).ndim) if d != dim]
    return torch.linalg.vector_norm(v, pow, others, True) if others else v.abs()


def lobpcg(
    A,
    k=None,
    B=None,
    X=None,
    n=None,
    iK=None,
    niter=None,
    tol=None,
    largest=None,
    method=None,
    tracker=None,
    ortho_iparams=None,
    ortho_fparams=None,
    ortho_bparams=None,
):
    """The k greatest eigenvalues, or with largest=False the least ones, of symmetric matrices, and their eigenvectors;
    with B those of A x = λ B x. They are computed from all of them, without iterations, whose settings are taken for
    nothing."""
    torch = _namespace()
    if _tensor('lobpcg', 'A', A).ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ValueError(f'lobpcg(): A has shape {list(A.shape)}, and must be square matrices')
    count = X.shape[-1] if k is None and X is not None else convert_whole(1 if k is None else k)
    if not 0 < count <= A.shape[-1]:
        raise ValueError(f'lobpcg(): k is {count}, and must be from 1 to {A.shape[-1]}')
    if B is None:
        values, vectors = torch.linalg.eigh(A)
    else:
        lower = torch.linalg.cholesky(B)
        half = torch.linalg.solve_triangular(lower, A, upper=False)
        whole = torch.linalg.solve_triangular(lower, half.mH, upper=False)
        values, vectors = torch.linalg.eigh(whole.mH)
        vectors = torch.linalg.solve_triangular(lower.mH, vectors, upper=True)
    if largest is None or convert_bool(largest):
        return values.flip(-1)[..., :count], vectors.flip(-1)[..., :count]
    return values[..., :count], vectors[..., :count]


FUNCTIONS = (
    affine_grid_generator, cond, conv_tbc, convolution, detach, detach_copy, feature_dropout, fill, frobenius_norm,
    from_file, get_device, grid_sampler, is_conj, is_inference, is_neg, is_same_size, is_signed, lobpcg,
    norm_except_dim, nuclear_norm, range, t, view_as_complex_copy, view_as_real_copy, while_loop,
)


# --- tensors ---


def _dim_order(self):
    """The dimensions in the order in which they lie in memory, the one with the greatest steps first."""
    return tuple(sorted(builtins.range(self.ndim), key=lambda dim: -self.stride(dim)))


def _to_dense(self, dtype=None, *, masked_grad=True):
    """The tensor itself: all are dense."""
    return self if dtype is None else self.to(dtype)


def _storage_type(self):
    """The class of storage()."""
    return type(self.storage())


def as_strided_(self, size, stride, storage_offset=None):
    """Gives the tensor itself another shape and other steps through its memory."""
    if self.requires_grad:
        raise RuntimeError(f'as_strided_(): the tensor of shape {list(self.shape)} requires grad: use as_strided()')
    where = self.storage_offset() if storage_offset is None else storage_offset
    self.set_data(self.as_strided(size, stride, where))
    return self


def set_(self, source=None, storage_offset=0, size=None, stride=None):
    """Lets the tensor be elements of the memory of another tensor, or of a storage; without one it gets no elements."""
    if self.requires_grad:
        raise RuntimeError(f'set_(): the tensor of shape {list(self.shape)} requires grad: assign to its data')
    found = getattr(source, '_tensor', source)
    if found is None:
        self.set_data(self.new_empty([0]))
        return self
    if _tensor('set_', 'source', found).dtype != self.dtype:
        raise RuntimeError(f'set_(): the source has dtype {found.dtype}, the tensor {self.dtype}')
    found = found.detach()
    if size is None and isinstance(source, RawTensor):
        self.set_data(found)
        return self
    if size is None:
        size = [found.untyped_storage().nbytes() // found.itemsize]
    if stride is None:
        steps, product = [], 1
        for one in reversed(list(size)):
            steps.insert(0, product)
            product *= one
        stride = steps
    self.set_data(found.as_strided(list(size), list(stride), storage_offset))
    return self


def install(export, tensor):
    for function in FUNCTIONS:
        export(function.__name__, function)
    tensor.dim_order, tensor.to_dense, tensor.storage_type = _dim_order, _to_dense, _storage_type
    tensor.as_strided_, tensor.set_ = as_strided_, set_
    tensor.is_conj, tensor.is_neg, tensor.is_signed = is_conj, is_neg, is_signed
