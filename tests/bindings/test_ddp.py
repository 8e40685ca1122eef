# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""DistributedDataParallel: functions that exchange gradients, uneven inputs, and the order of buckets."""

import gc
import os
import sys
import time
import weakref

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'style'))
import gtorch as torch
import gtorch.distributed as dist
import gtorch.distributed.algorithms.ddp_comm_hooks.default_hooks as default
import ranks
import tap
from gi.repository import GLib, GTorch
from gtorch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power
from gtorch.distributed.algorithms.join import Join
from gtorch.distributed.checkpoint.state_dict import (
    StateDictOptions, get_model_state_dict, get_optimizer_state_dict, set_model_state_dict)
from gtorch.distributed.fsdp import fully_shard
from gtorch.distributed.optim import ZeroRedundancyOptimizer
from gtorch.nn.parallel import DistributedDataParallel as DDP

N = 3


def net(seed=1, wide=8):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(4, wide), torch.nn.Tanh(), torch.nn.Linear(wide, 3))


def data(n=12):
    torch.manual_seed(5)
    return torch.randn(n, 4), torch.randn(n, 3)


def mine(x):
    n = len(x) // N
    return x[n * dist.get_rank(): n * (dist.get_rank() + 1)]


def whole_grads(model):
    x, y = data()
    torch.nn.functional.mse_loss(model(x), y).backward()
    return [p.grad for p in model.parameters()]


def learn(model, x, y):
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    return loss


def grads_with(state, hook, tolerance):
    x, y = data()
    model = DDP(net(), bucket_cap_mb=1e-4)
    model.register_comm_hook(state, hook)
    learn(model, mine(x), mine(y))
    for a, b in zip(model.parameters(), whole_grads(net())):
        assert a.grad.dtype == torch.float32
        assert torch.allclose(a.grad, b, rtol=tolerance, atol=tolerance), (hook, a.grad, b)
    return model


def rank_forward_passes_are_ranges():
    model, (x, _y) = DDP(net()), data()
    with torch.profiler.profile() as prof:
        model(mine(x))
    (forward,) = [event for event in prof.events() if event.name == 'DistributedDataParallel.forward']
    assert 'linear' in [event.name for event in forward.cpu_children]


def rank_hooks_exchange_gradients():
    seen = []

    def by_hand(state, bucket):
        assert state == 'state' and bucket.buffer().dim() == 1
        assert sum(one.numel() for one in bucket.parameters()) == bucket.buffer().numel()
        assert [g.shape for g in bucket.gradients()] == [p.shape for p in bucket.parameters()]
        seen.append((bucket.index(), bucket.is_last()))
        return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(lambda f: f.value()[0] / N)

    def at_once(_state, bucket):
        dist.all_reduce(bucket.buffer(), op=dist.ReduceOp.AVG)
        return bucket.buffer()

    def set_later(_state, bucket):
        future = torch.futures.Future()
        future.set_result(default.allreduce_hook(None, bucket))
        return future

    grads_with('state', by_hand, 1e-6)
    assert seen[-1][1] and [one[0] for one in seen] == list(range(len(seen))) and len(seen) > 1
    assert not any(last for _index, last in seen[:-1])
    for hook in (at_once, set_later, default.allreduce_hook):
        grads_with(None, hook, 1e-6)
    for hook in (default.fp16_compress_hook, default.fp16_compress_wrapper(default.allreduce_hook)):
        grads_with(None, hook, 2e-3)
    for hook in (default.bf16_compress_hook, default.bf16_compress_wrapper(default.allreduce_hook)):
        grads_with(None, hook, 2e-2)


def rank_numbers_really_go_in_few_bits():
    model = DDP(torch.nn.Linear(1, 1, bias=False))
    model.register_comm_hook(dist.group.WORLD, default.bf16_compress_hook)
    model(torch.tensor([[1.003]])).sum().backward()
    found = model.module.weight.grad
    assert found.dtype == torch.float32 and torch.equal(found, found.bfloat16().float()) and found.item() != 1.003
    assert abs(found.item() - 1.003) < 0.01


def rank_matrices_of_low_rank_are_exchanged():
    """The gradient of a linear layer for one sample has rank 1, of N ranks with one sample each at most rank N."""
    rank = dist.get_rank()

    def grads(state):
        torch.manual_seed(2)
        layer = torch.nn.Linear(20, 30)
        model = DDP(layer)
        if state is not None:
            model.register_comm_hook(state, power.powerSGD_hook)
        torch.manual_seed(10 + rank)
        for _ in range(2):  # buckets are made anew after the first pass
            x, y = torch.randn(1, 20), torch.randn(1, 30)
            model.zero_grad()
            (model(x) * y).sum().backward()
        return layer.weight.grad, layer.bias.grad

    exact = grads(None)
    state = power.PowerSGDState(dist.group.WORLD, matrix_approximation_rank=N, start_powerSGD_iter=0)
    found = grads(state)
    assert state.iter == 2
    for a, b in zip(found, exact):
        assert torch.allclose(a, b, rtol=1e-4, atol=1e-5), (a - b).abs().max()
    coarse = grads(power.PowerSGDState(None, 1, start_powerSGD_iter=0, use_error_feedback=False, warm_start=False))
    assert torch.equal(coarse[1], exact[1]) or torch.allclose(coarse[1], exact[1])
    error = (coarse[0] - exact[0]).norm() / exact[0].norm()
    assert 0.05 < error < 1, error
    assert torch.linalg.matrix_rank(coarse[0]) == 1
    late = grads(power.PowerSGDState(None, 1, start_powerSGD_iter=2))  # not yet
    assert all(torch.equal(a, b) for a, b in zip(late, exact))
    everywhere = [None] * N
    dist.all_gather_object(everywhere, coarse[0].tolist())
    assert everywhere[0] == everywhere[1] == everywhere[2]


def rank_what_was_lost_comes_later():
    """With error feedback the sum of what is exchanged is that of the gradients."""
    rank = dist.get_rank()
    torch.manual_seed(3)
    layer = torch.nn.Linear(16, 16, bias=False)
    model = DDP(layer)
    model.register_comm_hook(power.PowerSGDState(None, 1, 0, 1), power.powerSGD_hook)
    torch.manual_seed(rank)
    x, y = torch.randn(8, 16), torch.randn(8, 16)
    sent = torch.zeros(16, 16)
    for _ in range(60):
        model.zero_grad()
        (model(x) * y).sum().backward()
        sent += layer.weight.grad
    exact = (y.t() @ x)
    dist.all_reduce(exact, op=dist.ReduceOp.AVG)
    assert (sent / 60 - exact).norm() < 0.2 * exact.norm(), (sent / 60 - exact).norm() / exact.norm()


def rank_hooks_that_are_wrong_raise():
    class Own(Exception):
        pass

    def raises(_state, _bucket):
        raise Own('in a hook')

    for hook, kind, text in ((raises, Own, 'in a hook'), (lambda _s, _b: None, TypeError, 'not a future with a tensor'),
                             (lambda _s, b: b.buffer()[:1], RuntimeError, 'as many')):
        model = DDP(net())
        model.register_comm_hook(None, hook)
        tap.raises(kind, lambda one=model: one(data()[0]).sum().backward(), text)
        # the ranks may no longer be at the same bucket
        tap.raises(RuntimeError, lambda one=model: one(data()[0]), 'could not be exchanged before')
    model = DDP(net())
    tap.raises(TypeError, lambda: model.register_comm_hook(None, 3), 'cannot be called')
    model.register_comm_hook(None, default.allreduce_hook)
    tap.raises(ValueError, lambda: model.register_comm_hook(None, default.allreduce_hook), 'already')
    model = DDP(net())
    model(data()[0])
    tap.raises(ValueError, lambda: model.register_comm_hook(None, default.allreduce_hook), 'was called already')
    tap.raises(ValueError, lambda: power.PowerSGDState(None, 0), '1 or more')


def rank_hooks_are_collected():
    model = DDP(net())
    model.register_comm_hook(model, lambda state, bucket: default.allreduce_hook(None, bucket))
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def rank_buckets_get_the_order_of_the_gradients():
    """The second layer is used first, so its gradients come last."""
    rank = dist.get_rank()

    class Turned(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.late, self.early = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)

        def forward(self, x):
            return self.late(torch.tanh(self.early(x)))

    torch.manual_seed(7)
    layers = Turned()
    model = DDP(layers, bucket_cap_mb=1e-4)
    orders, named = [], list(layers.named_parameters())

    def hook(_state, bucket):
        orders[-1].extend(name.partition('.')[0] for one in bucket.parameters() for name, p in named if p is one)
        return default.allreduce_hook(None, bucket)

    model.register_comm_hook(None, hook)
    for _ in range(3):
        orders.append([])
        layers.zero_grad()
        model(torch.full((2, 4), rank + 1.0)).sum().backward()
    assert orders[0] == ['early', 'early', 'late', 'late'] and orders[1] == orders[2] == orders[0][::-1], orders
    alone = Turned()
    alone.load_state_dict(layers.state_dict())
    sum(alone(torch.full((2, 4), i + 1.0)).sum() / N for i in range(N)).backward()
    for a, b in zip(layers.parameters(), alone.parameters()):
        assert torch.allclose(a.grad, b.grad, atol=1e-6)


def sample(rank, i):
    x, y = data(3 * N)
    return x[3 * rank + i][None], y[3 * rank + i][None]


def uneven(model, n, **options):
    """Each rank takes as many steps as its number says."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with model.join(**options):
        for i in range(n):
            optimizer.zero_grad()
            learn(model, *sample(dist.get_rank(), i))
            optimizer.step()


def rank_ranks_may_have_different_numbers_of_inputs():
    counts = [0, 3, 1]
    for divide in (True, False):
        model, alone = DDP(net(), bucket_cap_mb=1e-4), net()
        uneven(model, counts[dist.get_rank()], divide_by_initial_world_size=divide)
        steps = torch.optim.SGD(alone.parameters(), lr=0.1)
        for i in range(max(counts)):
            active = [rank for rank in range(N) if counts[rank] > i]
            steps.zero_grad()
            for rank in active:
                learn(alone, *sample(rank, i))
            for p in alone.parameters():
                p.grad /= N if divide else len(active)
            steps.step()
        for a, b in zip(model.parameters(), alone.parameters()):
            assert torch.allclose(a, b, atol=1e-6), (divide, a - b)


def rank_buffers_and_unused_parameters_in_a_join():
    rank = dist.get_rank()
    torch.manual_seed(4)
    layers = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.BatchNorm1d(5))
    model = DDP(layers, find_unused_parameters=True)
    with Join([model]):
        for _ in range(rank):
            model(torch.randn(6, 4)).sum().backward()
    assert layers[1].num_batches_tracked.item() == N - 1
    found = [None] * N
    dist.all_gather_object(found, layers[1].running_mean.tolist())
    assert found[0] == found[1] == found[2]
    with model.join(enable=False):
        model(torch.randn(6, 4)).sum().backward()


def rank_all_ranks_stop_when_one_has_ended():
    rank = dist.get_rank()
    model = DDP(net())
    tap.raises(RuntimeError, lambda: uneven(model, 1 + (rank == 1), throw_on_early_termination=True),
               'has no more inputs')
    uneven(model, 2, throw_on_early_termination=True)
    tap.raises(GLib.Error, lambda: model._exchange[0].end_join(True), 'was not called')


def rank_a_graph_that_stays_the_same():
    rank = dist.get_rank()

    class Some(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = (torch.nn.Linear(2, 1, bias=False) for _ in range(3))

        def forward(self, x):
            return self.b(x) if rank == 0 else self.a(x)

    layers = Some()
    model = DDP(layers, static_graph=True)
    for _ in range(3):
        layers.zero_grad()
        model(torch.ones(1, 2)).sum().backward()
        assert torch.allclose(layers.a.weight.grad, torch.full((1, 2), 2 / 3))
        assert torch.allclose(layers.b.weight.grad, torch.full((1, 2), 1 / 3))
        assert layers.c.weight.grad is None


def rank_batches_are_normalised_together():
    rank = dist.get_rank()
    torch.manual_seed(4)
    x, y = torch.randn(7, 3, 2, 2) * 3 + 100, torch.randn(7, 3, 2, 2)
    mine = [slice(0, 1), slice(1, 4), slice(4, 7)][rank]  # batches of different sizes

    def made(momentum):
        torch.manual_seed(6)
        return torch.nn.Sequential(torch.nn.Conv2d(3, 3, 1), torch.nn.BatchNorm2d(3, momentum=momentum))

    convert = torch.nn.SyncBatchNorm.convert_sync_batchnorm
    for momentum in (0.3, None):
        alone, together = made(momentum), convert(made(momentum))
        assert isinstance(together[1], torch.nn.SyncBatchNorm)
        for _ in range(2):
            alone.zero_grad()
            together.zero_grad()
            whole = alone(x)
            (whole * y).sum().backward()
            own = together(x[mine])
            assert torch.allclose(own, whole[mine], atol=2e-4), (own - whole[mine]).abs().max()
            (own * y[mine]).sum().backward()
            for p, q in zip(together.parameters(), alone.parameters()):
                dist.all_reduce(p.grad)
                assert torch.allclose(p.grad, q.grad, rtol=2e-3, atol=2e-3), (p.grad, q.grad)
        for (name, p), q in zip(together.named_buffers(), alone.buffers()):
            assert torch.allclose(p, q, rtol=1e-4), (name, p, q)
        together.eval()
        alone.eval()
        assert torch.allclose(together(x[mine]), alone(x[mine]), atol=1e-3)
    lone = torch.nn.SyncBatchNorm(3)
    tap.raises(ValueError, lambda: lone(x), 'nothing tells')
    assert lone.eval()(x).shape == x.shape
    wrapped = DDP(torch.nn.Sequential(torch.nn.SyncBatchNorm(3)))
    means = wrapped(x[mine]).sum((0, 2, 3))
    dist.all_reduce(means)
    assert means.abs().max() < 1e-2 and wrapped(x[mine].double().float()).shape == x[mine].shape
    named = torch.nn.SyncBatchNorm(3, process_group=dist.group.WORLD)
    means = named(x[mine]).sum((0, 2, 3))
    dist.all_reduce(means)
    assert means.abs().max() < 1e-2 and named.process_group is dist.group.WORLD
    named.process_group = None
    assert named.process_group is None
    tap.raises(ValueError, lambda: named(x), 'nothing tells')
    tap.raises(TypeError, lambda: torch.nn.SyncBatchNorm(3, process_group=1), 'must be a ProcessGroup')
    half = torch.nn.SyncBatchNorm(3)
    assert GTorch.synchronize_batch_norm(half, dist.group.WORLD) and half.train()(x[mine].half()).dtype == torch.half


def rank_streams_of_the_cpu_wait_for_exchanges():
    """What follows an exchange of the library's own comes behind it in a stream, too."""
    x, y = data()

    def replicated():
        model = DDP(net(), bucket_cap_mb=1e-4)
        learn(model, mine(x), mine(y))
        return [p.grad.clone() for p in model.parameters()]

    def spread():
        model = fully_shard(net())
        adam = torch.optim.Adam(model.parameters(), lr=0.1)
        for _ in range(2):
            learn(model, mine(x), mine(y))
            adam.step()
        return list(get_model_state_dict(model, options=StateDictOptions(full_state_dict=True)).values())

    def divided():
        model = DDP(net())
        zero = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam, lr=0.1)
        learn(model, mine(x), mine(y))
        zero.step()
        return [p.detach().clone() for p in model.parameters()]

    def normalised():
        return [torch.nn.SyncBatchNorm.convert_sync_batchnorm(torch.nn.BatchNorm1d(4))(mine(x)).detach().clone()]

    for function in (replicated, spread, divided, normalised):
        wanted = function()
        stream = torch.Stream('cpu')
        if dist.get_rank() == 1:  # the others have enqueued what follows before this rank comes
            time.sleep(0.1)
        with stream:
            found = function()
        stream.synchronize()
        for a, b in zip(found, wanted):
            assert torch.equal(a, b), (function.__name__, a, b)


def rank_states_have_the_names_of_the_module():
    model = torch.nn.parallel.DistributedDataParallel(net())
    optimizer = torch.optim.Adam(model.parameters())
    state = get_model_state_dict(model)
    assert state.keys() == net().state_dict().keys(), state.keys()
    plain = net(2)
    plain.load_state_dict(state)
    set_model_state_dict(model, net(3).state_dict())
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), net(3).parameters()))
    names = get_optimizer_state_dict(model, optimizer)['param_groups'][0]['params']
    assert names == [name for name, _p in net().named_parameters()]
    outer = torch.nn.Sequential(model)
    assert list(get_model_state_dict(outer)) == [f'0.{name}' for name in state]


def rank_arguments_are_pytorchs():
    layers = net(seed=dist.get_rank() + 1)
    DDP(layers, init_sync=False)
    found = [None] * N
    dist.all_gather_object(found, layers[0].weight.tolist())
    assert found[0] != found[1]
    model = DDP(layers, device_ids=None, dim=1, gradient_as_bucket_view=True, check_reduction=True)
    assert model.static_graph is False
    tap.raises(ValueError, lambda: DDP(layers, device_ids=[0, 1]), 'a list with one device')
    tap.raises(ValueError, lambda: DDP(layers, device_ids=[0]), 'the parameters are on cpu')
    tap.raises(ValueError, lambda: DDP(layers, output_device=0), 'needs device_ids')
    tap.raises(NotImplementedError, lambda: DDP(layers, mixed_precision=object()), 'mixed_precision')
    model.eval()
    model(torch.ones(2, 4))
    tap.raises(NotImplementedError, lambda: Join([layers]), 'DistributedDataParallel')


@tap.case
def three_processes_agree():
    ranks.start(__file__, N)


@tap.case
def futures_have_values():
    future = torch.futures.Future()
    later = future.then(lambda one: one.value() + 1)
    assert not future.done() and not later.done()
    tap.raises(RuntimeError, future.value, 'no value yet')
    future.set_result(3)
    assert later.wait() == 4 and later.done()
    tap.raises(RuntimeError, lambda: future.set_result(3), 'already')


if __name__ == '__main__':
    ranks.run(globals()) if sys.argv[1:] == ['--rank'] else tap.main()
