#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Times PyTorch on a GPU for the names of bench-cuda, with the same interface: reads names and prints “name,
seconds of one call”.

The rows host.* are timed through PyTorch's C++ interface, by peer-host.cpp. --first creates one tensor and
ends.
"""

import functools
import gc
import statistics
import sys
import time

import torch
from peer_training import Program
from torch.nn import functional as F

DEVICE = torch.device('cuda')
N = 1 << 28
BF16 = torch.bfloat16
WARM_UP = 0.02  # in seconds
SETTLE = 0.3  # in seconds, for a GPU at its power limit
HEAVY = ('mm.', 'conv.', 'attn.')  # rows that reach the power limit


@functools.cache
def get(name):
    """The operands of the cases; each is created on first use and kept."""
    return {
        'x': lambda: torch.randn(N, device=DEVICE),
        'y': lambda: torch.randn(N, device=DEVICE),
        'x16': lambda: get('x').to(BF16),
        'y16': lambda: get('y').to(BF16),
        'square': lambda: get('x').view(1 << 14, 1 << 14),
        'row': lambda: torch.randn(1 << 14, device=DEVICE),
        'flags': lambda: get('x') > get('y'),
        'narrow': lambda: get('x').view(1 << 17, 1 << 11),
        'narrow16': lambda: get('x16').view(1 << 17, 1 << 11),
        'weight': lambda: torch.randn(1 << 11, device=DEVICE),
        'weight16': lambda: get('weight').to(BF16),
        'index': lambda: torch.randint(0, 1 << 17, (1 << 17,), device=DEVICE),
        'scores16': lambda: get('x16').view(1 << 13, 1 << 15),
        'labels': lambda: torch.randint(0, 1 << 15, (1 << 13,), device=DEVICE),
        'keys': lambda: get('x')[:1 << 26],
        'matrix': lambda: torch.randn(8192, 8192, device=DEVICE),
        'matrix16': lambda: get('matrix').to(BF16),
        'matrix10240': lambda: torch.randn(10240, 10240, device=DEVICE),
        'matrix64': lambda: torch.randn(64, 64, device=DEVICE),
        'matrix256': lambda: torch.randn(256, 256, device=DEVICE),
        'matrix1024': lambda: torch.randn(1024, 1024, device=DEVICE, dtype=BF16),
        'matrix16384': lambda: torch.randn(16384, 16384, device=DEVICE, dtype=BF16),
        'vector': lambda: torch.randn(16384, device=DEVICE, dtype=BF16),
        'batch': lambda: torch.randn(256, 512, 512, device=DEVICE, dtype=BF16),
        'waves': lambda: torch.randn(1 << 24, device=DEVICE, dtype=torch.complex64),
        'images': lambda: torch.randn(64, 256, 56, 56, device=DEVICE, dtype=BF16),
        'filters': lambda: torch.randn(256, 256, 3, 3, device=DEVICE, dtype=BF16),
        'images_last': lambda: get('images').to(memory_format=torch.channels_last),
        'rows16': lambda: torch.randn(8, 32, 4096, 128, device=DEVICE, dtype=BF16),
        'few_rows16': lambda: torch.randn(8, 8, 4096, 128, device=DEVICE, dtype=BF16),
        'padding': lambda: torch.ones(8, 1, 1, 4096, device=DEVICE, dtype=torch.bool),
        'filters_last': lambda: get('filters').to(memory_format=torch.channels_last),
    }[name]()


def with_gradients(images, filters):
    with torch.enable_grad():
        x, w = images.detach().requires_grad_(), filters.detach().requires_grad_()
        y = F.conv2d(x, w, padding=1)
        y.backward(y.detach())


def norm_with_gradients():
    with torch.enable_grad():
        x, w = get('narrow').detach().requires_grad_(), get('weight').detach().requires_grad_()
        y = F.layer_norm(x, (1 << 11,), w, w)
        y.backward(y.detach())


def loss_with_gradients():
    with torch.enable_grad(), torch.autocast('cuda', BF16):
        F.cross_entropy(get('scores16').detach().requires_grad_(), get('labels')).backward()


def queued(run, n=100):
    for _ in range(n):
        run()


def attend(q, k, **options):
    return F.scaled_dot_product_attention(q, k, k, **options)


def attend_with_gradients(rows):
    with torch.enable_grad():
        x = rows.detach().requires_grad_()
        y = attend(x, x)
        y.backward(y.detach())


def tf32(matrix):
    torch.backends.cuda.matmul.allow_tf32 = True
    get(matrix) @ get(matrix)
    torch.backends.cuda.matmul.allow_tf32 = False


CASES = {
    'bw.copy_f32': lambda: get('x').clone(),
    'bw.add_f32': lambda: get('x') + get('y'),
    'bw.relu_f32': lambda: torch.relu(get('x')),
    'bw.exp_f32': lambda: torch.exp(get('x')),
    'bw.gelu_f32': lambda: F.gelu(get('x')),
    'bw.add_bf16': lambda: get('x16') + get('y16'),
    'bw.cast_f32_bf16': lambda: get('x').to(BF16),
    'bw.transpose_copy_f32': lambda: get('square').t().contiguous(),
    'bw.add_row_broadcast_f32': lambda: get('square') + get('row'),
    'bw.add_col_broadcast_f32': lambda: get('square') + get('row')[:, None],
    'bw.where_f32': lambda: torch.where(get('flags'), get('x'), get('y')),
    'bw.cat_f32': lambda: torch.cat([get('x'), get('y')]),
    'bw.sum_all_f32': lambda: get('x').sum(),
    'bw.sum_dim1_f32': lambda: get('square').sum(1),
    'bw.sum_dim0_f32': lambda: get('square').sum(0),
    'bw.max_dim1_f32': lambda: get('square').max(1),
    'bw.argmax_all_f32': lambda: get('x').argmax(),
    'bw.argmax_dim1_f32': lambda: get('square').argmax(1),
    'bw.argmax_dim0_f32': lambda: get('square').argmax(0),
    'bw.cumsum_dim1_f32': lambda: get('square').cumsum(1),
    'bw.cumsum_dim0_f32': lambda: get('square').cumsum(0),
    'bw.cumsum_all_f32': lambda: get('x').cumsum(0),
    'bw.softmax_2048_f32': lambda: torch.softmax(get('narrow'), -1),
    'bw.softmax_2048_bf16': lambda: torch.softmax(get('narrow16'), -1),
    'bw.layernorm_2048_f32': lambda: F.layer_norm(get('narrow'), (1 << 11,), get('weight'), get('weight')),
    'bw.layernorm_2048_bf16': lambda: F.layer_norm(get('narrow16'), (1 << 11,), get('weight16'), get('weight16')),
    'bw.layernorm_2048_f32_gradients': norm_with_gradients,
    'bw.cross_entropy_32768_bf16_gradients': loss_with_gradients,
    'bw.dropout_f32': lambda: F.dropout(get('x'), 0.2, True),
    'bw.randn_f32': lambda: get('y').normal_(),
    'bw.uniform_f32': lambda: get('y').uniform_(),
    'bw.index_select_rows_f32': lambda: get('narrow').index_select(0, get('index')),
    'bw.embedding_bf16': lambda: F.embedding(get('index'), get('narrow16')),
    'bw.fft_c64_16M': lambda: torch.fft.fft(get('waves')),
    'rate.sort_f32_64M': lambda: get('keys').sort(),
    'rate.topk_100_f32_64M': lambda: get('keys').topk(100),
    'mm.fp32_8192': lambda: get('matrix') @ get('matrix'),
    'mm.tf32_8192': lambda: tf32('matrix'),
    'mm.fp32_10240': lambda: get('matrix10240') @ get('matrix10240'),
    'mm.tf32_10240': lambda: tf32('matrix10240'),
    'mm.bf16_8192': lambda: get('matrix16') @ get('matrix16'),
    'mm.f32_64.queued': lambda: queued(lambda: get('matrix64') @ get('matrix64')),
    'mm.f32_256.queued': lambda: queued(lambda: get('matrix256') @ get('matrix256')),
    'mm.bf16_1024': lambda: get('matrix1024') @ get('matrix1024'),
    'mm.bf16_1024.queued': lambda: queued(lambda: get('matrix1024') @ get('matrix1024')),
    'mm.bmm_bf16_256x512': lambda: get('batch') @ get('batch'),
    'mm.gemv_bf16_16384': lambda: get('matrix16384') @ get('vector'),
    'conv.3x3_256_bf16_nhwc': lambda: F.conv2d(get('images_last'), get('filters_last'), padding=1),
    'conv.3x3_256_bf16_nhwc.queued': lambda: queued(
        lambda: F.conv2d(get('images_last'), get('filters_last'), padding=1), 20),
    'conv.3x3_256_bf16_nhwc.fwd_bwd': lambda: with_gradients(get('images_last'), get('filters_last')),
    'conv.3x3_256_bf16_nhwc.fwd_bwd.queued': lambda: queued(
        lambda: with_gradients(get('images_last'), get('filters_last')), 20),
    'conv.3x3_256_bf16_nchw': lambda: F.conv2d(get('images'), get('filters'), padding=1),
    'conv.3x3_256_bf16_nchw.fwd_bwd': lambda: with_gradients(get('images'), get('filters')),
    'attn.sdpa_bf16_4096': lambda: attend(get('rows16'), get('rows16')),
    'attn.sdpa_causal_bf16_4096': lambda: attend(get('rows16'), get('rows16'), is_causal=True),
    'attn.sdpa_padding_bf16_4096': lambda: attend(get('rows16'), get('rows16'), attn_mask=get('padding')),
    'attn.sdpa_grouped_bf16_4096': lambda: attend(get('rows16'), get('few_rows16'), enable_gqa=True),
    'graph.replay_100_tiny': lambda: tiny_graph().replay(),
    'attn.sdpa_bf16_4096.fwd_bwd': lambda: attend_with_gradients(get('rows16')),
}


@functools.cache
def tiny():
    return torch.zeros(16, device=DEVICE)


def eager_tiny():
    for _ in range(100):
        tiny().add_(1)


@functools.cache
def tiny_graph():
    eager_tiny()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        eager_tiny()
    return graph


WALL = {
    'graph.eager_100_tiny': eager_tiny,
}


class Latest:
    """Returns the measured program. That of the previous row is freed before."""

    name, program = None, None

    def run(self, name):
        if self.name != name:
            self.name, self.program = None, None
            gc.collect()
            torch.cuda.empty_cache()
            self.program = GraphedProgram(name) if name.endswith('.graph') else Program(name, DEVICE)
            self.name = name
        self.program.run()


class GraphedProgram(Program):
    """Captures as in PyTorch's notes: after three calls on a side stream, as much as can be captured."""

    def __init__(self, name):
        super().__init__(name, DEVICE, capturable=True)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                super().run()
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            if self.is_captured_whole:
                super().run()
            else:
                self.go_forward_and_back()

    def run(self):
        self.graph.replay()
        if not self.is_captured_whole:
            self.finish_step()


LATEST = Latest()


@functools.cache
def peaks(name):
    """Returns the peak bytes of tensors, and of the allocator, in a new process."""
    torch.cuda.reset_peak_memory_stats()
    for _ in range(20):
        LATEST.run(name)
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()


def warm_up(run, n, seconds=WARM_UP):
    """Calls `run` until the processor's and the GPU's clocks have risen, or fallen again."""
    end = None  # initialisation in the first calls does not count
    while end is None or time.perf_counter() < end:
        for _ in range(n):
            run()
        torch.cuda.synchronize()
        end = end or time.perf_counter() + seconds


def wall(run, n=20, repetitions=9, host=False):
    """Times one of many consecutive calls; host: only until they are all enqueued."""
    warm_up(run, 3)
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        for _ in range(n):
            run()
        if not host:
            torch.cuda.synchronize()
        times.append((time.perf_counter() - start) / n)
        torch.cuda.synchronize()
    return statistics.median(times)


def wait(name):
    """Measures a wait's time beyond the device's work; see bench-cuda.c."""
    part = get('y')[:{'20us': 10_000_000, '150us': 75_000_000, '500us': 250_000_000}[name.split('_')[1]]]
    warm_up(part.neg_, 5)
    times = []
    for _ in range(101):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin = time.perf_counter()
        start.record()
        part.neg_()
        end.record()
        if name.startswith('wait.device'):
            torch.cuda.synchronize()
        elif name.startswith('wait.stream'):
            torch.cuda.current_stream().synchronize()
        else:
            end.synchronize()
        times.append(time.perf_counter() - begin - start.elapsed_time(end) * 1e-3)
    return statistics.median(times)


def measure(run, seconds):
    warm_up(run, 5, seconds)
    times = []
    for _ in range(30):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e-3)
    return statistics.median(times)


def answer(name):
    """Returns the seconds of a call, for peak.* bytes; None for unknown names."""
    if name.startswith('peak.'):
        return peaks(name.removeprefix('peak.').removesuffix('.reserved'))[name.endswith('.reserved')]
    if name.startswith(('train.', 'infer.')):
        return wall(lambda: LATEST.run(name))
    if name.startswith('wait.'):
        return wait(name)
    if name in WALL:
        return wall(WALL[name])
    if name == 'graph.replay_100_tiny.host':
        return wall(lambda: tiny_graph().replay(), n=100, repetitions=21, host=True)
    if name == 'graph.replay_100_tiny.own_stream.host':
        with torch.cuda.stream(torch.cuda.Stream()):
            return wall(lambda: tiny_graph().replay(), n=100, repetitions=21, host=True)
    return measure(CASES[name], SETTLE if name.startswith(HEAVY) else WARM_UP) if name in CASES else None


def main():
    if '--first' in sys.argv:
        torch.ones(16, device=DEVICE)
        torch.cuda.synchronize()
        return
    torch.set_grad_enabled(False)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False
    for line in sys.stdin:
        name = line.strip()
        try:
            value = answer(name)
        except RuntimeError as error:
            print(f'{name}: {error}', file=sys.stderr)
            value = None
        print(f'{name}\t{"none" if value is None else format(value, ".6g")}', flush=True)


if __name__ == '__main__':
    main()
