#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Which folder of the library includes headers of which, and calls functions of which.

The folders of gtorch/ are in an order. A file includes headers of its own folder and of those before it, and
its object needs symbols of these only, so that each folder can be read, tested and changed without those
behind it. What a folder needs of a higher one is a table of functions, which the higher one fills in when the
library is loaded.

Argument: the static library of the build, whose symbols are read; without it only includes are.
"""

import os
import re
import shutil
import subprocess
import sys

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
    ["elements"],
    ["profiler"],
    ["nn"],
    ["optim"],
    ["data"],
    ["io"],
    ["distributed", "distributed/mpi", "distributed/pmix"],
    ["train"],
    ["export"],
    ["cpu"],
    ["cpu/ops"],
    ["cpu/isa"],
    ["text", "vision"],
    ["cuda/driver", "cuda/memory", "cuda/graph", "cuda/ops"],
    ["cuda/trace"],
    ["distributed/nccl"],
]
LEVELS = {room: level for level, rooms in enumerate(ORDER) for room in rooms}

# Headers that are written while the library is built, and where they belong.
GENERATED = {
    "gtorch-cuda-kernels.h": "cuda/ops",
    "gtorch-exporter-interface.h": "export",
    "gtorch-ops-private.h": "dispatch",
    "gtorch-tensor-ops.h": "dispatch",
    "gtorch-layers.h": "nn",
    "gtorch-lr-schedules.h": "optim",
    "gtorch-optimizers.h": "optim",
}

# The most files whose objects need each other's symbols, directly or by way of others: those of cuda/. Other
# circles are within one folder and smaller. A smaller number is welcome, a larger one is not, unless the file that
# is added does one more thing of the class of the device, which has its table and which it calls to activate
# the device: as gtorch-cuda-ipc.c shares events, gtorch-cuda-share.c shares memory.
LARGEST_CIRCLE = 35

# Where events are reported to observers (base/gtorch-observer-private.h): file -> the events, one for each place.
# A new event, or a new place of one, is a decision; a new observer needs neither. Backends report nothing: their
# callers do, and what a backend waits for itself it waits for in gtorch_host_wait ().
EVENTS = {
    "gtorch/autograd/gtorch-engine.c": ["backward_begin", "backward_end", "backward_begin", "backward_end"],
    "gtorch/autograd/gtorch-function.c": ["named_begin", "named_end"],
    "gtorch/autograd/gtorch-grad.c": ["grad"],
    "gtorch/autograd/gtorch-record.c": ["recorded"],
    "gtorch/device/gtorch-generator.c": ["host_work"],
    "gtorch/dispatch/gtorch-launch.c": ["prepare", "storage_new", "call"],
    "gtorch/dispatch/gtorch-op.c": ["composite_begin", "composite_end", "prepare", "view"],
    "gtorch/dispatch/gtorch-saved-call.c": ["saved", "run_begin", "run_end"],
    "gtorch/distributed/gtorch-collective-named.c": ["named_begin", "named_end"],
    "gtorch/graph/gtorch-capture.c": ["capture_begin", "capture_end"],
    "gtorch/graph/gtorch-graph-exec.c": ["replay"],
    "gtorch/memory/gtorch-device-memory.c": ["storage_new"],
    "gtorch/memory/gtorch-storage.c": ["storage_free", "host_block", "storage_waited"],
    "gtorch/ops/to.c": ["copy"],
    "gtorch/stream/gtorch-device-stream.c": ["host_block"],
    "gtorch/stream/gtorch-fence.c": ["host_waited", "host_block"],
    "gtorch/stream/gtorch-stream.c": ["join", "record", "wait", "host_block"],
    "gtorch/stream/gtorch-timeline.c": ["host_copy", "host_block", "host_wait", "host_block"],
    "gtorch/tensor/gtorch-impl.c": ["storage_new"],
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
    """Those of includes () that break the order."""
    for path, name, here, there in includes():
        if LEVELS[there] > LEVELS[here]:
            yield path, name, here, there


@tap.case
def no_header_of_a_higher_folder_is_included():
    broken = [f"{path} includes {name} of {there}, which comes behind {here}" for path, name, here, there in upward()]
    assert not broken, "\n".join(broken)


def symbols():
    """(defined, needed) by the path of the file, for the objects of the library's own C files."""
    if len(sys.argv) < 2:
        raise tap.Skip("no library was given")
    if not shutil.which("nm"):
        raise tap.Skip("nm is not installed")
    made = {f"{room_of(path)}/{os.path.basename(path)}".replace("/", "_"): path for path in library()}
    output = subprocess.run(["nm", "-A", "-P", sys.argv[1]], capture_output=True, text=True, check=True).stdout
    defined, needed = {}, {}
    for member, name, kind in re.findall(r"^[^\[\n]*\[(?:[^\]\n]*/)?([^\]/\n]+)\]: (\S+) (\w)", output, re.M):
        path = made.get(member.removesuffix(".o"))
        if path is None:
            continue  # generated from rows: tables and functions that name all folders
        if kind in "Uwv":
            needed.setdefault(path, set()).add(name)
        elif kind.isupper():
            defined.setdefault(path, set()).add(name)
    if len(defined) < 100:
        raise tap.Skip("the objects have symbols of another kind")  # such as those of an optimizer at link time
    return defined, needed


def calls():
    """path -> {other path: symbols of it that the object of the first needs}."""
    defined, needed = symbols()
    home = {name: path for path, names in defined.items() for name in names}
    arrows = {path: {} for path in defined | needed}
    for path, names in needed.items():
        for name in names:
            if home.get(name, path) != path:
                arrows[path].setdefault(home[name], set()).add(name)
    return arrows


def circles(arrows):
    """The sets of at least two files that lead to each other (Tarjan's algorithm)."""
    found, stack, number, low = [], [], {}, {}

    def visit(path):
        number[path] = low[path] = len(number)
        stack.append(path)
        for other in arrows[path]:
            if other not in number:
                visit(other)
                low[path] = min(low[path], low[other])
            elif other in stack:
                low[path] = min(low[path], number[other])
        if low[path] == number[path]:
            at = stack.index(path)
            if len(stack) - at > 1:
                found.append(set(stack[at:]))
            del stack[at:]

    for path in arrows:
        if path not in number:
            visit(path)
    return found


@tap.case
def no_symbol_of_a_higher_folder_is_needed():
    broken = [
        f"{path} needs {', '.join(sorted(names))} of {other}, whose folder comes behind"
        for path, others in sorted(calls().items()) for other, names in sorted(others.items())
        if LEVELS[room_of(other)] > LEVELS[room_of(path)]
    ]
    assert not broken, "\n".join(broken)


@tap.case
def circles_do_not_grow():
    large = [circle for circle in circles(calls()) if len(circle) > LARGEST_CIRCLE]
    text = "\n".join(f"{len(circle)} files: {', '.join(sorted(circle))}" for circle in large)
    assert not large, f"{text}\nare a circle, and the largest was {LARGEST_CIRCLE}"


@tap.case
def circles_are_found():
    arrows = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": {"d"}, "f": {"a", "d"}}
    found = sorted(sorted(circle) for circle in circles(arrows))
    assert found == [["a", "b", "c"], ["d", "e"]], found


@tap.case
def operations_name_no_device():
    """What a device does for an operation is in the tables of its backend; what it is asked, too."""
    word = re.compile(r"\b(gtorch_(?:cpu|cuda)_|GTorch(?:Cpu|Cuda)|GTORCH_(?:CPU|CUDA|DEVICE_TYPE)_)\w*")
    lines = [
        f"{path}: {match[0]}" for path in library() if room_of(path) == "ops"
        for match in word.finditer(re.sub(r"/\*.*?\*/", "", tree.read(path), flags=re.S))
    ]
    assert not lines, "\n".join(lines)


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
def backends_do_not_know_observers():
    names = re.compile(r"\b(gtorch_(observe|observer|observers|is_observed|tell|mark)(_\w+)?|GTorch(HostWait|Mark))\b")
    known = [
        path for path in library()
        if room_of(path).split("/")[0] in ("cpu", "cuda") and names.search(tree.read(path))
    ]
    assert not known, ", ".join(known)


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
