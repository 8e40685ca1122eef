# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""GTorch.profiler and GTorch.autograd.profiler, with PyTorch's names, on the profiler of C."""

import enum
import functools
import gc
import json
import os
import sys
import warnings
import weakref
from contextlib import ContextDecorator

from gi.repository import GLib

from gi.overrides._gtorch_context import NOTHING, enter, leave
from gi.overrides._gtorch_convert import GTorch, convert_bool, convert_whole
from gi.overrides._gtorch_errors import passes, restores
from gi.overrides._gtorch_hooks import Recording, describe, is_profiling, kept
from gi.overrides._gtorch_nvtx import emit_nvtx
from gi.overrides._gtorch_profile_events import (
    DeviceType, EventList, FunctionEvent, FunctionEventAvg, Interval, Kernel, Recorded, export_stacks,
    unsupported,
)  # fmt: skip

HERE = os.path.dirname(os.path.abspath(__file__))
MAX_FRAMES = 64


class ProfilerActivity(enum.Enum):
    """What is recorded."""

    CPU = 0
    CUDA = 2


class ProfilerAction(enum.Enum):
    """What is done in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities():
    """What can be recorded here."""
    has_cuda = sys.modules['gi.repository.GTorch.cuda'].is_available()
    return {ProfilerActivity.CPU, ProfilerActivity.CUDA} if has_cuda else {ProfilerActivity.CPU}


# --- where the program is ---


def _stack(*_data):
    """The frames that are not of the library's Python, the innermost first, a line each."""
    frame, lines = sys._getframe().f_back, []  # None in a thread of the library's
    while frame is not None and len(lines) < MAX_FRAMES:
        code = frame.f_code
        if os.path.dirname(os.path.abspath(code.co_filename)) != HERE:
            lines.append(f'{code.co_filename}({frame.f_lineno}): {code.co_name}')
        frame = frame.f_back
    return '\n'.join(lines) or None


class _Told:
    """Whether C knows the function."""

    is_told = False


def _tell_stacks():
    if not _Told.is_told:
        _Told.is_told = True
        GTorch.Profiler.set_stack_func(_stack)


# --- ranges ---


class record_function(ContextDecorator):  # noqa: N801, the name is PyTorch's
    """with record_function('forward'): the block has this name in profiles, and traces show @args with it; also a
    decorator, with which each call is a range. That of a generator or a coroutine lasts until it is over, as if the
    block were around what the function does: PyTorch's ends when the object is made, before any of it has run."""

    def __init__(self, name, args=None):
        for argument, value in (('name', name), ('args', args)):
            if not isinstance(value, str) and (argument == 'name' or value is not None):
                raise TypeError(f'record_function(): {argument} must be a text, not {type(value).__name__}')
            if value is not None and '\0' in value:
                at = value.index('\0')
                raise ValueError(f'record_function(): {argument} has a NUL at {at}, with which texts end in C')
        self.name, self.args = name, args

    def _recreate_cm(self):
        return type(self)(self.name, self.args)  # calls may overlap, and each ends its own range

    def __call__(self, function):
        import inspect  # takes 5 ms, which most programs need not spend

        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def generate(*args, **options):
                with self._recreate_cm():
                    return (yield from function(*args, **options))

            return generate
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def await_(*args, **options):
                with self._recreate_cm():
                    return await function(*args, **options)

            return await_
        if inspect.isasyncgenfunction(function):

            @functools.wraps(function)
            async def iterate(*args, **options):
                with self._recreate_cm():
                    inner = function(*args, **options)
                    step, given = inner.asend, None
                    while True:
                        try:
                            value = await step(given)
                        except StopAsyncIteration:
                            return
                        try:
                            step, given = inner.asend, (yield value)
                        except GeneratorExit:
                            await inner.aclose()
                            raise
                        except BaseException as error:
                            step, given = inner.athrow, error

            return iterate
        return super().__call__(function)

    def __enter__(self):
        made = GTorch.ProfileRange.new_with_args(self.name, self.args) if is_profiling() else NOTHING
        return enter(self, made)

    def __exit__(self, *_exception):
        return leave(self)


# --- schedules ---


def schedule(*, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0):
    """A function that tells what a profiler does in each step: after @skip_first steps, cycles of @wait, @warmup and
    @active steps, @repeat times; 0: again and again."""
    wait, warmup, active, repeat, skip_first = map(convert_whole, (wait, warmup, active, repeat, skip_first))
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        text = f'wait={wait}, warmup={warmup}, active={active}, repeat={repeat} and skip_first={skip_first}'
        raise ValueError(f'schedule(): {text}: active must be above 0, and no other one below 0')
    if warmup == 0:
        warnings.warn('a profile without warmup has what recording needs at first', stacklevel=2)
    n_steps = wait + warmup + active

    def schedule_fn(step):
        step = convert_whole(step)
        if step < skip_first:
            return ProfilerAction.NONE
        step += (wait if skip_first_wait else 0) - skip_first
        if repeat > 0 and step / n_steps >= repeat:
            return ProfilerAction.NONE
        at = step % n_steps
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if at < n_steps - 1 else ProfilerAction.RECORD_AND_SAVE

    return schedule_fn


def _action(schedule, step):
    """The number of what the function says."""
    action = schedule(step)
    if not isinstance(action, ProfilerAction):
        raise TypeError(f'profile(): the schedule says {action!r} for step {step}, it must be a ProfilerAction')
    return action.value


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False):
    """A function for on_trace_ready that writes each trace into a folder, which it makes."""
    import socket
    import time

    def handler_fn(prof):
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f'{socket.gethostname()}_{os.getpid()}'
        end = '.gz' if use_gzip else ''
        prof.export_chrome_trace(os.path.join(dir_name, f'{worker}.{time.time_ns()}.pt.trace.json{end}'))

    return handler_fn


def _set_schedule_func(raw):
    """@raw, whose function is where the collector sees it, and raises out of start() and step()."""

    def set_schedule_func(self, func, *data):
        if func is None:
            raw(self, None)
            kept(self).functions.clear()
            return
        if not callable(func):
            raise TypeError(f'set_schedule_func(): {func!r} cannot be called')
        owner = weakref.ref(self)

        def call(step, *_data):
            return GTorch.ProfilerAction(int(kept(owner()).functions[0](step, *data)))

        raw(self, passes(describe('set_schedule_func', func), call))
        kept(self).functions[0] = func

    set_schedule_func.__doc__ = raw.__doc__
    return set_schedule_func


def _watch_modules(start, stop):
    """start() and stop() that tell modules in Python of profilers that record their calls. One that is lost counts on,
    which costs time only."""

    @functools.wraps(start)
    def start_and_count(self):
        result = start(self)
        kept(self).records_modules = self.props.with_modules or self.props.with_stack
        Recording.n += kept(self).records_modules
        return result

    @functools.wraps(stop)
    def stop_and_count(self):
        result = stop(self)
        Recording.n -= kept(self).__dict__.pop('records_modules', False)
        return result

    return start_and_count, stop_and_count


def _make(activities, **settings):
    made = GTorch.Profiler.new()
    flags = GTorch.ProfilerActivities(0)
    activities = supported_activities() if activities is None else set(activities)
    missing = activities & {ProfilerActivity.CUDA} - supported_activities()
    if missing:
        activities -= missing
        text = 'profile(): CUDA is among the activities, and there is no GPU that can be used'
        if not activities:
            raise RuntimeError(f'{text}: nothing would be recorded')
        warnings.warn(text, stacklevel=3)
    for one in activities:
        if one not in (ProfilerActivity.CPU, ProfilerActivity.CUDA):
            raise TypeError(f'profile(): {one!r} is not a ProfilerActivity')
        flags |= GTorch.ProfilerActivities.CPU if one == ProfilerActivity.CPU else GTorch.ProfilerActivities.CUDA
    made.props.activities = flags
    for name, value in settings.items():
        setattr(made.props, name, convert_bool(value))
    if settings['with_stack']:
        _tell_stacks()
    return made


def _path(name, path):
    if isinstance(path, (str, os.PathLike)) and not os.fspath(path):
        raise ValueError(f'{name}: the path is empty')
    return path


def _texts(name, key, value):
    for what, one in (('key', key), ('value', value)):
        if not isinstance(one, str):
            raise TypeError(f'{name}: the {what} is a str, not {type(one).__name__}')


class profile:  # noqa: N801, the name is PyTorch's
    """with profile(): … records what the block does. With @schedule, a function of the number of a step, only the steps
    are recorded that it wants, and step() tells when one is over; @on_trace_ready is called with the profile after each
    part."""

    def __init__(self, *, activities=None, schedule=None, on_trace_ready=None, record_shapes=False,
                 profile_memory=False, with_stack=False, with_flops=False, with_modules=False,
                 experimental_config=None, execution_trace_observer=None, acc_events=False, use_cuda=None,
                 custom_trace_id_callback=None, post_processing_timeout_s=None):  # fmt: skip
        unsupported('profile', experimental_config=experimental_config,
                    execution_trace_observer=execution_trace_observer,
                    custom_trace_id_callback=custom_trace_id_callback,
                    post_processing_timeout_s=post_processing_timeout_s)  # fmt: skip
        if use_cuda is not None and activities is None:
            activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * convert_bool(use_cuda)
        self._profiler = _make(activities, record_shapes=record_shapes, profile_memory=profile_memory,
                               with_stack=with_stack, with_flops=with_flops, with_modules=with_modules,
                               acc_events=acc_events)  # fmt: skip
        self.on_trace_ready, self._error, self._recorded = on_trace_ready, None, Recorded(self._profiler)
        self.record_shapes, self.profile_memory = convert_bool(record_shapes), convert_bool(profile_memory)
        self.with_stack, self.with_flops = convert_bool(with_stack), convert_bool(with_flops)
        self.with_modules, self.acc_events = convert_bool(with_modules), convert_bool(acc_events)
        for what, one in (('schedule', schedule), ('on_trace_ready', on_trace_ready)):
            if one is not None and not callable(one):
                raise TypeError(f'profile(): {what} is {one!r}, which cannot be called')
        if schedule is not None:
            self._profiler.set_schedule_func(lambda step: _action(schedule, step))
        # Of this object the signal knows weakly: one that is dropped goes at once, and others may record then.
        ready = weakref.WeakMethod(self._ready)
        self._profiler.connect('trace-ready', lambda profiler: ready() and ready()(profiler))

    def _ready(self, _profiler):
        self._recorded = Recorded(self._profiler)
        if self.on_trace_ready is None:
            return
        try:
            self.on_trace_ready(self)
        except BaseException as error:  # noqa: B902, step() or stop() raises it
            self._error = error

    def _raise(self):
        error, self._error = self._error, None
        if error is not None:
            raise error

    @property
    def step_num(self):
        return self._profiler.get_step_number()

    @property
    def current_action(self):
        return ProfilerAction(int(self._profiler.get_action()))

    @property
    def profiler(self):
        """The profile, with the methods of autograd.profiler.profile."""
        made = _SimpleProfile.__new__(_SimpleProfile)
        made.enabled, made._made = True, self
        return made

    @property
    def gpu_message(self):
        """Why kernels and copies are not, or not all, in the profile; None if there is nothing to tell."""
        return self._profiler.get_gpu_message()

    def start(self):
        try:
            self._profiler.start()
        except GLib.Error as error:
            if not error.matches(GTorch.error_quark(), GTorch.Error.INVALID):
                raise
            gc.collect()  # another one that records may have been lost in a cycle, with an exception
            self._profiler.start()

    def stop(self):
        self._profiler.stop()
        self._recorded = Recorded(self._profiler)
        self._raise()

    def step(self):
        """Tells that a step is over."""
        self._profiler.step()
        self._recorded = Recorded(self._profiler)  # also of a schedule that drops what it has recorded
        self._raise()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_exception):
        self.stop()

    def events(self):
        """The events, by the time at which they began."""
        return self._recorded.events()

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        """The events of each name, added up."""
        return self._recorded.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path):
        """Writes a trace for Perfetto, compressed if the name ends with .gz."""
        self._profiler.export_chrome_trace(_path('export_chrome_trace', path), None)

    def export_stacks(self, path, metric='self_cpu_time_total'):
        """Writes frames and times for flame graphs."""
        export_stacks(self._profiler, _path('export_stacks', path), metric)

    def export_memory_timeline(self, path, device=None):
        """Writes the memory over time, as .json or .raw.json, with .gz behind it compressed, or as a page, .html."""
        if device is not None and not isinstance(device, GTorch.Device):
            device = GTorch.Device.new_from_string(str(device))
        self._profiler.export_memory_timeline(_path('export_memory_timeline', path), device, None)

    def add_metadata(self, key, value):
        """Adds a text to the trace."""
        _texts('add_metadata', key, value)
        self._profiler.add_metadata_json(key, json.dumps(value))

    def add_metadata_json(self, key, value):
        """Adds a value in JSON to the trace."""
        _texts('add_metadata_json', key, value)
        self._profiler.add_metadata_json(key, value)

    def preset_metadata_json(self, key, value):
        """Adds a value in JSON to the trace."""
        _texts('preset_metadata_json', key, value)
        self._profiler.add_metadata_json(key, value)


class _SimpleProfile:
    """with autograd.profiler.profile() as prof: … records what the block does."""

    def __init__(self, enabled=True, *, use_cuda=False, use_device=None, record_shapes=False, with_flops=False,
                 profile_memory=False, with_stack=False, with_modules=False, use_kineto=False, use_cpu=True,
                 experimental_config=None, acc_events=False, custom_trace_id_callback=None,
                 post_processing_timeout_s=None):  # fmt: skip
        if use_device not in (None, 'cuda'):
            unsupported('profile', use_device=use_device)
        use_cuda = convert_bool(use_cuda) or use_device is not None
        wanted = [ProfilerActivity.CPU] * convert_bool(use_cpu) + [ProfilerActivity.CUDA] * use_cuda
        self.enabled = convert_bool(enabled)
        self._made = profile(
            activities=wanted, record_shapes=record_shapes, with_flops=with_flops, profile_memory=profile_memory,
            with_stack=with_stack, with_modules=with_modules, experimental_config=experimental_config,
            acc_events=acc_events, custom_trace_id_callback=custom_trace_id_callback,
            post_processing_timeout_s=post_processing_timeout_s,
        )  # fmt: skip

    def __enter__(self):
        if self.enabled:
            self._made.start()
        return self

    def __exit__(self, *_exception):
        if self.enabled:
            self._made.stop()

    @property
    def function_events(self):
        return self._made.events()

    @property
    def self_cpu_time_total(self):
        return self.function_events.self_cpu_time_total

    def table(self, *args, **options):
        return self.function_events.table(*args, **options)

    __str__ = table

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        return self._made.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self):
        return self.function_events.total_average()

    def export_chrome_trace(self, path):
        self._made.export_chrome_trace(path)

    def export_stacks(self, path, metric='self_cpu_time_total'):
        self._made.export_stacks(path, metric)


_SimpleProfile.__name__ = _SimpleProfile.__qualname__ = 'profile'


def install(submodule):
    GTorch.Profiler.set_schedule_func = _set_schedule_func(GTorch.Profiler.set_schedule_func)
    GTorch.Profiler.step = restores(GTorch.Profiler.step)
    GTorch.Profiler.start, GTorch.Profiler.stop = _watch_modules(restores(GTorch.Profiler.start), GTorch.Profiler.stop)
    shared = {'record_function': record_function, 'DeviceType': DeviceType}
    found = (ProfilerActivity, ProfilerAction, profile, schedule, supported_activities, tensorboard_trace_handler)
    submodule('profiler', 'What the program does, and for how long.', {
        **{one.__name__: one for one in found}, **shared, 'kineto_available': lambda: True,
    })  # fmt: skip
    of_events = (EventList, FunctionEvent, FunctionEventAvg, Interval, Kernel)
    submodule('autograd.profiler', 'The profiler of blocks.', {
        **{one.__name__: one for one in of_events}, **shared, 'profile': _SimpleProfile,
        'emit_nvtx': emit_nvtx,
    })  # fmt: skip
