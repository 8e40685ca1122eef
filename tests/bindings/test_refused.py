#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What was given and cannot be meant raises, and never does something else than it says."""

import collections
import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as ET

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GObject, GTorch  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402
from tap import raises  # noqa: E402

nn, F, optim = GTorch.nn, GTorch.nn.functional, GTorch.optim
CORE = '{http://www.gtk.org/introspection/core/1.0}'


# --- which of several forms is meant ---


@tap.case
def a_dimension_by_name_is_never_another_tensor():
    x = GTorch.tensor([[1.0, 5.0], [7.0, 3.0]])
    for name in ('max', 'min'):
        method = getattr(x, name)
        raises(GLib.Error, 'out of the range', method, dim=GTorch.tensor(9))
        raises(TypeError, '', method, dim=GTorch.ones(2))
        assert method(dim=GTorch.tensor(1)).values.tolist() == method(1).values.tolist()
        assert method(GTorch.tensor(4.0)).tolist() == method(other=GTorch.tensor(4.0)).tolist()
        raises(TypeError, 'alone', method, GTorch.tensor(4.0), dim=0)
        raises(TypeError, 'alone', method, GTorch.tensor(4.0), keepdim=True)
        raises(TypeError, 'needs dim', method, keepdim=True)
        raises(TypeError, 'no argument', method, 0, keep=True)
    for name in ('std', 'var'):
        method = getattr(x, name)
        raises(TypeError, 'True', method, dim=True)
        assert method(False).item() == method(unbiased=False).item() == method(correction=0).item()
        raises(TypeError, 'correction', method, False, correction=1)


@tap.case
def there_is_one_dtype_and_one_device():
    x, a, b = GTorch.ones(2), GTorch.int8, GTorch.float64
    for args, options in (
        ((a, b), {}),
        ((a,), {'dtype': b}),
        ((x,), {'dtype': b}),
        ((a, x), {}),
        (('cpu', 'cpu'), {}),
        (('cpu',), {'device': 'cpu'}),
        (('cpu', a, b), {}),
    ):
        raises(TypeError, 'one dtype and one device', x.to, *args, **options)
    raises(TypeError, 'two dtypes', nn.Linear(1, 1).to, GTorch.float16, GTorch.float64)
    raises(TypeError, 'two dtypes', nn.Linear(1, 1).to, GTorch.float16, dtype=GTorch.float64)
    assert x.to('cpu', a).dtype == x.to(a, device='cpu').dtype == x.to(None, a).dtype == a


@tap.case
def embedding_takes_the_indices_first():
    rows, indices = GTorch.arange(6.0).view(3, 2).requires_grad_(), GTorch.tensor([2, 0])
    assert F.embedding(indices, rows).tolist() == [[4, 5], [0, 1]]
    raises(TypeError, 'indices first', F.embedding, rows, indices)
    assert F.embedding(indices, rows.detach().long()).tolist() == [[4, 5], [0, 1]]
    for padding in (2, -1, None):
        rows.grad = None
        F.embedding(indices, rows, padding_idx=padding).sum().backward()
        assert rows.grad.sum(1).tolist() == [2, 0, 2 if padding is None else 0]
    for padding in (3, -4):
        raises(ValueError, 'not one of 3 rows', F.embedding, indices, rows, padding)
    raises(TypeError, 'sparse', F.embedding, indices, rows, sparse=True)
    raises(TypeError, 'sparse', F.embedding_bag, indices, rows, GTorch.tensor([0]), sparse=True)
    assert F.unfold(GTorch.ones(1, 1, 2, 2), 2).shape == (1, 4, 1)  # not the method of tensors


@tap.case
def unique_gives_what_is_asked_for():
    x = GTorch.tensor([3, 1, 3], device='cpu')
    assert x.unique().tolist() == GTorch.unique(x, True).tolist() == [1, 3]
    values, counts = x.unique(return_counts=True)
    assert values.tolist() == [1, 3] and counts.tolist() == [1, 2]
    assert [part.tolist() for part in x.unique(True, True, True)] == [[1, 3], [1, 0, 1], [1, 2]]
    assert x.unique(dim=0).tolist() == [1, 3]
    raises(GLib.Error, 'dim 1', x.unique, dim=1)


@tap.case
def functions_take_a_number_first():
    x = GTorch.tensor([1.0, 2.0])
    assert GTorch.add(1, x).tolist() == [2, 3] and GTorch.pow(2, x).tolist() == [2, 4]
    assert GTorch.remainder(7, x).tolist() == [0, 1] and GTorch.sub(1, x, alpha=2).tolist() == [-1, -3]
    assert GTorch.add(1, GTorch.tensor([1, 2])).dtype == GTorch.int64


# --- None, and what is no number ---


@tap.case
def nothing_is_no_list():
    x = GTorch.ones(1).requires_grad_()
    raises(TypeError, 'not None', GTorch.autograd.backward, None)
    raises(TypeError, 'not None', GTorch.autograd.grad, x * 2, None)
    raises(TypeError, 'not None', GTorch.autograd.grad, None, x)
    for function in (GTorch.zeros, GTorch.ones, GTorch.empty, GTorch.rand, GTorch.randn, x.new_zeros, x.view, x.reshape,
                     x.expand, x.permute, x.repeat):
        raises(TypeError, 'not None', function, None)
    raises(TypeError, 'not None', GTorch.full, None, 3)
    raises(TypeError, '', GTorch.normal, 0.0, 1.0, None)
    assert GTorch.zeros(()).shape == () and x.sum(None).shape == ()


@tap.case
def a_clamp_has_a_bound():
    for given in ({}, {'min': None}, {'min': None, 'max': None}):
        raises(ValueError, 'clamp', GTorch.ones(1).clamp, **given)


@tap.case
def seeds_have_64_bits():
    generator = GTorch.get_default_device().get_default_generator()
    for seed in (2**64, 2**64 + 5, 10**30, -(2**63) - 1, -(2**64)):
        for function in (GTorch.manual_seed, GTorch.cuda.manual_seed, GTorch.cuda.manual_seed_all, generator.set_seed):
            raises(OverflowError, 'a seed is from', function, seed)
    for seed, bits in ((-1, 2**64 - 1), (-(2**63), 2**63), (2**64 - 1, 2**64 - 1), (5, 5)):
        GTorch.manual_seed(seed)
        assert generator.get_seed() == bits
        generator.set_seed(seed)
        assert generator.get_seed() == bits


def functions_with(kind):
    """Names of functions of the typelib, and where they take a dtype, but for the operations."""
    path = next(pathlib.Path(p) / 'GTorch-1.gir' for p in os.environ['GI_TYPELIB_PATH'].split(':')
                if (pathlib.Path(p) / 'GTorch-1.gir').exists())
    namespace = ET.parse(path).getroot().find(CORE + 'namespace')
    for owner in (namespace, *(e for e in namespace if e.tag.removeprefix(CORE) in ('class', 'record'))):
        for function in owner:
            parameters = function.find(CORE + 'parameters')
            tag = function.tag.removeprefix(CORE)
            if tag not in ('function', 'method', 'constructor') or function.get('introspectable') == '0':
                continue
            if parameters is None or any(p.tag == CORE + 'array' for p in parameters):
                continue
            names = []
            for parameter in parameters.findall(CORE + 'parameter'):
                plain = parameter.find(CORE + 'type')
                names.append(plain.get('name') if plain is not None else None)
            if kind in names:
                yield owner.get('name') if owner is not namespace else None, function.get('name'), tag


@tap.case
def a_dtype_is_never_an_int():
    for function in (GTorch.set_default_dtype, GTorch.dtype_get_name, GTorch.DType.get_size):
        raises(TypeError, 'dtype', function, 2)
        raises(TypeError, 'dtype', function, True)
    raises(TypeError, 'dtype', GTorch.dtype_promote, GTorch.float32, 2)
    raises(TypeError, 'dtype', GTorch.dtype_promote, 2, GTorch.float32)
    assert GTorch.dtype_promote(GTorch.int8, GTorch.float32) == GTorch.float32
    tried = 0
    for owner, name, tag in functions_with('DType'):
        if owner not in (None, 'Tensor') or name.startswith('dtype_'):
            continue
        public = getattr(GTorch if tag == 'function' and owner is None else GTorch.Tensor, name)
        if tag == 'method' or name in ('autocast_run', 'set_default_dtype') or 'new_from' in name:
            continue
        x = GTorch.ones(1)
        try:
            public(*([x] if 'like' in name else [[1]]), dtype=2)
        except TypeError:
            tried += 1
            continue
        raise AssertionError(f'{name} takes 2 for a dtype')
    assert tried > 5, tried
    x = GTorch.ones(1)
    cpu = GTorch.DeviceType.CPU
    for call in (
        lambda d: x.to(dtype=d),
        lambda d: x.sum(dtype=d),
        lambda d: x.softmax(0, d),
        lambda d: x.new_zeros(1, dtype=d),
        lambda d: x.to_dtype(d),
        lambda d: GTorch.tensor(1, dtype=d),
        lambda d: GTorch.arange(3, dtype=d),
        lambda d: GTorch.full((1,), 1, d),
        lambda d: GTorch.Tensor.new_from_ints([1], [1], d, None),
        lambda d: GTorch.autocast('cpu', d),
        lambda d: GTorch.autocast_run(cpu, d, True, True, print),
        lambda d: GTorch.AutocastGuard.new(cpu, d, True, True),
        lambda d: nn.Linear(1, 1, dtype=d),
        lambda d: nn.Linear(1, 1).to(dtype=d),
    ):
        raises(TypeError, '', call, 2)
        raises(TypeError, '', call, True)


# --- names and constructors ---


@tap.case
def members_do_not_hide_behind_attributes():
    class Net(nn.Module):
        kept = None
        called = 5

        def helper(self):
            return 1

        def forward(self, x):
            return x

    def make():
        net = Net()
        net.plain = 5
        return net

    p, b, m = nn.Parameter(GTorch.ones(1)), GTorch.ones(1), nn.ReLU()
    for name in ('forward', 'training', 'parameters', 'helper', 'called', 'plain', 'to'):
        net = make()
        raises(KeyError, name, net.register_parameter, name, p)
        raises(KeyError, name, net.register_buffer, name, b)
        raises(KeyError, name, net.add_module, name, m)
        if name != 'plain':
            raises(KeyError, name, setattr, net, name, p)
            raises(KeyError, name, setattr, net, name, m)
        assert not list(net.parameters()) and not list(net.buffers()) and not list(net.children())
    raises(KeyError, 'in_features', nn.Linear(1, 1).register_buffer, 'in_features', b)
    net = make()
    for value in (p, m):
        net.kept = value
        assert net.kept is value
        net.plain = value
        assert net.plain is value
        net.fresh = value
    net.register_module('fresh', nn.Tanh())
    assert isinstance(net.fresh, nn.Tanh)
    layer = nn.Linear(1, 1)
    layer.register_parameter('weight', p)
    assert layer.weight is p


@tap.case
def tensors_have_the_attributes_of_their_class():
    x, p = GTorch.ones(1), nn.Parameter(GTorch.ones(1))
    for one in (x, p):
        for name in ('require_grad', 'requires_gard', 'foo'):
            raises(AttributeError, name, setattr, one, name, True)
        raises(AttributeError, 'shape', setattr, one, 'shape', (1,))
        raises(AttributeError, 'sum', setattr, one, 'sum', 3)
        one.requires_grad = True
        one.grad = GTorch.ones(1)
        one._mine = 5
        assert one._mine == 5
    handle = p.register_hook(lambda grad: None)
    raises(AttributeError, 'foo', setattr, handle, 'foo', 1)
    raises(AttributeError, 'foo', setattr, GTorch.Size.new([1]), 'foo', 1)


@tap.case
def constructors_are_checked():
    class Mine(GTorch.Function):
        pass

    class Plain(nn.Module):
        pass

    scaler = GTorch.GradScaler
    for kind, call in (
        ((TypeError, ValueError), lambda: scaler('nonsense')),
        (TypeError, lambda: scaler(enabled='no')),
        (TypeError, lambda: scaler(growth_interval=2.9)),
        (TypeError, lambda: scaler(capturable='false')),
        (TypeError, lambda: scaler('cuda', 2.0, 2.0, 0.5, 100, True, 7)),
        (TypeError, lambda: scaler(nothing=1)),
        (TypeError, lambda: GTorch.CUDAGraph(warmup_iterations=2.9)),
        (TypeError, lambda: GTorch.CUDAGraph(3)),
        (TypeError, lambda: Mine(cast_inputs=3)),
        (TypeError, lambda: Mine(3)),
        (TypeError, lambda: Plain(3)),
        (TypeError, lambda: Plain(training='yes')),
        (TypeError, lambda: nn.Linear(1, 1, device=object())),
    ):
        error = raises(kind, '', call)
        assert 'GObject.__init__' not in str(error), error
    made = scaler('cpu', 8.0, 3.0, 0.25, 7, True)
    assert (made.growth_factor, made.backoff_factor, made.growth_interval, made.enabled) == (3, 0.25, 7, True), made
    assert made.scale(GTorch.ones(1)).item() == 8 and scaler(init_scale=4.0).scale(GTorch.ones(1)).item() == 4
    assert not scaler(enabled=False).is_enabled()
    settable = GObject.ParamFlags.WRITABLE | GObject.ParamFlags.CONSTRUCT_ONLY
    classes = (scaler, GTorch.CUDAGraph, Mine, Plain)
    properties = [(cls, s) for cls in classes for s in GObject.list_properties(cls) if s.flags & settable]
    for cls, spec in properties:
        raises((TypeError, ValueError), '', lambda cls=cls, spec=spec: cls(**{spec.name.replace('-', '_'): object()}))
    assert len(properties) > 5


@tap.case
def an_object_is_made_once():
    layer = nn.Linear(2, 2)
    raises(RuntimeError, 'made already', layer.__init__, 3, 3)
    row = nn.Sequential(nn.ReLU())
    raises(RuntimeError, 'made already', row.__init__, nn.ReLU())
    assert len(row) == 1

    class Twice(nn.Linear):
        def __init__(self):
            super().__init__(2, 2)
            super().__init__(3, 3)

    raises(RuntimeError, 'made already', Twice)
    optimizer = optim.SGD(layer.parameters(), lr=0.1)
    raises(RuntimeError, 'made already', optimizer.__init__, layer.parameters(), lr=0.2)


# --- lists with something else in them ---


NONE_IN_LISTS = """
import gi
gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch
nn = GTorch.nn

class Twice(GTorch.Function):
    def forward(self, context, *inputs):
        return [x * 2 for x in inputs]

    def backward(self, context, *grads):
        return [grad * 2 for grad in grads]

x, layer, scaler = GTorch.ones(2).requires_grad_(), nn.Linear(2, 2), GTorch.GradScaler()
optimizer = GTorch.optim.SGD(layer.parameters(), lr=0.1)
calls = {
    'apply': lambda given: Twice().apply(given),
    'scale': scaler.scale,
    'scale_list': scaler.scale_list,
    'scaler': lambda given: scaler.load_state_lists(given, ['a', 'b']),
    'optimizer': lambda given: optimizer.load_state_lists(given, ['a', 'b']),
    'module': lambda given: layer.load_state_lists(given, ['a', 'b'], True),
    'forward_many': layer.forward_many,
    'graphed': lambda given: GTorch.GraphedModule.new(layer, given, 1),
    'index': lambda given: x.index([4, 0, 0, 0, 4, 1, 0, 0], given),
    'backward': lambda given: GTorch.autograd_backward(given, [], False, False),
    'grad': lambda given: GTorch.autograd_grad([x.sum()], given, [], False, False, True),
    'outputs': lambda given: GTorch.autograd_grad(given, [x], [], False, False, True),
    'cat': GTorch.cat, 'stack': GTorch.stack, 'hstack': GTorch.hstack, 'vstack': GTorch.vstack,
    'meshgrid': GTorch.meshgrid,
    'gradcheck': lambda given: GTorch.gradcheck(lambda *values: values[0] * 2, given),
    'save': lambda given: GTorch.safetensors_save({'a': given[0], 'b': given[1]}, None, None),
    'sgd': lambda given: GTorch.optim.SGD(given, lr=0.1),
}
for name, call in calls.items():
    for wrong in (None, 5, nn.ReLU()):
        try:
            call([x, wrong])
        except (TypeError, ValueError, GLib.Error):
            continue
        raise SystemExit(f'{name} takes {wrong}')
"""


@tap.case
def a_list_of_tensors_has_nothing_else_in_it():
    done = subprocess.run(
        [sys.executable, '-c', NONE_IN_LISTS],
        env={**os.environ, 'G_DEBUG': 'fatal-criticals'},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr[-2000:]


# --- what errors say ---


@tap.case
def errors_name_what_was_called():
    x, layer = GTorch.ones(2), nn.Linear(1, 1)
    optimizer = optim.SGD(layer.parameters(), lr=0.1)
    for part, call in (
        ('not of NoneType', lambda: GTorch.tensor(None)),
        ('not of str', lambda: GTorch.tensor('x')),
        ('not of NoneType', lambda: x.__setitem__(0, None)),
        ('div()', lambda: GTorch.Tensor.__truediv__ and x.div()),
        ('zeros_like()', lambda: GTorch.zeros_like(x, nothing=1)),
        ('zeros()', lambda: GTorch.zeros(nothing=1)),
        ('var()', lambda: x.var(nothing=1)),
        ('max()', lambda: x.max(nothing=1)),
        ('run() needs', lambda: GTorch.Stream('cpu').run()),
        ('capture() needs', lambda: GTorch.CUDAGraph().capture()),
        ('must be a dictionary', lambda: layer.load_state_dict([1])),
        ('must be a dictionary', lambda: optimizer.load_state_dict([1])),
        ("'betas' is no setting", lambda: optimizer.add_param_group({'params': [x], 'betas': 3})),
        ("'betas' is no setting", lambda: optim.SGD([{'params': [x], 'betas': 3}], lr=0.1)),
        ('', lambda: GTorch.cuda.caching_allocator_delete(None)),
    ):
        text = str(raises(TypeError, part, call))
        assert 'op_' not in text and '<locals>' not in text and 'descriptor' not in text, text


OWN = ('gi.overrides.GTorch', 'gi.overrides._gtorch', 'gi.repository.GTorch')


@tap.case
def functions_have_the_names_that_they_are_called_by():
    spaces = [GTorch, GTorch.cuda, GTorch.cuda.memory, GTorch.amp, GTorch.autograd, F, GTorch.Tensor, GTorch.Module,
              GTorch.Sequential, GTorch.Stream, GTorch.Linear, GTorch.GradScaler, optim.SGD, optim.lr_scheduler.StepLR]
    tried = 0
    for space in spaces:
        for name in dir(space):
            try:
                function = getattr(space, name)
            except (AttributeError, GLib.Error, NotImplementedError):
                continue
            ours = str(getattr(function, '__module__', '')).startswith(OWN)
            if ours and not name.startswith('_') and isinstance(function, type(raises)):
                wrong = '<' in function.__qualname__ or function.__name__.startswith(('_', 'op_'))
                assert not wrong, f'{space}: {name} is {function.__qualname__}'
                tried += 1
    assert tried > 300, tried


@tap.case
def an_error_names_the_tensor_that_is_missing():
    layer = nn.Linear(2, 2)
    layer.weight = None
    raises(GLib.Error, 'linear: “weight” is not a tensor', layer, GTorch.ones(1, 2))


@tap.case
def lists_of_arrays_become_tensors():
    try:
        import numpy
    except ImportError:
        raise tap.Skip('there is no numpy') from None
    made = GTorch.tensor([numpy.ones(2), numpy.zeros(2)])
    assert made.tolist() == [[1, 1], [0, 0]] and made.dtype == GTorch.float64
    assert GTorch.tensor([[numpy.arange(2)], [numpy.arange(2)]]).shape == (2, 1, 2)


@tap.case
def deep_modules_are_prepared():
    net = nn.ReLU()
    for _ in range(1200):
        net = nn.Sequential(net)
    raised = None
    try:
        net.eval()
    except (RecursionError, GLib.Error) as error:
        raised = error
    assert raised is not None or not net.training


# --- iterators ---


@tap.case
def members_are_iterated_over():
    net = nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1))
    for name in ('parameters', 'buffers', 'children', 'modules', 'named_parameters', 'named_children'):
        found = getattr(net, name)()
        assert isinstance(found, collections.abc.Iterator), name
        first = next(found)
        assert [first, *found] == list(getattr(net, name)()), name
    assert next(net.parameters()) is net[0].weight
    for module in net.children():  # which may be changed meanwhile
        net.append(nn.ReLU())
    assert len(net) == 4


@tap.case
def messages_name_the_function_and_the_argument():
    x, wide = GTorch.ones(2), 2**70
    for name in ('zeros', 'ones', 'empty', 'rand', 'randn'):
        raises(TypeError, f'{name}() is missing its size', getattr(GTorch, name))
        raises(TypeError, f'{name}() is missing its size', getattr(GTorch, name), dtype=GTorch.float64)
        assert getattr(GTorch, name)(()).shape == ()
    raises(TypeError, 'full()', GTorch.full)
    raises(TypeError, "a device is 'cpu'", GTorch.device, None)
    for name in ('exp', 'softmax', 'matmul'):
        raises(TypeError, f'{name}(): input must be a tensor, not list', getattr(GTorch, name), [1.0], 0)
    raises(OverflowError, f'sum(): dim does not fit into 64 bits: {wide}', x.sum, wide)
    raises(OverflowError, 'transpose(): dim1 does not fit', x.transpose, 0, wide)
    raises(OverflowError, f'an index does not fit into 64 bits: {wide}', lambda: x[wide])
    raises(OverflowError, 'the stop of a slice does not fit', lambda: x[:wide])
    raises(IndexError, 'an index has at most 33 items, not 100', lambda: x[(None,) * 100])
    raises(TypeError, 'element 1 of tensors must be a tensor, not NoneType', GTorch.cat, [x, None])
    for target in (x, nn.Linear(2, 2)):
        raises(ValueError, "to(): 'meta' is neither a device", target.to, 'meta')
    raises(TypeError, 'is no dtype', x.to, GTorch.DType.NONE)
    raises(NotImplementedError, 't.pin_memory()', GTorch.zeros, 2, pin_memory=True)
    for value in (None, 5, 'text'):
        raises(TypeError, 'Linear: the input must be a tensor', nn.Linear(2, 3), value)
        raises(TypeError, 'MSELoss: an input must be a tensor', nn.MSELoss(), x, value)
    if not os.environ.get('GTORCH_NO_MIXIN'):
        raises(BufferError, 'use t.detach()', memoryview, nn.Parameter(x))
    for name in ('equal', 'allclose'):
        raises(TypeError, f'{name}(): other must be a tensor, not int', getattr(x, name), 5)
    raises(TypeError, '5 cannot be called', GTorch.CUDAGraph().capture, None, None, 5)


@tap.case
def a_capture_takes_a_function_alone():
    x = GTorch.ones(2)
    assert GTorch.CUDAGraph().capture(lambda stream: x * 4).shape == (2,)


@tap.case
def numbers_of_very_many_digits_are_shortened():
    x, huge = GTorch.ones(2), 10**3000
    for call in (
        lambda: GTorch.ones(huge), lambda: x.view(huge), lambda: x.fill_(huge), lambda: GTorch.tensor([huge]),
        lambda: GTorch.full((2,), huge), lambda: nn.Linear(huge, 2), lambda: nn.Dropout(huge), lambda: x.sum(huge),
        lambda: GTorch.manual_seed(huge), lambda: x[huge], lambda: x.to('q' * 5000),
    ):
        error = raises((OverflowError, ValueError), '', call)
        assert len(str(error)) < 200, error


if __name__ == '__main__':
    tap.main()
