# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""GTorch.cpu: the processor under the names that GTorch.cuda has for GPUs, for programs that are written for either."""

import sys

from gi.overrides import _gtorch_amp as amp
from gi.overrides._gtorch_context import Block
from gi.overrides._gtorch_convert import GTorch, convert_device, of_type


def _cpu(name, device):
    device = GTorch.Device.cpu() if device is None else convert_device(device)
    if device.type != 'cpu':
        raise ValueError(f'cpu.{name}(): the processor was expected, not {device}')
    return device


def current_stream(device=None):
    """The stream to which this thread's work on the processor goes."""
    return GTorch.Stream.get_current(_cpu('current_stream', device))


def stream(stream):
    """with GTorch.cpu.stream(s): the work of the block goes to the stream."""
    if stream is not None:
        of_type(stream, GTorch.Stream, 'cpu.stream(): stream')
    return Block(lambda: None if stream is None else GTorch.StreamGuard.new(stream), stream)


def synchronize(device=None):
    """Waits until all work of the processor's streams is done."""
    _cpu('synchronize', device).synchronize(None)


def set_device(device):
    """Does nothing: there is one processor."""
    _cpu('set_device', device)


def is_available():
    """True."""
    return True


def is_initialized():
    """True."""
    return True


def device_count():
    """1."""
    return 1


def current_device():
    """'cpu'."""
    return 'cpu'


class CpuAutocast(amp.autocast):
    """autocast('cpu', ...), as GTorch.cpu.amp has it."""

    def __init__(self, enabled=True, dtype=GTorch.DType.BFLOAT16, cache_enabled=True):
        super().__init__('cpu', dtype, enabled, cache_enabled)


def get_device_module(device=None):
    """GTorch.cuda or GTorch.cpu, for a device or its name; by default for that which cuda.is_available() suggests."""
    if device is None:
        device = 'cuda' if GTorch.DeviceManager.get_default().is_available() else 'cpu'
    kind = device.partition(':')[0] if isinstance(device, str) else convert_device(device).type
    if kind not in ('cpu', 'cuda'):
        raise RuntimeError(f'get_device_module(): there is no module for {device!r}: expected cpu or cuda')
    return sys.modules[f'gi.repository.GTorch.{kind}']


def install(export, submodule):
    functions = (
        current_device, current_stream, device_count, is_available, is_initialized, set_device, stream, synchronize,
    )
    members = {one.__name__: one for one in functions}
    members['Stream'] = GTorch.Stream
    members['StreamContext'] = stream
    members['amp'] = submodule('cpu.amp', 'Mixed precision on the processor.', {'autocast': CpuAutocast})
    submodule('cpu', 'The processor.', members)
    export('get_device_module', get_device_module)
