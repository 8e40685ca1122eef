# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""DLPack: memory shared with numpy, PyTorch, CuPy and others through capsules."""

import collections
import ctypes
import gc
import sys
from operator import index

from gi.overrides._gtorch_convert import GTorch, RawTensor

_api = ctypes.pythonapi


def _function(name, result, *arguments):
    """Private copies: those of ctypes.pythonapi are shared with everything in the process."""
    return ctypes.PYFUNCTYPE(result, *arguments)((name, _api))


capsule_new = _function('PyCapsule_New', ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
capsule_is_valid = _function('PyCapsule_IsValid', ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
capsule_pointer = _function('PyCapsule_GetPointer', ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
_set_name = _function('PyCapsule_SetName', ctypes.c_int, ctypes.py_object, ctypes.c_char_p)

# Python stores only the address of a capsule's name: these must stay alive.
NAMES = {v: GTorch.dlpack_get_capsule_name(v, False).encode() for v in (False, True)}
USED = {v: GTorch.dlpack_get_capsule_name(v, True).encode() for v in (False, True)}


class Given:
    """The capsules that were passed to others, some of which are never consumed.

    A capsule has no destructor in Python: a library that refuses the contents of a capsule drops it with
    its exception set, and no Python code can run then without losing the exception. So the capsules are
    kept here until there is no other reference, which is checked when another is created and when
    Python's garbage collector runs, as it also does under memory pressure."""

    def __init__(self):
        self.capsules = collections.deque()
        gc.callbacks.append(self.collect)

    def add(self, capsule):
        self.collect('stop')
        self.capsules.append(capsule)
        return capsule

    def collect(self, phase, _info=None):
        if phase != 'stop':
            return
        for _ in range(len(self.capsules)):
            try:
                capsule = self.capsules.popleft()
            except IndexError:  # another thread does the same
                return
            if sys.getrefcount(capsule) > ALONE:
                self.capsules.append(capsule)
            else:
                self.drop(capsule)

    @staticmethod
    def drop(capsule):
        for versioned, name in NAMES.items():
            if capsule_is_valid(capsule, name):  # it was not consumed
                GTorch.dlpack_delete(capsule_pointer(capsule, name), versioned)


# reference count of an object that only a variable refers to: the variable, and the argument of
# getrefcount()
ALONE = 2
_given = Given()


# DLPack's device types and names of streams.
CPU = (1, 0)  # kDLCPU
GPU_KINDS = (2, 13)  # kDLCUDA, kDLCUDAManaged
ANY, ITS_DEFAULT, PER_THREAD = -1, 1, 2


def _consumer(self, stream):
    """Returns the stream on which the memory will be used; None if that is unknown, and the host waits."""
    if stream is None or stream == PER_THREAD or self.device.type != 'cuda':
        return None  # each thread has another queue under the name of PER_THREAD
    stream = index(stream)
    if stream == ANY:
        return GTorch.Stream.get_current(self.device)
    if stream < ANY or stream == 0:
        raise ValueError(f'__dlpack__(): {stream} is no stream of CUDA for DLPack, which counts from 1')
    return GTorch.Stream.new_from_address(self.device, 0 if stream == ITS_DEFAULT else stream)


def export(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    """Returns the capsule that another library's from_dlpack() takes. @stream is the address of a queue
    whose later work sees the present elements; with -1 the library synchronises itself."""
    if dl_device is not None and tuple(dl_device) != device(self):
        if tuple(dl_device) != CPU or copy is False:
            how = '' if tuple(dl_device) != CPU else ' without a copy'
            raise BufferError(f'the tensor is on device {device(self)}, not on {tuple(dl_device)}{how}')
        self, stream, copy = self.cpu(), None, False
    versioned = max_version is not None and max_version[0] >= 1
    address = self.export_dlpack(versioned, bool(copy), _consumer(self, stream))
    return _given.add(capsule_new(address, NAMES[versioned], None))


def device(self):
    """Returns the type and the index of the device in DLPack."""
    return tuple(int(v) for v in self.get_dlpack_device())


def ask(source):
    """Returns the capsule of an object, created for this thread's current stream of the GPU that has the
    memory."""
    options = {}
    kind, number = getattr(source, '__dlpack_device__', lambda: (1, 0))()
    if int(kind) in GPU_KINDS:
        stream = GTorch.Stream.get_current(GTorch.Device.cuda(int(number)))
        options['stream'] = stream.get_address() or ITS_DEFAULT
    try:
        return source.__dlpack__(max_version=(1, 1), **options)
    except TypeError:  # a library from before DLPack 1.0
        return source.__dlpack__(**options)


# DLDataType's code, behind the address, the device and the number of dimensions of a DLTensor, and its
# value for a bool.
CODE, BOOL = 20, 6


def ask_for_bools(array):
    """Returns the capsule of an array of bools of numpy, which shares all but those: that of its bytes as bools."""
    capsule = array.view('u1').__dlpack__()
    ctypes.c_uint8.from_address(capsule_pointer(capsule, NAMES[False]) + CODE).value = BOOL
    return capsule


def import_capsule(capsule):
    """Returns a tensor that aliases the memory of the capsule, and consumes the capsule."""
    for versioned, name in NAMES.items():
        if capsule_is_valid(capsule, name):
            made = RawTensor.import_dlpack(capsule_pointer(capsule, name), versioned)
            _set_name(capsule, USED[versioned])
            return made
    raise TypeError('from_dlpack takes a capsule that was not used before, or an object with __dlpack__')
