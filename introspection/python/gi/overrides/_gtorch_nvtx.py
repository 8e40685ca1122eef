# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""GTorch.cuda.nvtx: marks and ranges in the timelines of NVIDIA's tools; they do nothing without a tool."""

from gi.overrides._gtorch_context import Decorator
from gi.overrides._gtorch_convert import GTorch, convert_bool, convert_whole


def _text(name, msg):
    if not isinstance(msg, str):
        raise TypeError(f'nvtx.{name}(): msg must be a text, not {type(msg).__name__}')
    return msg


def range_push(msg):
    """Begins a range of this thread. Returns how many it is inside of; a negative number without a tool."""
    return GTorch.nvtx_range_push(_text('range_push', msg))


def range_pop():
    """Ends the range of this thread that has begun last. Returns how many it was inside of."""
    return GTorch.nvtx_range_pop()


def range_start(msg):
    """Begins a range that any thread may end. Returns a number for range_end()."""
    return GTorch.nvtx_range_start(_text('range_start', msg))


def range_end(range_id):
    """Ends a range of range_start()."""
    GTorch.nvtx_range_end(convert_whole(range_id))


def mark(msg):
    """Marks this moment."""
    GTorch.nvtx_mark(_text('mark', msg))


class range(Decorator):  # noqa: A001, N801, the name is PyTorch's
    """with nvtx.range('step {}', i): a range for the block; also a decorator. The text is formatted with the further
    arguments."""

    def __init__(self, msg, *args, **kwargs):
        self._text = _text('range', msg).format(*args, **kwargs)

    def __enter__(self):
        range_push(self._text)

    def __exit__(self, *_exception):
        range_pop()
        return False


class emit_nvtx:  # noqa: N801, the name is PyTorch's
    """with torch.autograd.profiler.emit_nvtx(): each operation is a range, in whose name record_shapes=True has the
    shapes of the operands. Without a tool it does nothing. Waits for the GPU at both ends."""

    def __init__(self, enabled=True, record_shapes=False):
        self.enabled = convert_bool(enabled)
        self.record_shapes = convert_bool(record_shapes)

    def __enter__(self):
        if self.enabled:
            if GTorch.is_emit_nvtx_enabled():
                raise RuntimeError('emit_nvtx(): operations are ranges already, and blocks of it cannot be nested')
            _wait()
            GTorch.set_emit_nvtx(True, self.record_shapes)
        return self

    def __exit__(self, *_exception):
        if self.enabled:
            _wait()
            GTorch.set_emit_nvtx(False, False)
        return False


def _wait():
    """Waits for the current GPU, so that what was enqueued before is not taken for a part of the block."""
    if GTorch.DeviceManager.get_default().is_available():
        GTorch.Device.get_current(GTorch.DeviceType.CUDA).synchronize(None)


def _refused(name):
    def function(*_args, **_options):
        raise NotImplementedError(f'cuda.profiler.{name}(): functions of the runtime library of CUDA are not called; '
                                  'use gtorch.profiler, or names of ranges by gtorch.cuda.nvtx')

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Raises: a function of CUDA's runtime library, by which NVIDIA's tools are started and stopped."
    return function


def install(submodule, cuda):
    cuda.profiler = submodule('cuda.profiler', "The profiler of NVIDIA's tools, which is not supported.", {
        name: _refused(name) for name in ('init', 'profile', 'start', 'stop')
    })  # fmt: skip
    found = (mark, range, range_end, range_pop, range_push, range_start)
    cuda.nvtx = submodule('cuda.nvtx', "Names in NVIDIA's tools.", {one.__name__: one for one in found})
