# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Groups of processes and stores under the names of torch.distributed."""

from datetime import timedelta

from gi.overrides import _gtorch_distributed as _part, _gtorch_process_groups as _groups

__doc__ = _part.__doc__
for _one in (_part, _groups):
    for _name, _value in list(vars(_one).items()):
        if not _name.startswith('_') and getattr(_value, '__module__', None) == _one.__name__:
            _value.__module__ = __name__
            globals()[_name] = _value
Store, HashStore, Work, ProcessGroup = _part.Store, _part.HashStore, _part.Work, _part.GTorch.ProcessGroup
DebugLevel = _groups.DebugLevel
_part.GTorch.nn.parallel.DistributedDataParallel = _part.DistributedDataParallel
_part.DistributedDataParallel.__module__ = 'gtorch.nn.parallel'
default_pg_timeout = _part.default_pg_timeout

# What PyTorch has, and this module has not.
_ABSENT = {
    **dict.fromkeys(('AllToAllOptions', 'AllreduceCoalescedOptions', 'AllreduceOptions', 'BarrierOptions',
                     'BroadcastOptions', 'GatherOptions', 'ReduceOptions', 'ReduceScatterOptions', 'ScatterOptions'),
                    'operations take their arguments themselves'),
    **dict.fromkeys(('ProcessGroupGloo', 'ProcessGroupNCCL', 'BackendConfig', 'GroupName'),
                    'ProcessGroup has the groups of all backends'),
    **dict.fromkeys(('BuiltinCommHookType', 'GradBucket', 'Logger', 'Reducer'),
                    'DistributedDataParallel has no hooks of communication'),
    **dict.fromkeys(('DeviceMesh', 'init_device_mesh'), 'new_subgroups() makes groups of some ranks'),
    **dict.fromkeys(('register_rendezvous_handler', 'rendezvous'), 'init_process_group() finds the others'),
    'QueueEmptyError': 'stores have no queues',
    'breakpoint': 'a debugger is started for a process of its own',
    'shrink_group': 'new_group() makes a group of the ranks that are left',
}


def __getattr__(name):
    if name in _ABSENT:
        raise AttributeError(f'torch.distributed.{name} has no counterpart: {_ABSENT[name]}')
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
