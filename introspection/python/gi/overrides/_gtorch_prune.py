# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Masks for parameters: GTorch.nn.utils.prune. The methods of the library are functions in C; programs derive others
from BasePruningMethod."""

import abc

from gi.overrides import _gtorch_ops as ops
from gi.overrides._gtorch_convert import GTorch, RawTensor, convert_double, convert_whole
from gi.overrides._gtorch_exceptions import lacking
from gi.overrides._gtorch_parametrize import Computed, forget, module_of

KINDS = ('unstructured', 'structured', 'global')
APPLIED = '_pruning_methods'  # the attribute of a module that has the method of each parameter by name


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


# --- methods ---


def _is_masked(module, name):
    names = [key for key, _buffer in module.named_buffers(recurse=False)]
    return GTorch.Module.is_computed(module, name) and f'{name}_mask' in names


def _applied(module):
    return module.__dict__.setdefault(APPLIED, {})


def _joined(module, name, method):
    """The method that a parameter has with @method: a container if there has been another one."""
    method._tensor_name = name
    if not _is_masked(module, name):
        return method
    former = module.__dict__.get(APPLIED, {}).get(name)
    methods = list(former) if isinstance(former, PruningContainer) else [former] if former is not None else []
    return _container(name, *methods, method)


def _container(name, *methods):
    made = PruningContainer()
    made._tensor_name = name
    for method in methods:
        made.add_pruning_method(method)
    return made


def _ones_like(tensor):
    return tensor.new_ones(tensor.shape)


def _check_shape(what, tensor, like):
    if not isinstance(tensor, RawTensor):
        raise TypeError(f'prune: {what} must be a tensor, not {type(tensor).__name__}')
    if tensor.shape != like.shape:
        raise ValueError(f'prune: {what} must have the shape {list(like.shape)}, it has {list(tensor.shape)}')


class BasePruningMethod(abc.ABC):
    """A way to prune: a class of the program's computes a mask, and has PRUNING_TYPE, which is 'unstructured',
    'structured' (with an attribute dim) or 'global'."""

    _tensor_name = None

    @abc.abstractmethod
    def compute_mask(self, t, default_mask):
        """A mask for @t, of zeros for what goes and of ones; @default_mask is the one that there is."""

    def apply_mask(self, module):
        """The parameter, with zeros where it is pruned."""
        if self._tensor_name is None:
            raise ValueError(f'{type(self).__name__}.apply_mask(): the method has not been applied to a parameter')
        mask, orig = (getattr(module, f'{self._tensor_name}_{part}') for part in ('mask', 'orig'))
        return mask.to(orig.dtype) * orig

    @classmethod
    def apply(cls, module, name, *args, importance_scores=None, **options):
        """Prunes a parameter; returns the method, or a container of all that have been applied."""
        module_of(f'{cls.__name__}.apply', module)
        method = _joined(module, name, cls(*args, **options))
        tensor = Computed.get_tensor(module, name)
        scores = tensor if importance_scores is None else importance_scores
        _check_shape('importance_scores', scores, tensor)
        former = getattr(module, f'{name}_mask').detach().clone() if _is_masked(module, name) else None
        mask = method.compute_mask(scores, default_mask=_ones_like(tensor) if former is None else former)
        _check_shape(f'the mask of {cls.__name__}', mask, tensor)
        Computed.prune_identity(module, name)
        setattr(module, f'{name}_mask', mask.detach().to(tensor.dtype))
        forget(module, name)
        _applied(module)[name] = method
        return method

    def prune(self, t, default_mask=None, importance_scores=None):
        """A tensor, with zeros where it would be pruned."""
        scores = t if importance_scores is None else importance_scores
        _check_shape('importance_scores', scores, t)
        mask = _ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=mask)

    def remove(self, module):
        """Makes the parameter, with zeros where it is pruned, one of the module again."""
        if self._tensor_name is None:
            raise ValueError(f'{type(self).__name__}.remove(): the method has not been applied to a parameter')
        remove(module, self._tensor_name)


class PruningContainer(BasePruningMethod):
    """Several methods for one parameter, the last of which prunes what the others have left."""

    def __init__(self, *methods):
        self._pruning_methods = ()
        if len(methods) == 1:
            self._tensor_name = methods[0]._tensor_name
        for method in methods:
            self.add_pruning_method(method)

    def add_pruning_method(self, method):
        """Adds a method of the same parameter."""
        if method is not None and not isinstance(method, BasePruningMethod):
            raise TypeError(f'{type(method).__name__} is not a BasePruningMethod subclass')
        if method is not None and method._tensor_name != self._tensor_name:
            raise ValueError(
                f'PruningContainer: its methods are those of the parameter {self._tensor_name!r}, and this one is that '
                f'of {method._tensor_name!r}'
            )
        self._pruning_methods += (method,)

    def __len__(self):
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, index):
        return self._pruning_methods[index]

    def compute_mask(self, t, default_mask):
        """The mask that the last method makes of one that there is."""
        if not self._pruning_methods:
            raise ValueError('PruningContainer.compute_mask(): it has no methods')
        method, mask = self._pruning_methods[-1], default_mask.to(t.dtype).clone()
        kind = getattr(method, 'PRUNING_TYPE', None)
        if kind == 'global':
            return method.compute_mask(t, default_mask=mask).to(t.dtype)
        if kind == 'unstructured':
            left = mask == 1
            part = method.compute_mask(t.masked_select(left), default_mask=mask.masked_select(left))
            return mask.masked_scatter(left, part.to(t.dtype))
        if kind == 'structured':
            return _of_slices(method, t, mask)
        raise ValueError(f'{type(method).__name__}: PRUNING_TYPE must be one of {", ".join(KINDS)}, not {kind!r}')


def _of_slices(method, t, mask):
    """The mask of a method that prunes among the slices that are left."""
    if not hasattr(method, 'dim'):
        raise AttributeError(f"{type(method).__name__}: a method of PRUNING_TYPE 'structured' needs the attribute dim")
    dim = method.dim + t.ndim if method.dim < 0 else method.dim
    if not 0 <= dim < t.ndim:
        raise IndexError(f'{type(method).__name__}: dim {method.dim} is out of range for shape {list(t.shape)}')
    others = [one for one in range(t.ndim) if one != dim]
    kept = ((mask.sum(dim=others) if others else mask) != 0).nonzero().flatten()
    part = method.compute_mask(t.index_select(dim, kept), default_mask=mask.index_select(dim, kept))
    return mask.index_copy(dim, kept, part.to(t.dtype))


# --- the methods of the library ---


def _mask_of(t, default_mask, prune):
    """The mask that a function of C gives a parameter like @t."""
    holder = GTorch.Module()
    holder.register_parameter('t', GTorch.Parameter.new(t.detach().clone(), False))
    prune(holder, 't')
    return default_mask * holder.get_tensor('t_mask').to(default_mask.dtype)


class _Builtin(BasePruningMethod):
    def compute_mask(self, t, default_mask):
        return _mask_of(t, default_mask, self._prune)

    @classmethod
    def apply(cls, module, name, *args, **options):
        """Prunes a parameter; returns the method, or a container of all that have been applied."""
        scores = {'importance_scores': options.pop('importance_scores')} if 'importance_scores' in options else {}
        method = cls(*args, **options)
        joined = _joined(module_of(cls.__name__, module), name, method)
        with lacking(AttributeError):
            method._prune(module, name, **scores)
        _applied(module)[name] = joined
        return joined


class Identity(_Builtin):
    """Prunes nothing, but adds the mask."""

    PRUNING_TYPE = 'unstructured'

    def _prune(self, module, name):
        Computed.prune_identity(module, name)


class RandomUnstructured(_Builtin):
    """Prunes random elements of those that are left."""

    PRUNING_TYPE = 'unstructured'

    def __init__(self, amount):
        _amount('random_unstructured', amount)
        self.amount = amount

    def _prune(self, module, name):
        Computed.prune_random_unstructured(module, name, *_amount('random_unstructured', self.amount))


class L1Unstructured(_Builtin):
    """Prunes the elements of least absolute value."""

    PRUNING_TYPE = 'unstructured'

    def __init__(self, amount):
        _amount('l1_unstructured', amount)
        self.amount = amount

    def _prune(self, module, name, importance_scores=None):
        Computed.prune_l1_unstructured(module, name, *_amount('l1_unstructured', self.amount), importance_scores)


class RandomStructured(_Builtin):
    """Prunes random slices along a dimension."""

    PRUNING_TYPE = 'structured'

    def __init__(self, amount, dim=-1):
        _amount('random_structured', amount)
        self.amount, self.dim = amount, convert_whole(dim)

    def _prune(self, module, name):
        Computed.prune_random_structured(module, name, *_amount('random_structured', self.amount), self.dim)


class LnStructured(_Builtin):
    """Prunes the slices along a dimension that have the least norms of order n."""

    PRUNING_TYPE = 'structured'

    def __init__(self, amount, n, dim=-1):
        _amount('ln_structured', amount)
        self.amount, self.n, self.dim = amount, n, convert_whole(dim)
        _order(n)

    def _prune(self, module, name, importance_scores=None):
        given = _amount('ln_structured', self.amount)
        Computed.prune_ln_structured(module, name, *given, _order(self.n), self.dim, importance_scores)


class CustomFromMask(_Builtin):
    """Prunes where the mask is zero."""

    PRUNING_TYPE = 'global'

    def __init__(self, mask):
        self.mask = mask

    def compute_mask(self, t, default_mask):
        _check_shape('mask', self.mask, default_mask)
        return default_mask * self.mask.to(default_mask.dtype)

    def _prune(self, module, name):
        Computed.prune_custom_from_mask(module, name, self.mask)


# --- functions ---


def identity(module, name):
    """Prunes nothing, but adds the mask."""
    Identity.apply(module, name)
    return module


def random_unstructured(module, name, amount):
    """Prunes random elements of those that are left."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module, name, amount, importance_scores=None):
    """Prunes the elements of least absolute value."""
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module, name, amount, dim):
    """Prunes random slices along a dimension."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module, name, amount, n, dim, importance_scores=None):
    """Prunes the slices along a dimension that have the least norms of order n."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module, name, mask):
    """Prunes where the mask is zero."""
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module, name):
    """Makes the parameter, with zeros where it is pruned, one of the module again."""
    with lacking(ValueError):
        module_of('remove', module).remove_pruning(name)
    module.__dict__.get(APPLIED, {}).pop(name, None)
    return module


def is_pruned(module):
    """Is a parameter of the module or within it pruned?"""
    return module_of('is_pruned', module).is_pruned()


def _by_method(pairs, method, scores):
    """Prunes by a method of the program's, for which all parameters are one vector."""
    method._tensor_name = 'temp'
    tensors = [Computed.get_tensor(module, name) for module, name in pairs]
    scores = tensors if scores is None else scores
    masks = [getattr(module, f'{name}_mask') if _is_masked(module, name) else _ones_like(tensor)
             for (module, name), tensor in zip(pairs, tensors)]
    for score, tensor in zip(scores, tensors):
        _check_shape('importance_scores', score, tensor)
    flat = [ops.FUNCTIONS['cat']([one.detach().reshape(-1) for one in some]) for some in (scores, masks)]
    mask, at = _container('temp', method).compute_mask(flat[0], default_mask=flat[1]), 0
    _check_shape(f'the mask of {type(method).__name__}', mask, flat[0])
    for (module, name), tensor in zip(pairs, tensors):
        custom_from_mask(module, name, mask[at : at + tensor.numel()].reshape(tensor.shape))
        at += tensor.numel()


def global_unstructured(parameters, pruning_method, importance_scores=None, **options):
    """Prunes elements of several parameters, pairs of a module and a name, by comparing all of them: by a class of
    methods that prune single elements, which is made with the other arguments."""
    pairs = [(module_of('global_unstructured', module), name) for module, name in parameters]
    is_method = isinstance(pruning_method, type) and issubclass(pruning_method, BasePruningMethod)
    if not is_method or getattr(pruning_method, 'PRUNING_TYPE', None) != 'unstructured':
        raise TypeError('global_unstructured(): pruning_method must be a class of BasePruningMethod whose PRUNING_TYPE '
                        f"is 'unstructured', such as prune.L1Unstructured, not {pruning_method!r}")
    scores = None
    if importance_scores is not None:
        given = dict(importance_scores)
        scores = [given[pair] if pair in given else pair[0].get_tensor(pair[1]) for pair in pairs]
    method = pruning_method(**options)
    if pruning_method not in (L1Unstructured, RandomUnstructured):
        _by_method(pairs, method, scores)
        return
    at_random = pruning_method is RandomUnstructured
    try:
        GTorch.prune_global_unstructured(
            [module for module, _name in pairs], [name for _module, name in pairs], at_random,
            *_amount('global_unstructured', method.amount), scores
        )
    finally:
        for module, name in pairs:
            forget(module, name)


def members():
    """What nn.utils.prune has."""
    found = (
        BasePruningMethod, PruningContainer, Identity, RandomUnstructured, L1Unstructured, RandomStructured,
        LnStructured, CustomFromMask, identity, random_unstructured, l1_unstructured, random_structured, ln_structured,
        custom_from_mask, global_unstructured, remove, is_pruned,
    )
    return {one.__name__: one for one in found}
