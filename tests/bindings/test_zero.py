# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""ZeroRedundancyOptimizer: steps are those of the optimizer alone, and each rank has its part of the states."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'style'))
import gtorch as torch
import gtorch.distributed as dist
import ranks
import tap
from gtorch.distributed.optim import ZeroRedundancyOptimizer as Zero

N = 3
KINDS = {
    torch.optim.SGD: {'lr': 0.1, 'momentum': 0.9},
    torch.optim.Adam: {'lr': 0.01, 'amsgrad': True},
    torch.optim.AdamW: {'lr': 0.01},
    torch.optim.Adagrad: {'lr': 0.1},
    torch.optim.Adafactor: {},
}


def net(seed=1):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 8), torch.nn.Tanh(),
                               torch.nn.Linear(8, 3))


def step(model, optimizer, i):
    torch.manual_seed(100 + i)
    x, y = torch.randn(6, 4), torch.randn(6, 3)
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()


def same(a, b):
    return all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters()))


def rank_steps_are_those_of_the_optimizer_alone():
    for kind, settings in KINDS.items():
        alone, shared = net(), net()
        first, second = kind(alone.parameters(), **settings), Zero(shared.parameters(), kind, **settings)
        assert isinstance(second, kind) and isinstance(second, Zero) and not isinstance(first, Zero)
        schedules = [torch.optim.lr_scheduler.StepLR(one, 2) for one in (first, second)]
        for i in range(5):
            for model, optimizer, schedule in zip((alone, shared), (first, second), schedules):
                step(model, optimizer, i)
                schedule.step()
            assert same(alone, shared), kind
        assert second.param_groups[0]['lr'] == first.param_groups[0]['lr'] < settings.get('lr', 1)


def rank_each_rank_has_a_part_of_the_states():
    model = net()
    optimizer = Zero(model.parameters(), torch.optim.Adam, lr=0.1)
    step(model, optimizer, 0)
    own = [i for i, p in enumerate(model.parameters()) if p in optimizer.state and optimizer.state[p]]
    owners = [optimizer._shard.get_owner(p) for p in model.parameters()]
    assert own == [i for i, owner in enumerate(owners) if owner == dist.get_rank()]
    found = [None] * N
    dist.all_gather_object(found, own)
    assert sorted(sum(found, [])) == list(range(6)) and all(found)
    numels = [sum(list(model.parameters())[i].numel() for i in part) for part in found]
    assert max(numels) < sum(numels) * 0.7, numels
    assert optimizer._shard.get_owner(torch.ones(1)) == -1


def rank_groups_that_come_later_are_shared_too():
    alone, shared = net(), net()
    optimizers = [torch.optim.Adam(alone[0].parameters(), lr=0.1),
                  Zero(shared[0].parameters(), torch.optim.Adam, lr=0.1)]
    for i in range(4):
        for model, optimizer in zip((alone, shared), optimizers):
            if i == 2:
                optimizer.add_param_group({'params': [*model[2].parameters(), *model[4].parameters()], 'lr': 0.01})
            step(model, optimizer, i)
    assert same(alone, shared)


def flat(value):
    return [(key, part[name].tolist() if isinstance(part[name], torch.Tensor) else part[name])
            for key, part in sorted(value['state'].items()) for name in sorted(part)]


def rank_states_are_collected_and_loaded():
    rank = dist.get_rank()
    alone, shared = net(), net()
    first = torch.optim.Adam(alone.parameters(), lr=0.1)
    second = Zero(shared.parameters(), torch.optim.Adam, lr=0.1)
    for i in range(3):
        step(alone, first, i)
        step(shared, second, i)
    tap.raises(RuntimeError, second.state_dict, 'call consolidate')
    for to in (0, 2):
        second.consolidate_state_dict(to)
    if rank == 1:
        tap.raises(RuntimeError, second.state_dict, 'call consolidate')
    else:
        found = second.state_dict()
        assert flat(found) == flat(first.state_dict()) and found['param_groups'] == first.state_dict()['param_groups']
        again = torch.optim.Adam(net().parameters())
        again.load_state_dict(found)  # one process
    whole = [second.state_dict() if rank == 2 else None]
    dist.broadcast_object_list(whole, src=2)
    other = net()
    other.load_state_dict(shared.state_dict())
    third = Zero(other.parameters(), torch.optim.Adam, lr=0.5)
    third.load_state_dict(whole[0])
    assert third.param_groups[0]['lr'] == 0.1
    n_own = sum(bool(third.state[p]) for p in other.parameters() if p in third.state)
    assert n_own == [third._shard.get_owner(p) for p in other.parameters()].count(rank)
    for i in range(3, 5):
        step(alone, first, i)
        step(other, third, i)
    assert same(alone, other)
    tap.raises(ValueError, lambda: second.consolidate_state_dict(N), 'out of range')


def rank_an_optimizer_becomes_shared_in_the_middle():
    alone, shared = net(), net()
    first, second = (torch.optim.Adam(one.parameters(), lr=0.1) for one in (alone, shared))
    for i in range(4):
        if i == 2:
            shard = torch.ShardedOptimizer.new(second, dist.group.WORLD)
            assert shard.get_optimizer() is second
        step(alone, first, i)
        step(shared, second, i)
    assert same(alone, shared)
    del shard  # the optimizer has it
    step(alone, first, 4)
    step(shared, second, 4)
    assert same(alone, shared)


def rank_with_data_parallelism_and_a_scaler():
    rank = dist.get_rank()
    torch.manual_seed(5)
    x, y = torch.randn(12, 4), torch.randn(12, 3)
    whole, part = net(), net()
    model = torch.nn.parallel.DistributedDataParallel(part)
    first, second = torch.optim.Adam(whole.parameters()), Zero(model.parameters(), torch.optim.Adam)
    scaler = torch.amp.GradScaler('cpu')
    for _ in range(3):
        first.zero_grad()
        torch.nn.functional.mse_loss(whole(x), y).backward()
        first.step()
        second.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x[4 * rank: 4 * rank + 4]), y[4 * rank: 4 * rank + 4])
        scaler.scale(loss).backward()
        scaler.step(second)
        scaler.update()
    for p, q in zip(whole.parameters(), part.parameters()):
        assert torch.allclose(p, q, atol=1e-4)
    found = [None] * N
    dist.all_gather_object(found, [p.tolist() for p in part.parameters()])
    assert found[0] == found[1] == found[2]


def rank_what_cannot_be_shared_is_refused():
    model = net()
    tap.raises(NotImplementedError, lambda: Zero(model.parameters(), torch.optim.Adam, overlap_with_ddp=True),
               'overlap')
    tap.raises(TypeError, lambda: Zero(model.parameters(), torch.nn.Linear), 'a class of optimizers')
    kind = torch.optim.Adam if dist.get_rank() == 0 else torch.optim.SGD
    tap.raises(ValueError, lambda: Zero(model.parameters(), kind, lr=0.1), 'ZeroRedundancyOptimizer-GTorchAdam on rank')
    tap.raises(Exception, lambda: Zero(model.parameters(), torch.optim.LBFGS), 'need a closure')
    optimizer = Zero(model.parameters(), torch.optim.Adam)
    tap.raises(Exception, lambda: torch.ShardedOptimizer.new(optimizer, dist.group.WORLD), 'shared already')
    tap.raises(NotImplementedError, optimizer.join_hook)

    class Own(torch.optim.Optimizer):
        def step(self, closure=None):
            pass

    tap.raises(NotImplementedError, lambda: Zero(model.parameters(), Own), 'step_param')


def rank_optimizers_of_the_program_are_shared():
    class Signs(torch.optim.Optimizer):
        def __init__(self, params, lr=0.1):
            super().__init__(params, {'lr': lr})

        def step_param(self, group, param, grad):
            count = self.state[param].setdefault('count', torch.zeros(()))
            count += 1
            param.sub_(grad.sign() * group['lr'] / count)

    alone, shared = net(), net()
    first, second = Signs(alone.parameters()), Zero(shared.parameters(), Signs)
    for i in range(3):
        step(alone, first, i)
        step(shared, second, i)
    assert same(alone, shared)


@tap.case
def three_processes_agree():
    ranks.start(__file__, N)


if __name__ == '__main__':
    ranks.run(globals()) if sys.argv[1:] == ['--rank'] else tap.main()
