# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""GTorch.utils.data.DataLoader: batches of a data set, with or without worker processes."""

import contextlib
import itertools
import multiprocessing
import multiprocessing.context
import os
import random
import threading
import time
import warnings
from typing import Generic, TypeVar

from gi.repository import GTorch

from gi.overrides import _gtorch_collate as collate
from gi.overrides import _gtorch_datasets as datasets
from gi.overrides import _gtorch_samplers as samplers
from gi.overrides import _gtorch_workers as workers
from gi.overrides._gtorch_hooks import is_profiling

Batch = TypeVar('Batch', covariant=True)
FIXED = ('batch_size', 'batch_sampler', 'sampler', 'drop_last', 'dataset', 'persistent_workers')
VERSION = 2


class _DatasetKind:
    """Whether a data set has indices."""

    Map, Iterable = 0, 1

    @staticmethod
    def create_fetcher(kind, dataset, auto_collation, collate_fn, drop_last):
        """What fetches batches in PyTorch's loaders."""
        is_iterable = kind == _DatasetKind.Iterable
        task = workers.Task(dataset, is_iterable, auto_collation, collate_fn, drop_last, None, 0, 0, 0, False)
        return workers.fetcher(task)


class _Endless(samplers.Sampler):
    """The order of data sets without indices."""

    def __iter__(self):
        return itertools.repeat(None)


def _context(value, n_workers):
    if value is None:
        return None
    if n_workers == 0:
        raise ValueError('DataLoader(): multiprocessing_context is for loaders with num_workers above 0')
    if isinstance(value, str):
        methods = multiprocessing.get_all_start_methods()
        if value not in methods:
            raise ValueError(f'DataLoader(): multiprocessing_context must be one of {methods}, not {value!r}')
        return multiprocessing.get_context(value)
    if not isinstance(value, multiprocessing.context.BaseContext):
        raise TypeError(f'DataLoader(): multiprocessing_context must be a context or its name, not {value!r}')
    return value


class DataLoader(Generic[Batch]):
    """Batches of a data set, for `for`.

    The order is that of @batch_sampler, of @sampler, random with @shuffle, or that of the data set. @collate_fn makes a
    batch of a list of samples, by default default_collate(). With @num_workers above 0 as many processes load batches
    in advance, each @prefetch_factor of them; with @worker='thread', and for data sets in C, threads do. state_dict()
    tells where the loader is, and load_state_dict() lets the next iteration go on there."""

    __is_made = False

    def __init__(self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0,
                 collate_fn=None, pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None,
                 multiprocessing_context=None, generator=None, *, prefetch_factor=None, persistent_workers=False,
                 pin_memory_device='', in_order=True, worker=None):
        if worker not in (None, 'process', 'thread'):
            raise ValueError(f"DataLoader(): worker must be 'process', 'thread' or None, not {worker!r}")
        self.worker = worker or ('thread' if isinstance(dataset, GTorch.Dataset) else 'process')
        self._check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self._dataset_kind = int(isinstance(dataset, datasets.IterableDataset))
        self._check_order(shuffle, sampler, batch_sampler, batch_size, drop_last)
        self.dataset, self.num_workers, self.timeout = dataset, num_workers, timeout
        self.prefetch_factor = 2 if prefetch_factor is None and num_workers > 0 else prefetch_factor
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.worker_init_fn, self.in_order = worker_init_fn, in_order
        self.multiprocessing_context = multiprocessing_context
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        if sampler is None:
            if self._dataset_kind == _DatasetKind.Iterable:
                sampler = _Endless()
            elif shuffle:
                sampler = samplers.RandomSampler(dataset, generator=generator)
            else:
                sampler = samplers.SequentialSampler(dataset)
        if batch_size is not None:
            batch_sampler = samplers.BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.drop_last, self.sampler = batch_size, drop_last, sampler
        self.batch_sampler, self.generator = batch_sampler, generator
        if collate_fn is None:
            collate_fn = collate.default_collate if self._auto_collation else collate.default_convert
        self.collate_fn, self.persistent_workers = collate_fn, persistent_workers
        self._iterator = self._progress = self._resumed = self._told_length = self._core = None
        self.__is_made = True
        self.check_worker_number_rationality()

    @staticmethod
    def _check_workers(num_workers, timeout, prefetch_factor, persistent_workers):
        if num_workers < 0:
            raise ValueError(f'DataLoader(): num_workers is {num_workers}, and must not be negative: 0 is none')
        if timeout < 0:
            raise ValueError(f'DataLoader(): timeout is {timeout}, and must not be negative')
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError('DataLoader(): prefetch_factor is for loaders with num_workers above 0')
        if prefetch_factor is not None and prefetch_factor < 1:
            raise ValueError(f'DataLoader(): prefetch_factor is {prefetch_factor}, it must be at least 1')
        if persistent_workers and num_workers == 0:
            raise ValueError('DataLoader(): persistent_workers needs num_workers above 0')

    def _check_order(self, shuffle, sampler, batch_sampler, batch_size, drop_last):
        if self._dataset_kind == _DatasetKind.Iterable:
            for name, value in (('shuffle', shuffle or None), ('sampler', sampler), ('batch_sampler', batch_sampler)):
                if value is not None:
                    raise ValueError(f'DataLoader(): an iterable data set has its own order; {name} is {value!r}')
        if sampler is not None and shuffle:
            raise ValueError('DataLoader(): sampler and shuffle exclude each other')
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ValueError('DataLoader(): batch_sampler excludes batch_size, shuffle, sampler and drop_last')
        if batch_sampler is None and batch_size is None and drop_last:
            raise ValueError('DataLoader(): drop_last is for batches, and batch_size is None')

    def __setattr__(self, name, value):
        if self.__is_made and name in FIXED:
            raise ValueError(f'DataLoader: {name} cannot be set once the loader is made')
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self):
        """The context by which processes are started, or None for Python's default."""
        return self.__context

    @multiprocessing_context.setter
    def multiprocessing_context(self, value):
        self.__context = _context(value, self.num_workers)

    @property
    def _auto_collation(self):
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.batch_sampler if self._auto_collation else self.sampler

    def check_worker_number_rationality(self):
        """Warns if there are more workers than processors."""
        n = len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()
        if self.num_workers > (n or 1):
            warnings.warn(f'DataLoader: {self.num_workers} workers share {n} processors, which may be slower than as '
                          'many workers as processors', stacklevel=3)

    def __iter__(self):
        if self.num_workers == 0:
            return _Alone(self)
        if self.worker == 'thread':
            return _WithThreads(self)
        if not self.persistent_workers:
            return _WithProcesses(self)
        if self._iterator is None or self._iterator.is_closed:
            self._iterator = _WithProcesses(self)
        else:
            self._iterator.begin()
        return self._iterator

    def __len__(self):
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        n = self._told_length = len(self.dataset)
        if self.batch_size is None:
            return n
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def for_library(self):
        """The GTorch.DataLoader that gives the same batches, for functions of the library that take one. Epochs and
        positions are its own."""
        from gi.overrides import _gtorch_threads as threads

        return threads.core(self, lambda: iter(self._index_sampler), [], for_c=True, timeout=self.timeout,
                            basis=_Basis(self))

    def _task(self, base_seed):
        has_state = _has_state(self.dataset)
        return workers.Task(self.dataset, self._dataset_kind == _DatasetKind.Iterable, self._auto_collation,
                            self.collate_fn, self.drop_last, self.worker_init_fn, self.num_workers, base_seed,
                            (self.prefetch_factor or 0) + workers.SPARE, has_state)

    def state_dict(self):
        """Where the loader is: how many batches of the epoch the program has got, and what the order follows from. It
        can be saved by torch.save()."""
        if self._resumed is not None:
            return dict(self._resumed)
        if self._progress is None:
            return {'version': VERSION, 'position': 0, 'is_at_end': False, 'order': None, 'loader': self._likeness()}
        return {**self._progress.state(), 'loader': self._likeness()}

    def _likeness(self):
        """What the loader has in common with those that can go on from its states."""
        try:
            length = len(self.dataset)
        except (TypeError, NotImplementedError):
            length = None
        return {'kind': 'iterable' if self._dataset_kind else 'indexed', 'batch_size': self.batch_size,
                'drop_last': self.drop_last, 'sampler': type(samplers.owner(self._index_sampler)).__name__,
                'length of the data set': length}

    @property
    def _is_resumable(self):
        return self.in_order or self.num_workers == 0

    def load_state_dict(self, state_dict):
        """Lets the next iteration begin behind the batches that had been got when state_dict() gave this."""
        if not isinstance(state_dict, dict) or state_dict.get('version') != VERSION:
            raise ValueError('DataLoader.load_state_dict() takes what state_dict() of a loader gave')
        _check_state(state_dict)
        theirs, ours = state_dict['loader'], self._likeness()
        for name, value in ours.items():
            if theirs.get(name) != value:
                raise ValueError(f'DataLoader.load_state_dict(): the state is that of a loader whose {name} is '
                                 f"{theirs.get(name)!r}, and this one's is {value!r}")
        n = state_dict.get('num_workers', self.num_workers)
        if n != self.num_workers and self._dataset_kind == _DatasetKind.Iterable:
            raise ValueError(f'DataLoader.load_state_dict(): the state is that of {n} workers, and there are '
                             f'{self.num_workers}')
        is_new = state_dict['order'] is None or state_dict['is_at_end']  # then the next epoch begins
        self._resumed = None if is_new else dict(state_dict)


# What an entry of a state is. The others are the program's.
ENTRIES = {
    'position': lambda value: isinstance(value, int) and value >= 0,
    'is_at_end': lambda value: isinstance(value, bool),
    'order': lambda value: value is None or (isinstance(value, dict) and {'generator', 'base_seed'} <= value.keys()),
    'loader': lambda value: isinstance(value, dict),
    'num_workers': lambda value: isinstance(value, int) and value >= 0,
    'places': lambda value: isinstance(value, (list, tuple)) and all(isinstance(one, int) for one in value),
    'turn': lambda value: isinstance(value, int) and value >= 0,
    'datasets': lambda value: isinstance(value, dict),
}
NEEDED = ('position', 'is_at_end', 'order', 'loader')


def _check_state(state):
    for name, fits in ENTRIES.items():
        if name not in state and name in NEEDED:
            raise ValueError(f'DataLoader.load_state_dict(): the state has no {name!r}')
        if name in state and not fits(state[name]):
            text = f'{name!r} is {state[name]!r}, which no state of a loader has'
            raise ValueError(f'DataLoader.load_state_dict(): {text}')


class _Progress:
    """Where an iteration is, which the loader keeps beyond it."""

    def __init__(self, loader, resumed):
        self.resumed = resumed or {}
        self.position, self.is_at_end = self.resumed.get('position', 0), False
        self.datasets = dict(self.resumed.get('datasets') or {})
        self.places = list(self.resumed.get('places') or [0] * loader.num_workers)
        self.turn = self.resumed.get('turn', 0)
        self.order, self.n_workers, self.in_order = None, loader.num_workers, loader.in_order

    def state(self):
        if self.n_workers > 0 and not self.in_order:
            raise NotImplementedError('DataLoader.state_dict(): with in_order=False the batches that have come are not '
                                      'the first ones')
        found = {'version': VERSION, 'position': self.position, 'is_at_end': self.is_at_end, 'order': dict(self.order),
                 'num_workers': self.n_workers, 'places': list(self.places), 'turn': self.turn}
        return {**found, 'datasets': dict(self.datasets)} if self.datasets else found


class _Basis:
    """What an order follows from: the generator that it is drawn from, and what its sampler keeps."""

    def __init__(self, loader):
        self.own = samplers.owner(loader._index_sampler)
        self.generator = loader.generator or getattr(self.own, 'generator', None)
        if not isinstance(self.generator, GTorch.Generator):
            self.generator = GTorch.Device.cpu().get_default_generator()

    def facts(self):
        """What the order that begins now follows from."""
        own = self.own
        is_ours = type(own).__module__ == datasets.HERE
        return {
            'generator': self.generator.get_state(),
            'random': None if is_ours else random.getstate(),
            'sampler': own.state_dict() if _has_state(own) else None,
            'epoch': getattr(own, 'epoch', None) if hasattr(own, 'set_epoch') else None,
        }

    def restore(self, facts):
        """Lets the order that begins next be the one of these facts."""
        self.generator.set_state(facts['generator'])
        if facts['random'] is not None:
            version, numbers, following = facts['random']
            random.setstate((version, tuple(numbers), following))
        if facts['sampler'] is not None:
            self.own.load_state_dict(facts['sampler'])
        if facts['epoch'] is not None:
            self.own.set_epoch(facts['epoch'])

    @contextlib.contextmanager
    def restored(self, facts):
        """A block in which the order of these facts begins, or with None anew. Behind it, what others draw from is as
        before."""
        if facts is None:
            yield
            return
        default = GTorch.Device.cpu().get_default_generator()
        before = default.get_state(), random.getstate()
        try:
            self.restore(facts)
            yield
        finally:
            random.setstate(before[1])
            default.set_state(before[0])


class _Order:
    """The order of an epoch: what is asked for, and what it follows from."""

    def __init__(self, loader, progress):
        basis, former = _Basis(loader), progress.resumed.get('order')
        with basis.restored(former):
            progress.order = basis.facts()
            # Drawn when an epoch goes on, too: the order comes behind it.
            self.base_seed = int(GTorch.empty((), dtype=GTorch.int64).random_(generator=loader.generator).item())
            if former is not None:
                self.base_seed = former['base_seed']
            progress.order['base_seed'] = self.base_seed
            whole = loader.num_workers == 0 and workers.whole_batches(loader._task(0)) is not None
            self.indices = samplers.pieces(loader.batch_sampler) if whole else iter(loader._index_sampler)
            self.skipped = []
            if loader._dataset_kind == _DatasetKind.Iterable:
                self.skipped = list(itertools.islice(self.indices, progress.position))
            else:
                # One more is drawn: so the order follows from the state that is kept, whatever is drawn meanwhile.
                first = list(itertools.islice(self.indices, progress.position, progress.position + 1))
                self.indices = itertools.chain(first, self.indices)


def _has_state(value):
    return hasattr(value, 'state_dict') and hasattr(value, 'load_state_dict')


class _Iterator:
    """An iteration over a loader."""

    is_closed = False
    RANGE = 'enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__'  # the name in profiles, which is PyTorch's

    def __init__(self, loader):
        self.loader, self.turn_of_threads = loader, threading.RLock()
        self.begin()

    def begin(self):
        """Begins an epoch, or goes on in one."""
        loader = self.loader
        resumed, loader._resumed = loader._resumed, None
        self.progress = _Progress(loader, resumed)
        self.order = _Order(loader, self.progress)
        loader._progress = self.progress
        self.pins = bool(loader.pin_memory) and GTorch.cuda.is_available()
        if loader.pin_memory and not self.pins:
            warnings.warn('DataLoader: pin_memory has no effect without a GPU', stacklevel=4)
        if loader.pin_memory and loader.pin_memory_device:
            warnings.warn('DataLoader: pin_memory_device has no effect: all GPUs take the same pinned memory',
                          stacklevel=4)
        self.start(loader)

    def __iter__(self):
        return self

    def __len__(self):
        return len(self.loader._index_sampler)

    def __reduce_ex__(self, _protocol):
        raise NotImplementedError('an iteration over a DataLoader cannot be pickled: see state_dict()')

    def __next__(self):
        with self.turn_of_threads:  # each batch is for one of the threads that share the iteration
            if self.RANGE is None or not is_profiling():
                return self.next_batch()
            span = GTorch.ProfileRange.new(self.RANGE)
            try:
                return self.next_batch()
            finally:
                span.end()

    def next_batch(self):
        progress = self.progress
        if self.is_closed or progress.is_at_end:
            raise StopIteration
        try:
            data = self.next_data()
        except StopIteration:
            progress.is_at_end = True
            self.finish()
            raise
        told = self.loader._told_length
        if told is not None and progress.position > told:
            warnings.warn(f'DataLoader: len() of the iterable data set is {told}, and {progress.position} batches came',
                          stacklevel=2)
        return collate.pinned(data) if self.pins else data

    def finish(self):
        """Ends what is needed for further batches."""


class _Alone(_Iterator):
    """An iteration without workers."""

    RANGE = 'enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__'

    def start(self, loader):
        if loader.timeout != 0:
            raise AssertionError(f'DataLoader: timeout is {loader.timeout}, and must be 0 without workers')
        task = loader._task(self.order.base_seed)
        self.has_state = task.has_state
        if self.progress.datasets:
            loader.dataset.load_state_dict(self.progress.datasets[0])
            self.order.skipped = []
        self.fetcher = workers.fetcher(task)
        for index in self.order.skipped:
            self.fetcher.fetch(index)

    def next_data(self):
        index = next(self.order.indices)
        self.progress.position += 1
        try:
            data = self.fetcher.fetch(index)
        except StopIteration:
            self.progress.position -= 1
            raise
        if self.has_state:
            self.progress.datasets[0] = self.loader.dataset.state_dict()
        return data


class _WithThreads(_Iterator):
    """An iteration with threads, which the loader in C has."""

    RANGE = None  # C records its waits

    def start(self, loader):
        from gi.overrides import _gtorch_threads as threads

        self.wait, self.end = threads.wait, threads.END
        if loader._core is None or not loader.persistent_workers:
            look = min(workers.LOOK, loader.timeout or workers.LOOK)
            order, raised = [None], []
            loader._core = threads.core(loader, lambda: order[0], raised, for_c=False, timeout=look), order, raised
        core, order, self.raised = loader._core
        order[0] = self.order.indices
        if core.fetcher is not None:
            core.fetcher.base_seed = self.order.base_seed
            core.fetcher.position = 0 if loader._dataset_kind else self.progress.position
        self.inner = core.iterate()
        for _ in self.order.skipped:
            self.wait(self.inner, 0, self.raised)

    def next_data(self):
        try:
            data = self.wait(self.inner, self.loader.timeout, self.raised)
        except KeyboardInterrupt:
            self.close()
            raise
        if data is self.end:
            raise StopIteration
        self.progress.position += 1
        if isinstance(data, workers.Caught):
            raise data.made()
        return data

    def close(self):
        """Ends the work of the threads."""
        self.is_closed = True
        self.inner.close()


class _WithProcesses(_Iterator):
    """An iteration with worker processes. Tasks have numbers; each of the workers gets the next in turn, or with
    in_order=False the one that has the fewest, and results are given in the order of the numbers, or as they come."""

    def __init__(self, loader):
        self.processes, self.sent = [], 0
        try:
            super().__init__(loader)
        except BaseException:
            self.close()
            raise

    def start(self, loader):
        if not self.processes:
            context = loader.multiprocessing_context or multiprocessing.get_context()
            task = loader._task(self.order.base_seed)
            for number in range(loader.num_workers):
                others = [one.conn for one in self.processes]
                self.processes.append(workers.Process(context, task, number, others))
        self.owners, self.arrived = {}, {}  # by the numbers of tasks that were not given yet
        self.first = self.given = self.sent
        self.active, self.turn = [True] * len(self.processes), self.progress.turn
        for one, place in zip(self.processes, self.progress.places):
            state = self.progress.datasets.get(one.number)
            skipped = self.order.skipped[:place] if loader._dataset_kind and state is None else ()
            one.send(workers.BEGIN, 0, (state, skipped, self.order.base_seed, place))
        for _ in range(loader.prefetch_factor * len(self.processes)):
            self.ask()

    def choose(self):
        """The worker that gets the next task, or None."""
        n = len(self.processes)
        found = [i % n for i in range(self.turn, self.turn + n) if self.active[i % n]]
        if not found:
            return None
        if self.loader.in_order:
            return found[0]
        counts = [0] * n
        for owner in self.owners.values():
            counts[owner] += 1
        return min(found, key=counts.__getitem__)

    def ask(self):
        """Gives a worker another task, if there is one."""
        worker = self.choose()
        if worker is None:
            return
        try:
            index = next(self.order.indices)
        except StopIteration:
            return
        self.owners[self.sent] = worker
        self.processes[worker].send(workers.FETCH, self.sent, (index, None))
        self.sent += 1
        self.turn = (worker + 1) % len(self.processes)

    def next_data(self):
        try:
            kind, data = self.take(self.await_one())
        except StopIteration:
            raise
        except BaseException:  # a worker is gone or late, or the program wants to end
            self.close(workers.LOOK)
            raise
        if kind == workers.ERROR:
            raise data.made()
        return data

    def await_one(self):
        """The number of a task whose result is to be given."""
        while True:
            if not self.owners:
                self.ask()
            if not self.owners:
                raise StopIteration
            number = min(self.owners) if self.loader.in_order else next(iter(self.arrived), None)
            if number in self.arrived:
                return number
            self.receive()

    def receive(self):
        timeout = self.loader.timeout or None
        waiting = {owner for number, owner in self.owners.items() if number not in self.arrived}
        ready = workers.wait([self.processes[i] for i in waiting], timeout)
        if not ready:
            raise RuntimeError(f'DataLoader: no batch has come within timeout, {timeout} seconds')
        for process in ready:
            number, result = process.receive()
            if number < self.first:  # of an epoch that was left
                continue
            if result[0] == workers.END:
                self.active[self.owners.pop(number)] = False
                self.ask()
            else:
                self.arrived[number] = result

    def take(self, number):
        """The result of a task, in whose place another is asked for."""
        kind, data, state = self.arrived.pop(number)
        worker, progress = self.owners.pop(number), self.progress
        progress.position += 1
        progress.places[worker] += 1
        progress.turn = (worker + 1) % len(self.processes)
        if state is not None:
            progress.datasets[worker] = state
        self.ask()
        return kind, data

    def finish(self):
        if not self.loader.persistent_workers:
            self.close()

    def close(self, patience=workers.PATIENCE):
        """Ends the workers, after @patience seconds those that are busy, too."""
        if self.is_closed:
            return
        self.is_closed = True
        for one in self.processes:
            one.end()
        until = time.monotonic() + patience
        for one in self.processes:
            one.join(until)
        self.owners, self.arrived = {}, {}

    def __del__(self):
        try:
            self.close()
        except Exception:  # the interpreter ends
            pass


for _one in (DataLoader, _DatasetKind):
    _one.__module__ = datasets.HERE
