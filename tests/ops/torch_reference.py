# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""PyTorch's form of the samples of the operation rows."""

import functools
import json
import math
import pathlib
import sys

import torch

OPS = pathlib.Path(__file__).resolve().parent.parent.parent / 'gtorch' / 'ops'
sys.path.insert(0, str(OPS.parent.parent))
from generator.ops.rows import load  # noqa: E402


def load_rows():
    return load(sorted(OPS.glob('*.toml')))


def attribute(a, sample):
    """Returns the value of the argument in the sample, or its default."""
    value = sample.get(a.name)
    if isinstance(value, dict):
        value = None
    if a.kind == 'DType':
        return None if value in (None, 'none') else getattr(torch, value)
    if value is None and a.default is not None:
        text = a.default
        if text in ('None', 'none'):
            return None
        if a.kind == 'enum':
            return text
        if a.kind == 'int' and text == 'max':
            return 2**63 - 1
        return {'true': True, 'false': False, 'inf': math.inf, '-inf': -math.inf}.get(text) if text in (
            'true', 'false', 'inf', '-inf') else json.loads(text)
    return value


def forms(row, sample, tensors):
    """Yields functions without arguments that may be PyTorch's form of the sample; others raise TypeError.

    tensors: argument name -> tensor, list or None."""
    text = sample.get('torch', row.data.get('torch'))
    names = dict(tensors)
    for a in row.attrs:
        names[a.name] = attribute(a, sample)
    if text is not None:
        code = compile(text, row.name, 'eval')
        modules = {'torch': torch, 'math': math, 'F': torch.nn.functional}
        yield lambda: eval(code, modules, names)  # pylint: disable=eval-used
        return
    args = [tensors[a.name] for a in row.args if a.is_tensor]
    given = {a.name: names[a.name] for a in row.attrs if a.name in sample}
    in_order = [names[a.name] for a in row.args if a.is_tensor or a.name in sample]
    for owner in (torch, torch.Tensor, torch.nn.functional, torch.special, torch.linalg):
        function = getattr(owner, row.name, None)
        if function is not None:
            yield functools.partial(function, *args, **given)
            yield functools.partial(function, *in_order)
    in_place = getattr(torch.Tensor, f'{row.name}_', None)
    if in_place is not None and args:
        yield lambda: in_place(args[0].clone(), *in_order[1:])


def find_form(row, sample, tensors):
    """Returns the function that computes the sample, and what it returned."""
    for form in forms(row, sample, tensors):
        try:
            return form, form()
        except TypeError:
            if sample.get('torch', row.data.get('torch')) is not None:
                raise
    raise LookupError('PyTorch has no function of this name that takes these arguments')


def evaluate(row, sample, tensors):
    return find_form(row, sample, tensors)[1]


def results_of(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [v for v in value if isinstance(v, torch.Tensor)]
