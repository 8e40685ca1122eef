// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Callbacks that the library keeps: gjs frees a callback together with the object whose method it
// was passed to. They must run even if no variable refers to that object any more, and be freed
// when nothing can call them.

import Gio from 'gi://Gio';
import GLib from 'gi://GLib';
import GObject from 'gi://GObject';
import GTorch from 'gi://GTorch?version=1';
import System from 'system';

import * as tap from './tap.js';
import * as typelib from './typelib.js';

const {nn} = GTorch;

// Collects garbage until the wrappers of dropped objects are gone, and overwrites their former
// places.
function collect() {
    for (let i = 0; i < 3; i++) {
        for (let k = 0; k < 50; k++)
            GTorch.ones([3]).requires_grad_();
        System.gc();
        // gjs lets go in the main loop of objects with properties of JavaScript's, which C dropped.
        while (GLib.MainContext.default().iteration(false))
            ;
    }
}

const BYTES = 4 * 65536;
const allocator = GTorch.Device.cpu().get_allocator();

// Returns data for a callback that is to be freed: much larger than anything else here.
function data() {
    return GTorch.zeros([65536], {device: 'cpu'});
}

function nAlive() {
    collect();
    return Math.round(allocator.allocated / BYTES);
}

// A few may survive on a stack or in compiled code until they are overwritten; a leak would keep
// all.
const N_HELD = 16;
const N_LEFT = N_HELD / 2;

function areFreed() {
    for (let i = 0; i < 10; i++) {
        if (nAlive() <= N_LEFT)
            return true;
    }
    return false;
}

function leaf() {
    return GTorch.tensor([1, 2, 3], {dtype: GTorch.float64, requires_grad: true});
}

// Each is given a callback, and returns a function that makes the library call it once. Nothing
// else may refer to the object whose method was given the callback.
const WAYS = {
    'Tensor.register_hook': {
        'of a leaf': func => {
            const x = leaf();
            x.register_hook(func);
            const loss = x.mul(3).sum();
            return () => loss.backward();
        },
        'of what was computed': func => {
            const x = leaf();
            const y = x.mul(3);
            y.register_hook(func);
            const loss = y.sum();
            return () => loss.backward();
        },
        'of a parameter in a module': func => {
            const net = nn.Sequential(nn.Linear(3, 1, {dtype: GTorch.float64}));
            net.parameters()[0].register_hook(func);
            return () => net.forward(GTorch.ones([1, 3], {dtype: GTorch.float64})).sum().backward();
        },
        'of a tensor that was released': func => {
            const x = leaf();
            const loss = x.mul(3).sum();
            x.register_hook(func);
            x.run_dispose();
            return () => loss.backward();
        },
        'as a function': func => {
            const x = leaf();
            GTorch.register_tensor_hook(x, func);
            const loss = x.mul(3).sum();
            return () => loss.backward();
        },
        'in a tidy function': func => {
            const loss = GTorch.tidy(() => {
                const x = leaf();
                x.register_hook(func);
                return x.mul(3).sum();
            });
            return () => loss.backward();
        },
    },
    'Tensor.register_post_accumulate_grad_hook': {
        'of a leaf': func => {
            const x = leaf();
            x.register_post_accumulate_grad_hook(func);
            const loss = x.mul(3).sum();
            return () => loss.backward();
        },
        'as a function': func => {
            const x = leaf();
            GTorch.register_tensor_post_accumulate_grad_hook(x, func);
            const loss = x.mul(3).sum();
            return () => loss.backward();
        },
        'of a parameter in a module': func => {
            const net = nn.Linear(3, 1, {dtype: GTorch.float64});
            net.weight.register_post_accumulate_grad_hook(func);
            return () => net.forward(GTorch.ones([1, 3], {dtype: GTorch.float64})).sum().backward();
        },
    },
};
const Double = GObject.registerClass(class Double extends GTorch.Module {
    forward(x) {
        return x.mul(2);
    }
});
const ones = () => GTorch.ones([2], {requires_grad: true});
const HOOKS = {
    register_forward_hook: (module, func) => module.register_forward_hook(func),
    register_forward_hook_full: (module, func) => module.register_forward_hook_full(false, false, func),
    register_forward_pre_hook: (module, func) => module.register_forward_pre_hook(func),
    register_forward_pre_hook_full: (module, func) => module.register_forward_pre_hook_full(false, func),
    register_full_backward_hook: (module, func) => module.register_full_backward_hook(func),
    register_full_backward_pre_hook: (module, func) => module.register_full_backward_pre_hook(func),
};
for (const [name, register] of Object.entries(HOOKS)) {
    WAYS[`Module.${name}`] = {
        'of a child': func => {
            const net = nn.Sequential(nn.Identity(), nn.Tanh());
            register(net.get_module('1'), func);
            return () => net.forward(ones()).sum().backward();
        },
        'of a child that JavaScript made': func => {
            const net = nn.Sequential(new Double());
            register(net.get_module('0'), func);
            return () => net.forward(ones()).sum().backward();
        },
        'of a grandchild': func => {
            const net = nn.Sequential(nn.Sequential(nn.Tanh()));
            register(net.get_module('0').get_module('0'), func);
            return () => net.forward(ones()).sum().backward();
        },
    };
}

// The first epoch is not one of the calls. What is returned refers to nothing but func.
function laterOn(func) {
    return epoch => {
        if (epoch > 0)
            func();
        return 1;
    };
}

const SCHEDULES = {
    'CyclicLR.set_scale_fn': ({CyclicLR}, optimizer, func) =>
        CyclicLR(optimizer, 0.1, 1, {scale_fn: func, scale_mode: 'iterations', cycle_momentum: false}),
    'LambdaLR.set_lr_lambda': ({LambdaLR}, optimizer, func) => LambdaLR(optimizer, func),
    'MultiplicativeLR.set_lr_lambda': ({MultiplicativeLR}, optimizer, func) =>
        MultiplicativeLR(optimizer, func),
};
for (const [name, make] of Object.entries(SCHEDULES)) {
    WAYS[name] = {
        'in a chain': func => {
            const schedules = GTorch.optim.lr_scheduler;
            const optimizer = GTorch.optim.SGD([nn.Parameter(GTorch.ones([1]))]);
            const chained = schedules.ChainedScheduler([make(schedules, optimizer, laterOn(func))]);
            return () => chained.step();
        },
    };
}

// What is returned refers to nothing but func.
function averaging(func) {
    return averaged => {
        func();
        return averaged;
    };
}

for (const key of ['avg_fn', 'multi_avg_fn']) {
    WAYS[`AveragedModel.set_${key}`] = {
        'in a module': func => {
            const layer = nn.Linear(1, 1, {bias: false});
            const net = nn.Sequential(GTorch.optim.swa_utils.AveragedModel(layer, {[key]: averaging(func)}));
            net.get_module('0').update_parameters(layer); // which copies the first values
            return () => net.get_module('0').update_parameters(layer);
        },
    };
}

// A list of C that has the object.
function listOf(object) {
    const list = Gio.ListStore.new(GObject.TYPE_OBJECT);
    list.append(object);
    return list;
}

WAYS['DistributedModule.register_comm_hook'] = {
    'in a list': func => { // a single process is a group
        const group = GTorch.ProcessGroup.new('mpi', null, -1, -1, 60, null);
        const net = GTorch.DistributedModule.new(nn.Linear(1, 1, {device: 'cpu'}), group, 25, false, false);
        net.register_comm_hook(exchanging(func));
        const list = listOf(net);
        return () => list.get_item(0).forward(GTorch.ones([1, 1], {device: 'cpu'})).sum().backward();
    },
};

function exchanging(func) {
    return bucket => {
        func();
        return bucket.get_buffer();
    };
}

// What these return refers to nothing but func.
function collating(func) {
    return samples => {
        func();
        return samples;
    };
}

const NOTHING = () => {};

function stepping(func) {
    return (self, [x]) => {
        func();
        return self.module.forward(x).sum();
    };
}

const rows = () => GTorch.TensorDataset.new([GTorch.ones([1, 1])]);
WAYS['DataLoader.set_collate'] = {
    'of a pass': func => {
        const loader = GTorch.DataLoader.new(rows(), 1, false);
        loader.set_collate(collating(func));
        const iter = loader.iterate();
        return () => iter.next(null);
    },
    'in a list': func => {
        const loader = GTorch.DataLoader.new(rows(), 1, false);
        loader.set_collate(collating(func));
        const list = listOf(loader);
        return () => list.get_item(0).iterate().next(null);
    },
};
WAYS['Fetcher.set_collate'] = {
    'of a loader': func => {
        const fetcher = new GTorch.Fetcher({dataset: rows()});
        fetcher.set_collate(collating(func));
        const list = listOf(new GTorch.DataLoader({dataset: rows(), fetcher}));
        return () => list.get_item(0).iterate().next(null);
    },
};
for (const name of ['register_hook', 'register_prehook']) {
    WAYS[`GradNode.${name}`] = {
        'of what was computed': func => {
            const y = leaf().mul(3);
            y.dup_grad_node()[name](func);
            const loss = y.sum();
            return () => loss.backward();
        },
    };
}
for (const name of ['set_training_step', 'set_validation_step']) {
    WAYS[`Trainer.${name}`] = {
        'in a list': func => {
            const module = nn.Linear(1, 1);
            const loader = GTorch.DataLoader.new(rows(), 1, false);
            const trainer = new GTorch.Trainer({
                module, loader, optimizer: GTorch.optim.SGD(module.parameters(), {lr: 0.1}),
                validation_loader: name === 'set_validation_step' ? loader : null,
            });
            trainer.set_training_step(stepping(NOTHING));
            trainer[name](stepping(func));
            const list = listOf(trainer);
            return () => list.get_item(0).run();
        },
    };
}

// What is returned refers to nothing but func.
function saving(func) {
    return () => {
        func();
        return new GLib.Bytes(new Uint8Array([1]));
    };
}

const checkpoint = Gio.File.new_for_path(GLib.Dir.make_tmp('gtorch-kept-XXXXXX')).get_child('x');
for (const name of ['set_save_function', 'set_load_function']) {
    WAYS[`Trainer.${name}`] = {
        'in a list': func => {
            const module = nn.Linear(1, 1);
            const trainer = new GTorch.Trainer({
                module, loader: GTorch.DataLoader.new(rows(), 1, false),
                optimizer: GTorch.optim.SGD(module.parameters(), {lr: 0.1}),
            });
            const isSave = name === 'set_save_function';
            trainer.set_save_function(saving(isSave ? func : NOTHING));
            if (!isSave)
                trainer.set_load_function(func);
            const list = listOf(trainer);
            return () => {
                list.get_item(0).save_checkpoint(checkpoint, null);
                if (!isSave)
                    list.get_item(0).load_checkpoint(checkpoint, null);
            };
        },
    };
}

// What is returned refers to nothing but func.
function scheduling(func) {
    return () => {
        func();
        return GTorch.ProfilerAction.NONE;
    };
}

WAYS['Profiler.set_schedule_func'] = {
    'in a list': func => {
        const profiler = new GTorch.Profiler();
        profiler.set_schedule_func(scheduling(func));
        const list = listOf(profiler);
        return () => list.get_item(0).start();
    },
};

tap.add('every_method_that_keeps_a_function_is_known', () => {
    const found = typelib.callables().filter(({owner, name, isMethod, args}) =>
        isMethod && args.some(arg => arg.scope === typelib.NOTIFIED) &&
        !(owner === 'DataLoader' && name === 'set_worker_init')); // which takes no function of JavaScript
    tap.equal(found.map(({owner, name}) => `${owner}.${name}`).sort(), Object.keys(WAYS).sort());
});

for (const [method, ways] of Object.entries(WAYS)) {
    for (const [how, way] of Object.entries(ways)) {
        const title = `${method}_${how}`.replace(/\W/g, '_');

        tap.add(`${title}_is_called_without_variables`, () => {
            const calls = [];
            const runs = Array.from({length: 10}, (_, i) => way(() => {
                calls.push(i);
            }));
            collect();
            for (const [i, run] of runs.entries()) {
                run();
                tap.equal(calls.splice(0), [i]);
                System.gc();
            }
        });

        tap.add(`${title}_raises_without_variables`, () => {
            const thrown = new Error('from the hook');
            const run = way(() => {
                throw thrown;
            });
            collect();
            tap.throws(run, error => error === thrown);
        });

        tap.add(`${title}_is_freed`, () => {
            const make = () => {
                const held = data();
                return way(() => void held.shape);
            };
            for (let round = 0; round < 2; round++) {
                const runs = Array.from({length: N_HELD}, make);
                tap.assert(nAlive() >= N_HELD);
                runs.forEach(run => run());
                runs.splice(0);
                tap.assert(areFreed());
            }
        });
    }
}

tap.add('values_are_right_without_variables', () => {
    const x = leaf();
    const seen = [];
    const losses = Array.from({length: 20}, (_, i) => {
        const y = x.mul(2);
        y.register_hook(grad => {
            seen.push(grad.toArray()[0]);
            return grad.mul(i);
        });
        return y.sum().mul(3);
    });
    collect();
    losses.forEach(loss => loss.backward());
    tap.equal(seen, Array(20).fill(3));
    const total = losses.reduce((sum, _loss, i) => sum + 6 * i, 0);
    tap.equal(x.grad.toArray(), [total, total, total]);
});

tap.add('removed_hooks_are_freed', () => {
    const layer = nn.Linear(2, 2);
    for (const object of [leaf(), leaf().mul(2), layer.weight, layer]) {
        const register = held =>
            object[object === layer ? 'register_forward_hook' : 'register_hook'](() => void held.shape);
        const ids = Array.from({length: N_HELD}, () => register(data()));
        tap.assert(nAlive() >= N_HELD);
        tap.assert(ids.every(id => object.remove_hook(id)));
        tap.assert(areFreed());
        tap.assert(!ids.some(id => object.remove_hook(id)));
    }
});

tap.add('refused_hooks_are_freed', () => {
    const refuse = (held, says, register) =>
        tap.throws(() => register(() => void held.shape), error => error.message.includes(says));
    for (let i = 0; i < N_HELD; i++) {
        refuse(data(), 'does not require grad', hook => GTorch.ones([1]).register_hook(hook));
        refuse(data(), 'not a leaf', hook => leaf().mul(2).register_post_accumulate_grad_hook(hook));
    }
    tap.assert(areFreed());
});

await tap.run();
