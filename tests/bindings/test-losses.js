// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// AdaptiveLogSoftmaxWithLoss and TripletMarginWithDistanceLoss. The expected numbers are PyTorch's.

import GObject from 'gi://GObject';
import GTorch from 'gi://GTorch?version=1';

import * as tap from './tap.js';

const {nn} = GTorch;
const dtype = GTorch.float64;
const TARGETS = GTorch.tensor([9, 0, 3, 1, 4, 5]);
const LOSS = 5.9429209408;

const rounded = tensor => tensor.flatten().toArray().map(one => Math.round(one * 1e8) / 1e8);

function waves(...shape) {
    const n = shape.reduce((a, b) => a * b, 1);
    return GTorch.tensor(Array.from({length: n}, (_, i) => Math.sin(i + 1)), {dtype}).view(...shape);
}

function filled(layer) {
    GTorch.no_grad(() => layer.parameters().forEach(one => one.copy_(waves(...one.shape))));
    return layer;
}

const ARGS = [8, 10, [2, 5], {div_value: 2, head_bias: true, dtype}];

tap.add('the_adaptive_loss_gives_two_results', () => {
    const layer = filled(nn.AdaptiveLogSoftmaxWithLoss(...ARGS));
    const x = waves(6, 8);
    const [output, loss] = layer.forward(x, TARGETS);
    tap.equal(rounded(loss.view(1)), [Math.round(LOSS * 1e8) / 1e8]);
    tap.equal(rounded(output.narrow(0, 0, 2)), [-6.35409249, -3.933894]);
    tap.equal(layer.log_prob(x).shape, [6, 10]);
    tap.equal(layer.predict(x).toArray(), [0, 1, 3, 0, 0, 1]);
    tap.equal(layer.cutoffs, [2, 5, 10]);
    tap.throws(() => (layer.cutoffs = [3]), error => /fixed/.test(error.message));
    tap.throws(() => layer.forward(x), error => error instanceof TypeError && /target/.test(error.message));
    tap.throws(() => layer.forward(x, 3), error => /must be a tensor, not/.test(error.message));
    tap.throws(() => layer.forward(x, TARGETS.add(1)),
        error => /number 0 of the targets is 10/.test(error.message));
    tap.throws(() => layer.predict(x.select(0, 0)), error => /in_features/.test(error.message));
    tap.throws(() => nn.AdaptiveLogSoftmaxWithLoss(8, 10, [5, 2]),
        error => /cutoffs is 2/.test(error.message));
});

tap.add('a_class_can_change_the_adaptive_loss', () => {
    const Twice = GObject.registerClass(class Twice extends nn.AdaptiveLogSoftmaxWithLoss {
        forward(input, target) {
            const [output, loss] = super.forward(input, target);
            return [output, loss.mul(2)];
        }
    });
    const layer = filled(new Twice(...ARGS));
    const loss = layer.forward(waves(6, 8), TARGETS)[1];
    tap.equal(rounded(loss.view(1)), [Math.round(2 * LOSS * 1e8) / 1e8]);
});

const triplet = () => [waves(4, 3), waves(4, 3).cos(), waves(4, 3).exp()];
const furthest = (x, y) => x.sub(y).abs().amax(1);
const SWAPPED = [1.27565878, 3.27545421, 0.80400616, 3.26507606];

tap.add('a_function_may_be_the_distance', () => {
    const options = {distance_function: furthest, margin: 2, swap: true, reduction: 'none'};
    tap.equal(rounded(GTorch.triplet_margin_with_distance_loss(...triplet(), options)), SWAPPED);
    const loss = nn.TripletMarginWithDistanceLoss(options);
    tap.equal(rounded(loss.forward(...triplet())), SWAPPED);
    const plain = nn.TripletMarginWithDistanceLoss({margin: 2, reduction: 'none'});
    tap.equal(rounded(plain.forward(...triplet())), [0.53202411, 2.37604524, 0.29233627, 2.41019268]);
    const distance = nn.PairwiseDistance(1);
    const by = nn.TripletMarginWithDistanceLoss({distance_function: distance});
    tap.equal(by.get_module('distance_function') === distance, true);
    tap.equal(by.forward(...triplet()).item(),
        GTorch.triplet_margin_with_distance_loss(...triplet(), {distance_function: distance}).item());
});

tap.add('errors_of_distances_arrive', () => {
    const boom = new Error('distance');
    const fail = () => {
        throw boom;
    };
    tap.throws(() => GTorch.triplet_margin_with_distance_loss(...triplet(), {distance_function: fail}),
        error => error === boom);
    tap.throws(() => nn.TripletMarginWithDistanceLoss({distance_function: fail}).forward(...triplet()),
        error => error === boom);
    tap.throws(() => GTorch.triplet_margin_with_distance_loss(...triplet(), {distance_function: () => 3}),
        error => /not a tensor/.test(error.message));
    tap.throws(() => GTorch.triplet_margin_with_distance_loss(...triplet(), {margin: 0}),
        error => /margin is 0/.test(error.message));
    tap.throws(() => nn.TripletMarginWithDistanceLoss({distance_function: 3}),
        error => error instanceof TypeError);
    tap.throws(() => nn.TripletMarginWithDistanceLoss({margin: -1}), error => /margin/.test(error.message));
});

await tap.run();
