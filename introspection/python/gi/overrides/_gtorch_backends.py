# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""GTorch.backends: settings of devices and of the libraries that compute for them, in PyTorch's terms."""

import contextlib
import types

from gi.repository import GLib

from gi.overrides._gtorch_amp import devices
from gi.overrides._gtorch_convert import GTorch, convert_bool, convert_whole, cuda_device

LEVELS = {'baseline': 'DEFAULT', 'v3': 'AVX2', 'v4': 'AVX512'}


def _of_all_devices(name):
    """A setting that all devices share in PyTorch: here it is a property of each device."""

    def get(self):
        return getattr(devices()[-1], name)

    def set_(self, value):
        for device in devices():
            setattr(device, name, value)

    return property(get, set_)


def _precision(name):
    """'ieee', 'tf32' or 'bf16'."""

    def get(self):
        return getattr(devices()[-1], name).value_nick

    def set_(self, value):
        for device in devices():
            setattr(device, name, value)

    return property(get, set_)


def _permission(name):
    """A setting that allows less exact sums. It is kept, and not used: sums are in float32 whatever it says."""

    def get(self):
        return self.__dict__.get(f'__{name}', PERMISSIONS[name])

    def set_(self, value):
        self.__dict__[f'__{name}'] = convert_bool(value)

    return property(get, set_)


def _fixed(name, value, why):
    """A setting that has one value."""

    def set_(self, given):
        if given != value or type(given) is not type(value):
            raise NotImplementedError(f'{self.__name__}.{name} is always {value}: {why}')

    return property(lambda self: value, set_)


# What PyTorch allows before a program has set anything.
PERMISSIONS = {
    'allow_fp16_accumulation': False,
    'allow_fp16_reduced_precision_reduction': True,
    'allow_bf16_reduced_precision_reduction': True,
}


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


for _name in PERMISSIONS:
    setattr(_Matmul, _name, _permission(_name))


class _Cudnn(_Settings):
    fp32_precision = _precision('conv_precision')
    benchmark = _of_all_devices('benchmark')
    deterministic = _of_all_devices('deterministic')
    enabled = _fixed('enabled', True, 'cuDNN is used where it is installed')
    benchmark_limit = _fixed('benchmark_limit', 12, 'so many algorithms are tried')


class _PlanCache(_Settings):
    """The plans of Fourier transforms of one GPU."""

    allow_tf32 = None

    def __init__(self, name, device=None):
        super().__init__(name, _PlanCache.__doc__)
        self.__dict__['__device'] = device

    def _of(self):
        return cuda_device(self.__dict__['__device']).get_fft_plan_cache()

    size = property(lambda self: self._of().get_size())
    max_size = property(
        lambda self: self._of().get_max_size(), lambda self, value: self._of().set_max_size(convert_whole(value))
    )

    def clear(self):
        """Drops all plans."""
        self._of().clear()


class _PlanCaches(_PlanCache):
    """The plans of Fourier transforms of the current GPU; those of another one by its number or device."""

    def __getitem__(self, device):
        return _PlanCache(self.__name__, cuda_device(device))


def cudnn_version():
    """The version of cuDNN as a number, such as 90300 for 9.3.0; None if it is not installed."""
    try:
        major, minor, patch = (int(part) for part in GTorch.get_cuda_library_version('cudnn').split('.')[:3])
    except GLib.Error:
        return None
    return major * (10000 if major >= 9 else 1000) + minor * 100 + patch


def cudnn_is_available():
    """Tells whether cuDNN is installed."""
    return cudnn_version() is not None


@contextlib.contextmanager
def _kept(module, names, values):
    before = {name: getattr(module, name) for name in names}
    try:
        for name, value in zip(names, values):
            if value is not None:
                setattr(module, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


def _flags_of_cudnn(cudnn):
    def flags(enabled=True, benchmark=False, benchmark_limit=None, deterministic=False, allow_tf32=None):
        """A block with other settings."""
        names = 'enabled', 'benchmark', 'benchmark_limit', 'deterministic', 'allow_tf32'
        return _kept(cudnn, names, (enabled, benchmark, benchmark_limit, deterministic, allow_tf32))

    return flags


def cuda_is_built():
    """True: every build uses CUDA if it finds the driver; whether it has kernels, get_arch_list() tells."""
    return True


def _preferred(name, ours, others):
    """A function that names the library for something: there is one, and the others are refused."""

    def preferred(backend=None):
        if isinstance(backend, str):
            backend = backend.lower()
        if backend in others:
            raise NotImplementedError(f'{name}(): {backend!r} is not used, but {ours!r} always')
        if backend not in (None, 'default', ours):
            raise ValueError(f'{name}(): backend must be {ours!r} or None, not {backend!r}')
        return ours

    preferred.__name__ = preferred.__qualname__ = name
    preferred.__doc__ = f'Gives {ours!r}, the only library.'
    return preferred


def _choices_of_attention():
    """Functions that ask for and set which forms of scaled_dot_product_attention() may be used: all, always."""
    found = {}
    for name in ('flash', 'mem_efficient', 'math', 'cudnn'):

        def enable(enabled, name=name):
            """Raises if @enabled is False: the form of an attention is chosen by its operands."""
            if not convert_bool(enabled):
                raise NotImplementedError(f'enable_{name}_sdp(): forms of attention are chosen by their operands, and '
                                          'cannot be left out')

        found[f'{name}_sdp_enabled'] = _answer(f'{name}_sdp_enabled', True, 'True: the operands decide.')
        found[f'enable_{name}_sdp'] = enable
    return found


def _answer(name, value, doc):
    def answer():
        return value

    answer.__name__ = answer.__qualname__ = name
    answer.__doc__ = doc
    return answer


def get_cpu_capability():
    """The instructions that the CPU's loops use: 'DEFAULT', 'AVX2' or 'AVX512'."""
    return LEVELS[GTorch.get_build_info('cpu-level')]


def _absent(name, what):
    return {'is_available': _answer('is_available', False, f'False: {what}.')} | (
        {'is_built': _answer('is_built', False, f'False: {what}.')} if name == 'mps' else {}
    )


OTHERS = {
    'mps': "Apple's GPUs are not supported",
    'mkl': 'OpenBLAS is used',
    'mkldnn': 'the library has loops of its own',
    'openmp': 'the library has threads of its own',
}


def install(submodule):
    def part(name, doc, kind, members=None):
        made = submodule(f'backends.{name}', doc, members or {})
        made.__class__ = kind
        return made

    matmul = part('cuda.matmul', 'Matrix products.', _Matmul)
    cudnn = part('cudnn', 'Convolutions.', _Cudnn, {'is_available': cudnn_is_available, 'version': cudnn_version})
    cudnn.__dict__['flags'] = _flags_of_cudnn(cudnn)
    cuda = part('cuda', 'Settings of GPUs.', _Group, {
        'matmul': matmul,
        'cufft_plan_cache': _PlanCaches('gi.repository.GTorch.backends.cuda.cufft_plan_cache'),
        'is_built': cuda_is_built,
        **_choices_of_attention(),
        'preferred_linalg_library': _preferred('preferred_linalg_library', 'cusolver', ('magma',)),
        'preferred_blas_library': _preferred('preferred_blas_library', 'cublaslt', ('cublas', 'hipblaslt', 'ck')),
    })
    found = {name: part(name, what, _Group, _absent(name, what)) for name, what in OTHERS.items()}
    found['cpu'] = part('cpu', 'The processor.', _Group, {'get_cpu_capability': get_cpu_capability})
    submodule('backends', 'Settings.', {'cuda': cuda, 'cudnn': cudnn, **found}).__class__ = _Group
