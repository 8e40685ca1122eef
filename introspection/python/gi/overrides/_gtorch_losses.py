# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Losses whose classes are written by hand: one with two results, and one with a function of the program's."""

import collections

from gi.repository import GObject

from gi.overrides import _gtorch_hooks as hooks
from gi.overrides import _gtorch_layers as layers
from gi.overrides._gtorch_convert import GTorch, RawTensor, convert_bool, convert_double, convert_enum
from gi.overrides._gtorch_errors import passes, restores, restoring
from gi.overrides._gtorch_mixin import mixin

ASMoutput = collections.namedtuple('ASMoutput', ('output', 'loss'))


def _adaptive():
    compute = layers.forward_many_of(GTorch.AdaptiveLogSoftmaxWithLoss, ('input', 'target'))

    def forward(self, *given, **options):
        """The log-probabilities of the targets, and the loss."""
        output = compute(self, *given, **options)
        return ASMoutput(output, -output.mean())

    def call(self, *inputs, **options):
        """Hooks see both results."""
        return hooks.run_forward(self, inputs, options) if self._gt_is_hooked() else self.forward(*inputs, **options)

    def of_matrix(name):
        raw = restores(getattr(GTorch.AdaptiveLogSoftmaxWithLoss, name))

        def method(self, input):
            if not isinstance(input, RawTensor):
                kind = type(input).__name__
                raise TypeError(f'{type(self).__name__}.{name}(): the input must be a tensor, not {kind}')
            return raw(self, input)

        method.__name__ = method.__qualname__ = name
        method.__doc__ = raw.__doc__
        return method

    def cutoffs(self):
        """The first class of each cluster, and the number of classes, as in PyTorch."""
        return [*GObject.Object.get_property(self, 'cutoffs').get_values(), self.n_classes]

    return {
        'forward': forward, '__call__': call, 'log_prob': of_matrix('log_prob'), 'predict': of_matrix('predict'),
        'cutoffs': property(cutoffs, layers.attribute(GTorch.AdaptiveLogSoftmaxWithLoss.find_property('cutoffs')).fset),
    }


_with_distance = GTorch.triplet_margin_with_distance_loss


def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction='mean'
):
    """The distance of anchors from positive examples less that from negative ones plus a margin, at least 0, by a
    function of the program's or that of PairwiseDistance."""
    name = 'triplet_margin_with_distance_loss'
    for key, value in {'anchor': anchor, 'positive': positive, 'negative': negative}.items():
        if not isinstance(value, RawTensor):
            raise TypeError(f'{name}(): {key} must be a tensor, not {type(value).__name__}')
    settings = convert_double(margin), convert_bool(swap), convert_enum(
        GTorch.Reduction, reduction, f'{name}(): reduction'
    )
    if distance_function is None:
        return _with_distance(anchor, positive, negative, None, None, *settings)
    if not callable(distance_function):
        raise TypeError(f'{name}(): distance_function {distance_function!r} cannot be called')

    def call(x1, x2, *_data):
        found = distance_function(x1, x2)
        if not isinstance(found, RawTensor):
            hooks.refuse(name, distance_function, found, 'a tensor')
        return found

    function = passes(hooks.describe(name, distance_function), call)
    if mixin is not None:
        return restoring(mixin.distance, function, [anchor, positive, negative], *settings)
    return restoring(_with_distance, anchor, positive, negative, function, None, *settings)


def functions(export):
    """Returns the functions, which are in the namespace, too."""
    return {'triplet_margin_with_distance_loss': export(
        'triplet_margin_with_distance_loss', triplet_margin_with_distance_loss
    )}


def members(name):
    """Returns what a class has beside what all layers have."""
    return _adaptive() if name == 'AdaptiveLogSoftmaxWithLoss' else {}
