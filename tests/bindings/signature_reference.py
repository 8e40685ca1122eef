#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes docs/data/pytorch-signatures.json: names, order and defaults of the arguments of PyTorch's functions.

    signature_reference.py FOUND.json    with a Python that has PyTorch

FOUND.json has what was asked of PyTorch: its version, under `aten` the arguments of operations as torch.jit knows them
(name, type, default, by keyword only?), and under `python` those of functions and classes as inspect has them.
"""

import inspect
import json
import pathlib
import re
import sys

import torch

PAGE = pathlib.Path(__file__).resolve().parent.parent.parent / 'docs' / 'data' / 'pytorch-signatures.json'
# What backends and formats that programs do not name have among the names of torch.
OTHERS = re.compile(
    r'cudnn_|miopen_|mkldnn_|fbgemm_|quantize|fake_quant|fused_|q_|sym_|sparse_|native_|dequantize|int_repr|rowwise|'
    r'.*_sparse_|segment_reduce$|.*_vulkan_|import_ir|parse_|merge_type|unify_type|.*coalesce|.*indices_copy$|'
    r'(c|cc|crow|row|col|ccol)_indices|(dense|sparse)_dim|profiler_|is_(vulkan|distributed)|'
    r'[A-Za-z0-9]+(Storage|Tensor)$'
)
MODULES = (
    'torch.nn', 'torch.nn.functional', 'torch.nn.init', 'torch.nn.utils', 'torch.nn.utils.rnn', 'torch.nn.parallel',
    'torch.optim', 'torch.optim.lr_scheduler', 'torch.optim.swa_utils', 'torch.utils.data', 'torch.utils.checkpoint',
    'torch.cuda', 'torch.cuda.memory', 'torch.cuda.nvtx', 'torch.cuda.comm', 'torch.cuda.amp', 'torch.amp',
    'torch.autograd', 'torch.autograd.functional', 'torch.random', 'torch.accelerator', 'torch.signal.windows',
    'torch.func', 'torch.profiler', 'torch.distributed',
)  # fmt: skip


def text(arguments):
    """Writes arguments (name, default or None, kind of inspect's) as Python does."""
    parts, star = [], False
    for name, default, kind in arguments:
        if name.startswith('_'):
            continue
        default = 'None' if default is not None and default.startswith('<') else default
        if kind == 'VAR_POSITIONAL':
            parts, star = [*parts, f'*{name}'], True
        elif kind == 'VAR_KEYWORD':
            parts.append(f'**{name}')
        else:
            if kind == 'KEYWORD_ONLY' and not star:
                parts, star = [*parts, '*'], True
            parts.append(name if default is None else f'{name}={default}')
    return ', '.join(parts)


def overload(arguments):
    found = []
    for i, (name, kind, default, by_keyword) in enumerate(arguments):
        rest = [one for one in arguments[i:] if not one[3]]
        may_lack = all(one[1].startswith('Optional') or one[2] is not None for one in rest)
        shown = repr(default) if default is not None or (may_lack and kind.startswith('Optional')) else None
        if isinstance(default, str) and default.startswith('['):
            shown = default
        elif name == 'dtype' and default is not None:
            shown = 'torch.int64'
        found.append((name, shown, 'KEYWORD_ONLY' if by_keyword else 'POSITIONAL_OR_KEYWORD'))
    return text(found)


def is_shown(overload):
    """Is it none of those whose results have names, and none of tensors with names?"""
    parts = [part.strip() for part in overload.partition('*,')[2].split(',') if part.strip()]
    return all('=' in part for part in parts) and 'names=' not in overload


def inspected(space, but):
    """The functions of Python that @space has beside @but."""
    found = {}
    for name, value in vars(space).items():
        if name.startswith('_') or name in but or OTHERS.match(name) or not inspect.isfunction(value):
            continue
        if value.__module__.startswith('torch') and 'autocast' not in name:
            given = inspect.signature(value).parameters.values()
            none = inspect.Parameter.empty
            found[name] = [text([(p.name, None if p.default is none else repr(p.default), p.kind.name) for p in given])]
    return found


def operations(aten, space, prefix=''):
    """The operations that are functions of @space, by the names that they have there."""
    found = {}
    for name, overloads in aten.items():
        own = name.removeprefix(prefix)
        if name.startswith(prefix) and not own.startswith('_') and not OTHERS.match(own) and hasattr(space, own):
            texts = sorted({overload(one) for one in overloads})
            found[own] = [text for text in texts if is_shown(text)]
    return found


def own(module, found):
    """The functions and classes of a module of Python's that programs name."""
    space, result = sys.modules.get(module), {}
    listed = getattr(space, '__all__', None)
    for name, entry in found.items():
        value = getattr(space, name, None)
        home = getattr(value, '__module__', None) or ''
        if name.startswith('_') or OTHERS.match(name) or not home.startswith('torch'):
            continue
        if listed is not None and name not in listed and not isinstance(value, type(text)):
            continue
        if home.startswith(('torch._', 'torch.types', 'torch.storage', 'torch.utils._')) and name not in (listed or ()):
            continue
        if 'call' in entry:
            result[name] = [text(entry['call'])] if entry['call'] is not None else []
        elif entry.get('init') is not None:
            result[name] = [text(entry['init'])]
            for method, arguments in entry['methods'].items():
                if not method.startswith('_') and arguments is not None:
                    result[f'{name}.{method}'] = [text(arguments)]
        else:
            result[name] = []
    return result


def main(path):
    given = json.loads(pathlib.Path(path).read_text('utf-8'))
    aten = {name: found for name, found in given['aten'].items() if isinstance(found, list)}
    spaces = {
        'torch': operations({k: v for k, v in aten.items() if not k.endswith('_')}, torch),
        'torch.Tensor': operations(aten, torch.Tensor),
        'torch.linalg': operations(aten, torch.linalg, 'linalg_'),
        'torch.fft': operations(aten, torch.fft, 'fft_'),
        'torch.special': operations(aten, torch.special, 'special_'),
    }
    for name, space in (('torch', torch), ('torch.Tensor', torch.Tensor)):
        spaces[name].update(inspected(space, spaces[name]))
    for module in MODULES:
        spaces[module] = own(module, given['python'].get(module, {}))
    source = (
        f'Names, order and defaults of the arguments of PyTorch {given["version"].partition("+")[0]} '
        '(https://pytorch.org), and those of functions in Python in torch and torch.Tensor of PyTorch '
        f'{torch.__version__.partition("+")[0]}, whose licence is BSD-3-Clause; the list has no text or code of it'
    )
    lines = [f'{{\n "source": {json.dumps(source)}']
    for space, found in spaces.items():
        rows = ',\n'.join(f'  {json.dumps(name)}: {json.dumps(value)}' for name, value in sorted(found.items()))
        lines.append(f' {json.dumps(space)}: {{\n{rows}\n }}')
    PAGE.write_text(',\n'.join(lines) + '\n}\n', 'utf-8')


if __name__ == '__main__':
    import importlib

    for _module in MODULES:
        importlib.import_module(_module)
    main(sys.argv[1])
