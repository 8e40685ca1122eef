# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""GTorch.Sample as Python's structures and back, data sets and loaders in C as Python's sequences and iterables, and
what programs derive of them or let them call."""

import atexit
import sys
import threading
import weakref

from gi.repository import Gio, GLib

from gi.overrides._gtorch_convert import GTorch, RawTensor
from gi.overrides._gtorch_errors import guard_vfuncs, own_vfunc, passes, restoring
from gi.overrides._gtorch_hooks import describe
from gi.overrides._gtorch_properties import OWN

# The virtual functions of classes that programs derive.
VFUNCS = {
    'Dataset': ('get_batch', 'get_item', 'get_length', 'get_state', 'iterate', 'set_state'),
    'Fetcher': ('begin', 'end', 'fetch', 'fetch_next'),
    'IndexSource': ('get_state', 'next'),
    'SampleSource': ('close', 'next'),
    'Sampler': ('get_length', 'iterate', 'set_state'),
}


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
    try:
        while (sample := source.next(None)) is not None:
            yield from_sample(sample)
    finally:
        source.close()


# Without the interpreter PyGObject leaves the result of a function of Python's as it finds it: no thread may call one.
_iterators = weakref.WeakSet()


@atexit.register
def _end_workers():
    for iterator in list(_iterators):
        iterator.close()


def _iterating(raw):
    def iterate(self):
        iterator = restoring(raw, self)
        _iterators.add(iterator)
        return iterator

    iterate.__doc__ = raw.__doc__
    return iterate


LOOK = 0.5  # seconds after which Python can handle signals, as those of the keyboard


def _tick(waits, ended):
    while not ended.wait(LOOK):
        waits[0].cancel()


class _Looking:
    """Waits for batches of workers in short times, between which Python handles signals: a thread cancels the wait
    every now and then, and a wait that is cancelled loses no batch."""

    def __init__(self, iterator):
        self.iterator, self.waits, self.ended = iterator, [Gio.Cancellable()], threading.Event()
        # The thread must not keep the iterator.
        self.thread = threading.Thread(target=_tick, args=(self.waits, self.ended), name='gtorch-look', daemon=True)
        self.thread.start()

    def next(self):
        while True:
            cancellable = self.waits[0]
            try:
                return self.iterator.next(cancellable)
            except GLib.Error as error:
                if not error.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CANCELLED) or not cancellable.is_cancelled():
                    raise
                self.waits[0] = Gio.Cancellable()

    def end(self):
        self.ended.set()
        # It drops an object under a lock of GLib's, which the child of a fork in that moment would never get.
        if self.thread is not threading.current_thread() and not sys.is_finalizing():
            self.thread.join()


def _batches(loader):
    iterator = loader.iterate()
    # Without workers the data set is called here, and must not be told to give up.
    looking = _Looking(iterator) if loader.num_workers > 0 else None
    take = (lambda: iterator.next(None)) if looking is None else looking.next
    try:
        while (batch := take()) is not None:
            yield from_sample(batch, list)
    finally:
        if looking is not None:
            looking.end()
        iterator.close()


# --- classes that programs derive ---


def _succeeding(function):
    """For C, which needs to know whether it succeeded: returning None counts as success."""
    return lambda self, *args: function(self, *args) is not False


def _of_indices(at):
    """Leaves out the number of indices, which C passes behind them."""
    return lambda function: lambda self, *args: function(self, *args[: at + 1], args[-1])


WRAPPERS = {
    'begin': _succeeding,
    'fetch': _of_indices(1),
    'get_batch': _of_indices(0),
    'set_state': _succeeding,
}
CANNOT_FAIL = (('Fetcher', 'end'), ('IndexSource', 'get_state'), ('SampleSource', 'close'))


def _is_outside(cls):
    """Whether a class is a program's: those of this library handle their exceptions themselves."""
    return cls.__module__ not in OWN and not cls.__module__.startswith('gtorch.')


def _guard(base, names):
    """Lets classes derived from @base define virtual functions with and without do_, whose exceptions propagate."""

    def __init_subclass__(cls, **options):
        super(base, cls).__init_subclass__(**options)
        for name in names if _is_outside(cls) else ():
            function = own_vfunc(cls, name)
            if function is None or not hasattr(base, f'do_{name}') and not hasattr(cls, f'do_{name}'):
                continue
            setattr(cls, f'do_{name}', WRAPPERS.get(name, lambda function: function)(function))
            if (base.__name__, name) not in CANNOT_FAIL:
                guard_vfuncs(cls, (name,))

    base.__init_subclass__ = classmethod(__init_subclass__)


# --- functions of programs ---


def _checked(name, function):
    if not callable(function):
        raise TypeError(f'{name}(): {function!r} cannot be called')


def _setter(name, raw, n):
    """@raw, which keeps a function that C calls with @n values and may fail; None for none."""

    def set_function(self, function, *data):
        if function is None:
            raw(self, None)
            return
        _checked(name, function)
        call = passes(describe(name, function), lambda *values: function(*values[:n], *data))
        raw(self, _not_false(call) if name == 'set_worker_init' else call)

    set_function.__name__ = set_function.__qualname__ = name
    set_function.__doc__ = raw.__doc__
    return set_function


def _not_false(call):
    return lambda *values: call(*values) is not False


def _functions_of_samples():
    kind = GTorch.Sample
    raw_map, raw_collate = kind.map_tensors, kind.collate_with

    def map_tensors(self, function, *data):
        _checked('map_tensors', function)
        call = passes(describe('map_tensors', function), lambda tensor, *_: function(tensor, *data))
        return restoring(raw_map, self, call)

    def collate_with(samples, function=None, *data):
        if function is None:
            return raw_collate(samples, None)
        _checked('collate_with', function)
        call = passes(describe('collate_with', function), lambda dtype, shape, *_: function(dtype, shape, *data))
        return restoring(raw_collate, samples, call)

    map_tensors.__doc__, collate_with.__doc__ = raw_map.__doc__, raw_collate.__doc__
    kind.map_tensors, kind.collate_with = map_tensors, staticmethod(collate_with)


def _length(raw):
    def __len__(self):
        try:
            return restoring(raw, self)
        except GLib.Error as error:
            if error.matches(GTorch.error_quark(), GTorch.Error.NOT_SUPPORTED):
                raise TypeError(error.message) from error  # list() asks, and goes on without
            raise

    return __len__


def install():
    dataset, loader = GTorch.Dataset, GTorch.DataLoader
    get_item = dataset.get_item  # which counts indices below 0 from the end, as a program's own does not
    dataset.__len__ = _length(dataset.get_length)
    dataset.__getitem__ = lambda self, index: from_sample(restoring(get_item, self, index, None))
    GTorch.IterableDataset.__iter__ = _iterate
    loader.__len__ = _length(loader.get_length)
    loader.__iter__, loader.iterate = _batches, _iterating(loader.iterate)
    for name, names in VFUNCS.items():
        _guard(getattr(GTorch, name), names)
    for cls, name in ((loader, 'set_collate'), (loader, 'set_worker_init'), (GTorch.Fetcher, 'set_collate')):
        setattr(cls, name, _setter(name, getattr(cls, name), 1))
    _functions_of_samples()
