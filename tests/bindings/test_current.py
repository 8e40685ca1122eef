#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The device that is used where none is named, and the blocks that change it, on the driver of
tests/fake-cuda."""

import contextlib
import ctypes
import gc
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import weakref

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.docstring import generate_doc_string  # noqa: E402
from gi.repository import Gio, GLib, GObject, GTorch  # noqa: E402

import tap  # noqa: E402
from tap import raises  # noqa: E402

cuda = GTorch.cuda
driver = ctypes.CDLL(os.environ['GTORCH_CUDA_DRIVER'])
N_ELEMENTS = 1 << 16  # 256 KiB of float32


def in_thread(function, *args):
    """Returns the result of a function in a new thread, or raises its exception."""
    results = []

    def run():
        try:
            results.append((function(*args), None))
        except BaseException as error:
            results.append((None, error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if results[0][1] is not None:
        raise results[0][1]
    return results[0][0]


def fresh(test):
    """Registers a case that runs in its own thread, without any device set."""

    def run():
        in_thread(test)

    run.__name__ = test.__name__
    return tap.case(run)


@fresh
def cuda_without_a_number_is_the_gpu_that_is_current_when_it_is_used():
    device, first, second = GTorch.device('cuda'), GTorch.device('cuda:0'), GTorch.device('cuda:1')
    assert (device.type, device.index, str(device)) == ('cuda', None, 'cuda')
    assert device not in (first, second) and device == GTorch.Device('cuda')
    x = GTorch.tensor([1.0, 2.0], device=first)
    y = GTorch.tensor([1.0, 2.0]).cuda()
    assert x.device == y.device == first == device.resolve()
    with cuda.device(1):
        a = GTorch.tensor([1.0, 2.0], device=device)
        b = GTorch.tensor([1.0, 2.0]).cuda()
        c = GTorch.tensor([1.0, 2.0]).to(device=device)
        assert {t.device for t in (a, b, c, a + b, a.to('cuda'), GTorch.zeros(2, device='cuda'))} == {second}
        assert (x + y).device == first and a.to('cuda') is a
        assert GTorch.ones(2, device=first).device == GTorch.ones(2).cuda(0).device == first
        assert device.resolve() == second
    assert a.to(device).device == first


@fresh
def each_function_of_a_device_follows():
    """Tests iterate over the typelib, so that no function that takes a device can be forgotten."""
    device, first, second = (GTorch.device(name) for name in ('cuda', 'cuda:0', 'cuda:1'))
    plain = GTorch.Device.__mro__[1]
    apart = {  # with their expected results for the device, or tested below
        'get_device_type': GTorch.DeviceType.CUDA,
        'get_index': -1,
        'to_string': 'cuda',
    }
    with_arguments = {
        'can_access_peer', 'enable_peer', 'equal', 'get_current', 'open_monitor_async', 'open_monitor_finish',
        'run', 'run_as_default', 'set_benchmark', 'set_conv_precision', 'set_deterministic',
        'set_matmul_precision', 'set_pressure_threshold', 'synchronize', 'synchronize_async',
        'set_wait_policy', 'synchronize_finish', 'resolve', 'set_current',
        'cpu', 'cuda', 'new_from_string', 'get_default',
    }  # fmt: skip
    held = [GTorch.zeros(1000 * (i + 1), device=f'cuda:{i}') for i in range(2)]
    second.set_benchmark(True)
    second.set_wait_policy(GTorch.WaitPolicy.SLEEP)
    second.set_pressure_threshold(12345)
    differ = set()
    for name in [n for n in vars(plain) if not n.startswith('_') and n not in with_arguments]:
        method = getattr(plain, name)
        if not callable(method) or name in ('props', 'reset_peak_memory', 'empty_cache', 'check'):
            continue
        if name in apart:
            assert method(device) == apart[name], name
            continue
        seen = []
        for current, expected in ((0, first), (1, second)):
            with cuda.device(current):
                got, wanted = method(device), method(expected)
            if name == 'get_memory_info':
                got, wanted = got[2:], wanted[2:]
            assert got == wanted, (name, got, wanted)
            seen.append(got)
        if seen[0] != seen[1]:
            differ.add(name)
    known = {'get_name', 'get_uuid', 'get_pci_id', 'get_default_stream', 'get_default_generator', 'get_allocator',
             'get_memory_allocated', 'get_benchmark', 'get_pressure_threshold', 'get_fft_plan_cache'}  # fmt: skip
    assert known <= differ, known - differ
    second.set_benchmark(False)
    with cuda.device(1):
        for spec in plain.list_properties() if hasattr(plain, 'list_properties') else []:
            if spec.name not in ('index', 'type'):
                assert device.get_property(spec.name) == second.get_property(spec.name), spec.name
        device.set_deterministic(True)
        assert second.get_deterministic() and not first.get_deterministic()
        second.set_deterministic(False)
        device.set_property('benchmark', True)
        assert second.get_benchmark() and not first.get_benchmark()
        device.props.benchmark = False
        assert not second.get_benchmark()
        assert device.can_access_peer(first) and first.can_access_peer(device)
        assert device.can_access_peer(device) and not device.equal(second)
        assert device.synchronize(None) and device.check()
        assert device.run(lambda given, *_: given == device and cuda.current_device() == 1)
        del held[1]
        device.empty_cache()
        assert second.get_memory_reserved() == 0 < first.get_memory_reserved()
        assert device.get_allocator().props.device == second


def functions_with_devices():
    """Returns the names of all introspected functions."""
    names = set()
    for info in gi.Repository.get_default().get_infos('GTorch'):
        is_function = type(info).__name__ == 'FunctionInfo'
        for function in [info] if is_function else getattr(info, 'get_methods', list)():
            arguments = generate_doc_string(function).split('->')[0]
            if re.search(r':GTorch\.Device\b', arguments):
                names.add(function.get_name() if is_function else f'{info.get_name()}.{function.get_name()}')
    return names


class Source(GTorch.MemorySource):
    """A source that remembers the device of each request."""

    def do_allocate(self, device, _n_bytes, _stream):
        self.device = device
        return 512

    def do_release(self, device, _address, _n_bytes, _stream):
        self.device = device


def from_main_loop(begin, finish):
    """Returns the result of an asynchronous function."""
    loop, results = GLib.MainLoop(), []

    def done(_source, result, *_data):
        results.append(finish(result))
        loop.quit()

    begin(done)
    loop.run()
    return results[0]


def saved():
    stream = Gio.MemoryOutputStream.new_resizable()
    GTorch.safetensors_save({'x': GTorch.ones(3)}, None, stream, None, None)
    stream.close()
    return stream.steal_as_bytes()


def load_from_stream(device):
    stream = Gio.MemoryInputStream.new_from_bytes(saved())
    return GTorch.safetensors_load(stream, device, None, None)[0]['x'].device


def load_from_file(device, load):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'x.safetensors')
        pathlib.Path(path).write_bytes(saved().get_data())
        return load(Gio.File.new_for_path(path), device)


def load_later(device):
    stream = Gio.MemoryInputStream.new_from_bytes(saved())
    return from_main_loop(
        lambda done: GTorch.safetensors_load_async(stream, device, 0, None, None, None, done),
        lambda result: GTorch.safetensors_load_finish(result)[0]['x'].device,
    )


def load_file_later(device):
    return load_from_file(
        device,
        lambda file, d: from_main_loop(
            lambda done: GTorch.safetensors_load_file_async(file, True, d, 0, None, None, None, done),
            lambda result: GTorch.safetensors_load_file_finish(result)[0]['x'].device,
        ),
    )


def load_from_index(device, load):
    with tempfile.TemporaryDirectory() as folder:
        index = Gio.File.new_for_path(os.path.join(folder, 'x.index.json'))
        GTorch.safetensors_save_index(index, ['x'], [GTorch.ones(2)], None, 100, None, None)
        return load(index, device)


def load_index_later(device):
    return load_from_index(
        device,
        lambda index, d: from_main_loop(
            lambda done: GTorch.safetensors_load_index_async(index, None, True, d, 0, None, done),
            lambda result: GTorch.safetensors_load_index_finish(result)[0][0].device,
        ),
    )


def move_module(device):
    model = GTorch.nn.Linear(2, 2)
    model.to(device)
    return model.weight.device


def packed():
    return GTorch.nn.utils.rnn.pack_sequence([GTorch.ones(2, 3), GTorch.ones(1, 3)])


def event_with_handle(device):
    """The device of an event determines where it can be recorded."""
    event = GTorch.Event.new(GTorch.EventFlags.INTERPROCESS)
    event.get_ipc_handle(device)
    return recorded_on(event)


def recorded_on(event):
    for name in ('cuda:0', 'cuda:1'):
        with contextlib.suppress(GLib.Error):
            event.record(GTorch.device(name).get_default_stream())
            return GTorch.device(name)
    raise AssertionError('it is of no GPU')


def source_asked(function):
    def ask(device):
        source = Source()
        function(source, device)
        return source.device

    return ask


def set_default(device):
    GTorch.set_default_device(device)
    try:
        return GTorch.zeros(1).device
    finally:
        GTorch.set_default_device(None)


def guarded(kind, ask):
    def call(device):
        guard = kind.new(device)
        try:
            return ask()
        finally:
            guard.end()

    return call


def made(function, *args, **options):
    return lambda device: function(*args, **options, device=device).device


WINDOWS = 'bartlett', 'blackman', 'cosine', 'exponential', 'gaussian', 'hamming', 'hann', 'kaiser', 'nuttall'


def averaged(new, device):
    return next(iter(new(GTorch.nn.Linear(2, 3), device, False).parameters())).device


def normalized(device):
    norm = GTorch.nn.BatchNorm1d(2, device=device)
    seen = []
    norm.register_forward_pre_hook(lambda _module, inputs: seen.append(inputs[0].device))
    GTorch.optim.swa_utils.update_bn([GTorch.ones(3, 2)], norm, device)
    return seen[0]


def timeline(device):
    """The device whose memory is in the file: each has as many tensors as its number and one more."""
    profiler = GTorch.Profiler.new()
    profiler.props.profile_memory = True
    profiler.start()
    held = [[GTorch.zeros(N_ELEMENTS, device=f'cuda:{i}') for _ in range(i + 1)] for i in range(2)]
    profiler.stop()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, 'memory.raw.json')
        profiler.export_memory_timeline(Gio.File.new_for_path(str(path)), device, None)
        events = json.loads(path.read_text('utf-8'))
    n_bytes = sum(event[2] for event in events if event[2] > 0)
    assert n_bytes in [4 * N_ELEMENTS * len(tensors) for tensors in held], n_bytes
    return GTorch.device(f'cuda:{n_bytes // (4 * N_ELEMENTS) - 1}')


def on_both():
    return [GTorch.ones(2, device=f'cuda:{i}') for i in range(2)]


PLACES = {
    'comm_gather': lambda d: GTorch.comm_gather(on_both(), 0, d).device,
    'comm_reduce_add': lambda d: GTorch.comm_reduce_add(on_both(), d).device,
    'comm_reduce_add_coalesced': lambda d: GTorch.comm_reduce_add_coalesced(on_both(), 2, d, 1 << 20)[0].device,
    'DefaultDeviceGuard.new': guarded(GTorch.DefaultDeviceGuard, lambda: GTorch.zeros(1).device),
    'DeviceGuard.new': guarded(GTorch.DeviceGuard, lambda: GTorch.device(cuda.current_device())),
    'DeviceMonitor.new': lambda d: GObject.new(GTorch.DeviceMonitor, device=d).get_device(),
    'Event.get_ipc_handle': event_with_handle,
    'Generator.new_for_device': lambda d: GTorch.Generator.new_for_device(d).get_device(),
    'MemoryPool.new': lambda d: GTorch.MemoryPool.new(d).get_device(),
    'MemoryPool.new_with_source': lambda d: GTorch.MemoryPool.new_with_source(d, Source()).get_device(),
    'MemorySource.allocate': source_asked(lambda s, d: s.allocate(d, 512, 0)),
    'MemorySource.release': source_asked(lambda s, d: s.release(d, 512, 512, 0)),
    'Module.to': move_module,
    'Profiler.export_memory_timeline': timeline,
    'PackedSequence.to': lambda d: packed().to(d).data.device,
    'Sample.to_device': lambda d: (
        GTorch.Sample.new_tensor(GTorch.ones(2)).to_device(d, False).get_tensor().device
    ),
    'Transformer.generate_square_subsequent_mask': made(GTorch.Transformer.generate_square_subsequent_mask, 3),
    'Stream.new': lambda d: GTorch.Stream.new(d, 0).get_device(),
    'Stream.new_from_address': lambda d: GTorch.Stream.new_from_address(d, 0).get_device(),
    'Stream.get_current': lambda d: GTorch.Stream.get_current(d).get_device(),
    'Tensor.new_from_bools': lambda d: GTorch.Tensor.new_from_bools([True], [1], d).device,
    'Tensor.new_from_doubles': lambda d: GTorch.Tensor.new_from_doubles([1], [1], GTorch.float32, d).device,
    'Tensor.new_from_floats': lambda d: GTorch.Tensor.new_from_floats([1], [1], GTorch.float32, d).device,
    'Tensor.new_from_ints': lambda d: GTorch.Tensor.new_from_ints([1], [1], GTorch.int64, d).device,
    'Tensor.to': lambda d: GTorch.ones(2).to(d, non_blocking=True).device,
    'Tensor.to_device': lambda d: GTorch.ones(2).to_device(d).device,
    'Tensor.to_device_async': lambda d: (
        lambda x: from_main_loop(
            lambda done: x.to_device_async(d, None, done),
            lambda result: x.to_device_finish(result).device,
        )
    )(GTorch.ones(2)),
    'arange': made(GTorch.arange, 0.0, 1.0, 0.25),
    'arange_int': made(GTorch.arange, 3),
    'empty': made(GTorch.empty, 3),
    'empty_permuted': made(GTorch.empty_permuted, (2, 3), (1, 0)),
    'empty_strided': made(GTorch.empty_strided, (2, 3), (1, 2)),
    'eye': made(GTorch.eye, 3),
    'fft_fftfreq': made(GTorch.fft_fftfreq, 4),
    'fft_rfftfreq': made(GTorch.fft_rfftfreq, 4),
    'full': made(GTorch.full, (2,), 1.5),
    'full_int': made(GTorch.full, (2,), 1),
    'linspace': made(GTorch.linspace, 0.0, 1.0, 3),
    'logspace': made(GTorch.logspace, 0.0, 1.0, 3),
    'ones': made(GTorch.ones, 3),
    'rand': made(GTorch.rand, 3),
    'randint': made(GTorch.randint, 0, 5, (3,)),
    'randn': made(GTorch.randn, 3),
    'randperm': made(GTorch.randperm, 3),
    'safetensors_load': load_from_stream,
    'safetensors_load_async': load_later,
    'safetensors_load_file': lambda d: load_from_file(
        d, lambda file, device: GTorch.safetensors_load_file(file, True, device, None, None)[0]['x'].device
    ),
    'safetensors_load_file_async': load_file_later,
    'safetensors_load_index': lambda d: load_from_index(
        d, lambda index, device: GTorch.safetensors_load_index(index, None, True, device, None)[0][0].device
    ),
    'safetensors_load_index_async': load_index_later,
    'scalar_tensor': made(GTorch.scalar_tensor, 1.0),
    'scalar_tensor_int': made(GTorch.scalar_tensor, 1),
    'set_default_device': set_default,
    'tril_indices': made(GTorch.tril_indices, 3, 3),
    'triu_indices': made(GTorch.triu_indices, 3, 3),
    'zeros': made(GTorch.zeros, 3),
    'hann_window': made(GTorch.hann_window, 4),
    'hamming_window': made(GTorch.hamming_window, 4),
    'blackman_window': made(GTorch.blackman_window, 4),
    'bartlett_window': made(GTorch.bartlett_window, 4),
    'kaiser_window': made(GTorch.kaiser_window, 4),
    **{f'signal_windows_{name}': made(getattr(GTorch.signal.windows, name), 4) for name in WINDOWS},
    'signal_windows_general_cosine': made(GTorch.signal.windows.general_cosine, 4, a=[0.5, 0.5]),
    'signal_windows_general_hamming': made(GTorch.signal.windows.general_hamming, 4),
    'AveragedModel.new': lambda d: averaged(GTorch.AveragedModel.new, d),
    'AveragedModel.new_from_copy': lambda d: averaged(GTorch.AveragedModel.new_from_copy, d),
    'update_bn': normalized,
}
APART = {  # excluded because of other cases here, and because of lists above
    'CheckpointWriter.add_device',
    'DataParallel.call',
    'DataParallel.new',
    'Device.can_access_peer',
    'Device.enable_peer',
    'Device.equal',
    'Event.new_from_ipc_handle',
    'ProcessGroup.bind_device',
    'ProcessGroup.bind_device_async',
    'safetensors_load_file_lists',
    'safetensors_load_lists',
}


@fresh
def all_device_arguments_accept_cuda_without_an_index():
    assert functions_with_devices() == {*PLACES, *APART}, functions_with_devices() ^ {*PLACES, *APART}
    bare = GTorch.device('cuda')
    for name, place in PLACES.items():
        for number in (1, 0):
            with cuda.device(number):
                assert place(bare) == GTorch.device(number), (name, number)
        assert place(GTorch.device('cuda:1')) == GTorch.device('cuda:1'), name


@fresh
def the_functions_of_cuda_mean_the_current_gpu():
    first, second = GTorch.device('cuda:0'), GTorch.device('cuda:1')
    for number, device in ((0, first), (1, second)):
        with cuda.device(number):
            assert cuda.current_device() == number and cuda.get_device_name() == f'Fake {number}'
            assert cuda.get_device_properties().name == f'Fake {number}'
            assert cuda.current_stream() == cuda.default_stream() == device.get_default_stream()
            assert cuda.Stream().get_device() == cuda.Stream(priority=-1).get_device() == device
            assert cuda.MemPool().get_device() == cuda.graph_pool_handle().get_device() == device
            assert cuda.MemoryPool().get_device() == device
            before = cuda.memory_allocated()
            x = GTorch.zeros(N_ELEMENTS, device='cuda')
            assert cuda.memory_allocated() - before == device.get_memory_allocated() - before == 4 * N_ELEMENTS
            assert cuda.max_memory_allocated() >= cuda.memory_allocated()
            assert cuda.memory_reserved() == device.get_memory_reserved() > 0
            assert cuda.memory_stats()['allocated_bytes.all.current'] == cuda.memory_allocated()
            assert f'cuda:{number}' in cuda.memory_summary() or cuda.memory_summary()
            assert cuda.mem_get_info() == tuple(device.get_memory_info()[1:])
            del x
            gc.collect()
            cuda.empty_cache()
            assert cuda.memory_reserved() == 0
            cuda.manual_seed(40 + number)
            assert cuda.initial_seed() == device.get_default_generator().get_seed() == 40 + number
            state = cuda.get_rng_state()
            drawn = GTorch.rand(3, device='cuda').tolist()
            cuda.set_rng_state(state)
            assert GTorch.rand(3, device='cuda').tolist() == drawn
    assert first.get_default_generator().get_seed() == 40
    cuda.manual_seed_all(7)
    assert [d.get_default_generator().get_seed() for d in (first, second)] == [7, 7]


@contextlib.contextmanager
def held():
    """A block in which no GPU does any work."""
    driver.fake_cuda_hold(1)
    try:
        yield
    finally:
        driver.fake_cuda_hold(0)


@fresh
def waits_and_queries_use_the_current_gpu():
    for number in (0, 1):
        with cuda.device(number):
            x, event, stream = GTorch.zeros(10, device='cuda'), cuda.Event(), cuda.current_stream()
            cuda.synchronize()
            with held():
                x.add_(1)
                event.record()
                assert not event.query() and not cuda.current_stream().query()
                with cuda.device(1 - number):
                    cuda.synchronize()
                assert not stream.query()
            cuda.synchronize()
            assert event.query() and stream.query()
            assert x.tolist() == [1] * 10


@fresh
def events_and_timers_of_cuda_use_the_current_stream_of_the_current_gpu():
    assert GTorch.get_default_device().type == 'cpu'
    seen = []
    for number in (0, 1):
        with cuda.device(number):
            stream = cuda.Stream()
            with stream:
                start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
                start.record()
                GTorch.zeros(10, device='cuda')
                end.record()
            end.synchronize()
            seen.append(start.elapsed_time(end))  # events of the CPU would not be of one device
            handle = cuda.Event(interprocess=True)
            handle.ipc_handle()
            other = GTorch.device(f'cuda:{1 - number}').get_default_stream()
            raises(GLib.Error, f'cuda:{number}', handle.record, other)
            handle.record()
            with cuda.Timer() as timer:
                GTorch.zeros(10, device='cuda')
            assert timer.elapsed_ms >= 0
            assert isinstance(start, cuda.Event) and isinstance(start, GTorch.Event)
            assert isinstance(stream, cuda.Stream) and isinstance(timer, cuda.Timer)
    assert len(seen) == 2
    assert not isinstance(GTorch.Event(), cuda.Event)
    assert not isinstance(GTorch.Stream('cpu'), cuda.Stream)


def in_blocks(block, now):
    """Returns the results of @now in two consecutive blocks, in nested blocks, and after each."""
    found = []
    for _ in range(2):
        with block:
            with block:
                found.append(now())
            found.append(now())
    found.append(now())
    return found


@fresh
def blocks_can_be_begun_again_and_in_threads():
    pool, stream = cuda.MemPool(device=1), cuda.Stream(1)

    def in_use():
        return sum(segment['allocated_size'] for segment in pool.snapshot())

    def used():
        before, held = in_use(), GTorch.ones(N_ELEMENTS, device='cuda:1')
        return held.numel() * 4 == in_use() - before

    def is_current():
        return cuda.current_stream(1) is stream

    for block, now, inside, outside in (
        (cuda.device(1), cuda.current_device, 1, 0),
        (cuda.stream(stream), is_current, True, False),
    ):
        expected = [inside] * 4 + [outside]
        assert in_blocks(block, now) == expected
        assert [in_thread(in_blocks, block, now) for _ in range(2)] == [expected] * 2
        with block:
            assert in_thread(now) == outside and in_thread(in_blocks, block, now) == expected
            assert now() == inside

        @block
        def decorated(now=now):
            return now()

        assert [decorated(), decorated(), now()] == [inside, inside, outside]
    block = cuda.use_mem_pool(pool)
    assert in_blocks(block, used) == [True] * 4 + [False]
    with block as given:
        assert given is pool and not in_thread(used)
    for nothing in (cuda.device(None), cuda.device(-1), cuda.stream(None)):
        assert in_blocks(nothing, cuda.current_device) == [0] * 5


@fresh
def a_graph_is_empty_after_an_exception_in_its_block():
    x = GTorch.ones(3, device='cuda')
    for make in (GTorch.graph, cuda.graph):
        graph, former = GTorch.CUDAGraph(), cuda.current_stream()
        for error in (ValueError, KeyboardInterrupt):
            try:
                with make(graph, stream=cuda.Stream()):
                    y = x * 2
                    raise error
            except error:
                pass
            assert graph.props.state == GTorch.GraphState.EMPTY and cuda.current_stream() is former
        with make(graph, stream=cuda.Stream()):
            y = x * 3
        graph.replay()
        assert y.tolist() == [3, 3, 3]


@fresh
def graphs_of_cuda_are_captured_on_the_current_gpu():
    for number in (0, 1):
        with cuda.device(number):
            x, g = GTorch.ones(4, device='cuda'), cuda.CUDAGraph()
            cuda.synchronize()
            with cuda.graph(g):
                assert cuda.current_stream().is_capturing()
                y = x + 1
            x.add_(1)
            g.replay()
            assert y.tolist() == [3] * 4 and y.get_device_index() == number


@fresh
def streams_are_current_with_their_device():
    stream = GTorch.Stream('cuda:1')
    with stream:
        assert cuda.current_device() == 1 and cuda.current_stream() == stream
        assert GTorch.Stream.get_current() == stream and GTorch.Stream().get_device() == stream.get_device()
    assert cuda.current_device() == 0 and GTorch.Stream.get_current().get_device().type == 'cpu'
    cuda.set_stream(stream)
    assert cuda.current_device() == 1 and cuda.current_stream() == stream
    cuda.set_stream(None)
    with cuda.stream(None):
        assert cuda.current_stream() == stream


@fresh
def the_default_device_is_independent():
    with GTorch.device('cuda:1'):
        assert GTorch.zeros(2).device == GTorch.get_default_device() == GTorch.device('cuda:1')
        assert cuda.current_device() == 0 and GTorch.zeros(2, device='cuda').get_device_index() == 0
        with GTorch.device('cpu'):
            assert GTorch.zeros(2).device.type == 'cpu'
        assert in_thread(lambda: GTorch.zeros(2).device.type) == 'cpu'
    with cuda.device(1):
        assert GTorch.zeros(2).device.type == 'cpu'
        with GTorch.device('cuda'):
            assert GTorch.zeros(2).get_device_index() == 1
            with cuda.device(0):
                assert GTorch.zeros(2).get_device_index() == 0
    GTorch.set_default_device(GTorch.device('cuda'))
    try:
        assert in_thread(lambda: GTorch.zeros(2).get_device_index()) == 0
        with cuda.device(1):
            assert GTorch.get_default_device() == GTorch.zeros(2).device == GTorch.device('cuda:1')
    finally:
        GTorch.set_default_device(None)


@fresh
def a_new_thread_begins_with_the_first_gpu():
    cuda.set_device(1)
    with GTorch.Stream('cuda:1'):
        assert in_thread(cuda.current_device) == 0
        assert in_thread(lambda: cuda.current_stream().is_default())
        assert in_thread(lambda: GTorch.zeros(2, device='cuda').get_device_index()) == 0
    assert cuda.current_device() == 1


@fresh
def two_threads_have_two_current_gpus_at_once():
    turns, done = [threading.Barrier(2) for _ in range(20)], []

    def work(number):
        cuda.set_device(number)
        for turn in turns:
            turn.wait()
            assert cuda.current_device() == number
            assert GTorch.zeros(2, device='cuda').get_device_index() == number
            with cuda.device(1 - number):
                turn.wait()
                assert cuda.current_device() == 1 - number
        done.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == [0, 1]


POOLS = weakref.WeakSet()


def make_pool():
    pool = cuda.MemPool(device='cuda:1')
    POOLS.add(pool)
    return pool


BLOCKS = {
    'device': lambda: GTorch.device('cuda:1'),
    'stream': lambda: GTorch.Stream('cuda:1'),
    'pool': make_pool,
    'no_grad': GTorch.no_grad,
    'enable_grad': GTorch.enable_grad,
    'set_grad_enabled': lambda: GTorch.set_grad_enabled(False),
    'autocast': lambda: GTorch.autocast('cuda'),
}
FUNCTIONS = {  # these give a new object each time
    'cuda.device': lambda: cuda.device(1),
    'cuda.stream': lambda: cuda.stream(GTorch.Stream('cuda:1')),
    'cuda.use_mem_pool': lambda: cuda.use_mem_pool(make_pool()),
}


def state():
    """Returns everything that blocks change."""
    second = GTorch.device('cuda:1')
    tensor = GTorch.empty(1000, device=second)
    return (
        str(GTorch.get_default_device()),
        cuda.current_device(),
        GTorch.Stream.get_current(second).is_default(),
        GTorch.is_grad_enabled(),
        GTorch.is_autocast_enabled('cuda'),
        tensor.numel() and sum(pool.props.allocated > 0 for pool in POOLS),
        str(GTorch.Stream.get_current().get_device()),
    )


@fresh
def blocks_may_end_in_any_order():
    plain = state()
    for first_name, first in {**BLOCKS, **FUNCTIONS}.items():
        for second_name, second in {**BLOCKS, **FUNCTIONS}.items():
            one, two = contextlib.ExitStack(), contextlib.ExitStack()
            with first() as made:
                alone = state()
            one.enter_context(first())
            assert state() == alone, first_name
            two.enter_context(second())
            one.close()
            inner = state()
            two.close()
            assert state() == plain, (first_name, second_name)
            two.enter_context(second())
            assert state() == inner, (first_name, second_name)
            two.close()
            del made


@fresh
def generators_may_be_suspended_in_blocks():
    plain = state()
    for name, make in {**BLOCKS, **FUNCTIONS}.items():

        def within(make=make):
            with make():
                yield state()

        one, two = within(), within()
        first, second = next(one), next(two)
        assert first == second == state(), name
        one.close()
        assert state() == first, name
        two.close()
        assert state() == plain, name


@fresh
def one_object_serves_several_threads_at_once():
    for name, make in BLOCKS.items():
        shared, plain = make(), in_thread(state)
        if name == 'set_grad_enabled':
            with shared:  # it has set something in this thread already
                pass
        inside, outside, errors = threading.Barrier(3), threading.Barrier(3), []

        def work(shared=shared, inside=inside, outside=outside, errors=errors, plain=plain):
            try:
                before = state()
                assert before == plain
                with shared:
                    inside.wait()
                    with shared:
                        within = state()
                    assert state() == within
                    outside.wait()
                assert state() == before
            except BaseException as error:
                errors.append(error)
                inside.abort()
                outside.abort()

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors, (name, errors)


@fresh
def a_block_that_another_thread_leaves_ends_in_its_own():
    plain = state()
    for name, make in {**BLOCKS, **FUNCTIONS}.items():

        def within(make=make):
            with make():
                yield

        resting = within()
        next(resting)
        in_thread(resting.close)
        assert state() == plain, name


@fresh
def a_block_that_is_dropped_in_another_thread_ends():
    plain = state()

    def within():
        with GTorch.no_grad(), cuda.device(1):
            yield

    resting = [within()]
    next(resting[0])
    assert state() != plain
    in_thread(resting.clear)  # closes the generator there
    assert state() == plain


@fresh
def grad_mode_is_set_for_good_or_for_a_block():
    GTorch.set_grad_enabled(False)
    assert not GTorch.is_grad_enabled()
    with GTorch.enable_grad():
        GTorch.set_grad_enabled(False)
        assert not GTorch.is_grad_enabled()
    assert not GTorch.is_grad_enabled()
    GTorch.set_grad_enabled(True)
    with GTorch.set_grad_enabled(False):
        assert not GTorch.is_grad_enabled()
    assert GTorch.is_grad_enabled()

    @GTorch.set_grad_enabled(False)
    def off():
        return GTorch.is_grad_enabled()

    assert GTorch.is_grad_enabled() and not off() and not in_thread(off) and GTorch.is_grad_enabled()


@fresh
def the_cpu_is_no_gpu():
    for function in (cuda.set_device, lambda d: cuda.device(d).__enter__()):
        raises(ValueError, 'not cpu', function, 'cpu')
    # Whatever takes a device.
    needed = {'set_per_process_memory_fraction': (0.5,), 'caching_allocator_alloc': (512,), 'set_rng_state': (None,),
              'get_stream_from_external': (1,), 'ExternalStream': (1,)}
    tried = 0
    for names in (vars(cuda), vars(cuda.memory)):
        for name, function in names.items():
            code = getattr(function, '__code__', None)
            if name.startswith('__') or code is None or 'device' not in code.co_varnames[: code.co_argcount]:
                continue
            if name in ('use_mem_pool', 'change_current_allocator', 'can_device_access_peer'):
                continue
            raises(ValueError, 'not cpu', lambda: function(*needed.get(name, ()), device='cpu'))
            tried += 1
    assert tried > 20, tried
    raises(ValueError, 'not cpu', cuda.can_device_access_peer, 0, 'cpu')
    raises(ValueError, 'not cpu', cuda.can_device_access_peer, 'cpu', 0)
    raises(ValueError, 'not cpu', lambda: cuda.change_current_allocator(None, 'cpu'))
    for cls in (cuda.Stream, cuda.MemoryPool):
        raises(ValueError, 'not cpu', lambda: cls('cpu'))
        raises(ValueError, 'not cpu', lambda: cls(device='cpu'))
    stream = GTorch.Stream('cpu')
    for function in (cuda.stream, cuda.set_stream, cuda.Event().record, cuda.Event().wait):
        raises(ValueError, 'one of cpu', function, stream)
    raises(ValueError, 'one of cpu', lambda: cuda.graph(cuda.CUDAGraph(), stream=stream).__enter__())
    with GTorch.Stream('cpu') as other:
        GTorch.Event().record(other)  # which is for all devices


NOTHING = """
import gi
gi.require_version('GTorch', '1')
from gi.repository import GLib, GTorch
cuda = GTorch.cuda
assert not cuda.is_available() and cuda.device_count() == 0
# As PyTorch does: these have nothing to do, or nothing to tell.
assert cuda.empty_cache() is None and cuda.memory_stats() == {}
assert cuda.memory_allocated() == cuda.max_memory_allocated() == 0
assert cuda.memory_reserved() == cuda.max_memory_reserved() == 0
cuda.manual_seed(1), cuda.manual_seed_all(1), cuda.set_device(-1), cuda.set_stream(None)
cuda.get_arch_list()
with cuda.device(None), cuda.device(-1), cuda.stream(None):
    pass
NO_OPS = {'is_available', 'device_count', 'empty_cache', 'memory_stats', 'memory_allocated', 'max_memory_allocated',
          'memory_reserved', 'max_memory_reserved', 'memory_cached', 'max_memory_cached', 'manual_seed',
          'manual_seed_all', 'get_arch_list', 'make_graphed_callables', 'is_initialized', 'is_bf16_supported',
          'is_tf32_supported', 'is_current_stream_capturing', 'get_allocator_backend', 'ipc_collect', 'seed',
          'seed_all', 'get_rng_state_all', 'set_rng_state_all', 'memory_stats_as_nested_dict', 'device_of',
          'caching_allocator_enable', 'host_memory_stats', 'host_memory_stats_as_nested_dict', 'get_gencode_flags',
          'get_sync_debug_mode'}
ARGUMENTS = {'device': (0,), 'set_device': (0,), 'can_device_access_peer': (0, 1), 'graph': (cuda.CUDAGraph(),),
             'set_per_process_memory_fraction': (0.5,), 'caching_allocator_alloc': (512,),
             'set_rng_state': (None,), 'get_stream_from_external': (1,), 'ExternalStream': (1,)}
assert cuda.get_rng_state_all() == [] and cuda.memory_stats_as_nested_dict() == {}
assert not cuda.is_initialized() and not cuda.is_bf16_supported() and not cuda.is_current_stream_capturing()
cuda.seed(), cuda.seed_all(), cuda.set_rng_state_all([]), cuda.ipc_collect()
with cuda.device_of(GTorch.ones(1)):
    pass
APART = {'OutOfMemoryError', 'CudaError', 'StreamContext',
         'CUDAGraph', 'CUDAPluggableAllocator', 'caching_allocator_delete', 'use_mem_pool', 'stream', 'set_stream',
         'change_current_allocator', 'memory', 'MemorySource', 'DeferredCudaCallError', 'cudaStatus', 'check_error',
         'set_sync_debug_mode'}
ABSENT = {'GreenContext', 'cudart', 'current_blas_handle', 'reset_accumulated_host_memory_stats',
          'reset_peak_host_memory_stats', *(name for name in dir(cuda) if name.endswith('Storage'))}
for name in ABSENT:
    try:
        getattr(cuda, name)()
    except NotImplementedError:
        continue
    raise AssertionError(name)
said = []
for name, value in vars(cuda).items():
    if name.startswith('_') or name in NO_OPS | APART | ABSENT or not callable(value):
        continue
    try:
        made = value(*ARGUMENTS.get(name, ()))
        if hasattr(made, '__enter__'):
            made.__enter__()
    except GLib.Error as error:
        assert error.matches(GTorch.error_quark(), GTorch.Error.DEVICE), (name, error)
        said.append(name)
    else:
        raise AssertionError(f'{name} does something without a GPU: {made!r}')
assert {'synchronize', 'Stream', 'Event', 'Timer', 'current_stream', 'current_device', 'graph', 'init', 'device',
        'MemPool', 'graph_pool_handle', 'get_rng_state', 'memory_summary', 'set_device'} <= set(said), said
for make in (lambda: GTorch.ones(2).cuda(), lambda: GTorch.zeros(2, device='cuda'), lambda: GTorch.device('cuda')):
    try:
        make()
    except GLib.Error as error:
        assert error.matches(GTorch.error_quark(), GTorch.Error.DEVICE)
    else:
        raise AssertionError
print(len(said))
"""


@tap.case
def without_a_gpu_the_functions_of_cuda_fail_or_have_nothing_to_do():
    result = subprocess.run(
        [sys.executable, '-c', NOTHING],
        env={**os.environ, 'GTORCH_FAKE_CUDA': 'devices=0'},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0 and int(result.stdout) >= 20, result.stdout + result.stderr


tap.main()
