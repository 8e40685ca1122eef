# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The memory of devices, in the terms of torch.cuda.memory."""

import sys
import warnings
import weakref

from gi.repository import GLib

from gi.overrides._gtorch_context import Block, enter, leave
from gi.overrides._gtorch_convert import (
    GTorch,
    convert_bool,
    convert_device,
    convert_enum,
    convert_whole,
    cuda_device,
    for_gpus,
    of_type,
)
from gi.overrides._gtorch_errors import guard_vfuncs, own_vfunc
from gi.overrides._gtorch_properties import final

OVERRIDES = 'gi.overrides.GTorch'  # override() finds the namespace through it


def _allocator(device):
    return cuda_device(device).get_allocator()


class MemorySource(GTorch.MemorySource):
    """A source of memory: a subclass defines allocate() and release()."""

    __module__ = OVERRIDES

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        guard_vfuncs(cls, ('allocate',))
        release = own_vfunc(cls, 'release')
        if release is not None:
            cls.do_release = release

    def allocator(self):
        """The source itself, which is what MemPool() takes."""
        return self


# Pools by their numbers, which PyTorch's programs pass on.
_pools = weakref.WeakValueDictionary()


def pool_of(value):
    """The pool: itself, that of the number MemPool.id, or None."""
    if not isinstance(value, tuple):
        return value
    pool = _pools.get(value)
    if pool is None:
        raise ValueError(f'there is no memory pool {value}: it was dropped, or never was')
    return pool


def _unpack(snapshot):
    import pickle  # is needed here only, and slow to import

    return pickle.loads(snapshot.get_data())


@final
class MemoryPool(GTorch.MemoryPool):
    """A private memory pool: with pool: ... or GTorch.cuda.use_mem_pool(pool)."""

    __module__ = OVERRIDES

    def __new__(cls, device=None, source=None, use_on_oom=False):
        device = convert_device(device)
        if source is None:
            pool = GTorch.MemoryPool.new(device)
        else:
            pool = GTorch.MemoryPool.new_with_source(device, source)
        if convert_bool(use_on_oom):
            pool.set_use_on_oom(True)
        return pool

    def __init__(self, *_args, **_kwargs):
        pass

    @property
    def id(self):
        """A number of the pool, which other functions take in its place."""
        number = (0, self.get_id())
        _pools[number] = self
        return number

    allocator = property(lambda self: self.get_source())

    def use_count(self):
        """Raises: uses are not counted."""
        raise NotImplementedError('MemPool.use_count(): uses of a pool are not counted')

    def __enter__(self):
        return enter(self, GTorch.MemoryPoolGuard.new(self))

    def __exit__(self, *_exception):
        return leave(self)

    def snapshot(self, include_traces=True):
        """Returns the contents of the pool, as a list of segments; what has happened in it is not among them."""
        convert_bool(include_traces)
        return _unpack(GTorch.MemoryPool.snapshot(self))['segments']


def use_mem_pool(pool, device=None):
    """with GTorch.cuda.use_mem_pool(pool): what this thread allocates comes from the pool."""
    pool = for_gpus(of_type(pool_of(pool), GTorch.MemoryPool, 'use_mem_pool(): pool'))

    def begin():
        if device is not None and cuda_device(device) != pool.get_device():
            raise ValueError(f'the pool is of {pool.get_device()}, not of {cuda_device(device)}')
        return GTorch.MemoryPoolGuard.new(pool)

    return Block(begin, pool)


def mem_pool(allocator=None, use_on_oom=False, no_split=False, device=None):
    """A private pool of the current GPU; allocator: its source of memory."""
    if convert_bool(no_split):
        raise NotImplementedError('MemPool(): no_split=True is not supported: free blocks of a pool can be divided')
    return MemoryPool(cuda_device(device), allocator, use_on_oom)


def _pluggable(path_to_so_file, alloc_fn_name, free_fn_name):
    """An allocator of two functions in a library."""
    return GTorch.MemorySource.load(path_to_so_file, alloc_fn_name, free_fn_name)


def change_current_allocator(allocator, device=None):
    """Makes it the source of all memory of a device, or of all GPUs; must be called before anything was
    allocated."""
    if device is not None:
        return _allocator(device).set_source(allocator)
    changed = []
    try:
        for index in range(GTorch.DeviceManager.get_default().get_device_count()):
            one = GTorch.Device.cuda(index).get_allocator()
            former = one.get_source()
            one.set_source(allocator)
            changed.append((one, former))
    except GLib.Error:
        for one, former in changed:
            one.set_source(former)
        raise
    return True


def _has_none(device):
    """Tells whether the call means the current GPU although there is none: then there is no memory."""
    return device is None and not GTorch.DeviceManager.get_default().is_available()


def memory_stats(device=None):
    """Returns all statistics, under PyTorch's names; empty without a GPU."""
    if _has_none(device):
        return {}
    allocator = _allocator(device)
    return {key: allocator.get_stat(key) for key in allocator.dup_stat_keys()}


def memory_summary(device=None, abbreviated=False):
    """Returns a table of all statistics."""
    return _allocator(device).to_summary(abbreviated)


def memory_snapshot(mempool_id=None, include_traces=True, device=None):
    """Returns all segments of memory of the current GPU, or of a pool, with the blocks in them."""
    convert_bool(include_traces)
    if mempool_id is not None:
        pool = of_type(pool_of(mempool_id), GTorch.MemoryPool, 'memory_snapshot(): mempool_id')
        return pool.snapshot()
    return _unpack(_allocator(device).snapshot())['segments']


# The results of caching_allocator_alloc(), by device and address.
_blocks = {}


def caching_allocator_alloc(size, device=None, stream=None):
    """Allocates memory without a tensor; returns its address."""
    block = _allocator(device).alloc(size, stream)
    _blocks[block.get_address()] = block
    return block.get_address()


def caching_allocator_delete(mem_ptr):
    """Gives back what caching_allocator_alloc() gave."""
    block = _blocks.pop(convert_whole(mem_ptr), None)
    if block is None:
        raise ValueError(f'there is no memory of caching_allocator_alloc() at {mem_ptr:#x}')
    block.release()


MANY = 1000000  # entries of a history, which has memory for all of them from the beginning


def _record_history(enabled='all', context='all', stacks='all', max_entries=sys.maxsize, device=None,
                    clear_history=False):
    """Starts, or with None ends, recording where memory is allocated; drops what was recorded before. The last million
    entries are kept at most. The frames are those of Python and of C: of the values of @stacks only 'all' is supported,
    and those of @context make no difference. Where memory was freed, they are those of C alone."""
    if enabled in (True, False):  # the form that PyTorch had first
        enabled = 'all' if enabled else None
    if stacks != 'all':
        raise NotImplementedError(f"_record_memory_history(): stacks must be 'all', not {stacks!r}")
    if context not in ('all', 'state', 'alloc', None):
        raise ValueError(f"_record_memory_history(): context must be 'all', 'state', 'alloc' or None, not {context!r}")
    level = convert_enum(GTorch.HistoryLevel, 'never' if enabled is None else enabled,
                         '_record_memory_history(): enabled')
    convert_bool(clear_history)
    n = 0 if enabled is None else min(convert_whole(max_entries), MANY)
    return _allocator(device).record_history(level, n)


def _set_allocator_settings(env):
    """Settings of the allocators of all GPUs, in the form of GTORCH_ALLOC_CONF: 'max_split_size_mb:64'."""
    for index in range(GTorch.DeviceManager.get_default().get_device_count()):
        GTorch.Device.cuda(index).get_allocator().configure(env)


def _snapshot(device=None):
    """What _dump_snapshot() writes, as a dictionary."""
    return _unpack(_allocator(device).snapshot())


def _dump_snapshot(filename='dump_snapshot.pickle', device=None):
    """Writes a file for https://pytorch.org/memory_viz."""
    _allocator(device).save_snapshot(filename, None)


def caching_allocator_enable(value=True):
    """Lets freed memory be cached for the next tensors, on all GPUs, or returned at once."""
    for index in range(GTorch.DeviceManager.get_default().get_device_count()):
        GTorch.Device.cuda(index).get_allocator().set_caching(convert_bool(value))


def host_memory_stats():
    """The numbers that are known of pinned memory, under PyTorch's names."""
    pinned = GTorch.HostAllocator.get_default()
    return {
        'allocated_bytes.current': pinned.get_allocated(),
        'num_host_alloc': pinned.get_num_allocs(),
        'reserved_bytes.current': pinned.get_reserved(),
    }


def host_memory_stats_as_nested_dict():
    """The same as dictionaries in dictionaries."""
    return nested(host_memory_stats())


def nested(stats):
    """Names with dots as dictionaries in dictionaries."""
    found = {}
    for name, value in stats.items():
        *path, last = name.split('.')
        place = found
        for part in path:
            place = place.setdefault(part, {})
        place[last] = value
    return found


def _uncounted(name, what):
    def call():
        raise NotImplementedError(f'{name}(): {what} of pinned memory are not counted')

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f'Raises: {what} of pinned memory are not counted.'
    return call


def _count(name):
    def call(device=None):
        return 0 if _has_none(device) else getattr(_allocator(device), f'get_{name}')()

    return call


def empty_cache(device=None):
    """Frees cached memory that no tensor uses; does nothing without a GPU."""
    if not _has_none(device):
        _allocator(device).trim()


def _deprecated(name, instead, function):
    def call(*args, **kwargs):
        warnings.warn(f'GTorch.cuda.{name} is now {instead}', DeprecationWarning, stacklevel=2)
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__wrapped__ = function  # which has the arguments, for inspect
    call.__doc__ = f'The former name of {instead}.'
    return call


CUDA = {
    'memory_allocated': _count('allocated'),
    'max_memory_allocated': _count('peak_allocated'),
    'memory_reserved': _count('reserved'),
    'max_memory_reserved': _count('peak_reserved'),
    'reset_peak_memory_stats': lambda device=None: _allocator(device).reset_peak(),
    'reset_accumulated_memory_stats': lambda device=None: _allocator(device).reset_accumulated(),
    'empty_cache': empty_cache,
    'mem_get_info': lambda device=None: tuple(cuda_device(device).get_memory_info()[1:]),
    'memory_stats': memory_stats,
    'memory_summary': memory_summary,
    'memory_snapshot': memory_snapshot,
    'set_per_process_memory_fraction': lambda fraction, device=None: _allocator(
        device
    ).set_memory_fraction(fraction),
    'get_per_process_memory_fraction': lambda device=None: _allocator(
        device
    ).get_memory_fraction(),
    'caching_allocator_alloc': caching_allocator_alloc,
    'caching_allocator_delete': caching_allocator_delete,
    'caching_allocator_enable': caching_allocator_enable,
    'host_memory_stats': host_memory_stats,
    'host_memory_stats_as_nested_dict': host_memory_stats_as_nested_dict,
    'reset_accumulated_host_memory_stats': _uncounted('reset_accumulated_host_memory_stats', 'sums'),
    'reset_peak_host_memory_stats': _uncounted('reset_peak_host_memory_stats', 'peaks'),
    'use_mem_pool': use_mem_pool,
    'graph_pool_handle': lambda: MemoryPool(cuda_device()),
    'CUDAPluggableAllocator': _pluggable,
    'change_current_allocator': change_current_allocator,
}

for _name, _instead in {
    'memory_cached': 'memory_reserved',
    'max_memory_cached': 'max_memory_reserved',
    'reset_max_memory_allocated': 'reset_peak_memory_stats',
    'reset_max_memory_cached': 'reset_peak_memory_stats',
}.items():
    CUDA[_name] = _deprecated(_name, _instead, CUDA[_instead])


MEMORY = {
    **CUDA,
    '_dump_snapshot': _dump_snapshot,
    '_record_memory_history': _record_history,
    '_set_allocator_settings': _set_allocator_settings,
    '_snapshot': _snapshot,
}
