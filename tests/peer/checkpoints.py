#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""Has PyTorch read what save() writes, and load() what PyTorch writes.

    tests/peer/checkpoints.py --peer PYTHON-WITH-TORCH

Run it by hand, in a shell of meson devenv. Both sides make the same values, write them to a file, and compare what
they read of the other one's. PyTorch reads with weights_only, and all again without, where it also takes what that
mode refuses, and maps the file.
"""

import argparse
import collections
import importlib
import pathlib
import subprocess
import sys
import tempfile

PLAIN = {
    'none': None, 'flags': (True, False), 'small': [0, 255, 256, 65535, 65536, -1], 'wide': [2**40, -2**63, 2**63 - 1],
    'huge': [2**63, -2**70], 'decimals': [0.5, -1e300, float('inf')], 'text': 'nä\0m \N{SNOWMAN}',
    'bytes': [b'', b'\0\xffabc'], 'tuple': ((), (1,), (1, (2, 3))), 'counter': collections.Counter('aab'),
    'order': collections.OrderedDict([('z', 1), ('a', 2)]), 'keys': {1: 'x', (2, 'y'): 3.5}, 'set': {1, 'x', (2, 3)},
}
RICH = {'complex': 1 - 2j, 'frozen': frozenset([1, 2]), 'immense': -2**3000}  # what weights_only does not take
DTYPES = ('bool', 'uint8', 'int8', 'int16', 'int32', 'int64', 'float16', 'bfloat16', 'float32', 'float64', 'complex64',
          'complex128')


def make(torch):
    base = torch.arange(12.0).reshape(3, 4)
    node = [1]
    node.append(node)
    return {
        'base': base, 'turned': base.t(), 'part': base[1:, ::2], 'again': base, 'node': node,
        'kinds': {name: torch.tensor([1, 0, 3]).to(getattr(torch, name)) for name in DTYPES},
        'parameter': torch.nn.Parameter(torch.ones(2)),
        'frozen': torch.nn.Parameter(torch.ones(1), requires_grad=False),
        'leaf': torch.ones(2, requires_grad=True), 'empty': torch.empty(0, 3), 'number': torch.tensor(5),
        'size': torch.ones(2, 3).shape, 'dtype': torch.float16, 'device': torch.device('cpu'),
        'net': torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3)).state_dict(),
    }


def check(torch, found, rich):
    expected = make(torch)
    for name, value in {**PLAIN, **(RICH if rich else {})}.items():
        assert found[name] == value and type(found[name]) is type(value), (name, found[name])
    made = found['made']
    for name in ('base', 'turned', 'part', 'parameter', 'frozen', 'leaf', 'empty', 'number'):
        one, other = made[name], expected[name]
        assert torch.equal(one, other) and one.stride() == other.stride(), name
        assert one.requires_grad == other.requires_grad and isinstance(one, torch.nn.Parameter) == (
            isinstance(other, torch.nn.Parameter)), name
    for name in DTYPES:
        assert made['kinds'][name].dtype == getattr(torch, name), name
        assert torch.equal(made['kinds'][name], expected['kinds'][name]), name
    assert made['again'] is made['base'] and made['node'][1] is made['node']
    assert made['turned'].data_ptr() == made['base'].data_ptr() == made['part'].data_ptr() - 16
    assert made['size'] == expected['size'] and made['dtype'] is torch.float16 and made['device'] == torch.device('cpu')
    assert list(made['net']) == list(expected['net'])
    torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3)).load_state_dict(made['net'])


def side(module, folder):
    torch = importlib.import_module(module)
    other = 'torch' if module == 'gtorch' else 'gtorch'
    values = {**PLAIN, 'made': make(torch)}
    if not (folder / f'{other}.pt').exists():
        torch.save(values, folder / f'{module}.pt')
        torch.save({**values, **RICH}, folder / f'{module}-rich.pt')
        return
    check(torch, torch.load(folder / f'{other}.pt', weights_only=True), False)
    check(torch, torch.load(folder / f'{other}-rich.pt', weights_only=False), True)
    check(torch, torch.load(folder / f'{other}-rich.pt', weights_only=False, mmap=True), True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--peer')
    parser.add_argument('--side', nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.side:
        side(args.side[0], pathlib.Path(args.side[1]))
        return
    sides = [('gtorch', sys.executable), ('torch', args.peer)]
    for order in (sides, sides[::-1]):
        with tempfile.TemporaryDirectory() as folder:
            for module, python in order:
                subprocess.run([python, __file__, '--side', module, folder], check=True)
        print(f'{order[1][0]} reads what {order[0][0]} has written')


if __name__ == '__main__':
    main()
