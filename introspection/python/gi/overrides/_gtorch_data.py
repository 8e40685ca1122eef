# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""GTorch.utils.data, utils.tensorboard and the modules in them, whose contents are imported when they are first
named."""

import importlib
import sys

from gi.overrides import _gtorch_samples as samples

PARTS = {
    '_gtorch_collate': ('default_collate', 'default_convert'),
    '_gtorch_datapipes': (
        'DFIterDataPipe', 'DataChunk', 'IterDataPipe', 'MapDataPipe', 'argument_validation', 'functional_datapipe',
        'guaranteed_datapipes_determinism', 'non_deterministic', 'runtime_validation', 'runtime_validation_disabled',
    ),
    '_gtorch_datasets': (
        'ChainDataset', 'ConcatDataset', 'Dataset', 'IterableDataset', 'StackDataset', 'Subset', 'TensorDataset',
        'random_split',
    ),
    '_gtorch_loader': ('DataLoader', '_DatasetKind'),
    '_gtorch_samplers': (
        'BatchSampler', 'DistributedSampler', 'RandomSampler', 'Sampler', 'SequentialSampler', 'SubsetRandomSampler',
        'WeightedRandomSampler',
    ),
    '_gtorch_worker_info': ('get_worker_info',),
}  # fmt: skip
HOMES = {name: part for part, names in PARTS.items() for name in names}
COLLATE = {name: '_gtorch_collate' for name in (
    'collate', 'collate_float_fn', 'collate_int_fn', 'collate_numpy_array_fn', 'collate_numpy_scalar_fn',
    'collate_str_fn', 'collate_tensor_fn', 'default_collate', 'default_collate_err_msg_format',
    'default_collate_fn_map', 'default_convert',
)}
TENSORBOARD = {'SummaryWriter': '_gtorch_tensorboard'}
WORKER = {name: '_gtorch_worker_info' for name in ('WorkerInfo', 'get_worker_info')}


def _of(*parts, also=()):
    return {name: part for name, part in HOMES.items() if part in parts or name in also}


MODULES = {
    'utils.data': ('Data sets, their orders, and batches of them.', HOMES),
    'utils.data.dataset': ('Data sets.', _of('_gtorch_datasets')),
    'utils.data.sampler': ('Orders of samples.', {
        name: part for name, part in _of('_gtorch_samplers').items() if name != 'DistributedSampler'
    }),
    'utils.data.distributed': ('Orders for several processes.', {'DistributedSampler': '_gtorch_samplers'}),
    'utils.data.dataloader': ('Batches of data sets.', _of(
        '_gtorch_loader', '_gtorch_collate', '_gtorch_worker_info',
        also=('BatchSampler', 'Dataset', 'IterableDataset', 'RandomSampler', 'Sampler', 'SequentialSampler'),
    )),
    'utils.data._utils': ('What loaders are made of.', {}),
    'utils.data._utils.collate': ('Batches of samples by their structure.', COLLATE),
    'utils.data._utils.worker': ('Workers of loaders.', WORKER),
    'utils.tensorboard': ('Events for TensorBoard.', TENSORBOARD),
    'utils.tensorboard.writer': ('The writer of events.', TENSORBOARD),
}


def _later(homes):
    """The members of a module that finds its contents by their homes."""
    space = {}

    def find(name):
        if name not in homes:
            raise AttributeError(f'module {space["module"].__name__!r} has no attribute {name!r}', name=name)
        value = getattr(importlib.import_module(f'gi.overrides.{homes[name]}'), name)
        setattr(space['module'], name, value)
        return value

    def names():
        return sorted({*vars(space['module']), *homes} - {'__getattr__', '__dir__'})

    return space, {'__getattr__': find, '__dir__': names, '__all__': sorted(homes)}


def install(submodule):
    samples.install()
    utils = sys.modules['gi.repository.GTorch.utils']
    for name, (doc, homes) in MODULES.items():
        space, members = _later(homes)
        space['module'] = submodule(name, doc, members)
    utils.data = sys.modules['gi.repository.GTorch.utils.data']
