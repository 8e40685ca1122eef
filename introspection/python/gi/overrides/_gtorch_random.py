# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Seeds and states of the generators: GTorch.random and GTorch.cuda.random."""

from contextlib import contextmanager

from gi.overrides._gtorch_convert import GTorch, convert_seed, listed
from gi.overrides._gtorch_device import CUDA, _all_gpus, _generator


def _cpu():
    return GTorch.Device.cpu().get_default_generator()


def _fresh(generator):
    generator.seed_from_entropy()
    return generator.get_seed()


def manual_seed(seed):
    """Seeds the generators of the CPU and of all GPUs, and returns that of the CPU."""
    GTorch.manual_seed(convert_seed(seed))
    return _cpu()


def seed():
    """Seeds the generators of all devices with a number that differs each time, and returns it."""
    value = _fresh(_cpu())
    for index in _all_gpus():
        _generator(index).set_seed(value)
    return value


def initial_seed():
    """The seed of the CPU's generator."""
    return _cpu().get_seed()


def get_rng_state():
    """The state of the CPU's generator, a tensor of bytes."""
    return _cpu().get_state()


def set_rng_state(new_state):
    """Continues where the CPU's generator was when get_rng_state() gave this state."""
    _cpu().set_state(new_state)


@contextmanager
def fork_rng(devices=None, enabled=True, device_type='cuda'):
    """A block after which the generators of the CPU and of @devices, all GPUs if there are none given, are where they
    were before it."""
    if device_type not in ('cuda', 'cpu'):
        raise ValueError(f"fork_rng(): device_type must be 'cuda' or 'cpu', not {device_type!r}")
    if not enabled:
        yield
        return
    if devices is None:
        devices = _all_gpus() if device_type == 'cuda' else ()
    generators = [_cpu(), *(_generator(device) for device in devices)]
    states = [generator.get_state() for generator in generators]
    try:
        yield
    finally:
        for generator, state in zip(generators, states):
            generator.set_state(state)


def cuda_seed():
    """Seeds the generator of the current GPU with a number that differs each time; does nothing without a GPU."""
    if _all_gpus():
        _fresh(_generator())


def cuda_seed_all():
    """Seeds the generators of all GPUs with one number that differs each time; does nothing without a GPU."""
    value = None
    for index in _all_gpus():
        if value is None:
            value = _fresh(_generator(index))
        _generator(index).set_seed(value)


def get_rng_state_all():
    """The states of the generators of all GPUs, a list."""
    return [_generator(index).get_state() for index in _all_gpus()]


def set_rng_state_all(new_states):
    """Sets the states of the generators of all GPUs, which get_rng_state_all() gave."""
    new_states = listed(new_states, 'set_rng_state_all(): new_states')
    n = len(_all_gpus())
    if len(new_states) != n:
        raise ValueError(f'set_rng_state_all(): there are {len(new_states)} states, and {n} GPUs')
    for index, state in enumerate(new_states):
        _generator(index).set_state(state)


def install(export, submodule, cuda):
    members = {
        function.__name__: function
        for function in (fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state)
    }
    for name, value in members.items():
        export(name, value)
    members['Generator'] = GTorch.Generator
    members['default_generator'] = export('default_generator', _cpu())
    submodule('random', 'Seeds and states of the generators.', members)
    more = {
        'get_rng_state_all': get_rng_state_all, 'set_rng_state_all': set_rng_state_all, 'seed': cuda_seed,
        'seed_all': cuda_seed_all,
    }
    vars(cuda).update(more)
    names = 'get_rng_state', 'set_rng_state', 'initial_seed', 'manual_seed', 'manual_seed_all'
    cuda.random = submodule(
        'cuda.random', 'Seeds and states of the generators of GPUs.', {**{name: CUDA[name] for name in names}, **more}
    )
