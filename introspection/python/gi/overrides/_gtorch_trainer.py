# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The trainer, and the base classes of metrics and logs."""

import functools
import operator
import random
import sys
from collections.abc import Mapping

from gi.overrides import override
from gi.repository import Gio, GLib, GTorch

from gi.overrides import _gtorch_samples as samples
from gi.overrides._gtorch_convert import RawTensor, convert_bool, convert_dtype, convert_enum, listed
from gi.overrides._gtorch_errors import (
    failure_of,
    guard_vfuncs,
    guards,
    interruptible,
    own_vfunc,
    passing,
    restores,
    restoring,
)
from gi.overrides._gtorch_exceptions import made
from gi.overrides._gtorch_layers import construct
from gi.overrides._gtorch_mixin import mixin

OVERRIDES = 'gi.overrides.GTorch'  # override() finds the namespace through it
HERE = 'gtorch.train'  # PyGObject makes no types of classes of overrides


# --- loaders of other kinds ---


class _Source(GTorch.SampleSource):
    """What a Python loader gives in an epoch."""

    __module__ = HERE

    def __init__(self, iterator):
        super().__init__()
        self._iterator = iterator

    @guards('the loader')
    def do_next(self, _cancellable):
        return passing('the loader', self._step)

    def _step(self):
        for batch in self._iterator:
            return samples.to_sample(batch)
        return None


class _Batches(GTorch.IterableDataset):
    """The batches of a Python loader, as they are."""

    __module__ = HERE

    def __init__(self, loader):
        super().__init__()
        self._loader, self.trainer, self._is_spent = loader, None, False

    @guards('the loader')
    def do_iterate(self, _worker, _n_workers):
        return passing('the loader', self._iterate)

    def _iterate(self):
        trainer = self.trainer and self.trainer()
        batches = getattr(self._loader, 'batch_sampler', None)
        for sampler in (getattr(self._loader, 'sampler', None), batches, getattr(batches, 'sampler', None)):
            if trainer is not None and hasattr(sampler, 'set_epoch'):
                sampler.set_epoch(trainer.epoch)  # as the loop of a program does
        iterator = iter(self._loader)
        if iterator is self._loader:
            if self._is_spent:
                raise ValueError(f'the loader is a {type(self._loader).__name__}, which can be gone through once: give '
                                 'a list, or an object whose __iter__() begins anew')
            self._is_spent = True
        return _Source(iterator)

    @guards('the loader')
    def do_get_length(self):
        return passing('the loader', self._length)

    def _length(self):
        try:
            return len(self._loader)
        except (TypeError, NotImplementedError) as error:  # as list() takes it
            text = f'the length of {type(self._loader).__name__} is unknown: {error}'
            raise made(NotImplementedError, text, GTorch.Error.NOT_SUPPORTED) from None

    @guards('the loader')
    def do_get_state(self):
        return passing('the loader', self._packed)

    @guards('the loader')
    def do_set_state(self, state):
        passing('the loader', self._unpack, state)
        return True

    def _packed(self):
        """The state of the loader as bytes of save(), from which no code runs; None if it has none."""
        if not can_go_on(self._loader):
            return None
        return _threads().packed(self._loader.state_dict())

    def _unpack(self, state):
        if not can_go_on(self._loader):
            raise ValueError(f'the state is that of a loader with a state_dict(), which {type(self._loader).__name__} '
                             'lacks')
        self._loader.load_state_dict(_threads().unpacked(state))


def _threads():
    from gi.overrides import _gtorch_threads as threads

    return threads


def can_go_on(loader):
    """Whether a Python loader can go on in the middle of an epoch."""
    return (hasattr(loader, 'state_dict') and hasattr(loader, 'load_state_dict')
            and getattr(loader, '_is_resumable', True))


def loader_of(name, value):
    """A loader of C: @value itself, or one that gives the batches of an iterable."""
    if value is None or isinstance(value, GTorch.DataLoader):
        return value
    if not hasattr(value, '__iter__'):
        raise TypeError(f'{name}: a loader can be iterated; {value!r} cannot')
    # What a C loader draws of the default generator would change what comes after it.
    return GTorch.DataLoader(dataset=_Batches(value), batch_size=0, generator=GTorch.Generator())


# --- handlers of signals ---


class _Untold(Exception):
    """Never raised: a guard that has it takes every exception."""


def _take(trainer, error):
    """Lets the exception of a handler end the run."""
    trainer = trainer()
    run = getattr(trainer, '_run', None)
    if run is None and trainer is not None:
        trainer.fail(failure_of('a handler of the trainer', error))  # a run that a widget has begun
    if run is None or not run.take(error):
        raise error


def _attempt(function, take, *args):
    try:
        return function(*args)
    except BaseException as error:
        take(error)
        return None


class _Handler:
    """A handler of a signal of a trainer: an exception ends the run, and arrives at its caller. It is equal to the
    function, by which a program may disconnect it."""

    def __init__(self, trainer, function):
        self.function, take = function, functools.partial(_take, trainer.weak_ref())
        if mixin is None:
            self._call = functools.partial(_attempt, function, take)
        else:
            self._call = mixin.Guard(function, take, _Untold)

    def __eq__(self, other):
        return self.function == (other.function if isinstance(other, _Handler) else other)

    def __hash__(self):
        return hash(self.function)

    # No function of Python's comes before the guard: Ctrl-C may raise at the beginning of each.
    __call__ = property(operator.attrgetter('_call'))


class _Run:
    """A run of a trainer, which exceptions of handlers cancel."""

    def __init__(self, cancellable, is_awaited=True):
        if cancellable is not None and not isinstance(cancellable, Gio.Cancellable):
            raise TypeError(f'run(): cancellable must be a Gio.Cancellable or None, not {type(cancellable).__name__}')
        self.outer, self.inner, self.is_awaited = cancellable, Gio.Cancellable(), is_awaited
        self.raised, self.handler = [], 0
        if cancellable is not None:
            inner = self.inner
            self.handler = cancellable.connect(lambda *_: inner.cancel(), None)

    def take(self, error):
        """Cancels the run; tells whether the exception will arrive somewhere."""
        self.inner.cancel()
        if self.is_awaited:
            self.raised.append(error)
        return self.is_awaited

    def end(self):
        """Raises the first of the exceptions."""
        if self.handler:
            self.outer.disconnect(self.handler)
        self.handler = 0
        raised, self.raised = self.raised, []
        if raised:
            try:
                raise raised[0]
            finally:
                raised.clear()  # its traceback has this frame


CONNECTORS = ('connect', 'connect_after', 'connect_data', 'connect_object', 'connect_object_after')


def _connector(raw):
    def connect(self, signal, handler, *args, **options):
        return raw(self, signal, _Handler(self, handler) if callable(handler) else handler, *args, **options)

    connect.__doc__ = raw.__doc__
    return connect


# --- what checkpoints have of Python ---


def _numpy_state():
    """The state of NumPy's own generator as plain values, if the program has imported it."""
    numpy = sys.modules.get('numpy')
    if numpy is None or not hasattr(numpy, 'random'):
        return None
    kind, keys, position, has_gauss, gauss = numpy.random.get_state()
    return [str(kind), [int(key) for key in keys], int(position), int(has_gauss), float(gauss)]


def _set_numpy_state(state):
    try:
        import numpy
    except ImportError:
        return  # nothing draws from it
    kind, keys, position, has_gauss, gauss = state
    numpy.random.set_state((kind, numpy.array(keys, dtype=numpy.uint32), position, has_gauss, gauss))


@guards('the function of set_save_function()')
def _given_state(trainer, *_data):
    """The states of Python's random and of NumPy, and what the program gives."""
    return passing('the function of set_save_function()', _pack, trainer)


def _pack(trainer):
    version, words, gauss = random.getstate()
    state = {'random': [version, list(words), gauss], 'numpy': _numpy_state()}
    if trainer._saves is not None:
        state['program'] = trainer._saves(trainer)
    return GLib.Bytes.new(_threads().packed(state).get_data_as_bytes().get_data())


@guards('the function of set_load_function()')
def _taken_state(trainer, state, *_data):
    passing('the function of set_load_function()', _unpack, trainer, state)
    return True


def _unpack(trainer, state):
    found = _threads().unpacked(GLib.Variant.new_from_bytes(GLib.VariantType('ay'), state, True))
    if trainer._loads is not None and 'program' in found:
        trainer._loads(trainer, found['program'])
    version, words, gauss = found['random']
    random.setstate((version, tuple(words), gauss))
    if found['numpy'] is not None:
        _set_numpy_state(found['numpy'])


# --- the trainer ---


CONVERTED = {
    'validation_loader': lambda value: loader_of('Trainer(): validation_loader', value),
    'progress_bar': lambda value: GTorch.ProgressBar() if value is True else value or None,
    'autocast': lambda value: GTorch.DType.NONE if value is None else convert_dtype(value),
    'monitor_mode': lambda value: convert_enum(GTorch.PlateauMode, value, 'Trainer(): monitor_mode'),
    'graph': lambda value: convert_bool(value, 'Trainer(): graph'),
    'save_best': lambda value: convert_bool(value, 'Trainer(): save_best'),
    'threaded': lambda value: convert_bool(value, 'Trainer(): threaded'),
}


def _stepping(function):
    """Wraps training_step() for C: the batch as Python's values, and a tensor back."""

    def step(self, sample):
        found = function(self, samples.from_sample(sample))
        if not isinstance(found, RawTensor):
            raise TypeError(f'{function.__qualname__}() must return the loss, a tensor, not {found!r}')
        return found

    step.__name__ = step.__qualname__ = function.__name__
    return step


def _function_of(name, function):
    if function is not None and not callable(function):
        raise TypeError(f'{name}(): {function!r} cannot be called')
    return function


def _trainer(raw):
    class Trainer(raw):
        """Trains @module with the batches of @loader, any iterable of batches. Settings, such as n_epochs, are
        properties. A class of a program's overrides training_step(batch) or validation_step(batch), which return the
        loss."""

        __module__ = OVERRIDES
        _run = None  # a _Run, while one goes on
        _saves = _loads = None  # functions of the program

        def __init_subclass__(cls, **options):
            super().__init_subclass__(**options)
            for name in ('training_step', 'validation_step'):
                function = own_vfunc(cls, name)
                if function is not None:
                    setattr(cls, f'do_{name}', _stepping(function))
                    guard_vfuncs(cls, (name,))

        def __init__(
            self, module, loader, loss=None, optimizer=None, *, metrics=None, schedulers=(), logs=(), **settings
        ):
            for name, convert in CONVERTED.items():
                if name in settings:
                    settings[name] = convert(settings[name])
            settings.update(module=module, loader=loader_of('Trainer()', loader), loss_module=loss, optimizer=optimizer)
            metrics = {} if metrics is None else metrics
            if not isinstance(metrics, Mapping):
                kind = type(metrics).__name__
                raise TypeError(f'Trainer(): metrics must be a dictionary of them by name, not {kind}')
            schedulers, logs = listed(schedulers, 'Trainer(): schedulers'), listed(logs, 'Trainer(): logs')
            construct(self, settings)
            raw.set_save_function(self, _given_state)
            raw.set_load_function(self, _taken_state)
            if isinstance(settings['loader'].dataset, _Batches):
                settings['loader'].dataset.trainer = self.weak_ref()
            for name, metric in metrics.items():
                self.add_metric(name, metric)
            for one in schedulers:
                self.add_scheduler(*one if isinstance(one, (tuple, list)) else (one,))
            for log in logs:
                self.add_log(log)
            self.check()
            if not isinstance(loader, GTorch.DataLoader) and self.checkpoint_every > 0 and not can_go_on(loader):
                raise NotImplementedError('Trainer(): checkpoint_every makes checkpoints within an epoch, from which '
                                          f'{type(loader).__name__} cannot go on with the same batches: it has no '
                                          'state_dict() and load_state_dict(), or no order; take another loader, or '
                                          'the checkpoints at the ends of epochs')

        def add_scheduler(self, scheduler, interval='epoch'):
            """Adds a schedule, whose steps are made at the ends of epochs, after each 'step' or each 'evaluation'."""
            kind = convert_enum(GTorch.TrainerInterval, interval, 'add_scheduler(): interval')
            raw.add_scheduler(self, scheduler, kind)

        def training_step(self, batch):
            """Computes the loss of a batch."""
            return restoring(raw.do_training_step, self, samples.to_sample(batch))

        def validation_step(self, batch):
            """Computes the loss of a batch, and updates the metrics."""
            return restoring(raw.do_validation_step, self, samples.to_sample(batch))

        def set_training_step(self, function):
            """Sets function(trainer, batch), which computes the loss."""
            self._set('set_training_step', function)

        def set_validation_step(self, function):
            """Sets function(trainer, batch), which computes the loss of a batch of an evaluation."""
            self._set('set_validation_step', function)

        def set_save_function(self, function):
            """Sets function(trainer), which gives what checkpoints have beside the rest: anything that save() takes."""
            self._saves = _function_of('set_save_function', function)

        def set_load_function(self, function):
            """Sets function(trainer, state), which takes what the other function gave, when a checkpoint is loaded."""
            self._loads = _function_of('set_load_function', function)

        def _set(self, name, function):
            set_function = getattr(raw, name)
            if function is None:
                set_function(self, None)
                return
            if not callable(function):
                raise TypeError(f'{name}(): {function!r} cannot be called')

            @guards(f'the function of {name}()')
            def call(trainer, sample, *_data):
                return passing(f'the function of {name}()', _stepping(function), trainer, sample)

            set_function(self, call)

        @property
        def results(self):
            """The results of the last evaluation by name."""
            return {name: self.get_result(name) for name in self.get_result_names()}

        def run(self, cancellable=None):
            """Trains in this thread. An exception of a handler of a signal ends the run, and is raised."""
            if self.is_running():  # C refuses it
                restoring(raw.run, self, cancellable)
                return
            self._run = _Run(cancellable)
            self._let_train()
            try:
                interruptible(self._run.take, raw.run, self, self._run.inner)
            except BaseException:
                self._end_run()
                raise
            self._end_run()

        def _let_train(self):
            """C does the same, and knows of no train() in Python."""
            module = self.get_module()
            if module is not None and not module.training:
                module.train()

        def _end_run(self):
            if self._run is not None and not self.is_running():
                run, self._run = self._run, None
                run.end()

        def run_async(self, cancellable=None, callback=None, *data):
            """Trains, and calls @callback (trainer, result, …) at the end, which calls run_finish()."""
            if self.is_running():
                raw.run_async(self, cancellable, callback, *data)
                return
            self._run = _Run(cancellable, callback is not None)
            self._let_train()

            def ended(trainer, result, *_data):
                if callback is None:
                    self._end_run()
                else:
                    callback(trainer, result, *data)

            raw.run_async(self, self._run.inner, ended)

        run_async.__wrapped__ = raw.run_async  # awaitable() counts its arguments

        def run_finish(self, result):
            """Gets the result of run_async(): raises what went wrong."""
            try:
                found = raw.run_finish(self, result)
            except BaseException:
                self._end_run()
                raise
            self._end_run()
            return found

        def save_checkpoint(self, file, cancellable=None):
            """Writes a checkpoint: @file is a path or a Gio.File."""
            restoring(raw.save_checkpoint, self, file, cancellable)

        def load_checkpoint(self, file, cancellable=None):
            """Goes on from a checkpoint: @file is a path or a Gio.File."""
            restoring(raw.load_checkpoint, self, file, cancellable)

        def resume(self, cancellable=None):
            """Loads the last checkpoint of the folder; returns whether there was one."""
            return restoring(raw.resume, self, cancellable)[-1]

        def save_checkpoint_async(self, file, *args):
            """Writes a checkpoint without blocking: @file is a path or a Gio.File."""
            raw.save_checkpoint_async(self, file, *args)

        def load_checkpoint_async(self, file, *args):
            """Reads a checkpoint without blocking: @file is a path or a Gio.File."""
            raw.load_checkpoint_async(self, file, *args)

        save_checkpoint_async.__wrapped__ = raw.save_checkpoint_async  # awaitable() counts their arguments
        load_checkpoint_async.__wrapped__ = raw.load_checkpoint_async

        def resume_finish(self, result):
            """Gets the result of resume_async(): whether there was a checkpoint."""
            return raw.resume_finish(self, result)[-1]

    for name in CONNECTORS:
        if hasattr(raw, name):
            setattr(Trainer, name, _connector(getattr(raw, name)))
    return override(Trainer)


# --- metrics and logs ---


def _succeeding(function):
    """For C, which needs to know whether it succeeded: returning None counts as success."""

    def call(self, *args):
        return function(self, *args) is not False

    call.__name__ = call.__qualname__ = function.__name__
    return call


def _writing(function):
    """For C, which passes the number of values, too."""

    def write(self, step, names, values, *_count):
        return function(self, step, list(names), list(values)) is not False

    return write


def _restore(raw, names):
    """Exceptions of the program's own functions pass through these."""
    for name in names:
        setattr(raw, name, restores(getattr(raw, name)))


def _metric(raw):
    _restore(raw, ('update', 'compute', 'compute_value', 'reset'))

    class Metric(raw):
        """The base class of metrics: update(output, target) adds a batch to the states, compute() gives the metric."""

        __module__ = OVERRIDES

        def __init_subclass__(cls, **options):
            super().__init_subclass__(**options)
            for name in ('update', 'reset'):
                function = own_vfunc(cls, name)
                if function is not None:
                    setattr(cls, f'do_{name}', _succeeding(function))
            guard_vfuncs(cls, ('update', 'compute', 'reset'))

        def add_state(self, name, initial):
            """Adds a state, which reset() gives its initial value, a tensor or a number, again."""
            tensor = initial if isinstance(initial, RawTensor) else GTorch.tensor(initial)
            raw.add_state(self, name, tensor)

    return override(Metric)


def _log(raw):
    _restore(raw, ('write', 'flush', 'close'))

    class Log(raw):
        """The base class of logs: write(step, names, values)."""

        __module__ = OVERRIDES

        def __init_subclass__(cls, **options):
            super().__init_subclass__(**options)
            for name in ('write', 'flush', 'close'):
                function = own_vfunc(cls, name)
                if function is not None:
                    setattr(cls, f'do_{name}', WRAPPERS[name](function))
            guard_vfuncs(cls, ('write', 'flush', 'close'))

    return override(Log)


WRAPPERS = {'write': _writing, 'flush': _succeeding, 'close': _succeeding}
MAKERS = {'Log': _log, 'Metric': _metric, 'Trainer': _trainer}
