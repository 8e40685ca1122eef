#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs that use several GPUs in one process, as PyTorch's users write them."""

import collections
import time

import gtorch.cuda.comm as comm
import gtorch.multiprocessing as mp
from gtorch.nn.parallel import DataParallel, data_parallel, gather, parallel_apply, replicate, scatter
from gtorch.utils.checkpoint import checkpoint

from gpus import elsewhere, equal, near, need, raises, tap, torch

cuda = torch.cuda
nn = torch.nn
Pair = collections.namedtuple('Pair', 'first second')


@tap.case
def the_class_for_groups_is_beside_that_for_threads():
    program = 'from gtorch.nn.parallel import DataParallel, DistributedDataParallel\nprint(DistributedDataParallel)'
    status, text = elsewhere(program)
    assert status == 0 and 'gtorch.nn.parallel.DistributedDataParallel' in text, text


@tap.case
def tensors_of_two_gpus_do_not_meet():
    need(2)
    a, b = torch.randn(10, device='cuda:0'), torch.randn(10, device='cuda:1')
    raises(RuntimeError, 'cuda:1', lambda: a + b)
    near(a + b.to('cuda:0'), a.cpu() + b.cpu())
    assert cuda.can_device_access_peer(0, 1) in (True, False)


class Halves(nn.Module):
    """A network with one half on each of two GPUs."""

    def __init__(self):
        super().__init__()
        self.sub_network1 = nn.Linear(6, 5)
        self.sub_network2 = nn.Linear(5, 2)
        self.sub_network1.cuda(0)
        self.sub_network2.cuda(1)

    def forward(self, x):
        x = self.sub_network1(x.cuda(0))
        return self.sub_network2(x.cuda(1))


@tap.case
def a_model_has_halves_on_two_gpus():
    need(2)
    net, x = Halves(), torch.randn(4, 6)
    result = net(x)
    assert result.get_device() == 1
    result.pow(2).sum().backward()
    first, second = nn.Linear(6, 5), nn.Linear(5, 2)
    first.load_state_dict(net.sub_network1.state_dict())
    second.load_state_dict(net.sub_network2.state_dict())
    second(first(x)).pow(2).sum().backward()
    near(net.sub_network1.weight.grad, first.weight.grad)
    near(net.sub_network2.weight.grad, second.weight.grad)
    assert net.sub_network1.weight.grad.get_device() == 0


@tap.case
def tensors_are_sent_to_all():
    need(3)
    x = torch.arange(3.0, device='cuda:1')
    made = comm.broadcast(x, [0, 1, 2])
    assert [one.get_device() for one in made] == [0, 1, 2] and made[1] is x
    for one in made:
        equal(one, [0.0, 1.0, 2.0])
    out = [torch.zeros(3, device='cuda:0'), torch.zeros(3, device='cuda:2')]
    assert comm.broadcast(x, out=out)[1] is out[1]
    equal(out[1], [0.0, 1.0, 2.0])
    raises(RuntimeError, 'exactly one', comm.broadcast, x)
    raises(RuntimeError, 'shapes', comm.broadcast, x, out=[torch.zeros(2, device='cuda:0')])
    lists = comm.broadcast_coalesced([x, x + 1], [0, 2], buffer_size=1)
    assert [[one.get_device() for one in some] for some in lists] == [[0, 0], [2, 2]]
    equal(lists[1][1], [1.0, 2.0, 3.0])


@tap.case
def tensors_are_sent_in_buffers():
    need(3)
    sent = [torch.arange(4.0, device='cuda:0').view(2, 2), torch.tensor([7], device='cuda:0'),
            torch.tensor(5.0, device='cuda:0'), torch.zeros(0, device='cuda:0'), torch.ones(3, device='cuda:0')]
    lists = comm.broadcast_coalesced(sent, [0, 2])
    assert all(a is b for a, b in zip(lists[0], sent))
    for a, b in zip(lists[1], sent):
        assert a.get_device() == 2 and a.shape == b.shape and a.dtype == b.dtype and torch.equal(a.cpu(), b.cpu())
    first, last = lists[1][0], lists[1][4]
    assert last.data_ptr() - first.data_ptr() == 5 * 4  # in one buffer; the integers are in another
    first, last = comm.broadcast_coalesced(sent[::4], [2], buffer_size=16)[0]
    assert last.untyped_storage().data_ptr() != first.untyped_storage().data_ptr()
    lists = [[t.to(device) * (k + 1) for t in sent] for k, device in enumerate(('cuda:0', 'cuda:1', 'cuda:2'))]
    for size in (1, 16, 10 * 2**20):
        sums = comm.reduce_add_coalesced(lists, 1, size)
        assert [one.shape for one in sums] == [one.shape for one in sent]
        for a, b in zip(sums, sent):
            assert a.get_device() == 1 and torch.equal(a.cpu(), b.cpu() * 6)
    elsewhere_too = [sent[0], sent[1].to('cuda:1')]
    raises(RuntimeError, 'on one device', comm.broadcast_coalesced, elsewhere_too, [0, 1])
    raises(ValueError, 'different shapes', comm.reduce_add_coalesced, [[sent[0], sent[2]], [sent[2], sent[0]]], 0)


@tap.case
def tensors_are_divided_and_joined():
    need(3)
    x = torch.arange(14.0).reshape(7, 2)
    parts = comm.scatter(x, [0, 1, 2])
    assert [part.shape[0] for part in parts] == [3, 3, 1] and [part.get_device() for part in parts] == [0, 1, 2]
    equal(comm.gather(parts, destination='cpu'), x.tolist())
    joined = comm.gather(parts, 0, destination=2)
    assert joined.get_device() == 2
    out = torch.empty(7, 2, device='cuda:1')
    assert comm.gather(parts, out=out) is out
    equal(out, x.tolist())
    sized = comm.scatter(x, [0, 1], [1, 6])
    assert [part.shape[0] for part in sized] == [1, 6]
    streams = [cuda.Stream(device=index) for index in range(2)]
    wide = comm.scatter(x, [0, 1], dim=1, streams=streams)
    for stream in streams:
        stream.synchronize()
    equal(wide[1], x[:, 1:].tolist())
    into = comm.scatter(x, out=[torch.empty(2, 2, device='cuda:0'), torch.empty(5, 2, device='cuda:1')])
    equal(into[1], x[2:].tolist())
    raises(RuntimeError, 'do not make up', comm.scatter, x, [0, 1], [1, 1])
    raises(ValueError, 'a GPU was expected', comm.gather, [x])
    raises(ValueError, 'at least one', comm.scatter, x, [])


@tap.case
def tensors_are_added():
    need(3)
    parts = [torch.full((2,), float(index), device=f'cuda:{index}') for index in range(3)]
    total = comm.reduce_add(parts, destination=1)
    assert total.get_device() == 1
    equal(total, [3.0, 3.0])
    equal(parts[1], [1.0, 1.0])
    assert comm.reduce_add(parts).get_device() == 0
    pairs = comm.reduce_add_coalesced([[part, part * 2] for part in parts], 0)
    equal(pairs[1], [6.0, 6.0])
    raises(ValueError, 'different shapes', comm.reduce_add, [parts[0], torch.zeros(3, device='cuda:1')])
    raises(ValueError, 'a GPU was expected', comm.reduce_add, [torch.zeros(3)])


@tap.case
def arguments_of_any_form_are_divided():
    need(2)
    x = torch.arange(4.0)
    parts = scatter({'x': [x, 'text'], 'pair': Pair(x, None)}, [0, 1])
    assert [part['x'][1] for part in parts] == ['text', 'text']
    equal(parts[1]['pair'].first, [2.0, 3.0])
    assert parts[1]['pair'].second is None and parts[1]['x'][0].get_device() == 1
    joined = gather([{'x': (part['x'][0], part['pair'].first.sum())} for part in parts], 'cpu')
    equal(joined['x'][0], x.tolist())
    equal(joined['x'][1], [1.0, 5.0])


class Net(nn.Module):
    """A layer, a norm and a result of several parts."""

    def __init__(self):
        super().__init__()
        self.layer, self.norm = nn.Linear(4, 3), nn.BatchNorm1d(3)

    def forward(self, x, scale=1.0):
        self.last = [self.layer(x), x.device]
        return {'y': self.norm(self.last[0]) * scale, 'sum': x.sum()}


@tap.case
def a_batch_is_divided_among_gpus():
    need(3)
    torch.manual_seed(5)
    plain, x = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)).cuda(), torch.randn(7, 4)
    model = nn.DataParallel(plain)
    assert model.device_ids == list(range(cuda.device_count())) and model.output_device == 0 and model.module is plain
    assert list(model.state_dict()) == [f'module.{name}' for name in plain.state_dict()]
    output = model(x)
    assert output.get_device() == 0
    near(output, plain(x.cuda()))
    output.pow(2).sum().backward()
    divided = [parameter.grad.clone() for parameter in plain.parameters()]
    plain.zero_grad()
    plain(x.cuda()).pow(2).sum().backward()
    for grad, parameter in zip(divided, plain.parameters()):
        near(grad, parameter.grad)
    grads = torch.autograd.grad(model(x).pow(2).sum(), list(plain.parameters()))
    near(grads[0], divided[0])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    first = model(x).pow(2).mean()
    first.backward()
    optimizer.step()
    assert model(x).pow(2).mean().item() < first.item()


@tap.case
def replicas_have_settings_of_the_caller():
    need(3)
    model = DataParallel(Net().cuda(), device_ids=[0, 2], output_device=2)
    result = model(torch.ones(4, 4), scale=2.0)
    assert result['y'].shape == (4, 3) and result['y'].get_device() == 2
    equal(result['sum'], [8.0, 8.0])
    assert model.module.norm.num_batches_tracked.item() == 1
    assert model.module.last[0].shape == (2, 3) and not model.module.last[0].is_leaf
    with torch.no_grad():
        assert not model(torch.ones(4, 4))['y'].requires_grad
    with torch.autocast('cuda'):
        assert DataParallel(nn.Linear(4, 3).cuda())(torch.ones(4, 4)).dtype == torch.float16
    assert model.eval()(torch.ones(1, 4))['y'].shape == (1, 3)
    assert data_parallel(nn.Linear(4, 3).cuda(), torch.ones(6, 4), [0, 1]).shape == (6, 3)


@tap.case
def errors_of_replicas_are_raised():
    need(2)
    model = nn.DataParallel(nn.Linear(4, 3).cuda(), device_ids=[0, 1])
    raises(RuntimeError, 'linear: the last dimension', model, torch.ones(6, 5))
    elsewhere = nn.DataParallel(nn.Linear(4, 3).cuda(1), device_ids=[0, 1])
    raises(RuntimeError, 'must be on cuda:0', elsewhere, torch.ones(6, 4))


@tap.case
def modules_are_applied_side_by_side():
    need(2)
    module = nn.Linear(4, 3).cuda()
    copies = replicate(module, [0, 1])
    assert copies[0] is module and copies[1].weight.get_device() == 1
    batches = scatter(torch.ones(4, 4), [0, 1])
    results = parallel_apply(copies, [(batch,) for batch in batches], devices=[0, 1])
    assert [one.get_device() for one in results] == [0, 1]
    near(gather(results, 0), module(torch.ones(4, 4, device='cuda')))
    apart = replicate(module, [0, 1], detach=True)
    assert apart[0] is not module and not any(one.weight.requires_grad for one in apart)


class Tied(nn.Module):
    """Two layers with one weight, a frozen one, and one that is not called."""

    def __init__(self, kind=None):
        super().__init__()
        self.first, self.second, self.unused = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
        self.scale, self.norm = nn.Parameter(torch.linspace(0.5, 2, 4), requires_grad=False), nn.BatchNorm1d(4)
        self.second.weight, self.kind = self.first.weight, kind

    def part(self, x):
        return torch.tanh(self.first(x)) * self.scale

    def forward(self, x):
        x = self.part(x) if self.kind is None else checkpoint(self.part, x, use_reentrant=self.kind)
        return self.second(self.norm(x))


@tap.case
def parameters_are_sent_in_buffers():
    need(3)
    module = Tied().cuda()
    home, copy = replicate(module, [0, 2])
    assert home is module and copy.first.weight is copy.second.weight and copy.scale.get_device() == 2
    assert [name for name, one in copy.named_parameters() if one.requires_grad] == [
        name for name, one in module.named_parameters() if one.requires_grad]
    first, last = copy.first.weight, copy.first.bias
    assert last.untyped_storage().data_ptr() == first.untyped_storage().data_ptr() and not first.is_leaf
    places = {one.untyped_storage().data_ptr() for one in copy.buffers()}
    assert len(places) == 3  # each by itself: they are written in place
    with torch.no_grad():
        apart = replicate(module, [0, 1])[1]
    assert apart.first.weight.is_leaf and not apart.first.weight.requires_grad
    alone = replicate(module, [0], detach=True)[0]
    alone.first.weight.zero_()
    assert module.first.weight.abs().sum().item() > 0
    module.second.cuda(1)
    raises(RuntimeError, 'on one device', replicate, module, [0, 1])
    raises(RuntimeError, 'has no elements yet', replicate, nn.LazyLinear(2), [0, 1])


@tap.case
def checkpoints_compute_with_the_replica():
    need(3)

    def trained(kind):
        torch.manual_seed(3)
        module, x = Tied(kind).cuda(), torch.linspace(-1, 1, 32).reshape(8, 4).requires_grad_()
        result = DataParallel(module)(x)
        result.pow(2).sum().backward()
        assert module.scale.grad is None and not module.unused.weight.grad.any()
        return [result, x.grad, *(one.grad for one in module.parameters() if one.requires_grad)]

    plain = trained(None)
    assert plain[2].any()
    for kind in (False, True):
        found = trained(kind)
        assert all(torch.equal(a, b) for a, b in zip(found[:2], plain))
        for a, b in zip(found, plain):
            near(a, b)


@tap.case
def one_gpu_is_enough():
    module = nn.Linear(4, 3)
    model = nn.DataParallel(module, device_ids=[0])
    assert module.weight.is_cuda
    near(model(torch.ones(2, 4)), module(torch.ones(2, 4, device='cuda')))


def _work(index, queue):
    tensor = torch.full((2,), float(index))
    queue.put((index, tensor))
    time.sleep(5)  # others get the memory from this process


def _fail(index):
    raise KeyError(f'process {index}')


@tap.case
def processes_are_spawned():
    queue = mp.get_context('spawn').SimpleQueue()
    context = mp.spawn(_work, (queue,), nprocs=2, join=False)
    found = dict(queue.get() for _ in range(2))  # while the processes live, whose memory it is
    while not context.join():
        pass
    equal(found[1], [1.0, 1.0])
    raises(mp.ProcessRaisedException, 'KeyError', mp.spawn, _fail)
    context = mp.spawn(_work, (queue,), join=False)
    assert len(context.pids()) == 1
    queue.get()
    while not context.join():
        pass
    raises(NotImplementedError, 'file descriptors', mp.set_sharing_strategy, 'file_system')
    assert mp.get_all_sharing_strategies() == {mp.get_sharing_strategy()} == {'file_descriptor'}


if __name__ == '__main__':
    tap.main()
