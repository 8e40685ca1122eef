#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Memory of devices from Python, on the driver of tests/fake-cuda."""

import ctypes
import gc
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import tap  # noqa: E402
from tap import raises  # noqa: E402

cuda = GTorch.cuda
GPU = GTorch.Device('cuda:0')
driver = ctypes.CDLL(os.environ['GTORCH_CUDA_DRIVER'])


def driver_function(name):
    found = ctypes.c_void_p()
    status = driver.cuGetProcAddress_v2(name, ctypes.byref(found), 12000, ctypes.c_uint64(0), None)
    assert status == 0
    return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)(found.value)


mem_alloc, mem_free = driver_function(b'cuMemAlloc'), driver_function(b'cuMemFree')


class Shelf(GTorch.MemorySource):
    """Takes memory from the driver and remembers the blocks."""

    def __init__(self):
        super().__init__()
        self.held = {}

    def do_allocate(self, device, n_bytes, stream):
        address = ctypes.c_uint64()
        assert mem_alloc(ctypes.addressof(address), n_bytes) == 0
        self.held[address.value] = (device.to_string(), n_bytes)
        return address.value

    def do_release(self, device, address, n_bytes, stream):
        assert self.held.pop(address) == (device.to_string(), n_bytes)
        assert mem_free(address, 0) == 0


@tap.case
def pools_serve_allocations_in_their_block():
    pool = cuda.MemPool(device=GPU)
    with cuda.use_mem_pool(pool):
        x = GTorch.zeros(1000, device='cuda')
    y = GTorch.zeros(1000, device='cuda')
    assert pool.get_device() == GPU and pool.props.allocated == 4096
    assert pool.id == (0, pool.props.id) and pool.id[1] > 0
    assert cuda.memory_allocated(0) == 8192
    with pool, pool:
        z = GTorch.zeros(1000, device='cuda')
    assert pool.props.allocated == 8192
    key = f'reserved_bytes_by_private_pools.0_{pool.id[1]}.all.current'
    assert cuda.memory_stats(0)[key] == pool.props.reserved > 0
    available, total = cuda.mem_get_info(0)
    assert total == 2**30 and available < total
    segments = pool.snapshot()
    assert {segment['segment_pool_id'] for segment in segments} == {pool.id}
    everything = cuda.memory_snapshot(device=0)
    assert {segment['segment_pool_id'] for segment in everything} == {(0, 0), pool.id}
    assert x.sum().item() + y.sum().item() + z.sum().item() == 0
    raises(ValueError, 'the pool is of cuda:0', cuda.use_mem_pool(pool, 'cuda:1').__enter__)
    raises(ValueError, 'not cpu', cuda.use_mem_pool(pool, 'cpu').__enter__)
    raises(ValueError, 'one of cpu', cuda.use_mem_pool, GTorch.MemoryPool('cpu'))


@tap.case
def pools_run_a_function():
    pool = GTorch.MemoryPool(GPU, use_on_oom=True)
    assert pool.props.use_on_oom

    def work(given):
        assert given == pool
        GTorch.zeros(1000, device='cuda')
        return True

    assert pool.run(work)
    assert pool.props.peak_allocated == 4096
    pool.trim()
    assert pool.props.reserved == 0


@tap.case
def graphs_share_pools():
    pool = cuda.graph_pool_handle()
    graph = cuda.CUDAGraph()
    x = GTorch.ones(10, device='cuda')
    with cuda.graph(graph, pool=pool):
        y = x + 1
    graph.replay()
    assert y.tolist() == [2] * 10
    assert graph.get_pool() == pool and pool.props.reserved > 0


@tap.case
def memory_without_tensors():
    before = cuda.memory_allocated(0)
    address = cuda.caching_allocator_alloc(5000, 0)
    assert address != 0 and cuda.memory_allocated(0) == before + 5120
    cuda.caching_allocator_delete(address)
    assert cuda.memory_allocated(0) == before
    raises(ValueError, 'there is no memory', cuda.caching_allocator_delete, address)

    block = GPU.get_allocator().alloc(5000, GPU.get_default_stream())
    assert (block.get_size(), block.props.size, block.get_device()) == (5000, 5000, GPU)
    assert block.get_address() > 0
    block.release()
    assert block.props.address == 0
    raises(GLib.Error, 'cannot be allocated on cuda:0', cuda.caching_allocator_alloc, 1 << 50, 0)


@tap.case
def sources_can_be_written_in_python():
    shelf = Shelf()
    with cuda.MemPool(shelf, device=GPU) as pool:
        x = GTorch.zeros(1000, device='cuda')
        y = GTorch.zeros(1000, device='cuda')
    assert list(shelf.held.values()) == [('cuda:0', 2 << 20)]
    assert pool.get_source() == shelf
    assert (x + y).sum().item() == 0
    del x, y, pool
    gc.collect()
    cuda.empty_cache(0)
    assert not shelf.held


@tap.case
def all_memory_of_a_device_can_come_from_a_source():
    shelf = Shelf()
    assert cuda.change_current_allocator(shelf, 1)
    x = GTorch.zeros(1000, device='cuda:1')
    assert ('cuda:1', 4096) in shelf.held.values()
    assert x.sum().item() == 0
    raises(
        GLib.Error, 'cannot be changed after it has', cuda.change_current_allocator, Shelf(), 'cuda:1'
    )
    raises(GLib.Error, 'cannot be loaded', cuda.CUDAPluggableAllocator, 'libnowhere.so', 'a', 'b')


HALF_WAY = """
import gi
gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch

class Source(GTorch.MemorySource):
    def do_allocate(self, device, n_bytes, stream):
        return 0

x = GTorch.zeros(1000, device='cuda:1')
try:
    GTorch.cuda.memory.change_current_allocator(Source())
except GLib.Error as error:
    print(error.message)
print([GTorch.Device.cuda(i).get_allocator().get_source() for i in range(2)])
"""


@tap.case
def all_devices_get_another_source_or_none():
    """The second device has allocated, so it keeps its source; then the first does so as well."""
    done = subprocess.run([sys.executable, '-c', HALF_WAY], capture_output=True, text=True, check=True)
    assert 'cannot be changed after it has' in done.stdout, done
    assert '[None, None]' in done.stdout, done


@tap.case
def statistics_have_the_names_of_pytorch():
    stats = cuda.memory_stats(0)
    assert stats['allocated_bytes.all.current'] == cuda.memory_allocated(0)
    assert stats['reserved_bytes.all.peak'] == cuda.max_memory_reserved(0)
    assert 'Allocated memory' in cuda.memory_summary(0)
    cuda.reset_accumulated_memory_stats(0)
    assert cuda.memory_stats(0)['num_device_alloc'] == 0
    cuda.set_per_process_memory_fraction(0.5, 0)
    assert cuda.get_per_process_memory_fraction(0) == 0.5
    cuda.set_per_process_memory_fraction(1.0, 0)
    assert cuda.memory.memory_stats is cuda.memory_stats


@tap.case
def former_names_still_work():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        assert cuda.memory_cached(0) == cuda.memory_reserved(0)
        assert cuda.max_memory_cached(0) == cuda.max_memory_reserved(0)
        cuda.reset_max_memory_allocated(0)
    assert [w.category for w in caught] == [DeprecationWarning] * 3
    assert 'memory_cached is now memory_reserved' in str(caught[0].message)
    assert cuda.max_memory_allocated(0) == cuda.memory_allocated(0)


@tap.case
def snapshots_are_files():
    cuda.memory._record_memory_history('alloc', max_entries=100, device=0)
    x = GTorch.zeros(1000, device='cuda')
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / 'snapshot.pickle'
        link = pathlib.Path(folder) / 'link'
        cuda.memory._dump_snapshot(path, device=0)
        link.symlink_to('snapshot.pickle')
        path.write_text('former')
        cuda.memory._dump_snapshot(str(link), device=0)
        assert link.is_symlink() and len(list(pathlib.Path(folder).iterdir())) == 2
        found = pickle.loads(path.read_bytes())
    cuda.memory._record_memory_history(None, device=0)
    assert any(e['action'] == 'alloc' and e['size'] == 4096 for e in found['device_traces'][0])
    assert x.sum().item() == 0


@tap.case
def collector_runs_when_memory_of_a_gpu_is_short():
    device = GTorch.Device('cuda:0')
    half = device.get_total_memory() // 2
    gc.disable()
    try:
        for _ in range(8):
            cycle = [GTorch.empty(half, dtype=GTorch.int8, device=device)]
            cycle.append(cycle)
            del cycle
    finally:
        gc.enable()
    gc.collect()


@tap.case
def collector_runs_when_memory_of_the_cpu_is_short():
    cpu, size = GTorch.Device('cpu'), 64 << 20
    gc.collect()
    cpu.empty_cache()
    allocator = cpu.get_allocator()
    limit = allocator.get_stat('reserved_bytes.all.current') + 1.5 * size
    allocator.set_memory_fraction(limit / cpu.get_total_memory())
    gc.disable()
    try:
        for _ in range(4):
            cycle = [GTorch.empty(size, dtype=GTorch.int8)]
            cycle.append(cycle)
            del cycle
    finally:
        gc.enable()
        allocator.set_memory_fraction(1)
    gc.collect()


if __name__ == '__main__':
    tap.main()
