# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""GTorch.cuda.comm: copies of tensors to several GPUs of one process, and sums and joins of those that are there."""

from contextlib import nullcontext

from gi.overrides._gtorch_convert import (
    GTorch, RawTensor, convert_device, convert_whole, cuda_device, for_gpus, listed, of_type,
)  # fmt: skip

SIZE = 10 * 2**20


def _devices(name, devices):
    found = [cuda_device(device) for device in listed(devices, f'comm.{name}(): devices')]
    if not found:
        raise ValueError(f'comm.{name}(): there must be at least one device')
    return found


def _tensors(name, values):
    found = listed(values, f'comm.{name}(): the tensors')
    for value in found:
        if not isinstance(value, RawTensor):
            raise TypeError(f'comm.{name}() takes tensors, not {type(value).__name__}')
    if not found:
        raise ValueError(f'comm.{name}(): there must be at least one tensor')
    return found


def _one_of(name, first, second, names):
    if (first is None) == (second is None):
        raise RuntimeError(f'comm.{name}(): exactly one of {names} must be given')


def _on(device):
    """The device of results: a GPU, the current one for None, or the CPU."""
    return cuda_device() if device is None else convert_device(device).resolve()


def broadcast(tensor, devices=None, *, out=None):
    """Copies a tensor to several GPUs, or into the tensors @out. Returns a tuple; the tensor itself is in the place
    of its own device."""
    _one_of('broadcast', devices, out, '“devices” and “out”')
    of_type(tensor, RawTensor, 'comm.broadcast(): tensor')
    if out is None:
        return tuple(tensor.to(device) for device in _devices('broadcast', devices))
    for one in _tensors('broadcast', out):
        for_gpus(one.device)
        if one.shape != tensor.shape:
            shapes = f'{tuple(tensor.shape)} and, of “out”, {tuple(one.shape)}'
            raise RuntimeError(f'comm.broadcast(): the shapes are {shapes}')
        one.copy_(tensor, non_blocking=True)
    return tuple(out)


def _chunks(tensors, buffer_size):
    """The positions of tensors of the same dtype that go together: as many as make up @buffer_size bytes."""
    size = convert_whole(buffer_size)
    open_ones, found = {}, []
    for i, tensor in enumerate(tensors):
        chunk = open_ones.setdefault(tensor.dtype, [])
        chunk.append(i)
        if sum(tensors[k].numel() * tensors[k].element_size() for k in chunk) >= size:
            found.append(open_ones.pop(tensor.dtype))
    return found + list(open_ones.values())


def _flat(tensors):
    return GTorch.cat([tensor.reshape(-1) for tensor in tensors], 0)


def _parts(flat, like):
    """Views of a buffer with the shapes of tensors."""
    parts = flat.split([tensor.numel() for tensor in like])
    return [part.view(tensor.shape) for part, tensor in zip(parts, like)]


def broadcast_coalesced(tensors, devices, buffer_size=SIZE):
    """Copies several tensors to several GPUs. Returns a list with a tuple of tensors for each device; tensors of that
    device are themselves there. Those of the same dtype are copied together, in buffers of about @buffer_size bytes,
    of which the results are views."""
    tensors = _tensors('broadcast_coalesced', tensors)
    devices = _devices('broadcast_coalesced', devices)
    if any(tensor.device != tensors[0].device for tensor in tensors):
        places = ', '.join(sorted({str(tensor.device) for tensor in tensors}))
        raise RuntimeError(f'comm.broadcast_coalesced(): the tensors must be on one device, not {places}')
    found = [list(tensors) for _ in devices]
    for chunk in _chunks(tensors, buffer_size):
        members = [tensors[i] for i in chunk]
        flat = members[0] if len(members) == 1 else _flat(members)
        for device, results in zip(devices, found):
            if device == tensors[0].device:
                continue
            there = flat.to(device)
            for i, part in zip(chunk, [there] if len(members) == 1 else _parts(there, members)):
                results[i] = part
    return [tuple(results) for results in found]


def reduce_add(inputs, destination=None):
    """The sum of tensors of several GPUs, on the GPU @destination, by default the current one."""
    inputs = _tensors('reduce_add', inputs)
    device = cuda_device(destination)
    for one in inputs:
        for_gpus(one.device)
        if one.shape != inputs[0].shape:
            shapes = f'{tuple(inputs[0].shape)} and {tuple(one.shape)}'
            raise ValueError(f'comm.reduce_add(): the tensors have different shapes, {shapes}')
    first = next((one for one in inputs if one.device == device), inputs[0])
    others = [one for one in inputs if one is not first]
    if not others:
        return first.to(device)
    total = first.to(device) + others[0].to(device)
    for one in others[1:]:
        total = total.add_(one.to(device))
    return total


def reduce_add_coalesced(inputs, destination=None, buffer_size=SIZE):
    """The sums of lists of tensors, one list for each GPU, of equal length. Returns a tuple. Tensors of the same dtype
    are copied and added together, in buffers of about @buffer_size bytes, of which the results are views."""
    lists = [_tensors('reduce_add_coalesced', one) for one in listed(inputs, 'comm.reduce_add_coalesced(): inputs')]
    if len({len(one) for one in lists}) != 1:
        raise ValueError(f'comm.reduce_add_coalesced(): the lists have {[len(one) for one in lists]} tensors')
    results = [None] * len(lists[0])
    for chunk in _chunks(lists[0], buffer_size):
        members = [[one[i] for i in chunk] for one in lists]
        alike = all([(t.shape, t.dtype) for t in one] == [(t.shape, t.dtype) for t in members[0]] for one in members)
        if len(chunk) == 1 or not alike:  # of which reduce_add() tells what is wrong
            for i in chunk:
                results[i] = reduce_add([one[i] for one in lists], destination)
            continue
        total = reduce_add([_flat(one) for one in members], destination)
        for i, part in zip(chunk, _parts(total, members[0])):
            results[i] = part
    return tuple(results)


def scatter(tensor, devices=None, chunk_sizes=None, dim=0, streams=None, *, out=None):
    """Divides a tensor along @dim, and copies the parts to GPUs, or into the tensors @out. They have the lengths
    @chunk_sizes, or are equal but for the last. A copy is made on the stream of its device, or on that of @streams."""
    _one_of('scatter', devices, out, '“devices” and “out”')
    of_type(tensor, RawTensor, 'comm.scatter(): tensor')
    if out is not None:
        if chunk_sizes is not None:
            raise RuntimeError('comm.scatter(): “chunk_sizes” must not be given together with “out”')
        devices = [for_gpus(one.device) for one in _tensors('scatter', out)]
        chunk_sizes = [one.shape[dim] for one in out]
    devices = _devices('scatter', devices)
    if chunk_sizes is None:
        parts = GTorch.Tensor.chunk(tensor, len(devices), dim)
    else:
        sizes = [convert_whole(size) for size in listed(chunk_sizes, 'comm.scatter(): chunk_sizes')]
        if len(sizes) != len(devices) or sum(sizes) != tensor.shape[dim]:
            raise RuntimeError(f'comm.scatter(): parts of {sizes} for {len(devices)} devices do not make up dimension '
                               f'{dim}, {tensor.shape[dim]}')
        parts = tensor.split(sizes, dim)
    streams = [None] * len(parts) if streams is None else listed(streams, 'comm.scatter(): streams')
    if len(streams) < len(parts):
        raise RuntimeError(f'comm.scatter(): there are {len(streams)} streams for {len(parts)} parts')
    found = []
    for i, (part, device, stream) in enumerate(zip(parts, devices, streams)):
        with nullcontext() if stream is None else for_gpus(of_type(stream, GTorch.Stream, 'comm.scatter(): a stream')):
            found.append(part.to(device) if out is None else out[i].copy_(part, non_blocking=True))
    return tuple(found)


def gather(tensors, dim=0, destination=None, *, out=None):
    """Joins tensors of several GPUs along @dim: on the GPU @destination, by default the current one, on the CPU for
    'cpu', or in the tensor @out."""
    tensors = _tensors('gather', tensors)
    if out is None:
        device = _on(destination)
    elif destination is not None:
        raise RuntimeError('comm.gather(): “destination” must not be given together with “out”')
    else:
        device = out.device
    for one in tensors:
        for_gpus(one.device)
    joined = GTorch.cat([one.to(device) for one in tensors], dim)
    return joined if out is None else out.copy_(joined)


def install(submodule, cuda):
    found = (broadcast, broadcast_coalesced, gather, reduce_add, reduce_add_coalesced, scatter)
    cuda.comm = submodule('cuda.comm', 'Tensors of several GPUs.', {one.__name__: one for one in found})
