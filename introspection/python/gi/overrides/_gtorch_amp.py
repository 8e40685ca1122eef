# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Mixed precision, in the words of torch.amp."""

from contextlib import ContextDecorator

from gi.overrides._gtorch_convert import GTorch, convert_dtype, convert_enum


def _device_type(value):
    if isinstance(value, GTorch.Device):
        return value.get_device_type()
    if isinstance(value, str):
        value = value.split(':')[0]
    return convert_enum(GTorch.DeviceType, value)


class autocast(ContextDecorator):  # noqa: N801, the name is PyTorch's
    """with GTorch.autocast('cuda'): each operation takes the dtype that suits it; a decorator as well.

    @dtype is float16 or bfloat16; by itself float16 on GPUs and bfloat16 on the CPU."""

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        self._region = (_device_type(device_type), convert_dtype(dtype), bool(enabled))
        self._cache_enabled = cache_enabled
        self._guards = []

    def __enter__(self):
        caches = self._cache_enabled
        if caches is None:
            caches = GTorch.is_autocast_cache_enabled()
        self._guards.append(GTorch.AutocastGuard.new(*self._region, caches))
        return self

    def __exit__(self, *_exception):
        self._guards.pop().end()
        return False


def is_autocast_enabled(device_type='cuda'):
    """Whether operations of this thread on such devices are cast now."""
    return RAW['is_autocast_enabled'](_device_type(device_type))


def get_autocast_dtype(device_type='cuda'):
    """The dtype to which they are cast."""
    return RAW['get_autocast_dtype'](_device_type(device_type))


RAW = {name: getattr(GTorch, name) for name in ('is_autocast_enabled', 'get_autocast_dtype')}


def install(export, submodule, _ops):
    members = {
        'autocast': autocast,
        'is_autocast_enabled': is_autocast_enabled,
        'get_autocast_dtype': get_autocast_dtype,
    }
    for name, value in members.items():
        export(name, value)
    submodule('amp', 'Mixed precision.', members)
