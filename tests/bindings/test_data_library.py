#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Data sets and loaders in C in Python's loaders and loops, Python's ones in those in C, and threads as workers."""

import gc
import os
import pathlib
import random
import signal
import sys
import threading
import time
import warnings
import weakref

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'style'))

import gtorch as torch  # noqa: E402
import gtorch.utils.data as data  # noqa: E402
from gi.overrides._gtorch_samples import from_sample, to_sample  # noqa: E402
from gi.repository import GTorch  # noqa: E402

import tap  # noqa: E402
from tap import raises  # noqa: E402

warnings.filterwarnings('ignore', '.*workers share')
IN_C = GTorch.TensorDataset.new([torch.arange(10.0), torch.arange(10)])


class Numbers(data.Dataset):
    def __init__(self, n, make=lambda i: i):
        self.n, self.make = n, make

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return self.make(i)


class Count(data.IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = data.get_worker_info()
        return iter(range(info.id, self.n, info.num_workers))


def labels(loader):
    return [y.tolist() for _, y in loader]


def numbers(loader):
    return [x.tolist() for x in loader]


# --- samples ---


@tap.case
def structures_become_samples_and_are_themselves_again():
    own = object()
    for value in (None, True, 3, -(2**63), 2**70, 1.5, 'text', 'a\0b', b'\0\1', (1, (2.0, 'x')),
                  {'a': 1, 'b': {'c': ()}}, {1: 2}, own, 1j):
        again = from_sample(to_sample(value))
        assert type(again) is type(value) and again == value, (value, again)
    assert from_sample(to_sample([1, [2]])) == (1, (2,)) and from_sample(to_sample((1, (2,))), list) == [1, [2]]
    tensor = torch.ones(2)
    assert from_sample(to_sample({'x': tensor}))['x'] is tensor
    import numpy

    assert from_sample(to_sample(numpy.arange(3))).tolist() == [0, 1, 2]


# --- data sets and loaders in C ---


@tap.case
def sets_in_c_are_sequences():
    assert len(IN_C) == 10 and [x.item() for x in IN_C[3]] == [3, 3] and IN_C[-1][1].item() == 9
    raises(IndexError, lambda: IN_C[10])


@tap.case
def loaders_in_c_are_iterated_over():
    loader = GTorch.DataLoader(dataset=IN_C, batch_size=4)
    assert len(loader) == 3 and labels(loader) == labels(loader) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    for x, _y in loader:
        assert x.dtype == torch.float32
        break


def in_c(workers):
    loader = data.DataLoader(IN_C, batch_size=4, num_workers=workers)
    assert labels(loader) == labels(loader) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]] and len(loader) == 3
    loader = data.DataLoader(IN_C, batch_size=4, num_workers=workers, shuffle=True, drop_last=True)
    torch.manual_seed(2)
    first = labels(loader)
    assert len(first) == 2 and len(set(sum(first, []))) == 8
    torch.manual_seed(2)
    assert labels(loader) == first
    loader = data.DataLoader(IN_C, batch_size=4, num_workers=workers, collate_fn=len)
    assert list(loader) == [4, 4, 2]
    part = data.Subset(IN_C, [3, 1])
    assert labels(data.DataLoader(part, 2, num_workers=workers, worker='thread')) == [[3, 1]]


for number_of_workers in (0, 1, 2):
    tap.add(f'python_loads_sets_in_c_with_{number_of_workers}', in_c, number_of_workers)


# --- threads ---


@tap.case
def threads_load_what_processes_load():
    def make(i):
        info = data.get_worker_info()
        assert isinstance(info.rng.random_generator, random.Random) and info.worker_method == 'thread'
        return {'i': i, 'id': info.id, 'same': info.dataset is rows, 'name': 'x', 'where': os.getpid()}

    rows = Numbers(7, make)
    found = list(data.DataLoader(rows, batch_size=2, num_workers=2, worker='thread'))
    assert [one['i'].tolist() for one in found] == [[0, 1], [2, 3], [4, 5], [6]]
    assert [one['id'].tolist()[0] for one in found] == [0, 1, 0, 1] and found[0]['name'] == ['x', 'x']
    assert all(one['same'].all() and set(one['where'].tolist()) == {os.getpid()} for one in found)
    assert data.get_worker_info() is None


@tap.case
def threads_take_all_arguments():
    begun = []
    loader = data.DataLoader(Numbers(5), batch_size=None, num_workers=2, worker='thread', prefetch_factor=3,
                             persistent_workers=True, worker_init_fn=begun.append, collate_fn=lambda x: -x)
    assert list(loader) == list(loader) == [0, -1, -2, -3, -4] and sorted(begun) == [0, 1]
    assert numbers(data.DataLoader(Count(7), 2, num_workers=2, worker='thread')) == [[0, 2], [1, 3], [4, 6], [5]]
    keys = data.DataLoader({'a': 1, 'b': 2}, sampler=['b', 'a'], num_workers=1, worker='thread')
    assert numbers(keys) == [[2], [1]]
    raises(ValueError, lambda: data.DataLoader(Numbers(1), worker='fast'), "'fast'")


@tap.case
def an_error_in_a_thread_has_its_kind():
    def make(i):
        if i == 2:
            raise FileNotFoundError('no such picture')
        return i

    iterator = iter(data.DataLoader(Numbers(6, make), batch_size=2, num_workers=2, worker='thread'))
    assert next(iterator).tolist() == [0, 1]
    raises(FileNotFoundError, lambda: next(iterator), 'DataLoader worker 1', 'no such picture', 'Traceback', 'in make')
    assert next(iterator).tolist() == [4, 5]

    def fail(*_):
        raise ZeroDivisionError('in vain')

    raises(ZeroDivisionError,
           lambda: list(data.DataLoader(Numbers(1), num_workers=1, worker='thread', worker_init_fn=fail)), 'in vain')

    class Order(data.Sampler):
        def __iter__(self):
            yield 0
            yield from fail()

        def __len__(self):
            return 2

    loader = data.DataLoader(Numbers(3), num_workers=1, worker='thread', sampler=Order(), batch_size=None)
    raises(ZeroDivisionError, lambda: list(loader), 'in vain')


@tap.case
def a_late_batch_of_a_thread_is_an_error():
    gate = threading.Event()
    loader = data.DataLoader(Numbers(2, lambda i: gate.wait(30)), num_workers=1, worker='thread', timeout=0.2)
    iterator = iter(loader)
    raises(RuntimeError, lambda: next(iterator), 'timeout', '0.2')
    gate.set()
    iterator.close()


@tap.case
def threads_go_on_where_a_loader_was():
    torch.manual_seed(4)
    loader = data.DataLoader(Numbers(15), batch_size=2, num_workers=2, worker='thread', shuffle=True)
    iterator = iter(loader)
    next(iterator), next(iterator)
    state = loader.state_dict()
    rest = numbers(iterator)
    other = data.DataLoader(Numbers(15), batch_size=2, num_workers=2, worker='thread', shuffle=True)
    other.load_state_dict(state)
    assert numbers(other) == rest and len(rest) == 6


@tap.case
def nothing_of_a_left_iteration_remains():
    for _ in range(20):
        rows = Numbers(100)
        loader = data.DataLoader(rows, batch_size=2, num_workers=2, worker='thread')
        for _batch in loader:
            break
        seen = weakref.ref(rows)
        del rows, loader, _batch
        gc.collect()
        assert seen() is None


# --- Python's loaders for the library ---


def for_library(workers, worker):
    def make(i):
        if i == 3:
            raise KeyError('three')
        return {'x': torch.full((2,), float(i)), 'y': i, 'where': os.getpid()}

    loader = data.DataLoader(Numbers(3, make), batch_size=2, num_workers=workers, worker=worker).for_library()
    assert isinstance(loader, GTorch.DataLoader) and len(loader) == 2
    found = list(loader)
    assert [one['y'].tolist() for one in found] == [one['y'].tolist() for one in loader] == [[0, 1], [2]]
    assert (found[0]['where'][0].item() == os.getpid()) == (worker == 'thread' or workers == 0)
    assert found[0]['x'].tolist() == [[0, 0], [1, 1]]
    bad = data.DataLoader(Numbers(6, make), batch_size=2, num_workers=workers, worker=worker).for_library()
    iterator = bad.iterate()
    iterator.next(None)
    raises(RuntimeError, lambda: iterator.next(None), 'KeyError', 'three')
    assert from_sample(iterator.next(None), list)['y'].tolist() == [4, 5] and iterator.next(None) is None
    if workers:
        counts = data.DataLoader(Count(7), 2, num_workers=workers, worker=worker).for_library()
        assert sorted(sum(numbers(counts), [])) == list(range(7))


for number_of_workers in (0, 1, 2):
    for worker_kind in ('process', 'thread'):
        tap.add(f'the_library_gets_batches_by_{number_of_workers}_{worker_kind}', for_library, number_of_workers,
                worker_kind)


@tap.case
def a_killed_process_is_told_to_the_library():
    loader = data.DataLoader(Numbers(4, lambda i: os._exit(3) if i == 2 else i), batch_size=2, num_workers=1)
    iterator = loader.for_library().iterate()
    iterator.next(None)
    raises(RuntimeError, lambda: iterator.next(None), 'DataLoader worker 0', 'exit code 3')


@tap.case
def processes_end_with_the_librarys_loader():
    loader = data.DataLoader(Numbers(4, lambda i: os.getpid()), batch_size=2, num_workers=2).for_library()
    workers = set(sum(numbers(loader), []))
    del loader
    gc.collect()
    for pid in workers:
        raises(ProcessLookupError, lambda pid=pid: os.kill(pid, 0))


# --- shared memory ---


@tap.case
def shared_memory_is_seen_by_two_owners():
    memory = GTorch.SharedMemory.new(256)
    one = memory.make_tensor(64, torch.float32, [3, 4]).fill_(2)
    other = GTorch.SharedMemory.new_from_fd(memory.get_fd())
    assert other.get_n_bytes() == 256 and other.get_fd() == -1
    seen = other.make_tensor(64, torch.float32, [3, 4])
    seen[0, 0] = 7
    assert one.tolist()[0] == [7, 2, 2, 2] and one.data_ptr() == memory.get_address() + 64
    assert memory.is_used()
    memory.lend()
    del one
    gc.collect()
    assert memory.is_used()
    del seen
    gc.collect()
    assert not memory.is_used()


if __name__ == '__main__':
    class Blocked(torch.Dataset):
    """The last sample never comes."""

    def get_length(self):
        return 3

    def get_item(self, index, cancellable):
        while index == 2 and not cancellable.is_cancelled():
            time.sleep(0.01)
        return torch.Sample.new_int(index)


@tap.case
def a_loop_over_a_loader_in_c_ends_with_the_keyboard():
    found = []
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()

    def loop():
        for sample in torch.DataLoader(dataset=Blocked(), batch_size=0, num_workers=1):
            found.append(sample)

    raises(KeyboardInterrupt, loop)
    assert found == [0, 1] and time.monotonic() - start < 5, found
    timer.join()


@tap.case
def settings_of_a_loader_in_c_are_fixed():
    loader = torch.DataLoader.new(torch.TensorDataset.new([torch.arange(8)]), 2, False)
    for name in ('batch_size', 'num_workers', 'shuffle', 'drop_last', 'timeout', 'prefetch_factor', 'generator'):
        before = getattr(loader, name)
        raises(AttributeError, lambda name=name: setattr(loader, name, before), f'DataLoader.{name} is fixed')
        raises(AttributeError, lambda name=name: delattr(loader, name))


tap.main()
