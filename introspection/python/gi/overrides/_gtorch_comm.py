# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""GTorch.cuda.comm: copies of tensors to several GPUs of one process, and sums and joins of those that are there."""

from gi.overrides._gtorch_convert import (
    GTorch, RawTensor, convert_device, convert_whole, cuda_device, for_gpus, listed, of_type,
)  # fmt: skip

SIZE = 10 * 2**20
RAW = {name: getattr(GTorch, f'comm_{name}') for name in (
    'broadcast', 'broadcast_coalesced', 'broadcast_out', 'gather', 'gather_out', 'reduce_add', 'reduce_add_coalesced',
    'scatter', 'scatter_out')}


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


def _on_gpus(tensors):
    for one in tensors:
        for_gpus(one.device)
    return tensors


def _on(device):
    """The device of results: a GPU, the current one for None, or the CPU."""
    return cuda_device() if device is None else convert_device(device).resolve()


def broadcast(tensor, devices=None, *, out=None):
    """Copies a tensor to several GPUs, or into the tensors @out. Returns a tuple; the tensor itself is in the place
    of its own device."""
    _one_of('broadcast', devices, out, '“devices” and “out”')
    of_type(tensor, RawTensor, 'comm.broadcast(): tensor')
    if out is None:
        return tuple(RAW['broadcast'](tensor, _devices('broadcast', devices)))
    out = _on_gpus(_tensors('broadcast', out))
    RAW['broadcast_out'](tensor, out)
    return tuple(out)


def broadcast_coalesced(tensors, devices, buffer_size=SIZE):
    """Copies several tensors to several GPUs. Returns a list with a tuple of tensors for each device; tensors of that
    device are themselves there. Those of the same dtype are copied together, in buffers of about @buffer_size bytes,
    of which the results are views."""
    tensors = _tensors('broadcast_coalesced', tensors)
    devices = _devices('broadcast_coalesced', devices)
    found = RAW['broadcast_coalesced'](tensors, devices, convert_whole(buffer_size))
    return [tuple(found[i:i + len(tensors)]) for i in range(0, len(found), len(tensors))]


def _same_shapes(name, tensors):
    for one in tensors:
        if one.shape != tensors[0].shape:
            shapes = f'{tuple(tensors[0].shape)} and {tuple(one.shape)}'
            raise ValueError(f'comm.{name}(): the tensors have different shapes, {shapes}')


def reduce_add(inputs, destination=None):
    """The sum of tensors of several GPUs, on the GPU @destination, by default the current one."""
    inputs = _on_gpus(_tensors('reduce_add', inputs))
    _same_shapes('reduce_add', inputs)
    return RAW['reduce_add'](inputs, cuda_device(destination))


def reduce_add_coalesced(inputs, destination=None, buffer_size=SIZE):
    """The sums of lists of tensors, one list for each GPU, of equal length. Returns a tuple. Tensors of the same dtype
    are copied and added together, in buffers of about @buffer_size bytes, of which the results are views."""
    lists = [_tensors('reduce_add_coalesced', one) for one in listed(inputs, 'comm.reduce_add_coalesced(): inputs')]
    if len({len(one) for one in lists}) != 1:
        raise ValueError(f'comm.reduce_add_coalesced(): the lists have {[len(one) for one in lists]} tensors')
    for some in zip(*lists):
        _same_shapes('reduce_add_coalesced', _on_gpus(some))
    flat = [tensor for one in lists for tensor in one]
    return tuple(RAW['reduce_add_coalesced'](flat, len(lists), cuda_device(destination), convert_whole(buffer_size)))


def _streams(streams, devices):
    """A stream for each part; None stands for the current one of the device."""
    if streams is None:
        return None
    found = listed(streams, 'comm.scatter(): streams')
    return [GTorch.Stream.get_current(device) if stream is None
            else for_gpus(of_type(stream, GTorch.Stream, 'comm.scatter(): a stream'))
            for stream, device in zip(found, [*devices, *devices[-1:] * len(found)])]


def scatter(tensor, devices=None, chunk_sizes=None, dim=0, streams=None, *, out=None):
    """Divides a tensor along @dim, and copies the parts to GPUs, or into the tensors @out. They have the lengths
    @chunk_sizes, or are equal but for the last. A copy is made on the stream of its device, or on that of @streams."""
    _one_of('scatter', devices, out, '“devices” and “out”')
    of_type(tensor, RawTensor, 'comm.scatter(): tensor')
    dim = convert_whole(dim)
    if out is not None:
        if chunk_sizes is not None:
            raise RuntimeError('comm.scatter(): “chunk_sizes” must not be given together with “out”')
        out = _on_gpus(_tensors('scatter', out))
        RAW['scatter_out'](tensor, out, dim, _streams(streams, [one.device for one in out]))
        return tuple(out)
    devices = _devices('scatter', devices)
    if chunk_sizes is not None:
        chunk_sizes = [convert_whole(size) for size in listed(chunk_sizes, 'comm.scatter(): chunk_sizes')]
    return tuple(RAW['scatter'](tensor, devices, chunk_sizes, dim, _streams(streams, devices)))


def gather(tensors, dim=0, destination=None, *, out=None):
    """Joins tensors of several GPUs along @dim: on the GPU @destination, by default the current one, on the CPU for
    'cpu', or in the tensor @out."""
    tensors = _on_gpus(_tensors('gather', tensors))
    dim = convert_whole(dim)
    if out is None:
        return RAW['gather'](tensors, dim, _on(destination))
    if destination is not None:
        raise RuntimeError('comm.gather(): “destination” must not be given together with “out”')
    RAW['gather_out'](tensors, dim, of_type(out, RawTensor, 'comm.gather(): out'))
    return out


def install(submodule, cuda):
    found = (broadcast, broadcast_coalesced, gather, reduce_add, reduce_add_coalesced, scatter)
    cuda.comm = submodule('cuda.comm', 'Tensors of several GPUs.', {one.__name__: one for one in found})
