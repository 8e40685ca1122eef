#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""An exception that a callback raises propagates as the same object out of the call that ran it.

The kinds of callbacks are read from the GIR: each must be called here, or be listed as one whose
exceptions no call can propagate."""

import functools
import io
import os
import pathlib
import sys
import traceback
import xml.etree.ElementTree as ET

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import Gio, GLib, GTorch  # noqa: E402

import data_callbacks  # noqa: E402
import tap  # noqa: E402
from data_callbacks import Fetching, Indices, Numbers, loaded  # noqa: E402
from tap import raises  # noqa: E402

nn = GTorch.nn


class Boom(Exception):
    pass


class Stop(BaseException):
    """An exception that, like KeyboardInterrupt, is not derived from Exception."""


class Silent(Exception):
    def __str__(self):
        raise RuntimeError('no text')


def leaf():
    return GTorch.ones([3], dtype=GTorch.float64).requires_grad_()


def kinds(*errors):
    """Selects the exceptions that a way is tried with."""
    library = GLib.Error.new_literal(GTorch.error_quark(), 'an error of the library', GTorch.Error.SHAPE)
    texts = (Boom('not UTF-8: \udcff'), Boom('one\0two'), Silent())
    return (Boom('boom'), Stop('stop'), KeyError('key'), library, *texts)


# Each way wraps a given function in a callback of the kind, and makes a call that runs it.
WAYS = {}


def way(*names):
    def add(function):
        for name in names:
            WAYS.setdefault(name, []).append(function)
        return function

    return add


# --- hooks of tensors ---


@way('TensorHook')
def backward_to_a_leaf(func):
    x = leaf()
    x.register_hook(func)
    (x * 2).sum().backward()


@way('TensorHook')
def backward_through_a_result(func):
    y = leaf() * 2
    y.register_hook(func)
    y.sum().backward()


@way('TensorHook')
def gradients(func):
    x = leaf()
    x.register_hook(func)
    GTorch.autograd.grad((x * 2).sum(), x)


@way('TensorHook')
def backward_of_several(func):
    x = leaf()
    x.register_hook(func)
    GTorch.autograd.backward([x.sum(), (x * 2).sum()])


@way('TensorHook')
def backward_in_a_hook(func):
    x, y = leaf(), leaf()
    x.register_hook(func)
    loss = (x * 2).sum()
    y.register_hook(lambda grad: loss.backward())
    y.sum().backward()


@way('AccumulatedHook')
def backward_then_accumulated(func):
    x = leaf()
    x.register_post_accumulate_grad_hook(func)
    (x * 2).sum().backward()


# --- modules ---


class Add(GTorch.Module):
    def __init__(self, func=None):
        super().__init__()
        self.func = func

    def forward(self, *inputs):
        if self.func is not None:
            self.func()
        return sum(inputs[1:], inputs[0] * 1)


def one_and_two(register):
    def single(func):
        net = nn.Linear(2, 2)
        getattr(net, register)(func)
        net(GTorch.ones(1, 2))

    def in_a_container(func):
        net = nn.Linear(2, 2)
        getattr(net, register)(func)
        nn.Sequential(nn.Identity(), net)(GTorch.ones(1, 2))

    def in_python(func):
        net = Add()
        getattr(net, register)(func)
        net(GTorch.ones(2))

    def two(func):
        net = Add()
        getattr(net, register)(func)
        net(GTorch.ones(2), GTorch.ones(2))

    def loss(func):
        net = nn.MSELoss()
        getattr(net, register)(func)
        net(GTorch.ones(2), GTorch.zeros(2))

    return single, in_a_container, in_python, two, loss


for _function in one_and_two('register_forward_hook'):
    way('ForwardHook')(_function)
for _function in one_and_two('register_forward_pre_hook'):
    way('ForwardPreHook')(_function)


def updated(net, **options):
    model = GTorch.optim.swa_utils.AveragedModel(net, **options)
    model.update_parameters(net)
    model.update_parameters(net)


@way('AverageFunc')
def average(func):
    updated(nn.Linear(1, 1), avg_fn=lambda averaged, current, n: func() or current)


@way('MultiAverageFunc')
def averages(func):
    updated(nn.Linear(1, 1), multi_avg_fn=lambda averaged, current, n: func())


@way('BatchFunc')
def update_bn(func):
    GTorch.optim.swa_utils.update_bn((func() or GTorch.ones([2, 1]) for _ in range(2)), nn.BatchNorm1d(1))


@way('TrainerStepFunc')
def training_step(function):
    net = nn.Linear(2, 1)
    trainer = GTorch.Trainer(net, [(GTorch.ones(1, 2),)], None, GTorch.optim.SGD(net.parameters(), lr=0.1))
    trainer.set_training_step(lambda trainer, batch: function() or trainer.get_module()(batch[0]).sum())
    trainer.run()


@way('TrainerStepFunc')
def validation_step(function):
    trainer = trained(GTorch.Trainer, nn.MSELoss(), validation_loader=[(GTorch.ones(1, 2),)])
    trainer.set_validation_step(lambda trainer, batch: function() or batch[0].sum())
    trainer.run()


def trained(cls, loss, **options):
    net, loader = nn.Linear(2, 1), [(GTorch.ones(1, 2), GTorch.ones(1, 1))]
    return cls(net, loader, loss, GTorch.optim.SGD(net.parameters(), lr=0.1), **options)


@way('TrainerSaveFunc')
def save_function(function):
    trainer = trained(GTorch.Trainer, nn.MSELoss())
    trainer.set_save_function(lambda one: function() or {'step': one.step})
    trainer.save_checkpoint(FILE)


@way('TrainerLoadFunc')
def load_function(function):
    trainer = trained(GTorch.Trainer, nn.MSELoss())
    trainer.set_save_function(lambda one: one.step)
    trainer.set_load_function(lambda one, state: function())
    trainer.save_checkpoint(FILE)
    trainer.load_checkpoint(FILE)


@way('Trainer.training_step')
def steps_of_a_class(func):
    class Training(GTorch.Trainer):
        def training_step(self, batch):
            func()
            return self.get_module()(batch[0]).sum()

    trained(Training, None).run()


@way('Trainer.validation_step')
def evaluation_of_a_class(func):
    class Evaluating(GTorch.Trainer):
        def validation_step(self, batch):
            func()
            return batch[0].sum()

    trained(Evaluating, nn.MSELoss(), validation_loader=[(GTorch.ones(1, 2),)]).run()


@way('OptimizerClosure')
def step_of_lbfgs(func):
    GTorch.optim.LBFGS([leaf()]).step(lambda: func() or 1.0)


@way('OptimizerClosure')
def step_closure(func):
    GTorch.optim.SGD([leaf()]).step_closure(lambda: func() or 1.0)


@way('LRFunc')
def lambda_lr(func):
    lr = GTorch.optim.lr_scheduler
    optimizer = GTorch.optim.SGD([nn.Parameter(GTorch.ones(1))], lr=1, momentum=0.5)
    lr.LambdaLR(optimizer, lambda epoch: (func() or 1) if epoch else 1).step()


@way('LRFunc')
def multiplicative_lr_in_a_chain(func):
    lr = GTorch.optim.lr_scheduler
    optimizer = GTorch.optim.SGD([nn.Parameter(GTorch.ones(1))], lr=1, momentum=0.5)
    lr.ChainedScheduler([lr.MultiplicativeLR(optimizer, lambda epoch: func() or 1)]).step()


@way('LRFunc')
def cyclic_lr(func):
    optimizer = GTorch.optim.SGD([nn.Parameter(GTorch.ones(1))], lr=1, momentum=0.5)
    GTorch.optim.lr_scheduler.CyclicLR(optimizer, 0.1, 1, 2, scale_fn=lambda n: func() or 1)


@way('ModuleFunc')
def apply(func):
    nn.Sequential(nn.Linear(1, 1), nn.Tanh()).apply(lambda module: func())


@way('Module.forward')
def forward(func):
    Add(func)(GTorch.ones(2))


@way('Module.forward')
def forward_in_a_container(func):
    nn.Sequential(nn.Identity(), Add(func))(GTorch.ones(2))


@way('Module.forward')
def forward_by_name(func):
    nn.Sequential(Add(func)).forward(GTorch.ones(2))


@way('Module.forward')
def forward_by_its_name_in_c(func):
    class Named(nn.Module):
        def do_forward(self, x):
            func()
            return x

    nn.Sequential(Named())(GTorch.ones(2))


@way('Function.forward', 'Function.backward')
def function_by_its_names_in_c(func):
    class Named(GTorch.Function):
        def do_forward(self, context, inputs, *_length):
            return [inputs[0] * 2]

        def do_backward(self, context, grads, *_length):
            func()
            return [grads[0] * 2]

    Named()(leaf()).sum().backward()


@way('Module.forward_many')
def forward_of_several(func):
    net = Add(func)
    net.register_forward_hook(lambda *_args: None)
    net(GTorch.ones(2), GTorch.ones(2))


class Distance(GTorch.Loss):
    def __init__(self, func):
        super().__init__()
        self.func = func

    def do_compute(self, value, target):
        self.func()
        return (value - target).abs().sum()


@way('Loss.compute')
def loss(func):
    GTorch.Loss.forward(Distance(func), GTorch.ones(2), GTorch.zeros(2))


class Attends(GTorch.Attention):
    def __init__(self, func):
        super().__init__()
        self.func = func

    def forward(self, query, *_others):
        self.func()
        return query, None


class Encodes(GTorch.Encoder):
    def __init__(self, func):
        super().__init__()
        self.func = func

    def forward(self, src, *_masks):
        self.func()
        return src


class Decodes(GTorch.Decoder):
    def __init__(self, func):
        super().__init__()
        self.func = func

    def forward(self, tgt, _memory, *_masks):
        self.func()
        return tgt


@way('Attention.attend')
def attention_of_a_layer(func):
    layer = GTorch.nn.TransformerEncoderLayer(4, 2, 3)
    layer.self_attn = Attends(func)
    layer(GTorch.ones(3, 2, 4))


@way('Encoder.encode')
def encoder_of_a_transformer(func):
    model = GTorch.nn.Transformer(4, 2, 1, 1, 3, custom_encoder=Encodes(func))
    model(GTorch.ones(3, 2, 4), GTorch.ones(3, 2, 4))


@way('Decoder.decode')
def decoder_of_a_transformer(func):
    model = GTorch.nn.Transformer(4, 2, 1, 1, 3, custom_decoder=Decodes(func))
    model(GTorch.ones(3, 2, 4), GTorch.ones(3, 2, 4))


class Step(GTorch.Optimizer):
    func = None

    def do_step_param(self, group, param, grad):
        type(self).func()
        return True


@way('Optimizer.step_param')
def step(func):
    x, Step.func = leaf(), func
    optimizer = Step()
    params = Gio.ListStore.new(GTorch.Tensor.__gtype__)
    params.append(x)
    optimizer.add_param_group(GTorch.ParamGroup.new(params, 0.1, 0))
    x.sum().backward()
    optimizer.step()


class Schedule(GTorch.optim.lr_scheduler.LRScheduler):
    func = None

    def do_compute(self, group, base_lr):
        type(self).func()
        return base_lr


@way('LRScheduler.compute')
def schedule(func):
    Schedule.func = func
    Schedule(GTorch.optim.SGD([leaf()], lr=0.1))


@way('LRScheduler.compute')
def schedule_step(func):
    Schedule.func = int
    scheduler = Schedule(GTorch.optim.SGD([leaf()], lr=0.1))
    Schedule.func = func
    scheduler.step()


@way('CommHook')
def exchange_of_gradients(func):
    """A single process is a group."""
    group = GTorch.ProcessGroup.new('mpi', None, -1, -1, 60, None)
    net = GTorch.DistributedModule.new(GTorch.nn.Linear(2, 1), group, 25, False, False)
    net.register_comm_hook(lambda bucket: func() or bucket.get_buffer())
    net(GTorch.ones(1, 2)).sum().backward()


# --- functions of autograd ---


class Both(GTorch.Function):
    def __init__(self, forward=None, backward=None):
        super().__init__()
        self.funcs = forward, backward

    def forward(self, context, x):
        self.funcs[0] and self.funcs[0]()
        return x * 2

    def backward(self, context, grad):
        self.funcs[1] and self.funcs[1]()
        return grad * 2


@way('Function.forward')
def function_forward(func):
    Both(forward=func)(leaf())


@way('Function.forward')
def function_apply(func):
    Both(forward=func).apply([leaf()])


@way('Function.backward')
def function_backward(func):
    Both(backward=func)(leaf()).sum().backward()


@way('Function.backward')
def function_gradients(func):
    x = leaf()
    GTorch.autograd.grad(Both(backward=func)(x).sum(), x)


@way('GradcheckFunc')
def gradcheck(func):
    GTorch.gradcheck(lambda x: func() or x * 2, leaf())


@way('GradcheckFunc')
def gradgradcheck(func):
    GTorch.gradgradcheck(lambda x: func() or x * x, leaf())


@way('DistanceFunc')
def triplet_margin_with_distance_loss(func):
    nn.functional.triplet_margin_with_distance_loss(
        leaf(), leaf(), leaf(), distance_function=lambda x, y: func() or (x - y)
    )


def functional(name, func):
    getattr(GTorch.autograd.functional, name)(lambda x: func() or x * x, GTorch.ones(1))


for _name in ('hessian', 'hvp', 'jacobian', 'jvp', 'vhp', 'vjp'):
    _way = functools.partial(functional, _name)
    _way.__name__ = f'functional_{_name}'
    way('FunctionalFunc')(_way)


@way('FunctionalFunc')
def functional_jacobian_forward(func):
    GTorch.autograd.functional.jacobian(lambda x: func() or x * x, GTorch.ones(1), strategy='forward-mode')


@way('FunctionalFunc')
def functional_hessian_forward(func):
    GTorch.autograd.functional.hessian(
        lambda x: func() or x * x, GTorch.ones(1), outer_jacobian_strategy='forward-mode'
    )


class Counted(GTorch.Module):
    def __init__(self, func):
        super().__init__()
        self.func = func

    def get_extra_state(self):
        return GTorch.tensor(3)

    def set_extra_state(self, _state):
        self.func()


@way('Module.set_extra_state')
def load_extra_state(func):
    net = Counted(func)
    net.load_state_dict(net.state_dict())


class Inverted(GTorch.Module):
    def __init__(self, func):
        super().__init__()
        self.func = func

    def forward(self, x):
        return x

    def right_inverse(self, value):
        return self.func() or value


@way('Module.right_inverse')
def register_parametrization(func):
    GTorch.nn.utils.parametrize.register_parametrization(GTorch.nn.Linear(1, 2), 'bias', Inverted(func))


@way('BackwardHook', 'BackwardPreHook')
def backward_hooks(func):
    for name in ('hook', 'pre_hook'):
        net = GTorch.nn.Identity()
        getattr(net, f'register_full_backward_{name}')(lambda *_grads: func())
        net(leaf()).sum().backward()


@way('GradNodeHook', 'GradNodePreHook')
def hooks_of_nodes(func):
    for name in ('register_hook', 'register_prehook'):
        y = leaf() * 2
        getattr(y.grad_fn, name)(lambda *_grads: func())
        y.sum().backward()


def checkpoint(func, **options):
    calls = []

    def call(x):
        calls.append(1)
        if len(calls) > 1:
            func()
        return x.exp()

    GTorch.checkpoint(call, leaf(), **options).sum().backward()


@way('CheckpointFunc')
def checkpoint_first(func):
    GTorch.checkpoint(lambda x: func() or x.exp(), leaf(), use_reentrant=True)


@way('CheckpointFunc')
def checkpoint_in_backward(func):
    checkpoint(func, use_reentrant=True)


@way('RecomputeFunc')
def checkpoint_again(func):
    checkpoint(func, use_reentrant=False)


@way('PackFunc')
def pack_hook(func):
    with GTorch.saved_tensors_hooks(lambda x: func() or x, lambda x: x):
        leaf().exp()


@way('UnpackFunc')
def unpack_hook(func):
    with GTorch.saved_tensors_hooks(lambda x: x, lambda x: func() or x):
        y = leaf().exp().sum()
    y.backward()


# --- data sets, loaders, metrics and logs ---

for _name, _calls in data_callbacks.WAYS.items():
    WAYS.setdefault(_name, []).extend(_calls)


# --- profilers ---


@way('ProfileFunc')
def record_function(func):
    GTorch.record_function('a range', func)


@way('ProfilerScheduleFunc')
def schedule_at_the_start(func):
    profiler = GTorch.Profiler.new()
    profiler.set_schedule_func(lambda step: func() or GTorch.ProfilerAction.NONE)
    profiler.start()
    profiler.stop()


@way('ProfilerScheduleFunc')
def schedule_of_a_step(func):
    profiler = GTorch.Profiler.new()
    profiler.set_schedule_func(lambda step, _data: (func() if step else None) or GTorch.ProfilerAction.NONE, 'data')
    profiler.start()
    profiler.step()
    profiler.stop()


@way('ProfilerScheduleFunc')
def schedule_of_a_block(func):
    action = GTorch.profiler.ProfilerAction.NONE
    with GTorch.profiler.profile(schedule=lambda step: (func() if step else None) or action) as profiler:
        profiler.step()


# --- callbacks of synchronous calls ---


@way('StreamFunc')
def stream_run(func):
    GTorch.Stream('cpu').run(lambda stream: func())


@way('StreamFunc')
def graph_capture(func):
    stream = GTorch.Stream('cpu')

    def work(_stream):
        func()
        return GTorch.ones(2) + 1

    GTorch.cuda.CUDAGraph().capture(stream, None, work)


@way('DeviceFunc')
def device_run(func):
    GTorch.Device('cpu').run(lambda device: func())


@way('MemoryPoolFunc')
def pool_run(func):
    GTorch.MemoryPool('cpu').run(lambda pool: func())


@way('AutocastFunc')
def autocast_run(func):
    GTorch.autocast_run(GTorch.DeviceType.CPU, GTorch.bfloat16, True, True, lambda: func())


@way('GraphedFunc')
def graphed(func):
    def call(x):
        func()
        return x * 2

    GTorch.cuda.make_graphed_callables(call, (GTorch.ones(2),))


class Source(GTorch.MemorySource):
    def __init__(self, func):
        super().__init__()
        self.func = func

    def do_allocate(self, device, n_bytes, stream):
        self.func()
        return 256


@way('MemorySource.allocate')
def allocate(func):
    Source(func).allocate(GTorch.Device('cpu'), 10, 0)


def saved():
    out = Gio.MemoryOutputStream.new_resizable()
    GTorch.safetensors_save({'a': GTorch.ones(5)}, None, out, None, None)
    out.close(None)
    return out.steal_as_bytes()


FILE = Gio.File.new_for_path(os.path.join(os.environ.get('TMPDIR', '/tmp'), f'gtorch-callbacks-{os.getpid()}'))
CONTENT = saved()


@way('FileProgressCallback')
def save(func):
    out = Gio.MemoryOutputStream.new_resizable()
    GTorch.safetensors_save({'a': GTorch.ones(5)}, None, out, None, func)


@way('FileProgressCallback')
def save_with_cancellable(func):
    out, cancellable = Gio.MemoryOutputStream.new_resizable(), Gio.Cancellable()
    GTorch.safetensors_save({'a': GTorch.ones(5)}, None, out, cancellable, func)
    assert not cancellable.is_cancelled()


@way('FileProgressCallback')
def save_file(func):
    GTorch.safetensors_save_file({'a': GTorch.ones(5)}, None, FILE, None, func)


@way('FileProgressCallback')
def load(func):
    GTorch.safetensors_load(Gio.MemoryInputStream.new_from_bytes(CONTENT), None, None, func)


@way('FileProgressCallback')
def load_file(func):
    GTorch.safetensors_save_file({'a': GTorch.ones(5)}, None, FILE, None, None)
    GTorch.safetensors_load_file(FILE, False, None, None, func)


# Callbacks that a main loop runs or that cannot fail: PyGObject prints the exception.
PRINTED = {
    'Fetcher.end', 'IndexSource.get_state', 'MemorySource.release', 'Module.extra_repr', 'Module.get_extra_state',
    'SampleSource.close',
}  # fmt: skip
# What it raises becomes a part of the message of another error, or of a profile.
TOLD = {'PlaceFunc', 'ProfilerStackFunc', 'WorkerInitFunc'}


# --- the cases ---


class Printed:
    """Captures the printed exceptions."""

    def __enter__(self):
        self.text, self.before = io.StringIO(), (sys.stderr, sys.excepthook, sys.unraisablehook)
        sys.stderr = self.text
        sys.excepthook = sys.unraisablehook = lambda *args: self.text.write(f'{args}')
        return self

    def __exit__(self, *_exception):
        sys.stderr, sys.excepthook, sys.unraisablehook = self.before
        return False


def raising(error):
    def where_it_was_raised(*_args):
        raise error

    return where_it_was_raised


def quiet(*_args):
    return None


def adder(name, call):
    def check():
        for error in kinds():
            with Printed() as printed:
                try:
                    call(raising(error))
                except BaseException as caught:
                    longer = isinstance(error, GLib.Error) and caught.__cause__ is error
                    assert caught is error or longer, repr(caught)
                    if longer:
                        assert caught.message.endswith(error.message), caught.message
                        assert caught.matches(GTorch.error_quark(), GTorch.Error.SHAPE), caught
                else:
                    raise AssertionError(f'{error!r} vanished')
            assert printed.text.getvalue() == '', printed.text.getvalue()
            frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
            assert frames[-1] == 'where_it_was_raised', frames
            assert error.__cause__ is None and error.__context__ is None, error.__context__
            call(quiet)
        assert GTorch.is_grad_enabled()
        assert GTorch.Stream.get_current(GTorch.Device('cpu')) == GTorch.Device('cpu').get_default_stream()

    check.__name__ = f'{name}: {call.__name__}'
    return check


for _name, _calls in WAYS.items():
    for _call in _calls:
        tap.case(adder(_name, _call))


@tap.case
def given_causes_are_kept():
    def hook(_grad):
        raise Boom('outer') from KeyError('inner')

    try:
        backward_to_a_leaf(hook)
    except Boom as error:
        assert isinstance(error.__cause__, KeyError)


@tap.case
def a_hook_that_gives_something_else_is_a_type_error():
    for call in WAYS['TensorHook']:
        raises(TypeError, lambda call=call: call(lambda grad: 3), 'register_hook', 'gave int', 'a tensor or None')
    for name, function in (('ForwardHook', lambda *_args: 'x'), ('ForwardPreHook', lambda *_args: ['x'])):
        for call in WAYS[name]:
            raises(TypeError, lambda call=call: call(function), 'register_forward_', 'gave ', 'or None')
    raises(TypeError, lambda: GTorch.gradcheck(lambda x: 3, leaf()), 'gave int')


@tap.case
def hooks_that_give_nothing_change_nothing():
    x = leaf()
    x.register_hook(lambda grad: None)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2] * 3


@tap.case
def hooks_see_and_replace_all_inputs():
    seen = []
    net = Add()
    net.register_forward_pre_hook(lambda module, inputs: tuple(2 * x for x in inputs))
    net.register_forward_hook(lambda module, inputs, y: seen.append((len(inputs), y.tolist())))
    assert net(GTorch.ones(2), GTorch.ones(2), GTorch.ones(2)).tolist() == [6, 6]
    assert net(GTorch.ones(2)).tolist() == [2, 2]
    assert seen == [(3, [6, 6]), (1, [2, 2])], seen
    loss = nn.MSELoss()
    loss.register_forward_pre_hook(lambda module, inputs: [inputs[0] * 3, inputs[1]])
    loss.register_forward_hook(lambda module, inputs, y: y + len(inputs))
    assert loss(GTorch.ones(2), GTorch.zeros(2)).item() == 11
    assert net(GTorch.ones(2), 3).tolist() == [8, 8] and seen[2:] == [(2, [8, 8])], seen


@tap.case
def runners_return_the_results_of_their_functions():
    assert GTorch.Stream('cpu').run(lambda stream, n: n + 1, 3) == 4
    assert GTorch.Device('cpu').run(lambda device: device) == GTorch.Device('cpu')
    raises(TypeError, lambda: GTorch.Stream('cpu').run(3), 'cannot be called')


@tap.case
def a_pass_in_another_thread_ends_with_the_text():
    x, loop, results = leaf(), GLib.MainLoop(), []
    x.register_hook(raising(Boom('boom')))
    loss = x.sum()

    def done(_source, result, *_data):
        results.append(result)
        loop.quit()

    loss.backward_async(None, False, False, None, done)
    loop.run()
    raises(GLib.Error, lambda: loss.backward_finish(results[0]), 'Boom: boom')


@tap.case
def errors_of_threads_that_begin_are_told():
    loader, seen = GTorch.DataLoader(dataset=Numbers(), batch_size=2, num_workers=1), []
    loader.set_worker_init(seen.append)
    assert [batch.tolist() for batch in loader] == [[0, 1], [2]] and seen == [0], seen
    loader.set_worker_init(lambda worker, text: raising(Boom(text))(), 'boom')
    raises(GLib.Error, lambda: list(loader), 'set_worker_init: ', 'Boom: boom')
    loader.set_worker_init(None)
    assert len(list(loader)) == 2
    raises(TypeError, lambda: loader.set_worker_init(3), 'set_worker_init(): 3 cannot be called')


@tap.case
def exceptions_of_functions_that_cannot_fail_are_printed():
    class Ending(Fetching):
        def end(self, worker):
            raise Boom('at the end')

    class Stateless(Indices):
        def get_state(self):
            raise Boom('no state')

    for call, text in (
        (lambda: loaded(Numbers(), fetcher=Ending(int, 'fetch')), 'at the end'),
        (lambda: GTorch.IndexSource.get_state(Stateless(int)), 'no state'),
    ):
        with Printed() as printed:
            call()
        assert text in printed.text.getvalue(), printed.text.getvalue()


NAMESPACE = '{http://www.gtk.org/introspection/core/1.0}'


def find_gir():
    for folder in (*os.environ.get('GI_TYPELIB_PATH', '').split(':'), *GLib.get_system_data_dirs()):
        for path in (pathlib.Path(folder) / 'GTorch-1.gir', pathlib.Path(folder) / 'gir-1.0' / 'GTorch-1.gir'):
            if folder and path.exists():
                return path
    return None


@tap.case
def every_kind_of_callback_is_known():
    path = find_gir()
    if path is None:
        raise tap.Skip('there is no GIR')
    root = ET.parse(path).getroot()
    found = set()
    for function in root.iter():
        kind = function.tag.removeprefix(NAMESPACE)
        if kind not in ('function', 'method', 'constructor') or function.get('introspectable') == '0':
            continue
        for parameter in function.iterfind(f'{NAMESPACE}parameters/{NAMESPACE}parameter'):
            if parameter.get('scope') in ('call', 'notified', 'forever'):
                found.add(parameter.find(f'{NAMESPACE}type').get('name').split('.')[-1])
    for cls in root.iter(f'{NAMESPACE}class'):
        for vfunc in cls.iterfind(f'{NAMESPACE}virtual-method'):
            found.add(f'{cls.get("name")}.{vfunc.get("name")}')
            known = f'{cls.get("name")}.{vfunc.get("name")}' in PRINTED
            assert (vfunc.get('throws') == '1') != known, vfunc.get('name')
    for callback in root.iterfind(f'{NAMESPACE}namespace/{NAMESPACE}callback'):
        if callback.get('introspectable') == '0':
            continue
        assert callback.get('throws') == '1', f'{callback.get("name")} cannot fail'
        found.add(callback.get('name'))
    known = set(WAYS) | PRINTED | TOLD
    assert found <= known, f'no test calls {sorted(found - known)}'
    assert known <= found, f'there is no {sorted(known - found)}'


if __name__ == '__main__':
    try:
        tap.main()
    finally:
        if FILE.query_exists(None):
            FILE.delete(None)
