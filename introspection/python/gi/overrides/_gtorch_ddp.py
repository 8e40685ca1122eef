# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""torch.nn.parallel.DistributedDataParallel, and what torch.distributed.algorithms has for it."""

import contextlib
import weakref

from gi.repository import GTorch

from gi.overrides import _gtorch_distributed as dist
from gi.overrides._gtorch_convert import RawTensor, convert_device
from gi.overrides._gtorch_hooks import check, describe
from gi.overrides._gtorch_profiler import record_function

run = dist._run


def tensors_in(value):
    """The tensors in an object, in lists, dictionaries and data classes."""
    if isinstance(value, RawTensor):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from tensors_in(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from tensors_in(one)
    elif hasattr(value, '__dataclass_fields__'):
        yield from tensors_in(vars(value))


def moved(value, device):
    """The same object with its tensors on a device."""
    if isinstance(value, RawTensor):
        return value.to(device)
    if isinstance(value, dict):
        return {key: moved(one, device) for key, one in value.items()}
    if isinstance(value, tuple) and hasattr(value, '_fields'):
        return type(value)(*(moved(one, device) for one in value))
    if isinstance(value, (list, tuple)):
        return type(value)(moved(one, device) for one in value)
    return value


# --- hooks ---


class GradBucket:
    """The gradients that a function of register_comm_hook() exchanges."""

    def __init__(self, raw):
        self._raw = raw

    def index(self):
        """The position of the bucket."""
        return self._raw.get_index()

    def buffer(self):
        """The gradients, one behind the other."""
        return self._raw.get_buffer()

    def set_buffer(self, tensor):
        """Sets another tensor in their place."""
        run(lambda: self._raw.set_buffer(tensor))

    def gradients(self):
        """Views of the buffer, one for each parameter."""
        return list(self._raw.get_gradients())

    def parameters(self):
        """The parameters."""
        return list(self._raw.get_parameters())

    def is_last(self):
        """Whether this is the last bucket of the backward pass."""
        return self._raw.is_last()


def result_of(hook, result):
    """The tensor that a hook has given: itself, or in a future, alone or as the only one of a list."""
    if isinstance(result, dist.Future):
        result = result.value()
    if isinstance(result, (list, tuple)) and len(result) == 1:
        result = result[0]
    if not isinstance(result, RawTensor):
        raise TypeError(f'{describe("register_comm_hook", hook)} gave {type(result).__name__}, '
                        'not a future with a tensor')
    return result


def check_group(group, bucket):
    """A hook for the group of the module alone."""
    if group is not None and group is not bucket._raw.get_group():
        raise ValueError('the process group of the hook is not that of the module')


def allreduce_hook(process_group, bucket):
    """Exchanges gradients as they are."""
    check_group(process_group, bucket)
    return run(lambda: bucket._raw.average(GTorch.DType.NONE))


def fp16_compress_hook(process_group, bucket):
    """Exchanges gradients in float16."""
    check_group(process_group, bucket)
    return run(lambda: bucket._raw.average(GTorch.DType.FLOAT16))


def bf16_compress_hook(process_group, bucket):
    """Exchanges gradients in bfloat16."""
    check_group(process_group, bucket)
    return run(lambda: bucket._raw.average(GTorch.DType.BFLOAT16))


def _wrapper(hook, dtype):
    def wrapped(state, bucket):
        former = bucket.buffer()
        bucket.set_buffer(former.to(dtype))
        return former.copy_(result_of(hook, hook(state, bucket)))

    return wrapped


def fp16_compress_wrapper(hook):
    """Another hook, which gets the gradients in float16."""
    return _wrapper(hook, GTorch.float16)


def bf16_compress_wrapper(hook):
    """Another hook, which gets the gradients in bfloat16."""
    return _wrapper(hook, GTorch.bfloat16)


class PowerSGDState:
    """The settings of powerSGD_hook(), and what it keeps from one pass to the next."""

    def __init__(self, process_group, matrix_approximation_rank=1, start_powerSGD_iter=1000, min_compression_rate=2,
                 use_error_feedback=True, warm_start=True, orthogonalization_epsilon=0, random_seed=0,
                 compression_stats_logging_frequency=10000, batch_tensors_with_same_shape=False):
        if matrix_approximation_rank < 1 or start_powerSGD_iter < 0 or min_compression_rate < 0:
            raise ValueError(f'PowerSGDState: matrix_approximation_rank={matrix_approximation_rank}, '
                             f'start_powerSGD_iter={start_powerSGD_iter} and min_compression_rate='
                             f'{min_compression_rate}: the first is 1 or more, the others are not negative')
        # how tensors are sent, and what is logged, makes no difference to results
        del compression_stats_logging_frequency, batch_tensors_with_same_shape
        self.process_group = process_group
        self._raw = GTorch.PowerSGD(
            matrix_approximation_rank=matrix_approximation_rank, start_iteration=start_powerSGD_iter,
            min_compression_rate=min_compression_rate, use_error_feedback=use_error_feedback, warm_start=warm_start,
            orthogonalization_epsilon=orthogonalization_epsilon, random_seed=random_seed)

    iter = property(lambda self: self._raw.get_iteration())


def powerSGD_hook(state, bucket):  # noqa: N802: PyTorch's name
    """Exchanges matrices of low rank."""
    check_group(state.process_group, bucket)
    return run(lambda: state._raw.average(bucket._raw))


def batched_powerSGD_hook(state, bucket):  # noqa: N802
    """Sees a whole bucket as a square matrix: not supported."""
    raise NotImplementedError('batched_powerSGD_hook is not supported: use powerSGD_hook, which loses less')


# --- the module ---


def _device_of(module, device_ids, output_device):
    """The device of the inputs, or None if they stay where they are."""
    if device_ids in (None, []):
        if output_device is not None:
            raise ValueError('DistributedDataParallel: output_device needs device_ids')
        return None
    if isinstance(device_ids, (str, int)) or len(device_ids) != 1:
        raise ValueError(f'DistributedDataParallel: device_ids={device_ids!r}: this is a list with one device')
    names = [f'cuda:{one}' if isinstance(one, int) else str(one)
             for one in (device_ids[0], device_ids[0] if output_device is None else output_device)]
    own = {str(one.device) for one in module.parameters()}
    if own != {names[0]} or names[1] != names[0]:
        raise ValueError(f'DistributedDataParallel: device_ids={device_ids!r}, output_device={output_device!r}: the '
                         f'parameters are on {", ".join(sorted(own))}, and all three are the same')
    return convert_device(names[0])


class DistributedDataParallel(GTorch.nn.Module):
    """DistributedDataParallel(module): several processes train the module, each with a part of the batch.

    All ranks get the parameters and buffers of rank 0; gradients become the mean of all ranks during the backward pass.
    Gradients are always views of the buckets."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0, broadcast_buffers=True, init_sync=True,
                 process_group=None, bucket_cap_mb=None, find_unused_parameters=False, check_reduction=False,
                 gradient_as_bucket_view=False, static_graph=False, delay_all_reduce_named_params=None,
                 param_to_hook_all_reduce=None, mixed_precision=None, device_mesh=None,
                 skip_all_reduce_unused_params=False):
        super().__init__()
        if not isinstance(module, GTorch.Module):
            raise TypeError(f'DistributedDataParallel: module is a Module, not {type(module).__name__}')
        if bucket_cap_mb is not None and (isinstance(bucket_cap_mb, bool)
                                          or not isinstance(bucket_cap_mb, (int, float))):
            raise TypeError('DistributedDataParallel: bucket_cap_mb is a number of megabytes, not '
                            f'{bucket_cap_mb!r}')
        unsupported = {
            'mixed_precision': mixed_precision, 'delay_all_reduce_named_params': delay_all_reduce_named_params,
            'param_to_hook_all_reduce': param_to_hook_all_reduce, 'device_mesh': device_mesh,
            'skip_all_reduce_unused_params': skip_all_reduce_unused_params or None,
        }
        for name, value in unsupported.items():
            if value is not None:
                raise NotImplementedError(f'DistributedDataParallel: {name} is not supported')
        # dim is that of several devices; the others make no difference to results
        del dim, check_reduction, gradient_as_bucket_view
        self.process_group = dist._group(process_group)
        self._device = _device_of(module, device_ids, output_device)
        cap = 25 if bucket_cap_mb is None else bucket_cap_mb
        made = run(lambda: GTorch.DistributedModule.new_full(module, self.process_group, cap, broadcast_buffers,
                                                             find_unused_parameters, init_sync, static_graph))
        self._exchange = (made,)  # in a tuple: not a child, whose names would be there twice
        self._hook = None
        self.module = module
        self.broadcast_buffers, self.find_unused_parameters = broadcast_buffers, find_unused_parameters
        self.static_graph = static_graph

    require_backward_grad_sync = property(lambda self: self._exchange[0].get_require_backward_grad_sync())

    def train(self, mode=True):
        """Sets the mode of both modules."""
        self._exchange[0].set_training(mode)
        return super().train(mode)

    def forward(self, *inputs, **kwargs):
        """Calls the module."""
        exchange = self._exchange[0]
        with record_function('DistributedDataParallel.forward'):
            run(exchange.begin_forward)
            if self._device is not None:
                inputs, kwargs = moved(inputs, self._device), moved(kwargs, self._device)
            output = self.module(*inputs, **kwargs)
            run(lambda: exchange.end_forward(list(tensors_in(output))))
            return output

    @contextlib.contextmanager
    def no_sync(self):
        """Within it, gradients are added up and not exchanged; the first pass after it exchanges the sums."""
        exchange = self._exchange[0]
        former = exchange.get_require_backward_grad_sync()
        exchange.set_require_backward_grad_sync(False)
        try:
            yield
        finally:
            exchange.set_require_backward_grad_sync(former)

    @contextlib.contextmanager
    def join(self, divide_by_initial_world_size=True, enable=True, throw_on_early_termination=False):
        """Within it, ranks may have different numbers of inputs: at its end a rank answers the others until all have
        ended."""
        if not enable:
            yield
            return
        exchange = self._exchange[0]
        run(lambda: exchange.begin_join(divide_by_initial_world_size, throw_on_early_termination))
        try:
            yield
        except BaseException:
            exchange.end_join(False)
            raise
        run(lambda: exchange.end_join(True))

    def register_comm_hook(self, state, hook):
        """Lets hook(state, bucket) exchange the gradients. It returns a future, or a tensor, with their mean."""
        check('register_comm_hook', hook)
        owner = weakref.ref(self)  # C cannot be looked into by the collector

        def call(raw):
            state, hook = owner()._hook
            return result_of(hook, hook(state, GradBucket(raw)))

        run(lambda: self._exchange[0].register_comm_hook(call))
        self._hook = (state, hook)


# --- torch.distributed.algorithms ---


class Join:
    """with Join([model]): the same as model.join()."""

    def __init__(self, joinables, enable=True, throw_on_early_termination=False, **kwargs):
        if not joinables or not all(isinstance(one, DistributedDataParallel) for one in joinables):
            raise NotImplementedError('Join: the joinables are DistributedDataParallel, one or more')
        self._joins = [one.join(enable=enable, throw_on_early_termination=throw_on_early_termination, **kwargs)
                       for one in joinables]

    def __enter__(self):
        self._stack = contextlib.ExitStack()
        for one in self._joins:
            self._stack.enter_context(one)
        return self

    def __exit__(self, *exception):
        return self._stack.__exit__(*exception)


def submodules():
    """What is below torch.distributed, by name."""
    def made(*values):
        return {one.__name__: one for one in values}

    default = made(allreduce_hook, fp16_compress_hook, bf16_compress_hook, fp16_compress_wrapper,
                   bf16_compress_wrapper)
    power = made(PowerSGDState, powerSGD_hook, batched_powerSGD_hook)
    return {
        'algorithms': {},
        'algorithms.ddp_comm_hooks': {},
        'algorithms.ddp_comm_hooks.default_hooks': default,
        'algorithms.ddp_comm_hooks.powerSGD_hook': power,
        'algorithms.join': made(Join),
    }
