#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Which folder of the library includes headers of which.

The folders of gtorch/ are in an order. A file includes headers of its own folder and of those before it,
so that each folder can be read, tested and changed without those behind it. Exceptions are named here,
each with its reason.
"""

import os
import re

import tap
import tree

# The lowest first. Folders in one line may include each other's headers.
ORDER = [
    ["base"],
    ["device"],
    ["stream"],
    ["memory"],
    ["tensor"],
    ["dispatch"],
    ["ops"],
    ["graph"],
    ["check"],
    ["autograd"],
    ["nn"],
    ["optim"],
    ["data"],
    ["io"],
    ["binding"],
    ["cpu"],
    ["cpu/ops"],
    ["cpu/isa"],
    ["cuda/driver", "cuda/memory", "cuda/graph", "cuda/ops"],
]
LEVELS = {room: level for level, rooms in enumerate(ORDER) for room in rooms}

# Headers that are written while the library is built, and where they belong.
GENERATED = {
    "gtorch-cuda-kernels.h": "cuda/ops",
    "gtorch-ops-private.h": "dispatch",
    "gtorch-tensor-ops.h": "dispatch",
    "gtorch-layers.h": "nn",
    "gtorch-lr-schedules.h": "optim",
    "gtorch-optimizers.h": "optim",
}

# header -> why files of lower folders include it, and which ones do.
EXCEPTIONS = {
    "gtorch-allocator-private.h": (
        "a device owns its allocator",
        {"gtorch-device-manager.c", "gtorch-device.c"},
    ),
    "gtorch-autograd-private.h": (
        "records, frees or looks at the history of a tensor",
        {"gtorch-autocast.c", "gtorch-hold.c", "gtorch-impl.c", "gtorch-op.c", "gtorch-tensor-bytes.c",
         "gtorch-tensor-dlpack.c", "gtorch-tensor-print.c", "recurrence.c", "scatter-reduce.c", "split.c"},
    ),
    "gtorch-cpu-cast.h": (
        "converts elements on the host",
        {"gtorch-tensor-bytes.c", "gtorch-tensor-create.c", "gtorch-tensor-print.c"},
    ),
    "gtorch-cpu-gemm.h": (
        "the types of products are those of the loops",
        {"gtorch-cpu-blas.h"},
    ),
    "gtorch-cpu-iter.h": (
        "copies strided elements on the host",
        {"gtorch-safetensors-save.c", "gtorch-tensor-bytes.c"},
    ),
    "gtorch-cpu-optim.h": (
        "calls the loop of the steps directly",
        {"gtorch-step.c"},
    ),
    "gtorch-host-allocator.h": (
        "is-pinned is a property of the class itself",
        {"gtorch-tensor.c"},
    ),
    "gtorch-impl-private.h": (
        "pinned memory is made as a tensor",
        {"gtorch-pinned-private.h"},
    ),
    "gtorch-isa-half.h": (
        "orders numbers of 16 bits by their bits",
        {"order-items.c"},
    ),
    "gtorch-memory-pool-private.h": (
        "allocates from the pool of the thread",
        {"gtorch-device.c"},
    ),
    "gtorch-ops-private.h": (
        "functions of tensors that are made of operations",
        {"gtorch-tensor-async.c", "gtorch-tensor-bytes.c", "gtorch-tensor-create.c",
         "gtorch-tensor-dlpack.c", "gtorch-tensor-index.c", "gtorch-tensor-print.c"},
    ),
    "gtorch-step-private.h": (
        "the operation of a step has the loops of the optimizers",
        {"optim.c"},
    ),
    "gtorch-stream-private.h": (
        "a device makes its default stream",
        {"gtorch-device.c"},
    ),
    "gtorch-tensor-autograd.h": (
        "the properties of tensors for gradients are of the class itself",
        {"gtorch-tensor.c"},
    ),
}

# (folder, folder above it) -> why files of the one may include all headers of the other.
FOLDER_EXCEPTIONS = {
    ("ops", "cpu"): "structured operations have their loops of the CPU beside their shapes",
    ("ops", "cpu/ops"): "structured operations have their loops of the CPU beside their shapes",
    ("ops", "cuda/ops"): "structured operations have their forms of GPUs beside their shapes",
}

# Where events are reported to observers (base/gtorch-observer-private.h): file -> the events, one for each place.
# A new event, or a new place of one, is a decision; a new observer needs neither.
EVENTS = {
    "gtorch/autograd/gtorch-grad.c": ["grad"],
    "gtorch/cpu/gtorch-cpu-stream.c": ["join"],
    "gtorch/cuda/driver/gtorch-cuda-stream.c": ["join", "host_wait", "host_wait"],
    "gtorch/cuda/memory/gtorch-host-allocator.c": ["host_copy"],
    "gtorch/device/gtorch-generator.c": ["host_work", "host_work"],
    "gtorch/dispatch/gtorch-launch.c": ["call"],
    "gtorch/graph/gtorch-capture.c": ["capture_begin", "capture_end"],
    "gtorch/graph/gtorch-graph-exec.c": ["replay"],
    "gtorch/memory/gtorch-storage.c": ["storage_free", "storage_waited"],
    "gtorch/ops/to.c": ["copy"],
    "gtorch/stream/gtorch-fence.c": ["host_waited"],
    "gtorch/stream/gtorch-stream.c": ["host_wait", "record", "wait"],
    "gtorch/stream/gtorch-timeline.c": ["host_wait"],
}

INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.M)


def room_of(path):
    """The folder of a file of the library, below gtorch/."""
    return os.path.dirname(path)[len("gtorch/"):]


def library():
    """The C files and headers in the folders of the library."""
    return [
        path for path in tree.files()
        if re.match(r"gtorch/.+/[^/]+\.(c|h|inc)$", path)
    ]


def homes():
    """The folder of each header, by its name, which no other one has."""
    rooms = dict(GENERATED)
    for path in library():
        if not path.endswith(".c"):
            name = os.path.basename(path)
            assert name not in rooms, f"two headers have the name {name}"
            rooms[name] = room_of(path)
    return rooms


def includes():
    """(file, header, folder of the file, folder of the header) for what is included from another folder."""
    rooms = homes()
    for path in library():
        for header in INCLUDE.findall(tree.read(path)):
            name = os.path.basename(header)
            if name in rooms and rooms[name] != room_of(path):
                yield path, name, room_of(path), rooms[name]


@tap.case
def each_folder_has_a_place():
    unknown = sorted({room_of(path) for path in library()} - set(LEVELS))
    assert not unknown, f"the order lacks {', '.join(unknown)}"


@tap.case
def only_the_umbrella_header_is_in_no_folder():
    files = [path for path in tree.files() if re.match(r"gtorch/[^/]+\.(c|h)$", path)]
    assert files == ["gtorch/gtorch.h"], files


def upward():
    """(file, its name, header, folder of the file, folder of the header) for what breaks the order."""
    for path, name, here, there in includes():
        if LEVELS[there] > LEVELS[here]:
            yield path, os.path.basename(path), name, here, there


def is_excepted(file, header):
    """Whether the table names the file for the header."""
    return header in EXCEPTIONS and file in EXCEPTIONS[header][1]


@tap.case
def no_header_of_a_higher_folder_is_included():
    broken = [
        f"{path} includes {name} of {there}, which comes behind {here}"
        for path, file, name, here, there in upward()
        if not is_excepted(file, name) and (here, there) not in FOLDER_EXCEPTIONS
    ]
    assert not broken, "\n".join(broken)


@tap.case
def each_exception_is_needed():
    found = list(upward())
    listed = {(file, header) for header, (_, files) in EXCEPTIONS.items() for file in files}
    stale = listed - {(file, name) for _, file, name, _, _ in found}
    folders = set(FOLDER_EXCEPTIONS) - {(here, there) for _, _, _, here, there in found}
    assert not stale and not folders, f"{sorted(stale)} {sorted(folders)}"


@tap.case
def only_the_checks_know_the_checks():
    lines = [f"{path} includes {name}" for path, name, _, there in includes() if there == "check"]
    assert not lines, "\n".join(lines)


@tap.case
def events_are_reported_where_the_table_says():
    found = {}
    for path in library():
        events = re.findall(r"\bgtorch_observe_(\w+) \(", tree.read(path))
        if events and room_of(path) != "check" and "/gtorch-observer" not in path:
            found[path] = events
    wrong = [
        f"{path} reports {found.get(path, [])} and not {EVENTS.get(path, [])}"
        for path in sorted(set(found) | set(EVENTS)) if found.get(path) != EVENTS.get(path)
    ]
    assert not wrong, "\n".join(wrong)


@tap.case
def includes_name_the_folder():
    rooms = homes()
    lines = [
        f"{path} includes {header}, which is {rooms[os.path.basename(header)]}/{os.path.basename(header)}"
        for path in library() for header in INCLUDE.findall(tree.read(path))
        if os.path.basename(header) in rooms and os.path.basename(header) not in GENERATED
        and header.removeprefix("gtorch/") != f"{rooms[os.path.basename(header)]}/{os.path.basename(header)}"
    ]
    assert not lines, "\n".join(lines)


tap.main()
