# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""torch.distributed.fsdp: modules whose parameters are spread over processes."""

import dataclasses
import threading
import types
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


@dataclasses.dataclass
class OffloadPolicy:
    """Parts stay where the module computes."""


@dataclasses.dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parts, their gradients and the states of optimizers are in the memory of the CPU, from which GPUs copy by
    themselves if it is pinned."""

    pin_memory: bool = True


class UnshardHandle:
    """What unshard(async_op=True) has begun."""

    def __init__(self, module):
        self._module = module

    def wait(self):
        """Waits until the module has its whole parameters."""
        if self._module is not None:
            self._module, module = None, self._module
            module.unshard()


class _IsSharded(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, GTorch.Module) and '_shards' in vars(instance)


class FSDPModule(metaclass=_IsSharded):
    """What fully_shard() gives a module; isinstance(module, FSDPModule) tells whether it was called for it."""

    def _all(self, recurse=True):
        return [one for one in (self.modules() if recurse else [self]) if isinstance(one, FSDPModule)]

    def _set(self, name, value, recurse):
        for one in FSDPModule._all(self, recurse):
            one._shards[0].set_property(name, value)

    def unshard(self, async_op=False):
        """Makes the parameters whole until reshard(), or until the end of the next call of the module. With @async_op
        that only begins, and the result has wait()."""
        dist._run(lambda: self._shards[0].unshard(not async_op))
        if async_op:
            return UnshardHandle(self)
        self._shards[1]()
        return None

    def reshard(self):
        """Drops the whole parameters."""
        dist._run(self._shards[0].reshard)
        self._shards[1]()

    def set_requires_gradient_sync(self, requires_gradient_sync, *, recurse=True):
        """Whether backward passes exchange gradients; otherwise they are added up for one that does."""
        FSDPModule._set(self, 'requires-gradient-sync', requires_gradient_sync, recurse)

    def set_requires_all_reduce(self, requires_all_reduce, *, recurse=True):
        """Whether backward passes exchange gradients with the replicas, on a mesh of two dimensions."""
        FSDPModule._set(self, 'requires-all-reduce', requires_all_reduce, recurse)

    def set_reshard_after_forward(self, reshard_after_forward, recurse=True):
        """Whether the whole parameters are dropped after the forward pass."""
        for one in FSDPModule._all(self, recurse):
            one._shards[2].clear()  # it no longer depends on the call
        FSDPModule._set(self, 'reshard-after-forward', reshard_after_forward, recurse)

    def set_reshard_after_backward(self, reshard_after_backward, *, recurse=True):
        """Whether the whole parameters are dropped after the backward pass."""
        FSDPModule._set(self, 'reshard-after-backward', reshard_after_backward, recurse)

    def set_is_last_backward(self, is_last_backward):
        """Nothing is put off until the last backward pass, so there is nothing to be told."""

    def set_gradient_divide_factor(self, factor):
        """What the sum of the gradients of all ranks is divided by."""
        if not factor > 0:
            raise ValueError(f'set_gradient_divide_factor: the factor is {factor}; it is more than 0')
        FSDPModule._set(self, 'gradient-divide-factor', float(factor), False)

    set_reduce_scatter_divide_factor = set_gradient_divide_factor

    def set_modules_to_forward_prefetch(self, modules):
        """Whose parameters are gathered while this module computes; by default those of what is called next."""
        dist._run(lambda: self._shards[0].set_forward_prefetch(_shards_of('forward', modules)))

    def set_modules_to_backward_prefetch(self, modules):
        """The same in the backward pass; by default those of what was called before."""
        dist._run(lambda: self._shards[0].set_backward_prefetch(_shards_of('backward', modules)))


def _shards_of(what, modules):
    modules = list(modules)
    for one in modules:
        if not isinstance(one, FSDPModule):
            raise ValueError(f'set_modules_to_{what}_prefetch: {type(one).__name__} was not given to fully_shard()')
    return [one._shards[0] for one in modules]


def _refusing(name, why):
    def method(self, *_given, **_options):
        raise NotImplementedError(f'{name} is not supported: {why}')

    method.__name__, method.__doc__ = name, f'Not supported: {why}.'
    return method


for _name, _why in {
    'set_all_reduce_hook': 'gradients of replicas are averaged',
    'set_custom_all_gather': 'the backend of the group gathers parameters',
    'set_custom_reduce_scatter': 'the backend of the group reduces gradients',
    'set_post_optim_event': 'an exchange waits for the current stream',
    'set_force_sum_reduction_for_comms': 'set_gradient_divide_factor() makes it a sum',
    'set_unshard_in_backward': 'the backward pass gathers the parameters that it needs, and no others',
    'set_allocate_memory_from_process_group_for_comm': 'memory is that of the device',
}.items():
    setattr(FSDPModule, _name, _refusing(_name, _why))

METHODS = [name for name, value in vars(FSDPModule).items()
           if not name.startswith('_') and isinstance(value, types.FunctionType)]


def _dtype(value):
    return GTorch.DType.NONE if value is None else value


def _groups(mesh):
    """The group over which parameters are spread, and that of the replicas or None."""
    if mesh is None or isinstance(mesh, GTorch.ProcessGroup):
        return dist._group(mesh), None
    if mesh.ndim > 2:
        raise ValueError(f'fully_shard: the mesh has {mesh.ndim} dimensions; it has one, or two: replicas, and ranks '
                         'with parts')
    if mesh.ndim == 2:
        return mesh.get_group(1), mesh.get_group(0)
    return mesh.get_group(0), None


def _find_nearby(group, n):
    """The group of this rank among those of n ranks that follow each other; made once for a group."""
    size = group.get_size()
    if n < 1 or size % n:
        raise ValueError(f'fully_shard: reshard_after_forward is {n}; it divides the number of ranks, {size}')
    known = group.__dict__.setdefault('_nearby', {})
    if n not in known:
        found = [dist._run(lambda first=first: group.new_part(list(range(first, first + n)), -1))
                 for first in range(0, size, n)]
        known[n] = next(one for one in found if one.get_rank() >= 0)
    return known[n]


def fully_shard(module, *, mesh=None, reshard_after_forward=None, shard_placement_fn=None,
                mp_policy=MixedPrecisionPolicy(), offload_policy=None, ignored_params=None):
    """Divides the parameters of a module among the processes of a group, by default all, or of a @mesh: of two
    dimensions, the second divides them, and the first has replicas. Modules inside come first. A number
    @reshard_after_forward keeps them spread over so many ranks until the backward pass; None is False for the outermost
    module of a call and True for others. @ignored_params stay whole, and their gradients are this rank's. Returns the
    module, whose parameters are this rank's parts; optimizers are made afterwards."""
    if shard_placement_fn is not None:
        raise NotImplementedError('fully_shard: shard_placement_fn is not supported: the first dimension is divided')
    if offload_policy is not None and not isinstance(offload_policy, OffloadPolicy):
        raise TypeError(f'fully_shard: offload_policy is an OffloadPolicy, not {type(offload_policy).__name__}')
    group, replicas = _groups(mesh)
    nearby = None
    if isinstance(reshard_after_forward, int) and not isinstance(reshard_after_forward, bool):
        nearby = _find_nearby(group, reshard_after_forward)
    reshard = True if reshard_after_forward is None else bool(reshard_after_forward)
    for one in ignored_params or ():
        GTorch.ModuleShards.ignore(one)
    made = dist._run(lambda: GTorch.ModuleShards.new(
        module, group, reshard, _dtype(mp_policy.param_dtype), _dtype(mp_policy.reduce_dtype),
        _dtype(mp_policy.output_dtype)))
    made.props.cast_forward_inputs = mp_policy.cast_forward_inputs
    if replicas is not None:
        dist._run(lambda: made.set_replicas(replicas))
    if nearby is not None:
        dist._run(lambda: made.set_nearby(nearby))
    if isinstance(offload_policy, CPUOffloadPolicy):
        dist._run(lambda: made.offload(offload_policy.pin_memory))
    _surround(module, made, mp_policy, reshard_after_forward is None)
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


_calls = threading.local()  # how many calls of modules are within each other


def _surround(module, shards, policy, depends):
    """What the hooks of C's cannot do: calls of modules in Python, and attributes, which Python finds without C."""
    shown = [(one, name) for one in module.modules() for name, value in vars(one).items()
             if isinstance(value, GTorch.Parameter) and GTorch.ModuleShards.find(value) is shards]

    def show():
        for one, name in shown:
            one._gt_show(name, Computed.get_tensor(one, name))

    inner = policy.param_dtype if policy.cast_forward_inputs else None
    choice = {'depends on the call': True} if depends else {}

    def before(_module, inputs, options):
        depth = getattr(_calls, 'depth', 0)
        if choice:
            shards.props.reshard_after_forward = depth > 0
        dist._run(shards.begin_forward)
        _calls.depth = depth + 1
        show()
        return _converted(inputs, inner), _converted(options, inner)

    def after(_module, _inputs, output):
        _calls.depth = max(0, getattr(_calls, 'depth', 0) - 1)
        shards.end_forward()
        show()
        return _converted(output, policy.output_dtype)

    module._shards = (shards, show, choice)
    for name in METHODS:
        module.__dict__[name] = types.MethodType(vars(FSDPModule)[name], module)
    module.register_forward_pre_hook(before, prepend=True, with_kwargs=True)
    module.register_forward_hook(after, always_call=True)


def register_fsdp_forward_method(module, method_name):
    """Lets a method of a module have its whole parameters, as a call of the module has."""
    if not isinstance(module, FSDPModule):
        return
    function = getattr(type(module), method_name)
    shards, show, _choice = module._shards

    def method(self, *inputs, **options):
        dist._run(shards.begin_forward)
        show()
        try:
            return function(self, *inputs, **options)
        finally:
            shards.end_forward()
            show()

    module.__dict__[method_name] = types.MethodType(method, module)


# --- states ---


@dataclasses.dataclass
class StateDictOptions:
    """How get_model_state_dict() gives a state."""

    full_state_dict: bool = False
    cpu_offload: bool = False
    strict: bool = True


def _layers(model, state):
    """The parameters of a state dict that are parts of layers that were divided, by name."""
    return {name: param for name, param in model.named_parameters() if name in state
            and GTorch.ModuleShards.find(param) is None and GTorch.parallelize_is_part(param)}


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


def _adopted(tensor, shards, param):
    """A tensor of the same elements that is known as a part, as one of the parameter is."""
    tensor = tensor.detach()
    dist._run(lambda: shards.adopt(tensor, param))
    return tensor


def get_model_state_dict(model, *, options=None):
    """The state dict of a model: with full_state_dict whole parameters, for which all ranks call this; the parts of
    this rank otherwise, which files take as parts of whole tensors."""
    options = options or StateDictOptions()
    state = dict(model.state_dict())
    for name, (shards, param) in _places(model).items():
        if options.full_state_dict:
            state[name] = dist._run(lambda shards=shards, param=param: shards.gather(param))
        else:
            state[name] = _adopted(param.cpu() if options.cpu_offload else param, shards, param)
    if options.full_state_dict:
        for name, param in _layers(model, state).items():
            state[name] = dist._run(lambda param=param: GTorch.parallelize_gather(param))
    to_host = options.cpu_offload and options.full_state_dict
    return {name: one.cpu() for name, one in state.items()} if to_host else state


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
        for name, param in _layers(model, state).items():
            dist._run(lambda param=param, full=state[name]: GTorch.parallelize_scatter(param, full))
            state[name] = own[name]
    return model.load_state_dict(state, strict=options.strict)


def _named(model, optimizer):
    """The parameters of an optimizer, by their names in the model, in the order of the optimizer."""
    names = {param: name for name, param in model.named_parameters()}
    return [[(names[param], param) for param in group['params']] for group in optimizer.param_groups]


def _state_tensor(value, param, options):
    shards = GTorch.ModuleShards.find(param)
    if shards is None or not isinstance(value, RawTensor) or value.shape != param.shape or value.dim() == 0:
        return value
    part = _adopted(value, shards, param)
    return dist._run(lambda: shards.gather(part)) if options.full_state_dict else part


def get_optimizer_state_dict(model, optimizers, *, options=None):
    """The state dict of an optimizer with the names of parameters: with full_state_dict whole tensors, for which all
    ranks call this; the parts of this rank otherwise."""
    options = options or StateDictOptions()
    own, named = optimizers.state_dict(), _named(model, optimizers)
    flat = [pair for group in named for pair in group]
    state = {name: {key: _state_tensor(value, param, options) for key, value in own['state'][i].items()}
             for i, (name, param) in enumerate(flat) if i in own['state']}
    groups = [{**group, 'params': [name for name, _param in pairs]}
              for group, pairs in zip(own['param_groups'], named)]
    return {'state': state, 'param_groups': groups}


def set_optimizer_state_dict(model, optimizers, optim_state_dict, *, options=None):
    """Loads what get_optimizer_state_dict() gives, with the same options."""
    options = options or StateDictOptions()
    named = _named(model, optimizers)
    numbers = {name: (i, param) for i, (name, param) in enumerate(pair for group in named for pair in group)}
    state = {}
    for name, values in optim_state_dict['state'].items():
        number, param = numbers[name]
        shards = GTorch.ModuleShards.find(param)
        state[number] = {}
        for key, value in values.items():
            if shards is not None and options.full_state_dict and isinstance(value, RawTensor) and value.dim() > 0:
                part = _adopted(param.detach().to(value.dtype, copy=True), shards, param)
                dist._run(lambda shards=shards, part=part, full=value: shards.scatter(part, full))
                value = part
            state[number][key] = value
    groups = [{**group, 'params': [numbers[name][0] for name in group['params']]}
              for group in optim_state_dict['param_groups']]
    optimizers.load_state_dict({'state': state, 'param_groups': groups})


def get_state_dict(model, optimizers, *, options=None):
    """The state dicts of a model and of an optimizer."""
    return get_model_state_dict(model, options=options), get_optimizer_state_dict(model, optimizers, options=options)


def set_state_dict(model, optimizers, *, model_state_dict, optim_state_dict, options=None):
    """Loads the state dicts of a model and of an optimizer."""
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False):
    """torch.nn.utils.clip_grad_norm_(), which knows of parts: the norm is that of all ranks."""
    return GTorch.nn.utils.clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite)


ABSENT = {
    **dict.fromkeys(('FullyShardedDataParallel', 'ShardingStrategy', 'BackwardPrefetch', 'CPUOffload',
                     'MixedPrecision'), 'fully_shard() divides parameters'),
    **dict.fromkeys(('StateDictType', 'StateDictConfig', 'StateDictSettings', 'FullStateDictConfig',
                     'LocalStateDictConfig', 'ShardedStateDictConfig', 'OptimStateDictConfig',
                     'FullOptimStateDictConfig', 'LocalOptimStateDictConfig', 'ShardedOptimStateDictConfig',
                     'OptimStateKeyType'), 'StateDictOptions says how a state is given'),
    'share_comm_ctx': 'all modules of a group share its communicator',
}


def _find_absent(name):
    if name in ABSENT:
        raise AttributeError(f'torch.distributed.fsdp.{name} has no counterpart: {ABSENT[name]}')
    raise AttributeError(f"module 'gtorch.distributed.fsdp' has no attribute {name!r}")


def submodules():
    """What is below torch.distributed, by name."""
    fsdp = (fully_shard, FSDPModule, UnshardHandle, MixedPrecisionPolicy, OffloadPolicy, CPUOffloadPolicy,
            register_fsdp_forward_method, clip_grad_norm_)
    states = (StateDictOptions, get_model_state_dict, set_model_state_dict, get_optimizer_state_dict,
              set_optimizer_state_dict, get_state_dict, set_state_dict)
    return {'fsdp': {**{one.__name__: one for one in fsdp}, '__getattr__': _find_absent},
            'checkpoint.state_dict': {one.__name__: one for one in states}}
