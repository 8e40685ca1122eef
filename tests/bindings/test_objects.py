#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What GObject gives to programs with windows: notifications, lists that follow, paths, reads that do not block; and
constructors that can fail raise."""

import inspect
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
import gtorch as torch  # noqa: E402
from gi.repository import GLib  # noqa: E402

import tap  # noqa: E402
from tap import raises  # noqa: E402

nn = torch.nn


def iterate():
    while GLib.MainContext.default().iteration(False):
        pass


def wait_for(results):
    while not results:
        GLib.MainContext.default().iteration(True)
    return results[0]


@tap.case
def gradients_notify():
    seen = []
    net = nn.Linear(2, 1)
    net.weight.connect('notify::grad', lambda weight, _pspec: seen.append(weight.grad is not None))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net(torch.ones(3, 2)).sum().backward()
    assert seen == [True], seen
    optimizer.zero_grad()
    assert seen == [True, False], seen
    net(torch.ones(3, 2)).sum().backward()
    optimizer.zero_grad(set_to_none=False)
    assert seen == [True, False, True, True], seen


@tap.case
def an_exception_in_a_handler_ends_no_pass():
    x = torch.ones(2, requires_grad=True)
    hook = sys.excepthook
    seen = []
    sys.excepthook = lambda kind, value, _trace: seen.append(value)
    try:
        x.connect('notify::grad', lambda *_: 1 / 0)
        x.sum().backward()
    finally:
        sys.excepthook = hook
    assert x.grad.tolist() == [1.0, 1.0]
    assert len(seen) == 1 and isinstance(seen[0], ZeroDivisionError), seen


@tap.case
def parameters_know_their_paths():
    net = nn.Sequential(nn.Linear(1, 1), nn.ModuleDict({'head': nn.Linear(1, 1)}))
    assert [one.full_name for one in net.parameters()] == [name for name, _one in net.named_parameters()]

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = net
            self.scale = nn.Parameter(torch.ones(1))

    outer = Outer()
    assert outer.scale.full_name == 'scale'
    assert net[0].weight.full_name == 'inner.0.weight' and net[0].weight.name == 'weight'
    assert nn.Parameter(torch.ones(1)).full_name is None


@tap.case
def a_list_follows_its_module():
    net = nn.Sequential(nn.Linear(1, 1))
    model = torch.MemberModel(module=net, kind=torch.MemberKind.PARAMETER, recurse=True)
    seen = []
    model.connect('items-changed', lambda _model, *what: seen.append(what))
    assert len(model) == 2 and model[0] is net[0].weight
    net.append(nn.Linear(1, 1, bias=False))
    assert not seen and len(model) == 2
    iterate()
    assert seen == [(2, 0, 1)] and model[2] is net[1].weight
    net[0].bias = None
    del net[1]
    iterate()
    assert seen[1:] == [(1, 2, 0)], seen
    assert model.props.module is net and model.props.recurse


@tap.case
def elements_are_read_without_blocking():
    x = torch.tensor([[1.5, -2.0], [3.0, 4.0]])
    doubles, data, whole = [], [], []
    x.to_doubles_async(None, lambda x, result: doubles.append(x.to_doubles_finish(result)))
    x.get_bytes_async(None, lambda x, result: data.append(x.get_bytes_finish(result)))
    x.to(torch.int64).to_ints_async(None, lambda x, result: whole.append(x.to_ints_finish(result)))
    x.zero_()
    assert list(wait_for(doubles)) == [1.5, -2.0, 3.0, 4.0]
    assert list(memoryview(wait_for(data).get_data()).cast('f')) == [1.5, -2.0, 3.0, 4.0]
    assert list(wait_for(whole)) == [1, -2, 3, 4]


# The values of these are all right until there is an input.
LATER = {'LogSoftmax', 'Softmax', 'Softmin', 'Threshold', 'WeightNorm'}


@tap.case
def constructors_that_can_fail_have_errors():
    """In C each constructor of a class that can be checked, if it takes arguments, has a GError."""
    found = 0
    repository = gi.Repository.get_default()
    for info in repository.get_infos('GTorch'):
        if not isinstance(info, gi._gi.ObjectInfo) or info.get_name() in LATER:
            continue
        parents, parent = {info.get_name()}, info.get_parent()
        while parent is not None and parent.get_namespace() == 'GTorch':
            parents.add(parent.get_name())
            parent = parent.get_parent()
        if not parents & {'Module', 'Optimizer', 'LRScheduler'}:
            continue
        for method in info.get_methods():
            if method.is_constructor() and method.get_arguments():
                assert method.can_throw_gerror(), f'{info.get_name()}.{method.get_name()}'
                found += 1
    assert found > 60, found
    raises(GLib.Error, lambda: torch.Linear.new(-1, 2), 'Linear')
    assert inspect.isclass(torch.MemberModel)


tap.main()
