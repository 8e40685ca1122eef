# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Orders of samples as PyTorch's classes: GTorch.utils.data.Sampler and those that the library has.

Random orders are drawn by GTorch's generators: torch.manual_seed() makes them the same again, but they are not those
that PyTorch draws for the seed."""

import itertools
import math
import sys
from typing import Generic, TypeVar

from gi.repository import GTorch

Index = TypeVar('Index', covariant=True)
PIECE = 32  # that many numbers are drawn at a time


class Sampler(Generic[Index]):
    """An order of samples: a class of a program's has __iter__(), which gives indices or lists of such, and may have
    __len__()."""

    def __iter__(self):
        raise NotImplementedError(f'{type(self).__name__}: a sampler needs an __iter__(), which gives indices')


class SequentialSampler(Sampler[int]):
    """The samples in their order."""

    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


def _is_count(value):
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _fresh(generator):
    """The generator of an epoch: one of its own if none is given, so that the others go on as before."""
    if generator is not None:
        return generator
    made = GTorch.Generator()
    made.manual_seed(int(GTorch.empty((), dtype=GTorch.int64).random_().item()))
    return made


class RandomSampler(Sampler[int]):
    """The samples in a random order; with @replacement, each drawn from all."""

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        self.data_source, self.replacement = data_source, replacement
        self._num_samples, self.generator = num_samples, generator
        if not isinstance(replacement, bool):
            raise TypeError(f'RandomSampler(): replacement must be True or False, not {replacement!r}')
        if not _is_count(self.num_samples):
            raise ValueError(f'RandomSampler(): num_samples must be a positive integer, not {self.num_samples!r}')

    @property
    def num_samples(self):
        """How many are drawn: by default as many as there are."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self):
        n, count, generator = len(self.data_source), self.num_samples, _fresh(self.generator)
        if self.replacement:
            for start in range(0, count, PIECE):
                size = min(PIECE, count - start)
                yield from GTorch.randint(0, n, (size,), dtype=GTorch.int64, generator=generator).tolist()
            return
        for start in range(0, count, n):
            yield from GTorch.randperm(n, generator=generator)[: count - start].tolist()

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in a random order."""

    def __init__(self, indices, generator=None):
        self.indices, self.generator = indices, generator

    def __iter__(self):
        for i in GTorch.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self):
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices that are drawn with probabilities in the ratio of @weights."""

    def __init__(self, weights, num_samples, replacement=True, generator=None):
        if not _is_count(num_samples):
            raise ValueError(f'WeightedRandomSampler(): num_samples must be a positive integer, not {num_samples!r}')
        if not isinstance(replacement, bool):
            raise ValueError(f'WeightedRandomSampler(): replacement must be True or False, not {replacement!r}')
        found = GTorch.as_tensor(weights, dtype=GTorch.float64)
        if len(found.shape) != 1:
            raise ValueError('WeightedRandomSampler(): weights must be numbers in one dimension, not of shape '
                             f'{list(found.shape)}')
        self.weights, self.num_samples = found, num_samples
        self.replacement, self.generator = replacement, generator

    def __iter__(self):
        drawn = GTorch.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        yield from drawn.tolist()

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler[list]):
    """Lists of @batch_size indices of another sampler; the last may have fewer, and is left out with @drop_last."""

    def __init__(self, sampler, batch_size, drop_last):
        if not _is_count(batch_size):
            raise ValueError(f'BatchSampler(): batch_size must be a positive integer, not {batch_size!r}')
        if not isinstance(drop_last, bool):
            raise ValueError(f'BatchSampler(): drop_last must be True or False, not {drop_last!r}')
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self):
        indices = iter(self.sampler)
        while True:
            batch = list(itertools.islice(indices, self.batch_size))
            if not batch or (self.drop_last and len(batch) < self.batch_size):
                return
            yield batch

    def __len__(self):
        n = len(self.sampler)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


def owner(sampler):
    """The sampler that an order follows from, inside of those that make batches of it."""
    while isinstance(getattr(sampler, 'sampler', None), Sampler):
        sampler = sampler.sampler
    return sampler


def pieces(batch_sampler):
    """The batches of a sampler for what takes ranges and tensors of indices as well as lists: of orders that are known
    as a whole no lists are made."""
    if type(batch_sampler) is not BatchSampler:
        return iter(batch_sampler)
    inner, size, drop_last = batch_sampler.sampler, batch_sampler.batch_size, batch_sampler.drop_last
    if type(inner) is SequentialSampler:
        n = len(inner)
        return (range(start, min(start + size, n)) for start in range(0, n - size + 1 if drop_last else n, size))
    if type(inner) is RandomSampler and not inner.replacement and inner._num_samples is None:
        return _cut(inner, size, drop_last)
    return iter(batch_sampler)


def _cut(sampler, size, drop_last):
    n = len(sampler)
    order = GTorch.randperm(n, generator=_fresh(sampler.generator))
    for start in range(0, n - size + 1 if drop_last else n, size):
        yield order[start : start + size]


class DistributedSampler(Sampler[Index]):
    """The part of the samples that one of several processes takes, @rank of @num_replicas. The order differs from epoch
    to epoch if each begins by set_epoch()."""

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False):
        dist = sys.modules.get('gi.overrides._gtorch_distributed')
        if (num_replicas is None or rank is None) and (dist is None or not dist.is_initialized()):
            raise RuntimeError('DistributedSampler(): there is no process group, which would know them: call '
                               'init_process_group() before, or give num_replicas and rank')
        num_replicas = dist.get_world_size() if num_replicas is None else num_replicas
        rank = dist.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f'DistributedSampler(): rank is {rank}, and must be from 0 to {num_replicas - 1}')
        self.dataset, self.num_replicas, self.rank, self.epoch = dataset, num_replicas, rank, 0
        self.drop_last, self.shuffle, self.seed = drop_last, shuffle, seed
        n = len(dataset)
        self.num_samples = n // num_replicas if drop_last else math.ceil(n / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self):
        n = len(self.dataset)
        if self.shuffle:
            generator = GTorch.Generator()
            generator.manual_seed(self.seed + self.epoch)
            order = GTorch.randperm(n, generator=generator).tolist()
        else:
            order = list(range(n))
        if n < self.total_size:  # the first ones again, so that all processes have as many
            order = list(itertools.islice(itertools.cycle(order), self.total_size))
        return iter(order[self.rank : self.total_size : self.num_replicas])

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch):
        """Sets the number by which the next order differs from others."""
        self.epoch = epoch


ALL = (BatchSampler, DistributedSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler,
       WeightedRandomSampler)  # fmt: skip
for _one in ALL:
    _one.__module__ = 'gtorch.utils.data'
