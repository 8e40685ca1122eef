# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Devices, streams and events; GTorch.cuda."""


from gi.overrides import override
from gi.repository import GLib

from gi.overrides import _gtorch_memory as memory
from gi.overrides._gtorch_arguments import described
from gi.overrides._gtorch_context import Block, Decorator, awaitable, enter, leave
from gi.overrides._gtorch_convert import (
    GTorch,
    RawTensor,
    convert_bool,
    convert_device,
    convert_seed,
    convert_whole,
    cuda_device,
    for_gpus,
    of_type,
    names_device,
)
from gi.overrides._gtorch_mixin import mixin
from gi.overrides._gtorch_properties import final, initialize

OVERRIDES = 'gi.overrides.GTorch'  # override() finds the namespace through it


@final
class Device(GTorch.Device):
    """GTorch.Device('cpu'), GTorch.Device('cuda:0'), GTorch.Device('cuda', 0)

    GTorch.Device('cuda') is the GPU that is current when it is used. In a block, `with device:`, tensors
    are created on the device by default."""

    __module__ = OVERRIDES

    def __new__(cls, type, index=None):
        if type is None:
            raise TypeError("a device is 'cpu', 'cuda' or 'cuda:N', or the number of a GPU, not None")
        return convert_device(type if index is None else f'{type}:{index}')

    def __init__(self, *_args, **_kwargs):
        pass

    type = property(lambda self: str(self.get_property('type').value_nick))
    index = property(lambda self: None if self.get_index() < 0 else self.get_index())

    def __repr__(self):
        return f"GTorch.Device('{self.to_string()}')"

    __str__ = GTorch.Device.to_string

    def __reduce_ex__(self, _protocol):
        from gi.overrides import _gtorch_unpickle as unpickle

        return unpickle.device, (self.to_string(),)

    def __copy__(self):
        return self

    def __deepcopy__(self, _memo):
        return self

    def __enter__(self):
        return enter(self, GTorch.DefaultDeviceGuard.new(self))

    def __exit__(self, *_exception):
        return leave(self)


@final
class Stream(GTorch.Stream):
    """An in-order queue: GTorch.Stream('cpu')."""

    __module__ = OVERRIDES

    def __new__(cls, device=None, priority=0):
        return GTorch.Stream.new(convert_device(device), convert_whole(priority))

    def __init__(self, *_args, **_kwargs):
        pass

    def synchronize(self, cancellable=None):
        """Waits until all work is done."""
        return GTorch.Stream.synchronize(self, cancellable)

    def wait(self, cancellable=None):
        """Waits in asyncio until all work is done."""
        return awaitable(self.synchronize_async, self.synchronize_finish, cancellable=cancellable)

    def query(self):
        """Tells whether all work is done; does not wait."""
        return self.is_idle()

    def wait_event(self, event):
        """Lets the stream's further work begin when the event is complete."""
        GTorch.Stream.wait_event(self, event)

    def wait_stream(self, stream):
        """Lets the stream's further work begin when what the other has now is done."""
        GTorch.Stream.wait_stream(self, stream)

    def record_event(self, event=None):
        """Records an event, a new one if there is none given, behind the work that the stream has now; returns it."""
        if event is None:
            return GTorch.Stream.record_event(self)
        event.record(self)
        return event

    @staticmethod
    def priority_range():
        """The lowest and the highest priority of streams of the current GPU."""
        return tuple(cuda_device().get_stream_priority_range())

    priority = property(lambda self: self.get_priority())
    device_index = property(lambda self: self.get_device().index)
    device_type = property(lambda self: self.get_device().type)
    cuda_stream = property(lambda self: for_gpus(self).get_address())

    def __repr__(self):
        if self.get_device().type != 'cuda':
            return f'<GTorch.Stream device={self.get_device()}>'
        return f'<GTorch.cuda.Stream device={self.get_device()} cuda_stream={self.cuda_stream:#x}>'

    def __enter__(self):
        return enter(self, GTorch.StreamGuard.new(self))

    def __exit__(self, *_exception):
        return leave(self)


if mixin is not None:
    mixin.add_blocks(Stream)


@final
class Event(GTorch.Event):
    """A position in a stream: GTorch.Event(enable_timing=True)."""

    __module__ = OVERRIDES

    def __new__(cls, enable_timing=False, blocking=False, interprocess=False, external=False, device=None):
        if not isinstance(enable_timing, int) and names_device(enable_timing):  # the first argument of torch.Event()
            enable_timing, device = False, enable_timing
        if convert_bool(external):
            raise NotImplementedError('Event(): external=True is not supported: a graph has its own events only')
        flags = GTorch.EventFlags.NONE
        if convert_bool(enable_timing):
            flags |= GTorch.EventFlags.TIMING
        if convert_bool(blocking):
            flags |= GTorch.EventFlags.BLOCKING
        if convert_bool(interprocess):
            flags |= GTorch.EventFlags.INTERPROCESS
        event = GTorch.Event.new(flags)
        if device is not None:
            event.__dict__[DEVICE] = convert_device(device)
        return event

    def __init__(self, *_args, **_kwargs):
        pass

    def _stream(self, stream):
        if stream is None and DEVICE in self.__dict__:
            return GTorch.Stream.get_current(self.__dict__[DEVICE])
        if not is_for_gpus(self):
            return stream
        return current_stream() if stream is None else for_gpus(of_type(stream, GTorch.Stream, 'stream'))

    def query(self):
        """Tells whether what the event was recorded behind is done; does not wait."""
        return GTorch.Event.query(self)

    def record(self, stream=None):
        """Records the event behind the work that a stream has now, by default the current one."""
        return GTorch.Event.record(self, self._stream(stream))

    def wait(self, stream=None):
        """Lets the further work of a stream, by default the current one, begin when the event is complete."""
        return GTorch.Event.wait(self, self._stream(stream))

    def synchronize(self, cancellable=None):
        """Waits until the event is complete."""
        return GTorch.Event.synchronize(self, cancellable)

    def wait_async(self, cancellable=None):
        """Waits in asyncio until the event is complete."""
        return awaitable(self.synchronize_async, self.synchronize_finish, cancellable=cancellable)

    def elapsed_time(self, end_event):
        """Returns the milliseconds between two events with timing."""
        return self.get_elapsed_ms(end_event)

    def ipc_handle(self, device=None):
        """Returns the bytes with which another process opens the event: Event.from_ipc_handle(device,
        handle)."""
        if device is None and is_for_gpus(self):
            device = cuda_device()
        return self.get_ipc_handle(convert_device(device)).get_data()

    @classmethod
    def from_ipc_handle(cls, device, handle):
        """Opens the event of another process."""
        return GTorch.Event.new_from_ipc_handle(cuda_device(device), GLib.Bytes.new(handle))


@final
class Timer(GTorch.Timer):
    """Measures the time of work: with GTorch.Timer() as timer: ...; then timer.elapsed_ms."""

    __module__ = OVERRIDES

    def __new__(cls, stream=None):
        return GTorch.Timer.new(stream)

    def __init__(self, *_args, **_kwargs):
        pass

    elapsed_ms = property(lambda self: self.get_elapsed_ms())

    def start(self):
        """Starts behind the work that is now in the stream's queue."""
        if not is_for_gpus(self):
            return GTorch.Timer.start(self)
        with device(None if self.get_stream() else cuda_device()):
            return GTorch.Timer.start(self)

    def stop(self, cancellable=None):
        """The milliseconds since the start; waits for the work."""
        return GTorch.Timer.stop(self, cancellable)

    def wait(self, cancellable=None):
        """Waits in asyncio; returns the milliseconds since the start."""
        return awaitable(self.stop_async, self.stop_finish, cancellable=cancellable)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, *_exception):
        if kind is None:
            self.stop()
        return False


class Generator(GTorch.Generator):
    """Random numbers: GTorch.Generator(device='cpu'), for one device; without a device, for every one."""

    __module__ = OVERRIDES

    def __new__(cls, device=None):
        device = convert_device(device)
        return GTorch.Generator.new() if device is None else GTorch.Generator.new_for_device(device)

    def __init__(self, device=None):
        pass

    def manual_seed(self, seed):
        """Begins the numbers that belong to a seed, and returns the generator."""
        GTorch.Generator.set_seed(self, seed)
        return self

    def seed(self):
        """Begins numbers that differ each time, and returns their seed."""
        self.seed_from_entropy()
        return self.get_seed()

    def initial_seed(self):
        """The seed whose numbers the generator gives."""
        return self.get_seed()

    def get_state(self):
        """Where in its numbers the generator is, a tensor of bytes."""
        state = GTorch.Generator.get_state(self)
        return RawTensor.new_from_bytes(state, GTorch.DType.UINT8, [state.get_size()])

    def set_state(self, state):
        """Continues where the generator was when get_state() gave this tensor, or where GLib.Bytes tell."""
        GTorch.Generator.set_state(self, _bytes_of('set_state', state))


def _bytes_of(name, state):
    if isinstance(state, GLib.Bytes):
        return state
    if not isinstance(state, RawTensor):
        raise TypeError(f'{name}(): the state must be a tensor of bytes, not {type(state).__name__}')
    if state.dtype != GTorch.DType.UINT8 or state.dim() != 1:
        shape = tuple(state.shape)
        raise TypeError(f'{name}(): the state must be a vector of uint8, not of shape {shape} and {state.dtype}')
    return state.cpu().get_bytes()


# The attribute with the device of an Event.
DEVICE = '_device'
CHECKED = '_is_of_a_gpu'  # an attribute of streams that are not of the CPU
# The attribute with GTorch.cuda's version of a class that works on all devices.
FOR_GPUS = '_for_gpus'


def is_for_gpus(made):
    return FOR_GPUS in made.__dict__


HIDDEN = {Event: ('device',)}  # arguments that GTorch.cuda's version has not


class _ForGpus(type):
    """A class of GTorch.cuda: its objects are on the current GPU and never on the CPU; without a GPU it
    raises."""

    def __init__(cls, name, bases, members):
        if bases:
            raise TypeError(f'{name}: {bases[0].__name__} cannot be derived from')
        super().__init__(name, bases, members)

    def __call__(cls, *args, **kwargs):
        return cls.make(*args, **kwargs)

    @property
    def __signature__(cls):
        from inspect import signature

        likeness = signature(cls.make if cls.is_named else cls.general.__new__)
        hidden = () if cls.is_named else ('cls', *HIDDEN.get(cls.general, ()))
        return likeness.replace(parameters=[one for one in likeness.parameters.values() if one.name not in hidden])

    def __instancecheck__(cls, value):
        return isinstance(value, cls.general) and cls.has(value)

    def __getattr__(cls, name):
        return getattr(cls.general, name)


def _for_gpus(cls, make, has, name=None):
    members = {'general': cls, 'make': staticmethod(make), 'has': staticmethod(has), '__doc__': cls.__doc__}
    members['is_named'] = name is not None
    return _ForGpus(name or cls.__name__, (), members)


def _marked(cls):
    """Its objects belong to no device, but those created here use the current GPU's current stream."""

    def make(*args, **kwargs):
        cuda_device()
        made = cls(*args, **kwargs)
        made.__dict__[FOR_GPUS] = True
        return made

    return _for_gpus(cls, make, is_for_gpus)


def _placed(cls):
    """Its objects are created on the device that is the first argument."""

    def make(device=None, *args, **kwargs):
        return cls(cuda_device(device), *args, **kwargs)

    return _for_gpus(cls, make, lambda made: made.get_device().type == 'cuda')


def _manager():
    return GTorch.DeviceManager.get_default()


def _changes_nothing(value):
    return value is None or (isinstance(value, int) and not isinstance(value, GTorch.DType) and value < 0)


def set_device(device):
    """Makes a GPU the one that `cuda` means in this thread; a negative number changes nothing."""
    if not _changes_nothing(device):
        GTorch.Device.set_current(cuda_device(device))


class device(Block):  # noqa: N801, the name is PyTorch's
    """with GTorch.cuda.device(1): what is called `cuda` in the block, in this thread, is that GPU."""

    def __init__(self, device):
        self.idx = -1 if _changes_nothing(device) else cuda_device(device).get_index()
        super().__init__(lambda: None if self.idx < 0 else GTorch.DeviceGuard.new(cuda_device(self.idx)))


class StreamContext(Decorator):
    """with GTorch.cuda.stream(s): the work of the block goes to the stream."""

    def __init__(self, stream):
        if stream is not None and CHECKED not in getattr(stream, '__dict__', ()):
            for_gpus(of_type(stream, GTorch.Stream, 'stream(): stream')).__dict__[CHECKED] = True
        self.stream = stream

    def __enter__(self):
        return None if self.stream is None else self.stream.__enter__()

    def __exit__(self, *exception):
        return False if self.stream is None else self.stream.__exit__(*exception)


def stream(stream):
    """with GTorch.cuda.stream(s): the work of the block goes to the stream."""
    return StreamContext(stream)


def current_stream(device=None):
    """The stream to which this thread's work on the current GPU, or another one, goes."""
    return GTorch.Stream.get_current(cuda_device(device))


current_stream = described(current_stream)


def set_stream(stream):
    """Makes a stream the current one of its device, and its device the current one."""
    if stream is not None:
        GTorch.Stream.set_current(for_gpus(of_type(stream, GTorch.Stream, 'set_stream(): stream')))


def _generator(device=None):
    return cuda_device(device).get_default_generator()


def _all_gpus():
    return range(_manager().get_device_count())


def manual_seed(seed):
    """Seeds random operations on the current GPU; does nothing without one."""
    seed = convert_seed(seed)
    if _all_gpus():
        _generator().set_seed(seed)


def manual_seed_all(seed):
    """Seeds random operations on all GPUs; does nothing without one."""
    seed = convert_seed(seed)
    for index in _all_gpus():
        _generator(index).set_seed(seed)


def synchronize(device=None, cancellable=None):
    """Waits until all work of the current GPU, or another one, is done."""
    return cuda_device(device).synchronize(cancellable)


def init():
    """Initialises the current GPU, which otherwise the first operation does; raises if there is none."""
    cuda_device()
    GTorch.init()


DOMAIN = 'gtorch-1'  # of the translations


def get_option_group():
    """Returns the options --device, --disable-cuda and --threads, for GLib.OptionContext.add_group().

    GTorch.parse_options() does the same for other parsers, GTorch.add_options() for a Gio.Application.
    """
    given = []

    def take(name, value, _group):
        given.append(name if value is None else f'{name}={value}')
        GTorch.parse_options(given)

    def text(message):
        return GLib.dgettext(DOMAIN, message)

    GTorch.parse_options([])  # a device is chosen in any case
    # The class of PyGObject's own context: it has no hook for the end, and no other class works.
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
    'current_device': lambda: cuda_device().get_index(),
    'get_device_name': lambda device=None: cuda_device(device).get_name(),
    'get_device_capability': lambda device=None: tuple(cuda_device(device).get_capability()),
    'get_arch_list': lambda: GTorch.get_arch_list(),
    'can_device_access_peer': lambda device, peer_device: cuda_device(device).can_access_peer(
        cuda_device(peer_device)
    ),
    'synchronize': synchronize,
    'current_stream': current_stream,
    'default_stream': lambda device=None: cuda_device(device).get_default_stream(),
    'set_stream': set_stream,
    'manual_seed': manual_seed,
    'manual_seed_all': manual_seed_all,
    'initial_seed': lambda: _generator().get_seed(),
    'get_rng_state': lambda device='cuda': _generator(device).get_state(),
    'set_rng_state': lambda new_state, device='cuda': _generator(device).set_state(new_state),
    **memory.CUDA,
    'stream': stream,
    'StreamContext': StreamContext,
}


def install(export, submodule, _ops):
    members = dict(CUDA)
    makers = {Stream: _placed, memory.MemoryPool: _placed, Event: _marked, Timer: _marked}
    for cls in (Device, Stream, Event, Timer, Generator, memory.MemoryPool, memory.MemorySource):
        made = export(cls.__name__, override(cls))
        if cls is Generator:
            continue
        members[cls.__name__] = makers.get(cls, lambda cls: cls)(made)
    export('device', members['Device'])
    export('current_stream', lambda device=None: GTorch.Stream.get_current(convert_device(device)))
    export('get_option_group', get_option_group)
    export('set_default_device', lambda device: GTorch.set_default_device(convert_device(device)))
    export('set_num_threads', lambda n_threads: GTorch.set_num_threads(convert_whole(n_threads)))
    export('manual_seed', lambda seed: GTorch.manual_seed(convert_seed(seed)))
    set_seed = GTorch.Generator.set_seed
    GTorch.Generator.set_seed = lambda self, seed: set_seed(self, convert_seed(seed))
    del members['Device']
    pool = members['MemoryPool']
    pools = {'MemPool': _for_gpus(pool.general, memory.mem_pool, pool.has, 'MemPool')}
    members.update(pools)
    cuda = submodule('cuda', 'GPUs: of several the current one, and never the CPU by itself.', members)
    cuda.memory = submodule('cuda.memory', 'The memory of devices.', {**memory.MEMORY, **pools})
