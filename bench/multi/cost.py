#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Predicts how long groups of GPUs take, from 2 to 16,384 of them, and compares with what was measured.

    cost.py [--check] [--scale] [--gpus N] [--bytes N]

docs/cost-of-many-gpus.md derives the formulae. Without options it prints both tables. --check ends with an error
if a prediction is further from its measurement than the bound beside it; the tests run that. Only the standard library
is used; bench/multi/multi.py prints the predictions beside its measurements.

Units: seconds, bytes, bytes a second.
"""

import argparse
import dataclasses
import math
import sys

MIB = 2**20


@dataclasses.dataclass(frozen=True)
class Machine:
    """Hosts with GPUs. What is not measured says so."""

    gpus: int = 8                 # of a host
    call: float = 12.9e-6         # of an operation of 4 bytes on two GPUs: measured
    reduce: float = 300e9         # bus bandwidth of all_reduce within a host: from 16 MiB to 1 GiB, measured
    gather: float = 233e9         # of all_gather and reduce_scatter: measured
    broadcast: float = 352e9      # measured
    copy: float = 392e9           # from one GPU to another: measured
    hop: float = 1.5e-6           # from one GPU to the next of a ring: assumed
    network_hop: float = 6e-6     # from a host to another one: assumed
    network: float = 45e9         # of each GPU, 90 % of 400 Gb/s: assumed
    busy: float = 0.95            # the share of a GPU that an exchange takes from what computes: fitted, see the page

    def hosts(self, n):
        """How many hosts n GPUs are on."""
        return max(1, math.ceil(n / self.gpus))


H200 = Machine()


# --- collectives ---


def ring_all_reduce(machine, n, size):
    """One ring through all GPUs: 2 (n - 1) steps, in each of which every GPU sends size / n bytes."""
    hosts = machine.hosts(n)
    bandwidth = machine.reduce
    if hosts > 1:
        bandwidth = min(bandwidth, machine.gpus * machine.network)
    within = 2 * (n - hosts) * machine.hop if n > 2 else 0
    between = 2 * hosts * machine.network_hop if hosts > 1 else 0
    return machine.call + within + between + 2 * (n - 1) / n * size / bandwidth


def tree_all_reduce(machine, n, size):
    """Two binary trees of hosts, each of which has half of the bytes, and a chain within each host."""
    hosts = machine.hosts(n)
    bandwidth = machine.reduce
    if hosts > 1:
        bandwidth = min(bandwidth, machine.gpus * machine.network)
    depth = math.ceil(math.log2(hosts)) if hosts > 1 else 0
    chain = 2 * (min(n, machine.gpus) - 1) * machine.hop if n > 2 else 0
    # within one host there is nothing but the chain, through which all bytes go in both directions
    volume = 2 * size if hosts > 1 else 2 * size * (n - 1) / n
    return machine.call + chain + 2 * depth * machine.network_hop + volume / bandwidth


def two_level_all_reduce(machine, n, size):
    """reduce_scatter within hosts, all_reduce of each GPU's part between them, all_gather within hosts."""
    hosts, g = machine.hosts(n), min(n, machine.gpus)
    if hosts == 1:
        return ring_all_reduce(machine, n, size)
    within = 2 * ((g - 1) * machine.hop + (g - 1) / g * size / machine.gather)
    depth = math.ceil(math.log2(hosts))
    between = 2 * depth * machine.network_hop + 2 * (hosts - 1) / hosts * size / g / machine.network
    return machine.call + within + between


ALGORITHMS = {'ring': ring_all_reduce, 'tree': tree_all_reduce, 'two levels': two_level_all_reduce}


def all_reduce(machine, n, size):
    """That of the algorithm that takes the least time, as NCCL chooses."""
    return 0 if n == 1 else min(function(machine, n, size) for function in ALGORITHMS.values())


def all_gather(machine, n, size):
    """All GPUs get size bytes, to which each contributes size / n."""
    if n == 1:
        return 0
    hosts = machine.hosts(n)
    bandwidth = machine.gather if hosts == 1 else min(machine.gather, machine.gpus * machine.network)
    steps = (n - hosts) * machine.hop * (n > 2) + (hosts > 1) * hosts * machine.network_hop
    return machine.call + steps + (n - 1) / n * size / bandwidth


reduce_scatter = all_gather  # the same steps the other way round


def broadcast(machine, n, size):
    """A pipeline through all GPUs."""
    if n == 1:
        return 0
    hosts = machine.hosts(n)
    bandwidth = machine.broadcast if hosts == 1 else min(machine.broadcast, machine.gpus * machine.network)
    steps = (n - hosts) * machine.hop * (n > 2) + (hosts > 1) * hosts * machine.network_hop
    return machine.call + steps + size / bandwidth


def copy(machine, size):
    """From one GPU of a host to another one."""
    return size / machine.copy


COLLECTIVES = {'all_reduce': all_reduce, 'all_gather_into_tensor': all_gather,
               'reduce_scatter_tensor': reduce_scatter, 'broadcast': broadcast}


# --- steps ---


@dataclasses.dataclass(frozen=True)
class Model:
    """A training step on one GPU."""

    name: str
    step: float           # seconds
    gradients: tuple      # bytes of each gradient, in the order in which the backward pass has them
    backward: float = 0.6 # the share of the step from the first gradient to the last

    def total(self):
        """The bytes of all gradients."""
        return sum(self.gradients)


def gpt2_small(step):
    """124 million parameters in float32. The table of words is also the last layer, and its gradient comes last."""
    block = [4 * n for n in (768 * 3072, 3072, 3072 * 768, 768, 768 * 768, 768, 768 * 2304, 2304, 4 * 768)]
    return Model('GPT-2 small', step, (*(block * 12), 4 * 1024 * 768, 4 * 50304 * 768))


def resnet50(step):
    """25.6 million parameters in float32; half of them are in the last of four stages."""
    stages = (2048 * 1000, *[15 * 10**6 / 6] * 6, 7.1 * 10**6, 1.2 * 10**6, 0.2 * 10**6)
    return Model('ResNet-50', step, tuple(int(4 * n) for n in stages))


def buckets_of(gradients, size=25 * MIB, first=MIB):
    """Groups gradients, in their order, as DistributedDataParallel does: a bucket ends when it has `size` bytes."""
    found, own, limit = [], 0, first
    for n in gradients:
        own += n
        if own >= limit:
            found.append(own)
            own, limit = 0, size
    return [*found, own] if own else found


def ddp_step(machine, model, n):
    """Buckets are sent one after the other, each when its gradients are there; the step ends when the last has come.
    While an exchange goes on, the GPU computes more slowly."""
    if n == 1:
        return model.step
    backward, total = model.backward * model.step, model.total()
    before = model.step * (1 - model.backward) * 0.85  # the forward pass; the optimizer takes the rest
    ready = done = 0.0
    sending = 0.0
    for bucket in buckets_of(model.gradients):
        ready += backward * bucket / total
        took = all_reduce(machine, n, bucket)
        sending += took
        done = max(done, ready) + took
    slower = machine.busy * min(sending, backward)
    return before + max(backward + slower, done + slower) + model.step * (1 - model.backward) * 0.15


def sharded_step(machine, model, n, units=12, ahead=True):
    """Parameters are gathered for each unit in both passes, and gradients reduced. With `ahead` that of the next unit
    goes on while this one computes."""
    if n == 1:
        return model.step
    size = model.total() / units
    gather, reduce = all_gather(machine, n, size), reduce_scatter(machine, n, size)
    forward = model.step * (1 - model.backward) * 0.85 / units
    backward = model.backward * model.step / units
    if ahead:
        passes = gather + units * max(forward, gather) + gather + units * max(backward, gather + reduce) + reduce
    else:
        passes = units * (forward + gather + backward + gather + reduce)
    slower = machine.busy * units * min(2 * gather + reduce, forward + backward)
    return passes + slower + model.step * (1 - model.backward) * 0.15 / n


def replicated_step(machine, model, n, units=12):
    """The same on meshes of two dimensions: parts are spread over the GPUs of a host, and replicas average them."""
    g = min(n, machine.gpus)
    hosts = machine.hosts(n)
    within = sharded_step(machine, model, g, units)
    if hosts == 1:
        return within
    part = model.total() / units / g
    depth = math.ceil(math.log2(hosts))
    # each GPU has a NIC of its own, and its part goes through that
    between = machine.call + 2 * depth * machine.network_hop + 2 * (hosts - 1) / hosts * part / machine.network
    backward = model.backward * model.step / units
    exposed = units * max(0, between - backward) + between
    return within + exposed + machine.busy * units * min(between, backward)


def predict(row, n, alone=None, machine=H200):
    """What multi.py prints beside a row: seconds, or None for a row that the model says nothing about."""
    name, size = row['name'], row.get('bytes')
    if name in COLLECTIVES and size:
        return COLLECTIVES[name](machine, n, size)
    if name.startswith('peer copy') and size:
        return copy(machine, size)
    if name.startswith('broadcast of a module') and size:
        return broadcast(machine, n, size)
    make = {'gpt2': gpt2_small, 'resnet50': resnet50}.get(name.split('-')[0])
    if make is None or alone is None or '-alone' in name:
        return None
    return (sharded_step if '-fsdp' in name else ddp_step)(machine, make(alone), n)


# --- tables ---

# Operation, GPUs, bytes, seconds, and the most that a prediction may be away; docs/benchmarks.md has the points.
MEASURED = [
    ('all_reduce', 2, 4, 12.9e-6, 0.01),
    ('all_reduce', 2, 64 * 1024, 13.5e-6, 0.05),
    ('all_reduce', 2, MIB, 14.4e-6, 0.15),
    ('all_reduce', 2, 16 * MIB, 76.8e-6, 0.12),
    ('all_reduce', 2, 256 * MIB, 915e-6, 0.05),
    ('all_reduce', 2, 1024 * MIB, 3292e-6, 0.1),
    ('all_gather_into_tensor', 2, 256 * MIB, 128 * MIB / 236e9, 0.05),
    ('reduce_scatter_tensor', 2, 256 * MIB, 128 * MIB / 230e9, 0.05),
    ('broadcast', 2, 256 * MIB, 256 * MIB / 352e9, 0.05),
]
STEPS = [  # what, the step of one GPU, GPUs, the step that was measured, the bound
    ('GPT-2 small, DistributedDataParallel, GTorch', 41.95e-3, 2, 44.1e-3, 0.03),
    ('the same, captured', 40.8e-3, 2, 43.4e-3, 0.03),
    ('the same, PyTorch', 42.7e-3, 2, 45.1e-3, 0.03),
]
COUNTS = [8, 64, 512, 4096, 16384]


STEP_KINDS = [('DistributedDataParallel', ddp_step), ('fully_shard', sharded_step),
              ('fully_shard with replicas', replicated_step)]


def text(seconds):
    """With three figures."""
    return f'{seconds * 1e6:.3g} us' if seconds < 1e-3 else f'{seconds * 1e3:.3g} ms'


def size_text(size):
    """In the largest unit."""
    for unit, n in (('GiB', 2**30), ('MiB', MIB), ('KiB', 1024)):
        if size >= n:
            return f'{size / n:g} {unit}'
    return f'{size} B'


def print_check(out):
    """Returns whether all predictions are within their bounds."""
    good = True
    print('| measured on H200s | GPUs | measured | predicted | |\n|---|---|---|---|---|', file=out)
    rows = [(f'{name}, {size_text(size)}', n, seconds, COLLECTIVES[name](H200, n, size), bound)
            for name, n, size, seconds, bound in MEASURED]
    rows += [(name, n, seconds, ddp_step(H200, gpt2_small(alone), n), bound)
             for name, alone, n, seconds, bound in STEPS]
    for name, n, seconds, predicted, bound in rows:
        error = predicted / seconds - 1
        good = good and abs(error) <= bound
        print(f'| {name} | {n} | {text(seconds)} | {text(predicted)} | {error:+.0%} |', file=out)
    return good


def print_scale(out, size=256 * MIB):
    """From 8 GPUs to 16,384."""
    print(f'| all_reduce of {size_text(size)} | ' + ' | '.join(f'{n:,}' for n in COUNTS) + ' |', file=out)
    print('|---' * (len(COUNTS) + 1) + '|', file=out)
    for name, function in (*ALGORITHMS.items(), ('the least', all_reduce)):
        print(f'| {name} | ' + ' | '.join(text(function(H200, n, size)) for n in COUNTS) + ' |', file=out)
    least = [text(all_reduce(H200, n, MIB)) for n in COUNTS]
    print(f'| the least, {size_text(MIB)} | ' + ' | '.join(least) + ' |', file=out)
    for make, alone in ((gpt2_small, 41.95e-3), (resnet50, 27.6e-3)):
        model = make(alone)
        for name, step in STEP_KINDS:
            found = [model.step / step(H200, model, n) for n in COUNTS]
            print(f'| {model.name}, {name}: efficiency | ' + ' | '.join(f'{one:.0%}' for one in found) + ' |', file=out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--check', action='store_true')
    parser.add_argument('--scale', action='store_true')
    parser.add_argument('--gpus', type=int)
    parser.add_argument('--bytes', type=int, default=256 * MIB)
    args = parser.parse_args()
    if args.gpus is not None:
        if args.gpus < 1 or args.bytes < 1:
            parser.error('--gpus and --bytes are 1 or more')
        for name, function in COLLECTIVES.items():
            print(f'{name}, {size_text(args.bytes)}, {args.gpus} GPUs: {text(function(H200, args.gpus, args.bytes))}')
        return
    both = not args.check and not args.scale
    good = print_check(sys.stdout) if args.check or both else True
    if both:
        print()
    if args.scale or both:
        print_scale(sys.stdout, args.bytes)
    if not good:
        sys.exit('a prediction is further from its measurement than its bound')


if __name__ == '__main__':
    main()
