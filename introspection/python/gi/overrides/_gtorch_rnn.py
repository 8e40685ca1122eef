# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Recurrent networks: modules that take states beside the input, and give them beside the output."""

from gi.overrides._gtorch_convert import GTorch, RawTensor
from gi.overrides._gtorch_errors import restores
from gi.overrides._gtorch_properties import OWN

PAIRS = ('LSTM', 'LSTMCell')  # their states are a hidden state and a cell
CELLS = ('RNNCell', 'LSTMCell', 'GRUCell')
STATEFUL = ('RNN', 'LSTM', 'GRU', 'LSTMCell')  # which give a tuple


def _states(kind, is_pair, hx):
    """Returns the states as a list, empty without any."""
    if hx is None:
        return []
    found = list(hx) if is_pair and isinstance(hx, (tuple, list)) else [hx]
    if len(found) != (2 if is_pair else 1) or not all(isinstance(one, RawTensor) for one in found):
        wanted = 'a tuple of two tensors, the hidden state and the cell' if is_pair else 'a tensor'
        raise TypeError(f'{kind}.forward(): hx must be {wanted}, or None')
    return found


def _permuted(states, indices):
    """Returns the states in the order of packed sequences, or in that in which these were given. The network refuses
    those of other sizes."""
    if indices is None:
        return states
    fits = [state.ndim == 3 and state.shape[1] == len(indices) for state in states]
    return [state.index_select(1, indices) if one else state for state, one in zip(states, fits)]


def _compute_packed(compute, self, packed, states):
    """Returns the results for packed sequences, the first of them packed alike."""
    states = _permuted(states, packed.sorted_indices)
    results = compute(self, packed.data, packed.batch_sizes.tolist(), states)
    return [packed._replace(data=results[0]), *_permuted(results[1:], packed.unsorted_indices)]


def forward_of(name, raw):
    """Returns forward() in PyTorch's form: without hooks."""
    compute, is_pair, is_cell = restores(raw.compute), name in PAIRS, name in CELLS

    def forward(self, input, hx=None):
        kind = type(self).__name__
        states = _states(kind, is_pair, hx)
        if isinstance(input, GTorch.PackedSequence) and not is_cell:
            results = _compute_packed(compute, self, input, states)
        elif isinstance(input, RawTensor):
            results = compute(self, input, [], states)
        else:
            wanted = 'a tensor' if is_cell else 'a tensor or a PackedSequence'
            raise TypeError(f'{kind}.forward() takes {wanted}, not {type(input).__name__}')
        if is_cell:
            return tuple(results) if is_pair else results[0]
        return results[0], tuple(results[1:]) if is_pair else results[1]

    return forward


def members_of(name, raw):
    """Returns what the class of a network has beside what all layers have."""
    return {
        'forward': forward_of(name, raw),
        # C would give the output alone
        '_gt_is_python': True,
    }


def gives_states(module):
    """Does its own forward() give the states beside the output, so that another has to take them apart?"""
    own = next(cls for cls in type(module).__mro__ if 'forward' in vars(cls))
    return own.__module__ in OWN and own.__name__ in STATEFUL


def is_network(raw):
    return issubclass(raw, GTorch.RNNBase)
