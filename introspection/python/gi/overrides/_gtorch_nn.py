# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Modules: GTorch.Module to derive from, and GTorch.nn."""

import functools
import threading
import weakref

from gi.overrides import override
from gi.repository import GObject

from gi.overrides import _gtorch_absent as absent
from gi.overrides import _gtorch_arguments as arguments
from gi.overrides import _gtorch_containers as containers
from gi.overrides import _gtorch_exceptions as exceptions
from gi.overrides import _gtorch_further as further
from gi.overrides import _gtorch_hooks as hooks
from gi.overrides import _gtorch_init as init
from gi.overrides import _gtorch_kinds as kinds_of
from gi.overrides import _gtorch_layers as layers
from gi.overrides import _gtorch_losses as losses
from gi.overrides import _gtorch_members as members
from gi.overrides import _gtorch_ops as ops
from gi.overrides import _gtorch_own_loading as own_loading
from gi.overrides import _gtorch_nn_utils as utils
from gi.overrides import _gtorch_optim as optim
from gi.overrides import _gtorch_packed as packed
from gi.overrides import _gtorch_parametrize as parametrize
from gi.overrides import _gtorch_prune as prune
from gi.overrides import _gtorch_inner as inner
from gi.overrides import _gtorch_rnn as rnn
from gi.overrides import _gtorch_state as state
from gi.overrides import _gtorch_transformer as transformer
from gi.overrides._gtorch_bind import REQUIRED, bind
from gi.overrides._gtorch_convert import GTorch, RawTensor, convert_bool, convert_whole, destination
from gi.overrides._gtorch_errors import guard_vfuncs, guards, own_vfunc, passes, passing, restores, restoring
from gi.overrides._gtorch_members import Members, children_of, incompatible
from gi.overrides._gtorch_mixin import mixin
from gi.overrides._gtorch_properties import OWN, final, make_later, set_attribute, show_later
from gi.overrides._gtorch_tensor import copied

OVERRIDES = 'gi.overrides.GTorch'  # override() finds the namespace through it
RawModule = GTorch.Module
MEMBERS = (RawTensor, RawModule)
NO_INPUTS = (bool, int, float, complex, str, bytes, list, tuple, dict)
_embedding, _embedding_bag = ops.FUNCTIONS['embedding'], ops.FUNCTIONS['embedding_bag']


def _forward(self, *inputs):
    result = self.forward(*inputs)
    if not isinstance(result, RawTensor):
        raise TypeError(f'forward() gave {type(result).__name__} to C, which takes one tensor')
    return result


# The function that C calls.
@guards('forward()')
def _do_forward(self, *inputs):
    return passing(type(self).__name__, _forward, self, *inputs)


@guards('forward()')
def _do_forward_many(self, inputs, *_length):
    return passing(type(self).__name__, _forward, self, *inputs)



def _train_inside(module, mode):
    """C has prepared them all, and knows of no train() in Python."""
    inside = [module]
    while inside:
        for _name, child in children_of(inside.pop()):
            if getattr(child.train, '__func__', None) is Module.train:
                inside.append(child)
            else:
                child.train(mode)


def _whole(function):
    """Returns the function of a text, in which NUL is written out: there a text of C would end."""

    @functools.wraps(function)
    def call(self):
        text = function(self)
        return text.replace('\0', '\\x00') if isinstance(text, str) else text

    return call


class _Extra(threading.local):
    raised = None  # the exceptions of get_extra_state() while state_dict() runs


_extra = _Extra()


def _do_get_extra_state(self):
    try:
        found = self.get_extra_state()
        if not isinstance(found, RawTensor):
            kind = type(found).__name__
            raise TypeError(f'{type(self).__name__}.get_extra_state() gave {kind}: a state has tensors only')
    except Exception as error:
        if _extra.raised is None:
            raise
        _extra.raised.append(error)  # C has no place for it
        return None
    return found


@guards('set_extra_state()')
def _do_set_extra_state(self, value):
    passing(f'{type(self).__name__}.set_extra_state()', self.set_extra_state, value)
    return True


EXTRA_STATE = {'get_extra_state': _do_get_extra_state, 'set_extra_state': _do_set_extra_state}


def _empty_on(tensor, device):
    return tensor.detach().new_empty(tensor.shape, device=device)


compute = restores(RawModule.forward if mixin is None else mixin.forward)


class Module(Members, own_loading.OwnLoading, parametrize.Computed, RawModule):
    """class Net(GTorch.Module): def forward(self, x): … — tensors, modules and parameters that are
    assigned to it belong to it."""

    __module__ = OVERRIDES
    _gt_is_python = False  # is forward() a function of the program's?
    _gt_with_call = weakref.WeakSet()  # the classes of the program with a __call__() of their own

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if cls.__module__ in OWN:
            return
        if '__call__' in vars(cls):
            Module._gt_with_call.add(cls)
        if 'forward' in vars(cls):
            cls._gt_is_python = True
            name = 'do_compute' if issubclass(cls, GTorch.Loss) else 'do_forward'
            setattr(cls, name, _do_forward)
            transformer.override_forward(cls, _do_forward)
            setattr(cls, 'do_forward_many' if mixin is None else '_forward_many_from_c', _do_forward_many)
        else:
            guard_vfuncs(cls, ('compute',) if issubclass(cls, GTorch.Loss) else ('forward',))
            guard_vfuncs(cls, transformer.vfuncs(cls))
        inner.check(cls)
        for name, own in EXTRA_STATE.items():
            if name in vars(cls):
                setattr(cls, f'do_{name}', own)
        parametrize.override_right_inverse(cls)
        extra_repr = own_vfunc(cls, 'extra_repr')
        if extra_repr is not None:
            cls.do_extra_repr = _whole(extra_repr)
            if 'extra_repr' not in vars(cls):
                cls.extra_repr = extra_repr
        forward_many = own_vfunc(cls, 'forward_many')
        if forward_many not in (None, _do_forward_many):

            @guards(cls.__name__)
            def do_forward_many(self, inputs, *_length):
                return passing(type(self).__name__, forward_many, self, inputs)

            cls.do_forward_many = do_forward_many

    def __call__(self, *inputs, **options):
        """Runs the module, with its hooks. C takes tensors only, and gives one: all else stays in Python."""
        if len(inputs) == 1 and not (options or self._gt_is_python) and isinstance(inputs[0], RawTensor):
            return compute(self, inputs[0])
        if type(self) is Module:
            raise NotImplementedError('Module: it has no forward(), which its subclasses define')
        if inputs and not self._gt_is_python and (inputs[0] is None or isinstance(inputs[0], NO_INPUTS)):
            kind = type(inputs[0]).__name__
            raise TypeError(f'{type(self).__name__}: the input must be a tensor, not {kind}')
        is_hooked = self._gt_is_hooked()
        if self._gt_is_python and hooks.Recording.n > 0:
            return hooks.recorded(self, hooks.run, self, is_hooked, inputs, options)
        if not is_hooked:
            return self.forward(*inputs, **options)
        if options or self._gt_is_python or not all(isinstance(value, RawTensor) for value in inputs):
            return hooks.run_forward(self, inputs, options)
        return RawModule.forward_many(self, list(inputs))

    def _gt_is_hooked(self):
        try:
            return RawModule.has_hooks(self)
        except SystemError as error:  # how PyGObject tells of the end of the stack
            raise error.__cause__ or error

    def _gt_own_kind(self, name):
        """Returns the kind of the member with this name: 'parameter', 'buffer', 'module' or None."""
        try:
            kind = RawModule.get_member_kind(self, name)
        except RuntimeError:  # before Module.__init__()
            return None
        return None if kind == GTorch.MemberKind.NONE else kind.value_nick

    def _gt_check_free(self, name, here=True):
        """Raises where a new member would be hidden by what has the name."""
        if self._gt_own_kind(name) is not None:
            return
        found = getattr(type(self), name, None)
        if found is not None or (here and self.__dict__.get(name) is not None):
            raise KeyError(f'{type(self).__name__}.{name} is an attribute already, and no member can have its name')

    def _gt_check_member(self, function, name, value, kind):
        """Raises as PyTorch does for what cannot be a member."""
        if not isinstance(name, str):
            raise TypeError(f'{function}(): the name must be a text, not {type(name).__name__}')
        if not name or '.' in name:
            text = f'{function}(): {name!r} is no name of a member: it must not be empty nor have a dot'
            raise exceptions.made(KeyError, text, GTorch.Error.INVALID)
        if value is not None and not isinstance(value, kind):
            raise TypeError(f'{function}(): {name} must be a {kind.__name__} or None, not {type(value).__name__}')
        if kind is not RawModule or value is not None:
            self._gt_check_free(name)

    def _gt_take(self, name, value):
        """Assigns to a parameter, buffer or module; returns False if the name is none of these, and None if a
        tensor is computed."""
        own = kind = self._gt_own_kind(name)
        if own is not None and RawModule.is_computed(self, name):
            parametrize.Computed.set_tensor(self, name, value)
            return None
        if isinstance(value, GTorch.Parameter):
            kind = 'parameter'
        elif isinstance(value, RawModule):
            kind = 'module'
        if kind is None:
            return False
        expected = {'parameter': GTorch.Parameter, 'buffer': RawTensor, 'module': RawModule}[kind]
        if value is not None and not isinstance(value, expected):
            raise TypeError(
                f'{type(self).__name__}.{name} is a {kind}: a {type(value).__name__} cannot be '
                f'assigned to it, only a {expected.__name__} or None'
            )
        self._gt_check_free(name, here=False)
        if own not in (None, kind) or (kind == 'module' and value is None):
            members.unregister(self, name)
        if kind == 'buffer':
            RawModule.set_buffer(self, name, value)
        elif kind == 'parameter' or value is not None:
            getattr(RawModule, f'register_{kind}')(self, name, value)
        return True

    def _gt_may_be_member(self, name, value=None):
        """Tells whether to ask C. Names that begin with _ are mostly something else, and are read often."""
        if not name.startswith('_'):
            return True
        former = self.__dict__.get(name, False)
        return former is None or isinstance(value, MEMBERS) or isinstance(former, MEMBERS)

    def _gt_show(self, name, value):
        """Lets a member be found sooner than by __getattr__(); a property of the class stays one."""
        if getattr(type(self), name, None) is None:
            GObject.Object.__setattr__(self, name, value)

    def __setattr__(self, name, value):
        if isinstance(value, MEMBERS) and not layers.is_made(self):
            own = type(self).__name__
            raise AttributeError(f'{own}: super().__init__() must be called before {name!r} can be assigned')
        lasting = kinds_of.persistence(value)
        if lasting is not None and self._gt_own_kind(name) != 'buffer':
            self.register_buffer(name, value, lasting)
            return
        taken = self._gt_may_be_member(name, value) and self._gt_take(name, value)
        if taken:
            self._gt_show(name, value)
        elif taken is False:
            set_attribute(self, name, value)

    def __delattr__(self, name):
        if self._gt_may_be_member(name) and self._gt_own_kind(name) is not None:
            members.unregister(self, name)
        else:
            super().__delattr__(name)

    def __getattr__(self, name):
        # called only for names that are not found otherwise
        if not name.startswith('__'):
            kind = self._gt_own_kind(name)
            if kind == 'module':
                return RawModule.get_module(self, name)
            if kind is not None:
                names = RawModule.get_member_names(self, getattr(GTorch.MemberKind, kind.upper()))
                if name in names:
                    return getattr(RawModule, f'get_{kind}')(self, name)
                return parametrize.Computed.get_tensor(self, name) if RawModule.is_computed(self, name) else None
        why = absent.MODULE.get(name)
        text = '' if why is None else f': {why}'
        raise AttributeError(f'{type(self).__name__} has no attribute {name!r}{text}', name=name)

    def register_parameter(self, name, parameter):
        """Adds a parameter, or None for one that this module does not have."""
        self._gt_check_member('register_parameter', name, parameter, GTorch.Parameter)
        RawModule.register_parameter(self, name, parameter)
        self._gt_show(name, parameter)

    def register_module(self, name, module):
        """Adds a child module, or with None removes the one of the name."""
        self._gt_check_member('add_module', name, module, RawModule)
        if module is not None:
            RawModule.register_module(self, name, module)
        elif self._gt_own_kind(name) == 'module':
            RawModule.unregister(self, name)
        self._gt_show(name, module)

    def unregister(self, name):
        """Removes a member."""
        members.unregister(self, name)
        return True

    add_module = register_module

    def register_buffer(self, name, buffer, persistent=True):
        self._gt_check_member('register_buffer', name, buffer, RawTensor)
        RawModule.register_buffer(self, name, buffer, convert_bool(persistent))
        self._gt_show(name, buffer)

    def set_buffer(self, name, buffer):
        """Replaces a buffer."""
        members.set_buffer(self, name, buffer)
        return True

    def train(self, mode=True):
        """Sets the module and all descendants to training mode, those with a train() of their own through
        that."""
        mode = convert_bool(mode)
        RawModule.train(self, mode)
        _train_inside(self, mode)
        return self

    def eval(self):
        """Does the same as train(False)."""
        return self.train(False)

    def zero_grad(self, set_to_none=True):
        RawModule.zero_grad(self, convert_bool(set_to_none))

    reset_parameters = layers.Reset()

    def requires_grad_(self, requires_grad=True):
        RawModule.set_requires_grad(self, convert_bool(requires_grad))
        return self

    def get_extra_state(self):
        """What belongs to the state beside parameters and buffers, a tensor; None without an override."""
        is_own = type(self).get_extra_state is not Module.get_extra_state  # which has called super()
        return None if is_own else RawModule.get_extra_state(self)

    def set_extra_state(self, value):
        """Takes what get_extra_state() gave."""
        if type(self).set_extra_state is not Module.set_extra_state:
            raise NotImplementedError(f'{type(self).__name__}: super() has no extra state')
        restoring(RawModule.set_extra_state, self, value)

    def state_dict(self, *, destination=None, prefix='', keep_vars=False):
        """The parameters and buffers that last, by their paths behind @prefix; detached unless @keep_vars. Adds them
        to @destination, a dictionary, and returns it."""
        before, _extra.raised = _extra.raised, []
        try:
            found = state.pairs(RawModule.state_lists(self))
            if _extra.raised:
                raise _extra.raised[0]
        finally:
            _extra.raised = before
        if convert_bool(keep_vars):
            own = dict(self.named_parameters(remove_duplicate=False))
            found = {name: own.get(name, tensor) for name, tensor in found.items()}
        if prefix:
            found = {f'{prefix}{name}': tensor for name, tensor in found.items()}
        if destination is not None or own_loading.is_own(self, 'save'):
            return own_loading.save(self, found, prefix, keep_vars, destination)
        return own_loading.described(self, found, prefix)

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copies the tensors of the dictionary, or with @assign makes them those of the module; returns the names that
        it lacks, and those that the module lacks."""
        state.lists('load_state_dict', 'state', state_dict)  # checks them
        strict = convert_bool(strict)
        if own_loading.is_own(self, 'load'):
            if convert_bool(assign):
                name = type(self).__name__
                raise NotImplementedError(f'{name}: load_state_dict(): assign=True is not supported where a class has '
                                          '_load_from_state_dict(), or a module hooks of load_state_dict()')
            return own_loading.load(self, state_dict, strict)
        found = incompatible(self, state_dict)
        if found.missing_keys:
            state_dict = own_loading.completed(self, state_dict)
            found = incompatible(self, state_dict)
        given = state.lists('load_state_dict', 'state', state_dict)
        if convert_bool(assign):
            members.assign(self, state_dict, found, strict)
        else:
            restoring(RawModule.load_state_lists, self, *given, strict)
        return found

    def register_forward_pre_hook(self, hook, *data, prepend=False, with_kwargs=False):
        """Calls hook(module, inputs) before each forward(); with_kwargs, hook(module, inputs, options)."""
        flags = convert_bool(prepend), convert_bool(with_kwargs)
        number = hooks.register_module('register_forward_pre_hook', self, hook, data, *flags)
        return hooks.HookHandle.of(self, number)

    def register_forward_hook(self, hook, *data, prepend=False, with_kwargs=False, always_call=False):
        """Calls hook(module, inputs, output) after each forward(); with_kwargs, hook(module, inputs, options, output).
        With always_call it is called after an error, too."""
        flags = convert_bool(prepend), convert_bool(with_kwargs), convert_bool(always_call)
        number = hooks.register_module('register_forward_hook', self, hook, data, *flags)
        return hooks.HookHandle.of(self, number)

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """Calls hook(module, grad_outputs) before each backward pass of the module; it may return others."""
        name = 'register_full_backward_pre_hook'
        number = hooks.register_module(name, self, hook, (), convert_bool(prepend))
        return hooks.HookHandle.of(self, number)

    def register_full_backward_hook(self, hook, prepend=False):
        """Calls hook(module, grad_inputs, grad_outputs) after each backward pass of the module; it may return other
        gradients of the inputs."""
        number = hooks.register_module('register_full_backward_hook', self, hook, (), convert_bool(prepend))
        return hooks.HookHandle.of(self, number)

    def apply(self, function, *data):
        """Calls @function with each descendant, and last with this module; returns the module."""

        def call(module, *_data):
            function(module, *data)
            return True

        raw = RawModule.apply if mixin is None else mixin.apply
        restoring(raw, self, passes(hooks.describe('apply', function), call))
        return self

    def remove_hook(self, number):
        return hooks.remove(RawModule.remove_hook, self, number)

    def to(self, *args, device=None, dtype=None, non_blocking=False, memory_format=None):
        """Converts parameters and buffers to another dtype, moves them to another device, or does both as another
        tensor. Those of images (of volumes) get @memory_format in memory."""
        arguments.check_format('Module.to', memory_format)
        device, dtype, _non_blocking, _copy = destination(args, dtype, device, non_blocking, False)
        RawModule.to(self, device, dtype)
        wanted = arguments.format_of(memory_format)
        if wanted is not None:
            RawModule.to_memory_format(self, wanted)
        if own_loading.is_inside(self, '_apply'):

            def convert(tensor):
                is_other = not (tensor.is_floating_point() or tensor.is_complex())
                return tensor.to(device=device, dtype=None if is_other else dtype)

            self._apply(convert)  # what C has converted stays as it is
        return self

    def _apply(self, fn, recurse=True):
        """Replaces the tensors of the module, and of those inside it, by what fn(tensor) gives. A class of a program
        overrides it for tensors that are no members; to(), double() and the like call it then."""
        if convert_bool(recurse):
            for _name, child in children_of(self):
                child._apply(fn)
        for _name, parameter in Members.named_parameters(self, recurse=False):
            data, former = parameter.data, parameter.grad
            made, grad = fn(data), None if former is None else fn(former)
            if made is not data or grad is not former:
                parameter.grad = None  # which would not fit
                parameter.data, parameter.grad = made, grad
        for name, buffer in Members.named_buffers(self, recurse=False):
            made = fn(buffer)
            if made is not buffer:
                self.set_buffer(name, made)
        return self

    def to_empty(self, *, device, recurse=True):
        """Puts parameters and buffers on another device, without their values: elements may have any."""
        for _name, module in self.named_modules() if convert_bool(recurse) else (('', self),):
            for name, parameter in module.named_parameters(recurse=False):
                parameter.data = _empty_on(parameter, device)
            for name, buffer in module.named_buffers(recurse=False):
                module.set_buffer(name, _empty_on(buffer, device))
        return self

    def compile(self, *_args, **_options):
        """Is not there: operations are not compiled together."""
        raise NotImplementedError(
            'Module.compile(): there is no compiler; cuda.make_graphed_callables() replays the launches of a module as '
            'one'
        )

    extra_repr = layers.extra_repr_of(RawModule)


def _looked_up(name, input, weight, padding_idx, sparse):
    """Checks the arguments of a look-up."""
    if convert_bool(sparse):
        raise TypeError(f'{name}(): sparse is not supported: gradients are dense, as all tensors are')
    if not (isinstance(input, RawTensor) and isinstance(weight, RawTensor)):
        raise TypeError(f'{name}() takes the indices and the weight, two tensors')
    if weight.is_floating_point() < input.is_floating_point():
        raise TypeError(f'{name}() takes the indices first and then the weight')
    if padding_idx is None:
        return {}
    given, n = convert_whole(padding_idx), len(weight)
    if not -n <= given < n:
        raise ValueError(f'{name}(): padding_idx {given} is not one of {n} rows')
    return {'padding_idx': given + n if given < 0 else given}


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """The rows of @weight at the indices in @input. The row @padding_idx, which counts from the end if it is negative,
    gets no gradient. Rows whose norm exceeds @max_norm are scaled to it first, in place. The gradient of a row may be
    divided by how often it occurs."""
    options = _looked_up('embedding', input, weight, padding_idx, sparse)
    return _embedding(weight, input, scale_grad_by_freq=scale_grad_by_freq, max_norm=max_norm, norm_type=norm_type,
                      **options)


def embedding_bag(input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode='mean',
                  sparse=False, per_sample_weights=None, include_last_offset=False, padding_idx=None):
    """Sums, means or maxima of the rows of @weight at bags of indices: the rows of @input, or those that begin at the
    @offsets."""
    options = _looked_up('embedding_bag', input, weight, padding_idx, sparse)
    return _embedding_bag(weight, input, offsets, scale_grad_by_freq, mode, per_sample_weights, include_last_offset,
                          max_norm=max_norm, norm_type=norm_type, **options)


def _sequential():
    def made(named):
        from gi.repository import GTorch as found

        row = found.Sequential()
        for name, module in named:
            if name.isdecimal():
                row.append(module)
            else:
                row.register_module(name, module)
        return row

    class Sequential(containers.Row, GTorch.Sequential):
        """A chain of modules: GTorch.nn.Sequential(a, b, c)."""

        __module__ = OVERRIDES
        _gt_raw = GTorch.Sequential

        def __init__(self, *modules):
            named = modules[0] if len(modules) == 1 and isinstance(modules[0], dict) else {}
            modules = tuple(named.values()) or modules
            for module in modules:
                if not isinstance(module, RawModule):
                    kind = type(module).__name__
                    raise TypeError(f'{type(self).__name__}() takes modules, not {kind}')
            layers.construct(self, {})
            for name, module in named.items():
                self.add_module(name, module)
            for module in () if named else modules:
                self.append(module)

        def _gt_check_child(self, module):
            """C hands on one tensor."""
            if isinstance(module, RawModule) and rnn.gives_states(module):
                kind = type(module).__name__
                raise TypeError(f'{type(self).__name__} hands one tensor from module to module, and {kind} gives its '
                                'output and its states: call it in a module of your own, whose forward() gives the '
                                'output')

        def _gt_check_member(self, function, name, value, kind):
            self._gt_check_child(value)
            super()._gt_check_member(function, name, value, kind)

        def _gt_take(self, name, value):
            self._gt_check_child(value)
            return super()._gt_take(name, value)

        def append(self, module):
            """Appends a module."""
            self._gt_check_child(module)
            return super().append(module)

        def insert(self, position, module):
            """Inserts a module before the one at a position."""
            self._gt_check_child(module)
            return super().insert(position, module)

        _gt_forward = layers.forward_of(GTorch.Sequential)

        def _gt_is_for_python(self):
            """Is a __call__() inside that C knows nothing of?"""
            return any(
                not Module._gt_with_call.isdisjoint(type(child).__mro__)
                or (isinstance(child, Sequential) and child._gt_is_for_python())
                for _name, child in children_of(self)
            )

        def forward(self, *inputs, **options):
            if not Module._gt_with_call or not self._gt_is_for_python():
                return self._gt_forward(*inputs, **options)
            (value,) = bind('forward', {'input': REQUIRED}, inputs, options).values()
            for _name, child in children_of(self):
                value = child(value)
            return value

        def __call__(self, *inputs, **options):
            if not Module._gt_with_call or not self._gt_is_for_python():
                return super().__call__(*inputs, **options)
            return hooks.run_forward(self, inputs, options)

        def _gt_part(self, pairs):
            return made(pairs)

        def __add__(self, other):
            if not isinstance(other, Sequential):
                return NotImplemented
            return made((str(i), child) for i, child in enumerate([*self, *other]))

        def __mul__(self, n):
            if isinstance(n, bool) or not isinstance(n, int):
                return NotImplemented
            return made((str(i), child) for i, child in enumerate(list(self) * _times(n)))

        __rmul__ = __mul__

        def __imul__(self, n):
            if isinstance(n, bool) or not isinstance(n, int):
                return NotImplemented
            for child in list(self) * (_times(n) - 1):
                self.append(child)
            return self

    return Sequential


def _times(n):
    if n <= 0:
        raise ValueError(f'a Sequential is repeated once or more, not {n} times')
    return n


@final
class Parameter(GTorch.Parameter):
    """A tensor that a module learns: GTorch.nn.Parameter(GTorch.zeros(3))."""

    __module__ = OVERRIDES

    def __new__(cls, data, requires_grad=True):
        return GTorch.Parameter.new(data, convert_bool(requires_grad))

    def __init__(self, *_args, **_options):
        pass

    def __repr__(self):
        return f'Parameter containing:\n{self.to_string()}'

    def __copy__(self):
        return GTorch.Parameter.new(self.detach(), self.requires_grad)

    def __deepcopy__(self, memo):
        result = memo[id(self)] = GTorch.Parameter.new(copied(self, memo), self.requires_grad)
        return result

    def __reduce_ex__(self, _protocol):
        from gi.overrides import _gtorch_unpickle as unpickle

        return unpickle.parameter, (self.detach(), self.requires_grad)


IN_PLACE = ('celu', 'elu', 'hardtanh', 'leaky_relu', 'relu', 'rrelu', 'selu', 'threshold')


def _in_place(function):
    def call(input, *args, **options):
        return function(input, *args, inplace=True, **options)

    call.__name__ = call.__qualname__ = f'{function.__name__}_'
    call.__wrapped__ = function
    call.__doc__ = f'Does what {function.__name__}() does, to the tensor itself.'
    return call


def _upsample(interpolate):
    def upsample(input, size=None, scale_factor=None, mode='nearest', align_corners=None):
        """The former name of interpolate()."""
        return interpolate(input, size, scale_factor, mode, align_corners)

    upsample.__qualname__ = 'upsample'
    return upsample


def _layer(name, raw):
    own = transformer.members(name) or losses.members(name)
    return layers.layer(name, raw, own, transformer.activation)


@functools.cache
def _lambda():
    from gi.repository import GTorch as found

    class Lambda(found.Module):
        """A function in the place of a module: it takes a tensor, and gives one."""

        __module__ = 'gtorch.transforms'

        def __init__(self, lambd):
            super().__init__()
            if not callable(lambd):
                raise TypeError(f'Lambda(): {lambd!r} cannot be called')
            self.lambd = lambd

        def forward(self, image):
            return self.lambd(image)

        def extra_repr(self):
            return getattr(self.lambd, '__qualname__', type(self.lambd).__name__)

    return Lambda


def as_module(what, value):
    """A transform: a module, or a function that becomes one."""
    if value is None or isinstance(value, RawModule):
        return value
    if not callable(value):
        raise TypeError(f'{what}: a transform is a module or a function, not {type(value).__name__}')
    return _lambda()(value)


def _compose(sequential):
    def Compose(transforms):  # a class there
        """One transform after the other: a Sequential of them. Functions of a tensor may be among them."""
        return sequential(*(as_module('Compose()', one) for one in transforms))

    return Compose


def _lambda_transform(lambd):
    """A function in the place of a module: it takes a tensor, and gives one."""
    return _lambda()(lambd)


_lambda_transform.__name__ = _lambda_transform.__qualname__ = 'Lambda'  # a class there


def install(export, submodule, functions):
    """Classes that are derived from by others come first: PyGObject looks bases up only once."""
    export('Module', override(Module))
    nn = {'Module': Module, **kinds_of.NN}
    for cls in (_sequential(), *containers.classes(), Parameter):
        nn[cls.__name__] = export(cls.__name__, override(cls))
    make_later(layers.LAYERS, _layer)
    for cls in transformer.stacks():
        nn[cls.__name__] = export(cls.__name__, cls)
    # PyTorch's unfold() there is another one than that of tensors.
    functional = {name: function for name, function in functions.items() if name != 'unfold'}
    functional.update(embedding=embedding, embedding_bag=embedding_bag, **losses.functions(export))
    functional.update(unfold=functions['im2col'], fold=functions['col2im'])
    functional.update({f'{name}_': _in_place(functions[name]) for name in IN_PLACE})
    functional.update(conv_tbc=further.conv_tbc, upsample=_upsample(functions['interpolate']))
    nn['init'] = submodule('nn.init', 'The first values of parameters.', init.functions())
    nn['functional'] = submodule('nn.functional', 'Operations as functions.', functional)
    sequences = packed.members(export('PackedSequence', override(packed.PackedSequence)))
    sequences = submodule('nn.utils.rnn', 'Sequences of different lengths.', sequences)
    row = export('ParametrizationList', override(parametrize.parametrization_list()))
    computed = parametrize.install(submodule, row)
    computed['prune'] = submodule('nn.utils.prune', 'Masks for parameters.', prune.members())
    nn['utils'] = submodule('nn.utils', 'What networks are used with.',
                            {**utils.functions(), **computed, 'rnn': sequences})
    of_parameters = {'Parameter': nn['Parameter'], 'Buffer': nn['Buffer']}
    nn['parameter'] = submodule('nn.parameter', 'Parameters.', of_parameters)
    kinds = {name: kind for name, kind in nn.items() if isinstance(kind, type)}
    nn['NLLLoss2d'] = kinds['NLLLoss2d'] = GTorch.NLLLoss
    of_all = submodule('nn.modules.module', 'Modules, and hooks of all modules.', {'Module': Module, **hooks.OF_ALL})
    nn['modules'] = submodule('nn.modules', 'Modules and layers.', {**kinds, 'module': of_all})
    for module in (nn['modules'], submodule('nn', 'Modules and layers.', nn)):
        show_later(module, layers.of_space(None), GTorch)
    own_transforms = {'Compose': _compose(nn['Sequential']), 'Lambda': _lambda_transform}
    show_later(submodule('transforms', 'Transforms of images.', own_transforms),
               layers.of_space('transforms'), GTorch)
    optim.install(export, submodule)
