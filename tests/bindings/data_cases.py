# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Loaders of data sets, in the same way with PyTorch and with GTorch: data_reference.py writes what PyTorch gives, and
test_data.py compares. Where the order is random, the sorted values are compared."""

import builtins
import collections
import warnings

import numpy

Point = collections.namedtuple('Point', 'x y')
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def plain(torch, value):
    """A structure in JSON's terms, with the kinds of everything."""
    if isinstance(value, torch.Tensor):
        values = value.tolist()
        return ['tensor', str(value.dtype), list(value.shape), str(values) if value.is_complex() else values]
    if isinstance(value, numpy.ndarray):
        return ['array', str(value.dtype), value.tolist()]
    if isinstance(value, tuple):
        return [type(value).__name__, *(plain(torch, one) for one in value)]
    if isinstance(value, dict):
        return [type(value).__name__, *([str(key), plain(torch, one)] for key, one in value.items())]
    if isinstance(value, (list, collections.UserList)):
        return [type(value).__name__, *(plain(torch, one) for one in value)]
    if isinstance(value, bytes):
        return ['bytes', list(value)]
    return [type(value).__name__, repr(value)]


def batches(torch, loader):
    return [plain(torch, batch) for batch in loader]


def caught(call):
    """The name of the kind of the exception that a call raises, or of the kind of Python's that it is of."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            call()
    except Exception as error:
        names = [kind.__name__ for kind in type(error).__mro__]
        return next(name for name in names if hasattr(builtins, name))
    return None


def sets(torch):
    """The classes of a program's, for a package."""
    data = torch.utils.data

    class Squares(data.Dataset):
        def __init__(self, n):
            self.n = n

        def __len__(self):
            return self.n

        def __getitem__(self, i):
            if not 0 <= i < self.n:
                raise IndexError(i)
            return torch.full((2,), float(i * i)), i

    class Several(Squares):
        def __getitems__(self, indices):
            return [(torch.tensor([-i]), 'several') for i in indices]

    class Count(data.IterableDataset):
        def __init__(self, n):
            self.n = n

        def __iter__(self):
            info = data.get_worker_info()
            first, step = (0, 1) if info is None else (info.id, info.num_workers)
            return iter(range(first, self.n, step))

    class CountWithLength(Count):
        def __len__(self):
            return self.n

    return Squares, Several, Count, CountWithLength


STRUCTURES = {
    'floats': lambda torch: [1.5, 2.0],
    'ints': lambda torch: [1, 2],
    'bools': lambda torch: [True, False],
    'complex': lambda torch: [torch.tensor(1j), torch.tensor(2.0 + 0j)],
    'texts': lambda torch: ['a', 'b'],
    'bytes': lambda torch: [b'a', b'b'],
    'tuples': lambda torch: [(1, 2.0, 'a'), (3, 4.0, 'b')],
    'lists': lambda torch: [[1, [2.0]], [3, [4.0]]],
    'dicts': lambda torch: [{'a': 1, 'b': {'c': 2.0}}, {'a': 3, 'b': {'c': 4.0}}],
    'ordered_dicts': lambda torch: [collections.OrderedDict(b=1, a=2), collections.OrderedDict(b=3, a=4)],
    'named_tuples': lambda torch: [Point(1, (2.0, 'a')), Point(3, (4.0, 'b'))],
    'user_lists': lambda torch: [collections.UserList([1, 2]), collections.UserList([3, 4])],
    'tensors': lambda torch: [torch.ones(2, 3), torch.zeros(2, 3)],
    'scalars': lambda torch: [torch.tensor(1), torch.tensor(2)],
    'halves': lambda torch: [torch.ones(2, dtype=torch.float16), torch.zeros(2, dtype=torch.float16)],
    'arrays': lambda torch: [numpy.ones((2, 2), 'float32'), numpy.zeros((2, 2), 'float32')],
    'array_ints': lambda torch: [numpy.arange(3, dtype='int16'), numpy.arange(3, dtype='int16')],
    'array_scalars': lambda torch: [numpy.array(1), numpy.array(2)],
    'numpy_floats': lambda torch: [numpy.float32(1.5), numpy.float32(2.5)],
    'numpy_doubles': lambda torch: [numpy.float64(1.5), numpy.float64(2.5)],
    'numpy_ints': lambda torch: [numpy.int16(1), numpy.int16(2)],
    'numpy_bools': lambda torch: [numpy.bool_(True), numpy.bool_(False)],
    'ranges': lambda torch: [range(2), range(2, 4)],
    'mixed': lambda torch: [{'image': torch.ones(2), 'label': 3, 'name': 'x', 'box': (1, 2)}] * 2,
    'one': lambda torch: [(1, torch.ones(1))],
}


@case
def collated(torch):
    return {name: plain(torch, torch.utils.data.default_collate(make(torch))) for name, make in STRUCTURES.items()}


@case
def converted(torch):
    return {name: plain(torch, torch.utils.data.default_convert(make(torch)))
            for name, make in STRUCTURES.items() if name != 'ranges'}


@case
def refused_batches(torch):
    collate = torch.utils.data.default_collate
    return [
        caught(lambda: collate([None, None])),
        caught(lambda: collate([object(), object()])),
        caught(lambda: collate([[1], [1, 2]])),
        caught(lambda: collate([{'a': 1}, {'b': 1}])),
        caught(lambda: collate([torch.ones(1), torch.ones(2)])),
        caught(lambda: collate([numpy.array(['a']), numpy.array(['b'])])),
        caught(lambda: collate([])),
    ]


@case
def own_functions_for_kinds(torch):
    utils = torch.utils.data._utils.collate
    found = utils.collate([1, 2], collate_fn_map={int: lambda batch, *, collate_fn_map: sum(batch)})
    counting = {(int, str): lambda batch, *, collate_fn_map: len(batch)}
    nested = utils.collate([('a', 1), ('b', 2)], collate_fn_map=counting)
    return [plain(torch, found), plain(torch, nested)]


@case
def tensors(torch):
    data = torch.utils.data
    found = data.TensorDataset(torch.arange(10.0).view(5, 2), torch.arange(5))
    rows = [plain(torch, found[1]), plain(torch, found[-1]), plain(torch, found[1:3]), len(found)]
    rows.append(batches(torch, data.DataLoader(found, 2, sampler=[-1, 0, -5, 4])))
    rows.append(batches(torch, data.DataLoader(found, 2, sampler=torch.tensor([3, 1]))))
    rows.append(caught(lambda: list(data.DataLoader(found, 2, sampler=[5, 0]))))
    return rows + [batches(torch, data.DataLoader(found, batch_size=n, drop_last=d)) for n in (1, 2, 5, 7)
                   for d in (False, True)]


@case
def classes_of_a_programs(torch):
    data = torch.utils.data
    squares, several, _count, _with_length = sets(torch)
    found = {}
    for workers in (0, 2):
        options = {'num_workers': workers}
        found[f'squares {workers}'] = batches(torch, data.DataLoader(squares(7), batch_size=3, **options))
        found[f'drop_last {workers}'] = batches(torch, data.DataLoader(squares(7), 3, drop_last=True, **options))
        found[f'several {workers}'] = batches(torch, data.DataLoader(several(5), batch_size=2, **options))
        found[f'without batches {workers}'] = batches(torch, data.DataLoader(squares(3), batch_size=None, **options))
        found[f'list {workers}'] = batches(torch, data.DataLoader([1, 2, 3], batch_size=2, **options))
        found[f'own order {workers}'] = batches(torch, data.DataLoader(squares(5), 2, sampler=[4, 0, 2], **options))
        found[f'own batches {workers}'] = batches(
            torch, data.DataLoader(squares(9), batch_sampler=[[1], [2, 3], [8, 0, 4]], **options))
        found[f'own collate {workers}'] = batches(
            torch, data.DataLoader(squares(5), 2, collate_fn=lambda batch: [i for _, i in batch], **options))
        found[f'keys {workers}'] = batches(torch, data.DataLoader({'a': 1, 'b': 2}, sampler=['b', 'a'], **options))
    return found


@case
def iterable(torch):
    data = torch.utils.data
    *_, count, with_length = sets(torch)
    found = {}
    for workers in (0, 2, 3):
        options = {'num_workers': workers}
        found[f'all {workers}'] = batches(torch, data.DataLoader(count(11), batch_size=2, **options))
        found[f'drop_last {workers}'] = batches(torch, data.DataLoader(count(11), 2, drop_last=True, **options))
        found[f'without batches {workers}'] = batches(torch, data.DataLoader(count(5), batch_size=None, **options))
        found[f'few {workers}'] = batches(torch, data.DataLoader(count(1), batch_size=2, **options))
        found[f'none {workers}'] = batches(torch, data.DataLoader(count(0), batch_size=2, **options))
    chain = data.ChainDataset([with_length(3), with_length(2)])
    found['chain'] = [batches(torch, data.DataLoader(chain, 2)), len(chain), type(with_length(1) + count(1)).__name__]
    settings = [(n, d) for n in (2, 7, None) for d in (False, True) if n or not d]
    found['lengths'] = [len(data.DataLoader(with_length(7), n, drop_last=d)) for n, d in settings]
    return found


@case
def combined(torch):
    data = torch.utils.data
    squares, several, *_ = sets(torch)
    joined = squares(3) + squares(2)
    found = {'sum': [type(joined).__name__, len(joined), joined.cumulative_sizes,
                     [plain(torch, joined[i]) for i in (0, 2, 3, 4, -1, -5)]],
             'sum refused': [caught(lambda: joined[-6]), caught(lambda: joined[5])]}
    part = data.Subset(squares(6), [5, 1, 3])
    found['subset'] = [len(part), [plain(torch, part[i]) for i in range(3)], batches(torch, data.DataLoader(part, 2))]
    found['subset of several'] = batches(torch, data.DataLoader(data.Subset(several(6), [5, 1, 3]), 2))
    stack, named = data.StackDataset(squares(3), [7, 8, 9]), data.StackDataset(a=squares(3), b=[7, 8, 9])
    found['stack'] = [len(stack), plain(torch, stack[1]), batches(torch, data.DataLoader(stack, 2))]
    found['named stack'] = [plain(torch, named[2]), batches(torch, data.DataLoader(named, 2)),
                            plain(torch, named.__getitems__([2, 0]))]
    return found


@case
def parts(torch):
    data = torch.utils.data
    found = []
    for lengths in ([3, 7], [0.5, 0.5], [0.3, 0.3, 0.4], [1 / 3, 1 / 3, 1 / 3], [10]):
        split = data.random_split(range(10), lengths, generator=torch.Generator().manual_seed(1))
        found.append([len(one) for one in split] + [sorted(i for one in split for i in one.indices)])
    wrong = ([3, 3], [0.5, 0.6], [1.5, -0.5])
    found.append([caught(lambda: data.random_split(range(10), lengths)) for lengths in wrong])
    return found


@case
def orders(torch):
    data = torch.utils.data
    found = {
        'sequential': list(data.SequentialSampler(range(4))),
        'random': [sorted(data.RandomSampler(range(5))), len(data.RandomSampler(range(5)))],
        'random more': [len(list(data.RandomSampler(range(5), num_samples=n))) for n in (3, 5, 12)],
        'random twice': sorted(data.RandomSampler(range(4), num_samples=8)),
        'replacement': [len(list(data.RandomSampler(range(5), True, n))) for n in (3, 64, 70)],
        'subset': sorted(data.SubsetRandomSampler([7, 3, 5])),
        'weighted': list(data.WeightedRandomSampler([0, 0, 1.0], 3)),
        'weighted once': sorted(data.WeightedRandomSampler([1, 1, 1], 3, False)),
        'batches': [list(data.BatchSampler(range(7), 3, d)) for d in (False, True)],
        'batch lengths': [len(data.BatchSampler(range(7), 3, d)) for d in (False, True)],
    }
    for n in (7, 8, 2):
        for drop_last in (False, True):
            made = [data.DistributedSampler(range(n), 3, rank, False, 0, drop_last) for rank in range(3)]
            found[f'distributed {n} {drop_last}'] = [[list(one), len(one), one.total_size] for one in made]
    return found


@case
def refused(torch):
    data = torch.utils.data
    squares, _several, count, _with_length = sets(torch)
    loader = data.DataLoader
    made = loader(squares(3))

    def attribute(name, value):
        return caught(lambda: setattr(made, name, value))

    return [
        caught(lambda: loader(squares(3), num_workers=-1)),
        caught(lambda: loader(squares(3), timeout=-1)),
        caught(lambda: loader(squares(3), prefetch_factor=2)),
        caught(lambda: loader(squares(3), num_workers=1, prefetch_factor=-2)),
        caught(lambda: loader(squares(3), persistent_workers=True)),
        caught(lambda: loader(squares(3), multiprocessing_context='fork')),
        caught(lambda: loader(squares(3), num_workers=1, multiprocessing_context='fast')),
        caught(lambda: loader(squares(3), num_workers=1, multiprocessing_context=3)),
        caught(lambda: loader(squares(3), shuffle=True, sampler=[1])),
        caught(lambda: loader(squares(3), batch_size=2, batch_sampler=[[1]])),
        caught(lambda: loader(squares(3), drop_last=True, batch_sampler=[[1]])),
        caught(lambda: loader(squares(3), batch_size=None, drop_last=True)),
        caught(lambda: loader(squares(3), batch_size=0)),
        caught(lambda: loader(squares(3), batch_size=-1)),
        caught(lambda: loader(squares(3), batch_size=1.5)),
        caught(lambda: loader(squares(0), shuffle=True)),
        caught(lambda: loader(count(3), shuffle=True)),
        caught(lambda: loader(count(3), shuffle=False)),
        caught(lambda: loader(count(3), sampler=[1])),
        caught(lambda: loader(count(3), batch_sampler=[[1]])),
        caught(lambda: len(loader(count(3)))),
        caught(lambda: list(loader(squares(3), timeout=1))),
        attribute('batch_size', 3), attribute('dataset', []), attribute('sampler', []), attribute('batch_sampler', []),
        attribute('drop_last', True), attribute('persistent_workers', True),
        caught(lambda: data.TensorDataset(torch.ones(2), torch.ones(3))),
        caught(lambda: data.ConcatDataset([])), caught(lambda: data.ConcatDataset([count(3)])),
        caught(lambda: list(data.ChainDataset([squares(3)]))),
        caught(lambda: data.StackDataset()), caught(lambda: data.StackDataset([1], [1, 2])),
        caught(lambda: data.StackDataset([1], a=[1])), caught(lambda: data.Dataset()[0]),
        caught(lambda: data.RandomSampler([])), caught(lambda: data.RandomSampler([1], num_samples=0)),
        caught(lambda: data.RandomSampler([1], replacement=1)), caught(lambda: data.BatchSampler([1], 0, False)),
        caught(lambda: data.BatchSampler([1], True, False)), caught(lambda: data.BatchSampler([1], 1, 1)),
        caught(lambda: data.WeightedRandomSampler([1], 0)), caught(lambda: data.WeightedRandomSampler([[1]], 1)),
        caught(lambda: data.WeightedRandomSampler([1], 1, 1)), caught(lambda: data.DistributedSampler([1], 2, 2)),
        caught(lambda: data.DistributedSampler([1], 2, -1)), caught(lambda: iter(data.Sampler())),
        caught(lambda: iter(data.IterableDataset())),
    ]


@case
def errors_of_the_data_set(torch):
    data = torch.utils.data
    squares, *_ = sets(torch)

    class Bad(squares):
        def __getitem__(self, i):
            if i == 2:
                raise KeyError('two')
            if i == 5:
                raise ValueError('five')
            return i

    def run(**options):
        found, iterator = [], iter(data.DataLoader(Bad(8), batch_size=2, **options))
        while True:
            try:
                found.append(plain(torch, next(iterator)))
            except StopIteration:
                return found
            except Exception as error:
                found.append([type(error).__name__, 'two' in str(error) or 'five' in str(error)])

    return [run(), run(num_workers=2), run(num_workers=1)]


@case
def seeds(torch):
    data = torch.utils.data

    class Info(data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            info = data.get_worker_info()
            return info.id, info.num_workers, info.seed - info.id, float(numpy.random.rand()) >= 0

    rows = list(data.DataLoader(Info(), batch_size=None, num_workers=2))
    return [[row[:2] for row in rows], len({row[2] for row in rows}), data.get_worker_info() is None]


def run(torch, name):
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        return CASES[name](torch)
