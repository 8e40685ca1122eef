# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Gradient modes, autograd functions, and awaitable operations."""

import functools
import threading
import types
from contextlib import ContextDecorator

from gi.module import get_introspection_module
from gi.repository import Gio, GLib

from gi.overrides import _gtorch_function as function
from gi.overrides import _gtorch_ops as ops
from gi.overrides._gtorch_convert import GTorch, convert_bool, convert_tensors
from gi.overrides._gtorch_errors import restoring
from gi.overrides._gtorch_mixin import mixin


def enter(owner, guard):
    """Begins a block: `with owner`, which several threads may use with one object at a time."""
    guards = owner.__dict__.setdefault('_guards', {})
    guards.setdefault(threading.get_ident(), []).append(guard)
    return owner


def leave(owner):
    """Ends the last such block of this thread."""
    guards = owner.__dict__.get('_guards', {})
    own = guards.get(threading.get_ident())
    if not own:  # a generator may continue, or be closed, in another thread than it began in
        own = next((others for others in list(guards.values()) if others), None)
    if own is None:
        raise RuntimeError(f'{type(owner).__name__}: the block has ended, or was never begun')
    own.pop().end()
    if not guards.get(threading.get_ident()):
        guards.pop(threading.get_ident(), None)
    return False


def _steps(block, generator):
    """Runs a generator with each of its steps inside the block; its caller's code in between is outside."""
    step, given = generator.send, None
    while True:
        try:
            with block:
                value = step(given)
        except StopIteration as end:
            return end.value
        try:
            step, given = generator.send, (yield value)
        except GeneratorExit:
            with block:
                generator.close()
            raise
        except BaseException as error:
            step, given = generator.throw, error


class Decorator(ContextDecorator):
    """A block that is also a decorator: everything that the function does is in such a block, even if it
    is a generator or a coroutine."""

    def __call__(self, function):
        import inspect  # takes 5 ms, which most programs need not spend

        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def generate(*args, **options):
                return (yield from _steps(self, function(*args, **options)))

            return generate
        if inspect.iscoroutinefunction(function):
            drive = types.coroutine(_steps)

            @functools.wraps(function)
            async def await_(*args, **options):
                return await drive(self, function(*args, **options))

            return await_
        return super().__call__(function)


class Block(Decorator):
    """with block: …, any number of times, in several threads, and nested. @begin returns the guard that
    each begins with, or None; `as` gets @value."""

    def __init__(self, begin, value=None):
        self._begin, self._value = begin, value

    def __enter__(self):
        enter(self, self._begin() or NOTHING)
        return self._value

    def __exit__(self, *_exception):
        return leave(self)


class _Nothing:
    def end(self):
        """There is nothing to end."""


NOTHING = _Nothing()
GUARDS = {False: GTorch.no_grad, True: GTorch.enable_grad}


class _GradMode(Decorator):
    """A block, or a decorated function, in which gradients are recorded or not."""

    def __init__(self, enabled):
        self._enabled = convert_bool(enabled)

    def __enter__(self):
        return enter(self, GUARDS[self._enabled]())

    def __exit__(self, *_exception):
        return leave(self)


class set_grad_enabled(_GradMode):  # noqa: N801, the name is PyTorch's
    """Turns the recording of gradients on or off, permanently or for a block."""

    def __init__(self, mode):
        super().__init__(mode)
        self._before = GTorch.set_grad_enabled(self._enabled)
        self._thread = threading.get_ident()

    def _take_back(self):
        if self._thread == threading.get_ident():
            self._thread = None
            GTorch.set_grad_enabled(self._before)

    def __call__(self, function):
        self._take_back()
        return super().__call__(function)

    def __enter__(self):
        self._take_back()
        return super().__enter__()


def _grad_mode(name, enabled, function):
    if function is None:
        return _GradMode(enabled)
    if not callable(function):
        raise TypeError(f'{name}(): the function {function!r} cannot be called')
    return _GradMode(enabled)(function)  # a decorator without parentheses


def no_grad(orig_func=None):
    """with GTorch.no_grad(): nothing in the block is recorded for gradients."""
    return _grad_mode('no_grad', False, orig_func)


def enable_grad(orig_func=None):
    """with GTorch.enable_grad(): gradients are recorded again, inside no_grad()."""
    return _grad_mode('enable_grad', True, orig_func)


def once_differentiable(fn):
    """Decorates the backward() of a function whose gradients have no gradients: nothing is recorded in it."""
    if not callable(fn):
        raise TypeError(f'once_differentiable(): the function {fn!r} cannot be called')

    @functools.wraps(fn)
    def call(ctx, *grads):
        with _GradMode(False):
            return fn(ctx, *grads)

    return call


raw_set_detect_anomaly = GTorch.set_detect_anomaly


class set_detect_anomaly:  # noqa: N801, the name is PyTorch's
    """Turns the search for operations with wrong gradients on or off, permanently or for a block."""

    def __init__(self, mode, check_nan=True):
        self._before = GTorch.is_anomaly_enabled(), GTorch.is_anomaly_check_nan_enabled()
        raw_set_detect_anomaly(convert_bool(mode), convert_bool(check_nan))

    def __enter__(self):
        pass

    def __exit__(self, *_exception):
        raw_set_detect_anomaly(*self._before)


class detect_anomaly:  # noqa: N801, the name is PyTorch's
    """A block in which operations with wrong gradients are searched for: a backward pass that computes NaN fails."""

    def __init__(self, check_nan=True):
        self._check_nan = convert_bool(check_nan)

    def __enter__(self):
        self._block = set_detect_anomaly(True, self._check_nan)

    def __exit__(self, *_exception):
        self._block.__exit__()


def _list(value, name):
    if value is None:
        raise TypeError(f'{name} must be a tensor or several, not None')
    return [value] if isinstance(value, GTorch.Tensor) else convert_tensors(value, name)


def _gradients(value, name):
    return [] if value is None else _list(value, name)


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph=None,
    create_graph=False,
    allow_unused=None,
    materialize_grads=False,
):
    """Returns the gradients of @outputs with respect to @inputs, without changing their grad. With
    @allow_unused an input that they do not depend on gets None, with @materialize_grads zeros."""
    if allow_unused is False and materialize_grads:
        raise ValueError('grad(): materialize_grads needs allow_unused')
    create_graph = convert_bool(create_graph)
    keep = create_graph if retain_graph is None else convert_bool(retain_graph)
    lists = _list(outputs, 'outputs'), _list(inputs, 'inputs'), _gradients(grad_outputs, 'grad_outputs')
    if not lists[1]:
        raise ValueError('grad(): inputs has no tensors: give those whose gradients are wanted')
    unused = convert_bool(materialize_grads) or (allow_unused is not None and convert_bool(allow_unused))
    found = restoring(GTorch.autograd_grad, *lists, keep, create_graph, unused)
    if materialize_grads:
        found = [ops.FUNCTIONS['zeros_like'](x) if g is None else g for g, x in zip(found, lists[1])]
    return tuple(found)


def _add_gradient(tensor, gradient, create_graph):
    if gradient is None:
        return
    former = tensor.grad
    if former is None:
        tensor.grad = gradient
    elif create_graph:
        tensor.grad = former + gradient
    else:
        with no_grad():
            former.add_(gradient)


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, inputs=None):
    """Adds the gradients of several tensors to the leaves; with @inputs, to these tensors alone, and without calling
    the hooks of register_post_accumulate_grad_hook()."""
    create_graph = convert_bool(create_graph)
    keep = create_graph if retain_graph is None else convert_bool(retain_graph)
    lists = _list(tensors, 'tensors'), _gradients(grad_tensors, 'grad_tensors')
    if inputs is None:
        restoring(GTorch.autograd_backward, *lists, keep, create_graph)
        return
    inputs = _list(inputs, 'inputs')
    if not inputs:
        raise ValueError('backward(): inputs has no tensors: give those whose gradients are wanted')
    inputs = list({id(one): one for one in inputs}.values())
    found = grad(lists[0], inputs, lists[1], keep, create_graph, allow_unused=True)
    for one, gradient in zip(inputs, found):
        _add_gradient(one, gradient, create_graph)


class _Loop:
    """A main loop in its own thread, for operations that asyncio waits for."""

    _lock = threading.Lock()
    _context = None

    @classmethod
    def context(cls):
        with cls._lock:
            if cls._context is None:
                cls._context = GLib.MainContext.new()
                threading.Thread(target=cls._run, daemon=True, name='gtorch-aio').start()
            return cls._context

    @classmethod
    def _run(cls):
        cls._context.push_thread_default()
        GLib.MainLoop.new(cls._context, False).run()


def on_streams(begin, *values):
    """@begin, for another thread, with this one's current streams for the tensors and devices among @values."""
    devices = [v.device if isinstance(v, GTorch.Tensor) else v for v in values]
    devices = {d.resolve() for d in devices if isinstance(d, GTorch.Device)}
    streams = [GTorch.Stream.get_current(device) for device in devices]

    def begin_there(*args):
        guards = [GTorch.StreamGuard.new(stream) for stream in streams]
        try:
            begin(*args)
        finally:
            for guard in guards:
                guard.end()

    begin_there.__wrapped__ = begin
    return begin_there


def _is_bound(info):
    """Tells whether a method of the typelib is bound to its object. If not, it belongs to the class."""
    import inspect

    owner = getattr(get_introspection_module(info.get_namespace()), info.get_container().get_name(), None)
    return inspect.unwrap(getattr(owner, info.get_name(), None)) is not info


def arrange(begin, args, cancellable, done):
    """Returns the checked arguments of @begin: PyGObject takes surplus arguments for the data of the
    callback, and a callback that is one position too early for another argument, and then the operation
    never completes."""
    import inspect

    bound = []
    info = inspect.unwrap(begin, stop=lambda one: bound.append(inspect.ismethod(one)))
    if not hasattr(info, 'get_arguments'):
        given = (*args, cancellable, done)
        try:
            signature = inspect.signature(begin)
        except (TypeError, ValueError):
            return given  # its arguments are not known
        signature.bind(*given)
        return given
    arguments = info.get_arguments()
    names = [argument.get_name() for argument in arguments]
    # arguments that PyGObject hides: lengths of arrays, and functions that free data
    kinds, hidden = {}, set()
    for name, argument in zip(names, arguments):
        kind = argument.get_type().get_interface()
        kinds[name] = None if kind is None else kind.get_name()
        hidden |= {argument.get_destroy(), argument.get_type().get_array_length()}
        if kinds[name] == 'AsyncReadyCallback':
            hidden.add(argument.get_closure())
    shown = [name for i, name in enumerate(names) if i not in hidden]
    if info.is_method() and not any(bound) and not _is_bound(info):
        shown.insert(0, 'self')
    if 'AsyncReadyCallback' not in kinds.values():
        raise TypeError(f'awaitable(): {info.get_name()} takes no callback')
    wanted = [name for name in shown if kinds.get(name) not in ('Cancellable', 'AsyncReadyCallback')]
    first = [name for name in shown if kinds.get(name) == 'Cancellable'] or shown[-1:]
    wanted = wanted[: shown.index(first[0])]
    if len(args) != len(wanted):
        raise TypeError(
            f'awaitable(): {info.get_name()} takes {len(wanted)} arguments ({", ".join(wanted) or "none"}) '
            f'before the cancellable and the callback, not {len(args)}'
        )
    values = dict(zip(wanted, args))
    return [
        cancellable if kinds.get(name) == 'Cancellable'
        else done if kinds.get(name) == 'AsyncReadyCallback'
        else values.get(name)
        for name in shown
    ]


def awaitable(begin, finish, *args, cancellable=None, at_once=False):
    """Returns an asyncio future for a pair of GLib functions: await GTorch.awaitable(s.synchronize_async,
    s.synchronize_finish).

    @args are those before the cancellable: another number of them raises. Cancelling the future, as
    asyncio.wait_for() does, cancels the operation, and @cancellable where one was given. With @at_once it has
    started, in another thread, when this returns.
    """
    import asyncio  # takes 20 ms, which most programs need not spend

    aio = asyncio.get_running_loop()
    begun = threading.Event()
    if cancellable is None:
        cancellable = Gio.Cancellable()
    future = aio.create_future()

    def settle(function, value):
        if not future.done():
            function(value)

    def post(function, value):
        try:
            aio.call_soon_threadsafe(settle, function, value)
        except RuntimeError:
            pass  # the loop was closed meanwhile: nothing waits

    def done(_source, result, *_data):
        try:
            value = finish(result)
        except Exception as error:
            post(future.set_exception, error)
        else:
            post(future.set_result, value)

    given = arrange(begin, args, cancellable, done)
    if not callable(finish):
        raise TypeError(f'awaitable(): {finish!r} cannot be called')

    def start(*_data):
        try:
            begin(*given)
        except Exception as error:
            post(future.set_exception, error)
        finally:
            begun.set()
        return GLib.SOURCE_REMOVE

    if mixin is not None:
        mixin.post(_Loop.context(), start)
    else:
        source = GLib.idle_source_new()
        source.set_callback(start)
        source.attach(_Loop.context())
    if at_once:
        begun.wait()
    future.add_done_callback(lambda f: f.cancelled() and cancellable.cancel())
    return future


def install(export, submodule, _ops):
    members = {
        'no_grad': no_grad,
        'enable_grad': enable_grad,
        'set_grad_enabled': set_grad_enabled,
    }
    for name, value in members.items():
        export(name, value)
    export('awaitable', awaitable)
    export('set_detect_anomaly', set_detect_anomaly)
    members.update(grad=grad, backward=backward, set_detect_anomaly=set_detect_anomaly, detect_anomaly=detect_anomaly)
    function.install(export, members)
    from gi.overrides import _gtorch_checkpoint as checkpoint
    from gi.overrides import _gtorch_saved as saved

    from gi.overrides import _gtorch_forward as forward
    from gi.overrides import _gtorch_functional as functional
    from gi.overrides import _gtorch_kinds as kinds

    for name, value in {**saved.members(), **checkpoint.functions()}.items():
        export(name, value)
    own = functional.members()
    for name, value in own.items():
        export(f'autograd_{name}', value)
    members['Variable'] = kinds.Variable
    members['functional'] = submodule('autograd.functional', 'Derivatives of functions.', own)
    members['forward_ad'] = submodule('autograd.forward_ad', 'Forward-mode derivatives.', forward.members())
    members['graph'] = submodule('autograd.graph', 'What is saved for backward passes.', saved.members())
    of_functions = {'Function': members['Function'], 'FunctionCtx': function.FunctionContext,
                    'once_differentiable': once_differentiable}
    members['function'] = submodule('autograd.function', 'Functions with gradients.', of_functions)
    members['variable'] = submodule('autograd.variable', 'The former name of tensors.', {'Variable': kinds.Variable})
    submodule('autograd', 'Gradients.', members)
    found = submodule('utils.checkpoint', 'What is computed again in backward passes.', checkpoint.members())
    submodule('utils', 'What programs are written with.', {'checkpoint': found})
