# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The worker processes of loaders: what runs in them, and the program's end of one.

The two ends have a socket. The program sends pickled tasks; a thread of the worker reads them, so that the program
never waits for room in the socket, and looks for the end of the program, however that comes. A result is pickled, but
for its tensors: these are in shared memory (GTorch.SharedMemory), whose file descriptors follow the result that uses
them first. A worker writes to the same memory again once the program has dropped the tensors that it had there."""

import collections
import hashlib
import importlib
import io
import os
import pickle
import queue
import random
import signal
import struct
import sys
import threading
import time
import traceback
from multiprocessing import connection, reduction

importlib.import_module('gtorch')  # which finds the library of a wheel, where a process imports this module first
from gi.repository import GLib, GTorch  # noqa: E402

from gi.overrides import _gtorch_collate as collate  # noqa: E402
from gi.overrides import _gtorch_datasets as datasets  # noqa: E402
from gi.overrides import _gtorch_worker_info as info  # noqa: E402

ALIGNMENT = 64
PAGE = 4096
SPARE = 3  # pieces of memory that a worker has beyond those for batches that wait
LOOK = 0.5  # seconds after which the program looks whether a worker lives
PATIENCE = 2.0  # seconds that workers have to end
MASK = 2**32 - 1

FETCH, BEGIN = 'fetch', 'begin'
DATA, END, ERROR = 'data', 'end', 'error'

Task = collections.namedtuple('Task', 'dataset is_iterable collates collate_fn drop_last init_fn n_workers base_seed '
                              'n_pieces has_state')  # fmt: skip


# --- what is fetched, also without workers ---


def whole_batches(task):
    """The function that gives collated batches at once, or None: of tensors, unless they are collated another way."""
    if not task.collates or task.collate_fn is not collate.default_collate:
        return None
    if collate.default_collate_fn_map.get(GTorch.Tensor) is not collate.collate_tensor_fn:
        return None
    return datasets.batches(task.dataset)


class MapFetcher:
    """Samples by their indices."""

    def __init__(self, task):
        self.dataset, self.collate_fn = task.dataset, task.collate_fn
        self.collates, self.getitems = task.collates, getattr(task.dataset, '__getitems__', None)
        self.batch = whole_batches(task)

    def fetch(self, index):
        """The batch of a list of indices, or the sample of one index."""
        if not self.collates:
            return self.collate_fn(self.dataset[index])
        if self.batch is not None and (type(index) is not list or all(type(i) is int for i in index)):
            return self.batch(index)
        if self.getitems:
            return self.collate_fn(self.getitems(index))
        return self.collate_fn([self.dataset[i] for i in index])


class IterableFetcher:
    """Samples in their order; raises StopIteration at the end."""

    def __init__(self, task):
        self.iterator, self.collate_fn = iter(task.dataset), task.collate_fn
        self.collates, self.drop_last, self.is_at_end = task.collates, task.drop_last, False

    def fetch(self, index):
        """The next batch, of as many samples as @index has elements, or the next sample."""
        if self.is_at_end:
            raise StopIteration
        if not self.collates:
            return self.collate_fn(next(self.iterator))
        found = []
        for _ in index:
            try:
                found.append(next(self.iterator))
            except StopIteration:
                self.is_at_end = True
                break
        if not found or (self.drop_last and len(found) < len(index)):
            raise StopIteration
        return self.collate_fn(found)


def fetcher(task):
    return (IterableFetcher if task.is_iterable else MapFetcher)(task)


# --- errors ---


class _Text(str):
    """A text that a KeyError shows as it is."""

    __repr__ = str.__str__


class Caught:
    """An exception of a worker, for the program: its kind, and a text with the traceback."""

    def __init__(self, error, where):
        shown = ''.join(traceback.format_exception(type(error), error, error.__traceback__))
        self.text = f'{where}: {type(error).__name__}: {_said(error)}\n\nIn the worker:\n{shown}'
        self.code = (error.domain, error.code) if isinstance(error, GLib.Error) else None
        try:
            self.kind = pickle.dumps(type(error))
        except Exception:
            self.kind = None

    def made(self):
        """The exception, to be raised."""
        if self.code is not None:
            return GLib.Error(self.text, *self.code)
        try:
            kind = pickle.loads(self.kind)
            text = _Text(self.text) if issubclass(kind, KeyError) else self.text
            made = kind(text)
        except Exception:
            return RuntimeError(self.text)
        if self.text not in str(made):  # one with arguments of its own
            made.__cause__ = RuntimeError(self.text)
        return made


def _said(error):
    try:
        return error.message if isinstance(error, GLib.Error) else str(error)
    except Exception:
        return 'an exception without a text'


# --- memory ---


class _Piece:
    """Shared memory, in which a batch or a part of one is made."""

    def __init__(self, number, size):
        self.number, self.memory, self.size = number, GTorch.SharedMemory.new(size), size
        self.address, self.used, self.is_known = self.memory.get_address(), 0, False


class Pieces:
    """The memory of a worker."""

    def __init__(self, n_pieces):
        self.n_pieces, self.kept, self.number, self.expected = n_pieces, [], 0, 0
        self.current, self.dropped = [], []

    def begin(self):
        """Begins a batch."""
        self.expected = max(self.expected // 2, sum(piece.used for piece in self.current))
        self.current = []

    def _take(self, size):
        """A piece of at least this size, of which nobody uses anything."""
        free = [piece for piece in self.kept if piece not in self.current and not piece.memory.is_used()]
        found = next((piece for piece in free if piece.size >= size), None)
        if found is None:
            while len(self.kept) >= self.n_pieces:
                others = [piece for piece in self.kept if piece not in self.current]
                if not others:
                    break
                self._drop(free.pop(0) if free else others[0])
            found = _Piece(self.number, -(-size // PAGE) * PAGE)
            self.number += 1
            self.kept.append(found)
        found.used = 0
        self.current.append(found)
        return found

    def _drop(self, piece):
        self.kept.remove(piece)
        if piece.is_known:
            self.dropped.append(piece.number)

    def place(self, dtype, shape):
        """A tensor in shared memory, without values."""
        size = dtype.itemsize
        for n in shape:
            size *= n
        size = -(-size // ALIGNMENT) * ALIGNMENT
        piece = self.current[-1] if self.current else None
        if piece is None or piece.size - piece.used < size:
            piece = self._take(max(size, self.expected))
        made = piece.memory.make_tensor(piece.used, dtype, shape)
        piece.used += size
        return made

    def shared_like(self, elem, n):
        """Memory for @n tensors like @elem, or None if they cannot be shared."""
        if elem.device.type != 'cpu' or elem.requires_grad or elem.numel() == 0 or n == 0:
            return None
        return self.place(elem.dtype, [n, *elem.shape])

    def find(self, tensor):
        """The piece that has the tensor and its offset; the tensor is copied there unless it has been made there."""
        for _ in range(2):
            address = tensor.data_ptr()
            for piece in self.current:
                if piece.address <= address < piece.address + piece.used and tensor.is_contiguous():
                    return piece, address - piece.address
            tensor = self.place(tensor.dtype, list(tensor.shape)).copy_(tensor.detach())
        raise AssertionError('a tensor is where it was copied to')

    def reduce(self, tensor):
        """What a pickle of a result has of a tensor: where it is."""
        if not tensor.is_leaf:
            raise RuntimeError(f'a tensor of shape {list(tensor.shape)} that requires grad and was computed cannot go '
                               'to another process: use detach()')
        if tensor.device.type != 'cpu' or tensor.numel() == 0:
            return tensor.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        piece, offset = self.find(tensor)
        return _rebuilt, (piece.number, offset, int(tensor.dtype), list(tensor.shape), tensor.requires_grad)


def _rebuilt(piece, offset, dtype, shape, requires_grad):
    """A tensor of a result, in the program's process."""
    made = _reading.pieces[piece].make_tensor(offset, GTorch.DType(dtype), shape)
    return made.requires_grad_() if requires_grad else made


_reading = threading.local()


# --- in a worker process ---


def seed_all(base_seed, number):
    """Seeds the generators of a worker process as PyTorch does, and returns the seed."""
    seed = base_seed + number
    random.seed(seed)
    GTorch.manual_seed(seed % 2**64)
    numpy = sys.modules.get('numpy')
    if numpy is not None:
        words = [number, base_seed & MASK, base_seed >> 32, 0]
        numpy.random.seed(numpy.random.SeedSequence(words).generate_state(4))
    return seed


def derived_seed(base_seed, number, place):
    """The seed of the batch @place of worker @number, so that a run that goes on from there draws the same."""
    packed = struct.pack('<QQQ', base_seed % 2**64, number, place)
    return int.from_bytes(hashlib.blake2b(packed, digest_size=8).digest(), 'little')


class Generators:
    """The generators of a worker process, which each batch seeds anew: what it draws follows from the seed of the
    epoch, the worker and the number of the batch. Those that the program's worker_init_fn has seeded, or drawn from,
    are its own."""

    def __init__(self):
        self.own = set()

    @staticmethod
    def states():
        numpy = sys.modules.get('numpy')
        generator = GTorch.Device.cpu().get_default_generator()
        found = {'random': random.getstate(), 'gtorch': generator.get_state().tolist()}
        if numpy is not None:
            _name, keys, place, *rest = numpy.random.get_state()
            found['numpy'] = (keys.tobytes(), place, *rest)
        return found

    def note(self, before):
        """Finds what has changed since the states were taken."""
        self.own = {name for name, state in self.states().items() if name in before and before[name] != state}

    def seed(self, base_seed, number, place):
        if place == 0 and not self.own:
            seed_all(base_seed, number)
            return
        seed = derived_seed(base_seed, number, place)
        if 'random' not in self.own:
            random.seed(seed)
        if 'gtorch' not in self.own:
            GTorch.manual_seed(seed)
        numpy = sys.modules.get('numpy')
        if numpy is not None and 'numpy' not in self.own:
            words = numpy.random.SeedSequence([seed & MASK, seed >> 32]).generate_state(4)
            numpy.random.seed(words)


class _Worker:
    """What a worker process has."""

    def __init__(self, conn, task, number, parent):
        self.conn, self.task, self.number, self.parent = conn, task, number, parent
        self.where = f'DataLoader worker {number}'
        self.pieces = Pieces(task.n_pieces)
        self.tasks, self.fetcher, self.failed = queue.SimpleQueue(), None, None
        self.generators, self.base_seed, self.place = Generators(), task.base_seed, 0

    def read(self):
        """In a thread: reads the tasks, and ends the process with the program."""
        try:
            parent = os.pidfd_open(self.parent)
        except ProcessLookupError:
            os._exit(1)
        except (AttributeError, OSError):
            parent = None
        while True:
            ready = connection.wait([self.conn] if parent is None else [self.conn, parent], None if parent else LOOK)
            if parent in ready or not _lives(self.parent):
                os._exit(1)
            if not ready:
                continue
            try:
                task = self.conn.recv()
            except (EOFError, OSError):
                task = None
            if task is None or task[0] == BEGIN:  # what was to be fetched is not needed any more
                self.forget()
            self.tasks.put(task)
            if task is None:
                return

    def forget(self):
        try:
            while True:
                self.tasks.get_nowait()
        except queue.Empty:
            pass

    def begin(self, dataset_state, skipped, base_seed, place):
        """Makes ready for an epoch, from a state of the data set or behind results that are not needed again."""
        self.fetcher, self.base_seed, self.place = None, base_seed, place - len(skipped)
        self.generators.seed(base_seed, self.number, self.place)
        if dataset_state is not None:
            self.task.dataset.load_state_dict(dataset_state)
        self.fetcher = fetcher(self.task)
        for index in skipped:
            self.made(index)
        self.place = place

    def made(self, index):
        """A batch, of which the random numbers follow from its place among those of the worker."""
        if self.place > 0:  # else done by begin()
            self.generators.seed(self.base_seed, self.number, self.place)
        self.place += 1
        return self.fetcher.fetch(index)

    def begins(self, state):
        try:
            self.begin(*state)
        except StopIteration:
            pass
        except Exception as error:
            self.failed = Caught(error, self.where)

    def fetch(self, index, place):
        """What there is to tell for a task; @place is that of the batch if it does not follow from those before."""
        if place is not None:
            self.place = place
        if self.failed is not None:
            failed, self.failed = self.failed, None
            return ERROR, failed, None
        try:
            data = self.made(index)
        except StopIteration as error:
            if self.task.is_iterable:
                return END, None, None
            return ERROR, Caught(error, self.where_of(index)), None
        except Exception as error:
            return ERROR, Caught(error, self.where_of(index)), None
        return DATA, data, self.task.dataset.state_dict() if self.task.has_state else None

    def where_of(self, index):
        if self.task.is_iterable:
            return self.where
        few = index if not isinstance(index, list) or len(index) <= 8 else [*index[:8], '…']
        return f'{self.where}, index {few}'

    def send(self, number, result):
        """Sends a result, and the file descriptors of memory that it is the first to use."""
        file = io.BytesIO()
        pickler = reduction.ForkingPickler(file, pickle.HIGHEST_PROTOCOL)
        pickler.dispatch_table = {**pickler.dispatch_table, GTorch.Tensor: self.pieces.reduce}
        try:
            pickler.dump((number, result))
        except Exception as error:
            self.pieces.begin()
            file = io.BytesIO(pickle.dumps((number, (ERROR, Caught(error, self.where), None))))
        used = self.pieces.current
        fresh = [piece for piece in used if not piece.is_known]
        dropped, self.pieces.dropped = self.pieces.dropped, []
        table = pickle.dumps(([piece.number for piece in fresh], [piece.number for piece in used], dropped))
        for piece in used:
            piece.memory.lend()
            piece.is_known = True
        self.conn.send_bytes(b''.join((bytes([len(fresh)]), table, file.getbuffer())))
        for piece in fresh:
            reduction.send_handle(self.conn, piece.memory.get_fd(), self.parent)

    def run(self):
        GTorch.set_num_threads(1)
        seed = seed_all(self.task.base_seed, self.number)
        info.shared_like = self.pieces.shared_like
        info.set_process(info.WorkerInfo(self.number, self.task.n_workers, seed, self.task.dataset))
        threading.Thread(target=self.read, daemon=True).start()
        try:
            if self.task.init_fn is not None:
                before = self.generators.states()
                self.task.init_fn(self.number)
                self.generators.note(before)
        except Exception as error:
            self.failed = Caught(error, f'{self.where}, worker_init_fn')
        while True:
            task = self.tasks.get()
            if task is None:
                return
            kind, number, value = task
            self.pieces.begin()
            if kind == BEGIN:
                self.begins(value)
                continue
            self.send(number, self.fetch(*value))


def _lives(parent):
    try:
        os.kill(parent, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def main(conn, others, task, number, parent):
    """The function of a worker process. @others are the program's ends of sockets, which a fork has copied."""
    for one in others:
        one.close()
    try:
        _Worker(conn, task, number, parent).run()
    except (KeyboardInterrupt, BrokenPipeError, ConnectionResetError):  # the program has it, too, or is gone
        pass


# --- in the program's process ---


class Process:
    """The program's end of a worker process."""

    def __init__(self, context, task, number, others):
        self.number, self.pid, self.pieces, self.is_done = number, os.getpid(), {}, False
        self.conn, theirs = connection.Pipe()
        is_fork = context.get_start_method() == 'fork'
        inherited = [*others, self.conn] if is_fork else []
        self.process = context.Process(target=main, args=(theirs, inherited, task, number, self.pid), daemon=True)
        try:
            self.process.start()
        except BaseException:
            self.conn.close()
            raise
        finally:
            theirs.close()

    def send(self, kind, number, value):
        try:
            self.conn.send((kind, number, value))
        except (BrokenPipeError, ConnectionResetError):
            raise self.death() from None

    def is_ready(self):
        return self.conn.poll(0)

    def receive(self):
        """The number of a task and its result. There must be one: see wait()."""
        try:
            data = memoryview(self.conn.recv_bytes())
            handles = [reduction.recv_handle(self.conn) for _ in range(data[0])]
        except (EOFError, ConnectionResetError):
            raise self.death() from None
        file = io.BytesIO(data[1:])
        fresh, used, dropped = pickle.load(file)
        for piece, handle in zip(fresh, handles):
            self.pieces[piece] = GTorch.SharedMemory.new_from_fd(handle)
            os.close(handle)
        _reading.pieces = {piece: self.pieces[piece] for piece in used}
        for piece in dropped:
            self.pieces.pop(piece, None)
        for memory in _reading.pieces.values():
            memory.hold()
        try:
            return pickle.load(file)
        finally:
            for memory in _reading.pieces.values():
                memory.release()
            _reading.pieces = None

    def death(self):
        """The exception that says how the worker ended."""
        self.process.join(1)
        code = self.process.exitcode
        self.is_done = True
        if code is None:
            how = 'has closed its connection'
        elif code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f'signal {-code}'
            how = f'was killed by {name} (exit code {code})'
        else:
            how = f'ended by itself (exit code {code})'
        return RuntimeError(f'DataLoader worker {self.number}: process {self.process.pid} {how}')

    def end(self):
        """Tells the worker to end."""
        if self.pid != os.getpid():  # of the program that has forked this one
            return
        try:
            self.conn.send(None)
        except OSError:
            pass

    def join(self, until):
        """Waits until the worker has ended, and ends it if it takes too long."""
        if self.pid != os.getpid():
            return
        self.is_done = True
        # Its results are not read any more: without this a worker would wait for room for one.
        self.conn.close()
        for stop in (None, self.process.terminate, self.process.kill):
            if stop is not None:
                stop()
                until = time.monotonic() + PATIENCE / 2
            self.process.join(max(0, until - time.monotonic()))
            if self.process.exitcode is not None:
                break
        self.pieces.clear()
        self.process.close()


def wait(processes, timeout):
    """The workers among @processes that have a result. Raises if one has ended; an empty list when the time is over."""
    until = None if timeout is None else time.monotonic() + timeout
    by_conn = {one.conn: one for one in processes}
    while True:
        left = LOOK if until is None else min(LOOK, max(0, until - time.monotonic()))
        ready = connection.wait(list(by_conn), left)
        if ready:
            return [by_conn[conn] for conn in ready]
        for one in processes:
            if not one.process.is_alive() and not one.is_ready():
                raise one.death()
        if until is not None and time.monotonic() >= until:
            return []
