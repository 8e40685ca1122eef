# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""torch.distributed with NCCL: two ranks, with the driver and the NCCL of tests/fake-cuda, or on two GPUs."""

import datetime
import os
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'style'))
import tap

import gtorch as torch
import gtorch.distributed as dist
from gtorch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from gtorch.distributed.fsdp import CPUOffloadPolicy, fully_shard

N = 2


def rank_tensors_are_reduced_and_gathered():
    rank = dist.get_rank()
    x = torch.full((3,), rank + 1.0, device='cuda')
    dist.all_reduce(x)
    assert x.tolist() == [3.0] * 3, x
    work = dist.all_reduce(x, op=dist.ReduceOp.AVG, async_op=True)
    assert work.wait() and not work.is_blocking() and x.tolist() == [3.0] * 3
    assert work.wait(datetime.timedelta(seconds=20)) and work.is_completed()
    both = [torch.zeros(3, device='cuda') for _ in range(N)]
    dist.all_gather(both, torch.full((3,), float(rank), device='cuda'))
    assert [one.tolist() for one in both] == [[0.0] * 3, [1.0] * 3]
    half = torch.zeros(2, device='cuda')
    dist.reduce_scatter_tensor(half, torch.arange(4, device='cuda').float())
    assert half.tolist() == [4.0 * rank, 4.0 * rank + 2]
    dist.broadcast(half, src=1)
    assert half.tolist() == [4.0, 6.0]
    dist.barrier(device_ids=[torch.cuda.current_device()])
    tap.raises(NotImplementedError, lambda: dist.all_reduce(half.to(torch.int16)), 'int16')
    tap.raises(RuntimeError, lambda: dist.all_reduce(torch.zeros(1)), 'has tensors on GPUs')


def rank_messages_are_exchanged():
    rank, other = dist.get_rank(), 1 - dist.get_rank()
    mine, theirs = torch.full((3,), float(rank), device='cuda'), torch.zeros(3, device='cuda')
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, mine, other), dist.P2POp(dist.irecv, theirs, other)])
    for work in works:
        work.wait()
    assert theirs.tolist() == [float(other)] * 3
    if rank == 0:
        dist.send(mine, 1)
    else:
        dist.recv(theirs, 0)
        assert theirs.tolist() == [0.0] * 3


def rank_objects_are_exchanged():
    found = [None] * N
    dist.all_gather_object(found, {'rank': dist.get_rank()})
    assert found == [{'rank': 0}, {'rank': 1}]
    objects = ['first', 2] if dist.get_rank() == 0 else [None, None]
    dist.broadcast_object_list(objects, src=0)
    assert objects == ['first', 2]


def rank_groups_of_one_rank_exist():
    made = [dist.new_group([rank]) for rank in range(N)]
    own = made[dist.get_rank()]
    x = torch.ones(2, device='cuda')
    dist.all_reduce(x, group=own)
    assert x.tolist() == [1.0, 1.0] and dist.get_world_size(own) == 1


def rank_modules_train_together():
    torch.manual_seed(dist.get_rank())
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1).cuda())
    x = torch.full((1, 3), dist.get_rank() + 1.0, device='cuda')
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = model.module.weight.detach().clone()
    for _ in range(2):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
    assert torch.allclose(model.module.weight.grad, torch.full((1, 3), 1.5, device='cuda'))
    assert torch.allclose(model.module.weight, before - 0.3)


def rank_steps_are_captured():
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1).cuda())
    x = torch.full((1, 3), dist.get_rank() + 1.0, device='cuda')

    def step():
        model.zero_grad(set_to_none=False)
        model(x).sum().backward()

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for _ in range(2):
        graph.replay()
    torch.cuda.synchronize()
    assert torch.allclose(model.module.weight.grad, torch.full((1, 3), 1.5, device='cuda')), model.module.weight.grad


def run_rank(rank, path):
    gpu = rank % torch.cuda.device_count()
    torch.cuda.set_device(gpu)
    dist.init_process_group('nccl', init_method=f'file://{path}', rank=rank, world_size=N, device_id=gpu,
                            timeout=datetime.timedelta(seconds=60))
    assert dist.get_backend() == 'nccl' and dist.is_nccl_available()
    only = os.environ.get('NCCL_TEST_ONLY', '')
    for name, function in list(globals().items()):
        if name.startswith('rank_') and only in name:
            function()
            if name != 'rank_the_others_go_on':
                dist.barrier()
    dist.destroy_process_group()


@tap.case
def two_processes_agree():
    if not torch.cuda.is_available():
        raise tap.Skip('no GPU')
    if not dist.is_nccl_available() or torch.cuda.device_count() < N:
        raise tap.Skip('no NCCL, or one GPU only')
    with tempfile.TemporaryDirectory() as folder:
        ranks = [subprocess.Popen([sys.executable, __file__, '--rank', str(rank), f'{folder}/store'],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for rank in range(N)]
        outputs = [rank.communicate(timeout=100)[0] for rank in ranks]
    assert all(rank.returncode == 0 for rank in ranks), '\n'.join(outputs)


def exchange_as_thread(rank):
    """Messages in each order, and a graph that has a collective."""
    other = 1 - rank
    for i in range(3):
        sent, got = torch.full((1000,), 10.0 * i + rank, device='cuda'), torch.zeros(1000, device='cuda')
        if i == 0:  # first one way, then the other
            (dist.send if rank == 0 else dist.recv)(sent if rank == 0 else got, other)
            (dist.recv if rank == 0 else dist.send)(got if rank == 0 else sent, other)
        elif i == 1:  # both send first
            dist.send(sent, other)
            dist.recv(got, other)
        else:
            for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, sent, other),
                                                dist.P2POp(dist.irecv, got, other)]):
                work.wait()
        assert torch.equal(got.cpu(), torch.full((1000,), 10.0 * i + other)), (i, got[:3])
    total = torch.ones(4, device='cuda') * (rank + 1)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode='thread_local'):  # the other thread goes on meanwhile
        dist.all_reduce(total)
    total.fill_(rank + 1.0)
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    assert total.tolist() == [12.0] * 4, total


def run_thread(rank, store, found):
    """What a thread does that is a rank: the current device and the group are its own."""
    try:
        torch.cuda.set_device(rank)
        dist.init_process_group('nccl', store=store, rank=rank, world_size=N, device_id=rank,
                                timeout=datetime.timedelta(seconds=60))
        assert dist.get_rank() == rank and dist.get_pg_count() == 1
        x = torch.full((2,), rank + 1.0, device='cuda')
        assert x.device.index == rank
        dist.all_reduce(x)
        assert x.tolist() == [3.0, 3.0]
        dist.all_reduce(x, op=dist._make_nccl_premul_sum(rank + 1))
        assert x.tolist() == [9.0, 9.0]
        part = torch.zeros(1, device='cuda')
        dist.reduce_scatter_tensor(part, x, op=dist._make_nccl_premul_sum(torch.tensor(0.5)))
        assert part.tolist() == [9.0]
        tap.raises(NotImplementedError, lambda: dist.all_reduce(x, op=dist.ReduceOp.PREMUL_SUM), 'PREMUL_SUM')
        tap.raises(NotImplementedError, lambda: dist.send(x, 1 - rank, tag=3), 'NCCL has no tags')
        exchange_as_thread(rank)
        net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 3)).cuda()
        with torch.no_grad():
            for i, p in enumerate(net.parameters()):
                p.copy_(torch.arange(p.numel()).reshape(p.shape).float().sin() + i)
        for layer in net:
            fully_shard(layer, offload_policy=CPUOffloadPolicy())
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        for _ in range(2):
            optimizer.zero_grad()
            net(torch.full((1, 3), rank + 1.0, device='cuda')).sum().backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
        assert all(p.device.type == 'cpu' and p.grad.device.type == 'cpu' for p in net.parameters())
        found[rank] = {name: one.tolist() for name, one in
                       get_model_state_dict(net, options=StateDictOptions(full_state_dict=True)).items()}
        dist.destroy_process_group()
        assert not dist.is_initialized()
    except BaseException as error:
        found[rank] = error
        raise


@tap.case
def threads_are_ranks():
    if not torch.cuda.is_available() or not dist.is_nccl_available() or torch.cuda.device_count() < N:
        raise tap.Skip('no NCCL, or not two GPUs')
    # the groups of a round may be freed in the next one, while the ranks exchange
    for _round in range(4):
        store, found = dist.HashStore(), {}
        threads = [threading.Thread(target=run_thread, args=(rank, store, found)) for rank in range(N)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not any(isinstance(one, BaseException) for one in found.values()), found
    alone = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 3))
    with torch.no_grad():
        for i, p in enumerate(alone.parameters()):
            p.copy_(torch.arange(p.numel()).reshape(p.shape).float().sin() + i)
    optimizer = torch.optim.SGD(alone.parameters(), lr=0.01)
    for _ in range(2):
        optimizer.zero_grad()
        (alone(torch.tensor([[1.0] * 3, [2.0] * 3])).sum() / N).backward()
        torch.nn.utils.clip_grad_norm_(alone.parameters(), 1.0)
        optimizer.step()
    for name, one in alone.state_dict().items():
        assert found[0][name] == found[1][name] and torch.allclose(torch.tensor(found[0][name]), one, atol=1e-5), name
    assert not dist.is_initialized()


def rank_the_others_go_on():
    """The last: the group of all is another one afterwards."""
    if dist.get_rank() == 1:
        return
    rest = dist.shrink_group([1])
    assert rest is dist.group.WORLD and dist.get_world_size() == 1
    x = torch.ones(2, device='cuda')
    dist.all_reduce(x)
    assert x.tolist() == [1.0, 1.0]
    tap.raises(ValueError, lambda: dist.shrink_group([0]), 'excluded')
    tap.raises(ValueError, lambda: dist.shrink_group([7]), 'out of range')
    tap.raises(ValueError, lambda: dist.shrink_group([0], shrink_flags=5), 'shrink_flags')


@tap.case
def a_group_needs_a_store():
    tap.raises(ValueError, lambda: dist.init_process_group('nccl'), 'there is no store')
    assert not dist.is_initialized()


if __name__ == '__main__':
    run_rank(int(sys.argv[2]), sys.argv[3]) if sys.argv[1:2] == ['--rank'] else tap.main()
