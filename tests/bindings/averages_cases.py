# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Averages of weights, in the same way with PyTorch and with GTorch: averages_reference.py writes what PyTorch gives,
and test_averages.py compares."""

import math

FUNCTIONS = {
    'plain': lambda swa: {},
    'swa': lambda swa: {'avg_fn': swa.get_swa_avg_fn()},
    'swa_multi': lambda swa: {'multi_avg_fn': swa.get_swa_multi_avg_fn()},
    'ema': lambda swa: {'avg_fn': swa.get_ema_avg_fn(0.75)},
    'ema_multi': lambda swa: {'multi_avg_fn': swa.get_ema_multi_avg_fn(0.75)},
    'ema_default': lambda swa: {'avg_fn': swa.get_ema_avg_fn()},
    'own': lambda swa: {'avg_fn': lambda averaged, current, n: (averaged * n + current * 2) / (n + 2)},
}
# PyTorch's swa_multi does not take the counts of batch normalizations, which are integers.
CASES = [(name, use_buffers) for name in FUNCTIONS for use_buffers in (False, True)
         if (name, use_buffers) != ('swa_multi', True)]


def numbers(n, seed):
    return [math.sin(12.9898 * seed + 78.233 * i) for i in range(n)]


def fill(torch, net, seed):
    """Gives all parameters and buffers other values."""
    with torch.no_grad():
        for i, param in enumerate(net.parameters()):
            values = torch.tensor(numbers(param.numel(), seed + 10 * i), dtype=torch.float32)
            param.copy_(values.reshape(tuple(param.shape)))


def batch(torch, seed):
    return torch.tensor(numbers(24, seed), dtype=torch.float32).reshape((8, 3))


def new_net(torch):
    nn = torch.nn
    last = nn.BatchNorm1d(2, momentum=None)
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2), last)
    fill(torch, net, 1)
    return net


def run(torch, name, use_buffers):
    """Returns the state after some updates, and after update_bn(), as lists of numbers by name."""
    swa, net = torch.optim.swa_utils, new_net(torch)
    model = swa.AveragedModel(net, use_buffers=use_buffers, **FUNCTIONS[name](swa))
    for number in range(4):
        fill(torch, net, number + 2)
        net(batch(torch, number))
        model.update_parameters(net)
    found = [plain(model)]
    swa.update_bn([batch(torch, 7), (batch(torch, 8), None), [batch(torch, 9)]], model)
    found.append(plain(model))
    assert model.module[1].momentum == 0.1 and model.module[4].momentum is None
    return found


def plain(model):
    return {key: [float(one) for one in value.detach().reshape((-1,)).tolist()]
            for key, value in model.state_dict().items()}
