// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// The trainer, metrics and logs from JavaScript.

import Gio from 'gi://Gio';
import GLib from 'gi://GLib';
import GObject from 'gi://GObject';
import GTorch from 'gi://GTorch?version=1';

import * as tap from './tap.js';

const {nn} = GTorch;

function loader(shuffle = false) {
    const generator = GTorch.Generator.new_with_seed(1);
    const x = GTorch.randn([64, 5], {generator});
    const y = x.narrow(1, 0, 2).argmax(1);
    return GTorch.DataLoader.new(GTorch.TensorDataset.new([x, y]), 16, shuffle);
}

function make(Class = GTorch.Trainer, settings = {}) {
    GTorch.manual_seed(2);
    const module = new nn.Sequential(new nn.Linear(5, 16), new nn.ReLU(), new nn.Linear(16, 2));
    const optimizer = new GTorch.optim.Adam(module.parameters(), {lr: 0.02});
    return new Class({
        module, optimizer, loader: loader(), loss_module: new nn.CrossEntropyLoss(), ...settings,
    });
}

function weights(trainer) {
    return JSON.stringify(trainer.module.parameters().map(one => one.tolist()));
}

async function failure(promise) {
    try {
        await promise;
    } catch (error) {
        return error;
    }
    return null;
}

tap.add('a_classifier_learns', async () => {
    const trainer = make(GTorch.Trainer, {n_epochs: 20, validation_loader: loader(), threaded: true});
    const losses = [];
    const epochs = [];
    trainer.add_metric('accuracy', GTorch.Accuracy.new(1));
    trainer.connect('step-done', (_trainer, _step, loss) => losses.push(loss));
    trainer.connect('epoch-done', (_trainer, epoch) => epochs.push(epoch));
    await trainer.run_async();
    tap.equal(losses.length, 80);
    tap.assert(losses.at(-1) < losses[0] / 2, `${losses}`);
    tap.equal(epochs.length, 20);
    tap.assert(trainer.results.accuracy > 0.9, JSON.stringify(trainer.results));
    tap.equal(trainer.threaded, true);
    tap.equal(trainer.progress, 1);
});

tap.add('steps_are_made_in_this_thread_unless_the_program_says_otherwise', async () => {
    const trainer = make();
    tap.equal(trainer.threaded, false);
    const {module, optimizer, loss_module: loss} = trainer;
    tap.equal(GTorch.Trainer.new(module, loader(), loss, optimizer).threaded, false);
    tap.equal(make(GTorch.Trainer, {threaded: true}).threaded, true);
    let n = 0;
    module.register_forward_hook(() => {
        n++;
    });
    await trainer.run_async();
    tap.equal(n, 4);
});

tap.add('a_thread_is_refused_if_functions_of_the_program_are_known', async () => {
    const settings = {threaded: true};
    const refused = (trainer, what) => tap.throws(() => trainer.run_async(), error =>
        error.message.startsWith(`run_async: threaded is true, and ${what} has functions`));
    const hooked = make(GTorch.Trainer, settings);
    const id = hooked.module.get_modules().get_item(1).register_forward_hook(() => {});
    refused(hooked, 'the module');
    hooked.module.get_modules().get_item(1).remove_hook(id);
    await hooked.run_async();
    refused(make(Regression, settings), 'its class');
    const scheduled = make(GTorch.Trainer, settings);
    scheduled.add_scheduler(new GTorch.optim.lr_scheduler.LambdaLR(scheduled.optimizer, () => 1),
        GTorch.TrainerInterval.STEP);
    refused(scheduled, 'a function, metric, log or schedule');
    const collated = make(GTorch.Trainer, settings);
    collated.loader.set_collate(samples => GTorch.Sample.collate(samples).unpack());
    refused(collated, 'the loader');
});

tap.add('a_run_in_this_thread_gives_the_same', async () => {
    const one = make(GTorch.Trainer, {n_epochs: 3});
    const other = make(GTorch.Trainer, {n_epochs: 3});
    one.run();
    await other.run_async();
    tap.equal(weights(one), weights(other));
});

const Regression = GObject.registerClass(class Regression extends GTorch.Trainer {
    training_step([x]) {
        return this.module.forward(x).sub(x.narrow(1, 0, 2)).square().mean();
    }
});

tap.add('a_class_overrides_the_step', async () => {
    const trainer = make(Regression, {n_epochs: 30});
    const losses = [];
    trainer.connect('step-done', (_trainer, _step, loss) => losses.push(loss));
    await trainer.run_async();
    tap.equal(trainer.threaded, false);
    tap.assert(losses.at(-1) < losses[0] / 2, `${losses}`);
});

tap.add('a_function_computes_the_loss', async () => {
    const trainer = make(GTorch.Trainer, {n_epochs: 2});
    let count = 0;
    trainer.set_training_step((self, [x, y]) => {
        count++;
        return nn.functional.cross_entropy(self.module.forward(x), y);
    });
    await trainer.run_async();
    tap.equal(count, 8);
});

tap.add('functions_are_fixed_during_a_run', async () => {
    const trainer = make(GTorch.Trainer, {n_epochs: 1});
    const failures = [];
    const attempt = () => {
        for (const name of ['set_training_step', 'set_validation_step', 'set_save_function',
            'set_load_function']) {
            for (const func of [null, () => null]) {
                try {
                    trainer[name](func);
                } catch (error) {
                    const isInvalid = error.matches(GTorch.Error, GTorch.Error.INVALID);
                    failures.push(`${name} ${isInvalid} ${error.message}`);
                }
            }
        }
    };
    let count = 0;
    trainer.set_training_step((self, [x, y]) => {
        if (count++ === 0)
            attempt();
        return nn.functional.cross_entropy(self.module.forward(x), y);
    });
    await trainer.run_async();
    tap.equal(count, 4);
    tap.equal(failures.length, 8);
    tap.equal(failures[0], 'set_training_step true trainer_set_training_step: a run of this trainer goes on');
    trainer.set_training_step(null);
});

tap.add('states_of_the_program_are_bytes_or_texts', () => {
    const file = Gio.File.new_for_path(GLib.Dir.make_tmp('gtorch-state-XXXXXX')).get_child('x');
    const trainer = make(GTorch.Trainer, {n_epochs: 1});
    const found = [];
    trainer.set_load_function((self, bytes) => {
        found.push(new TextDecoder().decode(bytes.toArray()));
    });
    const encode = text => new TextEncoder().encode(text);
    for (const value of ['Übung', encode('two'), new GLib.Bytes(encode('3'))]) {
        trainer.set_save_function(() => value);
        trainer.save_checkpoint(file, null);
        trainer.load_checkpoint(file, null);
    }
    tap.equal(found, ['Übung', 'two', '3']);
    for (const value of [{a: 1}, null, undefined, 5, [1]]) {
        trainer.set_save_function(() => value);
        tap.throws(() => trainer.save_checkpoint(file, null), error => error.message.includes(
            'what its function returns must be a GLib.Bytes, a Uint8Array or a text, not '));
    }
    file.delete(null);
});

class Boom extends Error {}

tap.add('exceptions_end_the_run', async () => {
    const fail = () => {
        throw new Boom('the function does not want to');
    };
    const trainer = make();
    trainer.set_training_step(fail);
    let thrown = null;
    try {
        trainer.run();
    } catch (error) {
        thrown = error;
    }
    tap.assert(thrown instanceof Boom, `${thrown}`);
    const told = [];
    trainer.connect('failed', (_trainer, error) => told.push(error.message));
    const error = await failure(trainer.run_async());
    tap.assert(/does not want to/.test(error.message), error.message);
    tap.equal(told.length, 1);
    trainer.set_training_step(() => 5);
    tap.throws(() => trainer.run(), one => /must return the loss, a tensor/.test(one.message));
});

tap.add('runs_are_cancelled', async () => {
    for (let i = 0; i < 30; i++) {
        const trainer = make(i % 2 ? Regression : GTorch.Trainer, {n_epochs: 10000});
        const cancellable = new Gio.Cancellable();
        GLib.timeout_add(GLib.PRIORITY_DEFAULT, i % 7, () => {
            cancellable.cancel();
            return GLib.SOURCE_REMOVE;
        });
        const error = await failure(trainer.run_async(cancellable));
        tap.assert(error.matches(Gio.IOErrorEnum, Gio.IOErrorEnum.CANCELLED), `${error}`);
    }
});

const Largest = GObject.registerClass(class Largest extends GTorch.Metric {
    _init() {
        super._init();
        this.add_state('largest', GTorch.tensor(-1000));
    }

    update(output, _target) {
        this.set_state('largest', GTorch.maximum(this.get_state('largest'), output.max()));
        return true;
    }

    compute() {
        return this.get_state('largest');
    }
});

tap.add('a_class_is_a_metric', async () => {
    const metric = new Largest();
    metric.update(GTorch.tensor([1, 5]), null);
    metric.update(GTorch.tensor([3]), null);
    tap.equal(metric.compute_value(), 5);
    metric.reset();
    tap.equal(metric.compute_value(), -1000);
    const trainer = make(GTorch.Trainer, {n_epochs: 1, validation_loader: loader()});
    trainer.add_metric('largest', metric);
    await trainer.run_async();
    tap.equal(trainer.threaded, false);
    tap.assert(trainer.results.largest > -1000, JSON.stringify(trainer.results));
});

tap.add('a_resumed_run_gives_the_same', async () => {
    const folder = Gio.File.new_for_path(GLib.Dir.make_tmp('gtorch-train-XXXXXX'));
    const settings = {n_epochs: 4, checkpoint_folder: folder};
    const whole = make(GTorch.Trainer, settings);
    whole.run();
    const rest = make(GTorch.Trainer, {n_epochs: 4});
    rest.load_checkpoint(folder.get_child('step-0000000008.safetensors').get_path());
    tap.equal(rest.step, 8);
    await rest.run_async();
    tap.equal(weights(rest), weights(whole));
    const last = make(GTorch.Trainer, settings);
    tap.equal(last.resume(), true);
    tap.equal(last.step, 16);
    for (const step of [4, 8, 12, 16])
        folder.get_child(`step-${String(step).padStart(10, '0')}.safetensors`).delete(null);
    folder.delete(null);
});

tap.add('handlers_end_the_run_with_their_step', async () => {
    for (const threaded of [false, true]) {
        const trainer = make(GTorch.Trainer, {n_epochs: 1000, threaded});
        trainer.connect('step-done', (self, step) => step === 5 && self.stop());
        await trainer.run_async();
        tap.equal(trainer.step, 5);
        const other = make(GTorch.Trainer, {n_epochs: 1000, threaded});
        const cancellable = new Gio.Cancellable();
        other.connect('step-done', (_self, step) => step === 5 && cancellable.cancel());
        const error = await failure(other.run_async(cancellable));
        tap.assert(error.matches(Gio.IOErrorEnum, Gio.IOErrorEnum.CANCELLED), `${error}`);
        tap.equal(other.step, 5);
    }
});

tap.add('exceptions_of_handlers_end_the_run_and_arrive', async () => {
    const thrown = new RangeError('that is enough');
    for (const [signal, at] of [['step-done', 3], ['epoch-done', 1], ['epoch-done', 3]]) {
        const handler = (_self, number) => {
            if (number === at)
                throw thrown;
        };
        const trainer = make(GTorch.Trainer, {n_epochs: 3});
        const id = trainer.connect(signal, handler);
        tap.throws(() => trainer.run(), error => error === thrown);
        tap.assert(!trainer.is_running());
        trainer.disconnect(id);
        trainer.run();
        tap.equal(trainer.epoch, 3);
        for (const threaded of [false, true]) {
            const other = make(GTorch.Trainer, {n_epochs: 3, threaded});
            const failed = [];
            other.connect_after(signal, handler);
            other.connect('failed', (_self, error) => {
                tap.assert(error.matches(GTorch.Error, GTorch.Error.FAILED), `${error}`);
                failed.push(error.message);
            });
            tap.assert(await failure(other.run_async()) === thrown);
            tap.equal(failed, [`a handler of ${signal}: RangeError: that is enough`]);
        }
    }
    const trainer = make(GTorch.Trainer, {n_epochs: 3});
    const given = new GLib.Error(Gio.io_error_quark(), Gio.IOErrorEnum.NO_SPACE, 'the disk is full');
    trainer.connect('step-done', self => tap.equal(self.fail(given), true));
    tap.throws(() => trainer.run(), error => error.matches(Gio.IOErrorEnum, Gio.IOErrorEnum.NO_SPACE));
    tap.equal(trainer.step, 1);
});

tap.add('settings_without_what_they_need_are_refused', () => {
    tap.throws(() => make(GTorch.Trainer, {checkpoint_every: 2}).check(),
        error => /checkpoint_every .* checkpoint_folder/.test(error.message));
    tap.throws(() => make(GTorch.Trainer, {evaluate_every: 2}).check(),
        error => /evaluate_every .* validation_loader/.test(error.message));
});

tap.add('checkpoints_do_not_block', async () => {
    const folder = Gio.File.new_for_path(GLib.Dir.make_tmp('gtorch-train-XXXXXX'));
    const file = folder.get_child('mine.safetensors');
    const [one, other] = [make(GTorch.Trainer, {n_epochs: 2}), make()];
    const numbers = [];
    one.set_save_function(() => new GLib.Bytes(new Uint8Array([1, 2])));
    one.set_load_function((_trainer, state) => numbers.push(...state.toArray()));
    one.run();
    const saving = one.save_checkpoint_async(file);
    tap.throws(() => one.run(), error => /save_checkpoint_async \(\) of this trainer/.test(error.message));
    await saving;
    await one.load_checkpoint_async(file);
    tap.equal(numbers, [1, 2]);
    await other.load_checkpoint_async(file);
    tap.equal(weights(one), weights(other));
    const cancellable = new Gio.Cancellable();
    const loading = other.load_checkpoint_async(file, {cancellable});
    cancellable.cancel();
    const error = await failure(loading);
    tap.assert(error.matches(Gio.IOErrorEnum, Gio.IOErrorEnum.CANCELLED), `${error}`);
    const third = make(GTorch.Trainer, {checkpoint_folder: folder});
    tap.equal(await third.resume_async(), false);
    tap.assert(/no checkpoint_folder/.test((await failure(make().resume_async())).message));
    one.set_save_function(() => {
        throw new Boom('the function does not want to');
    });
    tap.throws(() => one.save_checkpoint(file), thrown => thrown instanceof Boom);
    file.delete(null);
    folder.delete(null);
});

tap.add('the_main_loop_goes_on', async () => {
    for (const Class of [GTorch.Trainer, Regression]) {
        const trainer = make(Class, {n_epochs: 60});
        let last = GLib.get_monotonic_time();
        let longest = 0;
        const source = GLib.timeout_add(GLib.PRIORITY_DEFAULT, 1, () => {
            const now = GLib.get_monotonic_time();
            longest = Math.max(longest, now - last);
            last = now;
            return GLib.SOURCE_CONTINUE;
        });
        await trainer.run_async();
        GLib.source_remove(source);
        print(`# the longest gap was ${longest / 1000} ms`);
    }
});

await tap.run();
