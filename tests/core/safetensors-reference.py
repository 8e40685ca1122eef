#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Writes data/foreign.safetensors with the safetensors package. Run it with a Python that has
safetensors and torch."""

import pathlib

import safetensors
import safetensors.torch
import torch

HERE = pathlib.Path(__file__).parent

DTYPES = ['float32', 'float64', 'float16', 'bfloat16', 'int8', 'uint8', 'int16', 'int32', 'int64', 'bool', 'complex64']


def main():
    tensors = {}
    for name in DTYPES:
        dtype = getattr(torch, name)
        values = torch.arange(6).reshape(2, 3)
        tensors[f'of {name}'] = (values % 2 if name == 'bool' else values).to(dtype)
    tensors['of complex64'] += 0.5j
    tensors['single'] = torch.tensor(2.5)
    tensors['empty'] = torch.zeros(3, 0, 2)
    tensors['größe "\\\n\x01\x7f☃'] = torch.tensor([1, 2, 3], dtype=torch.uint8)
    (HERE / 'data').mkdir(exist_ok=True)
    safetensors.torch.save_file(tensors, HERE / 'data' / 'foreign.safetensors', metadata={'format': 'pt — "x"'})
    print(f'{len(tensors)} tensors, safetensors {safetensors.__version__}, PyTorch {torch.__version__}')


if __name__ == '__main__':
    main()
