// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Every layer with the samples of its row, and with every argument of PyTorch's constructor.

import Gio from 'gi://Gio';
import GLib from 'gi://GLib';
import GObject from 'gi://GObject';
import GTorch from 'gi://GTorch?version=1';

import * as tap from './tap.js';

const {nn} = GTorch;
const classOf = name => nn[name] ?? GTorch.transforms[name];

function read(file) {
    const [, text] = file.load_contents(null);
    return JSON.parse(new TextDecoder().decode(text));
}

const folder = Gio.File.new_for_uri(import.meta.url).get_parent();
const signatures = read(folder.get_child('layer-signatures.json')).layers;
const table = read(Gio.File.new_for_path(GLib.getenv('GTORCH_LAYERS')));

function values(value) {
    if (value?.tensor !== undefined)
        return GTorch.ones([value.tensor]);
    return value?.number !== undefined ? {nan: NaN, inf: Infinity}[value.number] : value;
}

function make(name, {positional, named}) {
    const options = Object.fromEntries(Object.entries(named).map(([key, value]) => [key, values(value)]));
    return classOf(name)(...positional.map(values), options);
}

// Returns values for the arguments that have no default.
function required(name) {
    const {positional, named} = table[name].samples[0];
    const given = {...named};
    positional.forEach((value, i) => {
        given[signatures[name][i][0]] = value;
    });
    const keys = signatures[name].filter(arg => arg.length === 1).map(([key]) => key);
    return Object.fromEntries(keys.map(key => [key, given[key]]));
}

tap.add('samples_print_as_in_pytorch', () => {
    let n = 0;
    for (const [name, row] of Object.entries(table)) {
        for (const sample of row.samples) {
            tap.equal(make(name, sample).toString(), sample.text);
            n++;
        }
    }
    tap.assert(n > 45, `${n} samples`);
});

tap.add('lazy_layers_become_ordinary_ones', () => {
    const layer = new nn.LazyLinear(4);
    tap.assert(layer.has_uninitialized_params() && GTorch.is_lazy(layer.weight), 'it waits');
    tap.assert(layer instanceof nn.Linear, 'it is a linear layer');
    tap.throws(() => new GTorch.optim.SGD(layer.parameters(), {lr: 0.1}),
        error => error.message.includes('has no elements yet'));
    tap.equal(layer.forward(GTorch.ones([2, 3])).shape.join(), '2,4');
    tap.equal(layer.toString(), 'Linear(in_features=3, out_features=4, bias=True)');
    tap.equal(layer.weight.shape.join(), '4,3');
    const other = new nn.LazyLinear(4);
    other.load_state_dict(layer.state_dict());
    tap.assert(other.weight.equal(layer.weight), 'the state tells the size');
});

tap.add('bad_arguments_are_refused', () => {
    for (const [name, row] of Object.entries(table)) {
        for (const sample of row.refuse)
            tap.throws(() => make(name, sample), error => error.message.includes(name));
    }
});

tap.add('every_argument_may_be_given_by_name_and_by_position', () => {
    let n = 0;
    for (const [name, signature] of Object.entries(signatures)) {
        const given = required(name);
        const text = classOf(name)(given).toString();
        const everything = signature.map(arg => arg.length === 1 ? given[arg[0]] : arg[1]);
        signature.forEach(([key], i) => {
            tap.equal(classOf(name)({...given, [key]: everything[i]}).toString(), text);
            n++;
        });
        tap.equal(classOf(name)(...everything).toString(), text);
        if (!table[name].any)
            tap.throws(() => classOf(name)({...given, no_such: 1}),
                error => error.message.includes('no_such'));
    }
    tap.assert(n > 80, `${n} arguments`);
});

tap.add('layers_created_from_properties_print_like_the_original', () => {
    let n = 0;
    for (const [name, row] of Object.entries(table)) {
        if (row.any)
            continue;
        for (const sample of row.samples) {
            const layer = make(name, sample);
            const unseen = ['refused', 'processes', 'device', 'dtype'];
            const given = row.args.filter(({kind}) => !unseen.includes(kind))
                .map(arg => {
                    const rule = arg.rule ? layer[`${arg.property}_rule`] : GTorch.PaddingRule.NUMBERS;
                    const isNumbers = rule === GTorch.PaddingRule.NUMBERS;
                    if (arg.name === 'cutoffs') // it is shown with the number of classes
                        return [arg.name, layer.cutoffs.slice(0, -1)];
                    return [arg.name, isNumbers ? layer[arg.property] : sample.named[arg.name]];
                });
            tap.equal(classOf(name)(Object.fromEntries(given)).toString(), sample.text);
            n++;
        }
    }
    tap.assert(n > 40, `${n} samples`);
    tap.equal(nn.MaxPool2d(2).stride, 2);
    tap.equal(nn.MaxPool2d([2, 3]).stride, [2, 3]);
});

tap.add('unsupported_arguments_are_named', () => {
    let n = 0;
    for (const [name, row] of Object.entries(table)) {
        for (const arg of row.args.filter(one => one.kind === 'refused')) {
            const value = typeof arg.default === 'boolean' ? !arg.default : 3;
            tap.throws(() => classOf(name)({...required(name), [arg.name]: value}),
                error => error.message.includes(arg.name) && error.message.includes(arg.why));
            n++;
        }
    }
    tap.assert(n > 10, `${n} arguments`);
});

tap.add('strings_and_null_are_valid_settings', () => {
    const transpose = nn.ConvTranspose2d(1, 2, 3, {stride: 2, padding: 1});
    const image = GTorch.ones([1, 1, 4, 4]);
    tap.equal(transpose.forward(image).shape, [1, 2, 7, 7]);
    tap.equal(transpose.forward(image, [8, 7]).shape, [1, 2, 8, 7]);
    tap.equal(transpose.forward(image, {output_size: [1, 2, 8, 8]}).shape, [1, 2, 8, 8]);
    tap.equal(transpose.forward_size(image, [8, 8]).shape, [1, 2, 8, 8]);
    const conv = nn.Conv2d(1, 1, 3, {padding: 'same', padding_mode: 'circular'});
    tap.equal(conv.forward(GTorch.ones([1, 5, 7])).shape, [1, 5, 7]);
    tap.equal(conv.kernel_size, [3, 3]);
    tap.equal(conv.padding_mode, GTorch.PaddingMode.CIRCULAR);
    tap.equal(nn.BatchNorm1d(2, {momentum: null}).momentum, null);
    const rows = nn.Embedding(3, 2);
    tap.equal(rows.padding_idx, null);
    rows.padding_idx = 1;
    tap.equal(rows.padding_idx, 1);
    tap.equal(nn.Softmax().dim, null);
    tap.equal(nn.LayerNorm(3).normalized_shape, [3]);
    tap.equal(nn.Linear(2, 3, {dtype: GTorch.float64, device: 'cpu'}).weight.get_dtype(), GTorch.float64);
});

tap.add('layers_take_several_tensors', () => {
    const [x, y] = [[[3, 4]], [[4, 3]]].map(values => GTorch.tensor(values, {dtype: GTorch.float64}));
    const layer = nn.CosineSimilarity();
    tap.assert(Math.abs(layer.forward(x, y).item() - 0.96) < 1e-12);
    tap.assert(Math.abs(layer.forward_many([x, y]).item() - 0.96) < 1e-12);
    const calls = [];
    const loss = nn.MarginRankingLoss({margin: 0.5});
    loss.register_forward_hook((_module, inputs) => {
        calls.push(inputs.length);
    });
    tap.equal(loss.forward(x, y, GTorch.ones([1, 2])).item(), 0.75);
    tap.equal(calls, [3]);
    tap.throws(() => layer.forward(x), error => error.message.includes('CosineSimilarity.forward'));
    tap.throws(() => loss.forward(x, y), error => error.message.includes('MarginRankingLoss.forward'));
    tap.throws(() => layer.forward(x, 3), error => error.message.includes('must be a tensor'));
    const Near = GObject.registerClass(class Near extends nn.TripletMarginLoss {
        forward(...inputs) {
            return super.forward(...inputs).mul(2);
        }
    });
    tap.equal(new Near({margin: 3}).forward(x, x, x).item(), 6);
    tap.equal(new Near({margin: 3}).forward_many([x, x, x]).item(), 6);
});

await tap.run();
