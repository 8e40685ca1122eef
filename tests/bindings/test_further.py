#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Names of PyTorch's that are made of other operations, former names, and what errors say of names that are missing."""

import math
import os
import pathlib
import pickle
import sys
import tempfile
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gtorch as torch  # noqa: E402
import gtorch.nn as nn  # noqa: E402
import gtorch.nn.functional as F  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402
from tap import raises  # noqa: E402


def leaf(*values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


@tap.case
def hooks_of_nodes_see_all_gradients():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y, seen = x * w, []
    first = y.grad_fn.register_prehook(lambda grads: seen.append(('before', grads)))
    second = y.grad_fn.register_prehook(lambda grads: (grads[0] * 2,))
    third = y.grad_fn.register_hook(lambda inner, outer: seen.append(('after', inner, outer)))
    y.sum().backward(retain_graph=True)
    (one, grads), (two, inner, outer) = seen
    assert (one, two) == ('before', 'after')
    assert grads[0].tolist() == [1, 1] and outer[0].tolist() == [2, 2]
    assert [grad.tolist() for grad in inner] == [[6, 8], [2, 4]]
    assert x.grad.tolist() == [6, 8] and w.grad.tolist() == [2, 4]
    for handle in (first, second, third):
        handle.remove()
        handle.remove()
    x.grad = None
    with y.grad_fn.register_hook(lambda inner, _outer: (None, inner[1])):
        y.sum().backward(retain_graph=True)
    assert x.grad is None
    y.sum().backward()
    assert x.grad.tolist() == [3, 4] and len(seen) == 2


@tap.case
def hooks_of_nodes_end_a_pass():
    def fails(*_grads):
        raise KeyError('mine')

    for register, hook, kind, text in (
        ('register_hook', fails, KeyError, 'mine'),
        ('register_prehook', fails, KeyError, 'mine'),
        ('register_hook', lambda inner, _outer: (inner[0],), RuntimeError, '1 gradients of 2 inputs'),
        ('register_hook', lambda _inner, _outer: 5, TypeError, 'gave int'),
        ('register_prehook', lambda _grads: (torch.ones(7),), RuntimeError, 'shape [7]'),
    ):
        x, w = leaf(1.0), leaf(2.0)
        y = x * w
        getattr(y.grad_fn, register)(hook)
        raises(kind, lambda y=y: y.sum().backward(), text)
        assert x.grad is None
    raises(TypeError, lambda: y.grad_fn.register_hook(5), 'cannot be called')


@tap.case
def hooks_of_leaves_see_what_is_added():
    x, seen = leaf(1.0, 2.0), []
    node = (x * 3).grad_fn.next_functions[0][0]
    assert node.name() == 'torch::autograd::AccumulateGrad' and node.variable is x
    node.register_prehook(lambda grads: (grads[0] * 10,))
    handle = node.register_hook(lambda inner, outer: seen.append((inner, outer[0].tolist(), x.grad.tolist())))
    (x * 3).sum().backward()
    (x * 3).sum().backward()
    assert seen == [((), [30, 30], [30, 30]), ((), [30, 30], [60, 60])], seen
    handle.remove()
    (x * 3).sum().backward()
    assert len(seen) == 2


@tap.case
def norms_may_have_no_bias():
    for made, x in (
        (nn.BatchNorm1d(3, bias=False), torch.randn(4, 3)),
        (nn.BatchNorm2d(3, bias=False), torch.randn(4, 3, 2, 2)),
        (nn.InstanceNorm1d(3, affine=True, bias=False), torch.randn(4, 3, 5)),
        (nn.GroupNorm(3, 6, bias=False), torch.randn(4, 6, 2)),
        (nn.LayerNorm(3, bias=False), torch.randn(4, 3)),
        (nn.SyncBatchNorm(3, bias=False), torch.randn(4, 3, 2)),
    ):
        assert made.bias is None and list(dict(made.named_parameters())) == ['weight'], made
        assert 'bias=False' in repr(made), made
        plain = made(x)
        made.weight.data.fill_(2.0)
        assert torch.allclose(made(x), plain * 2, atol=1e-5)
        made(x).sum().backward()
        assert made.weight.grad is not None
    lazy = nn.LazyBatchNorm1d(bias=False)
    lazy(torch.randn(4, 3))
    assert lazy.bias is None and lazy.weight.shape == (3,)
    assert nn.BatchNorm1d(3).bias is not None and nn.BatchNorm1d(3, affine=False, bias=True).bias is None
    raises(TypeError, lambda: nn.GroupNorm(3, 6, 1e-5, True, None, None, False), 'by position')
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm1d(3, bias=False)))
    assert converted[0].bias is None and isinstance(converted[0], nn.SyncBatchNorm)


def optimizer(rate=1.0):
    return torch.optim.SGD([torch.zeros(1).requires_grad_()], lr=rate, momentum=0.5)


@tap.case
def schedules_go_to_an_epoch():
    schedules = torch.optim.lr_scheduler
    for make, epoch, rate, then in (  # PyTorch's numbers
        (lambda o: schedules.StepLR(o, 2, 0.1), 3, 0.1, 0.01),
        (lambda o: schedules.ExponentialLR(o, 0.9), 3, 0.729, 0.6561),
        (lambda o: schedules.CosineAnnealingLR(o, 10), 3, 0.7938926261462366, 0.6545084971874737),
        (lambda o: schedules.LinearLR(o), 3, 0.7333333333333334, 0.8666666666666668),
        (lambda o: schedules.PolynomialLR(o), 3, 0.4, 0.2),
        (lambda o: schedules.MultiStepLR(o, [2, 4]), 3, 0.1, 0.01),
        (lambda o: schedules.LambdaLR(o, lambda n: 1 / (n + 1)), 3, 0.25, 0.2),
        (lambda o: schedules.CyclicLR(o, 0.1, 1.0), 3, 0.10135, 0.1018),
        (lambda o: schedules.CosineAnnealingWarmRestarts(o, 4), 2.5, 0.30865828381745514, None),
    ):
        schedule = make(optimizer())
        schedule.optimizer.step()
        schedule.step()
        schedule.step(epoch)
        assert schedule.last_epoch == math.floor(epoch), schedule
        assert abs(schedule.get_last_lr()[0] - rate) < 1e-12, (schedule, schedule.get_last_lr())
        schedule.step()
        assert then is None or abs(schedule.get_last_lr()[0] - then) < 1e-12, (schedule, schedule.get_last_lr())


@tap.case
def schedules_refuse_epochs():
    schedules = torch.optim.lr_scheduler
    step = schedules.StepLR(optimizer(), 2)
    raises(RuntimeError, lambda: step.step(-1), 'from 0 to 2^53')
    raises(RuntimeError, lambda: step.step(math.nan), 'from 0 to 2^53')
    raises(TypeError, lambda: step.step('x'))
    assert step.last_epoch == 0
    raises(RuntimeError, lambda: schedules.LambdaLR(optimizer(), lambda n: 1).step(1.5), 'takes whole ones')
    one = optimizer()
    both = schedules.SequentialLR(one, [schedules.StepLR(one, 2), schedules.StepLR(one, 2)], [2])
    raises(NotImplementedError, lambda: both.step(1), 'takes no epoch')
    raises(NotImplementedError, lambda: schedules.ReduceLROnPlateau(optimizer()).step(0.5, 1), 'epoch')


@tap.case
def schedules_tell_their_rates():
    schedules = torch.optim.lr_scheduler
    for schedule in (
        schedules.StepLR(optimizer(), 2), schedules.LambdaLR(optimizer(), lambda n: 1 / (n + 1)),
        schedules.CyclicLR(optimizer(), 0.1, 1.0), schedules.OneCycleLR(optimizer(), 1.0, 10),
    ):
        assert len(schedule.get_lr()) == 1 and abs(schedule.get_lr()[0] - schedule.get_last_lr()[0]) < 1e-12, schedule

    class Halves(schedules.LRScheduler):
        def get_lr(self):
            return [base / 2 for base in self.base_lrs]

    half = Halves(optimizer())
    half.step(7)
    assert half.last_epoch == 7 and half.get_last_lr() == [0.5]


@tap.case
def counts_follow_their_distributions():
    torch.manual_seed(3)
    for rate in (0.3, 4.0, 29.0, 31.0, 900.0, 1e9):
        for dtype in (torch.float32, torch.float64):
            drawn = torch.poisson(torch.full([20000], rate, dtype=dtype)).double()
            mean, var = drawn.mean().item(), drawn.var().item()
            assert abs(mean - rate) < 5 * math.sqrt(rate / 20000) + rate * 2e-7, (rate, mean)
            assert abs(var / rate - 1) < 0.06, (rate, var)
            assert (drawn == drawn.floor()).all() and (drawn >= 0).all()
    share = (torch.poisson(torch.full([20000], 0.5)) == 0).float().mean().item()
    assert abs(share - math.exp(-0.5)) < 0.02, share
    for n, p in ((1.0, 0.3), (10.0, 0.5), (1000.0, 0.01), (1e6, 0.25)):
        drawn = torch.binomial(torch.full([20000], n), torch.tensor(p)).double()
        spread = n * p * (1 - p)
        assert abs(drawn.mean().item() - n * p) < 5 * math.sqrt(spread / 20000) + 1e-3, (n, p, drawn.mean())
        assert abs(drawn.var().item() / spread - 1) < 0.06, (n, p)
        assert (drawn <= n).all() and (drawn >= 0).all()


@tap.case
def counts_have_limits():
    assert torch.poisson(torch.tensor([0.0, math.inf])).tolist() == [0, math.inf]
    both = torch.binomial(torch.tensor([0.0, 5.0, 5.0, 2.5, 5.0]), torch.tensor([0.5, 0.0, 1.0, 0.5, 1.5]))
    assert both[:3].tolist() == [0, 0, 5] and both[3:].isnan().all()
    generator = torch.Generator().manual_seed(5)
    one = torch.poisson(torch.full([50], 9.0), generator=generator)
    assert torch.equal(one, torch.poisson(torch.full([50], 9.0), torch.Generator().manual_seed(5)))
    assert torch.poisson(torch.ones(2, dtype=torch.bfloat16)).dtype == torch.bfloat16
    x = leaf(1.0, 50.0)
    torch.poisson(x).sum().backward()
    assert x.grad.tolist() == [0, 0]
    raises(RuntimeError, lambda: torch.poisson(torch.tensor([1.0, -1.0])), 'none may be negative')
    raises(RuntimeError, lambda: torch.poisson(torch.tensor([math.nan])), 'NaN')
    raises(RuntimeError, lambda: torch.poisson(torch.tensor([1, 2])), 'int64')
    raises(RuntimeError, lambda: torch.binomial(torch.ones(2), torch.ones(2, dtype=torch.float64)), 'one dtype')


@tap.case
def bounds_share_the_gradient():
    for name, at_tie in (('clamp_min', 0.5), ('clamp_max', 0.5)):
        x, bound = leaf(1.0, 2.0, 3.0), leaf(2.0, 2.0, 2.0)
        getattr(torch, name)(x, bound).sum().backward()
        assert x.grad[1] == bound.grad[1] == at_tie, name
        assert (x.grad + bound.grad).tolist() == [1, 1, 1]
        y = x.detach().clone()
        assert getattr(y, f'{name}_')(bound.detach()) is y
        assert torch.equal(y, getattr(x, name)(bound))
    assert leaf(1.0, 3.0).clamp_min(min=2.0).tolist() == [2, 3]
    raises(ValueError, lambda: F.hardtanh(leaf(1.0), 2.0, 1.0), 'must not be greater')
    assert F.hardtanh(leaf(0.0, 3.0), 1.0, 1.0).tolist() == [1, 1]
    assert F.hardtanh_(torch.tensor([-3.0]), -2.0, 2.0).item() == -2


@tap.case
def pools_tell_places():
    x = torch.arange(8.0).reshape(1, 8)
    values, places = torch.adaptive_max_pool1d(x, 2)
    assert values.tolist() == [[3, 7]] and places.tolist() == [[3, 7]]
    assert F.adaptive_max_pool1d(x, 2).tolist() == [[3, 7]]
    assert F.adaptive_max_pool2d(x.reshape(1, 2, 4), 1, False).tolist() == [[[7]]]
    assert F.adaptive_max_pool2d(x.reshape(1, 2, 4), 1, True)[1].tolist() == [[[7]]]


@tap.case
def pickles_keep_the_order_in_memory():
    for x in (
        torch.arange(6.0).reshape(2, 3).T, torch.randn(2, 3, 4).permute(2, 0, 1), torch.randn(2, 3),
        torch.randn(4, 6)[::2], torch.randn(2, 3, 2, 2).to(memory_format=torch.channels_last),
        torch.randn(3, 1).expand(3, 4), torch.ones([]), torch.zeros(0, 3).T,
    ):
        again = pickle.loads(pickle.dumps(x))
        assert torch.equal(again, x) and again.dtype == x.dtype
        if x.numel() and x.numel() == x.untyped_storage().nbytes() // 4:
            assert again.stride() == x.stride(), (x.stride(), again.stride())


@tap.case
def facts_of_tensors_are_functions():
    x = torch.ones(2, 3, dtype=torch.uint8)
    assert torch.get_device(x) == x.get_device() and not torch.is_signed(x) and torch.is_signed(x.int())
    assert not torch.is_conj(x) and not torch.is_neg(x) and not x.is_conj() and x.int().is_signed()
    assert torch.is_same_size(x, x + 1) and not torch.is_same_size(x, x[0]) and not torch.is_inference(x)
    assert torch.t(x).shape == (3, 2) and torch.fill(x, 7).sum() == 42 and x.sum() == 6
    y = leaf(1.0)
    assert not torch.detach(y).requires_grad and torch.detach(y).data_ptr() == y.data_ptr()
    assert torch.detach_copy(y).data_ptr() != y.data_ptr()
    pairs = torch.tensor([[1.0, 2.0]])
    assert torch.view_as_complex_copy(pairs).tolist() == [1 + 2j]
    assert torch.view_as_real_copy(torch.tensor([1 + 2j])).tolist() == [[1, 2]]
    assert torch.randn(2, 3, 4).permute(2, 0, 1).dim_order() == (1, 2, 0)
    assert x.to_dense() is x and x.storage_type() is torch.TypedStorage
    raises(TypeError, lambda: torch.is_signed(5), 'must be a tensor')


@tap.case
def tensors_get_other_memory():
    x = torch.arange(6.0)
    assert x.as_strided_([2, 2], [3, 1]) is x and x.tolist() == [[0, 1], [3, 4]]
    y, source = torch.empty(0), torch.arange(4.0)
    assert y.set_(source) is y and y.data_ptr() == source.data_ptr()
    y.set_(source.untyped_storage(), 1, (3,), (1,))
    y[0] = 9
    assert source.tolist() == [0, 9, 2, 3] and y.tolist() == [9, 2, 3]
    assert y.set_().numel() == 0
    raises(RuntimeError, lambda: torch.empty(0).set_(torch.ones(2).int()), 'dtype')
    raises(RuntimeError, lambda: leaf(1.0).set_(source), 'requires grad')


@tap.case
def files_are_memory():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'numbers')
        made = torch.from_file(path, shared=True, size=3, dtype=torch.int32)
        assert made.tolist() == [0, 0, 0]
        made.fill_(5)
        del made
        assert pathlib.Path(path).read_bytes() == b'\5\0\0\0' * 3
        alone = torch.from_file(path, size=2, dtype=torch.int32)
        alone.fill_(1)
        assert pathlib.Path(path).read_bytes() == b'\5\0\0\0' * 3
        raises(RuntimeError, lambda: torch.from_file(path, size=4, dtype=torch.int32), '12 bytes')
        raises(FileNotFoundError, lambda: torch.from_file(path + 'x', size=4))


@tap.case
def older_functions_compute():
    assert torch.range(1, 2, 0.5).tolist() == [1, 1.5, 2] and torch.range(1, 4).dtype == torch.float32
    raises(RuntimeError, lambda: torch.range(1, 0), 'do not lead')
    assert torch.cond(torch.tensor(True), lambda x: x + 1, lambda x: x - 1, (3,)) == 4
    assert torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (0, 1)) == (3, 8)
    raises(RuntimeError, lambda: torch.cond(torch.ones(2), abs, abs, (1,)), 'one element')
    x, w = torch.randn(5, 2, 3), torch.randn(3, 3, 4)
    wanted = F.conv1d(x.permute(1, 2, 0), w.permute(2, 1, 0), torch.ones(4), padding=1).permute(2, 0, 1)
    assert torch.equal(torch.conv_tbc(x, w, torch.ones(4), 1), wanted)
    image, kernel = torch.randn(1, 2, 5, 5), torch.randn(2, 2, 3, 3)
    made = torch.convolution(image, kernel, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    assert torch.equal(made, F.conv2d(image, kernel, padding=1))
    made = torch.convolution(image, kernel, None, [2, 2], [0, 0], [1, 1], True, [1, 1], 1)
    assert torch.equal(made, F.conv_transpose2d(image, kernel, stride=2, output_padding=1))
    grid = torch.affine_grid_generator(torch.eye(2, 3).unsqueeze(0), [1, 2, 5, 5], False)
    assert torch.allclose(torch.grid_sampler(image, grid, 0, 0, False), image, atol=1e-5)
    raises(ValueError, lambda: torch.grid_sampler(image, grid, 7, 0, False), 'interpolation_mode')
    dropped = torch.feature_dropout(torch.ones(3, 50, 4), 0.5, True)
    assert set(dropped.flatten().tolist()) == {0, 2} and (dropped.amax(-1) == dropped.amin(-1)).all()
    assert torch.equal(F.upsample(image, scale_factor=2), F.interpolate(image, scale_factor=2))


@tap.case
def older_norms_and_factors_compute():
    a = torch.randn(4, 3, dtype=torch.float64)
    assert torch.allclose(torch.frobenius_norm(a), torch.linalg.norm(a))
    assert torch.allclose(torch.nuclear_norm(a), torch.linalg.svdvals(a).sum())
    assert torch.allclose(torch.norm_except_dim(a, 2, 0), a.norm(dim=1, keepdim=True))
    square = a @ a.T + torch.eye(4, dtype=torch.float64)
    values, vectors = torch.lobpcg(square, 2)
    assert torch.allclose(square @ vectors, vectors * values) and values[0] >= values[1]
    other = torch.diag(torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64))
    values, vectors = torch.lobpcg(square, 3, other, largest=False)
    assert torch.allclose(square @ vectors, other @ vectors * values) and values[0] <= values[1]
    raises(ValueError, lambda: torch.lobpcg(square, 5), 'from 1 to 4')


@tap.case
def modules_take_buffers():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.mean = nn.Buffer(torch.zeros(3))
            self.passing = nn.Buffer(torch.ones(2), persistent=False)

    net = Net()
    assert list(dict(net.named_buffers())) == ['mean', 'passing'] and list(net.state_dict()) == ['mean']
    assert isinstance(nn.Buffer(torch.zeros(1)), nn.Buffer) and not isinstance(torch.zeros(1), nn.Buffer)
    net.mean = torch.ones(3)
    assert list(dict(net.named_buffers())) == ['mean', 'passing'] and net.mean.sum() == 3
    layer = nn.Linear(2, 3)
    parameter = layer.weight
    assert layer.to_empty(device='cpu') is layer and layer.weight is parameter and layer.weight.shape == (3, 2)
    assert isinstance(nn.LSTM(2, 3), nn.RNNBase) and not isinstance(nn.LSTMCell(2, 3), nn.RNNBase)
    assert isinstance(nn.GRUCell(2, 3), nn.RNNCellBase) and issubclass(nn.GRU, nn.RNNBase)
    assert not isinstance(nn.Linear(2, 3), nn.RNNBase)
    raises(NotImplementedError, lambda: layer.compile(), 'no compiler')
    variable = torch.autograd.Variable(torch.ones(2), requires_grad=True)
    assert variable.requires_grad and isinstance(variable, torch.autograd.Variable)


@tap.case
def former_names_warn():
    for call in (lambda: nn.init.constant(torch.empty(2), 3.0), lambda: nn.init.xavier_uniform(torch.empty(2, 2)),
                 lambda: nn.utils.clip_grad_norm([leaf(1.0)], 1.0)):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter('always')
            call()
        assert [one.category for one in found] == [FutureWarning] and 'is now' in str(found[0].message)


@tap.case
def packed_sequences_are_converted():
    rnn = nn.utils.rnn
    packed = rnn.pack_padded_sequence(torch.ones(3, 2, 1), [3, 2])
    for name, dtype in (('int', torch.int32), ('long', torch.int64), ('byte', torch.uint8), ('char', torch.int8),
                        ('short', torch.int16), ('bfloat16', torch.bfloat16)):
        assert getattr(packed, name)().data.dtype == dtype
    assert not packed.is_pinned()
    assert rnn.invert_permutation(torch.tensor([2, 0, 1])).tolist() == [1, 2, 0]
    assert rnn.invert_permutation(None) is None
    raises(TypeError, lambda: packed.to(1.5), 'dtype')


@tap.case
def functions_are_linearized():
    out, product = torch.func.linearize(lambda x: x * x, torch.tensor([1.0, 3.0]))
    assert out.tolist() == [1, 9] and product(torch.tensor([1.0, 1.0])).tolist() == [2, 6]


@tap.case
def names_that_are_not_there_say_why():
    for owner, name, text in (
        (torch, 'symeig', 'linalg.eigh'), (torch, 'jit', 'no compiler'), (torch, 'sparse_coo_tensor', 'dense'),
        (torch, 'quantize_per_tensor', 'quantized'), (torch, 'uint16', 'int32'), (torch, 'chalf', 'complex64'),
        (torch.ones(2), 'to_sparse', 'dense'), (torch.ones(2), 'resize', 'reshape()'),
        (torch.ones(2), 'xpu', "NVIDIA's"), (nn, 'UninitializedParameter', 'LazyLinear'), (F, 'scaled_mm', 'bfloat16'),
        (nn.Linear(2, 3), 'register_backward_hook', 'register_full_backward_hook'),
        (torch.autograd, 'NestedIOFunction', 'Function'), (torch.optim, 'SparseAdam', 'Adam'),
        (torch.utils.checkpoint, 'CheckpointPolicy', 'checkpoint()'), (torch.func, 'functionalize', 'no compiler'),
        (torch.profiler, 'ExecutionTraceObserver', 'export_chrome_trace'),
        (torch.distributed, 'rendezvous', 'init_process_group'),
    ):
        assert not hasattr(owner, name), name
        raises(AttributeError, lambda owner=owner, name=name: getattr(owner, name), text)
    for owner in (torch, torch.ones(2), nn, F, nn.Linear(2, 3), torch.autograd, torch.func):
        raises(AttributeError, lambda owner=owner: owner.no_such_name, 'no_such_name')


if __name__ == '__main__':
    tap.main()
