// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Tensors of modules that are computed: by parametrizations, norms and masks.

import GObject from 'gi://GObject';
import GTorch from 'gi://GTorch?version=1';

import * as tap from './tap.js';

const {nn} = GTorch;
const {parametrizations, parametrize, prune} = nn.utils;

const Square = GObject.registerClass(class Square extends GTorch.Module {
    forward(x) {
        return x.mul(x);
    }

    right_inverse(value) {
        return value.sqrt();
    }
});

const Product = GObject.registerClass(class Product extends GTorch.Module {
    forward(a, b) {
        return a.mul(b);
    }

    right_inverse(value) {
        return [value.mul(2), value.mul(0).add(0.5)];
    }
});

function near(a, b) {
    return a.sub(b).abs().max().item() < 1e-5;
}

tap.add('a_weight_is_computed', () => {
    const layer = nn.Linear(2, 2, {bias: false});
    const {weight} = layer;
    const positive = weight.abs().add(1).detach();
    GTorch.no_grad(() => weight.copy_(positive));
    tap.assert(parametrize.register_parametrization(layer, 'weight', new Square()) === layer);
    tap.assert(near(layer.weight, positive) && !(layer.weight instanceof GTorch.Parameter));
    tap.equal(Object.keys(layer.state_dict()), ['parametrizations.weight.original']);
    tap.assert(layer.parametrizations.get('weight').original === weight);
    tap.equal(layer.parametrizations.get('weight').length, 1);
    layer.weight.sum().backward();
    tap.assert(near(weight.grad, weight.detach().mul(2)));
    layer.weight = GTorch.ones([2, 2]).mul(9);
    tap.assert(near(weight.detach(), GTorch.ones([2, 2]).mul(3)));
    tap.throws(() => {
        layer.weight = null;
    }, error => error.message.includes('is computed'));
    parametrize.cached(() => tap.assert(layer.weight === layer.weight));
    tap.assert(parametrize.is_parametrized(layer) && !parametrize.is_parametrized(layer, 'bias'));
    parametrize.remove_parametrizations(layer, 'weight');
    tap.assert(layer.weight === weight && near(weight.detach(), GTorch.ones([2, 2]).mul(9)));
    tap.throws(() => parametrize.remove_parametrizations(layer, 'weight'),
        error => error.message.includes('not parametrized'));
});

tap.add('several_tensors_are_computed_from', () => {
    const layer = nn.Linear(2, 2);
    const before = layer.weight.detach().clone();
    parametrize.register_parametrization(layer, 'weight', new Product());
    tap.equal(Object.keys(layer.state_dict()),
        ['bias', 'parametrizations.weight.original0', 'parametrizations.weight.original1']);
    tap.assert(near(layer.weight, before));
});

tap.add('exceptions_of_parametrizations_arrive', () => {
    const Broken = GObject.registerClass(class Broken extends GTorch.Module {
        forward() {
            throw new RangeError('broken');
        }
    });
    const layer = nn.Linear(2, 2);
    parametrize.register_parametrization(layer, 'weight', new Broken(), {unsafe: true});
    tap.throws(() => layer.forward(GTorch.ones([1, 2])), error => error.message.includes('broken'));
    tap.throws(() => parametrize.register_parametrization(nn.Linear(2, 2), 'weight', new Broken()),
        error => error instanceof RangeError);
});

tap.add('modules_of_a_program_are_parametrized', () => {
    const Net = GObject.registerClass(class Net extends GTorch.Module {
        _init() {
            super._init();
            this.scale = nn.Parameter(GTorch.ones([2]).mul(3));
        }

        forward(x) {
            return x.mul(this.scale);
        }
    });
    const net = new Net();
    const {scale} = net;
    parametrize.register_parametrization(net, 'scale', new Square());
    tap.assert(near(net.forward(GTorch.ones([2])), GTorch.ones([2]).mul(3)));
    tap.assert(net.parametrizations.get('scale').original === scale);
    parametrize.remove_parametrizations(net, 'scale');
    tap.assert(net.scale === scale);
});

tap.add('norms_are_applied', () => {
    const make = {
        weight: () => parametrizations.weight_norm(nn.Linear(3, 2), {dim: 1}),
        spectral: () => parametrizations.spectral_norm(nn.Conv2d(2, 3, 3)),
        orthogonal: () => parametrizations.orthogonal(nn.Linear(3, 3), 'weight', 'cayley'),
        former: () => nn.utils.weight_norm(nn.Linear(3, 2), 'weight', null),
        formerSpectral: () => nn.utils.spectral_norm(nn.Linear(3, 2)),
    };
    for (const [name, one] of Object.entries(make)) {
        const [layer, other] = [one().eval(), one().eval()];
        other.load_state_dict(layer.state_dict());
        tap.assert(near(layer.weight, other.weight), name);
        tap.assert(!Object.keys(layer.state_dict()).includes('weight'), name);
    }
    const {weight} = make.orthogonal();
    tap.assert(near(weight.matmul(weight.t()), GTorch.eye(3)));
    const layer = make.former();
    const before = layer.weight;
    tap.assert(layer.weight_g instanceof GTorch.Parameter && layer.weight_g.shape.length === 0);
    nn.utils.remove_weight_norm(layer);
    tap.assert(layer.weight instanceof GTorch.Parameter && near(layer.weight, before));
    const spectral = make.formerSpectral();
    nn.utils.remove_spectral_norm(spectral);
    tap.equal(Object.keys(spectral.state_dict()).sort(), ['bias', 'weight']);
    tap.throws(() => nn.utils.weight_norm(3), error => error instanceof TypeError);
    tap.throws(() => nn.utils.weight_norm(nn.Linear(2, 2), {dim: 2}),
        error => error.message.includes('dim 2'));
});

tap.add('parameters_are_pruned', () => {
    const layer = nn.Linear(4, 4);
    prune.l1_unstructured(layer, 'weight', 0.5);
    tap.equal(layer.weight_mask.sum().item(), 8);
    prune.random_unstructured(layer, 'weight', 2, {is_count: true});
    tap.equal(layer.weight.ne(0).sum().item(), 6);
    prune.ln_structured(layer, 'weight', 1, 2, 0, {is_count: true});
    prune.random_structured(layer, 'weight', 1, 0);
    tap.equal(layer.weight_mask.sum().item(), 0);
    tap.assert(prune.is_pruned(layer));
    prune.remove(layer, 'weight');
    tap.assert(!prune.is_pruned(layer) && layer.weight instanceof GTorch.Parameter);
    const [a, b] = [nn.Linear(4, 4), nn.Linear(4, 2)];
    prune.global_unstructured([[a, 'weight'], [b, 'weight']], 'L1Unstructured', 0.5);
    tap.equal(a.weight_mask.sum().item() + b.weight_mask.sum().item(), 12);
    prune.identity(a, 'bias');
    prune.custom_from_mask(b, 'bias', GTorch.zeros([2]));
    tap.equal(b.bias.abs().sum().item(), 0);
    tap.throws(() => prune.l1_unstructured(a, 'weight', 2), error => error.message.includes('from 0 to 1'));
    tap.throws(() => prune.global_unstructured([[a, 'weight']], 'LnStructured', 1),
        error => error instanceof TypeError);
});

tap.add('layers_are_fused', () => {
    const [conv, norm] = [nn.Conv2d(2, 3, 3).eval(), nn.BatchNorm2d(3).eval()];
    norm.running_mean.fill_(0.5);
    const x = GTorch.rand([1, 2, 5, 5]);
    const both = nn.utils.fuse_conv_bn_eval(conv, norm);
    tap.assert(near(both.forward(x), norm.forward(conv.forward(x))));
    const [weight, bias] = nn.utils.fusion.fuse_conv_bn_weights(conv.weight, conv.bias, norm.running_mean,
        norm.running_var, norm.eps, norm.weight, norm.bias);
    tap.assert(near(weight, both.weight) && near(bias, both.bias));
    const [linear, last] = [nn.Linear(3, 2).eval(), nn.BatchNorm1d(2).eval()];
    const y = GTorch.rand([4, 3]);
    const fused = nn.utils.fuse_linear_bn_eval(linear, last);
    tap.assert(near(fused.forward(y), last.forward(linear.forward(y))));
    tap.throws(() => nn.utils.fuse_conv_bn_eval(norm, conv),
        error => error.message.includes('cannot be fused'));
});

tap.add('layers_begin_as_they_are_told', () => {
    const layer = nn.BatchNorm1d(3);
    layer.running_mean.fill_(4);
    layer.reset_parameters();
    tap.equal(layer.running_mean.abs().sum().item(), 0);
    tap.throws(() => nn.ReLU().reset_parameters(), error => error.message.includes('no parameters'));
    const rows = GTorch.arange(6, {dtype: GTorch.float32}).reshape([3, 2]);
    const embedding = nn.Embedding.from_pretrained(rows, {padding_idx: 1});
    tap.assert(!embedding.weight.requires_grad && embedding.padding_idx === 1);
    tap.equal(embedding.forward(GTorch.tensor([2], {dtype: GTorch.int64})).sum().item(), 9);
    tap.assert(nn.EmbeddingBag.from_pretrained(rows, false).weight.requires_grad);
    tap.throws(() => nn.Embedding.from_pretrained(3), error => error instanceof TypeError);
    const drawn = GTorch.gumbel_softmax(GTorch.zeros([5, 3]), {hard: true});
    tap.assert(near(drawn.sum(-1), GTorch.ones([5])));
});

tap.add('tensors_are_filled', () => {
    const {init} = nn;
    const matrix = GTorch.zeros([4, 4]);
    tap.assert(init.orthogonal_(matrix, {gain: 2}) === matrix);
    tap.assert(near(matrix.matmul(matrix.t()), GTorch.eye(4).mul(4)));
    tap.equal(init.constant_(GTorch.empty([2]), 3).toArray(), [3, 3]);
    tap.equal(init.eye_(GTorch.empty([2, 3])).toArray(), [[1, 0, 0], [0, 1, 0]]);
    tap.equal(init.dirac_(GTorch.empty([4, 2, 3]), {groups: 2}).sum().item(), 4);
    tap.equal(init.sparse_(GTorch.empty([10, 5]), 0.35).eq(0).sum().item(), 20);
    tap.equal([init.zeros_(matrix).sum().item(), init.ones_(matrix).sum().item()], [0, 16]);
    const bound = Math.sqrt(6 / 4) + 1e-6;
    init.kaiming_uniform_(matrix, {nonlinearity: 'relu', mode: 'fan_out'});
    tap.assert(matrix.abs().max().item() < bound);
    tap.assert(init.xavier_uniform_(matrix, 0.1).abs().max().item() < 0.1);
    const generator = GTorch.get_default_device().get_default_generator();
    const drawing = [init.normal_, init.trunc_normal_, init.uniform_, init.kaiming_normal_,
        init.xavier_normal_];
    for (const fill of drawing) {
        const before = generator.get_state();
        const drawn = fill(GTorch.zeros([3, 3])).toArray();
        generator.set_state(before);
        tap.equal(fill(GTorch.zeros([3, 3]), {generator}).toArray(), drawn);
    }
    tap.equal(init.calculate_gain('conv2d'), 1);
    tap.assert(Math.abs(init.calculate_gain('leaky_relu', 0.2) - Math.sqrt(2 / 1.04)) < 1e-12);
    tap.throws(() => init.kaiming_normal_(matrix, {mode: 'fan'}),
        error => error.message.includes("'fan_in'"));
    tap.throws(() => init.calculate_gain('gelu'), error => error instanceof TypeError);
    tap.throws(() => init.constant_(matrix), error => error.message.includes('val is missing'));
    tap.throws(() => init.zeros_(3), error => error.message.includes('must be a tensor'));
    tap.throws(() => init.eye_(GTorch.empty([2])), error => error.message.includes('2 dimensions'));
});

tap.add('classes_of_a_program_begin_as_they_say', () => {
    let seen = 0;
    const Ones = GObject.registerClass(class Ones extends nn.Linear {
        reset_parameters() {
            super.reset_parameters();
            nn.init.ones_(this.weight);
            seen++;
        }
    });
    const Above = GObject.registerClass(class Above extends GTorch.Linear {
        reset_parameters() {
            nn.init.zeros_(this.weight);
        }
    });
    const Below = GObject.registerClass(class Below extends Above {});
    const Own = GObject.registerClass(class Own extends GTorch.Module {
        reset_parameters() {
            seen += 10;
        }
    });
    const Later = GObject.registerClass(class Later extends nn.LazyLinear {
        reset_parameters() {
            seen += 100;
        }
    });
    tap.equal(new Ones(2, 3).weight.toArray(), [[1, 1], [1, 1], [1, 1]]);
    tap.equal(seen, 1);
    tap.equal(new Below({in_features: 2, out_features: 1}).weight.toArray(), [[0, 0]]);
    tap.throws(() => new Ones(0, 3), error => error.message.includes('in_features'));
    tap.equal([new Own(), new Later(2), nn.Linear(2, 3)].length + seen, 4);
});

tap.add('programs_derive_methods_of_pruning', () => {
    class Alternate extends prune.BasePruningMethod {
        static PRUNING_TYPE = 'unstructured';

        constructor(start = 0) {
            super();
            this.start = start;
        }

        compute_mask(t, mask) {
            const odd = GTorch.arange(0, t.get_numel()).remainder(2).eq(this.start % 2).reshape(t.shape);
            return mask.masked_fill(odd, 0);
        }
    }
    class First extends prune.BasePruningMethod {
        static PRUNING_TYPE = 'structured';
        dim = -1;

        compute_mask(t, mask) {
            return mask.index_fill(1, GTorch.tensor([0], {dtype: GTorch.int64}), 0);
        }
    }
    class Broken extends prune.BasePruningMethod {
        static PRUNING_TYPE = 'other';

        compute_mask() {
            return GTorch.ones([7]);
        }
    }
    const layer = nn.Linear(4, 3);
    const weight = layer.weight.detach().clone();
    tap.throws(() => Broken.apply(layer, 'weight'), error => error.message.includes('[3, 4], it has [7]'));
    tap.assert(!prune.is_pruned(layer));
    const one = Alternate.apply(layer, 'weight', 1);
    tap.assert(one instanceof Alternate && layer.weight_mask.sum().item() === 6);
    tap.assert(near(layer.weight, weight.mul(layer.weight_mask)));
    tap.assert(near(one.apply_mask(layer), layer.weight));
    prune.l1_unstructured(layer, 'weight', 2, {is_count: true});
    tap.equal(layer.weight_mask.sum().item(), 4);
    const all = First.apply(layer, 'weight');
    tap.equal([...all].map(x => x.constructor.name), ['Alternate', 'L1Unstructured', 'First']);
    tap.equal(all.length, 3);
    tap.equal(layer.weight_mask.select(1, 0).sum().item(), 0);
    tap.throws(() => Broken.apply(layer, 'weight'), error => error.message.includes('PRUNING_TYPE'));
    tap.throws(() => Alternate.apply(layer, 'weight', {importance_scores: GTorch.ones([2])}),
        error => error.message.includes('importance_scores'));
    all.remove(layer);
    tap.assert(!prune.is_pruned(layer));
    const pairs = [[layer, 'weight'], [nn.Linear(2, 2), 'weight']];
    prune.global_unstructured(pairs, Alternate, 0);
    tap.equal(pairs.map(([module]) => module.weight_mask.sum().item()), [6, 2]);
    tap.throws(() => prune.global_unstructured(pairs, First), error => error instanceof TypeError);
    const masks = [new prune.L1Unstructured(3, {is_count: true}), new prune.LnStructured(0.5, 1, 0)]
        .map(x => x.compute_mask(weight, GTorch.ones_like(weight)).sum().item());
    tap.equal(masks, [9, 4]);
    const container = new prune.PruningContainer();
    tap.throws(() => container.add_pruning_method(3), error => error instanceof TypeError);
    tap.throws(() => container.add_pruning_method(one), error => error instanceof RangeError);
    tap.throws(() => container.compute_mask(weight, weight), error => error.message.includes('no methods'));
});

tap.add('weights_change_their_order_in_memory', () => {
    const net = nn.Sequential(nn.Conv2d(3, 2, 3), nn.ConvTranspose2d(2, 3, 2));
    const [weight] = net.parameters();
    const x = GTorch.rand([1, 3, 5, 5]);
    const before = net.forward(x);
    tap.assert(nn.utils.convert_conv2d_weight_memory_format(net, 'channels_last') === net);
    tap.equal([weight.shape, weight.get_strides()], [[2, 3, 3, 3], [27, 1, 9, 3]]);
    const after = net.forward(x);
    tap.assert(near(after, before) && after.get_strides()[1] === 1);
    nn.utils.convert_conv2d_weight_memory_format(net, 'contiguous_format');
    tap.assert(weight.is_contiguous());
    const volume = nn.Conv3d(2, 3, 2);
    nn.utils.convert_conv3d_weight_memory_format(volume, 'channels_last_3d');
    tap.equal(volume.weight.get_strides(), [16, 1, 8, 4, 2]);
    tap.throws(() => nn.utils.convert_conv2d_weight_memory_format(net, 'channels_last_3d'),
        error => error.message.includes('convert_conv2d_weight_memory_format: memory_format 2'));
    tap.throws(() => nn.utils.convert_conv2d_weight_memory_format(net, 'rows'),
        error => error instanceof TypeError);
    tap.throws(() => nn.utils.convert_conv2d_weight_memory_format(nn.LazyConv2d(2, 2), 'channels_last'),
        error => error.message.includes('no elements'));
    prune.identity(net.get_module('0'), 'weight');
    tap.throws(() => nn.utils.convert_conv2d_weight_memory_format(net, 'channels_last'),
        error => error.message.includes('computed'));
});

tap.add('pooling_gives_indices_and_keeps_sizes', () => {
    const x = GTorch.arange(0, 32).to(GTorch.float32).reshape([1, 2, 4, 4]);
    const [y, indices] = nn.MaxPool2d(2, {return_indices: true}).forward(x);
    tap.equal(indices.toArray()[0][0], [[5, 7], [13, 15]]);
    tap.equal(nn.MaxUnpool2d(2).forward(y, indices, [4, 4]).shape, [1, 2, 4, 4]);
    const pool = nn.AdaptiveAvgPool2d([null, 2]);
    tap.equal([pool.forward(x).shape, pool.output_size, pool.toString()],
        [[1, 2, 4, 2], [null, 2], 'AdaptiveAvgPool2d(output_size=(None, 2))']);
    tap.equal(nn.LazyInstanceNorm2d().forward(x).shape, x.shape);
    tap.equal(nn.CrossMapLRN2d(3).forward(x).shape, x.shape);
});

tap.add('operations_have_further_names', () => {
    const x = GTorch.tensor([[1, -2, 3], [4, 5, -6]]);
    tap.equal(x.absolute().toArray(), x.abs().toArray());
    tap.equal(GTorch.multiply(x, x).toArray(), x.multiply(x).toArray());
    tap.equal(x.clip({min: 0}).toArray(), [[1, 0, 3], [4, 5, 0]]);
    tap.assert(x.t_() === x);
    tap.equal(x.toArray(), [[1, 4], [-2, 5], [3, -6]]);
    tap.equal([x.unsqueeze_(0).shape, x.transpose_(0, 1).shape, x.squeeze_().shape],
        [[1, 3, 2], [3, 1, 2], [3, 2]]);
    tap.equal(GTorch.tensor([1, 2, 3]).resize_(2).toArray(), [1, 2]);
    tap.equal(GTorch.tensor([1, 2]).resize_as_(GTorch.ones([2, 1])).shape, [2, 1]);
    const leaf = GTorch.ones([2, 2]).requires_grad_();
    tap.throws(() => leaf.t_(), error => error.message.includes('requires grad'));
    tap.equal(GTorch.broadcast_shapes([2, 1], [3]), [2, 3]);
    tap.throws(() => GTorch.broadcast_shapes([2], [3]), error => error instanceof RangeError);
});

await tap.run();
