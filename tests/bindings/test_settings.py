#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a constructor refuses as a setting of a layer, an optimizer or a schedule is refused by an assignment to the
attribute, too, and the former value stays; and errors about choices name them."""

import inspect
import math
import pathlib
import re
import sys
import tomllib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.overrides import _gtorch_ops as ops  # noqa: E402
from gi.overrides._gtorch_layer_table import LAYERS  # noqa: E402
from gi.overrides._gtorch_steps import OPTIMIZERS, SCHEDULES  # noqa: E402
from gi.repository import GLib, GTorch  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402

nn, optim = GTorch.nn, GTorch.optim
TOP = pathlib.Path(__file__).resolve().parent.parent.parent
REFUSALS = (GLib.Error, ValueError, TypeError, OverflowError)
VALUES = (-1, -0.5, 0, 0.0, 0.25, 1, 1.0, 1.5, 3, 100, 10**6, math.inf, -math.inf, math.nan, 'avg', True, [1, 2])


def refused(function):
    try:
        function()
    except REFUSALS as error:
        return error
    return None


def assigned(make, name, construct, values):
    """Compares what a constructor does with what an assignment does. Returns the number of refusals."""
    n = 0
    for value in values:
        made = make()
        before = repr(getattr(made, name))
        at_construction = refused(lambda: construct(value))
        try:
            later = refused(lambda: setattr(made, name, value))
        except AttributeError:
            return n  # it is fixed
        where = f'{type(made).__name__}.{name} = {value!r}'
        assert (later is None) == (at_construction is None), f'{where}: {later!r}, the constructor: {at_construction!r}'
        if later is not None:
            n += 1
            assert repr(getattr(made, name)) == before, f'{where} raised {later!r} and left {getattr(made, name)!r}'
            made.check()
    return n


def layer_arguments(row):
    return {arg['name']: 2 if arg['kind'] == 'size' else 4 for arg in row['args'] if arg['required']}


@tap.case
def layers_refuse_it_later_too():
    n = 0
    for name, row in LAYERS.items():
        cls, needed = getattr(GTorch.transforms if 'space' in row else nn, name), layer_arguments(row)
        for arg in row['args']:
            if arg['kind'] in ('refused', 'tensor', 'device', 'dtype') or arg['property'] != arg['name']:
                continue  # the attribute bias is a parameter
            n += assigned(lambda: cls(**needed), arg['name'],
                          lambda value: cls(**{**needed, arg['name']: value}), VALUES)
    assert n > 200, n


def numbers_of(arg):
    """The values to try for an argument that may be several numbers."""
    if len(arg['names']) < 2:
        return VALUES
    default = list(arg['default'])
    return [tuple(value if i == k else one for k, one in enumerate(default))
            for i in range(len(default)) for value in VALUES]


@tap.case
def optimizers_and_schedules_refuse_it_later_too():
    def param():
        return [nn.Parameter(GTorch.ones([2, 2]))]  # Muon wants matrices

    n = 0
    for row in OPTIMIZERS:
        cls = getattr(optim, row['name'])
        for arg in row['args']:
            if not arg['names'] or arg['name'] == 'weight_decay':
                continue
            n += assigned(lambda: cls(param()), arg['name'],
                          lambda value: cls(param(), **{arg['name']: value}), numbers_of(arg))
        n += assigned(lambda: cls(param()).get_param_groups()[0], 'lr', lambda value: cls(param(), lr=value), VALUES)
        if any(arg['name'] == 'weight_decay' for arg in row['args']):
            n += assigned(lambda: cls(param()).get_param_groups()[0], 'weight_decay',
                          lambda value: cls(param(), weight_decay=value), VALUES)
    for row in SCHEDULES:
        cls = getattr(optim.lr_scheduler, row['name'])
        needed = {arg['name']: 2 if arg['name'] != 'gamma' else 0.5 for arg in row['args'] if arg['required']}
        for arg in row['args']:
            n += assigned(lambda: cls(optim.SGD(param()), **needed), arg['name'],
                          lambda value: cls(optim.SGD(param()), **{**needed, arg['name']: value}), VALUES)
    assert n > 300, n
    sgd = optim.SGD([{'params': param(), 'lr': 0.5}, {'params': param(), 'lr': 0.25}])
    assert refused(lambda: setattr(sgd, 'lr', -1)) and refused(lambda: setattr(sgd, 'learning_rate', math.nan))
    assert [group.lr for group in sgd.get_param_groups()] == [0.5, 0.25]
    assert refused(lambda: sgd.get_param_groups()[0].__setitem__('lr', -1.0))


@tap.case
def what_pytorch_refuses_is_refused():
    p = [nn.Parameter(GTorch.ones([2]))]
    for function, says in (
        (lambda: nn.Hardtanh(1.0, -1.0), 'Hardtanh: max_val must be greater than min_val'),
        (lambda: nn.Hardtanh(0.5, 0.5), 'Hardtanh: max_val must be greater than min_val'),
        (lambda: nn.MultiMarginLoss(p=3), 'MultiMarginLoss: p must be from 1 to 2, it is 3'),
        (lambda: optim.Rprop(p, etas=(0.0, 1.2)), 'rprop: etaminus is 0, it must be greater than 0 and below 1'),
        (lambda: optim.Rprop(p, etas=(1.0, 1.2)), 'rprop: etaminus is 1, it must be greater than 0 and below 1'),
        (lambda: optim.Rprop(p, etas=(0.5, 1.0)), 'rprop: etaplus is 1, it must be finite and greater than 1'),
        (lambda: optim.lr_scheduler.LinearLR(optim.SGD(p), start_factor=0.0), 'start_factor is 0'),
    ):
        error = refused(function)
        assert error is not None and says in str(error), (says, error)
    assert optim.Rprop(p, etas=(0.25, 1.5)).etas == (0.25, 1.5)


@tap.case
def choices_are_named():
    """By every function of a row with a choice, and by attributes."""
    n = 0
    for file in sorted((TOP / 'gtorch' / 'ops').glob('*.toml')):
        for name, row in tomllib.loads(file.read_text('utf-8')).items():
            function = ops.METHODS.get(name) or ops.FUNCTIONS.get(name)
            if function is None or 'enum:' not in row['args']:
                continue
            values = {}
            for text in (part.strip() for part in re.sub(r'\[[^]]*\]', '', row['args']).split(',')):
                kind, _, rest = text.partition(' ')
                key = rest.split(' ')[0]
                if kind.startswith('enum:'):
                    choice, enum = key, kind[5:]
                elif '=' not in text:
                    values[key] = {'Tensor': GTorch.ones(2), 'double': 0.5, 'int': 1}[kind]
            wanted = [repr(one.value_nick) for one in vars(getattr(GTorch, enum)).values()
                      if isinstance(one, getattr(GTorch, enum))]
            for value, kind in (('avg', ValueError), (3, TypeError)):
                error = refused(lambda: function(**values, **{choice: value}))
                assert isinstance(error, kind), (name, error)
                text = str(error)
                assert text.startswith(f'{name}(): {choice} must be ') and text.endswith(f', not {value!r}'), text
                assert wanted and all(nick in text for nick in wanted), text
            n += 1
    assert n > 15, n
    error = refused(lambda: nn.MSELoss(reduction='avg'))
    assert str(error) == "MSELoss.reduction must be 'none', 'mean', 'sum' or 'batchmean', not 'avg'", error
    loss = nn.MSELoss()
    error = refused(lambda: setattr(loss, 'reduction', 'avg'))
    assert "reduction must be 'none', 'mean', 'sum' or 'batchmean', not 'avg'" in str(error), error
    error = refused(lambda: GTorch.autocast('gpu'))
    assert str(error) == "autocast(): device_type must be 'cpu', 'cuda' or 'private', not 'gpu'", error
    assert inspect.signature(ops.METHODS['mse_loss']).parameters['reduction'].default == 'mean'


@tap.case
def generators_are_for_their_device():
    own = GTorch.Generator('cpu')
    anywhere = GTorch.Generator()
    assert own.device.type == 'cpu' and anywhere.device is None
    assert GTorch.rand(2, generator=own, device='cpu').shape == (2,)
    import copy
    import pickle

    assert copy.copy(own).device.type == 'cpu' and pickle.loads(pickle.dumps(own)).device.type == 'cpu'
    assert copy.copy(anywhere).device is None


@tap.case
def monitors_are_of_devices_that_can_be_watched():
    error = refused(lambda: GTorch.DeviceMonitor())
    assert isinstance(error, GLib.Error) and 'device_monitor: no device' in str(error), error
    monitor = GTorch.DeviceMonitor(device='cpu')
    assert monitor.props.memory_used > 0 and monitor.props.fan_speed == -1 == monitor.props.power_limit


@tap.case
def a_quantile_out_of_range_is_named():
    for q in (1.5, -0.25, math.nan):
        error = refused(lambda: GTorch.ones(3).quantile(q))
        assert isinstance(error, ValueError) and str(error) == f'quantile: q is {q}, it must be between 0 and 1', error


@tap.case
def nothing_changes_by_to_none():
    """As in PyTorch, None is no dtype and no device: the tensor itself is given."""
    x = GTorch.ones(2)
    assert x.to(None) is x or x.to(None).data_ptr() == x.data_ptr()
    assert x.to(None, None).dtype == x.dtype and x.to(dtype=None, device=None).device == x.device


if __name__ == '__main__':
    tap.main()
