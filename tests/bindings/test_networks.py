#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Recurrent networks: their results, their states, and what they refuse."""

import copy
import math
import pathlib
import pickle
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402
from tap import raises  # noqa: E402

nn = GTorch.nn
NETWORKS = {'RNN': nn.RNNCell, 'LSTM': nn.LSTMCell, 'GRU': nn.GRUCell}


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
    raises(TypeError, lambda: nn.Sequential(network), 'gives its output and its states')
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
        with GTorch.autocast(x.device.type, dtype=GTorch.bfloat16):
            y, state = network(x)
        assert {one.dtype for one in tensors((y, state))} == {GTorch.bfloat16}
        y.float().sum().backward()
        assert network.weight_ih_l0.grad.dtype == GTorch.float32
        assert close(y.float(), network(x)[0], 0.05)


@tap.case
def packed_sequences_are_those_without_padding():
    rnn, lengths = nn.utils.rnn, [2, 4, 1]
    x = GTorch.randn(4, 3, 2)
    for name in NETWORKS:
        network = getattr(nn, name)(2, 3, num_layers=2, bidirectional=True)
        packed, state = network(rnn.pack_padded_sequence(x, lengths, enforce_sorted=False))
        assert packed.batch_sizes.tolist() == [3, 2, 1, 1] and packed.sorted_indices.tolist() == [1, 0, 2]
        y, given = rnn.pad_packed_sequence(packed, padding_value=7.0, total_length=5)
        assert given.tolist() == lengths and y.shape == (5, 3, 6)
        for i, n in enumerate(lengths):
            alone, its_state = network(x[:n, i : i + 1])
            assert close(y[:n, i : i + 1], alone) and (y[n:, i] == 7).all()
            for one, other in zip(tensors(state), tensors(its_state), strict=True):
                assert close(one[:, i : i + 1], other)
    packed = rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
    for shape in ([1, 7, 3], [1, 2, 3], [3, 3]):
        text = f'[{", ".join(map(str, shape))}]'
        raises(GLib.Error, lambda: nn.GRU(2, 3)(packed, GTorch.ones(shape)), text, 'must be [1, 3, 3]')


@tap.case
def sequences_come_back_from_packing():
    rnn = nn.utils.rnn
    given = [GTorch.randn(n, 2) for n in (3, 1, 2)]
    for one, other in zip(rnn.unpack_sequence(rnn.pack_sequence(given, enforce_sorted=False)), given, strict=True):
        assert one.tolist() == other.tolist()
    padded = rnn.pad_sequence(given, batch_first=True, padding_value=-1.0)
    assert padded.shape == (3, 3, 2) and padded[1, 1:].tolist() == [[-1.0, -1.0]] * 2
    assert rnn.pad_sequence(given, padding_side='left')[:2, 1].tolist() == [[0.0, 0.0]] * 2
    for one, other in zip(rnn.unpad_sequence(padded, GTorch.tensor([3, 1, 2]), True), given, strict=True):
        assert one.tolist() == other.tolist()


@tap.case
def packed_sequences_are_tuples_of_their_parts():
    packed = nn.utils.rnn.pack_padded_sequence(GTorch.randn(3, 2, 2), [3, 1])
    data, sizes, order, back = packed
    assert data.shape == (4, 2) and sizes.tolist() == [2, 1, 1] and order is None and back is None
    assert len(packed) == 4 and packed[0] is packed.data and packed._fields[1] == 'batch_sizes'
    assert packed._replace(data=data * 2).data.tolist() == (data * 2).tolist()
    assert packed.to(GTorch.float64).data.dtype == packed.double().data.dtype == GTorch.float64
    assert 'batch_sizes=tensor([2, 1, 1]' in repr(packed) and not packed.cpu().is_cuda
    made = GTorch.PackedSequence(data, sizes, GTorch.tensor([1, 0]))
    assert made.unsorted_indices.tolist() == [1, 0]
    for other in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert [one.tolist() for one in other] == [one.tolist() for one in made]


@tap.case
def operations_take_the_arguments_of_pytorch():
    x, h, c = GTorch.randn(5, 2, 3), GTorch.randn(1, 2, 4), GTorch.randn(1, 2, 4)
    network, rest = nn.LSTM(3, 4), (True, 1, 0.0, False, False, False)
    params = list(network.parameters())
    wanted = tensors(network(x, (h, c)))
    for found in (GTorch.lstm(x, (h, c), params, *rest), GTorch.lstm(x, h, c, params, *rest),
                  GTorch.lstm(x, [h, c], params=params, has_biases=True, num_layers=1, dropout=0.0, train=False,
                              bidirectional=False, batch_first=False)):
        assert all(close(one, other) for one, other in zip(found, wanted, strict=True))
    cell = nn.LSTMCell(3, 4)
    hy, cy = GTorch.lstm_cell(x[0], (h[0], c[0]), *cell.parameters())
    assert [hy.tolist(), cy.tolist()] == [one.tolist() for one in cell(x[0], (h[0], c[0]))]
    gru = nn.GRU(3, 4)
    assert close(GTorch.gru(x, h, list(gru.parameters()), *rest)[0], gru(x, h)[0])


@tap.case
def wrong_sequences_are_named():
    rnn, x = nn.utils.rnn, GTorch.ones(3, 2, 2)
    raises(GLib.Error, lambda: rnn.pack_padded_sequence(x, [1, 3]), 'pack_padded_sequence: length 3', 'descending')
    raises(GLib.Error, lambda: rnn.pack_padded_sequence(x, [3, 0]), 'length 0 of sequence 1 must be from 1 to 3')
    raises(GLib.Error, lambda: rnn.pack_padded_sequence(x, [4, 1]), 'length 4 of sequence 0')
    raises(GLib.Error, lambda: rnn.pack_padded_sequence(x, [3]), 'there are 1 lengths for a batch of 2')
    raises(GLib.Error, lambda: rnn.pack_padded_sequence(GTorch.ones(3), [3]), 'at least 2 dimensions')
    packed = rnn.pack_padded_sequence(x, [3, 1])
    raises(GLib.Error, lambda: rnn.pad_packed_sequence(packed, total_length=2), 'total_length 2 is less than')
    raises(GLib.Error, lambda: rnn.pad_sequence([GTorch.ones(2, 2), GTorch.ones(2, 3)]), 'sequence 1 is [2, 3]')
    raises(GLib.Error, lambda: rnn.pad_sequence([]), 'pad_sequence: there is no sequence')
    raises(ValueError, lambda: rnn.pad_sequence([x], padding_side='top'), 'padding_side')
    raises(TypeError, lambda: rnn.unpack_sequence(x), 'PackedSequence')
    raises(GLib.Error, lambda: GTorch.PackedSequence(packed.data, GTorch.tensor([1, 2, 1])), 'batch size 2 of step 1')
    raises(GLib.Error, lambda: GTorch.PackedSequence(packed.data, GTorch.tensor([2, 1])), 'leave 1 of the 4 rows')
    raises(TypeError, lambda: nn.GRUCell(2, 3)(packed), 'GRUCell.forward() takes a tensor')


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
