#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""save() and load(): files of PyTorch's, hostile and damaged ones."""

import collections
import io
import os
import pathlib
import pickle
import random
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GTorch  # noqa: E402

import tap  # noqa: E402
from tap import raises  # noqa: E402

nn = GTorch.nn
PYTORCH = HERE / 'saved' / 'pytorch.pt'


def again(value):
    stream = io.BytesIO()
    GTorch.save(value, stream)
    stream.seek(0)
    return GTorch.load(stream)


@tap.case
def files_of_pytorch_are_loaded():
    found = GTorch.load(PYTORCH)
    state = found['state']
    assert state['weight'].tolist() == [[0, 1], [2, 3], [4, 5]] and state['bias'].tolist() == [0.5] * 3
    assert isinstance(found['weight'], nn.Parameter) and found['weight'].requires_grad
    base = GTorch.arange(12.0).reshape(3, 4)
    assert found['base'].equal(base) and found['columns'].equal(base[1:, ::2]) and found['turned'].equal(base.t())
    assert found['columns'].stride() == (4, 2) and found['turned'].stride() == (1, 4)
    assert found['base'].data_ptr() == found['turned'].data_ptr() == found['columns'].data_ptr() - 16
    for name, tensor in found['kinds'].items():
        assert GTorch.DType.get_name(tensor.dtype) == name
        assert tensor.tolist() == ([True, False, True] if name == 'bool' else [1, 0, 3]), name
    assert found['leaf'].requires_grad and found['leaf'].is_leaf
    assert tuple(found['empty'].shape) == (0, 3) and found['number'].item() == 5 and found['number'].dim() == 0
    assert found['size'] == (2, 3) and found['dtype'] is GTorch.float16 and found['device'] == GTorch.Device('cpu')
    assert found['plain'] == [1, 2.5, None, True, 'text', b'\0bytes', 2**70, (1, (2,)), {3}, 1 + 2j]
    assert list(found['order'].items()) == [('b', 1), ('a', 2)]


@tap.case
def what_is_saved_is_loaded():
    base = GTorch.rand(3, 4)
    kinds = [GTorch.tensor([1, 0, 3]).to(dtype) for dtype in GTorch.load(PYTORCH)['kinds']]
    found = again({'base': base, 'turned': base.t(), 'kinds': kinds, 'empty': GTorch.empty(0, 2), 'n': 3})
    assert found['base'].equal(base) and found['turned'].data_ptr() == found['base'].data_ptr() and found['n'] == 3
    for one, other in zip(found['kinds'], kinds):
        assert one.dtype is other.dtype and one.equal(other)
    weight = nn.Parameter(GTorch.ones(2), requires_grad=False)
    made = again([weight, weight, weight.clone().requires_grad_()])
    assert isinstance(made[0], nn.Parameter) and not made[0].requires_grad and made[0] is made[1]
    assert made[2].requires_grad and not isinstance(made[2], nn.Parameter)
    order = again(collections.OrderedDict(b=base, a={(1, 'x'): {2}}))
    assert list(order) == ['b', 'a'] and order['a'] == {(1, 'x'): {2}}


@tap.case
def values_are_the_same_again():
    values = {
        'none': None, 'flags': (True, False), 'ints': [0, -1, 300, 70000, 2**40, -2**63, 2**63, -2**70, 2**3000],
        'floats': [0.5, float('inf')], 'complex': 1 - 2j, 'text': 'nä\0m', 'bytes': [b'', b'\0\xff'],
        'tuples': ((), (1, (2,))), 'sets': [{1, 'x'}, frozenset([(1, 2)])], 'size': GTorch.ones(2, 3).shape,
        'dtype': GTorch.float16, 'device': GTorch.Device('cpu'), 'order': collections.OrderedDict(b=1, a=2),
    }
    found = again(values)
    assert found == values and list(found) == list(values)
    for name, value in values.items():
        assert type(found[name]) is type(value), name
    values['order']._metadata = {'version': 2}
    assert again(values)['order']._metadata == {'version': 2}


@tap.case
def what_is_the_same_stays_so():
    shared, inner = [1], []
    pair = inner, shared
    inner.extend([inner, pair])
    found = again({'pair': pair, 'shared': shared, 'texts': ['x', 'x']})
    assert found['pair'][1] is found['shared']
    assert found['pair'][0][0] is found['pair'][0] and found['pair'][0][1] is found['pair']
    deep = []
    for _ in range(1500):
        deep = [deep]
    with raises(RecursionError, 'recursion'):
        GTorch.save(deep, io.BytesIO())


@tap.case
def what_is_loaded_can_be_changed():
    tensor = again(GTorch.ones(3))
    tensor += 1
    tensor[0] = 5
    assert tensor.tolist() == [5, 2, 2]
    found = GTorch.load(PYTORCH)
    found['base'].zero_()
    assert found['turned'].sum().item() == 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'one.safetensors')
        GTorch.save({'a': tensor}, path)
        GTorch.load(path)['a'].add_(1)
    if not GTorch.cuda.is_available():
        with raises(RuntimeError, "map_location='cpu'"):
            GTorch.load(PYTORCH, map_location='cuda:0')


@tap.case
def training_goes_on_from_a_file():
    def step(net, optimizer):
        optimizer.zero_grad()
        net(GTorch.ones(2, 3)).square().sum().backward()
        optimizer.step()
        return net[0].weight.detach().clone()

    def make():
        net = nn.Sequential(nn.Linear(3, 2))
        return net, GTorch.optim.Adam(net.parameters(), lr=0.1)

    net, optimizer = make()
    step(net, optimizer)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / 'point.pt'
        GTorch.save({'net': net.state_dict(), 'optimizer': optimizer.state_dict(), 'epoch': 1}, path)
        expected = step(net, optimizer)
        other, its = make()
        found = GTorch.load(path, map_location='cpu')
        other.load_state_dict(found['net'])
        its.load_state_dict(found['optimizer'])
        assert step(other, its).equal(expected) and found['epoch'] == 1
        named = os.path.join(folder, 'weights.safetensors')
        GTorch.save(net.state_dict(), named)
        assert GTorch.load(named)['0.weight'].equal(net[0].weight)
        with raises(TypeError, 'dictionary of tensors'):
            GTorch.save({'n': 1}, named)


@tap.case
def storages_are_aligned():
    stream = io.BytesIO()
    GTorch.save([GTorch.ones(3), GTorch.ones(5, dtype=GTorch.float64)], stream)
    whole = stream.getvalue()
    with zipfile.ZipFile(stream) as archive:
        for info in archive.infolist():
            start = info.header_offset + 30 + int.from_bytes(whole[info.header_offset + 26:][:2], 'little')
            start += int.from_bytes(whole[info.header_offset + 28:][:2], 'little')
            assert start % 64 == 0 or 'data/' not in info.filename, info.filename
            assert whole[start:start + info.file_size] == archive.read(info.filename)


@tap.case
def only_tensors_and_containers_are_saved():
    for value in (nn.Linear(1, 1), object(), len, lambda: 0, [GTorch.CUDAGraph], {'a': {'b': ValueError('x')}}):
        with raises(TypeError, 'cannot be saved'):
            GTorch.save(value, io.BytesIO())
    with raises(RuntimeError, 'detach'):
        GTorch.save(nn.Parameter(GTorch.ones(2)) * 2, io.BytesIO())
    with raises(TypeError, 'path or a binary stream'):
        GTorch.save(1, 3)
    with raises(NotImplementedError, 'one form'):
        GTorch.save(1, io.BytesIO(), pickle_protocol=4)


class Hostile:
    def __init__(self, call, *args):
        self.call, self.args = call, args

    def __reduce__(self):
        return self.call, self.args


def archive_of(content, **members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, 'w') as archive:
        archive.writestr('archive/data.pkl', content)
        archive.writestr('archive/version', b'3\n')
        for name, data in members.items():
            archive.writestr(f'archive/data/{name[1:]}', data)
    stream.seek(0)
    return stream


@tap.case
def no_code_of_a_file_runs():
    marks = []
    for call, args in ((os.system, ('exit 3',)), (eval, ('1',)), (getattr, (os, 'system')), (marks.append, (1,)),
                       (bytearray, (3,)), (__import__, ('os',)), (Hostile, (1,))):
        for protocol in range(6):
            try:
                content = pickle.dumps({'a': Hostile(call, *args)}, protocol)
            except Exception:
                continue  # this protocol cannot name it
            with raises(pickle.UnpicklingError, 'cannot be loaded'):
                GTorch.load(archive_of(content))
    assert not marks
    # instructions by hand: attributes of a function, a class by its name in the stream, an object of a class
    for content in (
        b'\x80\x02ctorch._utils\n_rebuild_tensor_v2\n}X\x01\x00\x00\x00aK\x01sb.', b"\x80\x02cbuiltins\nset\n(K\x01tR.",
        b'\x80\x02(S"a"\nios\nsystem\n.', b'\x80\x02ctorch\nfloat32\n)R.', b'\x80\x02ccollections\nOrderedDict\n}b.',
    ):
        with raises(pickle.UnpicklingError, 'cannot be loaded'):
            GTorch.load(archive_of(content))
        with raises(pickle.UnpicklingError, 'cannot be loaded'):
            GTorch.load(archive_of(content), weights_only=False)
    with raises(NotImplementedError, 'unpickler'):
        GTorch.load(PYTORCH, pickle_module=pickle)
    with raises(TypeError, 'True or False'):
        GTorch.load(PYTORCH, weights_only='yes')
    assert GTorch.load(PYTORCH, weights_only=False).keys() == GTorch.load(PYTORCH).keys()


@tap.case
def functions_are_no_values():
    for name in ('torch._utils\n_rebuild_tensor_v2', 'torch\nFloatStorage', 'collections\nOrderedDict', 'torch\nSize'):
        for content in (f'\x80\x02c{name}\n.', f'\x80\x02}}X\x01\x00\x00\x00ac{name}\ns.', f'\x80\x02]c{name}\na.'):
            with raises(pickle.UnpicklingError, 'in place of a value'):
                GTorch.load(archive_of(content.encode('latin1')))
    dtype = archive_of(b'\x80\x02ctorch\nfloat32\n.')
    assert GTorch.load(dtype) == GTorch.float32


@tap.case
def places_may_be_chosen_by_functions():
    calls = []

    def choose(storage, where):
        calls.append((where, storage.nbytes(), storage.device.type))
        return storage if len(calls) % 2 else None

    plain, found = GTorch.load(PYTORCH), GTorch.load(PYTORCH, map_location=choose)
    assert found['base'].equal(plain['base']) and found['kinds']['bool'].equal(plain['kinds']['bool'])
    assert len(calls) > 3 and {(where, kind) for where, _size, kind in calls} == {('cpu', 'cpu')}
    assert 48 in {size for _where, size, _kind in calls}
    for wrong in (lambda storage, where: 3, lambda storage, where: GTorch.zeros(1)):
        with raises(pickle.UnpicklingError, 'not the storage'):
            GTorch.load(PYTORCH, map_location=wrong)
    for place in (3.5, {'cpu': 3.5}, True, GTorch.float32):
        with raises(TypeError, 'map_location must be a device'):
            GTorch.load(PYTORCH, map_location=place)
    assert GTorch.load(PYTORCH, map_location={'cuda:0': 'cpu'})['base'].equal(plain['base'])


@tap.case
def files_that_pytorch_would_refuse_or_convert_say_so():
    for stream in (io.StringIO('x'), 3):
        with raises(TypeError, 'binary stream'):
            GTorch.load(stream)
        with raises(TypeError, 'binary stream'):
            GTorch.save(GTorch.ones(1), stream)
    legacy = io.BytesIO(b'\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.')
    with raises(NotImplementedError, 'before zip archives'):
        GTorch.load(legacy)
    with raises(pickle.UnpicklingError, 'uint16'):
        GTorch.load(archive_of(b'\x80\x02ctorch._utils\n_rebuild_tensor_v3\n(ctorch\nuint16\ntR.'))
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, 'w') as archive:
        archive.writestr('archive/data.pkl', b'\x80\x02K\x01.')
        archive.writestr('archive/version', b'999\n')
    stream.seek(0)
    with raises(pickle.UnpicklingError, 'version is 999'):
        GTorch.load(stream)
    for flag in ('X\x03\x00\x00\x00yes', 'K\x01', 'N'):
        content = tensor_pickle(4, 0, (4,), (1,)).replace(b'\x89', flag.encode('latin1'))
        with raises(pickle.UnpicklingError, 'requires_grad'):
            GTorch.load(archive_of(content, _0=bytes(16)))


@tap.case
def counters_are_kept():
    value = collections.Counter({3: 2, 'x': 1})
    assert again(value) == value and type(again([value])[0]) is collections.Counter


def tensor_pickle(numel, offset, size, stride, storage='FloatStorage', key='0'):
    class Pickler(pickle._Pickler):
        def persistent_id(self, value):
            return ('storage', Name('torch', storage), key, 'cpu', numel) if value is Tensor else None

        def save(self, value, save_persistent_id=True):
            if isinstance(value, Name):
                return self.write(f'c{value.module}\n{value.name}\n'.encode())
            if isinstance(value, Tensor):
                self.save(Name('torch._utils', '_rebuild_tensor_v2'))
                self.save((Tensor, offset, size, stride, False, collections.OrderedDict()))
                return self.write(pickle.REDUCE)
            return super().save(value, save_persistent_id)

    stream = io.BytesIO()
    Pickler(stream, 2).dump(Tensor())
    return stream.getvalue()


Name = collections.namedtuple('Name', 'module name')


class Tensor:
    pass


@tap.case
def tensors_stay_within_their_storages():
    data = bytes(16)
    assert tuple(GTorch.load(archive_of(tensor_pickle(4, 0, (2, 2), (2, 1)), _0=data)).shape) == (2, 2)
    for args, text in (
        ((4, 1, (2, 2), (2, 1)), 'needs 5 elements of 4'), ((4, 0, (2, 2), (3, 1)), 'needs 5 elements'),
        ((4, -1, (2,), (1,)), 'offset'), ((4, 0, (2,), (-1,)), 'strides'), ((4, 0, (-2,), (1,)), 'shape'),
        ((4, 0, (2, 2), (1,)), 'strides'), ((5, 0, (2,), (1,)), '16 bytes for 5'), ((2**62, 0, (2,), (1,)), '16 bytes'),
        ((4, 0, (2**62, 2**62), (0, 0)), ''), ((4, 0, (2.0,), (1,)), 'shape'), ((4, 0, [2], (1,)), 'shape'),
        ((4, 0, (2,), (1,), 'TextStorage'), 'TextStorage'), ((4, 0, (2,), (1,), 'FloatStorage', '7'), 'missing'),
        ((4, 0, (2,), (1,), 'FloatStorage', '../version'), 'cannot be loaded'),
    ):
        with raises(Exception, text):
            GTorch.load(archive_of(tensor_pickle(*args), _0=data))


@tap.case
def damaged_files_fail():
    whole = PYTORCH.read_bytes()
    chance = random.Random(1)
    for n in range(400):
        damaged = bytearray(whole)
        if n % 4 == 0:
            del damaged[chance.randrange(len(damaged)):]
        for _ in range(chance.choice((1, 3, 20))):
            if damaged:
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            GTorch.load(io.BytesIO(bytes(damaged)))
        except (RuntimeError, pickle.UnpicklingError, MemoryError):
            pass
    for content in (b'', b'P', b'nothing that is known', b'\x80\x02K\x01.'):
        with raises(RuntimeError, 'neither'):
            GTorch.load(io.BytesIO(content))
    with raises(TypeError, 'can seek'):
        GTorch.load(3)
    with raises(FileNotFoundError, 'nothing'):
        GTorch.load('/nowhere/nothing.pt')


tap.main()
