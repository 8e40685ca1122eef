#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the import makes, and that all else is found however a program asks for it first. Each case is a program of its
own."""

import os
import pathlib
import pickle
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'style'))

import gtorch as torch  # noqa: E402

import tap  # noqa: E402

# Modules that tensors do without.
PARTS = ('nn', 'optim', 'device', 'amp', 'data', 'io', 'func', 'testing', 'backends', 'train')

PENDING = f'''
import sys
found = [name for name in {PARTS} if f'gi.overrides._gtorch_{{name}}' in sys.modules]
'''

VERSION = 'import gi; gi.require_version("GTorch", "1"); '

FEW = {
    'import_alone': 'import gtorch',
    'namespace_alone': f'{VERSION}from gi.repository import GTorch',
    'operations': '''
import gtorch as torch
x = torch.arange(6, dtype=torch.float32).view(2, 3)
assert (x @ x.t() + 1).sum().item() == 87 and torch.zeros(2, dtype=torch.int64).tolist() == [0, 0]
assert x.sort(descending=True)[0].tolist() == [[2, 1, 0], [5, 4, 3]] and torch.multiply(x, 2)[1, 2] == 10
assert x.max(dim=1).indices.tolist() == [2, 2] and len(repr(x)) > 10 and x[0].tolist() == [0, 1, 2]
assert torch.tensor([1, 2]).dtype == torch.int64 and torch.cat([x, x]).shape == (4, 3)
assert not x.is_inference() and not x.requires_grad and x.mean().numpy() == 2.5
try:
    x + torch.ones(4)
except RuntimeError as error:
    assert 'cannot be broadcast' in str(error)
''',
    'gradients': '''
import gtorch as torch
x = torch.ones(3).requires_grad_()
(x * x).sum().backward()
assert x.grad.tolist() == [2, 2, 2]
''',
}

# Python's multiprocessing shares tensors, whichever of the two is imported first.
SHARING = '''
import pickle
x = torch.zeros(2)
for one in (x, torch.nn.Parameter(x)):
    other = pickle.loads(bytes(reduction.ForkingPickler.dumps(one)))
    other.data.fill_(1)
    assert type(other) is type(one) and one.tolist() == [1, 1] and one.is_shared()
'''

WHOLE = {
    'multiprocessing_after': f'import gtorch as torch\nfrom multiprocessing import reduction\n{SHARING}',
    'multiprocessing_before': f'from multiprocessing import reduction\nimport gtorch as torch\n{SHARING}',
    'version': 'import gtorch; assert gtorch.__version__ == gtorch.version.__version__',
    'version_of_the_namespace': f'{VERSION}from gi.repository import GTorch; assert GTorch.__version__',
    'submodule': 'import gtorch.nn as nn; assert nn.Linear(2, 1).weight.shape == (1, 2)',
    'submodule_within': 'import gtorch.optim.lr_scheduler as s; assert s.StepLR.__name__ == "StepLR"',
    'submodule_of_the_namespace': f'{VERSION}from gi.repository.GTorch.nn import functional as F; assert F.relu',
    'from_submodule': 'from gtorch.nn.utils.rnn import pad_sequence; from gtorch.utils.data import DataLoader',
    'attribute': 'import gtorch; assert gtorch.nn.functional.relu(gtorch.ones(1)).item() == 1',
    'name_of_the_package': 'from gtorch import no_grad, save, vmap, finfo, device, __version__; assert device("cpu")',
    'class_of_the_namespace': f'{VERSION}from gi.repository import GTorch as g; assert issubclass(g.Adam, g.Optimizer)',
    'names': 'import gtorch; assert {"nn", "Module", "relu", "autocast", "Adam", "cuda"} <= set(dir(gtorch))',
    'names_of_the_namespace': f'{VERSION}from gi.repository import GTorch; assert "save" in dir(GTorch)',
    'help': 'import gtorch, pydoc; assert "Linear" in pydoc.render_doc(gtorch.nn.Linear)',
    'device_of_a_tensor': '''
import gtorch as torch
place = torch.ones(1).device
assert isinstance(place, torch.device) and place.type == 'cpu' and place == torch.device('cpu')
''',
    'subclass': '''
import gtorch as torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(2, 2)
    def forward(self, x):
        return self.inner(x)
assert Net()(torch.ones(1, 2)).shape == (1, 2)
''',
    'part_by_itself': 'import gtorch; from gi.overrides import _gtorch_groups, _gtorch_unpickle',
    'part_first': f'{VERSION}from gi.overrides import _gtorch_ops; import gtorch.nn',
    'results': 'import gtorch; assert gtorch.return_types.sort._fields == ("values", "indices")',
    'cycles_of_hooks': '''
import gc, weakref
import gtorch as torch
x = torch.ones(1, requires_grad=True)
class Token:
    pass
token = Token()
x.register_hook(lambda grad, x=x, token=token: None)
there = weakref.ref(token)
del x, token
gc.collect()
assert there() is None or not getattr(torch, 'finds_cycles', False)
''',
    'threads': '''
import threading
import gtorch as torch
found, start = [], threading.Barrier(8)
def look(name):
    start.wait()
    found.append(getattr(torch, name))
names = ('Module', 'nn', 'Adam', 'device', 'no_grad', 'Linear', 'cuda', 'relu')
threads = [threading.Thread(target=look, args=(name,)) for name in names]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(60)
assert len(found) == 8 and torch.Module is torch.nn.Module and issubclass(torch.Linear, torch.Module)
assert {*found} == {getattr(torch, name) for name in names}
''',
}


def run(program):
    ended = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True, timeout=100)
    assert ended.returncode == 0 and not ended.stderr, ended.stderr


for _name, _program in FEW.items():
    if os.environ.get('GTORCH_NO_MIXIN') and 'alone' not in _name:
        continue  # PyGObject looks for the classes of arguments
    tap.add(f'{_name}_needs_few_modules', run, f'{_program}\n{PENDING}\nassert not found, found')
for _name, _program in WHOLE.items():
    tap.add(f'{_name}_may_come_first', run, f'{_program}\n{PENDING}\nassert "gtorch" in sys.modules or found')


@tap.case
def what_the_import_lacks_is_named():
    run("""
import os, sys
for missing in ('gi', 'gi._gi'):
    sys.modules[missing] = None
    try:
        import gtorch
    except ImportError as error:
        assert 'PyGObject' in str(error) and sys.executable in str(error), error
    del sys.modules[missing]
import gi
def refuse(namespace, version):
    raise ValueError(f'Namespace {namespace} not available for version {version}')
gi.require_version = refuse
try:
    import gtorch
except ImportError as error:
    assert 'GTorch' in str(error) and 'GI_TYPELIB_PATH' in str(error), error
else:
    assert False
""")


@tap.case
def pickles_may_come_first():
    x = torch.ones(2, 3)
    for value in (x, torch.nn.Linear(2, 1), torch.optim.SGD([x], 0.1), torch.float32, x.sort(), torch.device('cpu')):
        data, name = pickle.dumps(value), type(value).__name__
        run(f'import pickle, gtorch; value = pickle.loads({data!r}); assert type(value).__name__ == {name!r}')


tap.main()
