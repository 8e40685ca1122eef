#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs that watch and use the memory of GPUs, as PyTorch's users write them."""

import pathlib
import pickle
import tempfile

from gi.repository import Gio
from gpus import IS_FAKE, elsewhere, need, raises, tap, torch

cuda = torch.cuda


@tap.case
def memory_is_counted_and_freed():
    cuda.empty_cache()
    cuda.reset_peak_memory_stats(0)
    before = cuda.memory_allocated(0)
    x = torch.zeros(2**20, device='cuda')
    assert cuda.memory_allocated(0) >= before + 2**22 and cuda.memory_reserved(0) >= cuda.memory_allocated(0)
    assert cuda.max_memory_allocated() >= cuda.memory_allocated()
    assert cuda.max_memory_reserved() >= cuda.memory_reserved()
    del x
    assert cuda.memory_allocated() == before
    cuda.empty_cache()
    cuda.reset_peak_memory_stats(device=0)
    cuda.reset_accumulated_memory_stats(0)
    stats = cuda.memory_stats(0)
    assert stats['allocated_bytes.all.current'] == before == stats['allocated_bytes.all.peak']
    nested = cuda.memory.memory_stats_as_nested_dict()
    assert nested['allocated_bytes']['all']['current'] == before
    assert cuda.memory_stats_as_nested_dict().keys() == nested.keys()
    table = cuda.memory_summary(device=0)
    assert 'Allocated memory' in table and len(cuda.memory_summary(abbreviated=True)) < len(table)
    free, total = cuda.mem_get_info(0)
    assert 0 < free <= total == cuda.get_device_properties(0).total_memory or not IS_FAKE


@tap.case
def memory_for_others_is_taken_and_given_back():
    before = cuda.memory_allocated()
    address = cuda.caching_allocator_alloc(size=2**20, device=0, stream=cuda.current_stream())
    assert cuda.memory_allocated() == before + 2**20 and address != 0
    cuda.caching_allocator_delete(address)
    assert cuda.memory_allocated() == before
    raises(ValueError, 'no memory', cuda.caching_allocator_delete, address)
    assert cuda.caching_allocator_delete(mem_ptr=cuda.caching_allocator_alloc(512)) is None


@tap.case
def too_much_memory_is_an_error_that_can_be_caught():
    try:
        torch.empty(2**50, dtype=torch.uint8, device='cuda')
    except cuda.OutOfMemoryError as error:
        assert isinstance(error, RuntimeError) and isinstance(error, torch.OutOfMemoryError)
        assert 'out of memory' in str(error).lower()
        cuda.empty_cache()
        assert torch.randn(10, 10, device='cuda').shape == (10, 10)
    else:
        raise AssertionError('no error')


@tap.case
def a_program_can_limit_itself():
    program = '''
cuda = torch.cuda
cuda.set_per_process_memory_fraction(0.25, device=0)
print(cuda.get_per_process_memory_fraction(0))
quarter = cuda.get_device_properties(0).total_memory // 4
try:
    torch.empty(quarter + 2**22, dtype=torch.uint8, device='cuda')
except cuda.OutOfMemoryError:
    print('refused')
'''
    status, text = elsewhere(program)
    assert status == 0 and text.split() == ['0.25', 'refused'], text


@tap.case
def caching_can_be_turned_off():
    program = '''
cuda = torch.cuda
cuda.memory.caching_allocator_enable(False)
x = torch.ones(2**20, device='cuda')
held = cuda.memory_reserved()
del x
cuda.synchronize()
print(held > 0, cuda.memory_reserved())
cuda.caching_allocator_enable()
x = torch.ones(2**20, device='cuda')
del x
print(cuda.memory_reserved() > 0)
'''
    status, text = elsewhere(program)
    assert status == 0 and text.split() == ['True', '0', 'True'], text


@tap.case
def a_history_is_recorded():
    memory = cuda.memory
    memory._record_memory_history(max_entries=1000)
    x = torch.ones(1000, device='cuda')
    found = memory._snapshot()
    assert {'segments', 'device_traces'} <= set(found) and found['segments'] and any(found['device_traces'])
    frames = [block['frames'] for segment in found['segments'] for block in segment['blocks']
              if block['state'] == 'active_allocated' and block['frames']]
    assert ['ones', 'a_history_is_recorded'] in [[one['name'] for one in some[:2]] for some in frames], frames
    own = next(one for some in frames for one in some if one['name'] == 'a_history_is_recorded')
    assert own['filename'] == __file__ and own['line'] == a_history_is_recorded.__code__.co_firstlineno + 4, own
    assert len(memory.memory_snapshot()) == len(found['segments']) == len(cuda.memory_snapshot())
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / 'memory.pickle'
        memory._dump_snapshot(path)
        assert set(pickle.loads(path.read_bytes())) == set(found)
    memory._record_memory_history(enabled=None)
    memory._record_memory_history(True, max_entries=10, clear_history=True)
    assert not [one for trace in memory._snapshot()['device_traces'] for one in trace if one['action'] == 'alloc']
    memory._record_memory_history(enabled=None)
    raises(NotImplementedError, 'stacks', memory._record_memory_history, stacks='python')
    raises(ValueError, 'context', memory._record_memory_history, context='some')
    raises(ValueError, 'enabled', memory._record_memory_history, 'sometimes')
    assert x.sum().item() == 1000


def leak(live):
    live.append(torch.zeros(2**22, device='cuda:1'))  # grows


@tap.case
def too_little_memory_names_the_line_and_what_would_be_enough():
    if not IS_FAKE:
        raise tap.Skip('fills the memory of a GPU')
    other, live = torch.zeros(2**20, device='cuda:1'), []
    cuda.memory._record_memory_history('state', device=1)
    try:
        while True:
            leak(live)
    except torch.OutOfMemoryError as error:
        text = str(error)
    finally:
        cuda.memory._record_memory_history(None, device=1)
    line = leak.__code__.co_firstlineno + 1
    place = f"{__file__}:{line}, in leak: live.append(torch.zeros(2**22, device='cuda:1'))  # grows"
    assert f'; {len(live)} × zeros, together ' in text and f', in {place}; ' in text, text
    assert text.endswith(f'it is enough to drop what was made in {place} (zeros)'), text
    n = len(live)
    del live[:]
    for _ in range(n):
        leak(live)
    del live[:]
    assert other.sum().item() == 0


@tap.case
def a_report_is_saved():
    cuda.memory._record_memory_history(max_entries=1000)
    x = torch.ones(1000, device='cuda')
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / 'memory.html'
        torch.memory_report_save(Gio.File.new_for_path(str(path)), None)
        page = path.read_text()
    cuda.memory._record_memory_history(enabled=None)
    assert f'{__file__}:' in page and 'in a_report_is_saved: x = torch.ones(1000' in page and '<h2>cuda:0</h2>' in page
    assert '<script' not in page and x.sum().item() == 1000


@tap.case
def pools_are_apart():
    pool = cuda.MemPool()
    assert isinstance(pool, cuda.MemPool) and isinstance(pool, cuda.memory.MemPool) and pool.allocator is None
    with cuda.use_mem_pool(pool, device=0):
        x = torch.ones(1000, device='cuda')
    assert pool.get_allocated() >= 4000 and pool.snapshot() and pool.snapshot(include_traces=False)
    with cuda.use_mem_pool(pool.id):
        y = x * 2
    assert y.sum().item() == 2000 and pool.get_allocated() >= 8000
    raises(ValueError, 'no memory pool', cuda.use_mem_pool, (0, 123456))
    raises(NotImplementedError, 'no_split', cuda.MemPool, no_split=True)
    raises(NotImplementedError, 'not counted', pool.use_count)


class Shelf(cuda.MemorySource):
    """A source that has nothing."""

    asked = 0

    def allocate(self, device, n_bytes, stream):
        Shelf.asked += 1
        raise MemoryError('the shelf is empty')

    def release(self, device, address, n_bytes, stream):
        pass


@tap.case
def a_pool_has_a_source_of_its_own():
    shelf = Shelf()
    pool = cuda.MemPool(shelf.allocator())
    assert pool.allocator is shelf
    with cuda.use_mem_pool(pool):
        raises(RuntimeError, 'the shelf is empty', torch.ones, 10, device='cuda')
    assert Shelf.asked >= 1


@tap.case
def allocators_have_settings():
    program = '''
torch.cuda.memory._set_allocator_settings('max_split_size_mb:64')
print(torch.Device('cuda:0').get_allocator().props.max_split_size)
torch.cuda.memory._set_allocator_settings('unknown:1')
'''
    status, text = elsewhere(program)
    assert status != 0 and text.startswith(str(64 * 2**20)) and 'unknown' in text, text


@tap.case
def pinned_memory_is_counted():
    before = cuda.host_memory_stats()
    x = torch.ones(1000).pin_memory()
    now = cuda.memory.host_memory_stats()
    assert now['allocated_bytes.current'] >= before['allocated_bytes.current'] + 4000 and x.is_pinned()
    assert cuda.host_memory_stats_as_nested_dict()['allocated_bytes']['current'] == now['allocated_bytes.current']
    raises(NotImplementedError, 'peaks', cuda.reset_peak_host_memory_stats)
    raises(NotImplementedError, 'sums', cuda.memory.reset_accumulated_host_memory_stats)


@tap.case
def each_device_has_memory_of_its_own():
    need(2)
    before = cuda.memory_allocated(1)
    x = torch.ones(1000, device='cuda:1')
    assert cuda.memory_allocated(1) > before and cuda.memory_allocated('cuda:1') == cuda.memory_allocated(x.device)
    with cuda.device_of(x):
        assert cuda.current_device() == 1
        assert cuda.memory_allocated() == cuda.memory_allocated(1)


@tap.case
def random_numbers_can_be_repeated():
    cuda.manual_seed(42)
    cuda.manual_seed_all(42)
    assert cuda.initial_seed() == 42 == cuda.random.initial_seed()
    state = cuda.get_rng_state()
    first = torch.rand(8, device='cuda')
    cuda.set_rng_state(state)
    assert torch.rand(8, device='cuda').tolist() == first.tolist()
    states = cuda.get_rng_state_all()
    assert len(states) == cuda.device_count() == len(cuda.default_generators)
    cuda.set_rng_state_all(states)
    with torch.random.fork_rng():
        torch.rand(3, device='cuda')
    assert cuda.get_rng_state().tolist() == states[0].tolist()
    assert cuda.default_generators[0].initial_seed() == 42
    raises(IndexError, 'GPUs', lambda: cuda.default_generators[99])
    cuda.seed_all()
    cuda.seed()


@tap.case
def loaders_pin_batches():
    data = torch.utils.data

    class Rows(data.Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, i):
            return {'x': torch.full((3,), float(i)), 'rest': (i, 'text')}

    assert torch.zeros(1, device='cuda').item() == 0  # processes are forked beside a device that is used
    for options in ({}, {'num_workers': 2}, {'num_workers': 2, 'worker': 'thread'}):
        for i, batch in enumerate(data.DataLoader(Rows(), batch_size=2, pin_memory=True, **options)):
            assert batch['x'].is_pinned() and batch['rest'][0].is_pinned() and batch['rest'][1] == ('text', 'text')
            on_gpu = batch['x'].to('cuda', non_blocking=True)
            assert on_gpu.tolist() == [[2 * i] * 3, [2 * i + 1] * 3]

    class Own:
        def pin_memory(self):
            return 'pinned'

    loader = data.DataLoader(Rows(), batch_size=6, pin_memory=True, collate_fn=lambda batch: [Own(), (Own(), 1)])
    assert list(loader) == [['pinned', ('pinned', 1)]]


if __name__ == '__main__':
    tap.main()
