# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The schedules that are no formulas, with PyTorch's arguments. Imported once LRScheduler is overridden, from which
these classes are derived."""

from gi.repository import Gio, GLib

from gi.overrides._gtorch_convert import GTorch, convert_double, convert_whole
from gi.overrides._gtorch_errors import passes
from gi.overrides._gtorch_groups import keep
from gi.overrides._gtorch_layers import construct

OVERRIDES = 'gi.overrides.GTorch'


def _numbers(name, key, value):
    """One number for each group, or one for all."""
    values = value if isinstance(value, (list, tuple)) else [value]
    try:
        return [convert_double(one) for one in values]
    except TypeError as error:
        raise TypeError(f'{name}: {key}: {error}') from None


def _one(name, key, value):
    """A number that PyTorch has for each group, and the library once for the optimizer."""
    values = _numbers(name, key, value)
    if len(set(values)) != 1:
        rule = 'the momentum belongs to the whole optimizer, so it must be the same for all groups'
        text = f'{name}: {key} is {value!r}: {rule}'
        raise GLib.Error.new_literal(GTorch.error_quark(), text, GTorch.Error.NOT_SUPPORTED)
    return values[0]


def _groups(optimizer):
    return len(optimizer.param_groups)


def _functions(name, key, functions, optimizer):
    """One function for each group."""
    if not isinstance(optimizer, GTorch.Optimizer):
        raise TypeError(f'{name}: optimizer must be an optimizer, not {type(optimizer).__name__}')
    if not isinstance(functions, (list, tuple)):
        functions = [functions] * _groups(optimizer)
    if len(functions) != _groups(optimizer):
        raise ValueError(f'{name}: {key} has {len(functions)} functions for {_groups(optimizer)} groups')
    for function in functions:
        if not callable(function):
            raise TypeError(f'{name}: {key}: {function!r} cannot be called')
    return list(functions)


def _caller(name, key):
    """The function for C, without references: those of the program are in the dictionary of the schedule, where the
    collector sees them."""

    def call(scheduler, n, group, *_data):
        functions = getattr(scheduler, f'_{key}')
        return True, convert_double(functions[group](n))

    return passes(f'{name}: {key}', call)


class LambdaLR(GTorch.LambdaLR):
    """Multiplies the initial learning rate by lr_lambda (epoch); one function, or one for each group."""

    __module__ = OVERRIDES

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        name = type(self).__name__
        functions = _functions(name, 'lr_lambda', lr_lambda, optimizer)
        construct(self, {'optimizer': optimizer, 'last_epoch': last_epoch})
        self._lr_lambda = functions
        self.set_lr_lambda(_caller(name, 'lr_lambda'))
        GTorch.LRScheduler.initial_step(self)

    lr_lambdas = property(lambda self: list(self._lr_lambda))


class MultiplicativeLR(GTorch.MultiplicativeLR):
    """Multiplies the learning rate by lr_lambda (epoch); one function, or one for each group."""

    __module__ = OVERRIDES
    __init__ = LambdaLR.__init__
    lr_lambdas = LambdaLR.lr_lambdas


class CyclicLR(GTorch.CyclicLR):
    """Lets the learning rate rise and fall in cycles, and the momentum fall and rise."""

    __module__ = OVERRIDES

    def __init__(
        self,
        optimizer,
        base_lr,
        max_lr,
        step_size_up=2000,
        step_size_down=None,
        mode='triangular',
        gamma=1.0,
        scale_fn=None,
        scale_mode='cycle',
        cycle_momentum=True,
        base_momentum=0.8,
        max_momentum=0.9,
        last_epoch=-1,
    ):
        name = type(self).__name__
        rates = _numbers(name, 'base_lr', base_lr), _numbers(name, 'max_lr', max_lr)
        if scale_fn is not None and not callable(scale_fn):
            raise TypeError(f'{name}: scale_fn: {scale_fn!r} cannot be called')
        values = {
            'optimizer': optimizer,
            'step_size_up': step_size_up,
            'step_size_down': step_size_up if step_size_down is None else step_size_down,
            'gamma': gamma,
            'scale_mode': scale_mode,
            'cycle_momentum': cycle_momentum,
            'base_momentum': _one(name, 'base_momentum', base_momentum),
            'max_momentum': _one(name, 'max_momentum', max_momentum),
            'last_epoch': last_epoch,
        }
        if scale_fn is None:
            values['mode'] = mode  # which is of no effect otherwise
        construct(self, values)
        self.set_rates(*rates)
        if scale_fn is not None:
            self._scale_fn = [scale_fn] * _groups(optimizer)
            self.set_scale_fn(_caller(name, 'scale_fn'))
        GTorch.LRScheduler.initial_step(self)


def _keep(group, values):
    """Puts into a group what PyTorch's schedules have there, for state dicts that PyTorch loads."""
    for key, value in values.items():
        if key not in group.get_setting_names():
            keep(group, key, value)


class OneCycleLR(GTorch.OneCycleLR):
    """Lets the learning rate rise to a maximum and fall far below its initial value, in a given number of steps."""

    __module__ = OVERRIDES

    def __init__(
        self,
        optimizer,
        max_lr,
        total_steps=None,
        epochs=None,
        steps_per_epoch=None,
        pct_start=0.3,
        anneal_strategy='cos',
        cycle_momentum=True,
        base_momentum=0.85,
        max_momentum=0.95,
        div_factor=25.0,
        final_div_factor=1e4,
        three_phase=False,
        last_epoch=-1,
    ):
        name = type(self).__name__
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError(f'{name}() needs total_steps, or epochs and steps_per_epoch')
            for key, value in (('epochs', epochs), ('steps_per_epoch', steps_per_epoch)):
                if convert_whole(value) < 1:
                    raise ValueError(f'{name}: {key} is {value}, it must be at least 1')
            total_steps = epochs * steps_per_epoch
        rates = _numbers(name, 'max_lr', max_lr)
        construct(
            self,
            {
                'optimizer': optimizer,
                'total_steps': total_steps,
                'pct_start': pct_start,
                'anneal_strategy': anneal_strategy,
                'cycle_momentum': cycle_momentum,
                'base_momentum': _one(name, 'base_momentum', base_momentum),
                'max_momentum': _one(name, 'max_momentum', max_momentum),
                'div_factor': div_factor,
                'final_div_factor': final_div_factor,
                'three_phase': three_phase,
                'last_epoch': last_epoch,
            },
        )
        self.set_max_lrs(rates)
        GTorch.LRScheduler.initial_step(self)
        groups = list(optimizer.param_groups)
        for group, highest in zip(groups, rates * len(groups) if len(rates) == 1 else rates):
            first = highest / self.div_factor
            kept = {'initial_lr': first, 'max_lr': highest, 'min_lr': first / self.final_div_factor}
            if self.cycle_momentum:
                kept.update(base_momentum=self.base_momentum, max_momentum=self.max_momentum)
            _keep(group, kept)


class ReduceLROnPlateau(GTorch.ReduceLROnPlateau):
    """Multiplies the learning rate by a factor when a metric has stopped improving."""

    __module__ = OVERRIDES

    def __init__(
        self,
        optimizer,
        mode='min',
        factor=0.1,
        patience=10,
        threshold=1e-4,
        threshold_mode='rel',
        cooldown=0,
        min_lr=0,
        eps=1e-8,
    ):
        least = _numbers(type(self).__name__, 'min_lr', min_lr)
        construct(
            self,
            {
                'optimizer': optimizer,
                'mode': mode,
                'factor': factor,
                'patience': patience,
                'threshold': threshold,
                'threshold_mode': threshold_mode,
                'cooldown': cooldown,
                'eps': eps,
            },
        )
        self.set_min_lrs(least)
        GTorch.LRScheduler.check(self)

    def step(self, metrics, epoch=None):
        """Ends an epoch with a metric: a number, or a tensor of one."""
        if epoch is not None:
            raise NotImplementedError('ReduceLROnPlateau.step(): epoch is not supported: rates do not follow from it')
        self.step_metric(convert_double(metrics))

    in_cooldown = property(lambda self: self.cooldown_counter > 0)


def _list_model(name, schedulers):
    store = Gio.ListStore.new(GTorch.LRScheduler.__gtype__)
    for scheduler in schedulers:
        if not isinstance(scheduler, GTorch.LRScheduler):
            raise TypeError(f'{name}: schedulers must be schedules, not {type(scheduler).__name__}')
        store.append(scheduler)
    return store


class SequentialLR(GTorch.SequentialLR):
    """Lets schedules follow one another: at each milestone the next one begins."""

    __module__ = OVERRIDES

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1):
        model = _list_model(type(self).__name__, schedulers)
        construct(
            self, {'optimizer': optimizer, 'schedulers': model, 'milestones': milestones, 'last_epoch': last_epoch}
        )
        GTorch.LRScheduler.initial_step(self)


class ChainedScheduler(GTorch.ChainedScheduler):
    """Lets several schedules make each step one after another."""

    __module__ = OVERRIDES

    def __init__(self, schedulers, optimizer=None):
        name = type(self).__name__
        schedulers = list(schedulers)
        model = _list_model(name, schedulers)
        if optimizer is None and not schedulers:
            raise ValueError(f'{name}: there are no schedules')
        construct(self, {'optimizer': optimizer or schedulers[0].optimizer, 'schedulers': model})
        GTorch.LRScheduler.initial_step(self)


class SWALR(GTorch.SWALR):
    """Takes the learning rate to a fixed one, with which the weights are averaged then."""

    __module__ = OVERRIDES

    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy='cos', last_epoch=-1):
        rates = _numbers(type(self).__name__, 'swa_lr', swa_lr)
        construct(
            self,
            {
                'optimizer': optimizer,
                'anneal_epochs': anneal_epochs,
                'anneal_strategy': anneal_strategy,
                'last_epoch': last_epoch,
            },
        )
        self.set_swa_lrs(rates)
        GTorch.LRScheduler.initial_step(self)
        groups = list(optimizer.param_groups)
        for group, rate in zip(groups, rates * len(groups) if len(rates) == 1 else rates):
            _keep(group, {'swa_lr': rate})


ALL = (
    LambdaLR,
    MultiplicativeLR,
    CyclicLR,
    OneCycleLR,
    ReduceLROnPlateau,
    SequentialLR,
    ChainedScheduler,
)
