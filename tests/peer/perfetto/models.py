# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Records a few steps of the examples' models: the traces, and beside each what it must have, as the profiler lists
its events and as launches were counted by themselves."""

import collections
import gzip
import importlib.util
import json
import pathlib
import sys

import gtorch as torch
from gtorch.profiler import ProfilerActivity, profile, record_function, schedule

from launches import make_counter

ROOT = pathlib.Path(__file__).resolve().parents[3]
WARMUP, ACTIVE = 5, 3  # a graph is captured in the fourth step, and products of matrices choose kernels in the first

sys.path.insert(0, str(ROOT / 'bench' / 'models'))
import sides  # noqa: E402


class Digits:
    """The convolutional network of examples/python/digits.py, with a loader, a stream of the CPU, and ranges that
    overlap."""

    def __init__(self, small):
        path = ROOT / 'examples' / 'python' / 'digits.py'
        spec = importlib.util.spec_from_file_location('example_digits', path)
        self.example = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.example)

    def brighten(self, batch):
        """Computes in a stream of the CPU, whose thread has its own track."""
        with self.side:
            images = batch[0] * 1.1
        self.side.synchronize()
        return images, batch[1]

    def start(self, device):
        self.side = torch.Stream('cpu')
        model, loss_of = self.example.make_model().to(device), torch.nn.CrossEntropyLoss()
        adam = torch.optim.Adam(model.parameters(), lr=2e-3)
        images, labels = self.example.load_digits(self.example.DATA)
        data = torch.utils.data.TensorDataset(images, labels)
        batches = iter(torch.utils.data.DataLoader(data, batch_size=self.example.BATCH, shuffle=True))

        def step(_number):
            first, second = record_function('first task'), record_function('second task')
            first.__enter__()
            batch, truth = (part.to(device) for part in self.brighten(next(batches)))
            second.__enter__()
            loss = loss_of(model(batch), truth)
            first.__exit__(None, None, None)
            adam.zero_grad()
            loss.backward()
            second.__exit__(None, None, None)
            adam.step()
            return loss.item()

        return step


class OfExamples:
    """A model of examples/models."""

    def __init__(self, name, small, is_graph=False):
        self.side = sides.MODELS[name](torch, sides.load_example(sides.MODELS[name].file), small)
        self.is_graph = is_graph
        if name == 'gpt2' and not small:
            self.side.sizes, self.side.batch = self.side.example.SIZES['small'], 2

    def start(self, device):
        batches = self.side.draw_batches(WARMUP + ACTIVE)
        model = self.side.make_model().to(device)
        if self.is_graph:
            side = self.side
            training = side.example.Training(model, side.batch, side.sizes[3], device, graph=True)
            return lambda number: training.step(batches['tokens'][number])
        step = self.side.start(model, device)
        return lambda number: step({name: part[number] for name, part in batches.items()})


MODELS = {
    'digits': Digits,
    'resnet18': lambda small: OfExamples('resnet18', small),
    'gpt2': lambda small: OfExamples('gpt2', small),
    'gpt2-graph': lambda small: OfExamples('gpt2', small, True),  # of GPUs alone
}


def record(model, device):
    """The profile of some steps, and what was launched meanwhile; None: no GPU."""
    torch.manual_seed(1)
    step, counter, launched = model.start(device), None, None
    wanted = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * (device.type == 'cuda')
    with profile(activities=wanted, schedule=schedule(wait=0, warmup=WARMUP, active=ACTIVE, repeat=1),
                 record_shapes=True, profile_memory=True, with_stack=True) as prof:  # fmt: skip
        for number in range(WARMUP + ACTIVE):
            if number == WARMUP and device.type == 'cuda':
                counter = make_counter()
            if counter is not None and number == WARMUP:
                counter.begin()
            with record_function('train', f'number={number}'):
                step(number)
            if device.type == 'cuda' and number in (WARMUP - 1, WARMUP + ACTIVE - 1):
                torch.cuda.synchronize()  # what a former step has launched would be in the next ones
            if counter is not None and number == WARMUP + ACTIVE - 1:
                launched = counter.end()
            prof.step()
    return prof, launched


def count_memory(prof, path, device):
    """How often storages got and gave back memory, as the timeline of memory lists it."""
    prof.export_memory_timeline(path, device)
    with gzip.open(path, 'rt') as file:
        found = len(json.load(file))
    pathlib.Path(path).unlink()
    return found


def expect(prof, launched, folder, devices):
    """What the trace must have."""
    events = prof.events()
    names, times = collections.defaultdict(collections.Counter), collections.Counter()
    rows = [(event, event.activity_type) for event in events]
    for event, kind in rows:
        if kind != 'cpu_instant_event':
            names[kind][event.trace_name] += 1
            times[kind] += event.time_range.elapsed_us()
    calls = {event.id for event, kind in rows if kind == 'cuda_driver'}
    of_gpu = [event for event, kind in rows if kind in ('kernel', 'gpu_memcpy', 'gpu_memset')]
    return {
        'names': names,
        'times': times,
        'memory': sum(count_memory(prof, f'{folder}/memory.raw.json.gz', device) for device in devices),
        'arrows': {
            'fwdbwd': sum(event.fwd_thread not in (0, None) for event, _kind in rows),
            'ac2g': sum(event.id in calls for event in of_gpu),
            'enqueued': sum(event.is_async for event, kind in rows if kind == 'cpu_op'),
        },
        'launched': launched,
        'message': prof.gpu_message,
    }


def write_traces(folder, args):
    """The traces of the models that were chosen by the arguments of the program."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in args.models or MODELS:
        if name == 'gpt2-graph' and args.device == 'cpu':
            continue
        prof, launched = record(MODELS[name](not args.full), torch.device(args.device))
        expected = expect(prof, launched, folder, ['cpu'] + ['cuda:0'] * (args.device == 'cuda'))
        prof.export_chrome_trace(folder / f'{name}.trace.json.gz')
        (folder / f'{name}.expected.json').write_text(json.dumps(expected))
        print(f'{name}: {sum(sum(one.values()) for one in expected["names"].values())} events', flush=True)
        if args.table:
            print(prof.key_averages().table(sort_by=f'self_{args.device}_time_total', row_limit=8))
