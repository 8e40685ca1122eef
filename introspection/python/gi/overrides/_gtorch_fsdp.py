# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""torch.distributed.fsdp: modules whose parameters are spread over processes."""

import contextlib
import dataclasses
import threading
import types
import typing
import weakref

from gi.repository import GTorch

from gi.overrides import _gtorch_distributed as dist
from gi.overrides import _gtorch_checkpoint as checkpoint
from gi.overrides._gtorch_convert import RawTensor, convert_bool
from gi.overrides._gtorch_members import opened
from gi.overrides._gtorch_parametrize import Computed
from gi.overrides._gtorch_tensor_parallel import MeshLines, RawMesh


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
        value = convert_bool(value) if isinstance(value, int) else value
        if not isinstance(value, (bool, float)):
            raise TypeError(f'{name.replace("-", "_")} is True or False, not {value!r}')
        for one in FSDPModule._all(self, recurse):
            one._shards.shards.set_property(name, value)

    def unshard(self, async_op=False):
        """Makes the parameters whole until reshard(), or until the end of the next call of the module. With @async_op
        that only begins, and the result has wait()."""
        dist._run(lambda: self._shards.shards.unshard(not async_op))
        if async_op:
            return UnshardHandle(self)
        self._shards.show(True)
        return None

    def reshard(self):
        """Drops the whole parameters."""
        dist._run(self._shards.shards.reshard)
        self._shards.show(False)

    def set_requires_gradient_sync(self, requires_gradient_sync, *, recurse=True):
        """Whether backward passes exchange gradients; otherwise they are added up for one that does."""
        FSDPModule._set(self, 'requires-gradient-sync', requires_gradient_sync, recurse)

    def set_requires_all_reduce(self, requires_all_reduce, *, recurse=True):
        """Whether backward passes exchange gradients with the replicas, on a mesh of two dimensions."""
        FSDPModule._set(self, 'requires-all-reduce', requires_all_reduce, recurse)

    def set_reshard_after_forward(self, reshard_after_forward, recurse=True):
        """Whether the whole parameters are dropped after the forward pass."""
        for one in FSDPModule._all(self, recurse):
            one._shards.depends = False  # on the call
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
        dist._run(lambda: self._shards.shards.set_forward_prefetch(_shards_of('forward', modules)))

    def set_modules_to_backward_prefetch(self, modules):
        """The same in the backward pass; by default those of what was called before."""
        dist._run(lambda: self._shards.shards.set_backward_prefetch(_shards_of('backward', modules)))


def _shards_of(what, modules):
    modules = list(modules)
    for one in modules:
        if not isinstance(one, FSDPModule):
            raise ValueError(f'set_modules_to_{what}_prefetch: {type(one).__name__} was not given to fully_shard()')
    return [one._shards.shards for one in modules]


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


def _dtype(policy, name):
    value = getattr(policy, name)
    if value is not None and not isinstance(value, GTorch.DType):
        raise TypeError(f'fully_shard: {name} of mp_policy is a dtype or None, not {value!r}')
    return GTorch.DType.NONE if value is None else value


def _groups(mesh):
    """The group over which parameters are spread, and that of the replicas or None."""
    if mesh is None or isinstance(mesh, GTorch.ProcessGroup):
        return dist._group(mesh), None
    if not isinstance(mesh, (RawMesh, MeshLines)):
        raise TypeError(f'fully_shard: mesh is a DeviceMesh or a group, not {type(mesh).__name__}')
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


def _lacks_forward(module):
    """Tells whether a module is a container that nobody calls."""
    if not isinstance(module, (GTorch.ModuleList, GTorch.ModuleDict)):
        return False
    derived = [one for one in type(module).__mro__ if issubclass(one, (GTorch.nn.ModuleList, GTorch.nn.ModuleDict))]
    return not any('forward' in vars(one) for one in derived)


def fully_shard(module, *, mesh=None, reshard_after_forward=None, shard_placement_fn=None,
                mp_policy=MixedPrecisionPolicy(), offload_policy=None, ignored_params=None):
    """Divides the parameters of a module among the processes of a group, by default all, or of a @mesh: of two
    dimensions, the second divides them, and the first has replicas. Modules inside come first, and layers that
    parallelize_module() divides among the ranks of another dimension before. A number
    @reshard_after_forward keeps them spread over so many ranks until the backward pass; None is False for the outermost
    module of a call and True for others. @ignored_params stay whole, and their gradients are this rank's. Returns the
    module, whose parameters are this rank's parts; optimizers are made afterwards."""
    if shard_placement_fn is not None:
        raise NotImplementedError('fully_shard: shard_placement_fn is not supported: the first dimension is divided')
    if offload_policy is not None and not isinstance(offload_policy, OffloadPolicy):
        raise TypeError(f'fully_shard: offload_policy is an OffloadPolicy, not {type(offload_policy).__name__}')
    if not isinstance(mp_policy, MixedPrecisionPolicy):
        raise TypeError(f'fully_shard: mp_policy is a MixedPrecisionPolicy, not {type(mp_policy).__name__}')
    if isinstance(module, (list, tuple)):
        raise NotImplementedError('fully_shard: a list of modules as one group is not supported: call it for each, or '
                                  'for a module that has them')
    if _lacks_forward(module):
        raise ValueError(f'fully_shard: {type(module).__name__} has no forward() of its own, before which parameters '
                         'are gathered: call it for each module inside')
    if not isinstance(module, GTorch.Module):
        raise TypeError(f'fully_shard: the module is a {type(module).__name__}; it is a Module')
    if reshard_after_forward is not None and not isinstance(reshard_after_forward, int):
        raise TypeError('fully_shard: reshard_after_forward is True, False, a number of ranks or None, not '
                        f'{reshard_after_forward!r}')
    group, replicas = _groups(mesh)
    nearby = None
    if isinstance(reshard_after_forward, int) and not isinstance(reshard_after_forward, bool):
        nearby = _find_nearby(group, reshard_after_forward)
    reshard = True if reshard_after_forward is None else bool(reshard_after_forward)
    dtypes = [_dtype(mp_policy, name) for name in ('param_dtype', 'reduce_dtype', 'output_dtype')]
    for one in ignored_params or ():
        if not isinstance(one, RawTensor):
            raise TypeError(f'fully_shard: ignored_params has parameters, not {one!r}')
    for one in ignored_params or ():
        GTorch.ModuleShards.ignore(one)
    made = dist._run(lambda: GTorch.ModuleShards.new(
        module, group, reshard, *dtypes))
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


# Which modules a thread calls, the outermost first. A thread of C's, as a trainer has, forgets a threading.local()
# whenever it comes back from Python, and the hooks before and after a call are two ways there.
_calls = {}


def _stack():
    """The modules that this thread calls."""
    return tuple(_calls.get(threading.get_ident(), ()))


def _push(states):
    _calls.setdefault(threading.get_ident(), []).extend(states)


def _pop(n):
    thread = threading.get_ident()
    calls = _calls[thread]
    del calls[len(calls) - n:]
    if not calls:  # a later thread may have the same number
        del _calls[thread]


class _State:
    """What a module that was given to fully_shard() has beside C's object: attributes, which Python finds without C."""

    def __init__(self, module, shards, depends):
        self.shards, self.depends = shards, depends
        members = [(one, name, GTorch.Module.get_parameter(one, name)) for one in module.modules()
                   for name in GTorch.Module.get_member_names(one, GTorch.MemberKind.PARAMETER)]
        self.parts = [(one, name, param) for one, name, param in members
                      if param is not None and GTorch.ModuleShards.find(param) is shards]
        self.shown = [part for part in self.parts if part[1] in vars(part[0])]

    def show(self, is_whole):
        for one, name, param in self.shown:
            one._gt_show(name, Computed.get_tensor(one, name) if is_whole else param)
        if is_whole:
            opened[id(self)] = weakref.ref(self)
        else:
            opened.pop(id(self), None)

    def enter(self):
        if self.depends:
            self.shards.props.reshard_after_forward = bool(_stack())
        dist._run(self.shards.begin_forward)
        _push([self])
        self.show(True)

    def leave(self):
        stack = _stack()
        if stack and stack[-1] is self:  # otherwise it could not be entered
            _pop(1)
            self.shards.end_forward()
            self.show(self in stack[:-1] or self.is_open())

    def is_shown(self):
        """Whether attributes are whole at present."""
        found = opened.get(id(self))
        return found is not None and found() is self

    def is_open(self):
        """Whether attributes are whole outside of a call, by unshard()."""
        return any(GTorch.Module.get_parameter(one, name) is not param for one, name, param in self.parts[:1])


@contextlib.contextmanager
def _again(stack):
    """The second call of a checkpoint: C has made the modules whole in whose calls the first one was, which their
    attributes show."""
    former = [one.is_shown() for one in stack]
    _push(stack)
    try:
        for one in stack:
            one.show(True)
        yield
    finally:
        _pop(len(stack))
        for one, was_shown in zip(stack, former):
            one.show(was_shown)


def _surroundings():
    stack = _stack()
    return (lambda: _again(stack)) if stack else None


checkpoint.surroundings.append(_surroundings)


def _surround(module, shards, policy, depends):
    """What the hooks of C's cannot do: calls of modules in Python."""
    state = _State(module, shards, depends)
    inner = policy.param_dtype if policy.cast_forward_inputs else None

    def before(_module, inputs, options):
        state.enter()
        return _converted(inputs, inner), _converted(options, inner)

    def after(_module, _inputs, output):
        state.leave()
        return _converted(output, policy.output_dtype)

    def before_inner(called, _inputs):
        if shards.get_group() is not None and not state.is_shown():
            raise ValueError(f'{type(called).__name__} was called outside of a call of {type(module).__name__}, which '
                             'was given to fully_shard(), and has only the part of this rank: call that module, or '
                             'unshard() it, or name the method to register_fsdp_forward_method()')

    module._shards, module._parts = state, tuple(state.parts)
    for name in METHODS:
        module.__dict__[name] = types.MethodType(vars(FSDPModule)[name], module)
    module.register_forward_pre_hook(before, prepend=True, with_kwargs=True)
    module.register_forward_hook(after, always_call=True)
    for one in {one for one, _name, _param in state.shown if one is not module}:
        one.register_forward_pre_hook(before_inner, prepend=True)


def register_fsdp_forward_method(module, method_name):
    """Lets a method of a module have its whole parameters, as a call of the module has."""
    if not isinstance(module, FSDPModule):
        return
    function = getattr(type(module), method_name)
    state = module._shards

    def method(self, *inputs, **options):
        state.enter()
        try:
            return function(self, *inputs, **options)
        finally:
            state.leave()

    module.__dict__[method_name] = types.MethodType(method, module)


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
    return {'fsdp': {**{one.__name__: one for one in fsdp}, '__getattr__': _find_absent}}
