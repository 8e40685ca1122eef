# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""torch.distributed.checkpoint.state_dict: states of models and optimizers of which each process has a part."""

import dataclasses

from gi.repository import GTorch

from gi.overrides import _gtorch_distributed as dist
from gi.overrides._gtorch_context import no_grad
from gi.overrides._gtorch_convert import RawTensor
from gi.overrides._gtorch_ddp import DistributedDataParallel

# --- parts ---


def is_part(tensor):
    """Whether processes have other parts of the tensor."""
    return GTorch.parallelize_is_part(tensor) or GTorch.ModuleShards.find(tensor) is not None


def gather(tensor):
    """The whole tensor; all ranks call this."""
    if GTorch.parallelize_is_part(tensor):
        return dist._run(lambda: GTorch.parallelize_gather(tensor))
    return dist._run(lambda: GTorch.ModuleShards.find(tensor).gather(tensor))


def scatter(tensor, full):
    """Takes this rank's part of a whole tensor."""
    if GTorch.parallelize_is_part(tensor):
        dist._run(lambda: GTorch.parallelize_scatter(tensor, full))
    else:
        dist._run(lambda: GTorch.ModuleShards.find(tensor).scatter(tensor, full))


def adopt(tensor, param):
    """Makes a tensor known as a part, divided as a parameter is."""
    if GTorch.parallelize_is_part(param):
        dist._run(lambda: GTorch.parallelize_adopt(tensor, param))
    else:
        dist._run(lambda: GTorch.ModuleShards.find(param).adopt(tensor, param))
    return tensor


# --- names ---


def _prefixes(model):
    """What DistributedDataParallel adds to names: pairs of the path with it and without."""
    paths = [path for path, one in model.named_modules() if isinstance(one, DistributedDataParallel)]
    return [(f'{path}.module.' if path else 'module.', f'{path}.' if path else '') for path in sorted(paths)]


def _plain(name, prefixes):
    """The name without them; the innermost first, whose paths have the others."""
    for long, short in reversed(prefixes):
        if name.startswith(long):
            name = short + name[len(long):]
    return name


def _named_params(model):
    """The parameters by their names, of a module that is whole at present its parts."""
    parts = {}
    for one in model.modules():
        for inner, name, param in getattr(one, '_parts', ()):
            parts[inner, name] = param
    found = {}
    for path, one in model.named_modules():
        members = GTorch.Module.get_member_names(one, GTorch.MemberKind.PARAMETER)
        for name in members:
            param = parts[one, name] if (one, name) in parts else GTorch.Module.get_parameter(one, name)
            if param is not None:
                found[f'{path}.{name}' if path else name] = param
    return found


def _parts_of(model, state):
    """The parameters of a state dict that are parts, by name."""
    return {name: param for name, param in _named_params(model).items() if name in state and is_part(param)}


# --- options ---


@dataclasses.dataclass
class StateDictOptions:
    """How get_model_state_dict() gives a state, and set_model_state_dict() takes one: full_state_dict whole tensors,
    cpu_offload on the CPU; with broadcast_from_rank0 they are those of rank 0, and the other ranks need none."""

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False

    def __post_init__(self):
        for name, only in (('ignore_frozen_params', False), ('keep_submodule_prefixes', True),
                           ('flatten_optimizer_state_dict', False)):
            if getattr(self, name) != only:
                raise NotImplementedError(f'StateDictOptions: {name} is not supported: it is {only}')
        if self.broadcast_from_rank0 and not self.full_state_dict:
            raise ValueError('StateDictOptions: broadcast_from_rank0 needs full_state_dict: rank 0 has whole tensors')


def _options(options):
    if options is None:
        return StateDictOptions()
    if not isinstance(options, StateDictOptions):
        raise TypeError(f'options is a StateDictOptions, not {type(options).__name__}')
    return options


class _Sent:
    """Stands for a tensor that is sent by itself."""

    def __init__(self, tensor):
        self.shape, self.dtype = list(tensor.shape), str(tensor.dtype).rpartition('.')[2]


def _replaced(value, change):
    if isinstance(value, dict):
        return {key: _replaced(one, change) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_replaced(one, change) for one in value)
    return change(value)


def _from_rank0(state):
    """The state of rank 0, on all ranks; tensors are sent one by one."""
    group = dist._group(None)
    device = 'cpu' if group.get_backend() == 'mpi' else f'cuda:{GTorch.cuda.current_device()}'
    tensors = []

    def describe(value):
        if not isinstance(value, RawTensor):
            return value
        tensors.append(value.detach())
        return _Sent(value)

    def take(value):
        if not isinstance(value, _Sent):
            return value
        if group.get_rank() == 0:
            tensor = tensors.pop(0)
            dist.broadcast(tensor.to(device).contiguous(), 0)
            return tensor
        tensor = GTorch.zeros(value.shape, dtype=getattr(GTorch.DType, value.dtype.upper()), device=device)
        dist.broadcast(tensor, 0)
        return tensor

    outline = [_replaced(state, describe) if group.get_rank() == 0 else None]
    dist.broadcast_object_list(outline, 0)
    return _replaced(outline[0], take)


# --- models ---


@dist._composed
def get_model_state_dict(model, *, options=None):
    """The state dict of a model: with full_state_dict whole parameters, for which all ranks call this; the parts of
    this rank otherwise, which files take as parts of whole tensors. Names are those without DistributedDataParallel."""
    options = _options(options)
    state = dict(model.state_dict())
    for name, param in _parts_of(model, state).items():
        if options.full_state_dict:
            state[name] = gather(param)
        else:
            part = param.detach()
            state[name] = adopt(part.cpu() if options.cpu_offload else part, param)
    prefixes = _prefixes(model)
    to_host = options.cpu_offload and options.full_state_dict
    return {_plain(name, prefixes): one.cpu() if to_host else one for name, one in state.items()}


@dist._composed
def set_model_state_dict(model, model_state_dict, *, options=None):
    """Loads a state dict: with full_state_dict one of whole parameters, of which each rank takes its parts."""
    options = _options(options)
    given = _from_rank0(model_state_dict) if options.broadcast_from_rank0 else dict(model_state_dict)
    own, prefixes = model.state_dict(), _prefixes(model)
    long = {_plain(name, prefixes): name for name in own}
    state = {long.get(name, name): value for name, value in given.items()}
    for name, param in _parts_of(model, own).items():
        if name not in state:
            continue
        if options.full_state_dict:
            scatter(param, state[name])
        elif own[name].shape != param.shape:
            raise ValueError(f'set_model_state_dict: {name!r} is whole at present, by unshard(), and this rank\'s part '
                             'is to be loaded: call reshard() before')
        else:
            continue
        state[name] = own[name]
    return model.load_state_dict(state, strict=options.strict)


# --- optimizers ---


def _named(model, optimizer):
    """The parameters of an optimizer, by their names in the model, in the order of the optimizer."""
    prefixes, names = _prefixes(model), {}
    for name, param in _named_params(model).items():
        names.setdefault(param, _plain(name, prefixes))
    groups = []
    for i, group in enumerate(optimizer.param_groups):
        for k, param in enumerate(group['params']):
            if param not in names:
                raise ValueError(f'parameter {k} of group {i} of the optimizer, of shape {list(param.shape)}, is none '
                                 'of the model')
        groups.append([(names[param], param) for param in group['params']])
    return groups


def begin_states(optimizer):
    """The state dict of an optimizer; of one that has made no step, with states as one would have made them. The
    optimizer has none afterwards either, and its parameters do not change."""
    own = optimizer.state_dict()
    params = [param for group in optimizer.param_groups for param in group['params'] if param.requires_grad]
    if own['state'] or '_shard' in vars(optimizer) or isinstance(optimizer, GTorch.LBFGS):
        return own
    grads, values = [param.grad for param in params], [param.detach().clone() for param in params]
    try:
        with no_grad():
            for param in params:
                param.grad = GTorch.zeros_like(param)
            GTorch.Optimizer.step(optimizer) if type(optimizer).step is GTorch.Optimizer.step else optimizer.step()
        made = optimizer.state_dict()
    finally:
        with no_grad():
            for param, grad, value in zip(params, grads, values):
                param.grad = grad
                param.detach().copy_(value)
        optimizer.load_state_dict(own)
    for values in made['state'].values():
        if isinstance(values.get('step'), RawTensor):
            values['step'].zero_()
    return made


def _state_tensor(value, param, options):
    if not is_part(param) or not isinstance(value, RawTensor) or value.shape != param.shape or value.dim() == 0:
        return value.cpu() if options.cpu_offload and isinstance(value, RawTensor) else value
    part = adopt(value.detach(), param)
    if options.full_state_dict:
        whole = gather(part)
        return whole.cpu() if options.cpu_offload else whole
    return adopt(part.cpu(), param) if options.cpu_offload else part


@dist._composed
def get_optimizer_state_dict(model, optimizers, *, options=None):
    """The state dict of an optimizer with the names of parameters: with full_state_dict whole tensors, for which all
    ranks call this; the parts of this rank otherwise. Of an optimizer that has made no step it has what a checkpoint
    can be read to."""
    options = _options(options)
    own, named = begin_states(optimizers), _named(model, optimizers)
    flat = [pair for group in named for pair in group]
    state = {name: {key: _state_tensor(value, param, options) for key, value in own['state'][i].items()}
             for i, (name, param) in enumerate(flat) if i in own['state']}
    groups = [{**group, 'params': [name for name, _param in pairs]}
              for group, pairs in zip(own['param_groups'], named)]
    return {'state': state, 'param_groups': groups}


@dist._composed
def set_optimizer_state_dict(model, optimizers, optim_state_dict, *, options=None):
    """Loads what get_optimizer_state_dict() gives, with the same options."""
    options = _options(options)
    given = _from_rank0(optim_state_dict) if options.broadcast_from_rank0 else optim_state_dict
    named = _named(model, optimizers)
    numbers = {name: (i, param) for i, (name, param) in enumerate(pair for group in named for pair in group)}
    for name in [*given['state'], *(name for group in given['param_groups'] for name in group['params'])]:
        if name not in numbers:
            raise ValueError(f'set_optimizer_state_dict: the optimizer has no parameter {name!r}')
    state = {}
    for name, values in given['state'].items():
        number, param = numbers[name]
        state[number] = {}
        for key, value in values.items():
            if is_part(param) and options.full_state_dict and isinstance(value, RawTensor) and value.dim() > 0:
                part = adopt(param.detach().to(value.dtype, copy=True), param)
                scatter(part, value)
                value = part
            state[number][key] = value
    groups = [{**group, 'params': [numbers[name][0] for name in group['params']]}
              for group in given['param_groups']]
    optimizers.load_state_dict({'state': state, 'param_groups': groups})


@dist._composed
def get_state_dict(model, optimizers, *, options=None):
    """The state dicts of a model and of an optimizer."""
    return get_model_state_dict(model, options=options), get_optimizer_state_dict(model, optimizers, options=options)


@dist._composed
def set_state_dict(model, optimizers, *, model_state_dict, optim_state_dict, options=None):
    """Loads the state dicts of a model and of an optimizer."""
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)


def submodules():
    """What is below torch.distributed, by name."""
    states = (StateDictOptions, get_model_state_dict, set_model_state_dict, get_optimizer_state_dict,
              set_optimizer_state_dict, get_state_dict, set_state_dict)
    return {'checkpoint.state_dict': {one.__name__: one for one in states}}
