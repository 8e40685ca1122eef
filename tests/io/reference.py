#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes the files in data/, by NumPy and PyTorch; the tests read them. Their licence is that of this script.

It was run by NumPy 2.4.6 and PyTorch 2.15.0. The date in archives is that of the run, so it makes other bytes each
time."""

import collections
import io
import pathlib

import numpy
import torch

DATA = pathlib.Path(__file__).resolve().parent / 'data'
KINDS = ('b1', 'i1', 'u1', 'i2', 'i4', 'i8', 'f2', 'f4', 'f8', 'c8', 'c16')


def save(name, array, version=None):
    with open(DATA / name, 'wb') as file:
        numpy.lib.format.write_array(file, array, version=version)


def numbers(kind):
    """1, 0 and 3 in 2 rows and one more column, which are told apart in any order."""
    return numpy.array([[1, 0, 3], [0, 1, 2]]).astype(kind)


def arrays():
    for kind in KINDS:
        save(f'{kind}.npy', numbers(kind))
        if numpy.dtype(kind).itemsize > 1:
            save(f'{kind}-big.npy', numbers('>' + kind))
    save('version2.npy', numbers('f4'), (2, 0))
    save('version3.npy', numbers('f4'), (3, 0))
    save('fortran.npy', numpy.asfortranarray(numpy.arange(24, dtype='f4').reshape(2, 3, 4)))
    save('number.npy', numpy.array(5.0))
    save('empty.npy', numpy.zeros((0, 3), 'i4'))
    save('text.npy', numpy.array(['a', 'bc']))
    save('records.npy', numpy.array([(1, 2.0)], dtype=[('a', 'i4'), ('b', 'f8')]))
    save('unsigned.npy', numpy.array([1], 'u4'))
    save('times.npy', numpy.array(['2020-01-01'], 'M8[D]'))
    save('objects.npy', numpy.array([{'a': 1}], dtype=object))
    with open(DATA / 'two.npy', 'wb') as file:
        numpy.save(file, numbers('i4'))
        numpy.save(file, numbers('f8'))
    stored = {'x': numbers('f4'), 'y': numpy.arange(5), 'z/deep': numpy.array(True)}
    numpy.savez(DATA / 'stored.npz', **stored)
    numpy.savez_compressed(DATA / 'compressed.npz', **stored, zeros=numpy.zeros(1000))


def checkpoints():
    base = torch.arange(12.0).reshape(3, 4)
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    with torch.no_grad():
        for i, parameter in enumerate(model.parameters()):
            parameter.copy_(torch.arange(parameter.numel()).reshape(parameter.shape) + 10 * i)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    twice = [1, 2]
    loop = []
    loop.append(loop)
    torch.save(model.state_dict(), DATA / 'state.pt')
    torch.save({
        'model': model.state_dict(),
        'optimizer': optimizer.state_dict(),
        'epoch': 7,
        'loss': 0.25,
        'name': 'näme',
        'zero': 'a\0b',
        'flags': (True, False, None),
        'large': -2**70,
        'bytes': b'\x00\xff',
        'complex': 1 - 2j,
        'base': base, 'turned': base.t(), 'columns': base[1:, ::2], 'none': torch.empty(0, 3),
        'half': torch.tensor([1.5], dtype=torch.bfloat16),
        'parameter': torch.nn.Parameter(torch.ones(2)),
        'leaf': torch.ones(2, requires_grad=True),
        'order': collections.OrderedDict([('b', 1), ('a', 2)]),
        'counter': collections.Counter('aab'),
        'set': {3}, 'size': torch.Size([2, 3]), 'dtype': torch.float16, 'device': torch.device('cpu'),
        'one': twice, 'other': twice, 'loop': loop, 3: 'three',
    }, DATA / 'nested.pt')
    torch.save(torch.arange(3), DATA / 'single.pt')
    torch.save({'wide': torch.zeros(2, dtype=torch.uint16)}, DATA / 'unsigned.pt')
    torch.save({'module': torch.nn.Linear(1, 1)}, DATA / 'module.pt')
    stream = io.BytesIO()
    torch.save({'a': torch.ones(2)}, stream, _use_new_zipfile_serialization=False)
    (DATA / 'legacy.pt').write_bytes(stream.getvalue())


DATA.mkdir(exist_ok=True)
arrays()
checkpoints()
