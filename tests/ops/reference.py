#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Writes data/reference.safetensors: PyTorch's results for the samples of the operation rows.

    python3 tests/ops/reference.py        with a Python that has torch; rewrite the file when rows change

For each sample the file has the inputs, the results and, in float64, the gradients of sum (result *
weight), where the weight of element i of result j is cos (i + j). Names:
<op>/<sample>/<dtype>/{in,out,grad}<n>; a complex tensor is stored with a last dimension of two.
Rows without a reference are named with the reason.
"""

import json
import math
import pathlib
import random
import struct

import torch

from torch_reference import evaluate, load_rows, results_of
from generator.signatures import CLASSES  # noqa: E402
from generator.ops.samples import fixed_dtypes, sample_tensors  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
NAMES = {torch.float64: 'F64', torch.int64: 'I64', torch.bool: 'BOOL', torch.float32: 'F32', torch.int32: 'I32',
         torch.uint8: 'U8', torch.int8: 'I8', torch.int16: 'I16', torch.float16: 'F16', torch.bfloat16: 'BF16'}
CODES = {torch.float64: 'd', torch.int64: 'q', torch.bool: 'B', torch.float32: 'f', torch.int32: 'i',
         torch.uint8: 'B', torch.int8: 'b', torch.int16: 'h'}

# Samples whose results, or only their gradients, are not comparable.
LEFT_OUT = {
    'histogram_bins': 'its edges would have to be sorted',
    'histogramdd_bins': 'its edges would have to be sorted',
    'linalg_svd': 'its vectors may have any sign',
    'svd': 'its vectors may have any sign',
    'masked_std': 'PyTorch has complex deviations of complex numbers',
    'masked_var': 'PyTorch has complex variances of complex numbers',
}
WITHOUT_GRADIENT = {'cholesky_inverse', 'cholesky_solve'}  # PyTorch has one of the triangle that is not read


def make_positive(x):
    """Returns M M^H / n + I of each matrix M, and integers of at least 1."""
    if not x.is_floating_point() and not x.is_complex():
        return x.clamp(min=1)
    return x @ x.mH / x.shape[-1] + torch.eye(x.shape[-1], dtype=x.dtype)


def make_input(shape, dtype, low, high, fixed, rand):
    count = math.prod(shape)
    if dtype == torch.bool:
        values = [rand.random() < 0.5 for _ in range(count)]
    elif dtype.is_complex:
        values = [complex(rand.uniform(low, high), rand.uniform(low, high)) for _ in range(count)]
    else:
        if fixed and not dtype.is_floating_point:
            low, high = 0, 1
        values = [rand.uniform(low, high) for _ in range(count)]
        if not dtype.is_floating_point:
            values = [round(v) for v in values]
    return torch.tensor(values, dtype=dtype).reshape(shape)


def reference(row, index, sample, dtype, store):
    """Some arguments (the weights of classes) are not differentiable: then only the gradient of
    the first is computed. Some operations have no gradient in PyTorch."""
    try:
        attempt(row, index, sample, dtype, store, None)
    except RuntimeError as error:
        text = str(error)
        if 'is not differentiable with respect to' in text:
            attempt(row, index, sample, dtype, store, 1)
        elif 'derivative for' in text or 'gradient computation' in text:
            attempt(row, index, sample, dtype, store, 0)
        else:
            raise


def attempt(row, index, sample, dtype, store, n_leaves):
    rand = random.Random(f'{row.name} {index}')
    wanted = getattr(torch, dtype)
    tensors, flat = {}, []
    fixed = fixed_dtypes(sample)
    for a, position, shape in sample_tensors(row, sample):
        value = None
        if shape is not None:
            kind = getattr(torch, fixed[a.name]) if a.name in fixed else wanted
            value = make_input(shape, kind, sample.get('low', -2.0), sample.get('high', 2.0), a.name in fixed, rand)
            if a.name in sample.get('positive', []):
                value = make_positive(value)
        flat.append(value)
        if position >= 0:
            tensors.setdefault(a.name, []).append(value)
        else:
            tensors[a.name] = value
    prefix = f'{row.name}/{index}/{dtype}'
    has_gradient = sample.get('grad', True) and row.name not in WITHOUT_GRADIENT
    differentiable = has_gradient and (row.grad or row.grad_function or row.composite)
    leaves = [v for v in flat if v is not None and v.is_floating_point() and differentiable][:n_leaves]
    for leaf in leaves:
        leaf.requires_grad_(True)
    # copies: PyTorch's form may write to its inputs, or release them
    entries = {f'{prefix}/in{k}': v.detach().clone() for k, v in enumerate(flat) if v is not None}
    results = results_of(evaluate(row, sample, tensors))
    entries.update({f'{prefix}/out{j}': v for j, v in enumerate(results)})
    total = None
    for j, result in enumerate(results):
        if result.requires_grad and result.is_floating_point():
            weight = torch.tensor([math.cos(i + j) for i in range(result.numel())], dtype=torch.float64)
            part = (result * weight.reshape(result.shape)).sum()
            total = part if total is None else total + part
    if total is not None:
        grads = torch.autograd.grad(total, leaves, allow_unused=True)
        for leaf, grad in zip(leaves, grads):
            k = next(i for i, v in enumerate(flat) if v is leaf)
            entries[f'{prefix}/grad{k}'] = torch.zeros_like(leaf) if grad is None or grad._is_zerotensor() else grad
    store.update(entries)


def save(path, store):
    header, blobs, offset = {}, [], 0
    for name in sorted(store):
        tensor = store[name].detach()
        if tensor.is_complex():
            tensor = torch.view_as_real(tensor.resolve_conj())
        tensor = tensor.contiguous().flatten()
        values = tensor.tolist()
        blob = struct.pack(f'<{len(values)}{CODES[tensor.dtype]}', *values)
        shape = list(store[name].shape) + ([2] if store[name].is_complex() else [])
        header[name] = {'dtype': NAMES[tensor.dtype], 'shape': shape, 'data_offsets': [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header, separators=(',', ':')).encode()
    text += b' ' * (-len(text) % 8)
    path.write_bytes(struct.pack('<Q', len(text)) + text + b''.join(blobs))


def main():
    torch.manual_seed(0)
    store, missing = {}, []
    rows = load_rows()
    for row in rows:
        unset, drawn = 'unset' in row.flags, 'random' in row.flags
        if unset or drawn or row.internal or not row.samples:
            why = ('has no values' if unset else 'is random' if drawn else
                   'is internal' if row.internal else 'has no sample')
            missing.append(f'{row.name}: {why}')
            continue
        dtypes = [d for d in ('float64', 'int64', 'bool', 'complex128') if d in CLASSES[row.dtypes]]
        if row.promote == 'float' and 'int64' not in dtypes:
            dtypes.append('int64')
        if row.name in LEFT_OUT:
            missing.append(f'{row.name}: {LEFT_OUT[row.name]}')
            continue
        for index, sample in enumerate(row.samples):
            for dtype in dtypes:
                try:
                    reference(row, index, sample, dtype, store)
                except (RuntimeError, LookupError, TypeError, NotImplementedError, ValueError, NameError,
                        AttributeError, KeyError, IndexError) as error:
                    if dtype == dtypes[0]:
                        missing.append(f'{row.name}/{index}/{dtype}: {str(error).splitlines()[0][:100]}')
    (HERE / 'data').mkdir(exist_ok=True)
    save(HERE / 'data' / 'reference.safetensors', store)
    (HERE / 'data' / 'missing.txt').write_text('\n'.join(missing) + '\n')
    print(f'{len(store)} tensors, PyTorch {torch.__version__}; without a reference: {len(missing)}')


if __name__ == '__main__':
    main()
