# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tensors of modules that are computed from others: nn.utils.parametrize, parametrizations, weight_norm, spectral_norm
and fusion."""

import contextlib
import functools

from gi.overrides._gtorch_containers import Row
from gi.overrides._gtorch_convert import GTorch, RawTensor, convert_bool, convert_double, convert_enum, convert_whole
from gi.overrides._gtorch_errors import DOMAIN, Failure, guards, own_vfunc, passing, restores

OVERRIDES = 'gi.overrides.GTorch'  # override() finds the namespace through it
RawModule = GTorch.Module
SUFFIXES = ('', '_g', '_v', '_u', '_orig', '_mask')
CHANGES = (
    'register_parametrization', 'remove_parametrizations', 'parametrize_weight_norm', 'parametrize_spectral_norm',
    'parametrize_orthogonal', 'apply_weight_norm', 'remove_weight_norm', 'apply_spectral_norm', 'remove_spectral_norm',
    'prune_identity', 'prune_random_unstructured', 'prune_l1_unstructured', 'prune_random_structured',
    'prune_ln_structured', 'prune_custom_from_mask', 'remove_pruning', 'restore_computed',
)


def forget(module, name):
    """Lets members be asked for in C again, which may have others now."""
    for one in ('parametrizations', *(f'{name}{suffix}' for suffix in SUFFIXES)):
        module.__dict__.pop(one, None)


def _changing(name):
    raw = restores(getattr(RawModule, name))

    def call(self, tensor_name, *values):
        try:
            return raw(self, tensor_name, *values)
        finally:
            forget(self, tensor_name)

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

    @guards(cls.__name__)
    def do_right_inverse(self, value):
        return passing(type(self).__name__, listed, self, value)

    cls.do_right_inverse = do_right_inverse


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


def module_of(name, value):
    if not isinstance(value, RawModule):
        raise TypeError(f'{name}(): module must be a Module, not {type(value).__name__}')
    return value


def _whole(value):
    """A dimension that may be None."""
    return GTorch.NONE if value is None else convert_whole(value)


# --- nn.utils.parametrize ---


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """Lets a tensor of a module be what the forward of @parametrization computes from it; returns the module."""
    module_of('register_parametrization', module)
    added = module_of('register_parametrization', parametrization)
    Computed.register_parametrization(module, tensor_name, added, convert_bool(unsafe))
    return module


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """Makes the tensor one of the module's again, with the value that is computed or the original one."""
    module_of('remove_parametrizations', module)
    Computed.remove_parametrizations(module, tensor_name, convert_bool(leave_parametrized))
    return module


def is_parametrized(module, tensor_name=None):
    """Is the tensor, or any one of the module's own, parametrized?"""
    return module_of('is_parametrized', module).is_parametrized(tensor_name)


def type_before_parametrizations(module):
    """The class of the module: parametrizations do not change it."""
    return type(module_of('type_before_parametrizations', module))


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
    module_of('weight_norm', module).parametrize_weight_norm(name, _whole(dim))
    return module


def _parametrized_spectral_norm(module, name='weight', n_power_iterations=1, eps=1e-12, dim=None):
    """Parametrizes a weight so that its largest singular value is 1."""
    module_of('spectral_norm', module).parametrize_spectral_norm(
        name, convert_whole(n_power_iterations), convert_double(eps), _whole(dim)
    )
    return module


def orthogonal(module, name='weight', orthogonal_map=None, *, use_trivialization=True):
    """Parametrizes a weight so that it is orthogonal: by 'matrix_exp', 'cayley' or 'householder'."""
    given = 'automatic' if orthogonal_map is None else orthogonal_map
    kind = convert_enum(GTorch.OrthogonalMap, given, 'orthogonal(): orthogonal_map')
    module_of('orthogonal', module).parametrize_orthogonal(name, kind, convert_bool(use_trivialization))
    return module


def weight_norm(module, name='weight', dim=0):
    """Computes a weight from weight_g, its norms, and weight_v, its directions."""
    module_of('weight_norm', module).apply_weight_norm(name, _whole(dim))
    return module


def remove_weight_norm(module, name='weight'):
    """Makes the weight a parameter again."""
    module_of('remove_weight_norm', module).remove_weight_norm(name)
    return module


def spectral_norm(module, name='weight', n_power_iterations=1, eps=1e-12, dim=None):
    """Divides a weight, weight_orig, by its largest singular value."""
    module_of('spectral_norm', module).apply_spectral_norm(
        name, convert_whole(n_power_iterations), convert_double(eps), _whole(dim)
    )
    return module


def remove_spectral_norm(module, name='weight'):
    """Makes the weight a parameter again."""
    module_of('remove_spectral_norm', module).remove_spectral_norm(name)
    return module


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
    fusion = _table(fuse_conv_bn_eval, fuse_linear_bn_eval, fuse_conv_bn_weights, fuse_linear_bn_weights)
    return _table(
        weight_norm, remove_weight_norm, spectral_norm, remove_spectral_norm,
        *(fusion[name] for name in fusion),
        parametrize=submodule('nn.utils.parametrize', 'Tensors that modules compute.', parametrize),
        parametrizations=submodule('nn.utils.parametrizations', 'Ways to compute weights.', parametrizations),
        fusion=submodule('nn.utils.fusion', 'Layers that are fused with a batch norm.', fusion),
    )
