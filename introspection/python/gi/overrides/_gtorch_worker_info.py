# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What code that a loader's worker calls may ask: get_worker_info()."""

import dataclasses
import threading
from typing import Any

shared_like = None  # in a worker process: memory for a batch that the program's process shares


@dataclasses.dataclass(frozen=True)
class RNG:
    """The generators of a thread: of Python's module random and of this library."""

    random_generator: Any
    torch_generator: Any
    numpy_generator: Any = None


@dataclasses.dataclass(frozen=True)
class WorkerInfo:
    """The worker that calls: its number, how many there are, the seed of its random numbers, and its data set, in a
    process a copy. A thread has a generator of its own."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str = 'multiprocessing'


class _Thread(threading.local):
    info = None


of_thread = _Thread()
of_process = None


def set_process(info):
    """In a worker process: the information for all its threads."""
    global of_process
    of_process = info


def get_worker_info():
    """The WorkerInfo of the worker of a loader that calls this, or None elsewhere."""
    return of_thread.info or of_process


for _one in (WorkerInfo, get_worker_info):
    _one.__module__ = 'gtorch.utils.data'
