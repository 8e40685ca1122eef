#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Methods that classes in Python override: every caller in the library calls the override."""

import copy
import io
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402
from tap import raises  # noqa: E402

nn, optim = GTorch.nn, GTorch.optim


class Frozen(nn.BatchNorm1d):
    """A module that refuses to be trained."""

    def train(self, mode=True):
        return super().train(False)


@tap.case
def train_of_a_child_is_called():
    inner = nn.Sequential(Frozen(2), nn.Dropout())
    net = nn.Sequential(nn.Linear(2, 2), inner, Frozen(2))
    assert net.train() is net and net.training and inner.training and inner[1].training
    assert not inner[0].training and not net[2].training
    before = inner[0].running_mean.tolist()
    net(GTorch.randn(8, 2))
    assert inner[0].running_mean.tolist() == before
    assert net.eval() is net and not any(module.training for module in net.modules())

    calls = []

    class Listed(nn.ReLU):
        def train(self, mode=True):
            calls.append(mode)
            return super().train(mode)

    net = nn.Sequential(nn.Sequential(Listed()), Listed())
    net.train()
    net.eval()
    assert calls == [True, True, False, False]
    raises(TypeError, lambda: net.train('no'), 'True or False')


class Counted(optim.SGD):
    n = 0

    def step(self, extra=0):
        self.n += 1 + extra
        super().step()
        return self.n


class Own(GTorch.Optimizer):
    n = 0

    def step(self):
        self.n += 1


def scaled(optimizer_class, **options):
    param = nn.Parameter(GTorch.ones(2))
    if optimizer_class is Own:
        optimizer = Own()
        optimizer.add_param_group({'params': [param], 'lr': 0.5})
    else:
        optimizer = optimizer_class([param], lr=0.5)
    return param, optimizer, GTorch.GradScaler(init_scale=4.0, **options)


@tap.case
def scalers_call_step():
    for cls in (Counted, Own):
        param, optimizer, scaler = scaled(cls)
        overflows = []
        scaler.connect('overflow', lambda _scaler, which, found=overflows: found.append(which))
        scaler.scale(param.sum()).backward()
        scaler.step(optimizer)
        assert optimizer.n == 1 and param.grad.tolist() == [1, 1]
        assert param.tolist() == ([0.5, 0.5] if cls is Counted else [1, 1])
        raises(GLib.Error, lambda: scaler.step(optimizer), 'has made its step already')
        scaler.update()
        assert optimizer.n == 1 and not overflows

        param.grad = None
        scaler.scale((param * float('inf')).sum()).backward()
        scaler.step(optimizer)
        assert optimizer.n == 1 and overflows == [optimizer]
        scaler.update()
        assert scaler.state_dict()['scale'] == 2.0

        param.grad = None
        raises(GLib.Error, lambda: scaler.step(optimizer), 'no parameter', 'has a gradient')


@tap.case
def scalers_skip_unscaled_optimizers():
    param, optimizer, scaler = scaled(Counted)
    scaler.scale(param.sum()).backward()
    scaler.unscale_(optimizer)
    raises(GLib.Error, lambda: scaler.unscale_(optimizer), 'unscaled already')
    param.grad.mul_(0.5)
    assert scaler.step(optimizer, extra=2) == 3 and param.tolist() == [0.75, 0.75]
    scaler.update()
    param, optimizer, scaler = scaled(Counted, enabled=False)
    scaler.scale(param.sum()).backward()
    assert scaler.step(optimizer) == 1 and param.tolist() == [0.5, 0.5]


@tap.case
def scalers_step_later_only_in_c():
    for cls in (Counted, Own):
        param, optimizer, scaler = scaled(cls)
        scaler.scale(param.sum()).backward()
        raises(GLib.Error, lambda: scaler.step_async(optimizer, None, None), 'a step() of its own in Python')
        assert optimizer.n == 0 and param.grad.tolist() == [4, 4]
        scaler.step(optimizer)
        assert optimizer.n == 1
    param, optimizer, scaler = scaled(GTorch.optim.SGD)
    scaler.scale(param.sum()).backward()
    loop, results = GLib.MainLoop(), []

    def done(_scaler, result, *_data):
        results.append(scaler.step_finish(result))
        loop.quit()

    scaler.step_async(optimizer, None, done)
    loop.run()
    assert results == [True] and param.tolist() == [0.5, 0.5]


# Virtual functions that C calls, by names with and without do_.

TESTED = {
    'allocate', 'attend', 'backward', 'begin', 'close', 'compute', 'decode', 'encode', 'end', 'extra_repr', 'fetch',
    'fetch_next', 'flush', 'forward', 'forward_many', 'get_batch', 'get_extra_state', 'get_item', 'get_length',
    'get_state', 'iterate', 'next', 'release', 'reset', 'right_inverse', 'set_extra_state', 'set_state', 'step_param',
    'training_step', 'update', 'validation_step', 'write',
}  # fmt: skip


@tap.case
def all_virtual_functions_are_tested_here():
    found = set()
    for cls in [getattr(GTorch, name, None) for name in dir(GTorch)]:
        for function in (getattr(cls, name) for name in dir(cls) if name.startswith('do_')):
            if type(function).__name__ == 'VFuncInfo' and function.get_container().get_namespace() == 'GTorch':
                found.add(function.get_name())
    assert found == TESTED, found ^ TESTED


def virtual_functions(prefix):
    calls = []

    def called(name, result=None):
        def call(self, *args):
            calls.append(name)
            return result

        return {f'{prefix}{name}': call}

    return calls, called


@tap.case
def texts_of_modules_are_whole_and_indented():
    for prefix in ('do_', ''):
        _calls, called = virtual_functions(prefix)
        assert repr(type('A', (nn.Module,), called('extra_repr', 'a\0b'))()).endswith('(a\\x00b)')
        inner = type('B', (nn.Module,), called('extra_repr', 'a\nb'))()
        assert repr(inner).endswith('(\n  a\n  b\n)'), repr(inner)
        assert repr(nn.Sequential(inner)).endswith('(\n    a\n    b\n  )\n)'), repr(nn.Sequential(inner))


@tap.case
def virtual_functions_need_no_prefix():
    x = GTorch.ones(2)
    for prefix in ('do_', ''):
        calls, called = virtual_functions(prefix)
        assert repr(type('A', (nn.Module,), called('extra_repr', 'size=3'))()).endswith('(size=3)')
        assert repr(type('B', (nn.Linear,), called('extra_repr', 'x'))(1, 2)).endswith('(x)')
        source = type('C', (GTorch.MemorySource,), {**called('allocate', 0), **called('release')})()
        assert GTorch.MemorySource.allocate(source, x.device, 64, 0) == 0
        GTorch.MemorySource.release(source, x.device, 64, 64, 0)
        assert calls == ['extra_repr', 'extra_repr', 'allocate', 'release'], (prefix, calls)

        for result in (None, True):
            param = nn.Parameter(x.clone())
            optimizer = type('D', (GTorch.Optimizer,), called('step_param', result))()
            optimizer.add_param_group({'params': [param], 'lr': 0.1})
            param.grad = x
            optimizer.step()
        refused = type('E', (GTorch.Optimizer,), called('step_param', False))()
        refused.add_param_group({'params': [param], 'lr': 0.1})
        raises(GLib.Error, refused.step, 'step_param of')

        scheduler = type('F', (optim.lr_scheduler.LRScheduler,), called('compute', 0.25))(optimizer)
        assert scheduler.get_last_lr() == [0.25]
        coded = [
            GTorch.Encoder.forward(type('I', (GTorch.Encoder,), called('encode', x))(), x, None, None, False),
            GTorch.Decoder.forward(
                type('J', (GTorch.Decoder,), called('decode', x))(), x, x, None, None, None, None, False, False),
            GTorch.Attention.forward(
                type('K', (GTorch.Attention,), called('attend', (True, x, None)))(), x, x, x, None, False, None, True,
                False)[1],
        ]
        assert [one.tolist() for one in coded] == [[1, 1]] * 3
        assert calls[-3:] == ['encode', 'decode', 'attend'], calls
        del calls[-3:]
        extra = type('L', (nn.Module,), {**called('get_extra_state', x), **called('set_extra_state', True)})()
        extra.load_state_dict(extra.state_dict())
        assert set(calls[-2:]) == {'get_extra_state', 'set_extra_state'}, calls
        calls[:] = [name for name in calls if 'extra_state' not in name]
        loss = type('G', (GTorch.Loss,), called('compute', x))()
        assert loss(x, x).tolist() == [1, 1]
        assert calls[4:7] == ['step_param'] * 3 and 'compute' in calls[7:-1] and calls[-1] == 'compute'

        for function, base in (('forward', GTorch.Module), ('forward_many', GTorch.Module)):
            if (prefix, function) == ('', 'forward'):
                continue
            module = type('H', (base,), called(function, x))()
            module.register_forward_hook(lambda *_args: None)
            made = GTorch.Module.forward_many(module, [x, x]) if function == 'forward_many' else module(x)
            assert made.tolist() == [1, 1] and calls[-1] == function
        layer = nn.Linear(1, 2)
        layer.register_parametrization('bias', type('L', (nn.Module,), called('right_inverse', [x]))(), True)
        assert layer.parametrizations.bias.original.tolist() == [1, 1] and calls[-1] == 'right_inverse'


def deriving(Base, prefix, **functions):
    """A class whose virtual functions have the names with @prefix, and the names of those that were called."""
    calls = []

    def called(name, function):
        def call(self, *args):
            calls.append(name)
            return function(self, *args)

        return call

    return calls, type('Derived', (Base,), {f'{prefix}{name}': called(name, one) for name, one in functions.items()})


def numbers(loader):
    return [batch.tolist() for batch in loader]


number, SAMPLE = GTorch.Sample.new_int, GTorch.Sample


@tap.case
def data_sets_are_asked():
    for prefix in ('do_', ''):
        calls, cls = deriving(
            GTorch.Dataset, prefix, get_length=lambda self: 4, get_item=lambda self, i, cancellable: number(i * i))
        assert numbers(GTorch.DataLoader.new(cls(), 3, False)) == [[0, 1, 4], [9]]
        assert set(calls) == {'get_length', 'get_item'} and calls.count('get_item') == 4, calls
        assert len(cls()) == 4 and cls()[-1] == 9
        calls, whole = deriving(
            cls, prefix, get_batch=lambda self, indices, cancellable: SAMPLE.collate([number(-i) for i in indices]))
        assert numbers(GTorch.DataLoader.new(whole(), 3, False)) == [[0, -1, -2], [-3]]
        assert calls == ['get_batch'] * 2
        assert GTorch.Dataset.get_batch(whole(), [3, -2], None).get_tensor().tolist() == [-3, -2]


def count_to(n, prefix):
    """The class of a source of the numbers below @n."""

    def following(self, cancellable):
        self.at = getattr(self, 'at', -1) + 1
        return number(self.at) if self.at < n else None

    return deriving(GTorch.SampleSource, prefix, next=following)


@tap.case
def iterable_data_sets_and_their_sources_are_asked():
    for prefix in ('do_', ''):
        asked, source = count_to(5, prefix)
        calls, cls = deriving(GTorch.IterableDataset, prefix, iterate=lambda self, worker, n, source=source: source())
        assert numbers(GTorch.DataLoader.new(cls(), 2, False)) == [[0, 1], [2, 3], [4]]
        assert calls == ['iterate'] and asked == ['next'] * 6, (calls, asked)
        assert list(cls()) == [0, 1, 2, 3, 4]
        raises(TypeError, lambda cls=cls: len(cls()), 'the length of', 'is unknown')


def squares(n=4):
    return deriving(GTorch.Dataset, 'do_', get_length=lambda self: n, get_item=lambda self, i, _c: number(i * i))[1]()


@tap.case
def samplers_and_sources_of_indices_are_asked():
    for prefix in ('do_', ''):
        began = []

        def following(self, n):
            self.at, at = getattr(self, 'at', 0) + n, getattr(self, 'at', 0)
            return GTorch.Size.new(self.order[at : at + n]) if at < len(self.order) else None

        sources, source = deriving(
            GTorch.IndexSource, prefix, next=following, get_state=lambda self: GLib.Variant('ai', self.order))

        def begin(self, epoch, source=source, began=began):
            made = source()
            made.order = getattr(self, 'order', [3, 0, 2, 1])
            began.append(epoch)
            return made

        def go_on(self, state):
            self.order = state.unpack()

        calls, cls = deriving(GTorch.Sampler, prefix, get_length=lambda self: 4, iterate=begin, set_state=go_on)
        loader = GTorch.DataLoader(dataset=squares(), sampler=cls(), batch_size=3)
        assert len(loader) == 2 and numbers(loader) == [[9, 0, 4], [1]] and numbers(loader) == [[9, 0, 4], [1]]
        assert began == [0, 1] and {'get_length', 'iterate'} <= set(calls) and 'next' in sources
        iterator = loader.iterate()
        assert iterator.next(None).get_tensor().tolist() == [9, 0, 4]
        state = loader.get_state()
        assert 'get_state' in sources
        again = cls()
        again.order = [1, 1, 1, 1]
        rest = GTorch.DataLoader(dataset=squares(), sampler=again, batch_size=3)
        assert rest.set_state(state) and numbers(rest) == [[1]] and 'set_state' in calls, calls
        assert again.order == [3, 0, 2, 1]


@tap.case
def fetchers_are_called():
    for prefix in ('do_', ''):
        steps = {
            'begin': lambda self, worker, n_workers, seed, cancellable: setattr(self, 'n', n_workers),
            'end': lambda self, worker: None,
        }
        calls, cls = deriving(
            GTorch.Fetcher, prefix, fetch=lambda self, worker, indices, cancellable: number(sum(indices)), **steps)
        for n_workers in (0, 2):
            fetcher = cls()
            loader = GTorch.DataLoader(dataset=squares(5), batch_size=2, fetcher=fetcher, num_workers=n_workers)
            assert list(loader) == [1, 5, 4], list(loader)
            loader.close()
            assert fetcher.n == max(n_workers, 1)
        assert calls.count('begin') == calls.count('end') >= 2 and calls.count('fetch') >= 6, calls

        def following(self, worker, n, drop_last, cancellable):
            self.given = getattr(self, 'given', 0) + n
            return number(self.given) if self.given < 8 else None

        _asked, source = count_to(0, 'do_')
        dataset = deriving(GTorch.IterableDataset, 'do_', iterate=lambda self, worker, n, source=source: source())[1]()
        calls, cls = deriving(GTorch.Fetcher, prefix, fetch_next=following, **steps)
        assert list(GTorch.DataLoader(dataset=dataset, batch_size=3, fetcher=cls())) == [3, 6]
        assert calls.count('fetch_next') == 3 and calls[0] == 'begin' and calls[-1] == 'end', calls


@tap.case
def metrics_are_called():
    for prefix in ('do_', ''):
        calls, cls = deriving(
            GTorch.Metric, prefix, update=lambda self, output, target: self.seen.append(output.sum().item()),
            compute=lambda self: GTorch.tensor(max(self.seen)), reset=lambda self: self.seen.clear())
        metric = cls()
        metric.seen = []
        raw = GTorch.Metric
        for n in (1, 3, 2):
            raw.update(metric, GTorch.ones(n), None)
        assert raw.compute_value(metric) == 3 and raw.compute(metric).item() == 3
        raw.reset(metric)
        assert metric.seen == [] and calls == ['update'] * 3 + ['compute'] * 2 + ['reset'], calls


@tap.case
def logs_are_called():
    for prefix in ('do_', ''):
        calls, cls = deriving(
            GTorch.Log, prefix, write=lambda self, step, names, values: self.seen.append((step, names, values)),
            flush=lambda self: None, close=lambda self: None)
        log = cls()
        log.seen = []
        raw = GTorch.Log
        assert raw.write(log, 3, ['a', 'b'], [0.5, 2.0]) and raw.flush(log) and raw.close(log) and raw.close(log)
        assert log.seen == [(3, ['a', 'b'], [0.5, 2.0])] and calls == ['write', 'flush', 'close']
        assert log.is_closed()
        raises(GLib.Error, lambda: raw.write(log, 4, ['a'], [1.0]), 'is closed')


@tap.case
def trainers_call_their_steps():
    for prefix in ('do_', ''):

        def loss(self, batch):
            return self.get_module()(GTorch.ones(1, 2)).sum()

        calls, cls = deriving(GTorch.Trainer, prefix, training_step=loss, validation_step=loss)
        net = nn.Linear(2, 1)
        loader = GTorch.DataLoader.new(GTorch.TensorDataset.new([GTorch.ones(4, 2)]), 2, False)
        made = cls(net, loader, None, optim.SGD(net.parameters(), lr=0.1), validation_loader=loader)
        before = net.bias.item()
        made.run()
        assert calls == ['training_step'] * 2 + ['validation_step'] * 2, calls
        assert abs(net.bias.item() - (before - 0.2)) < 1e-6 and 'loss' in made.results


@tap.case
def exceptions_of_data_sets_in_workers_are_told():
    def fail(self, i, cancellable):
        raise LookupError(f'no sample {i}')

    cls = deriving(GTorch.Dataset, '', get_length=lambda self: 4, get_item=fail)[1]
    loader = GTorch.DataLoader.new(cls(), 2, False)
    raises(LookupError, lambda: list(loader), 'no sample 0')
    loader = GTorch.DataLoader(dataset=cls(), batch_size=2, num_workers=1)
    raises(GLib.Error, lambda: list(loader), 'index 0: ', 'get_item(): LookupError: no sample 0')


ENDING = """
import gi
gi.require_version('GTorch', '1')
from gi.repository import GTorch

class Numbers(GTorch.Dataset):
    def get_length(self):
        return 400000

    def get_item(self, index, cancellable):
        return GTorch.Sample.new_int(index)

loader = GTorch.DataLoader(dataset=Numbers(), batch_size=2, num_workers=3)
iterator = loader.iterate()
print(iterator.next(None).get_tensor().tolist())
"""


@tap.case
def a_program_may_end_while_workers_ask_a_data_set():
    env = {**os.environ, 'G_DEBUG': 'fatal-criticals'}
    for _ in range(3):
        made = subprocess.run([sys.executable, '-c', ENDING], env=env, capture_output=True, text=True, timeout=60)
        assert (made.returncode, made.stdout) == (0, '[0, 1]\n') and not made.stderr, made


@tap.case
def overrides_can_call_super():
    class Mine(nn.Linear):
        def extra_repr(self):
            return f'{super().extra_repr()}, mine'

    class Plain(nn.Module):
        def extra_repr(self):
            return super().extra_repr() + 'plain'

    class Later(Plain):
        def extra_repr(self):
            return super().extra_repr() + ' later'

    class Stateful(nn.Module):
        def get_extra_state(self):
            assert super().get_extra_state() is None
            return GTorch.ones(1)

        def set_extra_state(self, state):
            raises(NotImplementedError, lambda: super(Stateful, self).set_extra_state(state), 'no extra state')

    stateful = Stateful()
    stateful.load_state_dict(stateful.state_dict())
    assert repr(Mine(1, 2)) == 'Mine(in_features=1, out_features=2, bias=True, mine)'
    assert repr(Plain()) == 'Plain(plain)' and repr(Later()) == 'Later(plain later)'
    assert nn.ReLU().extra_repr() == nn.Module().extra_repr() == nn.Sequential().extra_repr() == ''


@tap.case
def exceptions_of_virtual_functions_propagate():
    class Broken(GTorch.Optimizer):
        def step_param(self, group, param, grad):
            raise LookupError('in the step')

    param = nn.Parameter(GTorch.ones(2))
    optimizer = Broken()
    optimizer.add_param_group({'params': [param], 'lr': 0.1})
    param.grad = GTorch.ones(2)
    raises(LookupError, optimizer.step, 'in the step')


@tap.case
def an_async_forward_gives_a_coroutine_which_c_refuses():
    class Later(nn.Module):
        async def forward(self, x):
            return x + 1

    x = GTorch.ones(2)
    for compute in (Later(), Later().forward):
        made = compute(x)
        try:
            made.send(None)
        except StopIteration as done:
            assert done.value.tolist() == [2, 2]
        else:
            raise AssertionError('it did not end')
    later = Later()
    raises(TypeError, lambda: nn.Sequential(later)(x), 'gave coroutine to C')


class Renamed(nn.Module):
    """Reads states of a former version, in which a parameter had another name."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(GTorch.ones(2))
        self.register_buffer('count', GTorch.zeros(1))

    def forward(self, x):
        return x * self.scale

    def _load_from_state_dict(self, state_dict, prefix, *rest):
        if f'{prefix}gain' in state_dict:
            state_dict[f'{prefix}scale'] = state_dict.pop(f'{prefix}gain')
        super()._load_from_state_dict(state_dict, prefix, *rest)
        self.loaded = self.scale.tolist()

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f'{prefix}version'] = GTorch.tensor(2)


@tap.case
def what_a_class_says_of_its_state_counts():
    net = nn.Sequential(nn.Linear(2, 2), Renamed())
    names = ['0.weight', '0.bias', '1.scale', '1.count']
    assert list(net.state_dict()) == [*names, '1.version'] and net.state_dict()['1.version'].item() == 2
    assert list(net.state_dict(prefix='net.'))[-1] == 'net.1.version'
    assert net.state_dict(keep_vars=True)['1.scale'] is net[1].scale
    assert list(net[1].state_dict()) == ['scale', 'count', 'version']

    given = dict(zip(names, (GTorch.eye(2), GTorch.ones(2), GTorch.tensor([3.0, 4.0]), GTorch.ones(1))))
    former = {'1.gain' if name == '1.scale' else name: tensor for name, tensor in given.items()}
    found = net.load_state_dict(former)
    assert not found.missing_keys and not found.unexpected_keys and '1.gain' in former
    assert net[1].scale.tolist() == net[1].loaded == [3, 4] and net[0].weight.tolist() == [[1, 0], [0, 1]]
    assert net[1].scale.requires_grad and net[1].scale.is_leaf

    wrong = {**given, '1.scale': GTorch.ones(3), '0.bias': GTorch.zeros(2)}
    raises(RuntimeError, lambda: net.load_state_dict(wrong), '1.scale', '[2]', '[3]')
    raises(RuntimeError, lambda: net.load_state_dict({**given, '1.more': GTorch.ones(1)}), 'unexpected: 1.more')
    raises(RuntimeError, lambda: net.load_state_dict({'0.bias': GTorch.zeros(2)}), 'missing: 0.weight')
    assert net[0].bias.tolist() == [1, 1] and net[1].scale.tolist() == [3, 4]  # what failed has changed nothing
    found = net.load_state_dict({'0.bias': GTorch.zeros(2), '1.more': GTorch.ones(1)}, strict=False)
    assert found.missing_keys == ['0.weight', '1.scale', '1.count'] and found.unexpected_keys == ['1.more']
    assert net[0].bias.tolist() == [0, 0]
    raises(NotImplementedError, lambda: net.load_state_dict(given, assign=True), 'assign')
    raises(TypeError, lambda: net.load_state_dict({'1.gain': 'x'}), "'1.gain'")


@tap.case
def complex_numbers_to_the_power_0_are_1():
    assert (GTorch.tensor([0j, 1j, 2]) ** 0).tolist() == [1, 1, 1]


class Scale(nn.Module):
    _version = 2  # the first version stored the logarithm

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(GTorch.full((2,), 3.0))

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *args):
        if (local_metadata.get('version') or 1) < 2:
            state_dict[f'{prefix}scale'] = state_dict[f'{prefix}scale'].exp()
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)


@tap.case
def states_tell_the_versions_of_their_classes():
    net = nn.Sequential(nn.Sequential(Scale()), nn.BatchNorm1d(2))
    state = net.state_dict()
    assert state._metadata == {
        '': {'version': 1}, '0': {'version': 1}, '0.0': {'version': 2}, '1': {'version': 2},
    }
    assert list(net.state_dict(prefix='a.')._metadata) == ['a', 'a.0', 'a.0.0', 'a.1']
    buffer = io.BytesIO()
    GTorch.save(state, buffer)
    buffer.seek(0)
    for one in (state, GTorch.load(buffer), copy.deepcopy(state)):
        net.load_state_dict(one)
        assert net[0][0].scale.tolist() == [3, 3]
    net.load_state_dict({**state, '0.0.scale': GTorch.zeros(2)})
    assert net[0][0].scale.tolist() == [1, 1]

    given = []
    net[0].register_state_dict_post_hook(lambda module, table, prefix, metadata: given.append((prefix, metadata)))
    net[0].register_load_state_dict_pre_hook(lambda module, table, prefix, metadata, *_rest: given.append(metadata))
    net.load_state_dict(net.state_dict())
    assert given == [('0.', {'version': 1}), {'version': 1}]


@tap.case
def norms_take_states_of_their_first_version():
    for net in (nn.Sequential(nn.BatchNorm1d(2)), nn.Sequential(Scale(), nn.BatchNorm1d(2))):
        last = len(net) - 1
        state = {name: value for name, value in net.state_dict().items() if 'tracked' not in name}
        found = net.load_state_dict(state)
        assert not found.missing_keys and not found.unexpected_keys
        del state[f'{last}.running_mean']
        raises(GLib.Error, lambda: net.load_state_dict(state), 'running_mean')
        newest = net.state_dict()
        del newest[f'{last}.num_batches_tracked']
        raises(GLib.Error, lambda: net.load_state_dict(newest), 'num_batches_tracked')


class Adapted(nn.Linear):
    """Saves its bias alone, and has a tensor that is no member."""

    def __init__(self):
        super().__init__(2, 2)
        self.extra = [GTorch.ones(1)]

    def _apply(self, fn, *args):
        self.extra = [fn(tensor) for tensor in self.extra]
        return super()._apply(fn, *args)

    def state_dict(self, *args, **options):
        found = super().state_dict(*args, **options)
        for name in [name for name in found if name.endswith('weight')]:
            del found[name]
        return found


@tap.case
def apply_and_state_dict_of_children_are_called():
    net = nn.Sequential(nn.Sequential(Adapted()), nn.Linear(1, 1))
    assert net.double() is net and net[0][0].extra[0].dtype == GTorch.float64
    assert net[0][0].weight.dtype == net[1].weight.dtype == GTorch.float64
    net.to(dtype=GTorch.float32)
    assert net[0][0].extra[0].dtype == net[0][0].weight.dtype == GTorch.float32
    assert list(net.state_dict(prefix='a.')) == ['a.0.0.bias', 'a.1.weight', 'a.1.bias']
    assert list(net[0][0].state_dict()) == ['bias']
    assert net.state_dict()._metadata['0.0'] == {'version': 1}
    table = {'x': 1}
    assert nn.Linear(1, 1).state_dict(destination=table, prefix='y.') is table and list(table) == [
        'x', 'y.weight', 'y.bias',
    ]  # fmt: skip

    layer = nn.Sequential(nn.BatchNorm1d(2))
    layer(GTorch.ones(2, 2)).sum().backward()
    weight = layer[0].weight
    assert layer._apply(lambda tensor: tensor.double()) is layer and layer[0].weight is weight
    assert weight.dtype == weight.grad.dtype == layer[0].running_mean.dtype == GTorch.float64


@tap.case
def parts_of_layers_that_are_not_called_are_refused():
    def define(base, name, **more):
        return type('Own', (base,), {name: lambda self, *args: None, **more})

    for base, name in (
        (nn.Conv2d, '_conv_forward'), (nn.BatchNorm1d, '_check_input_dim'), (nn.TransformerEncoderLayer, '_ff_block'),
        (nn.TransformerDecoderLayer, '_mha_block'), (nn.LSTM, 'check_forward_args'),
    ):  # fmt: skip
        raises(TypeError, lambda: define(base, name), f'Own.{name}(): {base.__name__} does not call it: override')
        assert define(base, name, forward=lambda self, x: x) and define(nn.Module, name)
    mixin = type('Mixin', (), {'_conv_forward': lambda self, *args: None})
    raises(TypeError, lambda: type('Own', (mixin, nn.Conv1d), {}), 'Own._conv_forward()')


tap.main()
