#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Data sets, orders of samples and batches, compared with PyTorch, and what loaders have beside it."""

import gc
import json
import pathlib
import pickle
import random
import sys
import warnings
import weakref

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / 'style'))

import gtorch as torch  # noqa: E402
import gtorch.utils.data as data  # noqa: E402

import data_cases  # noqa: E402
import tap  # noqa: E402
from tap import raises  # noqa: E402

REFERENCE = json.loads((HERE / 'data.json').read_text('utf-8'))
PUBLIC = (
    'BatchSampler ChainDataset ConcatDataset DFIterDataPipe DataChunk DataLoader Dataset DistributedSampler '
    'IterDataPipe IterableDataset MapDataPipe RandomSampler Sampler SequentialSampler StackDataset Subset '
    'SubsetRandomSampler TensorDataset WeightedRandomSampler _DatasetKind argument_validation default_collate '
    'default_convert functional_datapipe get_worker_info guaranteed_datapipes_determinism non_deterministic '
    'random_split runtime_validation runtime_validation_disabled '
).split()
SQUARES, SEVERAL, COUNT, WITH_LENGTH = data_cases.sets(torch)
TEN = data.TensorDataset(torch.arange(10.0), torch.arange(10))


def different(found, wanted, where=''):
    """Where two structures differ first, or None."""
    if type(found) is not type(wanted):
        return where, found, wanted
    if isinstance(found, dict) and set(found) == set(wanted):
        places = [(key, found[key], wanted[key]) for key in found]
    elif isinstance(found, list) and len(found) == len(wanted):
        places = [(i, *both) for i, both in enumerate(zip(found, wanted))]
    else:
        return None if found == wanted else (where, found, wanted)
    return next(filter(None, (different(one, other, f'{where}/{key}') for key, one, other in places)), None)


def compare(name):
    found = json.loads(json.dumps(data_cases.run(torch, name)))
    difference = different(found, REFERENCE[name])
    assert difference is None, difference


for case_name in data_cases.CASES:
    tap.add(f'{case_name}_is_pytorchs', compare, case_name)


def labels(loader):
    return [y.tolist() for _, y in loader]


@tap.case
def every_name_of_pytorch_is_there():
    assert set(PUBLIC) <= set(dir(data)) and set(PUBLIC) == set(data.__all__), set(PUBLIC) ^ set(data.__all__)
    for name in PUBLIC:
        assert getattr(data, name).__module__ == 'gtorch.utils.data', name
    from gtorch.utils.data.dataloader import DataLoader, default_collate
    from gtorch.utils.data.dataset import Dataset, random_split
    from gtorch.utils.data.distributed import DistributedSampler
    from gtorch.utils.data.sampler import RandomSampler

    assert DataLoader is torch.utils.data.DataLoader and Dataset is data.Dataset and default_collate and random_split
    assert RandomSampler is data.RandomSampler and DistributedSampler is data.DistributedSampler
    assert data._utils.collate.default_collate is default_collate
    raises(AttributeError, lambda: data.nothing, 'nothing')


@tap.case
def classes_take_types_in_brackets():
    class Typed(data.Dataset[int]):
        def __getitem__(self, i):
            return i

        def __len__(self):
            return 3

    class Order(data.Sampler[int]):
        def __iter__(self):
            return iter([2, 0])

    loader: data.DataLoader[int] = data.DataLoader(Typed(), sampler=Order())
    assert [x.tolist() for x in loader] == [[2], [0]]
    raises(TypeError, lambda: len(loader))  # the order has no length


@tap.case
def an_order_is_the_same_after_the_same_seed():
    def orders(**options):
        torch.manual_seed(3)
        loader = data.DataLoader(TEN, batch_size=3, **options)
        return [labels(loader) for _ in range(3)]

    first = orders(shuffle=True)
    assert first == orders(shuffle=True) and first[0] != first[1]
    assert all(sorted(sum(one, [])) == list(range(10)) for one in first)
    own = torch.Generator().manual_seed(5)
    loader = data.DataLoader(SQUARES(10), 3, shuffle=True, generator=own)
    found = labels(loader)
    own.manual_seed(5)
    assert labels(loader) == found != labels(loader)


@tap.case
def tensors_have_the_order_of_other_sets():
    torch.manual_seed(7)
    found = labels(data.DataLoader(TEN, batch_size=4, shuffle=True))
    torch.manual_seed(7)
    assert found == labels(data.DataLoader(SQUARES(10), batch_size=4, shuffle=True))


@tap.case
def batches_of_tensors_are_copies():
    x = torch.zeros(4, 2)
    for shuffle in (False, True):
        for (batch,) in data.DataLoader(data.TensorDataset(x), batch_size=2, shuffle=shuffle):
            batch.add_(1)
    assert x.tolist() == [[0.0, 0.0]] * 4
    grown = torch.ones(4, requires_grad=True)
    (batch,) = next(iter(data.DataLoader(data.TensorDataset(grown), batch_size=4)))
    batch.sum().backward()
    assert grown.grad.tolist() == [1.0] * 4


@tap.case
def a_derived_set_of_tensors_has_its_own_samples():
    class Doubled(data.TensorDataset):
        def __getitem__(self, i):
            return super().__getitem__(i)[0] * 2

    assert [x.tolist() for x in data.DataLoader(Doubled(torch.arange(3)), 2)] == [[0, 2], [4]]


@tap.case
def a_function_for_tensors_is_used_for_sets_of_tensors():
    kinds = data._utils.collate.default_collate_fn_map
    before = kinds[torch.Tensor]
    kinds[torch.Tensor] = lambda batch, *, collate_fn_map: torch.stack(batch) + 100
    try:
        assert labels(data.DataLoader(TEN, 10)) == [list(range(100, 110))]
    finally:
        kinds[torch.Tensor] = before
    assert labels(data.DataLoader(TEN, 10)) == [list(range(10))]


@tap.case
def an_iteration_may_be_left_and_begun_again():
    loader = data.DataLoader(SQUARES(6), batch_size=2)
    for _ in loader:
        break
    pairs = [(a[1].tolist(), b[1].tolist()) for a in loader for b in loader]
    assert len(pairs) == 9 and pairs[0] == ([0, 1], [0, 1]) and pairs[-1] == ([4, 5], [4, 5])
    one, other = iter(loader), iter(loader)
    assert next(one)[1].tolist() == next(other)[1].tolist() == [0, 1]
    assert len(one) == 3
    raises(NotImplementedError, lambda: pickle.dumps(one), 'state_dict')


@tap.case
def nothing_is_kept_of_an_iteration():
    dataset = SQUARES(6)
    loader = data.DataLoader(dataset, batch_size=2)
    for _ in loader:
        pass
    seen = weakref.ref(dataset), weakref.ref(loader)
    del dataset, loader
    assert seen[0]() is None and seen[1]() is None
    del _
    gc.collect()


@tap.case
def errors_name_values_and_rules():
    loader = data.DataLoader
    raises(ValueError, lambda: loader(TEN, num_workers=-3), 'num_workers is -3')
    raises(ValueError, lambda: loader(TEN, batch_size=0), 'batch_size must be a positive integer, not 0')
    raises(ValueError, lambda: loader(COUNT(3), shuffle=True), 'shuffle is True')
    raises(ValueError, lambda: loader(TEN, num_workers=1, multiprocessing_context='fast'), "'fork'", "'fast'")
    raises(AssertionError, lambda: data.TensorDataset(torch.ones(2), torch.ones(3)), '[2, 3] rows')
    raises(TypeError, lambda: data.TensorDataset([1]), 'argument 0 is list')
    raises(ValueError, lambda: data.TensorDataset(torch.tensor(1)), 'tensor 0 has no dimensions')
    raises(IndexError, lambda: data.ConcatDataset([[1], [2]])[2], 'index 2 is out of range for 2')
    raises(RuntimeError, lambda: data.DistributedSampler([1]), 'num_replicas and rank')
    raises(RuntimeError, lambda: data.default_collate([[1], [1, 2]]), '[1, 2] elements')
    raises(TypeError, lambda: data.default_collate([None]), 'NoneType')


@tap.case
def a_subset_with_samples_of_its_own_needs_batches_of_its_own():
    class Wrong(data.Subset):
        def __getitem__(self, i):
            return -super().__getitem__(i)

    class Right(Wrong):
        def __getitems__(self, indices):
            return [self[i] for i in indices]

    raises(NotImplementedError, lambda: Wrong(range(3), [0]), 'Wrong', '__getitems__')
    assert [x.tolist() for x in data.DataLoader(Right([1, 2, 3], [2, 0]), 2)] == [[-3, -1]]


@tap.case
def an_epoch_changes_the_order_of_processes():
    made = [data.DistributedSampler(range(11), 2, rank, seed=4) for rank in range(2)]
    first = [list(one) for one in made]
    assert sorted(set(first[0] + first[1])) == list(range(11)) and len(first[0]) == len(first[1]) == 6
    assert first == [list(one) for one in made]
    for one in made:
        one.set_epoch(1)
    assert first != [list(one) for one in made]


@tap.case
def too_many_batches_of_an_iterable_set_are_told():
    class Lying(COUNT):
        def __len__(self):
            return 2

    loader = data.DataLoader(Lying(4), batch_size=1)
    assert len(loader) == 2
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter('always')
        assert len(list(loader)) == 4
    assert 'is 2, and 3 batches came' in str(found[0].message), found


# --- states ---


class Draws(data.Sampler):
    """An order that Python's generator draws."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(random.sample(range(self.n), self.n))

    def __len__(self):
        return self.n


ORDERED = {
    'sequential': {},
    'shuffled': {'shuffle': True},
    'replaced': {'sampler': data.RandomSampler(TEN, True, 40)},
    'weighted': {'sampler': data.WeightedRandomSampler([1.0] * 10, 10, False)},
    'of_a_subset': {'sampler': data.SubsetRandomSampler(range(10))},
    'distributed': {'sampler': data.DistributedSampler(range(10), 1, 0)},
    'own': {'sampler': Draws(10)},
}


def resumed(options, dataset, workers):
    torch.manual_seed(11)
    make = {'batch_size': 3, 'num_workers': workers, **options}
    loader, rests = data.DataLoader(dataset, **make), []
    iterator = iter(loader)
    first = next(iterator)[1].tolist()
    second = next(iterator)[1].tolist()
    state = loader.state_dict()
    rest = [y.tolist() for _, y in iterator]
    for _ in range(2):
        torch.manual_seed(99)
        random.seed(99)
        before = torch.get_rng_state().tolist()
        other = data.DataLoader(dataset, **make)
        other.load_state_dict(pickle.loads(pickle.dumps(state)))
        assert other.state_dict()['position'] == 2
        rests.append([y.tolist() for _, y in other])
        assert torch.get_rng_state().tolist() == before
        assert len(labels(other)) == len(rest) + 2  # the next epoch is whole
    assert rests == [rest, rest], (first, second, rest, rests)
    assert rest and rest[0] not in (first, second)


for order_name, order_options in ORDERED.items():
    for order_set in (TEN, SQUARES(20)):
        tap.add(f'a_{order_name}_order_goes_on_{type(order_set).__name__}', resumed, order_options, order_set, 0)


@tap.case
def a_state_can_be_saved_by_torch_save():
    import io

    loader = data.DataLoader(TEN, batch_size=3, sampler=Draws(10))
    iterator = iter(loader)
    next(iterator)
    file = io.BytesIO()
    torch.save(loader.state_dict(), file)
    rest = [y.tolist() for _, y in iterator]
    file.seek(0)
    other = data.DataLoader(TEN, batch_size=3, sampler=Draws(10))
    other.load_state_dict(torch.load(file))
    assert labels(other) == rest


@tap.case
def states_of_no_epoch_and_of_its_end_begin_the_next():
    loader = data.DataLoader(TEN, batch_size=5)
    new = loader.state_dict()
    assert labels(loader) == [list(range(5)), list(range(5, 10))]
    end = loader.state_dict()
    for state in (new, end):
        other = data.DataLoader(TEN, batch_size=5)
        other.load_state_dict(state)
        assert labels(other) == [list(range(5)), list(range(5, 10))]
    raises(ValueError, lambda: loader.load_state_dict({'a': 1}), 'state_dict()')


@tap.case
def an_iterable_set_goes_on():
    loader = data.DataLoader(COUNT(9), batch_size=2)
    iterator = iter(loader)
    next(iterator), next(iterator)
    state = loader.state_dict()
    other = data.DataLoader(COUNT(9), batch_size=2)
    other.load_state_dict(state)
    assert [x.tolist() for x in other] == [x.tolist() for x in iterator] == [[4, 5], [6, 7], [8]]


class Reader(data.IterableDataset):
    """A set that tells where it is, and does not read again what it has read."""

    def __init__(self, n):
        self.n, self.place, self.read = n, 0, 0

    def __iter__(self):
        while self.place < self.n:
            self.place += 1
            self.read += 1
            yield self.place
        self.place = 0

    def state_dict(self):
        return {'place': self.place}

    def load_state_dict(self, state):
        self.place = state['place']


@tap.case
def a_set_with_a_state_is_not_read_again():
    loader = data.DataLoader(Reader(7), batch_size=2)
    iterator = iter(loader)
    next(iterator), next(iterator)
    other = data.DataLoader(Reader(7), batch_size=2)
    other.load_state_dict(loader.state_dict())
    assert [x.tolist() for x in other] == [[5, 6], [7]] and other.dataset.read == 3


# --- pipes ---


@tap.case
def pipes_have_methods_that_programs_add():
    @data.functional_datapipe('doubled_here')
    class Doubled(data.IterDataPipe):
        def __init__(self, source):
            self.source = source

        def __iter__(self):
            return (2 * x for x in self.source)

    class Source(data.IterDataPipe):
        def __iter__(self):
            return iter([1, 2])

    assert list(Source().doubled_here()) == [2, 4]
    assert [x.tolist() for x in data.DataLoader(Source().doubled_here(), 2)] == [[2, 4]]
    raises(AttributeError, lambda: Source().tripled, 'tripled')
    chunk = data.DataChunk([1, 2])
    assert list(chunk) == [1, 2] and chunk.as_str('  ') == '  [1, 2]' and list(chunk.raw_iterator()) == [1, 2]


if __name__ == '__main__':
    tap.main()
