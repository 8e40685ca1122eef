#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Worker processes of loaders: what they pass on, their errors, how they end."""

import collections
import dataclasses
import gc
import multiprocessing
import os
import pathlib
import random
import select
import signal
import subprocess
import sys
import threading
import time
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / 'style'))

import numpy  # noqa: E402

import gtorch as torch  # noqa: E402
import gtorch.utils.data as data  # noqa: E402

import tap  # noqa: E402
from tap import raises  # noqa: E402

warnings.filterwarnings('ignore', '.*workers share')  # of machines with one or two processors
LONG = 30  # seconds that nothing here takes
Point = collections.namedtuple('Point', 'x y')
CONTEXTS = [one for one in ('fork', 'spawn', 'forkserver') if one in multiprocessing.get_all_start_methods()]


@dataclasses.dataclass
class Box:
    corner: torch.Tensor
    name: str


class Numbers(data.Dataset):
    """Samples that a function makes of indices."""

    def __init__(self, n, make=None):
        self.n, self.make = n, make or (lambda i: (torch.full((2,), float(i)), i))

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return self.make(i)


class Plain(data.Dataset):
    """A set that can be pickled."""

    def __len__(self):
        return 5

    def __getitem__(self, i):
        return Point(torch.full((2,), float(i)), i)


class Count(data.IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = data.get_worker_info()
        return iter(range(info.id, self.n, info.num_workers))


class Reader(Count):
    """A set that tells where it is."""

    def __init__(self, n):
        super().__init__(n)
        self.place = None

    def __iter__(self):
        info = data.get_worker_info()
        self.place = info.id if self.place is None else self.place
        while self.place < self.n:
            self.place += info.num_workers
            yield self.place - info.num_workers

    def state_dict(self):
        return {'place': self.place}

    def load_state_dict(self, state):
        self.place = state['place']


def ends(pid):
    """Whether the process ends soon."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], LONG)[0])
    finally:
        os.close(process)


def pids(iterator):
    return [one.process.pid for one in iterator.processes]


def labels(loader):
    return [y.tolist() for _, y in loader]


# --- what is passed on ---


def by(context):
    loader = data.DataLoader(Plain(), batch_size=2, num_workers=2, multiprocessing_context=context)
    found = list(loader)
    assert [type(one).__name__ for one in found] == ['Point'] * 3
    assert [one.x.tolist() for one in found] == [[[0, 0], [1, 1]], [[2, 2], [3, 3]], [[4, 4]]]
    assert [one.y.tolist() for one in found] == [[0, 1], [2, 3], [4]]


for context_name in CONTEXTS:
    tap.add(f'batches_come_by_{context_name}', by, context_name)


@tap.case
def a_context_may_be_an_object():
    loader = data.DataLoader(Plain(), num_workers=1, multiprocessing_context=multiprocessing.get_context('fork'))
    assert len(list(loader)) == 5


@tap.case
def structures_keep_their_kinds():
    def make(i):
        return {'box': Box(torch.arange(3) + i, f'box {i}'), 'none': None, 'point': Point(i, b'b'), 'set': {i}}

    found = list(data.DataLoader(Numbers(2, make), batch_size=None, num_workers=1))
    for i, one in enumerate(found):
        assert one['box'].corner.tolist() == [i, i + 1, i + 2] and one['box'].name == f'box {i}', one
        assert one['none'] is None and one['point'] == Point(i, b'b') and one['set'] == {i}
    same = torch.ones(2)
    (pair,) = data.DataLoader([[same, same]], batch_size=None, num_workers=1, collate_fn=lambda x: x)
    assert pair[0] is pair[1]


@tap.case
def tensors_of_all_dtypes_and_layouts_come_as_they_are():
    made = [torch.tensor([1, 0, 1]).to(dtype) for dtype in (
        torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
        torch.float32, torch.float64, torch.complex64, torch.complex128,
    )]  # fmt: skip
    made += [torch.tensor(3.5), torch.zeros(0, 3), torch.arange(6).view(2, 3).t(), torch.arange(3).expand(2, 3),
             torch.ones(2, requires_grad=True), torch.arange(10)[::3]]
    for one, other in zip(data.DataLoader(made, batch_size=None, num_workers=1), made, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape and one.tolist() == other.tolist(), other
        assert one.requires_grad == other.requires_grad


@tap.case
def tensors_with_a_gradient_to_come_are_refused():
    grown = torch.ones(2, requires_grad=True)
    loader = data.DataLoader(Numbers(1, lambda _i: grown * 2), batch_size=None, num_workers=1)
    raises(RuntimeError, lambda: list(loader), 'DataLoader worker 0', 'requires grad')


@tap.case
def batches_can_be_written_to():
    for x, _y in data.DataLoader(Numbers(6), batch_size=2, num_workers=2):
        x.add_(1)
        assert x.min().item() >= 1


@tap.case
def memory_is_used_again_when_a_batch_is_gone_and_not_before():
    loader = data.DataLoader(Numbers(200), batch_size=2, num_workers=2, prefetch_factor=2)
    iterator, kept, places = iter(loader), [], set()
    for i, (x, y) in enumerate(iterator):
        places.add(x.data_ptr())
        if i % 10 == 0:
            kept.append((x, y))
    assert [y.tolist() for _, y in kept] == [[2 * i, 2 * i + 1] for i in range(0, 100, 10)]
    assert [x[0].tolist() for x, _ in kept] == [[2.0 * i] * 2 for i in range(0, 100, 10)]
    assert len(places) < 60, len(places)
    assert len(list(data.DataLoader(Numbers(3000), batch_size=2, num_workers=1))) == 1500  # all of them are kept


@tap.case
def a_worker_may_keep_its_batches():
    cache = {}

    def make(i):
        if i not in cache:
            cache[i] = data.default_collate([torch.full((4,), float(i))] * 3)
        return cache[0] if i else cache[i]

    loader = data.DataLoader(Numbers(30, make), batch_size=None, num_workers=1)
    assert all(x.tolist() == [[0.0] * 4] * 3 for x in loader)


@tap.case
def batches_outlive_the_workers():
    found = list(data.DataLoader(Numbers(8), batch_size=2, num_workers=2))
    gc.collect()
    assert [x[1].tolist() for x, _ in found] == [[1.0] * 2, [3.0] * 2, [5.0] * 2, [7.0] * 2]


@tap.case
def a_fork_reads_what_the_program_drops():
    loader = data.DataLoader(Numbers(40), batch_size=2, num_workers=1, persistent_workers=True)
    iterator = iter(loader)
    first = next(iterator)
    ours, theirs = multiprocessing.Pipe()
    told, tell = multiprocessing.Pipe()

    def child():
        told.recv()
        theirs.send(first[1].tolist())

    process = multiprocessing.get_context('fork').Process(target=child)
    process.start()
    del first
    for _ in iterator:
        pass
    tell.send(None)
    assert ours.poll(LONG) and ours.recv() == [0, 1]
    process.join()


@tap.case
def large_lists_of_indices_and_results_pass():
    text = 'x' * 300_000

    def make(i):
        return text, i

    loader = data.DataLoader(Numbers(200_000, make), batch_size=100_000, num_workers=1, prefetch_factor=4,
                             collate_fn=lambda batch: (batch[0][0] * 10, len(batch)))
    assert [(len(a), n) for a, n in loader] == [(3_000_000, 100_000)] * 2


# --- workers ---


@tap.case
def workers_know_who_they_are():
    def make(i):
        info = data.get_worker_info()
        return info.id, info.num_workers, info.seed, type(info.dataset).__name__, info.worker_method, os.getpid()

    torch.manual_seed(5)
    rows = [tuple(row) for row in data.DataLoader(Numbers(6, make), batch_size=None, num_workers=3)]
    assert [row[0] for row in rows] == [0, 1, 2] * 2 and {row[1] for row in rows} == {3}
    assert [row[2] - rows[0][2] for row in rows] == [0, 1, 2] * 2
    assert {row[3:5] for row in rows} == {('Numbers', 'multiprocessing')} and len({row[5] for row in rows}) == 3
    assert data.get_worker_info() is None
    torch.manual_seed(5)
    again = list(data.DataLoader(Numbers(6, make), batch_size=None, num_workers=3))
    assert [row[2] for row in again] == [row[2] for row in rows]


@tap.case
def workers_draw_different_numbers_which_a_seed_determines():
    def make(_i):
        return random.random(), float(numpy.random.rand()), torch.rand(1).item(), torch.get_num_threads()

    def run():
        torch.manual_seed(8)
        return list(data.DataLoader(Numbers(4, make), batch_size=None, num_workers=2))

    rows = run()
    assert rows == run() and len({row[0] for row in rows}) == len({row[1] for row in rows}) == 4
    assert len({row[2] for row in rows}) == 4 and {row[3] for row in rows} == {1}
    own = torch.Generator().manual_seed(3)
    first = list(data.DataLoader(Numbers(2, make), batch_size=None, num_workers=2, generator=own))
    own.manual_seed(3)
    assert first == list(data.DataLoader(Numbers(2, make), batch_size=None, num_workers=2, generator=own))


@tap.case
def seeds_of_numpy_are_pytorchs():
    from gi.overrides import _gtorch_workers as workers

    before = random.getstate(), numpy.random.get_state()
    try:
        assert workers.seed_all(2**40 + 12345, 3) == 2**40 + 12348
        # PyTorch 2.11: torch.utils.data._utils.worker._generate_state(2**40 + 12345, 3)
        words = numpy.random.SeedSequence([3, 12345, 2**8, 0]).generate_state(4).tolist()
        assert words == [3167859778, 398126399, 4292384237, 4020361526], words
    finally:
        random.setstate(before[0])
        numpy.random.set_state(before[1])


@tap.case
def a_function_prepares_each_worker():
    def prepare(number):
        data.get_worker_info().dataset.make = lambda i: (number, i)

    assert [tuple(one) for one in data.DataLoader(Numbers(4), batch_size=None, num_workers=2, worker_init_fn=prepare)] \
        == [(0, 0), (1, 1), (0, 2), (1, 3)]


@tap.case
def lasting_workers_keep_their_sets():
    seen = []

    def make(i):
        seen.append(i)
        return os.getpid(), len(seen)

    loader = data.DataLoader(Numbers(4, make), batch_size=None, num_workers=2, persistent_workers=True)
    first, second = list(loader), list(loader)
    assert {pid for pid, _ in first} == {pid for pid, _ in second}
    assert [n for _, n in second] == [3, 3, 4, 4]
    for _ in loader:
        break
    assert len(list(loader)) == 4
    workers = pids(loader._iterator)
    del loader, _
    gc.collect()
    assert all(ends(pid) for pid in workers)


@tap.case
def iterable_sets_are_read_by_lasting_workers_again():
    loader = data.DataLoader(Count(7), batch_size=2, num_workers=2, persistent_workers=True)
    assert [x.tolist() for x in loader] == [x.tolist() for x in loader] == [[0, 2], [1, 3], [4, 6], [5]]


@tap.case
def batches_come_as_they_are_made_if_the_order_does_not_matter():
    gate = multiprocessing.Event()

    def make(i):
        if i == 0:
            gate.wait(LONG)
        return i

    loader = data.DataLoader(Numbers(6, make), batch_size=None, num_workers=2, in_order=False)
    iterator, found = iter(loader), []
    for _ in range(4):  # of the other worker, as the first has 2 batches to make
        found.append(next(iterator))
    gate.set()
    assert found == [1, 3, 4, 5] and list(iterator) == [0, 2], found
    raises(NotImplementedError, loader.state_dict, 'in_order=False')


@tap.case
def no_more_is_made_in_advance_than_was_asked_for():
    made = multiprocessing.Value('i', 0)

    def make(i):
        with made.get_lock():
            made.value += 1
        return i

    loader = data.DataLoader(Numbers(100, make), batch_size=None, num_workers=2, prefetch_factor=3)
    iterator = iter(loader)
    assert [next(iterator) for _ in range(4)] == [0, 1, 2, 3]
    until = time.monotonic() + LONG
    while made.value < 10 and time.monotonic() < until:
        time.sleep(0.01)
    assert made.value == 10, made.value


@tap.case
def loaders_can_be_nested():
    outer, inner = (data.DataLoader(Numbers(4), batch_size=2, num_workers=1) for _ in range(2))
    assert [(a, b) for a in labels(outer) for b in labels(inner)] == [(a, b) for a in ([0, 1], [2, 3])
                                                                       for b in ([0, 1], [2, 3])]
    pairs = [(a[1].tolist(), b[1].tolist()) for a in outer for b in inner]
    assert len(pairs) == 4 and pairs[-1] == ([2, 3], [2, 3])


@tap.case
def loaders_can_be_used_in_threads():
    found = [None] * 4

    def run(k):
        found[k] = labels(data.DataLoader(Numbers(20), batch_size=4, num_workers=2))

    threads = [threading.Thread(target=run, args=(k,)) for k in range(len(found))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    assert found == [[[4 * k + i for i in range(4)] for k in range(5)]] * 4


@tap.case
def threads_share_an_iteration():
    for workers, options in ((0, {}), (2, {}), (2, {'worker': 'thread'})):
        batches, found = iter(data.DataLoader(Numbers(40), batch_size=2, num_workers=workers, **options)), []

        def take(batches=batches, found=found):
            found.extend(batch[1].tolist() for batch in batches)

        threads = [threading.Thread(target=take, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LONG)
        assert sorted(found) == [[i, i + 1] for i in range(0, 40, 2)], found


# --- states ---


@tap.case
def what_is_no_state_is_refused():
    loader = data.DataLoader(Numbers(12), batch_size=2, shuffle=True)
    next(iter(loader))
    state = loader.state_dict()
    for name in ('position', 'is_at_end', 'order', 'num_workers', 'places', 'turn', 'loader'):
        raises(ValueError, lambda name=name: loader.load_state_dict({**state, name: 'x'}), name, "'x'")
    raises(ValueError, lambda: loader.load_state_dict({**state, 'position': -1}), 'position', '-1')
    for name in ('position', 'is_at_end', 'order', 'loader'):
        lacking = {key: value for key, value in state.items() if key != name}
        raises(ValueError, lambda lacking=lacking: loader.load_state_dict(lacking), f'no {name!r}')
    loader.load_state_dict({**state, 'own': 'x'})


def goes_on(dataset, workers, options):
    loader = data.DataLoader(dataset, batch_size=2, num_workers=workers, **options)
    torch.manual_seed(4)
    iterator = iter(loader)
    for _ in range(3):
        next(iterator)
    state = loader.state_dict()
    rest = [data_list(batch) for batch in iterator]
    other = data.DataLoader(dataset, batch_size=2, num_workers=workers, **options)
    torch.manual_seed(6)
    other.load_state_dict(state)
    assert [data_list(batch) for batch in other] == rest and rest, rest


def data_list(batch):
    return batch.tolist() if isinstance(batch, torch.Tensor) else [one.tolist() for one in batch]


for set_name, one_set, set_options in (
    ('numbers', Numbers(15), {}),
    ('shuffled_numbers', Numbers(15), {'shuffle': True}),
    ('lasting_workers', Numbers(15), {'shuffle': True, 'persistent_workers': True}),
    ('an_iterable_set', Count(23), {}),
    ('a_set_with_a_state', Reader(23), {}),
):
    for number_of_workers in (1, 2, 3):
        tap.add(f'{set_name}_go_on_with_{number_of_workers}', goes_on, one_set, number_of_workers, set_options)


@tap.case
def a_state_of_other_workers_is_refused_for_iterable_sets():
    loader = data.DataLoader(Count(8), num_workers=2)
    next(iter(loader))
    other = data.DataLoader(Count(8), num_workers=1)
    raises(ValueError, lambda: other.load_state_dict(loader.state_dict()), '2 workers')
    whole = data.DataLoader(Numbers(6), batch_size=2, num_workers=2)
    iterator = iter(whole)
    next(iterator)
    other = data.DataLoader(Numbers(6), batch_size=2)
    other.load_state_dict(whole.state_dict())
    assert labels(other) == [[2, 3], [4, 5]]


# --- errors ---


class OwnError(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


@tap.case
def an_error_has_its_kind_and_the_workers_traceback():
    def make(i):
        if i == 3:
            raise FileNotFoundError(f'picture {i} is not there')
        return i

    iterator = iter(data.DataLoader(Numbers(8, make), batch_size=2, num_workers=2))
    assert next(iterator).tolist() == [0, 1]
    error = raises(FileNotFoundError, lambda: next(iterator), 'DataLoader worker 1, index [2, 3]',
                   'picture 3 is not there', 'Traceback', 'in make', pathlib.Path(__file__).name)
    assert error.errno is None
    assert [x.tolist() for x in iterator] == [[4, 5], [6, 7]]


@tap.case
def errors_of_the_library_keep_their_kind():
    def make(i):
        return torch.ones(2)[i + 5]

    loader = data.DataLoader(Numbers(1, make), num_workers=1)
    error = raises(IndexError, lambda: list(loader), 'DataLoader worker 0, index [0]', 'Traceback')
    assert error.code == torch.Error.INDEX


@tap.case
def errors_that_cannot_be_made_anew_are_told():
    class Local(Exception):
        pass

    def make(i):
        raise (Local('local') if i else OwnError('own', 2))

    iterator = iter(data.DataLoader(Numbers(2, make), num_workers=1))
    raises(RuntimeError, lambda: next(iterator), 'OwnError', 'own')
    raises(RuntimeError, lambda: next(iterator), 'Local: local')


@tap.case
def a_collate_function_may_return_none():
    class Stream(data.IterableDataset):
        def __iter__(self):
            return iter(range(8))

    def partly(samples):
        return samples if (samples[0] if isinstance(samples, list) else samples) % 4 else None

    for options in ({}, {'num_workers': 1}, {'num_workers': 1, 'worker': 'thread'}):
        for dataset in (Numbers(8, int), Stream()):
            for batch_size, expected in ((2, [None, [2, 3], None, [6, 7]]), (None, [None, 1, 2, 3, None, 5, 6, 7])):
                loader = data.DataLoader(dataset, batch_size=batch_size, collate_fn=partly, **options)
                assert list(loader) == expected, options
                assert list(loader) == expected, options  # the next epoch, too
        library = data.DataLoader(Numbers(4, int), batch_size=2, collate_fn=partly, **options).for_library()
        assert list(library)[0] is None


@tap.case
def samples_may_be_none():
    for options in ({}, {'num_workers': 2}, {'num_workers': 2, 'worker': 'thread'}):
        found = list(data.DataLoader(Numbers(3, lambda i: None), batch_size=None, **options))
        assert found == [None, None, None], found


@tap.case
def errors_of_all_functions_come():
    def fail(*_):
        raise ZeroDivisionError('in vain')

    loader = data.DataLoader(Numbers(4), num_workers=1, worker_init_fn=fail)
    raises(ZeroDivisionError, lambda: next(iter(loader)), 'worker_init_fn', 'in vain')
    loader = data.DataLoader(Numbers(4), num_workers=1, collate_fn=fail)
    raises(ZeroDivisionError, lambda: next(iter(loader)), 'index [0]')

    class Broken(data.IterableDataset):
        def __iter__(self):
            return fail()

    raises(ZeroDivisionError, lambda: next(iter(data.DataLoader(Broken(), num_workers=1))), 'DataLoader worker 0')
    loader = data.DataLoader(Numbers(4), num_workers=1, collate_fn=lambda batch: lambda: batch)
    raises(Exception, lambda: next(iter(loader)), 'DataLoader worker 0', 'pickle')

    class Order(data.Sampler):
        def __iter__(self):
            yield 1
            yield from fail()

    loader = data.DataLoader(Numbers(4), num_workers=1, sampler=Order(), prefetch_factor=1)
    raises(ZeroDivisionError, lambda: list(loader), 'in vain')


@tap.case
def what_cannot_be_pickled_is_refused_where_it_must_be():
    loader = data.DataLoader(Numbers(2), num_workers=1, multiprocessing_context='spawn')
    raises(Exception, lambda: iter(loader), 'pickle')


@tap.case
def a_batch_that_is_late_is_an_error():
    loader = data.DataLoader(Numbers(2, lambda i: time.sleep(LONG)), num_workers=1, timeout=0.2)
    iterator = iter(loader)
    workers = pids(iterator)
    begun = time.monotonic()
    raises(RuntimeError, lambda: next(iterator), 'timeout', '0.2 seconds')
    assert time.monotonic() - begun < LONG / 2
    assert all(ends(pid) for pid in workers)


def dies(kill, *texts):
    iterator = iter(data.DataLoader(Numbers(8, lambda i: kill() if i == 5 else i), batch_size=2, num_workers=2))
    workers = pids(iterator)
    begun = time.monotonic()
    raises(RuntimeError, lambda: list(iterator), 'DataLoader worker 0', f'process {workers[0]}', *texts)
    assert time.monotonic() - begun < LONG / 2
    assert all(ends(pid) for pid in workers)
    raises(StopIteration, lambda: next(iterator))


@tap.case
def a_killed_worker_is_named():
    dies(lambda: os.kill(os.getpid(), signal.SIGKILL), 'SIGKILL', 'exit code -9')
    dies(lambda: os._exit(3), 'exit code 3')
    dies(lambda: sys.exit(4), 'exit code 4')


@tap.case
def a_worker_that_is_killed_while_it_waits_is_named():
    loader = data.DataLoader(Numbers(100), num_workers=1, prefetch_factor=1)
    iterator = iter(loader)
    next(iterator)
    os.kill(pids(iterator)[0], signal.SIGKILL)
    ends(pids(iterator)[0])
    raises(RuntimeError, lambda: list(iterator), 'SIGKILL')


# --- the end ---


@tap.case
def workers_end_with_the_iteration():
    for how in ('whole', 'left', 'dropped'):
        loader = data.DataLoader(Numbers(100), num_workers=2)
        iterator = iter(loader)
        workers = pids(iterator)
        if how == 'whole':
            list(iterator)
        elif how == 'left':
            for _ in iterator:
                break
        del iterator
        gc.collect()
        assert all(ends(pid) for pid in workers), how


@tap.case
def a_worker_that_does_not_end_is_ended():
    iterator = iter(data.DataLoader(Numbers(4, lambda i: time.sleep(LONG) if i else i), batch_size=None, num_workers=1))
    assert next(iterator) == 0
    workers, begun = pids(iterator), time.monotonic()
    iterator.close()
    assert time.monotonic() - begun < LONG / 2 and all(ends(pid) for pid in workers)
    raises(StopIteration, lambda: next(iterator))


PROGRAM = '''
import sys, time
import gtorch as torch, gtorch.utils.data as data

class Numbers(data.Dataset):
    def __len__(self): return 1000
    def __getitem__(self, i):
        if {slow}: time.sleep(30)
        return i

if __name__ == '__main__':
    iterator = iter(data.DataLoader(Numbers(), num_workers=2, multiprocessing_context={context!r}))
    print(*[one.process.pid for one in iterator.processes], flush=True)
    {then}
'''


def program(context, slow, then):
    code = PROGRAM.format(context=context, slow=slow, then=then)
    path = pathlib.Path(os.environ.get('TMPDIR', '/tmp')) / f'gtorch-workers-{os.getpid()}.py'
    path.write_text(code, 'utf-8')
    made = subprocess.Popen([sys.executable, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    workers = [int(pid) for pid in made.stdout.readline().split()]
    path.unlink()
    return made, workers


def orphans(context, slow):
    made, workers = program(context, slow, 'sys.stdin.read() if False else time.sleep(60)')
    assert len(workers) == 2, made.communicate()
    made.kill()
    made.communicate()
    assert all(ends(pid) for pid in workers)


for context_name in CONTEXTS:
    for is_slow in (False, True):
        tap.add(f'no_worker_outlives_a_killed_program_{context_name}_{"busy" if is_slow else "idle"}', orphans,
                context_name, is_slow)


@tap.case
def an_interrupt_ends_program_and_workers():
    made, workers = program('fork', True, 'print("waits", flush=True); next(iterator)')
    assert made.stdout.readline() == 'waits\n'
    time.sleep(0.2)  # an interrupt before next() is one, too
    made.send_signal(signal.SIGINT)
    _, errors = made.communicate(timeout=LONG)
    assert 'KeyboardInterrupt' in errors and made.returncode != 0, errors
    assert all(ends(pid) for pid in workers)


@tap.case
def a_program_ends_with_an_iteration_that_is_not_over():
    made, workers = program('fork', False, 'next(iterator)')
    _, errors = made.communicate(timeout=LONG)
    assert made.returncode == 0 and not errors, errors
    assert all(ends(pid) for pid in workers)


@tap.case
def workers_load_one_batch_at_least():
    raises(ValueError, lambda: data.DataLoader(Numbers(4), num_workers=1, prefetch_factor=0), 'at least 1')


if __name__ == '__main__':
    tap.main()
