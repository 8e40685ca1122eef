#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Models that two GPUs train together, against one that trains alone: parameters that are spread, states of optimizers,
layers of which each GPU computes a part, statistics of batches, and DataParallel. With the driver and the NCCL of
tests/fake-cuda, or on two GPUs; gtorch-run starts the ranks if the first argument is its path.

SHARDED_TEST_ONLY=words runs the functions with these in their names; SHARDED_TEST_SHOW=1 prints how far results are
apart."""

import datetime
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'style'))
import gtorch as torch
import gtorch.distributed as dist
import tap
from gtorch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from gtorch.distributed.device_mesh import init_device_mesh
from gtorch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard
from gtorch.distributed.optim import ZeroRedundancyOptimizer
from gtorch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

N = 2
BATCH, WIDTH, STEPS = 8, 33, 4
FULL = StateDictOptions(full_state_dict=True)
# An element of a product is a sum of WIDTH terms; the order of sums over the batch differs between one GPU and two.
TOLERANCE = 2e-5
HALF = 2e-2  # bfloat16 has 8 bits
ONLY, SHOWS = os.environ.get('SHARDED_TEST_ONLY', ''), 'SHARDED_TEST_SHOW' in os.environ

# Products are those of float32, on one GPU and on two.
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False


class Block(torch.nn.Module):
    """What a transformer has beside its attention."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 2 * WIDTH + 1), torch.nn.Linear(2 * WIDTH + 1, WIDTH)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


class Net(torch.nn.Module):
    """Three blocks and a head."""

    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block() for _ in range(3)])
        self.head = torch.nn.Linear(WIDTH, 5)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def made(kind=Net):
    """The same on all ranks, whatever GPU it is on."""
    torch.manual_seed(1)
    return kind().cuda()


def batch(i):
    torch.manual_seed(100 + i)
    return torch.randn(BATCH, WIDTH).cuda(), torch.randn(BATCH, 5).cuda()


def own(x):
    n = BATCH // N
    return x[n * dist.get_rank():n * (dist.get_rank() + 1)]


def loss(model, x, y):
    return torch.nn.functional.mse_loss(model(x).float(), y)


def adam(params):
    # eps keeps gradients that are little more than rounding from making steps as large as the others
    return torch.optim.AdamW(params, lr=1e-3, eps=1e-4)


def train(model, optimizer, part=lambda x: x):
    losses = []
    for i in range(STEPS):
        x, y = batch(i)
        optimizer.zero_grad()
        value = loss(model, part(x), part(y))
        value.backward()
        optimizer.step()
        losses.append(value.detach())
    return torch.stack(losses)


def alone():
    """What one GPU comes to: losses and parameters."""
    model = made()
    return train(model, adam(model.parameters())), model.state_dict()


def near(name, a, b, tolerance=TOLERANCE):
    a, b = a.detach().cpu().double(), b.detach().cpu().double()
    off = ((a - b).abs() / (1 + b.abs())).max().item()
    if SHOWS and dist.is_initialized() and dist.get_rank() == 0:
        print(f'{sys._getframe(1).f_code.co_name}: {name}: {off:.2e}', file=sys.stderr)
    assert a.shape == b.shape and off <= tolerance, f'{name}: off by {off}, more than {tolerance}'


def same_state(found, wanted, tolerance=TOLERANCE):
    assert list(found) == list(wanted), (list(found), list(wanted))
    worst = max(found, key=lambda name: (found[name].cpu().double() - wanted[name].cpu().double()).abs().max().item())
    near(worst, found[worst], wanted[worst], tolerance)


def same_losses(found, wanted, tolerance=TOLERANCE):
    """Those of the whole batch are the means of those of its parts."""
    found = found.clone()
    dist.all_reduce(found, op=dist.ReduceOp.AVG)
    near('losses', found, wanted, tolerance)


def sharded(**options):
    model = made()
    for block in model.blocks:
        fully_shard(block, **options)
    return fully_shard(model, **options)


def compare_sharded(model, tolerance=TOLERANCE):
    losses, state = alone()
    same_losses(train(model, adam(model.parameters()), own), losses, tolerance)
    same_state(get_model_state_dict(model, options=FULL), state, tolerance)


def rank_parameters_are_spread():
    model = sharded()
    assert model.head.weight.shape[0] in (2, 3)
    compare_sharded(model)


def rank_parameters_stay_whole_after_forward():
    compare_sharded(sharded(reshard_after_forward=False))


def rank_parts_are_in_the_memory_of_the_cpu():
    model = sharded(offload_policy=CPUOffloadPolicy())
    assert model.head.weight.device.type == 'cpu'
    compare_sharded(model)


def rank_computations_have_fewer_bits():
    compare_sharded(sharded(mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float32)), HALF)


def rank_norms_are_clipped():
    model, single = sharded(), made()
    x, y = batch(0)
    loss(model, own(x), own(y)).backward()
    loss(single, x, y).backward()
    norms = [torch.nn.utils.clip_grad_norm_(one.parameters(), 0.01) for one in (model, single)]
    near('norm', *norms)


def rank_states_of_optimizers_are_divided():
    losses, state = alone()
    model = torch.nn.parallel.DistributedDataParallel(made())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-3, eps=1e-4)
    same_losses(train(model, optimizer, own), losses)
    same_state(model.module.state_dict(), state)
    plain = torch.nn.parallel.DistributedDataParallel(made())
    train(plain, adam(plain.parameters()), own)
    for (name, p), q in zip(model.named_parameters(), plain.parameters()):
        assert torch.equal(p, q), f'{name}: not the bits of AdamW alone'


def rank_gradients_are_exchanged_in_buckets():
    losses, state = alone()
    for options in ({}, {'bucket_cap_mb': 0.01}, {'static_graph': True}):
        model = torch.nn.parallel.DistributedDataParallel(made(), **options)
        same_losses(train(model, adam(model.parameters()), own), losses)
        same_state(model.module.state_dict(), state)


def rank_layers_have_parts():
    losses, state = alone()
    model = made()
    mesh = init_device_mesh('cuda', (N,), mesh_dim_names=('model',))
    parallelize_module(model, mesh.get_group('model'), {'blocks.*.up': ColwiseParallel(),
                                                        'blocks.*.down': RowwiseParallel()})
    assert model.blocks[0].up.weight.shape[0] in (WIDTH, WIDTH + 1)
    near('losses', train(model, adam(model.parameters())), losses)
    same_state(get_model_state_dict(model, options=FULL), state)


class Normed(torch.nn.Module):
    """A network with statistics of batches."""

    norm = torch.nn.BatchNorm1d

    def __init__(self):
        super().__init__()
        # the norm takes a bias away: its gradient would be what rounding leaves, of which AdamW makes steps
        self.first, self.second = torch.nn.Linear(WIDTH, 20, bias=False), torch.nn.Linear(20, 5)
        self.norms = self.norm(20)

    def forward(self, x):
        return self.second(torch.relu(self.norms(self.first(x))))


class Synchronized(Normed):
    """The same with those of all ranks."""

    norm = torch.nn.SyncBatchNorm


def rank_batches_are_normalised_together():
    single = made(Normed)
    losses = train(single, adam(single.parameters()))
    ways = {
        'DistributedDataParallel': torch.nn.parallel.DistributedDataParallel,
        'fully_shard': fully_shard,
        'process_group': lambda model: torch.nn.parallel.DistributedDataParallel(
            torch.nn.SyncBatchNorm.convert_sync_batchnorm(model, dist.group.WORLD)),
    }
    for way, wrap in ways.items():
        model = wrap(made(Normed if way == 'process_group' else Synchronized))
        same_losses(train(model, adam(model.parameters()), own), losses)
        state = get_model_state_dict(model, options=FULL)
        same_state(state, single.state_dict())


def run_ranks():
    options = {'timeout': datetime.timedelta(seconds=60)}
    if len(sys.argv) > 2:
        options.update(init_method=f'file://{sys.argv[3]}', rank=int(sys.argv[2]), world_size=N)
    gpu = options['rank'] if 'rank' in options else int(os.environ['LOCAL_RANK'])
    torch.cuda.set_device(gpu)
    dist.init_process_group('nccl', device_id=gpu, **options)
    assert dist.get_world_size() == N
    for name, function in list(globals().items()):
        if name.startswith('rank_') and ONLY in name:
            try:
                function()
            except BaseException as error:
                raise AssertionError(f'{name}: {error}') from error
            dist.barrier()
            if dist.get_rank() == 0:
                print(f'done: {name}', flush=True)
    dist.destroy_process_group()


def need_two():
    if not torch.cuda.is_available() or torch.cuda.device_count() < N:
        raise tap.Skip('not two GPUs')


def commands(folder):
    """gtorch-run, or each rank by itself."""
    if len(sys.argv) > 1:
        return [[sys.argv[1], '-n', str(N), __file__, '--ranks']]
    return [[sys.executable, __file__, '--ranks', str(rank), f'{folder}/store'] for rank in range(N)]


@tap.case
def two_processes_come_to_what_one_does():
    need_two()
    if not dist.is_nccl_available():
        raise tap.Skip('no NCCL')
    with tempfile.TemporaryDirectory() as folder:
        ranks = [subprocess.Popen(command, env={**os.environ, 'PYTHON_EXEC': sys.executable}, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True) for command in commands(folder)]
        outputs = [rank.communicate(timeout=280)[0] for rank in ranks]
    if SHOWS:
        print('\n'.join('# ' + line for line in '\n'.join(outputs).splitlines()))
    assert all(rank.returncode == 0 for rank in ranks), '\n'.join(outputs)
    count = sum(output.count('done: rank_') for output in outputs)
    assert count == sum(name.startswith('rank_') and ONLY in name for name in globals()), outputs


@tap.case
def data_parallel_comes_to_what_one_gpu_does():
    need_two()
    losses, state = alone()
    model = made()
    parallel = torch.nn.DataParallel(model, device_ids=list(range(N)))
    near('losses', train(parallel, adam(parallel.parameters())), losses)
    same_state(model.state_dict(), state)
    torch.manual_seed(7)
    x = torch.randn(5, WIDTH).cuda()  # 3 and 2
    near('outputs', parallel(x), model(x))


if __name__ == '__main__':
    run_ranks() if sys.argv[1:2] == ['--ranks'] else tap.main()
