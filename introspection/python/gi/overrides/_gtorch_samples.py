# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""GTorch.Sample as Python's structures and back, and data sets and loaders in C as Python's sequences and iterables."""

from gi.repository import GLib

from gi.overrides._gtorch_convert import GTorch, RawTensor


class _Held:
    """A value that C passes on as it is."""

    __slots__ = ('value',)

    def __init__(self, value):
        self.value = value


def held(value):
    """A sample that is the value itself."""
    return GTorch.Sample.new_value(_Held(value))


def _of_dict(value):
    if not all(isinstance(key, str) and '\0' not in key for key in value):
        return held(value)
    return GTorch.Sample.new_dict(list(value), [to_sample(one) for one in value.values()])


def to_sample(value):
    """The sample of a structure of tensors, NumPy arrays, numbers, texts, bytes, None, dicts, lists and tuples; of
    another value one that only Python can read."""
    kinds = GTorch.Sample
    if isinstance(value, kinds):
        return value
    if isinstance(value, RawTensor):
        return kinds.new_tensor(value)
    if value is None:
        return kinds.new_none()
    if isinstance(value, bool):
        return kinds.new_bool(value)
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return kinds.new_int(value)
    if isinstance(value, float):
        return kinds.new_double(value)
    if isinstance(value, str) and '\0' not in value:
        return kinds.new_string(value)
    if isinstance(value, bytes):
        return kinds.new_bytes(GLib.Bytes.new(value))
    if isinstance(value, dict):
        return _of_dict(value)
    if isinstance(value, (list, tuple)):
        return kinds.new_tuple([to_sample(one) for one in value])
    if hasattr(value, '__array_interface__'):
        from gi.overrides._gtorch_create import as_tensor

        return kinds.new_tensor(as_tensor(value))
    return held(value)


def from_sample(sample, sequence=tuple):
    """The structure of a sample, in which tuples are of the kind @sequence: of batches, PyTorch has lists."""
    kind, kinds = sample.get_kind(), GTorch.SampleKind
    if kind == kinds.TENSOR:
        return sample.get_tensor()
    if kind == kinds.TUPLE:
        return sequence(from_sample(sample.get_child(i), sequence) for i in range(sample.get_n_children()))
    if kind == kinds.DICT:
        return {key: from_sample(sample.lookup(key), sequence) for key in sample.get_keys()}
    if kind == kinds.VALUE:
        value = sample.get_value()
        return value.value if isinstance(value, _Held) else value
    if kind == kinds.NONE:
        return None
    if kind == kinds.BYTES:
        return sample.get_bytes().get_data()
    return {kinds.INT: sample.get_int, kinds.DOUBLE: sample.get_double, kinds.BOOL: sample.get_bool,
            kinds.STRING: sample.get_string}[kind]()


def _iterate(dataset):
    from gi.overrides._gtorch_worker_info import get_worker_info

    info = get_worker_info()
    source = dataset.iterate(*((0, 1) if info is None else (info.id, info.num_workers)))
    while (sample := source.next(None)) is not None:
        yield from_sample(sample)


def _batches(loader):
    iterator = loader.iterate()
    while (batch := iterator.next(None)) is not None:
        yield from_sample(batch, list)


def install():
    dataset, loader = GTorch.Dataset, GTorch.DataLoader
    dataset.__len__ = lambda self: self.get_length()
    dataset.__getitem__ = lambda self, index: from_sample(self.get_item(index, None))
    GTorch.IterableDataset.__iter__ = _iterate
    loader.__len__ = lambda self: self.get_length()
    loader.__iter__ = _batches
