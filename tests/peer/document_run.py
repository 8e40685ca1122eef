# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs one program out of a text, which stands on standard input, in this process. The first argument is the package.

What the program uses and does not make itself is supplied: a model, data, a stream. The last line of the output is
`@@ RESULT TEXT`.
"""

import ast
import builtins
import importlib
import os
import re
import socket
import sys
import traceback

# What is supplied for names that a program does not define: expressions, which may use further ones of these names.
PLACEHOLDERS = {
    'DistributedDataParallel': 'ddp(torch)',
    'MyModel': 'lambda: torch.nn.Linear(8, 4)',
    'Network': 'lambda: torch.nn.Linear(8, 4)',
    'args': "__import__('argparse').Namespace(device=torch.device('cuda'))",
    'a': 'torch.zeros(4, 3)',
    'chain': "__import__('itertools').chain",
    'clf': 'MyModel()',
    'criterion': 'torch.nn.MSELoss()',
    'cuda_work': 'lambda: model(input)',
    'dataloader': '[(input.cpu(), target.cpu()) for _ in range(2)]',
    'dataset': 'dataloader',
    'dev': "'cuda:0'",
    'device': "torch.device('cuda' if torch.cuda.is_available() else 'cpu')",
    'g': 'torch.cuda.CUDAGraph()',
    'g1_workload': 'lambda x: x * 2',
    'g2_workload': 'lambda x: x + 1',
    'input': "torch.randn(16, 8, device='cuda')",
    'input_tensor': 'input',
    'inputs': 'input',
    'labels': 'target',
    'loss': 'on_a_stream(lambda: loss_fn(model(input), target))',
    'loss_fn': 'torch.nn.MSELoss()',
    'loss_function': 'torch.nn.MSELoss()',
    'model': 'MyModel().cuda()',
    'myNet': 'model',
    'myNetwork': 'MyModel',
    'net': 'model',
    'nn': 'torch.nn',
    'num_epochs': '2',
    'on_a_stream': 'On(torch)',
    'optimizer': 'torch.optim.SGD(model.parameters(), lr=0.01)',
    'os': "__import__('os')",
    'parallel_net': 'torch.nn.DataParallel(model)',
    'part': 'lambda: torch.nn.Linear(8, 8)',
    'predictions': 'model(input)',
    'real_data_1': "torch.ones(4, device='cuda')",
    'real_data_2': "torch.ones(4, device='cuda')",
    's': 'torch.cuda.Stream()',
    'scaler': "torch.amp.GradScaler('cuda')",
    'static_in_1': "torch.zeros(4, device='cuda')",
    'static_in_2': "torch.zeros(4, device='cuda')",
    'static_input': 'input',
    'static_target': 'target',
    't1': "torch.zeros(2, device='cuda')",
    'target': "torch.randn(16, 4, device='cuda')",
    'tensor_cpu': 'torch.randn(4, 4)',
    'train_loader': '[torch.randn(2) for _ in range(2)]',
    'use_grads': 'lambda: [parameter.grad * 2 for parameter in model.parameters()]',
    'x': 'torch.tensor([1.0, 2.0, 3.0], device=device)',
}
# Some programs end in the middle, and what comes behind them is run as well.
AFTER = {'model_parallel': 'model_parallel()(torch.randn(2, 8)).sum().backward()'}
# Where a text uses another model than its neighbours.
OTHERS = {'x': {'model': 'torch.nn.Linear(3, 1).to(device)'}}
SIZES = 16  # by which --small divides numbers from LARGE on
LARGE = 640
# Parts of the package that a program needs, by what tells so.
PARTS = {
    r'\bdistributed\b': 'distributed',
    r'\bDistributedDataParallel\b': 'nn.parallel.DistributedDataParallel',
    r'\bprofiler\b': 'profiler',
    r'\butils\.data\b': 'utils.data',
    r'\btorch\.multiprocessing\b': 'multiprocessing',
    r'\bDataParallel\b': 'nn.DataParallel',
}
# Errors of the texts, which PyTorch has no less.
FAULTS = {
    r'^a = t1\.get_device\(\)[\s\S]*\ba\.shape': 'the text takes the shape of a number, and PyTorch raises, too',
}
# An argument under a name that PyTorch has not, a sum of generators, a name that is nowhere defined, and dots.
NAMES = {'gpu_ids=': 'device_ids=', '.parameters() +': '.parameters(),', 'loss_fn(tmp, y)': 'loss_fn(tmp, target)',
         'init_process_group(...)': "init_process_group('nccl')"}


class On:
    """Calls functions on a stream beside the current one, which has done its work before."""

    def __init__(self, torch):
        self._cuda, self._stream = torch.cuda, torch.cuda.Stream()

    def __call__(self, call):
        self._stream.wait_stream(self._cuda.current_stream())
        with self._cuda.stream(self._stream):
            return call()


def launch_alone():
    """Sets the variables of a launcher for the only process of a job."""
    with socket.socket() as one:
        one.bind(('127.0.0.1', 0))
        port = one.getsockname()[1]
    names = {'RANK': 0, 'WORLD_SIZE': 1, 'LOCAL_RANK': 0, 'LOCAL_WORLD_SIZE': 1, 'MASTER_PORT': port}
    os.environ.update({name: str(value) for name, value in names.items()}, MASTER_ADDR='127.0.0.1')


def ddp(torch):
    """The class, in a job that has its group."""
    importlib.import_module(f'{torch.__name__}.distributed').init_process_group('nccl')
    return torch.nn.parallel.DistributedDataParallel


def loaded(code):
    """The names that a program uses, and is not the first to define."""
    names = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            names.append(node.id)
    return dict.fromkeys(names)


def supply(space, names, own):
    """Makes what is missing in @space for these names."""
    for name in names:
        if name in space or name not in PLACEHOLDERS:
            continue
        text = own.get(name) or PLACEHOLDERS[name]
        supply(space, loaded(text), own)
        space[name] = eval(text, space)


def missing_part(code, torch):
    """The first part of the package that the program needs and that there is not."""
    for pattern, name in PARTS.items():
        if not re.search(pattern, code):
            continue
        try:
            importlib.import_module(f'{torch.__name__}.{name}')
        except ImportError:
            owner = torch
            for part in name.split('.'):
                owner = getattr(owner, part, None)
            if owner is None:
                return name
    return None


def adapt(code, package, small):
    """The program for this package: its imports, and with @small its numbers."""
    if package != 'torch':
        code = re.sub(r'^(\s*)import torch$', rf'\1import {package} as torch', code, flags=re.M)
        code = re.sub(r'^(\s*)import torch\.', rf'\1import {package}.', code, flags=re.M)
        code = re.sub(r'^(\s*)from torch\b', rf'\1from {package}', code, flags=re.M)
    for wrong, name in NAMES.items():
        code = code.replace(wrong, name)
    if small:
        code = re.sub(r'(?<![\w.:])\d{3,}(?![\w.])', lambda m: _smaller(int(m[0])), code)
    return code


def _smaller(number):
    return str(number // SIZES if number >= LARGE else number)


def main():
    package, small = sys.argv[1], '--small' in sys.argv
    sys.argv[1:] = []
    code = adapt(sys.stdin.read(), package, small)
    torch = importlib.import_module(package)
    for pattern, says in FAULTS.items():
        if re.search(pattern, code, re.M):
            return 'skipped', says
    names = [name for name in loaded(code) if name != 'torch']
    part = missing_part(f'{code} {" ".join(PLACEHOLDERS.get(name, "") for name in names)}', torch)
    if part is not None:
        return 'skipped', f'needs {part}'
    space = {'__name__': '__main__', '__builtins__': builtins, 'torch': torch, 'On': On, 'ddp': ddp}
    own = OTHERS['x'] if re.search(r'\bmodel\(x\)|= x\.to\(device\)\nmodel', code) else {}
    if re.search('distributed', f'{code} {names}', re.I):
        launch_alone()
    try:
        supply(space, names, own)
        for one in range(torch.cuda.device_count()):
            torch.cuda.synchronize(one)  # a program that is wrong is so by itself
        exec(compile(code, '<document>', 'exec'), space)
        for name, text in AFTER.items():
            if name in space:
                exec(text, space)
        for one in range(torch.cuda.device_count()):
            torch.cuda.synchronize(one)
    except Exception as error:
        traceback.print_exc()
        line = next((t.lineno for t in traceback.extract_tb(error.__traceback__) if t.filename == '<document>'), 0)
        text = ' '.join(str(error).split())
        return 'failed', f'line {line}: {type(error).__name__}: {text}'
    return 'ok', ''


if __name__ == '__main__':
    result = main()
    sys.stdout.flush()
    print('\n@@', *result, flush=True)
