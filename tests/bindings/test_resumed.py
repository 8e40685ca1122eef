#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Trainings with Python's loaders go on in the middle of an epoch with the same bits, random numbers of workers
included; and states of other loaders are refused."""

import os
import pathlib
import random
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib  # noqa: E402

import tap  # noqa: E402
from tap import raises  # noqa: E402

import gtorch as torch  # noqa: E402
from gtorch import nn  # noqa: E402
from gtorch.train import Trainer  # noqa: E402
from gtorch.utils import data  # noqa: E402

try:
    import numpy
except ImportError:
    numpy = None


def drawn():
    """Random numbers of a worker: of all generators that it has."""
    info = data.get_worker_info()
    if info is None:
        return torch.randn(5)
    if info.rng is not None:
        x = torch.randn(5, generator=info.rng.torch_generator)
        return x + info.rng.random_generator.random()
    return torch.randn(5) + random.random() + (numpy.random.rand() if numpy else 0)


class Noisy(data.Dataset):
    def __len__(self):
        return 30

    def __getitem__(self, i):
        return drawn() + i / 50, int(i % 2)


class Stream(data.IterableDataset):
    def __iter__(self):
        info = data.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for i in range(first, 30, step):
            yield (drawn() if info is not None else torch.zeros(5)) + i / 50, i % 2


class Reader(data.IterableDataset):
    """Goes on by itself: samples that were given are not read again."""

    def __init__(self):
        self.at, self.n_read = 0, 0

    def __iter__(self):
        while self.at < 30:
            i, self.at = self.at, self.at + 1
            self.n_read += 1
            yield torch.full((5,), i / 50), i % 2
        self.at = 0

    def state_dict(self):
        return {'at': self.at}

    def load_state_dict(self, state):
        self.at = state['at']


class Own:
    """A loader of a program's with states."""

    def __init__(self):
        self.at = 0

    def __iter__(self):
        while self.at < 8:
            self.at += 1
            yield torch.full((3, 5), self.at / 9), torch.tensor([0, 1, self.at % 2])
        self.at = 0

    def state_dict(self):
        return {'at': self.at}

    def load_state_dict(self, state):
        self.at = state['at']


def numbers():
    return data.TensorDataset(torch.arange(150.0).view(30, 5) / 50, torch.arange(30) % 2)


def seeded():
    return torch.Generator().manual_seed(4)


WAYS = {
    'without_workers': lambda: data.DataLoader(Noisy(), 4, True),
    'with_a_generator': lambda: data.DataLoader(Noisy(), 4, True, generator=seeded(), num_workers=2),
    'with_the_generator_of_a_sampler': lambda: data.DataLoader(
        Noisy(), 4, sampler=data.RandomSampler(Noisy(), generator=seeded()), num_workers=2),
    'with_processes': lambda: data.DataLoader(Noisy(), 4, True, num_workers=3),
    'with_lasting_processes': lambda: data.DataLoader(Noisy(), 4, True, num_workers=2, persistent_workers=True),
    'with_threads': lambda: data.DataLoader(Noisy(), 4, True, num_workers=2, worker='thread'),
    'of_a_stream': lambda: data.DataLoader(Stream(), 4),
    'of_a_stream_with_processes': lambda: data.DataLoader(Stream(), 4, num_workers=2),
    'of_a_stream_with_threads': lambda: data.DataLoader(Stream(), 4, num_workers=2, worker='thread'),
    'of_a_set_with_states': lambda: data.DataLoader(Reader(), 4),
    'of_tensors': lambda: data.DataLoader(numbers(), 4, True),
    'of_the_library': lambda: data.DataLoader(Noisy(), 4, True, num_workers=2).for_library(),
    'of_a_program': Own,
}


def make(loader, **settings):
    torch.manual_seed(2)
    net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 2))
    trainer = Trainer(net, loader, nn.CrossEntropyLoss(), torch.optim.Adam(net.parameters(), lr=0.02), **settings)
    torch.manual_seed(3)
    random.seed(3)
    return trainer


def losses_of(trainer):
    found = []
    trainer.connect('step-done', lambda _trainer, _step, loss: found.append(loss))
    return found


def goes_on(way):
    with tempfile.TemporaryDirectory() as folder:
        whole = make(way(), n_epochs=2, checkpoint_folder=folder, checkpoint_every=3)
        found = losses_of(whole)
        whole.run()
        names = sorted(os.listdir(folder))
        assert len(found) == 16 and len(names) == 6, (len(found), names)
        for name in names[:-1]:
            rest = make(way(), n_epochs=2)
            torch.manual_seed(99)
            random.seed(99)
            rest.load_checkpoint(pathlib.Path(folder) / name)
            at, later = rest.step, losses_of(rest)
            rest.run()
            assert later == found[at:], (name, later, found[at:])


for way_name, one_way in WAYS.items():
    tap.add(f'a_training_goes_on_{way_name}', goes_on, one_way)


@tap.case
def a_stopped_run_goes_on():
    for way in (WAYS['with_processes'], WAYS['of_a_program']):
        whole, other = make(way(), n_epochs=2), make(way(), n_epochs=2)
        expected, found = losses_of(whole), losses_of(other)
        torch.manual_seed(3)
        whole.run()
        torch.manual_seed(3)
        other.connect('step-done', lambda trainer, step, _loss: step == 5 and trainer.stop())
        other.run()
        assert 5 <= other.step < 8, other.step
        other.run()
        assert found == expected, (found, expected)


@tap.case
def samples_before_a_state_are_not_read_again():
    reader = Reader()
    with tempfile.TemporaryDirectory() as folder:
        whole = make(data.DataLoader(reader, 4), n_epochs=1, checkpoint_folder=folder, checkpoint_every=3)
        whole.run()
        again = Reader()
        rest = make(data.DataLoader(again, 4), n_epochs=1)
        rest.load_checkpoint(pathlib.Path(folder) / 'step-0000000006.safetensors')
        rest.run()
        assert reader.n_read == 30 and again.n_read == 6, (reader.n_read, again.n_read)


@tap.case
def loaders_that_cannot_go_on_are_refused():
    batches = [(torch.zeros(2, 5), torch.zeros(2, dtype=torch.long))]
    with tempfile.TemporaryDirectory() as folder:
        options = {'checkpoint_folder': folder, 'checkpoint_every': 3}
        raises(NotImplementedError, lambda: make(batches, **options), 'checkpoint_every', 'list')
        unordered = data.DataLoader(Noisy(), 4, num_workers=2, in_order=False)
        raises(NotImplementedError, lambda: make(unordered, **options), 'no order')
        make(unordered, n_epochs=1, max_steps=2).run()  # without checkpoints in an epoch


@tap.case
def a_checkpoint_of_another_loader_is_refused():
    with tempfile.TemporaryDirectory() as folder:
        make(data.DataLoader(Noisy(), 4, True), n_epochs=1, checkpoint_folder=folder, checkpoint_every=3).run()
        file = pathlib.Path(folder) / 'step-0000000003.safetensors'
        other = make(data.DataLoader(Noisy(), 4))
        before = [one.tolist() for one in other.get_module().parameters()]
        raises(ValueError, lambda: other.load_checkpoint(file), "sampler is 'RandomSampler'", "'SequentialSampler'")
        assert [one.tolist() for one in other.get_module().parameters()] == before and other.step == 0


def taken(loader):
    iterator = iter(loader)
    next(iterator)
    return loader.state_dict()


def shortened():
    found = Noisy()
    found.__class__ = type('Short', (Noisy,), {'__len__': lambda self: 20})
    return found


@tap.case
def states_of_other_loaders_are_refused():
    state = taken(data.DataLoader(Noisy(), 4, True, drop_last=True))
    for other, texts in (
        (data.DataLoader(Noisy(), 3, True, drop_last=True), ('batch_size is 4', 'is 3')),
        (data.DataLoader(Noisy(), 4, True), ('drop_last is True', 'is False')),
        (data.DataLoader(Noisy(), 4, drop_last=True), ("sampler is 'RandomSampler'", "is 'SequentialSampler'")),
        (data.DataLoader(shortened(), 4, True, drop_last=True), ('length of the data set is 30', 'is 20')),
        (data.DataLoader(Stream(), 4, drop_last=True), ("kind is 'indexed'", "is 'iterable'")),
    ):
        raises(ValueError, lambda other=other: other.load_state_dict(state), *texts)
    data.DataLoader(Noisy(), 4, True, drop_last=True, num_workers=1).load_state_dict(state)


@tap.case
def states_of_other_loaders_in_c_are_refused():
    dataset = torch.TensorDataset.new([torch.arange(30)])
    loader = torch.DataLoader(dataset=dataset, batch_size=4, shuffle=True)
    iterator = iter(loader)
    next(iterator)
    state = loader.get_state()
    other = torch.DataLoader(dataset=dataset, batch_size=3, shuffle=True)
    raises(ValueError, lambda: other.set_state(state), 'batch_size is 4', 'is 3')


@tap.case
def a_set_of_a_program_has_states_in_c():
    class Source(torch.SampleSource):
        def next(self, _cancellable):
            if self.owner.at == 6:
                return None
            self.owner.at += 1
            return torch.Sample.new_int(self.owner.at)

        def close(self):
            closed.append(self.owner.at)

    class Counted(torch.IterableDataset):
        at = goes_on = 0

        def iterate(self, _worker, _n_workers):
            source = Source()
            source.owner = self
            self.at, self.goes_on = self.at if self.goes_on else 0, False
            return source

        def get_state(self):
            if self.at == 3:
                raise LookupError('not at 3')
            return GLib.Variant('i', self.at)

        def set_state(self, state):
            self.at, self.goes_on = state.unpack(), True

    closed = []
    loader = torch.DataLoader(dataset=Counted(), batch_size=0)
    iterator = loader.iterate()
    assert [iterator.next(None).get_int() for _ in range(2)] == [1, 2]
    state = loader.get_state()
    assert iterator.next(None).get_int() == 3
    raises(LookupError, loader.get_state, 'not at 3')
    iterator.close()
    assert closed == [3], closed
    other = torch.DataLoader(dataset=Counted(), batch_size=0)
    other.set_state(state)
    assert list(other) == [3, 4, 5, 6] and list(other) == [1, 2, 3, 4, 5, 6]
    for _sample in loader:
        break
    assert closed == [3, 6, 6, 1], closed


@tap.case
def generators_that_the_program_seeds_are_its_own():
    def prepare(number):
        random.seed(number)

    class Draws(data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, i):
            return random.random(), torch.rand(1).item()

    def rows(seed):
        torch.manual_seed(seed)
        return list(data.DataLoader(Draws(), batch_size=None, num_workers=1, worker_init_fn=prepare))

    random.seed(0)
    expected = [random.random() for _ in range(8)]
    one, other = rows(1), rows(2)
    assert [row[0] for row in one] == [row[0] for row in other] == expected, one
    assert [row[1] for row in one] != [row[1] for row in other] and len({row[1] for row in one}) == 8


tap.main()
