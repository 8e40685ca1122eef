// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Profiles of programs in JavaScript.

import GLib from 'gi://GLib';
import GObject from 'gi://GObject';
import GTorch from 'gi://GTorch?version=1';
import Gio from 'gi://Gio';
import * as tap from './tap.js';

const folder = GLib.Dir.make_tmp('gtorch-profile-XXXXXX');

function profiled(func, properties = {}) {
    const profiler = new GTorch.Profiler(properties);
    profiler.start();
    func();
    profiler.stop();
    return profiler;
}

function refused(func, text) {
    tap.throws(func, error => text.test(error.message));
}

function rows(list) {
    return Array.from({length: list.get_n_items()}, (_, i) => list.get_item(i));
}

// What is inside of an event, without calls of the driver.
function inside(row) {
    return rows(row.dup_children()).filter(child => child.kind !== GTorch.ProfileKind.DRIVER);
}

function read(file) {
    const [, content] = file.load_contents(null);
    return new TextDecoder().decode(content);
}

tap.add('operations_and_ranges_are_recorded', () => {
    const x = GTorch.ones([4, 4]);
    let result;
    const profiler = profiled(() => {
        result = GTorch.record_function('a range', () => x.mm(x));
    }, {record_shapes: true, with_flops: true});
    tap.equal(result.shape, [4, 4]);
    const averages = profiler.key_averages({group_by_input_shape: true});
    const [mm] = rows(averages).filter(row => row.key === 'mm');
    tap.equal(mm.input_shapes, '[[4, 4], [4, 4]]');
    tap.equal(mm.flops, 2 * 4 * 4 * 4);
    const [range] = rows(averages).filter(row => row.key === 'a range');
    tap.equal(range.is_user_annotation, true);
    tap.equal(range.cpu_time_total >= mm.cpu_time_total, true);
    const table = averages.table({sort_by: 'cpu_time_total', row_limit: 1});
    tap.equal(table.includes('Input Shapes'), true);
    tap.equal(table.includes('a range'), true);
    tap.equal(table.includes(' mm '), false);
});

tap.add('events_are_a_tree', () => {
    const profiler = profiled(() => GTorch.record_function('outer', () => GTorch.ones([2]).exp()));
    const events = profiler.events();
    const [outer] = rows(events).filter(row => row.key === 'outer');
    tap.equal(inside(outer).map(row => row.key), ['ones', 'exp']);
    const [, exp] = inside(outer);
    tap.equal(exp.dup_parent().position, outer.position);
    tap.equal(exp.kind, GTorch.ProfileKind.OPERATION);
    const kernels = rows(exp.dup_kernels()); // none on the CPU
    tap.equal(kernels.every(row => row.kind === GTorch.ProfileKind.KERNEL), true);
    tap.equal(kernels.every(row => row.parent_position === exp.position), true);
    const chosen = GTorch.ProfileList.new_from_rows([exp, exp]);
    tap.equal(chosen.total_average().count, 2);
    tap.equal(chosen.dup_events().get_n_items(), events.get_n_items());
});

tap.add('modules_are_levels', () => {
    const Net = GObject.registerClass(class Net extends GTorch.Module {
        constructor() {
            super();
            this.fc = new GTorch.Linear({in_features: 2, out_features: 3});
        }

        forward(x) {
            return this.fc.forward(x).exp();
        }
    });
    const net = new Net();
    const profiler = profiled(() => {
        net.forward(GTorch.ones([2, 2]));
        net.call(GTorch.ones([2, 2]));
    }, {with_modules: true});
    const calls = rows(profiler.events()).filter(row => row.key === 'nn.Module: Net_0');
    tap.equal(calls.length, 2);
    for (const call of calls) {
        const [linear, exp] = inside(call);
        tap.equal([linear.key, linear.module_path, exp.key], ['nn.Module: Linear_0', 'fc', 'exp']);
    }
});

tap.add('traces_are_written', () => {
    const profiler = profiled(() => GTorch.ones([2]).exp());
    const file = Gio.File.new_for_path(`${folder}/trace.json`);
    profiler.export_chrome_trace(file);
    const {traceEvents} = JSON.parse(read(file));
    tap.equal(traceEvents.filter(event => event.name === 'exp' && event.ph === 'X').length, 1);
    file.delete(null);
});

tap.add('schedules_emit_a_signal', () => {
    const profiler = new GTorch.Profiler({warmup: 1, active: 1, repeat: 1});
    let nReady = 0;
    profiler.connect('trace-ready', () => nReady++);
    profiler.start();
    for (let i = 0; i < 4; i++) {
        GTorch.ones([2]).exp();
        profiler.step();
    }
    profiler.stop();
    tap.equal(nReady, 1);
    const [step] = rows(profiler.key_averages()).filter(row => row.key === 'ProfilerStep*');
    tap.equal(step.count, 1);
});

tap.add('functions_may_be_schedules', () => {
    const profiler = new GTorch.Profiler();
    profiler.set_schedule_func(step => step === 1
        ? GTorch.ProfilerAction.RECORD_AND_SAVE : GTorch.ProfilerAction.NONE);
    profiler.start();
    tap.equal(profiler.action, GTorch.ProfilerAction.NONE);
    profiler.step();
    tap.equal(profiler.action, GTorch.ProfilerAction.RECORD_AND_SAVE);
    profiler.stop();
});

tap.add('handlers_may_stop_the_profiler', () => {
    const profiler = new GTorch.Profiler({active: 1});
    let nReady = 0;
    profiler.connect('trace-ready', () => {
        nReady++;
        profiler.stop();
    });
    profiler.start();
    GTorch.ones([2]).exp();
    profiler.step();
    tap.equal(nReady, 1);
    tap.equal(GTorch.is_profiling(), false);
    tap.equal(profiler.action, GTorch.ProfilerAction.NONE);
    tap.equal(rows(profiler.key_averages()).find(row => row.key === 'exp').count, 1);
    refused(() => profiler.stop(), /profiler_stop: the profiler was not started/);
    const other = new GTorch.Profiler();
    other.start();
    refused(() => profiler.start(), /profiler_start: another profiler is recording/);
    other.stop();
});

tap.add('functions_of_schedules_cannot_stop_the_profiler', () => {
    const profiler = new GTorch.Profiler();
    profiler.set_schedule_func(step => {
        if (step === 1)
            profiler.stop();
        return GTorch.ProfilerAction.RECORD;
    });
    profiler.start();
    refused(() => profiler.step(), /profiler_stop: the function .* cannot start, step or stop/);
    profiler.stop();
});

tap.add('properties_count_from_the_next_start_on', () => {
    const profiler = new GTorch.Profiler();
    const shapes = () => rows(profiler.events()).find(row => row.key === 'exp').input_shapes;
    profiler.start();
    profiler.record_shapes = true;
    GTorch.ones([2]).exp();
    profiler.stop();
    tap.equal(String(shapes()), '');
    profiler.start();
    profiler.record_shapes = false;
    GTorch.ones([2]).exp();
    profiler.stop();
    tap.equal(String(shapes()), '[[2]]');
});

tap.add('mistakes_are_refused', () => {
    refused(() => new GTorch.Profiler().stop(), /profiler_stop: the profiler was not started/);
    refused(() => new GTorch.Profiler().key_averages(), /there is no profile yet/);
    refused(() => GTorch.record_function(3, () => 1), /name must be a string/);
    refused(() => GTorch.record_function('a\0b', () => 1), /name has a NUL at 1/);
    refused(() => GTorch.record_function('x', 3), /function/);
    refused(() => GTorch.Profiler.set_stack_func(() => 'x'), /no function can be given/);
});

tap.add('nothing_is_left', () => GLib.rmdir(folder));
await tap.run();
