// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Several GPUs of one process, on the driver of tests/fake-cuda.

import GObject from 'gi://GObject';
import GTorch from 'gi://GTorch?version=1';

import * as tap from './tap.js';

const gpus = [0, 1, 2].map(index => GTorch.Device.cuda(index));
const names = tensors => tensors.map(one => one.get_device().to_string());

function rows(n) {
    return GTorch.arange(0, 2 * n).sin().reshape([n, 2]);
}

function near(a, b) {
    tap.assert(GTorch.allclose(a.to('cpu'), b.to('cpu'), {rtol: 1e-5, atol: 1e-6}));
}

tap.add('tensors_are_sent_and_added', () => {
    const x = GTorch.tensor([1, 2, 3]).to(gpus[0]);
    const copies = GTorch.comm_broadcast(x, ['cuda:0', 1, gpus[2]]);
    tap.throws(() => GTorch.comm_broadcast(x, [0, null]),
        error => error.message.includes('element 1 of devices'));
    tap.throws(() => GTorch.comm_broadcast(x, 'cuda:0'),
        error => error.message.includes('must be an array'));
    tap.equal(names(copies), ['cuda:0', 'cuda:1', 'cuda:2']);
    tap.equal(copies[2].toArray(), [1, 2, 3]);
    tap.equal(GTorch.comm_reduce_add(copies, gpus[1]).toArray(), [3, 6, 9]);
    const lists = GTorch.comm_broadcast_coalesced([x, x.mul(2)], gpus);
    tap.equal(lists.length, 6);
    tap.equal(GTorch.comm_reduce_add_coalesced(lists, 3).map(one => one.toArray()), [[3, 6, 9], [6, 12, 18]]);
    const out = GTorch.zeros([3]).to(gpus[2]);
    tap.assert(GTorch.comm_broadcast_out(x, [out]));
    tap.equal(out.toArray(), [1, 2, 3]);
});

tap.add('tensors_are_divided_and_joined', () => {
    const parts = GTorch.comm_scatter(GTorch.tensor([1, 2, 3, 4, 5]), gpus);
    tap.equal(parts.map(one => one.toArray()), [[1, 2], [3, 4], [5]]);
    const whole = GTorch.comm_gather(parts, 0, GTorch.Device.cpu());
    tap.equal(whole.toArray(), [1, 2, 3, 4, 5]);
    tap.equal(GTorch.comm_scatter(whole, gpus, [1, 1, 3]).map(one => one.shape[0]), [1, 1, 3]);
    tap.throws(() => GTorch.comm_scatter(whole, gpus, [1, 1, 1]),
        error => error.matches(GTorch.Error, GTorch.Error.SHAPE) && error.message.includes('do not make up'));
});

tap.add('batches_are_divided', () => {
    const net = new GTorch.GroupNorm({num_groups: 1, num_channels: 2});
    net.to(gpus[0]);
    const devices = [0, 'cuda:1', gpus[2]];
    const model = new GTorch.DataParallel({module: net, devices, output_device: 'cpu'});
    tap.equal(model.device_ids, [0, 1, 2]);
    tap.equal([model.dim, model.output_device.to_string(), model.wrapped], [0, 'cpu', net]);
    const x = rows(7), y = model.forward(x);
    tap.equal(y.get_device().to_string(), 'cpu');
    near(y, net.forward(x.to(gpus[0])));
    y.square().sum().backward();
    const grad = net.weight.grad;
    net.zero_grad();
    net.forward(x.to(gpus[0])).square().sum().backward();
    near(grad, net.weight.grad);
    tap.equal(Object.keys(model.state_dict()).sort(), ['module.bias', 'module.weight']);
    tap.equal(new GTorch.DataParallel({module: net}).device_ids, [0, 1, 2]);
    tap.throws(() => new GTorch.DataParallel({module: net, devices: 2}), error => error instanceof TypeError);
    tap.throws(() => new GTorch.DataParallel({module: net, devices: [0, 0]}),
        error => error.message.includes('there twice'));
    tap.throws(() => GTorch.DataParallel.call(net, [x], [gpus[1], gpus[0]]),
        error => error.message.includes('must be on cuda:1'));
});

const Twice = GObject.registerClass(class Twice extends GTorch.Module {
    _init() {
        super._init();
        this.norm = new GTorch.GroupNorm({num_groups: 1, num_channels: 2});
        this.devices = [];
    }

    forward(x) {
        this.devices.push(this.norm.weight.get_device().to_string());
        if (this.broken === x.get_device().get_index())
            throw new Error('this one is broken');
        return this.norm.forward(x).mul(2);
    }
});

// A function of JavaScript runs in one thread: that of the program.
tap.add('functions_of_javascript_run_one_after_the_other', () => {
    const net = new Twice();
    net.to(gpus[0]);
    const model = new GTorch.DataParallel({module: net});
    const x = rows(7), y = model.forward(x);
    tap.equal(net.devices, ['cuda:0', 'cuda:1', 'cuda:2']);
    near(y, net.forward(x.to(gpus[0])));
    y.sum().backward();
    tap.equal(net.norm.bias.grad.toArray(), [14, 14]);
    tap.equal(net.norm.weight.get_device().to_string(), 'cuda:0');
    net.broken = 2;
    tap.throws(() => model.forward(x), error => error.message.includes('this one is broken'));
    tap.equal(net.norm.weight.get_device().to_string(), 'cuda:0');
});

const Again = GObject.registerClass(class Again extends GTorch.Module {
    _init() {
        super._init();
        this.norm = new GTorch.GroupNorm({num_groups: 1, num_channels: 2});
        this.kind = null;
    }

    forward(x) {
        const call = value => this.norm.forward(value).mul(2);
        return this.kind === null ? call(x) : GTorch.checkpoint(call, x, {use_reentrant: this.kind});
    }
});

tap.add('checkpoints_compute_with_the_replica', () => {
    const net = new Again(), model = new GTorch.DataParallel({module: net});
    net.to(gpus[0]);
    const gradients = kind => {
        net.kind = kind;
        net.zero_grad();
        const x = rows(7).requires_grad_();
        model.forward(x).square().sum().backward();
        return [x.grad, net.norm.weight.grad, net.norm.bias.grad];
    };
    const wanted = gradients(null);
    for (const kind of [false, true])
        gradients(kind).forEach((one, i) => near(one, wanted[i]));
    const module = new GTorch.DataParallel({module: new GTorch.GroupNorm({num_groups: 1, num_channels: 2})});
    module.to(gpus[0]);
    const x = rows(7).requires_grad_();
    module.checkpoint([x], false).mul(2).square().sum().backward();
    near(x.grad, wanted[0]);
});

tap.add('hooks_see_the_module', () => {
    const net = new GTorch.GroupNorm({num_groups: 1, num_channels: 2});
    net.to(gpus[0]);
    const seen = [];
    net.register_forward_hook((module, inputs, output) => {
        seen.push(output.get_device().to_string());
        tap.assert(module === net);
        return null;
    });
    new GTorch.DataParallel({module: net}).forward(rows(6));
    tap.equal(seen, ['cuda:0', 'cuda:1', 'cuda:2']);
});

tap.add('replicas_are_modules', () => {
    const net = new GTorch.GroupNorm({num_groups: 1, num_channels: 2});
    net.to(gpus[0]);
    const replicas = GTorch.replicate(net, gpus.slice(0, 2));
    tap.assert(replicas[0] === net && replicas[1] instanceof GTorch.Module);
    const parts = GTorch.comm_scatter(rows(4), gpus.slice(0, 2));
    const outputs = GTorch.parallel_apply(replicas, parts);
    tap.equal(names(outputs), ['cuda:0', 'cuda:1']);
    near(GTorch.comm_gather(outputs, 0), net.forward(rows(4).to(gpus[0])));
});

await tap.run();
