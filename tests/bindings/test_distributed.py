# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""torch.distributed: three processes, started by mpirun, run the functions whose names begin with rank_."""

import datetime
import importlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'style'))
import tap
from gi.repository import GLib

import gtorch as torch
import gtorch.distributed as dist
from gtorch.distributed import fsdp
from gtorch.distributed.tensor import parallel as tensor_parallel

N = 3
# Shared memory and sockets only, whatever the machine has; more ranks than processors.
MPIRUN = ['mpirun', '-n', str(N), '--oversubscribe', '--allow-run-as-root', '--mca', 'btl', 'self,vader,tcp',
          '--mca', 'btl_vader_single_copy_mechanism', 'none']


def rank_collectives_have_the_values_of_all_ranks():
    rank = dist.get_rank()
    x = torch.tensor([float(rank), 1.0])
    dist.all_reduce(x)
    assert x.tolist() == [3.0, 3.0], x
    work = dist.all_reduce(x, op=dist.ReduceOp.MAX, async_op=True)
    assert work.wait() and work.is_completed() and work.exception() is None
    y = torch.full((2,), rank)
    dist.broadcast(y, src=2)
    assert y.tolist() == [2, 2]
    parts = [torch.zeros(2) for _ in range(N)]
    dist.all_gather(parts, torch.full((2,), float(rank)))
    assert [part.tolist() for part in parts] == [[0, 0], [1, 1], [2, 2]]
    whole = torch.zeros(N, 2)
    dist.all_gather_into_tensor(whole, torch.full((2,), float(rank)))
    assert whole.tolist() == [[0, 0], [1, 1], [2, 2]]
    z = torch.full((1,), float(rank + 1))
    dist.reduce(z, dst=1, op=dist.ReduceOp.PRODUCT)
    assert z.item() == (6.0 if rank == 1 else rank + 1)
    got = [torch.zeros(1) for _ in range(N)] if rank == 0 else None
    dist.gather(torch.tensor([rank * 10.0]), got, dst=0)
    assert rank or [one.item() for one in got] == [0, 10, 20]
    mine = torch.zeros(1)
    dist.scatter(mine, [torch.tensor([i + 0.5]) for i in range(N)] if rank == 1 else None, src=1)
    assert mine.item() == rank + 0.5
    out = torch.zeros(1)
    dist.reduce_scatter(out, [torch.tensor([float(i + rank)]) for i in range(N)])
    assert out.item() == 3.0 * rank + 3
    dist.reduce_scatter_tensor(out, torch.arange(3.0), op=dist.ReduceOp.AVG)
    assert out.item() == rank
    exchanged = torch.zeros(N, dtype=torch.int64)
    dist.all_to_all_single(exchanged, torch.arange(N) + 10 * rank)
    assert exchanged.tolist() == [rank, 10 + rank, 20 + rank]
    dist.barrier()


def rank_numbers_are_multiplied_before():
    rank, size = dist.get_rank(), dist.get_world_size()
    for factor in (2, torch.tensor(2.0)):
        x = torch.full((3,), rank + 1.0)
        dist.all_reduce(x, op=dist._make_nccl_premul_sum(factor))
        assert x.tolist() == [size * (size + 1.0)] * 3
    x, part = torch.full((size,), 1.0), torch.zeros(1)
    work = dist.reduce_scatter_tensor(part, x, op=dist._make_nccl_premul_sum(rank + 1), async_op=True)
    work.wait()
    assert part.item() == size * (size + 1) / 2 and x.tolist() == [1.0] * size
    tap.raises(TypeError, lambda: dist.all_reduce(torch.ones(2, dtype=torch.int64), op=dist._make_nccl_premul_sum(2)),
               'floating-point')
    for call in (lambda: dist.all_reduce(x, op=dist.ReduceOp.PREMUL_SUM),
                 lambda: dist.reduce(x, 0, op=dist._make_nccl_premul_sum(2))):
        tap.raises(NotImplementedError, call, 'PREMUL_SUM')
    tap.raises(NotImplementedError, lambda: dist.shrink_group([0 if rank else 1]), 'mpi')
    tap.raises(TypeError, lambda: dist.shrink_group([True]), 'whole numbers')


def rank_messages_go_between_two_ranks():
    rank = dist.get_rank()
    to, back = (rank + 1) % N, (rank - 1) % N
    got = torch.zeros(4)
    work = dist.batch_isend_irecv([dist.P2POp(dist.isend, torch.full((4,), float(rank)), to),
                                   dist.P2POp(dist.irecv, got, back)])
    for one in work:
        one.wait()
    assert got.tolist() == [back] * 4
    if rank == 0:
        dist.send(torch.tensor([7, 8]), dst=2, tag=3)
    elif rank == 2:
        numbers = torch.zeros(2, dtype=torch.int64)
        assert dist.recv(numbers, src=0, tag=3) == 0 and numbers.tolist() == [7, 8]


def rank_objects_are_exchanged():
    rank = dist.get_rank()
    found = [None] * N
    dist.all_gather_object(found, {'rank': rank, 'text': 'x' * rank})
    assert [one['rank'] for one in found] == [0, 1, 2] and found[2]['text'] == 'xx'
    objects = ['a', 3, None] if rank == 0 else [None] * 3
    dist.broadcast_object_list(objects, src=0)
    assert objects == ['a', 3, None]
    gathered = [None] * N if rank == 2 else None
    dist.gather_object(rank * 2, gathered, dst=2)
    assert gathered == ([0, 2, 4] if rank == 2 else None)
    mine = [None]
    dist.scatter_object_list(mine, [{'n': i} for i in range(N)] if rank == 0 else None, src=0)
    assert mine == [{'n': rank}]
    if rank == 0:
        dist.send_object_list([1, 'two'], dst=1)
    elif rank == 1:
        received = [None, None]
        assert dist.recv_object_list(received, src=0) == 0 and received == [1, 'two']


def rank_the_called_function_is_named():
    one, wrong = torch.ones(1), N + 4
    for name, call in (
            ('broadcast_object_list', lambda: dist.broadcast_object_list([1], group_src=wrong)),
            ('scatter_object_list', lambda: dist.scatter_object_list([None], group_src=wrong)),
            ('gather_object', lambda: dist.gather_object(1, group_dst=wrong)),
            ('send_object_list', lambda: dist.send_object_list([1], group_dst=wrong)),
            ('recv_object_list', lambda: dist.recv_object_list([None], group_src=wrong)),
            ('isend', lambda: dist.isend(one, group_dst=wrong)),
            ('send', lambda: dist.send(one, group_dst=wrong)),
            ('recv', lambda: dist.recv(one, group_src=wrong)),
            ('broadcast', lambda: dist.broadcast(one, group_src=wrong))):
        tap.raises(ValueError, call, f'{name}: rank {wrong} is out of range for {N} processes')
    op = dist.P2POp(dist.isend, one, group_peer=wrong)
    tap.raises(ValueError, lambda: dist.batch_isend_irecv([op]), f'batch_isend_irecv: rank {wrong} is out of range')
    strided = [torch.zeros(2, 2).t()]
    tap.raises(ValueError, lambda: dist.all_gather_coalesced([strided] * N, strided),
               'all_gather_coalesced: a tensor of shape [2, 2] is not contiguous')
    # C's operations of several name themselves
    tap.raises(IndexError, lambda: dist.group.WORLD.gather_variant(GLib.Variant('i', 1), wrong),
               f'gather_variant: rank {wrong}')
    tap.raises(IndexError, lambda: dist.group.WORLD.broadcast_variant(GLib.Variant('i', 1), wrong),
               f'broadcast_variant: rank {wrong}')


def rank_some_ranks_are_a_group():
    rank = dist.get_rank()
    some = dist.new_group([2, 0])
    if rank == 1:
        assert some is dist.GroupMember.NON_GROUP_MEMBER and dist.get_rank(some) == -1
        for name, call in (('all_reduce', lambda: dist.all_reduce(torch.ones(1), group=some)),
                           ('recv', lambda: dist.recv(torch.ones(1), 0, group=some)),
                           ('barrier', lambda: dist.barrier(some)),
                           ('all_gather_object', lambda: dist.all_gather_object([None], 1, group=some)),
                           ('broadcast_object_list', lambda: dist.broadcast_object_list([1], group_src=0, group=some)),
                           ('DistributedDataParallel', lambda: torch.nn.parallel.DistributedDataParallel(
                               torch.nn.Linear(1, 1), process_group=some))):
            error = tap.raises(ValueError, call, 'this process has no part in the group')
            assert str(error).startswith(f'{name}: '), error
        return
    assert dist.get_world_size(some) == 2 and dist.get_process_group_ranks(some) == [0, 2]
    assert dist.get_global_rank(some, 1) == 2 and dist.get_group_rank(some, 2) == 1
    x = torch.tensor([rank + 1.0])
    dist.all_reduce(x, group=some)
    assert x.item() == 4
    dist.broadcast(x.fill_(rank), src=2, group=some)  # a rank of all
    assert x.item() == 2


def rank_any_rank_may_send():
    rank = dist.get_rank()
    if rank:
        dist.send(torch.tensor([float(rank)]), dst=0, tag=4)
        return
    found = set()
    for _ in range(N - 1):
        x = torch.zeros(1)
        source = dist.recv(x, tag=4)
        assert x.item() == source
        found.add(source)
    assert found == {1, 2}


def rank_ranks_are_divided():
    rank = dist.get_rank()
    own, groups = dist.new_subgroups(1)
    assert len(groups) == N and dist.get_process_group_ranks(own) == [rank] and groups[rank] is own
    own, groups = dist.new_subgroups_by_enumeration([[0, 2], [1]])
    assert groups[rank % 2] is own and dist.get_world_size(own) == (1 if rank == 1 else 2)
    assert dist.get_pg_count() >= 3
    part = dist.split_group(split_ranks=[[1, 2]])
    assert (part is None) == (rank == 0)
    if part is not None:
        x = torch.ones(1)
        dist.all_reduce(x, group=part)
        assert x.item() == 2
        dist.destroy_process_group(part)
    tap.raises(ValueError, lambda: dist.new_subgroups(2), 'cannot be divided')
    tap.raises(ValueError, lambda: dist.new_subgroups_by_enumeration([[0], [0, 1]]), 'is in two')
    tap.raises(ValueError, lambda: dist.new_subgroups(0), '1 or more')


def rank_several_tensors_go_together():
    rank = dist.get_rank()
    a, b = torch.ones(2), torch.tensor([[rank]])
    dist.all_reduce_coalesced([a, b])
    assert a.tolist() == [3, 3] and b.tolist() == [[3]]
    a, b = torch.full((2,), float(rank)), torch.tensor([rank])
    dist.broadcast_coalesced([a, b], 1)
    assert a.tolist() == [1, 1] and b.tolist() == [1]
    tap.raises(ValueError, lambda: dist.broadcast_coalesced([a], N), f'rank {N} is out of range')
    tap.raises(TypeError, lambda: dist.broadcast_coalesced(a), 'a list of tensors')
    outputs = [[torch.zeros(2), torch.zeros(1)] for _ in range(N)]
    dist.all_gather_coalesced(outputs, [torch.full((2,), float(rank)), torch.ones(1) * -rank])
    assert [[one.tolist() for one in ones] for ones in outputs] == [[[r, r], [-r]] for r in range(N)]
    tap.raises(ValueError, lambda: dist.all_gather_coalesced(outputs, [a]), 'a list of as many')


def rank_calls_are_compared():
    """A group with the level DETAIL: what differs is named on every rank, and the group goes on."""
    rank = dist.get_rank()
    assert dist.get_debug_level() == dist.DebugLevel.OFF
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    watched = torch.ProcessGroup.new('mpi', None, -1, -1, 60, None)
    dist.set_debug_level(dist.DebugLevel.OFF)
    x = torch.zeros(3)
    call = (lambda: dist.broadcast(x, 0, watched)) if rank == 1 else (lambda: dist.all_reduce(x, group=watched))
    error = tap.raises(dist.DistBackendError, call, 'rank 1 calls broadcast of float32 [3] on cpu from rank 0')
    assert 'rank 0 all_reduce of float32 [3] on cpu with sum' in str(error)
    dist.all_reduce(x, group=watched)
    dist.monitored_barrier(watched)
    if rank != 2:
        tap.raises(dist.DistBackendError, lambda: dist.monitored_barrier(watched, 0.05), 'rank 2 has not come')
    tap.raises(NotImplementedError, lambda: dist.monitored_barrier(), 'without a store')
    dist.barrier()


def rank_wrong_calls_raise():
    x = torch.ones(3)
    tap.raises(ValueError, lambda: dist.broadcast(x, src=N), f'rank {N} is out of range')
    tap.raises(TypeError, lambda: dist.all_reduce([x]), 'takes tensors')
    tap.raises(ValueError, lambda: dist.all_reduce(torch.ones(3, 2).t()), 'not contiguous')
    tap.raises(TypeError, lambda: dist.all_reduce(x, op=dist.ReduceOp.BAND), 'not defined for float32')
    tap.raises(ValueError, lambda: dist.all_gather([x], x), 'for 3 ranks')
    tap.raises(ValueError, lambda: dist.init_process_group('mpi'), 'is there already')
    tap.raises(ValueError, lambda: dist.broadcast(x), 'broadcast: either src or group_src must be given, and none was')
    tap.raises(ValueError, lambda: dist.broadcast(x, 0, group_src=0), 'must be given, and both were')
    for call, text in (
            (lambda: dist.send(x, 0, tag='a'), "send: tag is a whole number, not 'a'"),
            (lambda: dist.all_reduce(x, op='sum'), 'all_reduce: op is one of ReduceOp'),
            (lambda: dist.all_reduce(x, group=5), 'all_reduce: group is a group'),
            (lambda: dist.all_to_all_single(x, x.clone(), ['a'] * N, [1] * N), "all_to_all_single: a split size is"),
            (lambda: dist.new_group('01'), 'new_group: ranks is a list of ranks, not str'),
            (lambda: dist.new_group(0), 'new_group: ranks is a list of ranks, not int'),
            (lambda: dist.new_group([0.0]), 'new_group: a rank is a whole number, not 0.0'),
            (lambda: dist.new_group([0], timeout='x'), 'new_group: the timeout is'),
            (lambda: dist.split_group(split_ranks=[['0']]), 'split_group: a rank is a whole number'),
            (lambda: dist.broadcast_object_list(None, src=0), 'broadcast_object_list(): object_list is a list'),
            (lambda: dist.recv(None, 0), 'recv() takes tensors, not NoneType'),
            (lambda: torch.nn.parallel.DistributedDataParallel(None), 'DistributedDataParallel: module is a Module'),
            (lambda: torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2), bucket_cap_mb='a'),
             'DistributedDataParallel: bucket_cap_mb is a number')):
        tap.raises(TypeError, call, text)
    for name, call in (('new_group', lambda given: dist.new_group([0], timeout=given)),
                       ('split_group', lambda given: dist.split_group(split_ranks=[[0]], timeout=given)),
                       ('monitored_barrier', lambda given: dist.monitored_barrier(timeout=given))):
        for wrong in (0, -1, datetime.timedelta(seconds=-5), float('nan')):
            tap.raises(ValueError, lambda call=call, given=wrong: call(given), f'{name}: the timeout is ')
    tap.raises(ValueError, lambda: dist.broadcast(x, 2**40), f'broadcast: rank {2**40} is out of range')
    tap.raises(ValueError, lambda: dist.send(x, 0, tag=2**40), f'send: the tag is {2**40}')
    tap.raises(ValueError, lambda: dist.batch_isend_irecv(None), 'batch_isend_irecv: the list')
    assert x.tolist() == [1, 1, 1]


def rank_gradients_are_those_of_one_process():
    """Each rank has a part of the batch; the mean of the gradients is that of the whole."""
    rank = dist.get_rank()
    torch.manual_seed(3)
    net, data, target = torch.nn.Linear(4, 2), torch.randn(6, 4), torch.randn(6, 2)
    torch.nn.functional.mse_loss(net(data), target).backward()
    whole = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    torch.nn.functional.mse_loss(net(data[2 * rank: 2 * rank + 2]), target[2 * rank: 2 * rank + 2]).backward()
    for parameter, expected in zip(net.parameters(), whole):
        dist.all_reduce(parameter.grad, op=dist.ReduceOp.AVG)
        assert torch.allclose(parameter.grad, expected, atol=1e-6)


def _data():
    torch.manual_seed(5)
    return torch.randn(12, 4), torch.randn(12, 3)


def _net(seed):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 3))


def _mine(x):
    rank = dist.get_rank()
    return x[4 * rank: 4 * rank + 4]


def rank_a_module_learns_as_in_one_process():
    """Without the batch norm the steps are those of one process with the whole batch."""
    data, target = _data()
    torch.manual_seed(1)
    whole = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    torch.manual_seed(1 if dist.get_rank() == 0 else 100)  # the others get the parameters of rank 0
    part = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    model = torch.nn.parallel.DistributedDataParallel(part, bucket_cap_mb=1e-4)
    assert list(model.state_dict()) == ['module.' + name for name in whole.state_dict()]
    assert model._exchange[0].get_n_buckets() > 1
    steps = [torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9) for net in (whole, model)]
    for _ in range(5):
        for step in steps:
            step.zero_grad()
        loss = torch.nn.functional.mse_loss(whole(data), target)
        loss.backward()
        torch.nn.functional.mse_loss(model(_mine(data)), _mine(target)).backward()
        for a, b in zip(whole.parameters(), model.parameters()):
            assert torch.allclose(a.grad, b.grad, atol=1e-6), (a.grad, b.grad)
        for step in steps:
            step.step()
    for a, b in zip(whole.parameters(), part.parameters()):
        assert torch.allclose(a, b, atol=1e-5)


def rank_gradients_are_added_up_without_exchange():
    data, target = _data()
    torch.manual_seed(1)
    whole, part = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3)
    whole.load_state_dict(part.state_dict())
    model = torch.nn.parallel.DistributedDataParallel(part)
    dist.broadcast(whole.weight.data, 0)
    for p, q in zip(whole.parameters(), part.parameters()):
        assert torch.equal(p.detach() * 1, q.detach() * 1)
    (whole(data).sum() * 2).backward()
    with model.no_sync():
        assert not model.require_backward_grad_sync
        model(_mine(data)).sum().backward()
        if dist.get_rank() == 1:
            assert torch.allclose(part.bias.grad, torch.full((3,), 4.0))
    model(_mine(data)).sum().backward()
    for p, q in zip(whole.parameters(), part.parameters()):
        assert torch.allclose(p.grad, q.grad * 3, atol=1e-5)


def rank_buffers_are_those_of_rank_0():
    data, _target = _data()
    model = torch.nn.parallel.DistributedDataParallel(_net(dist.get_rank()))
    for _ in range(2):
        model(_mine(data)).sum().backward()
    model.eval()
    mean = model.module[1].running_mean.clone()
    model.train()
    model(_mine(data))  # takes them again
    found = [None] * N
    dist.all_gather_object(found, mean.tolist())
    assert found[0] != found[1]  # each had gone on by itself
    dist.all_gather_object(found, model.module[0].weight.tolist())
    assert found[0] == found[1] == found[2]


class _Two(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = (torch.nn.Linear(2, 1) for _ in range(3))

    def forward(self, x, which=None):
        return {'y': self.b(x)} if which == 'b' else [self.a(x)]


def rank_unused_parameters_are_found():
    rank = dist.get_rank()
    model = torch.nn.parallel.DistributedDataParallel(_Two(), find_unused_parameters=True)
    for _ in range(2):
        output = model(torch.ones(1, 2), which='b' if rank == 0 else None)
        output = output['y'] if rank == 0 else output[0]
        output.sum().backward()
    assert torch.allclose(model.module.b.weight.grad, torch.full((1, 2), 2 / 3)), model.module.b.weight.grad
    assert torch.allclose(model.module.a.weight.grad, torch.full((1, 2), 4 / 3))
    assert model.module.c.weight.grad is None  # nobody has used it
    dist.barrier()
    plain = torch.nn.parallel.DistributedDataParallel(_Two())
    plain(torch.ones(1, 2))[0].sum().backward()
    error = tap.raises(RuntimeError, lambda: plain(torch.ones(1, 2)), 'got no gradient in the last')
    assert 'find_unused_parameters' in str(error) and '“c.bias”' in str(error), error


def rank_modules_that_differ_are_refused():
    if dist.get_rank() == 2:
        net = torch.nn.Linear(4, 5)
    else:
        net = torch.nn.Linear(4, 3)
    tap.raises(ValueError, lambda: torch.nn.parallel.DistributedDataParallel(net),
               'distributed_module: the ranks differ: “weight” is float32 [3, 4] on rank 0, and float32 [5, 4] on rank '
               '2')
    tap.raises(ValueError, lambda: fsdp.fully_shard(net), 'module_shards: the ranks differ: “weight” is float32 [3, 4]')
    tap.raises(ValueError, lambda: torch.nn.parallel.DistributedDataParallel(torch.nn.ReLU()), 'no parameter')
    tap.raises(ValueError, lambda: torch.nn.parallel.DistributedDataParallel(net, bucket_cap_mb=0), 'more than 0')


def run_late():
    """The first rank waits for one that does not come, in a group of both."""
    dist.init_process_group('mpi', timeout=60)
    groups = [dist.new_group([0, 1], timeout=1) for _ in range(4)]
    x, nets = torch.ones(1, 3), [torch.nn.Linear(3, 1) for _ in range(2)]
    if dist.get_rank() < 2:
        nets = [torch.nn.parallel.DistributedDataParallel(net, process_group=one) for net, one in zip(nets, groups)]
        norm = torch.nn.SyncBatchNorm(3, process_group=groups[2])
        shards = fsdp.fully_shard(torch.nn.Linear(3, 3), mesh=groups[3])
        for _ in range(3):  # the first passes compare settings, and the order of gradients
            nets[0](x).sum().backward()
            nets[0].module.weight.grad.tolist()
            nets[0].zero_grad()
    if dist.get_rank() == 0:
        late = 'rank 0 waited 1 seconds'
        nets[0](x).sum().backward()
        grad = nets[0].module.weight.grad
        work = dist.all_reduce(torch.ones(1), group=dist.group.WORLD, async_op=True)
        begin = time.monotonic()
        tap.raises(dist.DistBackendError, lambda: work.wait(datetime.timedelta(seconds=0.5)),
                   'all_reduce: rank 0: operation ', ' is not over after 0.5 seconds')
        assert time.monotonic() - begin > 0.4
        tap.raises(ValueError, lambda: work.wait(-1), 'Work.wait: the timeout is -1 seconds')
        tap.raises(dist.DistBackendError, grad.tolist, late)
        for text in (repr(grad), f'{grad}', str(grad)):
            assert text.startswith('tensor(..., size=(1, 3)') and late in text and ', error="' in text, text
        calls = (lambda: grad.sum().item(), lambda: torch.optim.SGD(nets[0].parameters(), lr=1.0).step(),
                 lambda: norm(torch.ones(4, 3)), lambda: shards(x))
        for call in calls:
            error = tap.raises(dist.DistBackendError, call)
            assert isinstance(error, RuntimeError) and isinstance(error, GLib.Error), error
            assert late in str(error) and 'quark' not in str(error), error
    else:
        time.sleep(5)  # the timeouts of the other rank are over
        work = dist.all_reduce(torch.ones(1), group=dist.group.WORLD, async_op=True)
    assert work.wait(datetime.timedelta(seconds=50))
    dist.barrier()
    whole, part = dist.group.WORLD, dist.new_group()
    dist.destroy_process_group()
    for group in (whole, part):  # they are still referred to
        tap.raises(ValueError, lambda one=group: dist.all_reduce(torch.ones(1), group=one),
                   'all_reduce: destroy_process_group() was called')
        tap.raises(ValueError, lambda one=group: dist.destroy_process_group(one), 'was called for this group')


def run_rank():
    dist.init_process_group('mpi', timeout=datetime.timedelta(seconds=60))
    assert dist.is_initialized() and dist.get_world_size() == N and dist.get_backend() == 'mpi'
    assert dist.group.WORLD is not None
    for name, function in list(globals().items()):
        if name.startswith('rank_'):
            function()
            dist.barrier()
    dist.destroy_process_group()
    assert not dist.is_initialized()


@tap.case
def three_processes_agree():
    if not dist.is_mpi_available() or not shutil.which('mpirun'):
        raise tap.Skip('MPI is not installed')
    done = subprocess.run([*MPIRUN, sys.executable, __file__, '--rank'], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@tap.case
def what_times_out_is_an_error_of_the_group():
    if not dist.is_mpi_available() or not shutil.which('mpirun'):
        raise tap.Skip('MPI is not installed')
    done = subprocess.run([*MPIRUN, sys.executable, __file__, '--late'], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@tap.case
def calls_without_a_group_raise():
    tap.raises(ValueError, lambda: dist.init_process_group('mpi', rank=5), 'rank is given without world_size')
    tap.raises(ValueError, lambda: dist.init_process_group('mpi', world_size=5), 'world_size is given without rank')
    tap.raises(ValueError, lambda: dist.init_process_group('mpi', rank=5, world_size=2), 'out of range for 2 processes')
    tap.raises(TypeError, lambda: dist.init_process_group('mpi', init_method=5), 'a URL')
    tap.raises(TypeError, lambda: dist.init_process_group('mpi', rank='0', world_size=1), "not '0'")
    tap.raises(TypeError, lambda: dist.init_process_group('mpi', rank=0, world_size=1.0),
               'world_size is a whole number')
    tap.raises(ValueError, dist.get_rank, 'call init_process_group() before')
    tap.raises(ValueError, lambda: dist.all_reduce(torch.ones(1)), 'call init_process_group() before')
    for backend in ('gloo', 'cpu:gloo,cuda:nccl'):
        tap.raises(NotImplementedError, lambda name=backend: dist.init_process_group(name), 'mpi')
    tap.raises(TypeError, lambda: dist.init_process_group(3), 'str')
    tap.raises(ValueError, lambda: dist.init_process_group('mpi', init_method='http://x'), 'begins with')
    assert not dist.is_initialized()
    assert torch.distributed is dist


@tap.case
def a_group_that_fails_is_gone():
    if not dist.is_mpi_available() or torch.cuda.is_available():
        raise tap.Skip('MPI is not installed, or there is a GPU')
    for _ in range(2):
        tap.raises(Exception, lambda: dist.init_process_group('mpi', device_id=0), 'cuda:0')
        assert not dist.is_initialized()


@tap.case
def names_of_pytorch_are_there_or_refused():
    assert dist.Backend('MPI') == 'mpi' == dist.Backend.MPI and dist.timedelta is datetime.timedelta
    assert dist.get_default_backend_for_device('cpu') == 'mpi'
    tap.raises(ValueError, lambda: dist.get_default_backend_for_device('meta'), 'no backend')
    assert dist.supports_complex(dist.ReduceOp.SUM) and not dist.supports_complex(dist.ReduceOp.MAX)
    assert not dist.is_backend_available('ucc') and dist.is_backend_available('mpi') == dist.is_mpi_available()
    assert dist.get_pg_count() == 0 and dist.get_node_local_rank(5) == 5
    tap.raises(RuntimeError, dist.get_node_local_rank, 'LOCAL_RANK')
    for name in ('AllreduceOptions', 'breakpoint', 'ProcessGroupNCCL', 'rendezvous'):
        tap.raises(AttributeError, lambda name=name: getattr(dist, name), 'has no counterpart')
    tap.raises(AttributeError, lambda: fsdp.FullyShardedDataParallel, 'fully_shard')
    tap.raises(AttributeError, lambda: fsdp.nothing, 'has no attribute')
    tap.raises(AttributeError, lambda: dist.nothing, 'has no attribute')
    for module, name in ((tensor_parallel, 'SequenceParallel'), (tensor_parallel, 'loss_parallel'),
                         (dist.tensor, 'DTensor'), (dist.checkpoint, 'async_save'),
                         (dist.checkpoint, 'FileSystemWriter')):
        tap.raises(AttributeError, lambda module=module, name=name: getattr(module, name), f'{name!r}: ')
        tap.raises(AttributeError, lambda module=module: module.nothing, "attribute 'nothing'")
    tap.raises(AttributeError, lambda: dist.rpc, 'by groups')
    for name in ('nn.functional', 'nn', 'rpc', 'pipelining'):
        tap.raises(ImportError, lambda name=name: importlib.import_module(f'gtorch.distributed.{name}'), "': ")
    tap.raises(ImportError, lambda: importlib.import_module('gtorch.distributed.nothing'), 'No module named')
    os.environ['TORCH_DISTRIBUTED_DEBUG'] = 'INFO'
    dist.set_debug_level_from_env()
    assert dist.get_debug_level() == dist.DebugLevel.INFO
    os.environ['TORCH_DISTRIBUTED_DEBUG'] = 'MUCH'
    tap.raises(RuntimeError, dist.set_debug_level_from_env, 'MUCH')
    dist.set_debug_level(dist.DebugLevel.OFF)
    del os.environ['TORCH_DISTRIBUTED_DEBUG']


@tap.case
def stores_have_keys_and_values():
    with tempfile.TemporaryDirectory() as folder:
        server = dist.TCPStore('localhost', 0, is_master=True, token='t')
        stores = [dist.HashStore(), dist.FileStore(f'{folder}/store'), server,
                  dist.TCPStore('localhost', server.get_port(), is_master=False, token='t'),
                  dist.PrefixStore('p', dist.HashStore())]
        for i, store in enumerate(stores):
            key = f'k{i}'
            store.set(key, 'value')
            assert store.get(key) == b'value' and store.add('n', 2) == 2 + 2 * (i == 3)
            assert store.compare_set(key, 'value', b'other') == b'other' and store.check([key, 'n'])
            store.append(key, '!')
            assert store.get(key) == b'other!' and store.delete_key(key) and not store.delete_key(key)
            store.set('empty', b'')
            assert store.get('empty') == b'' and store.num_keys() >= 2
            store.set_timeout(datetime.timedelta(milliseconds=20))
            assert store.timeout == datetime.timedelta(milliseconds=20)
            tap.raises(dist.DistStoreError, lambda one=store: one.get('missing'), 'missing')
            tap.raises(dist.DistStoreError, lambda one=store: one.wait(['missing'], 0.01))
            tap.raises(TypeError, lambda one=store: one.wait('missing'))
            tap.raises(TypeError, lambda one=store: one.set('k', 3))
            store.set('text', 'x')
            tap.raises(ValueError, lambda one=store: one.add('text', 1), 'not a decimal number')
            store.multi_set(['one', 'two'], ['1', b'2'])
            assert store.multi_get(['one', 'two']) == [b'1', b'2']
            for keys, values in ((['p', 'q'], ['1']), (['p'], ['1', '2'])):
                tap.raises(ValueError, lambda one=store, of=(keys, values): one.multi_set(*of), 'one value for each')
            assert not store.check(['p'])


@tap.case
def handlers_of_signals_raise_what_they_raise():
    class Stop(BaseException):
        pass

    def stop(*_):
        raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        tap.raises(Stop, lambda: dist.HashStore().wait(['missing'], 0.3))
    finally:
        signal.signal(signal.SIGALRM, before)


@tap.case
def a_store_waits_without_the_interpreter():
    """A thread that waits for a key lets the others go on."""
    store = dist.HashStore()
    found = []
    thread = threading.Thread(target=lambda: found.append(store.get('k')))
    thread.start()
    time.sleep(0.02)
    store.set('k', 'v')
    thread.join(20)
    assert found == [b'v']


if __name__ == '__main__':
    {'--rank': run_rank, '--late': run_late}.get(''.join(sys.argv[1:]), tap.main)()
