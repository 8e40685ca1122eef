#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The first values of parameters: nn.init, reset_parameters(), from_pretrained() and skip_init()."""

import copy
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import tap  # noqa: E402
from tap import raises  # noqa: E402

nn = GTorch.nn
init = nn.init


def distance(one, other):
    return (one - other).abs().max().item()


@tap.case
def matrices_are_filled():
    weight = GTorch.empty(4, 6)
    assert init.orthogonal_(weight, gain=3) is weight
    assert distance(weight @ weight.t(), GTorch.eye(4) * 9) < 1e-5
    assert init.eye_(GTorch.empty(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert init.sparse_(GTorch.empty(10, 5), 0.35).eq(0).sum(dim=0).tolist() == [4] * 5
    conv = nn.Conv1d(2, 2, 3, padding=1, bias=False)
    init.dirac_(conv.weight)
    x = GTorch.randn(1, 2, 5)
    assert distance(conv(x), x) == 0
    grouped = init.dirac_(GTorch.empty(4, 2, 3, 3), groups=2)
    assert grouped.sum().item() == 4 and grouped[2, 0, 1, 1].item() == 1
    raises(GLib.Error, lambda: init.eye_(GTorch.empty(2)), 'init_eye: shape [2] must have 2 dimensions')
    raises(GLib.Error, lambda: init.dirac_(GTorch.empty(4, 2)), '3 to 5 dimensions')
    raises(GLib.Error, lambda: init.sparse_(GTorch.empty(4, 2), 2), 'sparsity must be from 0 to 1')
    raises(TypeError, lambda: init.sparse_(GTorch.empty(4, 2)), 'needs sparsity')
    raises(TypeError, lambda: init.dirac_(GTorch.empty(4, 2, 1), groups=0.5))


@tap.case
def normal_numbers_are_cut_off():
    for dtype in (GTorch.float16, GTorch.float32, GTorch.float64):
        values = init.trunc_normal_(GTorch.empty(5000, dtype=dtype), std=0.5, a=-0.75, b=1)
        assert values.min().item() >= -0.75 and values.max().item() <= 1
        # the mean of the part: 0.5 (φ(-1.5) - φ(2)) / (Φ(2) - Φ(-1.5))
        assert abs(values.to(GTorch.float64).mean().item() - 0.0414) < 0.03
    raises(GLib.Error, lambda: init.trunc_normal_(GTorch.empty(2), std=-1), 'std must be positive')
    raises(GLib.Error, lambda: init.trunc_normal_(GTorch.empty(2), a=1, b=0), 'in order')
    raises(GLib.Error, lambda: init.trunc_normal_(GTorch.empty(2, dtype=GTorch.int64)), 'floating-point')


@tap.case
def generators_make_the_same_numbers():
    for fill in (
        init.orthogonal_, init.trunc_normal_, lambda made, generator: init.sparse_(made, 0.5, generator=generator),
    ):
        drawn = []
        for _time in range(2):
            generator = GTorch.Generator.new_with_seed(7)
            drawn.append(fill(GTorch.empty(4, 3), generator=generator).tolist())
        assert drawn[0] == drawn[1]


@tap.case
def layers_begin_again():
    for layer in (
        nn.Linear(3, 2), nn.Conv2d(2, 3, 3), nn.ConvTranspose1d(2, 3, 3), nn.Bilinear(2, 3, 4), nn.BatchNorm2d(3),
        nn.LayerNorm(3), nn.GroupNorm(1, 3), nn.Embedding(4, 3, padding_idx=1), nn.EmbeddingBag(4, 3), nn.PReLU(2),
        nn.RMSNorm(3), nn.InstanceNorm1d(3, affine=True, track_running_stats=True), nn.LSTM(2, 3), nn.GRUCell(2, 3),
    ):
        GTorch.manual_seed(3)
        fresh = copy.deepcopy(layer)
        for one in fresh.state_dict().values():
            one.fill_(1 if one.dtype == GTorch.int64 else 5.5)
        assert fresh.reset_parameters() is None
        seeded = type(layer)(**SIZES[type(layer).__name__])
        for name, value in fresh.state_dict().items():
            assert value.shape == seeded.state_dict()[name].shape
            assert value.ne(5.5).all().item(), (layer, name)
    assert nn.Embedding(4, 3, padding_idx=1).weight[1].tolist() == [0, 0, 0]
    GTorch.manual_seed(3)
    first = nn.Linear(3, 2)
    again = nn.Linear(3, 2)
    GTorch.manual_seed(3)
    again.reset_parameters()
    assert again.weight.tolist() == first.weight.tolist() and again.bias.tolist() == first.bias.tolist()


SIZES = {
    'Linear': {'in_features': 3, 'out_features': 2},
    'Conv2d': {'in_channels': 2, 'out_channels': 3, 'kernel_size': 3},
    'ConvTranspose1d': {'in_channels': 2, 'out_channels': 3, 'kernel_size': 3},
    'Bilinear': {'in1_features': 2, 'in2_features': 3, 'out_features': 4},
    'BatchNorm2d': {'num_features': 3},
    'LayerNorm': {'normalized_shape': 3},
    'GroupNorm': {'num_groups': 1, 'num_channels': 3},
    'Embedding': {'num_embeddings': 4, 'embedding_dim': 3},
    'EmbeddingBag': {'num_embeddings': 4, 'embedding_dim': 3},
    'PReLU': {'num_parameters': 2},
    'RMSNorm': {'normalized_shape': 3},
    'InstanceNorm1d': {'num_features': 3, 'affine': True, 'track_running_stats': True},
    'LSTM': {'input_size': 2, 'hidden_size': 3},
    'GRUCell': {'input_size': 2, 'hidden_size': 3},
}


@tap.case
def only_layers_with_parameters_have_it():
    assert not hasattr(nn.ReLU(), 'reset_parameters') and not hasattr(nn.Sequential(), 'reset_parameters')
    raises(AttributeError, lambda: nn.ReLU().reset_parameters(), 'no')
    nn.LazyLinear(2).reset_parameters()  # it has none yet
    normed = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
    raises(GLib.Error, normed.reset_parameters, "'weight' is computed")


@tap.case
def classes_of_a_program_begin_as_they_say():
    class Ones(nn.Linear):
        def reset_parameters(self):
            super().reset_parameters()
            init.ones_(self.weight)

    class Own(nn.Module):
        n = 0

        def reset_parameters(self):
            self.n += 1

    assert Ones(2, 3).weight.tolist() == [[1, 1]] * 3 and Ones(2, 3, bias=False).bias is None
    own = Own()
    own.reset_parameters()
    assert own.n == 1


@tap.case
def embeddings_take_a_matrix():
    rows = GTorch.arange(6, dtype=GTorch.float32).reshape(3, 2)
    GTorch.manual_seed(1)
    before = GTorch.rand(2).tolist()
    GTorch.manual_seed(1)
    layer = nn.Embedding.from_pretrained(rows, padding_idx=-1)
    assert GTorch.rand(2).tolist() == before
    assert not layer.weight.requires_grad and layer.padding_idx == 2
    assert layer(GTorch.tensor([2, 0])).tolist() == [[4, 5], [0, 1]]
    with GTorch.no_grad():
        rows.add_(1)
    assert layer.weight[0].tolist() == [1, 2]
    bag = nn.EmbeddingBag.from_pretrained(rows, False, mode='sum')
    assert bag.weight.requires_grad and bag(GTorch.tensor([[0, 2]])).tolist() == [[6, 8]]
    assert nn.Embedding.from_pretrained(rows, True, 1).padding_idx == 1
    raises(ValueError, lambda: nn.Embedding.from_pretrained(GTorch.ones(3)), 'no matrix')
    raises(TypeError, lambda: nn.Embedding.from_pretrained(rows, embedding_dim=3), 'embedding_dim')
    raises(TypeError, lambda: nn.Embedding.from_pretrained(3), 'must be a tensor')


@tap.case
def skipping_draws_nothing():
    GTorch.manual_seed(1)
    before = GTorch.rand(2).tolist()
    GTorch.manual_seed(1)
    layer = nn.utils.skip_init(nn.Linear, 3, 2, bias=False)
    assert isinstance(layer, nn.Linear) and layer.bias is None and GTorch.rand(2).tolist() == before
    raises(RuntimeError, lambda: nn.utils.skip_init(GTorch.ones, 3), 'Expected a Module')


@tap.case
def gumbel_softmax_draws():
    logits = GTorch.tensor([[0.0, 1.0, 2.0]]).expand(20000, 3).clone().requires_grad_()
    GTorch.manual_seed(2)
    hard = nn.functional.gumbel_softmax(logits, tau=0.7, hard=True)
    assert hard.sum(dim=-1).eq(1).all().item() and hard.gt(0.5).sum().item() == 20000
    wanted = logits[0].softmax(0)
    assert distance(hard.mean(0), wanted) < 0.02, hard.mean(0)
    (hard * GTorch.tensor([1.0, 2.0, 3.0])).sum().backward()
    GTorch.manual_seed(2)
    other = logits.detach().requires_grad_()
    soft = nn.functional.gumbel_softmax(other, tau=0.7)
    (soft * GTorch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert distance(logits.grad, other.grad) < 1e-6
    assert hard.argmax(-1).eq(soft.argmax(-1)).all().item()
    raises(GLib.Error, lambda: nn.functional.gumbel_softmax(logits, tau=0), 'tau')
    raises(GLib.Error, lambda: nn.functional.gumbel_softmax(logits, eps=1), 'eps is 1')


tap.main()
