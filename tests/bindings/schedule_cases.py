# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Schedules that are made in the same way with PyTorch and with GTorch: schedule_reference.py writes what PyTorch
gives, and test_schedules.py compares. Each case gets the modules optim, lr_scheduler and swa_utils, and two
parameters; it returns the optimizer, the schedule and, if it is not step (), what makes a step."""

CASES = {}
N_EPOCHS = 20


def case(function):
    CASES[function.__name__] = function
    return function


def sgd(optim, params):
    groups = [{'params': [params[0]]}, {'params': [params[1]], 'lr': 0.3}]
    return optim.SGD(groups, lr=0.8, momentum=0.9)


def adam(optim, params):
    groups = [{'params': [params[0]]}, {'params': [params[1]], 'lr': 0.3}]
    return optim.Adam(groups, lr=0.8)


def momentum_of(optimizer):
    """PyTorch keeps it in the groups."""
    group = optimizer.param_groups[0]
    if hasattr(optimizer, 'momentum'):
        return optimizer.momentum
    if hasattr(optimizer, 'betas'):
        return optimizer.betas[0]
    return group['momentum'] if 'momentum' in group else group['betas'][0]


def run(function, optim, lr_scheduler, swa_utils, params):
    """Returns the learning rates of both groups and the momentum in each epoch."""
    optimizer, schedule, *rest = function(optim, lr_scheduler, swa_utils, params)
    found = []
    for epoch in range(N_EPOCHS):
        rates = [group['lr'] for group in optimizer.param_groups]
        assert schedule.get_last_lr() == rates
        found.append([*rates, momentum_of(optimizer)])
        if rest:
            rest[0](epoch)
        else:
            schedule.step()
    return found


@case
def lambda_of_each_group(optim, lr, swa, params):
    optimizer = sgd(optim, params)
    return optimizer, lr.LambdaLR(optimizer, [lambda epoch: 0.9**epoch, lambda epoch: 1 / (1 + epoch)])


@case
def lambda_of_all(optim, lr, swa, params):
    optimizer = sgd(optim, params)
    return optimizer, lr.LambdaLR(optimizer, lambda epoch: 2 - epoch / 50)


@case
def multiplicative(optim, lr, swa, params):
    optimizer = sgd(optim, params)
    return optimizer, lr.MultiplicativeLR(optimizer, lambda epoch: 0.95 if epoch % 2 else 0.9)


@case
def cyclic(optim, lr, swa, params):
    optimizer = sgd(optim, params)
    return optimizer, lr.CyclicLR(optimizer, 0.1, 1.0, 4)


@case
def cyclic_triangular2(optim, lr, swa, params):
    optimizer = adam(optim, params)
    return optimizer, lr.CyclicLR(
        optimizer, [0.1, 0.2], [1.0, 2.0], 3, 5, 'triangular2', base_momentum=0.7, max_momentum=0.95
    )


@case
def cyclic_exp_range(optim, lr, swa, params):
    optimizer = sgd(optim, params)
    return optimizer, lr.CyclicLR(optimizer, 0.1, 1.0, 3, mode='exp_range', gamma=0.97, cycle_momentum=False)


@case
def cyclic_with_a_function(optim, lr, swa, params):
    optimizer = sgd(optim, params)
    return optimizer, lr.CyclicLR(optimizer, 0.1, 1.0, 3, scale_fn=lambda n: 1 / (n + 2), scale_mode='iterations')


@case
def one_cycle(optim, lr, swa, params):
    optimizer = sgd(optim, params)
    return optimizer, lr.OneCycleLR(optimizer, 1.0, 24)


@case
def one_cycle_in_three_phases(optim, lr, swa, params):
    optimizer = adam(optim, params)
    return optimizer, lr.OneCycleLR(
        optimizer,
        [1.0, 0.5],
        epochs=4,
        steps_per_epoch=6,
        pct_start=0.25,
        anneal_strategy='linear',
        div_factor=10.0,
        final_div_factor=100.0,
        three_phase=True,
    )


@case
def one_cycle_without_momentum(optim, lr, swa, params):
    optimizer = adam(optim, params)
    return optimizer, lr.OneCycleLR(optimizer, 0.3, total_steps=20, cycle_momentum=False)


@case
def plateau(optim, lr, swa, params):
    optimizer = sgd(optim, params)
    schedule = lr.ReduceLROnPlateau(optimizer, factor=0.5, patience=2, cooldown=1, min_lr=[0.01, 0.1])
    metrics = [1, 0.9, *[0.95] * 4, *[0.8] * 9, *[0.7] * 5]
    return optimizer, schedule, lambda epoch: schedule.step(metrics[epoch])


@case
def plateau_of_a_maximum(optim, lr, swa, params):
    optimizer = sgd(optim, params)
    schedule = lr.ReduceLROnPlateau(optimizer, 'max', 0.1, 1, threshold=0.1, threshold_mode='abs', eps=1e-3)
    metrics = [1, 2, 2.05, 2.05, 2.1, 2.2, 2, 2, *[1] * 4, *[3] * 8]
    return optimizer, schedule, lambda epoch: schedule.step(metrics[epoch])


@case
def three_in_sequence(optim, lr, swa, params):
    optimizer = sgd(optim, params)
    parts = [lr.ConstantLR(optimizer, 0.1, 20), lr.ExponentialLR(optimizer, 0.9), lr.StepLR(optimizer, 3, 0.5)]
    return optimizer, lr.SequentialLR(optimizer, parts, [4, 12])


@case
def warmup_in_sequence(optim, lr, swa, params):
    optimizer = sgd(optim, params)
    parts = [lr.LinearLR(optimizer, 0.1, total_iters=5), lr.CosineAnnealingLR(optimizer, 10)]
    return optimizer, lr.SequentialLR(optimizer, parts, milestones=[5])


@case
def functions_in_sequence(optim, lr, swa, params):
    optimizer = sgd(optim, params)
    parts = [
        lr.LambdaLR(optimizer, lambda epoch: 0.1 * (epoch + 1)),
        lr.MultiplicativeLR(optimizer, lambda epoch: 0.9),
        lr.CosineAnnealingWarmRestarts(optimizer, 4, 2),
    ]
    return optimizer, lr.SequentialLR(optimizer, parts, [5, 9])


@case
def two_chained(optim, lr, swa, params):
    optimizer = sgd(optim, params)
    return optimizer, lr.ChainedScheduler([lr.ConstantLR(optimizer, 0.1, 20), lr.ExponentialLR(optimizer, 0.9)])


@case
def five_chained(optim, lr, swa, params):
    optimizer = sgd(optim, params)
    parts = [
        lr.LinearLR(optimizer, 0.2, total_iters=6),
        lr.CosineAnnealingLR(optimizer, 10, 0.01),
        lr.MultiStepLR(optimizer, [3, 8]),
        lr.StepLR(optimizer, 4, 0.7),
        lr.PolynomialLR(optimizer, 30, 1.5),
    ]
    return optimizer, lr.ChainedScheduler(parts, optimizer)


@case
def two_side_by_side(optim, lr, swa, params):
    optimizer = sgd(optim, params)
    one, other = lr.ExponentialLR(optimizer, 0.9), lr.MultiStepLR(optimizer, [3, 8], 0.1)
    return optimizer, other, lambda epoch: (one.step(), other.step())


@case
def a_rate_that_is_changed_in_between(optim, lr, swa, params):
    optimizer = sgd(optim, params)
    schedule = lr.StepLR(optimizer, 4, 0.5)

    def step(epoch):
        if epoch == 6:
            optimizer.param_groups[0]['lr'] = 0.77
        schedule.step()

    return optimizer, schedule, step


@case
def averaging(optim, lr, swa, params):
    optimizer = sgd(optim, params)
    return optimizer, swa.SWALR(optimizer, 0.05)


@case
def averaging_along_a_line(optim, lr, swa, params):
    optimizer = sgd(optim, params)
    return optimizer, swa.SWALR(optimizer, [0.05, 0.9], anneal_epochs=5, anneal_strategy='linear')


@case
def averaging_at_once(optim, lr, swa, params):
    optimizer = sgd(optim, params)
    return optimizer, swa.SWALR(optimizer, 0.05, anneal_epochs=0)
