# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Optimizers and schedules whose state dicts are exchanged with PyTorch: used with either library."""

import warnings

SHAPE = (3, 2)

# name, the settings of the first group, those of the second
OPTIMIZERS = [
    ('SGD', {}, {'momentum': 0.5, 'weight_decay': 0.01}),
    ('SGD', {'momentum': 0.9, 'nesterov': True}, {'momentum': 0.5, 'dampening': 0.25, 'maximize': True}),
    ('RMSprop', {'momentum': 0.5}, {'centered': True, 'alpha': 0.75}),
    ('Adagrad', {'lr_decay': 0.1}, {'eps': 0.01}),
    ('Adadelta', {}, {'rho': 0.5, 'weight_decay': 0.01}),
    ('Rprop', {}, {'etas': (0.25, 2.0), 'step_sizes': (0.005, 0.02)}),
    ('ASGD', {}, {'lambd': 0.1, 'alpha': 0.5, 't0': 2.0}),
    ('Adam', {}, {'betas': (0.5, 0.75), 'amsgrad': True, 'weight_decay': 0.01}),
    ('AdamW', {}, {'betas': (0.5, 0.75), 'eps': 0.1, 'weight_decay': 0.05}),
    ('Adamax', {}, {'betas': (0.5, 0.75)}),
    ('RAdam', {}, {'betas': (0.5, 0.75), 'decoupled_weight_decay': True, 'weight_decay': 0.05}),
    ('NAdam', {}, {'momentum_decay': 0.5}),
    ('Adafactor', {}, {'d': 2.0, 'eps': (1e-4, 0.01)}),
    ('Muon', {}, {'momentum': 0.5, 'nesterov': False, 'ns_steps': 3}),
    ('LBFGS', {'max_iter': 3, 'history_size': 3}, None),
]


def make_optimizer(torch, name, settings, other):
    """Parameters with fixed values, in two groups or one."""
    params = []
    for k in range(2):
        values = [((i + k) * 5 % 7 - 3.25) / 4 for i in range(SHAPE[0] * SHAPE[1])]
        params.append(torch.nn.Parameter(torch.tensor(values, dtype=torch.float64).reshape(SHAPE)))
    groups = [{'params': params[:1], **settings}, {'params': params[1:], **(other or {})}]
    if other is None:
        groups = [{'params': params, **settings}]
    return getattr(torch.optim, name)(groups, lr=0.05), params


def advance(torch, optimizer, params, begin, end):
    def closure():
        optimizer.zero_grad()
        loss = ((params[0] - 1) * (params[0] - 1)).sum() + (params[1] * params[1] * params[1] * params[1]).sum()
        loss.backward()
        return loss

    for step in range(begin, end):
        for k, param in enumerate(params):
            values = [((step * 3 + i + k) * 7 % 11 - 5.25) / 8 for i in range(SHAPE[0] * SHAPE[1])]
            param.grad = torch.tensor(values, dtype=torch.float64).reshape(SHAPE)
        if type(optimizer).__name__ == 'LBFGS':
            optimizer.step(closure)
        else:
            optimizer.step()


def schedules(optim):
    lr = optim.lr_scheduler
    return {
        'StepLR': lambda o: lr.StepLR(o, 3, gamma=0.5),
        'MultiStepLR': lambda o: lr.MultiStepLR(o, [2, 5, 5], gamma=0.5),
        'ConstantLR': lambda o: lr.ConstantLR(o, 0.25, total_iters=6),
        'LinearLR': lambda o: lr.LinearLR(o, 0.25, total_iters=7),
        'ExponentialLR': lambda o: lr.ExponentialLR(o, 0.75),
        'PolynomialLR': lambda o: lr.PolynomialLR(o, 8, power=2.0),
        'CosineAnnealingLR': lambda o: lr.CosineAnnealingLR(o, 7),
        'CosineAnnealingWarmRestarts': lambda o: lr.CosineAnnealingWarmRestarts(o, 3, T_mult=2),
        'LambdaLR': lambda o: lr.LambdaLR(o, lambda epoch: 0.9**epoch),
        'MultiplicativeLR': lambda o: lr.MultiplicativeLR(o, lambda epoch: 0.9),
        'CyclicLR': lambda o: lr.CyclicLR(o, 0.01, 0.1, step_size_up=3, step_size_down=2, mode='triangular2'),
        'OneCycleLR': lambda o: lr.OneCycleLR(o, 0.1, total_steps=9, pct_start=0.4, three_phase=True),
        'OneCycleLR linear': lambda o: lr.OneCycleLR(o, [0.1, 0.2], total_steps=9, anneal_strategy='linear'),
        'ReduceLROnPlateau': lambda o: lr.ReduceLROnPlateau(o, 'max', patience=1, cooldown=1, threshold_mode='abs'),
        'SequentialLR': lambda o: lr.SequentialLR(o, [lr.ConstantLR(o, 0.5, 3), lr.ExponentialLR(o, 0.75)], [5]),
        'ChainedScheduler': lambda o: lr.ChainedScheduler([lr.ConstantLR(o, 0.5, 6), lr.ExponentialLR(o, 0.75)]),
        'SWALR': lambda o: optim.swa_utils.SWALR(o, 0.01, anneal_epochs=7, anneal_strategy='linear'),
    }


def follow(schedule, optimizer, n):
    """The rates and the momenta of further epochs."""
    found = []
    for _ in range(n):
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')  # there is no step of the optimizer before
            schedule.step(*([1.0] if type(schedule).__name__ == 'ReduceLROnPlateau' else []))
        found.append([[group['lr'], group['momentum']] for group in optimizer.param_groups])
    return found
