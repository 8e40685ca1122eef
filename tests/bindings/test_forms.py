#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Calls in the forms that PyTorch's programs have them in."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402
from tap import raises  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None

nn, optim = GTorch.nn, GTorch.optim
ones = GTorch.ones


# --- members of modules ---


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Linear(1, 1)
        self.again = self.shared
        self.inside = nn.Sequential(self.shared, nn.BatchNorm1d(1))

    def forward(self, x):
        return self.inside(x)


@tap.case
def members_have_names():
    net = Net()
    names = ['', 'shared', 'inside', 'inside.1']
    assert [name for name, _ in net.named_modules()] == names
    assert [module for _, module in net.named_modules()] == list(net.modules())
    assert [name for name, _ in net.named_modules(None, 'net')][:2] == ['net', 'net.shared']
    several = [name for name, _ in net.named_modules(remove_duplicate=False)]
    assert several == ['', 'shared', 'again', 'inside', 'inside.0', 'inside.1'], several
    assert [name for name, _ in net.named_modules({net.shared})] == ['', 'inside', 'inside.1']
    parameters = ['shared.weight', 'shared.bias', 'inside.1.weight', 'inside.1.bias']
    assert [name for name, _ in net.named_parameters()] == parameters
    assert len(list(net.named_parameters('a', True, False))) == 8
    assert [one for _, one in net.named_parameters()] == list(net.parameters())
    assert list(net.named_parameters(recurse=False)) == []
    buffers = [f'inside.1.{name}' for name in ('running_mean', 'running_var', 'num_batches_tracked')]
    assert [name for name, _ in net.named_buffers()] == buffers
    assert [name for name, _ in net.named_buffers('a.b')] == [f'a.b.{name}' for name in buffers]
    assert len(list(net.buffers())) == 3 and list(net.named_buffers(recurse=False)) == []


@tap.case
def a_child_that_is_there_twice_comes_once():
    net = Net()
    assert [name for name, _ in net.named_children()] == ['shared', 'inside']
    assert list(net.children()) == [net.shared, net.inside]
    row = nn.Sequential(net.shared, nn.ReLU(), net.shared)
    assert len(list(row.children())) == 2 and len(row) == 3 and len(list(row)) == 3 and len(row[1:]) == 2


@tap.case
def arguments_of_members_are_checked():
    net = Net()
    for name in ('parameters', 'buffers', 'named_parameters', 'named_buffers'):
        raises(TypeError, lambda name=name: getattr(net, name)(recurse='no'), "'no'")
    for name in ('named_parameters', 'named_buffers', 'named_modules'):
        raises(TypeError, lambda name=name: getattr(net, name)(prefix=True), 'prefix')
        raises(TypeError, lambda name=name: getattr(net, name)(remove_duplicate='no'), "'no'")
    raises(TypeError, lambda: net.named_modules([]), 'memo')


@tap.case
def modules_are_converted():
    for name in ('float', 'double', 'half', 'bfloat16'):
        net = nn.Linear(1, 1)
        dtype = getattr(ones(1), name)().dtype
        assert getattr(net, name)() is net and net.weight.dtype == net.bias.dtype == dtype, name
    net = nn.Linear(1, 1)
    assert net.type(GTorch.float64) is net and net.weight.dtype == GTorch.float64
    assert net.to(ones(1)).weight.dtype == GTorch.float32
    assert net.to(ones(1, dtype=GTorch.float64)).weight.dtype == GTorch.float64
    assert net.to('float16').weight.dtype == net.to('cpu', 'float16').weight.dtype == GTorch.float16
    assert net.to('cpu', GTorch.float32, True).weight.dtype == GTorch.float32
    assert net.cpu() is net
    raises(TypeError, lambda: net.to(ones(1), 'float16'), 'two dtypes')
    raises(TypeError, lambda: net.to('cpu', device='cpu'), 'two devices')
    raises((GLib.Error, ValueError), lambda: net.to('flaot16'), 'flaot16')
    for one in (net, ones(1)):
        raises(ValueError, lambda one=one: one.cuda('cpu'), 'cpu')


@tap.case
def load_state_dict_tells_what_did_not_fit():
    net = nn.Linear(1, 1)
    found = net.load_state_dict({'weight': ones(1, 1), 'other': ones(1)}, strict=False)
    assert found.missing_keys == ['bias'] and found.unexpected_keys == ['other']
    missing, unexpected = net.load_state_dict(net.state_dict())
    assert missing == unexpected == []


@tap.case
def call_and_repr_of_a_child_are_used():
    class Own(nn.Linear):
        def __call__(self, x):
            return super().__call__(x) * 0 + 7

        def __repr__(self):
            return 'Own\nof two lines'

    class Long(nn.Module):
        def extra_repr(self):
            return 'one\ntwo'

    row = nn.Sequential(nn.Sequential(nn.Identity(), Own(2, 2)))
    assert row(ones(1, 2)).tolist() == row.forward(ones(1, 2)).tolist() == [[7, 7]]
    seen = []
    row.register_forward_hook(lambda _module, inputs, output: seen.append(output.tolist()))
    row(ones(1, 2))
    assert seen == [[[7, 7]]]
    text = 'Sequential(\n  (0): Sequential(\n    (0): Identity()\n    (1): Own\n    of two lines\n  )\n)'
    assert repr(row) == text, repr(row)
    inside = 'Long(\n    one\n    two\n  )'
    assert repr(nn.Sequential(Long())) == f'Sequential(\n  (0): {inside}\n)'
    assert nn.Sequential(Long()).to_string() == repr(nn.Sequential(Long()))
    assert repr(nn.Linear(1, 2)) == nn.Linear(1, 2).to_string()


@tap.case
def forward_takes_keywords():
    x = ones(2, 2)
    net = nn.Linear(2, 1)
    assert net(input=x).tolist() == net(x).tolist() == nn.Sequential(net)(input=x).tolist()
    assert nn.MSELoss()(input=x, target=x).item() == nn.MSELoss()(x, target=x).item() == 0
    raises(TypeError, lambda: net(x=x), "'x'")
    raises(TypeError, lambda: net(x, input=x), 'input')


# --- tensors ---


@tap.case
def the_cpu_has_no_number():
    assert GTorch.tensor([1.0], device='cpu').get_device() == -1


@tap.case
def clamp_needs_a_bound():
    x = GTorch.tensor([1.0, 5.0])
    for name in ('clamp', 'clamp_'):
        raises(ValueError, getattr(x, name), f'{name}()')
        raises(ValueError, lambda name=name: getattr(x, name)(None, None), f'{name}()')
    assert x.clamp_(2).tolist() == [2, 5] and x.clamp_(max=4).tolist() == [2, 4]
    assert x.clamp_(None, GTorch.tensor([1.0, 3.0])) is x and x.tolist() == [1, 3]


@tap.case
def where_refuses_what_no_element_can_be():
    x = GTorch.tensor([1, 200], dtype=GTorch.uint8)
    raises(ValueError, lambda: GTorch.where(x > 1, x, 300), 'where: other is 300, which is no uint8')
    raises(ValueError, lambda: GTorch.where(x > 1, 300, x), 'where: input is 300, which is no uint8')
    raises(ValueError, lambda: x.where(x > 1, 300), 'where: other is 300, which is no uint8')
    assert GTorch.where(x > 1, x, -1).tolist() == [255, 200] and GTorch.where(x > 1, x, 7).dtype == GTorch.uint8
    assert GTorch.where(x > 1, x, 1.5).tolist() == [1.5, 200] and GTorch.where(x > 1, 1, 300).tolist() == [300, 1]
    assert GTorch.where(x > 1, x.bool(), 3).tolist() == [3, 1]


@tap.case
def a_forced_array_has_no_gradient():
    x = GTorch.ones(2, requires_grad=True)
    raises(RuntimeError, x.numpy, 'detach')
    assert x.numpy(force=True).tolist() == [1, 1] and (x * 2).numpy(force=True).tolist() == [2, 2]
    raises(TypeError, lambda: x.numpy(force='yes'), 'True or False')


@tap.case
def tensors_are_reversed():
    assert [*reversed(GTorch.arange(3))] == [2, 1, 0] and reversed(GTorch.ones(2, 3)).shape == (2, 3)
    assert reversed(GTorch.tensor(5)).item() == 5


@tap.case
def weights_of_lerp_may_be_tensors():
    x, weights = GTorch.zeros(2), GTorch.tensor([0.25, 0.5])
    assert x.lerp(ones(2), weights).tolist() == [0.25, 0.5]
    assert x.lerp_(ones(2), weights) is x and x.tolist() == [0.25, 0.5]
    assert GTorch.zeros(2).lerp_(ones(2), 0.5).tolist() == [0.5, 0.5]


@tap.case
def a_power_has_no_modulus():
    raises(TypeError, lambda: pow(ones(1), 2, 5))
    raises(TypeError, lambda: pow(2, ones(1), 5))
    assert pow(ones(1) * 3, 2).tolist() == [9] and pow(2, ones(1) * 3).tolist() == [8]


@tap.case
def numbers_of_numpy_keep_their_dtype():
    if np is None:
        raise tap.Skip('there is no numpy')
    for name in ('float16', 'float32', 'float64', 'int8', 'uint8', 'int16', 'int32', 'int64', 'complex64'):
        value, dtype = getattr(np, name)(3), getattr(GTorch, name)
        for data in (value, [value], [[value, value]]):
            assert GTorch.tensor(data).dtype == dtype, (name, data)
        assert GTorch.tensor(value).item() == 3
    assert GTorch.tensor(np.float64(0.1)).item() == 0.1 and GTorch.tensor([np.float64(0.1)]).tolist() == [0.1]
    assert GTorch.tensor(np.bool_(True)).dtype == GTorch.bool
    assert GTorch.tensor([np.int8(1), 2.5]).dtype == GTorch.float32
    assert GTorch.tensor([np.int8(1), np.float64(2)]).dtype == GTorch.float64
    assert GTorch.tensor([ones([], dtype=GTorch.float64)]).dtype == GTorch.float64
    assert GTorch.tensor(np.float64(1), dtype=GTorch.int8).dtype == GTorch.int8


@tap.case
def arrays_of_bools_and_read_only_ones_are_shared():
    if np is None:
        raise tap.Skip('there is no numpy')
    bools = np.array([True, False])
    x = GTorch.from_numpy(bools)
    bools[1] = True
    assert x.dtype == GTorch.bool and x.tolist() == [True, True]
    x[0] = False
    assert not bools[0]
    column = np.zeros((3, 2), dtype=bool)[:, 1]
    assert GTorch.from_numpy(column).shape == (3,) and GTorch.from_numpy(np.ones(0, dtype=bool)).shape == (0,)
    content = bytearray(range(4))
    array = np.frombuffer(memoryview(content).toreadonly(), dtype='u1')
    try:
        y = GTorch.from_numpy(array)
    except BufferError as error:  # without the accelerator
        assert 'GTorch.tensor(array), which copies' in str(error)
    else:
        assert y.is_read_only() and y.tolist() == [0, 1, 2, 3]
        content[0] = 9
        assert y[0].item() == 9
        raises(GLib.Error, lambda: y.add_(1), 'read-only')
        del array
        assert y.tolist() == [9, 1, 2, 3]
        raises(BufferError, lambda: GTorch.from_numpy(np.broadcast_to(np.ones(1), (2, 2))), 'which copies')


@tap.case
def randint_takes_one_limit():
    x = GTorch.randint(3, (100,))
    assert x.shape == (100,) and x.dtype == GTorch.int64 and set(x.tolist()) == {0, 1, 2}
    assert GTorch.randint(3, size=(2,)).shape == GTorch.randint(high=3, size=(2,)).shape == (2,)
    assert GTorch.randint(5, 6, (2,)).tolist() == GTorch.randint(low=5, high=6, size=(2,)).tolist() == [5, 5]
    assert GTorch.randint(1, (2,), dtype=GTorch.int8).dtype == GTorch.int8
    raises(TypeError, lambda: GTorch.randint(3))


# --- functions and optimizers ---


class Double(GTorch.Function):
    @staticmethod
    def forward(context, x):
        return x * 2

    @staticmethod
    def backward(context, grad):
        return grad * 2


@tap.case
def functions_are_applied_as_classes():
    x = ones(2).requires_grad_()
    y = Double.apply(x)
    y.sum().backward()
    assert y.tolist() == [2, 2] and x.grad.tolist() == [2, 2]
    assert Double().apply([x])[0].tolist() == GTorch.Function.apply(Double(), [x])[0].tolist() == [2, 2]


class Plain(GTorch.Optimizer):
    def __init__(self, params, lr=0.5):
        super().__init__(params, dict(lr=lr))

    def step_param(self, group, param, grad):
        with GTorch.no_grad():
            param.sub_(grad * group['lr'])


@tap.case
def optimizers_are_derived_from():
    p, q = nn.Parameter(ones(1)), nn.Parameter(ones(1))
    plain = Plain([{'params': p}, {'params': [q], 'lr': 0.25}])
    assert [group['lr'] for group in plain.param_groups] == [0.5, 0.25]
    (p * 2 + q * 2).sum().backward()
    assert plain.step() is None
    assert p.tolist() == [0] and q.tolist() == [0.5]
    assert Plain([p], lr=0.125).param_groups[0]['lr'] == 0.125
    raises(TypeError, lambda: Plain(p), 'list')
    assert Plain([{'params': [p], 'lrr': 1}]).param_groups[0]['lrr'] == 1


@tap.case
def a_closure_computes_the_loss():
    p = nn.Parameter(ones(1))
    sgd = optim.SGD([p], lr=0.25)

    def closure():
        sgd.zero_grad()
        loss = (p * 2).sum()
        loss.backward()
        return loss

    with GTorch.no_grad():
        assert sgd.step(closure).item() == 2
    assert p.tolist() == [0.5]
    raises(TypeError, lambda: sgd.step(3), 'closure')
    del p.grad
    assert p.grad is None


@tap.case
def generators_take_a_device():
    one = GTorch.Generator(device='cpu')
    one.manual_seed(3) if hasattr(one, 'manual_seed') else one.set_seed(3)
    assert GTorch.randn(2, generator=one, device='cpu').shape == (2,)
    raises(GLib.Error, lambda: GTorch.Generator(device='gpu'), 'gpu')


# --- messages ---


@tap.case
def messages_have_the_names_of_python():
    cpu, p = GTorch.Device('cpu'), nn.Parameter(ones(1))
    own = GTorch.Stream('cpu'), GTorch.Event(), optim.SGD([p]), GTorch.Generator(), GTorch.GradScaler(), cpu
    texts = [repr(one) for one in (*own, cpu.get_allocator(), optim.SGD([p]).param_groups[0], GTorch.CUDAGraph())]
    assert type(own[0]).__name__ == 'Stream' and type(cpu).__name__ == 'Device'
    calls = (
        lambda: nn.Linear(1, 1, bias=3),
        lambda: optim.lr_scheduler.StepLR(3, 1),
        lambda: GTorch.safetensors_load_bytes(),
        lambda: GTorch.safetensors_load_file(),
        lambda: GTorch.safetensors_save({}, None),
        lambda: GTorch.Tensor(2.5),
        lambda: GTorch.GradScaler().step(3),
        lambda: GTorch.GradScaler().scale(3),
        lambda: own[0].run(),
        lambda: GTorch.CUDAGraph().capture(3, None, print),
        lambda: cpu.flush(),
        lambda: own[0].add(),
    )
    for call in calls:
        try:
            call()
        except (TypeError, AttributeError) as error:
            texts.append(str(error))
        else:
            raise AssertionError('no error')
    for text in texts:
        for kind in ('Cpu', 'Optimizer', 'Tensor', 'Stream', 'SGD', 'Event', 'Gen', 'CUDA'):
            assert f'GTorch{kind}' not in text, text
        for hidden in ('_lists', 'GObject', 'has_bias', '__gi__', "'int' object"):
            assert hidden not in text, text


@tap.case
def arguments_of_tables_are_counted():
    raises(TypeError, GTorch.safetensors_load_bytes, 'safetensors_load_bytes()', '(0 given)')
    raises(TypeError, lambda: GTorch.safetensors_save({}, None), 'safetensors_save()', '(2 given)')


# --- first values ---


@tap.case
def first_values_are_filled_in():
    w = nn.Parameter(GTorch.zeros(64, 64))
    init = nn.init
    bounds = {
        'uniform_': (0.5, 0.289), 'normal_': (0, 1), 'xavier_uniform_': (0, 0.125), 'xavier_normal_': (0, 0.125),
        'kaiming_uniform_': (0, 0.1768), 'kaiming_normal_': (0, 0.1768),
    }  # fmt: skip
    for name, (mean, std) in bounds.items():
        assert getattr(init, name)(w) is w
        # the error of the mean and the spread of 4,096 values, six times over
        assert abs(w.mean().item() - mean) < 6 * std / 64 and abs(w.std().item() - std) < 6 * std / 90, name
    assert init.ones_(w).sum().item() == 4096 and init.zeros_(w).sum().item() == 0
    assert init.constant_(w, 3).mean().item() == 3 and init.constant_(tensor=w, val=2).mean().item() == 2
    init.kaiming_normal_(w, mode='fan_out', nonlinearity='relu')
    assert init.calculate_gain('relu') == 2**0.5 and init.calculate_gain('conv2d') == 1
    assert abs(init.calculate_gain('leaky_relu', 0.2) - (2 / 1.04) ** 0.5) < 1e-12
    raises(ValueError, lambda: init.kaiming_normal_(w, mode='fan'), 'fan')
    raises(ValueError, lambda: init.kaiming_normal_(w, nonlinearity='rleu'), 'rleu')
    raises(TypeError, lambda: init.normal_(3), 'tensor')
    raises(TypeError, lambda: init.normal_(w, std='1'), 'normal_()')
    raises(TypeError, lambda: init.normal_(w, sdt=1), 'sdt')


@tap.case
def modules_of_operations_have_pytorchs_names():
    x = GTorch.tensor([1.0, 2.0, 0.5, 4.0])
    assert GTorch.fft.rfft(x, n=3).equal(GTorch.fft_rfft(x, 3))
    assert GTorch.special.expit(x).equal(x.sigmoid()) and GTorch.special.entr(x).equal(GTorch.special_entr(x))
    assert GTorch.special.gammaln(x).equal(x.lgamma()) and GTorch.special.psi(x).equal(x.digamma())
    own = {name for name in dir(GTorch) if name.startswith(('fft_', 'linalg_', 'special_'))}
    for name in own:
        space, short = name.split('_', 1)
        if callable(getattr(GTorch, name)) and name != 'fft_plan_cache_get_type':
            assert getattr(getattr(GTorch, space), short) is getattr(GTorch, name), name
    raises(TypeError, lambda: GTorch.fft.rfft(x, m=3), 'm')
    from gi.repository.GTorch import fft

    assert fft is GTorch.fft


@tap.case
def every_function_of_first_values_is_there():
    names = {name for name in dir(GTorch) if name.startswith('init_') and name != 'init_calculate_fan'}
    own = {f'init_{name.rstrip("_")}' for name in vars(nn.init) if not name.startswith('_')}
    assert names and names <= own, names - own


@tap.case
def lengths_of_ctc_loss_may_be_lists():
    x = GTorch.arange(24, dtype=GTorch.float32).sin().reshape(4, 2, 3).log_softmax(-1)
    targets = GTorch.tensor([[1, 2], [2, 1]])
    wanted = GTorch.ctc_loss(x, targets, GTorch.tensor([4, 3]), GTorch.tensor([2, 1]), reduction='sum')
    assert nn.functional.ctc_loss(x, targets, (4, 3), [2, 1], 0, 'sum').equal(wanted)
    assert nn.CTCLoss(reduction='sum')(x, targets, (4, 3), target_lengths=[2, 1]).equal(wanted)
    raises(TypeError, lambda: GTorch.ctc_loss(x, targets, [4, 3.5], [2, 1]), 'integer')


@tap.case
def bags_of_rows_are_looked_up():
    weight = GTorch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    rows, flat, offsets = GTorch.tensor([[0, 2], [1, 1]]), GTorch.tensor([0, 2, 1, 1]), GTorch.tensor([0, 2])
    factors = GTorch.tensor([1.0, 2.0, 0.5, 0.5])
    bag = nn.functional.embedding_bag
    assert bag(rows, weight).tolist() == bag(flat, weight, offsets).tolist() == [[3.0, 4.0], [3.0, 4.0]]
    assert bag(rows, weight, mode='max', padding_idx=-1).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    summed = bag(flat, weight, offsets, mode='sum', per_sample_weights=factors)
    assert summed.tolist() == [[11.0, 14.0], [3.0, 4.0]]
    assert GTorch.embedding_bag(weight, flat, offsets, per_sample_weights=factors).equal(summed)
    layer = nn.EmbeddingBag(3, 2, mode='sum')
    layer.weight = nn.Parameter(weight)
    assert layer(flat, offsets, factors).equal(summed) and layer(input=flat, offsets=offsets).sum().item() == 28
    assert layer(rows, None, factors.reshape(2, 2)).equal(summed)
    assert layer(rows, per_sample_weights=factors.reshape(2, 2)).equal(summed)
    layer.register_forward_pre_hook(lambda module, inputs: None)
    assert layer(rows, None, factors.reshape(2, 2)).equal(summed)
    raises(TypeError, lambda: bag(rows, weight, sparse=True), 'sparse')
    raises(TypeError, lambda: nn.EmbeddingBag(3, 2, sparse=True), 'sparse')
    raises(TypeError, lambda: layer(rows, 3), 'offsets')
    raises(TypeError, lambda: nn.EmbeddingBag(3, 2)(), 'indices')
    small = weight.clone()
    assert nn.functional.embedding(GTorch.tensor([1]), small, max_norm=2.5).tolist() == [[1.5, 2.0]]
    assert small.tolist() == [[1.0, 2.0], [1.5, 2.0], [5.0, 6.0]]


@tap.case
def bools_are_taken():
    bools = GTorch.tensor([[True, False], [True, True]])
    x, y = GTorch.tensor([True, False]), GTorch.tensor([True, True])
    for result, expected in (
        (bools.clamp(0, 1), [[1, 0], [1, 1]]),
        (bools.clamp(max=0), [[0, 0], [0, 0]]),
        (bools.square(), [[1, 0], [1, 1]]),
    ):
        assert result.dtype == GTorch.int64 and result.tolist() == expected, result
    assert bools.clamp(0, 0.5).tolist() == [[0.5, 0.0], [0.5, 0.5]]
    raises(GLib.Error, lambda: bools.clone().square_(), 'square', 'bool', 'int64')
    for result, expected in (
        (GTorch.outer(x, y), [[True, True], [False, False]]),
        (GTorch.addr(bools, x, y), [[True, True], [True, True]]),
        (GTorch.addr(bools, x, y, beta=0), [[True, True], [False, False]]),
        (GTorch.addr(bools, x, y, alpha=0), bools.tolist()),
        (GTorch.addr(GTorch.tensor(False), x, y, alpha=0), [[False, False], [False, False]]),
    ):
        assert result.dtype == GTorch.bool and result.tolist() == expected, result
    raises(GLib.Error, lambda: GTorch.addr(GTorch.zeros(3, 2, 2, dtype=GTorch.bool), x, y), 'addr', '[3, 2, 2]')
    drawn = GTorch.randint(0, 2, (1000,), dtype=GTorch.bool)
    assert drawn.dtype == GTorch.bool and 400 < drawn.sum().item() < 600
    assert GTorch.randint_like(drawn, 1, 2).all().item()
    raises(GLib.Error, lambda: GTorch.randint(0, 3, (2,), dtype=GTorch.bool), 'bool', '3')
    raises(GLib.Error, lambda: GTorch.randint(-1, 1, (2,), dtype=GTorch.bool), 'bool', '-1')


@tap.case
def outer_takes_two_vectors():
    x = GTorch.tensor([1.0, 2.0], requires_grad=True)
    product = GTorch.outer(x, GTorch.tensor([3, 4, 5]))
    assert product.dtype == GTorch.float32 and product.tolist() == [[3.0, 4.0, 5.0], [6.0, 8.0, 10.0]]
    product.sum().backward()
    assert x.grad.tolist() == [12.0, 12.0]
    raises(GLib.Error, lambda: GTorch.outer(ones(2, 2), x), 'outer', 'self', '[2, 2]')
    raises(GLib.Error, lambda: GTorch.outer(x, ones(())), 'outer', 'vec2')


@tap.case
def complex_arguments_have_gradients():
    z = GTorch.tensor([0j, 1 + 2j, -0.3 + 0.1j], dtype=GTorch.complex128, requires_grad=True)
    for function in (GTorch.sinc, nn.functional.softsign):
        assert function(z.detach())[0].item() == (1 if function is GTorch.sinc else 0)
        assert GTorch.autograd.gradcheck(lambda x, function=function: function(x), (z[1:].detach().requires_grad_(),))
    assert abs(GTorch.sinc(z.detach())[1].item() - (-34.09033869939482 - 17.04516934969741j)) < 1e-12
    assert abs(nn.functional.softsign(z.detach())[1].item() - (1 + 2j) / (1 + abs(1 + 2j))) < 1e-15
    nn.functional.softsign(z).sum().real.backward()
    assert z.grad[0].item() == 1


@tap.case
def each_matrix_has_its_tolerance():
    A = GTorch.diag_embed(GTorch.tensor([[3.0, 2.0, 0.5], [3.0, 2.0, 0.5]], dtype=GTorch.float64))
    limits = GTorch.tensor([1.0, 2.5], dtype=GTorch.float64)
    rank = GTorch.linalg.matrix_rank
    assert rank(A, limits).tolist() == rank(A, atol=limits).tolist() == rank(A, hermitian=True, atol=limits).tolist()
    assert rank(A, limits).tolist() == [2, 1] and rank(A, rtol=limits / 3.5).tolist() == [2, 1]
    assert rank(A, 1.0).tolist() == [2, 2] and rank(A, GTorch.tensor(1.0)).tolist() == [2, 2]
    assert rank(ones(0, 3, 3), atol=ones(0)).shape == (0,)
    assert rank(ones(2, 0, 0), rtol=ones(2)).tolist() == [0, 0]
    for hermitian in (False, True):
        inverse = GTorch.linalg.pinv(A, atol=limits, hermitian=hermitian)
        expected = GTorch.diag_embed(GTorch.tensor([[1 / 3, 0.5, 0.0], [1 / 3, 0.0, 0.0]], dtype=GTorch.float64))
        assert GTorch.allclose(inverse, expected, atol=1e-12), inverse
    raises(ValueError, lambda: rank(A, -limits), 'negative')


if __name__ == '__main__':
    tap.main()
