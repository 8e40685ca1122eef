# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a GPU is and does at the moment: GTorch.cuda.get_device_properties(), utilization() and their like."""

import enum
import os
import re

from gi.repository import GLib

from gi.overrides._gtorch_convert import GTorch, convert_whole, cuda_device

MIB = 2**20
PCI = re.compile(r'([0-9a-fA-F]+):([0-9a-fA-F]+):([0-9a-fA-F]+)\.')
# PyTorch's names, and those of the properties of a device.
NAMES = {
    'name': 'name',
    'major': 'compute_major',
    'minor': 'compute_minor',
    'total_memory': 'total_memory',
    'multi_processor_count': 'n_multiprocessors',
    'max_threads_per_multi_processor': 'threads_per_multiprocessor',
    'warp_size': 'warp_size',
    'L2_cache_size': 'l2_size',
    'shared_memory_per_block_optin': 'max_shared_memory',
    'is_integrated': 'integrated',
}


class DeviceProperties:
    """What is known of a GPU, under PyTorch's names; those of the properties of a Device are there, too."""

    def __init__(self, device):
        self._device = device

    def __getattr__(self, name):
        if name.startswith('_'):
            raise AttributeError(name)
        try:
            value = getattr(self._device.props, NAMES.get(name, name))
        except AttributeError:
            raise AttributeError(f'the properties of a GPU have no {name!r}') from None
        return int(value) if name == 'is_integrated' else value

    def __dir__(self):
        return sorted({*super().__dir__(), *NAMES, *(spec.name.replace('-', '_') for spec in self._device.props)})

    @property
    def uuid(self):
        """The number of the GPU in the world, without the prefix of NVIDIA's tools."""
        return self._device.props.uuid.removeprefix('GPU-')

    def _pci(self, part):
        found = PCI.match(self._device.props.pci_id or '')
        if found is None:
            raise AttributeError('the driver does not tell where the GPU is')
        return int(found[part], 16)

    pci_domain_id = property(lambda self: self._pci(1))
    pci_bus_id = property(lambda self: self._pci(2))
    pci_device_id = property(lambda self: self._pci(3))

    def __repr__(self):
        return (f'GTorch.cuda.DeviceProperties(name={self.name!r}, major={self.major}, minor={self.minor}, '
                f'total_memory={self.total_memory // MIB}MB, multi_processor_count={self.multi_processor_count}, '
                f'uuid={self.uuid}, L2_cache_size={self.L2_cache_size // MIB}MB)')

    def __eq__(self, other):
        return isinstance(other, DeviceProperties) and self._device == other._device

    def __hash__(self):
        return hash(self._device)


def get_device_properties(device=None):
    """What the current GPU, or another one, is."""
    return DeviceProperties(cuda_device(device))


# --- what NVIDIA's management library measures ---


def _sample(device):
    """A monitor of the GPU, with a first sample."""
    monitor = GTorch.DeviceMonitor.new(cuda_device(device))
    monitor.set_active(False)
    if monitor.get_error() is not None:
        raise monitor.get_error()
    return monitor


def _reading(name, what):
    def read(device=None):
        value = getattr(_sample(device), f'get_{name}')()
        if value < 0:
            raise NotImplementedError(f'{cuda_device(device)} does not tell {what}')
        return value

    read.__doc__ = f'{what[0].upper()}{what[1:]}, as NVML tells it.'
    return read


temperature = _reading('temperature', 'its temperature in degrees Celsius')
utilization = _reading('utilization', 'the percentage of the time in which it was computing')
memory_usage = _reading('memory_utilization', 'the percentage of the time in which its memory was used')
clock_rate = _reading('sm_clock', 'the rate of its clock in MHz')
device_memory_used = _reading('memory_used', 'how many bytes of its memory all programs use')
_watts = _reading('power', 'how many watts it takes')


def power_draw(device=None):
    """How many milliwatts the GPU takes, as NVML tells it."""
    return round(_watts(device) * 1000)


def list_gpu_processes(device=None):
    """A text with the processes that use a GPU and their memory."""
    device = cuda_device(device)
    lines = [f'GPU:{device.get_index()}']
    for process in list(_sample(device).get_processes()):
        lines.append(f'process {process.get_pid():>10d} uses {process.get_memory_used() / MIB:>12.3f} MB GPU memory')
    return '\n'.join(lines if len(lines) > 1 else [*lines, 'no processes are running'])


# --- the driver and its errors ---


class CudaStatus(enum.IntEnum):
    """Results of calls of CUDA."""

    SUCCESS = 0
    ERROR_NOT_READY = 34


def check_error(res):
    """Raises an error if @res, the result of a call of CUDA, is none of success."""
    res = convert_whole(res)
    if res != CudaStatus.SUCCESS:
        raise GLib.Error(f'a call of CUDA gave {res}', GLib.quark_to_string(GTorch.error_quark()),
                         int(GTorch.Error.CUDA))


def get_gencode_flags():
    """Flags of nvcc for the GPUs that this build has kernels for."""
    numbers = [arch.rpartition('_')[2] for arch in GTorch.get_arch_list()]
    return ' '.join(f'-gencode compute=compute_{number},code=sm_{number}' for number in numbers)


def get_sync_debug_mode():
    """0: see set_sync_debug_mode()."""
    return 0


def set_sync_debug_mode(debug_mode):
    """'default' or 0 changes nothing; the others are not supported."""
    if debug_mode in (0, 'default'):
        return
    if debug_mode in (1, 2, 'warn', 'error'):
        raise NotImplementedError('set_sync_debug_mode(): calls that wait for a GPU are not reported; in a graph each '
                                  'is an error')
    raise ValueError(f"set_sync_debug_mode(): debug_mode must be 'default', 'warn' or 'error', not {debug_mode!r}")


def _absent(name, instead):
    def call(*_args, **_options):
        raise NotImplementedError(f'cuda.{name}() is not there: {instead}')

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f'Raises: {instead}.'
    return call


class DeferredCudaCallError(Exception):
    """What PyTorch raises for calls that it has put off; no call is put off here."""


class _Generators:
    """The generators of all GPUs, by their numbers."""

    def __len__(self):
        return GTorch.DeviceManager.get_default().get_device_count()

    def __getitem__(self, index):
        if not -len(self) <= index < len(self):
            raise IndexError(f'there are {len(self)} GPUs, and none of number {index}')
        return cuda_device(index % len(self)).get_default_generator()


ABSENT = {
    'GreenContext': 'contexts with a part of the multiprocessors are not supported',
    'cudart': "CUDA's runtime library is not used; the driver's library is called instead",
    'current_blas_handle': 'cuBLASLt is used, whose handle belongs to no stream',
}
FUNCTIONS = (
    check_error, clock_rate, device_memory_used, get_device_properties, get_gencode_flags, get_sync_debug_mode,
    list_gpu_processes, memory_usage, power_draw, set_sync_debug_mode, temperature, utilization,
)
READINGS = {'clock_rate', 'device_memory_used', 'memory_usage', 'temperature', 'utilization'}


def nccl_version():
    """The version of the library NCCL, as numbers."""
    return tuple(int(part) for part in GTorch.get_cuda_library_version('nccl').split('.')[:3])


def nccl_is_available(tensors=()):
    """Tells whether NCCL is installed and could take these tensors: each on a GPU of its own."""
    devices = [tensor.device for tensor in tensors]
    if any(device.type != 'cuda' for device in devices) or len(set(devices)) < len(devices):
        return False
    try:
        return bool(nccl_version())
    except GLib.Error:
        return False


def install(submodule, cuda):
    members = {function.__name__: function for function in FUNCTIONS}
    for name in READINGS:
        members[name] = globals()[name]
        members[name].__name__ = members[name].__qualname__ = name
    del members['read']
    members.update({name: _absent(name, instead) for name, instead in ABSENT.items()})
    members.update(DeferredCudaCallError=DeferredCudaCallError, cudaStatus=CudaStatus, default_generators=_Generators())
    vars(cuda).update(members)
    cuda.memory.list_gpu_processes = list_gpu_processes
    cuda.nccl = submodule('cuda.nccl', 'The library NCCL.', {
        'version': nccl_version, 'is_available': nccl_is_available,
    })
