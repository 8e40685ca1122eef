#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Modules as functions, and derivatives of functions, as torch.func has them; states that are assigned, and views of
members. The numbers follow from the formulas, which PyTorch gives, too."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402
from tap import raises  # noqa: E402

nn, func = GTorch.nn, GTorch.func
X = GTorch.tensor([[1.0, 2.0], [3.0, 4.0]])
Y = GTorch.tensor([1.0, 2.0])


def fixed():
    layer = nn.Linear(2, 1)
    with GTorch.no_grad():
        layer.weight.copy_(GTorch.tensor([[0.5, -0.25]]))
        layer.bias.fill_(1.0)
    return layer


class Net(nn.Module):
    """Two layers with one weight, a buffer, and a parameter of its own."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Linear(2, 2)
        self.second.weight = self.first.weight
        self.scale = nn.Parameter(GTorch.ones(1))

    def forward(self, x, times=1):
        return self.second(self.norm(self.first(x)) * self.scale) * times


@tap.case
def modules_are_called_with_other_parameters():
    layer, weight = fixed(), GTorch.tensor([[1.0, -1.0]], requires_grad=True)
    own = layer.weight
    found = func.functional_call(layer, {'weight': weight * 2, 'bias': GTorch.tensor([0.5])}, (X,))
    assert found.tolist() == [[-1.5], [-1.5]]
    found.sum().backward()
    assert weight.grad.tolist() == [[8, 12]] and own.grad is None
    assert layer.weight is own and [name for name, _p in layer.named_parameters()] == ['weight', 'bias']
    other = nn.Parameter(GTorch.zeros(1, 2))
    assert func.functional_call(layer, {'weight': other}, X).tolist() == [[1], [1]]
    assert layer.weight is own and not hasattr(layer, 'parametrizations')
    assert nn.utils.stateless.functional_call(layer, {}, X).equal(layer(X))


@tap.case
def all_tensors_of_a_network_are_replaced():
    net = Net()
    params = {name: GTorch.full_like(param.detach(), 0.5) for name, param in net.named_parameters()}
    buffers = {name: buffer.clone() for name, buffer in net.named_buffers()}
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    members = dict(net.named_parameters())
    found = func.functional_call(net, (params, buffers), X, {'times': 2})
    wanted = nn.functional.batch_norm(X @ GTorch.full([2, 2], 0.5) + 0.5, None, None, GTorch.full([2], 0.5),
                                      GTorch.full([2], 0.5), training=True)
    wanted = (wanted * 0.5 @ GTorch.full([2, 2], 0.5) + 0.5) * 2
    assert found.allclose(wanted), (found, wanted)
    assert buffers['norm.num_batches_tracked'].item() == 1
    assert all(tensor.equal(before[name]) for name, tensor in net.state_dict().items())
    assert all(members[name] is param for name, param in net.named_parameters())
    assert net.second.weight is net.first.weight
    tied = func.functional_call(net.eval(), {'first.weight': GTorch.zeros(2, 2)}, X)
    assert tied.equal(net.second.bias.expand(2, 2))
    untied = func.functional_call(net, {'first.weight': GTorch.zeros(2, 2)}, X, tie_weights=False)
    assert not untied.equal(tied)


@tap.case
def wrong_replacements_change_nothing():
    net = Net()
    members = dict(net.named_parameters())
    raises(KeyError, lambda: func.functional_call(net, {'foo': Y}, X), "'foo'")
    raises(TypeError, lambda: func.functional_call(net, {'scale': 3}, X), 'scale must be a tensor, not int')
    raises(TypeError, lambda: func.functional_call(net, [3], X), 'dictionary')
    raises(TypeError, lambda: func.functional_call(3, {}, X), 'Module, not int')
    raises(ValueError, lambda: func.functional_call(net, ({'scale': Y}, {'scale': Y}), X), "'scale' is in two")
    raises(RuntimeError, lambda: func.functional_call(net, {'scale': Y}, X, strict=True), 'needs first.weight')
    raises(GLib.Error, lambda: func.functional_call(net, {'first.weight': GTorch.ones(3, 3)}, X), 'linear')
    assert all(members[name] is param for name, param in net.named_parameters())


@tap.case
def gradients_of_gradients_are_taken():
    cube = lambda x: (x**3).sum()  # noqa: E731
    assert func.grad(cube)(Y).tolist() == [3, 12] and not func.grad(cube)(Y).requires_grad
    assert func.grad(lambda x: func.grad(cube)(x).sum())(Y).tolist() == [6, 12]
    fourth = func.grad(func.grad(func.grad(lambda x: x**4)))
    assert fourth(GTorch.tensor(2.0)).item() == 48
    gradient, value = func.grad_and_value(cube)(Y)
    assert gradient.tolist() == [3, 12] and value.item() == 9 and not value.requires_grad
    by_second = func.grad(lambda x, y: (x * y * y).sum(), argnums=1)
    assert by_second(Y, Y).tolist() == [2, 8]
    both = func.grad(lambda x, y: (x * y).sum(), argnums=(0, -1))(Y, Y + 1)
    assert [one.tolist() for one in both] == [[2, 3], [1, 2]]
    gradient, aux = func.grad(lambda x: (x.sum(), x * 2), has_aux=True)(Y)
    assert gradient.tolist() == [1, 1] and aux.tolist() == [2, 4] and not aux.requires_grad
    outer = Y.clone().requires_grad_()
    func.grad(cube)(outer).sum().backward()
    assert outer.grad.tolist() == [6, 12]
    assert func.grad(lambda x: (x.detach() * 2).sum())(Y).tolist() == [0, 0]
    with GTorch.no_grad():
        assert func.grad(cube)(Y).tolist() == [3, 12]


@tap.case
def jacobians_are_computed_both_ways():
    for jacobian in (func.jacrev, func.jacfwd):
        assert jacobian(lambda x: x**2)(Y).tolist() == [[2, 0], [0, 4]]
        found = jacobian(lambda x, y: (x * y, y), argnums=(0, 1))(Y, Y + 1)
        assert [[one.tolist() for one in row] for row in found] == [
            [[[2, 0], [0, 3]], [[1, 0], [0, 2]]], [[[0, 0], [0, 0]], [[1, 0], [0, 1]]]
        ]
        found = jacobian(lambda p: {'out': p['a'] * p['b'].sum()})({'a': Y, 'b': Y})
        assert found['out']['a'].tolist() == [[3, 0], [0, 3]] and found['out']['b'].tolist() == [[1, 1], [2, 2]]
        value, aux = jacobian(lambda x: (x.sum(), 5), has_aux=True)(Y)
        assert value.tolist() == [1, 1] and aux == 5
    assert func.hessian(lambda x: (x**3).sum())(Y).tolist() == [[6, 0], [0, 12]]
    assert func.jacrev(func.jacrev(lambda x: x**3))(GTorch.tensor(2.0)).item() == 12


@tap.case
def products_with_jacobians_are_computed():
    value, product = func.vjp(lambda x, y: x * y, Y, Y + 1)
    assert value.tolist() == [2, 6] and not value.requires_grad
    assert [one.tolist() for one in product(GTorch.ones(2))] == [[2, 3], [1, 2]]
    assert [one.tolist() for one in product(GTorch.tensor([2.0, 0.0]))] == [[4, 0], [2, 0]]
    raises(RuntimeError, lambda: product(GTorch.ones(3)), 'shapes of the output')
    value, tangent = func.jvp(lambda x: x**2, (Y,), (GTorch.tensor([1.0, 10.0]),))
    assert value.tolist() == [1, 4] and tangent.tolist() == [2, 40]
    value, tangent, aux = func.jvp(lambda x: (x**2, 'more'), (Y,), (Y,), has_aux=True)
    assert tangent.tolist() == [2, 8] and aux == 'more'
    raises(TypeError, lambda: func.jvp(lambda x: x, Y, Y), 'tuples')
    raises(RuntimeError, lambda: func.jvp(lambda x: GTorch.ones(2), (Y,), (Y,), strict=True), 'does not depend')


@tap.case
def derivatives_of_modules_are_taken():
    layer = fixed()
    params = {name: param.detach() for name, param in layer.named_parameters()}

    def loss(values, x):
        return func.functional_call(layer, values, (x,)).pow(2).sum()

    outputs = X @ params['weight'].T + params['bias']
    gradients = func.grad(loss)(params, X)
    assert gradients['weight'].allclose(2 * outputs.T @ X) and gradients['bias'].allclose(2 * outputs.sum(0))
    ones = {name: GTorch.ones_like(param) for name, param in params.items()}
    _value, tangent = func.jvp(lambda p: func.functional_call(layer, p, (X,)), (params,), (ones,))
    assert tangent.tolist() == [[4], [8]]
    for jacobian in (func.jacrev, func.jacfwd):
        found = jacobian(lambda p: func.functional_call(layer, p, (X,)))(params)
        assert found['weight'].tolist() == [[[[1, 2]]], [[[3, 4]]]] and found['bias'].tolist() == [[[1]], [[1]]]
    found = func.hessian(loss)(params, X)
    assert found['weight']['bias'].flatten().tolist() == [8, 12] and found['bias']['bias'].item() == 4


@tap.case
def what_cannot_be_differentiated_is_refused():
    raises(RuntimeError, lambda: func.grad(lambda x: x * 2)(Y), 'one element, not shape [2]')
    raises(RuntimeError, lambda: func.grad(lambda x: 3)(Y), 'not int')
    raises(IndexError, lambda: func.grad(lambda x: x.sum(), argnums=3)(Y), 'there are 1 arguments')
    raises(TypeError, lambda: func.grad(lambda x: x.sum())(3.0), 'not float')
    raises(TypeError, lambda: func.grad(lambda x: x.sum(), has_aux=True)(Y), 'has_aux')
    raises(TypeError, lambda: func.grad(3), 'cannot be called')
    for one in (func.vmap, GTorch.vmap):
        raises(NotImplementedError, lambda: one(lambda x: x), 'no dimension of tensors can be hidden')


@tap.case
def states_are_assigned():
    layer = nn.Linear(2, 1)
    former, weight = layer.weight, GTorch.ones(1, 2, dtype=GTorch.float64)
    before, bias = former.detach().clone(), nn.Parameter(GTorch.zeros(1), False)
    found = layer.load_state_dict({'weight': weight, 'bias': bias}, assign=True)
    assert str(found) == '<All keys matched successfully>' and found.missing_keys == []
    assert layer.weight.dtype == GTorch.float64 and layer.weight.data_ptr() == weight.data_ptr()
    assert isinstance(layer.weight, nn.Parameter) and layer.weight.requires_grad and layer.bias is bias
    assert former.equal(before)
    norm, mean = nn.BatchNorm1d(2), GTorch.tensor([1.0, 2.0])
    norm.load_state_dict({**norm.state_dict(), 'running_mean': mean}, assign=True)
    assert norm.running_mean is mean
    kept = layer.weight
    raises(GLib.Error, lambda: layer.load_state_dict({'weight': weight}, assign=True), 'missing: bias')
    raises(GLib.Error, lambda: layer.load_state_dict({'x': weight}, assign=True), 'unexpected: x')
    wrong = {'bias': GTorch.ones(1), 'weight': GTorch.ones(2, 2)}
    raises(GLib.Error, lambda: layer.load_state_dict(wrong, assign=True), 'shape [1, 2] in the module and [2, 2]')
    assert layer.weight is kept and layer.bias is bias
    found = layer.load_state_dict({'x': weight}, strict=False, assign=True)
    assert str(found) == "_IncompatibleKeys(missing_keys=['weight', 'bias'], unexpected_keys=['x'])"


@tap.case
def states_have_prefixes_and_may_be_the_members():
    net = Net()
    names = list(net.state_dict())
    assert list(net.state_dict(prefix='net.')) == [f'net.{name}' for name in names]
    kept = net.state_dict(keep_vars=True)
    assert kept['scale'] is net.scale and kept['second.weight'] is net.first.weight and list(kept) == names
    assert not net.state_dict()['scale'].requires_grad
    assert net.get_parameter('first.weight') is net.first.weight
    assert net.get_buffer('norm.running_var') is net.norm.running_var
    for get in (net.get_parameter, net.get_buffer, net.get_submodule):
        raises(AttributeError, lambda: get('first.foo'), 'foo')


@tap.case
def members_are_seen_by_kind():
    net = Net()
    assert list(net._parameters) == ['scale'] and list(net._modules) == ['first', 'norm', 'second']
    assert set(net.norm._buffers) == {'running_mean', 'running_var', 'num_batches_tracked'} and not net._buffers
    assert net._modules['first'] is net.first and net.first._parameters['bias'] is net.first.bias
    other = nn.Parameter(GTorch.zeros(1))
    net._parameters['scale'] = other
    assert net.scale is other
    net._modules['third'] = nn.Linear(1, 1)
    assert net.third is net._modules['third'] and len(net._modules) == 4
    del net._modules['third']
    assert 'third' not in net._modules and not hasattr(net, 'third')
    raises(KeyError, lambda: net._parameters['first'], 'first')


@tap.case
def states_of_several_models_are_stacked():
    models = [nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1)) for _ in range(3)]
    params, buffers = func.stack_module_state(models)
    assert list(params) == ['0.weight', '0.bias', '1.weight', '1.bias'], list(params)
    assert list(buffers) == ['1.running_mean', '1.running_var', '1.num_batches_tracked'], list(buffers)
    assert params['0.weight'].shape == (3, 1, 2) and params['0.weight'].is_leaf and params['0.weight'].requires_grad
    for i, model in enumerate(models):
        mine = {name: tensor[i] for name, tensor in {**params, **buffers}.items()}
        assert GTorch.equal(mine['0.weight'], model[0].weight)
        model.eval()
        assert GTorch.equal(func.functional_call(models[0].eval(), mine, X), model(X))
        model.train()
    raises(RuntimeError, lambda: func.stack_module_state([]), 'one model or more')
    raises(RuntimeError, lambda: func.stack_module_state([nn.Linear(2, 1), nn.ReLU()]), 'of one class')
    raises(RuntimeError, lambda: func.stack_module_state([nn.Linear(2, 1), nn.Linear(2, 1).eval()]), 'in training')
    raises(RuntimeError, lambda: func.stack_module_state([nn.Linear(2, 1), nn.Linear(3, 1)]), 'the shapes')
    raises(RuntimeError, lambda: func.stack_module_state([nn.Linear(2, 1), nn.Linear(2, 1).requires_grad_(False)]),
           'requires gradients in some')
    raises(RuntimeError, lambda: func.stack_module_state([nn.Linear(2, 1), nn.Linear(2, 1, bias=False)]), 'members')


tap.main()
