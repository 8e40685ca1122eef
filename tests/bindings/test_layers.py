#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every layer with the samples of its row, and with every argument of PyTorch's constructor."""

import copy
import json
import math
import os
import pathlib
import pickle
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402

nn = GTorch.nn
SIGNATURES = json.loads((HERE / 'layer-signatures.json').read_text('utf-8'))['layers']
TABLE = json.loads(pathlib.Path(os.environ['GTORCH_LAYERS']).read_text('utf-8'))
NAMES = {
    'nn': nn, 'transforms': GTorch.transforms, 'GTorch': GTorch, 'nan': float('nan'), 'inf': float('inf'),
    'tensor': lambda n: GTorch.ones(n),
}


def samples(key='samples'):
    for name, row in TABLE.items():
        for sample in row[key]:
            yield name, sample


def samples_with_inputs():
    """The samples of layers but those whose classes are written by hand."""
    return ((name, sample) for name, sample in samples() if sample['inputs'])


def made(name, sample):
    space = TABLE[name].get('space', 'nn')
    return eval(f'{space}.{name}({sample["new"]})', NAMES)


def waves(sizes, shift=0):
    n = GTorch.ones(sizes).numel() if sizes else 1
    return GTorch.arange(1 + shift, n + 1 + shift, dtype=GTorch.float32).sin().reshape(sizes)


def integers(sizes, limit):
    n = GTorch.ones(sizes).numel()
    return GTorch.tensor([(5 * i + 2) % limit for i in range(n)]).reshape(sizes)


def inputs_of(sample):
    """Returns the tensors that the layer gets; those behind the first one are shifted waves."""
    found = []
    for i, given in enumerate(sample['inputs']):
        sizes, kind = given['shape'], given['kind']
        values = integers(sizes, given['limit']) if kind == 'integers' else waves(sizes, 7 * i)
        if kind == 'positive':
            values = values.abs() + 0.125
        if kind == 'logs':
            values = values.log_softmax(-1)
        found.append(values.sign() if kind == 'signs' else values)
    return found


def run(layer, sample):
    output = layer(*inputs_of(sample))
    return output[0] if isinstance(output, tuple) else output  # without the states of a network


def required(name):
    """Returns values for the arguments that have no default."""
    positional, named = TABLE[name]['samples'][0]['positional'], TABLE[name]['samples'][0]['named']
    keys = [arg[0] for arg in SIGNATURES[name]]
    values = {**dict(zip(keys, positional)), **named}
    return {arg[0]: values[arg[0]] for arg in SIGNATURES[name] if len(arg) == 1}


def plain(value):
    """Reduces (1, 1) to 1, and a default dtype or device to None."""
    if isinstance(value, tuple) and len(set(value)) == 1:
        return value[0]
    return value


@tap.case
def samples_print_as_in_pytorch():
    for name, sample in samples():
        assert repr(made(name, sample)) == sample['text'], (repr(made(name, sample)), sample['text'])


@tap.case
def samples_compute_and_carry_their_state():
    n = 0
    for name, sample in samples_with_inputs():
        one, other = made(name, sample), made(name, sample)
        run(one, sample)  # changes the running statistics
        other.load_state_dict(one.state_dict())
        one.eval(), other.eval()
        first, second = run(one, sample), run(other, sample)
        assert first.shape == second.shape and first.tolist() == second.tolist(), (name, sample)
        n += 1
    assert n > 45, n


def lazy_samples():
    return ((name, sample) for name, sample in samples_with_inputs() if name.startswith('Lazy'))


@tap.case
def lazy_layers_become_ordinary_ones():
    n = 0
    for name, sample in lazy_samples():
        layer = made(name, sample)
        assert isinstance(layer, getattr(nn, name[4:])) and type(layer) is getattr(nn, name), name
        names = list(layer.state_dict())
        copies = [copy.deepcopy(layer), layer]
        for one in copies:
            run(one, sample)
            assert not one.has_uninitialized_params()
            assert repr(one).startswith(f'{name[4:]}('), repr(one)
            assert list(one.state_dict()) == names
        again = copy.deepcopy(layer)
        assert repr(again) == repr(layer) and run(again.eval(), sample).equal(run(layer.eval(), sample)), name
        n += 1
    assert n > 25, n


class Doubled(nn.LazyLinear):
    def forward(self, x):
        return 2 * super().forward(x)


@tap.case
def classes_of_the_program_may_be_lazy():
    layer = Doubled(4)
    assert layer(GTorch.ones(1, 2)).shape == (1, 4)
    assert repr(layer) == 'Doubled(in_features=2, out_features=4, bias=True)', layer


@tap.case
def waiting_parameters_are_refused():
    layer = nn.LazyLinear(3)
    assert GTorch.is_lazy(layer.weight) and layer.has_uninitialized_params()
    for call in (
        lambda: GTorch.optim.SGD(layer.parameters(), lr=0.1),
        lambda: layer.weight + 1,
        lambda: layer.weight.tolist(),
        lambda: pickle.dumps(layer),
        lambda: nn.Linear(2, 3).load_state_dict(layer.state_dict()),
    ):
        try:
            call()
        except GLib.Error as error:
            assert 'has no elements yet' in str(error), error
        else:
            raise AssertionError('a parameter without elements was used')


@tap.case
def bad_arguments_raise_and_are_named():
    for name, sample in samples('refuse'):
        try:
            layer = made(name, sample)
        except (GLib.Error, TypeError, ValueError) as error:
            assert name in str(error), (name, sample['new'], error)
        else:
            raise AssertionError(f'{name}({sample["new"]}) gave {layer}')


@tap.case
def arguments_are_those_of_pytorch_in_its_order():
    own = sorted(name for name, row in TABLE.items() if 'space' not in row)  # those of torch.nn
    assert list(SIGNATURES) == own, set(SIGNATURES) ^ set(own)
    for name, signature in SIGNATURES.items():
        # those that are given by name alone are of later releases
        by_position = [arg['name'] for arg in TABLE[name]['args'] if 'named' not in arg]
        assert [arg[0] for arg in signature] == by_position, name


@tap.case
def every_argument_may_be_given_by_name_and_by_position():
    n = 0
    for name, signature in SIGNATURES.items():
        cls, given = getattr(nn, name), required(name)
        everything = {arg[0]: given.get(arg[0], arg[-1]) for arg in signature}
        text = repr(cls(**given))
        for key, value in everything.items():
            assert repr(cls(**{**given, key: value})) == text, (name, key)
            n += 1
        assert repr(cls(*everything.values())) == text, name
        if not TABLE[name]['any']:
            for call in (lambda: cls(**given, no_such=1), lambda: cls(*everything.values(), 1)):
                try:
                    call()
                except TypeError:
                    continue
                raise AssertionError(name)
    assert n > 80, n


# Arguments whose attributes are something else: modules, and sizes that are always numbers.
OTHERS = ('activation', 'custom_encoder', 'custom_decoder', 'kdim', 'vdim')


@tap.case
def arguments_have_the_defaults_of_pytorch():
    for name, signature in SIGNATURES.items():
        layer = getattr(nn, name)(**required(name))
        refused = {arg['name']: arg for arg in TABLE[name]['args'] if arg['kind'] == 'refused'}
        for key, default in (arg for arg in signature if len(arg) == 2):
            if key in ('device', 'dtype', 'bias', *OTHERS) or isinstance(getattr(layer, key, None), GTorch.Module):
                continue
            if key in refused:
                assert refused[key]['default'] == default, (name, key)
            elif key == 'stride' and default is None:
                assert layer.stride == (None if name.startswith('LPPool') else layer.kernel_size), name
            elif default is None and getattr(layer, key) is False:
                assert getattr(nn, name)(**required(name), **{key: None}), (name, key)
            else:
                assert plain(getattr(layer, key)) == default, (name, key, getattr(layer, key))
        if 'bias' in dict((arg[0], 1) for arg in signature):
            plain_bias = getattr(nn, name)(**required(name), bias=False).bias
            if isinstance(layer, nn.Module) and isinstance(layer.bias, bool):  # of a network, which has several
                assert layer.bias and plain_bias is False, name
            else:
                assert layer.bias is not None and plain_bias is None, name


@tap.case
def copies_print_like_the_original():
    n = 0
    for name, sample in samples():
        layer = made(name, sample)
        copies = [copy.copy(layer), copy.deepcopy(layer)]
        if not layer.has_uninitialized_params():
            copies.append(pickle.loads(pickle.dumps(layer)))
        assert {repr(one) for one in copies} == {sample['text']}, (sample['text'], copies)
        n += len(copies)
    assert n > 120, n


@tap.case
def sizes_are_read_as_they_were_given():
    n = 0
    for name, sample in samples():
        layer = made(name, sample)
        given = dict(zip((arg['name'] for arg in TABLE[name]['args']), sample['positional']))
        for arg in TABLE[name]['args']:
            if arg['kind'] != 'size' or 'rule' in arg:
                continue
            value = {**given, **sample['named']}.get(arg['name'], arg.get('default'))
            value = tuple(value) if isinstance(value, list) else value
            got = getattr(layer, arg['name'])
            if arg['name'] == 'cutoffs':
                value = [*value, layer.n_classes]
            # where PyTorch expands a number to a tuple at once
            is_spread = 'Pool' not in name or name == 'AvgPool1d'
            spread = (value,) * max(arg.get('length', 0), 1)
            assert value is None or got == value or got == spread and is_spread, (name, got, value)
            n += value is not None
    assert n > 20, n
    assert nn.MaxPool2d(2).stride == 2 and nn.MaxPool2d((2, 3)).stride == (2, 3)


@tap.case
def unsupported_arguments_raise_with_their_names():
    n = 0
    for name, row in TABLE.items():
        for arg in (arg for arg in row['args'] if arg['kind'] == 'refused'):
            value = not arg['default'] if isinstance(arg['default'], bool) else 3.0
            try:
                getattr(nn, name)(**required(name), **{arg['name']: value})
            except TypeError as error:
                assert arg['name'] in str(error) and arg['why'] in str(error), error
                n += 1
            else:
                raise AssertionError(f'{name}: {arg["name"]}')
    assert n > 10, n


@tap.case
def parameters_are_created_with_the_given_device_and_dtype():
    n = 0
    for name, signature in SIGNATURES.items():
        if not any(arg[0] == 'dtype' for arg in signature):
            continue
        affine = {'affine': True} if any(arg[0] == 'affine' for arg in signature) else {}
        layer = getattr(nn, name)(**required(name), **affine, device='cpu', dtype=GTorch.float64)
        assert {p.dtype for p in layer.parameters()} == {GTorch.float64}
        assert {p.device.type for p in layer.parameters()} == {'cpu'}
        n += 1
    assert n == 45, n


@tap.case
def the_same_seed_gives_the_same_numbers_in_every_dtype():
    for name in ('Linear', 'Conv2d', 'Embedding'):
        GTorch.manual_seed(3)
        one = getattr(nn, name)(**required(name))
        GTorch.manual_seed(3)
        other = getattr(nn, name)(**required(name), dtype=GTorch.float64)
        assert one.weight.double().tolist() == other.weight.tolist()


@tap.case
def strings_and_none_are_valid_settings():
    conv = nn.Conv2d(1, 1, 3, padding='same', padding_mode='circular')
    assert conv.padding == 'same' and conv.padding_mode == 'circular' and conv.kernel_size == (3, 3)
    assert conv(GTorch.ones(1, 5, 7)).shape == (1, 5, 7)
    conv.padding_mode = 'zeros'
    assert conv.padding_mode == 'zeros'
    norm = nn.BatchNorm1d(2, momentum=None)
    assert norm.momentum is None
    norm(GTorch.tensor([[1.0, 2], [3, 4]]))
    norm(GTorch.tensor([[5.0, 6], [7, 8]]))
    assert norm.running_mean.tolist() == [4, 5]
    norm.momentum = 0.5
    assert norm.momentum == 0.5
    table = nn.Embedding(3, 2)
    assert table.padding_idx is None
    table.padding_idx = 1
    assert table.padding_idx == 1
    soft = nn.Softmax()
    assert soft.dim is None and abs(soft(waves([2, 3])).sum(1)[0].item() - 1) < 1e-6
    assert nn.LayerNorm([3]).normalized_shape == (3,)


BAD = [
    lambda: GTorch.ones([]), lambda: GTorch.ones([0]), lambda: GTorch.ones([3, 7]), lambda: GTorch.ones([2] * 6),
    lambda: GTorch.ones([2, 3, 4], dtype=GTorch.int8), lambda: GTorch.ones([2, 3], dtype=GTorch.bool),
    lambda: GTorch.ones([2, 3], dtype=GTorch.complex64), lambda: GTorch.ones([2, 3, 5, 4], dtype=GTorch.int64),
]


@tap.case
def errors_name_the_layer_or_a_public_operation():
    n_errors, named = 0, set()
    for name, sample in samples_with_inputs():
        good = inputs_of(sample)
        for first in [*BAD, lambda: good[0]]:
            for second in BAD if len(good) > 1 else [None]:
                inputs = [first()] + ([second()] if second else []) + good[2:]
                try:
                    made(name, sample)(*inputs)
                except GLib.Error as error:
                    n_errors += 1
                    named.add((name, error.message.split(':')[0]))
    assert n_errors > 100, n_errors
    public = {op for _name, op in named if hasattr(GTorch.Tensor, op) or hasattr(GTorch, op)}
    wrong = {(name, op) for name, op in named if op not in (name, *public)}
    assert not wrong, sorted(wrong)
    assert ('CrossEntropyLoss', 'cross_entropy') in named


# What the layers and losses compute, written down for one number or a list of numbers, with Python's floats.

def softplus(x):
    return max(x, 0) + math.log1p(math.exp(-abs(x)))


ELEMENTS = {
    'ReLU6()': lambda x: min(max(x, 0), 6),
    'Mish()': lambda x: x * math.tanh(softplus(x)),
    'ELU(0.5)': lambda x: x if x > 0 else 0.5 * (math.exp(x) - 1),
    'Hardsigmoid()': lambda x: min(max(x + 3, 0), 6) / 6,
    'Hardswish()': lambda x: x * min(max(x + 3, 0), 6) / 6,
    'Hardtanh(-0.5, 2.0)': lambda x: min(max(x, -0.5), 2),
    'Softplus(2.0, 3.0)': lambda x: x if 2 * x > 3 else softplus(2 * x) / 2,
    'Softsign()': lambda x: x / (1 + abs(x)),
    'LogSigmoid()': lambda x: -softplus(-x),
    'CELU(0.5)': lambda x: x if x > 0 else 0.5 * math.expm1(x / 0.5),
    'SELU()': lambda x: 1.0507009873554805 * (x if x > 0 else 1.6732632423543772 * math.expm1(x)),
    'Hardshrink(0.75)': lambda x: 0 if abs(x) <= 0.75 else x,
    'Softshrink(0.75)': lambda x: math.copysign(max(abs(x) - 0.75, 0), x),
    'Tanhshrink()': lambda x: x - math.tanh(x),
    'Threshold(0.5, -3)': lambda x: x if x > 0.5 else -3,
    'PReLU(init=0.5, dtype=GTorch.float64)': lambda x: x if x > 0 else x / 2,
    'RReLU(0.5, 0.5)': lambda x: x if x > 0 else x / 2,
}
LOSSES = {
    'BCELoss': lambda x, y: -y * math.log(x) - (1 - y) * math.log(1 - x),
    'KLDivLoss': lambda x, y: y * (math.log(y) - x),
    'SmoothL1Loss(beta=0.25)': lambda x, y: 2 * (x - y) ** 2 if abs(x - y) < 0.25 else abs(x - y) - 0.125,
    'HuberLoss(delta=0.25)': lambda x, y: (x - y) ** 2 / 2 if abs(x - y) < 0.25 else 0.25 * (abs(x - y) - 0.125),
    'PoissonNLLLoss': lambda x, y: math.exp(x) - y * x,
    'PoissonNLLLoss(False, eps=0.5)': lambda x, y: x - y * math.log(x + 0.5),
    'MultiLabelSoftMarginLoss': lambda x, y: y * softplus(-x) + (1 - y) * softplus(x),
}
SIGNED = {
    'SoftMarginLoss': lambda x, y: softplus(-y * x),
    'HingeEmbeddingLoss(0.5)': lambda x, y: x if y == 1 else max(0.5 - x, 0),
}


def called(text):
    return eval(f'nn.{text}' + ('' if '(' in text else '()'), NAMES)


def agrees(found, wanted, what):
    for one, other in zip(found, wanted, strict=True):
        assert abs(one - other) <= 1e-14 * (1 + abs(other)), (what, found, wanted)


@tap.case
def elements_follow_the_formulas():
    x = GTorch.linspace(-7.5, 7.75, 62, dtype=GTorch.float64)
    for text, function in ELEMENTS.items():
        agrees(called(text)(x).tolist(), map(function, x.tolist()), text)


@tap.case
def losses_follow_the_formulas():
    x = GTorch.tensor([0.125, 0.875, 0.5, 0.25, 0.75, 0.0625], dtype=GTorch.float64)
    targets = {1: [0.5, 0.75, 0.25, 0.375, 1.0, 0.125], -1: [1.0, -1.0, -1.0, 1.0, 1.0, -1.0]}
    for losses, values in ((LOSSES, targets[1]), (SIGNED, targets[-1])):
        y = GTorch.tensor(values, dtype=GTorch.float64)
        for text, function in losses.items():
            each = [function(*pair) for pair in zip(x.tolist(), values)]
            mean = sum(each) / len(each)
            agrees([called(text)(x, y).item()], [mean], text)
            loss = called(text.rstrip(')') + (', ' if '(' in text else '(') + "reduction='none')")
            agrees(loss(x, y).flatten().tolist(), [mean] if 'MultiLabel' in text else each, text)


@tap.case
def poisson_losses_have_stirlings_formula():
    x, y = (GTorch.tensor(values, dtype=GTorch.float64) for values in ([0.5, 0.25, -1.0], [0.5, 1.0, 3.0]))
    extra = nn.PoissonNLLLoss(full=True, reduction='none')(x, y) - nn.PoissonNLLLoss(reduction='none')(x, y)
    agrees(extra.tolist(), [0, 0, 3 * math.log(3) - 3 + math.log(6 * math.pi) / 2], 'full')


@tap.case
def margins_of_classes_follow_the_formula():
    rows, labels, weight = [[0.25, -0.5, 1.0], [0.75, 0.5, -1.25]], [2, 1], [0.5, 2.0, 4.0]
    for p in (1, 2):
        loss = nn.MultiMarginLoss(p, 0.75, GTorch.tensor(weight, dtype=GTorch.float64), reduction='none')
        wanted = [
            weight[y] * sum(max(0, 0.75 - row[y] + x) ** p for i, x in enumerate(row) if i != y) / 3
            for row, y in zip(rows, labels)
        ]
        agrees(loss(GTorch.tensor(rows, dtype=GTorch.float64), GTorch.tensor(labels)).tolist(), wanted, p)
    grad = GTorch.tensor([1.0, 0.0], requires_grad=True)
    GTorch.nn.MultiMarginLoss()(grad, GTorch.tensor(0)).backward()
    assert grad.grad.tolist() == [0, 0], 'at the margin itself the gradient is 0'


def normal(values, eps):
    mean = sum(values) / len(values)
    var = sum((value - mean) ** 2 for value in values) / len(values)
    return [(value - mean) / math.sqrt(var + eps) for value in values], mean, var


@tap.case
def normalisations_follow_the_formulas():
    x = GTorch.arange(0, 24, dtype=GTorch.float64).sin().reshape(2, 4, 3)
    flat, weight = x.flatten().tolist(), GTorch.tensor([0.5, -1.0, 2.0, 3.0], dtype=GTorch.float64)
    group = nn.GroupNorm(2, 4, 0.25, dtype=GTorch.float64)
    instance = nn.InstanceNorm1d(4, 0.25, 0.5, True, True, dtype=GTorch.float64)
    for layer, n in ((group, 6), (instance, 3)):
        with GTorch.no_grad():
            layer.weight.copy_(weight)
            layer.bias.copy_(weight * 2)
        wanted = sum((normal(flat[i:i + n], 0.25)[0] for i in range(0, 24, n)), [])
        wanted = [(value + 2) * weight.tolist()[i // 3 % 4] for i, value in enumerate(wanted)]
        agrees(layer(x).flatten().tolist(), wanted, layer)
    rows = [normal(flat[i:i + 3], 0)[1:] for i in range(0, 24, 3)]
    agrees(instance.running_mean.tolist(), [(rows[c][0] + rows[c + 4][0]) / 4 for c in range(4)], 'mean')
    agrees(instance.running_var.tolist(), [0.5 + (rows[c][1] + rows[c + 4][1]) * 3 / 8 for c in range(4)], 'var')
    instance.eval()
    mean, var = instance.running_mean.tolist(), instance.running_var.tolist()
    wanted = [(value - mean[i // 3 % 4]) / math.sqrt(var[i // 3 % 4] + 0.25) for i, value in enumerate(flat)]
    wanted = [(value + 2) * weight.tolist()[i // 3 % 4] for i, value in enumerate(wanted)]
    agrees(instance(x).flatten().tolist(), wanted, instance)
    agrees(instance(x[0]).flatten().tolist(), wanted[:12], 'without a batch')
    for eps, least in ((0.25, 0.25), (None, sys.float_info.epsilon)):
        roots = [math.sqrt(sum(v * v for v in flat[i:i + 3]) / 3 + least) for i in range(0, 24, 3)]
        found = nn.RMSNorm(3, eps, dtype=GTorch.float64)(x).flatten().tolist()
        agrees(found, [value / roots[i // 3] for i, value in enumerate(flat)], 'RMSNorm')
    for size in (1, 2, 3, 5):
        wanted = []
        for i, value in enumerate(flat):
            row, channel, place = i // 12, i // 3 % 4, i % 3
            near = range(max(channel - size // 2, 0), min(channel + (size - 1) // 2 + 1, 4))
            squares = sum(flat[row * 12 + c * 3 + place] ** 2 for c in near) / size
            wanted.append(value / (2 + 0.5 * squares) ** 0.75)
        agrees(nn.LocalResponseNorm(size, 0.5, k=2.0)(x).flatten().tolist(), wanted, size)


@tap.case
def shuffles_move_the_elements_that_pytorch_moves():
    x = GTorch.arange(16).reshape(1, 8, 1, 2)
    up = nn.PixelShuffle(2)(x)
    assert up.tolist() == [[[[0, 2, 1, 3], [4, 6, 5, 7]], [[8, 10, 9, 11], [12, 14, 13, 15]]]], up
    assert nn.PixelUnshuffle(2)(up).tolist() == x.tolist()
    y = nn.ChannelShuffle(2)(GTorch.arange(8).reshape(1, 4, 2))
    assert y.tolist() == [[[0, 1], [4, 5], [2, 3], [6, 7]]], y


@tap.case
def distances_follow_the_formulas():
    f = GTorch.nn.functional
    a, b, c = (GTorch.tensor(v, dtype=GTorch.float64) for v in ([3.0, 4.0], [-1.0, 2.0], [0.5, -2.0]))
    near, far, other = math.hypot(4, 2), math.hypot(2.5, 6), math.hypot(1.5, 4)
    agrees([f.pairwise_distance(a, b, eps=0.0).item()], [near], 'pairwise_distance')
    agrees(f.normalize(a, dim=0).tolist(), [0.6, 0.8], 'normalize')
    cosine = 5 / (5 * math.sqrt(5))
    agrees([f.cosine_similarity(a, b, dim=0).item()], [cosine], 'cosine_similarity')
    assert f.cosine_similarity(a * 0, b, dim=0).item() == 0
    cosine = 5 / math.sqrt((25 + 1e-12) * (5 + 1e-12))
    for sign, wanted in ((1.0, 1 - cosine), (-1.0, cosine - 0.25), (0.0, 0)):
        found = f.cosine_embedding_loss(a, b, GTorch.tensor(sign, dtype=GTorch.float64), 0.25).item()
        agrees([found], [wanted], 'cosine_embedding_loss')
    agrees([f.triplet_margin_loss(a, b, c, 4.0, eps=0.0).item()], [4 + near - far], 'triplet_margin_loss')
    agrees([f.triplet_margin_loss(a, b, c, 4.0, eps=0.0, swap=True).item()], [4 + near - other], 'swap')
    y = GTorch.tensor([1.0, -1.0], dtype=GTorch.float64)
    agrees(f.margin_ranking_loss(a, b, y, 0.5, reduction='none').tolist(), [0, 2.5], 'margin_ranking_loss')
    var = GTorch.tensor([0.25, 0.0], dtype=GTorch.float64)
    wanted = [(math.log(0.25) + 16 / 0.25) / 2, (math.log(0.125) + 4 / 0.125) / 2]
    agrees(f.gaussian_nll_loss(a, b, var, eps=0.125, reduction='none').tolist(), wanted, 'gaussian_nll_loss')
    weight = GTorch.arange(8, dtype=GTorch.float64).reshape(2, 2, 2)
    wanted = [sum(a.tolist()[i] * b.tolist()[j] * (4 * o + 2 * i + j) for i in (0, 1) for j in (0, 1)) for o in (0, 1)]
    agrees(f.bilinear(a, b, weight).tolist(), wanted, 'bilinear')


@tap.case
def layers_take_several_tensors_by_position_and_by_name():
    x, y = GTorch.tensor([[3.0, 4.0]]), GTorch.tensor([[4.0, 3.0]])
    layer, calls = nn.CosineSimilarity(), []
    assert layer(x, y).tolist() == layer(x1=x, x2=y).tolist() == layer.forward(x, x2=y).tolist()
    assert abs(layer(x, y).item() - 0.96) < 1e-6
    assert nn.PairwiseDistance(1, 0.0)(x, y).item() == 2
    layer.register_forward_hook(lambda module, inputs, output: calls.append(len(inputs)))
    assert abs(layer(x, y).item() - 0.96) < 1e-6 and calls == [2]
    loss = nn.MarginRankingLoss(0.5)
    assert isinstance(loss, GTorch.Loss) and loss.reduction == 'mean'
    assert loss(x, y, target=GTorch.ones([1, 2])).item() == 0.75
    for call, text in (
        (lambda: layer.forward(x), 'needs x2'), (lambda: layer.forward(x, y, y), 'takes 2 arguments'),
        (lambda: loss(x, y), 'needs target'), (lambda: layer.forward(x, 1.0), 'x2 must be a tensor, not float'),
        (lambda: layer(x, y, x1=x), 'x1 twice'), (lambda: layer(x, x3=y), "no argument 'x3'"),
    ):
        try:
            call()
        except TypeError as error:
            assert text in str(error), error
        else:
            raise AssertionError(text)
    try:
        layer(x)
    except GLib.Error as error:
        assert error.message == 'CosineSimilarity: forward takes 2 tensors, x1 and x2; 1 were given', error
    else:
        raise AssertionError


@tap.case
def derived_layers_of_several_tensors_call_their_parent():
    class Near(nn.TripletMarginLoss):
        def forward(self, anchor, positive, negative):
            return super().forward(anchor, positive, negative) * 2

    x = GTorch.ones([2, 3])
    near = Near(margin=3.0)
    assert near(x, x, x).item() == 6
    assert near.forward_many([x, x, x]).item() == 6


@tap.case
def labels_end_at_the_first_negative_number():
    f = GTorch.nn.functional.multilabel_margin_loss
    x = [[0.25, -0.5, 1.0, 0.75], [2.5, 0.5, -1.25, 0.0]]
    labels = [[2, 0, -1, 1], [1, 1, 3, -1]]
    wanted = []
    for row, own in zip(x, labels):
        own = own[: own.index(-1)]
        other = [value for i, value in enumerate(row) if i not in own]
        wanted.append(sum(max(0, 1 - row[i] + value) for i in own for value in other) / 4)
    scores = GTorch.tensor(x, dtype=GTorch.float64, requires_grad=True)
    agrees(f(scores, GTorch.tensor(labels), reduction='none').tolist(), wanted, 'multilabel_margin_loss')
    agrees([nn.MultiLabelMarginLoss()(scores, GTorch.tensor(labels)).item()], [sum(wanted) / 2], 'mean')
    nn.MultiLabelMarginLoss(reduction='sum')(scores, GTorch.tensor(labels)).backward()
    agrees(sum(scores.grad.tolist(), []), [-0.5, 0.25, -0.25, 0.5, 0.75, -0.5, 0, -0.25], 'gradient')
    assert f(GTorch.ones([2]), GTorch.tensor([-1, 0])).item() == 0
    for bad, text in (
        (GTorch.tensor([[0, 1]], device='cpu'), 'both must be [N, C]'),
        (GTorch.tensor([0, 2], device='cpu'), 'multilabel_margin_loss'),  # GPUs tell of it later
        (GTorch.ones([2], device='cpu'), 'multilabel_margin_loss'),
    ):
        try:
            f(GTorch.ones([2], device='cpu'), bad)
        except (GLib.Error, IndexError, TypeError) as error:
            assert text in str(error), error
        else:
            raise AssertionError(bad)


@tap.case
def parameters_begin_as_in_pytorch():
    assert nn.PReLU(3, 0.5).weight.tolist() == [0.5] * 3 and nn.PReLU().weight.tolist() == [0.25]
    both = nn.Bilinear(4, 30, 50)
    for values in (both.weight, both.bias):
        assert 0.4 < values.abs().max().item() <= 0.5
    assert list(both.state_dict()) == ['weight', 'bias'] and both.weight.shape == (50, 4, 30)


@tap.case
def names_of_places_are_free_for_derived_classes():
    class Mine(nn.Linear):
        def __init__(self):
            super().__init__(2, 2)
            self.device, self.dtype = 'somewhere', 'something'

    assert Mine().device == 'somewhere' and Mine().dtype == 'something'
    assert not hasattr(nn.Linear(2, 2), 'device')


if __name__ == '__main__':
    tap.main()
