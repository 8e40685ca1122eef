#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs that capture and replay graphs, as PyTorch's users write them; what they must not do is found."""

import pathlib
import tempfile

from gtorch.cuda.graphs import CUDAGraph, make_graphed_callables

from gpus import elsewhere, equal, near, need, raises, tap, torch

cuda = torch.cuda
nn = torch.nn


def warm_up(call, n=3):
    """Calls a function on a side stream, as before captures."""
    stream = cuda.Stream()
    stream.wait_stream(cuda.current_stream())
    with cuda.stream(stream):
        for _ in range(n):
            result = call()
    cuda.current_stream().wait_stream(stream)
    return result


def capture(call, **options):
    """A graph of what a function does, and its result."""
    g = cuda.CUDAGraph()
    with cuda.graph(g, **options):
        result = call()
    return g, result


@tap.case
def graphs_have_a_module():
    assert CUDAGraph is cuda.CUDAGraph and make_graphed_callables is cuda.make_graphed_callables
    assert cuda.streams.Stream is cuda.Stream


@tap.case
def a_graph_computes_anew_from_its_inputs():
    x = torch.empty((5,), device='cuda')
    warm_up(lambda: x * 2)
    g, y = capture(lambda: x * 2)
    for value in (3, 4):
        x.copy_(torch.full((5,), value, device='cuda'))
        g.replay()
        equal(y, [value * 2.0] * 5)


@tap.case
def a_training_step_is_a_graph():
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(16, 8), nn.Dropout(p=0.0), nn.Linear(8, 4)).cuda()
    twin = nn.Sequential(nn.Linear(16, 8), nn.Dropout(p=0.0), nn.Linear(8, 4)).cuda()
    loss_fn = nn.MSELoss()
    x, target = torch.randn(10, 16, device='cuda'), torch.randn(10, 4, device='cuda')
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        loss = loss_fn(model(x), target)
        loss.backward()
        optimizer.step()
        return loss

    def eager_step():
        optimizer.zero_grad(set_to_none=True)
        step()

    warm_up(eager_step)
    optimizer.zero_grad(set_to_none=True)
    twin.load_state_dict(model.state_dict())
    g, loss = capture(step)
    assert optimizer.capturable
    other = torch.optim.SGD(twin.parameters(), lr=0.1)
    for i in range(6):
        x.copy_(torch.rand_like(x))
        target.copy_(torch.rand_like(target))
        if i == 3:
            optimizer.lr = other.lr = 0.01
        g.replay()
        other.zero_grad()
        eager = loss_fn(twin(x), target)
        eager.backward()
        other.step()
        near(loss, eager)
        for mine, theirs in zip(model.parameters(), twin.parameters()):
            near(mine, theirs)
    adam = torch.optim.Adam(model.parameters())
    raises(RuntimeError, 'is not capturable', capture, adam.step)


@tap.case
def gradients_scaled_in_a_graph_are_used_outside():
    model = nn.Linear(8, 4).cuda()
    x, target = torch.randn(6, 8, device='cuda'), torch.randn(6, 4, device='cuda')
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), cuda.amp.GradScaler(1024.0)

    def pass_through():
        with cuda.amp.autocast():
            loss = nn.functional.mse_loss(model(x), target)
        scaler.scale(loss).backward()
        return loss

    def step():
        scaler.step(optimizer)
        scaler.update()

    def eager():
        optimizer.zero_grad(set_to_none=True)
        pass_through()
        step()

    warm_up(eager)
    optimizer.zero_grad(set_to_none=True)
    g, loss = capture(pass_through)
    losses = []
    for _ in range(5):
        g.replay()
        step()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0], losses


@tap.case
def parts_of_a_network_are_graphs():
    first, second, third = nn.Linear(6, 5).cuda(), nn.Linear(5, 2).cuda(), nn.Linear(5, 2).cuda()
    x, h = torch.randn(4, 6, device='cuda'), torch.randn(4, 5, device='cuda', requires_grad=True)
    parameters = [*first.parameters(), *second.parameters(), *third.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    graphed = cuda.make_graphed_callables(first, (x,)), cuda.make_graphed_callables(second, (h,))
    other = cuda.make_graphed_callables(third, (h,))
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        data = torch.rand_like(x)
        between = graphed[0](data)
        result = graphed[1](between) if between.sum().item() > 0 else other(between)
        loss = result.pow(2).mean()
        loss.backward()
        assert first.weight.grad is not None
        near(between, first(data))
        optimizer.step()
    both = cuda.make_graphed_callables((nn.Linear(6, 5).cuda(), nn.Linear(5, 2).cuda()), ((x,), (h,)))
    assert len(both) == 2 and both[1](both[0](x)).shape == (4, 2)


@tap.case
def streams_branch_out_and_come_back():
    x = torch.ones(4, device='cuda')
    s = cuda.Stream()

    def branches():
        y = x * 2
        s.wait_stream(cuda.current_stream())
        with cuda.stream(s):
            z = x + 10
        cuda.current_stream().wait_stream(s)
        return y + z

    warm_up(branches)
    g, total = capture(branches)
    x.fill_(3)
    g.replay()
    equal(total, [19.0] * 4)


class Halves(nn.Module):
    """A network with one half on each of two GPUs."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(6, 5), nn.Tanh()).cuda(0)
        self.second = nn.Linear(5, 2).cuda(1)

    def forward(self, x):
        return self.second(self.first(x).cuda(1))


def train_on_two_gpus(optimizer_class, scalers):
    """Compares steps that are a graph with others that are not."""
    models = [Halves(), Halves()]
    models[1].load_state_dict(models[0].state_dict())
    optimizers = [optimizer_class(model.parameters(), lr=0.1, capturable=True) for model in models]
    x, target = torch.randn(4, 6, device='cuda:0'), torch.randn(4, 2, device='cuda:1')

    def step(i):
        optimizers[i].zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(models[i](x), target)
        scalers[i].scale(loss).backward()
        scalers[i].step(optimizers[i])
        scalers[i].update()
        return loss

    for i in range(2):
        step(i)
    cuda.synchronize(0), cuda.synchronize(1)
    g, s, t = cuda.CUDAGraph(), cuda.Stream(0), cuda.Stream(1)
    with cuda.graph(g, stream=s):
        t.wait_stream(s)
        assert t.is_capturing()
        with cuda.stream(t):
            loss = step(0)
        s.wait_stream(t)
    assert not t.is_capturing() and loss.get_device() == 1
    for _ in range(5):
        g.replay()
        near(loss, step(1))
    for a, b in zip(models[0].parameters(), models[1].parameters()):
        near(a, b)


@tap.case
def a_model_on_two_gpus_is_trained_by_one_graph():
    need(2)
    for enabled in (False, True):
        scalers = [torch.amp.GradScaler('cuda', enabled=enabled) for _ in range(2)]
        train_on_two_gpus(torch.optim.Adam, scalers)


@tap.case
def a_stream_of_another_gpu_must_come_back():
    need(2)
    x, s, t = torch.ones(3, device='cuda:1'), cuda.Stream(0), cuda.Stream(1)
    cuda.synchronize(1)

    def forget():
        with cuda.graph(cuda.CUDAGraph(), stream=s):
            t.wait_stream(s)
            with cuda.stream(t):
                x.neg_()

    raises(RuntimeError, 'of cuda:1 took part in the capture and the first one, ', forget)
    equal(x, [1.0, 1.0, 1.0])
    g = cuda.CUDAGraph()
    with cuda.graph(g, stream=s):
        t.wait_stream(s)
        with cuda.stream(t):
            x.neg_()
        s.wait_stream(t)
    g.replay()
    equal(x, [-1.0, -1.0, -1.0])


@tap.case
def graphs_share_a_pool():
    x, y = torch.zeros(4, device='cuda'), torch.zeros(4, device='cuda')
    first, a = capture(lambda: x * 2)
    second, b = capture(lambda: y + 1, pool=first.pool())
    assert second.pool() == first.pool()
    x.fill_(1)
    y.fill_(2)
    first.replay()
    second.replay()
    equal(a, [2.0] * 4)
    equal(b, [3.0] * 4)
    handle = cuda.graph_pool_handle()
    third, _c = capture(lambda: x - 1, pool=handle, stream=cuda.Stream(), capture_error_mode='thread_local')
    assert third.pool() == handle
    pool = cuda.MemPool()
    fourth, _d = capture(lambda: x - 1, pool=pool.id)
    assert fourth.pool().get_id() == pool.get_id()


@tap.case
def captures_begin_and_end_by_hand():
    x = torch.ones(3, device='cuda')
    g = cuda.CUDAGraph(keep_graph=True)
    raises(RuntimeError, 'default stream', g.capture_begin)
    with cuda.stream(cuda.Stream()):
        g.capture_begin(pool=cuda.graph_pool_handle(), capture_error_mode='thread_local')
        assert cuda.is_current_stream_capturing()
        y = x + 1
        g.capture_end()
    g.enable_debug_mode()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / 'graph.dot'
        g.debug_dump(path)
        assert path.read_text().startswith('digraph') and 'add' in path.read_text()
    g.instantiate()
    g.replay()
    cuda.synchronize()
    equal(y, [2.0] * 3)
    for handle in (g.raw_cuda_graph, g.raw_cuda_graph_exec):
        raises(NotImplementedError, 'not given to programs', handle)
    g.reset()
    raises(RuntimeError, '', g.replay)


def refused(program):
    """What a program says that the checks must refuse."""
    status, text = elsewhere(f'''
x, s, g = torch.ones(4, device='cuda'), torch.cuda.Stream(), torch.cuda.CUDAGraph()
x * 2
{program}
''', GTORCH_CHECK='graph,streams=fatal')
    assert status != 0, text
    return text


@tap.case
def a_stream_that_takes_no_part_is_refused():
    text = refused('''
with torch.cuda.graph(g):
    with torch.cuda.stream(s):
        x * 2
''')
    assert 'takes no part in the capture' in text, text


@tap.case
def what_waits_for_the_gpu_is_refused():
    for line in ('x.sum().item()', 'x.cpu()', 'print(x.tolist())', 'torch.cuda.synchronize()', 'x.nonzero()'):
        text = refused(f'''
with torch.cuda.graph(g):
    {line}
''')
        assert 'captur' in text or 'before the graph is replayed' in text, text


@tap.case
def each_replay_draws_new_numbers():
    own = torch.Generator(device='cuda')
    for generator in (own, None):
        g, x = capture(lambda generator=generator: torch.rand(8, device='cuda', generator=generator))
        found = []
        for seed in (5, 5, None):
            if seed is not None:
                own.manual_seed(seed)
                cuda.manual_seed(seed)
            g.replay()
            found.append(x.tolist())
        assert found[0] == found[1] != found[2]


@tap.case
def a_stream_that_does_not_come_back_is_refused():
    text = refused('''
with torch.cuda.graph(g):
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s):
        y = x * 2
''')
    assert 'captur' in text, text


@tap.case
def two_captures_at_a_time_are_apart():
    x, outer, inner = torch.ones(4, device='cuda'), cuda.CUDAGraph(), cuda.CUDAGraph()
    with cuda.graph(outer, capture_error_mode='thread_local'):
        y = x * 2
        with cuda.graph(inner, stream=cuda.Stream(), capture_error_mode='thread_local'):
            z = x + 5
    x.fill_(3)
    inner.replay()
    outer.replay()
    equal(y, [6.0] * 4)
    equal(z, [8.0] * 4)


if __name__ == '__main__':
    tap.main()
