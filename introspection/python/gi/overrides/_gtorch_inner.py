# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Parts of PyTorch's layers that programs override there, and that layers here have not: C computes a layer as a whole.
A class that defines one would be ignored, so that it is refused."""

import itertools

from gi.overrides._gtorch_properties import OWN

FORWARD = 'override forward(), and compute the layer there'
CONVOLVE = ('override forward(), and compute the layer there, as by nn.functional.conv2d(input, weight, self.bias, '
            'self.stride, self.padding, self.dilation, self.groups)')
CHECK = 'override forward(), and reshape the input before super().forward()'
BLOCK = ('override forward(), or replace what is inside the layer: self_attn, linear1, linear2, norm1, norm2, dropout '
         'and activation')
CONVOLUTIONS = tuple(f'{lazy}Conv{kind}{n}d' for lazy in ('', 'Lazy') for kind in ('', 'Transpose') for n in (1, 2, 3))
NORMS = ('SyncBatchNorm',) + tuple(
    f'{lazy}{kind}Norm{n}d' for lazy in ('', 'Lazy') for kind in ('Batch', 'Instance') for n in (1, 2, 3)
)
LAYERS = ('TransformerEncoderLayer', 'TransformerDecoderLayer')
RECURRENT = ('RNN', 'LSTM', 'GRU')
# The names of methods: the layers that have them in PyTorch, and what a program does in their place.
PARTS = {
    '_conv_forward': (CONVOLUTIONS, CONVOLVE),
    '_output_padding': (CONVOLUTIONS, 'give output_size to forward()'),
    '_check_input_dim': (NORMS, CHECK),
    '_apply_instance_norm': (NORMS, FORWARD),
    '_sa_block': (LAYERS, BLOCK),
    '_mha_block': (LAYERS, BLOCK),
    '_ff_block': (LAYERS, BLOCK),
    'check_forward_args': (RECURRENT, FORWARD),
    'check_input': (RECURRENT, FORWARD),
    'check_hidden_size': (RECURRENT, FORWARD),
    'permute_hidden': (RECURRENT, FORWARD),
}


def check(cls):
    """Refuses a class of a program's that defines such a part of a layer, and not forward() as a whole."""
    own = list(itertools.takewhile(lambda base: base.__module__ not in OWN, cls.__mro__))
    names = {name for base in own for name in vars(base)}
    if 'forward' in names or names.isdisjoint(PARTS):
        return
    layer = cls.__mro__[len(own)].__name__
    for name in sorted(names & PARTS.keys()):
        layers, advice = PARTS[name]
        if layer in layers:
            raise TypeError(f'{cls.__name__}.{name}(): {layer} does not call it: {advice}')
