# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Modules, layers and optimizers: GTorch.Module to derive from, GTorch.nn, GTorch.optim."""

from gi.overrides import override
from gi.repository import Gio, GLib

from gi.overrides import _gtorch_hooks as hooks
from gi.overrides import _gtorch_state as state
from gi.overrides._gtorch_convert import (
    DType,
    GTorch,
    RawTensor,
    convert_device,
    convert_dtype,
    convert_enum,
    convert_ints,
)

OVERRIDES = 'gi.overrides.GTorch'  # override() finds the namespace by it
RawModule = GTorch.Module
RawOptimizer = GTorch.Optimizer


def _do_forward(self, value):
    """What C calls. An exception of Python's waits in the module for whoever called it."""
    try:
        result = self.forward(value)
        if not isinstance(result, RawTensor):
            raise TypeError(f'forward() gave {type(result).__name__}, not a tensor')
        return result
    except GLib.Error:
        raise
    except Exception as error:
        _pending.append(error)
        message = f'{type(self).__name__}: {type(error).__name__}: {error}'
        raise GLib.Error.new_literal(GTorch.error_quark(), message, GTorch.Error.FAILED) from error


# Thrown by a forward() in Python, on the way through C; the last one is the innermost.
_pending = []


class Module(RawModule):
    """class Net(GTorch.Module): def forward(self, x): … — tensors, modules and parameters that are
    assigned to it belong to it."""

    __module__ = OVERRIDES

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if 'forward' in vars(cls):
            cls.do_forward = _do_forward

    def __call__(self, *inputs):
        """Runs the module, with its hooks."""
        if len(inputs) != 1:
            return self.forward(*inputs)
        depth = len(_pending)
        try:
            return RawModule.forward(self, *inputs)
        except GLib.Error as error:
            if len(_pending) > depth:
                original = _pending[-1]
                del _pending[depth:]
                raise original from None
            raise error

    def __setattr__(self, name, value):
        if isinstance(value, GTorch.Parameter):
            self.register_parameter(name, value)
        elif isinstance(value, RawModule):
            self.register_module(name, value)
        super().__setattr__(name, value)

    def __getattr__(self, name):
        # only what is not found otherwise comes here
        if not name.startswith('_'):
            for names, get in (
                (self.get_child_names, self.get_module),
                (lambda: self.get_parameter_names(False), self.get_parameter),
                (lambda: self.get_buffer_names(False), self.get_buffer),
            ):
                if name in names():
                    return get(name)
        raise AttributeError(f'{type(self).__name__} has no attribute {name!r}')

    training = property(lambda self: self.get_training())

    def parameters(self, recurse=True):
        """The parameters, those of children too."""
        return list(self.get_parameters(recurse))

    def named_parameters(self, recurse=True):
        return list(zip(self.get_parameter_names(recurse), self.get_parameters(recurse)))

    def children(self):
        return list(self.get_children())

    def named_children(self):
        return list(zip(self.get_child_names(), self.get_children()))

    def modules(self):
        return list(self.get_modules())

    def buffers(self, recurse=True):
        return list(self.get_buffers(recurse))

    def register_buffer(self, name, buffer, persistent=True):
        RawModule.register_buffer(self, name, buffer, persistent)

    def train(self, mode=True):
        RawModule.train(self, mode)
        return self

    def eval(self):
        RawModule.eval(self)
        return self

    def zero_grad(self, set_to_none=True):
        RawModule.zero_grad(self, set_to_none)

    def requires_grad_(self, requires_grad=True):
        RawModule.set_requires_grad(self, requires_grad)
        return self

    def state_dict(self):
        return state.pairs(self.state_lists())

    def load_state_dict(self, table, strict=True):
        self.load_state_lists(*state.lists('load_state_dict', 'state', table), strict)

    def register_forward_pre_hook(self, hook, *data):
        return hooks.register(RawModule.register_forward_pre_hook, self, hook, *data)

    def register_forward_hook(self, hook, *data):
        return hooks.register(RawModule.register_forward_hook, self, hook, *data)

    def remove_hook(self, number):
        return hooks.remove(RawModule.remove_hook, self, number)

    def to(self, device=None, dtype=None):
        if isinstance(device, DType):
            device, dtype = None, device
        RawModule.to(self, convert_device(device), convert_dtype(dtype))
        return self

    def __repr__(self):
        return self.to_string()


# Arguments of the layers after the class: (name, default), or (name,) for what must be given.
LAYERS = {
    'Linear': [('in_features',), ('out_features',), ('bias', True)],
    'Conv2d': [
        ('in_channels',),
        ('out_channels',),
        ('kernel_size',),
        ('stride', 1),
        ('padding', 0),
        ('bias', True),
    ],
    'MaxPool2d': [('kernel_size',), ('stride', -1), ('padding', 0)],
    'AvgPool2d': [('kernel_size',), ('stride', -1), ('padding', 0)],
    'AdaptiveAvgPool2d': [('output_size',)],
    'BatchNorm1d': [('num_features',)],
    'BatchNorm2d': [('num_features',)],
    'LayerNorm': [('normalized_shape',), ('eps', 1e-5), ('elementwise_affine', True), ('bias', True)],
    'Embedding': [('num_embeddings',), ('embedding_dim',), ('padding_idx', -1)],
    'Dropout': [('p', 0.5)],
    'Flatten': [('start_dim', 1), ('end_dim', -1)],
    'GELU': [('tanh_approximation', False)],
    'LeakyReLU': [('negative_slope', 0.01)],
    'Softmax': [('dim', -1)],
    'LogSoftmax': [('dim', -1)],
    'Identity': [],
    'ReLU': [],
    'SiLU': [],
    'Sigmoid': [],
    'Tanh': [],
    'CrossEntropyLoss': [('weight', None), ('reduction', 'mean')],
    'NLLLoss': [('weight', None), ('reduction', 'mean')],
    'MSELoss': [('reduction', 'mean')],
    'L1Loss': [('reduction', 'mean')],
    'BCEWithLogitsLoss': [('weight', None), ('pos_weight', None), ('reduction', 'mean')],
}

OPTIMIZERS = {
    'SGD': ([('lr', 1e-3), ('momentum', 0.0)], ('weight_decay', 'nesterov', 'dampening', 'capturable')),
    'Adam': ([('lr', 1e-3)], ('betas', 'eps', 'weight_decay', 'amsgrad', 'capturable')),
    'AdamW': ([('lr', 1e-3), ('weight_decay', 1e-2)], ('betas', 'eps', 'amsgrad', 'capturable')),
}


def _bind(name, spec, args, options):
    """The arguments in order; what is left over stays in @options."""
    if len(args) > len(spec):
        raise TypeError(f'{name}() takes {len(spec)} arguments, {len(args)} were given')
    values = list(args)
    for key, *default in spec[len(args) :]:
        if key in options:
            values.append(options.pop(key))
        elif default:
            values.append(default[0])
        else:
            raise TypeError(f'{name}() needs {key}')
    return values


def _layer(name, spec):
    raw = getattr(GTorch, name)

    def new(cls, *args, **options):
        if cls is not made:
            raise TypeError(f'derive from GTorch.Module and keep a {name} in it')
        values = _bind(name, spec, args, options)
        if options:
            raise TypeError(f'{name}() has no argument {next(iter(options))!r}')
        for i, (key, *_default) in enumerate(spec):
            if key == 'reduction':
                values[i] = convert_enum(GTorch.Reduction, values[i])
            elif key == 'normalized_shape':
                values[i] = convert_ints(values[i])
        return raw.new(*values)

    members = {'__module__': OVERRIDES, '__new__': new, '__init__': lambda self, *a, **k: None}
    members['__doc__'] = raw.__doc__
    if issubclass(raw, GTorch.Loss):
        members['__call__'] = lambda self, value, target: GTorch.Loss.forward(self, value, target)
    made = type(raw)(name, (raw,), members)
    return override(made)


def _list_model(params):
    """A list model of what is one, or of parameters."""
    if isinstance(params, Gio.ListModel):
        return params
    store = Gio.ListStore.new(RawTensor.__gtype__)
    for param in params:
        store.append(param)
    return store


class Optimizer(RawOptimizer):
    """What optimizers are derived from."""

    __module__ = OVERRIDES

    def state_dict(self):
        return state.pairs(self.state_lists())

    def load_state_dict(self, table):
        self.load_state_lists(*state.lists('load_state_dict', 'state', table))


def _optimizer(name, spec, properties):
    raw = getattr(GTorch, name)

    def new(cls, params, *args, **options):
        values = _bind(name, spec, args, options)
        made = raw.new(_list_model(params), *values)
        betas = options.pop('betas', None)
        if betas is not None:
            options['beta1'], options['beta2'] = betas
        for key, value in options.items():
            if key not in (*properties, 'beta1', 'beta2'):
                raise TypeError(f'{name}() has no argument {key!r}')
            if key == 'weight_decay':
                for group in made.get_param_groups():
                    group.set_weight_decay(value)
            else:
                made.set_property(key.replace('_', '-'), value)
        made.check()
        return made

    members = {
        '__module__': OVERRIDES,
        '__new__': new,
        '__init__': lambda self, *a, **k: None,
        'zero_grad': lambda self, set_to_none=True: GTorch.Optimizer.zero_grad(self, set_to_none),
        'lr': property(
            lambda self: self.get_learning_rate(),
            lambda self, value: self.set_learning_rate(value),
        ),
    }
    cls = type(raw)(name, (raw,), members)
    return override(cls)


def _sequential():
    class Sequential(GTorch.Sequential):
        """One module after the other: GTorch.nn.Sequential(a, b, c)."""

        __module__ = OVERRIDES

        def __new__(cls, *modules):
            return GTorch.Sequential.new_from_modules(list(modules))

        def __init__(self, *modules):
            pass

        def __len__(self):
            return len(self.get_children())

        def __getitem__(self, position):
            return self.children()[position]

        def __iter__(self):
            return iter(self.children())

    return Sequential


class Parameter(GTorch.Parameter):
    """A tensor that a module learns: GTorch.nn.Parameter(GTorch.zeros(3))."""

    __module__ = OVERRIDES

    def __new__(cls, data, requires_grad=True):
        return GTorch.Parameter.new(data, requires_grad)

    def __init__(self, *_args, **_options):
        pass


def install(export, submodule, ops):
    """Classes that are derived from by others come first: PyGObject looks bases up only once."""
    export('Module', override(Module))
    nn = {'Module': Module}
    for cls in (_sequential(), Parameter):
        nn[cls.__name__] = export(cls.__name__, override(cls))
    for name, spec in LAYERS.items():
        nn[name] = export(name, _layer(name, spec))
    nn['functional'] = submodule('nn.functional', 'Operations as functions.', ops.FUNCTIONS)
    submodule('nn', 'Modules and layers.', nn)
    optim = {'Optimizer': export('Optimizer', override(Optimizer))}
    for name, (spec, properties) in OPTIMIZERS.items():
        optim[name] = export(name, _optimizer(name, spec, properties))
    submodule('optim', 'Optimizers.', optim)
