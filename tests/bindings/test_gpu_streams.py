#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs with several streams, as PyTorch's users write them; the checker finds those that lack an order."""

from gpus import elsewhere, equal, near, need, raises, tap, torch

cuda = torch.cuda
RACE = 'two streams use one tensor'


def is_a_race(program):
    """Whether the checker finds a race in a program, which must not fail otherwise."""
    status, text = elsewhere(program, GTORCH_CHECK='streams=fatal')
    assert (status != 0) == (RACE in text), text
    return status != 0


@tap.case
def work_goes_to_the_stream_of_a_block():
    model, batch = torch.nn.Linear(8, 4).cuda(), torch.randn(16, 8, device='cuda')
    stream = cuda.Stream()
    stream.wait_stream(cuda.current_stream())
    with cuda.stream(stream) as given:
        assert given is stream and cuda.current_stream() == stream
        output = model(batch)
    assert cuda.current_stream() == cuda.default_stream()
    stream.synchronize()
    assert stream.query() and output.shape == (16, 4)
    with cuda.StreamContext(None), stream:
        assert cuda.current_stream() == stream
    cuda.synchronize(device=0)


@tap.case
def one_stream_waits_for_another():
    first, second = cuda.Stream(), cuda.Stream(device='cuda:0', priority=-1)
    with cuda.stream(first):
        x = torch.randn(50, 50, device='cuda')
        y = x @ x.T
    with cuda.stream(second):
        z = torch.randn(50, 50, device='cuda')
        second.wait_stream(first)
        total = y + z
    second.synchronize()
    near(total, y.cpu() + z.cpu(), 1e-4)
    event = first.record_event()
    second.wait_event(event)
    assert second.record_event(event) is event


@tap.case
def streams_tell_what_they_are():
    stream = cuda.Stream(priority=-1)
    assert stream.priority == -1 and stream.device_index == 0 and stream.device_type == 'cuda'
    assert stream.device == torch.device('cuda:0') and stream.cuda_stream != 0
    assert repr(stream).startswith('<GTorch.cuda.Stream device=cuda:0 cuda_stream=0x')
    least, greatest = cuda.Stream.priority_range()
    assert least >= 0 > greatest and isinstance(stream, cuda.Stream)
    outside = cuda.ExternalStream(stream.cuda_stream, device=0)
    assert outside.cuda_stream == stream.cuda_stream
    assert cuda.get_stream_from_external(stream.cuda_stream).cuda_stream == stream.cuda_stream
    raises(TypeError, 'no argument', cuda.ExternalStream, stream.cuda_stream, flags=1)
    assert not cuda.is_current_stream_capturing()
    cuda.set_stream(stream)
    assert cuda.current_stream() == stream
    cuda.set_stream(cuda.default_stream())


@tap.case
def events_measure_time():
    begin, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    begin.record()
    x = torch.randn(100, 100, device='cuda')
    x = x @ x
    end.record()
    cuda.synchronize()
    assert begin.query() and begin.elapsed_time(end) >= 0 and begin.elapsed_time(end_event=end) >= 0
    raises(ValueError, 'without timing', cuda.Event().elapsed_time, end)
    blocking = cuda.Event(blocking=True)
    blocking.record(cuda.current_stream())
    blocking.synchronize()
    blocking.wait()
    raises(NotImplementedError, 'external', cuda.Event, external=True)
    general = torch.Event(device='cuda', enable_timing=True)
    general.record()
    general.synchronize()
    assert general.query()


@tap.case
def pinned_copies_overlap():
    host = torch.randn(100, 100).pin_memory()
    assert host.is_pinned()
    there = host.cuda(non_blocking=True)
    back = there.to('cpu', non_blocking=True)
    cuda.synchronize()
    near(back, host, 0)


START = '''
cuda = torch.device('cuda')
s = torch.cuda.Stream()
A = torch.empty((100, 100), device=cuda).normal_(0.0, 1.0)
'''


@tap.case
def a_sum_beside_its_operand_is_found():
    assert is_a_race(f'''{START}
with torch.cuda.stream(s):
    B = torch.sum(A)
''')
    assert not is_a_race(f'''{START}
s.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(s):
    B = torch.sum(A)
torch.cuda.current_stream().wait_stream(s)
print(B.item())
''')


@tap.case
def a_result_that_nobody_waits_for_is_found():
    program = '''
s, t = torch.cuda.Stream(), torch.cuda.Stream()
with torch.cuda.stream(s):
    x = torch.randn(20, 20, device='cuda')
    y = x @ x.T
with torch.cuda.stream(t):
    {}
    z = y + 1
'''
    assert is_a_race(program.format('pass'))
    for order in ('t.wait_stream(s)', 't.wait_event(s.record_event())', 's.synchronize()', 'torch.cuda.synchronize()'):
        assert not is_a_race(program.format(order)), order


LOSS = '''
model, x = torch.nn.Linear(4, 2).cuda(), torch.randn(3, 4, device='cuda')
side, s = torch.cuda.Stream(), torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    loss = model(x).pow(2).mean()
def use_grads():
    return [parameter.grad * 2 for parameter in model.parameters()]
'''


@tap.case
def gradients_are_used_where_backward_was_called():
    assert not is_a_race(f'''{LOSS}
with torch.cuda.stream(s):
    loss.backward()
    use_grads()
''')
    assert is_a_race(f'''{LOSS}
with torch.cuda.stream(s):
    loss.backward()
use_grads()
''')
    assert not is_a_race(f'''{LOSS}
with torch.cuda.stream(s):
    loss.backward()
torch.cuda.current_stream().wait_stream(s)
use_grads()
''')


@tap.case
def a_first_gradient_is_made_where_backward_is_called():
    assert not is_a_race(f'''{LOSS}
with torch.cuda.stream(s):
    loss.backward(gradient=torch.ones_like(loss))
''')
    assert is_a_race(f'''{LOSS}
first = torch.ones_like(loss)
with torch.cuda.stream(s):
    loss.backward(gradient=first)
''')
    assert not is_a_race(f'''{LOSS}
first = torch.ones_like(loss)
s.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(s):
    first.record_stream(s)
    loss.backward(gradient=first)
''')


@tap.case
def memory_that_comes_back_to_another_stream_is_no_race():
    assert not is_a_race('''
s = torch.cuda.Stream()
for _ in range(3):
    with torch.cuda.stream(s):
        x = torch.zeros(1000, device='cuda')
        del x
    y = torch.ones(1000, device='cuda')
    del y
''')


@tap.case
def streams_of_two_devices_are_ordered_by_events():
    need(2)
    there = cuda.Stream(device=1)
    x = torch.arange(4.0, device='cuda:0')
    with cuda.stream(there):
        assert cuda.current_device() == 1
        y = x.to('cuda:1') * 2
        event = there.record_event()
    assert cuda.current_device() == 0
    event.wait(cuda.current_stream(0))
    event.synchronize()
    equal(y, [0.0, 2.0, 4.0, 6.0])


if __name__ == '__main__':
    tap.main()
