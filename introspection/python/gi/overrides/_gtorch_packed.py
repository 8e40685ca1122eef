# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sequences of different lengths: GTorch.nn.utils.rnn."""

import copy

from gi.overrides._gtorch_convert import GTorch, RawTensor, convert_bool, convert_whole, destination
from gi.overrides._gtorch_errors import restores
from gi.overrides._gtorch_properties import final

OVERRIDES = 'gi.overrides.GTorch'
RawPacked = GTorch.PackedSequence
PARTS = ('data', 'batch_sizes', 'sorted_indices', 'unsorted_indices')

_pack_padded = restores(GTorch.pack_padded_sequence)
_pad_packed = restores(GTorch.pad_packed_sequence)
_pack = restores(GTorch.pack_sequence)
_pad = restores(GTorch.pad_sequence)
_unpad = restores(GTorch.unpad_sequence)
_unpack = restores(GTorch.unpack_sequence)


@final
class PackedSequence(RawPacked):
    """Sequences of different lengths without padding: a tuple of the data, the batch sizes, the sorted and the unsorted
    indices."""

    __module__ = OVERRIDES
    _fields = PARTS

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if batch_sizes is None and isinstance(data, (tuple, list)):
            data, batch_sizes = data
        for value, name in ((data, 'data'), (batch_sizes, 'batch_sizes')):
            if not isinstance(value, RawTensor):
                raise TypeError(f'PackedSequence: {name} must be a tensor, not {type(value).__name__}')
        return RawPacked.new(data, batch_sizes, sorted_indices, unsorted_indices)

    def __init__(self, *_args, **_options):
        pass

    data = property(RawPacked.get_data)
    batch_sizes = property(RawPacked.get_batch_sizes)
    sorted_indices = property(RawPacked.get_sorted_indices)
    unsorted_indices = property(RawPacked.get_unsorted_indices)

    def _parts(self):
        return tuple(getattr(self, name) for name in PARTS)

    def __iter__(self):
        return iter(self._parts())

    def __len__(self):
        return len(PARTS)

    def __getitem__(self, position):
        return self._parts()[position]

    def __repr__(self):
        return f'PackedSequence({", ".join(f"{name}={getattr(self, name)!r}" for name in PARTS)})'

    def __reduce_ex__(self, _protocol):
        from gi.overrides import _gtorch_unpickle as unpickle

        return unpickle.packed_sequence, self._parts()

    def __copy__(self):
        return PackedSequence(*self._parts())

    def __deepcopy__(self, memo):
        result = memo[id(self)] = PackedSequence(*copy.deepcopy(self._parts(), memo))
        return result

    def _replace(self, **values):
        unknown = values.keys() - set(PARTS)
        if unknown:
            raise ValueError(f'PackedSequence has no part {sorted(unknown)[0]!r}')
        return PackedSequence(**{**dict(zip(PARTS, self._parts())), **values})

    def _asdict(self):
        return dict(zip(PARTS, self._parts()))

    def to(self, *args, device=None, dtype=None, non_blocking=False):
        """Moves the data and the indices to another device, or converts the data."""
        device, dtype, _non_blocking, _copy = destination(args, dtype, device, non_blocking, False)
        return RawPacked.to(self, device, dtype)

    def cpu(self):
        return self.to('cpu')

    def cuda(self, device=None):
        return self.to('cuda' if device is None else device)

    def double(self):
        return self.to(GTorch.DType.FLOAT64)

    def float(self):
        return self.to(GTorch.DType.FLOAT32)

    def half(self):
        return self.to(GTorch.DType.FLOAT16)

    def bfloat16(self):
        return self.to(GTorch.DType.BFLOAT16)

    def byte(self):
        return self.to(GTorch.DType.UINT8)

    def char(self):
        return self.to(GTorch.DType.INT8)

    def short(self):
        return self.to(GTorch.DType.INT16)

    def int(self):
        return self.to(GTorch.DType.INT32)

    def long(self):
        return self.to(GTorch.DType.INT64)

    @property
    def is_cuda(self):
        return self.data.is_cuda

    def is_pinned(self):
        """Tells whether the data is in pinned memory."""
        return self.data.is_pinned()

    def pin_memory(self):
        """The same with its data in pinned memory, from which copies to a GPU do not wait."""
        return self._replace(data=self.data.pin_memory())


def _lengths(function, lengths):
    """Returns the numbers of a tensor or a list."""
    if isinstance(lengths, RawTensor):
        if lengths.ndim != 1 or lengths.is_floating_point():
            raise TypeError(f'{function}(): lengths must be a tensor of integers with one dimension')
        lengths = lengths.tolist()
    return [convert_whole(one) for one in lengths]


def _sequences(function, sequences):
    found = list(sequences)
    if not all(isinstance(one, RawTensor) for one in found):
        raise TypeError(f'{function}() takes a list of tensors')
    return found


def _packed(function, value):
    if not isinstance(value, RawPacked):
        raise TypeError(f'{function}() takes a PackedSequence, not {type(value).__name__}')
    return value


def invert_permutation(permutation):
    """The permutation that takes another one back; None for None."""
    if permutation is None:
        return None
    if not isinstance(permutation, RawTensor) or permutation.ndim != 1 or permutation.is_floating_point():
        raise TypeError('invert_permutation() takes a tensor of integers with one dimension')
    places = permutation.new_tensor(list(range(permutation.numel())))
    return permutation.new_empty(permutation.shape).scatter_(0, permutation.long(), places)


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """Packs padded sequences, whose lengths are a tensor or a list."""
    numbers = _lengths('pack_padded_sequence', lengths)
    return _pack_padded(input, numbers, convert_bool(batch_first), convert_bool(enforce_sorted))


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """Pads packed sequences; returns them and their lengths."""
    total = GTorch.NONE if total_length is None else convert_whole(total_length)
    padded, lengths = _pad_packed(
        _packed('pad_packed_sequence', sequence), convert_bool(batch_first), padding_value, total
    )
    return padded, lengths


def pack_sequence(sequences, enforce_sorted=True):
    """Packs a list of sequences."""
    return _pack(_sequences('pack_sequence', sequences), convert_bool(enforce_sorted))


def unpack_sequence(packed_sequences):
    """Returns the list of the packed sequences."""
    return list(_unpack(_packed('unpack_sequence', packed_sequences)))


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side='right'):
    """Stacks sequences, which are padded to the longest."""
    if padding_side not in ('left', 'right'):
        raise ValueError(f"pad_sequence(): padding_side must be 'left' or 'right', not {padding_side!r}")
    found = _sequences('pad_sequence', sequences)
    return _pad(found, convert_bool(batch_first), padding_value, padding_side == 'left')


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """Returns the list of padded sequences without their padding."""
    return list(_unpad(padded_sequences, _lengths('unpad_sequence', lengths), convert_bool(batch_first)))


FUNCTIONS = (
    invert_permutation, pack_padded_sequence, pad_packed_sequence, pack_sequence, unpack_sequence, pad_sequence,
    unpad_sequence,
)


def members(made):
    """Returns what GTorch.nn.utils.rnn has."""
    return {'PackedSequence': made, **{function.__name__: function for function in FUNCTIONS}}
