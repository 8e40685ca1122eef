#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Recurrent networks: their results, their states, and what they refuse."""

import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402

nn = GTorch.nn
NETWORKS = {'RNN': nn.RNNCell, 'LSTM': nn.LSTMCell, 'GRU': nn.GRUCell}


def raises(kind, call, *parts):
    try:
        call()
    except kind as error:
        for part in parts:
            assert part in str(error), error
        return
    raise AssertionError(f'no {kind.__name__}')


def close(a, b, tolerance=1e-5):
    return a.shape == b.shape and (a - b).abs().max().item() < tolerance


def tensors(value):
    return [value] if isinstance(value, GTorch.Tensor) else [one for part in value for one in tensors(part)]


@tap.case
def a_network_is_its_cell_step_by_step():
    for name, cell_class in NETWORKS.items():
        network, cell = getattr(nn, name)(3, 4), cell_class(3, 4)
        state = {key.removesuffix('_l0'): value for key, value in network.state_dict().items()}
        cell.load_state_dict(state)
        x, hidden, outputs = GTorch.randn(5, 2, 3), None, []
        for step in x:
            hidden = cell(step, hidden)
            outputs.append(hidden[0] if name == 'LSTM' else hidden)
        y, last = network(x)
        assert close(y, GTorch.stack(outputs)), name
        hidden = hidden if name == 'LSTM' else (hidden,)
        for one, other in zip(tensors(last), hidden, strict=True):
            assert close(one[0], other), name


@tap.case
def states_go_on_where_they_ended():
    for name in NETWORKS:
        network = getattr(nn, name)(3, 4, num_layers=2)
        x = GTorch.randn(6, 2, 3)
        whole, last = network(x)
        first, middle = network(x[:2])
        second, end = network(x[2:], middle)
        assert close(GTorch.cat([first, second]), whole)
        assert all(close(a, b) for a, b in zip(tensors(end), tensors(last), strict=True))
        assert all(close(a, b) for a, b in zip(tensors(network(x, hx=None)), tensors((whole, last))))


@tap.case
def dropout_is_between_layers_in_training():
    network, x = nn.GRU(3, 4, num_layers=2, dropout=0.5), GTorch.randn(5, 2, 3)
    GTorch.manual_seed(1)
    first, second = network(x)[0], network(x)[0]
    assert not close(first, second)
    network.eval()
    assert network(x)[0].tolist() == network(x)[0].tolist()
    single = nn.GRU(3, 4, dropout=0.5)
    assert single(x)[0].tolist() == single(x)[0].tolist()


@tap.case
def parameters_begin_within_their_bound():
    for name in NETWORKS:
        network = getattr(nn, name)(3, 16, bidirectional=True)
        values = GTorch.cat([p.reshape(-1) for p in network.parameters()])
        assert values.abs().max().item() <= 0.25 and values.abs().max().item() > 0.2
        assert math.isclose(values.std().item(), 0.25 / math.sqrt(3), rel_tol=0.1)
    assert network.flatten_parameters() is None


@tap.case
def networks_can_be_derived_from_and_have_hooks():
    class Last(nn.LSTM):
        def forward(self, x):
            y, _state = super().forward(x)
            return y[-1]

    x, seen = GTorch.randn(5, 2, 3), []
    net = nn.Sequential(Last(3, 4), nn.Linear(4, 1))
    assert net(x).shape == (2, 1)
    network = nn.LSTM(3, 4)
    assert nn.Sequential(network)(x).tolist() == network(x)[0].tolist()  # C takes the output alone
    network.register_forward_hook(lambda module, inputs, output: seen.append((module, len(inputs), len(output))))
    state = (GTorch.zeros(1, 2, 4), GTorch.zeros(1, 2, 4))
    network(x), network(x, state)
    assert seen == [(network, 1, 2), (network, 2, 2)], seen


@tap.case
def results_may_be_changed_in_place():
    for name in NETWORKS:
        network, x = getattr(nn, name)(3, 4), GTorch.randn(5, 2, 3)
        y, _state = network(x)
        y.mul_(2)
        y.sum().backward()
        doubled = network.weight_hh_l0.grad.clone()
        network.zero_grad()
        (network(x)[0].sum() * 2).backward()
        assert close(doubled, network.weight_hh_l0.grad)


@tap.case
def mixed_precision_computes_in_the_dtype_of_the_region():
    for name in NETWORKS:
        network, x = getattr(nn, name)(3, 4, num_layers=2), GTorch.randn(5, 2, 3)
        with GTorch.autocast('cpu', dtype=GTorch.bfloat16):
            y, state = network(x)
        assert {one.dtype for one in tensors((y, state))} == {GTorch.bfloat16}
        y.float().sum().backward()
        assert network.weight_ih_l0.grad.dtype == GTorch.float32
        assert close(y.float(), network(x)[0], 0.05)


@tap.case
def wrong_arguments_are_named():
    lstm, gru, x = nn.LSTM(3, 4), nn.GRU(3, 4), GTorch.ones(5, 2, 3)
    h = GTorch.zeros(1, 2, 4)
    raises(TypeError, lambda: lstm(x, h), 'LSTM.forward(): hx must be a tuple of two tensors')
    raises(TypeError, lambda: gru(x, (h, h)), 'GRU.forward(): hx must be a tensor')
    raises(TypeError, lambda: gru(1), 'GRU.forward() takes a tensor')
    raises(GLib.Error, lambda: gru(x, GTorch.zeros(1, 3, 4)), 'GRU: the hidden state is [1, 3, 4]', '[1, 2, 4]')
    raises(GLib.Error, lambda: gru(GTorch.ones(5)), 'GRU: the input [5] must have 2 or 3 dimensions')
    raises(GLib.Error, lambda: gru(GTorch.ones(5, 2, 2)), 'gru: the weights are [12, 3] and [12, 4]')
    raises(GLib.Error, lambda: gru(GTorch.ones(0, 2, 3)), 'gru: the batch sizes of 0 steps')
    raises(GLib.Error, lambda: nn.LSTM(3, 4, proj_size=4), 'LSTM: proj_size must be less than hidden_size')
    raises(GLib.Error, lambda: nn.LSTMCell(3, 4)(GTorch.ones(2, 2, 3)), 'LSTMCell: the input [2, 2, 3]')
    cell = (GTorch.ones(2, 3), [h[0]], GTorch.ones(16, 3), GTorch.ones(16, 4))
    raises(GLib.Error, lambda: GTorch.lstm_cell(*cell), 'lstm_cell: hx has 1 tensors')


if __name__ == '__main__':
    tap.main()
