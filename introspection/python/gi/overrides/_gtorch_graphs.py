# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Graphs of work: CUDAGraph, graph() and GTorch.cuda.graph()."""

import os
from contextlib import contextmanager

from gi.overrides import override
from gi.repository import Gio

from gi.overrides import _gtorch_memory as memory
from gi.overrides._gtorch_convert import GTorch, convert_bool, convert_enum, cuda_device, for_gpus, of_type
from gi.overrides._gtorch_device import Stream

OVERRIDES = 'gi.overrides.GTorch'  # override() finds the namespace through it
Raw = GTorch.CUDAGraph
NO_HANDLE = "the driver's handles of a graph are not given to programs, which could change the graph"


class CUDAGraph(Raw):
    """Work that is recorded once and replayed; use it with GTorch.cuda.graph(). The graph itself is always kept, so
    that @keep_graph has no effect: it is instantiated by instantiate() or by the first replay."""

    __module__ = OVERRIDES

    def __init__(self, keep_graph=False, **properties):
        convert_bool(keep_graph)
        super().__init__(**properties)

    def capture_begin(self, pool=None, capture_error_mode='global'):
        """Begins to record the work of the current stream, which must not be the default one of its device."""
        mode = convert_enum(GTorch.CaptureMode, capture_error_mode, 'capture_begin(): capture_error_mode')
        Raw.capture_begin(self, memory.pool_of(pool), mode)

    def capture_end(self):
        """Ends what capture_begin() has begun."""
        Raw.capture_end(self)

    def instantiate(self):
        """Prepares the graph for replays; the first replay does it otherwise."""
        Raw.instantiate(self)

    def replay(self, stream=None):
        """Does the recorded work again, on the current stream or another one."""
        if stream is not None:
            return self.replay_on(stream)
        return Raw.replay(self)

    def reset(self):
        """Drops what was recorded."""
        Raw.reset(self)

    def pool(self):
        """The memory of the graph, for `pool` of other captures."""
        return self.get_pool()

    def enable_debug_mode(self):
        """Does nothing: debug_dump() is always possible."""

    def debug_dump(self, debug_path, cancellable=None):
        """Writes the graph in the language of Graphviz into a file, or into a Gio.OutputStream."""
        if isinstance(debug_path, Gio.OutputStream):
            return Raw.debug_dump(self, debug_path, cancellable)
        file = Gio.File.new_for_path(os.fspath(debug_path))
        stream = file.replace(None, False, Gio.FileCreateFlags.NONE, cancellable)
        Raw.debug_dump(self, stream, cancellable)
        stream.close(cancellable)

    def raw_cuda_graph(self):
        """Raises: handles of the driver's are not given to programs."""
        raise NotImplementedError(f'CUDAGraph.raw_cuda_graph(): {NO_HANDLE}')

    def raw_cuda_graph_exec(self):
        """Raises: handles of the driver's are not given to programs."""
        raise NotImplementedError(f'CUDAGraph.raw_cuda_graph_exec(): {NO_HANDLE}')


@contextmanager
def graph(cuda_graph, pool=None, stream=None, capture_error_mode='thread_local'):
    """with GTorch.graph(g): the work of the block is recorded, not executed; after an exception in it the
    graph is empty again."""
    mode = convert_enum(GTorch.CaptureMode, capture_error_mode, 'graph(): capture_error_mode')
    capture = GTorch.GraphCapture.new(cuda_graph, stream, memory.pool_of(pool), mode)
    try:
        yield cuda_graph
    except BaseException:
        del capture  # abandons the capture unless it has ended
        raise
    capture.end()


def cuda_graph(cuda_graph, pool=None, stream=None, capture_error_mode='global'):
    """with GTorch.cuda.graph(g): the work of the block on the current GPU is recorded, not done."""
    stream = Stream(cuda_device()) if stream is None else for_gpus(of_type(stream, GTorch.Stream, 'graph(): stream'))
    return graph(cuda_graph, pool, stream, capture_error_mode)


def install(export, cuda):
    cuda.CUDAGraph = export('CUDAGraph', override(CUDAGraph))
    cuda.graph = cuda_graph
    export('graph', graph)
