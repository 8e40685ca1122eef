# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""torch.distributed: groups of some ranks in one call, several tensors at a time, names of backends, and the level of
debugging."""

import os

from gi.repository import GTorch

from gi.overrides import _gtorch_distributed as dist

DebugLevel = GTorch.DebugLevel
DEVICES = {'mpi': 'cpu', 'nccl': 'cuda'}


class Backend(str):
    """The name of a backend, in small letters."""

    UNDEFINED, GLOO, NCCL, MPI, UCC, XCCL = 'undefined', 'gloo', 'nccl', 'mpi', 'ucc', 'xccl'

    def __new__(cls, name):
        if not isinstance(name, str):
            raise ValueError(f'the name of a backend is a str, not {type(name).__name__}')
        return str.__new__(cls, name.lower())

    @classmethod
    def register_backend(cls, *_args, **_kwargs):
        raise NotImplementedError('register_backend: the backends are those of the library')


# --- backends ---

def is_ucc_available():
    """There is no such backend."""
    return False


def is_xccl_available():
    """There is no such backend."""
    return False


def is_backend_available(backend):
    """Whether a backend can be used."""
    name = Backend(backend)
    return {'mpi': dist.is_mpi_available, 'nccl': dist.is_nccl_available}.get(name, is_ucc_available)()


def get_backend_config(group=None):
    """The type of device and the backend that has its tensors, such as “cpu:mpi”."""
    name = dist.get_backend(group)
    return f'{DEVICES[name]}:{name}'


def get_default_backend_for_device(device):
    """The backend for tensors on a device."""
    kind = str(device).partition(':')[0]
    for name, own in DEVICES.items():
        if own == kind:
            return name
    raise ValueError(f'there is no backend for tensors on {device}')


def supports_complex(reduceOp):
    """Whether a reduction is defined for complex numbers."""
    op = GTorch.ReduceOp
    return dist._reduction(reduceOp) in (op.SUM, op.AVG, op.PRODUCT)


def get_node_local_rank(fallback_rank=None):
    """The rank among the processes of this host, of which the launcher tells."""
    for name in ('LOCAL_RANK', 'OMPI_COMM_WORLD_LOCAL_RANK'):
        if os.environ.get(name, '').isdigit():
            return int(os.environ[name])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError('LOCAL_RANK is not set: the process was not started by a launcher, and no rank was given to '
                       'fall back to')


# --- debugging ---

def get_debug_level():
    """How closely groups that are made from now on are watched."""
    return GTorch.distributed_get_debug_level()


def set_debug_level(level):
    """Sets how closely groups that are made from now on are watched, the same in all processes."""
    dist._run(lambda: GTorch.distributed_set_debug_level(level))


def set_debug_level_from_env():
    """Sets what GTORCH_DISTRIBUTED_DEBUG, or else TORCH_DISTRIBUTED_DEBUG, says."""
    text = os.environ.get('GTORCH_DISTRIBUTED_DEBUG') or os.environ.get('TORCH_DISTRIBUTED_DEBUG') or 'off'
    level = getattr(DebugLevel, text.upper(), None) if text.lower() in ('off', 'info', 'detail') else None
    if level is None:
        raise RuntimeError(f'TORCH_DISTRIBUTED_DEBUG is {text!r}; it is OFF, INFO or DETAIL')
    set_debug_level(level)


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """Waits until all ranks are here; the error names those that are not, all of them in either case."""
    del wait_all_ranks
    seconds = -1 if timeout is None else dist._seconds(timeout, 'monitored_barrier')
    dist._run(lambda: dist._group(group).monitored_barrier(seconds, None))


# --- groups of some ranks ---

def new_subgroups_by_enumeration(ranks_per_subgroup_list, timeout=None, backend=None, pg_options=None, group_desc=None):
    """Groups of the given ranks; returns that of this process, None without one, and all of them. All processes call
    this."""
    lists = [list(ranks) for ranks in ranks_per_subgroup_list or ()]
    named = [rank for ranks in lists for rank in ranks]
    if not named:
        raise ValueError('new_subgroups_by_enumeration: the list of ranks is empty')
    if len(set(named)) < len(named):
        raise ValueError(f'new_subgroups_by_enumeration: a rank is in two of the groups {lists}')
    rank, own, groups = dist.get_rank(), None, []
    for ranks in lists:
        groups.append(dist.new_group(ranks, timeout, backend, pg_options, group_desc=group_desc))
        own = groups[-1] if rank in ranks else own
    return own, groups


def new_subgroups(group_size=None, group=None, timeout=None, backend=None, pg_options=None, group_desc=None):
    """Groups of so many ranks that follow each other; returns that of this process, and all of them."""
    if group_size is None:
        group_size = GTorch.cuda.device_count()
        if group_size == 0:
            raise ValueError('group_size is the number of GPUs by default, and there are none')
    ranks = dist.get_process_group_ranks(group)
    if isinstance(group_size, bool) or not isinstance(group_size, int) or group_size <= 0:
        raise ValueError(f'new_subgroups: group_size is a number of ranks, 1 or more, not {group_size!r}')
    if len(ranks) % group_size:
        raise ValueError(f'new_subgroups: {len(ranks)} ranks cannot be divided into groups of {group_size}')
    lists = [ranks[first: first + group_size] for first in range(0, len(ranks), group_size)]
    return new_subgroups_by_enumeration(lists, timeout, backend, pg_options, group_desc)


def split_group(parent_pg=None, split_ranks=None, timeout=None, pg_options=None, group_desc=None):
    """Divides a group by ranks in it; returns the part of this process, None without one."""
    if pg_options is not None:
        raise NotImplementedError('split_group: pg_options is not supported')
    del group_desc
    if not split_ranks:
        raise ValueError('split_group: split_ranks is empty')
    parent, own = dist._group(parent_pg), None
    seconds = -1 if timeout is None else dist._seconds(timeout, 'split_group')
    for ranks in split_ranks:
        ranks = sorted(dist._whole('split_group', 'a rank', rank) for rank in ranks)
        made = dist._run(lambda ranks=ranks: parent.new_part(ranks, seconds))
        if made.get_rank() >= 0:
            own = dist._remember(made)
    return own


def shrink_group(ranks_to_exclude, group=None, shrink_flags=0, pg_options=None):
    """A group of the ranks that are left, also after the group has failed; those excluded do not call this. Ranks count
    in the group. Where @group is that of all, the result takes its place."""
    if pg_options is not None:
        raise NotImplementedError('shrink_group: pg_options is not supported')
    if shrink_flags not in (0, 1):
        raise ValueError(f'shrink_group: shrink_flags is {shrink_flags!r}; it is 0, or 1 after an error')
    excluded = list(ranks_to_exclude)
    if not all(isinstance(rank, int) and not isinstance(rank, bool) for rank in excluded):
        raise TypeError('shrink_group: ranks_to_exclude is a list of whole numbers')
    whole = dist._group(group)
    made = dist._run(lambda: whole.shrink(excluded))
    return dist._replace(whole, made)


# --- several tensors at a time ---

def broadcast_coalesced(tensors, src=0, group=None, async_op=False):
    """Sends several tensors, of any dtypes, as broadcast() does one: NCCL moves them together."""
    several = dist._list('broadcast_coalesced', tensors)
    return dist._end(dist._run(lambda: dist._group(group).broadcast_coalesced(several, src)), async_op)


def all_reduce_coalesced(tensors, op=dist.ReduceOp.SUM, group=None, async_op=False):
    """Reduces several tensors as all_reduce() does one."""
    several = dist._list('all_reduce_coalesced', tensors)
    return dist._end(dist._run(lambda: dist._group(group).all_reduce_coalesced(several, dist._reduction(op))), async_op)


@dist._composed
def all_gather_coalesced(output_tensor_lists, input_tensor_list, group=None, async_op=False):
    """Gathers several tensors as all_gather() does one: output_tensor_lists[rank][i] gets the i-th of a rank."""
    inputs = dist._list('all_gather_coalesced', input_tensor_list)
    outputs = [dist._list('all_gather_coalesced', one) for one in output_tensor_lists]
    size = dist.get_world_size(group)
    if not inputs or len(outputs) != size or any(len(one) != len(inputs) for one in outputs):
        raise ValueError(f'all_gather_coalesced(): there are {len(inputs)} tensors, and lists of '
                         f'{[len(one) for one in outputs]}; each of {size} ranks has a list of as many')
    work = [dist.all_gather([one[i] for one in outputs], tensor, group, True) for i, tensor in enumerate(inputs)]
    return dist._end(work[-1], async_op)
