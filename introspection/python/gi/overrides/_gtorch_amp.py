# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Mixed precision, in the terms of torch.amp."""

import functools
import warnings

from gi.repository import GLib

from gi.overrides import override
from gi.overrides import _gtorch_ops as ops
from gi.overrides._gtorch_context import Decorator, enter, leave
from gi.overrides._gtorch_convert import (
    DType,
    GTorch,
    RawTensor,
    convert_bool,
    convert_double,
    convert_dtype,
    convert_enum,
    convert_tensors,
    convert_whole,
    make_number,
)
from gi.overrides._gtorch_bind import ABSENT, bind
from gi.overrides._gtorch_layers import construct
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


class CudaAutocast(autocast):
    """autocast('cuda', ...), as GTorch.cuda.amp has it."""

    def __init__(self, enabled=True, dtype=DType.FLOAT16, cache_enabled=True):
        super().__init__('cuda', dtype, enabled, cache_enabled)


def is_autocast_available(device_type):
    """Tells whether operations on devices of this kind can be cast."""
    return device_type in ('cpu', 'cuda')


def is_autocast_enabled(device_type='cuda'):
    """Tells whether operations of this thread on such devices are cast now."""
    return RAW['is_autocast_enabled'](_device_type(device_type))


def get_autocast_dtype(device_type='cuda'):
    """Returns the dtype to which they are cast."""
    return RAW['get_autocast_dtype'](_device_type(device_type))


# --- functions with gradients of their own ---


def _context(args):
    """The context among the first arguments of forward() or backward(), with or without self before it."""
    for one in args[:2]:
        if isinstance(one, GTorch.FunctionContext):
            return one
    raise TypeError('custom_fwd() and custom_bwd() are for forward() and backward() of a Function')


def _cast(value, kind, dtype):
    """Converts the floating-point tensors of such devices in @value, but for float64."""
    if isinstance(value, RawTensor):
        casts = value.is_floating_point() and value.dtype != DType.FLOAT64 and value.device.type == kind
        return value.to(dtype) if casts else value
    if isinstance(value, dict):
        return {_cast(key, kind, dtype): _cast(one, kind, dtype) for key, one in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, '_fields'):
        return type(value)(_cast(one, kind, dtype) for one in value)
    return value


def custom_fwd(fwd=None, *, device_type, cast_inputs=None):
    """Decorates forward() of a Function. Without @cast_inputs it runs as its caller does, and custom_bwd() lets
    backward() run alike. With it, in a region of autocast, tensors are converted to that dtype and forward() runs
    outside."""
    kind, dtype = _device_type(device_type).value_nick, convert_dtype(cast_inputs)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=kind, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(*args, **kwargs):
        context, is_on = _context(args), is_autocast_enabled(kind)
        context._dtype = get_autocast_dtype(kind)
        context._fwd_used_autocast = is_on and cast_inputs is None
        if cast_inputs is None or not is_on:
            return fwd(*args, **kwargs)
        with autocast(kind, enabled=False):
            return fwd(*_cast(args, kind, dtype), **_cast(kwargs, kind, dtype))

    return forward


def custom_bwd(bwd=None, *, device_type):
    """Decorates backward() of a Function whose forward() is decorated by custom_fwd(): it runs with autocast if that
    did."""
    kind = _device_type(device_type).value_nick
    if bwd is None:
        return functools.partial(custom_bwd, device_type=kind)

    @functools.wraps(bwd)
    def backward(*args, **kwargs):
        context = _context(args)
        with autocast(kind, enabled=context._fwd_used_autocast, dtype=context._dtype):
            return bwd(*args, **kwargs)

    return backward


def cuda_custom_fwd(fwd=None, *, cast_inputs=None):
    """custom_fwd() for GPUs."""
    return custom_fwd(fwd, device_type='cuda', cast_inputs=cast_inputs)


def cuda_custom_bwd(bwd):
    """custom_bwd() for GPUs."""
    return custom_bwd(bwd, device_type='cuda')


def amp_definitely_not_available():
    """Tells whether there is no GPU."""
    return not GTorch.DeviceManager.get_default().is_available()


def cuda_members():
    """What there is in GTorch.cuda.amp."""

    class CudaGradScaler(GradScaler):
        """GradScaler('cuda', ...): here the scale is the first argument."""

        __module__ = OVERRIDES

        def __init__(self, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000,
                     enabled=True):
            super().__init__('cuda', init_scale, growth_factor, backoff_factor, growth_interval, enabled)

    CudaGradScaler.__name__ = CudaGradScaler.__qualname__ = 'GradScaler'
    return {
        'GradScaler': CudaGradScaler,
        'amp_definitely_not_available': amp_definitely_not_available,
        'autocast': CudaAutocast,
        'custom_bwd': cuda_custom_bwd,
        'custom_fwd': cuda_custom_fwd,
    }


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
    params = (param for group in GTorch.Optimizer.get_param_groups(optimizer) for param in group.get_params())
    return [param.grad.detach() for param in params if param.grad is not None]


def _are_finite(grads):
    """True if all flags are set. Waits for each device once."""
    flags = {}
    for grad in grads:
        flags.setdefault(grad.device.to_string(), []).append(ops.FUNCTIONS['isfinite'](grad).all())
    return all(GTorch.stack(found, 0).all().item() for found in flags.values())


def _has_own_step(optimizer):
    from gi.overrides._gtorch_optim import Optimizer
    from gi.overrides._gtorch_step_hooks import has_steps

    if isinstance(optimizer, Optimizer) and has_steps(optimizer):
        return True
    return getattr(getattr(optimizer, 'step', None), '__func__', None) is not Optimizer.step


class GradScaler(RawScaler):
    """GradScaler(init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True)

    A device may come first, as in PyTorch. The scale is on the device of the first loss, whatever it is; but a scaler
    that is made for 'cuda' where there is no GPU is disabled, with a warning."""

    __module__ = OVERRIDES

    def __init__(self, *args, **options):
        own = {key: options.pop(key) for key in list(options) if key not in ARGUMENTS}
        values = bind(type(self).__name__, dict.fromkeys(ARGUMENTS, ABSENT), args, options)
        device = values.pop('device')
        if device not in (None, ABSENT):
            kind = _device_type(device)
            is_there = kind != GTorch.DeviceType.CUDA or GTorch.DeviceManager.get_default().is_available()
            if not is_there and values['enabled'] in (ABSENT, True):
                warnings.warn('GradScaler(): there is no GPU that can be used, so the scaler is disabled', stacklevel=2)
                values['enabled'] = False
        given = {ARGUMENTS[key]: value for key, value in values.items() if value is not ABSENT}
        construct(self, {**own, **given})
        RawScaler.check(self)

    __init__.__text_signature__ = (
        "($self, device='cuda', init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, "
        'enabled=True)'
    )

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
        """Makes a step if all gradients are finite, and gives what the optimizer's step() gives; @args are passed to
        a step() that the class defines in Python."""
        if not isinstance(optimizer, GTorch.Optimizer):
            raise TypeError(f'step() takes an optimizer, not {type(optimizer).__name__}')
        step = optimizer.step
        if not _has_own_step(optimizer) and not args and not options:
            RawScaler.step(self, optimizer)
            return None  # what the step() of such an optimizer gives
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
        state = {name: value.item() for name, value in pairs(RawScaler.state_lists(self)).items()}
        whole = ('growth_interval', '_growth_tracker')
        return {name: int(value) if name in whole else value for name, value in state.items()}

    def get_scale(self):
        """The present scale, a number; waits for the device."""
        return RawScaler.get_scale(self)

    def get_growth_factor(self):
        """By what the scale grows."""
        return self.props.growth_factor

    def set_growth_factor(self, new_factor):
        """Sets by what the scale grows, a number above 1."""
        self.props.growth_factor = convert_double(new_factor)
        RawScaler.check(self)

    def get_backoff_factor(self):
        """By what the scale shrinks."""
        return self.props.backoff_factor

    def set_backoff_factor(self, new_factor):
        """Sets by what the scale shrinks, a number below 1."""
        self.props.backoff_factor = convert_double(new_factor)
        RawScaler.check(self)

    def get_growth_interval(self):
        """After how many steps without an overflow the scale grows."""
        return self.props.growth_interval

    def set_growth_interval(self, new_interval):
        """Sets after how many steps without an overflow the scale grows."""
        self.props.growth_interval = convert_whole(new_interval)
        RawScaler.check(self)

    def load_state_dict(self, state_dict):
        """Continues from the state of another scaler."""
        tensors = {
            name: value if isinstance(value, RawTensor) else make_number(value, GTorch.DType.FLOAT64)
            for name, value in state_dict.items()
        }
        RawScaler.load_state_lists(self, *lists('load_state_dict', 'state', tensors))

    def is_enabled(self):
        """Tells whether the scaler is enabled."""
        return RawScaler.is_enabled(self)


def devices():
    n = GTorch.DeviceManager.get_default().get_device_count()
    return [GTorch.Device.cpu()] + [GTorch.Device.cuda(i) for i in range(n)]


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
    members.update(custom_bwd=custom_bwd, custom_fwd=custom_fwd, is_autocast_available=is_autocast_available)
    submodule('amp', 'Mixed precision.', members)
