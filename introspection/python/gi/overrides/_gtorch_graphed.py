# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Modules and functions that are replayed as graphs."""

import weakref

from gi.overrides import override

from gi.overrides import _gtorch_hooks as hooks

from gi.overrides._gtorch_convert import GTorch, convert_bool, convert_whole
from gi.overrides._gtorch_errors import restoring
from gi.overrides._gtorch_function import guarded, tensor_list
from gi.overrides._gtorch_mixin import mixin
from gi.overrides._gtorch_properties import final

OVERRIDES = 'gi.overrides.GTorch'  # override() finds the namespace through it
RawGraphed = GTorch.GraphedModule
raw_make = GTorch.make_graphed_callables


@final
class GraphedModule(RawGraphed):
    """GraphedModule(module or function, samples), to be captured by make_graphed_callables()."""

    __module__ = OVERRIDES

    def __new__(cls, target, samples):
        samples = tensor_list(samples, 'the list of samples')
        if isinstance(target, GTorch.Module):
            return RawGraphed.new(target, samples)
        made = None

        def call(inputs, *_):
            return hooks.kept(made()).call(0, inputs)

        if mixin is not None:
            graphed = mixin.graphed(call, samples)
        else:
            graphed = RawGraphed.new_for_func(call, None, samples)
        made = weakref.ref(graphed)
        hooks.kept(graphed).functions[0] = lambda inputs: guarded(
            target, 'call', lambda: target(*inputs)
        )
        return graphed

    def __init__(self, *_args):
        pass

    def __call__(self, *inputs):
        """Returns the output, or a tuple of outputs; the next call overwrites them."""
        if len(inputs) == 1 and self.props.wrapped is not None:
            return super().__call__(*inputs)
        outputs = restoring(self.run, list(inputs))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)


def make_graphed_callables(
    callables,
    sample_args,
    num_warmup_iters=3,
    allow_unused_input=False,
    pool=None,
    both_modes=False,
):
    """Captures modules and functions, forward and backward; the results replace them.

    For several, pass tuples in the order of the calls: of callables, and of the samples of each."""
    several = isinstance(callables, (tuple, list))
    targets = callables if several else (callables,)
    samples = sample_args if several else (sample_args,)
    if len(targets) != len(samples):
        raise TypeError(f'there are samples for {len(samples)} callables, not for {len(targets)}')
    graphed = []
    for target, own in zip(targets, samples):
        if not callable(target):
            raise TypeError(f'make_graphed_callables(): a callable was expected, not {type(target).__name__}')
        made = GraphedModule(target, own)
        made.set_warmup_iterations(convert_whole(num_warmup_iters))
        made.set_allow_unused(convert_bool(allow_unused_input))
        made.set_both_modes(convert_bool(both_modes))
        graphed.append(made)
    restoring(raw_make, graphed, pool)
    return tuple(graphed) if several else graphed[0]


def install(export, submodule, cuda):
    export('GraphedModule', override(GraphedModule))
    cuda.make_graphed_callables = make_graphed_callables
    for name, doc, members in (
        ('graphs', 'Graphs of work of GPUs.', ('CUDAGraph', 'graph', 'graph_pool_handle', 'is_current_stream_capturing',
                                               'make_graphed_callables')),
        ('streams', 'Streams and events of GPUs.', ('Event', 'ExternalStream', 'Stream')),
    ):
        made = submodule(f'cuda.{name}', doc, {member: getattr(cuda, member) for member in members})
        setattr(cuda, name, made)
