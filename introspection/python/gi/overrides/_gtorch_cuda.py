# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Further functions of GTorch.cuda: what a GPU can do, streams of other libraries, statistics as a tree."""

from gi.overrides import _gtorch_amp as amp
from gi.overrides import _gtorch_memory as memory
from gi.overrides._gtorch_convert import GTorch, RawTensor, convert_bool, cuda_device
from gi.overrides._gtorch_device import CUDA

AMPERE = 8  # the first generation with bfloat16 and TF32


def is_initialized():
    """Tells whether this process can use a GPU; the first operation on it initialises it."""
    return CUDA['is_available']()


def is_bf16_supported(including_emulation=True):
    """Tells whether the current GPU computes with bfloat16; those before Ampere convert it, which counts if
    @including_emulation."""
    emulated = convert_bool(including_emulation)
    return CUDA['is_available']() and (emulated or cuda_device().get_capability()[0] >= AMPERE)


def is_tf32_supported():
    """Tells whether the current GPU has TF32."""
    return CUDA['is_available']() and cuda_device().get_capability()[0] >= AMPERE


def is_current_stream_capturing():
    """Tells whether the work of the current stream is recorded for a CUDAGraph."""
    return CUDA['is_available']() and CUDA['current_stream']().is_capturing()


def memory_stats_as_nested_dict(device=None):
    """The numbers of memory_stats() as dictionaries in dictionaries."""
    return memory.nested(CUDA['memory_stats'](device))


def device_of(obj):
    """A block in which the GPU of a tensor is the current one; tensors of the CPU change nothing."""
    if not isinstance(obj, RawTensor):
        raise TypeError(f'device_of(): obj must be a tensor, not {type(obj).__name__}')
    return CUDA['device'](obj.device if obj.is_cuda else None)


def get_stream_from_external(data_ptr, device=None):
    """Returns the stream at this address, of another library or another program's part, which goes on owning it."""
    if isinstance(data_ptr, bool) or not isinstance(data_ptr, int):
        raise TypeError(f'get_stream_from_external(): data_ptr must be an int, not {type(data_ptr).__name__}')
    return GTorch.Stream.new_from_address(cuda_device(device), data_ptr)


def external_stream(stream_ptr, device=None, **kwargs):
    """The same, under the name of PyTorch's class."""
    if kwargs:
        raise TypeError(f'ExternalStream() has no argument {next(iter(kwargs))!r}')
    return get_stream_from_external(stream_ptr, device)


def get_allocator_backend():
    """The name of the allocator: there is one, which keeps blocks on lists by stream and size."""
    return 'native'


def ipc_collect():
    """Drops what was kept for processes that were being started. Memory that other processes have opened is given back
    by itself when they drop it."""
    from gi.overrides import _gtorch_multiprocessing as multiprocessing

    multiprocessing.drop_started()


FUNCTIONS = (
    device_of,
    get_allocator_backend,
    get_stream_from_external,
    ipc_collect,
    is_bf16_supported,
    is_current_stream_capturing,
    is_initialized,
    is_tf32_supported,
    memory_stats_as_nested_dict,
)


def install(submodule, cuda):
    for function in FUNCTIONS:
        setattr(cuda, function.__name__, function)
    cuda.ExternalStream = external_stream
    cuda.amp = submodule('cuda.amp', 'Mixed precision on GPUs.', amp.cuda_members())
    for name in ('get_allocator_backend', 'memory_stats_as_nested_dict'):
        setattr(cuda.memory, name, getattr(cuda, name))
