# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Mixed precision, in the terms of torch.amp."""

import types

from gi.repository import GLib

from gi.overrides import override
from gi.overrides import _gtorch_ops as ops
from gi.overrides._gtorch_context import Decorator, enter, leave
from gi.overrides._gtorch_convert import (
    GTorch,
    RawTensor,
    convert_bool,
    convert_double,
    convert_dtype,
    convert_enum,
    convert_tensors,
    make_number,
)
from gi.overrides._gtorch_layers import ABSENT, bind, construct
from gi.overrides._gtorch_state import lists, pairs


def _device_type(value):
    if isinstance(value, GTorch.Device):
        return value.get_device_type()
    if isinstance(value, str):
        value = value.split(':')[0]
    return convert_enum(GTorch.DeviceType, value, 'autocast(): device_type')


class autocast(Decorator):  # noqa: N801, the name is PyTorch's
    """with GTorch.autocast('cuda'): each operation uses the dtype that suits it; also a decorator.

    @dtype is float16 or bfloat16; the default is float16 on GPUs and bfloat16 on the CPU."""

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        self._region = (_device_type(device_type), convert_dtype(dtype), convert_bool(enabled))
        self._cache_enabled = cache_enabled if cache_enabled is None else convert_bool(cache_enabled)

    def __enter__(self):
        caches = self._cache_enabled
        if caches is None:
            caches = GTorch.is_autocast_cache_enabled()
        return enter(self, GTorch.AutocastGuard.new(*self._region, caches))

    def __exit__(self, *_exception):
        return leave(self)


def is_autocast_enabled(device_type='cuda'):
    """Tells whether operations of this thread on such devices are cast now."""
    return RAW['is_autocast_enabled'](_device_type(device_type))


def get_autocast_dtype(device_type='cuda'):
    """Returns the dtype to which they are cast."""
    return RAW['get_autocast_dtype'](_device_type(device_type))


RawScaler = GTorch.GradScaler
OVERRIDES = 'gi.overrides.GTorch'  # override() finds the namespace through it


UNSCALED, STEPPED = range(2)
# By position, with their properties.
ARGUMENTS = {
    'device': None,
    'init_scale': 'scale_factor',
    'growth_factor': 'growth_factor',
    'backoff_factor': 'backoff_factor',
    'growth_interval': 'growth_interval',
    'enabled': 'enabled',
}


def _gradients(optimizer):
    params = (param for group in optimizer.get_param_groups() for param in group.get_params())
    return [param.grad.detach() for param in params if param.grad is not None]


def _are_finite(grads):
    """True if all flags are set. Waits for each device once."""
    flags = {}
    for grad in grads:
        flags.setdefault(grad.device.to_string(), []).append(ops.FUNCTIONS['isfinite'](grad).all())
    return all(GTorch.stack(found, 0).all().item() for found in flags.values())


def _has_own_step(optimizer):
    from gi.overrides._gtorch_optim import Optimizer

    return getattr(getattr(optimizer, 'step', None), '__func__', None) is not Optimizer.step


class GradScaler(RawScaler):
    """GradScaler(init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True)

    A device may come first, as in PyTorch, but has no effect: the scale is on the device of the first
    loss."""

    __module__ = OVERRIDES

    def __init__(self, *args, **options):
        own = {key: options.pop(key) for key in list(options) if key not in ARGUMENTS}
        values = bind(type(self).__name__, dict.fromkeys(ARGUMENTS, ABSENT), args, options)
        device = values.pop('device')
        if device not in (None, ABSENT):
            _device_type(device)
        given = {ARGUMENTS[key]: value for key, value in values.items() if value is not ABSENT}
        construct(self, {**own, **given})
        self.check()

    def scale(self, outputs):
        """Multiplies a loss by the scale; a list of losses gives a list."""
        if isinstance(outputs, RawTensor):
            return RawScaler.scale(self, outputs)
        if not isinstance(outputs, (list, tuple)):
            raise TypeError(f'scale() takes a tensor or a list of tensors, not {type(outputs).__name__}')
        return type(outputs)(RawScaler.scale_list(self, convert_tensors(outputs, 'outputs')))

    def unscale(self, optimizer):
        """Divides the gradients by the scale."""
        RawScaler.unscale(self, optimizer)
        self._stages()[optimizer] = UNSCALED

    unscale_ = unscale

    def step(self, optimizer, *args, **options):
        """Makes a step if all gradients are finite; @args are passed to a step() that the class defines
        in Python."""
        if not isinstance(optimizer, GTorch.Optimizer):
            raise TypeError(f'step() takes an optimizer, not {type(optimizer).__name__}')
        step = optimizer.step
        if not _has_own_step(optimizer) and not args and not options:
            return RawScaler.step(self, optimizer)
        if not self.is_enabled():
            return step(*args, **options)
        grads = _gradients(optimizer)
        if not grads:
            return RawScaler.step(self, optimizer)  # reports the error
        if self._stages().get(optimizer) == STEPPED:
            name = type(optimizer).__name__
            text = f'step: this {name} has made its step already since the last update'
            raise GLib.Error.new_literal(GTorch.error_quark(), text, GTorch.Error.INVALID)
        if self._stages().get(optimizer) != UNSCALED:
            self.unscale(optimizer)
        result = None
        if _are_finite(grads):
            result = step(*args, **options)
        else:
            self.emit('overflow', optimizer)
        self._stages()[optimizer] = STEPPED
        return result

    def step_async(self, optimizer, *args):
        """Makes the step asynchronously, for an optimizer whose class has no step() of its own: C makes
        the step."""
        if _has_own_step(optimizer):
            text = f'step_async: {type(optimizer).__name__} has a step() of its own in Python: use step()'
            raise GLib.Error.new_literal(GTorch.error_quark(), text, GTorch.Error.NOT_SUPPORTED)
        RawScaler.step_async(self, optimizer, *args)

    step_async.__wrapped__ = RawScaler.step_async  # awaitable() counts its arguments

    def _stages(self):
        """Returns the progress of each optimizer since the last update(), for those that C does not
        track."""
        return self.__dict__.setdefault('_stages_of', {})

    def update(self, new_scale=None):
        """Increases or reduces the scale, or sets it to the given one."""
        if new_scale is not None and not isinstance(new_scale, RawTensor):
            new_scale = make_number(convert_double(new_scale), GTorch.DType.FLOAT32)
        RawScaler.update(self, new_scale)
        self._stages().clear()

    def state_dict(self):
        """Returns the scaler's state, as numbers."""
        state = {name: value.item() for name, value in pairs(self.state_lists()).items()}
        whole = ('growth_interval', '_growth_tracker')
        return {name: int(value) if name in whole else value for name, value in state.items()}

    def load_state_dict(self, state):
        """Continues from the state of another scaler."""
        tensors = {
            name: value if isinstance(value, RawTensor) else make_number(value, GTorch.DType.FLOAT64)
            for name, value in state.items()
        }
        self.load_state_lists(*lists('load_state_dict', 'state', tensors))

    def is_enabled(self):
        """Tells whether the scaler is enabled."""
        return RawScaler.is_enabled(self)


def _devices():
    n = GTorch.DeviceManager.get_default().get_device_count()
    return [GTorch.Device.cpu()] + [GTorch.Device.cuda(i) for i in range(n)]


def _of_all_devices(name):
    """A setting that all devices share in PyTorch: here it is a property of each device."""

    def get(self):
        return getattr(_devices()[-1], name)

    def set_(self, value):
        for device in _devices():
            setattr(device, name, value)

    return property(get, set_)


def _precision(name):
    """'ieee', 'tf32' or 'bf16'."""

    def get(self):
        return getattr(_devices()[-1], name).value_nick

    def set_(self, value):
        for device in _devices():
            setattr(device, name, value)

    return property(get, set_)


class _Settings(types.ModuleType):
    """A module that only allows assignments to existing attributes."""

    @property
    def allow_tf32(self):
        """Whether float32 may be rounded to TF32."""
        return self.fp32_precision != 'ieee'

    @allow_tf32.setter
    def allow_tf32(self, value):
        self.fp32_precision = 'tf32' if convert_bool(value) else 'ieee'

    def __setattr__(self, name, value):
        if not name.startswith('__') and not hasattr(getattr(type(self), name, None), '__set__'):
            raise AttributeError(f'{self.__name__} has no setting {name!r}')
        super().__setattr__(name, value)


class _Group(types.ModuleType):
    """A module of such modules."""

    def __setattr__(self, name, value):
        if not name.startswith('__'):
            raise AttributeError(f'{self.__name__} has no setting {name!r}')
        super().__setattr__(name, value)


class _Matmul(_Settings):
    fp32_precision = _precision('matmul_precision')


class _Convolutions(_Settings):
    fp32_precision = _precision('conv_precision')
    benchmark = _of_all_devices('benchmark')
    deterministic = _of_all_devices('deterministic')


RAW = {name: getattr(GTorch, name) for name in ('is_autocast_enabled', 'get_autocast_dtype')}


def install(export, submodule, _ops):
    members = {
        'autocast': autocast,
        'is_autocast_enabled': is_autocast_enabled,
        'get_autocast_dtype': get_autocast_dtype,
    }
    for name, value in members.items():
        export(name, value)
    members['GradScaler'] = export('GradScaler', override(GradScaler))
    submodule('amp', 'Mixed precision.', members)
    parts = {}
    for name, kind, doc in (
        ('backends.cuda.matmul', _Matmul, 'Matrix products.'),
        ('backends.cudnn', _Convolutions, 'Convolutions.'),
    ):
        parts[name] = submodule(name, doc, {})
        parts[name].__class__ = kind
    cuda = submodule('backends.cuda', 'Settings of GPUs.', {'matmul': parts['backends.cuda.matmul']})
    cuda.__class__ = _Group
    submodule('backends', 'Settings.', {'cuda': cuda, 'cudnn': parts['backends.cudnn']}).__class__ = _Group
