# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The functions that pickles call. A process that reads one may not have loaded the library: this does so
first."""

import os
from contextlib import contextmanager

from gi.repository import GLib, GObject, GTorch

from gi.overrides._gtorch_convert import RawTensor, convert_device
from gi.overrides._gtorch_properties import convert


@contextmanager
def same_random_numbers():
    """Restores the random number generators after the block."""
    generator = GTorch.get_default_device().get_default_generator()
    before = generator.get_state()
    try:
        yield
    finally:
        generator.set_state(before)


def make(cls, values):
    """Creates an object of a class, or of the library's class of the name, without its __init__()."""
    if isinstance(cls, str):
        cls = getattr(GTorch, cls)
    specs = {spec.name: spec for spec in GObject.list_properties(cls)}
    given = {
        name.replace('-', '_'): convert(cls, specs[name], value) if isinstance(value, (str, tuple)) else value
        for name, value in values.items()
    }
    with same_random_numbers():
        made = cls.__new__(cls)
        GObject.Object.__init__(made, **given)
    return made


def tensor(data, dtype, shape, requires_grad, device, order=()):
    """Raises if there is no such device. The dimensions lie in memory in this order."""
    made = RawTensor.new_from_bytes(GLib.Bytes.new(data), GTorch.DType.from_name(dtype), shape)
    made = made.clone() if device == 'cpu' else made.to(device=device)
    if order:
        made = made.permute([order.index(dim) for dim in range(len(order))])
    return made.requires_grad_() if requires_grad else made


def size(values):
    from gi.overrides._gtorch_size import Size

    return Size(values)


def parameter(data, requires_grad):
    return GTorch.Parameter(data, requires_grad)


def shared(data, fds, is_parameter, requires_grad):
    """A tensor whose memory another process has, too: the bytes and file descriptors of its handle."""
    found = []
    try:
        for fd in fds:
            found.append(fd.detach())
        made = GTorch.TensorHandle.new_from_bytes(GLib.Bytes.new(data), found).open()
    finally:
        for fd in found:
            os.close(fd)
    if is_parameter:
        return GTorch.Parameter(made, requires_grad)
    return made.requires_grad_() if requires_grad else made


def generator(state, where=None):
    """Raises if there is no such device."""
    made = GTorch.Generator.new() if where is None else GTorch.Generator.new_for_device(convert_device(where))
    made.set_state(GLib.Bytes.new(state))
    return made


def group(params, learning_rate, weight_decay, settings, own=None):
    from gi.overrides._gtorch_groups import keep, list_model

    made = GTorch.ParamGroup.new(list_model(params), learning_rate, weight_decay)
    for name, values in settings.items():
        made.set_setting(name, values)
    for name, value in (own or {}).items():
        keep(made, name, value)
    return made


def device(name):
    return convert_device(name)


def packed_sequence(*parts):
    return GTorch.PackedSequence(*parts)


def tokenizer(content):
    return GTorch.Tokenizer.from_buffer(content)
