# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""torch.distributed with NCCL: two ranks, with the driver and the NCCL of tests/fake-cuda, or on two GPUs."""

import datetime
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'style'))
import tap

import gtorch as torch
import gtorch.distributed as dist

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


@tap.case
def a_group_needs_a_store():
    tap.raises(ValueError, lambda: dist.init_process_group('nccl'), 'there is no store')
    assert not dist.is_initialized()


if __name__ == '__main__':
    run_rank(int(sys.argv[2]), sys.argv[3]) if sys.argv[1:2] == ['--rank'] else tap.main()
