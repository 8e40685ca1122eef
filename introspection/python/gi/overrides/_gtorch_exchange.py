# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""State dicts of optimizers and schedules in PyTorch's form: nested dictionaries and lists, with Python's numbers and
texts beside tensors."""

from collections import Counter
from collections.abc import Mapping

from gi.repository import GLib, GObject

from gi.overrides import _gtorch_groups as groups
from gi.overrides._gtorch_convert import GTorch, RawTensor, convert_double, convert_enum
from gi.overrides._gtorch_own_states import ATTRIBUTE as VALUES
from gi.overrides._gtorch_own_states import is_programs, values_of
from gi.overrides._gtorch_properties import python_class, spec_of
from gi.overrides._gtorch_steps import OPTIMIZERS

# What PyTorch's schedules keep in groups, and those here for themselves.
OF_SCHEDULES = ('max_lr', 'min_lr', 'base_momentum', 'max_momentum', 'swa_lr')
NUMBERS = {'func_evals': int, 'n_iter': int, 't': float, 'prev_loss': float}  # states of LBFGS that are no tensors


def _refuse(text):
    raise GLib.Error.new_literal(GTorch.error_quark(), f'load_state_dict: {text}', GTorch.Error.FORMAT)


def _doubles(values):
    return RawTensor.new_from_doubles(values, [len(values)], GTorch.DType.FLOAT64, None)


def _single(value):
    return RawTensor.new_from_doubles([convert_double(value)], [], GTorch.DType.FLOAT64, None)


def to_tensor(name, value):
    """Converts a number, a list of numbers or a tensor, which may be of another library, to a tensor."""
    if isinstance(value, RawTensor):
        return value
    from gi.repository import GTorch as whole  # with what Python adds

    if hasattr(value, '__dlpack__'):
        return whole.from_dlpack(value)
    try:
        if isinstance(value, (list, tuple)):
            return whole.tensor(list(value), dtype=whole.float64)
        return _single(value)
    except TypeError:
        return _refuse(f'“{name}” must be a tensor or a number, not {value!r}')


# --- optimizers ---


def is_nested(table):
    return isinstance(table, Mapping) and set(table) == {'state', 'param_groups'}


def _is_own(optimizer, names, key):
    """Tells whether the key of a group is one of the program's, which Python keeps, and no setting of any optimizer."""
    if is_programs(optimizer):
        return key not in ('params', *groups.MEMBERS, *OF_SCHEDULES) or (key in OF_SCHEDULES and key in names)
    return key not in ('params', *names, *OF_SCHEDULES, *groups.SETTINGS)


def _flat_group(optimizer, i, names, given):
    """The settings of a group, as C has them."""
    found = {}
    for key, value in given.items():
        if _is_own(optimizer, names, key) and (key not in names or groups.plain_numbers(value) is None):
            continue
        if key == 'differentiable' and value and key not in names:
            _refuse(f'group.{i}: differentiable is true, which is not supported')
        if key == 'params' or (key not in names and (key in OF_SCHEDULES or key in groups.FORMS)):
            continue
        kind = GTorch.Optimizer.get_setting_type(optimizer, key)
        try:
            if kind == GObject.TYPE_NONE and key not in groups.MEMBERS:
                values = groups.plain_numbers(value) or groups.numbers('', key, GObject.TYPE_DOUBLE, value)
            else:
                kind = GObject.TYPE_DOUBLE if kind == GObject.TYPE_NONE else kind
                values = groups.numbers(f'load_state_dict: group.{i}', key, kind, value)
        except (TypeError, ValueError) as error:
            _refuse(str(error).removeprefix('load_state_dict: '))
        found[key] = _single(values[0]) if len(values) == 1 else _doubles(values)
    for key in names:
        # flags that a release of PyTorch lacked were not there to be set
        if key not in found and GTorch.Optimizer.get_setting_type(optimizer, key) == GObject.TYPE_BOOLEAN:
            found[key] = _single(spec_of(optimizer, key).default_value)
    return found


def _flat_state(name, value):
    """The entries of a state, which may be a list of tensors; None is none."""
    if value is None:
        return {}
    if isinstance(value, (list, tuple)) and any(one is None or hasattr(one, '__dlpack__') for one in value):
        return {f'{name}.{i}': to_tensor(f'{name}.{i}', one) for i, one in enumerate(value) if one is not None}
    if isinstance(value, (list, tuple)) and not value:
        return {}
    return {name: to_tensor(name, value)}


def _foreign(value):
    """Takes the tensors of another library, in lists as well."""
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(map(_foreign, value))
    return to_tensor('', value) if hasattr(value, '__dlpack__') else value


def flatten(optimizer, table):
    """Converts PyTorch's nested state dict to the names and tensors of the library. Returns also what C does not have,
    for finish()."""
    if not isinstance(table['state'], Mapping) or not isinstance(table['param_groups'], (list, tuple)):
        kinds = [type(table[key]).__name__ for key in ('state', 'param_groups')]
        _refuse('state and param_groups are {} and {}, not a dictionary and a list'.format(*kinds))
    given = list(table['param_groups'])
    own = optimizer.param_groups
    if len(given) != len(own):
        raise ValueError(f'load_state_dict: there are {len(given)} groups of parameters, the optimizer has {len(own)}')
    found, params, keys, values = {}, {}, [], {}
    for i, (group, mine) in enumerate(zip(given, own)):
        if not isinstance(group, Mapping) or 'params' not in group:
            _refuse(f'group.{i} is no dictionary with params')
        if len(group['params']) != len(mine['params']):
            n, m = len(group['params']), len(mine['params'])
            raise ValueError(f'load_state_dict: group.{i} has {n} parameters, that of the optimizer {m}')
        params.update(zip(group['params'], mine['params']))
        names = GTorch.Optimizer.get_setting_names(optimizer) or list(mine.get_setting_names())
        keys.append({key: value for key, value in group.items() if _is_own(optimizer, names, key)})
        found.update({f'group.{i}.{key}': value for key, value in _flat_group(optimizer, i, names, group).items()})
    positions = {number: i for i, number in enumerate(params)}
    for number, states in table['state'].items():
        if number not in positions:
            _refuse(f'there is a state of parameter {number!r}, which is in no group')
        if not isinstance(states, Mapping):
            _refuse(f'the state of parameter {number!r} is {type(states).__name__}, not a dictionary')
        for name, value in states.items():
            if is_programs(optimizer) and not hasattr(value, '__dlpack__'):
                values.setdefault(params[number], {})[name] = _foreign(value)
            else:
                found.update(_flat_state(f'state.{positions[number]}.{name}', value))
    return found, (keys, values)


def finish(optimizer, found):
    """Takes what flatten() has found for Python, once C has taken the rest; None: there was a flat state dict."""
    keys, values = ([], {}) if found is None else found
    optimizer.__dict__.pop(VALUES, None)
    if values:
        optimizer.__dict__[VALUES] = values
    for group, given in zip(optimizer.param_groups, keys):
        for key, value in given.items():
            group[key] = value


def _put(optimizer, states, path, tensor):
    """Puts an entry such as old_dirs.3 into the list of its name."""
    name, _dot, index = path.partition('.')
    if not index or is_programs(optimizer):
        states[path] = tensor
        return
    states.setdefault(name, {})[int(index)] = tensor


def _shown_states(optimizer, states):
    found = {}
    for name, value in sorted(states.items()):
        if isinstance(value, dict) and not is_programs(optimizer):
            found[name] = [value[i] for i in sorted(value)]
        elif isinstance(optimizer, GTorch.LBFGS) and name in NUMBERS:
            found[name] = NUMBERS[name](value.item())
        else:
            found[name] = value
    return found


def forms(optimizer):
    for row in OPTIMIZERS:
        if isinstance(optimizer, getattr(GTorch, row['name'])):
            found = {arg['name']: groups.FORMS[arg['name']] for arg in row['args'] if arg['form'] is not None}
            return {key: GTorch.Optimizer.get_capturable(optimizer) if key == 'capturable' else value for key, value in found.items()}
    return {}


def nest(optimizer, table):
    """Converts a state dict to PyTorch's nested form."""
    states, found, n = {}, [], 0
    for key, tensor in table.items():
        kind, number, name = key.split('.', 2)
        if kind == 'state':
            _put(optimizer, states.setdefault(int(number), {}), name, tensor)
    for group in optimizer.param_groups:
        settings = {key: group[key] for key in group.keys() if key != 'params'}
        if isinstance(optimizer, GTorch.LBFGS) and settings['max_eval'] is None:
            settings['max_eval'] = settings['max_iter'] * 5 // 4
        for i, param in enumerate(group['params'], n):
            if values_of(optimizer, param):
                states.setdefault(i, {}).update(values_of(optimizer, param))
        params = list(range(n, n + len(group['params'])))
        n += len(params)
        found.append({**settings, **forms(optimizer), 'params': params})
    return {'state': {i: _shown_states(optimizer, states[i]) for i in sorted(states)}, 'param_groups': found}


def with_numbers(optimizer, table):
    """Adds the numbers among the states of a program's class to the flat form."""
    params = [param for group in optimizer.param_groups for param in group['params']]
    for i, param in enumerate(params):
        for name, value in values_of(optimizer, param).items():
            if not isinstance(value, (bool, int, float)):
                kind = type(value).__name__
                raise TypeError(f'state_dict: state.{i}.{name} is {kind}, for which the flat form has no place')
            table[f'state.{i}.{name}'] = _single(float(value))
    return table


# --- schedules ---

# What follows from the other entries.
DERIVED = (
    '_step_count', '_is_initial', '_get_lr_called_within_step', 'verbose', 'use_beta1', 'T_i', 'T_cur',
    'default_min_lr', 'mode_worse',
)  # fmt: skip
RENAMED = {
    '_last_lr': 'last_lr', '_milestones': 'milestones', '_anneal_func_type': 'anneal_strategy',
    '_anneal_strategy': 'anneal_strategy',
}  # fmt: skip
# What PyTorch has in the groups of the optimizer, or not at all: here it stays as the schedule was made.
KEPT = {
    'OneCycleLR': ('max_lrs', 'div_factor', 'final_div_factor', 'base_momentum', 'max_momentum'),
    'SWALR': ('swa_lr',),
    'ReduceLROnPlateau': ('base_lrs',),
    'SequentialLR': ('base_lrs',),
    'ChainedScheduler': ('base_lrs', 'last_epoch'),
}
FUNCTIONS = ('lr_lambdas', '_scale_fn_custom', '_scale_fn_ref')


def _cycle(found):
    """CyclicLR has its lengths as a sum and a ratio, and a momentum for each group."""
    total, ratio = found.pop('total_size'), found.pop('step_ratio')
    found['step_size_up'] = total * ratio
    found['step_size_down'] = total - total * ratio
    for name in ('base_momentum', 'max_momentum'):
        values = found.pop(f'{name}s', None) or [0.8 if name == 'base_momentum' else 0.9]
        if len(set(values)) != 1:
            _refuse(f'{name}s is {values!r}, which must be the same for all groups')
        found[name] = values[0]


def _one_cycle(found):
    """OneCycleLR has the ends of its phases."""
    phases = found.pop('_schedule_phases')
    found['three_phase'] = len(phases) == 3
    found['pct_start'] = (phases[0]['end_step'] + 1) / found['total_steps']


def _from_torch(name, table):
    """Converts the names of PyTorch's schedules."""
    found = {}
    for key, value in table.items():
        if key in FUNCTIONS:
            values = value if isinstance(value, (list, tuple)) else [value]
            if any(one is not None for one in values):
                _refuse(f'“{key}” has the attributes of an object that is called, which are no part of a state here')
        elif key not in DERIVED:
            found[RENAMED.get(key, key)] = value
    if 'total_size' in found:
        _cycle(found)
    if '_schedule_phases' in found:
        _one_cycle(found)
    if isinstance(found.get('milestones'), Counter):
        found['milestones'] = sorted(found['milestones'].elements())
    return found


def _schedule_value(schedule, key, value):
    spec = spec_of(schedule, key.lower())
    if isinstance(value, str) and spec is not None and spec.value_type.is_a(GObject.TYPE_ENUM):
        value = int(convert_enum(python_class(spec.value_type), value, f'load_state_dict: {key}'))
    if isinstance(value, (list, tuple)) and not value:
        return _doubles([])
    return to_tensor(key, value)


def flatten_schedule(schedule, table):
    """Converts the state dict of a schedule, which may be PyTorch's, to names and tensors."""
    if not isinstance(table, Mapping):
        return table
    parts = list(table.get('_schedulers', ()))
    given = {key: value for key, value in table.items() if key != '_schedulers'}
    if '_last_lr' in table:
        name = next(cls.__name__ for cls in type(schedule).__mro__ if hasattr(GTorch, cls.__name__))
        given = _from_torch(name, given)
        mine = dict(zip(*reversed(GTorch.LRScheduler.state_lists(schedule))))
        given = {**{key: mine[key] for key in KEPT.get(name, ()) if key in mine}, **given}
    found = {}
    for key, value in given.items():
        found[key] = _schedule_value(schedule, key, value) if isinstance(key, str) else value
    if parts:
        own = list(schedule.get_schedulers())
        if len(own) != len(parts):
            raise ValueError(f'load_state_dict: there are states of {len(parts)} schedules, it consists of {len(own)}')
        for i, (part, state) in enumerate(zip(own, parts)):
            more = flatten_schedule(part, state)
            found.update({f'schedulers.{i}.{key}': value for key, value in more.items()})
    return found


def _plain(schedule, key, tensor):
    """A tensor of a state dict as Python's value."""
    spec = spec_of(schedule, key.lower())
    kind = GObject.TYPE_DOUBLE if spec is None else spec.value_type
    if tensor.shape:
        values = tensor.tolist()
        return [int(one) for one in values] if kind.name == 'GTorchSize' else values
    if kind.is_a(GObject.TYPE_ENUM) or kind in (GObject.TYPE_BOOLEAN, GObject.TYPE_INT64):
        return groups.shown(kind, [tensor.item()])
    return int(tensor.item()) if key == 'last_epoch' else tensor.item()


def _to_cycle(schedule, found):
    up, down = found.pop('step_size_up'), found.pop('step_size_down')
    n = len(schedule.optimizer.param_groups)
    momenta = {f'{name}s': [found.pop(name)] * n for name in ('base_momentum', 'max_momentum')}
    rates = found.pop('max_lrs')
    found.update(momenta, total_size=up + down, step_ratio=up / (up + down))
    found.update(max_lrs=rates if len(rates) == n else rates * n, _scale_fn_custom=None)


def _to_one_cycle(found):
    """The ends of the phases."""
    total, rise, three = found['total_steps'], found.pop('pct_start'), found.pop('three_phase')
    ends = [rise * total - 1, *([2 * rise * total - 2] if three else []), total - 1]
    rates = ['initial_lr', 'max_lr', *(['initial_lr'] if three else []), 'min_lr']
    low, high = 'base_momentum', 'max_momentum'
    momenta = [high, low, high, high] if three else [high, low, high]
    names = ('end_step', 'start_lr', 'end_lr', 'start_momentum', 'end_momentum')
    phases = zip(ends, rates, rates[1:], momenta, momenta[1:])
    found.update(_schedule_phases=[dict(zip(names, one)) for one in phases])
    found['_anneal_func_type'] = found.pop('anneal_strategy')


def _to_restarts(found):
    """The length of the present period, and the place in it."""
    found['T_cur'], found['T_i'] = max(found['last_epoch'], 0), found['T_0']
    while found['T_cur'] >= found['T_i']:
        found['T_cur'] -= found['T_i']
        found['T_i'] *= found['T_mult']


def nest_schedule(schedule, table):
    """Converts a state dict to PyTorch's form."""
    name = next(cls.__name__ for cls in type(schedule).__mro__ if hasattr(GTorch, cls.__name__))
    found = {key: _plain(schedule, key, one) for key, one in table.items() if not key.startswith('schedulers.')}
    lost = set(KEPT.get(name, ())) - {'last_epoch'}  # PyTorch passes over what it does not know
    found = {key: value for key, value in found.items() if key not in lost}
    found['_last_lr'] = found.pop('last_lr')
    if name == 'CyclicLR':
        _to_cycle(schedule, found)
    elif name == 'OneCycleLR':
        _to_one_cycle(found)
    elif name == 'CosineAnnealingWarmRestarts':
        _to_restarts(found)
    elif name == 'SWALR':
        found['_anneal_strategy'] = found.pop('anneal_strategy')
    elif name == 'MultiStepLR':
        found['milestones'] = Counter(found['milestones'])
    elif name in ('SequentialLR', 'ChainedScheduler'):
        parts = list(schedule.get_schedulers())
        found['_schedulers'] = [nest_schedule(part, dict(zip(*reversed(part.state_lists())))) for part in parts]
        if name == 'SequentialLR':
            found['_milestones'] = found.pop('milestones')
        return found
    if name in ('LambdaLR', 'MultiplicativeLR'):
        found['lr_lambdas'] = [None] * len(schedule.optimizer.param_groups)
    found['_step_count'] = int(table['last_epoch'].item()) + 1
    return {**found, '_is_initial': False, '_get_lr_called_within_step': False}
