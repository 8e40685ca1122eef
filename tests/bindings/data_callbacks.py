# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The callbacks of data sets, loaders, metrics and logs for test_callbacks.py: each way wraps a given function in a
callback of the kind, and makes a call that runs it."""

from gi.repository import GLib, GTorch

WAYS = {}
SAMPLE = GTorch.Sample
PAIR = SAMPLE.new_tuple([SAMPLE.new_tensor(GTorch.ones(2)), SAMPLE.new_int(3)])


class Numbers(GTorch.Dataset):
    def __init__(self, func=int, where='get_item'):
        super().__init__()
        self.funcs = {where: func}

    def get_length(self):
        self.funcs.get('get_length', int)()
        return 3

    def get_item(self, index, cancellable):
        self.funcs.get('get_item', int)()
        return SAMPLE.new_int(index)


class Whole(Numbers):
    def get_batch(self, indices, cancellable):
        self.funcs['get_batch']()
        return SAMPLE.collate([SAMPLE.new_int(i) for i in indices])


class Source(GTorch.SampleSource):
    def __init__(self, func):
        super().__init__()
        self.func, self.n = func, 3

    def next(self, cancellable):
        self.func()
        self.n -= 1
        return SAMPLE.new_int(self.n) if self.n >= 0 else None


class Stream(GTorch.IterableDataset):
    def __init__(self, func=int, next_func=int):
        super().__init__()
        self.funcs = func, next_func

    def iterate(self, worker, n_workers):
        self.funcs[0]()
        return Source(self.funcs[1])


class Indices(GTorch.IndexSource):
    def __init__(self, func):
        super().__init__()
        self.func, self.n = func, 2

    def next(self, n):
        self.func()
        self.n -= 1
        return GTorch.Size.new([self.n]) if self.n >= 0 else None

    def get_state(self):
        return GLib.Variant('i', 3)


class Order(GTorch.Sampler):
    def __init__(self, func=int, where='next'):
        super().__init__()
        self.funcs = {where: func}

    def get_length(self):
        self.funcs.get('get_length', int)()
        return 2

    def iterate(self, epoch):
        self.funcs.get('iterate', int)()
        return Indices(self.funcs.get('next', int))

    def set_state(self, state):
        self.funcs.get('set_state', int)()


class Fetching(GTorch.Fetcher):
    def __init__(self, func, where, **properties):
        super().__init__(**properties)
        self.funcs, self.n = {where: func}, 2

    def begin(self, worker, n_workers, seed, cancellable):
        self.funcs.get('begin', int)()

    def fetch(self, worker, indices, cancellable):
        self.funcs.get('fetch', int)()
        return SAMPLE.new_int(indices[0])

    def fetch_next(self, worker, n, drop_last, cancellable):
        self.funcs.get('fetch_next', int)()
        self.n -= 1
        return SAMPLE.new_int(self.n) if self.n >= 0 else None


def loaded(dataset, **options):
    return list(GTorch.DataLoader(dataset=dataset, batch_size=2, **options))


def ordered(func):
    list(GTorch.DataLoader(dataset=Numbers(), batch_sampler=GTorch.BatchSampler.new(Order(func), 2, False)))


def way(*names):
    def add(function):
        for name in names:
            WAYS.setdefault(name, []).append(function)
        return function

    return add


def tried(name, make):
    """The ways to a virtual function: @make makes the call for a function."""
    make.__name__ = make.__qualname__ = f'{name.replace(".", "_")}_of_a_class'
    way(name)(make)


tried('Dataset.get_length', lambda func: len(Numbers(func, 'get_length')))
tried('Dataset.get_length', lambda func: loaded(Numbers(func, 'get_length'), shuffle=True))
tried('Dataset.get_item', lambda func: loaded(Numbers(func)))
tried('Dataset.get_item', lambda func: Numbers(func)[-1])
tried('Dataset.get_item', lambda func: loaded(GTorch.Subset.new(Numbers(func), [1, 0])))
tried('Dataset.get_batch', lambda func: loaded(Whole(func, 'get_batch')))
tried('Dataset.get_batch', lambda func: GTorch.Dataset.get_batch(Whole(func, 'get_batch'), [1], None))
tried('IterableDataset.iterate', lambda func: loaded(Stream(func)))
tried('IterableDataset.iterate', lambda func: list(Stream(func)))


class Placed(Stream):
    """An iterable data set with states."""

    def __init__(self, get=lambda: None, set_=lambda: None):
        super().__init__()
        self.get, self.set_ = get, set_

    def get_state(self):
        self.get()
        return GLib.Variant('i', 1)

    def set_state(self, state):
        self.set_()
        return True


def stated(dataset):
    loader = GTorch.DataLoader.new(dataset, 1, False)
    loader.iterate().next(None)
    return loader.get_state()


tried('IterableDataset.get_state', lambda func: stated(Placed(func)))
tried('IterableDataset.get_state', lambda func: GTorch.IterableDataset.get_state(Placed(func)))
tried('IterableDataset.set_state', lambda func: GTorch.IterableDataset.set_state(
    Placed(set_=func), GLib.Variant('i', 1)))
tried('SampleSource.next', lambda func: loaded(Stream(next_func=func)))
tried('SampleSource.next', lambda func: list(GTorch.ChainDataset.new([Stream(next_func=func)])))
tried('Sampler.get_length', lambda func: len(GTorch.DataLoader(dataset=Numbers(), sampler=Order(func, 'get_length'))))
tried('Sampler.iterate', lambda func: loaded(Numbers(), sampler=Order(func, 'iterate')))
tried('IndexSource.next', lambda func: loaded(Numbers(), sampler=Order(func)))
tried('IndexSource.next', lambda func: ordered(func))
tried('Fetcher.begin', lambda func: loaded(Numbers(), fetcher=Fetching(func, 'begin')))
tried('Fetcher.fetch', lambda func: loaded(Numbers(), fetcher=Fetching(func, 'fetch')))
tried('Fetcher.fetch_next', lambda func: loaded(Stream(), fetcher=Fetching(func, 'fetch_next')))


@way('Sampler.set_state')
def state_of_a_loader(func):
    loader = GTorch.DataLoader(dataset=Numbers(), sampler=Order())
    iterator = loader.iterate()
    iterator.next(None)
    other = GTorch.DataLoader(dataset=Numbers(), sampler=Order(func, 'set_state'))
    other.set_state(loader.get_state())
    list(other)


@way('CollateFunc')
def collate_of_a_loader(func):
    loader = GTorch.DataLoader.new(Numbers(), 2, False)
    loader.set_collate(lambda samples: func() or samples[0])
    list(loader)


@way('CollateFunc')
def collate_of_a_fetcher(func):
    fetcher = GTorch.Fetcher.new(Numbers(), True)
    fetcher.set_collate(lambda samples: func() or samples[0])
    loaded(Numbers(), fetcher=fetcher)


@way('SampleMapFunc')
def map_tensors(func):
    PAIR.map_tensors(lambda tensor: func() or tensor)


@way('SampleAllocFunc')
def collate_with(func):
    SAMPLE.collate_with([PAIR, PAIR], lambda dtype, shape: func() or GTorch.empty(list(shape), dtype=dtype))


class Largest(GTorch.Metric):
    def __init__(self, func, where):
        super().__init__()
        self.funcs = {where: func}

    def update(self, output, target):
        self.funcs.get('update', int)()

    def do_compute(self):
        self.funcs.get('compute', int)()
        return GTorch.tensor(1.0)

    def do_reset(self):
        self.funcs.get('reset', int)()


class Lines(GTorch.Log):
    def __init__(self, func, where):
        super().__init__()
        self.funcs = {where: func}

    def do_write(self, step, names, values):
        self.funcs.get('write', int)()

    def do_flush(self):
        self.funcs.get('flush', int)()

    def do_close(self):
        self.funcs.get('close', int)()


tried('Metric.update', lambda func: GTorch.Metric.update(Largest(func, 'update'), GTorch.ones(1), None))
tried('Metric.compute', lambda func: Largest(func, 'compute').compute())
tried('Metric.compute', lambda func: Largest(func, 'compute').compute_value())
tried('Metric.reset', lambda func: Largest(func, 'reset').reset())
tried('Log.write', lambda func: Lines(func, 'write').write(1, ['a'], [2.0]))
tried('Log.flush', lambda func: Lines(func, 'flush').flush())
tried('Log.close', lambda func: Lines(func, 'close').close())
