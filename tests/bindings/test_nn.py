#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Modules written in Python, layers, optimizers."""

import ctypes
import gc
import pathlib
import sys
import threading
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import Gio, GLib, GTorch  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402
from tap import raises  # noqa: E402

nn = GTorch.nn


class Net(GTorch.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 8)
        self.second = nn.Linear(8, 1, bias=False)
        self.scale = nn.Parameter(GTorch.ones(1))

    def forward(self, x):
        return self.second(self.first(x).tanh()) * self.scale


class Broken(GTorch.Module):
    def forward(self, x):
        raise ValueError('from within')


class NoTensor(GTorch.Module):
    def forward(self, x):
        return 3


class Outer(GTorch.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)


@tap.case
def assigned_modules_and_parameters_belong_to_the_module():
    net = Net()
    names = [name for name, _ in net.named_parameters()]
    assert sorted(names) == ['first.bias', 'first.weight', 'scale', 'second.weight'], names
    assert [name for name, _ in net.named_children()] == ['first', 'second']
    assert isinstance(net.first, nn.Linear) and net.first.weight.shape == (8, 2)
    assert isinstance(net.scale, GTorch.Tensor) and net.scale.requires_grad


@tap.case
def forward_in_python_is_called_from_c():
    GTorch.manual_seed(1)
    net, x = Net(), GTorch.randn(3, 2)
    chain = nn.Sequential(net, nn.ReLU())
    assert chain(x).shape == (3, 1)
    assert chain(x).tolist() == net(x).relu().tolist()


@tap.case
def exceptions_propagate_unchanged():
    raises(ValueError, lambda: Broken()(GTorch.ones(1)), 'from within')
    raises(ValueError, lambda: Outer(Broken())(GTorch.ones(1)), 'from within')
    raises(ValueError, lambda: nn.Sequential(Broken())(GTorch.ones(1)), 'from within')


@tap.case
def forward_gives_anything_to_python_and_a_tensor_to_c():
    class Several(GTorch.Module):
        def forward(self, x, h=None):
            return x, x * 2, h

    x, net, seen = GTorch.ones(1), Several(), []
    for _ in range(2):
        for result in (net(x), net(x, None), net(x, h=None)):
            assert result[0] is x and result[1].item() == 2 and result[2] is None
        assert net(x, x)[2] is x
        net.register_forward_hook(lambda _module, _inputs, output: seen.append(output))
    assert len(seen) == 4 and seen[0][0] is x
    wrong = NoTensor()(x)
    assert not isinstance(wrong, GTorch.Tensor)
    for inner in (net, NoTensor()):
        raises(TypeError, lambda inner=inner: nn.Sequential(inner)(x), 'to C, which takes one tensor')
    net.register_forward_hook(lambda _module, _inputs, output: output[1])
    assert net(x).item() == 2


@tap.case
def an_error_of_the_library_passes_through_forward():
    error = raises(GLib.Error, lambda: Net()(GTorch.ones(3, 5)), '[3, 5]')
    assert error.matches(GTorch.error_quark(), GTorch.Error.SHAPE), error


def train(optimizer_class, **options):
    GTorch.manual_seed(3)
    net = Net()
    x = GTorch.randn(64, 2)
    y = x.sum(1, keepdim=True) * 0.5
    optimizer = optimizer_class(net.parameters(), **options)
    loss_of = nn.MSELoss()
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = loss_of(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@tap.case
def optimizers_learn():
    for cls, options in (
        (GTorch.optim.SGD, {'lr': 0.1, 'momentum': 0.9}),
        (GTorch.optim.Adam, {'lr': 0.05, 'betas': (0.9, 0.99), 'weight_decay': 1e-4}),
        (GTorch.optim.AdamW, {'lr': 0.05}),
    ):
        losses = train(cls, **options)
        assert losses[-1] < 0.1 * losses[0], f'{cls.__name__}: {losses[0]} to {losses[-1]}'


@tap.case
def learning_rate_can_be_read_and_set():
    optimizer = GTorch.optim.SGD([nn.Parameter(GTorch.ones(1))], lr=0.5)
    assert optimizer.lr == 0.5
    optimizer.lr = 0.25
    assert optimizer.props.learning_rate == 0.25


@tap.case
def unknown_and_missing_arguments_are_type_errors():
    parameter = nn.Parameter(GTorch.ones(1))
    raises(TypeError, lambda: nn.Linear(2), 'out_features')
    raises(TypeError, lambda: nn.Linear(2, 3, bais=True), 'bais')
    raises(TypeError, lambda: GTorch.optim.SGD([], mometum=1), 'mometum')
    raises(GLib.Error, lambda: GTorch.optim.SGD([parameter], lr=-1), 'lr is -1')
    raises(GLib.Error, lambda: GTorch.optim.SGD([parameter], lr=float('nan')), 'lr is nan')
    raises(GLib.Error, lambda: GTorch.optim.SGD([parameter], weight_decay=-1), 'weight_decay is -1')
    raises(GLib.Error, lambda: GTorch.optim.Adam([parameter], betas=(0.9, 2)), 'beta2 is 2')


@tap.case
def state_goes_from_one_module_to_another():
    a, b, x = Net(), Net(), GTorch.ones(2, 2)
    assert a(x).tolist() != b(x).tolist()
    b.load_state_dict(a.state_dict())
    assert a(x).tolist() == b(x).tolist()
    raises(GLib.Error, lambda: b.load_state_dict({'nobody': x}), 'nobody')


def trained(kind):
    """Returns an optimizer of two parameters that has made a step."""
    parameters = [GTorch.ones(2, 2).requires_grad_(), GTorch.ones(3).requires_grad_()]
    optimizer = kind(parameters)
    sum((parameter * parameter).sum() for parameter in parameters).backward()
    optimizer.step()
    return optimizer


@tap.case
def a_load_that_fails_changes_nothing():
    def values(state):
        return {name: value.tolist() if isinstance(value, GTorch.Tensor) else value for name, value in state.items()}

    used = GTorch.GradScaler()
    used.scale(GTorch.ones([]))
    wrong = [
        None, 'text', object(), GTorch.ones(5, 4, 3), GTorch.ones(5, 4, 3).to(GTorch.complex64), float('nan'), -1.5,
    ]
    subjects = [
        (Net(), Net()),
        (trained(GTorch.optim.Adam), trained(GTorch.optim.Adam)),
        (trained(lambda p: GTorch.optim.SGD(p, lr=0.5, momentum=0.5)),
         trained(lambda p: GTorch.optim.SGD(p, lr=0.25, momentum=0.5))),
        (GTorch.GradScaler(), GTorch.GradScaler(init_scale=8)),
        (used, GTorch.GradScaler(init_scale=8)),
    ]
    n_failed = 0
    for subject, source in subjects:
        flat = {'nested': False} if isinstance(source, GTorch.Optimizer) else {}
        good = source.state_dict(**flat)
        for name in good:
            for value in wrong:
                before = values(subject.state_dict(**flat))
                try:
                    subject.load_state_dict({**good, name: value})
                except (GLib.Error, TypeError, ValueError):
                    n_failed += 1
                    assert values(subject.state_dict(**flat)) == before, (subject, name, value)
                else:
                    raise AssertionError(f'{subject} has loaded {value!r} as {name}')
        subject.load_state_dict(good)
        assert values(subject.state_dict(**flat)) == values(good)
    assert n_failed > 100, n_failed


@tap.case
def tables_leak_nothing():
    """Counted by the C library, which knows each byte."""
    try:
        count = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError):
        raise tap.Skip('the C library does not count') from None
    count.restype = type('Info', (ctypes.Structure,), {'_fields_': [(n, ctypes.c_size_t) for n in 'abcdefghij']})

    net, calls = Net(), 1000
    optimizer = GTorch.optim.Adam(net.parameters())
    net(GTorch.ones(1, 2)).sum().backward()
    optimizer.step()
    state, remembered = net.state_dict(), optimizer.state_dict()
    stream = Gio.MemoryOutputStream.new_resizable()
    GTorch.safetensors_save(state, {'from': 'a test'}, stream, None, None)
    stream.close()
    content = stream.steal_as_bytes()

    for call in (
        net.state_dict,
        lambda: net.load_state_dict(state),
        optimizer.state_dict,
        lambda: optimizer.load_state_dict(remembered),
        lambda: GTorch.safetensors_load_bytes(content),
    ):
        lost = []
        for _round in range(8):  # a table that grows now and then does not grow in each round
            gc.collect()
            before = count().h
            for _ in range(calls):
                call()
            gc.collect()
            lost.append((count().h - before) / calls)
            if lost[-1] < 8:
                break
        assert min(lost) < 8, f'{call}: {lost} bytes are lost in each call'


@tap.case
def train_and_eval_reach_the_children():
    drop = nn.Sequential(nn.Dropout(0.9))
    x = GTorch.ones(100)
    assert drop.eval()(x).tolist() == x.tolist()
    assert drop.train()(x).tolist() != x.tolist()
    raises(GLib.Error, lambda: nn.Dropout(2.0), 'within [0, 1]')


@tap.case
def layers_have_defaults():
    image, row = GTorch.randn(2, 4, 6, 6), GTorch.randn(3, 4)
    shapes = [
        (nn.Conv2d(4, 8, 3), image, (2, 8, 4, 4)),
        (nn.MaxPool2d(2), image, (2, 4, 3, 3)),
        (nn.AvgPool2d(3), image, (2, 4, 2, 2)),
        (nn.AdaptiveAvgPool2d(1), image, (2, 4, 1, 1)),
        (nn.BatchNorm2d(4), image, (2, 4, 6, 6)),
        (nn.Flatten(), image, (2, 144)),
        (nn.LayerNorm(4), row, (3, 4)),
        (nn.BatchNorm1d(4), row, (3, 4)),
        (nn.Dropout(), row, (3, 4)),
        (nn.Embedding(5, 2), GTorch.tensor([0, 4]), (2, 2)),
    ]
    names = ('GELU', 'LeakyReLU', 'Softmax', 'LogSoftmax', 'Identity', 'SiLU', 'Sigmoid', 'Tanh')
    shapes += [(getattr(nn, name)(), row, (3, 4)) for name in names]
    for layer, x, shape in shapes:
        assert layer(x).shape == shape, f'{layer}: {layer(x).shape}'
    for name in ('MSELoss', 'L1Loss', 'BCEWithLogitsLoss'):
        assert getattr(nn, name)()(row, row.sigmoid()).shape == ()
    for name in ('CrossEntropyLoss', 'NLLLoss'):
        assert getattr(nn, name)()(row, GTorch.tensor([0, 1, 3])).shape == ()


@tap.case
def numbers_of_scalers_and_states_are_checked():
    nan, inf = float('nan'), float('inf')
    for name, value in (('init_scale', nan), ('init_scale', -1.0), ('growth_factor', 0.5),
                        ('backoff_factor', inf), ('growth_interval', 0)):
        raises(GLib.Error, lambda: GTorch.GradScaler(**{name: value}), 'grad_scaler:', f'{value:g}')
        GTorch.GradScaler(enabled=False, **{name: value})
    weight = nn.Parameter(GTorch.ones(2))
    optimizer = GTorch.optim.Adam([weight])
    (weight * 2).sum().backward()
    optimizer.step()
    state = optimizer.state_dict(nested=False)
    for value in (nan, inf, -1.0, 0.5):
        wrong = {**state, 'state.0.step': GTorch.tensor(value)}
        raises(GLib.Error, lambda: optimizer.load_state_dict(wrong), 'load_state_dict', 'state.0.step', f'{value:g}')
    optimizer.load_state_dict(state)


@tap.case
def scalers_for_gpus_are_disabled_without_one():
    if GTorch.cuda.is_available():
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        assert not GTorch.amp.GradScaler('cuda').is_enabled()
        assert 'no GPU' in str(caught[0].message)
        assert GTorch.amp.GradScaler('cpu').is_enabled() and len(caught) == 1
    raises(NotImplementedError, GTorch.cuda.profiler.start, 'cuda.profiler.start()')


@tap.case
def gradients_are_scaled():
    weight = nn.Parameter(GTorch.ones(2))
    optimizer = GTorch.optim.SGD([weight], lr=0.5)
    scaler = GTorch.amp.GradScaler('cpu', init_scale=1024, growth_factor=4, growth_interval=2)
    heard = []
    scaler.connect('overflow', lambda _scaler, whose: heard.append(whose))
    seen = []
    for factor in (1.0, float('inf'), 1.0, 1.0):
        optimizer.zero_grad()
        with GTorch.autocast(weight.device, dtype=GTorch.float16):
            loss = (weight * factor).sum()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        seen.append((scaler.get_scale(), weight.tolist()[0]))
    assert seen == [(1024, 0.5), (512, 0.5), (512, 0), (2048, -0.5)], seen
    assert heard == [optimizer]
    assert [x.item() for x in scaler.scale([GTorch.ones([]), GTorch.full([], 2.0)])] == [2048, 4096]
    state = scaler.state_dict()
    assert state == {'scale': 2048, 'growth_factor': 4, 'backoff_factor': 0.5, 'growth_interval': 2,
                     '_growth_tracker': 0}, state
    other = GTorch.GradScaler()
    other.load_state_dict(state)
    assert other.get_scale() == 2048 and other.props.growth_interval == 2
    other.scale(GTorch.ones([]))
    other.update(8)
    assert other.get_scale() == 8
    raises(GLib.Error, lambda: (scaler.step(optimizer), scaler.step(optimizer)), 'made its step already')
    off = GTorch.GradScaler(enabled=False)
    assert off.scale(loss) is loss and not off.is_enabled() and off.state_dict() == {}


@tap.case
def each_thread_has_a_region_of_a_decorated_function():
    entered, second_entered = threading.Event(), threading.Event()
    seen = {}

    @GTorch.autocast('cpu')
    def decorated(is_first):
        (entered if is_first else second_entered).set()
        if is_first:
            assert second_entered.wait(60)
        else:
            first.join(60)  # its region ends inside this one
        seen[is_first] = GTorch.is_autocast_enabled('cpu')

    first = threading.Thread(target=decorated, args=(True,))
    first.start()
    assert entered.wait(60)
    decorated(False)
    assert seen == {False: True, True: True}, seen
    assert not GTorch.is_autocast_enabled('cpu')


@tap.case
def precisions_have_pytorchs_names():
    matmul, cudnn = GTorch.backends.cuda.matmul, GTorch.backends.cudnn
    assert not matmul.allow_tf32 and cudnn.fp32_precision == 'ieee'
    matmul.allow_tf32 = True
    assert matmul.fp32_precision == 'tf32' and not cudnn.allow_tf32
    assert GTorch.Device.cpu().props.matmul_precision == GTorch.Precision.TF32
    GTorch.set_float32_matmul_precision('medium')
    assert matmul.fp32_precision == 'bf16' and GTorch.get_float32_matmul_precision() == 'medium'
    GTorch.set_float32_matmul_precision('highest')
    assert not matmul.allow_tf32
    cudnn.fp32_precision = 'tf32'
    assert cudnn.allow_tf32 and not matmul.allow_tf32
    cudnn.allow_tf32 = False
    raises(GLib.Error, lambda: GTorch.set_float32_matmul_precision('low'), 'highest')


def need_captures():
    try:
        with GTorch.graph(GTorch.CUDAGraph()):
            pass
    except GLib.Error as error:
        raise tap.Skip(error.message)


@tap.case
def modules_are_replayed_as_graphs():
    need_captures()
    plain, copy = Net(), Net()
    copy.load_state_dict(plain.state_dict())
    inputs = [GTorch.randn(4, 2) for _ in range(3)]
    graphed = GTorch.cuda.make_graphed_callables(copy, inputs[0])
    assert isinstance(graphed, GTorch.GraphedModule) and graphed.is_captured()
    optims = [GTorch.optim.SGD(module.parameters(), lr=0.1) for module in (plain, graphed)]
    for x in inputs:
        losses = []
        for module, optim in zip((plain, graphed), optims):
            optim.zero_grad()
            loss = (module(x) ** 2).sum()
            loss.backward()
            optim.step()
            losses.append(loss.item())
        assert losses[0] == losses[1], losses
    assert graphed.first.weight.tolist() == plain.first.weight.tolist()
    stale = graphed(inputs[0])
    graphed(inputs[1])
    raises(GLib.Error, lambda: stale + 1, 'overwritten')


@tap.case
def functions_are_replayed_as_graphs():
    need_captures()
    first = lambda a, b: (a * b, a + b)  # noqa: E731
    second = lambda a: a.exp()  # noqa: E731
    a, b = GTorch.ones(3), GTorch.full([3], 2.0)
    one, two = GTorch.cuda.make_graphed_callables((first, second), ((a, b), (a,)), num_warmup_iters=1)
    assert [y.tolist() for y in one(b, b)] == [[4.0] * 3, [4.0] * 3]
    assert two(a).tolist() == a.exp().tolist()

    def fails(x):
        raise ValueError('from within')

    raises(ValueError, lambda: GTorch.cuda.make_graphed_callables(fails, a), 'from within')
    raises(
        GLib.Error, lambda: GTorch.cuda.make_graphed_callables(lambda x: x * x.sum().item(), a), 'capture'
    )


@tap.case
def a_step_of_a_scaler_gives_what_the_optimizer_does():
    x = GTorch.ones(2).requires_grad_()
    x.sum().backward()
    scaler, optimizer = GTorch.GradScaler(enabled=False), GTorch.optim.SGD([x], lr=1.0)
    assert optimizer.step() is None and scaler.step(optimizer) is None and x.tolist() == [-1, -1]
    assert scaler.step(optimizer, lambda: GTorch.tensor(3.0)).item() == 3


if __name__ == '__main__':
    tap.main()
