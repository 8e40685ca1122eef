# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""torch.distributed.device_mesh and torch.distributed.tensor.parallel: layers of which each rank has a part."""

import fnmatch
import math

from gi.repository import GTorch

from gi.overrides import _gtorch_distributed as dist

RawMesh = GTorch.DeviceMesh


# --- meshes ---


def init_device_mesh(device_type, mesh_shape, *, mesh_dim_names=None, backend_override=None):
    """Arranges all processes in several dimensions, with a group for each line. All ranks call this."""
    if backend_override is not None:
        raise NotImplementedError('init_device_mesh: backend_override is not supported')
    if device_type not in ('cpu', 'cuda'):
        raise ValueError(f'init_device_mesh: device_type is cpu or cuda, not {device_type!r}')
    names = None if mesh_dim_names is None else list(mesh_dim_names)
    if isinstance(mesh_shape, (str, bytes)) or not isinstance(mesh_shape, (list, tuple)):
        raise TypeError('init_device_mesh: mesh_shape is a tuple of whole numbers, not '
                        f'{type(mesh_shape).__name__}')
    for length in mesh_shape:
        if isinstance(length, bool) or not isinstance(length, int):
            raise TypeError(f'init_device_mesh: mesh_shape has {length!r}; it has whole numbers')
        if length < 1:
            raise ValueError(f'init_device_mesh: mesh_shape has the length {length}; lengths are 1 or more')
    world = dist._group(None)
    if device_type != _type_of(world):
        raise ValueError(f'init_device_mesh: device_type is {device_type!r}; the backend {world.get_backend()!r} '
                         f'carries tensors on {_type_of(world)!r}')
    return dist._run(lambda: RawMesh.new(world, list(mesh_shape), names))


def _type_of(group):
    return 'cpu' if group.get_backend() == 'mpi' else 'cuda'


def _dim(mesh, mesh_dim):
    if isinstance(mesh_dim, str):
        return dist._run(lambda: mesh.find_dim(mesh_dim))
    if mesh_dim is None:
        if mesh.ndim > 1:
            raise RuntimeError(f'the mesh has {mesh.ndim} dimensions: name one of them')
        return 0
    return mesh_dim


class MeshLines:
    """Some dimensions of a mesh, as mesh['name'] gives them: the processes that differ from this one in these."""

    def __init__(self, mesh, dims):
        self._mesh, self._dims = mesh, dims

    ndim = property(lambda self: len(self._dims))
    shape = property(lambda self: tuple(self._mesh.shape[dim] for dim in self._dims))
    device_type = property(lambda self: self._mesh.device_type)
    mesh_dim_names = property(lambda self: tuple(self._mesh.mesh_dim_names[dim] for dim in self._dims))

    def _find(self, mesh_dim):
        if isinstance(mesh_dim, str):
            dim = _dim(self._mesh, mesh_dim)
            if dim in self._dims:
                return dim
            raise ValueError(f'the mesh has the dimensions {self.mesh_dim_names}, not {mesh_dim!r}')
        return self._dims[_dim(self, mesh_dim)]

    def get_group(self, mesh_dim=None):
        """The processes that differ from this one in one dimension only, and itself."""
        return self._mesh.get_group(self._find(mesh_dim))

    def get_all_groups(self):
        """The groups of all dimensions."""
        return [self._mesh.get_group(dim) for dim in self._dims]

    def get_local_rank(self, mesh_dim=None):
        """The rank of this process in the group of a dimension."""
        return self.get_group(mesh_dim).get_rank()

    def get_coordinate(self):
        """The place of this process."""
        return [self._mesh.get_coordinate()[dim] for dim in self._dims]

    def size(self, mesh_dim=None):
        """The number of processes, along a dimension or of all."""
        return math.prod(self.shape) if mesh_dim is None else self._mesh.shape[self._find(mesh_dim)]


def _mesh_methods():
    raw_group = RawMesh.get_group
    raw = {name: getattr(RawMesh, name) for name in ('get_shape', 'get_coordinate', 'get_dim_names')}

    def get_group(self, mesh_dim=None):
        """The processes that differ from this one in one dimension only, and itself."""
        return dist._run(lambda: raw_group(self, _dim(self, mesh_dim)))

    def get_all_groups(self):
        """The groups of all dimensions."""
        return [self.get_group(i) for i in range(self.ndim)]

    def get_local_rank(self, mesh_dim=None):
        """The rank of this process in the group of a dimension."""
        return self.get_group(mesh_dim).get_rank()

    def get_rank(self):
        """The rank of this process among all."""
        return self.get_world().get_rank()

    def get_coordinate(self):
        """The place of this process."""
        return list(raw['get_coordinate'](self))

    def size(self, mesh_dim=None):
        """The number of processes, along a dimension or of all."""
        return self.get_world().get_size() if mesh_dim is None else self.shape[_dim(self, mesh_dim)]

    def __getitem__(self, names):  # noqa: N807
        """Some of the dimensions, by their names."""
        names = (names,) if isinstance(names, str) else names
        if not isinstance(names, tuple) or not names or not all(isinstance(name, str) for name in names):
            raise TypeError(f'a mesh is indexed by a name of a dimension, or several, not {names!r}')
        dims = [_dim(self, name) for name in names]
        if dims != sorted(set(dims)):
            raise ValueError(f'the dimensions {names} are not in the order of the mesh, {self.mesh_dim_names}')
        return MeshLines(self, dims)

    for one in (get_group, get_all_groups, get_local_rank, get_rank, get_coordinate, size, __getitem__):
        setattr(RawMesh, one.__name__, one)
    RawMesh.shape = property(lambda self: tuple(raw['get_shape'](self)))
    RawMesh.device_type = property(lambda self: _type_of(self.get_world()))
    RawMesh.ndim = property(lambda self: len(self.shape))
    RawMesh.mesh_dim_names = property(lambda self: tuple(raw['get_dim_names'](self)) or None)


_mesh_methods()


# --- layers ---


class Replicate:
    """The same on all ranks."""

    def __eq__(self, other):
        return type(self) is type(other)

    __hash__ = object.__hash__

    def __repr__(self):
        return 'Replicate()'


class Shard:
    """Divided along a dimension."""

    def __init__(self, dim):
        self.dim = dim

    def __eq__(self, other):
        return type(self) is type(other) and self.dim == other.dim

    __hash__ = object.__hash__

    def __repr__(self):
        return f'Shard(dim={self.dim})'


class ParallelStyle:
    """How a layer is divided."""

    def _layout(self, name, value, default, other):
        value = default if value is None else value
        if value not in (default, other):
            raise NotImplementedError(f'{type(self).__name__}: {name}={value!r} is not supported: it is {default!r}'
                                      + ('' if other is None else f' or {other!r}'))
        return value == other


class ColwiseParallel(ParallelStyle):
    """Each rank computes a part of the last dimension of the result, which output_layouts=Replicate() joins."""

    def __init__(self, *, input_layouts=None, output_layouts=None, use_local_output=True):
        self._layout('input_layouts', input_layouts, Replicate(), None)
        self._joins = self._layout('output_layouts', output_layouts, Shard(-1), Replicate())
        if not use_local_output:
            raise NotImplementedError('ColwiseParallel: there are no DTensors: use_local_output is True')

    def _apply(self, module, group):
        dist._run(lambda: GTorch.parallelize_columns(module, group, self._joins))


class RowwiseParallel(ParallelStyle):
    """Each rank takes a part of the last dimension of the input, or has some vectors of an Embedding; results are
    added up."""

    def __init__(self, *, input_layouts=None, output_layouts=None, use_local_output=True):
        self._splits = self._layout('input_layouts', input_layouts, Shard(-1), Replicate())
        self._layout('output_layouts', output_layouts, Replicate(), None)
        if not use_local_output:
            raise NotImplementedError('RowwiseParallel: there are no DTensors: use_local_output is True')

    def _apply(self, module, group):
        dist._run(lambda: GTorch.parallelize_rows(module, group, self._splits))


def _source(src_data_rank, group):
    """The rank of the group whose parameters all take; None: each has its own."""
    if src_data_rank is None or group.get_size() == 1:
        return None
    if isinstance(src_data_rank, bool) or not isinstance(src_data_rank, int):
        raise TypeError('parallelize_module: src_data_rank is a rank of the mesh or None, not '
                        f'{type(src_data_rank).__name__}')
    if not 0 <= src_data_rank < group.get_size():
        raise ValueError(f'parallelize_module: src_data_rank {src_data_rank} is out of range for a mesh of '
                         f'{group.get_size()} ranks')
    return src_data_rank


def _divide(style, module, group, source):
    """Divides a layer, and then what the source has of it: the ranks have compared their shapes by then."""
    before = {}
    if source is not None and not module.has_uninitialized_params():
        before = {name: param.detach().clone() for name, param in module.named_parameters(recurse=False)}
    style._apply(module, group)
    for name, whole in before.items():
        param = getattr(module, name)
        dist.broadcast(whole, group=group, group_src=source)
        if GTorch.parallelize_is_part(param):
            dist._run(lambda to=param, full=whole: GTorch.parallelize_scatter(to, full))
        else:
            param.detach().copy_(whole)


def parallelize_module(module, device_mesh=None, parallelize_plan=None, *, src_data_rank=0):
    """Divides layers: @parallelize_plan is a style, or a dictionary of names, which may have * and ?, and styles. The
    parameters of these layers are those of the rank @src_data_rank of the mesh; with None, each rank takes its part of
    its own, which are the same on all ranks. Returns the module."""
    if not isinstance(module, GTorch.Module):
        raise TypeError(f'parallelize_module: module is a Module, not {type(module).__name__}')
    lines = isinstance(device_mesh, (RawMesh, MeshLines))
    if not lines and device_mesh is not None and not isinstance(device_mesh, GTorch.ProcessGroup):
        raise TypeError(f'parallelize_module: the mesh is a DeviceMesh or a group, not {type(device_mesh).__name__}')
    group = dist._group(device_mesh.get_group() if lines else device_mesh)
    source = _source(src_data_rank, group)
    if isinstance(parallelize_plan, ParallelStyle):
        _divide(parallelize_plan, module, group, source)
        return module
    if not isinstance(parallelize_plan, dict):
        raise TypeError(f'parallelize_plan is a style or a dictionary, not {type(parallelize_plan).__name__}')
    for pattern, style in parallelize_plan.items():
        if not isinstance(pattern, str) or not isinstance(style, ParallelStyle):
            raise TypeError(f'parallelize_plan: {pattern!r} has {style!r}; names have ColwiseParallel or '
                            'RowwiseParallel')
    named = dict(module.named_modules())
    for pattern, style in parallelize_plan.items():
        found = [name for name in named if fnmatch.fnmatchcase(name, pattern)]
        if not found:
            raise ValueError(f'parallelize_module: no module has the name {pattern!r}')
        for name in found:
            _divide(style, named[name], group, source)
    return module


def submodules():
    """What is below torch.distributed, by name."""
    styles = (parallelize_module, ParallelStyle, ColwiseParallel, RowwiseParallel)
    return {
        'device_mesh': {'init_device_mesh': init_device_mesh, 'DeviceMesh': RawMesh},
        'tensor': {'Replicate': Replicate, 'Shard': Shard},
        'tensor.parallel': {one.__name__: one for one in styles},
    }
