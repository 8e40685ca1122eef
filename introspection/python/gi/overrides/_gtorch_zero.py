# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""torch.distributed.optim: optimizers whose work and states are spread over processes."""

import functools

from gi.repository import GTorch

from gi.overrides import _gtorch_distributed as dist
from gi.overrides import _gtorch_exchange as exchange
from gi.overrides import _gtorch_state as state


class _Kind(type):
    """isinstance() knows what the class has made."""

    def __instancecheck__(cls, instance):
        return getattr(type(instance), '_new', None) is not None and '_shard' in vars(instance)


class ZeroRedundancyOptimizer(metaclass=_Kind):
    """ZeroRedundancyOptimizer(params, optimizer_class, **defaults): an optimizer of that class. Each rank has the
    states of some parameters, updates these, and sends them to the others; results are those of the class, bit for
    bit."""

    def __new__(cls, params, optimizer_class, *args, **options):
        if not (isinstance(optimizer_class, type) and issubclass(optimizer_class, GTorch.Optimizer)):
            raise TypeError('ZeroRedundancyOptimizer: optimizer_class is a class of optimizers, not '
                            f'{optimizer_class!r}')
        own = optimizer_class.__module__ not in ('gi.overrides.GTorch', 'gtorch.optim')
        if own and 'step' in vars(optimizer_class):
            raise NotImplementedError(f'ZeroRedundancyOptimizer: {optimizer_class.__name__} has a step() of its own, '
                                      'which updates all parameters: it defines step_param() instead')
        return _of(optimizer_class)._new(params, *args, **options)

    def consolidate_state_dict(self, to=0):
        """Collects the states of all ranks in one of them. All ranks call this."""
        group = self._shard.get_group()
        place = to if group is dist.GroupMember.WORLD else dist.get_group_rank(group, to)
        dist._run(lambda: self._shard.consolidate(place))

    def state_dict(self):
        """The state of the whole optimizer, on the rank that consolidate_state_dict() has named since the last step."""
        try:
            table = state.pairs(dist._run(self._shard.state_lists))
        except ValueError as error:
            raise RuntimeError(str(error)) from None
        return exchange.nest(self, table)

    def join_hook(self, **_options):
        raise NotImplementedError('ZeroRedundancyOptimizer: join_hook is not supported: give each rank as many batches')


@functools.cache
def _of(optimizer_class):
    """The class of the optimizers that are made of another one."""

    def made(params, process_group=None, parameters_as_bucket_view=False, overlap_with_ddp=False, **defaults):
        if overlap_with_ddp:
            raise NotImplementedError('ZeroRedundancyOptimizer: overlap_with_ddp is not supported')
        del parameters_as_bucket_view  # makes no difference to results
        group = dist._group(process_group)
        self = here(params, **defaults)
        self._shard = dist._run(lambda: GTorch.ShardedOptimizer.new(self, group))
        return self

    members = {name: vars(ZeroRedundancyOptimizer)[name]
               for name in ('consolidate_state_dict', 'state_dict', 'join_hook')}
    here = type(optimizer_class)('ZeroRedundancyOptimizer', (optimizer_class,),
                                 {**members, '__module__': 'gtorch.distributed.optim', '_new': staticmethod(made),
                                  '__gtype_name__': f'ZeroRedundancyOptimizer-{optimizer_class.__gtype__.name}'})
    return here


def submodules():
    """What is below torch.distributed, by name."""
    return {'optim': {'ZeroRedundancyOptimizer': ZeroRedundancyOptimizer}}
