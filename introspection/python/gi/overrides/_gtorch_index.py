# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The contents of the brackets of t[…], as one list of integers and the tensors in it."""

from gi.overrides._gtorch_convert import DType, RawTensor, convert_whole as index

INT, SLICE, ELLIPSIS, NEW_AXIS, TENSOR, BOOL = range(6)  # GTorchIndexKind
MAX = 2**63 - 1
MOST = 33  # for 16 dimensions


def _slice(item):
    start = 0 if item.start is None else index(item.start, 'the start of a slice')
    stop = MAX if item.stop is None else index(item.stop, 'the stop of a slice')
    return SLICE, start, stop, 1 if item.step is None else index(item.step, 'the step of a slice')


def encode(key, device):
    """Returns four integers for each item (GTorchIndexKind and its numbers), and the index tensors, new
    ones on @device."""
    items, tensors = [], []
    if isinstance(key, tuple) and len(key) > MOST:
        raise IndexError(f'an index has at most {MOST} items, not {len(key)}')
    for item in key if isinstance(key, tuple) else (key,):
        kind = type(item)
        if kind is int:
            items += (INT, index(item, 'an index'), 0, 0)
        elif kind is slice:
            items += _slice(item)
        elif item is None:
            items += (NEW_AXIS, 0, 0, 0)
        elif item is Ellipsis:
            items += (ELLIPSIS, 0, 0, 0)
        elif isinstance(item, bool):
            items += (BOOL, int(item), 0, 0)
        elif isinstance(item, RawTensor):
            items += (TENSOR, len(tensors), 0, 0)
            tensors.append(item)
        elif getattr(item, 'shape', None) == () and getattr(item.dtype, 'kind', None) in ('i', 'u'):
            items += (INT, index(item), 0, 0)  # a number of numpy's
        elif isinstance(item, (list, range)) or hasattr(item, '__array_interface__'):
            from gi.overrides._gtorch_create import tensor

            items += (TENSOR, len(tensors), 0, 0)
            made = tensor(item, device=device)
            tensors.append(_of_list(made) if isinstance(item, list) else _as_index(made))
        elif hasattr(item, '__index__'):
            items += (INT, index(item), 0, 0)
        else:
            raise TypeError(
                'an index is an integer, a slice, ..., None, a list or a tensor, '
                f'not {type(item).__name__}'
            )
    return items, tensors


def _as_index(tensor):
    """an empty list is a list of indices, although its dtype would be a floating-point one"""
    return tensor if tensor.numel() else tensor.long()


def _of_list(tensor):
    """Numbers of numpy's uint8 in a list are indices: only a tensor or an array of that dtype is a mask."""
    return tensor.long() if tensor.dtype == DType.UINT8 else _as_index(tensor)
