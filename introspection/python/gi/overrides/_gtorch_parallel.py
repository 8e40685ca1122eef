# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""GTorch.nn.parallel: one module on several GPUs, each with a part of the batch, in threads of one process."""

import copy
import importlib
import sys
import threading

from gi.overrides import _gtorch_amp as amp
from gi.overrides import _gtorch_comm as comm
from gi.overrides._gtorch_context import GUARDS, no_grad
from gi.overrides._gtorch_convert import GTorch, RawTensor, convert_device, convert_whole, cuda_device
from gi.overrides._gtorch_device import CUDA
from gi.overrides._gtorch_profiler import record_function

HERE = 'gtorch.nn.parallel'


def _is_named_tuple(value):
    return isinstance(value, tuple) and hasattr(value, '_fields')


def scatter(inputs, target_gpus, dim=0):
    """Divides the tensors in @inputs, which may be in lists, tuples and dictionaries, among GPUs. Returns a list with
    what each of them gets; other objects are the same for all."""
    devices = [cuda_device(device) for device in target_gpus]

    def divide(value):
        if isinstance(value, RawTensor):
            return list(comm.scatter(value, devices, None, dim))
        if _is_named_tuple(value):
            return [type(value)(*parts) for parts in zip(*map(divide, value))]
        if isinstance(value, (tuple, list)) and value:
            return [type(value)(parts) for parts in zip(*map(divide, value))]
        if isinstance(value, dict) and value:
            return [type(value)(parts) for parts in zip(*map(divide, value.items()))]
        return [value for _device in devices]

    return divide(inputs)


def scatter_kwargs(inputs, kwargs, target_gpus, dim=0):
    """The same for the arguments of a call. Returns two tuples of the same length."""
    inputs = scatter(inputs, target_gpus, dim) if inputs else []
    kwargs = scatter(kwargs, target_gpus, dim) if kwargs else []
    n = max(len(inputs), len(kwargs))
    return (tuple([*inputs, *(() for _ in range(n - len(inputs)))]),
            tuple([*kwargs, *({} for _ in range(n - len(kwargs)))]))


def gather(outputs, target_device, dim=0):
    """Joins the results of several GPUs, which may be in lists, tuples and dictionaries, on one device. Tensors without
    dimensions become the elements of a vector."""
    target = cuda_device() if target_device is None else convert_device(target_device).resolve()
    first = outputs[0]
    if isinstance(first, RawTensor):
        outputs = [one.reshape(1) if one.dim() == 0 else one for one in outputs]
        return GTorch.cat([one.to(target) for one in outputs], 0 if first.dim() == 0 else dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(one) != len(first) for one in outputs):
            raise ValueError('gather(): the dictionaries have different keys')
        return type(first)((key, gather([one[key] for one in outputs], target, dim)) for key in first)
    if _is_named_tuple(first):
        return type(first)(*(gather(parts, target, dim) for parts in zip(*outputs)))
    return type(first)(gather(parts, target, dim) for parts in zip(*outputs))


def _tensors_of(module):
    return [*module.parameters(), *module.buffers()]


def _computed(value):
    """Yields the tensors in an attribute that were computed with gradients, which cannot be copied."""
    if isinstance(value, RawTensor):
        if not value.is_leaf:
            yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _computed(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _computed(one)


def _send(tensors, devices, size=comm.SIZE):
    return comm.broadcast_coalesced(tensors, devices, size) if tensors else [()] * len(devices)


def _made(copy, original):
    return copy.clone() if copy is original else copy


def _parameter(copy):
    """A parameter with the elements of a copy, and gradients that go where those of the copy go."""
    made = GTorch.Parameter.new(copy.detach(), False)
    if copy.requires_grad:
        made.copy_(copy)
    return made


def _copies(network, devices, detach):
    """The parameters and buffers of a module with what stands for them: a list of pairs for each GPU."""
    trained, frozen = [], []
    for one in network.parameters():
        (trained if one.requires_grad and not detach else frozen).append(one)
    buffers = list(network.buffers())
    sent = _send(trained, devices)
    with no_grad():
        others = _send(frozen, devices)
        values = _send(buffers, devices, 0)  # they are written in place
        pairs = [[*((one, _parameter(_made(copy, one))) for one, copy in zip(frozen, some)),
                  *((one, _made(copy, one)) for one, copy in zip(buffers, those))]
                 for some, those in zip(others, values)]
    for found, some in zip(pairs, sent):
        found.extend((one, _parameter(copy)) for one, copy in zip(trained, some))
    return pairs


def _replica(network, pairs):
    """A copy of the module with other parameters and buffers. It shares tensors that were computed with gradients."""
    attributes = [list(vars(module).values()) for module in network.modules()]
    memo = {id(tensor): tensor for tensor in _computed(attributes)}
    memo.update((id(tensor), made) for tensor, made in pairs)
    return copy.deepcopy(network, memo)


def replicate(network, devices, detach=False):
    """Copies of a module, whose tensors are on one device, for several GPUs. The gradients of their parameters are
    added to those of the module, unless @detach is set. On the GPU where the module is, it is used itself.

    Parameters are copied together, in buffers, and so are their gradients. All that require gradients get some,
    which are zero if nothing was computed with them."""
    devices = [cuda_device(device) for device in devices]
    homes = {tensor.device for tensor in _tensors_of(network)}
    others = [device for device in devices if detach or homes - {device}]
    made = iter(_copies(network, others, detach) if others else ())
    return [_replica(network, next(made)) if detach or homes - {device} else network for device in devices]


class _Thread(threading.Thread):
    """Calls a module with the settings of the thread that has created this one."""

    def __init__(self, call, device, stream):
        super().__init__(daemon=True)
        self._call, self.device, self._stream = call, device, stream
        self._grad = GTorch.is_grad_enabled()
        self._cast = [(kind, amp.get_autocast_dtype(kind), amp.is_autocast_enabled(kind)) for kind in ('cpu', 'cuda')]
        self.result = self.error = None

    def run(self):
        guards = [GUARDS[self._grad](), GTorch.DeviceGuard.new(self.device), GTorch.StreamGuard.new(self._stream)]
        regions = [amp.autocast(*one) for one in self._cast]
        try:
            for region in regions:
                region.__enter__()
            self.result = self._call()
        except BaseException as error:
            self.error = error
        finally:
            for region in reversed(regions):
                if region.__dict__.get('_guards'):
                    region.__exit__()
            for guard in reversed(guards):
                guard.end()


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None):
    """Calls each module with its own arguments, in a thread for each. Returns the list of results."""
    modules, n = list(modules), len(modules)
    kwargs_tup = [{} for _ in modules] if kwargs_tup is None else list(kwargs_tup)
    devices = [None] * n if devices is None else list(devices)
    if not len(inputs) == len(kwargs_tup) == len(devices) == n:
        raise ValueError(f'parallel_apply(): there are {n} modules, and arguments for {len(inputs)}')
    threads = []
    for module, given, options, device in zip(modules, inputs, kwargs_tup, devices):
        given = given if isinstance(given, (list, tuple)) else (given,)
        if device is None:
            device = next((x.device for x in [*given, *options.values()] if isinstance(x, RawTensor)), None)
        device = cuda_device(device)
        threads.append(_Thread(lambda m=module, a=given, k=options: m(*a, **k), device, CUDA['current_stream'](device)))
    if n == 1:
        threads[0].run()
    else:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for thread in threads:
        if thread.error is not None:
            if n > 1 and hasattr(thread.error, 'add_note'):  # Python 3.11
                thread.error.add_note(f'in the replica on {thread.device.to_string()}')
            raise thread.error
    return [thread.result for thread in threads]


def _chosen(device_ids):
    """The GPUs: all of them for None."""
    if device_ids is None:
        device_ids = range(CUDA['device_count']())
    return [cuda_device(device) for device in device_ids]


def _run(module, devices, output, dim, inputs, kwargs):
    for tensor in _tensors_of(module):
        if tensor.device != devices[0]:
            raise RuntimeError(f'the module must be on {devices[0]}, the first of the GPUs, but has a parameter or '
                               f'buffer on {tensor.device}')
    inputs, kwargs = scatter_kwargs(inputs, kwargs, devices, dim)
    if not inputs:  # a module without arguments
        inputs, kwargs = ((),), ({},)
    devices = devices[: len(inputs)]
    if len(devices) == 1:
        return module(*inputs[0], **kwargs[0])
    return gather(parallel_apply(replicate(module, devices), inputs, kwargs, devices), output, dim)


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """Calls a module with a batch that is divided among GPUs; the results are joined on @output_device, by default the
    first of them."""
    inputs = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    devices = _chosen(device_ids)
    output = devices[0] if output_device is None else convert_device(output_device).resolve()
    return _run(module, devices, output, convert_whole(dim), inputs, module_kwargs or {})


def data_parallel_class(module_class):
    class DataParallel(module_class):
        """DataParallel(module): each call divides the batch among GPUs, each of which has a copy of the module.

        The module must be on the first GPU of @device_ids, by default all; there the results are joined, unless
        @output_device names another device. Gradients are those of the module. Without a GPU it calls the module."""

        __module__ = HERE

        def __init__(self, module, device_ids=None, output_device=None, dim=0):
            super().__init__()
            self.module = module
            self._dim = convert_whole(dim)
            self._devices = [device.get_index() for device in _chosen(device_ids)]
            first = self._devices[0] if self._devices else None
            self._output = first
            if output_device is not None:
                self._output = convert_device(output_device).resolve().to_string()
            if len(self._devices) == 1:
                module.to(cuda_device(first))

        dim = property(lambda self: self._dim)
        device_ids = property(lambda self: list(self._devices))

        @property
        def output_device(self):
            """The number of the GPU where the results are, or None without one."""
            return self._output if self._output is None else convert_device(self._output).index

        def forward(self, *inputs, **kwargs):
            """Calls the module on all GPUs."""
            with record_function('DataParallel.forward'):
                if not self._devices:
                    return self.module(*inputs, **kwargs)
                devices = [cuda_device(index) for index in self._devices]
                return _run(self.module, devices, self._output, self._dim, inputs, kwargs)

        def replicate(self, module, device_ids):
            """The module on several GPUs."""
            return replicate(module, device_ids)

        def scatter(self, inputs, kwargs, device_ids):
            """The arguments for several GPUs."""
            return scatter_kwargs(inputs, kwargs, device_ids, self._dim)

        def parallel_apply(self, replicas, inputs, kwargs):
            """The results of several GPUs."""
            return parallel_apply(replicas, inputs, kwargs, self._devices[: len(replicas)])

        def gather(self, outputs, output_device):
            """The results on one device."""
            return gather(outputs, output_device, self._dim)

    DataParallel.__qualname__ = 'DataParallel'
    return DataParallel


def _find(name):
    """DistributedDataParallel, which comes with gtorch.distributed: that takes time to import."""
    if name != 'DistributedDataParallel':
        raise AttributeError(f'module {HERE!r} has no attribute {name!r}')
    importlib.import_module('gtorch.distributed')
    return vars(sys.modules['gi.repository.GTorch.nn.parallel'])[name]


def install(export, submodule, nn):
    made = export('DataParallel', data_parallel_class(nn.Module))
    found = (data_parallel, gather, parallel_apply, replicate, scatter)
    members = {**{one.__name__: one for one in found}, 'DataParallel': made}
    nn.DataParallel = made
    nn.parallel = submodule('nn.parallel', 'Modules on several GPUs.', {**members, '__getattr__': _find})
    submodule('nn.parallel.data_parallel', 'The class DataParallel.', {'DataParallel': made,
                                                                       'data_parallel': data_parallel})
    submodule('nn.parallel.scatter_gather', 'Batches for several GPUs.', {
        'gather': gather, 'scatter': scatter, 'scatter_kwargs': scatter_kwargs,
    })
