# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""State dicts in several files, written and read by different numbers of processes."""

import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'style'))
import gtorch as torch
import gtorch.distributed as dist
import gtorch.distributed.checkpoint as dcp
import ranks
import tap
from gi.overrides._gtorch_dcp import _walk as walk
from gi.repository import Gio, GLib, GTorch
from gtorch.distributed.checkpoint.state_dict import get_model_state_dict, get_state_dict, set_state_dict
from gtorch.distributed.fsdp import fully_shard

N = 3
INDEX = 'model.safetensors.index.json'


def net(seed):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 4))


def state_of(seed):
    model = net(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1 * seed)
    for _ in range(seed):
        model(torch.ones(3, 8)).sum().backward()
        optimizer.step()
    return {'model': model.state_dict(), 'optimizer': optimizer.state_dict(), 'epoch': seed, 'name': f'ä{seed}'}


def flat(value):
    return {name: one.tolist() if isinstance(one, torch.Tensor) else one
            for name, one in walk(value)}


def files_of(folder):
    with open(os.path.join(folder, INDEX), encoding='utf-8') as file:
        index = json.load(file)
    return index, sorted(os.listdir(folder))


def rank_all_write_their_part():
    folder = sys.argv[2]
    before = {name for name in os.listdir(folder) if name.startswith('model-')}
    dist.barrier()
    dcp.save(state_of(2), checkpoint_id=folder, max_part_size=500)
    dist.barrier()
    if dist.get_rank() == 0:
        index, files = files_of(folder)
        parts = set(index['weight_map'].values())
        assert before and not before & set(files), files  # the former ones are gone
        assert {one for one in files if one.startswith('model')} == parts | {INDEX} and len(parts) > N
        assert index['metadata']['total_size'] == sum(
            one.numel() * one.element_size() for one in tensors(state_of(2)).values())
    dist.barrier()


def tensors(state):
    return {name: one for name, one in walk(state) if isinstance(one, torch.Tensor)}


def rank_what_a_rank_has_alone_is_written_too():
    folder = os.path.join(sys.argv[2], 'alone')
    rank = dist.get_rank()
    dcp.save({f'rank{rank}': torch.full((rank + 1,), float(rank)), 'shared': torch.arange(5)}, checkpoint_id=folder)
    wanted = {'rank1': torch.zeros(2), 'rank2': torch.zeros(3), 'shared': torch.zeros(5, dtype=torch.int64)}
    dcp.load(wanted, checkpoint_id=folder)
    assert wanted['rank1'].tolist() == [1, 1] and wanted['rank2'].tolist() == [2, 2, 2]
    assert wanted['shared'].tolist() == [0, 1, 2, 3, 4]
    dist.barrier()


def rank_all_fail_if_one_does():
    folder = os.path.join(sys.argv[2], 'failed')
    rank = dist.get_rank()
    dcp.save({'x': torch.ones(3)}, checkpoint_id=folder)
    dist.barrier()
    before = files_of(folder)
    dist.barrier()
    wrong = {'x': torch.zeros(3 if rank < 2 else 4)}
    tap.raises(ValueError, lambda: dcp.save(wrong, checkpoint_id=folder), 'is another one on another rank')
    group = dist.group.WORLD
    place = Gio.File.new_for_path(os.path.join(folder, INDEX))
    names = ['a', 'a'] if rank == 1 else ['a', 'b']
    error = tap.raises(GLib.Error, lambda: GTorch.safetensors_save_index(
        place, names, [torch.ones(2), torch.ones(2)], None, 10**9, group, None))
    assert ('there are two of it' in str(error)) and (rank == 1 or 'rank 1 has failed' in str(error))
    nowhere = Gio.File.new_for_path(os.path.join(folder if rank != 2 else folder + '/none', INDEX))
    error = tap.raises(GLib.Error, lambda: GTorch.safetensors_save_index(
        nowhere, [f'own{rank}'], [torch.ones(2)], None, 10**9, group, None))
    assert rank == 2 or 'rank 2 has failed' in str(error), error
    dist.barrier()
    assert files_of(folder) == before  # as it was
    dist.barrier()


def sharded(seed):
    torch.manual_seed(seed)
    model = fully_shard(torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Linear(16, 4)))
    return model, torch.optim.Adam(model.parameters(), lr=0.1)


def step(model, optimizer):
    optimizer.zero_grad()
    model(torch.ones(2, 8)).sum().backward()
    optimizer.step()


def rank_trainings_go_on_with_their_states():
    """PyTorch's recipe: the states of a new optimizer are what those of the checkpoint are read to."""
    folder = os.path.join(sys.argv[2], 'resumed')
    model, optimizer = sharded(1)
    step(model, optimizer)
    states = get_state_dict(model, optimizer)
    dcp.save({'model': states[0], 'optim': states[1]}, checkpoint_id=folder)
    other, again = sharded(2)
    before = [p.detach().clone() for p in other.parameters()]
    found = get_state_dict(other, again)
    assert found[1]['state'].keys() == states[1]['state'].keys()
    assert not again.state_dict()['state'] and all(torch.equal(p, q) for p, q in zip(other.parameters(), before))
    assert all(one['step'].item() == 0 for one in found[1]['state'].values())
    found = {'model': found[0], 'optim': found[1]}
    dcp.load(found, checkpoint_id=folder)
    set_state_dict(other, again, model_state_dict=found['model'], optim_state_dict=found['optim'])
    step(model, optimizer)
    step(other, again)
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), other.parameters()))
    # what was forgotten is noticed
    wanted = {'model': get_model_state_dict(other), 'optim': {'state': {}}}
    tap.raises(ValueError, lambda: dcp.load({}, checkpoint_id=folder), 'the state dict is empty')
    tap.raises(ValueError, lambda: dcp.load(wanted, checkpoint_id=folder), "nothing in 'optim.state'")
    # state dicts of the objects themselves, and the objects
    for name, state in (('own', {'model': model.state_dict(), 'optim': optimizer.state_dict()}),
                        ('objects', {'model': model, 'optim': optimizer})):
        dcp.save(state, checkpoint_id=f'{folder}/{name}')
        other, again = sharded(3)
        dcp.load({'model': other, 'optim': again}, checkpoint_id=f'{folder}/{name}')
        assert all(torch.equal(p, q) for p, q in zip(model.parameters(), other.parameters())), name
        for one, two in zip(optimizer.state_dict()['state'].values(), again.state_dict()['state'].values()):
            assert all(torch.equal(value, two[key]) for key, value in one.items()), name
    dist.barrier()


def rank_reading_with_any_number():
    """Also what the program without ranks wrote."""
    for folder, seed in ((sys.argv[2], None), (os.path.join(sys.argv[2], 'one'), 3)):
        found = state_of(1)
        dcp.load(found, checkpoint_id=folder)
        assert seed is None or flat(found) == flat(state_of(seed))
        model = net(9)
        model.load_state_dict(found['model'])


@tap.case
def processes_write_and_others_read():
    with tempfile.TemporaryDirectory() as folder:
        one = os.path.join(folder, 'one')
        dcp.save(state_of(3), checkpoint_id=one, max_part_size=1000)
        dcp.save(state_of(1), checkpoint_id=folder)
        ranks.start(__file__, N, folder)
        found = state_of(1)
        dcp.load(found, checkpoint_id=folder)
        assert flat(found) == flat(state_of(2)) and found['name'] == 'ä2' and found['epoch'] == 2
        ranks.start(__file__, 2, folder, 'rank_reading')


@tap.case
def an_index_is_read_as_others_write_it():
    with tempfile.TemporaryDirectory() as folder:
        for i, name in enumerate('ab'):
            GTorch.safetensors_save_file({name: torch.full((2,), float(i)), f'{name}2': torch.ones(1)}, None,
                                         Gio.File.new_for_path(f'{folder}/part-{i}.safetensors'))
        index = {'metadata': {'total_size': 16, 'who': 'x'},
                 'weight_map': {'a': 'part-0.safetensors', 'b': 'part-1.safetensors'}}
        place = Gio.File.new_for_path(f'{folder}/{INDEX}')

        def write(value):
            with open(place.get_path(), 'w', encoding='utf-8') as file:
                file.write(value if isinstance(value, str) else json.dumps(value))

        def load(*names):
            found, keys, metadata = GTorch.safetensors_load_index(place, list(names) or None, False, None, None)
            return dict(zip(keys, (one.tolist() for one in found))), metadata

        write(index)
        found, metadata = load()
        assert found == {'a': [0, 0], 'b': [1, 1]}
        assert dict(zip(metadata[::2], metadata[1::2])) == {'total_size': '16', 'who': 'x'}
        os.rename(f'{folder}/part-0.safetensors', f'{folder}/gone')
        assert load('b')[0] == {'b': [1, 1]}  # the other file is not opened
        tap.raises(GLib.Error, load, 'part-0.safetensors')
        tap.raises(GLib.Error, lambda: load('c'), 'there is no tensor “c”')
        for wrong in ('../x', '/x', '', 'a/b', '.x', 3):
            write({'weight_map': {'a': wrong}})
            tap.raises(GLib.Error, load, 'beside the index')
        write({'weight_map': {'a': 'part-1.safetensors'}})
        tap.raises(GLib.Error, load, 'has no tensor “a”')
        for wrong in ('[]', '{}', '{"weight_map": 3}', '{"weight_map": {}, "metadata": 3}', '{"weight_map"', ''):
            write(wrong)
            tap.raises(GLib.Error, load)


@tap.case
def wrong_calls_raise():
    with tempfile.TemporaryDirectory() as folder:
        state = {'a': torch.ones(2)}
        tap.raises(ValueError, lambda: dcp.save(state), 'the folder')
        tap.raises(TypeError, lambda: dcp.save({'f': object()}, checkpoint_id=folder), "the value 'f' is object")
        tap.raises(ValueError, lambda: dcp.save({'a.b': 1, 'a': {'b': 2}}, checkpoint_id=folder), 'two values')
        tap.raises(TypeError, lambda: dcp.save([], checkpoint_id=folder), 'a dictionary')
        tap.raises(NotImplementedError, lambda: dcp.save(state, checkpoint_id=folder, planner=1), 'planner')
        tap.raises(ValueError, lambda: dcp.save(state, checkpoint_id=folder, max_part_size=0), '1 or more')
        dcp.save({**state, 'n': 1}, checkpoint_id=folder)
        tap.raises(ValueError, lambda: dcp.load({'a': torch.ones(3)}, checkpoint_id=folder), 'has the shape')
        tap.raises(ValueError, lambda: dcp.load({'m': 3}, checkpoint_id=folder), 'no value')
        found = {'a': torch.zeros(2), 'n': 0}
        dcp.load(found, checkpoint_id=folder)
        assert found['n'] == 1 and found['a'].tolist() == [1, 1]
        file = Gio.File.new_for_path(f'{folder}/model.safetensors')
        tap.raises(GLib.Error, lambda: GTorch.safetensors_save_index(file, [], [], None, 1, None, None), '.index.json')
        file = Gio.File.new_for_path(f'{folder}/{INDEX}')
        tap.raises(GLib.Error, lambda: GTorch.safetensors_save_index(file, ['a'], [], None, 1, None, None),
                   '1 names for 0')
        tap.raises(GLib.Error, lambda: GTorch.safetensors_save_index(file, [], [], ['k'], 1, None, None),
                   'each key has one')


@tap.case
def a_main_loop_goes_on_meanwhile():
    loop = GLib.MainLoop()
    found = []

    def loaded(_source, result):
        found.append(GTorch.safetensors_load_index_finish(result))
        loop.quit()

    def saved(_source, result):
        assert GTorch.safetensors_save_index_finish(result)
        GTorch.safetensors_load_index_async(place, None, True, None, GLib.PRIORITY_DEFAULT, None, loaded)

    with tempfile.TemporaryDirectory() as folder:
        place = Gio.File.new_for_path(f'{folder}/{INDEX}')
        GTorch.safetensors_save_index_async(place, ['a'], [torch.ones(2)], None, 10, None, GLib.PRIORITY_DEFAULT, None,
                                            saved)
        loop.run()
    tensors, names, _metadata = found[0]
    assert names == ['a'] and tensors[0].tolist() == [1, 1]


if __name__ == '__main__':
    if sys.argv[1:2] == ['--rank']:
        only = sys.argv[3] if len(sys.argv) > 3 else 'rank_'
        ranks.run({name: one for name, one in globals().items() if name.startswith(only)})
    else:
        tap.main()
