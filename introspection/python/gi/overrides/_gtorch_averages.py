# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Averages of the weights of a model: GTorch.optim.swa_utils. Imported once Module is overridden, from which the class
is derived."""

import copy

from gi.overrides import override

from gi.overrides._gtorch_convert import GTorch, RawTensor, convert_bool, convert_device, convert_double
from gi.overrides._gtorch_errors import passes, restoring
from gi.overrides._gtorch_layers import construct

OVERRIDES = 'gi.overrides.GTorch'
raw_update_bn = GTorch.update_bn


class Unrecorded:
    """A block in which gradients are not recorded."""

    def __enter__(self):
        self.guard = GTorch.no_grad()

    def __exit__(self, *_exception):
        self.guard.end()


def _is_float(tensor):
    return tensor.dtype.is_floating_point or tensor.dtype.is_complex


def _decay(name, value):
    value = convert_double(value)
    if not 0 <= value <= 1:
        raise ValueError(f'{name}(): decay is {value}, it must be from 0 to 1')
    return value


def get_ema_avg_fn(decay=0.999):
    """Returns a function that computes the exponential moving average of one tensor."""
    decay = _decay('get_ema_avg_fn', decay)

    def update(ema_param, current_param, num_averaged):
        return ema_param * decay + current_param * (1 - decay)

    return update


def get_ema_multi_avg_fn(decay=0.999):
    """Returns a function that changes tensors to their exponential moving averages."""
    decay = _decay('get_ema_multi_avg_fn', decay)

    def update(ema_param_list, current_param_list, num_averaged):
        with Unrecorded():
            for average, current in zip(ema_param_list, current_param_list, strict=True):
                if _is_float(average):
                    average.lerp_(current, 1 - decay)
                else:
                    average.copy_(average * decay + current * (1 - decay))

    return update


def get_swa_avg_fn():
    """Returns a function that computes the average of one tensor in which all have the same weight."""

    def update(averaged_param, current_param, num_averaged):
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return update


def get_swa_multi_avg_fn():
    """Returns a function that changes tensors to averages in which all have the same weight."""

    def update(averaged_param_list, current_param_list, num_averaged):
        weight = 1 / (int(num_averaged) + 1)
        with Unrecorded():
            for average, current in zip(averaged_param_list, current_param_list, strict=True):
                if _is_float(average):
                    average.lerp_(current, weight)
                else:
                    average.copy_(average + (current - average) * weight)

    return update


def _average(model, averaged, current, n_averaged, *_data):
    """For C, without references: the function is in the dictionary of the model, where the collector sees it."""
    result = model.avg_fn(averaged, current, n_averaged)
    if not isinstance(result, RawTensor):
        raise TypeError(f'avg_fn gave {type(result).__name__}, not a tensor')
    return result


def _average_many(model, *args):
    averaged, current = [arg for arg in args if isinstance(arg, (list, tuple))]
    (n_averaged,) = [arg for arg in args if isinstance(arg, RawTensor)]
    model.multi_avg_fn(list(averaged), list(current), n_averaged)
    return True


def _function(key):
    """A function in the dictionary of the model, or None."""

    def set_(self, function):
        if function is not None and not callable(function):
            raise TypeError(f'{type(self).__name__}: {key}: {function!r} cannot be called')
        self.__dict__[f'_{key}'] = function

    return property(lambda self: self.__dict__.get(f'_{key}'), set_)


class AveragedModel(GTorch.AveragedModel):
    """A copy of a model whose parameters are averages: equal ones, or those that avg_fn (averaged, current, n_averaged)
    returns, or multi_avg_fn (list, list, n_averaged) makes in place."""

    __module__ = OVERRIDES
    avg_fn, multi_avg_fn = _function('avg_fn'), _function('multi_avg_fn')

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        name = type(self).__name__
        if not isinstance(model, GTorch.Module):
            raise TypeError(f'{name}: model must be a module, not {type(model).__name__}')
        if avg_fn is not None and multi_avg_fn is not None:
            raise ValueError(f'{name}: avg_fn and multi_avg_fn cannot both be given')
        construct(self, {'use_buffers': convert_bool(use_buffers)})
        self.module = copy.deepcopy(model)
        if device is not None:
            self.to(device)
        self.avg_fn, self.multi_avg_fn = avg_fn, multi_avg_fn

    def forward(self, *inputs, **options):
        """Runs the averaged model."""
        return self.module(*inputs, **options)

    def update_parameters(self, model):
        """Takes the present parameters of @model into the averages."""
        kind = 'many' if self.multi_avg_fn is not None else 'one' if self.avg_fn is not None else 'none'
        if self.__dict__.get('_in_c') != (id(self), kind):  # a copy has this attribute, and no function in C
            if kind == 'many':
                self.set_multi_avg_fn(passes('multi_avg_fn', _average_many))
            else:
                self.set_avg_fn(passes('avg_fn', _average) if kind == 'one' else None)
            self.__dict__['_in_c'] = id(self), kind
        restoring(super().update_parameters, model)


def _first(batch):
    found = batch[0] if isinstance(batch, (list, tuple)) and batch else batch
    if not isinstance(found, RawTensor):
        raise TypeError(f'update_bn(): the loader gave {type(found).__name__}, not a tensor, or several')
    return found


def update_bn(loader, model, device=None):
    """Computes the running statistics of batch normalizations anew. @loader gives tensors, or tuples or lists that
    begin with one."""
    if not isinstance(model, GTorch.Module):
        raise TypeError(f'update_bn(): model must be a module, not {type(model).__name__}')
    batches = iter(loader)

    def give(*_data):
        for batch in batches:
            return _first(batch)
        return None

    device = None if device is None else convert_device(device)
    restoring(raw_update_bn, model, device, passes('update_bn(): the loader', give))


def install(export):
    return {
        'AveragedModel': export('AveragedModel', override(AveragedModel)),
        'update_bn': export('update_bn', update_bn),
        'get_ema_avg_fn': get_ema_avg_fn,
        'get_ema_multi_avg_fn': get_ema_multi_avg_fn,
        'get_swa_avg_fn': get_swa_avg_fn,
        'get_swa_multi_avg_fn': get_swa_multi_avg_fn,
    }
