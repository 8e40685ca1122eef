// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// What GObject gives to programs with windows: notifications, lists that follow, paths, asynchronous reads.

import GLib from 'gi://GLib';
import GTorch from 'gi://GTorch?version=1';

import * as tap from './tap.js';

const {nn} = GTorch;

function iterate() {
    while (GLib.MainContext.default().iteration(false))
        continue;
}

tap.add('gradients notify', async () => {
    const x = GTorch.ones([2], {requires_grad: true});
    let n = 0;
    x.connect('notify::grad', () => n++);
    x.sum().backward();
    tap.equal(n, 1);
    await x.square().sum().backward_async();
    tap.equal(n, 2);
});

tap.add('parameters know their paths', () => {
    const net = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1));
    const outer = nn.ModuleDict({encoder: net});
    tap.equal(net.get_parameter('1.weight').full_name, 'encoder.1.weight');
    tap.assert(outer !== null);
});

tap.add('a list follows its module', () => {
    const net = nn.Sequential(nn.Linear(1, 1));
    const model = GTorch.MemberModel.new(net, GTorch.MemberKind.PARAMETER, true);
    const seen = [];
    model.connect('items-changed', (_model, ...what) => seen.push(what.join(' ')));
    net.append(nn.Linear(1, 1, {bias: false}));
    tap.equal(model.get_n_items(), 2);
    iterate();
    tap.equal(seen.join(), '2 0 1');
    tap.equal(model.get_n_items(), 3);
});

tap.add('elements are read without blocking', async () => {
    const x = GTorch.tensor([1.5, -2.25]);
    const doubles = x.to_doubles_async(), bytes = x.get_bytes_async();
    x.zero_();
    tap.equal((await doubles).join(), '1.5,-2.25');
    tap.equal((await bytes).get_size(), 8);
    const whole = await GTorch.ones([2], {dtype: GTorch.int64}).to_ints_async();
    tap.equal(whole.join(), '1,1');
});

await tap.run();
