# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a profiler has recorded, with the names of PyTorch's lists and events."""

import collections
import enum
import json

from gi.repository import GLib

from gi.overrides._gtorch_convert import GTorch, convert_bool, convert_whole

METRICS = ('self_cpu_time_total', 'self_cuda_time_total')
KINDS = GTorch.ProfileKind
SCOPES = {KINDS.BACKWARD: 1, KINDS.RANGE: 7, KINDS.STEP: 7, KINDS.TRANSFER: 7}  # of at::RecordScope; 0: all others
ACTIVITIES = {
    KINDS.RANGE: 'user_annotation', KINDS.STEP: 'user_annotation', KINDS.TRANSFER: 'user_annotation',
    KINDS.MODULE: 'python_function', KINDS.MEMORY: 'cpu_instant_event', KINDS.DRIVER: 'cuda_driver',
    KINDS.KERNEL: 'kernel', KINDS.COPY: 'gpu_memcpy', KINDS.FILL: 'gpu_memset',
}  # fmt: skip
ABSENT = {
    'concrete_inputs': 'values of arguments are not recorded', 'kwinputs': 'values of arguments are not recorded',
}  # fmt: skip


class DeviceType(enum.Enum):
    """Where an event was."""

    CPU = 0
    CUDA = 1


def unsupported(name, **given):
    for argument, value in given.items():
        if value:
            text = f'{name}(): {argument}={value!r} is not supported'
            raise GLib.Error.new_literal(GTorch.error_quark(), text, GTorch.Error.NOT_SUPPORTED)


def _time(microseconds):
    for unit, factor in (('s', 1e6), ('ms', 1e3)):
        if microseconds >= factor:
            return f'{microseconds / factor:.3f}{unit}'
    return f'{microseconds:.3f}us'


Kernel = collections.namedtuple('Kernel', ['name', 'device', 'duration'])


class Interval:
    """Microseconds from the beginning of the profile."""

    def __init__(self, start, end):
        self.start, self.end = start, end

    def elapsed_us(self):
        return self.end - self.start


class _Tree:
    """All events of a profile, in their order: the lists that are made of them have the same objects."""

    def __init__(self, profiler, rows):
        self._rows, self._events, self._inside = rows, None, None
        self.has_gpu = profiler.get_gpu_source() != GTorch.ProfilerGpuSource.NONE

    @property
    def events(self):
        if self._events is None:
            rows = self._rows.dup_events()
            self._events = [FunctionEvent(rows.get_item(i), self) for i in range(rows.get_n_items())]
        return self._events

    def inside(self, position):
        """The events and kernels that are directly inside of one; C knows of each what it is inside of."""
        if self._inside is None:
            self._inside = [([], []) for _event in self.events]
            for event in self.events:
                above = event._row.get_parent_position()
                if above >= 0:
                    self._inside[above][event.device_type != DeviceType.CPU].append(event)
        return self._inside[position] if position >= 0 else ([], [])


class FunctionEventAvg:
    """A row of a profile; times are microseconds. What belongs to one event is that of the first."""

    NAMES = (
        'key', 'count', 'cpu_time', 'cpu_time_total', 'self_cpu_time_total', 'device_time', 'device_time_total',
        'self_device_time_total', 'cpu_memory_usage', 'self_cpu_memory_usage', 'device_memory_usage',
        'self_device_memory_usage', 'flops', 'is_user_annotation', 'thread', 'sequence_nr', 'module_path',
    )  # fmt: skip
    node_id, is_remote, is_legacy, overload_name = -1, False, False, ''

    def __init__(self, row, tree):
        self._row, self._tree = row, tree

    def __getattr__(self, name):
        if name in ABSENT:
            raise AttributeError(f'{type(self).__name__} has no {name}: {ABSENT[name]}', name=name)
        plain = name.removesuffix('_str').replace('cuda', 'device')
        if name.startswith('_') or plain not in self.NAMES or (name.endswith('_str') and 'time' not in plain):
            raise AttributeError(f'{type(self).__name__!r} object has no attribute {name!r}')
        value = getattr(self._row, f'get_{plain}')()
        return _time(value) if name.endswith('_str') else value

    @property
    def cpu_parent(self):
        """The event of the same thread that this one is inside of, or None."""
        above = self._row.get_parent_position()
        return self._of_tree().events[above] if above >= 0 and self.device_type == DeviceType.CPU else None

    @property
    def cpu_children(self):
        """The events directly inside of this one, in the order of time."""
        return self._of_tree().inside(self._row.get_position())[0]

    def _of_tree(self):
        if self._tree is None:
            raise ValueError(f'{self.key}: the list had events of several profiles, or none')
        return self._tree

    @property
    def use_device(self):
        return 'cuda' if self._of_tree().has_gpu else None

    @property
    def is_async(self):
        """Whether it goes on beside the work of the program's threads, as what MPI does for a collective."""
        return self._row.get_is_asynchronous()

    @property
    def scope(self):
        return SCOPES.get(self._row.get_kind(), 0)

    @property
    def is_python_function(self):
        """Whether it is a call of a module, which PyTorch records as one of Python."""
        return self._row.get_kind() == KINDS.MODULE

    @property
    def input_shapes(self):
        text = self._row.get_input_shapes()
        return json.loads(text) if text else ''

    @property
    def stack(self):
        text = self._row.get_stack()
        return text.split('\n') if text else []

    @property
    def device_type(self):
        return DeviceType.CPU if self._row.get_device_type() == GTorch.DeviceType.CPU else DeviceType.CUDA

    def __repr__(self):
        times = f'self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str}'
        device = f'self_cuda_time={self.self_device_time_total_str} cuda_time={self.device_time_str}'
        return f'<{type(self).__name__} key={self.key} {times} {device} input_shapes={self.input_shapes}>'


class FunctionEvent(FunctionEventAvg):
    """An event of a profile."""

    metadata_json = ''

    @property
    def id(self):
        """The “External id” of traces; of kernels, copies and calls of the driver their correlation."""
        return self._row.get_id()

    @property
    def name(self):
        return self.key

    @property
    def trace_name(self):
        """The name in traces, where steps have their numbers; None for memory, of which they have other events."""
        kind = self._row.get_kind()
        return None if kind == KINDS.MEMORY else self._row.get_trace_name()

    @property
    def time_range(self):
        return Interval(self._row.get_start(), self._row.get_end())

    @property
    def kernels(self):
        """What it has launched itself: names, numbers of devices and microseconds."""
        found = self._tree.inside(self._row.get_position())[1]
        return [Kernel(one.name, one.device_index, one.time_range.elapsed_us()) for one in found]

    @property
    def fwd_thread(self):
        """Of a node of a backward pass, the thread of its operation; else 0."""
        return self._row.get_forward_thread()

    @property
    def device_index(self):
        return self._row.get_device_index()

    @property
    def device_resource_id(self):
        """The stream of a kernel or copy, the thread of all others."""
        return self.thread if self.device_type == DeviceType.CPU else self._row.get_stream()

    @property
    def activity_type(self):
        """The category in traces."""
        return ACTIVITIES.get(self._row.get_kind(), 'cpu_op')

    def __repr__(self):
        inside = [one.id for one in self.cpu_children]
        return (
            f'<FunctionEvent id={self.id} name={self.name} device_type={self.device_type} cpu_time={self.cpu_time_str} '
            f'start_us={self.time_range.start} end_us={self.time_range.end} cpu_children={inside} '
            f'{self.use_device}_time={self.device_time_str} thread={self.thread} input_shapes={self.input_shapes} '
            f'cpu_memory_usage={self.cpu_memory_usage} device_memory_usage={self.device_memory_usage} '
            f'is_async={self.is_async} seq_nr={self.sequence_nr}>'
        )


class EventList(list):
    """Rows of a profile. What is asked of a list is of the rows that it has then: a program may sort it, take rows out
    of it, or make one of the rows that it has chosen: EventList(event for event in events if …)."""

    def __init__(self, rows=(), *, use_device=None, profile_memory=False, with_flops=False):
        super().__init__(rows)
        for row in self:
            if not isinstance(row, FunctionEventAvg):
                raise TypeError(f'EventList(): {row!r} is no event of a profile')
        self._profiler = getattr(rows, '_profiler', None)

    @classmethod
    def _made(cls, profiler, rows):
        made = cls(rows)
        made._profiler = profiler
        return made

    @property
    def _rows(self):
        return GTorch.ProfileList.new_from_rows([row._row for row in self])

    def table(self, sort_by=None, row_limit=100, max_src_column_width=75, max_name_column_width=55,
              max_shapes_column_width=80, header=None, top_level_events_only=False, time_unit=None):  # fmt: skip
        """The rows as a text; see GTorch.ProfileList.table()."""
        widths = (max_src_column_width, max_name_column_width, max_shapes_column_width)
        widths = [-1 if width is None else convert_whole(width) for width in widths]
        top, limit = convert_bool(top_level_events_only), -1 if row_limit is None else convert_whole(row_limit)
        return self._rows.table(sort_by, limit, *widths, header, top, time_unit)

    __str__ = table

    @property
    def self_cpu_time_total(self):
        return self._rows.get_self_cpu_time_total()

    def total_average(self):
        return FunctionEventAvg(self._rows.total_average(), self._tree())

    def key_averages(self, group_by_input_shapes=False, group_by_stack_n=0, group_by_overload_name=False):
        unsupported('key_averages', group_by_overload_name=group_by_overload_name)
        shapes = convert_bool(group_by_input_shapes)
        return sums_of(self._profiler, self._rows.key_averages(shapes, convert_whole(group_by_stack_n)), self._tree())

    def _tree(self):
        trees = {id(row._tree): row._tree for row in self}
        return next(iter(trees.values())) if len(trees) == 1 else None

    def export_chrome_trace(self, path):
        """Writes the trace of the whole profile."""
        self._of_profiler('export_chrome_trace').export_chrome_trace(path, None)

    def supported_export_stacks_metrics(self):
        return list(METRICS)

    def export_stacks(self, path, metric):
        export_stacks(self._of_profiler('export_stacks'), path, metric)

    def _of_profiler(self, what):
        if self._profiler is None:
            raise ValueError(f'{what}(): the list was made of single rows: the profiler writes files')
        return self._profiler


def sums_of(profiler, rows, tree):
    """The rows of C as a list."""
    return EventList._made(profiler, [FunctionEventAvg(rows.get_item(i), tree) for i in range(rows.get_n_items())])


class Recorded:
    """What a profiler has recorded last: its lists share their events, also the list of events, as in PyTorch."""

    def __init__(self, profiler):
        self._profiler, self._tree, self._events = profiler, None, None

    def events(self):
        if self._events is None:
            self._tree = self._tree or _Tree(self._profiler, self._profiler.events())
            self._events = EventList._made(self._profiler, self._tree.events)
        return self._events

    def key_averages(self, group_by_input_shape, group_by_stack_n, group_by_overload_name):
        unsupported('key_averages', group_by_overload_name=group_by_overload_name)
        rows = self._profiler.key_averages(convert_bool(group_by_input_shape), convert_whole(group_by_stack_n))
        self._tree = self._tree or _Tree(self._profiler, rows)
        return sums_of(self._profiler, rows, self._tree)


def export_stacks(profiler, path, metric):
    if metric not in METRICS:
        raise ValueError(f'export_stacks(): metric is {metric!r}, it must be one of {", ".join(METRICS)}')
    profiler.export_stacks(path, metric, None)
