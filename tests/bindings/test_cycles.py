#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Python's garbage collector finds cycles that lead through C, and frees nothing that C still
refers to.

GTORCH_TEST_ROUNDS sets the number of rounds of the repeated cases."""

import gc
import os
import pathlib
import random
import sys
import threading
import weakref

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.overrides._gtorch_mixin import mixin  # noqa: E402
from gi.repository import Gio, GTorch  # noqa: E402

import tap  # noqa: E402

ROUNDS = int(os.environ.get('GTORCH_TEST_ROUNDS', 20))
nn = GTorch.nn


class Witness:
    """An object that dies with the closure that refers to it."""


class Net(GTorch.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.second = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
        self.scale = nn.Parameter(GTorch.ones(3))
        self.seen = 0

    def forward(self, x):
        return self.second(self.first(x)) * self.scale

    def note(self):
        self.seen += 1


def leaf():
    return GTorch.ones([4]).requires_grad_()


class Keeping(GTorch.Function):
    """A function whose forward() stores its result in an attribute of the context."""

    def forward(self, context, x):
        context.output = x * 2
        context.own = Witness.current
        return context.output

    def backward(self, context, grad):
        assert context.output.shape == grad.shape
        Keeping.n_backward += 1
        return grad * 2


Keeping.n_backward = 0

# --- cycles that are found ---

# Each creates a cycle that contains the witness, and returns nothing.
KINDS = []


def kind(function):
    KINDS.append(function)
    return function


@kind
def hook_of_a_leaf(w):
    x = leaf()
    x.register_hook(lambda grad: (x, w) and None)


@kind
def hook_of_a_leaf_after_accumulating(w):
    x = leaf()
    x.register_post_accumulate_grad_hook(lambda _t: (x, w))
    x.sum().backward()


@kind
def hook_of_a_result(w):
    y = leaf() * 2
    y.register_hook(lambda grad: (y, w) and None)


@kind
def hook_that_refers_to_a_result_of_its_tensor(w):
    x = leaf()
    loss = ((x * 2).exp() + x).sum()
    x.register_hook(lambda grad: (loss, w) and None)
    loss.backward()


@kind
def hooks_of_two_tensors_that_lead_to_each_other(w):
    x, y = leaf(), leaf()
    x.register_hook(lambda grad: (y, w) and None)
    y.register_hook(lambda grad: (x, w) and None)


@kind
def hook_of_a_view(w):
    x = leaf() * 1
    view = x[1:]
    view.register_hook(lambda grad: (x, view, w) and None)


@kind
def hook_of_a_module(w):
    net = Net()
    net.register_forward_hook(lambda *_args: (net, w) and None)
    net.register_forward_pre_hook(lambda *_args: (net, w) and None)
    net(GTorch.ones(1, 2))


@kind
def hook_of_a_child(w):
    net = Net()
    net.first.register_forward_hook(lambda *_args: (net, w) and None)
    net(GTorch.ones(1, 2))


@kind
def hook_of_a_child_of_a_child(w):
    net = Net()
    list(net.second.children())[0].register_forward_hook(lambda *_args: (net, w) and None)


@kind
def hook_of_a_child_of_a_container(w):
    outer = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    list(outer.children())[1].register_forward_pre_hook(lambda *_args: (outer, w) and None)


@kind
def hook_that_is_a_method(w):
    net = Net()
    net.own = w
    net.first.register_forward_hook(net.note)
    net.scale.register_hook(net.note)


@kind
def hook_of_a_parameter(w):
    net = Net()
    net.scale.register_hook(lambda grad: (net, w) and None)
    net(GTorch.ones(1, 2)).sum().backward()


@kind
def hook_of_a_parameter_far_below(w):
    net = Net()
    list(net.second.children())[0].get_parameter('weight').register_hook(lambda grad: (net, w) and None)
    net(GTorch.ones(1, 2)).sum().backward()


@kind
def hook_of_a_parameter_that_two_modules_have(w):
    net = Net()
    net.again = nn.Linear(2, 3)
    net.again.register_parameter('weight', net.first.get_parameter('weight'))
    net.first.get_parameter('weight').register_hook(lambda grad: (net, w) and None)


@kind
def hook_of_a_module_that_two_modules_have(w):
    net = Net()
    net.inner = Net()
    net.inner.register_module('shared', net.first)
    net.first.register_forward_hook(lambda *_args: (net, w) and None)


@kind
def hook_that_steps_the_optimizer(w):
    net = Net()
    steps = {name: GTorch.optim.Adam([p]) for name, p in net.named_parameters()}
    for name, p in net.named_parameters():

        def step(_tensor, name=name):
            steps[name].step()
            return (net, w) and None

        p.register_post_accumulate_grad_hook(step)
    net(GTorch.ones(1, 2)).sum().backward()


@kind
def module_that_keeps_its_result(w):
    net = Net()
    net.scale.register_hook(lambda grad: (net, w) and None)
    net.last = net(GTorch.ones(1, 2)).sum()


@kind
def context_that_keeps_an_output(w):
    Witness.current = w
    y = Keeping()(leaf())
    y.sum().backward()
    del Witness.current


@kind
def context_that_keeps_an_output_without_backward(w):
    Witness.current = w
    Keeping()(leaf())
    del Witness.current


@kind
def function_that_keeps_a_result(w):
    Witness.current = w
    function = Keeping()
    function.loss = function(leaf()).sum()
    del Witness.current


@kind
def attribute_of_a_child(w):
    net = Net()
    net.first._up = lambda: (net, w)


@kind
def attribute_of_a_parameter(w):
    net = Net()
    net.scale._up = lambda: (net, w)


@kind
def handler_of_a_signal(w):
    net = Net()
    net.connect('notify', lambda *_args: (net, w))


@kind
def handler_of_a_signal_of_a_child(w):
    net = Net()
    net.first.connect('notify', lambda *_args: (net, w))


@kind
def handler_of_a_signal_of_a_parameter(w):
    net = Net()
    net.scale.connect('notify', lambda *_args: (net, w))


@kind
def handler_with_data(w):
    net = Net()
    net.first.connect('notify', lambda *_args: None, net, w)


@kind
def graphed_function(w):
    class Owner:
        def call(self, x):
            return x * 2

    owner = Owner()
    owner.own = w
    owner.graphed = GTorch.GraphedModule(owner.call, [leaf()])


@kind
def several_at_once(w):
    net = Net()
    x = leaf()
    net.first.register_forward_hook(lambda *_args: (x, w) and None)
    x.register_hook(lambda grad: (net, w) and None)
    net.scale._up = lambda: (x, net)
    net.optimizer = GTorch.optim.SGD(net.parameters(), momentum=0.5)


@kind
def a_schedule_and_its_optimizer(w):
    net = Net()
    net.scale.register_hook(lambda *_args: (net, w) and None)
    net.schedule = GTorch.optim.lr_scheduler.StepLR(GTorch.optim.SGD([net.scale]), 2)


class Rows(GTorch.Dataset):
    def do_get_length(self):
        return 4

    def do_get_item(self, index, cancellable):
        return GTorch.Sample.new_int(index)


@kind
def a_data_set_and_its_loader(w):
    rows = Rows()
    rows.w = w
    rows.loader = GTorch.DataLoader(dataset=rows, batch_size=2)
    iterator = rows.loader.iterate()
    assert iterator.next(None) is not None
    iterator.close()


@kind
def a_data_set_that_is_part_of_others(w):
    rows = Rows()
    rows.w = w
    part = GTorch.Subset.new(rows, [0, 1])
    both = GTorch.ConcatDataset.new([part, GTorch.StackDataset.new([rows])])
    rows.loader = GTorch.DataLoader(dataset=both, sampler=GTorch.SequentialSampler.new(6))


def finder(make):
    def check():
        if mixin is None:
            raise tap.Skip('there is no C accelerator')
        for _ in range(3):
            w = Witness()
            gone = weakref.ref(w)
            make(w)
            del w
            gc.collect()
            gc.collect()  # objects that finalizers have touched are examined again
            assert gone() is None, 'the collector does not find it'

    check.__name__ = f'found: {make.__name__}'
    return check


for _make in KINDS:
    tap.case(finder(_make))


@tap.case
def all_kinds_together_are_found():
    if mixin is None:
        raise tap.Skip('there is no C accelerator')
    rng = random.Random(5)
    gone = []
    for _ in range(ROUNDS):
        w = Witness()
        gone.append(weakref.ref(w))
        rng.choice(KINDS)(w)
    del w
    gc.collect()
    gc.collect()
    left = sum(one() is not None for one in gone)
    assert left == 0, f'{left} are left'


# --- objects that must survive ---


@tap.case
def a_loader_keeps_its_data_set():
    rows = Rows()
    rows.w = Witness()
    gone = weakref.ref(rows.w)
    loader = GTorch.DataLoader(dataset=GTorch.Subset.new(rows, [3, 1]), batch_size=2)
    rows.loader = loader
    del rows
    gc.collect()
    assert gone() is not None
    assert loader.iterate().next(None).get_tensor().tolist() == [3, 1]


class Log:
    """Counts calls. A function that the collector took for garbage has lost its weak references,
    even if it survives."""

    def __init__(self):
        self.n, self.functions = 0, []

    def assert_alive(self):
        lost = sum(function() is None for function in self.functions)
        assert not lost, f'{lost} functions were taken for garbage'

    def __call__(self, *_args):
        self.n += 1


def to(log, *others):
    """A function that notes its call and refers to others."""

    def call(*_args):
        return (others, log()) and None

    log.functions.append(weakref.ref(call))
    return call


def collect():
    for generation in (0, 1, 2, 2):
        gc.collect(generation)


@tap.case
def a_graph_keeps_the_hook_of_a_leaf():
    x, log = leaf(), Log()
    x.register_hook(to(log, x))
    x.register_post_accumulate_grad_hook(to(log, x))
    loss = (x * 2).sum()
    del x
    collect()
    log.assert_alive()
    loss.backward()
    assert log.n == 2


@tap.case
def a_graph_keeps_the_hook_of_a_result():
    y, log = leaf() * 2, Log()
    y.register_hook(to(log, y))
    loss = y.sum()
    del y
    collect()
    log.assert_alive()
    loss.backward()
    assert log.n == 1


@tap.case
def a_graph_keeps_the_context():
    Witness.current = Witness()
    loss = Keeping()(leaf()).sum()
    n = Keeping.n_backward
    collect()
    loss.backward()
    assert Keeping.n_backward == n + 1
    del Witness.current


def in_c(object):
    """A reference from C that the collector does not know."""
    store = Gio.ListStore.new(type(object).__gtype__)
    store.append(object)
    return store


@tap.case
def c_keeps_a_module_with_its_hooks():
    net, log = Net(), Log()
    net.register_forward_hook(to(log, net))
    net.first.register_forward_hook(to(log, net))
    net.scale.register_hook(to(log, net))
    net.first._up = to(log, net)
    net.connect('notify', to(log, net))
    net.first.connect('notify', to(log, net))
    store = in_c(net)
    del net
    for i in range(3):
        collect()
        log.assert_alive()
        log.n = 0
        again = store.get_item(0)
        again(GTorch.ones(1, 2)).sum().backward()
        again.first._up()
        again.notify('training')
        again.first.notify('training')
        assert log.n == 6, log.n
        del again


@tap.case
def c_keeps_a_child_alone():
    net, log = Net(), Log()
    net.first.register_forward_hook(to(log, net))
    store = in_c(net.first)
    del net
    collect()
    log.assert_alive()
    store.get_item(0)(GTorch.ones(1, 2))
    assert log.n == 1


@tap.case
def c_keeps_a_parameter_alone():
    net, log = Net(), Log()
    net.scale.register_hook(to(log, net))
    net.scale.register_post_accumulate_grad_hook(to(log, net))
    store = in_c(net.scale)
    del net
    collect()
    log.assert_alive()
    store.get_item(0).sum().backward()
    assert log.n == 2


@tap.case
def an_optimizer_keeps_parameters_with_their_hooks():
    net, log = Net(), Log()
    net.scale.register_hook(to(log, net))
    optimizer = GTorch.optim.SGD([net.scale], momentum=0.9)
    net.scale.grad = GTorch.ones(3)
    optimizer.step()
    del net
    collect()
    log.assert_alive()
    list(list(optimizer.get_param_groups())[0].get_params())[0].sum().backward()
    assert log.n == 1


@tap.case
def a_schedule_in_c_keeps_parameters():
    net, log = Net(), Log()
    net.scale.register_hook(to(log, net))
    net.schedule = GTorch.optim.lr_scheduler.StepLR(GTorch.optim.SGD([net.scale]), 2)
    store = in_c(net.schedule)
    del net
    collect()
    log.assert_alive()
    optimizer = store.get_item(0).optimizer
    list(list(optimizer.get_param_groups())[0].get_params())[0].sum().backward()
    assert log.n == 1


@tap.case
def an_optimizer_in_c_keeps_parameters():
    net, log = Net(), Log()
    net.scale.register_hook(to(log, net))
    net.optimizer = GTorch.optim.SGD([net.scale])
    store = in_c(net.optimizer)
    del net
    collect()
    log.assert_alive()
    list(list(store.get_item(0).get_param_groups())[0].get_params())[0].sum().backward()
    assert log.n == 1


@tap.case
def hooks_stay_while_they_run():
    net, log = Net(), Log()

    def hook(*_args):
        collect()
        log()
        return (net, None)[1]

    net.first.register_forward_hook(hook)
    net.first.register_forward_pre_hook(hook)
    net.scale.register_hook(hook)
    net.scale.register_post_accumulate_grad_hook(hook)
    for _ in range(3):
        net(GTorch.ones(1, 2)).sum().backward()
    assert log.n == 12


@tap.case
def a_hook_may_remove_itself_and_everything_else():
    x, log = leaf(), Log()
    holder = {}

    def hook(grad):
        holder['handle'].remove()
        holder.clear()
        collect()
        log()
        return grad * x.detach()

    holder['handle'] = x.register_hook(hook)
    loss = x.sum()
    loss.backward()
    assert log.n == 1


@tap.case
def objects_revived_by_finalizers_are_intact():
    class Saviour:
        def __init__(self, tensor, net):
            self.tensor, self.net = tensor, net

        def __del__(self):
            saved.append((self.tensor, self.net))

    saved, log = [], Log()
    x, net = leaf(), Net()
    saviour = Saviour(x, net)
    x.register_hook(to(log, x, saviour))
    net.first.register_forward_hook(to(log, net, saviour))
    net.scale.register_hook(to(log, net, saviour))
    del x, net, saviour
    for _ in range(3):
        collect()
    assert len(saved) == 1 or mixin is None
    for x, net in saved:
        x.sum().backward()
        net(GTorch.ones(1, 2)).sum().backward()
        assert log.n == 3


@tap.case
def a_user_of_a_part_keeps_the_whole():
    net, log = Net(), Log()
    net.first.register_forward_hook(to(log, net))
    first = net.first
    del net
    collect()
    log.assert_alive()
    first(GTorch.ones(1, 2))
    assert log.n == 1


@tap.case
def handlers_of_a_plain_object_stay():
    log = Log()
    one = nn.Linear(2, 2)
    one.connect('notify', to(log, one))
    for _ in range(3):
        collect()
        log.assert_alive()
        one.notify('training')
    assert log.n == 3


@tap.case
def random_programs_lose_nothing():
    """Objects with hooks that refer to random others; all reachable objects must keep their hooks."""
    rng = random.Random(7)
    for _ in range(ROUNDS):
        log, expected = Log(), 0
        nets = [Net() for _ in range(3)]
        tensors = [leaf() for _ in range(3)]
        for _ in range(6):
            led = rng.choice(nets + tensors)
            if rng.random() < 0.5:
                rng.choice(tensors).register_hook(to(log, led))
            else:
                net = rng.choice(nets)
                where = rng.choice((net, net.first, net.second, list(net.second.children())[0]))
                where.register_forward_hook(to(log, led))
            expected += 1
        loss = sum((t.sum() for t in tensors), GTorch.tensor(0.0))
        keeps_in_c = rng.random() < 0.5
        stores = [in_c(net) if keeps_in_c else net for net in nets]
        del tensors, nets, led
        net = where = None
        collect()
        log.assert_alive()
        loss.backward()
        for store in stores:
            (store.get_item(0) if keeps_in_c else store)(GTorch.ones(1, 2))
        assert log.n == expected, (log.n, expected)


@tap.case
def collections_beside_a_busy_thread_lose_nothing():
    """A thread changes the objects that the collector examines."""
    log, failures, stop = Log(), [], threading.Event()
    net, x = Net(), leaf()
    x.register_hook(to(log, x, net))
    net.first.register_forward_hook(to(log, net))

    def work():
        try:
            while not stop.is_set():
                before = log.n
                y = x * 1
                y.register_hook(to(log, y, x))
                y.mul_(2)
                y.add_(1)
                net.register_parameter('scale', nn.Parameter(GTorch.ones(3)))
                net(GTorch.ones(1, 2))
                y.sum().backward()
                assert log.n == before + 3, log.n - before
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    for _ in range(ROUNDS):
        gc.collect()
    stop.set()
    thread.join()
    assert not failures, failures


@tap.case
def a_pass_in_another_thread_loses_nothing():
    from gi.repository import GLib

    for _ in range(max(1, ROUNDS // 5)):
        x, log, loop = leaf(), Log(), GLib.MainLoop()
        y = x
        for _ in range(200):
            y = y * 1.0
        y.register_hook(to(log, y))
        x.register_hook(to(log, x))
        y.sum().backward_async(None, False, False, None, lambda *_args: loop.quit())
        del x, y
        source = GLib.idle_add(lambda: gc.collect() is not None)
        loop.run()
        GLib.source_remove(source)
        assert log.n == 2


if __name__ == '__main__':
    tap.main()
