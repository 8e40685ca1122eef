# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""GTorch.accelerator: the GPUs under names that do not say of which kind they are."""

from gi.overrides._gtorch_convert import GTorch, convert_device
from gi.overrides._gtorch_device import CUDA

SAME = (
    'device_count', 'empty_cache', 'get_device_capability', 'is_available', 'max_memory_allocated',
    'max_memory_reserved', 'memory_allocated', 'memory_reserved', 'memory_stats', 'reset_accumulated_memory_stats',
    'reset_peak_memory_stats', 'set_stream', 'synchronize',
)
OTHERS = {
    'current_device_index': 'current_device', 'current_stream': 'current_stream', 'get_memory_info': 'mem_get_info',
    'set_device_index': 'set_device',
}


def current_accelerator(check_available=False):
    """The device `cuda`, or None if @check_available and there is no GPU. PyTorch gives None where it was built without
    CUDA; here each build may find a GPU, so that there is None where the driver has none."""
    return convert_device('cuda') if CUDA['is_available']() else None


def device_index(device):
    """A block in which the GPU of this number is the current one; None changes nothing."""
    if device is not None and not isinstance(device, int):
        raise TypeError(f'device_index(): device must be a number or None, not {type(device).__name__}')
    return CUDA['device'](device)


def _under(name, call):
    def function(*args, **options):
        return call(*args, **options)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = call.__doc__ or f'Does what cuda.{name}() does.'
    function.__wrapped__ = call
    return function


def install(submodule, cuda):
    found = {name: getattr(cuda, name) for name in SAME}
    found.update({name: _under(name, getattr(cuda, other)) for name, other in OTHERS.items()})
    found['current_device_idx'] = found['current_device_index']
    found['set_device_idx'] = found['set_device_index']
    found.update(current_accelerator=current_accelerator, device_index=device_index, Stream=GTorch.Stream)
    submodule('accelerator', 'GPUs, whatever their kind.', found)
