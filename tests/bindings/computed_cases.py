# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Modules whose tensors are computed (parametrizations, norms, pruning), fused layers and layers of several forms, in
the same way with PyTorch and with GTorch: computed_reference.py writes what PyTorch gives, and test_computed.py
compares."""

import math

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def fill(torch, tensor, seed, scale=0.37):
    n = tensor.numel()
    values = [math.sin(1.3 * i + seed) * scale + 0.05 * ((i * 7) % 5) for i in range(n)]
    with torch.no_grad():
        tensor.copy_(torch.tensor(values, dtype=torch.float64).reshape(list(tensor.shape)))


def make(torch, cls, *args, **options):
    made = cls(*args, **options).to(dtype=torch.float64)
    for i, parameter in enumerate(made.parameters()):
        fill(torch, parameter, i)
    return made


def rows(torch):
    return torch.tensor([[0.3, -0.7, 1.1], [0.2, 0.5, -0.4]], dtype=torch.float64)


def image(torch):
    return torch.arange(2 * 2 * 5 * 5, dtype=torch.float64).reshape([2, 2, 5, 5]).sin()


def plain(tensor):
    return None if tensor is None else tensor.detach().tolist()


def state(module):
    """All that a module has by name, with gradients."""
    found = [[name, plain(value), plain(value.grad)] for name, value in module.named_parameters()]
    found += [[name, plain(value)] for name, value in module.named_buffers()]
    return sorted(found) + [sorted(module.state_dict())]


def run(module, x):
    y = module(x)
    y.pow(2).sum().backward()
    return [plain(y), *state(module)]


def _weight_norm(torch, way, dim):
    net = way(make(torch, torch.nn.Linear, 3, 2), dim=dim)
    return run(net, rows(torch))


@case
def weight_norm_of_rows(torch):
    return _weight_norm(torch, torch.nn.utils.parametrizations.weight_norm, 0)


@case
def weight_norm_of_columns(torch):
    return _weight_norm(torch, torch.nn.utils.parametrizations.weight_norm, 1)


@case
def weight_norm_of_all(torch):
    return _weight_norm(torch, torch.nn.utils.parametrizations.weight_norm, None)


@case
def former_weight_norm(torch):
    return [_weight_norm(torch, torch.nn.utils.weight_norm, dim) for dim in (0, 1, None)]


@case
def former_weight_norm_is_removed(torch):
    net = torch.nn.utils.weight_norm(make(torch, torch.nn.Linear, 3, 2))
    fill(torch, net.weight_g, 3)
    torch.nn.utils.remove_weight_norm(net)
    return [plain(net.weight), sorted(net.state_dict())]


@case
def weight_norm_of_convolutions(torch):
    nn = torch.nn
    norm = nn.utils.parametrizations.weight_norm
    return [run(norm(make(torch, nn.Conv2d, 2, 3, 3)), image(torch)),
            run(norm(make(torch, nn.ConvTranspose2d, 2, 3, 3), dim=1), image(torch))]


@case
def weight_norm_of_other_layers(torch):
    nn, norm = torch.nn, torch.nn.utils.parametrizations.weight_norm
    net = norm(make(torch, nn.LSTM, 3, 4), name='weight_hh_l0')
    y, _states = net(rows(torch).reshape([2, 1, 3]))
    y.sum().backward()
    cell = norm(make(torch, nn.GRUCell, 3, 4), name='weight_ih')
    z = cell(rows(torch))
    z.sum().backward()
    attention = make(torch, nn.MultiheadAttention, 3, 1)
    norm(attention, name='in_proj_weight')
    norm(attention.out_proj, name='weight')
    a, _weights = attention(*[rows(torch)] * 3)
    a.sum().backward()
    scale = make(torch, nn.BatchNorm1d, 3)
    fill(torch, scale.weight, 2)
    norm(scale, name='weight')
    s = scale(rows(torch))
    s.pow(3).sum().backward()
    return [plain(y), state(net), plain(z), state(cell), plain(a), state(attention), plain(s), state(scale)]


@case
def spectral_norm(torch):
    net = torch.nn.utils.parametrizations.spectral_norm(make(torch, torch.nn.Linear, 3, 2))
    norm, found = net.parametrizations.weight[0], []
    fill(torch, norm._u, 1)
    fill(torch, norm._v, 2)
    for training in (True, True, False):
        net.train(training)
        net.zero_grad()
        found.append(run(net, rows(torch)))
    return found


@case
def spectral_norm_of_vectors(torch):
    net = torch.nn.utils.parametrizations.spectral_norm(make(torch, torch.nn.Linear, 3, 2), name='bias')
    return run(net, rows(torch))


@case
def former_spectral_norm(torch):
    net, found = torch.nn.utils.spectral_norm(make(torch, torch.nn.ConvTranspose2d, 2, 3, 3)), []
    fill(torch, net.weight_u, 1)
    fill(torch, net.weight_v, 2)
    for training in (True, False):
        net.train(training)
        net.zero_grad()
        found.append(run(net, image(torch)))
    torch.nn.utils.remove_spectral_norm(net)
    return [*found, plain(net.weight), sorted(net.state_dict())]


def _orthogonal(torch, kind, shape, trivialization):
    net = make(torch, torch.nn.Linear, *shape)
    torch.nn.utils.parametrizations.orthogonal(net, orthogonal_map=kind, use_trivialization=trivialization)
    original = net.parametrizations.weight.original
    if trivialization:
        fill(torch, net.parametrizations.weight[0].base, 0.5)
    if kind != 'householder' or trivialization:
        fill(torch, original, 0.1)
    if kind == 'householder' and trivialization:
        with torch.no_grad():
            original.diagonal().fill_(-1.0)
    return run(net, rows(torch))


def _orthogonals(torch, kind):
    return [_orthogonal(torch, kind, shape, trivialization) for shape in ((3, 3), (3, 2), (3, 5))
            for trivialization in (True, False)]


@case
def orthogonal_by_exponentials(torch):
    return _orthogonals(torch, 'matrix_exp')


@case
def orthogonal_by_cayley(torch):
    return _orthogonals(torch, 'cayley')


@case
def orthogonal_by_reflectors(torch):
    return _orthogonals(torch, 'householder')


def classes(torch):
    class Symmetric(torch.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).transpose(-1, -2)

        def right_inverse(self, value):
            return value.triu()

    class Product(torch.nn.Module):
        def forward(self, a, b):
            return a * b

        def right_inverse(self, value):
            return value.abs().sqrt(), value.sign() * value.abs().sqrt()

    class Double(torch.nn.Module):
        def forward(self, x):
            return x * 2

        def right_inverse(self, value):
            raise NotImplementedError

    return Symmetric, Product, Double


@case
def own_parametrizations(torch):
    symmetric, _product, double = classes(torch)
    parametrize, net = torch.nn.utils.parametrize, make(torch, torch.nn.Linear, 3, 3)
    parametrize.register_parametrization(net, 'weight', symmetric())
    found = [run(net, rows(torch))]
    net.weight = torch.ones(3, 3, dtype=torch.float64) * torch.arange(3, dtype=torch.float64)
    found.append(plain(net.weight))
    parametrize.register_parametrization(net, 'weight', double())
    found.append(plain(net.weight))
    parametrize.remove_parametrizations(net, 'weight')
    return [*found, plain(net.weight), sorted(net.state_dict()), parametrize.is_parametrized(net)]


@case
def parametrizations_of_several_tensors(torch):
    _symmetric, product, _double = classes(torch)
    parametrize, net = torch.nn.utils.parametrize, make(torch, torch.nn.Linear, 3, 3)
    parametrize.register_parametrization(net, 'weight', product())
    found = [run(net, rows(torch))]
    net.weight = net.weight.detach() * 3
    found.append(run(net, rows(torch)))
    parametrize.remove_parametrizations(net, 'weight')
    return [*found, plain(net.weight), sorted(net.state_dict())]


@case
def optimizers_change_what_is_computed_from(torch):
    net = torch.nn.utils.parametrizations.weight_norm(make(torch, torch.nn.Linear, 3, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.5)
    for _step in range(3):
        optimizer.zero_grad()
        net(rows(torch)).pow(2).sum().backward()
        optimizer.step()
    return [plain(net.weight), *state(net)]


@case
def pruning_of_elements(torch):
    prune, net = torch.nn.utils.prune, make(torch, torch.nn.Linear, 3, 4)
    scores, found = torch.arange(12, dtype=torch.float64).reshape([4, 3]), []
    for options in ({'amount': 0.3}, {'amount': 0.3}, {'amount': 2, 'importance_scores': scores}):
        prune.l1_unstructured(net, 'weight', **options)
        found.append([plain(net.weight), state(net), prune.is_pruned(net)])
    found.append(run(net, rows(torch)))
    prune.random_unstructured(net, 'weight', amount=1.0)
    prune.random_unstructured(net, 'bias', amount=0)
    found.append(state(net))
    prune.remove(net, 'weight')
    return [*found, plain(net.weight), sorted(net.state_dict()), prune.is_pruned(net)]


@case
def pruning_of_slices(torch):
    prune, net = torch.nn.utils.prune, make(torch, torch.nn.Conv2d, 2, 4, 3)
    prune.identity(net, 'bias')
    found = [state(net)]
    mask = torch.arange(72).reshape([4, 2, 3, 3]).remainder(3) > 0
    for change in (lambda: prune.custom_from_mask(net, 'weight', mask),
                   lambda: prune.ln_structured(net, 'weight', 1, 1, 0),
                   lambda: prune.ln_structured(net, 'weight', 0.5, float('inf'), -1),
                   lambda: prune.ln_structured(net, 'weight', amount=1, n=2, dim=1)):
        change()
        found.append([plain(net.weight), state(net)])
    prune.random_structured(net, 'weight', 1, 0)
    return [*found, int((net.weight_mask.sum(dim=[1, 2, 3]) > 0).sum().item())]


@case
def pruning_of_several_parameters(torch):
    prune = torch.nn.utils.prune
    one, other = make(torch, torch.nn.Linear, 3, 4), make(torch, torch.nn.Linear, 4, 2)
    fill(torch, other.weight, 0.77)
    pairs, found = [(one, 'weight'), (other, 'weight'), (other, 'bias')], []
    for amount in (0.4, 3):
        prune.global_unstructured(pairs, pruning_method=prune.L1Unstructured, amount=amount)
        found += [state(one), state(other), plain(one.weight)]
    return found


def _norm(torch, cls, n, **options):
    made = make(torch, cls, n, **options)
    fill(torch, made.running_mean, 9)
    made.running_var.copy_(torch.arange(1, n + 1, dtype=torch.float64) * 0.3)
    return made.eval()


@case
def fused_convolutions(torch):
    nn, fusion, found = torch.nn, torch.nn.utils.fusion, []
    for bias in (True, False):
        for affine in (True, False):
            norm = _norm(torch, nn.BatchNorm2d, 4, affine=affine)
            for cls in (nn.Conv2d, nn.ConvTranspose2d):
                conv = make(torch, cls, 2, 4, 3, bias=bias).eval()
                both = fusion.fuse_conv_bn_eval(conv, norm, transpose=cls is nn.ConvTranspose2d)
                error = (both(image(torch)) - norm(conv(image(torch)))).abs().max().item()
                found += [plain(both.weight), plain(both.bias), plain(both(image(torch))), error < 1e-12]
    return found


@case
def fused_linear_layers(torch):
    fusion = torch.nn.utils.fusion
    linear, norm = make(torch, torch.nn.Linear, 3, 4).eval(), _norm(torch, torch.nn.BatchNorm1d, 4)
    both = fusion.fuse_linear_bn_eval(linear, norm)
    weight, bias = fusion.fuse_linear_bn_weights(linear.weight, linear.bias, norm.running_mean, norm.running_var,
                                                 norm.eps, norm.weight, norm.bias)
    return [plain(both(rows(torch))), plain(weight), plain(bias), weight.requires_grad]


def waves(torch):
    return torch.arange(2 * 3 * 6 * 7, dtype=torch.float64).reshape([2, 3, 6, 7]).mul(0.7).sin()


@case
def maxima_and_their_indices(torch):
    nn, x, found = torch.nn, waves(torch), []
    for layer, given in (
        (nn.MaxPool1d(2, return_indices=True), x[0]), (nn.MaxPool2d(3, 2, 1, return_indices=True, ceil_mode=True), x),
        (nn.MaxPool3d(2, return_indices=True), x), (nn.AdaptiveMaxPool1d(3, return_indices=True), x[0]),
        (nn.AdaptiveMaxPool2d((None, 3), return_indices=True), x), (nn.AdaptiveMaxPool3d(2, return_indices=True), x),
    ):
        y, indices = layer(given)
        found += [plain(y), plain(indices)]
    y, indices = nn.MaxPool2d(2, return_indices=True)(x)
    undo = nn.MaxUnpool2d(2)
    return [*found, plain(undo(y, indices, output_size=x.shape)), plain(undo(y, indices, output_size=[6, 7]))]


@case
def sizes_that_stay(torch):
    nn, x = torch.nn, waves(torch)
    layers = [nn.AdaptiveAvgPool2d((None, 2)), nn.AdaptiveAvgPool2d((2, None)), nn.AdaptiveAvgPool3d((None, 2, None))]
    return [[plain(layer(x)), list(layer.output_size), repr(layer)] for layer in layers]


@case
def norms_of_other_kinds(torch):
    nn, x = torch.nn, waves(torch)
    found = [plain(nn.CrossMapLRN2d(size, alpha=0.5, beta=0.6, k=1.5)(x)) for size in range(1, 6)]
    sync = nn.SyncBatchNorm(3).to(dtype=torch.float64)
    found += [plain(sync(x)), state(sync), plain(sync.eval()(x))]
    for cls, shape in ((nn.LazyInstanceNorm1d, [2, 3, 42]), (nn.LazyInstanceNorm2d, [2, 3, 6, 7]),
                       (nn.LazyInstanceNorm3d, [2, 3, 2, 3, 7])):
        layer = cls().to(dtype=torch.float64)
        found += [plain(layer(x.reshape(shape))), state(layer), layer.num_features, layer.affine]
    return found


@case
def fractional_pooling(torch):
    x, pool, found = waves(torch), torch.nn.functional.fractional_max_pool2d, []
    drawn = [[[0.1 * i + 0.03 * j + 0.05, 0.9 - 0.1 * i - 0.2 * j] for i in range(3)] for j in range(2)]
    drawn = torch.tensor(drawn, dtype=torch.float64)
    for kernel, size in ((2, (3, 4)), ((3, 2), (2, 5)), (2, (5, 6)), (1, (6, 7)), (2, (1, 1))):
        leaf = x.clone().requires_grad_()
        y, indices = pool(leaf, kernel, output_size=size, return_indices=True, _random_samples=drawn)
        y.pow(2).sum().backward()
        found += [plain(y), plain(indices), plain(leaf.grad)]
    found.append(plain(pool(x, 2, output_ratio=(0.5, 0.6), _random_samples=drawn)))
    three = torch.tensor([[[0.1, 0.5, 0.9], [0.3, 0.7, 0.2], [0.95, 0.05, 0.5]]], dtype=torch.float64)
    volume = torch.nn.functional.fractional_max_pool3d(
        x.reshape([1, 3, 4, 7, 3]), (2, 2, 1), output_size=(2, 4, 2), _random_samples=three)
    layer = torch.nn.FractionalMaxPool2d(2, output_ratio=0.5)
    return [*found, plain(volume), list(layer(x).shape), repr(layer)]


def _resampled(torch, x, how):
    leaf = x.clone().requires_grad_()
    y = how(leaf)
    (y * torch.arange(y.numel(), dtype=torch.float64).cos().reshape(list(y.shape))).sum().backward()
    return [plain(y), plain(leaf.grad)]


@case
def factors_of_each_dimension(torch):
    nn, functional, found = torch.nn, torch.nn.functional, []
    x = waves(torch).reshape(-1)
    inputs = {1: x[:10].reshape([1, 2, 5]), 2: x[:24].reshape([1, 2, 4, 3]), 3: x[:48].reshape([1, 2, 2, 3, 4])}
    modes = {1: ('nearest', 'nearest-exact', 'linear', 'area'),
             2: ('nearest', 'nearest-exact', 'bilinear', 'bicubic', 'area'),
             3: ('nearest', 'nearest-exact', 'trilinear', 'area')}
    for n, given in inputs.items():
        for mode in modes[n]:
            # PyTorch's gradient of the nearest elements of volumes is that of other elements for most factors
            for factors in ((1.7, 0.6, 2.3)[:n], (2.0, 1.5, 0.75) if n == 3 else (0.8, 1.3, 1.9)[-n:]):
                for recompute in (None, True):
                    options = {'scale_factor': factors, 'mode': mode, 'recompute_scale_factor': recompute}
                    functions = [lambda a, o=options: functional.interpolate(a, **o), nn.Upsample(**options)]
                    if mode.endswith('linear') or mode == 'bicubic':
                        functions.append(nn.Upsample(align_corners=True, **options))
                    found += [_resampled(torch, given, one) for one in functions]
    found += [_resampled(torch, inputs[2], cls(scale_factor=(1.5, 2.4)))
              for cls in (nn.UpsamplingNearest2d, nn.UpsamplingBilinear2d)]
    layer = nn.Upsample(scale_factor=(2, 1.5), mode='bilinear')
    return [*found, repr(layer), list(layer.scale_factor), nn.Upsample(scale_factor=3).scale_factor]


def _methods(torch):
    prune = torch.nn.utils.prune

    class Alternate(prune.BasePruningMethod):
        PRUNING_TYPE = 'unstructured'

        def __init__(self, start=0):
            self.start = start

        def compute_mask(self, t, default_mask):
            mask = default_mask.clone().reshape(-1)
            mask[self.start :: 2] = 0
            return mask.reshape(default_mask.shape)

    class First(prune.BasePruningMethod):
        PRUNING_TYPE = 'structured'
        dim = -1

        def compute_mask(self, t, default_mask):
            mask = default_mask.clone()
            mask[:, 0] = 0
            return mask

    class Large(prune.BasePruningMethod):
        PRUNING_TYPE = 'global'

        def compute_mask(self, t, default_mask):
            return (t.abs() >= 0.3).to(t.dtype)

    return prune, Alternate, First, Large


@case
def pruning_by_methods_of_programs(torch):
    prune, Alternate, First, Large = _methods(torch)
    layer, found = make(torch, torch.nn.Linear, 4, 3), []
    x = torch.tensor([[0.3, -0.7, 1.1, 0.4]], dtype=torch.float64)
    for step in (lambda: Alternate.apply(layer, 'weight'),
                 lambda: prune.L1Unstructured.apply(layer, 'weight', amount=2),
                 lambda: Alternate.apply(layer, 'weight', 1), lambda: First.apply(layer, 'weight'),
                 lambda: prune.LnStructured.apply(layer, 'weight', 1, n=2, dim=0),
                 lambda: Large.apply(layer, 'weight', importance_scores=layer.weight_orig * 2),
                 lambda: prune.CustomFromMask.apply(layer, 'weight', torch.tensor([[1.0, 0.0, 1.0, 1.0]] * 3))):
        method = step()
        layer.weight_orig.grad = None
        found.append([type(method).__name__, method._tensor_name, getattr(method, 'PRUNING_TYPE', None),
                      [type(one).__name__ for one in method] if isinstance(method, prune.PruningContainer) else None,
                      run(layer, x), plain(method.apply_mask(layer))])
    prune.remove(layer, 'weight')
    return [*found, plain(layer.weight), sorted(layer.state_dict()), prune.is_pruned(layer)]


@case
def masks_of_pruning_methods(torch):
    prune, Alternate, First, Large = _methods(torch)
    t = image(torch)[0]
    ones, few = torch.ones_like(t), (t > 0).to(t.dtype)
    methods = [prune.Identity(), prune.L1Unstructured(7), prune.L1Unstructured(0.4), prune.LnStructured(2, n=1, dim=1),
               prune.LnStructured(0.5, n=2), prune.CustomFromMask(few), Alternate(3), First(), Large()]
    found = [[plain(one.compute_mask(t, mask)) for mask in (ones, few)] for one in methods]
    found += [plain(one.prune(t)) for one in methods]
    found += [plain(one.prune(t, default_mask=few, importance_scores=-t)) for one in methods]
    container = prune.PruningContainer()
    for one in methods[1:]:
        one._tensor_name = container._tensor_name = 'weight'
        container.add_pruning_method(one)
        found.append(plain(container.compute_mask(t, few.clone())))
    return [*found, len(container), type(container[0]).__name__]


@case
def pruning_of_several_by_methods(torch):
    prune, Alternate, _First, _Large = _methods(torch)
    layers = [make(torch, torch.nn.Linear, 3, 2), make(torch, torch.nn.Linear, 2, 3)]
    fill(torch, layers[1].weight, 7)
    prune.l1_unstructured(layers[0], 'weight', 1)
    pairs = [(layers[0], 'weight'), (layers[1], 'weight'), (layers[1], 'bias')]
    prune.global_unstructured(pairs, pruning_method=Alternate, start=1)
    found = [state(layer) for layer in layers]
    prune.global_unstructured(pairs, pruning_method=prune.L1Unstructured, amount=3)
    return [*found, *[state(layer) for layer in layers]]


@case
def weights_with_their_channels_last(torch):
    nn, utils, x = torch.nn, torch.nn.utils, waves(torch)
    nets = [make(torch, nn.Sequential, nn.Conv2d(3, 2, 3), nn.Sequential(nn.ConvTranspose2d(2, 3, 2))),
            make(torch, nn.Sequential, nn.Conv3d(2, 3, 2), nn.ConvTranspose3d(3, 2, 2))]
    inputs, found = [x, x.reshape([1, 2, 3, 6, 7])], []
    for net, given, change, last in zip(
        nets, inputs, (utils.convert_conv2d_weight_memory_format, utils.convert_conv3d_weight_memory_format),
        (torch.channels_last, torch.channels_last_3d),
    ):
        weights = [one for name, one in net.named_parameters() if name.endswith('weight')]
        for form in (last, torch.contiguous_format):
            assert change(net, form) is net
            found += [[list(one.stride()) for one in weights], run(net, given)]
    other = utils.convert_conv2d_weight_memory_format(nn.Conv1d(2, 3, 2), torch.channels_last)
    return [*found, list(other.weight.stride())]
