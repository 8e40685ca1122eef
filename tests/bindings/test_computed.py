#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tensors of modules that are computed: by parametrizations, norms and masks; compared with PyTorch."""

import copy
import json
import pathlib
import pickle
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch  # noqa: E402

import computed_cases  # noqa: E402
import tap  # noqa: E402
from tap import raises  # noqa: E402

nn = GTorch.nn
utils = nn.utils
REFERENCE = json.loads((HERE / 'computed.json').read_text('utf-8'))


def compare(found, wanted, place=''):
    if isinstance(wanted, list):
        assert isinstance(found, (list, tuple)) and len(found) == len(wanted), (place, found, wanted)
        for i, (one, other) in enumerate(zip(found, wanted)):
            compare(one, other, f'{place}[{i}]')
    elif isinstance(wanted, float):
        assert abs(found - wanted) <= 1e-9 * max(1, abs(wanted)), (place, found, wanted)
    else:
        assert found == wanted, (place, found, wanted)


for case_name, run in computed_cases.CASES.items():
    tap.add(f'{case_name}_as_with_pytorch', lambda run, name: compare(run(GTorch), REFERENCE[name]), run, case_name)


def several():
    """A module with each way to compute a weight."""
    return {
        'weight_norm': utils.parametrizations.weight_norm(nn.Linear(3, 2)),
        'spectral_norm': utils.parametrizations.spectral_norm(nn.Conv2d(2, 3, 3)),
        'orthogonal': utils.parametrizations.orthogonal(nn.Linear(3, 3)),
        'wide': utils.parametrizations.orthogonal(nn.Linear(5, 3), use_trivialization=False),
        'former weight norm': utils.weight_norm(nn.Conv1d(2, 3, 3), dim=None),
        'former spectral norm': utils.spectral_norm(nn.Linear(3, 2), n_power_iterations=2, eps=1e-9),
        'pruning': utils.prune.l1_unstructured(nn.Linear(3, 2), 'weight', 0.5),
    }


@tap.case
def copies_and_pickles_compute_as_well():
    for name, module in several().items():
        module.eval()
        for made in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
            assert made is not module and type(made) is type(module), name
            assert made.weight.tolist() == module.weight.tolist(), name
            assert list(made.state_dict()) == list(module.state_dict()), name
            assert list(made.get_computed_names()) == ['weight'], name
            for one, other in zip(made.parameters(), module.parameters()):
                assert one is not other and one.tolist() == other.tolist(), name
            assert made.describe_computed('weight') == module.describe_computed('weight')


@tap.case
def states_are_loaded():
    for (name, module), other in zip(several().items(), several().values()):
        module.eval()
        other.eval().load_state_dict(module.state_dict())
        assert other.weight.tolist() == module.weight.tolist(), name
        assert 'weight' not in module.state_dict(), name


@tap.case
def modules_are_converted():
    for name, module in several().items():
        module.eval()
        before = module.weight
        module.to(dtype=GTorch.float64)
        assert module.weight.dtype == GTorch.float64, name
        assert (module.weight - before.to(GTorch.float64)).abs().max().item() < 1e-6, name
        assert all(one.dtype == GTorch.float64 for one in module.state_dict().values()), name


@tap.case
def a_parameter_stays_the_same_object():
    layer = nn.Linear(3, 3)
    weight = layer.weight
    utils.parametrizations.orthogonal(layer)
    assert layer.parametrizations.weight.original is weight
    assert [name for name, _one in layer.named_parameters()] == ['bias', 'parametrizations.weight.original']
    assert not isinstance(layer.weight, nn.Parameter) and layer.weight.requires_grad
    found = layer.weight
    product = (found @ found.transpose(0, 1) - GTorch.eye(3)).abs().max().item()
    assert product < 1e-5, product
    utils.parametrize.remove_parametrizations(layer, 'weight')
    assert layer.weight is weight and not utils.parametrize.is_parametrized(layer)
    utils.parametrize.register_parametrization(layer, 'weight', computed_cases.classes(GTorch)[2]())
    original = layer.parametrizations.weight.original.tolist()
    utils.parametrize.remove_parametrizations(layer, 'weight', leave_parametrized=False)
    assert layer.weight is weight and weight.tolist() == original


@tap.case
def modules_of_a_program_are_parametrized():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(GTorch.ones([2]) * 3)
            self.register_buffer('offset', GTorch.ones([2]))

        def forward(self, x):
            return x * self.scale + self.offset

    double = computed_cases.classes(GTorch)[2]
    net = Net()
    scale = net.scale
    utils.parametrize.register_parametrization(net, 'scale', double())
    utils.parametrize.register_parametrization(net, 'offset', double())
    assert net.scale.tolist() == [6, 6] and net(GTorch.ones([2])).tolist() == [8, 8]
    assert net.parametrizations.scale.original is scale and net.parametrizations['scale'].is_tensor
    assert list(net.state_dict()) == ['parametrizations.scale.original', 'parametrizations.offset.original']
    made = copy.deepcopy(net)
    assert made(GTorch.ones([2])).tolist() == [8, 8]
    with utils.parametrize.cached():
        assert net.scale is net.scale
        with GTorch.no_grad():
            assert not net.scale.requires_grad
    assert net.scale is not net.scale
    utils.parametrize.remove_parametrizations(net, 'scale')
    assert net.scale is scale and scale.tolist() == [6, 6]
    assert utils.parametrize.is_parametrized(net, 'offset') and not utils.parametrize.is_parametrized(net, 'scale')
    assert utils.parametrize.type_before_parametrizations(net) is Net


@tap.case
def errors_of_parametrizations_arrive():
    class Broken(nn.Module):
        broken = False

        def forward(self, x):
            if self.broken:
                raise ZeroDivisionError('broken')
            return x * 1

    layer = nn.Linear(2, 2)
    part = Broken()
    utils.parametrize.register_parametrization(layer, 'weight', part)
    part.broken = True
    raises(ZeroDivisionError, lambda: layer(GTorch.ones([1, 2])), 'broken')
    raises(ZeroDivisionError, lambda: layer.weight, 'broken')
    raises(ZeroDivisionError, lambda: utils.parametrize.remove_parametrizations(layer, 'weight'), 'broken')
    assert utils.parametrize.is_parametrized(layer, 'weight')
    part.broken = False
    assert layer(GTorch.ones([1, 2])).shape == (1, 2)


@tap.case
def what_cannot_be_is_refused():
    class Wider(nn.Module):
        def forward(self, x):
            return GTorch.cat([x, x])

    layer, double = nn.Linear(2, 2), computed_cases.classes(GTorch)[2]
    register = utils.parametrize.register_parametrization
    raises(GLib.Error, lambda: register(layer, 'weight', Wider()), 'Wider: what forward gave has shape [4, 2]')
    raises(GLib.Error, lambda: register(layer, 'wight', double()), "no parameter or buffer 'wight'")
    raises(GLib.Error, lambda: register(nn.BatchNorm1d(2), 'running_mean', double()), 'buffer that the layer writes')
    raises(GLib.Error, lambda: register(nn.LazyLinear(2), 'weight', double()), 'no elements')
    raises(TypeError, lambda: register(layer, 'weight', GTorch.relu), 'must be a Module')
    assert not utils.parametrize.is_parametrized(layer)
    register(layer, 'weight', double())
    raises(GLib.Error, lambda: utils.weight_norm(layer), 'computed from other tensors already')
    raises(GLib.Error, lambda: layer.register_parameter('weight', None), 'is computed from other tensors')
    raises(GLib.Error, lambda: setattr(layer, 'weight', GTorch.ones([2, 2])), 'right_inverse: it is not implemented')
    raises(TypeError, lambda: setattr(layer, 'weight', None), 'only a tensor')
    raises(TypeError, lambda: layer.parametrizations.weight.append(double()), 'only register_parametrization()')
    raises(GLib.Error, lambda: utils.parametrize.remove_parametrizations(layer, 'bias'), "'bias' is not parametrized")
    old = utils.weight_norm(nn.Linear(2, 2))
    raises(GLib.Error, lambda: setattr(old, 'weight', GTorch.ones([2, 2])), 'by weight_norm')
    raises(GLib.Error, lambda: utils.remove_spectral_norm(old), "'weight' has no spectral_norm")
    raises(GLib.Error, lambda: utils.weight_norm(nn.Linear(2, 2), dim=2), 'dim 2 is out of range for 2')
    raises(GLib.Error, lambda: utils.spectral_norm(nn.Linear(2, 2), n_power_iterations=0), 'must be at least 1')
    raises(GLib.Error, lambda: utils.parametrizations.orthogonal(nn.Linear(2, 2), 'bias'), 'is no matrix')
    lone = utils.parametrizations.orthogonal(nn.Linear(2, 2), use_trivialization=False)
    raises(GLib.Error, lambda: setattr(lone, 'weight', GTorch.eye(2)), 'without a trivialization')
    raises(GLib.Error, lambda: old.restore_computed('weight', 'nothing'), "'nothing' does not describe")


@tap.case
def weights_that_cannot_be_laid_out_are_refused():
    convert = utils.convert_conv2d_weight_memory_format
    raises(GLib.Error, lambda: convert(nn.Conv2d(1, 1, 2), GTorch.channels_last_3d), 'memory_format 2')
    raises(TypeError, lambda: convert(nn.Conv2d(1, 1, 2), 'channels_last'), 'memory_format')
    raises(TypeError, lambda: convert(3, GTorch.channels_last), 'module')
    raises(GLib.Error, lambda: convert(nn.LazyConv2d(1, 2), GTorch.channels_last), 'no elements')
    normed = utils.parametrizations.weight_norm(nn.Conv2d(1, 1, 2))
    raises(GLib.Error, lambda: convert(normed, GTorch.channels_last), 'computed')
    assert pickle.loads(pickle.dumps(GTorch.channels_last)) is GTorch.channels_last


@tap.case
def methods_of_pruning_refuse_what_they_cannot():
    prune, layer = utils.prune, nn.Linear(3, 2)

    class Wrong(prune.BasePruningMethod):
        PRUNING_TYPE = 'rows'

        def compute_mask(self, t, default_mask):
            return GTorch.ones([7])

    class NoDim(prune.BasePruningMethod):
        PRUNING_TYPE = 'structured'

        def compute_mask(self, t, default_mask):
            return default_mask

    raises(TypeError, prune.BasePruningMethod, 'abstract')
    raises(ValueError, lambda: Wrong.apply(layer, 'weight'), 'the mask of Wrong', '[2, 3]', '[7]')
    assert not prune.is_pruned(layer) and sorted(layer.state_dict()) == ['bias', 'weight']
    one = NoDim.apply(layer, 'weight')
    assert isinstance(one, NoDim) and layer.weight_mask.sum().item() == 6
    raises(ValueError, lambda: Wrong.apply(layer, 'weight'), 'PRUNING_TYPE', "'rows'")
    raises(AttributeError, lambda: NoDim.apply(layer, 'weight'), 'dim')
    raises(ValueError, lambda: NoDim.apply(layer, 'weight', importance_scores=GTorch.ones([2])), 'importance_scores')
    raises(TypeError, lambda: NoDim.apply(3, 'weight'), 'module')
    raises(ValueError, lambda: NoDim().remove(layer), 'has not been applied')
    raises(TypeError, lambda: prune.PruningContainer().add_pruning_method(3), 'BasePruningMethod')
    raises(ValueError, lambda: prune.PruningContainer().add_pruning_method(one), "'weight'")
    raises(TypeError, lambda: prune.global_unstructured([(layer, 'weight')], NoDim), 'unstructured')
    pairs = [(layer, 'weight')]
    raises(TypeError, lambda: prune.global_unstructured(pairs, prune.LnStructured, amount=1), 'LnStructured')
    copied = copy.deepcopy(prune.l1_unstructured(nn.Linear(3, 2), 'weight', 2))
    assert copied.weight.eq(0).sum().item() == 2
    assert len(prune.RandomUnstructured.apply(copied, 'weight', 1)) == 2


@tap.case
def pruning_refuses_what_it_cannot():
    prune, layer = utils.prune, nn.Linear(3, 2)
    raises(GLib.Error, lambda: prune.l1_unstructured(layer, 'weight', 1.5), 'amount must be from 0 to 1, it is 1.5')
    raises(GLib.Error, lambda: prune.l1_unstructured(layer, 'weight', -1), 'at least 0, it is -1')
    raises(GLib.Error, lambda: prune.l1_unstructured(layer, 'weight', 7), 'amount is 7, and only 6 can be pruned')
    raises(GLib.Error, lambda: prune.ln_structured(layer, 'bias', 1, 2, 0), 'fewer than 2 dimensions')
    raises(GLib.Error, lambda: prune.ln_structured(layer, 'weight', 1, 2, 2), 'dim 2 is out of range')
    raises(GLib.Error, lambda: prune.custom_from_mask(layer, 'weight', GTorch.ones([2])), 'the shape of mask is [2]')
    raises(GLib.Error, lambda: prune.remove(layer, 'weight'), "'weight' has no mask")
    raises(TypeError, lambda: prune.l1_unstructured(layer, 'weight', True), 'must be a number')
    raises(TypeError, lambda: prune.global_unstructured([(layer, 'weight')], prune.LnStructured, amount=1), 'must be')
    assert not prune.is_pruned(layer)
    prune.L1Unstructured.apply(layer, 'weight', amount=2)
    assert prune.is_pruned(nn.Sequential(layer)) and layer.weight_mask.sum().item() == 4


@tap.case
def layers_that_cannot_be_fused_are_refused():
    conv, norm = nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3)
    raises(GLib.Error, lambda: utils.fuse_conv_bn_eval(conv, norm), 'evaluation mode')
    conv.eval(), norm.eval()
    raises(GLib.Error, lambda: utils.fuse_conv_bn_eval(norm, conv), 'cannot be fused')
    raises(GLib.Error, lambda: utils.fuse_conv_bn_eval(conv, nn.BatchNorm2d(4).eval()), '3 outputs')
    raises(GLib.Error, lambda: utils.fuse_conv_bn_eval(conv, nn.BatchNorm2d(3, track_running_stats=False).eval()),
           'no running mean')


tap.main()
