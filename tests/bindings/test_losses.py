#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""AdaptiveLogSoftmaxWithLoss and TripletMarginWithDistanceLoss. The expected numbers are PyTorch's."""

import copy
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import tap  # noqa: E402
from tap import raises  # noqa: E402

nn, F = GTorch.nn, GTorch.nn.functional
float64 = GTorch.float64
TARGETS = [9, 0, 3, 1, 4, 5]
OUTPUT = [-6.35409249418, -3.93389400262, -0.0146120948154, -5.69024197505, -9.37885253549, -10.2858325426]
LOG_PROBS = [
    -0.0193343620845, -4.90737663309, -13.7603741182, -20.727084861, -9.68552360091, -5.01744909362, -7.49382235106,
    -12.6838327099, -5.8878466675, -6.35409249418,
]


def close(found, expected, tolerance=1e-10):
    found = found.flatten().tolist()
    assert len(found) == len(expected), (found, expected)
    assert all(abs(a - b) <= tolerance * max(1, abs(b)) for a, b in zip(found, expected)), (found, expected)


def waves(*shape):
    return (GTorch.arange(1, math.prod(shape) + 1, dtype=float64)).sin().reshape(shape)


def folded(tensor):
    return (tensor.flatten() * GTorch.arange(tensor.numel(), dtype=float64).cos()).sum()


def adaptive(dtype=float64):
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2, 5], div_value=2.0, head_bias=True, dtype=dtype)
    with GTorch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(waves(*parameter.shape))
    return layer


@tap.case
def the_adaptive_loss_is_pytorchs():
    layer, x = adaptive(), waves(6, 8).requires_grad_()
    found = layer(x, GTorch.tensor(TARGETS))
    close(found.output, OUTPUT)
    close(found.loss, [5.9429209408])
    output, loss = found
    assert output.shape == (6,) and loss.shape == ()
    loss.backward()
    close(folded(x.grad), [5.30461802952])
    close(folded(layer.tail[1][0].weight.grad), [-0.614428791809])
    names = [name for name, _ in layer.named_parameters()]
    assert names == [
        'head.weight', 'head.bias', 'tail.0.0.weight', 'tail.0.1.weight', 'tail.1.0.weight', 'tail.1.1.weight',
    ], names


@tap.case
def log_probabilities_and_predictions_are_pytorchs():
    layer, x = adaptive(), waves(6, 8)
    log_prob = layer.log_prob(x)
    assert log_prob.shape == (6, 10)
    close(log_prob[0], LOG_PROBS)
    close(log_prob.exp().sum(1), [1] * 6)
    picked = log_prob.gather(1, GTorch.tensor(TARGETS).unsqueeze(1)).squeeze(1)
    close(layer(x, GTorch.tensor(TARGETS)).output, picked.tolist())
    assert layer.predict(x).tolist() == [0, 1, 3, 0, 0, 1]
    assert layer.predict(-x).tolist() == [3, 6, 0, 1, 3, 0]
    assert layer.predict(x).dtype == GTorch.int64


@tap.case
def gradients_of_the_adaptive_loss_are_differences():
    layer, x, target = adaptive(), waves(6, 8).requires_grad_(), GTorch.tensor(TARGETS)
    GTorch.gradcheck(lambda x: layer(x, target).output, x)
    GTorch.gradcheck(lambda x: layer.log_prob(x), x)
    GTorch.gradgradcheck(lambda x: layer(x, target).loss, x)


@tap.case
def one_example_and_none_are_taken():
    layer, x = adaptive(), waves(6, 8)
    for i, target in enumerate(TARGETS):
        found = layer(x[i], GTorch.tensor(target))
        assert found.output.shape == ()
        close(found.output, [OUTPUT[i]])
        close(found.loss, [-OUTPUT[i]])
    found = layer(GTorch.zeros(0, 8, dtype=float64), GTorch.zeros([0], dtype=GTorch.int64))
    assert found.output.shape == (0,) and math.isnan(found.loss.item())
    assert layer.predict(GTorch.zeros(0, 8, dtype=float64)).shape == (0,)


@tap.case
def bad_inputs_of_the_adaptive_loss_are_named():
    layer, x = adaptive(), waves(6, 8)
    for wrong in (10, -1):
        raises(GLib.Error, lambda: layer(x, GTorch.tensor([0, wrong, 0, 0, 0, 0])), 'number 1 of the targets',
               str(wrong), 'from 0 to 9')
    raises(GLib.Error, lambda: layer(x, GTorch.tensor([0, 1])), '[6, 8]', '[2]')
    raises(GLib.Error, lambda: layer(x, GTorch.zeros(6, 1, dtype=GTorch.int64)), '[6, 1]')
    raises(GLib.Error, lambda: layer(x, GTorch.zeros(6)), 'must be integers, they are float32')
    raises(GLib.Error, lambda: layer.log_prob(x[0]), '[8]', '[N, in_features]')
    raises(GLib.Error, lambda: layer.predict(x[0]), '[8]', '[N, in_features]')
    raises(TypeError, lambda: layer(x), 'target')
    raises(TypeError, lambda: layer(x, [1]), 'target must be a tensor')
    raises(TypeError, lambda: layer.log_prob(3), 'int')
    raises(GLib.Error, lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 10, []), 'cutoffs')
    raises(GLib.Error, lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 10, [5, 5]), 'number 1 of cutoffs is 5')
    raises(GLib.Error, lambda: nn.AdaptiveLogSoftmaxWithLoss(2, 10, [5]), 'hidden layer of cluster 0')


@tap.case
def the_state_of_the_adaptive_loss_is_carried_over():
    layer = adaptive()
    other = nn.AdaptiveLogSoftmaxWithLoss(8, 10, (2, 5), 2.0, True, dtype=float64)
    assert not other.head.weight.equal(layer.head.weight)
    other.load_state_dict(layer.state_dict())
    x, target = waves(6, 8), GTorch.tensor(TARGETS)
    close(other(x, target).output, OUTPUT)
    close(copy.deepcopy(layer)(x, target).output, OUTPUT)
    other.reset_parameters()
    assert not other.tail[1][1].weight.equal(layer.tail[1][1].weight)
    assert other.tail[1][1].weight.abs().max().item() <= 1 / math.sqrt(2)
    assert other.cutoffs == copy.deepcopy(layer).cutoffs == [2, 5, 10]
    raises(AttributeError, lambda: setattr(layer, 'cutoffs', [3]), 'fixed')
    assert nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2], dtype=GTorch.float32).head.weight.dtype == GTorch.float32


@tap.case
def hooks_and_classes_of_the_adaptive_loss_see_both_results():
    layer, seen = adaptive(), []
    x, target = waves(6, 8), GTorch.tensor(TARGETS)
    layer.register_forward_hook(lambda module, inputs, outputs: seen.append((len(inputs), len(outputs))))
    close(layer(x, target).loss, [5.9429209408])
    assert seen == [(2, 2)], seen

    class Twice(nn.AdaptiveLogSoftmaxWithLoss):
        def forward(self, input, target):
            output, loss = super().forward(input, target)
            return output, loss * 2

    twice = Twice(8, 10, [2, 5], 2.0, True, dtype=float64)
    twice.load_state_dict(layer.state_dict())
    close(twice(x, target)[1], [2 * 5.9429209408])


# --- triplets ---


def triplet():
    return waves(4, 3), waves(4, 3).cos(), waves(4, 3).exp()


def furthest(x, y):
    return (x - y).abs().amax(1)


FAR = [1.27565877651, 2.19109588402, 0.804006161232, 2.17242750275]
FAR_SWAPPED = [1.27565877651, 3.27545420856, 0.804006161232, 3.26507606052]
NORM = [0.532024113305, 2.37604524491, 0.292336274574, 2.4101926765]
NORM_SWAPPED = [0.532024113305, 4.08736357702, 0.292336274574, 4.08070499536]


@tap.case
def the_loss_of_triplets_is_pytorchs():
    tensors = triplet()
    for function, plain, swapped in ((furthest, FAR, FAR_SWAPPED), (None, NORM, NORM_SWAPPED)):
        for swap, expected in ((False, plain), (True, swapped)):
            for reduction, values in (
                ('none', expected), ('sum', [sum(expected)]), ('mean', [sum(expected) / 4]),
            ):
                options = {'distance_function': function, 'margin': 2.0, 'swap': swap, 'reduction': reduction}
                close(F.triplet_margin_with_distance_loss(*tensors, **options), values)
                close(nn.TripletMarginWithDistanceLoss(**options)(*tensors), values)
    a = triplet()[0].requires_grad_()
    F.triplet_margin_with_distance_loss(
        a, *tensors[1:], distance_function=furthest, margin=2.0, swap=True
    ).backward()
    close(a.grad, [0, 0.25, -0.25, 0, -0.25, 0, 0, 0.25, -0.25, 0, -0.25, 0])
    GTorch.gradcheck(
        lambda a, p, n: F.triplet_margin_with_distance_loss(a, p, n, distance_function=furthest, margin=2.0),
        [one.requires_grad_() for one in triplet()],
    )


@tap.case
def a_module_may_be_the_distance():
    tensors = triplet()
    loss = nn.TripletMarginWithDistanceLoss(distance_function=nn.PairwiseDistance(1.0), margin=0.5)
    assert isinstance(loss.distance_function, nn.PairwiseDistance)
    again = F.triplet_margin_with_distance_loss(*tensors, distance_function=nn.PairwiseDistance(1.0), margin=0.5)
    close(loss(*tensors), [again.item()])
    assert again.item() != nn.TripletMarginWithDistanceLoss(margin=0.5)(*tensors).item()
    close(copy.deepcopy(loss)(*tensors), [again.item()])

    class Weighted(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(GTorch.ones([3], dtype=float64))

        def forward(self, x, y):
            return ((x - y) * self.weight).square().sum(1)

    learned = nn.TripletMarginWithDistanceLoss(distance_function=Weighted())
    assert [name for name, _ in learned.named_parameters()] == ['distance_function.weight']
    learned(*tensors).backward()
    assert learned.distance_function.weight.grad is not None


@tap.case
def exceptions_of_distances_arrive():
    class Boom(Exception):
        pass

    boom = Boom('distance')

    def fail(x, y):
        raise boom

    tensors = triplet()
    for call in (
        lambda: F.triplet_margin_with_distance_loss(*tensors, distance_function=fail),
        lambda: nn.TripletMarginWithDistanceLoss(distance_function=fail)(*tensors),
    ):
        try:
            call()
        except Boom as error:
            assert error is boom
        else:
            raise AssertionError('the exception vanished')


@tap.case
def bad_triplets_are_named():
    tensors = triplet()
    function = F.triplet_margin_with_distance_loss
    raises(GLib.Error, lambda: function(*tensors, margin=0), 'margin is 0, it must be above 0')
    raises(GLib.Error, lambda: function(*tensors, margin=math.nan), 'it must be above 0')
    raises(GLib.Error, lambda: function(tensors[0], tensors[1], waves(3)), '[4, 3], [4, 3] and [3]')
    raises(ValueError, lambda: function(*tensors, reduction='most'), 'reduction')
    raises(TypeError, lambda: function(*tensors, distance_function=3), 'cannot be called')
    raises(TypeError, lambda: function(*tensors, distance_function=lambda x, y: 3), 'gave int, not a tensor')
    raises(TypeError, lambda: function(tensors[0], tensors[1], 3), 'negative must be a tensor')
    raises(TypeError, lambda: nn.TripletMarginWithDistanceLoss(distance_function=3), 'a module or a function')
    raises(GLib.Error, lambda: nn.TripletMarginWithDistanceLoss(margin=-1.0), 'margin')


@tap.case
def binary_cross_entropy_wants_probabilities():
    x = GTorch.tensor([[0.25, 0.5, 1.0]])
    for wrong in (2.0, -0.5, math.nan):
        bad = GTorch.tensor([[0.0, wrong, 1.0]])
        raises(ValueError, lambda bad=bad: F.binary_cross_entropy(x, bad), 'the target must be between 0 and 1')
        raises(ValueError, lambda bad=bad: F.binary_cross_entropy(bad, x), 'probabilities must be between 0 and 1')
        raises(ValueError, lambda bad=bad: nn.BCELoss()(x, bad.double()), 'the target must be between 0 and 1')
    assert F.binary_cross_entropy(x, GTorch.tensor([[0.0, 0.5, 1.0]])).item() > 0
    assert F.binary_cross_entropy(GTorch.zeros(0, 3), GTorch.zeros(0, 3)).isnan().item()


tap.main()
