// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Devices, streams, events, copies and their errors from JavaScript, on the driver of tests/fake-cuda.

import GLib from 'gi://GLib';
import GTorch from 'gi://GTorch?version=1';
import Gio from 'gi://Gio';
import * as tap from './tap.js';

const gpu = index => GTorch.Device.new_from_string(`cuda:${index}`);
const current = () => GTorch.Device.get_current(GTorch.DeviceType.CUDA).to_string();
const ones = (shape, device) => GTorch.ones(shape, {device});
const says = (code, part) => error => error.matches(GTorch.Error, code) && error.message.includes(part);

tap.add('gpus_are_counted_and_described', () => {
    const manager = GTorch.DeviceManager.get_default();
    tap.assert(manager.is_available() && manager.get_device_count() === 2);
    tap.equal([...Array(manager.get_n_items()).keys()].map(i => manager.get_item(i).to_string()),
        ['cpu', 'cuda:0', 'cuda:1']);
    tap.equal(gpu(1).name, 'Fake 1');
    tap.equal(gpu(1).get_capability(), [9, 0]);
    tap.equal(gpu(0).n_multiprocessors, 4);
    tap.throws(() => gpu(7), says(GTorch.Error.DEVICE, 'cuda:7'));
});

tap.add('the_current_device_and_stream_come_back', () => {
    const stream = GTorch.Stream.new(gpu(0), 0);
    const inside = gpu(1).run(device => {
        tap.equal(device.to_string(), 'cuda:1');
        return [current(), GTorch.Stream.new(null, 0).device.to_string()];
    });
    tap.equal(inside, ['cuda:1', 'cuda:1']);
    tap.equal(current(), 'cuda:0');
    tap.throws(() => gpu(1).run(() => {
        throw new Error('from inside');
    }), error => error.message === 'from inside');
    tap.equal(current(), 'cuda:0');
    tap.assert(stream.run(() => GTorch.Stream.get_current(gpu(0)) === stream));
    tap.assert(GTorch.Stream.get_current(gpu(0)).is_default());
});

tap.add('cuda_without_a_number_is_the_gpu_that_is_current', () => {
    const cuda = GTorch.Device.new_from_string('cuda');
    const made = () => [ones([2], cuda), ones([2], 'cuda'), GTorch.ones([2]).to('cuda'),
        GTorch.ones([2]).to(cuda), GTorch.Stream.new(cuda, 0), GTorch.MemoryPool.new(cuda)];
    const places = () => made().map(x => x.get_device().to_string());
    tap.equal([cuda.to_string(), cuda.index, cuda.get_index(), cuda.type], ['cuda', -1, -1, gpu(0).type]);
    tap.assert(cuda !== gpu(0) && cuda === GTorch.Device.cuda(-1) && cuda.resolve() === gpu(0));
    tap.equal(places(), Array(6).fill('cuda:0'));
    gpu(1).run(() => {
        tap.equal(places(), Array(6).fill('cuda:1'));
        tap.equal([cuda.name, cuda.get_name(), cuda.uuid], ['Fake 1', 'Fake 1', gpu(1).uuid]);
        tap.assert(cuda.get_allocator() === gpu(1).get_allocator());
    });
    tap.equal(GTorch.ones([2]).get_device().to_string(), 'cpu');
});

tap.add('the_default_device_is_independent', () => {
    const made = () => GTorch.ones([2]).get_device().to_string();
    const inside = gpu(1).run_as_default(device => {
        tap.equal([device.to_string(), made(), current()], ['cuda:1', 'cuda:1', 'cuda:0']);
        return GTorch.Device.cpu().run_as_default(made);
    });
    tap.equal([inside, made()], ['cpu', 'cpu']);
    const within = GTorch.Device.new_from_string('cuda').run_as_default(() => gpu(1).run(made));
    tap.equal(within, 'cuda:1');
    tap.throws(() => gpu(1).run_as_default(() => {
        throw new Error('from inside');
    }), error => error.message === 'from inside');
    tap.equal(made(), 'cpu');
});

tap.add('guards_end_in_any_order', () => {
    const stream = GTorch.Stream.new(gpu(1), 0);
    const pool = GTorch.MemoryPool.new(gpu(0));
    const make = [
        () => GTorch.DeviceGuard.new(gpu(1)),
        () => GTorch.DefaultDeviceGuard.new(gpu(1)),
        () => GTorch.StreamGuard.new(stream),
        () => GTorch.MemoryPoolGuard.new(pool),
        () => GTorch.AutocastGuard.new(GTorch.DeviceType.CUDA, GTorch.DType.NONE, true, true),
    ];
    const state = () => {
        const held = ones([10], gpu(0));
        const allocated = pool.allocated > 0;
        held.release();
        return [current(), GTorch.get_default_device().to_string(),
            GTorch.Stream.get_current(gpu(1)) === stream,
            GTorch.Stream.get_current(null).device.to_string(), allocated,
            GTorch.is_autocast_enabled(GTorch.DeviceType.CUDA)];
    };
    const plain = state();
    make.forEach(first => make.forEach(second => {
        const one = first();
        const two = second();
        one.end();
        const left = state();
        two.end();
        tap.equal(state(), plain);
        const alone = second();
        tap.equal(state(), left);
        alone.end();
        two.end();
        tap.equal(state(), plain);
    }));
});

tap.add('suspended_generators_do_not_disturb_functions', () => {
    const rests = function* () {
        const guard = GTorch.StreamGuard.new(GTorch.Stream.new(gpu(1), 0));
        try {
            yield current();
        } finally {
            guard.end();
        }
    };
    const [one, two] = [rests(), rests()];
    tap.equal([one.next().value, two.next().value], ['cuda:1', 'cuda:1']);
    one.return();
    tap.equal(current(), 'cuda:1');
    tap.assert(GTorch.no_grad(() => {
        two.return();
        return !GTorch.is_grad_enabled();
    }));
    tap.assert(GTorch.is_grad_enabled() && current() === 'cuda:0');
    tap.assert(GTorch.no_grad(() => GTorch.enable_grad(() => GTorch.is_grad_enabled())));
    tap.throws(() => GTorch.no_grad(() => {
        throw new Error('from inside');
    }), error => error.message === 'from inside');
    tap.assert(GTorch.is_grad_enabled());
});

tap.add('tensors_of_two_devices_do_not_meet', () => {
    const x = ones([2, 3], gpu(0));
    const number = GTorch.tensor(0.5);
    tap.throws(() => x.add(ones([3], gpu(1))),
        says(GTorch.Error.DEVICE_MISMATCH, '“other” of shape [3] is on cuda:1'));
    tap.throws(() => x.add(GTorch.ones([3])), says(GTorch.Error.DEVICE_MISMATCH, 'is on cpu'));
    tap.equal(x.mul(number).sum().item(), 3);
    tap.equal(number.sub(x).sum().item(), -3);
});

tap.add('to_takes_dtypes_devices_and_tensors', () => {
    const x = GTorch.ones([3]);
    tap.equal(x.to('cuda:1').get_device().to_string(), 'cuda:1');
    tap.equal(x.to(gpu(0)).get_device().to_string(), 'cuda:0');
    tap.equal(x.to(GTorch.float64).get_dtype(), GTorch.float64);
    const like = x.to(GTorch.zeros([1], {dtype: GTorch.int32, device: gpu(0)}));
    tap.equal([like.get_dtype(), like.get_device().to_string()], [GTorch.int32, 'cuda:0']);
    tap.assert(x.to('cpu') === x && x.to(GTorch.float32) === x);
    tap.assert(x.to('cpu', {copy: true}) !== x);
    const there = like.to('cpu', {non_blocking: true});
    tap.assert(there.is_pinned());
    tap.equal(there.toArray(), [1, 1, 1]);
    tap.equal(ones([2], 1).get_device_index(), 1);
    const [, available, total] = gpu(0).get_memory_info();
    tap.assert(available > 0 && available < total);
});

tap.add('streams_wait_for_each_other', () => {
    const stream = GTorch.Stream.new(gpu(0), -1);
    const first = GTorch.Stream.get_current(gpu(0));
    tap.equal(stream.priority, -1);
    const x = stream.run(() => ones([100], gpu(0)).neg());
    first.wait_stream(stream);
    tap.equal(x.add(1).sum().item(), 0);
    stream.synchronize(null);
    tap.assert(stream.is_idle());
    stream.auto_sync = true;
    tap.assert(stream.get_auto_sync());
});

tap.add('completed_is_emitted_in_the_main_loop', async () => {
    const event = GTorch.Event.new(GTorch.EventFlags.TIMING);
    const start = GTorch.Event.new(GTorch.EventFlags.TIMING);
    const stream = GTorch.Stream.get_current(gpu(0));
    const seen = new Promise(resolve => event.connect('completed', resolve));
    start.record(stream);
    ones([100], gpu(0)).neg();
    event.record(stream);
    await seen;
    tap.assert(event.query() && start.get_elapsed_ms(event) >= 0);
    tap.throws(() => start.get_elapsed_ms(GTorch.Event.new(GTorch.EventFlags.NONE)),
        says(GTorch.Error.INVALID, 'without timing'));
});

tap.add('waits_can_be_awaited', async () => {
    const x = (await GTorch.tensor([1, 2, 3]).to_device_async(gpu(0), null)).add(0.5);
    tap.equal(x.get_device().to_string(), 'cuda:0');
    const there = await x.to_device_async(GTorch.Device.cpu(), null);
    tap.assert(there.is_pinned());
    tap.equal(there.toArray(), [1.5, 2.5, 3.5]);
    tap.equal(await x.sum().item_double_async(null), 7.5);
    tap.equal(await x.sum().item_int_async(null), 7);
    const target = GTorch.zeros([3], {dtype: GTorch.float64});
    tap.assert(await target.copy_inplace_async(x, null));
    tap.equal(target.toArray(), [1.5, 2.5, 3.5]);
    const stream = GTorch.Stream.new(gpu(0), 0);
    const timer = GTorch.Timer.new(stream);
    timer.start();
    tap.assert(await timer.stop_async(null) >= 0);
    tap.equal(timer.elapsed_ms, timer.get_elapsed_ms());
    const stopped = new Gio.Cancellable();
    stopped.cancel();
    const error = await x.to_device_async(GTorch.Device.cpu(), stopped).catch(e => e);
    tap.assert(error.matches(Gio.IOErrorEnum, Gio.IOErrorEnum.CANCELLED));
    const monitor = await GTorch.Device.cpu().open_monitor_async(null);
    tap.equal(monitor.get_device().to_string(), 'cpu');
    const unopened = await GTorch.Device.cpu().open_monitor_async(stopped).catch(e => e);
    tap.assert(unopened.matches(Gio.IOErrorEnum, Gio.IOErrorEnum.CANCELLED));
    const many = await x.item_double_async(null).catch(e => e);
    tap.assert(many.matches(GTorch.Error, GTorch.Error.SHAPE));
});

tap.add('handles_are_for_other_processes', () => {
    const event = GTorch.Event.new(GTorch.EventFlags.INTERPROCESS);
    event.record(GTorch.Stream.get_current(gpu(0)));
    tap.equal(event.get_ipc_handle(null).get_size(), 64);
    tap.throws(() => GTorch.Event.new_from_ipc_handle(gpu(0), new GLib.Bytes([1, 2])),
        says(GTorch.Error.INVALID, '64 bytes, not 2'));
    tap.throws(() => GTorch.Event.new(GTorch.EventFlags.NONE).get_ipc_handle(gpu(0)),
        says(GTorch.Error.INVALID, 'interprocess'));
});

tap.add('options_choose_the_device', () => {
    const chosen = () => GTorch.get_default_device().to_string();
    const byApplication = args => {
        const app = new Gio.Application({flags: Gio.ApplicationFlags.NON_UNIQUE});
        GTorch.add_options(app);
        app.connect('activate', () => {});
        tap.equal(app.run(['program', ...args]), 0);
        return [];
    };
    for (const parse of [GTorch.parse_options, byApplication]) {
        for (const [args, device] of [[[], 'cuda:0'], [['--device=cuda:1'], 'cuda:1'],
            [['--disable-cuda', '--device', 'cuda:1'], 'cpu']]) {
            GTorch.set_default_device(null);
            tap.equal(parse(args), []);
            tap.equal(chosen(), device);
        }
    }
    tap.equal(GTorch.parse_options(['a', '--device=cuda:1', '--help', '--', '--disable-cuda']),
        ['a', '--help', '--', '--disable-cuda']);
    tap.equal(chosen(), 'cuda:1');
    tap.throws(() => GTorch.parse_options(['--device=cuda:7']), says(GTorch.Error.DEVICE, 'cuda:7'));
    const app = new Gio.Application({flags: Gio.ApplicationFlags.NON_UNIQUE});
    app.add_option_group(GTorch.get_option_group());
    app.connect('activate', () => {});
    tap.equal(app.run(['program', '--disable-cuda']), 0);
    tap.equal(chosen(), 'cpu');
    GTorch.set_default_device(null);
});

// A tensor is a small object to the garbage collector, which has no reason of its own to run.
tap.add('the_collector_runs_when_memory_of_a_gpu_is_short', () => {
    const device = GTorch.Device.cuda(1);
    const half = device.get_total_memory() / 2;
    const sizes = [half / 16, half / 16];
    for (let turn = 0; turn < 24; turn++) {
        for (const size of sizes)
            GTorch.empty([size], {dtype: GTorch.int8, device});
        tap.equal(GTorch.empty([half], {dtype: GTorch.int8, device}).get_numel(), half);
    }
});

tap.add('streams_that_are_made_follow_the_current_device', () => {
    for (const index of [0, 1]) {
        const device = GTorch.Device.cuda(index);
        device.run_as_default(() => device.run(() => {
            const expected = GTorch.Stream.new(null, 0).get_device();
            tap.assert(new GTorch.Stream().get_device() === expected);
            tap.assert(new GTorch.Stream({priority: 0}).get_device() === expected);
        }));
        tap.assert(new GTorch.Stream({device}).get_device() === device);
        tap.assert(new GTorch.Stream({device: `cuda:${index}`}).get_device() === device);
    }
});

function leak(live) {
    live.push(GTorch.zeros([1 << 22], {device: 'cuda:1'}));
}

tap.add('too_little_memory_names_the_line_and_what_would_be_enough', () => {
    const allocator = gpu(1).get_allocator();
    const live = [];
    let text;
    allocator.record_history(GTorch.HistoryLevel.STATE, 0);
    try {
        for (;;)
            leak(live);
    } catch (error) {
        text = error.message;
    }
    allocator.record_history(GTorch.HistoryLevel.NEVER, 0);
    const places = /; (\d+) × zeros, together .*, in (.*test-cuda\.js:\d+, in leak); /;
    const [, count, place] = places.exec(text) ?? [];
    tap.equal(Number(count), live.length);
    tap.assert(text.endsWith(`; it is enough to drop what was made in ${place} (zeros)`), text);
    live.splice(0).forEach(tensor => tensor.release());
    leak(live);
    live[0].release();
});

tap.add('a_report_is_saved', () => {
    const [file, stream] = Gio.File.new_tmp('gtorch-XXXXXX.html');
    stream.close(null);
    gpu(0).get_allocator().record_history(GTorch.HistoryLevel.ALL, 100);
    const x = GTorch.ones([1000], {device: 'cuda:0'});
    GTorch.memory_report_save(file, null);
    gpu(0).get_allocator().record_history(GTorch.HistoryLevel.NEVER, 0);
    const page = new TextDecoder().decode(file.load_contents(null)[1]);
    file.delete(null);
    tap.assert(/test-cuda\.js:\d+, in /.test(page) && page.includes('<h2>cuda:0</h2>'));
    tap.equal(x.sum().item(), 1000);
});

await tap.run();
