// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Lists and dictionaries of modules and of parameters.

import GObject from 'gi://GObject';
import GTorch from 'gi://GTorch?version=1';

import * as tap from './tap.js';

const {nn} = GTorch;

tap.add('lists_of_modules_can_be_iterated', () => {
    const [a, b] = [nn.Linear(1, 2), nn.ReLU()];
    const list = nn.ModuleList([a, b]);
    list.append(nn.ReLU());
    tap.equal(list.length, 3);
    tap.assert(list.at(0) === a && list.at(-2) === b && [...list][1] === b);
    tap.assert(list instanceof GTorch.ModuleList && list instanceof nn.ModuleList);
    tap.equal(list.toString(),
        'ModuleList(\n  (0): Linear(in_features=1, out_features=2, bias=True)\n  (1-2): 2 x ReLU()\n)');
    tap.equal(Object.keys(list.state_dict()), ['0.weight', '0.bias']);
    list.insert(0, b);
    list.remove(-1);
    tap.equal(list.get_child_names(), ['0', '1', '2']);
    tap.equal([...nn.Sequential(a, b)].length, 2);
    for (const place of [-1, 3, 9]) {
        tap.throws(() => {
            list[place] = a;
        }, error => error instanceof RangeError && error.message.includes(`nothing at ${place}`));
    }
    tap.equal(nn.ModuleList().length, 0);
    tap.throws(() => nn.ModuleList([3]), error => error.message.includes('ModuleList takes values of'));
    tap.throws(() => nn.ModuleList([a], [b]), error => error.message.includes('ModuleList'));
});

tap.add('dictionaries_of_modules_are_like_maps', () => {
    const [a, b] = [nn.Linear(1, 2), nn.ReLU()];
    const table = nn.ModuleDict({a, b});
    tap.equal([...table.keys()], ['a', 'b']);
    tap.assert(table.get('a') === a && table.has('b') && !table.has('c') && table.get('c') === undefined);
    tap.assert(table.set('c', b) === table && table.size === 3 && [...table][2][1] === b);
    tap.assert(table.delete('a') && !table.delete('a'));
    tap.equal([...table.entries()].map(([key]) => key), ['b', 'c']);
    tap.equal(nn.ModuleDict(new Map([['x', a]])).size, 1);
    tap.equal(nn.ModuleDict(table).size, 2);
    table.clear();
    tap.equal(table.size, 0);
    tap.throws(() => table.set('d', 3), error => error.message.includes('ModuleDict.set takes values of'));
});

tap.add('lists_and_dictionaries_of_parameters_take_tensors', () => {
    const parameter = nn.Parameter(GTorch.ones([2]));
    const list = nn.ParameterList([parameter, GTorch.zeros([3])]);
    tap.assert(list.length === 2 && list.at(0) === parameter && list.at(1) instanceof GTorch.Parameter);
    list.append(parameter);
    tap.equal([...list].map(one => one.shape), [[2], [3], [2]]);
    tap.assert(list.toString().includes('(1): Parameter containing: [float32 of size 3'));
    const table = nn.ParameterDict({a: parameter, b: GTorch.zeros([3])});
    tap.assert(table.get('a') === parameter && table.get('b') instanceof GTorch.Parameter);
    tap.equal(Object.keys(table.state_dict()), ['a', 'b']);
    tap.throws(() => nn.ParameterList([3]), error => error.message.includes('ParameterList takes values of'));
    tap.throws(() => nn.ParameterDict({a: nn.ReLU()}), error => error.message.includes('ParameterDict'));
});

tap.add('modules_use_their_lists', () => {
    const Net = GObject.registerClass(class Net extends GTorch.Module {
        constructor() {
            super();
            this.layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)]);
        }

        forward(x) {
            return [...this.layers].reduce((value, layer) => layer.forward(value), x);
        }
    });
    const net = new Net();
    tap.equal(Object.keys(net.state_dict()),
        ['layers.0.weight', 'layers.0.bias', 'layers.1.weight', 'layers.1.bias']);
    tap.equal(net.forward(GTorch.ones([3, 2])).shape, [3, 2]);
});

tap.add('modules_have_the_members_and_conversions_of_pytorch', () => {
    const net = nn.Sequential(nn.BatchNorm1d(2), nn.ModuleDict({last: nn.Linear(2, 1)}));
    tap.equal(net.named_modules().map(([name]) => name), ['', '0', '1', '1.last']);
    tap.assert(net.get_submodule('1.last') === net.named_modules()[3][1] && net.get_submodule('') === net);
    tap.equal(net.named_buffers().map(([name]) => name),
        ['0.running_mean', '0.running_var', '0.num_batches_tracked']);
    tap.equal(net.buffers().length, 3);
    tap.equal(net.buffers(false).length, 0);
    const dtype = () => net.get_parameter('1.last.weight').get_dtype();
    const {float16, float32, float64, bfloat16} = GTorch;
    for (const [name, wanted] of Object.entries({double: float64, half: float16, bfloat16, float: float32})) {
        tap.assert(net[name]() === net);
        tap.equal(dtype(), wanted);
    }
    tap.assert(net.type(GTorch.float64).cpu() === net);
    tap.equal(dtype(), GTorch.float64);
    net.add_module('extra', nn.ReLU());
    tap.equal(net.get_child_names(), ['0', '1', 'extra']);
});

await tap.run();
