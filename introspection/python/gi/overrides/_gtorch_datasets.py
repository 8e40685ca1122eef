# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Data sets as PyTorch's classes: GTorch.utils.data.Dataset and what is built of data sets.

They are classes of Python, whose __init__() need not be called, and are pickled as such for worker processes."""

import abc
import bisect
import itertools
import math
import warnings
from typing import Generic, TypeVar

from gi.repository import GTorch

from gi.overrides._gtorch_convert import RawTensor
from gi.overrides._gtorch_samples import from_sample

HERE = 'gtorch.utils.data'
Sample = TypeVar('Sample', covariant=True)
Item = TypeVar('Item')
Several = TypeVar('Several', tuple, dict)


class Dataset(Generic[Sample]):
    """A data set: a class of a program's has __getitem__(index), and for most uses __len__(). With __getitems__(list of
    indices), which returns a list of samples, a loader asks once for a batch."""

    def __getitem__(self, index):
        """The sample of an index."""
        raise NotImplementedError(f'{type(self).__name__}: a data set needs a __getitem__(), which gives a sample')

    def __add__(self, other):
        return ConcatDataset([self, other])


class IterableDataset(Dataset[Sample], abc.ABC):
    """A data set that is read from its beginning: a class of a program's has __iter__(). In workers of a loader each
    iterates by itself; get_worker_info() tells which part is whose."""

    @abc.abstractmethod
    def __iter__(self):
        """The samples."""

    def __add__(self, other):
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple]):
    """A data set of tensors: a sample is the tuple of their rows with the same index."""

    def __init__(self, *tensors):
        if not tensors:
            raise ValueError('TensorDataset(): at least one tensor is needed')
        for i, tensor in enumerate(tensors):
            if not isinstance(tensor, RawTensor):
                raise TypeError(f'TensorDataset(): argument {i} is {type(tensor).__name__}, not a tensor')
            if not tensor.shape:
                raise ValueError(f'TensorDataset(): tensor {i} has no dimensions, and so no rows')
        lengths = [tensor.shape[0] for tensor in tensors]
        if len(set(lengths)) > 1:
            raise AssertionError(f'TensorDataset(): the tensors have {lengths} rows, not the same number')
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self):
        return self.tensors[0].shape[0]

    def _batch(self, indices):
        """The collated samples of @indices, a list, a range or an int64 tensor."""
        if isinstance(indices, range):
            return [tensor[indices.start : indices.stop].clone() for tensor in self.tensors]
        if isinstance(indices, list):
            indices = GTorch.tensor([i + len(self) if i < 0 else i for i in indices] if min(indices) < 0 else indices)
        return [tensor.index_select(0, indices.to(tensor.device)) for tensor in self.tensors]


def batches(dataset):
    """The function that gives collated samples of a data set of tensors or in C, or None: for classes of a program's,
    which may have another __getitem__()."""
    if isinstance(dataset, GTorch.Dataset):
        return lambda indices: from_sample(dataset.get_batch([int(i) for i in indices], None), list)
    return dataset._batch if type(dataset) is TensorDataset else None


class StackDataset(Dataset[Several]):
    """Several data sets of the same length as one, whose samples are tuples, or dicts if they were given by name."""

    def __init__(self, *args, **kwargs):
        if args and kwargs:
            raise ValueError('StackDataset(): data sets are given by position, for tuples, or by name, for dicts')
        self.datasets = args or kwargs
        if not self.datasets:
            raise ValueError('StackDataset(): at least one data set is needed')
        lengths = [len(one) for one in (args or kwargs.values())]
        if len(set(lengths)) > 1:
            raise ValueError(f'StackDataset(): the data sets have {lengths} samples, not the same number')
        self._length = lengths[0]

    def __getitem__(self, index):
        if isinstance(self.datasets, dict):
            return {key: one[index] for key, one in self.datasets.items()}
        return tuple(one[index] for one in self.datasets)

    def __getitems__(self, indices):
        """The samples of several indices, a list."""
        is_dict = isinstance(self.datasets, dict)
        columns = []
        for one in self.datasets.values() if is_dict else self.datasets:
            if callable(getattr(one, '__getitems__', None)):
                items = one.__getitems__(indices)
                if len(items) != len(indices):
                    raise ValueError(f'StackDataset: a data set gave {len(items)} samples for {len(indices)} indices')
            else:
                items = [one[index] for index in indices]
            columns.append(items)
        rows = zip(*columns)
        return [dict(zip(self.datasets, row)) for row in rows] if is_dict else list(rows)

    def __len__(self):
        return self._length


class ConcatDataset(Dataset[Sample]):
    """Data sets one after the other."""

    @staticmethod
    def cumsum(sequence):
        """Where each data set of a list ends."""
        return list(itertools.accumulate(len(one) for one in sequence))

    def __init__(self, datasets):
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError('ConcatDataset(): at least one data set is needed')
        for one in self.datasets:
            if isinstance(one, IterableDataset):
                raise AssertionError('ConcatDataset(): iterable data sets have no indices: use ChainDataset')
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx):
        if idx < 0:
            if -idx > len(self):
                raise ValueError(f'ConcatDataset: index {idx} is out of range for {len(self)} samples')
            idx += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, idx)
        if which == len(self.datasets):
            raise IndexError(f'ConcatDataset: index {idx} is out of range for {len(self)} samples')
        return self.datasets[which][idx - (self.cumulative_sizes[which - 1] if which else 0)]

    @property
    def cummulative_sizes(self):
        """The same as cumulative_sizes."""
        warnings.warn('“cummulative_sizes” is now called “cumulative_sizes”', FutureWarning, stacklevel=2)
        return self.cumulative_sizes


class ChainDataset(IterableDataset):
    """Iterable data sets one after the other."""

    def __init__(self, datasets):
        self.datasets = datasets

    def _checked(self):
        for one in self.datasets:
            if not isinstance(one, IterableDataset):
                raise AssertionError(f'ChainDataset takes iterable data sets, not {type(one).__name__}')
            yield one

    def __iter__(self):
        for one in self._checked():
            yield from one

    def __len__(self):
        return sum(len(one) for one in self._checked())


class Subset(Dataset[Sample]):
    """The samples of a data set that have the given indices."""

    def __init__(self, dataset, indices):
        own = type(self)
        if own.__getitem__ is not Subset.__getitem__ and own.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(f'{own.__name__} has a __getitem__() of its own and needs a '
                                      '__getitems__(indices), too, by which loaders ask for batches')
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, idx):
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices):
        """The samples of several indices, a list."""
        found = [self.indices[i] for i in indices]
        if callable(getattr(self.dataset, '__getitems__', None)):
            return self.dataset.__getitems__(found)
        return [self.dataset[i] for i in found]

    def __len__(self):
        return len(self.indices)


def _lengths(n, lengths):
    """The lengths of the parts of @n samples; of fractions those that make up @n."""
    lengths = list(lengths)
    total = sum(lengths)
    if math.isclose(total, 1) and total <= 1:
        for i, fraction in enumerate(lengths):
            if not 0 <= fraction <= 1:
                raise ValueError(f'random_split(): fraction {i} is {fraction}, not from 0 to 1')
        lengths = [math.floor(n * fraction) for fraction in lengths]
        for i in range(n - sum(lengths)):
            lengths[i % len(lengths)] += 1
        for i, length in enumerate(lengths):
            if length == 0:
                warnings.warn(f'random_split(): part {i} has no samples', stacklevel=3)
    if sum(lengths) != n:
        raise ValueError(f'random_split(): the lengths {lengths} make up {sum(lengths)}, and there are {n} samples')
    return lengths


def random_split(dataset, lengths, generator=None):
    """Divides a data set at random into parts of the given lengths, or of fractions that make up 1: a list of Subset.
    What the fractions leave over goes to the parts one by one."""
    lengths = _lengths(len(dataset), lengths)
    order = GTorch.randperm(sum(lengths), generator=generator).tolist()
    ends = itertools.accumulate(lengths)
    return [Subset(dataset, order[end - length : end]) for end, length in zip(ends, lengths)]


IterableDataset.register(GTorch.IterableDataset)
ALL = (ChainDataset, ConcatDataset, Dataset, IterableDataset, StackDataset, Subset, TensorDataset, random_split)
for _one in ALL:
    _one.__module__ = HERE
