# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Meshes of processes, and layers of which each rank has a part: results and gradients are those of the whole."""

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
from gtorch.distributed.checkpoint.state_dict import (
    StateDictOptions, get_model_state_dict, get_state_dict, set_model_state_dict, set_state_dict)
from gtorch.distributed.device_mesh import init_device_mesh
from gtorch.distributed.fsdp import fully_shard
from gtorch.distributed.optim import ZeroRedundancyOptimizer
from gtorch.distributed.tensor import Replicate, Shard
from gtorch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

N = 4
FULL = StateDictOptions(full_state_dict=True)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.other = torch.nn.Embedding(12, 8), torch.nn.Embedding(12, 8)
        self.up, self.down = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)
        self.head = torch.nn.Linear(8, 12)
        self.mix = torch.nn.Linear(12, 12)

    def forward(self, x):
        x = self.embed(x) + self.other(x)
        x = x + self.down(torch.tanh(self.up(x)))
        return self.mix(torch.tanh(self.head(x)))


PLAN = {'embed': RowwiseParallel(), 'other': ColwiseParallel(output_layouts=Replicate()), 'up': ColwiseParallel(),
        'down': RowwiseParallel(), 'he?d': ColwiseParallel(output_layouts=Replicate()),
        'mix': RowwiseParallel(input_layouts=Replicate())}
DIMS = {'embed.weight': 0, 'other.weight': 1, 'up.weight': 0, 'up.bias': 0, 'down.weight': 1, 'head.weight': 0,
        'head.bias': 0, 'mix.weight': 1}


def model():
    torch.manual_seed(1)
    return Model()


def own(tensor, name, rank, size):
    dim = DIMS.get(name)
    return tensor if dim is None else tensor.narrow(dim, tensor.shape[dim] // size * rank, tensor.shape[dim] // size)


def batch(i):
    torch.manual_seed(9 + i)
    return torch.randint(0, 12, (3, 5)), torch.randint(0, 12, (3, 5))


def learn(net, x, y):
    loss = torch.nn.functional.cross_entropy(net(x).flatten(0, 1), y.flatten())
    loss.backward()
    return loss


def compare(net, alone, group, grads):
    for (name, p), q in zip(net.named_parameters(), alone.parameters()):
        a, b = (p.grad, q.grad) if grads else (p.detach(), q.detach())
        b = own(b, name, group.get_rank(), group.get_size())
        assert a.shape == b.shape and torch.allclose(a, b, atol=1e-5), (name, a, b)


def rank_layers_compute_what_the_whole_does():
    group = dist.group.WORLD
    alone, net = model(), parallelize_module(model(), None, PLAN)
    compare(net, alone, group, False)
    optimizers = [torch.optim.Adam(one.parameters(), lr=0.01) for one in (alone, net)]
    for i in range(3):
        losses = []
        for one, optimizer in zip((alone, net), optimizers):
            optimizer.zero_grad()
            losses.append(learn(one, *batch(i)))
        assert torch.allclose(*losses, atol=1e-5)
        if i == 0:
            compare(net, alone, group, True)
        for optimizer in optimizers:
            optimizer.step()
    for (name, p), q in zip(net.named_parameters(), alone.parameters()):
        assert torch.allclose(p, own(q.detach(), name, group.get_rank(), N), atol=1e-3), name
    assert net.down.bias.shape == (8,)
    assert torch.is_grad_enabled() and net(batch(0)[0]).shape == (3, 5, 12)


def rank_exchanges_can_be_differentiated():
    group, rank = dist.group.WORLD, dist.get_rank()
    x = torch.arange(8.0).requires_grad_()
    part = GTorch.parallel_split(group, x)
    assert part.tolist() == [2 * rank, 2 * rank + 1]
    whole = GTorch.parallel_gather(group, part, -1)
    assert torch.equal(whole, x)
    (whole * torch.arange(8.0)).sum().backward()
    assert x.grad.tolist() == list(range(8))
    x.grad = None
    total = GTorch.parallel_sum(group, GTorch.parallel_copy(group, x) * (rank + 1))
    assert torch.equal(total, x * 10)
    total.sum().backward()
    assert x.grad.tolist() == [10] * 8
    x = torch.arange(6.0).requires_grad_()
    part = GTorch.parallel_split(group, x)
    assert part.tolist() == [[0, 1], [2, 3], [4, 5], []][rank]
    whole = GTorch.parallel_gather(group, part, 6)
    assert torch.equal(whole, x)
    (whole * torch.arange(6.0)).sum().backward()
    assert x.grad.tolist() == list(range(6))
    tap.raises(Exception, lambda: GTorch.parallel_gather(group, torch.ones(3), 6), 'its last dimension has')
    tap.raises(Exception, lambda: GTorch.parallel_split(group, torch.ones(())), 'without dimensions')
    x = torch.arange(8.0).requires_grad_()
    y = GTorch.parallel_copy(group, x).sum()
    tap.raises(RuntimeError, lambda: torch.autograd.grad(y, x, create_graph=True), 'create_graph')


class Uneven(torch.nn.Module):
    """Sizes that four ranks do not divide; the last rank has no output of the head."""

    def __init__(self):
        super().__init__()
        self.embed, self.other = torch.nn.Embedding(13, 7), torch.nn.Embedding(13, 7)
        self.up, self.down = torch.nn.Linear(7, 10), torch.nn.Linear(10, 7)
        self.head, self.mix = torch.nn.Linear(7, 3), torch.nn.Linear(3, 13)

    forward = Model.forward


def rank_sizes_may_be_any():
    torch.manual_seed(1)
    alone = Uneven()
    torch.manual_seed(1)
    net = parallelize_module(Uneven(), None, PLAN)
    optimizers = [torch.optim.SGD(one.parameters(), lr=0.1, momentum=0.9) for one in (alone, net)]
    for i in range(3):
        x, y = batch(i)
        losses = []
        for one, optimizer in zip((alone, net), optimizers):
            optimizer.zero_grad()
            losses.append(learn(one, x, y))
            losses.append(torch.nn.utils.clip_grad_norm_(one.parameters(), 0.5))
            optimizer.step()
        assert torch.allclose(losses[0], losses[2], atol=1e-5) and torch.allclose(losses[1], losses[3], atol=1e-5)
    assert net.head.weight.shape[0] == (0 if dist.get_rank() == 3 else 1)
    full = get_model_state_dict(net, options=FULL)
    for name, one in alone.state_dict().items():
        assert full[name].shape == one.shape and torch.allclose(full[name], one, atol=1e-5), name
    torch.manual_seed(7)
    other = Uneven().state_dict()
    set_model_state_dict(net, other, options=FULL)
    assert all(torch.equal(one, other[name]) for name, one in get_model_state_dict(net, options=FULL).items())
    tap.raises(ValueError, lambda: set_model_state_dict(net, {**other, 'up.bias': torch.ones(3)}, options=FULL),
               'the shape')
    tap.raises(ValueError, lambda: parallelize_module(torch.nn.Embedding(5, 2), None, RowwiseParallel()), 'has none')


def rank_meshes_have_groups_of_lines():
    rank = dist.get_rank()
    mesh = init_device_mesh('cpu', (2, 2), mesh_dim_names=('data', 'model'))
    assert mesh.shape == (2, 2) and mesh.ndim == 2 and mesh.mesh_dim_names == ('data', 'model') and mesh.size() == N
    assert mesh.get_coordinate() == [rank // 2, rank % 2] and mesh.size('model') == 2
    assert mesh.get_local_rank('data') == rank // 2 and mesh.get_local_rank(-1) == rank % 2
    assert dist.get_process_group_ranks(mesh.get_group('data')) == [rank % 2, rank % 2 + 2]
    assert dist.get_process_group_ranks(mesh.get_group('model')) == [rank // 2 * 2, rank // 2 * 2 + 1]
    x = torch.tensor([float(rank)])
    dist.all_reduce(x, group=mesh.get_group(1))
    assert x.item() == (1 if rank < 2 else 5)
    assert len(mesh.get_all_groups()) == 2 and mesh.get_rank() == rank
    one = init_device_mesh('cpu', [N])
    assert one.get_group() is dist.group.WORLD and one.mesh_dim_names is None
    for shape, names, kind, text in (((3, 2), None, ValueError, 'for 4 processes'), ((), None, ValueError, '1 to'),
                                     ((-2, -2), None, ValueError, '1 or more'),
                                     ((2, 2), ['a'], ValueError, '1 names for 2'),
                                     ((2, 2), ['a', 'a'], ValueError, 'two dimensions')):
        tap.raises(kind, lambda a=shape, b=names: init_device_mesh('cpu', a, mesh_dim_names=b), text)
    tap.raises(ValueError, lambda: mesh.get_group('x'), 'no dimension')
    tap.raises(ValueError, lambda: mesh.get_group(2), 'out of range')
    tap.raises(RuntimeError, mesh.get_group, 'name one')
    tap.raises(ValueError, lambda: init_device_mesh('tpu', (4,)), 'cpu or cuda')
    tap.raises(ValueError, lambda: init_device_mesh('cuda', (4,)), 'mpi')
    assert one.device_type == 'cpu'


def rank_batches_and_layers_are_divided():
    """Two dimensions: data parallelism of layers that two ranks share."""
    mesh = init_device_mesh('cpu', (2, 2), mesh_dim_names=('data', 'model'))
    alone, net = model(), parallelize_module(model(), mesh.get_group('model'), PLAN)
    wrapped = torch.nn.parallel.DistributedDataParallel(net, process_group=mesh.get_group('data'))
    (x, y), place = batch(0), mesh.get_local_rank('data')
    torch.nn.functional.cross_entropy(alone(x[:2]).flatten(0, 1), y[:2].flatten()).backward()
    learn(wrapped, x[place: place + 1], y[place: place + 1])
    compare(net, alone, mesh.get_group('model'), True)


def agree(net, alone):
    full = get_model_state_dict(net, options=FULL)
    for name, one in alone.state_dict().items():
        assert full[name].shape == one.shape and torch.allclose(full[name], one, atol=1e-5), name


def train(nets, batches, n=3):
    """Steps of modules, each with batches of its own; returns their optimizers."""
    optimizers = [torch.optim.Adam(one.parameters(), lr=0.01) for one in nets]
    for i in range(n):
        norms = []
        for one, optimizer, of in zip(nets, optimizers, batches):
            optimizer.zero_grad()
            learn(one, *of(i))
            norms.append(torch.nn.utils.get_total_norm([p.grad for p in one.parameters()]))
            norms.append(torch.nn.utils.clip_grad_norm_(one.parameters(), 0.5))
            optimizer.step()
        assert all(torch.allclose(norm, norms[0], atol=1e-5) for norm in norms), norms
    return optimizers


def folder_of_all():
    folder = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(folder, 0)
    return folder[0]


def rank_checkpoints_have_the_parts_of_all_ranks():
    for kind in (Model, Uneven):
        def made(kind=kind):
            torch.manual_seed(1)
            return kind()

        alone, net = made(), parallelize_module(made(), None, PLAN)
        _alone, optimizer = train((alone, net), (batch, batch))
        folder = folder_of_all()
        # the state dict of the module itself, and that of the function; parts are known by their elements
        dcp.save({'net': net.state_dict(), 'module': net}, checkpoint_id=folder)
        states = get_state_dict(net, optimizer)
        dcp.save({'net': states[0], 'optim': states[1]}, checkpoint_id=f'{folder}/both')
        for name in ('net', 'module'):
            whole = {name: kind().state_dict()}
            dcp.load(whole, checkpoint_id=folder)
            assert all(torch.allclose(one, alone.state_dict()[key], atol=1e-5) for key, one in whole[name].items())
        other = parallelize_module(kind(), None, PLAN)
        dcp.load({'module': other}, checkpoint_id=folder)
        agree(other, alone)
        again = torch.optim.Adam(other.parameters(), lr=0.5)
        found = get_state_dict(other, again)
        found = {'net': found[0], 'optim': found[1]}
        dcp.load(found, checkpoint_id=f'{folder}/both')
        set_state_dict(other, again, model_state_dict=found['net'], optim_state_dict=found['optim'])
        for one, step in ((net, optimizer), (other, again)):
            step.zero_grad()
            learn(one, *batch(7))
            step.step()
        assert all(torch.equal(p, q) for p, q in zip(net.parameters(), other.parameters()))
        dist.barrier()


def rank_modules_and_layers_are_divided():
    """Rows of the parts of layers, on a mesh of two dimensions."""
    mesh = init_device_mesh('cpu', (2, 2), mesh_dim_names=('data', 'model'))
    data, place = mesh['data'], mesh['data'].get_local_rank()
    assert data.ndim == 1 and data.shape == (2,) and data.size() == 2 and data.mesh_dim_names == ('data',)
    assert mesh['data', 'model'].shape == (2, 2) and data.get_group() is mesh.get_group('data')
    tap.raises(ValueError, lambda: mesh['model', 'data'], 'the order')
    tap.raises(ValueError, lambda: data.get_group('model'), 'not')
    tap.raises(TypeError, lambda: mesh[0], 'a name')

    def two(i):
        return [one[:2] for one in batch(i)]

    def mine(i):
        return [one[place: place + 1] for one in batch(i)]

    for kind in (Model, Uneven):
        torch.manual_seed(1)
        alone = kind()
        torch.manual_seed(1)
        net = fully_shard(parallelize_module(kind(), mesh['model'], PLAN), mesh=data)
        assert net.up.weight.shape[0] < alone.up.weight.shape[0] / 2
        agree(net, alone)
        _alone, optimizer = train((alone, net), (two, mine))
        agree(net, alone)
        folder = folder_of_all()
        dcp.save({'net': net, 'optim': optimizer.state_dict()}, checkpoint_id=folder)
        whole = {'net': kind()}
        dcp.load(whole, checkpoint_id=folder)
        assert all(torch.allclose(one, alone.state_dict()[name], atol=1e-5)
                   for name, one in whole['net'].state_dict().items())
        torch.manual_seed(3)
        other = fully_shard(parallelize_module(kind(), mesh['model'], PLAN), mesh=data)
        dcp.load({'net': other}, checkpoint_id=folder)
        assert all(torch.equal(p, q) for p, q in zip(net.parameters(), other.parameters()))
        set_model_state_dict(net, get_model_state_dict(other, options=FULL), options=FULL)
        agree(net, alone)
        dist.barrier()


def rank_parts_are_not_mixed_up():
    """What would take the parts of the ranks for the same parameters, or for parts of others."""
    net = parallelize_module(model(), None, PLAN)
    tap.raises(ValueError, lambda: fully_shard(net), 'other ranks of the group have other parts')
    tap.raises(ValueError, lambda: torch.nn.parallel.DistributedDataParallel(net), 'have other parts')
    tap.raises(ValueError, lambda: ZeroRedundancyOptimizer(net.parameters(), torch.optim.SGD, lr=0.1), 'have other')
    sharded = fully_shard(model())
    tap.raises(ValueError, lambda: parallelize_module(sharded, None, PLAN), 'before modules are')
    tap.raises(ValueError, lambda: torch.nn.parallel.DistributedDataParallel(sharded), 'have other parts')
    tap.raises(ValueError, lambda: ZeroRedundancyOptimizer(sharded.parameters(), torch.optim.SGD, lr=0.1), 'have other')
    for one in (net, sharded):
        tap.raises(NotImplementedError, lambda given=one: torch.optim.Adafactor(given.parameters()), 'needs the whole')
        tap.raises(NotImplementedError, lambda given=one: torch.optim.LBFGS(given.parameters()), 'needs the whole')
        matrices = [p for p in one.parameters() if p.dim() == 2]
        tap.raises(NotImplementedError, lambda given=matrices: torch.optim.Muon(given), 'needs the whole')
    tap.raises(TypeError, lambda: parallelize_module(model(), None, {'up': 'col'}), 'ColwiseParallel')
    tap.raises(TypeError, lambda: parallelize_module(model(), 'x', PLAN), 'a DeviceMesh')
    part = net.up.weight
    copy = part.detach().clone()
    assert GTorch.parallelize_is_part(part.detach()) and not GTorch.parallelize_is_part(copy)
    assert GTorch.parallelize_adopt(copy, part) and torch.equal(GTorch.parallelize_gather(copy), model().up.weight)
    tap.raises(Exception, lambda: GTorch.parallelize_adopt(torch.ones(1), part), 'has the shape')
    tap.raises(Exception, lambda: GTorch.parallelize_adopt(copy, torch.ones(4, 8)), 'not a parameter of a layer')


def rank_layers_have_the_parameters_of_one_rank():
    """Whatever the ranks have begun with: the result is that of the layers of the source alone."""
    def made(seed):
        torch.manual_seed(seed)
        return Model()

    inputs, own_rank = batch(1)[0], dist.get_rank()
    for given, source in (({}, 0), ({'src_data_rank': 2}, 2)):
        whole, net = made(50 + source), parallelize_module(made(50 + own_rank), None, PLAN, **given)
        for (name, one), (_, part) in zip(whole.named_parameters(), net.named_parameters()):
            assert torch.equal(part, own(one, name, own_rank, N)), (source, name)
        torch.testing.assert_close(net(inputs), whole(inputs))
    mesh = init_device_mesh('cpu', (2, 2), mesh_dim_names=('data', 'model'))
    linear = torch.nn.Linear(4, 4)
    with torch.no_grad():
        linear.weight.fill_(own_rank), linear.bias.fill_(own_rank)
    parallelize_module(linear, mesh['model'], RowwiseParallel(), src_data_rank=1)
    assert linear.weight.eq(own_rank | 1).all() and linear.bias.eq(own_rank | 1).all(), (own_rank, linear.weight)
    linear = torch.nn.Linear(4, 4)
    with torch.no_grad():
        linear.weight.fill_(own_rank)
    parallelize_module(linear, None, ColwiseParallel(), src_data_rank=None)
    assert linear.weight.eq(own_rank).all()
    for wrong, kind in ((4, ValueError), (-1, ValueError), (True, TypeError), ('0', TypeError)):
        tap.raises(kind, lambda given=wrong: parallelize_module(torch.nn.Linear(4, 4), None, ColwiseParallel(),
                                                                src_data_rank=given), 'src_data_rank')
    tap.raises(TypeError, lambda: parallelize_module(None, None, PLAN), 'parallelize_module: module is a Module')
    for wrong in ((0,), (-4,)):
        tap.raises(ValueError, lambda given=wrong: init_device_mesh('cpu', given), f'the length {wrong[0]}')
    for wrong in (None, 'x', (4.0,), 4):
        tap.raises(TypeError, lambda given=wrong: init_device_mesh('cpu', given), 'init_device_mesh: mesh_shape')


def rank_what_cannot_be_divided_is_refused():
    linear = torch.nn.Linear(4, 4)
    style = ColwiseParallel()
    parallelize_module(linear, None, style)
    tap.raises(ValueError, lambda: parallelize_module(linear, None, style), 'divided already')
    tap.raises(ValueError, lambda: parallelize_module(torch.nn.ReLU(), None, style), 'neither a Linear')
    tap.raises(ValueError, lambda: parallelize_module(torch.nn.LazyLinear(4), None, style), 'lazy')
    padded = torch.nn.Embedding(4, 4, padding_idx=1)
    tap.raises(ValueError, lambda: parallelize_module(padded, None, RowwiseParallel()), 'padding_idx')
    scaled = torch.nn.Embedding(4, 4, max_norm=1.0)
    tap.raises(ValueError, lambda: parallelize_module(scaled, None, style), 'max_norm')
    tap.raises(ValueError, lambda: parallelize_module(model(), None, {'x': style}), 'no module')
    tap.raises(TypeError, lambda: parallelize_module(model(), None, [style]), 'a style or a dictionary')
    tap.raises(NotImplementedError, lambda: ColwiseParallel(input_layouts=Shard(0)), 'Shard(dim=0)')
    tap.raises(NotImplementedError, lambda: RowwiseParallel(output_layouts=Shard(0)), 'Shard(dim=0)')
    tap.raises(NotImplementedError, lambda: RowwiseParallel(use_local_output=False), 'DTensor')
    net = parallelize_module(model(), None, PLAN)
    for wrong in (12, -1):
        tap.raises(Exception, lambda given=wrong: net.embed(torch.tensor([given])), 'out of range')
    bias = net.down.bias
    tap.raises(Exception, lambda: net.down(torch.ones(2, 3)))
    assert net.down.bias is bias and net.down(torch.ones(2, 4)).shape == (2, 8)


@tap.case
def four_processes_agree():
    ranks.start(__file__, N)


if __name__ == '__main__':
    ranks.run(globals()) if sys.argv[1:] == ['--rank'] else tap.main()
