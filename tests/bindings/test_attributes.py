#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Settings as attributes: an assignment takes effect or raises."""

import inspect
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import Gio, GLib, GObject, GTorch  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402
from tap import raises  # noqa: E402

nn, optim = GTorch.nn, GTorch.optim
FLAGS = GObject.ParamFlags


def ones(*shape):
    return GTorch.ones(list(shape))


def param(*shape):
    return nn.Parameter(ones(*shape))


MAKERS = {
    'Linear': lambda cls: cls(2, 3),
    'Conv2d': lambda cls: cls(2, 2, 3),
    'MaxPool1d': lambda cls: cls(2),
    'MaxPool2d': lambda cls: cls(2),
    'MaxPool3d': lambda cls: cls(2),
    'AvgPool1d': lambda cls: cls(2),
    'AvgPool2d': lambda cls: cls(2),
    'AvgPool3d': lambda cls: cls(2),
    'AdaptiveAvgPool1d': lambda cls: cls(2),
    'AdaptiveAvgPool2d': lambda cls: cls(2),
    'AdaptiveAvgPool3d': lambda cls: cls(2),
    'AdaptiveMaxPool1d': lambda cls: cls(2),
    'AdaptiveMaxPool2d': lambda cls: cls(2),
    'AdaptiveMaxPool3d': lambda cls: cls(2),
    'MaxUnpool1d': lambda cls: cls(2),
    'MaxUnpool2d': lambda cls: cls(2),
    'MaxUnpool3d': lambda cls: cls(2),
    'Unfold': lambda cls: cls(2),
    'Fold': lambda cls: cls(4, 2),
    'LPPool1d': lambda cls: cls(2, 2),
    'LPPool2d': lambda cls: cls(2, 2),
    'LPPool3d': lambda cls: cls(2, 2),
    'BatchNorm1d': lambda cls: cls(3),
    'BatchNorm2d': lambda cls: cls(3),
    'LayerNorm': lambda cls: cls(3),
    'Embedding': lambda cls: cls(4, 2),
    'EmbeddingBag': lambda cls: cls(4, 2),
    'Conv1d': lambda cls: cls(2, 2, 3),
    'Conv3d': lambda cls: cls(2, 2, 3),
    'ConvTranspose1d': lambda cls: cls(2, 2, 3),
    'ConvTranspose2d': lambda cls: cls(2, 2, 3),
    'ConvTranspose3d': lambda cls: cls(2, 2, 3),
    **{f'LazyConv{kind}{n}d': lambda cls: cls(2, 3) for kind in ('', 'Transpose') for n in (1, 2, 3)},
    'LazyLinear': lambda cls: cls(2),
    'BatchNorm3d': lambda cls: cls(3),
    'InstanceNorm1d': lambda cls: cls(3, affine=True),
    'InstanceNorm2d': lambda cls: cls(3, affine=True),
    'InstanceNorm3d': lambda cls: cls(3, affine=True),
    'GroupNorm': lambda cls: cls(1, 3),
    'RMSNorm': lambda cls: cls(3),
    'LocalResponseNorm': lambda cls: cls(2),
    'CrossMapLRN2d': lambda cls: cls(2),
    'FractionalMaxPool2d': lambda cls: cls(2, 3),
    'FractionalMaxPool3d': lambda cls: cls(2, 3),
    'SyncBatchNorm': lambda cls: cls(3),
    'RNNCell': lambda cls: cls(3, 2),
    'LSTMCell': lambda cls: cls(3, 2),
    'GRUCell': lambda cls: cls(3, 2),
    'RNN': lambda cls: cls(3, 2),
    'LSTM': lambda cls: cls(3, 2),
    'GRU': lambda cls: cls(3, 2),
    'PixelShuffle': lambda cls: cls(2),
    'PixelUnshuffle': lambda cls: cls(2),
    'ChannelShuffle': lambda cls: cls(2),
    'Unflatten': lambda cls: cls(1, (1, 2)),
    'Threshold': lambda cls: cls(0.5, 1.0),
    'Bilinear': lambda cls: cls(2, 3, 4),
    **{f'ConstantPad{n}d': lambda cls: cls(1, 0.5) for n in (1, 2, 3)},
    **{
        f'{kind}Pad{n}d': lambda cls: cls(1)
        for kind in ('Circular', 'Reflection', 'Replication', 'Zero') for n in (1, 2, 3)
    },
    'MultiheadAttention': lambda cls: cls(4, 2),
    'AdaptiveLogSoftmaxWithLoss': lambda cls: cls(4, 3, [1]),
    'TransformerEncoderLayer': lambda cls: cls(4, 2, 3),
    'TransformerDecoderLayer': lambda cls: cls(4, 2, 3),
    'TransformerEncoder': lambda cls: cls(nn.TransformerEncoderLayer(4, 2, 3), 1),
    'TransformerDecoder': lambda cls: cls(nn.TransformerDecoderLayer(4, 2, 3), 1),
    'Transformer': lambda cls: cls(4, 2, 1, 1, 3),
    'SGD': lambda cls: cls([param(2)], momentum=0.5),
    'Adam': lambda cls: cls([param(2)]),
    'AdamW': lambda cls: cls([param(2)]),
}
LAYERS = [name for name in dir(nn) if inspect.isclass(getattr(nn, name))]
# DataParallel is written in Python, and takes any attribute as classes of programs do.
NOT_MADE = ('Buffer', 'DataParallel', 'Module', 'NLLLoss2d', 'Parameter', 'RNNBase', 'RNNCellBase', 'Sequential')
LAYERS = [name for name in LAYERS if name not in NOT_MADE]


def make(name, cls=None):
    cls = cls or getattr(GTorch, name)
    return MAKERS.get(name, lambda made: made())(cls)


def objects():
    """Returns an object of each class that has settings."""
    for name in [*LAYERS, 'SGD', 'Adam', 'AdamW']:
        yield make(name)
    cpu = GTorch.Device.cpu()
    yield from (cpu, GTorch.Stream('cpu'), GTorch.Generator.new_with_seed(1), GTorch.GradScaler())
    yield from (optim.SGD([param(2)]).get_param_groups()[0], nn.Sequential(nn.ReLU()))
    yield from (cpu.get_allocator(), GTorch.Timer(), GTorch.CUDAGraph.new())


def other(spec, value):
    """Returns a value that differs from the current one."""
    kind = spec.value_type
    if kind == GObject.TYPE_BOOLEAN:
        return not value
    if kind.is_a(GObject.TYPE_ENUM):
        members = kind.pytype.__enum_values__.values()
        return next(m for m in members if m != value and m.value_nick not in (value, 'none'))
    if kind == GObject.TYPE_DOUBLE:
        return value * 2 if value > 1 else 0.25 if value != 0.25 else 0.5
    if kind.is_a(GObject.TYPE_OBJECT):
        return Gio.Cancellable() if kind.name == 'GCancellable' else ones(3)
    if kind == GObject.TYPE_STRING:
        return 'text'
    return 1 << 30 if kind.name == 'guint64' else 2 if value != 2 else 3


@tap.case
def every_property_is_an_attribute():
    n = 0
    for thing in objects():
        for spec in GObject.list_properties(type(thing)):
            name = spec.name.replace('-', '_')
            if isinstance(thing, GTorch.Module) and name in ('device', 'dtype'):
                assert not hasattr(thing, name), name  # a name for subclasses
                continue
            there = getattr(thing, name)
            if callable(there) and not spec.value_type.is_a(GObject.TYPE_OBJECT):
                continue  # there is a method of that name
            if (spec.owner_type.name, name) == ('GTorchAllocator', 'caching'):
                continue  # has no effect on the CPU
            n += 1
            if spec.flags & FLAGS.CONSTRUCT_ONLY:
                raises(AttributeError, lambda: setattr(thing, name, 1), name, 'is fixed')
            elif not spec.flags & FLAGS.WRITABLE:
                if not isinstance(thing, GTorch.Module):
                    raises(AttributeError, lambda: setattr(thing, name, 1))
            else:
                before = thing.get_property(spec.name)
                wanted = other(spec, before)
                setattr(thing, name, wanted)
                got = thing.get_property(spec.name)
                if isinstance(got, GTorch.Factors):
                    (got,) = got.get_values()
                assert got is wanted or got == wanted, (thing, name, got, wanted)
                setattr(thing, name, None if before != before else before)  # NaN stands for None
    assert n > 120, n


@tap.case
def unknown_names_raise():
    for thing in objects():
        kind = type(thing).__name__
        raises(AttributeError, lambda: setattr(thing, 'no_such_setting', 1), kind, 'no_such_setting')
        assert 'no_such_setting' not in thing.__dict__
        method = next(m for m in ('forward', 'step', 'to_string', 'get_property') if hasattr(thing, m))
        raises(AttributeError, lambda: setattr(thing, method, lambda *_: None), kind, method)


@tap.case
def wrong_types_raise():
    raises(TypeError, lambda: setattr(nn.Dropout(), 'p', 'much'), 'Dropout.p')
    raises(TypeError, lambda: setattr(optim.SGD([param(1)]), 'nesterov', 'no'), 'SGD.nesterov', "'no'")
    raises(TypeError, lambda: setattr(nn.Softmax(), 'dim', 1.5))
    raises(TypeError, lambda: setattr(nn.Softmax(), 'dim', GTorch.float64), 'dtype')
    raises(ValueError, lambda: setattr(nn.MSELoss(), 'reduction', 'most'), 'most')
    raises(TypeError, lambda: setattr(nn.NLLLoss(), 'weight', [1.0]), 'NLLLoss.weight')
    allocator = GTorch.Device.cpu().get_allocator()
    raises(GLib.Error, lambda: setattr(allocator, 'max_split_size', 2), '20 MiB')


@tap.case
def settings_take_effect():
    x = GTorch.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 5.0]])
    drop = nn.Dropout(0.5)
    drop.p = 0.0
    assert drop(x).tolist() == x.tolist()
    norm = nn.BatchNorm1d(3)
    norm.momentum = 1.0
    norm(x)
    assert norm.running_mean.tolist() == [2, 2, 4]
    norm.eps = 1e6
    assert norm(x).abs().max().item() < 0.01
    loss = nn.MSELoss()
    loss.reduction = 'sum'
    assert loss.reduction == 'sum' and loss(x, x + 1).item() == 6
    slope = nn.LeakyReLU()
    slope.negative_slope = 0.5
    assert slope(-x).tolist() == (-x / 2).tolist()
    soft = nn.Softmax(dim=1)
    soft.dim = 0
    assert math.isclose(soft(x)[:, 0].sum().item(), 1, rel_tol=1e-6)
    gelu = nn.GELU()
    gelu.approximate = 'tanh'
    assert gelu.approximate == 'tanh' and gelu.get_property('approximate') == GTorch.Approximation.TANH
    weight = param(1)
    sgd = optim.SGD([weight], lr=0.1)
    sgd.lr = 0.5
    assert sgd.learning_rate == 0.5 and sgd.param_groups[0]['lr'] == 0.5
    sgd.learning_rate, sgd.maximize = 0.25, True
    weight.sum().backward()
    sgd.step()
    assert weight.item() == 1.25
    adam = optim.Adam([weight], betas=(0.5, 0.75))
    adam.betas = (0.25, 0.125)
    assert (adam.beta1, adam.beta2) == adam.betas == (0.25, 0.125)


@tap.case
def groups_are_dictionaries_too():
    first, second = param(1), param(1)
    sgd = optim.SGD([{'params': [first]}, {'params': [second], 'lr': 0.5}], lr=0.25, weight_decay=0.0)
    assert [group['lr'] for group in sgd.param_groups] == [0.25, 0.5]
    for group in sgd.param_groups:
        group['lr'] *= 2
    assert [group.lr for group in sgd.param_groups] == [0.5, 1.0]
    assert sgd.param_groups[1]['params'] == (second,)
    sgd.add_param_group({'params': [param(3)], 'lr': 3})
    assert sgd.param_groups[2].learning_rate == 3
    raises(KeyError, lambda: sgd.param_groups[0].__setitem__('betas', 1), 'betas')
    raises(TypeError, lambda: optim.SGD([{'params': [first], 'betas': 1}]), 'betas')
    raises(TypeError, lambda: optim.SGD([{'lr': 1}]), 'params')
    raises(TypeError, lambda: optim.SGD(first), 'one tensor')
    raises(TypeError, lambda: optim.SGD([first], rl=0.1), 'rl')


@tap.case
def arguments_are_those_of_pytorch():
    assert nn.Conv2d(4, 6, (3, 2), dilation=2, groups=2, bias=False).kernel_size == (3, 2)
    assert nn.MaxPool2d(2, ceil_mode=True).ceil_mode
    assert nn.BatchNorm2d(3, eps=1e-3, momentum=0.5).eps == 1e-3
    assert nn.CrossEntropyLoss(ignore_index=3, label_smoothing=0.5).ignore_index == 3
    assert nn.GELU(approximate='tanh').approximate == 'tanh'
    assert nn.Embedding(4, 2, padding_idx=-1).padding_idx == 3
    assert nn.Linear(2, 3, dtype=GTorch.float64).weight.dtype == GTorch.float64
    assert nn.LayerNorm((2, 3)).weight.shape == (2, 3)
    raises(TypeError, lambda: nn.Linear(2), 'out_features')
    raises(TypeError, lambda: nn.Linear(2, 3, in_features=2), 'twice')
    raises(TypeError, lambda: nn.Linear(2, 3, baise=False), 'baise')
    raises(TypeError, lambda: nn.Conv2d(1, 1, 'same'))
    raises(TypeError, lambda: nn.MSELoss('sum'), 'size_average', 'reduction')
    raises(GLib.Error, lambda: nn.Embedding(4, 2, padding_idx=4), '4')
    raises(GLib.Error, lambda: nn.Linear(0, 3), 'in_features')


class Net(GTorch.Module):
    def __init__(self):
        self.before = 1  # as in PyTorch, attributes may be set before super().__init__()
        super().__init__()
        self.fc = nn.Linear(2, 2)
        self.scale = nn.Parameter(ones(2))
        self.register_buffer('mean', GTorch.zeros(2))
        self.count = 0

    def forward(self, x):
        self.count += 1
        return self.fc(x) * self.scale + self.mean


def names(net):
    return [name for name, _ in net.named_parameters()], [name for name, _ in net.named_children()]


@tap.case
def members_are_replaced():
    net = Net()
    raises(TypeError, lambda: setattr(net, 'scale', ones(2)), 'Net.scale', 'Parameter or None')
    raises(TypeError, lambda: setattr(net, 'fc', 3), 'Net.fc', 'Module or None')
    raises(TypeError, lambda: setattr(net, 'mean', 'x'), 'Net.mean')
    net.mean = ones(2) * 7
    assert net.get_buffer('mean') is net.mean and net.mean.tolist() == [7, 7]
    net.register_buffer('late', None)
    assert net.late is None and 'late' not in net.state_dict()
    net.late = ones(1)
    assert 'late' in net.state_dict()
    net.scale = None
    assert net.scale is None and names(net)[0] == ['fc.weight', 'fc.bias']
    raises(TypeError, lambda: setattr(net, 'scale', ones(2)))
    net.scale = nn.Parameter(ones(2) * 2)
    assert names(net)[0] == ['scale', 'fc.weight', 'fc.bias']
    net.fc = nn.Identity()
    assert isinstance(net.get_module('fc'), nn.Identity)
    assert net(ones(1, 2)).tolist() == [[9, 9]] and net.count == 1
    net.fc = None
    assert net.fc is None and list(net.children()) == []
    del net.fc
    raises(AttributeError, lambda: net.fc, 'fc')
    net.scale = nn.Linear(1, 1)  # a module replaces a parameter
    assert names(net) == (['scale.weight', 'scale.bias'], ['scale'])
    del net.scale
    raises(AttributeError, lambda: net.scale)
    assert net.before == 1
    net.training = False
    assert not net.get_training()


@tap.case
def parameters_of_layers_are_replaced():
    layer = nn.Linear(2, 3)
    raises(TypeError, lambda: setattr(layer, 'weight', ones(3, 2)), 'Linear.weight')
    layer.weight, layer.bias = param(3, 2), None
    assert layer.bias is None and layer(ones(1, 2)).tolist() == [[2, 2, 2]]
    assert [name for name, _ in layer.named_parameters()] == ['weight']
    raises(GLib.Error, lambda: layer.unregister('weight'), 'part of the layer')
    raises(GLib.Error, lambda: layer.__delattr__('bias'), 'part of the layer')
    layer.weight = None
    raises(GLib.Error, lambda: layer(ones(1, 2)))
    assert nn.Linear(2, 3, bias=False).bias is None
    assert nn.BatchNorm2d(2, affine=False).weight is None
    raises(GLib.Error, lambda: nn.ReLU().unregister('nothing'), 'nothing')
    loss = nn.NLLLoss(ones(3))
    loss.weight = None
    assert loss.weight is None and not loss.state_dict()
    loss.weight = ones(3) * 2
    assert loss.weight.tolist() == [2, 2, 2] and 'weight' in loss.state_dict()
    raises(GLib.Error, lambda: loss.unregister('weight'), 'part of the layer')


@tap.case
def derived_classes_stay_themselves():
    for name in [*LAYERS, 'SGD', 'Adam', 'AdamW']:
        cls = type(f'My{name}', (getattr(GTorch, name),), {'__module__': __name__, 'mine': 3})
        made = make(name, cls)
        assert type(made) is cls and made.mine == 3, made
        made.free = 5  # programs may use other names freely
        assert made.free == 5

    class Doubled(nn.Linear):
        def __init__(self, n):
            super().__init__(n, n, bias=False)
            self.weight = nn.Parameter(ones(n, n))

        def forward(self, x):
            return super().forward(x) * 2

    class Chain(nn.Sequential):
        pass

    class Mean(nn.MSELoss):
        def forward(self, value, target):
            return super().forward(value, target) + 1

    chain = Chain(Doubled(2), nn.ReLU())
    assert type(chain) is Chain and type(chain[0]) is Doubled
    assert chain(ones(1, 2)).tolist() == [[4, 4]]
    assert Mean(reduction='sum')(ones(2), ones(2)).item() == 1
    for final in (nn.Parameter, GTorch.Stream, GTorch.Event, GTorch.Timer, GTorch.Device, GTorch.MemoryPool):
        raises(TypeError, lambda: type(final)('Mine', (final,), {}), final.__name__)
    for final in (GTorch.cuda.Stream, GTorch.cuda.Event):
        raises(TypeError, lambda: type(final)('Mine', (final,), {}), 'cannot be derived')
    raises(TypeError, lambda: chain.__class__('x'), 'str')

    class Steps(optim.SGD):
        n = 0

        def step(self):
            self.n += 1
            super().step()

    weight = param(1)
    weight.sum().backward()
    steps = Steps([weight], lr=1, momentum=0.5)
    steps.step()
    assert steps.n == 1 and weight.item() == 0


@tap.case
def backends_accept_existing_settings_only():
    cudnn, matmul = GTorch.backends.cudnn, GTorch.backends.cuda.matmul
    for module in (cudnn, matmul, GTorch.backends, GTorch.backends.cuda):
        raises(AttributeError, lambda: setattr(module, 'allow_tf33', True), 'allow_tf33')
    raises(TypeError, lambda: setattr(matmul, 'allow_tf32', 'no'))
    for module, name in ((cudnn, 'benchmark'), (cudnn, 'deterministic'), (matmul, 'allow_tf32')):
        before = getattr(module, name)
        setattr(module, name, not before)
        assert getattr(module, name) is (not before)
        setattr(module, name, before)
    before = matmul.fp32_precision
    matmul.fp32_precision = 'bf16'
    assert GTorch.Device.cpu().matmul_precision == GTorch.Precision.BF16
    matmul.fp32_precision = before


@tap.case
def dtypes_are_no_numbers():
    x, kind = ones(2, 3), GTorch.float64
    for function in (
        lambda: GTorch.zeros(2, kind),
        lambda: GTorch.zeros((2, kind)),
        lambda: GTorch.full([2], kind),
        lambda: GTorch.full(kind, 1.0),
        lambda: GTorch.arange(kind),
        lambda: GTorch.tensor([kind]),
        lambda: x.view(kind, 3),
        lambda: x.reshape(kind),
        lambda: x.sum(kind),
        lambda: x.sum(dim=kind),
        lambda: x.sum([kind]),
        lambda: x.permute(kind, 0),
        lambda: x + kind,
        lambda: kind - x,
        lambda: x.add(kind),
        lambda: x.clamp(kind),
        lambda: x.fill_(kind),
        lambda: x.softmax(kind),
        lambda: x[kind],
        lambda: x[kind:],
        lambda: x.size(kind),
        lambda: x.add(x, alpha=kind),
        lambda: x.sum(dim=0, keepdim=kind),
        lambda: nn.Linear(2, kind),
        lambda: optim.SGD([param(1)], lr=kind),
    ):
        raises(TypeError, function)
    assert x.sum(dtype=kind).dtype == kind and x.to(kind).dtype == kind
    assert GTorch.zeros(2, dtype=kind).shape == (2,)
    assert kind.is_floating_point and not kind.is_complex and kind.itemsize == 8
    assert not GTorch.int8.is_floating_point and GTorch.complex64.is_complex
    assert GTorch.int8.is_signed is True and GTorch.uint8.is_signed is False


@tap.case
def parts_of_a_tensor_are_attributes():
    z = GTorch.tensor([1 + 2j, 3 - 4j])
    assert z.real.tolist() == [1, 3] and z.imag.tolist() == [2, -4]
    assert GTorch.real(z).tolist() == [1, 3] and GTorch.imag(z).tolist() == [2, -4]
    z.real.fill_(0)
    assert z.tolist() == [2j, -4j]
    matrix = GTorch.tensor([[1 + 2j, 3j]])
    assert matrix.H.tolist() == [[1 - 2j], [-3j]] and matrix.mH.shape == (2, 1)
    assert matrix.is_cpu != matrix.is_cuda and matrix.is_cuda == (matrix.device.type == 'cuda')
    raises(AttributeError, lambda: setattr(z, 'dtype', GTorch.float32))
    raises(AttributeError, lambda: setattr(z, 'shape', (1,)))
    raises(TypeError, lambda: GTorch.manual_seed('a'))


if __name__ == '__main__':
    tap.main()
