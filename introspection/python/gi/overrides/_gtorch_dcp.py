# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""torch.distributed.checkpoint: state dicts in several safetensors files with an index."""

import json
import os

from gi.repository import Gio, GTorch

from gi.overrides import _gtorch_distributed as dist
from gi.overrides._gtorch_convert import RawTensor
from gi.overrides._gtorch_sharded_states import begin_states, is_part, scatter

INDEX = 'model.safetensors.index.json'
VALUE = 'value:'  # before the names of what is no tensor, in the metadata of the index
PART = 5 * 10**9  # bytes


def _walk(value, name=''):
    """Names and values of what is in dictionaries and lists."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _walk(one, f'{name}.{key}' if name else str(key))
    elif isinstance(value, (list, tuple)):
        for i, one in enumerate(value):
            yield from _walk(one, f'{name}.{i}' if name else str(i))
    else:
        yield name, value


def _flat(state_dict):
    if not isinstance(state_dict, dict):
        raise TypeError(f'the state dict is a dictionary, not {type(state_dict).__name__}')
    found = {}
    for name, value in _walk(state_dict):
        if name in found:
            raise ValueError(f'two values have the name {name!r}')
        found[name] = value
    return found


def _text(name, value):
    try:
        return json.dumps(value)
    except (TypeError, ValueError):
        raise TypeError(f'save: the value {name!r} is {type(value).__name__}, which is no tensor, has no state_dict(), '
                        'and cannot be written as JSON') from None


def _states(state_dict):
    """The state dict with those of the objects that are values of it, such as modules, and these objects."""
    if not isinstance(state_dict, dict):
        raise TypeError(f'the state dict is a dictionary, not {type(state_dict).__name__}')
    found = {key: one for key, one in state_dict.items() if not isinstance(one, (RawTensor, type))
             and callable(getattr(one, 'state_dict', None)) and callable(getattr(one, 'load_state_dict', None))}
    made = {key: begin_states(one) if isinstance(one, GTorch.Optimizer) else one.state_dict()
            for key, one in found.items()}
    return {**state_dict, **made}, found


def _index(checkpoint_id):
    if checkpoint_id is None:
        raise ValueError('checkpoint_id is the folder of the checkpoint')
    return Gio.File.new_for_path(os.path.join(os.fspath(checkpoint_id), INDEX))


def _refuse(name, **given):
    for key, value in given.items():
        if value is not None:
            raise NotImplementedError(f'{name}: {key} is not supported')


def _group(process_group, no_dist):
    return None if no_dist or (process_group is None and not dist.is_initialized()) else dist._group(process_group)


def save(state_dict, *, checkpoint_id=None, storage_writer=None, planner=None, process_group=None, no_dist=False,
         max_part_size=PART):
    """Writes a state dict to a folder; of values with a state_dict(), such as modules, that. All ranks call this; each
    writes its part of what several have, what it has alone, and its part of what is spread over them. The former
    content of the folder is there until all ranks have written theirs."""
    _refuse('save', storage_writer=storage_writer, planner=planner)
    group, index = _group(process_group, no_dist), _index(checkpoint_id)
    flat = _flat(_states(state_dict)[0])
    tensors = {name: value if is_part(value) else value.detach() for name, value in flat.items()
               if isinstance(value, RawTensor)}
    values = {VALUE + name: _text(name, value) for name, value in flat.items() if name not in tensors}
    os.makedirs(os.fspath(checkpoint_id), exist_ok=True)
    metadata = [text for pair in values.items() for text in pair]
    dist._run(lambda: GTorch.safetensors_save_index(index, list(tensors), list(tensors.values()), metadata,
                                                    max_part_size, group, None))


def _put(value, name, found):
    """The same structure with what was read; tensors are overwritten."""
    if isinstance(value, dict):
        for key, one in value.items():
            value[key] = _put(one, f'{name}.{key}' if name else str(key), found)
        return value
    if isinstance(value, (list, tuple)):
        return type(value)(_put(one, f'{name}.{i}' if name else str(i), found) for i, one in enumerate(value))
    if not isinstance(value, RawTensor):
        return found[name]
    if is_part(value):
        scatter(value, found[name])
    else:
        value.detach().copy_(found[name])
    return value


def _empty(value, name=''):
    """The names of dictionaries without anything."""
    if isinstance(value, dict):
        if not value and name:
            yield name
        for key, one in value.items():
            yield from _empty(one, f'{name}.{key}' if name else str(key))


def _check_empty(state_dict, index):
    """An empty dictionary asks for nothing; if the checkpoint has something there, the program has forgotten it."""
    names = list(_empty(state_dict))
    if state_dict and not names:
        return
    content = json.loads(index.load_contents(None)[1])
    known = [*content['weight_map'], *(name.removeprefix(VALUE) for name in content.get('metadata', {}))]
    if not state_dict and known:
        raise ValueError(f'load: the state dict is empty, and the checkpoint has {len(known)} values, such as '
                         f'{known[0]!r}: get_state_dict() makes what they are read to')
    for name in names:
        lost = [one for one in known if one.startswith(f'{name}.')]
        if lost:
            raise ValueError(f'load: the state dict has nothing in {name!r}, and the checkpoint has {len(lost)} values '
                             f'there, such as {lost[0]!r}: get_state_dict() makes what they are read to')


def load(state_dict, *, checkpoint_id=None, storage_reader=None, planner=None, process_group=None, no_dist=False):
    """Reads what the state dict names from a folder: tensors are overwritten, other values replaced; values with a
    load_state_dict(), such as modules, get it called. The number of
    ranks may be another one than that of save()."""
    _refuse('load', storage_reader=storage_reader, planner=planner)
    del process_group, no_dist  # each rank reads what it needs
    given = state_dict
    state_dict, objects = _states(state_dict)
    flat = _flat(state_dict)
    wanted = [name for name, value in flat.items() if isinstance(value, RawTensor)]
    tensors, names, metadata = dist._run(
        lambda: GTorch.safetensors_load_index(_index(checkpoint_id), wanted, True, GTorch.Device.cpu(), None))
    found = dict(zip(names, tensors))
    texts = dict(zip(metadata[::2], metadata[1::2]))
    for name, value in flat.items():
        if isinstance(value, RawTensor):
            if found[name].shape != value.shape and not is_part(value):
                raise ValueError(f'load: {name!r} has the shape {list(found[name].shape)} in the checkpoint, not '
                                 f'{list(value.shape)}')
        elif VALUE + name not in texts:
            raise ValueError(f'load: the checkpoint has no value {name!r}')
        else:
            found[name] = json.loads(texts[VALUE + name])
    _check_empty(state_dict, _index(checkpoint_id))
    _put(state_dict, '', found)
    for key, value in state_dict.items():
        if key in objects:
            objects[key].load_state_dict(value)
        else:
            given[key] = value


def submodules():
    """What is below torch.distributed, by name."""
    return {'checkpoint': {'save': save, 'load': load}}
