// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Repeated calls do not leak memory.

import GLib from 'gi://GLib';
import GObject from 'gi://GObject';
import GTorch from 'gi://GTorch?version=1';
import Gio from 'gi://Gio';
import System from 'system';
import * as tap from './tap.js';

const {nn} = GTorch;
const PAGE = 4096;
// In bytes per call. One tensor with its wrapper takes more than a kilobyte, an entry of a table
// 170 bytes.
const LIMIT = 60;
const CALLS = 6000;

function residentBytes() {
    const [, content] = GLib.file_get_contents('/proc/self/statm');
    return Number(new TextDecoder().decode(content).split(' ')[1]) * PAGE;
}

// Returns the minimum over several rounds: memory may grow in some rounds for other reasons, but
// not in each.
function growth(func) {
    let least = Infinity;
    for (let round = 0; round < 4; round++) {
        const before = residentBytes();
        for (let i = 0; i < CALLS; i++) {
            func();
            if (i % 500 === 499)
                System.gc();
        }
        System.gc();
        least = Math.min(least, (residentBytes() - before) / CALLS);
    }
    return least;
}

function add(name, func) {
    tap.add(name, () => {
        if (!GLib.file_test('/proc/self/statm', GLib.FileTest.EXISTS))
            return tap.skip('there is no /proc/self/statm');
        const bytes = growth(func);
        return tap.assert(bytes < LIMIT, `${bytes} bytes are lost in each call`);
    });
}

const says = part => error => error instanceof TypeError && error.message.includes(part);

const net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2));
const state = net.state_dict();
const adam = GTorch.optim.Adam(net.parameters());
net.forward(GTorch.ones([1, 2])).sum().backward();
adam.step();
const remembered = adam.state_dict();

function saved() {
    const stream = Gio.MemoryOutputStream.new_resizable();
    GTorch.safetensors_save(state, {from: 'a test'}, stream, null, null);
    stream.close(null);
    return stream.steal_as_bytes();
}

const bytes = saved();

add('a_state_dict_leaves_nothing', () => net.state_dict());
add('loading_a_state_dict_leaves_nothing', () => net.load_state_dict(state));
add('the_state_of_an_optimizer_leaves_nothing', () => adam.state_dict());
add('loading_the_state_of_an_optimizer_leaves_nothing', () => adam.load_state_dict(remembered));
add('safetensors_in_memory_leave_nothing', () => GTorch.safetensors_load_bytes(bytes));
add('safetensors_in_a_stream_leave_nothing', () =>
    GTorch.safetensors_load(Gio.MemoryInputStream.new_from_bytes(bytes), null, null, null));

tap.add('loads_return_the_saved_values', () => {
    const stream = Gio.MemoryInputStream.new_from_bytes(bytes);
    for (const [tensors, texts] of [
        GTorch.safetensors_load_bytes(bytes), GTorch.safetensors_load(stream, null, null, null),
    ]) {
        tap.equal(Object.keys(tensors).sort(), Object.keys(state).sort());
        for (const name in state)
            tap.equal(tensors[name].toArray(), state[name].toArray());
        tap.equal(texts, {from: 'a test'});
    }
});

tap.add('a_file_is_read_at_once_and_in_a_thread', async () => {
    const [file, output] = Gio.File.new_tmp('gtorch-XXXXXX');
    output.get_output_stream().write_bytes(bytes, null);
    output.close(null);
    try {
        const [now] = GTorch.safetensors_load_file(file, false, null, null, null);
        const awaited = await GTorch.safetensors_load_file_async(file, false, null, 0, null, null);
        tap.equal(Object.keys(awaited[0]), Object.keys(now));
        let isHeard = false;
        const [later, texts] = await new Promise((resolve, reject) => {
            const progress = () => (isHeard = true);
            GTorch.safetensors_load_file_async(file, false, null, 0, null, progress, (_source, result) => {
                try {
                    resolve(GTorch.safetensors_load_file_finish(result));
                } catch (error) {
                    reject(error);
                }
            });
        });
        tap.equal(Object.keys(later), Object.keys(now));
        tap.equal(later['0.bias'].toArray(), state['0.bias'].toArray());
        tap.equal(texts, {from: 'a test'});
        tap.assert(isHeard);
        await GTorch.safetensors_save_file_async(state, null, file, 0, null, null);
        const [again] = GTorch.safetensors_load_file(file, false, null, null, null);
        tap.equal(Object.keys(again), Object.keys(now));
    } finally {
        file.delete(null);
    }
});

tap.add('tables_hold_tensors', () => {
    tap.throws(() => net.load_state_dict({'0.bias': 3}), says('load_state_dict: 0.bias must be a tensor'));
    tap.throws(() => adam.load_state_dict({x: null}), says('x must be a tensor'));
    tap.throws(() => GTorch.safetensors_load_bytes(new GLib.Bytes([1, 2])), error =>
        error.matches(GTorch.Error, GTorch.Error.FORMAT));
});

// --- reference cycles through C
// -------------------------------------------------------------------

const CYCLES = 40;
const ELEMENTS = 65536;

const Noting = GObject.registerClass(class Noting extends GTorch.Module {
    constructor() {
        super();
        this.held = nn.Parameter(GTorch.ones([ELEMENTS]));
    }

    forward(x) {
        return x.add(0);
    }

    note() {
        this.seen = true;
    }
});

function allocated() {
    return GTorch.Device.cpu().get_allocator().get_allocated();
}

// gjs releases objects of C when the main loop is idle.
async function collect() {
    for (let i = 0; i < 3; i++) {
        System.gc();
        await new Promise(resolve => GLib.idle_add(GLib.PRIORITY_LOW, () => {
            resolve();
            return GLib.SOURCE_REMOVE;
        }));
    }
}

function addCycle(name, make) {
    tap.add(name, async () => {
        await collect();
        const before = allocated();
        for (let i = 0; i < CYCLES; i++)
            make();
        await collect();
        const left = (allocated() - before) / (4 * ELEMENTS);
        // A few are on a stack or in compiled code until others take their places, however many there were.
        tap.assert(left < CYCLES / 8, `${left} of ${CYCLES} modules are left`);
    });
}

addCycle('a_hook_that_leads_to_its_module_is_collected', () => {
    const module = new Noting();
    module.register_forward_hook(module.note.bind(module));
    module.register_forward_pre_hook(() => module.note());
    module.call(GTorch.ones([2]));
    tap.assert(module.seen);
});
addCycle('a_handler_that_leads_to_its_module_is_collected', () => {
    const module = new Noting();
    module.connect('notify', () => module.note());
});
addCycle('a_function_that_is_applied_is_let_go', () => {
    const module = new Noting();
    module.apply(() => module.note());
});
addCycle('tables_that_are_saved_are_let_go', () => {
    const stream = Gio.MemoryOutputStream.new_resizable();
    GTorch.safetensors_save({a: GTorch.ones([ELEMENTS])}, {k: 'v'}, stream, null, null);
});

tap.add('a_hook_stays_and_is_removed', () => {
    const module = nn.Linear(2, 2);
    let n = 0;
    const id = module.register_forward_hook(() => {
        n++;
        return null;
    });
    System.gc();
    module.forward(GTorch.ones([1, 2]));
    tap.assert(n === 1 && module.remove_hook(id) && !module.remove_hook(id));
    module.forward(GTorch.ones([1, 2]));
    tap.assert(n === 1);
    tap.throws(() => module.register_forward_hook(3), says('a function is wanted'));
});

tap.add('a_scope_keeps_what_has_a_symbol_as_key', () => {
    const key = Symbol('of the program');
    const kept = GTorch.tidy(() => ({[key]: GTorch.full([1], 5), inner: {[key]: [GTorch.full([1], 6)]}}));
    tap.equal([kept[key].item(), kept.inner[key][0].item()], [5, 6]);
});

tap.add('a_scope_in_forward_keeps_what_is_saved', () => {
    const Exp = GObject.registerClass({GTypeName: 'TestMemoryExp'}, class extends GTorch.Function {
        forward(context, x) {
            return GTorch.tidy(() => {
                const doubled = x.mul(2);
                context.save_for_backward([doubled]);
                return doubled.exp();
            });
        }

        backward(context, grad) {
            const [doubled] = context.saved_tensors;
            return grad.mul(doubled.exp()).mul(2);
        }
    });
    const x = GTorch.zeros([2]).requires_grad_();
    new Exp().call(x).sum().backward();
    tap.equal(x.grad.toArray(), [2, 2]);
});

await tap.run();
