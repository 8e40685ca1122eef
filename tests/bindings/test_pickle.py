#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Copies and pickles restore the value of an object; other objects raise."""

import copy
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GTorch  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402
from tap import raises  # noqa: E402

nn = GTorch.nn


def through_pickle(value):
    return pickle.loads(pickle.dumps(value))


DEEP = {'deepcopy': copy.deepcopy, 'pickle': through_pickle}
WAYS = {'copy': copy.copy, **DEEP}

WEIGHTS = GTorch.tensor([1.0, 2.0])


def used(layer, shape):
    """Returns a lazy layer with its parameters."""
    layer(GTorch.ones(shape))
    return layer


# Constructor calls of each layer, with a valid input; None for a loss, or one that needs more
# inputs.
LAYERS = {
    'LazyLinear': (lambda: used(nn.LazyLinear(3), (4, 2)), (4, 2)),
    'LazyConv1d': (lambda: used(nn.LazyConv1d(4, 3), (1, 2, 7)), (1, 2, 7)),
    'LazyConv2d': (lambda: used(nn.LazyConv2d(4, 2, groups=2), (1, 2, 3, 4)), (1, 2, 3, 4)),
    'LazyConv3d': (lambda: used(nn.LazyConv3d(2, 2), (1, 2, 2, 2, 3)), (1, 2, 2, 2, 3)),
    'LazyConvTranspose1d': (lambda: used(nn.LazyConvTranspose1d(4, 3), (1, 2, 4)), (1, 2, 4)),
    'LazyConvTranspose2d': (lambda: used(nn.LazyConvTranspose2d(2, 2), (1, 3, 2)), (1, 3, 2)),
    'LazyConvTranspose3d': (lambda: used(nn.LazyConvTranspose3d(2, 2), (1, 2, 2, 2)), (1, 2, 2, 2)),
    'LazyBatchNorm1d': (lambda: used(nn.LazyBatchNorm1d(), (4, 3)), (4, 3)),
    'LazyBatchNorm2d': (lambda: used(nn.LazyBatchNorm2d(), (2, 3, 4, 4)), (2, 3, 4, 4)),
    'LazyBatchNorm3d': (lambda: used(nn.LazyBatchNorm3d(affine=False), (2, 2, 1, 3, 2)), (2, 2, 1, 3, 2)),
    'Linear': (lambda: nn.Linear(2, 3), (4, 2)),
    'Linear without bias': (lambda: nn.Linear(2, 3, bias=False), (4, 2)),
    'Conv2d': (lambda: nn.Conv2d(2, 4, (1, 2), stride=(1, 2), padding=1, dilation=2, groups=2), (1, 2, 6, 6)),
    'MaxPool2d': (lambda: nn.MaxPool2d(2, stride=1, ceil_mode=True), (1, 2, 5, 5)),
    'AvgPool2d': (lambda: nn.AvgPool2d(2, padding=1, count_include_pad=False), (1, 2, 5, 5)),
    'AdaptiveAvgPool2d': (lambda: nn.AdaptiveAvgPool2d((2, 3)), (1, 2, 5, 5)),
    'MaxPool1d': (lambda: nn.MaxPool1d(2, stride=1, ceil_mode=True), (1, 2, 6)),
    'AvgPool1d': (lambda: nn.AvgPool1d(2, padding=1, count_include_pad=False), (1, 2, 6)),
    'AdaptiveAvgPool1d': (lambda: nn.AdaptiveAvgPool1d(3), (1, 2, 6)),
    'AdaptiveMaxPool1d': (lambda: nn.AdaptiveMaxPool1d(3), (1, 2, 6)),
    'LPPool1d': (lambda: nn.LPPool1d(2.0, 2, ceil_mode=True), (1, 2, 6)),
    'AdaptiveMaxPool2d': (lambda: nn.AdaptiveMaxPool2d(3), (1, 2, 5, 5)),
    'LPPool2d': (lambda: nn.LPPool2d(2.0, 2, ceil_mode=True), (1, 2, 5, 5)),
    'MaxPool3d': (lambda: nn.MaxPool3d(2, stride=1, ceil_mode=True), (1, 2, 4, 5, 4)),
    'AvgPool3d': (lambda: nn.AvgPool3d(2, padding=1, count_include_pad=False), (1, 2, 4, 5, 4)),
    'AdaptiveAvgPool3d': (lambda: nn.AdaptiveAvgPool3d(3), (1, 2, 4, 5, 4)),
    'AdaptiveMaxPool3d': (lambda: nn.AdaptiveMaxPool3d(3), (1, 2, 4, 5, 4)),
    'LPPool3d': (lambda: nn.LPPool3d(2.0, 2, ceil_mode=True), (1, 2, 4, 5, 4)),
    'BatchNorm1d': (lambda: nn.BatchNorm1d(3, momentum=0.5), (4, 3)),
    'BatchNorm1d without weights': (lambda: nn.BatchNorm1d(3, affine=False), (4, 3)),
    'BatchNorm2d': (lambda: nn.BatchNorm2d(3, track_running_stats=False), (2, 3, 4, 4)),
    'LayerNorm': (lambda: nn.LayerNorm(3, eps=0.5), (4, 3)),
    'LayerNorm of two': (lambda: nn.LayerNorm((2, 3), bias=False), (4, 2, 3)),
    'LayerNorm without weights': (lambda: nn.LayerNorm((2, 3), elementwise_affine=False), (4, 2, 3)),
    'Embedding': (lambda: nn.Embedding(4, 3, padding_idx=-1), None),
    'Dropout': (lambda: nn.Dropout(0.25).eval(), (2, 3)),
    'Flatten': (lambda: nn.Flatten(0, 1), (2, 3, 4)),
    'GELU': (lambda: nn.GELU('tanh'), (2, 3)),
    'LeakyReLU': (lambda: nn.LeakyReLU(0.5), (2, 3)),
    'Softmax': (lambda: nn.Softmax(0), (2, 3)),
    'LogSoftmax': (lambda: nn.LogSoftmax(1), (2, 3)),
    'Identity': (nn.Identity, (2, 3)),
    'ReLU': (nn.ReLU, (2, 3)),
    'SiLU': (nn.SiLU, (2, 3)),
    'Sigmoid': (nn.Sigmoid, (2, 3)),
    'Tanh': (nn.Tanh, (2, 3)),
    'AdaptiveLogSoftmaxWithLoss': (lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 5, [1, 3], 2.0, True), None),
    'TripletMarginWithDistanceLoss': (
        lambda: nn.TripletMarginWithDistanceLoss(distance_function=nn.PairwiseDistance(1.0), swap=True), None,
    ),
    'MultiheadAttention': (lambda: nn.MultiheadAttention(4, 2), None),
    'TransformerEncoderLayer': (lambda: nn.TransformerEncoderLayer(4, 2, 3, dropout=0.0), (2, 4)),
    'TransformerDecoderLayer': (lambda: nn.TransformerDecoderLayer(4, 2, 3), None),
    'TransformerEncoder': (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 3, 0.0), 2), (2, 4)),
    'TransformerDecoder': (lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 3), 2), None),
    'Transformer': (lambda: nn.Transformer(4, 2, 1, 1, 3), None),
    'DataParallel': (lambda: nn.DataParallel(nn.Linear(2, 3)), (4, 2)),
    'Sequential': (lambda: nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Linear(3, 1))), (4, 2)),
    'CrossEntropyLoss': (lambda: nn.CrossEntropyLoss(WEIGHTS, label_smoothing=0.25), None),
    'NLLLoss': (lambda: nn.NLLLoss(WEIGHTS, ignore_index=1, reduction='sum'), None),
    'MSELoss': (lambda: nn.MSELoss(reduction='none'), None),
    'L1Loss': (nn.L1Loss, None),
    'BCEWithLogitsLoss': (lambda: nn.BCEWithLogitsLoss(pos_weight=WEIGHTS), None),
    'Conv1d': (lambda: nn.Conv1d(2, 4, 3, stride=2, padding=1, groups=2), (1, 2, 7)),
    'Conv3d': (lambda: nn.Conv3d(2, 2, 2, padding='same'), (1, 2, 2, 2, 3)),
    'ConvTranspose1d': (lambda: nn.ConvTranspose1d(2, 4, 3, 2, 1, 1, 2), (1, 2, 4)),
    'ConvTranspose2d': (lambda: nn.ConvTranspose2d(1, 2, 2, bias=False), (1, 3, 2)),
    'ConvTranspose3d': (lambda: nn.ConvTranspose3d(1, 2, (1, 2, 2)), (1, 2, 2, 2)),
    'BatchNorm3d': (lambda: nn.BatchNorm3d(2), (2, 2, 1, 3, 2)),
    'SyncBatchNorm': (lambda: nn.SyncBatchNorm(2), (2, 2, 3)),
    'FractionalMaxPool2d': (lambda: nn.FractionalMaxPool2d(2, (3, 4)), (1, 2, 4, 5)),
    'FractionalMaxPool3d': (lambda: nn.FractionalMaxPool3d(2, (2, 3, 2)), (2, 3, 4, 3)),
    'CrossMapLRN2d': (lambda: nn.CrossMapLRN2d(3, 0.5), (1, 4, 3, 2)),
    'LazyInstanceNorm1d': (lambda: used(nn.LazyInstanceNorm1d(), (2, 3, 4)), (2, 3, 4)),
    'LazyInstanceNorm2d': (lambda: used(nn.LazyInstanceNorm2d(affine=False), (2, 3, 4, 2)), (2, 3, 4, 2)),
    'LazyInstanceNorm3d': (lambda: used(nn.LazyInstanceNorm3d(), (2, 2, 1, 3, 2)), (2, 2, 1, 3, 2)),
    'InstanceNorm1d': (lambda: nn.InstanceNorm1d(2, 0.5, None, True, True), (2, 2, 4)),
    'InstanceNorm2d': (lambda: nn.InstanceNorm2d(2, affine=True), (2, 2, 3, 2)),
    'InstanceNorm3d': (lambda: nn.InstanceNorm3d(2), (2, 2, 1, 3, 2)),
    'GroupNorm': (lambda: nn.GroupNorm(2, 4, 0.5), (2, 4, 3)),
    'RMSNorm': (lambda: nn.RMSNorm([2, 3], 0.25), (2, 2, 3)),
    'LocalResponseNorm': (lambda: nn.LocalResponseNorm(2, 0.5, k=2.0), (1, 4, 3)),
    'CELU': (lambda: nn.CELU(0.5), (2, 3)),
    'SELU': (nn.SELU, (2, 3)),
    'GLU': (lambda: nn.GLU(0), (2, 3)),
    'Hardshrink': (lambda: nn.Hardshrink(0.25), (2, 3)),
    'Softshrink': (lambda: nn.Softshrink(0.25), (2, 3)),
    'Softmin': (lambda: nn.Softmin(0), (2, 3)),
    'Tanhshrink': (nn.Tanhshrink, (2, 3)),
    'Threshold': (lambda: nn.Threshold(0.5, 3.0), (2, 3)),
    'PReLU': (lambda: nn.PReLU(3, 0.5), (2, 3)),
    'RReLU': (lambda: nn.RReLU(0.25, 0.5).eval(), (2, 3)),
    'Dropout1d': (lambda: nn.Dropout1d(0.25).eval(), (2, 3, 2)),
    'Dropout2d': (lambda: nn.Dropout2d(0.25).eval(), (2, 3, 2, 2)),
    'Dropout3d': (lambda: nn.Dropout3d(0.25).eval(), (1, 2, 2, 2, 2)),
    'AlphaDropout': (lambda: nn.AlphaDropout(0.25).eval(), (2, 3)),
    'FeatureAlphaDropout': (lambda: nn.FeatureAlphaDropout(0.25).eval(), (2, 3)),
    **{f'ConstantPad{n}d': (lambda n=n: getattr(nn, f'ConstantPad{n}d')(1, 0.5), (2, 3, 2, 2, 2)) for n in (1, 2, 3)},
    **{
        f'{kind}Pad{n}d': (lambda kind=kind, n=n: getattr(nn, f'{kind}Pad{n}d')(1), (2,) * (n + 2))
        for kind in ('Circular', 'Reflection', 'Replication', 'Zero') for n in (1, 2, 3)
    },
    'Bilinear': (lambda: nn.Bilinear(2, 3, 4, bias=False), None),
    'CTCLoss': (lambda: nn.CTCLoss(1, zero_infinity=True), None),
    'EmbeddingBag': (lambda: nn.EmbeddingBag(4, 3, mode='sum', padding_idx=-1), None),
    'Upsample': (lambda: nn.Upsample(scale_factor=1.5, mode='bilinear', align_corners=True), (1, 2, 3, 2)),
    'UpsamplingNearest2d': (lambda: nn.UpsamplingNearest2d((4, 5)), (1, 2, 3, 2)),
    'UpsamplingBilinear2d': (lambda: nn.UpsamplingBilinear2d(scale_factor=2.0), (1, 2, 3, 2)),
    'MaxUnpool1d': (lambda: nn.MaxUnpool1d(3, 2, 1), None),
    'MaxUnpool2d': (lambda: nn.MaxUnpool2d((3, 2), 2, (1, 0)), None),
    'MaxUnpool3d': (lambda: nn.MaxUnpool3d(2, (2, 1, 1)), None),
    'Unfold': (lambda: nn.Unfold((2, 3), padding=(0, 1), stride=2), (1, 2, 4, 5)),
    'Fold': (lambda: nn.Fold((4, 5), 2, padding=1, stride=2), (1, 8, 9)),
    'CosineSimilarity': (lambda: nn.CosineSimilarity(0, 0.5), None),
    'PairwiseDistance': (lambda: nn.PairwiseDistance(1.0, keepdim=True), None),
    'CosineEmbeddingLoss': (lambda: nn.CosineEmbeddingLoss(0.5), None),
    'MarginRankingLoss': (lambda: nn.MarginRankingLoss(0.5, reduction='sum'), None),
    'MultiLabelMarginLoss': (nn.MultiLabelMarginLoss, None),
    'GaussianNLLLoss': (lambda: nn.GaussianNLLLoss(full=True, eps=0.5), None),
    'TripletMarginLoss': (lambda: nn.TripletMarginLoss(2.0, swap=True), None),
    'ModuleList': (lambda: nn.ModuleList([nn.Linear(2, 3), nn.ReLU()]), None),
    'ModuleDict': (lambda: nn.ModuleDict({'a': nn.Linear(2, 3), 'b': nn.ReLU()}), None),
    'ParameterList': (lambda: nn.ParameterList([GTorch.ones([2]), GTorch.ones([3])]), None),
    'ParameterDict': (lambda: nn.ParameterDict({'a': GTorch.ones([2])}), None),
    'ReLU6': (lambda: nn.ReLU6(inplace=True), (2, 3)),
    'Mish': (nn.Mish, (2, 3)),
    'ELU': (lambda: nn.ELU(0.5), (2, 3)),
    'Hardsigmoid': (nn.Hardsigmoid, (2, 3)),
    'Hardswish': (nn.Hardswish, (2, 3)),
    'Hardtanh': (lambda: nn.Hardtanh(-0.5, 0.25), (2, 3)),
    'Softplus': (lambda: nn.Softplus(2.0, 10.0), (2, 3)),
    'Softsign': (nn.Softsign, (2, 3)),
    'LogSigmoid': (nn.LogSigmoid, (2, 3)),
    'Softmax2d': (nn.Softmax2d, (1, 2, 2, 2)),
    'Unflatten': (lambda: nn.Unflatten(1, (2, 3)), (2, 6)),
    'PixelShuffle': (lambda: nn.PixelShuffle(2), (1, 4, 2, 3)),
    'PixelUnshuffle': (lambda: nn.PixelUnshuffle(2), (1, 1, 4, 6)),
    'ChannelShuffle': (lambda: nn.ChannelShuffle(2), (1, 4, 2)),
    'RNNCell': (lambda: nn.RNNCell(3, 2, nonlinearity='relu'), (4, 3)),
    'LSTMCell': (lambda: nn.LSTMCell(3, 2, False), (4, 3)),
    'GRUCell': (lambda: nn.GRUCell(3, 2), (4, 3)),
    'RNN': (lambda: nn.RNN(3, 2, 2, 'relu', bidirectional=True), (4, 2, 3)),
    'LSTM': (lambda: nn.LSTM(3, 4, 2, batch_first=True, proj_size=2), (4, 2, 3)),
    'GRU': (lambda: nn.GRU(3, 2, bias=False), (4, 3)),
    'BCELoss': (lambda: nn.BCELoss(WEIGHTS), None),
    'KLDivLoss': (lambda: nn.KLDivLoss(log_target=True), None),
    'SmoothL1Loss': (lambda: nn.SmoothL1Loss(beta=0.5), None),
    'HuberLoss': (lambda: nn.HuberLoss(delta=0.5), None),
    'SoftMarginLoss': (lambda: nn.SoftMarginLoss(reduction='sum'), None),
    'HingeEmbeddingLoss': (lambda: nn.HingeEmbeddingLoss(0.5), None),
    'PoissonNLLLoss': (lambda: nn.PoissonNLLLoss(False, True), None),
    'MultiMarginLoss': (lambda: nn.MultiMarginLoss(2, 0.5, WEIGHTS), None),
    'MultiLabelSoftMarginLoss': (lambda: nn.MultiLabelSoftMarginLoss(WEIGHTS), None),
}


def same(a, b):
    if isinstance(a, tuple):  # of a network, with its states
        return len(a) == len(b) and all(same(*pair) for pair in zip(a, b))
    return a.shape == b.shape and a.dtype == b.dtype and bool((a == b).all())


def same_state(a, b):
    options = {} if isinstance(a, nn.Module) else {'nested': False}
    a, b = a.state_dict(**options), b.state_dict(**options)
    return a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)


def text(module):
    """The text of a size that was given as one number contains one number; that of a copy, one
    for each dimension."""
    return re.sub(r'\((\d+), \1\)', r'\1', repr(module))


def values_of(module):
    lists = (GTorch.Size, GTorch.Factors)
    values = {spec.name: module.get_property(spec.name) for spec in type(module).list_properties()}
    plain = {name: value.get_values() if isinstance(value, lists) else value for name, value in values.items()}
    objects = (GTorch.Tensor, GTorch.Module)
    return {name: value for name, value in plain.items() if not isinstance(value, objects) and value == value}


@tap.case
def every_layer_is_restored():
    names = {name.partition(' ')[0] for name in LAYERS}
    every = {name for name in dir(nn) if isinstance(getattr(nn, name), type)} - {'Module', 'Parameter'}
    every -= {'Buffer', 'NLLLoss2d', 'RNNBase', 'RNNCellBase'}  # former names, and kinds
    assert names == every, names ^ every
    for name, (make, shape) in LAYERS.items():
        layer = make()
        layer.train('Dropout' not in name and name != 'RReLU')  # no random numbers
        layer.requires_grad_(False)
        for how, way in WAYS.items():
            GTorch.manual_seed(1)
            made = way(layer)
            drawn = GTorch.rand(1)
            GTorch.manual_seed(1)
            assert same(drawn, GTorch.rand(1)), f'{how} of {name} takes random numbers'
            where = f'{how} of {name}: {made}, not {layer}'
            assert type(made) is type(layer) and text(made) == text(layer), where
            assert values_of(made) == values_of(layer) and same_state(made, layer), where
            assert [p.requires_grad for p in made.parameters()] == [False] * len(list(layer.parameters())), where
            assert all(type(p) is nn.Parameter for p in made.parameters()), where
            if shape is not None:
                x = GTorch.rand(shape)
                assert same(made(x), layer(x)), where
            shared = [p.data_ptr() == q.data_ptr() for p, q in zip(made.parameters(), layer.parameters())]
            assert shared == [how == 'copy'] * len(shared), where


class Net(GTorch.Module):
    def __init__(self, width=3):
        super().__init__()
        self.first = nn.Linear(2, width)
        self.again = self.first
        self.scale = nn.Parameter(GTorch.ones(width), requires_grad=False)
        self.register_buffer('seen', GTorch.zeros(1))
        self.register_buffer('cache', GTorch.ones(2), persistent=False)
        self.register_buffer('nothing', None)
        self.register_parameter('absent', None)
        self.settings = {'width': width, 'me': self, 'first': self.first}
        self.calls = []

    def forward(self, x):
        return self.first(x) * self.scale


def note_call(module, inputs, _output, *words):
    module.calls.append((len(inputs), *words))


@tap.case
def custom_modules_are_restored():
    net = Net()
    net.eval()
    net.first.weight.grad = GTorch.ones(3, 2)
    for how, way in DEEP.items():
        made = way(net)
        assert type(made) is Net and made is not net and same_state(made, net), how
        assert made.again is made.first and made.first is not net.first, how
        assert made.settings['me'] is made and made.settings['first'] is made.first, how
        assert made.settings['width'] == 3 and made.settings is not net.settings, how
        assert not made.training and not made.scale.requires_grad and made.first.weight.requires_grad, how
        assert made.nothing is None and made.absent is None, how
        assert made.get_member_kind('nothing') == GTorch.MemberKind.BUFFER, how
        assert made.get_member_kind('absent') == GTorch.MemberKind.PARAMETER, how
        assert 'cache' not in made.state_dict() and same(made.cache, net.cache), how
        assert [n for n, _ in made.named_parameters()] == [n for n, _ in net.named_parameters()], how
        x = GTorch.rand(4, 2)
        assert same(made(x), net(x)), how
        made.first.weight.data.fill_(7.0)
        assert not same(made.first.weight, net.first.weight), how
        made.scale = nn.Parameter(GTorch.zeros(3))
        assert bool((made(x) == 0).all()) and not bool((net(x) == 0).all()), how


@tap.case
def hooks_are_pickled_too():
    net = Net()
    number = net.register_forward_hook(note_call, 'a', 'b')
    removed = net.register_forward_hook(note_call, 'removed')
    net.remove_hook(removed)
    for how, way in DEEP.items():
        net.calls.clear()
        made = way(net)
        made(GTorch.rand(1, 2))
        assert made.calls == [(1, 'a', 'b')] and net.calls == [], f'{how}: {made.calls} {net.calls}'
    assert net.remove_hook(number)
    made = copy.deepcopy(net)
    made(GTorch.rand(1, 2))
    assert made.calls == []
    net.register_forward_hook(lambda *_: None)
    copy.deepcopy(net)
    raises((pickle.PicklingError, AttributeError), 'lambda', pickle.dumps, net)


@tap.case
def parameters_and_tensors_stay_what_they_are():
    for how, way in WAYS.items():
        for wanted in (True, False):
            p = nn.Parameter(GTorch.ones(2), requires_grad=wanted)
            p.grad = GTorch.ones(2) if wanted else None
            made = way(p)
            assert type(made) is nn.Parameter and made.requires_grad == wanted and same(made, p), how
            assert made.is_leaf and made.grad is None, how
            assert (made.data_ptr() == p.data_ptr()) == (how == 'copy'), how
            x = GTorch.ones(2).requires_grad_(wanted)
            made = way(x)
            assert type(made) is type(x) and made.requires_grad == wanted and same(made, x), how
    x = GTorch.ones(2).requires_grad_()
    (x * 3).sum().backward()
    made = copy.deepcopy(x)
    assert same(made.grad, x.grad) and made.grad.data_ptr() != x.grad.data_ptr()
    p = nn.Parameter(GTorch.ones(2))
    a, b = copy.deepcopy([p, p])
    assert a is b
    raises(RuntimeError, 'detach', copy.deepcopy, x * 2)
    assert through_pickle(x * 2).is_leaf
    for dtype in ('bfloat16', 'complex64', 'bool', 'int8'):
        y = GTorch.ones(2, 0, 3).to(dtype)
        assert through_pickle(y).shape == (2, 0, 3) and through_pickle(y).dtype == y.dtype
        y = GTorch.ones(2, 3).to(dtype).T
        assert same(through_pickle(y), y) and same(copy.deepcopy(y), y)


def train(net, optimizer, n):
    for i in range(n):
        optimizer.zero_grad()
        net(GTorch.full((1, 2), i + 1.0)).sum().backward()
        optimizer.step()


@tap.case
def optimizers_continue():
    for make in (
        lambda p: GTorch.optim.SGD([{'params': p[:1], 'lr': 0.5}, {'params': p[1:]}], lr=0.1, momentum=0.9),
        lambda p: GTorch.optim.Adam(p, lr=0.1, betas=(0.5, 0.75), amsgrad=True),
        lambda p: GTorch.optim.AdamW(p, weight_decay=0.5),
    ):
        net = nn.Linear(2, 3)
        optimizer = make(list(net.parameters()))
        for n in (0, 3):
            train(net, optimizer, n)
            for how, way in DEEP.items():
                other, its = way((net, optimizer))
                assert type(its) is type(optimizer) and same_state(its, optimizer), how
                params = [p.data_ptr() for g in its.get_param_groups() for p in g['params']]
                assert params == [p.data_ptr() for p in other.parameters()], how
                settings = [[(g['lr'], g['weight_decay']) for g in o.get_param_groups()] for o in (its, optimizer)]
                assert settings[0] == settings[1], f'{how}: {settings}'
                assert values(its) == values(optimizer), f'{how}: {values(its)}, not {values(optimizer)}'
                third, its_third = copy.deepcopy((net, optimizer))
                train(other, its, 2)
                train(third, its_third, 2)
                assert same_state(other, third) and not same_state(other, net), how
    group = optimizer.get_param_groups()[0]
    for how, way in WAYS.items():
        made = way(group)
        assert type(made) is type(group) and made['lr'] == group['lr'] and len(made['params']) == 2, how


def values(owner):
    found = {spec.name: owner.get_property(spec.name) for spec in type(owner).list_properties()}
    return {name: value for name, value in found.items() if isinstance(value, (bool, int, float))}


class Cube(GTorch.Function):
    def forward(self, context, x):
        return x * x * x * self.factor

    def backward(self, context, grad):
        return grad


@tap.case
def other_values_are_restored():
    generator = GTorch.Generator.new()
    generator.set_seed(5)
    GTorch.rand(3, generator=generator)
    scaler = GTorch.GradScaler(init_scale=8.0, growth_interval=3)
    cube = Cube()
    cube.factor = 2.0
    for how, way in WAYS.items():
        made, again = way(generator), way(generator)
        assert same(GTorch.rand(3, generator=made), GTorch.rand(3, generator=again)), how
        assert not made.get_state().equal(generator.get_state()), how
        assert way(GTorch.Device('cpu')) == GTorch.Device('cpu'), how
        assert way(GTorch.float16) is GTorch.float16 and way(GTorch.rand(2, 3).shape) == (2, 3), how
        assert way(scaler).state_dict() == scaler.state_dict(), how
        made = way(cube)
        assert type(made) is Cube and made(GTorch.full((1,), 2.0)).item() == 16, how


@tap.case
def objects_of_devices_raise():
    class Keep(Cube):
        def forward(self, context, x):
            self.context = context
            return x.clone()

    function = Keep()
    function(GTorch.ones(1))
    scope = GTorch.Scope.new()
    for value in (
        GTorch.Event(),
        GTorch.Stream('cpu'),
        GTorch.Timer(),
        GTorch.Device('cpu').get_allocator(),
        GTorch.MemoryPool('cpu'),
        GTorch.DeviceManager.get_default(),
        GTorch.cuda.GraphedModule(nn.Linear(1, 1), [GTorch.ones(1, 1)])
        if hasattr(GTorch.cuda, 'GraphedModule')
        else GTorch.GraphedModule(nn.Linear(1, 1), [GTorch.ones(1, 1)]),
        function.context,
        scope,
    ):
        for how, way in WAYS.items():
            raises((TypeError, pickle.PicklingError), '', way, value)
    scope.end()
    holder = nn.Linear(1, 1)
    holder.__dict__['_event'] = GTorch.Event()
    for way in DEEP.values():
        raises(TypeError, '', way, holder)


@tap.case
def another_process_reads_it():
    values = {
        'module': nn.Sequential(nn.Linear(2, 3), nn.LayerNorm((3,)), nn.Dropout(0.5)),
        'parameter': nn.Parameter(GTorch.ones(2)),
        'optimizer': GTorch.optim.Adam(nn.Linear(1, 1).parameters()),
        'generator': GTorch.Generator.new(),
        'dtype': GTorch.bfloat16,
        'device': GTorch.Device('cpu'),
    }
    for name, value in values.items():
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'pickle'
            path.write_bytes(pickle.dumps(value))
            program = (
                'import pickle, gi; gi.require_version("GTorch", "1"); '
                f'made = pickle.load(open({str(path)!r}, "rb")); print(type(made).__name__)'
            )
            done = subprocess.run(
                [sys.executable, '-c', program], capture_output=True, text=True, env=os.environ, check=False
            )
        assert done.returncode == 0 and done.stdout.strip() == type(value).__name__, f'{name}: {done.stderr}'


@tap.case
def deep_copies_share_memory_where_the_originals_do():
    x = GTorch.arange(6.0)
    for given, other in (((x, x[1:]), 1), ((x[1:], x), 1), ((x[::2], x.view(2, 3)), 2), ((x, x.detach()), 1)):
        a, b = copy.deepcopy(given)
        assert (a.tolist(), b.tolist()) == tuple(one.tolist() for one in given)
        assert a.shares_storage(b) and not a.shares_storage(x) and a.stride() == given[0].stride()
        a.fill_(9)
        assert 9 in b.flatten().tolist() and 9 not in x.tolist(), other
    a, b = copy.deepcopy((x, GTorch.arange(6.0)))
    assert not a.shares_storage(b)

    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer('all', GTorch.zeros(4))
            self.register_buffer('some', self.all[1:])
            self.weight = nn.Parameter(GTorch.zeros(2))
            self.alias = self.weight.detach()

    made = copy.deepcopy(Shared())
    made.all.fill_(1)
    with GTorch.no_grad():
        made.weight.fill_(2)
    assert (made.some.tolist(), made.alias.tolist()) == ([1.0] * 3, [2.0] * 2)
    assert made.weight.requires_grad and made.weight.is_leaf


@tap.case
def schedules_are_copied_with_their_optimizer():
    for way in DEEP.values():
        net = nn.Linear(2, 2)
        optimizer = GTorch.optim.SGD(net.parameters(), lr=1.0)
        schedule = GTorch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        for _ in range(3):
            optimizer.step()
            schedule.step()
        made_optimizer, made = way((optimizer, schedule))
        assert made.optimizer is made_optimizer and made_optimizer is not optimizer
        assert made.last_epoch == 3 and made.get_last_lr() == schedule.get_last_lr() == [0.5]
        assert (made.step_size, made.gamma, made.base_lrs) == (2, 0.5, [1.0])
        for one in (schedule, made):
            one.step()
        assert made.get_last_lr() == schedule.get_last_lr() == [0.25] and made_optimizer.lr == 0.25


@tap.case
def what_belongs_to_a_device_is_not_copied():
    for made in (GTorch.Stream('cpu'), GTorch.Event(), GTorch.CUDAGraph(), GTorch.Timer()):
        for way in WAYS.values():
            try:
                way(made)
            except TypeError as error:
                assert f'create another {type(made).__name__}' in str(error), error
            else:
                raise AssertionError(f'{type(made).__name__} was copied')


if __name__ == '__main__':
    tap.main()
