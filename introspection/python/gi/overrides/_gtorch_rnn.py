# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Recurrent networks: modules that take states beside the input, and give them beside the output."""

from gi.overrides._gtorch_convert import GTorch, RawTensor
from gi.overrides._gtorch_errors import restores

PAIRS = ('LSTM', 'LSTMCell')  # their states are a hidden state and a cell
CELLS = ('RNNCell', 'LSTMCell', 'GRUCell')


def _states(kind, is_pair, hx):
    """Returns the states as a list, empty without any."""
    if hx is None:
        return []
    found = list(hx) if is_pair and isinstance(hx, (tuple, list)) else [hx]
    if len(found) != (2 if is_pair else 1) or not all(isinstance(one, RawTensor) for one in found):
        wanted = 'a tuple of two tensors, the hidden state and the cell' if is_pair else 'a tensor'
        raise TypeError(f'{kind}.forward(): hx must be {wanted}, or None')
    return found


def forward_of(name, raw):
    """Returns forward() in PyTorch's form: without hooks."""
    run, is_pair, is_cell = restores(raw.compute), name in PAIRS, name in CELLS

    def forward(self, input, hx=None):
        kind = type(self).__name__
        if not isinstance(input, RawTensor):
            raise TypeError(f'{kind}.forward() takes a tensor, not {type(input).__name__}')
        results = run(self, input, [], _states(kind, is_pair, hx))
        if is_cell:
            return tuple(results) if is_pair else results[0]
        return results[0], tuple(results[1:]) if is_pair else results[1]

    return forward


def members_of(name, raw):
    """Returns what the class of a network has beside what all layers have."""
    return {
        'forward': forward_of(name, raw),
        # C would give the output alone
        '_is_python': True,
    }


def is_network(raw):
    return issubclass(raw, GTorch.RNNBase)
