#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The trainer, metrics and logs from Python."""

import asyncio
import gc
import json
import pathlib
import random
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import Gio, GLib, GTorch  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402

import gtorch as torch  # noqa: E402
from gtorch import nn  # noqa: E402
from gtorch.train import Accuracy, JSONLog, Metric, Trainer  # noqa: E402
from gtorch.utils.data import DataLoader, DistributedSampler, TensorDataset  # noqa: E402


def data(n=64):
    x = torch.randn(n, 5, generator=torch.Generator().manual_seed(1))
    return TensorDataset(x, (x[:, 0] > 0).long())


def model():
    torch.manual_seed(2)
    return nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 2))


def make(cls=Trainer, loader=None, **settings):
    net = model()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    loader = DataLoader(data(), batch_size=16, shuffle=True) if loader is None else loader
    trainer = cls(net, loader, nn.CrossEntropyLoss(), optimizer, **settings)
    torch.manual_seed(3)
    return trainer


def run_async(trainer, cancellable=None):
    """Runs in the background; returns the error."""
    loop, failed = GLib.MainLoop(), []

    def done(source, result):
        try:
            source.run_finish(result)
        except Exception as error:
            failed.append(error)
        loop.quit()

    trainer.run_async(cancellable, done)
    loop.run()
    return failed[0] if failed else None


def losses_of(trainer):
    found = []
    trainer.connect('step-done', lambda _trainer, _step, loss: found.append(loss))
    return found


@tap.case
def a_classifier_learns():
    trainer = make(n_epochs=20, metrics={'accuracy': Accuracy()}, validation_loader=DataLoader(data(), 32))
    found, epochs, main = losses_of(trainer), [], threading.current_thread()
    trainer.connect('epoch-done', lambda *_: epochs.append(threading.current_thread() is main))
    assert run_async(trainer) is None
    assert len(found) == 80 and found[-1] < found[0] / 2, found
    assert epochs == [True] * 20
    assert trainer.results['accuracy'] > 0.9, trainer.results
    assert trainer.epoch == 20 and trainer.step == 80 and trainer.progress == 1 and trainer.loss == found[-1]


@tap.case
def a_run_in_this_thread_gives_the_same():
    one, other = make(n_epochs=3), make(n_epochs=3)
    one.run()
    torch.manual_seed(3)
    assert run_async(other) is None
    for here, there in zip(one.get_module().parameters(), other.get_module().parameters()):
        assert torch.equal(here, there)


@tap.case
def a_loop_gives_the_same():
    net, trainer = model(), make(n_epochs=2)
    trainer.run()
    optimizer, loader = torch.optim.Adam(net.parameters(), lr=0.02), DataLoader(data(), batch_size=16, shuffle=True)
    torch.manual_seed(3)
    for _ in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()
    for here, there in zip(trainer.get_module().parameters(), net.parameters()):
        assert torch.equal(here, there)


class Autoencoder(Trainer):
    """Overrides both steps."""

    threads = ()

    def training_step(self, batch):
        self.threads = {*self.threads, threading.get_ident()}
        x, _label = batch
        return ((self.get_module()(x) - x[:, :2]) ** 2).mean()

    def validation_step(self, batch):
        assert not torch.is_grad_enabled()
        self.update_metrics(self.get_module()(batch[0]), batch[1])
        return self.training_step(batch)


@tap.case
def a_class_overrides_the_steps():
    trainer = make(Autoencoder, n_epochs=10, validation_loader=DataLoader(data(), 32), metrics={'accuracy': Accuracy()})
    found = losses_of(trainer)
    assert run_async(trainer) is None
    assert found[-1] < found[0]
    assert threading.get_ident() not in trainer.threads
    assert set(trainer.results) == {'loss', 'accuracy'}


@tap.case
def a_function_computes_the_loss():
    trainer = make(n_epochs=2)
    trainer.set_training_step(lambda self, batch: self.get_module()(batch[0]).square().mean())
    trainer.run()
    trainer.set_training_step(None)
    trainer.set_property('n-epochs', 3)
    trainer.run()
    assert trainer.epoch == 3


class Stubborn(Trainer):
    def training_step(self, batch):
        raise KeyError('the class does not want to')


@tap.case
def exceptions_end_the_run():
    tap.raises(KeyError, lambda: make(Stubborn).run(), 'the class does not want to')
    trainer, told = make(Stubborn), []
    trainer.connect('failed', lambda _trainer, error: told.append(error.message))
    error = run_async(trainer)
    assert isinstance(error, GLib.Error) and 'KeyError' in error.message and 'does not want' in error.message
    assert told == [error.message]
    trainer = make()
    trainer.set_training_step(lambda *_: 5)
    tap.raises(TypeError, lambda: trainer.run(), 'must return the loss, a tensor, not 5')


@tap.case
def any_iterable_is_a_loader():
    batches = [(x, y) for x, y in DataLoader(data(), 16)]
    trainer = make(loader=batches, n_epochs=2)
    trainer.run()
    assert trainer.step == 8 and trainer.progress == 1
    tap.raises(TypeError, lambda: make(loader=5), 'a loader can be iterated')

    def broken():
        yield batches[0]
        raise OSError('the disk is gone')

    class Broken:
        def __iter__(self):
            return broken()

    tap.raises(OSError, lambda: make(loader=Broken()).run(), 'the disk is gone')


@tap.case
def settings_are_checked():
    tap.raises(ValueError, lambda: make(n_epochs=0), 'n_epochs is 0, it must be at least 1')
    tap.raises(ValueError, lambda: make(accumulate_steps=-1), 'accumulate_steps is -1')


@tap.case
def a_run_can_be_awaited():
    async def train():
        trainer = make(n_epochs=3)
        await torch.awaitable(trainer.run_async, trainer.run_finish)
        return trainer.epoch

    assert asyncio.run(train()) == 3


@tap.case
def runs_are_cancelled():
    random.seed(4)
    for _ in range(60):
        trainer, cancellable = make(n_epochs=1000), Gio.Cancellable()
        GLib.timeout_add(random.randrange(8), cancellable.cancel)
        error = run_async(trainer, cancellable)
        assert error.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CANCELLED), error


def raising(kind, at):
    def handle(_trainer, number, *_rest):
        if number == at:
            raise kind(f'at {number}')

    return handle


@tap.case
def exceptions_of_handlers_end_the_run_and_arrive():
    for kind in (LookupError, KeyboardInterrupt):
        for signal, at in (('step-done', 3), ('epoch-done', 1), ('epoch-done', 3), ('evaluated', 4)):
            trainer = make(n_epochs=3, validation_loader=DataLoader(data(), 32))
            trainer.connect(signal, raising(kind, at))
            tap.raises(kind, trainer.run, f'at {at}')
            assert not trainer.is_running()
            assert trainer.step == 12 if (signal, at) == ('epoch-done', 3) else trainer.step < 12, trainer.step
            trainer.run()  # the handler has had its exception
            assert trainer.epoch == 3


@tap.case
def exceptions_of_handlers_arrive_in_run_finish():
    trainer = make(n_epochs=1000)
    trainer.connect('step-done', raising(LookupError, 3))
    error = run_async(trainer)
    assert type(error) is LookupError and str(error) == 'at 3', error
    assert trainer.epoch < 1000 and run_async(make(n_epochs=1)) is None
    trainer.connect('notify::epoch', lambda *_: [].pop())
    assert type(run_async(trainer)) is IndexError


@tap.case
def programs_fail_runs():
    for threaded in (True, False):
        trainer, told = make(n_epochs=1000, threaded=threaded), []
        error = GLib.Error.new_literal(Gio.io_error_quark(), 'the disk is full', Gio.IOErrorEnum.NO_SPACE)
        trainer.connect('step-done', lambda one, step, _loss: step == 3 and one.fail(error))
        trainer.connect('failed', lambda _one, failure: told.append(failure.message))
        found = run_async(trainer)
        assert found.matches(Gio.io_error_quark(), Gio.IOErrorEnum.NO_SPACE), found
        assert trainer.step == 3 and told == ['the disk is full'], told
        tap.raises(TypeError, lambda: trainer.fail(None))


@tap.case
def handlers_can_be_disconnected():
    trainer, found = make(n_epochs=1), []

    def handle(trainer, step, _loss, *more):
        found.append((step, *more))

    trainer.connect('step-done', handle, 'x')
    trainer.run()
    assert found == [(1, 'x'), (2, 'x'), (3, 'x'), (4, 'x')], found
    assert trainer.disconnect_by_func(handle) == 1
    number = trainer.connect_after('step-done', handle)
    trainer.handler_block(number)
    trainer.n_epochs = 2
    trainer.run()
    assert len(found) == 4 and trainer.step == 8
    other = Gio.Cancellable()
    trainer.connect_object('step-done', lambda one, step, _loss: found.append((one is other, step)), other)
    trainer.n_epochs = 3
    trainer.run()
    assert found[4:] == [(True, 9), (True, 10), (True, 11), (True, 12)], found


@tap.case
def a_cancellable_still_ends_the_run():
    trainer, cancellable = make(n_epochs=1000), Gio.Cancellable()
    trainer.connect('step-done', lambda _trainer, step, _loss: step == 2 and cancellable.cancel())
    error = tap.raises(GLib.Error, lambda: trainer.run(cancellable))
    assert error.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CANCELLED)
    error = tap.raises(GLib.Error, lambda: trainer.run(cancellable))
    assert error.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CANCELLED)
    tap.raises(TypeError, lambda: trainer.run('now'), 'cancellable')


@tap.case
def handlers_end_the_run_with_their_step():
    for threaded in (True, False):
        for end in ('stop', 'cancel', 'raise'):
            trainer, cancellable = make(n_epochs=1000, threaded=threaded), Gio.Cancellable()
            ways = {'stop': trainer.stop, 'cancel': cancellable.cancel, 'raise': [].pop}
            trainer.connect('step-done', lambda _trainer, step, _loss: step == 5 and ways[end]())
            error = run_async(trainer, cancellable)
            assert trainer.step == 5, (threaded, end, trainer.step)
            assert (error is None) == (end == 'stop'), error
    trainer = make(n_epochs=1000, max_ahead=3)
    trainer.connect('step-done', lambda _trainer, step, _loss: step == 5 and trainer.stop())
    assert run_async(trainer) is None and 5 <= trainer.step <= 8, trainer.step


@tap.case
def settings_without_what_they_need_are_refused():
    tap.raises(ValueError, lambda: make(evaluate_every=2), 'evaluate_every', 'validation_loader')
    tap.raises(ValueError, lambda: make(checkpoint_every=2), 'checkpoint_every', 'checkpoint_folder')
    tap.raises(ValueError, lambda: make(keep_checkpoints=2), 'keep_checkpoints', 'checkpoint_folder')
    tap.raises(ValueError, lambda: make(max_ahead=-1), 'max_ahead')


@tap.case
def runs_of_nothing_are_refused():
    tap.raises(ValueError, lambda: make(metrics={'accuracy': Accuracy()}), 'accuracy', 'no validation_loader')
    none = DataLoader(TensorDataset(torch.zeros(0, 5), torch.zeros(0)), batch_size=4)
    tap.raises(ValueError, make(loader=none).run, 'the loader has no batches')
    tap.raises(ValueError, make(loader=[]).run, 'the loader has no batches')
    tap.raises(ValueError, make(loader=iter(())).run, 'the loader has no batches')
    tap.raises(ValueError, make(validation_loader=[]).run, 'the validation_loader has no batches')


@tap.case
def missing_checkpoints_are_missing_files():
    with tempfile.TemporaryDirectory() as folder:
        error = tap.raises(FileNotFoundError, lambda: make().load_checkpoint(pathlib.Path(folder) / 'none'))
        assert isinstance(error, GLib.Error)


@tap.case
def a_trainer_goes_away():
    trainer = make(Autoencoder, n_epochs=2)
    trainer.connect('step-done', lambda *_: trainer.step)  # a cycle
    run_async(trainer)
    seen = trainer.weak_ref()
    del trainer
    for _ in range(3):
        gc.collect()
        GLib.MainContext.default().iteration(False)
    assert seen() is None or not torch.train.Trainer  # what collects cycles knows it


@tap.case
def a_resumed_run_gives_the_same():
    with tempfile.TemporaryDirectory() as folder:
        schedule = lambda trainer: torch.optim.lr_scheduler.ExponentialLR(trainer.get_optimizer(), 0.9)  # noqa: E731
        whole = make(n_epochs=4, checkpoint_folder=folder)
        whole.add_scheduler(schedule(whole), 'step')
        found = losses_of(whole)
        whole.run()
        names = sorted(path.name for path in pathlib.Path(folder).iterdir())
        assert names == [f'step-{step:010}.safetensors' for step in (4, 8, 12, 16)], names
        rest = make(n_epochs=4)
        rest.add_scheduler(schedule(rest), 'step')
        torch.manual_seed(99)
        rest.load_checkpoint(pathlib.Path(folder) / names[1])
        later = losses_of(rest)
        assert run_async(rest) is None
        assert later == found[8:], (later, found[8:])
        again = make(n_epochs=4, checkpoint_folder=folder)
        again.add_scheduler(schedule(again), 'step')
        assert again.resume() is True and again.step == 16


@tap.case
def checkpoints_can_be_awaited():
    async def main(folder):
        one, other, path = make(n_epochs=2, checkpoint_folder=folder), make(), pathlib.Path(folder) / 'mine'
        one.run()
        await GTorch.awaitable(one.save_checkpoint_async, one.save_checkpoint_finish, path, 0)
        await GTorch.awaitable(other.load_checkpoint_async, other.load_checkpoint_finish, path, 0)
        assert other.step == one.step == 8
        third = make(n_epochs=2, checkpoint_folder=folder)
        assert await GTorch.awaitable(third.resume_async, third.resume_finish, 0) is True and third.step == 8
        cancellable = Gio.Cancellable()
        cancellable.cancel()
        try:
            await GTorch.awaitable(other.load_checkpoint_async, other.load_checkpoint_finish, path, 0,
                                   cancellable=cancellable)
        except GLib.Error as error:
            assert error.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CANCELLED), error
        else:
            raise AssertionError('it was cancelled')
        try:
            await GTorch.awaitable(other.load_checkpoint_async, other.load_checkpoint_finish, path / 'none', 0)
        except GLib.Error as error:
            assert 'none' in error.message or 'directory' in error.message, error
        else:
            raise AssertionError('there is no such file')

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(asyncio.wait_for(main(folder), 60))


@tap.case
def nothing_begins_while_a_checkpoint_is_written():
    with tempfile.TemporaryDirectory() as folder:
        trainer, loop, path, found = make(n_epochs=2), GLib.MainLoop(), pathlib.Path(folder) / 'mine', []

        def done(one, result):
            found.append(one.save_checkpoint_finish(result))
            loop.quit()

        trainer.save_checkpoint_async(path, 0, None, done)
        refused = 'save_checkpoint_async () of this trainer has not ended'
        tap.raises(ValueError, trainer.run, f'trainer_run: {refused}')
        tap.raises(ValueError, lambda: trainer.load_checkpoint(path), f'load_checkpoint: {refused}')
        loop.run()
        assert found == [True] and path.exists()
        trainer.run()


@tap.case
def checkpoints_have_the_states_of_other_generators():
    try:
        import numpy
    except ImportError:
        numpy = None
    draw = lambda: (random.random(), random.gauss(0, 1), numpy and numpy.random.randn())  # noqa: E731
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / 'mine'
        trainer = make()
        random.seed(7)
        draw()
        trainer.save_checkpoint(file)
        expected = [draw() for _ in range(3)]
        random.seed(8)
        make().load_checkpoint(file)
        assert [draw() for _ in range(3)] == expected
        # and what the program gives
        found = []
        trainer.set_save_function(lambda one: {'best': one.step, 'x': torch.ones(2)})
        trainer.set_load_function(lambda one, state: found.append(state))
        trainer.save_checkpoint(file)
        trainer.load_checkpoint(file)
        assert found[0]['best'] == 0 and found[0]['x'].tolist() == [1, 1], found
        make().load_checkpoint(file)  # has no such function
        trainer.set_save_function(lambda one: [].pop())
        tap.raises(IndexError, lambda: trainer.save_checkpoint(file))
        trainer.set_save_function(None)
        state = random.getstate()
        trainer.set_load_function(lambda one, state: [].pop())
        tap.raises(IndexError, lambda: trainer.load_checkpoint(file))
        assert random.getstate() == state
        tap.raises(TypeError, lambda: trainer.set_save_function(3), 'set_save_function')
        make().save_checkpoint(file)
        trainer.load_checkpoint(file)  # has nothing of the program


@tap.case
def samples_that_draw_go_on_with_the_same_numbers():
    if torch.cuda.is_available():
        raise tap.Skip('batches are made ahead for a GPU')

    class Noisy(torch.utils.data.Dataset):
        def __len__(self):
            return 64

        def __getitem__(self, i):
            return torch.full((5,), random.random()), i % 2

    with tempfile.TemporaryDirectory() as folder:
        noisy = lambda: DataLoader(Noisy(), batch_size=16)  # noqa: E731
        random.seed(5)
        whole = make(loader=noisy(), n_epochs=2, checkpoint_folder=folder, checkpoint_every=2)
        found = losses_of(whole)
        whole.run()
        random.seed(6)
        rest = make(loader=noisy(), n_epochs=2)
        rest.load_checkpoint(pathlib.Path(folder) / 'step-0000000002.safetensors')
        later = losses_of(rest)
        rest.run()
        assert later == found[2:], (later, found)


@tap.case
def logs_get_numbers():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / 'log.jsonl'
        trainer = make(n_epochs=2, log_every=2, logs=[JSONLog.new(Gio.File.new_for_path(str(path)))])
        trainer.run()
        lines = [json.loads(line) for line in path.read_text().splitlines()]
    steps = [line['step'] for line in lines if 'train/loss' in line]
    assert steps == [2, 4, 6, 8], lines
    assert any('train/epoch_loss' in line for line in lines)


class Collected(torch.train.Log):
    def __init__(self):
        super().__init__()
        self.seen = []

    def write(self, step, names, values):
        self.seen.append((step, dict(zip(names, values))))


@tap.case
def a_class_is_a_log():
    log = Collected()
    make(n_epochs=1, log_every=1, logs=[log]).run()
    assert len(log.seen) == 5 and log.seen[0][1]['epoch'] == 0, log.seen


class Largest(Metric):
    def __init__(self):
        super().__init__()
        self.add_state('largest', -1000.0)

    def update(self, output, target):
        both = torch.maximum(self.get_state('largest'), output.max())
        self.set_state('largest', both)

    def compute(self):
        return self.get_state('largest')


@tap.case
def a_class_is_a_metric():
    metric = Largest()
    metric.update(torch.tensor([1.0, 5.0]), torch.tensor([0, 0]))
    metric.update(torch.tensor([3.0]), torch.tensor([0]))
    assert metric.compute_value() == 5
    metric.reset()
    assert metric.compute().item() == -1000


class Wrong(Metric):
    def update(self, output, target):
        raise LookupError('no such thing')


@tap.case
def exceptions_of_metrics_pass():
    tap.raises(LookupError, lambda: Wrong().update(torch.ones(1), torch.ones(1)), 'no such thing')


@tap.case
def the_main_loop_goes_on():
    trainer = make(n_epochs=60)
    last, longest = [time.monotonic()], [0.0]

    def tick():
        now = time.monotonic()
        longest[0] = max(longest[0], now - last[0])
        last[0] = now
        return True

    source = GLib.timeout_add(1, tick)
    assert run_async(trainer) is None
    GLib.source_remove(source)
    print(f'# the longest gap was {longest[0] * 1000:.1f} ms, with {trainer.throughput:.0f} samples a second')


@tap.case
def wrong_metrics_and_logs_are_refused():
    net = torch.nn.Linear(1, 1)

    def make(**settings):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        return torch.train.Trainer(net, [torch.ones(1, 1)], None, optimizer, n_epochs=1, **settings)

    tap.raises(TypeError, lambda: make(metrics=5), 'Trainer(): metrics must be a dictionary', 'int')
    tap.raises(TypeError, lambda: make(metrics=[torch.train.Accuracy()]), 'Trainer(): metrics', 'list')
    tap.raises(TypeError, lambda: make(logs=5), 'Trainer(): logs must be a list, not int')
    tap.raises(TypeError, lambda: make(schedulers=5), 'Trainer(): schedulers must be a list, not int')
    tap.raises(ValueError, lambda: make(monitor='accuracy'), 'monitor', 'validation_loader')
    tap.raises(ValueError, lambda: make(evaluate_every=2), 'evaluate_every', 'validation_loader')


@tap.case
def distributed_samplers_are_told_of_epochs():
    data = TensorDataset(torch.randn(16, 2), torch.zeros(16, dtype=torch.int64))
    own = DistributedSampler(data, num_replicas=2, rank=0)
    given = torch.DistributedSampler.new(16, 2, 0, True, 0, False)
    inner = torch.TensorDataset.new([torch.randn(16, 2), torch.zeros(16, dtype=torch.int64)])
    for sampler, loader in ((own, DataLoader(data, batch_size=4, sampler=own)),
                            (given, torch.DataLoader(dataset=inner, batch_size=4, sampler=given))):
        module, seen = nn.Linear(2, 2), []
        trainer = torch.train.Trainer(module, loader, nn.CrossEntropyLoss(),
                                      torch.optim.SGD(module.parameters(), lr=0.1), n_epochs=3)  # fmt: skip
        trainer.connect('epoch-done', lambda *_, one=sampler, seen=seen: seen.append(one.epoch))
        trainer.run()
        assert seen == [0, 1, 2], (type(sampler), seen)


@tap.case
def generators_are_loaders_of_one_epoch():
    batches = [(torch.ones(1, 2), torch.zeros(1, dtype=torch.int64))] * 3
    module = nn.Linear(2, 2)
    trainer = torch.train.Trainer(module, (one for one in batches), nn.CrossEntropyLoss(),
                                  torch.optim.SGD(module.parameters(), lr=0.1), n_epochs=2)  # fmt: skip
    tap.raises(ValueError, trainer.run, 'generator', 'once')
    assert trainer.step == 3 and trainer.epoch == 1


@tap.case
def exceptions_end_runs_that_widgets_begin():
    module = nn.Linear(2, 2)
    batches = [(torch.ones(1, 2), torch.zeros(1, dtype=torch.int64))] * 100
    trainer = torch.train.Trainer(module, batches, nn.CrossEntropyLoss(),
                                  torch.optim.SGD(module.parameters(), lr=0.1), n_epochs=100)  # fmt: skip
    loop, printed = GLib.MainLoop(), []
    former, sys.excepthook = sys.excepthook, lambda kind, *_: printed.append(kind)

    def fail(*_args):
        raise LookupError('a handler')

    trainer.connect('step-done', fail)
    try:  # as C calls it
        torch.train.Trainer.run_async.__wrapped__(trainer, None, lambda *_: loop.quit())
        loop.run()
    finally:
        sys.excepthook = former
    assert trainer.step < 100 and trainer.epoch == 0 and set(printed) <= {LookupError}, (trainer.step, printed)


@tap.case
def a_run_begins_in_training_mode():
    class Frozen(nn.BatchNorm1d):
        def train(self, mode=True):
            return super().train(False)

    net = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), Frozen(4), nn.Linear(4, 2))
    loader = [(torch.randn(8, 2), torch.zeros(8, dtype=torch.int64))]
    trainer = Trainer(net, loader, nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), lr=0.1), n_epochs=1)
    net.eval()
    trainer.run()
    assert net.training and net[1].num_batches_tracked.item() == 1 and net[2].num_batches_tracked.item() == 0
    net[1].eval()
    trainer.n_epochs = 2
    trainer.run()
    assert net.training and net[1].num_batches_tracked.item() == 1


tap.main()
