# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Devices, streams, events and graphs; GTorch.cuda."""

from contextlib import contextmanager

from gi.overrides import override
from gi.repository import GLib

from gi.overrides import _gtorch_memory as memory
from gi.overrides._gtorch_context import awaitable
from gi.overrides._gtorch_convert import GTorch, convert_device, convert_enum

OVERRIDES = 'gi.overrides.GTorch'  # override() finds the namespace by it


class Device(GTorch.Device):
    """GTorch.Device('cpu'), GTorch.Device('cuda:0'), GTorch.Device('cuda', 0)"""

    __module__ = OVERRIDES

    def __new__(cls, type, index=None):
        return convert_device(type if index is None else f'{type}:{index}')

    def __init__(self, *_args, **_kwargs):
        pass

    type = property(lambda self: str(self.get_property('type').value_nick))
    index = property(lambda self: self.get_index())

    def __repr__(self):
        return f"GTorch.Device('{self.to_string()}')"

    __str__ = GTorch.Device.to_string

    def __reduce__(self):
        return convert_device, (self.to_string(),)

    def __enter__(self):
        self.__dict__.setdefault('_before', []).append(GTorch.get_default_device())
        GTorch.set_default_device(self)
        return self

    def __exit__(self, *_exception):
        GTorch.set_default_device(self._before.pop())
        return False


class Stream(GTorch.Stream):
    """An in-order queue: GTorch.Stream('cpu')."""

    __module__ = OVERRIDES

    def __new__(cls, device=None, priority=0):
        return GTorch.Stream.new(convert_device(device) or GTorch.Device.get_current(), priority)

    def __init__(self, *_args, **_kwargs):
        pass

    def synchronize(self, cancellable=None):
        """Waits until all work is done."""
        return GTorch.Stream.synchronize(self, cancellable)

    def wait(self, cancellable=None):
        """To await in asyncio: all work is done."""
        return awaitable(self.synchronize_async, self.synchronize_finish, cancellable=cancellable)

    def query(self):
        return self.is_idle()

    def __enter__(self):
        self.__dict__.setdefault('_before', []).append(GTorch.Stream.get_current(self.get_device()))
        GTorch.Stream.set_current(self)
        return self

    def __exit__(self, *_exception):
        GTorch.Stream.set_current(self._before.pop())
        return False


class Event(GTorch.Event):
    """A mark in a stream: GTorch.Event(enable_timing=True)."""

    __module__ = OVERRIDES

    def __new__(cls, enable_timing=False, blocking=False, interprocess=False):
        flags = GTorch.EventFlags.NONE
        if enable_timing:
            flags |= GTorch.EventFlags.TIMING
        if blocking:
            flags |= GTorch.EventFlags.BLOCKING
        if interprocess:
            flags |= GTorch.EventFlags.INTERPROCESS
        return GTorch.Event.new(flags)

    def __init__(self, *_args, **_kwargs):
        pass

    def record(self, stream=None):
        return GTorch.Event.record(self, stream)

    def wait(self, stream=None):
        return GTorch.Event.wait(self, stream)

    def synchronize(self, cancellable=None):
        return GTorch.Event.synchronize(self, cancellable)

    def wait_async(self, cancellable=None):
        """To await in asyncio: the event happened."""
        return awaitable(self.synchronize_async, self.synchronize_finish, cancellable=cancellable)

    def elapsed_time(self, end):
        """Milliseconds between two events with timing."""
        return self.get_elapsed_ms(end)

    def ipc_handle(self, device=None):
        """Bytes by which another process gets the event: Event.from_ipc_handle(device, handle)."""
        return self.get_ipc_handle(None if device is None else _device(device)).get_data()

    @classmethod
    def from_ipc_handle(cls, device, handle):
        """The event of another process."""
        return GTorch.Event.new_from_ipc_handle(_device(device), GLib.Bytes.new(handle))


class Timer(GTorch.Timer):
    """How long work takes: with GTorch.Timer() as timer: ...; then timer.elapsed_ms."""

    __module__ = OVERRIDES

    def __new__(cls, stream=None):
        return GTorch.Timer.new(stream)

    def __init__(self, *_args, **_kwargs):
        pass

    elapsed_ms = property(lambda self: self.get_elapsed_ms())

    def stop(self, cancellable=None):
        """Milliseconds since the start; waits for the work."""
        return GTorch.Timer.stop(self, cancellable)

    def wait(self, cancellable=None):
        """To await in asyncio: milliseconds since the start."""
        return awaitable(self.stop_async, self.stop_finish, cancellable=cancellable)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, *_exception):
        if kind is None:
            self.stop()
        return False


class CUDAGraph(GTorch.CUDAGraph):
    """Work recorded once and replayed; use with GTorch.cuda.graph()."""

    __module__ = OVERRIDES

    def replay(self, stream=None):
        if stream is not None:
            return self.replay_on(stream)
        return GTorch.CUDAGraph.replay(self)


@contextmanager
def stream(value):
    """with GTorch.cuda.stream(s): the work of the block goes to the stream."""
    if value is None:
        yield None
        return
    before = GTorch.Stream.get_current(value.get_device())
    GTorch.Stream.set_current(value)
    try:
        yield value
    finally:
        GTorch.Stream.set_current(before)


@contextmanager
def graph(cuda_graph, pool=None, stream=None, capture_error_mode='thread_local'):
    """with GTorch.cuda.graph(g): the work of the block is recorded, not done."""
    mode = convert_enum(GTorch.CaptureMode, capture_error_mode)
    capture = GTorch.GraphCapture.new(cuda_graph, stream, pool, mode)
    try:
        yield cuda_graph
    except BaseException:
        try:
            capture.end()
        except Exception:
            pass  # the first error is the one to hear of
        raise
    capture.end()


def _manager():
    return GTorch.DeviceManager.get_default()


def _device(device):
    return convert_device(device) or GTorch.Device.get_current()


def _gpu(device):
    return _device('cuda' if device is None else device)


def _changes_nothing(value):
    return value is None or (isinstance(value, int) and value < 0)


def set_device(value):
    """Makes a GPU the one that is called `cuda` in this thread."""
    if not _changes_nothing(value):
        GTorch.Device.set_current(_device(value))


@contextmanager
def device(value):
    """with GTorch.cuda.device(1): what is called `cuda` in the block, in this thread, is that GPU."""
    if _changes_nothing(value):
        yield
        return
    guard = GTorch.DeviceGuard.new(_device(value))
    try:
        yield
    finally:
        guard.end()


def synchronize(device=None, cancellable=None):
    """Waits until all work of a device is done."""
    return _device(device).synchronize(cancellable)


def init():
    """Makes the current GPU ready, which otherwise the first operation does; an error if there is none."""
    convert_device('cuda')
    GTorch.init()


DOMAIN = 'gtorch-1'  # of translations


def get_option_group():
    """The options --device, --disable-cuda and --threads, for GLib.OptionContext.add_group().

    GTorch.parse_options() does the same for other parsers, GTorch.add_options() for a Gio.Application.
    """
    given = []

    def take(name, value, _group):
        given.append(name if value is None else f'{name}={value}')
        GTorch.parse_options(given)

    def text(message):
        return GLib.dgettext(DOMAIN, message)

    GTorch.parse_options([])  # a device is chosen in any case
    # The class of PyGObject's own context: it has no hook for the end, and no other class will do.
    group = GLib.OptionGroup('gtorch', text('GTorch Options:'), text('Show GTorch options'), take)
    group.add_entries(
        [
            ('device', b'\0', 0, text('Compute on this device'), text('cpu|cuda|cuda:N')),
            ('disable-cuda', b'\0', int(GLib.OptionFlags.NO_ARG), text('Compute on the CPU'), ''),
            ('threads', b'\0', 0, text('Use this many CPU threads'), 'N'),
        ]
    )
    return group


CUDA = {
    'init': init,
    'is_available': lambda: _manager().is_available(),
    'device_count': lambda: _manager().get_device_count(),
    'device': device,
    'set_device': set_device,
    'current_device': lambda: convert_device('cuda').get_index(),
    'get_device_name': lambda device=None: _gpu(device).get_name(),
    'get_device_capability': lambda device=None: tuple(_gpu(device).get_capability()),
    'get_device_properties': lambda device=None: _gpu(device).props,
    'get_arch_list': lambda: GTorch.get_arch_list(),
    'can_device_access_peer': lambda device, peer: _gpu(device).can_access_peer(_gpu(peer)),
    'synchronize': synchronize,
    'current_stream': lambda device=None: GTorch.Stream.get_current(_device(device)),
    'default_stream': lambda device=None: _device(device).get_default_stream(),
    'set_stream': lambda value: GTorch.Stream.set_current(value),
    **memory.CUDA,
    'stream': stream,
    'graph': graph,
}


def _collect(_device, _n_bytes):
    import gc

    gc.collect()


def install(export, submodule, _ops):
    members = dict(CUDA)
    for cls in (Device, Stream, Event, Timer, CUDAGraph, memory.MemoryPool):
        members[cls.__name__] = export(cls.__name__, override(cls))
    export('device', members['Device'])
    export('get_option_group', get_option_group)
    export('manual_seed', lambda seed: GTorch.manual_seed(seed % 2**64))
    del members['Device']
    cuda = submodule('cuda', 'GPUs, and the same classes for the CPU.', members)
    cuda.memory = submodule('cuda.memory', 'The memory of devices.', memory.MEMORY)
    # Only objects in cycles wait for Python's collector, but those may hold large tensors.
    GTorch.Device.cpu().connect('memory-pressure', _collect)
