# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""fully_shard(): parameters of which each rank has a part; results are those of the whole module."""

import gc
import os
import sys
import weakref

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'style'))
import gtorch as torch
import gtorch.distributed as dist
import ranks
import tap
from gi.repository import GTorch
from gtorch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, set_model_state_dict
from gtorch.distributed.fsdp import MixedPrecisionPolicy, clip_grad_norm_, fully_shard

N = 3
FULL = StateDictOptions(full_state_dict=True)


class Block(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.norm = torch.nn.LayerNorm(n)
        self.up, self.down = torch.nn.Linear(n, 2 * n + 1), torch.nn.Linear(2 * n + 1, n)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


class Model(torch.nn.Module):
    def __init__(self, tied=False):
        super().__init__()
        self.embed = torch.nn.Embedding(10, 7)
        self.blocks = torch.nn.ModuleList([Block(7), Block(7)])
        self.head = torch.nn.Linear(7, 10, bias=False)
        self.scale = torch.nn.Parameter(torch.ones(1))
        if tied:
            self.head.weight = self.embed.weight

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x) * self.scale


def model(seed=1, **options):
    torch.manual_seed(seed)
    return Model(**options)


def sharded(reshard=True, policy=None, **options):
    made = model(**options)
    policy = policy or MixedPrecisionPolicy()
    inner = MixedPrecisionPolicy(policy.param_dtype, policy.reduce_dtype)
    for block in made.blocks:
        assert fully_shard(block, reshard_after_forward=reshard, mp_policy=inner) is block
    return fully_shard(made, reshard_after_forward=reshard, mp_policy=policy)


def batch(i, rank=None):
    torch.manual_seed(50 + i)
    x, y = torch.randint(0, 10, (2 * N, 5)), torch.randint(0, 10, (2 * N, 5))
    return (x, y) if rank is None else (x[2 * rank: 2 * rank + 2], y[2 * rank: 2 * rank + 2])


def loss_of(net, x, y):
    return torch.nn.functional.cross_entropy(net(x).flatten(0, 1).float(), y.flatten())


def whole_grads(net):
    return [GTorch.ModuleShards.find(p).gather(p) for p in net.parameters()]


def close(a, b, tolerance=1e-5):
    return torch.allclose(a, b, rtol=tolerance, atol=tolerance)


def rank_parts_are_rows():
    rank = dist.get_rank()
    net = sharded()
    for p, q in zip(net.parameters(), model().parameters()):
        per = -(-q.shape[0] // N)
        assert torch.equal(p.detach(), q.detach()[rank * per: (rank + 1) * per]), (p.shape, q.shape)
        assert torch.equal(GTorch.ModuleShards.find(p).gather(p), q.detach())
    assert [name for name, _p in net.named_parameters()] == [name for name, _p in model().named_parameters()]
    assert (net.scale.numel() == 1) == (rank == 0)
    n = sum(one._shards.shards.get_n_elements() for one in (net, *net.blocks))
    assert n < sum(p.numel() for p in model().parameters()) / 2
    assert torch.equal(net(batch(0)[0]), model()(batch(0)[0]))


def rank_steps_are_those_of_one_process():
    rank = dist.get_rank()
    for reshard in (True, False):
        for tied in (False, True):
            alone, net = model(tied=tied), sharded(reshard, tied=tied)
            optimizers = [torch.optim.Adam(one.parameters(), lr=0.01) for one in (alone, net)]
            for i in range(4):
                for one, (x, y), optimizer in zip((alone, net), (batch(i), batch(i, rank)), optimizers):
                    optimizer.zero_grad()
                    loss_of(one, x, y).backward()
                if i == 0:
                    for p, q in zip(net.parameters(), alone.parameters()):
                        per = -(-q.shape[0] // N)
                        assert p.grad.shape == p.shape
                        assert close(p.grad, q.grad[rank * per: (rank + 1) * per]), (reshard, tied, p.grad, q.grad)
                for optimizer in optimizers:
                    optimizer.step()
            for p, q in zip(whole_grads(net), alone.parameters()):
                assert close(p, q, 1e-4), (reshard, tied, (p - q).abs().max())
            moments = sum(one.numel() for one in optimizers[1].state[net.head.weight].values() if one.dim() > 0)
            assert moments == 2 * net.head.weight.numel()


def counter():
    work = dist.barrier(async_op=True)
    work.wait()
    return work.get_sequence()


def rank_the_backward_pass_gathers_again():
    rank = dist.get_rank()
    counts = {}
    for reshard in (True, False):
        net = sharded(reshard)
        x, y = batch(0, rank)
        before = counter()
        loss = loss_of(net, x, y)
        middle = counter()
        loss.backward()
        counts[reshard] = middle - before - 1, counter() - middle - 1
    assert counts == {True: (3, 6), False: (3, 3)}, counts


def rank_gradients_are_added_up():
    rank = dist.get_rank()
    alone, net = model(), sharded()
    for i in range(2):
        loss_of(alone, *batch(i)).backward()
        loss_of(net, *batch(i, rank)).backward()
    with torch.no_grad():
        assert close(net(batch(0)[0]), alone(batch(0)[0]))
    for p, q in zip(net.parameters(), alone.parameters()):
        per = -(-q.shape[0] // N)
        assert close(p.grad, q.grad[rank * per: (rank + 1) * per])
    norm = clip_grad_norm_(net.parameters(), 0.1)
    expected = torch.nn.utils.clip_grad_norm_(alone.parameters(), 0.1)
    assert abs(norm - float(expected)) < 1e-4
    for p, q in zip(net.parameters(), alone.parameters()):
        per = -(-q.shape[0] // N)
        assert close(p.grad, q.grad[rank * per: (rank + 1) * per])


def rank_modules_compute_in_another_dtype():
    rank = dist.get_rank()
    seen = []
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32, output_dtype=torch.float32)
    net, alone = sharded(policy=policy), model()
    net.blocks[0].up.register_forward_hook(lambda _m, inputs, output: seen.append((inputs[0].dtype, output.dtype)))
    x, y = batch(0, rank)
    output = net(x)
    assert output.dtype == torch.float32 and seen == [(torch.bfloat16, torch.bfloat16)], seen
    loss_of(net, x, y).backward()
    loss_of(alone, *batch(0)).backward()
    for p, q in zip(net.parameters(), alone.parameters()):
        per = -(-q.shape[0] // N)
        assert p.grad.dtype == p.dtype == torch.float32
        assert close(p.grad, q.grad[rank * per: (rank + 1) * per], 0.03)


def rank_frozen_parameters_and_hooks_around():
    rank = dist.get_rank()
    alone, net = model(), model()
    for one in (alone, net):
        one.blocks[0].up.weight.requires_grad_(False)
    for block in net.blocks:
        fully_shard(block)
    fully_shard(net)
    loss_of(alone, *batch(0)).backward()
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(1) or t, lambda t: t):
        loss = loss_of(net, *batch(0, rank))
    loss.backward()
    assert kept and net.blocks[0].up.weight.grad is None
    for p, q in zip(net.parameters(), alone.parameters()):
        per = -(-q.shape[0] // N)
        assert q.grad is None or close(p.grad, q.grad[rank * per: (rank + 1) * per])
    checked = sharded()
    x, y = batch(0, rank)

    def run(ids):
        return torch.utils.checkpoint.checkpoint(checked, ids, use_reentrant=False)

    loss_of(run, x, y).backward()
    assert close(checked.head.weight.grad, net.head.weight.grad)


def rank_states_are_whole_or_parts():
    rank = dist.get_rank()
    net = sharded()
    full = get_model_state_dict(net, options=FULL)
    assert all(torch.equal(full[name], one) for name, one in model().state_dict().items())
    part = get_model_state_dict(net)
    assert torch.equal(part['head.weight'], model().head.weight.detach()[4 * rank: 4 * rank + 4])
    other = sharded()
    set_model_state_dict(other, model(7).state_dict(), options=FULL)
    assert all(torch.equal(one, model(7).state_dict()[name])
               for name, one in get_model_state_dict(other, options=FULL).items())
    set_model_state_dict(other, part)
    assert torch.equal(other.head.weight.detach(), net.head.weight.detach())
    wrong = {**full, 'head.weight': torch.ones(3, 7)}
    tap.raises(ValueError, lambda: set_model_state_dict(net, wrong, options=FULL), 'has the shape')


def rank_errors_leave_the_parts_in_place():
    net = sharded()
    own = net.embed.weight
    tap.raises(Exception, lambda: net(torch.tensor([[99]])))
    assert net.embed.weight is own and net.head.weight.shape[0] <= 4
    assert torch.equal(net(batch(0)[0]), model()(batch(0)[0]))
    tap.raises(ValueError, lambda: fully_shard(net), 'no parameters that are not divided already')
    scalar = torch.nn.Module()
    scalar.x = torch.nn.Parameter(torch.tensor(1.0))
    tap.raises(ValueError, lambda: fully_shard(scalar), 'no dimension')
    mixed = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2).double())
    tap.raises(ValueError, lambda: fully_shard(mixed), 'another dtype')
    policy = MixedPrecisionPolicy(param_dtype=torch.int32)
    tap.raises(TypeError, lambda: fully_shard(torch.nn.Linear(2, 2), mp_policy=policy), 'floating-point')
    for options in ({'shard_placement_fn': len},):
        tap.raises(NotImplementedError, lambda given=options: fully_shard(torch.nn.Linear(2, 2), **given))
    tap.raises(ValueError, lambda: fully_shard(torch.nn.Linear(2, 2), reshard_after_forward=2), 'divides')
    x = net(batch(0, dist.get_rank())[0]).sum()
    tap.raises(RuntimeError, lambda: torch.autograd.grad(x, list(net.parameters()), create_graph=True), 'create_graph')


def rank_parameters_that_were_changed_are_noticed():
    net = sharded()
    loss = loss_of(net, *batch(0, dist.get_rank()))
    with torch.no_grad():
        net.head.weight.mul_(2)
    tap.raises(RuntimeError, loss.backward, 'was changed after the forward pass')


def rank_modules_are_collected():
    net = sharded()
    net(batch(0)[0]).sum().backward()
    gone = weakref.ref(net)
    del net
    gc.collect()
    assert gone() is None


@tap.case
def three_processes_agree():
    ranks.start(__file__, N)


if __name__ == '__main__':
    ranks.run(globals()) if sys.argv[1:] == ['--rank'] else tap.main()
