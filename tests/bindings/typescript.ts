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

// --- data, texts, images, stores, trainers: samples are values, and what has a default may be left out ---

class Squares extends GTorch.Dataset {
    get_length() {
        return 5;
    }

    get_item(i: number) {
        return {number: i, square: GTorch.tensor([i * i])};
    }
}

class Counting extends GTorch.IterableDataset {
    * iterate() {
        yield 1;
        yield 2;
    }
}

class Autoencoder extends GTorch.Trainer {
    training_step([input]: GTorch.Tensor[]) {
        return this.module!.forward(input).sub(input).square().mean();
    }
}

const {registerClass} = imports.gi.GObject;
const RegisteredSquares: typeof Squares = registerClass({GTypeName: 'TypeScriptSquares'}, Squares);
const RegisteredCounting: typeof Counting = registerClass({GTypeName: 'TypeScriptCounting'}, Counting);
const RegisteredTrainer: typeof Autoencoder = registerClass({GTypeName: 'TypeScriptTrainer'}, Autoencoder);
const dataset = new GTorch.TensorDataset([GTorch.rand([8, 2])]);
const loader = GTorch.DataLoader.new(dataset);
const squares = new GTorch.DataLoader(new RegisteredSquares(), 2, {drop_last: true, device: 'cpu'});
let n = 0;
for (const {square} of squares)
    n += square.numel;
for await (const [batch] of loader)
    n += batch.shape[0];
const iter = loader.iterate();
n += iter.next()[0].shape[0] + (await iter.next_async())[0].shape[0];
print(n, [...new GTorch.DataLoader({dataset: new RegisteredCounting()})].length, [...new RegisteredSquares()].length);
loader.set_collate((samples: any[]) => samples[0]);
loader.set_collate(null);
const model = new nn.Linear(2, 2);
const sgd = new optim.SGD(model.parameters(), {lr: 0.1});
const trainer = new RegisteredTrainer({module: model, loader, optimizer: sgd, n_epochs: 2, monitor_mode: 'max'});
trainer.add_scheduler(optim.lr_scheduler.StepLR(sgd, {step_size: 1}));
trainer.monitor_mode = 'min';
await trainer.run_async();
const resumes: () => boolean = () => trainer.resume();
print(trainer.step, typeof resumes, GTorch.random_split(dataset, [0.5, 0.5]).length);
const tokenizer = GTorch.Tokenizer.train_bpe(['low lower'], 262);
tokenizer.enable_padding({pad_id: 1});
const ids: number[] = tokenizer.encode('low');
const words: string = tokenizer.decode(ids);
const [batchOfIds, mask] = tokenizer.encode_batch(['a', 'b']);
print(words, batchOfIds.shape, mask.numel);
const store = GTorch.HashStore.new();
store.set('a', 'text');
const sum: number = store.add('n', 1) + await store.add_async('n', 1);
print(sum, store.check(['a']), x.max(1).values.shape, x.max(1, true)[1].numel, x.put_at(0, [1], 5).ndim);
print(x.clip({min: 0}).shape, GTorch.clip(x, 0, 1).shape, GTorch.broadcast_shapes([2, 1], [3]));

function typesOnly(): void {
    GTorch.image_load_file('a.png', {mode: 'rgb'}).shape;
    GTorch.image_load_file_async('a.png').then(image => image.shape);
    GTorch.npy_save_file(x, 'a.npy');
    GTorch.safetensors_load_file('a.safetensors')[0];
    GTorch.ProcessGroup.new_from_environment('mpi').all_reduce(x).wait();
    // @ts-expect-error there is no such property
    new GTorch.DataLoader({dataset, batchsize: 3});
    // @ts-expect-error a number is wanted
    new GTorch.DataLoader(dataset, 'two');
    // @ts-expect-error there is no such mode
    GTorch.image_load_file('a.png', {mode: 'sepia'});
    // @ts-expect-error the value is missing
    store.set('a');
    // @ts-expect-error there is no such mode
    trainer.monitor_mode = 'most';
}

print(typeof typesOnly);

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
