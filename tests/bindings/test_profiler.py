#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""GTorch.profiler and GTorch.autograd.profiler."""

import asyncio
import gzip
import json
import os
import pathlib
import re
import sys
import tempfile
import threading
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

from gi.repository import Gio, GLib  # noqa: E402

import gtorch as torch  # noqa: E402
import tap  # noqa: E402
from tap import raises  # noqa: E402
from gtorch.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule  # noqa: E402

FOLDER = tempfile.mkdtemp()


def path(name):
    return os.path.join(FOLDER, name)


def train(steps=1):
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    for _ in range(steps):
        with record_function('forward'):
            loss = model(torch.ones(3, 4)).sum()
        loss.backward()


def row(rows, key):
    (found,) = [one for one in rows if one.key == key]
    return found


def check_nesting(events):
    """The events of a thread are inside of each other or one after the other, as viewers need them."""
    threads = {}
    for event in events:
        if event['ph'] == 'X':
            span = event['ts'], -event['dur']
            threads.setdefault((event['pid'], event['tid']), []).append(span)
    assert threads
    for spans in threads.values():
        ends = []
        for start, length in sorted(spans):
            while ends and ends[-1] <= start + 1e-6:
                ends.pop()
            assert not ends or start - length <= ends[-1] + 1e-3, (start, length, ends)
            ends.append(start - length)


@tap.case
def blocks_are_recorded():
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True, with_flops=True) as prof:
        train()
    averages = prof.key_averages(group_by_input_shape=True)
    linear = [one for one in averages if one.key == 'linear']
    assert sorted(one.input_shapes for one in linear) == [[[3, 4], [8, 4], [8]], [[3, 8], [2, 8], [2]]], linear
    assert {one.flops for one in linear} == {2 * 3 * 4 * 8, 2 * 3 * 8 * 2}
    forward = row(averages, 'forward')
    assert forward.is_user_annotation and forward.count == 1
    assert forward.cpu_time_total > forward.self_cpu_time_total > 0
    assert forward.cpu_time_total_str.endswith(('us', 'ms'))
    assert forward.cuda_time_total == 0 and forward.device_time_total_str == '0.000us'
    assert forward.device_type == torch.profiler.DeviceType.CPU
    assert sum(one.count for one in averages if one.key == 'torch::autograd::AccumulateGrad') == 4
    assert sorted(one.input_shapes for one in averages if one.key == 'LinearBackward0') == [[[3, 2]], [[3, 8]]]
    raises(AttributeError, lambda: forward.speed, "no attribute 'speed'")


@tap.case
def gradients_of_sums_are_not_multiplied():
    a, b = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    upper = torch.ones(3)
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        (a + b).backward(upper)
    assert not [one.key for one in profiler.key_averages() if one.key == 'mul']
    with torch.no_grad():
        a.grad.add_(5)  # each has memory of its own
    assert b.grad.tolist() == upper.tolist() == [1, 1, 1]
    b.grad = None
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        torch.add(a, b, alpha=2).backward(upper)
    assert [one.count for one in profiler.key_averages() if one.key == 'mul'] == [1]
    assert b.grad.tolist() == [2, 2, 2]


@tap.case
def optimizers_are_ranges():
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    weight.sum().backward()
    with profile() as prof:
        optimizer.step()
        optimizer.zero_grad()
    assert row(prof.key_averages(), 'Optimizer.step#SGD.step').count == 1
    assert row(prof.key_averages(), 'Optimizer.zero_grad#SGD.zero_grad').count == 1


@tap.case
def tables_are_written():
    with profile(record_shapes=True) as prof:
        train(2)
    table = prof.key_averages().table(sort_by='self_cpu_time_total', row_limit=3)
    lines = table.splitlines()
    assert re.match(r'^ +Name +Self CPU % +Self CPU +CPU total % +CPU total +CPU time avg +# of Calls +$', lines[1])
    assert len(lines) == 3 + 3 + 2 and lines[-1].startswith('Self CPU time total: '), table
    assert 'Input Shapes' in prof.key_averages(group_by_input_shape=True).table()
    assert str(prof.key_averages()).count('forward') == 1
    raises(GLib.Error, lambda: prof.key_averages().table(sort_by='speed'), 'sort_by is “speed”')


@tap.case
def events_are_in_order():
    with profile() as prof:
        train()
    events = prof.events()
    starts = [event.time_range.start for event in events]
    assert starts == sorted(starts) and len(events) > 5
    event = next(event for event in events if event.name == 'forward')
    assert event.thread == threading.get_native_id()
    assert abs(event.time_range.elapsed_us() - event.cpu_time) < 1e-3
    assert events.key_averages().self_cpu_time_total == prof.key_averages().self_cpu_time_total
    assert events.total_average().count == len(events)


@tap.case
def traces_are_written():
    with profile(record_shapes=True, with_stack=True) as prof:
        train()
    prof.add_metadata('model', 'a "small" one')
    prof.add_metadata_json('sizes', '[4, 8, 2]')
    for name, opened in ('trace.json', open), ('trace.json.gz', gzip.open):
        prof.export_chrome_trace(path(name))
        with opened(path(name), 'rt') as file:
            trace = json.load(file)
        assert trace['model'] == 'a "small" one' and trace['sizes'] == [4, 8, 2]
        events = trace['traceEvents']
        linear = [event for event in events if event['name'] == 'linear']
        assert linear[0]['cat'] == 'cpu_op' and linear[0]['args']['Input Dims'][1] == [8, 4]
        assert f'{os.path.basename(__file__)}(' in linear[0]['args']['Call stack'], linear[0]
        check_nesting(events)
        flows = [event['ph'] for event in events if event.get('cat') == 'fwdbwd']
        assert flows.count('s') == flows.count('f') >= 4
    raises(GLib.Error, lambda: prof.add_metadata_json('sizes', '[4'))


@tap.case
def stacks_name_lines_of_python():
    with profile(with_stack=True) as prof:
        train()
    averages = prof.key_averages(group_by_stack_n=1)
    linear = [one for one in averages if one.key == 'linear']
    assert all(len(one.stack) == 1 for one in linear)
    assert re.search(rf'{os.path.basename(__file__)}\(\d+\): train$', linear[0].stack[0]), linear[0].stack
    prof.export_stacks(path('stacks.txt'))
    with open(path('stacks.txt')) as file:
        lines = file.read().splitlines()
    assert lines and all(re.fullmatch(r'[^ ]+ \d+', line) for line in lines), lines
    own = [line for line in lines if 'stacks_name_lines_of_python' in line]
    assert own and all(line.index('stacks_name') < line.index('train') for line in own)
    raises(ValueError, lambda: prof.export_stacks(path('stacks.txt'), 'time'), 'metric')


@tap.case
def memory_is_written():
    with profile(profile_memory=True) as prof:
        train()
        x = torch.ones(1000)
        del x
    assert row(prof.key_averages(), '[memory]').cpu_memory_usage <= -4000
    prof.export_memory_timeline(path('memory.raw.json.gz'), 'cpu')
    with gzip.open(path('memory.raw.json.gz'), 'rt') as file:
        events = json.load(file)
    assert [1000 * 4, -1000 * 4] == [event[2] for event in events if abs(event[2]) == 4000]
    prof.export_memory_timeline(path('memory.json'), torch.device('cpu'))
    with open(path('memory.json')) as file:
        times, sizes = json.load(file)
    assert len(times) == len(sizes) == len(events) and times == sorted(times)
    prof.export_memory_timeline(path('memory.html'), 'cpu')
    with open(path('memory.html')) as file:
        page = file.read()
    assert page.startswith('<!DOCTYPE html>') and 'Memory over time: cpu' in page and page.count('<polygon') >= 3
    raises(GLib.Error, lambda: prof.export_memory_timeline(path('memory.png')), 'must end with .json')


@tap.case
def metadata_are_texts():
    for what in ('schedule', 'on_trace_ready'):
        raises(TypeError, lambda what=what: profile(**{what: 5}), f'profile(): {what} is 5')
    with profile() as prof:
        torch.ones(1)
    for method in (prof.add_metadata, prof.add_metadata_json, prof.preset_metadata_json):
        for wrong in (('k', 5), ('k', None), (5, 'x')):
            raises(TypeError, lambda method=method, given=wrong: method(*given), f'{method.__name__}: the ')
    prof.add_metadata('k', 'a "text"')
    for method in (prof.export_chrome_trace, prof.export_stacks, prof.export_memory_timeline):
        raises(ValueError, lambda method=method: method(''), f'{method.__name__}: the path is empty')
    prof.export_chrome_trace(path('texts.json'))
    with open(path('texts.json')) as file:
        assert json.load(file)['k'] == 'a "text"'


def net(call):
    """What 10 calls leave behind, by a profile, in bytes."""
    with profile(profile_memory=True) as prof:
        for _ in range(10):
            call()
    return sum(one.self_cpu_memory_usage for one in prof.key_averages())


@tap.case
def memory_that_is_given_back_was_taken():
    x, index = torch.ones(1000), torch.tensor([1, 2])
    calls = (
        lambda: x + 1, lambda: x * 2.5, lambda: 1 / x, lambda: x**2, lambda: x > 0, lambda: x.clamp(0, 1),
        lambda: torch.where(x > 0, x, 0.0), lambda: x.fill_(3), lambda: x.add_(1), lambda: x.sum().item(),
        lambda: x.__setitem__(2, 5.0), lambda: x.index_fill(0, index, 2.0), lambda: torch.full((3,), True),
        lambda: torch.frombuffer(bytearray(80), dtype=torch.float32) + 1,
    )  # fmt: skip
    for i, call in enumerate(calls):
        assert net(call) == 0, (i, net(call))
    kept = []
    assert net(lambda: kept.append(x + 1)) == 10 * 4000
    kept.clear()
    assert net(lambda: [torch.MemoryPool('cpu').run(lambda pool: x * x)]) == 0


@tap.case
def schedules_choose_steps():
    ready = []

    def on_trace_ready(prof):
        steps = [event.name for event in prof.events() if event.key == 'ProfilerStep*']
        ready.append((prof.step_num, len(steps)))

    chosen = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    assert [chosen(i) for i in range(6)] == [
        ProfilerAction.NONE, ProfilerAction.NONE, ProfilerAction.WARMUP, ProfilerAction.RECORD,
        ProfilerAction.RECORD_AND_SAVE, ProfilerAction.NONE,
    ]  # fmt: skip
    with profile(schedule=chosen, on_trace_ready=on_trace_ready) as prof:
        for step in range(12):
            assert prof.current_action == chosen(step)
            train()
            prof.step()
    assert ready == [(5, 2), (9, 2)], ready
    raises(ValueError, lambda: schedule(wait=0, warmup=1, active=0), 'active=0')
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        schedule(wait=0, warmup=0, active=1)
    assert len(caught) == 1


@tap.case
def schedules_are_functions_of_the_program():
    with profile(schedule=lambda step: ProfilerAction.RECORD_AND_SAVE if step == 1 else ProfilerAction.NONE) as prof:
        for _ in range(3):
            train()
            prof.step()
    assert row(prof.key_averages(), 'ProfilerStep*').count == 1


@tap.case
def schedules_must_say_actions():
    raises(TypeError, lambda: profile(schedule=lambda step: 7).start(), '7', 'step 0', 'ProfilerAction')
    with profile() as prof:
        torch.ones(1)
    assert prof.profiler.function_events[0].name == 'ones'
    assert prof.key_averages().table(row_limit=None) == prof.key_averages().table(row_limit=-1)


@tap.case
def handlers_may_fail():
    def fail(_prof):
        raise LookupError('in the handler')

    prof = profile(on_trace_ready=fail)
    prof.start()
    raises(LookupError, prof.stop, 'in the handler')


@tap.case
def handlers_may_stop_the_profiler():
    def stop(prof):
        ready.append(prof.step_num)
        prof.stop()

    ready = []
    prof = profile(schedule=schedule(wait=0, warmup=1, active=1), on_trace_ready=stop)
    prof.start()
    for _ in range(2):
        torch.ones(1).exp()
        prof.step()
    assert ready == [2]
    assert row(prof.key_averages(), 'exp').count == 1
    raises(GLib.Error, prof.stop, 'profiler_stop: the profiler was not started')
    with profile():
        pass


@tap.case
def traces_go_to_a_folder():
    folder = path('logs/run')
    handler = torch.profiler.tensorboard_trace_handler(folder, use_gzip=True)
    with profile(on_trace_ready=handler):
        train()
    (name,) = os.listdir(folder)
    assert name.endswith('.pt.trace.json.gz')
    with gzip.open(os.path.join(folder, name), 'rt') as file:
        assert json.load(file)['traceEvents']


@tap.case
def one_profiler_records_at_a_time():
    with profile():
        raises(GLib.Error, profile().start, 'profiler_start: another profiler is recording')
    raises(GLib.Error, profile().stop, 'profiler_stop: the profiler was not started')
    raises(GLib.Error, profile().key_averages, 'no profile yet')


@tap.case
def a_profiler_that_is_lost_is_in_nobodys_way():
    lost = profile()
    lost.start()
    del lost
    with profile() as prof:
        torch.ones(1)
    assert prof.events()

    def fail():
        lost = profile()
        lost.start()
        raise LookupError('a cycle of frame, exception and profiler')

    try:
        fail()
    except LookupError as error:
        kept = [error]
        kept.append(kept)
    del kept
    with profile() as prof:
        torch.ones(1)
    assert prof.events()


@tap.case
def ranges_of_tasks_overlap():
    async def work(name, mine, others):
        with record_function(name):
            others.set()
            await mine.wait()
            torch.ones(1)
        others.set()

    async def run():
        first, second = asyncio.Event(), asyncio.Event()
        await asyncio.gather(work('A', first, asyncio.Event()), work('B', second, first), later(second))

    async def later(event):
        await asyncio.sleep(0.01)
        event.set()

    with profile() as prof:
        asyncio.run(run())
        open_range = record_function('open')
        open_range.__enter__()
    open_range.__exit__(None, None, None)
    found = {event.name: event.time_range for event in prof.events()}
    assert {'A', 'B', 'open'} <= set(found), found
    assert found['A'].start <= found['B'].start < found['A'].end <= found['B'].end, found


@tap.case
def what_is_missing_is_refused():
    for argument in ('experimental_config', 'execution_trace_observer', 'post_processing_timeout_s'):
        text = f'{argument}=True is not supported'
        raises(GLib.Error, lambda argument=argument: profile(**{argument: True}), text)
    raises(TypeError, lambda: profile(activities=['cpu']), 'ProfilerActivity')
    raises(TypeError, lambda: record_function(3), 'name')
    raises(TypeError, lambda: record_function('x', 3), 'args must be a text, not int')
    raises(ValueError, lambda: record_function('a\0b'), 'name has a NUL at 1')
    raises(ValueError, lambda: record_function('x', '\0'), 'args has a NUL at 0')


def names(events):
    return [event.name for event in events if event.activity_type != 'cuda_driver']


@tap.case
def events_are_a_tree():
    with profile(record_shapes=True) as prof:
        train()
    events = prof.events()
    assert events is prof.events()
    (forward,) = [event for event in events if event.name == 'forward']
    assert forward.cpu_parent is None and names(forward.cpu_children) == ['ones', 'linear', 'relu', 'linear', 'sum']
    linear = forward.cpu_children[1]
    assert linear.cpu_parent is forward and linear in events and names(linear.cpu_children) == []
    inside = sum(child.cpu_time_total for child in forward.cpu_children)
    assert abs(forward.self_cpu_time_total - (forward.cpu_time_total - inside)) < 1e-3
    assert linear.device_index == 0 and linear.use_device == ('cuda' if torch.cuda.is_available() else None)
    assert all(kernel.duration >= 0 for kernel in linear.kernels) and (linear.kernels == [] or linear.use_device)
    assert len({event.id for event in events}) == len(events)
    assert repr(linear).startswith(f'<FunctionEvent id={linear.id} name=linear ')
    averages = prof.key_averages()
    assert row(averages, 'linear').cpu_parent is forward and row(averages, 'forward').cpu_children[1] is linear
    (node, *_rest) = [event for event in events if event.name == 'LinearBackward0']
    assert node.scope == 1 and node.fwd_thread == threading.get_native_id()
    assert node.sequence_nr == forward.cpu_children[3].sequence_nr
    assert forward.scope == 7 and linear.scope == 0 and linear.fwd_thread == 0


@tap.case
def events_have_what_programs_read():
    with profile(record_shapes=True, schedule=schedule(wait=0, warmup=1, active=1)) as prof:
        for _ in range(2):
            torch.ones(2, 3).exp()
            prof.step()
    (step,) = [event for event in prof.events() if event.name == 'ProfilerStep*']
    assert step.trace_name == 'ProfilerStep#1' and step.activity_type == 'user_annotation'
    exp = step.cpu_children[1]
    found = {
        'name': 'exp', 'key': 'exp', 'trace_name': 'exp', 'count': 1, 'input_shapes': [[2, 3]], 'scope': 0,
        'node_id': -1, 'is_async': False, 'is_remote': False, 'is_legacy': False, 'sequence_nr': -1, 'flops': 0,
        'overload_name': '', 'metadata_json': '', 'is_user_annotation': False, 'is_python_function': False,
        'device_resource_id': exp.thread, 'module_path': None, 'stack': [], 'activity_type': 'cpu_op',
    }  # fmt: skip
    assert {name: getattr(exp, name) for name in found} == found
    raises(AttributeError, lambda: exp.kwinputs, 'values of arguments are not recorded')
    assert not hasattr(exp, 'concrete_inputs')


@tap.case
def lists_are_of_their_rows():
    with profile() as prof:
        train()
    events = prof.events()
    EventList = torch.autograd.profiler.EventList
    chosen = EventList(event for event in events if event.name == 'linear')
    assert len(chosen) == 2 and chosen.total_average().count == 2
    assert abs(chosen.self_cpu_time_total - sum(event.self_cpu_time_total for event in chosen)) < 1e-6
    assert names(chosen) == ['linear'] * 2 and chosen.table().count('linear') == 2 and 'relu' not in chosen.table()
    (linear,) = chosen.key_averages()
    assert linear.count == 2 and linear.cpu_parent is chosen[0].cpu_parent
    chosen.pop()
    assert chosen.total_average().count == 1
    assert EventList().table() == '' and EventList().total_average().count == 0
    raises(ValueError, lambda: chosen.export_chrome_trace(path('chosen.json')), 'export_chrome_trace', 'profiler')
    raises(TypeError, lambda: EventList(['linear']), 'no event')


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 2))

    def forward(self, x, scale=1):
        return self.body(x) * scale


@tap.case
def modules_are_levels():
    net = Net()
    net(torch.ones(3, 4))
    with profile(with_modules=True) as prof:
        net(torch.ones(3, 4))
        net(torch.ones(3, 4), scale=2)
    calls = [event for event in prof.events() if event.name == 'nn.Module: Net_0']
    assert len(calls) == 2 and all(names(call.cpu_children)[0] == 'nn.Module: Sequential_0' for call in calls)
    body = calls[1].cpu_children[0]
    assert body.is_python_function and body.activity_type == 'python_function' and body.module_path == 'body'
    assert names(body.cpu_children) == ['nn.Module: Linear_0', 'nn.Module: Linear_1']
    assert names(body.cpu_children[0].cpu_children) == ['linear']
    assert row(prof.key_averages(), 'nn.Module: Net_0').count == 2
    prof.export_chrome_trace(path('modules.json'))
    traced = [event for event in json.load(open(path('modules.json')))['traceEvents'] if 'Linear_1' in event['name']]
    assert [event['cat'] for event in traced] == ['python_function'] * 2
    assert traced[0]['args']['Python module id'] == 1 and traced[0]['args']['Module path'] == 'body.1'
    # hooks are inside, and a module that fails has its end
    net.register_forward_hook(lambda *_given: torch.ones(1).sin())
    with profile(with_stack=True) as prof:
        net(torch.ones(3, 4))
        raises(GLib.Error, lambda: net(torch.ones(3, 5)))
        torch.ones(1).cos()
    (first, _failed) = [event for event in prof.events() if event.name == 'nn.Module: Net_0']
    assert 'sin' in names(first.cpu_children)
    (cos,) = [event for event in prof.events() if event.name == 'cos']
    assert cos.cpu_parent is None
    assert not [one for one in prof.key_averages() if 'Module' in one.key]
    from gi.overrides._gtorch_hooks import Recording

    assert Recording.n == 0


@tap.case
def functions_of_the_program_are_linked():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    x = torch.ones(2, 3, requires_grad=True)
    with profile(record_shapes=True) as prof:
        Square.apply(x).sum().backward()
    (forward,) = [event for event in prof.events() if event.name == 'Square']
    (backward,) = [event for event in prof.events() if event.name == 'SquareBackward']
    assert forward.input_shapes == [[2, 3]] and names(forward.cpu_children) == ['mul']
    assert backward.sequence_nr == forward.sequence_nr > 0 and backward.fwd_thread == forward.thread
    prof.export_chrome_trace(path('function.json'))
    events = json.load(open(path('function.json')))['traceEvents']
    spans = {event['ts']: event['name'] for event in events if event['ph'] == 'X'}
    flows = [spans[event['ts']] for event in events if event.get('cat') == 'fwdbwd']
    assert flows[flows.index('Square') + 1] == 'SquareBackward', flows


@tap.case
def cycles_are_kept():
    counts = []
    for kept in (False, True):
        ready = []
        with profile(schedule=schedule(wait=1, warmup=1, active=1, repeat=3), acc_events=kept,
                     on_trace_ready=lambda prof, ready=ready: ready.append(row(prof.key_averages(), 'exp').count),
                     ) as prof:  # fmt: skip
            for _ in range(9):
                torch.ones(2).exp()
                prof.step()
        counts.append(ready)
        assert len([event for event in prof.events() if event.name == 'ProfilerStep*']) == (3 if kept else 1)
        starts = [event.time_range.start for event in prof.events()]
        assert starts == sorted(starts)
    assert counts == [[1, 1, 1], [1, 2, 3]], counts


@tap.case
def functions_are_ranges():
    @record_function('decorated')
    def compute():
        return torch.ones(2).exp()

    with profile() as prof:
        compute()
        compute()
    assert row(prof.key_averages(), 'decorated').count == 2


def counts(prof, name):
    return [one.count for one in prof.key_averages() if one.key == name]


@tap.case
def calls_of_generators_and_coroutines_are_ranges():
    @record_function('generator')
    def numbers(n):
        given = []
        for i in range(n):
            given.append((yield i))
            torch.ones(1).exp()
        return given

    @record_function('coroutine')
    async def wait(n):
        await asyncio.sleep(0.01)
        torch.ones(1).sin()
        return n

    @record_function('asynchronous generator')
    async def later(n):
        for i in range(n):
            await asyncio.sleep(0)
            try:
                yield i
            except KeyError:
                yield 'caught'

    async def run():
        assert await asyncio.gather(wait(1), wait(2)) == [1, 2]
        assert [one async for one in later(3)] == [0, 1, 2]
        inner = later(2)
        assert await inner.asend(None) == 0
        assert await inner.athrow(KeyError) == 'caught'
        await inner.aclose()

    with profile() as prof:
        assert list(numbers(3)) == [0, 1, 2]
        one = numbers(2)
        next(one)
        assert one.send('x') == 1
        try:
            one.send('y')
        except StopIteration as end:
            assert end.value == ['x', 'y'], end.value
        asyncio.run(run())
    assert counts(prof, 'generator') == [2] and counts(prof, 'coroutine') == [2]
    assert counts(prof, 'asynchronous generator') == [2]
    assert {event.cpu_parent.name for event in prof.events() if event.name == 'exp'} == {'generator'}
    assert min(event.cpu_time for event in prof.events() if event.name == 'coroutine') > 9000


@tap.case
def ranges_end_in_other_threads():
    given = record_function('given')
    with profile() as prof:
        given.__enter__()
        torch.ones(1).exp()
        thread = threading.Thread(target=lambda: given.__exit__(None, None, None))
        thread.start()
        thread.join()
        torch.ones(1).sin()
    assert counts(prof, 'given') == [1]
    found = {event.name: event for event in prof.events()}
    assert found['exp'].cpu_parent is found['given'] and found['sin'].cpu_parent is None
    assert found['given'].thread == found['exp'].thread
    assert found['given'].time_range.end < found['sin'].time_range.start


@tap.case
def ranges_have_arguments_and_long_names():
    with profile() as prof:
        with record_function('n' * 100000, 'lr="0.1"'):
            pass
    prof.export_chrome_trace(path('args.json'))
    (event,) = [one for one in json.load(open(path('args.json')))['traceEvents'] if one['name'] == 'n' * 100000]
    assert event['args']['Concrete Inputs'] == ['lr="0.1"'], event


def calls_with_shapes():
    """What consists of other operations: a name, PyTorch's shapes of the tensors that are no list, and a call."""
    functional, nn = torch.nn.functional, torch.nn
    image, matrix = torch.ones(2, 3, 8, 8), torch.ones(4, 3)
    classes = torch.tensor([0, 1, 2, 0])
    return [
        ('conv2d', [[2, 3, 8, 8], [5, 3, 3, 3], []], lambda: functional.conv2d(image, torch.ones(5, 3, 3, 3))),
        ('conv2d', [[2, 3, 8, 8], [5, 3, 1, 1], [5]], lambda: nn.Conv2d(3, 5, 1)(image)),
        ('conv_transpose2d', [[2, 3, 8, 8], [3, 5, 2, 2], [5]], lambda: nn.ConvTranspose2d(3, 5, 2)(image)),
        ('batch_norm', [[2, 3, 8, 8], [3], [3], [3], [3]], lambda: nn.BatchNorm2d(3)(image)),
        ('batch_norm', [[4, 3], [3], [3], [], []], lambda: functional.batch_norm(matrix, torch.ones(3), torch.ones(3))),
        ('instance_norm', [[2, 3, 8, 8], [], [], [], []], lambda: nn.InstanceNorm2d(3)(image)),
        ('cross_entropy', [[4, 3], [4], []], lambda: functional.cross_entropy(matrix, classes)),
        ('cross_entropy', [[4, 3], [4], [3]], lambda: nn.CrossEntropyLoss(torch.ones(3))(matrix, classes)),
        ('flatten', [[2, 3, 8, 8]], lambda: image.flatten(1)),
        ('flatten', [[2, 3, 8, 8]], lambda: nn.Flatten()(image)),
        ('dropout', [[4, 3]], lambda: nn.Dropout()(matrix)),
        ('interpolate', [[2, 3, 8, 8]], lambda: nn.Upsample(scale_factor=2)(image)),
        ('gru_cell', [[4, 3], [4, 2], [6, 3], [6, 2], [6], [6]], lambda: nn.GRUCell(3, 2)(matrix)),
        ('lstm', [[5, 4, 3], [1, 4, 2], [1, 4, 2], [8, 3], [8, 2], [8], [8]],
         lambda: nn.LSTM(3, 2)(torch.ones(5, 4, 3))),
        ('einsum', [[4, 3], [3, 2]], lambda: torch.einsum('ij,jk', matrix, torch.ones(3, 2))),
        ('stack', [[4, 3], [4, 3]], lambda: torch.stack([matrix, matrix])),
    ]  # fmt: skip


@tap.case
def operations_of_operations_have_shapes():
    for name, shapes, call in calls_with_shapes():
        with profile(record_shapes=True) as prof:
            call()
        found = [event.input_shapes for event in prof.events() if event.name == name]
        assert found == [shapes], (name, found)
    with profile(record_shapes=True) as prof:
        for name, _shapes, call in calls_with_shapes():
            if name == 'conv2d':
                call()
    assert sorted(one.count for one in prof.key_averages(group_by_input_shape=True) if one.key == 'conv2d') == [1, 1]


@tap.case
def nodes_have_the_shapes_of_gradients():
    x = torch.ones(4, 3, requires_grad=True)
    with profile(record_shapes=True) as prof:
        x.exp().sum().backward()
    found = {event.name: event.input_shapes for event in prof.events()}
    assert found['SumBackward0'] == [[]] and found['ExpBackward0'] == [[4, 3]], found
    assert found['torch::autograd::AccumulateGrad'] == [[4, 3]]


@tap.case
def every_step_is_a_range():
    class Own(torch.optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {})

        def step(self, closure=None):
            return 'done'

    class Derived(torch.optim.SGD):
        pass

    param = torch.nn.Parameter(torch.ones(2))

    def closure():
        loss = (param * param).sum()
        loss.backward()
        return loss

    for made, given in ((Own([param]), []), (Derived([param], lr=0.1), []), (torch.optim.LBFGS([param]), [closure]),
                        (torch.optim.SGD([param], lr=0.1), [closure])):  # fmt: skip
        closure()
        with profile() as prof:
            made.step(*given)
            made.zero_grad()
        name = type(made).__name__
        assert counts(prof, f'Optimizer.step#{name}.step') == [1], name
        assert counts(prof, f'Optimizer.zero_grad#{name}.zero_grad') == [1], name
        if given:
            (step,) = [event for event in prof.events() if event.name == f'Optimizer.step#{name}.step']
            assert step.cpu_children[0].name == 'mul', step.cpu_children
    for loss in (None, 'any'):
        with profile():
            assert torch.optim.SGD([param], lr=0.1).step(lambda loss=loss: loss) is loss
    with profile():
        raises(ZeroDivisionError, lambda: torch.optim.SGD([param], lr=0.1).step(lambda: 1 / 0), 'division')


@tap.case
def forward_passes_on_several_devices_are_ranges():
    device = 'cuda' if torch.cuda.is_available() else 'cpu'
    model = torch.nn.DataParallel(torch.nn.Linear(4, 2).to(device), device_ids=[0] if device == 'cuda' else None)
    with profile() as prof:
        model(torch.ones(3, 4, device=device))
    (forward,) = [event for event in prof.events() if event.name == 'DataParallel.forward']
    assert 'linear' in [event.name for event in forward.cpu_children]


@tap.case
def what_a_stream_computes_is_counted_once():
    stream, x = torch.Stream('cpu'), torch.ones(3, 4)
    with profile(record_shapes=True) as prof:
        with stream:
            x.exp()
        stream.synchronize()
    call, run = [event for event in prof.events() if event.name == 'exp']
    assert not call.is_async and run.is_async and run.thread != call.thread
    assert run.cpu_parent is None and run not in call.cpu_children
    assert run.input_shapes == call.input_shapes == [[3, 4]]
    for rows in (prof.key_averages(), prof.key_averages(group_by_input_shape=True)):
        found = row(rows, 'exp')
        assert found.count == 1
        assert abs(found.self_cpu_time_total - call.self_cpu_time_total - run.self_cpu_time_total) < 1e-3
    prof.export_chrome_trace(path('stream.json'))
    with open(path('stream.json')) as file:
        events = json.load(file)['traceEvents']
    drawn = [event for event in events if event['name'] == 'exp']
    assert len({event['args']['correlation'] for event in drawn}) == 1 and len(drawn) == 2
    assert [event['ph'] for event in events if event['name'] == 'enqueued'] == ['s', 'f']


@tap.case
def ranges_that_overlap_are_drawn_beside_each_other():
    first, second = record_function('first'), record_function('second')
    with profile() as prof:
        first.__enter__()
        second.__enter__()
        torch.ones(2).exp()
        first.__exit__(None, None, None)
        second.__exit__(None, None, None)
    prof.export_chrome_trace(path('overlap.json'))
    with open(path('overlap.json')) as file:
        events = json.load(file)['traceEvents']
    check_nesting(events)
    tracks = {event['name']: event['tid'] for event in events if event['ph'] == 'X'}
    assert tracks['first'] == tracks['exp'] != tracks['second']
    names = {event['tid']: event['args']['name'] for event in events if event['name'] == 'thread_name'}
    assert names[tracks['second']] == names[tracks['first']] + ' (2)'


@tap.case
def loading_is_a_range():
    data = torch.utils.data.TensorDataset(torch.ones(6, 2))
    for n, kind in ((0, 'SingleProcess'), (1, 'MultiProcessing')):
        loader = torch.utils.data.DataLoader(data, batch_size=2, num_workers=n)
        with profile() as prof:
            assert len(list(loader)) == 3
        assert counts(prof, f'enumerate(DataLoader)#_{kind}DataLoaderIter.__next__') == [4], n


@tap.case
def methods_of_c_have_defaults():
    prof = torch.Profiler(record_shapes=True, with_stack=True, profile_memory=True)
    prof.start()
    torch.ones(2).exp()
    prof.stop()
    assert prof.key_averages().get_n_items() == prof.events().key_averages().get_n_items() > 0
    assert prof.key_averages(group_by_stack_n=1, group_by_input_shape=True).get_n_items() > 0
    assert 'exp' in prof.key_averages().table() and 'exp' in prof.events().table(sort_by='count', row_limit=-1)
    prof.export_chrome_trace(path('c.json'))
    prof.export_chrome_trace(file=Gio.File.new_for_path(path('c.json')))
    prof.export_stacks(path('c.txt'))
    prof.export_memory_timeline(pathlib.Path(path('c.html')), torch.Device.cpu())
    assert all(os.path.getsize(path(name)) > 0 for name in ('c.json', 'c.txt', 'c.html'))
    raises(TypeError, prof.export_chrome_trace, 'file')


@tap.case
def threads_are_recorded():
    with profile() as prof:
        threads = [threading.Thread(target=train) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len({event.thread for event in prof.events() if event.name == 'forward'}) == 2


@tap.case
def autograd_has_a_profiler_too():
    with torch.autograd.profiler.profile(record_shapes=True) as prof:
        with torch.autograd.profiler.record_function('all'):
            train()
    assert row(prof.key_averages(), 'all').count == 1
    assert prof.self_cpu_time_total > 0
    assert 'all' in prof.table(sort_by='count')
    prof.export_chrome_trace(path('autograd.json'))
    assert json.load(open(path('autograd.json')))['traceEvents']
    assert len(prof.function_events) == prof.total_average().count
    with torch.autograd.profiler.profile(enabled=False):
        train()


tap.main()
