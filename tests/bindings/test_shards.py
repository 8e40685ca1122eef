# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""fully_shard() on four processes: meshes of two dimensions, what is gathered ahead of time, gradients that are not
exchanged, parts in the memory of the CPU, norms and overflows of all ranks, and files of parts."""

import math
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'style'))
import gtorch as torch
import gtorch.distributed as dist
import gtorch.distributed.checkpoint as dcp
import ranks
import tap
from gi.repository import GTorch
from gtorch.distributed.checkpoint.state_dict import (StateDictOptions, get_model_state_dict, get_optimizer_state_dict,
                                                      set_optimizer_state_dict)
from gtorch.distributed.device_mesh import init_device_mesh
from gtorch.distributed.fsdp import (CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, fully_shard,
                                     register_fsdp_forward_method)

N = 4
FULL = StateDictOptions(full_state_dict=True)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(6, 6) for _ in range(3)])
        self.head = torch.nn.Linear(6, 3)

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return self.head(x)

    def total(self):
        return sum(one.sum() for one in self.parameters())


def whole(seed=1):
    torch.manual_seed(seed)
    return Net()


def sharded(**options):
    net = whole()
    for layer in net.layers:
        fully_shard(layer, **options)
    return fully_shard(net, **options)


def batch(i=0):
    torch.manual_seed(100 + i)
    return torch.randn(2 * N, 6)


def own(x):
    return x[2 * dist.get_rank(): 2 * dist.get_rank() + 2]


def backward(net, x):
    (net(x) ** 2).mean().backward()


def close(a, b, tolerance=1e-5):
    return torch.allclose(a, b, rtol=tolerance, atol=tolerance)


def whole_grad(p):
    shards = GTorch.ModuleShards.find(p)
    grad = p.grad.detach()
    shards.adopt(grad, p)
    return shards.gather(grad)


def same_grads(net, alone, tolerance=1e-5):
    for p, q in zip(net.parameters(), alone.parameters()):
        assert close(whole_grad(p), q.grad, tolerance), (whole_grad(p), q.grad)


def counter():
    work = dist.barrier(async_op=True)
    work.wait()
    return work.get_sequence()


def rank_replicas_have_the_same_parts():
    mesh = init_device_mesh('cpu', (2, 2), mesh_dim_names=('replicate', 'shard'))
    net, alone = sharded(mesh=mesh), whole()
    assert net.layers[0].weight.shape == (3, 6)
    assert net._shards.shards.get_group().get_size() == 2 and net._shards.shards.get_replicas().get_size() == 2
    optimizers = [torch.optim.Adam(one.parameters(), lr=0.01) for one in (net, alone)]
    for i in range(3):
        x = batch(i)
        for one, optimizer, inputs in zip((net, alone), optimizers, (own(x), x)):
            optimizer.zero_grad()
            backward(one, inputs)
        same_grads(net, alone)
        for optimizer in optimizers:
            optimizer.step()
    # replicas are not asked, and get the sum of both passes afterwards
    net.zero_grad()
    alone.zero_grad()
    net.set_requires_all_reduce(False)
    backward(net, own(batch(5)))
    assert net.head.weight.grad is None
    net.set_requires_all_reduce(True)
    backward(net, own(batch(6)))
    backward(alone, batch(5))
    backward(alone, batch(6))
    same_grads(net, alone, 1e-4)
    tap.raises(ValueError, lambda: fully_shard(torch.nn.Linear(2, 2), mesh=init_device_mesh('cpu', (2, 2, 1))),
               '3 dimensions')


def rank_parameters_stay_with_some_ranks():
    net, alone = sharded(reshard_after_forward=2), whole()
    for i in range(2):
        x = batch(i)
        net.zero_grad()
        alone.zero_grad()
        before = counter()
        loss = (net(own(x)) ** 2).mean()
        middle = counter()
        loss.backward()
        after = counter()
        # the backward pass gathers from another group, and reduces in this one
        assert (middle - before - 1, after - middle - 1) == (4, 4), (before, middle, after)
        backward(alone, x)
        same_grads(net, alone)
        with torch.no_grad():
            for p in (*net.parameters(), *alone.parameters()):
                p.mul_(0.5)
    tap.raises(ValueError, lambda: fully_shard(torch.nn.Linear(2, 2), reshard_after_forward=3), 'divides')


def rank_batches_are_normalised_together():
    def made(norm):
        torch.manual_seed(3)
        return torch.nn.Sequential(torch.nn.Linear(6, 5), norm(5))

    alone, x = made(torch.nn.BatchNorm1d), batch()
    net = fully_shard(made(torch.nn.SyncBatchNorm))
    assert net[1].process_group.get_size() == 4
    assert close(net(own(x)), own(alone(x))) and close(net[1].running_var, alone[1].running_var)
    backward(net, own(x))
    backward(alone, x)
    same_grads(net, alone)
    mesh = init_device_mesh('cpu', (2, 2), mesh_dim_names=('replicate', 'shard'))
    both = fully_shard(made(torch.nn.SyncBatchNorm), mesh=mesh)
    tap.raises(ValueError, lambda: both(own(x)), 'parts and replicas')
    both[1].process_group = dist.group.WORLD
    assert close(both(own(x)), own(made(torch.nn.BatchNorm1d)(x)))


def rank_gradients_are_kept_for_a_later_pass():
    net, alone = sharded(), whole()
    net.set_requires_gradient_sync(False)
    before = counter()
    backward(net, own(batch(0)))
    assert counter() - before - 1 == 6  # gathered twice, but for the root and what the first layer does not need
    assert all(p.grad is None for p in net.parameters())
    backward(net, own(batch(1)))
    net.set_requires_gradient_sync(True)
    backward(net, own(batch(2)))
    for i in range(3):
        backward(alone, batch(i))
    same_grads(net, alone, 1e-4)
    # whole parameters stay between the passes
    net.set_reshard_after_forward(False)
    net.set_reshard_after_backward(False)
    backward(net, own(batch(0)))
    before = counter()
    backward(net, own(batch(1)))
    assert counter() - before - 1 == 4  # reduced
    with torch.no_grad():
        for p in (*net.parameters(), *alone.parameters()):
            p.add_(0.25)
    net.set_reshard_after_backward(True)
    net.zero_grad()
    alone.zero_grad()
    backward(net, own(batch(3)))
    backward(alone, batch(3))
    same_grads(net, alone)
    net.zero_grad()
    alone.zero_grad()
    for one in net.modules():
        if isinstance(one, FSDPModule):
            one.set_gradient_divide_factor(2 * N)
    backward(net, own(batch(3)))
    (0.5 * (alone(batch(3)) ** 2).mean()).backward()
    same_grads(net, alone)
    tap.raises(ValueError, lambda: net.set_gradient_divide_factor(0), 'more than 0')


class Watched(torch.nn.Module):
    """Writes down how many operations of the group have begun when it computes."""

    def __init__(self, seen):
        super().__init__()
        self.inner, self.seen = torch.nn.Linear(6, 6), seen

    def forward(self, x):
        self.seen.append(counter())
        return self.inner(x)


def rank_what_comes_next_is_gathered():
    seen = []
    net = torch.nn.Sequential(*(Watched(seen) for _ in range(3)))
    for one in net:
        fully_shard(one, reshard_after_forward=True)
    x = own(batch())
    base = counter()
    backward(net, x)
    assert [s - base for s in seen] == [2, 4, 6], seen  # gathered one by one
    seen.clear()
    whole_net = fully_shard(torch.nn.Sequential(*net, torch.nn.Linear(6, 6)), reshard_after_forward=True)
    # the first pass gathers when a module is called; the second knows what comes
    for expected in ([3, 5, 7], [4, 6, 7]):
        seen.clear()
        base = counter()
        whole_net(x)
        assert [s - base for s in seen] == expected, [s - base for s in seen]
    whole_net.set_modules_to_forward_prefetch([])
    for one in net:
        one.set_modules_to_forward_prefetch([])
    seen.clear()
    base = counter()
    whole_net(x)
    assert [s - base for s in seen] == [3, 5, 7], [s - base for s in seen]
    whole_net.set_modules_to_forward_prefetch([net[0], net[1], net[2]])
    seen.clear()
    base = counter()
    whole_net(x)
    assert [s - base for s in seen] == [5, 6, 7], [s - base for s in seen]
    tap.raises(ValueError, lambda: net[0].set_modules_to_forward_prefetch([net[0]]), 'not another')
    tap.raises(ValueError, lambda: net[0].set_modules_to_backward_prefetch([torch.nn.Linear(1, 1)]), 'fully_shard')


def rank_prefetching_changes_no_number():
    for explicit in (False, True):
        net, alone = sharded(), whole()
        if explicit:
            layers = list(net.layers)
            for i, layer in enumerate(layers):
                layer.set_modules_to_forward_prefetch(layers[i + 1:])
                layer.set_modules_to_backward_prefetch(layers[:i])
        optimizers = [torch.optim.SGD(one.parameters(), lr=0.1, momentum=0.9) for one in (net, alone)]
        for i in range(4):
            for one, optimizer, x in zip((net, alone), optimizers, (own(batch(i)), batch(i))):
                optimizer.zero_grad()
                backward(one, x)
            same_grads(net, alone)
            with torch.no_grad():
                assert close(net(batch(9)), alone(batch(9)))
            net.layers[1](batch(9))  # by itself, in a pass of its own
            for optimizer in optimizers:
                optimizer.step()


def rank_modules_are_whole_between():
    net, alone = sharded(), whole()
    part = net.head.weight
    net.unshard()
    assert torch.equal(net.head.weight.detach(), alone.head.weight.detach()) and net.head.weight is not part
    net.reshard()
    assert net.head.weight is part
    handle = net.unshard(async_op=True)
    assert net.head.weight is part
    handle.wait()
    handle.wait()
    before = counter()
    for layer in net.layers:
        layer.unshard()
    assert counter() - before - 1 == 3
    before = counter()
    backward(net, own(batch()))
    assert counter() - before - 1 == 6  # gathered by the backward pass alone, and reduced
    backward(alone, batch())
    same_grads(net, alone)
    register_fsdp_forward_method(net.layers[0], 'extra_repr')
    assert isinstance(net, FSDPModule) and not isinstance(alone, FSDPModule)
    own_layer = fully_shard(torch.nn.Linear(4, 4))
    type(own_layer).twice = lambda self, x: self(x) + torch.nn.functional.linear(x, self.weight, self.bias)
    register_fsdp_forward_method(own_layer, 'twice')
    assert own_layer.twice(torch.ones(1, 4)).shape == (1, 4)


def rank_parts_are_not_computed_with():
    net = sharded()
    part = net.head.weight
    ways = [net.total, part.sum, lambda: part.view(-1), lambda: part[0], lambda: torch.cat([part, part])]
    for compute in ways:
        tap.raises(ValueError, compute, 'is a part of a parameter')
    part.requires_grad_(False)
    tap.raises(ValueError, lambda: part * torch.ones(6, requires_grad=True), 'part of a parameter')
    part.requires_grad_(True)
    tap.raises(ValueError, lambda: part * 2, 'part of a parameter')
    assert (part.detach() * 2).shape == part.clone().shape == part.double().shape == part.shape
    assert not part.retains_grad
    with torch.no_grad():
        assert (part * 2).shape == part.shape and part.mul_(1) is part
    net.unshard()
    assert net.head.weight.sum().requires_grad
    net.reshard()
    backward(net, own(batch()))
    assert part.grad.shape == part.shape and (part.grad * 2).shape == part.shape


def rank_parts_are_kept_by_the_cpu():
    net, alone = sharded(offload_policy=CPUOffloadPolicy()), whole()
    assert net._shards.shards.is_offloaded()
    backward(net, own(batch()))
    backward(alone, batch())
    same_grads(net, alone)
    tap.raises(TypeError, lambda: fully_shard(torch.nn.Linear(2, 2), offload_policy=1), 'OffloadPolicy')


def rank_the_outermost_module_stays_whole():
    net = sharded()  # without reshard_after_forward
    counts = []
    for call in (net, net.layers[1]):
        before = counter()
        loss = (call(own(batch()).requires_grad_()) ** 2).mean()
        middle = counter()
        loss.backward()
        counts.append((middle - before - 1, counter() - middle - 1))
    # the parameters of the head are there in the backward pass, and so are those of a layer that is called by itself
    assert counts == [(4, 3 + 4), (1, 1)], counts
    before = [*net.parameters()]
    net.unshard()
    # optimizers and norms see the parts: lists of parameters have these, and attributes are whole
    assert net.head.weight.shape == (3, 6) and all(p is q for p, q in zip(net.parameters(), before))
    assert all(p is q for (_name, p), q in zip(net.named_parameters(), before))
    assert any(p is q for p, q in zip(net.head.parameters(), before[-2:]))
    net.reshard()


def rank_parameters_may_be_left_out():
    net = whole()
    fully_shard(net, ignored_params={net.head.weight, net.head.bias})
    assert net.head.weight.shape == (3, 6) and net.layers[0].weight.shape == (2 if dist.get_rank() < 3 else 0, 6)
    backward(net, own(batch()))
    assert net.head.weight.grad.shape == (3, 6)
    assert GTorch.ModuleShards.find(net.head.weight) is None


def rank_inputs_may_stay_as_they_are():
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, cast_forward_inputs=False)
    layer = fully_shard(torch.nn.Linear(4, 4), mp_policy=policy)
    assert layer(torch.ones(1, 4).to(torch.bfloat16)).dtype == torch.bfloat16
    tap.raises(Exception, lambda: layer(torch.ones(1, 4)))


def rank_norms_are_those_of_all():
    for norm_type in (2.0, 1.0, 3.0, math.inf):
        net, alone = sharded(), whole()
        extra = [torch.nn.Parameter(torch.ones(3)) for _ in range(2)]
        for one in extra:
            one.grad = torch.full((3,), 0.25)
        backward(net, own(batch()))
        backward(alone, batch())
        found = torch.nn.utils.clip_grad_norm_([*net.parameters(), extra[0]], 0.1, norm_type)
        expected = torch.nn.utils.clip_grad_norm_([*alone.parameters(), extra[1]], 0.1, norm_type)
        assert close(found, expected), (norm_type, found, expected)
        same_grads(net, alone)
        assert close(extra[0].grad, extra[1].grad)
    if dist.get_rank() == 1:
        net.layers[0].weight.grad.fill_(math.nan)
    tap.raises(ValueError, lambda: torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0, error_if_nonfinite=True),
               'must be finite')


def rank_an_overflow_is_one_of_all():
    net = sharded()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler('cpu', init_scale=8.0)
    before = [p.detach().clone() for p in net.parameters()]
    for i in range(2):
        optimizer.zero_grad()
        scaler.scale((net(own(batch(i))) ** 2).mean()).backward()
        if i == 0 and dist.get_rank() == 2:
            net.layers[0].weight.grad[0, 0] = math.inf
        scaler.step(optimizer)
        scaler.update()
        changed = any(not torch.equal(p, q) for p, q in zip(net.parameters(), before))
        parts = sum(p.numel() for p in net.parameters())
        assert changed == (i == 1 and parts > 0), (i, changed)
        assert scaler.get_scale() == 4.0


def folder():
    return sys.argv[2]


def rank_files_have_whole_tensors():
    net = whole(3)
    for layer in net.layers:
        fully_shard(layer)
    fully_shard(net)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    if dist.get_world_size() == N:
        backward(net, own(batch()))
        optimizer.step()
        state = {'model': get_model_state_dict(net), 'optimizer': get_optimizer_state_dict(net, optimizer)}
        before = counter()
        dcp.save(state, checkpoint_id=folder())
        assert counter() - before < 20
        full = {'model': get_model_state_dict(net, options=FULL),
                'optimizer': get_optimizer_state_dict(net, optimizer, options=FULL)}
        if dist.get_rank() == 0:
            torch.save(full, os.path.join(folder(), 'full.pt'))
    else:
        state = {'model': get_model_state_dict(net), 'optimizer': get_optimizer_state_dict(net, optimizer)}
        backward(net, batch())
        optimizer.step()
        state = {'model': get_model_state_dict(net), 'optimizer': get_optimizer_state_dict(net, optimizer)}
        dcp.load(state, checkpoint_id=folder())
        set_optimizer_state_dict(net, optimizer, state['optimizer'])
        expected = torch.load(os.path.join(folder(), 'full.pt'), weights_only=False)
        found = get_model_state_dict(net, options=FULL)
        assert all(torch.equal(found[name], one) for name, one in expected['model'].items())
        found = get_optimizer_state_dict(net, optimizer, options=FULL)
        for name, values in expected['optimizer']['state'].items():
            for key, value in values.items():
                assert torch.equal(torch.as_tensor(found['state'][name][key]), torch.as_tensor(value)), (name, key)
        other = whole()
        another = torch.optim.Adam(other.parameters(), lr=0.01)
        set_optimizer_state_dict(other, another, expected['optimizer'])
        assert torch.equal(another.state[other.head.weight]['exp_avg'],
                           expected['optimizer']['state']['head.weight']['exp_avg'])
        # without any group of processes, as other programs read it
        whole_state = {'model': other.state_dict()}
        dcp.load(whole_state, checkpoint_id=folder(), no_dist=True)
        assert all(torch.equal(whole_state['model'][name], one) for name, one in expected['model'].items())


@tap.case
def four_processes_agree():
    with tempfile.TemporaryDirectory() as place:
        ranks.start(__file__, N, place)


@tap.case
def another_number_of_processes_reads_the_files():
    with tempfile.TemporaryDirectory() as place:
        ranks.start(__file__, N, place, 'files')
        ranks.start(__file__, 3, place, 'files')


if __name__ == '__main__':
    if sys.argv[1:2] != ['--rank']:
        tap.main()
    elif sys.argv[3:] == ['files']:
        ranks.run({'rank_files': rank_files_have_whole_tensors})
    else:
        ranks.run(globals())
