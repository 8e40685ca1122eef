# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""GTorch for Python: the parts that introspection cannot express, in PyTorch's terms.

The library is bound by introspection; this adds operators, indexing, defaults, keyword arguments and
protocols. The C accelerator, if it was built, implements the same names faster; GTORCH_NO_MIXIN=1 in the
environment disables it.
"""

import sys
import types

from gi.overrides import override
from gi.repository import GLib

from gi.overrides import _gtorch_absent as absent
from gi.overrides import _gtorch_aliases as aliases
from gi.overrides import _gtorch_arguments as arguments
from gi.overrides import _gtorch_callbacks as callbacks
from gi.overrides import _gtorch_create as create
from gi.overrides import _gtorch_dtypes as dtypes
from gi.overrides import _gtorch_exceptions as exceptions
from gi.overrides import _gtorch_factors as factors
from gi.overrides import _gtorch_facts as facts
from gi.overrides import _gtorch_forms as forms
from gi.overrides import _gtorch_later as later
from gi.overrides import _gtorch_ops as ops
from gi.overrides import _gtorch_overloads as overloads
from gi.overrides import _gtorch_place as place
from gi.overrides._gtorch_convert import DType, GTorch, RawTensor, convert_dtype
from gi.overrides._gtorch_mixin import mixin
from gi.overrides._gtorch_properties import import_later, name_functions
from gi.overrides._gtorch_tensor import PythonMethods, TensorMethods, extra_methods

__all__ = []
_namespace = sys.modules[later.NAME]
type(_namespace).__getattr__, type(_namespace).__dir__ = later.find, later.names
later.Finder(later.NAME)


def export(name, value):
    """Puts @value into the namespace."""
    globals()[name] = value
    __all__.append(name)
    setattr(_namespace, name, value)
    return value


def __getattr__(name):
    """Finds what is made when it is first named."""
    if not name.startswith('__') and hasattr(_namespace, name):
        return getattr(_namespace, name)
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}', name=name)


def submodule(name, doc, members):
    """Creates GTorch.name, which can be imported, too."""
    module = types.ModuleType(f'gi.repository.GTorch.{name}', doc)
    module.__dict__.update(members)
    sys.modules[module.__name__] = module
    outer, _, inner = name.rpartition('.')
    if not outer:
        export(name, module)
    elif f'gi.repository.GTorch.{outer}' in sys.modules:  # a function of the same name is before it
        sys.modules[f'gi.repository.GTorch.{outer}'].__dict__.setdefault(inner, module)
    return module


def _dtype_text(self):
    return f'torch.{DType.get_name(self)}' if self != DType.NONE else 'GTorch.DType.NONE'


def _no_arithmetic(self, *_others):
    raise TypeError(f'{self} is a dtype, with which nothing can be computed')


TWO = ('add', 'sub', 'mul', 'truediv', 'floordiv', 'mod', 'divmod', 'pow', 'lshift', 'rshift', 'and', 'or', 'xor')
for _name in TWO:
    setattr(DType, f'__{_name}__', _no_arithmetic)
    setattr(DType, f'__r{_name}__', _no_arithmetic)
for _name in ('neg', 'pos', 'abs', 'invert', 'float'):
    setattr(DType, f'__{_name}__', _no_arithmetic)
DType.__repr__ = DType.__str__ = _dtype_text
DType._repr_pretty_ = lambda self, printer, _cycle: printer.text(repr(self))  # what prints ints computes with them
for _name, _raw in (
    ('is_floating_point', DType.is_floating_point),
    ('is_complex', DType.is_complex),
    ('is_signed', DType.is_signed),
    ('itemsize', DType.get_size),
):
    setattr(DType, _name, property(lambda self, raw=_raw: raw(self)))
for _value in DType.__enum_values__.values():
    if _value != DType.NONE:
        export(DType.get_name(_value), _value)
export('double', DType.FLOAT64)
export('half', DType.FLOAT16)
export('long', DType.INT64)


def _found_methods():
    """The methods of tensors."""
    return {**ops.METHODS, **forms.METHODS, **factors.METHODS, **extra_methods()}


def _lenient_method(name, value):
    """A method with all its arguments."""
    return arguments.lenient(name, value) if callable(value) and not name.startswith('__') else value


def _tensor_class():
    members = _found_methods()
    bases = (TensorMethods, RawTensor)
    if mixin is None:
        bases = (PythonMethods, *bases)
    else:
        bases = (mixin.TensorMixin, *bases)
        own = vars(mixin.TensorMixin)
        members = {k: v for k, v in members.items() if k not in own or k in REPLACED}
    members = {k: _lenient_method(k, v) for k, v in members.items()}
    members.update(__module__=__name__, __hash__=TensorMethods.__hash__, __doc__=RawTensor.__doc__)
    for name in ('split', *arguments.FORMATTED):
        if hasattr(TensorMethods, name):
            members[name] = arguments.lenient(name, getattr(TensorMethods, name))
    return type(RawTensor)('Tensor', bases, members)


# These accept more kinds of arguments than the operation of the name.
REPLACED = (
    'allclose',
    *overloads.METHODS,
    'clamp',
    'clamp_',
    'clamp_max',
    'clamp_max_',
    'clamp_min',
    'clamp_min_',
    'equal',
    'hardtanh',
    'hardtanh_',
    'imag',
    'lerp',
    'lerp_',
    'max',
    'median',
    'min',
    'nanmedian',
    'normal_',
    'rand_like',
    'randn_like',
    'real',
    'split',
    'squeeze',
    'to',
    'to_device',
    'uniform_',
)

Tensor = export('Tensor', override(_tensor_class()))
if mixin is not None:
    _members = tuple(DType.__enum_values__[i] for i in range(len(DType.__enum_values__)))
    # What replaces a method of the accelerator calls it in turn, and so is none of the functions that this calls.
    class _Fallbacks(dict):
        """What the accelerator calls for arguments that it leaves to Python, made when it is first called."""

        _found = {name: value for name, value in _found_methods().items() if name not in REPLACED}

        def __missing__(self, name):
            value = self._found[name] if name in self._found else ops.METHODS[name]
            self[name] = value = _lenient_method(name, value)
            return value

    _fallbacks = _Fallbacks(vars(PythonMethods))
    has_hook = mixin.set_up(Tensor, _fallbacks, _members, RawTensor.new_from_ints([0], [], 0, None))



_operations = {**ops.FUNCTIONS, **forms.FUNCTIONS, **factors.FUNCTIONS, **overloads.FUNCTIONS}


def _make_operation(name):
    """The function of an operation."""
    function = _operations[name]
    method = getattr(Tensor, name, None) if name in ops.METHODS and name not in overloads.FUNCTIONS else None
    if method is None:
        return export(name, arguments.described(arguments.lenient(name, function)))
    if isinstance(method, property):  # real and imag are attributes of tensors
        method = arguments.lenient(name, function)
    return export(name, arguments.function_of(name, method))


later.FUNCTIONS.update(dict.fromkeys(_operations, _make_operation))
# The methods as functions, for languages that free callbacks together with the object whose method got
# them.
for _name in ('hook', 'post_accumulate_grad_hook'):
    export(f'register_tensor_{_name}', getattr(Tensor, f'register_{_name}'))
for _name in ('as_tensor', 'asarray', 'from_dlpack', 'from_numpy', 'frombuffer'):
    export(_name, getattr(create, _name))
for _name in ('tensor', 'arange', 'full', 'normal', 'randint'):
    later.FUNCTIONS.pop(_name, None)
    export(_name, arguments.described(arguments.lenient(_name, getattr(create, _name))))
for _name in ('channels_last', 'channels_last_3d', 'contiguous_format', 'preserve_format', 'strided'):
    export(_name, getattr(arguments, _name))
aliases.install(export, Tensor, _namespace)
dtypes.install(export, Tensor)
facts.install_attributes(Tensor)
callbacks.install_methods('Tensor')
Tensor.new_tensor = create.new_tensor


def _taking_dtypes(raw, *positions):
    """@raw, in which PyGObject would take any int for a dtype."""

    def call(*args):
        return raw(*(convert_dtype(arg) if i in positions else arg for i, arg in enumerate(args)))

    call.__name__ = call.__qualname__ = raw.__name__
    call.__doc__ = raw.__doc__
    return call


for _name in ('get_name', 'get_size', 'is_complex', 'is_floating_point', 'is_signed', 'promote'):
    if _name in vars(DType) and not isinstance(vars(DType)[_name], property):
        setattr(DType, _name, _taking_dtypes(vars(DType)[_name], *((0, 1) if _name == 'promote' else (0,))))
Tensor.view_dtype = _taking_dtypes(RawTensor.view_dtype, 1)
for _name in ('new_from_bytes', 'new_from_doubles', 'new_from_floats', 'new_from_ints'):
    _position = 1 if _name == 'new_from_bytes' else 2
    setattr(Tensor, _name, staticmethod(_taking_dtypes(getattr(RawTensor, _name), _position)))
for _value in (Tensor, TensorMethods, PythonMethods):
    name_functions(_value, 'Tensor.')


def _collect(_manager, _device, _n_bytes):
    import gc

    gc.collect()


# Only objects in cycles wait for Python's garbage collector, but those may hold large tensors.
GTorch.DeviceManager.get_default().connect('memory-pressure', _collect)
later.FUNCTIONS.update(dict.fromkeys(('save', 'load'), 'gi.overrides._gtorch_serialization'))


def _set_default_dtype(raw):
    def set_default_dtype(dtype):
        """Sets the dtype of tensors that are made of numbers with a fraction, and returns the former one."""
        try:
            return raw(dtype)
        except GLib.Error as error:
            raise exceptions.of_kind(TypeError, error) from None

    return set_default_dtype


# What takes dtypes beside the operations, and where.
TAKING_DTYPES = {
    'autocast_run': (1,),
    'dtype_get_name': (0,),
    'dtype_get_size': (0,),
    'dtype_is_complex': (0,),
    'dtype_is_floating_point': (0,),
    'dtype_is_signed': (0,),
    'dtype_promote': (0, 1),
    'set_default_dtype': (0,),
}


def _convert_dtypes():
    """Lets the functions of C take what stands for a dtype."""
    for name, positions in TAKING_DTYPES.items():
        raw = globals().get(name) or getattr(GTorch, name)
        function = _taking_dtypes(raw, *positions)
        function.__wrapped__ = raw  # which has the arguments, for inspect
        export(name, arguments.described(function))
    GTorch.AutocastGuard.new = staticmethod(_taking_dtypes(GTorch.AutocastGuard.new, 1))
    GTorch.Function.set_cast_inputs = _taking_dtypes(GTorch.Function.set_cast_inputs, 1)
    export('set_default_dtype', _set_default_dtype(globals()['set_default_dtype']))


def _find_cycles():
    """Shows Python's collector the classes whose objects refer to others in C."""
    names = (
        'Tensor', 'Module', 'Optimizer', 'ParamGroup', 'LRScheduler', 'Function', 'FunctionContext', 'Trainer',
        'Dataset', 'DataLoader', 'Fetcher', 'Sampler',
    )
    return mixin.collect_cycles(tuple(getattr(_namespace, name) for name in names), GTorch.Identity.new())


def _rest():
    """What tensors do without; see _gtorch_later."""
    from gi.overrides import _gtorch_amp, _gtorch_context, _gtorch_device, _gtorch_nn, _gtorch_state
    from gi.overrides import _gtorch_func

    from gi.overrides import _gtorch_accelerator, _gtorch_cuda, _gtorch_exceptions
    from gi.overrides import _gtorch_random, _gtorch_results, _gtorch_settings, _gtorch_storage, _gtorch_testing
    from gi.overrides import _gtorch_backends, _gtorch_comm, _gtorch_gpu, _gtorch_graphs, _gtorch_multiprocessing
    from gi.overrides import _gtorch_data, _gtorch_io, _gtorch_nvtx, _gtorch_processor, _gtorch_profiler
    from gi.overrides import _gtorch_train

    for part in (_gtorch_amp, _gtorch_context, _gtorch_device, _gtorch_state):
        part.install(export, submodule, ops)
    cuda = sys.modules['gi.repository.GTorch.cuda']
    _gtorch_cuda.install(submodule, cuda)
    _gtorch_graphs.install(export, cuda)
    for part in (_gtorch_comm, _gtorch_gpu, _gtorch_nvtx):
        part.install(submodule, cuda)
    _gtorch_backends.install(submodule)
    _gtorch_processor.install(export, submodule)
    _gtorch_multiprocessing.install(submodule)
    _gtorch_random.install(export, submodule, cuda)
    _gtorch_accelerator.install(submodule, cuda)
    _gtorch_settings.install(export, sys.modules['gi.repository.GTorch.autograd'])
    _gtorch_exceptions.install(export, cuda)
    facts.install(export, cuda)
    _gtorch_storage.install(export)
    _gtorch_io.install(submodule)
    _gtorch_testing.install(submodule)
    _gtorch_data.install(submodule)
    _gtorch_results.install(submodule)
    _gtorch_profiler.install(submodule)
    _gtorch_nn.install(export, submodule, {name: getattr(_namespace, name) for name in ops.FUNCTIONS})
    callbacks.install(export)
    _gtorch_train.install(submodule)
    _gtorch_func.install(export, submodule)
    from gi.overrides import _gtorch_parallel

    _gtorch_parallel.install(export, submodule, sys.modules['gi.repository.GTorch.nn'])
    # Its class is derived from one of those.
    from gi.overrides import _gtorch_graphed

    _gtorch_graphed.install(export, submodule, sys.modules['gi.repository.GTorch.cuda'])
    import_later(submodule('tokenizers', 'Texts as numbers.', {}), '_gtorch_text', ('Tokenizer',), (), GTorch)
    import_later(submodule('vision', 'Images from files.', {}), '_gtorch_vision', ('ImageFolder',), (
        'ImageReadMode', 'decode_image', 'encode_jpeg', 'encode_png', 'read_image', 'write_jpeg', 'write_png'), GTorch)
    from gi.overrides import _gtorch_copy, _gtorch_further

    _gtorch_further.install(export, Tensor)
    export('adaptive_max_pool1d', forms.adaptive_max_pool1d)
    _convert_dtypes()
    _gtorch_copy.install(globals())
    for space, members in ops.SPACES.items():
        found = {name: getattr(_namespace, function) for name, function in members.items()}
        module = submodule(space, f'The operations of torch.{space}.', found)
        if '.' in space:
            outer, inner = space.split('.')
            submodule(outer, f'The operations of torch.{outer}.', {inner: module})
    for value in [*globals().values()]:
        if isinstance(value, types.ModuleType) and value.__name__.startswith(later.NAME):
            name_functions(value)
        elif isinstance(value, type) and value.__module__ == __name__:
            name_functions(value, f'{value.__name__}.')
    name_functions(sys.modules[__name__])
    absent.install(sys.modules, later.NAME, Tensor)
    globals()['linalg'].LinAlgError = globals()['LinAlgError']
    if mixin is not None:
        globals()['finds_cycles'] = _find_cycles()


def _reduce_shared(tensor):
    """What pickles for other processes have of a tensor."""
    from gi.overrides._gtorch_multiprocessing import reduce_tensor

    return reduce_tensor(tensor)


def _share_tensors():
    """Lets the pickles of Python's multiprocessing share tensors, in whatever process: those that were started by it
    may never name GTorch.multiprocessing."""
    pickler = getattr(sys.modules.get('multiprocessing.reduction'), 'ForkingPickler', None)
    for name in ('Tensor', 'Parameter'):
        if pickler is not None and name in vars(_namespace):
            pickler.register(vars(_namespace)[name], _reduce_shared)


place.install()
later.begin(_rest)
later.Watcher('multiprocessing.reduction', _share_tensors)
later.when_complete(_share_tensors)
