// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Groups of processes in JavaScript: this process is the only one of its group.

import Gio from 'gi://Gio';
import GLib from 'gi://GLib';
import GObject from 'gi://GObject';
import GTorch from 'gi://GTorch?version=1';

import * as tap from './tap.js';

let store = null, group = null;

function findGroup() {
    if (group)
        return group;
    try {
        GTorch.ProcessGroup.is_available('mpi');
    } catch {
        tap.skip('MPI is not installed');
    }
    store = new GTorch.HashStore();
    group = GTorch.ProcessGroup.new('mpi', store, -1, -1, 60, null);
    return group;
}

tap.add('several_tensors_go_together', () => {
    const a = GTorch.tensor([1, 2]), b = GTorch.tensor([3]);
    const work = findGroup().all_reduce_coalesced([a, b], GTorch.ReduceOp.SUM);
    tap.assert(work.wait(-1, null));
    tap.equal([a.toArray(), b.toArray()], [[1, 2], [3]]);
    tap.equal(work.source_rank, -1);
    tap.assert(group.broadcast_coalesced([a, b], 0).wait(-1, null));
    tap.equal([a.toArray(), b.toArray()], [[1, 2], [3]]);
    tap.throws(() => group.all_reduce_coalesced([], GTorch.ReduceOp.SUM),
        error => error.matches(GTorch.Error, GTorch.Error.INVALID) && error.message.includes('one or more'));
});

tap.add('numbers_are_multiplied_before', () => {
    const x = GTorch.tensor([1.5, 2.5]), part = GTorch.zeros([2]);
    tap.assert(findGroup().all_reduce_premul(x, 0.5).wait(-1, null));
    tap.assert(group.reduce_scatter_tensor_premul(part, x, 4).wait(-1, null));
    tap.equal([x.toArray(), part.toArray()], [[0.75, 1.25], [3, 5]]);
    tap.throws(() => group.all_reduce_premul(GTorch.tensor([1]), 2),
        error => error.message.includes('floating-point'));
});

tap.add('parameters_are_parts', () => {
    const layer = new GTorch.Linear({in_features: 3, out_features: 2});
    for (const made of [new GTorch.DistributedModule(GTorch.nn.Linear(2, 1), findGroup()),
        new GTorch.DistributedModule(GTorch.nn.Linear(2, 1), findGroup(), 12,
            {find_unused_parameters: true})])
        tap.equal(made.forward(GTorch.ones([1, 2])).shape, [1, 1]);
    const shards = GTorch.ModuleShards.new(layer, findGroup(), true, GTorch.DType.NONE, GTorch.DType.NONE,
        GTorch.DType.NONE);
    tap.assert(shards.reshard_after_forward && shards.requires_gradient_sync && shards.cast_forward_inputs);
    tap.assert(shards.offload(false) && shards.is_offloaded);
    tap.assert(shards.set_forward_prefetch([]) && shards.set_backward_prefetch([]));
    shards.requires_gradient_sync = false;
    layer.forward(GTorch.ones([1, 3])).sum().backward();
    tap.assert(layer.weight.grad === null);
    shards.requires_gradient_sync = true;
    layer.forward(GTorch.ones([1, 3])).sum().backward();
    tap.equal(layer.weight.grad.toArray(), [[2, 2, 2], [2, 2, 2]]);
    tap.assert(shards.unshard(true) && shards.reshard());
    tap.throws(() => shards.set_forward_prefetch([shards]), error => error.message.includes('not another'));
    tap.throws(() => shards.adopt(GTorch.ones([1]), layer.weight),
        error => error.message.includes('another one'));
    tap.equal(GTorch.ModuleShards.find(layer.weight), shards);
});

const Pair = GObject.registerClass(class Pair extends GTorch.Module {
    _init(kind) {
        super._init();
        this.first = new GTorch.Linear({in_features: 3, out_features: 5});
        this.second = new GTorch.Linear({in_features: 5, out_features: 2});
        this.kind = kind; // of checkpoints; null for none
    }

    forward(x) {
        const call = value => this.first.forward(value).tanh();
        return this.second.forward(this.kind === null ? call(x)
            : this.kind === 'module' ? this.first.checkpoint([x], false).tanh()
                : GTorch.checkpoint(call, x, {use_reentrant: this.kind === 'reentrant'}));
    }
});

tap.add('checkpoints_are_within_calls_of_sharded_modules', () => {
    const train = kind => {
        GTorch.manual_seed(3);
        const net = new Pair(kind);
        const shards = GTorch.ModuleShards.new(net, findGroup(), true, GTorch.DType.NONE, GTorch.DType.NONE,
            GTorch.DType.NONE);
        const x = GTorch.tensor([[1, 2, 3], [-1, 0, 1]], {dtype: GTorch.float32, requires_grad: true});
        net.forward_many([x]).square().sum().backward();
        const names = ['first.weight', 'first.bias', 'second.weight', 'second.bias'];
        for (const name of names)
            tap.assert(GTorch.ModuleShards.find(net.get_parameter(name)) === shards);
        tap.throws(() => net.first.forward(x), error => error.message.includes('outside of a call'));
        return [x.grad.toArray(), ...names.map(name => net.get_parameter(name).grad.toArray())];
    };
    const wanted = train(null);
    for (const kind of ['module', 'recorded', 'reentrant'])
        tap.equal(train(kind), wanted);
});

tap.add('values_are_exchanged', () => {
    findGroup();
    const value = new GLib.Variant('a{sv}', {seed: new GLib.Variant('x', 42)});
    tap.equal(group.broadcast_variant(value, 0).recursiveUnpack(), {seed: 42});
    tap.equal(group.all_gather_variant(new GLib.Variant('s', 'here')).recursiveUnpack(), ['here']);
    tap.equal(group.scatter_variant(new GLib.Variant('av', [new GLib.Variant('i', 3)]), 0).unpack(), 3);
    tap.throws(() => group.broadcast_variant(null, 0),
        error => error.matches(GTorch.Error, GTorch.Error.INVALID));
    tap.throws(() => group.gather_variant(value, 1),
        error => error.matches(GTorch.Error, GTorch.Error.INDEX));
});

tap.add('a_main_loop_waits_for_groups', async () => {
    findGroup();
    const value = new GLib.Variant('s', 'here');
    const [all, one, part] = await Promise.all([
        group.all_gather_variant_async(value), group.broadcast_variant_async(value, 0),
        group.new_part_async([0]),
    ]);
    tap.equal([all.recursiveUnpack(), one.unpack(), part.rank], [['here'], 'here', 0]);
    tap.assert(await group.monitored_barrier_async());
    let error = null;
    await group.gather_variant_async(value, 1).catch(thrown => (error = thrown));
    tap.assert(error.matches(GTorch.Error, GTorch.Error.INDEX), `${error}`);
    const waiting = group.broadcast_variant_async(value, 0);
    tap.throws(() => group.barrier(), thrown => /has not ended/.test(thrown.message));
    await waiting;
});

tap.add('a_main_loop_waits_for_stores', async () => {
    const own = new GTorch.HashStore(), bytes = text => new GLib.Bytes(new TextEncoder().encode(text));
    await own.append_async('k', bytes('a'));
    await own.append_async('k', bytes('b'));
    const set = await own.compare_set_async('k', bytes('ab'), bytes('c'));
    tap.equal(new TextDecoder().decode(set.toArray()), 'c');
    tap.equal([await own.check_async(['k']), await own.check_async(['k', 'n'])], [true, false]);
    tap.equal(await own.count_keys_async(), 1);
    tap.equal([await own.delete_key_async('k'), await own.delete_key_async('k')], [true, false]);
    const cancellable = new Gio.Cancellable();
    cancellable.cancel();
    let error = null;
    await own.count_keys_async(cancellable).catch(thrown => (error = thrown));
    tap.assert(error.matches(Gio.IOErrorEnum, Gio.IOErrorEnum.CANCELLED), `${error}`);
});

tap.add('barriers_are_by_the_store', () => {
    findGroup();
    tap.assert(group.monitored_barrier(10, null));
    const cancellable = new Gio.Cancellable();
    cancellable.cancel();
    tap.throws(() => group.monitored_barrier(10, cancellable),
        error => error.matches(Gio.IOErrorEnum, Gio.IOErrorEnum.CANCELLED));
});

tap.add('levels_of_debugging_are_set', () => {
    const former = GTorch.distributed_get_debug_level();
    GTorch.distributed_set_debug_level(GTorch.DebugLevel.DETAIL);
    tap.equal(GTorch.distributed_get_debug_level(), GTorch.DebugLevel.DETAIL);
    GTorch.distributed_set_debug_level(former);
});

tap.add('layers_name_their_processes', () => {
    const norm = GTorch.nn.SyncBatchNorm(2, {process_group: findGroup()});
    tap.equal(norm.get_process_group(), group);
    const x = GTorch.tensor([[1, 2], [3, 6]], {dtype: GTorch.float32});
    tap.assert(Math.abs(norm.forward(x).sum().item()) < 1e-6);
    tap.assert(norm.set_process_group(null));
    tap.equal(norm.get_process_group(), null);
    tap.throws(() => GTorch.nn.SyncBatchNorm(2, {process_group: 1}), () => true);
});

await tap.run();
