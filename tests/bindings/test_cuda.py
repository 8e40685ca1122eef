#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Devices, streams, events, copies and their errors from Python, on the driver of tests/fake-cuda."""

import asyncio
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')
from gi.repository import Gio, GLib, GTorch  # noqa: E402

import tap  # noqa: E402
from tap import raises  # noqa: E402

cuda = GTorch.cuda


def fails(code, says, function, *args):
    error = raises(GLib.Error, says, function, *args)
    assert error.matches(GTorch.error_quark(), code), error


def elsewhere(program, **environment):
    """Returns the output of a program in another process."""
    result = subprocess.run(
        [sys.executable, '-c', program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return (result.stdout + result.stderr).strip()


@tap.case
def the_time_between_two_devices_is_unknown():
    first, last = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    first.record(cuda.Stream(0))
    last.record(cuda.Stream(1))
    first.synchronize()
    last.synchronize()
    fails(GTorch.Error.INVALID, 'recorded on another device than the first', first.elapsed_time, last)


@tap.case
def gpus_are_counted_and_described():
    assert cuda.is_available() and cuda.device_count() == 2
    assert cuda.get_device_name(1) == 'Fake 1' and cuda.get_device_capability() == (9, 0)
    properties = cuda.get_device_properties(0)
    assert properties.total_memory == 2**30 and properties.n_multiprocessors == 4
    assert GTorch.Device.get_default() == GTorch.Device('cuda:0')
    assert cuda.can_device_access_peer(0, 1)
    assert cuda.get_arch_list() == GTorch.get_arch_list()
    cuda.init()
    manager = GTorch.DeviceManager.get_default()
    assert [d.get_name() for d in list(manager)[1:]] == ['Fake 0', 'Fake 1']


@tap.case
def devices_have_names():
    for name, expected in (('cpu', 'cpu'), ('cuda', 'cuda'), ('cuda:1', 'cuda:1'), ('1', 'cuda:1')):
        assert str(GTorch.Device(name)) == expected
    assert str(GTorch.Device(1)) == str(GTorch.Device('cuda', 1)) == str(GTorch.Device('cuda', index=1)) == 'cuda:1'
    x = GTorch.ones([2], device=1)
    assert x.get_device_index() == x.cuda(1).get_device_index() == x.cpu().to(1).get_device_index() == 1
    assert x.cpu().get_device_index() == -1
    for wrong in (True, 1.0, x):
        try:
            GTorch.zeros([2], device=wrong)
        except TypeError as error:
            assert 'device' in str(error), error
        else:
            raise AssertionError(wrong)
    fails(GTorch.Error.DEVICE, 'cuda:7', GTorch.Device, 7)
    for negative in (-1, -2):
        for take in (GTorch.Device, x.to, x.cuda, lambda index: GTorch.zeros([2], device=index)):
            try:
                take(negative)
            except ValueError as error:
                assert f'{negative} is no number of a GPU' in str(error), error
            else:
                raise AssertionError(negative)
    fails(GTorch.Error.DEVICE, 'cuda:7', GTorch.Device, 'cuda:7')
    fails(GTorch.Error.DEVICE, 'abacus', GTorch.Device, 'abacus')


@tap.case
def without_a_gpu_the_driver_explains_why():
    program = 'import gi; gi.require_version("GTorch", "1"); from gi.repository import GTorch; '
    program += 'GTorch.init(); print(GTorch.cuda.is_available()); GTorch.cuda.init()'
    for driver, says in (('devices=0', 'CUDA_ERROR_NO_DEVICE'), ('version=11080', 'at least 12.0')):
        text = elsewhere(program, GTORCH_FAKE_CUDA=driver)
        assert text.startswith('False') and says in text, text


@tap.case
def the_current_device_nests():
    def names():
        return str(GTorch.Device('cuda').resolve()), cuda.current_device()

    x = GTorch.ones([2], device='cuda:0')
    with cuda.device(1):
        assert names() == ('cuda:1', 1)
        with cuda.device('cuda:0'):
            assert names() == ('cuda:0', 0)
        assert names() == ('cuda:1', 1)
        assert str((x + x).device) == 'cuda:0'
        assert str(GTorch.Stream(None).get_device()) == 'cuda:1'
    assert names() == ('cuda:0', 0)
    try:
        with cuda.device(1):
            raise KeyError
    except KeyError:
        assert names() == ('cuda:0', 0)
    cuda.set_device(1)
    assert names() == ('cuda:1', 1)
    cuda.set_device(-1)
    with cuda.device(-1), cuda.device(None):
        assert names() == ('cuda:1', 1)
    cuda.set_device(0)
    with GTorch.Device('cuda:1'):
        assert str(GTorch.zeros([2]).device) == 'cuda:1'
    assert str(GTorch.zeros([2]).device) == 'cpu'


@tap.case
def tensors_of_two_devices_do_not_meet():
    x, y = GTorch.ones([2, 3], device='cuda:0'), GTorch.ones([3], device='cuda:1')
    for other, says in ((y, '“other” of shape [3] is on cuda:1'), (y.to('cpu'), '“other” of shape [3] is on cpu')):
        fails(GTorch.Error.DEVICE_MISMATCH, says, lambda other=other: x + other)
    half = GTorch.tensor(0.5)
    assert (x * half).sum().item() == 3 and (half - x).sum().item() == -3
    fails(GTorch.Error.DEVICE_MISMATCH, '“self” of shape [] is on cpu', lambda: half.add_(x[0, 0]))


@tap.case
def streams_become_current_for_a_block():
    stream, other = GTorch.Stream('cuda:0', -1), GTorch.Stream('cuda:1')
    default = cuda.default_stream(0)
    assert stream.get_priority() == -1 and not stream.is_default() and default.is_default()
    with stream, other:
        assert cuda.current_stream(0) == stream and cuda.current_stream(1) == other
        with cuda.stream(default):
            assert cuda.current_stream(0) == default
    assert cuda.current_stream(0) == default
    assert stream.run(lambda s, *_: s == cuda.current_stream(0))
    with stream:
        x = GTorch.ones([100], device='cuda:0').neg_()
    default.wait_stream(stream)
    assert (x + 1).sum().item() == 0
    stream.synchronize()
    assert stream.query()
    stream.props.auto_sync = True
    assert stream.get_auto_sync()


@tap.case
def events_measure_and_order():
    start, end = (GTorch.Event(enable_timing=True) for _ in range(2))
    x = GTorch.ones([100], device='cuda:0')
    with cuda.default_stream(0):
        start.record(cuda.default_stream(0))
        x.neg_()
        end.record(cuda.default_stream(0))
    end.synchronize()
    assert end.query() and start.elapsed_time(end) >= 0
    plain = GTorch.Event()
    plain.record(cuda.default_stream(0))
    fails(GTorch.Error.INVALID, 'without timing', plain.elapsed_time, end)
    stream = GTorch.Stream('cuda:0')
    stream.wait_event(plain)
    assert stream.record_event() is not None


@tap.case
def completed_is_emitted_in_the_main_loop():
    event, loop, seen = GTorch.Event(), GLib.MainLoop(), []
    event.connect('completed', lambda *_: (seen.append(GLib.MainContext.default().is_owner()), loop.quit()))
    GTorch.ones([100], device='cuda:0').neg_()
    event.record(cuda.default_stream(0))
    assert not seen
    GLib.timeout_add_seconds(20, loop.quit)
    loop.run()
    assert seen == [True]
    event.create_source(None).destroy()


@tap.case
def a_timer_measures_a_block():
    with GTorch.Timer(cuda.default_stream(0)) as timer:
        GTorch.ones([100], device='cuda:0').neg_()
    assert timer.elapsed_ms >= 0
    fails(GTorch.Error.INVALID, 'not started', GTorch.Timer().stop)


@tap.case
def waits_can_be_awaited():
    async def main():
        x = GTorch.arange(100, dtype=GTorch.float32).to('cuda:0')
        stream = GTorch.Stream('cuda:0')
        with stream:
            stream.wait_stream(cuda.default_stream(0))
            y = x * 2
            later = y[-1].item_async()
            there = y.to_async('cpu')
            y.neg_()
        assert await later == 198.0
        host = await there
        assert host.is_pinned() and host.sum().item() == 9900
        assert await (x > 50).sum().item_async() == 49
        target = GTorch.zeros([100], dtype=GTorch.float64)
        assert await target.copy_async(x)
        assert target[99].item() == 99
        assert (await host.to_async('cuda:1')).device == GTorch.Device('cuda:1')
        timer = GTorch.Timer(stream)
        timer.start()
        assert await timer.wait() >= 0
        event = GTorch.Event()
        event.record(stream)
        assert await event.wait_async() and await stream.wait()
        stopped = Gio.Cancellable()
        stopped.cancel()
        try:
            await x.to_async('cpu', stopped)
        except GLib.Error as error:
            return error.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CANCELLED)
        return False

    assert asyncio.run(asyncio.wait_for(main(), 60))


@tap.case
def pinned_copies_are_never_read_early():
    x = GTorch.arange(1000, dtype=GTorch.float32).to('cuda:0')
    host = GTorch.zeros([1000]).pin_memory()
    x.neg_()
    host.copy_(x, non_blocking=True)
    assert host[999].item() == -999
    x.copy_(host.neg_(), non_blocking=True)
    assert x[999].item() == 999
    there = x.to('cpu', non_blocking=True)
    assert there.is_pinned() and there[999].item() == 999
    assert x.to('cpu', GTorch.int32, True).tolist()[999] == 999
    assert x.cpu(non_blocking=True)[998].item() == 998
    assert there.cuda(1, non_blocking=True)[999].item() == 999
    assert x.to(x, False, True) is not x and x.to(GTorch.float32, copy=False) is x


OTHER = '''
import sys, gi
gi.require_version("GTorch", "1")
from gi.repository import GTorch
event = GTorch.Event.from_ipc_handle("cuda:0", bytes.fromhex(sys.argv[1]))
event.synchronize()
print(event.query())
'''


@tap.case
def an_event_is_shared_with_another_process():
    event = GTorch.Event(interprocess=True)
    event.record(cuda.default_stream(0))
    handle = event.ipc_handle()
    assert len(handle) == 64
    event.synchronize()
    other = [sys.executable, '-c', OTHER, handle.hex()]
    assert subprocess.run(other, capture_output=True, text=True, check=True).stdout == 'True\n'
    fails(GTorch.Error.INVALID, '64 bytes, not 3', GTorch.Event.from_ipc_handle, 0, b'abc')
    fails(GTorch.Error.INVALID, 'interprocess', GTorch.Event().ipc_handle, 0)
    both = GTorch.Event(enable_timing=True, interprocess=True)
    fails(GTorch.Error.INVALID, 'exclude', both.record, cuda.default_stream(0))


def options_by_parse_options(arguments):
    return GTorch.parse_options(arguments)


def options_by_context(arguments):
    context = GLib.OptionContext('')
    context.set_help_enabled(False)
    context.set_ignore_unknown_options(True)
    context.add_group(GTorch.get_option_group())
    return context.parse(['program', *arguments])[1:]


def options_by_application(arguments):
    devices = []
    app = Gio.Application(flags=Gio.ApplicationFlags.NON_UNIQUE | Gio.ApplicationFlags.HANDLES_OPEN)
    GTorch.add_options(app)
    app.connect('activate', lambda _app: devices.append(GTorch.get_default_device()))
    app.connect('open', lambda _app, files, *_: devices.extend(f.get_basename() for f in files))
    assert app.run(['program', *arguments]) == 0
    return [name for name in devices if isinstance(name, str)]


@tap.case
def options_choose_the_device():
    threads = GTorch.get_num_threads()
    for parse in (options_by_parse_options, options_by_context, options_by_application):
        for arguments, rest, device in (
            ([], [], 'cuda:0'),
            (['--device=cuda:1'], [], 'cuda:1'),
            (['--disable-cuda', 'rest'], ['rest'], 'cpu'),
            (['--disable-cuda', '--device', 'cuda:1'], [], 'cpu'),
            (['--device=cuda:1', '--threads=1', 'a', 'b'], ['a', 'b'], 'cuda:1'),
        ):
            GTorch.set_default_device(None)
            assert parse(arguments) == rest, (parse, arguments)
            assert GTorch.get_default_device() == GTorch.Device(device), (parse, arguments)
        assert GTorch.get_num_threads() == 1
        GTorch.set_num_threads(threads)
    for parse in (options_by_parse_options, options_by_context):
        fails(GTorch.Error.DEVICE, 'cuda:7', parse, ['--device=cuda:7'])
        GTorch.set_default_device(GTorch.Device('cuda:1'))
        assert parse(['--help', '-x', '--other=1']) == ['--help', '-x', '--other=1'], parse
        assert GTorch.get_default_device() == GTorch.Device('cuda:1')  # the program has set it
    assert GTorch.parse_options(['a', '--', '--disable-cuda']) == ['a', '--', '--disable-cuda']
    assert GTorch.get_default_device() == GTorch.Device('cuda:1')
    GTorch.set_default_device(None)


@tap.case
def streams_without_order_are_reported():
    program = '''
import gi
gi.require_version("GTorch", "1")
from gi.repository import GTorch
x = GTorch.ones([7], device="cuda:0")
with GTorch.Stream("cuda:0"):
    x.neg_()
'''
    text = elsewhere(program, GTORCH_CHECK='streams')
    assert 'two streams use one tensor' in text and '[7]' in text and text.count('called by') == 1, text
    assert '; and by ' in text, text


@tap.case
def operations_can_be_made_to_wait():
    program = '''
import gi
gi.require_version("GTorch", "1")
from gi.repository import GTorch
x = GTorch.ones([7], device="cuda:0").neg_()
print(GTorch.get_launch_blocking(), GTorch.cuda.default_stream(0).query())
'''
    assert elsewhere(program, CUDA_LAUNCH_BLOCKING='1', GTORCH_FAKE_CUDA='seed=2') == 'True True'
    assert elsewhere(program, GTORCH_FAKE_CUDA='seed=2') == 'False False'


class Producer:
    """A tensor of another library, which records the calls of its methods."""

    def __init__(self, tensor, device=None, takes_version=True):
        self.tensor, self.device, self.takes_version, self.asked = tensor, device, takes_version, []

    def __dlpack_device__(self):
        return self.device or self.tensor.__dlpack_device__()

    def __dlpack__(self, stream=None, **options):
        if options and not self.takes_version:
            raise TypeError(f'no arguments {options}')
        self.asked.append((stream, options.get('max_version')))
        return self.tensor.__dlpack__(stream=stream, **options)


@tap.case
def memory_of_gpus_is_shared_through_dlpack():
    for index in range(2):
        device = GTorch.Device('cuda', index)
        for source in (
            lambda x: x,
            lambda x: x.__dlpack__(),
            lambda x: x.__dlpack__(max_version=(1, 0)),
            lambda x: x.__dlpack__(max_version=(1, 2), dl_device=(2, index), copy=False),
            lambda x: Producer(x),
            lambda x: Producer(x, takes_version=False),
        ):
            x = GTorch.arange(6, dtype='float64').view(2, 3).to(device)
            shown = GTorch.from_dlpack(source(x.T))
            assert shown.device == device and shown.shape == (3, 2) and shown.dtype == GTorch.float64
            assert shown.data_ptr() == x.data_ptr() and shown.stride() == (1, 3)
            x.mul_(2)
            del x
            assert shown.tolist() == [[0, 6], [2, 8], [4, 10]]
            shown.add_(1)
            assert GTorch.as_tensor(Producer(shown)).data_ptr() == shown.data_ptr()
        assert x_copied(device)
        empty = GTorch.from_dlpack(GTorch.zeros(0, 3, device=device))
        assert empty.device == device and empty.shape == (0, 3)


def x_copied(device):
    x = GTorch.ones(3, device=device)
    copied = GTorch.from_dlpack(x.__dlpack__(copy=True))
    x.zero_()
    return copied.tolist() == [1, 1, 1] and copied.data_ptr() != x.data_ptr()


@tap.case
def a_producer_is_told_the_stream():
    producer = Producer(GTorch.ones(3, device='cuda:1'))
    GTorch.from_dlpack(producer)
    usual = GTorch.cuda.default_stream(1).get_address() or 1
    with GTorch.Stream('cuda:1') as stream:
        GTorch.from_dlpack(producer)
    assert producer.asked == [(usual, (1, 1)), (stream.get_address(), (1, 1))], producer.asked
    host = Producer(GTorch.ones(3, device='cpu'))
    GTorch.from_dlpack(host)
    assert host.asked == [(None, (1, 1))], host.asked


@tap.case
def a_consumer_names_its_stream():
    theirs = GTorch.Stream('cuda:0')
    x = GTorch.ones(1000, device='cuda:0')
    for stream in (None, -1, 1, 2, theirs.get_address()):
        x.add_(1)
        capsule = x.__dlpack__(stream=stream)
        consumer = theirs if stream != 1 else GTorch.Stream.new_from_address(x.device, 0)
        if stream == -1:
            consumer.wait_stream(GTorch.cuda.default_stream(0))
        with consumer:
            seen = GTorch.from_dlpack(capsule) + 0
        consumer.synchronize()
        assert seen.tolist() == x.tolist(), stream
    for wrong in (0, -2):
        try:
            x.__dlpack__(stream=wrong)
            raise AssertionError(f'{wrong} was taken')
        except ValueError as error:
            assert f'{wrong} is no stream' in str(error), error
    fails(GTorch.Error.DEVICE_MISMATCH, 'does not belong to cuda:1', GTorch.Stream.new_from_address,
          GTorch.Device('cuda:1'), theirs.get_address())
    other = GTorch.Stream.new_from_address(GTorch.Device('cuda:0'), theirs.get_address())
    assert other.get_address() == theirs.get_address()


@tap.case
def a_missing_gpu_has_no_memory():
    import ctypes

    x = GTorch.ones(3, device='cuda:0')
    address = x.export_dlpack(False, False, None)
    # the device index, behind the address and the device type
    number = ctypes.c_int32.from_address(address + 12)
    assert number.value == 0
    for wrong, code, says in (
        (1, GTorch.Error.FORMAT, 'no memory of cuda:1'),
        (9, GTorch.Error.NOT_SUPPORTED, 'GPU of number 9'),
        (-1, GTorch.Error.NOT_SUPPORTED, 'GPU of number -1'),
    ):
        number.value = wrong
        fails(code, says, GTorch.Tensor.import_dlpack, address, False)
    number.value = 0
    assert GTorch.Tensor.import_dlpack(address, False).tolist() == [1, 1, 1]


if __name__ == '__main__':
    tap.main()
