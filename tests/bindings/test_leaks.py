#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Objects that Python passes to C, and objects that refer to themselves through C, are freed.

The functions of the first part are read from the GIR: each that takes a list, a table or a
function must be called here, or be listed among those that cannot leak. GTORCH_TEST_ROUNDS sets
the number of rounds."""

import asyncio
import ctypes
import gc
import os
import pathlib
import sys
import weakref
import xml.etree.ElementTree as ET

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.overrides._gtorch_mixin import mixin  # noqa: E402
from gi.repository import Gio, GLib, GTorch  # noqa: E402

import tap  # noqa: E402
from tap import raises  # noqa: E402
from leak_calls import (  # noqa: E402
    BEGUN, BYTES, FILE, LEAVE_LITTLE, LITTLE, SAMPLE, Rows, stream, tensor, trainer, wait,
)  # fmt: skip

ROUNDS = int(os.environ.get('GTORCH_TEST_ROUNDS', 100))
nn = GTorch.nn


def allocated():
    """Returns the bytes of tensors on the CPU."""
    return GTorch.Device.cpu().get_allocator().get_allocated()


def assert_lets_go(call):
    """Calls it, and compares the bytes of tensors before and after."""
    for _ in range(3):
        call()
    gc.collect()
    before = allocated()
    for _ in range(ROUNDS):
        call()
    gc.collect()
    left = (allocated() - before) / BYTES
    assert left < 2, f'{left:.0f} tensors are left of {ROUNDS} calls'


# --- containers and functions ---

PROGRESS = lambda *_args: None  # noqa: E731


def table():
    return {'a': tensor(), 'b': tensor()}


def module_of_one():
    net = nn.Linear(64, 64)
    return net


class Twice(GTorch.Function):
    def forward(self, context, *inputs):
        context.save_for_backward(*inputs)
        return [x * 2 for x in inputs]

    def backward(self, context, *grads):
        return [grad * 2 for grad in grads]


def leaf():
    return tensor().requires_grad_()


def saved():
    out = stream()
    GTorch.safetensors_save(table(), {'k': 'v'}, out, None, None)
    out.close(None)
    return out.steal_as_bytes()


CONTENT = saved()


def load(name, *args):
    tensors, _metadata = getattr(GTorch, f'safetensors_{name}')(*args)
    assert set(tensors) == {'a', 'b'}


def in_stream():
    return Gio.MemoryInputStream.new_from_bytes(CONTENT)


def write_file():
    GTorch.safetensors_save_file(table(), None, FILE, None, None)


def fit(make):
    net = module_of_one()
    optimizer = make(list(net.parameters()))
    net(GTorch.ones([2, 64])).sum().backward()
    optimizer.step()
    return optimizer


def scheduler_state():
    schedule = GTorch.optim.lr_scheduler.StepLR(GTorch.optim.SGD(module_of_one().parameters()), 2)
    schedule.step()
    schedule.load_state_dict(schedule.state_dict())


def state_of(make):
    state = fit(make).state_dict()
    fit(make).load_state_dict(state)


def scaler_state():
    scaler = GTorch.GradScaler()
    scaler.load_state_dict(scaler.state_dict())


def gradients():
    x = leaf()
    (grad,) = GTorch.autograd_grad([x.sum()], [x], [], False, False, False)
    return grad


def backward_of_lists():
    x = leaf()
    GTorch.autograd_backward([x.sum(), x.mean()], [], True, False)


def async_backward():
    x = leaf()
    loss = x.sum()
    wait(lambda done: loss.backward_async(None, False, False, None, done), loss.backward_finish)


def net_forward_async():
    net = module_of_one()
    x = GTorch.ones([64, 64])
    wait(lambda done: net.forward_async(x, None, done), net.forward_finish)


def hooked(register):
    def call():
        x = leaf()
        held = tensor()
        register(x, lambda *_args: [held.sum()] and None)
        x.sum().backward()

    return call


def loader_with_functions():
    """Its functions refer to tensors, the second time to others."""
    loader, fetcher = GTorch.DataLoader(dataset=Rows(), batch_size=2, num_workers=1), GTorch.Fetcher.new(Rows(), True)
    for _ in range(2):
        held = tensor()
        loader.set_collate(lambda samples, held: held + samples[0].get_tensor() and samples[0], held)
        loader.set_worker_init(lambda worker, held=held: held + 1 and None)
        fetcher.set_collate(lambda samples, held=held: (held, samples[0])[1])
    assert len(list(GTorch.DataLoader(dataset=Rows(), batch_size=2, fetcher=fetcher))) == 2
    loader.iterate()


def loader_that_ends_early():
    loader = GTorch.DataLoader(dataset=Rows(), batch_size=1, num_workers=1)
    assert loader.iterate().next(None).get_tensor().shape == (1, BYTES // 4)


def trainer_with_functions():
    made = trainer(validation_loader=[(GTorch.ones(1, 64), GTorch.ones(1, 1))])
    for name in ('set_training_step', 'set_validation_step'):
        for _ in range(2):
            held = tensor()
            getattr(made, name)(lambda trainer, batch, held=held: trainer.get_module()(batch[0]).sum() + held[0])
    made.run()


def mapped():
    held = tensor()
    pair = SAMPLE.new_tuple([SAMPLE.new_tensor(tensor()), SAMPLE.new_int(3)])
    pair.map_tensors(lambda x, more: x + more, held)
    SAMPLE.collate_with([pair, pair], lambda dtype, shape: (GTorch.empty(list(shape), dtype=dtype), held)[0])
    raising(lambda: pair.map_tensors(fails))()


def scheduled():
    """Its functions refer to tensors, the second time to others."""
    profiler = GTorch.Profiler.new()
    for _ in range(2):
        held = tensor()
        profiler.set_schedule_func(lambda step, held: len(held) and GTorch.ProfilerAction.NONE, held)
        profiler.start()
        profiler.step()
        profiler.stop()
    profiler.set_schedule_func(fails)
    raises(ValueError, profiler.start)


def asked_for_stacks():
    for _ in range(2):
        held = tensor()
        GTorch.Profiler.set_stack_func(lambda *_data, held=held: f'line {len(held)}')
    profiler = GTorch.Profiler.new()
    profiler.props.with_stack = True
    profiler.start()
    GTorch.ones(2).exp()
    profiler.stop()
    rows = profiler.key_averages(False, 1)
    assert f'line {BYTES // 4}' in [rows.get_item(i).get_stack() for i in range(rows.get_n_items())]
    GTorch.Profiler.set_stack_func(None)


CALLS = {
    **BEGUN,
    'data_loader_set_collate_and_set_worker_init': loader_with_functions,
    'data_loader_that_ends_early': loader_that_ends_early,
    'trainer_set_training_step_and_set_validation_step': trainer_with_functions,
    'sample_map_tensors_and_collate_with': mapped,
    'profiler_set_schedule_func': scheduled,
    'profiler_set_stack_func': asked_for_stacks,
    'safetensors_save': saved,
    'safetensors_save_file': write_file,
    'safetensors_save_async': lambda: wait(
        lambda done: GTorch.safetensors_save_async(table(), {'k': 'v'}, stream(), 0, None, PROGRESS, (), done, None),
        GTorch.safetensors_save_finish,
    ),
    'safetensors_save_file_async': lambda: wait(
        lambda done: GTorch.safetensors_save_file_async(table(), {'k': 'v'}, FILE, 0, None, PROGRESS, (), done, None),
        GTorch.safetensors_save_file_finish,
    ),
    'safetensors_load': lambda: load('load', in_stream(), None, None, PROGRESS),
    'safetensors_load_bytes': lambda: load('load_bytes', CONTENT),
    'safetensors_load_file': lambda: (write_file(), load('load_file', FILE, False, None, None, PROGRESS)),
    'module_load_state_dict': lambda: module_of_one().load_state_dict(module_of_one().state_dict()),
    'optimizer_load_state_dict': lambda: (
        state_of(lambda params: GTorch.optim.Adam(params)),
        state_of(lambda params: GTorch.optim.SGD(params, momentum=0.9)),
    ),
    'scaler_load_state_dict': scaler_state,
    'lr_scheduler_load_state_dict': scheduler_state,
    'autograd_grad': gradients,
    'autograd_backward': backward_of_lists,
    'tensor_backward_async': async_backward,
    'module_forward_async': net_forward_async,
    'function_apply': lambda: Twice()(leaf(), leaf())[0].sum().backward(),
    'cat': lambda: GTorch.cat([tensor(), tensor()]),
    'stack': lambda: GTorch.stack([tensor(), tensor()]),
    'index': lambda: tensor()[GTorch.tensor([1, 2])],
    'split': lambda: tensor().split(16),
    'unbind': lambda: list(tensor().reshape([2, -1])),
    'gradcheck': lambda: GTorch.gradcheck(
        lambda x: x * 2, GTorch.ones([2], dtype=GTorch.float64).requires_grad_()
    ),
    'tensor_register_hook': hooked(lambda x, hook: x.register_hook(hook)),
    'tensor_register_post_accumulate_grad_hook': hooked(
        lambda x, hook: x.register_post_accumulate_grad_hook(hook)
    ),
    'register_tensor_hook': hooked(GTorch.register_tensor_hook),
    'register_tensor_post_accumulate_grad_hook': hooked(GTorch.register_tensor_post_accumulate_grad_hook),
    'new_from_bytes': lambda: GTorch.Tensor.new_from_bytes(GLib.Bytes.new(bytes(64)), GTorch.uint8, [64]),
    'sequential': lambda: nn.Sequential(module_of_one(), module_of_one()),
    'optimizer': lambda: GTorch.optim.SGD(module_of_one().parameters()),
    'param_groups': lambda: list(GTorch.optim.SGD(module_of_one().parameters()).get_param_groups()),
    'module_lists': lambda: (
        module_of_one().get_parameter_names(True),
        list(module_of_one().get_modules()),
        module_of_one().state_lists(),
    ),
    'module_apply': lambda: module_of_one().apply(lambda _module, *_data: [tensor()] and None),
}


def adder(name, call):
    def check():
        assert_lets_go(call)

    check.__name__ = f'{name}_lets_go'
    return check


for _name, _call in CALLS.items():
    tap.case(adder(_name, _call))


# --- references that C holds ---


class Big(GTorch.Module):
    """A module with a tensor whose bytes are counted."""

    def __init__(self):
        super().__init__()
        self.held = nn.Parameter(tensor())
        self.first = nn.Linear(2, 2)

    def forward(self, x):
        return x + 0

    def note(self, *_args):
        self.seen = True


def cycle(make):
    """Tests make (), which creates an object that refers to itself through C."""

    def check():
        if mixin is None and make in BY_C:
            raise tap.Skip('there is no C accelerator')
        made = make()
        gone = weakref.ref(made)
        del made
        gc.collect()
        assert gone() is None, 'the collector does not find it'
        assert_lets_go(make)

    check.__name__ = make.__name__ + '_is_collected'
    return check


def module_with_its_method_as_hook():
    net = Big()
    net.register_forward_hook(net.note)
    net.register_forward_pre_hook(net.note)
    net(GTorch.ones([2]))
    assert net.seen
    return net


def module_in_the_closure_of_its_hook():
    net = Big()
    net.register_forward_hook(lambda *_args: net.note(*_args))
    net(GTorch.ones([2]))
    assert net.seen
    return net


def module_whose_method_is_a_hook_of_its_child():
    net = Big()
    net.first.register_forward_hook(net.note)
    net.first(GTorch.ones([1, 2]))
    assert net.seen
    return net


def module_whose_method_is_a_hook_of_its_parameter():
    net = Big()
    net.held.register_hook(net.note)
    net.held.register_post_accumulate_grad_hook(net.note)
    net.held.sum().backward()
    return net


def graphed_function_in_its_own_function():
    class Owner:
        def call(self, x):
            return x * 2

    owner = Owner()
    owner.graphed = GTorch.GraphedModule(owner.call, [tensor()])
    return owner


def profiler_with_its_own_method():
    class Owner(GTorch.nn.Module):
        def __init__(self):
            super().__init__()
            self.profiler = GTorch.Profiler.new()
            self.profiler.set_schedule_func(self.choose)
            self.held = nn.Parameter(tensor())

        def choose(self, _step):
            return GTorch.ProfilerAction.NONE

    owner = Owner()
    owner.profiler.start()
    owner.profiler.stop()
    return owner


def module_applied_to_itself():
    net = Big()
    net.applied = []
    net.apply(lambda module, *_data: net.applied.append(module))
    return net


def function_that_saves_its_result():
    class Own(GTorch.Function):
        def forward(self, context, x):
            y = x * 2
            context.save_for_backward(x, y)
            return y

        def backward(self, context, grad):
            return grad * 2

    own = Own()
    own.loss = own(leaf()).sum()
    own.loss.backward()
    del own.loss
    return own


def signal_with_a_method_of_the_object():
    net = Big()
    net.connect('notify', net.note)
    return net


def step_with_a_closure():
    net = Big()
    net.optimizer = GTorch.optim.SGD(net.parameters())
    return net


# Cycles that the collector finds only with the C accelerator.
BY_C = (module_whose_method_is_a_hook_of_its_child, module_whose_method_is_a_hook_of_its_parameter)

for _make in (
    module_with_its_method_as_hook,
    module_in_the_closure_of_its_hook,
    module_whose_method_is_a_hook_of_its_child,
    module_whose_method_is_a_hook_of_its_parameter,
    graphed_function_in_its_own_function,
    profiler_with_its_own_method,
    module_applied_to_itself,
    function_that_saves_its_result,
    signal_with_a_method_of_the_object,
    step_with_a_closure,
):
    tap.case(cycle(_make))


@tap.case
def hooks_stay_for_as_long_as_the_module():
    outer, seen = nn.Sequential(nn.Linear(2, 2)), []
    list(outer.children())[0].register_forward_hook(lambda _m, _x, y: seen.append(y))
    gc.collect()
    outer(GTorch.ones([1, 2]))
    gc.collect()
    outer(GTorch.ones([1, 2]))
    assert len(seen) == 2


@tap.case
def hooks_are_removed_and_replace_inputs_and_outputs():
    net = nn.Linear(2, 2)
    number = net.register_forward_hook(lambda _m, _x, _y: GTorch.zeros([7]))
    assert net(GTorch.ones([1, 2])).shape == (7,)
    assert net.remove_hook(number)
    assert not net.remove_hook(number)
    assert net(GTorch.ones([1, 2])).shape == (1, 2)


@tap.case
def a_hook_that_is_a_method_keeps_its_object():
    class Counter:
        n = 0

        def note(self, *_args):
            Counter.n += 1

    net, other = nn.Linear(2, 2), Big()
    net.register_forward_hook(Counter().note)
    net.register_forward_hook(other.note)
    gone = weakref.ref(other)
    del other
    gc.collect()
    net(GTorch.ones([1, 2]))
    assert Counter.n == 1 and gone().seen
    del net
    gc.collect()
    assert gone() is None


@tap.case
def averages_let_their_functions_go():
    def call(key):
        held, net = tensor(), nn.Linear(1, 1)
        model = GTorch.optim.swa_utils.AveragedModel(net, **{key: lambda averaged, *_rest: (held, model) and averaged})
        for _ in range(3):
            model.update_parameters(net)

    assert_lets_go(lambda: call('avg_fn'))
    assert_lets_go(lambda: call('multi_avg_fn'))


@tap.case
def closures_of_steps_and_losses_are_let_go():
    def call():
        held, weight = tensor(), nn.Parameter(GTorch.ones([2]))
        optimizer = GTorch.optim.LBFGS([weight], max_iter=3)

        def closure():
            optimizer.zero_grad()
            loss = (weight ** 2).sum() + held.sum() * 0
            loss.backward()
            return loss

        optimizer.step(closure)
        batches = ((GTorch.ones([2, 1]), held) for _ in range(2))
        GTorch.optim.swa_utils.update_bn(batches, nn.BatchNorm1d(1))

    assert_lets_go(call)


@tap.case
def tables_are_checked():
    out, net = stream(), nn.Linear(2, 2)
    for call in (
        lambda: GTorch.safetensors_save({'a': None}, None, out, None, None),
        lambda: GTorch.safetensors_save({3: tensor()}, None, out, None, None),
        lambda: GTorch.safetensors_save({}, {'a': 3}, out, None, None),
        lambda: net.load_state_dict({'weight': 3, 'bias': None}),
        lambda: GTorch.optim.SGD(net.parameters()).load_state_dict({'a': []}),
        lambda: net.register_forward_hook(3),
    ):
        try:
            call()
        except TypeError as error:
            assert any(word in str(error) for word in ('tensors', 'metadata', 'state', 'hook')), error
        else:
            raise AssertionError('no TypeError')


# --- the GIR ---

NAMESPACE = '{http://www.gtk.org/introspection/core/1.0}'
# Functions that take tables, or functions that are kept, and that are called above, by the name of
# the C function.
GLOBAL_HOOKS = {
    'module_register_global_forward_pre_hook': 'register_module_forward_pre_hook',
    'module_register_global_forward_hook': 'register_module_forward_hook',
    'module_register_global_full_backward_pre_hook': 'register_module_full_backward_pre_hook',
    'module_register_global_full_backward_hook': 'register_module_full_backward_hook',
}
SEEN = {
    'gtorch_grad_scaler_load_state_dict', 'gtorch_lr_scheduler_load_state_dict', 'gtorch_module_load_state_dict',
    'gtorch_optimizer_load_state_dict',
    'gtorch_safetensors_save', 'gtorch_safetensors_save_async', 'gtorch_safetensors_save_file',
    'gtorch_safetensors_save_file_async', 'gtorch_safetensors_save_lists_async',
    'gtorch_safetensors_save_file_lists_async', 'gtorch_safetensors_load_async',
    'gtorch_safetensors_load_file_async', 'gtorch_module_register_forward_hook',
    'gtorch_module_register_forward_pre_hook', 'gtorch_tensor_register_hook',
    'gtorch_tensor_register_post_accumulate_grad_hook', 'gtorch_graphed_module_new_for_func',
    'gtorch_register_tensor_hook', 'gtorch_register_tensor_post_accumulate_grad_hook',
    'gtorch_averaged_model_set_avg_fn', 'gtorch_averaged_model_set_multi_avg_fn', 'gtorch_set_place_func',
    'gtorch_cyclic_lr_set_scale_fn', 'gtorch_lambda_lr_new', 'gtorch_lambda_lr_set_lr_lambda',
    'gtorch_multiplicative_lr_new', 'gtorch_multiplicative_lr_set_lr_lambda',
    'gtorch_checkpoint', 'gtorch_checkpoint_begin', 'gtorch_checkpoint_function_new',
    'gtorch_saved_tensors_hooks', 'gtorch_module_register_forward_hook_full',
    'gtorch_module_register_forward_pre_hook_full', 'gtorch_module_register_full_backward_hook',
    'gtorch_module_register_full_backward_pre_hook', 'gtorch_data_loader_set_collate',
    'gtorch_data_loader_set_worker_init', 'gtorch_fetcher_set_collate', 'gtorch_trainer_set_training_step',
    'gtorch_trainer_set_validation_step', 'gtorch_distributed_module_register_comm_hook',
    'gtorch_grad_node_register_hook', 'gtorch_grad_node_register_prehook',
    'gtorch_profiler_set_schedule_func', 'gtorch_profiler_set_stack_func', 'gtorch_trainer_set_save_function',
    'gtorch_trainer_set_load_function', *(f'gtorch_{name}' for name in GLOBAL_HOOKS),
}  # fmt: skip


def find_gir():
    for folder in (*os.environ.get('GI_TYPELIB_PATH', '').split(':'), *GLib.get_system_data_dirs()):
        for path in (pathlib.Path(folder) / 'GTorch-1.gir', pathlib.Path(folder) / 'gir-1.0' / 'GTorch-1.gir'):
            if folder and path.exists():
                return path
    return None


def parameters():
    """Yields the C name of each function with each of its parameters and the names of that one's types."""
    path = find_gir()
    if path is None:
        raise tap.Skip('there is no GIR')
    for function in ET.parse(path).getroot().iter():
        kind = function.tag.removeprefix(NAMESPACE)
        if kind not in ('function', 'method', 'constructor') or function.get('introspectable') == '0':
            continue
        name = function.get('{http://www.gtk.org/introspection/c/1.0}identifier')
        for parameter in function.iterfind(f'{NAMESPACE}parameters/{NAMESPACE}parameter'):
            yield name, parameter, [t.get('name') for t in parameter.iterfind(f'{NAMESPACE}type')]


@tap.case
def every_function_that_keeps_something_is_known():
    found = set()
    for name, parameter, types in parameters():
        is_table = 'GLib.HashTable' in types and parameter.get('direction') != 'out'
        if is_table or parameter.get('scope') in ('notified', 'forever'):
            found.add(name)
    assert found <= SEEN, f'no test calls {sorted(found - SEEN)}'
    assert SEEN <= found, f'there is no {sorted(SEEN - found)}'


class Raising(GTorch.Function):
    def forward(self, context, x):
        return x * 1

    def backward(self, context, grad):
        raise KeyError('no gradient')


@tap.case
def exceptions_in_backward_propagate_and_leak_nothing():
    def call():
        x = tensor().requires_grad_()
        y = Raising()(x)
        for way in (
            lambda: y.sum().backward(),
            lambda: GTorch.autograd.grad(y.sum(), x),
            lambda: GTorch.autograd.backward([y.sum()]),
        ):
            try:
                way()
            except KeyError as error:
                assert error.args == ('no gradient',)
                continue
            raise AssertionError('no exception')

    assert_lets_go(call)


@tap.case
def names_are_not_cut_at_nulls():
    def refused(tensors, metadata):
        try:
            GTorch.safetensors_save_file(tensors, metadata, FILE, None, None)
        except ValueError as error:
            assert 'null character' in str(error)
            return True
        return False

    assert refused({'a\0b': tensor(), 'a\0c': tensor()}, None)
    assert refused({'a': tensor()}, {'k\0x': '1'})
    assert refused({'a': tensor()}, {'k': '1\0'})
    assert not refused({'a': tensor()}, {'k': '1'})


class Mallinfo(ctypes.Structure):
    """mallinfo2 of glibc's."""

    NAMES = 'arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost'
    _fields_ = [(name, ctypes.c_size_t) for name in NAMES.split()]


def fails(*_args):
    raise ValueError('a function')


def raising(call, error=ValueError):
    return lambda: raises(error, call)


def awaits(begin):
    """Awaits what begin () returns."""

    async def wait_for_it():
        await begin()

    return lambda: LOOP.run_until_complete(wait_for_it())


def waits(owner, name, *args):
    """Calls it with a callback, and lets a main context call that."""

    def call():
        done = []
        getattr(owner(), f'{name}_async')(*args, None, lambda *_args: done.append(True))
        while not done:  # a loop's run() leaves some itself
            GLib.MainContext.default().iteration(True)

    return call


class FailsForward(GTorch.Function):
    def forward(self, context, x):
        raise ValueError('forward')


class FailsBackward(GTorch.Function):
    def forward(self, context, x):
        return x * 1

    def backward(self, context, grad):
        raise ValueError('backward')


class FailsMany(GTorch.Module):
    def forward(self, *inputs):
        raise ValueError('forward')


LOOP = asyncio.new_event_loop()
CPU, QUEUE, TWO = GTorch.Device('cpu'), GTorch.Stream('cpu'), GTorch.ones(2)
POOL = GTorch.MemoryPool.new(CPU)
CHECKED = GTorch.ones(1, dtype=GTorch.float64).requires_grad_()
RELU, FAILING, BACKWARD, MANY = nn.ReLU(), nn.ReLU(), nn.Identity(), FailsMany()


def want():
    return GTorch.ones(2).requires_grad_()


def hooked_node(register, hook):
    y = want() * want()
    getattr(y.grad_fn, register)(hook)
    y.sum().backward()


def started():
    timer = GTorch.Timer()
    timer.start()
    return timer


def capture():
    y = GTorch.ones(2)
    GTorch.CUDAGraph().capture(None, None, lambda _stream: y.add_(1))


def packed():
    with GTorch.saved_tensors_hooks(lambda x: [x], lambda packed: packed[0]):
        y = want().exp().sum()
    y.backward()


def recorded():
    event = GTorch.Event()
    event.record(QUEUE)
    return event


def unscaled():
    """A step that fails: nothing was scaled."""
    return GTorch.GradScaler()


def loaded():
    write_file()
    load('load_file', FILE, False, None, None, PROGRESS)


AUTOCAST = GTorch.DeviceType.CPU, GTorch.bfloat16, True, True
ONE = GTorch.ones(1)
SMALL = GTorch.optim.SGD([nn.Parameter(GTorch.ones(1))], lr=0.1)
# What calls a function before it returns, or when it is done, by the name in C; each leaves nothing.
LEAVE_NOTHING = {
    'device_run': lambda: CPU.run(PROGRESS),
    'device_run_as_default': lambda: CPU.run_as_default(PROGRESS),
    'memory_pool_run': lambda: POOL.run(PROGRESS),
    'stream_run': lambda: QUEUE.run(PROGRESS),
    'stream_run, which raises': raising(lambda: QUEUE.run(fails)),
    'autocast_run': lambda: GTorch.autocast_run(*AUTOCAST, PROGRESS),
    'cuda_graph_capture': capture,
    'record_function': lambda: GTorch.record_function('a range', PROGRESS),
    'record_function, which raises': raising(lambda: GTorch.record_function('a range', fails)),
    'gradcheck': lambda: GTorch.gradcheck(lambda x: x * 2, CHECKED),
    'gradcheck, which raises': raising(lambda: GTorch.gradcheck(fails, CHECKED)),
    'gradgradcheck': lambda: GTorch.autograd.gradgradcheck(lambda x: x * x, CHECKED),
    **{
        f'autograd_{name}': lambda name=name: getattr(GTorch.autograd.functional, name)(lambda x: x * x, ONE)
        for name in ('hessian', 'hvp', 'jacobian', 'jvp', 'vhp', 'vjp')
    },
    'autograd_jacobian_forward': lambda: GTorch.autograd.functional.jacobian(
        lambda x: x * x, ONE, strategy='forward-mode'
    ),
    'autograd_hessian_forward': lambda: GTorch.autograd.functional.hessian(
        lambda x: x * x, ONE, outer_jacobian_strategy='forward-mode'
    ),
    'triplet_margin_with_distance_loss': lambda: nn.functional.triplet_margin_with_distance_loss(
        TWO, TWO, TWO, distance_function=lambda x, y: (x - y).abs()
    ),
    'checkpoint': lambda: GTorch.checkpoint(lambda x: x.exp(), want(), use_reentrant=False).sum().backward(),
    'checkpoint_begin': lambda: GTorch.checkpoint(lambda x: x.exp(), want(), use_reentrant=False),
    'checkpoint_begin, which raises': raising(lambda: GTorch.checkpoint(fails, want(), use_reentrant=False)),
    'checkpoint_function_new': lambda: GTorch.checkpoint(lambda x: x.exp(), want(), use_reentrant=True),
    'saved_tensors_hooks': packed,
    'safetensors_load': lambda: load('load', in_stream(), None, None, PROGRESS),
    'safetensors_load_file': loaded,
    'safetensors_save': lambda: GTorch.safetensors_save({'a': TWO}, {'k': 'v'}, stream(), None, PROGRESS),
    'safetensors_save_file': lambda: GTorch.safetensors_save_file({'a': TWO}, None, FILE, None, PROGRESS),
    'graphed_module_new_for_func': lambda: GTorch.GraphedModule(lambda x: x * 2, [TWO]),
    'module_register_forward_hook': lambda: RELU.register_forward_hook(fails).remove(),
    'module_register_forward_pre_hook': lambda: RELU.register_forward_pre_hook(fails).remove(),
    'module_register_forward_hook_full': lambda: RELU.register_forward_hook(fails, prepend=True).remove(),
    'module_register_forward_pre_hook_full': lambda: RELU.register_forward_pre_hook(fails, prepend=True).remove(),
    'module_register_full_backward_hook': lambda: RELU.register_full_backward_hook(fails).remove(),
    'module_register_full_backward_pre_hook': lambda: RELU.register_full_backward_pre_hook(fails).remove(),
    'module_register_full_backward_hook, which raises': raising(lambda: BACKWARD(want()).sum().backward()),
    'module_register_forward_hook, which raises': raising(lambda: FAILING(TWO)),
    'module_apply': lambda: RELU.apply(lambda _module: None),
    'tensor_register_hook': lambda: want().register_hook(PROGRESS),
    'tensor_register_post_accumulate_grad_hook': lambda: want().register_post_accumulate_grad_hook(PROGRESS),
    'grad_node_register_hook': lambda: hooked_node('register_hook', lambda inner, _outer: inner),
    'grad_node_register_prehook': lambda: hooked_node('register_prehook', lambda grads: grads),
    'grad_node_register_hook, which raises': raising(lambda: hooked_node('register_hook', fails)),
    'function_forward, which raises': raising(lambda: FailsForward()(TWO)),
    'function_backward, which raises': raising(lambda: FailsBackward()(want()).sum().backward()),
    'module_forward_many, which raises': raising(lambda: GTorch.Module.__base__.forward_many(MANY, [TWO, TWO])),
    'device_synchronize_async': waits(lambda: CPU, 'synchronize'),
    'event_synchronize_async': waits(recorded, 'synchronize'),
    'stream_synchronize_async': waits(lambda: QUEUE, 'synchronize'),
    'timer_stop_async': waits(started, 'stop'),
    'tensor_get_bytes_async': waits(TWO.clone, 'get_bytes'),
    'tensor_item_double_async': waits(TWO.sum, 'item_double'),
    'tensor_item_int_async': waits(TWO.sum, 'item_int'),
    'tensor_to_doubles_async': waits(TWO.clone, 'to_doubles'),
    'tensor_to_ints_async': waits(TWO.clone, 'to_ints'),
    'tensor_to_device_async': waits(lambda: TWO, 'to_device', CPU),
    'tensor_copy_inplace_async': waits(lambda: GTorch.ones(2), 'copy_inplace', TWO),
    'tensor_backward_async': waits(lambda: want().sum(), 'backward', None, False, False),
    'module_forward_async': waits(lambda: RELU, 'forward', TWO),
    'grad_scaler_step_async': waits(unscaled, 'step', SMALL),
    'await item_async': awaits(lambda: TWO.sum().item_async()),
    'await to_async': awaits(lambda: TWO.to_async('cpu')),
    'await wait': awaits(lambda: QUEUE.wait()),
}


# PyGObject calls these: they work on a whole file, open a device or a connection, set something for the rest of the
# program, or do the work of many calls.
# For each function that they take, libgirepository 1.74 leaves the array of its arguments' types that
# g_callable_info_create_closure() makes.
LEAVE_SOME = {
    *LEAVE_LITTLE,
    'process_group_new_part_async',  # as the next one
    'process_group_create_async',  # with Open MPI 7 KiB stay of each group, whether new() or this makes it
    'distributed_module_register_comm_hook',  # has a group
    'device_open_monitor_async',
    'safetensors_load_index_async', 'safetensors_save_index_async',
    *(f'safetensors_{name}_async' for name in ('load', 'load_file', 'save', 'save_file')),
    *(f'safetensors_{name}_lists_async' for name in ('save', 'save_file')),
    'cyclic_lr_set_scale_fn', 'lambda_lr_new', 'lambda_lr_set_lr_lambda',
    'multiplicative_lr_new', 'multiplicative_lr_set_lr_lambda',
    'exporter_start_async', 'profiler_set_schedule_func', 'profiler_set_stack_func',
    'averaged_model_set_avg_fn', 'averaged_model_set_multi_avg_fn', 'optimizer_step_closure', 'update_bn',
    'set_place_func',
}
LEAVE_LITTLE.update({
    name: lambda own=own: getattr(nn.modules.module, own)(fails).remove() for name, own in GLOBAL_HOOKS.items()
})
LEAVE_SOME.update(GLOBAL_HOOKS)
FAILING.register_forward_hook(fails)
BACKWARD.register_full_backward_hook(fails)


def leaves_nothing(name, call, most=16):
    """Compares the bytes in use in C; other threads may use some for a time."""

    def check():
        mallinfo = getattr(ctypes.CDLL(None), 'mallinfo2', None)
        if mallinfo is None or mixin is None:
            raise tap.Skip('only the accelerator lets them go, and only glibc tells')
        mallinfo.restype = Mallinfo

        def used():
            gc.collect()
            return mallinfo().uordblks

        for _ in range(100):
            call()
        for _ in range(8):
            before = used()
            for _ in range(ROUNDS):
                call()
            each = (used() - before) / ROUNDS
            if each < most:
                return
        raise AssertionError(f'{each} bytes stay each time')

    check.__name__ = f'{name.replace(", ", "_").replace(" ", "_")}_leaves_nothing_in_c'
    return check


for _name, _call in LEAVE_NOTHING.items():
    tap.case(leaves_nothing(_name, _call))
for _name, _call in LEAVE_LITTLE.items():
    tap.add(f'{_name}_leaves_little_in_c', leaves_nothing(_name, _call, LITTLE))


@tap.case
def every_function_that_takes_a_function_is_known():
    found = set()
    for name, parameter, types in parameters():
        if parameter.get('scope') and types != ['GLib.DestroyNotify']:
            name = name.removeprefix('gtorch_')
            found.add(name.removeprefix('register_') if name.startswith('register_tensor') else name)
    known = {name for name in LEAVE_NOTHING if ' ' not in name} | LEAVE_SOME
    same = {name: name.replace('_lists', '') for name in found}  # Python calls these for those
    same.update({name: name.replace('tensor_', 'tensor_register_') for name in found if name.startswith('tensor_')
                 and name.replace('tensor_', 'tensor_register_') in known})
    missing = {name for name in found if name not in known and same[name] not in known}
    assert not missing, f'no test calls {sorted(missing)}'


if __name__ == '__main__':
    try:
        tap.main()
    finally:
        if FILE.query_exists(None):
            FILE.delete(None)
