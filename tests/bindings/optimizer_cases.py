# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Optimizers that are no rows, in the same way with PyTorch and with GTorch: optimizer_reference.py writes what
PyTorch gives, and test_optimizers.py compares."""

import math

CASES = [
    ('Adafactor', {}),
    ('Adafactor', {'lr': 0.5}),
    (
        'Adafactor',
        {'lr': 0.1, 'beta2_decay': -0.5, 'eps': (1e-5, 1e-2), 'd': 1.5, 'weight_decay': 0.05, 'maximize': True},
    ),
    ('Muon', {}),
    ('Muon', {'lr': 0.05, 'weight_decay': 0.02, 'momentum': 0.8, 'nesterov': False}),
    ('Muon', {'lr': 0.05, 'adjust_lr_fn': 'match_rms_adamw', 'ns_coefficients': (3, -4, 2), 'ns_steps': 3}),
    ('Muon', {'lr': 0.05, 'adjust_lr_fn': 'original', 'eps': 1e-3}),
    ('LBFGS', {'lr': 0.1, 'max_iter': 6}),
    ('LBFGS', {'line_search_fn': 'strong_wolfe', 'max_iter': 8}),
    ('LBFGS', {'lr': 0.5, 'line_search_fn': 'strong_wolfe', 'history_size': 3, 'max_iter': 7, 'max_eval': 9}),
    ('LBFGS', {'lr': 0.05, 'max_iter': 4, 'max_eval': 3, 'history_size': 2}),
    ('LBFGS', {'line_search_fn': 'strong_wolfe', 'tolerance_grad': 1e-2, 'tolerance_change': 1e-3}),
    ('LBFGS', {'lr': 0.01, 'max_iter': 3, 'maximize': True}),
]
SHAPES = {'Adafactor': [(3, 5), (7,), (2, 3, 4), ()], 'Muon': [(3, 5), (6, 4)], 'LBFGS': [(3, 4), (4,), (2,)]}
N_STEPS = 12


def numbers(n, seed):
    """Numbers without a pattern that an optimizer could follow."""
    return [math.sin(12.9898 * seed + 78.233 * i) for i in range(n)]


def new_tensor(torch, shape, seed, dtype='float32'):
    return torch.tensor(numbers(math.prod(shape), seed), dtype=getattr(torch, dtype)).reshape(shape)


def make(torch, name, options):
    """Returns the optimizer and its parameters."""
    dtype = 'float64' if name == 'LBFGS' else 'float32'
    found = [torch.nn.Parameter(new_tensor(torch, shape, i, dtype)) for i, shape in enumerate(SHAPES[name])]
    return getattr(torch.optim, name)(found, **options), found


def step_by_closure(torch, optimizer, params):
    """A step of an optimizer that computes the gradients several times, here of the errors of a small network."""
    inputs, targets = new_tensor(torch, (10, 3), 21, 'float64'), new_tensor(torch, (10,), 22, 'float64')

    def closure():
        optimizer.zero_grad()
        found = (inputs @ params[0] + params[1]).tanh().sum(1) * params[2].sum()
        loss = ((found - targets) ** 2).mean()
        loss.backward()
        return loss

    return optimizer.step(closure)


def step(torch, optimizer, params, number):
    if isinstance(optimizer, torch.optim.LBFGS):
        step_by_closure(torch, optimizer, params)
        return
    for i, param in enumerate(params):
        param.grad = new_tensor(torch, tuple(param.shape), 10 * number + i + 5)
    optimizer.step()


def run(torch, name, options):
    """Returns the parameters after some steps."""
    optimizer, params = make(torch, name, options)
    for number in range(3 if name == 'LBFGS' else N_STEPS):
        step(torch, optimizer, params, number)
    return [param.detach().reshape(-1).tolist() for param in params]
