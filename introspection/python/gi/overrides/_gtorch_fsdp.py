# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""torch.distributed.fsdp: modules whose parameters are spread over processes."""

import dataclasses
import math
import typing

from gi.repository import GTorch

from gi.overrides import _gtorch_distributed as dist
from gi.overrides._gtorch_convert import RawTensor
from gi.overrides._gtorch_parametrize import Computed


@dataclasses.dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes in which a module computes, gradients are sent, and results are given."""

    param_dtype: typing.Any = None
    reduce_dtype: typing.Any = None
    output_dtype: typing.Any = None
    cast_forward_inputs: bool = True


class OffloadPolicy:
    """Nothing is kept elsewhere."""


class CPUOffloadPolicy(OffloadPolicy):
    """Parts in the memory of the CPU: not supported."""

    def __init__(self, pin_memory=True):
        raise NotImplementedError('CPUOffloadPolicy is not supported: parts stay on the device')


def _dtype(value):
    return GTorch.DType.NONE if value is None else value


def fully_shard(module, *, mesh=None, reshard_after_forward=None, shard_placement_fn=None,
                mp_policy=MixedPrecisionPolicy(), offload_policy=None, ignored_params=None):
    """Divides the parameters of a module among the processes of a group, @mesh, by default all. Modules inside come
    first. Returns the module, whose parameters are this rank's parts; optimizers are made afterwards."""
    for name, value in (('shard_placement_fn', shard_placement_fn), ('ignored_params', ignored_params)):
        if value is not None:
            raise NotImplementedError(f'fully_shard: {name} is not supported')
    if offload_policy is not None and type(offload_policy) is not OffloadPolicy:
        raise NotImplementedError('fully_shard: offload_policy is not supported: parts stay on the device')
    if isinstance(reshard_after_forward, int) and not isinstance(reshard_after_forward, bool):
        raise NotImplementedError('fully_shard: reshard_after_forward is True or False, not a number of ranks')
    if not mp_policy.cast_forward_inputs and mp_policy.param_dtype is not None:
        raise NotImplementedError('fully_shard: cast_forward_inputs=False is not supported')
    group = dist._group(mesh.get_group() if hasattr(mesh, 'get_group') else mesh)
    reshard = True if reshard_after_forward is None else reshard_after_forward
    made = dist._run(lambda: GTorch.ModuleShards.new(
        module, group, reshard, _dtype(mp_policy.param_dtype), _dtype(mp_policy.reduce_dtype),
        _dtype(mp_policy.output_dtype)))
    module._shards = (made,)
    _surround(module, made, mp_policy)
    return module


def _converted(value, dtype):
    """The same object with its floating-point tensors of another dtype."""
    if dtype is None:
        return value
    if isinstance(value, RawTensor):
        return value.to(dtype) if value.is_floating_point() else value
    if isinstance(value, dict):
        return {key: _converted(one, dtype) for key, one in value.items()}
    if isinstance(value, tuple) and hasattr(value, '_fields'):
        return type(value)(*(_converted(one, dtype) for one in value))
    return type(value)(_converted(one, dtype) for one in value) if isinstance(value, (list, tuple)) else value


def _surround(module, shards, policy):
    """What the hooks of C's cannot do: calls of modules in Python, and attributes, which Python finds without C."""
    shown = [(one, name) for one in module.modules() for name, value in vars(one).items()
             if isinstance(value, GTorch.Parameter) and GTorch.ModuleShards.find(value) is shards]

    def show():
        for one, name in shown:
            one._gt_show(name, Computed.get_tensor(one, name))

    def before(_module, inputs, options):
        dist._run(shards.begin_forward)
        show()
        return _converted(inputs, policy.param_dtype), _converted(options, policy.param_dtype)

    def after(_module, _inputs, output):
        shards.end_forward()
        show()
        return _converted(output, policy.output_dtype)

    module.register_forward_pre_hook(before, prepend=True, with_kwargs=True)
    module.register_forward_hook(after, always_call=True)


@dataclasses.dataclass
class StateDictOptions:
    """How get_model_state_dict() gives a state."""

    full_state_dict: bool = False
    cpu_offload: bool = False
    strict: bool = True


def _places(model):
    """The parameters of a state dict that are parts, by name."""
    found = {}
    for name in model.state_dict():
        try:
            param = model.get_parameter(name)
        except AttributeError:
            continue
        shards = GTorch.ModuleShards.find(param)
        if shards is not None:
            found[name] = (shards, param)
    return found


def get_model_state_dict(model, *, options=None):
    """The state dict of a model: with full_state_dict whole parameters, for which all ranks call this; the parts of
    this rank otherwise."""
    options = options or StateDictOptions()
    state = dict(model.state_dict())
    if options.full_state_dict:
        for name, (shards, param) in _places(model).items():
            state[name] = dist._run(lambda shards=shards, param=param: shards.gather(param))
    return {name: one.cpu() for name, one in state.items()} if options.cpu_offload else state


def set_model_state_dict(model, model_state_dict, *, options=None):
    """Loads a state dict: with full_state_dict one of whole parameters, of which each rank takes its parts."""
    options = options or StateDictOptions()
    state = dict(model_state_dict)
    if options.full_state_dict:
        own = model.state_dict()
        for name, (shards, param) in _places(model).items():
            if name in state:
                dist._run(lambda shards=shards, param=param, full=state[name]: shards.scatter(param, full))
                state[name] = own[name]
    return model.load_state_dict(state, strict=options.strict)


def clip_grad_norm_(parameters, max_norm, norm_type=2.0):
    """Scales the gradients of parameters, all of which are parts of one group, so that their norm over all ranks is at
    most @max_norm. Returns that norm."""
    if norm_type != 2:
        raise NotImplementedError('clip_grad_norm_: the norm is that of squares, norm_type=2.0')
    found = [one for one in parameters if one.grad is not None]
    groups = {GTorch.ModuleShards.find(one) for one in found}
    if None in groups or len({one.get_group() for one in groups}) != 1:
        raise ValueError('clip_grad_norm_: the parameters are parts of one group: call fully_shard() before')
    total = sum((one.grad.detach().double() ** 2).sum() for one in found)
    dist.all_reduce(total, group=groups.pop().get_group())
    norm = math.sqrt(total.item())
    if norm > max_norm:
        for one in found:
            one.grad.mul_(max_norm / (norm + 1e-6))
    return norm


def submodules():
    """What is below torch.distributed, by name."""
    fsdp = (fully_shard, MixedPrecisionPolicy, OffloadPolicy, CPUOffloadPolicy, clip_grad_norm_)
    states = (StateDictOptions, get_model_state_dict, set_model_state_dict)
    return {'fsdp': {one.__name__: one for one in fsdp},
            'checkpoint.state_dict': {one.__name__: one for one in states}}
