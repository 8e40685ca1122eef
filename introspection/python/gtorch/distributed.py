# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Groups of processes and stores under the names of torch.distributed."""

from gi.overrides import _gtorch_distributed as _part

__doc__ = _part.__doc__
for _name, _value in list(vars(_part).items()):
    if not _name.startswith('_') and getattr(_value, '__module__', None) == _part.__name__:
        _value.__module__ = __name__
        globals()[_name] = _value
Store, HashStore, Work, ProcessGroup = _part.Store, _part.HashStore, _part.Work, _part.GTorch.ProcessGroup
_part.GTorch.nn.parallel.DistributedDataParallel = _part.DistributedDataParallel
_part.DistributedDataParallel.__module__ = 'gtorch.nn.parallel'
default_pg_timeout = _part.default_pg_timeout


def __getattr__(name):
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
