# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The layers of the library: classes that take PyTorch's arguments and can be derived from. The arguments
come from the rows of layers, through _gtorch_layer_table."""

import types

from gi.overrides import _gtorch_rnn as rnn
from gi.overrides import override
from gi.repository import GLib, GObject

from gi.overrides._gtorch_bind import ABSENT, REQUIRED, bind
from gi.overrides._gtorch_convert import GTorch, RawTensor, convert_bool, convert_device, convert_ints, of_integers
from gi.overrides._gtorch_errors import restores
from gi.overrides._gtorch_layer_table import LAYERS
from gi.overrides._gtorch_properties import OWN, attribute, initialize

OVERRIDES = 'gi.overrides.GTorch'  # override() finds the namespace through it
RawModule = GTorch.Module


UNSEEN = 'refused', 'processes'  # kinds of arguments that are no properties


def _refuse(name, arg, value):
    """Raises for an argument without a property, unless its value is the default."""
    default = arg['default']
    if value is default or (isinstance(value, (bool, int, float)) and value == default):
        return
    raise TypeError(f'{name}(): {arg["name"]} is not supported: {arg["why"]}')


def _present(arg, value):
    """Returns a number for None, if the property has one that stands for it."""
    if value is None:
        return GTorch.NONE if arg['kind'] == 'int' else GTorch.NONE_DOUBLE
    return value


def _properties(name, args, values, activation):
    """Converts the arguments to properties."""
    found = {}
    for arg in args:
        key = arg['name']
        value, kind = values[key], arg['kind']
        if value is ABSENT:
            continue
        if kind == 'processes':
            continue
        if kind == 'refused':
            _refuse(name, arg, value)
        elif kind == 'device':
            if value is not None:
                found[key] = convert_device(value)
        elif kind == 'module':
            found[arg['property']] = _module(name, key, value, activation)
        elif arg.get('rule') and isinstance(value, str):
            found[f'{arg["property"]}_rule'] = _rule(name, key, value)
        elif kind in ('size', 'factors', 'bool') and value is None and arg.get('default', 0) is None:
            continue
        elif arg.get('nones'):
            several = isinstance(value, (list, tuple))
            numbers = [GTorch.NONE if one is None else one for one in (value if several else [value])]
            found[arg['property']] = numbers
        elif arg.get('optional') and kind != 'tensor':
            found[arg['property']] = _present(arg, value)
        else:
            found[arg['property']] = value
    return found


def _module(name, key, value, activation):
    """Returns the module for one, or for a function."""
    if key == 'activation':
        return activation(name, value)
    if key != 'distance_function' or value is None or isinstance(value, RawModule):
        return value
    if not callable(value):
        raise TypeError(f'{name}(): {key} must be a module or a function, not {value!r}')
    from gi.overrides._gtorch_applied import Applied

    return Applied(value)


def _rule(name, key, value):
    if value not in ('valid', 'same'):
        raise ValueError(f"{name}(): {key} must be whole numbers, 'valid' or 'same', not {value!r}")
    return getattr(GTorch.PaddingRule, value.upper())


def is_made(self):
    """Has the object of C been made?"""
    try:
        return self.__grefcount__ > 0
    except TypeError:
        return False


def construct(self, properties, shown=types.MappingProxyType({})):
    """Creates the C object for @self, whatever class is derived from that of the layer."""
    cls = type(self)
    if is_made(self):
        raise RuntimeError(f'{cls.__name__}.__init__(): the object has been made already')
    initialize(self, _shown=shown, **properties)


def _nick(plain):
    """Returns a member of an enum as PyTorch's string for it."""
    return property(lambda self: plain.fget(self).value_nick, plain.fset)


def _optional(arg, plain):
    """A number that may be None."""

    def get(self):
        value = plain.fget(self)
        return None if value in (GTorch.NONE, GTorch.NONE_DOUBLE) else value

    return property(get, lambda self, value: plain.fset(self, _present(arg, value)))


def _size(plain):
    """One number for each dimension, or one number for all if that was given, as PyTorch keeps it."""

    def get(self):
        values = plain.fget(self)
        if values is not None and GTorch.NONE in values:
            values = tuple(None if one == GTorch.NONE else one for one in values)
        return values[0] if values is not None and len(values) == 1 else values

    return property(get, plain.fset)


def _padding(plain):
    """Numbers, or the string of the rule that replaces them."""

    def get(self):
        rule = GObject.Object.get_property(self, 'padding-rule')
        return plain.fget(self) if rule == GTorch.PaddingRule.NUMBERS else rule.value_nick

    return property(get, plain.fset)


def _attributes(raw, args):
    """Returns the attributes that differ from the GObject properties."""
    found = {}
    for arg in args:
        spec = raw.find_property(arg['property'].replace('_', '-')) if arg['kind'] not in UNSEEN else None
        if spec is None or arg['kind'] == 'dtype':
            continue
        if 'enum' in arg:
            found[arg['name']] = _nick(attribute(spec, check=raw.check))
        elif arg.get('optional') and arg['kind'] != 'tensor':
            found[arg['name']] = _optional(arg, attribute(spec, check=raw.check))
        elif 'rule' in arg:
            found[arg['name']] = _padding(attribute(spec, check=raw.check))
        elif arg['kind'] in ('size', 'factors') and (arg.get('length', 0) > 1 or 'given' in arg):
            found[arg['name']] = _size(attribute(spec, check=raw.check))
    return found


def _without_absent(tensors):
    """Takes None away from the end; a tensor of bool without elements stands for other ones."""
    while tensors and tensors[-1] is None:
        tensors.pop()
    return [GTorch.zeros([0], GTorch.DType.BOOL, None) if one is None else one for one in tensors]


def forward_many_of(raw, inputs, lists=(), needed=None):
    """Does so for a class that takes several tensors, which have the names @inputs; those in @lists may be lists, and
    those behind the first @needed ones may be left out."""
    compute = restores(raw.do_forward_many)
    spec = {key: None if needed is not None and i >= needed else REQUIRED for i, key in enumerate(inputs)}

    def forward(self, *values, **options):
        name = f'{type(self).__name__}.forward'
        if 'input' in options and 'input' not in spec:  # the name that PyTorch has for the first one
            options[inputs[0]] = options.pop('input')
        tensors = bind(name, spec, values, options)
        tensors.update({key: of_integers(tensors[key]) for key in lists})
        for key, value in tensors.items():
            if not isinstance(value, RawTensor) and (value is not None or spec[key] is REQUIRED):
                raise TypeError(f'{name}(): {key} must be a tensor, not {type(value).__name__}')
        return compute(self, _without_absent([tensors[key] for key in inputs]))

    forward.__text_signature__ = _signature(inputs, len(inputs) if needed is None else needed)
    forward.__doc__ = 'Computes the output from the inputs, without hooks.'
    return forward


def _signature(inputs, needed):
    """The text of the signature of forward(), of whose inputs those after the first @needed ones may be left out."""
    return f'($self, {", ".join((*inputs[:needed], *(f"{name}=None" for name in inputs[needed:])))})'


def forward_of(raw):
    """Returns forward() of a C class in PyTorch's form: without hooks; derived classes call it through
    super()."""
    info = raw.do_compute if issubclass(raw, GTorch.Loss) else raw.do_forward
    compute, names = restores(info), [argument.get_name() for argument in info.get_arguments()]

    def forward(self, *values, **options):
        if len(values) != len(names) and not options:
            takes = f'takes {len(names)} inputs ({", ".join(names)})' if len(names) > 1 else f'takes one {names[0]}'
            raise TypeError(f'{type(self).__name__}.forward() {takes}, {len(values)} were given')
        if options:
            values = bind(f'{type(self).__name__}.forward', dict.fromkeys(names, REQUIRED), values, options).values()
        return compute(self, *values)

    forward.__text_signature__ = _signature(names, len(names))
    forward.__doc__ = 'Computes the output from the input, without hooks.'
    return sized(raw, forward) if issubclass(raw, GTorch.ConvTranspose) else forward


def sized(raw, plain):
    """Returns forward() of a transposed convolution, which may be told the size of the output."""

    def forward(self, input, output_size=None):
        """Computes the output from the input, without hooks, in the given size if it may have several."""
        if output_size is None:
            return plain(self, input)
        return many(self, [input, of_integers(list(convert_ints(output_size)))])

    many = restores(raw.do_forward_many)
    return forward


def extra_repr_of(raw):
    """Returns extra_repr() of a C class, which derived classes call."""

    def extra_repr(self):
        """The arguments in the text of the layer."""
        try:
            return raw.do_extra_repr(self) or ''
        except GLib.Error:  # the class has none
            return ''

    return extra_repr


def call_of_loss():
    """Looks the class up only now: PyGObject makes it, for good, when it is first named."""
    forward = restores(GTorch.Loss.forward)

    def call(self, *inputs, **named):
        if len(inputs) + len(named) < 2:
            n = len(inputs) + len(named)
            raise TypeError(f'{type(self).__name__}.forward() takes 2 inputs (input, target), {n} were given')
        for value in (*inputs, *named.values()):
            if value is None or isinstance(value, (int, float, str)):
                raise TypeError(f'{type(self).__name__}: an input must be a tensor, not {type(value).__name__}')
        return forward(self, *inputs, **named)

    return call


def hooks_run(self, inputs, options):
    from gi.overrides._gtorch_hooks import run_forward

    return run_forward(self, inputs, options)


def with_indices(raw, plain, run):
    """forward() of a layer that may give the indices of the maxima as well, and its __call__()."""

    def forward(self, *values, **options):
        if not self.return_indices:
            return plain(self, *values, **options)
        (input,) = bind(f'{type(self).__name__}.forward', {'input': REQUIRED}, values, options).values()
        return tuple(_with_indices(self, input))

    forward.__text_signature__, forward.__doc__ = plain.__text_signature__, plain.__doc__

    def call(self, *inputs, **options):
        if not self.return_indices:
            return raw.__call__(self, *inputs, **options)
        return run(self, inputs, options) if RawModule.has_hooks(self) else self.forward(*inputs, **options)

    return forward, call


_with_indices = restores(RawModule.forward_with_indices)


class Reset:
    """reset_parameters() of the layers that have parameters: others have no such attribute, for which programs look."""

    raw = staticmethod(RawModule.reset_parameters)

    def __get__(self, owner, cls):
        if owner is None:
            return self.raw
        if not RawModule.can_reset_parameters(owner):
            raise AttributeError(f'{cls.__name__} has no parameters of which it knows the first values')
        return lambda: self.raw(owner) and None


def _reset_by_program(self):
    """As in PyTorch, a layer is made with the reset_parameters() of a class of the program's."""
    for base in type(self).__mro__:
        if 'reset_parameters' in vars(base):
            can_reset = RawModule.can_reset_parameters(self) and not RawModule.has_uninitialized_params(self)
            if base.__module__ not in OWN and can_reset:
                self.reset_parameters()
            return


def _pretrained(name):
    names = [arg['name'] for arg in LAYERS[name]['args']]

    def from_pretrained(cls, embeddings, freeze=True, **options):
        """A layer whose weight is a matrix, with which it shares its memory."""
        from gi.overrides._gtorch_unpickle import same_random_numbers

        if not isinstance(embeddings, RawTensor):
            raise TypeError(f'from_pretrained(): embeddings must be a tensor, not {type(embeddings).__name__}')
        if embeddings.dim() != 2:
            raise ValueError(f'from_pretrained(): embeddings of shape {list(embeddings.shape)} are no matrix')
        for key in options:
            if key not in names or key in ('num_embeddings', 'embedding_dim', 'device', 'dtype'):
                raise TypeError(f'from_pretrained() has no argument {key!r}')
        with same_random_numbers():
            made = cls(*embeddings.shape, **options)
        made.weight = GTorch.Parameter.new(embeddings, not convert_bool(freeze))
        return made

    def ordered(cls, embeddings, *given, **options):
        first = ['freeze', *PRETRAINED[name]]
        if len(given) > len(first):
            raise TypeError(f'from_pretrained() takes at most {len(first) + 1} arguments')
        for key, value in zip(first, given):
            if key in options:
                raise TypeError(f'from_pretrained() got {key!r} twice')
            options[key] = value
        return from_pretrained(cls, embeddings, **options)

    ordered.__name__ = ordered.__qualname__ = 'from_pretrained'
    ordered.__doc__ = from_pretrained.__doc__
    return classmethod(ordered)


def _set_processes(self, group):
    """Names the processes that share the statistics."""
    from gi.overrides import _gtorch_distributed as dist

    if group is not None and not isinstance(group, GTorch.ProcessGroup):
        raise TypeError(f'{type(self).__name__}: process_group must be a ProcessGroup, not {type(group).__name__}')
    dist._run(lambda: self.set_process_group(group))


def _convert_sync_batchnorm(cls, module, process_group=None):
    """The same module with a SyncBatchNorm in place of each BatchNorm1d and the like, which has their parameters and
    buffers. They normalise by the batches of @process_group, by default of all processes if there is a group."""
    from gi.overrides import _gtorch_distributed as dist

    group = process_group if process_group is not None or not dist.is_initialized() else dist._group(None)
    made = _converted_batchnorm(cls, module)
    if group is not None:
        dist._run(lambda: GTorch.synchronize_batch_norm(made, group))
    return made


def _converted_batchnorm(cls, module):
    kinds = GTorch.BatchNorm1d, GTorch.BatchNorm2d, GTorch.BatchNorm3d
    for name, child in list(module.named_children()):
        made = _converted_batchnorm(cls, child)
        if made is not child:
            module.set_submodule(name, made)
    if not isinstance(module, kinds) or isinstance(module, GTorch.SyncBatchNorm):
        return module
    kept = module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats
    made = cls(*kept, bias=module.bias is not None or not module.affine)
    for name in ('weight', 'bias', 'running_mean', 'running_var', 'num_batches_tracked'):
        if getattr(module, name) is not None:
            setattr(made, name, getattr(module, name))
    return made.train(module.training)


# The arguments of from_pretrained() behind freeze, in PyTorch's order.
PRETRAINED = {
    'Embedding': ('padding_idx', 'max_norm', 'norm_type', 'scale_grad_by_freq', 'sparse'),
    'EmbeddingBag': ('max_norm', 'norm_type', 'scale_grad_by_freq', 'mode', 'sparse', 'include_last_offset',
                     'padding_idx'),
}


def of_space(space):
    """Returns the names of the layers that a submodule has: None for nn."""
    return {name for name, row in LAYERS.items() if row.get('space') == space}


def layer(name, raw, own, activation):
    """Creates the class of a layer from that of C: nn.Linear(2, 3), and class Mine(nn.Linear). @own has what it has
    beside what all layers have; @activation makes a module of an activation."""
    row = LAYERS[name]
    args = row['args']
    spec = {arg['name']: REQUIRED if arg['required'] else ABSENT for arg in args}
    shown = {arg['property']: arg['name'] for arg in args if 'property' in arg}
    n_named = sum('named' in arg for arg in args)

    def init(self, *given, **options):
        kind = type(self).__name__
        values = {} if row['any'] else bind(kind, spec, given, options, n_named)
        construct(self, _properties(kind, args, values, activation), shown)
        RawModule.check(self)
        if values.get('process_group', ABSENT) not in (None, ABSENT):
            _set_processes(self, values['process_group'])
        _reset_by_program(self)

    init.__text_signature__ = row['signature']
    members = {'__module__': OVERRIDES, '__init__': init, '__doc__': row['doc']}
    if 'inputs' in row:
        forward = forward_many_of(raw, row['inputs'], row.get('lists', ()), row.get('needed'))
    else:
        forward = forward_of(raw)
    members.update(own or {'forward': forward})
    members['extra_repr'] = extra_repr_of(raw)
    members.update(_attributes(raw, args))
    if issubclass(raw, GTorch.Loss) and 'inputs' not in row:
        members['__call__'] = call_of_loss()
    if any(arg['name'] == 'return_indices' and arg['kind'] == 'bool' for arg in args):
        members['forward'], members['__call__'] = with_indices(raw, members['forward'], hooks_run)
    if name in PRETRAINED:
        members['from_pretrained'] = _pretrained(name)
    if name == 'SyncBatchNorm':
        members['convert_sync_batchnorm'] = classmethod(_convert_sync_batchnorm)
        members['process_group'] = property(raw.get_process_group, _set_processes)
    if rnn.is_network(raw):
        members.update(rnn.members_of(name, raw))
    made = type(raw)(name, (raw,), members)
    return override(made)
