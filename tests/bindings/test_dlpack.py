#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""DLPack from Python: shared memory in both directions, and invalid capsules."""

import ctypes
import gc
import pathlib
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
import numpy  # noqa: E402
from gi.repository import GLib, GTorch  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402
from tap import raises  # noqa: E402


class DLTensor(ctypes.Structure):
    _fields_ = [
        ('data', ctypes.c_void_p),
        ('device_type', ctypes.c_int32),
        ('device_id', ctypes.c_int32),
        ('ndim', ctypes.c_int32),
        ('code', ctypes.c_uint8),
        ('bits', ctypes.c_uint8),
        ('lanes', ctypes.c_uint16),
        ('shape', ctypes.POINTER(ctypes.c_int64)),
        ('strides', ctypes.POINTER(ctypes.c_int64)),
        ('byte_offset', ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    pass


Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = [
    ('tensor', DLTensor),
    ('manager_ctx', ctypes.c_void_p),
    ('deleter', Deleter),
]

new_capsule = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(('PyCapsule_New', ctypes.pythonapi))

memory = (ctypes.c_float * 6)(*range(6))
kept = []  # the capsules contain the addresses of these
deleted = []


@Deleter
def delete(_managed):
    deleted.append(True)


def capsule(name=b'dltensor', shape=(2, 3), strides=None, **fields):
    sizes = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    steps = (ctypes.c_int64 * len(strides))(*strides) if strides is not None else None
    tensor = DLTensor(
        data=ctypes.addressof(memory), device_type=1, ndim=len(shape), code=2, bits=32, lanes=1
    )
    tensor.shape = sizes
    if steps is not None:
        tensor.strides = steps
    for key, value in fields.items():
        setattr(tensor, key, value)
    managed = Managed(tensor=tensor, deleter=delete)
    kept.extend([sizes, steps, managed, name])
    return new_capsule(ctypes.addressof(managed), name, None)


def refused(says, **fields):
    raises((GLib.Error, BufferError), lambda: GTorch.from_dlpack(capsule(**fields)), says, 'dlpack')


@tap.case
def an_honest_capsule_is_shown_without_a_copy():
    del deleted[:]
    x = GTorch.from_dlpack(capsule())
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    x[0, 0] = 7
    assert memory[0] == 7
    memory[0] = 0
    del x
    assert deleted == [True], deleted


@tap.case
def strides_and_offset_are_followed():
    x = GTorch.from_dlpack(capsule(shape=(2, 2), strides=(1, 2), byte_offset=4))
    assert x.tolist() == [[1, 3], [2, 4]]


@tap.case
def lies_about_the_dimensions_are_errors():
    refused('-1', ndim=-1)
    refused('17', ndim=17)
    refused('-2', shape=(-2, 3))
    refused('overflow', shape=(1 << 40, 1 << 40))


@tap.case
def lies_about_the_strides_are_errors():
    refused('beyond 64 bits', strides=(1 << 62, 1))


@tap.case
def lies_about_the_dtype_are_errors():
    refused('lanes', lanes=4)
    refused('7', bits=7)
    refused('9', code=9)


@tap.case
def missing_memory_is_an_error():
    refused('without memory', data=None)


@tap.case
def other_devices_are_errors():
    refused('type 4', device_type=4)
    refused('77', device_type=77)


@tap.case
def a_capsule_is_used_up():
    one = capsule()
    GTorch.from_dlpack(one)
    for bad in (one, capsule(name=b'used_dltensor'), capsule(name=b'something'), 3, None):
        try:
            GTorch.from_dlpack(bad)
        except (TypeError, GLib.Error):
            continue
        raise AssertionError(f'{bad} was taken')


@tap.case
def numpy_shares_memory_both_ways():
    array = numpy.arange(6, dtype='float32').reshape(2, 3)
    x = GTorch.from_dlpack(array)
    x.mul_(2)
    assert array[1, 2] == 10
    back = numpy.from_dlpack(x)
    back_pointer = back.__array_interface__['data'][0]
    assert back_pointer == array.__array_interface__['data'][0]


@tap.case
def refused_capsules_raise_and_are_freed():
    """On the CPU, numpy has no bfloat16; numpy cannot read memory of a GPU."""
    allocator = GTorch.get_default_device().get_allocator()
    before = allocator.get_allocated()
    for _ in range(5):
        try:
            numpy.from_dlpack(GTorch.ones(100000, dtype=GTorch.bfloat16))
        except (RuntimeError, BufferError, TypeError):
            continue  # and no SystemError
        raise AssertionError('numpy took a tensor of bfloat16')
    unused = [GTorch.ones(100000).__dlpack__() for _ in range(3)]
    taken = GTorch.from_dlpack(unused[1])
    gc.collect()
    assert taken.sum().item() == 100000 and allocator.get_allocated() >= before + 3 * 400000
    assert GTorch.from_dlpack(unused[0]).sum().item() == 100000
    del taken, unused
    gc.collect()
    assert allocator.get_allocated() == before


def on_host(*shape):
    return GTorch.ones(*shape, device='cpu')


def has_buffer(tensor):
    """This needs the accelerator in C."""
    try:
        return memoryview(tensor) is not None
    except TypeError:
        return False


@tap.case
def released_memory_is_not_shown():
    for made in (on_host(3), on_host(2, 3), on_host(2, 3).t(), GTorch.zeros((), device='cpu')):
        made.release()
        for look in (numpy.asarray, numpy.array, memoryview, bytes, lambda t: t.numpy()):
            try:
                look(made)
            except (BufferError, RuntimeError, TypeError, GLib.Error):
                continue
            raise AssertionError(f'{look} shows released memory')


@tap.case
def exported_memory_outlives_release():
    for made in (on_host(1000, 100), on_host(1000, 200)[:, ::2], on_host(100, 1000).t()):
        looks = [numpy.asarray(made), made.numpy(), made.__array__()]
        if has_buffer(made):
            looks.append(numpy.asarray(memoryview(made)))
        pointer = made.data_ptr()
        made.release()
        others = [GTorch.zeros(1000, 100, device='cpu') for _ in range(8)]
        for look in looks:
            assert look.__array_interface__['data'][0] == pointer
            assert look.shape == (1000, 100) and look.sum() == 100000
        assert all(other.sum().item() == 0 for other in others)


@tap.case
def memory_is_shown_while_another_thread_releases():
    box, end = [on_host(1000)], time.monotonic() + 0.5
    seen = []
    shows = memoryview if has_buffer(box[0]) else numpy.asarray
    look = lambda t: shows(t).tobytes()  # noqa: E731

    def read():
        while time.monotonic() < end:
            try:
                seen.append(look(box[0]) == b'\0\0\x80?' * 1000)
            except (BufferError, RuntimeError, GLib.Error):
                pass

    thread = threading.Thread(target=read)
    thread.start()
    while time.monotonic() < end:
        former, box[0] = box[0], on_host(1000)
        former.release()
    thread.join()
    assert seen and all(seen)


if __name__ == '__main__':
    tap.main()
