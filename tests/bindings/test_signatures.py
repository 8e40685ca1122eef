#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Operations take the arguments of PyTorch's by their names (docs/data/pytorch-arguments.json). Each is called with an
object that is no value of any argument: what is wrong must be the value, and not the name."""

import inspect
import json
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / 'tests' / 'style'))

import gi  # noqa: E402

gi.require_version('GTorch', '1')

from gi.overrides import _gtorch_ops as ops  # noqa: E402
from gi.repository import GTorch  # noqa: E402

import on_device  # noqa: E402, F401
import tap  # noqa: E402

KNOWN = json.loads((TOP / 'docs/data/pytorch-arguments.json').read_text('utf-8'))
UNKNOWN = re.compile(r'unexpected keyword|has no argument|takes no keyword|takes another tensor alone')
# Names that PyTorch's own functions have among themselves, and results that are given by the names of their parts.
INTERNAL = {'L', 'M', 'X', 'info', 'inverse', 'max_values', 'min_indices', 'indices', 'values'}
PARTS = ('kthvalue', 'linalg_cholesky_ex', 'linalg_inv_ex', 'max', 'median', 'min', 'mode', 'nanmedian', 'sort', 'topk',
         'triangular_solve')
MODULES = {'random'}  # of the name of an operation
MISSING = {
    'atleast_1d': {'tensors'},
    'atleast_2d': {'tensors'},
    'atleast_3d': {'tensors'},
    'batch_norm': {'cudnn_enabled'},
    'chain_matmul': {'matrices'},
    'copy_': {'other'},
    'elu': {'input_scale', 'scale'},
    'elu_': {'input_scale', 'scale'},
    'embedding': {'sparse'},
    'eq': {'b'},
    'group_norm': {'cudnn_enabled'},
    'instance_norm': {'cudnn_enabled'},
    'isin': {'element', 'test_element'},
    'layer_norm': {'cudnn_enable'},
    'max': {'max'},
    'max_pool2d_with_indices': {'return_indices'},
    'min': {'min'},
    'ne': {'b'},
    'sort': {'reverse'},
    'split': {'split_sizes'},
    'tensor_split': {'tensor_indices_or_sections'},
    'to': {'other'},
    'view_copy': {'dtype'},
}


def takes(function, name, given):
    try:
        function(*given, **{name: object()})
    except Exception as error:  # by any error, whatever it says but that
        return not UNKNOWN.search(str(error))
    return True


def lacks(name, arguments, functions):
    """The arguments by whose names none of the functions can be called."""
    skipped = MISSING.get(name, set()) | (INTERNAL if name in PARTS else set())
    return [one for one in arguments.split() if one not in skipped and not any(takes(f, one, x) for f, x in functions)]


@tap.case
def operations_take_the_names_of_pytorch():
    x, wrong = GTorch.ones(2, 2), {}
    for name, arguments in KNOWN['op'].items():
        functions = [(getattr(GTorch.Tensor, name), (x,))] if name in ops.METHODS else []
        if name in ops.FUNCTIONS:
            functions.append((getattr(GTorch, name), (x,) if name in ops.METHODS else ()))
        found = lacks(name, arguments, functions)
        if found:
            wrong[name] = found
    assert len(KNOWN['op']) > 250 and not wrong, wrong


@tap.case
def functions_of_layers_take_the_names_of_pytorch():
    x, wrong = GTorch.ones(2, 2), {}
    for name, arguments in KNOWN['functional'].items():
        function = getattr(GTorch.nn.functional, name)
        found = lacks(name, arguments, [(function, (x,) if name in ops.METHODS else ())])
        if found:
            wrong[name] = found
    assert len(KNOWN['functional']) > 40 and not wrong, wrong


@tap.case
def every_function_takes_its_tensor_as_input():
    for name in ops.METHODS.keys() - {'normal'}:  # which draws from numbers, too
        if name in ops.FUNCTIONS:
            assert takes(getattr(GTorch, name), 'input', ()), name


@tap.case
def what_is_said_to_be_missing_is_missing():
    x = GTorch.ones(2, 2)
    for name, arguments in MISSING.items():
        assert name in KNOWN['op'] or name in KNOWN['functional'], name
        for argument in arguments:
            spaces = [s for s in (GTorch.Tensor, GTorch, GTorch.nn.functional) if hasattr(s, name)]
            assert any(not takes(getattr(space, name), argument, (x,)) for space in spaces), (name, argument)


@tap.case
def a_name_that_there_is_not_is_told():
    functional = GTorch.nn.functional
    for function in (GTorch.relu, GTorch.zeros_like, GTorch.softmax, GTorch.var, GTorch.where, functional.relu):
        assert not takes(function, 'no_such_name', (GTorch.ones(2, 2),)), function


@tap.case
def every_argument_of_a_signature_is_taken():
    x, wrong, n = GTorch.ones(2, 2), [], 0
    for name in ops.FUNCTIONS:
        function = getattr(GTorch, name)
        if name in MODULES:
            continue
        for parameter in inspect.signature(function).parameters.values():
            by_name = parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
            given = (x,) if name in ops.METHODS and parameter.name != 'input' else ()
            n += by_name
            if by_name and not takes(function, parameter.name, given):
                wrong.append((name, parameter.name))
    assert n > 1000 and not wrong, wrong


if __name__ == '__main__':
    tap.main()
