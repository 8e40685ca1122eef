// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// A program that tsc --strict accepts, and whose marked lines it refuses; gjs runs what tsc makes of it.

import GTorch from 'gi://GTorch?version=1';

declare function print(...values: unknown[]): void;
declare const imports: any;

const {nn, optim, cuda} = GTorch;
const F = nn.functional;

class Net extends nn.Module {
    constructor() {
        super();
        this.conv = new nn.Conv2d(1, 4, {kernel_size: 3, padding: 1});
        this.head = nn.Linear(4 * 8 * 8, 10, {bias: false});
    }

    forward(x: GTorch.Tensor): GTorch.Tensor {
        const y = F.relu(this.conv.forward(x)).flatten(1);
        return this.head.forward(y);
    }
}

const Registered: typeof Net = imports.gi.GObject.registerClass({GTypeName: 'TypeScriptNet'}, Net);

const net = new Registered();
const optimizer = new optim.Adam(net.parameters(), {lr: 1e-2, betas: [0.9, 0.99]});
const scheduler = optim.lr_scheduler.StepLR(optimizer, {step_size: 3});
const images = GTorch.randn([5, 1, 8, 8]);
const labels = GTorch.tensor([0, 1, 2, 3, 4]);
const losses: number[] = [];
for (let step = 0; step < 3; step++) {
    losses.push(GTorch.tidy(() => {
        optimizer.zero_grad();
        const loss = F.cross_entropy(net.forward(images), labels, {reduction: 'mean'});
        loss.backward();
        optimizer.step();
        return loss.item();
    }));
    scheduler.step();
}
print(losses.length, optimizer.learning_rate > 0);

const x: GTorch.Tensor = GTorch.arange(6).reshape(2, 3);
const {values, indices} = x.to('float32').max_dim({dim: 1});
const [first] = x;
const rows: number[][] = x.add(1).mul(x, {out: null}).toArray();
const array = x.to(GTorch.int32).toTypedArray();
print(values.shape, indices.dtype === GTorch.int64, first?.tolist(), rows.length, array.length);
print(x.sum({axis: 0, keepdims: true}).shape, GTorch.zeros(2, 3).shape, GTorch.softmax(x.float(), -1).shape);
print(x.at(0, [1, null], '...').numel, x.put_at([0, 0], 5) === x, cuda.is_available());
const stream = new GTorch.Stream('cpu');
const total: number = stream.run(() => x.sum().item());
const event = new GTorch.Event({enable_timing: true});
event.record(stream);
await event.synchronize_async(null);
print(total, event.query());

function refused(): void {
    // @ts-expect-error a text is no tensor
    x.add('1');
    // @ts-expect-error there is no such option
    x.sum({dims: 1});
    // @ts-expect-error there is no such reduction
    F.mse_loss(x, x, {reduction: 'most'});
    // @ts-expect-error kernel_size is missing
    nn.Conv2d(1, 4);
    // @ts-expect-error there is no such option
    nn.Linear(1, 4, {biass: false});
    // @ts-expect-error there is no such method
    x.sumthing();
    // @ts-expect-error the shape cannot be assigned
    x.shape = [6];
    // @ts-expect-error one argument too many
    x.relu(1, 2);
    // @ts-expect-error a device is wanted
    new GTorch.Device(true);
}

print(typeof refused);
