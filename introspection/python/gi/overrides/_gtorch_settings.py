# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Settings under PyTorch's names: printing, determinism, versions, inference_mode()."""

import math
import sys
import types

from gi.overrides._gtorch_amp import devices
from gi.overrides._gtorch_context import Decorator, enter, leave
from gi.overrides._gtorch_convert import GTorch, convert_bool, convert_whole

# precision, threshold, edgeitems and linewidth
PROFILES = {'default': (4, 1000, 3, 80), 'short': (2, 1000, 2, 80), 'full': (4, sys.maxsize, 3, 80)}
LONG = 2**31 - 1  # the greatest threshold
raw_get, raw_set = GTorch.get_print_options, GTorch.set_print_options


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """Sets how tensors are printed; None leaves a setting as it is, but for @sci_mode, where it lets the numbers
    decide."""
    now = raw_get()
    values = list(now[:4])
    if profile is not None:
        if profile not in PROFILES:
            raise ValueError(f'set_printoptions(): profile must be one of {", ".join(PROFILES)}, not {profile!r}')
        values = list(PROFILES[profile])
    for i, value in enumerate((precision, threshold, edgeitems, linewidth)):
        if value is not None:
            is_all = i == 1 and value == math.inf
            values[i] = LONG if is_all else convert_whole(value)
    values[1] = min(values[1], LONG)
    modes = {None: GTorch.SciMode.AUTO, False: GTorch.SciMode.NEVER, True: GTorch.SciMode.ALWAYS}
    if sci_mode not in modes:
        raise TypeError(f'set_printoptions(): sci_mode must be None, True or False, not {sci_mode!r}')
    raw_set(*values, modes[sci_mode])


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Lets each device choose only algorithms that give the same result each time."""
    if convert_bool(warn_only):
        raise NotImplementedError('use_deterministic_algorithms(): warn_only is not supported: operations either have '
                                  'a deterministic algorithm or fail')
    for device in devices():
        device.props.deterministic = convert_bool(mode)


def are_deterministic_algorithms_enabled():
    """Tells whether all devices choose only algorithms that give the same result each time."""
    return all(device.props.deterministic for device in devices())


def is_deterministic_algorithms_warn_only_enabled():
    """False: see use_deterministic_algorithms()."""
    return False


def set_deterministic_debug_mode(debug_mode):
    """'default' or 0 turns determinism off, 'error' or 2 on."""
    modes = {'default': False, 0: False, 'error': True, 2: True}
    if debug_mode in ('warn', 1):
        use_deterministic_algorithms(True, warn_only=True)
    if debug_mode not in modes:
        raise ValueError(f"set_deterministic_debug_mode(): debug_mode must be 'default' or 'error', not {debug_mode!r}")
    use_deterministic_algorithms(modes[debug_mode])


def get_deterministic_debug_mode():
    """0 or 2, see set_deterministic_debug_mode()."""
    return 2 if are_deterministic_algorithms_enabled() else 0


def inference_mode(mode=True):
    """with GTorch.inference_mode(): nothing in the block is recorded for gradients, and the tensors that it makes are
    inference tensors, which may not be changed in place outside, nor be saved for backward passes."""
    if callable(mode):  # a decorator without parentheses
        return _InferenceMode(True)(mode)
    return _InferenceMode(convert_bool(mode))


class _InferenceMode(Decorator):
    def __init__(self, mode):
        self._mode = mode

    def __enter__(self):
        enter(self, GTorch.inference_mode(self._mode))

    def __exit__(self, *_exception):
        leave(self)


def get_num_interop_threads():
    """1: operations of the CPU are computed one after the other in the thread that calls them."""
    return 1


def compile(model=None, **_options):
    """Is not there: operations are not compiled together. A graph or make_graphed_callables() saves the launches."""
    raise NotImplementedError(
        'compile(): there is no compiler; cuda.make_graphed_callables() replays the launches of a module as one'
    )


def set_flush_denormal(mode):
    """Returns False: denormal numbers are always kept."""
    convert_bool(mode)
    return False


FUNCTIONS = (
    are_deterministic_algorithms_enabled,
    compile,
    get_deterministic_debug_mode,
    get_num_interop_threads,
    inference_mode,
    is_deterministic_algorithms_warn_only_enabled,
    set_deterministic_debug_mode,
    set_flush_denormal,
    set_printoptions,
    use_deterministic_algorithms,
)


def _version():
    module = types.ModuleType('gi.repository.GTorch.version', 'Versions of GTorch and of CUDA.')
    module.__version__ = GTorch.get_build_info('version')
    module.debug = 'debug' in (GTorch.get_build_info('build-type') or '')
    module.cuda = (GTorch.get_build_info('cuda-compiler') or '') or None
    module.hip = None
    return module


def install(export, autograd):
    for function in FUNCTIONS:
        export(function.__name__, function)
    autograd.inference_mode = inference_mode
    version = _version()
    sys.modules[version.__name__] = version
    export('version', version)
    export('__version__', version.__version__)
    for name in ('inf', 'nan', 'pi', 'e'):
        export(name, getattr(math, name))
    export('newaxis', None)
