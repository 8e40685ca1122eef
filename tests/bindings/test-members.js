// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// The members of a module are its attributes, however they were registered: reading gives the member,
// assigning replaces it, null leaves it out, and delete removes it.

import GObject from 'gi://GObject';
import GTorch from 'gi://GTorch?version=1';

import * as tap from './tap.js';

const {nn} = GTorch;

const Own = GObject.registerClass(class Own extends GTorch.Module {});
const Layer = GObject.registerClass(class Layer extends GTorch.Linear {});
const MODULES = {
    'a module of a program': () => new Own(),
    'a plain module': () => new GTorch.Module(),
    'a ready-made layer': () => nn.Linear(2, 2),
    'a class derived from a layer': () => new Layer({in_features: 1, out_features: 1}),
    'a sequence': () => nn.Sequential(nn.ReLU()),
    'a loss': () => nn.MSELoss(),
};
const MEMBERS = {
    buffer: {
        make: () => GTorch.ones([2]), wrong: [5, 'text', undefined, nn.ReLU],
        names: module => module.get_buffer_names(false),
    },
    parameter: {
        make: () => nn.Parameter(GTorch.ones([2])), wrong: [5, 'text', undefined, GTorch.ones([1])],
        names: module => module.get_parameter_names(false),
    },
    module: {
        make: () => nn.ReLU(), wrong: [5, 'text', undefined, GTorch.ones([1])],
        names: module => module.get_child_names(),
    },
};
// What gives the module a member with the name.
const WAYS = {
    'register': (module, kind, value) => module[`register_${kind}`]('inner', value),
    'assignment': (module, _kind, value) => (module.inner = value),
};

for (const [what, make] of Object.entries(MODULES)) {
    for (const [kind, {make: value, wrong, names}] of Object.entries(MEMBERS)) {
        for (const [how, give] of Object.entries(WAYS)) {
            if (kind === 'buffer' && how === 'assignment')
                continue;
            tap.add(`a_${kind}_of_${what}_by_${how}`.replace(/[ -]/g, '_'), () => {
                const [module, first, second] = [make(), value(), value()];
                give(module, kind, first);
                tap.assert(module.inner === first && names(module).includes('inner'));
                module.inner = second;
                tap.assert(module.inner === second);
                tap.assert(module[`get_${kind}`]('inner') === second);
                tap.equal('inner' in module.state_dict(), kind !== 'module');
                for (const other of wrong) {
                    tap.throws(() => {
                        module.inner = other;
                    }, error => error instanceof TypeError && error.message.includes('inner'));
                }
                tap.assert(module.inner === second);
                module.inner = null;
                tap.assert(module.inner === null && !('inner' in module.state_dict()));
                tap.assert(!names(module).includes('inner'));
                module.inner = first;
                tap.assert(module.inner === first && names(module).includes('inner'));
                delete module.inner;
                tap.equal(module.inner, undefined);
                tap.equal(module.get_member_kind('inner'), GTorch.MemberKind.NONE);
                give(module, kind, second);
                module.unregister('inner');
                tap.equal(module.inner, undefined);
            });
        }
    }
}

tap.add('loading_changes_what_the_attribute_gives', () => {
    const module = new Own();
    module.register_buffer('total', GTorch.zeros([2]));
    module.register_parameter('scale', nn.Parameter(GTorch.zeros([2])));
    module.load_state_dict({total: GTorch.full([2], 3), scale: GTorch.full([2], 4)});
    tap.equal([module.total.toArray(), module.scale.toArray()], [[3, 3], [4, 4]]);
    module.total = module.total.add(1);
    tap.equal(module.state_dict().total.toArray(), [4, 4]);
    module.to(GTorch.float64);
    tap.equal(module.total.get_dtype(), GTorch.float64);
});

tap.add('members_that_the_library_registered_are_attributes', () => {
    const norm = nn.BatchNorm1d(2);
    norm.forward(GTorch.randn([4, 2]));
    tap.equal(norm.num_batches_tracked.item(), 1);
    norm.num_batches_tracked = GTorch.tensor(5);
    tap.equal(norm.state_dict().num_batches_tracked.item(), 5);
    const row = nn.Sequential(nn.ReLU(), nn.Tanh());
    tap.assert(row[1] === row.get_item(1));
    row[1] = nn.Sigmoid();
    tap.assert(row.get_item(1) instanceof GTorch.Sigmoid);
});

tap.add('buffers_are_saved_unless_told_otherwise', () => {
    const module = new Own();
    module.register_buffer('kept', GTorch.ones([1]));
    module.register_buffer('passing', GTorch.ones([1]), false);
    module.register_buffer('named', GTorch.ones([1]), {persistent: false});
    tap.equal(Object.keys(module.state_dict()), ['kept']);
    tap.equal(module.get_buffer_names(true), ['kept', 'passing', 'named']);
});

tap.add('members_cannot_have_the_names_of_attributes', () => {
    let n = 0;
    for (const make of Object.values(MODULES)) {
        for (const name of ['training', 'forward', 'parameters', 'connect', 'toString', 'constructor']) {
            for (const [kind, {make: value}] of Object.entries(MEMBERS)) {
                tap.throws(() => make()[`register_${kind}`](name, value()),
                    error => error.message.includes(`.${name} is an attribute already`));
                n++;
            }
            if (name === 'training')
                continue;
            const module = make();
            tap.throws(() => {
                module[name] = nn.ReLU();
                module.state_dict();
                GTorch.Module.prototype.state_dict.call(module);
            }, error => error.message.includes(`.${name} is an attribute already`) ||
                error.message.includes('not a function'));
        }
    }
    const module = new Own();
    module.total = 5;
    tap.throws(() => module.register_buffer('total', GTorch.ones([1])),
        error => error.message.includes('Own.total is an attribute already'));
    tap.equal(module.total, 5);
    tap.assert(n > 100, `${n} names`);
});

tap.add('members_that_a_class_body_defines_are_registered', () => {
    const Fields = GObject.registerClass(class Fields extends GTorch.Module {
        first = nn.Linear(1, 1);
        scale = nn.Parameter(GTorch.ones([1]));
    });
    const module = new Fields();
    tap.equal(module.get_parameter_names(true).sort(), ['first.bias', 'first.weight', 'scale']);
    module.first = nn.ReLU();
    tap.equal(Object.keys(module.state_dict()), ['scale']);
});

// The library calls its own functions, whatever a class of a program defines.
tap.add('own_methods_do_not_take_the_place_of_the_librarys', () => {
    const NAMES = ['get_parameters', 'get_parameter_names', 'get_buffers', 'get_buffer_names', 'get_children',
        'get_child_names', 'get_modules', 'get_module_names', 'get_module', 'has_hooks', 'state_lists',
        'load_state_lists', 'set_requires_grad'];
    const build = Class => {
        const net = new Class();
        net.inner = nn.Linear(2, 1);
        net.norm = nn.BatchNorm1d(1);
        return net;
    };
    const use = net => [
        net.parameters().length, net.named_parameters().map(([name]) => name), net.buffers().length,
        net.named_buffers().map(([name]) => name),
        net.children().length, net.named_children().map(([name]) => name),
        net.modules().length, net.named_modules().map(([name]) => name),
        net.get_submodule('inner').toString(),
        Object.keys(net.state_dict()), typeof net.load_state_dict(net.state_dict()),
        net.requires_grad_(false).inner.weight.requires_grad,
    ];
    const expected = use(build(Own));
    tap.equal(expected[0], 4);
    for (const name of NAMES) {
        const Class = class extends GTorch.Module {};
        Class.prototype[name] = () => 'mine';
        tap.equal(use(build(GObject.registerClass({GTypeName: `Own_${name}`}, Class))), expected);
    }
});

tap.add('the_methods_of_tensors_cannot_be_replaced', () => {
    const x = GTorch.ones([1]);
    for (const one of [x, nn.Parameter(x)]) {
        for (const name of ['add', 'add_', 'backward', 'to', 'detach', 'get_shape', 'connect', 'toArray']) {
            tap.throws(() => {
                one[name] = 5;
            }, error => error instanceof TypeError && error.message.includes(name));
            tap.equal(typeof one[name], 'function');
        }
    }
});

await tap.run();
