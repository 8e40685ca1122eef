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
from gi.overrides import _gtorch_fsdp
from gi.repository import GLib, GTorch
from gtorch.distributed import fsdp
from gtorch.distributed.checkpoint.state_dict import (
    StateDictOptions, get_model_state_dict, get_state_dict, set_model_state_dict)
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


def rank_forward_passes_are_ranges():
    made = sharded()
    with torch.profiler.profile() as prof:
        made(torch.tensor([1, 2]))
    counts = {row.key: row.count for row in prof.key_averages()}
    assert counts['FSDP::pre_forward'] == counts['FSDP::post_forward'] == 3, counts


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


class Checked(torch.nn.Module):
    """Checkpoints around modules that are divided, and within one."""

    def __init__(self, reentrant):
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block(7), Block(7)])
        self.norm, self.reentrant = torch.nn.LayerNorm(7), reentrant
        self.scale = torch.nn.Parameter(torch.linspace(0.5, 1.5, 7))

    def part(self, x):
        return torch.tanh(self.norm(x) * self.scale)

    def forward(self, x):
        for one in (*self.blocks, self.part):
            x = one(x) if self.reentrant is None else torch.utils.checkpoint.checkpoint(
                one, x, use_reentrant=self.reentrant)
        return x


def rank_checkpoints_are_within_sharded_modules():
    rank = dist.get_rank()
    torch.manual_seed(5)
    x = torch.rand(2 * N, 7)

    def made(reentrant):
        torch.manual_seed(2)
        return Checked(reentrant)

    alone = made(None)
    (alone(x) ** 2).mean().backward()
    for reshard in (None, True, False):
        plain = None
        for reentrant in (None, False, True):
            net = made(reentrant)
            for block in net.blocks:
                fully_shard(block, reshard_after_forward=reshard)
            fully_shard(net, reshard_after_forward=reshard)
            for _ in range(2):
                net.zero_grad()
                (net(x[2 * rank: 2 * rank + 2].clone().requires_grad_()) ** 2).mean().backward()
                for p, q in zip(net.parameters(), alone.parameters()):
                    per = -(-q.shape[0] // N)
                    assert close(p.grad, q.grad[rank * per: (rank + 1) * per]), (reentrant, reshard)
                plain = plain or [p.grad.clone() for p in net.parameters()]
                assert all(torch.equal(p.grad, grad) for p, grad in zip(net.parameters(), plain)), (reentrant, reshard)
            assert net.norm.weight.shape[0] < 7 and net.scale.shape[0] < 7 and net.scale is next(net.parameters())


def rank_checkpoints_see_what_unshard_shows():
    """A backward pass between unshard() and reshard() leaves the whole parameters in place."""
    torch.manual_seed(4)
    net = fully_shard(Checked(False))
    loss = (net(torch.rand(2, 7)) ** 2).mean()
    net.unshard()
    loss.backward()
    assert net.scale.shape == (7,) and net.norm.weight.shape == (7,)
    net.reshard()
    assert net.scale.shape[0] < 7 and net.scale.grad.shape == net.scale.shape


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(4))

    def forward(self, x):
        return x * self.scale


class Speaker(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.scaled = torch.nn.Linear(4, 4), Scaled()

    def forward(self, x):
        return self.scaled(self.inner(x))

    def generate(self, x):
        return self(x) if x.shape[0] > 1 else self.inner(x)


def rank_modules_inside_are_not_called_alone():
    x = torch.ones(1, 4)
    net = fully_shard(Speaker())
    for wrong in (lambda: net.inner(x), lambda: net.scaled(x), lambda: net.generate(x)):
        tap.raises(ValueError, wrong, 'was called outside of a call of')
    assert net(x).shape == (1, 4) and net.generate(torch.ones(2, 4)).shape == (2, 4)
    net.unshard()
    assert net.inner(x).shape == (1, 4) and net.scaled(x).shape == (1, 4)
    net.reshard()
    tap.raises(ValueError, lambda: net.scaled(x), 'was called outside')
    fsdp.register_fsdp_forward_method(net, 'generate')
    assert net.generate(x).shape == (1, 4)


def rank_a_module_may_have_no_parameters_of_its_own():
    """The loop of the manual, for a model without layers outside of its blocks."""
    rank = dist.get_rank()
    torch.manual_seed(3)
    nets = [torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Linear(5, 4)) for _ in range(2)]
    nets[1].load_state_dict(nets[0].state_dict())
    for layer in nets[1]:
        fully_shard(layer)
    assert fully_shard(nets[1]) is nets[1]
    tap.raises(ValueError, lambda: fully_shard(nets[1]), 'no parameters that are not divided already')
    x = torch.rand(2 * N, 4)
    dist.broadcast(x, 0)
    nets[0](x).sum().backward()
    (nets[1](x[2 * rank: 2 * rank + 2]).sum() * N).backward()
    for p, q in zip(nets[1].parameters(), nets[0].parameters()):
        per = -(-q.shape[0] // N)
        assert close(p.grad, q.grad[rank * per: (rank + 1) * per])
    nets[1].unshard()
    nets[1].reshard()
    shared = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    shared[1].weight = shared[0].weight
    fully_shard(shared[0])
    tap.raises(ValueError, lambda: fully_shard(shared), 'modules that share parameters are divided together')


def rank_norms_are_those_of_whole_tensors():
    rank = dist.get_rank()
    alone, net = model(), sharded()
    loss_of(alone, *batch(0)).backward()
    loss_of(net, *batch(0, rank)).backward()
    for degree in (2.0, 1.0, float('inf')):
        for of in (lambda p: p.grad, lambda p: p.grad.detach(), lambda p: p, lambda p: p.detach()):
            norms = [torch.nn.utils.get_total_norm([of(p) for p in one.parameters()], degree) for one in (alone, net)]
            assert close(*norms, 1e-4), (degree, norms)


def rank_arguments_of_another_kind_are_refused():
    for options in ({'mesh': 'x'}, {'mp_policy': 'x'}, {'reshard_after_forward': 'x'}):
        tap.raises(TypeError, lambda given=options: fully_shard(torch.nn.Linear(2, 2), **given), 'fully_shard: ')
    tap.raises(TypeError, lambda: fully_shard(3), 'a Module')
    for options, text in (({'mp_policy': MixedPrecisionPolicy(reduce_dtype='bf16')}, 'reduce_dtype of mp_policy'),
                          ({'ignored_params': {1}}, 'ignored_params has parameters')):
        tap.raises(TypeError, lambda given=options: fully_shard(torch.nn.Linear(2, 2), **given), f'fully_shard: {text}')
    layers = [torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)]
    tap.raises(NotImplementedError, lambda: fully_shard(layers), 'a list of modules')
    for container in (torch.nn.ModuleList(layers), torch.nn.ModuleDict({'a': layers[0]})):
        tap.raises(ValueError, lambda given=container: fully_shard(given), 'has no forward() of its own')
    net = sharded()
    tap.raises(TypeError, lambda: net.set_requires_gradient_sync('x'), 'True or False')
    tap.raises(NotImplementedError, lambda: StateDictOptions(ignore_frozen_params=True), 'ignore_frozen_params')
    tap.raises(ValueError, lambda: StateDictOptions(broadcast_from_rank0=True), 'full_state_dict')
    tap.raises(TypeError, lambda: get_model_state_dict(net, options={}), 'StateDictOptions')


def rank_states_come_from_rank_0():
    rank = dist.get_rank()
    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    net = sharded()
    set_model_state_dict(net, model(7).state_dict() if rank == 0 else {}, options=options)
    full = get_model_state_dict(net, options=FULL)
    assert all(torch.equal(full[name], one) for name, one in model(7).state_dict().items())


def rank_states_are_parts_while_the_module_is_whole():
    net = sharded()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    loss_of(net, *batch(0, dist.get_rank())).backward()
    optimizer.step()
    before = get_state_dict(net, optimizer)
    net.unshard()
    whole = get_state_dict(net, optimizer)
    assert all(torch.equal(one, before[0][name]) for name, one in whole[0].items())
    assert whole[1]['state'].keys() == before[1]['state'].keys()
    tap.raises(ValueError, lambda: set_model_state_dict(net, before[0]), 'reshard')
    net.reshard()
    set_model_state_dict(net, before[0])
    other = torch.optim.Adam(torch.nn.Linear(2, 2).parameters())
    tap.raises(ValueError, lambda: get_state_dict(net, other), 'is none of the model')


def rank_a_trainer_has_no_checkpoints_of_parts():
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(4, 4), torch.ones(4, 4)), batch_size=2)
    net = fully_shard(torch.nn.Linear(4, 4))
    parts = net, data, torch.nn.MSELoss(), torch.optim.SGD(net.parameters(), lr=0.1)
    tap.raises(NotImplementedError, lambda: torch.train.Trainer(*parts, checkpoint_folder='/nowhere'), 'spread over')
    trainer = torch.train.Trainer(*parts)
    trainer.run()
    tap.raises(NotImplementedError, lambda: trainer.save_checkpoint('/nowhere/x.safetensors'), 'spread over')
    tap.raises(NotImplementedError, lambda: trainer.load_checkpoint('/nowhere/x.safetensors'), 'spread over')


class Watching(torch.nn.Module):
    """A layer of Python's, which is computed twice; it notes the shape that its weight has then."""

    def __init__(self, *sizes):
        super().__init__()
        self.inner, self.shapes = torch.nn.Linear(*sizes), []

    def part(self, x):
        self.shapes.append(tuple(self.inner.weight.shape))
        return self.inner(x)

    def forward(self, x):
        return torch.utils.checkpoint.checkpoint(self.part, x, use_reentrant=False)


def layers():
    torch.manual_seed(4)
    return torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.ReLU(), Watching(7, 3))


def train(net, x, y, n_steps, is_async, **settings):
    """Returns the result of the evaluation."""
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=len(x))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.3)
    trainer = torch.train.Trainer(net, data, torch.nn.CrossEntropyLoss(), optimizer, n_epochs=n_steps, **settings)
    if not is_async:
        trainer.run()
        return trainer.results['loss']
    failed, loop = [], GLib.MainLoop()

    def done(source, result):
        try:
            source.run_finish(result)
        except Exception as error:
            failed.append(error)
        loop.quit()

    trainer.run_async(None, done)
    loop.run()
    assert not failed, failed
    return trainer.results['loss']


def check_trainers(reshard, inner, threaded):
    rank = dist.get_rank()
    torch.manual_seed(9)
    x, y = torch.randn(4 * N, 5), torch.randint(0, 3, (4 * N,))
    own = slice(4 * rank, 4 * rank + 4)
    held = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=len(x))
    alone, net = layers(), layers()
    for layer in (net[0], net[2]) if inner else ():
        fully_shard(layer, reshard_after_forward=reshard)
    fully_shard(net, reshard_after_forward=reshard)
    for is_async, n_steps in ((True, 3), (False, 1)):
        what = reshard, inner, threaded, is_async
        one = train(alone, x, y, n_steps, False, validation_loader=held)
        other = train(net, x[own], y[own], n_steps, is_async, validation_loader=held, threaded=threaded)
        assert abs(one - other) < 1e-5, (*what, one, other)
        full = get_model_state_dict(net, options=FULL)
        assert all(close(full[name], value) for name, value in alone.state_dict().items()), what
        assert set(net[2].shapes) == {(3, 7)} and len(net[2].shapes) == len(alone[2].shapes), (*what, net[2].shapes)
        assert net[0].weight.shape == (min(3, 7 - 3 * rank), 5) and net[2].inner.weight.shape == (1, 7), what
        expected = {None: (False, True), True: (True, True), False: (False, False)}[reshard]
        kept = [found._shards.shards.props.reshard_after_forward for found in (net, *((net[2],) if inner else ()))]
        assert kept == list(expected[: len(kept)]), (*what, kept)
        assert not _gtorch_fsdp._calls, what


def rank_steps_of_a_trainer_are_those_of_one_process():
    """A thread of C's calls the hooks of Python's, and keeps nothing of Python's between them."""
    for reshard in (None, True, False):
        for inner in (False, True):
            for threaded in (True, False):
                check_trainers(reshard, inner, threaded)


def rank_calls_within_a_call_have_parameters_as_they_are():
    net, x = fully_shard(torch.nn.Linear(5, 4)), torch.ones(2, 5)
    shards, param = net._shards.shards, next(net.parameters())
    expected = net(x).detach()
    shards.begin_forward()
    assert torch.equal(net(x).detach(), expected)
    with torch.no_grad():
        param.mul_(2)
    tap.raises(ValueError, lambda: net(x), 'was changed during a call')
    shards.end_forward()
    assert not torch.equal(net(x).detach(), expected) and net.weight is param and not _gtorch_fsdp._calls


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
