#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""io: files of NumPy, text with delimiters and columns of Arrow, compared with NumPy and pyarrow where they are."""

import io
import math
import pathlib
import pickle
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import Gio, GLib, GTorch  # noqa: E402

import tap  # noqa: E402
from tap import raises  # noqa: E402

files = GTorch.io
DATA = HERE.parent / 'io' / 'data'
LABELS = [[1, 0, 3], [0, 1, 2]]


def module_of(name):
    """A module that this machine may lack, or that may not fit to others of it."""
    try:
        return __import__(name, fromlist=['x'])
    except ImportError as error:
        raise tap.Skip(f'no {name}: {error}') from error


@tap.case
def arrays_come_from_anything():
    path = DATA / 'f4.npy'
    with open(path, 'rb') as stream:
        for source in (path, str(path), Gio.File.new_for_path(str(path)), path.read_bytes(), stream):
            found = files.load_npy(source)
            assert found.tolist() == LABELS and found.dtype is GTorch.float32
            found += 1  # it can be written to
    mapped = files.load_npy(path, mmap=True)
    mapped += 1
    assert files.load_npy(path).tolist() == LABELS
    with raises(FileNotFoundError, 'nothing'):
        files.load_npy('/nowhere/nothing.npy')
    with raises(TypeError, 'load_npy(): file must be a path'):
        files.load_npy(3)
    with raises(NotImplementedError, 'objects of Python'):
        files.load_npy(DATA / 'objects.npy')
    with raises(GLib.Error, 'the limit is 5'):
        files.load_npy(path, max_bytes=5)


@tap.case
def archives_are_dictionaries():
    for name in ('stored.npz', 'compressed.npz'):
        found = files.load_npz(DATA / name)
        assert found['x'].tolist() == LABELS and found['y'].tolist() == [0, 1, 2, 3, 4]
        assert found['z/deep'].item() is True
        again = files.load_npz((DATA / name).read_bytes())
        assert list(again) == list(found)
        again['x'].zero_()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / 'a.npz'
        for compress in (False, True):
            files.save_npz({'a': GTorch.arange(3), 'b': GTorch.ones(2, 2)}, path, compress=compress)
            found = files.load_npz(path, mmap=True)
            assert found['a'].tolist() == [0, 1, 2] and found['b'].tolist() == [[1, 1], [1, 1]]
    with raises(TypeError, 'save_npz(): tensors must be a dictionary'):
        files.save_npz([GTorch.ones(1)], io.BytesIO())
    with raises(TypeError, "'a' is a int"):
        files.save_npz({'a': 1}, io.BytesIO())


@tap.case
def numpy_reads_what_is_saved():
    numpy = module_of('numpy')
    for tensor in (GTorch.arange(6).reshape(2, 3), GTorch.rand(3, dtype=GTorch.complex128), GTorch.ones(2, 2).t() > 0):
        stream = io.BytesIO()
        files.save_npy(tensor, stream)
        found = numpy.load(io.BytesIO(stream.getvalue()))
        assert found.tolist() == tensor.tolist() and str(found.dtype) == GTorch.DType.get_name(tensor.dtype)
    for compress in (False, True):
        stream = io.BytesIO()
        files.save_npz({'a': GTorch.arange(3), 'ä/b': GTorch.zeros(0, 2)}, stream, compress=compress)
        found = numpy.load(io.BytesIO(stream.getvalue()))
        assert found['a'].tolist() == [0, 1, 2] and found['ä/b'].shape == (0, 2)


@tap.case
def text_is_read_as_columns_or_rows():
    text = b'a,b\n1,2.5\n3,\n'
    with raises(RuntimeError, 'line 3, column 2 (“b”): the number is missing'):
        files.load_csv(text)
    found = files.load_csv(text, missing=math.nan, dtype={'a': GTorch.int64})
    assert found['a'].tolist() == [1, 3] and found['a'].dtype is GTorch.int64
    assert found['b'].isnan().tolist() == [False, True]
    assert files.load_csv(text, columns=['a'])['a'].dtype is GTorch.float64
    form = {'delimiter': ';', 'header': False, 'skip_rows': 1}
    whole = files.load_csv(b'# note\n1;2\n3;4', as_tensor=True, dtype=GTorch.int8, **form)
    assert whole.tolist() == [[1, 2], [3, 4]] and whole.dtype is GTorch.int8
    blocks = list(files.iter_csv(b'x\n1\n2\n3\n', 2))
    assert [block['x'].tolist() for block in blocks] == [[1, 2], [3]]
    with raises(ValueError, 'rows is 0'):
        files.iter_csv(text, 0)
    with raises(GLib.Error, 'there is no column “c”'):
        files.load_csv(text, columns=['c'])


@tap.case
def numbers_are_those_of_python():
    values = [math.pi * 10.0**n for n in range(-30, 30)]
    values += [5e-324, 1.7976931348623157e308, 0.1, 1 / 3, 2.0**53 + 2, -0.0]
    text = 'x\n' + '\n'.join(map(repr, values))
    assert files.load_csv(text.encode())['x'].tolist() == values


@tap.case
def tables_are_mappings():
    table = GTorch.npz_load_file(Gio.File.new_for_path(str(DATA / 'stored.npz')), False, 0, None)
    assert list(table) == ['x', 'y', 'z/deep'] == table.keys() and len(table) == 3 and 'x' in table and 3 not in table
    assert dict(table)['y'].tolist() == [0, 1, 2, 3, 4] == table['y'].tolist() and bool(table)
    assert [tensor.dim() for tensor in table.values()] == [2, 1, 0] and table.items()[0][0] == 'x'
    with raises(KeyError, 'w'):
        table['w']
    with raises(TypeError, 'a name is a text'):
        table[0]


@tap.case
def checkpoints_are_loaded_by_c():
    found = GTorch.load(DATA / 'nested.pt')
    assert found['epoch'] == 7 and found['name'] == 'näme' and found['zero'] == 'a\0b' and found['large'] == -2**70
    assert found['one'] is found['other'] and found['loop'][0] is found['loop'] and found[3] == 'three'
    assert found['model']._metadata['1'] == {'version': 2} and found['flags'] == (True, False, None)
    assert found['half'].dtype is GTorch.bfloat16 and found['columns'].tolist() == [[4, 6], [8, 10]]
    mapped = GTorch.load(DATA / 'nested.pt', mmap=True)
    mapped['base'].zero_()
    assert mapped['turned'].sum().item() == 0 and GTorch.load(DATA / 'nested.pt')['base'].sum().item() == 66
    with raises(pickle.UnpicklingError, 'it calls torch.nn.modules.linear.Linear'):
        GTorch.load(DATA / 'module.pt')
    network = GTorch.nn.Sequential(GTorch.nn.Linear(2, 3), GTorch.nn.BatchNorm1d(3))
    network.load_state_dict(GTorch.load(DATA / 'state.pt'))
    assert network[0].weight.round().tolist() == [[0, 1], [2, 3], [4, 5]]
    checkpoint = GTorch.CheckpointFile.load_file(Gio.File.new_for_path(str(DATA / 'state.pt')), True, 0, None)
    assert checkpoint.get_tensors().keys() == list(network.state_dict())


@tap.case
def arrow_shares_memory():
    arrow = module_of('pyarrow')
    table = arrow.table({'x': arrow.array([1, 2, 3], arrow.int32()), 'y': [0.5, 1.5, 2.5], 'b': [True, False, True]})
    found = files.from_arrow(table)
    assert {name: column.tolist() for name, column in found.items()} == table.to_pydict()
    assert found['x'].dtype is GTorch.int32 and found['x'].is_read_only()
    assert found['x'].data_ptr() == table['x'].chunk(0).buffers()[1].address
    assert files.from_arrow(table['y']).tolist() == [0.5, 1.5, 2.5]
    assert files.from_arrow(arrow.array([1, 2])).tolist() == [1, 2]
    assert files.from_arrow(table.slice(1))['b'].tolist() == [False, True]
    assert files.from_arrow(arrow.concat_tables([table, table]))['x'].tolist() == [1, 2, 3, 1, 2, 3]
    lists = arrow.array([[1.0, 2.0], [3.0, 4.0]], arrow.list_(arrow.float32(), 2))
    assert files.from_arrow(lists).tolist() == [[1, 2], [3, 4]]
    for wrong, text in ((['a'], 'the type “u” of Arrow'), ([1, None], '1 nulls among 2'), ([[1], [2, 3]], '“+l”')):
        with raises(RuntimeError, text):
            files.from_arrow(arrow.array(wrong))
    with raises(TypeError, '__arrow_c_stream__'):
        files.from_arrow(3)


@tap.case
def arrow_takes_tensors():
    arrow = module_of('pyarrow')
    flags = GTorch.tensor([True, False, True])
    tensors = {'n': GTorch.arange(3), 'r': GTorch.ones(3, 2).t().contiguous().t(), 'f': flags}
    table = arrow.table(files.to_arrow(tensors))
    assert table.to_pydict() == {name: tensor.tolist() for name, tensor in tensors.items()}
    assert table['n'].chunk(0).buffers()[1].address == tensors['n'].data_ptr()
    column = arrow.array(files.to_arrow(tensors['n']))
    del tensors
    assert column.to_pylist() == [0, 1, 2] and table['n'].to_pylist() == [0, 1, 2]
    assert arrow.record_batch(files.to_arrow({'a': GTorch.ones(2)})).to_pydict() == {'a': [1, 1]}
    for _ in range(100):  # capsules that nobody takes
        files.to_arrow(GTorch.ones(3)).__arrow_c_array__()
    with raises(NotImplementedError, 'bfloat16'):
        arrow.table(files.to_arrow({'a': GTorch.ones(2, dtype=GTorch.bfloat16)}))
    with raises(TypeError, 'one tensor is an array'):
        files.to_arrow(GTorch.ones(2)).__arrow_c_stream__()


@tap.case
def files_of_arrow_are_read_by_pyarrow():
    arrow, parquet, feather = (module_of(f'pyarrow{name}') for name in ('', '.parquet', '.feather'))
    table = arrow.table({'x': [1, 2, 3], 'y': [0.5, 1.5, 2.5]})
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / 'a'
        parquet.write_table(table, path)
        assert files.load_parquet(path, columns=['y'])['y'].tolist() == [0.5, 1.5, 2.5]
        feather.write_feather(table, str(path), compression='uncompressed')
        assert files.load_ipc(path.read_bytes())['x'].tolist() == [1, 2, 3]


tap.main()
