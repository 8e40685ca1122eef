# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Counts what a program launches on a GPU, without the profiler's help.

The driver of the tests counts its calls. With NVIDIA's, CUPTI calls a function at each call of the driver or of the
runtime; the profiler has no part in that: it reads CUPTI's records of what is done."""

import collections
import ctypes
import os

KINDS = {'cuLaunchKernel': 'kernel', 'cuLaunchCooperativeKernel': 'kernel', 'cudaLaunchKernel': 'kernel',
         'cudaLaunchCooperativeKernel': 'kernel', 'cuMemcpy': 'gpu_memcpy', 'cudaMemcpy': 'gpu_memcpy',
         'cuMemset': 'gpu_memset', 'cudaMemset': 'gpu_memset', 'cuGraphLaunch': 'graph',
         'cudaGraphLaunch': 'graph'}  # fmt: skip
DRIVER, RUNTIME = 1, 2  # CUPTI_CB_DOMAIN_DRIVER_API and …_RUNTIME_API
N_FUNCTIONS = 2000  # CUPTI has numbers for some 900 functions of each


def kind_of(name):
    """What a function of the driver or of the runtime launches; None: nothing."""
    return next((kind for prefix, kind in KINDS.items() if name.startswith(prefix)), None)


class OfTests:
    """The driver of the tests."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.fake_cuda_get_functions.restype = ctypes.POINTER(ctypes.c_char_p)
        self.names, functions = [], self.library.fake_cuda_get_functions()
        while functions[len(self.names)] is not None:
            self.names.append(functions[len(self.names)])

    def counts(self):
        found = collections.Counter()
        for name in self.names:
            kind = kind_of(name.decode())
            if kind is not None:
                found[kind] += self.library.fake_cuda_get_calls(name)
        return found

    def begin(self):
        self.before = self.counts()

    def end(self):
        return {kind: number - self.before[kind] for kind, number in self.counts().items()}


class Call(ctypes.Structure):
    """CUpti_CallbackData."""

    _fields_ = [('site', ctypes.c_int), ('function', ctypes.c_char_p), ('parameters', ctypes.c_void_p),
                ('result', ctypes.c_void_p), ('symbol', ctypes.c_char_p), ('context', ctypes.c_void_p),
                ('context_number', ctypes.c_uint32), ('data', ctypes.c_void_p),
                ('correlation', ctypes.c_uint32)]  # fmt: skip


FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.POINTER(Call))


class OfCupti:
    """NVIDIA's driver. A call of the runtime that calls the driver has one number there: it is counted once."""

    def __init__(self, path):
        self.library, self.function, self.subscriber = ctypes.CDLL(path), FUNCTION(self.called), ctypes.c_void_p()
        self.names, self.seen = {}, {}
        for domain in (DRIVER, RUNTIME):
            for number in range(1, N_FUNCTIONS):
                name = ctypes.c_char_p()
                if self.library.cuptiGetCallbackName(domain, number, ctypes.byref(name)) == 0 and name.value:
                    kind = kind_of(name.value.decode())
                    if kind is not None:
                        self.names[domain, number] = kind

    def called(self, _data, domain, number, call):
        kind = self.names.get((domain, number))
        if kind is not None and call.contents.site == 0:  # CUPTI_API_ENTER
            self.seen[call.contents.correlation] = kind

    def check(self, name, *arguments):
        result = getattr(self.library, name)(*arguments)
        if result != 0:
            raise RuntimeError(f'{name}() returned {result}')

    def begin(self):
        self.check('cuptiSubscribe', ctypes.byref(self.subscriber), self.function, None)
        for domain, number in self.names:
            self.check('cuptiEnableCallback', 1, self.subscriber, domain, number)
        self.seen.clear()

    def end(self):
        self.check('cuptiUnsubscribe', self.subscriber)
        return dict(collections.Counter(self.seen.values()))


def make_counter():
    """Of the driver that is in use; None if there is none. A profiler has opened CUPTI before."""
    of_tests = os.environ.get('GTORCH_CUDA_DRIVER')
    if of_tests:
        return OfTests(of_tests)
    with open('/proc/self/maps', encoding='utf-8') as maps:
        opened = {line.split()[-1] for line in maps if '/libcupti.so' in line}
    return OfCupti(opened.pop()) if opened else None
