# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What lets the loader in C (GTorch.DataLoader) get batches of Python's data sets, orders and functions: in its
threads, or for programs that give a loader of Python's to the library."""

import io
import itertools
import multiprocessing
import random
import time
import weakref

from gi.repository import Gio, GLib, GTorch

from gi.overrides import _gtorch_worker_info as info
from gi.overrides import _gtorch_workers as workers
from gi.overrides._gtorch_errors import guards, passing, restoring
from gi.overrides._gtorch_samples import from_sample, held, to_sample

HERE = 'gtorch.utils.data'  # classes of gi.overrides get no type of GObject's
TIMED_OUT = Gio.IOErrorEnum.TIMED_OUT


class _Source(GTorch.IndexSource):
    """The order of an epoch. What Python asks a data set for need not be numbers: C gets the numbers of requests."""

    __module__ = HERE

    @guards('sampler')
    def do_next(self, _n):
        return passing('sampler', self.give)

    def give(self):
        try:
            index = next(self.indices)
        except StopIteration:
            return None
        except Exception as error:
            self.raised.append(error)  # C tells of it once the batches before have come
            raise
        if self.requests is None:
            return GTorch.Size.new(index if isinstance(index, (list, tuple)) else [index])
        self.requests.append(index)
        return GTorch.Size.new([len(self.requests) - 1])

    @guards('sampler')
    def do_get_state(self):
        return self.state


class _Sampler(GTorch.Sampler):
    """An order of Python's. @basis is what it follows from, or None if C keeps no states of it."""

    __module__ = HERE

    @guards('sampler')
    def do_iterate(self, _epoch):
        source, facts = _Source(), self.facts
        self.facts = source.state = None
        source.requests, source.raised = self.requests, self.raised
        source.indices = passing('sampler', self._begin, source, facts)
        if self.fetcher is not None:
            self.fetcher.first = len(self.requests)
        return source

    def _begin(self, source, facts):
        if self.basis is None:
            return self.begin()
        with self.basis.restored(facts):
            source.state = packed(self.basis.facts())
            indices = self.begin()
            first = list(itertools.islice(indices, 1))  # so the order follows from this state
        return itertools.chain(first, indices)

    @guards('sampler')
    def do_set_state(self, state):
        self.facts = passing('sampler', unpacked, state)
        return True

    @guards('sampler')
    def do_get_length(self):
        return passing('sampler', self.measure)


def packed(state):
    """A state of Python's for C, as the bytes of save(), from which no code runs when they are read."""
    file = io.BytesIO()
    GTorch.save(state, file)
    return GLib.Variant.new_from_bytes(GLib.VariantType('ay'), GLib.Bytes.new(file.getvalue()), True)


def unpacked(state):
    """The state that packed() was given."""
    if state.get_type_string() != 'ay':
        raise ValueError(f'the state is of the type {state.get_type_string()}, and must be bytes')
    return GTorch.load(io.BytesIO(state.get_data_as_bytes().get_data() or b''))


class _Nothing(GTorch.Dataset):
    """The data set of a loader whose fetcher knows another."""

    __module__ = HERE

    @guards('the data set')
    def do_get_length(self):
        return 0


class _NoEnd(GTorch.IterableDataset):
    """The same for a data set without indices."""

    __module__ = HERE


class _Fetcher(GTorch.Fetcher):
    """Calls a data set of Python's in the threads of the loader."""

    __module__ = HERE

    first = position = 0  # the number of the first request of the epoch, and its place in the epoch
    base_seed = None  # of the epoch; None: that of C

    @guards('the data set')
    def do_begin(self, worker, n_workers, seed, _cancellable):
        try:
            seed = seed if self.base_seed is None else self.base_seed
            self.seeds[worker], self.places[worker] = seed, 0
            self.prepare(worker, n_workers, (seed + worker) % 2**64)
        except Exception as error:
            self.failed[worker] = error
        finally:
            info.of_thread.info = None
        return True

    def prepare(self, worker, n_workers, seed):
        task = self.task
        if self.has_workers and worker not in self.infos:
            generator = GTorch.Generator()
            generator.manual_seed(seed)
            rng = info.RNG(random.Random(seed), generator)
            self.infos[worker] = info.WorkerInfo(worker, n_workers, seed, task.dataset, rng, 'thread')
            info.of_thread.info = self.infos[worker]
            if task.init_fn is not None:
                task.init_fn(worker)
        info.of_thread.info = self.infos.get(worker)
        self.fetchers[worker] = workers.fetcher(task)

    @guards('the data set')
    def do_fetch(self, worker, indices, *_rest):
        index = self.requests[indices[0]]
        self.requests[indices[0]] = None
        place = indices[0] - self.first + self.position
        self.seed(worker, 0, place)
        return self.made(worker, index)

    @guards('the data set')
    def do_fetch_next(self, worker, n, _drop_last, _cancellable):
        self.seed(worker, worker, self.places[worker])
        self.places[worker] += 1
        return self.made(worker, [None] * n)

    def seed(self, worker, number, place):
        """Lets the random numbers of a batch follow from its place, so that they are the same if the epoch goes on
        there."""
        info_of_worker = self.infos.get(worker)
        if info_of_worker is not None:
            seed = workers.derived_seed(self.seeds[worker], number, place)
            info_of_worker.rng.random_generator.seed(seed)
            info_of_worker.rng.torch_generator.manual_seed(seed)

    def made(self, worker, index):
        """The batch as a sample, or None at the end. An error becomes one of C's, or is passed on as it is."""
        # A thread of C's has a state of Python's for this call alone; it must not be the last to have an object of C's.
        info.of_thread.info = self.infos.get(worker)
        try:
            if self.failed.get(worker) is not None:
                raise self.failed.pop(worker)
            data = self.fetchers[worker].fetch(index)
            return to_sample(data) if self.for_c else held(data)
        except StopIteration as error:
            if self.task.is_iterable:
                return None
            return self.caught(error, worker)
        except BaseException as error:
            return self.caught(error, worker)
        finally:
            info.of_thread.info = None

    def caught(self, error, worker):
        if not self.for_c:
            where = f'DataLoader worker {worker}' if self.has_workers else 'DataLoader'
            return held(workers.Caught(error, where))
        if isinstance(error, GLib.Error):
            raise error
        said = str(error).removeprefix(f'DataLoader worker {worker}').lstrip(':, ')  # the loader says so, too
        raise GLib.Error(f'{type(error).__name__}: {said}', GLib.quark_to_string(GTorch.error_quark()),
                         int(GTorch.Error.FAILED)) from error

    @guards('the data set')
    def do_end(self, worker):
        self.fetchers.pop(worker, None)
        self.infos.pop(worker, None)


class _ProcessFetcher(_Fetcher):
    """Calls a data set of Python's in worker processes: one for each thread of the loader. They are started before the
    threads, as a fork has but the thread that forks, and remain until the loader is gone."""

    __module__ = HERE

    def start(self, loader):
        context = loader.multiprocessing_context or multiprocessing.get_context()
        seed = int(GTorch.empty((), dtype=GTorch.int64).random_(generator=loader.generator).item())
        self.processes, self.sent = [], [0] * loader.num_workers
        weakref.finalize(self, _end, self.processes)
        for number in range(loader.num_workers):
            others = [one.conn for one in self.processes]
            self.processes.append(workers.Process(context, loader._task(seed), number, others))

    def prepare(self, worker, _n_workers, seed):
        self.processes[worker].send(workers.BEGIN, 0, (None, (), (seed - worker) % 2**64, 0))

    @guards('the data set')
    def do_fetch(self, worker, indices, _n, cancellable):
        index = self.requests[indices[0]]
        self.requests[indices[0]] = None
        return self.asked(worker, index, (indices[0] - self.first) // len(self.processes), cancellable)

    @guards('the data set')
    def do_fetch_next(self, worker, n, _drop_last, cancellable):
        return self.asked(worker, [None] * n, None, cancellable)

    def asked(self, worker, index, place, cancellable):
        process = self.processes[worker]
        self.sent[worker] += 1
        try:
            process.send(workers.FETCH, self.sent[worker], (index, place))
            number = 0
            while number != self.sent[worker]:  # others are of batches that were given up
                while not workers.wait([process], workers.LOOK):
                    if cancellable is not None and cancellable.is_cancelled():
                        domain = GLib.quark_to_string(Gio.io_error_quark())
                        raise GLib.Error('the batch is not wanted any longer', domain, int(Gio.IOErrorEnum.CANCELLED))
                number, (kind, data, _state) = process.receive()
            if kind == workers.END:
                return None
            if kind == workers.ERROR:
                raise data.made()
            return to_sample(data)
        except BaseException as error:
            return self.caught(error, worker)

    @guards('the data set')
    def do_end(self, worker):
        pass


def _end(processes):
    for one in processes:
        one.end()
    until = time.monotonic() + workers.PATIENCE
    for one in processes:
        one.join(until)


def _calls_python(dataset):
    """Does a data set in C compute its samples by functions of the program's? Their exceptions keep their kinds where
    Python calls the data set."""
    transform = dataset.get_transform() if isinstance(dataset, GTorch.ImageFolder) else None
    return transform is not None and any(one._gt_is_python for one in transform.modules())


def core(loader, begin, raised, *, for_c, timeout, basis=None):
    """The loader in C for a loader of Python's, whose order begin () gives. The list @raised gets the exceptions of the
    order."""
    base = loader.dataset if isinstance(loader.dataset, GTorch.Dataset) else None
    task, is_iterable = loader._task(0), bool(loader._dataset_kind)
    is_plain = base is not None and workers.whole_batches(task) is not None and not _calls_python(base)
    # The order is Python's: the loader in C must not draw from the default generator.
    given = {'num_workers': loader.num_workers, 'in_order': loader.in_order, 'generator': GTorch.Generator()}
    if loader.num_workers > 0:
        given.update(prefetch_factor=loader.prefetch_factor, persistent_workers=loader.persistent_workers,
                     timeout=timeout)
    if for_c:
        given.update(pin_memory=loader.pin_memory, generator=loader.generator)
    requests = None if is_plain else []
    if is_iterable:
        given.update(batch_size=loader.batch_size or 0, drop_last=loader.drop_last)
    else:
        sampler = given['batch_sampler'] = _Sampler()
        index_sampler = loader._index_sampler
        sampler.begin, sampler.requests, sampler.raised, sampler.fetcher = begin, requests, raised, None
        sampler.basis, sampler.facts = basis, None
        sampler.measure = lambda: len(index_sampler)
    if not is_plain:
        has_processes = for_c and loader.num_workers > 0 and loader.worker == 'process'
        fetcher = given['fetcher'] = (_ProcessFetcher if has_processes else _Fetcher)(fixed_workers=True)
        fetcher.task, fetcher.requests = task, requests
        fetcher.fetchers, fetcher.failed, fetcher.infos, fetcher.seeds, fetcher.places = {}, {}, {}, {}, {}
        fetcher.for_c, fetcher.has_workers = for_c, loader.num_workers > 0
        if has_processes:
            fetcher.start(loader)
        if is_iterable:
            base = _NoEnd()
        else:
            base, sampler.fetcher = _Nothing(), fetcher
    return GTorch.DataLoader(dataset=base, **given)


END = object()


def wait(iterator, timeout, raised):
    """The next batch of an iterator in C, or END. It waits for short times, so that Python can handle
    signals, as those of the keyboard."""
    rounds = None if not timeout else max(1, round(timeout / workers.LOOK))
    while True:
        try:
            sample = restoring(iterator.next, None)
        except GLib.Error as error:
            if raised and error.message.startswith('sampler: '):
                raise raised.pop() from None
            if not error.matches(Gio.io_error_quark(), TIMED_OUT):
                raise
            rounds = None if rounds is None else rounds - 1
            if rounds == 0:
                raise RuntimeError(f'DataLoader: no batch has come within timeout, {timeout} seconds') from None
            continue
        return END if sample is None else from_sample(sample, list)
