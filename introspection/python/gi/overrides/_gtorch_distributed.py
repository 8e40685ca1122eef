# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""torch.distributed: groups of processes, their operations, and stores, under PyTorch's names.

Imported when it is first named. Ranks in arguments are those of the group of all processes, as in PyTorch; the library
counts in the group."""

import contextlib
import datetime
import functools
import os
import pickle
import re
import sys
import threading
import time

from gi.repository import Gio, GLib, GTorch

from gi.overrides._gtorch_convert import RawTensor, convert_bool
from gi.overrides._gtorch_errors import restores, restoring
from gi.overrides._gtorch_exceptions import of_kind, set_of_groups

Work, Store = GTorch.Work, GTorch.Store
HashStore = GTorch.HashStore
default_pg_timeout = datetime.timedelta(minutes=30)
SLICE = 0.2  # seconds that a wait stays away from the interpreter


class DistError(RuntimeError):
    """An error of a group of processes or of a store."""


class DistBackendError(DistError):
    """An operation of a group has failed."""


class DistNetworkError(DistError):
    """A store cannot be reached."""


class DistStoreError(DistError):
    """A key of a store has not come in time."""


set_of_groups(DistBackendError)


def _composed(function):
    """A function that consists of several operations of groups: their errors have its name."""

    @functools.wraps(function)
    def run(*args, **kwargs):
        GTorch.distributed_begin_operation(function.__name__)
        try:
            return function(*args, **kwargs)
        finally:
            GTorch.distributed_end_operation()

    return run


class ReduceOp:
    """How the numbers of the ranks become one."""

    SUM, AVG, PRODUCT = GTorch.ReduceOp.SUM, GTorch.ReduceOp.AVG, GTorch.ReduceOp.PRODUCT
    MIN, MAX = GTorch.ReduceOp.MIN, GTorch.ReduceOp.MAX
    BAND, BOR, BXOR = GTorch.ReduceOp.BAND, GTorch.ReduceOp.BOR, GTorch.ReduceOp.BXOR
    PREMUL_SUM = 'PREMUL_SUM'  # _make_nccl_premul_sum() gives it its factor


class _PremulSum:
    """A sum of numbers that each rank multiplies by a factor before."""

    def __init__(self, factor):
        self.factor = factor


def _make_nccl_premul_sum(factor):
    """The reduction ReduceOp.PREMUL_SUM with the factor of this rank, a number or a tensor with one; of any backend."""
    return _PremulSum(float(factor.item() if isinstance(factor, RawTensor) else factor))


class _Groups:
    """The group of all ranks, and those that were made of it."""

    def __init__(self):
        self.world, self.made = None, []


_of_process, _of_thread = _Groups(), threading.local()


def _groups():
    """Those of this thread, if it is a rank by itself; otherwise those of the process."""
    return getattr(_of_thread, 'groups', _of_process)


class _WithWorld(type):
    WORLD = property(lambda _: _groups().world)


class GroupMember(metaclass=_WithWorld):
    """The group of all processes, and what new_group() gives those that have no part in it."""

    NON_GROUP_MEMBER = object()


class group(metaclass=_WithWorld):
    """group.WORLD is the group of all processes."""


# --- stores ---

def _seconds(timeout, name=None, with_zero=False):
    """A time limit in seconds. With the name of a function, it is more than 0, or may be 0."""
    begin = '' if name is None else f'{name}: '
    if timeout is None:
        return default_pg_timeout.total_seconds()
    if isinstance(timeout, datetime.timedelta):
        seconds = timeout.total_seconds()
    elif isinstance(timeout, (int, float)) and not isinstance(timeout, bool):
        seconds = float(timeout)
    else:
        raise TypeError(f'{begin}the timeout is a datetime.timedelta or a number of seconds, not '
                        f'{type(timeout).__name__}')
    if name is not None and not (seconds > 0 or with_zero and seconds == 0):
        rule = 'it is not negative' if with_zero else 'it is more than 0'
        raise ValueError(f'{begin}the timeout is {seconds:g} seconds; {rule}')
    return seconds


def _whole(name, what, value):
    """A whole number, such as a rank."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f'{name}: {what} is a whole number, not {value!r}')
    return value


def _bytes(value):
    if isinstance(value, str):
        return GLib.Bytes.new(value.encode())
    if isinstance(value, (bytes, bytearray, memoryview)):
        return GLib.Bytes.new(bytes(value))
    raise TypeError(f'a value is str or bytes, not {type(value).__name__}')


def _of_store(call):
    """Runs a call of a store; the errors get PyTorch's types."""
    try:
        return restoring(call)
    except GLib.Error as error:
        late = error.matches(Gio.io_error_quark(), Gio.IOErrorEnum.TIMED_OUT)
        wrong = error.matches(GTorch.error_quark(), GTorch.Error.INVALID)
        kind = DistStoreError if late else ValueError if wrong else DistNetworkError
        raise of_kind(kind, error) from None


def _store_methods():
    raw = {name: getattr(Store, name) for name in
           ('set', 'get', 'append', 'add', 'wait', 'check', 'delete_key', 'count_keys', 'compare_set',
            'set_timeout')}

    def set(self, key, value):
        """Sets the value, str or bytes, of a key."""
        _of_store(lambda: raw['set'](self, key, _bytes(value), None))

    def get(self, key):
        """The value of a key as bytes; waits for it."""
        return _of_store(lambda: raw['get'](self, key, None)).get_data() or b''

    def append(self, key, value):
        """Adds to the end of the value of a key."""
        _of_store(lambda: raw['append'](self, key, _bytes(value), None))

    def add(self, key, amount):
        """Adds to the number that a key has, and returns the sum."""
        return _of_store(lambda: raw['add'](self, key, amount, None))[1]

    def compare_set(self, key, expected_value, desired_value):
        """Sets the value of a key if it is the expected one; returns what the key has then."""
        found = _of_store(lambda: raw['compare_set'](self, key, _bytes(expected_value), _bytes(desired_value), None))
        return found.get_data() or b''

    def wait(self, keys, timeout=None):
        """Waits until all keys have values."""
        if isinstance(keys, str):
            raise TypeError('keys is a list of str, not one')
        _of_store(lambda: raw['wait'](self, list(keys), -1 if timeout is None else _seconds(timeout), None))

    def check(self, keys):
        """Whether all keys have values."""
        if isinstance(keys, str):
            raise TypeError('keys is a list of str, not one')
        return _of_store(lambda: raw['check'](self, list(keys), None))[1]

    def delete_key(self, key):
        """Removes a key; returns whether it was there."""
        return _of_store(lambda: raw['delete_key'](self, key, None))[1]

    def num_keys(self):
        """How many keys there are."""
        return _of_store(lambda: raw['count_keys'](self, None))[1]

    def set_timeout(self, timeout):
        """Sets for how long calls wait: a timedelta, or seconds."""
        _of_store(lambda: raw['set_timeout'](self, _seconds(timeout)))

    def multi_set(self, keys, values):
        """Sets the values of keys, one each."""
        keys, values = list(keys), list(values)
        if len(keys) != len(values):
            raise ValueError(f'multi_set: there must be one value for each key, and there are {len(keys)} keys and '
                             f'{len(values)} values')
        for key, value in zip(keys, values):
            self.set(key, value)

    for method in (set, multi_set, get, append, add, compare_set, wait, check, delete_key, num_keys, set_timeout):
        setattr(Store, method.__name__, method)
    Store.multi_get = lambda self, keys: [self.get(key) for key in keys]
    Store.timeout = property(lambda self: datetime.timedelta(seconds=self.props.timeout))


_store_methods()


def TCPStore(host_name, port, world_size=None, is_master=False, timeout=datetime.timedelta(seconds=300),
             wait_for_workers=True, multi_tenant=False, master_listen_fd=None, use_libuv=True, token=None):
    """A store that one process serves to the others. A server that other hosts can reach needs a @token, by default
    that of the variable GTORCH_STORE_TOKEN."""
    if multi_tenant or master_listen_fd is not None:
        raise NotImplementedError('TCPStore: multi_tenant and master_listen_fd are not supported')
    del use_libuv  # there is one server
    waits = convert_bool(wait_for_workers) and bool(world_size)
    token = os.environ.get('GTORCH_STORE_TOKEN') if token is None else token
    return _of_store(lambda: GTorch.TcpStore.new(host_name, port, world_size or 0, is_master, _seconds(timeout),
                                                 waits, token, None))


def FileStore(file_name, world_size=-1):
    """A store in a file."""
    del world_size  # nobody counts the processes: the file stays when they end
    return _of_store(lambda: GTorch.FileStore.new(file_name))


def PrefixStore(prefix, store):
    """The keys of a store that begin with a prefix."""
    return GTorch.PrefixStore.new(prefix, store)


# --- groups ---

def is_available():
    """Whether this module can be used."""
    return True


def is_mpi_available():
    """Whether the library was built with MPI, and that is installed."""
    try:
        return GTorch.ProcessGroup.is_available('mpi')
    except GLib.Error:
        return False


def is_nccl_available():
    """Whether NCCL is installed, for groups of GPUs."""
    try:
        return GTorch.ProcessGroup.is_available('nccl')
    except GLib.Error:
        return False


def is_gloo_available():
    """There is no such backend: on the CPU it is MPI that carries the data."""
    return False


def is_torchelastic_launched():
    """Whether torchrun has started this process."""
    return 'TORCHELASTIC_RUN_ID' in os.environ


def is_initialized():
    """Whether init_process_group() was called."""
    return GroupMember.WORLD is not None


def _find_store(init_method, rank, world_size, timeout):
    if init_method in (None, 'env://', 'mpi://'):
        return None
    kind, _, rest = init_method.partition('://')
    if kind == 'file':
        return FileStore(rest)
    if kind == 'tcp':
        host, _, port = rest.partition('?')[0].rpartition(':')
        if not host or not port.isdigit():
            raise ValueError(f'init_method={init_method!r}: this is tcp://HOST:PORT')
        return TCPStore(host, int(port), world_size if world_size > 0 else None, rank == 0, timeout)
    raise ValueError(f'init_method={init_method!r}: it begins with env://, tcp:// or file://')


def init_process_group(backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, store=None,
                       group_name='', pg_options=None, device_id=None):
    """Makes the group of all processes, of which gtorch-run or mpirun tells each its rank. The backend is “mpi”, or
    “nccl” for GPUs. With a HashStore, ranks are threads of this process, each of which calls this: the group is then
    that of the thread."""
    are_threads = isinstance(store, HashStore) and world_size > 1
    if are_threads and 'groups' not in vars(_of_thread):
        _of_thread.groups = _Groups()
    if is_initialized():
        raise ValueError('init_process_group: the process group is there already: call destroy_process_group() before')
    if pg_options is not None:
        raise NotImplementedError('init_process_group: pg_options is not supported')
    if store is not None and init_method is not None:
        raise ValueError('init_process_group: either store or init_method is given, not both')
    del group_name
    if init_method is not None and not isinstance(init_method, str):
        raise TypeError(f'init_process_group: init_method is a URL, not {type(init_method).__name__}')
    for word, number in (('rank', rank), ('world_size', world_size)):
        if isinstance(number, bool) or not isinstance(number, int):
            raise TypeError(f'init_process_group: {word} is a whole number, not {number!r}')
    seconds, name = _seconds(timeout), _backend(backend)
    if (rank == -1) != (world_size == -1):
        given, missing = ('rank', 'world_size') if world_size == -1 else ('world_size', 'rank')
        raise ValueError(f'init_process_group: {given} is given without {missing}; both are given, or neither')
    if not (rank == world_size == -1 or 0 <= rank < world_size):
        raise ValueError(f'init_process_group: rank {rank} is out of range for {world_size} processes')
    if store is None and init_method in (None, 'env://') and rank == -1 and 'RANK' in os.environ:
        store, rank, world_size = _of_store(lambda: GTorch.Store.from_environment(seconds, None))
    elif store is None:
        store = _find_store(init_method, rank, world_size, timeout)
    try:
        _groups().world = GTorch.ProcessGroup.new(name, store, rank, world_size, seconds, None)
    except GLib.Error as error:
        wrong = error.matches(GTorch.error_quark(), GTorch.Error.INVALID)
        raise of_kind(ValueError if wrong else DistBackendError, error) from None
    if device_id is not None:
        try:
            _bind(GroupMember.WORLD, device_id)
        except BaseException:
            destroy_process_group()
            raise


def _bind(made, device):
    """Connects the ranks for tensors on the device, which all ranks do."""
    device = GTorch.device('cuda', device) if isinstance(device, int) else GTorch.device(device)
    _run(lambda: made.bind_device(device, None))


def _backend(name):
    if name is None:
        return 'mpi'
    if not isinstance(name, str):
        raise TypeError(f'{_caller()}backend is a str, not {type(name).__name__}')
    name = name.lower()
    if name in ('gloo', 'ucc', 'xccl') or ':' in name:
        raise NotImplementedError(f'{_caller()}there is no backend {name!r}: tensors on the CPU are carried by “mpi”, '
                                  'those on GPUs by “nccl”')
    return name


def destroy_process_group(group=None):
    """Drops a group, by default that of all processes with all others."""
    made, groups = _group(group), _groups()
    for one in (made, *(groups.made if made is groups.world else ())):
        one._is_destroyed = True
    if made is groups.world:
        groups.world = None
        groups.made.clear()
        vars(_of_thread).pop('groups', None)
    elif made in groups.made:
        groups.made.remove(made)


def _remember(made):
    _groups().made.append(made)
    return made


def _replace(whole, made):
    """Lets a group take the place of another one."""
    groups = _groups()
    if whole is groups.world:
        groups.world = made
        groups.made.clear()
        return made
    if whole in groups.made:
        groups.made.remove(whole)
    return _remember(made)


def get_pg_count():
    """How many groups there are."""
    return len(_groups().made) + is_initialized()


def _group(value):
    if value is None:
        if GroupMember.WORLD is None:
            raise ValueError(f'{_caller()}there is no process group: call init_process_group() before')
        return GroupMember.WORLD
    if value is GroupMember.NON_GROUP_MEMBER:
        raise ValueError(f'{_caller()}this process has no part in the group')
    if not isinstance(value, GTorch.ProcessGroup):
        raise TypeError(f'{_caller()}group is a group of processes, not {type(value).__name__}')
    if getattr(value, '_is_destroyed', False):
        raise ValueError(f'{_caller()}destroy_process_group() was called for this group')
    return value


def _caller():
    """The function of this library that the program has called, for messages: 'all_reduce: '."""
    frame, name = sys._getframe(1), ''
    while frame is not None and frame.f_globals.get('__name__', '').startswith(('gi.overrides.', 'gtorch.')):
        code = frame.f_code.co_name
        if code not in ('run', '__init__', '__call__', '__new__') and not code.startswith(('_', '<')):
            name = f'{code}: '
        elif code in ('__init__', '__new__') and 'self' in frame.f_locals:
            name = f"{type(frame.f_locals['self']).__name__}: "
        frame = frame.f_back
    return name


def get_rank(group=None):
    """The rank of this process; -1 if it has no part in the group."""
    return -1 if group is GroupMember.NON_GROUP_MEMBER else _group(group).get_rank()


def get_world_size(group=None):
    """How many processes the group has; -1 if this process has no part in it."""
    return -1 if group is GroupMember.NON_GROUP_MEMBER else _group(group).get_size()


def get_backend(group=None):
    """The name of what carries the data."""
    return _group(group).get_backend()


def get_process_group_ranks(group=None):
    """The ranks that the processes of the group have in that of all."""
    return list(_group(group).get_ranks())


def get_global_rank(group, group_rank):
    """The rank in the group of all processes of a rank of @group."""
    ranks = get_process_group_ranks(group)
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f'get_global_rank: rank {group_rank} is out of range for a group of {len(ranks)}')
    return ranks[group_rank]


def get_group_rank(group, global_rank):
    """The rank in @group of a rank of all processes."""
    ranks = get_process_group_ranks(group)
    if global_rank not in ranks:
        raise ValueError(f'{_caller()}rank {global_rank} has no part in the group of ranks {ranks}')
    return ranks.index(global_rank)


def new_group(ranks=None, timeout=None, backend=None, pg_options=None, use_local_synchronization=False,
              group_desc=None, device_id=None):
    """A group of some processes. All processes call this, in the same order."""
    if pg_options is not None or use_local_synchronization:
        raise NotImplementedError('new_group: pg_options and use_local_synchronization are not supported')
    del group_desc
    world = _group(None)
    if backend is not None and _backend(backend) != world.get_backend():
        raise NotImplementedError(f'new_group: the backend is that of the group of all, {world.get_backend()!r}')
    seconds = -1 if timeout is None else _seconds(timeout, 'new_group')
    if ranks is None:
        ranks = range(world.get_size())
    elif isinstance(ranks, (str, bytes)) or not hasattr(ranks, '__iter__'):
        raise TypeError(f'new_group: ranks is a list of ranks, not {type(ranks).__name__}')
    ranks = sorted(_whole('new_group', 'a rank', rank) for rank in ranks)
    made = _run(lambda: world.new_part(ranks, seconds))
    return _remember(made) if made.get_rank() >= 0 else GroupMember.NON_GROUP_MEMBER


# --- operations ---

CODES = {GTorch.Error.INVALID: ValueError, GTorch.Error.INDEX: ValueError, GTorch.Error.SHAPE: ValueError,
         GTorch.Error.DTYPE: TypeError, GTorch.Error.NOT_SUPPORTED: NotImplementedError}


def _run(call):
    try:
        return restoring(call)
    except GLib.Error as error:
        if isinstance(error, OSError):  # of a file
            raise
        kind = DistBackendError
        if error.matches(GTorch.error_quark(), error.code):
            kind = CODES.get(error.code, kind)
        raise of_kind(kind, error) from None


def _wait(self, timeout=None):
    """Waits until the operation is over; returns True. Signals such as that of Ctrl-C are handled meanwhile.

    For work of GPUs the current stream waits, and not the caller, unless there is a time limit."""
    if timeout is None and not self.is_blocking():
        return _run(lambda: _raw_wait(self, -1, None))
    seconds = None if timeout is None else _seconds(timeout, 'Work.wait', True)
    end = None if seconds is None else time.monotonic() + seconds
    while not self.is_completed() and (end is None or time.monotonic() < end):
        try:
            return _raw_wait(self, SLICE if end is None else max(0.0, min(SLICE, end - time.monotonic())), None)
        except GLib.Error:
            continue  # it is not over, or has failed
    if end is None:
        return _run(lambda: _raw_wait(self, -1, None))
    try:
        return _raw_wait(self, 0, None)
    except GLib.Error as error:
        # The last number of the message are the seconds of this wait.
        is_late = error.matches(Gio.io_error_quark(), Gio.IOErrorEnum.TIMED_OUT) and not self.is_completed()
        raise of_kind(DistBackendError, error,
                      re.sub(r'0(?=\D*$)', f'{seconds:g}', error.message) if is_late else None) from None


_raw_wait, Work.wait = restores(Work.wait), _wait
Work._source_rank = Work.get_source_rank
Work.exception = lambda self: None if not self.is_completed() or self.is_success() else _caught(self)


class Future:
    """A value that operations may still compute: reading tensors waits for them by itself, so functions of then() run
    at once."""

    def __init__(self, *, devices=None):
        del devices
        self._work, self._value, self._is_set, self._callbacks = None, None, False, []

    def set_result(self, result):
        """Sets the value."""
        if self._is_set:
            raise RuntimeError('the future has a value already')
        self._value, self._is_set = result, True
        for callback in self._callbacks:
            callback(self)

    def done(self):
        """Whether the value is there."""
        return self._is_set and (self._work is None or self._work.is_completed())

    def wait(self):
        """Waits for the value, and returns it."""
        if self._work is not None:
            self._work.wait()
        return self.value()

    def value(self):
        """The value."""
        if not self._is_set:
            raise RuntimeError('the future has no value yet: call set_result()')
        return self._value

    def then(self, callback):
        """A future with what callback(self) returns."""
        made = Future()
        self.add_done_callback(lambda future: made.set_result(callback(future)))
        return made

    def add_done_callback(self, callback):
        """Calls a function with this future when it has its value."""
        if self._is_set:
            callback(self)
        else:
            self._callbacks.append(callback)


def _future(work):
    """The future of an operation that has begun with async_op=True: a list of its results."""
    made = Future()
    made._work = work
    made.set_result(work.result())
    return made


Work.get_future = _future
Work.result = lambda self: list(self.__dict__.get('_results', []))


def _caught(work):
    try:
        work.wait()
    except DistError as error:
        return error
    return None


def _end(work, async_op, *results):
    if async_op:
        work._results = list(results)
        return work
    work.wait()
    return None


def _tag(value):
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f'{_caller()}tag is a whole number, not {value!r}')
    if not -(2**31) <= value < 2**31:
        raise ValueError(f'{_caller()}the tag is {value}; tags are from 0 to 32767')
    return value


def _reduction(op):
    if isinstance(op, _PremulSum) or op == ReduceOp.PREMUL_SUM:
        raise NotImplementedError('PREMUL_SUM is for all_reduce() and reduce_scatter_tensor(), with the factor that '
                                  '_make_nccl_premul_sum() gives it')
    if not isinstance(op, GTorch.ReduceOp):
        raise TypeError(f'{_caller()}op is one of ReduceOp, such as ReduceOp.SUM, not {type(op).__name__}')
    return op


def _check(name, *values):
    for value in values:
        if not isinstance(value, RawTensor):
            raise TypeError(f'{name}() takes tensors, not {type(value).__name__}')


def _list(name, values):
    if values is None:
        return []
    if isinstance(values, RawTensor) or not isinstance(values, (list, tuple)):
        raise TypeError(f'{name}() takes a list of tensors, not {type(values).__name__}')
    _check(name, *values)
    return list(values)


def _place(group, global_rank, group_rank, what):
    """The rank in the group of an argument that may be given in either way."""
    if (global_rank is None) == (group_rank is None):
        which = 'none was' if group_rank is None else 'both were'
        raise ValueError(f'{_caller()}either {what} or group_{what} must be given, and {which}')
    given = global_rank if group_rank is None else group_rank
    if isinstance(given, bool) or not isinstance(given, int):
        raise TypeError(f'{_caller()}{what} is a rank, a whole number, not {type(given).__name__}')
    if not -(2**31) <= given < 2**31:
        raise ValueError(f'{_caller()}rank {given} is out of range for {get_world_size(group)} processes')
    if group_rank is not None:
        return group_rank
    return global_rank if group is None else get_group_rank(group, global_rank)


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    """Reduces the tensors of all ranks, and gives the result to all of them."""
    _check('all_reduce', tensor)
    if isinstance(op, _PremulSum):
        return _end(_run(lambda: _group(group).all_reduce_premul(tensor, op.factor)), async_op, tensor)
    return _end(_run(lambda: _group(group).all_reduce(tensor, _reduction(op))), async_op, tensor)


def reduce(tensor, dst=None, op=ReduceOp.SUM, group=None, async_op=False, group_dst=None):
    """Reduces the tensors of all ranks, and gives the result to one of them."""
    _check('reduce', tensor)
    place = _place(group, dst, group_dst, 'dst')
    return _end(_run(lambda: _group(group).reduce(tensor, place, _reduction(op))), async_op, tensor)


def broadcast(tensor, src=None, group=None, async_op=False, group_src=None):
    """Copies the tensor of one rank to all others."""
    _check('broadcast', tensor)
    place = _place(group, src, group_src, 'src')
    return _end(_run(lambda: _group(group).broadcast(tensor, place)), async_op, tensor)


def all_gather(tensor_list, tensor, group=None, async_op=False):
    """Gives the tensors of all ranks to all of them."""
    _check('all_gather', tensor)
    outputs = _list('all_gather', tensor_list)
    return _end(_run(lambda: _group(group).all_gather(outputs, tensor)), async_op, *outputs)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    """Gives the tensors of all ranks, one behind the other, to all of them."""
    _check('all_gather_into_tensor', output_tensor, input_tensor)
    work = _run(lambda: _group(group).all_gather_into_tensor(output_tensor, input_tensor))
    return _end(work, async_op, output_tensor)


def gather(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None):
    """Gives the tensors of all ranks to one of them."""
    _check('gather', tensor)
    place = _place(group, 0 if dst is None and group_dst is None else dst, group_dst, 'dst')
    outputs = _list('gather', gather_list)
    return _end(_run(lambda: _group(group).gather(outputs, tensor, place)), async_op)


def scatter(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None):
    """Gives each rank one of the tensors of a rank."""
    _check('scatter', tensor)
    place = _place(group, 0 if src is None and group_src is None else src, group_src, 'src')
    inputs = _list('scatter', scatter_list)
    return _end(_run(lambda: _group(group).scatter(tensor, inputs, place)), async_op)


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    """Reduces what all ranks have for each rank, and gives each its part."""
    _check('reduce_scatter', output)
    inputs = _list('reduce_scatter', input_list)
    return _end(_run(lambda: _group(group).reduce_scatter(output, inputs, _reduction(op))), async_op, output)


def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    """Reduces the tensors of all ranks, and gives each its part of the result."""
    _check('reduce_scatter_tensor', output, input)
    if isinstance(op, _PremulSum):
        work = _run(lambda: _group(group).reduce_scatter_tensor_premul(output, input, op.factor))
        return _end(work, async_op, output)
    return _end(_run(lambda: _group(group).reduce_scatter_tensor(output, input, _reduction(op))), async_op, output)


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    """Sends each rank a tensor, and gets one from each."""
    outputs, inputs = _list('all_to_all', output_tensor_list), _list('all_to_all', input_tensor_list)
    return _end(_run(lambda: _group(group).all_to_all(outputs, inputs)), async_op)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False):
    """Sends each rank a part of a tensor, and gets one from each."""
    _check('all_to_all_single', output, input)
    splits = [[_whole('all_to_all_single', 'a split size', one) for one in sizes or ()]
              for sizes in (output_split_sizes, input_split_sizes)]
    return _end(_run(lambda: _group(group).all_to_all_single(output, input, *splits)), async_op)


@_composed
def isend(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Begins to send a tensor to a rank."""
    _check('isend', tensor)
    place = _place(group, dst, group_dst, 'dst')
    return _run(lambda: _group(group).send(tensor, place, _tag(tag)))


@_composed
def irecv(tensor, src=None, group=None, tag=0, group_src=None):
    """Begins to receive a tensor from a rank, from any if none is named."""
    _check('irecv', tensor)
    if src is None and group_src is None:
        return _run(lambda: _group(group).recv_any(tensor, _tag(tag)))
    place = _place(group, src, group_src, 'src')
    return _run(lambda: _group(group).recv(tensor, place, _tag(tag)))


@_composed
def send(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Sends a tensor to a rank, and waits until it is on its way."""
    _check('send', tensor)
    isend(tensor, dst, group, tag, group_dst).wait()


@_composed
def recv(tensor, src=None, group=None, tag=0, group_src=None):
    """Receives a tensor from a rank; returns that rank."""
    _check('recv', tensor)
    work = irecv(tensor, src, group, tag, group_src)
    work.wait()
    return get_global_rank(group, work.get_source_rank())


class P2POp:
    """A call of isend() or irecv() that batch_isend_irecv() makes."""

    def __init__(self, op, tensor, peer=None, group=None, tag=0, group_peer=None):
        if op not in (isend, irecv):
            raise ValueError('P2POp: op is isend or irecv of this module')
        self.op, self.tensor, self.peer, self.group = op, tensor, peer, group
        self.tag, self.group_peer = tag, group_peer


@_composed
def batch_isend_irecv(p2p_op_list):
    """Begins several sends and receives; returns a list of work."""
    if not p2p_op_list or not all(isinstance(one, P2POp) for one in p2p_op_list):
        raise ValueError('batch_isend_irecv: the list must have objects of the class P2POp, at least one')
    made = _group(p2p_op_list[0].group)
    if any(_group(one.group) is not made for one in p2p_op_list):
        raise ValueError('batch_isend_irecv: the operations of a list have the same group')
    _run(made.begin_batch)
    try:
        works = [one.op(one.tensor, one.peer, one.group, one.tag, one.group_peer) for one in p2p_op_list]
    finally:
        _run(made.end_batch)
    return works


def barrier(group=None, async_op=False, device_ids=None):
    """Waits until all ranks are here. @device_ids is a list with the GPU of this process."""
    if device_ids is not None:
        if not isinstance(device_ids, list) or len(device_ids) != 1:
            raise ValueError('barrier: device_ids is a list of one number, that of the GPU of this process')
        _bind(_group(group), device_ids[0])
    return _end(_run(lambda: _group(group).barrier()), async_op)


# --- objects ---

def _device(group):
    """Where the tensors of a group are."""
    return 'cuda' if get_backend(group) == 'nccl' else 'cpu'


def _packed(value, group):
    return GTorch.frombuffer(bytearray(pickle.dumps(value)), dtype=GTorch.uint8).to(_device(group))


def _unpacked(tensor, size):
    return pickle.loads(tensor[:size].cpu().numpy().tobytes())


def _sizes(tensor, group):
    """The lengths of the packed objects of all ranks."""
    own = GTorch.tensor([tensor.numel()], dtype=GTorch.int64, device=_device(group))
    all_sizes = GTorch.zeros(get_world_size(group), dtype=GTorch.int64, device=_device(group))
    all_gather_into_tensor(all_sizes, own, group)
    return all_sizes.tolist()


def _padded(tensor, size):
    result = GTorch.zeros(size, dtype=GTorch.uint8, device=tensor.device)
    result[: tensor.numel()] = tensor
    return result


def _objects(name, values):
    if not isinstance(values, (list, tuple)):
        raise TypeError(f'{name}(): object_list is a list, not {type(values).__name__}')
    return list(values)


def _check_length(name, values, group):
    _group(group)  # which this process may have no part in
    if values is None or len(values) != get_world_size(group):
        raise ValueError(f'{name}(): the list has one place for each of {get_world_size(group)} ranks')


@_composed
def all_gather_object(object_list, obj, group=None):
    """Gives the objects of all ranks to all of them. Objects are pickled: use this with ranks that are trusted."""
    _check_length('all_gather_object', object_list, group)
    packed = _packed(obj, group)
    sizes = _sizes(packed, group)
    parts = [GTorch.zeros(max(sizes), dtype=GTorch.uint8, device=_device(group)) for _ in sizes]
    all_gather(parts, _padded(packed, max(sizes)), group)
    object_list[:] = [_unpacked(part, size) for part, size in zip(parts, sizes)]


@_composed
def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None):
    """Gives the objects of all ranks to one of them."""
    place = _place(group, 0 if dst is None and group_dst is None else dst, group_dst, 'dst')
    is_place = get_rank(group) == place
    if is_place:
        _check_length('gather_object', object_gather_list, group)
    packed = _packed(obj, group)
    sizes = _sizes(packed, group)
    parts = [GTorch.zeros(max(sizes), dtype=GTorch.uint8, device=_device(group)) for _ in sizes] if is_place else None
    gather(_padded(packed, max(sizes)), parts, group=group, group_dst=place)
    if is_place:
        object_gather_list[:] = [_unpacked(part, size) for part, size in zip(parts, sizes)]


@_composed
def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None):
    """Copies the objects in the list of one rank to those of the others."""
    del device  # that of the group
    place = _place(group, 0 if src is None and group_src is None else src, group_src, 'src')
    packed = _packed(_objects('broadcast_object_list', object_list), group)
    size = GTorch.tensor([packed.numel(), len(object_list)], dtype=GTorch.int64, device=_device(group))
    broadcast(size, group=group, group_src=place)
    n_bytes, n = size.tolist()
    if len(object_list) != n:
        raise ValueError(f'broadcast_object_list(): the list has {len(object_list)} places for {n} objects')
    data = packed if get_rank(group) == place else GTorch.zeros(n_bytes, dtype=GTorch.uint8, device=_device(group))
    broadcast(data, group=group, group_src=place)
    object_list[:] = _unpacked(data, n_bytes)


@_composed
def scatter_object_list(scatter_object_output_list, scatter_object_input_list=None, src=None, group=None,
                        group_src=None):
    """Gives each rank one of the objects of a rank, as the first of its list."""
    place = _place(group, 0 if src is None and group_src is None else src, group_src, 'src')
    is_place = get_rank(group) == place
    if not scatter_object_output_list:
        raise ValueError('scatter_object_list(): the list of the results has no place')
    if is_place:
        _check_length('scatter_object_list', scatter_object_input_list, group)
    packed = [_packed(one, group) for one in scatter_object_input_list] if is_place else []
    sizes = GTorch.zeros(get_world_size(group), dtype=GTorch.int64, device=_device(group))
    if is_place:
        sizes = GTorch.tensor([one.numel() for one in packed], dtype=GTorch.int64, device=_device(group))
    broadcast(sizes, group=group, group_src=place)
    sizes = sizes.tolist()
    mine = GTorch.zeros(max(sizes), dtype=GTorch.uint8, device=_device(group))
    parts = [_padded(one, max(sizes)) for one in packed] if is_place else None
    scatter(mine, parts, group=group, group_src=place)
    scatter_object_output_list[0] = _unpacked(mine, sizes[get_rank(group)])


@_composed
def send_object_list(object_list, dst=None, group=None, device=None, group_dst=None):
    """Sends the objects in a list to a rank."""
    del device
    packed = _packed(_objects('send_object_list', object_list), group)
    send(GTorch.tensor([packed.numel()], dtype=GTorch.int64, device=_device(group)), dst, group, 0, group_dst)
    send(packed, dst, group, 0, group_dst)


@_composed
def recv_object_list(object_list, src=None, group=None, device=None, group_src=None):
    """Receives objects into a list of the same length; returns the rank that has sent them."""
    del device
    _objects('recv_object_list', object_list)
    size = GTorch.zeros(1, dtype=GTorch.int64, device=_device(group))
    recv(size, src, group, 0, group_src)
    data = GTorch.zeros(size.item(), dtype=GTorch.uint8, device=_device(group))
    rank = recv(data, src, group, 0, group_src)
    found = _unpacked(data, data.numel())
    if len(found) != len(object_list):
        raise ValueError(f'recv_object_list(): the list has {len(object_list)} places for {len(found)} objects')
    object_list[:] = found
    return rank
