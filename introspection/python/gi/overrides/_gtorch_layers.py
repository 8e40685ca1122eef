# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The ready-made layers: the arguments that PyTorch gives them, which are properties of GObject's, and classes
that others may derive from."""

from gi.overrides import override
from gi.repository import GObject

from gi.overrides._gtorch_convert import GTorch, convert_bool, convert_ints, convert_whole
from gi.overrides._gtorch_errors import restores
from gi.overrides._gtorch_properties import attribute, convert

OVERRIDES = 'gi.overrides.GTorch'  # override() finds the namespace by it
REQUIRED = object()

# Arguments of the layers after the class, with their defaults.
LAYERS = {
    'Linear': {'in_features': REQUIRED, 'out_features': REQUIRED, 'bias': True},
    'Conv2d': {
        'in_channels': REQUIRED,
        'out_channels': REQUIRED,
        'kernel_size': REQUIRED,
        'stride': 1,
        'padding': 0,
        'dilation': 1,
        'groups': 1,
        'bias': True,
    },
    'MaxPool2d': {
        'kernel_size': REQUIRED,
        'stride': None,
        'padding': 0,
        'dilation': 1,
        'ceil_mode': False,
    },
    'AvgPool2d': {
        'kernel_size': REQUIRED,
        'stride': None,
        'padding': 0,
        'ceil_mode': False,
        'count_include_pad': True,
    },
    'AdaptiveAvgPool2d': {'output_size': REQUIRED},
    'BatchNorm1d': {
        'num_features': REQUIRED,
        'eps': 1e-5,
        'momentum': 0.1,
        'affine': True,
        'track_running_stats': True,
    },
    'LayerNorm': {
        'normalized_shape': REQUIRED,
        'eps': 1e-5,
        'elementwise_affine': True,
        'bias': True,
    },
    'Embedding': {'num_embeddings': REQUIRED, 'embedding_dim': REQUIRED, 'padding_idx': None},
    'Dropout': {'p': 0.5},
    'Flatten': {'start_dim': 1, 'end_dim': -1},
    'GELU': {'approximate': 'none'},
    'LeakyReLU': {'negative_slope': 0.01},
    'Softmax': {'dim': -1},
    'LogSoftmax': {'dim': -1},
    'Identity': {},
    'ReLU': {},
    'SiLU': {},
    'Sigmoid': {},
    'Tanh': {},
    'CrossEntropyLoss': {
        'weight': None,
        'ignore_index': -100,
        'reduction': 'mean',
        'label_smoothing': 0.0,
    },
    'NLLLoss': {'weight': None, 'ignore_index': -100, 'reduction': 'mean'},
    'MSELoss': {'reduction': 'mean'},
    'L1Loss': {'reduction': 'mean'},
    'BCEWithLogitsLoss': {'weight': None, 'reduction': 'mean', 'pos_weight': None},
}
LAYERS['BatchNorm2d'] = LAYERS['BatchNorm1d']

PAIRS = {
    'kernel_size': 'kernel_width',
    'stride': 'stride_width',
    'padding': 'padding_width',
    'dilation': 'dilation_width',
    'output_size': 'output_width',
}
APPROXIMATIONS = {'none': False, 'tanh': True}


# PyTorch still takes size_average and reduce by position, where these would stand.
BY_NAME = ('ignore_index', 'reduction', 'label_smoothing', 'pos_weight')


def bind(name, spec, args, options):
    """The values of the arguments by their names."""
    n = len([key for key in spec if key not in BY_NAME])
    if len(args) > n:
        rest = f', {", ".join(list(spec)[n:])} by name' if n < len(spec) else ''
        raise TypeError(f'{name}() takes {n} arguments by position{rest}; {len(args)} were given')
    values = dict(zip(spec, args))
    for key, value in options.items():
        if key not in spec:
            raise TypeError(f'{name}() has no argument {key!r}')
        if key in values:
            raise TypeError(f'{name}() was given {key} twice')
        values[key] = value
    for key, value in spec.items():
        if values.setdefault(key, value) is REQUIRED:
            raise TypeError(f'{name}() needs {key}')
    return values


def _pair(name, key, value):
    """One number for both dimensions, or two."""
    if isinstance(value, str):
        raise TypeError(f'{name}(): {key} must be one or two whole numbers, not {value!r}')
    found = convert_ints(value)
    if len(found) not in (1, 2):
        raise TypeError(f'{name}(): {key} must be one or two whole numbers, not {value!r}')
    return found[0], found[-1]


def _padding_idx(values, value):
    """PyTorch counts a negative one from the end; here -1 says that there is none."""
    if value is None:
        return -1
    n = convert_whole(values['num_embeddings'])
    value = convert_whole(value)
    if not -n <= value < n:
        raise ValueError(f'Embedding(): padding_idx {value} is not one of {n} rows')
    return value + n if value < 0 else value


def _properties(name, values):
    """What the arguments are as properties."""
    found = {}
    for key, value in values.items():
        if key in PAIRS:
            if key != 'stride' or value is not None:
                found[key], found[PAIRS[key]] = _pair(name, key, value)
        elif key == 'bias':
            found['has_bias'] = value
        elif key == 'padding_idx':
            found[key] = _padding_idx(values, value)
        elif key == 'approximate':
            if value not in APPROXIMATIONS:
                raise ValueError(f'{name}(): approximate is none or tanh, not {value!r}')
            found['tanh_approximation'] = APPROXIMATIONS[value]
        elif key == 'normalized_shape':
            sizes = convert_ints(value)
            if len(sizes) != 1:
                text = 'a class derived from LayerNorm normalises one dimension'
                raise TypeError(f'{name}(): {text}, normalized_shape is {list(sizes)}')
            found['normalized_size'] = sizes[0]
        else:
            found[key] = value
    return found


def construct(self, properties):
    """Makes the object of C for @self, whatever class is derived from the layer's."""
    cls = type(self)
    specs = {spec.name.replace('-', '_'): spec for spec in GObject.list_properties(cls)}
    given = {key: convert(cls, specs[key], value) for key, value in properties.items()}
    GObject.Object.__init__(self, **given)


def _several(cls, name, spec, args, options):
    """A LayerNorm over several dimensions, for which there is no property."""
    values = bind(name, spec, args, options)
    sizes = convert_ints(values['normalized_shape'])
    flags = (convert_bool(values[key]) for key in ('elementwise_affine', 'bias'))
    return GTorch.LayerNorm.new(sizes, values['eps'], *flags)


def _both(key):
    names = [name.replace('_', '-') for name in (key, PAIRS[key])]

    def get(self):
        return tuple(self.get_property(name) for name in names)

    def refuse(self, value):
        raise AttributeError(f'{type(self).__name__}.{key} is fixed when the layer is made')

    return property(get, refuse)


def _nick(key):
    """A member of an enum as PyTorch's text for it."""
    plain = attribute(GTorch.Loss.find_property(key))
    return property(lambda self: plain.fget(self).value_nick, plain.fset)


def _approximate():
    def get(self):
        return 'tanh' if self.tanh_approximation else 'none'

    def set_(self, value):
        self.tanh_approximation = _properties('GELU', {'approximate': value})['tanh_approximation']

    return property(get, set_)


def forward_of(raw):
    """forward() of a class of C as PyTorch has it: without hooks, and what derived classes call by super()."""
    compute = restores(raw.do_compute if issubclass(raw, GTorch.Loss) else raw.do_forward)

    def forward(self, *values):
        return compute(self, *values)

    return forward


def layer(name, spec):
    """The class of a layer: nn.Linear(2, 3), and class Mine(nn.Linear)."""
    raw = getattr(GTorch, name)

    def init(self, *args, device=None, dtype=None, **options):
        if type(self) is not made or name != 'LayerNorm':
            values = bind(type(self).__name__, spec, args, options)
            construct(self, _properties(type(self).__name__, values))
            self.check()
        if device is not None or dtype is not None:
            self.to(device, dtype)

    members = {'__module__': OVERRIDES, '__init__': init, '__doc__': raw.__doc__}
    members['forward'] = forward_of(raw)
    for key in spec:
        if key in PAIRS:
            members[key] = _both(key)
    if name == 'GELU':
        members['approximate'] = _approximate()
    if 'reduction' in spec:
        members['reduction'] = _nick('reduction')
    if name == 'LayerNorm':
        members['normalized_shape'] = property(lambda self: tuple(self.get_normalized_shape()))
        members['__new__'] = lambda cls, *args, device=None, dtype=None, **options: (
            _several(cls, name, spec, args, options) if cls is made else raw.__new__(cls)
        )
    if issubclass(raw, GTorch.Loss):
        members['__call__'] = restores(GTorch.Loss.forward)
    made = type(raw)(name, (raw,), members)
    return override(made)
