# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Groups of processes and stores under the names of torch.distributed."""

import sys
import types
from datetime import timedelta

import gtorch
from gi.overrides import _gtorch_dcp as _dcp
from gi.overrides import _gtorch_ddp as _ddp
from gi.overrides import _gtorch_distributed as _part
from gi.overrides import _gtorch_elastic as _elastic
from gi.overrides import _gtorch_fsdp as _fsdp
from gi.overrides import _gtorch_process_groups as _groups
from gi.overrides import _gtorch_sharded_states as _states
from gi.overrides import _gtorch_tensor_parallel as _parallel
from gi.overrides import _gtorch_zero as _zero

__doc__ = _part.__doc__
__path__ = []  # it has submodules


def _put(module, members):
    for name, value in members.items():
        if getattr(value, '__module__', '').startswith('gi.overrides.'):
            value.__module__ = module.__name__
        setattr(module, name, value)


def _submodule(name, members):
    """Makes a module, which may be imported, and an attribute of the one above."""
    made = types.ModuleType(name)
    made.__path__ = []
    sys.modules[name] = made
    above, _, last = name.rpartition('.')
    setattr(sys.modules[above], last, made)
    _put(made, members)
    return made


for _one in (_part, _groups):
    _put(sys.modules[__name__], {
        name: value for name, value in list(vars(_one).items())
        if not name.startswith('_') and getattr(value, '__module__', None) == _one.__name__
    })
Store, HashStore, Work, ProcessGroup = _part.Store, _part.HashStore, _part.Work, _part.GTorch.ProcessGroup
DebugLevel = _groups.DebugLevel
_make_nccl_premul_sum = _part._make_nccl_premul_sum
default_pg_timeout = _part.default_pg_timeout
_put(_part.GTorch.nn.parallel, {'DistributedDataParallel': _ddp.DistributedDataParallel})
_ddp.DistributedDataParallel.__module__ = 'gtorch.nn.parallel'
_put(sys.modules[__name__], {'GradBucket': _ddp.GradBucket, 'init_device_mesh': _parallel.init_device_mesh,
                             'DeviceMesh': _parallel.RawMesh})
for _other in (_ddp, _zero, _dcp, _states, _fsdp, _parallel, _elastic):
    for _name, _members in _other.submodules().items():
        _submodule(f'{__name__}.{_name}', _members)

# What PyTorch has in the modules below this one, and they have not; these modules themselves, by None.
_GRADIENTS = 'parallel_copy(), parallel_sum(), parallel_gather() and parallel_split() of gtorch have gradients'
_FOLDERS = 'save() and load() of this module take a folder, checkpoint_id'
_DTENSORS = 'there are no DTensors: parallelize_module() divides layers, and fully_shard() parameters'
_ABSENT_BELOW = {
    'tensor.parallel': {
        **dict.fromkeys(('SequenceParallel', 'PrepareModuleInput', 'PrepareModuleOutput', 'PrepareModuleInputOutput'),
                        'ColwiseParallel and RowwiseParallel say how inputs and results are divided'),
        'loss_parallel': 'ColwiseParallel(output_layouts=Replicate()) joins what the loss is computed of',
    },
    'tensor': dict.fromkeys(('DTensor', 'Partial', 'Placement', 'distribute_module', 'distribute_tensor', 'empty',
                             'full', 'ones', 'rand', 'randn', 'zeros'), _DTENSORS),
    'checkpoint': {
        'async_save': 'save() returns when the files are written',
        **dict.fromkeys(('FileSystemReader', 'FileSystemWriter', 'StorageReader', 'StorageWriter'), _FOLDERS),
        **dict.fromkeys(('DefaultLoadPlanner', 'DefaultSavePlanner', 'LoadPlanner', 'SavePlanner'),
                        'save() and load() find out what each rank writes and reads'),
        **dict.fromkeys(('load_state_dict', 'save_state_dict'), _FOLDERS),
    },
    'nn': {None: _GRADIENTS},
    'pipelining': {None: 'there are no pipelines: parallelize_module() and fully_shard() divide models'},
    'rpc': {None: 'processes exchange tensors and objects by groups'},
}


def _absent_below(name):
    members = _ABSENT_BELOW[name]

    def find(one):
        hint = f': {members[one]}' if one in members else ''
        raise AttributeError(f'module {__name__}.{name!s} has no attribute {one!r}{hint}', name=one)

    return find


class _AbsentFinder:
    """Tells the reason where a module that there is not is imported."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        begin, _, inner = name.partition(f'{__name__}.')
        hint = _ABSENT_BELOW.get(inner.partition('.')[0], {}).get(None)
        if not begin and hint is not None:
            raise ModuleNotFoundError(f'No module named {name!r}: {hint}', name=name)


for _name, _members in _ABSENT_BELOW.items():
    if None not in _members:
        sys.modules[f'{__name__}.{_name}'].__getattr__ = _absent_below(_name)
sys.meta_path.append(_AbsentFinder)
_submodule('gtorch.futures', {'Future': _part.Future})
_part.Future.__module__ = 'gtorch.futures'

# What PyTorch has, and this module has not.
_ABSENT = {
    **dict.fromkeys(('AllToAllOptions', 'AllreduceCoalescedOptions', 'AllreduceOptions', 'BarrierOptions',
                     'BroadcastOptions', 'GatherOptions', 'ReduceOptions', 'ReduceScatterOptions', 'ScatterOptions'),
                    'operations take their arguments themselves'),
    **dict.fromkeys(('ProcessGroupGloo', 'ProcessGroupNCCL', 'BackendConfig', 'GroupName'),
                    'ProcessGroup has the groups of all backends'),
    **dict.fromkeys(('BuiltinCommHookType', 'Logger', 'Reducer'), 'DistributedDataParallel has its own, in C'),
    **dict.fromkeys(('register_rendezvous_handler', 'rendezvous'), 'init_process_group() finds the others'),
    **{_name: _members[None] for _name, _members in _ABSENT_BELOW.items() if None in _members},
    'QueueEmptyError': 'stores have no queues',
    'breakpoint': "Python's breakpoint() stops one rank while the others wait at a barrier()",
}


def __getattr__(name):
    if name in _ABSENT:
        raise AttributeError(f'torch.distributed.{name} has no counterpart: {_ABSENT[name]}')
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
