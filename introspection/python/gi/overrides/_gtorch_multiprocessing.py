# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""GTorch.multiprocessing: Python's module of the name, and spawn() for functions that run in several processes.

Tensors that go through queues and pipes, or are arguments of spawned processes, have the same memory there: what
pickles for other processes have of them are the bytes and the file descriptors of a GTorch.TensorHandle. Memory of the
CPU moves to shared memory for that. Memory that is pinned, or that another library has made, is copied instead."""

import sys
import threading

from gi.repository import GLib

from gi.overrides._gtorch_convert import GTorch

STRATEGY = 'file_descriptor'

_lock = threading.Lock()
_held = []  # handles for processes that are being started, with what starts them


def _python():
    """Python's module, which takes time to import."""
    import multiprocessing
    import multiprocessing.connection

    return multiprocessing


# --- tensors for other processes ---


def drop_started():
    """Drops the handles for processes that have been started since."""
    with _lock:
        _held[:] = [(popen, handle) for popen, handle in _held if getattr(popen, 'sentinel', None) is None]


def _for_child(fds, handle):
    """What is pickled for the file descriptors."""
    from multiprocessing import context, reduction

    popen = context.get_spawning_popen()
    drop_started()
    if popen is not None:  # which wants the numbers of file descriptors that are open until the process has started
        with _lock:
            _held.append((popen, handle))
    return [reduction.DupFd(fd) for fd in fds]


def _handle(tensor):
    """A handle, of a copy in memory of its own if the memory on the CPU cannot move."""
    plain = tensor.detach()
    try:
        return GTorch.TensorHandle.new(plain)
    except GLib.Error as error:
        if plain.device.type != 'cpu' or not error.matches(GTorch.error_quark(), GTorch.Error.NOT_SUPPORTED):
            raise
    return GTorch.TensorHandle.new(plain.clone())


def reduce_tensor(tensor):
    """What a pickle for another process has of a tensor."""
    from gi.overrides import _gtorch_unpickle as unpickle

    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(f'a tensor of shape {list(tensor.shape)} that requires grad and was computed cannot go to '
                           'another process: use detach()')
    handle = _handle(tensor)
    fds = _for_child(handle.get_fds() or (), handle)
    is_parameter = isinstance(tensor, GTorch.Parameter)
    return unpickle.shared, (bytes(handle.get_bytes().get_data()), fds, is_parameter, tensor.requires_grad)


class ProcessException(Exception):
    """A process has ended with an error; those are its number and its process ID."""

    def __init__(self, msg, error_index, pid):
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """The function raised an exception, whose traceback is in the text."""


class ProcessExitedException(ProcessException):
    """The process ended by a signal or with a status other than 0."""

    def __init__(self, msg, error_index, error_pid, exit_code, signal_name=None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _call(fn, index, args, errors):
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        import traceback

        errors.put(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """The processes of spawn(join=False)."""

    def __init__(self, processes, errors):
        self.processes, self.error_queues = processes, errors
        self.sentinels = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self):
        """The process IDs."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout=None):
        """Waits until a process has ended, or for @timeout seconds. Returns whether all have ended without an error;
        ends the others and raises if one has not."""
        if not self.sentinels:
            return True
        ended = _python().connection.wait(list(self.sentinels), timeout=timeout)
        failed = None
        for sentinel in ended:
            index = self.sentinels.pop(sentinel)
            self.processes[index].join()
            if self.processes[index].exitcode != 0 and failed is None:
                failed = index
        if failed is None:
            return not self.sentinels
        for process in self.processes:
            if process.is_alive():
                process.terminate()
            process.join()
        self._raise(failed)

    def _raise(self, index):
        process, errors = self.processes[index], self.error_queues[index]
        if not errors.empty():
            text = f'process {index} ended with an exception:\n\n{errors.get()}'
            raise ProcessRaisedException(text, index, process.pid)
        code = process.exitcode
        text = f'process {index} ended by signal {-code}' if code < 0 else f'process {index} ended with status {code}'
        raise ProcessExitedException(text, index, process.pid, code)


def start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method='spawn'):
    """Calls fn(i, *args) in @nprocs processes. Waits for them, or returns a ProcessContext if @join is False."""
    context = _python().get_context(start_method)
    processes, errors = [], []
    for index in range(nprocs):
        queue = context.SimpleQueue()
        process = context.Process(target=_call, args=(fn, index, args, queue), daemon=daemon)
        process.start()
        processes.append(process)
        errors.append(queue)
    drop_started()
    made = ProcessContext(processes, errors)
    if not join:
        return made
    while not made.join():
        pass
    return None


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method='spawn'):
    """start_processes() by the method 'spawn': new processes, which may use GPUs."""
    if start_method != 'spawn':
        raise ValueError(f"spawn(): start_method must be 'spawn', not {start_method!r}: see start_processes()")
    return start_processes(fn, args, nprocs, join, daemon, start_method)


def get_sharing_strategy():
    """'file_descriptor': processes get memory by file descriptors, each of which a process has open."""
    return STRATEGY


def get_all_sharing_strategies():
    """The set of strategies, which has one."""
    return {STRATEGY}


def set_sharing_strategy(new_strategy):
    """Raises for all but 'file_descriptor': shared memory has no names in a file system."""
    if new_strategy != STRATEGY:
        raise NotImplementedError(f'set_sharing_strategy(): {new_strategy!r} is not supported: memory is shared by '
                                  'file descriptors')


OWN = (
    ProcessContext, ProcessExitedException, ProcessRaisedException, get_all_sharing_strategies, get_sharing_strategy,
    set_sharing_strategy, spawn, start_processes,
)


def _find(name):
    """What is not of this module is Python's."""
    if name.startswith('__'):
        raise AttributeError(name)
    return getattr(_python(), name)


def install(submodule):
    members = {one.__name__: one for one in OWN}
    submodule('multiprocessing', __doc__.partition('\n')[0], {**members, '__getattr__': _find})
    submodule('multiprocessing.reductions', 'Tensors for other processes.', {'reduce_tensor': reduce_tensor})
    submodule('multiprocessing.spawn', 'Functions in several processes.', members)
