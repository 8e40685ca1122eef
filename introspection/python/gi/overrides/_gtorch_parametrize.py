# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tensors of modules that are computed from others: nn.utils.parametrize, parametrizations, weight_norm, spectral_norm,
prune and fusion."""

import contextlib
import functools

from gi.overrides._gtorch_containers import Row
from gi.overrides._gtorch_convert import GTorch, RawTensor, convert_bool, convert_double, convert_enum, convert_whole
from gi.overrides._gtorch_errors import DOMAIN, Failure, own_vfunc, passing, restores

OVERRIDES = 'gi.overrides.GTorch'  # override() finds the namespace through it
RawModule = GTorch.Module
SUFFIXES = ('', '_g', '_v', '_u', '_orig', '_mask')
CHANGES = (
    'register_parametrization', 'remove_parametrizations', 'parametrize_weight_norm', 'parametrize_spectral_norm',
    'parametrize_orthogonal', 'apply_weight_norm', 'remove_weight_norm', 'apply_spectral_norm', 'remove_spectral_norm',
    'prune_identity', 'prune_random_unstructured', 'prune_l1_unstructured', 'prune_random_structured',
    'prune_ln_structured', 'prune_custom_from_mask', 'remove_pruning', 'restore_computed',
)


def _forget(module, name):
    """Lets members be asked for in C again, which may have others now."""
    for one in ('parametrizations', *(f'{name}{suffix}' for suffix in SUFFIXES)):
        module.__dict__.pop(one, None)


def _changing(name):
    raw = restores(getattr(RawModule, name))

    def call(self, tensor_name, *values):
        try:
            return raw(self, tensor_name, *values)
        finally:
            _forget(self, tensor_name)

    call = functools.wraps(getattr(RawModule, name))(call)
    call.__name__, call.__qualname__ = name, f'Module.{name}'
    return call


class Computed:
    """The part of Module that has tensors that are computed."""

    def get_tensor(self, name):
        """A parameter or buffer; one that is computed is computed."""
        return _get_tensor(self, name)

    def set_tensor(self, name, value):
        """Assigns to a tensor that is parametrized."""
        if not isinstance(value, RawTensor):
            raise TypeError(f'{type(self).__name__}.{name} is computed: only a tensor can be assigned to it, not '
                            f'{type(value).__name__}')
        return _set_tensor(self, name, value)


_get_tensor, _set_tensor = restores(RawModule.get_tensor), restores(RawModule.set_tensor)
for _name in CHANGES:
    setattr(Computed, _name, _changing(_name))


def override_right_inverse(cls):
    """Lets C call right_inverse() of a class of the program's."""
    function = own_vfunc(cls, 'right_inverse')
    if function is None:
        return

    def listed(self, value):
        try:
            found = function(self, value)
        except NotImplementedError as error:
            text = str(error) or 'it is not implemented'
            message = f'{type(self).__name__}: right_inverse: {text}'
            raise Failure(message, DOMAIN, int(GTorch.Error.NOT_SUPPORTED)) from error
        found = list(found) if isinstance(found, (list, tuple)) else [found]
        for one in found:
            if not isinstance(one, RawTensor):
                raise TypeError(f'right_inverse() gave {type(one).__name__}, not a tensor')
        return found

    cls.do_right_inverse = lambda self, value: passing(type(self).__name__, listed, self, value)


def parametrization_list():
    class ParametrizationList(Row, GTorch.ParametrizationList):
        """The parametrizations of one tensor, and what it is computed from."""

        __module__ = OVERRIDES

        @property
        def is_tensor(self):
            """Is it computed from one tensor?"""
            return self.has_one()

        def forward(self):
            """Computes the tensor."""
            return _compute(self)

        def __call__(self):
            return _compute(self)

        def right_inverse(self, value):
            """Gives what the tensor is computed from the values for @value."""
            _inverse(self, value)

    _compute = restores(GTorch.ParametrizationList.compute)
    _inverse = restores(GTorch.ParametrizationList.right_inverse)
    for name in ('append', 'extend', 'insert', 'pop', '__setitem__', '__delitem__'):
        setattr(ParametrizationList, name, _refuse(name))
    return ParametrizationList


def _refuse(name):
    def call(self, *_args):
        raise TypeError(f'ParametrizationList.{name}(): only register_parametrization() and '
                        'remove_parametrizations() change it')

    return call


def _module(name, value):
    if not isinstance(value, RawModule):
        raise TypeError(f'{name}(): module must be a Module, not {type(value).__name__}')
    return value


def _whole(value):
    """A dimension that may be None."""
    return GTorch.NONE if value is None else convert_whole(value)


# --- nn.utils.parametrize ---


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """Lets a tensor of a module be what the forward of @parametrization computes from it; returns the module."""
    _module('register_parametrization', module)
    added = _module('register_parametrization', parametrization)
    module.register_parametrization(tensor_name, added, convert_bool(unsafe))
    return module


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """Makes the tensor one of the module's again, with the value that is computed or the original one."""
    _module('remove_parametrizations', module)
    module.remove_parametrizations(tensor_name, convert_bool(leave_parametrized))
    return module


def is_parametrized(module, tensor_name=None):
    """Is the tensor, or any one of the module's own, parametrized?"""
    return _module('is_parametrized', module).is_parametrized(tensor_name)


def type_before_parametrizations(module):
    """The class of the module: parametrizations do not change it."""
    return type(_module('type_before_parametrizations', module))


@contextlib.contextmanager
def cached():
    """Within it, each parametrized tensor is computed once."""
    GTorch.parametrize_begin_cache()
    try:
        yield
    finally:
        GTorch.parametrize_end_cache()


# --- nn.utils.parametrizations, weight_norm and spectral_norm ---


def _parametrized_weight_norm(module, name='weight', dim=0):
    """Parametrizes a weight by its norms and directions."""
    _module('weight_norm', module).parametrize_weight_norm(name, _whole(dim))
    return module


def _parametrized_spectral_norm(module, name='weight', n_power_iterations=1, eps=1e-12, dim=None):
    """Parametrizes a weight so that its largest singular value is 1."""
    _module('spectral_norm', module).parametrize_spectral_norm(
        name, convert_whole(n_power_iterations), convert_double(eps), _whole(dim)
    )
    return module


def orthogonal(module, name='weight', orthogonal_map=None, *, use_trivialization=True):
    """Parametrizes a weight so that it is orthogonal: by 'matrix_exp', 'cayley' or 'householder'."""
    given = 'automatic' if orthogonal_map is None else orthogonal_map
    kind = convert_enum(GTorch.OrthogonalMap, given, 'orthogonal(): orthogonal_map')
    _module('orthogonal', module).parametrize_orthogonal(name, kind, convert_bool(use_trivialization))
    return module


def weight_norm(module, name='weight', dim=0):
    """Computes a weight from weight_g, its norms, and weight_v, its directions."""
    _module('weight_norm', module).apply_weight_norm(name, _whole(dim))
    return module


def remove_weight_norm(module, name='weight'):
    """Makes the weight a parameter again."""
    _module('remove_weight_norm', module).remove_weight_norm(name)
    return module


def spectral_norm(module, name='weight', n_power_iterations=1, eps=1e-12, dim=None):
    """Divides a weight, weight_orig, by its largest singular value."""
    _module('spectral_norm', module).apply_spectral_norm(
        name, convert_whole(n_power_iterations), convert_double(eps), _whole(dim)
    )
    return module


def remove_spectral_norm(module, name='weight'):
    """Makes the weight a parameter again."""
    _module('remove_spectral_norm', module).remove_spectral_norm(name)
    return module


# --- nn.utils.prune ---


def _amount(name, amount):
    """A share, if it is a float, or a number of elements."""
    if isinstance(amount, bool) or not isinstance(amount, (int, float)):
        raise TypeError(f'{name}(): amount must be a number, not {amount!r}')
    return float(amount), isinstance(amount, int)


def _order(n):
    if n == 'fro':
        return 2.0
    if isinstance(n, str):
        raise TypeError(f'ln_structured(): n is a number or "fro", not {n!r}')
    return convert_double(n)


def identity(module, name):
    """Prunes nothing, but adds the mask."""
    _module('identity', module).prune_identity(name)
    return module


def random_unstructured(module, name, amount):
    """Prunes random elements of those that are left."""
    _module('random_unstructured', module).prune_random_unstructured(name, *_amount('random_unstructured', amount))
    return module


def l1_unstructured(module, name, amount, importance_scores=None):
    """Prunes the elements of least absolute value."""
    given = _amount('l1_unstructured', amount)
    _module('l1_unstructured', module).prune_l1_unstructured(name, *given, importance_scores)
    return module


def random_structured(module, name, amount, dim):
    """Prunes random slices along a dimension."""
    given = _amount('random_structured', amount)
    _module('random_structured', module).prune_random_structured(name, *given, convert_whole(dim))
    return module


def ln_structured(module, name, amount, n, dim, importance_scores=None):
    """Prunes the slices along a dimension that have the least norms of order n."""
    given = _amount('ln_structured', amount)
    _module('ln_structured', module).prune_ln_structured(name, *given, _order(n), convert_whole(dim), importance_scores)
    return module


def custom_from_mask(module, name, mask):
    """Prunes where the mask is zero."""
    _module('custom_from_mask', module).prune_custom_from_mask(name, mask)
    return module


def remove(module, name):
    """Makes the parameter, with zeros where it is pruned, one of the module again."""
    _module('remove', module).remove_pruning(name)
    return module


def is_pruned(module):
    """Is a parameter of the module or within it pruned?"""
    return _module('is_pruned', module).is_pruned()


def _method(name, function):
    """A class with PyTorch's name of a method of pruning, whose apply() prunes."""

    def apply(cls, module, name, *args, **options):
        return function(module, name, *args, **options)

    return type(name, (), {'__doc__': function.__doc__, '__module__': OVERRIDES, 'apply': classmethod(apply)})


METHODS = {
    'Identity': identity, 'RandomUnstructured': random_unstructured, 'L1Unstructured': l1_unstructured,
    'RandomStructured': random_structured, 'LnStructured': ln_structured, 'CustomFromMask': custom_from_mask,
}
METHODS = {name: _method(name, function) for name, function in METHODS.items()}


def global_unstructured(parameters, pruning_method, importance_scores=None, *, amount):
    """Prunes elements of several parameters, pairs of a module and a name, by comparing all of them: by L1Unstructured
    or RandomUnstructured."""
    pairs = [(_module('global_unstructured', module), name) for module, name in parameters]
    if pruning_method not in (METHODS['L1Unstructured'], METHODS['RandomUnstructured']):
        raise TypeError('global_unstructured(): pruning_method must be prune.L1Unstructured or '
                        f'prune.RandomUnstructured, not {pruning_method!r}')
    scores = None
    if importance_scores is not None:
        given = dict(importance_scores)
        scores = [given[pair] if pair in given else pair[0].get_tensor(pair[1]) for pair in pairs]
    at_random = pruning_method is METHODS['RandomUnstructured']
    try:
        GTorch.prune_global_unstructured(
            [module for module, _name in pairs], [name for _module, name in pairs], at_random,
            *_amount('global_unstructured', amount), scores
        )
    finally:
        for module, name in pairs:
            _forget(module, name)


# --- nn.utils.fusion ---


def fuse_conv_bn_eval(conv, bn, transpose=False):
    """A convolution that computes what @conv and the batch norm @bn compute, both in evaluation mode."""
    return GTorch.fuse_conv_bn_eval(conv, bn, convert_bool(transpose))


def fuse_linear_bn_eval(linear, bn):
    """A linear layer that computes what @linear and the batch norm @bn compute, both in evaluation mode."""
    return GTorch.fuse_linear_bn_eval(linear, bn)


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False):
    """The weight and the bias of that convolution."""
    found = GTorch.fuse_conv_bn_weights(
        conv_w, conv_b, bn_rm, bn_rv, convert_double(bn_eps), bn_w, bn_b, convert_bool(transpose)
    )
    return tuple(found[-2:])


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """The weight and the bias of that linear layer."""
    found = GTorch.fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, convert_double(bn_eps), bn_w, bn_b)
    return tuple(found[-2:])


def _table(*functions, **others):
    return {**{function.__name__.rpartition('_parametrized_')[2]: function for function in functions}, **others}


def install(submodule, make_list):
    """Returns what nn.utils has of these."""
    parametrize = _table(
        register_parametrization, remove_parametrizations, is_parametrized, type_before_parametrizations, cached,
        ParametrizationList=make_list,
    )
    parametrizations = _table(_parametrized_weight_norm, _parametrized_spectral_norm, orthogonal)
    prune = _table(
        identity, random_unstructured, l1_unstructured, random_structured, ln_structured, custom_from_mask,
        global_unstructured, remove, is_pruned, **METHODS,
    )
    fusion = _table(fuse_conv_bn_eval, fuse_linear_bn_eval, fuse_conv_bn_weights, fuse_linear_bn_weights)
    return _table(
        weight_norm, remove_weight_norm, spectral_norm, remove_spectral_norm,
        *(fusion[name] for name in fusion),
        parametrize=submodule('nn.utils.parametrize', 'Tensors that modules compute.', parametrize),
        parametrizations=submodule('nn.utils.parametrizations', 'Ways to compute weights.', parametrizations),
        prune=submodule('nn.utils.prune', 'Masks for parameters.', prune),
        fusion=submodule('nn.utils.fusion', 'Layers that are fused with a batch norm.', fusion),
    )
